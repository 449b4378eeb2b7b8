"""A variational autoencoder on small pictures of blobs; the weight of its divergence grows from step to step."""

import numpy as np
import tensorflow as tf
from tensorflow import keras

tf.random.set_seed(1)
keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)

SIZE, LATENT, BATCH, EPOCHS = 8, 2, 32, 3


def pictures(count):
    grid = np.stack(np.meshgrid(np.arange(SIZE), np.arange(SIZE)), axis=-1)
    centre = rng.uniform(1, SIZE - 2, size=(count, 1, 1, 2))
    blobs = np.exp(-((grid - centre) ** 2).sum(-1) / 3.0)
    return blobs.reshape(count, -1).astype("float32")


train = tf.data.Dataset.from_tensor_slices(pictures(512)).shuffle(512, seed=3).batch(BATCH, drop_remainder=True)


class VAE(keras.Model):
    def __init__(self, latent):
        super().__init__()
        self.latent = latent
        self.encoder = keras.Sequential(
            [keras.layers.Dense(32, activation="relu"), keras.layers.Dense(2 * latent)], name="encoder"
        )
        self.decoder = keras.Sequential(
            [keras.layers.Dense(32, activation="relu"), keras.layers.Dense(SIZE * SIZE)], name="decoder"
        )

    def encode(self, x):
        mean, logvar = tf.split(self.encoder(x), num_or_size_splits=2, axis=1)
        return mean, logvar

    def reparameterize(self, mean, logvar):
        eps = tf.random.normal(shape=tf.shape(mean))
        return eps * tf.exp(logvar * 0.5) + mean

    def decode(self, z):
        return self.decoder(z)


model = VAE(LATENT)
optimizer = keras.optimizers.Adam(1e-3)
beta = tf.Variable(0.0, trainable=False)


def log_normal_pdf(sample, mean, logvar):
    log2pi = tf.math.log(2.0 * np.pi)
    return tf.reduce_sum(-0.5 * ((sample - mean) ** 2.0 * tf.exp(-logvar) + logvar + log2pi), axis=1)


def compute_loss(x):
    mean, logvar = model.encode(x)
    z = model.reparameterize(mean, logvar)
    logits = model.decode(z)
    cross_entropy = tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=x)
    logpx_z = -tf.reduce_sum(cross_entropy, axis=1)
    logpz = log_normal_pdf(z, 0.0, 0.0)
    logqz_x = log_normal_pdf(z, mean, logvar)
    return -tf.reduce_mean(logpx_z + beta * (logpz - logqz_x))


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = compute_loss(x)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    beta.assign(tf.minimum(1.0, beta + 0.02))
    return loss


for epoch in range(EPOCHS):
    losses = [float(train_step(x)) for x in train]
    print(f"epoch {epoch}: {np.mean(losses):.3f}")
