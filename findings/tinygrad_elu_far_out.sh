#!/bin/bash
# tinygrad 0.14.0: for a large positive x the functions `elu`, `celu` and `selu` have the right value, x times a constant, but the derivative nan.
# The branch for negative x has the weight 0 there, and 0 times the infinity of its exp(x) is nan. In float32 that begins just
# below 89. JAX guards the exponent; tinygrad's own `softplus` and `mish`, which have an exponential too, are right.
#
# Guessed: the constant, 1 or 1.0507.
# Seen:
#   elu: at 88 1.0000, at 89 nan; value at 89: 89.0000
#   celu: at 88 1.0000, at 89 nan; value at 89: 89.0000
#   selu: at 88 1.0507, at 89 nan; value at 89: 93.5123
#   softplus: at 88 1.0000, at 89 1.0000; value at 89: 89.0000
#   mish: at 88 1.0000, at 89 1.0000; value at 89: 89.0000
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check tinygrad==0.14.0
DEV=PYTHON "$folder/venv/bin/python" - <<'PROGRAM'
import math

from tinygrad import Tensor

for name, slope in (("elu", 1.0), ("celu", 1.0), ("selu", 1.0507), ("softplus", 1.0), ("mish", 1.0)):
    x = Tensor([88.0, 89.0])
    y = getattr(x, name)()
    below, above = y.sum().gradient(x)[0].tolist()
    print(f"{name}: at 88 {below:.4f}, at 89 {above:.4f}; value at 89: {y.tolist()[1]:.4f}")
    assert math.isclose(below, slope, rel_tol=1e-4) and math.isclose(y.tolist()[1], 89 * slope, rel_tol=1e-4)
    assert math.isnan(above) if name.endswith("elu") else above == 1.0
PROGRAM
