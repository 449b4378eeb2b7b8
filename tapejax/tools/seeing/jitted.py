"""A call of a function of the user's under `jax.jit`: its operations, in the functions that ran them.

They are read from JAX's program, so that the user's Python does not run again. What `jax.grad` became there is a derivative
again, if that gives the very operations of the program.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from types import CodeType
from typing import Any

import jax
import jax.numpy as jnp

from ...jaxprs import contents
from ...jaxprs.fence import Literal, Tracer, transformations
from ...jaxprs.lifting import run_equation
from ...jaxprs.types import Equation, JaxProgram, Value, Values
from ...places import Place, is_called, is_derivative, serves
from ...tape import active
from ...tape.operation import Op
from ...tape.recording import Entry, Recording
from . import gradients
from .again import adopted
from .inside import CASTS, OPERATIONS, program_of


def recorded(entry: Entry, recording: Recording) -> Recording | None:
    """What the function of `entry`, a call, does at the recorded inputs, with the recorded outputs.

    None where the call is of no function of the user's, or its program asks Python for something.
    """
    if any(isinstance(x, Tracer) for x in entry.inputs):
        return None
    primitive, params = recording.bound.get(id(entry.outputs[0]), (None, {})) if entry.outputs else (None, {})
    if getattr(primitive, "name", None) not in contents.JIT:
        return None
    with active.outside():
        program = _body(contents.open_jaxpr(program_of(entry, recording)))
        source = _source_of(params["jaxpr"])
        if not _is_users(program, source):
            return None
        inside = Recording()
        try:
            outputs = _run(program, source, entry.inputs, (), inside.entries)
        except Exception:  # an input was donated, or what is called cannot run here
            return None
    return adopted(gradients.folded(inside, outputs), outputs, entry)


def _body(jaxpr: JaxProgram) -> JaxProgram:
    """What the function of a call does; `jaxpr` is the call, or that itself, where the function closed over arrays."""
    eqn: Any = jaxpr.eqns[0] if len(jaxpr.eqns) == 1 else None
    alone = eqn is not None and (eqn.invars, eqn.outvars) == (jaxpr.invars, jaxpr.outvars)
    return contents.open_jaxpr(eqn.params["jaxpr"]) if alone and eqn.primitive.name in contents.JIT else jaxpr


def _is_users(jaxpr: JaxProgram, source: str) -> bool:
    """Whether a function, defined at `source`, runs code of the user's, and not too much of it."""
    if jaxpr.effects or jaxpr.constvars or len(jaxpr.eqns) > OPERATIONS or contents.contains(jaxpr, "pure_callback"):
        return False
    inside = [_places(eqn, source) for eqn in jaxpr.eqns]
    return all(inside) and any(not serves(code.co_filename) for places in inside for code, _ in places)


# ---- who ran an equation --------------------------------------------------------------------------------------------


def _source_of(program: JaxProgram | None) -> str:
    """Where the function is defined that a program is of, as its file and line; empty if that is not known."""
    info: Any = getattr(contents.open_jaxpr(program), "debug_info", None) if program is not None else None
    return str(getattr(info, "func_src_info", None) or "").rpartition(" at ")[2]


def _frames(eqn: Equation, source: str) -> list[Place]:
    """The functions that ran an equation, from that defined at `source` inwards."""
    traceback = eqn.source_info.traceback
    frames = list(zip(*traceback.raw_frames(), strict=True))[::-1] if traceback is not None else []
    outer = itertools.takewhile(lambda frame: _source(frame[0]) != source, frames)
    return frames[sum(1 for _ in outer) :]


def _source(code: CodeType) -> str:
    return f"{code.co_filename}:{code.co_firstlineno}"


def _places(eqn: Equation, source: str) -> tuple[Place, ...]:
    """Those of the functions that ran an equation which count, see `places.calls`. What goes back was run by `jax.grad`."""
    places = [place for place in _frames(eqn, source) if is_called(place[0])]
    starts = [i for i, place in enumerate(places) if is_derivative(place)]
    back = next((at for at, kind in zip(starts, transformations(eqn), strict=False) if kind == "transpose"), None)
    return tuple(places if back is None else places[: back + 1])


def _name(equations: Sequence[Equation]) -> str:
    """The name of the one operation, or of the function of JAX's that several came of."""
    kinds = [eqn.primitive.name for eqn in equations]
    main = [kind for kind in kinds if kind not in CASTS] or kinds[-1:]
    if len(main) == 1:
        return str(equations[kinds.index(main[0])].params.get("name", main[0]))
    codes, _ = equations[0].source_info.traceback.raw_frames()
    names = [code.co_name for code in itertools.takewhile(lambda code: not is_called(code), codes)]
    public = (name.removeprefix("_operator_") for name in reversed(names))
    return next((name for name in public if hasattr(jnp, name) or hasattr(jax.nn, name)), "function")


# ---- what it did ----------------------------------------------------------------------------------------------------


def _run(
    jaxpr: JaxProgram, source: str, inputs: Values, around: tuple[Place, ...], entries: list[Entry]
) -> list[Value]:
    """The results of a function defined at `source`, whose operations become `entries`. `around`: what ran it."""
    known: dict[Any, Value] = dict(zip(jaxpr.invars, inputs, strict=True))

    def read(atoms: Sequence[Any]) -> list[Value]:
        return [v.val if isinstance(v, Literal) else known[v] for v in atoms]

    # those that came of one call of a function of JAX's share their traceback
    groups = [[*group] for _, group in itertools.groupby(jaxpr.eqns, key=lambda eqn: id(eqn.source_info.traceback))]
    last = {v: i for i, group in enumerate(groups) for eqn in group for v in _variables(eqn.invars)}
    last |= dict.fromkeys(_variables(jaxpr.outvars), len(groups))
    for i, group in enumerate(groups):
        places = around + _places(group[0], source)
        first = group[0]
        called = first.params.get("jaxpr") if len(group) == 1 and first.primitive.name in contents.JIT else None
        if called is not None and _is_users(body := contents.open_jaxpr(called), own := _source_of(called)):
            results = _run(body, own, read(first.invars), places, entries)
            known.update(zip(first.outvars, results, strict=True))
            continue
        made = [v for eqn in group for v in eqn.outvars]
        ins = _read_by(group)
        # what nobody reads may be the number that a gradient is of
        outs = [v for v in made if last.get(v, 0) > i or v not in last and v.aval.shape == ()]
        op = Op(_name(group), functools.partial(_evaluate, group, ins, outs))
        values = read(ins)
        results = active.distinct(op.fn(*values), values)
        known.update(zip(outs, results, strict=True))
        where = next((place for place in places[::-1] if not serves(place[0].co_filename)), None)
        entries.append(Entry(op, tuple(values), tuple(results), where, None, places))
    return read(jaxpr.outvars)


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


def _evaluate(equations: Sequence[Equation], ins: Sequence[Any], outs: Sequence[Any], *inputs: Value) -> list[Value]:
    """The values of `outs` after these equations, which read `ins` and what they make."""
    known: dict[Any, Value] = dict(zip(ins, inputs, strict=True))
    for eqn in equations:
        values = [v.val if isinstance(v, Literal) else known[v] for v in eqn.invars]
        known.update(zip(eqn.outvars, run_equation({}, eqn, values), strict=True))
    return [known[v] for v in outs]
