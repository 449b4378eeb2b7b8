#!/bin/bash
# OTT-JAX 0.6.0, JAX 0.10.2: `ott.math.utils.logsumexp` has a rule of its own, so that a row of nothing but -inf (a mask, weights that are 0)
# has the gradient 0 and not nan. The rule also puts 0 in place of the *value*: the function gives -inf there, and
# 0 as soon as it is differentiated. `jax.value_and_grad` returns another loss than the function. JAX's `logsumexp` gives the
# same value both times.
#
# Guessed: the value is the same, differentiated or not.
# Seen, of the rows [0, 1] and [-inf, -inf], called and inside a derivative:
#   OTT [1.3133, -inf] and [1.3133, 0.0]
#   JAX [1.3133, -inf] and [1.3133, -inf]
#   exp of OTT's, summed: 3.7183 and 4.7183
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check ott-jax==0.6.0 jax==0.10.2
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PROGRAM'
import jax
import jax.numpy as jnp
from ott.math import utils

rows = jnp.array([[0.0, 1.0], [-jnp.inf, -jnp.inf]])


def rounded(values):
    return [round(v, 4) for v in values.tolist()]


seen = {"OTT": (utils.logsumexp, 0.0), "JAX": (jax.nn.logsumexp, -jnp.inf)}
for name, (logsumexp, inside) in seen.items():
    called = logsumexp(rows, axis=1)
    differentiated, _ = jax.vjp(lambda x: logsumexp(x, axis=1), rows)
    print(name, rounded(called), "and", rounded(differentiated))
    assert rounded(called) == [1.3133, -jnp.inf] and rounded(differentiated) == [1.3133, inside]


def total(x):
    return jnp.exp(utils.logsumexp(x, axis=1)).sum()


value, _ = jax.value_and_grad(total)(rows)
print(f"exp of OTT's, summed: {total(rows):.4f} and {value:.4f}")
assert abs(total(rows) - 3.7183) < 1e-4 and abs(value - 4.7183) < 1e-4
PROGRAM
