"""The pullback and the pushforward of a function of flat arrays, for some of its inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from . import contents
from .fence import zeros_of
from .types import Function, Positions, Values


def pull_back(
    fn: Function, active_ins: Positions, active_outs: Positions, of: Positions, *flat: Any
) -> tuple[Any, ...]:
    """From the inputs of `fn` and the cotangents of its active outputs those of its active inputs.

    It is differentiated with respect to the inputs `of`, which the active ones are among.
    """
    split = len(flat) - len(active_outs)
    inputs, cotangents = flat[:split], flat[split:]
    back = jax.vjp(restricted(fn, inputs, of, active_outs), *[inputs[i] for i in of])[1](list(cotangents))
    return tuple([x for i, x in zip(of, back, strict=True) if i in active_ins])


def push_forward(fn: Function, active_ins: Positions, active_outs: Positions, of: Positions, *flat: Any) -> list[Any]:
    """From the inputs of `fn` and the tangents of its active inputs those of its active outputs.

    The other inputs `of` have tangents of zero, which are not symbolic.
    """
    split = len(flat) - len(active_ins)
    inputs, tangent_of = flat[:split], dict(zip(active_ins, flat[split:], strict=True))
    at = restricted(fn, inputs, of, active_outs)
    primals = [inputs[i] for i in of]
    tangents = [tangent_of[i] if i in tangent_of else zeros_of(jax.typeof(inputs[i]).to_tangent_aval()) for i in of]
    if _pulls_only(at, primals):
        # The pullback of a custom_vjp is all that is known; it is linear, and its transpose is the pushforward. Of one that is
        # not, it is taken at ones, as by TensorFlow.
        outputs, pull = jax.vjp(at, *primals)
        return list(jax.vjp(pull, jax.tree.map(jnp.ones_like, outputs))[1](tuple(tangents))[0])
    return list(jax.jvp(at, primals, tangents)[1])


def restricted(fn: Function, inputs: Values, ins: Sequence[int], outs: Sequence[int] | None = None) -> Function:
    """`fn` as a function of its inputs `ins`, giving its outputs `outs`: all, if none are given."""

    def at(*xs: Any) -> list[Any]:
        full = list(inputs)
        for i, x in zip(ins, xs, strict=True):
            full[i] = x
        outputs = jax.tree.leaves(fn(*full))
        return outputs if outs is None else [outputs[j] for j in outs]

    return at


def _pulls_only(at: Function, primals: Values) -> bool:
    """Whether a ``custom_vjp`` stands in the way of forward mode."""
    traced = jax.make_jaxpr(lambda *xs: jax.jvp(at, xs, xs)[1])(*primals)
    return contents.contains(traced, "custom_lin")
