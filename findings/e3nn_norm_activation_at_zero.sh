#!/bin/bash
# e3nn-jax 0.21.0, JAX 0.10.2: `norm_activation` multiplies a vector by a function of its norm. With tanh the product is of second order, so its
# derivative at the vector 0 is 0. It is given as tanh(1): the norm is replaced by 1 there to avoid a division, and the value, 0 times
# anything, does not show it. Vectors are exactly 0 by symmetry, where a cutoff ends, and in padding, so forces and weights are off.
#
# Guessed: 0, or nan.
# Seen, the derivative's diagonal:
#   at 0 [0.7616, 0.7616, 0.7616] difference quotient 0.0006
#   at 0.001 [0.0012, 0.0006, 0.0006]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check e3nn-jax==0.21.0 jax==0.10.2
JAX_PLATFORMS=cpu JAX_ENABLE_X64=1 "$folder/venv/bin/python" - <<'PROGRAM'
import e3nn_jax as e3nn
import jax
import jax.numpy as jnp
import numpy as np


def activated(vector):
    return e3nn.norm_activation(e3nn.IrrepsArray("1o", vector), [jnp.tanh]).array


step = jnp.array([1e-3, 0.0, 0.0])
quotient = float((activated(step) - activated(-step))[0]) / 2e-3
at, near = (np.diag(jax.jacobian(activated)(x)) for x in (jnp.zeros(3), step))
print("at 0", at.round(4).tolist(), "difference quotient", round(quotient, 4))
print("at 0.001", near.round(4).tolist())
assert np.allclose(at, np.tanh(1)) and quotient < 1e-3 and (near < 2e-3).all()
PROGRAM
