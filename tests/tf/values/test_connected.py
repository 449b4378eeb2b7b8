"""tf/values/connected.py: functions that are connected by a derivative of zero."""

import jax
import jax.numpy as jnp
import numpy as np

from tapejax.jaxprs.dependence import kind_of
from tapejax.tape.operation import op_of
from tapejax.tape.recording import Entry
from tapejax.tf.values.connected import ZeroGradientOp, connected, zero_gradient

X = jnp.array([1.0, 2.0])


def test_a_marked_function_has_an_operation_with_links(no_shadow):
    @zero_gradient
    def sign(x):
        return jnp.sign(x)

    op = op_of(sign, {})
    assert type(op) is ZeroGradientOp
    assert op.links(Entry(op, (X,), (op.fn(X),)), (kind_of(X),), (0,)).by == (frozenset({0}),)


def test_connected_results_have_a_derivative_of_zero():
    y, pull = jax.vjp(lambda x: connected(jnp.ones(2), [x]), X)
    np.testing.assert_array_equal(y, [1.0, 1.0])
    np.testing.assert_array_equal(pull(jnp.ones(2))[0], [0.0, 0.0])
