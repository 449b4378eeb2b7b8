"""Second derivatives of variances against finite differences of the first."""

import jax
import numpy as np
import pytest

import tapejax as tf

X = np.array([1.0, 2.0, 4.0, 7.0])
VARIANCES = {
    "moments": lambda x: tf.nn.moments(x, [0])[1],
    "moments-keepdims": lambda x: tf.nn.moments(x, [0], keepdims=True)[1][0],
    "reduce_variance": tf.math.reduce_variance,
    "reduce_std": lambda x: tf.math.reduce_std(x) ** 2,
    "batch_normalization": lambda x: tf.nn.batch_normalization(x, *tf.nn.moments(x, [0]), None, None, 1e-3) ** 3,
    "standardized-image": lambda x: tf.cast(tf.image.per_image_standardization(tf.reshape(x, [2, 2, 1])), x.dtype) ** 3,
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "function"])
@pytest.mark.parametrize("name", VARIANCES)
def test_against_finite_differences(name, compiled):
    def first(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.reshape(tf.sin(x), [2, 2, 1]) / (4 + tf.reshape(VARIANCES[name](x), [-1, 1, 1])[:1]))
        return tf.reduce_sum(tape.gradient(y, x) ** 2)

    with jax.enable_x64(True):
        first = tf.function(first) if compiled else first
        x = tf.constant(X)
        with tf.GradientTape() as outer:
            outer.watch(x)
            y = first(x)
        found = outer.gradient(y, x).numpy()
        step = 1e-3 if name == "standardized-image" else 1e-5  # it is computed in single precision
        steps = step * np.eye(4)
        expected = [(float(first(tf.constant(X + h))) - float(first(tf.constant(X - h)))) / (2 * step) for h in steps]
    np.testing.assert_allclose(found, expected, rtol=1e-2 if name == "standardized-image" else 1e-6, atol=1e-7)
