"""`tf.quantization`: values rounded to levels, straight-through gradients, what is refused."""

import numpy as np
import pytest
from harness import check, error_of, parity

INF, NAN = float("inf"), float("nan")
X = [-INF, -7.0, -1.5, -1.0, -0.99, -0.3, -0.0, 0.0, 0.11, 0.5, 0.98, 1.0, 1.2, 6.1, INF, NAN]
# Of both signs, of one, moved, without width, the wrong way round, without a value
RANGES = [(-1, 1), (-0.5, 1.5), (0.1, 1), (-1, -0.1), (1, 2), (-2, -1), (0, 1), (-1, 0), (-0.1, 0.9)]
ODD_RANGES = [(0, 0), (1, 1), (1, 0), (-1, -2), (2, 1), (NAN, 1), (0, INF)]
LEVELS = [{}, {"num_bits": 2}, {"narrow_range": True}, {"num_bits": 3, "narrow_range": True}, {"num_bits": 16}]


def of_vars(tf, function, low, high, levels, x=X):
    x, low, high = (tf.constant(value, tf.float32) for value in (x, low, high))
    with tf.GradientTape() as tape:
        tape.watch([x, low, high])
        y = function(x, low, high, **levels)
        weighted = y * tf.reshape(tf.range(1.0, tf.cast(tf.size(x), tf.float32) + 1), tf.shape(x))
    return y, tape.gradient(weighted, [x, low, high])


@pytest.mark.tensorflow
@pytest.mark.parametrize("low, high", RANGES + ODD_RANGES)
def test_a_range(low, high):
    def body(tf):
        "Values, and gradients for the inputs and both ends; beyond the ends, at them, and where there is no number."
        quantize = tf.quantization.fake_quant_with_min_max_vars
        eagerly = [of_vars(tf, quantize, low, high, levels) for levels in LEVELS]
        return eagerly, tf.function(lambda: [of_vars(tf, quantize, low, high, levels) for levels in LEVELS])()

    check(body)


