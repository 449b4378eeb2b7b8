"""One function of the user's that was called several times, as one printed function: names and numbers that differ are arguments.

Nothing is done to functions whose operations differ, nor where it is not known which parameter a number was given for.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import CodeType
from typing import TYPE_CHECKING

from ..writing.headers import number_of
from ..writing.iteration import Substitution
from . import layout, scopes, templates
from .listing import arguments_of, parameters_of
from .scopes import Definition, Key, Statement, new_key

if TYPE_CHECKING:
    from .recorded import Writer


def unify(writer: Writer, main: Definition) -> None:
    """Has each function of the user's that `main` calls printed once, as far as its calls do the same."""
    by_code: dict[CodeType, list[Key]] = {}
    for (code, _), key in writer.known.items():
        if key not in writer.names.given:
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
    own = [writer.definitions[key] for key in keys]
    fixed = {key: x for key, x in meanings.items() if not any(map(scopes.is_key, layout.names_in(x)))}
    inside = Substitution({key: x for key, x in meanings.items() if key not in fixed})
    whole = [templates.changed(Statement([], function=replace(each, parameters=[])), inside) for each in own]
    flats = [*map(templates.flat, whole)]
    if len({(flat.shape, each.checkpoint) for flat, each in zip(flats, own, strict=True)}) > 1:
        return None
    base = max(range(len(keys)), key=lambda i: len(own[i].parameters))
    given = dict[Key, Sequence[ast.expr]]()  # by parameter what stands there in each
    names = dict[tuple[str, ...], Key]()
    atoms = list[ast.expr]()
    for column in zip(*(flat.atoms for flat in flats), strict=True):
        kinds = {_kind(x, each, fixed) for x, each in zip(column, own, strict=True)}
        texts = tuple([ast.unparse(layout.replaced(x, fixed)) for x in column])
        if len({*texts}) == 1 and "parameter" not in kinds:
            atoms.append(column[base])
            continue
        if "" in kinds or kinds - {"number"} and "parameter" not in kinds:
            return None
        if texts not in names:
            key = getattr(column[base], "id", None)
            names[texts] = name = key if key in own[base].parameters and key not in given else new_key()
            given[name] = column
            first = next((x.id for x in (column[base], *column) if isinstance(x, ast.Name)), "")
            if name != key and (hint := writer.names.hint(first)):
                writer.names.hints[name] = hint
        atoms.append(ast.Name(names[texts], ast.Load()))
    if (hints := _arguments(writer, code, keys, given)) is None:
        return None
    writer.names.hints |= hints
    one = templates.rebuilt(whole[base], iter(atoms)).function
    assert one is not None
    order = {name: i for i, name in enumerate(parameters_of(code))}
    parameters = sorted(given, key=lambda key: order.get(writer.names.hint(key) or "", len(order)))
    if not one.free().keys() <= {*parameters, *writer.definitions, *fixed}:
        return None
    return replace(one, parameters=parameters), [[given[key][i] for key in parameters] for i in range(len(keys))]


def _kind(x: ast.expr, function: Definition, fixed: Mapping[str, ast.expr]) -> str:
    """What may be given to a function, of what stands in it: a "parameter", a "number", a "call" that is the same wherever it
    stands; "" for all else."""
    if isinstance(x, ast.Name):
        return "parameter" if x.id in function.parameters else "call" if isinstance(fixed.get(x.id), ast.Call) else ""
    return "number" if number_of(x) is not None else "call" if isinstance(x, ast.Call) else ""


def _arguments(
    writer: Writer, code: CodeType, keys: Sequence[Key], given: Mapping[Key, Sequence[ast.expr]]
) -> dict[Key, str] | None:
    """For which of the parameters of `code` the numbers are that differ, as the calls in the source have them; None if that is
    not known. `given`: by parameter what stands there in each."""
    calls = [
        [arguments_of(each.code, each.instruction, parameters_of(code)) for each in writer.callers[key]] for key in keys
    ]
    hints: dict[Key, str] = {}
    every = [x.id for xs in given.values() for x in xs if isinstance(x, ast.Name)]
    known = {key for key in every if writer.names.hint(key) in parameters_of(code)}
    for name, column in given.items():
        values = [*map(number_of, column)]
        if {*values} == {None} or known.intersection(getattr(x, "id", None) for x in column):
            continue
        fits = [
            own
            for own in parameters_of(code)
            if own not in hints.values()
            and all(
                own in call and number_of(call[own]) == number
                for number, of_one in zip(values, calls, strict=True)
                for call in of_one
                if number is not None
            )
        ]
        if len(fits) != 1:
            return None
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
