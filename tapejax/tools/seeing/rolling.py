"""Statements that are the rounds of a loop of the user's, written as that loop.

What is printed runs the very statements that were there, one round after the other: so it needs no other proof.
"""

from __future__ import annotations

import ast
import itertools
import linecache
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import CodeType
from typing import Any

from ...places import SourceLine, line_of
from ..writing import headers
from ..writing.headers import Header
from ..writing.iteration import Body, Differs, Run, Substitution, repeated
from . import layout, templates, trees
from .listing import bytecode, expression_at
from .scopes import Definition, Key, KeyNames, Loop, Statement, is_key, keys_of, new_key


def roll(function: Definition, names: KeyNames, shapes: Mapping[str, Any]) -> None:
    """Writes the loops in `function`, inner ones first. `shapes`: trees by their keys."""
    templates.indexed(function, names)
    counters: set[Key] = set()
    for code in dict.fromkeys(s.place[0] for s in function.statements if s.place is not None):
        ranges: dict[int, int] = {}
        for start, stop in bytecode(code).rounds:
            ranges[start] = max(stop, ranges.get(start, 0))
        for start, stop in sorted(ranges.items(), key=lambda each: each[1] - each[0]):
            _Rolling(function, names, shapes, code, start, stop).roll(counters)
    if counters:
        function.statements = [
            templates.changed(s, headers.Plain(counters)) if s.loop else s for s in function.statements
        ]
    trees.remove_unused(function, names)


