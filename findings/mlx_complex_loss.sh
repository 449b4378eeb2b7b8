#!/bin/bash
# MLX 0.32.4 (CPU): `mx.grad` takes a loss that is complex, where JAX and autograd raise a TypeError. It gives the pullback of
# 1 + 0j, the conjugate of the derivative: of z^2 at 1 + 2j it is 2 - 4j, while `mx.jvp` along 1 gives 2 + 4j. Of the real part of
# z^2 it gives 2 - 4j as well, the direction in which that grows fastest: no result tells which of the two losses was meant.
#
# Guessed: an error for the complex loss.
# Seen:
#   grad of z^2: (2-4j); grad of its real part: (2-4j); jvp of z^2: (2+4j)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check "mlx[cpu]==0.32.4"
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PROGRAM'
import mlx.core as mx

z = mx.array(1 + 2j)
square = mx.grad(lambda z: z * z)(z).item()
real = mx.grad(lambda z: mx.real(z * z))(z).item()
along = mx.jvp(lambda z: z * z, [z], [mx.array(1 + 0j)])[1][0].item()
print(f"grad of z^2: {square}; grad of its real part: {real}; jvp of z^2: {along}")
assert (square, real, along) == (2 - 4j, 2 - 4j, 2 + 4j)
PROGRAM
