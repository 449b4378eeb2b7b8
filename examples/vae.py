"""A variational autoencoder: images of a spot, through two numbers and back.

The encoder gives for each image a mean and a spread of its code; a code is drawn by adding noise (the reparameterisation trick,
so that gradients pass); the decoder draws the image. The loss is how badly the image comes back, plus how far the codes
are from a standard normal distribution (their Kullback-Leibler divergence, which is known in closed form).

    python examples/vae.py                  on TensorFlow
    python -m tapejax run examples/vae.py   on JAX
"""

import numpy as np
import tensorflow as tf

SIZE, CODE = 8, 2
STEPS = 150
BATCH = 64

rng = np.random.default_rng(3)


def spots(count):
    """Images (count, 64), each a soft spot of light somewhere; values between 0 and 1."""
    where = rng.uniform(1, SIZE - 2, (count, 2, 1, 1))
    rows, columns = np.mgrid[:SIZE, :SIZE]
    squared_distance = (rows - where[:, 0]) ** 2 + (columns - where[:, 1]) ** 2
    return np.exp(-squared_distance / 3).reshape(count, -1).astype("float32")


class Autoencoder(tf.keras.Model):
    """Encoder and decoder, with one hidden layer each."""

    def __init__(self):
        super().__init__()
        self.encoder = tf.keras.Sequential(
            [tf.keras.layers.Dense(48, activation="relu"), tf.keras.layers.Dense(2 * CODE)], name="encoder"
        )
        self.decoder = tf.keras.Sequential(
            [tf.keras.layers.Dense(48, activation="relu"), tf.keras.layers.Dense(SIZE * SIZE)], name="decoder"
        )

    def encode(self, images):
        mean, log_variance = tf.split(self.encoder(images), num_or_size_splits=2, axis=1)
        return mean, log_variance

    def call(self, images, noise):
        mean, log_variance = self.encode(images)
        code = mean + tf.exp(log_variance / 2) * noise
        return self.decoder(code), mean, log_variance


def negative_elbo(model, images, noise):
    """The loss, as its two parts, each the mean over the batch."""
    logits, mean, log_variance = model(images, noise)
    cross_entropy = tf.nn.sigmoid_cross_entropy_with_logits(labels=images, logits=logits)
    reconstruction = tf.reduce_mean(tf.reduce_sum(cross_entropy, axis=1))
    divergence = 0.5 * tf.reduce_sum(tf.exp(log_variance) + mean**2 - 1.0 - log_variance, axis=1)
    return reconstruction, tf.reduce_mean(divergence)


model = Autoencoder()
optimizer = tf.keras.optimizers.Adam(3e-3)
images = spots(512)
model(tf.constant(images[:1]), tf.zeros([1, CODE]))  # the layers make their weights
model.set_weights([rng.normal(0, 1 / np.sqrt(w.shape[0]), w.shape) * (w.ndim > 1) for w in model.get_weights()])


@tf.function
def train_step(images, noise):
    with tf.GradientTape() as tape:
        reconstruction, divergence = negative_elbo(model, images, noise)
        loss = reconstruction + divergence
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return reconstruction, divergence


for step in range(STEPS + 1):
    batch = tf.convert_to_tensor(images[rng.integers(0, len(images), BATCH)])
    noise = tf.convert_to_tensor(rng.normal(size=(BATCH, CODE)), dtype=tf.float32)
    reconstruction, divergence = train_step(batch, noise)
    if step % 25 == 0:
        print(f"step {step:3d}  reconstruction {reconstruction:.4f}  divergence {divergence:.4f}")

# A walk through the codes: where is the light?
codes = tf.stack([tf.linspace(-1.5, 1.5, 5), tf.zeros(5)], axis=1)
pictures = tf.reshape(tf.sigmoid(model.decoder(codes)), [-1, SIZE, SIZE])
weights = pictures / tf.reduce_sum(pictures, axis=[1, 2], keepdims=True)
rows = tf.reduce_sum(weights * tf.range(SIZE, dtype=tf.float32)[:, tf.newaxis], axis=[1, 2])
columns = tf.reduce_sum(weights * tf.range(SIZE, dtype=tf.float32), axis=[1, 2])
for row, column in zip(rows, columns):
    print(f"centre of light: row {row:.2f}, column {column:.2f}")
