#!/bin/bash
# MLX 0.32.4 (CPU): reverse mode through `mx.cumprod` of complex numbers misses a conjugate. The last entry of the cumulative product is
# `mx.prod`, and the same as the product written out, but the gradient of its real part is the conjugate of what those two give.
#
# Guessed: one gradient for the three.
# Seen, of the real part of the product of 1 + 1j and 2 - 1j:
#   z[0] * z[1]: [(2+1j), (1-1j)]
#   prod: [(2+1j), (1-1j)]
#   cumprod: [(2-1j), (1+1j)]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check "mlx[cpu]==0.32.4"
"$folder/venv/bin/python" - <<'PROGRAM'
import mlx.core as mx

z = mx.array([1 + 1j, 2 - 1j])
products = {"z[0] * z[1]": lambda z: z[0] * z[1], "prod": mx.prod, "cumprod": lambda z: mx.cumprod(z)[-1]}
found = {}
for name, product in products.items():
    assert product(z).item() == 3 + 1j
    found[name] = mx.grad(lambda z: mx.real(product(z)))(z).tolist()
    print(f"{name}: {found[name]}")
assert found["z[0] * z[1]"] == found["prod"] == [2 + 1j, 1 - 1j] and found["cumprod"] == [2 - 1j, 1 + 1j]
PROGRAM
