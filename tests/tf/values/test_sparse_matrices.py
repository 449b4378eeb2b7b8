"""The sparse matrices of `jax.experimental.sparse` as sources and targets: gradients are those of its own `grad`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import sparse

import tapejax as tf

KINDS = [sparse.BCOO, sparse.BCSR, sparse.COO, sparse.CSR, sparse.CSC]
DENSE = np.array([[1.0, 0.0, 3.0], [0.0, -2.0, 0.5]])


@pytest.fixture(params=[False, True], ids=["x32", "x64"], autouse=True)
def wide(request):
    with jax.enable_x64(request.param):
        yield


def matrix_and_vector(kind=sparse.BCOO):
    return kind.fromdense(jnp.asarray(DENSE)), jnp.array([3.0, 4.0, 5.0])


def gradient(f, x, **options):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x, **options)


def require_same(actual, expected):
    assert type(actual) is type(expected) and actual.shape == expected.shape and actual.dtype == expected.dtype
    for x, y in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal(actual.todense(), expected.todense())


@pytest.mark.parametrize("kind", KINDS)
def test_a_gradient_is_that_of_jaxs_own_grad(kind):
    m, v = matrix_and_vector(kind)

    def f(m):
        return ((m @ v) ** 2).sum()

    found, expected = gradient(f, m), sparse.grad(f)(m)
    require_same(found, expected)
    np.testing.assert_array_equal(found @ v, expected @ v)
    require_same(gradient(f, m, unconnected_gradients="zero"), expected)
    require_same(jax.jit(lambda m: gradient(f, m))(m), expected)


def test_in_lists_and_dicts():
    m, v = matrix_and_vector()

    def f(parameters):
        return (parameters["m"] @ parameters["v"]).sum()

    found, expected = gradient(f, {"m": m, "v": v}), sparse.grad(f)({"m": m, "v": v})
    require_same(found["m"], expected["m"])
    np.testing.assert_array_equal(found["v"], expected["v"])
    pair = gradient(lambda pair: (pair[0] @ pair[1]).sum(), [m, v])
    require_same(pair[0], expected["m"])


def test_what_is_not_connected():
    m, v = matrix_and_vector()
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([m, v])
        y = v.sum()
    assert tape.gradient(y, m) is None
    of_matrix, of_vector = tape.gradient(y, [m, v])
    assert of_matrix is None and of_vector.tolist() == [1.0, 1.0, 1.0]
    zeros = tape.gradient(y, m, unconnected_gradients="zero")
    np.testing.assert_array_equal(zeros.indices, m.indices)
    assert not zeros.todense().any()


def test_a_jacobian_is_a_batch_of_matrices():
    m, v = matrix_and_vector()
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(m)
        y = m @ v
        table = jnp.outer(y, y)
    require_same(tape.jacobian(y, m), sparse.jacrev(lambda m: m @ v)(m))
    require_same(tape.jacobian(table, m), sparse.jacrev(lambda m: jnp.outer(m @ v, m @ v))(m))


def test_a_sparse_target():
    m, _ = matrix_and_vector()
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(m)
        y = m * 2.0
    np.testing.assert_array_equal(tape.gradient(y, m).todense(), np.where(DENSE == 0.0, 0.0, 2.0))
    np.testing.assert_array_equal(tape.gradient(y, m, output_gradients=y).todense(), 4.0 * DENSE)
    with tf.autodiff.ForwardAccumulator(m, m) as accumulator:
        y = m * 2.0
    require_same(accumulator.jvp(y), y)


def test_a_second_derivative():
    m, v = matrix_and_vector()

    def slope(m):
        return (gradient(lambda m: ((m @ v) ** 3).sum(), m) @ v).sum()

    expected = sparse.grad(lambda m: (sparse.grad(lambda m: ((m @ v) ** 3).sum())(m) @ v).sum())(m)
    np.testing.assert_allclose(gradient(slope, m).todense(), expected.todense(), rtol=1e-5)


def test_in_a_module_it_is_what_the_library_gives():
    """Integers of a module have no gradient, those of a matrix in it included: updates leave them alone."""
    eqx = pytest.importorskip("equinox")

    class Layer(eqx.Module):
        w: sparse.BCOO
        b: jax.Array

        def __call__(self, x):
            return self.w @ x + self.b

    m, v = matrix_and_vector()
    layer = Layer(m, jnp.array([1.0, 2.0]))
    found = gradient(lambda layer: (layer(v) ** 2).sum(), layer)
    expected = eqx.filter_grad(lambda layer: (layer(v) ** 2).sum())(layer)
    assert found.w.indices is None and expected.w.indices is None
    np.testing.assert_array_equal(found.w.data, expected.w.data)
    np.testing.assert_array_equal(eqx.apply_updates(layer, found).w.indices, m.indices)
