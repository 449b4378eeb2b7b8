#!/bin/bash
# NumPyro 0.22.0, JAX 0.10.2: a `Geometric` that is certain to succeed at once, `probs=1`, which its constraint (the unit interval) has in
# it, gives its only value, 0, the log probability -inf; no warning, with `validate_args=True` either. Bernoulli and binomial
# distributions clamp their probabilities, and have about 0.
#
# Guessed: 0, the logarithm of 1.
# Seen, of the value that is certain:
#   Geometric 0.999: -0.001
#   Geometric 1.0: -inf
#   Bernoulli 1.0: 0 within 1e-6
#   Binomial 1.0: 0 within 1e-6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check numpyro==0.22.0 jax==0.10.2
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PROGRAM'
import jax.numpy as jnp
from numpyro.distributions import Bernoulli, Binomial, Geometric

for probs in (0.999, 1.0):
    found = float(Geometric(probs=probs, validate_args=True).log_prob(0))
    print(f"Geometric {probs}: {found:.4g}")
    assert jnp.isneginf(found) if probs == 1 else abs(found + 0.001) < 1e-5
for name, found in (("Bernoulli", Bernoulli(probs=1.0).log_prob(1)), ("Binomial", Binomial(3, probs=1.0).log_prob(3))):
    assert abs(found) < 1e-6
    print(f"{name} 1.0: 0 within 1e-6")
PROGRAM
