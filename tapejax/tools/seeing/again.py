"""A call of a `tf.function`, run once more as Python: what its operations are, in the functions that ran them."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Sequence
from typing import Any

import jax

from ...jaxprs.dependence import has_tangent, kind_of
from ...jaxprs.fence import Tracer, current_trace
from ...places import call_stack
from ...tape import active
from ...tape.recording import Entry, Recording
from ...tf.values.types import Array
from ..writing.congruence import close
from ..writing.graph import Graph, ValueMap
from . import transforms

# Marks of what Python does with values, which it might do in another way with others.
_LOOKS = ("python", "static", "closure")


def recording_of(entry: Entry) -> Recording | None:
    """What the Python function of `entry`, a call, does at the recorded inputs, with the recorded outputs.

    None where it is not sure that it does the same at others: Python looks at values, or reads a state that it has changed.
    """
    op: Any = entry.op
    run = op.again()
    if run is None or any(isinstance(x, Tracer) for x in entry.inputs):
        return None
    recording = Recording()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            results, around = active.alone([recording], _run, run, entry.inputs)
    except Exception:  # it is the user's Python
        return None
    if results is None or any(mark.kind in _LOOKS for mark in recording.marks):
        return None
    recording = transforms.folded(recording, results)
    for i, each in enumerate(recording.entries):
        places = each.calls or ((each.where,) if each.where else ())
        recording.entries[i] = each._replace(calls=places[around:], where=None)
    graph = Graph(recording.entries)
    changed = [mark.about[0]() for mark in recording.marks if mark.kind == "state" and mark.about[0] is not None]
    lost = linked(entry) - {i for i, x in enumerate(entry.inputs) if graph.uses(x)}
    return None if lost or any(map(graph.uses, changed)) else adopted(recording, results, entry)


def adopted(recording: Recording, results: Sequence[Array], entry: Entry) -> Recording | None:
    """`recording`, in which `results` are those of `entry`; None where they are not, or a call is not known."""
    graph = Graph(recording.entries)
    same = ValueMap(zip(results, entry.outputs, strict=True))
    if len(same) < len(results) or not all(map(graph.made_by, results)) or not all(map(close, results, entry.outputs)):
        return None
    for i, each in enumerate(recording.entries):
        ins, outs = (tuple([same.get(x, x) for x in side]) for side in (each.inputs, each.outputs))
        recording.entries[i] = each._replace(inputs=ins, outputs=outs)
    return recording if all(each.calls for each in recording.entries) else None


def _run(run: Callable[..., Any], inputs: Any) -> tuple[list[Array] | None, int]:
    """The results, and in how many functions around it the call is."""
    where, around = call_stack(1, current_trace()._recordings.block)
    return run(inputs), len(around) or int(where is not None)


def links(entry: Entry) -> Sequence[frozenset[int]]:
    """For each output the inputs on which it depends."""
    moving = tuple([i for i, x in enumerate(entry.inputs) if isinstance(x, jax.Array) and has_tangent(x)])
    by: Sequence[frozenset[int]] = entry.op.links(entry, tuple(map(kind_of, entry.inputs)), moving).by
    return by


def linked(entry: Entry) -> frozenset[int]:
    """The inputs on which the outputs depend."""
    return frozenset().union(*links(entry))
