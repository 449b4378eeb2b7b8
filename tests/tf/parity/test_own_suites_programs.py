"""What TensorFlow's own tests of functions, control flow, variables and training found, run under tapejax."""

import dataclasses
import tempfile
from pathlib import Path

import numpy as np
from harness import error_of, parity

# ---- functions ------------------------------------------------------------------------------------------------------


@parity
def test_a_function_that_moves_what_its_arguments_hold_is_refused(tf):
    @tf.function
    def move(lists):
        lists[0].append(lists[1].pop(0))
        return lists[0][0]

    @tf.function
    def rename(mapping):
        mapping["b"] = mapping.pop("a")
        return mapping["b"]

    return (
        error_of(lambda: move([[tf.constant(0.0)], [tf.constant(1.0), tf.constant(2.0)]])),
        error_of(lambda: rename({"a": tf.constant(1.0)})),
    )


# ---- arrays ---------------------------------------------------------------------------------------------------------


@parity
def test_numpy_integers_in_a_list_that_is_stacked(tf):
    """A list of numbers alone is one literal, in which NumPy's integers are int32 if they fit."""
    one, two = np.int64(1), np.int64(2)
    rows = [
        [one, two],
        (one, 2),
        [one, 2.5],
        [np.int8(1), np.int8(2)],
        [np.array([1]), np.array([2])],
        [np.ones(2, np.int32), np.ones(2, np.float32)],
        [np.float16(1), np.float16(2)],
        [[one, two], [3, 4]],
        [one, tf.constant(2)],
    ]
    return (
        [tf.stack(row) for row in rows],
        error_of(lambda: tf.stack([[1, 2], [3]])),
        error_of(lambda: tf.sequence_mask([1], -1)),
        tf.sequence_mask([1], 0),
    )


# ---- what consists of tensors ---------------------------------------------------------------------------------------


def slices(tf):
    return tf.IndexedSlices(tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([0, 2]), tf.constant([4, 2]))


def unsized(tf):
    return tf.IndexedSlices(tf.constant([1.0, 2.0]), tf.constant([0, 2]))


def parts(rows):
    return [rows.values, rows.indices, *([] if rows.dense_shape is None else [rows.dense_shape])]


@parity
def test_indexed_slices_through_a_function(tf):
    traces = []

    @tf.function
    def same(x):
        traces.append(1)
        return x

    @tf.function
    def scaled(x, factor):
        return {"rows": tf.IndexedSlices(x.values * factor, x.indices, x.dense_shape), "sum": tf.reduce_sum(x.values)}

    variable = tf.Variable(tf.ones([4, 2]))

    @tf.function
    def update(x):
        variable.scatter_sub(x)
        return tf.convert_to_tensor(x)

    found = [parts(same(slices(tf))), parts(same(slices(tf))), parts(same(unsized(tf))), len(traces)]
    result = scaled(slices(tf), 3.0)
    with tf.GradientTape(persistent=True) as tape:
        x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        tape.watch(x)
        inside = tf.IndexedSlices(x * x, tf.constant([0, 2]), tf.constant([4, 2]))
        dense = tf.convert_to_tensor(same(inside)) * 3.0
        total = scaled(inside, x)["sum"]
    return found, parts(result["rows"]), result["sum"], update(slices(tf)), variable, tape.gradient([dense, total], x)


@parity
def test_composites_are_expanded_where_asked(tf):
    sparse = tf.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 2])
    structure = {"b": sparse, "a": [slices(tf), 1]}
    flat = tf.nest.flatten(structure, expand_composites=True)
    packed = tf.nest.pack_sequence_as(structure, flat, expand_composites=True)
    doubled = tf.nest.map_structure(lambda x: x * 2, unsized(tf), expand_composites=True)
    return (
        flat[:3] + flat[4:],
        len(tf.nest.flatten(structure)),
        parts(packed["a"][0]),
        tf.sparse.to_dense(packed["b"]),
        parts(doubled),
        tf.nest.assert_same_structure(sparse, sparse, expand_composites=True),
        error_of(lambda: tf.nest.assert_same_structure(sparse, tf.constant(1.0), expand_composites=True)),
        error_of(lambda: tf.nest.assert_same_structure(slices(tf), unsized(tf), expand_composites=True)),
        error_of(lambda: tf.nest.pack_sequence_as(sparse, [1.0], expand_composites=True)),
    )


