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
from ...places import Place, as_transformation, is_called, serves, transformation, without_own
from ...tape import active
from ...tape.operation import Op
from ...tape.recording import Entry, Recording
from ..writing.graph import ValueSet
from . import transforms
from .again import adopted
from .inside import CASTS, frames_of, program_of
from .regions import parts

# A function of more is called as a whole: each operation is run once, and looked at by each pass.
EQUATIONS = 4_000


def recording_of(entry: Entry, recording: Recording) -> Recording | None:
    """What the function of `entry`, a call, does at the recorded inputs, with the recorded outputs.

    None where the call is of no function of the user's, or its program asks Python for something.
    """
    if any(isinstance(x, Tracer) for x in entry.inputs):
        return None
    inside = Recording()
    with active.outside():
        try:
            called = _called(entry, recording)
            places = None if called is None else ran_by(*called)
            outputs = (
                run(called[0], places, entry.inputs, (), inside.entries)
                if called and places and is_users(places)
                else None
            )
            outputs = outputs and _made(outputs, inside.entries)
        except Exception:  # an input was donated, or what is called cannot run here
            return None
    if not outputs:
        return None
    folded = transforms.folded(inside, outputs)
    every = zip(parts(folded.entries, outputs), folded.entries, strict=True)
    folded.entries = [part or entry for part, entry in every if part or entry.outputs]
    return adopted(folded, outputs, entry)


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


# ---- who ran an equation --------------------------------------------------------------------------------------------


def source_of(program: JaxProgram | None) -> str:
    """Where the function is defined that a program is of, as its file and line; empty if that is not known."""
    info: Any = getattr(contents.open_jaxpr(program), "debug_info", None) if program is not None else None
    return str(getattr(info, "func_src_info", None) or "").rpartition(" at ")[2]


def ran_by(jaxpr: JaxProgram, source: str) -> list[tuple[Place, ...]] | None:
    """For each equation of a function that is defined at `source` the functions that ran it, from that inwards.

    None where there are too many, or one may answer differently each time.
    """
    if jaxpr.effects or jaxpr.constvars or len(jaxpr.eqns) > EQUATIONS or contents.contains(jaxpr, "pure_callback"):
        return None
    return [places(eqn, source) for eqn in jaxpr.eqns]


def is_users(places: Sequence[Sequence[Place]] | None) -> bool:
    """Whether code of the user's is among what ran equations, each of which some function ran."""
    return all(places or [()]) and any(not serves(code.co_filename) for each in places or () for code, _ in each)


def function_in(program: JaxProgram) -> CodeType | None:
    """The function that ran all equations of a program."""
    source = source_of(program)
    codes = {each[0][0] for eqn in contents.open_jaxpr(program).eqns if (each := places(eqn, source))}
    return codes.pop() if len(codes) == 1 else None


def places(eqn: Equation, source: str) -> tuple[Place, ...]:
    """Those of the functions that ran an equation which count, see `places.call_stack`. What goes back was run by `jax.grad`."""
    frames = [*reversed(frames_of(eqn))]
    at = next((i for i, (code, _) in enumerate(frames) if _source(code) == source), None)
    if at is None:
        at = _rule_in(frames) if source.startswith(_TOOLS) else len(frames)
    frames = frames[at:]
    return _transformed([place for place in frames if is_called(place[0])], transformations(eqn))


# What JAX calls where a linear function runs that `jax.vjp` or `jax.linearize` gave, and says of it that it made it there.
_GIVEN = {"vjp": "pull", "linearize": "push"}


def _transformed(places: Sequence[Place], names: Sequence[str]) -> tuple[Place, ...]:
    """The functions that ran an equation, up to the transformation that goes back in it. `names`: the steps that JAX says it is
    of. Of what a function ran that `jax.vjp` gave, or a mapped one of `jax.linearize`, the calls are as outside `jax.jit`."""
    steps, called = iter(names), without_own(places)
    for i, place in enumerate(places):
        kind = transformation(place) if any(place is each for each in called) else ""
        step, mapped = next(steps, "") if kind else "", list[str]()
        while step == "vmap" and kind in (*_GIVEN, "jacfwd", "jacrev"):
            mapped, step = [*mapped, step], next(steps, "")
        if kind in _GIVEN and (mapped or step == "transpose"):
            calls = [as_transformation(place, each) for each in (*mapped, _GIVEN[kind])]
            return (*places[: i - 1], (places[i - 1][0], -1), *calls)
        if step == "transpose":
            return tuple(places[: i + 1])
    return tuple(places)


_TOOLS = __file__.rpartition("seeing")[0]


def _rule_in(frames: Sequence[Place]) -> int:
    """Where the innermost rule of the user's begins that JAX ran for a function which has its own."""
    start = len(frames)
    for i, (code, _) in enumerate(frames):
        if code.co_filename.endswith("custom_derivatives.py"):
            inner = next((each for each, _ in frames[i:] if is_called(each)), None)
            start = i if inner is not None and not serves(inner.co_filename) else start
    return start


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


def run(
    jaxpr: JaxProgram,
    callers: Sequence[tuple[Place, ...]],
    inputs: Values,
    around: tuple[Place, ...],
    entries: list[Entry],
) -> list[Value]:
    """The results of a function, whose operations become `entries`. `callers`: what ran each equation; `around`: what ran it."""
    known: dict[Any, Value] = dict(zip(jaxpr.invars, inputs, strict=True))

    def read(atoms: Sequence[Any]) -> list[Value]:
        return [v.val if isinstance(v, Literal) else known[v] for v in atoms]

    # those that came of one call of a function of JAX's share their traceback
    pairs = zip(jaxpr.eqns, callers, strict=True)
    groups = [[*group] for _, group in itertools.groupby(pairs, key=lambda pair: _together(pair[0]))]
    last = {v: i for i, group in enumerate(groups) for eqn, _ in group for v in _variables(eqn.invars)}
    last |= dict.fromkeys(_variables(jaxpr.outvars), len(groups))
    for i, group in enumerate(groups):
        (first, inner), equations = group[0], [eqn for eqn, _ in group]
        places = around + inner
        called = first.params.get("jaxpr") if len(group) == 1 and first.primitive.name in contents.JIT else None
        own = None if called is None else ran_by(body := contents.open_jaxpr(called), source_of(called))
        if own and is_users(own):
            results = run(body, own, read(first.invars), places, entries)
            known.update(zip(first.outvars, results, strict=True))
            continue
        made, ins = [v for eqn in equations for v in eqn.outvars], _read_by(equations)
        # what nobody reads may be what a derivative is of
        inside = any(map(transformation, places))
        outs = [v for v in made if last.get(v, len(groups)) > i or inside]
        op = Op(_name(equations), _as_function(jaxpr.replace(invars=ins, eqns=equations, outvars=outs)))
        values = read(ins)
        results = active.distinct(op.fn(*values), values)
        known.update(zip(outs, results, strict=True))
        where = next((place for place in places[::-1] if not serves(place[0].co_filename)), None)
        entries.append(Entry(op, tuple(values), tuple(results), where, None, places))
    return read(jaxpr.outvars)


_STRUCTURED = frozenset(("scan", "while", "cond", *contents.CHECKPOINT))


def _together(eqn: Equation) -> int:
    """Equal for equations that are one operation."""
    return id(eqn if eqn.primitive.name in _STRUCTURED else eqn.source_info.traceback)


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
