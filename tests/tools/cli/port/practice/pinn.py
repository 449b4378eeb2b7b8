"""A physics-informed network for u'' + u = 0, u(0) = 0, u'(0) = 1."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
sizes = [1, 16, 16, 1]
weights = [
    tf.Variable(rng.normal(size=(m, n)).astype("float32") / m**0.5, name=f"w{i}")
    for i, (m, n) in enumerate(zip(sizes, sizes[1:]))
]
biases = [tf.Variable(tf.zeros([n]), name=f"b{i}") for i, n in enumerate(sizes[1:])]
variables = weights + biases
schedule = tf.keras.optimizers.schedules.ExponentialDecay(1e-2, 10, 0.9)
optimizer = tf.keras.optimizers.Adam(schedule)


def net(x):
    for w, b in zip(weights[:-1], biases[:-1]):
        x = tf.tanh(tf.matmul(x, w) + b)
    return tf.matmul(x, weights[-1]) + biases[-1]


def residual(x):
    with tf.GradientTape() as second:
        second.watch(x)
        with tf.GradientTape() as first:
            first.watch(x)
            u = net(x)
        u_x = first.gradient(u, x)
    u_xx = second.gradient(u_x, x)
    return u_xx + u


def boundary():
    zero = tf.zeros([1, 1])
    with tf.GradientTape() as tape:
        tape.watch(zero)
        u = net(zero)
    return tf.reduce_sum(u**2) + tf.reduce_sum((tape.gradient(u, zero) - 1.0) ** 2)


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(residual(x))) + boundary()
    gradients = tape.gradient(loss, variables)
    optimizer.apply_gradients(zip(gradients, variables))
    return loss


for step in range(30):
    x = tf.constant(rng.uniform(0, 3, size=(32, 1)), tf.float32)
    loss = train_step(x)
    if step % 10 == 0:
        print(f"step {step}: {float(loss):.5f}")
grid = np.linspace(0, 3, 7, dtype="float32")[:, None]
print("error", np.abs(net(grid).numpy() - np.sin(grid)).max())
