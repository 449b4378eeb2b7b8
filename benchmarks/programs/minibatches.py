"""Linear regression on a table: standardised columns, minibatches, weight decay, momentum, early stopping."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
x = rng.normal(3.0, 2.0, size=(240, 6)).astype("float32")
y = (x @ rng.normal(size=(6, 1)) + 0.7 + 0.1 * rng.normal(size=(240, 1))).astype("float32")
x = (x - x.mean(0)) / x.std(0)
train, held = tf.data.Dataset.from_tensor_slices((x[:192], y[:192])).shuffle(192, seed=1).batch(32), (x[192:], y[192:])
w, b = tf.Variable(tf.zeros([6, 1]), name="w"), tf.Variable(0.0, name="b")
velocity = [tf.Variable(tf.zeros_like(v)) for v in (w, b)]
best, waited = float("inf"), 0
for _epoch in range(15):
    for some, right in train:
        with tf.GradientTape() as tape:
            error = tf.matmul(some, w) + b - right
            loss = tf.reduce_mean(error**2) + 1e-3 * tf.nn.l2_loss(w)
        for v, m, g in zip((w, b), velocity, tape.gradient(loss, [w, b]), strict=True):
            m.assign(0.8 * m + g)
            v.assign_sub(0.05 * m)
    score = float(tf.sqrt(tf.reduce_mean(tf.square(tf.matmul(held[0], w) + b - held[1]))))
    waited = 0 if score < best - 1e-4 else waited + 1
    best = min(best, score)
    if waited > 3:
        break
print(best < 0.5)
