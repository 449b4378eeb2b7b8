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
from .listing import bytecode, expression_at, identifier, name_of_operand, operands
from .recorded import Scope, Within, Writer
from .scopes import Definition, Key, Statement, new_key


class Inside(Within):
    """The scope of a function that JAX was given, of its `lines`. `rows`: of what it is called with what it has of that."""

    def __init__(self, parent: Scope, local: ValueSet, varying: ValueSet, lines: Sequence[Line], rows: ValueMap[Value]):
        super().__init__(parent, local, varying)
        self._lines, self._rows = lines, rows
        self.called: tuple[Running, ...] = ()  # where it is called, if by an operation of its own

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
    inner.called = line.calls[-1:]
    outs = [i for i, x in enumerate(line.outputs) if x in scope.used]
    results: list[ast.expr] = [ast.Name(inner.key(op.ends[i]), ast.Load()) for i in outs]
    statements = writer.block(lines, depth, inner)
    order = _named(writer, line, batch)
    arguments = [writer.argument(batch[i], i in line.active_ins, scope) for i in order]
    parameters = [inner.key(op.rows[i]) for i in order]
    names = writer.names
    for own, key, argument in zip(order.values(), parameters, arguments, strict=True):
        if own := own or next((names.hints.get(inner, "") for inner, of in names.arguments.items() if of == key), ""):
            names.hints[key] = own
        elif argument.isidentifier():
            names.arguments[key] = argument
    for i in outs:  # it is the result of the call that has the name
        writer.names.hints.pop(inner.keys[op.ends[i]], None)
    function = Definition(parameters, statements, layout.one_or_tuple(results))
    of = new_key()
    writer.names.hints[of] = identifier("example")
    rolling.roll(function, writer.names, writer.shapes)
    scopes.inline(function, writer.names, depth + 2)
    axes = [op.axes[i] for i in order]
    options = f", in_axes={tuple(axes) if len({*axes}) > 1 else axes[0]}" if any(axes) else ""
    options += f", out_axes={op.to}" if op.to else ""
    call = layout.parsed(f"jax.vmap({of}{options})({', '.join(arguments)})")
    keys: list[Key | None] = [scope.key(line.outputs[i]) for i in outs]
    if (pull := _pullback(function)) is None:
        return [Statement([of], function=function), Statement(keys, call)]
    call = layout.replaced(call, {of: pull})
    if len(bytecode(line.calls[-1].code).parts.get(line.calls[-1].instruction, ())) == 1:
        return [Statement(keys, call, pattern="({},)")]
    return [Statement(keys, ast.Subscript(call, ast.Constant(0), ast.Load()))]


def _pullback(function: Definition) -> ast.expr | None:
    """What a function calls that does nothing but to take the one result of a pullback."""
    match function.result:
        case ast.Subscript(value=ast.Call(func=ast.Name() as pull, args=args), slice=ast.Constant(value=0)):
            same = [ast.unparse(arg) for arg in args] == function.parameters
            return pull if same and not function.statements else None
    return None


def _named(writer: Writer, line: Line, batch: Values) -> dict[int, str]:
    """The positions of what a function is mapped over, in the order in which the source has it, and what a lambda calls the
    rows of each."""
    op: Any = line.op
    match expression_at(*op.place) if op.place else None:
        case ast.Call(func=ast.Call(args=[ast.Lambda(args=ast.arguments(args=own)), *_]), args=given):
            parameters = [arg.arg for arg in own]
        case ast.Call(args=given):
            parameters = [""] * len(given)
        case _:
            return dict.fromkeys(range(len(batch)), "")
    names = {
        name_of_operand(x, items=True): (i, own) for i, (x, own) in enumerate(zip(given, parameters, strict=False))
    }
    called = [*names] if len(given) == len(batch) == 1 else [writer.name_at(x, line.calls[-1]) for x in batch]
    writer._note(line.calls[-1].call, ((x, name) for x, name in zip(batch, called, strict=True) if name in names))
    known = [(names.get(name, (len(names), "")), i) for i, name in enumerate(called)]
    return {i: own for (_, own), i in sorted(known)}


def in_order(writer: Writer, line: Line, values: Sequence[Value | None]) -> list[int]:
    """The positions of what a call of the source takes, in the order in which it hands it over."""
    if not line.calls:
        return [*range(len(values))]
    names = operands((here := line.calls[-1]).code, here.place)
    places = {name: i for i, name in enumerate(names)}
    return sorted(range(len(values)), key=lambda i: places.get(writer.name_at(values[i], here), len(names)))


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
