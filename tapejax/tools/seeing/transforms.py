"""What a transformation of JAX's ran in a block, as one operation: that of the function which the user handed to it.

JAX runs a transformed function as operations like any others. They are the transformation of a function where it gives the very
operations that were recorded, see the recogniser of each: `gradients`, `mapped`. What is not recognised stays as it was run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TypeAlias

from ...jaxprs.types import Values
from ...places import transformation, without_own
from ...tape import active
from ...tape.recording import Entry, Recording
from ..writing.graph import ValueSet
from . import batched, gradients, iterated, pullbacks, tangents
from .regions import Fold, Region, region_of, runs

Recogniser: TypeAlias = Callable[[Region], list[Entry] | None]

_RECOGNISERS = {
    "gradient": gradients.recognised,
    "jacfwd": gradients.recognised,
    "jacrev": gradients.recognised,
    "jvp": tangents.recognised,
    "vmap": batched.recognised,
}


def folded(recording: Recording, wanted: Values) -> Recording:
    """`Recording.folded`, where what JAX's transformations ran is one entry each, too. `wanted`: values that are asked for."""
    recording = iterated.whole(recording.folded())
    if not any(transformation(place) for entry in recording.entries for place in entry.calls):
        return recording
    shorter = recording.continuation()
    shorter.entries = []
    positions: list[int] = []  # of each entry in what is new
    entries = [entry._replace(calls=without_own(entry.calls)) for entry in recording.entries]
    with active.outside():
        for start, stop, new in _replaced(entries, ValueSet(wanted), 0):
            first = len(shorter.entries)
            shorter.entries += [_plain(entry) for entry in new]
            same = new == entries[start:stop]
            positions += range(first, len(shorter.entries)) if same else [first] * (stop - start)
            for x in () if same else (x for entry in new for x in entry.outputs):
                shorter.bound.pop(id(x), None)  # what it came of is no longer one of the entries
    positions.append(len(shorter.entries))
    shorter.watched = {key: (x, positions[begin]) for key, (x, begin) in recording.watched.items()}
    shorter.marks = [mark._replace(position=positions[mark.position]) for mark in recording.marks]
    return shorter


def fold(entries: Sequence[Entry], used: ValueSet, level: int, first: Recogniser | None = None) -> list[Entry]:
    """`entries`, where each transformation that is in `level` others is one entry; of their values some are `used`."""
    return [entry for *_, found in _replaced(entries, used, level, first) for entry in found]


def _replaced(
    entries: Sequence[Entry], used: ValueSet, level: int, first: Recogniser | None = None
) -> list[tuple[int, int, list[Entry]]]:
    """Ranges of positions, with the entries in their place."""
    ranges: list[tuple[int, int, list[Entry]]] = []
    region, inner, every, last = (
        region_of(entries, used, level),
        functools.partial(fold, first=first),
        [*runs(entries, level)],
        0,
    )
    joined = pullbacks.joined(entries, every, level, used, inner)
    for start, stop, kind in every:
        ranges += [(last, start, list(entries[last:start]))] if start > last else []
        last, of = stop, region((start, stop, kind))
        recognised = _RECOGNISERS.get(kind, lambda *_: None)
        new = joined.get((start, stop, kind)) or (first and first(of)) or recognised(of, inner)
        ranges.append((start, stop, inner(of.entries, of.used, level + 1) if new is None else new))
    return [*ranges, (last, len(entries), list(entries[last:]))] if last < len(entries) else ranges


def _plain(entry: Entry) -> Entry:
    """An entry without JAX's transformations among what ran it."""
    return entry._replace(calls=tuple([place for place in entry.calls if not transformation(place)]))


_: Fold = fold
