"""Why there is no gradient, as far as the program's text tells: used where the recording tells nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np

from ...jaxprs.dependence import has_tangent
from ...jaxprs.types import Value
from ...places import Place, SourceLine, line_of
from ...tape.recording import Entry, Recording
from ...tape.slicing import Step
from ...tf.values.shown import number_text
from ...tf.values.structures import is_variable
from ...tf.values.types import Array
from .flow import KERAS_GIVES_NUMPY, PYTHON_VALUES, Assignment, SourceText, root, scope_of, sign_in
from .graph_evidence import GraphEvidence
from .listing import Variables, running, watched_as
from .reasons import At, Reason, at, reason

# Operations that compare a prediction with a label; operations that give a value a chosen shape.
_DIFFERENCES = {"subtract", "sub", "squared_difference"}
_SHAPING = {"reshape", "expand_dims", "broadcast_in_dim", "broadcast_to", "getitem", "transpose"}


# Whether the search ends at a statement, given the name that it binds and the line that uses the name.
Stops: TypeAlias = Callable[[Assignment, str, int | None], bool]


def _has_not_run(statement: Assignment, wanted: str, line: int | None) -> bool:
    return line is not None and statement.line.number > line


def _keras_gave(code: str, line: SourceLine | None, binds: str, so: str = "to the tape constants") -> Reason | None:
    """That `code` calls a method of Keras that gives NumPy arrays or Python's numbers."""
    for case in KERAS_GIVES_NUMPY:
        if method := sign_in(code, case):
            return reason(case, At(None, line), binds=binds, method=method, so=so)
    return None


def number_name(value: object, values: Variables) -> str | None:
    """What the user calls a number."""
    return next((name for name, x in values.items() if x is value), None)


class SourceTexts:
    """The text around the tape's block and around the call of `explain`."""

    def __init__(self, recording: Recording, values: Variables):
        entered = [mark.where for mark in recording.marks if mark.kind in ("enter", "reset") and mark.where]
        self._places = running()
        noted = [place for entry in recording.entries for place in (*entry.calls, entry.where)]
        noted += [*(mark.where for mark in recording.marks), *self._places]
        lines = map(line_of, {place for place in noted if place})
        ran = {(line.file, line.number) for line in lines if line is not None}
        self.block = SourceText(entered[0] if entered else None, self._places, ran, values)
        self.here = SourceText(self._places[0] if self._places else None, self._places, ran, values)

    def source(self, position: int) -> tuple[str, frozenset[str]]:
        """The expression for a source in the call of `explain`, and the names in it."""
        written = self.here.sources() or [("this source", frozenset())]
        return written[position if position < len(written) else 0]

    def bound(self, name: str) -> list[Assignment]:
        """The statements that bind `name` and may matter where `explain` is called, the last of each text first."""
        return [a for text in (self.block, self.here) for a in text.of(root(name), text.asked)]

    def sees(self, where: Place) -> bool:
        """Whether the calling code has the names of the code at `where`: the same function, or cells of one notebook."""
        module = where[0].co_name == "<module>"
        return any(code is where[0] or module and code.co_name == "<module>" for code, _ in self._places)


