"""What is noted while a program runs, beside its tapes: values of expressions, rows of datasets, states of random generators."""

from __future__ import annotations

import ast
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ....tape.active import copied
from ....tf.programs.data import Dataset
from ....tf.values import nest
from ....tf.values.tensor import Tensor
from ...seeing.source import packed
from .observing import Computed, Observer, array_of, user_frame

SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)
BEFORE, VALUE, BEGIN, END = (f"__tapejax_{name}__" for name in ("before", "value", "begin", "end"))


def numbered(tree: ast.Module) -> ast.Module:
    """The tree with a number on each node, its ``place``, which is the same whenever a text is parsed."""
    for place, node in enumerate(ast.walk(tree)):
        node.place = place  # type: ignore[attr-defined]
    return tree


class Values:
    """The first values of each expression of a program: what was computed, by the place of the expression."""

    def __init__(self, observer: Observer, keep: int):
        self.observer, self.keep = observer, keep
        self.inner: dict[int, list[int]] = {}  # place of an expression -> those of the expressions in it
        # places where a tensor gets a second name: a copy, which is not what the first becomes
        self.second: set[int] = set()
        # expressions that may stand before a block: its line, and their text
        self.movable: dict[int, tuple[int, str]] = {}
        self.begun: dict[int, Any] = {}
        # id -> a dataset, and the place of the expression that made it
        self.datasets: dict[int, tuple[Dataset, int]] = {}
        self.rows: dict[int, Rows] = defaultdict(Rows)  # by that place
        self.last: dict[int, Any] = {}
        self.computed: dict[int, list[Computed]] = defaultdict(list)

    def note(self, place: int, value: Any) -> Any:
        """The value, noted: what the program has in the place of an expression."""
        if place in self.second and isinstance(value, Tensor) and not self.observer.in_block:
            value = Tensor(copied(value._array))
        self.last[place] = value
        if isinstance(value, Dataset):
            self.datasets.setdefault(id(value), (value, place))
        if self.observer.in_block and place in self.movable:
            self.observer.given(*self.movable[place], value)
        if len(self.computed[place]) < self.keep:
            self.computed[place] += self.observer.computed(value, self._parts(place))
        return value

    def _parts(self, place: int) -> dict[int, Any]:
        return {p: self.last[p] for p in self.inner[place] if p in self.last}

    def iterate(self, original: Callable, dataset: Dataset) -> Any:
        """A pass over a dataset, noted if it is the program's own: what ``Dataset.__iter__`` gives."""
        frame, found = user_frame(), original(dataset)
        own = frame is not None and frame is sys._getframe(2) and id(dataset) in self.datasets
        return _Pass(found, self.rows[self.datasets[id(dataset)][1]]) if own else found

    def begin(self, place: int) -> None:
        self.begun[place] = self.observer.begun()

    def end(self, place: int) -> None:
        """Notes what a statement has assigned to variables."""
        changed = self.observer.changed(place, self.begun[place], self._parts(place))
        if len(self.computed[place]) < self.keep:
            self.computed[place] += changed

    def prepare(self, tree: ast.Module) -> ast.Module:
        names = (node.value for node in ast.walk(tree) if isinstance(node, ast.Assign))
        self.second = {node.place for node in names if isinstance(node, ast.Name)}  # type: ignore[attr-defined]
        for block in ast.walk(tree):
            if isinstance(block, ast.With):
                bound = {n.id for n in ast.walk(block) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
                for node in ast.walk(block):
                    named = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
                    if isinstance(node, _Noted.kinds) and not bound & named:
                        self.movable[node.place] = block.lineno, ast.unparse(node)  # type: ignore[union-attr]
        return ast.fix_missing_locations(_Noted(self.inner).visit(tree))


class Rows:
    """What the passes over a dataset gave: of each component the rows that there are, and their order, pass by pass."""

    def __init__(self) -> None:
        self.form = ""  # of an element, code for a function of its components
        self.columns: list[dict[bytes, tuple[int, np.ndarray]]] = []
        self.orders: list[list[int]] = []
        self.lengths: list[list[list[int]]] = []
        self.size = 0

    def note(self, element: Any) -> None:
        leaves = [np.asarray(array_of(x)) for x in nest.flatten(element)]
        names = [f"x{i}" for i in range(len(leaves))]
        self.form = f"lambda {', '.join(names)}: {packed(element, iter(names))}"
        self.columns = self.columns or [{} for _ in leaves]
        for column, x in zip(self.columns, leaves, strict=True):
            for row in x[None] if x.ndim == 0 else x:
                self.size += row.nbytes * (row.tobytes() not in column)
                number, _ = column.setdefault(row.tobytes(), (len(column), row))
                self.orders[-1].append(number)
        self.lengths[-1].append([len(x) if x.ndim else -1 for x in leaves])

    def data(self, name: str) -> dict[str, np.ndarray] | None:
        """Arrays for the ``.npz``; none if rows have different shapes, or are too many."""
        shapes = [{(row.shape, row.dtype) for _, row in column.values()} for column in self.columns]
        if not shapes or any(len(found) > 1 for found in shapes) or self.size > 1 << 28:
            return None
        data = {f"{name}/{i}": np.stack([row for _, row in x.values()]) for i, x in enumerate(self.columns)}
        data |= {f"{name}/order/{i}": np.asarray(x, "int32") for i, x in enumerate(self.orders)}
        return data | {f"{name}/lengths/{i}": np.asarray(x, "int32") for i, x in enumerate(self.lengths)}


class _Pass:
    def __init__(self, elements: Any, rows: Rows):
        self.elements, self.rows = elements, rows
        rows.orders.append([])
        rows.lengths.append([])

    def __iter__(self) -> _Pass:
        return self

    def __next__(self) -> Any:
        element = next(self.elements)
        self.rows.note(element)
        return element

    def __getattr__(self, name: str) -> Any:
        return getattr(self.elements, name)


class _Noted(ast.NodeTransformer):
    """Puts calls of `Values.note` around expressions, and after statements such as ``x -= y``."""

    kinds = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare)
    # fields that are no computation of the program, or must stay what they are
    skipped = set("decorator_list annotation returns bases context_expr targets target".split())

    def __init__(self, inner: dict[int, list[int]]):
        self.inner = inner
        self.found: list[int] = []

    def visit(self, node: ast.AST) -> Any:
        outside, self.found = self.found, []
        for name, part in ast.iter_fields(node):
            if isinstance(node, ast.Call) and name == "func":
                if isinstance(part, ast.Attribute):
                    part.value = self.visit(part.value)
            elif name not in self.skipped or isinstance(node, ast.comprehension):
                setattr(node, name, self.visited(part))
        new = self.noted(node)
        self.found = outside + self.found
        return new

    def visited(self, part: Any) -> Any:
        if isinstance(part, list):
            new = map(self.visited, part)
            return [x for each in new for x in (each if isinstance(each, list) else [each])]
        return self.visit(part) if isinstance(part, ast.AST) else part

    def noted(self, node: Any) -> Any:
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            read = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
            read.place = node.target.place  # type: ignore[attr-defined]
            return [node, ast.copy_location(ast.Expr(self.noted(read)), node)]
        place = getattr(node, "place", None)
        if place is None:
            return node
        if isinstance(node, ast.For) or isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            self.inner[place] = list(self.found)
            begin, end = (ast.copy_location(ast.Expr(_call(name, place)), node) for name in (BEGIN, END))
            return [begin, node, end]
        if not isinstance(node, self.kinds) or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            return node
        self.inner[place] = list(self.found)
        self.found.append(place)
        return ast.copy_location(_call(VALUE, place, node), node)


