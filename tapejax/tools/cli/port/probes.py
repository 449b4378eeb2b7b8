"""What is noted while a program runs, beside its tapes: values of expressions, rows of datasets, states of random generators."""

from __future__ import annotations

import ast
import builtins
import contextlib
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from ....tape.active import copied
from ....tf.programs import data
from ....tf.programs.data import Dataset
from ....tf.values import nest
from ....tf.values.tensor import Tensor
from ...seeing.source import packed
from ..imports import replaced
from .observing import Computed, Observer, array_of, user_frame

SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)
BEFORE, VALUE, BEGIN, END = (f"__tapejax_{name}__" for name in ("before", "value", "begin", "end"))


def numbered(tree: ast.Module) -> ast.Module:
    """The tree with a number on each node, its ``place``, which is the same whenever a text is parsed."""
    for place, node in enumerate(ast.walk(tree)):
        node.place = place  # type: ignore[attr-defined]
    return tree


class Probes:
    """What a program that is `prepared` notes: the first values of its expressions, by their places, and random states."""

    def __init__(self, observer: Observer, keep: int):
        self.observer, self.keep = observer, keep
        self.inner: dict[int, list[int]] = {}  # place of an expression -> those of the expressions in it
        # places where a tensor gets a second name: a copy, which is not what the first becomes
        self.second: set[int] = set()
        # expressions that may stand before a block: its line, and their text
        self.movable: dict[int, tuple[int, str]] = {}
        self.begun: dict[int, Any] = {}
        # id -> a dataset, and the place of the expression that made it; an iterator of it, and what it gave
        self.datasets: dict[int, tuple[Dataset, int]] = {}
        self.passes: dict[int, tuple[Iterator, Rows]] = {}
        self.rows: dict[int, Rows] = defaultdict(Rows)  # by the place
        self.last: dict[int, Any] = {}
        self.computed: dict[int, list[Computed]] = defaultdict(list)
        self.randoms = Randoms()

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """While it lasts, programs find what they are `prepared` to call."""
        noted = {BEFORE: self.randoms.note, VALUE: self.note, BEGIN: self.begin, END: self.end}
        with self.observer.installed(), replaced(vars(builtins), **noted):
            self.observer.patch(Dataset, "__iter__", self.iterate)
            self.observer.patch(data.Iterator, "__next__", self.next)
            yield

    def prepared(self, tree: ast.Module) -> ast.Module:
        """The program with probes in it."""
        names = (node.value for node in ast.walk(numbered(tree)) if isinstance(node, ast.Assign))
        self.second = {node.place for node in names if isinstance(node, ast.Name)}  # type: ignore[attr-defined]
        for block in ast.walk(tree):
            if isinstance(block, ast.With):
                bound = {n.id for n in ast.walk(block) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
                for node in ast.walk(block):
                    named = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
                    if isinstance(node, _Noted.kinds) and not bound & named:
                        self.movable[node.place] = block.lineno, ast.unparse(node)  # type: ignore[union-attr]
        return ast.fix_missing_locations(_Noted(self.inner).visit(tree))

    def note(self, place: int, value: Any) -> Any:
        """The value, noted: what the program has in the place of an expression."""
        in_block = bool(self.observer.active)
        if place in self.second and isinstance(value, Tensor) and not in_block:
            value = Tensor(copied(value._array))
        self.last[place] = value
        if isinstance(value, Dataset):
            self.datasets.setdefault(id(value), (value, place))
        if in_block and place in self.movable:
            self.observer.given(*self.movable[place], value)
        if len(self.computed[place]) < self.keep:
            self.computed[place] += self.observer.computed(value, self._parts(place))
        return value

    def _parts(self, place: int) -> dict[int, Any]:
        return {p: self.last[p] for p in self.inner[place] if p in self.last}

    def begin(self, place: int) -> None:
        self.begun[place] = self.observer.begun()

    def end(self, place: int) -> None:
        """Notes what a statement has assigned to variables."""
        changed = self.observer.changed(place, self.begun[place], self._parts(place))
        if len(self.computed[place]) < self.keep:
            self.computed[place] += changed

    def iterate(self, original: Callable, dataset: Dataset) -> Iterator:
        """``Dataset.__iter__``: a pass of the program's own is noted."""
        frame, found = user_frame(), original(dataset)
        if frame is not None and frame is sys._getframe(2) and id(dataset) in self.datasets:
            rows = self.rows[self.datasets[id(dataset)][1]]
            rows.orders.append([])
            rows.lengths.append([])
            self.passes[id(found)] = found, rows
        return found

    def next(self, original: Callable, iterator: Iterator) -> Any:
        """``Iterator.__next__``."""
        element = original(iterator)
        if id(iterator) in self.passes:
            self.passes[id(iterator)][1].note(element)
        return element


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
        """A node as it is to be: of a statement a list of them."""
        if isinstance(node, ast.stmt):
            return self.statement(node)
        if not isinstance(node, self.kinds) or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
            return node
        self.inner[node.place] = list(self.found)  # type: ignore[union-attr]
        self.found.append(node.place)  # type: ignore[union-attr]
        return ast.copy_location(_call(VALUE, node.place, node), node)  # type: ignore[union-attr]

    def statement(self, node: Any) -> list[ast.stmt]:
        place, value = node.place, getattr(node, "value", None)
        if not isinstance(node, (*SIMPLE, ast.For, ast.While)) or isinstance(value, ast.Constant):  # a docstring
            return [node]
        before, after = [_call(BEFORE, node.lineno, *(_call(space) for space in ("globals", "locals")))], []
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            read = ast.copy_location(ast.Name(node.target.id, ast.Load()), node)
            read.place = node.target.place  # type: ignore[attr-defined]
            after.append(self.noted(read))
        elif isinstance(node, ast.For) or isinstance(node, ast.Expr) and isinstance(value, ast.Call):
            self.inner[place] = list(self.found)
            before.append(_call(BEGIN, place))
            after.append(_call(END, place))
        return [*_statements(before, node), node, *_statements(after, node)]


def _call(name: str, *given: int | ast.expr) -> ast.Call:
    constants = [x if isinstance(x, ast.expr) else ast.Constant(x) for x in given]
    return ast.Call(ast.Name(name, ast.Load()), constants, [])


def _statements(calls: Iterable[ast.expr], where: ast.stmt) -> list[ast.stmt]:
    return [ast.copy_location(ast.Expr(call), where) for call in calls]


# ---- random numbers -------------------------------------------------------------------------------------------------


class Randoms:
    """The states of the program's generators of random numbers when it first came to each of its lines, by their names."""

    def __init__(self) -> None:
        self.states: dict[int, dict[str, Any]] = {}

    def note(self, line: int, *spaces: dict[str, Any]) -> None:
        if line not in self.states:
            names = {name: x for space in spaces for name, x in space.items()}
            found = {n: x.bit_generator.state for n, x in names.items() if isinstance(x, np.random.Generator)}
            legacy = {n: x.get_state() for n, x in names.items() if isinstance(x, np.random.RandomState)}
            self.states[line] = found | legacy | {"np.random": np.random.get_state(), "random": random.getstate()}

    def same(self, first: int, second: int) -> bool:
        """Whether no generator drew a number between two lines."""
        return first in self.states and repr(self.states[first]) == repr(self.states.get(second))

    def restoring(self, line: int, source: str, gone: set[str], data: dict[str, Any]) -> Iterator[str]:
        """Statements that put the generators where they were before the statement at a line."""
        numpys = "np.random." in source.replace("np.random.default_rng", "")
        used = {"np.random": numpys, "random": "import random" in source}
        for name, state in self.states.get(line, {}).items():
            key = f"random/{name}/{line}"
            match state:
                case _ if name in gone or not used.get(name, True):
                    pass
                case dict() if "array(" not in repr(state):
                    yield f"{name}.bit_generator.state = {state!r}"
                case (str() as kind, keys, *rest):
                    data[key] = np.asarray(keys)
                    yield f"{name}.set_state(({kind!r}, NPZ[{key!r}], *{tuple(rest)!r}))"
                case (version, numbers, rest):
                    data[key] = np.asarray(numbers)
                    yield f"{name}.setstate(({version}, tuple(NPZ[{key!r}].tolist()), {rest!r}))"
