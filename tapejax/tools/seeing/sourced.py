"""Recorded operations written as the source has them; and what computes fixed values, which is written where it stands."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import CodeType
from typing import TYPE_CHECKING

from ...jaxprs.types import Value
from ...places import Place, serves
from ...tape.recording import Recording
from ..writing.graph import Graph, ValueMap, ValueSet
from . import layout, sources
from .callers import Line, depth_of, inside_of
from .listing import bytecode, handed_on, name_of_operand, parameters_of
from .operations import written
from .scopes import Statement, is_key, new_key
from .spelling import fill

if TYPE_CHECKING:
    from .recorded import Scope, Writer


class Sourced:
    """Writes lines for `writer` as the source has them. `optional`: what computes values that do not vary."""

    def __init__(self, writer: Writer):
        self.writer = writer
        self.optional = ValueMap[Line]()
        self._sources: Sequence[Value] = ()
        self._reached: tuple[int, ValueSet] | None = None

    def spelled(
        self, part: Sequence[Line], place: Place, scope: Scope, wanted: Sequence[Value]
    ) -> list[Statement] | None:
        """The statement for operations of one instruction as the source has it; None where that is not known."""
        writer = self.writer
        if not writer.folds or serves(place[0].co_filename):  # a library's ways, ``jnp.add(x, y)``, are not the user's
            return None
        if (expression := self._expression(part, place, wanted, scope)) is None:
            return None
        active = ValueSet(line.inputs[i] for line in part for i in line.active_ins)
        text, names = expression.spelled.text, expression.spelled.names
        used = {int(i) for i in re.findall(r"\{(\d+)\}", text)}
        args = [writer.argument(x, x in active, scope) if i in used else "" for i, x in enumerate(expression.operands)]
        if scope.parent is not None and scope.calls == tuple([each.call for each in part[-1].calls]):
            args = self._in_roles(args, names, place[0], scope)
        self._note_operands(part[-1], place, ValueMap((expression.operands[i], name) for i, name in names.items()))
        own = expression.results
        outs = [scope.key(x) if x is not None and x in scope.used else None for x in own]
        parts = bytecode(place[0]).parts.get(place[1], ())
        if len(own) > 1 and len(wanted) == 1 and len(parts) != len(own):
            (at,) = (i for i, x in enumerate(own) if x is wanted[0])
            return [Statement([scope.key(wanted[0])], layout.parsed(f"{fill(text, args)}[{at}]"))]
        if len(parts) == len(own):  # all of them have names in the source
            keys = [out or new_key() for out in outs]
            writer.names.hints |= {key: name for key, name in zip(keys, parts, strict=True) if name != "_"}
            outs = [*keys]
        return [Statement([*outs], layout.parsed(fill(text, args)))]

    def _in_roles(self, args: Sequence[str], names: Mapping[int, str], code: CodeType, scope: Scope) -> list[str]:
        """The operands, each as the parameter, or variable from outside, that the source names: one value may be several."""
        outside = {*parameters_of(code), *code.co_freevars, *code.co_names}
        roles = {i: name for i, name in names.items() if name in outside and is_key(args[i])}
        return [scope.role(arg, roles[i]) if i in roles else arg for i, arg in enumerate(args)]

    def _note_operands(self, line: Line, place: Place, named: ValueMap[str]) -> None:
        """Notes what the source calls what an operation takes."""
        writer = self.writer
        if not line.calls or not named:
            return
        code, instruction, call, _ = line.calls[-1]
        texts = tuple([name_of_operand(layout.parsed(text), items=True) for text in named.values()])
        names = handed_on([(code, instruction), *(line.inside if serves(code.co_filename) else ())], texts)
        writer._note(call, zip(named, names, strict=True))
        if not serves(place[0].co_filename):
            for x, name in zip(named, texts, strict=True):
                writer.constants.setdefault(x, name or "c")

    def _expression(
        self, part: Sequence[Line], place: Place, wanted: Sequence[Value], scope: Scope
    ) -> sources.Expression | None:
        """The expression of the source for operations of one instruction."""
        writer = self.writer
        active = ValueSet(line.inputs[i] for line in part for i in line.active_ins)

        def text_of(x: Value) -> str | None:
            return None if x in active or scope.varying_around(x) else written(x)

        def is_fixed(x: Value) -> bool:
            return self._is_fixed(x) and not (scope.is_local(x) or scope.varying_around(x))

        recorded = writer._entries, writer.made
        return writer.code.sources.of_lines(part, place, wanted, text_of, writer.called.get, is_fixed, recorded)

    def add_constant_lines(self, lines: list[Line], recording: Recording, given: Sequence[Value]) -> list[Line]:
        """The lines, with those that compute what varies nowhere, as a mask or an index: they are written where they are used, if
        the source has an expression for them. `given`: what the function is called with."""
        writer = self.writer
        self._sources = given
        here = ValueSet(x for line in lines for x in line.outputs)
        depth = depth_of(lines)
        shared = lines[0].calls[: depth + 1] if lines else ()
        for position in Graph(recording.entries).before([x for line in lines for x in line.inputs if x not in here]):
            op, inputs, outputs, *_ = entry = recording.entries[position]
            own = ValueSet(outputs)
            running = writer._calls[position]
            if (
                here.isdisjoint(own)
                and all(map(self._is_fixed, (*inputs, *outputs)))
                and [each.call for each in running[: depth + 1]] == [each.call for each in shared]
            ):
                line = Line(op, inputs, outputs, (), tuple(range(len(outputs))), running, inside_of(entry))
                self.optional.update((x, line) for x in outputs)
        more = ValueMap((line.outputs[0], line) for line in self.optional.values()).values()
        stop = len(recording.entries)
        return sorted(
            [*lines, *more], key=lambda line: writer.position([writer.made.get(x, -1) for x in line.outputs], stop)
        )

    def is_line(self, x: Value, scope: Scope) -> bool:
        """Whether what varies nowhere is computed here, by an expression of the source."""
        line, place = self.optional.get(x), None
        if line is None or scope.varying_around(x):
            return False
        if written(x) is not None and not self.writer.zeros.has(line.inputs):
            return False
        if tuple([each.call for each in line.calls]) == scope.calls:
            place = sources.place_of(line)
        return place is not None and self._expression([line], place, [x], scope) is not None

    def _is_fixed(self, x: Value) -> bool:
        """Whether a value is the same whatever the function is called with."""
        writer = self.writer
        if self._reached is None or self._reached[0] != len(writer._entries):  # calls were opened
            self._reached = len(writer._entries), Graph(writer._entries).after(self._sources)
        return x not in self._reached[1]
