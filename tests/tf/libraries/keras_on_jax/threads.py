"""Keras's layers, optimizers and metrics, called from threads that share them."""

from __future__ import annotations

import keras
import numpy as np
import pytest

import tapejax as tf
from tests.tf.programs.test_threads import among_threads, switching

__all__ = ["switching"]
TIMES = 40


@pytest.mark.parametrize("kind", [keras.optimizers.SGD, keras.optimizers.Adam])
@pytest.mark.parametrize("compiled", [True, False])
def test_every_step_of_an_optimizer_counts(kind, compiled):
    optimizer = kind(1.0)
    w = keras.Variable(np.zeros(3, "float32"))

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(2.0 * tf.convert_to_tensor(w))
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])

    step = tf.function(step) if compiled else step
    step()
    among_threads(step, times=TIMES)
    assert int(optimizer.iterations) == 1 + TIMES
    each = 2.0 if kind is keras.optimizers.SGD else 1.0  # Adam's step, while the gradient stays the same
    np.testing.assert_allclose(np.asarray(w), -each * (1 + TIMES), rtol=1e-3)


def test_every_mask_is_drawn_once():
    layer, generator, x = keras.layers.Dropout(0.5), keras.random.SeedGenerator(1), tf.ones([64])
    layer(x, training=True)
    compiled = tf.function(lambda: layer(x, training=True))
    masks = among_threads(
        lambda: np.asarray(compiled()).tobytes(),
        lambda: np.asarray(layer(x, training=True)).tobytes(),
        lambda: np.asarray(generator.next()).tobytes(),
        times=TIMES,
    )
    assert len({*masks[0], *masks[1]}) == 2 * TIMES
    assert len(set(masks[2])) == TIMES


def test_metrics_and_variables_count_every_update():
    metric, total = keras.metrics.Mean(), keras.Variable(0.0)
    metric.update_state([1.0])
    update = tf.function(lambda: metric.update_state([1.0, 2.0]))
    among_threads(
        update,
        lambda: metric.update_state([3.0]),
        lambda: total.assign_add(1.0),
        lambda: total.assign_sub(0.5),
        times=TIMES,
    )
    assert float(metric.count) == 1 + 3 * TIMES
    assert float(metric.total) == 1 + 6 * TIMES
    assert float(total) == 0.5 * TIMES


def test_a_server_that_answers_while_a_model_is_trained():
    model = keras.Sequential(
        [keras.layers.Dense(4, activation="relu"), keras.layers.Dense(1, kernel_initializer="zeros")]
    )
    optimizer, requests = keras.optimizers.SGD(0.0), tf.Variable(0, trainable=False)
    x = tf.ones([2, 3])
    model(x)
    model.layers[1].bias.assign([2.0])

    @tf.function
    def answer(x):
        requests.assign_add(1)
        return model(x)

    @tf.function
    def train(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x) - 1.0) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    answers, losses = among_threads(lambda: np.asarray(answer(x)).tolist(), lambda: float(train(x)), times=TIMES)
    assert answers == [[[2.0], [2.0]]] * TIMES
    assert losses == [1.0] * TIMES
    assert int(requests) == int(optimizer.iterations) == TIMES
