"""A derivative that is taken while a tape records: one operation to whoever looks at that tape, however it was run.

What was run is on the tape as well, and is what the tape differentiates. `Recording.folded` has the one operation in its place.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import Any

import jax

from ..jaxprs.cache import Cache
from ..jaxprs.fence import by_types_of, current_trace
from ..jaxprs.types import Function, Values
from . import active, runner
from .operation import Op, PythonOp
from .pullback import CustomOp, PullbackOp
from .recording import DerivativeSpan
from .rules import depends_on_rules
from .slicing import Program
from .sweep import push

CACHED_DERIVATIVES = 256


class DerivativeOp(Op):
    """The operation (values of a program, cotangents or tangents) -> what is not None of a derivative of the program.

    Args:
      kind: "gradient", "jvp", "jacobian" or "batch_jacobian".
      take: what computes it: `sweep` or `push`, or the rows of a Jacobian.
      program: what is differentiated.
      seeded: whether cotangents or tangents are given.
    """

    __slots__ = ("kind", "take", "program", "seeded")

    def __init__(self, kind: str, take: Function, program: Program, seeded: bool, key: Any = None):
        super().__init__(kind, functools.partial(_packed, kind, take, program, seeded), key=key)
        self.kind, self.take, self.program, self.seeded = kind, take, program, seeded

    def values(self, inputs: Values) -> Values:
        """The values of the program among its inputs."""
        return _split(self.kind, self.program, self.seeded, inputs)[0]

    def seeds(self, inputs: Values) -> tuple[list[Any | None], ...]:
        """The cotangents of the targets, or the tangents of the sources, among its inputs; () if they are ones."""
        return _split(self.kind, self.program, self.seeded, inputs)[1]


def _split(kind: str, program: Program, seeded: bool, inputs: Values) -> tuple[Values, tuple[list[Any | None], ...]]:
    if not seeded:
        return inputs, ()
    slots = program.sources if kind == "jvp" else program.targets
    values = inputs[: len(inputs) - sum(slot is not None for slot in slots)]
    left = iter(inputs[len(values) :])
    return values, ([None if slot is None else next(left) for slot in slots],)


def compute(kind: str, take: Function, program: Program, seeded: bool, *flat: Any) -> list[Any]:
    """What a derivative gives, None included: what a `DerivativeOp` runs, which leaves that out."""
    values, seeds = _split(kind, program, seeded, flat)
    return list(take(program, values, *seeds) if kind in ("gradient", "jvp") else take(program, *values))


def _packed(kind: str, *args: Any) -> list[Any]:
    results = compute(kind, *args)
    return [x for x in results if x is not None] if kind == "gradient" else results


class SweepsOp(PythonOp):
    """A derivative, all of what `take` gives, None included: Python that runs sweeps step by step.

    A runner may run the one operation `whole` in its place. The arguments are those of a `DerivativeOp`.
    """

    __slots__ = ("take", "program", "seeded")

    def __init__(self, kind: str, take: Function, program: Program, seeded: bool):
        super().__init__(kind, functools.partial(compute, kind, take, program, seeded))
        self.take, self.program, self.seeded = take, program, seeded

    def whole(self) -> DerivativeOp:
        """The derivative as one operation."""
        return derivative_op(self.name, self.take, self.program, self.seeded)

    def split(self, inputs: Values) -> tuple[Any, ...]:
        """The values of the program; and the cotangents of all targets, or the tangents of all sources, if they are given."""
        values, seeds = _split(self.name, self.program, self.seeded, inputs)
        return (values, *seeds)


def derivative_op(kind: str, take: Function, program: Program, seeded: bool = False) -> DerivativeOp:
    """The one operation that a derivative is. `take` is a function of a module."""
    key = take, program, kind, seeded
    return _ops.get(key, lambda: DerivativeOp(kind, take, program, seeded, key))


_ops: Cache[DerivativeOp] = Cache(CACHED_DERIVATIVES)
depends_on_rules(_ops, lambda key: key[1].ops)


def run_sweep(take: Callable[..., list[Any]], program: Program, values: Values, *seeds: Any) -> list[Any]:
    """``take(program, values, *seeds)``, a reverse or forward sweep. `seeds`: of all targets (forward: sources), or none."""
    slots, kind = (program.sources, "jvp") if take is push else (program.targets, "gradient")
    connected = [x for slot, x in zip(slots, seeds[0], strict=True) if slot is not None] if seeds else []
    return _run(SweepsOp(kind, take, program, bool(seeds)), values, connected)


def run_rows(kind: str, rows: Callable[..., list[Any]], program: Program, values: Values) -> list[Any]:
    """``rows(program, *values)``, the sweeps for a ``"jacobian"`` or a ``"batch_jacobian"``."""
    return _run(SweepsOp(kind, rows, program, False), values, ())


def _is_custom(op: Op) -> bool:
    """Whether it is the call of a function with a gradient of the user's, in whose place JAX may differentiate a `CustomOp`."""
    return type(op) is PullbackOp and op.results > 0


