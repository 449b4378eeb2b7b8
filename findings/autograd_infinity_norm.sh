#!/bin/bash
# autograd 1.9.1, NumPy 2.4.6: `np.linalg.norm(x, np.inf)` has a value, but its derivative is nan, at the entry of largest magnitude as well, unless
# that is 1: the rule is that of a p-norm, and infinity is put in for p. The derivative is 1 or -1 at that entry and 0
# elsewhere, as JAX gives it, and autograd itself of `np.max(np.abs(x))`. Orders that the rule cannot serve (1, and 2 of a matrix)
# raise NotImplementedError.
#
# Guessed: one 1 or -1.
# Seen, at [0.5, 1.5, -2.0], no two magnitudes alike:
#   norm 2.0: [0.0, nan, nan]; max of abs 2.0: [0.0, 0.0, -1.0]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check autograd==1.9.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'PROGRAM'
import warnings

import autograd.numpy as np
import numpy
from autograd import value_and_grad

warnings.simplefilter("ignore")
x = np.array([0.5, 1.5, -2.0])
norm, nan = value_and_grad(lambda x: np.linalg.norm(x, np.inf))(x)
same, right = value_and_grad(lambda x: np.max(np.abs(x)))(x)
print(f"norm {norm}: {nan.tolist()}; max of abs {same}: {right.tolist()}")
assert norm == same == 2.0 and right.tolist() == [0.0, 0.0, -1.0]
numpy.testing.assert_array_equal(nan, [0.0, np.nan, np.nan])
PROGRAM
