"""Infinities and nan, among the inputs and in the gradients that come back: how far they spread is TensorFlow's choice."""

import math

import numpy as np
from harness import parity

NOT_FINITE = math.nan, math.inf, -math.inf


def pulled(tf, function, cotangent, *points):
    """The gradient of a function with respect to each of its arguments, for a given cotangent."""
    variables = [tf.Variable(point) for point in points]
    with tf.GradientTape() as tape:
        y = function(*variables)
    return [
        None if g is None else tf.convert_to_tensor(g)
        for g in tape.gradient(y, variables, output_gradients=tf.constant(cotangent))
    ]


# ---- Images ------------------------------------------------------------------------------------------------


def picture(bad, height=5, width=6):
    pixels = np.arange(height * width, dtype=np.float32).reshape(1, height, width, 1)
    pixels[0, 1, 2] = bad
    return pixels


@parity
def test_a_missing_pixel_in_patches_and_parts(tf):
    """Patches and crops hold it where it is."""
    images = tf.constant(picture(math.nan))
    return [
        *[
            tf.image.extract_patches(images, [1, 2, 3, 1], [1, *strides, 1], [1, *rates, 1], padding)
            for strides, rates, padding in (
                ([1, 1], [1, 1], "SAME"),
                ([2, 3], [1, 1], "VALID"),
                ([1, 2], [2, 1], "SAME"),
            )
        ],
        tf.image.crop_and_resize(images, [[0.0, 0.0, 1.0, 1.0], [0.1, 0.2, 0.9, 1.2]], [0, 0], [5, 6]),
        tf.image.sobel_edges(images),
    ]


@parity
def test_an_infinite_pixel_in_patches(tf):
    """Patches copy it."""
    return [tf.image.extract_patches(picture(bad), [1, 2, 2, 1], [1] * 4, [1] * 4, "SAME") for bad in NOT_FINITE]


@parity
def test_image_gradients_of_an_infinite_last_row(tf):
    """The last row has no next one: its differences are zero, whatever it is."""
    return [tf.image.image_gradients(tf.constant(picture(bad, 2, 3))) for bad in NOT_FINITE]


@parity
def test_gradients_that_come_back_to_patches_and_parts(tf):
    """A gradient that is not finite goes to the pixels that it is of."""
    images, boxes = picture(1.0, 3, 3), [[0.0, 0.0, 1.0, 0.9]]

    def patches(x):
        return tf.image.extract_patches(x, [1, 2, 2, 1], [1] * 4, [1] * 4, "VALID")

    def part(x):
        return tf.image.crop_and_resize(x, boxes, [0], [3, 2])

    found = []
    for bad in NOT_FINITE:
        cotangent = np.ones((1, 2, 2, 4), np.float32)
        cotangent[0, 0, 1, 2] = bad
        found.append(pulled(tf, patches, cotangent, images))
        cotangent = np.ones((1, 3, 2, 1), np.float32)
        cotangent[0, 1, 0] = bad
        found.append(pulled(tf, part, cotangent, images))
        cotangent = np.ones((1, 3, 3, 1, 2), np.float32)
        cotangent[0, 0, 0, 0, 0] = bad
        found.append(pulled(tf, tf.image.sobel_edges, cotangent, images))
    return found


@parity
def test_the_saturation_of_a_pure_colour(tf):
    """Its slope with respect to a channel that is 0 is 0, as at the end of the range."""
    return pulled(tf, tf.image.rgb_to_hsv, np.ones(3, np.float32), [1.0, 0.9, 0.0])


# ---- Gradients that come back ------------------------------------------------------------------------------


def each_place(tf, function, *points):
    """The gradients where what comes back is not finite at one place of the result, for every place."""
    size = int(tf.size(function(*map(tf.constant, points))))
    shape = function(*map(tf.constant, points)).shape
    found = []
    for place in range(size):
        for bad in NOT_FINITE:
            cotangent = 1 + np.arange(size, dtype=np.float32)
            cotangent[place] = bad
            found.append(pulled(tf, function, cotangent.reshape(shape), *points))
    return found


