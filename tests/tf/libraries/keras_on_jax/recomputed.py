"""`recompute_grad`, custom gradients and control flow of a program that says `import keras`."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import keras
import numpy as np
import pytest

import tapejax as tf
from tapejax.jaxprs import fence
from tapejax.tf.values import reading

L, ops = keras.layers, keras.ops


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    """JAX's trace and the thread's capture are as before, and no variable holds a tracer."""
    keras.utils.set_random_seed(0)
    trace = fence.current_trace()
    yield
    assert fence.current_trace() is trace
    assert reading.context.capture is None and reading.context.used is None


def draw(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype("float32")


MODELS = {
    "dropout": (lambda: keras.Sequential([L.Dense(4, "relu"), L.Dropout(0.5, seed=1), L.Dense(2)]), draw(3, 4)),
    "noise": (lambda: keras.Sequential([L.GaussianNoise(0.3, seed=2), L.Dense(2)]), draw(3, 4)),
    "normalization": (lambda: keras.Sequential([L.BatchNormalization(momentum=0.5), L.Dense(2)]), draw(3, 4)),
    "spectral": (lambda: L.SpectralNormalization(L.Dense(3), power_iterations=2), draw(3, 4)),
    "recurrent": (lambda: L.LSTM(3, dropout=0.3, recurrent_dropout=0.2, seed=4), draw(2, 3, 4)),
    "mixed": (lambda: L.Dense(2, dtype="mixed_float16"), draw(3, 4)),
}


def trained(make, x, transform, how):
    """Gradients of the inputs and weights in two steps of training, and the state after them."""
    keras.utils.set_random_seed(0)
    model = make()
    model(x)
    weights = model.trainable_variables
    f = transform(lambda z: model(z, training=True))

    def loss(x):
        return jnp.sum(jnp.asarray(f(x), "float32") ** 2)

    def inside(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = loss(x)
        return tape.gradient(y, [x, *weights])

    def around(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = compiled(x)
        return tape.gradient(y, [x, *weights])

    def second(x):
        with tf.GradientTape() as outer:
            grads = inside(x)
            size = sum(jnp.sum(jnp.asarray(g, "float32") ** 2) for g in grads)
        return outer.gradient(size, weights)

    compiled = tf.function(loss)
    step = {"eagerly": inside, "compiled": tf.function(inside), "around": around, "second": second}[how]
    found = [step(jnp.asarray(x * k)) for k in (1.0, 2.0)]
    state = [np.asarray(v.value) for v in model.non_trainable_variables]
    assert not any(isinstance(v._value, jax.core.Tracer) for v in model.variables)
    return [np.asarray(g, "float32") for grads in found for g in grads], state


@pytest.mark.parametrize("how", ["eagerly", "compiled", "around", "second"])
@pytest.mark.parametrize("name", MODELS)
def test_recomputed_training_is_training(name, how):
    """The same masks, gradients and state as without it, at second order, too."""
    make, x = MODELS[name]
    want, state = trained(make, x, lambda f: f, how)
    got, state_after = trained(make, x, tf.recompute_grad, how)
    for a, b in zip(want, got, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-2 if name == "mixed" else 2e-3, atol=1e-3)
    for a, b in zip(state, state_after, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_a_custom_gradient_is_told_which_variables_were_read():
    """Keras's own, in the order in which they were read; also those that are read in a scan, in a compiled function."""
    dense, recurrent = L.Dense(2), L.GRU(2)
    dense.build((None, 2)), recurrent.build((None, 3, 2))
    seen = []

    @tf.custom_gradient
    def f(x):
        def grad(d, variables=None):
            seen.append([v.path for v in variables])
            return jnp.zeros_like(x), [jnp.full(v.shape, 7.0) for v in variables]

        return dense(recurrent(x)), grad

    weights = recurrent.trainable_variables + dense.trainable_variables
    for call in (f, tf.function(f)):
        with tf.GradientTape() as tape:
            y = jnp.sum(jnp.asarray(call(jnp.ones((1, 3, 2)))))
        assert all((np.asarray(g) == 7.0).all() for g in tape.gradient(y, weights))
    assert all(sorted(paths) == sorted(v.path for v in weights) for paths in seen)


