"""The one evaluator: a jaxpr run equation by equation, where some of its values come from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from .canonical import open_jaxpr
from .contents import consts_of
from .fence import Literal
from .types import Atom, Equation, JaxProgram, Value, Values


def evaluate(
    program: JaxProgram,
    args: Values,
    run: Callable[[Equation, Values], Sequence[Any]],
    *,
    lifted: Mapping[int, Value] | None = None,
    equations: Sequence[Equation] | None = None,
    wanted: Sequence[Atom] | None = None,
) -> list[Any]:
    """The values of the atoms `wanted`, by default the outputs. `run` computes the results of each of the `equations`, of all by
    default.

    A constant, by its identity, is read from `lifted` where it is there.
    """
    jaxpr, lifted = open_jaxpr(program), lifted or {}
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, (lifted.get(id(c), c) for c in consts_of(program)), strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))

    def read(atom: Atom) -> Any:
        return lifted.get(id(atom.val), atom.val) if isinstance(atom, Literal) else env[atom]

    for eqn in jaxpr.eqns if equations is None else equations:
        env.update(zip(eqn.outvars, run(eqn, [read(x) for x in eqn.invars]), strict=True))
    return [read(x) for x in (jaxpr.outvars if wanted is None else wanted)]


def needed(
    program: JaxProgram, wanted: Iterable[Atom], also: Callable[[Equation], bool] = lambda eqn: False
) -> list[tuple[Equation, set[Atom]]]:
    """The equations on which the atoms `wanted` depend, and those for which `also` holds; beside each what is wanted of it."""
    left = {v for v in wanted if not isinstance(v, Literal)}
    equations = []
    for eqn in reversed(open_jaxpr(program).eqns):
        outs = left.intersection(eqn.outvars)
        if outs or also(eqn):
            equations.append((eqn, outs))
            left.update(x for x in eqn.invars if not isinstance(x, Literal))
    return equations[::-1]
