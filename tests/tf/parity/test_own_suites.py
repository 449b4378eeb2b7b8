"""What TensorFlow's own tests found, run under tapejax: numbers that were others, and what was not refused."""

import functools
import math
import random

import numpy as np
from harness import error_of, import_tapejax, parity
from tables import Table

table = Table()
ROWS = np.arange(6, dtype="float32").reshape(3, 2)
WINDOW = np.ones([1, 4, 4, 1], "float32")


def slices(tf):
    """Rows of which two are the same one."""
    return tf.IndexedSlices(tf.constant([[3.0, 0.0], [4.0, 0.0]]), tf.constant([0, 0]), tf.constant([3, 2]))


def parts(x):
    return [x.values, x.indices]


table.values(
    "rows-are-clipped-as-they-stand",
    lambda tf: [
        tf.linalg.global_norm([slices(tf), tf.constant([1.0])]),
        [parts(x) for x in tf.clip_by_global_norm([slices(tf)], 1.0)[0]],
        parts(tf.clip_by_norm(slices(tf), 1.0)),
        parts(tf.clip_by_value(slices(tf), -1.0, 3.5)),
        parts(tf.math.scalar_mul(2.0, slices(tf))),
        parts(tf.cast(slices(tf), tf.int32)),
    ],
)


@parity(
    differs="the norm is that of the gradient, which is dense; TensorFlow takes what comes back to each occurrence of a row"
)
def test_the_norm_of_an_embeddings_gradient(tf):
    table = tf.Variable(ROWS)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.gather(table, [1, 1, 2]))
    return tf.linalg.global_norm([tape.gradient(y, table)])


@parity(rtol=0, atol=0, x64_only="while 64-bit types are off there is no float64")
def test_python_floats_as_float64(tf):
    """A Python float where float64 is asked for keeps all of its digits."""
    return [
        tf.constant(0.1, tf.float64),
        tf.constant([0.1, 1e300, 1e-300], tf.float64),
        tf.constant(0.1, tf.complex128),
        tf.Variable([0.1], dtype=tf.float64),
        tf.convert_to_tensor([[0.1], [2]], tf.float64),
        tf.range(0.1, 1.0, 0.3, dtype=tf.float64)[1:2] - tf.constant([0.4], tf.float64),
        tf.cast(0.1, tf.float64),
        tf.constant(0.1) + 0.2,
    ]


table.values(
    "slogdet-of-small-matrices",
    lambda tf: [
        list(tf.linalg.slogdet(tf.constant(matrix)))
        for matrix in (
            [[2.0, 1.0], [1.0, 3.0]],
            [[5.0]],
        )
    ],
)
table.gradients(
    "slogdet-gradient", lambda tf, x: tf.linalg.slogdet(x)[1], np.array([[2.0, 1.0], [0.5, 3.0]], "float32")
)
table.values(
    "empty-batches-of-matrices",
    lambda tf: [
        tf.linalg.inv(tf.constant([[2.0, 0.0], [0.0, 4.0]], tf.float16)),
    ],
)
table.values(
    "unsorted-segments-of-nothing",
    lambda tf: [
        getattr(tf.math, f"unsorted_segment_{how}")(tf.zeros([2, 0]), [0, 1], 3)
        for how in ("sum", "max", "min", "prod", "mean", "sqrt_n")
    ],
)
table.values("transforms-of-no-signals", lambda tf: [tf.signal.rfft(tf.zeros(shape)) for shape in ([0, 3], [2, 0, 4])])
table.values(
    "average-losses",
    lambda tf: [
        tf.nn.compute_average_loss([[1.0, 2.0], [3.0, 4.0]], sample_weight=[1.0, 0.5]),
        tf.nn.compute_average_loss([[1.0], [2.0]], sample_weight=[1.0, 0.5]),
        tf.nn.compute_average_loss([1.0, 2.0], sample_weight=[[1.0], [0.5]]),
        tf.nn.compute_average_loss([[1.0, 2.0], [3.0, 4.0]], sample_weight=0.5),
        tf.nn.compute_average_loss([1.0, 2.0], global_batch_size=0),
        tf.nn.compute_average_loss(tf.zeros([0])),
    ],
)
table.errors(
    "average-losses-errors",
    lambda tf: [
        lambda: tf.nn.compute_average_loss([1.0], global_batch_size=4.0),
        lambda: tf.nn.compute_average_loss([1.0], global_batch_size=-1),
        lambda: tf.nn.compute_average_loss([1.0], global_batch_size=[4]),
        lambda: tf.nn.compute_average_loss(1.0),
    ],
)
table.values(
    "saturate_cast",
    lambda tf: (
        [
            tf.saturate_cast(tf.constant([1e30 + 2j, -3e30j, 300.5], tf.complex64), dtype)
            for dtype in (tf.complex64, tf.float16, tf.int16, tf.uint8)
        ]
        + [tf.saturate_cast(tf.constant([300.5, -7.0]), dtype) for dtype in (tf.complex64, tf.uint8, tf.int16)]
    ),
)


table.values(
    "saturate_cast-to-limits-that-the-old-dtype-has-not",
    lambda tf: [
        tf.saturate_cast(tf.cast(tf.constant([3e9, -3e9, 7e4, np.inf, -np.inf]), old), new)
        for old in (tf.float32, tf.bfloat16)
        for new in (tf.int32, tf.uint32, tf.int16, tf.float16)
    ],
)


@parity(x64_only="while 64-bit types are off there is no complex128")
def test_saturate_cast_of_wide_numbers(tf):
    wide = tf.constant([1e300 + 2j, -3e300j, np.inf + 1j], tf.complex128)
    return [tf.saturate_cast(wide, dtype) for dtype in (tf.complex64, tf.complex128, tf.float32)]


