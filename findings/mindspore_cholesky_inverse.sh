#!/bin/bash
# MindSpore 2.10.0 (CPU), NumPy 1.26.4: `ops.cholesky_inverse(factor)` is the inverse of the matrix that has this Cholesky factor. Of a lower factor, the
# default, its value is right and its gradient wrong, in silence, not even in sign. Of the transpose with `upper=True`, the same
# function, it is right. A covariance that is parametrised by its factor is trained along a wrong direction.
#
# Guessed: the gradient of the value, for either triangle.
# Seen, at the factor [[2, 0], [1, 1.5]], gradient and difference quotient, where the factor is not 0:
#   lower: [-0.225, 0.35, -1.617] and [0.083, -0.667, -1.926]
#   upper: [0.083, -0.667, -1.926] and [0.083, -0.667, -1.926]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check mindspore==2.10.0 numpy==1.26.4
cat >"$folder/program.py" <<'PROGRAM'
import mindspore as ms
import numpy as np
from mindspore import Tensor, ops

ms.set_device("CPU")
factor, weights = np.array([[2.0, 0.0], [1.0, 1.5]]), np.array([[1.0, 2.0], [2.0, 5.0]])
seen = {"lower": [-0.225, 0.35, -1.617], "upper": [0.083, -0.667, -1.926]}


def by_numpy(lower):
    return (np.linalg.inv(lower @ lower.T) * weights).sum()


quotient = np.zeros((2, 2))
for i in np.ndindex(2, 2):
    step = np.zeros((2, 2))
    step[i] = 1e-6
    quotient[i] = (by_numpy(factor + step) - by_numpy(factor - step)) / 2e-6
entries = np.tril_indices(2)
for name, given in (("lower", factor), ("upper", factor.T.copy())):

    def f(factor):
        return (ops.cholesky_inverse(factor, name == "upper") * Tensor(weights, ms.float32)).sum()

    point = Tensor(given, ms.float32)
    gradient = ms.grad(f)(point).asnumpy()
    found = (gradient.T if name == "upper" else gradient)[entries]
    print(f"{name}:", " and ".join(str([round(float(g), 3) for g in gs]) for gs in (found, quotient[entries])))
    np.testing.assert_allclose(f(point).asnumpy(), by_numpy(factor), rtol=1e-5)
    np.testing.assert_allclose(found, seen[name], atol=2e-3)
    assert np.allclose(found, quotient[entries], atol=2e-3) == (name == "upper")
PROGRAM
"$folder/venv/bin/python" "$folder/program.py"
