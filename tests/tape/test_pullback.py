"""tape/pullback.py: operations that bring their own pullback."""

import jax.numpy as jnp
import numpy as np
import pytest
from taping import X, recorded

from tapejax.tape import dispatch
from tapejax.tape.operation import op_of
from tapejax.tape.pullback import PullbackOp, refuse_compiled, refuse_ref, without_derivative
from tapejax.tape.query import Query
from tapejax.tape.sweep import push, sweep


def program():
    # as a custom gradient: the results come first, as values that stand for the outputs
    op = PullbackOp("own", lambda y, x: [y + 0], lambda cotangents: [None, cotangents[0] * 7.0], results=1)
    recording, (y,) = recorded(lambda x: dispatch.run(op, (x * 2, x)), X)
    return Query(recording, [y], [X]).program()


def test_python_is_called_with_the_cotangents():
    np.testing.assert_array_equal(sweep(*program())[0], [7.0, 7.0])


def test_forward_mode_is_its_transpose():
    np.testing.assert_array_equal(push(*program(), [X])[0], 7.0 * X)


def test_what_cannot_be_differentiated_says_why():
    with pytest.raises(LookupError, match="jax.Ref"):
        refuse_ref([X])
    with pytest.raises(TypeError, match="lowered and compiled ahead of time"):
        refuse_compiled()
    with pytest.raises(LookupError, match="asks Python for something"):
        without_derivative(op_of(jnp.sin, {})).pull([X])


def test_it_takes_constants_in_front():
    np.testing.assert_allclose(without_derivative(op_of(jnp.sin, {}), 1).call(None, X), jnp.sin(X), rtol=1e-6)


def test_results_and_integers_have_no_gradient():
    op = PullbackOp("own", lambda y, x, n: [y + 0, n], lambda cotangents: [None, cotangents[0], None], results=1)
    recording, (y, _) = recorded(lambda x: dispatch.run(op, (x * 2, x, jnp.array([1, 2]))), X)
    entry = recording.entries[-1]
    assert op.links(entry, (), ()).by == (frozenset({1}), frozenset())
    program, _ = Query(recording, [y], [X]).program()
    (step,) = program.steps  # the product that gave the result leads nowhere
    assert step.active_ins == (1,) and step.active_outs == (0,)


def test_what_a_pullback_computes_can_be_recorded_in_its_turn():
    op = PullbackOp("own", lambda x: [x * 1], lambda cotangents: [cotangents[0] * X * X])
    inner, (y,) = recorded(lambda x: dispatch.run(op, (x,)), X)
    outer, (slope,) = recorded(lambda x: sweep(*Query(inner, [y], [x]).program()), X)
    np.testing.assert_array_equal(sweep(*Query(outer, [slope], [X]).program())[0], 2 * X)


def test_a_refusal_comes_when_the_derivative_is_asked_for_and_names_the_operation():
    recording, y = recorded(lambda x: dispatch.run(without_derivative(op_of(jnp.sin, {})), (x,)), X)
    np.testing.assert_allclose(y, jnp.sin(X), rtol=1e-6)
    with pytest.raises(LookupError, match="no entry for: sin,"):
        sweep(*Query(recording, [y], [X]).program())
