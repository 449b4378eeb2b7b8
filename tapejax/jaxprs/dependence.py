"""Which inputs the derivative of an output depends on, and what kinds of values have one."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from . import contents
from .canonical import open_jaxpr
from .derivatives import restricted
from .fence import ConcreteArray, Literal, Ref, RefType, jaxpr_as_fun, tangent_dtype, user_type
from .types import Atom, Equation, Function, JaxProgram, Params, Positions, Value, Values

SCALARS = frozenset((float, int, bool, complex))


# ---- kinds of values ------------------------------------------------------------------------------------------------


def kind_of(value: Value) -> Any:
    """What a program may depend on of an input: its type, as JAX sees it."""
    kind: Any = type(value)
    if kind is ConcreteArray:
        return value.aval
    if kind in SCALARS:
        return kind
    if isinstance(value, jax.Array):
        return value.aval
    return jax.typeof(value) if hasattr(value, "dtype") else user_type(value) or kind


def has_tangent(x: Value) -> bool:
    """Whether the value `x` has a tangent: an array, of NumPy's as well, or a Python number, of floats or complex numbers."""
    return type_has_tangent(x if hasattr(x, "dtype") else user_type(x) or type(x))


def type_has_tangent(kind: Any) -> bool:
    """The same for the values of a type, which `kind_of` gives; a type of the user's may have a tangent, too."""
    if not hasattr(kind, "dtype"):
        if not hasattr(kind, "to_tangent_aval"):
            return kind is float or kind is complex
        kind = kind.to_tangent_aval()
    if not hasattr(kind, "dtype"):
        return True
    letter = getattr(kind.dtype, "kind", "V")  # JAX's own dtypes have none
    return letter in _INEXACT or letter not in _DISCRETE and tangent_dtype(kind.dtype) != jax.dtypes.float0


_INEXACT, _DISCRETE = frozenset("fc"), frozenset("biu")


def is_key(kind: Any) -> bool:
    """Whether it is of one of JAX's own dtypes, such as the keys of random numbers, which are no numbers."""
    return hasattr(kind, "dtype") and jnp.issubdtype(kind.dtype, jax.dtypes.extended)


# ---- links ----------------------------------------------------------------------------------------------------------


class Links(NamedTuple):
    """For each output of an operation the inputs that its derivative depends on; whether a rule may be told what is perturbed."""

    by: tuple[frozenset[int], ...]
    by_perturbation: bool


def links(fn: Function, inputs: Values, outputs: Values, perturbed: Positions | None = None) -> Links:
    """The `Links` of ``outputs = fn(*inputs)``. Where a rule may be told which inputs are perturbed, it is told `perturbed`.

    JAX decides: the tangent of an output that does not depend on an input, or only through integers, ``floor``,
    ``stop_gradient``..., is a symbolic zero. What cannot be differentiated is taken to depend on everything.
    """
    inexact = [
        i
        for i, x in enumerate(inputs)
        if type(x) not in SCALARS and has_tangent(x) and (perturbed is None or i in perturbed)
    ]
    wanted = [*map(has_tangent, outputs)]
    by_perturbation = perturbed is not None

    def tangents_out(primals: list[Any], tangents: list[Any]) -> list[Any]:
        at = restricted(fn, primals, inexact, [j for j, out in enumerate(wanted) if out])
        return list(jax.jvp(at, [primals[i] for i in inexact], tangents)[1])

    try:
        if not by_perturbation:
            program = jax.make_jaxpr(fn)(*inputs)
            fn, by_perturbation = jaxpr_as_fun(program), contents.tells_zeros(program)
        closed = jax.make_jaxpr(tangents_out)(list(inputs), [inputs[i] for i in inexact])
    except Exception:  # of any type: rules are the user's. The sweep raises it again, if a gradient is to pass
        return Links(everything(inputs, outputs), True)
    reached = iter(_propagate(closed, [0] * len(inputs) + [1 << i for i in inexact]))
    masks = [next(reached) if out else 0 for out in wanted]
    return Links(tuple([frozenset(i for i in inexact if mask >> i & 1) for mask in masks]), by_perturbation)


def everything(inputs: Values, outputs: Values, start: int = 0) -> tuple[frozenset[int], ...]:
    """Each output that may carry gradient depends on all such inputs from `start` on. A ``jax.Ref`` does: its pullback raises."""
    ins, outs = ([isinstance(x, Ref) or has_tangent(x) for x in xs] for xs in (inputs, outputs))
    by = frozenset(i for i, carries in enumerate(ins) if carries and i >= start)
    return tuple([by if carries else frozenset() for carries in outs])


def equation_links(eqn: Equation) -> tuple[frozenset[int], ...]:
    """`links` of one equation of a jaxpr."""
    params = eqn.primitive.get_bind_params(eqn.params)
    specs = [v.val if isinstance(v, Literal) else v.aval for v in eqn.invars]
    return links(lambda *xs: eqn.primitive.bind(*xs, **params), specs, [v.aval for v in eqn.outvars]).by


def _propagate(jaxpr: JaxProgram, masks: Sequence[int]) -> list[int]:
    """Which inputs reach each output of `jaxpr`, as bit masks."""
    jaxpr = open_jaxpr(jaxpr)
    env: dict[Any, int] = dict(zip(jaxpr.invars, masks, strict=True))

    def read(atom: Atom) -> int:
        return 0 if isinstance(atom, Literal) else env.get(atom, 0)

    for eqn in jaxpr.eqns:
        ins = [read(x) for x in eqn.invars]
        inner = eqn.params.get("jaxpr") or eqn.params.get("call_jaxpr")
        if not any(ins):
            outs = [0] * len(eqn.outvars)
        elif refs := [x for x in eqn.invars if isinstance(x.aval, RefType)]:  # what is written there is read later
            outs = [functools.reduce(int.__or__, ins)] * len(eqn.outvars)
            env.update(dict.fromkeys(refs, functools.reduce(int.__or__, ins)))
        elif eqn.primitive.name == "scan":
            outs = _propagate_scan(eqn.params, ins)
        elif eqn.primitive.name == "cond":
            branches = [_propagate(branch, ins[1:]) for branch in eqn.params["branches"]]
            outs = [functools.reduce(int.__or__, masks) for masks in zip(*branches, strict=True)]
        elif inner is not None and _are_counted(inner, eqn):
            outs = _propagate(inner, ins)
        else:
            outs = [functools.reduce(int.__or__, ins)] * len(eqn.outvars)
        env.update(zip(eqn.outvars, outs, strict=True))
    return [read(x) for x in jaxpr.outvars]


def _are_counted(inner: JaxProgram, eqn: Equation) -> bool:
    """Whether the inputs and results of `inner`, a parameter of `eqn`, are as many as those of `eqn`."""
    inner = open_jaxpr(inner)
    return len(inner.invars) == len(eqn.invars) and len(inner.outvars) == len(eqn.outvars)


def _propagate_scan(params: Params, ins: list[int]) -> list[int]:
    # What is carried has come round any number of times: repeat until an iteration adds nothing.
    consts, carry = contents.scan_counts(params)
    while True:
        outs = _propagate(params["jaxpr"], ins)
        merged = list(ins)
        for i in range(carry):
            merged[consts + i] |= outs[i]
        if merged == ins:
            return outs
        ins = merged
