"""Variables: reading, assigning and updating them, inside and outside of tapes."""

import operator

import numpy as np
from harness import error_of, parity


@parity
def test_several_reads_with_an_assignment_in_between(tf):
    """Each read keeps the value it read; all of them are reads of the one variable."""
    v = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        early = v * v
        v.assign(5.0)
        late = v * v
        both = early * late
    return [tape.gradient(target, v) for target in (early, late, both, [early, late])], v


@parity
def test_a_variable_assigned_after_the_block(tf):
    """gradient() uses the values of the time of recording."""
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(v**3)
    v.assign([100.0, 100.0])
    return tape.gradient(y, v), v


@parity
def test_assigning_a_function_of_another_variable(tf):
    """What was assigned is a constant of the reads that follow."""
    a, b = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        b.assign(a * 4.0)
        y = b * b
    return tape.gradient(y, [a, b]), b


@parity
def test_assigning_a_variable_to_itself(tf):
    """An update in terms of itself stops the gradient of the earlier read."""
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        for _ in range(3):
            v.assign(v * v)
        y = 3.0 * v
    return tape.gradient(y, v), v


@parity
def test_the_result_of_an_assignment(tf):
    """assign returns the variable's new value, to be read."""
    a, b = tf.Variable(2.0), tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        after = b.assign_add(a * 4.0)
        y = after * after
        after_assign = b.assign(1.5)
        z = after_assign * 2.0
    return tape.gradient(y, [a, b]), tape.gradient(z, b), y, z


@parity
def test_a_variable_is_its_own_derivative_after_an_assignment_too(tf):
    """What `assign` returns is the variable, whatever the tape saw of it."""

    def read(v):
        v * 2.0
        return v.assign(4.0)

    def read_again(v):
        y = v.assign(4.0)
        v * 2.0
        return y

    found = []
    for change in (
        lambda v: v,
        lambda v: v.assign(3.0),
        lambda v: v.assign_add(3.0),
        lambda v: v.assign(v * 3.0),
        read,
        read_again,
    ):
        v, w = tf.Variable(2.0), tf.Variable(1.0)
        with tf.GradientTape(persistent=True) as tape:
            y = change(v)
        found.append([tape.gradient(y, [v, w]), tape.gradient(v, y), tape.gradient([v, v * 1.0], v)])
    return found


@parity
def test_assignments_in_a_row(tf):
    """assign, assign_add and assign_sub take numbers, lists, arrays, tensors and variables."""
    v = tf.Variable([1.0, 2.0])
    v.assign([3.0, 4.0])
    v.assign_add(np.array([1.0, 1.0], "float32"))
    v.assign_sub(tf.constant([0.5, 0.25]))
    v.assign_add(tf.Variable([10.0, 20.0]))
    v.assign_sub(v)
    v.assign_add([1.0, -1.0])
    return v, v.assign(v * 2.0).numpy(), v.assign(v, read_value=False), v.assign_add(v, read_value=False), v


@parity
def test_assignments_that_are_refused(tf):
    """The shape and the dtype of a variable stay."""
    v, whole = tf.Variable([1.0, 2.0]), tf.Variable(3)
    return (
        error_of(v.assign, [1.0, 2.0, 3.0]),
        error_of(v.assign, 1.0),
        error_of(v.assign, [[1.0, 2.0]]),
        error_of(v.assign_add, [1.0, 2.0, 3.0]),
        error_of(v.assign, tf.constant([1, 2])),
        error_of(v.assign, "text"),
        error_of(v.assign, None),
        error_of(whole.assign, 1.5),
        error_of(whole.assign, tf.constant(1.0)),
        error_of(whole.assign_add, 0.5),
        v,
        whole,
    )


@parity
def test_an_integer_list_is_assigned_to_a_float_variable(tf):
    """Python integers become the variable's dtype."""
    v = tf.Variable([1.0, 2.0])
    v.assign([3, 4])
    v.assign_add([1, 1])
    v.assign_sub(np.array([1, 2], "int32").tolist())
    return v


@parity
def test_read_value_as_source(tf):
    """read_value() is a tensor of its own: as a source it has only what went through it."""
    v = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as tape:
        read, value, identity, converted = v.read_value(), v.value(), tf.identity(v), tf.convert_to_tensor(v)
        y = read**2 + 3.0 * value + 5.0 * identity + 7.0 * converted + 11.0 * v
    return tape.gradient(y, [v, read, value, identity, converted]), isinstance(read, tf.Variable)


