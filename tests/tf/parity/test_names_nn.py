"""``tf.nn``: windows, morphology, moments in steps, losses; and infinite cotangents."""

import numpy as np
import pytest
from harness import error_of, parity
from tables import Table

f32 = np.float32
RNG = np.random.default_rng(3)
IMAGES = RNG.normal(size=(2, 5, 6, 3)).astype(f32)
FILTERS = RNG.normal(size=(3, 2, 3, 4)).astype(f32)
SHAPE = RNG.normal(size=(3, 2, 3)).astype(f32)
CHANNELS = np.abs(RNG.normal(size=(4, 3))).astype(f32)
ROWS = RNG.normal(size=(4, 3)).astype(f32)

table = Table(rtol=1e-4, atol=1e-5)

for padding in ("SAME", "VALID"):
    table.gradients(
        f"max_pool_with_argmax-{padding}",
        lambda tf, x, p=padding: tf.nn.max_pool_with_argmax(x, 2, 2, p),
        IMAGES,
    )
    # with equal numbers in the windows, of which the first gets the gradient
    table.gradients(
        f"max_pool-{padding}",
        lambda tf, x, p=padding: [
            tf.nn.max_pool2d(x, window, stride, p)
            for window, stride in ((2, 2), (3, 2), ([2, 3], 1), (2, 3), (5, [1, 2]), ([1, 6], 2))
        ],
        np.round(IMAGES),
    )
table.values(
    "max_pool_with_argmax-arguments",
    lambda tf: [
        tf.nn.max_pool_with_argmax(IMAGES, [1, 3, 2, 1], [1, 1, 2, 1], "SAME", include_batch_in_index=True)[1],
        tf.nn.max_pool_with_argmax(IMAGES, 2, 1, "VALID", output_dtype=tf.int32, include_batch_in_index=True)[1],
    ],
)
table.gradients(
    "local_response_normalization",
    lambda tf, x: [
        tf.nn.local_response_normalization(x),
        tf.nn.lrn(x, depth_radius=1, bias=2.0, alpha=0.5, beta=0.75),
    ],
    IMAGES,
)
table.gradients(
    "compute_average_loss",
    lambda tf, x: [
        tf.nn.compute_average_loss(x),
        tf.nn.compute_average_loss(x, sample_weight=[0.5, 1.0, 2.0, 0.0], global_batch_size=8),
    ],
    ROWS[:, 0].copy(),
)
table.gradients("scale_regularization_loss", lambda tf, x: tf.nn.scale_regularization_loss(x), ROWS)
table.errors(
    "nn-errors",
    lambda tf: [
        lambda: tf.nn.compute_average_loss(ROWS[:, 0], global_batch_size=-1),
        lambda: tf.nn.local_response_normalization(ROWS),
        lambda: tf.nn.max_pool_with_argmax(IMAGES, 2, 2, "SAME", data_format="NCHW"),
        lambda: tf.nn.experimental.stateless_dropout(ROWS, 1.5, (1, 2)),
    ],
)
table.values(
    "special",
    lambda tf: [
        tf.math.special.bessel_i1e([0.5, 1.0, 2.0]),
    ],
)


@parity
def test_dropout_by_seed(tf):
    """The same seed drops the same elements, and scales up the others."""
    x = tf.ones([200])
    one, other = (tf.nn.experimental.stateless_dropout(x, 0.25, seed=(1, 2)).numpy() for _ in range(2))
    by_rows = tf.nn.experimental.stateless_dropout(tf.ones([50, 3]), 0.5, [3, 4], noise_shape=[50, 1]).numpy()

    return (
        np.array_equal(one, other),
        sorted({round(float(v), 4) for v in one}),
        30 <= int((one == 0).sum()) <= 70,
        bool((by_rows == by_rows[:, :1]).all()),
    )


