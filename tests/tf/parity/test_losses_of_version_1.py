"""tf.compat.v1.losses, which eager programs call: values, weights, reductions, gradients, errors."""

import numpy as np
from harness import error_of, parity

PAIRS = "absolute_difference mean_squared_error huber_loss log_loss hinge_loss".split()
WEIGHTS = [1.0, 0.0, 2.0, [[1.0], [0.0]], [[0.5, 0.0, 2.0]], [[1.0, 0.0, 1.0], [0.0, 3.0, 0.0]]]
REDUCTIONS = "NONE SUM SUM_OVER_BATCH_SIZE MEAN SUM_BY_NONZERO_WEIGHTS".split()


def labels(tf):
    return tf.constant([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])


def with_gradient(tf, loss):
    x = tf.constant([[0.2, 0.7, 0.9], [0.4, 0.1, 0.3]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = loss(x)
    return value, tape.gradient(value, x)


@parity
def test_losses_of_pairs(tf):
    losses = tf.compat.v1.losses
    return {
        (name, i): with_gradient(tf, lambda x, n=name, w=w: getattr(losses, n)(labels(tf), x, w))
        for name in PAIRS
        for i, w in enumerate(WEIGHTS)
    }


@parity
def test_cross_entropies(tf):
    losses, y = tf.compat.v1.losses, labels(tf)
    sparse = tf.constant([2, 0])
    return [
        with_gradient(tf, lambda x: losses.sigmoid_cross_entropy(y, x)),
        with_gradient(tf, lambda x: losses.sigmoid_cross_entropy(multi_class_labels=y, logits=x, label_smoothing=0.2)),
        with_gradient(tf, lambda x: losses.sigmoid_cross_entropy(tf.cast(y, tf.int32), x, weights=[[1.0], [0.0]])),
        with_gradient(tf, lambda x: losses.softmax_cross_entropy(y, x)),
        with_gradient(tf, lambda x: losses.softmax_cross_entropy(y, x, weights=[0.5, 0.0], label_smoothing=0.1)),
        with_gradient(tf, lambda x: losses.softmax_cross_entropy(x, x)),
        with_gradient(tf, lambda x: losses.sparse_softmax_cross_entropy(sparse, x)),
        with_gradient(tf, lambda x: losses.sparse_softmax_cross_entropy(sparse[:, None], x, weights=2.0)),
        with_gradient(tf, lambda x: losses.sparse_softmax_cross_entropy(sparse[:, None], x, weights=[[1.2], [3.4]])),
        with_gradient(tf, lambda x: losses.sparse_softmax_cross_entropy(sparse, x, weights=[[1.2], [0.0]])),
    ]


@parity
def test_reductions(tf):
    losses = tf.compat.v1.losses
    return {
        (name, i): with_gradient(
            tf,
            lambda x, n=name, w=w: losses.mean_squared_error(labels(tf), x, w, reduction=getattr(losses.Reduction, n)),
        )
        for name in REDUCTIONS
        for i, w in enumerate(WEIGHTS)
    }


@parity
def test_in_a_function(tf):
    losses = tf.compat.v1.losses
    f = tf.function(lambda y, x: losses.sigmoid_cross_entropy(y, x, weights=y) + losses.huber_loss(y, x, delta=0.3))
    return f(labels(tf), tf.constant([[0.2, -0.7, 3.0], [0.4, 0.1, -2.0]]))


@parity
def test_other_dtypes(tf):
    losses = tf.compat.v1.losses
    y = np.array([[1, 0], [0, 1]])
    return losses.mean_squared_error(y, y + 1), losses.sigmoid_cross_entropy(y, tf.constant([[0.5, 1.0], [2.0, 0.1]]))


@parity
def test_what_is_refused(tf):
    losses, x = tf.compat.v1.losses, tf.ones([2, 3])
    return [
        error_of(lambda: losses.mean_squared_error(tf.ones([2]), x)),
        error_of(lambda: losses.mean_squared_error(None, x)),
        error_of(lambda: losses.mean_squared_error(x, x, weights=[1.0, 2.0])),
        error_of(lambda: losses.compute_weighted_loss(x, reduction="mean")),
    ]
