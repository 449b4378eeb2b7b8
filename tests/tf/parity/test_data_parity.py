"""``tf.data``: elements, their order, number, shape and dtype; and that they are constants to a tape.

Random orders differ from TensorFlow's: of these the bodies return what must hold of them.
"""

import collections
import tempfile
import unittest

import numpy as np
import pytest
from harness import error_of, parity

pytest.importorskip("grain", reason="tf.data stands on Grain")

Pair = collections.namedtuple("Pair", "x y")


def values(dataset):
    """The elements, as Python numbers in their structure."""
    return [tree(x) for x in dataset.as_numpy_iterator()]


def tree(x):
    if isinstance(x, dict):
        return {key: tree(item) for key, item in x.items()}
    if isinstance(x, tuple):
        return type(x)(*map(tree, x)) if hasattr(x, "_fields") else tuple(map(tree, x))
    return np.asarray(x).tolist()


def spec(x):
    if isinstance(x, dict):
        return {key: spec(item) for key, item in x.items()}
    if isinstance(x, tuple):
        return tuple(map(spec, x))
    return x.shape, x.dtype


# --- sources ---------------------------------------------------------------------------------------------------------


@parity
def test_slices(tf):
    """Rows of lists, arrays, tensors and variables, with their dtypes."""
    Dataset = tf.data.Dataset
    given = [
        [1, 2, 3],
        [1.5, 2.5],
        [[1, 2], [3, 4]],
        [True, False],
        np.arange(3.0),
        np.arange(3, dtype="uint8"),
        tf.constant([[1.0], [2.0]]),
        tf.Variable([1.0, 2.0]),
        [np.zeros(3), np.ones(3)],
        [(1, 2), (3, 4)],
        range(3),
        np.zeros((2, 0)),
    ]
    return [(list(Dataset.from_tensor_slices(x)), spec(Dataset.from_tensor_slices(x).element_spec)) for x in given]


@parity
def test_slices_of_structures(tf):
    """Tuples, dicts and named tuples keep their kind; a list is a tensor."""
    Dataset = tf.data.Dataset
    given = [
        ([1, 2], [3.0, 4.0]),
        {"b": [1, 2], "a": [3, 4]},
        ({"x": [1, 2], "y": ([3, 4], [5, 6])}, np.zeros((2, 3))),
        Pair([1, 2], [3.0, 4.0]),
        ([1, 2],),
        ([[1, 2], [3, 4]], [0, 1]),
    ]
    return [(list(Dataset.from_tensor_slices(x)), spec(Dataset.from_tensor_slices(x).element_spec)) for x in given]


@parity
def test_slices_that_do_not_fit(tf):
    """Scalars, rows that differ in number, nothing."""
    make = tf.data.Dataset.from_tensor_slices
    return [error_of(lambda x=x: make(x)) for x in (1.0, ([1, 2], [1, 2, 3]), ([1], 2), None, (), [[1], [2, 3]])]


@parity
def test_an_empty_dataset(tf):
    """No rows: no elements, length 0."""
    dataset = tf.data.Dataset.from_tensor_slices(np.zeros((0, 3), "float32"))
    return (
        values(dataset),
        len(dataset),
        values(dataset.batch(2)),
        values(dataset.shuffle(3)),
        values(dataset.repeat(2)),
    )


@parity
def test_one_element(tf):
    """from_tensors: the whole is one element."""
    Dataset = tf.data.Dataset
    return [list(Dataset.from_tensors(x)) for x in (1.0, [1, 2], ([1, 2], 3.0), {"a": np.ones(2)}, Pair(1, [2]))]


@parity
def test_ranges(tf):
    """range: one, two or three numbers, int64 unless another type is asked for."""
    Dataset = tf.data.Dataset
    found = [Dataset.range(*args) for args in ((3,), (2, 8, 3), (5, 1, -2), (3, 3), (-2, 2))]
    return (
        [list(x) for x in found],
        [len(x) for x in found],
        list(Dataset.range(3, output_type=tf.float32)),
        error_of(lambda: Dataset.range()),
        error_of(lambda: Dataset.range(1, 2, 3, 4)),
        error_of(lambda: Dataset.range(1.5)),
    )


@parity
def test_generators(tf):
    """from_generator: dtypes by its signature, called anew for each pass, with arguments."""
    calls = []

    def count(n):
        calls.append(int(n))
        yield from range(int(n))

    make = tf.data.Dataset.from_generator
    numbers = make(count, output_signature=tf.TensorSpec([], tf.int32), args=(3,))
    pairs = make(lambda: iter([(1, 2.0), (3, 4.0)]), output_types=(tf.int32, tf.float32))
    ragged = make(lambda: iter([[1], [1, 2]]), output_signature=tf.TensorSpec([None], tf.int32))
    named = make(
        lambda: iter([{"a": 1, "b": [1.0]}]),
        output_signature={"a": tf.TensorSpec([], tf.int32), "b": tf.TensorSpec([1])},
    )
    return list(numbers), list(numbers), calls, list(pairs), list(ragged), list(named), spec(ragged.element_spec)


