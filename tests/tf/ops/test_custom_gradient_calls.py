"""`custom_gradient` and `recompute_grad`: how their functions may be called, and what they do with state and random numbers."""

from __future__ import annotations

import operator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf


@tf.custom_gradient
def scaled(x, y=2.0, *rest, by=1.0, **more):
    return x * y, lambda d: [d * 100.0, d * 200.0, d * 300.0, d * 400.0][: 2 + len(rest) + len(more)]


CALLS = {
    "x=, y=": lambda p, q: scaled(x=p, y=q),
    "y=, x=": lambda p, q: scaled(y=q, x=p),
    "p, y=": lambda p, q: scaled(p, y=q),
    "p, q, by=": lambda p, q: scaled(p, q, by=3.0),
    "p, q, *rest": lambda p, q: scaled(p, q, 5.0),
    "p, q, z=": lambda p, q: scaled(p, y=q, by=3.0),
}


@pytest.mark.parametrize("name", CALLS)
def test_keywords_are_bound_under_every_transformation(name):
    call = CALLS[name]

    def f(p, q):
        return jnp.sum(jnp.asarray(call(p, q)))

    p, q = jnp.array([2.0, 3.0]), jnp.array([3.0, 4.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([p, q])
        y = call(p, q)
    want = [100.0 * jnp.ones(2), 200.0 * jnp.ones(2)]
    with tf.GradientTape() as compiled:
        compiled.watch([p, q])
        z = tf.function(call)(p, q)
    assert np.allclose(tape.gradient(y, [p, q]), want)
    assert np.allclose(compiled.gradient(z, [p, q]), want)
    assert np.allclose([np.diag(j) for j in tape.jacobian(y, [p, q])], want)
    for transform in (jax.grad(f, (0, 1)), jax.jit(jax.grad(f, (0, 1))), jax.grad(jax.jit(f), (0, 1))):
        assert np.allclose(transform(p, q), want)
    assert np.allclose(jax.vmap(jax.grad(f, (0, 1)))(p, q), want)


def test_a_function_without_a_signature():
    """Its keywords are taken in the order of the call."""

    class Opaque:
        __signature__ = "none"

        def __call__(self, x, y):
            return x * y, lambda d: (d * 100.0, d * 200.0)

    p, q = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch([p, q])
        y = tf.custom_gradient(Opaque())(x=p, y=q)
    assert [float(g) for g in tape.gradient(y, [p, q])] == [100.0, 200.0]


def test_a_pytree_by_keyword():
    class Pair(NamedTuple):
        one: jax.Array
        two: jax.Array

    @tf.custom_gradient
    def f(*, pair, sign):
        return pair.one * pair.two * sign, lambda d: (Pair(d * 10.0, d * 20.0), None)

    pair = Pair(jnp.array(2.0), jnp.array(3.0))
    with tf.GradientTape() as tape:
        tape.watch(pair)
        y = f(sign=-1.0, pair=pair)
    assert [float(g) for g in tape.gradient(y, pair)] == [10.0, 20.0]


def test_too_few_gradients_for_tensors_by_keyword():
    f = tf.custom_gradient(lambda x, y: (x * y, lambda d: d))
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x=x, y=x)
    with pytest.raises(ValueError, match="expected to return 2 gradients, but returned 1"):
        tape.gradient(y, x)


# ---- recompute_grad -------------------------------------------------------------------------------------------------


class Counted:
    """A function with state: a count, a running mean, a dropout, a weight."""

    def __init__(self):
        self.w = tf.Variable([1.0, 2.0, 3.0, 4.0])
        self.count = tf.Variable(0, trainable=False)
        self.mean = tf.Variable(0.0, trainable=False)
        self.generator = tf.random.Generator.from_seed(3)

    def __call__(self, x):
        self.count.assign_add(1)
        self.mean.assign(0.5 * self.mean + 0.5 * tf.reduce_mean(x))
        noise = self.generator.normal([4])
        return tf.nn.dropout(x * self.w, 0.5) * noise * self.mean

    def state(self):
        return [self.count.numpy(), self.mean.numpy(), self.generator.state.numpy()]


def stepped(f, function, compiled):
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(f(x) ** 2)
        return y, tape.gradient(y, [x, function.w])

    tf.random.set_seed(7)
    run = tf.function(step) if compiled else step
    return [run(tf.constant([1.0, 2.0, 3.0, 4.0]) * k) for k in (1.0, 2.0)]


@pytest.mark.parametrize("compiled", [False, True])
def test_what_is_recomputed_is_what_was_computed(compiled):
    """The same random numbers, the same state, which changes once; values and gradients are those without it."""
    plain, recomputed = Counted(), Counted()
    want = stepped(plain, plain, compiled)
    got = stepped(tf.recompute_grad(recomputed), recomputed, compiled)
    for a, b in zip(jax.tree.leaves(want), jax.tree.leaves(got), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    for a, b in zip(plain.state(), recomputed.state(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_derivatives_of_other_kinds():
    """Forward mode, a Jacobian, the recorded function and the second derivative leave state alone."""
    f, x = Counted(), tf.constant([1.0, 2.0, 3.0, 4.0])

    def smooth(x):
        f.count.assign_add(1)
        f.mean.assign(0.5 * f.mean + 0.5)
        return tf.sin(x * f.w) * f.mean

    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = tf.recompute_grad(smooth)(x)
        (slope,) = tape.gradient(y, [f.w])
    before = f.state()[:2]
    xs, w = x.numpy(), f.w.numpy()
    np.testing.assert_allclose(outer.gradient(slope, f.w), -xs * xs * np.sin(xs * w) * 0.5, rtol=1e-5)
    np.testing.assert_allclose(outer.gradient(slope, x), (np.cos(xs * w) - xs * w * np.sin(xs * w)) * 0.5, rtol=1e-5)
    np.testing.assert_allclose(tape.jacobian(y, x), np.diag(w * np.cos(xs * w) * 0.5), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(tape.as_function(y, x)(x._array * 2.0), np.sin(2.0 * xs * w) * 0.5, rtol=1e-5)
    with tf.autodiff.ForwardAccumulator(x, tf.ones(4)) as accumulator:
        z = tf.recompute_grad(lambda x: tf.sin(x * f.w))(x)
    np.testing.assert_allclose(accumulator.jvp(z), w * np.cos(xs * w), rtol=1e-5)
    assert f.state()[:2] == before == [1, 0.5]


def test_a_recomputation_that_fails_leaves_state_as_it_was():
    v, calls = tf.Variable(1.0), []

    @tf.recompute_grad
    def f(x):
        v.assign_add(1.0)
        calls.append(1)
        if len(calls) == 2:
            raise OverflowError
        return x * v

    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
    v.assign(10.0)
    with pytest.raises(OverflowError):
        tape.gradient(y, x)
    assert v.numpy() == 10.0 and tape.gradient(y, x).numpy() == 2.0 and v.numpy() == 10.0


def test_a_compiled_function_and_control_flow_within():
    """What they read are inputs of the recomputation as what Python reads is."""
    w, c = tf.Variable(2.0), tf.Variable(0, trainable=False)

    @tf.function
    def inner(x):
        c.assign_add(1)
        return tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * w), (tf.constant(0), x))[1]

    for f in (inner, lambda x: inner(x)):
        for run in (lambda g: g, tf.function):
            x = tf.constant(3.0)

            @run
            def step(x, f=f):
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    y = tf.recompute_grad(f)(x)
                return tape.gradient(y, [x, w])

            before = c.numpy()
            assert [float(g) for g in step(x)] == [8.0, 36.0]
            assert c.numpy() == before + 1


def test_a_program_computes_anew():
    """In a `function`, too: XLA is kept from taking the values of the forward pass."""

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.recompute_grad(lambda x: tf.sin(tf.sin(x)))(x))
        return tape.gradient(y, x)

    assert "prevent_cse=True" in str(jax.make_jaxpr(step)(jnp.ones(3)))


def test_a_layer_that_is_built_in_it():
    """Variables that are made in a recomputed function, on the first call of a compiled one."""

    class Lazy(tf.Module):
        w = None

        def __call__(self, x):
            if self.w is None:
                self.w = tf.Variable(2.0)
            return x * self.w * self.w

    for run in (lambda g: g, tf.function):
        layer = Lazy()

        @run
        def step(x, layer=layer):
            with tf.GradientTape() as tape:
                y = tf.recompute_grad(layer)(x)
            return tape.gradient(y, layer.w)

        assert float(step(tf.constant(3.0))) == float(step(tf.constant(3.0))) == 12.0


def test_a_signature_is_kept():
    assert scaled.__name__ == "scaled" and tf.recompute_grad(operator.neg)(tf.constant(1.0)).numpy() == -1.0
