"""The rounds of a loop among statements that were written one after the other: where they are, and what differs between them.

An expression is its shape and its atoms: names that stand for values, and numbers. Statements are alike that have one shape.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple


class Run(NamedTuple):
    """Statements that repeat: from where on, how many one round has, and how many rounds there are."""

    start: int
    period: int
    rounds: int

    @property
    def stop(self) -> int:
        return self.start + self.period * self.rounds


def repeated(shapes: Sequence[Hashable], places: Sequence[int]) -> Run | None:
    """The longest run of statements that repeat, of those with these shapes.

    A round begins where an earlier instruction runs than before, so that it is one of the user's.

    >>> repeated(["first", "a", "b", "a", "b", "a", "b", "last"], [0, 4, 8, 4, 8, 4, 8, 9])
    Run(start=1, period=2, rounds=3)
    """
    before = dict[Hashable, int]()
    periods = set[int]()
    for i, shape in enumerate(shapes):
        periods.add(i - before.get(shape, i))
        before[shape] = i
    best: Run | None = None
    for period in sorted(periods - {0}):
        start = 0
        for stop in range(len(shapes) - period + 1):
            if stop == len(shapes) - period or shapes[stop] != shapes[stop + period]:
                run = _aligned(Run(start, period, (stop - start) // period + 1), stop + period, places)
                if run.rounds > 1 and (best is None or run.period * run.rounds > best.period * best.rounds):
                    best = run
                start = stop + 1
    return best


def _aligned(run: Run, stop: int, places: Sequence[int]) -> Run:
    """The run from the first beginning of a round on."""
    start = min(range(run.start, min(run.start + run.period, stop)), key=lambda i: places[i])
    return Run(start, run.period, (stop - start) // run.period)


# ---- expressions ----------------------------------------------------------------------------------------------------


class Flat(NamedTuple):
    """An expression, what is left of it without its atoms, and these."""

    shape: Hashable
    atoms: list[ast.expr]


def flat(node: Any, is_value: Callable[[str], bool], bound: Mapping[str, int] | None = None) -> Flat:
    """`is_value`: whether a name stands for a value. Values that are `bound`, as parameters of a lambda are, are no atoms."""
    atoms: list[ast.expr] = []
    return Flat(_shape(node, is_value, dict(bound or {}), atoms.append), atoms)


def _shape(node: Any, is_value: Callable[[str], bool], bound: dict[str, int], found: Callable[[Any], None]) -> Hashable:
    if isinstance(node, list):
        return tuple([_shape(x, is_value, bound, found) for x in node])
    if not isinstance(node, ast.AST):
        return type(node), node
    if isinstance(node, ast.Name) and node.id in bound:
        return bound[node.id]
    if is_atom(node, is_value):
        found(node)
        return ()
    if isinstance(node, ast.Lambda):
        bound = bound | {arg.arg: len(bound) + i for i, arg in enumerate(node.args.args)}
        return ast.Lambda, len(node.args.args), _shape(node.body, is_value, bound, found)
    return type(node), *(_shape(x, is_value, bound, found) for x in _parts(node))


def is_atom(node: Any, is_value: Callable[[str], bool]) -> bool:
    """Whether it is a value, a number, one with a type, ``jnp.float32(0.5)``, or a string, which may be a key."""
    match node:
        case ast.Name(id=name):
            return is_value(name)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return isinstance(operand, ast.Constant)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="jnp")), args=[ast.Constant(value=x)], keywords=[]):
            return isinstance(x, (int, float))
    return isinstance(node, ast.Constant) and not isinstance(node.value, (bool, bytes))


def _parts(node: ast.AST) -> Iterator[Any]:
    """What an expression is made of. A slice has all its bounds, so that ``x[:4]`` is like ``x[4:8]``."""
    if isinstance(node, ast.Slice):
        yield from (node.lower or ast.Constant(0), node.upper or ast.Constant(None), node.step or ast.Constant(None))
    else:
        yield from (getattr(node, name, None) for name in node._fields if name not in ("ctx", "kind"))


def rebuilt(node: Any, is_value: Callable[[str], bool], atoms: Iterator[ast.expr], bound: frozenset[str]) -> Any:
    """The expression with others in place of its atoms, in their order."""
    if isinstance(node, list):
        return [rebuilt(x, is_value, atoms, bound) for x in node]
    if not isinstance(node, ast.AST) or isinstance(node, ast.Name) and node.id in bound:
        return node
    if is_atom(node, is_value):
        return next(atoms)
    if isinstance(node, ast.Lambda):
        inner = bound.union(arg.arg for arg in node.args.args)
        return ast.Lambda(node.args, rebuilt(node.body, is_value, atoms, inner))
    parts = [rebuilt(x, is_value, atoms, bound) for x in _parts(node)]
    if isinstance(node, ast.Slice):
        return ast.Slice(
            *(None if getattr(x, "value", 1) == end else x for x, end in zip(parts, (0, None, None), strict=True))
        )
    names = [name for name in node._fields if name not in ("ctx", "kind")]
    fields = {"ctx": ast.Load()} if "ctx" in node._fields else {}
    return type(node)(**dict(zip(names, parts, strict=True)), **fields)


class Substitution(ast.NodeTransformer):
    """Others in place of names."""

    def __init__(self, expressions: Mapping[str, ast.expr]):
        self.expressions = expressions

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.expressions.get(node.id, node)


# ---- what differs ---------------------------------------------------------------------------------------------------


class Differs(Exception):
    """Rounds that are no rounds of one loop."""


class Body:
    """What one round does of several that are alike, by what is carried from one to the next and what differs.

    Args:
      made: for each name of a value that a round makes, the round, and the name in the first one.
      meaning: the expression that a name stands for, of names that have none of their own.
      is_value: whether a name stands for a value.
      key: makes a new name.
    """

    def __init__(
        self,
        made: Mapping[str, tuple[int, str]],
        meaning: Callable[[str], ast.expr | None],
        is_value: Callable[[str], bool],
        key: Callable[[], str],
    ):
        self._made, self._meaning, self._is_value, self._key = made, meaning, is_value, key
        self.carried: dict[str, tuple[str, ast.expr]] = {}  # by name what it is in the next round, and in the first
        self.varying: dict[str, tuple[ast.expr, ...]] = {}  # by name what it is in each round
        self._known: dict[Hashable, str] = {}

    def column(self, atoms: Sequence[ast.expr]) -> ast.expr:
        """What is written for `atoms`, one of each round, in all of them."""
        origins = [self._made.get(x.id) if isinstance(x, ast.Name) else None for x in atoms]
        if all(origin is not None and origin[0] == i for i, origin in enumerate(origins)):
            return ast.Name(_one(origins), ast.Load())
        for later in range(1, len(atoms)):
            if all(origin is not None and origin[0] == i for i, origin in enumerate(origins[later:])):
                return ast.Name(self._carried(_one(origins[later:]), atoms[:later]), ast.Load())
        meanings = [self._meaning(x.id) if isinstance(x, ast.Name) else None for x in atoms]
        if any(meanings):
            return self._composed([x or atom for x, atom in zip(meanings, atoms, strict=True)])
        return self._from_outside(atoms)

    def _composed(self, expressions: Sequence[ast.expr]) -> ast.expr:
        parts = [flat(x, self._is_value) for x in expressions]
        if len({part.shape for part in parts}) > 1:
            return self._from_outside(expressions)
        columns = map(self.column, zip(*(part.atoms for part in parts), strict=True))
        expression: ast.expr = rebuilt(expressions[0], self._is_value, columns, frozenset())
        return expression

    def _from_outside(self, expressions: Sequence[ast.expr]) -> ast.expr:
        if not all(map(self.is_outside, expressions)):
            raise Differs
        texts = tuple(map(ast.dump, expressions))
        if len({*texts}) == 1:
            return expressions[0]
        name = self._known.setdefault(texts, self._key())
        self.varying[name] = tuple(expressions)
        return ast.Name(name, ast.Load())

    def _carried(self, becomes: str, starts: Sequence[ast.expr]) -> str:
        """The name of what is `becomes` after so many rounds as it `starts` with."""
        for start in reversed(starts):
            known = (name for name, (to, x) in self.carried.items() if to == becomes and ast.dump(x) == ast.dump(start))
            name = next(known, None) or self._key()
            if not self.is_outside(start):
                raise Differs
            self.carried[name] = becomes, start
            becomes = name
        return becomes

    def is_outside(self, expression: ast.expr) -> bool:
        """Whether no round makes what is in an expression."""
        names = {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}
        parts = (
            node.id
            for name in names
            if (x := self._meaning(name))
            for node in ast.walk(x)
            if isinstance(node, ast.Name)
        )
        return names.union(parts).isdisjoint(self._made)


def _one(origins: Sequence[tuple[int, str] | None]) -> str:
    names = {origin[1] for origin in origins if origin is not None}
    if len(names) > 1:
        raise Differs
    return names.pop()
