"""What TensorFlow does otherwise in the body of a `function`, which it runs as a graph, also where tapejax runs it as Python."""

import numpy as np
from harness import error_of, parity


def read_twice(tf):
    array = tf.TensorArray(tf.float32, size=2).write(0, 3.0).write(1, 4.0)
    return array.read(0) + array.read(0), array.stack(), array.gather([1, 0])


@parity
def test_tensor_arrays_are_read_any_number_of_times(tf):
    """Reading clears an element where operations run at once; in a graph it clears nothing, and `stack` has them all."""

    def as_python(x):
        tf.numpy_function(lambda v: v, [x], tf.float32)
        return read_twice(tf)

    def stack_after_read():
        array = tf.TensorArray(tf.float32, size=2).write(0, 3.0).write(1, 4.0)
        array.read(0)
        return array.stack()

    x = tf.constant(0.0)
    return (
        tf.function(lambda: read_twice(tf))(),
        tf.function(as_python)(x),
        stack_after_read(),
        tf.function(stack_after_read)(),
        tf.vectorized_map(lambda x: x + stack_after_read(), tf.constant([1.0, 2.0])),
        list(tf.data.Dataset.range(2).map(lambda i: stack_after_read()).as_numpy_iterator()),
        error_of(read_twice, tf),
        error_of(tf.function(lambda: tf.py_function(lambda: read_twice(tf)[0], [], tf.float32))) is not None,
    )


@parity
def test_tensor_arrays_are_values(tf):
    """A write of which nothing is done with the result has none."""

    def lost(x):
        array = tf.TensorArray(tf.float32, size=2, element_shape=[])
        array.write(0, x)
        array = array.write(1, 2 * x)
        return array.stack()

    def lost_as_python(x):
        return tf.numpy_function(lambda v: v, [lost(x)], tf.float32)

    x = tf.constant(3.0)
    return (
        lost(x),
        tf.function(lost)(x),
        tf.function(lost_as_python)(x),
        list(tf.data.Dataset.from_tensors(3.0).map(lost).as_numpy_iterator()),
    )


@parity
def test_a_recurrence_that_reads_what_it_wrote(tf):
    @tf.function
    def doubled_sums(n, start):
        array = tf.TensorArray(tf.float32, size=0, dynamic_size=True).unstack(start)
        for i in range(2, n):
            array = array.write(i, array.read(i - 1) + 2 * array.read(i - 2))
        return array.stack()

    start = tf.Variable([1.0, 3.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(doubled_sums(6, start) ** 2)
    return y, tape.gradient(y, start)


@parity
def test_nothing_is_eager_in_a_function(tf):
    """Nor in what maps the rows of a tensor or the elements of a dataset; `py_function` is."""
    seen = set()

    def look(where):
        seen.add((where, tf.executing_eagerly(), tf.inside_function()))

    def body(x):
        look("function")
        tf.py_function(lambda v: look("py_function"), [x], [])
        tf.numpy_function(lambda v: look("numpy_function") or v, [x], tf.float32)
        with tf.init_scope():
            seen.add(("init_scope", tf.executing_eagerly()))
        look("again")
        return x

    tf.function(body)(tf.constant(1.0))
    look("outside")
    tf.vectorized_map(lambda x: look("vectorized_map") or x, tf.constant([1.0]))
    list(tf.data.Dataset.range(1).map(lambda x: look("map") or x))
    list(tf.data.Dataset.range(1).filter(lambda x: look("filter") or x == 0))
    look("outside")
    return sorted(seen)


@parity
def test_after_an_error_in_a_function_that_runs_as_python(tf):
    @tf.function
    def fails(x):
        y = tf.numpy_function(lambda v: v + 1, [x], tf.float32)
        if y > 0:
            raise ZeroDivisionError
        return y

    def refused():
        try:
            fails(tf.constant(1.0))
        except Exception:
            return True

    return refused(), tf.executing_eagerly(), tf.inside_function()


@parity
def test_dtypes_of_numpy_functions(tf):
    """`Tout` counts in graphs, where another dtype is refused; elsewhere the result is what NumPy gives."""

    def in_graph(value, Tout, inp=()):
        call = lambda *given: value(*given) if callable(value) else value  # noqa: E731
        return lambda: tf.function(lambda: tf.numpy_function(call, list(inp), Tout))()

    wide = np.float64(0.1)
    return (
        tf.numpy_function(lambda x: x * 1.5, [2], tf.int32),
        tf.numpy_function(lambda x: x, [True], tf.int32),
        tf.numpy_function(lambda x: x / 3, [1.0], tf.float32),
        tf.numpy_function(lambda x: x / 3, [tf.constant(1.0)], tf.float32),
        tf.numpy_function(lambda x: (x, 2 * x), [[1, 2]], (tf.float32, tf.float64)),
        tf.numpy_function(lambda x: [x, x], [tf.constant(1.0)], tf.float32),
        tf.numpy_function(lambda x: (x,), [tf.constant(1.0)], [tf.float32]),
        tf.numpy_function(lambda: None, [], []),
        in_graph(np.float32(0.5), tf.float32)(),
        in_graph(lambda x: x, [tf.float32], [2.0])(),
        in_graph(wide, tf.float64)(),
        error_of(in_graph(np.int32(2), tf.float32)),
        error_of(in_graph(lambda x: (x, x), [tf.float32, tf.int32], [2.0])),
        error_of(lambda: list(tf.data.Dataset.range(1).map(lambda x: tf.numpy_function(np.float32, [x], tf.int32))))
        is None,
    )


@parity
def test_the_value_of_a_tensor_that_left_its_function(tf):
    """A symbolic tensor has no `numpy`, says an AttributeError."""
    kept = []

    @tf.function
    def leaking(x):
        kept.append(x + 1)
        return x

    leaking(tf.constant(1.0))
    try:
        kept[0].numpy()
    except AttributeError:
        return error_of(lambda: kept[0] + 1), error_of(lambda: tf.function(lambda y: y * kept[0])(tf.constant(2.0)))


@parity
def test_zero_gradients_through_a_function(tf):
    """What TensorFlow connects by a gradient of zero is connected where a function computes it for a tape outside, too."""
    x = tf.constant([1.0, -2.0, 3.0])
    each = [
        tf.sign,
        tf.floor,
        lambda x: x**0,
        lambda x: tf.boolean_mask(x, [False] * 3),
        lambda x: tf.linspace(1.0, x[0], 1),
        lambda x: tf.math.unsorted_segment_sum(x[:0], tf.zeros([0], tf.int32), 0),
        lambda x: tf.sign(tf.complex(x, x)),
        lambda x: tf.cond(x[0] > 0, lambda: tf.sign(x), lambda: x),
        lambda x: tf.map_fn(tf.sign, x),
        lambda x: tf.sign(x) * x,
    ]
    found = []
    for f in each:
        compiled = tf.function(f)
        with tf.GradientTape(persistent=True) as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = compiled(x)
            slope = tape.gradient(y, x)
        found.append((y, slope, tf.function(compiled)(x)))
    missing = tf.constant([float("nan"), float("inf"), 0.0])
    with tf.GradientTape() as tape:
        tape.watch(missing)
        y = tf.function(tf.sign)(missing)
    return found, y, tape.gradient(y, missing)
