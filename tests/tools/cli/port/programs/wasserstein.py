"""A Wasserstein GAN with gradient penalty: a critic's step with a tape inside a tape, and a generator's step."""

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

tf.keras.utils.set_random_seed(4)
rng = np.random.default_rng(4)
BATCH, NOISE = 16, 3

generator = tf.keras.Sequential([tf.keras.Input((NOISE,)), layers.Dense(8, activation="tanh"), layers.Dense(2)])
critic = tf.keras.Sequential([tf.keras.Input((2,)), layers.Dense(8), layers.LeakyReLU(), layers.Dense(1)])
generator_optimizer = tf.keras.optimizers.Adam(1e-2, beta_1=0.5, beta_2=0.9)
critic_optimizer = tf.keras.optimizers.Adam(1e-2, beta_1=0.5, beta_2=0.9)


def gradient_penalty(real, fake, mix):
    points = real + mix * (fake - real)
    with tf.GradientTape() as tape:
        tape.watch(points)
        scores = critic(points, training=True)
    slopes = tape.gradient(scores, points)
    norm = tf.sqrt(tf.reduce_sum(tf.square(slopes), axis=1) + 1e-12)
    return tf.reduce_mean((norm - 1.0) ** 2)


@tf.function
def train_critic(real, noise, mix):
    with tf.GradientTape() as tape:
        fake = generator(noise, training=True)
        critic_loss = tf.reduce_mean(critic(fake)) - tf.reduce_mean(critic(real))
        critic_loss += 10.0 * gradient_penalty(real, fake, mix)
    gradients = tape.gradient(critic_loss, critic.trainable_variables)
    critic_optimizer.apply_gradients(zip(gradients, critic.trainable_variables))
    return critic_loss


@tf.function
def train_generator(noise):
    with tf.GradientTape() as tape:
        generator_loss = -tf.reduce_mean(critic(generator(noise, training=True)))
    gradients = tape.gradient(generator_loss, generator.trainable_variables)
    generator_optimizer.apply_gradients(zip(gradients, generator.trainable_variables))
    return generator_loss


for step in range(6):
    for _ in range(2):
        real = rng.normal(2.0, 0.5, (BATCH, 2)).astype("float32")
        noise = rng.normal(size=(BATCH, NOISE)).astype("float32")
        mix = rng.uniform(size=(BATCH, 1)).astype("float32")
        critic_loss = train_critic(tf.constant(real), tf.constant(noise), tf.constant(mix))
    generator_loss = train_generator(tf.constant(rng.normal(size=(BATCH, NOISE)).astype("float32")))
    print(f"{step}: critic {critic_loss:.4f}, generator {generator_loss:.4f}")
