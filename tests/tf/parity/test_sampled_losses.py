"""Losses over sampled classes: given the sample the numbers are TensorFlow's; the sample has TensorFlow's distribution."""

import numpy as np
from harness import error_of, parity


def given(tf, unique=True):
    rng = np.random.RandomState(0)
    weights, inputs = (tf.constant(rng.randn(*shape).astype("float32")) for shape in ((12, 4), (3, 4)))
    biases = tf.constant(rng.randn(12).astype("float32"))
    sampled = tf.constant([0, 3, 5, 7], tf.int64), tf.constant([[0.3], [0.2], [0.5]]), tf.constant([0.9, 0.4, 0.3, 0.2])
    return weights, biases, tf.constant([[3], [1], [7]], tf.int64), inputs, sampled


def gradients(tf, loss, **options):
    weights, biases, labels, inputs, sampled = given(tf)
    with tf.GradientTape() as tape:
        tape.watch([weights, biases, inputs])
        value = loss(weights, biases, labels, inputs, 4, 12, sampled_values=sampled, **options)
    return value, [tf.convert_to_tensor(g) for g in tape.gradient(value, [weights, biases, inputs])]


@parity
def test_losses_of_a_given_sample(tf):
    return [
        gradients(tf, loss, remove_accidental_hits=remove)
        for loss in (tf.nn.nce_loss, tf.nn.sampled_softmax_loss)
        for remove in (False, True)
    ]


@parity
def test_several_true_classes(tf):
    weights, biases, _, inputs, (classes, _, expected) = given(tf)
    labels = tf.constant([[3, 1], [1, 2], [7, 0]], tf.int64)
    sampled = classes, tf.constant([[0.3, 0.1], [0.2, 0.6], [0.5, 0.5]]), expected
    return [
        loss(weights, biases, labels, inputs, 4, 12, num_true=2, sampled_values=sampled)
        for loss in (tf.nn.nce_loss, tf.nn.sampled_softmax_loss)
    ]


def distribution(tf, sampler, unique):
    tf.random.set_seed(1)
    count, true, expected = np.zeros(6), 0.0, np.zeros(6)
    draw = tf.function(lambda: sampler(tf.constant([[1], [4]], tf.int64), 1, 3, unique, 6))
    for _ in range(300):
        classes, of_true, of_sampled = (x.numpy() for x in draw())
        np.add.at(count, classes, 1 / 300)
        np.add.at(expected, classes, of_sampled / 300)
        true = true + of_true / 300
    return count, true, expected


@parity(rtol=0.1, atol=0.12)
def test_the_distribution_of_the_sample(tf):
    """How often each class comes, and is expected to come, on average over many samples."""
    return [distribution(tf, tf.random.log_uniform_candidate_sampler, unique) for unique in (True, False)]


@parity(rtol=0.1, atol=0.12)
def test_the_distribution_of_the_uniform_sample(tf):
    return [distribution(tf, tf.random.uniform_candidate_sampler, unique) for unique in (True, False)]


@parity
def test_kinds_of_samples(tf):
    """Each class once, dtypes and shapes; a loss that samples by itself, in a function too."""
    weights, biases, labels, inputs, _ = given(tf)
    sample = tf.random.log_uniform_candidate_sampler(labels, 1, 12, True, 12)
    losses = [loss(weights, biases, labels, inputs, 5, 12) for loss in (tf.nn.nce_loss, tf.nn.sampled_softmax_loss)]
    inside = tf.function(lambda: tf.nn.nce_loss(weights, biases, labels, inputs, 5, 12))()
    return sorted(sample.sampled_candidates.numpy().tolist()), [(x.dtype, x.shape) for x in (*sample, *losses, inside)]


@parity
def test_a_sample_that_cannot_be(tf):
    sampler, classes = tf.random.uniform_candidate_sampler, tf.constant([[1]], tf.int64)
    return error_of(lambda: sampler(classes[0], 1, 3, True, 6)), error_of(lambda: sampler(classes, 1, 7, True, 6))
