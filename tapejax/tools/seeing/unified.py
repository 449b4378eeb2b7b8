"""One function of the user's that was called several times, as one printed function: names and numbers that differ are arguments.

Nothing is done to functions whose operations differ, nor where it is not known which parameter a number was given for.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import CodeType
from typing import TYPE_CHECKING, Any

from ...places import serves
from ..writing.unification import Different, Unifier, is_number
from . import layout, scopes
from .listing import arguments_of, parameters_of
from .scopes import Definition, Key, new_key

if TYPE_CHECKING:
    from .recorded import Writer


def unify(writer: Writer, main: Definition) -> None:
    """Has each function of the user's that `main` calls printed once, as far as its calls do the same."""
    by_code: dict[CodeType, list[Key]] = {}
    for (code, _), key in writer.known.items():
        if not serves(code.co_filename) and key not in writer.names.given:
            by_code.setdefault(code, []).append(key)
    groups = [(code, keys) for code, keys in by_code.items() if len(keys) > 1]
    meanings = writer.names.expressions() if groups else {}
    changed = True
    while changed:  # what calls functions that are one by now may be one
        changed = False
        for code, keys in groups:
            for first, other in itertools.combinations([*keys], 2):
                if first in keys and other in keys:
                    if (one := _one(writer, code, [first, other], meanings)) is not None:
                        function, given = one
                        own = {key: writer.definitions[key].parameters for key in (first, other)}
                        cases = {key: (own[key], xs) for key, xs in zip(own, given, strict=True)}
                        calls = _Calls(first, cases, writer.names)
                        for each in (main, *writer.definitions.values(), function):
                            calls.rewrite(each)
                        writer.definitions[first] = function
                        writer.callers[first] += writer.callers[other]
                        # its parameters have another order now than calls in what is written later
                        writer.known = {own: key for own, key in writer.known.items() if key not in (first, other)}
                        keys.remove(other)
                        changed = True


def _one(
    writer: Writer, code: CodeType, keys: Sequence[Key], meanings: Mapping[str, ast.expr]
) -> tuple[Definition, list[list[ast.expr]]] | None:
    """The function that those with these keys are cases of, and for each of them what it is given."""
    functions = [writer.definitions[key] for key in keys]
    base = max(range(len(keys)), key=lambda i: len(functions[i].parameters))
    unifier = Unifier(lambda name: scopes.is_key(name) and name not in writer.definitions, new_key)
    try:
        one = _in_parallel(unifier, functions, meanings)
        given = unifier.parameters([{*_local(each)} for each in functions])
        hints = _arguments(writer, code, keys, unifier, given)
    except Different:
        return None
    renamed = dict[Key, Key]()
    for name, nodes in unifier.atoms.items():
        own = getattr(nodes[base], "id", None)
        alone = sum(getattr(each[base], "id", None) == own for each in unifier.atoms.values()) == 1
        other = next(node.id for node in (nodes[base], *nodes) if isinstance(node, ast.Name)) if own else None
        if own is not None and alone:
            renamed[name] = own
        elif other is not None and (hint := writer.names.hint(other)):
            writer.names.hints[name] = hint
    writer.names.hints |= hints
    one.parameters = [*given]
    _rename(one, {name: ast.Name(own, ast.Load()) for name, own in renamed.items()})
    if not one.free().keys() <= {*one.parameters, *writer.definitions}:
        return None
    order = {name: i for i, name in enumerate(parameters_of(code))}
    place = {key: order.get(writer.names.hint(key) or "", len(order)) for key in one.parameters}
    one.parameters.sort(key=lambda key: place[key])
    head = functions[base]
    one = replace(one, hint=head.hint, comment=head.comment, origins=head.origins, head=head.head)
    atoms = {renamed.get(name, name): unifier.atoms[name] for name in given}
    cases = [[atoms[key][i] for key in one.parameters] for i in range(len(keys))]
    for own, case in zip(functions, cases, strict=True):
        if any(isinstance(x, ast.Name) and x.id not in own.parameters for x in case):
            return None
    return one, cases


