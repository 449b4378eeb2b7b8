#!/bin/bash
# PyTensor 3.0.7: where the largest entry occurs twice, `max` gives the whole derivative to each of the two, so a step along both counts double:
# the derivatives of the maximum of two equal numbers add up to 2, and no convex combination of its subgradients does. `min` and
# `ptp` likewise, while `maximum(a, b)` gives all of it to a. JAX, autograd, MLX, tinygrad and CasADi share a tie.
# PyTensor 3.3.8 (Python 3.13) does the same.
#
# Guessed: derivatives that add up to 1.
# Seen:
#   max [1.0, 1.0, 0.0], min [1.0, 1.0, 0.0], maximum (1.0, 0.0)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check pytensor==3.0.7 numpy==2.4.6
PYTENSOR_FLAGS=cxx=,mode=FAST_COMPILE "$folder/venv/bin/python" - <<'PROGRAM'
import numpy as np
import pytensor
import pytensor.tensor as pt

x, a, b = pt.dvector("x"), pt.dscalar("a"), pt.dscalar("b")
largest = pytensor.function([x], pytensor.grad(pt.max(x), x))(np.array([1.0, 1.0, 0.0])).tolist()
smallest = pytensor.function([x], pytensor.grad(pt.min(x), x))(np.array([1.0, 1.0, 2.0])).tolist()
pair = tuple(float(d) for d in pytensor.function([a, b], pytensor.grad(pt.maximum(a, b), [a, b]))(1.0, 1.0))
print(f"max {largest}, min {smallest}, maximum {pair}")
assert largest == smallest == [1.0, 1.0, 0.0] and pair == (1.0, 0.0)
PROGRAM
