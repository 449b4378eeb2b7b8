"""Two entrances onto one recording: interception of what JAX executes, and direct dispatch of known operations.

Interception: while a tape is active the current trace of JAX is a `RecorderTrace`. Whatever JAX executes passes through it:
the operation is run under the trace that was current before, so values stay what they would have been, and is then
recorded. Direct dispatch: `apply` runs a function on JAX's compiled fast path and records the same kind of entry.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import sys
import threading
import types
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..execution.residuals import Kept, is_large, keeping, linearized
from ..execution.trial import Trial, as_arrays, possible
from ..jaxprs import calls, contents, interning, lifting
from ..jaxprs.cache import Cache, Once
from ..jaxprs.canonical import snapshot
from ..jaxprs.fence import (
    DIFFERENTIATING_TRACES,
    ConcreteArray,
    EvalTrace,
    StagingTrace,
    Trace,
    Tracer,
    adapt,
    current_trace,
    eval_jaxpr,
    held_in,
    hide,
    set_current_trace,
    set_trace,
    set_trace_key,
    set_trace_reference,
    trace_reference,
    under,
)
from ..jaxprs.types import Function, Params, Primitive, Subfun, TraceLike, Value, Values
from .operation import (
    CACHED_OPS,
    JittedOp,
    Op,
    PullbackOp,
    PythonOp,
    Staged,
    StagedOp,
    call_without,
    is_ref,
    op_of,
    primitive_op,
    refuse_compiled,
    refuse_ref,
)
from .recording import Entry, Recording, new_tuple
from .rules import connected, forget_unused, is_inexact, zero_gradients
from .where import caller

# Integers up to this many stay known while a program is traced.
MOST_SIZES = 64


class StagedCall(NamedTuple):
    """The Op of a call of Python functions, its first inputs, what the call stored, and how to repack its results."""

    op: Op
    arrays: Iterable[Any]
    stores: Sequence[Any]
    repack: Function


_staged: Cache[StagedCall] = Cache(CACHED_OPS)


class _EagerRecordings(threading.local):
    def __init__(self) -> None:
        self.active: list[Recording] = []


class _Reads(threading.local):
    """Reads of variables while a call is staged: whether one was refused, and the recordings that may note them."""

    def __init__(self) -> None:
        self.refused = False
        self.recordings: Sequence[Recording] | None = None


reads = _Reads()

# What JAX keeps of a jitted function that was traced meanwhile has the value that a variable had then: it is not for others.
_staging_of = jax.make_user_context()  # type: ignore[no-untyped-call]  # JAX has no types for it
_stagings = itertools.count(1)


@contextlib.contextmanager
def reading(recordings: Sequence[Recording]) -> Iterator[None]:
    """A block that traces what is run once, here and now: the values of variables may be constants of it."""
    before = reads.recordings
    try:
        reads.recordings = recordings
        with _staging_of(next(_stagings)):
            yield
    finally:
        reads.recordings = before


class RecorderTrace(Trace):  # type: ignore[misc]  # JAX has no types for it
    """Runs every operation under `outer` and notes it on the active recordings."""

    def __init__(self, outer: Any, recordings: Any):
        super().__init__()
        self.requires_low = False  # the outer trace lowers
        self.outer = self.parent_trace = outer  # the latter is what JAX, asked whether there is a jit around, follows
        self._recordings: _EagerRecordings | types.SimpleNamespace = recordings

    @property
    def recordings(self) -> list[Recording]:
        found: list[Recording] = self._recordings.active
        return found

    def note(self, op: Op, inputs: Values, outputs: Any, kept: Kept | None = None) -> Any:
        """Appends an entry to every active recording and returns `outputs`."""
        recordings = self._recordings.active
        if not recordings:
            return outputs
        if type(outputs) is ConcreteArray:
            for x in inputs:
                if x is outputs:
                    outputs = copied(outputs)
            flat = (outputs,)
        else:
            outputs = _distinct(outputs, inputs)
            flat = (outputs,) if hasattr(outputs, "dtype") else tuple(jax.tree.leaves(outputs))
        for x in inputs:
            if type(x) is not ConcreteArray and isinstance(x, np.ndarray):  # it may change before a derivative is taken
                inputs = [*map(snapshot, inputs)]
                break
        entry = new_tuple(Entry, (op, tuple(inputs), flat, caller(4), kept))
        for recording in recordings:
            recording.entries.append(entry)
        return outputs

    def run(self, op: Op, inputs: Values, large: int | None = None) -> Any:
        """Runs `op` under the outer trace and notes it. Of a large call with so many outputs residuals may be kept."""
        before = current_trace()
        try:
            set_trace(self.outer)
            if large and (wide := keeping(op, op, large, inputs, self._recordings.active)) is not None:
                every = wide.call(*inputs)
                return self.note(op, inputs, every[:large], Kept(wide, tuple(every[large:])))
            if type(op) is JittedOp and type(self.outer) is EvalTrace:
                if (found := linearized(op, inputs, self._recordings.active)) is not None:
                    return self.note(op, inputs, *found)
            return self.note(op, inputs, op.call(*inputs))
        finally:
            try:
                set_trace_reference(before)
            finally:
                set_trace_key(before and before._weakref)  # JAX may have set None

    def process_primitive(self, primitive: Primitive, tracers: Values, params: Params, /) -> Any:
        if primitive.name in _REF_OPERATIONS:
            return self._run_on_ref(primitive, tracers, params)
        op, inputs = primitive_op(primitive, params, tracers)
        if op.pull is refuse_ref:
            return self._run_on_ref(primitive, tracers, params, op.name, inputs)
        jitted = primitive.name in contents.JIT and type(self.outer) is EvalTrace
        large = jitted and not op.eager and is_large(op, params["jaxpr"]) and contents.is_plain_jit(params)
        outputs = self.run(op, inputs, len(params["jaxpr"].out_avals) if large else None)
        if primitive.name in _CALLS and len(outputs) > 1:
            forwarded = contents.forwarded_inputs(params)
            for recording in self.recordings if forwarded else ():
                recording.forwarded |= {id(outputs[j]): tracers[i] for j, i in forwarded.items()}
        return outputs

    def note_compiled(self, inputs: Values, outputs: Values) -> None:
        """Notes a call of a function compiled ahead of time, through which no transformation of JAX's can pass."""
        op = PullbackOp("compiled", refuse_compiled, refuse_compiled)
        for recording in self.recordings:
            recording.entries.append(Entry(op, tuple(inputs), tuple(outputs), caller()))

    def _run_on_ref(
        self,
        primitive: Primitive,
        tracers: Values,
        params: Params,
        name: str | None = None,
        inputs: Values | None = None,
    ) -> Any:
        # A jax.Ref changes in place: what it held when is not on the tape, only that gradient would have to pass through it.
        before = [x for value in tracers for x in held_in(value)]
        result = under(self.outer, primitive.bind, *tracers, **params)
        closed_over = tuple(contents.refs_in(params))
        refs = (*filter(is_ref, tracers), *closed_over, *[x for value in tracers for x in held_in(value)])
        outputs = (*(result if primitive.multiple_results else (result,)), *refs)
        op = PullbackOp(name or primitive.name, primitive.bind, refuse_ref)
        for recording in self.recordings:
            recording.entries.append(Entry(op, (*(inputs or tracers), *before, *closed_over), outputs, caller()))
        return result

    # The hooks below get wrapped functions that are new at every call and can be called once only.

    def process_call(self, primitive: Primitive, f: Subfun, tracers: Values, params: Params, /) -> Any:
        return self._run_staged(primitive, (f,), tracers, params)

    def process_custom_jvp_call(
        self, primitive: Primitive, fun: Subfun, jvp: Subfun, tracers: Values, /, **params: Any
    ) -> Any:
        return self._run_custom(primitive, (fun, jvp), tracers, params)

    def process_custom_vjp_call(
        self, primitive: Primitive, fun: Subfun, fwd: Subfun, bwd: Subfun, tracers: Values, /, **params: Any
    ) -> Any:
        return self._run_custom(primitive, (fun, fwd, bwd), tracers, params)

    def process_shard_map(self, primitive: Primitive, fun: Subfun, tracers: Values, /, **params: Any) -> Any:
        return self._run_staged(primitive, (fun,), tracers, params)

    def _run_custom(self, primitive: Primitive, subfuns: Sequence[Subfun], tracers: Values, params: Params) -> Any:
        if not self.recordings:  # where no derivative is asked for, it is the function
            with set_current_trace(self):
                return subfuns[0].call_wrapped(*tracers)
        if not any(isinstance(trace, DIFFERENTIATING_TRACES) for trace in trace_stack(self.outer)):
            outputs = self._run_staged(primitive, subfuns, tracers, params)
            calls.keep_stores_of_rule(subfuns)
            return outputs
        # Inside jax.grad the rule is traced right away, and once only: the call must go on as it came.
        outputs = under(self.outer, primitive.bind, *tracers, subfuns=subfuns, **params)
        fn, _ = calls.rebind(primitive, subfuns, params)
        name = calls.function_name(subfuns[0]) or primitive.name
        return self.note(PythonOp(name, fn), tracers, outputs)

    def _run_staged(self, primitive: Primitive, subfuns: Sequence[Subfun], tracers: Values, params: Params) -> Any:
        if not self.recordings:
            return under(self.outer, primitive.bind, *tracers, subfuns=subfuns, **params)
        key = calls.stable_key(subfuns, tracers, params)
        if key is None:
            op, arrays, _, repack = self._stage(primitive, subfuns, tracers, params, False).value
        else:
            # A thread uses what it staged itself: JAX may not have finished with another thread's call of it.
            key = threading.get_ident(), key
            found = _staged.get(key, self._stage, primitive, subfuns, tracers, params, True)
            if not calls.are_filled(found.stores):  # an interrupt has left it so
                _staged.discard(key)
                found = _staged.get(key, self._stage, primitive, subfuns, tracers, params, True)
            op, arrays, stores, repack = found
            if stores is not subfuns[0].stores:
                subfuns[0].populate_stores(stores)
        return repack(self.run(op, (*arrays, *tracers)))

    def _stage(
        self, primitive: Primitive, subfuns: Sequence[Subfun], tracers: Values, params: Params, recurs: bool
    ) -> Any:
        """The `StagedCall`, to be kept or `Once`."""
        name = calls.function_name(subfuns[0]) or primitive.name
        again, repack = calls.rebind(primitive, subfuns, params)
        stores = getattr(subfuns[0], "stores", ())
        with set_current_trace(self.outer):
            try:
                reads.refused = False
                staged, repack = calls.stage(primitive, subfuns, tracers, params)
            except Exception:
                found = self._stage_with_reads(again, tracers) if reads.refused and not stages(self.outer) else None
                if found is None:
                    # Most likely Python in there reads values: it runs on the values, now and again in the backward pass.
                    # What fails for another reason fails then, too.
                    numbers = all([isinstance(x, _NUMBERS) for x in tracers])
                    op = PythonOp(name, again, again if numbers else functools.partial(_arrays_of, again))
                    return Once(StagedCall(op, (), stores, repack))
                staged = found
            if contents.touches_refs(staged):
                return Once(StagedCall(PullbackOp(name, again, refuse_ref), (), stores, repack))
            custom = primitive.name in contents.RULES
            if within := custom and not recurs and calls.within_transformation(subfuns):
                calls.trace_rules(staged, subfuns)
            arrays = contents.constants(staged)
            lifted = lifting.lift_jaxpr(staged, arrays) if arrays else staged
            # A jaxpr that may not come back is evaluated operation by operation, on what JAX has compiled already.
            evaluate = functools.partial(eval_jaxpr, lifted.jaxpr, contents.consts_of(lifted))
            call: Function | None = None if recurs else functools.partial(_arrays_of, evaluate)
            if call and custom and all([isinstance(x, _NUMBERS) for x in (*arrays.values(), *tracers)]):
                # no gradient comes to these: what comes out is as without a tape
                call = functools.partial(call_without, len(arrays), again)
            closed_over = tuple([i for i, x in enumerate(arrays.values()) if custom and isinstance(x, jax.Array)])
            # What is traced of a rule within a jitted function is kept by JAX with that function, for other calls.
            own = custom and not (within and contents.calls_rules(staged))
            known = Staged(lifted, name, closed_over, len(arrays), again if custom and not within else None, own)
            found = StagedCall(StagedOp(known, call), arrays.values(), stores, repack)
        return found if recurs and not arrays else Once(found)

    def with_closure(self, op: Op, inputs: Values, reads_again: bool = False) -> tuple[Op, Values]:
        """`op`, which runs Python of the user's, and its inputs, with what that Python closes over as further ones.

        As they were where that is nothing, or where the Python cannot be traced; if that is for a variable that it reads, and
        the caller tries once more, what JAX raises.
        """
        with set_current_trace(self.outer):
            try:
                staged = jax.make_jaxpr(op.fn)(*inputs)
            except Exception:
                if reads_again and reads.refused:
                    raise
                return op, inputs
            if (
                contents.touches_refs(staged)
                or contents.asks_host(staged)
                or not (arrays := contents.constants(staged))
            ):
                return op, inputs
            lifted = lifting.lift_jaxpr(staged, arrays)
        call = functools.partial(_arrays_of, functools.partial(eval_jaxpr, lifted.jaxpr, contents.consts_of(lifted)))
        known = Staged(lifted, op.name, reads=reads.recordings is not None)
        return StagedOp(known, call), (*arrays.values(), *inputs)

    def _stage_with_reads(self, fn: Function, tracers: Values) -> Any:
        """`fn` as a jaxpr in which the values of variables are constants, to become inputs; None where it cannot be traced."""
        try:
            with reading(self.recordings):
                return jax.make_jaxpr(fn)(*tracers)
        except Exception:
            return None

    def stage_value(self, val: Value) -> Value:
        return under(self.outer, self.outer.stage_value, val)

    def cur_qdd(self, x: Value) -> Any:  # JAX 0.10 only
        return under(self.outer, self.outer.cur_qdd, x)


