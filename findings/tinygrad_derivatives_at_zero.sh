#!/bin/bash
# tinygrad 0.14.0: at exactly 0 the derivatives of `asin`, `acos`, `atan`, `erf` and `elu` are 0, where all five are smooth enough to have
# another one. The first four are written with the sign and the magnitude of x, whose derivatives at 0 are 0; the last with `relu`, twice.
# `celu`, the same function as `elu`, is right, and so are `asinh` and `atanh`. A parameter that starts at 0 does not move.
#
# Guessed: 1, -1, 1, 1.1284 (2 / sqrt(pi)) and 1.
# Seen, at 0 and at 0.001:
#   asin 0.0000 1.0000, acos 0.0000 -1.0000, atan 0.0000 1.0000, erf 0.0000 1.1284, elu 0.0000 1.0000, celu 1.0000 1.0000
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check tinygrad==0.14.0
DEV=PYTHON "$folder/venv/bin/python" - <<'PROGRAM'
import math

from tinygrad import Tensor

slopes = {"asin": 1.0, "acos": -1.0, "atan": 1.0, "erf": 2 / math.sqrt(math.pi), "elu": 1.0, "celu": 1.0}
lines = []
for name, slope in slopes.items():
    x = Tensor([0.0, 0.001])
    at, near = getattr(x, name)().sum().gradient(x)[0].tolist()
    lines.append(f"{name} {at:.4f} {near:.4f}")
    assert at == (1.0 if name == "celu" else 0.0) and abs(near - slope) < 1e-4
print(", ".join(lines))
PROGRAM
