"""A Wasserstein GAN with a gradient penalty: several critic steps for each of the generator's."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(5)


class WGAN:
    def __init__(self, latent=3, n_critic=3, gp_weight=10.0):
        self.latent, self.n_critic, self.gp_weight = latent, n_critic, gp_weight
        self.generator = tf.keras.Sequential(
            [
                tf.keras.layers.Input((latent,)),
                tf.keras.layers.Dense(16, activation="relu"),
                tf.keras.layers.Dense(16, activation="relu"),
                tf.keras.layers.Dense(2),
            ],
            name="generator",
        )
        self.critic = tf.keras.Sequential(
            [
                tf.keras.layers.Input((2,)),
                tf.keras.layers.Dense(16, activation="tanh"),
                tf.keras.layers.Dense(16, activation="tanh"),
                tf.keras.layers.Dense(1),
            ],
            name="critic",
        )
        self.g_opt = tf.keras.optimizers.Adam(1e-3, beta_1=0.0, beta_2=0.9)
        self.c_opt = tf.keras.optimizers.Adam(1e-3, beta_1=0.0, beta_2=0.9)

    def gradient_penalty(self, real, fake, alpha):
        interpolated = real + alpha * (fake - real)
        with tf.GradientTape() as gp_tape:
            gp_tape.watch(interpolated)
            score = self.critic(interpolated, training=True)
        gradients = gp_tape.gradient(score, interpolated)
        norm = tf.sqrt(tf.reduce_sum(tf.square(gradients), axis=1) + 1e-12)
        return tf.reduce_mean((norm - 1.0) ** 2)

    @tf.function
    def critic_step(self, real, z, alpha):
        with tf.GradientTape() as tape:
            fake = self.generator(z, training=True)
            wasserstein = tf.reduce_mean(self.critic(fake)) - tf.reduce_mean(self.critic(real))
            c_loss = wasserstein + self.gp_weight * self.gradient_penalty(real, fake, alpha)
        grads = tape.gradient(c_loss, self.critic.trainable_variables)
        self.c_opt.apply_gradients(zip(grads, self.critic.trainable_variables))
        return c_loss

    @tf.function
    def generator_step(self, z):
        with tf.GradientTape() as tape:
            g_loss = -tf.reduce_mean(self.critic(self.generator(z, training=True)))
        grads = tape.gradient(g_loss, self.generator.trainable_variables)
        self.g_opt.apply_gradients(zip(grads, self.generator.trainable_variables))
        return g_loss


rng = np.random.default_rng(0)
gan, batch_size = WGAN(), 32


def normal(*shape):
    return tf.constant(rng.normal(size=shape), tf.float32)


def sample_ring(count):
    angle = rng.uniform(0, 2 * np.pi, count)
    return tf.constant(np.stack([np.cos(angle), np.sin(angle)], 1), tf.float32)


for epoch in range(8):
    for _ in range(gan.n_critic):
        alpha = tf.constant(rng.uniform(size=(batch_size, 1)), tf.float32)
        c_loss = gan.critic_step(sample_ring(batch_size), normal(batch_size, gan.latent), alpha)
    g_loss = gan.generator_step(normal(batch_size, gan.latent))
    print(epoch, float(c_loss), float(g_loss))
