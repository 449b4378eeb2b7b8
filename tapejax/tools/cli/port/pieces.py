"""A piece of a program's step: a function of parameters, state and arguments, as it was recorded, and the code for it."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CellType
from typing import Any

import jax
import jax.numpy as jnp

from ....jaxprs import canonical
from ....jaxprs.dependence import SCALARS
from ....jaxprs.types import Value
from ....tape.gradient_tape import GradientTape
from ....tape.recording import Entry, Recording, type_of
from ....tf.values.tensor import Tensor
from ....tf.values.types import Array, Nest
from ...seeing.source import TapeFunction
from ...seeing.tables import cases
from ...writing.graph import Graph, ValueMap, ValueSet
from .alike import content
from .observing import Applied, Block, Carried, Gradient, Place, TrainingStep

# what is known of a value: ("params", "w"), ("gradients_1", "w"), ("updated", "w"), ("state", "n")
Label = tuple[str, str]
_REFUSALS = cases(Path(__file__).with_name("refusals.txt"))
LOSSES = "loss", "value"  # the roles of what gives a loss
BETWEEN = "between"  # the label of what a variable held between two updates


class Refused(Exception):
    """A program that cannot be ported; says which line, why, and what to do by hand."""

    def __init__(self, where: object, case: str, **values: Any):
        why, by_hand = (text.format(**values) for text in _REFUSALS[case])
        super().__init__(f"{where}: {why}\n  by hand: {by_hand}")


@dataclass
class External:
    """What a piece reads from outside: its value in each step, and the places where it does: entry and input."""

    values: list[Value]
    places: list[tuple[int, int]]
    mapped: bool = False  # the piece is given a row of it


@dataclass
class Piece:
    """One function of a kind of step, as the first of its steps recorded it: the part of a recording that leads to targets."""

    role: str  # "loss", "value" (of no gradient), "rows" (a function of each), "change" (of gradients), "assign"
    subject: list[Any]  # the `Gradient`s, `Applied`s of the steps, or nothing
    entries: Sequence[Entry]
    targets: Nest
    block: Block  # of the tape
    key: Hashable  # the same for the same operations
    positions: list[int]  # of those of the entries that are part of it
    externals: list[External]
    labels: dict[str, dict[str, Array]]  # what it reads of variables and gradients
    function: str = ""  # what the function of a loss is called
    arguments: dict[int, str] = field(default_factory=dict)  # position of an external -> the argument


@dataclass
class Kind:
    """Steps that are alike: their `pieces`, and of each argument its values, step by step."""

    steps: list[TrainingStep]
    pieces: list[Piece]
    blocks: list[Block]  # the first of each step
    arguments: dict[str, list[Value]] = field(default_factory=dict)
    expressions: dict[str, str | None] = field(default_factory=dict)  # what the program calls an argument at the block
    name: str = ""  # of its function

    def take(self, other: Kind) -> None:
        """Takes in the steps of a kind whose function is the same."""
        self.steps += other.steps
        self.blocks += other.blocks
        for name, values in self.arguments.items():
            values += other.arguments[name]
        for mine, new in zip(self.pieces, other.pieces, strict=True):
            mine.subject += new.subject
            for external, later in zip(mine.externals, new.externals, strict=False):
                external.values += later.values

    def of_role(self, *roles: str) -> list[Piece]:
        return [piece for piece in self.pieces if piece.role in roles]

    @property
    def key(self) -> Hashable:
        return tuple([(piece.role, piece.key) for piece in self.pieces])

    @property
    def sources(self) -> list[Piece]:
        """What gives the gradients that the other pieces read."""
        return self.of_role(*LOSSES, "rows")


@dataclass
class Labels:
    """The labels of a step's arrays, by their ids."""

    steps: Any  # the `Steps`, which name variables
    by_id: dict[int, Label] = field(default_factory=dict)
    carried: dict[int, Carried] = field(default_factory=dict)  # by the ids of tensors that the step was given
    rows: dict[int, Array] = field(default_factory=dict)  # by the id of a row what it is of

    def of(self, x: Value) -> Label | None:
        variable = None if id(x) in self.by_id else self.steps.observer.owners.get(id(x))
        variable = self.carried.get(id(x)) if isinstance(variable, Carried) else variable
        if variable is not None:
            return self.steps.label(variable, x)
        return self.by_id.get(id(x))

    def update(self, applied: Applied) -> None:
        """What variables held between two updates, and what they hold after one."""
        for v, old, new in zip(applied.variables, applied.before, applied.after, strict=True):
            if self.by_id[id(old)][0] == "updated":
                self.by_id[id(old)] = BETWEEN, self.steps.name(v)
            self.by_id[id(new)] = "updated", self.steps.name(v)


