"""A neural ODE whose gradient comes from the adjoint equation, solved backwards in time (a custom gradient)."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(9)
STEPS, T = 6, 1.0

w1 = tf.Variable(tf.random.normal([2, 16], stddev=0.5), name="w1")
b1 = tf.Variable(tf.zeros([16]), name="b1")
w2 = tf.Variable(tf.random.normal([16, 2], stddev=0.5), name="w2")
weights = [w1, b1, w2]


def field(z, w1, b1, w2):
    return tf.matmul(tf.tanh(tf.matmul(z, w1) + b1), w2)


def rk4(f, z, h):
    k1 = f(z)
    k2 = f(z + 0.5 * h * k1)
    k3 = f(z + 0.5 * h * k2)
    k4 = f(z + h * k3)
    return z + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)


@tf.custom_gradient
def odeint(z0, w1, b1, w2):
    h = T / STEPS
    z1 = z0
    for _ in range(STEPS):
        z1 = rk4(lambda z: field(z, w1, b1, w2), z1, h)

    def backward(a):
        z, sums = z1, [tf.zeros_like(w) for w in (w1, b1, w2)]
        for _ in range(STEPS):  # Euler's method, from the end to the start
            with tf.GradientTape() as tape:
                tape.watch([z, w1, b1, w2])
                f = field(z, w1, b1, w2)
                product = tf.reduce_sum(f * a)
            da, *dws = tape.gradient(product, [z, w1, b1, w2])
            z, a = z - h * f, a + h * da
            sums = [s + h * dw for s, dw in zip(sums, dws)]
        return [a, *sums]

    return z1, backward


def target(z):
    turn = np.array([[np.cos(1.0), -np.sin(1.0)], [np.sin(1.0), np.cos(1.0)]], "float32")
    return 0.8 * z @ turn.T


optimizer = tf.keras.optimizers.Adam(0.02)
rng = np.random.default_rng(0)
for step in range(24):
    z0 = rng.normal(size=(32, 2)).astype("float32")
    z_end = target(z0)
    with tf.GradientTape() as tape:
        prediction = odeint(tf.constant(z0), w1, b1, w2)
        loss = tf.reduce_mean(tf.square(prediction - z_end))
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
    if step % 8 == 0:
        print(step, float(loss))
