"""Random training loops whose steps differ in many ways (`loops.py`), with what runs ahead and without."""

import jax
import pytest

from tests.execution import loops

pytestmark = pytest.mark.skipif(
    bool(jax.config.jax_debug_nans or jax.config.jax_disable_jit), reason="no operation runs before it arrives"
)


@pytest.mark.parametrize("x64", [False, True], ids=["32 bits", "64 bits"])
@pytest.mark.parametrize("seed", range(6))
def test_a_loop_gives_what_it_gives_without_plans(seed, x64, no_shadow):
    with jax.enable_x64(x64):
        different, _ = loops.check(1000 + seed)
    assert not different


@pytest.mark.slow
@pytest.mark.parametrize("x64", [False, True], ids=["32 bits", "64 bits"])
@pytest.mark.parametrize("seed", range(2000, 2400, 10))
def test_many_loops(seed, x64, no_shadow):
    with jax.enable_x64(x64):
        different = {k: found for k in range(seed, seed + 10) if (found := loops.check(k)[0])}
    assert not different


def test_plans_answer(no_shadow):
    assert sum(loops.check(seed)[1] for seed in (1000, 1001, 1002)) > 10
