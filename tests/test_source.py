"""`print(tape.as_function(...))`: code that runs where it is pasted, with the same value and the same gradient."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from plain_jax import CASES
from test_plain_jax import assert_same, split, total

import tapejax as tf


def pasted(function):
    """The printed function, run in a namespace of its own."""
    space = {"jax": jax, "jnp": jnp, "np": np, **function.constants}
    exec(compile(function.code, "<pasted>", "exec"), space)
    return space["f"]


# What cannot be written down at all: a Python function behind a callback or one that chooses what to keep, and (from JAX
# 0.11 on) a root finder.
OBJECTS = {
    "custom_root",
    "checkpoint_policy",
    "checkpoint_nothing",
    "checkpoint_names",
    "pure_callback_beside_the_gradient",
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_runs_as_it_is(case):
    sources, rebuild = split(case.arguments())
    with tf.GradientTape() as tape:
        tape.watch(sources)
        outputs = case.function(*rebuild(sources))
    function = tape.as_function(outputs, sources)
    f = pasted(function)
    assert_same(jax.tree.leaves(f(sources)), jax.tree.leaves(outputs), case.tolerance)
    found = jax.grad(lambda xs: total(f(xs)))(sources)
    expected = jax.grad(lambda xs: total(case.function(*rebuild(xs))))(sources)
    assert_same(found, expected, case.tolerance)
    assert all(isinstance(x, jax.Array) for x in function.constants.values()) or case.name in OBJECTS


# Functions with TensorFlow's names, and how they look as jnp.
SPELLED = {
    "x * 2.0 + x": ["x * 2.0", "+ x"],
    "tf.matmul(x, x)": ["x @ x"],
    "tf.reduce_sum(x, axis=1)": ["jnp.sum(x, axis=1)"],
    "tf.reduce_mean(x, 0, keepdims=True)": ["jnp.mean(x, axis=0, keepdims=True)"],
    "tf.nn.relu(x)": ["jax.nn.relu(x)"],
    "tf.transpose(x)": ["x.T"],
    "tf.concat([x, x], 0)": ["jnp.concatenate([x, x]"],
    "tf.reshape(x, [9])": ["x.ravel()"],
    "tf.stack([x, x])": ["jnp.stack([x, x]"],
    "tf.cast(x, tf.float16)": ["x.astype(jnp.float16)"],
    "tf.sigmoid(x)": ["jax.nn.sigmoid(x)"],
    "tf.exp(-x)": ["-x", "jnp.exp("],
    "tf.where(x > 1.0, x, 0.0)": ["x > 1.0", "jnp.where("],
    "tf.einsum('ij,jk->ik', x, x)": ["x @ x"],
    "jnp.einsum('ij,kj->ik', x, x)": ["jnp.einsum('ij,kj->ik', x, x)"],
    "x[1:]": ["x[1:]"],
    "jnp.cumsum(x, axis=1)": ["jnp.cumsum(x, axis=1)"],
    "jnp.maximum(x, 0.5)": ["jnp.maximum(x, 0.5)"],
}


@pytest.mark.parametrize("text", SPELLED)
def test_spelling(text):
    x = jnp.arange(9.0).reshape(3, 3) / 5
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = eval(text, {"tf": tf, "jnp": jnp, "x": x})
    function = tape.as_function(y, x)
    for part in SPELLED[text]:
        assert part in function.code, function.code
    np.testing.assert_allclose(pasted(function)(x), np.asarray(y), rtol=1e-6)


def test_a_model():
    images = tf.constant(np.linspace(0, 1, 8 * 40, dtype=np.float32).reshape(8, 40))
    labels = tf.constant([0, 1, 2, 0, 1, 2, 0, 1])
    model = {
        "w1": tf.Variable(np.linspace(-1, 1, 200, dtype=np.float32).reshape(40, 5)),
        "b1": tf.Variable(tf.zeros([5])),
    }
    out = [tf.Variable(np.linspace(1, -1, 15, dtype=np.float32).reshape(5, 3))]
    with tf.GradientTape() as tape:
        hidden = tf.nn.relu(images @ model["w1"] + model["b1"])
        logits = hidden @ out[0]
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    sources = {"model": model, "out": out}
    function = tape.as_function(loss, sources)
    code = function.code
    assert "model_w1 = sources['model']['w1']" in code and "out_0 = sources['out'][0]" in code
    assert "hidden = jax.nn.relu(" in code and "logits = hidden @ out_0" in code
    assert "# images: float32[8,40], in .constants" in code and list(function.constants) == ["images"]
    assert "labels = jnp.array([0, 1, 2, 0, 1, 2, 0, 1], jnp.int32)" in code
    at = jax.tree.map(jnp.asarray, {"model": {k: v.numpy() for k, v in model.items()}, "out": [out[0].numpy()]})
    value, gradient = jax.value_and_grad(pasted(function))(at)
    expected = tape.gradient(loss, sources)
    np.testing.assert_allclose(value, loss.numpy(), rtol=1e-6)
    for found, wanted in zip(jax.tree.leaves(gradient), jax.tree.leaves(expected)):
        np.testing.assert_allclose(found, np.asarray(wanted), rtol=1e-5, atol=1e-7)


def test_structures():
    a, b = jnp.array([1.0, 2.0]), jnp.array(3.0)
    with tf.GradientTape() as tape:
        tape.watch([a, b])
        s, p = a + b, a * b
    function = tape.as_function({"sum": s, "product": (p, [s])}, (a, b))
    assert "a, b = sources" in function.code
    assert "return {'sum': s, 'product': (p, [s])}" in function.code
    found = pasted(function)((a, b))
    np.testing.assert_array_equal(found["product"][0], p)


def test_numbers_and_constants():
    x = jnp.array([1.0, 2.0])
    few, nan, big = jnp.array([0.1, -jnp.inf]), jnp.array(jnp.nan), jnp.arange(200.0) * 0.3
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = (x * few).sum() + nan + (x[0] * big).sum() + x.astype(jnp.bfloat16)[0] * jnp.bfloat16(0.1)
    function = tape.as_function(y, x)
    assert "few = jnp.array([0.1, -jnp.inf], jnp.float32)" in function.code
    assert list(function.constants) == ["big"]
    gradient = jax.grad(lambda v: pasted(function)(v).astype(jnp.float32))(x)
    np.testing.assert_allclose(gradient, np.asarray(tape.gradient(y, x)), rtol=1e-2)


def test_an_intermediate_as_a_source():
    x = jnp.array([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        h = jnp.sin(x)
        y = h * x
    function = tape.as_function(y, [x, h])
    found = jax.grad(lambda s: pasted(function)(s).sum())([x, h])
    expected = tape.gradient(y, [x, h])
    for f, e in zip(found, expected):
        np.testing.assert_allclose(f, e, rtol=1e-6)


def test_a_variable_that_was_assigned_between_two_reads():
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = v * 3.0
        v.assign_add([1.0, 1.0])
        z = y * v
    function = tape.as_function(z, v)
    gradient = jax.grad(lambda s: pasted(function)(s).sum())(jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(gradient, np.asarray(tape.gradient(z, v)), rtol=1e-6)


def test_custom_derivatives_are_printed():
    @jax.custom_vjp
    def clip(v):
        return v

    clip.defvjp(lambda v: (v, None), lambda _, g: (jnp.clip(g, -1.0, 1.0),))

    @tf.custom_gradient
    def double(v):
        return v, lambda dy: dy * 2.0

    x = jnp.array([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = double(clip(x) * 3.0)
    function = tape.as_function(y, x)
    assert not function.constants and "defvjp" in function.code
    gradient = jax.grad(lambda s: pasted(function)(s).sum())(x)
    np.testing.assert_allclose(gradient, np.asarray(tape.gradient(y, x)), rtol=1e-6)


def test_what_it_is():
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x**3
    f = tape.as_function(y, x)
    assert str(f) == repr(f) == f.code == "def f(x):\n    y = x ** 3.0\n    return y\n" or "x ** 3" in f.code
    assert "<pre>" in f._repr_html_()
    assert float(jax.jit(f)(jnp.array(3.0))) == 27.0 and float(jax.grad(f)(jnp.array(3.0))) == 27.0
    assert float(jax.vmap(f)(jnp.array([1.0, 2.0]))[1]) == 8.0
    jaxpr = tape.jaxpr(y, x)
    assert len(jaxpr.jaxpr.invars) == 1 and jaxpr.out_avals[0].shape == ()
    assert len(tape) == 1
