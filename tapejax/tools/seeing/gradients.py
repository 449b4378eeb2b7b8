"""What `jax.grad` ran in a block, as the derivative that it is of the function that it was given.

JAX runs that function and then goes back through it, as operations like any others. They are a derivative where `jax.grad` of
the operations that lead to one number of the function gives the very operations that were recorded.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence, Set
from typing import Any

import jax
import jax.numpy as jnp

from ...jaxprs.dependence import has_tangent
from ...jaxprs.types import Value, Values
from ...places import Place, is_derivative
from ...tape import active
from ...tape.derivative import DerivativeOp, derivative_op
from ...tape.operation import Op
from ...tape.query import Query, Source
from ...tape.recording import Entry, Recording, Span
from ...tape.sweep import sweep
from .again import close
from .spelling import canonical

# The number that a gradient is of is looked for among so many, the last ones of its function: others may be returned beside it.
NUMBERS = 8


def folded(recording: Recording, wanted: Set[int]) -> Recording:
    """`Recording.folded`, where the gradients that `jax.grad` took are derivatives, too. `wanted`: the ids of values that are
    asked for."""
    entries, shorter = recording.entries, recording.continuation()
    depth = max((sum(map(is_derivative, entry.calls)) for entry in entries), default=0)
    for level in reversed(range(depth)):
        for start, stop in _runs(entries, level):
            outside = itertools.chain(entries[:start], entries[stop:])
            used = {id(x) for entry in outside for x in entry.inputs} | wanted
            with active.outside():
                span = _span(entries, shorter, start, stop, level, used)
            if span is not None:
                shorter.derivatives.append(span)
                forward = shorter.entries[start : span.start]
                shorter.entries[start : span.start] = [_without(entry, forward, used) for entry in forward]
    shorter.entries = [_plain(entry) for entry in shorter.entries]
    return shorter.folded()


def _plain(entry: Entry) -> Entry:
    """An entry without JAX's functions that take derivatives among those that ran it."""
    if not any(map(is_derivative, entry.calls)):
        return entry
    return entry._replace(calls=tuple([place for place in entry.calls if not is_derivative(place)]))


def _place(entry: Entry, level: int) -> int | None:
    """Where in its calls the derivative begins that is in `level` others."""
    starts = (i for i, place in enumerate(entry.calls) if is_derivative(place))
    return next(itertools.islice(starts, level, None), None)


def _around(entry: Entry, level: int) -> tuple[Place, ...] | None:
    """The functions around that derivative."""
    at = _place(entry, level)
    return None if at is None else entry.calls[:at]


def _is_back(entry: Entry, level: int) -> bool:
    """Whether an entry is of the way back, on which none of the user's functions run."""
    return _place(entry, level) == len(entry.calls) - 1


def _runs(entries: Sequence[Entry], level: int) -> Iterator[tuple[int, int]]:
    """The positions of what one call of `jax.grad` ran, at a level."""
    start = 0
    for stop in range(1, len(entries) + 1):
        before = entries[stop - 1]
        after = entries[stop] if stop < len(entries) else Entry(before.op, (), ())
        around = [_around(entry, level) for entry in (before, after)]
        if around[0] != around[1] or _is_back(before, level) and not _is_back(after, level):
            if around[0] is not None:
                yield start, stop
            start = stop


def _span(
    entries: Sequence[Entry], shorter: Recording, start: int, stop: int, level: int, used: Set[int]
) -> Span | None:
    """The way back of what `jax.grad` ran, as one derivative of what is in `shorter`; None if it is not recognised."""
    middle = next((i for i in range(start, stop) if _is_back(entries[i], level)), stop)
    back = entries[middle:stop]
    results = [x for entry in back for x in entry.outputs if id(x) in used]
    numbers = [x for entry in entries[start:middle] for x in entry.outputs if jnp.ndim(x) == 0 and has_tangent(x)]
    if not results or any(isinstance(entry.op, DerivativeOp) for entry in back):
        return None
    for number in numbers[: -NUMBERS - 1 : -1]:
        try:
            sources = _sources(entries[start:middle], number, back, results)
        except Exception:  # what may not be differentiated so, or is the user's Python
            return None
        if sources is not None:
            one = functools.partial(_one, shorter, start, middle, number, sources)
            return Span(middle, stop, one, tuple(results))
    return None


