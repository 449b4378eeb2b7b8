"""What prints under a tape prints as often as under `jax.grad`: what a derivative computes anew prints nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import io_callback

import tapejax as tf
from tapejax import GradientTape

seen = []


def see(x, ordered=False):
    jax.debug.callback(lambda value: seen.append(float(value)), x, ordered=ordered)
    return x


def log(x, ordered=False):
    io_callback(lambda value: seen.append(float(value)), None, lax.stop_gradient(x), ordered=ordered)
    return x


def scanned(x):
    return lax.scan(lambda c, _: (see(c * x), None), x, length=3)[0]


@jax.custom_vjp
def with_vjp(x):
    return see(x) ** 2


with_vjp.defvjp(lambda x: (see(x) ** 2, x), lambda x, g: (see(2 * x * g),))


@jax.custom_jvp
def with_jvp(x):
    return see(x) ** 2


with_jvp.defjvp(lambda primals, tangents: (with_jvp(*primals), 2 * primals[0] * tangents[0]))


def with_ref(x):
    ref = jax.new_ref(jnp.zeros(()))
    for _ in range(2):
        ref[...] += see(x * x)
    return ref[...] * x


PROGRAMS = {
    "jit": jax.jit(lambda x: see(x * x) * x),
    "ordered": jax.jit(lambda x: see(x * x, ordered=True) * x),
    "closure": lambda x: (lambda y: jax.jit(lambda z: see(z * y) * y)(x))(jnp.sin(x)),
    "scan": scanned,
    "jitted scan": jax.jit(scanned),
    "cond": lambda x: lax.cond(x > 1.0, lambda x: see(x * x), lambda x: x, x),
    "checkpoint": jax.checkpoint(lambda x: jnp.sin(see(x * x))),
    "custom_vjp": with_vjp,
    "custom_vjp in jit": jax.jit(lambda x: with_vjp(x * x)),
    "custom_jvp in jit": jax.jit(lambda x: with_jvp(x * x)),
    "log": jax.jit(lambda x: log(x * x) * x),
    "ordered log": jax.jit(lambda x: log(x * x, ordered=True) * x),
    "log in cond": lambda x: lax.cond(x > 1.0, lambda x: log(x * x), lambda x: x, x),
    "log in function": tf.function(lambda x: log(x * x) * x),
    "a ref": jax.jit(with_ref),
    "plain": lambda x: see(x * x) * x,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_printed_once(name):
    f, x = PROGRAMS[name], jnp.float32(1.5)

    def printed(derivative):
        seen.clear()
        found = derivative()
        jax.effects_barrier()
        return float(found), sorted(seen)

    def by_tape():
        with GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    expected, counts = printed(lambda: jax.grad(f)(x))
    found, actual = printed(by_tape)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    # JAX shows what a checkpoint computes again, to those who want to see that it does
    np.testing.assert_allclose(actual, counts[:1] if name == "checkpoint" else counts, rtol=1e-6)


def test_a_rule_that_calls_its_function_again():
    """It is traced where it is asked for: such a rule holds another one, and so on without end."""
    calls = []

    @jax.custom_vjp
    def square(x):
        return see(x) ** 2

    def forward(x):
        calls.append(x)
        return square(x), x

    square.defvjp(forward, lambda x, g: (2 * x * g,))
    x = jnp.float32(1.5)
    seen.clear()
    with GradientTape() as outer:
        outer.watch(x)
        with GradientTape() as tape:
            tape.watch(x)
            y = jax.jit(square)(x)
        first = tape.gradient(y, x)
    second = outer.gradient(first, x)
    jax.effects_barrier()
    assert (first, second, seen) == (3, 2, [1.5])
    assert len(calls) < 20
