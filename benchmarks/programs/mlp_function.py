"""A multilayer perceptron trained by a compiled step: 2 epochs of 16 batches."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
features = rng.normal(size=(512, 20)).astype("float32")
labels = (np.abs(features[:, :3]).argmax(1)).astype("int32")
data = tf.data.Dataset.from_tensor_slices((features, labels)).batch(32)
initial = tf.initializers.HeNormal(seed=0)
w1, b1 = tf.Variable(initial([20, 64])), tf.Variable(tf.zeros([64]))
w2, b2 = tf.Variable(initial([64, 3])), tf.Variable(tf.zeros([3]))
variables = [w1, b1, w2, b2]


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        logits = tf.matmul(tf.nn.relu(tf.matmul(x, w1) + b1), w2) + b2
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=False):
        variable.assign_sub(0.1 * gradient)
    right = tf.equal(tf.argmax(logits, axis=1, output_type=tf.int32), y)
    return loss, tf.reduce_mean(tf.cast(right, tf.float32))


for epoch in range(2):
    for x, y in data:
        loss, accuracy = train_step(x, y)
    tf.print("epoch", epoch, "loss", loss, "accuracy", accuracy)
