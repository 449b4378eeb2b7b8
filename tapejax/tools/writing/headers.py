"""The header of a printed loop: over what it goes, from what differs between its rounds and from the user's own header."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from .iteration import Substitution

Number: TypeAlias = "int | float | None"


@dataclass
class Header:
    """``for target in rows``; `meanings`: what is written for what differs; `hints`: what the names that it binds are to be."""

    target: ast.expr
    rows: ast.expr
    meanings: dict[str, ast.expr] = field(default_factory=dict)
    hints: dict[str, str] = field(default_factory=dict)
    counter: str = ""  # the name of the number of the round

    def beside(self, target: ast.expr, rows: ast.expr, counts: bool) -> Header:
        """It, and `target` in `rows`. `counts`: whether its own number is that of the round."""
        if getattr(self.target, "id", "") == "_":
            return replace(self, target=target, rows=rows)
        both = _call("enumerate", [rows]) if counts else _call("zip", [self.rows, rows])
        return replace(self, target=_tuple([self.target, target]), rows=both)

    def bound(self) -> list[str]:
        """The names that it binds."""
        return [node.id for node in ast.walk(self.target) if isinstance(node, ast.Name) and node.id != "_"]


def header(
    varying: Mapping[str, Sequence[ast.expr]],
    whole: Mapping[str, ast.expr],
    rounds: int,
    loop: ast.For | None,
    skipped: int,
    key: Callable[[], str],
) -> Header:
    """The header of so many `rounds`, in which what is `varying` differs.

    Args:
      varying: by name what it is in each round.
      whole: what is taken apart into these, where something is.
      loop: the user's, if it is known.
      skipped: how many of its rounds came before these.
      key: makes a new name.
    """
    counter, names = _targets(loop)
    counts = _counts(loop, rounds, skipped, varying)
    index = key()
    made = Header(ast.Name("_", ast.Load()), _range(counts), hints={index: counter or "i"}, counter=index)
    rest: dict[str, Sequence[ast.expr]] = {}
    for name, columns in varying.items():
        if (x := _in_terms_of(counts, columns, loop, counter)) is None:
            rest[name] = columns
        else:
            made.meanings[name] = _with(x, {counter or "i": ast.Name(index, ast.Load())})
    if made.meanings:
        made.target = ast.Name(index, ast.Load())
    if rest:
        if len(names) == len(rest):
            order = [name for name in whole if name in rest]
            made.hints |= dict(zip([*order, *(name for name in rest if name not in order)], names, strict=True))
        elif len(names) == 1 and (own := _numbers_of(loop)[skipped : skipped + rounds]):
            made.hints |= {name: names[0] for name, columns in rest.items() if [*map(ast.dump, columns)] == own}
        made = made.beside(*_rows(rest, whole), counts == [*range(rounds)])
    return made


def _rows(rest: Mapping[str, Sequence[ast.expr]], whole: Mapping[str, ast.expr]) -> tuple[ast.expr, ast.expr]:
    """What a loop binds, and the rows of that."""
    target = _tuple([ast.Name(name, ast.Load()) for name in rest])
    if whole.keys().isdisjoint(rest):
        return target, ast.List([_tuple(x) for x in zip(*rest.values(), strict=True)], ast.Load())
    rows = [whole.get(name) or ast.List([*columns], ast.Load()) for name, columns in rest.items()]
    return target, rows[0] if len(rows) == 1 else _call("zip", rows)


def _call(name: str, args: Sequence[ast.expr]) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), [*args], [])


class OverRows:
    """A header, in whose loop what is taken of a list of the user's by the number of the round becomes what the loop goes over.

    `size`: of how many parts a list is that an expression stands for.
    """

    def __init__(
        self,
        made: Header,
        loop: ast.For | None,
        rounds: int,
        size: Callable[[ast.expr], int | None],
        key: Callable[[], str],
    ):
        self.header, self._names, self._size, self._key = made, _targets(loop)[1], size, key
        self._index = getattr(made.target, "id", "_")
        self._goes_over = loop is not None and _over(loop) is None and ast.unparse(made.rows) == f"range({rounds})"
        self._rounds, self._parts = rounds, dict[str, dict[int | None, str]]()

    def over(self, statements: list[Any], changed: Callable[[Any, ast.NodeTransformer], Any]) -> list[Any]:
        """The statements of the loop. `changed`: one whose expressions are what a visitor makes of them."""
        if not self._goes_over or self._index == "_":
            return statements
        finding = _Taking(self._index, self._key, self._rounds, self._size)
        written = [changed(s, finding) for s in statements]
        if len(finding.lists) != 1:
            return statements
        (over,) = finding.lists.values()
        row = finding.rows[ast.dump(over)]
        first = ast.Subscript(over, ast.Constant(0), ast.Load())
        if 1 < len(self._names) == self._size(first):
            parts = [self._key() for _ in self._names]
            splitting = _Splitting(row, parts)
            apart = [changed(s, splitting) for s in written]
            if not splitting.left:
                row_target, written = _tuple([ast.Name(part, ast.Load()) for part in parts]), apart
                self.header.hints |= dict(zip(parts, self._names, strict=True))
            else:
                row_target = ast.Name(row, ast.Load())
        else:
            row_target = ast.Name(row, ast.Load())
            self.header.hints |= {row: self._names[0]} if len(self._names) == 1 else {}
        counting = finding.left > 0
        made = replace(self.header, target=ast.Name(self._index if counting else "_", ast.Load()))
        self.header = made.beside(row_target, over, True)
        return written


class _Taking(ast.NodeTransformer):
    """A name in place of ``layers[i]``; `left` is how often the number of the round stands elsewhere."""

    def __init__(self, index: str, key: Callable[[], str], rounds: int, size: Callable[[ast.expr], int | None]):
        self._index, self._key, self._rounds, self._size = index, key, rounds, size
        self.lists, self.rows, self.left = dict[str, ast.expr](), dict[str, str](), 0

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        index = Plain({self._index}).visit(node.slice)
        if getattr(index, "id", "") == self._index and self._size(node.value) == self._rounds:
            text = ast.dump(node.value)
            self.lists[text] = node.value
            return ast.Name(self.rows.setdefault(text, self._key()), ast.Load())
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        self.left += node.id == self._index
        return node


class _Splitting(ast.NodeTransformer):
    """Names in place of the parts of a row; `left` is how often it stands alone."""

    def __init__(self, row: str, parts: Sequence[str]):
        self._row, self._parts, self.left = row, parts, 0

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        if getattr(node.value, "id", "") == self._row and isinstance(number := getattr(node.slice, "value", None), int):
            return ast.Name(self._parts[number], ast.Load())
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        self.left += node.id == self._row
        return node


def renamed(loop: ast.For | None) -> dict[str, str]:
    """What the user's loop assigns under another name, ``a = b``: by the old name the new one."""
    other = dict[str, str]()
    for node in ast.walk(loop) if loop is not None else ():
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                pairs = [*zip(targets, values, strict=False)]
            case ast.Assign(targets=[target], value=value):
                pairs = [(target, value)]
            case _:
                continue
        other |= {x.id: to.id for to, x in pairs if isinstance(x, ast.Name) and isinstance(to, ast.Name)}
    return other


