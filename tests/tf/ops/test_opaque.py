"""tf/ops/opaque.py: the operation of a Python function that has no gradient."""

import jax.numpy as jnp

from tapejax.jaxprs.dependence import kind_of
from tapejax.tape import rules
from tapejax.tape.recording import Entry
from tapejax.tf.ops.opaque import ConstantOp

X = jnp.array([1.0, 2.0])


def test_a_constant_depends_on_nothing_unless_a_gradient_is_registered():
    op = ConstantOp("opaque.constant", lambda x: x * 2)
    entry = Entry(op, (X,), (op.fn(X),))
    assert op.links(entry, (kind_of(X),), (0,)).by == (frozenset(),)
    rules.register("opaque.constant", lambda inputs, outputs, cotangents: cotangents)
    assert op.links(entry, (kind_of(X),), (0,)).by == (frozenset({0}),)
