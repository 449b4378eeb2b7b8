"""Logistic regression for three classes: weights in a dict, batches from an endless dataset."""

import numpy as np
import tensorflow as tf

rs = np.random.RandomState(1)
X = rs.normal(size=(60, 5)).astype(np.float32)
labels = (X[:, :3]).argmax(1)
Y = tf.one_hot(labels, 3)
weights = {
    "W": tf.Variable(tf.random.normal([5, 3], seed=1) * 0.1, name="W"),
    "b": tf.Variable(tf.zeros([3]), name="b"),
}
train_data = tf.data.Dataset.from_tensor_slices((X, Y)).repeat().shuffle(60).batch(20).prefetch(1)


def logreg(x):
    return tf.nn.softmax(tf.matmul(x, weights["W"]) + weights["b"])


def cross_entropy(y_pred, y_true):
    y_pred = tf.clip_by_value(y_pred, 1e-9, 1.0)
    return tf.reduce_mean(-tf.reduce_sum(y_true * tf.math.log(y_pred), 1))


def accuracy(y_pred, y_true):
    correct = tf.equal(tf.argmax(y_pred, 1), tf.argmax(y_true, 1))
    return tf.reduce_mean(tf.cast(correct, tf.float32))


optimizer = tf.optimizers.SGD(0.5)


def run_optimization(x, y):
    with tf.GradientTape() as g:
        pred = logreg(x)
        loss = cross_entropy(pred, y)
    gradients = g.gradient(loss, [weights["W"], weights["b"]])
    optimizer.apply_gradients(zip(gradients, [weights["W"], weights["b"]]))


for step, (batch_x, batch_y) in enumerate(train_data.take(15), 1):
    run_optimization(batch_x, batch_y)
    if step % 5 == 0:
        pred = logreg(batch_x)
        loss = cross_entropy(pred, batch_y)
        acc = accuracy(pred, batch_y)
        print(f"step: {step}, loss: {loss:f}, accuracy: {acc:f}")

pred = logreg(X)
print(f"Test Accuracy: {accuracy(pred, Y):f}")
