#!/bin/bash
# autograd 1.9.1, NumPy 2.4.6: `np.linalg.cholesky` takes a complex Hermitian matrix, and its derivative is wrong, in silence: the rule
# transposes where it should conjugate as well. A log-determinant by way of it loses the dependence on the imaginary part of an
# entry. That by `slogdet` has it, and JAX's Cholesky as well.
#
# Guessed: one derivative for the two, or an error.
# Seen, of the log-determinant of [[4, z], [conj(z), 3]] at z = 1 + 0.5j, with respect to the imaginary part of z:
#   by_slogdet -0.0930, difference quotient -0.0930
#   by_cholesky 0.0000, difference quotient -0.0930
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check autograd==1.9.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'PROGRAM'
import warnings

import autograd.numpy as np
from autograd import grad

warnings.simplefilter("ignore")


def hermitian(t):
    return np.array([[4.0, 1 + 1j * t], [1 - 1j * t, 3.0]])


def by_slogdet(t):
    return np.linalg.slogdet(hermitian(t))[1]


def by_cholesky(t):
    return 2 * np.sum(np.log(np.real(np.diag(np.linalg.cholesky(hermitian(t))))))


for f, seen in ((by_slogdet, -0.0930), (by_cholesky, 0.0)):
    derivative, quotient = grad(f)(0.5), (f(0.5 + 1e-5) - f(0.5 - 1e-5)) / 2e-5
    print(f"{f.__name__} {derivative:.4f}, difference quotient {quotient:.4f}")
    assert round(derivative, 4) == seen and round(quotient, 4) == -0.0930
PROGRAM
