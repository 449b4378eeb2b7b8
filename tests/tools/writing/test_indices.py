"""Indices of NumPy's in printed code: as in the source, under the user's names, and the operations are the very same."""

from __future__ import annotations

import inspect
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax

W = jnp.linspace(0.1, 1.2, 12, dtype=jnp.float32).reshape(4, 3)
X = jnp.linspace(0.0, 1.0, 32, dtype=jnp.float32).reshape(8, 4)
labels = np.arange(8) % 3
few, negative = np.array([0, 2, 1]), np.array([-1, 0, 1, -2])
table = np.array([[0, 1], [2, 3], [1, 1]])


def rows(W):
    return W[few] + W[negative][:3]


def columns(W):
    return W[:, few] * 2.0


def elements(W):
    return W[negative, few[[0, 1, 2, 0]]]


def embedding(W):
    return W[table].sum(1)


def added(W):
    return W.at[few].add(2.0)


def chosen(W):
    logp = jax.nn.log_softmax(X @ W)
    return -jnp.mean(logp[jnp.arange(len(labels)), labels])


def mean_loss(W, X, y):
    logp = jax.nn.log_softmax(X @ W)
    return -jnp.mean(logp[jnp.arange(len(y)), y])


def batches(W):
    for i in range(2):
        W = W - 0.1 * jax.grad(mean_loss)(W, X[4 * i : 4 * i + 4], labels[4 * i : 4 * i + 4])
    return W


def pasted(printed):
    space = {"jax": jax, "jnp": jnp, "np": np, **printed.constants}
    exec(printed.code, space)
    return space["f"]


def body(text):
    return text[text.index("def f(") :].splitlines()[1:]


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("function", [rows, columns, elements, embedding, added, chosen])
def test_an_index_stands_as_in_the_source(function, jitted, wide):
    # JAX takes an array that it has traced without 64-bit types for one of 32 bits, when they are on, too
    fresh = {name: x.copy() for name, x in globals().items() if isinstance(x, np.ndarray)}
    function = types.FunctionType(function.__code__, globals() | fresh, function.__name__)
    with jax.enable_x64(wide):
        printed = tapejax.code(jax.jit(function) if jitted else function, W)
        source = inspect.getsource(function).splitlines()[1:]
        if function.__name__ == "elements":  # what NumPy computed has no name
            assert "[negative, " in printed.code
        elif not jitted:
            assert body(printed.code) == source
        assert "gather" not in printed.code and "scatter" not in printed.code
        again, at = pasted(printed), 1.5 * W - 0.2
        if not jitted:
            assert str(jax.make_jaxpr(again)(W)) == str(jax.make_jaxpr(function)(W))
        for one, other in ((function, again), (jax.jacrev(function), jax.jacrev(again))):
            np.testing.assert_array_equal(one(at), other(at))


def test_batches_of_other_labels_are_calls_of_one_function():
    printed = tapejax.code(batches, W)
    assert printed.code.count("def mean_loss(W, X, y):") == 1 and "mean_loss_2" not in printed.code
    assert "    return -jnp.mean(logp[jnp.arange(len(y)), y])\n" in printed.code
    np.testing.assert_allclose(pasted(printed)(2.0 * W), batches(2.0 * W), rtol=1e-6)


def test_equal_indices_are_one_constant():
    def twice(W):
        return W[few] * W[np.array(few)]

    printed = tapejax.code(twice, W)
    assert printed.code.count("np.array([0, 2, 1]") == 1
