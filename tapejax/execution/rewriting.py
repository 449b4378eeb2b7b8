"""Equations that are written anew in a program on its way to the compiler, after all derivatives have been taken.

Beside slow convolutions these are divisions. XLA computes ``x / c`` as ``x * (1 / c)`` where `c` is a literal or is broadcast:
``floor(41 / 41)`` is then 0, and so is the ``floor`` of the mean of 41 ones. In tapejax's functions and in backward passes a
division is one, as in TensorFlow's eager mode, however often it has run. What JAX was asked for keeps JAX's bits.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ..jaxprs import contents
from ..jaxprs.canonical import open_jaxpr
from ..jaxprs.fence import Literal, disable_jit, jaxpr_as_fun
from ..jaxprs.types import Atom, Equation, Function, JaxProgram, Value
from . import convolutions


def rewritten(program: JaxProgram, divisions: bool = True) -> JaxProgram:
    """`program` with such equations replaced, at any depth; the same object if there are none. `divisions`: these, too."""
    names = (convolutions.CONVOLUTION, "div") if divisions else (convolutions.CONVOLUTION,)
    if not any([contents.contains(program, name) for name in names]):
        return program
    inner = open_jaxpr(program)
    broadcasts = {v for eqn in inner.eqns if eqn.primitive.name == "broadcast_in_dim" for v in eqn.outvars}
    equations = [_rewritten(eqn, names, broadcasts) for eqn in inner.eqns]
    if all([eqn is before for eqn, before in zip(equations, inner.eqns, strict=True)]):
        return program
    inner = inner.replace(eqns=equations)
    return program.replace(jaxpr=inner) if hasattr(program, "jaxpr") else inner


def _rewritten(eqn: Equation, names: tuple[str, ...], broadcasts: set[Atom]) -> Equation:
    if eqn.primitive.name not in names:
        inside = functools.partial(rewritten, divisions="div" in names)
        params = {name: contents.mapped(inside, value) for name, value in eqn.params.items()}
        same = all([_is_same(value, eqn.params[name]) for name, value in params.items()])
        return eqn if same else eqn.replace(params=params)
    fn = _exact(eqn, broadcasts) if eqn.primitive.name == "div" else convolutions.quick(eqn)
    if fn is None:
        return eqn
    with eqn.ctx.manager:
        (call,) = jax.make_jaxpr(jax.jit(fn))(*[v.aval for v in eqn.invars]).eqns
    return eqn.replace(primitive=call.primitive, params=call.params)


def _exact(eqn: Equation, broadcasts: set[Atom]) -> Function | None:
    """The function that computes a division where XLA would multiply; else None."""
    divisor = eqn.invars[1]
    if not jnp.issubdtype(divisor.aval.dtype, jnp.floating):
        return None
    if isinstance(divisor, Literal):
        return None if abs(math.frexp(divisor.val)[0]) == 0.5 else _divided  # the reciprocal of a power of two is exact
    of_its_own = divisor.aval.shape == eqn.outvars[0].aval.shape and divisor not in broadcasts
    return None if of_its_own and divisor.aval.ndim else _divided  # a number may be a literal of the program around


def _divided(x: Value, divisor: Value) -> Any:
    x, divisor = jnp.broadcast_arrays(x, divisor)
    return lax.div(x, lax.optimization_barrier(divisor))  # type: ignore[no-untyped-call]


def _is_same(x: Any, y: Any) -> bool:
    return x is y or isinstance(x, (tuple, list)) and len(x) == len(y) and all(map(_is_same, x, y))


def rewriting(fn: Function, divisions: bool = True) -> Function:
    """`fn` with such equations replaced, for `jax.jit`."""

    @functools.wraps(fn)
    def run(*args: Any) -> Any:
        if disable_jit.value:  # nothing goes to the compiler, and a call is not an equation
            return fn(*args)
        program, results = jax.make_jaxpr(fn, return_shape=True)(*args)
        return jax.tree.unflatten(jax.tree.structure(results), jaxpr_as_fun(rewritten(program, divisions))(*args))

    return run
