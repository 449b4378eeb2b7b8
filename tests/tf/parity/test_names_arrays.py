"""``TensorArray``, and less common ways to take tensors apart and to put them together."""

import jax
import numpy as np
import pytest
from harness import import_tapejax, parity
from tables import Table

f32 = np.float32
RNG = np.random.default_rng(1)
ROWS = RNG.normal(size=(5, 3)).astype(f32)
VECTOR = RNG.normal(size=7).astype(f32)
CUBE = RNG.normal(size=(2, 4, 6, 3)).astype(f32)

table = Table()

# ---- TensorArray ---------------------------------------------------------------------------------------------------


def filled(tf, *values, **options):
    array = tf.TensorArray(tf.float32, size=len(values), **options)
    for i, value in enumerate(values):
        array = array.write(i, value)
    return array


table.values(
    "TensorArray-read-and-size",
    lambda tf: [
        filled(tf, 1.0, 2.0).read(1),
        filled(tf, 1.0, 2.0).size(),
        filled(tf, [1.0], [2.0]).element_shape,
        filled(tf, 1.0).dtype,
        tf.TensorArray(tf.int32, 3).size(),
        tf.TensorArray(tf.float32, 2, element_shape=[3]).stack(),
        tf.TensorArray(tf.float32, 0, element_shape=[3]).stack(),
        tf.TensorArray(tf.float32, 2, dynamic_size=True).dynamic_size,
    ],
)
table.values(
    "TensorArray-dynamic",
    lambda tf: [
        tf.TensorArray(tf.float32, 0, dynamic_size=True).write(2, [1.0, 2.0]).stack(),
        tf.TensorArray(tf.float32, 1, dynamic_size=True).unstack(ROWS).size(),
        tf.TensorArray(tf.float32, 0, True).scatter([3, 1], ROWS[:2]).stack(),
    ],
)
table.values(
    "TensorArray-eager-writes-change-the-array",
    lambda tf: [(lambda array: (array.write(0, 5.0), array.stack())[1])(tf.TensorArray(tf.float32, 2))],
)
table.values(
    "TensorArray-write-twice",
    lambda tf: tf.TensorArray(tf.float32, 1).write(0, 1.0).write(0, 2.0).stack(),
)
table.values(
    "TensorArray-read-twice",
    lambda tf: (lambda array: [array.read(0), array.read(0)])(filled(tf, 1.0, clear_after_read=False)),
)
table.values(
    "TensorArray-of-rows-of-different-lengths", lambda tf: filled(tf, [1.0], [2.0, 3.0], infer_shape=False).concat()
)
table.gradients(
    "TensorArray-gradients",
    lambda tf, x, y: [
        filled(tf, x, x * y, y).stack(),
        filled(tf, x, y).concat(),
        filled(tf, x, x * x, y).gather([2, 0, 2]),
        tf.TensorArray(tf.float32, 5).unstack(x).read(3),
        tf.TensorArray(tf.float32, 5).scatter([4, 0, 1, 2, 3], y).stack(),
    ],
    ROWS,
    ROWS[::-1].copy(),
)
table.errors(
    "TensorArray-errors",
    lambda tf: [
        lambda: filled(tf, 1.0).write(1, 2.0),
        lambda: filled(tf, 1.0).write(-1, 2.0),
        lambda: filled(tf, 1.0).read(1),
        lambda: filled(tf, 1.0).read(-1),
        lambda: (lambda array: [array.read(0), array.read(0)])(filled(tf, 1.0)),
        lambda: filled(tf, 1.0, [1.0, 2.0]),
        lambda: tf.TensorArray(tf.float32, 1).write(0, tf.constant(1)),
        lambda: tf.TensorArray(tf.float32, 1, element_shape=[2]).write(0, [1.0]),
        lambda: tf.TensorArray(tf.float32, 1).unstack(ROWS),
        lambda: filled(tf, 1.0, 2.0).concat(),
        lambda: tf.TensorArray(tf.float32, 1).stack(),
        lambda: tf.TensorArray(tf.float32),
        lambda: tf.TensorArray(tf.float32, dynamic_size=True).write(0, 1.0),
        lambda: filled(tf, 1.0).write(0, 1.0).identity().read(0),
    ],
)


