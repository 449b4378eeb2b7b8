"""Why a gradient that is connected is an error, none, zero, or not finite, as far as one backward pass tells."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...jaxprs.types import Value
from ...tape.gradient_tape import GradientTape
from ...tape.pullback import PullbackOp
from ...tape.recording import Entry, is_deleted
from ...tape.slicing import Step
from ...tape.structures import Leaf
from ...tf.values.shown import number_text, unreadable, value_text
from .graph_evidence import BREAKS, GraphEvidence
from .listing import Names, name_of
from .reasons import FLAT, NOT_FLAT, WIDTH, Reason, at, reason
from .steps import Backward, first_not_finite, is_nonzero, wide


class GradientNumbers:
    """One backward pass from the sum of `ends` to `starts`.

    ``gradients`` are NumPy arrays, or None each where the numbers are not known: under a trace, of values that were deleted since
    or are on other processes, and where the pass ends in an error.
    """

    def __init__(self, tape: GradientTape, ends: Sequence[Leaf], starts: Sequence[Leaf], names: Names):
        self._walk = walk = Backward(tape, [leaf.value for leaf in ends], [leaf.value for leaf in starts], names=names)
        self.gradients: list[np.ndarray | None] = [None] * len(starts)
        self._none = [False] * len(starts)
        self._silent: set[int] = set()  # positions of operations whose gradient function gave nothing
        self._failed: tuple[int, Exception] | None = None
        ct: dict[int, Any] = {}
        passed = set()
        try:
            for position, entry, _, back in walk.sweep(ct):
                passed.add(position)
                if isinstance(entry.op, PullbackOp) and all(x is None for x in back):
                    self._silent.add(position)
            arrays = walk.gathered(ct)
            self._none = [x is None for x in arrays]
            self.gradients = [None if x is None or unreadable(x) else np.asarray(x) for x in arrays]
        except Exception as error:  # what a rule of the user's raises, too
            pairs = zip(walk.positions, walk.program.steps, strict=True)
            left = [at for at, step in pairs if at not in passed and any(step.outs[j] in ct for j in step.active_outs)]
            if left and not any(map(is_deleted, walk.values)):
                self._failed = left[-1], error

    def refused(self, i: int, graph: GraphEvidence, relevant: dict[int, Step]) -> list[Reason]:
        """The operations, of those that are `relevant` to a source, that raise an error or whose function returns None."""
        if self._failed is not None and self._failed[0] in relevant:
            entry, error = graph.entries[self._failed[0]], self._failed[1]
            said, _, remedy = str(error).partition(". ")
            kind = type(error).__name__
            return [reason("not differentiable", at(entry), name=graph.name, error=kind, said=said, remedy=remedy)]
        silent = [graph.entries[position] for position in reversed(relevant) if position in self._silent]
        return [reason("custom gradient", at(entry), name=graph.name) for entry in silent] if self._none[i] else []

    @functools.cached_property
    def _zeros(self) -> dict[int, tuple[bool, set[int], set[int]]]:
        return dict(self._walk.zeros())

    def zero(self, position: int, graph: GraphEvidence, relevant: dict[int, Step], of: str) -> list[Reason]:
        """If the gradient with respect to a source is zero: the operations on the way, among `relevant`, that make it so."""
        gradient = self.gradients[position]
        if gradient is None or not gradient.size or is_nonzero(gradient):
            return []
        stops = []
        for number, step in reversed(relevant.items()):
            entry = graph.entries[number]
            silent, zero, underflown = self._zeros.get(number, (False, set(), set()))
            for i in zero.intersection(step.active_ins):
                values = {"operation": name_of(entry), "value": graph.called(entry.inputs[i])}
                if i in underflown:
                    dtype = entry.inputs[i].dtype
                    stops.append(reason("zero: underflow", at(entry), target=of, dtype=dtype, **values))
                    continue
                why, cure = (text.format(**values) for text in FLAT.get(_flat_kind(entry), NOT_FLAT))
                values |= {"values": _line_of_values(entry.inputs[i]), "why": why, "cure": cure}
                stops.append(reason("zero: further" if silent else "zero", at(entry), target=of, **values))
        return stops[:BREAKS] or [reason("zero: sum", target=of, name=graph.name)]

    def not_finite(self, position: int) -> tuple[Reason, Entry] | None:
        """If the gradient with respect to a source has nan or infinite elements: the operation at which they begin."""
        gradient = self.gradients[position]
        if gradient is None or np.isfinite(wide(gradient)).all():
            return None
        if (error := first_not_finite(self._walk)) is None:
            return None
        value, case = "nan" if np.isnan(wide(gradient)).any() else "infinite", "not finite"
        case = case if error.remedy else f"{case}: forward"
        return reason(case, at(error.entry), value=value, said=error.said, cure=error.remedy), error.entry


# What these give everywhere, where there is one class only.
_OF_ONE_CLASS = {"softmax": 1, "log_softmax": 0}


def _flat_kind(entry: Entry) -> str:
    """The name in `FLAT` of what an operation is that passes nothing on."""
    name = name_of(entry)
    constant = name in _OF_ONE_CLASS and (np.asarray(entry.outputs[0]) == _OF_ONE_CLASS[name]).all()
    return "one_class" if constant else name


def _line_of_values(x: Value) -> str:
    text = number_text(x) if np.size(x) == 1 else " ".join(value_text(x).split())
    if len(text) <= WIDTH // 2 or np.iscomplexobj(x):
        return text
    return f"from {number_text(np.min(x))} to {number_text(np.max(x))}"
