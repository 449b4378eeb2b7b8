"""The slice of a recording that leads from sources to targets, as a `Program`: hashable data that can be run as a function.

A value is a numbered slot; a step is an operation with the slots that it reads and writes. Two runs of the same code give
equal programs, so that what was compiled for one serves the other.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from typing import Any, NamedTuple

from ..jaxprs.dependence import is_key, type_has_tangent
from ..jaxprs.types import Positions
from .operation import Op, PythonOp
from .recording import Entry, new_tuple


class Step(NamedTuple):
    """One operation of a program.

    `active_ins`, `active_outs`: the positions in `ins` and `outs` that carry gradient. `perturbed`: for a custom rule that asks
    which inputs are perturbed, the positions of all that are, even if no output depends on them.
    """

    op: Op
    ins: tuple[int, ...]
    outs: tuple[int, ...]
    active_ins: Positions
    active_outs: Positions
    perturbed: Positions = ()


@dataclass(frozen=True)
class Program:
    """The steps in the order in which they ran, and the slots of targets and sources (None: not connected).

    The first slots are those whose recorded values are read. These values are passed along with the program, in that order.
    The steps are kept as columns, as in a `NumberedRecording` and for its reason.
    """

    ops: tuple[Op, ...]
    slots: tuple[int, ...]
    bounds: tuple[int, ...]
    targets: tuple[int | None, ...]
    sources: tuple[int | None, ...]
    active_ins: tuple[Positions, ...]
    active_outs: tuple[Positions, ...]
    perturbed: tuple[Positions, ...]

    @staticmethod
    def of(steps: Sequence[Step], targets: Iterable[int | None], sources: Iterable[int | None]) -> Program:
        """The program of these steps."""
        ops, ins, outs, *active = zip(*steps, strict=True) if steps else [()] * 6
        sides = list(chain.from_iterable(zip(ins, outs, strict=True)))
        columns: Any = chain.from_iterable(sides), accumulate(map(len, sides), initial=0), targets, sources
        return Program(ops, *map(tuple, columns), *active)

    @property
    def steps(self) -> list[Step]:
        """Its steps, made anew each time."""
        active = zip(self.active_ins, self.active_outs, self.perturbed, strict=True)
        return [_new_step((*row, *flow)) for row, flow in zip(rows_of(self), active, strict=True)]

    def __hash__(self) -> int:
        return self._hash

    @functools.cached_property
    def _hash(self) -> int:  # cached: a long program takes long to hash
        return hash((self.ops, self.slots, self.targets, self.sources, self.active_ins, self.active_outs))

    @functools.cached_property
    def runs_python(self) -> bool:
        """Whether a step of it runs the user's Python."""
        return any([op.runs_python for op in set(self.ops)])


class NumberedRecording(NamedTuple):
    """A recording as hashable data, in which each value is a number. Equal ones have equal programs.

    `ops`: the operations. `slots`: of each the values that it reads, then those that it writes, all in one tuple, since Python's
    garbage collector goes through each tuple that is kept; `bounds`: where these begin and end. `kinds`: the type of each value,
    JAX's (shape, dtype ...) or a Python number's. `watched`: pairs (entries before the watch began, value). `late`: sources whose
    watch began later, but which count in earlier entries, too. `context`: JAX's settings.
    """

    ops: tuple[Op, ...]
    slots: tuple[int, ...]
    bounds: tuple[int, ...]
    kinds: tuple[Any, ...]
    watched: tuple[tuple[int, int], ...]
    late: tuple[int, ...]
    targets: tuple[int, ...]
    sources: tuple[int, ...]
    include_nondifferentiable: bool
    context: Any


def rows_of(columns: Program | NumberedRecording) -> Iterator[tuple[Op, tuple[int, ...], tuple[int, ...]]]:
    """Each operation, what it reads and what it writes."""
    sides = list(map(columns.slots.__getitem__, map(slice, columns.bounds, columns.bounds[1:])))
    return zip(columns.ops, sides[::2], sides[1::2], strict=True)


class Link(NamedTuple):
    """An entry that gradient passes through: its position, its inputs with gradient, and by output those that it depends on.

    `perturbed` is as in `Step`.
    """

    position: int
    active_ins: Positions
    linked: dict[int, frozenset[int]]
    perturbed: Positions = ()


