#!/bin/bash
# autograd 1.9.1, NumPy 2.4.6: since NumPy 2 the sign of a complex z is z / |z|, which turns with z. autograd's derivative of `np.sign` is 0, as
# it was for NumPy 1, whose sign was a constant. So a phase that is written `sign` has no gradient, and z / |z| has it; JAX's
# `sign` has it since 0.12. autograd 1.9.1 supports NumPy 2, and says nothing here.
#
# Guessed: one derivative.
# Seen, of the real part at z = t + 1j, t = 1:
#   sign 0.7071, derivative 0.0000; z / |z| 0.7071, derivative 0.3536
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check autograd==1.9.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'PROGRAM'
import warnings

import autograd.numpy as np
from autograd import value_and_grad

warnings.simplefilter("ignore")
by_sign = value_and_grad(lambda t: np.real(np.sign(t + 1j)))(1.0)
by_abs = value_and_grad(lambda t: np.real((t + 1j) / np.abs(t + 1j)))(1.0)
print("sign {:.4f}, derivative {:.4f}; z / |z| {:.4f}, derivative {:.4f}".format(*by_sign, *by_abs))
assert [round(float(x), 4) for x in (*by_sign, *by_abs)] == [0.7071, 0.0, 0.7071, 0.3536]
PROGRAM
