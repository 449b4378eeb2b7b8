"""Code of functions with poles: pasted elsewhere, a zero comes back as zero there, too."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf

ROWS = np.float32([[0.0, 0.0], [3.0, 4.0], [1.0, 1.0]])
FUNCTIONS = {
    "norm": lambda x: tf.norm(x, axis=1),
    "std": lambda x: tf.math.reduce_std(x, axis=1),
    "rsqrt": lambda x: tf.math.rsqrt(x[:, 0]),
    "multiply_no_nan": lambda x: tf.math.multiply_no_nan([np.inf, 1.0, 2.0], x[:, 0] ** 2),
}
WEIGHTS = np.float32([0.0, 1.0, 2.0])


def pasted(function):
    assert "tapejax" not in function.code
    space = {"jax": jax, "jnp": jnp, "np": np, **function.constants}
    exec(compile(function.code, "<pasted>", "exec"), space)
    return space["f"]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "function"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_and_its_gradient(name, compiled):
    function, x = FUNCTIONS[name], tf.constant(ROWS)
    function = tf.function(function) if compiled else function
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = function(x)
        slope = tape.gradient(y, x, WEIGHTS)

    def pulled(fn):
        return jax.vjp(fn, x._array)[1](jnp.asarray(WEIGHTS))[0]

    printed = pasted(tape.as_function(y, x))
    np.testing.assert_array_equal(printed(x._array), y)
    np.testing.assert_allclose(pulled(printed), slope)
    rows = jax.vmap(jax.vjp(printed, x._array)[1])(jnp.eye(3))[0]
    np.testing.assert_allclose(rows, tape.jacobian(y, x))
    first = pasted(outer.as_function(slope, x))
    np.testing.assert_allclose(first(x._array), slope)
    second = jax.grad(lambda x: first(x)[1:].sum())(x._array)[1:]
    np.testing.assert_allclose(second, outer.gradient(slope, x, np.float32([[0, 0], [1, 1], [1, 1]]))[1:], rtol=1e-5)