def test_what_a_scan_reads_is_watched():
    layer = L.LSTM(2)
    layer.build((None, 3, 2))
    x = jnp.ones((1, 3, 2))

    def step(x):
        with tf.GradientTape() as tape:
            h = layer(x)
            y = jnp.sum(h**2)
        assert len(tape.watched_variables()) == 3
        return tape.gradient(y, h)

    for run in (step, tf.function(step)):
        np.testing.assert_allclose(run(x), 2.0 * layer(x), rtol=1e-5)


# ---- control flow ---------------------------------------------------------------------------------------------------


def test_loops_that_assign_are_programs_on_values():
    """Others are JAX's: their bodies are traced once."""
    v, calls = keras.Variable(1.0), []

    def assigning(i, x):
        calls.append(1)
        v.assign_add(1.0)
        return x * v.value

    assert float(ops.fori_loop(0, 3, assigning, jnp.array(1.0))) == 24.0 and float(v.value) == 4.0
    assert len(calls) == 2  # the first was JAX's
    calls.clear()
    assert float(ops.fori_loop(0, 100, lambda i, x: (calls.append(1), x + v.value)[1], jnp.array(1.0))) == 401.0
    assert len(calls) == 1
    v.assign(2.0)
    assert float(ops.fori_loop(0, 100, lambda i, x: x + v.value, jnp.array(1.0))) == 201.0


def test_a_body_is_traced_with_what_its_variables_hold():
    """JAX keeps what it traced of a function; here each call traces it."""
    v = keras.Variable(1.0)

    def body(i, x):
        return x + v.value

    def add(x):
        return ops.fori_loop(0, 3, body, x)

    assert float(add(jnp.array(0.0))) == 3.0
    v.assign(5.0)
    assert float(add(jnp.array(0.0))) == 15.0
    compiled = tf.function(add)
    assert float(compiled(jnp.array(0.0))) == 15.0
    v.assign(6.0)
    assert float(compiled(jnp.array(0.0))) == 18.0


def test_a_variable_of_ours_in_loops_of_keras():
    u = tf.Variable(3.0)
    found = ops.scan(lambda c, x: (c + x, (u.assign_add(1.0), c * u)[1]), jnp.array(1.0), jnp.arange(3.0))
    assert float(u.numpy()) == 6.0 and np.asarray(found[1]).tolist() == [4.0, 5.0, 12.0]


def test_under_jit_they_are_keras_own():
    """A plain ``jax.jit`` threads nothing; what assigns in it leaks, as it does in Keras."""
    f = jax.jit(lambda x: ops.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2.0), (0, x))[1])
    assert float(f(1.0)) == 8.0
    assert float(jax.jit(lambda x: ops.cond(x > 0, lambda: x, lambda: -x))(-2.0)) == 2.0
    assert jax.vmap(lambda x: ops.cond(x > 0, lambda: x, lambda: -x))(jnp.array([-1.0, 2.0])).tolist() == [1.0, 2.0]


def test_an_error_in_a_body_is_the_programs():
    def body(i, x):
        raise OverflowError("mine")

    for run in (lambda f: f, tf.function):
        with pytest.raises(OverflowError, match="mine"):
            run(lambda: ops.fori_loop(0, 3, body, jnp.array(1.0)))()


def test_branches_that_differ_are_refused():
    v = keras.Variable(1.0)

    @tf.function
    def f(x):
        return ops.cond(x > 0, lambda: (v.assign(2.0), x)[1], lambda: jnp.stack([x, x]))

    with pytest.raises(TypeError):
        f(jnp.array(1.0))
    assert float(v.value) == 1.0


def test_compiled_steps_compile_once():
    """A step with a scaled loss: after the first calls nothing is traced."""
    model = keras.Sequential([keras.Input((2,)), L.Dense(1)])
    optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.1), dynamic_growth_steps=2)
    traced = []

    @tf.function
    def step(x):
        traced.append(1)
        with tf.GradientTape() as tape:
            loss = optimizer.scale_loss(jnp.mean(model(x) ** 2))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))

    for _ in range(5):
        step(jnp.ones((3, 2)))
    assert len(traced) == 2  # once more, because the optimizer made its variables
