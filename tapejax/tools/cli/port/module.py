"""The text of OUT.py: the functions of a program's steps, as one would write them with `jax.value_and_grad` and Optax."""

from __future__ import annotations

import ast
import contextlib
import itertools
import linecache
import os.path
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ....tape.gradient_tape import GradientTape
from ....tape.recording import type_of
from ....tf.values import keras_fence
from ....tf.values.tensor import Tensor
from ...seeing import layout, source, trees
from ...seeing.listing import identifier, unused
from ...seeing.tables import sections
from ...writing.graph import ValueMap
from .comparing import STEPS
from .observing import Applied, Gradient, Observer, Place, TrainingStep
from .optimizers import counts, optax_slots, optax_text, with_assigned_rate
from .pieces import LOSSES, Kind, Piece, Refused, as_function, where
from .steps import Steps

PARTS = sections(Path(__file__).with_name("parts.txt"))
# Names of OUT.py that printed functions must not have: those at its top, and those in `update`.
_TAKEN = (
    "NPZ Path as_keras with_rate restored optax init update main tree merged total batch found changes assigned slots"
)
MOST_SHOWN = 8  # variables, in the docstring
WIDTH = 118  # of lines, as of those of parts.txt
_CARRY = "params", "state", "opt_state"


@dataclass
class PortedOptimizer:
    """An optimizer of Keras's in OUT.py."""

    name: str
    members: list[str]  # the names of what it updates
    applied: list[tuple[int, Applied]]  # with the numbers of the steps
    scheduled: bool  # whether the learning rate varies
    assigned: bool  # by the program


