"""Slopes that are infinite, undefined or cut: poles, branch cuts, NaN, and cotangents of zero, infinity and NaN."""

import numpy as np
from harness import error_of, parity

INF, NAN = np.inf, np.nan
# Without the numbers below 1e-38, which XLA takes for zero.
POINTS = np.float32([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 6.0, 30.0, -30.0, INF, -INF, NAN])


def pulled(tf, function, *arguments, cotangent=1.0):
    """The value, and its gradient with respect to each argument from this cotangent."""
    xs = [tf.constant(x) for x in arguments]
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = function(*xs)
    return [y, *tape.gradient(y, xs, output_gradients=tf.fill(tf.shape(y), tf.constant(cotangent, y.dtype)))]


def pairs(values):
    x, y = np.meshgrid(np.float32(values), np.float32(values))
    return x.ravel(), y.ravel()


# --- one argument ---------------------------------------------------------------------------------------------------


@parity
def test_a_zero_cotangent_stops_at_every_slope(tf):
    """sqrt, rsqrt and reciprocal give zero for a zero cotangent, be their slope infinite or not a number."""
    found = [pulled(tf, f, POINTS, cotangent=c) for f in (tf.sqrt, tf.math.reciprocal) for c in (0.0, 1.0, INF, NAN)]
    unsigned = np.delete(POINTS, 1)  # on the slope of rsqrt at -0 the two do not agree
    return found + [pulled(tf, tf.math.rsqrt, unsigned, cotangent=c) for c in (0.0, 1.0, INF, NAN)]


@parity
def test_a_guarded_square_root(tf):
    """where(x > 0, sqrt(x), 0) has a gradient for negative x, too, in a function and out of it."""
    x = np.float32([-2.0, -0.0, 0.0, 4.0])

    def guarded(x):
        return tf.where(x > 0.0, tf.sqrt(x), 0.0) + tf.where(x > 0.0, tf.math.rsqrt(x), 0.0)

    return [pulled(tf, function, x)[1] for function in (guarded, tf.function(guarded))]


@parity
def test_a_small_cotangent_at_a_pole(tf):
    """An infinite slope makes any cotangent but zero infinite."""
    return [pulled(tf, tf.sqrt, np.float32([0.0]), cotangent=c) for c in (1e-30, -1e-30, 1e30)]


@parity
def test_second_derivatives_where_the_slope_is_not_finite(tf):
    """They are infinite or undefined as well, and no more hidden: only a zero that comes back is zero."""
    x = np.float32([-4.0, 0.0, 1e-8, 4.0, INF, NAN])

    def second(function, weights):
        points = tf.constant(x)
        with tf.GradientTape() as outer:
            outer.watch(points)
            with tf.GradientTape() as inner:
                inner.watch(points)
                y = function(points)
            slope = inner.gradient(y, points, weights)
        return outer.gradient(slope, points, weights)

    ones, some = np.ones(6, np.float32), np.float32([2.0, 1.0, 0.0, 0.5, 2.0, 1.0])
    functions = tf.sqrt, tf.math.rsqrt, tf.math.reciprocal
    return [second(f, w) for f in functions for w in (ones, some)], tf.function(lambda: second(tf.sqrt, ones))()


@parity
def test_slopes_where_there_is_no_value(tf):
    """acosh below 1; ndtri and erfcinv beyond the ends of their intervals."""
    x = np.float32([-2.0, -1.0, 0.25, 0.5, 1.5, 3.0, NAN])
    functions = tf.math.acosh, tf.math.ndtri, tf.math.erfcinv
    return [pulled(tf, f, x) for f in functions]


# --- two arguments --------------------------------------------------------------------------------------------------


@parity
def test_powers(tf):
    """pow of every kind of base and exponent: where the power is NaN or infinite, so is the exponent's gradient."""
    x, y = pairs([0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, 3.0, INF, -INF, NAN])
    plain = y != 0  # TensorFlow's gradient of x**0 is NaN at 0: on the table of differences
    return [pulled(tf, tf.pow, x[plain], y[plain], cotangent=c) for c in (1.0, 0.0, INF, NAN)]


@parity
def test_powers_of_complex_numbers(tf):
    """log(0) counts as zero in the exponent's gradient."""
    x = np.complex64([-2, 1j, 0, 1 + 1j, -1, 2])
    y = np.complex64([0.5, 3, 2, 1j, 1 + 1j, 0])
    return pulled(tf, tf.pow, x, y)


