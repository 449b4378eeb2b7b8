"""`tape.check_numerics` inside loops, branches and functions: the round, counted from 1, the operation and the line in there."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import tapejax as tf


def root(x):
    return jnp.sqrt(x)  # here


def leaves_the_domain(c):
    return c - 1.0 + 0.0 * root(c)


def has_no_slope(c):
    return c - 1.0 + 0.0 * root(jnp.maximum(c, 0.0))


def scan(step):
    return lambda x: lax.scan(lambda c, _: (step(c), None), x, length=8)[0]


def backward_scan(step):
    return lambda x: lax.scan(lambda c, t: (step(c) * t, t * c), x, jnp.ones(8), reverse=True)[0]


def fori_loop(step):
    return lambda x: lax.fori_loop(0, 8, lambda _, c: step(c), x)


def while_loop(step):
    return lambda x: lax.while_loop(lambda state: state[0] < 8, lambda state: (state[0] + 1, step(state[1])), (0, x))[1]


def counted_loop(step):
    return lambda x: tf.while_loop(lambda i, c: i < 8, lambda i, c: (i + 1, step(c)), (0, x))[1]


def uncounted_loop(step):
    return lambda x: tf.while_loop(lambda i, c: c > -4.5, lambda i, c: (i + 1, step(c)), (0, x))[1]


LOOPS = [scan, backward_scan, fori_loop]
AROUND = {
    "nothing": lambda f: f,
    "jit": jax.jit,
    "cond": lambda f: lambda x: lax.cond(x > 0, f, lambda x: x, x),
    "checkpoint": jax.checkpoint,
    "function": tf.function,
    "several": lambda f: tf.function(jax.jit(jax.checkpoint(f))),
}


def refused(function, x):
    """The error for ``function(x)``, of numbers."""
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = function(x)
    with pytest.raises(tf.errors.NonFiniteError) as caught:
        tape.check_numerics(y, x)
    assert any(caught.value.entry is entry for entry in tape)
    return caught.value


def assert_is_the_root(error, direction, where):
    assert error.direction == direction and error.line.text == "return jnp.sqrt(x)  # here"
    assert f"{where}, sqrt (test_rounds.py:{error.line.number}: `return jnp.sqrt(x)  # here`)" in str(error)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("loop", [*LOOPS, while_loop])
def test_a_value(loop, around):
    error = refused(AROUND[around](loop(leaves_the_domain)), jnp.float32(3.0))
    assert_is_the_root(error, "forward", "round 5 of 8")
    assert "which is NaN; its inputs are finite" in str(error) and " = -1." in str(error)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("loop", LOOPS)
def test_a_cotangent(loop, around):
    """The pass begins with the last round: at 3 - 5 the root's derivative is infinite, times zero."""
    error = refused(AROUND[around](loop(has_no_slope)), jnp.float32(2.0))
    assert_is_the_root(error, "backward", "round 8 of 8")
    assert "what came in was finite" in str(error) and "where(ok" in error.remedy


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("loop", [counted_loop, uncounted_loop])
def test_loops_of_a_function(loop, x64):
    with jax.enable_x64(x64):
        error = refused(tf.function(loop(leaves_the_domain)), tf.Variable(3.0))
        assert_is_the_root(error, "forward", "round 5 of 8" if loop is counted_loop else "round 5 of 5")
        error = refused(tf.function(loop(has_no_slope)), tf.Variable(3.0))
        assert_is_the_root(error, "backward", "round 8 of 8")


def test_the_first_round_with_a_cotangent_in_the_order_of_the_pass():
    def function(x):
        ok = lambda c: jnp.where(c > -0.5, c, 1.0)  # noqa: E731
        return jnp.sum(lax.scan(lambda c, t: (c - 1.0, t * root(ok(c))), x, jnp.arange(8.0))[1])

    assert_is_the_root(refused(function, jnp.float32(3.0)), "backward", "round 4 of 8")  # where c is 0