table.values(
    "inverse_stft_window_fn",
    lambda tf: [
        tf.signal.inverse_stft_window_fn(step)(length, tf.float32) for step, length in ((5, 5), (8, 4), (2, 4))
    ],
)
table.values(
    "scalars-and-masks",
    lambda tf: [
        tf.dynamic_partition(tf.constant([1.0, 2.0]), tf.constant(1), 3),
        tf.dynamic_partition(5, 0, 2),
        tf.where(np.array([1, 0, 2]), [1, 2, 3], [4, 5, 6]),
        tf.where(np.array([1.0, 0.0]), [1, 2], [4, 5]),
    ],
)
table.errors(
    "what-is-not-broadcast",
    lambda tf: [
        lambda: tf.pad(tf.ones([3]), [[-1, 0]]),
        lambda: tf.pad(tf.ones([3]), [[0, -1]], "REFLECT"),
        lambda: tf.scatter_nd([[0], [1]], [5.0], [3]),
        lambda: tf.tensor_scatter_nd_add(tf.zeros([3]), [[0], [1]], [5.0]),
        lambda: tf.tensor_scatter_nd_update(tf.zeros([3, 2]), [[0], [1]], [1.0, 2.0]),
        lambda: tf.clip_by_norm(tf.ones([2, 3, 1]), tf.constant([1.0, 2.0])),
        lambda: tf.clip_by_value(tf.ones([2, 1]), tf.constant([1.0, 2.0]), 5.0),
        lambda: tf.tensordot(tf.ones([2, 2]), tf.ones([2, 2]), -1),
        lambda: tf.tensordot(tf.ones([2, 2]), tf.ones([2, 2]), 3),
        lambda: tf.tensordot(tf.ones([2, 2]), tf.ones([2, 2]), [[1], []]),
        lambda: tf.einsum("...ij->ij", tf.ones([2, 2, 2])),
        lambda: tf.einsum("ij...,jk->ik", tf.ones([2, 2, 2]), tf.ones([2, 2])),
        lambda: tf.one_hot([0], 3, on_value=tf.constant(1.0), off_value=tf.constant(0.0), dtype=tf.int32),
        lambda: tf.Variable(1.0, constraint=0),
    ],
)
table.errors(
    "updates-of-variables",
    lambda tf: [
        lambda: tf.Variable(ROWS).scatter_nd_add([[0], [1]], [1.0, 2.0]),
        lambda: tf.Variable(ROWS).scatter_nd_update([[0], [1]], 1.0),
        lambda: tf.Variable(ROWS).scatter_nd_add([[5]], [[1.0, 2.0]]),
        lambda: tf.Variable(ROWS).scatter_nd_add([[-1]], [[1.0, 2.0]]),
        lambda: tf.Variable(ROWS).scatter_add(tf.IndexedSlices([1.0, 2.0], [0, 1])),
        lambda: tf.Variable(ROWS).scatter_update(tf.IndexedSlices([[1.0, 2.0]], [0, 1])),
        lambda: tf.Variable(ROWS).scatter_add(tf.IndexedSlices([[1.0, 2.0]], [5])),
        lambda: tf.Variable(ROWS).scatter_add(tf.IndexedSlices([[1.0, 2.0]], [-1])),
    ],
)
table.values(
    "variables",
    lambda tf: [
        tf.Variable(ROWS).scatter_add(tf.IndexedSlices(1.0, [0, 1])),
        tf.Variable(ROWS).scatter_add(tf.IndexedSlices([1.0, 2.0], 0)),
        tf.Variable(1.0, synchronization=tf.VariableSynchronization.ON_READ).trainable,
        tf.Variable(1.0, trainable=True, synchronization=tf.VariableSynchronization.ON_READ).trainable,
    ],
)


@parity
def test_dropout_of_whole_axes(tf):
    """None in `noise_shape` is the tensor's own size; fewer axes broadcast."""
    shapes = [None, 1], [None, None], [1], [4]
    return [tf.nn.dropout(tf.ones([3, 4]), 0.5, noise_shape=shape).shape for shape in shapes]


@parity
def test_python_as_decorators(tf):
    @tf.numpy_function(Tout=tf.float32)
    def twice(x):
        return x * 2

    @tf.py_function(Tout=tf.float32)
    def thrice(x):
        return x * 3

    x = tf.constant([1.0, 2.0])
    return (
        twice(x),
        thrice(x),
        error_of(lambda: tf.py_function(lambda x: x, [x])),
        error_of(lambda: tf.numpy_function()),
    )


@parity
def test_shapes_and_dtypes_of_a_concrete_function(tf):
    concrete = tf.function(lambda x: {"a": x + 1, "b": (x[0], x > 0)}).get_concrete_function(tf.TensorSpec([2, 3]))
    return tf.nest.map_structure(lambda x: (x.shape, x.dtype), concrete.structured_outputs)


@parity
def test_assertions_about_shapes_and_structures(tf):
    """One number is not a vector of it; lists of tensors of several shapes are compared one by one."""
    pairs = [
        (1.0, [1.0, 1.0]),
        ([1.0, 1.0], [[1.0, 1.0]]),
        ({"a": 1.0}, {"a": [1.0]}),
        ([tf.constant([1.0, 2.0]), tf.constant([3.0])], [[1.0, 2.0], [3.0]]),
        ([tf.constant([1.0, 2.0]), [3.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]]),
        ((1.0, 2.0), [1.0, 2.0]),
    ]
    answers = []

    class Case(tf.test.TestCase):
        def runTest(self):
            for a, b in pairs:
                answers.append(error_of(lambda a=a, b=b: self.assertAllClose(a, b)))
            answers.append(error_of(lambda: self.assertAllEqual(1, [1, 1])))

    Case().runTest()
    return answers


