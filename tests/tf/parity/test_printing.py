"""What tensors, variables, shapes and dtypes look like when they are printed."""

import numpy as np
from harness import error_of, parity


@parity
def test_printing_tensors(tf):
    """str() of tensors of every rank."""
    print(tf.constant(1.5))
    print(tf.constant([1.0, 2.5, -3.0]))
    print(tf.constant([[1.0, 2.0], [3.0, 4.0]]))
    print(tf.reshape(tf.range(8), [2, 2, 2]))
    print(tf.zeros([0]), tf.zeros([2, 0]), tf.constant([]))


@parity
def test_representing_tensors(tf):
    """repr() of tensors of every rank."""
    for value in (1.5, [1.0, 2.5, -3.0], [[1.0, 2.0], [3.0, 4.0]], [[[1.0]]], [], [[], []]):
        print(repr(tf.constant(value)))


@parity
def test_printing_every_dtype(tf):
    """The dtype's name, and the values as NumPy writes them."""
    for dtype in (
        tf.float16,
        tf.bfloat16,
        tf.float32,
        tf.int8,
        tf.uint8,
        tf.int16,
        tf.int32,
        tf.bool,
        tf.complex64,
    ):
        tensor = tf.cast([0, 1, 2], dtype)
        print(tensor, repr(tensor), tensor.dtype, repr(tensor.dtype))
        print(tensor[1], repr(tensor[1]))


@parity
def test_printing_special_values(tf):
    """Infinities, NaN, large and small numbers."""
    tensor = tf.constant([float("inf"), float("-inf"), float("nan"), 1e20, 1e-20, 1.0 / 3.0, 0.0, -0.0])
    print(tensor)
    print(repr(tensor))
    for scalar in tensor:
        print(scalar, repr(scalar))


@parity
def test_printing_long_tensors(tf):
    """NumPy's line breaks and dots."""
    print(tf.range(30.0) / 4.0)
    print(repr(tf.range(40)))
    print(tf.zeros([2000]))
    print(repr(tf.zeros([2000, 3])))


@parity
def test_printing_inside_containers(tf):
    """A list shows its members by repr()."""
    print([tf.constant(1.0), tf.constant([1, 2])])
    print({"gradient": tf.constant([[0.5]]), "none": None})
    print((tf.Variable(1.0, name="v"), tf.constant(True)))


@parity
def test_printing_variables(tf):
    """str() and repr() of variables show name, shape, dtype and value."""
    variables = [tf.Variable(1.0), tf.Variable([[1, 2], [3, 4]], name="m"), tf.Variable([True], name="flags")]
    variables.append(tf.Variable(tf.zeros([2, 0], tf.float16), trainable=False, name="scope/none"))
    for variable in variables:
        print(variable)
        print(repr(variable))
    print(variables[:2])
    print(variables[0].read_value(), variables[1][0])


@parity
def test_formatting_tensors(tf):
    """f-strings and format specifications of scalars and vectors."""
    scalar, whole, vector = tf.constant(3.14159), tf.constant(42), tf.constant([1.0, 2.0])
    print(f"{scalar} {scalar:.2f} {scalar:8.3f}| {scalar:e} {scalar!r} {scalar!s}")
    print(f"{whole} {whole:5d}| {whole:05d} {whole:x}")
    print(f"{vector} {vector!r} {tf.constant([[1, 2], [3, 4]])}")
    print("%.3f %s %d" % (scalar, scalar, whole))  # noqa: UP031
    print("{} {:.1f} {}".format(whole, scalar, vector))  # noqa: UP032
    print(f"{scalar.numpy():.3f} {scalar.numpy()}", str(whole.numpy()))
    return error_of(lambda: f"{vector:.2f}")


@parity
def test_formatting_variables(tf):
    """A variable in an f-string is its str(); it takes no format specification."""
    v = tf.Variable(2.5, name="v")
    print(f"{v} {v.numpy():.2f} {v.name} {v.shape} {v.dtype} {float(v):.3f}")
    return error_of(lambda: f"{v:.2f}")


@parity
def test_printing_shapes(tf):
    """A shape prints like a tuple and represents itself as a TensorShape."""
    for shape in ([], [1], [2, 3], [None, 3]):
        print(tf.TensorShape(shape), repr(tf.TensorShape(shape)), [tf.TensorShape(shape)])
    print(f"{tf.ones([4, 5]).shape} {tf.constant(1.0).shape} {tf.ones([2]).shape[0]}")
    print(str(tf.ones([2, 3]).shape[:1]), tf.ones([2, 3]).shape.as_list())


@parity
def test_printing_dtypes(tf):
    """str() and repr() of dtypes."""
    for dtype in (tf.float32, tf.float64, tf.int32, tf.bool, tf.complex64, tf.bfloat16, tf.half):
        print(dtype, repr(dtype), dtype.name, [dtype], f"{dtype}")


@parity
def test_printing_gradients(tf):
    """Gradients print like any tensor, and None as None."""
    x, y, z = tf.Variable([1.0, 2.0]), tf.Variable(3.0), tf.Variable(0.0)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(x * x) * y
    gradients = tape.gradient(loss, {"x": x, "y": y, "z": z})
    print(gradients)
    for name, gradient in gradients.items():
        print(name, gradient, sep=": ")


@parity
def test_printing_unconnected_gradients(tf):
    """The enum prints like an enum."""
    print(tf.UnconnectedGradients.ZERO, repr(tf.UnconnectedGradients.NONE), list(tf.UnconnectedGradients))


@parity
def test_printing_numpy_results(tf):
    """What numpy() gives prints as NumPy does."""
    t = tf.constant([[1.0, 2.0], [3.0, 4.5]])
    print(t.numpy(), t[0, 0].numpy(), repr(t[0].numpy()), repr(t[0, 0].numpy()), np.mean(t))


@parity
def test_a_training_log(tf):
    """The usual line of a training loop."""
    w = tf.Variable(4.0, name="w")
    for step in range(3):
        with tf.GradientTape() as tape:
            loss = (w - 1.0) ** 2
        w.assign_sub(0.25 * tape.gradient(loss, w))
        print(f"step {step}: loss={loss:.4f}, w={w.numpy():.4f}", loss, w, "\n", loss.numpy(), sep=" | ")
