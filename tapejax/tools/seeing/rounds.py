"""In which round of a loop, in which branch or called function a number that is none begins.

The rounds of a loop are searched by compiled loops: a long one takes about as long as it ran. They count from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp

from ...jaxprs import contents
from ...jaxprs.custom_rules import composition_of
from ...jaxprs.dependence import has_tangent, type_has_tangent
from ...jaxprs.derivatives import pull_back
from ...jaxprs.fence import Literal, jaxpr_as_fun
from ...jaxprs.prints import without_prints
from ...jaxprs.types import JaxProgram, Params, Value, Values
from ...tf.values.types import Array
from .inside import has_lines

# What came back to each result, None to one without a derivative; None where values are looked at.
Cotangents: TypeAlias = Sequence[Array | None] | None


class Part(NamedTuple):
    """A program, its inputs, what came back to its outputs, and the round in which it ran, in words."""

    program: JaxProgram
    inputs: Values
    cotangents: Cotangents
    where: str = ""

    def named(self) -> dict[str, Value]:
        """The inputs by the names of the parameters of the function that became the program."""
        names = contents.open_jaxpr(self.program).debug_info.arg_names or ()
        return {name: x for name, x in zip(names, self.inputs, strict=False) if name}


def inside(part: Part) -> Part | None:
    """What a call does: the body of a loop in the round that begins not to be finite, the chosen branch, the called function.

    A program of several equations is itself. None for one operation, and if all rounds are finite.
    """
    jaxpr = contents.open_jaxpr(part.program)
    if not has_lines(part.program):
        return None
    if len(jaxpr.eqns) != 1:
        return part
    (eqn,) = jaxpr.eqns
    known = dict(zip(jaxpr.constvars, contents.consts_of(part.program), strict=True))
    known |= dict(zip(jaxpr.invars, part.inputs, strict=True))
    inputs = [jnp.asarray(x.val if isinstance(x, Literal) else known[x]) for x in eqn.invars]
    came: Cotangents = None
    if part.cotangents is not None:
        pairs = list(zip(jaxpr.outvars, part.cotangents, strict=True))
        came = [next((ct for v, ct in pairs if v is out), None) for out in eqn.outvars]
        came = [_zeros(v.aval) if ct is None else ct for v, ct in zip(eqn.outvars, came, strict=True)]
    return _CALLS[eqn.primitive.name](eqn.params, inputs, came) if eqn.primitive.name in _CALLS else None


def _zeros(aval: Any) -> Array | None:
    return jnp.zeros(aval.shape, aval.dtype) if type_has_tangent(aval) else None


def _function(params: Params, inputs: Values, came: Cotangents) -> Part | None:
    custom = "call_jaxpr" in params
    part = Part(params["call_jaxpr" if custom else "jaxpr"], inputs, came)
    if custom and composition_of(params) is not None:  # a loop of tapejax's, which JAX alone cannot differentiate
        return inside(part)
    return None if custom and came is not None else part  # its derivative is not that of what is inside


def _cond(params: Params, inputs: Values, came: Cotangents) -> Part:
    branches = params["branches"]
    return Part(branches[max(0, min(int(inputs[0]), len(branches) - 1))], inputs[1:], came)


def _scan(params: Params, inputs: Values, came: Cotangents) -> Part | None:
    constants, carried = contents.scan_counts(params)
    parts = inputs[:constants], inputs[constants : constants + carried], inputs[constants + carried :]
    return _Scan(params["jaxpr"], *parts, params["length"], params["reverse"]).round(came)


def _while(params: Params, inputs: Values, came: Cotangents) -> Part | None:
    test, step = params["cond_nconsts"], params["body_nconsts"]
    constants, carry = inputs[test : test + step], inputs[test + step :]
    holds, advance = jaxpr_as_fun(params["cond_jaxpr"]), jaxpr_as_fun(without_prints(params["body_jaxpr"]))
    count, _ = jax.lax.while_loop(
        lambda state: holds(*inputs[:test], *state[1])[0],
        lambda state: (state[0] + 1, advance(*constants, *state[1])),
        (0, list(carry)),
    )
    return _Scan(params["body_jaxpr"], constants, carry, [], int(count)).round(came)


_CALLS: dict[str, Callable[[Params, Values, Cotangents], Part | None]] = {
    **dict.fromkeys((*contents.CALLS, *contents.CHECKPOINT), _function),
    "cond": _cond,
    "scan": _scan,
    "while": _while,
}


class _Scan(NamedTuple):
    """A loop. Its `body` takes constants, what is carried and a row of `rows`, and gives what is carried and a row."""

    body: JaxProgram
    constants: Values
    carry: Values
    rows: Values
    rounds: int
    reverse: bool = False

    def round(self, came: Cotangents) -> Part | None:
        """The first round, in the order of the pass, in which something is not finite; None if there is none."""
        if not self.rounds or contents.asks_host(self.body):
            return None
        number, carry, cotangents, finite = self._forward() if came is None else self._backward(came)
        if finite:
            return None
        inputs = [*self.constants, *carry, *self._row(self.rows, number)]
        return Part(self.body, inputs, cotangents, f"round {int(number) + 1} of {self.rounds}, ")

    def _row(self, rows: Values, number: Array) -> list[Array]:
        at = self.rounds - 1 - number if self.reverse else number
        return [jax.lax.dynamic_index_in_dim(x, at, keepdims=False) for x in rows]

    def _run(self, constants: Values, carry: Values, row: Values) -> list[Array]:
        return list(jaxpr_as_fun(without_prints(self.body))(*constants, *carry, *row))

    def _forward(self) -> tuple[Array, Values, None, Array]:
        def search(constants: Values, carry: Values, rows: Values) -> Any:
            def advance(state: Any) -> Any:
                number, _, carry, _ = state
                results = self._run(constants, carry, self._row(rows, number))
                return number + 1, carry, results[: len(carry)], _all_finite(results)

            return jax.lax.while_loop(
                lambda state: state[-1] & (state[0] < self.rounds), advance, (0, carry, carry, jnp.bool_(True))
            )

        number, carry, _, finite = jax.jit(search)(list(self.constants), list(self.carry), list(self.rows))
        return number - 1, carry, None, finite

    def _backward(self, came: Sequence[Array | None]) -> tuple[Array, Values, list[Array | None], Array]:
        carried = len(self.carry)
        outs = tuple([j for j, x in enumerate(came) if x is not None])
        rest = [x for x in came[carried:] if x is not None]

        def search(constants: Values, carry: Values, rows: Values, moving: Values, rest: Values) -> Any:
            def keep(carry: Values, number: Array) -> Any:
                return self._run(constants, carry, self._row(rows, number))[:carried], carry

            states = jax.lax.scan(keep, carry, jnp.arange(self.rounds))[1]

            def pull(state: Any) -> Any:
                number, _, moving, _ = state
                before = [x[number] for x in states]
                inputs = [*constants, *before, *self._row(rows, number)]
                ins = tuple([i for i, x in enumerate(inputs) if has_tangent(x)])
                cotangents = [*moving, *self._row(rest, number)]
                back = pull_back(jaxpr_as_fun(self.body), ins, outs, ins, *inputs, *cotangents)
                to_carry = [x for i, x in zip(ins, back, strict=True) if 0 <= i - len(constants) < carried]
                return number - 1, moving, to_carry, _all_finite(back)

            state = self.rounds - 1, moving, moving, jnp.bool_(True)
            number, moving, _, finite = jax.lax.while_loop(lambda state: state[-1] & (state[0] >= 0), pull, state)
            return number + 1, [x[number + 1] for x in states], moving, finite

        given = [*self.constants], [*self.carry], [*self.rows], [x for x in came[:carried] if x is not None], rest
        number, carry, moving, finite = jax.jit(search)(*given)
        known = dict(zip(outs, [*moving, *self._row(rest, number)], strict=True))
        return number, carry, [known.get(j) for j in range(len(came))], finite


def _all_finite(xs: Sequence[Array]) -> Array:
    return jnp.stack([jnp.bool_(True), *[jnp.isfinite(x).all() for x in xs if has_tangent(x)]]).all()
