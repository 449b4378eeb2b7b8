"""Calls of Python functions, as JAX makes them of a function with a rule of its own, or of ``shard_map``: traced into a jaxpr.

They arrive as functions that can be called once, and that store what their caller reads afterwards.
"""

from __future__ import annotations

import inspect
import os
import sys
import types
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax

from . import canonical
from .canonical import UncacheableError, open_jaxpr
from .contents import RULES
from .fence import JitFunction, eval_jaxpr, trace_context, wrap_init, zeros_of
from .types import Function, JaxProgram, Params, Primitive, Subfun, Values


def stage(primitive: Primitive, subfuns: Sequence[Subfun], args: Values, params: Params) -> tuple[Any, Function]:
    """Traces ``primitive.bind(*args, subfuns=subfuns, **params)`` into a jaxpr; also how to repack its flat results."""
    repack: list[Function] = []

    def bind(*tracers: Any) -> list[Any]:
        out = primitive.bind(*tracers, subfuns=subfuns, **params)
        repack.append(_repacked(out))
        return list(out)

    return jax.make_jaxpr(bind)(*args), repack[0]


def rebind(primitive: Primitive, subfuns: Sequence[Subfun], params: Params) -> tuple[Function, Function]:
    """What `stage` would have traced, as a function that can be called any number of times; also how to repack its results."""
    repack: list[Function] = []

    def bind(*args: Any) -> list[Any]:
        for fun in subfuns:
            empty(getattr(fun, "stores", ()))
        out = primitive.bind(*args, subfuns=subfuns, **params)
        repack[:] = [_repacked(out)]
        return list(out)

    return bind, lambda outputs: repack[0](outputs)


def _repacked(out: Any) -> Function:
    # shard_map answers with JAX's FlatTree, the others with a list. One without the values, which may be tracers.
    return out.update([None] * len(out)).update if hasattr(out, "update") else list


# JAX's own functions, each with what it and its rule were when it was first called
_own: dict[Any, tuple[Any, Any]] = {}


def is_jaxs_own(fn: Any) -> bool:
    """Whether a ``custom_jvp`` function is JAX's, so that its identity says what it computes of arrays.

    It is a constant of one of JAX's modules, its rule is JAX's too, both close over nothing, and all its arguments are arrays.
    """
    parts = _own.get(fn)
    if parts is None:
        if not fn.__module__.startswith("jax.") or not _is_constant(fn):
            return False
        parts = _own[fn] = fn.fun, fn.jvp
    return fn.fun is parts[0] and fn.jvp is parts[1]  # both may be replaced


def _is_constant(fn: Any) -> bool:
    rules: Any = [fn.jvp]
    if (
        getattr(fn.jvp, "__qualname__", "") == "custom_jvp.defjvps.<locals>.jvp"
    ):  # made by JAX of a rule for each argument
        closed = inspect.getclosurevars(fn.jvp).nonlocals
        rules = [rule for rule in closed["jvps"] if rule is not None] if closed["self"] is fn else [None]
    is_here = getattr(sys.modules.get(fn.__module__), fn.__name__, None) is fn
    return is_here and all(map(_is_jaxs_code, [fn.fun, *rules])) and not fn.nondiff_argnums and not fn.symbolic_zeros


def _is_jaxs_code(fn: Any) -> bool:
    code = getattr(getattr(fn, "__wrapped__", fn), "__code__", None)
    return code is not None and code.co_filename.startswith(_JAX) and not code.co_freevars


_JAX = os.path.dirname(jax.__file__) + os.sep


def within_transformation(subfuns: Sequence[Subfun]) -> bool:
    """Whether a transformation (`jax.vmap`) made the call of the functions `subfuns`: they may close over its values."""
    transforms: Any = subfuns[0].transforms
    return bool(transforms) and transforms[0][0].__module__ != jax.custom_jvp.__module__


