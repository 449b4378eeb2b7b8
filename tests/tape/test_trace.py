"""tape/trace.py: what JAX executes while a tape is active passes through a `RecorderTrace`."""

import jax
import jax.numpy as jnp
import numpy as np
from taping import X, Y, recorded

from tapejax.tape.query import Query
from tapejax.tape.sweep import sweep


def names(fn, *arrays):
    return [entry.op.name for entry in recorded(fn, *arrays)[0].entries]


def gradient(fn, x):
    recording, y = recorded(fn, x)
    return Query(recording, [y], [x]).derivative(lambda program, values: sweep(program, values))[0]


def test_each_primitive_is_an_entry():
    assert names(lambda x: jnp.sin(x) * jnp.cos(x), X) == ["sin", "cos", "multiply"]


def test_a_jitted_function_is_one():
    @jax.jit
    def f(x):
        return jnp.sin(x) * 2.0

    assert names(f, X) == ["f"]


def test_a_custom_rule_is_kept():
    @jax.custom_jvp
    def f(x):
        return jnp.sum(x)

    f.defjvp(lambda primals, tangents: (f(*primals), 7.0 * jnp.sum(tangents[0])))
    assert names(f, X)[0] == "f"
    np.testing.assert_array_equal(gradient(f, X), [7.0, 7.0])


def test_gradient_reaches_what_is_closed_over():
    recording, y = recorded(jax.jit(lambda z: jnp.sum(X * z)), Y)
    recording.watch(X)
    recording, y = recorded(lambda x: jax.jit(lambda z: jnp.sum(x * z))(Y), X)
    (slope,) = Query(recording, [y], [X]).derivative(lambda program, values: sweep(program, values))
    np.testing.assert_array_equal(slope, Y)


def test_an_input_that_comes_out_is_a_value_of_its_own():
    recording, y = recorded(lambda x: jax.lax.stop_gradient(x), X)
    assert y is not X and not recording.entries or recording.entries[0].outputs[0] is y


def test_what_jax_transforms_is_recorded_too():
    np.testing.assert_allclose(gradient(lambda x: jnp.sum(jax.vmap(jnp.sin)(x)), X), jnp.cos(X), rtol=1e-6)
    np.testing.assert_allclose(gradient(lambda x: jax.grad(lambda z: jnp.sum(z**3))(x)[0], X), [6.0, 0.0])