def _in_parallel(unifier: Unifier, functions: Sequence[Definition], meanings: Mapping[str, ast.expr]) -> Definition:
    def one(expressions: Sequence[ast.expr]) -> Any:
        return unifier.one([layout.replaced(x, meanings) for x in expressions])

    if len({(len(each.statements), each.checkpoint) for each in functions}) > 1:
        raise Different
    statements = []
    for own in zip(*(each.statements for each in functions), strict=True):
        first, inner = own[0], [s.function for s in own]
        kinds = {(len(s.outs), s.effects, s.pattern, s.function is None) for s in own}
        if len(kinds) > 1 or any(s.loop is not None for s in own):  # a loop is not compared
            raise Different
        outs: list[Key | None] = []
        for names in zip(*(s.outs for s in own), strict=True):
            if len({name is None for name in names}) > 1:
                raise Different
            outs.append(None if names[0] is None else unifier.name([str(name) for name in names]))
        function = None if inner[0] is None else _in_parallel(unifier, [x for x in inner if x is not None], meanings)
        statements.append(replace(first, outs=outs, expression=one([s.expression for s in own]), function=function))
    inside = functions[0]
    result = one([each.result for each in functions])
    return replace(inside, parameters=[], statements=statements, result=result)


def _local(function: Definition) -> Iterator[str]:
    """The names that are bound in it, its parameters not among them."""
    expressions = [function.result]
    for s in function.statements:
        yield from filter(None, s.outs)
        expressions.append(s.expression)
        if s.function is not None:
            yield from s.function.parameters
            yield from _local(s.function)
    for expression in expressions:
        yield from (node.arg for node in ast.walk(expression) if isinstance(node, ast.arg))


def _rename(function: Definition, names: Mapping[Key, ast.Name]) -> None:
    def own(key: Any) -> Any:
        return names[key].id if key in names else key

    function.parameters = list(map(own, function.parameters))
    function.result = layout.replaced(function.result, names)
    for s in function.statements:
        s.outs, s.expression = list(map(own, s.outs)), layout.replaced(s.expression, names)
        if s.function is not None:
            _rename(s.function, names)


def _arguments(
    writer: Writer, code: CodeType, keys: Sequence[Key], unifier: Unifier, given: Sequence[Key]
) -> dict[Key, str]:
    """For which of the parameters of `code` the numbers are that differ, as the calls in the source have them.

    Raises:
      Different: that is not known.
    """
    calls = [
        [arguments_of(each.code, each.instruction, parameters_of(code)) for each in writer.callers[key]] for key in keys
    ]
    hints: dict[Key, str] = {}
    every = [x.id for name in given for x in unifier.atoms[name] if isinstance(x, ast.Name)]
    known = {key for key in every if writer.names.hint(key) in parameters_of(code)}
    for name in given:
        numbers = unifier.atoms[name]
        if not any(map(is_number, numbers)) or known.intersection(getattr(x, "id", None) for x in numbers):
            continue
        fits = [
            own
            for own in parameters_of(code)
            if own not in hints.values()
            and all(
                own in call and is_number(call[own]) and ast.literal_eval(call[own]) == ast.literal_eval(number)
                for number, of_one in zip(numbers, calls, strict=True)
                for call in of_one
                if is_number(number)
            )
        ]
        if len(fits) != 1:
            raise Different
        hints[name] = fits[0]
    return hints


class _Calls(ast.NodeTransformer):
    """Has `one` called in place of others. `cases`: their parameters, and what `one` is given in place of each."""

    def __init__(self, one: Key, cases: Mapping[Key, tuple[Sequence[Key], Sequence[ast.expr]]], names: scopes.KeyNames):
        self.one, self.cases, self.names = ast.Name(one, ast.Load()), cases, names

    def rewrite(self, function: Definition) -> None:
        function.result = self.visit(function.result)
        for s in function.statements:
            s.expression = self.visit(s.expression)
            if s.function is not None:
                self.rewrite(s.function)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        case = self.cases.get(getattr(node.func, "id", ""))
        if case is None:
            return self.generic_visit(node)  # type: ignore[return-value]
        given = dict(zip(case[0], map(self.visit, node.args), strict=True))
        return ast.Call(self.one, [layout.replaced(x, given) for x in case[1]], [])

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.cases:
            return node
        own, given = self.cases[node.id]
        if [getattr(x, "id", None) for x in given] == [*own]:
            return self.one
        keys = [new_key() for _ in own]
        self.names.arguments |= dict(zip(keys, own, strict=True))
        renamed = {old: ast.Name(key, ast.Load()) for old, key in zip(own, keys, strict=True)}
        call = ast.Call(self.one, [layout.replaced(x, renamed) for x in given], [])
        return ast.Lambda(layout.arguments([ast.arg(key) for key in keys]), call)
