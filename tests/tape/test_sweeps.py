"""tape/sweep.py: reverse and forward mode, a step at a time. (tests/tf/parity has a test_sweep.)"""

import jax
import jax.numpy as jnp
import numpy as np
from taping import X, Y, program_of

from tapejax.tape.sweep import push, replay, sweep, sweep_steps


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


def test_it_is_replayed_from_other_values():
    program, values = program_of(fn, X)
    np.testing.assert_allclose(replay(program, values, [Y])[0], fn(Y), rtol=1e-5)
