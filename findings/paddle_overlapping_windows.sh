#!/bin/bash
# PaddlePaddle 3.3.1 (CPU): where the windows of `Tensor.unfold` or `as_strided` overlap, an element is in several of them, and its derivative is
# the sum over these. Both give that of one window alone, in silence: what is added up should be, is overwritten. A moving average
# that is written with `unfold` so has a wrong gradient everywhere but at its ends; as a sum of slices it has the right one.
# PyTorch's methods of these names are right.
#
# Guessed: the sum, 1 2 2 1.
# Seen, of the sum over all windows of two of four numbers:
#   unfold 1 1 1 1, as_strided 1 1 1 1, slices 1 2 2 1
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check paddlepaddle==3.3.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'PROGRAM'
import paddle

ways = {
    "unfold": lambda x: x.unfold(0, 2, 1),
    "as_strided": lambda x: paddle.as_strided(x, [3, 2], [1, 1]),
    "slices": lambda x: paddle.stack([x[:-1], x[1:]], axis=1),
}
for name, windows in ways.items():
    x = paddle.to_tensor([1.0, 2.0, 3.0, 4.0], stop_gradient=False)
    assert windows(x).tolist() == [[1.0, 2.0], [2.0, 3.0], [3.0, 4.0]]
    (derivative,) = paddle.grad(windows(x).sum(), [x])
    print(name, *(f"{number:.0f}" for number in derivative.tolist()))
    assert derivative.tolist() == ([1.0, 2.0, 2.0, 1.0] if name == "slices" else [1.0, 1.0, 1.0, 1.0])
PROGRAM