class _Rolling:
    """Loops of the user's at the instructions from `start` to `stop` of `code`."""

    def __init__(
        self, function: Definition, names: KeyNames, shapes: Mapping[str, Any], code: CodeType, start: int, stop: int
    ):
        self.function, self.names, self.shapes = function, names, shapes
        self.code, self.start, self.stop = code, start, stop
        self.loop = _loop_at(code, start)

    def roll(self, counters: set[Key]) -> None:
        """Searches each run of its statements for rounds. `counters` gets the names of the numbers of rounds."""
        begin, self.counters = 0, counters
        while begin < len(self.function.statements):
            statements = self.function.statements
            run = [*itertools.takewhile(self._is_here, statements[begin:])]
            before = len(statements)
            if len(run) > 1:
                meanings = self.names.expressions()
                plain = [templates.resolved(s, meanings) for s in run]
                self.written = [*statements[:begin], *plain, *statements[begin + len(run) :]]
                alike = [(templates.flat(s).shape, s.place) for s in plain]  # an instruction runs once a round
                rounds = repeated(alike, [s.place[1] for s in run if s.place])
                if rounds is not None:
                    self._write(rounds._replace(start=begin + rounds.start), rounds.start)
            begin += 1 + len(run) - (before - len(self.function.statements))

    def _is_here(self, s: Statement) -> bool:
        return s.place is not None and s.place[0] is self.code and self.start <= s.place[1] <= self.stop

    def _write(self, run: Run, before: int) -> None:
        """Writes a loop for the rounds; the first may be another one. `before`: how many statements of the loop come before."""
        inside = [s for s in self.written[run.start - before : run.start] if s.place and s.place[1] > self.start]
        skipped, before = -(-len(inside) // run.period), len(inside)
        for first in range(2):
            part = Run(run.start + first * run.period, run.period, run.rounds - first)
            if part.rounds > 1 + bool(first or before):
                try:
                    written = _Written(self, part, skipped + first)
                    if written.round.carried or written.lists:  # else all rounds make the same: functions, say
                        self.counters.add(written.header.counter)
                        return written.put()
                except Differs:
                    continue


class _Written:
    """A loop while it is written, in place of the statements of `run`."""

    def __init__(self, of: _Rolling, run: Run, skipped: int):
        self.function, self.names, self.shapes, self.loop = of.function, of.names, of.shapes, of.loop
        self.run, self.code = run, of.code
        every = of.written
        self.before, self.after = every[: run.start], every[run.stop :]
        alike = [_with_same_outs(every[i : run.stop : run.period]) for i in range(run.start, run.start + run.period)]
        self.rounds = [[*statements] for statements in zip(*alike, strict=True)]
        self.keys: dict[Key, list[Key]] = {}  # by what the first round makes the same of each
        for statements in alike:
            for outs in zip(*(s.outs for s in statements), strict=True):
                if outs[0] is not None:
                    self.keys[outs[0]] = [key for key in outs if key]
        made = {key: (i, own) for own, keys in self.keys.items() for i, key in enumerate(keys) if key}
        self.meanings = of.names.expressions()
        self.round = Body(made, self.meanings.get, is_key, new_key)
        self.statements = [self._statement(statements) for statements in zip(*self.rounds, strict=True)]
        if any(map(self._calls_another, self.statements)):
            raise Differs
        self.result, self.lists = self.function.result, dict[Key, list[ast.expr]]()  # what they start with
        self.collected = dict[Key, Key]()  # by what is collected the list
        self.last = dict[Key, Key]()  # by what is used after the loop its name there
        self.later = self._later()
        for own, keys in self.keys.items():
            self._use_after(own, keys)
        self.header = self._header(skipped)

    def _statement(self, statements: Sequence[Statement]) -> Statement:
        """What is written for a statement of all rounds."""
        columns = zip(*(templates.flat(s).atoms for s in statements), strict=True)
        written = templates.rebuilt(statements[0], map(self.round.column, columns))
        lines = dict.fromkeys(line for s in statements for line in s.origins)
        return replace(written, origins=tuple(lines))

    def _calls_another(self, s: Statement) -> bool:
        """Whether each round calls another function, where the source calls one by its name: what that ran differs."""
        match s.expression, expression_at(*s.place) if s.place else None:
            case ast.Call(func=ast.Name(id=key)), ast.Call(func=ast.Name(id=name)) if key in self.round.varying:
                return self.loop is None or name not in layout.names_in(self.loop.target)
        return False

    def _later(self) -> set[Key]:
        """What is used after the loop."""
        return self.names.roots(itertools.chain(keys_of(self.result), *(s.keys() for s in self.after)))

    def _use_after(self, own: Key, keys: Sequence[Key | None]) -> None:
        name: Key | None = own
        known = dict[Key, Key]()
        carriers = {to: name for name, (to, _) in self.round.carried.items()}
        for key in reversed(keys):  # what is carried on is that of the round before
            name = carriers.get(name or "", own if key is keys[-1] else None)
            if name is None:
                break
            known |= {key: name} if key else {}
        if not self.later.isdisjoint({*keys} - known.keys()):
            self._collect(own, [key for key in keys if key])
        if not self.later.isdisjoint({*keys} - known.keys()):
            raise Differs
        self.last |= {key: name for key, name in known.items() if key in self.later}

    def _collect(self, own: Key, keys: Sequence[Key]) -> None:
        """Writes a list in place of all that the rounds made the same of."""
        self.collected[own] = name = new_key()
        every = [*self.after, Statement([], self.result)]
        counting = templates.Collecting(keys, name, self.meanings, None)
        for s in every:
            templates.changed(s, counting)
        made = {out for s in self.after for out in s.outs}
        early = [*itertools.takewhile(lambda x: getattr(x, "id", None) not in made, counting.before)]
        whole = counting.found == 1 and len(early) == len(counting.before) and all(map(self.round.is_outside, early))
        self.lists[name] = early if whole else []
        collecting = templates.Collecting(keys, name, self.meanings, self.lists[name])
        *self.after, last = [templates.changed(s, collecting) for s in every]
        self.result, self.later = last.expression, set()
        self.later = self._later()

    def _header(self, skipped: int) -> Header:
        """The header, and what is written for what differs."""
        self.changed: list[
            tuple[Statement, list[Statement]]
        ] = []  # statements before it, with what is written for them
        rows = {name: x for name, xs in self.round.varying.items() if (x := self._taken_apart(name, xs)) is not None}
        header = headers.header(self.round.varying, rows, self.run.rounds, self.loop, skipped, new_key)
        if header.meanings:
            meant = {name: layout.replaced(x, {}) for name, x in header.meanings.items()}
            self.statements = [templates.changed(s, Substitution(meant)) for s in self.statements]
        rows_of = headers.OverRows(header, self.loop, self.run.rounds, self._size, new_key)
        self.statements = rows_of.over([*self.statements], templates.changed)
        return rows_of.header

    def _taken_apart(self, name: Key, rows: Sequence[ast.expr]) -> ast.expr | None:
        """What the `rows` are the parts of, if a statement takes that apart; the last may be read after the loop, too."""
        keys = [getattr(x, "id", None) for x in rows]
        for s in self.before:
            apart = layout.taken_apart(s.expression) if keys[0] is not None and keys[0] in s.outs else None
            if apart is None:
                continue
            others = [each for each in (*self.before, *self.after, Statement([], self.result)) if each is not s]
            used = self.names.roots(itertools.chain(*(each.keys() for each in others)))
            at = s.outs.index(keys[0])
            if s.outs[at : at + len(keys)] != keys or not used.isdisjoint(keys[:-1]) or s.pattern:
                return None
            if keys[-1] in used:
                self.last[keys[-1]] = name
            before, after = s.outs[:at], s.outs[at + len(keys) :]
            if not before and not after:
                self.changed.append((s, []))
                return apart
            rest = new_key()
            self.names.hints[rest] = "rest"
            pattern = ", ".join([*["{}"] * len(before), "*{}", *["{}"] * len(after)])
            self.changed.append((s, [replace(s, outs=[*before, rest, *after], pattern=pattern)]))
            return ast.Name(rest, ast.Load())
        return None

    def _size(self, node: ast.expr) -> int | None:
        """How many parts a list or tuple of the user's has."""
        root, path = (node.id, ()) if isinstance(node, ast.Name) else layout.place_of(node) or ("", ())
        tree = self.shapes.get(root)
        try:
            part = None if tree is None else trees.part_at(tree, path)
        except (KeyError, IndexError, TypeError, AttributeError):
            return None
        return len(part) if isinstance(part, (list, tuple)) else None

    def put(self) -> None:
        """Replaces the statements."""
        carried, names = self.round.carried, self.names
        place = self.rounds[0][0].place
        nexts = [to for to, _ in carried.values()]
        for s in self.statements:
            s.effects |= not set(nexts).isdisjoint(s.outs)
        self._name(headers.renamed(self.loop))
        begins = [(name, x) for name, (_, x) in carried.items()]
        # last what is called as what it starts with, which may have the same name if nothing else reads that
        begins.sort(key=lambda each: names.hint(each[0]) == names.hint(getattr(each[1], "id", "")))
        same = {ast.dump(x): ast.Name(name, ast.Load()) for name, x in begins}
        for name, before in self.lists.items():
            begins.append((name, ast.List([same.get(ast.dump(x), x) for x in before], ast.Load())))
        starts = [Statement([name], x, effects=True, place=place) for name, x in begins]
        names.meanings |= {key: ast.Name(name, ast.Load()) for key, name in self.last.items() if key != name}
        last = [name for name in dict.fromkeys(self.last.values()) if name not in carried]
        results: list[ast.expr] = [ast.Name(key, ast.Load()) for key in (*nexts, *self.collected, *last)]
        body = Definition([*carried, *self.header.bound()], self.statements, ast.Tuple(results, ast.Load()))
        loop = Loop(self.header.target, len(carried), len(self.lists))
        outs: list[Key | None] = [*carried, *self.lists, *last]
        written = Statement(outs, self.header.rows, body, effects=True, origins=self._origins(), place=place, loop=loop)
        earlier = self.before
        for old, new in self.changed:
            earlier = [x for s in earlier for x in (new if s is old else [s])]
        self.function.statements = [*earlier, *starts, written, *self.after]
        self.function.result = self.result

    def _name(self, renamed: Mapping[str, str]) -> None:
        """What is carried has the name that holds it when a round begins. `renamed`: what the user assigns to other names."""
        names = self.names
        for name, (to, start) in self.round.carried.items():
            made = [key for key in (*self.keys.get(to, [])[::-1], to) if key]
            hint = next(filter(None, map(names.hint, made)), None)
            kept = to in self.keys and hint == names.hint(getattr(start, "id", ""))
            if hint is not None:
                names.hints[name] = hint if kept else renamed.get(hint, hint)
        for own, keys in self.keys.items():
            # not what a function calls its result
            if hint := next(filter(None, map(names.hints.get, filter(None, keys))), None):
                names.hints.setdefault(own, hint)
        for own, key in self.collected.items():
            names.hints[key] = headers.collected_in(self.loop, names.hint(own))
        names.hints |= self.header.hints

    def _origins(self) -> tuple[SourceLine, ...]:
        place = self.rounds[0][0].place
        if self.loop is None or (line := line_of(place)) is None:
            return ()
        text = linecache.getline(line.file, self.loop.lineno).strip()
        return (line._replace(number=self.loop.lineno, text=text),)


def _with_same_outs(statements: Sequence[Statement]) -> list[Statement]:
    """What each round makes by one statement, with a key also where nothing reads it in that round."""
    used = [any(outs) for outs in zip(*(s.outs for s in statements), strict=True)]
    return [
        replace(s, outs=[(out or new_key()) if kept else None for out, kept in zip(s.outs, used, strict=True)])
        for s in statements
    ]


def _loop_at(code: CodeType, start: int) -> ast.For | None:
    """The user's ``for`` whose rounds begin at an instruction, as the source has it."""
    where = bytecode(code).positions[start // 2]
    try:
        tree = ast.parse("".join(linecache.getlines(code.co_filename)))
    except SyntaxError:  # a notebook's cell may have commands
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.For) and where in (_position(node), _position(node.iter)):
            return node
    return None


def _position(node: ast.stmt | ast.expr) -> tuple[int | None, ...]:
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset
