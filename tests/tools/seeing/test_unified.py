"""A function that was called several times is printed once: what differs are its arguments."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf

X = jnp.arange(4.0).reshape(2, 2) / 4


def bent(x, power, shift):
    h = jnp.sin(x) * power
    return jnp.cos(h) + shift


def numbers(x, y):
    return bent(bent(bent(x, 2.0, y), 3.0, y), -4.0, shift=x)


def other_operations(x, y):
    def power(x, k):
        return jnp.sin(x) + jnp.sum(x, axis=k)

    return power(x, 0) + power(y, None)


def unclear(x, y):
    parts = [bent(x * y, power, y) for power in (2.0, 3.0)]
    return parts[0] * parts[1]


def both(x, y):
    s = jnp.sin(x) * y
    return jnp.tanh(s + y), s


def results(x, y):
    x, _ = both(x, y)
    x, s = both(x, y)
    return x + s


def zeros_first(x, y):
    def cell(state, x):
        return jnp.tanh(state @ x + y)

    state = jnp.zeros((2, 2))
    for row in (x, y, x * y):
        state = cell(state, row)
    return state


def differentiated(x, y):
    def loss(x, power):
        return jnp.sum(jnp.cos(x * y) ** power)

    return loss(x, 2) + loss(x, 3) + jnp.sum(jax.grad(loss)(x, 4))


FUNCTIONS = {
    numbers: ("bent(bent(bent(x, 2.0, y), 3.0, y), -4.0, x)", ["bent(x, power, shift)", "f(x, y)"]),
    other_operations: ("", ["power(x)", "power_2(x)", "f(x, y)"]),
    unclear: ("", ["bent(x, shift)", "bent_2(x, shift)", "f(x, y)"]),
    results: ("x, _ = both(x, y)\n    x, s = both(x, y)", ["both(x, y)", "f(x, y)"]),
    zeros_first: ("", ["cell(state, x, y)", "f(x, y)"]),
    differentiated: ("loss(x, 3, y)", ["loss(x, power, y)", "f(x, y)"]),
}


@pytest.mark.parametrize("way", [lambda f: f, jax.jit], ids=["plain", "jit"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_is_printed_once(function, way):
    text, heads = FUNCTIONS[function]
    code = tf.code(way(function), X, X + 1)
    printed = [line.removeprefix("def ").partition(":")[0] for line in code.code.splitlines() if line[:4] == "def "]
    assert text in code.code and printed == heads, code.code
    space = {"jax": jax, "jnp": jnp, "np": np, **code.constants}
    exec(code.code, space)
    np.testing.assert_allclose(space["f"](X, X + 1), function(X, X + 1), rtol=1e-5)


def distances(a, b):
    return jnp.sum((a[:, None] - b[None]) ** 2, axis=-1)


def one_value(x, y):
    return distances(x, x) @ distances(x, y)


def rounds(A, Q):
    def step(P):
        K = A @ P
        return Q + K @ K, K

    P = Q
    for _ in range(3):
        P, K = step(P)
    return P + K


ONE_VALUE = """\
def distances(a, b):
    return jnp.sum((a[:, None] - b[None]) ** 2, axis=-1)


def f(x, y):  # for y: float32[2,2]
    return distances(x, x) @ distances(x, y)
"""
ROUNDS = """\
def step(P, A, Q):
    K = A @ P
    return Q + K @ K, K


def f(A, Q):  # for Q: float32[2,2]
    P = Q
    for _ in range(3):
        P, K = step(P, A, Q)
    return P + K
"""


@pytest.mark.parametrize(("body", "expected"), [(one_value, ONE_VALUE), (rounds, ROUNDS)])
def test_one_value_is_as_many_parameters_as_it_was_given_for(body, expected):
    function = tf.code(body, X, X * 2.0)
    assert function.code == expected
    space = {"jax": jax, "jnp": jnp, "np": np}
    exec(compile(function.code, "<pasted>", "exec"), space)
    np.testing.assert_allclose(space["f"](X * 3.0, X), body(X * 3.0, X), rtol=1e-6)
