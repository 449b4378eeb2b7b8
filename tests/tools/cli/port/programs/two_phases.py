import numpy as np
import tensorflow as tf

rng = np.random.RandomState(1)
w = tf.Variable([1.0, 2.0])
opt = tf.keras.optimizers.SGD(0.1)
for _ in range(3):
    x = tf.constant(rng.randn(2).astype("float32"))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((w - x) ** 2)
    opt.apply_gradients([(tape.gradient(loss, w), w)])
print("second phase")
for _ in range(5):
    batch = tf.constant(rng.randn(2).astype("float32"))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((w - batch) ** 2)
    opt.apply_gradients([(tape.gradient(loss, w), w)])
