"""A call of a function of the user's under `jax.jit`: its operations, in the functions that ran them.

They are read from JAX's program, so that the user's Python does not run again. What `jax.grad` became there is a derivative
again, if that gives the very operations of the program.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from types import CodeType
from typing import Any

import jax
import jax.numpy as jnp

from ...jaxprs import contents
from ...jaxprs.evaluate import evaluate
from ...jaxprs.fence import Literal, Tracer, transformations
from ...jaxprs.lifting import run_equation
from ...jaxprs.types import Equation, JaxProgram, Value, Values
from ...places import Place, is_called, serves, transformation, without_own
from ...tape import active
from ...tape.operation import Op
from ...tape.recording import Entry, Recording
from ..writing.graph import ValueSet
from . import transforms
from .again import adopted
from .inside import CASTS, OPERATIONS, frames_of, program_of
from .regions import restricted


def recording_of(entry: Entry, recording: Recording) -> Recording | None:
    """What the function of `entry`, a call, does at the recorded inputs, with the recorded outputs.

    None where the call is of no function of the user's, or its program asks Python for something.
    """
    if any(isinstance(x, Tracer) for x in entry.inputs):
        return None
    primitive, params = recording.bound.get(id(entry.outputs[0]), (None, {})) if entry.outputs else (None, {})
    if getattr(primitive, "name", None) not in contents.JIT:
        return None
    inside = Recording()
    with active.outside():
        try:
            program = _body(contents.open_jaxpr(program_of(entry, recording)))
            places = _ran_by(program, _source_of(params["jaxpr"]))
            outputs = None if places is None else _run(program, places, entry.inputs, (), inside.entries)
            outputs = outputs and _made(outputs, inside.entries)
        except Exception:  # an input was donated, or what is called cannot run here
            return None
    if not outputs:
        return None
    folded = transforms.folded(inside, outputs)
    folded.entries = restricted(folded.entries, outputs)
    return adopted(folded, outputs, entry)


def _body(jaxpr: JaxProgram) -> JaxProgram:
    """What the function of a call does; `jaxpr` is the call, or that itself, where the function closed over arrays."""
    eqn: Any = jaxpr.eqns[0] if len(jaxpr.eqns) == 1 else None
    alone = eqn is not None and (eqn.invars, eqn.outvars) == (jaxpr.invars, jaxpr.outvars)
    return contents.open_jaxpr(eqn.params["jaxpr"]) if alone and eqn.primitive.name in contents.JIT else jaxpr


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


# ---- who ran an equation --------------------------------------------------------------------------------------------


def _source_of(program: JaxProgram | None) -> str:
    """Where the function is defined that a program is of, as its file and line; empty if that is not known."""
    info: Any = getattr(contents.open_jaxpr(program), "debug_info", None) if program is not None else None
    return str(getattr(info, "func_src_info", None) or "").rpartition(" at ")[2]


def _ran_by(jaxpr: JaxProgram, source: str) -> list[tuple[Place, ...]] | None:
    """For each equation of a function that is defined at `source` the functions that ran it, from that inwards.

    None where it runs no code of the user's, too much of it, or what may answer differently each time.
    """
    if jaxpr.effects or jaxpr.constvars or len(jaxpr.eqns) > OPERATIONS or contents.contains(jaxpr, "pure_callback"):
        return None
    inside = [_places(eqn, source) for eqn in jaxpr.eqns]
    users = any(not serves(code.co_filename) for places in inside for code, _ in places)
    return inside if users and all(inside) else None


def _places(eqn: Equation, source: str) -> tuple[Place, ...]:
    """Those of the functions that ran an equation which count, see `places.call_stack`. What goes back was run by `jax.grad`."""
    frames = itertools.dropwhile(lambda frame: _source(frame[0]) != source, reversed(frames_of(eqn)))
    places = without_own([place for place in frames if is_called(place[0])])
    back = _back(places, transformations(eqn))
    return places if back is None else places[: back + 1]


def _back(places: Sequence[Place], names: Sequence[str]) -> int | None:
    """Which of the functions is the transformation that goes back in an equation. `names`: the steps that JAX says it is of."""
    steps = iter(names)
    for i, kind in enumerate(map(transformation, places)):
        step = next(steps, "") if kind else ""
        if step == "vmap" and kind in ("jacfwd", "jacrev"):
            step = next(steps, "")
        if step == "transpose":
            return i
    return None


def _source(code: CodeType) -> str:
    return f"{code.co_filename}:{code.co_firstlineno}"


def _name(equations: Sequence[Equation]) -> str:
    """The name of the one operation, or of the function of JAX's that several came of."""
    kinds = [eqn.primitive.name for eqn in equations]
    main = [kind for kind in kinds if kind not in CASTS] or kinds[-1:]
    if len(main) == 1:
        return str(equations[kinds.index(main[0])].params.get("name", main[0]))
    inner = itertools.takewhile(lambda frame: not is_called(frame[0]), frames_of(equations[0]))
    names = [code.co_name for code, _ in inner]
    public = (name.removeprefix("_operator_") for name in reversed(names))
    return next((name for name in public if hasattr(jnp, name) or hasattr(jax.nn, name)), "function")


