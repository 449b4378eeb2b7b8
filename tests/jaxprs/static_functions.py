"""A primitive that takes a function and its arguments, as Equinox's primitives do.

The arrays that the function closes over are operands. Its jaxpr stands among the static arguments, in a tuple.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.interpreters import ad, batching, mlir

from tapejax.jaxprs.fence import Primitive, eval_jaxpr

static_function = Primitive("static_function")
static_function.multiple_results = True


def _run(*arrays: Any, static: tuple[Any, int]) -> list[Any]:
    jaxpr, count = static
    return eval_jaxpr(jaxpr, arrays[:count], *arrays[count:])


def _jvp(primals: Any, tangents: Any, **static: Any) -> Any:
    return jax.jvp(partial(_run, **static), list(primals), list(map(ad.instantiate_zeros, tangents)))


def _batched(arrays: Any, axes: Any, **static: Any) -> Any:
    results = jax.vmap(partial(_run, **static), axes)(*arrays)
    return results, [0] * len(results)


static_function.def_impl(_run)
static_function.def_abstract_eval(lambda *arrays, static: [v.aval for v in static[0].outvars])
ad.primitive_jvps[static_function] = _jvp
batching.primitive_batchers[static_function] = _batched
mlir.register_lowering(static_function, mlir.lower_fun(_run, multiple_results=True))


def apply(function: Callable[..., Any], *args: Any) -> Any:
    """``function(*args)``, an array, by the primitive."""
    closed = jax.make_jaxpr(function)(*args)
    return static_function.bind(*closed.consts, *args, static=(closed.jaxpr, len(closed.consts)))[0]


def root(x: Any) -> Any:
    """The square root of each of `x`, by Newton's method: a rule, and a loop in which a function closes over the state."""

    @jax.custom_jvp
    def find(x: Any) -> Any:
        def improve(state: Any) -> Any:
            count, y = state
            return count + 1, y - apply(lambda error: error / (2 * y), y * y - x)

        return jax.lax.while_loop(lambda state: state[0] < 20, improve, (0, 1 + x))[1]

    @find.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        y = find(*primals)
        return y, tangents[0] * apply(lambda x: x / (2 * y), jnp.ones_like(y))

    return jax.jit(find)(x)
