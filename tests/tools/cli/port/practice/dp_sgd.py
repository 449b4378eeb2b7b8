"""Differentially private SGD: a gradient for each example, clipped, summed, and noise."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(12)
CLIP, NOISE, RATE, LOT = 1.0, 0.6, 0.2, 32

rng = np.random.default_rng(0)
features = rng.normal(size=(400, 6)).astype("float32")
labels = (features @ rng.normal(size=6) > 0).astype("float32")

w1 = tf.Variable(tf.random.normal([6, 8], stddev=0.4), name="w1")
b1 = tf.Variable(tf.zeros([8]), name="b1")
w2 = tf.Variable(tf.random.normal([8, 1], stddev=0.4), name="w2")
variables = [w1, b1, w2]


def logits(x):
    return tf.matmul(tf.nn.relu(tf.matmul(x, w1) + b1), w2)[:, 0]


def example_gradients(example):
    x, y = example
    with tf.GradientTape() as tape:
        loss = tf.nn.sigmoid_cross_entropy_with_logits(labels=y[None], logits=logits(x[None]))
    return tape.gradient(loss, variables)


def clipped(gradients):
    """Each example's gradient with a norm of at most `CLIP`, over all variables."""
    squares = [tf.reduce_sum(tf.reshape(g, [LOT, -1]) ** 2, axis=1) for g in gradients]
    factors = tf.minimum(1.0, CLIP / tf.sqrt(tf.add_n(squares) + 1e-12))
    return [tf.einsum("i,i...->i...", factors, g) for g in gradients]


def private_step(x, y, noise):
    gradients = clipped(tf.vectorized_map(example_gradients, (x, y)))
    for variable, gradient, n in zip(variables, gradients, noise):
        total = tf.reduce_sum(gradient, axis=0) + CLIP * NOISE * n
        variable.assign_sub(RATE * total / LOT)


def accuracy():
    return np.mean((logits(tf.constant(features)).numpy() > 0) == (labels > 0.5))


for step in range(22):
    lot = rng.choice(400, LOT, replace=False)
    noise = [tf.constant(rng.normal(size=v.shape), tf.float32) for v in variables]
    private_step(tf.constant(features[lot]), tf.constant(labels[lot]), noise)
    if step % 7 == 0:
        print(step, accuracy())
