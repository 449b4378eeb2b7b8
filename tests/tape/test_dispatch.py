"""tape/dispatch.py: an operation that is known already is run, and noted as one entry."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from taping import X, Y, recorded

from tapejax.jaxprs.fence import current_trace
from tapejax.tape import active, dispatch
from tapejax.tape.operation import Op, PythonOp, op_of
from tapejax.tape.recording import Recording

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


def test_what_fails_is_not_noted_and_what_follows_is():
    before = current_trace()
    three, failed = jnp.ones(3), []

    def run(x):
        try:
            dispatch.run(MULTIPLY, (x, three))
        except TypeError as error:
            failed.append(error)
        return dispatch.run(MULTIPLY, (x, x))

    recording, y = recorded(run, X)
    assert failed and [entry.outputs for entry in recording.entries] == [(y,)] and current_trace() is before


def test_sizes_stay_known_in_a_program():
    size = jax.jit(lambda x: x.reshape(int(dispatch.run(MULTIPLY, (np.int32(2), np.int32(3)))), -1))(jnp.ones(12))
    assert size.shape == (6, 2)


def test_a_result_that_is_an_input_is_copied():
    same = Op("same", lambda x: x, lambda x: x)
    recording, y = recorded(lambda x: dispatch.run(same, (x,)), X)
    assert y is not X and recording.entries[0].outputs[0] is y
    np.testing.assert_array_equal(y, X)


def test_every_active_recording_gets_the_entry():
    inner = Recording()
    outer, _ = recorded(lambda x: active.also(inner, dispatch.run, MULTIPLY, (x, Y)), X)
    assert len(inner.entries) == 1 and outer.entries == inner.entries


def reads_a_variable(x):
    """As a variable does when it is read: allowed in a `reading` block only."""
    if active.tracing.reads is None:
        active.tracing.read_refused = True
        raise RuntimeError("no reads here")
    return x * 2


def test_a_derivative_that_was_refused_a_read_runs_again_with_reads():
    op = PythonOp("f", reads_a_variable)
    np.testing.assert_array_equal(dispatch.run_python(op, (X,), True), X * 2)
    assert active.tracing.reads is None
    with pytest.raises(RuntimeError, match="no reads here"):
        dispatch.run_python(op, (X,), False)


def test_another_failure_is_not_tried_again():
    runs = []

    def fails(x):
        runs.append(x)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        dispatch.run_python(PythonOp("f", fails), (X,), True)
    assert len(runs) == 1