# ---- Python functions as operations, loops --------------------------------------------------------------------------


@parity
def test_what_a_python_function_returns_is_one_value_unless_it_is_a_list(tf):
    """An array is one result, whatever its shape; of a list, what is more than there are dtypes is left out."""
    x = tf.constant([1.0])

    def run(found, dtypes):
        return tf.py_function(lambda: found, [], dtypes)

    @tf.function
    def inside(x):
        return tf.py_function(lambda x: x * 2.0, [x], [tf.float32]), tf.numpy_function(
            lambda x: x * 3.0, [x], [tf.float32]
        )

    with tf.GradientTape() as tape:
        tape.watch(x)
        (y,) = tf.py_function(lambda x: x * x, [x], [tf.float32])
    return (
        run(np.array([5.0]), [tf.float32]),
        run(np.array([[5.0, 6.0]]), (tf.float32,)),
        run(5, [tf.int32]),
        run(np.float32(5.0), [tf.float32]),
        run([5.0, 6.0], tf.float32),
        run((5.0, 6), [tf.float32, tf.int32]),
        run(None, []),
        error_of(lambda: run(np.array([5.0, 6.0], "float32"), [tf.float32, tf.float32])),
        error_of(lambda: run([5.0], [tf.float32, tf.float32])),
        error_of(lambda: run(None, tf.float32)),
        error_of(lambda: tf.function(lambda: tf.numpy_function(lambda: np.ones(2, "float32"), [], [tf.float32] * 2))()),
        error_of(lambda: tf.function(lambda: tf.numpy_function(lambda: [np.float32(1)] * 2, [], tf.float32))()),
        inside(x),
        y,
        tape.gradient(y, x),
    )


@parity
def test_a_loop_gives_what_its_body_returned(tf):
    """Outside a function a list or a tuple, as the body has it; the variables it began with, if it never ran."""

    def run(start, body, count=3):
        return tf.while_loop(lambda i, x: i < count, body, start)

    as_tuple, as_list = lambda i, x: (i + 1, x * 2.0), lambda i, x: [i + 1, x * 2.0]
    return (
        run([0, 1.0], as_tuple),
        run((0, 1.0), as_list),
        run([0, 1.0], as_tuple, 0),
        tf.function(lambda: run([0, 1.0], as_tuple))(),
        tf.function(lambda: run((0, 1.0), as_list))(),
        tf.while_loop(lambda i: i < 3, lambda i: (i + 1,), [0]),
        error_of(lambda: run([0, 1.0], lambda i, x: [i + 1])),
    )


