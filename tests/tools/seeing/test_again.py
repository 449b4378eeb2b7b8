"""Calls of a `tf.function` and of functions of JAX's in printed code: what their operations are, with the same numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf

W1, W2 = (
    np.random.default_rng(seed).normal(size=shape).astype(np.float32) for seed, shape in ((0, (1, 8)), (1, (8, 1)))
)
X = np.array([[0.1], [0.5], [0.9]], np.float32)


def pasted(function):
    space = {"jax": jax, "jnp": jnp, "np": np, **function.constants}
    exec(compile(function.code, "<pasted>", "exec"), space)
    return space["f"]


def read_after_assignment(x, w):
    v = tf.Variable(2.0)

    @tf.function
    def doubled(x):
        v.assign(v * 2.0)
        return x * v

    return doubled(tf.tanh(x @ w))


def branch(x, w):
    @tf.function
    def chosen(x):
        return tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2.0, lambda: x * 3.0)

    return chosen(tf.tanh(x @ w))


def counted(x, w):
    calls = []

    @tf.function
    def scaled(x):
        calls.append(1)
        return x * float(len(calls))

    return scaled(tf.tanh(x @ w)) + scaled(x @ w)


def nested(x, w):
    @tf.function
    def inner(x):
        return tf.nn.softplus(x @ w)

    @tf.function
    def outer(x):
        return tf.reduce_mean(inner(x), axis=1)

    return outer(x)


def method(x, w):
    class Scale(tf.Module):
        def __init__(self):
            self.by = tf.Variable(3.0)

        @tf.function
        def __call__(self, x):
            return tf.tanh(x @ w) * self.by

    scale = Scale()
    return scale(x)


@pytest.mark.parametrize(
    "body", [read_after_assignment, branch, counted, nested, method], ids=lambda body: body.__name__
)
def test_a_call_of_a_function_has_the_same_numbers(body, capsys):
    x, w = tf.constant(X), tf.Variable(W1)
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_sum(body(x, w) ** 2)
    function = tape.as_function(loss, w, {"x": x})
    written = pasted(function)
    other = (jnp.asarray(W1 * 0.5), jnp.asarray(-X))
    for args in ((jnp.asarray(W1), jnp.asarray(X)), other):
        wanted, found = (jax.value_and_grad(f)(*args) for f in (function, written))
        np.testing.assert_allclose(found[0], wanted[0], rtol=1e-5)
        np.testing.assert_allclose(found[1], wanted[1], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(written(jnp.asarray(W1), jnp.asarray(X)), loss.numpy(), rtol=1e-5)
    assert "def a(" not in function.code


def test_to_print_a_function_leaves_the_program_as_it_was(capsys):
    v = tf.Variable(2.0)

    @tf.function
    def step(x):
        print("tracing")
        y = x * v
        v.assign_add(1.0)
        return y

    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = step(x) * 3.0
    assert capsys.readouterr().out == "tracing\n"
    assert "def step(x" in tape.as_function(y, x).code
    assert capsys.readouterr().out == "" and v.numpy() == 3.0


def test_functions_of_jax_are_called():
    x, key = jnp.asarray(np.random.default_rng(0).normal(size=(2, 5, 2, 4)), jnp.float32), jax.random.PRNGKey(3)

    def body(x, key):
        h = jax.nn.gelu(x, approximate=False)
        h = jax.nn.dot_product_attention(h, h * 2.0, x)
        h = jax.nn.softmax(h, axis=1)
        h = jnp.where(jax.random.bernoulli(key, 0.8, h.shape), h / 0.8, 0.0)
        h = h + jax.random.normal(key, h.shape)
        return jnp.sum(jax.nn.logsumexp(h, axis=-1)) + jax.nn.logsumexp(x)

    function = tf.code(body, x, key)
    for text in (
        "jax.nn.gelu(x, approximate=False)",
        "jax.nn.dot_product_attention(h, h * 2.0, x)",
        "jax.nn.softmax(h, axis=1)",
        "jax.random.bernoulli(key, 0.8, (2, 5, 2, 4))",
        "jax.random.normal(key, (2, 5, 2, 4))",
        "jax.nn.logsumexp(h, axis=-1)",
        "jax.nn.logsumexp(x)",
    ):
        assert text in function.code, function.code
    np.testing.assert_allclose(pasted(function)(x, key), body(x, key), rtol=1e-5)


def test_what_is_done_to_each_leaf_is_a_map_over_the_tree():
    params = {"a": {"w": tf.Variable([1.0, 2.0])}, "b": tf.Variable([3.0]), "c": tf.Variable(4.0)}
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(params["a"]["w"] ** 2) * params["b"][0] * params["c"]
        grads = tape.gradient(loss, params)
        scale = 1.0 / (1.0 + grads["c"])
        alike = {"a": {"w": scale * grads["a"]["w"]}, "b": scale * grads["b"], "c": scale * grads["c"]}
        other = {"a": {"w": grads["a"]["w"] * 2.0}, "b": grads["b"] * 2.0, "c": grads["c"] * 3.0}
        swapped = {"b": params["c"] * 2.0, "c": params["c"] * 2.0, "a": {"w": params["a"]["w"] * 2.0}}
    function = outer.as_function((alike, other, swapped), params)
    assert function.code.count("jax.tree.map(") == 1
    assert "jax.tree.map(lambda g: scale * g, grads)" in function.code
    bare = jax.tree.map(lambda v: jnp.asarray(v.numpy()), params, is_leaf=lambda v: isinstance(v, tf.Variable))
    wanted, found = function(bare), pasted(function)(bare)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), found, wanted)
