"""The slice of a recording that leads from sources to targets, as a `Program`: hashable data that can be run as a function.

A value is a numbered slot; a step is an operation with the slots that it reads and writes. Two runs of the same code give
equal programs, so that what was compiled for one serves the other.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
    """

    steps: tuple[Step, ...]
    targets: tuple[int | None, ...]
    sources: tuple[int | None, ...]

    def __hash__(self) -> int:
        return self._hash

    @functools.cached_property
    def _hash(self) -> int:  # cached: a long program takes long to hash
        return hash((self.steps, self.targets, self.sources))

    @functools.cached_property
    def runs_python(self) -> bool:
        """Whether a step of it runs the user's Python."""
        return any([step.op.runs_python for step in self.steps])


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

    def entry(self, position: int) -> tuple[Op, tuple[int, ...], tuple[int, ...]]:
        """The operation at `position`, what it reads and what it writes."""
        begin, middle, end = self.bounds[2 * position : 2 * position + 3]
        return self.ops[position], self.slots[begin:middle], self.slots[middle:end]


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
    inexact = [type_has_tangent(kind) for kind in numbered.kinds]
    tracked: set[int] = set()
    watched = sorted(numbered.watched, reverse=True)
    active = set(numbered.sources)
    memo: dict[Any, tuple[dict[int, frozenset[int]], bool]] = {}
    kinds, late = list(map(id, numbered.kinds)), numbered.late  # to hash them takes longer than all else here
    for position in range(len(numbered.ops)):
        op, ins, outs = numbered.entry(position)
        while watched and watched[-1][0] <= position:
            tracked.add(watched.pop()[1])
        if tracked.isdisjoint(ins):
            continue
        for x in outs:
            if inexact[x] or numbered.include_nondifferentiable:
                tracked.add(x)
        active_ins = tuple([i for i, x in enumerate(ins) if x in active and (x in tracked or x in late)])
        if not active_ins:
            continue
        perturbed: Positions = ()
        if numbered.include_nondifferentiable:
            linked = dict.fromkeys(range(len(outs)), frozenset(active_ins))
            active.update(outs)
        else:
            key = id(op), active_ins, *map(kinds.__getitem__, ins)
            links = memo.get(key)
            if links is None:
                of_op = op.links(entries[position], tuple([numbered.kinds[x] for x in ins]), active_ins)
                links = {j: by for j, by in enumerate(of_op.by) if not by.isdisjoint(active_ins)}, of_op.by_perturbation
                if not isinstance(op, PythonOp):
                    memo[key] = links
            linked, by_perturbation = links
            active.update([outs[j] for j in linked])
            if by_perturbation:
                perturbed = tuple([i for i in active_ins if inexact[ins[i]]])
        if linked:
            yield new_tuple(Link, (position, active_ins, linked, perturbed))


class Relevant(NamedTuple):
    """The position of an entry that leads from a source to a target; the rest as in `Step`."""

    position: int
    active_ins: Positions
    active_outs: Positions
    perturbed: Positions


def relevant_entries(numbered: NumberedRecording, entries: Sequence[Entry]) -> tuple[list[Relevant], set[int]]:
    """The entries that lead from a source to a target, and all values that a target depends on through them."""
    # A target that is itself a source receives its own cotangent, even if it holds integers.
    needed = {
        x
        for x in numbered.targets
        if numbered.include_nondifferentiable
        or type_has_tangent(numbered.kinds[x])
        or (x in numbered.sources and not is_key(numbered.kinds[x]))
    }
    relevant = []
    same: dict[Positions, Positions] = {}  # equal tuples become one object
    for position, active_ins, linked, perturbed in reversed(list(active_entries(numbered, entries))):
        _, ins, outs = numbered.entry(position)
        active_outs = tuple([j for j in linked if outs[j] in needed])
        if active_outs:
            by = linked[active_outs[0]].union(*[linked[j] for j in active_outs[1:]])
            active_ins = tuple([i for i in active_ins if i in by])
            needed.update([ins[i] for i in active_ins])
            active_ins, active_outs = same.setdefault(active_ins, active_ins), same.setdefault(active_outs, active_outs)
            relevant.append(new_tuple(Relevant, (position, active_ins, active_outs, perturbed)))
    return relevant[::-1], needed


def slice_program(numbered: NumberedRecording, entries: Sequence[Entry]) -> tuple[Program, tuple[int, ...]]:
    """The program in a numbered recording, and the number of the value in each slot whose value is read."""
    relevant, needed = relevant_entries(numbered, entries)
    steps = [new_tuple(Step, (*numbered.entry(entry[0]), *entry[1:])) for entry in relevant]
    used = {x for step in steps for x in step.ins}
    targets = [x if x in needed else None for x in numbered.targets]
    sources = [x if x in needed and (x in used or x in targets) else None for x in numbered.sources]
    return compact(steps, targets, sources)


def for_perturbed(program: Program) -> Program:
    """`program` for a first derivative: in the place of each operation what stands for it there."""
    steps = [step._replace(op=step.op.for_perturbed(step.perturbed)) for step in program.steps]
    return Program(tuple(steps), program.targets, program.sources)


def compact(
    steps: Sequence[Step], targets: Sequence[int | None], sources: Sequence[int | None]
) -> tuple[Program, tuple[int, ...]]:
    """A program of these steps with its slots numbered anew, and the old number of each slot whose value is read."""
    read = [x for step in steps for x in (*step.ins, *step.op.residuals(step.outs))]
    read += [x for x in (*targets, *sources) if x is not None]
    written = [x for step in steps for x in step.outs]
    slots = {x: slot for slot, x in enumerate(dict.fromkeys([*read, *written]))}
    slot = slots.__getitem__
    numbered = [
        new_tuple(Step, (op, tuple(map(slot, ins)), tuple(map(slot, outs)), *active))
        for op, ins, outs, *active in steps
    ]
    slots_of = [tuple([None if x is None else slot(x) for x in xs]) for xs in (targets, sources)]
    return Program(tuple(numbered), *slots_of), tuple(dict.fromkeys(read))
