"""What the steps of a program have in common: their functions, and the parameters of these.

Each step is taken apart into *pieces*: the loss of each gradient, what became of the gradients before an optimizer was given
them, and what was assigned to variables. A piece is a slice of a recording. Between the steps it must be the same
operations; what it reads from outside and differs between steps is an argument, what a variable holds is state, and the
rest is constant.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ....jaxprs.types import Value
from ....tape.recording import Entry
from ....tf.values.types import Array, VariableLike
from ....tf.values.variable import Variable
from ...seeing.listing import unused
from ...seeing.parameters import is_parameter_name
from ...writing.graph import Graph, ValueSet
from .alike import argument_name, content, expression_of
from .comparing import STEPS
from .observing import Assigned, Block, Carried, Gradient, Observer, Place, TrainingStep, followed, merged, threaded
from .pieces import BETWEEN, Kind, Label, Labels, Piece, Refused, piece_of, where

KINDS = 4  # of steps, at one place: batches of different sizes, say


def _in_blocks(step: TrainingStep) -> Iterator[Assigned]:
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
        self.places_in_lists: dict[str, tuple[str, int]] = {}  # by the names of variables
        self.initial: dict[str, Any] = {}
        self.plain: set[Hashable] = set()  # the keys of losses which are given what was computed before their blocks
        self.resets: dict[int, dict[str, Value]] = {}  # what variables are set to before a step, by its number
        models = [(text, model.name, {*map(id, model.weights)}) for text, model in observer.models.values()]
        self._models = sorted(models, key=lambda model: len(model[2]))
        self._ends = [text.split("/")[-1] for _, text in observer.names.values()]
        self.trained = {id(v) for step in observer.steps for each in step.applied for v in each.variables}
        sources = {id(v) for step in observer.steps for each in step.gradients for v in each.variables}
        self.trained |= sources & {key for step in observer.steps for key in step.assigned()}
        # what a block itself assigns, as averages; and of the rest
        self.state = {id(each.variable) for step in observer.steps for each in _in_blocks(step)} - self.trained
        self.state |= {key for step in observer.steps for key in self._averages(step)}
        self.evaluated = False
        self.evaluated = not any(map(self._used, observer.steps))  # by an optimizer that is no part of the steps
        if self.evaluated:
            if not any(g.asked or step.resets for step in observer.steps for g in step.gradients):
                raise Refused(where(observer.steps[0].gradients[-1]), "nothing changes")
            self.trained |= sources
        for step in observer.steps:
            step.nest(self._used(step), observer.owners)
        taken = self._found()
        for each in taken:
            self._add(*each)
        self._note_resets([step for step, _ in taken])
        self._constants: dict[Hashable, Value] = {}  # what steps read that was the same whenever they ran
        often = sorted(self.kinds, key=lambda kind: -len(kind.steps))
        if len(often[0].steps) < 2:
            raise Refused(where(often[0].steps[0].gradients[0]), "one step")
        for kind in often:
            self._find_arguments(kind)

    def _averages(self, step: TrainingStep) -> Iterator[int]:
        """The ids of what a step makes an average of one trained variable: no loss reads it, but it is what is wanted."""
        assigned = {key: each for key, each in step.assigned().items() if not isinstance(each.variable, Carried)}
        updated = ValueSet(x for each in step.applied for x in each.after)
        updated |= ValueSet(each.value for key, each in assigned.items() if key in self.trained)
        graph = Graph(step.forward())
        for key, each in assigned.items():
            read = graph.read([each.value]) & updated
            if key not in self.trained and [np.shape(x) for x in read] == [np.shape(each.value)]:
                yield key

    def _found(self) -> list[tuple[TrainingStep, list[Piece]]]:
        """The steps with their pieces. What is assigned counts if a loss or an update reads it: until nothing new turns up."""
        first = set(self.state), dict(self.initial)
        while True:
            before = len(self.state)
            pairs = [(step, pieces) for step in self.observer.steps if (pieces := self._pieces(step))]
            if other := self._computed_sometimes(pairs):
                self.plain |= other
                self.state, self.initial = set(first[0]), dict(first[1])
            elif len(self.state) == before:
                return pairs

    def _computed_sometimes(self, pairs: list[tuple[TrainingStep, list[Piece]]]) -> set[Hashable]:
        """The keys of losses whose steps do not all compute the same of variables before the block."""
        keys: dict[tuple, set[tuple]] = {}
        for _, pieces in pairs:
            losses, before = (tuple(p.key for p in pieces if p.role == role) for role in ("loss", "before"))
            keys.setdefault(losses, set()).add(before)
        return {key for losses, befores in keys.items() if len(befores) > 1 for key in losses}

    def _used(self, step: TrainingStep) -> list[Gradient]:
        """The gradients of which something in a step's updates is made; all, if an optimizer outside makes these."""
        if self.evaluated:
            return step.gradients
        made = step.made_in()
        ends = [x for each in step.applied for x in each.gradients if x is not None]
        ends += [each.value for each in self._assigned(step, self.changing) if id(each.value) not in made]
        ends, entries = [followed(x, step.values) for x in ends], step.forward()
        graph = Graph(entries)
        read = graph.read(ends) | ValueSet(ends)
        results = ValueSet(x for i in graph.before(ends) for x in entries[i].outputs)

        def uses(each: Gradient) -> bool:
            own = (x for i in each.entries for x in step.recording.entries[i].outputs)
            return not (results.isdisjoint(own) if each.inside else read.isdisjoint(each.found))

        return [each for each in step.gradients if uses(each)]

    def _note_resets(self, steps: list[TrainingStep]) -> None:
        """What the program sets variables to before each of the steps."""
        pending: dict[str, Value] = {}
        now: dict[str, Value] = {}
        for step in self.observer.steps:
            if step in steps:
                named = step.gradients[0].block.before
                carried = [(n, v) for n, v in self.variables.items() if isinstance(v, Carried) and v.path in named]
                anew = {n: named[v.path] for n, v in carried if n in self.initial}
                pending |= {n: x for n, x in anew.items() if now.get(n, self.initial[n]) is not x}
                self.resets[step.number], pending = {n: x for n, x in pending.items() if n in self.initial}, {}
                now |= anew
            assigned = self._assigned(step, self.changing)
            now |= {self.name(e.variable): e.after for e in assigned if isinstance(e.variable, Carried)}
            pending |= {self.name(e.variable): e.after for e in step.resets}

    # -- variables

    @property
    def changing(self) -> set[int]:
        """The ids of the variables that steps train, or whose values they keep."""
        return self.trained | self.state

    def _assigned(self, step: TrainingStep, variables: set[int]) -> list[Assigned]:
        """What a step assigns to these variables."""
        return [each for key, each in step.assigned().items() if key in variables]

    def name(self, variable: VariableLike) -> str:
        """A name of its own for a variable, which is a Python name."""
        if id(variable) not in self.names:
            _, hint = self.observer.names.get(id(variable), (None, getattr(variable, "path", "variable")))
            listed = re.fullmatch(r"(?:self\.)?(\w+)\[(\d+)\]", hint)
            if id(variable) not in self.trained and self._ends.count(hint.split("/")[-1]) == 1:
                hint = hint.split("/")[-1]
            hint = re.sub(r".*seed_generator_state$", "seed", hint.removeprefix("self."))
            base = re.sub(r"\W+", "_", hint).strip("_") or "variable"
            base = base if is_parameter_name(base) else f"v_{base}"
            name = unused(base, self.variables)
            self.names[id(variable)], self.variables[name] = name, variable
            if listed:
                self.places_in_lists[name] = listed[1], int(listed[2])
        return self.names[id(variable)]

    def label(self, variable: VariableLike, array: Array) -> Label:
        name = self.name(variable)
        if self.group(name) == "state":
            self.state.add(id(variable))
        self.initial.setdefault(name, self.observer.firsts.get(id(variable), array))
        return self.group(name), name

    def group(self, name: str) -> str:
        return "params" if id(self.variables[name]) in self.trained else "state"

    def members(self, group: str) -> list[str]:
        """The names of the variables of a group that steps read or change."""
        return [name for name in self.variables if name in self.initial and self.group(name) == group]

    def path(self, name: str) -> tuple[str, ...]:
        """The path of a variable of Keras's, with the program's name for the smallest model that has it; of another one the names
        of the objects that it is in."""
        variable = self.variables[name]
        path = tuple(getattr(variable, "path", "").split("/"))
        for text, own, ids in self._models:
            if id(variable) in ids:
                return text, *path[own in path[:-1] and path.index(own) + 1 :]
        if isinstance(variable, Variable):
            _, hint = self.observer.names.get(id(variable), (None, ""))
            path = tuple(re.findall(r"\w+", re.sub(r"\W+(\d+)\b", r"_\1", hint.removeprefix("self."))))
        return path

    def of_role(self, *roles: str) -> list[Piece]:
        return [piece for kind in self.kinds for piece in kind.of_role(*roles)]

    def after(self, step: TrainingStep | None, group: str) -> dict[str, Value]:
        """What the variables of a group held after a step, before any was set anew for the next; for None, at first."""
        carried = {name: self.initial[name] for name in self.members(group)}
        if step is None:
            return carried
        for each in self.observer.steps[: self.observer.steps.index(step) + 1]:
            carried |= self.resets.get(each.number, {})
            carried |= {self.names.get(key, ""): a.after for key, a in each.assigned().items()}
        # of a variable what it held, whatever the order in which it was assigned and updated
        held = step.held | {id(e.variable): e.before for e in reversed(step.resets)}
        return {name: held.get(id(self.variables[name]), carried[name]) for name in self.members(group)}

    def places(self, step: TrainingStep) -> list[Place]:
        """Where gradients are taken and variables changed, which a printed step replaces."""
        inside = {id(each.variable) for each in _in_blocks(step)}  # which the function is given back
        own = self._assigned(step, self.trained | self.state - inside)
        parts: list[Any] = [each for each in own if not isinstance(each.variable, Carried)]
        used = self._used(step)
        return sorted({part.place for part in (*parts, *used, *(each.block for each in used), *step.applied)})

    # -- pieces

    def _labels(self, step: TrainingStep) -> Labels:
        """What a step's variables held when it began."""
        held = [(e.variable, e.before) for each in step.applied for e in step.before(each)]
        held += [pair for each in step.applied for pair in zip(each.variables, each.before, strict=True)]
        sources = (pair for g in step.gradients for pair in zip(g.variables, g.held, strict=True))
        held += [(v, x) for v, x in sources if isinstance(v, Carried) and id(v) in self.trained]
        events = self._assigned(step, self.changing)
        held += [(each.variable, each.before) for each in events if each.before is not each.after]
        first = {id(pair[0]): pair for pair in reversed(held)}
        labels = Labels(self, {id(old): self.label(v, old) for v, old in reversed(first.values())})
        for text, x in step.gradients[0].block.before.items():  # what earlier steps made is called as it is now
            carried = self.observer.carried.get(text)
            if carried and (id(x) not in labels.carried or id(carried) in self.changing):
                labels.carried[id(x)] = carried
        return labels

    def _pieces(self, step: TrainingStep) -> list[Piece]:
        """Those of a step; none if it changes nothing by gradients."""
        used = self._used(step)
        if not used:
            return []
        known, block = self._labels(step), used[0].block
        plain = [each for each in used if not each.inside]
        value = functools.partial(followed, origins=step.values, known=known.by_id)
        forward = step.forward(known.by_id)
        returned, gradients = dict[int, Label](), dict[int, Label]()  # what functions of losses give beside, and theirs
        for i, each in enumerate(plain, 1):
            named = [(self.name(v), x) for v, x in each.pairs]
            named += (each.rows.others if each.rows else {}).items()
            gradients |= {id(x): (f"gradients_{i}", name) for name, x in named}
            returned |= {id(x): (f"found_{i}", name) for name, x in self._values_from(step, self.state, each).items()}
        now = replace(known, by_id=returned | known.by_id | gradients)  # as the updates go on
        updates, early = list[Piece](), list[Assigned]()
        for applied in step.applied:
            if first := merged(step.before(applied), [*step.resets, *early]).values():
                early += step.before(applied)
                targets = {self.name(each.variable): value(each.value) for each in first}
                updates.append(piece_of("assign", step, forward, targets, block, now))
                now.by_id |= {id(each.after): ("updated", self.name(each.variable)) for each in first}
            pairs = zip(applied.variables, applied.gradients, strict=True)
            targets = {self.name(v): value(x) for v, x in pairs if x is not None}
            updates.append(piece_of("change", applied, forward, targets, block, now))
            now.update(applied)
        values = self._values_from(step, self.changing, None)
        values = {name: value(x) for name, x in values.items()}
        if values and not self.evaluated:
            updates += self._assigning(step, forward, values, block, now)
        for piece in updates:
            if BETWEEN in piece.labels:
                raise Refused(where(step.applied[0]), "between updates", name=next(iter(piece.labels[BETWEEN])))
        losses = [self._loss(step, each, known) for each in plain]
        if not plain:
            for one in [each for each in used if each.targets][:1]:
                losses.append(piece_of("value", one, forward, one.target, one.block, known))
        before = self._before(step, [each for each in losses if each.role == "loss"], known)
        return [*before, *losses, *updates]

    def _assigning(
        self, step: TrainingStep, entries: Sequence[Entry], values: dict[str, Value], block: Block, known: Labels
    ) -> list[Piece]:
        """What a step assigns, a model's or a list's variables by themselves; what is computed of one another is one piece."""
        parts: dict[str, dict[str, Value]] = {}
        for name, x in values.items():
            parts.setdefault(self.owner(name), {})[name] = x
        whole = piece_of("assign", step, entries, values, block, known)
        pieces = [piece_of("assign", step, entries, part, block, known) for part in parts.values()]
        return pieces if sum(len(piece.positions) for piece in pieces) <= len(whole.positions) else [whole]

    def owner(self, name: str) -> str:
        """What has a variable of the state: the list, or the model; nothing for one by itself."""
        path = self.path(name)
        model = path[0] if len(path) > 1 and name != "seed" else ""
        return "" if self.group(name) == "params" else self.places_in_lists.get(name, (model,))[0]

    def _before(self, step: TrainingStep, losses: Sequence[Piece], known: Labels) -> list[Piece]:
        """What losses read that was computed of variables as they are, before their blocks: a target network's values, say, or an
        attack by a gradient."""
        stale = [*step.stale, *(x for each in losses for x in each.subject[0].recorded)]
        before = [*step.earlier, *step.forward(known.by_id)]
        fresh, targets = self.observer.fresh(before, stale), dict[str, Value]()
        for loss in losses:
            read = ValueSet(external.values[0] for external in loss.externals)
            for x in [x for entry in before for x in entry.outputs if x in read and x in fresh]:
                if loss.key not in self.plain and x not in ValueSet(targets.values()):
                    targets[argument_name(expression_of([loss.block], [x]) or "value", {*targets})] = x
        # what has a name is an argument, if it is not computed of variables
        named = {id(x) for loss in losses for x in loss.block.before.values()}
        entries = [e for e in before if any(x in fresh or id(x) not in named for x in e.outputs)]
        if not targets:
            return []
        return [piece_of("before", losses[0].subject[0], entries, targets, losses[0].block, known)]

    def _values_from(self, step: TrainingStep, variables: set[int], gradient: Gradient | None) -> dict[str, Value]:
        """What a step assigns to these variables, as far as it was computed in a gradient's block; in none, for None."""
        made = step.made_in()
        early = {id(e.value) for applied in step.applied for e in step.before(applied)}
        own = [each for each in self._assigned(step, variables) if id(each.value) not in early]
        return {self.name(each.variable): each.value for each in own if made.get(id(each.value)) is gradient}

    def _loss(self, step: TrainingStep, gradient: Gradient, known: Labels) -> Piece:
        recording = gradient.recording = gradient.recording.folded()
        own = replace(known, by_id=dict(known.by_id))
        for variable, read in recording.variables.values():
            if id(variable) in self.trained:
                if len(read) > 1:
                    raise Refused(where(gradient), "assigned in the block", name=self.name(variable))
                first = next(iter(read.values()))
                own.by_id[id(first)] = self.label(variable, first)
        entries = threaded(recording.entries, step.origins, own.by_id)
        if gradient.rows:
            own.rows = gradient.rows.of
            results = {key if isinstance(key, str) else self.name(key): x for key, x in gradient.rows.results}
            return piece_of("rows", gradient, entries, results, gradient.block, own)
        self._require_gradient(step, gradient, own)
        state = self._values_from(step, self.state, gradient)
        targets = (gradient.target, state) if state else gradient.target
        return piece_of("loss", gradient, entries, targets, gradient.block, own)

    def _require_gradient(self, step: TrainingStep, gradient: Gradient, known: Labels) -> None:
        """Refuses a loss that is computed of what was assigned in its step: no gradient passes there."""
        for x in Graph(gradient.recording.entries).read(gradient.targets):
            if id(x) not in known.by_id and x in step.origins and x.dtype.kind in "fc":
                raise Refused(
                    where(gradient), "assigned before the gradient", name=self.name(self.observer.owners[id(x)])
                )

    # -- kinds

    def _add(self, step: TrainingStep, pieces: list[Piece]) -> None:
        new = Kind([step], pieces, [pieces[0].block])
        self.kind_of[step.number] = kind = next((known for known in self.kinds if known.key == new.key), new)
        if kind is not new:
            kind.take(new)
            return
        self.kinds.append(kind)
        self._require_few(step, pieces)

    def _require_few(self, step: TrainingStep, pieces: list[Piece]) -> None:
        """Refuses programs whose steps are different programs each time."""
        block = pieces[0].block
        alike = [kind for kind in self.kinds if kind.blocks[0].place == block.place]
        if len(alike) <= KINDS:
            return
        for mine, other in zip(alike[0].pieces, pieces, strict=False):
            pairs = zip(mine.key[0], other.key[0], other.positions, strict=False)  # type: ignore[index]
            line = next((other.entries[i].line for a, b, i in pairs if a != b), None)
            if mine.key != other.key:
                at, text = line or where(block), f" (`{line.text}`)" if line else ""
                raise Refused(at, "other operations", number=step.number, text=text)

    def _find_arguments(self, kind: Kind) -> None:
        early = sum(step.number < STEPS for step in kind.steps)  # which are the first of them
        blocks = kind.blocks[:early]
        computed = {id(x): name for piece in kind.of_role("before") for name, x in piece.targets.items()}
        taken, known = {*self.variables, *computed.values()}, dict[Hashable, str]()
        for piece in kind.pieces:
            for position, external in enumerate(piece.externals):
                values, contents = external.values, tuple(map(content, external.values))
                if name := computed.get(id(values[0]), known.get(contents)):
                    piece.arguments[position] = name
                    continue
                expression = expression_of(blocks, values[:early])
                own = expression is not None and re.split(r"\W", expression)[0] in blocks[0].names
                # of what ran once: what is no constant of the other steps
                varies = len({*contents}) > 1 or len(values) == 1 and contents[0] not in self._constants
                if not (varies or external.mapped or own and np.ndim(values[0]) > 0):
                    values[0] = self._constants.setdefault(contents[0], values[0])
                    continue
                drawn = any(piece.entries[i].op.name.startswith("random_") for i, _ in external.places)
                name = argument_name(expression or ("draw" if drawn else None), taken)
                taken.add(name)
                kind.arguments[name], kind.expressions[name] = list(values), expression
                piece.arguments[position] = known[contents] = name
        order = [*(blocks[0].names if early else ()), *kind.expressions.values()]
        kind.arguments = dict(sorted(kind.arguments.items(), key=lambda item: order.index(kind.expressions[item[0]])))
