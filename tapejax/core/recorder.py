"""Two doors onto one recording. The only module that knows ``jax.core``.

JAX's door: while a tape is active the current trace of JAX is a `RecorderTrace`. Whatever JAX executes passes through it:
the operation is handed on to the trace that was current before, so values stay what they would have been, and is then
noted. The op door: `apply` runs a function on JAX's compiled fast path and notes the same kind of entry.

What is noted is data (`Entry`), and a value is known by the identity of its ``jax.Array``, which the entry keeps alive.
Everything that is only semi-public in JAX is in this file; it runs unchanged on JAX 0.10 and 0.12.
"""

from __future__ import annotations

import functools
import math
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from . import cache, jaxprs
from ._jax import (
    Trace,
    Tracer,
    adapt,
    current_trace,
    eval_jaxpr,
    hide,
    jaxpr_as_fun,
    set_current_trace,
    set_trace,
    set_trace_key,
    set_trace_reference,
    trace_reference,
    under,
)
from .cache import Cache, Once
from .canonical import UncacheableError, exact, snapshot
from .shadow import call_both, difference
from .where import Line, caller, line_of

# Operations remembered by `_op` and `_primitive_op`: each holds a compiled function or a jaxpr, never an array.
CACHED_OPS = 4096
# Integers up to this many stay known while a program is traced.
MOST_SIZES = 64


class Op:
    """What an entry does: a pure function of flat arrays, and how to run it now.

    `fn(*arrays)` returns an array or a pytree of arrays and may be traced; `call` does the same at full speed.
    Two Ops are equal when their `key` is, so that programs made of them can be compared and cached. An `eager` one runs
    Python that looks at values: its derivative is taken on the recorded arrays, never compiled. One with a `pull` brings
    its own: the function from the cotangents of all outputs to those of the inputs (None: none), for this one call. The
    first `results` of its inputs are what its outputs are copies of; no gradient goes back to those. `bound` is the function
    or primitive that it runs and the static arguments, where it is no more than that.
    """

    __slots__ = ("name", "fn", "call", "key", "eager", "pull", "results", "staged", "bound", "_hash", "__weakref__")

    def __init__(self, name, fn, call=None, key=None, *, eager=False, pull=None, results=0, staged=None, bound=None):
        self.name: str = name
        self.eager: bool = eager
        self.pull: Callable[[Sequence[Any]], Sequence[Any]] | None = pull
        self.results: int = results
        self.staged: Any = staged
        self.bound: tuple[Any, dict[str, Any]] | None = bound
        self.fn: Callable = fn
        self.call: Callable = call or jax.jit(fn)
        self.key: Any = self if key is None else key
        self._hash = object.__hash__(self) if key is None else hash(key)

    def settled(self) -> Op:
        """The Op under which a freshly staged one is known from program to program.

        Telling custom rules apart traces them, which JAX allows only once the call that was recorded has returned.
        """
        return self if self.staged is None else self.staged.op()

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Op) and self._hash == other._hash and self.key is not self and self.key == other.key
        )

    def __repr__(self) -> str:
        return f"Op({self.name})"


class Entry(NamedTuple):
    """One recorded operation: `outputs = op(*inputs)`. Inputs that are no ``jax.Array`` are constants."""

    op: Op
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    where: Any = None  # what `caller` said: the line of the user's code that ran it

    @property
    def line(self) -> Line | None:
        """The line of the user's code that ran it."""
        return line_of(self.where)

    def __repr__(self) -> str:
        ins, outs = (", ".join(map(type_of, side)) for side in (self.inputs, self.outputs))
        return f"{self.op.name}: {ins} -> {outs}" + (f"  ({self.line})" if self.line else "")


def type_of(x: Any) -> str:
    """The dtype and shape of an array: ``float32[3,4]``; a scalar has its dtype only."""
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        return type(x).__name__
    shape = ",".join(map(str, getattr(x, "shape", ())))  # JAX's own Python numbers have a dtype only
    return f"{dtype}[{shape}]" if shape else str(dtype)


class Mark(NamedTuple):
    """Something that happened to the tape, not to a value: `kind`, how many entries there were before, and the line."""

    kind: str
    position: int
    where: Any
    about: Any = None


