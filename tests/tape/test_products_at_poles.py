"""`jaxprs.poles.scaled` under each of JAX's transformations: where it is a plain product, and where a zero stops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tapejax.execution.host.interpreter import Interpreter
from tapejax.jaxprs.poles import scaled

SLOPES = np.array([np.inf, -np.inf, np.nan, 2.0], jnp.ones(()).dtype)
ONES, ZEROS, MIXED = jnp.ones(4), jnp.zeros(4), jnp.array([0.0, 1.0, 0.0, 0.0])
NAN = np.nan


def pulled(slope, cotangent, stops=(False, True)):
    return jax.vjp(lambda t: scaled(slope, t, stops), jnp.ones_like(slope))[1](cotangent)[0]


def same(found, expected):
    np.testing.assert_array_equal(found, expected)


def test_it_is_a_product():
    same(scaled(SLOPES, 3 * ONES), [np.inf, -np.inf, NAN, 6])
    same(scaled(SLOPES, ZEROS), [NAN, NAN, NAN, 0])
    same(scaled(SLOPES, ZEROS, (True, False)), [0, 0, 0, 0])


def test_zero_comes_back_as_zero():
    same(pulled(SLOPES, ZEROS), [0, 0, 0, 0])
    same(pulled(SLOPES, MIXED), [0, -np.inf, 0, 0])
    same(pulled(SLOPES, ONES), SLOPES)
    same(pulled(SLOPES, ZEROS, (True, False)), [NAN, NAN, NAN, 0])


@pytest.mark.parametrize("around", [lambda f: f, jax.jit, jax.checkpoint], ids=["plain", "jit", "checkpoint"])
def test_under_vmap(around):
    """Of one operand, of the other, of both; also along another axis than the first."""
    pull = around(pulled)
    rows = jnp.stack([ZEROS, MIXED, ONES])
    expected = [[0, 0, 0, 0], [0, -np.inf, 0, 0], SLOPES]
    same(jax.vmap(pull, (None, 0))(SLOPES, rows), expected)
    same(jax.vmap(pull, (None, 1), 1)(SLOPES, rows.T), np.transpose(expected))
    same(jax.vmap(pull)(jnp.stack([SLOPES] * 3), rows), expected)
    same(jax.vmap(pull, (0, None))(jnp.stack([SLOPES, ONES]), MIXED), [expected[1], MIXED])
    same(jax.vmap(jax.vmap(pull, (None, 0)), (0, None))(jnp.stack([SLOPES, ONES]), rows), [expected, rows])
    same(jax.vmap(scaled, (0, None))(jnp.stack([SLOPES, ONES]), ONES), [SLOPES, ONES])


def test_in_a_scan():
    def step(t, slope):
        return scaled(slope, t), None

    def last(t):
        return jax.lax.scan(step, t, jnp.stack([SLOPES, SLOPES]))[0]

    same(jax.vjp(last, ONES)[1](MIXED)[0], [0, np.inf, 0, 0])


def test_forward_mode_multiplies():
    same(jax.jvp(lambda t: scaled(SLOPES, t), (ONES,), (MIXED,))[1], [NAN, -np.inf, NAN, 0])
    same(jax.jvp(lambda t: scaled(SLOPES, t, (True, True)), (ONES,), (MIXED,))[1], [0, -np.inf, 0, 0])


def test_the_derivative_by_the_slope():
    """It is the other factor; and of the transpose the cotangent."""
    slope, t = jnp.array([2.0, 3.0]), jnp.array([0.0, 5.0])
    same(jax.grad(lambda s: scaled(s, t).sum())(slope), t)
    same(jax.jvp(lambda s: scaled(s, t), (slope,), (slope,))[1], slope * t)

    def back(slope, cotangent):
        return jax.vjp(lambda x: scaled(slope, x), t)[1](cotangent)[0].sum()

    same(jax.grad(back)(slope, t), t)
    same(jax.grad(back, 1)(slope, t), slope)  # where the cotangent is zero as well


def test_higher_orders():
    @jax.custom_jvp
    def root(x):
        return jnp.sqrt(x)

    @root.defjvp
    def _(primals, tangents):
        y = root(*primals)
        return y, scaled(0.5 / y, *tangents)

    def guarded(x):
        return jnp.sum(jnp.where(x > 1, root(x) ** 3, 0))

    x = jnp.array([0.0, 4.0])
    same(jax.grad(guarded)(x), [0, 3])
    same(jax.jacrev(root)(x), [[np.inf, 0], [0, 0.25]])
    np.testing.assert_allclose(jax.hessian(guarded)(x)[1], [0, 0.375])
    np.testing.assert_allclose(jax.grad(jax.grad(jax.grad(root)))(4.0), 3 / 256)
    np.testing.assert_allclose(jax.jvp(jax.grad(lambda x: root(x).sum()), (x[1:],), (x[1:],))[1], [-0.125])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
def test_dtypes(dtype):
    found = pulled(jnp.array([np.inf, 2.0], dtype), jnp.array([0, 3], dtype))
    assert found.dtype == dtype
    same(found.astype("complex64"), [0, 6])


def test_numpy_evaluates_it():
    for stops in ((False, True), (True, True)):
        for fn in (scaled, pulled):
            traced = jax.make_jaxpr(lambda s, t, fn=fn, stops=stops: fn(s, t, stops))(SLOPES, MIXED)
            (found,) = Interpreter(traced)([np.asarray(SLOPES), np.asarray(MIXED)])
            same(found, fn(SLOPES, MIXED, stops))


def test_it_is_exported_as_plain_operations():
    exported = jax.export.export(jax.jit(scaled))(SLOPES, ONES)
    assert "custom_call" not in exported.mlir_module()
    same(exported.call(SLOPES, ONES), SLOPES)
