"""Fool a classifier with noise that nobody sees: the fast gradient sign method.

First a small network learns to tell two kinds of images apart. Then a tape watches not the weights but the *image*: the
gradient says how to change each pixel so that the loss grows. A small step along its sign is enough.

    python examples/adversarial.py                  on TensorFlow
    python -m tapejax run examples/adversarial.py   on JAX
"""

import numpy as np
import tensorflow as tf

SIZE = 10
STEPS = 80

rng = np.random.default_rng(5)


def stripes(count):
    """Images (count, 10, 10) of lying (label 0) or standing (label 1) stripes, with noise; values between 0 and 1."""
    labels = rng.integers(0, 2, count).astype("int32")
    phase = rng.uniform(0, 2 * np.pi, (count, 1, 1))
    lying = np.sin(1.3 * np.arange(SIZE)[:, np.newaxis] + phase) * np.ones(SIZE)
    images = np.where(labels[:, np.newaxis, np.newaxis], lying.transpose(0, 2, 1), lying)
    return np.clip(0.5 + 0.3 * images + rng.normal(0, 0.15, images.shape), 0, 1).astype("float32"), labels


images, labels = stripes(400)
first = tf.Variable(rng.normal(0, 0.15, (SIZE * SIZE, 32)), dtype=tf.float32)
first_bias = tf.Variable(tf.zeros(32))
second = tf.Variable(rng.normal(0, 0.2, (32, 2)), dtype=tf.float32)
variables = [first, first_bias, second]


def classify(images):
    """Two scores an image."""
    flat = tf.reshape(images, [-1, SIZE * SIZE]) - 0.5
    return tf.nn.relu(flat @ first + first_bias) @ second


def cross_entropy(labels, scores):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=scores))


def accuracy(images, labels):
    guesses = tf.argmax(classify(images), axis=-1, output_type=tf.int32)
    return tf.reduce_mean(tf.cast(guesses == labels, tf.float32))


optimizer = tf.keras.optimizers.SGD(learning_rate=0.2, momentum=0.5)
for step in range(STEPS + 1):
    with tf.GradientTape() as tape:
        loss = cross_entropy(labels, classify(images))
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    if step % 20 == 0:
        print(f"step {step:2d}  loss {loss:.5f}")


def adversarial_pattern(images, labels):
    """The direction, +1 or -1 for each pixel, in which the loss grows."""
    images = tf.convert_to_tensor(images)
    with tf.GradientTape() as tape:
        tape.watch(images)  # it is no variable
        loss = cross_entropy(labels, classify(images))
    return tf.sign(tape.gradient(loss, images))


images, labels = stripes(200)
pattern = adversarial_pattern(images, labels)
for epsilon in [0.0, 0.05, 0.1, 0.15, 0.2]:
    fooling = tf.clip_by_value(images + epsilon * pattern, 0, 1)
    loss = cross_entropy(labels, classify(fooling))
    print(f"pixels moved by {epsilon:.2f}: loss {loss:.4f}, accuracy {accuracy(fooling, labels):.2f}")
