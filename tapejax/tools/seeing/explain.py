"""Why a gradient is what it is: along which operations it comes, or where its path broke and what would fix it.

Four sources of evidence, in this order. The recording has every operation of the block, watched or not: what depends on
what, and through which operation no gradient passes. The marks on it tell what happened to the tape: when it watched,
stopped, was reset, and which values were converted (`graph_evidence`). Where both are silent, the text of the program is
read (`text_evidence`). Of a gradient that is connected, one backward pass tells whether it is an error, none or zero
(`number_evidence`). What is then said stands in a table (`reasons`).
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from ...jaxprs.dependence import has_tangent
from ...places import SourceLine, line_of
from ...tape import active
from ...tape.accumulator import ForwardAccumulator
from ...tape.gradient_tape import GradientTape
from ...tape.query import Query
from ...tape.recording import Entry, Recording
from ...tape.slicing import Step
from ...tape.structures import Leaf, Structure, sources_of, targets_of
from ...tf.values import nest
from ...tf.values.shown import GREEN, RED, bold, faint, number_text, page
from ...tf.values.structures import _is_container, is_variable
from ...tf.values.types import Array, Nest, TensorLike
from ..writing.graph import ValueMap
from .graph_evidence import GraphEvidence, given_at
from .listing import Names, Repetition, Variables, name_of, namespaces, shown
from .number_evidence import GradientNumbers
from .reasons import At, Reason, reason
from .tables import Rows, in_columns, line_text
from .text_evidence import SourceTexts, TextEvidence, number_name

_NUMBERS = (np.ndarray, np.generic, bool, int, float, complex)
# A longer path is printed by its beginning and its end.
STEPS, FIRST, LAST = 24, 12, 8


class PathStep(NamedTuple):
    """An operation on the way from a source to a target, the value that it makes, and the line that ran it."""

    operation: str
    value: str
    line: SourceLine | None


class SourceReport(NamedTuple):
    """The report on one source: connected along `path`, or not, for `reasons`; each of these must be fixed."""

    name: str
    source: TensorLike
    connected: bool
    path: tuple[PathStep, ...] = ()
    reasons: tuple[Reason, ...] = ()

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(reason.kind for reason in self.reasons)

    @property
    def state(self) -> str:
        """The gradient in a word or two."""
        if self.connected:
            noted = next((kind for kind in ("zero", "not finite") if kind in self.kinds), "")
            return f"connected, and {noted}" if noted else "connected"
        return "an error" if any("gradient() raises" in reason.message for reason in self.reasons) else "None"

    def __str__(self) -> str:
        several = not self.connected and len(self.reasons) > 1
        about = ": it is the target itself" if self.connected and not self.path else ""
        lines = [f"{self.name}: {self.state}{f', for {len(self.reasons)} reasons' if several else about}"]
        steps = [(f"  -> {step.operation}", step.value, f" {line_text(step.line)}") for step in self.path]
        row = dict(zip(map(id, self.path), in_columns(steps, "<~~"), strict=True)) if steps else {}
        lines += [f"     {s}: .path has them" if isinstance(s, str) else row[id(s)] for s in self.folded()]
        for i, why in enumerate(self.reasons, 1):
            bullet = f"{i}. " if several else ""
            said = str(why).replace("\n", "\n  " + " " * len(bullet))
            lines.append(f"  {'note: ' if self.connected else bullet}{said}")
        return "\n".join(lines)

    def folded(self) -> Sequence[PathStep | str]:
        """The path; where it is long one round of each loop, or else its beginning and end, with what lies between."""
        keys = [(step.operation, step.line, step.value.partition(": ")[2]) for step in self.path]
        parts = shown(keys, STEPS, STEPS, FIRST, LAST)
        return [self.path[part] if isinstance(part, int) else self._hidden(part) for part in parts]

    def _hidden(self, part: Repetition | range) -> str:
        if isinstance(part, range):
            return f"… {len(part)} more"
        these = "this operation" if part.period == 1 else f"these {part.period} operations"
        last = self.path[part.stop - 1].value.partition(": ")[0]
        return f"× {part.rounds} rounds of {these}, the last gives {last}"


_EMPTY = (
    "nothing: there are no sources. A Keras model or layer has no variables before it is built: call it once, or build(shape), "
    "and read model.trainable_variables after that"
)


_GRADIENT, _JVP = "The gradient of {} with respect to", "The jvp of {}, as it depends on"


class Explanation(Rows[SourceReport]):
    """A `SourceReport` for each source, in the order in which a gradient has them: print it, iterate, or index."""

    def __init__(self, reports: Sequence[SourceReport], target: str, heading: str = _GRADIENT):
        super().__init__(reports)
        self.target, self._heading = target, heading

    def __str__(self) -> str:
        return "\n".join([self._heading.format(self.target), *(map(str, self.rows) if self else [_EMPTY])])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        texts = map(_html, self.rows) if self else [_EMPTY]
        blocks = "".join(f'<div style="margin:4px 0 4px 1em">{text}</div>' for text in texts)
        heading = self._heading.format(f"<b>{html.escape(self.target)}</b>")
        return page(f"<div>{heading}</div>{blocks}")


_BADGE = "border:1px solid rgba(128,128,128,.5);border-radius:3px;padding:0 4px"


def _html(report: SourceReport) -> str:
    rows = [f"<div>{bold(f'{report.name}: ')}{bold(report.state, GREEN if report.connected else RED)}</div>"]
    for step in report.folded():
        if isinstance(step, str):
            rows.append(f"<div>&nbsp;{faint(step)}</div>")
        else:
            made = f"{bold(step.operation)} {html.escape(step.value)} {faint(line_text(step.line))}"
            rows.append(f"<div>&nbsp;&rarr; {made}</div>")
    for kind, message, remedy, _, where in report.reasons:
        kind = f"note: {kind}" if report.connected else kind
        line = f"<div><code>{html.escape(line_text(where))}</code></div>" if where else ""
        rows.append(
            f'<div style="margin:3px 0 3px 1em"><b style="{_BADGE}">{html.escape(kind)}</b> {html.escape(message)}{line}'
            f"<div>&rarr; {html.escape(remedy)}</div></div>"
        )
    return "".join(rows)


# ---- finding out ----------------------------------------------------------------------------------------------------


def explain(tape: GradientTape | ForwardAccumulator, target: Nest, sources: Nest) -> Explanation:
    """What `explain` of a tape or an accumulator returns."""
    ends, starts = _leaves(target, targets_of), _leaves(sources, sources_of)
    recording = None if tape._recording is None else active.continuation_of(tape._recording).folded()
    with active.outside():
        spaces = namespaces()
        names = Names(recording or Recording(), spaces)
        values = {name: x for space in reversed(spaces) for name, x in space.items()}
        called = [_is_number(leaf) and number_name(leaf.array, values) or names.of(leaf.array) for leaf in ends]
        of = called[0] if len(called) == 1 else f"the sum of {', '.join(called[:6])}{' ...' if len(called) > 6 else ''}"
        if recording is not None:
            backward = tape if isinstance(tape, GradientTape) else None
            case = _Case(backward, recording, names, values, ends)
            reports = case.noted([case.report(leaf, i) for i, leaf in enumerate(starts)], of)
            return Explanation(reports, of, _GRADIENT if backward else _JVP)
        assert isinstance(tape, GradientTape), "an accumulator always has its recording"
        used = None if tape._used is None else At("gradient", line_of(tape._used))
        missing = reason("not recorded") if used is None else reason("used up", used)
        named = [(_source_name(leaf, i, names), leaf.value) for i, leaf in enumerate(starts)]
        return Explanation([SourceReport(*pair, False, (), (missing,)) for pair in named], of)


def _leaves(structure: Nest, taken_apart: Callable[[Nest], Structure]) -> list[Leaf]:
    """The leaves of a structure. What `gradient` refuses, a number of Python's or NumPy's, is one too: that is explained."""
    leaves: list[Leaf] = []
    for item in nest.taken_apart(structure, _is_container):
        leaves += [Leaf(item, item, type(item))] if isinstance(item, _NUMBERS) else taken_apart(item).leaves
    return leaves


def _is_number(leaf: Leaf) -> bool:
    return isinstance(leaf.array, _NUMBERS)


def _source_name(leaf: Leaf, position: int, names: Names) -> str:
    name = number_text(leaf.array) if _is_number(leaf) else names.name(leaf.array)
    if name is None and is_variable(leaf.value):
        name = str(getattr(leaf.value, "path", None) or getattr(leaf.value, "name", ""))
    return name or (names.of(leaf.array) if isinstance(leaf.array, jax.Array) else f"source {position}")


class _Case:
    """One call of `explain`: why the sum of `ends` has the gradients that it has.

    `tape` is None for an accumulator: numbers take a backward pass.
    """

    def __init__(
        self, tape: GradientTape | None, recording: Recording, names: Names, values: Variables, ends: Sequence[Leaf]
    ):
        self.tape, self.recording, self.names, self.values, self.ends = tape, recording, names, values, ends
        self.texts, self.targets = SourceTexts(recording, values), [leaf.array for leaf in ends]
        # what the notes on connected sources need
        self._connected: list[tuple[int, Leaf, TextEvidence, dict[int, Step]]] = []

    def report(self, source: Leaf, position: int) -> SourceReport:
        name = _source_name(source, position, self.names)
        graph = GraphEvidence(self.recording, self.names, source, name)
        text = TextEvidence(graph, self.values, self.texts, position)
        numbers = [("source", source)] if _is_number(source) else [("target", x) for x in self.ends if _is_number(x)]
        reasons = [text.number(role, leaf.value) for role, leaf in numbers]
        if not numbers:
            query = Query(self.recording, self.targets, [graph.sought])
            if any(slot is not None for slot in query.program()[0].sources):
                relevant, _ = query.relevant()
                self._connected.append((position, source, text, relevant))
                return SourceReport(name, source.value, True, self._path(self.targets, graph.arrays, relevant))
            reasons = graph.swapped(self.ends) or [r for target in self.targets for r in _why(target, graph, text)]
        if reasons[0].kind == "new tensor" and self.names.name(source.array) is None:
            name, _ = self.texts.source(position)
        return SourceReport(name, source.value, False, (), tuple(dict.fromkeys(reasons)))

    def noted(self, reports: list[SourceReport], of: str) -> list[SourceReport]:
        """The reports, with what may be surprising about the gradients of connected sources."""
        numbers = self._numbers(reports)
        for i, (position, _, text, relevant) in enumerate(self._connected):
            notes = [
                *text.graph.watched_late(self.targets, connected=True),
                *text.another(),
                *text.broadcast(relevant),
                *text.graph.squashed(relevant),
                *(note for target in self.targets for note in text.part(target, numbers and numbers.gradients[i])),
                *(numbers.zero(i, text.graph, relevant, of) if numbers else ()),
            ]
            path = reports[position].path
            if numbers and (culprit := numbers.not_finite(i)) is not None:
                notes.append(culprit[0])
                path = self._through(culprit[1], text.graph.arrays, relevant) or path
            reports[position] = reports[position]._replace(reasons=tuple(notes), path=path)
        return reports

    def _numbers(self, reports: list[SourceReport]) -> GradientNumbers | None:
        """Those of the backward pass to the connected sources. Where `gradient` raises an error, or a function of the user's
        gives no gradient, a source is not connected, which its report says then."""
        while self.tape is not None and self._connected:
            starts = [source for _, source, _, _ in self._connected]
            numbers = GradientNumbers(self.tape, self.ends, starts, self.names)
            connected = []
            for i, one in enumerate(self._connected):
                position, _, text, relevant = one
                if refused := numbers.refused(i, text.graph, relevant):
                    reports[position] = reports[position]._replace(connected=False, path=(), reasons=tuple(refused))
                else:
                    connected.append(one)
            if len(connected) == len(self._connected):
                return numbers
            self._connected = connected  # and once more for these, without what raised the error
        return None

    def _through(self, entry: Entry, arrays: Sequence[Array], relevant: dict[int, Step]) -> tuple[PathStep, ...]:
        """A way from the source to a target that leads through `entry`, if there is one."""
        before, after = self._path(entry.outputs, arrays, relevant), self._path(self.targets, entry.outputs, relevant)
        ends = any(x is y for x in entry.outputs for y in self.targets)
        return (*before, *after) if before and (after or ends) else ()

    def _path(
        self, targets: Sequence[Array], arrays: Sequence[Array], relevant: dict[int, Step]
    ) -> tuple[PathStep, ...]:
        """The shortest way from the source to a target, through the entries that `Query.relevant` found."""
        # to each value the number of operations, the last of them, and the way to what that had from the source
        ways = ValueMap[tuple[int, Any, Any]]((x, (0, None, None)) for x in arrays)

        def nearest(values: Iterable[Any]) -> tuple[int, Any, Any] | None:
            return min((ways[x] for x in values if x in ways), key=lambda way: way[0], default=None)

        for position, step in relevant.items():
            entry = self.recording.entries[position]
            if came := nearest(entry.inputs[i] for i in step.active_ins):
                for j in step.active_outs:
                    ways.setdefault(entry.outputs[j], (came[0] + 1, entry, came))
        best, way = list[Entry](), nearest(targets)
        while way is not None and way[1] is not None:
            best.append(way[1])
            way = way[2]
        return tuple([PathStep(name_of(e), ", ".join(map(self.names.typed, e.outputs)), e.line) for e in best[::-1]])


def _why(target: Array, graph: GraphEvidence, text: TextEvidence) -> list[Reason]:
    reasons = [] if has_tangent(target) else [graph.integer_target(target)]
    unwatched = graph.unwatched(target)
    if unwatched is None:
        another = text.another()
        if another and graph.first_use(*graph.arrays) is None:  # nothing is broken: another value is meant
            return another
        unwatched = another or text.replaced()
        if not unwatched and (new := text.new(target)) is not None:
            return [new]
        unwatched = unwatched or [graph.never_watched()]
    reasons += unwatched
    return reasons + _broken(target, graph, text) or [graph.unrelated(target)]


def _broken(target: Array, graph: GraphEvidence, text: TextEvidence) -> list[Reason]:
    """Where the path breaks, were the source watched from the start: every place that has to be fixed."""
    if target in graph.dependents:
        made = graph.made_by(target)
        return graph.breaks([target] if made is None or has_tangent(target) else made.inputs)
    if (mark := graph.state(target)) is not None:
        into, *values = given_at(mark)
        return [graph.state_reason(mark), *graph.breaks(values), *graph.breaks([target], [into])]
    if reset := graph.before_reset(target):
        return reset
    reasons, followed = text.breaks(target)
    if reasons is not None:
        return reasons
    if not graph.on_tape(target):
        return [text.outside(target)]
    marked = None if followed and not graph.unexplained(target) else graph.by_marks(target)
    return [text.from_keras(target) or marked or graph.unrelated(target)]
