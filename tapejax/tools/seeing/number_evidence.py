"""Why a gradient that is connected is zero, or not finite, as far as the numbers of one backward pass tell."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from ...jaxprs.fence import Tracer
from ...jaxprs.types import Value
from ...tape.gradient_tape import GradientTape
from ...tape.recording import Entry
from ...tape.slicing import Relevant
from ...tape.structures import Leaf
from ...tf.values.errors import NonFiniteError
from ...tf.values.shown import is_elsewhere, number_text, value_text
from .graph_evidence import BREAKS, Graph
from .listing import name_of
from .reasons import FLAT, NOT_FLAT, WIDTH, Reason, at, reason
from .steps import Backward, check_numerics, is_nonzero


class GradientNumbers:
    """The gradients of the sum of `ends` with respect to `starts`, computed step by step when they are first asked for."""

    def __init__(self, tape: GradientTape, ends: Sequence[Leaf], starts: Sequence[Leaf], spaces: Sequence[dict]):
        self._count = len(starts)
        values = [leaf.value for leaf in ends], [leaf.value for leaf in starts]
        self._walk = Backward(tape, *values, None, spaces)
        arrays = [leaf.array for leaf in (*ends, *starts)]
        self._ends = [leaf.array for leaf in ends]
        self._known = not any(isinstance(x, Tracer) for x in arrays)

    @functools.cached_property
    def gradients(self) -> Sequence[np.ndarray | None]:
        """NumPy arrays, or None each where nothing can be computed: under a trace, of values that were deleted since or are on
        other processes, by a
        rule of the user's that raises."""
        try:
            arrays = self._walk.gradients if self._known else []
        except Exception:
            arrays = []
        return [None if is_elsewhere(x) else np.asarray(x) for x in arrays] or [None] * self._count

    @functools.cached_property
    def _zeros(self) -> dict[int, tuple[bool, set[int]]]:
        return {number: (silent, zero) for number, silent, zero in self._walk.zeros()}

    def zero(self, position: int, graph: Graph, relevant: Sequence[Relevant], of: str) -> list[Reason]:
        """If the gradient with respect to a source is zero: the operations on the way, among `relevant`, that make it so."""
        gradient = self.gradients[position]
        if gradient is None or not gradient.size or is_nonzero(gradient):
            return []
        stops = []
        for number, active_ins, *_ in reversed(relevant):
            entry = graph.entries[number]
            silent, zero = self._zeros.get(number, (False, set()))
            for i in zero.intersection(active_ins):
                values = {"operation": name_of(entry), "value": graph.called(entry.inputs[i])}
                why, cure = (text.format(**values) for text in FLAT.get(_flat_kind(entry), NOT_FLAT))
                values |= {"values": _line_of_values(entry.inputs[i]), "why": why, "cure": cure}
                stops.append(reason("zero: further" if silent else "zero", at(entry), target=of, **values))
        return stops[:BREAKS] or [reason("zero: sum", target=of, name=graph.name)]

    def not_finite(self, position: int) -> tuple[Reason, Entry] | None:
        """If the gradient with respect to a source has nan or infinite elements: the operation at which they begin."""
        gradient = self.gradients[position]
        if gradient is None or np.isfinite(_wide(gradient)).all():
            return None
        try:
            check_numerics(self._walk, self._ends)
        except NonFiniteError as error:
            said, in_derivative, cure = str(error).partition(". Its derivative")
            values = {"value": "nan" if np.isnan(_wide(gradient)).any() else "infinite", "said": said, "cure": cure}
            return reason(
                "not finite" if in_derivative else "not finite: forward", at(error.entry), **values
            ), error.entry
        return None


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)  # NumPy's functions do not take every dtype


def _flat_kind(entry: Entry) -> str:
    """The name in `FLAT` of what an operation is that passes nothing on."""
    name = name_of(entry)
    return "one_class" if name == "softmax" and (np.asarray(entry.outputs[0]) == 1).all() else name


def _line_of_values(x: Value) -> str:
    text = number_text(x) if np.size(x) == 1 else " ".join(value_text(x).split())
    if len(text) <= WIDTH // 2 or np.iscomplexobj(x):
        return text
    return f"from {number_text(np.min(x))} to {number_text(np.max(x))}"
