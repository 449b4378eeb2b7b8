#!/bin/bash
# MLX 0.32.4 (CPU): `mx.grad` differentiates with respect to an integer, and even a bool, and gives the derivative in that dtype: it is
# truncated. The slope 2.5 becomes 2, the slope 0.5 becomes 0. JAX raises a TypeError, unless `allow_int=True`; autograd always.
#
# Guessed: an error.
# Seen:
#   2.5 x at 3: loss 7.5, derivative 2 (int32)
#   0.5 x at 3: loss 1.5, derivative 0 (int32)
#   a choice by a bool: derivative False (bool)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check "mlx[cpu]==0.32.4"
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PROGRAM'
import mlx.core as mx

for slope, seen in ((2.5, 2), (0.5, 0)):
    loss, derivative = mx.value_and_grad(lambda x: slope * x)(mx.array(3))
    print(f"{slope} x at 3: loss {loss.item()}, derivative {derivative.item()} (int32)")
    assert loss.item() == slope * 3 and derivative.dtype == mx.int32 and derivative.item() == seen
choice = mx.grad(lambda b: mx.where(b, 2.0, 3.0))(mx.array(True))
print(f"a choice by a bool: derivative {choice.item()} (bool)")
assert choice.dtype == mx.bool_ and choice.item() is False
assert mx.grad(lambda x: 2.5 * x)(mx.array(3.0)).item() == 2.5
PROGRAM
