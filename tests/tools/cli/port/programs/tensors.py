"""Linear regression from scratch: tensors, a tape, and nothing else."""

import numpy as np
import tensorflow as tf

np.random.seed(0)
# y = 3x + 2 with noise
X = np.random.rand(50, 1).astype(np.float32)
Y = 3 * X + 2 + np.random.randn(50, 1).astype(np.float32) * 0.1

w = tf.constant([[0.0]])
b = tf.constant([0.0])
lr = 0.1

for epoch in range(30):
    with tf.GradientTape() as tape:
        tape.watch([w, b])
        y_pred = tf.matmul(X, w) + b
        loss = tf.reduce_mean(tf.square(y_pred - Y))
    dw, db = tape.gradient(loss, [w, b])
    w = w - lr * dw
    b -= lr * db
    if epoch % 10 == 0:
        print(f"Epoch {epoch}: loss = {loss.numpy():.4f}")

# how well did we do?
print("w:", w.numpy(), "b:", b.numpy())
mse = np.mean((X @ w.numpy() + b.numpy() - Y) ** 2)
print("final mse", mse)