_CALLS = frozenset((*contents.JIT, "checkpoint", "remat", "remat2"))
_REF_OPERATIONS = frozenset(("new_ref", "ref", "get", "swap", "addupdate", "freeze"))


copied = Trial(jnp.copy)


def _arrays_of(fn: Function, *inputs: Any) -> list[Any]:
    """``fn(*inputs)``, run `by_operations`; floats that depend on no input are arrays.

    A rule may give them a gradient, and the tape knows a value by the identity of its array.
    """
    return [
        copied(x.item() if getattr(x, "weak_type", False) and isinstance(x, np.ndarray) else x)  # Python's are weak
        if isinstance(x, _NUMBERS) and is_inexact(x)
        else x
        for x in by_operations(fn, *inputs)
    ]


_NUMBERS = (np.ndarray, np.generic, int, float, complex)


def _distinct(outputs: Any, inputs: Values) -> Any:
    # JAX forwards an input that comes out unchanged (`stop_gradient`, a reshape to the same shape) as the same object;
    # a value's identity is its history, so the output needs one of its own.
    if hasattr(outputs, "dtype"):
        for x in inputs:
            if x is outputs:
                return copied(outputs)
        return outputs
    seen = {id(x) for x in inputs}
    if type(outputs) is list and len(outputs) == 1 and id(outputs[0]) not in seen:
        return outputs  # what a jitted function of one result gives
    fresh = []
    for x in jax.tree.leaves(outputs):
        fresh.append(copied(x) if id(x) in seen and isinstance(x, jax.Array) else x)
        seen.add(id(x))
    return jax.tree.unflatten(jax.tree.structure(outputs), fresh)


