"""tape/runner.py: the interface by which operations and sweeps are run. Here a runner counts."""

import collections

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from taping import X

import tapejax as tf
from tapejax.jaxprs.fence import current_trace
from tapejax.tape import active, dispatch, runner
from tapejax.tape.operation import Op
from tapejax.tape.primitives import TracedCall
from tapejax.tape.recording import Recording
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
    assert Runner().by_operations(max, 1, 2) == 2 and Runner().arrays([1.0]) is None


def test_what_is_used_is_current():
    before, other = runner.current, Runner()
    try:
        runner.use(other)
        assert runner.current is other
    finally:
        runner.use(before)


def test_a_new_operation_is_compiled_once_and_run_often(counts):
    op = Op("f", lambda x: x * 2)
    for _ in range(3):
        np.testing.assert_array_equal(dispatch.run(op, (X,)), X * 2)
    assert counts["compiled"] == 1


def test_a_traced_call_is_staged_once(counts):
    known = TracedCall(jax.make_jaxpr(jnp.sin)(X), "f")
    assert known.op().name == "f" and counts["staged"] == 1


def test_where_a_runner_fails_nothing_is_noted_and_the_trace_is_as_before(counts):
    class Failing(Counting):
        def operation(self, plain, primitive, params, args):
            raise RuntimeError(f"no {primitive.name} here")

    before, recording = current_trace(), Recording()
    runner.use(Failing())
    with pytest.raises(RuntimeError, match="no sin here"):
        active.also(recording, jax.lax.sin, X)
    assert not recording.entries and current_trace() is before


def test_the_function_that_decided_is_used_from_then_on(counts):
    class Deciding(Runner):
        def compiled(self, fn, decided=None):
            def first(*inputs):
                decided(lambda *inputs: "decided")
                return "first"

            return first

    runner.use(Deciding())
    op = Op("f", jnp.sin)
    assert [op.call(X), op.call(X)] == ["first", "decided"]
