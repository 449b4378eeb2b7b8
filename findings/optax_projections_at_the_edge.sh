#!/bin/bash
# Optax 0.2.8: numbers that are not negative are the box from 0 to infinity, and the two projections onto that set have the same
# values. Their derivatives at the edge differ: `projection_non_negative` gives 0 there, `projection_box` a half (and so does
# `projection_hypercube`). The first is `relu`, the second `clip`.
#
# Guessed: a half for all.
# Seen:
#   non-negative 0.0, box 0.5, hypercube 0.5
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check optax==0.2.8 jax==0.10.2
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PROGRAM'
import jax
import jax.numpy as jnp
from optax.projections import projection_box, projection_hypercube, projection_non_negative

x = jnp.linspace(-2.0, 2.0, 9)
assert (projection_non_negative(x) == projection_box(x, 0.0, jnp.inf)).all()
non_negative = jax.grad(projection_non_negative)(0.0)
box = jax.grad(lambda x: projection_box(x, 0.0, jnp.inf))(0.0)
hypercube = jax.grad(projection_hypercube)(0.0)
print(f"non-negative {non_negative}, box {box}, hypercube {hypercube}")
assert (non_negative, box, hypercube) == (0.0, 0.5, 0.5)
PROGRAM
