"""execution/rewriting.py: divisions that XLA would compute as products with the reciprocal."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf
from tapejax.execution import rewriting, trial
from tapejax.jaxprs import contents

QUOTIENTS = {
    "a number": (lambda x: x / 41.0, (3,)),
    "a function's": (lambda x: tf.divide(x, 41.0), (3,)),
    "a tensor of no axes": (lambda x: tf.math.truediv(x, tf.constant(41.0)), (3,)),
    "one for each column": (lambda x: x / tf.fill([3], 41.0), (2, 3)),
    "one for each row": (lambda x: x / tf.fill([2, 1], 41.0), (2, 3)),
    "a variable": (lambda x: x / tf.Variable(41.0), (3,)),
    "no NaN": (lambda x: tf.math.divide_no_nan(x, tf.constant(41.0)), (3,)),
    "of real numbers": (lambda x: tf.realdiv(x, 41.0), (3,)),
}


@pytest.fixture(params=["at first", "always"])
def compiled(request, monkeypatch):
    """Operations are run by NumPy at first, or compiled from the first run on."""
    monkeypatch.setattr(trial, "enabled", request.param == "at first")


@pytest.mark.parametrize("name", QUOTIENTS)
def test_a_quotient_is_one(name, compiled):
    divide, shape = QUOTIENTS[name]
    x = tf.constant(np.full(shape, 41.0, np.float32))
    np.testing.assert_array_equal(tf.floor(divide(x)), np.ones(shape))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.floor(divide(x)) * x
    np.testing.assert_array_equal(tape.gradient(y, x), np.ones(shape))


def test_a_quotient_stays_what_it_is_when_it_is_compiled():
    x = tf.constant([41.0, 82.0, 123.0])
    seen = {tuple(tf.floor(x / 41.0).numpy()) for _ in range(1200)}
    assert seen == {(1.0, 2.0, 3.0)}


def test_a_mean_is_the_sum_over_the_number(compiled):
    for n in (41, 47, 55, 82):
        assert float(tf.floor(tf.reduce_mean(tf.ones(n)))) == 1.0
        assert float(tf.function(lambda x: tf.floor(tf.reduce_mean(x) / 41.0))(tf.fill([n], 41.0))) == 1.0


def test_what_jax_is_asked_for_has_jaxs_bits(monkeypatch):
    monkeypatch.setattr(trial, "enabled", False)
    x = jnp.arange(1.0, 100.0)
    for fn in (lambda x: x / 41.0, lambda x: jnp.divide(x, jnp.float32(41.0)), jnp.mean, jax.jit(lambda x: x / 3.0)):
        with tf.GradientTape():
            inside = fn(x)
        np.testing.assert_array_equal(inside, fn(x))


def test_the_derivative_of_a_quotient_is_a_quotient(compiled):
    x, c = tf.constant(np.float32([1.0, 2.0])), tf.constant(41.0)
    for _ in range(3):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x / c
        g = tape.gradient(y, x, output_gradients=tf.constant([41.0, 82.0]))
        np.testing.assert_array_equal(tf.floor(g), [1.0, 2.0])


def test_what_divides_anyway_is_left_alone():
    x = jnp.ones((2, 3))
    for fn in (lambda x: x / x, lambda x: 1.0 / x, lambda x: x / 4.0, lambda x: jnp.full((2, 3), 3) // x.astype(int)):
        program = jax.make_jaxpr(fn)(x)
        assert contents.contains(program, "div") and rewriting.rewritten(program) is program
    program = jax.make_jaxpr(lambda x, c: x / c)(x + 1j, jnp.complex64(3))
    assert rewriting.rewritten(program) is program


def test_where_nothing_is_compiled():
    fn = jax.jit(rewriting.rewriting(lambda x, c: x / c))
    with jax.disable_jit():
        np.testing.assert_allclose(fn(jnp.ones(3), 41.0), np.ones(3) / 41, rtol=1e-6)
    np.testing.assert_array_equal(fn(jnp.full(3, 41.0), 41.0), np.ones(3))


def test_in_a_loop_and_in_a_call():
    def fn(x, c):
        return jax.lax.fori_loop(0, 2, lambda _, y: jax.jit(jnp.divide)(y, c) * c, x)

    x, c = jnp.float32([41.0, 82.0]), jnp.float32(41.0)
    program = jax.make_jaxpr(fn)(x, c)
    changed = rewriting.rewritten(program)
    assert changed is not program and rewriting.rewritten(changed) is changed
    np.testing.assert_array_equal(jax.jit(rewriting.rewriting(fn))(x, c), x)
