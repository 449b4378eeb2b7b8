"""Layers in float16 with loss scaling, their weights in float32: 12 steps."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
x, y = rng.normal(size=(48, 16)).astype("float32"), rng.integers(0, 4, 48)
shapes = [(16, 32), (32,), (32, 32), (32,), (32,), (32, 4), (4,)]
variables = [tf.Variable(rng.normal(0, 0.2, shape).astype("float32")) for shape in shapes]
scale = 1024.0


def model(x):
    w1, b1, w2, b2, g, w3, b3 = [tf.cast(v, tf.float16) for v in variables]
    h = tf.nn.relu(tf.matmul(x, w1) + b1)
    h = tf.nn.gelu(tf.matmul(h, w2) + b2)
    mean, variance = tf.nn.moments(h, axes=-1, keepdims=True)
    h = (h - mean) * tf.math.rsqrt(variance + tf.constant(1e-3, tf.float16)) * (1 + g)
    return tf.cast(tf.matmul(tf.nn.dropout(h, 0.1), w3) + b3, tf.float32)


for step in range(12):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=model(tf.cast(x, tf.float16)))
        )
        scaled = loss * scale
    gradients = [g / scale for g in tape.gradient(scaled, variables)]
    if all(bool(tf.reduce_all(tf.math.is_finite(g))) for g in gradients):
        for v, g in zip(variables, gradients, strict=True):
            v.assign_sub(0.1 * g)
    if step % 4 == 0:
        print(step, float(loss))
