"""A GAN on a ring of points."""

import numpy as np
import tensorflow as tf

NOISE, BATCH, STEPS = 4, 32, 24

rng = np.random.default_rng(0)
tf.random.set_seed(1)


def real_points(n):
    angles = rng.uniform(0, 2 * np.pi, size=n)
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return (points + 0.05 * rng.normal(size=(n, 2))).astype("float32")


generator = tf.keras.Sequential(
    [
        tf.keras.layers.Input((NOISE,)),
        tf.keras.layers.Dense(16, activation="relu"),
        tf.keras.layers.Dense(2),
    ],
    name="generator",
)
discriminator = tf.keras.Sequential(
    [
        tf.keras.layers.Input((2,)),
        tf.keras.layers.Dense(16, activation="relu"),
        tf.keras.layers.Dense(1),
    ],
    name="discriminator",
)
generator_optimizer = tf.keras.optimizers.Adam(1e-3, beta_1=0.5)
discriminator_optimizer = tf.keras.optimizers.Adam(2e-3, beta_1=0.5)


def cross_entropy(labels, logits):
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))


@tf.function
def train_step(real, noise):
    with tf.GradientTape() as g_tape, tf.GradientTape() as d_tape:
        fake = generator(noise, training=True)
        real_logits = discriminator(real, training=True)
        fake_logits = discriminator(fake, training=True)
        g_loss = cross_entropy(tf.ones_like(fake_logits), fake_logits)
        d_loss = cross_entropy(tf.ones_like(real_logits), real_logits)
        d_loss += cross_entropy(tf.zeros_like(fake_logits), fake_logits)
    g_gradients = g_tape.gradient(g_loss, generator.trainable_variables)
    d_gradients = d_tape.gradient(d_loss, discriminator.trainable_variables)
    generator_optimizer.apply_gradients(zip(g_gradients, generator.trainable_variables))
    discriminator_optimizer.apply_gradients(zip(d_gradients, discriminator.trainable_variables))
    return g_loss, d_loss


for step in range(STEPS):
    real = tf.constant(real_points(BATCH))
    noise = tf.constant(rng.normal(size=(BATCH, NOISE)).astype("float32"))
    g_loss, d_loss = train_step(real, noise)
    if step % 8 == 0:
        print(f"step {step}: generator {float(g_loss):.4f}, discriminator {float(d_loss):.4f}")
samples = generator(rng.normal(size=(64, NOISE)).astype("float32")).numpy()
print("mean radius", np.linalg.norm(samples, axis=1).mean())
