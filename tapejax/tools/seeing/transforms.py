"""What a transformation of JAX's ran in a block, as one operation: that of the function which the user handed to it.

JAX runs a transformed function as operations like any others. They are the transformation of a function where it gives the very
operations that were recorded, see the recogniser of each: `gradients`, `mapped`. What is not recognised stays as it was run.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...jaxprs.types import Values
from ...places import transformation, without_own
from ...tape import active
from ...tape.recording import Entry, Recording
from ..writing.graph import ValueSet
from . import batched, gradients, iterated, pullbacks, tangents
from .pullbacks import Run
from .regions import Fold, Region, parts, runs

_RECOGNISERS = {
    "gradient": gradients.recognised,
    "jacfwd": gradients.recognised_jacobian,
    "jacrev": gradients.recognised_jacobian,
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


def fold(entries: Sequence[Entry], used: ValueSet, level: int) -> list[Entry]:
    """`entries`, where each transformation that is in `level` others is one entry; of their values some are `used`."""
    return [entry for *_, found in _replaced(entries, used, level) for entry in found]


def _replaced(entries: Sequence[Entry], used: ValueSet, level: int) -> list[tuple[int, int, list[Entry]]]:
    """Ranges of positions, with the entries in their place."""
    ranges: list[tuple[int, int, list[Entry]]] = []
    needed, last = parts(entries, used), 0
    every = [*runs(entries, level)]

    def region(of: Run, others: Sequence[Run] = ()) -> Region:
        inside = {i for start, stop, _ in (of, *others) for i in range(start, stop)}
        reading = (entry for i, entry in enumerate(needed) if entry is not None and i not in inside)
        outside = ValueSet([*used, *(x for entry in reading for x in entry.inputs)])
        own = list(entries[of[0] : of[1]])
        return Region(own, level, ValueSet(x for entry in own for x in entry.outputs if x in outside), of[2])

    joined = pullbacks.joined(entries, every, level, region, fold)
    for start, stop, kind in every:
        ranges += [(last, start, list(entries[last:start]))] if start > last else []
        last, of = stop, region((start, stop, kind))
        recognised = _RECOGNISERS.get(kind)
        new = joined.get((start, stop, kind)) or (recognised(of, fold) if recognised else None)
        ranges.append((start, stop, fold(of.entries, of.used, level + 1) if new is None else new))
    return [*ranges, (last, len(entries), list(entries[last:]))] if last < len(entries) else ranges


def _plain(entry: Entry) -> Entry:
    """An entry without JAX's transformations among what ran it."""
    return entry._replace(calls=tuple([place for place in entry.calls if not transformation(place)]))


_: Fold = fold