# One trace for the process over the eager trace: JAX's jit cache is keyed by the trace, and a new one for every tape
# would fill it. The recordings that it notes on belong to the thread.
_eager: RecorderTrace | None = None
_eager_recordings = _EagerRecordings()


class Activation:
    """What makes `recording` active under `trace`, until `stop`.

    An interrupt may come when a block is left, before Python calls anything of ours. So it also ends when there
    is no reference to it any more, which may be late, or on another thread: all that `stop` does is right at any time.
    """

    _active: Any = ()

    def __init__(self, recording: Recording, trace: RecorderTrace):
        self._recording = recording
        self._trace = trace
        self._active = trace._recordings.active  # of this thread

    def start(self) -> Activation:
        try:
            self._active.append(self._recording)
            set_trace(self._trace)  # also where it is current: an interrupt may have left one half of it
            return self
        except BaseException:
            self.stop(failed=True)
            raise

    def stop(self, failed: bool = False) -> None:
        """Takes the recording off the active ones; the last one out restores JAX's trace.

        Where the block has `failed`, whatever trace is current now was made in it, and has ended.
        """
        active, trace = self._active, self._trace
        if self._recording not in active:
            return
        try:
            active.remove(self._recording)
        finally:
            if failed or (not active and trace_reference.value is trace):
                now = trace if active else trace.outer
                try:
                    set_trace_reference(now)
                finally:
                    set_trace_key(now._weakref)

    def __del__(self, is_finalizing: Any = sys.is_finalizing) -> None:
        if not is_finalizing():  # when Python ends the names of this module are gone
            self.stop()


