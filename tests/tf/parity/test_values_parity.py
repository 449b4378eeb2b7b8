"""Tensors as values: making, converting and combining them, and what Python and NumPy may do with them."""

import warnings

import numpy as np
from harness import error_of, parity

# --- making ---------------------------------------------------------------------------------------------------------


@parity
def test_the_dtype_of_a_constant(tf):
    """Python floats become float32, ints int32, bools bool; one float makes a list float."""
    values = [
        1,
        1.0,
        True,
        [1, 2],
        [1, 2.5],
        [1.5, 2],
        (1.0, 2.0),
        [[True], [False]],
        [],
        [[], []],
        [np.float32(1), 2],
    ]
    return [tf.constant(value) for value in values]


@parity
def test_the_dtype_of_a_numpy_constant(tf):
    """NumPy arrays and scalars keep their dtype."""
    dtypes = ["float32", "float16", "int32", "int16", "int8", "uint8", "bool", "complex64"]
    return [tf.constant(np.ones(2, dtype)) for dtype in dtypes] + [
        tf.constant(np.float32(1)),
        tf.constant(np.uint8(7)),
    ]


@parity
def test_constants_of_a_given_dtype(tf):
    """dtype= takes a DType, a name or a NumPy type."""
    return (
        tf.constant(1, tf.float32),
        tf.constant([1, 2], dtype="float16"),
        tf.constant([1.0, 2.0], dtype=np.float32),
        tf.constant([1.5, 2.5], tf.bfloat16),
        tf.constant(True, tf.bool),
        tf.constant(3, tf.uint8),
        tf.constant(1.0, tf.complex64),
        tf.constant(np.array([1.5, 2.5], "float32"), tf.float16),
    )


@parity
def test_constants_of_a_given_shape(tf):
    """shape= fills with one value or reshapes as many as it needs."""
    return (
        tf.constant(1.5, shape=[2, 2]),
        tf.constant([1, 2, 3, 4], shape=(2, 2)),
        tf.constant(0.0, shape=[0]),
        error_of(tf.constant, [1.0, 2.0, 3.0], shape=[2, 2]),
    )


@parity
def test_constants_that_are_refused(tf):
    """What is ragged, mixed, None or would lose its fraction is no constant."""
    return (
        error_of(tf.constant, [[1.0], [1.0, 2.0]]),
        error_of(tf.constant, [True, 1]),
        error_of(tf.constant, None),
        error_of(tf.constant, [1.0, None]),
        error_of(tf.constant, 1.5, tf.int32),
        error_of(tf.constant, 1.0, tf.int32),
        error_of(tf.constant, 2**63),
        error_of(tf.constant, object()),
        error_of(tf.constant, 1.0, "no such dtype"),
        error_of(tf.constant),
    )


@parity
def test_double_precision(tf):
    """float64 and int64 come from NumPy's defaults and from dtype=."""
    x = tf.constant(np.array([1.0, 2.0]))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.exp(x) * 3.0 + x**2
    return (
        x,
        tape.gradient(y, x),
        tf.constant(np.arange(3)),
        tf.constant(1.0, tf.float64),
        tf.Variable(np.float64(1.5)),
        tf.constant(1.0),
        tf.constant(1),
        tf.constant(1 + 2j),
        tf.cast(x, tf.float32),
        tf.constant([1, 2]) / tf.constant([2, 4]),
        tf.constant(3) / 2,
    )


@parity(x64_only="an integer that does not fit int32 is refused")
def test_an_integer_of_64_bits(tf):
    """What does not fit int32 is int64."""
    return tf.constant(2**31)


@parity
def test_half_precision(tf):
    """float16 and bfloat16 stay what they are through operations and gradients."""
    result = []
    for dtype in (tf.float16, tf.bfloat16):
        x = tf.Variable([1.0, 2.0], dtype=dtype)
        with tf.GradientTape() as tape:
            y = x * x * 3 + 0.5
        result.append((y, tape.gradient(y, x)))
    return result