class Recording:
    """What one tape has seen: its entries in order, what it watches since when, and the variables read."""

    __slots__ = ("entries", "watched", "variables", "watch_accessed", "marks", "forgotten", "forwarded", "origins")

    def __init__(self, watch_accessed: bool = True):
        self.watch_accessed = watch_accessed
        self.entries: list[Entry] = []
        # id of a watched array -> (the array, kept alive; how many entries there were when the watch began)
        self.watched: dict[int, tuple[Any, int]] = {}
        # id of a watched variable -> (the variable, the arrays that it held when it was read)
        self.variables: dict[int, tuple[Any, dict[int, Any]]] = {}
        # For `explain`: what happened to the tape, and what a recording that was reset knew (and is alive still).
        self.marks: list[Mark] = []
        self.forgotten: Any = ()
        # id of an output of a jitted call -> the input that the call returned unchanged as that output
        self.forwarded: dict[int, Any] = {}
        # id of an array of another library's variable -> what the variable held before jitted calls returned it unchanged
        self.origins: dict[int, Any] = {}

    def mark(self, kind: str, about: Any = None) -> None:
        """Notes something that happens to the tape, for `explain`."""
        self.marks.append(Mark(kind, len(self.entries), caller(), about))

    def forget(self, former: Recording | None) -> None:
        """Takes the place of `former`, of which it knows only which values that are still alive were in it."""
        if former is None:
            return
        seen = [x for entry in former.entries for x in entry.outputs] + [x for x, _ in former.watched.values()]
        self.forgotten = {id(x): weakref.ref(x) for x in seen if not isinstance(x, Tracer)}
        self.forgotten |= {key: ref for key, ref in dict(former.forgotten).items() if ref() is not None}

    def continuation(self) -> Recording:
        """A recording that holds what this one does, and goes on by itself."""
        found = Recording(self.watch_accessed)
        found.entries, found.watched, found.marks = list(self.entries), dict(self.watched), list(self.marks)
        found.variables = {key: (variable, dict(arrays)) for key, (variable, arrays) in self.variables.items()}
        found.forgotten, found.forwarded, found.origins = self.forgotten, dict(self.forwarded), dict(self.origins)
        return found

    def watch(self, array: Any) -> None:
        self.watched.setdefault(id(array), (array, len(self.entries)))

    def watch_variable(self, variable: Any, array: Any) -> None:
        """Watches what `variable` holds now, and from here on whatever it holds when it is read."""
        arrays = self.variables.setdefault(id(variable), (variable, {}))[1]
        if id(array) not in arrays:
            arrays[id(array)] = array
            self.watch(array)

    def replace(self, old: Any, new: Any) -> None:
        """Another library's variable holds `new` in place of `old`: the same value still, if a jitted call returned it."""
        if self.forwarded.get(id(new)) is old:
            self.origins[id(new)] = self.origins.get(id(old), old)

    def read(self, variable: Any, array: Any) -> None:
        if (self.watch_accessed and variable.trainable) or id(variable) in self.variables:
            self.watch_variable(variable, array)


# ---- where in the user's code ---------------------------------------------------------------------------------------


def _line() -> str:
    line = Entry(None, (), (), caller()).line  # type: ignore[arg-type]
    return "" if line is None else f" ({line.file}:{line.number}: {line.text})"


cache.where = _line


def compare_ops(key: Any, kept: Op, fresh: Op) -> Op:
    """In shadow mode: an Op that runs `kept`, and raises ShadowError where `fresh` would compute something else."""
    call = functools.partial(_call_shadowed, kept, fresh)
    if kept.eager or fresh.eager:
        cache.require(kept.eager and fresh.eager, kept.name, "It runs Python.")
        return kept
    return Op(kept.name, kept.fn, call, kept.key, results=kept.results, staged=kept.staged, bound=kept.bound)


def _call_shadowed(kept: Op, fresh: Op, *inputs: Any) -> Any:
    return cache.comparing(call_both, kept.name, kept.call, kept.fn, fresh.fn, inputs)


def _compare_staged(key: Any, kept: Any, fresh: Any) -> Any:
    cache.require(kept[0].name == fresh[0].name, fresh[0].name, kept[0].name)
    found = difference(kept[0].staged.jaxpr, fresh[0].staged.jaxpr)
    cache.require(found is None, fresh[0].name, found or "")
    return fresh  # made of functions that can be called once


