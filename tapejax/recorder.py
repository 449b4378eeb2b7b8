"""Two doors onto one recording. The only module that knows ``jax.core``.

JAX's door: while a tape is active the current trace of JAX is a `RecorderTrace`. Whatever JAX executes passes through it:
the operation is handed on to the trace that was current before, so values stay what they would have been, and is then
noted. The op door: `apply` runs a function on JAX's compiled fast path and notes the same kind of entry.

What is noted is data (`Entry`), and a value is known by the identity of its ``jax.Array``, which the entry keeps alive.
Everything that is only semi-public in JAX is in this file; it runs unchanged on JAX 0.10 and 0.12.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import sys
import sysconfig
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from . import jaxprs
from .jaxcore import current_trace, hide, jaxpr_as_fun, set_current_trace, set_trace

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
    first `results` of its inputs are what its outputs are copies of; no gradient goes back to those.
    """

    __slots__ = ("name", "fn", "call", "key", "eager", "pull", "results", "staged", "_hash", "__weakref__")

    def __init__(self, name, fn, call=None, key=None, *, eager=False, pull=None, results=0, staged=None):
        self.name: str = name
        self.eager: bool = eager
        self.pull: Callable[[Sequence[Any]], Sequence[Any]] | None = pull
        self.results: int = results
        self.staged: Any = staged
        self.fn: Callable = fn
        self.call: Callable = call or jax.jit(fn)
        self.key: Any = self if key is None else key
        self._hash = object.__hash__(self) if key is None else hash(key)

    def settled(self) -> Op:
        """The Op under which a freshly staged one is known from program to program.

        Telling custom rules apart traces them, which JAX allows only once the call that was recorded has returned.
        """
        if self.staged is not None:
            return _jaxpr_op(self.staged, self.name)
        return self

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
    def line(self) -> Any:
        """The line of the user's code that ran it: a `listing.Line`, or None."""
        from . import listing  # looked at seldom, recorded often

        return listing.line_of(self.where)

    def __repr__(self) -> str:
        from . import listing

        return listing.describe(self)


class Mark(NamedTuple):
    """Something that happened to the tape, not to a value: `kind`, how many entries there were before, and the line."""

    kind: str
    position: int
    where: Any
    about: Any = None


class Recording:
    """What one tape has seen: its entries in order, what it watches since when, and the variables read."""

    __slots__ = ("entries", "watched", "variables", "watch_accessed", "marks", "forgotten")

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

    def mark(self, kind: str, about: Any = None) -> None:
        """Notes something that happens to the tape, for `explain`."""
        self.marks.append(Mark(kind, len(self.entries), caller(), about))

    def forget(self, former: Recording | None) -> None:
        """Takes the place of `former`, of which it knows only which values that are still alive were in it."""
        if former is None:
            return
        seen = [x for entry in former.entries for x in entry.outputs] + [x for x, _ in former.watched.values()]
        self.forgotten = {id(x): weakref.ref(x) for x in seen if not isinstance(x, jax.core.Tracer)}
        self.forgotten |= {key: ref for key, ref in dict(former.forgotten).items() if ref() is not None}

    def continuation(self) -> Recording:
        """A recording that has seen what this one has, and goes on by itself."""
        found = Recording(self.watch_accessed)
        found.entries, found.watched, found.marks = list(self.entries), dict(self.watched), list(self.marks)
        found.variables = {key: (variable, dict(arrays)) for key, (variable, arrays) in self.variables.items()}
        found.forgotten = self.forgotten
        return found

    def watch(self, array: Any) -> None:
        self.watched.setdefault(id(array), (array, len(self.entries)))

    def watch_variable(self, variable: Any, array: Any) -> None:
        """Watches what `variable` holds now, and from here on whatever it holds when it is read."""
        arrays = self.variables.setdefault(id(variable), (variable, {}))[1]
        if id(array) not in arrays:
            arrays[id(array)] = array
            self.watch(array)

    def read(self, variable: Any, array: Any) -> None:
        if (self.watch_accessed and variable.trainable) or id(variable) in self.variables:
            self.watch_variable(variable, array)


# ---- where in the user's code ---------------------------------------------------------------------------------------

