"""Statements that are the rounds of a loop of the user's, written as that loop.

What is printed runs the very statements that were there, one round after the other: so it needs no other proof.
"""

from __future__ import annotations

import ast
import itertools
import linecache
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import CodeType
from typing import Any

import jax
import jax.numpy as jnp

from ...places import Line, line_of
from ..writing import headers
from ..writing.headers import Header
from ..writing.rounds import Body, Differs, Flat, Run, flat, rebuilt, repeated
from . import layout, trees
from .layout import names_in
from .listing import bytecode
from .scopes import Function, Key, Loop, Names, Statement, is_key, keys_of, new_key


def roll(function: Function, names: Names, shapes: Mapping[str, Any]) -> None:
    """Writes the loops in `function`, inner ones first. `shapes`: trees by their keys."""
    _index(function, names)
    for code in dict.fromkeys(s.place[0] for s in function.statements if s.place is not None):
        ranges: dict[int, int] = {}
        for start, stop in bytecode(code).rounds:
            ranges[start] = max(stop, ranges.get(start, 0))
        for start, stop in sorted(ranges.items(), key=lambda each: each[1] - each[0]):
            _Rolling(function, names, shapes, code, start, stop).roll()


class _Rolling:
    """Loops of the user's at the instructions from `start` to `stop` of `code`."""

    def __init__(
        self, function: Function, names: Names, shapes: Mapping[str, Any], code: CodeType, start: int, stop: int
    ):
        self.function, self.names, self.shapes = function, names, shapes
        self.code, self.start, self.stop = code, start, stop
        self.loop = _loop_at(code, start)

    def roll(self) -> None:
        """Searches each run of its statements for rounds."""
        begin = 0
        while begin < len(self.function.statements):
            statements = self.function.statements
            run = [*itertools.takewhile(self._is_here, statements[begin:])]
            before = len(statements)
            if len(run) > 1:
                meanings = self.names.expressions()
                self.written = [*statements[:begin], *(_resolved(s, meanings) for s in run), *statements[begin + len(run) :]]
                shapes = [_flat(s).shape for s in self.written[begin : begin + len(run)]]
                rounds = repeated(shapes, [s.place[1] for s in run if s.place])
                if rounds is not None:
                    self._write(rounds._replace(start=begin + rounds.start), rounds.start)
            begin += 1 + len(run) - (before - len(self.function.statements))

    def _is_here(self, s: Statement) -> bool:
        return s.place is not None and s.place[0] is self.code and self.start <= s.place[1] <= self.stop

    def _write(self, run: Run, before: int) -> None:
        """Writes a loop for the rounds; the first may be another one. `before`: how many statements of the loop come before."""
        skipped = -(-before // run.period)
        for first in range(2):
            part = Run(run.start + first * run.period, run.period, run.rounds - first)
            if part.rounds > 1 + bool(first or before):
                try:
                    return _Written(self, part, skipped + first).put()
                except Differs:
                    continue


class _Written:
    """A loop while it is written, in place of the statements of `run`."""

    def __init__(self, of: _Rolling, run: Run, skipped: int):
        self.function, self.names, self.shapes, self.loop = of.function, of.names, of.shapes, of.loop
        self.run, self.code = run, of.code
        every = of.written
        self.before, self.after = every[: run.start], every[run.stop :]
        self.rounds = [every[i : i + run.period] for i in range(run.start, run.stop, run.period)]
        self.keys: dict[Key, list[Key]] = {}  # by what the first round makes the same of each
        for statements in zip(*self.rounds, strict=True):
            for outs in zip(*(s.outs for s in statements), strict=True):
                if outs[0] is not None:
                    self.keys[outs[0]] = [out for out in outs if out is not None]
        made = {key: (i, own) for own, keys in self.keys.items() for i, key in enumerate(keys)}
        self.meanings = of.names.expressions()
        self.round = Body(made, self.meanings.get, is_key, new_key)
        self.statements = [self._statement(statements) for statements in zip(*self.rounds, strict=True)]
        self.result, self.lists = self.function.result, dict[Key, Key]()  # by what is collected
        self.last = dict[Key, Key]()  # by what is used after the loop, of the last round
        self.later = self._later()
        for own, keys in self.keys.items():
            self._use_after(own, keys)
        self.header = self._header(skipped)

    def _statement(self, statements: Sequence[Statement]) -> Statement:
        """What is written for a statement of all rounds."""
        columns = zip(*(_flat(s).atoms for s in statements), strict=True)
        written = _rebuilt(statements[0], map(self.round.column, columns))
        lines = dict.fromkeys(line for s in statements for line in s.origins)
        return replace(written, origins=tuple(lines))

    def _later(self) -> set[Key]:
        """What is used after the loop."""
        return self.names.roots(itertools.chain(keys_of(self.result), *(s.keys() for s in self.after)))

    def _use_after(self, own: Key, keys: Sequence[Key]) -> None:
        if not self.later.isdisjoint(keys[:-1]):
            self.lists[own] = new_key()
            collecting = _Collecting(keys, self.lists[own], self.meanings)
            self.after = [_changed(s, collecting) for s in self.after]
            self.result = collecting.visit(layout.replaced(self.result, {}))
            self.later = self._later()
        if not self.later.isdisjoint(keys[:-1]):
            raise Differs
        if keys[-1] in self.later:
            self.last[own] = keys[-1]

    def _header(self, skipped: int) -> Header:
        """The header, and what is written for what differs."""
        self.whole = {name: s for name, xs in self.round.varying.items() if (s := self._taken_apart(xs)) is not None}
        rows = {name: _iterated(s.expression) for name, s in self.whole.items()}
        found = headers.header(self.round.varying, rows, self.run.rounds, self.loop, skipped, new_key)
        if found.meanings:
            meant = {name: layout.replaced(x, {}) for name, x in found.meanings.items()}
            self.statements = [_changed(s, _Filling(meant)) for s in self.statements]
        rows_of = headers.Rows(found, self.loop, self.run.rounds, self._size, new_key)
        self.statements = rows_of.over([*self.statements], _changed)
        return rows_of.header

    def _taken_apart(self, rows: Sequence[ast.expr]) -> Statement | None:
        """The statement that takes apart what the `rows` are all of, and nothing else reads."""
        keys = [getattr(x, "id", None) for x in rows]
        others = [*self.before, *self.after, Statement([], self.result)]
        for s in self.before:
            if s.outs == keys and ast.unparse(s.expression).startswith("jnp.unstack("):
                used = self.names.roots(itertools.chain(*(each.keys() for each in others)))
                return s if used.isdisjoint(s.outs) and len(s.expression.args) == 1 else None  # type: ignore[attr-defined]
        return None

    def _size(self, node: ast.expr) -> int | None:
        """How many parts a list or tuple of the user's has."""
        root, path = (node.id, ()) if isinstance(node, ast.Name) else layout.place_of(node) or ("", ())
        tree = self.shapes.get(root)
        try:
            part = None if tree is None else trees.part_at(tree, path)
        except (KeyError, IndexError, TypeError, AttributeError):
            return None
        return len(part) if type(part) in (list, tuple) else None

    def put(self) -> None:
        """Replaces the statements."""
        carried, names = self.round.carried, self.names
        place = self.rounds[0][0].place
        nexts = [to for to, _ in carried.values()]
        for s in self.statements:
            s.effects |= not set(nexts).isdisjoint(s.outs)
        starts = [Statement([name], x, effects=True, place=place) for name, (_, x) in carried.items()]
        starts += [Statement([key], ast.List([], ast.Load()), effects=True, place=place) for key in self.lists.values()]
        for name, (to, _) in carried.items():
            if wish := next(filter(None, map(names.wish, [*self.keys.get(to, [])[::-1], to])), None):
                names.wishes.setdefault(name, wish)
        for own, key in self.last.items():
            name = next((name for name, (to, _) in carried.items() if to == own), own)
            names.meanings[key] = ast.Name(name, ast.Load())
        last = [own for own in self.last if own not in nexts]
        for own, key in self.lists.items():
            names.wishes[key] = headers.collected_in(self.loop, names.wish(own))
        names.wishes |= self.header.wishes
        results: list[ast.expr] = [ast.Name(key, ast.Load()) for key in (*nexts, *self.lists, *last)]
        body = Function([*carried, *self.header.bound()], self.statements, ast.Tuple(results, ast.Load()))
        loop = Loop(self.header.target, len(carried), len(self.lists))
        outs: list[Key | None] = [*carried, *self.lists.values(), *last]
        written = Statement(outs, self.header.rows, body, effects=True, origins=self._origins(), place=place, loop=loop)
        unread = [*self.whole.values()]
        before = [s for s in self.before if all(s is not each for each in unread)]
        self.function.statements = [*before, *starts, written, *self.after]
        self.function.result = self.result

    def _origins(self) -> tuple[Line, ...]:
        place = self.rounds[0][0].place
        line = None if place is None or self.loop is None else line_of(place)
        if line is None or self.loop is None:
            return ()
        text = linecache.getline(line.file, self.loop.lineno).strip()
        return (line._replace(number=self.loop.lineno, text=text),)


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


def _iterated(unstacked: Any) -> ast.expr:
    """What a loop over the rows goes over; as JAX runs it, an array itself or its parts."""
    x = jax.ShapeDtypeStruct((2, 1), jnp.float32)
    plain, apart = (str(jax.make_jaxpr(f)(x)) for f in (lambda x: [*x], lambda x: [*jnp.unstack(x)]))
    expression: ast.expr = unstacked.args[0] if plain == apart else unstacked
    return expression


# ---- statements as shapes and atoms ---------------------------------------------------------------------------------


def _expressions(s: Statement, bound: dict[str, int]) -> Iterator[tuple[Any, dict[str, int]]]:
    """The expressions in a statement, each with what is bound there, by a number; and what else it is."""
    yield s.expression, bound
    if s.function is not None:
        inner = dict(bound)
        inner |= {key: len(inner) + i for i, key in enumerate(s.function.parameters)}
        yield [len(s.function.parameters), s.loop and (s.loop.carried, s.loop.lists)], inner
        for each in s.function.statements:
            yield from _expressions(each, inner)
            inner |= {out: len(inner) + i for i, out in enumerate(each.outs) if out}
            yield [[out is None for out in each.outs], each.pattern], inner
        yield s.function.result, inner


def _flat(s: Statement) -> Flat:
    parts = [flat(x, is_key, bound) for x, bound in _expressions(s, {})]
    place = s.place and s.place[1]
    shape = place, s.pattern, tuple(out is None for out in s.outs), tuple(part.shape for part in parts)
    return Flat(shape, [atom for part in parts for atom in part.atoms])


def _rebuilt(s: Statement, atoms: Iterator[ast.expr], bound: frozenset[str] = frozenset()) -> Statement:
    expression = rebuilt(s.expression, is_key, atoms, bound)
    if s.function is None:
        return replace(s, expression=expression)
    inner, statements = bound.union(s.function.parameters), []
    for each in s.function.statements:
        statements.append(_rebuilt(each, atoms, inner))
        inner = inner.union(out for out in each.outs if out)
    result = rebuilt(s.function.result, is_key, atoms, inner)
    return replace(s, expression=expression, function=replace(s.function, statements=statements, result=result))


def _resolved(s: Statement, meanings: Mapping[Key, ast.expr]) -> Statement:
    """A local function or a loop without keys that stand for parts of what it binds."""
    if s.function is None:
        return s
    bound = {*_bound(s.function)}
    inside = _Filling({key: x for key, x in meanings.items() if not bound.isdisjoint(names_in(x))})
    return replace(_changed(s, inside), expression=s.expression)


def _bound(function: Function) -> Iterator[Key]:
    yield from function.parameters
    for s in function.statements:
        yield from (out for out in s.outs if out)
        yield from _bound(s.function) if s.function is not None else ()


def _changed(s: Statement, by: ast.NodeTransformer) -> Statement:
    """A statement whose expressions are what a visitor makes of them."""
    expression = by.visit(layout.replaced(s.expression, {}))
    if s.function is None:
        return replace(s, expression=expression)
    statements = [_changed(each, by) for each in s.function.statements]
    result = by.visit(layout.replaced(s.function.result, {}))
    return replace(s, expression=expression, function=replace(s.function, statements=statements, result=result))


def _index(function: Function, names: Names) -> None:
    """Writes ``x[0]`` in place of ``x[:1]`` and of the ``[0]`` of that, as it is printed."""
    uses = sum((s.keys() for s in function.statements), keys_of(function.result))
    done: list[Statement] = []
    for s in function.statements:
        before = done[-1] if done else None
        match s.expression:
            case ast.Subscript(value=ast.Name(id=key)) if before and before.outs == [key] and uses[key] == 1:
                if isinstance(before.expression, ast.Subscript) and key not in names.wishes and s.function is None:
                    taken = layout.replaced(s.expression, {key: before.expression})
                    s = replace(s, expression=layout.parsed(layout.text_of(taken)))
                    done.pop()
        done.append(s)
    function.statements = done


class _Filling(ast.NodeTransformer):
    """Others in place of names."""

    def __init__(self, expressions: Mapping[str, ast.expr]):
        self.expressions = expressions

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.expressions.get(node.id, node)


class _Collecting(ast.NodeTransformer):
    """A list in place of all of its elements, in a list or tuple that is written out."""

    def __init__(self, keys: Sequence[Key], name: Key, meanings: Mapping[Key, ast.expr]):
        self.keys, self.name, self.meanings = [*keys], name, meanings

    def _elements(self, node: ast.List | ast.Tuple) -> list[ast.expr] | None:
        meant = [self.meanings.get(getattr(x, "id", ""), x) for x in node.elts]
        ids = [getattr(x, "id", None) for x in meant]
        count = len(self.keys)
        for i in range(len(ids) - count + 1):
            if ids[i : i + count] == self.keys:
                return [*node.elts[:i], ast.Starred(ast.Name(self.name, ast.Load()), ast.Load()), *node.elts[i + count :]]
        return None

    def visit_List(self, node: ast.List) -> ast.expr:
        self.generic_visit(node)
        if (elements := self._elements(node)) is None:
            return node
        return ast.Name(self.name, ast.Load()) if len(elements) == 1 else ast.List(elements, ast.Load())

    def visit_Tuple(self, node: ast.Tuple) -> ast.expr:
        self.generic_visit(node)
        if (elements := self._elements(node)) is None:
            return node
        whole = ast.Call(ast.Name("tuple", ast.Load()), [ast.Name(self.name, ast.Load())], [])
        return whole if len(elements) == 1 else ast.Tuple(elements, ast.Load())
