"""The active recordings of this thread, and JAX's traces under which they are active.

While a tape is active, JAX's current trace is a `Recorder`. It runs each operation under its `outer` trace, so that values are
the same as without a tape, and then appends an entry to the active recordings.
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from ..jaxprs import fence, interning
from ..jaxprs.canonical import snapshot
from ..jaxprs.fence import ConcreteArray
from ..jaxprs.threads import Context
from ..jaxprs.types import Function, TraceLike, Value, Values
from ..places import call_stack, user_frame
from . import runner
from .recording import Entry, Recording, Residuals, new_tuple


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.active: list[Recording] = []
        self.block = 0  # the frame in which the first of them became active, by `id`


class Recorder(fence.Trace):  # type: ignore[misc]  # JAX has no types for it
    """A trace that appends entries to the active recordings. `RecorderTrace` in `trace.py` adds the methods that JAX calls."""

    def __init__(self, outer: Any, recordings: _OfThread):
        super().__init__()
        self.requires_low = False  # the outer trace lowers
        self.outer = self.parent_trace = outer  # JAX follows `parent_trace` to see whether there is a jit around
        self._recordings = recordings

    @property
    def recordings(self) -> list[Recording]:
        return self._recordings.active

    def note(self, op: Any, inputs: Values, outputs: Any, residuals: Residuals | None = None) -> Any:
        """Appends an entry to every active recording and returns `outputs`. `inputs` are `owned`."""
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
        where, frames = call_stack(4, self._recordings.block)
        entry = new_tuple(Entry, (op, tuple(inputs), flat, where, residuals, frames))
        for recording in recordings:
            recording.entries.append(entry)
        return outputs


# The class of the traces that JAX is given: `RecorderTrace`, once `trace.py` has set it.
kind: type[Recorder] = Recorder


# The operation `jnp.copy`, once `operation.py` has set it.
copy_op: Any = None


def copied(x: Value) -> Any:
    """A copy of the array `x`, which to a tape is another value."""
    return runner.current.run(copy_op, (x,))


def owned(inputs: Values) -> Values:
    """`inputs`, with a copy of each NumPy array: what an operation is given and what a recording keeps.

    The user may write into an array as soon as the operation has returned. JAX takes its memory without a copy where that is
    aligned, and may read it later than that.
    """
    for x in inputs:
        if type(x) is not ConcreteArray and isinstance(x, np.ndarray):
            return [*map(snapshot, inputs)]
    return inputs


def distinct(outputs: Any, inputs: Values) -> Any:
    """`outputs` with a copy of each array that is also an input, or is there twice.

    Where an operation changes nothing (`stop_gradient`, a reshape to the same shape) JAX returns the input itself. A tape
    identifies a value by its array, so an output must be another array than the inputs.
    """
    if hasattr(outputs, "dtype"):
        for x in inputs:
            if x is outputs:
                return copied(outputs)
        return outputs
    ids = {id(x) for x in inputs}
    if type(outputs) is list and len(outputs) == 1 and id(outputs[0]) not in ids:
        return outputs  # the usual result of a jitted function
    fresh = []
    for x in jax.tree.leaves(outputs):
        fresh.append(copied(x) if id(x) in ids and isinstance(x, jax.Array) else x)
        ids.add(id(x))
    return jax.tree.unflatten(jax.tree.structure(outputs), fresh)


# ---- beginning and ending -------------------------------------------------------------------------------------------

# One trace, over the eager one, for all tapes of the process: JAX's jit cache is keyed by the trace, and a new one for every
# tape would fill it. Its recordings belong to the thread.
_eager: Recorder | None = None
_eager_recordings = _OfThread()


class Activation:
    """Makes `recording` active under `trace`, from `start` to `stop`.

    An interrupt may come when a block is left, before Python calls any of our code. So an activation also stops when the last
    reference to it is gone. That may be late, or on another thread, where `stop` does no harm.
    """

    _active: Any = ()
    _recording: Any = None
    _trace: Any = None  # until then, after an interrupt in `__init__`

    def __init__(self, recording: Recording, trace: Recorder):
        self._recording = recording
        self._trace = trace
        self._active = trace._recordings.active  # of this thread

    def start(self) -> Activation:
        try:
            if not self._active:
                self._trace._recordings.block = user_frame()
            self._active.append(self._recording)
            fence.set_trace(self._trace)  # even if it is current: an interrupt may have set one half of it only
            return self
        except BaseException:
            self.stop(failed=True)
            raise

    def stop(self, failed: bool = False) -> None:
        """Ends the activation. The last recording that stops under a trace restores JAX's outer trace.

        If the block has `failed`, the current trace was made in it and has ended, and is replaced in any case.
        """
        active, trace = self._active, self._trace
        if self._recording not in active:
            return
        try:
            if len(active) == 1 and trace._recordings.active is active:
                trace._recordings.block = 0  # another frame may get its `id`
            active.remove(self._recording)
        finally:
            if failed or (not active and fence.trace_reference.value is trace):
                now = trace if active else trace.outer
                try:
                    fence.set_trace_reference(now)
                finally:
                    fence.set_trace_key(now._weakref)

    def __del__(self, is_finalizing: Any = sys.is_finalizing) -> None:
        if not is_finalizing():  # when Python ends, the names of this module are gone
            self.stop()


def start(recording: Recording) -> Activation:
    """Makes `recording` active under the current trace."""
    global _eager
    interning.next_age()
    trace = fence.current_trace()
    if type(trace) is not kind:
        fence.hide(kind)
        fence.adapt(kind, lambda: bool(_eager_recordings.active) or bool(active_recordings()))
        if type(trace) is not fence.EvalTrace:
            trace = kind(trace, _OfThread())
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
        active = fence.current_trace().recordings
        all_active = active[:]
        try:
            active[:] = recordings
            return fn(*args, **kwargs)
        finally:
            active[:] = all_active

    return also(Recording(), run)


def unwind() -> None:
    """Restores JAX's outer trace if no recording is active any more: the last one was stopped while a program was traced."""
    trace = fence.current_trace()
    if type(trace) is kind and not trace.recordings:
        fence.set_trace(trace.outer)


