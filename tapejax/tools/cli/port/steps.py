"""What the steps of a program have in common: their functions, and the parameters of these.

Each step is taken apart into *pieces*: the loss of each gradient, what became of the gradients before an optimizer was given
them, and what was assigned to variables. A piece is a slice of a recording. Between the steps it must be the same
operations; what it reads from outside and differs between steps is an argument, what a variable holds is state, and the
rest is constant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from ....jaxprs.dependence import SCALARS
from ....jaxprs.types import Value
from ....tape.recording import Entry, type_of
from ....tf.values.types import Array, Nest, VariableLike
from ...seeing.listing import unused
from ...seeing.parameters import is_parameter_name
from .alike import argument_name, equal, matching, named_parts, same
from .observing import Applied, Assigned, Block, Carried, Computed, Gradient, Observer, Step
from .pieces import BETWEEN, Kind, Label, Piece, Refused, merge, piece_of, where

KINDS = 4  # of steps, at one place: batches of different sizes, say


class Steps:
    """The `kinds` of steps that an `Observer` has seen; each step of `observer.steps` is of ``kind_of[step.number]``.

    Args:
      outputs: for a block, the names whose values the program uses after it.
      state: ids of variables that are state in any case.
      apart: places of statements of the program whose assignments are no part of a step.

    Raises:
      Refused: something in them cannot be printed as a function of parameters, state and arguments.
    """

    def __init__(self, observer: Observer, outputs: Callable[[Block], list[str]], state: set[int], apart: set[int]):
        self.observer, self.outputs, self.apart = observer, outputs, apart
        self.names: dict[int, str] = {}
        self.kinds: list[Kind] = []
        self.kind_of: dict[int, int] = {}
        self.variables: dict[str, Any] = {}
        self.initial: dict[str, Any] = {}
        self.trained = {id(v) for step in observer.steps for each in step.applied for v in each.variables}
        sources = {id(v) for step in observer.steps for each in step.gradients for v in each.variables}
        self.trained |= sources & {key for step in observer.steps for key in self.assigned(step)}
        self.state = set(state)
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
            at = where(often[0].steps[0], often[0].steps[0].gradients[0])
            raise Refused(at, "one step")
        for kind in often:
            self._find_arguments(kind)

    def assigned(self, step: Step) -> dict[int, Assigned]:
        """What a step assigns, by the id of the variable."""
        return step.assigned(self.apart)

    # -- variables

    def name(self, variable: VariableLike) -> str:
        """A name of its own for a variable, which is a Python name."""
        if id(variable) not in self.names:
            _, wish = self.observer.names.get(id(variable), (None, None))
            wish = wish or getattr(variable, "path", None) or getattr(variable, "name", "variable").split(":")[0]
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
            firsts = [self.observer.firsts.get((id(variable), place)) for place in (0, *self.apart)]
            _, self.initial[name] = min(filter(None, firsts), key=lambda first: first[0], default=(0, array))
        return self.group(variable), name

    def group(self, variable: VariableLike) -> str:
        return "params" if id(variable) in self.trained else "state"

    def members(self, group: str) -> list[str]:
        """The names of the variables of a group that steps read or change."""
        return [name for name, v in self.variables.items() if name in self.initial and self.group(v) == group]

    def changes(self) -> list[Piece]:
        """The gradients that optimizers are given."""
        return [piece for kind in self.kinds for piece in kind.of_role("change")]

    def lines(self, step: Step) -> set[int]:
        """The lines at which gradients are taken and variables changed, which a printed step replaces."""
        parts: list[Any] = [a for key, a in self.assigned(step).items() if key in self.trained | self.state]
        parts = [part for part in parts if not isinstance(part.variable, Carried)]
        return {part.line for part in (*parts, *step.gradients, *step.applied)}

    # -- pieces

    def _labels(self, step: Step) -> tuple[dict[int, tuple[Label, Array]], dict[int, tuple[Label, Array]]]:
        """What a step's variables held when it began, and the gradients taken in it: the label of each array, by its id."""
        known: dict[int, tuple[Label, Array]] = {}
        changed = set()
        for each in step.applied:
            for v, old in zip(each.variables, each.before, strict=True):
                if id(v) not in changed:
                    known[id(old)] = self.label(v, old), old
                changed.add(id(v))
        for key, assigned in self.assigned(step).items():
            if key not in changed and key in self.trained | self.state:
                known[id(assigned.before)] = self.label(assigned.variable, assigned.before), assigned.before
        gradients = {
            id(x): ((f"gradients_{i}", self.name(v)), x)
            for i, gradient in enumerate(step.gradients, 1)
            for v, x in zip(gradient.variables, gradient.found, strict=True)
            if x is not None
        }
        return known, gradients

    def _pieces(self, step: Step) -> list[Piece]:
        known, gradients = self._labels(step)
        backward = {position for each in step.gradients for position in each.entries}
        entries = [None if i in backward else entry for i, entry in enumerate(step.recording.entries)]
        updates, block = [], step.gradients[0].block
        now = {**known, **gradients}  # as the updates go on
        for each in step.applied:
            targets = {self.name(v): x for v, x in zip(each.variables, each.gradients, strict=True) if x is not None}
            updates.append(self._piece("change", each, entries, targets, now, step, block))
            self._relabel(now, each)
        values = self._values_from(step, self.trained | self.state, None)
        if values:
            updates.append(self._piece("assign", step, entries, values, now, step, block))
        for piece in updates:
            between = [name for group, name in piece.labels if group == BETWEEN]
            if between:
                raise Refused(where(step, step.applied[0]), "between updates", name=between[0])
        used = {label[0] for piece in updates for label in piece.labels}
        losses = []
        for i, gradient in enumerate(step.gradients, 1):
            if f"gradients_{i}" in used:
                losses.append(self._loss(step, gradient, known, f"gradients_{i}"))
        if not losses:
            raise Refused(where(step, step.gradients[0]), "nothing changes")
        return [*losses, *updates]

    def _values_from(self, step: Step, variables: set[int], gradient: Gradient | None) -> dict[str, Value]:
        """What a step assigns to these variables, as far as it was computed in a gradient's block; in none, for None."""

        def block_of(value: Value) -> Gradient | None:
            made = ((g, x) for g in step.gradients for e in g.recording.entries for x in e.outputs)
            return next((g for g, x in made if x is value), None)

        assigned = [each for key, each in self.assigned(step).items() if key in variables]
        return {self.name(each.variable): each.value for each in assigned if block_of(each.value) is gradient}

    def _loss(self, step: Step, gradient: Gradient, known: dict, name: str) -> Piece:
        recording = gradient.recording
        own = dict(known)
        for variable, read in recording.variables.values():
            arrays = list(read.values())
            if len(arrays) > 1 and id(variable) in self.trained | self.state:
                raise Refused(where(step, gradient), "assigned in the block", name=self.name(variable))
            if id(variable) in self.trained:
                own[id(arrays[0])] = self.label(variable, arrays[0]), arrays[0]
        made = {id(x) for e in recording.entries for x in e.outputs}
        outputs = {n: gradient.block.after.get(n) for n in self.outputs(gradient.block)}
        ends = {id(x) for x in gradient.targets}
        outputs = {n: x for n, x in outputs.items() if id(x) in made - ends}
        state = self._values_from(step, self.state, gradient)
        rest = step, gradient.block
        self._piece("loss", gradient, recording.entries, gradient.targets, own, *rest, strict=where(step, gradient))
        target = gradient.targets[0] if len(gradient.targets) == 1 else gradient.targets
        targets = (target, outputs | state) if outputs or state else target
        piece = self._piece("loss", gradient, recording.entries, targets, own, *rest)
        piece.name = name
        return piece

    def _piece(
        self,
        role: str,
        subject: Any,
        entries: Sequence[Entry | None],
        targets: Nest,
        known: dict[int, tuple[Label, Array]],
        step: Step,
        block: Block,
        *,
        strict: str = "",
        given: frozenset[int] = frozenset(),
    ) -> Piece:
        """The piece that leads to the targets, from the arrays whose ids are `given` on; a variable's value counts as what
        was assigned to it in the step.

        Raises:
          Refused: a loss, at the line `strict`, depends on what was assigned, which carries no gradient.
        """

        apart = {id(event.after) for event in step.events if event.places & self.apart}
        held = {key: x for key, x in step.held.items() if key not in apart}

        def resolved(x: Value) -> Value:
            while id(x) not in known and id(x) in held and id(x) in self.observer.values:
                if strict and getattr(x, "dtype", np.dtype(int)).kind in "fc":
                    raise Refused(strict, "assigned before the gradient", name=self.name(held[id(x)][1]))
                x = self.observer.values[id(x)][0]
            return x

        def labelled(x: Value) -> Label | None:
            if id(x) in known:
                return known[id(x)][0]
            known_as = self.observer.owners.get(id(x)) or self.observer.read.get(id(x))
            return None if known_as is None else self.label(known_as[1], x)

        return piece_of(role, subject, entries, targets, block, resolved, labelled, given)

    def _relabel(self, known: dict[int, tuple[Label, Array]], applied: Applied) -> None:
        """What variables held between two updates, and what they hold after one."""
        for v, old, new in zip(applied.variables, applied.before, applied.after, strict=True):
            if known[id(old)][0][0] == "updated":
                known[id(old)] = (BETWEEN, self.name(v)), old
            known[id(new)] = ("updated", self.name(v)), new

    # -- expressions

    def expression(self, runs: Sequence[Computed], texts: dict[int, str]) -> tuple[list[Piece], dict[str, str]] | None:
        """The functions that an expression of the program was, and a text for each argument.

        Args:
          texts: those of its parts that may be arguments, the better ones first.

        Returns None if the expression depends on more than these and what variables hold when it is evaluated.
        """
        pieces: list[Piece] = []
        arguments: dict[str, str] = {}
        for run, value in zip(runs, self._values(runs), strict=True):
            piece = self._outside(run, value, texts)
            if piece is None:
                return None
            merge(pieces, piece)
        for piece in pieces:
            blocks = [Block("", 0, named_parts(run, texts), ()) for run in piece.subject]
            for position, values in enumerate(piece.values):
                constant = all(same(values[0], x) for x in values)
                text = next(matching(blocks, values), None)
                kept = constant and text is None and np.size(values[0]) > 1
                if kept and any(id(event.variable) in self.trained for event in runs[0].events):
                    return None  # weights that were kept somewhere
                if constant and (text is None or type(values[0]) in SCALARS):
                    continue
                if text is None:
                    return None
                known = [name for name, other in arguments.items() if other == text]
                piece.arguments[position] = known[0] if known else argument_name(text, set(arguments))
                arguments[piece.arguments[position]] = text
        return pieces, arguments

    def _outside(self, run: Computed, value: Nest, texts: dict[int, str]) -> Piece | None:
        """What was computed outside of steps, if it is of what variables hold and of arguments."""
        step = run.step
        inside = {id(run.parts[p]) for p in texts if p in run.parts} - set(map(id, jax.tree.leaves(value)))
        gradients = self._labels(step)[1] if step.number >= 0 else {}
        # what a statement itself assigns counts as that, and what a variable held before as what it holds
        outside = Step(-1, step.tape, step.recording)
        outside.held = {id(event.after): (event.after, event.variable) for event in run.events}
        current = run.current | {id(event.variable): event.before for event in reversed(run.events)}
        block = Block("", 0, named_parts(run, texts), ())
        entries = step.recording.entries[: run.end]
        piece = self._piece("value", run, entries, value, gradients, outside, block, given=frozenset(inside))
        # a ported step changes variables where the block was
        changed = {id(x) for each in step.applied for x in each.before}
        seen = step.number in self.kind_of  # of another step what its own statements assign is no part
        events = (event for event in step.events if not event.places & self.apart and (seen or not event.places))
        changed |= {id(event.before) for event in events}
        for (group, name), x in piece.labels.items():
            old = current.get(id(self.variables[name]), x) is not x or id(x) in changed
            if old or group not in ("params", "state"):
                return None
        return piece

    def _values(self, runs: Sequence[Computed]) -> list[Nest]:
        """What expressions gave, or by the names of variables what statements assigned to them."""
        if not runs[0].events:
            return [run.value for run in runs]
        values: list[Any] = [{self.name(event.variable): event.value for event in run.events} for run in runs]
        for name in set.intersection(*map(set, values)):
            for key in runs[0].current:  # the copy of a variable, which may have gone through NumPy
                pairs = [(run.current.get(key), each[name]) for run, each in zip(runs, values, strict=True)]
                if all(equal(x, value) for x, value in pairs) and any(np.ptp(np.asarray(x)) for x, _ in pairs):
                    for (x, _), each in zip(pairs, values, strict=True):
                        each[name] = x
                    break
        return values

    def output(self, runs: Sequence[Computed], name: str) -> bool:
        """Makes the value of an expression in a step, which depends on its gradients, one more result of the step."""
        made = False
        for kind in self.kinds:
            pieces: list[Piece] = []
            for run in runs:
                if run.step in kind.steps:
                    merge(pieces, self._inside(run))
            if not pieces:
                continue
            piece, *others = pieces
            at = [kind.steps.index(run.step) for run in piece.subject]
            for position, values in enumerate(piece.values):
                if all(same(values[0], x) for x in values):
                    continue
                known = (n for n, of_all in kind.arguments.items() if all(map(same, (of_all[i] for i in at), values)))
                piece.arguments[position] = next(known, "")
            between = any(group == BETWEEN for group, _ in piece.labels)
            if others or between or "" in piece.arguments.values():
                return False
            piece.name = name
            kind.pieces.append(piece)
            made = True
        return made

    def _inside(self, run: Computed) -> Piece:
        """What was computed in a step, of its gradients and of what variables held before and after."""
        step = run.step
        known, gradients = self._labels(step)
        for each in step.applied:
            self._relabel(known, each)
        entries: list[Any] = step.recording.entries[: run.end]
        for gradient in step.gradients:
            entries[gradient.entries.start : gradient.entries.stop] = [None] * len(gradient.entries)
        return self._piece("value", run, entries, run.value, {**known, **gradients}, step, step.gradients[0].block)

    # -- kinds

    def _add(self, step: Step, pieces: list[Piece]) -> None:
        for i, kind in enumerate(self.kinds):
            if [(a.role, a.key) for a in kind.pieces] == [(b.role, b.key) for b in pieces]:
                kind.steps.append(step)
                for mine, new in zip(kind.pieces, pieces, strict=True):
                    merge([mine], new)
                self.kind_of[step.number] = i
                return
        self.kind_of[step.number] = len(self.kinds)
        self.kinds.append(Kind([step], pieces))
        self._require_few(step, pieces)

    def _require_few(self, step: Step, pieces: list[Piece]) -> None:
        """Refuses programs whose steps are different programs each time."""
        block = pieces[0].subject[0].block
        alike = [kind for kind in self.kinds if (kind.block.file, kind.block.line) == (block.file, block.line)]
        if len(alike) <= KINDS:
            return
        for mine, other in zip(alike[0].pieces, pieces, strict=False):
            pairs = zip(mine.key[0], other.key[0], other.positions, strict=False)  # type: ignore[index]
            line = next((other.entries[i].line for a, b, i in pairs if a != b), None)
            if mine.key != other.key:
                at, text = line or where(step, pieces[0].subject[0]), f" (`{line.text}`)" if line else ""
                raise Refused(at, "other operations", number=step.number, text=text)

    def _find_arguments(self, kind: Kind) -> None:
        for name, variable in self.variables.items():
            if isinstance(variable, Carried) and id(variable) in self.assigned(kind.steps[0]):
                kind.arguments[name] = [self.assigned(step)[id(variable)].before for step in kind.steps]
                kind.expressions[name] = variable.path
        early = [i for i, step in enumerate(kind.steps) if step.number < self.observer.keep]
        blocks = [kind.losses[0].subject[i].block for i in early]
        taken = set(self.variables)
        for piece in kind.pieces:
            for position, values in enumerate(piece.values):
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
                    known = argument_name(expression, taken)
                    taken.add(known)
                    kind.arguments[known], kind.expressions[known] = values, expression
                piece.arguments[position] = known
        order = list(blocks[0].names) if early else []
        place = {n: order.index(text) if (text := kind.expressions[n]) in order else len(order) for n in kind.arguments}
        kind.arguments = {n: kind.arguments[n] for n in sorted(place, key=place.__getitem__)}
        kind.expressions = {n: kind.expressions[n] for n in kind.arguments}

    def _known(self, kind: Kind, values: list[Value]) -> str | None:
        of_type = [(n, old) for n, old in kind.arguments.items() if type_of(old[0]) == type_of(values[0])]
        return next((n for n, old in of_type if all(map(same, old, values))), None)