@parity
def test_two_variables_from_one_tensor(tf):
    """Variables made from one tensor are independent of it and of each other."""
    start = tf.constant([1.0, 2.0])
    v, w = tf.Variable(start), tf.Variable(start)
    with tf.GradientTape() as tape:
        y = v * w * start
    gradients = tape.gradient(y, [v, w, start])
    v.assign([7.0, 7.0])
    return gradients, v, w, start


@parity
def test_a_variable_from_an_array_that_changes(tf):
    """A variable copies the NumPy array it is made of and hands out copies."""
    numbers = np.array([1.0, 2.0], "float32")
    v = tf.Variable(numbers)
    numbers[0] = 100.0
    taken = v.numpy()
    v.assign([3.0, 4.0])
    return v, taken


@parity
def test_a_variable_from_a_watched_tensor(tf):
    """Making a variable inside the block cuts the path to what it is made from."""
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        v = tf.Variable(x * 3.0)
        y = v * v
    return tape.gradient(y, [x, v])


@parity
def test_swapping_two_variables(tf):
    """A value read before an assignment is not changed by it."""
    a, b = tf.Variable(1.0), tf.Variable(2.0)
    kept = a.read_value()
    a.assign(b)
    b.assign(kept)
    return a, b


@parity
def test_a_variable_in_place_of_a_tensor(tf):
    """Functions and operators take variables where they take tensors."""
    v, m = tf.Variable([1.0, 4.0]), tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        y = tf.linalg.matvec(m, tf.sqrt(v)) - v / 2.0
    return y, tape.gradient(y, [v, m])


