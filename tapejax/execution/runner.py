"""The runner that tapejax uses: what costs least until it has come back often enough."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ..jaxprs import contents
from ..jaxprs.fence import ConcreteArray, EvalTrace, Primitive, current_trace, trace_reference, under
from ..jaxprs.types import Function, JaxProgram, Params, Values
from ..tape import active, primitives, runner
from ..tape.derivative import SweepsOp
from ..tape.jacobian import BatchOp
from ..tape.operation import EagerOp, JittedOp, Op, PerturbationDerivativeOp, PythonOp
from ..tape.primitives import TracedCall
from ..tape.recording import Recording, Residuals
from . import recognition, speculation, trial
from .batches import batch
from .residuals import is_large, keeping, linearized


class Fast(runner.Runner):
    """Operations are on trial before they are compiled; sweeps are compiled as one where that pays."""

    def run(self, op: Op, inputs: Values) -> Any:
        if speculation.begun and (known := speculation.follow(op, inputs)) is not None:
            return known
        ready = op.prepared.get(self)
        if ready is None:
            if (way := _WAYS.get(type(op))) is not None:
                return way(op, inputs)
            ready = self._prepare(op)
        for x in inputs:
            if type(x) is not ConcreteArray:
                break
        else:
            return ready(*inputs)
        if op.call is None and type(trace_reference.value) is EvalTrace:
            arrays = trial.as_arrays(inputs)  # what a compiled function makes of numbers
            if arrays is not None:  # an output may be one of them, which are kept for other calls
                return active.distinct(ready(*arrays), arrays)
        return ready(*inputs)

    def _prepare(self, op: Op) -> Function:
        of_jax = op.bound is not None and isinstance(op.bound[0], Primitive)
        ready = op.call or trial.Trial(op.fn, functools.partial(self._decided, weakref.ref(op)), not of_jax)
        op.prepared[self] = ready
        return ready

    def _decided(self, op: weakref.ref[Op], compiled: Function) -> None:
        if (alive := op()) is not None:
            alive.prepared[self] = compiled


def _eagerly(op: PythonOp, inputs: Values) -> Any:
    trace = current_trace()
    if type(trace) is EvalTrace and trial.possible():
        # on no recording, so that operations are run as on a tape, and not compiled by JAX
        return under(trace, active.alone, (), op.fn, *inputs)
    return op.fn(*inputs)


# how an operation of a kind runs, if not as any other
_WAYS: dict[type[Op], Callable[..., Any]] = {
    EagerOp: _eagerly,
    PerturbationDerivativeOp: _eagerly,
    SweepsOp: speculation.run_sweeps,
    BatchOp: lambda op, inputs: batch(op, *inputs),
}


class Known(primitives.Recognition):
    """What has the same key was run before; residuals of large calls are kept."""

    def operation(self, primitive: Primitive, params: Params, args: Values) -> tuple[Op, Sequence[Any]]:
        return recognition.operation(primitive, params, args)

    def staged(self, call: TracedCall) -> Op:
        return recognition.staged(call)

    def run_program(
        self, op: Op, inputs: Values, recordings: Sequence[Recording], program: JaxProgram, noted: Op
    ) -> tuple[Any, Residuals | None]:
        if type(op) is JittedOp:
            results = linearized(op, inputs, recordings)
            return results if results is not None else super().run_program(op, inputs, recordings, program, noted)
        if not isinstance(op, PythonOp) and is_large(program) and _is_plain(noted):
            wide = keeping(noted, op, inputs, recordings)
            if wide is not None:
                return wide.run(inputs)
        return super().run_program(op, inputs, recordings, program, noted)


def _is_plain(op: Op) -> bool:
    """Whether a call was asked for nothing but compilation."""
    return op.bound is None or contents.is_plain_jit(op.bound[1])


if type(runner.current) is runner.Runner:  # else a user's, who had it before this was imported
    runner.use(Fast())
primitives.use(Known())