table.values(
    "scales-and-shifts-of-another-dtype",
    lambda tf: [
        tf.nn.batch_normalization(
            tf.constant([[1.0, 2.0], [3.0, 5.0]], dtype), tf.constant([0.1, 0.2]), tf.constant([2.0, 3.0]), *more, 1e-3
        )
        for dtype in (tf.float16, tf.bfloat16)
        for more in ((None, None), (tf.constant([1.5, 2.5]), tf.constant([0.3, 0.7])))
    ],
)
table.values(
    "nothing-in-pieces",
    lambda tf: [
        *[tf.signal.frame(tf.zeros(shape), 2, 1, pad_end=end) for shape in ([0], [3, 0], [1]) for end in (True, False)],
        tf.signal.stft(tf.zeros([0]), 2, 1),
        tf.dynamic_partition(tf.zeros([0, 3]), tf.zeros([0], tf.int32), 2),
        tf.dynamic_partition(tf.zeros([2, 0]), [1, 0], 2),
        tf.boolean_mask(tf.zeros([2, 0]), [True, False]),
        tf.space_to_batch(tf.ones([2, 3]), [], np.zeros((0, 2), "int32")),
    ],
)
table.values(
    "what-is-not-finite",
    lambda tf: [
        list(tf.linalg.slogdet(tf.constant([[np.nan, 1.0], [1.0, 1.0]]))),
        list(tf.linalg.slogdet(tf.constant([[[1.0, np.nan], [1.0, 1.0]], [[2.0, 0.0], [0.0, -1.0]]]))),
        tf.math.in_top_k([2, 0, 1, 1], tf.constant([[np.inf, 1, 2], [3, 1, np.nan], [-np.inf, 2, 1], [0, 2, 1]]), 2),
    ],
)
table.errors(
    "what-fits-only-by-broadcasting-or-by-leaving-out",
    lambda tf: [
        lambda: tf.einsum("ab,ab->ab", tf.ones([1, 3]), tf.ones([2, 3])),
        lambda: tf.einsum("ab,bc", tf.ones([2, 3]), tf.ones([1, 4])),
        lambda: tf.einsum("...ab,b...->...a", tf.ones([4, 2, 3]), tf.ones([1, 4])),
        lambda: tf.einsum("...->", tf.ones([2, 3])),
        lambda: tf.linalg.cross([1.0, 2.0], [1.0, 2.0]),
        lambda: tf.linalg.cross(tf.ones([2, 3]), tf.ones([3])),
        lambda: tf.math.segment_sum(tf.ones([3]), [-1, 0, 1]),
        lambda: tf.math.unsorted_segment_sum(tf.ones([3]), [-1, 0, 5], 3),
        lambda: tf.math.unsorted_segment_max(tf.ones([3, 2]), [0, 1, 3], 3),
        lambda: tf.one_hot([0], 2, axis=2),
        lambda: tf.one_hot([0], 2, axis=-2),
        lambda: tf.signal.frame(tf.ones([3]), 1, 0),
        lambda: tf.signal.mfccs_from_log_mel_spectrograms(tf.zeros([2, 0])),
    ],
)
table.values(
    "what-is-left-as-it-was",
    lambda tf: [
        tf.math.unsorted_segment_sum(tf.ones([3]), [-1, 0, 2], 3),
        tf.math.unsorted_segment_sum(tf.zeros([2, 0]), [0, 5], 3),
        tf.einsum("...ab,...b->...a", tf.ones([1, 2, 3]), tf.ones([4, 3])),
        tf.einsum("a...b,b...->a...", tf.ones([2, 4, 3]), tf.ones([3, 4])),
        tf.one_hot([0, 1], 2, axis=0),
    ],
)
table.errors(
    "what-cannot-be-counted",
    lambda tf: [
        lambda: tf.reverse_sequence(ROWS, [1, 2, 1], 0, 0),
        lambda: tf.reverse_sequence(ROWS, [1, 2], 1, 1),
    ],
)
table.errors(
    "windows-of-nothing",
    lambda tf: (
        [
            lambda f=f, size=size, strides=strides: f(WINDOW, size, strides, "SAME")
            for f in (tf.nn.max_pool2d, tf.nn.avg_pool2d, tf.nn.max_pool, tf.nn.max_pool_with_argmax)
            for size, strides in ((0, 1), (-1, 1), ([1, -1, -1, 1], 1), (2, 0), (2, -1))
        ]
        + [
            lambda strides=strides, dilations=dilations: tf.nn.conv2d(
                WINDOW, np.ones([2, 2, 1, 1], "float32"), strides, "SAME", dilations=dilations
            )
            for strides, dilations in ((0, 1), (-1, 1), (1, 0), (1, -1))
        ]
    ),
)
table.errors(
    "labels-of-einsum",
    lambda tf: [
        lambda equation=equation: tf.einsum(equation, np.ones([2, 2]))
        for equation in ("a0->a", "a_->a", "1a->a", "a\N{LATIN SMALL LETTER E WITH ACUTE}->a")
    ],
)


test_rows = table.test()


DTYPES = "bool int8 int16 int32 uint8 float16 bfloat16 float32 complex64".split()


def mixed(tf, dtypes):
    """What becomes of a list of numbers of several kinds where a dtype is asked for: some are made one by one."""
    found = []
    for numbers in (
        [True, 1],
        [True, 1.5],
        [True, 1j],
        [1, 1j],
        [1.5, 1j],
        [[True], [1]],
        [1, True],
        [1.5, True],
        [1j, 1],
    ):
        for dtype in dtypes:
            try:
                found.append(tf.constant(numbers, dtype))
            except (TypeError, ValueError) as error:
                found.append(type(error).__name__)
    return found