@parity
def test_generators_that_do_not_fit(tf):
    """Not callable, no signature, another shape, something that is no number, the wrong number of parts."""
    make, scalar = tf.data.Dataset.from_generator, tf.TensorSpec([], tf.int32)
    return [
        error_of(lambda: make([1], output_signature=scalar)),
        error_of(lambda: make(lambda: iter([1]))),
        error_of(lambda: list(make(lambda: iter([[1]]), output_signature=scalar))),
        error_of(lambda: list(make(lambda: iter(["a"]), output_signature=scalar))),
        error_of(lambda: make(lambda: iter([1]), output_signature=tf.int32)),
    ]


# --- number ----------------------------------------------------------------------------------------------------------


@parity
def test_lengths(tf):
    """len() and cardinality after each method."""
    ten = tf.data.Dataset.range(10)
    datasets = [
        ten,
        ten.take(3),
        ten.take(30),
        ten.take(-1),
        ten.take(0),
        ten.skip(3),
        ten.skip(30),
        ten.skip(-1),
        ten.repeat(3),
        ten.repeat(0),
        ten.batch(3),
        ten.batch(3, drop_remainder=True),
        ten.shuffle(4),
        ten.map(lambda x: x + 1),
        ten.prefetch(2),
        ten.cache(),
        ten.enumerate(),
        ten.concatenate(ten),
        ten.shard(3, 0),
        ten.shard(3, 1),
        ten.window(3),
        ten.window(3, drop_remainder=True),
        ten.window(3, shift=1),
        ten.window(3, shift=1, drop_remainder=True),
        ten.batch(5).unbatch(),
        ten.batch(5, drop_remainder=True).unbatch(),
        ten.padded_batch(4),
        ten.scan(np.int64(0), lambda s, x: (s + x, s)),
        tf.data.Dataset.zip(ten, ten.take(4)),
        tf.data.Dataset.zip(ten, ten.repeat()),
        ten.repeat(3).take(12).batch(5),
    ]
    return [x.cardinality().numpy().item() for x in datasets], [len(x) for x in datasets[:3]]


@parity
def test_lengths_that_are_not_known(tf):
    """Infinite and unknown: cardinality says which, len() raises."""
    ten = tf.data.Dataset.range(10)
    datasets = [
        ten.repeat(),
        ten.repeat(-1),
        ten.repeat(-5),
        ten.repeat().batch(2),
        ten.repeat().take(-1),
        ten.repeat().skip(2),
        ten.repeat().concatenate(ten),
        ten.filter(lambda x: x > 1),
        ten.repeat().filter(lambda x: x > 1),
        ten.flat_map(lambda x: tf.data.Dataset.range(x)),
        ten.take_while(lambda x: x < 3),
        ten.filter(lambda x: x > 1).concatenate(ten),
        ten.filter(lambda x: x > 1).repeat(2),
        ten.filter(lambda x: x > 1).batch(2),
        ten.filter(lambda x: x > 1).take(2),
    ]
    constants = tf.data.INFINITE_CARDINALITY, tf.data.UNKNOWN_CARDINALITY, tf.data.experimental.INFINITE_CARDINALITY
    counts = [x.cardinality().numpy().item() for x in datasets]
    return (
        counts,
        [error_of(lambda x=x: len(x)) for x in datasets[::7]],
        constants,
        [bool(x) for x in (ten, ten.take(0))],
    )


@parity
def test_bad_numbers(tf):
    """Sizes that are not positive, or no integers."""
    ten = tf.data.Dataset.range(10)
    return [
        error_of(lambda: ten.batch(0)),
        error_of(lambda: ten.batch(-1)),
        error_of(lambda: ten.shuffle(0)),
        error_of(lambda: ten.take(1.5)),
        error_of(lambda: ten.batch(2.0)),
        error_of(lambda: ten.repeat(1.5)),
        error_of(lambda: ten.prefetch(-3)),
        error_of(lambda: ten.shard(2, 2)),
        error_of(lambda: ten.shard(0, 0)),
        error_of(lambda: ten.take("a")),
    ]


@parity
def test_take_skip_repeat_in_any_order(tf):
    """What remains, on plain and on mapped datasets."""

    def chains(d):
        return [
            d.take(4).skip(1),
            d.skip(4).take(4),
            d.repeat(2).skip(5).take(4),
            d.take(2).repeat(3).skip(1),
            d.batch(4).take(2),
            d.batch(4).skip(1).repeat(2),
            d.repeat(2).batch(4),
            d.take(0).repeat(2),
            d.repeat().take(9),
            d.repeat().batch(4).take(3),
            d.shard(3, 1),
            d.skip(1).shard(2, 0).repeat(2),
            d.take(5).concatenate(d.skip(5)).batch(3),
            d.repeat(tf.constant(2, tf.int64)).take(np.int64(7)),
        ]

    plain = tf.data.Dataset.range(6)
    return [values(x) for x in chains(plain)], [values(x) for x in chains(plain.map(lambda x: x * 10))]


# --- batches ---------------------------------------------------------------------------------------------------------


