"""What TensorFlow's own tests of functions, control flow, variables and training found, run under tapejax."""

import numpy as np
from harness import error_of, parity

# ---- functions ------------------------------------------------------------------------------------------------------


@parity
def test_a_concrete_function_takes_each_tensor_by_the_name_of_its_spec(tf):
    spec, named = tf.TensorSpec(None, tf.float32), tf.TensorSpec(None, tf.float32, "rate")
    one, two, three, four = [tf.constant(float(i)) for i in (1, 2, 3, 4)]

    @tf.function
    def product(x):
        return x * 2.0

    @tf.function
    def of_parts(x, **more):
        first, second, third = x
        return first - second * third + more["d"]

    @tf.function
    def of_mapping(x, n):
        return x["a"]["b"] - x["c"] * n

    single = product.get_concrete_function(named)
    parts = of_parts.get_concrete_function((spec, spec, spec), d=spec)
    mapping = of_mapping.get_concrete_function({"a": {"b": named}, "c": tf.TensorSpec([], tf.float32, "c")}, 3)
    return [
        single(rate=three),
        single(x=three),
        error_of(lambda: single(other=three)),
        parts(x=one, x_1=two, x_2=three, d=four),
        parts(one, two, three, four),
        parts(one, two, three, d=four),
        parts((one, two, three), d=four),
        error_of(lambda: parts(one, two, three)),
        mapping(rate=one, c=two),
        mapping(one, two),
        error_of(lambda: mapping(rate=one, c=tf.constant(1))),
    ]


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
