"""What `jax.vmap` ran in a block, as the function of one example that it was given.

JAX runs that function with an axis more in all that depends on the batch. It is found by taking that axis away
(`writing.unbatching`), and is taken where `jax.vmap` of it gives the very operations that were recorded.
"""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Hashable, Iterator, Sequence, Set
from typing import Any

import jax

from ...jaxprs import contents
from ...jaxprs.canonical import UncacheableError
from ...jaxprs.fence import Literal, jaxpr_as_fun
from ...jaxprs.types import JaxProgram, Value, Values, Where
from ...places import transformation
from ...tape import active
from ...tape.operation import Op
from ...tape.recording import Entry
from ..writing.graph import Graph, ValueMap, ValueSet
from ..writing.unbatching import Unbatched, Unclear, Unsure, unbatched
from .listing import expression_at
from .regions import Fold, Region, part, restricted, run, tracing

# So many ways are tried in which inputs may have an axis of the batch.
TRIES = 64


class MappedOp(Op):
    """`jax.vmap` of what `entries` do: (inputs with an axis of the batch, other inputs) -> the results for the batch.

    Args:
      entries: what the function does for one example.
      rows: of each input with that axis the row of that example.
      others: the other inputs.
      ends: the results for it.
      axes: of each input with that axis which it is.
      to: the axis of the batch in the results.
    """

    __slots__ = ("entries", "rows", "others", "ends", "axes", "to", "place")
    place: Where  # of the call in the source

    def __init__(
        self, entries: Sequence[Entry], rows: Values, others: Values, ends: Values, axes: Sequence[int], to: int
    ):
        super().__init__("vmap", self._run)
        self.entries, self.rows, self.others, self.ends, self.axes, self.to = entries, rows, others, ends, axes, to

    def _run(self, *inputs: Value) -> list[Value]:
        batch, others = inputs[: len(self.rows)], inputs[len(self.rows) :]

        def one(*rows: Value) -> list[Value]:
            known = [*zip(self.rows, rows, strict=True), *zip(self.others, others, strict=True)]
            return run(self.entries, self.ends, ValueMap(known))

        return list(jax.vmap(one, in_axes=tuple(self.axes), out_axes=self.to)(*batch))


def recognised(region: Region, fold: Fold) -> list[Entry] | None:
    """One entry for what `jax.vmap` ran; None if it is not recognised."""
    entries, results = region.entries, region.results(region.entries)
    taken = ValueSet(x for entry in entries for x in entry.inputs) - ValueSet(x for e in entries for x in e.outputs)
    inputs = [x for x in taken if isinstance(x, jax.Array)]
    try:
        is_traced = tracing(entries, results, inputs)
    except UncacheableError:  # a rule in it may be another one each time
        return None
    if is_traced is None:
        return None
    programs = [jax.make_jaxpr(entry.op.fn)(*entry.inputs) for entry in entries]
    axes, outs = _axes(region)
    for to in outs:
        rows = _rows(inputs, axes, {x.shape[to : to + 1] for x in results}, region.level)
        for uses in _ways(entries, programs, rows, results, to):
            try:
                alone: list[Entry] = []
                ends = _one_example(entries, programs, uses, results, to, alone)
                op, arrays = _mapped(restricted(alone, ends), ends, rows, to)
                same = is_traced(functools.partial(_reordered, op, arrays, inputs))
            except Exception:  # what has no meaning for one example
                continue
            if same:
                used, level = ValueSet(ends), region.level
                op.place = region.where()
                op.entries = _inner(restricted(fold(alone, used, level + 1), ends), region)
                op.others = [x for x, _ in Graph(op.entries).leaves(ends) if x not in ValueSet(op.rows)]
                arrays = [*arrays[: len(op.rows)], *op.others]
                return [Entry(op, tuple(arrays), tuple(results), region.where(), None, region.calls())]
    return None


def _reordered(op: Op, arrays: Values, inputs: Values, *values: Value) -> Any:
    """An operation of `arrays`, which are among the `inputs`, of their `values`."""
    now = ValueMap(zip(inputs, values, strict=True))
    return op.fn(*map(now.__getitem__, arrays))


def _axes(region: Region) -> tuple[Sequence[int], Sequence[int]]:
    """The axes that the source names for `jax.vmap`, and may mean: of inputs, and of results."""
    place = region.where()
    match expression_at(*place) if place else None:
        case ast.Call(func=ast.Call() as of):
            named: dict[str, list[int]] = {"in_axes": [], "out_axes": []}
            for keyword in (node for node in ast.walk(of) if isinstance(node, ast.keyword)):
                numbers = (node.value for node in ast.walk(keyword.value) if isinstance(node, ast.Constant))
                named.setdefault(keyword.arg or "", []).extend(x for x in numbers if type(x) is int)
            return [*dict.fromkeys([*named["in_axes"], 0])], [*dict.fromkeys([*named["out_axes"], 0])]
    return (0, 1, 2), (0,)  # a function that was made before


def _rows(inputs: Values, axes: Sequence[int], sizes: Set[Sequence[int]], level: int) -> ValueMap[list[Unbatched]]:
    """What each input may be for one example: its row along an axis, or the input itself. Each level has another example: with
    two that are the same, as in pairs of rows, it could not be told by numbers of which a gradient is."""

    def of(x: Value) -> list[Unbatched]:
        able = [axis for axis in axes if {x.shape[axis : axis + 1]} == sizes]
        return [
            *(Unbatched(jax.lax.index_in_dim(x, level % x.shape[axis], axis, keepdims=False), axis) for axis in able),
            Unbatched(x),
        ]

    return ValueMap((x, of(x)) for x in inputs)


