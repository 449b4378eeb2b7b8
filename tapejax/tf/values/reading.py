"""Reads of variables, as the tapes see them.

A variable is a box whose array is replaced when it is assigned to. A tape that is asked for its gradient afterwards needs the
array that the variable held when it was read, and two variables may have been given one array.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import jax

from ...jaxprs.fence import EvalTrace, Tracer, current_trace, under
from ...jaxprs.threads import Context
from ...jaxprs.types import TraceLike
from ...tape import active
from ...tape.recording import Recording, next_number
from .errors import PythonNeeded, VariableInTraceError
from .types import Array, VariableLike

if TYPE_CHECKING:
    from ...tape.gradient_tape import GradientTape
    from .staging import Capture

# Each installs what libraries need that have been imported since it was last called.
adapters: list[Callable[[], None]] = []


def install_adapters() -> None:
    """Called when a tape starts and when a function is traced."""
    for install in adapters:
        install()


def recording() -> bool:
    """Whether operations run here are noted by some tape."""
    return type(current_trace()) is active.kind


def record_escape(what: str, *arrays: Any, into: Any = None) -> None:
    """Marks, for `explain`, that the tapes lose track of `arrays`: Python reads them, or they become the state `into`."""
    trace = current_trace()
    if type(trace) is active.kind:
        for recording in trace.recordings:
            recording.mark(what, tuple([None if x is None else weakref.ref(x) for x in (into, *arrays)]))


def watched_when_read(variable: VariableLike) -> bool:
    """Whether tapes watch `variable` of their own accord: it is trainable, or was so before a Keras program froze it."""
    return getattr(variable, "trainable", True) or getattr(variable, "_was_trainable", False)


def note_read(variable: VariableLike, array: Array, store: Callable[[Array], None]) -> Array:
    """Notes that `variable` is read and holds `array`, which is returned.

    Where that array is a watched value of its own, or another variable's, a copy takes its place, which is also given to
    `store`: a value is known by its identity.
    """
    noting = list(_noting(array))
    recordings = [recording for trace in noting for recording in trace.recordings]
    noted = [recording.variables.get(id(variable)) for recording in recordings]
    if any(
        id(array) in recording.watched and (entry is None or id(array) not in entry[1])
        for recording, entry in zip(recordings, noted, strict=True)
    ):
        array = under(noting[-1].outer, active.copied, array)
        store(array)
    for recording in recordings:
        _watch_if_read(recording, variable, array, watched_when_read(variable))
    return array


def _noting(array: Array) -> Iterator[active.Recorder]:
    """The traces that record here and know `array`, also beyond a program that JAX builds here, as of a loop's body."""
    trace, own = current_trace(), getattr(array, "_trace", None)
    while trace is not None:
        if type(trace) is active.kind:
            yield trace
        if trace is own:
            return
        trace = getattr(trace, "parent_trace", None)


def note_replaced(old: Array, new: Array) -> None:
    """Notes that a variable that held the array `old` holds `new` instead.

    Where a jitted call returned `old` unchanged as `new`, the variable is the same to the tapes: its gradient is that of `old`.
    """
    if old is not new:
        for recording in active.active_recordings():
            recording.note_replaced(old, new)


def detached(array: Array) -> Array:
    """`array` for a variable to hold: while a tape records, a copy, which has no history."""
    if not recording():
        return array
    with active.outside():
        copy = active.copied(array)
    record_escape("state", array, into=copy)
    return copy


def require_python(what: str) -> None:
    """Raises PythonNeeded where a `function` is being traced."""
    if context.capture is not None:
        raise PythonNeeded(
            f"{what} runs as Python at each call: a tf.function that calls it cannot be saved or exported, nor called "
            "while JAX traces another function."
        )


def plain(trace: TraceLike) -> bool:
    """Whether under `trace`, the current one, values are known, no tape records and no `function` is traced."""
    return type(trace) is EvalTrace and context.capture is None


# An object, its attribute that holds an array (or the count of a random state), and what that is.
Used: TypeAlias = tuple[Any, str, Any]


class ThreadContext(Context):
    """What this thread is at: the function that it traces, or runs, and for what."""

    # The `staging.Capture` of the `function` that this thread traces: it makes variables inputs of the function's program.
    capture: Capture | None = None
    # Whether a `function` runs as Python here. What TensorFlow does otherwise in a graph is then done as there.
    as_python = False
    # The variables read in a program that is traced to be run once, here and now: what they hold may be a constant of it.
    constants: list[VariableLike] | None = None
    # What is read or assigned to inside `using`, by its place: the holder, the attribute and what that held before.
    used: dict[tuple[int, str], Used] | None = None
    # The functions that this thread is tracing, innermost last: the tape of each, or None, for `tf.gradients`.
    tapes: tuple[GradientTape | None, ...] = ()
    # Whether what Keras traces here becomes a program if it assigns to a variable.
    attempt = False
    # How many variables this thread has made.
    variables_made = 0
    # Whether what runs here is only looked at, as by `tape.check_numerics`: a NaN in it is no error.
    looking = False
    # In a program that is traced of what ran before: the types of the results of each `numpy_function` still to come.
    results: Iterator[Sequence[Any]] = iter(())


