"""A call of a function of the user's under `jax.jit`: its operations, in the functions that ran them.

They are read from JAX's program, so that the user's Python does not run again. What `jax.grad` became there is a derivative
again, if that gives the very operations of the program.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

import jax.numpy as jnp

from ...jaxprs import contents
from ...jaxprs.fence import Tracer
from ...jaxprs.types import JaxProgram, Value, Values
from ...tape import active
from ...tape.operation import Op
from ...tape.recording import Entry, Recording
from ..writing.congruence import close
from ..writing.graph import Graph, ValueMap, ValueSet
from . import transforms
from .equations import run
from .inside import program_of
from .ran_by import is_users, ran_by, source_of
from .regions import parts
from .retraced import Retraced
from .spelling import Unspellable


def recording_of(entry: Entry, recording: Recording) -> Recording | None:
    """What the function of `entry`, a call, does at the recorded inputs, with the recorded outputs.

    None where the call is of no function of the user's, or its program asks Python for something.
    """

    def ran(entries: list[Entry]) -> list[Value]:
        called = _called(entry, recording)
        assert called is not None
        places = ran_by(*called)
        if called[0].constvars or not places or not is_users(places):
            raise Unspellable(entry.op.name)
        return run(called[0], places, entry.inputs, (), entries, Retraced())

    return adopted(entry, ran)


def adopted(entry: Entry, ran: Callable[[list[Entry]], Sequence[Value]]) -> Recording | None:
    """What `ran` notes as the entries of a recording, folded, where the results that it gives are those of `entry`; None where
    they are not, or a call is not known."""
    recording = Recording()
    if any(isinstance(x, Tracer) for x in entry.inputs):
        return None
    with active.outside(), contextlib.suppress(Exception):  # an input was donated, or what is called cannot run here
        results = _made(ran(recording.entries), recording.entries)
        recording = transforms.folded(recording, results)
        every = zip(parts(recording.entries, results), recording.entries, strict=True)
        recording.entries = [part or each for part, each in every if part or each.outputs and each.calls]
        graph = Graph(recording.entries)
        same = ValueMap(zip(results, entry.outputs, strict=True))
        if len(same) == len(results) and all(map(graph.made_by, results)) and all(map(close, results, entry.outputs)):
            for i, each in enumerate(recording.entries):
                ins, outs = (tuple([same.get(x, x) for x in side]) for side in (each.inputs, each.outputs))
                recording.entries[i] = each._replace(inputs=ins, outputs=outs)
            return recording if all(each.calls for each in recording.entries) else None
    return None


def _called(entry: Entry, recording: Recording) -> tuple[JaxProgram, str] | None:
    """The program of a function that an entry calls, under `jax.jit` or `jax.checkpoint`, and where it is defined."""
    if is_checkpoint(entry.op):
        eqn = contents.only_call(program_of(entry, recording))
        if eqn is None or eqn.params["policy"] is not None:
            return None
        return contents.open_jaxpr(eqn.params["jaxpr"]), source_of(eqn.params["jaxpr"])
    primitive, params = recording.bound.get(id(entry.outputs[0]), (None, {})) if entry.outputs else (None, {})
    if getattr(primitive, "name", None) not in contents.JIT:
        return None
    source = source_of(params["jaxpr"])
    return _body(contents.open_jaxpr(program_of(entry, recording)), source), source


def is_checkpoint(op: Op) -> bool:
    """Whether an operation is a call under `jax.checkpoint`."""
    return op.name in contents.CHECKPOINT


def _body(jaxpr: JaxProgram, source: str) -> JaxProgram:
    """What the function of a call does, which is defined at `source`; `jaxpr` is the call, or that itself, where the function
    closed over arrays."""
    eqn = contents.only_call(jaxpr)
    jaxpr = contents.open_jaxpr(eqn.params["jaxpr"]) if eqn and eqn.primitive.name in contents.JIT else jaxpr
    eqn = contents.only_call(jaxpr)
    if eqn is None or eqn.primitive.name not in contents.CHECKPOINT or eqn.params["policy"] is not None:
        return jaxpr
    inner = contents.open_jaxpr(eqn.params["jaxpr"])
    return inner if source_of(inner) == source else jaxpr  # of one function, under both


def _made(outputs: Values, entries: list[Entry]) -> list[Value]:
    """The results of a call, with copies of those that no operation made, or that are given back twice."""
    made, copies = ValueSet(x for entry in entries for x in entry.outputs), list[Value]()
    for x in outputs:
        if x in made and x not in ValueSet(copies):
            copies.append(x)
        else:
            copies.append(jnp.array(x))  # as it is, even if it is weakly typed
            code = entries[-1].calls[0][0]
            entries.append(Entry(Op("copy", jnp.array), (x,), (copies[-1],), None, None, ((code, -1),)))
    return copies