def _one(recording: Recording, start: int, stop: int, number: Value, sources: Values) -> tuple[Op, tuple[Any, ...]]:
    """The gradient of a `number`, which the entries from `start` to `stop` make, as one operation; and its inputs."""
    part = Recording()
    part.entries = recording.entries[start:stop]
    spans = [span for span in recording.derivatives if start <= span.start and span.stop <= stop]
    part.derivatives = [span._replace(start=span.start - start, stop=span.stop - start) for span in spans]
    query = Query(part.folded(), [number], [Source(x, watched=True) for x in sources])
    program, values = query.program()
    return derivative_op("gradient", sweep, program), tuple(values)


def _sources(forward: Sequence[Entry], number: Value, back: Sequence[Entry], results: Values) -> list[Value] | None:
    """With respect to what the `results` of going back are the gradient of `number`; None if it is no such gradient."""
    function, every = Function(forward, [number]), Function([*forward, *back], results)
    inputs = function.inputs
    moving = [x for x in inputs if has_tangent(x)]
    found = _matched(results, moving, _pulled(function, moving, inputs, inputs))
    if found is None:
        return None

    def recorded(*xs: Value) -> list[Value]:
        return every(inputs, xs)

    def again(*xs: Value) -> list[Value]:
        return _pulled(function, found, inputs, xs)

    forms = [canonical(jax.make_jaxpr(fn)(*inputs)) for fn in (recorded, again)]
    return found if forms[0] == forms[1] else None


def _pulled(function: Function, sources: Values, inputs: Values, values: Values) -> list[Value]:
    """The gradient with respect to `sources` of a function whose `inputs` have these values."""
    at = {id(x): value for x, value in zip(inputs, values, strict=True)}

    def of(xs: list[Value]) -> Value:
        return function([*inputs, *sources], [*values, *xs])[0]

    gradients: list[Value] = jax.grad(of)([at[id(x)] for x in sources])
    return gradients


def _matched(results: Values, sources: Values, gradients: Values) -> list[Value] | None:
    """The source of which each result is the gradient."""
    found: list[Value] = []
    for y in results:
        alike = (x for x, g in zip(sources, gradients, strict=True) if close(g, y) and all(x is not z for z in found))
        if (x := next(alike, None)) is None:
            return None
        found.append(x)
    return found


class Function:
    """What entries do to make `outputs`. `inputs` are the arrays that they read and do not make."""

    def __init__(self, entries: Sequence[Entry], outputs: Values):
        left, self.entries, self.outputs = set(map(id, outputs)), list[Entry](), outputs
        for entry in reversed(entries):
            if not left.isdisjoint(map(id, entry.outputs)):
                self.entries.insert(0, entry)
                left.update(map(id, entry.inputs))
        made = {id(x) for entry in self.entries for x in entry.outputs}
        read = {id(x): x for entry in self.entries for x in entry.inputs if isinstance(x, jax.Array)}
        self.inputs = [x for key, x in read.items() if key not in made]

    def __call__(self, inputs: Values, values: Values) -> list[Value]:
        """The results where `inputs` have these values, and others those that were recorded."""
        known = dict(zip(map(id, inputs), values, strict=True))
        for entry in self.entries:
            outs = jax.tree.leaves(entry.op.fn(*[known.get(id(x), x) for x in entry.inputs]))
            known.update(zip(map(id, entry.outputs), outs, strict=True))
        return [known[id(x)] for x in self.outputs]


def _without(entry: Entry, others: Sequence[Entry], used: Set[int]) -> Entry:
    """An entry without those of its results that neither the `others` use, nor what is outside of them."""
    needed = used | {id(x) for other in others for x in other.inputs}
    kept = [i for i, x in enumerate(entry.outputs) if id(x) in needed]
    if type(entry.op) is not Op or not 0 < len(kept) < len(entry.outputs):
        return entry
    fn = entry.op.fn
    op = Op(entry.op.name, lambda *xs: [jax.tree.leaves(fn(*xs))[i] for i in kept])
    return entry._replace(op=op, outputs=tuple([entry.outputs[i] for i in kept]))
