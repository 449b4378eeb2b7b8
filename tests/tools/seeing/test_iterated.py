"""Rows that Python takes out of keys and long arrays: the function that a tape gives back computes them from its arguments."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf


def noisy(x, key):
    key, own = jax.random.split(key)
    y = x * jax.random.normal(own, x.shape)
    return y + sum(jax.random.uniform(k) for k in jax.random.split(key, 3)) * x


@pytest.mark.parametrize("flat", [False, True], ids=["folded", "flat"])
def test_another_key_gives_other_numbers(flat):
    x, key = jnp.arange(1.0, 4.0), jax.random.key(0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = jnp.sum(noisy(x, key))
    function = tape.as_function(y, x, arguments={"key": key}, flat=flat)
    space = {"jax": jax, "jnp": jnp, "np": np} | function.constants
    exec(function.code, space)
    for seed in range(3):
        other = jax.random.key(seed)
        wanted, slope = jax.value_and_grad(lambda x, key=other: jnp.sum(noisy(x, key)))(x)
        for f in (function, space["f"]):
            np.testing.assert_allclose(f(x, other), wanted, rtol=1e-6)
            np.testing.assert_allclose(jax.grad(f)(x, other), slope, rtol=1e-6)


def test_the_numbers_of_keys_are_numbers():
    def mixed(x, keys):
        first, second = jax.random.key_data(keys)
        return x * (first[0] % 7).astype(x.dtype) + (second[1] % 5).astype(x.dtype)

    x, keys = jnp.arange(3.0), jax.random.split(jax.random.key(0))
    code = tf.code(mixed, x, keys)
    space = {"jax": jax, "jnp": jnp, "np": np} | code.constants
    exec(code.code, space)
    np.testing.assert_array_equal(space["f"](x, keys), mixed(x, keys))


@pytest.mark.parametrize("rows, read", [(220, 220), (220, 120), (101, 101)])
def test_rows_of_an_array_that_jax_iterates_over_in_parts(rows, read):
    def total(xs):
        y = jnp.float32(0.0)
        for i, x in enumerate(xs):
            if i == read:
                break
            y = jnp.sin(y + x)
        return y

    xs = jnp.linspace(0.0, 1.0, rows)
    code = tf.code(total, xs)
    space = {"jax": jax, "jnp": jnp, "np": np} | code.constants
    exec(code.code, space)
    other = xs[::-1]
    np.testing.assert_allclose(space["f"](other), total(other), rtol=1e-6)
    if rows == 101:  # each takes a while
        np.testing.assert_allclose(jax.grad(space["f"])(other), jax.grad(total)(other), rtol=1e-5, atol=1e-6)
    if read == rows:
        assert len(code.code.splitlines()) <= 5, code.code


@pytest.mark.parametrize("stops", [(3, 4), (3, 110), (110, 3)])
def test_loops_that_stop_early_read_the_same_part(stops):
    def total(xs):
        y = jnp.float32(0.0)
        for stop in stops:
            for i, x in enumerate(xs):  # of its first hundred rows, or all
                if i == stop:
                    break
                y = jnp.sin(y + x)
        return y

    xs = jnp.linspace(0.0, 1.0, 200)
    code = tf.code(total, xs)
    space = {"jax": jax, "jnp": jnp, "np": np} | code.constants
    exec(code.code, space)
    np.testing.assert_allclose(space["f"](xs), total(xs), rtol=1e-6)
    np.testing.assert_allclose(space["f"](xs[::-1]), total(xs[::-1]), rtol=1e-6)