@parity
def test_convert_to_tensor(tf):
    """Tensors come back as they are; lists with tensors in them are stacked."""
    t, v = tf.constant(3.0), tf.Variable([1.0, 2.0])
    return (
        tf.convert_to_tensor(t) is t,
        tf.convert_to_tensor(v),
        tf.convert_to_tensor([t, 1.0, t]),
        tf.convert_to_tensor([[t, t], v]),
        tf.convert_to_tensor(1, dtype=tf.float32),
        tf.convert_to_tensor(1, dtype_hint=tf.float32),
        tf.convert_to_tensor(1.5, dtype_hint=tf.int32),
        tf.convert_to_tensor(np.array([1.0, 2.0]), dtype=tf.float32),
        tf.convert_to_tensor(np.array([1, 2], "int32"), dtype=tf.float32),
        error_of(tf.convert_to_tensor, t, dtype=tf.int32),
        error_of(tf.convert_to_tensor, [t, tf.constant(1)]),
        error_of(tf.convert_to_tensor, [t, v]),
        error_of(tf.convert_to_tensor, None),
    )


@parity
def test_stacking_in_a_python_list(tf):
    """Tensors put into a list, then into an operation, stay connected."""
    a, b = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        total = tf.reduce_sum([a * b, a, b * b])
        stacked = tf.convert_to_tensor([[a, 1.0], [b, a * a]])
        product = tf.constant([[1.0, 2.0]]) @ [[a], [b]]
    return [tape.gradient(target, [a, b]) for target in (total, stacked, product)]


@parity
def test_casting(tf):
    """cast truncates towards zero, takes anything tensor-like, and leaves what has the dtype."""
    t = tf.constant([1.9, -1.9, 0.0])
    return (
        tf.cast(t, tf.float32) is t,
        tf.cast(t, tf.int32),
        tf.cast(t, tf.bool),
        tf.cast([1, 2], "float32"),
        tf.cast(np.array([1.5], "float32"), np.float16),
        tf.cast(True, tf.float32),
        tf.cast(300, tf.uint8),
        tf.cast(tf.Variable(2.7), tf.int32),
        error_of(tf.cast, t, "nothing"),
    )


@parity(
    differs="a float beyond an integer dtype becomes its limit, nan 0, on every device; in TensorFlow what the processor gives"
)
def test_casts_out_of_range(tf):
    return tf.cast([300.7, -2.5, 1e10, np.nan], tf.uint8), tf.cast(tf.constant([1e10, -1e10, np.nan]), tf.int32)


@parity
def test_casting_and_gradients(tf):
    """Casts between float types are differentiated, in the source's dtype; an integer on the way cuts the path."""
    x = tf.Variable([1.5, 2.5])
    with tf.GradientTape(persistent=True) as tape:
        half = tf.cast(x, tf.float16) * 2
        there_and_back = tf.cast(tf.cast(x, tf.int32), tf.float32) * 3.0
        mixed = x * tf.cast(tf.cast(x, tf.int32), tf.float32)
        mask = tf.cast(x > 2.0, tf.float32) * x
    return [tape.gradient(target, x) for target in (half, there_and_back, mixed, mask)]


# --- combining ------------------------------------------------------------------------------------------------------


@parity
def test_a_tensor_decides_the_dtype_of_python_values(tf):
    """Numbers, lists and NumPy values take the tensor's dtype, on either side."""
    x, i, h = tf.constant([1.0, 2.0]), tf.constant([1, 2]), tf.constant([1.0, 2.0], tf.float16)
    return (
        [x + 1, 1 + x, x + True, x * [1, 2], [1, 2] * x, x - np.array([1.0, 2.0]), np.array([1.0, 2.0]) - x],
        [x + np.int64(2), np.float64(2) * x, x / np.float32(2), np.float32([1, 2]) + x],
        [i + 1, 2 * i, i * [3, 4], i + np.array([1, 2]), i - np.int64(1)],
        [h + 1, h * 2.5, 1.5 - h, h + np.array([1.0, 2.0])],
    )


