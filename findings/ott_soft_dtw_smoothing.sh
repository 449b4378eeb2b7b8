#!/bin/bash
# OTT-JAX 0.6.0, JAX 0.10.2: `SoftDTW(gamma)` is a pytree with one leaf, its smoothing gamma, and `jax.grad` takes the cost with respect
# to it. The gradient is 0, in silence: `softmin` has a reverse-mode rule of its own, and that counts gamma as a constant. A
# gamma that is trained with the rest stays where it began. The same recursion in three lines has the derivative.
#
# Guessed: the derivative of the value.
# Seen, at gamma 0.5:
#   soft-DTW: gradient 0.0000, difference quotient -2.4902, written out -2.4902
#   softmin: gradient 0.0000, difference quotient -0.5951, written out -0.5951
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check ott-jax==0.6.0 jax==0.10.2
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PROGRAM'
import jax

jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from ott.geometry.costs import SoftDTW  # noqa: E402
from ott.math.utils import softmin  # noqa: E402

a, b = jnp.array([0.0, 1.0, 2.0, 1.5]), jnp.array([0.2, 0.9, 1.0])
assert jax.tree.leaves(SoftDTW(gamma=0.5)) == [0.5]


def least(values, gamma):
    return -gamma * jax.nn.logsumexp(-jnp.stack(values) / gamma)


def written_out(gamma):
    cost = {(-1, -1): 0.0}
    for i in range(len(a)):
        for j in range(len(b)):
            before = [cost[p] for p in ((i - 1, j - 1), (i - 1, j), (i, j - 1)) if p in cost]
            cost[i, j] = (a[i] - b[j]) ** 2 + least(before, gamma)
    return cost[len(a) - 1, len(b) - 1]


cases = {
    "soft-DTW": (lambda gamma: SoftDTW(gamma)(a, b), written_out, -2.4902),
    "softmin": (lambda gamma: softmin(a, gamma), lambda gamma: least(list(a), gamma), -0.5951),
}
for name, (f, plain, seen) in cases.items():
    quotient = (f(0.5 + 1e-5) - f(0.5 - 1e-5)) / 2e-5
    found = [jax.grad(f)(0.5), quotient, jax.grad(plain)(0.5)]
    print("{}: gradient {:.4f}, difference quotient {:.4f}, written out {:.4f}".format(name, *found))
    np.testing.assert_allclose(f(0.5), plain(0.5))
    np.testing.assert_allclose(found, [0.0, seen, seen], atol=1e-4)
PROGRAM
