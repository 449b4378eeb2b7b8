"""A VAE with categorical latents by the Gumbel-softmax trick; the temperature is annealed."""

import numpy as np
import tensorflow as tf

tf.random.set_seed(3)
rng = np.random.default_rng(3)
LATENTS, CLASSES, PIXELS = 4, 5, 20

prototypes = (rng.uniform(size=(6, PIXELS)) > 0.5).astype("float32")
data = prototypes[rng.integers(0, 6, size=512)]
flips = rng.uniform(size=data.shape) < 0.05
data = np.where(flips, 1 - data, data).astype("float32")
uniforms = rng.uniform(1e-6, 1 - 1e-6, size=(64, 32, LATENTS, CLASSES)).astype("float32")


class Encoder(tf.keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.hidden = tf.keras.layers.Dense(32, activation="relu")
        self.logits = tf.keras.layers.Dense(LATENTS * CLASSES)

    def call(self, x):
        return tf.reshape(self.logits(self.hidden(x)), [-1, LATENTS, CLASSES])


class Decoder(tf.keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.hidden = tf.keras.layers.Dense(32, activation="relu")
        self.pixels = tf.keras.layers.Dense(PIXELS)

    def call(self, z):
        return self.pixels(self.hidden(tf.reshape(z, [-1, LATENTS * CLASSES])))


encoder, decoder = Encoder(), Decoder()
decoder(tf.nn.softmax(encoder(data[:2])))
for layer in (encoder, decoder):
    layer.set_weights([rng.normal(scale=0.2, size=w.shape) for w in layer.get_weights()])
temperature = tf.Variable(1.0, trainable=False, name="temperature")
optimizer = tf.keras.optimizers.Adam(learning_rate=2e-3, global_clipnorm=5.0)


def sample_gumbel(u):
    return -tf.math.log(-tf.math.log(u))


def elbo_terms(x, u):
    logits = encoder(x)
    z = tf.nn.softmax((logits + sample_gumbel(u)) / temperature, axis=-1)
    reconstruction = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=decoder(z)), axis=-1)
    q = tf.nn.softmax(logits, axis=-1)
    log_q = tf.nn.log_softmax(logits, axis=-1)
    kl = tf.reduce_sum(q * (log_q + tf.math.log(float(CLASSES))), axis=[1, 2])
    return tf.reduce_mean(reconstruction), tf.reduce_mean(kl)


@tf.function
def train_step(x, u, beta):
    with tf.GradientTape() as tape:
        reconstruction, kl = elbo_terms(x, u)
        loss = reconstruction + beta * kl
    variables = encoder.trainable_variables + decoder.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss, reconstruction, kl


for step in range(30):
    if step % 5 == 0 and step > 0:
        temperature.assign(tf.maximum(0.3, temperature * tf.exp(-0.2)))
    batch = data[rng.integers(0, len(data), size=32)]
    beta = tf.constant(min(1.0, step / 10), tf.float32)
    loss, reconstruction, kl = train_step(tf.constant(batch), tf.constant(uniforms[step]), beta)
    print(
        f"{step:3d} loss {float(loss):.6f} rec {float(reconstruction):.4f} kl {float(kl):.4f} T {float(temperature):.3f}"
    )
