"""Functions that differ in names and numbers, as one function with these as parameters: all are cases of it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence, Set
from typing import Any, TypeAlias

# What stands in each of the functions at one place: a name, a number, or a call that is the same wherever it stands.
Atoms: TypeAlias = tuple[ast.expr, ...]


class Different(Exception):
    """The functions do not do the same."""


class Unifier:
    """Goes through functions in parallel; what differs gets a name of its own.

    Args:
      is_variable: whether a name may differ: all others mean the same in each of the functions.
      fresh: gives a new name.

    >>> texts = "x * 2 + f(y, z)", "u * 3 + f(v, v)"
    >>> names = iter("abcd")
    >>> unifier = Unifier(lambda name: name in "xyzuv", lambda: next(names))
    >>> ast.unparse(unifier.one([ast.parse(text, mode="eval").body for text in texts]))
    'a * b + f(c, d)'
    >>> [[ast.unparse(x) for x in unifier.atoms[name]] for name in "abcd"]
    [['x', 'u'], ['2', '3'], ['y', 'v'], ['z', 'v']]
    """

    def __init__(self, is_variable: Callable[[str], bool], fresh: Callable[[], str]):
        self.is_variable, self.fresh = is_variable, fresh
        self.atoms: dict[str, Atoms] = {}  # by the new name
        self._names: dict[tuple[str, ...], str] = {}

    def one(self, nodes: Sequence[Any]) -> Any:
        """The tree of which all are cases.

        Raises:
          Different: there is none.
        """
        first = nodes[0]
        if all(isinstance(x, ast.expr) and (is_number(x) or self._is_name(x)) for x in nodes):
            return self._atom(tuple(nodes))
        if any(map(self._is_name, nodes)) and all(
            self._is_name(x) or is_number(x) or self._is_closed(x) for x in nodes
        ):
            return self._atom(tuple(nodes))
        if any(type(x) is not type(first) for x in nodes):
            raise Different
        if isinstance(first, list):
            if any(len(x) != len(first) for x in nodes):
                raise Different
            return [self.one(parts) for parts in zip(*nodes, strict=True)]
        if isinstance(first, ast.arg):
            return ast.arg(self.name([x.arg for x in nodes]))
        if isinstance(first, ast.AST):
            fields = (name for name in first._fields if hasattr(first, name))
            return type(first)(**{name: self.one([getattr(x, name, None) for x in nodes]) for name in fields})
        if any(x != first for x in nodes):
            raise Different
        return first

    def name(self, names: Sequence[str]) -> str:
        """The name in place of these."""
        return self._atom(tuple([ast.Name(name, ast.Load()) for name in names])).id

    def _is_name(self, node: Any) -> bool:
        return isinstance(node, ast.Name) and self.is_variable(node.id)

    def _is_closed(self, node: Any) -> bool:
        return isinstance(node, ast.Call) and not any(map(self._is_name, ast.walk(node)))

    def _atom(self, nodes: Atoms) -> Any:
        texts = tuple(map(ast.unparse, nodes))
        if len({*texts}) == 1 and is_number(nodes[0]):
            return nodes[0]
        if texts not in self._names:
            self._names[texts] = self.fresh()
            self.atoms[self._names[texts]] = nodes
        return ast.Name(self._names[texts], ast.Load())

    def parameters(self, local: Sequence[Set[str]]) -> list[str]:
        """The new names that are not `local`: of what the functions are given.

        Raises:
          Different: one is local in some of the functions only.
        """
        free = []
        for name, nodes in self.atoms.items():
            inside = {getattr(x, "id", None) in names for x, names in zip(nodes, local, strict=True)}
            if len(inside) > 1:
                raise Different
            free += [] if inside.pop() else [name]
        return free


def is_number(node: ast.AST) -> bool:
    """Whether a tree is a number of Python's, which may be negative."""
    node = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
    return isinstance(node, ast.Constant) and type(node.value) in (int, float, complex)
