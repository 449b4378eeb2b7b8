"""What `jax.vjp` or `jax.linearize` ran in a block, and the linear function that it gave, as these and its calls.

JAX runs the user's function, and later, where the user calls the pullback or pushforward, goes back or forward through it: once
or several times, or under `jax.vmap`. The place at which it was linearized becomes a value, a copy of one of its arguments: the
derivatives read it, and in code it is the pullback itself.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ...jaxprs.dependence import has_tangent
from ...jaxprs.types import Value, Values
from ...places import Place
from ...tape.derivative import DerivativeOp
from ...tape.operation import Op
from ...tape.recording import Entry
from ...tape.slicing import Program
from ..writing.graph import Graph, ValueMap, ValueSet
from . import batched
from .listing import calls_of_parts
from .regions import Fold, Region, Run, as_function, matched, region_of, tracing
from .tangents import TARGETS, alike

SEEDS = 24  # so many combinations of targets and cotangents, or of sources and tangents, are tried

ENDS = 6  # and so many ends of a function

# What linearizes a function; what the function is that it gives.
GIVES = {"vjp": "pull", "linearize": "push"}


class LinearOp(Op):
    """A call of a pullback or pushforward: (where that was taken: a copy of `origin`, what else is read, the seeds) -> results.

    Args:
      kind: "pull" or "push".
      entries: what the function does that was linearized.
      sides: its targets and sources.
      inputs: what is read of the entries, and the seeds: one for each of the targets, or of the sources.
      origin: the first source.
    """

    __slots__ = ("kind", "targets", "sources", "origin", "count")

    def __init__(
        self, kind: str, entries: Sequence[Entry], sides: tuple[Values, Values], inputs: Values, origin: Value
    ):
        self.targets, self.sources = sides
        self.kind, self.origin, self.count = kind, origin, len(sides[kind == "push"])
        super().__init__(kind, functools.partial(self._run, entries, inputs[: -self.count]))

    def seeds(self, inputs: Values) -> tuple[Values]:
        """The cotangents of the targets, or the tangents of the sources, among its inputs."""
        return (inputs[-self.count :],)

    def _run(self, entries: Sequence[Entry], names: Values, *inputs: Value) -> list[Value]:
        now = ValueMap(zip(names, inputs[: -self.count], strict=True))
        return applied(self.kind, entries, (self.targets, self.sources), now, inputs[-self.count :])


class Called(NamedTuple):
    """What such a call did: for which `ends` (targets, or sources) it took the `seeds` (cotangents, or tangents), and for which
    `others` (sources, or targets) it gave the `results`."""

    ends: Values
    seeds: Values
    others: Values
    results: Values


def applied(
    kind: str, entries: Sequence[Entry], sides: tuple[Values, Values], now: ValueMap[Value], seeds: Values
) -> list[Value]:
    """What JAX's own pullback or pushforward gives of the function that `entries` are, of its targets and sources, the `sides`.
    `now`: the values that others have there."""
    targets, sources = sides
    of, at = as_function(entries, targets, sources, now), [now[x] for x in sources]
    ys, linear = jax.vjp(of, *at) if kind == "pull" else jax.linearize(of, *at)
    known = ValueMap([*now.items(), *zip(targets, ys, strict=True)])
    given = [known.get(x, x) for x in seeds]
    return list(linear(given) if kind == "pull" else linear(*given))


def point(program: Program, *values: Value) -> list[Value]:
    """Where a program is linearized, as a value: a copy of what its first source is."""
    slot = program.sources[0]
    assert slot is not None
    return [jnp.array(values[slot])]


class _Linearized:
    """What a region of `jax.vjp` or `jax.linearize` linearized, and the `calls` of what that gave, as far as they are known.

    Args:
      forward: the region.
      fold: what recognises transformations in it.
    """

    def __init__(self, forward: Region, fold: Fold):
        self.forward, self.fold, self.gives = forward, fold, GIVES[forward.kind]
        self.calls: list[Called] = []

    def note(self, region: Region) -> list[Entry] | None:
        """Notes what a region is a call of, if it is one."""
        if region.kind in (self.gives, self.forward.kind):
            with contextlib.suppress(Exception):  # it runs the user's Python, or has no derivative in this form
                self.calls += [each for each in self._called(region) if self._goes_with(each)][:1]
        return None

    def _goes_with(self, call: Called) -> bool:
        return not self.calls or [*map(id, call.ends)] == [*map(id, self.calls[0].ends)]

    def _sides(self, ends: Values, others: Values) -> tuple[Values, Values]:
        """Targets and sources."""
        return (ends, others) if self.gives == "pull" else (others, ends)

    def finished(self, forward: Region) -> list[Entry]:
        """The entries for the region, in which `forward` has what is used apart from all calls."""
        self.others = [*ValueSet(x for each in self.calls for x in each.others)]
        self.targets, sources = self._sides(self.calls[0].ends, self.others)
        at, kept = jnp.array(sources[0]), forward.results(forward.entries)
        self.origin, self.sources = sources[0], [at, *sources[1:]]
        op = functools.partial(DerivativeOp, forward.kind, point, seeded=False)
        sides = self.targets, sources
        *before, linear = forward.derivative(op, forward.entries, self.fold, sides, [at], kept)
        # of what the function makes a call reads nothing: it is computed anew, at the point
        moved = ((entry, [at if x is sources[0] else x for x in entry.inputs]) for entry in before)
        self.entries = [entry._replace(inputs=tuple(inputs)) for entry, inputs in moved]
        return [*before, linear]

    def written(self, region: Region) -> list[Entry] | None:
        """The entry for a region that is a call, once `finished`."""
        if region.kind not in (self.gives, self.forward.kind):
            return None
        call = next((each for each in self._called(region) if self._goes_with(each)), None)
        if call is None:
            return None
        read = ValueSet(x for x, _ in Graph(self.entries).leaves(self.targets)) - ValueSet(self.sources)
        inputs = (*self.sources, *read, *call.seeds)
        op = LinearOp(self.gives, self.entries, (self.targets, self.sources), inputs, self.origin)
        known = ValueMap(zip(call.others, call.results, strict=True))
        every = op.fn(*inputs) if len(known) < len(self.others) else [None] * len(self.others)
        results = tuple([known.get(x, y) for x, y in zip(self.others, every, strict=True)])
        return [Entry(op, inputs, results, region.where(), None, region.calls())]

    def _called(self, back: Region) -> Iterator[Called]:
        """What a region is a call of, if it is that."""
        forward, results, pulls = self.forward, back.results(back.entries), self.gives == "pull"
        both = [*forward.entries, *back.entries]
        leaves = [x for x, _ in Graph(both).leaves(results)]
        read = ValueSet(x for entry in forward.entries for x in entry.inputs if isinstance(x, jax.Array))
        fresh = [x for x in leaves if x not in read and has_tangent(x)]
        made = [y for entry in forward.entries for y in entry.outputs if has_tangent(y)][::-1]
        made.sort(key=lambda y: y not in forward.used)
        sources = [x for x in read if x not in ValueSet(made) and has_tangent(x)]
        for ends, seeds in itertools.islice(_pairs(made if pulls else sources, fresh, leaves), SEEDS):
            own = [x for x, _ in Graph(forward.entries).leaves(ends if pulls else made)]
            others, inputs = [*filter(has_tangent, own)] if pulls else made, [*ValueSet([*own, *leaves])]
            if (is_traced := tracing(both, results, inputs)) is None:
                return  # the user's Python would run once more
            again = functools.partial(self._again, inputs, ends, seeds)
            found = matched(results, others, again(others, *inputs))
            if found and is_traced(functools.partial(again, found)):
                yield Called(ends, seeds, found, results)
                return

    def _again(self, inputs: Values, ends: Values, seeds: Values, others: Values, *values: Value) -> list[Value]:
        now = ValueMap(zip(inputs, values, strict=True))
        return applied(self.gives, self.forward.entries, self._sides(ends, others), now, seeds)


def _pairs(able: Values, fresh: Values, leaves: Values) -> Iterator[tuple[Values, Values]]:
    """Targets or sources, of those that are `able`, and what was given for them: what the function does not read itself is."""
    if fresh:
        every = itertools.product(*([y for y in able if alike(y, x)][:TARGETS] for x in fresh))
        yield from ((list(ys), fresh) for ys in every if len(ValueSet(ys)) == len(ys))
        return
    for y in able[:TARGETS]:
        yield from ([([y], [1.0])] if not y.ndim else [])  # of the gradient of a number
        yield from (([y], [x]) for x in (y, *(x for x in leaves if has_tangent(x) and alike(x, y))))


def joined(
    entries: Sequence[Entry], every: Sequence[Run], level: int, used: ValueSet, fold: Fold
) -> dict[Run, list[Entry]]:
    """What is in the place of those of the runs `every` that are of `jax.vjp` or `jax.linearize`, or call what these gave, where
    that is recognised; the values `used` are used outside."""
    new: dict[Run, list[Entry]] = {}
    region = region_of(entries, used, level)
    for linear in (each for each in every if each[2] in GIVES):
        start, end, kind = linear
        later = [each for each in every if each[0] > start and each not in new]
        for stop in () if linear in new else _ends(entries, linear):
            forward, tail = (start, stop, kind), [(stop, end, kind)] if stop < end else []
            written = _joined(entries, forward, [*tail, *later], region, fold)
            if all(each in written for each in (forward, *tail)):
                new[linear] = [x for each in (forward, *tail) for x in written.pop(each)]
                new |= written
                break
    return new


def _joined(
    entries: Sequence[Entry], forward: Run, others: Sequence[Run], region: Callable[..., Region], fold: Fold
) -> dict[Run, list[Entry]]:
    """The entries for a run of `jax.vjp` or `jax.linearize`, and for those of the `others` that are calls of what it gave."""
    linearized, calls = _Linearized(region(forward), fold), dict[Run, list[Run]]()
    made = ValueSet(x for entry in entries[forward[0] : forward[1]] for x in (*entry.outputs, *entry.inputs))
    kinds = {"vmap", GIVES[forward[2]], "linearize" if forward[2] == "linearize" else ""}
    for back in others:
        reads = back[2] in kinds and not made.isdisjoint(x for each in entries[back[0] : back[1]] for x in each.inputs)
        for parts in _parts(entries, back) if reads else ():
            count, linearized.forward = len(linearized.calls), region(forward, parts)
            for part in parts:
                _called(region(part, [forward]), linearized.note, fold)
            if len(linearized.calls) - count >= len(parts):
                calls[back] = parts
                break
            del linearized.calls[count:]
    if not calls:
        return {}
    alone, numbers = region(forward, [part for parts in calls.values() for part in parts]), itertools.count()
    written, count = {forward: linearized.finished(alone)}, sum(map(len, calls.values()))
    for back, parts in calls.items():
        each = (_called(region(part, [forward]), linearized.written, fold) or () for part in parts)
        written[back] = [x for call in each for x in _placed(call, alone.calls(), next(numbers), count)]
    left = ValueSet(x for entry in alone.entries for x in entry.outputs)
    left -= ValueSet(x for entry in written[forward] for x in entry.outputs)
    inputs = ValueSet(x for back in calls for entry in written[back] for x in entry.inputs)
    return (
        written if all(written.values()) and left.isdisjoint(inputs) else {}
    )  # else a call reads what is no longer made


def _ends(entries: Sequence[Entry], linear: Run) -> Iterator[int]:
    """Where a run of `jax.linearize` may end, in which a pushforward was called, too, as JAX has it under `jax.jit`: where an
    operation is of a line that ran before. The last one is the end of the run."""
    start, stop, kind = linear
    ran = [entry.calls for entry in entries[start:stop]]
    again = (i for i in range(1, len(ran)) if ran[i] in ran[:i] and (ran[i] != ran[i - 1] or ran[i] == ran[0]))
    yield from (start + i for i in itertools.islice(again, ENDS) if kind == "linearize")
    yield stop


def _parts(entries: Sequence[Entry], calls: Run) -> Iterator[list[Run]]:
    """A run as one call, and as several that follow each other."""
    start, stop, kind = calls
    names = [entry.op.name for entry in entries[start:stop]]
    for count in range(1, len(names) + 1):
        period = len(names) // count
        if names == names[:period] * count:
            yield [(i, i + period, kind) for i in range(start, stop, period)]


def _placed(call: Sequence[Entry], made: Sequence[Place], i: int, count: int) -> list[Entry]:
    """The entries of the call number `i` of `count`, where the source has it: of what runs under `jax.jit` JAX says where its
    function was `made`."""
    if not (made and call) or call[0].calls[-1:] not in ((made[-1],), ((made[-1][0], -1),)):
        return [*call]
    offsets = calls_of_parts(*made[-1])
    place = made[-1][0], offsets[i % len(offsets)] if len(offsets) in (1, count) else -1
    return [entry._replace(calls=(*entry.calls[:-1], place), where=place) for entry in call]


def _called(region: Region, call: Callable[[Region], list[Entry] | None], fold: Fold) -> list[Entry] | None:
    """The entries for a region that is a `call`, or in which there are calls for each example of a batch."""
    return batched.recognised(region, functools.partial(fold, first=call)) if region.kind == "vmap" else call(region)
