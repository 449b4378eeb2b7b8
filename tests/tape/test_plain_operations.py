"""tape/primitives.py: the operation of a primitive, or of a traced call. (tests/execution/host has a test_primitives.)"""

import jax
import jax.numpy as jnp
import numpy as np
from taping import X, Y

from tapejax.tape.operation import JittedOp, PythonOp
from tapejax.tape.primitives import TracedCall, TracedOp, plain_op, unrecognised
from tapejax.tape.pullback import PullbackOp, refuse_ref


def equation(fn, *args):
    (eqn,) = jax.make_jaxpr(fn)(*args).eqns
    return eqn.primitive, eqn.params


def test_a_primitive_is_bound():
    op, inputs = plain_op(*equation(jnp.sin, X), [X])
    assert op.name == "sin" and inputs == (X,)
    np.testing.assert_array_equal(op.call(*inputs), jnp.sin(X))


def test_what_a_program_closes_over_comes_in_front():
    op, inputs = plain_op(*equation(jax.jit(lambda x: x * Y), X), [X])
    assert any(x is Y for x in inputs) and inputs[-1] is X
    np.testing.assert_array_equal(op.call(*inputs)[0], X * Y)


def test_a_jitted_program_is_compiled_by_jax():
    assert type(unrecognised(*equation(jax.jit(jnp.sin), X))) is JittedOp
    assert isinstance(unrecognised(*equation(jnp.sin, X)), PythonOp)


def test_what_changes_in_place_has_no_derivative():
    ref = jax.new_ref(X)
    op, _ = plain_op(
        *equation(
            jax.jit(lambda: ref[...]),
        ),
        [],
    )
    assert isinstance(op, PullbackOp) and op.pull is refuse_ref


def test_a_traced_call_is_its_program():
    known = TracedCall(jax.make_jaxpr(lambda x: jnp.sin(x) * 2)(X), "f")
    op = TracedOp(known, None)
    np.testing.assert_allclose(op.call(X)[0], jnp.sin(X) * 2, rtol=1e-6)
    assert op.canonicalised().name == known.plain().name == "f"
