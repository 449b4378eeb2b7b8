"""What a tape recorded, written as the functions that a person would write.

The lines of a recording are read backwards, from what is wanted. Lines that one call of a function of the user's (or of a layer)
ran become a call of a function; those that a derivative was taken of become a function that is handed to `jax.grad` or its like.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import CodeType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...jaxprs.types import JaxProgram, Value
from ...places import line_of, serves
from ...tape.derivative import DerivativeOp
from ...tape.operation import Op
from ...tape.query import Query, Source
from ...tape.recording import Entry, Recording
from ...tape.slicing import Program
from ...tf.values.staging import JointOp
from ..writing.graph import Graph, ValueMap, ValueSet
from . import callers, jitted, layout, regions, rolling, scopes, sources, templates, traces, trees
from .callers import Line, Results, Running, calls_of, inner_call, inside_of, is_named, name_in, returned_at
from .inside import program_of, traced
from .last_round import LastRounds
from .layout import names_in
from .listing import arguments_at, bytecode, handed_on, operands, parameters_of, texts_at, unused
from .operations import Code, written
from .pullbacks import LinearOp
from .scopes import Definition, Key, KeyNames, Statement, new_key
from .sourced import Sourced
from .spelling import array_text
from .trees import Path, item
from .zeros import Zeros

_NUMBER = re.compile(r"_\d+$")


# ---- scopes while they are written ----------------------------------------------------------------------------------


class Scope:
    """The values of a function that is being written, and is called in `parent`: what it does not make is handed to it.

    `used` are those that lines before the ones written so far must make; `given` what the function around all is called with.
    """

    def __init__(self, parent: Scope | None = None, given: Iterable[Value] = ()):
        self.parent, self.given = parent, ValueSet(given)
        self.used = ValueSet()
        self.keys = ValueMap[Key]()
        self.constants = ValueMap[Key]()
        self.zeros: set[Key] = set()  # the trees of zeros that are made here
        self.trees: dict[Key, Path] = {}  # parts of trees, as arguments of calls
        # what is written here; None for a function that a derivative is taken of
        self.calls: tuple[int, ...] | None = None
        self.makes: set[str] = set()  # the trees that are computed here
        self.roles: dict[Key, dict[str, Key]] = {}  # by parameter the key of a value that is several: ``kernel(x, x)``

    def key(self, x: Value) -> Key:
        """What varies."""
        self.used.add(x)
        return self.keys.setdefault(x, new_key())

    def role(self, key: Key, parameter: str) -> Key:
        """The key of a value as a `parameter`; of the first one its own."""
        roles = self.roles.setdefault(key, {})
        return roles.setdefault(parameter, new_key() if roles else key)

    def other(self, x: Value) -> str:
        """The code for a value that does not vary here."""
        if x in self.given:
            return self.key(x)
        text = None if self.varying_around(x) else written(x)
        return self.constants.setdefault(x, new_key()) if text is None else text

    def varying_around(self, x: Value) -> bool:
        """Whether a value varies in one of the scopes around this one."""
        return any(x in level for level in self.levels())

    def levels(self) -> list[ValueSet]:
        """What varies in each of the scopes around this one."""
        return [] if self.parent is None else self.parent.levels()

    def is_given(self, x: Value) -> bool:
        """Whether the function around all is called with a value."""
        return x in self.given or self.parent is not None and self.parent.is_given(x)

    def is_local(self, x: Value) -> bool:
        """Whether a value is made in a function that a derivative is taken of, or is its parameter."""
        return self.parent is not None and self.parent.is_local(x)

    def has_tree(self, tree: str, arrays: Sequence[Value]) -> bool:
        """Whether these values of a tree are in it here."""
        if tree in self.makes or self.parent is None:
            return tree in self.makes or not scopes.is_key(tree)
        return self.parent.has_tree(tree, arrays)

    def uses(self, tree: str) -> bool:
        """Whether it is handed over, or a part of it."""
        return any(path[0] == tree for path in self.trees.values())

    def part(self, path: Path, arrays: Sequence[Value]) -> Key:
        """The part of a tree that has `arrays`."""
        for x in arrays:
            self.key(x)
        key = new_key()
        self.trees[key] = path
        return key


class Within(Scope):
    """The scope of a function in `parent`'s that a derivative is taken of: what it does not make is a value of the scopes around.

    Args:
      local: the values that it makes, and its parameters.
      varying: the values in it that vary in `parent`'s scope.
    """

    parent: Scope

    def __init__(self, parent: Scope, local: ValueSet, varying: ValueSet):
        super().__init__(parent)
        self.local, self.varying = local, varying
        self.tree = ValueSet()  # the parameters that are in the tree that is the one parameter

    def other(self, x: Value) -> str:
        return self.parent.key(x) if x in self.varying else self.parent.other(x)

    def levels(self) -> list[ValueSet]:
        return [self.varying, *self.parent.levels()]

    def is_local(self, x: Value) -> bool:
        return x in self.local

    def has_tree(self, tree: str, arrays: Sequence[Value]) -> bool:
        if self.local.isdisjoint(arrays):
            return self.parent.has_tree(tree, arrays)
        return tree in self.makes or all(x in self.tree for x in arrays)

    def part(self, path: Path, arrays: Sequence[Value]) -> Key:
        outside = self.local.isdisjoint(arrays)
        return self.parent.part(path, arrays) if outside else super().part(path, arrays)


_UNIFORM = re.compile(r"jnp\.(zeros|ones|full)\(")
_KNOWN = re.compile(r"jnp\.(zeros|ones|full|eye)\(")
_FILLED = re.compile(r"jnp\.(zeros|ones|full|eye|array|arange)\(.{,40}$")  # a short one


class _Keys(dict[Key, str]):
    """A key for the name of each."""

    def __missing__(self, key: Key) -> str:
        return key


class Writer:
    """Writes functions, with `code` for their operations. `derivative`: the statements for a derivative, or nothing."""

    def __init__(self, code: Code, derivative: Callable[[Writer, Line, Sequence[Line], int, Scope], list[Statement]]):
        self.code, self.derivative, self.reserved = code, derivative, set(code.scope.taken)
        self.names = KeyNames()
        self.results = Results((), ())
        self.functions: list[list[str]] = []
        self.definitions: dict[Key, Definition] = {}  # of functions that are called, by their keys
        self.known: dict[tuple[CodeType, str], Key] = {}
        self.callers: dict[Key, list[Running]] = {}  # of these functions
        self._texts: dict[str, str] = {}  # the names of the functions that are written, by their texts
        self._endings: dict[str, str] = {}  # by the name of a function what it ends in: of a layer the activation
        self.paths = ValueMap[Path]()  # of what is given in trees
        self.places = ValueMap[Path]()  # of what is in trees, these and computed ones
        self.shapes: dict[str, Any] = {}  # trees by their names or keys; of computed ones the leaves are the values
        self.nested: set[str] = set()  # the trees that have trees in them, or are parameters
        self.called = ValueMap[str]()
        self.operands: dict[int, ValueMap[str]] = {}  # by call: the names of values in it
        self.constants = ValueMap[str]()  # what functions call what does not vary

    def read(self, recording: Recording, flat: bool, stores: bool = True) -> None:
        """Takes a recording, of whose entries some are to be written. `flat`: without calls; `stores`: whether lines of the block
        store what they record."""
        self.folds = not flat
        self._recording, entries = recording, recording.entries
        self._entries = list(entries)
        self._calls = [calls[:1] if flat else calls for calls in calls_of(entries)]
        if not stores:
            self._calls = [(*(each._replace(instruction=-1) for each in own[:1]), *own[1:]) for own in self._calls]
        self.made = ValueMap((x, i) for i, entry in enumerate(entries) for x in entry.outputs)  # by which of them
        self.sourced, self.last_rounds, self.zeros = Sourced(self), LastRounds(self), Zeros(self)
        self._around: list[tuple[int, int, int]] = []  # the positions of what opened calls did, with that of each call
        self._checkpoints: set[int] = set()  # the calls that are computed again for a derivative
        self._opened: dict[int, tuple[Recording, ValueMap[int]] | None] = {}
        self.made_inside = ValueMap[int]()  # `made`, of what calls that are opened do

    def take_trees(self, paths: ValueMap[Path], shapes: Mapping[str, Any], named: ValueMap[Path]) -> None:
        """Takes trees that are given, and those that are computed of them; the arguments are those of `trees.Computed`."""
        self.paths.update(paths)
        self.nested |= {path[0] for path in paths.values() if len(path) > 2 or path[0] == "params"}
        entries = self._entries if self.folds else []
        self.zeros.take(entries, shapes)
        shapes = {**shapes, **{key: each.tree for key, each in self.zeros.trees.items()}}
        self._computed = computed = trees.Computed(entries, paths, shapes, named, self.zeros.places)
        self.places.update(computed.paths)
        self.shapes |= computed.shapes
        self.names.hints |= computed.names
        for tree, of in computed.of.items():
            if not self.nested.isdisjoint(of):
                self.nested.add(tree)

    def lines(self, program: Program, values: Sequence[Value], made: ValueMap[int] | None = None) -> list[Line]:
        """The steps of a program, as they were recorded. `made`: of a result the position of its entry."""
        made = self.made if made is None else made
        known: dict[int, Value] = dict(enumerate(values))
        found = []
        for step in program.steps:
            for slot in step.outs:
                known.setdefault(slot, object())  # of a result that nothing reads
            ins, outs = ([known[slot] for slot in slots] for slots in (step.ins, step.outs))
            position = next((made[x] for x in outs if x in made), None)
            inside = next((self.made_inside[x] for x in outs if x in self.made_inside), None)
            if inside is not None and self._entries[inside].op == step.op:  # and not the call that it is in
                position = inside
            calls = () if position is None else self._calls[position]
            library = () if position is None or not self.folds else inside_of(self._entries[position])
            line = Line(step.op, ins, outs, step.active_ins, step.active_outs, calls, library)
            found += [line] if position is None else self._lines_of(line, position)
        return found

    def _lines_of(self, line: Line, position: int) -> list[Line]:
        """The line; of a call of a `tf.function` those of what its Python does."""
        if not (self.folds and line.calls):
            return self._by_leaf(line)
        if position not in self._opened:
            self.last_rounds.note(line)
            entry = self._entries[position]
            # another one of a call that was opened
            own = self._recording if position < len(self._recording.entries) else Recording()
            inside = traces.recording_of(entry) if isinstance(line.op, JointOp) else jitted.recording_of(entry, own)
            entries = [] if inside is None else inside.entries
            around = calls_of(entries)
            self._checkpoints |= {calls[0].call for calls in around if jitted.is_checkpoint(entry.op)}
            made = self.open(entries, [line.calls + calls for calls in around], position)
            self._opened[position] = None if inside is None else (inside, made)
        if (opened := self._opened[position]) is None:
            return self._by_leaf(line)
        ends, starts = [line.outputs[j] for j in line.active_outs], [line.inputs[i] for i in line.active_ins]
        query = Query(opened[0], ends, [Source(x, watched=True) for x in starts], include_nondifferentiable=True)
        lines = self.lines(*query.program(), opened[1])
        return self.with_constants(lines, *opened)

    def program_of(self, line: Line) -> JaxProgram | None:
        """What a line does, with the lines of the functions that were called there: an operation has those of the first equal."""
        position = next((self.made[x] for x in line.outputs if x in self.made), len(self._entries))
        if position < len(self._recording.entries) and (entry := self._entries[position]).op is line.op:
            return program_of(entry, self._recording)
        return traced(line.op, line.inputs)

    def open(
        self, entries: Sequence[Entry], calls: Sequence[tuple[Running, ...]], position: int | None
    ) -> ValueMap[int]:
        """Takes the entries of a call, which are not in the recording; gives for each result the position of its entry.
        `position`: that of the call."""
        start = len(self._entries)
        self._entries += entries
        self._around.append((start, len(self._entries), position or 0))
        self._calls += calls
        made = ValueMap((x, start + i) for i, entry in enumerate(entries) for x in entry.outputs)
        for x, at in made.items():
            self.made.setdefault(x, at)
        self.made_inside.update(made)
        return made

    def position(self, positions: Iterable[int], stop: int) -> int:
        """The last of some positions of entries, of which those from `stop` on are where the call is that was opened."""
        position = max(positions)
        while position >= stop:
            position = next(outer for start, end, outer in self._around if start <= position < end)
        return position

    def with_constants(self, lines: list[Line], recording: Recording, made: ValueMap[int]) -> list[Line]:
        """The lines of a call, with those that compute what varies nowhere, as a mask or an index: it is not data."""
        here = ValueSet(x for line in lines for x in line.outputs)
        graph = Graph(recording.entries)
        for position in graph.before([x for line in lines for x in line.inputs if x not in here]):
            op, inputs, outputs, *_ = entry = recording.entries[position]
            large = any(jnp.size(x) > 1 for x in outputs) or self.zeros.has(inputs)
            if large and here.isdisjoint(ValueSet(outputs)):
                every = tuple(range(len(outputs)))
                lines.append(Line(op, inputs, outputs, (), every, self._calls[made[outputs[0]]], inside_of(entry)))
        here.update(x for line in lines for x in line.outputs)
        stop = max(made.values(), default=0) + 1
        lines.sort(key=lambda line: self.position([made.get(x, self.made.get(x, -1)) for x in line.outputs], stop))
        actives = (tuple([i for i, x in enumerate(line.inputs) if i in line.active_ins or x in here]) for line in lines)
        return [line._replace(active_ins=active) for line, active in zip(lines, actives, strict=True)]

    def _by_leaf(self, line: Line) -> list[Line]:
        """The line; where it makes all leaves of a tree, a line for each."""
        (tree, *others) = {self.places.get(x, ("",))[0] for x in line.outputs}
        several = len(line.outputs) > 1 and not others and scopes.is_key(tree)
        if not several or isinstance(line.op, (DerivativeOp, LinearOp)) or traced(line.op, line.inputs) is None:
            return [line]
        active, found = ValueSet(line.inputs[i] for i in line.active_ins), []
        for j in range(len(line.outputs)):
            op, ins, outs, *_ = regions.part(Entry(line.op, tuple(line.inputs), tuple(line.outputs)), [j])
            active_ins = tuple([k for k, x in enumerate(ins) if x in active])
            found.append(Line(op, ins, outs, active_ins, (0,) * (j in line.active_outs), line.calls))
        return found

    # -- lines

    def block(self, lines: Sequence[Line], depth: int, scope: Scope, user: bool = True) -> list[Statement]:
        """The statements for `lines`, which are at `depth` or deeper, that make what `scope` uses."""
        found: list[Statement] = []
        start = len(lines)
        if type(scope) is Scope and lines:
            scope.calls = tuple([each.call for each in lines[-1].calls[: depth + 1]])
        later: Line | None = None
        count = Counter(self.places[x][0] for line in lines for x in line.outputs if x in self.places)
        made_here = [
            tree for tree, n in count.items() if scopes.is_key(tree) and n == len(jax.tree.leaves(self.shapes[tree]))
        ]
        scope.makes = {tree for tree in made_here if self._is_writable(tree, scope, lines, depth)}
        generated = callers.generated(lines, depth, [*scope.used])
        waiting, apart = self._parts(lines, depth), ValueSet()  # of what is no expression of the source
        while waiting:
            part = waiting.pop()
            call = len(part[0].calls) > depth + 1
            made = ValueSet(x for line in part for x in line.outputs)
            # trees of which it makes the last leaf
            ended = scope.makes & {self.places[x][0] for x in made if x in self.places}
            for x in (x for tree in ended if scope.uses(tree) for x in jax.tree.leaves(self.shapes[tree])):
                scope.key(x)  # all of it is made
            self.last_rounds.keys.update(scope.key(x) for x in made if self.last_rounds.shown.get(x) == depth)
            wanted = [x for x in made if x in scope.used]
            place = sources.place_of(part[-1]) if wanted and not call and apart.isdisjoint(made) else None
            spelled = None if place is None else self.sourced.spelled(part, place, scope, wanted)
            if len(part) > 1 and wanted and not (call or spelled):
                apart |= made
                waiting += [[line] for line in part]
                continue
            start -= len(part)
            if not wanted:
                continue
            here = part[-1].calls[depth] if depth < len(part[-1].calls) else None
            before = len(found)
            found += reversed(spelled or self._statements(part, lines[:start], depth, scope, wanted))
            # what comes later by the same instruction is what it gives, unless that runs again
            after = later is not None and len(later.calls) > depth and later.calls[depth] == here and later
            same = after and (part[-1].op, part[-1].inside) == (after.op, after.inside)
            again = after and call == (len(after.calls) > depth + 1) and (call or same)
            entire = spelled is not None and here is not None and place == (here.code, here.place)
            last = not after or again or entire
            if here is not None:
                _note_origin(found[before:], here)
                one = (call or len(part[0].outputs) == 1) and len(found[-1].outs) == 1
                others = map(self.calls_of, scope.used - made)
                stored = callers.stored_by(here, part[0], others) if last and one else None
                own = callers.stored_inside(part[0], later) if not (call or stored) and one else None
                used = ValueMap(self.operands.get(here.call, ValueMap()).items() if len(wanted) > 1 else ())
                alone = isinstance(part[0].op, DerivativeOp) and len(found[-1].outs) != len(part[0].outputs)
                parts = bytecode(here.code).parts.get(here.instruction, ()) if last else ()
                used.update(self._parts_of(part, () if alone and not call else parts, depth + 1 if call else None))
                # a printed function gives its results in an order of its own
                if user and not call and len(parts) == len(outs := found[before].outs):
                    named = zip(outs, parts, strict=True)
                    self.names.hints = {out: part for out, part in named if out and part != "_"} | self.names.hints
                for x in wanted:
                    if name := stored or used.get(x) or generated.get(x) or own:
                        key = scope.key(x) if len(wanted) == 1 or not stored else str(found[-1].outs[0])
                        # a name of a library's is taken where there must be one
                        key = key if user and name != own else self.names.arguments.setdefault(key, new_key())
                        self.names.hints.setdefault(key, name)
            name = "" if here is None else bytecode(here.code).stores.get(here.place, "")
            for tree in ended & scope.makes:
                over = not after or self._goes_on(tree, part[-1], after)
                whole = name and over and not call and self._is_made_at(tree, part[-1].calls[depth], depth)
                if whole or scope.uses(tree):
                    whole_tree = Statement([root := self.bind(tree, scope)], self._written(tree, scope))
                    whole_tree.place = None if here is None else (here.code, here.place)
                    found.insert(before, whole_tree)
                    self.names.hints |= {root: name} if name else {}
            later = part[0]
        return [*found, *self.zeros.statements(scope)][::-1]

    def _statements(
        self, part: Sequence[Line], before: Sequence[Line], depth: int, scope: Scope, wanted: Sequence[Value]
    ) -> list[Statement]:
        """The statements for a call, a derivative or an operation. `before`: the lines before it."""
        if len(part[0].calls) > depth + 1:
            return self._call(part, depth + 1, scope, wanted)
        required = [line for line in before if self.sourced.optional.get(line.outputs[0]) is not line]
        return self.derivative(self, part[0], required, depth, scope) or self._operation(part[0], scope)

    def _parts(self, lines: Sequence[Line], depth: int) -> list[list[Line]]:
        """The lines, those together that came of one call, or of one instruction."""
        runs = itertools.groupby(lines, lambda line: inner_call(line.calls, depth))
        parts: list[list[Line]] = []
        for call, run in runs:
            part = list(run)
            parts += [part] if call else sources.parts_of(part) if self.folds else [[line] for line in part]
        return parts

    def _parts_of(self, part: Sequence[Line], names: Sequence[str], depth: int | None) -> Iterable[tuple[Value, str]]:
        """The results of an operation, or of the call at `depth`, that the source takes apart into `names`."""
        if depth is None:
            return zip(part[0].outputs, names, strict=True) if len(names) == len(part[0].outputs) else ()
        places = ((x, returned_at(line, depth)) for line in part for x in line.outputs) if names else ()
        return [(x, names[i]) for x, i in places if i is not None and i < len(names)]

    def _is_writable(self, tree: str, scope: Scope, lines: Sequence[Line], depth: int) -> bool:
        """Whether it is of dicts, lists and tuples, or one like it is at hand. No call makes some of its leaves and reads others:
        the tree would be there too late."""
        of = ValueMap((x, inner_call(self.calls_of(x), depth)) for x in jax.tree.leaves(self.shapes[tree]))
        deeper = ((call, line.inputs) for line in lines if (call := inner_call(line.calls, depth)) in of.values())
        if any(of.get(x, call) != call for call, inputs in deeper if call for x in inputs):
            return False
        if trees.is_written_out(self.shapes[tree]):
            return True
        given = self._computed.given(tree)
        return scope.has_tree(given, jax.tree.leaves(self.shapes[given]))

    def _written(self, tree: str, scope: Scope) -> ast.expr:
        """The expression for a tree, of its leaves."""
        leaves = jax.tree.map(lambda x: ast.Name(scope.key(x), ast.Load()), self.shapes[tree])
        if trees.is_written_out(leaves):
            return trees.written(leaves)
        return trees.written(leaves, self.tree_key(self._computed.given(tree), scope))

    def tree_key(self, given: str, scope: Scope) -> Key:
        """A key for all of a tree that is given."""
        key = scope.part((given,), jax.tree.leaves(self.shapes[given]))
        self.shapes[key] = self.shapes[given]
        return key

    def common(self, values: Sequence[Value]) -> Path:
        """The path of the smallest tree that has these values of one; of all its leaves it is the tree itself."""
        paths = [self.places[x] for x in values]
        every = len(jax.tree.leaves(self.shapes.get(paths[0][0])))
        return paths[0][:1] if len(paths) == every else trees.common_path(paths)

    def want_trees(self, values: Sequence[Value], scope: Scope) -> None:
        """Has the trees made that these values have all leaves of."""
        count = Counter(self.places[x][0] for x in ValueSet(values) if x in self.places)
        for tree, n in count.items():
            leaves = jax.tree.leaves(self.shapes[tree])
            if scopes.is_key(tree) and n == len(leaves):
                scope.part((tree,), leaves)

    def _goes_on(self, tree: str, last: Line, later: Line) -> bool:
        """Whether after its last leaf another one is used: in the next round of a loop."""
        made = {self.places.get(x) for x in last.outputs}
        return any(self.places.get(x, ("",))[0] == tree and self.places[x] not in made for x in later.inputs)

    def calls_of(self, x: Value) -> tuple[Running, ...]:
        """The calls in which a value was made."""
        return self._calls[self.made[x]] if x in self.made else ()

    def name_at(self, x: Value | None, here: Running) -> str | None:
        """What a call of a function, which runs `here`, calls a value."""
        stored = (bytecode(own.code).stores.get(own.instruction) for own in self.calls_of(x) if own.call == here.call)
        return self.called.get(x) or next(stored, None)

    def _is_made_at(self, tree: str, place: Running, depth: int) -> bool:
        """Whether all leaves of a tree are made by one instruction."""
        calls = [self._calls[self.made[x]] for x in jax.tree.leaves(self.shapes[tree])]
        return all(each[depth : depth + 1] == (place,) for each in calls)

    def argument(self, x: Value, active: bool, scope: Scope, filled: bool = True) -> str:
        """The code for an input. `filled`: whether what makes it may be written in its place."""
        if key := self.zeros.argument(x, scope):
            return key
        active = active or self.sourced.is_line(x, scope)
        full = None if active or scope.varying_around(x) or scope.is_given(x) or not filled else self._filled(x)
        # at the top others than these have names, in functions that are called they would be parameters
        if full is not None and (scope.parent is not None or _KNOWN.match(full)):
            text = new_key()
            self.names.meanings[text] = layout.parsed(full)
            return text
        text = scope.key(x) if active else scope.other(x)
        if path := self.paths.get(x):
            self.names.pending[text] = item(path[0], path[1:])
        return text

    def _filled(self, x: Value) -> str | None:
        """The code of an array that has no name, such as ``jnp.zeros((2, 3), jnp.float32)``."""
        if not self.folds or x in self.called or not isinstance(x, jax.Array) or not x.ndim:
            return None
        text = array_text(x)
        return text if text is not None and _FILLED.match(text) else None

    def _operation(self, line: Line, scope: Scope) -> list[Statement]:
        outs = [scope.key(x) if j in line.active_outs and x in scope.used else None for j, x in enumerate(line.outputs)]
        # the results of a function with a gradient of the user's, which is called
        count = getattr(line.op, "results", 0)
        given = ValueSet()  # for parameters
        if line.calls:
            code, instruction, call, _ = line.calls[-1]
            names = handed_on([(code, instruction), *(line.inside if serves(code.co_filename) else ())])
            if len(names) == len(line.inputs):
                # what the instruction made itself, it was not given
                outside = [serves(code.co_filename) or line.calls[-1] not in self.calls_of(x) for x in line.inputs]
                self._note(call, itertools.compress(zip(line.inputs, names, strict=True), outside))
                own = () if serves(code.co_filename) else parameters_of(code)
                given.update(x for x, name in zip(line.inputs, names, strict=True) if name in own)
        args = ["None"] * count
        for i, x in enumerate(line.inputs[count:], count):
            args.append(self.argument(x, i in line.active_ins, scope, filled=x not in given))
        text = self.code.operation(line.op, line.inputs, args, line.active_ins)
        return [Statement([*outs], layout.parsed(text))]

    def _as_one(self, name: str, lines: Sequence[Line], wanted: Sequence[Value], scope: Scope) -> Line:
        """A call of a function of JAX's as one operation."""
        active = ValueSet(line.inputs[i] for line in lines for i in line.active_ins)
        arrays = ValueSet(x for line in lines for x in line.inputs if isinstance(x, jax.Array))
        arrays -= ValueSet(x for line in lines for x in line.outputs)
        fixed = (x for x in arrays if x not in active and not scope.varying_around(x))
        filled = ValueMap((x, np.asarray(x)) for x in fixed if _UNIFORM.match(self._filled(x) or ""))
        inputs = [x for x in arrays if x not in filled]

        def run(*xs: Value) -> Any:
            known = ValueMap(zip(inputs, xs, strict=True))

            def given(x: Value) -> Value:
                full = filled.get(x)
                return known.get(x, x) if full is None else jnp.full(full.shape, full.flat[0], full.dtype)

            for line in lines:
                outs = jax.tree.leaves(line.op.fn(*map(given, line.inputs)))
                known.update(zip(line.outputs, outs, strict=True))
            results = [known[x] for x in wanted]
            return results[0] if len(results) == 1 else results

        positions = tuple([i for i, x in enumerate(inputs) if x in active])
        return Line(Op(name, run), inputs, wanted, positions, tuple(range(len(wanted))))

    # -- calls

    def _call(self, lines: Sequence[Line], depth: int, scope: Scope, wanted: Sequence[Value]) -> list[Statement]:
        code = lines[-1].calls[depth].code
        if is_named(code):
            caller = lines[-1].calls[depth - 1]
            place = (lines[-1].inside or ((caller.code, caller.place),))[-1]
            if statements := self.sourced.spelled(lines, place, scope, wanted):
                return statements
            return self._operation(self._as_one(code.co_name, lines, wanted, scope), scope)
        user = not serves(code.co_filename)
        inner = Scope(scope)
        results: list[ast.expr] = []
        outs: list[Key | None] = []
        caller = lines[-1].calls[depth - 1]
        returned = self.results.of(code, lines, wanted, depth)
        apart = len(bytecode(caller.code).parts.get(caller.instruction, ())) == len(returned)
        for x, tree in [(x, None) for x in returned] if apart else [*self._by_tree(returned, scope)]:
            if tree is None:
                results.append(ast.Name(inner.key(x), ast.Load()))
                outs.append(scope.key(x) if x in scope.used else None)
            else:
                results.append(ast.Name(inner.part((tree,), jax.tree.leaves(self.shapes[tree])), ast.Load()))
                outs.append(root := self.bind(tree, scope))
                self.names.meanings |= {
                    scope.key(leaf): item(root, path) for path, leaf in trees.leaves_of(self.shapes[tree])
                }
        statements = self.block(lines, depth, inner, user)
        made = {out for s in statements for out in s.outs}
        made |= {key for key, x in self.names.meanings.items() if not made.isdisjoint(names_in(x))}  # parts of these
        given = [(inner.keys[x], x, x not in self.sourced.optional) for x in inner.used if inner.keys[x] not in made]
        given += [(key, x, False) for x, key in inner.constants.items()]
        statements, given, named = templates.with_roles(inner.roles, statements, given)
        handed: dict[Key, str] = {}
        inside = self.operands.get(lines[-1].calls[depth].call, ValueMap[str]())
        for parts in self._trees(inner, given, code, inside):
            path = self.common([x for _, x in parts])
            root = self.root(path if user else (self._computed.given(path[0]), *path[1:]))
            there = [(key, self.places[x]) for key, x in parts] + [*inner.trees.items()]
            start = len(path)
            self.names.meanings |= {key: item(root, p[start:]) for key, p in there if p[:start] == path}
            if (called := trees.called((inside.get(x), self.places[x][start:]) for _, x in parts)) in code.co_varnames:
                self.names.hints[root] = called
            handed[root] = part = scope.part(path, [x for _, x in parts])
            self.names.pending[part] = item(path[0], path[1:])
            given = [each for each in given if all(each[1] is not x for _, x in parts)]
        result = layout.replaced(layout.one_or_tuple(results), self.names.meanings)
        if isinstance(result, ast.Name) and self.names.hints.get(result.id) == "grads":
            self.names.arguments[result.id] = new_key()
            self.names.hints[self.names.arguments[result.id]] = self.names.hints.pop(result.id)
        first = {key: i for i, key in reversed([*enumerate(scopes.names_used(Definition([], statements, result)))])}
        given.sort(key=lambda each: first.get(each[0], len(first)))
        own = {key: (x, active) for key, x, active in given}
        order = self._ordered(code, lines, depth, given, [*handed], named)
        for key in own:
            self.names.pending.pop(key, None)
        handed = {key: self.argument(*own[key], scope) if key in own else handed[key] for key in order}
        self.names.arguments |= {key: handed[key] for key in own}
        head = line_of((code, -1)) if user else None  # no instruction's: the first line
        again = lines[-1].calls[depth].call in self._checkpoints
        function = Definition([*handed], statements, result, name_in(caller, code), head=head, checkpoint=again)
        if not user:
            matrices = [key for key in order[::-1] if key in own and jnp.ndim(own[key][0]) > 1]
            shapes = templates.Shapes({own[key][0].shape: key for key in matrices})
            for s in statements:
                filled = {k: x for k in s.keys() if isinstance(x := self.names.meanings.get(k), ast.Call)}
                s.expression = shapes.visit(layout.replaced(s.expression, filled))
        expression = self._applied(code, function, handed, caller)
        if user:
            keys = result.elts if isinstance(result, ast.Tuple) else [result]
            self.names.arguments |= {
                out: x.id for out, x in zip(outs, keys, strict=True) if out and isinstance(x, ast.Name)
            }
        return [Statement(outs, expression)]

    def _by_tree(self, values: Sequence[Value], scope: Scope) -> Iterator[tuple[Value, str | None]]:
        """The values; those that are the leaves of a tree once, with the tree."""
        there, done = ValueSet(values), set[str]()
        for x in values:
            tree = self.places.get(x, ("",))[0]
            leaves = jax.tree.leaves(self.shapes.get(tree))
            whole = tree in scope.makes and ValueSet(leaves) <= there
            if not whole or not (scope.uses(tree) or tree in self.nested or len(leaves) > 1):
                yield x, None
            elif tree not in done:
                done.add(tree)
                yield x, tree

    def root(self, path: Path) -> Key:
        """A key for what is in a tree at a path."""
        key, name = new_key(), path[0]
        (self.names.arguments if scopes.is_key(name) else self.names.hints)[key] = name
        whole = self.shapes.get(path[0])
        self.shapes[key] = None if whole is None else trees.part_at(whole, path[1:])
        return key

    def bind(self, tree: str, scope: Scope) -> Key:
        """A key for a tree that is computed in `scope`, and for what lines after these take of it."""
        root = self.root((tree,))
        scope.makes.discard(tree)
        for key, path in [*scope.trees.items()]:
            if path[0] == tree:
                self.names.meanings[key] = item(root, path[1:])
                del scope.trees[key]
        return root

    def _applied(self, code: CodeType, function: Definition, handed: Mapping[Key, str], caller: Running) -> ast.expr:
        """A call of the printed function that `function` is; or what it does, if that is a call or one operation."""
        raw = self._raw(function, "f")  # before lines are laid out, which depends on the names around
        trees.map_leaves(function, self.names, self.shapes, self.last_rounds.keys)
        rolling.roll(function, self.names, self.shapes)
        scopes.inline(function, self.names)
        called = function.forwarded()
        known = set() if called is None else set(names_in(called.func)) & self.definitions.keys()
        if not function.checkpoint and (known or serves(code.co_filename) and function.is_short()):
            for key in known:
                if self.names.hints[key] == "model":
                    self.names.hints[key] = function.hint
            plain = layout.replaced(function.result if called is None else called, self.names.meanings)
            return layout.replaced(plain, {key: layout.parsed(text) for key, text in handed.items()})
        own = [key for key in dict.fromkeys(re.findall(r"ж\d+", raw)) if key not in self.definitions]
        text = re.sub(r"ж\d+", lambda m: f"v{own.index(m[0])}" if m[0] in own else m[0], raw)
        if (code, text) not in self.known:
            key = self.known[code, text] = new_key()
            self.names.hints[key], self.definitions[key], self.callers[key] = function.hint, function, []
        self.callers[self.known[code, text]].append(caller)
        args: list[ast.expr] = [layout.parsed(handed[key]) for key in function.parameters]
        return ast.Call(ast.Name(self.known[code, text], ast.Load()), args, [])

    def _raw(self, function: Definition, name: str) -> str:
        """Its text with keys in place of names."""
        raw = KeyNames(given=_Keys(), meanings=self.names.meanings)
        return "\n".join(scopes.lines(function, name, raw))

    def define(self, function: Definition) -> None:
        """Names the functions that `function` calls, and writes their text, in the order in which they run."""
        for key in scopes.names_used(function):
            if key in self.definitions and key not in self.names.given:
                self.define(self.definitions[key])
                hint, own = self.names.hints[key], self.definitions[key]
                ending = getattr(getattr(own.result, "func", None), "attr", "linear")
                if own.head is None and self._endings.get(hint, ending) != ending:  # a layer with another activation
                    hint = f"{hint}_{ending}"
                scopes.name_all(own, self.names, self.reserved)
                lines = scopes.lines(own, own.hint, self.names)
                same = "\n".join(lines)  # what was recorded in two ways may read alike
                if same not in self._texts:
                    name = self._texts[same] = self.code.scope.new(hint)
                    self._endings[name] = ending
                    self.functions.append(lines if name == own.hint else scopes.lines(own, name, self.names))
                self.names.given[key] = self._texts[same]

    def runnable(self, function: Definition, scope: Scope) -> Callable[..., Any]:
        """`function`, not yet named, as it will be printed, with the recorded values of the scopes around it."""
        space = self.code.space()
        around: Scope | None = scope
        while around is not None:
            space |= {key: x for x, key in around.keys.items() if x in around.used}
            space |= {key: x for x, key in around.constants.items()}
            for key, path in around.trees.items():
                inside = [x for x in around.used if self.places.get(x, ())[: len(path)] == path]
                space[key] = trees.nested([(self.places[x][len(path) :], x) for x in inside])
            around = around.parent
        texts = [self._raw(each, key) for key, each in self.definitions.items()]
        exec("\n".join([*texts, self._raw(function, "function")]), space)
        found: Callable[..., Any] = space["function"]
        return found

    def _trees(
        self, inner: Scope, given: Sequence[tuple[Key, Value, bool]], code: CodeType, inside: ValueMap[str]
    ) -> list[list[tuple[Key, Value]]]:
        """What of `given` is handed over as a part of a tree, for each tree. `inside`: what values are called in `code`."""
        own = {*parameters_of(code)}
        found: dict[str, list[tuple[Key, Value]]] = {}
        for key, x, active in given:
            if x in self.places and (active or inner.varying_around(x) or inner.is_given(x)):
                found.setdefault(self.places[x][0], []).append((key, x))
        few = len(given) <= code.co_argcount  # as many as its parameters

        def is_whole(tree: str, xs: Sequence[tuple[Key, Value]]) -> bool:
            paths, names = [self.places[x] for _, x in xs], [inside.get(x) for _, x in xs]
            if inner.uses(tree) or trees.called(zip(names, (path[1:] for path in paths), strict=True)) in own:
                return True  # by a derivative, or as the parts of a parameter
            return len(xs) > 1 and not {*names} <= own and not (few and scopes.is_key(tree))  # each is no parameter

        def without_arguments(xs: list[tuple[Key, Value]]) -> list[tuple[Key, Value]]:
            """What stands beside a model in a tree is no part of it: where it is an argument it is one of its own."""
            model = [each for each in xs if len(self.places[each[1]]) > 2]
            known = serves(code.co_filename) or all(len(self.places[x]) > 2 or inside.get(x) in own for _, x in xs)
            return model if known and len({self.places[x][1] for _, x in model}) == 1 else xs

        whole = {tree: without_arguments(xs) for tree, xs in found.items() if is_whole(tree, xs)}
        return [xs for tree, xs in whole.items() if inner.has_tree(tree, [x for _, x in xs])]

    def _name_inside(
        self, x: Value, hint: str | None, active: bool, code: CodeType, parameter_of: Mapping[str | None, str]
    ) -> str | None:
        """What a value that a function is given is called: `hint`, as in the function, or as where it came from."""
        path, called = self.paths.get(x), self.called.get(x, "").split(".")[-1]
        own, library = hint in parameters_of(code), serves(code.co_filename)
        if hint in code.co_freevars:
            return hint
        # of what stands beside the model in a tree the library's own name is the better one
        if path and not (library and len(path) == 2 or own and not str(path[-1]).isidentifier()):
            return _NUMBER.sub("", str(path[-1]))
        if own or library:  # a library's function has names of its own
            return None if active and not own else hint
        return parameter_of.get(called, called or hint)

    def _argument_names(self, values: Sequence[Value], code: CodeType, caller: Running, depth: int) -> ValueMap[str]:
        """The parameters of `code` that these values are for, where its call at `depth` has the expressions for them."""
        where, names = arguments_at(caller.code, caller.instruction, parameters_of(code)), ValueMap[str]()
        for x in values:
            calls = self.calls_of(x)[depth:]
            if calls and calls[0].call == caller.call:
                place = bytecode(caller.code).positions[calls[0].place // 2]
                names.update([(x, where[place])] if place in where else ())
        return names

    def _note(self, call: int, named: Iterable[tuple[Value, str | None]]) -> None:
        """Notes the names of values in a call."""
        known = self.operands.setdefault(call, ValueMap())
        known.update((x, name) for x, name in named if name is not None and name != "self")

    def _ordered(
        self,
        code: CodeType,
        lines: Sequence[Line],
        depth: int,
        given: Sequence[tuple[Key, Value, bool]],
        roots: Sequence[Key],
        named: Mapping[Key, str],
    ) -> list[Key]:
        """What is handed over, in the order of the parameters of `code`; sets what it is called. `roots`: of trees; `named`: the
        parameters of a value that is several."""
        arguments = [name for name in parameters_of(code) if name != "training"]
        caller = lines[-1].calls[depth - 1]
        names = operands(caller.code, caller.instruction)
        handed = dict(zip(arguments, names, strict=True)) if len(names) == len(arguments) else {}
        parameter_of = {name: argument for argument, name in handed.items()}
        inside = self.operands.get(own_call := lines[-1].calls[depth].call, ValueMap[str]())
        written = self._argument_names([x for _, x, _ in given], code, caller, depth - 1)
        hints: dict[Key, str | None] = {}
        for key, x, active in given:
            hint = named.get(key) or written.get(x) or self._name_inside(x, inside.get(x), active, code, parameter_of)
            hints[key] = unused(hint, {*filter(None, hints.values())}) if hint and hint.isidentifier() else None
        known = {*hints.values(), *map(self.names.hint, roots), *texts_at(caller.code, caller.place, arguments)}
        left = [name for name in arguments if name not in known]
        free = [(key, x, active) for key, x, active in given if hints[key] is None]
        unnamed = [key for key, x, on in free if on or own_call not in {y.call for y in self.calls_of(x)}]
        if not serves(code.co_filename):  # a library may convert its arguments in any order
            own = {*arguments, *code.co_freevars}
            unnamed += [root for root in roots if self.names.hint(root) not in own]
            local = {*code.co_varnames[code.co_argcount :]}  # what a parameter is assigned to: ``h = x``
            unnamed += [key for key, _, active in given if active and hints[key] in local]
        if len(unnamed) == 1 or not serves(code.co_filename) and len(unnamed) <= len(left):
            hints |= zip(unnamed, left, strict=False)
        self.names.hints |= {key: name for key, _, active in given if (name := hints[key] or ("" if active else "c"))}
        self.names.hints |= {key: hint for key in roots if (hint := hints.get(key))}
        fixed = ValueMap((x, hint) for key, x, active in given if not active and (hint := hints[key]))
        self.constants.update(fixed)
        self._note(caller.call, ((x, handed.get(hints[key] or "", fixed.get(x))) for key, x, _ in given))
        order = {name: i for i, name in enumerate(arguments)}
        closed_over = {key for key in roots if self.names.hint(key) in code.co_freevars}
        places = {key: len(order) if key in closed_over else -1 for key in roots} | {
            key: len(order) for key, *_ in given
        }
        parts = (
            (name, own) for name in filter(None, hints.values()) for own in arguments if name.startswith(f"{own}_")
        )
        order = {name: order[own] for name, own in parts} | order  # of a tree they stand where it stood
        return sorted(places, key=lambda key: order.get(hints.get(key) or self.names.hint(key) or "", places[key]))


def _note_origin(statements: Sequence[Statement], here: Running) -> None:
    """Notes the line of the user's that statements came of, and its instruction."""
    origin, pair = line_of((here.code, here.place)), bytecode(here.code).pairs.get(here.place)
    for statement in statements:
        statement.origins = (origin,) if origin else ()
        statement.place = statement.place or (here.code, here.place)
    if pair is not None and len(statements) == 1:
        statements[0].pair = here.call, pair
