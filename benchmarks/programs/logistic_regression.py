"""Logistic regression with Keras's optimizer: accuracy, batches of a dataset, 3 epochs."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
features = rng.normal(size=(256, 30)).astype("float32")
labels = (features @ rng.normal(size=30) > 0).astype("float32")
data = tf.data.Dataset.from_tensor_slices((features, labels)).shuffle(256, seed=0).batch(64)
weights = tf.Variable(tf.random.normal([30, 1], seed=1))
bias = tf.Variable(tf.zeros([1]))
optimizer = tf.keras.optimizers.SGD(learning_rate=0.1, momentum=0.9)


def logits(x):
    return tf.squeeze(tf.matmul(x, weights) + bias, axis=1)


for epoch in range(3):
    losses, right = [], []
    for x, y in data:
        with tf.GradientTape() as tape:
            z = logits(x)
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=z))
        gradients = tape.gradient(loss, [weights, bias])
        optimizer.apply_gradients(zip(gradients, [weights, bias], strict=False))
        losses.append(loss)
        right.append(tf.reduce_mean(tf.cast(tf.equal(tf.round(tf.sigmoid(z)), y), tf.float32)))
    print(epoch, float(tf.reduce_mean(losses)), float(tf.reduce_mean(right)))