def collected_in(loop: ast.For | None, hint: str | None) -> str:
    """What the user calls the list to which a loop appends what is called `hint`."""
    appended = []
    for node in ast.walk(loop) if loop is not None else ():
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[x]):
                appended.append((name, getattr(x, "id", None)))
    named = [name for name, x in appended if x == hint] or [name for name, _ in appended]
    return named[0] if len({*named}) == 1 else f"{hint or 'row'}s"


def _tuple(parts: Sequence[ast.expr]) -> ast.expr:
    return parts[0] if len(parts) == 1 else ast.Tuple([*parts], ast.Load())


def _with(node: ast.expr, expressions: Mapping[str, ast.expr]) -> ast.expr:
    """A copy with others in place of names."""
    tree: Any = Substitution(expressions).visit(ast.parse(ast.unparse(node), mode="eval"))
    expression: ast.expr = tree.body
    return expression


# ---- the user's header ----------------------------------------------------------------------------------------------


def _targets(loop: ast.For | None) -> tuple[str | None, list[str]]:
    """What the user calls the number of the round, and the rows."""
    if loop is None:
        return None, []
    target, counter = loop.target, None
    if _over(loop) is not None:
        return getattr(target, "id", None), []
    match loop:
        case ast.For(target=ast.Tuple(elts=[ast.Name(id=name), inner]), iter=ast.Call(func=ast.Name(id="enumerate"))):
            counter, target = name, inner
    parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    return counter, [x.id for x in parts if isinstance(x, ast.Name)]