@parity
def test_question_17(tf):
    "What is at an end of the range passes its gradient to the input or to that end, as the nudged range says."
    x = tf.constant([-1.0, 0.5, 1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.quantization.fake_quant_with_min_max_args(x, min=-1.0, max=1.0, num_bits=8)
    with tf.GradientTape() as outer:
        outer.watch(x)
        z = tf.quantization.fake_quant_with_min_max_args(x, min=-0.4, max=1.6, num_bits=4)
    return y, tape.gradient(y, x), z, outer.gradient(z, x)


@parity
def test_a_value_halfway_between_two_levels(tf):
    "Rounding errors decide about these: each of TensorFlow's is made."
    results = []
    for low, high, bits in (-0.4, 1.4, 6), (-0.7, 3.6, 6), (0.1, 1.8, 4), (-3.0, 3.0, 8), (-0.8, 1.1, 8):
        step = (high - low) / (2**bits - 1)
        x = ((np.arange(-(2**bits), 2**bits) + 0.5) * step).astype("float32")
        x = np.concatenate([x, np.linspace(low, high, 101, dtype="float32")])
        results.append(tf.quantization.fake_quant_with_min_max_vars(x, low, high, num_bits=bits))
        if low == -high:
            results.append(tf.quantization.fake_quant_with_min_max_args(x, low, high, num_bits=bits))
            results.append(tf.function(tf.quantization.fake_quant_with_min_max_args)(x, low, high, num_bits=bits))
    return results


@parity(differs="the reciprocal is rounded as a division's result is, not as a processor approximates it")
def test_a_value_halfway_by_an_approximate_reciprocal(tf):
    "1.0 lies between two levels: TensorFlow's kernel for a range of numbers rounds it up, that for tensors down."
    return tf.quantization.fake_quant_with_min_max_args([1.0], -0.5, 1.5, num_bits=4)


@parity
def test_channels(tf):
    "A range for each index of the last axis, at any rank."
    quantize = tf.quantization.fake_quant_with_min_max_vars_per_channel
    low, high = [-1.0, 0.0, 0.0, 0.1], [1.0, 1.0, 0.0, 2.3]
    shapes = (4,), (3, 4), (2, 3, 4), (2, 3, 2, 4), (1, 2, 2, 2, 4), (0, 4)
    inputs = [np.random.default_rng(0).normal(size=shape) for shape in shapes]
    return [of_vars(tf, quantize, low, high, levels, x) for levels in LEVELS[:4] for x in inputs]


@parity
def test_the_gradient_functions(tf):
    "What `gradient` gives, for given gradients of the result, with names."
    q = tf.quantization
    x, g = tf.constant([[-7.0, -1.0, 0.2], [0.6, 1.0, 9.0]]), tf.constant([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]])
    of_args = q.fake_quant_with_min_max_args_gradient
    one = q.fake_quant_with_min_max_vars_gradient(g, x, -1.0, 1.0, num_bits=4)
    each = q.fake_quant_with_min_max_vars_per_channel_gradient(g, x, [-1.0] * 3, [1.0, 2.0, 0.5], narrow_range=True)
    print(type(one).__name__, type(each).__name__, one._fields, each._fields)
    return of_args(g, x), of_args(g, x, -1, 1, 2), tuple(one), tuple(each), one.backprop_wrt_min


@parity
def test_training_that_knows_of_it(tf):
    "Weights and ranges learn through the rounding; a jacobian; the whole in a `function`."
    rng = np.random.default_rng(1)
    w = tf.Variable(rng.normal(size=(3, 2)).astype("float32"))
    low, high = tf.Variable([-1.0, -0.5]), tf.Variable([0.7, 1.0])
    x = tf.constant(rng.normal(size=(8, 3)).astype("float32"))

    def step():
        with tf.GradientTape(persistent=True) as tape:
            q = tf.quantization.fake_quant_with_min_max_vars_per_channel(w, low, high, num_bits=4)
            h = tf.quantization.fake_quant_with_min_max_args(x @ q, -2, 2)
            loss = tf.reduce_mean(tf.square(h - 0.3))
        gradients = tape.gradient(loss, [w, low, high])
        jacobian = tape.jacobian(q, [w, low])
        for variable, gradient in zip([w, low, high], gradients, strict=True):
            variable.assign_sub(0.1 * gradient)
        return loss, jacobian

    compiled = tf.function(step)
    return [step(), step(), compiled(), compiled(), w.value(), low.value(), high.value()]


@parity
def test_names_and_constants(tf):
    "Version 1 has the names at its top, too; numbers and lists become float32."
    q, v1 = tf.quantization, tf.compat.v1
    return (
        v1.fake_quant_with_min_max_args(1),
        v1.quantization.fake_quant_with_min_max_vars([1, 2], -1, 1),
        q.fake_quant_with_min_max_args(np.array([1.0, 2.0]), name="q"),
        q.fake_quant_with_min_max_vars(inputs=0.3, min=0, max=1, num_bits=8, narrow_range=False, name=None),
    )


@parity
def test_what_is_refused(tf):
    "Numbers of bits, shapes, and the wrong way round."
    q, x = tf.quantization, tf.constant([0.1, 0.2, 0.3])
    return [
        error_of(lambda: q.fake_quant_with_min_max_args(x, num_bits=1)),
        error_of(lambda: q.fake_quant_with_min_max_vars(x, -1.0, 1.0, num_bits=17)),
        error_of(lambda: q.fake_quant_with_min_max_args(x, min=1.0, max=0.0)),
        error_of(lambda: q.fake_quant_with_min_max_args_gradient(x, x, min=1.0, max=1.0)),
        error_of(lambda: q.fake_quant_with_min_max_vars(x, [-1.0], 1.0)),
        error_of(lambda: q.fake_quant_with_min_max_vars_gradient(x, x, -1.0, [1.0])),
        error_of(lambda: q.fake_quant_with_min_max_vars_per_channel(x, [-1.0, 0.0], [1.0, 1.0])),
        error_of(lambda: q.fake_quant_with_min_max_vars_per_channel(x, -1.0, 1.0)),
        error_of(lambda: q.fake_quant_with_min_max_args_gradient(x[:2], x)),
        error_of(lambda: q.fake_quant_with_min_max_vars_gradient(x[:2], x, -1.0, 1.0)),
        error_of(lambda: q.fake_quant_with_min_max_vars_per_channel_gradient(x[:2], x, x, x)),
    ]


@parity(says="must be of dtype float32")
def test_another_dtype(tf):
    "Tensors are not converted."
    q, x = tf.quantization, tf.constant([0.1, 0.2, 0.3])
    return [
        error_of(lambda: q.fake_quant_with_min_max_vars(tf.cast(x, tf.float16), -1.0, 1.0)),
        error_of(lambda: q.fake_quant_with_min_max_vars(tf.constant([1]), -1.0, 1.0)),
        error_of(lambda: q.fake_quant_with_min_max_vars(x, tf.constant(-1, tf.int32), 1.0)),
    ]


@parity(x64_only="without 64-bit types it is a float32")
def test_double_precision(tf):
    "A float64 tensor is refused."
    return error_of(lambda: tf.quantization.fake_quant_with_min_max_vars(tf.constant(1.0, tf.float64), -1.0, 1.0))


@parity(differs="second derivatives through fake_quant are taken")
def test_a_second_derivative(tf):
    "TensorFlow has none, and says nothing."
    x = tf.constant([0.3, 5.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.square(tf.quantization.fake_quant_with_min_max_args(x, -1, 1)))
        gradient = tape.gradient(y, x)
    return outer.gradient(gradient, x)


@parity(differs="forward mode")
def test_forward_mode(tf):
    "TensorFlow has none, and says nothing."
    x = tf.constant([0.3, 5.0])
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
        y = tf.quantization.fake_quant_with_min_max_args(x, -1, 1)
    return accumulator.jvp(y)
