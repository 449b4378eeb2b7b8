"""Reverse mode through ``while``: JAX's own `while_loop` has none, because it keeps no intermediate states.

`while_loop` here is a scan where the number of iterations can be computed while tracing. Elsewhere it keeps `SLOTS` states,
evenly spaced, and computes the others anew from these when the gradient is asked for: for `n` iterations that is
``n * (2 + n / (2 * SLOTS))`` iterations more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp

from ...jaxprs import contents, custom_rules, evaluate, lifting, prints
from ...jaxprs.fence import Literal, Tracer, jaxpr_as_fun
from ...jaxprs.types import JaxProgram, Pytree
from ..values.types import Array

SLOTS = 64
LONGEST = 10_000_000  # more iterations are not counted while tracing: perhaps the loop has no end


def while_loop(holds: Callable, advance: Callable, start: Pytree) -> Pytree:
    """`jax.lax.while_loop`, which can be differentiated backward; forward where the number of iterations is known."""
    flat, tree = jax.tree.flatten(start)
    pack: Callable = tree.unflatten  # type: ignore[attr-defined]
    flat = [jnp.asarray(x) for x in flat]
    test = jax.make_jaxpr(lambda *arrays: [holds(pack(arrays))])(*flat)
    step = jax.make_jaxpr(lambda *arrays: jax.tree.leaves(advance(pack(arrays))))(*flat)
    if contents.asks_host(test) or contents.asks_host(step):  # it may give something else when computed anew
        return jax.lax.while_loop(holds, advance, start)
    constants = contents.constants(test) | contents.constants(step)
    test, step = (lifting.lift_jaxpr(x, constants) for x in (test, step))
    consts = list(constants.values())
    # A scan has no condition that could print.
    count = None if contents.prints(test) else _count(test, step, consts, flat)
    if count is None:
        return pack(_reversible(test, step)(consts, flat)[1])
    run = jaxpr_as_fun(step)
    return pack(jax.lax.scan(lambda carry, _: (run(*consts, *carry), None), flat, None, length=count)[0])


def _count(test: JaxProgram, step: JaxProgram, consts: Sequence[Array], start: Sequence[Array]) -> int | None:
    """How often the loop runs, if what its condition depends on is known while tracing."""
    first, needed, size = len(consts), _dependencies(test, {0}), -1
    while size != len(needed):
        size = len(needed)
        needed |= _dependencies(step, {i - first for i in needed if i >= first})
    inputs = [*consts, *start]
    if any(isinstance(inputs[i], Tracer) for i in needed):
        return None
    with jax.ensure_compile_time_eval():
        inputs = [x if i in needed else jnp.zeros(x.shape, x.dtype) for i, x in enumerate(inputs)]

        def counted(consts: Sequence[Array], start: Sequence[Array]) -> Array:
            def holds(carry: Pytree) -> Array:
                return jaxpr_as_fun(test)(*consts, *carry[1])[0] & (carry[0] < LONGEST)

            def advance(carry: Pytree) -> Pytree:
                new = jaxpr_as_fun(prints.without_prints(step))(*consts, *carry[1])
                return carry[0] + 1, [
                    b if i in needed else a for i, (a, b) in enumerate(zip(carry[1], new, strict=True), first)
                ]

            return jax.lax.while_loop(holds, advance, (0, start))[0]

        count = int(jax.jit(counted)(inputs[:first], inputs[first:]))
    return None if count == LONGEST else count


def _dependencies(closed: JaxProgram, outputs: set[int]) -> set[int]:
    """The inputs that the outputs at these places are computed of."""
    jaxpr = contents.open_jaxpr(closed)
    wanted = [jaxpr.outvars[i] for i in outputs]
    equations = [eqn for eqn, _ in evaluate.needed(closed, wanted)]
    read = {x for x in (*wanted, *[x for eqn in equations for x in eqn.invars]) if not isinstance(x, Literal)}
    return {i for i, x in enumerate(jaxpr.invars) if x in read}


def _reversible(test: JaxProgram, step: JaxProgram) -> Callable:
    """The loop of two programs that take constants and state and return whether to go on, and the next state.

    It gives the number of its iterations, and the last state.
    """

    @jax.custom_vjp
    def loop(consts: Sequence[Array], start: Sequence[Array]) -> Pytree:
        def holds(carry: Pytree) -> Array:
            return jaxpr_as_fun(test)(*consts, *carry[1])[0]

        def advance(carry: Pytree) -> Pytree:
            return carry[0] + 1, jaxpr_as_fun(step)(*consts, *carry[1])

        return jax.lax.while_loop(holds, advance, (jnp.int32(0), start))

    run = jaxpr_as_fun(prints.without_prints(step))  # what is computed anew is not printed again

    def forward(consts: Sequence[Array], start: Sequence[Array]) -> tuple:
        count, end = loop(consts, start)  # which a second derivative takes backward once more
        return (count, end), (consts, start, count)

    def backward(kept: tuple, results: tuple) -> tuple:
        consts, start, count = kept
        cotangents = results[1]
        stride = (count + SLOTS - 1) // SLOTS

        def keep(carry: Pytree) -> Pytree:
            i, state, slots = carry
            place = i // stride
            slots = [
                s.at[place].set(jnp.where(i % stride == 0, x, s[place])) for s, x in zip(slots, state, strict=True)
            ]
            return i + 1, run(*consts, *state), slots

        slots = [jnp.zeros((SLOTS, *jnp.shape(x)), x.dtype) for x in start]  # a literal has no shape
        slots = while_loop(lambda carry: carry[0] < count, keep, (jnp.int32(0), start, slots))[2]
        smooth = [jnp.issubdtype(x.dtype, jnp.inexact) for x in start]
        smooth_consts = [jnp.issubdtype(x.dtype, jnp.inexact) for x in consts]

        def pull(carry: Pytree) -> Pytree:
            i, to_state, to_consts = carry
            place = i // stride
            begin = place * stride, [s[place] for s in slots]
            state = while_loop(lambda c: c[0] < i, lambda c: (c[0] + 1, run(*consts, *c[1])), begin)[1]

            def moved(some_consts: Sequence[Array], some_state: Sequence[Array]) -> list[Array]:
                arguments = _joined(smooth_consts, consts, some_consts) + _joined(smooth, state, some_state)
                return _chosen(smooth, run(*arguments))

            pullback = jax.vjp(moved, _chosen(smooth_consts, consts), _chosen(smooth, state))[1]
            more, to_state = pullback(to_state)
            return i - 1, to_state, [a + b for a, b in zip(to_consts, more, strict=True)]

        zeros = [jnp.zeros_like(x) for x in _chosen(smooth_consts, consts)]
        first = count - 1, _chosen(smooth, cotangents), zeros
        _, to_state, to_consts = while_loop(lambda carry: carry[0] >= 0, pull, first)
        none = [None] * max(len(consts), len(start))
        return _joined(smooth_consts, none[: len(consts)], to_consts), _joined(smooth, none[: len(start)], to_state)

    loop.defvjp(forward, backward)
    backward.composed = custom_rules.Composed((test, step), _flat_loop)  # type: ignore[attr-defined]
    return loop


def _flat_loop(test: JaxProgram, step: JaxProgram) -> Callable:
    loop, count = _reversible(test, step), len(step.in_avals) - len(step.out_avals)
    return lambda *flat: loop(list(flat[:count]), list(flat[count:]))


def _chosen(mask: Sequence[bool], values: Sequence[Array]) -> list[Array]:
    return [x for x, there in zip(values, mask, strict=True) if there]


def _joined(mask: Sequence[bool], values: Sequence[Array], chosen: Sequence[Array]) -> list[Array]:
    """`values` with `chosen` in the places that `mask` marks."""
    left = iter(chosen)
    return [next(left) if there else x for x, there in zip(values, mask, strict=True)]
