"""What `jax.jvp` ran in a block, as the derivative in a direction that it is of the function that it was given.

JAX runs each operation of that function together with its tangent. What leads to one of the values in there is the function
where `jax.jvp` of it gives the very operations that were recorded.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np

from ...jaxprs.dependence import has_tangent
from ...jaxprs.types import Value, Values
from ...tape.derivative import DerivativeOp, derivative_op
from ...tape.recording import Entry
from ...tape.sweep import push
from ..writing.congruence import close
from ..writing.graph import Graph, ValueMap, ValueSet
from .regions import Fold, Region, as_function, restricted, tracing

Directions: TypeAlias = list[tuple[Value, Value]]  # what the derivative is with respect to, each with its tangent

# So many of the last values are looked at for that of which a result is the tangent, and so many directions.
TARGETS = 12
DIRECTIONS = 24


class _Pushed(NamedTuple):
    """A value in a region, the result that is its tangent, and the directions."""

    target: Value
    result: Value
    directions: Directions


def recognised(region: Region, fold: Fold) -> list[Entry] | None:
    """The entries of a region of `jax.jvp` with one for all tangents; None if it is not recognised."""
    results = [x for x in region.results(region.entries) if has_tangent(x)]
    if any(isinstance(entry.op, DerivativeOp) for entry in region.entries):
        return None
    pushed = list[_Pushed]()
    for result in reversed(results):
        known = pushed[0].directions if pushed else None
        try:
            pushed += _pushed(region, result, known)
        except Exception:  # it runs the user's Python, or has no derivative in this form
            return None
    if not pushed:
        return None
    pushed.reverse()
    tangents, targets = ValueSet(each.result for each in pushed), [each.target for each in pushed]
    kept = [x for x in region.results(region.entries) if x not in tangents]
    primal = restricted(region.entries, [*targets, *kept, *_numbers(region, pushed)])
    sources, directions = zip(*pushed[0].directions, strict=True)
    op = functools.partial(derivative_op, "jvp", push, seeded=True)
    return region.derivative(op, primal, fold, (targets, sources), [*tangents], kept, directions)


def _numbers(region: Region, pushed: Sequence[_Pushed]) -> list[Value]:
    """What does not vary with the directions: a gradient among the operations is of a number that it does not read."""
    target = pushed[0].target
    own = ValueSet(x for x, _ in Graph(restricted(region.entries, [target])).leaves([target]))
    fresh = ValueSet(x for _, x in pushed[0].directions if x not in own)
    numbers = [x for entry in region.entries for x in entry.outputs if not x.ndim and has_tangent(x)]
    leaves = ((x, Graph(restricted(region.entries, [x])).leaves([x])) for x in numbers)
    return [x for x, of in leaves if fresh.isdisjoint(leaf for leaf, _ in of)]


def _pushed(region: Region, result: Value, known: Directions | None) -> Iterator[_Pushed]:
    """What a result is the tangent of, if of anything; in the directions that are `known`, if any are."""
    entries = restricted(region.entries, [result])
    leaves = [x for x, _ in Graph(entries).leaves([result])]
    made = [y for entry in region.entries for y in entry.outputs if y is not result and has_tangent(y)]
    able = sorted((y for y in made[::-1] if alike(y, result)), key=lambda y: y not in region.used)
    for target in able[:TARGETS]:
        forward = restricted(region.entries, [target])
        own = [x for x, _ in Graph(forward).leaves([target])]
        inputs = [*ValueSet([*own, *leaves])]
        if (is_traced := tracing(entries, [result], inputs)) is None:
            return  # the user's Python would run once more
        for directions in [known] if known else _directions([x for x in own if has_tangent(x)], own, leaves):
            pushed = functools.partial(_push, forward, target, inputs, directions)
            if close(pushed(*inputs), result) and is_traced(pushed):
                yield _Pushed(target, result, directions)
                return


def _push(forward: Sequence[Entry], target: Value, inputs: Values, directions: Directions, *values: Value) -> Value:
    now = ValueMap(zip(inputs, values, strict=True))
    sources, tangents = zip(*directions, strict=True)
    at, along = (tuple([now.get(x, x) for x in xs]) for xs in (sources, tangents))
    return jax.jvp(as_function(forward, [target], sources, now), at, along)[1][0]


def _directions(moving: Values, own: Values, leaves: Values) -> Iterator[Directions]:
    """Directions in which a function of `own` values, of which some are `moving`, may have been differentiated to give what was
    computed of the `leaves`. What it does not read itself is a tangent."""
    fresh = [x for x in leaves if x not in ValueSet(own) and has_tangent(x)]
    fixed: list[Any] = [np.float32(1.0).astype(x.dtype) for x in moving if not x.ndim][:1]
    by_fresh = (
        [*zip(sources, fresh, strict=True)]
        for sources in itertools.permutations(moving, len(fresh))
        if fresh and all(map(alike, sources, fresh))
    )
    ones = ([(x, float(one))] for one in fixed for x in moving if not x.ndim and not fresh)
    again = ([(x, t)] for x in moving for t in leaves if not fresh and alike(x, t))
    yield from itertools.islice(itertools.chain(by_fresh, ones, again), DIRECTIONS)


def alike(x: Value, y: Value) -> bool:
    """Whether one may be the tangent of the other."""
    return bool(x.shape == y.shape and x.dtype == y.dtype)
