"""How printed code is laid out: one line for a statement, or broken at its brackets, as formatters of Python do it."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ...places import SourceLine
from ..writing.expressions import copied
from ..writing.expressions import parsed as parsed

# Lines of code that can be broken are not longer than this, where nothing else is said.
WIDTH = 88
INDENT = "    "


class PrintedLine(str):
    """A line of printed code, with the lines of the recorded program that it came of."""

    origins: tuple[SourceLine, ...] = ()


def with_origins(lines: Sequence[str], origins: Iterable[SourceLine | None]) -> list[str]:
    """The lines, the first with what they came of."""
    first = PrintedLine(lines[0])
    first.origins = tuple(dict.fromkeys(line for line in origins if line is not None))
    return [first, *lines[1:]]


_NUMBER = re.compile(r"-?([\d.e+-]+|jnp\.(inf|nan))")


class _Renaming(ast.NodeTransformer):
    def __init__(self, expressions: Mapping[str, ast.expr]):
        self.expressions = expressions

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.expressions.get(node.id, node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        match node:  # a number of Python's has no methods of arrays
            case ast.Call(func=ast.Attribute(value=x, attr="astype"), args=[dtype]) if _NUMBER.fullmatch(
                ast.unparse(x)
            ):
                return ast.Call(dtype, [x], [])
            case ast.Call(func=ast.Attribute(attr="concatenate"), args=[ast.List(elts=parts), ast.Constant(value=0)]):
                rows = [row for part in parts if (row := _row(part)) is not None]
                if len(rows) == len(parts):  # as `jnp.array` joins what it is given in a list
                    return ast.Call(parsed("jnp.stack"), [ast.List(rows, ast.Load())], [])
            case ast.Call(
                func=ast.Attribute(attr="cond") as cond,
                args=[
                    ast.Call(func=ast.Attribute(value=x, attr="astype"), args=[ast.Attribute(attr="int32")]),
                    *others,
                ],
            ) if _is_truth(x):  # JAX makes the index of a branch of it itself
                return ast.Call(cond, [x, *others], node.keywords)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        args = []
        for arg in node.args.args:
            other = self.expressions.get(arg.arg)
            args.append(ast.arg(other.id if isinstance(other, ast.Name) else arg.arg))
        return ast.Lambda(arguments(args), self.visit(node.body))


def _is_truth(node: ast.expr) -> bool:
    """Whether an expression of arrays is a truth value, whatever they are."""
    match node:
        case ast.Compare() | ast.Call(func=ast.Attribute(attr="logical_not" | "logical_and" | "logical_or")):
            return True
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr(), right=right):
            return _is_truth(left) and _is_truth(right)
    return False


def _row(node: ast.expr) -> ast.expr | None:
    """The `x` in ``x[None]``, or the number in an array of one; None for anything else."""
    match node:
        case ast.Subscript(value=x, slice=ast.Constant(value=None)):
            return x
        case ast.Call(
            func=ast.Attribute(attr="zeros" | "ones" | "full" as name),
            args=[ast.Tuple(elts=[ast.Constant(value=1)]), *numbers, dtype],
        ) if len(numbers) == (name == "full"):
            return ast.Call(dtype, numbers or [ast.Constant(int(name == "ones"))], [])
    return None


class Field(str):
    """A key in a tree that is an attribute."""


def place_of(node: ast.expr | None) -> tuple[str, tuple[Any, ...]] | None:
    """The name and the keys in ``root["a"][0].b``; None for anything else."""
    path = list[Any]()
    while isinstance(node, ast.Attribute) or isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        path.append(Field(node.attr) if isinstance(node, ast.Attribute) else node.slice.value)  # type: ignore[attr-defined]
        node = node.value
    return (node.id, tuple(path[::-1])) if isinstance(node, ast.Name) and path else None


def arguments(args: Sequence[ast.arg]) -> ast.arguments:
    return ast.arguments(posonlyargs=[], args=list(args), kwonlyargs=[], kw_defaults=[], defaults=[])


def one_or_tuple(parts: Sequence[ast.expr]) -> ast.expr:
    return parts[0] if len(parts) == 1 else ast.Tuple([*parts], ast.Load())


def replaced(expression: ast.expr, expressions: Mapping[str, ast.expr]) -> ast.expr:
    """`expression` with others in place of names."""
    renamed: ast.expr = _Renaming(expressions).visit(copied(expression))
    return renamed


def taken_apart(expression: ast.expr) -> ast.expr | None:
    """What ``[*x]``, or the rows of an array, are the parts of; the rows, where JAX iterates in another way."""
    match expression:
        case ast.List(elts=[ast.Starred(value=x)]):
            return x
        case ast.Call(func=ast.Attribute(attr="unstack"), args=[x], keywords=axis):
            return x if not axis and _iterates_by_unstack() else expression
    return None


def _iterates_by_unstack() -> bool:
    return "unstack" in str(jax.make_jaxpr(lambda x: [*x])(jax.ShapeDtypeStruct((2, 1), jnp.float32)))


def names_in(expression: ast.expr) -> list[str]:
    """The names in an expression, as often as they occur."""
    return [node.id for node in ast.walk(expression) if isinstance(node, ast.Name)]


def text_of(expression: ast.expr) -> str:
    """An expression on one line."""
    text = ast.unparse(ast.fix_missing_locations(expression))
    return _formatted(_CUTS.sub(_one_index, text))


# ``x[:, 3:][0, 0]``, which is ``x[0, 3]``
_CUTS = re.compile(r"\[(\d*:\d*(?:, \d*:\d*)*)\]\[((?:(?::|\d+), )*0)\]")


def _one_index(match: re.Match[str]) -> str:
    cuts, indices = (part.split(", ") for part in match.groups())
    joined = {":": lambda cut: cut, "0": lambda cut: cut.partition(":")[0] or "0"}
    pairs = list(itertools.zip_longest(cuts, indices, fillvalue=":"))
    if len(cuts) < len(indices) or any(cut != ":" and i not in joined for cut, i in pairs):
        return match[0]
    return f"[{', '.join([i if cut == ':' else joined[i](cut) for cut, i in pairs])}]"


# A string; or the base of a power of numbers or names, which may be dotted, where no bracket stands before or behind; or 1e9.
_EDITED = re.compile(
    r"""'((?:[^'\\]|\\.)*)'|"(?:[^"\\]|\\.)*"|(?<![\w.)\]])([\w.]+) \*\* (?=-?[\w.]+(?![\w.(\[]))"""
    r"|\b(?<!\.)(\d)(0{6,})\.0\b"
)


