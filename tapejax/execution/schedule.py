"""How a program's sweep is run: compiled as one, in chunks, or step by step, whichever makes the user wait least."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..jaxprs import cache
from ..jaxprs.cache import Cache, on_clear
from ..jaxprs.dependence import kind_of
from ..jaxprs.types import Values
from ..tape import active, dispatch
from ..tape.derivative import SweepsOp
from ..tape.rules import depends_on_rules
from ..tape.slicing import Program, rows_of
from ..tape.sweep import add, ones, push, sweep
from . import pairs
from .chunks import Chunk, chunks

CACHED_SWEEPS = 256


# Compiling a program as one takes a time that grows with its length; a user notices the pause beyond this many steps.
COMPILE_AT_MOST = 128
# Compiling a program as one costs about as much as compiling this share of its steps one by one (docs/speed.md): where more
# of them were never compiled, it is the cheaper way.
COMPILE_FRESH_SHARE = 1 / 4
# For every so many programs that were compiled as one and never used again, the next must have come back once more: a loop of
# ever new lengths is not worth a compile for each.
COMPILES_PER_PENALTY = 8
CACHED_PROGRAMS = 4096

_unused_compiles: set[int] = set()  # programs that were compiled as one and have not come back yet
on_clear(_unused_compiles.clear)


def run_sweeps(op: SweepsOp, *inputs: Any) -> list[Any]:
    """What `op` gives."""
    return (_run_sweep if op.take in (sweep, push) else _run_rows)(op, *inputs)


def _run_sweep(op: SweepsOp, *inputs: Any) -> list[Any]:
    """What `op` gives, by the way of running that makes the user wait least.

    A program is compiled as one when it comes back, or at once if its parts would have to be compiled anyway. A long one that
    repeats itself is swept chunk by chunk, each of which comes back. What was never seen but is made of known parts runs step
    by step and compiles nothing.
    """
    take, program = op.take, op.program
    if not _worth_compiling(program, inputs):
        long = take is sweep and len(program.ops) > COMPILE_AT_MOST and not program.runs_python
        parts = _chunks(program) if long else ()
        if parts:
            return _sweep_chunks(program, parts, *op.split(inputs))
        paired = take is sweep and pairs.possible(program)
        return pairs.sweep(program, *op.split(inputs)) if paired else list(op.fn(*inputs))
    results = dispatch.run(op.whole(), inputs)
    if take is push:
        return list(results)
    back = iter(results)
    return [None if slot is None else next(back) for slot in program.sources]


def _run_rows(op: SweepsOp, *values: Any) -> list[Any]:
    if len(op.program.ops) > COMPILE_AT_MOST * 8 or op.program.runs_python:
        return list(op.fn(*values))
    return list(dispatch.run(op.whole(), values))


def _sweep_chunks(
    program: Program, parts: Sequence[Chunk], values: Values, cotangents: Values | None = None
) -> list[Any]:
    if cotangents is None:
        cotangents = ones(program, values)
    ct: dict[int, Any] = {}
    for slot, x in zip(program.targets, cotangents, strict=True):
        add(ct, slot, x)
    recorded = len(values)
    for part in reversed(parts):
        if not all([slot in ct for slot in part.targets]):
            return sweep(program, values, cotangents)  # nothing came back to some value: only step by step tells
        read = [values[slot] if slot < recorded else None for slot in part.read]
        back = _run_sweep(SweepsOp("gradient", sweep, part.program, True), *read, *[ct[slot] for slot in part.targets])
        first_computed = len(part.sources) - part.computed
        for i, (slot, x) in enumerate(zip(part.sources, back, strict=True)):
            if i < first_computed:
                add(ct, slot, x)
            elif x is not None:
                ct[slot] = x
    return [None if slot is None else ct.get(slot) for slot in program.sources]


class Sightings:
    """How often something was seen, and whether it is compiled as one; the chunks of a program, if they were looked for."""

    def __init__(self) -> None:
        self.count, self.compiled = 0, False
        self.chunks: tuple[Chunk, ...] | None = None

    def again(self) -> int:
        """How often it was seen before."""
        self.count += 1
        return self.count - 1


# They go with what is known of a function: a program holds its operations alive.
_sightings: Cache[Sightings] = Cache(CACHED_PROGRAMS)
_kinds: Cache[Sightings] = Cache(CACHED_PROGRAMS)
depends_on_rules(_sightings, lambda program: program.ops)
depends_on_rules(_kinds, lambda kind: kind[:1])


def _worth_compiling(program: Program, values: Values) -> bool:
    if len(program.ops) <= 1 or program.runs_python:
        return False
    if not active.eager():
        return True  # inside jit, vmap or grad nothing is compiled here
    if len(program.ops) > COMPILE_AT_MOST:
        return False
    sightings = _sightings.get(program, Sightings)
    if sightings.compiled:
        _unused_compiles.discard(hash(program))
        return True
    if sightings.count:
        worth = sightings.count > len(_unused_compiles) // COMPILES_PER_PENALTY
    else:
        kind = list(map(kind_of, values)).__getitem__
        read = [tuple(map(kind, ins)) for _, ins, _ in rows_of(program)]
        kinds = set(zip(program.ops, program.active_ins, program.active_outs, program.perturbed, read, strict=True))
        fresh = sum(not _kinds.get(kind, Sightings).again() for kind in kinds)
        worth = fresh >= len(program.ops) * COMPILE_FRESH_SHARE
    sightings.again()
    if worth:
        sightings.compiled = True
        if len(_unused_compiles) >= CACHED_SWEEPS:
            _unused_compiles.clear()
        _unused_compiles.add(hash(program))
    return worth


def _chunks(program: Program) -> tuple[Chunk, ...]:
    sightings = _sightings.get(program, Sightings)
    if sightings.chunks is None or cache.shadow is not None:
        sightings.chunks = chunks(program)
    return sightings.chunks