context = ThreadContext()


def next_variable() -> int:
    """The number of a variable that is made here: later ones have larger numbers."""
    context.variables_made += 1
    return next_number()


def inside_function() -> bool:
    """Whether a `function` is being traced here, or runs as Python."""
    return context.capture is not None or context.as_python


def in_graph() -> bool:
    """Whether operations that run here are a program's, to TensorFlow: under ``jax.jit``, or inside a `function`."""
    return active.staging() or inside_function()


def executing_eagerly() -> bool:
    """Whether operations run at once: outside ``jax.jit`` and `function`."""
    return not in_graph()


def run(as_python: bool, fn: Callable, /, *args: Any, **kwargs: Any) -> Any:
    """``fn(*args, **kwargs)`` as the body of a `function` that runs as Python, or as none."""
    return context.setting(as_python=as_python).call(fn, *args, **kwargs)


# Variables hold tracers while a function is traced: no other thread may trace, or read and assign what is adopted, meanwhile.
tracing = threading.RLock()


def held(variable: VariableLike) -> Array:
    """The array that `variable` holds; while a `function` is traced, what stands for it there."""
    capture = context.capture
    array = variable._array if capture is None else capture.as_input(variable)
    if capture is None and isinstance(array, Tracer) and active.eager():
        with tracing:  # another thread traces a function, and gives its variables their arrays back when it is done
            array = variable._array
    if context.used is not None:
        use(variable, "_array", array)
    return array


def use(holder: object, attribute: str, value: Any) -> None:
    """Notes, inside `using`, that the attribute of `holder`, which is `value`, is read or about to be assigned to."""
    if context.used is not None:
        context.used.setdefault((id(holder), attribute), (holder, attribute, value))


@contextlib.contextmanager
def using() -> Iterator[dict[tuple[int, str], Used]]:
    """A block that gathers what is read or assigned to in it: variables, and the states of random numbers."""
    gathered: dict[tuple[int, str], Used] = {}
    try:
        with context.setting(used=gathered):
            yield gathered
    finally:
        for used in gathered.values():
            use(*used)


def holding(used: Sequence[Used], arrays: Iterator[Array], fn: Callable, /, *args: Any, **kwargs: Any) -> Any:
    """``fn(*args, **kwargs)`` with `arrays` in the places that were `used`. Its assignments are undone."""
    with tracing:
        before = [(holder, attribute, getattr(holder, attribute)) for holder, attribute, _ in used]
        restore = itertools.starmap(setattr, before)
        try:
            for holder, attribute, value in used:
                setattr(holder, attribute, next(arrays) if isinstance(value, jax.Array) else value)
            return fn(*args, **kwargs)
        finally:
            list(restore)  # one call in C: an interrupt comes before or after it


@contextlib.contextmanager
def as_constants() -> Iterator[None]:
    """A block that traces a program to be run once, right after it: what variables hold may be a constant of it."""
    if active.staging():  # it is a part of another program, which may be run again
        yield
        return
    variables: list[VariableLike] = []
    with context.setting(constants=variables):
        yield
    for variable in variables:
        read(variable)  # for the tapes, which do not see into the program


def _watch_if_read(recording: Recording, variable: VariableLike, array: Array, trainable: bool) -> None:
    if (recording.watch_accessed and trainable) or id(variable) in recording.variables:
        recording.watch(array, variable)


def access(variable: VariableLike) -> None:
    """Notes that a variable is looked at or assigned to: trainable ones count as watched from here on, as in TensorFlow."""
    for recording in active.active_recordings():
        _watch_if_read(recording, variable, held(variable), variable.trainable)


def read(variable: VariableLike) -> Array:
    """Notes that `variable` is read, on every tape that records here, and returns the array that it holds.

    Raises:
      RuntimeError: under a plain ``jax.jit``, which would bake the variable's present value into the program.
    """
    array = held(variable)
    trace = current_trace()
    if type(trace) is active.kind:
        for recording in trace.recordings:
            noted = recording.variables.get(id(variable))
            if noted is None or id(array) not in noted[1]:
                _watch_if_read(recording, variable, array, variable.trainable)
        trace = trace.outer
    if type(trace) is not EvalTrace:  # as under jax.vmap or in a loop of JAX's, with tapes within and around
        for recorder in _noting(array):
            for recording in recorder.recordings:
                _watch_if_read(recording, variable, array, variable.trainable)
    if (
        type(trace) is not EvalTrace
        and context.capture is None  # there what it holds is the program's, a known number that it was given included
        and not isinstance(array, Tracer)
        and isinstance(array, jax.Array)
        and active.stages(trace)
    ):
        if context.constants is not None:
            context.constants.append(variable)
            return array
        for recording in active.tracing.reads or ():
            _watch_if_read(recording, variable, array, variable.trainable)
        if active.tracing.reads is not None:
            return array
        active.tracing.read_refused = True
        raise VariableInTraceError(
            f"Variable {variable.name!r} was read while JAX traces a function (jax.jit, lax.scan ...): its present value "
            "would be baked into the compiled program and later assign()s would go unnoticed. Decorate the function with "
            "tapejax.function, which threads Variables through, or pass the value in as an argument."
        )
    return array