def _formatted(text: str) -> str:
    """What `ast.unparse` gives, with double quotes, and simple powers without spaces."""

    def edited(match: re.Match[str]) -> str:
        string, base, digit, zeros = match.groups()
        if base is not None:
            return f"{base}**"
        if digit is not None:
            return f"{digit}e{len(zeros)}"
        return match[0] if string is None or '"' in string else f'"{string}"'

    return _EDITED.sub(edited, text)


def statement(head: str, expression: ast.expr, indent: str = "", width: int = WIDTH) -> list[str]:
    """The lines of ``head`` (``y = ``, ``return ``) and an expression."""
    expression = _Places().visit(replaced(expression, {}))
    several = head == "return " or ", " in head and head.endswith(" = ")
    if several and isinstance(expression, ast.Tuple) and len(expression.elts) > 1:
        line = f"{indent}{head}{text_of(expression)[1:-1]}"
        if len(line) <= width:
            return [line]
    return _broken(indent, head, expression, "", width)


class _Places(ast.NodeTransformer):
    """Computes with the whole numbers of an index, as in ``x[1 * 2:(1 + 1) * 2]`` in the place of ``x[i * 2:(i + 1) * 2]``."""

    _inside = False

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        value, inside = self.visit(node.value), self._inside
        self._inside = True
        index = self.visit(node.slice)
        self._inside = inside
        return ast.Subscript(value, index, node.ctx)

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        left, right = self.visit(node.left), self.visit(node.right)
        whole = all(isinstance(x, ast.Constant) and type(x.value) is int for x in (left, right))
        if whole and self._inside and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)):
            number = eval(ast.unparse(ast.BinOp(left, node.op, right)))
            return ast.Constant(number) if number >= 0 else parsed(str(number))
        return ast.BinOp(left, node.op, right)


