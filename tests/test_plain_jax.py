"""Plain JAX in a tape: for every construct of `plain_jax.CASES` the tape's gradient is `jax.grad`'s."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from plain_jax import CASES, Case

import tapejax as tf
from tapejax import derivatives, recorder


def floats(tree):
    return [x for x in jax.tree.leaves(tree) if jnp.issubdtype(x.dtype, jnp.inexact)]


def total(outputs):
    """The sum of all that is differentiable in `outputs`: what a tape's gradient is the gradient of."""
    return functools.reduce(lambda a, b: a + b, [jnp.sum(x).astype(jnp.float32) for x in floats(outputs)])


def split(arguments):
    """The differentiable leaves of `arguments`, and how to put others in their place."""
    leaves, tree = jax.tree.flatten(arguments)
    where = [i for i, x in enumerate(leaves) if jnp.issubdtype(x.dtype, jnp.inexact)]

    def rebuild(new):
        full = list(leaves)
        for i, x in zip(where, new):
            full[i] = x
        return jax.tree.unflatten(tree, full)

    return [leaves[i] for i in where], rebuild


def by_jax(case: Case):
    sources, rebuild = split(case.arguments())
    return jax.grad(lambda xs: total(case.function(*rebuild(xs))))(sources)


def taped(case: Case, sources, rebuild):
    """The gradient by a tape, zeros where it is None."""
    with tf.GradientTape() as tape:
        tape.watch(sources)
        outputs = case.function(*rebuild(sources))
    return tape.gradient(outputs, sources, unconnected_gradients="zero")


def assert_same(found, expected, tolerance):
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(expected)):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=tolerance, atol=tolerance)


every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
staged_cases = pytest.mark.parametrize("case", [pytest.param(c, id=n) for n, c in CASES.items() if c.staged])


@every_case
def test_gradient(case):
    """Three times over: what runs step by step at first is compiled whole when it comes back."""
    sources, rebuild = split(case.arguments())
    expected = by_jax(case)
    for _ in range(3):
        assert_same(taped(case, sources, rebuild), expected, case.tolerance)
    assert recorder.current_trace() is recorder.current_trace()
    assert not recorder.active_recordings()


@every_case
def test_gradient_entry_by_entry(case, monkeypatch):
    monkeypatch.setattr(derivatives, "COMPILE_AT_MOST", 0)
    sources, rebuild = split(case.arguments())
    assert_same(taped(case, sources, rebuild), by_jax(case), case.tolerance)


@every_case
def test_values_are_unchanged(case):
    arguments = case.arguments()
    with tf.GradientTape() as tape:
        tape.watch([x for x in floats(arguments)])
        found = case.function(*arguments)
    assert_same(found, case.function(*arguments), case.tolerance)
    assert not any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(found))


@every_case
def test_as_function(case):
    """The function on the tape has the program's values and `jax.grad`'s gradient."""
    sources, rebuild = split(case.arguments())
    with tf.GradientTape() as tape:
        tape.watch(sources)
        outputs = case.function(*rebuild(sources))
    function = tape.as_function(outputs, sources)
    assert_same(function(sources), outputs, case.tolerance)
    assert_same(jax.grad(lambda xs: total(function(xs)))(sources), by_jax(case), case.tolerance)


@staged_cases
def test_tape_inside_jit(case):
    sources, rebuild = split(case.arguments())
    step = jax.jit(lambda xs: taped(case, xs, rebuild))
    assert_same(step(sources), by_jax(case), case.tolerance)
