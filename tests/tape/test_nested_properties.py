"""Random programs under random nests of tapes and accumulators: the derivative is the one that JAX's functions give.

A program is a list of instructions on a growing list of (3,) vectors. A nest is a list of levels, innermost first; each
maps a function of a vector to a function of a vector, once by a tape or an accumulator and once by JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain_jax import FLOAT

import tapejax as tf
from tapejax.execution import runner as fast
from tapejax.execution import schedule
from tapejax.tape.derivative import SweepsOp
from tests.tape.interpreted import interpreted

SIZE = 3
MIX = jnp.asarray(np.random.default_rng(0).uniform(-0.7, 0.7, (SIZE, SIZE)), FLOAT)
TANGENT = jnp.asarray([1.0, -0.5, 0.25], FLOAT)

# ---- programs -------------------------------------------------------------------------------------------------------

# Smooth and tame: values stay near one at any order. Plain jnp, tapejax's names and jitted functions take turns.
UNARY: dict[str, Callable] = {
    "sin": jnp.sin,
    "tanh": lambda x: tf.tanh(x)._array,
    "square": lambda x: tf.square(x)._array / 2,
    "negative": lambda x: -x,
    "reverse": lambda x: x[::-1],
    "mix": lambda x: MIX @ x,
    "logistic": jax.nn.sigmoid,
    "cumulated": jax.jit(lambda x: jnp.cumsum(jnp.cos(x)) / SIZE),
    "scanned": lambda x: jax.lax.scan(lambda c, y: (jnp.sin(c + y), c * y), 0.5, x)[1],
    "softmax": lambda x: tf.nn.softmax(x)._array,
    "mapped": jax.vmap(lambda y: y * jnp.exp(-y * y)),
    "scaled": lambda x: x * jax.lax.stop_gradient(jnp.sum(x) / SIZE),
    "constant": lambda x: jnp.ones_like(x),
}
BINARY: dict[str, Callable] = {
    "add": lambda x, y: x + y,
    "multiply": lambda x, y: tf.multiply(x, y)._array,
    "divide": lambda x, y: x / (2.0 + y * y),
    "where": lambda x, y: jnp.where(jnp.asarray([True, False, True]), x, y),
    "outer": lambda x, y: jnp.outer(x, y).sum(axis=0) / SIZE,
}

instruction = st.one_of(
    st.tuples(st.sampled_from(sorted(UNARY)), st.integers(0, 99)),
    st.tuples(st.sampled_from(sorted(BINARY)), st.integers(0, 99), st.integers(0, 99)),
)
programs = st.lists(instruction, min_size=1, max_size=6)


def run(program: list[tuple], x: Any) -> Any:
    """The program's last value, with a little of every value in it."""
    values = [x]
    for name, *operands in program:
        arguments = [values[i % len(values)] for i in operands]
        values.append((UNARY | BINARY)[name](*arguments))
    return values[-1] + 0.1 * values[len(values) // 2]


# ---- levels ---------------------------------------------------------------------------------------------------------


class Level(NamedTuple):
    """One derivative: `by_tape(f)` and `by_jax(f)` are functions from a vector to a vector, for such an `f`."""

    by_tape: Callable[[Callable], Callable]
    by_jax: Callable[[Callable], Callable]


def gradient_by_tape(f):
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x, unconnected_gradients="zero")

    return gradient


