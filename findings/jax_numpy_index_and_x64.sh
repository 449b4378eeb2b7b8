#!/bin/bash
# JAX 0.10.2 (0.12.0.1 does the same): while a jitted function lives that was traced with 64-bit types off, the NumPy array that it takes
# as an index is known as one of 32 bits. With 64-bit types on, every other function raises a TypeError at that array; a copy is taken.
#
# Guessed: `jax.enable_x64` is part of each key, so that what was traced before does not matter, and another function less.
# Seen:
#   the array: lax.add requires arguments to have the same dtypes, got int32, int64
#   a copy of it: (4, 3)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check jax==0.10.2 jaxlib==0.10.2
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PROGRAM'
import jax
import jax.numpy as jnp
import numpy as np

x, columns = jnp.ones((4, 3)), np.array([0, 2, 1])


def before(x):
    return x[:, columns]


jax.jit(before)(x)
with jax.enable_x64(True):
    try:
        jax.jit(lambda x: x[:, columns])(x)
    except TypeError as error:
        text = str(error).partition(".")[0] + "." + str(error).partition(".")[2].partition(".")[0]
    copied = jax.jit(lambda x: x[:, columns.copy()])(x).shape
print(f"the array: {text}")
print(f"a copy of it: {copied}")
assert text == "lax.add requires arguments to have the same dtypes, got int32, int64" and copied == (4, 3)
PROGRAM
