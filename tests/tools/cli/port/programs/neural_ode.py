"""A neural differential equation: a network is the slope, and Runge and Kutta's method integrates it."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(10)
w1 = tf.Variable(rng.normal(0, 0.5, (2, 12)), dtype=tf.float32)
w2 = tf.Variable(rng.normal(0, 0.2, (12, 2)), dtype=tf.float32)
optimizer = tf.keras.optimizers.Adagrad(0.1)


def slope(z):
    return tf.tanh(z**3 @ w1) @ w2


def integrate(z, steps=6, h=0.1):
    path = [z]
    for _ in range(steps):
        k1 = slope(z)
        k2 = slope(z + h / 2 * k1)
        k3 = slope(z + h / 2 * k2)
        k4 = slope(z + h * k3)
        z = z + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        path.append(z)
    return tf.stack(path)


def spiral(start, steps=6, h=0.1):
    turn = np.array([[-0.1, 2.0], [-2.0, -0.1]])
    path = [start]
    for _ in range(steps):
        path.append(path[-1] + h * (path[-1] ** 3) @ turn)
    return np.stack(path).astype("float32")


for step in range(12):
    start = rng.uniform(-1, 1, (8, 2)).astype("float32")
    truth = spiral(start)
    with tf.GradientTape() as tape:
        error = tf.abs(integrate(tf.convert_to_tensor(start)) - truth)
        loss = tf.reduce_mean(error)
    grads = tape.gradient(loss, [w1, w2])
    grads, norm = tf.clip_by_global_norm(grads, 0.5)
    optimizer.apply_gradients(zip(grads, [w1, w2]))
    print(f"{step}: loss {loss:.5f}, gradient {norm:.3f}")
