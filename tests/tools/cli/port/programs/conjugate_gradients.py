import numpy as np
import tensorflow as tf

rng = np.random.RandomState(1)
M = rng.randn(4, 4)
A = tf.constant((M @ M.T + np.eye(4)).astype("float32"))
b = tf.constant(rng.randn(4).astype("float32"))
x = tf.Variable(tf.zeros(4))


def f(x):
    return 0.5 * tf.tensordot(x, tf.linalg.matvec(A, x), 1) - tf.tensordot(b, x, 1) + 0.1 * tf.reduce_sum(x**4)


def grad():
    with tf.GradientTape() as tape:
        loss = f(x)
    return loss, tape.gradient(loss, x)


loss, g = grad()
d = -g
for it in range(8):
    alpha = 1.0
    slope = float(tf.tensordot(g, d, 1))
    while float(f(x + alpha * d)) > float(loss) + 1e-4 * alpha * slope:
        alpha *= 0.5
    x.assign_add(alpha * d)
    loss, g_new = grad()
    beta = tf.maximum(0.0, tf.tensordot(g_new, g_new - g, 1) / tf.tensordot(g, g, 1))
    d = -g_new + beta * d
    g = g_new
    print(it, float(loss), alpha)
