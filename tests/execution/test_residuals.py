"""Large calls keep their residuals: the same gradients, and no product is computed twice."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf
from tapejax.execution import residuals
from tapejax.jaxprs import contents

W = jnp.linspace(-1.0, 1.0, 12).reshape(3, 4)
X = jnp.linspace(0.2, 2.0, 6).reshape(2, 3)


@pytest.fixture
def everything_is_large(monkeypatch):
    monkeypatch.setattr(residuals, "WORTH_KEEPING", 1)
    contents._facts.clear()
    yield
    contents._facts.clear()


def network(w, x):
    hidden = jnp.tanh(x @ w)
    return jnp.sum(jax.nn.relu(hidden @ w.T) ** 2), {"hidden": hidden, "positive": jnp.sum(hidden > 0)}


@pytest.mark.parametrize("transform", [jax.jit, tf.function])
def test_gradients_of_a_large_call(transform, everything_is_large):
    f = transform(network)
    expected = jax.grad(lambda w, x: network(w, x)[0] + 3 * jnp.sum(network(w, x)[1]["hidden"]), (0, 1))(W, X)
    for _ in range(2):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch((W, X))
            loss, rest = f(W, X)
            total = loss + 3 * jnp.sum(rest["hidden"])
        call = next(entry for entry in tape if entry.residuals)
        assert len(call.outputs) == 3 and call.residuals.arrays
        for found in (tape.gradient(total, [W, X]), [tape.gradient(total, W), tape.gradient(total, X)]):
            for a, b in zip(found, expected):
                np.testing.assert_allclose(a, b, rtol=1e-5)
        np.testing.assert_allclose(tape.gradient(loss, W), jax.grad(lambda w: network(w, X)[0])(W), rtol=1e-5)
        hidden = jax.jacobian(lambda w: network(w, X)[1]["hidden"])(W)
        np.testing.assert_allclose(tape.jacobian(rest["hidden"], W), hidden, rtol=1e-5)
        assert tape.gradient(rest["positive"], W) is None
        np.testing.assert_allclose(tape.as_function(total, W)(2 * W), sum_of(2 * W), rtol=1e-5)
        assert tape.explain(total, W) and "kept" not in str(tape)


def sum_of(w):
    loss, rest = network(w, X)
    return loss + 3 * jnp.sum(rest["hidden"])


def test_only_what_was_watched_keeps_residuals(everything_is_large):
    f = jax.jit(network)
    with tf.GradientTape() as tape:
        f(W, X)
        tape.watch(W)
        loss, _ = f(W, X)
    first, second = tape
    assert first.residuals is None and second.residuals.op.active_ins == (0,)
    np.testing.assert_allclose(tape.gradient(loss, W), jax.grad(lambda w: network(w, X)[0])(W), rtol=1e-5)


@pytest.mark.parametrize("transform", [jax.jit, tf.function])
def test_second_order(transform, everything_is_large):
    f = transform(lambda w: network(w, X)[0])
    with tf.GradientTape() as outer:
        outer.watch(W)
        with tf.GradientTape() as inner:
            inner.watch(W)
            y = f(W)
        slope = inner.gradient(y, W)
        penalty = jnp.sum(slope**2)
    reference = jax.grad(lambda w: network(w, X)[0])
    np.testing.assert_allclose(slope, reference(W), rtol=1e-5)
    np.testing.assert_allclose(outer.gradient(penalty, W), jax.grad(lambda w: jnp.sum(reference(w) ** 2))(W), rtol=1e-4)


def test_a_function_with_state(everything_is_large):
    w, calls = tf.Variable(W), tf.Variable(0.0, trainable=False)

    @tf.function
    def f(x):
        calls.assign_add(1.0)
        return tf.reduce_sum(tf.tanh(tf.matmul(x, w)))

    for _ in range(3):
        with tf.GradientTape() as tape:
            y = f(X) * 2.0
        np.testing.assert_allclose(tape.gradient(y, w), jax.grad(lambda w: 2 * jnp.sum(jnp.tanh(X @ w)))(W), rtol=1e-5)
    assert calls.numpy() == 3.0


def test_a_rule_that_is_registered_later(everything_is_large):
    def scaled(w):
        return jnp.sum(jnp.tanh(w.T @ w))

    f = jax.jit(scaled)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(W)
        y = f(W)
    plain = tape.gradient(y, W)
    from tapejax.jaxprs import cache
    from tapejax.tape import rules

    rules.register("scaled", lambda inputs, outputs, cotangents: [jnp.ones_like(inputs[0]) * 7])
    try:
        with tf.GradientTape() as other:
            other.watch(W)
            y = f(W)
        np.testing.assert_array_equal(other.gradient(y, W), 7 * np.ones_like(W))
    finally:
        del rules._rules["scaled"]
        cache.clear()
    np.testing.assert_allclose(plain, jax.grad(scaled)(W), rtol=1e-5)


def test_inside_other_transformations_nothing_is_kept(everything_is_large):
    f = jax.jit(lambda w: network(w, X)[0])

    def gradient(w):
        with tf.GradientTape() as tape:
            tape.watch(w)
            y = f(w)
        assert not any(entry.residuals for entry in tape)
        return tape.gradient(y, w)

    expected = jax.grad(lambda w: network(w, X)[0])(W)
    np.testing.assert_allclose(jax.jit(gradient)(W), expected, rtol=1e-5)
    np.testing.assert_allclose(jax.vmap(gradient)(W[None])[0], expected, rtol=1e-5)


def test_products_are_computed_once():
    """The compiled pullback multiplies two matrices for each that the call multiplied, not three."""
    w, x = jnp.ones((256, 256)), jnp.ones((256, 256))
    f = jax.jit(lambda w, x: jnp.sum(jnp.tanh(jnp.tanh(jnp.tanh(x @ w) @ w) @ w)))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(w)
        f(w, x)
    [entry] = tape
    assert len(entry.residuals.arrays) == 3  # the three layers; the weights are inputs
    pull = residuals._pullback(entry.residuals.op, (0,), (0,))
    text = jax.jit(pull.fn).lower(w, x, *entry.residuals.arrays, jnp.ones(())).compile().as_text()
    assert text.count(" dot(") + text.count('custom_call_target="__onednn$matmul') == 5  # none for `x`
    with tf.GradientTape() as small:
        small.watch(w)
        f(w, x[:2])
    assert small[0].residuals is None


def test_a_large_call_without_a_derivative(everything_is_large):
    """It is recorded as ever; who asks for its derivative is told why there is none."""

    @jax.jit
    def f(w):
        return jax.lax.while_loop(lambda y: jnp.sum(y) < 100.0, lambda y: y @ y.T @ y + 1.0, w)

    with tf.GradientTape() as tape:
        tape.watch(W)
        y = f(W)
    np.testing.assert_allclose(y, f(W))
    with pytest.raises(LookupError, match="while"):
        tape.gradient(y, W)


def test_rules_inside_a_large_call(everything_is_large):
    @jax.custom_vjp
    def clipped(x):
        return x

    clipped.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -0.1, 0.1),))

    @tf.custom_gradient
    def tripled(x):
        return x * 1.0, lambda dy: dy * 3.0

    for rule in (clipped, tripled, jax.checkpoint(jnp.sin)):

        def f(w, rule=rule):
            return jnp.sum(rule(X @ w) ** 2)

        with tf.GradientTape() as tape:
            tape.watch(W)
            y = jax.jit(f)(W)
        np.testing.assert_allclose(tape.gradient(y, W), jax.grad(f)(W), rtol=1e-5)