@parity
def test_tensor_array_in_a_loop(tf):
    """As a loop variable of while_loop, eagerly and in a function, with its gradient."""

    def powers(x):
        array = tf.TensorArray(tf.float32, size=4)
        _, array, _ = tf.while_loop(
            lambda i, *_: i < 4,
            lambda i, array, y: (i + 1, array.write(i, y), y * x),
            (tf.constant(0), array, x),
            maximum_iterations=4,
        )
        return array.stack()

    def value_and_gradient(f):
        x = tf.constant([1.5, -2.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return y, tape.gradient(y, x)

    return value_and_gradient(powers), value_and_gradient(tf.function(powers))


@parity
def test_tensor_array_in_an_unrolled_function(tf):
    """With Python's indices, dynamic sizes, reading and returning what was stacked."""

    @tf.function
    def f(x):
        array = tf.TensorArray(tf.float32, size=0, dynamic_size=True, clear_after_read=False)
        for i in range(3):
            array = array.write(i, x * float(i))
        array = array.write(3, array.read(1) + array.read(2))
        return array.stack(), array.gather([3, 0]), array.size()

    return f(tf.constant([1.0, 2.0]))


@parity
def test_tensor_array_that_is_read_in_a_loop(tf):
    """An array that was filled before the loop."""

    @tf.function
    def total(x):
        array = tf.TensorArray(tf.float32, size=5, clear_after_read=False).unstack(x)
        _, y = tf.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, y + array.read(i)), (0, tf.zeros(3)))
        return y

    return total(tf.constant(ROWS))


# ---- Other arrangements --------------------------------------------------------------------------------------------

table.values(
    "bitcast",
    lambda tf: [
        tf.bitcast(ROWS, tf.int32),
        tf.bitcast(np.array([[1, 2]], np.uint8), tf.uint16),
        tf.bitcast(1.0, tf.uint8),
    ],
)
table.values(
    "unravel_index",
    lambda tf: [
        tf.unravel_index([5, 2], [2, 3]),
        tf.unravel_index(3, [2, 3]),
        tf.unravel_index(tf.constant([7]), tf.constant([2, 2, 2])),
    ],
)
table.gradients(
    "reverse_sequence",
    lambda tf, x: [
        tf.reverse_sequence(x, [2, 5, 0, 6], seq_axis=2, batch_axis=1),
        tf.reverse_sequence(x, [1, 4], seq_axis=1),
    ],
    CUBE,
)
table.gradients("dynamic_partition", lambda tf, x: tf.dynamic_partition(x, [2, 0, 1, 0, 2], 4), ROWS)
table.gradients(
    "dynamic_stitch",
    lambda tf, x, y: [
        tf.dynamic_stitch([[0, 2, 9, 1, 6], [5, 8, 3, 7, 4]], [x, y]),
        tf.dynamic_stitch([0, [[2], [1]]], [x[0], [[x[1]], [y[0]]]]),
    ],
    ROWS,
    ROWS + 1,
)
table.values("dynamic_stitch-twice", lambda tf: tf.dynamic_stitch([[0, 2, 4, 1, 6], [5, 2, 3, 7, 4]], [ROWS, ROWS + 1]))
table.gradients(
    "dynamic_stitch-twice-gradient",
    lambda tf, x, y: tf.dynamic_stitch([[0], [0]], [x, y]),
    ROWS[:1],
    ROWS[1:2],
    differs="TensorFlow gives a gradient to rows that are overwritten",
)
table.gradients(
    "space_to_batch",
    lambda tf, x: [
        tf.space_to_batch(x, [2, 3], [[0, 0], [1, 2]]),
        tf.nn.space_to_batch(x, [2], [[1, 1]]),
        tf.batch_to_space(tf.space_to_batch_nd(x, [2, 3], [[0, 0], [1, 2]]), [2, 3], [[0, 0], [1, 2]]),
    ],
    CUBE,
)
table.errors(
    "arrangement-errors",
    lambda tf: [
        lambda: tf.unravel_index(6, [2, 3]),
        lambda: tf.reverse_sequence(ROWS, [1, 2], seq_axis=1, batch_axis=0),
        lambda: tf.reverse_sequence(ROWS, [1, 2, 3, 4, 1], seq_axis=1),
        lambda: tf.reverse_sequence(ROWS, [1, 2, 3, 1, 1]),
        lambda: tf.dynamic_partition(ROWS, [0, 1, 2, 3, 0], 2),
        lambda: tf.space_to_batch(CUBE, [3, 3], [[0, 0], [0, 0]]),
        lambda: tf.batch_to_space(CUBE, [3, 3], [[0, 0], [0, 0]]),
    ],
)
table.values(
    "identity_n-and-tuple",
    lambda tf: [tf.identity_n([1, ROWS]), tf.tuple([tf.constant(1.0), None]), tf.group(tf.constant(1.0)), tf.no_op()],
)
table.values(
    "bincount",
    lambda tf: [
        tf.math.bincount([[1, 2], [2, 2]], axis=-1),
        tf.math.bincount([[1, 2], [2, 5]], axis=-1, minlength=4, maxlength=4),
        tf.math.bincount([[1, 2], [2, 2]], axis=0),
        tf.math.bincount([1, 1, 3], binary_output=True),
        tf.math.bincount([[1, 2], [2, 2]], axis=-1, binary_output=True),
        tf.math.bincount([[1, 2], [2, 2]], weights=[[0.5, 1.0], [2.0, 3.0]], axis=-1),
    ],
)
table.values(
    "IndexedSlices",
    lambda tf: [
        tf.convert_to_tensor(tf.IndexedSlices([[1.0, 2.0], [3.0, 4.0], [1.0, 1.0]], [0, 2, 0], dense_shape=[4, 2])),
        tf.Variable(ROWS).scatter_sub(tf.IndexedSlices(ROWS[:2], tf.constant([3, 1]))),
        tf.IndexedSlices(tf.constant(ROWS), tf.range(5)).dtype,
    ],
)
table.values(
    "variables-updated-by-rows",
    lambda tf: (
        [
            getattr(tf.Variable(ROWS), f"scatter_{how}")(
                tf.IndexedSlices(tf.constant(ROWS[:2] * 2), tf.constant([3, 1]))
            )
            for how in ("max", "min", "mul", "div", "add", "update")
        ]
        + [
            tf.Variable(ROWS).scatter_nd_max([[0, 1], [4, 2]], [5.0, -5.0]),
            tf.Variable(ROWS).scatter_nd_min([[0], [2]], tf.zeros([2, 3])),
            tf.Variable(ROWS).gather_nd([[0, 1], [4, 2]]),
            tf.Variable(ROWS).sparse_read([3, 0]),
        ]
    ),
)
table.errors("IndexedSlices-errors", lambda tf: [lambda: tf.convert_to_tensor(tf.IndexedSlices([1.0], [0]))])


