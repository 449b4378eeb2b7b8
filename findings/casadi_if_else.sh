#!/bin/bash
# CasADi 3.8.2: an `if_else` that hides a pole has no trap. The derivative of `if_else(x > 0, sqrt(x), 0)` at 0 is 0, in forward and reverse mode, of
# scalar (SX) and matrix (MX) expressions, and the Hessian as well, though `if_else` evaluates both branches. JAX, autograd, MLX and tinygrad
# give nan for `where`, since 0 times the infinite slope is nan. The same choice as a product, `(x > 0) * sqrt(x)`, is nan here too.
#
# Guessed: nan.
# Seen:
#   SX if_else: jacobian 0.0, forward 0.0, reverse 0.0, hessian 0.0; product: nan
#   MX if_else: jacobian 0.0, forward 0.0, reverse 0.0, hessian 0.0; product: nan
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check casadi==3.8.2
"$folder/venv/bin/python" - <<'PROGRAM'
import math

from casadi import MX, SX, Function, hessian, if_else, jacobian, jtimes, sqrt

for kind in (SX, MX):
    x = kind.sym("x")
    y = if_else(x > 0, sqrt(x), 0)
    derivatives = [jacobian(y, x), jtimes(y, x, 1), jtimes(y, x, 1, True), hessian(y, x)[0], jacobian((x > 0) * sqrt(x), x)]
    *found, product = (float(d) for d in Function("f", [x], derivatives)(0.0))
    names = ("jacobian", "forward", "reverse", "hessian")
    print(kind.__name__, "if_else:", ", ".join(f"{n} {d}" for n, d in zip(names, found)) + f"; product: {product}")
    assert found == [0.0] * 4 and math.isnan(product)
PROGRAM