@parity(rtol=1e-4, atol=1e-4)
def test_ctc_loss(tf):
    """The loss of connectionist temporal classification, and its gradient, with each way of saying what counts."""
    pytest.importorskip("optax", reason="ctc_loss is Optax's")
    logits = tf.constant(np.random.default_rng(4).normal(size=(6, 2, 5)).astype(f32))
    labels = tf.constant([[1, 2, 2], [3, 1, 0]])
    with tf.GradientTape() as tape:
        tape.watch(logits)
        loss = tf.nn.ctc_loss(labels, logits, label_length=[3, 2], logit_length=[6, 5])
    last = tf.nn.ctc_loss(labels, logits, [3, 2], [6, 6], blank_index=-1)
    batch_first = tf.nn.ctc_loss(labels, tf.transpose(logits, [1, 0, 2]), [2, 2], [6, 6], logits_time_major=False)
    return loss, tape.gradient(loss, logits), last, batch_first


# ---- Infinite cotangents -------------------------------------------------------------------------------------------

INFINITE = (float("inf"), float("-inf"))
OPERATIONS = {
    "abs": (lambda tf, x: tf.abs(x), [-2.0, 0.0, 3.0, float("inf")]),
    "relu": (lambda tf, x: tf.nn.relu(x), [0.5, 3.0, float("inf")]),
    "relu6": (lambda tf, x: tf.nn.relu6(x), [0.5, 3.0]),
    "leaky_relu": (lambda tf, x: tf.nn.leaky_relu(x), [-2.0, 0.0, 3.0, float("-inf")]),
    "sqrt": (lambda tf, x: tf.sqrt(x), [-0.0, 0.0, 1.0, 4.0]),
    "rsqrt": (lambda tf, x: tf.math.rsqrt(x), [0.0, 1.0, 4.0]),
    "norm": (lambda tf, x: tf.norm(x[:, None], axis=1), [-2.0, 3.0]),
}


def slopes(tf, f, points, cotangent, twice=False):
    x = tf.constant(points)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(tf, x)
        first = tape.gradient(y, x, output_gradients=tf.fill(y.shape, cotangent))
    return [first, outer.gradient(first, x)] if twice else first


for name, (op, points) in OPERATIONS.items():
    table.values(
        f"infinite-{name}",
        lambda tf, op=op, points=points: [slopes(tf, op, points, c) for c in INFINITE],
    )
for name in ("abs", "relu", "relu6", "leaky_relu"):
    op, points = OPERATIONS[name]
    table.values(
        f"infinite-twice-{name}",
        lambda tf, op=op, points=points: [slopes(tf, op, points, c, twice=True) for c in (*INFINITE, 1.0, 0.0)],
    )


@parity(differs="an infinite cotangent where relu is flat: nan there, 0 here")
def test_infinite_cotangent_where_relu_is_flat(tf):
    """Zero slope times infinity."""
    return slopes(tf, OPERATIONS["relu"][0], [-1.0, 0.0], float("inf"))


@parity
def test_an_infinite_loss_leaves_the_rest_of_the_gradient(tf):
    """What the gaps were found by: a logarithm at its pole, behind a relu."""
    x = tf.Variable([1e-30, 2.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(1.0 / tf.square(tf.nn.relu(x)))
    return tape.gradient(y, x), error_of(lambda: None)


test_rows = table.test()


@parity
def test_windows_that_are_refused(tf):
    """Dilated ones that are not one apart, and paddings that hold a whole window."""
    x, k = tf.ones([1, 7, 6, 2]), tf.ones([3, 2, 2, 2])
    return (
        [error_of(tf.nn.convolution, x, k, 2, padding, dilations=[1, 2]) for padding in ("SAME", "VALID")],
        [error_of(tf.nn.pool, x, [2, 2], kind, [2, 1], "VALID", dilations=[1, 2]) for kind in ("MAX", "AVG")],
        [error_of(tf.nn.max_pool2d, x, 2, 1, [[0, 0], pair, [0, 1], [0, 0]]) for pair in ([1, 2], [1, 1], [2, 0])],
    )


@parity(differs="TensorFlow takes strides within the batches that it makes of a dilated window's parts")
def test_a_dilated_depthwise_convolution_with_strides(tf):
    x, k = tf.reshape(tf.range(42.0), [1, 7, 6, 1]), tf.ones([3, 2, 1, 1])
    return error_of(lambda: tf.nn.depthwise_conv2d(x, k, [1, 2, 2, 1], "SAME", dilations=[1, 2]))
