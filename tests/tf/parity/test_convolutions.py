"""Convolutions of every kind: results, and the gradients with respect to the input and the filters, eagerly and in a function."""

import numpy as np
from harness import parity


def drawn(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype("float32")


def every(tf, convolve, x, *filters):
    """What `convolve` gives, and the gradients of a loss that is not linear in it: of a tape, of a function, of second order."""
    variables = [tf.Variable(value) for value in (x, *filters)]

    def step():
        with tf.GradientTape() as tape:
            y = convolve(*variables)
            loss = tf.reduce_mean(tf.sin(y))
        return y, tape.gradient(loss, variables)

    with tf.GradientTape() as outer:
        penalty = tf.reduce_sum(step()[1][0] ** 2)
    return step(), tf.function(step, autograph=False)(), outer.gradient(penalty, variables)


@parity
def test_two_axes(tf):
    """conv2d over strides, paddings and dilations."""
    x, w = drawn(2, 7, 6, 3), drawn(3, 2, 3, 4)
    how = [(1, "SAME"), (2, "SAME"), (2, "VALID"), ((1, 3), "VALID"), (2, [[0, 0], [1, 2], [0, 1], [0, 0]])]
    plain = [every(tf, lambda x, w, h=h: tf.nn.conv2d(x, w, *h), x, w) for h in how]
    # conv2d itself has no gradient of these on a CPU in TensorFlow
    how = [("SAME", (2, 1)), ("VALID", (2, 2))]
    dilated = [every(tf, lambda x, w, h=h: tf.nn.convolution(x, w, padding=h[0], dilations=h[1]), x, w) for h in how]
    return plain, dilated


@parity
def test_one_axis(tf):
    """conv1d over strides, paddings and dilations."""
    x, w = drawn(2, 9, 3), drawn(3, 3, 4)
    plain = [
        every(tf, lambda x, w, h=h: tf.nn.conv1d(x, w, *h), x, w) for h in [(1, "SAME"), (2, "SAME"), (3, "VALID")]
    ]
    dilated = [
        every(tf, lambda x, w, h=h: tf.nn.convolution(x, w, padding=h[0], dilations=[h[1]]), x, w)
        for h in [("SAME", 2), ("VALID", 3)]
    ]
    return plain, dilated


@parity
def test_three_axes(tf):
    """conv3d over strides and paddings, and dilated as a convolution."""
    x, w = drawn(1, 5, 4, 6, 2), drawn(3, 2, 3, 2, 3)
    how = [((1, 1, 1), "SAME"), ((2, 2, 2), "SAME"), ((1, 2, 3), "VALID")]
    found = [every(tf, lambda x, w, h=h: tf.nn.conv3d(x, w, (1, *h[0], 1), h[1]), x, w) for h in how]
    return found, tf.nn.convolution(x, w, padding="SAME", dilations=(2, 1, 2))


@parity
def test_transposed(tf):
    """The transposed convolutions of one, two and three axes."""
    line, image, volume = drawn(2, 4, 3), drawn(2, 3, 4, 3), drawn(1, 2, 3, 2, 3)
    of_line, of_image, of_volume = drawn(3, 2, 3), drawn(3, 3, 2, 3), drawn(3, 2, 2, 2, 3)
    return [
        every(tf, lambda x, w: tf.nn.conv1d_transpose(x, w, (2, 8, 2), 2, "SAME"), line, of_line),
        every(tf, lambda x, w: tf.nn.conv1d_transpose(x, w, (2, 13, 2), 3, "VALID"), line, of_line),
        every(tf, lambda x, w: tf.nn.conv2d_transpose(x, w, (2, 6, 8, 2), 2, "SAME"), image, of_image),
        every(tf, lambda x, w: tf.nn.conv2d_transpose(x, w, (2, 5, 7, 2), 2, "SAME"), image, of_image),
        every(tf, lambda x, w: tf.nn.conv2d_transpose(x, w, (2, 8, 14, 2), (2, 3), "VALID"), image, of_image),
        every(tf, lambda x, w: tf.nn.conv3d_transpose(x, w, (1, 4, 6, 4, 2), 2, "SAME"), volume, of_volume),
    ]


@parity
def test_each_channel_by_itself(tf):
    """depthwise_conv2d and separable_conv2d: multipliers, strides, dilations."""
    x, point = drawn(2, 6, 5, 3), drawn(1, 1, 6, 4)
    found = []
    for strides, padding, dilations in [(1, "SAME", 1), (2, "SAME", 1), (2, "VALID", 1), (1, "SAME", 2)]:
        for multiplier in (1, 2):
            found.append(
                every(
                    tf,
                    lambda x, w, s=strides, p=padding, d=dilations: tf.nn.depthwise_conv2d(
                        x, w, [1, s, s, 1], p, dilations=[d, d]
                    ),
                    x,
                    drawn(3, 2, 3, multiplier),
                )
            )
    separable = every(
        tf,
        lambda x, w, p: tf.nn.separable_conv2d(x, w, p, [1, 2, 2, 1], "SAME"),
        x,
        drawn(3, 3, 3, 2),
        point,
    )
    many = every(
        tf, lambda x, w: tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME"), drawn(1, 3, 3, 70), drawn(2, 2, 70, 1)
    )
    return found, separable, many


@parity
def test_in_groups(tf):
    """Filters with fewer channels than the input: as many groups as that takes. TensorFlow has no gradient of it on a CPU."""
    x = drawn(2, 5, 4, 12)
    return [
        tf.nn.conv2d(x, drawn(3, 2, 12 // groups, 8 * groups), strides, padding)
        for groups, strides, padding in [(2, 1, "SAME"), (3, 2, "SAME"), (4, 2, "VALID"), (12, 1, "SAME")]
    ]
