#!/bin/bash
# JAX 0.10.2: `x ** 0` is 1 everywhere, and its derivative at 0 depends on the dtype of the exponent: 0 for an integer, nan for a float, whose
# rule is 0 times 0 to the power -1. So the features 1, x, x^2 of a polynomial, as a power by a range, have the derivative 1 at 0 with
# `arange(3)`, and nan with `arange(3.0)`; the other powers agree. JAX 0.12.0.1 does the same. autograd and tinygrad give 0 for both.
#
# Guessed: the derivatives of the values, 0 and 1, for both.
# Seen, at 0:
#   int: powers [0.0, 1.0, 0.0], features 1.0
#   float: powers [nan, 1.0, 0.0], features nan
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check jax==0.10.2
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PROGRAM'
import jax
import jax.numpy as jnp
import numpy as np

for kind, power in ((int, 0.0), (float, np.nan)):
    powers = [jax.grad(lambda x: x ** kind(n))(0.0).item() for n in range(3)]
    features = jax.grad(lambda x: jnp.sum(x ** jnp.arange(kind(3))))(0.0).item()
    print(f"{kind.__name__}: powers {powers}, features {features}")
    np.testing.assert_array_equal([*powers, features], [power, 1.0, 0.0, 1.0 + power])
PROGRAM