def start(recording: Recording) -> Activation:
    """Makes `recording` active under the current trace."""
    global _eager
    if interning.tape_opened():
        forget_unused()
    trace = current_trace()
    if type(trace) is not RecorderTrace:
        hide(RecorderTrace)
        adapt(RecorderTrace, lambda: bool(_eager_recordings.active) or bool(active_recordings()))
        if type(trace) is not EvalTrace:
            trace = RecorderTrace(trace, types.SimpleNamespace(active=[]))
        else:
            if _eager is None or _eager.outer is not trace:
                _eager = RecorderTrace(trace, _eager_recordings)
            trace = _eager
    return Activation(recording, trace).start()


def outside() -> set_current_trace:
    """A context whose body runs under the outer trace: values are the same, nothing is noted."""
    trace = current_trace()
    return set_current_trace(trace.outer if type(trace) is RecorderTrace else trace)


def also(recording: Recording, fn: Function, /, *args: Any, **kwargs: Any) -> Any:
    """``fn(*args, **kwargs)`` with one more recording active."""
    activation = start(recording)
    try:
        return fn(*args, **kwargs)
    finally:
        activation.stop()


def on_trial(fn: Function, /, *args: Any, **kwargs: Any) -> Any:
    """``fn(*args, **kwargs)``, whose operations JAX would compile one by one, as a tape runs them (`compiling`)."""
    if type(current_trace()) is not EvalTrace or not possible():
        return fn(*args, **kwargs)
    return also(Recording(), fn, *args, **kwargs)


