#!/bin/bash
# safetensors 0.8.0, NumPy 2.4.6: `safetensors.numpy` writes the elements of an array in the order of its memory, with the
# shape of the array. An array that is not C-contiguous (a transpose, Fortran order, a slice with a step) comes back as
# another array, of the same shape and dtype, without a word. `safetensors.flax`, of JAX's arrays, gives back what it was given.
#
# Guessed: the array is made contiguous first, and comes back as it was.
# Seen:
#   transpose [[0, 3], [1, 4], [2, 5]] came back as [[0, 1], [2, 3], [4, 5]]
#   Fortran order [[0, 1, 2], [3, 4, 5]] came back as [[0, 3, 1], [4, 2, 5]]
#   every second [0, 2, 4, 6] came back as [0, 1, 2, 3]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check safetensors==0.8.0 numpy==2.4.6
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PROGRAM'
import numpy as np
from safetensors.numpy import load, save

a = np.arange(6).reshape(2, 3)
cases = {
    "transpose": (a.T, [[0, 1], [2, 3], [4, 5]]),
    "Fortran order": (np.asfortranarray(a), [[0, 3, 1], [4, 2, 5]]),
    "every second": (np.arange(8)[::2], [0, 1, 2, 3]),
}
for name, (x, seen) in cases.items():
    back = load(save({"x": x}))["x"]
    print(name, x.tolist(), "came back as", back.tolist())
    assert back.shape == x.shape and back.tolist() == seen != x.tolist()
    assert load(save({"x": np.ascontiguousarray(x)}))["x"].tolist() == x.tolist()
PROGRAM
