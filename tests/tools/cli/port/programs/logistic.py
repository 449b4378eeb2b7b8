"""Logistic regression with hand-written gradient descent."""

import numpy as np
import tensorflow as tf

rng = np.random.RandomState(42)
X_train = rng.randn(80, 2).astype("float32")
y_train = (X_train[:, 0] + 2 * X_train[:, 1] > 0).astype("float32").reshape(-1, 1)
X_test = rng.randn(20, 2).astype("float32")
y_test = (X_test[:, 0] + 2 * X_test[:, 1] > 0).astype("float32").reshape(-1, 1)

W = tf.Variable(tf.zeros([2, 1]), name="weights")
b = tf.Variable(tf.zeros([1]), name="bias")
learning_rate = 0.5


def model(x):
    return tf.sigmoid(tf.matmul(x, W) + b)


def loss_fn(y_true, y_pred):
    y_pred = tf.clip_by_value(y_pred, 1e-7, 1 - 1e-7)
    return -tf.reduce_mean(y_true * tf.math.log(y_pred) + (1 - y_true) * tf.math.log(1 - y_pred))


def accuracy(y_true, y_pred):
    return tf.reduce_mean(tf.cast(tf.equal(tf.round(y_pred), y_true), tf.float32))


def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x))
    dW, db = tape.gradient(loss, [W, b])
    W.assign_sub(learning_rate * dW)
    b.assign_sub(learning_rate * db)
    return loss


for epoch in range(20):
    loss = train_step(X_train, y_train)
    if (epoch + 1) % 5 == 0:
        acc = accuracy(y_train, model(X_train))
        print(f"epoch {epoch + 1} loss {loss:.4f} acc {acc:.3f}")

# Evaluate on the test set
print("Test accuracy:", accuracy(y_test, model(X_test)).numpy())
print("W =", W.numpy().ravel(), "b =", b.numpy())
