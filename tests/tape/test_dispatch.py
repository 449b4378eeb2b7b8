"""tape/dispatch.py: an operation that is known already is run, and noted as one entry."""

import jax
import jax.numpy as jnp
import numpy as np
from taping import X, Y, recorded

from tapejax.jaxprs.fence import current_trace
from tapejax.tape import dispatch
from tapejax.tape.operation import op_of

MULTIPLY = op_of(jnp.multiply, {})


def test_without_a_tape_it_is_run():
    np.testing.assert_array_equal(dispatch.run(MULTIPLY, (X, Y)), X * Y)


def test_on_a_tape_it_is_one_entry():
    recording, y = recorded(lambda x: dispatch.run(MULTIPLY, (x, Y)), X)
    (entry,) = recording.entries
    assert entry.op is MULTIPLY and entry.inputs == (X, Y) and entry.outputs == (y,)


def test_a_number_stays_one_on_the_entry():
    recording, _ = recorded(lambda x: dispatch.run(MULTIPLY, (x, 2.0)), X)
    assert recording.entries[0].inputs[1] == 2.0 and type(recording.entries[0].inputs[1]) is float


def test_what_fails_is_not_noted_and_the_trace_is_as_before():
    before = current_trace()
    three, failed = jnp.ones(3), []

    def run(x):
        try:
            dispatch.run(MULTIPLY, (x, three))
        except TypeError as error:
            failed.append(error)

    recording, _ = recorded(run, X)
    assert failed and not recording.entries and current_trace() is before


def test_sizes_stay_known_in_a_program():
    size = jax.jit(lambda x: x.reshape(int(dispatch.run(MULTIPLY, (np.int32(2), np.int32(3)))), -1))(jnp.ones(12))
    assert size.shape == (6, 2)
