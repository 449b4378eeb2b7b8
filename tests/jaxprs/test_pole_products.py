"""`jaxprs/poles.py` (another `test_poles.py` is TensorFlow's): a product through which zero comes back as zero."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tapejax.jaxprs.poles import product, scaled

SLOPE, T = np.float32([np.inf, np.nan, 2.0, np.inf]), jnp.array([0.0, 0.0, 3.0, 1.0], jnp.float32)


def transposed(slope, cotangent, **options):
    (found,) = jax.linear_transpose(lambda t: scaled(slope, t, **options), T)(cotangent)
    return found


def test_forward_it_is_the_product_by_default():
    np.testing.assert_array_equal(scaled(SLOPE, T), SLOPE * T)


def test_backward_zero_gives_zero_by_default_be_the_slope_infinite_or_undefined():
    np.testing.assert_array_equal(transposed(SLOPE, T), [0.0, 0.0, 6.0, np.inf])


def test_where_zero_stops_can_be_chosen_for_each_direction():
    np.testing.assert_array_equal(scaled(SLOPE, T, stops=(True, False)), [0.0, 0.0, 6.0, np.inf])
    np.testing.assert_array_equal(transposed(SLOPE, T, stops=(True, False)), SLOPE * T)
    np.testing.assert_array_equal(product(SLOPE, T, stops=(True, True)), scaled(SLOPE, T, stops=(True, True)))


def test_a_nonzero_factor_meets_the_pole():
    found = transposed(SLOPE, jnp.ones_like(T))
    assert np.isinf(found[0]) and np.isnan(found[1]) and np.isinf(found[3])


@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0), (1, 0)])
def test_in_a_batch_it_is_the_same(axes):
    slopes = jnp.stack([SLOPE, SLOPE + 1], axes[0]) if axes[0] is not None else SLOPE
    ts = jnp.stack([T, T * 2]) if axes[1] is not None else T
    found = jax.vmap(lambda s, t: scaled(s, t, (True, True)), axes)(slopes, ts)
    for i in range(2):
        slope = SLOPE if axes[0] is None else jnp.take(slopes, i, axes[0])
        np.testing.assert_array_equal(found[i], scaled(slope, ts[i] if axes[1] == 0 else ts, (True, True)))


def test_it_has_derivatives_of_any_order_in_both_factors():
    f = lambda s, t: scaled(s, scaled(s, t)).sum()  # s * s * t  # noqa: E731
    s, t = jnp.array([2.0, 3.0]), jnp.array([5.0, 7.0])
    np.testing.assert_allclose(jax.grad(f, 0)(s, t), 2 * s * t)
    np.testing.assert_allclose(jax.grad(f, 1)(s, t), s * s)
    np.testing.assert_allclose(jax.hessian(f)(s, t), np.diag(2 * t))
    np.testing.assert_allclose(jax.jvp(f, (s, t), (t, s))[1], (2 * s * t * t + s * s * s).sum())


def test_it_runs_as_a_compiled_program_too():
    np.testing.assert_array_equal(jax.jit(scaled, static_argnums=2)(SLOPE, T, (True, True)), [0.0, 0.0, 6.0, np.inf])


def test_the_gradient_of_a_root_at_zero_where_it_is_not_taken():
    """As TensorFlow has it, without NaN: ``where(x > 0, sqrt(x), 0)``."""

    @jax.custom_jvp
    def root(x):
        return jnp.sqrt(x)

    root.defjvp(lambda primals, tangents: (root(*primals), scaled(0.5 / root(*primals), *tangents)))
    x = jnp.array([0.0, 4.0])
    np.testing.assert_array_equal(jax.grad(lambda x: jnp.where(x > 0, root(x), 0).sum())(x), [0.0, 0.25])
    assert np.isnan(jax.grad(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0).sum())(x)[0])
