#!/bin/bash
# Warp 1.19.0 (CPU): `wp.mod(a, b)` has the derivative 1 with respect to a and 0 with respect to b, in silence, though it is a - trunc(a / b) b and
# Warp's list of functions counts it among those that are differentiable; written out it has minus the quotient. `wp.frac(x)` has the derivative 0,
# which the list says, where `wp.mod(x, 1.0)` and `x - wp.floor(x)`, the same numbers for a positive x, have 1. A
# period that is fitted (the side of a periodic box, a phase) does not move.
#
# Guessed: the derivatives of the values, for both.
# Seen, at a = 2.6 and b = 0.7:
#   mod(a, b) 0.5: 1.0 and 0.0
#   a - trunc(a / b) * b 0.5: 1.0 and -3.0
#   frac(a) 0.6: 0.0
#   mod(a, 1.0) 0.6: 1.0
#   a - floor(a) 0.6: 1.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check warp-lang==1.19.0 numpy==2.4.6
cat >"$folder/program.py" <<'PROGRAM'
import sys

import numpy as np
import warp as wp

wp.config.quiet = True
wp.config.kernel_cache_dir = sys.argv[1]


@wp.kernel
def remainders(a: wp.array(dtype=float), b: wp.array(dtype=float), y: wp.array(dtype=float)):
    y[0] = wp.mod(a[0], b[0])
    y[1] = a[0] - wp.trunc(a[0] / b[0]) * b[0]
    y[2] = wp.frac(a[0])
    y[3] = wp.mod(a[0], 1.0)
    y[4] = a[0] - wp.floor(a[0])


def array(values):
    return wp.array(values, dtype=float, requires_grad=True, device="cpu")


a, b, y = array([2.6]), array([0.7]), array(np.zeros(5))
tape = wp.Tape()
with tape:
    wp.launch(remainders, dim=1, inputs=[a, b, y], device="cpu")
seen = {
    "mod(a, b)": (0.5, 1.0, 0.0),
    "a - trunc(a / b) * b": (0.5, 1.0, -3.0),
    "frac(a)": (0.6, 0.0, 0.0),
    "mod(a, 1.0)": (0.6, 1.0, 0.0),
    "a - floor(a)": (0.6, 1.0, 0.0),
}
for i, (name, expected) in enumerate(seen.items()):
    tape.zero()
    tape.backward(grads={y: wp.array(np.eye(5)[i], dtype=float, device="cpu")})
    found = [float(z.numpy()[0]) for z in (a.grad, b.grad)]
    print(f"{name} {y.numpy()[i]:.1f}: " + (f"{found[0]} and {found[1]}" if i < 2 else f"{found[0]}"))
    np.testing.assert_allclose([y.numpy()[i], *found], expected, atol=1e-5)
PROGRAM
"$folder/venv/bin/python" "$folder/program.py" "$folder/kernels"
