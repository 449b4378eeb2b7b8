"""Variational autoencoder with a SeedGenerator for its noise."""

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

keras.utils.set_random_seed(11)
LATENT = 2
data = np.random.default_rng(0).random((64, 12)).astype("float32")


class Sampling(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.seed_generator = keras.random.SeedGenerator(1337)

    def call(self, inputs):
        mean, log_var = inputs
        eps = keras.random.normal(shape=keras.ops.shape(mean), seed=self.seed_generator)
        return mean + keras.ops.exp(0.5 * log_var) * eps


enc_in = keras.Input(shape=(12,))
h = layers.Dense(8, activation="relu", kernel_initializer=keras.initializers.HeNormal(seed=2))(enc_in)
z_mean = layers.Dense(LATENT)(h)
z_log_var = layers.Dense(LATENT)(h)
z = Sampling()([z_mean, z_log_var])
encoder = keras.Model(enc_in, [z_mean, z_log_var, z])
dec_in = keras.Input(shape=(LATENT,))
out = layers.Dense(12, activation="sigmoid")(layers.Dense(8, activation="relu")(dec_in))
decoder = keras.Model(dec_in, out)
optimizer = keras.optimizers.Adam(1e-2)
variables = encoder.trainable_variables + decoder.trainable_variables
dataset = tf.data.Dataset.from_tensor_slices(data).shuffle(64, seed=5).batch(16)


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        mean, log_var, z = encoder(x)
        recon = decoder(z)
        recon_loss = tf.reduce_mean(
            tf.reduce_sum(keras.losses.binary_crossentropy(x[..., None], recon[..., None]), axis=-1)
        )
        kl = -0.5 * tf.reduce_mean(tf.reduce_sum(1 + log_var - tf.square(mean) - tf.exp(log_var), axis=1))
        total = recon_loss + kl
    grads = tape.gradient(total, variables)
    optimizer.apply_gradients(zip(grads, variables))
    return total, recon_loss, kl


for epoch in range(3):
    losses = []
    for batch in dataset:
        total, recon, kl = train_step(batch)
        losses.append(float(total))
    print(f"epoch {epoch}: loss {np.mean(losses):.4f}")
sample = decoder(tf.zeros([1, LATENT]))
print("decoded origin:", np.round(sample.numpy()[0, :4], 3))
