#!/bin/bash
# PyTensor 3.0.7: the gradient of `cumprod` divides by its argument, and is nan at an entry that is 0; that of `prod`, which takes care of zeros,
# is right, and the last entry of the cumulative product is that product. JAX, MLX and tinygrad are right for both.
# PyTensor 3.3.8 (Python 3.13) does the same.
#
# Guessed: right, as `prod` is.
# Seen, at [2, 0, 3]:
#   prod [0.0, 6.0, 0.0], last of cumprod [0.0, nan, 0.0]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check pytensor==3.0.7 numpy==2.4.6
PYTENSOR_FLAGS=cxx=,mode=FAST_COMPILE "$folder/venv/bin/python" - <<'PROGRAM'
import numpy as np
import pytensor
import pytensor.tensor as pt

x = pt.dvector("x")
at = np.array([2.0, 0.0, 3.0])
product = pytensor.function([x], pytensor.grad(pt.prod(x), x))(at)
last = pytensor.function([x], pytensor.grad(pt.cumprod(x)[-1], x))(at)
print(f"prod {product.tolist()}, last of cumprod {last.tolist()}")
np.testing.assert_array_equal(product, [0.0, 6.0, 0.0])
np.testing.assert_array_equal(last, [0.0, np.nan, 0.0])
PROGRAM