_PATHS = sysconfig.get_paths()
# Code that serves the user's: no line of it is where an operation was asked for.
_INSTALLED = tuple(_PATHS[name] + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_OWN = (os.path.dirname(__file__) + os.sep, os.path.dirname(jax.__file__) + os.sep)
_serves: dict[str, bool] = {}


def caller(skip: int = 2) -> Any:
    """The user's code that is running, and the instruction in it: ``(code, f_lasti)``, from which `listing` tells the line.

    The innermost `skip` frames are known to be ours.

    Frames are walked, not kept: they would keep all their variables alive. Where all code is installed code, None.
    """
    frame: Any = sys._getframe(skip)
    while frame is not None:
        code = frame.f_code
        known = _serves.get(code.co_filename)
        if not (serves(code.co_filename) if known is None else known):
            return code, frame.f_lasti
        frame = frame.f_back
    return None


def serves(file: str) -> bool:
    """Whether `file` is code that serves the user's, not his own."""
    if (known := _serves.get(file)) is None:
        known = _serves[file] = file.startswith((*_INSTALLED, *_OWN, "<frozen "))
    return known


_staged: dict[Any, Any] = {}


class _EagerRecordings(threading.local):
    def __init__(self) -> None:
        self.active: list[Recording] = []


class RecorderTrace(jax.core.Trace):
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
        entry = Entry(op, tuple(inputs), flat, caller(3))
        for recording in recordings:
            recording.entries.append(entry)
        return outputs

    def run(self, op: Op, inputs: Sequence[Any]) -> Any:
        """Runs `op` under the outer trace and notes it."""
        before = current_trace()
        set_trace(self.outer)
        try:
            return self.note(op, inputs, op.call(*inputs))
        finally:
            set_trace(before)

    def process_primitive(self, primitive, tracers, params, /):
        if primitive.name in _REF_OPERATIONS:
            return self._run_on_ref(primitive, tracers, params)
        outputs = self.run(*_primitive_op(primitive, params, tracers))
        return _handed_on(outputs, tracers, params) if primitive.name in _CALLS else outputs

    def _run_on_ref(self, primitive, tracers, params):
        # A jax.Ref changes in place: what it held when is not on the tape, only that gradient would have to pass through it.
        with set_current_trace(self.outer):
            result = primitive.bind(*tracers, **params)
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
        with set_current_trace(self.outer):
            outputs = primitive.bind(*tracers, subfuns=subfuns, **params)
        fn = jaxprs.rebind(primitive, subfuns, params)
        name = jaxprs.function_name(subfuns[0]) or primitive.name
        return self.note(Op(name, fn, fn, eager=True), tracers, outputs)

    def _run_staged(self, primitive, subfuns, tracers, params):
        key = jaxprs.stable_key(subfuns, tracers, params)
        if key is not None and (known := _staged.get(key)) is not None:
            op, stores, repack = known
            subfuns[0].populate_stores(stores)
            return repack(self.run(op, tracers))
        name = jaxprs.function_name(subfuns[0]) or primitive.name
        with set_current_trace(self.outer):
            try:
                staged, repack = jaxprs.stage(primitive, subfuns, tracers, params)
            except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError):
                # Python in there looks at values: run it on the values, now and again in the backward pass.
                fn = jaxprs.rebind(primitive, subfuns, params)
                return self.run(Op(name, fn, fn, eager=True), tracers)
            arrays = jaxprs.constants(staged)
            lifted = jaxprs.lift_jaxpr(staged, arrays) if arrays else staged
            # A jaxpr that may not come back is evaluated operation by operation, on what JAX has compiled already.
            call = functools.partial(jax.core.eval_jaxpr, lifted.jaxpr, ()) if key is None else None
            op = Op(name, jaxpr_as_fun(lifted), call, staged=lifted)
        if key is not None and not arrays:
            if len(_staged) >= CACHED_OPS:
                _staged.clear()
            _staged[key] = op, subfuns[0].stores, repack
        return repack(self.run(op, (*arrays, *tracers)))

    def stage_value(self, val):
        with set_current_trace(self.outer):
            return self.outer.stage_value(val)

    def cur_qdd(self, x):  # JAX 0.10 only
        with set_current_trace(self.outer):
            return self.outer.cur_qdd(x)


_DIFFERENTIATING = frozenset(("JVPTrace", "LinearizeTrace"))
_REF_OPERATIONS = frozenset(("new_ref", "ref", "get", "swap", "addupdate", "freeze"))


def is_ref(x: Any) -> bool:
    """Whether `x` is a ``jax.Ref``."""
    return type(x).__name__ == "Ref"