def trace_rules(staged: JaxProgram, subfuns: Sequence[Subfun]) -> JaxProgram:
    """Traces the rule of the call in `staged` now, while the values that it closes over are alive.

    Returns `staged`; or the call by its rule alone, if that closes over a value that is mapped and the function does not: to
    JAX the results are mapped then.
    """
    for eqn in open_jaxpr(staged).eqns:
        if (name := RULES.get(eqn.primitive.name)) is None:
            continue
        thunk = eqn.params[name]
        count = len(eqn.params["call_jaxpr"].in_avals) - eqn.params["num_consts"]
        stores = [store for store in subfuns[1].stores if store is not None]
        try:
            traced = thunk.call_wrapped(*[name != "jvp_jaxpr_fun"] * count)
            stored = [store.val for store in stores]
        except Exception:  # raised again if the rule is needed
            continue
        finally:  # JAX allows for the results of the function or of its rule to be stored, not for both
            for store in stores:
                store.reset()
        if name == "fwd_jaxpr_thunk":  # the other one JAX keeps itself
            rule = partial(_traced_rule, traced, stores, stored)
            eqn.params[name] = wrap_init(rule, debug_info=thunk.debug_info)
        elif [v.aval.shape for v in traced[0].outvars[: len(eqn.outvars)]] != [v.aval.shape for v in eqn.outvars]:
            _traced_rule(traced, stores, stored)
            keep_stores_of_rule(subfuns)
            return _by_its_rule(
                eqn.params["call_jaxpr"].in_avals[eqn.params["num_consts"] :], len(eqn.outvars), *traced
            )
    return staged


def _by_its_rule(avals: Sequence[Any], count: int, rule: Any, consts: Values, zeros: Sequence[bool]) -> JaxProgram:
    """A function with the traced `rule` of a ``custom_jvp`` call, whose values are the rule's, too: a jaxpr of the call."""

    def run(primals: Values, tangents: Values) -> tuple[list[Any], list[Any]]:
        results = iter(eval_jaxpr(rule, consts, *primals, *tangents))
        values = [next(results) for _ in range(count)]
        return values, [
            jax.numpy.zeros_like(x) if zero else next(results) for x, zero in zip(values, zeros, strict=True)
        ]

    @jax.custom_jvp
    def call(*args: Any) -> list[Any]:
        return run(args, [zeros_of(jax.typeof(x).to_tangent_aval()) for x in args])[0]

    call.defjvp(run)
    return jax.make_jaxpr(call)(*avals)


def keep_stores_of_rule(subfuns: Sequence[Subfun]) -> None:
    """Forgets what the function stored where its rule was traced during the call: JAX allows for one of them, not both."""
    function, rule, *_ = [[store for store in fun.stores if store is not None] for fun in subfuns]
    if any(map(is_filled, rule)):
        for store in function:
            store.reset()


def empty(stores: Sequence[Any]) -> None:
    """Forgets what a call has stored, so that the call can be made again."""
    for store in filter(None, stores):  # None, and one that is empty, are false
        store.reset()


def are_filled(stores: Sequence[Any]) -> bool:
    """Whether a call has stored what its caller reads of it."""
    return all([bool(store) for store in stores if store is not None])


def is_filled(store: Any) -> bool:
    try:
        return store.val is not None
    except Exception:  # JAX's StoreException
        return False


def _traced_rule(traced: Any, stores: Sequence[Any], stored: Sequence[Any], *nonzero: bool) -> Any:
    for store, value in zip(stores, stored, strict=True):
        store.reset()
        store.store(value)
    return traced


def stable_key(subfuns: Sequence[Subfun], args: Values, params: Params) -> Any:
    """A key under which what `stage` gives may be kept, or None where only tracing again can tell that it is the same.

    The functions must be JAX's own or jitted ones, whose behaviour depends on nothing but their arguments.
    """
    # what the first is wrapped in holds the static arguments, which all of them share
    wrapped_in = getattr(subfuns[0], "transforms", ())
    arguments = (*params.values(), *[x for _, extra in wrapped_in for x in extra])
    functions = [getattr(fun, "f", None) for fun in subfuns]
    if not all(map(_is_stable, functions)) or not all(_is_stable(x) for x in arguments if callable(x)):
        return None
    if within_transformation(subfuns) and any(map(_calls_others, functions)):
        return None
    transforms = [transform for transform, _ in wrapped_in]
    try:
        return (*functions, *transforms, *map(canonical.exact, arguments), *map(jax.typeof, args), trace_context())
    except UncacheableError:
        return None


def _is_stable(function: Any) -> bool:
    return isinstance(function, JitFunction) or (getattr(function, "__module__", None) or "").startswith("jax.")


def _calls_others(function: Any) -> bool:
    """Whether a function of JAX's has closed over one that is not (`jax.custom_gradient`): that may close over anything."""
    cells = getattr(function, "__closure__", None) or ()
    held = [cell.cell_contents for cell in cells if cell != _EMPTY]
    return any([callable(x) and not _is_stable(x) for x in held])


_EMPTY = types.CellType()


def function_name(fun: Any) -> str | None:
    """The name of the user's function in one of JAX's function wrappers."""
    info = getattr(fun, "debug_info", None)
    return info.func_name if info is not None else getattr(fun, "__name__", None)
