"""tape/gradient_tape.py: what the user holds, on plain arrays."""

import jax.numpy as jnp
import numpy as np
import pytest
from taping import X, Y

from tapejax.tape.gradient_tape import GradientTape, UnconnectedGradients


def taped(persistent=False):
    with GradientTape(persistent) as tape:
        tape.watch(X)
        y = jnp.sum(X * X * Y)
    return tape, y


def test_a_gradient_structured_as_the_sources():
    tape, y = taped()
    found = tape.gradient(y, {"x": X, "y": Y})
    np.testing.assert_array_equal(found["x"], 2 * X * Y)
    assert found["y"] is None


def test_one_answer_unless_it_is_persistent():
    tape, y = taped()
    tape.gradient(y, X)
    with pytest.raises(RuntimeError, match="only be used to compute one set of gradients"):
        tape.gradient(y, X)
    tape, y = taped(persistent=True)
    np.testing.assert_array_equal(tape.gradient(y, X), tape.gradient(y, X))


def test_zeros_are_given_where_they_are_asked_for():
    tape, y = taped()
    np.testing.assert_array_equal(tape.gradient(y, Y, unconnected_gradients=UnconnectedGradients.ZERO), [0.0, 0.0])
    with pytest.raises(ValueError, match="Unknown value for unconnected_gradients: 'nan'"):
        taped()[0].gradient(y, X, unconnected_gradients="nan")


def test_it_is_entered_once_at_a_time():
    with GradientTape() as tape:
        with pytest.raises(ValueError, match="Tape is still recording"):
            tape.__enter__()
    with pytest.raises(RuntimeError, match="enter it first"):
        with GradientTape().stop_recording():
            pass


def test_what_is_computed_while_it_is_stopped_is_a_constant():
    with GradientTape() as tape:
        tape.watch(X)
        with tape.stop_recording():
            factor = X * X
        y = jnp.sum(factor * X)
    np.testing.assert_array_equal(tape.gradient(y, X), X * X)


def test_reset_forgets():
    with GradientTape() as tape:
        tape.watch(X)
        y = jnp.sum(X)
        tape.reset()
    assert len(tape) == 0 and tape.gradient(y, X) is None


def test_an_inner_tape_is_differentiated_by_an_outer_one():
    with GradientTape() as outer:
        outer.watch(X)
        with GradientTape() as inner:
            inner.watch(X)
            y = jnp.sum(X**3)
        slope = inner.gradient(y, X)
        z = jnp.sum(slope)
    np.testing.assert_allclose(outer.gradient(z, X), 6 * X)


REFUSED = {
    "one Tensor": (TypeError, lambda tape: tape.jacobian([X], X)),
    "`sources` should be": (TypeError, lambda tape: tape.gradient(X, "x")),
    "got 2 for 1": (ValueError, lambda tape: tape.gradient([X], X, output_gradients=[X, X])),
    "`target` must have rank at least 2": (ValueError, lambda tape: tape.batch_jacobian(X, X)),
    "to match": (ValueError, lambda tape: tape.batch_jacobian(jnp.ones((2, 1)), jnp.ones((3, 1)))),
    "not recording": (ValueError, lambda tape: tape.reset()),
    "needs a tape that was entered": (AttributeError, lambda tape: GradientTape().watch(X)),
    "Passed in object 1.0": (ValueError, lambda tape: tape.watch(1.0)),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused_leaves_the_tape_usable(text):
    error, ask = REFUSED[text]
    tape, y = taped()
    with pytest.raises(error, match=text):
        ask(tape)
    np.testing.assert_array_equal(tape.gradient(y, X), 2 * X * Y)
