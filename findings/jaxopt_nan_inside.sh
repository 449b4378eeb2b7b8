#!/bin/bash
# JAXopt 0.8.5, JAX 0.10.2: `projection_l2_ball` is the identity inside the ball, but at its center the derivative is nan; `prox_group_lasso` is
# constant around 0, and has the derivative nan at 0. Both divide by the norm and guard only the value. 0 is where coefficients
# start, and where a group lasso sends them. Optax's projection of the same name gives the identity.
#
# Guessed: the identity and 0.
# Seen:
#   projection at 0: nan, near 0: [[1.0, 0.0], [0.0, 1.0]]
#   prox at 0: nan, near 0: [[0.0, 0.0], [0.0, 0.0]]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check jaxopt==0.8.5 jax==0.10.2
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PROGRAM'
import jax
import jax.numpy as jnp
from jaxopt.projection import projection_l2_ball
from jaxopt.prox import prox_group_lasso

at, near = jnp.zeros(2), jnp.array([1e-6, 0.0])
for name, f, seen in (("projection", projection_l2_ball, jnp.eye(2)), ("prox", prox_group_lasso, jnp.zeros((2, 2)))):
    assert (f(at) == 0).all() and jnp.isnan(jax.jacobian(f)(at)).all()
    print(f"{name} at 0: nan, near 0: {jax.jacobian(f)(near).tolist()}")
    assert (jax.jacobian(f)(near) == seen).all()
PROGRAM
