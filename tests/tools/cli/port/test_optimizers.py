"""Keras's optimizers in Optax."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]


@pytest.mark.slow
def test_optimizers_of_keras_in_optax():
    """Each of the table, with its settings, on random gradients: the same values as Keras's own, step by step, also
    where the learning rate is assigned."""
    script = r"""
import itertools, re, numpy as np, jax, jax.numpy as jnp, optax
import tapejax as tf
from tapejax.tools.cli.port.optimizers import Refused, optax_text, with_assigned_rate
from tapejax.tools.cli.port.module import PARTS
for name in ("as_keras", "with_rate"):
    exec(re.sub(r"\bf\(", name + "(", PARTS[name]))
k = tf.keras.optimizers
rng = np.random.default_rng(0)
for optimizer, rates in itertools.product((
    k.SGD(0.1), k.SGD(0.1, momentum=0.9), k.SGD(0.1, momentum=0.9, nesterov=True), k.Adam(0.1), k.Adam(0.1, epsilon=1e-2),
    k.AdamW(0.1, weight_decay=0.1), k.RMSprop(0.1), k.RMSprop(0.1, centered=True, momentum=0.5), k.Adagrad(0.1),
    k.Lion(0.1), k.Adam(0.1, clipnorm=0.5), k.Adam(0.1, clipvalue=0.1), k.SGD(0.1, global_clipnorm=0.5),
), ([0.1] * 5, [0.1, 0.1, 0.03, 0.03, 0.2])):
    assigned = rates[-1] != 0.1
    optimizer = type(optimizer).from_config(optimizer.get_config())
    v = [tf.Variable(rng.normal(size=3), dtype=tf.float32), tf.Variable(rng.normal(size=(2, 2)), dtype=tf.float32)]
    params = [jnp.array(x.numpy()) for x in v]
    optimizer.build(v)
    text = optax_text(optimizer, "0.1", assigned, "")
    other = eval(with_assigned_rate(text) if assigned else text)
    state = other.init(params)
    for rate in rates:
        optimizer.learning_rate = rate
        grads = [jnp.asarray(rng.normal(size=x.shape) * 10.0 ** rng.integers(-6, 1), jnp.float32) for x in params]
        optimizer.apply_gradients(zip([tf.constant(g) for g in grads], v))
        changes, state = other.update(grads, with_rate(state, rate) if assigned else state, params)
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
