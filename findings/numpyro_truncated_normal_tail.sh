#!/bin/bash
# NumPyro 0.22.0, JAX 0.10.2: the log density of a `TruncatedNormal` is inf where the mean is 15 standard
# deviations from the cut (50 with 64-bit types): the tail's probability underflows before its logarithm is taken, although the
# cut is a lower one and JAX has `logsf`. Its gradient is nan. An optimizer that maximises the likelihood has found its maximum there.
#
# Guessed: -2.8, -4.9 and -11.7, which `norm.logpdf(x - mean) - norm.logsf(low - mean)` gives.
# Seen, of the value 10.5 with low 10 and scale 1:
#   mean 0.0: log_prob -2.8127 gradient 0.4019 by logsf -2.8127
#   mean -5.0: log_prob inf gradient nan by logsf -4.9126
#   mean -20.0: log_prob inf gradient nan by logsf -11.7227
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check numpyro==0.22.0 jax==0.10.2
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PROGRAM'
import jax
from jax.scipy.stats import norm
from numpyro.distributions import TruncatedNormal


def log_prob(mean):
    return TruncatedNormal(mean, 1.0, low=10.0).log_prob(10.5)


for mean in (0.0, -5.0, -20.0):
    value, slope = map(float, jax.value_and_grad(log_prob)(mean))
    right = float(norm.logpdf(10.5 - mean) - norm.logsf(10.0 - mean))
    print(f"mean {mean}: log_prob {value:.4f} gradient {slope:.4f} by logsf {right:.4f}")
    assert abs(value - right) < 1e-3 if mean == 0 else value == float("inf") and slope != slope
PROGRAM
