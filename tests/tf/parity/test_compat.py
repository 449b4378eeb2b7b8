"""What of tf.compat eager programs still call."""

import functools

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
def test_small_names_of_version_1(tf):
    v1 = tf.compat.v1
    return (
        v1.floor_div(tf.constant([7, -7]), 2),
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
        ("compat.v1.where", "tf.where, which broadcasts"),
        ("compat.v1.assert_equal", "the same name without compat.v1"),
        ("compat.v1.debugging", "the same name without compat.v1"),
        ("compat.v1.layers", "tf.keras.layers"),
        ("compat.v1.estimator", "a Keras model"),
    ],
)
def test_other_names_of_version_1_say_what_to_use(name, hint):
    with pytest.raises(AttributeError, match=f"use {hint}"):
        functools.reduce(getattr, name.split("."), tapejax)
