"""tape/accumulator.py: derivatives in the direction of a tangent, on plain arrays."""

import jax.numpy as jnp
import numpy as np
import pytest
from taping import X, Y

from tapejax.tape.accumulator import ForwardAccumulator
from tapejax.tape.gradient_tape import GradientTape


def test_a_product_of_the_jacobian_and_a_vector():
    with ForwardAccumulator(X, Y) as accumulator:
        y = X * X
    np.testing.assert_array_equal(accumulator.jvp(y), 2 * X * Y)
    assert accumulator.jvp([y, X])[1] is not None


def test_none_or_zeros_for_what_does_not_depend_on_it():
    with ForwardAccumulator(X, Y) as accumulator:
        y = jnp.sin(Y)
    assert accumulator.jvp(y) is None
    np.testing.assert_array_equal(accumulator.jvp(y, "zero"), [0.0, 0.0])


def test_tangents_are_as_their_primals():
    with pytest.raises(ValueError, match="tangents\\[0\\] has shape"):
        ForwardAccumulator(X, jnp.ones(3))
    with pytest.raises(ValueError, match="was specified as a primal before"):
        ForwardAccumulator([X, X], [Y, Y])


def test_it_is_entered_once_at_a_time():
    with ForwardAccumulator(X, Y) as accumulator:
        with pytest.raises(ValueError, match="already recording"):
            accumulator.__enter__()


def test_forward_over_forward():
    with ForwardAccumulator(X, jnp.ones(2)) as outer:
        with ForwardAccumulator(X, jnp.ones(2)) as inner:
            y = X**3
        slope = inner.jvp(y)
    np.testing.assert_allclose(outer.jvp(slope), 6 * X)


def test_what_is_computed_outside_the_block_does_not_count():
    before = X * 2.0
    with ForwardAccumulator(X, Y) as accumulator:
        inside = before * X
    after = inside * X
    assert accumulator.jvp([before, after]) == [None, None]
    np.testing.assert_array_equal(accumulator.jvp(inside), before * Y)


def test_a_product_is_recorded_outside_and_not_by_the_accumulator_itself():
    with GradientTape() as tape:
        tape.watch(X)
        with ForwardAccumulator(X, Y) as accumulator:
            y = jnp.sum(X**3)
            slope = accumulator.jvp(y)
            assert accumulator.jvp(slope) is None
    np.testing.assert_allclose(tape.gradient(slope, X), 6 * X * Y)


def test_what_is_refused():
    with pytest.raises(TypeError, match="Argument `primals` should be"):
        ForwardAccumulator("a", X)
    with pytest.raises(ValueError, match="structure"):
        ForwardAccumulator([X, Y], [X])
    with ForwardAccumulator(X, Y) as accumulator:
        y = X * X
    with pytest.raises(ValueError, match="Unknown value for unconnected_gradients: 'nan'"):
        accumulator.jvp(y, "nan")
    with pytest.raises(TypeError, match="Argument `primals` should be"):
        accumulator.jvp("y")