def by_operations(fn: Function, /, *args: Any) -> Any:
    """``fn(*args)``, of which nothing is recorded, and each operation is recognised and run as on a tape."""
    trace = current_trace()
    return under(trace, alone, (), fn, *args) if type(trace) is EvalTrace and possible() else fn(*args)


def alone(recordings: Sequence[Recording], fn: Function, /, *args: Any, **kwargs: Any) -> Any:
    """``fn(*args, **kwargs)`` with no other recordings active than these."""

    def run() -> Any:
        active = current_trace().recordings
        all_active = active[:]
        try:
            active[:] = recordings
            return fn(*args, **kwargs)
        finally:
            active[:] = all_active

    return also(Recording(), run)


class _Continuations(threading.local):
    def __init__(self) -> None:
        self.of: dict[int, tuple[Recording, Recording]] = {}  # by id: a recording, kept alive, and its continuation


_continuations = _Continuations()


def continuing(recordings: Sequence[Recording], fn: Function, /, *args: Any) -> Any:
    """``fn(*args)``, which is traced into a program or by `jax.vmap`, with continuations of the recordings around the trace.

    In a `function` a tape can be asked for the gradient of what is computed there. What is noted there are tracers: the
    tape's own recording must not hold them.
    """
    before = _continuations.of
    added = {id(recording): (recording, recording.continuation()) for recording in recordings}
    try:
        _continuations.of = before | added
        return alone([continuation for _, continuation in added.values()], fn, *args) if added else fn(*args)
    finally:
        _continuations.of = before


def continuation_of(recording: Recording) -> Recording:
    """What stands for `recording` in the program that is being traced here: its innermost continuation."""
    while (found := _continuations.of.get(id(recording))) is not None:
        recording = found[1]
    return recording


def unwind() -> None:
    """Restores JAX's trace where the last recording was stopped inside a program that was traced meanwhile."""
    trace = current_trace()
    if type(trace) is RecorderTrace and not trace.recordings:
        try:
            set_trace_reference(trace.outer)
        finally:
            set_trace_key(trace.outer._weakref)


def record_escape(kind: str, *arrays: Any, into: Any = None) -> None:
    """Notes, for `explain`, that values escape from the tapes: to Python, or as a variable's state (the array `into`)."""
    trace = current_trace()
    if type(trace) is RecorderTrace:
        for recording in trace.recordings:
            recording.mark(kind, tuple([None if x is None else weakref.ref(x) for x in (into, *arrays)]))


def active_recordings() -> list[Recording]:
    """The recordings that an operation run here reaches: also from inside `jax.vmap` and `jax.grad`, through their traces."""
    return list(itertools.chain.from_iterable(active_lists()))


def active_lists() -> Iterator[list[Recording]]:
    """The `active_recordings` of each trace that records, from the innermost: lists that can be changed."""
    for trace in trace_stack(current_trace()):
        if type(trace) is RecorderTrace:
            yield trace.recordings


def trace_stack(trace: TraceLike) -> Iterator[Any]:
    """`trace` and the traces below it, down to the eager one, or one that builds a jaxpr and runs nothing."""
    while trace is not None:
        yield trace
        if isinstance(trace, StagingTrace):
            return
        trace = getattr(trace, "parent_trace", None)


