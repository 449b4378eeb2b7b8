#!/bin/bash
# autograd 1.9.1, NumPy 2.4.6: a Python float stays one in the backward pass, and Python's arithmetic has no infinity at a pole. The
# derivative of `sqrt` at 0.0 is a ZeroDivisionError, at `np.float64(0.0)` and `np.array(0.0)` infinite. So a `where` that hides
# the pole raises for the one and is nan for the other. JAX gives infinity and nan for all three.
#
# Guessed: nan for the `where`, whichever zero.
# Seen:
#   float: sqrt ZeroDivisionError, where ZeroDivisionError
#   float64: sqrt inf, where nan
#   ndarray: sqrt inf, where nan
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check autograd==1.9.1 numpy==2.4.6
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PROGRAM'
import warnings

import autograd.numpy as np
from autograd import grad

warnings.simplefilter("ignore")


def outcome(f, x):
    try:
        return str(float(grad(f)(x)))
    except ZeroDivisionError as error:
        return type(error).__name__


seen = {"float": ["ZeroDivisionError"] * 2, "float64": ["inf", "nan"], "ndarray": ["inf", "nan"]}
for zero in (0.0, np.float64(0.0), np.array(0.0)):
    kind = type(zero).__name__
    found = [outcome(np.sqrt, zero), outcome(lambda x: np.where(x > 0, np.sqrt(x), 0.0), zero)]
    print(f"{kind}: sqrt {found[0]}, where {found[1]}")
    assert found == seen[kind]
PROGRAM
