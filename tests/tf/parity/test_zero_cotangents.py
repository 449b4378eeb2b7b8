"""A zero that comes back to a pole: the same in every way that a derivative can be asked for.

TensorFlow's gradients of sqrt, rsqrt and reciprocal stop a zero; those of other functions multiply it by their slope. Its
forward mode multiplies for sqrt, and stops for rsqrt, reciprocal and multiply_no_nan.
"""

import numpy as np
import pytest
from harness import check, parity

PAIRS = np.float32([[0.0, 0.0], [3.0, 4.0], [1.0, 1.0]])
AT_ZERO = np.float32([0.0, 1.0, 4.0])
FUNCTIONS = {
    "sqrt": (lambda tf, x: tf.sqrt(x), AT_ZERO),
    "rsqrt": (lambda tf, x: tf.math.rsqrt(x), AT_ZERO),
    "reciprocal": (lambda tf, x: tf.math.reciprocal(x), AT_ZERO),
    "guarded-sqrt": (lambda tf, x: tf.where(x > 0, tf.sqrt(x), 0.0), AT_ZERO),
    "guarded-rsqrt": (lambda tf, x: tf.where(x > 0, tf.math.rsqrt(x), 0.0), AT_ZERO),
    "sqrt-of-a-square": (lambda tf, x: tf.sqrt(x * x), AT_ZERO),
    "a-product-with-sqrt": (lambda tf, x: x * tf.sqrt(x), AT_ZERO),
    "norm": (lambda tf, x: tf.norm(x, axis=1), PAIRS),
    "guarded-norm": (lambda tf, x: tf.where(tf.reduce_sum(x * x, 1) > 0, tf.norm(x, axis=1), 0.0), PAIRS),
    "distances": (lambda tf, x: tf.norm(x[:, None] - x[None], axis=-1)[0], PAIRS),
    "reduce_std": (lambda tf, x: tf.math.reduce_std(x, axis=1), PAIRS),
    "moments": (lambda tf, x: tf.sqrt(tf.nn.moments(x, [1])[1]), PAIRS),
    "reduce_euclidean_norm": (lambda tf, x: tf.math.reduce_euclidean_norm(x, axis=1), PAIRS),
    "normalize": (lambda tf, x: tf.linalg.normalize(x, axis=1)[0][:, 0], PAIRS),
    "l2_normalize": (lambda tf, x: tf.math.l2_normalize(x, axis=1)[:, 0], PAIRS),
    "global_norm": (lambda tf, x: tf.stack([tf.linalg.global_norm([row]) for row in tf.unstack(x)]), PAIRS),
    "batch_normalization": (lambda tf, x: tf.nn.batch_normalization(x, 0.0, x, None, None, 0.0), AT_ZERO),
    "root-of-squared_difference": (lambda tf, x: tf.sqrt(tf.math.squared_difference(x, [0.0, 0.0, 1.0])), AT_ZERO),
    "multiply_no_nan": (lambda tf, x: tf.math.multiply_no_nan([np.inf, 2.0, 3.0], x), AT_ZERO),
    "divide_no_nan": (lambda tf, x: tf.math.divide_no_nan([1.0, 2.0, 3.0], x), AT_ZERO),
    "pow": (lambda tf, x: tf.pow(x, 0.5), AT_ZERO),
    "log": (lambda tf, x: tf.math.log(x), AT_ZERO),
    "log1p": (lambda tf, x: tf.math.log1p(x - 1), AT_ZERO),
    "xlogy": (lambda tf, x: tf.math.xlogy(x, x), AT_ZERO),
    "asin": (lambda tf, x: tf.asin(x), np.float32([-1.0, 0.0, 1.0])),
    "acosh": (lambda tf, x: tf.acosh(x), np.float32([1.0, 2.0, 3.0])),
    "atanh": (lambda tf, x: tf.atanh(x), np.float32([-1.0, 0.0, 0.5])),
}
# Their second derivatives are TensorFlow's as well.
TWICE = (
    "sqrt rsqrt reciprocal guarded-sqrt guarded-rsqrt sqrt-of-a-square a-product-with-sqrt norm guarded-norm distances "
    "reduce_std normalize l2_normalize batch_normalization divide_no_nan root-of-squared_difference xlogy"
).split()
FORWARD = [name for name in FUNCTIONS if name not in ("asin", "pow")]
WEIGHTS = np.float32([0.0, 1.0, 2.0])