@parity
def test_lists_of_several_kinds_of_numbers(tf):
    return mixed(tf, DTYPES)


@parity(x64_only="while 64-bit types are off these are other types")
def test_lists_of_several_kinds_of_numbers_in_64_bits(tf):
    return mixed(tf, ["int64", "uint64", "float64", "complex128"])


@parity(x64_only="while 64-bit types are off there is no float64")
def test_numbers_beside_doubles(tf):
    """A fold's first value and the rows of IndexedSlices become what stands beside them, with all their digits."""
    x = tf.constant([0.1, 0.2], tf.float64)
    v = tf.Variable(x)
    rows = tf.IndexedSlices([0.3], [1])
    return [
        tf.foldl(lambda a, b: a + b, x, initializer=0.1),
        tf.foldr(lambda a, b: a * b, x, initializer=1),
        tf.foldl(lambda a, b: (a[0] + b, a[1] * b), x, initializer=(0.1, 0.3)),
        *[tf.constant(change(rows)) for change in (v.scatter_update, v.scatter_add, v.scatter_max, v.scatter_mul)],
        rows.values,
        tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * x[0] + i / 2), (0, 0.1)),
        tf.linspace(x[0], 0.3, 3),
    ]


@parity
def test_targets_that_are_no_class(tf):
    scores = [[0.1, 0.3, 0.2, 0.2], [0.1, 0.3, 0.2, 0.2]]
    return [tf.math.in_top_k(targets, scores, 2) for targets in ([2, 4], [2, -1], [4, 4], [1, 3], [-4, -3])]


@parity
def test_a_negative_place_to_stitch_to(tf):
    return error_of(tf.dynamic_stitch, [[0, -1]], [[1.0, 2.0]])


@parity
def test_no_permutation(tf):
    """What is no permutation has no inverse."""
    refused = [error_of(tf.math.invert_permutation, x) for x in ([0, -1, 1], [0, 0, 1], [0, 3, 1])]
    return refused, tf.math.invert_permutation(tf.constant([2, 0, 1]))


def two_kinds(tf):
    i, f = tf.constant(2), tf.constant(1.5)
    return i, f, tf.constant([2, 3]), tf.constant([1.5, 2.5])


table.values(
    "lists-of-tensors-of-another-dtype-are-cast",
    lambda tf: (
        lambda i, f, ints, floats: [
            tf.convert_to_tensor([i, i], tf.float32),
            tf.convert_to_tensor([f, f], tf.int32),
            tf.convert_to_tensor([i, 2.5], tf.float32),
            tf.convert_to_tensor([[i, 1], [2, i]], tf.float32),
            tf.convert_to_tensor([ints, floats], tf.float32),
            tf.convert_to_tensor([i, i], dtype_hint=tf.float32),
            tf.Variable([i, i], dtype=tf.float32).value(),
            floats + [i, i],
            floats * (i, 2.5),
            floats > [i, i],
            tf.concat((floats, [i, f]), 0),
            tf.where([True, False], floats, [i, i]),
            tf.stack([floats, [i, 1]]),
        ]
    )(*two_kinds(tf)),
)


@parity
def test_lists_whose_first_tensor_has_the_dtype(tf):
    """They are not cast: nor is a list that stands first, nor what a constant is made of."""
    i, f, ints, floats = two_kinds(tf)
    return [
        error_of(lambda: tf.convert_to_tensor([f, i], tf.float32)),
        error_of(lambda: tf.convert_to_tensor([[f], [i]], tf.float32)),
        error_of(lambda: floats + [f, i]),
        error_of(lambda: tf.convert_to_tensor([i, f])),
        error_of(lambda: tf.tensordot([f, f], ints, 1)),
    ]


@parity
def test_gradients_of_lists_that_are_cast(tf):
    v = tf.Variable(2.0, dtype=tf.float16)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.constant([2.0, 3.0]) * [v, v])
    return y, tape.gradient(y, v)


@parity(differs="floats are not cut to integers in silence: DTypeError, as for Python's floats")
def test_a_list_of_floats_beside_integers(tf):
    i, f, ints, floats = two_kinds(tf)
    return error_of(lambda: ints + [f, f])


@parity
def test_an_axis_in_a_list(tf):
    x = tf.constant([1.0, 2.0])
    axes = [-1], (0,), [[0]], tf.constant([1])
    return (
        [tf.expand_dims(x, axis) for axis in axes],
        [tf.concat([x, x], axis) for axis in ([0], tf.constant([-1]))],
        [error_of(lambda axis=axis: tf.expand_dims(x, axis)) for axis in ([0, 1], [])],
    )


@parity
def test_random_numbers_in_a_testcase(tf):
    """A TestCase's numbers are the same for each test: NumPy's and Python's are TensorFlow's."""
    drawn = []

    class Case(tf.test.TestCase):
        def runTest(self):
            drawn.append((random.random(), np.random.rand(), tf.random.normal([]).numpy()))
            self.assertAllClose(tf.constant([1.0, 2.0]), [1.1, 2.1], atol=tf.constant([0.2, 0.2]))

    results = [Case().run().wasSuccessful() for _ in range(2)]
    return results, drawn[0][:2], drawn[0] == drawn[1]


def slopes(tf, quotient, *points):
    """A value, its derivatives and theirs."""
    points = [tf.constant(point) for point in points]
    with tf.GradientTape() as outer:
        outer.watch(points)
        with tf.GradientTape() as inner:
            inner.watch(points)
            y = quotient(*points)
        first = inner.gradient(y, points)
    return y, first, outer.gradient(first, points)


@parity(x64_only="int64 beside int32")
def test_lists_of_arrays_without_axes(tf):
    numbers = [np.array(1), np.array(2)]
    return [
        f(numbers)
        for f in (
            tf.constant,
            tf.convert_to_tensor,
            tf.reduce_sum,
            tf.square,
            lambda x: tf.concat([x, x], 0),
            tf.Variable,
        )
    ]


