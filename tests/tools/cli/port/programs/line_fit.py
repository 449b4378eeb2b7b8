"""A straight line by gradient descent, as a book's first chapter has it."""

import numpy as np
import tensorflow as tf

np.random.seed(3)
inputs = np.random.rand(40, 1).astype("float32")
targets = 2.0 * inputs - 1.0 + 0.1 * np.random.randn(40, 1).astype("float32")

slope = tf.Variable([[0.0]])
offset = tf.Variable([0.0])


def predict(x):
    return tf.matmul(x, slope) + offset


def training_step(x, y, rate):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(predict(x) - y))
    slope_gradient, offset_gradient = tape.gradient(loss, [slope, offset])
    slope.assign_sub(rate * slope_gradient)
    offset.assign_sub(rate * offset_gradient)
    return loss


for epoch in range(15):
    order = np.random.permutation(40)
    for start in range(0, 40, 20):
        rows = order[start : start + 20]
        loss = training_step(inputs[rows], targets[rows], rate=0.5 / (1 + epoch))
    print(f"epoch {epoch}: {loss.numpy():.5f}")
print("slope", slope.numpy())