_staged = Cache(CACHED_OPS, _compare_staged)


class _EagerRecordings(threading.local):
    def __init__(self) -> None:
        self.active: list[Recording] = []


class RecorderTrace(Trace):
    """Hands every operation to `outer` and notes it on the active recordings."""

    def __init__(self, outer: Any, recordings: Any):
        super().__init__()
        self.requires_low = False  # lowering is the outer trace's business
        self.outer = outer
        self._recordings = recordings

    @property
    def recordings(self) -> list[Recording]:
        return self._recordings.active

    def note(self, op: Op, inputs: Sequence[Any], outputs: Any) -> Any:
        """Appends an entry to every active recording and returns `outputs`."""
        recordings = self._recordings.active
        if not recordings:
            return outputs
        outputs = _distinct(outputs, inputs)
        flat = (outputs,) if hasattr(outputs, "dtype") else tuple(jax.tree.leaves(outputs))
        if any(
            [isinstance(x, np.ndarray) for x in inputs]
        ):  # which may change before a derivative is taken at the recorded inputs
            inputs = [snapshot(x) for x in inputs]
        entry = Entry(op, tuple(inputs), flat, caller(3))
        for recording in recordings:
            recording.entries.append(entry)
        return outputs

    def run(self, op: Op, inputs: Sequence[Any]) -> Any:
        """Runs `op` under the outer trace and notes it."""
        before = current_trace()
        try:
            set_trace(self.outer)
            return self.note(op, inputs, op.call(*inputs))
        finally:
            try:
                set_trace_reference(before)
            finally:
                set_trace_key(before and before._weakref)  # JAX may have set None

    def process_primitive(self, primitive, tracers, params, /):
        if primitive.name in _REF_OPERATIONS:
            return self._run_on_ref(primitive, tracers, params)
        outputs = self.run(*_primitive_op(primitive, params, tracers))
        if primitive.name in _CALLS and len(outputs) > 1:
            forwarded = jaxprs.forwarded_inputs(params)
            for recording in self.recordings if forwarded else ():
                recording.forwarded |= {id(outputs[j]): tracers[i] for j, i in forwarded.items()}
        return outputs

    def note_compiled(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Notes a call of a function compiled ahead of time, through which no transformation of JAX's can pass."""
        op = Op("compiled", _refuse_compiled, _refuse_compiled, eager=True, pull=_refuse_compiled)
        for recording in self.recordings:
            recording.entries.append(Entry(op, tuple(inputs), tuple(outputs), caller()))

    def _run_on_ref(self, primitive, tracers, params):
        # A jax.Ref changes in place: what it held when is not on the tape, only that gradient would have to pass through it.
        result = under(self.outer, primitive.bind, *tracers, **params)
        outputs = (*(result if primitive.multiple_results else (result,)), *(x for x in tracers if is_ref(x)))
        op = Op(primitive.name, primitive.bind, primitive.bind, eager=True, pull=_refuse_ref)
        for recording in self.recordings:
            recording.entries.append(Entry(op, tuple(tracers), outputs, caller()))
        return result

    # The hooks below get wrapped functions that are new at every call and can be called once only.

    def process_call(self, primitive, f, tracers, params, /):
        return self._run_staged(primitive, (f,), tracers, params)

    def process_custom_jvp_call(self, primitive, fun, jvp, tracers, /, **params):
        return self._run_custom(primitive, (fun, jvp), tracers, params)

    def process_custom_vjp_call(self, primitive, fun, fwd, bwd, tracers, /, **params):
        return self._run_custom(primitive, (fun, fwd, bwd), tracers, params)

    def process_shard_map(self, primitive, fun, tracers, /, **params):
        return self._run_staged(primitive, (fun,), tracers, params)

    def _run_custom(self, primitive, subfuns, tracers, params):
        if not any(type(trace).__name__ in _DIFFERENTIATING for trace in _towers(self.outer)):
            return self._run_staged(primitive, subfuns, tracers, params)
        # Inside jax.grad the rule is traced right away, and once only: the call must go on as it came.
        outputs = under(self.outer, primitive.bind, *tracers, subfuns=subfuns, **params)
        fn, _ = jaxprs.rebind(primitive, subfuns, params)
        name = jaxprs.function_name(subfuns[0]) or primitive.name
        return self.note(Op(name, fn, fn, eager=True), tracers, outputs)

    def _run_staged(self, primitive, subfuns, tracers, params):
        key = jaxprs.stable_key(subfuns, tracers, params)
        if key is None:
            op, arrays, _, repack = self._stage(primitive, subfuns, tracers, params, False).value
        else:
            op, arrays, stores, repack = _staged.get(key, self._stage, primitive, subfuns, tracers, params, True)
            if stores is not subfuns[0].stores:
                subfuns[0].populate_stores(stores)
        return repack(self.run(op, (*arrays, *tracers)))

    def _stage(self, primitive, subfuns, tracers, params, recurs):
        """The Op of a call of Python functions, its first inputs, what the call stored, and how to repack its results."""
        name = jaxprs.function_name(subfuns[0]) or primitive.name
        again, repack = jaxprs.rebind(primitive, subfuns, params)
        stores = getattr(subfuns[0], "stores", ())
        with set_current_trace(self.outer):
            try:
                staged, repack = jaxprs.stage(primitive, subfuns, tracers, params)
            except Exception:
                # Most likely Python in there looks at values: it runs on the values, now and again in the backward pass.
                # What fails for another reason fails then, too.
                return Once((Op(name, again, again, eager=True), (), stores, repack))
            custom = primitive.name in jaxprs.RULES
            if within := custom and not recurs and jaxprs.within_transformation(subfuns):
                jaxprs.trace_rules(staged, subfuns)
            arrays = jaxprs.constants(staged)
            lifted = jaxprs.lift_jaxpr(staged, arrays) if arrays else staged
            # A jaxpr that may not come back is evaluated operation by operation, on what JAX has compiled already.
            call = None if recurs else functools.partial(eval_jaxpr, lifted.jaxpr, jaxprs._consts(lifted))
            closed_over = tuple([i for i, x in enumerate(arrays.values()) if custom and isinstance(x, jax.Array)])
            known = Staged(lifted, name, closed_over, len(arrays), again if custom and not within else None)
            op = Op(name, jaxpr_as_fun(lifted), call, staged=known)
        found = op, arrays.values(), stores, repack
        return found if recurs and not arrays else Once(found)

    def stage_value(self, val):
        return under(self.outer, self.outer.stage_value, val)

    def cur_qdd(self, x):  # JAX 0.10 only
        return under(self.outer, self.outer.cur_qdd, x)


_DIFFERENTIATING = frozenset(("JVPTrace", "LinearizeTrace"))
_CALLS = frozenset((*jaxprs.JIT, "checkpoint", "remat", "remat2"))
_REF_OPERATIONS = frozenset(("new_ref", "ref", "get", "swap", "addupdate", "freeze"))


def is_ref(x: Any) -> bool:
    """Whether `x` is a ``jax.Ref``."""
    return type(x).__name__ == "Ref"


def _refuse_ref(cotangents: Sequence[Any]) -> Sequence[Any]:
    raise LookupError(
        "gradient registry has no entry for: an operation on a jax.Ref. A Ref changes in place, which a tape cannot follow "
        "outside jax.jit: use it inside a jitted function, or a Variable and its assign()."
    )


def _refuse_compiled(*_: Any) -> Any:
    raise TypeError(
        "Cannot differentiate a function that was lowered and compiled ahead of time, for one signature. Call the jitted "
        "function itself inside the tape's block, or compile the whole step, with the tape in it."
    )


def without_derivative(op: Op, constants: int = 0) -> Op:
    """`op`, whose first `constants` inputs it does not take, where running it again would give something else.

    A derivative is taken at the recorded inputs, by computing what it needs of them anew.
    """

    def refuse(cotangents: Sequence[Any]) -> Sequence[Any]:
        raise LookupError(
            f"gradient registry has no entry for: {op.name}, a compiled program that asks Python for something as it runs "
            "(random numbers of tf.random, io_callback). It would be given something else in the backward pass. Decorate the "
            "function with tapejax.function in place of jax.jit, use tf.while_loop or tf.map_fn in place of lax.scan, or pass "
            "what it asks for in as an argument (tf.random.stateless_normal with a seed)."
        )

    def fn(*inputs: Any) -> Any:
        return op.fn(*inputs[constants:])

    def call(*inputs: Any) -> Any:
        return op.call(*inputs[constants:])

    return Op(op.name, fn, call, eager=True, pull=refuse)


_copy = jax.jit(jnp.copy)


def _distinct(outputs: Any, inputs: Sequence[Any]) -> Any:
    # JAX forwards an input that comes out unchanged (`stop_gradient`, a reshape to the same shape) as the same object;
    # a value's identity is its history, so the output needs one of its own.
    if hasattr(outputs, "dtype"):
        for x in inputs:
            if x is outputs:
                return _copy(outputs)
        return outputs
    seen = {id(x) for x in inputs}
    if type(outputs) is list and len(outputs) == 1 and id(outputs[0]) not in seen:
        return outputs  # what a jitted function of one result gives
    fresh = []
    for x in jax.tree.leaves(outputs):
        fresh.append(_copy(x) if id(x) in seen and isinstance(x, jax.Array) else x)
        seen.add(id(x))
    return jax.tree.unflatten(jax.tree.structure(outputs), fresh)


# One trace for the process over the eager trace: JAX's jit cache is keyed by the trace, and a new one for every tape
# would fill it. The recordings that it notes on belong to the thread.
_eager: RecorderTrace | None = None
_eager_recordings = _EagerRecordings()


class _Recordings:
    def __init__(self) -> None:
        self.active: list[Recording] = []


def _is_eager(trace: Any) -> bool:
    return type(trace).__name__ == "EvalTrace"


class Activation:
    """What makes `recording` active under `trace`, until `stop`.

    An interrupt may come when a block is left, before Python calls anything of ours. So it also ends when nobody refers to it
    any more, which may be late, or on another thread: all that `stop` does is right at any time.
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

        Where the block has `failed`, whatever trace is current now was made in it, and is dead.
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

    __del__ = stop


def start(recording: Recording) -> Activation:
    """Makes `recording` active under the current trace."""
    global _eager
    trace = current_trace()
    if type(trace) is not RecorderTrace:
        hide(RecorderTrace)
        adapt(RecorderTrace, lambda: bool(_eager_recordings.active) or bool(active_recordings()))
        if not _is_eager(trace):
            trace = RecorderTrace(trace, _Recordings())
        else:
            if _eager is None or _eager.outer is not trace:
                _eager = RecorderTrace(trace, _eager_recordings)
            trace = _eager
    return Activation(recording, trace).start()


def outside() -> set_current_trace:
    """A context whose body runs under the outer trace: values are the same, nothing is noted."""
    trace = current_trace()
    return set_current_trace(trace.outer if type(trace) is RecorderTrace else trace)


def also(recording: Recording, fn: Callable, /, *args: Any, **kwargs: Any) -> Any:
    """``fn(*args, **kwargs)`` with one more recording active."""
    activation = start(recording)
    try:
        return fn(*args, **kwargs)
    finally:
        activation.stop()


def alone(recordings: Sequence[Recording], fn: Callable, /, *args: Any, **kwargs: Any) -> Any:
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


def continuing(recordings: Sequence[Recording], fn: Callable, /, *args: Any) -> Any:
    """``fn(*args)``, which is traced into a program, with continuations of the recordings around the trace.

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


def present(recording: Recording) -> Recording:
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


def leaves(kind: str, *arrays: Any, into: Any = None) -> None:
    """Notes, for `explain`, that values leave the tapes' sight: for Python, or as a variable's state (the array `into`)."""
    trace = current_trace()
    if type(trace) is RecorderTrace:
        for recording in trace.recordings:
            recording.mark(kind, tuple([None if x is None else weakref.ref(x) for x in (into, *arrays)]))


def active_recordings() -> Sequence[Recording]:
    """The recordings that an operation run here reaches: also from inside `jax.vmap` and `jax.grad`, through their traces."""
    for trace in _towers(current_trace()):
        if type(trace) is RecorderTrace:
            return trace.recordings
    return ()


def _towers(trace: Any) -> Iterator[Any]:
    """`trace` and the traces below it, down to the eager one, or one that builds a jaxpr and runs nothing."""
    while trace is not None:
        yield trace
        if "DynamicJaxpr" in type(trace).__name__:
            return
        trace = trace.outer if type(trace) is RecorderTrace else getattr(trace, "parent_trace", None)


def outer_trace() -> Any:
    """JAX's trace here, but for the tapes."""
    trace = current_trace()
    return trace.outer if type(trace) is RecorderTrace else trace


def eager() -> bool:
    """Whether values are known here: no JAX transformation is under way, but for the tapes."""
    return _is_eager(outer_trace())


def plain(trace: Any) -> bool:
    """Whether under `trace`, the current one, values are known, no tape records and no `function` is traced."""
    return _is_eager(trace) and capturing.capture is None


def staging() -> bool:
    """Whether the current (outer) trace stages out a program, as under ``jax.jit``: values are not known yet."""
    return _stages(current_trace())


def _stages(trace: Any) -> bool:
    return any("DynamicJaxpr" in type(below).__name__ for below in _towers(trace))


class _Capturing(threading.local):
    # The `staging.Capture` of the `function` that this thread traces: it makes variables inputs of the function's program.
    capture: Any = None


capturing = _Capturing()

# Variables hold tracers while a function is traced: no other thread may trace, or read and assign what is adopted, meanwhile.
tracing = threading.RLock()


def held(variable: Any) -> Any:
    """The array that `variable` holds; while a `function` is traced, what stands for it there."""
    capture = capturing.capture
    if capture is not None:
        return capture.adopt(variable)
    array = variable._array
    if isinstance(array, Tracer) and eager():
        with tracing:  # another thread traces a function, and gives its variables their arrays back when it is done
            array = variable._array
    return array


def access(variable: Any) -> None:
    """Notes that a variable is looked at or assigned to: trainable ones count as watched from here on, as in TensorFlow."""
    for recording in active_recordings():
        recording.read(variable, held(variable))


def read(variable: Any) -> Any:
    """Notes that `variable` is read, on every tape that records here, and returns the array that it holds.

    Raises:
      RuntimeError: under a plain ``jax.jit``, which would bake the variable's present value into the program.
    """
    array = held(variable)
    trace = current_trace()
    if type(trace) is RecorderTrace:
        for recording in trace.recordings:
            recording.read(variable, array)
        trace = trace.outer
    elif not _is_eager(trace):
        for recording in active_recordings():
            recording.read(variable, array)
    if not _is_eager(trace) and not isinstance(array, Tracer) and isinstance(array, jax.Array) and _stages(trace):
        raise RuntimeError(
            f"Variable {variable.name!r} was read while JAX traces a function (jax.jit, lax.scan ...): its present value "
            "would be baked into the compiled program and later assign()s would go unnoticed. Decorate the function with "
            "tapejax.function, which threads Variables through, or pass the value in as an argument."
        )
    return array


# ---- Ops ----------------------------------------------------------------------------------------------------------


_ops = Cache(CACHED_OPS, compare_ops)


def _op(fn: Callable, static: dict[str, Any]) -> Op:
    return _ops.get(_static_key(fn, static), _make_op, fn, static)


def _static_key(fn: Callable, static: dict[str, Any]) -> Any:
    return (fn, *[(name, exact(value)) for name, value in static.items()]) if static else fn


def _make_op(fn: Callable, static: dict[str, Any]) -> Op:
    name = getattr(fn, "__name__", repr(fn)).strip("_")
    bound: Any = fn
    if static or name != getattr(fn, "__name__", name):
        bound = functools.partial(fn, **static)
        bound.__name__ = name  # as JAX's programs show it
    return Op(name, bound, jax.jit(bound), _static_key(fn, static), bound=(fn, static))


def apply(fn: Callable, *arrays: Any, **static: Any) -> Any:
    """The op door: runs ``fn(*arrays, **static)`` as one compiled operation and notes it as one entry.

    `fn` must be a stable function (compiled once per `fn` and `static`); `static` values must have an exact key.
    """
    return run(_op(fn, static), arrays)


def run(op: Op, inputs: Sequence[Any]) -> Any:
    """Runs `op` under the outer trace and notes it on the tapes that record here."""
    trace = current_trace()
    if type(trace) is not RecorderTrace:
        return op.call(*inputs) if _is_eager(trace) else _call(op, inputs)
    try:
        set_trace(trace.outer)
        return trace.note(op, inputs, op.call(*inputs) if _is_eager(trace.outer) else _call(op, inputs))
    finally:
        try:
            set_trace_reference(trace)
        finally:
            set_trace_key(trace._weakref)


def _call(op: Op, inputs: Sequence[Any]) -> Any:
    """Runs `op` where a program is being traced: what is computed of shapes alone is known there, and may be a shape again."""
    known = [is_size(x) for x in inputs]
    if inputs and all(known) and not op.eager:
        with jax.ensure_compile_time_eval():
            if all(map(_may_be_size, jax.tree.leaves(jax.eval_shape(op.fn, *inputs)))):
                return op.call(*inputs)
    # A NumPy array is part of the program; a jax.Array would be an input of it.
    constant = [is_known and getattr(x, "weak_type", True) is False for x, is_known in zip(inputs, known, strict=True)]
    return op.call(*[np.asarray(x) if here else x for x, here in zip(inputs, constant, strict=True)])


def is_size(x: Any) -> bool:
    """Whether `x` is known and could be a shape, or part of one: a few integers (or truths, that compare them)."""
    return not isinstance(x, Tracer) and (isinstance(x, int) or _may_be_size(x))


def _may_be_size(x: Any) -> bool:
    return hasattr(x, "dtype") and x.dtype.kind in "ib" and math.prod(x.shape) <= MOST_SIZES


zero_gradients: weakref.WeakSet = weakref.WeakSet()
# Functions whose results are connected together: a compiled function's, as in TensorFlow. What reaches one of them has a
# gradient, be it zero, for all.
joint: weakref.WeakSet = weakref.WeakSet()


def zero_gradient(fn: Callable) -> Callable:
    """Marks `fn` as connected though its derivative is zero: its gradient is zeros, not ``None``."""
    zero_gradients.add(fn)
    return fn


def _primitive_op(primitive: Any, params: dict[str, Any], args: Sequence[Any]) -> tuple[Op, Sequence[Any]]:
    """The Op for a primitive with its parameters, and its inputs: `args` and what its jaxprs close over."""
    if "jaxpr" not in params and not jaxprs.among(params):
        if primitive.name == "device_put" and eager() and _moves(params["devices"], args):
            return _own_op(primitive, params), args
        return _bind_op(primitive, params), args
    # `jnp` functions bring the same objects every time
    key = primitive, *map(id, params.values())
    op, arrays, _ = _program_ops.get(key, _make_program_op, primitive, params, args)
    return op, (*arrays, *args) if arrays else args


def _compare_program_ops(key: Any, kept: Any, fresh: Any) -> Any:
    primitive, params = key[0], fresh[2]
    itself = Op(fresh[0].name, functools.partial(primitive.bind, **params), fresh[0].call)
    return compare_ops(key, kept[0], itself), (), params


# By the identity of all parameters, which are kept alive here.
_program_ops = Cache(CACHED_OPS, _compare_program_ops)


def _make_program_op(primitive: Any, params: dict[str, Any], args: Sequence[Any]) -> Any:
    """The Op of a primitive with jaxprs among its parameters, the arrays that they close over, and the parameters."""
    arrays = jaxprs.constants_of(params)
    if any(map(jaxprs.asks_host, jaxprs._inner(params))):
        return Once((without_derivative(_own_op(primitive, params), len(arrays)), arrays.values(), params))
    if arrays:
        if primitive.name in jaxprs.JIT:
            given = jaxprs.with_inputs(params, arrays)
            recognised = not jaxprs.is_own(given) and not jaxprs.constants(given["jaxpr"])
            if recognised and jaxprs.is_plain_jit(params) and not any(map(_is_placed, arrays.values())):
                return Once((_jaxpr_op(given["jaxpr"], params["name"]), arrays.values(), params))
            op = (_bind_op if recognised else _own_op)(primitive, given)
            # Forward it is the call as it came: JAX moves a constant to where the program runs, but not an input.
            call = functools.partial(_call_without, len(arrays), functools.partial(primitive.bind, **params))
            op = Op(op.name, op.fn, call, None if op.key is op else op.key, eager=op.eager)
            return Once((op, arrays.values(), params))
        lifted = jaxprs.lift(primitive, params, args, arrays)
        return Once((_jaxpr_op(lifted, params.get("name", primitive.name)), arrays.values(), params))
    same = {name: jaxprs.intern(value) for name, value in params.items()}
    if jaxprs.is_own(same):
        return Once((_own_op(primitive, params), (), params))
    op = _bind_op(primitive, same)
    return Once((op, (), params)) if op.eager else (op, (), params)


def _is_placed(x: Any) -> bool:
    """Whether the user has said on which device an array is."""
    return isinstance(x, jax.Array) and not isinstance(x, Tracer) and x.committed


def _moves(devices: Sequence[Any], args: Sequence[Any]) -> bool:
    """Whether a ``device_put`` of `args` moves any of them to other devices than it is on, which a compiled program cannot."""
    for device, x in zip(devices, args, strict=True):
        place = getattr(device, "sharding", device)
        if isinstance(place, jax.Device):
            place = jax.sharding.SingleDeviceSharding(place)
        here = getattr(x, "sharding", None)
        if isinstance(place, jax.sharding.Sharding) and here is not None and place.device_set != here.device_set:
            return True
    return False


def _call_without(count: int, fn: Callable, *inputs: Any) -> Any:
    return fn(*inputs[count:])


def _call_on_arrays(fn: Callable, *inputs: Any) -> Any:
    return fn(*[jnp.asarray(x) if isinstance(x, np.ndarray) else x for x in inputs])


_bind_ops = Cache(CACHED_OPS, compare_ops)


def _bind_op(primitive: Any, params: dict[str, Any]) -> Op:
    try:
        key = primitive, *[(name, jaxprs.interned_key(value)) for name, value in params.items()]
    except UncacheableError:
        return _own_op(primitive, params)
    return _bind_ops.get(key, _make_bind_op, primitive, params, key)


def _own_op(primitive: Any, params: dict[str, Any]) -> Op:
    # It will not be recognised when it comes again: to compile or keep anything for it would be in vain.
    fn = functools.partial(primitive.bind, **{name: snapshot(value) for name, value in params.items()})
    return Op(params.get("name") or primitive.name, fn, fn, eager=True)


def _make_bind_op(primitive: Any, params: dict[str, Any], key: Any) -> Op:
    params = {name: snapshot(value) for name, value in params.items()}
    fn = functools.partial(primitive.bind, **params)
    # Binding a jitted function anew costs 50 microseconds; one compiled from here has JAX's fast path, but would not
    # keep what the user's jit says of donation and shardings.
    call = None if primitive.name in jaxprs.JIT and jaxprs.is_plain_jit(params) else fn
    eager = not jaxprs.primitive_compiles(primitive, params)
    return Op(params.get("name") or primitive.name, fn, call, key, eager=eager, bound=(primitive, params))


_jaxpr_ops = Cache(CACHED_OPS, compare_ops)


class Staged(NamedTuple):
    """A call that was traced into a jaxpr, of which `op` makes the Op under which it is recognised.

    The first `constants` of its inputs are arrays that it closes over; a custom rule has no derivative with respect to
    those at the positions `closed_over`. `again` is the call on its arguments alone, made by Python.
    """

    jaxpr: Any
    name: str
    closed_over: tuple[int, ...] = ()
    constants: int = 0
    again: Callable | None = None

    def op(self) -> Op:
        same = jaxprs.intern(self.jaxpr)
        if not jaxprs.is_own({"jaxpr": same}) and not jaxprs.constants(same) and jaxprs.compiles(same):
            return _jaxpr_ops.get((same, *self[1:3]), _make_jaxpr_op, same, *self[1:3])
        closed = snapshot(same)
        call = functools.partial(eval_jaxpr, closed.jaxpr, jaxprs._consts(closed))
        if self.again is not None:  # a rule that cannot be traced runs on values
            fn = functools.partial(_call_without, self.constants, self.again)
        else:  # a rule may get a constant of its function, and expects an array of JAX's
            fn = functools.partial(_call_on_arrays, jaxpr_as_fun(closed))
        return Op(self.name, jaxprs.without_closure(fn, self.name, self.closed_over), call, eager=True)


def _jaxpr_op(closed: Any, name: str) -> Op:
    return Staged(closed, name).op()


def _make_jaxpr_op(closed: Any, name: str, closed_over: tuple[int, ...]) -> Op:
    fn = jaxprs.without_closure(jaxpr_as_fun(closed), name, closed_over)
    return Op(name, fn, key=(closed, name, closed_over))