def _numbers_of(loop: ast.For | None) -> list[str]:
    """What the user's loop goes over, if that is written out in it."""
    match loop.iter if loop is not None else None:
        case (
            ast.List(elts=parts)
            | ast.Tuple(elts=parts)
            | ast.Call(func=ast.Name(id="enumerate"), args=[ast.List(elts=parts) | ast.Tuple(elts=parts)])
        ):
            return [*map(ast.dump, parts)]
    return []


def _over(loop: ast.For | None) -> ast.Call | None:
    """The ``range(...)`` that the user's loop goes over, maybe reversed."""
    match loop.iter if loop is not None else None:
        case ast.Call(func=ast.Name(id="range")) as call:
            return call
        case ast.Call(func=ast.Name(id="reversed"), args=[ast.Call(func=ast.Name(id="range"))]) as call:
            return call
    return None


def _counts(loop: ast.For | None, rounds: int, skipped: int, varying: Mapping[str, Sequence[ast.expr]]) -> list[int]:
    """The number of each round, as the user counts them."""
    call = _over(loop)
    if call is not None:
        with contextlib.suppress(Exception):  # its arguments need not be numbers
            every = [*eval(ast.unparse(call), {"__builtins__": {}, "range": range, "reversed": reversed})]
            if len(every) >= skipped + rounds:
                return every[skipped : skipped + rounds]
        if len(call.args) > 1 or getattr(call.func, "id", "") == "reversed":  # from a number that is not known
            for columns in varying.values():
                numbers = [*map(number_of, columns)]
                if all(isinstance(x, int) for x in numbers) and _step(numbers) in (1, -1):
                    return [int(x or 0) for x in numbers]
    return [*range(skipped, skipped + rounds)]


def _range(counts: Sequence[int]) -> ast.expr:
    start, step = counts[0], _step(counts) or 1
    args = [start, counts[-1] + step, step]
    if step == -1 and counts[-1] == 0:
        return ast.parse(f"reversed(range({start + 1}))", mode="eval").body
    args = args if step != 1 else args[:2] if start else args[1:2]
    return ast.parse(f"range({', '.join(map(str, args))})", mode="eval").body


class Plain(ast.NodeTransformer):
    """Without sums of 0, of the numbers of rounds."""

    def __init__(self, counters: set[str]):
        self._counters = counters

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        names = {x.id for x in ast.walk(node.left) if isinstance(x, ast.Name)}
        number = number_of(node.right)
        counts = (
            bool(names) and names <= self._counters and all(isinstance(x, _ARITHMETIC) for x in ast.walk(node.left))
        )
        if not (counts and isinstance(node.op, ast.Add) and isinstance(number, int) and number <= 0):
            return node
        return ast.BinOp(node.left, ast.Sub(), ast.Constant(-number)) if number else node.left


# ---- numbers --------------------------------------------------------------------------------------------------------


def number_of(node: ast.expr) -> Any:
    """The number that an expression is; None for any other."""
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() | complex() as x)):
            return -x
        case ast.Constant(value=int() | float() | complex() as x) if not isinstance(x, bool):
            return x
    return None