# ---- in a program that is being traced ------------------------------------------------------------------------------


class Tracing(Context):
    """What this thread knows of the program that it traces."""

    continuations: dict[int, tuple[Recording, Recording]] = {}  # by id: a recording, kept alive, and its continuation
    # Reads of variables: whether one was refused; the recordings that may note reads, None: no reads
    read_refused = False
    reads: Sequence[Recording] | None = None
    # The operations that the program is made of so far, with their inputs and outputs; None: nobody asks for them
    ran: list[tuple[Any, Values, Any]] | None = None


tracing = Tracing()


def continuing(recordings: Sequence[Recording], fn: Function, /, *args: Any) -> Any:
    """``fn(*args)``, which traces a program or runs under `jax.vmap`, with a continuation of each of `recordings` active.

    Inside a `function` a tape's `gradient` may be called for what is computed there. Those values are tracers, which must not
    get into the tape's own recording.
    """
    added = {id(recording): (recording, recording.continuation()) for recording in recordings}
    inside = [continuation for _, continuation in added.values()]
    setting = tracing.setting(continuations=tracing.continuations | added)
    return setting.call(alone, inside, fn, *args) if added else fn(*args)


def continuation_of(recording: Recording) -> Recording:
    """The innermost continuation of `recording` in the program that is being traced here; else `recording` itself."""
    while (pair := tracing.continuations.get(id(recording))) is not None:
        recording = pair[1]
    return recording


# ---- queries about the traces ---------------------------------------------------------------------------------------


def active_recordings() -> list[Recording]:
    """The recordings that an operation run here gets onto, those outside of `jax.vmap` and `jax.grad` included."""
    return list(itertools.chain.from_iterable(active_lists()))


def active_lists() -> Iterator[list[Recording]]:
    """The list of active recordings of each `Recorder` in the stack of traces, from the innermost. It may be changed."""
    for trace in trace_stack(fence.current_trace()):
        if type(trace) is kind:
            yield trace.recordings


def trace_stack(trace: TraceLike) -> Iterator[Any]:
    """`trace` and the traces below it, down to the eager one, or to one that writes a jaxpr."""
    while trace is not None:
        yield trace
        if isinstance(trace, fence.StagingTrace):
            return
        trace = getattr(trace, "parent_trace", None)


def outer_trace() -> Any:
    """JAX's current trace; while a tape is active, the one below the tape's."""
    trace = fence.current_trace()
    return trace.outer if type(trace) is kind else trace


def outside() -> fence.set_current_trace:
    """A context whose body runs under the outer trace: values are the same, nothing is recorded."""
    return fence.set_current_trace(outer_trace())


def eager() -> bool:
    """Whether operations run now: no transformation of JAX's is under way."""
    return type(outer_trace()) is fence.EvalTrace


def staging() -> bool:
    """Whether a program is being traced here, as under ``jax.jit``, so that values are not known yet."""
    return stages(fence.current_trace())


def stages(trace: TraceLike) -> bool:
    """Whether `trace`, or one below it, writes a jaxpr and runs nothing."""
    return any(isinstance(below, fence.StagingTrace) for below in trace_stack(trace))