def _run(op: SweepsOp, values: Values, seeds: Values) -> list[Any]:
    trace = current_trace()
    recordings = list(trace.recordings) if type(trace) is active.kind else []
    starts = [len(recording.entries) for recording in recordings]
    with by_types_of(values):
        results: list[Any] = runner.current.run(op, (*values, *seeds) if seeds else values)
    ran = active.tracing.ran
    if not (recordings or ran is not None) or not all(map(_is_one, op.program.ops)):
        return results
    query = getattr(values, "query", None)
    folded = None if query is None else query.folded()
    part = "targets" if op.name == "jvp" else "sources"
    pairs = list(zip(getattr(op.program, part), map(id, results), strict=True))
    wanted = [pairs.index(pair) == i for i, pair in enumerate(pairs)]  # a source's array once, if given twice
    as_one = functools.partial(_one, op, folded or (lambda: (op.program, values)), seeds, part, wanted)
    outputs = tuple([x for x in itertools.compress(results, wanted) if x is not None])
    for recording, start in zip(recordings, starts, strict=True):
        if len(recording.entries) > start + (folded is None):
            recording.derivatives.append(DerivativeSpan(start, len(recording.entries), as_one, outputs))
    # of a function with a gradient of the user's, Python would run for it
    if ran is not None and not any(map(_is_custom, op.program.ops)) and (one := as_one()) is not None:
        ran.append((*one, outputs))
    return results


def _is_one(op: Op) -> bool:
    """Whether it can be a part of a derivative that is one operation: its own is a function of its inputs alone, where the user's
    Python may use other values of the recording."""
    return _is_custom(op) or not op.runs_python and type(op).pull_back is Op.pull_back


def _one(
    op: SweepsOp, folded: Callable[[], tuple[Program, Values]], seeds: Values, part: str, wanted: list[bool]
) -> tuple[DerivativeOp, tuple[Any, ...]] | None:
    """The operation, of those sources (of a "jvp": targets) that are wanted, and its inputs; None if a part cannot be traced."""
    program, values = folded()
    custom = [step for step in program.steps if _is_custom(step.op)]
    try:
        for step in custom:
            jax.eval_shape(step.op.fn, *[values[i] for i in step.ins])
    except Exception:  # the user's Python needs values
        return None
    traced: dict[int, Op] = {id(step.op): CustomOp(step.op) for step in custom}  # type: ignore[arg-type]
    ops = tuple([traced.get(id(op), op) for op in program.ops])
    slots = tuple(itertools.compress(getattr(program, part), wanted))
    program = dataclasses.replace(program, **{"ops": ops, part: slots})
    make = DerivativeOp if custom else derivative_op
    return make(op.name, op.take, program, op.seeded), (*values, *seeds)
