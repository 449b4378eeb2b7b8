"""An expression of the user's source with holes for what it takes: the first candidate for how operations are written.

What ran at one instruction is the value of one expression. Its operands are expressions in it: known by where they were computed, by
their names, or by trying which is which. Everything else must be a number, or a name that printed code has; no other function of
Python's is called while candidates are tried.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import linecache
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from ...jaxprs.cache import memoised

# Where an expression is in its file: its first and last line, and the columns at which it begins and ends.
Range: TypeAlias = tuple[int | None, int | None, int | None, int | None]

# So many ways of filling the holes are tried, and so many values for what is no operand.
TRIED, FILLERS = 24, 8

# The modules that printed code has, and what programs usually call others of JAX's, each as printed code calls it.
MODULES = {"jax": "jax", "jnp": "jnp", "np": "np", "lax": "jax.lax", "jsp": "jax.scipy", "nn": "jax.nn"}
_PUBLIC = {"jax": "jax", "jax.numpy": "jnp", "numpy": "np"}
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
    """What operations take: where it was computed, what the source calls it, and its text if it is a number."""

    ranges: frozenset[Range] = frozenset()
    name: str | None = None
    text: str | None = None


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


def _filled(
    tree: ast.expr, cut: _Cut, operands: Sequence[Operand], values: Sequence[str]
) -> Iterator[tuple[str, dict[int, str]]]:
    opened = list(cut.open)  # by the text of each
    named = {x.name: i for i, x in enumerate(operands) if x.name in cut.open and i not in cut.used}
    left = [i for i, x in enumerate(operands) if x.text is None and i not in cut.used and i not in named.values()]
    free = [text for text in opened if text not in named]
    fillers = [*dict.fromkeys([x.text for x in operands if x.text is not None] + [*values])][:FILLERS]
    for filled in itertools.islice(_fillings(free, left, fillers), TRIED):
        found = {text: f"{{{i}}}" for text, i in named.items() if text is not None} | filled
        holes = {cut.open[text]: _name(way) if way[:1] == "{" else _parsed(way) for text, way in found.items()}
        names = {int(way[1:-1]): text for text, way in found.items() if way[:1] == "{"}
        yield ast.unparse(_Filled(holes).visit(_copied(tree))), names


def _fillings(free: Sequence[str], left: Sequence[int], fillers: Sequence[str]) -> Iterator[dict[str, str]]:
    """The operands that are left, put in some places; and values in the other ones."""
    for places in itertools.permutations(free, len(left)):
        put = {text: f"{{{i}}}" for text, i in zip(places, left, strict=True)}
        others = [text for text in free if text not in put]
        for values in itertools.product(fillers, repeat=len(others)):
            yield put | dict(zip(others, values, strict=True))


def closed_ranges(expression: ast.expr, modules: Mapping[str, str]) -> list[Range]:
    """Where in an expression calls are that take nothing but numbers, as ``jnp.arange(3)``."""
    found: list[Range] = []

    def look(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.Call, ast.BinOp, ast.UnaryOp, ast.Subscript)) and is_closed(child, modules):
                found.append(range_of(child))
            else:
                look(child)

    look(expression)
    return found


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
    return (first, start) <= (a, c) and (b, d) <= (last, stop)  # type: ignore[operator]


class _Cut(ast.NodeTransformer):
    """Puts holes in the place of operands, and open names in the place of what is not known: ``open`` has these by their texts."""

    def __init__(self, top: ast.expr, operands: Sequence[Operand], modules: Mapping[str, str], apart: bool = False):
        self.top: ast.expr = _copied(top)
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
        return _parsed(text)


@memoised(4096)
def _is_pure(text: str) -> bool:
    """Whether printed code has what this names, and can call it without effects."""
    root, *path = text.split(".")
    found = _SPACE.get(root)
    for name in path:
        found = getattr(found, name, None)
    if found is None and path != ["newaxis"] or not _FILES.isdisjoint(path):
        return False
    if root == "np":
        return (
            path[-1:] != []
            and path[-1] in _MAKERS
            or isinstance(found, (float, int, np.ufunc, type(None)))
            or isinstance(found, type)
            and issubclass(found, np.generic)
        )
    return root != "jax" or not path or path[0] in _OF_JAX


class _Filled(ast.NodeTransformer):
    def __init__(self, holes: Mapping[str, ast.expr]):
        self.holes = holes

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.holes.get(node.id, node)


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _name(text: str) -> ast.Name:
    return ast.Name(text, ast.Load())


def _copied(node: Any) -> Any:
    if isinstance(node, list):
        return [_copied(x) for x in node]
    if not isinstance(node, ast.AST):
        return node
    found = type(node)(**{name: _copied(getattr(node, name)) for name in type(node)._fields if hasattr(node, name)})
    return ast.copy_location(found, node)


# ---- what the source calls modules ----------------------------------------------------------------------------------


def modules_of(file: str) -> Mapping[str, str]:
    """What a file calls JAX's modules and functions, with what printed code calls them."""
    return _imported("".join(linecache.getlines(file)))


@memoised(64)
def _imported(text: str) -> Mapping[str, str]:
    found = dict(MODULES)
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return found
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                known = _printed(alias.name) if alias.asname else _printed(alias.name.partition(".")[0])
                _note(found, alias.asname or alias.name.partition(".")[0], known)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                _note(found, alias.asname or alias.name, _printed(f"{node.module}.{alias.name}"))
    return found


def _note(found: dict[str, str], name: str, text: str | None) -> None:
    if text is not None:
        found[name] = text
    else:
        found.pop(name, None)


def _printed(path: str) -> str | None:
    """What printed code calls a module or function of JAX's; None for others."""
    for name, text in sorted(_PUBLIC.items(), key=lambda pair: -len(pair[0])):
        if path == name or path.startswith(f"{name}."):
            return text + path[len(name) :]
    return None
