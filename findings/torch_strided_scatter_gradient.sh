#!/bin/bash
# PyTorch 2.13.0: `as_strided_scatter(x, y, ...)` is x with some entries overwritten by y. Its gradient with respect to x is the wrong way round, in
# silence: 1 at the entries that were overwritten, and 0 at those that were kept. Forward mode is right, and so are both modes of
# `slice_scatter`, the same operation for a slice.
#
# Guessed: 0 at the overwritten entries, 1 at the others.
# Seen, of the sum of [1, 2, 3] with the first entry overwritten:
#   as_strided_scatter: reverse [1.0, 0.0, 0.0], forward [0.0, 1.0, 1.0]
#   slice_scatter: reverse [0.0, 1.0, 1.0], forward [0.0, 1.0, 1.0]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PROGRAM'
import torch
from torch.func import jvp

x, y = torch.tensor([1.0, 2.0, 3.0], requires_grad=True), torch.tensor([10.0])
functions = {
    "as_strided_scatter": lambda x: torch.as_strided_scatter(x, y, size=(1,), stride=(1,), storage_offset=0).sum(),
    "slice_scatter": lambda x: torch.slice_scatter(x, y, dim=0, start=0, end=1).sum(),
}
for name, f in functions.items():
    assert f(x).item() == 10 + 2 + 3
    reverse = torch.autograd.grad(f(x), x)[0].tolist()
    forward = [jvp(f, (x.detach(),), (along,))[1].item() for along in torch.eye(3)]
    print(f"{name}: reverse {reverse}, forward {forward}")
    assert reverse == ([1.0, 0.0, 0.0] if name == "as_strided_scatter" else [0.0, 1.0, 1.0]) and forward == [0.0, 1.0, 1.0]
PROGRAM
