"""The backward pass step by step, and the first number that is none."""

from __future__ import annotations

import inspect
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from plain_jax import a_third
from test_plain_jax import split

import tapejax as tf
from tapejax.execution import schedule
from tapejax.tools.seeing import steps


def line_of(function, text):
    lines, first = inspect.getsourcelines(function)
    return next(first + i for i, line in enumerate(lines) if text in line)


# ---- steps ----------------------------------------------------------------------------------------------------------


@a_third(1)
def test_replays_to_the_gradient(case, monkeypatch):
    monkeypatch.setattr(schedule, "COMPILE_AT_MOST", 0)  # so that the two run the very same compiled pieces
    sources, rebuild = split(case.arguments())
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(sources)
        outputs = case.function(*rebuild(sources))
    found, expected = tape.steps(outputs, sources).gradients, tape.gradient(outputs, sources)
    for x, y in zip(found, expected, strict=True):
        assert (x is None) == (y is None)
        if x is not None:
            np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def test_what_a_step_says():
    w, x = tf.Variable([1.0, 2.0]), tf.constant([3.0, 4.0])
    with tf.GradientTape() as tape:
        h = w * x
        y = tf.reduce_sum(h)
    steps = list(tape.steps(y, w))
    assert [(s.number, s.operation) for s in steps] == [(1, "reduce_sum"), (0, "multiply")]
    (name, cotangent), *_ = steps[0].outgoing
    assert name == "h" and cotangent.tolist() == [1.0, 1.0]
    assert [(n, c.tolist()) for n, c in steps[1].incoming] == [("h", [1.0, 1.0])]
    assert [(n, c.tolist()) for n, c in steps[1].outgoing] == [("w", [3.0, 4.0])]
    assert steps[1].line.number == line_of(test_what_a_step_says, "h = w * x")
    text = str(steps[1])
    assert "∂y/∂w: float32[2] = [3., 4.]" in text and "h = w * x" in text
    assert "<table" in steps[1]._repr_html_()
    assert tape.gradient(y, w).numpy().tolist() == [3.0, 4.0]  # it was not used up


def test_what_comes_in_is_complete():
    """Where a value is used twice, its cotangent is the sum by the time it is passed on."""
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        h = x * 2.0
        y = h * h + h
    last = list(tape.steps(y, x))[-1]
    assert last.incoming[0][0] == "h" and float(last.incoming[0][1]) == 13.0
    assert float(last.outgoing[0][1]) == 26.0


def test_the_whole_walk():
    x, z = tf.Variable(3.0), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = tf.sin(x) * 2.0
    walk = tape.steps(y, {"x": x, "z": z}, output_gradients=tf.constant(10.0))
    assert len(walk) == 2 and str(walk).startswith("Backward pass of y: 2 operations, from ∂y/∂y = 10.")
    assert walk._repr_html_().count("<tr>") == 3
    assert len(list(walk)) == len(list(walk)) == 2  # as often as one likes
    assert walk.gradients["z"] is None
    assert float(walk.gradients["x"]) == pytest.approx(20 * np.cos(3.0))


def test_complex_values():
    x = tf.Variable(1.0 + 2.0j)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x * x
    np.testing.assert_allclose(np.asarray(tape.steps(y, x).gradients), np.asarray(tape.gradient(y, x)), rtol=1e-6)


def test_nobody_records_the_walk():
    x = tf.Variable(3.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            y = x * x
        before = len(outer)
        for step in tape.steps(y, x):
            assert len(outer) == before
            mine = step.outgoing[0][1] + 1.0  # the user's own work between two steps is recorded
        assert len(outer) == before + 1 and mine is not None


def test_errors_are_those_of_gradient():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    with pytest.raises(TypeError, match="sources"):
        tape.steps(y, [1.0])
    tape.gradient(y, x)
    with pytest.raises(RuntimeError, match="persistent=True"):
        tape.steps(y, x)


# ---- check_numerics -------------------------------------------------------------------------------------------------


def test_finite():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.sqrt(x))
    assert tape.check_numerics(y, x) is None
    assert tape.gradient(y, x) is not None


def test_a_value_that_is_nan():
    x = tf.Variable([1.0, -2.0])
    with tf.GradientTape() as tape:
        h = x * 1.0
        bad = tf.math.log(h)
        y = tf.reduce_sum(bad * 2.0)
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        tape.check_numerics(y, x)
    error = caught.value
    assert error.direction == "forward" and error.entry.op.name == "log"
    assert error.line.number == line_of(test_a_value_that_is_nan, "tf.math.log")
    assert "NaN in 1 of 2 elements, the first at [1]" in str(error) and "h = [ 1., -2.]" in str(error)


def test_a_value_that_overflows():
    x = jnp.array(100.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = jnp.exp(x) * 0.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="operation 0, exp .* infinite"):
        tape.check_numerics(y, x)


def test_a_nan_that_came_in():
    x = tf.Variable([np.nan, 1.0])
    with tf.GradientTape() as tape:
        y = x * 2.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="input x came in that way"):
        tape.check_numerics(y, x)


