"""tf/values/staging.py: calls of a `function`, as tapes see them."""

import jax.numpy as jnp

from tapejax.jaxprs.dependence import kind_of
from tapejax.tape.recording import Entry
from tapejax.tf.values.staging import JointOp

X, Y = jnp.array([1.0, 2.0]), jnp.array([3.0, 5.0])


def test_an_input_of_one_result_is_connected_to_all():
    op = JointOp("f", lambda x, y: [x * 2, y * 2])
    entry = Entry(op, (X, Y), tuple(op.fn(X, Y)))
    found = op.links(entry, (kind_of(X), kind_of(Y)), (0, 1))
    assert found.by == (frozenset({0, 1}),) * 2
