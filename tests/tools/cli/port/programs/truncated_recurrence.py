import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
W = tf.Variable(rng.normal(size=(3, 4)).astype("float32") * 0.5)
U = tf.Variable(rng.normal(size=(4, 4)).astype("float32") * 0.3)
V = tf.Variable(rng.normal(size=(4, 1)).astype("float32"))
state = tf.zeros((2, 4))
for k in range(6):
    xs = tf.constant(rng.normal(size=(5, 2, 3)), tf.float32)
    with tf.GradientTape() as tape:
        h, loss = state, 0.0
        for t in range(5):
            h = tf.tanh(xs[t] @ W + h @ U)
            loss += tf.reduce_mean((h @ V - xs[t][:, :1]) ** 2)
    for v, g in zip([W, U, V], tape.gradient(loss, [W, U, V])):
        v.assign_sub(0.05 * g)
    state = tf.stop_gradient(h)
    print(k, float(loss))
