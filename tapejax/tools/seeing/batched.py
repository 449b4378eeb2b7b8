"""What `jax.vmap` ran in a block, as the function of one example that it was given.

JAX runs that function with an axis more in all that depends on the batch. It is found by taking that axis away
(`writing.unbatching`), and is taken where `jax.vmap` of it gives the very operations that were recorded.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from ...jaxprs import contents
from ...jaxprs.canonical import UncacheableError
from ...jaxprs.evaluate import evaluate
from ...jaxprs.fence import Literal
from ...jaxprs.lifting import run_equation
from ...jaxprs.types import JaxProgram, Value, Values
from ...places import transformation
from ...tape import active
from ...tape.operation import Op
from ...tape.recording import Entry
from ..writing.congruence import congruent
from ..writing.graph import ValueMap, ValueSet
from ..writing.unbatching import unbatched
from .regions import Fold, Region, restricted, run
from .spelling import normal_form

Rows: TypeAlias = ValueMap[tuple[Value, int | None]]  # what values are for the first example, and the axis of the batch

# Inputs of which it is not sure whether they have an axis of the batch: so many are tried in both ways.
UNSURE = 4


class MappedOp(Op):
    """`jax.vmap` of what `entries` do: (inputs with an axis of the batch, other inputs) -> the results for the batch.

    Args:
      entries: what the function does for the first example.
      rows: of each input with that axis the row of the first example.
      others: the other inputs.
      ends: the results for the first example.
    """

    __slots__ = ("entries", "rows", "others", "ends", "axes")

    def __init__(self, entries: Sequence[Entry], rows: Values, others: Values, ends: Values, axes: Sequence[int]):
        super().__init__("vmap", self._run)
        self.entries, self.rows, self.others, self.ends, self.axes = entries, rows, others, ends, axes

    def _run(self, *inputs: Value) -> list[Value]:
        batch, others = inputs[: len(self.rows)], inputs[len(self.rows) :]

        def one(*rows: Value) -> list[Value]:
            known = [*zip(self.rows, rows, strict=True), *zip(self.others, others, strict=True)]
            return run(self.entries, self.ends, ValueMap(known))

        return list(jax.vmap(one, in_axes=tuple(self.axes))(*batch))


def recognised(region: Region, fold: Fold) -> list[Entry] | None:
    """One entry for what `jax.vmap` ran; None if it is not recognised."""
    results = region.results(region.entries)
    entries = restricted(region.entries, results)
    made = ValueSet(x for entry in entries for x in entry.outputs)
    inputs = [x for x in ValueSet(x for entry in entries for x in entry.inputs) if x not in made]
    inputs = [x for x in inputs if isinstance(x, jax.Array)]
    sizes = {x.shape[0] if x.ndim else 0 for x in results}
    if len(sizes) != 1 or 0 in sizes:
        return None
    recorded = jax.make_jaxpr(lambda *xs: run(entries, results, ValueMap(zip(inputs, xs, strict=True))))(*inputs)
    if recorded.effects or contents.contains(recorded, "pure_callback"):
        return None
    try:
        form = normal_form(recorded)
    except UncacheableError:  # a rule in it may be another one each time
        return None
    for batch in _batches(inputs, *sizes):
        try:
            rows = Rows((x, (jax.lax.index_in_dim(x, 0, keepdims=False), 0)) for x in batch)
            alone, ends = _one_example(region.entries, results, rows)
            given = [rows[x][0] for x in batch]
            others = [x for x in inputs if x not in ValueSet(batch)]
            op = MappedOp(restricted(alone, ends), given, others, ends, [0] * len(batch))
            again = normal_form(jax.make_jaxpr(op.fn)(*batch, *others), _keys([*batch, *others], inputs))
        except Exception:  # an equation without a rule, or what has no meaning for one example
            continue
        if congruent(again, form):
            used, level = ValueSet(ends), region.level
            op.entries = _inner(restricted(fold(alone, used, level + 1), ends), region)
            return [Entry(op, (*batch, *others), tuple(results), region.where(), None, region.calls())]
    return None


def _keys(order: Values, inputs: Values) -> list[tuple[str, int]]:
    """The keys of `inputs` in a form, in another order."""
    keys = ValueMap((x, ("input", i)) for i, x in enumerate(inputs))
    return [keys[x] for x in order]


def _batches(inputs: Values, size: int) -> Iterator[list[Value]]:
    """Which inputs may have the axis of the batch, as their first one: all that can, or fewer."""
    able = [x for x in inputs if jnp.ndim(x) and x.shape[0] == size]
    for count in range(min(len(able), UNSURE + 1) if len(able) <= UNSURE else 1):
        for left in itertools.combinations(able, count):
            yield [x for x in able if x not in ValueSet(left)]


def _inner(entries: Sequence[Entry], region: Region) -> list[Entry]:
    """The entries with the calls in the function alone; the first is where it is called."""
    start = max(len(region.calls()) - 1, 0)
    return [
        entry._replace(calls=tuple([place for place in entry.calls[start:] if not transformation(place)]))
        for entry in entries
    ]


def _one_example(entries: Sequence[Entry], results: Values, rows: Rows) -> tuple[list[Entry], list[Value]]:
    """The entries for one example, and the results. `rows`: of what has an axis of the batch."""
    alone = []
    for entry in entries:
        given, axes = zip(*[rows.get(x, (x, None)) for x in entry.inputs], strict=True) if entry.inputs else ((), ())
        ends = [i for i, x in enumerate(entry.outputs) if x in ValueSet(results)]
        if all(axis is None for axis in axes) and not ends:
            alone.append(entry._replace(inputs=given))
            continue
        program, outs = unbatched(jax.make_jaxpr(entry.op.fn)(*entry.inputs), axes, given, ends)
        known = _aliases(program, given)
        new = [i for i, x in enumerate(known) if x is None]
        if new:
            op = Op(entry.op.name, functools.partial(_evaluated, program, new))
            made = active.distinct(op.fn(*given), given)
            known = [next(it) if x is None else x for it in [iter(made)] for x in known]
            alone.append(entry._replace(op=op, inputs=given, outputs=tuple(made), residuals=None))
        rows.update(zip(entry.outputs, zip(known, outs, strict=True), strict=True))
    if any(rows[x][1] != 0 for x in results):
        raise ValueError("a result has another axis of the batch")
    return alone, [rows[x][0] for x in results]


def _aliases(program: JaxProgram, given: Values) -> list[Any]:
    """For each result the input that it is; None where it is computed."""
    jaxpr = contents.open_jaxpr(program)
    of = dict(zip(jaxpr.invars, given, strict=True))
    return [None if isinstance(v, Literal) else of.get(v) for v in jaxpr.outvars]


def _evaluated(program: JaxProgram, wanted: Sequence[int], *inputs: Value) -> list[Value]:
    outs = evaluate(program, inputs, functools.partial(run_equation, {}))
    return [jnp.asarray(outs[i]) for i in wanted]
