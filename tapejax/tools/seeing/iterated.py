"""Arrays that Python iterates over: one operation that gives the rows, however JAX takes them out.

Of keys of ``jax.random`` JAX unstacks the numbers, and makes each row a key again, which is no operation. A long array it cuts
into parts, and unstacks one after the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import jax

from ...jaxprs.dependence import is_key
from ...jaxprs.fence import Tracer
from ...jaxprs.types import Value
from ...tape import active
from ...tape.operation import Op
from ...tape.recording import Entry, Recording
from ..writing.graph import ValueMap


def whole(recording: Recording) -> Recording:
    """`recording`, with the rows of each array as the results of one entry. No entry changes its position."""
    if not any(entry.op.name == "unstack" for entry in recording.entries):
        return recording
    linked = recording.continuation()
    with active.outside():
        keys = (x for entry in recording.entries for x in (*entry.inputs, *entry.outputs) if is_key(x))
        key_of = ValueMap((jax.random.key_data(x), x) for x in keys)
        linked.entries = [_of_keys(entry, key_of) for entry in recording.entries]
    for x, positions in _cut(linked.entries):
        parts = [linked.entries[i].outputs for i in positions]
        starts = [_start(linked.entries[i - 1]) for i in positions]
        if [*starts, len(x)] == [0, *itertools.accumulate(map(len, parts))]:  # each row once, in order
            first, *others = positions
            linked.entries[first] = _rows(linked.entries[first], x, [row for part in parts for row in part])
            for i in others:
                linked.entries[i] = linked.entries[i - 1]  # in its place the cut, which nobody reads now
    return linked


def _of_keys(entry: Entry, key_of: ValueMap[Value]) -> Entry:
    """What takes rows of the numbers of keys, as taking keys. `key_of`: by its numbers each key."""
    keys = key_of.get(entry.inputs[0]) if entry.op.name == "unstack" else None
    if keys is None or not any(row in key_of for row in entry.outputs):  # the numbers themselves are read
        return entry
    return _rows(entry, keys, [key_of.get(row, row) for row in entry.outputs])  # not each need have become a key


def _rows(entry: Entry, x: Value, rows: list[Value]) -> Entry:
    return entry._replace(op=Op("unstack", list), inputs=(x,), outputs=tuple(rows), residuals=None)


def _start(cut: Entry) -> int | None:
    """The first row of a part."""
    return None if isinstance(cut.inputs[1], Tracer) else int(cut.inputs[1])


def _cut(entries: list[Entry]) -> Iterator[tuple[Value, list[int]]]:
    """The arrays that were cut into parts at one place, each with the positions of what unstacked these, right after the cut."""
    cuts = ValueMap[dict[object, list[int]]]()
    for i, (cut, entry) in enumerate(zip(entries, entries[1:], strict=False), 1):
        if (cut.op.name, entry.op.name) == ("dynamic_slice", "unstack") and entry.inputs[0] is cut.outputs[0]:
            cuts.setdefault(cut.inputs[0], {}).setdefault(entry.calls or entry.where, []).append(i)
    for x, places in cuts.items():
        for positions in places.values():
            yield x, positions
