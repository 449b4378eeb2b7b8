#!/bin/bash
# Distrax 0.1.9, JAX 0.10.2, float32. `Sigmoid.forward_log_det_jacobian` is written for arguments that are far out, and its value is right
# there; its gradient is nan from 89 on, to both sides: what takes the place of softplus for x < -9 overflows for the other x, behind
# a `where`, and the gradient of that is infinity times 0. So is the gradient of the density of a logit-normal distribution.
# `VonMises.log_prob` takes the logarithm of the Bessel function i0 without its scaling: from a concentration of 90 on, a standard
# deviation of 6 degrees, it is -inf everywhere, at the mode too, where `entropy` is finite.
#
# Guessed: gradients 1 and -1 of the first; of the second 1.33, log(sqrt(90 / (2 pi))).
# Seen:
#   sigmoid at -88: -88, gradient 1
#   sigmoid at -89: -89, gradient nan
#   sigmoid at 100: -100, gradient nan
#   von Mises, concentration 80: 1.27 at the mode, entropy -0.77
#   von Mises, concentration 90: -inf at the mode, entropy -0.83
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check distrax==0.1.9 jax==0.10.2
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PROGRAM'
import distrax
import jax
import numpy as np

log_slope = distrax.Sigmoid().forward_log_det_jacobian
for x, seen in ((-88.0, 1.0), (-89.0, np.nan), (100.0, np.nan)):
    value, gradient = jax.value_and_grad(log_slope)(x)
    print(f"sigmoid at {x:g}: {value:g}, gradient {gradient:g}")
    np.testing.assert_allclose([value, gradient], [-abs(x), seen], rtol=1e-5)
for concentration, *seen in ((80.0, 1.2705, -0.7689), (90.0, -np.inf, -0.8282)):
    of = distrax.VonMises(0.0, concentration)
    print(f"von Mises, concentration {concentration:g}: {of.log_prob(0.0):.2f} at the mode, entropy {of.entropy():.2f}")
    np.testing.assert_allclose([of.log_prob(0.0), of.entropy()], seen, rtol=1e-3)
PROGRAM