class PortedModule:
    """What is written for a program whose steps an `Observer` has seen.

    Args:
      path: the program's.
      observer: of its run.

    Raises:
      Refused: something in the steps has no JAX code.
    """

    def __init__(self, path: Path, observer: Observer):
        self.path, self.observer = path, observer
        if not observer.steps:
            if observer.traced:
                raise Refused(where(observer.traced[0]), "traced")
            text = path.read_text()
            tape = "no step" if "GradientTape" in text else "no step: no tape"
            raise Refused(path.name, "no step: Keras trains" if ".fit(" in text else tape)
        self.steps = Steps(observer)
        self.module = source.PrintedModule(taken={*_TAKEN.split()}, width=WIDTH)
        self.optimizers: dict[int, PortedOptimizer] = {}  # by the ids of Keras's
        self.helpers: list[str] = []
        self.definitions: list[str] = []  # of optimizers
        self.notes: list[str] = []  # what is constant here and was made of values in the program
        self.groups = self._groups()
        self.paths = {name: (name,) for name in self.steps.members("state")} | self._state_paths() | self.groups
        self.updates = self._updates()

    # -- the tree of parameters

    def _groups(self) -> dict[str, tuple[str, ...]]:
        """The path of each trained variable in `params`: below the name of what is updated together, if that differs."""
        updated_by: dict[str, set[Any]] = {name: set() for name in self.steps.members("params")}
        for piece in self.steps.of_role("change", "assign"):
            by = id(piece.subject[0].optimizer) if piece.role == "change" else tuple(sorted(piece.targets))
            for name in updated_by.keys() & piece.targets:
                updated_by[name].add(by)
        together: dict[frozenset, list[str]] = {}
        for name, all_by in updated_by.items():
            together.setdefault(frozenset(all_by), []).append(name)
        if len(together) < 2 or not self.steps.of_role("change"):
            return dict(self._paths(list(updated_by)))
        found: dict[str, tuple[str, ...]] = {}
        for i, names in enumerate(together.values(), 1):
            paths = [self.steps.path(name) for name in names]
            shared = os.path.commonprefix(names).strip("_0123456789")
            starts = [*trees.common_path(paths)[:1], shared, f"part_{i}"]
            tops = {path[0] for path in found.values()}
            group = next(start for start in starts if start.isidentifier() and start not in tops)
            alone = len(names) == 1 == len(paths[0])
            found |= {names[0]: (names[0],)} if alone else {n: (group, *path) for n, path in self._paths(names)}
        return found

    def _paths(self, names: list[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The variables' own paths, as Keras's have them, without what is common to all; of another its name."""
        own = [path if len(path := self.steps.path(name)) > 1 else (name,) for name in names]
        start = len(trees.common_path(own)) if len(names) > 1 else 0
        paths = [path[start:] for path in own]
        paths = paths if len(set(paths)) == len(paths) else [(name,) for name in names]
        yield from zip(names, _renumbered(paths), strict=True)

    def _state_paths(self) -> dict[str, tuple[str, ...]]:
        """The path in `state` of each variable of a model or a list."""
        steps, paths = self.steps, dict[str, tuple[str, ...]]()
        alike = [np.shape(steps.initial[name]) for name in self.groups]
        members = steps.members("state")
        lists: dict[str, list[str]] = {}
        for name in sorted(members, key=lambda name: steps.places_in_lists.get(name, ("", 0))[1]):
            if name in steps.places_in_lists:
                lists.setdefault(steps.places_in_lists[name][0], []).append(name)
            elif steps.owner(name):
                paths[name] = steps.path(name)
        tops = [path[0] for path in paths.values()]
        paths = {name: path for name, path in paths.items() if tops.count(path[0]) > 1 and path[0] not in members}
        paths = dict(zip(paths, _renumbered([*paths.values()]), strict=True))
        for top, names in lists.items():
            if [np.shape(steps.initial[name]) for name in names] == alike and top not in {*members, *tops}:
                paths |= {name: (top, *path) for name, path in zip(names, self.groups.values(), strict=True)}
        return paths

    def _with_state(self, parts: Sequence[str], names: Sequence[str]) -> str:
        """Code for `state` with these parts, which have these names, in it."""
        tops = {self.paths[name][0] for name in names}
        if {name for name in self.steps.members("state") if self.paths[name][0] in tops} == set(names):
            return " | ".join(["state", *parts]).replace("} | {", ", ")
        text = "state"
        for part in parts:
            text = f"{self._helper('merged')}({text}, {part})"
        return text

    def _tree(self, values: dict[str, Any]) -> dict[str, Any]:
        """Values of variables by name, as the nested dicts that the written functions take."""
        return trees.nested((self.paths.get(name, (name,)), x) for name, x in values.items())

    def _tops(self, names: Sequence[str]) -> list[str]:
        """The groups that these names are; none if they are all that is trained."""
        return [] if set(names) == set(self.groups) else [*dict.fromkeys(self.groups[name][0] for name in names)]

    def _part(self, values: str, names: Sequence[str]) -> str:
        """Code for the part of a tree of parameters that has these names, which are all of some groups, or of the tree."""
        tops = self._tops(names)
        if len(tops) < 2:
            return values + _item(tops)
        return "{" + ", ".join(f"{top!r}: {values}[{top!r}]" for top in tops) + "}"

    def _replaced(self, values: str, names: Sequence[str], new: str) -> str:
        """Code for `values` with `new` in the place of what `_part` gives."""
        tops = self._tops(names)
        part = f"{{{tops[0]!r}: {new}}}" if len(tops) == 1 else new
        return f"{values} | {part}" if tops else new

    # -- the step

    def _update(self, kind: Kind) -> tuple[str, ...]:
        """The parameters and the lines of a kind's function."""
        lines, state_lines, in_state = list[str](), list[str](), list[str]()
        ends = [f"_{i}" if len(kind.sources) > 1 else "" for i in range(1, len(kind.sources) + 1)]
        for piece, end in zip(kind.sources, ends, strict=True):
            lines += self._loss(kind, piece, end)
            if isinstance(piece.targets, tuple):
                state_lines.append(f"found{end}")
                in_state += piece.targets[1]
        lines = [*(self._before(kind, piece) for piece in kind.of_role("before")), *lines]
        updated = "params"
        for piece in kind.of_role("change", "assign"):  # in the program's order
            if piece.role == "change":
                lines += self._applied(kind, piece, updated)
                updated = "updated"
            else:
                updated = self._assigned(kind, piece, updated, lines, state_lines)
                in_state += piece.targets.keys() - self.groups.keys()
        if state_lines:
            lines.append(f"state = {self._with_state(state_lines, in_state)}")
        returned = [] if self.steps.evaluated else [updated if n == "params" else n for n in self.carry]
        for word in ("value", "grads") if self.steps.evaluated else ("value",):
            values = [word + end for piece, end in zip(kind.sources, ends, strict=True) if piece.role != "rows"]
            returned += values if len(values) == 1 or not self.steps.of_role(*LOSSES) else [f"({', '.join(values)})"]
        head = ", ".join([*self.carry, *kind.arguments])
        return head, *_laid_out([*lines, f"return {', '.join(returned)}"], "    ")

    def _updates(self) -> list[str]:
        """The functions of the steps; kinds that differ in nothing but their lines are one."""
        known: dict[tuple[str, ...], Kind] = {}
        for kind in self.steps.kinds:
            if (first := known.setdefault(self._update(kind), kind)) is not kind:
                first.take(kind)
                self.steps.kind_of |= {step.number: first for step in kind.steps}
        self.steps.kinds = list(known.values())
        texts = []
        for i, ((head, *body), kind) in enumerate(known.items()):
            kind.name = f"update_{i}" if i else "update"
            texts.append(
                "\n".join(
                    ["@jax.jit", f"def {kind.name}({head}):", f'    """The step at {where(kind.blocks[0])}."""', *body]
                )
            )
        return texts

    def _assigned(self, kind: Kind, piece: Piece, updated: str, lines: list[str], state_lines: list[str]) -> str:
        """Adds what a program assigns itself; returns the name of the new parameters."""
        paths = [self.paths[name] for name in piece.targets]
        trained = self.groups.keys() & piece.targets
        rest = piece.targets.keys() - trained
        alike = all(len(path) > 1 and path[0] == paths[0][0] for path in paths)
        top = paths[0][0] if alike and not trained else ""
        function = self._printed(kind, piece, f"new_{_unnumbered(top)}" if top else "assigned_values", top=top)
        call = self._call(kind, piece, function, updated)
        if top:
            state_lines.append(f"{{{top!r}: {call}}}")
            return updated
        if trained and rest:
            lines.append(f"assigned = {call}")
        params, state = ('assigned["params"]', 'assigned["state"]') if trained and rest else (call, call)
        state_lines += [state] if rest else []
        if trained:
            whole = trained == self.groups.keys()
            lines.append(f"updated = {params if whole else self._helper('merged') + f'({updated}, {params})'}")
        return "updated" if trained else updated

    @property
    def carry(self) -> list[str]:
        """What `update` takes and gives back."""
        held = {"state": self.steps.members("state"), "opt_state": self.steps.of_role("change")}
        return [name for name in _CARRY if name == "params" or held[name]]

    def _before(self, kind: Kind, piece: Piece) -> str:
        names = list(piece.targets)
        called = self._printed(kind, piece, f"compute_{'_and_'.join(names)}" if len(names) < 3 else "compute_before")
        return f"{', '.join(names)} = {self._call(kind, piece, called, 'params')}"

    def _loss(self, kind: Kind, piece: Piece, end: str) -> list[str]:
        gradient: Gradient = piece.subject[0]
        if piece.role == "loss" and any(x.dtype.kind == "c" for x in piece.labels.get("params", {}).values()):
            raise Refused(where(gradient), "complex")
        function = piece.function = self._printed(kind, piece, gradient.name, where(gradient))
        if piece.role == "value":
            return [f"value{end} = {self._call(kind, piece, function, 'params')}"]
        if piece.role == "rows":
            mapped = {name for i, name in piece.arguments.items() if piece.externals[i].mapped}
            axes = tuple(0 if name in mapped else None for name in self._arguments(kind, piece))
            return [f"grads{end} = {self._call(kind, piece, f'jax.vmap({function}, in_axes={axes})', 'params')}"]
        has_aux = isinstance(piece.targets, tuple)
        if not (len(gradient.targets) == 1 and np.ndim(gradient.targets[0]) == 0):
            function = f"{self._helper('total and found' if has_aux else 'total')}({function})"
        result, option = (f"(value{end}, found{end})", ", has_aux=True") if has_aux else (f"value{end}", "")
        call = self._call(kind, piece, f"jax.value_and_grad({function}{option})", "params")
        return [f"{result}, grads{end} = {call}"]

    def _applied(self, kind: Kind, piece: Piece, updated: str) -> list[str]:
        applied: Applied = piece.subject[0]
        names = list(piece.targets)
        ported = self._optimizer(applied, names)
        labels = dict(zip(sorted(names), piece.key[1], strict=True))  # type: ignore[index]
        groups = {label[0] if isinstance(label, tuple) else label for label in labels.values()}
        if len(groups) == 1 and not piece.entries and all(n == label[1] for n, label in labels.items()):
            grads = self._part(self._local(kind, str(*groups)), names)
        else:
            function = self._printed(kind, piece, "changed_gradients")
            tops = self._tops(names)
            grads = self._call(kind, piece, function, updated) + (f"[{tops[0]!r}]" if len(tops) == 1 else "")
        one = len({id(piece.subject[0].optimizer) for piece in self.steps.of_role("change")}) == 1
        state, new = ("opt_state", "opt_state") if one else (f"opt_state[{ported.name!r}]", "slots")
        if ported.assigned:
            rate = unused("learning_rate", kind.arguments)
            kind.arguments[rate], kind.expressions[rate] = [each.rate for each in piece.subject], None
            state = f"{self._helper('with_rate')}({state}, {rate})"
        part = self._part(updated, names)
        lines = [
            f"changes, {new} = {ported.name}.update({grads}, {state}, {part})",
            f"updated = {self._replaced(updated, names, f'optax.apply_updates({part}, changes)')}",
        ]
        return lines if one else [*lines, f"opt_state = opt_state | {{{ported.name!r}: {new}}}"]

    def _local(self, kind: Kind, group: str) -> str:
        """The name in `update` of what a label's group is."""
        numbered = group.replace("gradients", "grads")
        return numbered if len(kind.sources) > 1 else _unnumbered(numbered)

    def _call(self, kind: Kind, piece: Piece, function: str, updated: str) -> str:
        code = [re.sub("^updated", updated, text) for text, _ in self._given(kind, piece).values()]
        return f"{function}({', '.join([*code, *dict.fromkeys(piece.arguments.values())])})"

    def _arguments(self, kind: Kind, piece: Piece) -> list[str]:
        return [*self._given(kind, piece), *dict.fromkeys(piece.arguments.values())]

    def _given(self, kind: Kind, piece: Piece) -> dict[str, tuple[str, Any]]:
        """By the name of a parameter the code for what a piece is given, and the smallest tree that has all it reads."""
        given: dict[str, tuple[str, Any]] = {}
        # the printed function takes all that is in a group; a loss takes the parameters though it reads none
        groups = {"params": {}} if piece.role in ("loss", "rows") or not piece.labels else dict[str, dict]()
        for group, read in {**groups, **piece.labels}.items():
            values = (self.steps.after(None, group) if group in ("params", "state") else {}) | read
            code = self._local(kind, group)
            for path in self._parts(piece, group):
                name = _unnumbered(path[-1]) if piece.role in ("assign", "change") else "params"
                if name not in {*given, *piece.arguments.values()}:
                    given[name] = code + _item(path), trees.part_at(self._tree(values), path)
                    values = {n: x for n, x in values.items() if self.paths[n][: len(path)] != path}
            if not read or values.keys() & read.keys():
                given[code] = code, self._tree(values)
        return given

    def _parts(self, piece: Piece, group: str) -> Sequence[tuple[str, ...]]:
        """The paths of the trees in a group that a piece is given by themselves: of what it changes each model or list."""
        paths = [self.paths[name] for name in piece.labels.get(group, ())]
        if group == "state" and piece.role in ("assign", "change") and len({path[0] for path in paths}) > 1:
            return sorted({path[:1] for path in paths if len(path) > 1})
        alone = group == "state" or group in ("params", "updated") and piece.role == "assign"
        return [path] if alone and (path := trees.common_path(paths)) else []

    def _printed(self, kind: Kind, piece: Piece, hint: str, at: str = "", top: str = "") -> str:
        """The name of the function that a piece is; `at` is its line, `top` the part of the state that it returns, if not all."""
        names = dict(piece.block.before)
        for group, values in piece.labels.items():
            end = "" if group in ("params", "state") else f"_{group.partition('_')[0].rstrip('s')}"
            names |= {name + end: x for name, x in values.items()}
        targets: Any = piece.targets
        if piece.role == "before":
            targets = tuple(targets.values()) if len(targets) > 1 else next(iter(targets.values()))
        elif isinstance(targets, dict):
            trained = {n: x for n, x in targets.items() if n in self.groups}
            rest = {n: x for n, x in targets.items() if n not in self.groups}
            parts = {"params": self._tree(trained), "state": self._tree(rest)}
            targets = parts if trained and rest else parts["params"] | parts["state"]
            targets = targets[top] if top else targets
        elif isinstance(targets, tuple):
            targets = targets[0], self._tree(targets[1])
        shown = replace(piece, targets=targets)
        given = {name: tree for name, (_, tree) in self._given(kind, piece).items()}
        try:
            try:
                function = as_function(shown, given, names, whole=True)
            except ValueError as error:
                # the tape only suspects it, or it is the same in all steps, as their operations are
                made = re.match(r"the argument (.*? a shape, an index or an axis was made of .*?); what", str(error))
                if not made and "may have looked" not in str(error):
                    raise
                if made:
                    name = made[1].partition(":")[0]
                    self.notes.append(f"# The argument {made[1]}; it is the program's here, whatever {name} is.")
                function = as_function(shown, given, names, whole=False)
            # a function that is not given all of a tree must do nothing to all of it
            partial = {g for g, values in piece.labels.items() if set(values) != set(self.groups)} - {"params", "state"}
            function.recorded.partial = {self._local(kind, group) for group in partial}
            found = self.module.add(function, hint)
        except (ValueError, TypeError, LookupError, NotImplementedError) as error:
            raise Refused(at or self.path.name, "no code", error=error) from error
        for name, x in self.module.arrays.items():
            if getattr(getattr(x, "dtype", None), "kind", "V") == "V":
                raise Refused(at or self.path.name, "no code", error=f"the operation {name} is tapejax's own")
        return found

    def _helper(self, name: str, dtype: str = "float32") -> str:
        text = _part(name).replace("float32", dtype)
        self.helpers += [text] if text not in self.helpers else []
        return name.split()[0]

    # -- optimizers

    def _optimizer(self, applied: Applied, names: list[str]) -> PortedOptimizer:
        optimizer, at = applied.optimizer, where(applied)
        if known := self.optimizers.get(id(optimizer)):
            if set(known.members) != set(names):
                raise Refused(at, "different variables")
            return known
        pairs = [(step.number, a) for step in self.observer.steps for a in step.applied if a.optimizer is optimizer]
        early = [each.count for number, each in pairs if number < STEPS]
        if any(later > count + 1 for count, later in itertools.pairwise(early)):
            raise Refused(at, "applied elsewhere")
        if len({tuple(map(id, each.variables)) for _, each in pairs}) > 1:
            raise Refused(at, "different variables")
        scheduled = callable(keras_fence.rate_of(optimizer))
        rate = self._schedule(keras_fence.rate_of(optimizer), at) if scheduled else repr(float(f"{applied.rate:.7g}"))
        assigned = len({each.rate for _, each in pairs}) > 1 and not scheduled
        text = optax_text(optimizer, rate, scheduled or assigned, at)
        text = with_assigned_rate(text) if assigned else text
        if "as_keras" in text:
            self._helper("as_keras", dtype=applied.before[0].dtype.name)
        name = self.module.scope.new(identifier(applied.name))
        self.definitions.append("\n".join(_laid_out([f"{name} = {text}"])))
        self.optimizers[id(optimizer)] = PortedOptimizer(name, names, pairs, scheduled or assigned, assigned)
        return self.optimizers[id(optimizer)]

    def _slots(self, optimizer: PortedOptimizer, step: TrainingStep | None) -> dict[str, Any]:
        """What Keras's optimizer had after a step, by the names of Optax's fields; for None, when the first step began."""
        applied = [a for number, a in optimizer.applied if step is None or number <= step.number]
        if not applied or step is None and not applied[0].count:
            return {}
        last, count = applied[0 if step is None else -1], np.int32(step is not None)
        fields: dict[str, Any] = {"count": last.count + count} if counts(last, optimizer.scheduled) else {}
        for field, values in optax_slots(last, optimizer.scheduled, step is None).items():
            named = {self.steps.name(v): x for v, x in zip(last.variables, values, strict=True)}
            tree, tops = self._tree({name: named[name] for name in optimizer.members}), self._tops(optimizer.members)
            fields[field] = tree[tops[0]] if len(tops) == 1 else tree
        return fields

    def _opt_state(self, parts: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """What is of optimizers, by their names, as it is in `opt_state`."""
        return parts if len(self.optimizers) > 1 else next(iter(parts.values()), {})

    def _schedule(self, schedule: Any, at: str) -> str:
        """The name of a function of the count of updates, which the schedule is."""
        count, counts = Tensor(jnp.asarray(3, jnp.int32)), jnp.asarray([0, 1, 2, 3, 7, 20, 100, 12345], jnp.int32)
        both = lambda count: jnp.asarray(schedule(count))  # noqa: E731
        both.__name__ = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(schedule).__name__).lower()
        # as it runs; with both branches of what it decides if there are any
        with contextlib.suppress(ValueError, TypeError, LookupError):
            for run in schedule, jax.jit(both):
                with GradientTape(persistent=True) as tape:
                    tape._recording.watch(count._array)  # type: ignore[union-attr]  # `watch` takes no integers
                    rate = run(count)
                known = ValueMap([(count._array, "count")])
                function = tape._as_function(rate, count, (), known, False, "count", replayable=False)
                expected, ours = (np.asarray([*map(f, counts)]) for f in (schedule, function))
                if np.allclose(expected, ours, rtol=1e-6, atol=0):
                    return self.module.add(function, "learning_rate")
        raise Refused(at, "schedule")

    # -- the text

    def written(self) -> tuple[str, dict[str, Any]]:
        """OUT.py, and the arrays of OUT.npz."""
        first = [step for step in self.observer.steps if step.number < STEPS]
        small = {text.partition(" = ")[0]: text for text in self.module.constants if text.count("\n") <= 8}
        arrays = {name: np.asarray(x) for x, name in self.module.code.known.items() if name not in small}
        data = self._data(first) | {f"constants/{name}": x for name, x in arrays.items()}
        plan = [self.steps.kind_of[step.number].name for step in first]
        updates = list(dict.fromkeys(plan))
        one = len(updates) == 1
        data |= {} if one else {f"updates/{i}": np.asarray(updates.index(name)) for i, name in enumerate(plan)}
        constants = [*small.values(), *(f'{name} = jnp.asarray(NPZ["constants/{name}"])' for name in arrays)]
        restored = {each.name: slots for each in self.optimizers.values() if (slots := self._slots(each, None))}
        if restored:
            self._helper("restored")
        anew = {*map(self.steps.group, self._set_anew)}
        if anew:
            self._helper("merged")
        parts = [_part("tree"), *self.helpers, *self.module.functions]
        body = "\n\n\n".join([*parts, "\n".join(self.definitions)]).rstrip()
        init = [f'{group} = tree("{group}")' for group in self.carry if group != "opt_state"]
        data |= {"/".join(["slots", *path]): x for path, x in trees.leaves_of(self._opt_state(restored))}
        starts, several = dict[str, str](), len(self.optimizers) > 1
        for each in self.optimizers.values():
            text = f"jax.jit({each.name}.init)({self._part('params', each.members)})"
            at = _item([each.name] * several)
            starts[each.name] = f'restored({text}, tree("slots"){at})' if each.name in restored else text
        if starts:
            whole = f"{{{', '.join(f'{name!r}: {text}' for name, text in starts.items())}}}"
            init.append(f"opt_state = {whole if several else next(iter(starts.values()))}")
        kept = [x for key, x in data.items() if not key.startswith(("losses/", "numbers ", "updates/"))]
        wide = any(x.dtype.itemsize == 8 and x.dtype.kind in "fiu" or x.dtype.kind == "c" for x in kept)
        wide |= first[0].recording.x64 and "jax.random." in body  # other bits than with 32
        wide |= bool(re.search("(float|int)64", re.sub(r"#.*", "", body + "\n".join(constants))))
        numbers = any(key.startswith("numbers ") for key in data)
        choice = "" if one else f'        step = ({", ".join(updates)})[NPZ[f"updates/{{i}}"]]\n'
        for group in sorted(anew):
            choice += f'        {group} = merged({group}, tree(f"set {group} {{i}}"))\n'
        some, held = bool(self.steps.of_role(*LOSSES)), ["grads"] if self.steps.evaluated else self.carry
        text = PARTS["head"].format(
            program=self.path.name,
            call=self._step_call(self.steps.kinds[0]),
            types=self._types(),
            extend="import jax.extend\n" if "jax.extend" in body else "",
            optax="import optax\n" if self.definitions else "",
            x64=PARTS["64 bits"] if wide else "",
            where=self._where(),
            constants="".join(f"{line}\n" for line in constants),
            body=body,
            carry=", ".join(self.carry),
            init="\n".join(_laid_out(init, "    ")),
            updates="\n\n\n".join(self.updates),
            steps=len(plan),
            choice=choice,
            results=", ".join(["losses"] * some + held if self.steps.evaluated else held + ["losses"] * some),
            given=", ".join([*self.carry, "**batch(i)"]),
            step=plan[0] if one else "step",
            batch=_part("batch with numbers" if numbers else "batch"),
            values="losses" if some else "params",
            last=", ".join(f'"{name}": {name}' for name in held),
        )
        return text, data

    def _data(self, first: Sequence[Any]) -> dict[str, Any]:
        steps = self.steps
        names = [(group, name) for group in ("params", "state") for name in steps.members(group)]
        data = {"/".join([group, *self.paths[name]]): np.asarray(steps.initial[name]) for group, name in names}
        for i, step in enumerate(first):
            data[f"losses/{i}"] = np.asarray(self.expected(step))
            for name, x in steps.resets[step.number].items():
                data["/".join([f"set {steps.group(name)} {i}", *self.paths[name]])] = np.asarray(x)
            kind = steps.kind_of[step.number]
            for name, values in kind.arguments.items():
                value = values[kind.steps.index(step)]
                group = "numbers" if isinstance(value, (bool, int, float)) else "batch"
                data[f"{group} {i}/{name}"] = np.asarray(value)
        return data

    @property
    def _set_anew(self) -> set[str]:
        """The variables that are set anew between the steps."""
        return {name for number, values in self.steps.resets.items() if number < STEPS for name in values}

    def expected(self, step: Any) -> tuple[float, ...]:
        """The losses of a step that its update has; where no update has any, the sums of the parameters."""
        kind = self.steps.kind_of[step.number]
        if self.steps.of_role(*LOSSES):
            return tuple(piece.subject[kind.steps.index(step)].loss for piece in kind.of_role(*LOSSES))
        after = self._tree({name: np.sum(np.asarray(x)) for name, x in self.steps.after(step, "params").items()})
        return tuple(map(float, jax.tree.leaves(after)))

    def last(self, step: TrainingStep | None) -> dict[str, Any]:
        """What `main` returns beside the losses, as the program had it after this step; for None, what it was at first."""
        steps = self.steps
        if not steps.evaluated:
            slots = {each.name: self._slots(each, step) for each in self.optimizers.values()}
            groups = {group: self._tree(steps.after(step, group)) for group in self.carry if group != "opt_state"}
            return groups | {"opt_state": self._opt_state(slots)}
        step = step or self.observer.steps[0]
        kind = steps.kind_of[step.number]
        zeros = {name: np.zeros_like(steps.initial[name]) for name in steps.members("params")}
        grads = []
        for piece in (each for each in kind.sources if each.role != "rows"):
            gradient: Gradient = piece.subject[kind.steps.index(step)]
            grads.append(self._tree(zeros | {steps.name(v): x for v, x in gradient.pairs}))
        return {"grads": grads[0] if len(grads) == 1 else tuple(grads)}

    def _step_call(self, kind: Kind) -> str:
        texts = {n: text if (text := kind.expressions.get(n)) not in (None, *_CARRY) else n for n in kind.arguments}
        given = ", ".join([*self.carry, *texts.values()])
        functions = [piece.function for piece in kind.of_role(*LOSSES)]
        losses = [f"({', '.join(functions)})"] if len(functions) > 1 else ["loss"] * len(functions)
        results = [*losses, "grads"] if self.steps.evaluated else [*self.carry, *losses]
        return f"{', '.join(results)} = {kind.name}({given})"

    def _types(self) -> str:
        steps, lines = self.steps, list[str]()
        rows = {k: [(".".join(self.paths[n]), steps.initial[n]) for n in steps.members(k)] for k in ("params", "state")}
        rows |= {kind.name: [(n, values[0]) for n, values in kind.arguments.items()] for kind in steps.kinds}
        for name, row in rows.items():
            shown = [f"{n}~{type_of(x)}" for n, x in row]
            if len(shown) > MOST_SHOWN and name in _CARRY:
                shown[MOST_SHOWN - 1 :] = [f"and {len(shown) - MOST_SHOWN + 1} more"]
            lines += [f"{name}: {', '.join(shown)}"] if shown else []
        wrapped = [row for line in lines for row in textwrap.wrap(line, WIDTH, subsequent_indent="    ")]
        return "\n".join(wrapped).replace("~", " ") + "\n"

    def _line(self, place: Place) -> str:
        return where(place).removeprefix(f"{self.path.name}:")

    def _where_set(self) -> list[str]:
        """A comment: what the program sets anew between the steps, and where."""
        names = self._set_anew
        events = [e for step in self.observer.steps for e in step.resets]
        lines = dict.fromkeys(self._line(e.place) for e in events if self.steps.names.get(id(e.variable)) in names)
        parts = [self.steps.group(name) + _item(self.paths[name][:1]) for name in sorted(names)]
        at = f" (lines {', '.join(lines)})" if lines else ""
        said = "as main() does, put what the program begins anew with"
        return [f"# Between steps, {said}{at} into {', '.join(dict.fromkeys(parts))}."] if parts else []

    def _where(self) -> str:
        """A comment: which lines of the program are the step, and what to put there."""
        lines = ["# Before the loop of the program: " + f"{', '.join(self.carry)} = init()"]
        for kind in self.steps.kinds:
            runs = list(dict.fromkeys(tuple(self.steps.places(step)) for step in kind.steps))
            runs = [run for run in runs if not any(set(run) < set(other) for other in runs)]
            texts = [", ".join(map(self._line, run)) for run in runs]
            lines.append(f"# In place of the lines {', and of '.join(texts)}: {self._step_call(kind)}")
            if kind.name == "update":
                lines += [f"#   {self._line(at)}: {linecache.getline(*at).strip()}"[:110] for at in runs[0]]
        lines += [*self._where_set(), *dict.fromkeys(self.notes)]
        return "\n".join(row for line in lines for row in textwrap.wrap(line, WIDTH, subsequent_indent="#     "))


def _renumbered(paths: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Paths with the numbers of layers in other layers counted anew in each, so that layers that are alike have alike trees."""
    numbers: dict[tuple[str, ...], dict[str, str]] = {}
    renumbered = []
    for path in paths:
        keys = [*path]
        for i, key in enumerate(path[1:-1], 1):
            known = numbers.setdefault(path[:i], {})
            keys[i] = known.setdefault(key, unused(_unnumbered(key), known.values(), 1))
        renumbered.append(tuple([re.sub(r"\W", "_", key) for key in keys]))
    return renumbered


def _part(name: str) -> str:
    """A function of parts.txt under the first word of its name."""
    return re.sub(r"\bf(?=\()", name.split()[0], PARTS[name]).strip()


def _item(path: Sequence[str]) -> str:
    """Code for what is at a path, behind that for the tree."""
    return "".join(f"[{key!r}]" for key in path)


def _unnumbered(name: str) -> str:
    """What `target_1` and `target_2` are each: a function of one may be that of the other."""
    return re.sub(r"_\d+$", "", name)


def _laid_out(lines: Sequence[str], indent: str = "") -> Iterator[str]:
    """Assignments and `return`s, broken where they are too long for a line."""
    for line in lines:
        value = vars(ast.parse(line).body[0])["value"]
        yield from layout.statement(line[: value.col_offset], value, indent, WIDTH)
