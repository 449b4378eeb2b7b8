"""What the steps of a program have in common: their functions, and the parameters of these.

Each step is taken apart into *pieces*: the loss of each gradient, what became of the gradients before an optimizer was given
them, and what was assigned to variables. A piece is a slice of a recording. Between the steps it must be the same
operations; what it reads from outside and differs between steps is an argument, what a variable holds is state, and the
rest is constant.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ....jaxprs.types import Value
from ....tape.recording import type_of
from ....tf.values.types import Array, VariableLike
from ...seeing.listing import unused
from ...seeing.parameters import is_parameter_name
from .alike import argument_name, matching, same
from .comparing import STEPS
from .observing import Assigned, Carried, Gradient, Observer, Place, Step
from .pieces import BETWEEN, Kind, Label, Labels, Piece, Refused, piece_of, where

KINDS = 4  # of steps, at one place: batches of different sizes, say


def _in_blocks(step: Step) -> Iterator[Assigned]:
    """What a step assigns that was computed in a tape's block."""
    made = step.made_in()
    return (each for each in step.events if id(each.value) in made)


class Steps:
    """The `kinds` of steps that an `Observer` has seen; each step of `observer.steps` is of ``kind_of[step.number]``.

    Args:
      observer: of the program.

    Raises:
      Refused: something in them cannot be printed as a function of parameters, state and arguments.
    """

    def __init__(self, observer: Observer):
        self.observer = observer
        self.names: dict[int, str] = {}
        self.kinds: list[Kind] = []
        self.kind_of: dict[int, Kind] = {}
        self.variables: dict[str, Any] = {}
        self.initial: dict[str, Any] = {}
        self._ends = [text.split("/")[-1] for _, text in observer.names.values()]
        self.trained = {id(v) for step in observer.steps for each in step.applied for v in each.variables}
        sources = {id(v) for step in observer.steps for each in step.gradients for v in each.variables}
        self.trained |= sources & {key for step in observer.steps for key in step.assigned()}
        # what a block itself assigns, as averages; and of the rest
        self.state = {id(each.variable) for step in observer.steps for each in _in_blocks(step)} - self.trained
        # what is assigned counts if a loss or an update reads it: found by looking until nothing new turns up
        while True:
            before = len(self.state)
            found = [self._pieces(step) for step in observer.steps]
            if len(self.state) == before:
                break
        for step, pieces in zip(observer.steps, found, strict=True):
            self._add(step, pieces)
        self._constants: list[Value] = []  # what steps read that was the same whenever they ran
        often = sorted(self.kinds, key=lambda kind: -len(kind.steps))
        if len(often[0].steps) < 2:
            at = where(often[0].steps[0].gradients[0])
            raise Refused(at, "one step")
        for kind in often:
            self._find_arguments(kind)

    # -- variables

    def name(self, variable: VariableLike) -> str:
        """A name of its own for a variable, which is a Python name."""
        if id(variable) not in self.names:
            _, wish = self.observer.names.get(id(variable), (None, None))
            wish = wish or getattr(variable, "path", None) or getattr(variable, "name", "variable").split(":")[0]
            if id(variable) not in self.trained and self._ends.count(wish.split("/")[-1]) == 1:
                wish = wish.split("/")[-1]
            wish = re.sub(r".*seed_generator_state$", "seed", wish.removeprefix("self."))
            base = re.sub(r"\W+", "_", wish).strip("_") or "variable"
            base = base if is_parameter_name(base) else f"v_{base}"
            name = unused(base, self.variables)
            self.names[id(variable)], self.variables[name] = name, variable
        return self.names[id(variable)]

    def label(self, variable: VariableLike, array: Array) -> Label:
        name = self.name(variable)
        if id(variable) not in self.trained:
            self.state.add(id(variable))
        if name not in self.initial:
            self.initial[name] = self.observer.firsts.get(id(variable), array)
        return self.group(variable), name

    def group(self, variable: VariableLike) -> str:
        return "params" if id(variable) in self.trained else "state"

    def members(self, group: str) -> list[str]:
        """The names of the variables of a group that steps read or change."""
        return [name for name, v in self.variables.items() if name in self.initial and self.group(v) == group]

    def changes(self) -> list[Piece]:
        """The gradients that optimizers are given."""
        return [piece for kind in self.kinds for piece in kind.of_role("change")]

    def places(self, step: Step) -> set[Place]:
        """Where gradients are taken and variables changed, which a printed step replaces."""
        inside = {id(each.variable) for each in _in_blocks(step)}  # which the function is given back
        parts: list[Any] = [a for key, a in step.assigned().items() if key in self.trained | self.state - inside]
        parts = [part for part in parts if not isinstance(part.variable, Carried)]
        return {part.place for part in (*parts, *step.gradients, *step.applied)}

    # -- pieces

    def _labels(self, step: Step) -> Labels:
        """What a step's variables held when it began."""
        held = [pair for each in step.applied for pair in zip(each.variables, each.before, strict=True)]
        events = [each for key, each in step.assigned().items() if key in self.trained | self.state]
        first: dict[int, tuple[Any, Array]] = {}
        for v, old in (*held, *((each.variable, each.before) for each in events)):
            first.setdefault(id(v), (v, old))
        return Labels(self, step.origins, {id(old): self.label(v, old) for v, old in first.values()})

    def _pieces(self, step: Step) -> list[Piece]:
        known = self._labels(step)
        backward = {position for each in step.gradients for position in each.entries}
        entries = [None if i in backward else entry for i, entry in enumerate(step.recording.entries)]
        updates, block = [], step.gradients[0].block
        gradients = {
            id(x): (f"gradients_{i}", self.name(v))
            for i, gradient in enumerate(step.gradients, 1)
            for v, x in zip(gradient.variables, gradient.found, strict=True)
            if x is not None
        }
        now = replace(known, by_id=known.by_id | gradients)  # as the updates go on
        for each in step.applied:
            targets = {self.name(v): x for v, x in zip(each.variables, each.gradients, strict=True) if x is not None}
            updates.append(piece_of("change", each, entries, targets, block, now))
            now.update(each)
        values = self._values_from(step, self.trained | self.state, None)
        if values:
            updates.append(piece_of("assign", step, entries, values, block, now))
        for piece in updates:
            if BETWEEN in piece.labels:
                raise Refused(where(step.applied[0]), "between updates", name=next(iter(piece.labels[BETWEEN])))
        used = {group for piece in updates for group in piece.labels}
        losses = []
        for i, gradient in enumerate(step.gradients, 1):
            if f"gradients_{i}" in used:
                losses.append(self._loss(step, gradient, known, f"gradients_{i}"))
        if not losses:
            raise Refused(where(step.gradients[0]), "nothing changes")
        return [*losses, *updates]

    def _values_from(self, step: Step, variables: set[int], gradient: Gradient | None) -> dict[str, Value]:
        """What a step assigns to these variables, as far as it was computed in a gradient's block; in none, for None."""
        assigned, made = step.assigned(), step.made_in()
        own = [each for key, each in assigned.items() if key in variables and made.get(id(each.value)) is gradient]
        return {self.name(each.variable): each.value for each in own}

    def _loss(self, step: Step, gradient: Gradient, known: Labels, name: str) -> Piece:
        recording = gradient.recording = gradient.recording.folded()
        own = replace(known, by_id=dict(known.by_id))
        for variable, read in recording.variables.values():
            arrays = list(read.values())
            if len(arrays) > 1 and id(variable) in self.trained | self.state:
                raise Refused(where(gradient), "assigned in the block", name=self.name(variable))
            if id(variable) in self.trained:
                own.by_id[id(arrays[0])] = self.label(variable, arrays[0])
        state = self._values_from(step, self.state, gradient)
        strict = replace(own, strict=where(gradient))
        piece_of("loss", gradient, recording.entries, gradient.targets, gradient.block, strict)
        target = gradient.targets[0] if len(gradient.targets) == 1 else gradient.targets
        targets = (target, state) if state else target
        piece = piece_of("loss", gradient, recording.entries, targets, gradient.block, own)
        piece.name = name
        return piece

    # -- kinds

    def _add(self, step: Step, pieces: list[Piece]) -> None:
        for kind in self.kinds:
            if [(a.role, a.key) for a in kind.pieces] == [(b.role, b.key) for b in pieces]:
                kind.steps.append(step)
                for mine, new in zip(kind.pieces, pieces, strict=True):
                    mine.add(new)
                self.kind_of[step.number] = kind
                return
        name = f"update_{len(self.kinds)}" if self.kinds else "update"
        self.kind_of[step.number] = kind = Kind(name, [step], pieces)
        self.kinds.append(kind)
        self._require_few(step, pieces)

    def _require_few(self, step: Step, pieces: list[Piece]) -> None:
        """Refuses programs whose steps are different programs each time."""
        block = pieces[0].subject[0].block
        alike = [kind for kind in self.kinds if kind.block.place == block.place]
        if len(alike) <= KINDS:
            return
        for mine, other in zip(alike[0].pieces, pieces, strict=False):
            pairs = zip(mine.key[0], other.key[0], other.positions, strict=False)  # type: ignore[index]
            line = next((other.entries[i].line for a, b, i in pairs if a != b), None)
            if mine.key != other.key:
                at, text = line or where(pieces[0].subject[0]), f" (`{line.text}`)" if line else ""
                raise Refused(at, "other operations", number=step.number, text=text)

    def _find_arguments(self, kind: Kind) -> None:
        assigned = kind.steps[0].assigned()
        for name, variable in self.variables.items():
            if isinstance(variable, Carried) and id(variable) in assigned and self._begins_anew(variable):
                kind.arguments[name] = [step.assigned()[id(variable)].before for step in kind.steps]
                kind.expressions[name] = variable.path
        early = [i for i, step in enumerate(kind.steps) if step.number < STEPS]
        blocks = [kind.losses[0].subject[i].block for i in early]
        taken = set(self.variables)
        for piece in kind.pieces:
            for position, external in enumerate(piece.externals):
                values = external.values
                if len(values) > 1:
                    varies = any(not same(values[0], x) for x in values[1:])
                else:  # it ran once: what is no constant of the other steps
                    varies = not any(same(values[0], x) for x in self._constants)
                known = self._known(kind, values)
                expression = known and kind.expressions[known]
                if known is None:
                    expression = next(matching(blocks, [values[i] for i in early]), None) if early else None
                own = expression is not None and re.split(r"\W", expression)[0] in blocks[0].names
                if not varies and not (own and np.ndim(values[0]) > 0):
                    self._constants.append(values[0])
                    continue
                if known is None:
                    drawn = any(piece.entries[i].op.name.startswith("random_") for i, _ in external.places)
                    known = argument_name(expression or ("draw" if drawn else None), taken)
                    taken.add(known)
                    kind.arguments[known], kind.expressions[known] = values, expression
                piece.arguments[position] = known
        order = list(blocks[0].names) if early else []
        place = {n: order.index(text) if (text := kind.expressions[n]) in order else len(order) for n in kind.arguments}
        kind.arguments = {n: kind.arguments[n] for n in sorted(place, key=place.__getitem__)}

    def _begins_anew(self, carried: Carried) -> bool:
        """Whether a step did not go on from what the step before had made of a tensor."""
        made = [step.assigned().get(id(carried)) for step in self.observer.steps if step.number < STEPS]
        return any(a is None or b is None or not same(a.after, b.before) for a, b in itertools.pairwise(made))

    def _known(self, kind: Kind, values: list[Value]) -> str | None:
        of_type = [(n, old) for n, old in kind.arguments.items() if type_of(old[0]) == type_of(values[0])]
        return next((n for n, old in of_type if all(map(same, old, values))), None)
