"""Numbers of the dtype, though what is multiplied or added on the way to them may need another."""

import numpy as np
from harness import parity

SCALES = 1e-17, 1e-8, 1.0, 1e8, 1e17


def slope(tf, function, *points, dy=None):
    sources = [tf.constant(point) for point in points]
    with tf.GradientTape() as tape:
        tape.watch(sources)
        y = function(*sources)
    return tape.gradient(y, sources, output_gradients=dy)


def curvature(tf, function, point):
    x = tf.constant(point)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = function(x)
        g = inner.gradient(y, x)
    return outer.gradient(g, x, output_gradients=tf.ones_like(g))


@parity
def test_second_derivatives_of_norms(tf):
    """The second slope of the root leaves the dtype; its product with what comes before and after does not."""
    x = np.float32([[1.25, 2.0, -1.5], [-0.75, 0.0, 0.75]])
    norms = [tf.norm, tf.math.reduce_euclidean_norm, tf.math.reduce_std, lambda x: tf.linalg.global_norm([x, x])]
    return [curvature(tf, norm, scale * x) * scale for norm in norms for scale in np.float32(SCALES)]


@parity
def test_slopes_of_far_numbers(tf):
    """JAX's rule of asinh squares the number, that of x / (1 + abs(x)) is the difference of two large ones."""
    far = np.float32([-2.6e19, -1.4e7, -3e4, 3e4, 1.4e7, 1.4e21])
    return slope(tf, tf.math.asinh, far), slope(tf, tf.nn.softsign, far[1:-1])


@parity
def test_the_slope_of_a_bessel_function_near_0(tf):
    """It is the other one, and exact; the difference that JAX has is rounded to a multiple of 6e-8."""
    return slope(tf, tf.math.bessel_i0, np.float32([-1e-3, -1e-7, 1e-12, 1e-5, 0.25, 3.0, 60.0]))


@parity
def test_the_slope_of_an_angle(tf):
    """Of numbers whose squares are infinite or 0."""
    radii = np.float32([1e-30, 1e-20, 1.0, 1e20, 1e30])
    return slope(tf, lambda x, y: tf.math.angle(tf.complex(x, y)) * radii, radii * 3, radii * -4)


@parity
def test_the_slope_of_the_reciprocal_root_of_tiny_numbers(tf):
    """The slope itself may be infinite, its product with the cotangent is not."""
    tiny = np.float32([1.4e-16, -2.6e-16, 1e-20])
    return (
        slope(tf, lambda x: tf.math.l2_normalize(x, epsilon=0.0), tiny, dy=np.float32([1.0, 0.5, 2.0])),
        slope(tf, tf.math.rsqrt, np.float32([1e-28, 1e-32]), dy=np.float32([1e-6, 1e-12])),
        slope(
            tf,
            lambda x, v: tf.nn.batch_normalization(x, np.zeros(2, np.float32), v, None, None, 0.0),
            np.float32([[3e-16, -2e-16]]),
            np.float32([1e-31, 1e-31]),
        ),
    )


@parity(differs="dawsn is odd: TensorFlow's has no sign beyond 1e9")
def test_dawsns_integral_of_a_far_negative_number(tf):
    """Half the reciprocal."""
    return tf.math.special.dawsn(tf.constant([-2e9, -2e8])) * 1e9


@parity
def test_the_slope_of_a_remainder_whose_quotient_is_rounded(tf):
    """-5.9999998 is rounded to -6 before it goes to the integer below."""
    x, y = np.float32([2.38298459116237e-17, 0.7, -0.7, 5.5]), np.float32([-3.971641123134052e-18, 0.1, 0.1, -2.0])
    return slope(tf, tf.math.floormod, x, y), slope(tf, lambda x, y: x % y, x, y)


@parity
def test_the_slope_of_a_tangent_far_from_the_real_axis(tf):
    """One divided by a square of about a million: 1 + tan(z)**2 is a difference of numbers near 1."""
    x, y = np.float32([0.73, -1.2, 0.5]), np.float32([8.6, -7.0, 12.0])
    found = slope(tf, lambda x, y: tf.math.real(tf.math.tan(tf.complex(x, y))), x, y)
    return [g * np.exp(2 * np.abs(y)) for g in found]


SYMMETRIC = np.float32([[4.125, 1.0, -1.25], [1.0, 3.25, 0.25], [-1.25, 0.25, 2.75]])
WEIGHTS = np.float32([[0.25, -1.0, 2.0], [0.5, 0.125, -0.75], [1.125, 1.0, -0.25]])


def of_decomposition(tf, of, scale):
    """First and second derivative, divided by what the scale makes of them."""
    x = tf.constant(SYMMETRIC * scale)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.reduce_sum(of(x) * WEIGHTS)
        g = inner.gradient(y, x) * scale
    return g, outer.gradient(g, x, output_gradients=tf.constant(WEIGHTS.T)) * scale


@parity
def test_decompositions_of_large_matrices(tf):
    """Where TensorFlow has them, too: beyond, it adds 1e-20 to the squares of what it divides by."""
    vectors, axes = lambda x: tf.abs(tf.linalg.eigh(x)[1]), lambda x: tf.abs(tf.linalg.svd(x)[1])
    return (
        [of_decomposition(tf, vectors, scale) for scale in np.float32([1.0, 2.0**17])],
        [of_decomposition(tf, vectors, scale)[0] for scale in np.float32([2.0**24, 2.0**40])],
        [of_decomposition(tf, axes, scale)[0] for scale in np.float32([2.0**-6, 1.0, 2.0**17])],
    )


@parity
def test_sums_of_numbers_of_16_bits(tf):
    """They are added up in float32."""
    numbers = np.random.default_rng(0).standard_normal((40, 300)).astype(np.float32)

    def sums(x):
        return (
            tf.reduce_sum(x),
            tf.reduce_sum(x, 1),
            tf.add_n([x] * 50),
            tf.nn.avg_pool2d(x[None, :, :, None], 8, 8, "SAME"),
        )

    def off(dtype):
        """By how much of the largest number the sums differ from those in float32."""
        x = tf.cast(tf.constant(numbers), dtype)
        pairs = zip(sums(x), sums(tf.cast(x, tf.float32)))
        return [
            tf.reduce_max(tf.abs(tf.cast(one, tf.float32) - other)) / tf.reduce_max(tf.abs(other))
            for one, other in pairs
        ]

    return [[float(part) < unit for part in off(dtype)] for dtype, unit in ((tf.bfloat16, 0.02), (tf.float16, 0.0025))]


@parity
def test_standardized_images_are_float32(tf):
    """Of every dtype."""
    image = tf.reshape(tf.range(48), [4, 4, 3])
    return [
        tf.image.per_image_standardization(tf.cast(image, dtype))
        for dtype in ("float16", "bfloat16", "float64", "uint8")
    ]