@parity
def test_float_exponents(tf):
    """x ** 2.0 of every dtype: eager, in a function, and as tf.pow; either operand may be the number."""
    found, exponents = [], (2.0, 0.5, -1.5, 0.0, 3, 40, -20)
    powers = tf.function(lambda x: tf.stack([x[i] ** e for i, e in enumerate(exponents)]))
    for dtype in ("float16", "bfloat16", "float32", "float64", "complex64"):
        x = np.array([1.5, 2.5])
        for exponent in exponents:
            found.append(pulled(tf, lambda x, e=exponent: x**e, tf.constant(x, dtype)))
            found.append(pulled(tf, lambda x, e=exponent: tf.pow(x, e), tf.constant(x, dtype)))
        found.append(pulled(tf, powers, tf.constant(np.tile(x, (len(exponents), 1)), dtype)))
        found.append(pulled(tf, lambda x: 2.0**x, tf.constant(x, dtype)))
        found.append(pulled(tf, lambda x: 3**x, tf.constant(x, dtype)))
        if dtype.startswith("float") and dtype != "float16":
            found += [tf.truncatediv(tf.constant(x, dtype), 2.0), tf.truncatemod(tf.constant(x, dtype), 2.0)]
    return found


@parity
def test_what_has_no_nan(tf):
    """multiply_no_nan hides no infinite or undefined slope."""
    x, y = pairs([0.0, -0.0, 1.0, -1.0, 2.0, 0.5, INF, -INF, NAN])
    divided = [pulled(tf, tf.math.divide_no_nan, x, y, cotangent=c) for c in (1.0, 0.0)]
    return divided, [pulled(tf, tf.math.multiply_no_nan, x, y, cotangent=c) for c in (1.0, 0.0, INF, NAN)]


@parity
def test_products_with_logarithms(tf):
    """xlogy, xlog1py and xdivy at x = 0."""
    x, y = pairs([0.0, 1.0, -1.0, 2.0, 0.5])
    functions = tf.math.xlogy, tf.math.xlog1py, tf.math.xdivy
    return [pulled(tf, f, x, y, cotangent=c) for f in functions for c in (1.0, 0.0)]


@parity
def test_forward_mode_at_poles(tf):
    """An argument that is constant adds nothing to a tangent, not even zero times infinity."""
    x, y = tf.constant([0.0, INF, NAN, -2.0]), tf.constant([-1.0, 2.0, 0.0, INF])
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
        z = tf.math.multiply_no_nan(x, y)
    return accumulator.jvp(z)


# --- complex numbers ------------------------------------------------------------------------------------------------

QUADRANTS = np.complex64([1 + 2j, -1 + 2j, -1 - 2j, 1 - 2j, 0.5 + 0.3j, -0.5 + 0.3j, -0.5 - 0.3j, 0.5 - 0.3j])
# Without -0 as a real or imaginary part, which XLA does not tell from 0.
AXES = np.complex64([2, 0.5, 2j, complex(0, -2), 0.5j, complex(0, -0.5)])
LEFT = np.complex64([-2, -0.5])


@parity
def test_inverse_functions_in_every_quadrant(tf):
    """Value, gradient and second derivative of all elementwise functions of complex numbers."""
    found = {}
    for name in "acos acosh asin asinh atan atanh log log1p sqrt rsqrt exp sin cosh tan tanh sigmoid sign".split():
        z = tf.constant(QUADRANTS)
        with tf.GradientTape() as outer:
            outer.watch(z)
            with tf.GradientTape() as tape:
                tape.watch(z)
                y = getattr(tf.math, name)(z)
            gradient = tape.gradient(y, z)
        found[name] = y, gradient, outer.gradient(gradient, z)
    return found


@parity
def test_inverse_functions_on_the_axes(tf):
    """On a branch cut the slope is the one that goes with the value."""
    found = {}
    for name in "acos acosh asin asinh atan atanh log log1p sqrt rsqrt sign".split():
        # TensorFlow's slope of acos and asin on the left is that of the other side of the cut.
        z = AXES if name in ("acos", "asin") else np.concatenate([AXES, LEFT])
        found[name] = [pulled(tf, getattr(tf.math, name), z, cotangent=c) for c in (1.0, 1j)]
    return found


@parity
def test_complex_arc_sine_and_cosine_where_their_slope_is_infinite(tf):
    """At 1 and -1 the value is rounded, and the slope of sine or cosine there would not be zero."""
    return [np.isfinite(pulled(tf, f, np.complex64([1.0, -1.0, 0.5]))[1]) for f in (tf.asin, tf.acos)]


@parity
def test_complex_zero(tf):
    """sign, sqrt and rsqrt at zero, for a cotangent of zero."""
    zero = np.complex64([0.0])
    return [pulled(tf, f, zero, cotangent=0.0)[1] for f in (tf.sign, tf.sqrt, tf.math.rsqrt, tf.abs)]


# --- sizes and shapes -----------------------------------------------------------------------------------------------


