"""What calls of each public function with all values of its arguments, beside TensorFlow, found to differ."""

import numpy as np
from harness import error_of, parity
from tables import Table

f32 = np.float32
table = Table()

ZEROS = np.array([[1.0, 0.0, -2.0], [-1.0, 2.0, 0.0]], f32)
for ord in (1, np.inf):
    for axis in ((0, 1), (1, 0), (-2, -1)):
        table.gradients(
            f"norm-of-a-matrix-with-zeros-{ord}-{axis}",
            lambda tf, x, ord=ord, axis=axis: [
                tf.norm(x, ord, axis),
                tf.norm(x, ord, axis, keepdims=True),
                tf.norm(tf.stack([x, x * x, x - 1.0], 1), ord, (axis[0] % 2 * 2, axis[1] % 2 * 2)),
            ],
            ZEROS,
        )
table.gradients(
    "linspace-of-one", lambda tf, a, b: tf.linspace(a, b, 1, axis=-1), f32([[1.0, 2.0]]), f32([[3.0], [4.0]])
)
NONE = np.zeros((0, 3), f32)
for name, call in {
    "repeat": lambda tf, x: tf.repeat(x, [2]),
    "diag": lambda tf, x: tf.linalg.diag(x, padding_value=2.0),
    "diag_part": lambda tf, x: tf.linalg.diag_part(x[None], k=1, padding_value=2.0),
    "segment_sum": lambda tf, x: tf.math.segment_sum(x, np.zeros(0, np.int32)),
    "unsorted_segment_sum": lambda tf, x: tf.math.unsorted_segment_sum(x, np.zeros(0, np.int32), 2),
    "unsorted_segment_mean": lambda tf, x: tf.math.unsorted_segment_mean(x, np.zeros(0, np.int32), 2),
    "unsorted_segment_max": lambda tf, x: tf.math.unsorted_segment_max(tf.transpose(x), [1, 0, 1], 2),
    "overlap_and_add": lambda tf, x: tf.signal.overlap_and_add(x[None], 2),
    "cumulative_logsumexp": lambda tf, x: tf.math.cumulative_logsumexp(x, 0, exclusive=True),
    "svd": lambda tf, x: tf.linalg.svd(x[:, None], compute_uv=False),
    "logdet": lambda tf, x: tf.linalg.logdet(x[:, None, :1]),
    "resize": lambda tf, x: tf.image.resize(x[:, :, None, None], [2, 2], "nearest"),
    "saturate_cast": lambda tf, x: tf.saturate_cast(x, tf.float16),
    "extract_patches": lambda tf, x: tf.image.extract_patches(
        x[:, :, None, None], [1, 2, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1], "VALID"
    ),
}.items():
    table.gradients(f"no-rows-{name}", call, NONE)
table.values("the-largest-of-nothing", lambda tf: [tf.norm(NONE, np.inf, 0), tf.norm(NONE[None], np.inf, (1, 2))])
table.gradients("frame-of-none", lambda tf, x: tf.signal.frame(x, 4, 2), f32([[1.0, 2.0, 3.0]]))
for kind in (1, 2, 3, 4):
    table.gradients(
        f"idct-of-another-length-{kind}",
        lambda tf, x, kind=kind: [tf.signal.idct(x, kind, n) for n in (3, 5, 8)],
        f32([[1.0, -2.0, 0.5, 3.0, 4.0]]),
    )
table.gradients(
    "pinv-by-batch",
    lambda tf, x: tf.linalg.pinv(x, [0.01, 0.6]),
    f32([[[3.0, 0.0], [0.5, 1.0], [0.0, 1.0]], [[3.0, 0.0], [0.5, 1.0], [0.0, 1.0]]]),
)
# 0.8 to 0.2 of five pixels are pixels, once rounded as TensorFlow does
table.gradients(
    "crop_and_resize-backwards-on-the-grid",
    lambda tf, x, boxes: tf.image.crop_and_resize(x, boxes, [0, 0], [3, 4]),
    (np.arange(30, dtype=f32) ** 2 % 17).reshape(1, 5, 6, 1),
    f32([[0.8, 0.8, 0.1, 0.2], [0.1, 0.2, 0.8, 0.8]]),
)


table.values(
    "one_hot-of-numbers-of-several-kinds",
    lambda tf: [
        tf.one_hot([0, 1], 2, on_value=1, off_value=0.5, dtype=tf.float32),
        tf.one_hot([0, 1], 2, on_value=5, off_value=False, dtype=tf.int64),
        tf.one_hot([0, 1], 2, on_value=2.5, off_value=True, dtype=tf.float32),
        tf.one_hot([0, 1], 2, on_value=True, dtype=tf.float16),
    ],
)


def of_gradients(tf, labels, logits, axis, which):
    """The second derivative of a cross-entropy: of the first with respect to labels or logits."""
    labels, logits = tf.constant(labels), tf.constant(logits)
    with tf.GradientTape() as outer:
        outer.watch([labels, logits])
        with tf.GradientTape() as inner:
            inner.watch([labels, logits])
            loss = tf.nn.softmax_cross_entropy_with_logits(labels, logits, axis)
        first = inner.gradient(loss, [labels, logits])
        y = first[which] ** 2
    return first, outer.gradient(y, [labels, logits])