@parity
def test_mixed_dtypes_are_refused(tf):
    """Two tensors of different dtypes do not mix, nor does a fraction with integers."""
    x, i, h, b = (
        tf.constant([1.0, 2.0]),
        tf.constant([1, 2]),
        tf.constant([1.0, 2.0], tf.float16),
        tf.constant(True),
    )
    return [
        error_of(action)
        for action in (
            lambda: x + i,
            lambda: i + x,
            lambda: x * h,
            lambda: x > i,
            lambda: x == i,
            lambda: tf.Variable(1.0) - i,
            lambda: i + tf.Variable(1.0),
            lambda: tf.maximum(x, i),
            lambda: x @ tf.ones([2, 2], tf.float16),
            lambda: i + 1.5,
            lambda: i * [1.5, 2.0],
            lambda: b + 1,
            lambda: x & x,
            lambda: x + "text",
            lambda: x + None,
        )
    ]


@parity
def test_a_fraction_on_the_left_of_integers(tf):
    """1.5 - integers is refused like integers - 1.5."""
    return error_of(lambda: 1.5 - tf.constant([1, 2])), error_of(lambda: 2.0 * tf.constant(3))


@parity(says="tf.cast")
def test_the_message_of_mixed_dtypes(tf):
    """The error says how to cast."""
    return error_of(lambda: tf.constant(1.0) + tf.constant(1))


