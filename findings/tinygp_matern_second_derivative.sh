#!/bin/bash
# tinygp 0.3.1, JAX 0.10.2: `Matern52` with `L2Distance`, at a point and itself. The covariance of the gradient, the mixed second derivative
# with respect to both points, is 5/3 times the identity; automatic differentiation gives 5/3 in every element, as if all partial derivatives
# were one and the same variable. `ExpSquared`, smooth in the square of the distance, is right, and so is `Matern52` a little way off. A
# process that is observed with its gradients has these matrices on the diagonal of its covariance: it is singular there, and no error says so.
#
# Guessed: the identity, or nan.
# Seen, of the points (1, 2) and (1, 2):
#   ExpSquared [[1.0, 0.0], [0.0, 1.0]]
#   Matern52 [[1.667, 1.667], [1.667, 1.667]]
#   Matern52, 1e-5 apart [[1.667, 0.0], [0.0, 1.667]]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check tinygp==0.3.1 jax==0.10.2
JAX_PLATFORMS=cpu JAX_ENABLE_X64=1 "$folder/venv/bin/python" - <<'PROGRAM'
import jax
import jax.numpy as jnp
import numpy as np
from tinygp import kernels

x = jnp.array([1.0, 2.0])
matern = kernels.Matern52(distance=kernels.L2Distance())
smooth = kernels.ExpSquared(distance=kernels.L2Distance())
identity = np.eye(2)


def covariance(kernel, a, b):
    return np.asarray(jax.jacfwd(jax.grad(kernel.evaluate), argnums=1)(a, b))


for name, kernel, other, seen in (
    ("ExpSquared", smooth, x, identity),
    ("Matern52", matern, x, np.full((2, 2), 5 / 3)),
    ("Matern52, 1e-5 apart", matern, x + jnp.array([1e-5, 0.0]), 5 / 3 * identity),
):
    found = covariance(kernel, x, other)
    print(name, found.round(3).tolist())
    assert np.allclose(found, seen, atol=1e-3)

# the difference quotient of the value itself, of both points' second and first coordinates
h, (i, j) = 1e-3, np.eye(2)
for first, second, true in ((i, i, 5 / 3), (i, j, 0.0)):
    quotient = sum(s * t * matern.evaluate(x + s * h * first, x + t * h * second) for s in (1, -1) for t in (1, -1)) / (4 * h * h)
    assert np.isclose(quotient, true, atol=0.02)
PROGRAM
