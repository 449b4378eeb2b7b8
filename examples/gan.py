"""A generative adversarial network that learns to put points on a ring.

The generator makes points of noise, the discriminator says how likely a point is to be real. Each step has two tapes, one for
each player: the same forward pass, two losses, two sets of variables.

    python examples/gan.py                  on TensorFlow
    python -m tapejax run examples/gan.py   on JAX
"""

import numpy as np
import tensorflow as tf
from tensorflow import keras

NOISE = 4
BATCH = 64
STEPS = 120

rng = np.random.default_rng(4)


def real_points(count):
    angle = rng.uniform(0, 2 * np.pi, count)
    radius = rng.normal(1, 0.05, count)
    return tf.constant(np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).astype(np.float32))


def noise(count):
    return tf.constant(rng.standard_normal((count, NOISE)).astype(np.float32))


def network(inputs, outputs, name):
    """Two hidden layers; NumPy draws the weights."""
    model = keras.Sequential(name=name)
    model.add(keras.Input((inputs,)))
    for _ in range(2):
        model.add(keras.layers.Dense(32))
        model.add(keras.layers.LeakyReLU(negative_slope=0.2))
    model.add(keras.layers.Dense(outputs))
    for layer in model.layers:
        if layer.weights:
            kernel, bias = layer.get_weights()
            layer.set_weights([rng.normal(0, np.sqrt(2 / kernel.shape[0]), kernel.shape), np.zeros_like(bias)])
    return model


generator = network(NOISE, 2, "generator")
discriminator = network(2, 1, "discriminator")
generator_optimizer = keras.optimizers.Adam(2e-3, beta_1=0.5)
discriminator_optimizer = keras.optimizers.Adam(2e-3, beta_1=0.5)
cross_entropy = keras.losses.BinaryCrossentropy(from_logits=True)


@tf.function
def train_step(real, noise):
    with tf.GradientTape() as generator_tape, tf.GradientTape() as discriminator_tape:
        fake = generator(noise, training=True)
        real_score = discriminator(real, training=True)
        fake_score = discriminator(fake, training=True)
        # The generator wants its points to be taken for real ones.
        generator_loss = cross_entropy(tf.ones_like(fake_score), fake_score)
        discriminator_loss = cross_entropy(tf.ones_like(real_score), real_score) + cross_entropy(
            tf.zeros_like(fake_score), fake_score
        )
    for tape, loss, model, optimizer in (
        (generator_tape, generator_loss, generator, generator_optimizer),
        (discriminator_tape, discriminator_loss, discriminator, discriminator_optimizer),
    ):
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return generator_loss, discriminator_loss


for step in range(STEPS + 1):
    generator_loss, discriminator_loss = train_step(real_points(BATCH), noise(BATCH))
    if step % 20 == 0:
        radius = tf.norm(generator(noise(200)), axis=1)
        print(
            f"step {step:3d}  generator {generator_loss:.4f}  discriminator {discriminator_loss:.4f}"
            f"  radius {tf.reduce_mean(radius):.3f} +- {tf.math.reduce_std(radius):.3f}"
        )
