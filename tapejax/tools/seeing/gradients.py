"""What `jax.grad` ran in a block, as the derivative that it is of the function that it was given.

JAX runs that function and then goes back through it, as operations like any others. They are a derivative where `jax.grad` of
the operations that lead to one number of the function gives the very operations that were recorded.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ...jaxprs.dependence import has_tangent
from ...jaxprs.types import Value, Values
from ...tape import jacobian
from ...tape.derivative import DerivativeOp, derivative_op
from ...tape.query import Query, Source
from ...tape.recording import Entry, Recording
from ...tape.sweep import sweep
from ..writing.graph import Graph, ValueMap, ValueSet
from .regions import Fold, Region, is_back, matched, restricted, run, tracing

# The number that a gradient is of is looked for among so many, the last ones of its function: others may be returned beside it.
NUMBERS = 8
TARGETS = 12  # and what a Jacobian is of, among what has its shape


def recognised(region: Region, fold: Fold) -> list[Entry] | None:
    """The entries of a region with the way back as one derivative; None if it is not recognised."""
    entries, level = region.entries, region.level
    middle = next((i for i, entry in enumerate(entries) if is_back(entry, level)), len(entries))
    forward, back = entries[:middle], entries[middle:]
    results = region.results(back)
    numbers = [x for entry in forward for x in entry.outputs if jnp.ndim(x) == 0 and has_tangent(x)]
    if not results or any(isinstance(entry.op, DerivativeOp) for entry in back):
        return None
    return _taken(region, fold, forward, numbers[: -NUMBERS - 1 : -1], results)


def recognised_jacobian(region: Region, fold: Fold) -> list[Entry] | None:
    """The entries of a region of `jax.jacfwd` or `jax.jacrev` with one for the Jacobian; None if it is not recognised."""
    forward = [entry for entry in region.entries if not is_back(entry, region.level)]
    results = region.results(region.entries)
    if not results or any(isinstance(entry.op, DerivativeOp) for entry in region.entries):
        return None
    ranks = [x.ndim for x in results]
    able = [
        y
        for entry in forward
        for y in entry.outputs
        if has_tangent(y) and y.ndim <= min(ranks) and all(x.shape[: y.ndim] == y.shape for x in results)
    ]
    return _taken(region, fold, forward, able[: -TARGETS - 1 : -1], results)


# The functions of JAX's that take a derivative with respect to a list; what a tape calls that, and what computes it.
_KINDS: dict[str, tuple[Any, str, Any]] = {
    "gradient": (jax.grad, "gradient", sweep),
    "jacfwd": (jax.jacfwd, "jacobian", jacobian._forward_columns),
    "jacrev": (jax.jacrev, "jacobian", jacobian._reverse_rows),
}


def _taken(
    region: Region, fold: Fold, forward: Sequence[Entry], targets: Values, results: Values
) -> list[Entry] | None:
    """The entries with the derivative of one of the `targets` as one entry."""
    for target in targets:
        try:
            sources = _sources(region, restricted(forward, [target]), target, results)
        except Exception:  # it runs the user's Python, or cannot be differentiated again
            return None
        if sources is not None:
            kept = ValueSet([target, *(x for x in region.results(forward) if x not in ValueSet(results))])
            kept.update(region.unread())  # in another round of a loop it may be read
            before = restricted(fold(forward, kept, region.level + 1), kept)
            return [*before, _derivative(before, target, sources, results, region)]
    return None


def _derivative(before: Sequence[Entry], number: Value, sources: Values, results: Values, region: Region) -> Entry:
    """The derivative of `number`, which the entries `before` make, as one operation."""
    part = Recording()
    part.entries = [*before]
    program, values = Query(part, [number], [Source(x, watched=True) for x in sources]).program()
    _, kind, take = _KINDS[region.kind]
    op = derivative_op(kind, take, program)
    return Entry(op, tuple(values), tuple(results), region.where(), None, region.calls())


def _sources(region: Region, forward: Sequence[Entry], number: Value, results: Values) -> list[Value] | None:
    """With respect to what the `results` are the derivative of `number`, to which `forward` leads; None if they are not."""
    entries = restricted(region.entries, results)
    moving = [x for x, _ in Graph(forward).leaves([number]) if has_tangent(x)]
    inputs = [
        *ValueSet(x for each, ends in ((forward, [number]), (entries, results)) for x, _ in Graph(each).leaves(ends))
    ]

    def pulled(sources: Values, *values: Value) -> list[Value]:
        now = ValueMap(zip(inputs, values, strict=True))

        def of(xs: list[Value]) -> Value:
            return run(forward, [number], ValueMap([*now.items(), *zip(sources, xs, strict=True)]))[0]

        return list(_KINDS[region.kind][0](of)([now[x] for x in sources]))

    if (is_traced := tracing(entries, results, inputs)) is None:
        return None  # the user's Python would run once more
    sources = matched(results, moving, pulled(moving, *inputs))
    return sources if sources and is_traced(functools.partial(pulled, sources)) else None
