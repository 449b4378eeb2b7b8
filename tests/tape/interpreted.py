"""Jitted programs run operation by operation: a program that was never seen before costs no compile.

What is hunted is recognition: which traced program, which pullback, which whole sweep a call is taken for. XLA decides nothing of
that, but to compile one operation takes it 20 milliseconds. Here programs are evaluated by Python: the usual operations by NumPy
(`tests.tape.kernels`), the others by XLA, each compiled by itself with its operands as arguments, so that all share them.
JAX's tracing, its caches of traced programs, and all of tapejax are as they are.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import pjit
from jax._src.lax.control_flow import conditionals, loops
from jax._src.lax.lax import _convert_element_type
from jax.extend.core import Literal

from tapejax.jaxprs import contents

from . import kernels
from .kernels import KERNELS, array, as_numpy, numbers


class _State(threading.local):
    on = False


_state = _State()
_compiled_call = pjit._pjit_call_impl_python


def _call(*args: Any, **params: Any) -> Any:
    jaxpr = params["jaxpr"]
    if not _state.on or _is_one_operation(jaxpr) or any(params["donated_invars"]):
        return _compiled_call(*args, **params)
    return _evaluate(jaxpr, args), None, None, []


# Made of programs, which are evaluated here. (A scatter or reduction is made of one, too, but is one operation.)
_STRUCTURED = {*contents.JIT, "scan", "while", "cond", "custom_jvp_call", "custom_vjp_call", "checkpoint", "remat2"}


def _is_one_operation(closed: Any) -> bool:
    equations = contents.open_jaxpr(closed).eqns
    return (
        not contents.consts_of(closed)
        and len(equations) == 1
        and equations[0].primitive.name not in _STRUCTURED
        and equations[0].primitive.name not in KERNELS
        and not any(isinstance(x, Literal) for x in equations[0].invars)
    )


def _evaluate(closed: Any, args: Any) -> list[Any]:
    jaxpr = contents.open_jaxpr(closed)
    # a NumPy array or number among the results would be the caller's very object
    results = _values(jaxpr, contents.consts_of(closed), args)
    return [_as(v.aval, x) for v, x in zip(jaxpr.outvars, results, strict=True)]


def _values(jaxpr: Any, consts: Any, args: Any) -> list[Any]:
    """What the program gives: between its operations are NumPy arrays; their weak types are written in the program."""
    values: dict[Any, Any] = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))

    def read(x: Any) -> Any:
        return x.val if isinstance(x, Literal) else values[x]

    for eqn in jaxpr.eqns:
        kernel = KERNELS.get(eqn.primitive.name)
        inputs = [read(x) for x in eqn.invars]
        out = NotImplemented
        if kernel is not None and numbers([v.aval for v in (*eqn.invars, *eqn.outvars)]):
            arrays = [as_numpy(x, v.aval) for x, v in zip(inputs, eqn.invars, strict=True)]
            with np.errstate(all="ignore"):
                out = kernel(eqn.params, *arrays)
        if out is NotImplemented:
            inputs = [_as(v.aval, x) for x, v in zip(inputs, eqn.invars, strict=True)]
            with eqn.ctx.manager:
                out = eqn.primitive.bind(*inputs, **eqn.primitive.get_bind_params(eqn.params))
            out = out if eqn.primitive.multiple_results else [out]
        else:
            out = [out] if not eqn.primitive.multiple_results else out
            out = [np.asarray(x, v.aval.dtype) for x, v in zip(out, eqn.outvars, strict=True)]
        values.update(zip(eqn.outvars, out, strict=True))
    return [read(x) for x in jaxpr.outvars]


def _as(aval: Any, x: Any) -> Any:
    """`x` as an array of the weak type that the program says: a literal evaluated by itself has lost it."""
    if not isinstance(x, jax.Array):
        if aval.dtype == jax.dtypes.float0:
            return x
        return array(aval, np.asarray(x, aval.dtype))
    if getattr(x, "weak_type", False) == getattr(aval, "weak_type", False):  # a key of random numbers has none
        return x
    return _convert_element_type(x, weak_type=aval.weak_type)


def _scan(*args: Any, **params: Any) -> Any:
    if not _state.on:
        return _compiled_scan(*args, **params)
    body, length = params["jaxpr"], params["length"]
    consts, carried = contents.scan_counts(params)
    carry = list(args[consts : consts + carried])
    columns = [_by_numpy(x) for x in args[consts + carried :]]
    rows = []
    for i in reversed(range(length)) if params["reverse"] else range(length):
        out = _evaluate(body, [*args[:consts], *carry, *[jnp.asarray(x[i]) for x in columns]])
        carry = out[:carried]
        rows.append([_by_numpy(x) for x in out[carried:]])
    if params["reverse"]:
        rows.reverse()
    avals = contents.open_jaxpr(body).outvars[carried:]
    stacked = [
        _stack([row[j] for row in rows]) if rows else jnp.zeros((0, *v.aval.shape), v.aval.dtype)
        for j, v in enumerate(avals)
    ]
    return [*carry, *[_as(v.aval, x) for v, x in zip(avals, stacked, strict=True)]]


def _by_numpy(x: Any) -> Any:
    """As a NumPy array; keys of random numbers have none."""
    return x if jax.dtypes.issubdtype(jax.typeof(x).dtype, jax.dtypes.extended) else np.asarray(x)


def _stack(rows: list[Any]) -> Any:
    return jnp.asarray(np.stack(rows)) if isinstance(rows[0], np.ndarray) else jnp.stack(rows)


def _cond(index: Any, *args: Any, **params: Any) -> Any:
    if not _state.on:
        return _compiled_cond(index, *args, **params)
    branches = params["branches"]
    return _evaluate(branches[min(max(int(index), 0), len(branches) - 1)], args)


def _while(*args: Any, **params: Any) -> Any:
    if not _state.on:
        return _compiled_while(*args, **params)
    test, step = params["cond_nconsts"], params["body_nconsts"]
    carry = list(args[test + step :])
    while bool(_evaluate(params["cond_jaxpr"], [*args[:test], *carry])[0]):
        carry = _evaluate(params["body_jaxpr"], [*args[test : test + step], *carry])
    return carry


def _operation(primitive: Any, compiled: Any, *args: Any, **params: Any) -> Any:
    """The implementation of one operation, called by itself."""
    if _state.on and not any(isinstance(x, jax.Array) and x.committed for x in args):
        avals = tuple([jax.typeof(x) for x in args])
        out = NotImplemented
        if numbers(avals):
            with np.errstate(all="ignore"):
                out = KERNELS[primitive.name](params, *map(as_numpy, args, avals))
        if out is not NotImplemented:
            made = _types(primitive, avals, tuple(params.items()), jax.config.jax_enable_x64)
            if not primitive.multiple_results:
                return array(made, np.asarray(out, made.dtype))
            return [array(aval, np.asarray(x, aval.dtype)) for aval, x in zip(made, out, strict=True)]
    with interpreted(False):
        return compiled(*args, **params)


@functools.lru_cache(10_000)
def _types(primitive: Any, avals: Any, params: Any, x64: bool) -> Any:
    return primitive.abstract_eval(*avals, **dict(params))[0]


_compiled_scan, _compiled_cond, _compiled_while = loops.scan_p.impl, conditionals.cond_p.impl, loops.while_p.impl


@contextlib.contextmanager
def interpreted(on: bool = True) -> Iterator[None]:
    """Inside the block this thread runs jitted programs operation by operation."""
    if pjit._pjit_call_impl_python is not _call:
        pjit._pjit_call_impl_python = _call
        loops.scan_p.def_impl(_scan)
        loops.while_p.def_impl(_while)
        conditionals.cond_p.def_impl(_cond)
        for primitive in kernels.primitives():
            primitive.def_impl(functools.partial(_operation, primitive, primitive.impl))
    before, _state.on = _state.on, on
    try:
        yield
    finally:
        _state.on = before
