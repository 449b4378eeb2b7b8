"""The names in a syntax tree; an attribute's has a dot before it, of whichever object."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def stored(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, (ast.Name, ast.Attribute)) and not isinstance(each.ctx, ast.Load):
            yield of(each)
        elif isinstance(each, (ast.FunctionDef, ast.ClassDef)):
            yield each.name


def added_to(node: ast.AST) -> Iterator[str]:
    """Names of what a statement changes by a method, as in ``losses.append(x)``."""
    calls = (each.func for each in ast.walk(node) if isinstance(each, ast.Call))
    methods = [func for func in calls if isinstance(func, ast.Attribute)]
    return (of(func.value) for func in methods if func.attr in ("append", "extend", "insert", "update", "add"))


def is_gradient(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Call) and callee(node) == ".gradient"


def of(node: ast.AST) -> str:
    """A name, or an attribute's with a dot before it: of whichever object."""
    return node.id if isinstance(node, ast.Name) else f".{node.attr}" if isinstance(node, ast.Attribute) else ""


def callee(call: ast.Call) -> str:
    return of(call.func)


def bound_inside(node: ast.AST) -> set[str]:
    """Names that comprehensions and lambdas bind."""
    parts = [n.target for n in ast.walk(node) if isinstance(n, ast.comprehension)]
    return {name for part in parts for name in stored(part)}


def arguments(given: ast.arguments) -> list[ast.arg]:
    rest = [a for a in (given.vararg, given.kwarg) if a is not None]
    return [*given.posonlyargs, *given.args, *given.kwonlyargs, *rest]
