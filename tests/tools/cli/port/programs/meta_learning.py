"""MAML: the gradient through a step of gradient descent on another task's data."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(5)
weights = [
    tf.Variable(rng.normal(0, 0.5, (1, 10)), dtype=tf.float32, name="w1"),
    tf.Variable(tf.zeros([10]), name="b1"),
    tf.Variable(rng.normal(0, 0.3, (10, 1)), dtype=tf.float32, name="w2"),
]
meta_optimizer = tf.keras.optimizers.Adam(0.02)


def forward(x, weights):
    w1, b1, w2 = weights
    return tf.tanh(x @ w1 + b1) @ w2


def task():
    amplitude, phase = rng.uniform(0.5, 2.0), rng.uniform(0, np.pi)
    x = rng.uniform(-3, 3, (2, 8, 1)).astype("float32")
    return x, (amplitude * np.sin(x + phase)).astype("float32")


for iteration in range(12):
    x, y = task()
    x_support, x_query = tf.constant(x[0]), tf.constant(x[1])
    y_support, y_query = tf.constant(y[0]), tf.constant(y[1])
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            support_loss = tf.reduce_mean((forward(x_support, weights) - y_support) ** 2)
        gradients = inner.gradient(support_loss, weights)
        adapted = [w - 0.1 * g for w, g in zip(weights, gradients)]
        query_loss = tf.reduce_mean((forward(x_query, adapted) - y_query) ** 2)
    meta_gradients = outer.gradient(query_loss, weights)
    meta_optimizer.apply_gradients(zip(meta_gradients, weights))
    print(f"{iteration}: before {support_loss:.4f}, after {query_loss:.4f}")
