"""What `jax.grad` ran in a block, as the derivative that it is of the function that it was given.

JAX runs that function and then goes back through it, as operations like any others. They are a derivative where `jax.grad` of
the operations that lead to one number of the function gives the very operations that were recorded.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax

from ...jaxprs.dependence import has_tangent
from ...jaxprs.types import Value, Values
from ...tape import jacobian
from ...tape.derivative import DerivativeOp, derivative_op
from ...tape.recording import Entry
from ...tape.sweep import sweep
from ..writing.graph import Graph, ValueMap, ValueSet
from .regions import Fold, Region, as_function, is_back, matched, restricted, tracing

# What a derivative is of is looked for among so many, the last ones of its function: it may return others, too.
TARGETS = 12

# The functions of JAX's that take a derivative with respect to a list; what a tape calls that, and what computes it.
_KINDS: dict[str, tuple[Any, str, Any]] = {
    "gradient": (jax.grad, "gradient", sweep),
    "jacfwd": (jax.jacfwd, "jacobian", jacobian._forward_columns),
    "jacrev": (jax.jacrev, "jacobian", jacobian._reverse_rows),
}


def recognised(region: Region, fold: Fold) -> list[Entry] | None:
    """The entries of a region with the way back as one derivative; None if it is not recognised."""
    entries, level = region.entries, region.level
    forward, back = ([entry for entry in entries if is_back(entry, level) == there] for there in (False, True))
    results = region.results(back)
    if not results or any(isinstance(entry.op, DerivativeOp) for entry in back):
        return None
    rank = 0 if region.kind == "gradient" else min(x.ndim for x in results)
    made = (y for entry in forward for y in entry.outputs if has_tangent(y) and y.ndim <= rank)
    able = [y for y in made if all(x.shape[: y.ndim] == y.shape for x in results)]
    for target in able[: -TARGETS - 1 : -1]:
        try:
            sources = _sources(region, restricted(forward, [target]), target, results)
        except Exception:  # it runs the user's Python, or cannot be differentiated again
            return None
        if sources is not None:
            op = functools.partial(derivative_op, *_KINDS[region.kind][1:])
            kept = [*region.results(forward), *region.unread()]  # in another round of a loop that may be read
            return region.derivative(op, forward, fold, ([target], sources), results, kept)
    return None


def _sources(region: Region, forward: Sequence[Entry], number: Value, results: Values) -> list[Value] | None:
    """With respect to what the `results` are the derivative of `number`, to which `forward` leads; None if they are not."""
    entries = restricted(region.entries, results)
    moving = [x for x, _ in Graph(forward).leaves([number]) if has_tangent(x)]
    inputs = [
        *ValueSet(x for each, ends in ((forward, [number]), (entries, results)) for x, _ in Graph(each).leaves(ends))
    ]

    def pulled(sources: Values, *values: Value) -> list[Value]:
        now = ValueMap(zip(inputs, values, strict=True))
        of = as_function(forward, [number], sources, now)
        return list(_KINDS[region.kind][0](lambda xs: of(*xs)[0])([now[x] for x in sources]))

    if (is_traced := tracing(entries, results, inputs)) is None:
        return None  # the user's Python would run once more
    sources = matched(results, moving, pulled(moving, *inputs))
    return sources if sources and is_traced(functools.partial(pulled, sources)) else None
