import numpy as np
import tensorflow as tf

t = tf.constant(np.linspace(0, 3, 20).astype("float32"))
y = 2.0 * tf.exp(-0.7 * t) + 0.3
theta = tf.Variable([1.0, 0.3, 0.0])
lam = 1e-1


def residuals():
    a, k, c = tf.unstack(theta)
    return a * tf.exp(-k * t) + c - y


for it in range(12):
    with tf.GradientTape() as tape:
        r = residuals()
    J = tape.jacobian(r, theta)
    A = tf.matmul(J, J, transpose_a=True)
    g = tf.linalg.matvec(J, r, transpose_a=True)
    delta = tf.linalg.solve(A + lam * tf.linalg.diag(tf.linalg.diag_part(A)), g[:, None])[:, 0]
    old = float(tf.reduce_sum(r**2))
    before = theta.numpy()
    theta.assign_sub(delta)
    if float(tf.reduce_sum(residuals() ** 2)) < old:
        lam *= 0.5
    else:
        lam *= 4.0
        theta.assign(before)
    print(it, old, lam)
