"""Fit a polynomial to noisy points by gradient descent, and compare with the exact least squares fit.

The model is linear in its weights: y = w0 + w1 x + w2 x^2 + w3 x^3. Nothing but a variable, a tape and a loop is needed.

    python examples/regression.py                  on TensorFlow
    python -m tapejax run examples/regression.py   on JAX
"""

import numpy as np
import tensorflow as tf

DEGREE = 3
STEPS = 300
LEARNING_RATE = 0.3

rng = np.random.default_rng(0)
x = tf.constant(rng.uniform(-1, 1, 120).astype("float32"))
noise = tf.constant(rng.normal(0, 0.1, 120).astype("float32"))
y = 0.5 - 2.0 * x + 3.0 * x**3 + noise

# One row a point, one column a power of x.
features = tf.stack([x**power for power in range(DEGREE + 1)], axis=1)
targets = y[:, tf.newaxis]

weights = tf.Variable(tf.zeros([DEGREE + 1, 1]), name="weights")


def mean_squared_error():
    return tf.reduce_mean(tf.square(features @ weights - targets))


for step in range(STEPS + 1):
    with tf.GradientTape() as tape:
        loss = mean_squared_error()
    if step % 50 == 0:
        print(f"step {step:3d}  loss {loss.numpy():.6f}")
    weights.assign_sub(LEARNING_RATE * tape.gradient(loss, weights))

descended = mean_squared_error()
exact = tf.linalg.lstsq(features, targets)
print("weights by descent      ", np.round(tf.squeeze(weights).numpy(), 3))
print("weights by least squares", np.round(tf.squeeze(exact).numpy(), 3))
weights.assign(exact)
print(f"loss by descent {descended:.6f}, by least squares {mean_squared_error():.6f}")