@parity
def test_what_a_mask_leaves_of_nothing(tf):
    """A part without elements is connected with what it was taken from: its gradient is zeros."""
    x = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    nothing = tf.constant([False, False])
    parts = [
        lambda: tf.boolean_mask(x, nothing),
        lambda: tf.boolean_mask(x, nothing, axis=1),
        lambda: x[x > 5.0],
        lambda: tf.dynamic_partition(x, [1, 1], 2)[0],
    ]
    found = []
    for part in parts:
        with tf.GradientTape(persistent=True) as tape:
            y = part()
            z = tf.reduce_sum(y)
        found.append((y, tape.gradient(y, x), tape.gradient(z, x)))
    return found


@parity
def test_a_single_row_goes_with_each_row(tf):
    """`vectorized_map`, unlike `map_fn`, broadcasts an argument of one row."""
    one, three = tf.Variable([[2.0, 1.0]]), tf.Variable([[1.0], [2.0], [3.0]])
    with tf.GradientTape() as tape:
        y = tf.vectorized_map(lambda rows: rows[0] * rows[1], (one, three))
    found = [tf.convert_to_tensor(g) for g in tape.gradient(y, [one, three])]
    refused = [
        lambda: tf.map_fn(lambda rows: rows[0] * rows[1], (one, three), fn_output_signature=tf.float32),
        lambda: tf.vectorized_map(lambda rows: rows[0] + rows[1], (tf.ones([2]), tf.ones([3]))),
    ]
    return y, found, tf.vectorized_map(sum, (one, one)), [error_of(action) for action in refused[:1]]


@parity
def test_roll_by_what_a_function_is_given(tf):
    x = tf.reshape(tf.range(6.0), [2, 3])

    @tf.function
    def rolled(shift):
        return tf.roll(x, shift, 1), tf.roll(x, [shift, 1], [0, 1])

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.vectorized_map(lambda i: tf.roll(x, i, 1) * x, tf.range(3))
    return (
        rolled(tf.constant(2)),
        rolled(tf.constant(-1)),
        y,
        tape.gradient(y, x),
        [error_of(lambda shift=shift: tf.roll(x, shift, 0)) for shift in (1.0, [1], 1.5)],
    )


@parity
def test_what_may_be_left_out_or_come_one_by_one(tf):
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.add_n(x * i for i in (1.0, 2.0))
    return (
        tf.gather(x, [1, 0], axis=1, batch_dims=None),
        tf.add_n(iter([x, x])),
        (y, tape.gradient(y, x)),
        tf.nn.max_pool2d(tf.ones([1, 4, 4, 1]), 4 / 2, 4 / 2, "SAME"),
        tf.nn.conv2d(tf.ones([1, 4, 4, 1]), tf.ones([2, 2, 1, 1]), 4 / 2, "SAME"),
        tf.nn.convolution(tf.ones([2, 3, 4, 4, 1]), tf.ones([2, 2, 1, 3]), padding="SAME"),
        tf.nn.convolution(tf.ones([2, 2, 3, 4, 1]), tf.ones([2, 1, 3])),
    )


@parity(differs="the gradient goes to the first of equals, as in max_pool2d, not whole to each: the sums agree")
def test_the_largest_of_a_window_of_three_axes_twice(tf):
    x = tf.constant(np.float32([1, 1, 2, 2, 2, 1, 2, 1]).reshape(1, 2, 2, 2, 1))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.nn.max_pool3d(x, 2, 2, "VALID")
    return tape.gradient(y, x)


@parity
def test_a_function_that_returns_a_shape(tf):
    """A shape that a `tf.function` returns comes back as a tensor."""

    @tf.function
    def shapes(x):
        return x.shape, {"rows": x.shape[0]}, [x[0].shape]

    return shapes(tf.ones([2, 3])), tf.function(lambda x: x.shape)(tf.ones([4]))


@parity
def test_iterators_of_python_as_arguments(tf):
    """What a trace took of an iterator of Python's is there again where the function then runs as Python."""
    numbers = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0])

    @tf.function
    def total(others, pairs, elements):
        found = tf.constant(0.0)
        for x in others:
            found += x
        for x, y in pairs:
            found += x * y
        return found + next(elements)

    given = iter([1.0, 2.0])
    return (
        total(given, zip([1.0, 2.0], [3.0, 4.0], strict=True), iter(numbers)),
        total((x for x in [1.0, 3.0]), [], iter(numbers)),
        list(given),
    )


@parity
def test_a_function_for_each_element_through_a_decorator(tf):
    """AutoGraph rewrites once what a decorated `foldl` hands on."""

    def logged(function):
        @functools.wraps(function)
        def call(*args):
            return function(*args)

        return call

    x = tf.constant([1.0, 2.0, 4.0])
    folded = tf.function(functools.partial(logged(tf.foldl), lambda a, b: a + b * b))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = folded(x)
    return y, tape.gradient(y, x)


@parity
def test_no_type_of_indices(tf):
    return tf.argmax([[1.0, 3.0]], 1, output_type=None), tf.argmin([1.0, 3.0], output_type=None)


@parity
def test_an_assignment_in_init_scope_to_a_variable_just_made(tf):
    """It is what the variable has from the start, and the initial value does not overwrite it."""

    def made():
        held = []

        @tf.function
        def added(x):
            if not held:
                held.append(tf.Variable([1.0, 2.0]))
                v = tf.Variable(3.0)
                with tf.init_scope():
                    v.assign(10.0)
                held.append(v)
            return held[0] + held[1] + x

        return added, held

    (added, held), (nested, others) = made(), made()
    around = tf.function(lambda x: nested(x))
    found = [added(tf.constant(2.0)), *held, around(tf.constant(2.0))]
    others[1].assign(11.0)
    return found, around(tf.constant(2.0)), others


