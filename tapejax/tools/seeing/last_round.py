"""What a round of a loop of the user's ran and nobody reads, as a filter's last covariance, so that rounds are written alike.

What is added did run: it is in the recording, in a round that ran the same operations as another one, in which it is read.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ...jaxprs.types import Value
from ...places import Place, serves
from ...tape.derivative import DerivativeOp
from ..writing.graph import ValueMap, ValueSet
from .callers import Line, Running, inner_call, inside_of
from .listing import bytecode
from .scopes import Key

if TYPE_CHECKING:
    from .recorded import Writer

Places: TypeAlias = tuple[Place, ...]


class LastRounds:
    """What `writer` adds to rounds. `shown`: of what a round gives to others at what depth its function is; `keys`: of these."""

    def __init__(self, writer: Writer):
        self.writer = writer
        self.shown, self.keys = ValueMap[int](), set[Key]()
        self.called: dict[Places, Line] = {}  # by place one of the calls that are opened

    def note(self, line: Line) -> None:
        """Notes a call that is opened."""
        self.called.setdefault(_places(line.calls), line)

    def filled(self, lines: list[Line], given: Iterable[Value], ends: Iterable[Value]) -> list[Line]:
        """The lines, with what is missing in rounds. `given`: what the printed function is called with; `ends`: its results."""
        writer = self.writer
        if not writer.folds:
            return lines
        at = [*map(self._position, lines)]
        read = dict(zip(at, lines, strict=True))
        self._sort()
        for position in [i for _, rounds in self._alike(read) for own in rounds for i in own if i not in read]:
            op, inputs, outputs, *_ = writer._entries[position]
            like = self.called.get(_places(calls := writer._calls[position]))
            if like is not None and like.op.name == op.name:
                writer._lines_of(Line(op, inputs, outputs, like.active_ins, like.active_outs, calls), position)
        self._sort()  # with those of calls that were opened
        more, every = self._unread(read, given, ends), list[Line]()
        waiting = [*more][::-1]
        for position, line in zip(at, lines, strict=True):
            while waiting and self._order[waiting[-1]] < self._order[position]:
                every.append(more[waiting.pop()])
            every.append(line)
        return every + [more[position] for position in reversed(waiting)]

    def _sort(self) -> None:
        """Notes when each entry ran, beside others."""
        self._order: list[tuple[int, ...]] = [(i,) for i in range(len(self.writer._entries))] + [()]  # of no entry: -1
        for start, stop, outer in self.writer._around:
            self._order[start:stop] = [(*self._order[outer], i) for i in range(start, stop)]

    def _position(self, line: Line) -> int:
        """That of the entry that a line is of."""
        writer, x = self.writer, line.outputs[0]
        inside, outer = writer.made_inside.get(x, -1), writer.made.get(x, -1)
        return inside if inside >= 0 and writer._entries[inside].op == line.op else outer

    def _unread(self, lines: Mapping[int, Line], given: Iterable[Value], ends: Iterable[Value]) -> dict[int, Line]:
        """What is missing, by position, in the order in which it ran; `lines` are those that are read."""
        known, sources = ValueSet(), ValueSet(given)
        readers = ValueMap[list[tuple[Running, ...]]]((x, [()]) for x in ends)
        for line in lines.values():
            known.update(line.outputs[j] for j in line.active_outs)
            for x in () if isinstance(line.op, DerivativeOp) else line.inputs:
                readers.setdefault(x, []).append(line.calls)
        more = dict[int, Line]()
        for depth, rounds in self._alike(lines):
            made = ValueMap((x, inner_call(line.calls, depth)) for line in lines.values() for x in line.outputs)
            columns = [[lines[i] for i in column if i in lines] for column in zip(*rounds, strict=True)]
            for position, column in itertools.chain.from_iterable(zip(own, columns, strict=True) for own in rounds):
                op, inputs, outputs, *_ = entry = self.writer._entries[position]
                active = {i for i, x in enumerate(inputs) if x in known}
                varying = active | {i for i, x in enumerate(inputs) if x in sources}
                same = (x for x in column if active <= {*x.active_ins} <= varying and len(x.outputs) == len(outputs))
                if position in lines or position in more or (like := next(same, None)) is None:
                    continue
                calls = self.writer._calls[position]
                more[position] = Line(op, inputs, outputs, like.active_ins, like.active_outs, calls, inside_of(entry))
                known.update(outputs[j] for j in like.active_outs)
                own = inner_call(like.calls, depth)
                for y, x in zip(like.outputs, outputs, strict=True):
                    if own is None or any(inner_call(each, depth) != own for each in readers.get(y, ())):
                        self.shown[x] = depth
            for xs in (xs for column in columns for xs in zip(*(line.outputs for line in column), strict=False)):
                # all rounds show or none what the function gives that a derivative is of, or what that alone reads in some
                every = [(made[x], {inner_call(each, depth) for each in readers.get(x, ())}) for x in xs]
                some = len({*map(bool, map(readers.get, xs))}) > 1
                if any(read - {own} if own is not None else some for own, read in every):
                    self.shown.update((x, depth) for x in xs)
        return dict(sorted(more.items(), key=lambda each: self._order[each[0]]))

    def _alike(self, lines: Mapping[int, Line]) -> Iterator[tuple[int, list[list[int]]]]:
        """Rounds of a loop in which something is read and that ran the same, and at what depth its function is."""
        for depth, rounds in self._rounds():
            alike = dict[Hashable, list[list[int]]]()
            for own in rounds:
                if not lines.keys().isdisjoint(own):
                    ran = [(self.writer._entries[i].op.name, _places(self.writer._calls[i][depth:])) for i in own]
                    alike.setdefault(tuple(ran), []).append(own)
            yield from ((depth, each) for each in alike.values())

    def _rounds(self) -> Iterator[tuple[int, list[list[int]]]]:
        """The rounds of each loop of the user's, as the positions of what ran in them, and at what depth its function is."""
        inside = dict[tuple[int, int, int, int], list[int]]()
        for position, calls in enumerate(self.writer._calls):
            for depth, (code, _, call, place) in enumerate(calls):
                for start, stop in () if serves(code.co_filename) else bytecode(code).rounds:
                    if start <= place <= stop:
                        inside.setdefault((call, depth, start, stop), []).append(position)
        for (_, depth, start, stop), positions in inside.items():
            rounds, before = list[list[int]](), stop
            for position in sorted(positions, key=self._order.__getitem__):
                code, _, _, place = self.writer._calls[position][depth]
                inner = (
                    (a, b) for a, b in bytecode(code).rounds if start <= a <= b <= stop and (a, b) != (start, stop)
                )
                if place < before and not any(a <= place <= before <= b for a, b in inner):
                    rounds.append([])
                if rounds:
                    rounds[-1].append(position)
                before = place
            yield depth, rounds


def _places(calls: Sequence[Running]) -> Places:
    """Where in the source something ran, whatever the call."""
    return tuple([(code, place) for code, _, _, place in calls])