@parity
def test_how_many_numbers_a_range_has(tf):
    """They are counted and computed in the dtype itself."""
    found = [tf.shape(tf.range(-2.0, 1.0, 3 / 800)), tf.range(0.0, 1.0, 0.1), tf.range(0.0, 3.0, 0.3)]
    for dtype in ("float16", "bfloat16", "float32"):
        steps = [tf.constant(x, dtype) for x in (0.1, -0.3, 0.07)]
        found += [tf.range(tf.constant(0.0, dtype), tf.constant(5.0 if s > 0 else -5.0, dtype), s) for s in steps]
    return found


@parity
def test_a_limit_does_not_broadcast_what_it_limits(tf):
    """clip_by_value and clip_by_norm take limits that fit into the tensor, and no others."""
    x, matrix = tf.constant([1.0, 2.0, 3.0]), tf.ones([2, 3])
    return [
        tf.clip_by_value(matrix, tf.zeros([3]), 0.5),
        tf.clip_by_value(x, tf.zeros([1]), 2.0),
        tf.clip_by_norm(matrix, tf.ones([2, 1]), axes=1),
        error_of(tf.clip_by_value, x, tf.zeros([2, 3]), 2.0),
        error_of(tf.clip_by_value, x, 0.0, tf.ones([2, 3])),
        error_of(tf.clip_by_value, tf.constant(1.0), tf.zeros([2]), 2.0),
        error_of(tf.clip_by_value, x, tf.zeros([1, 3]), 2.0),
        error_of(tf.clip_by_value, x, tf.zeros([2]), 2.0),
        error_of(tf.clip_by_norm, x, tf.ones([2, 3])),
        error_of(tf.clip_by_norm, x, tf.ones([1, 3])),
        error_of(tf.clip_by_norm, tf.constant(1.0), tf.ones([1])),
    ]


@parity
def test_the_dtypes_of_clip_by_global_norm(tf):
    """Each tensor keeps its dtype; a norm is of tensors of one floating-point dtype."""
    found = []
    for dtype in (tf.float16, tf.bfloat16, tf.float32, tf.float64):
        for limit in (5.0, 0.1):
            clipped, norm = tf.clip_by_global_norm(
                [tf.constant([1.0, 2.0], dtype), None, tf.constant([3.0], dtype)], limit
            )
            found += [*clipped, norm]
    single, half = tf.constant([3.0, 4.0]), tf.constant([3.0], tf.float16)
    found += tf.clip_by_global_norm([single, half], 1.0, use_norm=tf.constant(5.0))[0]
    return found + [
        error_of(tf.clip_by_global_norm, [single, half], 1.0),
        error_of(tf.linalg.global_norm, [single, half]),
        error_of(tf.clip_by_global_norm, [half], tf.constant(1.0)),
        error_of(tf.clip_by_global_norm, [tf.constant([1])], 1),
        error_of(tf.clip_by_global_norm, single, 1.0),
    ]


@parity
def test_check_numerics_checks_the_gradient(tf):
    """Where it is taken, and its own gradient, too; a tangent is not checked."""

    def gradient(x, function=tf.sqrt, second=False):
        x = tf.constant(x)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = function(tf.debugging.check_numerics(x, "the radius"))
            found = tape.gradient(y, x)
        return outer.gradient(found, x) if second else found

    wrong = [
        error_of(gradient, [0.0]),
        error_of(gradient, [0.0, 1.0], lambda x: -tf.sqrt(x)),
        error_of(gradient, [0.0], lambda x: x**1.5, True),
        error_of(gradient, [NAN]),
    ]
    x = tf.constant([0.0])
    with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0])) as accumulator:
        y = tf.sqrt(tf.debugging.check_numerics(x, "x"))
    try:
        message = gradient([0.0]).numpy()
    except tf.errors.InvalidArgumentError as error:
        message = "detected in gradient" in str(error), "the radius" in str(error)
    return wrong, message, gradient([4.0]), gradient([4.0], second=True), accumulator.jvp(y)


@parity
def test_a_jacobian_at_a_pole(tf):
    """Distances between points: nan where a point meets itself, and nowhere else, however many columns there are."""

    def distances(x):
        return tf.sqrt(tf.reduce_sum((x[:, None] - x) ** 2, -1))

    def roots(x):
        return tf.concat([tf.norm(x, axis=1), tf.sqrt(x[:, 0]), x[:, 1] * 2, tf.reduce_sum(x**2, 1), x[:, 0] ** 2], 0)

    def jacobian(x, function):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tape.jacobian(y, x)

    cases = [(distances, [[0.0, 0.0], [3.0, 4.0], [1.0, 1.0]]), (roots, [[0.0, 0.0], [3.0, 4.0]])]
    in_function = tf.function(jacobian)
    return [(jacobian(tf.constant(x), f), in_function(tf.constant(x), f)) for f, x in cases]