@parity
def test_tensors_as_defaults_of_keywords(tf):
    def times(x, *, y):
        return x * y

    def twice(x, *, y=tf.constant([2.0])):  # noqa: B008
        return x * y

    given = tf.function(functools.partial(times, x=tf.ones([1]), y=tf.constant([3.0])))
    return given(), given(y=4.0), tf.function(twice)(3.0), tf.function(twice)(3.0, y=5.0)


@parity
def test_arguments_that_a_function_changes(tf):
    """What it did to a list or dict would be lost: it is refused, as in TensorFlow."""

    @tf.function
    def appended(x):
        x.append(tf.constant(0.0))
        return x[0]

    @tf.function
    def doubled(x, by=2.0):
        x["a"] = x["a"] * by
        return x["a"]

    @tf.function
    def deeper(x, *others, last):
        last[0]["b"].pop()
        return x

    @tf.function
    def copied(x):
        x = [*x]
        x.append(x[0] + 1.0)
        return x

    one = tf.constant(1.0)
    return (
        [error_of(lambda f=f, x=x: f(x)) for f, x in ((appended, [one]), (doubled, {"a": one}), (appended, []))],
        error_of(lambda: deeper(one, one, last=[{"b": [one, one]}])),
        copied([one]),
        error_of(lambda: tf.function(lambda x, i: x.append(next(i)))([one], iter(tf.data.Dataset.range(3)))),
    )


@parity
def test_what_python_functions_return_by_another_type(tf):
    """A number of another kind than `Tout` is refused, not cut."""
    given = [tf.constant([2.0]), 1.5, (1.0, 2.0), None, tf.constant(1)]
    types = [tf.int32, tf.int32, [tf.float32, tf.int32], tf.float32, tf.float32]
    return (
        [error_of(lambda x=x, t=t: tf.py_function(lambda: x, [], t)) for x, t in zip(given, types, strict=True)],
        error_of(lambda: tf.function(lambda: tf.numpy_function(lambda: np.float32(1.5), [], tf.int32))()),
        tf.numpy_function(lambda: np.int32(3), [], tf.int32),
    )


@parity
def test_a_range_that_is_no_loop(tf):
    """Of bounds that are traced, in a function that AutoGraph rewrites: a tensor like another."""
    x = tf.constant([1.0, 2.0, 3.0, 4.0])
    uses = [
        lambda n: tf.range(n) + 1,
        lambda n: 2 * tf.range(1, n),
        lambda n: tf.range(n)[::-1],
        lambda n: -tf.range(n, 0, -1),
        lambda n: tf.zeros(tf.range(n)[1:]),
        lambda n: tf.reshape(x, tf.range(n)[1:2] * 4),
        lambda n: tf.range(n).shape.rank * n,
        lambda n: tf.zeros([2], tf.range(n).dtype),
        lambda n: tf.cast(tf.range(n) < 2, tf.float32) * tf.gather(x, tf.range(n)),
    ]

    def converted(use):
        @tf.function
        def f(n):
            found = use(n)
            if n > 100:
                found = found * 2
            return found

        return f

    @tf.function
    def looped(n):
        total, steps = tf.constant(0.0), tf.range(n)
        for i in steps:
            total += x[i]
        return total

    return [converted(use)(tf.constant(3)) for use in uses], looped(tf.constant(3))


@parity
def test_ranges_whose_ends_are_far_apart(tf):
    """More than the dtype's numbers lie between them."""
    return (
        tf.range(1136033460, -2110457150, -1849827689),
        tf.range(tf.constant(-(2**31)), 2**31 - 1, 2**30),
        tf.range(7, 7, -1),
        error_of(lambda: tf.range(2.5, dtype=tf.int32)),
    )


@parity(x64_only="the numbers need 64 bits")
def test_ranges_of_large_numbers(tf):
    return (
        tf.range(0, 202, 2**63 - 201, dtype=tf.int64),
        tf.range(-(2**63), -(2**63) + 2, dtype=tf.int64),
        tf.range(3000000000, 3000000003),
    )


@parity
def test_equal_bfloat16_that_are_nan(tf):
    case, x = tf.test.TestCase(), tf.constant([np.nan, 1.0], tf.bfloat16)
    case.assertAllEqual(x, x / tf.constant(1.0, tf.bfloat16))
    return error_of(lambda: case.assertAllEqual(x, x + 1.0))


@parity
def test_slopes_of_a_complex_absolute_value_at_zero(tf):
    x = tf.constant([0j, 1 + 1j, 3j, -2.0], tf.complex64)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.abs(x)
        first = tape.gradient(y, x, tf.constant([1.0, 0.5, -0.7, 0.2]))
    return y, first, outer.gradient(first, x, tf.constant([0.3 - 1j, 1 + 0.5j, 0.7, -0.2j], tf.complex64))


@parity
def test_more_than_one_ellipsis_in_a_result(tf):
    return error_of(lambda: tf.einsum("...ij,jk...->...ik...", tf.ones([2, 3]), tf.ones([3, 4])))


@parity
def test_grids_of_what_is_no_vector(tf):
    x, y = tf.constant([1.0, 2.0, 3.0]), tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        found = [tf.meshgrid(x, y, 2.0), tf.meshgrid(y, x, indexing="ij"), tf.meshgrid(y)]
        total = sum(tf.reduce_sum(a * a * b) for a, b in zip(found[0], found[0][1:], strict=False))
    return found, tape.gradient(total, [x, y])


