"""A normalising flow of affine couplings: the loss is minus the log-likelihood."""

import numpy as np
import tensorflow as tf
from tensorflow import keras

keras.utils.set_random_seed(11)
rng = np.random.default_rng(11)


class Coupling(keras.layers.Layer):
    def __init__(self, flip):
        super().__init__()
        self.flip = flip
        self.hidden = keras.layers.Dense(12, activation="relu")
        self.scale = keras.layers.Dense(1, activation="tanh")
        self.shift = keras.layers.Dense(1)

    def call(self, x):
        a, b = tf.split(x, 2, axis=1)
        a, b = (b, a) if self.flip else (a, b)
        h = self.hidden(a)
        s, t = self.scale(h), self.shift(h)
        b = b * tf.exp(s) + t
        return tf.concat([b, a] if self.flip else [a, b], axis=1), tf.reduce_sum(s, axis=1)


class Flow(keras.Model):
    def __init__(self):
        super().__init__()
        self.couplings = [Coupling(i % 2 == 1) for i in range(3)]

    def call(self, x):
        total = 0.0
        for coupling in self.couplings:
            x, log_det = coupling(x)
            total += log_det
        return x, total


def moons(count):
    angle = rng.uniform(0, np.pi, count)
    x = np.stack([np.cos(angle), np.sin(angle) * 0.5], axis=1)
    return (x + 0.05 * rng.normal(size=x.shape)).astype("float32")


model = Flow()
optimizer = keras.optimizers.AdamW(keras.optimizers.schedules.CosineDecay(5e-3, 20), weight_decay=1e-2)


def log_loss(batch):
    z, log_det = model(batch)
    log_prior = -0.5 * tf.reduce_sum(z**2, axis=1) - np.log(2 * np.pi)
    return -tf.reduce_mean(log_prior + log_det)


for step in range(12):
    batch = moons(24)
    with tf.GradientTape() as tape:
        loss = log_loss(batch)
    g = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(g, model.trainable_variables))
    print(step, loss.numpy())
