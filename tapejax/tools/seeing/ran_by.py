"""Which functions ran an equation of a program: what JAX's traceback of it says, in the functions that the user wrote.

What `jax.grad` became there was run by `jax.grad`, and so on, as outside of `jax.jit`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from types import CodeType
from typing import Any

from ...jaxprs import contents
from ...jaxprs.fence import transformations
from ...jaxprs.types import Equation, JaxProgram
from ...places import Place, as_transformation, is_called, serves, transformation, without_own
from ...tf.ops import control_flow
from ...tf.programs import statements
from .inside import frames_of

# A function of more is called as a whole: each operation is run once, and looked at by each pass.
EQUATIONS = 4_000


def source_of(program: JaxProgram | None) -> str:
    """Where the function is defined that a program is of, as its file and line; empty if that is not known."""
    info: Any = getattr(contents.open_jaxpr(program), "debug_info", None) if program is not None else None
    return str(getattr(info, "func_src_info", None) or "").rpartition(" at ")[2]


def ran_by(jaxpr: JaxProgram, source: str) -> list[tuple[Place, ...]] | None:
    """For each equation of a function that is defined at `source` the functions that ran it, from that inwards.

    None where there are too many, or one may answer differently each time.
    """
    if jaxpr.effects or len(jaxpr.eqns) > EQUATIONS or contents.contains(jaxpr, "pure_callback"):
        return None
    return [places(eqn, source) for eqn in jaxpr.eqns]


def is_users(places: Sequence[Sequence[Place]] | None) -> bool:
    """Whether code of the user's is among what ran equations, each of which some function ran."""
    return all(places or [()]) and any(not serves(code.co_filename) for each in places or () for code, _ in each)


def origin(eqn: Equation) -> str:
    """What became an equation: a "statement" of the user's under AutoGraph, or whether a loop goes on; a "call" of a loop or a
    choice of TensorFlow's; else ""."""
    own = itertools.takewhile(lambda place: serves(place[0].co_filename), frames_of(eqn))
    names = {code.co_name for code, _ in own if code.co_filename in (statements.__file__, control_flow.__file__)}
    return "statement" if names & {"if_stmt", "while_stmt", "for_stmt", "step"} else "call" if names else ""


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


def inside_of(eqn: Equation, around: tuple[Place, ...]) -> tuple[Place, ...]:
    """The functions that ran an equation of a loop or a choice. `around`: those that ran that; a statement is in the last."""
    frames = [place for place in reversed(frames_of(eqn)) if is_called(place[0])]
    start = next((i for i, (code, _) in enumerate(frames) if code is around[-1][0]), None)
    outer = around if start is None else around[:-1]
    return (*outer, *_transformed(frames[start or 0 :], transformations(eqn)))


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
        if code.co_filename.endswith(("custom_derivatives.py", "custom_gradient.py")):
            inner = next((each for each, _ in frames[i:] if is_called(each)), None)
            start = i if inner is not None and not serves(inner.co_filename) else start
    return start


def _source(code: CodeType) -> str:
    return f"{code.co_filename}:{code.co_firstlineno}"
