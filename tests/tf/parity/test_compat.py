"""What of tf.compat eager programs still call."""

import functools

import numpy as np
import pytest
from harness import error_of, parity

import tapejax


@parity
def test_switches_that_are_on_already(tf):
    v1 = tf.compat.v1
    return v1.enable_eager_execution(), v1.enable_v2_behavior(), v1.executing_eagerly()


@parity
def test_the_global_step(tf):
    step = tf.compat.v1.train.get_or_create_global_step()
    before = step.numpy()
    step.assign_add(1)
    same = step is tf.compat.v1.train.get_or_create_global_step() is tf.compat.v1.train.get_global_step()
    return same, step.trainable, step.name, int(step.numpy() - before)


@parity
def test_levels_of_logging(tf):
    logging = tf.compat.v1.logging
    before = logging.get_verbosity()
    try:
        logging.set_verbosity(logging.ERROR)
        return logging.DEBUG, logging.INFO, logging.WARN, logging.ERROR, logging.FATAL, logging.get_verbosity()
    finally:
        logging.set_verbosity(before)


@parity
def test_text_and_bytes(tf):
    c = tf.compat
    return c.as_bytes("é"), c.as_bytes(b"a"), c.as_str(b"a"), c.as_text("b"), c.as_str_any(3), c.path_to_str("a/b")


@parity
def test_what_is_no_text(tf):
    return error_of(lambda: tf.compat.as_text(3))


@parity
def test_version_2_is_all_there_is(tf):
    v2 = tf.compat.v2
    return v2.reduce_sum([1.0, 2.0]), v2.math.sin(0.0), tf.compat.v1.set_random_seed(1)


@pytest.mark.parametrize("name", ["disable_eager_execution", "disable_v2_behavior"])
def test_what_cannot_be_switched_off(name):
    with pytest.raises(NotImplementedError, match="TensorFlow 2's behaviour only"):
        getattr(tapejax.compat.v1, name)()


@parity
def test_names_of_both_versions(tf):
    v1 = tf.compat.v1
    x = v1.Variable(3.0)
    with v1.GradientTape() as tape:
        y = v1.reduce_sum(v1.square(x) * v1.constant([1.0, 2.0]), axis=0)
    return tape.gradient(y, x), v1.zeros_like(y), v1.IndexedSlices is tf.IndexedSlices, v1.float32 is tf.float32


@parity
def test_name_scope_by_default(tf):
    """Libraries name a scope by an argument of the caller's, or by default."""
    found = []
    for arguments in (("a",), (None, "d", [1.0]), ("n", "d"), (None,), ("", "d"), ("a/",)):
        with tf.compat.v1.name_scope("outer"), tf.compat.v1.name_scope(*arguments) as scope:
            found.append((scope, tf.Variable(1.0, name="w").name))
    return found


@parity
def test_where_chooses_rows(tf):
    where, x, y = tf.compat.v1.where, tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([[5.0, 6.0], [7.0, 8.0]])
    with tf.GradientTape() as tape:
        tape.watch((x, y))
        chosen = where([True, False], x, y) ** 2
    found = [where([[True, False], [False, True]], x, y), where(True, x, y), where([True, False])]
    found += [where(np.array([False, True]), tf.ones((2, 3, 2)), tf.zeros((2, 3, 2)))]
    refused = [([[True, False]], x, y), ([[True, False]] * 2, 1.0, 2.0), ([True], x, y), ([True, False], x[0], y)]
    refused += [([True], x, None)]
    return chosen, tape.gradient(chosen, (x, y)), found, [error_of(lambda a=a: where(*a)) for a in refused]


@parity
def test_assertions_of_version_1(tf):
    """What they were to print came before the message."""
    x, passed = tf.constant([1.0, 2.0]), []
    for where in (tf.compat.v1, tf.compat.v1.debugging):
        calls = (where.assert_equal, x, x), (where.assert_less, x, x + 1.0), (where.assert_rank, x, 1)
        calls += (where.assert_positive, x), (where.assert_near, x, x, 0.1, 0.1), (where.assert_none_equal, x, x + 1.0)
        for check, *arguments in calls:
            passed.append(check(*arguments, [x], 2, "said"))
            passed.append(check(*arguments, data=[x], message="said"))
            passed.append(error_of(lambda check=check, arguments=arguments: check(-x, *arguments[1:], [x], 2, "said")))
    return passed, tf.compat.v1.debugging.assert_integer(tf.constant(1))


@parity
def test_small_names_of_version_1(tf):
    v1, sparse = tf.compat.v1, tf.SparseTensor([[0, 1]], [2.0], [1, 2])
    both = v1.convert_to_tensor_or_sparse_tensor
    return (
        [v1.floor_div(tf.constant([7, -7]), 2), both([1, 2]), both([1, 2], tf.float32), both(sparse) is sparse],
        error_of(lambda: both(sparse, tf.int32)),
        [tf.compat.dimension_value(size) for size in (3, None)],
    )


@parity
def test_settings_of_a_session(tf):
    """Programs set how much of a GPU is used, and go on eagerly."""
    v1 = tf.compat.v1
    config = v1.ConfigProto(allow_soft_placement=True, gpu_options=v1.GPUOptions(allow_growth=True))
    config.gpu_options.per_process_gpu_memory_fraction = 0.5
    session = v1.InteractiveSession(config=config)
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * x
    session.close()
    return tf.executing_eagerly(), tape.gradient(y, x), config.gpu_options.allow_growth, config.allow_soft_placement


def test_a_session_that_should_run():
    with tapejax.compat.v1.Session() as session, pytest.raises(NotImplementedError, match="tf.function compiles it"):
        session.run([])


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("compat.v1.count_nonzero", "the same name without compat.v1"),
        ("compat.v1.train.AdamOptimizer", "tf.keras.optimizers"),
        ("compat.v1.layers", "tf.keras.layers"),
        ("compat.v1.estimator", "a Keras model"),
    ],
)
def test_other_names_of_version_1_say_what_to_use(name, hint):
    with pytest.raises(AttributeError, match=f"use {hint}"):
        functools.reduce(getattr, name.split("."), tapejax)
