#!/bin/bash
# PyTorch 2.13.0: at the edge, forward and reverse mode take different subgradients of the same function. At a tie `fmax` gives all to the first
# argument in reverse mode and all to the second in forward mode (`maximum` shares it in both); `prelu` at 0 has the slope
# of the left and of the right; `atan2` at the origin is 0 and nan. So `jacrev` and `jacfwd` of one network differ.
# JAX derives reverse mode from forward mode, so that its two agree.
#
# Guessed: one subgradient in both modes.
# Seen, reverse and forward:
#   fmax at (1, 1): [1.0, 0.0] and [0.0, 1.0]
#   prelu at 0, weight 0.3: [0.3, 0.0] and [1.0, 0.0]
#   atan2 at (0, 0): [0.0, 0.0] and [nan, nan]
#   maximum at (1, 1): [0.5, 0.5] and [0.5, 0.5]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PROGRAM'
import numpy as np
import torch
from torch.func import jacfwd, jacrev

nan = float("nan")
cases = {
    "fmax at (1, 1)": (torch.fmax, 1.0, 1.0, [1.0, 0.0], [0.0, 1.0]),
    "prelu at 0, weight 0.3": (torch.nn.functional.prelu, 0.0, 0.3, [0.3, 0.0], [1.0, 0.0]),
    "atan2 at (0, 0)": (torch.atan2, 0.0, 0.0, [0.0, 0.0], [nan, nan]),
    "maximum at (1, 1)": (torch.maximum, 1.0, 1.0, [0.5, 0.5], [0.5, 0.5]),
}
for name, (f, x, y, *seen) in cases.items():
    at = torch.tensor(x, dtype=torch.float64), torch.tensor(y, dtype=torch.float64)
    reverse, forward = ([mode(f, i)(*at).item() + 0.0 for i in range(2)] for mode in (jacrev, jacfwd))
    print(f"{name}: {reverse} and {forward}")
    np.testing.assert_array_equal([reverse, forward], seen)
PROGRAM
