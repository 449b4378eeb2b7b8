"""Custom rules of functions that close over a value that `jax.vmap` maps: as `jax.grad` takes them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import tapejax as tf


def by_jvp_alone(x, z):
    @jax.custom_jvp
    def f(x):
        return jnp.sin(x)

    f.defjvp(lambda primals, tangents: (jnp.sin(*primals), tangents[0] * lax.stop_gradient(z)))
    return f(x) ** 2


def by_custom_gradient(x, z):
    @jax.custom_gradient
    def f(x):
        return jnp.sin(x), lambda g: g * lax.stop_gradient(z)

    return f(x) ** 2


Z = jnp.arange(1, 4, dtype=jnp.float32)
MAPPED = {
    "z": lambda f: lambda x: jax.vmap(f, (None, 0))(x, Z),
    "both": lambda f: lambda x: jax.vmap(f)(x * Z, Z),
    "twice": lambda f: lambda x: jax.vmap(jax.vmap(f, (None, 0)), (0, None))(x * Z, Z),
    "twice, of z": lambda f: lambda x: jax.vmap(jax.vmap(f, (None, 0)), (None, 0))(x, jnp.stack([Z, 2 * Z])),
    "last": lambda f: lambda x: jax.vmap(f, (None, 0), -1)(x, Z),
}


@pytest.mark.parametrize("mapped", MAPPED)
@pytest.mark.parametrize("rule", [by_jvp_alone, by_custom_gradient])
def test_a_rule_that_closes_over_a_mapped_value(rule, mapped):
    f, x = MAPPED[mapped](rule), jnp.float32(2.0)
    try:
        expected = jax.grad(lambda x: jnp.sum(f(x)))(x)
    except ValueError as error:  # from JAX 0.12 on
        pytest.skip(f"jax.grad refuses it: {error}")
    for _ in range(2):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = jnp.sum(f(x))
        np.testing.assert_allclose(y, jnp.sum(f(x)), rtol=1e-6)
        np.testing.assert_allclose(tape.gradient(y, x), expected, rtol=1e-6)