@parity
def test_batches(tf):
    """Stacked along a new first axis; the remainder is smaller or dropped; the spec says whether the size is known."""
    Dataset = tf.data.Dataset
    structure = Dataset.from_tensor_slices(({"a": [1, 2, 3]}, np.arange(6.0).reshape(3, 2)))
    datasets = [
        Dataset.range(5).batch(2),
        Dataset.range(5).batch(2, drop_remainder=True),
        Dataset.range(5).batch(2, True, num_parallel_calls=tf.data.AUTOTUNE),
        Dataset.range(5).batch(9),
        Dataset.range(5).batch(2).batch(2),
        Dataset.range(6).map(lambda x: (x, x * 2)).batch(4),
        structure.batch(2),
        Dataset.from_tensors([1, 2]).batch(2),
        Dataset.range(5).batch(3).unbatch().batch(2),
        Dataset.from_tensor_slices([[1, 2], [3, 4]]).unbatch(),
    ]
    return [(list(x), spec(x.element_spec)) for x in datasets]


@parity
def test_batches_of_different_shapes(tf):
    """An error, when it happens."""
    rows = tf.data.Dataset.from_generator(lambda: iter([[1], [1, 2]]), output_signature=tf.TensorSpec([None], tf.int32))
    return error_of(lambda: list(rows.batch(2))), list(rows.batch(1))


@parity
def test_padding_of_wide_integers(tf):
    """Elements that are int64 by their signature."""
    rows = tf.data.Dataset.from_generator(lambda: iter([[1], [1, 2]]), output_signature=tf.TensorSpec([None], tf.int64))
    return [list(rows.padded_batch(2, padding_values=value)) for value in (tf.constant(-1, tf.int64), np.int64(7))]


@parity
def test_padded_batches(tf):
    """To the largest, or to the shape asked for, with zeros or another value."""
    rows = tf.data.Dataset.from_generator(
        lambda: iter([[1], [1, 2], [3]]), output_signature=tf.TensorSpec([None], tf.int32)
    )
    pairs = tf.data.Dataset.from_generator(
        lambda: iter([([1], 0.5), ([1, 2], 1.5)]), output_signature=(tf.TensorSpec([None], tf.int32), tf.TensorSpec([]))
    )
    datasets = [
        rows.padded_batch(2),
        rows.padded_batch(2, drop_remainder=True),
        rows.padded_batch(3, padded_shapes=[4], padding_values=-1),
        rows.padded_batch(3, padded_shapes=[None]),
        pairs.padded_batch(2),
        pairs.padded_batch(2, padded_shapes=([3], []), padding_values=(9, 0.0)),
    ]
    return [(list(x), spec(x.element_spec)) for x in datasets], error_of(
        lambda: list(rows.padded_batch(2, padded_shapes=[1]))
    )


@parity
def test_windows(tf):
    """Datasets of elements: size, shift, stride, remainder; made flat by batch."""
    ten = tf.data.Dataset.range(7)
    pairs = tf.data.Dataset.from_tensor_slices(([1, 2, 3], [4, 5, 6])).window(2)
    return (
        [
            [values(w) for w in ten.window(*args)]
            for args in ((3,), (3, 1), (2, 3), (2, 1, 2), (2, 4, 2, True), (3, 1, 1, True))
        ],
        values(ten.window(3, shift=2, drop_remainder=True).flat_map(lambda w: w.batch(3))),
        [(values(a), values(b)) for a, b in pairs],
    )


# --- functions -------------------------------------------------------------------------------------------------------


@parity
def test_map(tf):
    """Components of a tuple are arguments, a dict or named tuple is one; lists that come back are tuples."""
    Dataset = tf.data.Dataset
    datasets = [
        Dataset.range(3).map(lambda a: a * 2),
        Dataset.from_tensor_slices(([1, 2], [3, 4])).map(lambda a, b: a + b),
        Dataset.from_tensor_slices({"a": [1, 2]}).map(lambda d: d["a"]),
        Dataset.from_tensor_slices(Pair([1], [2])).map(lambda p: p.x + p.y),
        Dataset.range(2).map(lambda a: [a, a + 1]),
        Dataset.range(2).map(lambda a: (a, {"x": [a]})),
        Dataset.range(2).map(lambda a: 1.5),
        Dataset.range(2).map(lambda a: (a, np.float64(2), True)),
        Dataset.zip(Dataset.range(2), Dataset.zip(Dataset.range(2), Dataset.range(2))).map(
            lambda a, b: a + b[0] + b[1]
        ),
        Dataset.range(5).batch(2).map(lambda x: tf.reduce_sum(x)),
        Dataset.range(5).batch(2).map(lambda x: tf.cast(x, tf.float32) / 2.0),
        Dataset.range(3).map(lambda a: Pair(a, -a)),
        Dataset.range(3).map(tf.square),
        Dataset.range(3).map(lambda x: tf.cond(x > 1, lambda: x, lambda: -x)),
        Dataset.range(3).map(tf.function(lambda x: x + 1), num_parallel_calls=2, deterministic=True),
    ]
    return [(list(x), spec(x.element_spec)) for x in datasets]


@parity
def test_functions_that_do_not_fit(tf):
    """The wrong number of arguments, no function, a condition that is none."""
    Dataset = tf.data.Dataset
    pairs = Dataset.from_tensor_slices(([1, 2], [3, 4]))
    return [
        error_of(lambda: list(pairs.map(lambda x: x))),
        error_of(lambda: list(Dataset.range(3).filter(lambda x: x))),
    ]