def header(target: ast.expr, rows: ast.expr, indent: str, width: int) -> list[str]:
    """The lines of ``for target in rows:``."""
    text = text_of(target)
    return _broken(indent, f"for {text[1:-1] if isinstance(target, ast.Tuple) else text} in ", rows, ":", width)


def _broken(indent: str, head: str, node: ast.expr, tail: str, width: int) -> list[str]:
    line = f"{indent}{head}{text_of(node)}{tail}"
    if len(line) <= width:
        return [line]
    inner = indent + INDENT
    match node:
        case ast.Call(func=func, args=args, keywords=keywords) if args or keywords:
            parts: list[tuple[str, ast.expr]] = [("", arg) for arg in args]
            parts += [(f"{keyword.arg}=", keyword.value) for keyword in keywords]
            opening, closing = f"{text_of(func)}(", ")"
        case ast.List(elts=elts) | ast.Tuple(elts=elts) if elts:
            parts = [("", element) for element in elts]
            opening, closing = ("[", "]") if isinstance(node, ast.List) else ("(", ")")
        case ast.Dict(keys=keys, values=values) if values:
            heads = ["**" if key is None else f"{text_of(key)}: " for key in keys]
            parts = list(zip(heads, values, strict=True))
            opening, closing = "{", "}"
        case ast.Subscript(ast.Call() as value) | ast.Subscript(ast.Subscript(ast.Call() as value)):
            return _broken(indent, head, value, f"{text_of(node)[len(text_of(value)) :]}{tail}", width)
        case ast.BinOp() | ast.Compare() if head.endswith((" = ", "return ")):
            return [f"{indent}{head}(", *_operands(inner, "", node, "", width), f"{indent}){tail}"]
        case ast.BinOp():
            return _operands(indent, head, node, tail, width)
        case _:
            return [line]
    single = f"{inner}{', '.join(name + text_of(part) for name, part in parts)}"
    if len(single) <= width and not isinstance(node, (ast.List, ast.Tuple, ast.Dict)) and len(parts) > 0:
        return [f"{indent}{head}{opening}", single, f"{indent}{closing}{tail}"]
    comma = "" if len(parts) == 1 and isinstance(node, ast.Call) else ","  # a bracket in a bracket
    lines = [line for name, part in parts for line in _broken(inner, name, part, comma, width)]
    return [f"{indent}{head}{opening}", *lines, f"{indent}{closing}{tail}"]


_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.MatMult: "@"}
_SUMS = (ast.Add, ast.Sub)


def _operands(indent: str, head: str, node: ast.expr, tail: str, width: int) -> list[str]:
    """A sum or a product, each of its parts on a line, if the whole does not fit on one."""
    line = f"{indent}{head}{text_of(node)}{tail}"
    kinds = next((k for k in (_SUMS, (ast.Mult, ast.Div, ast.MatMult)) if isinstance(getattr(node, "op", None), k)), ())
    if len(line) <= width or not kinds:
        return [line]
    parts: list[tuple[str, ast.expr]] = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, kinds):
        parts.append((f"{_SIGNS[type(node.op)]} ", node.right))
        node = node.left
    parts.append((head, node))
    lines = []
    for i, (sign, part) in enumerate(reversed(parts)):
        end = tail if i == len(parts) - 1 else ""
        lower = isinstance(part, (ast.Compare, ast.BoolOp, ast.IfExp, ast.Lambda))
        if lower or isinstance(part, ast.BinOp) and isinstance(part.op, (*_SUMS, *(kinds if i else ()))):
            lines += [f"{indent}{sign}({text_of(part)}){end}"]
        else:
            lines += _broken(indent, sign, part, end, width)
    return lines


def definition(
    name: str, parameters: Sequence[str], body: Sequence[str], indent: str = "", width: int = WIDTH
) -> list[str]:
    """The lines of a function; `body` is indented."""
    line = f"{indent}def {name}({', '.join(parameters)}):"
    if len(line) <= width:
        return [line, *body]
    single = f"{indent}{INDENT}{', '.join(parameters)}"
    if len(single) <= width:
        return [f"{indent}def {name}(", single, f"{indent}):", *body]
    return [f"{indent}def {name}(", *(f"{indent}{INDENT}{p}," for p in parameters), f"{indent}):", *body]