def test_a_loop_in_a_loop():
    error = refused(scan(fori_loop(leaves_the_domain)), jnp.float32(18.0))
    assert_is_the_root(error, "forward", "round 4 of 8")
    assert "round 3 of 8, scan (test_rounds.py:" in str(error)
    assert str(error).startswith("forward: operation 0, scan (test_rounds.py:")


def test_what_it_closes_over_and_its_rows():
    weights, rows = jnp.array([1.0, 2.0]), jnp.array([[4.0, 1.0], [1.0, 1.0], [-1.0, 9.0]])

    def function(x):
        return jnp.sum(lax.scan(lambda c, row: (c + weights * row, root(weights * row * x)), x, rows)[1])

    error = refused(function, jnp.ones(2))
    assert_is_the_root(error, "forward", "round 3 of 3")
    assert "NaN in 1 of 2 elements, the first at [0]" in str(error)


def test_a_loop_of_keys_and_of_integers():
    def body(state, _):
        key, count, c = state
        key, drawn = jax.random.split(key)
        return (key, count + 1, root(2.0 - count) + 0.0 * jax.random.normal(drawn) * c), None

    def function(x):
        return lax.scan(body, (jax.random.key(0), 0, x), length=6)[0][2]

    assert_is_the_root(refused(function, jnp.float32(1.0)), "forward", "round 4 of 6")


def test_no_round_but_a_function():
    @jax.jit
    def layer(x):
        return root(x - 1.0) * 2.0

    error = refused(layer, jnp.float32(0.0))
    assert error.line.text == "return jnp.sqrt(x)  # here" and ": sqrt (" in str(error) and "round " not in str(error)


def test_each_of_two_loops_that_do_the_same_has_its_own_line():
    def other(c):
        rooted = jnp.sqrt(c)
        return c - 1.0 + 0.0 * rooted

    for decorate in (lambda f: f, tf.function):
        assert refused(decorate(scan(leaves_the_domain)), jnp.float32(3.0)).line.text == "return jnp.sqrt(x)  # here"
        assert refused(decorate(scan(other)), jnp.float32(3.0)).line.text == "rooted = jnp.sqrt(c)"


def test_a_derivative_of_a_rule_is_not_that_of_what_is_inside():
    @jax.custom_vjp
    def own(x):
        return scan(lambda c: root(c))(x)

    own.defvjp(lambda x: (own(x), x), lambda x, ct: (ct / (x - 2.0),))
    error = refused(own, jnp.float32(2.0))
    assert error.direction == "backward" and "own" in str(error) and "round " not in str(error)
    assert_is_the_root(refused(own, jnp.float32(-2.0)), "forward", "round 1 of 8")


def test_a_program_of_a_library_is_one_operation():
    error = refused(lambda x: jnp.linalg.norm(x), jnp.zeros(2))
    assert "norm (" in str(error) and error.line.text.startswith("error = refused(lambda x: jnp.linalg.norm")


def test_what_prints_does_not_print_again(capfd):
    def step(c):
        jax.debug.print("round")
        return leaves_the_domain(c)

    with tf.GradientTape() as tape:
        tape.watch(x := jnp.float32(3.0))
        y = scan(step)(x)
    jax.effects_barrier()
    assert capfd.readouterr().out.count("round") == 8
    with pytest.raises(tf.errors.NonFiniteError, match="round 5 of 8"):
        tape.check_numerics(y, x)
    jax.effects_barrier()
    assert capfd.readouterr().out == ""


def test_no_other_tape_records_the_search():
    x = jnp.complex64(2.0)
    with tf.GradientTape() as outer:
        for step in (leaves_the_domain, lambda c: c - 1.0 + 0.0 * root(c * c)):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = jnp.real(scan(step)(x))
            before = len(outer)
            with pytest.raises(tf.errors.NonFiniteError, match="round "):
                tape.check_numerics(y, x)
            assert len(outer) == before


def test_a_long_loop_is_not_run_round_by_round():
    def step(c, _):
        return c - 1.0 + 0.0 * root(c), None

    error = refused(lambda x: lax.scan(step, x, length=100_000)[0], jnp.float32(90_000.0))
    assert_is_the_root(error, "forward", "round 90002 of 100000")