def _call(name: str, place: int, *given: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), [ast.Constant(place), *given], [])


# ---- random numbers -------------------------------------------------------------------------------------------------


class Randoms:
    """The states of the program's generators of random numbers when it first came to each of its loops."""

    def __init__(self) -> None:
        self.states: dict[int, dict[str, Any]] = {}

    def prepare(self, tree: ast.Module) -> ast.Module:
        """The program, `numbered`, with a probe before each statement of the module and its functions, and before each loop."""
        for node in ast.walk(numbered(tree)):
            whole = isinstance(node, (ast.Module, ast.FunctionDef))
            for name in ("body", "orelse", "finalbody"):
                statements = getattr(node, name, None)
                if isinstance(statements, list):
                    setattr(node, name, [part for s in statements for part in self._probed(s, whole)])
        return ast.fix_missing_locations(tree)

    def _probed(self, statement: ast.stmt, whole: bool) -> Iterator[ast.stmt]:
        first = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)  # a docstring
        if isinstance(statement, (ast.For, ast.While)) or whole and isinstance(statement, SIMPLE) and not first:
            probe = ast.parse(f"{BEFORE}({statement.lineno}, globals(), locals())").body[0]
            for part in ast.walk(probe):
                ast.copy_location(part, statement)
            yield probe
        yield statement

    def note(self, line: int, *spaces: dict[str, Any]) -> None:
        if line not in self.states:
            names = {name: x for space in spaces for name, x in space.items()}
            found = {n: x.bit_generator.state for n, x in names.items() if isinstance(x, np.random.Generator)}
            legacy = {n: x.get_state() for n, x in names.items() if isinstance(x, np.random.RandomState)}
            whole = {"np.random": np.random.get_state(), "random": random.getstate()}
            self.states[line] = {"generators": found, "legacy": legacy, "whole": whole}

    @property
    def generators(self) -> set[str]:
        return {name for states in self.states.values() for part in ("generators", "legacy") for name in states[part]}

    def same(self, first: int, second: int) -> bool:
        """Whether no generator drew a number between two lines."""
        return first in self.states and repr(self.states[first]) == repr(self.states.get(second))

    def restoring(self, line: int, source: str, gone: set[str], data: dict[str, Any]) -> Iterator[str]:
        """Statements that put the generators where they were before the loop at a line."""
        states = self.states.get(line, {"generators": {}, "legacy": {}, "whole": {}})
        for name, state in states["generators"].items():
            if name not in gone and all(isinstance(x, (int, str)) for part in state.values() for x in _values(part)):
                yield f"{name}.bit_generator.state = {state!r}"
        legacy = {f"{n}": x for n, x in states["legacy"].items() if n not in gone}
        if "np.random." in source.replace("np.random.default_rng", "") and states["whole"]:
            legacy["np.random"] = states["whole"]["np.random"]
        for name, (kind, keys, *rest) in legacy.items():
            key = f"random/{name}/{line}"
            data[key] = np.asarray(keys)
            yield f"{name}.set_state(({kind!r}, NPZ[{key!r}], *{tuple(rest)!r}))"
        if "import random" in source and states["whole"]:
            version, numbers, rest = states["whole"]["random"]
            key = f"random/python/{line}"
            data[key] = np.asarray(numbers)
            yield f"random.setstate(({version}, tuple(NPZ[{key!r}].tolist()), {rest!r}))"


def _values(part: Any) -> Any:
    return part.values() if isinstance(part, dict) else (part,)
