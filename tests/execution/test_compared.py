"""What a program compares is computed once by XLA's cheap passes, too: nothing is nan, or zero, where JAX has a gradient."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tapejax.execution import compared
from tapejax.execution import trial as trials
from tapejax.execution.trial import Trial
from tapejax.jaxprs import cache

RNG = np.random.RandomState(0)
X, G = RNG.randn(3, 8, 3), np.array([1.3, -0.7, 0.9])
B = np.array([0.3, 0.2, -0.5], "float32")

# What rounds: a product and a sum may be one instruction, or two.
ROUNDED = {
    "affine": lambda x, g: x * g + B,
    "centred": lambda x, g: x * g - jnp.mean(x, (0, 1)),
    "normalised": lambda x, g: (x - x.mean((0, 1))) * lax.rsqrt(x.var((0, 1)) + 1e-3) * g + B,
    "divided": lambda x, g: x / (1 + g * g) + B * x,
    "in a call": lambda x, g: jax.jit(lambda x, g: x * g + B)(x, g),
    "in a rule": lambda x, g: jax.nn.silu(x * g + B) * g + x,
    "in a branch": lambda x, g: lax.cond(g[0] > 0, lambda: x * g + B, lambda: x),
}
# What compares it.
COMPARED = {
    "max": lambda y: jnp.sum(jnp.sin(jnp.max(y, 1))),
    "min": lambda y: jnp.sum(jnp.sin(jnp.min(y, 1))),
    "norm": lambda y: jnp.sum(jnp.sin(jnp.linalg.norm(y, jnp.inf, axis=1))),
    "where": lambda y: jnp.sum(jnp.where(y == jnp.max(y, 1, keepdims=True), jnp.sin(y), 0.0)),
    "reversed": lambda y: jnp.sum(
        jnp.where(y[:, ::-1] >= jnp.max(y[:, ::-1], 1, keepdims=True), jnp.sin(y[:, ::-1]), 0.0)
    ),
    "distance": lambda y: jnp.sum(jnp.sqrt(jnp.max(y, 1, keepdims=True) - y + 1e-12)),
    "whole numbers": lambda y: jnp.sum(jnp.sqrt(y - jnp.floor(y) + 1e-12) + jnp.sin(y)),
    "in a call": lambda y: jnp.sum(jnp.sin(jax.jit(lambda y: jnp.max(y, 1))(y))),
    "in a branch": lambda y: jnp.sum(lax.cond(y[0, 0, 0] > -9, lambda: jnp.sin(jnp.max(y, 1)), lambda: y[:, 0])),
    "sorted": lambda y: jnp.sum(jnp.where(y == jnp.sort(y, 1)[:, -1:], jnp.sin(y), 0.0)),
}
# What NumPy does not evaluate, and fuses with what it is made of.
BESIDE = {
    "pool": lambda y: jnp.sum(jnp.sin(lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 1), (1, 2, 1), "VALID"))),
    "lgamma": lambda y: jnp.sum(lax.lgamma(jnp.abs(y) + 0.5)),
}


@pytest.fixture
def by_cheap_passes(monkeypatch):
    if cache.shadow is not None:
        pytest.skip("shadow mode compares with what the tests' own options of XLA compile, which are cheap as well")
    monkeypatch.setattr(trials, "MOST_NUMBERS", -1.0)


@pytest.mark.parametrize("x64", [False, True], ids=["32-bit", "64-bit"])
@pytest.mark.parametrize("comparison", COMPARED)
def test_what_is_compared_is_the_same_number(by_cheap_passes, comparison, x64):
    # a part of the pairs, another for each comparison
    pairs = list(itertools.product(ROUNDED, BESIDE))[(list(COMPARED).index(comparison) + x64) % 2 :: 4 if x64 else 3]
    for rounding, beside in pairs:

        def f(x, g, y=ROUNDED[rounding], compare=COMPARED[comparison], other=BESIDE[beside]):
            return other(y(x, g)) + compare(y(x, g))

        with jax.enable_x64(x64):
            x, g = (jnp.asarray(v, "float64" if x64 else "float32") for v in (X, G))
            found = Trial(jax.value_and_grad(f, (0, 1)))(x, g)
            if trials._cheap_options is None:
                pytest.skip("this XLA has no such options: everything is compiled as `jax.jit` does it")
            with jax.disable_jit():  # each operation by itself
                expected = jax.value_and_grad(f, (0, 1))(x, g)
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3, err_msg=f"{rounding}, {beside}")


def barriers(fn, *args):
    """How many values are held, and the program in which they are."""
    program = jax.make_jaxpr(compared.once(jax.make_jaxpr(fn)(*args)))(*args)
    return sum(eqn.primitive.name == "optimization_barrier" for eqn in program.eqns), program


@pytest.mark.parametrize(
    "fn, count",
    [
        (lambda x: jnp.tanh(x * 2 + 1), 0),  # nothing is compared
        (lambda x: jnp.where(x > 0, x, 0.0), 0),  # an input is there as it is
        (lambda x: jax.nn.relu(x * 2 + 1), 1),
        (lambda x: jnp.max((x * 2 + 1)[::-1]), 1),  # what is moved comes from what rounds
        (lambda x: jnp.max(jnp.max((x * 2).reshape(1, -1), 1)), 1),  # a maximum does not round
        (lambda x: (x * 2 + 1).astype(int), 1),
        (lambda x: (x.astype(int) + 1) > 2, 0),  # whole numbers do not round
    ],
)
def test_what_rounds_and_is_compared_is_held(fn, count):
    assert barriers(fn, jnp.ones(4))[0] == count


def test_calls_are_seen_through_and_branches_too():
    def f(x):
        return lax.cond(x[0] > 0, lambda: jnp.max(jnp.sin(x) * 2), lambda: 0.0) + jax.jit(jnp.max)(jax.nn.silu(x))

    count, program = barriers(f, jnp.ones(4))
    assert count == 1
    assert not {"jit", "custom_jvp_call"} & {eqn.primitive.name for eqn in program.eqns}
    (cond,) = [eqn for eqn in program.eqns if eqn.primitive.name == "cond"]
    assert sum("optimization_barrier" in str(branch) for branch in cond.params["branches"]) == 1


def test_a_call_that_asks_for_more_than_compilation_stays():
    device = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    placed = jax.jit(jnp.sin, out_shardings=device)
    _, program = barriers(lambda x: placed(x * 2), jnp.ones(4))
    assert "jit" in {eqn.primitive.name for eqn in program.eqns}


def test_the_named_scopes_around_a_call_are_kept():
    """A call is written out, and profiles are read by the names around it."""

    def f(x):
        with jax.named_scope("outer"):
            return jax.jit(jax.named_scope("inner")(jnp.sin))(x)

    stacks = [str(eqn.source_info.name_stack) for eqn in barriers(f, jnp.ones(4))[1].eqns]
    assert any("outer" in stack and "inner" in stack for stack in stacks), stacks
