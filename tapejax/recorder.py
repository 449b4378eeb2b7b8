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
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend import core

from . import jaxprs

# Operations remembered by `_op` and `_primitive_op`: each holds a compiled function or a jaxpr, never an array.
CACHED_OPS = 4096


class Op:
    """What an entry does: a pure function of flat arrays, and how to run it now.

    `fn(*arrays)` returns an array or a pytree of arrays and may be traced; `call` does the same at full speed.
    Two Ops are equal when their `key` is, so that programs made of them can be compared and cached. An `eager` one runs
    Python that looks at values: its derivative is taken on the recorded arrays, never compiled.
    """

    __slots__ = ("name", "fn", "call", "key", "eager", "staged", "_hash", "__weakref__")

    def __init__(self, name, fn, call=None, key=None, *, eager=False, staged=None):
        self.name: str = name
        self.eager: bool = eager
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


class Recording:
    """What one tape has seen: its entries in order, what it watches since when, and the variables read."""

    __slots__ = ("entries", "watched", "variables", "watch_accessed")

    def __init__(self, watch_accessed: bool = True):
        self.watch_accessed = watch_accessed
        self.entries: list[Entry] = []
        # id of a watched array -> (the array, kept alive; how many entries there were when the watch began)
        self.watched: dict[int, tuple[Any, int]] = {}
        # id of a watched variable -> (the variable, the arrays that it held when it was read)
        self.variables: dict[int, tuple[Any, dict[int, Any]]] = {}

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
        flat = (outputs,) if type(outputs) not in _SEQUENCES else tuple(jax.tree.leaves(outputs))
        entry = Entry(op, tuple(inputs), flat)
        for recording in recordings:
            recording.entries.append(entry)
        return outputs

    def _run(self, op: Op, inputs: Sequence[Any]) -> Any:
        with core.set_current_trace(self.outer):
            return self.note(op, inputs, op.call(*inputs))

    def process_primitive(self, primitive, tracers, params, /):
        return self._run(*_primitive_op(primitive, params, tracers))

    # The hooks below get wrapped functions that are new at every call and can be called once only.

    def process_call(self, primitive, f, tracers, params, /):
        return self._run_staged(primitive, (f,), tracers, params)

    def process_custom_jvp_call(self, primitive, fun, jvp, tracers, /, **params):
        return self._run_staged(primitive, (fun, jvp), tracers, params)

    def process_custom_vjp_call(self, primitive, fun, fwd, bwd, tracers, /, **params):
        return self._run_staged(primitive, (fun, fwd, bwd), tracers, params)

    def process_shard_map(self, primitive, fun, tracers, /, **params):
        return self._run_staged(primitive, (fun,), tracers, params)

    def _run_staged(self, primitive, subfuns, tracers, params):
        key = jaxprs.stable_key(subfuns, tracers, params)
        if key is not None and (known := _staged.get(key)) is not None:
            op, stores, repack = known
            subfuns[0].populate_stores(stores)
            return repack(self._run(op, tracers))
        name = jaxprs.function_name(subfuns[0]) or primitive.name
        with core.set_current_trace(self.outer):
            try:
                staged, repack = jaxprs.stage(primitive, subfuns, tracers, params)
            except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError):
                # Python in there looks at values: run it on the values, now and again in the backward pass.
                fn = jaxprs.rebind(primitive, subfuns, params)
                return self._run(Op(name, fn, fn, eager=True), tracers)
            arrays = jaxprs.constants(staged)
            lifted = jaxprs.lift_jaxpr(staged, arrays) if arrays else staged
            # A jaxpr that may not come back is evaluated operation by operation, on what JAX has compiled already.
            call = functools.partial(jax.core.eval_jaxpr, lifted.jaxpr, ()) if key is None else None
            op = Op(name, core.jaxpr_as_fun(lifted), call, staged=lifted)
        if key is not None and not arrays:
            if len(_staged) >= CACHED_OPS:
                _staged.clear()
            _staged[key] = op, subfuns[0].stores, repack
        return repack(self._run(op, (*arrays, *tracers)))

    def stage_value(self, val):
        with core.set_current_trace(self.outer):
            return self.outer.stage_value(val)

    def cur_qdd(self, x):  # JAX 0.10 only
        with core.set_current_trace(self.outer):
            return self.outer.cur_qdd(x)


_SEQUENCES = (tuple, list)
_copy = jax.jit(jnp.copy)


def _distinct(outputs: Any, inputs: Sequence[Any]) -> Any:
    # JAX forwards an input that comes out unchanged (`stop_gradient`, a reshape to the same shape) as the same object;
    # a value's identity is its history, so the output needs one of its own.
    if type(outputs) not in _SEQUENCES:
        return _copy(outputs) if any(outputs is x for x in inputs) else outputs
    seen = {id(x) for x in inputs}
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


def current_trace() -> Any:
    with core.take_current_trace() as trace:
        return trace


