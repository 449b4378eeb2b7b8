#!/bin/bash
# autograd 1.9.1, NumPy 2.4.6: `np.sinc` is there to close the gap of sin(pi x) / (pi x) at 0, where it is smooth. Its value at 0 is 1, but its
# derivative there is nan, of any grid that has a 0 in it: the rule divides by x^2. JAX gives 0.
#
# Guessed: 0.
# Seen:
#   0.5: -1.2732, 0.0: nan, -0.5: 1.2732
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check autograd==1.9.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'PROGRAM'
import warnings

import autograd.numpy as np
import numpy
from autograd import elementwise_grad

warnings.simplefilter("ignore")
x = np.array([0.5, 0.0, -0.5])
derivative = elementwise_grad(np.sinc)(x)
print(", ".join(f"{a}: {b:.4f}" for a, b in zip(x, derivative)))
numpy.testing.assert_allclose(derivative, [-4 / np.pi, np.nan, 4 / np.pi], atol=1e-12)
assert np.sinc(0.0) == 1
PROGRAM