def _refuse_ref(cotangents: Sequence[Any]) -> Sequence[Any]:
    raise LookupError(
        "gradient registry has no entry for: an operation on a jax.Ref. A Ref changes in place, which a tape cannot follow "
        "outside jax.jit: use it inside a jitted function, or a Variable and its assign()."
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


_CALLS = frozenset((*jaxprs.JIT, "checkpoint", "remat", "remat2"))


def _handed_on(outputs: Any, inputs: Sequence[Any], params: dict[str, Any]) -> Any:
    """The outputs of a call with, for those that are inputs handed on beside other results, these inputs themselves.

    So does JAX outside a tape. A model whose state goes through ``nnx.jit`` has the same parameters afterwards as before.
    """
    if type(outputs) is not list or len(outputs) < 2 or any(params.get("donated_invars", ())):
        return outputs
    jaxpr = jaxprs.open_jaxpr(params["jaxpr"])
    given = dict(zip(jaxpr.invars, inputs, strict=True))
    return [
        x if isinstance(v, jaxprs.Literal) else given.get(v, x) for v, x in zip(jaxpr.outvars, outputs, strict=True)
    ]


# One trace for the process over the eager trace: JAX's jit cache is keyed by the trace, and a new one for every tape
# would fill it. The recordings that it notes on belong to the thread.
_eager: RecorderTrace | None = None
_eager_recordings = _EagerRecordings()


class _Recordings:
    def __init__(self) -> None:
        self.active: list[Recording] = []


def _is_eager(trace: Any) -> bool:
    return type(trace).__name__ == "EvalTrace"


def start(recording: Recording) -> RecorderTrace:
    """Makes `recording` active under the current trace; returns what `stop` wants."""
    global _eager
    trace = current_trace()
    if type(trace) is not RecorderTrace:
        hide(RecorderTrace)
        if not _is_eager(trace):
            trace = RecorderTrace(trace, _Recordings())
        else:
            if _eager is None or _eager.outer is not trace:
                _eager = RecorderTrace(trace, _eager_recordings)
            trace = _eager
        set_trace(trace)
    trace.recordings.append(recording)
    return trace


def stop(recording: Recording, trace: RecorderTrace) -> None:
    """Takes `recording` off the active ones; the last one out restores JAX's trace."""
    active = trace.recordings
    active[:] = [r for r in active if r is not recording]
    if not active and current_trace() is trace:
        set_trace(trace.outer)


@contextlib.contextmanager
def outside() -> Iterator[None]:
    """Runs the body under the outer trace: values are the same, nothing is noted."""
    trace = current_trace()
    if type(trace) is RecorderTrace:
        with set_current_trace(trace.outer):
            yield
    else:
        yield


@contextlib.contextmanager
def also(recording: Recording) -> Iterator[None]:
    """Runs the body with one more recording active."""
    trace = start(recording)
    try:
        yield
    finally:
        stop(recording, trace)


@contextlib.contextmanager
def alone(*recordings: Recording) -> Iterator[None]:
    """Runs the body with no other recordings active than these."""
    with also(Recording()):
        active = current_trace().recordings
        before = list(active)
        active[:] = recordings
        try:
            yield
        finally:
            active[:] = before


class _Continuations(threading.local):
    def __init__(self) -> None:
        self.of: dict[int, tuple[Recording, Recording]] = {}  # by id: a recording, kept alive, and its continuation


_continuations = _Continuations()


@contextlib.contextmanager
def continuing(recordings: Sequence[Recording]) -> Iterator[None]:
    """Runs the body, which is traced into a program, with continuations of the recordings around the trace.

    A tape may be asked in a `function` for the gradient of what is computed there. What is noted are tracers: the tape
    itself does not see them.
    """
    before = _continuations.of
    added = {id(recording): (recording, recording.continuation()) for recording in recordings}
    _continuations.of = before | added
    try:
        with alone(*[continuation for _, continuation in added.values()]) if added else contextlib.nullcontext():
            yield
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
        set_trace(trace.outer)


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


def held(variable: Any) -> Any:
    """The array that `variable` holds; while a `function` is traced, what stands for it there."""
    capture = capturing.capture
    if capture is not None:
        return capture.adopt(variable)
    array = variable._array
    if isinstance(array, jax.core.Tracer) and eager():
        from .staging import tracing

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
    if (
        not _is_eager(trace)
        and not isinstance(array, jax.core.Tracer)
        and isinstance(array, jax.Array)
        and _stages(trace)
    ):
        raise RuntimeError(
            f"Variable {variable.name!r} was read while JAX traces a function (jax.jit, lax.scan ...): its present value "
            "would be baked into the compiled program and later assign()s would go unnoticed. Decorate the function with "
            "tapejax.function, which threads Variables through, or pass the value in as an argument."
        )
    return array


# ---- Ops ----------------------------------------------------------------------------------------------------------


@functools.lru_cache(CACHED_OPS)
def _op(fn: Callable, static: tuple[tuple[str, Any], ...]) -> Op:
    bound = functools.partial(fn, **dict(static)) if static else fn
    return Op(getattr(fn, "__name__", repr(fn)).strip("_"), bound, jax.jit(bound), (fn, static))


def apply(fn: Callable, *arrays: Any, **static: Any) -> Any:
    """The op door: runs ``fn(*arrays, **static)`` as one compiled operation and notes it as one entry.

    `fn` must be a stable function (compiled once per `fn` and `static`); `static` values must be hashable.
    """
    return run(_op(fn, tuple(static.items())), arrays)


def run(op: Op, inputs: Sequence[Any]) -> Any:
    """Runs `op` under the outer trace and notes it on the tapes that record here."""
    trace = current_trace()
    if type(trace) is not RecorderTrace:
        return op.call(*inputs) if _is_eager(trace) else _call(op, inputs)
    set_trace(trace.outer)
    try:
        return trace.note(op, inputs, op.call(*inputs) if _is_eager(trace.outer) else _call(op, inputs))
    finally:
        set_trace(trace)


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
    return not isinstance(x, jax.core.Tracer) and (isinstance(x, int) or _may_be_size(x))


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
    jaxpr = params.get("jaxpr")
    if jaxpr is not None:
        known = _known_jaxprs.get(id(jaxpr))
        if known is not None and known[1] is jaxpr and known[0] == (primitive, *params.values()):
            return known[2], args
    elif not jaxprs.among(params):
        return _bind_op(primitive, params), args
    if any(map(jaxprs.asks_host, jaxprs._inner(params))):
        arrays = jaxprs.constants_of(params)
        return without_derivative(_own_op(primitive, params), len(arrays)), (*arrays, *args)
    if arrays := jaxprs.constants_of(params):
        if primitive.name in jaxprs.JIT:
            lifted = jaxprs.lift_jaxpr(params["jaxpr"], arrays)
        else:
            lifted = jaxprs.lift(primitive, params, args, arrays)
        return _jaxpr_op(lifted, params.get("name", primitive.name)), (*arrays, *args)
    same = {name: jaxprs.intern(value) for name, value in params.items()}
    if jaxprs.is_own(same):
        return _own_op(primitive, params), args
    op = _bind_op(primitive, same)
    if jaxpr is not None:
        if len(_known_jaxprs) >= CACHED_OPS:
            _known_jaxprs.clear()
        _known_jaxprs[id(jaxpr)] = (primitive, *params.values()), jaxpr, op
    return op, args


# By the identity of a jaxpr, which is kept alive here: `jnp` functions bring the same one every time.
_known_jaxprs: dict[int, tuple[tuple, Any, Op]] = {}


def _bind_op(primitive: Any, params: dict[str, Any]) -> Op:
    try:
        return _cached_bind_op(primitive, tuple(params.items()))
    except TypeError:  # a parameter that cannot be hashed
        return _own_op(primitive, params)


def _own_op(primitive: Any, params: dict[str, Any]) -> Op:
    # It will not be recognised when it comes again: to compile or keep anything for it would be in vain.
    fn = functools.partial(primitive.bind, **params)
    return Op(params.get("name") or primitive.name, fn, fn, eager=True)


@functools.lru_cache(CACHED_OPS)
def _cached_bind_op(primitive: Any, params: tuple[tuple[str, Any], ...]) -> Op:
    bound = dict(params)
    fn = functools.partial(primitive.bind, **bound)
    # Binding a jitted function anew costs 50 microseconds; one compiled from here has JAX's fast path, but would not
    # keep what the user's jit says of donation and shardings.
    call = None if primitive.name in jaxprs.JIT and jaxprs.is_plain_jit(bound) else fn
    return Op(bound.get("name") or primitive.name, fn, call, (primitive, params))


def _jaxpr_op(closed: Any, name: str) -> Op:
    same = jaxprs.intern(closed)
    if jaxprs.is_own({"jaxpr": same}):
        return Op(name, jaxpr_as_fun(same), functools.partial(jax.core.eval_jaxpr, same.jaxpr, ()), eager=True)
    return _cached_jaxpr_op(same, name)


@functools.lru_cache(CACHED_OPS)
def _cached_jaxpr_op(closed: Any, name: str) -> Op:
    fn = jaxpr_as_fun(closed)
    return Op(name, fn, key=(closed, name))
