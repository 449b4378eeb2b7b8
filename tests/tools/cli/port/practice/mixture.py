"""WGAN-GP on a mixture of eight Gaussians (2-D)."""

import math

import numpy as np
import tensorflow as tf

BATCH_SIZE = 32
LATENT_DIM = 8
N_CRITIC = 3
GP_WEIGHT = 10.0
ITERATIONS = 10

np.random.seed(0)
tf.random.set_seed(0)


def sample_mixture(batch_size, radius=2.0, std=0.05):
    k = np.random.randint(0, 8, size=batch_size)
    centers = np.stack([radius * np.cos(2 * math.pi * k / 8), radius * np.sin(2 * math.pi * k / 8)], axis=-1)
    return tf.convert_to_tensor(centers + std * np.random.randn(batch_size, 2), dtype=tf.float32)


def build_generator():
    z = tf.keras.Input(shape=(LATENT_DIM,))
    h = tf.keras.layers.Dense(24)(z)
    h = tf.keras.layers.BatchNormalization()(h)
    h = tf.keras.layers.LeakyReLU(negative_slope=0.2)(h)
    h = tf.keras.layers.Dense(24, activation="tanh")(h)
    return tf.keras.Model(z, tf.keras.layers.Dense(2)(h), name="generator")


def build_critic():
    return tf.keras.Sequential(
        [
            tf.keras.layers.Input(shape=(2,)),
            tf.keras.layers.Dense(24),
            tf.keras.layers.LeakyReLU(negative_slope=0.2),
            tf.keras.layers.Dense(24),
            tf.keras.layers.LeakyReLU(negative_slope=0.2),
            tf.keras.layers.Dense(1),
        ],
        name="critic",
    )


G = build_generator()
D = build_critic()
g_opt = tf.keras.optimizers.Adam(learning_rate=1e-3, beta_1=0.5, beta_2=0.9)
d_opt = tf.keras.optimizers.Adam(learning_rate=1e-3, beta_1=0.5, beta_2=0.9)


def gradient_penalty(real, fake):
    alpha = tf.random.uniform([tf.shape(real)[0], 1], 0.0, 1.0)
    interpolated = alpha * real + (1.0 - alpha) * fake
    with tf.GradientTape() as gp_tape:
        gp_tape.watch(interpolated)
        pred = D(interpolated, training=True)
    grads = gp_tape.gradient(pred, interpolated)
    norm = tf.sqrt(tf.reduce_sum(tf.square(grads), axis=1) + 1e-12)
    return tf.reduce_mean((norm - 1.0) ** 2)


@tf.function
def train_critic(real):
    z = tf.random.normal((BATCH_SIZE, LATENT_DIM))
    with tf.GradientTape() as tape:
        fake = G(z, training=True)
        wasserstein = tf.reduce_mean(D(fake, training=True)) - tf.reduce_mean(D(real, training=True))
        gp = gradient_penalty(real, fake)
        d_loss = wasserstein + GP_WEIGHT * gp
    d_opt.apply_gradients(zip(tape.gradient(d_loss, D.trainable_variables), D.trainable_variables))
    return wasserstein, gp


@tf.function
def train_generator():
    z = tf.random.normal((BATCH_SIZE, LATENT_DIM))
    with tf.GradientTape() as tape:
        g_loss = -tf.reduce_mean(D(G(z, training=True), training=True))
    grads = tape.gradient(g_loss, G.trainable_variables)
    g_opt.apply_gradients(zip(grads, G.trainable_variables))
    return g_loss


def main():
    for it in range(ITERATIONS):
        for _ in range(N_CRITIC):
            w, gp = train_critic(sample_mixture(BATCH_SIZE))
        g_loss = train_generator()
        if it % 4 == 0:
            tf.print("iter", it, "W:", w, "GP:", gp, "G:", g_loss)
    fake = G(tf.random.normal((256, LATENT_DIM)), training=False).numpy()
    print("mean distance from the origin:", np.sqrt((fake**2).sum(-1)).mean())


main()