LABELS = f32([[0.2, 0.5, 0.3], [1.0, 0.0, 1.0]])
LOGITS = f32([[0.1, -1.0, 2.0], [3.0, 0.5, -0.25]])


@parity
def test_second_derivatives_of_a_cross_entropy(tf):
    """The first derivative with respect to labels depends on logits, also through what normalises them."""
    by_labels = [of_gradients(tf, LABELS, LOGITS, axis, 0) for axis in (0, 1)]
    return by_labels, [of_gradients(tf, LABELS, LOGITS, axis, 1)[1][1] for axis in (0, 1)]


@parity(differs="TensorFlow leaves out that the derivative with respect to logits, softmax - labels, depends on labels")
def test_second_derivative_of_a_cross_entropy_by_labels(tf):
    return of_gradients(tf, LABELS, LOGITS, -1, 1)[1][0]


@parity
def test_the_fields_of_a_pool_with_argmax(tf):
    found = tf.nn.max_pool_with_argmax(tf.constant([[[[1.0], [3.0]], [[2.0], [0.0]]]]), 2, 2, "SAME")
    return found._fields, found.output, found.argmax


@parity
def test_arguments_that_contradict_each_other(tf):
    x = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    calls = [
        lambda: tf.split(x, [1, 2], axis=1, num=3),
        lambda: tf.roll(x, [1, 2], -1),
        lambda: tf.roll(x, 1, [0, 1]),
        lambda: tf.roll(x, [1], 0),
        lambda: tf.linalg.matvec(x, x[:, 0], transpose_a=True, adjoint_a=True),
        lambda: tf.linalg.band_part(x, 3, 0),
        lambda: tf.linalg.band_part(x, 0, 4),
        lambda: tf.linalg.diag(x, k=2, num_cols=4),
        lambda: tf.linalg.diag(x, num_rows=5, num_cols=4),
        lambda: tf.linalg.diag(x, num_rows=2),
    ]
    allowed = [
        tf.split(x, [1, 2], axis=1, num=2),
        tf.roll(x, [1], [0]),
        tf.linalg.band_part(x, 2, 3),
        tf.linalg.diag(x, num_rows=5),
        tf.linalg.diag(x, k=-1, num_cols=5),
    ]
    return [error_of(call) for call in calls], allowed


@parity(
    differs="TensorFlow gives each of equals the whole gradient, on the CPU; here, as in two dimensions, the first has it"
)
def test_equals_in_a_window_of_three_dimensions(tf):
    x = tf.Variable(tf.ones([1, 2, 2, 2, 1]))
    with tf.GradientTape() as tape:
        y = tf.nn.max_pool3d(x, 2, 2, "VALID")
    return tape.gradient(y, x)


@parity
def test_boxes_of_nearest_pixels(tf):
    """The gradient is that of method="bilinear", as if the pixels were not the nearest ones."""
    x = tf.Variable((np.arange(32, dtype=f32) ** 2 % 7).reshape(2, 4, 4, 1))
    boxes, found = tf.Variable([[0.1, 0.2, 0.7, 0.9], [0.9, -0.3, 0.2, 1.3], [0.0, 0.0, 1.0, 1.0]]), []
    for size in ([2, 2], [1, 3], [4, 1]):
        with tf.GradientTape() as tape:
            y = tf.image.crop_and_resize(x, boxes, [0, 1, 0], size, method="nearest", extrapolation_value=0.5)
            z = y * y
        found += [y, *tape.gradient(z, [boxes, x])]
    return found


test_swept = table.test()


@parity
def test_options_of_top_k_that_come_again(tf):
    """What runs an operation is kept by its options."""
    x, found = tf.constant([[3.0, 1.0, 2.0]]), []
    for _ in range(2):
        for k, index_type in ((1, tf.int32), (2, tf.int64), (True, tf.int32)):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.math.top_k(x, k, index_type=index_type)
            # TensorFlow's gradient needs indices of int32
            found.append((*y, tape.gradient(y.values, x) if index_type == tf.int32 else None))
    return found


@parity
def test_what_dropout_leaves(tf):
    """Zeros and scaled elements, whose gradient is the scale; the same places for a shape of noise with ones."""
    x = tf.ones([40, 30])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.nn.dropout(x, 0.75)
    slope, rows = tape.gradient(y, x), tf.nn.dropout(x, 0.5, noise_shape=[40, 1])
    return np.unique(y), tf.reduce_all(slope == y), tf.reduce_all(rows == rows[:, :1]), tf.nn.dropout(x, 0) is x


@parity
def test_the_second_derivative_of_spence_at_one(tf):
    x = tf.constant([0.5, 1.0, 2.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.math.special.spence(x)
        first = inner.gradient(y, x)
    return y, first, outer.gradient(first, x)
