#!/bin/bash
# jax-cosmo 0.1.0, JAX 0.10.2: the derivative of a distance by the curvature `Omega_k` is wrong, in silence, at a flat universe, which is
# where a Fisher forecast takes it: -694.6 of `transverse_comoving_distance` at scale factor 0.5, and -465.5 and -464.8 on both sides.
# The flat branch gives back the radial distance, without the term that curvature adds to it. `angular_diameter_distance`
# has it, too.
#
# Guessed: -465.2, the difference quotient.
# Seen, distances in Mpc/h:
#   Omega_k -0.001: 2313.4 derivative -465.5
#   Omega_k 0.0: 2312.9 derivative -694.6 difference quotient -465.2
#   Omega_k 0.001: 2312.5 derivative -464.8
#   angular diameter, Omega_k 0.0: derivative -347.3 difference quotient -232.6
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check jax-cosmo==0.1.0 jax==0.10.2 'setuptools<81'
JAX_PLATFORMS=cpu JAX_ENABLE_X64=1 "$folder/venv/bin/python" -W ignore - <<'PROGRAM'
import jax
import jax.numpy as jnp
import jax_cosmo
from jax_cosmo import background


def distance(curvature, of=background.transverse_comoving_distance):
    cosmology = jax_cosmo.Cosmology(0.25, 0.05, h=0.7, n_s=0.96, sigma8=0.8, Omega_k=curvature, w0=-1.0, wa=0.0)
    return of(cosmology, jnp.array([0.5]))[0]


def quotient(of):
    return float(distance(1e-3, of) - distance(-1e-3, of)) / 2e-3


transverse, angular = background.transverse_comoving_distance, background.angular_diameter_distance
for curvature in (-1e-3, 0.0, 1e-3):
    value, derivative = map(float, jax.value_and_grad(distance)(curvature))
    beside = f" difference quotient {quotient(transverse):.1f}" if curvature == 0 else ""
    print(f"Omega_k {curvature}: {value:.1f} derivative {derivative:.1f}{beside}")
    assert abs(derivative - (-694.62 if curvature == 0 else quotient(transverse))) < 1
derivative = float(jax.grad(distance)(0.0, angular))
print(f"angular diameter, Omega_k 0.0: derivative {derivative:.1f} difference quotient {quotient(angular):.1f}")
assert abs(derivative / quotient(angular) - 1.493) < 0.01
PROGRAM
