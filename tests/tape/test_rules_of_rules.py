"""Rules that call other functions with rules: told apart though all their programs are equal, and differentiated as by JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import tapejax as tf


def by_jvp(n):
    """A sine whose derivative is the next function of a chain, another sine; the last one's is the exponential."""
    f = jax.custom_jvp(lambda x: jnp.sin(x))
    following = by_jvp(n - 1) if n else jnp.exp
    f.defjvp(lambda primals, tangents: (f(*primals), following(*primals) * tangents[0]))
    return f


def by_vjp(n):
    f = jax.custom_vjp(lambda x: jnp.sin(x))
    following = by_vjp(n - 1) if n else jnp.exp
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (following(x) * ct,))
    return f


def by_one_backward_pass(n):
    """The rules of the chain share one function that pulls back; the forward passes differ."""

    def backward(residuals, ct):
        return (residuals * ct,)

    def link(n):
        f = jax.custom_vjp(lambda x: jnp.sin(x))
        following = link(n - 1) if n else jnp.exp
        f.defvjp(lambda x: (f(x), following(x)), backward)
        return f

    return link(n)


def by_static_argument_of_jvp(n):
    f = jax.custom_jvp(lambda n, x: jnp.sin(x), nondiff_argnums=(0,))

    @f.defjvp
    def rule(n, primals, tangents):
        return f(n, *primals), (f(n - 1, *primals) if n else jnp.exp(*primals)) * tangents[0]

    return lambda x: f(n, x)


def by_static_argument_of_vjp(n):
    f = jax.custom_vjp(lambda n, x: jnp.sin(x), nondiff_argnums=(0,))
    f.defvjp(lambda n, x: (f(n, x), x), lambda n, x, ct: ((f(n - 1, x) if n else jnp.exp(x)) * ct,))
    return lambda x: f(n, x)


@jax.tree_util.register_static
class Left(int):
    """A number of derivatives, part of an argument's structure."""


def by_structure_of_an_argument(n):
    f = jax.custom_jvp(lambda n, x: jnp.sin(x))

    @f.defjvp
    def rule(primals, tangents):
        n, x = primals
        return f(n, x), (f(Left(n - 1), x) if n else jnp.exp(x)) * tangents[1]

    return lambda x: f(Left(n), x)


CHAINS = [
    by_jvp,
    by_vjp,
    by_one_backward_pass,
    by_static_argument_of_jvp,
    by_static_argument_of_vjp,
    by_structure_of_an_argument,
]
PLACES = {
    "jit": jax.jit,
    "scan": lambda f: lambda x: lax.scan(lambda y, _: (f(y), None), x, None, 2)[0],
    "cond": lambda f: lambda x: lax.cond(x > 0, f, jnp.cos, x),
    "vmap": lambda f: lambda x: jnp.sum(jax.vmap(f)(jnp.stack([x, 2 * x]))),
}


def by_tape(f):
    def derivative(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    return derivative


def by_accumulator(f):
    def derivative(x):
        with tf.autodiff.ForwardAccumulator(x, jnp.ones_like(x)) as accumulator:
            y = f(x)
        return accumulator.jvp(y)

    return derivative


def by_jax_jvp(f):
    return lambda x: jax.jvp(f, (x,), (jnp.ones_like(x),))[1]


def check(derivative, known, f, wide):
    with jax.enable_x64(wide):
        x, ours, expected = jnp.asarray(0.7), f, f
        for _ in range(4):
            ours, expected = derivative(ours), known(expected)
            for _ in range(2):  # recorded, then recognised
                np.testing.assert_allclose(ours(x), expected(x), rtol=1e-12 if wide else 1e-5)


WIDE = pytest.mark.parametrize("wide", [False, True])


@WIDE
@pytest.mark.parametrize("chain", CHAINS)
def test_tapes_inside_one_another(chain, wide):
    check(by_tape, jax.grad, chain(2), wide)


@WIDE
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("chain", [by_jvp, by_vjp])
def test_tapes_around_a_program(chain, place, wide):
    check(by_tape, jax.grad, PLACES[place](chain(2)), wide)


@WIDE
@pytest.mark.parametrize("chain", [by_jvp, by_static_argument_of_jvp, by_structure_of_an_argument])
def test_accumulators_inside_one_another(chain, wide):
    check(by_accumulator, by_jax_jvp, chain(2), wide)


@WIDE
@pytest.mark.parametrize("place", PLACES)
def test_accumulators_around_a_program(place, wide):
    check(by_accumulator, by_jax_jvp, PLACES[place](by_jvp(2)), wide)
