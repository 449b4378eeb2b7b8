"""A Gaussian process: its three parameters by 20 steps on the marginal likelihood, and its mean at new points."""

import numpy as np
import tensorflow as tf

rng = np.random.RandomState(0)
x = tf.constant(np.sort(rng.uniform(-3.0, 3.0, [24, 1])), tf.float32)
y = tf.sin(x) + 0.1 * tf.constant(rng.normal(size=[24, 1]), tf.float32)
length, signal, noise = [tf.Variable(value) for value in (0.0, 0.0, -1.0)]
variables = [length, signal, noise]


def covariance(a, b):
    return tf.exp(signal - 0.5 * tf.square((a - tf.transpose(b)) / tf.exp(length)))


def factor():
    return tf.linalg.cholesky(covariance(x, x) + (tf.exp(noise) + 1e-3) * tf.eye(24))


for step in range(20):
    with tf.GradientTape() as tape:
        root = factor()
        whitened = tf.linalg.triangular_solve(root, y, lower=True)
        loss = 0.5 * tf.reduce_sum(whitened**2) + tf.reduce_sum(tf.math.log(tf.linalg.diag_part(root)))
    for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
        variable.assign_sub(0.02 * gradient)
    if step % 10 == 0:
        print(step, float(loss))

new = tf.reshape(tf.linspace(-3.0, 3.0, 5), [5, 1])
print(tf.matmul(covariance(new, x), tf.linalg.cholesky_solve(factor(), y)).numpy().round(2).ravel())
