"""Long programs that repeat themselves, cut into chunks that are equal."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import NamedTuple

from ..tape.slicing import Program, Step, compact


class Chunk(NamedTuple):
    """A stretch of a longer program as a program of its own.

    `read`: the slots of the long program whose values it reads. Cotangents of the slots `targets` go in; those of `sources` come
    out and are added to what has come back there so far. For the last `computed` of them they replace it.
    """

    program: Program
    read: tuple[int, ...]
    targets: tuple[int, ...]
    sources: tuple[int, ...]
    computed: int


CHUNK = 64


def chunks(program: Program) -> tuple[Chunk, ...]:
    """A program that goes in circles, as a loop that was unrolled does, cut so that most chunks are equal; else nothing."""
    steps = program.steps
    kinds = [(step.op, *step[3:]) for step in steps]
    count = len(kinds)
    middle = count // 3
    period = next(
        (p for p in range(1, CHUNK * 2) if kinds[middle : middle + 2 * p] == kinds[middle + p : middle + 3 * p]), 0
    )
    if not period:
        return ()
    length = period * -(-CHUNK // period)
    begin = next((i for i in range(middle) if kinds[i : i + length] == kinds[i + length : i + 2 * length]), None)
    if begin is None:
        return ()
    edges = sorted({0, *range(begin, count, length), count})
    later, sources, parts = set(program.targets), {*program.sources}, []
    same: dict[Program, Program] = {}
    for a, b in zip(reversed(edges[:-1]), reversed(edges), strict=False):
        chunk = _chunk(steps[a:b], later, sources)
        parts.append(chunk._replace(program=same.setdefault(chunk.program, chunk.program)))
        later.update([step.ins[i] for step in steps[a:b] for i in step.active_ins])
    return tuple(reversed(parts))


def _chunk(steps: Sequence[Step], later: Set[int | None], sources: Set[int | None]) -> Chunk:
    """The chunk of these `steps` of a longer program with these `sources`. `later`: the slots that are read after it."""
    written = dict.fromkeys(slot for step in steps for slot in step.outs)
    targets = tuple(dict.fromkeys(step.outs[j] for step in steps for j in step.active_outs if step.outs[j] in later))
    active_ins = dict.fromkeys(step.ins[i] for step in steps for i in step.active_ins)
    outer = [slot for slot in active_ins if slot not in written]
    own = [slot for slot in written if slot in sources]
    part, read = compact(steps, targets, [*outer, *own])
    return Chunk(part, read, targets, (*outer, *own), len(own))