def outer_trace() -> Any:
    """JAX's trace here, but for the tapes."""
    trace = current_trace()
    return trace.outer if type(trace) is RecorderTrace else trace


def eager() -> bool:
    """Whether values are known here: no JAX transformation is under way, but for the tapes."""
    return type(outer_trace()) is EvalTrace


def staging() -> bool:
    """Whether the current (outer) trace stages out a program, as under ``jax.jit``: values are not known yet."""
    return stages(current_trace())


def stages(trace: TraceLike) -> bool:
    """Whether `trace`, or one below it, builds a jaxpr and runs nothing."""
    return any(isinstance(below, StagingTrace) for below in trace_stack(trace))


# ---- direct dispatch ------------------------------------------------------------------------------------------------


def apply(fn: Function, *arrays: Any, **static: Any) -> Any:
    """Runs ``fn(*arrays, **static)`` as one compiled operation and records it as one entry.

    `fn` must be a stable function (compiled once per `fn` and `static`); `static` values must have an exact key.
    """
    return run(op_of(fn, static), arrays)


def run(op: Op, inputs: Values) -> Any:
    """Runs `op` under the outer trace and notes it on the tapes that record here."""
    trace = trace_reference.value
    outer = trace.outer if type(trace) is RecorderTrace else trace
    given = inputs if type(outer) is EvalTrace else None  # arrays only; None where `_call` has to look
    for x in inputs:
        if type(x) is not ConcreteArray:
            given = None if given is None or op.eager else as_arrays(inputs)
            break
    if outer is trace:
        return (
            _call(op, inputs)
            if given is None
            else op.call(*inputs)
            if given is inputs
            else _distinct(op.call(*given), given)
        )
    try:
        set_trace_reference(outer)
        set_trace_key(outer._weakref)
        if given is None:
            return trace.note(op, inputs, _call(op, inputs))
        outputs = op.call(*given)
        if type(outputs) is not ConcreteArray:
            return trace.note(op, inputs, outputs if given is inputs else _distinct(outputs, given))
        for x in given:  # from here on what `note` does of this, in one step
            if x is outputs:
                outputs = copied(outputs)
        entry = new_tuple(Entry, (op, tuple(inputs), (outputs,), caller(3), None))
        for recording in trace._recordings.active:
            recording.entries.append(entry)
        return outputs
    finally:
        try:
            set_trace_reference(trace)
        finally:
            set_trace_key(trace._weakref)


def run_derivative(of: Op, op: Op, inputs: Values) -> Any:
    """Runs `op`, a pullback or pushforward of `of`, such that outer tapes see what a rule of the user's closes over, too."""
    if not op.eager:
        return run(op, inputs)
    trace = current_trace()
    records = type(trace) is RecorderTrace and bool(trace.recordings)
    may_read = of.reads and not stages(trace)
    reads.refused = False
    try:
        return run(*(trace.with_closure(op, inputs, may_read) if records else (op, inputs)))
    except Exception:
        if not (reads.refused and may_read):
            raise
    with reading(active_recordings()):
        return run(*(trace.with_closure(op, inputs) if records else (op, inputs)))


def _call(op: Op, inputs: Values) -> Any:
    """Runs `op` where a program is being traced: what is computed of shapes alone is known there, and may be a shape again."""
    if type(trace_reference.value) is EvalTrace:
        return op.call(*inputs)
    known = [is_size(x) for x in inputs]
    if inputs and all(known) and not op.eager:
        with jax.ensure_compile_time_eval():
            if all(map(_may_be_size, jax.tree.leaves(jax.eval_shape(op.fn, *inputs)))):
                return op.call(*inputs)
    # A NumPy array is part of the program; a jax.Array would be an input of it.
    constant = [is_known and getattr(x, "weak_type", True) is False for x, is_known in zip(inputs, known, strict=True)]
    outputs = op.call(*[np.asarray(x) if here else x for x, here in zip(inputs, constant, strict=True)])
    return connected(outputs, inputs) if getattr(op.fn, "func", op.fn) in zero_gradients else outputs


def is_size(x: Value) -> bool:
    """Whether `x` is known and could be a shape, or part of one: a few integers (or truths, that compare them)."""
    return not isinstance(x, Tracer) and (isinstance(x, int) or _may_be_size(x))


def _may_be_size(x: Value) -> bool:
    kind = getattr(getattr(x, "dtype", None), "kind", None)  # keys of random numbers have a dtype without
    return kind in ("i", "b") and math.prod(x.shape) <= MOST_SIZES