@parity
def test_dividing_integers(tf):
    """int / int is a true division in floating point; // and % round down, as in Python."""
    i, j = tf.constant([7, -7, 6]), tf.constant([2, 2, -4])
    return (
        [i / j, i / 2, 7 / tf.constant(2), i / i],
        [i // j, i % j, i // 2, 7 // j, -7 % j, i**2, 2 ** tf.constant([0, 3])],
        error_of(lambda: i // 0),
        error_of(lambda: i**-1),
    )


@parity
def test_floor_division_and_remainder_of_floats(tf):
    """// and % round down for floats too."""
    x, y = tf.constant([7.5, -7.5, 6.0]), tf.constant([2.0, 2.0, -4.0])
    return x // y, x % y, 7.5 // y, x % 2, tf.constant([1.0, -1.0, 0.0]) / 0.0


@parity
def test_powers(tf):
    """Integer and float exponents, a number on the left, and the special cases."""
    x = tf.constant([2.0, -3.0, 0.0])
    return x**2, x**3.0, x**0, x**-1, 2.0**x, x**x, tf.pow(x, [1, 2, 0]), tf.constant(3) ** 2


@parity
def test_large_powers_of_integers(tf):
    """`jnp.power` looks at six bits of an exponent; a power that overflows is the true one, modulo 2**32."""
    x = tf.constant([0, 1, -1, 2, 5])
    large = tf.constant([64, 128, 257, 300, 2**30])
    compiled = tf.function(lambda x, y: tf.pow(x, y))
    return x**64, x**257, tf.pow(x, large), compiled(x, large), compiled(x, tf.constant(3)), 0 ** tf.constant(64)


@parity
def test_logical_and_bitwise_operators(tf):
    """&, |, ^ and ~ are logical on booleans and bitwise on integers."""
    a, b = tf.constant([True, True, False]), tf.constant([True, False, False])
    i = tf.constant([12, 10])
    return a & b, a | b, a ^ b, ~a, a & True, i & 6, i | 1, i ^ 3, ~i, error_of(lambda: ~tf.constant(1.0))


@parity
def test_comparisons(tf):
    """Comparisons are elementwise and broadcast."""
    x = tf.constant([1.0, 2.0, 3.0])
    return (
        x < 2,
        x <= [2.0, 2.0, 2.0],
        x > tf.constant(1.5),
        x >= np.float32(2),
        x == 2.0,
        x != 2,
        2 < x,
        x == x,
    )


@parity
def test_equality_that_is_no_error(tf):
    """Shapes that do not broadcast are not equal; nothing equals None."""
    x = tf.constant([1.0, 2.0])
    y = tf.constant([1.0, 2.0, 3.0])
    return x == y, x != y, x == None, x != None, error_of(lambda: x == "a"), error_of(lambda: x < y)  # noqa: E711


@parity
def test_shapes_that_do_not_match(tf):
    """Elementwise operations broadcast or fail; matrix products want two dimensions that fit."""
    x, y, m = tf.ones([2]), tf.ones([3]), tf.ones([2, 3])
    return (
        error_of(lambda: x + y),
        error_of(lambda: x @ x),
        error_of(lambda: m @ m),
        error_of(lambda: m @ y),
        error_of(lambda: tf.reshape(m, [4])),
        error_of(lambda: tf.concat([m, x], 0)),
        error_of(lambda: tf.stack([x, y])),
        m @ tf.transpose(m),
        [[1.0, 2.0]] @ m,
        tf.constant([[1, 2]]) @ tf.constant([[1], [2]]),
    )


@parity
def test_broadcasting_and_gradients(tf):
    """The gradient of a broadcast operand has the operand's shape."""
    shapes = [[], [1], [3], [2, 1], [1, 3], [4, 1, 3]]
    variables = [tf.Variable(tf.fill(shape, float(n + 1))) for n, shape in enumerate(shapes)]
    big = tf.reshape(tf.range(24.0), [4, 2, 3])
    result = []
    for variable in variables:
        with tf.GradientTape(persistent=True) as tape:
            targets = [
                big * variable,
                variable - big,
                big / variable,
                tf.maximum(variable, big),
                variable**2 + big,
            ]
        result.append([tape.gradient(target, variable) for target in targets])
    return result


@parity
def test_matrix_products_and_gradients(tf):
    """Matrix products, batched and transposed."""
    a, b = tf.Variable(tf.reshape(tf.range(12.0), [2, 2, 3])), tf.Variable(tf.reshape(tf.range(6.0), [3, 2]))
    with tf.GradientTape(persistent=True) as tape:
        targets = [
            a @ b,
            tf.matmul(a, a, transpose_b=True),
            tf.matmul(b, a[0], transpose_a=True, transpose_b=True),
            tf.linalg.matvec(a, [1.0, 2.0, 3.0]),
            tf.tensordot(a, b, axes=[[2], [0]]),
            tf.einsum("bij,jk->bk", a, b),
        ]
    return targets, [[dense(tf, g) for g in tape.gradient(target, [a, b])] for target in targets]


def dense(tf, gradient):
    return None if gradient is None else tf.convert_to_tensor(gradient)


# --- Python and NumPy -----------------------------------------------------------------------------------------------


@parity
def test_a_tensor_as_a_python_value(tf):
    """float, int, bool, complex, index: of scalars."""
    x, i, one = tf.constant(2.75), tf.constant(2), tf.constant([1.0])
    return (
        [float(x), int(x), bool(x), complex(x), float(i), int(i)],
        [bool(tf.constant(0)), bool(one), bool(tf.zeros([0]))],
        ["a", "b", "c"][i],
        list(range(i)),
        "ab" * int(i),
        [1, 2, 3][:i],
    )


@parity
def test_a_tensor_that_is_no_python_value(tf):
    """What is not one number has no float, int, truth or index."""
    vector, one, x = tf.constant([1.0, 2.0]), tf.constant([1.0]), tf.constant(1.0)
    return (
        error_of(bool, vector),
        error_of(float, vector),
        error_of(float, one),
        error_of(int, vector),
        error_of(lambda: [1, 2][tf.constant([1])]),
        error_of(range, vector),
        error_of(divmod, x, 2.0),
    )


@parity(differs="a float as an index is a TypeError, as everywhere in Python, not an AttributeError")
def test_a_float_is_no_index(tf):
    """A float tensor is no index."""
    return error_of(lambda: [1, 2][tf.constant(1.0)]), error_of(range, tf.constant(2.0))


@parity
def test_a_tensor_as_a_sequence(tf):
    """len, iteration, unpacking, membership; a scalar is no sequence."""
    m, scalar = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant(5.0)
    first, second = m
    return (
        len(m),
        list(m),
        first,
        [float(value) for row in m for value in row],
        list(zip(tf.constant([1, 2]), "ab"))[1][1],
        scalar in [scalar, scalar + 1.0],
        list(reversed(tf.constant([1, 2]))) if hasattr(m, "__reversed__") else None,
        error_of(len, scalar),
        error_of(iter, scalar),
        error_of(lambda: [*scalar]),
    )


@parity
def test_python_sum_and_max(tf):
    """Python's sum, max and sorted work over tensors, and sum is differentiated."""
    x = tf.Variable([1.0, 3.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        pieces = [value * value for value in x]
        total, largest = sum(pieces), max(pieces)
    return (
        total,
        largest,
        dense(tf, tape.gradient(total, x)),
        dense(tf, tape.gradient(largest, x)),
        [float(value) for value in sorted(tf.constant([3.0, 1.0, 2.0]))],
        sum(x.numpy()),
    )


@parity
def test_iterating_is_differentiated(tf):
    """Rows and numbers taken by a for loop stay connected."""
    m = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        total = 0.0
        for weight, row in enumerate(m):
            a, b = row
            total += weight * a * b + a
    return total, dense(tf, tape.gradient(total, m))


@parity
def test_hashing_is_refused(tf):
    """A tensor is no key; a set of tensors needs ref()."""
    x = tf.constant(1.0)
    return error_of(hash, x), error_of(lambda: {x}), error_of(lambda: {x: 1})


@parity
def test_indexing(tf):
    """Numbers, slices, ellipsis, new axes and scalar tensors as indices; a list counts as a tuple."""
    t = tf.reshape(tf.range(24), [2, 3, 4])
    one = tf.constant(1)
    return (
        [t[1], t[-1, 0], t[:, 1:], t[..., -1], t[0, ..., ::2], t[::-1, 0, 0]],
        [t[:, tf.newaxis, 0], t[None, 1, 2, 3]],
        [t[one], t[0, one], t[:one], t[0, :, one], t[1][2][3]],
        error_of(lambda: t[2]),
        error_of(lambda: t[0, 0, 0, 0]),
        error_of(lambda: t["a"]),
        error_of(lambda: t[1.5]),
        t[[0, 1]],
    )


@parity
def test_indexing_with_a_mask(tf):
    """A boolean mask selects, and its gradient goes to the selected."""
    x = tf.Variable([1.0, -2.0, 3.0])
    with tf.GradientTape() as tape:
        y = tf.boolean_mask(x, x > 0.0) ** 2
    return y, dense(tf, tape.gradient(y, x)), tf.constant([1, 2, 3])[tf.constant([True, False, True])]


@parity
def test_slices_and_gradients(tf):
    """The gradient of a slice is zero outside of it, also for overlapping slices."""
    x = tf.constant([1.0, 2.0, 3.0, 4.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        targets = [x[1:3], x[::2] * 3.0, x[1:] * x[:-1], x[0] * x[-1], x[::-1] * [1.0, 2.0, 3.0, 4.0], x[2:2]]
    return [tape.gradient(target, x) for target in targets]


@parity
def test_gather_with_repeated_indices(tf):
    """Contributions to one index add up."""
    table = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    with tf.GradientTape(persistent=True) as tape:
        rows = tf.gather(table, [0, 2, 0])
        y = rows * [[1.0, 1.0], [2.0, 2.0], [3.0, 30.0]]
        z = tf.gather(table, [1, 1], axis=1)
    return rows, tf.convert_to_tensor(tape.gradient(y, table)), tf.convert_to_tensor(tape.gradient(z, table))


@parity
def test_a_tensor_in_numpy(tf):
    """NumPy functions take tensors and give NumPy arrays."""
    t = tf.constant([[1.0, 4.0], [9.0, 16.0]])
    return (
        [np.sqrt(t), np.sum(t), np.mean(t, axis=0), np.add(t, 1), np.dot(t, t), np.concatenate([t, t])],
        [np.asarray(t), np.array(t, dtype="float64"), np.asarray(t, dtype="int32"), t.numpy().tolist()],
        [np.allclose(t, t.numpy()), np.array_equal(t, t), np.shape(t), np.ndim(t)],
        np.stack([tf.constant(1.0), tf.constant(2.0)]),
        np.array([tf.constant(1.0), tf.constant(2.0)]),
        [1.0, 2.0] @ t.numpy(),
    )


@parity
def test_numpy_of_a_tensor(tf):
    """numpy() gives an array of the tensor's dtype and shape; of a scalar, a NumPy scalar."""
    values = [tf.constant(1.5), tf.constant([1, 2]), tf.constant([[True]]), tf.zeros([0, 2])]
    first = values[0].numpy()
    return [value.numpy() for value in values], isinstance(first, np.float32), first.item()


@parity
def test_attributes_of_a_tensor(tf):
    """shape, dtype, ndim, get_shape(); NumPy's methods are not there."""
    t = tf.ones([2, 3])
    return (
        t.shape,
        t.dtype,
        t.ndim,
        t.get_shape(),
        [error_of(getattr, t, name) for name in ("T", "size", "mean")],
    )


@parity
def test_tensors_are_immutable(tf):
    """Writing into the NumPy array of a copy leaves the tensor."""
    t = tf.constant([1.0, 2.0])
    copy = np.array(t)
    copy[0] = 7.0
    return t, copy


@parity
def test_kinds_of_values(tf):
    """is_tensor knows tensors and variables, and nothing else."""
    t, v = tf.constant(1.0), tf.Variable(1.0)
    return (
        [tf.is_tensor(value) for value in (t, v, v.read_value(), 1.0, [t], None, np.ones(1))],
        [isinstance(value, tf.Tensor) for value in (t, v.read_value(), v + 1, 1.0)],
        [isinstance(value, tf.Variable) for value in (t, v, v + 1)],
    )


# --- shapes and dtypes ----------------------------------------------------------------------------------------------


@parity
def test_a_shape_compares_and_slices_like_a_tuple(tf):
    """A TensorShape equals tuples and lists, is indexed, sliced, unpacked, added to."""
    shape = tf.ones([2, 3, 4]).shape
    rows, *rest = shape
    return (
        [shape == (2, 3, 4), shape == [2, 3, 4], shape != (2, 3), shape == tf.zeros(shape).shape, shape == 5],
        [shape[0], shape[-1], shape[1:], len(shape), tuple(shape), list(shape), rows, rest],
        [shape + (5,), shape + [5], (5,) + tuple(shape), shape.concatenate([5])],
        [shape.as_list(), shape.rank, shape.ndims, shape.num_elements(), shape.is_fully_defined()],
        {shape: "key"}[tf.TensorShape([2, 3, 4])],
        tf.zeros(shape[:2]),
        np.zeros(shape).shape,
    )


@parity
def test_shapes_that_are_not_known(tf):
    """A TensorShape may have unknown dimensions."""
    partial, unknown = tf.TensorShape([None, 3]), tf.TensorShape(None)
    print(partial, unknown, repr(partial), repr(unknown))
    return (
        partial,
        [partial.is_compatible_with(shape) for shape in ([7, 3], [7, 4], [7])],
        unknown.is_compatible_with([1]),
        [partial.is_fully_defined(), partial.num_elements(), partial.rank, unknown.rank],
        error_of(len, unknown),
        error_of(unknown.as_list),
        tf.TensorShape(3),
        tf.TensorShape([]),
    )


@parity
def test_a_shape_as_a_tensor(tf):
    """Its sizes are integers, of the empty shape as well; tf.constant alone takes it for a list."""
    none, shape = tf.TensorShape([]), tf.TensorShape([2, 3])
    found = [tf.convert_to_tensor(x) for x in (none, shape)]
    found += [tf.concat([a, b], 0) for a in (none, shape, [5]) for b in (none, shape)]
    found += [tf.reduce_prod(none), tf.Variable(none), tf.zeros(tf.concat([none, [2]], 0)), tf.expand_dims(none, 0)]
    found += [tf.convert_to_tensor(x, tf.int64) for x in (none, shape)]
    found += [tf.convert_to_tensor(x, dtype_hint=tf.float32) for x in (none, shape)]
    found += [tf.constant(none), tf.constant(shape), tf.constant(shape, tf.float32), tf.cast(shape, tf.float64)]
    refused = [
        error_of(tf.convert_to_tensor, shape, tf.float32),
        error_of(tf.convert_to_tensor, tf.TensorShape([None])),
        error_of(tf.convert_to_tensor, tf.TensorShape(None)),
        error_of(tf.constant, tf.TensorShape([None])),
        error_of(lambda: tf.concat([none, [2.0]], 0)),
        error_of(lambda: tf.constant(2.0) * shape),
        error_of(lambda: tf.multiply(shape, 2.0)),
    ]
    return found, refused


@parity
def test_dtypes_compare(tf):
    """A DType equals its name and NumPy's type; as_dtype converts."""
    return (
        [tf.float32 == "float32", tf.float32 == np.float32, tf.float32 == tf.float64, tf.int32 != np.int64],
        [tf.float32 == np.dtype("float32"), tf.float32 is tf.as_dtype("float32"), tf.half == tf.float16],
        [tf.as_dtype(np.int32), tf.as_dtype("bool"), tf.as_dtype(float), tf.as_dtype(bool), tf.double],
        [tf.constant(1.0).dtype == tf.float32, tf.constant(1).dtype in (tf.int32, tf.int64)],
        {tf.float32: "key"}[tf.constant(1.0).dtype],
        error_of(tf.as_dtype, "float31"),
        error_of(tf.as_dtype, int),
        error_of(tf.as_dtype, None),
    )


@parity
def test_attributes_of_dtypes(tf):
    """Name, kind, size and limits of a DType."""
    names = [
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "int8",
        "uint8",
        "int32",
        "int64",
        "bool",
        "complex64",
    ]
    dtypes = [getattr(tf, name) for name in names]
    numbers = [tf.float16, tf.float32, tf.int8, tf.uint8, tf.int32]
    return (
        [(d.name, d.is_floating, d.is_integer, d.is_bool, d.is_complex, d.size) for d in dtypes],
        [(float(d.min), float(d.max)) for d in numbers],
        tf.complex64.real_dtype,
        np.dtype(tf.float32.as_numpy_dtype).name,
        np.zeros(2, tf.float32.as_numpy_dtype),
    )


@parity
def test_complex_values(tf):
    """complex64: parts, conjugate, absolute value."""
    z = tf.complex([3.0, 0.0], [4.0, -1.0])
    return z, tf.math.real(z), tf.math.imag(z), tf.math.conj(z), tf.abs(z), z * z, z + 1.0


@parity(differs="a shape is a tuple, so that JAX takes it: % formats its sizes one by one")
def test_shapes_in_old_formats(tf):
    x = tf.zeros([2, 3])
    return f"{x.shape}", error_of(lambda: "%s" % x.shape)  # noqa: UP031


@parity(differs="tf.experimental.numpy promotes dtypes as jnp does: int32 and float32 make float32", x64_only="float64")
def test_promotion_in_numpys_namespace(tf):
    numpy = tf.experimental.numpy
    return numpy.add(numpy.ones(1, numpy.int32), numpy.ones(1, numpy.float32))


@parity
def test_floats_too_large_for_single_precision(tf):
    """Refused, unless a dtype is known: that of the other operand, or one that was asked for."""
    x, huge = tf.constant([1.0, -2.0]), 1e39
    refused = [
        lambda: tf.constant(huge),
        lambda: tf.constant([-huge, 1.0]),
        lambda: tf.Variable(huge),
        lambda: tf.fill([1], huge),
        lambda: tf.exp(huge),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX's, where a compiled operation is given the number (pytest --compiled)
        found = [
            tf.constant(huge, tf.float32),
            tf.constant([np.inf, 1.0]),
            x * huge,
            tf.where(x > 0, x, -huge),
            x < huge,
        ]
    return [error_of(each) for each in refused], found, tf.constant(huge, tf.float64) > 1.0


@parity
def test_one_hot_of_a_depth_that_is_no_length(tf):
    refused = [error_of(lambda depth=depth: tf.one_hot([1], depth)) for depth in (2.5, -1)]
    return refused, tf.one_hot([1], 0), tf.one_hot([1], np.int64(2)), tf.one_hot([1], tf.constant(3))


@parity
def test_rows_of_indices_without_an_index(tf):
    """Each takes the whole tensor; nothing can be put in by them."""
    x, rows, of_all = tf.constant([1.0]), tf.zeros([3, 0], tf.int32), tf.ones([3, 1])
    put_in = [
        lambda: tf.scatter_nd(rows, of_all, [1]),
        lambda: tf.tensor_scatter_nd_add(x, rows, of_all),
        lambda: tf.tensor_scatter_nd_update(x, rows, of_all),
        lambda: tf.Variable([1.0]).scatter_nd_add(rows, of_all),
    ]
    return (
        tf.gather_nd(x, rows),
        tf.gather_nd([[1.0, 2.0]], tf.zeros([2, 1, 0], tf.int32)),
        [error_of(each) for each in put_in],
    )


@parity
def test_rows_of_indices_without_an_index_into_nothing(tf):
    """There is nothing to put in, so none of it is lost."""
    x, rows, none = tf.zeros([0]), tf.zeros([2, 0], tf.int32), tf.zeros([2, 0])
    return (
        tf.tensor_scatter_nd_add(x, rows, none),
        tf.scatter_nd(tf.zeros([0], tf.int32), tf.zeros([0, 0]), [0, 0]),
        tf.tensor_scatter_nd_update(x, rows, none),
        error_of(lambda: tf.scatter_nd(rows, tf.zeros([3, 0]), [0])),
    )


@parity
def test_shifts_by_more_or_less_than_there_are_bits(tf):
    """By all bits but one, or by none."""
    found = []
    for dtype in (tf.int8, tf.int32, tf.uint8, tf.uint32):
        x, y = tf.constant([5, 100, 3, 127], dtype), tf.constant([7, 8, 33, 100], dtype)
        found += [tf.bitwise.left_shift(x, y), tf.bitwise.right_shift(x, y)]
    x, y = tf.constant([5, -100, 3]), tf.constant([-1, -33, 40])
    return found, tf.bitwise.left_shift(x, y), tf.bitwise.right_shift(x, y)


@parity
def test_nan_is_neither_the_largest_nor_the_smallest(tf):
    """Where there is another number; the first index where there is none."""
    rows = np.array(
        [[np.nan, 1, 2], [3, np.nan, 1], [-np.inf, np.nan, np.inf], [np.nan] * 3, [np.nan, -np.inf, np.nan]]
    )
    found = [
        f(tf.cast(rows, dtype), axis)
        for f in (tf.argmax, tf.argmin)
        for axis in (0, 1)
        for dtype in (tf.float32, tf.float16)
    ]
    return found, tf.function(lambda x: tf.argmax(x, 1))(tf.constant(rows, tf.float32)), tf.argmin([3, 1, 1])
