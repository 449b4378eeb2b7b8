"""The runner that tapejax uses: what costs least until it has come back often enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

from ..jaxprs import contents
from ..jaxprs.fence import EvalTrace, Tracer, current_trace, under
from ..jaxprs.types import Function, JaxProgram, Params, Primitive, Value, Values
from ..tape import active, runner
from ..tape.operation import JittedOp, Op, PythonOp
from ..tape.primitives import TracedCall
from ..tape.recording import Kept, Recording
from ..tape.slicing import Program
from . import recognition, trial
from .batches import batch
from .residuals import is_large, keeping, linearized
from .schedule import run_rows, run_sweep


class Fast(runner.Runner):
    """Operations are on trial before they are compiled; residuals of large calls are kept; sweeps are compiled as one."""

    def compiled(self, fn: Function, decided: Callable[[Function], object] | None = None) -> Function:
        return trial.Trial(fn, decided)

    def operation(
        self, plain: Callable[..., tuple[Op, Sequence[Any]]], primitive: Primitive, params: Params, args: Values
    ) -> tuple[Op, Sequence[Any]]:
        return recognition.operation(primitive, params, args)

    def staged(self, known: TracedCall) -> Op:
        return recognition.staged(known)

    def arrays(self, inputs: Values) -> Sequence[Any] | None:
        return trial.as_arrays(inputs)

    def by_operations(self, fn: Function, /, *args: Any, **kwargs: Any) -> Any:
        trace = current_trace()
        if type(trace) is EvalTrace and trial.possible():
            # on no recording, so that operations are run as on a tape, and not compiled by JAX
            return under(trace, active.alone, (), fn, *args, **kwargs)
        return fn(*args, **kwargs)

    def run_program(
        self, op: Op, inputs: Values, recordings: Sequence[Recording], program: JaxProgram, noted: Op
    ) -> tuple[Any, Kept | None]:
        if type(op) is JittedOp:
            found = linearized(op, inputs, recordings)
            return found if found is not None else (op.call(*inputs), None)
        if not isinstance(op, PythonOp) and is_large(noted, program) and _is_plain(noted):
            wide = keeping(noted, op, inputs, recordings)
            if wide is not None:
                return wide.run(inputs)
        return op.call(*inputs), None

    def sweep(self, sweep: Callable[..., list[Any]], program: Program, values: Values, *ends: Any) -> list[Any]:
        return run_sweep(sweep, program, values, *ends)

    def rows(self, name: str, rows: Callable[..., list[Any]], program: Program, values: Values) -> list[Any]:
        return run_rows(name, rows, program, values)

    def batch(
        self, row: Function, count: Any, program: Program, values: Values, result_bytes: Any, axis: int = 0
    ) -> Any:
        return batch(row, count, program, values, result_bytes, axis)

    def placed(self, source: Value, gradient: Value) -> Value:
        # XLA chooses where it leaves a gradient: often all of it on each of the devices
        if isinstance(gradient, Tracer) or isinstance(source, Tracer):
            return gradient
        place = source.sharding
        if type(place) is not jax.sharding.NamedSharding or place.is_equivalent_to(gradient.sharding, source.ndim):
            return gradient
        if place.spec.unreduced or place.spec.reduced:  # of the one the other is the cotangent
            return gradient
        return jax.device_put(gradient, place)


def _is_plain(op: Op) -> bool:
    """Whether a call was asked for nothing but compilation."""
    return op.bound is None or contents.is_plain_jit(op.bound[1])


runner.use(Fast())
