"""A variational autoencoder with a train_step of its own, trained by fit."""

import numpy as np
import tensorflow as tf
from tensorflow import keras

keras.utils.set_random_seed(13)
data = np.random.default_rng(13).uniform(size=(48, 10)).astype("float32")


class VAE(keras.Model):
    def __init__(self):
        super().__init__()
        self.encoder = keras.Sequential(
            [keras.Input((10,)), keras.layers.Dense(8, activation="relu"), keras.layers.Dense(4)]
        )
        self.decoder = keras.Sequential(
            [keras.Input((2,)), keras.layers.Dense(8, activation="relu"), keras.layers.Dense(10)]
        )
        self.loss_tracker = keras.metrics.Mean(name="loss")

    @property
    def metrics(self):
        return [self.loss_tracker]

    def train_step(self, data):
        with tf.GradientTape() as tape:
            mean, log_var = tf.split(self.encoder(data), 2, axis=1)
            code = mean + tf.exp(0.5 * log_var) * 0.1
            logits = self.decoder(code)
            rebuilt = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=data, logits=logits), axis=1)
            kl = -0.5 * tf.reduce_sum(1 + log_var - tf.square(mean) - tf.exp(log_var), axis=1)
            loss = tf.reduce_mean(rebuilt + kl)
        grads = tape.gradient(loss, self.trainable_weights)
        self.optimizer.apply_gradients(zip(grads, self.trainable_weights))
        self.loss_tracker.update_state(loss)
        return {"loss": self.loss_tracker.result()}


vae = VAE()
vae.compile(optimizer=keras.optimizers.Adam(0.01))
history = vae.fit(data, epochs=4, batch_size=16, shuffle=False, verbose=0)
print(history.history["loss"])