@parity
def test_rows_announced_in_64_bits(tf):
    """They are of the type that stands for it while 64-bit types are off."""
    pair, floats = (np.array([1, 2, 3]), np.array([-1, 1, -1])), np.array([1.0, 2.0])
    return (
        tf.map_fn(lambda x: x[0] * x[1], pair, fn_output_signature=tf.int64),
        tf.map_fn(lambda x: (x, -x), pair[0], dtype=(tf.int64, tf.int64)),
        tf.map_fn(lambda x: x * 2.0, floats, fn_output_signature=tf.TensorSpec([], tf.float64)),
        tf.function(lambda x: tf.map_fn(lambda y: tf.cast(y, tf.float64), x, fn_output_signature=tf.float64))(
            tf.range(3)
        ),
        error_of(lambda: tf.map_fn(lambda x: x, floats, fn_output_signature=tf.int64)),
    )


@parity
def test_assertions_of_64_bit_types(tf):
    """What a tensor was asked to be, it is: the type that stands for it while 64-bit types are off."""
    x, y = tf.constant([1, 2], tf.int64), tf.constant([1.0], tf.float64)
    wrong = [
        lambda: tf.debugging.assert_type(x, tf.float64),
        lambda: tf.debugging.assert_type(y, tf.float16),
    ]
    tf.debugging.assert_type(x, tf.int64)
    return [error_of(action) for action in wrong]


@parity
def test_shapes_that_are_asserted_of_scalars(tf):
    """A scalar counts as a vector of one element; None is no assertion; a number is no shape."""
    scalar, one, two, matrix = tf.constant(5.0), tf.ones([1]), tf.ones([2]), tf.ones([2, 3])
    pairs = [
        *((scalar, s) for s in ((), (1,), ("N",), (None,), "N", (2,), ("*",), ("*", 1), None)),
        *((one, s) for s in ((), "N", 1, (..., "K"), (2,))),
        *((two, s) for s in ((), 2, "2")),
        *((matrix, s) for s in ((), (".", 3), ("*", 3), [2, 3], ("*", 2), None)),
    ]
    return (
        [error_of(lambda pair=pair: tf.debugging.assert_shapes([pair])) for pair in pairs],
        error_of(lambda: tf.debugging.assert_shapes([(scalar, "N"), (one, "N")])),
        error_of(lambda: tf.debugging.assert_shapes([(scalar, "N"), (two, "N")])),
    )


PIXELS = np.array([[0, 5, 13], [54, 135, 226], [0, 0, 200], [90, 255, 0], [7, 7, 7], [0, 0, 0]], "float32")

table.gradients("saturation-of-a-channel-at-zero", lambda tf, x: tf.image.rgb_to_hsv(x), PIXELS / 255)


def places(tf, values):
    """Three values of a matrix that is sparse."""
    return tf.SparseTensor([[0, 0], [0, 1], [1, 0]], values, [2, 3])


@parity
def test_elementwise_functions_of_sparse_tensors(tf):
    """Those that are 0 at 0 are there for the values alone; the sizes are those of the whole."""
    x = tf.constant([0.25, -0.5, 1.0])
    found = []
    for name in "abs asin atan negative sign sin sqrt square tan tanh erf".split():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = getattr(tf.math, name)(places(tf, x))
        found.append((parts(y), tape.gradient(y.values, x)))
    sparse = places(tf, x)
    tf.debugging.assert_type(sparse, tf.float32)
    return (
        found,
        parts(tf.cast(sparse, tf.int32)),
        parts(tf.stop_gradient(sparse)),
        [tf.shape(sparse), tf.size(sparse), tf.rank(sparse)],
        error_of(lambda: tf.debugging.assert_type(sparse, tf.int32)),
        error_of(lambda: tf.exp(sparse)),
    )


@parity
def test_images_are_adjusted_by_scalars(tf):
    """A vector would be taken for one number to a channel, a negative exponent makes the black infinite."""
    image = tf.constant(PIXELS[None] / 255)
    return [
        error_of(lambda: tf.image.adjust_contrast(image, [2.0])),
        error_of(lambda: tf.image.adjust_saturation(image, [2.0])),
        error_of(lambda: tf.image.adjust_gamma(image, tf.constant(-1.0))),
        error_of(lambda: tf.image.adjust_gamma(image, -1.0)),
        tf.image.adjust_brightness(image, [0.5]),
        tf.image.adjust_gamma(image, tf.constant(2.0)),
    ]


@parity
def test_blocks_that_are_none(tf):
    image = tf.ones([1, 4, 4, 4])
    return [
        error_of(lambda: tf.nn.space_to_depth(image, 1)),
        error_of(lambda: tf.nn.space_to_depth(image, 0)),
        error_of(lambda: tf.nn.depth_to_space(image, 1)),
        error_of(lambda: tf.space_to_batch(image, [0, 1], [[0, 0], [0, 0]])),
        error_of(lambda: tf.batch_to_space(image, [-1, -1], [[0, 0], [0, 0]])),
        tf.space_to_batch(image, [1, 1], [[0, 0], [0, 0]]),
    ]


@parity
def test_ranks_that_are_no_integers(tf):
    x = tf.constant([1.0, 2.0])
    return [
        error_of(lambda: tf.debugging.assert_rank(x, 1.5)),
        error_of(lambda: tf.debugging.assert_rank(x, [1, 2])),
        error_of(lambda: tf.debugging.assert_rank_in(x, [1, 0.5])),
        tf.debugging.assert_rank_in(x, [0, tf.constant(1)]),
    ]


@parity
def test_tolerances_of_a_rank(tf):
    """A list of them makes a rank for each."""
    x = tf.linalg.diag([3.0, 2.0, 1.0])
    return tf.linalg.matrix_rank(x, tol=[[0.5], [1.5], [2.5], [3.5]]), tf.linalg.matrix_rank(x, tol=1.5)


