"""Which recordings are active: here, in this thread, and under which of JAX's traces.

While a tape is active the current trace of JAX is a `Recorder`. The operation is run under its `outer` trace, so that values stay
what they would have been, and then noted.
"""

from __future__ import annotations

import functools
import itertools
import sys
import threading
import types
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..jaxprs import interning
from ..jaxprs.canonical import snapshot
from ..jaxprs.fence import (
    ConcreteArray,
    EvalTrace,
    StagingTrace,
    Trace,
    adapt,
    current_trace,
    hide,
    set_current_trace,
    set_trace,
    set_trace_key,
    set_trace_reference,
    trace_reference,
    under,
)
from ..jaxprs.types import Function, TraceLike, Value, Values
from . import runner
from .recording import Entry, Kept, Recording, new_tuple
from .where import caller


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.active: list[Recording] = []


class Recorder(Trace):  # type: ignore[misc]  # JAX has no types for it
    """A trace that notes operations on the active recordings; `tape.trace` has the one that JAX hands operations to."""

    def __init__(self, outer: Any, recordings: Any):
        super().__init__()
        self.requires_low = False  # the outer trace lowers
        self.outer = self.parent_trace = outer  # the latter is what JAX, asked whether there is a jit around, follows
        self._recordings: _OfThread | types.SimpleNamespace = recordings

    @property
    def recordings(self) -> list[Recording]:
        found: list[Recording] = self._recordings.active
        return found

    def note(self, op: Any, inputs: Values, outputs: Any, kept: Kept | None = None) -> Any:
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
            outputs = distinct(outputs, inputs)
            flat = (outputs,) if hasattr(outputs, "dtype") else tuple(jax.tree.leaves(outputs))
        for x in inputs:
            if type(x) is not ConcreteArray and isinstance(x, np.ndarray):  # it may change before a derivative is taken
                inputs = [*map(snapshot, inputs)]
                break
        entry = new_tuple(Entry, (op, tuple(inputs), flat, caller(4), kept))
        for recording in recordings:
            recording.entries.append(entry)
        return outputs


# The subclass whose traces JAX is given.
kind: type[Recorder] = Recorder


@functools.cache
def _copier() -> Function:
    return runner.current.compiled(jnp.copy)


def copied(x: Value) -> Any:
    """A copy of the array `x`: another value to a tape."""
    return _copier()(x)


def distinct(outputs: Any, inputs: Values) -> Any:
    """`outputs`, each an array of its own.

    JAX forwards an input that comes out unchanged (`stop_gradient`, a reshape to the same shape) as the same object. A value's
    identity is its history, so the output needs one of its own.
    """
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


# ---- beginning and ending -------------------------------------------------------------------------------------------

# One trace for the process over the eager trace: JAX's jit cache is keyed by the trace, and a new one for every tape
# would fill it. The recordings that it notes on belong to the thread.
_eager: Recorder | None = None
_eager_recordings = _OfThread()


class Activation:
    """What makes `recording` active under `trace`, until `stop`.

    An interrupt may come when a block is left, before Python calls anything of ours. So it also ends when there
    is no reference to it any more, which may be late, or on another thread: all that `stop` does is right at any time.
    """

    _active: Any = ()

    def __init__(self, recording: Recording, trace: Recorder):
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
    interning.next_age()
    trace = current_trace()
    if type(trace) is not kind:
        hide(kind)
        adapt(kind, lambda: bool(_eager_recordings.active) or bool(active_recordings()))
        if type(trace) is not EvalTrace:
            trace = kind(trace, types.SimpleNamespace(active=[]))
        else:
            if _eager is None or _eager.outer is not trace:
                _eager = kind(trace, _eager_recordings)
            trace = _eager
    return Activation(recording, trace).start()


def also(recording: Recording, fn: Function, /, *args: Any, **kwargs: Any) -> Any:
    """``fn(*args, **kwargs)`` with one more recording active."""
    activation = start(recording)
    try:
        return fn(*args, **kwargs)
    finally:
        activation.stop()


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


def on_trial(fn: Function, /, *args: Any, **kwargs: Any) -> Any:
    """``fn(*args, **kwargs)``, whose operations JAX would compile one by one, as a tape runs them."""
    if type(current_trace()) is not EvalTrace or not runner.current.tries():
        return fn(*args, **kwargs)
    return also(Recording(), fn, *args, **kwargs)


def by_operations(fn: Function, /, *args: Any) -> Any:
    """``fn(*args)``, of which nothing is recorded, and each operation is recognised and run as on a tape."""
    trace = current_trace()
    return under(trace, alone, (), fn, *args) if type(trace) is EvalTrace and runner.current.tries() else fn(*args)


def unwind() -> None:
    """Restores JAX's trace where the last recording was stopped inside a program that was traced meanwhile."""
    trace = current_trace()
    if type(trace) is kind and not trace.recordings:
        try:
            set_trace_reference(trace.outer)
        finally:
            set_trace_key(trace.outer._weakref)


# ---- in a program that is being traced ------------------------------------------------------------------------------


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


# ---- what is asked --------------------------------------------------------------------------------------------------


def active_recordings() -> list[Recording]:
    """The recordings that an operation run here reaches: also from inside `jax.vmap` and `jax.grad`, through their traces."""
    return list(itertools.chain.from_iterable(active_lists()))


def active_lists() -> Iterator[list[Recording]]:
    """The `active_recordings` of each trace that records, from the innermost: lists that can be changed."""
    for trace in trace_stack(current_trace()):
        if type(trace) is kind:
            yield trace.recordings


def record_escape(what: str, *arrays: Any, into: Any = None) -> None:
    """Notes, for `explain`, that values escape from the tapes: to Python, or as a variable's state (the array `into`)."""
    trace = current_trace()
    if type(trace) is kind:
        for recording in trace.recordings:
            recording.mark(what, tuple([None if x is None else weakref.ref(x) for x in (into, *arrays)]))


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
    return trace.outer if type(trace) is kind else trace


def outside() -> set_current_trace:
    """A context whose body runs under the outer trace: values are the same, nothing is noted."""
    return set_current_trace(outer_trace())


def eager() -> bool:
    """Whether values are known here: no JAX transformation is under way, but for the tapes."""
    return type(outer_trace()) is EvalTrace


def staging() -> bool:
    """Whether the current (outer) trace stages out a program, as under ``jax.jit``: values are not known yet."""
    return stages(current_trace())


def stages(trace: TraceLike) -> bool:
    """Whether `trace`, or one below it, builds a jaxpr and runs nothing."""
    return any(isinstance(below, StagingTrace) for below in trace_stack(trace))
