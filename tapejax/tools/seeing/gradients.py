"""What `jax.grad` ran in a block, as the derivative that it is of the function that it was given.

JAX runs that function and then goes back through it, as operations like any others. They are a derivative where `jax.grad` of
the operations that lead to one number of the function gives the very operations that were recorded.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ...jaxprs import contents
from ...jaxprs.dependence import has_tangent
from ...jaxprs.types import Value, Values
from ...places import Place, is_derivative
from ...tape import active
from ...tape.derivative import DerivativeOp, derivative_op
from ...tape.operation import Op
from ...tape.query import Query, Source
from ...tape.recording import Entry, Recording, Span
from ...tape.sweep import sweep
from ..writing.graph import Graph, ValueMap, ValueSet
from .again import close
from .spelling import canonical

# The number that a gradient is of is looked for among so many, the last ones of its function: others may be returned beside it.
NUMBERS = 8


def folded(recording: Recording, wanted: Values) -> Recording:
    """`Recording.folded`, where the gradients that `jax.grad` took are derivatives, too. `wanted`: values that are asked for."""
    entries = recording.entries
    depth = max((sum(map(is_derivative, entry.calls)) for entry in entries), default=0)
    if not depth:
        return recording.folded()
    shorter = recording.continuation()
    for level in reversed(range(depth)):
        for start, stop in _runs(entries, level):
            used = ValueSet([*wanted, *(x for entry in (*entries[:start], *entries[stop:]) for x in entry.inputs)])
            with active.outside():
                span = _span(entries, shorter, start, stop, level, used)
            if span is not None:
                shorter.derivatives.append(span)
                for x in (x for entry in entries[start:stop] for x in entry.outputs):
                    shorter.bound.pop(id(x), None)  # what it came of is no longer one of its entries
                forward = shorter.entries[start : span.start]
                used.update(x for entry in forward for x in entry.inputs)
                shorter.entries[start : span.start] = [_without(entry, used) for entry in forward]
    shorter.entries = [_plain(entry) for entry in shorter.entries]
    return shorter.folded()


# ---- what one call of `jax.grad` ran --------------------------------------------------------------------------------


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
        around = _around(before, level)
        if around != _around(after, level) or _is_back(before, level) and not _is_back(after, level):
            if around is not None:
                yield start, stop
            start = stop


def _plain(entry: Entry) -> Entry:
    """An entry without JAX's functions that take derivatives among those that ran it."""
    return entry._replace(calls=tuple([place for place in entry.calls if not is_derivative(place)]))


def _without(entry: Entry, used: ValueSet) -> Entry:
    """An entry without the results that only the way back uses."""
    kept = [i for i, x in enumerate(entry.outputs) if x in used]
    if type(entry.op) is not Op or not 0 < len(kept) < len(entry.outputs):
        return entry
    fn = entry.op.fn
    op = Op(entry.op.name, lambda *xs: [jax.tree.leaves(fn(*xs))[i] for i in kept])
    return entry._replace(op=op, outputs=tuple([entry.outputs[i] for i in kept]))


# ---- recognition ----------------------------------------------------------------------------------------------------


def _span(
    entries: Sequence[Entry], shorter: Recording, start: int, stop: int, level: int, used: ValueSet
) -> Span | None:
    """The way back of what `jax.grad` ran, as one derivative of what is in `shorter`; None if it is not recognised."""
    middle = next((i for i in range(start, stop) if _is_back(entries[i], level)), stop)
    forward, back = entries[start:middle], entries[middle:stop]
    results = [x for entry in back for x in entry.outputs if x in used]
    numbers = [x for entry in forward for x in entry.outputs if jnp.ndim(x) == 0 and has_tangent(x)]
    if not results or any(isinstance(entry.op, DerivativeOp) for entry in back):
        return None
    for number in numbers[: -NUMBERS - 1 : -1]:
        try:
            sources = _sources(forward, number, back, results)
        except Exception:  # it runs the user's Python, or cannot be differentiated again
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
    graph = Graph(forward)
    inputs = [x for x, _ in graph.leaves([number])]
    moving = [x for x in inputs if has_tangent(x)]

    def pulled(sources: Values, *values: Value) -> list[Value]:
        now = ValueMap(zip(inputs, values, strict=True))

        def of(xs: list[Value]) -> Value:
            return _run(graph, [number], ValueMap([*now.items(), *zip(sources, xs, strict=True)]))[0]

        return list(jax.grad(of)([now[x] for x in sources]))

    def recorded(*values: Value) -> list[Value]:
        return _run(Graph([*forward, *back]), results, ValueMap(zip(inputs, values, strict=True)))

    program = jax.make_jaxpr(recorded)(*inputs)
    if program.effects or contents.contains(program, "pure_callback"):
        return None  # the user's Python would run once more
    sources = _matched(results, moving, pulled(moving, *inputs))
    again = sources and jax.make_jaxpr(functools.partial(pulled, sources))(*inputs)
    return sources if again and canonical(again) == canonical(program) else None


def _run(graph: Graph, wanted: Values, known: ValueMap[Value]) -> list[Value]:
    """The values of `wanted` where others are `known`; those that no operation makes are as they were recorded."""
    for position in graph.before(wanted):
        entry = graph.operations[position]
        outs = jax.tree.leaves(entry.op.fn(*[known.get(x, x) for x in entry.inputs]))
        known.update(zip(entry.outputs, outs, strict=True))
    return [known[x] for x in wanted]


def _matched(results: Values, sources: Values, gradients: Values) -> list[Value] | None:
    """The source of which each result is the gradient."""
    matched = ValueSet()
    for y in results:
        alike = (x for x, g in zip(sources, gradients, strict=True) if x not in matched and close(g, y))
        if (x := next(alike, None)) is None:
            return None
        matched.add(x)
    return [*matched]