# ---- what it did ----------------------------------------------------------------------------------------------------


def _run(
    jaxpr: JaxProgram,
    ran_by: Sequence[tuple[Place, ...]],
    inputs: Values,
    around: tuple[Place, ...],
    entries: list[Entry],
) -> list[Value]:
    """The results of a function, whose operations become `entries`. `ran_by`: what ran each equation; `around`: what ran it."""
    known: dict[Any, Value] = dict(zip(jaxpr.invars, inputs, strict=True))

    def read(atoms: Sequence[Any]) -> list[Value]:
        return [v.val if isinstance(v, Literal) else known[v] for v in atoms]

    # those that came of one call of a function of JAX's share their traceback
    pairs = zip(jaxpr.eqns, ran_by, strict=True)
    groups = [[*group] for _, group in itertools.groupby(pairs, key=lambda pair: id(pair[0].source_info.traceback))]
    last = {v: i for i, group in enumerate(groups) for eqn, _ in group for v in _variables(eqn.invars)}
    last |= dict.fromkeys(_variables(jaxpr.outvars), len(groups))
    for i, group in enumerate(groups):
        (first, inner), equations = group[0], [eqn for eqn, _ in group]
        places = around + inner
        called = first.params.get("jaxpr") if len(group) == 1 and first.primitive.name in contents.JIT else None
        own = None if called is None else _ran_by(body := contents.open_jaxpr(called), _source_of(called))
        if own is not None:
            results = _run(body, own, read(first.invars), places, entries)
            known.update(zip(first.outvars, results, strict=True))
            continue
        made, ins = [v for eqn in equations for v in eqn.outvars], _read_by(equations)
        # what nobody reads may be what a derivative is of
        inside = any(map(transformation, places))
        outs = [v for v in made if last.get(v, 0) > i or inside or v not in last and v.aval.shape == ()]
        op = Op(_name(equations), _as_function(jaxpr.replace(invars=ins, eqns=equations, outvars=outs)))
        values = read(ins)
        results = active.distinct(op.fn(*values), values)
        known.update(zip(outs, results, strict=True))
        where = next((place for place in places[::-1] if not serves(place[0].co_filename)), None)
        entries.append(Entry(op, tuple(values), tuple(results), where, None, places))
    return read(jaxpr.outvars)


def _as_function(jaxpr: JaxProgram) -> Callable[..., list[Value]]:
    return lambda *inputs: evaluate(jaxpr, inputs, functools.partial(run_equation, {}))


def _variables(atoms: Sequence[Any]) -> list[Any]:
    return [v for v in atoms if not isinstance(v, Literal)]


def _read_by(equations: Sequence[Equation]) -> list[Any]:
    """The variables that equations read and do not make, in the order of the operands of the last one."""
    made_by = {v: eqn for eqn in equations for v in eqn.outvars}
    read, waiting = dict[Any, None](), [v for eqn in equations for v in eqn.invars[::-1]]
    while waiting:
        v = waiting.pop()
        if not isinstance(v, Literal) and v not in made_by:
            read[v] = None
        elif not isinstance(v, Literal):
            waiting += made_by[v].invars[::-1]
    return [*read]
