#!/bin/bash
# RLax 0.1.9, JAX 0.10.2: the transformations of values that agents learn with, `signed_hyperbolic` (R2D2, MuZero), `signed_parabolic`,
# `signed_logp1` and `signed_expm1`, are smooth where they change sign: their derivatives at 0 are the limits from both sides. Each is
# `sign(x)` times a function of `abs(x)`, and JAX's derivative at 0 is `sign(0)`, zero, times the rest. So a value head that gives 0,
# as one with weights of zero does, gets a 500th of its gradient or none.
#
# Guessed: 0.501, 1.996, 1 and 1 at 0, as nearby.
# Seen, the derivative at 0, and at 0.00001 and -0.00001:
#   signed_hyperbolic: 0.0010 at 0, 0.5010 and 0.5010 beside it
#   signed_parabolic: 0.0000 at 0, 1.9960 and 1.9960 beside it
#   signed_logp1: 0.0000 at 0, 1.0000 and 1.0000 beside it
#   signed_expm1: 0.0000 at 0, 1.0000 and 1.0000 beside it
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check rlax==0.1.9 jax==0.10.2
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PROGRAM'
import jax

jax.config.update("jax_enable_x64", True)
import numpy as np  # noqa: E402
import rlax  # noqa: E402

seen = {"signed_hyperbolic": (0.001, 0.501), "signed_parabolic": (0, 1.996), "signed_logp1": (0, 1), "signed_expm1": (0, 1)}
for name, (at_zero, beside) in seen.items():
    here, right, left = map(jax.grad(getattr(rlax, name)), (0.0, 1e-5, -1e-5))
    print(f"{name}: {here:.4f} at 0, {right:.4f} and {left:.4f} beside it")
    np.testing.assert_allclose([here, right, left], [at_zero, beside, beside], rtol=1e-3, atol=1e-4)
PROGRAM
