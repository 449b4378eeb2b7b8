"""Programs that say `import keras`, where that runs on JAX, and not `tf.keras`."""

from __future__ import annotations

import sys
import warnings

import jax
import jax.numpy as jnp
import keras
import numpy as np
import pytest

import tapejax as tf


def test_keras_without_tapejax_keras():
    """A program that says `import keras` gets arrays, trains under a tape, and hears of None gradients."""
    keras.utils.set_random_seed(3)
    model = keras.Sequential([keras.layers.Dense(4, activation=tf.nn.relu), keras.layers.Dense(1)])
    loss_fn, metric, optimizer = keras.losses.MeanSquaredError(), keras.metrics.Mean(), keras.optimizers.Adam(0.1)
    x, y = np.ones((8, 3), "float32"), np.ones((8, 1), "float32")
    losses = []
    for _ in range(20):
        with tf.GradientTape() as tape:
            predicted = model(x, training=True)
            loss = loss_fn(y, predicted)
        assert len(tape.watched_variables()) == 4
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        metric.update_state(loss)
        losses.append(float(loss))
    assert losses[-1] < losses[0] / 10, losses
    for x in (predicted, loss, metric.result(), model.weights[0].value, model.weights[0] + 1, loss_fn(y, y)):
        assert isinstance(x, jax.Array), type(x)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        optimizer.apply([None, None, None, jnp.ones(1)], model.trainable_variables)
    assert "tape.explain" in str(caught[0].message) and caught[0].filename == __file__, caught[0]
    model.compile("adam", "mse")
    model.fit(np.ones((8, 3)), y, epochs=2, verbose=0)
    assert "tapejax.keras" not in sys.modules


class Noise(keras.layers.Layer):
    """Draws in the program that Keras compiles."""

    def call(self, x):
        return x + tf.random.normal([1])._array


def test_keras_fits_to_a_dataset():
    pytest.importorskip("grain")
    x = np.random.default_rng(0).normal(size=(64, 3)).astype("float32")
    y = x @ np.array([[1.0], [-2.0], [0.5]], "float32")
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(64).batch(16)
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.2), "mse")
    losses = model.fit(dataset, epochs=20, verbose=0, shuffle=False).history["loss"]
    assert len(losses) == 20 and losses[-1] < 1e-3 and model.evaluate(dataset, verbose=0) < 1e-3
    assert model.predict(dataset.map(lambda a, b: a), verbose=0).shape == (64, 1)

    def losses_of(**options):
        model.set_weights([np.zeros((3, 1)), np.zeros(1)])
        batches = tf.data.Dataset.from_tensor_slices((x, y)).batch(16)
        return model.fit(batches, epochs=3, verbose=0, validation_data=batches, **options).history

    assert losses_of(steps_per_epoch=4, validation_steps=4) == losses_of() != losses_of(class_weight={0: 2.0})

    noisy = keras.Sequential([keras.Input([3]), Noise(), keras.layers.Dense(1)])
    noisy.compile("sgd", "mse")
    noisy.fit(dataset, epochs=1, verbose=0, shuffle=False)
    assert len({noisy.predict(np.zeros((2, 3)), verbose=0).tobytes() for _ in range(3)}) == 3


def test_a_keras_layer_in_a_module(tmp_path):
    pytest.importorskip("flatbuffers")
    module = tf.Module()
    module.dense = keras.layers.Dense(2)
    module.dense.build((None, 3))
    module.f = tf.function(lambda x: module.dense(x._array), input_signature=[tf.TensorSpec([None, 3])])
    tf.saved_model.save(module, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    x = tf.ones([4, 3])
    np.testing.assert_allclose(loaded.f(x), module.dense(jnp.ones((4, 3))), rtol=1e-6)
    assert [v.shape for v in loaded.dense.variables] == [(3, 2), (2,)]
