#!/bin/bash
# tinygp 0.3.1, JAX 0.10.2: `quasisep.SHO`, the covariance of a damped oscillator, is smooth in its `quality`. At 0.5, critical damping,
# where it is of another form, that form does not have the quality in it: the derivative is 0, between -0.245 on either side. A
# fit that begins at 0.5 does not move from there, and whoever looks at the gradient finds an optimum.
#
# Guessed: -0.245 at 0.5, too.
# Seen, of the covariance at distance 1 with omega 1:
#   0.499 value 0.736 derivative -0.2458
#   0.5 value 0.7358 derivative 0.0 difference quotient -0.2453
#   0.501 value 0.7355 derivative -0.2447
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check tinygp==0.3.1 jax==0.10.2
JAX_PLATFORMS=cpu JAX_ENABLE_X64=1 "$folder/venv/bin/python" - <<'PROGRAM'
import jax
import numpy as np
from tinygp.kernels.quasisep import SHO


def covariance(quality):
    return SHO(omega=1.0, quality=quality).evaluate(0.0, 1.0)


h = 1e-3
quotient = float(covariance(0.5 + h) - covariance(0.5 - h)) / (2 * h)
for quality in (0.499, 0.5, 0.501):
    value, derivative = map(float, jax.value_and_grad(covariance)(quality))
    print(quality, "value", round(value, 4), "derivative", round(derivative, 4), *(["difference quotient", round(quotient, 4)] * (quality == 0.5)))
    assert derivative == 0 if quality == 0.5 else np.isclose(derivative, quotient, rtol=0.01)
assert np.isclose(quotient, -0.2453, rtol=0.001)
PROGRAM
