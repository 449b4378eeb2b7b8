"""Solve the heat equation with a neural network that knows only the equation.

The network is a function u(x, t). The loss asks that u_t = k u_xx at points inside a rod, that the rod begins with a sine
of heat, and that its ends stay cold. The derivatives of u with respect to its inputs come from two tapes, one inside the
other, and the gradient of the loss with respect to the weights from a third around both. The exact solution is known, and
shows how good the network is.

    python examples/physics_informed.py                  on TensorFlow
    python -m tapejax run examples/physics_informed.py   on JAX
"""

import numpy as np
import tensorflow as tf

CONDUCTIVITY = 0.2
STEPS = 200

rng = np.random.default_rng(8)


class Network(tf.Module):
    """u(x, t): two hidden layers of tanh, which can be differentiated twice."""

    def __init__(self, width=20):
        super().__init__()
        sizes = [2, width, width, 1]
        self.weights = [
            tf.Variable(rng.normal(0, 1 / np.sqrt(m), (m, n)), dtype=tf.float32, name="weights")
            for m, n in zip(sizes[:-1], sizes[1:])
        ]
        self.biases = [tf.Variable(tf.zeros([n]), name="bias") for n in sizes[1:]]

    def __call__(self, x, t):
        h = tf.concat([x, t], axis=1)
        for w, b in zip(self.weights[:-1], self.biases[:-1]):
            h = tf.tanh(h @ w + b)
        return h @ self.weights[-1] + self.biases[-1]


def exact(x, t):
    return tf.exp(-CONDUCTIVITY * np.pi**2 * t) * tf.sin(np.pi * x)


def column(values):
    return tf.constant(np.reshape(values, (-1, 1)), dtype=tf.float32)


def residual(u, x, t):
    """By how much u misses the equation at each point."""
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape(persistent=True) as inner:
            inner.watch([x, t])
            value = u(x, t)
        u_x = inner.gradient(value, x)
    u_t = inner.gradient(value, t)
    u_xx = outer.gradient(u_x, x)
    del inner
    return u_t - CONDUCTIVITY * u_xx


network = Network()
optimizer = tf.keras.optimizers.Adam(learning_rate=tf.keras.optimizers.schedules.ExponentialDecay(0.02, 50, 0.7))

inside = column(rng.uniform(0, 1, 128)), column(rng.uniform(0, 1, 128))
start = column(np.linspace(0, 1, 33))
times = column(np.linspace(0, 1, 17))


@tf.function
def train_step():
    with tf.GradientTape() as tape:
        equation = tf.reduce_mean(residual(network, *inside) ** 2)
        beginning = tf.reduce_mean((network(start, tf.zeros_like(start)) - tf.sin(np.pi * start)) ** 2)
        ends = [tf.reduce_mean(network(tf.fill(times.shape, end), times) ** 2) for end in (0.0, 1.0)]
        loss = equation + beginning + tf.add_n(ends)
    variables = network.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss, equation


for step in range(STEPS + 1):
    loss, equation = train_step()
    if step % 25 == 0:
        print(f"step {step:3d}  loss {loss:.6f}  equation {equation:.6f}")

x, t = (column(grid) for grid in np.meshgrid(np.linspace(0, 1, 21), np.linspace(0, 1, 11)))
error = tf.reduce_max(tf.abs(network(x, t) - exact(x, t)))
print(f"largest error {error:.4f}, where the temperature is up to {tf.reduce_max(exact(x, t)):.1f}")
