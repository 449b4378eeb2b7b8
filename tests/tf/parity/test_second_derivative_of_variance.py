"""The second derivative of a variance, which TensorFlow's `moments` loses: its mean is a constant there."""

from harness import parity


def twice(tf, variance):
    x = tf.constant([1.0, 2.0, 4.0, 7.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.sin(x) / tf.sqrt(variance(x)))
        first = tape.gradient(y, x)
    return first, outer.gradient(first, x, output_gradients=2 * first)


@parity(differs="TensorFlow's second derivative of nn.moments takes the mean for a constant; here it is the derivative")
def test_of_moments(tf):
    return twice(tf, lambda x: tf.nn.moments(x, [0])[1])


@parity
def test_of_its_relatives(tf):
    """All others follow the mean, as here all do."""
    variances = [
        tf.math.reduce_variance,
        lambda x: tf.math.reduce_std(x) ** 2,
    ]
    return [twice(tf, variance) for variance in variances]