def active_entries(numbered: NumberedRecording, entries: Sequence[Entry]) -> Iterator[Link]:
    """The entries through which a source reaches a value, in order."""
    kinds, late = numbered.kinds, numbered.late
    carries = {kind: numbered.include_nondifferentiable or type_has_tangent(kind) for kind in set(kinds)}
    carriers = {x for x, kind in enumerate(kinds) if carries[kind]}
    tracked: set[int] = set()
    watched = sorted(numbered.watched, reverse=True)
    active = set(numbered.sources)
    memo: dict[Any, tuple[dict[int, frozenset[int]], bool]] = {}
    for position, (op, ins, outs) in enumerate(rows_of(numbered)):
        while watched and watched[-1][0] <= position:
            tracked.add(watched.pop()[1])
        if tracked.isdisjoint(ins):
            continue
        tracked.update(filter(carriers.__contains__, outs))
        active_ins = tuple([i for i, x in enumerate(ins) if x in active and (x in tracked or x in late)])
        if not active_ins:
            continue
        perturbed: Positions = ()
        if numbered.include_nondifferentiable:
            linked = dict.fromkeys(range(len(outs)), frozenset(active_ins))
        else:
            key = id(op), active_ins, *map(kinds.__getitem__, ins)
            links = memo.get(key)
            if links is None:
                of_op = op.links(entries[position], tuple([kinds[x] for x in ins]), active_ins)
                links = {j: by for j, by in enumerate(of_op.by) if not by.isdisjoint(active_ins)}, of_op.by_perturbation
                if not isinstance(op, PythonOp):
                    memo[key] = links
            linked, by_perturbation = links
            if by_perturbation:
                perturbed = tuple([i for i in active_ins if ins[i] in carriers])
        if linked:
            active.update(map(outs.__getitem__, linked))
            yield new_tuple(Link, (position, active_ins, linked, perturbed))


def relevant_entries(numbered: NumberedRecording, entries: Sequence[Entry]) -> tuple[dict[int, Step], set[int]]:
    """The entries that lead from a source to a target, by position, and all values that a target depends on through them."""
    # A target that is itself a source receives its own cotangent, even if it holds integers.
    needed = {
        x
        for x in numbered.targets
        if numbered.include_nondifferentiable
        or type_has_tangent(numbered.kinds[x])
        or (x in numbered.sources and not is_key(numbered.kinds[x]))
    }
    relevant = {}
    memo: dict[Any, tuple[Positions, Positions]] = {}
    links, rows = list(active_entries(numbered, entries)), list(rows_of(numbered))
    for position, active_ins, linked, perturbed in reversed(links):
        op, ins, outs = rows[position]
        active_outs = tuple([j for j in linked if outs[j] in needed])
        if active_outs:
            key = id(linked), active_outs  # the `links` hold it alive
            if key not in memo:
                by = linked[active_outs[0]].union(*[linked[j] for j in active_outs[1:]])
                active_ins = tuple([i for i in active_ins if i in by])
                memo[key] = active_ins, active_outs  # equal tuples become one object
            active_ins, active_outs = memo[key]
            needed.update(map(ins.__getitem__, active_ins))
            relevant[position] = _new_step((op, ins, outs, active_ins, active_outs, perturbed))
    return dict(reversed(relevant.items())), needed


def slice_program(numbered: NumberedRecording, entries: Sequence[Entry]) -> tuple[Program, tuple[int, ...]]:
    """The program in a numbered recording, and the number of the value in each slot whose value is read."""
    relevant, needed = relevant_entries(numbered, entries)
    steps = list(relevant.values())
    used = {x for step in steps for x in step.ins}
    targets = [x if x in needed else None for x in numbered.targets]
    sources = [x if x in needed and (x in used or x in targets) else None for x in numbered.sources]
    return compact(steps, targets, sources)


def for_perturbed(program: Program) -> Program:
    """`program` for a first derivative: in the place of each operation what stands for it there."""
    return replace(program, ops=tuple([step.op.for_perturbed(step.perturbed) for step in program.steps]))


def compact(
    steps: Sequence[Step], targets: Sequence[int | None], sources: Sequence[int | None]
) -> tuple[Program, tuple[int, ...]]:
    """A program of these steps with its slots numbered anew, and the old number of each slot whose value is read."""
    program = Program.of(steps, targets, sources)
    read = [x for step in steps for x in step.ins]
    if {*map(type, program.ops)} - {Op}:  # others may leave residuals
        read += [x for step in steps for x in step.op.residuals(step.outs)]
    read += [x for x in (*targets, *sources) if x is not None]
    slots: dict[Any, Any] = {x: slot for slot, x in enumerate(dict.fromkeys(chain(read, program.slots)))} | {None: None}
    renumbered = {
        name: tuple(map(slots.__getitem__, getattr(program, name))) for name in ("slots", "targets", "sources")
    }
    return replace(program, **renumbered), tuple(dict.fromkeys(read))


_new_step = functools.partial(new_tuple, Step)