def _is_eager(trace: Any) -> bool:
    return type(trace).__name__ == "EvalTrace"


def start(recording: Recording) -> RecorderTrace:
    """Makes `recording` active under the current trace; returns what `stop` wants."""
    global _eager
    trace = current_trace()
    if type(trace) is not RecorderTrace:
        if not _is_eager(trace):
            trace = RecorderTrace(trace, _Recordings())
        else:
            if _eager is None or _eager.outer is not trace:
                _eager = RecorderTrace(trace, _eager_recordings)
            trace = _eager
        core.set_current_trace(trace).__enter__()
    trace.recordings.append(recording)
    return trace


def stop(recording: Recording, trace: RecorderTrace) -> None:
    """Takes `recording` off the active ones; the last one out restores JAX's trace."""
    active = trace.recordings
    active[:] = [r for r in active if r is not recording]
    if not active and current_trace() is trace:
        core.set_current_trace(trace.outer).__enter__()


@contextlib.contextmanager
def outside() -> Iterator[None]:
    """Runs the body under the outer trace: values are the same, nothing is noted."""
    trace = current_trace()
    if type(trace) is RecorderTrace:
        with core.set_current_trace(trace.outer):
            yield
    else:
        yield


def active_recordings() -> Sequence[Recording]:
    trace = current_trace()
    return trace.recordings if type(trace) is RecorderTrace else ()


def eager() -> bool:
    """Whether values are known here: no JAX transformation is under way, but for the tapes."""
    trace = current_trace()
    return _is_eager(trace.outer if type(trace) is RecorderTrace else trace)


def staging() -> bool:
    """Whether the current (outer) trace stages out a program, as under ``jax.jit``: values are not known yet."""
    trace = current_trace()
    if type(trace) is RecorderTrace:
        trace = trace.outer
    return not _is_eager(trace) and _stages(trace)


def _stages(trace: Any) -> bool:
    # JVP and batch traces sit on a parent; a trace with none that is not the eager one builds a jaxpr.
    while (parent := getattr(trace, "parent_trace", None)) is not None and "DynamicJaxpr" not in type(trace).__name__:
        trace = parent
    return "DynamicJaxpr" in type(trace).__name__


def read(variable: Any) -> Any:
    """Notes that `variable` is read, on every tape that records here, and returns the array that it holds.

    Raises:
      RuntimeError: under a plain ``jax.jit``, which would bake the variable's present value into the program.
    """
    array = variable._array
    trace = current_trace()
    if type(trace) is RecorderTrace:
        for recording in trace.recordings:
            recording.read(variable, array)
        trace = trace.outer
    if not _is_eager(trace) and not isinstance(array, jax.core.Tracer) and isinstance(array, jax.Array) and _stages(trace):
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
        return op.call(*inputs)
    return trace._run(op, inputs)


zero_gradients: weakref.WeakSet = weakref.WeakSet()


def zero_gradient(fn: Callable) -> Callable:
    """Marks `fn` as connected though its derivative is zero: its gradient is zeros, not ``None``."""
    zero_gradients.add(fn)
    return fn


def _primitive_op(primitive: Any, params: dict[str, Any], args: Sequence[Any]) -> tuple[Op, Sequence[Any]]:
    """The Op for a primitive with its parameters, and its inputs: `args` and what its jaxprs close over."""
    if not jaxprs.among(params):
        return _bind_op(primitive, params), args
    if arrays := jaxprs.constants_of(params):
        if primitive.name in jaxprs.JIT:
            lifted = jaxprs.lift_jaxpr(params["jaxpr"], arrays)
        else:
            lifted = jaxprs.lift(primitive, params, args, arrays)
        return _jaxpr_op(lifted, params.get("name", primitive.name)), (*arrays, *args)
    return _bind_op(primitive, {name: jaxprs.intern(value) for name, value in params.items()}), args


def _bind_op(primitive: Any, params: dict[str, Any]) -> Op:
    try:
        return _cached_bind_op(primitive, tuple(params.items()))
    except TypeError:  # a parameter that cannot be hashed: an Op equal to itself only
        fn = functools.partial(primitive.bind, **params)
        return Op(primitive.name, fn, fn)


@functools.lru_cache(CACHED_OPS)
def _cached_bind_op(primitive: Any, params: tuple[tuple[str, Any], ...]) -> Op:
    fn = functools.partial(primitive.bind, **dict(params))
    return Op(dict(params).get("name") or primitive.name, fn, fn, (primitive, params))


def _jaxpr_op(closed: Any, name: str) -> Op:
    return _cached_jaxpr_op(jaxprs.intern(closed), name)


@functools.lru_cache(CACHED_OPS)
def _cached_jaxpr_op(closed: Any, name: str) -> Op:
    fn = core.jaxpr_as_fun(closed)
    return Op(name, fn, key=(closed, name))
