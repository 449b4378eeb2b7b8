"""A call of a `tf.function`: its operations, in the functions that ran them. They are read from its program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ...jaxprs import contents
from ...jaxprs.dependence import has_tangent, kind_of
from ...jaxprs.fence import Literal, Tracer, Var
from ...jaxprs.types import Equation
from ...tape import active
from ...tape.recording import Entry, Recording
from ...tf.values import staging
from ...tf.values.staging import Trace
from ..writing.graph import Graph
from .equations import EquationReader
from .jitted import adopted
from .ran_by import ran_by, source_of
from .spelling import Unspellable


def recording_of(entry: Entry) -> Recording | None:
    """What the Python function of `entry`, a call, did at the recorded inputs, with the recorded outputs.

    None where that is not known, or its program asks Python for something.
    """
    trace: Trace | None = entry.op.trace  # type: ignore[attr-defined]
    if trace is None or any(isinstance(x, Tracer) for x in entry.inputs):
        return None
    inside = Recording()
    with active.outside():
        try:
            recording = adopted(inside, _run(trace, entry, inside.entries), entry)
        except Exception:  # an input was donated, or what is called cannot run here
            return None
    graph = Graph([] if recording is None else recording.entries)
    # constants of the trace are made anew
    lost = linked(entry) - {i for i, x in enumerate(entry.inputs) if graph.uses(x) or not isinstance(x, jax.Array)}
    return None if lost else recording


def _run(trace: Trace, entry: Entry, entries: list[Entry]) -> list[Any]:
    """Runs the program of a call; its operations become `entries`.

    Raises:
      Unspellable: it asks Python for something, or reads state that it has changed.
    """
    jaxpr, constants = contents.open_jaxpr(trace.program), contents.consts_of(trace.program)
    equations = [eqn for eqn in jaxpr.eqns if eqn.outvars]  # others print
    constvars, outvars = jaxpr.constvars, jaxpr.outvars[: len(entry.outputs)]
    jaxpr = jaxpr.replace(constvars=[], eqns=equations, outvars=outvars, effects=set())
    places = ran_by(jaxpr, f"{trace.code.co_filename}:{trace.code.co_firstlineno}")
    if places is None or any(map(_is_unknown, equations)):
        raise Unspellable(entry.op.name)
    slots, first = len(entry.inputs) - len(trace.constants) - len(jaxpr.invars), len(entry.inputs) - len(jaxpr.invars)
    state, captured, arguments = entry.inputs[:slots], entry.inputs[slots:first], entry.inputs[first:]
    lifted = dict(zip(trace.constants, captured, strict=True))
    known = dict(zip((*constvars, *jaxpr.invars), (*constants, *arguments), strict=True))
    steps = {v: step for step in trace.ran for v in step.outputs if isinstance(v, Var)}
    reader = EquationReader(jaxpr, known, entries, lifted, steps)
    for eqn in equations:
        if trace.is_state(eqn):
            known[eqn.outvars[0]] = state[eqn.params["slot"]]
        elif eqn.params.get("name") == "constant" and _is_constant(eqn.invars, constvars):
            known[eqn.outvars[0]] = jnp.asarray(*reader.read(eqn.invars))
    return reader.entire(places, ())


def _is_constant(atoms: Sequence[Any], constvars: Sequence[Any]) -> bool:
    return all(isinstance(v, Literal) or v in constvars for v in atoms)


def _is_unknown(eqn: Equation) -> bool:
    """Whether an equation may do something else each time, or is what is read of state that was changed."""
    return bool(eqn.effects) or source_of(eqn.params.get("call_jaxpr")).startswith(staging.__file__)


def links(entry: Entry) -> Sequence[frozenset[int]]:
    """For each output the inputs on which it depends."""
    moving = tuple([i for i, x in enumerate(entry.inputs) if isinstance(x, jax.Array) and has_tangent(x)])
    by: Sequence[frozenset[int]] = entry.op.links(entry, tuple(map(kind_of, entry.inputs)), moving).by
    return by


def linked(entry: Entry) -> frozenset[int]:
    """The inputs on which the outputs depend."""
    return frozenset().union(*links(entry))
