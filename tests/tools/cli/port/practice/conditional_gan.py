"""A conditional GAN on two moons: the label goes into both networks, and each has an Adam of its own."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(3)
LATENT, CLASSES, BATCH = 4, 2, 32


def moons(rng, count):
    label = rng.integers(0, CLASSES, count)
    angle = rng.uniform(0, np.pi, count)
    x = np.where(label == 0, np.cos(angle), 1.0 - np.cos(angle))
    y = np.where(label == 0, np.sin(angle), 0.5 - np.sin(angle))
    return (np.stack([x, y], 1) + 0.05 * rng.normal(size=(count, 2))).astype("float32"), label.astype("int32")


def make_generator():
    noise = tf.keras.Input((LATENT,))
    label = tf.keras.Input((), dtype="int32")
    embedded = tf.keras.layers.Embedding(CLASSES, 4)(label)
    x = tf.keras.layers.Concatenate()([noise, embedded])
    x = tf.keras.layers.Dense(16, activation="relu")(x)
    x = tf.keras.layers.Dense(16, activation="relu")(x)
    return tf.keras.Model([noise, label], tf.keras.layers.Dense(2)(x), name="generator")


def make_discriminator():
    point = tf.keras.Input((2,))
    label = tf.keras.Input((), dtype="int32")
    embedded = tf.keras.layers.Embedding(CLASSES, 4)(label)
    x = tf.keras.layers.Concatenate()([point, embedded])
    x = tf.keras.layers.Dense(16)(x)
    x = tf.keras.layers.LeakyReLU(0.2)(x)
    return tf.keras.Model([point, label], tf.keras.layers.Dense(1)(x), name="discriminator")


generator, discriminator = make_generator(), make_discriminator()
g_optimizer = tf.keras.optimizers.Adam(1e-3, beta_1=0.5)
d_optimizer = tf.keras.optimizers.Adam(2e-3, beta_1=0.5)
cross_entropy = tf.keras.losses.BinaryCrossentropy(from_logits=True)


def discriminator_loss(real, fake):
    return cross_entropy(tf.ones_like(real), real) + cross_entropy(tf.zeros_like(fake), fake)


@tf.function
def train_step(points, labels, noise):
    with tf.GradientTape() as gen_tape, tf.GradientTape() as disc_tape:
        generated = generator([noise, labels], training=True)
        real = discriminator([points, labels], training=True)
        fake = discriminator([generated, labels], training=True)
        gen_loss = cross_entropy(tf.ones_like(fake), fake)
        disc_loss = discriminator_loss(real, fake)
    gen_gradients = gen_tape.gradient(gen_loss, generator.trainable_variables)
    disc_gradients = disc_tape.gradient(disc_loss, discriminator.trainable_variables)
    g_optimizer.apply_gradients(zip(gen_gradients, generator.trainable_variables))
    d_optimizer.apply_gradients(zip(disc_gradients, discriminator.trainable_variables))
    return gen_loss, disc_loss


rng = np.random.default_rng(0)
for step in range(24):
    points, labels = moons(rng, BATCH)
    noise = tf.constant(rng.normal(size=(BATCH, LATENT)), tf.float32)
    gen_loss, disc_loss = train_step(tf.constant(points), tf.constant(labels), noise)
    if step % 8 == 0:
        print(f"step {step}: generator {gen_loss:.3f}, discriminator {disc_loss:.3f}")
