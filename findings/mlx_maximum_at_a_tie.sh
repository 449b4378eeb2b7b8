#!/bin/bash
# MLX 0.32.4 (CPU): at a tie `mx.maximum` and `mx.minimum` give all of the derivative to the *second* argument, so a rectifier depends on
# the order in which it is written: `maximum(x, 0)` has the derivative 0 at 0, `maximum(0, x)` has 1. The reduction `mx.max` shares
# a tie. JAX and autograd give a half to each argument, TensorFlow all to the first.
#
# Guessed: all to the first.
# Seen:
#   maximum (0.0, 1.0), minimum (0.0, 1.0), maximum(x, 0) at 0: 0.0, maximum(0, x) at 0: 1.0, max of two: [0.5, 0.5]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check "mlx[cpu]==0.32.4"
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PROGRAM'
import mlx.core as mx

one, zero = mx.array(1.0), mx.array(0.0)
maximum, minimum = (tuple(x.item() for x in mx.grad(f, (0, 1))(one, one)) for f in (mx.maximum, mx.minimum))
right = mx.grad(lambda x: mx.maximum(x, 0.0))(zero).item()
left = mx.grad(lambda x: mx.maximum(0.0, x))(zero).item()
reduction = mx.grad(mx.max)(mx.array([1.0, 1.0])).tolist()
print(f"maximum {maximum}, minimum {minimum}, maximum(x, 0) at 0: {right}, maximum(0, x) at 0: {left}, max of two: {reduction}")
assert maximum == minimum == (0.0, 1.0) and (right, left) == (0.0, 1.0) and reduction == [0.5, 0.5]
PROGRAM
