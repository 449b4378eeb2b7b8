import numpy as np
import tensorflow as tf

w = tf.Variable([1.0, -1.0])
rng = np.random.default_rng(0)


def example_gradient(row):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((row * w) ** 2)
    return tape.gradient(loss, w)


for _ in range(5):
    rows = tf.constant(rng.normal(size=(4, 2)), tf.float32)
    gradients = tf.vectorized_map(example_gradient, rows)
    w.assign_sub(0.01 * tf.reduce_mean(gradients, 0))
