"""Numbers through functions with rules of their own: what comes out has the type that it has without a tape."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf

FUNCTIONS = {
    "the same": lambda *x: x[0],
    "an integer": lambda *x: 2,
    "a float": lambda *x: 2.5,
    "a sum": lambda *x: x[0] + 1,
    "two": lambda *x: (x[0], x[-1]),
    "a list": lambda *x: [x[0], None, 3],
    "NumPy's number": lambda *x: np.float32(2),
    "NumPy's array": lambda *x: np.ones(2),
    "of NumPy": lambda *x: np.asarray(x[0]) + 1,
    "an array": lambda *x: jnp.sin(x[0]),
    "of what it looks at": lambda *x: float(np.sum(x[0])) * 2,
}
ARGUMENTS = [(1,), (1.5,), (True,), (1j,), (np.float32(1),), (np.ones(2),), (1, 2.0)]


def with_rule(kind, function):
    found = kind(function)
    if kind is jax.custom_jvp:
        found.defjvp(lambda primals, tangents: (found(*primals), tangents[0]))
    else:
        found.defvjp(lambda *args: (found(*args), None), lambda _, ct: (ct,))
    return found


def types(result):
    return jax.tree.map(type, result)


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("args", ARGUMENTS, ids=repr)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("kind", [jax.custom_jvp, jax.custom_vjp])
def test_numbers_stay_numbers(kind, name, args, x64):
    if name == "of what it looks at" and isinstance(args[0], complex):
        pytest.skip("a complex number has no float")
    with jax.enable_x64(x64):
        function = with_rule(kind, FUNCTIONS[name])
        expected = function(*args)
        with tf.GradientTape():
            found = function(*args)
        assert types(found) == types(expected)
        jax.tree.map(np.testing.assert_array_equal, found, expected)


@pytest.mark.parametrize("kind", [jax.custom_jvp, jax.custom_vjp])
def test_integers_beside_an_array(kind):
    """They carry no gradient; a float may, which the rule says. So it is an array, which the tape knows."""
    function = with_rule(kind, lambda x, n: (x * n, n, True, 2.0))
    x = jnp.arange(3.0)
    with tf.GradientTape():
        y, n, truth, constant = function(x, 2)
    assert (
        isinstance(y, jax.Array) and isinstance(n, int) and isinstance(truth, int) and isinstance(constant, jax.Array)
    )


@pytest.mark.parametrize("kind", [jax.custom_jvp, jax.custom_vjp])
def test_a_number_goes_on_into_what_is_differentiated(kind):
    function = with_rule(kind, lambda n: n)
    x = jnp.arange(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x ** function(2) * function(1.5)
    np.testing.assert_array_equal(tape.gradient(y, x), 3.0 * x)


def test_what_a_function_of_numbers_closes_over_is_known():
    """As before: a rule is for the arguments of its function, so there is none for what it closes over."""
    w = jnp.asarray(2.0)
    function = with_rule(jax.custom_jvp, lambda n: n * w)
    with tf.GradientTape() as tape:
        tape.watch(w)
        y = function(3)
    with pytest.raises(LookupError, match="closes over"):
        tape.gradient(y, w)
