"""An expression of the user's source with holes for what it takes: the first candidate for how operations are written.

What ran at one instruction is the value of one expression. Its operands are expressions in it: known by where they were computed,
by their names, or by trying which is which. Everything else must be a number, or a name that printed code has; no function with
effects is called while candidates are tried.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

# Where an expression is in its file: its first and last line, and the columns at which it begins and ends.
Range: TypeAlias = tuple[int | None, int | None, int | None, int | None]

# So many ways of filling the holes are tried, and so many values for what is no operand.
TRIED, FILLERS = 24, 16

_SPACE: Mapping[str, Any] = {"jax": jax, "jnp": jnp, "np": np}
_OF_JAX = set(
    "nn lax scipy ops random image numpy tree tree_util dtypes vmap jvp vjp grad checkpoint jit float0".split()
)
_SIZES = {"shape", "ndim", "size", "dtype"}
_FILES = set(
    "save savez savez_compressed load fromfile set_printoptions printoptions io debug".split()
)  # and the terminal
_MAKERS = set("arange array asarray eye identity zeros ones full linspace".split())  # of NumPy's
_BUILTINS = set("len int float bool complex abs sum min max tuple list range slice zip round reversed sorted".split())


class Operand(NamedTuple):
    """What operations take: where it was computed, what the source calls it, and its text if it is a number. `array`: what is
    part of the expression, and no input of the operations."""

    ranges: frozenset[Range] = frozenset()
    name: str | None = None
    text: str | None = None
    array: np.ndarray | None = None


class Unfit(Exception):
    """The expression cannot be a candidate."""


def range_of(node: Any) -> Range:
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


def candidates(
    expression: ast.expr, operands: Sequence[Operand], modules: Mapping[str, str], values: Sequence[str]
) -> Iterator[tuple[str, dict[int, str]]]:
    """Texts with ``{0}``, ``{1}`` for the operands, each with the names that the source has for operands.

    Args:
      expression: as the source has it.
      operands: what is taken. A number may be written where the source has it.
      modules: what the source calls modules and functions of JAX's, with the text for each.
      values: texts of what a name that is no operand may stand for.
    """
    if not isinstance(expression, (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.Attribute)):
        return
    for apart in (False, True):  # whether an index takes a result apart, and a shape is a number
        cut = _Cut(expression, operands, modules, apart)
        with contextlib.suppress(Unfit):
            tree = cut.visit(cut.top)
            yield from _filled(tree, cut, operands, values)
        if not cut.ambiguous:
            return


_TYPED = re.compile(r"jnp\.(?:u?int|float)\d+\((-?[\d.e+-]+)\)")


def _filled(
    tree: ast.expr, cut: _Cut, operands: Sequence[Operand], values: Sequence[str]
) -> Iterator[tuple[str, dict[int, str]]]:
    opened = list(cut.open)  # by the text of each
    named = {x.name: i for i, x in enumerate(operands) if x.name in cut.open and i not in cut.used}
    left = [i for i, x in enumerate(operands) if x.text is None and i not in cut.used and i not in named.values()]
    free = [text for text in opened if text not in named]
    texts = [x.text for x in operands if x.text is not None]
    plain = [_TYPED.sub(r"\1", text) for text in texts]
    fillers = [*dict.fromkeys([*plain, *texts, *values])][:FILLERS]
    for filled in itertools.islice(_fillings(free, left, fillers), TRIED):
        ways = {text: f"{{{i}}}" for text, i in named.items() if text is not None} | filled
        by_name = {cut.open[text]: f"({way})" if way[:1] == "-" else way for text, way in ways.items()}
        text = re.sub(r"\bopen_\d+\b", lambda match, by_name=by_name: by_name[match[0]], ast.unparse(tree))  # type: ignore[misc]
        yield text, {int(way[1:-1]): text for text, way in ways.items() if way[:1] == "{"}


def _fillings(free: Sequence[str], left: Sequence[int], fillers: Sequence[str]) -> Iterator[dict[str, str]]:
    """The operands that are left, put in some places; and values in the other ones."""
    for places in itertools.permutations(free, len(left)):
        put = {text: f"{{{i}}}" for text, i in zip(places, left, strict=True)}
        others = [text for text in free if text not in put]
        shapes = sorted(fillers, key=lambda text: text[:1] != "(")
        for values in itertools.product(*(shapes if text.endswith(".shape") else fillers for text in others)):
            yield put | dict(zip(others, values, strict=True))


def closed_ranges(expression: ast.expr, modules: Mapping[str, str]) -> list[Range]:
    """Where in an expression calls are that take nothing but numbers, as ``jnp.arange(3)``."""
    ranges: list[Range] = []

    def look(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.Call, ast.BinOp, ast.UnaryOp, ast.Subscript)) and is_closed(child, modules):
                ranges.append(range_of(child))
            else:
                look(child)

    look(expression)
    return ranges


def is_closed(expression: ast.expr, modules: Mapping[str, str]) -> bool:
    """Whether an expression takes nothing but numbers."""
    cut = _Cut(expression, (), modules)
    try:
        cut.visit(cut.top)
    except Unfit:
        return False
    return not cut.open


def is_within(inner: Range, outer: Range) -> bool:
    """Whether one range is in the other."""
    if None in (*inner, *outer):
        return False
    (a, b, c, d), (first, last, start, stop) = inner, outer
    return (first, start) <= (a, c) and (b, d) <= (last, stop)


class _Cut(ast.NodeTransformer):
    """Puts holes in the place of operands, and open names in that of what is not known: ``open`` has these by their texts."""

    def __init__(self, top: ast.expr, operands: Sequence[Operand], modules: Mapping[str, str], apart: bool = False):
        self.top: ast.expr = copied(top)
        self.modules, self.apart = modules, apart
        self.ambiguous = False
        self.open: dict[str, str] = {}
        self.used: set[int] = set()
        self._at = {where: i for i, x in enumerate(operands) for where in x.ranges}
        self._computed = {where for x in operands for where in x.ranges}

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.expr) and node is not self.top:
            position = self._at.get(range_of(node))
            if position is not None:
                self.used.add(position)
                return _name(f"{{{position}}}")
        if isinstance(
            node, (ast.Lambda, ast.Starred, ast.Await, ast.Yield, ast.JoinedStr, ast.ListComp, ast.GeneratorExp)
        ):
            raise Unfit
        return super().visit(node)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        static = self._static(node)
        return self._leaf(node) if static is None else static

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Any:
        return self.visit(node.value)

    def visit_keyword(self, node: ast.keyword) -> ast.keyword:
        if node.arg is None:
            raise Unfit
        return ast.keyword(node.arg, self.visit(node.value))

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if (static := self._static(node)) is not None:
            return static
        if node.attr in _SIZES:
            self.ambiguous = True
        if hasattr(jax.Array, node.attr) and not (self.apart and node.attr in _SIZES):
            return ast.Attribute(self.visit(node.value), node.attr, ast.Load())
        return self._leaf(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        value = node.value
        of_array = isinstance(value, ast.Attribute) and hasattr(jax.Array, value.attr)
        of_array = of_array and not (self.apart and value.attr in _SIZES)  # type: ignore[attr-defined]
        plain = isinstance(value, (ast.Name, ast.Attribute, ast.Subscript)) and not of_array
        if node is not self.top and range_of(value) in self._computed:
            self.ambiguous = True
            plain = self.apart
        if node is not self.top and plain:
            return self._leaf(node)
        return ast.Subscript(self.visit(value), self.visit(node.slice), ast.Load())

    def visit_Call(self, node: ast.Call) -> ast.expr:
        function = node.func
        if getattr(function, "id", "") == "len":  # a number, as a shape
            self.ambiguous = True
            if self.apart:
                return self._leaf(node)
        called: ast.expr | None = self._static(function)
        if (
            called is None
            and isinstance(function, ast.Attribute)
            and hasattr(jax.Array, function.attr)
            or isinstance(function, ast.Call)
        ):
            called = self.visit(function)
        if called is None and isinstance(function, ast.Attribute) and isinstance(function.value, ast.Subscript):
            inner = function.value.value  # x.at[i].set(v)
            if isinstance(inner, ast.Attribute) and inner.attr == "at":
                called = ast.Attribute(self.visit(function.value), function.attr, ast.Load())
        if called is None:
            return self._leaf(node)
        return ast.Call(called, [self.visit(arg) for arg in node.args], [self.visit(each) for each in node.keywords])

    def _leaf(self, node: ast.expr) -> ast.expr:
        if node is self.top:
            raise Unfit
        return _name(self.open.setdefault(ast.unparse(node), f"open_{len(self.open)}"))

    def _static(self, node: ast.expr) -> ast.expr | None:
        """A name that printed code has."""
        path: list[str] = []
        root = node
        while isinstance(root, ast.Attribute):
            path.append(root.attr)
            root = root.value
        if not isinstance(root, ast.Name):
            return None
        if root.id in _BUILTINS and not path and root.id not in self.modules:
            return root
        if (module := self.modules.get(root.id)) is None:
            return None
        text = ".".join([module, *path[::-1]])
        if not _is_pure(text):
            raise Unfit
        return parsed(text)


def _is_pure(text: str) -> bool:
    """Whether printed code has what this names, and can call it without effects."""
    root, *path = text.split(".")
    value: Any = _SPACE.get(root)
    for name in path:
        value = getattr(value, name, None)
    if value is None and path != ["newaxis"] or not _FILES.isdisjoint(path):
        return False
    if root == "np":
        kind = isinstance(value, type) and issubclass(value, np.generic)
        return kind or isinstance(value, (float, int, np.ufunc, type(None))) or path[-1] in _MAKERS
    return root != "jax" or not path or path[0] in _OF_JAX


def parsed(text: str) -> ast.expr:
    """The expression that `text` is."""
    return ast.parse(text, mode="eval").body


def _name(text: str) -> ast.Name:
    return ast.Name(text, ast.Load())


def copied(node: Any) -> Any:
    """By the fields that Python gives its class: other code hangs more on the one `ast.Load` of all trees, a whole program."""
    if isinstance(node, list):
        return [copied(x) for x in node]
    if not isinstance(node, ast.AST):
        return node
    copy = type(node)(**{name: copied(getattr(node, name)) for name in type(node)._fields if hasattr(node, name)})
    return ast.copy_location(copy, node)
