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


# What says `tf.keras`, and what says `import keras` where that runs on JAX; to import Keras takes seconds.
PROCESSES = {
    "tapejax.keras": (["arguments", "checks", "explained", "layers", "optimizers", "printed", "tensors"], {}),
    "keras": (["checkpoints", "fence", "functions", "plain", "recomputed", "threads"], {"KERAS_BACKEND": "jax"}),
    "keras, arguments": (["arguments"], {"KERAS_BACKEND": "jax"}),  # by day `tapejax.keras` has them
}
NIGHT = [("tapejax.keras", "rest"), ("keras", "rest"), ("keras, arguments", "")]


@keras_there
@pytest.mark.parametrize(
    ("name", "cases"),
    [
        ("tapejax.keras", "not rest"),
        ("keras", "not rest"),
        *[pytest.param(*process, marks=pytest.mark.slow) for process in NIGHT],
    ],
)
def test_keras_on_jax(name, cases):
    """The tests in tests/tf/libraries/keras_on_jax; of those of many cases at night the rest."""
    parts, environment = PROCESSES[name]
    files = [str(HERE / "keras_on_jax" / f"{part}.py") for part in parts]
    done = run("-m", "pytest", "-q", "-m", cases, "-p", "no:cacheprovider", "-p", "no:xdist", *files, **environment)
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-2000:]


@keras_there
def test_the_backend_is_selected():
    """A program for TensorFlow may have said which backend it wants; here there is JAX."""
    program = "import tapejax as tf; print(tf.keras.backend.backend(), tf.keras.Input is tf.keras.layers.Input)"
    done = run("-c", program, KERAS_BACKEND="tensorflow")
    assert done.stdout == "jax True\n", done.stderr


@keras_there
def test_keras_on_another_backend():
    """`tapejax.keras` refuses it; a tape leaves it alone."""
    program = """
import keras, numpy as np, tapejax as tf
layer = keras.layers.Dense(2)
v = tf.Variable(3.0)
with tf.GradientTape() as tape:
    y = v * v
    found = layer(np.ones((1, 2), "float32"))
print(type(found).__module__, tape.gradient(y, v).numpy())
try:
    tf.keras
except ImportError as error:
    print(error)
"""
    done = run("-c", program, KERAS_BACKEND="numpy")
    assert done.stdout.startswith("numpy 6.0\n"), done.stdout + done.stderr
    assert "'numpy' backend" in done.stdout and "KERAS_BACKEND=jax" in done.stdout, done.stdout + done.stderr
