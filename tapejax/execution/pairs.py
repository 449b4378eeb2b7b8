"""Pullbacks of two or four operations in a row, and the sums of what comes back, compiled as one operation.

A structure that changes at every step is pulled back operation by operation. But what follows each other in it comes back: a
product and its activation, say. What came often enough, with inputs of the same types, is one call from then on, as soon as
each pullback is compiled itself. XLA sees each as if it were alone, as in `speculation`: results are the same to the last bit.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from jax import jit  # the real one, though a user may replace `jax.jit`

from ..jaxprs import cache
from ..jaxprs.cache import Cache
from ..jaxprs.dependence import SCALARS, kind_of
from ..jaxprs.fence import ConcreteArray, EvalTrace, current_trace
from ..jaxprs.types import Value, Values
from ..tape import dispatch, runner
from ..tape.operation import Op, pullback
from ..tape.rules import depends_on_rules
from ..tape.slicing import Program, Step
from ..tape.sweep import add, add_cotangents, ones, pull_step
from . import compared, trial
from .rewriting import rewriting

# What it costs to compile a pullback among others, and what a call costs that is made no more, in microseconds.
COMPILE, CALL = 30_000, 20
# To count takes a third of the time of a call: it is done in one of so many sweeps.
COUNT_EVERY = 8
# Of so many kinds, as of ever new shapes, operations in a row are counted at most, before they are counted anew, and compiled.
MOST_KINDS = 64


class Fused:
    """Operations in a row, by the types of their inputs and by which of these are the same: how often they came; where that
    pays, what pulls them back together, and where in their slots the cotangents are that it reads."""

    def __init__(self) -> None:
        self.counts: dict[Any, int] = {}
        self.ops: dict[Any, tuple[Op, list[int]]] = {}


_fused: Cache[Fused] = Cache(1024)
depends_on_rules(_fused, lambda key: key)
_next_sweep = itertools.count(1).__next__


def possible(program: Program) -> bool:
    """Whether its operations run now, on no tape, as they always do."""
    return not program.runs_python and type(current_trace()) is EvalTrace and trial._plain()


def sweep(program: Program, values: Values, cotangents: Values | None = None) -> list[Any]:
    """What `tape.sweep.sweep` gives."""
    ct: dict[int, Value] = {}
    for slot, x in zip(program.targets, ones(program, values) if cotangents is None else cotangents, strict=True):
        add(ct, slot, x)
    counting = _next_sweep() % COUNT_EVERY == 0
    sources, steps, ops, at = set(program.sources), program.steps[::-1], program.ops[::-1], 0
    while at < len(ops):
        two = _known(ops[at : at + 2], counting)
        four = _known(ops[at : at + 4], counting) if two and two.ops else None
        for known, length in ((four, 4), (two, 2)):
            if known and _pull_fused(known, steps[at : at + length], values, ct, sources, counting):
                at += length
                break
        else:
            pull_step(steps[at], values, ct)
            at += 1
    return [None if slot is None else ct.get(slot) for slot in program.sources]


def _known(ops: tuple[Op, ...], counting: bool) -> Fused | None:
    """What there is of `ops`, where that is to be counted or has paid."""
    if counting and len(ops) % 2 == 0 and {*map(type, ops)} == {Op}:
        return _fused.get(ops, Fused)
    return known if (known := _fused.peek(ops)) and known.ops else None


def _pull_fused(
    fused: Fused, steps: Sequence[Step], values: Values, ct: dict[int, Value], sources: set[int | None], counting: bool
) -> bool:
    """Pulls steps back, the last one first, if that is one operation by now."""
    columns: Any = zip(*steps, strict=True)
    _, ins, outs, *flow = columns
    read, written = tuple(itertools.chain(*ins)), tuple(itertools.chain(*outs))
    if not sources.isdisjoint(written):
        return False
    slots = read + written
    given = [*map(values.__getitem__, read)]
    key = (*map(slots.index, slots), *map(ct.__contains__, slots), *map(len, ins), *flow, *map(kind_of, given))
    known = fused.ops.get(key)
    if known is None and counting and {*map(type, given)} <= {ConcreteArray, *SCALARS}:
        known = _counted(fused, key, steps, slots, ct)
    if known is None:
        return False
    op, came = known
    results = dispatch.run(op, (*given, *[ct[slots[i]] for i in came]))
    back = {slot: x for slot, x in zip(read, results, strict=True) if x is not None}
    if cache.shadow is not None:
        cache.shadow.speculated(op.name, list(back.values()), lambda: _one_by_one(steps, values, ct, back))
    ct.update(back)
    return True


def _one_by_one(steps: Sequence[Step], values: Values, ct: dict[int, Value], slots: Iterable[int]) -> list[Any]:
    ct = dict(ct)
    for step in steps:
        pull_step(step, values, ct)
    return [ct[slot] for slot in slots]


def _counted(
    fused: Fused, key: Any, steps: Sequence[Step], slots: tuple[int, ...], ct: dict[int, Value]
) -> tuple[Op, list[int]] | None:
    """Notes that steps came once more; what is to be kept of them in `ops`, when that pays."""
    came = [i for i, slot in enumerate(slots) if slot in ct and slots.index(slot) == i]
    if key not in fused.counts and len(fused.counts) >= MOST_KINDS:
        fused.counts.clear()
    fused.counts[key] = count = fused.counts.get(key, 0) + COUNT_EVERY
    if count * CALL * len(came) <= COMPILE * len(steps) or len(fused.ops) >= MOST_KINDS:
        return None
    of = slots.index
    renamed = [step._replace(ins=tuple(map(of, step.ins)), outs=tuple(map(of, step.outs))) for step in steps]
    if (op := _pull_back_of(renamed, came)) is not None:
        fused.ops[key] = op, came
    return fused.ops.get(key)


def _pull_back_of(steps: Sequence[Step], came: Sequence[int]) -> Op | None:
    """The operation (inputs of the steps, the last step first, cotangents that have come back to the slots `came`) -> for each of
    these inputs what has come back then, where it is a slot's first; None as long as a pullback is not compiled itself."""
    arrived = set(came)
    for step in steps:
        outs = tuple([j for j in step.active_outs if step.outs[j] in arrived])
        if outs and not _is_compiled(pullback(step.op, step.active_ins, outs, step.perturbed)):
            return None
        arrived.update([step.ins[i] for i in step.active_ins])
    read = [slot for step in steps for slot in step.ins]
    changed = {step.ins[i] for step in steps for i in step.active_ins}.difference(*[step.outs for step in steps])

    def back(*flat: Any) -> list[Any]:
        values = dict(zip(read, flat, strict=False))
        ct = dict(zip(came, flat[len(read) :], strict=True))
        for step in steps:
            ends = {j: ct[step.outs[j]] for j in step.active_outs if step.outs[j] in ct}
            if ends:
                derivative = pullback(step.op, step.active_ins, tuple(ends), step.perturbed)
                inputs = compared.apart([*[values[slot] for slot in step.ins], *ends.values()])
                for i, x in zip(step.active_ins, rewriting(derivative.fn)(*inputs), strict=True):
                    slot = step.ins[i]
                    if x is not None:
                        ct[slot] = add_cotangents(*compared.apart([ct[slot], x])) if slot in ct else x
        return [ct.get(slot) if slot == i and slot in changed else None for i, slot in enumerate(read)]

    name = "_".join([f"{step.op.name}_pullback" for step in steps])
    return Op(name, back, jit(back, compiler_options=compared.APART))


def _is_compiled(op: Op) -> bool:
    ready = op.prepared.get(runner.current)
    return ready is not None and not isinstance(ready, trial.Trial)