@parity(differs="an exception of the user's own in a map function is raised as it is")
def test_exceptions_in_functions(tf):
    """TensorFlow wraps what Python raises."""

    def fail(x):
        raise KeyError("mine")

    call = lambda x: tf.numpy_function(fail, [x], tf.int64)  # noqa: E731
    return error_of(lambda: list(tf.data.Dataset.range(3).map(call)))


@parity
def test_filter_scan_take_while_reduce(tf):
    """Which elements remain; states that are handed on."""
    five = tf.data.Dataset.range(5)
    pairs = tf.data.Dataset.from_tensor_slices(([1, 2, 3], [3.0, 2.0, 1.0]))
    return (
        list(five.filter(lambda x: x % 2 == 0)),
        list(pairs.filter(lambda a, b: b > 1.0)),
        list(five.take_while(lambda x: x < 3)),
        list(five.scan(np.int64(0), lambda s, x: (s + x, s + x))),
        five.reduce(np.int64(0), lambda s, x: s + x),
        five.reduce((0.0, 0), lambda s, x: (s[0] + 1.0, s[1] + 1)),
        pairs.reduce(0.0, lambda s, x: s + x[1]),
        five.take(0).reduce(7.0, lambda s, x: s + 1.0),
        error_of(lambda: five.reduce(0.0, lambda s, x: 1)),
        list(five.map(lambda x: x // 2).unique()),
    )


@parity
def test_flat_map_and_interleave(tf):
    """One dataset after the other, or several in turn."""
    Dataset = tf.data.Dataset
    four = Dataset.range(4)
    return (
        values(four.flat_map(lambda x: Dataset.from_tensors(x).repeat(2))),
        values(four.flat_map(lambda x: Dataset.range(x))),
        [
            values(four.interleave(lambda x: Dataset.from_tensors(x).repeat(3), cycle_length=c, block_length=b))
            for c, b in ((1, 1), (2, 1), (2, 2), (3, 2), (4, 4), (9, 1))
        ],
        values(four.interleave(lambda x: Dataset.range(x), cycle_length=2)),
        spec(four.flat_map(lambda x: Dataset.from_tensors((x, 1.0))).element_spec),
    )


# --- several ---------------------------------------------------------------------------------------------------------


@parity
def test_zip(tf):
    """Datasets, a tuple or dict of them; the shortest decides."""
    Dataset = tf.data.Dataset
    a, b = Dataset.range(3), Dataset.from_tensor_slices([1.5, 2.5])
    return (
        values(Dataset.zip(a, b)),
        values(Dataset.zip((a, b))),
        values(Dataset.zip({"x": a, "y": (b, a)})),
        values(Dataset.zip(a)),
        values(Dataset.zip(a, b.repeat())),
        values(Dataset.zip((b, b)).map(lambda x, y: x + y)),
        values(Dataset.zip(a, a.map(lambda x: x * 2)).batch(2)),
        spec(Dataset.zip((a, {"k": b})).element_spec),
        error_of(lambda: Dataset.zip()),
        error_of(lambda: Dataset.zip(a, datasets=(a, b))),
        error_of(lambda: Dataset.zip(3)),
    )


@parity
def test_concatenate_enumerate(tf):
    """One after the other, with numbers."""
    Dataset = tf.data.Dataset
    a, b = Dataset.range(2), Dataset.range(10, 13)
    return (
        values(a.concatenate(b)),
        error_of(lambda: a.concatenate(Dataset.from_tensor_slices([1.0]))),
        error_of(lambda: a.concatenate(Dataset.from_tensor_slices(([1], [2])))),
        spec(Dataset.from_tensors([1]).concatenate(Dataset.from_tensors([1, 2])).element_spec),
        list(a.enumerate()),
        list(b.enumerate(5)),
        spec(a.enumerate().element_spec),
    )


# --- order -----------------------------------------------------------------------------------------------------------


@parity
def test_shuffled_orders(tf):
    """All elements once; another order in each pass, unless it is not to be; the same after the same seeds."""
    Dataset = tf.data.Dataset

    def passes(seed=None, again=None, size=50):
        dataset = Dataset.range(50).shuffle(size, seed=seed, reshuffle_each_iteration=again)
        return values(dataset), values(dataset)

    tf.random.set_seed(3)
    one = passes()
    tf.random.set_seed(3)
    other = passes()
    tf.random.set_seed(4)
    third = passes()
    fixed = passes(again=False)
    repeated = values(Dataset.range(50).shuffle(50).repeat(2))
    kept = values(Dataset.range(50).shuffle(50, reshuffle_each_iteration=False).repeat(2))
    cached = Dataset.range(50).shuffle(50).cache()
    return (
        [sorted(x) for x in (*one, *fixed)],
        one[0] == one[1],
        one == other,
        one == third,
        fixed[0] == fixed[1],
        passes(seed=5) == passes(seed=5),
        passes(seed=5) == passes(seed=6),
        sorted(repeated[:50]),
        repeated[:50] == repeated[50:],
        kept[:50] == kept[50:],
        values(cached) == values(cached),
        passes(size=1),
        values(Dataset.range(50).shuffle(Dataset.range(50).cardinality(), seed=2)) == list(range(50)),
    )


@parity
def test_a_shuffle_reaches_as_far_as_its_buffer(tf):
    """The element at place i comes from no further than i + buffer_size - 1, on plain and on mapped datasets."""
    plain = tf.data.Dataset.range(300)
    found = []
    for dataset in (plain, plain.map(lambda x: x)):
        order = values(dataset.shuffle(10, seed=1))
        found += [
            sorted(order),
            max(x - i for i, x in enumerate(order)) < 10,
            max(i - x for i, x in enumerate(order)) > 10,
        ]
    return found


@parity
def test_shuffled_pairs_stay_pairs(tf):
    """Rows of several tensors move together, in batches too."""
    x = np.arange(40)
    dataset = tf.data.Dataset.from_tensor_slices((x, {"y": x * 2})).shuffle(40).repeat(2).batch(7)
    found = list(dataset)
    return [bool(tf.reduce_all(a * 2 == b["y"])) for a, b in found], [a.shape for a, _ in found]


@parity
def test_cached_elements_are_made_once(tf):
    """After one whole pass; the function does not run again."""
    calls = []

    def count(x):
        calls.append(int(x))
        return x

    dataset = tf.data.Dataset.range(3).map(lambda x: tf.numpy_function(count, [x], tf.int64)).cache()
    return values(dataset), values(dataset.batch(2)), values(dataset), calls


# --- iteration -------------------------------------------------------------------------------------------------------


@parity
def test_iterators(tf):
    """next, get_next, their ends; two iterators do not disturb each other."""
    dataset = tf.data.Dataset.range(3)
    one, other = iter(dataset), iter(dataset)
    found = [next(one), one.get_next(), next(other), next(one)]
    ends = error_of(one.get_next), error_of(lambda: next(one)), error_of(one.get_next)
    return found, ends, spec(one.element_spec), next(other)


@parity
def test_as_numpy(tf):
    """NumPy arrays and scalars."""
    arrays = list(tf.data.Dataset.from_tensor_slices(np.arange(4.0).reshape(2, 2)).as_numpy_iterator())
    again = list(tf.data.Dataset.from_tensor_slices({"a": [1, 2]}).as_numpy_iterator())
    return arrays, again, next(tf.data.Dataset.range(2).as_numpy_iterator())


@parity
def test_arrays_are_copied(tf):
    """Writing to the array afterwards changes no element."""
    x = np.zeros(3, "float32")
    dataset = tf.data.Dataset.from_tensor_slices(x)
    x[:] = 1
    return list(dataset), list(dataset.batch(2))


@parity
def test_single_elements_and_options(tf):
    """get_single_element, apply, options."""
    Dataset, options = tf.data.Dataset, tf.data.Options()
    options.deterministic = False
    options.threading.private_threadpool_size = 2
    options.experimental_optimization.apply_default_optimizations = False
    dataset = Dataset.from_tensors(3.0).with_options(options)
    return (
        dataset.get_single_element(),
        error_of(lambda: Dataset.from_tensor_slices([1, 2]).get_single_element()),
        error_of(lambda: Dataset.from_tensor_slices([1, 2]).take(0).get_single_element()),
        values(Dataset.from_tensor_slices([1, 2, 3]).apply(lambda d: d.batch(2))),
        dataset.options().deterministic,
        tf.data.AUTOTUNE,
        tf.data.experimental.AUTOTUNE,
    )


@parity
def test_printing(tf):
    """A dataset's repr has its kind and its spec."""
    x = tf.data.Dataset.from_tensor_slices(([1, 2], [3.0, 4.0]))
    for dataset in (
        x,
        x.batch(2),
        x.map(lambda a, b: b),
        x.shuffle(3),
        x.repeat(),
        x.take(1),
        x.prefetch(1),
    ):
        print(dataset)


# --- the tape --------------------------------------------------------------------------------------------------------


@parity
def test_elements_are_constants_to_a_tape(tf):
    """Iterators are state, and state stops gradients: nothing leads back to what went into a dataset."""
    x, w = tf.constant([1.0, 2.0]), tf.Variable([3.0, 4.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        total = 0.0
        for a in tf.data.Dataset.from_tensor_slices(x * w).batch(1).map(lambda a: a * 3.0):
            total += tf.reduce_sum(a) * w[0]
    return tape.gradient(total, x), tape.gradient(total, w), [v.name for v in tape.watched_variables()]


@parity
def test_an_element_can_be_watched(tf):
    """It is a tensor like another: also one of two passes over the same data."""
    dataset = tf.data.Dataset.from_tensor_slices([[1.0, 2.0]]).cache()
    found = []
    for _ in range(2):
        for a in dataset:
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(a)
                b = next(iter(dataset))
                y = tf.reduce_sum(a * a * b)
            found.append((tape.gradient(y, a), tape.gradient(y, b)))
    return found


@parity
def test_variables_in_a_map_function_get_no_gradient(tf):
    """The function runs beside the tape."""
    w = tf.Variable(2.0)
    dataset = tf.data.Dataset.from_tensor_slices([1.0, 2.0]).map(lambda x: x * w)
    with tf.GradientTape() as tape:
        y = tf.add_n(list(dataset))
    return y, tape.gradient(y, w)


@parity
def test_a_map_function_sees_what_a_variable_holds_now(tf):
    """Variables are read when the element is made."""
    w = tf.Variable(2.0)
    dataset = tf.data.Dataset.from_tensor_slices([1.0, 2.0]).map(lambda x: x * w)
    first = list(dataset)
    w.assign(10.0)
    return first, list(dataset)


@parity
def test_a_tape_in_a_map_function(tf):
    """Gradients may be what a dataset is made of."""

    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x**3
        return tape.gradient(y, x)

    return list(tf.data.Dataset.from_tensor_slices([1.0, 2.0]).map(slope))


@parity(rtol=1e-4)
def test_a_training_loop(tf):
    """Batches of a shuffled dataset, prefetched, through a compiled step: a line is found."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 3)).astype("float32")
    y = x @ np.array([[1.0], [-2.0], [0.5]], "float32")
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(64).batch(16).prefetch(tf.data.AUTOTUNE)
    w = tf.Variable(tf.zeros([3, 1]))

    @tf.function
    def step(a, b):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((a @ w - b) ** 2)
        w.assign_sub(0.2 * tape.gradient(loss, w))

    for _ in range(40):
        for a, b in dataset:
            step(a, b)
    return tf.round(w * 100.0) / 100.0


@parity
def test_data_made_by_tensors_that_carry_gradient(tf):
    """The guide's rule: a computation that goes through a dataset's iterator loses its gradient, without it has one."""
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        squared = x**2
        through = next(iter(tf.data.Dataset.from_tensors(squared)))
        lost, kept = tf.reduce_sum(through), tf.reduce_sum(squared)
    return tape.gradient(lost, x), tape.gradient(kept, x), tape.gradient(lost, through)


@parity
def test_a_dataset_inside_a_function(tf):
    """Each call makes passes of its own, and gradients go through them."""
    dataset = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0])

    @tf.function
    def two(x):
        iterator = iter(dataset)
        return next(iterator) * x + next(iterator)

    @tf.function
    def reduced(x):
        return dataset.reduce(x, lambda product, y: product * y)

    @tf.function(autograph=False)
    def first(x):
        return next(iter(dataset.map(lambda y: y * 2.0).skip(1))) + x

    @tf.function
    def made(x):
        elements = tf.data.Dataset.from_tensor_slices(x)
        total = tf.constant(0.0)
        for y in elements:
            total += y * y
        return total, next(iter(elements.batch(2)))

    @tf.function
    def until(endless, limit):
        total = tf.constant(0.0)
        for y in endless:
            total += y
            if total > limit:
                break
        return total

    @tf.function
    def stopped():
        iterator = iter(dataset.take(1))
        return next(iterator) + next(iterator)

    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = two(x)
    return (
        (y, tape.gradient(y, x), two(tf.constant(3.0)), two(tf.constant(4.0))),
        reduced(tf.constant(2.0)),
        first(tf.constant(1.0)),
        made(tf.constant([1.0, 2.0, 3.0])),
        error_of(stopped),
        (until(dataset.repeat(), tf.constant(10.0)), until(dataset.repeat(), tf.constant(2.5))),
        tf.function(lambda: tf.data.Dataset.range(4).reduce(np.int64(0), lambda s, x: s + x))(),
    )


@parity(differs="every pass draws other numbers, so that augmented data differ from epoch to epoch")
def test_random_numbers_in_a_map_function(tf):
    """TensorFlow's start again in each pass, once a seed is set."""
    tf.random.set_seed(1)
    dataset = tf.data.Dataset.range(3).map(lambda x: tf.random.uniform([]))
    return values(dataset) == values(dataset)


@parity
def test_random_numbers_in_a_map_function_follow_the_seed(tf):
    """They differ from element to element, and come again after set_seed."""

    def drawn():
        tf.random.set_seed(1)
        return values(tf.data.Dataset.range(5).map(lambda x: tf.random.uniform([])).prefetch(2))

    one, other = drawn(), drawn()
    return one == other, len(set(one))


def files(tf, folder, count=4):
    """Images in files of a folder, and their names."""
    for i in range(count):
        image = tf.cast(tf.fill([2, 3, 1], 10 * i), tf.uint8)
        tf.io.write_file(f"{folder}/{i}.png", tf.io.encode_png(image))
    return [f"{folder}/{i}.png" for i in range(count)]


def loaded(tf, name):
    return tf.cast(tf.io.decode_png(tf.io.read_file(name), channels=1), tf.float32) / 255.0


@parity
def test_names_of_files(tf):
    """In order, as text; read by a map function, beside labels, shuffled, batched."""
    with tempfile.TemporaryDirectory() as folder:
        names = files(tf, folder)
        listed = tf.data.Dataset.list_files(f"{folder}/*.png", shuffle=False)
        several = tf.data.Dataset.list_files([f"{folder}/3.*", f"{folder}/[12].png"], shuffle=False)
        mixed = tf.data.Dataset.list_files(f"{folder}/*.png", seed=1)
        pairs = tf.data.Dataset.from_tensor_slices((names, [0.0, 10.0, 20.0, 30.0])).shuffle(4)
        differences = pairs.map(lambda name, label: loaded(tf, name)[0, 0, 0] * 255.0 - label)
        return (
            [name.numpy() == names[i].encode() for i, name in enumerate(listed)],
            [name.numpy()[-5:] for name in several],
            sorted(name.numpy()[-5:] for name in mixed),
            list(listed.map(lambda name: loaded(tf, name)).batch(2)),
            list(differences.batch(4)),
            [label for _, label in tf.data.Dataset.zip((listed, tf.data.Dataset.range(3)))],
            listed.map(lambda name: loaded(tf, name)).element_spec.dtype,
            len(listed),
        )


@parity
def test_files_that_are_not_there(tf):
    return error_of(lambda: tf.data.Dataset.list_files("/no/such/folder/*.png"))


@parity
def test_datasets_of_texts_put_together(tf):
    """One after the other, at random; a text beside a tensor as one element."""
    one, two = (tf.data.Dataset.from_tensor_slices(texts) for texts in (["a", "b"], ["c", "d"]))
    return (
        [x.numpy() for x in one.concatenate(two)],
        sorted(x.numpy() for x in tf.data.Dataset.sample_from_datasets([one, two], seed=1)),
        [(x, text.numpy()) for x, text in tf.data.Dataset.from_tensors(([1, 2], "a"))],
        [x.numpy() for x in tf.data.Dataset.from_tensors("a").repeat(2)],
        one.element_spec.dtype == tf.string,
        one.element_spec.shape,
        error_of(lambda: one.concatenate(tf.data.Dataset.range(2))),
        error_of(lambda: one.unbatch()),
    )


@parity
def test_batches_of_texts(tf):
    names = tf.data.Dataset.from_tensor_slices((["a", "bc", "d"], [1, 2, 3]))
    return (
        [(x.numpy().tolist(), y) for x, y in names.batch(2)],
        [x.numpy().tolist() for x, _ in names.padded_batch(2)],
        [[x.numpy() for x in window] for window in names.map(lambda x, y: x).window(2)],
        [x.tolist() for x, _ in names.batch(2).as_numpy_iterator()],
        names.batch(2, drop_remainder=True).element_spec[0].shape,
        names.batch(2).element_spec[0].dtype == tf.string,
    )


# --- errors, and what a function does ---------------------------------------------------------------------------------


def read_through(dataset):
    """The elements, with the names of errors in their places: an iterator goes on after one."""
    iterator, found = iter(dataset), []
    while len(found) < 20:
        try:
            found.append(next(iterator))
        except StopIteration:
            return found
        except Exception as error:
            found.append(error_of(_throw, error))
    return found


def _throw(error):
    raise error


@parity
def test_an_iterator_goes_on_after_an_error(tf):
    """Nothing is lost, and what stands side by side stays so."""
    Dataset = tf.data.Dataset
    numbers = np.array([1, np.nan, 2, np.nan, 3], "float32")
    checked = Dataset.from_tensor_slices(numbers).map(lambda x: tf.debugging.check_numerics(x, "no number"))
    singles = [
        checked,
        checked.enumerate(),
        checked.cache(),
        checked.prefetch(2),
        checked.skip(1),
        checked.shard(2, 0),
        checked.repeat(2),
        checked.take(3),
        checked.scan(0.0, lambda total, x: (total + x, total + x)),
        Dataset.zip(checked, Dataset.range(9)),
        Dataset.zip((Dataset.range(9), checked)),
        checked.concatenate(Dataset.from_tensors(7.0)),
        checked.take_while(lambda x: x < 9),
        checked.batch(2).unbatch(),
        checked.flat_map(Dataset.from_tensors),
        checked.interleave(Dataset.from_tensors, 2, 1),
        checked.window(2).flat_map(lambda window: window.batch(2)),
        checked.map(lambda x: tf.reshape(x, [1])).padded_batch(2),
    ]
    cleared = iter(checked.interleave(Dataset.from_tensors, 2, 1))
    first = next(cleared)
    with unittest.TestCase().assertRaises(
        tf.errors.InvalidArgumentError
    ):  # which clears the frames of the error's traceback
        next(cleared)
    shuffled = [x for x in read_through(checked.shuffle(2)) if hasattr(x, "numpy")]
    return [read_through(x) for x in singles], sorted(float(x) for x in shuffled), first, next(cleared)


@parity
def test_a_generator_goes_on_after_what_does_not_fit(tf):
    def numbers():
        yield 1
        yield [1, 2]
        yield 3

    def pairs():
        yield 1, 2
        yield 5
        yield 6, 7, 8
        yield 9, 10

    Dataset = tf.data.Dataset
    return (
        read_through(Dataset.from_generator(numbers, output_signature=tf.TensorSpec([], tf.int32))),
        read_through(Dataset.from_generator(pairs, output_types=(tf.int32, tf.int32))),
    )


@parity
def test_a_function_that_raises_stop_iteration(tf):
    """It does not end the dataset."""

    def stop(x):
        raise StopIteration

    Dataset = tf.data.Dataset

    def call(x):
        return tf.numpy_function(stop, [x], tf.float32)

    return (
        read_through(Dataset.range(2).map(call)),
        read_through(Dataset.range(2).scan(0.0, lambda state, x: (state, call(x)))),
    )


@parity
def test_mixtures_of_what_does_not_agree(tf):
    one, other = (tf.data.Dataset.from_tensors(x) for x in (1, 2.0))
    return error_of(lambda: tf.data.Dataset.sample_from_datasets([one, other]))


@parity
def test_passes_over_a_mixture_at_random(tf):
    """They are equal unless another is asked for, also where `repeat` makes them."""
    parts, found = [tf.data.Dataset.range(30), tf.data.Dataset.range(30, 60)], []
    for chosen in (None, False, True):
        mixed = tf.data.Dataset.sample_from_datasets(parts, [0.5, 0.5], 3, rerandomize_each_iteration=chosen)
        first, second, twice = ([int(x) for x in each] for each in (mixed, mixed, mixed.repeat(2)))
        found.append((first == second, twice[:60] == twice[60:]))
    return found


@parity
def test_cardinality_of_mixtures(tf):
    Dataset = tf.data.Dataset
    endless, short, unknown = Dataset.range(2).repeat(), Dataset.range(2), Dataset.range(2).filter(lambda x: x >= 0)
    found = []
    for parts in ([endless, endless], [endless, short], [short, short], [endless, unknown], [short, unknown]):
        for stop in (True, False):
            sampled = Dataset.sample_from_datasets(parts, stop_on_empty_dataset=stop)
            found.append(int(sampled.cardinality()))
    return found


@parity
def test_repeat_of_passes_without_elements(tf):
    """A pass may be empty where their number is known."""

    def sized(sizes):
        coming = iter(sizes)
        return tf.data.Dataset.from_generator(
            lambda: iter(range(next(coming))), output_signature=tf.TensorSpec([], tf.int32)
        )

    return values(sized([0, 0, 2, 0, 1]).repeat(5)), values(sized([1, 0, 2]).repeat())


@parity
def test_scan_keeps_its_state_s_dtype(tf):
    Dataset = tf.data.Dataset
    functions = [
        (tf.constant(1), lambda state, x: (tf.constant(2.0), state)),
        (0, lambda state, x: (tf.cast(x, tf.float32), state)),
        (0.5, lambda state, x: (1, state)),
        (0, lambda state, x: state),
        (0, lambda state, x: (state, state, state)),
        ([0, 0], lambda state, x: state),
    ]
    grown = Dataset.range(3).scan(tf.zeros([1]), lambda state, x: (tf.concat([state, state], 0), state))
    return [error_of(lambda a=a, f=f: list(Dataset.range(3).scan(a, f))) for a, f in functions], list(grown)


@parity
def test_padding(tf):
    """-1 is None in a padded shape; what is filled up with is of the elements' dtype."""
    whole = tf.data.Dataset.from_tensor_slices([1, 2, 3]).map(lambda n: tf.fill([n], n))
    fractions = whole.map(lambda x: tf.cast(x, tf.float32))
    shapes = [[-1], np.array([-1]), tf.constant([-1], tf.int64), [None], tf.TensorShape([None]), [4], (4,)]
    wrong = [0.5, True, [1, 2]]
    return [
        *[values(whole.padded_batch(3, shape)) for shape in shapes],
        *[error_of(lambda x=x: whole.padded_batch(3, [4], x)) for x in wrong],
        *[error_of(lambda x=x: fractions.padded_batch(3, [4], x)) for x in (7, -1)],
        values(whole.padded_batch(3, [4], 7)),
        values(fractions.padded_batch(3, [4], 0.25)),
        error_of(lambda: whole.padded_batch(3, [4, 4])),
        error_of(lambda: tf.data.Dataset.from_generator(lambda: iter([1]), output_types=tf.int32).padded_batch(2)),
    ]


@parity
def test_cache_of_a_known_number_of_elements(tf):
    """It is complete with the last one, though the end has not been reached."""
    calls = []

    def counted(x):
        calls.append(int(x))
        return x

    def passes(read):
        calls.clear()
        dataset = tf.data.Dataset.range(4).map(lambda x: tf.numpy_function(counted, [x], x.dtype)).cache()
        read(dataset)
        list(dataset)
        return len(calls)

    def some(dataset):
        iterator = iter(dataset)
        return [next(iterator) for _ in range(4)]

    return passes(some), passes(lambda dataset: list(dataset.take(4))), passes(list)


@parity
def test_what_cannot_be_unbatched(tf):
    Dataset = tf.data.Dataset
    return (
        error_of(lambda: Dataset.from_tensors((np.arange(2), np.arange(3))).unbatch()),
        error_of(lambda: Dataset.range(3).unbatch()),
        error_of(lambda: Dataset.range(0, 3, 0)),
        values(Dataset.range(3).take(10**12)),
    )


@parity
def test_a_pass_in_a_function_has_its_effects_once(tf):
    """The call that traces the function does not read the dataset twice."""
    pytest.importorskip("malt")
    count = tf.Variable(0)

    def counted(x):
        count.assign_add(1)
        return x

    @tf.function
    def total():
        found = tf.constant(0, tf.int32)
        for x in tf.data.Dataset.range(10).map(counted):
            found += tf.cast(x, tf.int32)
        return found

    first = total(), int(count)
    second = total(), int(count)
    return first, second
