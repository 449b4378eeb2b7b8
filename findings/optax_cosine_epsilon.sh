#!/bin/bash
# Optax 0.2.8: `cosine_similarity(..., epsilon=e)` calls e the minimum norm of a term in the denominator. It is the minimum of the
# *squared* norm: the norm is at least the square root of e. So the derivative at the zero vector, which epsilon bounds, is 1 / sqrt(e).
#
# Guessed: 0 at the zero vector, as with `optax.safe_norm`; what its documentation says makes it 1 / e.
# Seen:
#   epsilon 0.0001: the derivative is 100.0, not 10000.0; of parallel vectors, one of norm 0.001: 0.1, not 1.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check optax==0.2.8 jax==0.10.2
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PROGRAM'
import jax
import jax.numpy as jnp
import numpy as np
from optax import cosine_similarity

e, unit = 1e-4, jnp.array([1.0, 0.0])
slope = jax.grad(lambda x: cosine_similarity(x, unit, epsilon=e))(jnp.zeros(2))[0]
parallel = cosine_similarity(1e-3 * unit, unit, epsilon=e)  # its norm is above epsilon
print(f"epsilon {e}: the derivative is {slope:.1f}, not {1 / e:.1f}; of parallel vectors, one of norm 0.001: {parallel:.1f}, not 1.0")
np.testing.assert_allclose([slope, parallel], [e**-0.5, 0.1], rtol=1e-4)
PROGRAM
