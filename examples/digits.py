"""Teach a small neural network to read handwritten digits.

This is an ordinary TensorFlow program. It runs on TensorFlow,

    python examples/digits.py

and, without a change, on JAX:

    python -m tapejax run examples/digits.py

The data are 1,797 digits of 8 by 8 pixels that come with scikit-learn. The network has two hidden layers; its
weights are plain variables, and its training is written out: record the loss on a tape, ask the tape for the
gradients, take a step of gradient descent with momentum. Both runs start from the same weights and see the
same batches, so they print the same losses.
"""

import argparse
import itertools
import json
import sys
import time

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

WIDTHS = [64, 128, 64, 10]  # pixels, two hidden layers, digits
BATCH = 32
LEARNING_RATE = 0.03
MOMENTUM = 0.9


def digits(rng):
    """Training and test images (float32, 0 to 1) and labels (int32), shuffled; a fifth is for the test."""
    images, labels = load_digits(return_X_y=True)
    order = rng.permutation(len(images))
    images = (images[order] / 16).astype("float32")
    labels = labels[order].astype("int32")
    test = len(images) // 5
    return images[test:], labels[test:], images[:test], labels[:test]


def initial_layers(rng):
    """One (weights, bias) pair a layer. NumPy draws the weights, so that both systems start from the same."""
    layers = []
    for fan_in, fan_out in itertools.pairwise(WIDTHS):
        weights = rng.normal(0.0, np.sqrt(2 / fan_in), (fan_in, fan_out)).astype("float32")
        layers.append((tf.Variable(weights), tf.Variable(tf.zeros([fan_out]))))
    return layers


def predict(layers, images):
    """The network: ten scores (logits) an image."""
    values = images
    for weights, bias in layers[:-1]:
        values = tf.nn.relu(tf.matmul(values, weights) + bias)
    weights, bias = layers[-1]
    return values @ weights + bias


def mean_loss(layers, images, labels):
    logits = predict(layers, images)
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))


def accuracy(layers, images, labels):
    guesses = tf.argmax(predict(layers, images), axis=1, output_type=tf.int32)
    return float(tf.reduce_mean(tf.cast(tf.equal(guesses, labels), tf.float32)))


def train_step(layers, velocities, images, labels):
    """One step of gradient descent with momentum on one batch; returns the loss before it."""
    variables = [variable for layer in layers for variable in layer]
    with tf.GradientTape() as tape:
        loss = mean_loss(layers, images, labels)
    gradients = tape.gradient(loss, variables)
    for variable, velocity, gradient in zip(variables, velocities, gradients, strict=True):
        velocity.assign(MOMENTUM * velocity - LEARNING_RATE * gradient)
        variable.assign_add(velocity)
    return loss


def batches(rng, images, labels):
    """All images once, in random order, BATCH at a time; what does not fill the last batch is left out."""
    order = rng.permutation(len(images))
    for start in range(0, len(order) - BATCH + 1, BATCH):
        chosen = order[start : start + BATCH]
        yield tf.constant(images[chosen]), tf.constant(labels[chosen])


def show_progress(title, done, total, text):
    """Draw a bar over the last one. Where the output is no terminal, only finished bars are printed."""
    terminal, finished = sys.stdout.isatty(), done == total
    if not terminal and not finished:
        return
    filled = 24 * done // total
    line = f"{title} [{'=' * filled}{'.' * (24 - filled)}] {text}"
    print(("\r" if terminal else "") + line, end="\n" if finished else "", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=15, help="passes over the training set (default: 15)")
    parser.add_argument("--seed", type=int, default=0, help="seed of weights and batches (default: 0)")
    parser.add_argument("--losses", metavar="FILE", help="write the loss of every step to FILE, as JSON")
    options = parser.parse_args()

    rng = np.random.default_rng(options.seed)
    train_images, train_labels, test_images, test_labels = digits(rng)
    layers = initial_layers(rng)
    velocities = [tf.Variable(tf.zeros(v.shape), trainable=False) for layer in layers for v in layer]

    started, losses = time.perf_counter(), []
    steps = len(train_images) // BATCH
    for epoch in range(1, options.epochs + 1):
        title, recent = f"epoch {epoch:2}/{options.epochs}", 0.0
        for step, (images, labels) in enumerate(batches(rng, train_images, train_labels), start=1):
            losses.append(float(train_step(layers, velocities, images, labels)))
            recent = float(np.mean(losses[-step:]))
            if step < steps:
                show_progress(title, step, steps, f"loss {recent:.4f}")
        correct = accuracy(layers, test_images, test_labels)
        show_progress(title, steps, steps, f"loss {recent:.4f}, test accuracy {correct:.1%}")

    if options.losses:
        with open(options.losses, "w") as file:
            json.dump(losses, file)
    correct = accuracy(layers, test_images, test_labels)
    seconds = time.perf_counter() - started
    print(f"{correct:.1%} of {len(test_images)} test images read correctly after {seconds:.1f} s of training")


if __name__ == "__main__":
    main()
