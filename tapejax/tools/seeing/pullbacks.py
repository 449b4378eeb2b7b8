"""What `jax.vjp` ran in a block, and the function that it gave, as the pullback of the user's function and its calls.

JAX runs that function, and later, where the user calls the pullback, goes back through it. The place at which it was linearized
becomes a value, a copy of one of its arguments: the derivatives read it, and in code it is the pullback itself.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from ...jaxprs.dependence import has_tangent
from ...jaxprs.types import Value, Values
from ...tape.derivative import DerivativeOp
from ...tape.query import Query, Source
from ...tape.recording import Entry, Recording
from ...tape.slicing import Program
from ...tape.sweep import sweep
from ..writing.graph import Graph, ValueMap, ValueSet
from .regions import Fold, Region, around, is_back, matched, restricted, run, tracing
from .tangents import TARGETS, alike

Run: TypeAlias = tuple[int, int, str]  # positions of entries, and what ran there

COTANGENTS = 24  # so many combinations of targets and cotangents are tried


class PullOp(DerivativeOp):
    """A call of a pullback. The first source of its program is the point at which that was taken: a copy of its `origin`."""

    __slots__ = ("origin",)

    def __init__(self, program: Program, origin: Value):
        super().__init__("gradient", sweep, program, True)
        self.origin = origin


class Pulled(NamedTuple):
    """What a call of a pullback did: the cotangents of which targets it took, and the sources of which results it gave."""

    targets: Values
    cotangents: Values
    sources: Values
    results: Values


def point(program: Program, *values: Value) -> list[Value]:
    """Where a program is linearized, as a value: a copy of what its first source is."""
    slot = program.sources[0]
    assert slot is not None
    return [jnp.array(values[slot])]


def _written(forward: Region, pulls: Sequence[tuple[Region, Pulled]], fold: Fold) -> list[list[Entry]]:
    """The entries for a region of `jax.vjp`, and for each of the calls of its pullback."""
    targets = pulls[0][1].targets
    sources = [*ValueSet(x for _, each in pulls for x in each.sources)]
    kept = ValueSet([*targets, *forward.results(forward.entries)])
    before = restricted(fold(forward.entries, kept, forward.level + 1), kept)
    at = jnp.array(sources[0])
    program, values = _program(before, targets, sources)
    taken = Entry(
        DerivativeOp("vjp", point, program, False), tuple(values), (at,), forward.where(), None, forward.calls()
    )
    moved = [entry._replace(inputs=tuple([at if x is sources[0] else x for x in entry.inputs])) for entry in before]
    return [[*before, taken], *([_call(moved, each, sources, at, back)] for back, each in pulls)]


def _program(entries: Sequence[Entry], targets: Values, sources: Values) -> tuple[Program, Values]:
    part = Recording()
    part.entries = [*entries]
    return Query(part, targets, [Source(x, watched=True) for x in sources]).program()


def _call(moved: Sequence[Entry], pulled: Pulled, sources: Values, at: Value, back: Region) -> Entry:
    """A call of a pullback that was taken `at` the first of its `sources`."""
    program, values = _program(moved, pulled.targets, [at, *sources[1:]])
    op, inputs = PullOp(program, sources[0]), (*values, *pulled.cotangents)
    known = ValueMap(zip(pulled.sources, pulled.results, strict=True))
    every = op.fn(*inputs) if len(known) < len(sources) else [None] * len(sources)
    results = tuple([known.get(x, y) for x, y in zip(sources, every, strict=True)])
    calls = back.calls()
    if back.kind == "vjp" and calls:  # JAX says where the pullback was made, not where it was called
        calls = (*calls[:-1], (calls[-1][0], -1))
    return Entry(op, inputs, results, back.where(), None, calls)


def _pulled(forward: Region, back: Region) -> Iterator[Pulled]:
    """What a region is the derivative of, of what `forward` made, if it is that."""
    results = back.results(back.entries)
    both = [*forward.entries, *back.entries]
    leaves = [x for x, _ in Graph(both).leaves(results)]
    read = ValueSet(x for entry in forward.entries for x in entry.inputs)
    fresh = [x for x in leaves if x not in read and has_tangent(x)]
    made = [y for entry in forward.entries for y in entry.outputs if has_tangent(y)][::-1]
    made.sort(key=lambda y: y not in forward.used)
    for targets, cotangents in itertools.islice(_pairs(made, fresh, leaves), COTANGENTS):
        entries = restricted(forward.entries, targets)
        own = [x for x, _ in Graph(entries).leaves(targets)]
        moving, inputs = list(filter(has_tangent, own)), [*ValueSet([*own, *leaves])]
        pull = functools.partial(_pull, entries, targets, cotangents, inputs)
        if (is_traced := tracing(both, results, inputs)) is None:
            return  # the user's Python would run once more
        sources = matched(results, moving, pull(moving, *inputs))
        if sources and is_traced(functools.partial(pull, sources)):
            yield Pulled(targets, cotangents, sources, results)
            return


def _pull(
    entries: Sequence[Entry], targets: Values, cotangents: Values, inputs: Values, sources: Values, *values: Value
) -> list[Value]:
    now = ValueMap(zip(inputs, values, strict=True))

    def of(*xs: Value) -> list[Value]:
        return run(entries, targets, ValueMap([*now.items(), *zip(sources, xs, strict=True)]))

    ys, pull = jax.vjp(of, *[now[x] for x in sources])
    known = ValueMap([*now.items(), *zip(targets, ys, strict=True)])
    return list(pull([known.get(x, x) for x in cotangents]))


def _pairs(made: Values, fresh: Values, leaves: Values) -> Iterator[tuple[Values, Values]]:
    """Targets and cotangents that there may have been: what the function does not read itself is a cotangent."""
    able = [[y for y in made if alike(y, x)][:TARGETS] for x in fresh]
    if fresh:
        yield from ((list(ys), fresh) for ys in itertools.product(*able))
        return
    for y in made[:TARGETS]:
        yield from (([y], [x]) for x in (y, *(x for x in leaves if has_tangent(x) and alike(x, y))))


def joined(
    entries: Sequence[Entry],
    every: Sequence[Run],
    level: int,
    region: Callable[[Run, Sequence[Run]], Region],
    fold: Fold,
) -> dict[Run, list[Entry]]:
    """What is in the place of those of the runs `every` that are of `jax.vjp` or of a pullback, where that is recognised.
    `region`: makes one of a run, given those that it belongs with."""
    new: dict[Run, list[Entry]] = {}
    backs = [each for each in every if each[2] == "pull" or each[2] == "vjp" and is_back(entries[each[0]], level)]
    forwards = [each for each in every if each[2] == "vjp" and each not in backs]
    for forward in reversed(forwards):
        own = entries[forward[0] : forward[1]]
        place = around(own[0], level)
        read = ValueSet(x for entry in own for x in (*entry.outputs, *entry.inputs))
        pulls = list[tuple[Run, Pulled]]()
        for back in (each for each in backs if each[0] > forward[0] and each not in new):
            first = entries[back[0]]
            if back[2] == "vjp" and around(first, level) != place:
                continue
            if read.isdisjoint(x for entry in entries[back[0] : back[1]] for x in entry.inputs):
                continue
            with contextlib.suppress(Exception):  # it runs the user's Python, or has no derivative in this form
                pulls += [(back, each) for each in _pulled(region(forward, [back]), region(back, [forward]))]
        pulls = [each for each in pulls if [*map(id, each[1].targets)] == [*map(id, pulls[0][1].targets)]]
        if pulls:
            runs = [back for back, _ in pulls]
            regions = [(region(back, [forward]), each) for back, each in pulls]
            new |= zip([forward, *runs], _written(region(forward, runs), regions, fold), strict=True)
    return new