@parity
def test_static_values(tf):
    """What is known of a tensor, eagerly and in a function."""
    seen = []

    @tf.function
    def f(x):
        seen.append([tf.get_static_value(x), tf.is_symbolic_tensor(x), tf.executing_eagerly()])
        return x

    f(tf.constant(1.0))
    x = tf.constant([1, 2])
    return seen, tf.get_static_value(x), tf.get_static_value(3), tf.is_symbolic_tensor(x)


@parity
def test_names_of_a_scope(tf):
    """get_current_name_scope has no last slash."""
    outside = tf.get_current_name_scope()
    with tf.name_scope("a"), tf.name_scope("b"):
        return outside, tf.get_current_name_scope()


@parity
def test_control_dependencies(tf):
    """What is inside runs, in the order in which it is written."""
    v = tf.Variable(1.0)
    with tf.control_dependencies([v.assign_add(1.0)]):
        y = v * 2.0
    return (
        y,
        [x.name for x in tf.VariableAggregation],
        [x.name for x in tf.VariableSynchronization],
    )


test_rows = table.test()


def test_tensor_array_passes_through_jax():
    """It is a pytree: in and out of jit and function, also where a loop is traced by JAX alone."""
    tf = import_tapejax()
    array = tf.TensorArray(tf.float32, 3).write(1, [1.0, 2.0])
    np.testing.assert_array_equal(jax.jit(lambda a: a.stack() * 2.0)(array), [[0, 0], [2, 4], [0, 0]])

    @tf.function
    def grown(a, x):
        return a.write(2, x)

    out = grown(array, tf.constant([5.0, 6.0]))
    assert isinstance(out, tf.TensorArray) and len(out) == 3 and out.element_shape == [2]
    np.testing.assert_array_equal(out.stack(), [[0, 0], [1, 2], [5, 6]])
    np.testing.assert_array_equal(array.stack()[2], [0, 0])  # a trace leaves nothing behind

    @jax.jit
    def counted(n):
        _, a = tf.while_loop(
            lambda i, a: i < n,
            lambda i, a: (i + 1, a.write(i, tf.cast(i, tf.float32) * tf.ones([2]))),
            (tf.constant(0), tf.TensorArray(tf.float32, 4)),
        )
        return a.stack()

    np.testing.assert_array_equal(counted(3), [[0, 0], [1, 1], [2, 2], [0, 0]])


def test_tensor_array_that_would_have_to_grow_in_a_compiled_loop_says_what_to_do():
    tf = import_tapejax()

    @tf.function
    def f(n):
        array = tf.TensorArray(tf.float32, 0, dynamic_size=True)
        return tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a.write(i, 1.0)), (0, array))[1].stack()

    with pytest.raises(NotImplementedError, match="give the largest size"):
        jax.jit(f)(3)


@parity
def test_gather_with_every_axis_and_batch_dims(tf):
    """A negative batch_dims counts the axes of the indices; as the axis, which it is by default, those of params."""
    found = []
    for rank in (1, 2, 3):
        params = tf.reshape(tf.range(2.0 * 2 ** (rank - 1)), [2] * rank)
        for indices in (1, [1, 0], [[1, 1], [0, 1]]):
            for batch_dims in range(-3, 4):
                for axis in (None, *range(-3, 4)):
                    try:
                        found.append(tf.gather(params, indices, axis=axis, batch_dims=batch_dims))
                    except (ValueError, tf.errors.InvalidArgumentError):
                        found.append(None)
    return found
