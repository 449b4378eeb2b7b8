"""A VQ-VAE: a codebook, the straight-through estimator, and the commitment loss."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
DIM, CODES, BETA = 4, 8, 0.25


class Quantizer(tf.keras.layers.Layer):
    def __init__(self, count, dim, **kwargs):
        super().__init__(**kwargs)
        self.count, self.dim = count, dim

    def build(self, shape):
        self.codes = self.add_weight(shape=(self.dim, self.count), initializer="random_uniform", name="codes")

    def call(self, z):
        distances = (
            tf.reduce_sum(z**2, axis=1, keepdims=True)
            - 2 * tf.matmul(z, self.codes)
            + tf.reduce_sum(self.codes**2, axis=0, keepdims=True)
        )
        nearest = tf.argmin(distances, axis=1)
        quantized = tf.matmul(tf.one_hot(nearest, self.count), self.codes, transpose_b=True)
        commitment = tf.reduce_mean((tf.stop_gradient(quantized) - z) ** 2)
        codebook = tf.reduce_mean((quantized - tf.stop_gradient(z)) ** 2)
        return z + tf.stop_gradient(quantized - z), codebook + BETA * commitment


class VQVAE(tf.keras.Model):
    def __init__(self, inputs):
        super().__init__()
        self.encoder = tf.keras.Sequential(
            [tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dense(DIM)], name="encoder"
        )
        self.quantizer = Quantizer(CODES, DIM, name="quantizer")
        self.decoder = tf.keras.Sequential(
            [tf.keras.layers.Dense(16, activation="relu"), tf.keras.layers.Dense(inputs)], name="decoder"
        )

    def call(self, x):
        quantized, vq_loss = self.quantizer(self.encoder(x))
        return self.decoder(quantized), vq_loss


rng = np.random.default_rng(0)
means = rng.normal(size=(5, 10)) * 2
data = (means[rng.integers(0, 5, 512)] + 0.1 * rng.normal(size=(512, 10))).astype("float32")
variance = float(np.var(data))
dataset = tf.data.Dataset.from_tensor_slices(data).shuffle(512, seed=0).batch(64, drop_remainder=True)

vqvae = VQVAE(10)
vqvae(data[:1])
optimizer = tf.keras.optimizers.Adam(learning_rate=3e-3)


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        reconstructed, vq_loss = vqvae(x, training=True)
        reconstruction_loss = tf.reduce_mean((x - reconstructed) ** 2) / variance
        total_loss = reconstruction_loss + vq_loss
    grads = tape.gradient(total_loss, vqvae.trainable_variables)
    optimizer.apply_gradients(zip(grads, vqvae.trainable_variables))
    return total_loss, reconstruction_loss


for epoch in range(3):
    losses = [float(train_step(x)[0]) for x in dataset]
    print(f"epoch {epoch}: {np.mean(losses):.4f}")
