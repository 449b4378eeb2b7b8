"""A GAN whose discriminator has batch normalisation and dropout, and is called twice in a step: two tapes, as in the tutorial."""

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

tf.keras.utils.set_random_seed(15)
rng = np.random.default_rng(15)
generator = tf.keras.Sequential([tf.keras.Input((3,)), layers.Dense(8), layers.BatchNormalization(), layers.Dense(4)])
discriminator = tf.keras.Sequential(
    [tf.keras.Input((4,)), layers.Dense(8), layers.BatchNormalization(), layers.Dropout(0.3), layers.Dense(1)]
)
cross_entropy = tf.keras.losses.BinaryCrossentropy(from_logits=True)
generator_optimizer = tf.keras.optimizers.Adam(1e-2)
discriminator_optimizer = tf.keras.optimizers.Adam(1e-2)


@tf.function
def train_step(images, noise):
    with tf.GradientTape() as gen_tape, tf.GradientTape() as disc_tape:
        generated = generator(noise, training=True)
        real_output = discriminator(images, training=True)
        fake_output = discriminator(generated, training=True)
        gen_loss = cross_entropy(tf.ones_like(fake_output), fake_output)
        real_loss = cross_entropy(tf.ones_like(real_output), real_output)
        disc_loss = real_loss + cross_entropy(tf.zeros_like(fake_output), fake_output)
    gen_gradients = gen_tape.gradient(gen_loss, generator.trainable_variables)
    disc_gradients = disc_tape.gradient(disc_loss, discriminator.trainable_variables)
    generator_optimizer.apply_gradients(zip(gen_gradients, generator.trainable_variables))
    discriminator_optimizer.apply_gradients(zip(disc_gradients, discriminator.trainable_variables))
    return gen_loss, disc_loss


for step in range(12):
    images = rng.normal(1.0, 0.3, (16, 4)).astype("float32")
    gen_loss, disc_loss = train_step(images, rng.normal(size=(16, 3)).astype("float32"))
    print(step, float(gen_loss), float(disc_loss))
