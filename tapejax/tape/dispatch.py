"""Direct dispatch: an operation that is known already is run on JAX's fast path, and noted as one entry."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import jax

from ..jaxprs.fence import (
    ConcreteArray,
    EvalTrace,
    current_trace,
    set_trace_key,
    set_trace_reference,
    trace_reference,
)
from ..jaxprs.types import Values
from . import active
from .active import active_recordings, copied, distinct, stages
from .recording import Entry, Recording, new_tuple
from .where import caller

if TYPE_CHECKING:
    from .operation import Op, PythonOp


def run(op: Op, inputs: Values) -> Any:
    """Runs `op` under the outer trace and notes it on the tapes that record here."""
    trace = trace_reference.value
    outer = trace.outer if type(trace) is active.kind else trace
    given = inputs if type(outer) is EvalTrace else None  # arrays only; None where `_call` has to look
    for x in inputs:
        if type(x) is not ConcreteArray:
            given = None if given is None else op.arrays(inputs)
            break
    if outer is trace:
        return (
            _call(op, inputs)
            if given is None
            else op.call(*inputs)
            if given is inputs
            else distinct(op.call(*given), given)
        )
    try:
        set_trace_reference(outer)
        set_trace_key(outer._weakref)
        if given is None:
            return trace.note(op, inputs, _call(op, inputs))
        outputs = op.call(*given)
        if type(outputs) is not ConcreteArray:
            return trace.note(op, inputs, outputs if given is inputs else distinct(outputs, given))
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


def _call(op: Op, inputs: Values) -> Any:
    return op.call(*inputs) if type(trace_reference.value) is EvalTrace else op.traced(inputs)


# ---- what runs Python of the user's ---------------------------------------------------------------------------------


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


def run_python(op: PythonOp, inputs: Values, reads_variables: bool) -> Any:
    """Runs `op`, a derivative of what runs Python, such that outer tapes see what that closes over, too."""
    trace = current_trace()
    records = type(trace) is active.kind and bool(trace.recordings)
    may_read = reads_variables and not stages(trace)
    reads.refused = False
    try:
        return run(*(trace.with_closure(op, inputs, may_read) if records else (op, inputs)))
    except Exception:  # of any type: what the user's Python raises where a read is refused
        if not (reads.refused and may_read):
            raise
    with reading(active_recordings()):
        return run(*(trace.with_closure(op, inputs) if records else (op, inputs)))
