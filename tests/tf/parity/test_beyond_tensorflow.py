"""What TensorFlow refuses, leaves out or rounds, and tapejax computes: rows of docs/differences.md."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from harness import parity

import tapejax

PIXELS = (np.arange(16, dtype="float32") ** 1.5 / 10).reshape(1, 4, 4, 1)
NUMBERS = np.array([0.5, -2.0, 3.0], "float32")


def second(tf, function, x):
    """The gradient of the sum of the gradient of ``function(x)``."""
    x = tf.Variable(x)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = function(x)
        first = inner.gradient(y, x)
    try:
        return outer.gradient(first, x)
    except LookupError:
        return "LookupError"


def resized(tf, method):
    return lambda x: tf.reduce_sum(tf.image.resize(x, [3, 5], method=method) ** 2)


def softsign(tf):
    return lambda x: tf.reduce_sum(tf.nn.softsign(x))


@parity(differs="TensorFlow's second derivative is None; here it is taken")
def test_the_second_derivative_of_a_bilinear_resize(tf):
    return second(tf, resized(tf, "bilinear"), PIXELS)


@parity(differs="TensorFlow has no second derivative, LookupError; here it is taken")
def test_the_second_derivative_of_a_bicubic_resize(tf):
    return second(tf, resized(tf, "bicubic"), PIXELS)


@parity(differs="TensorFlow has no second derivative, LookupError; here it is taken")
def test_the_second_derivative_of_softsign(tf):
    return second(tf, softsign(tf), NUMBERS)


@pytest.mark.parametrize("method", ["bilinear", "nearest", "bicubic", "lanczos3", "gaussian", "area"])
def test_second_derivatives_of_resize_are_jaxs(method):
    """The sum of squares of what is linear: by the product of its matrix's transpose, the matrix and ones."""
    linear = jax.jacfwd(lambda x: jnp.asarray(tapejax.image.resize(x, [3, 5], method=method)).ravel())(PIXELS).reshape(
        15, 16
    )
    found = np.ravel(second(tapejax, resized(tapejax, method), PIXELS))
    np.testing.assert_allclose(found, 2 * linear.T @ (linear @ np.ones(16)), rtol=1e-5)


def test_the_second_derivative_of_softsign_is_jaxs():
    right = jax.vmap(jax.grad(jax.grad(jax.nn.soft_sign)))(NUMBERS)
    np.testing.assert_allclose(second(tapejax, softsign(tapejax), NUMBERS), right, rtol=1e-6)


@parity(differs="a custom gradient is used under vectorized_map; TensorFlow leaves it out without a word")
def test_a_custom_gradient_under_vectorized_map(tf):
    x = tf.Variable(NUMBERS)

    @tf.custom_gradient
    def square(x):
        return x * x, lambda dy: dy * 10.0

    with tf.GradientTape() as tape:
        y = tf.vectorized_map(square, tf.convert_to_tensor(x))
    gradient = tape.gradient(y, x)
    if tf is tapejax:
        assert gradient.numpy().tolist() == [10.0, 10.0, 10.0]
    return y, gradient


@parity(differs="a variable that a py_function uses, and is not given, has its gradient; in TensorFlow None")
def test_a_variable_that_a_py_function_uses(tf):
    w, x = tf.Variable(3.0), tf.Variable(2.0)

    def product(x):
        return tf.py_function(lambda a: a * w, [x], tf.float32)

    found = []
    for run in (product, tf.function(product)):
        with tf.GradientTape() as tape:
            y = run(x)
        found.append(tape.gradient(y, [x, w]))
    if tf is tapejax:
        assert [[float(g) for g in gradients] for gradients in found] == [[3.0, 2.0]] * 2
    return found


@parity(differs="a quotient by a constant in a function is a quotient; TensorFlow multiplies by the reciprocal")
def test_a_quotient_by_a_constant_in_a_function(tf):
    x = tf.constant([41.0, 82.0, 123.0])
    run = tf.function(lambda x: tf.floor(x / 41.0))
    found = [run(x) for _ in range(3)]
    eager = tf.floor(x / 41.0)
    assert eager.numpy().tolist() == [1.0, 2.0, 3.0]
    if tf is tapejax:
        assert [each.numpy().tolist() for each in found] == [[1.0, 2.0, 3.0]] * 3
    return found