def piece_of(role: str, subject: Any, entries: Sequence[Entry], targets: Nest, block: Block, known: Labels) -> Piece:
    """The piece that leads to the targets, from the arrays that have labels on."""
    ends = jax.tree.leaves(targets)
    graph = Graph(entries)
    positions, wanted = graph.before(ends, known.of), graph.read(ends, known.of) | ValueSet(ends)
    numbers: dict[int, Any] = {}
    externals: dict[int, External] = {}
    labels: dict[str, dict[str, Array]] = {group: {} for group in ("params", "state", "updated")}  # in this order
    parts: list[tuple] = []
    # of a loss all that was recorded: what Python looked at is there, too
    kept: list[Any] = [*entries]
    if role != "loss":
        kept, positions = [entries[position] for position in positions], [*range(len(positions))]

    def number(x: Value, place: tuple[int, int]) -> Any:
        if (label := known.of(x)) is not None:
            labels.setdefault(label[0], {})[label[1]] = x
            return label
        key = id(x) if type(x) not in SCALARS else -len(externals) - 1
        if key in numbers:
            if key in externals:
                externals[key].places.append(place)
            return numbers[key]
        externals[key] = External([known.rows.get(id(x), x)], [place], id(x) in known.rows)
        numbers[key] = len(numbers)
        return len(numbers), type_of(x)

    for position in positions:
        entry = kept[position]
        ins = tuple([number(x, (position, i)) for i, x in enumerate(entry.inputs)])
        numbers |= {id(x): len(numbers) + i for i, x in enumerate(x for x in entry.outputs if known.of(x) is None)}
        parts.append((_key(entry.op), ins))
    key = tuple(parts), tuple([number(x, (-1, i)) for i, x in enumerate(ends)])
    # what is read beside the way to the targets is no argument
    read = {group: {n: x for n, x in arrays.items() if x in wanted} for group, arrays in labels.items()}
    labels = {group: arrays for group, arrays in read.items() if arrays}
    return Piece(role, [subject], kept, targets, block, key, positions, list(externals.values()), labels)


def _key(op: Any) -> Hashable:
    """What is the same for the same operation: of a user's function with a gradient, an operation for each call, its code and
    what it closes over."""
    if not getattr(op, "results", 0):
        return op.canonicalised()
    function: Any = inspect.unwrap(op.fn)
    closed_over = [cell.cell_contents for cell in function.__closure__ or () if cell != CellType()]
    return canonical.key((function.__code__, *[content(x) if isinstance(x, Tensor) else x for x in closed_over]))


def where(part: Block | Gradient | Applied | Place) -> str:
    file, line = part if isinstance(part, tuple) else part.place
    return f"{Path(file).name}:{line}"


# ---- as a function --------------------------------------------------------------------------------------------------


def as_function(piece: Piece, trees: dict[str, Nest], names: dict[str, Value], whole: bool) -> TapeFunction:
    """What `GradientTape.as_function` makes of a piece: a function of `trees` and of the piece's arguments.

    Args:
      trees: nested dicts of arrays of the recording, by the names of parameters.
      names: what the program calls its values.
      whole: whether what was recorded beside the piece counts, which shows what Python has looked at.
    """
    changes: dict[tuple[int, int], Array] = {}
    wrapped: dict[str, Any] = {name: jax.tree.map(Tensor, tree) for name, tree in trees.items()}
    arguments: dict[str, Tensor] = {}
    given: dict[int, Array] = {}  # by the ids of ends
    for position, external in enumerate(piece.externals):
        value = external.values[0][0] if external.mapped else external.values[0]
        if (name := piece.arguments.get(position)) is None:
            changes |= dict.fromkeys(external.places, value)  # one array for all that are equal
            continue
        argument = arguments.setdefault(name, Tensor(jnp.asarray(value)))
        changes |= dict.fromkeys(external.places, argument._array)
        given |= {id(external.values[0]): argument._array for place, _ in external.places if place < 0}
    recording = Recording(watch_accessed=False)
    for x in jax.tree.leaves(trees):
        recording.watch(x)
    for position in range(len(piece.entries)) if whole else piece.positions:
        entry = piece.entries[position]
        inputs = [changes.get((position, i), x) for i, x in enumerate(entry.inputs)]
        recording.entries.append(entry._replace(inputs=tuple(inputs)))
    recording.marks = list(piece.subject[0].recording.marks) if whole and piece.role == "loss" else []
    tape = GradientTape(persistent=True)
    tape._recording = recording
    ends, tree = jax.tree.flatten(piece.targets)
    ends = [Tensor(jnp.asarray(given.get(id(x), x))) for x in ends]
    ordered = sorted(names, key=lambda name: name.startswith("self."))
    named = {own: names[name] for name in ordered if (own := name.removeprefix("self.")).isidentifier()}
    first = next(iter(wrapped), "params")
    target, sources = jax.tree.unflatten(tree, ends), wrapped.pop(first, {})
    ids = {id(x) for values in piece.labels.values() for x in values.values()}
    read = {name: [Tensor(x) for x in jax.tree.leaves(trees[name]) if id(x) in ids] for name in wrapped}
    made = functools.partial(tape._as_function, target, sources, called=ValueMap(), parameter=first, spaces=[named])
    made(
        arguments={name: each for name, each in read.items() if each} | arguments
    )  # which refuses what cannot run again
    return made(arguments=wrapped | arguments, replayable=False)
