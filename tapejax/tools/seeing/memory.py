"""What a tape keeps in memory for its backward pass, by line of the user's code."""

from __future__ import annotations

import functools
import gc
import html
import sys
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax

from ...jaxprs.fence import Tracer
from ...jaxprs.types import Value
from ...places import SourceLine, serves
from ...tape.pullback import PullbackOp
from ...tape.query import Query, Source
from ...tape.recording import Entry, Recording
from ...tf.values.shown import bold, faint, page, table_html
from ...tf.values.tensor import Tensor
from ..writing.graph import Graph
from .callers import calls_of
from .tables import Rows, bar_html, bar_text, cut, in_columns

UNITS = ("B", "KB", "MB", "GB", "TB")


class MemoryRow(NamedTuple):
    """What one line keeps: how many values, their bytes, those of them that the gradient reads, and what recomputing would save.

    `saved` counts the values that are made and used in the line's function only: `recompute_grad` around that function computes
    them again instead. It is 0 for lines of a module, which are in no function.
    """

    line: SourceLine | None
    values: int
    bytes: int
    needed: int
    saved: int


class Memory(Rows[MemoryRow]):
    """What a tape keeps, in rows, largest first. Made by `GradientTape.memory`; printed, or shown by a notebook, it is a table.

    ``bytes`` is the sum of the rows: what is freed with the tape, or with the last of nested tapes that keep the same. Arrays
    that a variable of yours holds, too, do not count, nor do the inputs of the block. ``needed`` is the part that the gradient
    reads, ``saved`` what `recompute_grad` around the functions would free.
    """

    def __init__(self, rows: Sequence[MemoryRow]):
        super().__init__(sorted(rows, key=lambda row: -row.bytes))
        self.bytes, self.needed, self.saved = map(sum, zip((0, 0, 0), *(row[2:] for row in rows), strict=True))

    def _heading(self) -> str:
        parts = f"{size_text(self.needed)} for this gradient, recompute_grad could save {size_text(self.saved)}"
        return f"The tape keeps {size_text(self.bytes)}: {parts}"

    def _cells(self) -> Iterator[tuple[Any, ...]]:
        for row in self.rows:
            sizes = map(size_text, (row.bytes, row.needed, row.saved))
            line = (str(row.line), cut(row.line.text, 80)) if row.line else ("?", "")
            yield *sizes, str(row.values), row.bytes / (self.rows[0].bytes or 1), *line

    def __repr__(self) -> str:
        cells = [(*sizes, bar_text(share), line, text) for *sizes, share, line, text in self._cells()]
        return "\n".join([self._heading(), *in_columns([_TITLES, *cells], ">>>><<~")])

    def _repr_html_(self) -> str:
        bar = functools.partial(bar_html, style="currentColor;opacity:.4")
        columns: list[Callable[[Any], str]] = [str, str, str, str, bar, faint, html.escape]
        return page(f"<div>{bold(self._heading())}</div>{table_html(self._cells(), columns, _TITLES)}")


_TITLES = ("bytes", "needed", "saved", "values", "", "line", "")


def size_text(count: int) -> str:
    """A number of bytes: ``1.5 KB``.

    >>> size_text(12), size_text(1536), size_text(3 << 20)
    ('12 B', '1.5 KB', '3.0 MB')
    """
    size, unit = float(count), 0
    while size >= 1024 and unit + 1 < len(UNITS):
        size, unit = size / 1024, unit + 1
    return f"{size:.1f} {UNITS[unit]}" if unit else f"{count} B"


def memory(recording: Recording, targets: Sequence[Value], sources: Sequence[Source]) -> Memory:
    """What `recording` keeps alone, and what of it the gradient of the targets reads."""
    kept = _kept_by_tapes(recording.entries)  # first: a query refers to them, too
    program, values = Query(recording, targets, sources).program()
    read = {id(values[slot]) for step in program.steps for slot in step.ins if slot < len(values)}
    read |= {id(x) for entry in recording.entries if entry.residuals for x in entry.residuals.arrays}
    calls, graph = _calls(recording.entries), Graph(recording.entries)
    by_line: dict[object, tuple[SourceLine | None, list[int]]] = {}
    for entry, call in zip(recording.entries, calls, strict=True):
        line, numbers = by_line.setdefault(entry.line and entry.line[:2], (entry.line, [0, 0, 0, 0]))
        for x in {id(x): x for x in _made_by(entry)}.values():
            if id(x) not in kept:
                continue
            inside = call is not None and all(calls[position] == call for position in graph.uses(x))
            for i, amount in enumerate((1, x.nbytes, x.nbytes * (id(x) in read), x.nbytes * inside)):
                numbers[i] += amount
    return Memory([MemoryRow(line, *numbers) for line, numbers in by_line.values() if numbers[0]])


def _made_by(entry: Entry) -> list[Value]:
    return [*entry.outputs, *(entry.residuals.arrays if entry.residuals else ())]


def _calls(entries: Sequence[Entry]) -> list[object]:
    """For each entry the call of a function of the user's that ran it; None at the level of a module."""
    users = ([each for each in calls if not serves(each.code.co_filename)] for calls in calls_of(entries))
    return [calls[-1].call if calls and calls[-1].code.co_name != "<module>" else None for calls in users]


def _kept_by_tapes(entries: Sequence[Entry]) -> set[int]:
    """The ids of the arrays that were made by `entries` and to which nothing but tapes refers."""
    recordings = [x for x in gc.get_objects() if type(x) is Recording]
    holders = [x for each in recordings for x in (each.entries, each.watched, each.derivatives)]
    ops = {id(entry.op): entry.op for each in recordings for entry in each.entries}.values()
    references = Counter(_held_by([*holders, *(op.pull for op in ops if isinstance(op, PullbackOp))]))
    arrays = (x for entry in entries for x in _made_by(entry) if isinstance(x, jax.Array))
    made = {id(x): x for x in arrays if not isinstance(x, Tracer)}
    here = _references({0: object()})[0]  # from this loop
    return {x for x, count in _references(made).items() if count - here <= references[x]}


def _held_by(holders: Sequence[object]) -> list[int]:
    """The id of an array for each reference to it in `holders`, also in what functions close over, as `recompute_grad`'s do."""
    held = _referred_to(holders)
    here = _references({0: object()})[0]
    counts = Counter(id(x) for x in held if isinstance(x, Tensor))
    tensors = {id(x): x for x in held if isinstance(x, Tensor)}
    # `held` refers, too
    alone = [key for key, count in _references(tensors).items() if count - here <= 2 * counts[key]]
    return [id(x) for x in held if isinstance(x, jax.Array)] + [id(tensors[key]._array) for key in alone]


def _referred_to(holders: Sequence[object]) -> list[Any]:
    """The arrays and tensors in `holders`, one for each reference."""
    arrays: list[Any] = []
    seen: set[int] = set()
    waiting = list(holders)
    while waiting:
        x = waiting.pop()
        if isinstance(x, (jax.Array, Tensor)):
            arrays.append(x)
        elif id(x) not in seen and isinstance(x, _CONTAINERS):
            seen.add(id(x))
            waiting += gc.get_referents(x.__closure__ if isinstance(x, types.FunctionType) else x)
    return arrays


_CONTAINERS = (types.FunctionType, types.CellType, functools.partial, tuple, list, dict, Query)


def _references(held: Mapping[int, object]) -> dict[int, int]:
    return {key: sys.getrefcount(x) for key, x in held.items()}
