"""tape/primitives.py: the operation of a primitive, or of a traced call. (tests/execution/host has a test_primitives.)"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback
from taping import X, Y

from tapejax.tape import runner
from tapejax.tape.operation import JittedOp, PerturbationOp
from tapejax.tape.primitives import TracedCall, TracedOp, new_op, silent, traced_or_refused, unrecognised
from tapejax.tape.pullback import PullbackOp, refuse_ref


def equation(fn, *args):
    (eqn,) = jax.make_jaxpr(fn)(*args).eqns
    return eqn.primitive, eqn.params


def test_a_primitive_is_bound():
    op, inputs = new_op(*equation(jnp.sin, X), [X])
    assert op.name == "sin" and inputs == (X,)
    np.testing.assert_array_equal(op.call(*inputs), jnp.sin(X))


def test_what_a_program_closes_over_comes_in_front():
    op, inputs = new_op(*equation(jax.jit(lambda x: x * Y), X), [X])
    assert any(x is Y for x in inputs) and inputs[-1] is X
    np.testing.assert_array_equal(op.call(*inputs)[0], X * Y)


def test_a_jitted_program_is_compiled_by_jax():
    assert type(unrecognised(*equation(jax.jit(jnp.sin), X))) is JittedOp
    assert type(unrecognised(*equation(jnp.sin, X))) is PerturbationOp


def test_what_changes_in_place_has_no_derivative():
    ref = jax.new_ref(X)
    op, _ = new_op(*equation(jax.jit(lambda: ref[...])), [])
    assert isinstance(op, PullbackOp) and op.pull is refuse_ref
    with pytest.raises(LookupError, match="no entry for: an operation on a jax.Ref"):
        op.pull([X])


def asks(x):
    """Asks Python for an answer, which may differ each time."""
    return io_callback(lambda x: np.asarray(x), X, x) * x


def test_what_asks_python_for_an_answer_is_not_differentiated():
    op, inputs = new_op(*equation(jax.jit(asks), X), [X])
    np.testing.assert_array_equal(op.call(*inputs)[0], X * X)
    with pytest.raises(LookupError, match="no entry for: asks, a compiled program that asks Python for something"):
        op.pull([X])


def test_any_other_primitive_has_a_derivative():
    assert traced_or_refused(*equation(jax.jit(jnp.sin), X), [X], {}) is None


def test_a_derivative_does_not_print(capsys):
    def shown(x):
        jax.debug.print("shown")
        return jnp.sin(x)

    primitive, params = equation(jax.jit(shown), X)
    silent(primitive, params)(X)
    jax.effects_barrier()
    assert capsys.readouterr().out == ""
    unrecognised(primitive, params).call(X)
    jax.effects_barrier()
    assert capsys.readouterr().out == "shown\n"


def test_a_traced_call_is_its_program():
    known = TracedCall(jax.make_jaxpr(lambda x: jnp.sin(x) * 2)(X), "f")
    op = TracedOp(known, None)
    np.testing.assert_allclose(runner.current.run(op, (X,))[0], jnp.sin(X) * 2, rtol=1e-6)
    assert op.canonicalised().name == known.new_op().name == "f"


def test_custom_rules_have_no_derivative_for_what_they_close_over():
    known = TracedCall(jax.make_jaxpr(jnp.multiply)(Y, X), "f", closed_over=(0,))
    fn = known.new_op().fn
    np.testing.assert_array_equal(jax.jvp(lambda x: fn(Y, x)[0], [X], [X])[1], Y * X)
    with pytest.raises(LookupError, match="no entry for: f with respect to an array that it closes over"):
        jax.vjp(fn, Y, X)
