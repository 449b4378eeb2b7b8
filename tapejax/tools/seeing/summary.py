"""The size of each source and of its gradient: what vanishes, explodes, is zero or is no number, at one glance."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jax.experimental.multihost_utils import process_allgather

from ...tape.gradient_tape import GradientTape
from ...tape.recording import type_of
from ...tf.values.shown import ORANGE, RED, bold, faint, is_elsewhere, page, table_html
from ...tf.values.structures import leaf_of
from ...tf.values.types import Array, Nest
from .listing import shortened
from .steps import Backward, wide
from .tables import BAR, Rows, bar_html, bar_text, cut, in_columns, terminal_width

NUMBERS = 64  # the characters of a row behind its name
DECADES = 8  # a gradient so many powers of ten below it has none


class Numbers(NamedTuple):
    """What an array holds: its Euclidean norm, its mean, the share of zeros, and how many nan and infinities it has.

    Norm and mean are of the finite elements; of complex numbers the mean is that of the absolute values.
    """

    norm: float
    mean: float
    zeros: float
    nan: int
    infinite: int

    @classmethod
    def of(cls, array: Array) -> Numbers:
        x = wide(process_allgather(array, tiled=True) if is_elsewhere(array) else array)
        finite = x[np.isfinite(x)]
        sizes = np.abs(finite)
        mean = sizes if x.dtype.kind == "c" else finite
        return cls(
            float(np.sqrt(np.sum(sizes**2))),
            float(mean.mean()) if mean.size else 0.0,
            float(np.mean(x == 0)) if x.size else 0.0,
            int(np.isnan(x).sum()),
            int(np.isinf(x).sum()),
        )

    def cells(self) -> tuple[str, str, str, str]:
        odd = [f"{count} {name}" for count, name in ((self.nan, "nan"), (self.infinite, "inf")) if count]
        return f"{self.norm:.3g}", f"{self.mean:.3g}", f"{self.zeros:.0%}" if self.zeros else "", ", ".join(odd)


class SummaryRow(NamedTuple):
    """One source: its name and type, the numbers of its value and of its gradient, which is None where none came back."""

    name: str
    type: str
    value: Numbers
    gradient: Numbers | None


class Summary(Rows[SummaryRow]):
    """A row for each source, in order. Made by `GradientTape.summary`; printed, or shown by a notebook, it is a table with bars.

    A bar shows the norm of a gradient on a logarithmic scale. So bars that become shorter from layer to layer are gradients
    that vanish, and the few long ones beside many short ones gradients that explode.
    """

    def __init__(self, of: str, rows: Sequence[SummaryRow]):
        super().__init__(rows)
        self.of = of

    def _share(self, row: SummaryRow) -> float:
        """The length of a row's bar, that of the longest being 1."""
        largest = max((x.gradient.norm for x in self.rows if x.gradient), default=0.0)
        if row.gradient is None or not row.gradient.norm:
            return 0.0
        return max(0.0, 1 + math.log10(row.gradient.norm / largest) / DECADES)

    def _cells(self, row: SummaryRow) -> list[str]:
        gradient = row.gradient.cells() if row.gradient else ("None", "", "", "")
        return [shortened(row.name), row.type, *row.value.cells(), *gradient]

    def __repr__(self) -> str:
        named = max(12, terminal_width() - NUMBERS)
        cells = [["source", "type", *_HEAD, *_HEAD], *map(self._cells, self.rows)]
        cells = [[cut(name, named), *rest] for name, *rest in cells]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        above = " " * (sum(widths[:2]) + 4) + "value".ljust(sum(widths[2:6]) + 8) + f"gradient of {self.of}"
        room = max(0, terminal_width() - sum(widths) - 2 * len(widths))
        bars = ["", *(bar_text(self._share(row) * min(1.0, room / BAR)).rstrip() for row in self.rows)]
        return "\n".join([above, *in_columns([[*x, bar] for x, bar in zip(cells, bars, strict=True)], "<<>>>>>>>><")])

    def _repr_html_(self) -> str:
        def bar(row: SummaryRow) -> str:
            odd = row.gradient is None or row.gradient.nan or row.gradient.infinite
            return bar_html(self._share(row), f"{RED if odd else ORANGE};opacity:.7")

        columns: list[Callable[[Any], str]] = [html.escape, faint, *[str] * 7, lambda odd: bold(odd, RED), bar]
        titles = ("source", "", f"value: {_HEAD[0]}", *_HEAD[1:], f"gradient: {_HEAD[0]}", *_HEAD[1:], "")
        table = table_html([(*self._cells(row), row) for row in self.rows], columns, titles)
        return page(f"<div>{bold(f'Sources, and the gradient of {self.of}')}</div>{table}")


_HEAD = ("norm", "mean", "zeros", "")


def summary(tape: GradientTape, target: Nest, sources: Any) -> Summary:
    """The summary of `sources`, or of the trainable variables of a model, and of the target's gradient."""
    if leaf_of(sources) is None and hasattr(sources, "trainable_variables"):
        sources = list(sources.trainable_variables)
    walk = Backward(tape, target, sources)
    rows = []
    for leaf, gradient in zip(walk.structure.leaves, walk.found(), strict=True):
        numbers = None if gradient is None else Numbers.of(gradient)
        rows.append(SummaryRow(walk.names.of(leaf.array), type_of(leaf.array), Numbers.of(leaf.array), numbers))
    return Summary(walk.of, rows)
