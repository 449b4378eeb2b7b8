"""Pullbacks of two operations in a row, and the sums of what comes back, compiled as one operation.

A structure that changes at every step is pulled back operation by operation. But what follows each other in it comes back: a
product and its activation, say. Two that came often enough, with inputs of the same types, are one call from then on, as soon as
each of them is compiled itself. XLA sees each as if it were alone, as in `speculation`: results are the same to the last bit.
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

# What it costs to compile two pullbacks, and what a call costs that is made no more, in microseconds.
COMPILE, CALL = 60_000, 20
# To count a pair takes a third of the time of a call: it is done in one of so many sweeps.
COUNT_EVERY = 8
# Of so many kinds, as of ever new shapes, two operations are counted at most, before they are counted anew, and compiled.
MOST_KINDS = 64


class Pair:
    """Two operations in a row, by the types of their inputs and by which of these are the same: how often they came, and what
    pulls both back, where that pays."""

    def __init__(self) -> None:
        self.counts: dict[Any, int] = {}
        self.ops: dict[Any, Op] = {}


_pairs: Cache[Pair] = Cache(1024)
depends_on_rules(_pairs, lambda key: key)
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
    sources, later = set(program.sources), None
    for step in reversed(program.steps):
        if later is not None:
            key = later[0], step[0]
            pair = _pairs.get(key, Pair) if counting else _pairs.peek(key)
            if pair and (counting or pair.ops) and _pull_both(pair, (later, step), values, ct, sources, counting):
                later = None
                continue
            pull_step(later, values, ct)
        later = step if type(step[0]) is Op else None
        if later is None:
            pull_step(step, values, ct)
    if later is not None:
        pull_step(later, values, ct)
    return [None if slot is None else ct.get(slot) for slot in program.sources]


def _pull_both(
    pair: Pair, steps: Sequence[Step], values: Values, ct: dict[int, Value], sources: set[int | None], counting: bool
) -> bool:
    """Pulls two steps back, the later one first, if that is one operation by now."""
    (_, second_ins, second_outs, *second), (_, first_ins, first_outs, *first) = steps
    read, written = second_ins + first_ins, second_outs + first_outs
    if not sources.isdisjoint(written):
        return False
    number = {slot: i for i, slot in enumerate(dict.fromkeys(read + written))}
    came = [*filter(ct.__contains__, number)]
    given = [*map(values.__getitem__, read)]
    slots = map(number.__getitem__, (*read, *written, *came))
    key = (*second, *first, len(second_ins), len(second_outs), len(read), *slots, *map(kind_of, given))
    op = pair.ops.get(key)
    if op is None and counting and came and all([type(x) is ConcreteArray or type(x) in SCALARS for x in given]):
        op = _counted(pair, key, steps, number, came)
    if op is None:
        return False
    results = dispatch.run(op, (*given, *map(ct.__getitem__, came)))
    back = {slot: x for slot, x in zip(number, results, strict=False) if x is not None}
    if cache.shadow is not None:
        cache.shadow.speculated(op.name, list(back.values()), lambda: _one_by_one(steps, values, ct, back))
    ct.update(back)
    return True


def _one_by_one(steps: Sequence[Step], values: Values, ct: dict[int, Value], slots: Iterable[int]) -> list[Any]:
    ct = dict(ct)
    for step in steps:
        pull_step(step, values, ct)
    return [ct[slot] for slot in slots]


def _counted(pair: Pair, key: Any, steps: Sequence[Step], number: dict[int, int], came: Sequence[int]) -> Op | None:
    """Notes that two steps came once more; the operation that pulls both back, when that pays."""
    if key not in pair.counts and len(pair.counts) >= MOST_KINDS:
        pair.counts.clear()
    pair.counts[key] = count = pair.counts.get(key, 0) + COUNT_EVERY
    if count < COMPILE // (CALL * len(came)) or len(pair.ops) >= MOST_KINDS:
        return None
    of = number.__getitem__
    renamed = [step._replace(ins=tuple(map(of, step.ins)), outs=tuple(map(of, step.outs))) for step in steps]
    op = _pull_back_of(renamed, [*map(of, came)])
    if op is not None:
        pair.ops[key] = op
    return op


def _pull_back_of(steps: Sequence[Step], came: Sequence[int]) -> Op | None:
    """The operation (inputs of the steps, the last step first, cotangents that have come back to the slots `came`) -> those that
    have come back then, by the slots that are read; None as long as a pullback is not compiled itself."""
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
        return [ct.get(slot) if slot in changed else None for slot in range(max(read) + 1)]

    name = "_".join([f"{step.op.name}_pullback" for step in steps])
    return Op(name, back, jit(back, compiler_options=compared.APART))


def _is_compiled(op: Op) -> bool:
    ready = op.prepared.get(runner.current)
    return ready is not None and not isinstance(ready, trial.Trial)