def gradient(tf, function, x, cotangent):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(tf, x)
    return tape.gradient(y, x, output_gradients=cotangent)


def jacobian(tf, function, x, **options):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = function(tf, x)
    return tape.jacobian(y, x, **options)


def batch_jacobian(tf, function, x):
    x = tf.stack([x, x])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.stack([function(tf, x[0]), function(tf, x[1])])
    return tape.batch_jacobian(y, x)


def product(tf, function, x, tangent):
    with tf.autodiff.ForwardAccumulator(x, tangent) as accumulator:
        y = function(tf, x)
    return accumulator.jvp(y)


def twice(tf, function, x, weights, by_cotangent=False):
    weights = tf.constant(weights)
    with tf.GradientTape() as outer:
        outer.watch([x, weights])
        first = gradient(tf, function, x, weights)
    return outer.gradient(first, weights if by_cotangent else x)


def each_way(tf, function, x):
    """In reverse mode: asked once, row by row, and all rows at once."""
    rows = tf.eye(3)
    return (
        [
            gradient(tf, function, x, cotangent)
            for cotangent in (WEIGHTS, np.ones(3, np.float32), np.zeros(3, np.float32))
        ],
        jacobian(tf, function, x),
        jacobian(tf, function, x, experimental_use_pfor=False),
        batch_jacobian(tf, function, x),
        tf.vectorized_map(lambda cotangent: gradient(tf, function, x, cotangent), rows),
    )


def run(way, name, compiled):
    function, point = FUNCTIONS[name]

    def body(tf):
        """The same derivative, however it is asked for."""
        asked = lambda x: way(tf, function, x)  # noqa: E731
        return (tf.function(asked) if compiled else asked)(tf.constant(point))

    check(body)


both = pytest.mark.parametrize("compiled", [False, True], ids=["eager", "function"])


@pytest.mark.tensorflow
@both
@pytest.mark.parametrize("name", FUNCTIONS)
def test_reverse_mode(name, compiled):
    run(each_way, name, compiled)


@pytest.mark.tensorflow
@both
@pytest.mark.parametrize("name", FORWARD)
def test_forward_mode(name, compiled):
    run(lambda tf, f, x: (product(tf, f, x, tf.ones_like(x)), product(tf, f, x, tf.zeros_like(x))), name, compiled)


@parity(differs="a tangent of zero adds nothing to that of pow at 0, where TensorFlow has nan")
def test_forward_mode_of_pow_along_zero(tf):
    """Where the base is constant its tangent is such a zero, and the slope is infinite."""
    return product(tf, lambda tf, x: tf.pow(x, 0.5), tf.constant([0.0, 1.0]), tf.zeros([2]))


@parity
def test_forward_mode_of_pow(tf):
    along_base = product(tf, lambda tf, x: tf.pow(x, 0.5), tf.constant([0.0, 1.0]), tf.ones([2]))
    along_exponent = product(tf, lambda tf, y: tf.pow([1.0, 2.0], y), tf.constant([0.5, 0.5]), tf.ones([2]))
    return along_base, along_exponent


@pytest.mark.tensorflow
@both
@pytest.mark.parametrize("name", TWICE)
def test_second_order(name, compiled):
    run(lambda tf, f, x: [twice(tf, f, x, weights) for weights in (WEIGHTS, np.ones(3, np.float32))], name, compiled)


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", TWICE)
def test_the_derivative_by_the_cotangent(name):
    """It is the slope, where the cotangent is zero as well."""
    run(lambda tf, f, x: twice(tf, f, x, WEIGHTS, by_cotangent=True), name, False)
