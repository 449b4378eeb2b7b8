"""A call of a `tf.function`: its operations, in the functions that ran them. They are read from its program."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ...jaxprs.dependence import has_tangent, kind_of
from ...jaxprs.fence import Literal
from ...tape.recording import Entry, Recording
from ...tf.values.staging import Trace
from ..writing.graph import Graph
from .equations import EquationReader
from .jitted import adopted
from .ran_by import ran_by
from .retraced import Retraced
from .spelling import Unspellable


def recording_of(entry: Entry) -> Recording | None:
    """What the Python function of `entry`, a call, did at the recorded inputs, with the recorded outputs.

    None where that is not known, or its program asks Python for something.
    """
    trace: Trace | None = getattr(entry.op, "trace", None)
    recording = None if trace is None else adopted(entry, functools.partial(_run, trace, entry))
    graph = Graph([] if recording is None else recording.entries)
    # constants of the trace are made anew
    lost = linked(entry) - {i for i, x in enumerate(entry.inputs) if graph.uses(x) or not isinstance(x, jax.Array)}
    return None if lost else recording


def _run(trace: Trace, entry: Entry, entries: list[Entry]) -> list[Any]:
    """Runs the program of a call; its operations become `entries`.

    Raises:
      Unspellable: it asks Python for something.
    """
    jaxpr, constants, _ = trace.bodies[-1]
    equations = [eqn for eqn in jaxpr.eqns if eqn.outvars]  # others print
    constvars, outvars = jaxpr.constvars, jaxpr.outvars[: len(entry.outputs)]
    jaxpr = jaxpr.replace(constvars=[], eqns=equations, outvars=outvars, effects=set())
    places = ran_by(jaxpr, f"{trace.code.co_filename}:{trace.code.co_firstlineno}")
    if places is None or any(eqn.effects for eqn in equations):
        raise Unspellable(entry.op.name)
    slots, first = len(entry.inputs) - len(trace.constants) - len(jaxpr.invars), len(entry.inputs) - len(jaxpr.invars)
    state, captured, arguments = entry.inputs[:slots], entry.inputs[slots:first], entry.inputs[first:]
    lifted = dict(zip(trace.constants, captured, strict=True))
    known = dict(zip((*constvars, *jaxpr.invars), (*constants, *arguments), strict=True))
    reader = EquationReader(jaxpr, known, entries, Retraced(trace.bodies), lifted)
    for eqn in equations:
        if eqn.primitive.name == "variable":  # what is read of state
            known[eqn.outvars[0]] = state[eqn.params["slot"]]
        elif eqn.params.get("name") == "constant" and _is_constant(eqn.invars, constvars):
            known[eqn.outvars[0]] = jnp.asarray(*reader.read(eqn.invars))
    return reader.entire(places, ())


def _is_constant(atoms: Sequence[Any], constvars: Sequence[Any]) -> bool:
    return all(isinstance(v, Literal) or v in constvars for v in atoms)


def links(entry: Entry) -> Sequence[frozenset[int]]:
    """For each output the inputs on which it depends."""
    moving = tuple([i for i, x in enumerate(entry.inputs) if isinstance(x, jax.Array) and has_tangent(x)])
    by: Sequence[frozenset[int]] = entry.op.links(entry, tuple(map(kind_of, entry.inputs)), moving).by
    return by


def linked(entry: Entry) -> frozenset[int]:
    """The inputs on which the outputs depend."""
    return frozenset().union(*links(entry))