def test_only_a_cotangent():
    """`sqrt` at 0 behind a `where`: every value is finite, and the gradient is NaN."""
    x = jnp.array([0.0, 4.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        root = jnp.sqrt(x)
        y = jnp.where(x > 0, root, 0.0)
    assert np.isnan(tape.gradient(y, x)[0]) and np.isfinite(y).all()
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        tape.check_numerics(y, x)
    error = caught.value
    assert type(error) is tf.errors.NonFiniteError
    assert error.direction == "backward" and error.entry.op.name == "sqrt"
    assert error.line.number == line_of(test_only_a_cotangent, "jnp.sqrt")
    assert "∂y/∂x" in str(error) and "where(ok" in str(error)


NEWEST = (Path(__file__).resolve().parents[3] / "docs" / "newest.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("title", steps._ROW.values())
def test_the_row_of_a_page_is_there(title):
    assert f"\n| {title} | " in NEWEST


def test_where_versions_of_jax_differ():
    fn, x, title = jnp.hypot, (0.0, 0.0), "hypot at the origin"
    if jax.__version_info__ < (0, 11):
        fn, x, title = lambda x: jax.scipy.special.expn(0, x), (1.0,), "expn of order zero"
    with pytest.raises(tf.errors.NonFiniteError) as caught:
        nan_at(lambda x: fn(*x), jnp.array(x, jnp.float32))
    assert f'; versions of JAX differ in this: "{title}" in docs/newest.md. Its derivative' in str(caught.value)


@pytest.mark.skipif(jax.__version_info__ < (0, 11), reason="it is finite there")
def test_versions_differ_in_what_a_derivative_is_of():
    def gradient_of_det(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = jnp.linalg.det(x)
        return tape.gradient(y, x)

    with pytest.raises(tf.errors.NonFiniteError) as caught:
        nan_at(gradient_of_det, jnp.ones([2, 2]))
    assert '"det\'s Hessian at a singular matrix" in docs/newest.md' in caught.value.said


def test_an_operation_that_gives_nan_on_each_version():
    with pytest.raises(tf.errors.NonFiniteError) as caught:
        nan_at(lambda x: jnp.sqrt(x) * 0.0, jnp.zeros(2))
    assert "versions of JAX" not in str(caught.value)


def nan_at(fn, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = fn(x)
    tape.check_numerics(y, x)


def test_the_mended_where():
    x = jnp.array([0.0, 4.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1.0)), 0.0)
    tape.check_numerics(y, x)


def test_what_the_target_does_not_use_is_not_looked_at():
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        _ = tf.math.log(-x)
        y = x * 2.0
    tape.check_numerics(y, x)


def test_a_bad_seed():
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = x * 2.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="cotangent of y, which comes to"):
        tape.check_numerics(y, x, output_gradients=tf.constant(np.inf))


def test_integers_and_tracers_are_left_alone():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.gather(x, tf.argmax(x)) * 2.0
    tape.check_numerics(y, x)

    @jax.jit
    def step(v):
        with tf.GradientTape() as tape:
            tape.watch(v)
            y = jnp.log(v)
        tape.check_numerics(y, v)
        return y

    step(jnp.array(-1.0))


def test_an_infinity_made_backward():
    """The value and what came in are finite, what goes out is not; the infinite cotangent is named before it becomes NaN."""
    x = tf.Variable(0.0)
    with tf.GradientTape() as tape:
        h = jnp.cbrt(x)
        y = h * 3.0
    with pytest.raises(tf.errors.NonFiniteError, match="backward: operation 0, cbrt .*infinite") as caught:
        tape.check_numerics(y, x)
    assert caught.value.line.number == line_of(test_an_infinity_made_backward, "jnp.cbrt")


def test_the_first_of_several():
    x = tf.Variable([-1.0, 4.0])
    with tf.GradientTape(persistent=True) as tape:
        a = tf.math.log(x)
        b = a / 0.0
        y = tf.reduce_sum(b)
    with pytest.raises(tf.errors.NonFiniteError, match="forward: operation 0, log"):
        tape.check_numerics(y, x)


def test_long_walks_are_folded():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = x
        for _ in range(200):
            y = y * 1.0
    walk = tape.steps(y, x)
    text, html = str(walk), walk._repr_html_()
    assert "145 more" in text and text.count(" multiply ") == 55 and "145 more" in html
    assert len(list(walk)) == 200 and "<table" in html


def test_in_a_notebook():
    """A table, with small cotangents as heat maps and large ones by their range."""
    w, v = tf.Variable(np.linspace(-1, 1, 6).reshape(2, 3).astype(np.float32)), tf.Variable(tf.ones([50]))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(w) * tf.reduce_sum(v * v)
    html = tape.steps(y, [w, v])._repr_html_()
    assert html.count("<table") == 2 and "from " in html and "∂y/∂w" in html and "reduce_sum" in html


def test_arrays_without_elements():
    x = tf.Variable(tf.zeros([0, 2, 3]))
    with tf.GradientTape(persistent=True) as tape:
        y = tf.reduce_sum(x * 2.0)
    assert "no elements" in str(tape.steps(y, x))
    assert tape.steps(y, x).gradients.shape == tape.gradient(y, x).shape == (0, 2, 3)
