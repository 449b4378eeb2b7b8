"""Keras on JAX, in a process of its own: a process has one Keras backend, and TensorFlow loads Keras with another."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
keras_there = pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="Keras is not installed")


def run(*command, **environment):
    path = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    env = {key: value for key, value in os.environ.items() if not key.startswith(("KERAS_BACKEND", "PYTEST_"))}
    env |= {"PYTHONPATH": path} | environment
    return subprocess.run([sys.executable, *command], env=env, capture_output=True, text=True, timeout=1200)


@keras_there
@pytest.mark.parametrize("part", ["layers", "optimizers", "tensors"])
def test_keras_on_jax(part):
    """The tests in tests/libraries/keras_on_jax."""
    done = run(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(HERE / "keras_on_jax" / f"{part}.py")
    )
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-2000:]


@keras_there
def test_the_backend_is_selected():
    """A program for TensorFlow may have said which backend it wants; here there is JAX."""
    program = "import tapejax as tf; print(tf.keras.backend.backend(), tf.keras.Input is tf.keras.layers.Input)"
    for environment in ({"KERAS_BACKEND": "tensorflow"}, {}):
        done = run("-c", program, **environment)
        assert done.stdout == "jax True\n", done.stderr


@keras_there
def test_another_backend_is_refused():
    program = "import keras, tapejax\ntry:\n    tapejax.keras\nexcept ImportError as error:\n    print(error)"
    done = run("-c", program, KERAS_BACKEND="numpy")
    assert "'numpy' backend" in done.stdout and "KERAS_BACKEND=jax" in done.stdout, done.stdout + done.stderr


@keras_there
def test_a_tape_beside_keras_on_another_backend():
    """A tape leaves a Keras that does not run on JAX alone."""
    program = """
import keras, numpy as np, tapejax as tf
layer = keras.layers.Dense(2)
v = tf.Variable(3.0)
with tf.GradientTape() as tape:
    y = v * v
    found = layer(np.ones((1, 2), "float32"))
print(type(found).__module__, tape.gradient(y, v).numpy())
"""
    done = run("-c", program, KERAS_BACKEND="numpy")
    assert done.stdout == "numpy 6.0\n", done.stdout + done.stderr


@keras_there
def test_keras_without_tapejax_keras():
    """A program that says `import keras` gets arrays, trains under a tape, and hears of None gradients."""
    program = """
import warnings
import jax, jax.numpy as jnp, keras, numpy as np, tapejax as tf
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
assert "tape.explain" in str(caught[0].message) and caught[0].filename == "<string>", caught[0]
model.compile("adam", "mse")
history = model.fit(np.ones((8, 3)), y, epochs=2, verbose=0).history
import sys
assert "tapejax.keras" not in sys.modules
print("done")
"""
    done = run("-c", program, KERAS_BACKEND="jax")
    assert done.stdout == "done\n", done.stdout + done.stderr
