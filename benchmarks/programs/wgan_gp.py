"""A Wasserstein GAN with gradient penalty on points of a ring: 4 steps, two of the critic each."""

import numpy as np
import tensorflow as tf

tf.random.set_seed(0)
angles = np.random.default_rng(0).uniform(0, 2 * np.pi, 64)
real = tf.constant(np.stack([np.cos(angles), np.sin(angles)], 1).astype("float32"))


class Network(tf.Module):
    def __init__(self, *sizes):
        self.ws = [tf.Variable(tf.random.normal([n, m]) / n**0.5) for n, m in zip(sizes, sizes[1:], strict=False)]
        self.bs = [tf.Variable(tf.zeros([m])) for m in sizes[1:]]

    def __call__(self, x):
        for w, b in zip(self.ws[:-1], self.bs[:-1], strict=False):
            x = tf.nn.leaky_relu(x @ w + b, alpha=0.2)
        return x @ self.ws[-1] + self.bs[-1]


critic, generator = Network(2, 32, 32, 1), Network(4, 32, 32, 2)


def penalty(fake):
    mixed = tf.random.uniform([64, 1]) * (real - fake) + fake
    with tf.GradientTape() as tape:
        tape.watch(mixed)
        score = critic(mixed)
    slopes = tape.gradient(score, mixed)
    norm = tf.sqrt(tf.reduce_sum(tf.square(slopes), axis=1) + 1e-12)
    return tf.reduce_mean((norm - 1.0) ** 2)


def descend(loss_of, network):
    with tf.GradientTape() as tape:
        loss = loss_of()
    for variable, gradient in zip(
        network.trainable_variables, tape.gradient(loss, network.trainable_variables), strict=False
    ):
        if gradient is not None:  # the last bias says nothing about differences
            variable.assign_sub(0.01 * gradient)
    return loss


def critic_loss():
    fake = generator(tf.random.normal([64, 4]))
    return tf.reduce_mean(critic(fake)) - tf.reduce_mean(critic(real)) + 10.0 * penalty(fake)


for step in range(4):
    for _ in range(2):
        c = descend(critic_loss, critic)
    g = descend(lambda: -tf.reduce_mean(critic(generator(tf.random.normal([64, 4])))), generator)
    print(step, float(c), float(g))