@parity
def test_clipping_by_the_norm_of_all(tf):
    """What is not finite in one comes to all, by way of the norm."""

    def clipped(limit):
        return lambda x, y: tf.concat(tf.clip_by_global_norm([x, y], limit)[0], 0)

    return [each_place(tf, clipped(limit), [3.0, 0.0], [4.0]) for limit in (2.0, 20.0)]


@parity
def test_products_with_a_mask(tf):
    """A mask made of bools does not hide what is not finite, in a function either."""
    x, mask = tf.constant([1.0, math.nan, math.inf, 4.0]), tf.constant([True, False, False, True])

    @tf.function
    def masked(x, mask, lengths):
        return x * tf.cast(mask, tf.float32), x * tf.sequence_mask(lengths, 4, tf.float32), tf.reduce_sum(x) * 0

    return [masked(x, mask, 1) for _ in range(2)]


@parity(differs="a nan that comes back to the product of a segment with two zeros: 0 there in TensorFlow, nan here")
def test_a_nan_that_comes_back_to_a_product_of_zeros(tf):
    """As in reduce_prod, in both systems."""

    def product(x):
        return tf.math.unsorted_segment_prod(x, [0, 0, 0], 1)

    return pulled(tf, product, [math.nan], [0.0, 0.0, 2.0])


@parity(differs="an infinite cotangent at a tie of tensor_scatter_nd_max: infinite in TensorFlow, nan here")
def test_an_infinite_cotangent_at_a_tie_of_a_scatter(tf):
    """The operand's tangent is that of all without that of the others."""
    return pulled(tf, lambda x: tf.tensor_scatter_nd_max(x, [[0]], [3.0]), [math.inf, 1.0], [3.0, 1.0])


@parity(differs="a nan that comes back to the first of linspace: also to stop, whose weight there is 0")
def test_a_nan_that_comes_back_to_a_range(tf):
    """TensorFlow puts start in as it is."""
    return pulled(tf, lambda a, b: tf.linspace(a, b, 3), [math.nan, 1.0, 1.0], 0.0, 1.0)


@parity(differs="ctc_loss of labels that do not fit into the logits: some 710 in TensorFlow, 1e30 here")
def test_ctc_loss_of_labels_that_do_not_fit(tf):
    """Two equal labels need a blank between them."""
    return tf.nn.ctc_loss([[1, 1, 2]], tf.zeros([3, 1, 4]), [3], [3], blank_index=0)


@parity
def test_the_gradient_of_a_batch_without_variance_whose_scale_is_zero(tf):
    """Zero passes through the infinite slope of the root as zero."""

    def normalized(x, variance, scale):
        return tf.nn.batch_normalization(x, tf.zeros([2]), variance, None, scale, 0.0)

    ones = np.ones((1, 2), np.float32)
    return [pulled(tf, normalized, ones, [[1.0, 2.0]], [bad, 1.0], [0.0, 1.0]) for bad in (0.0, math.nan)]


@parity
def test_singular_vectors_of_a_matrix_with_an_infinity(tf):
    """All is nan: LAPACK would not come to an end."""
    matrix = tf.constant([[4.0, 1.0, 0.0], [1.0, math.inf, 1.0], [0.0, 1.0, 2.0]])
    return tf.linalg.svd(matrix), tf.linalg.pinv(matrix)


@parity
def test_the_gradient_of_singular_values_of_a_matrix_with_an_infinity(tf):
    """It has the vectors, and comes to an end, too; so does that of a norm."""
    matrix = [[4.0, 1.0, 0.0], [1.0, math.inf, 1.0], [0.0, 1.0, 2.0]]
    functions = [lambda x: tf.linalg.svd(x, compute_uv=False), lambda x: tf.norm(x, 2, axis=[0, 1])]
    return [pulled(tf, function, cotangent, matrix) for function, cotangent in zip(functions, ([1.0, 2.0, 3.0], 1.0))]


@parity
def test_the_exponential_integral_of_a_tiny_negative_number(tf):
    """Not a number, and it comes to an end."""
    return tf.math.special.expint(tf.constant([-2.5e-37, 1.0])), tf.math.special.expint(tf.constant([-1.0, -1e-5]))
