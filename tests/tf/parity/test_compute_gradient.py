"""`test.compute_gradient`: the tape's Jacobians beside those of finite differences."""

import numpy as np
from harness import error_of, parity


@parity(rtol=1e-3, atol=2e-3)
def test_one_argument(tf):
    """Two tuples of matrices, (size of the result, size of the argument)."""
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    return tf.test.compute_gradient(lambda a: a * a, [x])


@parity(rtol=1e-3, atol=2e-3)
def test_several_arguments(tf):
    """One matrix for each argument, whatever kind of value it is."""
    found = tf.test.compute_gradient(
        lambda a, b, c: tf.matmul(a, b) * c, [[[1.0, 2.0]], np.eye(2, dtype="float32"), 3.0]
    )
    return found, [type(part).__name__ for part in found]


@parity(rtol=1e-6, x64_only="the step is too small for float32")
def test_in_double_precision(tf):
    """With a step of one's own."""
    x = tf.constant([0.5, 1.5], tf.float64)
    return tf.test.compute_gradient(lambda a: tf.sin(a) * tf.reduce_sum(a), (x,), delta=1e-5)


@parity(atol=2e-3)
def test_a_wrong_gradient_shows(tf):
    """The matrices differ where a custom gradient is wrong."""

    @tf.custom_gradient
    def wrong(a):
        return a * a, lambda dy: dy * 5.0

    by_tape, by_differences = tf.test.compute_gradient(wrong, [tf.constant([1.0, 2.0])])
    return by_tape, by_differences


@parity
def test_an_argument_without_influence(tf):
    """Zeros for what the result does not depend on."""
    return tf.test.compute_gradient(lambda a, b: a * 2.0, [tf.constant([1.0]), tf.constant([2.0, 3.0])])


@parity
def test_arguments_come_in_a_list(tf):
    """A single tensor is refused."""
    return error_of(tf.test.compute_gradient, lambda a: a, tf.constant([1.0]))


@parity(rtol=1e-2, atol=1e-2)
def test_a_complex_argument(tf):
    """Real and imaginary parts count as columns and rows of their own."""
    z = tf.constant([1.0 + 2.0j], tf.complex64)
    return tf.test.compute_gradient(lambda a: a * a, [z])