class TextEvidence:
    """What the texts tell of the source at a `position`; `values` are what the user's names hold now."""

    def __init__(self, graph: GraphEvidence, values: Variables, texts: SourceTexts, position: int):
        self.graph, self.values, self.texts, self.position = graph, values, texts, position
        self.both = (texts.block, texts.here)

    # ---- one name ----

    def replaced(self) -> list[Reason]:
        """A name that was a Variable's until a tensor was bound to it."""
        name = self.graph.name
        return [reason("replaced", At(None, new.line), name=name, former=was.line) for new, was in self._replaced()]

    def _replaced(self) -> list[tuple[Assignment, Assignment]]:
        """The statement that bound the source's name to a tensor, and the one that made the Variable, if there are such."""
        name = self.graph.name
        for text in self.both:
            bound = text.of(root(name))
            was = [a for a in bound if "Variable(" in a.line.text]
            new = [a for a in bound if "Variable(" not in a.line.text and root(name) in a.uses]
            if was and new:
                former = [a for a in was if a.line.number < new[0].line.number]
                return [(new[0], (former or was)[0])]
        return []

    def another(self) -> list[Reason]:
        """The source, if the name had another value when the tape began to watch: of an intermediate of the tape's, or of what
        it does not know."""
        graph, array = self.graph, self.graph.source.array
        if is_variable(graph.source.value) or id(array) in graph.watched:
            return []
        made, watched = graph.made_by(array), graph.marked("watch")[::-1]
        mark = next((m for m in watched if m.where and watched_as(m) == graph.name and self.texts.sees(m.where)), None)
        former = None if mark is None else f"the value that was watched at {line_of(mark.where)}"
        for statement, was in self._replaced() if mark is None else ():
            if made is not None and statement.holds(made.line) and self._lost_variable(array):
                former = f"the Variable of {was.line}"
        if former is None:
            return []
        values = {"name": graph.name, "former": former}
        if made is not None:
            return [reason("another value", at(made), **values)]
        line = next((a.line for a in self.texts.bound(graph.name)), None)
        return [reason("another value: not watched", At(None, line), **values)]

    def new(self, target: Array) -> Reason | None:
        """The source, if the tape has not seen it, and it is, as the text tells, made of what the tape has seen."""
        graph = self.graph
        if not graph.is_new():
            return None
        if (name := graph.names.name(graph.source.array)) is None:
            called, uses = self.texts.source(self.position)
        else:
            last = self.texts.bound(name)[:1]
            made = next((a for a in last if not a.says("python") and not a.inside), None)
            called, uses = name, frozenset() if made is None else made.uses
        seen = sorted(filter(None, (graph.names.name(x) for x, _ in graph.leaves([target]))))
        of = " and ".join(n for n in seen if root(n) in uses)
        if name is not None and not of:
            return None
        of = of or f"the variable or tensor itself ({graph.names.of(target)} was computed from {', '.join(seen[:6])})"
        return reason("new tensor", name=called, of=of, target=graph.names.of(target))

    def _lost_variable(self, array: Array) -> bool:
        """Whether an array was computed from a Variable that no name means any more."""
        held = {id(x) for x in self.values.values()}
        lost = [arrays.values() for key, (_, arrays) in self.graph.recording.variables.items() if key not in held]
        return any(array in self.graph.after(arrays) for arrays in lost)

    def number(self, role: str, value: Value) -> Reason:
        """Of a number that is no tensor: where it was made."""
        python = not isinstance(value, (np.ndarray, np.generic))
        made_by = f"Python {type(value).__name__}" if python else f"NumPy {value.dtype}"
        name = number_name(value, self.values) or ""
        bound = [a for text in self.both[::-1] for a in text.of(name, text.asked)]
        lines = [*(a.line for a in bound), *(line_of(mark.where) for mark in self.graph.conversions()[::-1])]
        raises = "gradient() raises TypeError"
        if bound and (keras := _keras_gave(bound[0].code, lines[0], name, raises)) is not None:
            return keras
        called = name or number_text(value)
        return reason("python: number", At(None, next(iter(lines), None)), role=role, name=called, made_by=made_by)

    def outside(self, target: Array) -> Reason:
        """Why the target is nothing that the tape recorded, where it is not seen how it comes from the source."""
        name = self.graph.names.of(target)
        for statement in self.texts.bound(name):
            return self._statement(statement, name)
        line = self.graph.last_line("stop")
        stopped = ", or while recording was stopped" if line else ""
        return reason("outside", At(None, line), target=name, stopped=stopped)

    # ---- connected, and not what was meant ----

    def part(self, target: Array, gradient: Array | None) -> list[Reason]:
        """What of the source enters a target that depends on it as a number of NumPy's or Python's."""
        value = "" if gradient is None or gradient.ndim else f" ({number_text(gradient)})"
        for statement, wanted in self._behind(target, _has_not_run):
            if self._exit(statement, wanted):
                binds = "a factor or term of this line" if self._makes(statement, wanted) else wanted
                values = {"target": self.graph.names.of(target), "binds": binds, "value": value}
                return [reason("python: part", At(None, statement.line), **values)]
        return []

    def from_keras(self, target: Array) -> Reason | None:
        """Where a target was computed from what ``model.predict`` or ``get_weights`` gave."""
        behind = self._behind(target, _has_not_run)
        return next(filter(None, (_keras_gave(s.code, s.line, binds) for s, binds in behind)), None)

    def _behind(self, target: Array, stops: Stops) -> Iterator[tuple[Assignment, str]]:
        """The statements that a target was computed by, up to what `stops`, each with the name that it binds."""
        seen: set[tuple[Assignment, str]] = set()

        def before(text: SourceText, wanted: str, line: int | None) -> Iterator[tuple[Assignment, str]]:
            for statement in text.of(wanted, line):
                if (statement, wanted) not in seen and not stops(statement, wanted, line):
                    seen.add((statement, wanted))
                    yield statement, wanted
                    for used in sorted(statement.uses):
                        yield from before(text, used, statement.line.number - (not statement.changes))

        for text in self.both:
            if (start := self._start(text, target)) is not None:
                yield from before(text, start, text.asked)

    def _exit(self, statement: Assignment, binds: str) -> bool:
        """Whether a statement of the block makes a floating-point number of what depends on the source."""
        numpy = statement.says("python") and not statement.says("shape", "choice")
        if not numpy or statement.defines or not statement.inside:
            return False
        for mark in self.graph.conversions():
            if statement.holds(line_of(mark.where)) and has_tangent(mark.about[1]()):
                return True
        value = self.values.get(binds)
        floats = isinstance(value, (float, np.ndarray, np.generic)) and np.asarray(value).dtype.kind in "fc"
        if not self._is_last(statement, binds) or not floats:
            return False
        return any(map(self._depends, map(self._array_of, statement.uses)))  # what is no Tensor leaves without a mark

    def broadcast(self, relevant: dict[int, Step]) -> list[Reason]:
        """A difference, among `relevant`, of a column and a row that are as long: what of this is computed, what is given."""
        for position, step in relevant.items():
            entry = self.graph.entries[position]
            if entry.op.name not in _DIFFERENCES or len(entry.inputs) != 2 or len(step.active_ins) != 1:
                continue
            column, row = sorted(entry.inputs, key=lambda x: -np.ndim(x))
            n = row.shape[-1] if np.ndim(row) == 1 else 0
            other = entry.inputs[1 - step.active_ins[0]]
            if n < 2 or column.shape != (n, 1) or self._depends(other) or self._shaped(column):
                continue
            names = {"column": self.graph.called(column), "row": self.graph.called(row)}
            shapes = {"column_shape": column.shape, "row_shape": row.shape, "shape": entry.outputs[0].shape}
            return [reason("broadcast", at(entry), **names, **shapes)]
        return []

    def _shaped(self, column: Array) -> bool:
        """Whether the program made a value a column on purpose; True also where nothing is known of it."""
        if (entry := self.graph.made_by(column)) is not None:
            return entry.op.name in _SHAPING
        name = self.graph.names.name(column)
        bound = self.texts.bound(name) if name else []
        return not bound or any(a.says("shaping") for a in bound)

    # ---- back from the target ----

    def breaks(self, target: Array) -> tuple[list[Reason] | None, bool]:
        """What is broken on the way, if the statement is found in which the path leaves the tape; and whether the text could
        be followed back from the target's name."""
        graph, source = self.graph, root(self.graph.name)
        text = next((text for text in self.both if self._start(text, target) is not None), None)
        back = self._behind(target, lambda s, wanted, _: self._makes(s, wanted))
        leaving = [(s, wanted) for s, wanted in back if s.text is text and not s.defines and self._gets(s)]
        if not leaving:
            return None, text is not None and any(source in a.names | a.uses for a in text.assignments)
        statement, binds = next((pair for pair in leaving if self._way_out(*pair)), leaving[0])
        came = self._frontier(statement)
        if came and not any(map(has_tangent, came)):  # an index, a count: the path broke when it was made
            return graph.breaks(came), True
        broken = self._statement(statement, binds, came, graph.name)
        # the target itself may stand outside as well
        late = [] if graph.on_tape(target) else [self.outside(target)]
        late = [r for r in late if r.kind in ("before", "after", "stopped") and r.kind != broken.kind]
        constant = self._constant(binds, target)
        behind = [] if constant is None else graph.breaks([target], [constant])
        return [broken, *graph.breaks(came), *behind, *late], True

    def _start(self, text: SourceText, target: Array) -> str | None:
        """The name in `text` from which the target can be followed back."""
        names = self.graph.names
        # in the block's function the target may have another name than where `explain` is called
        called = (names.name(target), names.stored(target) if text is self.texts.block else None)
        roots = (root(name) for name in called if name is not None)
        return next((name for name in roots if text.of(name)), None)

    def _gets(self, statement: Assignment) -> bool:
        """Whether a statement uses what depends on the source."""
        source, before = root(self.graph.name), statement.line.number - (not statement.changes)
        # a Variable that nothing read in the block was not used there, if the tape recorded all of it
        partly = self.graph.marked("stop") or statement.says("thread")
        if source in statement.uses and (partly or not self.graph.never_read or not statement.inside):
            return True
        made = [(used, s) for used in statement.uses - {source} for s in statement.text.of(used, before)]
        return any(s.defines and source in s.uses or self._makes(s, used) for used, s in made)

    def _is_last(self, statement: Assignment, name: str) -> bool:
        """Whether `name` means what a statement bound to it."""
        return statement.text.of(name, statement.text.asked)[:1] == [statement]

    def _makes(self, statement: Assignment, name: str) -> bool:
        """Whether what a statement binds to `name` depends on the source, as far as the tape has recorded."""
        if self._is_last(statement, name) and name in self.values:
            return self._depends(self._array_of(name))
        if statement.says("python", "thread"):
            return False
        return any(self._depends(x) for entry in self._at(statement) for x in entry.outputs)

    def _depends(self, x: Array | None) -> bool:
        return x is not None and x in self.graph.dependents

    def _array_of(self, name: str) -> Array | None:
        value = self.values.get(name)
        value = getattr(value, "_array", value)
        return value if isinstance(value, jax.Array) else None

    def _at(self, statement: Assignment) -> list[Entry]:
        """The entries that ran on the lines of a statement."""
        return [entry for entry in self.graph.entries if statement.holds(entry.line)]

    def _frontier(self, statement: Assignment) -> list[Array]:
        """The values depending on the source that a statement uses: the last that it computed itself, or what it names."""
        made = [x for e in self._at(statement) for x in e.outputs if self._depends(x) and not self.graph.uses(x)]
        return made or list(filter(self._depends, map(self._array_of, sorted(statement.uses))))

    def _constant(self, binds: str, target: Array) -> Array | None:
        """The value under the name `binds` from which the target was computed; where the name means another now, the one
        constant that it was computed from."""
        x, names = self._array_of(binds), self.graph.names
        leaves = [y for y, _ in self.graph.leaves([target]) if isinstance(y, jax.Array) and y is not target]
        leaves = [y for y in leaves if has_tangent(y) and (y.ndim or names.name(y) or id(y) not in self.graph.watched)]
        return leaves[0] if len(leaves) == 1 and (x is None or x is target) else x

    # ---- one statement ----

    def _stops(self, statement: Assignment) -> bool:
        """Whether recording was stopped at a statement."""
        stops = [line_of(mark.where) for mark in self.graph.marked("stop")]
        spans = [statement.text.span_at(stop.number) for stop in stops if stop is not None]
        return any(span is not None and statement.line.number in span for span in spans)

    def _way_out(self, statement: Assignment, binds: str) -> str | None:
        """The case of how a path leaves the tape at a statement; None where that is not seen."""
        block = self.texts.block
        if self._stops(statement):
            return "stopped"
        if statement.says("thread"):
            return "thread"
        if statement.says("python") or isinstance(self.values.get(binds), PYTHON_VALUES):
            return "python"
        if statement.inside:
            other = None if statement.function is None and self._at(statement) else "python"
            return "shape" if statement.says("shape") else other
        if block.block is None or statement.text.scope != block.scope:
            return "outside: elsewhere"
        return "before" if statement.line.number < block.block[0] else "after"

    def _statement(
        self, statement: Assignment, binds: str, came: Sequence[Array] = (), name: str = "its argument"
    ) -> Reason:
        """How the path leaves the tape at a statement, which uses the values `came` of the source `name`."""
        line: SourceLine | None = statement.line
        if (keras := _keras_gave(statement.code, line, binds)) is not None:
            return keras
        for mark in self.graph.marked("state"):
            if statement.holds(line_of(mark.where)) and self.graph.keeps(mark):
                return self.graph.state_reason(mark)
        case = self._way_out(statement, binds) or "python"
        if case in ("python", "shape") and statement.inside:
            if (mark := self._converted(statement, came)) is not None:
                case, line = "python", line_of(mark.where)
                if line is not None and (keras := _keras_gave(line.text, line, binds)) is not None:
                    return keras
        block = self.texts.block.block or (0,)
        return reason(case, At(None, line), binds=binds, name=name, first=block[0], last=block[-1])

    def _converted(self, statement: Assignment, came: Sequence[Array]) -> Any:
        """Where a function that a statement calls converted a value to NumPy or Python, if that is on record."""
        positions = map(self.graph.position, came)
        begin = max([position + 1 for position in positions if position is not None], default=0)
        ran = [i for i, entry in enumerate(self.graph.entries) if entry.outputs and statement.holds(entry.line)]
        after = [position for position in ran if position >= begin]
        end = min(after, default=len(self.graph.entries))
        if after:  # what another statement's entry precedes is of that statement
            begin = max([begin, *(position + 1 for position in self._elsewhere(statement) if position < end)])
        marks = [mark for mark in self.graph.conversions() if begin <= mark.position <= end]
        if any(statement.holds(line_of(mark.where)) for mark in marks):
            return None
        return next((mark for mark in marks if scope_of(mark.where) != statement.text.scope), None)

    def _elsewhere(self, statement: Assignment) -> Iterator[int]:
        """The positions of the entries that other statements of the same text ran, themselves or in what they call."""
        for position, entry in enumerate(self.graph.entries):
            places = [place for place in (*entry.calls, entry.where) if scope_of(place) == statement.text.scope]
            if places and not statement.holds(line_of(places[0])):
                yield position
