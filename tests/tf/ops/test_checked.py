"""`tf.debugging.enable_check_numerics`: what the error says, JAX's own operations, and what is left when it is over."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf
from tapejax.jaxprs import fence
from tapejax.tape import active, runner


@pytest.fixture(params=[False, True], ids=["x32", "x64"])
def checked(request):
    before = runner.current
    with jax.enable_x64(request.param):
        tf.debugging.enable_check_numerics()
        try:
            yield
        finally:
            tf.debugging.disable_check_numerics()
    assert runner.current is before


def error_of(f, *args):
    before = list(active.active_recordings()), fence.current_trace()
    with pytest.raises(tf.errors.InvalidArgumentError) as info:
        f(*args)
    assert (list(active.active_recordings()), fence.current_trace()) == before
    return str(info.value)


def slope(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


def test_the_error_names_what_a_reader_needs(checked):
    @tf.function
    def loss(x):
        logarithm = tf.math.log(x)
        return tf.reduce_sum(logarithm)

    for _ in range(3):
        lines = error_of(loss, tf.constant([-1.0, 0.0, 0.0, 1.0])).splitlines()
        assert lines[0] == 'Detected Infinity or NaN in output 0 of op "log" (# of outputs: 1)'
        assert {"  dtype: float32", "  shape: (4,)", "  # of -Inf elements: 2", "  # of NaN elements: 1"} < {*lines}
        assert "    0: float32 (4,) [-1.,  0.,  0.,  1.]" in lines
        assert "in loss: logarithm = tf.math.log(x)" in lines[-1] and __file__[-20:] in lines[-1]
    lines = error_of(lambda: tf.constant([3e38, 1.0], tf.bfloat16) * 2.0).splitlines()
    assert lines[1] == "  dtype: bfloat16" and "  # of +Inf elements: 1" in lines


def test_the_limits_of_the_stack():
    tf.debugging.enable_check_numerics(stack_height_limit=2, path_length_limit=10)
    tf.debugging.enable_check_numerics()  # as in TensorFlow it stays
    try:
        text = error_of(lambda: tf.math.log(tf.constant(-1.0)))
    finally:
        tf.debugging.disable_check_numerics()
    _, _, stack = text.partition("innermost line last:\n")
    assert [line.split(", in ")[0].rpartition(":")[0] for line in stack.splitlines()] == [
        "    ..." + __file__[-10:]
    ] * 2


def test_a_backward_pass_names_the_operation(checked):
    def f(x):
        return tf.reduce_sum(jnp.where(x > 0.0, jnp.sqrt(x), 0.0))

    for gradient in (slope, lambda f, x: slope(tf.function(f), x), tf.function(lambda f, x: slope(f, x))):
        for _ in range(3):
            text = error_of(gradient, f, tf.Variable([0.5, 0.0]))
            assert text.startswith('Detected Infinity or NaN in output 0 of the derivative of op "sqrt"')
            assert "# of NaN elements: 1" in text and "tape.check_numerics(target, sources)" in text


@pytest.mark.parametrize("jitted", [False, True])
def test_jaxs_own_operations_count_where_they_are_recorded(checked, jitted):
    def f(x):
        return jnp.log(x) + 1.0

    run = jax.jit(f) if jitted else f
    bad = jnp.float32(-1.0)
    assert ('op "f"' if jitted else 'op "log"') in error_of(slope, run, bad)
    assert 'op "f"' in error_of(tf.function(run), bad) if jitted else error_of(tf.function(run), bad)
    assert slope(run, jnp.float32(2.0)) == 0.5
    assert np.isnan(run(bad))  # no tape sees it
    assert np.isnan(jax.jit(lambda x: tf.math.log(x)._array)(bad))  # nor what JAX traces


def test_inside_a_jitted_function_nothing_is_seen(checked):
    """What is documented: it is one operation, and its result is finite."""
    f = jax.jit(lambda x: jnp.where(jnp.isnan(jnp.log(x)), 0.0, x))
    with tf.GradientTape():
        assert f(jnp.float32(-1.0)) == 0.0


def test_a_tape_goes_on_after_an_error(checked):
    x = tf.constant([-1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.math.log(x)
        z = y * x
    np.testing.assert_array_equal(tape.gradient(z, x), [3.0, 12.0])


def test_a_persistent_tape_shows_what_it_has(checked):
    """The NaN that it looks for is no error there."""
    x = jnp.array([0.0, 4.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = jnp.sqrt(x)
    for _ in range(2):
        error_of(tape.gradient, y, x)
    with pytest.raises(tf.errors.NonFiniteError, match=r"y = jnp\.sqrt\(x\)"):
        tape.check_numerics(y, x)
    assert len(tape.steps(y, x)) == 1 and "inf" in [str(step) for step in tape.steps(y, x)][0]
    assert "inf" in str(tape.explain(y, x)) and tape.play(y, x).data
    error_of(tape.gradient, y, x)


def test_inside_a_loop_it_looks_too(checked):
    """`tape.check_numerics` runs the rounds of a loop once more, on a tape of its own."""
    x = jnp.float32(0.5)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = jax.lax.scan(lambda y, _: (jnp.where(y > 0.0, jnp.sqrt(jnp.abs(y) - 0.4), 0.0), None), x, None, length=3)[0]
    with pytest.raises(tf.errors.NonFiniteError, match="round"):
        tape.check_numerics(y, x)


def test_a_loop_of_equal_steps(checked):
    """The step is known by then, and its blocks run ahead of their operations; the numbers are those without the check."""

    def losses(steps, at=None):
        w = tf.Variable([0.5, 0.25])
        for k in range(steps):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.math.log(w * (-1.0 if k == at else 1.0)) ** 2)
            w.assign_sub(0.01 * tape.gradient(loss, w))
            yield loss.numpy()

    found = [*losses(40)]
    assert 'op "log"' in error_of(list, losses(40, 35))
    tf.debugging.disable_check_numerics()
    np.testing.assert_array_equal(found, [*losses(40)])
    assert np.isnan([*losses(40, 35)][-1])


def test_a_function_runs_as_python_and_its_program_after_it():
    seen = []

    @tf.function
    def f(x):
        seen.append(x)
        return x + 1.0

    x = tf.constant(1.0)
    f(x), f(x)
    assert len(seen) == 1
    tf.debugging.enable_check_numerics()
    try:
        assert f(x) == 2.0 and f(x) == 2.0 and len(seen) == 3
    finally:
        tf.debugging.disable_check_numerics()
    assert f(x) == 2.0 and len(seen) == 3 and f.experimental_get_tracing_count() == 1


def test_all_threads_are_checked(checked):
    errors = []

    def run():
        try:
            tf.math.log(tf.constant(-1.0))
        except tf.errors.InvalidArgumentError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert len(errors) == 1


def test_random_keys_and_donated_inputs_are_shown_by_their_type(checked):
    log = jax.jit(jnp.log, donate_argnums=0)
    with tf.GradientTape():
        assert "0: float32[3]" in error_of(log, jnp.zeros(3) - 1.0)
    inverse = jax.jit(lambda key: 1.0 / (jax.random.uniform(key) * 0.0))
    with tf.GradientTape():
        assert "0: key<fry>[]" in error_of(inverse, jax.random.key(0))