@parity
def test_operators_of_variables(tf):
    """Every Python operator works on variables, from both sides, and gives tensors."""
    v = tf.Variable([2.0, -3.0])
    results = [v + 1, 1 + v, v - 1, 1 - v, v * 2, 2 * v, v / 2, 2 / v, v**2, 2**v, v % 2, v // 2, -v, abs(v)]
    results += [v + v, v < 0, v >= 2, v == 2.0, v != 2.0]
    return results, [isinstance(result, tf.Variable) for result in results]


@parity
def test_augmented_assignment_is_refused(tf):
    """v += 1 could mean assign_add or v = v + 1, so it is neither; for a tensor it is the latter."""
    v, t = tf.Variable(3.0), tf.constant(3.0)
    kept = t
    t += 1.0
    t *= 2.0
    t -= 0.5
    t /= 3.0
    t **= 2
    names = ["iadd", "isub", "imul", "itruediv", "ifloordiv", "ipow"]
    return [error_of(getattr(operator, name), v, 2.0) for name in names], v, t, kept


@parity
def test_indexing_a_variable(tf):
    """An index into a variable is a tensor; its gradient is zero elsewhere."""
    v = tf.Variable([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with tf.GradientTape(persistent=True) as tape:
        targets = [v[0], v[:, 1], v[-1, ::2], v[..., 0], v[1][2], v[tf.newaxis, 0, 1:]]
    return targets, [tf.convert_to_tensor(tape.gradient(target, v)) for target in targets]


@parity
def test_item_assignment_is_refused(tf):
    """Neither a tensor nor a variable takes v[0] = 1."""
    v, t = tf.Variable([1.0, 2.0]), tf.constant([1.0, 2.0])

    def assign_item(target):
        target[0] = 1.0

    return error_of(assign_item, v), error_of(assign_item, t)


@parity
def test_assigning_a_slice(tf):
    """v[i].assign writes into the variable."""
    v = tf.Variable([1.0, 2.0, 3.0])
    v[1].assign(20.0)
    v[::2].assign([10.0, 30.0])
    return v


@parity
def test_the_attributes_of_a_variable(tf):
    """name, shape, dtype, trainable, and what they are by default."""
    v = tf.Variable([[1.0, 2.0]])
    w = tf.Variable(3, name="count", trainable=False)
    return [(x.name, x.shape, x.dtype, x.trainable, x.shape.rank) for x in (v, w)]


@parity
def test_names_of_variables(tf):
    """A name gets :0; names need not differ."""
    names = [None, "w", "w", "scope/w", "w_1"]
    return [tf.Variable(1.0, name=name).name for name in names]


@parity
def test_the_dtype_of_a_new_variable(tf):
    """Python floats become float32, ints int32, bools bool; dtype= converts."""
    return [
        tf.Variable(1.0),
        tf.Variable(1),
        tf.Variable(True),
        tf.Variable([1, 2.5]),
        tf.Variable(1, dtype=tf.float32),
        tf.Variable([1, 2], dtype="float16"),
        tf.Variable(np.float32(2.0)),
        tf.Variable(tf.constant([1, 2])),
        tf.Variable(lambda: tf.zeros([2])),
        tf.Variable(tf.Variable([5.0])),
    ]


@parity
def test_new_variables_that_are_refused(tf):
    """A variable needs a value that converts to its dtype."""
    return (
        error_of(tf.Variable),
        error_of(tf.Variable, None),
        error_of(tf.Variable, 1.5, dtype=tf.int32),
        error_of(tf.Variable, [[1.0], [1.0, 2.0]]),
        error_of(tf.Variable, tf.constant(1.0), dtype=tf.int32),
        error_of(tf.Variable, [1.0, 2.0], shape=[3]),
    )


@parity
def test_a_variable_as_a_python_value(tf):
    """float, int, bool, complex and iteration work; hash, len and indexing with a variable do not."""
    v, whole = tf.Variable([1.5, 2.5]), tf.Variable(2)
    return (
        float(v[0]),
        int(whole),
        bool(tf.Variable(0.0)),
        [float(item) for item in v],
        complex(tf.Variable(1.5)),
        error_of(bool, v),
        error_of(float, v),
        error_of(hash, v),
        error_of(len, whole),
        error_of(range, whole),
        error_of(lambda: ["a", "b", "c"][whole]),
    )


@parity
def test_a_variable_in_numpy(tf):
    """NumPy takes a variable as an array."""
    v = tf.Variable([[1.0, 4.0], [9.0, 16.0]])
    return np.sqrt(v), np.sum(v), np.asarray(v).dtype.name, np.array(v, "float64"), v.numpy(), np.dot(v, v)


@parity
def test_finding_a_variable_in_a_list(tf):
    """Variables compare by value, so a list is searched by identity."""
    v, w = tf.Variable(1.0), tf.Variable(1.0)
    return v == w, v in [w], [x is v for x in [v, w]], v is None


@parity(differs="a Variable compared with None is not equal, as a Tensor is; TensorFlow raises ValueError")
def test_comparing_a_variable_with_none(tf):
    """A tensor does not equal None; in TensorFlow a variable refuses the question."""
    return error_of(lambda: tf.Variable(1.0) == None), tf.constant(1.0) == None  # noqa: E711


@parity
def test_references_as_keys(tf):
    """ref() makes a variable or tensor a key."""
    v, t = tf.Variable(1.0), tf.constant(1.0)
    table = {v.ref(): "variable", t.ref(): "tensor"}
    return table[v.ref()], table[t.ref()], v.ref().deref() is v, t.ref().deref() is t, v.ref() == t.ref()


@parity
def test_an_untrainable_counter_in_the_block(tf):
    """Counting calls in a variable inside the block is harmless."""
    calls, v = tf.Variable(0, trainable=False, name="calls"), tf.Variable(3.0, name="v")
    with tf.GradientTape() as tape:
        y = 0.0
        for _ in range(3):
            calls.assign_add(1)
            y += v * tf.cast(calls, tf.float32)
    return tape.gradient(y, v), calls, [x.name for x in tape.watched_variables()]


@parity
def test_a_moving_average(tf):
    """State that is read and written in the block counts as a constant in the loss."""
    average, x = tf.Variable(1.0, trainable=False), tf.Variable(3.0)
    with tf.GradientTape() as tape:
        average.assign(0.9 * average + 0.1 * x)
        loss = (x - average) ** 2
    return tape.gradient(loss, [x, average]), average


@parity
def test_stop_gradient_against_assign(tf):
    """stop_gradient cuts the path through one use of a value, not through others."""
    v = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = v * tf.stop_gradient(v)
        z = tf.stop_gradient(v * v)
        w = v + tf.stop_gradient(v**3 - v)
    return [tape.gradient(target, v) for target in (y, z, w)], w


@parity
def test_a_cast_to_its_own_dtype_is_the_variable(tf):
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        c = tf.cast(v, tf.float32)
        y = tf.reduce_sum(c * c)
    found = c is v, tape.gradient(y, v)
    v.assign_sub([1.0, 1.0])
    return found, c.numpy(), tf.cast(v, tf.float64)
