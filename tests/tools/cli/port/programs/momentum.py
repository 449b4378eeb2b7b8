import numpy as np
import tensorflow as tf

rng = np.random.RandomState(1)
w = tf.Variable([1.0, 2.0])
m = tf.zeros(2)
v = tf.zeros(2)
for t in range(1, 8):
    x = tf.constant(rng.randn(2).astype("float32"))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((w - x) ** 2)
    g = tape.gradient(loss, w)
    m = 0.9 * m + 0.1 * g
    v = 0.99 * v + 0.01 * g * g
    w.assign_sub(0.1 * (m / (1 - 0.9**t)) / (tf.sqrt(v / (1 - 0.99**t)) + 1e-8))
    print(t, loss.numpy())
