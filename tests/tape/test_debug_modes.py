"""JAX's modes that look for numbers: a tape raises where ``jax.grad`` does, each time, and leaves the thread as it found it."""

import jax
import jax.numpy as jnp
import pytest

from tapejax import GradientTape

POLES = {"jax_debug_nans": lambda x: 0.0 * jnp.sqrt(x), "jax_debug_infs": jnp.sqrt}


@pytest.fixture(params=POLES)
def mode(request):
    before = getattr(jax.config, request.param)
    jax.config.update(request.param, True)
    try:
        yield request.param
    finally:
        jax.config.update(request.param, before)


def raises(gradient, x):
    try:
        gradient(x)
    except FloatingPointError:
        return True
    return False


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("jitted", [False, True])
def test_it_raises_each_time_and_so_does_jax_afterwards(mode, jitted, wide):
    fn = jax.jit(POLES[mode]) if jitted else POLES[mode]

    def by_tape(x):
        with GradientTape() as tape:
            tape.watch(x)
            y = fn(x)
        return tape.gradient(y, x)

    with jax.enable_x64(wide):
        points = [jnp.asarray(x) for x in (1.0, 0.0, 0.0, 1.0, 0.0)]
        expected = [raises(jax.grad(fn), x) for x in points]
        assert expected == [False, True, True, False, True]
        assert [raises(by_tape, x) for x in points] == expected
        assert [raises(jax.grad(fn), x) for x in points] == expected


@pytest.mark.parametrize("mode_name", POLES)
def test_a_local_mode_ends_with_its_block(mode_name):
    fn = POLES[mode_name]
    with GradientTape():
        pass
    with getattr(jax, mode_name.removeprefix("jax_"))(True):
        assert raises(jax.grad(fn), jnp.float32(0.0))
    assert not raises(jax.grad(fn), jnp.float32(0.0))
    jax.config.update(mode_name, True)
    try:
        with getattr(jax, mode_name.removeprefix("jax_"))(False):
            assert not raises(jax.grad(fn), jnp.float32(0.0))
        assert raises(jax.grad(fn), jnp.float32(0.0))
    finally:
        jax.config.update(mode_name, False)
