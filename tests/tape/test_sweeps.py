"""tape/sweep.py: reverse and forward mode, a step at a time. (tests/tf/parity has a test_sweep.)"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from taping import X, Y, program_of, recorded

from tapejax.tape.query import Query
from tapejax.tape.sweep import add, push, sweep, sweep_steps


def fn(x):
    return jnp.sin(x) * x * Y


SLOPE = jax.vmap(jax.grad(lambda x, y: jnp.sin(x) * x * y))(X, Y)


def test_cotangents_go_back():
    program, values = program_of(fn, X)
    np.testing.assert_allclose(sweep(program, values)[0], SLOPE, rtol=1e-5)
    np.testing.assert_allclose(sweep(program, values, [2 * Y])[0], 2 * Y * SLOPE, rtol=1e-5)


def test_tangents_go_forward():
    program, values = program_of(fn, X)
    np.testing.assert_allclose(push(program, values, [Y])[0], SLOPE * Y, rtol=1e-5)
    assert push(program, values, [None]) == [None]


def test_the_steps_come_in_reverse():
    program, values = program_of(fn, X)
    ct = {}
    positions = [position for position, _ in sweep_steps(program, values, [Y], ct)]
    assert positions == [2, 1, 0]
    np.testing.assert_allclose(ct[program.sources[0]], SLOPE * Y, rtol=1e-5)


def test_traced_it_is_one_program():
    program, values = program_of(fn, X)
    np.testing.assert_allclose(jax.jit(lambda *v: sweep(program, v))(*values)[0], SLOPE, rtol=1e-5)


def test_what_comes_for_one_slot_is_added_up_and_none_is_zero():
    found = {}
    for slot, x in ((0, X), (0, None), (0, Y), (None, X), (1, None)):
        add(found, slot, x)
    assert list(found) == [0]
    np.testing.assert_array_equal(found[0], X + Y)


def test_a_step_that_no_cotangent_reaches_is_left_out():
    recording, (one, other) = recorded(lambda x: (jnp.sin(x), jnp.cos(x)), X)
    program, values = Query(recording, [one, other], [X]).program()
    assert [position for position, _ in sweep_steps(program, values, [None, Y], {})] == [1]
    assert sweep(program, values, [None, None]) == [None]
    with pytest.raises(ValueError, match="shorter"):
        sweep(program, values, [Y])
