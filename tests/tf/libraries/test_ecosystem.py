"""Libraries that know nothing of tapes: gradients as by `jax.grad`, and no compilation in a warm step.

They are not needed by other tests: ``pip install -e '.[libraries]'``.
"""

from __future__ import annotations

import importlib.util

import jax
import numpy as np
import pytest

import tapejax as tf
from benchmarks.library_steps import CASES
from tapejax.jaxprs import cache
from tests.compiling import compiles

pytestmark = pytest.mark.filterwarnings("ignore")  # theirs

# Functions that are new at each step, which lineax gives to primitives of Equinox: of some of these a parameter has no key. JAX
# alone compiles each time, too (two programs).
COMPILED = {"ott_plan": 1}


def step(function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.gradient(y, x)


@pytest.mark.parametrize("x64", [False, True], ids=["x32", "x64"])
@pytest.mark.parametrize("name", CASES)
def test_a_step(name, x64, no_shadow):
    library = name.partition("_")[0]
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    cache.clear()  # of other steps, whose programs may be like these
    with jax.enable_x64(x64):
        function, x = CASES[name]()
        expected = jax.grad(function)(x)
        for _ in range(4):
            np.testing.assert_allclose(step(function, x), expected, rtol=1e-3, atol=1e-4)
        with compiles() as compiled:
            step(function, x)
        assert len(compiled) <= COMPILED.get(name, 0)


def test_functions_that_are_new_at_each_step_are_told_apart(no_shadow):
    optx = pytest.importorskip("optimistix")

    def root(factor):
        def find(a):
            solver = optx.Newton(rtol=1e-6, atol=1e-6)
            return optx.root_find(lambda y, a: y * y - factor * a, solver, jax.numpy.float32(2.0), a).value

        return find

    a = jax.numpy.float32(4.0)
    for factor in (1.0, 2.0, 1.0, 3.0, 2.0):
        np.testing.assert_allclose(step(root(factor), a), np.sqrt(factor) / 4, rtol=1e-5)