@parity
def test_text_as_raw_bytes(tf):
    return [tf.io.decode_raw("AaBC", tf.uint8), tf.io.decode_raw(["AaBC"], tf.uint16), tf.io.decode_raw([], tf.float32)]


@parity
def test_spectra_of_numpys_numbers(tf):
    """They are of single precision, whatever NumPy's are: a tensor decides for itself."""
    x = np.array([1.0, 2.0, 4.0])
    return [
        tf.signal.rfft(x),
        tf.signal.rfft(x.astype("float16")),
        tf.signal.rfft([1, 2, 4]),
        tf.signal.irfft(x + 1j),
        tf.signal.rfft2d(np.eye(2)),
        tf.signal.rfft(tf.constant(x)),
        tf.signal.inverse_stft(np.ones([3, 3], complex), 4, 2),
    ]


def test_sampled_losses_of_labels_that_are_floats():
    """They are rounded towards zero, as TensorFlow rounds them; which classes are sampled is another draw there."""
    tf = import_tapejax()
    given = tf.ones([6, 3]), tf.zeros([6])
    for labels in ([[1], [2]], [[1.0], [2.0]]):
        assert tf.nn.sampled_softmax_loss(*given, tf.constant(labels), tf.ones([2, 3]), 2, 6).shape == (2,)


@parity
def test_diagonals_of_nothing(tf):
    """The main one of an empty matrix is empty; its others are out of range."""
    empty = tf.ones([0, 3])
    return [
        tf.linalg.diag_part(empty),
        tf.linalg.diag_part(tf.ones([0, 0]), k=(0, 0)),
        tf.linalg.set_diag(empty, tf.ones([0])),
        error_of(lambda: tf.linalg.diag_part(empty, k=-1)),
    ]


@parity
def test_shapes_that_are_asserted_of_sparse_tensors(tf):
    sparse = places(tf, [1.0, 2.0, 3.0])
    return [
        error_of(lambda: tf.debugging.assert_shapes([(sparse, "NM"), (tf.ones([3]), "M")])),
        error_of(lambda: tf.debugging.assert_shapes([(sparse, "NM"), (tf.ones([2]), "M")])),
        error_of(lambda: tf.debugging.assert_rank(sparse, 2)),
        error_of(lambda: tf.debugging.assert_rank(sparse, 3)),
    ]


@parity
def test_sparse_places_outside(tf):
    """They are refused, where a gather and a scatter would clamp or drop them, and so are values in different places."""
    outside = [tf.SparseTensor([place], [1.0], [3, 2]) for place in ([1, 2], [3, 0], [-1, 0])]
    one, other = (tf.SparseTensor([place], [1.0], [3, 2]) for place in ([1, 1], [2, 0]))
    return (
        [error_of(lambda x=x: tf.sparse.sparse_dense_matmul(x, tf.ones([2, 2]))) for x in outside],
        [error_of(lambda x=x: tf.sparse.sparse_dense_matmul(x, tf.ones([3, 2]), adjoint_a=True)) for x in outside],
        [error_of(lambda x=x: tf.sparse.to_dense(x, validate_indices=False)) for x in outside],
        error_of(lambda: tf.sparse.map_values(tf.add, one, other)),
        tf.sparse.map_values(tf.add, one, one).values,
    )


@parity
def test_draws_at_the_ends_of_their_parameters(tf):
    """No rate, an infinite one, no trials."""
    never = [0.0, -1.0, -math.inf, math.inf]
    return (
        tf.random.poisson([2], never, dtype="float16"),
        tf.random.poisson([2], never[:3], dtype=tf.int32),
        tf.random.stateless_poisson([4], [1, 2], never, "float32"),
        tf.random.stateless_binomial(
            [5], [1, 2], tf.constant([0.0, 0, 0, 5, 5]), tf.constant([-10.0, 10.0, math.nan, 0, 1]), "float32"
        ),
        error_of(lambda: tf.random.uniform([-1])),
        error_of(lambda: tf.random.poisson([-1], 2.0)),
    )


@parity
def test_a_gamma_draw_is_never_zero(tf):
    """Since 0 has no logarithm."""
    with tf.GradientTape() as tape:
        alpha = tf.constant([1e-4])
        tape.watch(alpha)
        y = tf.random.gamma([1000], alpha)
    return tf.reduce_min(y), bool(tf.math.is_finite(tape.gradient(y, alpha)))


@parity
def test_the_missing_size_of_a_shape_with_a_zero(tf):
    """It is computed from the other sizes: a batch of none is flattened."""
    pairs = [
        *(((0, 6), n) for n in ((0, -1, 3), (-1, 3), (0, -1))),
        *(((2, 0), n) for n in ((-1, 0), (0, -1))),
        *(((2, 0, 3), n) for n in ((0, -1, 3), (-1, 0, 5))),
        ((0,), (0, -1)),
        ((0, 4), (0, -1, 3)),
    ]
    x = tf.zeros([0, 4, 4])
    return (
        [list(tf.reshape(tf.zeros(old), new).shape) for old, new in pairs],
        list(tf.function(lambda x: tf.reshape(x, [tf.shape(x)[0], -1]))(x).shape),
        error_of(lambda: tf.reshape(tf.zeros([2, 3]), [0, -1])),
        error_of(lambda: tf.reshape(tf.zeros([0, 3]), [-1, -1])),
    )


@parity
def test_bytes_and_a_copy(tf):
    """A list of bytes must be of one length; a sparse tensor is copied."""
    sparse = tf.SparseTensor([[0, 1]], [1.0], [2, 2])
    return [
        error_of(lambda: tf.io.decode_raw([b"ab", b"abc"], tf.uint8)),
        parts(tf.identity(sparse)),
    ]