def weighted_by_tape(f):
    """With output gradients, on a persistent tape that is asked twice."""

    def gradient(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = f(x)
        weights = jnp.cos(x)
        once = tape.gradient(y, x, output_gradients=weights, unconnected_gradients="zero")
        twice = tape.gradient([y, y], x, unconnected_gradients="zero")
        return once + 0.1 * twice

    return gradient


def weighted_by_jax(f):
    def gradient(x):
        pull = jax.vjp(f, x)[1]
        return pull(jnp.cos(x))[0] + 0.2 * pull(jnp.ones(SIZE))[0]

    return gradient


def jacobian_by_tape(f):
    def row_sums(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.jacobian(y, x, unconnected_gradients="zero") @ TANGENT

    return row_sums


def column_by_tape(f):
    """By a scalar: the column that goes forward."""

    def column(x):
        step = jnp.zeros(())
        with tf.GradientTape() as tape:
            tape.watch(step)
            y = f(x + step * TANGENT)
        return tape.jacobian(y, step, unconnected_gradients="zero")

    return column


def batch_by_tape(f):
    """Two examples at once; the first of them is `x`."""

    def row_sums(x):
        batch = jnp.stack([x, x * 0.5])
        with tf.GradientTape() as tape:
            tape.watch(batch)
            y = jax.vmap(f)(batch)
        return tape.batch_jacobian(y, batch)[0] @ TANGENT

    return row_sums


def pushed_by_tape(f):
    def product(x):
        with tf.autodiff.ForwardAccumulator(x, TANGENT) as acc:
            y = f(x)
        return acc.jvp(y, unconnected_gradients="zero")

    return product


def pushed_by_jax(f):
    return lambda x: jax.jvp(f, (x,), (TANGENT,))[1]


LEVELS = {
    "gradient": Level(gradient_by_tape, lambda f: jax.grad(lambda x: f(x).sum())),
    "weighted": Level(weighted_by_tape, weighted_by_jax),
    "jacobian": Level(jacobian_by_tape, lambda f: lambda x: jax.jacrev(f)(x) @ TANGENT),
    "column": Level(column_by_tape, pushed_by_jax),
    "batch": Level(batch_by_tape, lambda f: lambda x: jax.jacfwd(f)(x) @ TANGENT),
    "pushed": Level(pushed_by_tape, pushed_by_jax),
    "jax": Level(lambda f: jax.grad(lambda x: f(x).sum()), lambda f: jax.grad(lambda x: f(x).sum())),
    "jit": Level(jax.jit, jax.jit),
    "program": Level(lambda f: lambda x: f(x) * x, lambda f: lambda x: f(x) * x),
}
nests = st.lists(st.sampled_from(sorted(LEVELS)), min_size=1, max_size=3)
points = st.lists(st.floats(-1.0, 1.0, width=16), min_size=SIZE, max_size=SIZE)


@contextmanager
def running(how: str):
    """Whole programs at once, or entry by entry, or as tapejax decides."""
    patch = pytest.MonkeyPatch()
    if how == "entry by entry":
        patch.setattr(schedule, "_worth_compiling", lambda *_: False)
        patch.setitem(fast._WAYS, SweepsOp, lambda op, values: op.fn(*values))
    elif how == "whole":
        whole = schedule._worth_compiling
        patch.setattr(schedule, "_worth_compiling", lambda p, v: whole(p, v) or len(p.steps) > 1)
    try:
        yield
    finally:
        patch.undo()


def compare(program, nest, point, how):
    x = jnp.asarray(point, FLOAT)

    def by_tape(x):
        return run(program, x)

    by_jax = by_tape
    for name in nest:
        by_tape, by_jax = LEVELS[name].by_tape(by_tape), LEVELS[name].by_jax(by_jax)
    with interpreted():  # XLA takes longer to compile it than the test
        expected = by_jax(x)
    with running(how):
        found = by_tape(x)
    scale = max(1.0, float(jnp.max(jnp.abs(expected))))
    np.testing.assert_allclose(np.asarray(found) / scale, np.asarray(expected) / scale, atol=3e-4)


relaxed = settings(deadline=None, max_examples=12, suppress_health_check=list(HealthCheck), derandomize=True)


@relaxed
@given(programs, nests, points, st.sampled_from(["whole", "entry by entry", "as it likes"]))
def test_random_nests(program, nest, point, how):
    compare(program, nest, point, how)


@pytest.mark.slow
@settings(relaxed, max_examples=150, derandomize=False)
@given(programs, nests, points, st.sampled_from(["whole", "entry by entry", "as it likes"]))
def test_more_random_nests(program, nest, point, how):
    compare(program, nest, point, how)


@pytest.mark.parametrize("outer", sorted(LEVELS))
@pytest.mark.parametrize("inner", sorted(LEVELS))
def test_every_pair_of_levels(inner, outer):
    program = [("sin", 0), ("multiply", 0, 1), ("mix", 2), ("softmax", 3), ("outer", 4, 1)]
    compare(program, [inner, outer], [0.3, -0.7, 0.9], "as it likes")
