"""Keras's models, optimizers and metrics inside `tapejax.function`."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import keras
import numpy as np
import pytest

import tapejax as tf
from tapejax.jaxprs import fence
from tapejax.tf.values import reading


@pytest.fixture(autouse=True)
def nothing_is_left_behind():
    """Whatever happens in a function, JAX's trace and the thread's capture are as before."""
    keras.utils.set_random_seed(0)
    trace = fence.current_trace()
    yield
    assert fence.current_trace() is trace
    assert reading.context.capture is None and reading.context.used is None


def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(16, 3)).astype("float32")
    return jnp.asarray(x), jnp.asarray(x.sum(axis=1, keepdims=True))


def model_of():
    layers = keras.layers
    model = keras.Sequential(
        [layers.Dense(8, activation="relu"), layers.BatchNormalization(), layers.Dropout(0.2, seed=1)]
    )
    model.add(layers.Dense(1))
    return model


def train(model, optimizer, compiled, steps=4):
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = jnp.mean((model(x, training=True) - y) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply([jnp.asarray(g) for g in gradients], model.trainable_variables)
        return loss

    run = tf.function(step) if compiled else step
    losses = [float(run(*data())) for _ in range(steps)]
    return losses, run


@pytest.mark.parametrize("name", ["sgd", "adam", "rmsprop"])
def test_a_keras_model_and_optimizer_stepped_inside(name):
    one, two = model_of(), model_of()
    one.build((None, 3)), two.build((None, 3))
    for a, b in zip(one.variables, two.variables):
        b.assign(a.value)
    eagerly, _ = train(one, keras.optimizers.get(name), compiled=False)
    compiled, step = train(two, keras.optimizers.get(name), compiled=True)
    np.testing.assert_allclose(compiled, eagerly, rtol=1e-5)
    for a, b in zip(one.variables, two.variables):
        np.testing.assert_allclose(a.value, b.value, rtol=1e-4, atol=1e-6)
    assert step.experimental_get_tracing_count() == (
        1 if name == "sgd" else 2
    )  # as in TensorFlow: the others make slots


def test_a_keras_model_built_inside():
    model = model_of()
    losses, step = train(model, keras.optimizers.Adam(0.1), compiled=True, steps=20)
    assert step.experimental_get_tracing_count() == 2 and losses[-1] < losses[0]
    assert not any(isinstance(v.value, jax.core.Tracer) for v in model.variables)


def test_keras_is_as_before_after_a_trace():
    before = [getattr(keras.Variable, name) for name in ("value", "_direct_assign", "_initialize_with_initializer")]
    v = keras.Variable(1.0)
    f = tf.function(lambda x: v.value * x)
    assert f(jnp.array(2.0)) == 2.0
    v.assign(5.0)
    assert f(jnp.array(2.0)) == 10.0
    with pytest.raises(ZeroDivisionError):
        tf.function(lambda: v.assign(1.0) / 0 if False else 1 // 0)()
    after = [getattr(keras.Variable, name) for name in ("value", "_direct_assign", "_initialize_with_initializer")]
    assert before == after and v.value == 5.0


def test_gradients_through_a_function_reach_keras_variables():
    dense = keras.layers.Dense(2)
    dense.build((None, 3))
    f = tf.function(lambda x: jnp.sum(dense(x) ** 2))
    x = jnp.ones((4, 3))
    with tf.GradientTape() as outside:
        y = f(x)
    with tf.GradientTape() as plain:
        z = jnp.sum(dense(x) ** 2)
    for a, b in zip(outside.gradient(y, dense.trainable_variables), plain.gradient(z, dense.trainable_variables)):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_keras_metrics_and_tf_variables_together():
    mean, v = keras.metrics.Mean(), tf.Variable(1.0)

    @tf.function
    def update(x):
        v.assign_add(1.0)
        mean.update_state(x * v._array)
        return mean.result()

    update(jnp.array(1.0))
    assert float(update(jnp.array(2.0))) == pytest.approx((2.0 + 6.0) / 2)
    mean.reset_state()
    assert float(mean.result()) == 0.0
