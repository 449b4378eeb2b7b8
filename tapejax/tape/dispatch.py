"""Direct dispatch: runs an `Op` without going through JAX's primitives, and records it as one entry."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import jax

from ..jaxprs.cache import recovered
from ..jaxprs.fence import ConcreteArray, EvalTrace, set_trace_key, set_trace_reference, trace_reference
from ..jaxprs.types import Values
from ..places import call_stack
from . import active, runner
from .active import active_recordings, copied, stages, tracing
from .recording import Entry, Recording, new_tuple, next_number

if TYPE_CHECKING:
    from .operation import Op, PythonOp


def run(op: Op, inputs: Values) -> Any:
    """Runs `op` under the outer trace, and appends an entry to each active recording.

    It is called by a function of tapejax's, not by the user's code: the search for the user's line begins above that.
    """
    trace = trace_reference.value
    for x in inputs:
        if type(x) is not ConcreteArray:  # numbers, tracers, and what the user may write into
            inputs = active.owned(inputs)
            break
    if type(trace) is not active.kind:
        try:
            return runner.current.run(op, inputs) if type(trace) is EvalTrace else op.traced(inputs)
        except RecursionError as error:
            if not recovered(error):
                raise
            return _run(op, inputs)
    outer = trace.outer
    try:
        set_trace_reference(outer)
        set_trace_key(outer._weakref)
        outputs = runner.current.run(op, inputs) if type(outer) is EvalTrace else op.traced(inputs)
        if type(outputs) is not ConcreteArray:
            return trace.note(op, inputs, outputs)
        for x in inputs:  # from here on the part of `Recorder.note` that one array needs, inlined for speed
            if x is outputs:
                outputs = copied(outputs)
        where, frames = call_stack(3, trace._recordings.block)
        entry = new_tuple(Entry, (op, tuple(inputs), (outputs,), where, None, frames))
        for recording in trace._recordings.active:
            recording.entries.append(entry)
        return outputs
    except RecursionError as error:
        if not recovered(error):
            raise
        return trace.note(op, inputs, _run(op, inputs))
    finally:
        try:
            set_trace_reference(trace)
        finally:
            set_trace_key(trace._weakref)


def _run(op: Op, inputs: Values) -> Any:
    return runner.current.run(op, inputs) if type(trace_reference.value) is EvalTrace else op.traced(inputs)


# ---- derivatives that run the user's Python -------------------------------------------------------------------------


# A jitted function that is traced inside `reading` has the values of variables as constants. A context of its own keeps JAX
# from using that program again.
_staging_of = jax.make_user_context()  # type: ignore[no-untyped-call]  # JAX has no types for it


@contextlib.contextmanager
def reading(recordings: Sequence[Recording]) -> Iterator[None]:
    """Inside this block a program is traced that will run once, now: the values of variables may be constants of it."""
    with tracing.setting(reads=recordings), _staging_of(next_number()):
        yield


def run_python(op: PythonOp, inputs: Values, reads_variables: bool) -> Any:
    """Runs `op`, a derivative that runs the user's Python. What that Python closes over becomes inputs, for outer tapes.

    A variable may be read in it only if it is traced for this call alone. So a read is refused at first, and if one was, it is
    traced once more in a `reading` block.
    """
    trace = trace_reference.value
    records = type(trace) is active.kind and bool(trace.recordings)
    may_read = reads_variables and not stages(trace)
    tracing.read_refused = False
    try:
        return run(*(trace.with_closure(op, inputs, may_read) if records else (op, inputs)))
    except Exception:  # of any type: the user's Python runs in there
        if not (tracing.read_refused and may_read):
            raise
    with reading(active_recordings()):
        return run(*(trace.with_closure(op, inputs) if records else (op, inputs)))
