"""Statements as shapes and atoms, and visitors that change them: what `rolling` compares and writes."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...jaxprs.types import Value
from ..writing import iteration
from ..writing.iteration import Flat, Substitution
from . import layout
from .layout import names_in
from .listing import bytecode
from .scopes import Definition, Key, KeyNames, Statement, is_key, keys_of


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


def flat(s: Statement) -> Flat:
    parts = [iteration.flat(x, is_key, bound) for x, bound in _expressions(s, {})]
    shape = _where(s), s.pattern, len(s.outs), tuple(part.shape for part in parts)
    return Flat(shape, [atom for part in parts for atom in part.atoms])


def _where(s: Statement) -> int | None:
    """Where it is in the source. Before Python 3.12 its instruction is another one, once that was made a faster one."""
    if s.place is None or sys.version_info >= (3, 12):
        return s.place and s.place[1]
    return bytecode(s.place[0]).positions[s.place[1] // 2][0]


def rebuilt(s: Statement, atoms: Iterator[ast.expr], bound: frozenset[str] = frozenset()) -> Statement:
    expression = iteration.rebuilt(s.expression, is_key, atoms, bound)
    if s.function is None:
        return replace(s, expression=expression)
    inner, statements = bound.union(s.function.parameters), []
    for each in s.function.statements:
        statements.append(rebuilt(each, atoms, inner))
        inner = inner.union(out for out in each.outs if out)
    result = iteration.rebuilt(s.function.result, is_key, atoms, inner)
    return replace(s, expression=expression, function=replace(s.function, statements=statements, result=result))


def resolved(s: Statement, meanings: Mapping[Key, ast.expr]) -> Statement:
    """A local function or a loop without keys that stand for parts of what it binds."""
    if s.function is None:
        return s
    bound = {*_bound(s.function)}
    inside = Substitution({key: x for key, x in meanings.items() if not bound.isdisjoint(names_in(x))})
    return replace(changed(s, inside), expression=s.expression)


def _bound(function: Definition) -> Iterator[Key]:
    yield from function.parameters
    for s in function.statements:
        yield from (out for out in s.outs if out)
        yield from _bound(s.function) if s.function is not None else ()


def changed(s: Statement, by: ast.NodeTransformer) -> Statement:
    """A statement whose expressions are what a visitor makes of them."""
    expression = by.visit(layout.replaced(s.expression, {}))
    if s.function is None:
        return replace(s, expression=expression)
    statements = [changed(each, by) for each in s.function.statements]
    result = by.visit(layout.replaced(s.function.result, {}))
    return replace(s, expression=expression, function=replace(s.function, statements=statements, result=result))


def indexed(function: Definition, names: KeyNames) -> None:
    """Writes ``x[0]`` in place of ``x[:1]`` and of the ``[0]`` of that, as it is printed."""
    uses = sum((s.keys() for s in function.statements), keys_of(function.result))
    done: list[Statement] = []
    for s in function.statements:
        before = done[-1] if done else None
        match s.expression:
            case ast.Subscript(value=ast.Name(id=key)) if before and before.outs == [key] and uses[key] == 1:
                if isinstance(before.expression, ast.Subscript) and key not in names.hints and s.function is None:
                    taken = layout.replaced(s.expression, {key: before.expression})
                    s = replace(s, expression=layout.parsed(layout.text_of(taken)))
                    done.pop()
        done.append(s)
    function.statements = done


class Collecting(ast.NodeTransformer):
    """A list in place of all of its elements, where a list or tuple is written out. It counts these, and notes what is in one
    before them. `start`: what the list has in it before them; None if it does not have it yet."""

    def __init__(
        self, keys: Sequence[Key], name: Key, meanings: Mapping[Key, ast.expr], start: Sequence[ast.expr] | None
    ):
        self.keys, self.name, self.meanings, self.start = [*keys], name, meanings, start
        self.found, self.before = 0, list[ast.expr]()

    def _elements(self, node: ast.List | ast.Tuple) -> list[ast.expr] | None:
        meant = [self.meanings.get(getattr(x, "id", ""), x) for x in node.elts]
        ids = [getattr(x, "id", None) for x in meant]
        count = len(self.keys)
        for i in range(len(ids) - count + 1):
            if ids[i : i + count] == self.keys:
                self.found += 1
                self.before = node.elts[:i] if i + count == len(ids) else []
                start = node.elts[: i - len(self.start or ())]
                return [*start, ast.Starred(ast.Name(self.name, ast.Load()), ast.Load()), *node.elts[i + count :]]
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


class ConstantRows(ast.NodeTransformer):
    """A name in place of a list of constants of one type, which are its rows. `name`: that of an array with these."""

    def __init__(self, constants: Mapping[Key, Any], name: Callable[[Sequence[Any]], str]):
        self.constants, self.name = constants, name

    def visit_List(self, node: ast.List) -> ast.expr:
        rows = [self.constants.get(getattr(x, "id", "")) for x in node.elts]
        alike = len({None if x is None else (x.shape, x.dtype, getattr(x, "weak_type", False)) for x in rows}) == 1
        return ast.Name(self.name(rows), ast.Load()) if alike and rows[0] is not None else node


_MAKERS = "zeros ones full broadcast_to bernoulli uniform normal truncated_normal".split()


class Shapes(ast.NodeTransformer):
    """Writes the shape of a parameter where an array of that shape is made: so it is in a library, for any batch."""

    def __init__(self, keys: Mapping[tuple[int, ...], Key]):
        self.keys = keys

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _MAKERS:
            for i, arg in enumerate(node.args):
                if isinstance(arg, ast.Tuple) and (key := self.keys.get(ast.literal_eval(arg))) is not None:
                    node.args[i] = ast.Attribute(ast.Name(key, ast.Load()), "shape", ast.Load())
        return node


def with_roles(
    roles_of: Mapping[Key, Mapping[str, Key]], statements: list[Statement], given: Sequence[tuple[Key, Value, bool]]
) -> tuple[list[Statement], list[tuple[Key, Value, bool]], dict[Key, str]]:
    """What a function is given, once for each parameter that it is, and the parameters of what is several; what is made in it is
    one value in its statements."""
    of, one, named, found = {each[0]: each[1:] for each in given}, dict[str, ast.expr](), dict[Key, str](), [*given]
    for key, roles in roles_of.items():
        others = [own for own in roles.values() if own != key]
        if key in of:
            named |= {own: name for name, own in roles.items() if others}
            found += [(own, *of[key]) for own in others]
        else:
            one |= {own: ast.Name(key, ast.Load()) for own in others}
    return [changed(s, Substitution(one)) for s in statements] if one else statements, found, named
