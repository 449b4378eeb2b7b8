"""What editors and type checkers are told: the stubs are those of the live namespaces, and good programs have no errors."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = """
from typing import assert_type

import jax
import jax.numpy as jnp

import tapejax as tf
import tapejax.nn as nn
from tapejax.math import sin

Tensor = tf.Tensor
x = jnp.array([1.0, 2.0])
w, b = tf.Variable([[1.0], [2.0]]), tf.constant(1.0)
with tf.GradientTape(persistent=True) as tape:
    tape.watch(x)
    y = jnp.sum(jnp.sin(x))
    loss = tf.reduce_mean((tf.constant([[3.0, 4.0]]) @ w - b) ** 2)

# What a tape gives has the structure of its sources.
assert_type(tape.gradient(loss, w), Tensor)
assert_type(tape.gradient(loss, b), Tensor)
assert_type(tape.gradient(y, x), jax.Array)
assert_type(tape.gradient(loss, [w, w]), list[Tensor])
assert_type(tape.gradient(loss, {"w": w}), dict[str, Tensor])
assert_type(tape.jacobian(loss, w), Tensor)
assert_type(tape.batch_jacobian(loss, b), Tensor)
print(len(tape), tape[0], tape.explain(loss, w))

# A tensor or variable is an argument of any function of JAX's.
assert_type(jnp.tanh(w * x), jax.Array)
assert_type(jnp.all(b > 0), jax.Array)
assert_type(x * b, jax.Array)
assert_type(jax.nn.relu(jnp.sin(w)), jax.Array)

# Operators, methods, functions.
assert_type(2.0 * b + 1.0 - b / 3 % 2, Tensor)
assert_type(-b, Tensor)
assert_type(b > 0, Tensor)
assert_type(b[0, :1], Tensor)
w[0].assign(b)
assert_type(nn.relu(sin(b)), Tensor)
assert_type(tf.cast(b, tf.float32), Tensor)
print(b.numpy(), b.shape, b.dtype.name, w.name, tf.float32, tf.errors.InvalidArgumentError)


@tf.function
def scaled(x: Tensor, by: float = 2.0) -> Tensor:
    return x * by


@tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
def doubled(x: Tensor) -> Tensor:
    return x + x


assert_type(scaled(b, by=3.0), Tensor)
assert_type(doubled(b), Tensor)
print(tf.io.gfile.exists("x"), tf.random.experimental.Generator, tf.data.AUTOTUNE, tf.keras.layers.Dense(1))
for element in tf.data.Dataset.range(3).batch(2):
    print(element)
with tf.autodiff.ForwardAccumulator(w, tf.ones_like(w)) as accumulator:
    z = tf.reduce_sum(w * w)
assert_type(accumulator.jvp(z), Tensor)
with tf.GradientTape() as other, other.stop_recording(), tf.debugging.shadow_mode():
    z = w * w
"""
WRONG = """
import tapejax as tf

w = tf.Variable(1.0)
tf.nn.rellu(w)
tf.reduce_sum(w, axs=1)
tf.GradientTape().gradent(w, w)
(w * 2.0).nmpy()
"""


def test_the_stubs_are_those_of_the_live_namespaces():
    pytest.importorskip("keras")
    done = subprocess.run([sys.executable, ROOT / ".ci/stubs", "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_programs_are_checked(tmp_path):
    """None in what is right, and all that is wrong."""
    pytest.importorskip("mypy")
    readme = (ROOT / "README.md").read_text()
    first, nan, _ = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    programs = {"right": PROGRAM, "readme": first, "readme_nan": nan, "wrong": WRONG}
    for name, text in programs.items():
        (tmp_path / f"{name}.py").write_text(text)
    # silent: in an editable copy tapejax itself would be checked, too
    options = ["--strict", "--follow-imports=silent", "--no-error-summary", "--cache-dir", str(tmp_path / "cache")]
    command = [sys.executable, "-m", "mypy", *options, *(f"{name}.py" for name in programs)]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    errors = re.findall(r"^(\w+)\.py:(\d+): error: (.*)$", found, re.MULTILINE)
    assert [(name, int(line)) for name, line, _ in errors] == [("wrong", line) for line in (5, 6, 7, 8)], found
