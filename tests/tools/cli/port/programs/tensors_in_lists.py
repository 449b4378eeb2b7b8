"""A two-layer network from tensors in a list, updated in a comprehension, with momentum by hand."""

import numpy as np
import tensorflow as tf

np.random.seed(7)
x_data = np.linspace(-1, 1, 32).reshape(-1, 1).astype("float32")
y_data = np.sin(3 * x_data)
params = [
    tf.constant(np.random.randn(1, 8) * 0.5, dtype=tf.float32),
    tf.zeros((8,)),
    tf.constant(np.random.randn(8, 1) * 0.5, dtype=tf.float32),
    tf.zeros((1,)),
]
velocity = [tf.zeros_like(p) for p in params]


def forward(params, x):
    w1, b1, w2, b2 = params
    return tf.tanh(x @ w1 + b1) @ w2 + b2


def step(params, velocity, x, y, lr=0.1, mu=0.9):
    with tf.GradientTape() as tape:
        tape.watch(params)
        loss = tf.reduce_mean((forward(params, x) - y) ** 2)
    grads = tape.gradient(loss, params)
    velocity = [mu * v - lr * g for v, g in zip(velocity, grads)]
    params = [p + v for p, v in zip(params, velocity)]
    return params, velocity, loss


for i in range(20):
    params, velocity, loss = step(params, velocity, x_data, y_data)
    if i % 5 == 0:
        print("iteration", i, "loss", loss.numpy())
pred = forward(params, x_data)
print("max error", np.abs(pred.numpy() - y_data).max())