class _Uses:
    """The uses of inputs, each of which may be of another of its `rows`, in all ways one after the other.

    `each`: whether an input may be one at one instruction and another at the next, or as one operand and the next.
    """

    def __init__(self, rows: ValueMap[list[Unbatched]], each: bool):
        self.rows, self.each = rows, each
        self._taken: list[int] = []  # by decision the row
        self._start()

    def _start(self) -> None:
        self._counts, self._known = list[int](), dict[Hashable, int]()

    def row(self, x: Value, calls: Hashable, numbers: Iterator[int]) -> Unsure:
        """What an input is in an entry with these `calls`."""
        return Unsure(self.rows[x], lambda: self._choose(x, (id(x), calls, next(numbers)) if self.each else id(x)))

    def _choose(self, x: Value, key: Hashable) -> int:
        if key not in self._known:
            if len(self._counts) == len(self._taken):
                self._taken.append(0)
            self._known[key] = self._taken[len(self._counts)]
            self._counts.append(len(self.rows[x]))
        return self._known[key]

    def begin_next(self) -> bool:
        """Begins the next way, if there is one."""
        del self._taken[len(self._counts) :]
        while self._taken and self._taken[-1] + 1 == self._counts[len(self._taken) - 1]:
            self._taken.pop()
        self._taken[-1:] = [x + 1 for x in self._taken[-1:]]
        self._start()
        return bool(self._taken)


def _ways(
    entries: Sequence[Entry], programs: Sequence[JaxProgram], rows: ValueMap[list[Unbatched]], results: Values, to: int
) -> Iterator[_Uses]:
    """The ways in which it can be said what is done to one example."""
    for each in (False, True):
        uses, tries = _Uses(rows, each), 0
        while not tries or tries < TRIES and uses.begin_next():
            tries += 1
            try:
                _one_example(entries, programs, uses, results, to)
            except Exception:  # what has no meaning for one example
                continue
            yield uses


def _one_example(
    entries: Sequence[Entry],
    programs: Sequence[JaxProgram],
    uses: _Uses,
    results: Values,
    to: int,
    alone: list[Entry] | None = None,
) -> list[Value]:
    """The results for one example; `alone` gets the entries, which are run for it, if there is one."""
    rows, wanted = ValueMap[Unbatched](), ValueSet(results)
    for entry, program in zip(entries, programs, strict=True):
        uncertain = functools.partial(uses.row, calls=entry.calls, numbers=itertools.count())
        given = [uncertain(x) if x in uses.rows else rows.get(x, Unbatched(x)) for x in entry.inputs]
        ends = [i for i, x in enumerate(entry.outputs) if x in wanted]
        own, outs = unbatched(program, given, ends, to)
        if alone is not None:
            plain = tuple([x if isinstance(row, Unsure) else row.x for x, row in zip(entry.inputs, given, strict=True)])
            outs = _alone(entry._replace(inputs=plain), own, jax.tree.leaves(given), outs, alone)
        rows.update(zip(entry.outputs, outs, strict=True))
    if any(rows[x].axis != to for x in results):
        raise Unclear("results")
    return [rows[x].x for x in results]


def _alone(
    entry: Entry, program: JaxProgram, given: Values, outs: list[Unbatched], alone: list[Entry]
) -> list[Unbatched]:
    """What an entry makes for one example, of the `program`'s inputs; `alone` gets the entry for that."""
    leaves, structure = jax.tree.flatten(outs)
    known = _aliases(program, given)
    if all(out.axis is None for out in outs):
        alone.append(entry)
        same = {id(out.x): x for out, x in zip(outs, entry.outputs, strict=True)}
        known = [same.get(id(leaf), x) for leaf, x in zip(leaves, known, strict=True)]
    new = [i for i, x in enumerate(known) if x is None]
    if new:
        op = Op(entry.op.name, jaxpr_as_fun(program))
        one = part(entry._replace(op=op, inputs=tuple(given), outputs=tuple(known), residuals=None), new)
        made = active.distinct(one.op.fn(*one.inputs), one.inputs)
        alone.append(one._replace(outputs=tuple(made)))
        for i, x in zip(new, made, strict=True):
            known[i] = x
    rows: list[Unbatched] = jax.tree.unflatten(structure, known)
    return rows


def _mapped(
    entries: Sequence[Entry], ends: Values, rows: ValueMap[list[Unbatched]], to: int
) -> tuple[MappedOp, list[Value]]:
    """The operation for a batch of what `entries` do to one example, and its inputs."""
    used = ValueSet([*ends, *(x for entry in entries for x in entry.inputs)])
    inputs = [(x, row.x, row.axis) for x, each in rows.items() for row in each if row.x in used]
    batch = [(x, row, axis) for x, row, axis in inputs if axis is not None]
    others = [x for x, _, axis in inputs if axis is None]
    op = MappedOp(entries, [row for _, row, _ in batch], others, ends, [axis for *_, axis in batch], to)
    return op, [*(x for x, *_ in batch), *others]


def _inner(entries: Sequence[Entry], region: Region) -> list[Entry]:
    """The entries with the calls in the function alone; the first is where it is called."""
    start = max(len(region.calls()) - 1, 0)
    return [
        entry._replace(calls=tuple([place for place in entry.calls[start:] if not transformation(place)]))
        for entry in entries
    ]


def _aliases(program: JaxProgram, given: Values) -> list[Any]:
    """For each result the input that it is; None where it is computed."""
    jaxpr = contents.open_jaxpr(program)
    of = dict(zip(jaxpr.invars, given, strict=True))
    return [None if isinstance(v, Literal) else of.get(v) for v in jaxpr.outvars]
