"""Keras's optimizers in Optax."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]


@pytest.mark.slow
def test_optimizers_of_keras_in_optax():
    """Each of the table, with its settings, on random gradients: the same values as Keras's own, step by step."""
    script = r"""
import numpy as np, jax, jax.numpy as jnp, optax
import tapejax as tf
from tapejax.tools.cli.port.optimizers import Refused, optax_text
k = tf.keras.optimizers
rng = np.random.default_rng(0)
for optimizer in (
    k.SGD(0.1), k.SGD(0.1, momentum=0.9), k.SGD(0.1, momentum=0.9, nesterov=True), k.Adam(0.1), k.Adam(0.1, epsilon=1e-2),
    k.AdamW(0.1, weight_decay=0.1), k.RMSprop(0.1), k.RMSprop(0.1, centered=True, momentum=0.5), k.Adagrad(0.1),
    k.Lion(0.1), k.Adam(0.1, clipnorm=0.5), k.Adam(0.1, clipvalue=0.1), k.SGD(0.1, global_clipnorm=0.5),
):
    v = [tf.Variable(rng.normal(size=3), dtype=tf.float32), tf.Variable(rng.normal(size=(2, 2)), dtype=tf.float32)]
    params = [jnp.array(x.numpy()) for x in v]
    optimizer.build(v)
    text, _ = optax_text(optimizer, "0.1", False, "")
    other = eval(text)
    state = other.init(params)
    for i in range(5):
        grads = [jnp.asarray(rng.normal(size=x.shape) * 10.0 ** rng.integers(-6, 1), jnp.float32) for x in params]
        optimizer.apply_gradients(zip([tf.constant(g) for g in grads], v))
        changes, state = other.update(grads, state, params)
        params = optax.apply_updates(params, changes)
        for a, b in zip(v, params):
            np.testing.assert_allclose(a.numpy(), b, rtol=2e-4, atol=2e-5, err_msg=text)

for excluded in ({"var_list": v[:1]}, {"var_names": ["bias"]}):
    optimizer = k.AdamW(0.1, weight_decay=0.1)
    optimizer.exclude_from_weight_decay(**excluded)
    optimizer.build([v[0], tf.Variable(1.0, name="bias")])
    try:
        raise AssertionError(optax_text(optimizer, "0.1", False, ""))
    except Refused as refused:
        assert "optax.adamw" in str(refused), refused
print("the same")
"""
    env = {"JAX_PLATFORMS": "cpu"} | os.environ
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=env, capture_output=True, text=True, timeout=300
    )
    assert done.stdout.endswith("the same\n"), done.stderr[-3000:]
