"""`jax.vmap` of a function, written as such: the function of one example, and its call for a batch."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from ...jaxprs.types import Value, Values
from ...tape.query import Query, Source
from ...tape.recording import Recording
from ..writing.graph import ValueMap, ValueSet
from . import layout, rolling, scopes
from .callers import Line, Running, calls_of
from .listing import identifier, operands
from .recorded import Scope, Within, Writer
from .scopes import Definition, Statement, new_key


class Inside(Within):
    """The scope of a function that JAX was given, of its `lines`. `rows`: of what it is called with what it has of that."""

    def __init__(self, parent: Scope, local: ValueSet, varying: ValueSet, lines: Sequence[Line], rows: ValueMap[Value]):
        super().__init__(parent, local, varying)
        self._lines, self._rows = lines, rows

    def levels(self) -> list[ValueSet]:
        return list(map(self._computed, super().levels()))

    def _computed(self, level: ValueSet) -> ValueSet:
        """What varies around, with what is computed of it for the one example."""
        computed = ValueSet([*level, *(row for x, row in self._rows.items() if x in level)])
        for line in self._lines:
            if not computed.isdisjoint(line.inputs):
                computed.update(line.outputs)
        return computed


def write(writer: Writer, line: Line, depth: int, scope: Scope) -> list[Statement]:
    """The statements for a line whose operation is a `MappedOp`, at `depth` in `scope`."""
    op: Any = line.op
    batch = list(line.inputs[: len(op.rows)])
    varying = ValueSet(line.inputs[i] for i in line.active_ins if i >= len(batch))
    recording = Recording()
    recording.entries = list(op.entries)
    around = [(*line.calls, *own[1:]) for own in calls_of(recording.entries)]
    starts = ValueSet([*op.rows, *varying, *(x for x in op.others if scope.varying_around(x))])
    lines, local = lines_inside(writer, recording, around, op.ends, [*starts], op.rows)
    inner = Inside(scope, local, varying, lines, ValueMap(zip(batch, op.rows, strict=True)))
    outs = [i for i, x in enumerate(line.outputs) if x in scope.used]
    results: list[ast.expr] = [ast.Name(inner.key(op.ends[i]), ast.Load()) for i in outs]
    statements = writer.block(lines, depth, inner)
    order = _order(writer, line, batch)
    arguments = [writer.argument(batch[i], i in line.active_ins, scope) for i in order]
    parameters = [inner.key(op.rows[i]) for i in order]
    for key, argument in zip(parameters, arguments, strict=True):
        if argument.isidentifier():
            writer.names.arguments[key] = argument
    for i in outs:  # it is the result of the call that has the name
        writer.names.hints.pop(inner.keys[op.ends[i]], None)
    function = Definition(parameters, statements, layout.one_or_tuple(results))
    of = new_key()
    writer.names.hints[of] = identifier("example")
    rolling.roll(function, writer.names, writer.shapes)
    scopes.inline(function, writer.names, depth + 2)
    axes = "" if not any(op.axes) else f", in_axes={tuple([op.axes[i] for i in order])}"
    call = layout.parsed(f"jax.vmap({of}{axes})({', '.join(arguments)})")
    return [Statement([of], function=function), Statement([scope.key(line.outputs[i]) for i in outs], call)]


def _order(writer: Writer, line: Line, batch: Values) -> list[int]:
    """The positions of what a function is mapped over, in the order in which the source hands it over."""
    here = line.calls[-1:]
    names = operands(here[0].code, here[0].place) if here else ()
    places = {name: i for i, name in enumerate(names)}
    return sorted(range(len(batch)), key=lambda i: places.get(writer.called.get(batch[i]), len(names)))


def lines_inside(
    writer: Writer,
    recording: Recording,
    calls: Sequence[tuple[Running, ...]],
    ends: Values,
    starts: Values,
    given: Values,
) -> tuple[list[Line], ValueSet]:
    """The lines of a function that JAX was given, which lead from `starts` to the `ends`, and what varies from call to call: what
    it is `given`, and what the lines make. `calls`: those of each entry."""
    made = writer.open(recording.entries, calls, None)
    query = Query(recording, ends, [Source(x, watched=True) for x in starts], include_nondifferentiable=True)
    lines = writer.with_constants(writer.lines(*query.program(), made), recording, made)
    local = ValueSet([*given, *(x for line in lines for x in line.outputs)])
    actives = (tuple([i for i, x in enumerate(line.inputs) if x in local]) for line in lines)
    return [line._replace(active_ins=active) for line, active in zip(lines, actives, strict=True)], local
