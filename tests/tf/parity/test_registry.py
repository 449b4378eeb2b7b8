"""Operations without a gradient, and giving them one: `RegisterGradient`, `no_gradient`; Python as an operation.

What is registered stays registered, in both systems: each body has a name of its own.
"""

import numpy as np
from harness import error_of, parity


@parity(says="AdjustContrastv2")
def test_an_operation_without_a_gradient(tf):
    """It raises LookupError, by whichever input; beside it all works."""
    image = tf.Variable([[[0.5, 0.0, 0.0]]])
    delta = tf.Variable(0.1)
    with tf.GradientTape(persistent=True) as tape:
        adjusted = tf.image.adjust_contrast(image, delta)
        beside = image * 2.0
    return (
        error_of(tape.gradient, adjusted, [image, delta]),
        error_of(tape.gradient, adjusted, delta),
        tape.gradient(beside, image),
        error_of(tape.gradient, tf.stop_gradient(adjusted) * 1.0, image),
    )


@parity(
    says="AdjustContrastv2",
    differs="a LookupError in a Jacobian too; TensorFlow wraps it into a StagingError",
)
def test_the_jacobian_of_an_operation_without_a_gradient(tf):
    """The same error, whichever derivative is asked for."""
    image = tf.Variable([[[0.5, 0.0, 0.0]]])
    with tf.GradientTape() as tape:
        adjusted = tf.image.adjust_contrast(image, 0.1)
    return error_of(tape.jacobian, adjusted, image)


@parity
def test_an_operation_that_is_not_on_the_way(tf):
    """What has no gradient harms nobody who does not go through it."""
    image, x = tf.constant([[[0.5], [1.0]]]), tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        adjusted = tf.image.adjust_contrast(image, 0.5)
        y = tf.reduce_sum(adjusted) * x
        z = tf.stop_gradient(tf.image.adjust_contrast(image * x, 0.5)) * x
    return adjusted, tape.gradient(y, x), tape.gradient(z, x)


@parity
def test_registering_a_name_twice(tf):
    """It is refused, for gradients and for no_gradient."""
    tf.RegisterGradient("TapejaxTwice")(lambda op, dy: dy)
    tf.no_gradient("TapejaxNever")
    return (
        error_of(lambda: tf.RegisterGradient("TapejaxTwice")(lambda op, dy: dy)),
        error_of(lambda: tf.RegisterGradient("TapejaxNever")(lambda op, dy: dy)),
        error_of(tf.no_gradient, "TapejaxNever"),
        error_of(tf.RegisterGradient, 3),
        error_of(tf.no_gradient, 3),
        error_of(tf.no_gradient, None),
    )


@parity
def test_the_registered_function_is_returned(tf):
    """RegisterGradient is a decorator that leaves the function as it is."""

    @tf.RegisterGradient("TapejaxDecorated")
    def gradient(op, dy):
        return dy * 2.0

    return gradient.__name__, gradient(None, tf.constant(3.0))


@parity
def test_numpy_function_is_not_connected(tf):
    """NumPy's results are constants."""
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        y = tf.numpy_function(np.sinh, [x], tf.float32)
        both = tf.numpy_function(lambda a, b: (a + b, a.astype("int32")), [x, np.float32(3)], [tf.float32, tf.int32])
        z = y * x
    return y, both, tape.gradient(z, x), tape.gradient(y, x), tape.gradient(both, x)


@parity
def test_numpy_function_gets_arrays(tf):
    """The function sees NumPy arrays, once a call; its exception comes out."""

    def shown(a, b):
        print(type(a).__name__, a.dtype, a.shape, b)
        return a.sum()

    def broken(a):
        raise KeyError("mine")

    x = tf.constant([[1.0, 2.0]])
    y = tf.numpy_function(shown, [x, np.int32(3)], tf.float32)
    return y, error_of(tf.numpy_function, broken, [x], tf.float32) is None


@parity
def test_py_function_is_connected(tf):
    """Python on tensors: the tape sees what it does."""

    def branch(x, y):
        if tf.reduce_sum(x) > 0.0:
            return x * y
        return x - y

    x, y = tf.Variable([1.0, 2.0]), tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        z = tf.py_function(branch, [x, y], tf.float32)
        w = tf.py_function(lambda a: [a * 2.0, tf.cast(a, tf.int32)], [x], [tf.float32, tf.int32])
    return z, w, tape.gradient(z, [x, y]), tape.gradient(w[0], x)


@parity(differs="py_function can be differentiated twice; TensorFlow's second gradient is None")
def test_py_function_at_second_order(tf):
    """The gradient of the gradient."""
    x = tf.Variable(2.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.py_function(lambda a: a**3, [x], tf.float32)
        slope = inner.gradient(y, x)
    return slope, outer.gradient(slope, x)


# Last: from here on the operation has a gradient.


@parity
def test_registering_makes_it_differentiable(tf):
    """With its gradient registered, at any order."""

    @tf.RegisterGradient("AdjustContrastv2")
    def gradient(op, dy):
        images, factor = op.inputs
        return dy * factor * 10.0, tf.reduce_sum(dy * images)

    image, factor = tf.Variable([[[0.5], [1.5]]]), tf.Variable(0.1)
    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(tf.image.adjust_contrast(image, factor) ** 2)
        slopes = inner.gradient(y, [image, factor])
    return y, slopes, outer.gradient(slopes[0], [image, factor]), outer.gradient(slopes[1], [image, factor])
