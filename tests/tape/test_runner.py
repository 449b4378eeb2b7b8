"""tape/runner.py: the one method by which operations and sweeps are run. Here a runner notes what passes through it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from taping import X

import tapejax as tf
from tapejax.jaxprs.fence import current_trace
from tapejax.tape import active, dispatch, primitives, runner
from tapejax.tape.operation import Op, eagerly, op_of
from tapejax.tape.primitives import Recognition, TracedCall
from tapejax.tape.recording import Recording
from tapejax.tape.runner import Runner


class Noting(Runner):
    """Notes the names of the operations, and has another runner run them."""

    def __init__(self, other):
        self.other, self.names = other, []

    def run(self, op, inputs):
        self.names.append(op.name)
        return self.other.run(op, inputs)


@pytest.fixture(params=["current", "plain"])
def names(request, no_shadow):  # which runs everything twice
    """What passes through a runner over the current one, and over the default."""
    before = runner.current
    noting = Noting(before if request.param == "current" else Runner())
    runner.use(noting)
    yield noting.names
    runner.use(before)


def test_what_is_recorded_and_its_gradient_pass_through_it(names):
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = jnp.sum(jnp.sin(X) * X)
    assert len(names) == len(tape) == 3
    np.testing.assert_allclose(tape.gradient(y, X), np.cos(X) * X + np.sin(X), rtol=1e-6)
    assert names.count("gradient") >= 1


def test_a_tensor_and_a_variable(names):
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.tanh(x) * x
    assert {"tanh", "multiply"} <= set(names)
    tape.gradient(y, x)
    assert "gradient" in names


@pytest.mark.parametrize("prepare", [lambda: None, tf.debugging.clear_caches])
def test_it_runs_operations_that_were_made_before_it(names, prepare):
    x = tf.Variable(2.0)
    one, other = Noting(Runner()), Noting(Runner())
    before = runner.current
    try:
        tf.tanh(x) * x
        prepare()
        for noting in (one, other):
            runner.use(noting)
            tf.tanh(x) * x
            with tf.GradientTape() as tape:
                y = tf.tanh(x) * x
            np.testing.assert_allclose(tape.gradient(y, x), np.tanh(2.0) + 2 / np.cosh(2.0) ** 2, rtol=1e-5)
    finally:
        runner.use(before)
    counted = [x for x in one.names if x in ("tanh", "multiply", "gradient")]
    assert counted == [x for x in other.names if x in ("tanh", "multiply", "gradient")]
    assert counted == ["tanh", "multiply", "tanh", "multiply", "gradient"]


def test_a_function_passes_through_it(names):
    v = tf.Variable(2.0)
    square = tf.function(lambda: v * v)
    square()
    del names[:]
    assert float(square()) == 4.0 and len(names) == 1


def test_a_jacobian_is_a_batch_of_sweeps(names):
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = X * X
    np.testing.assert_allclose(tape.jacobian(y, X), [[2.0, 0.0], [0.0, 4.0]])
    assert "jacobian" in names and names.count("batch") == 1


def test_forward_mode_is_a_sweep(names):
    with tf.autodiff.ForwardAccumulator(X, X) as accumulator:
        y = X * X
    np.testing.assert_allclose(accumulator.jvp(y), [2.0, 8.0])
    assert "jvp" in names


def test_a_reference_and_python_pass_through_it(names):
    assert eagerly(max, 1, 2) == 2 and eagerly(dict, a=1) == {"a": 1}
    with tf.GradientTape():
        ref = jax.new_ref(X)
        np.testing.assert_array_equal(ref[...], X)
    assert len(names) >= 4


def test_the_plain_runner_compiles_each_operation_once():
    traced, plain = [], Runner()
    op = Op("f", lambda x: traced.append(x) or x * 2)
    for _ in range(3):
        np.testing.assert_array_equal(plain.run(op, (X,)), X * 2)
    assert len(traced) == 1


def test_what_is_used_is_current():
    before, other = runner.current, Runner()
    try:
        runner.use(other)
        assert runner.current is other
    finally:
        runner.use(before)


def test_an_operation_does_not_change():
    op = Op("f", jnp.sin)
    before = op.name, op.fn, op.call, op.key, op.bound, hash(op)
    for _ in range(300):  # until a runner has nothing left to decide
        dispatch.run(op, (X,))
    assert before == (op.name, op.fn, op.call, op.key, op.bound, hash(op))


def test_a_traced_call_is_found(monkeypatch):
    monkeypatch.setattr(primitives, "recognition", Recognition())
    known = TracedCall(jax.make_jaxpr(jnp.sin)(X), "f")
    assert known.op().name == "f" and known.op() != known.op()


def test_where_a_runner_fails_nothing_is_noted_and_the_trace_is_as_before(names):
    class Failing(Runner):
        def run(self, op, inputs):
            raise RuntimeError(f"no {op.name} here")

    before, recording, working = current_trace(), Recording(), runner.current
    try:
        runner.use(Failing())
        with pytest.raises(RuntimeError, match="no sin here"):
            active.also(recording, jax.lax.sin, X)
    finally:
        runner.use(working)
    assert not recording.entries and current_trace() is before


def test_numbers_are_arrays_to_what_is_compiled_and_numbers_to_what_runs_as_it_says_itself(no_shadow):
    kinds, compiled = [], []
    itself = Op("f", jnp.sin, lambda x: kinds.append(type(x)) or x)
    for _ in range(4):  # what comes back is kept as an array
        compiled.append(dispatch.run(op_of(jnp.positive, {}), (1.5,)))
        assert dispatch.run(itself, (1.5,)) == 1.5
    assert kinds == [float] * 4 and all(isinstance(x, jax.Array) for x in compiled)
    assert len({id(x) for x in compiled}) == 4  # no output is the array that was kept
