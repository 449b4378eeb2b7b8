"""`tape.summary`: norms known by hand, what vanishes, what is no number, models as sources."""

import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf


def test_numbers_known_by_hand():
    w = jnp.array([3.0, 0.0, -4.0, 0.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(w)
        loss = jnp.sum(w**2) / 2
    (row,) = tape.summary(loss, w)
    assert (row.name, row.type) == ("w", "float32[4]")
    assert row.value == (5.0, -0.25, 0.5, 0, 0) and row.gradient == row.value
    np.testing.assert_allclose(tape.gradient(loss, w), w)


def test_nan_infinities_and_none():
    v, u = tf.Variable([0.0, 1.0], name="v"), tf.Variable(2.0, name="u")
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.math.log(v) * v + tf.math.rsqrt(v))
    rows = list(tape.summary(loss, [v, u]))
    assert rows[0].gradient.nan + rows[0].gradient.infinite == 1 and rows[0].gradient.norm == pytest.approx(0.5)
    assert rows[1].gradient is None and "None" in str(tape.summary(loss, [v, u]))
    assert float(tape.gradient(loss, [v, u])[0][1]) == pytest.approx(0.5)  # the tape is not used up before


def test_gradients_that_vanish_have_shorter_bars():
    weights = [tf.Variable(tf.eye(4) * 0.5, name=f"layer_{i}") for i in range(6)]
    with tf.GradientTape() as tape:
        h = tf.ones([2, 4])
        for w in weights:
            h = tf.sigmoid(h @ w)
        loss = tf.reduce_mean(h)
    shown = tape.summary(loss, weights)
    norms = [row.gradient.norm for row in shown]
    assert norms == sorted(norms) and norms[0] < norms[-1] / 100
    bars = [line.count("█") for line in str(shown).splitlines()[2:]]
    assert bars == sorted(bars) and bars[0] < bars[-1] == 24


def test_a_model_as_sources():
    class Two(tf.Module):
        def __init__(self):
            super().__init__()
            self.a = tf.Variable([1.0, 2.0], name="a")
            self.frozen = tf.Variable([1.0], trainable=False, name="frozen")
            self.b = tf.Variable([[0.0]], name="b")

    model = Two()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model.a) * tf.reduce_sum(model.b)
    rows = list(tape.summary(loss, model))
    assert [row.type for row in rows] == ["float32[2]", "float32[1,1]"]
    assert [row.gradient.zeros for row in rows] == [1.0, 0.0]


def test_complex_numbers_and_no_elements():
    z, empty = tf.constant([3 + 4j, 0]), tf.zeros([0])
    with tf.GradientTape() as tape:
        tape.watch([z, empty])
        loss = tf.reduce_sum(tf.abs(z) ** 2) + tf.reduce_sum(empty)
    rows = list(tape.summary(loss, [z, empty]))
    assert rows[0].value == (5.0, 2.5, 0.5, 0, 0) and rows[1].value == (0.0, 0.0, 0.0, 0, 0)


def test_a_notebook_shows_it():
    w = jnp.array([1.0])
    with tf.GradientTape() as tape:
        tape.watch(w)
        loss = jnp.sum(jnp.log(w - 1))
    shown = tape.summary(loss, w)._repr_html_()
    assert "gradient: norm" in shown and "1 inf" in shown
