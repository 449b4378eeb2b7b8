"""tape/runner.py: the interface by which operations and sweeps are run. Here a runner counts."""

import collections

import jax.numpy as jnp
import numpy as np
import pytest
from taping import X

import tapejax as tf
from tapejax.tape import runner
from tapejax.tape.runner import Runner


class Counting(Runner):
    def __init__(self):
        self.counts = collections.Counter()

    def __getattribute__(self, name):
        if not name.startswith("_") and name != "counts":
            self.counts[name] += 1
        return super().__getattribute__(name)


@pytest.fixture
def counts():
    before = runner.current
    counting = Counting()
    runner.use(counting)
    yield counting.counts
    runner.use(before)


def test_primitives_and_a_sweep_pass_through_it(counts):
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = jnp.sum(jnp.sin(X) * X)
    np.testing.assert_allclose(tape.gradient(y, X), np.cos(X) * X + np.sin(X), rtol=1e-6)
    assert counts["operation"] >= 3 and counts["sweep"] == 1 and counts["placed"] == 1


def test_a_jacobian_is_a_batch_of_sweeps(counts):
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = X * X
    np.testing.assert_allclose(tape.jacobian(y, X), [[2.0, 0.0], [0.0, 4.0]])
    assert counts["rows"] == counts["batch"] == 1


def test_forward_mode_is_a_sweep(counts):
    with tf.autodiff.ForwardAccumulator(X, X) as accumulator:
        y = X * X
    np.testing.assert_allclose(accumulator.jvp(y), [2.0, 8.0])
    assert counts["sweep"] == 1


def test_the_plain_runner_compiles_each_function():
    assert runner.Runner().compiled(jnp.sin)(0.0) == 0.0
    assert not Runner().avoids_compiling() and Runner().arrays([1.0]) is None


def test_what_is_used_is_current():
    before, other = runner.current, Runner()
    try:
        runner.use(other)
        assert runner.current is other
    finally:
        runner.use(before)
