#!/bin/bash
# NumPyro 0.22.0, JAX 0.10.2: the derivative of a `cdf` is the density, but not at the centre of two distributions: `Laplace.cdf` has 0
# there, and `icdf` at 0.5, too; `StudentT.cdf` has nan. A Laplace truncated at its own
# location has a gradient in silence that is wrong by 1: a fit that begins with `loc=0` and `low=0` is pushed where it is at rest.
#
# Guessed: the densities, 0.5 and 0.3676; 2 for the quantile; 0 for the truncated one.
# Seen:
#   Laplace cdf at 0: derivative 0.0, density 0.5
#   Laplace icdf at 0.5: derivative 0.0, of 0.501 2.004
#   StudentT cdf at 0: derivative nan, density 0.3676
#   truncated Laplace, log_prob of 1 by loc, at loc 0.0001: 0.0002, at 0: 1.0, at -0.0001: 0.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check numpyro==0.22.0 jax==0.10.2
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PROGRAM'
import jax
import jax.numpy as jnp
from numpyro.distributions import Laplace, StudentT, TruncatedDistribution


def shown(x):
    return round(float(x), 4)


for name, distribution in (("Laplace", Laplace(0.0, 1.0)), ("StudentT", StudentT(3.0))):
    derivative, density = jax.grad(distribution.cdf)(0.0), jnp.exp(distribution.log_prob(0.0))
    print(f"{name} cdf at 0: derivative {shown(derivative)}, density {shown(density)}")
    assert derivative == 0 if name == "Laplace" else jnp.isnan(derivative)
    assert abs(jax.grad(distribution.cdf)(0.01) - density) < 0.01

quantile = jax.grad(Laplace(0.0, 1.0).icdf)
print(f"Laplace icdf at 0.5: derivative {shown(quantile(0.5))}, of 0.501 {shown(quantile(0.501))}")
assert quantile(0.5) == 0 and abs(quantile(0.501) - 2) < 0.01

slope = jax.grad(lambda loc: TruncatedDistribution(Laplace(loc, 1.0), low=0.0).log_prob(1.0))
above, at, below = slope(1e-4), slope(0.0), slope(-1e-4)
print(f"truncated Laplace, log_prob of 1 by loc, at loc 0.0001: {shown(above)}, at 0: {shown(at)}, at -0.0001: {shown(below)}")
assert abs(above) < 1e-3 and abs(below) < 1e-3 and at == 1
PROGRAM