@parity
def test_text_alone_is_printed_each_time_that_a_function_runs(tf):
    """Also in its loops, in their conditions, and in the branch that is taken alone."""

    path = Path(tempfile.mkdtemp()) / "printed"  # what TensorFlow writes to sys.stdout does not pass through Python

    def say(*what):
        tf.print(*what, output_stream=f"file://{path}")

    def loop(bound):
        def condition(i, x):
            say("condition")
            return i < bound

        def body(i, x):
            say("body", 1)
            return i + 1, x * 2.0

        return tf.while_loop(condition, body, [tf.constant(0), tf.constant(1.0)])

    @tf.function
    def program(x, bound):
        say("begin")
        say("constant", tf.constant([1, 2]))
        y = tf.cond(x > 0.0, lambda: (say("positive"), x * x)[1], lambda: (say("negative"), -x)[1])
        for _ in tf.range(2):
            say("converted")
        say(tf.map_fn(lambda a: (say("row"), a)[1], tf.stack([x, y])))
        return loop(bound)[1] * y + loop(1)[1]

    seen = []

    @tf.function
    def called():
        tf.py_function(lambda: seen.append(1), [], [])

    found = []
    for x in (3.0, -3.0):
        x = tf.constant(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = program(x, tf.constant(2))
        called()
        found.append([y, tape.gradient(y, x), len(seen)])
    return found, sorted(path.read_text().splitlines())  # the order is XLA's: see docs/differences.md


# ---- tapes within and around vectorized_map -------------------------------------------------------------------------


@parity
def test_a_tape_around_vectorized_map_sees_the_variables_that_are_read_under_a_tape_within(tf):
    """As with per-example gradients that are differentiated again."""
    v, w, xs = tf.Variable([1.0, 2.0]), tf.Variable(3.0), tf.constant([1.0, 2.0, 3.0])

    def slope(x):
        with tf.GradientTape() as inner:
            inner.watch(x)
            z = tf.reduce_sum(v * v) * w * x * x
        return inner.gradient(z, x)

    def slope_by_variable(x):
        with tf.GradientTape() as inner:
            z = tf.reduce_sum(v * v * v) * w * x
        return inner.gradient(z, v)

    found = []
    for fn in (slope, slope_by_variable):
        with tf.GradientTape() as outer:
            y = tf.vectorized_map(fn, xs)
        found += [len(outer.watched_variables()), y, outer.gradient(y, [v, w])]
    return found


@parity(warns=True)
def test_a_gradient_that_is_asked_for_in_vectorized_map(tf):
    x, v = tf.constant([1.0, 2.0]), tf.Variable([1.0, 2.0])

    def rows(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x * x * x
            jacobian = tf.vectorized_map(lambda i: tape.gradient(tf.gather(y * v, i), x), tf.range(2))
            by_variable = tf.vectorized_map(lambda i: tape.gradient(tf.gather(y * v * v, i), v), tf.range(2))
        return jacobian, by_variable, tape.gradient(jacobian, x), tape.gradient(by_variable, v)

    return rows(x), tf.function(rows)(x)


@parity
def test_a_custom_gradient_that_reads_a_variable_in_vectorized_map(tf):
    v, xs = tf.Variable(2.0), tf.constant([1.0, 2.0, 3.0])

    @tf.custom_gradient
    def of_variable(x):
        return x * v * v, lambda dy, variables=None: (dy * v * v * 3.0, [dy * 2.0 * v * x])

    @tf.custom_gradient
    def square(x):
        return x * x, lambda dy: dy * v * x  # read in the backward function alone

    def slopes(fn):
        def slope(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = fn(x) * x
            return tape.gradient(y, x)

        with tf.GradientTape() as around:
            found = tf.vectorized_map(slope, xs)
        return found, around.gradient(found, v)

    return tf.vectorized_map(of_variable, xs), [slopes(fn) for fn in (of_variable, square)]


@parity
def test_a_dataclass_with_a_list_beside_its_tensors(tf):
    @dataclasses.dataclass
    class Masked:
        masks: list
        value: object

        def __tf_flatten__(self):
            return (self.masks,), (self.value,)

        @classmethod
        def __tf_unflatten__(cls, metadata, components):
            return cls(metadata[0], components[0])

    traces = []

    @tf.function
    def joined(a, b):
        traces.append(1)
        return Masked(a.masks + b.masks, a.value * b.value)

    first, second = Masked([True, False], tf.constant([1.0, 2.0])), Masked([False], tf.constant([3.0, 4.0]))
    found = [joined(first, second), joined(first, second), joined(second, first), joined(first, first)]
    return [[x.masks, x.value] for x in found], len(traces)


@parity
def test_a_variable_where_a_spec_asks_for_a_tensor(tf):
    """It is read: by a loaded function, a concrete one, and one with a signature."""
    module, variable = tf.Module(), tf.Variable(2.0)
    module.v = tf.Variable(3.0)
    scalar, anything = tf.TensorSpec([], tf.float32), tf.TensorSpec(None, tf.float32)
    module.f = tf.function(lambda x, n: (x * x * module.v, n), input_signature=[scalar, tf.TensorSpec([], tf.int32)])
    module.g = tf.function(lambda x: x * 2.0, input_signature=[anything])
    module.h = tf.function(lambda parts: parts["a"] * parts["b"][0])
    module.h({"a": tf.constant(1.0), "b": [tf.constant(2.0)]})
    path = tempfile.mkdtemp()
    tf.saved_model.save(module, path)
    loaded = tf.saved_model.load(path)
    concrete = tf.function(lambda x: x * 5.0).get_concrete_function(scalar)
    with tf.GradientTape() as tape:
        y = loaded.f(variable, tf.constant(1))[0] * module.f(variable, 1)[0] * concrete(variable)
    found = tape.gradient(y, [variable, loaded.v, module.v])
    return (
        y,
        found,
        [loaded.g(variable), loaded.g(tf.Variable([1.0, 2.0])), loaded.h({"a": variable, "b": [variable]})],
        error_of(lambda: loaded.g(tf.Variable(1))),
        error_of(lambda: module.g(tf.Variable(1))),
    )
