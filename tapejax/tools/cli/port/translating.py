"""Expressions of a program in `jnp`, or as other texts, and the names in them."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from . import names
from .definitions import Definitions
from .randoms import Randoms

ALIASES = ("tensorflow", "keras", "tapejax", "tf_keras")

# TensorFlow's name: what takes the same arguments in `jnp` and gives the same.
JNP = {
    "constant": "asarray", "convert_to_tensor": "asarray", "cast": "astype", "concat": "concatenate", "range": "arange",
    "reduce_mean": "mean", "reduce_sum": "sum", "reduce_max": "max", "reduce_min": "min", "math.reduce_std": "std",
} | {name: name for name in (
    "abs argmax bool_ cos equal exp expand_dims float16 float32 float64 int32 int64 linspace matmul ones ones_like reshape round "
    "sin sqrt square squeeze stack tanh uint8 where zeros zeros_like"
).split()}  # fmt: skip


_KEYWORDS = ("axis", "dtype", "keepdims", "num")  # with which these functions may be called

# the text of an expression, if it fits; if wanted, of other `Texts`, too
Fitting = Callable[[ast.expr, bool], str | None]


class Texts(Protocol):
    """A program, and texts for what TensorFlow did in it, as far as there are any."""

    path: Path
    source: str
    tree: ast.Module
    randoms: Randoms
    definitions: Definitions

    def expression(self, node: ast.expr, reads: bool, fitting: Fitting) -> str | None:
        """For an expression; if `reads`, for the value of a variable, too."""

    def statement(self, node: ast.stmt, fitting: Fitting) -> str | None:
        """For a statement that assigns to variables."""


_READS = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.FormattedValue)
_READING = "np jnp numpy float int bool print abs round len str".split()  # calls that take arrays


class _ToJnp(ast.NodeTransformer):
    """TensorFlow's names in `jnp`, where there are any."""

    def __init__(self, aliases: dict[str, str]):
        self.aliases = aliases

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:  # noqa: N802
        path = ast.unparse(node).split(".")
        if path[0] in self.aliases:
            full = [*self.aliases[path[0]].split("."), *path[1:]]
            name = ".".join(full[1:])
            if full[0] in ("tensorflow", "tapejax") and name == "newaxis":
                return ast.Constant(None)
            for known in (name, name.removeprefix("math.")):
                if full[0] in ("tensorflow", "tapejax") and known in JNP:
                    return ast.parse(f"jnp.{JNP[known]}", mode="eval").body
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:  # noqa: N802
        if isinstance(node.func, ast.Attribute) and node.func.attr == "numpy" and not node.args:
            return ast.Call(ast.parse("np.asarray", mode="eval").body, [self.visit(node.func.value)], [])
        if all(keyword.arg in _KEYWORDS for keyword in node.keywords):
            return self.generic_visit(node)
        func, node.func = node.func, ast.Constant(None)
        self.generic_visit(node)
        node.func = func
        return node


class Rewriter(Protocol):
    """What is known of the program."""

    texts: Texts
    aliases: dict[str, str]  # of TensorFlow
    unused: dict[str, list[int]]  # function -> positions of parameters that it does not read

    def fits(self, node: ast.AST, gone: set[str]) -> bool:
        """Whether a statement or expression uses neither TensorFlow nor what is gone."""

    def calls(self, node: ast.AST) -> list[ast.Call]:
        """The calls in it that lead to a step."""


class Translated(_ToJnp):
    """Other texts, too, for expressions that do not fit: for the smallest that will do."""

    def __init__(self, rewriter: Rewriter, gone: set[str]):
        super().__init__(rewriter.aliases)
        self.rewriter, self.gone = rewriter, gone
        self.reads = False  # whether what is around an expression takes a variable for its value

    def visit(self, node: Any) -> Any:
        outside, self.reads = self.reads, self._reads(node)
        new = super().visit(node)
        if isinstance(new, ast.Call):
            for i in self.rewriter.unused.get(names.callee(new), ()):
                if i < len(new.args) and not self.rewriter.fits(new.args[i], self.gone):
                    new.args[i] = ast.Constant(None)
        self.reads = outside
        target = isinstance(node, ast.AugAssign)
        load = isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        on_the_way = self.rewriter.calls(node)
        if not (target or load and hasattr(node, "place")) or on_the_way or self.rewriter.fits(new, self.gone):
            return new
        text = self.rewriter.texts.expression(node.target if target else node, self.reads, self.fitting)
        if not text:
            return new
        value = ast.parse(text, mode="eval").body
        return ast.Assign([node.target], value, lineno=0) if target else value

    def _reads(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            func = node.func
            root = ast.unparse(_ToJnp(self.aliases).visit(copy.deepcopy(func))).split(".")[0]
            return root in _READING or isinstance(func, ast.Attribute) and func.attr == "numpy"
        return isinstance(node, _READS) or self.reads and isinstance(node, (ast.Starred, ast.keyword))

    def fitting(self, node: ast.expr, others: bool) -> str | None:
        """The text of an expression in `jnp`, and if wanted with `others`, if it fits."""
        new = (self if others else _ToJnp(self.aliases)).visit(copy.deepcopy(node))
        return ast.unparse(new) if self.rewriter.fits(new, self.gone) else None
