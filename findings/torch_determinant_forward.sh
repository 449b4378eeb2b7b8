#!/bin/bash
# PyTorch 2.13.0: the determinant is a polynomial of the entries, and its derivative is the cofactors, of a singular matrix as well. In reverse
# mode `torch.linalg.det` gives them. In forward mode (`torch.func.jvp`, `jacfwd`, dual numbers) it gives zeros where the LU
# factorisation ends in a zero pivot, in silence. JAX gives the cofactors in both modes.
#
# Guessed: both modes agree, away from ties and poles.
# Seen, of [[1, 2], [2, 4]]:
#   reverse [[4.0, -2.0], [-2.0, 1.0]], forward [[0.0, 0.0], [0.0, 0.0]], a step of 0.5 in the first entry: 2.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PROGRAM'
import torch
from torch.func import jacfwd, jacrev

singular = torch.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=torch.float64)
step = torch.tensor([[0.5, 0.0], [0.0, 0.0]], dtype=torch.float64)
reverse = jacrev(torch.linalg.det)(singular).round(decimals=6)
forward = jacfwd(torch.linalg.det)(singular).abs()
moved = round(torch.linalg.det(singular + step).item(), 6)
print(f"reverse {reverse.tolist()}, forward {forward.tolist()}, a step of 0.5 in the first entry: {moved}")
assert reverse.tolist() == [[4.0, -2.0], [-2.0, 1.0]] and (forward == 0).all() and moved == 2.0
PROGRAM