def _step(numbers: Sequence[Number]) -> int | None:
    """The step of a progression of integers."""
    if len(numbers) < 2 or not all(isinstance(x, int) for x in numbers):
        return None
    steps = {b - a for a, b in zip(numbers, numbers[1:], strict=False)}  # type: ignore[operator]
    return int(steps.pop()) if len(steps) == 1 else None


def _in_terms_of(
    counts: Sequence[int], columns: Sequence[ast.expr], loop: ast.For | None, counter: str | None
) -> ast.expr | None:
    """An expression of the number of the round: from the user's loop, else of a progression."""
    numbers = [*map(number_of, columns)]
    ends = [isinstance(x, ast.Constant) and x.value is None for x in columns]  # of slices
    if any(x is None and not end for x, end in zip(numbers, ends, strict=True)):
        return None
    for candidate in _candidates(loop, counter, numbers[0], any(ends)):
        if isinstance(candidate, ast.Name) and isinstance(numbers[0], int):
            continue  # a progression, as below
        values = _values(candidate, counter or "", counts)
        if all(map(_same, numbers, values, ends)):
            return candidate
        if all(
            type(x) is int and isinstance(number, float) and x == number
            for number, x in zip(numbers, values, strict=True)
        ):
            return _call("float", [candidate])  # as JAX has made it
    if any(ends[1:]):
        return None
    step, start = _step([0 if end else x for x, end in zip(numbers, ends, strict=True)]), numbers[0] or 0
    if step is None or step % (_step(counts) or 1):
        return None
    factor = step // (_step(counts) or 1)
    offset = int(start) - factor * counts[0]
    name = counter or "i"
    scaled = name if abs(factor) == 1 else f"{abs(factor)} * {name}"
    # with a sum of 0, which is another number in the next round of a loop around it; `Plain` takes it away
    return ast.parse(f"{offset} - {scaled}" if factor < 0 else f"{scaled} + {offset}", mode="eval").body


def _same(number: Number, value: Any, end: bool) -> bool:
    """Whether an expression of the user's is a number that was printed. `end`: none was, where a slice begins or ends."""
    if end or type(value) is not type(number):
        return end and (value is None or isinstance(value, int)) or False
    short = isinstance(value, float) and str(np.float32(value)) == str(np.float32(number))
    return bool(value == number) or short and str(np.float32(number)) == repr(number)


def _candidates(loop: ast.For | None, counter: str | None, first: Number, ends: bool) -> Iterator[ast.expr]:
    """Parts of the user's loop that are numbers if that of the round is: also with one other name, a number. `ends`: those that
    are the end of a slice."""
    nodes = [x for statement in (loop.body if loop and counter else ()) for x in ast.walk(statement)]
    filled = list[ast.expr]()
    for node in [x.upper for x in nodes if isinstance(x, ast.Slice)] if ends else nodes:
        if not isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Name)):
            continue
        parts = [*ast.walk(node)]
        if not all(isinstance(x, _ARITHMETIC) for x in parts) or sum(isinstance(x, ast.Pow) for x in parts) > 1:
            continue
        names = {x.id for x in ast.walk(node) if isinstance(x, ast.Name)}
        others = names - {counter}
        if counter in names and not others:
            yield node
        elif counter in names and len(others) == 1 and isinstance(first, float):
            filled.append(_with(node, {others.pop(): ast.Constant(first)}))
    yield from filled


_ARITHMETIC = ast.BinOp, ast.UnaryOp, ast.Name, ast.Constant, ast.operator, ast.unaryop, ast.expr_context


def _values(candidate: ast.expr, counter: str, counts: Sequence[int]) -> list[Any]:
    code = compile(
        ast.Expression(ast.fix_missing_locations(ast.parse(ast.unparse(candidate), mode="eval").body)), "", "eval"
    )
    try:
        return [eval(code, {"__builtins__": {}, counter: i}) for i in counts]
    except Exception:  # as a division by zero
        return [None] * len(counts)
