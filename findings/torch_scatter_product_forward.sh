#!/bin/bash
# PyTorch 2.13.0: the forward-mode derivative of `scatter_reduce` with `reduce="prod"` is 0, with respect to both of its tensors, at points that
# are neither ties nor zeros, in silence. Reverse mode is right, and for `sum`, `mean` and `amax` the modes agree.
# Other operations without a forward rule raise NotImplementedError.
#
# Guessed: both modes agree, away from ties and poles.
# Seen, of the products 2 * 7 * 3 and 5 * 4, with respect to 2, 5 and to 7, 3, 4:
#   reverse [21.0, 4.0] and [6.0, 14.0, 5.0]
#   forward [0.0, 0.0] and [0.0, 0.0, 0.0]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PROGRAM'
import torch
from torch.func import jacfwd, jacrev

start, factors, index = torch.tensor([2.0, 5.0]), torch.tensor([7.0, 3.0, 4.0]), torch.tensor([0, 0, 1])


def total(start, factors):
    return start.scatter_reduce(0, index, factors, "prod").sum()


assert total(start, factors) == 2 * 7 * 3 + 5 * 4
found = {name: [mode(total, i)(start, factors).tolist() for i in range(2)] for name, mode in (("reverse", jacrev), ("forward", jacfwd))}
for name, (first, second) in found.items():
    print(name, first, "and", second)
assert found == {"reverse": [[21.0, 4.0], [6.0, 14.0, 5.0]], "forward": [[0.0, 0.0], [0.0, 0.0, 0.0]]}
PROGRAM
