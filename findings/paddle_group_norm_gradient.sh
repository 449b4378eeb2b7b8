#!/bin/bash
# PaddlePaddle 3.3.1 (CPU): `group_norm` without a weight and a bias has the right values, and wrong derivatives, in silence. With a weight of
# ones and a bias of zeros, which change nothing, they are right, and so are those of `instance_norm` without either, the same
# function where a group is a channel. The derivatives along a shift of a group must add up to 0; here they do not.
#
# Guessed: one derivative.
# Seen, of the sum of the outputs times (1, 2, 5), at (0, 1, 3), one group:
#   without 2.2526 1.9663 2.1954, with ones and zeros 0.1145 -0.1718 0.0573, instance_norm 0.1145 -0.1718 0.0573
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check paddlepaddle==3.3.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'PROGRAM'
import numpy as np
import paddle

group_norm, instance_norm = paddle.nn.functional.group_norm, paddle.nn.functional.instance_norm
factors = paddle.to_tensor([[[1.0, 2.0, 5.0]]])
ways = {
    "without": lambda x: group_norm(x, 1),
    "with ones and zeros": lambda x: group_norm(x, 1, weight=paddle.ones([1]), bias=paddle.zeros([1])),
    "instance_norm": instance_norm,
}
right = [0.1145, -0.1718, 0.0573]
values = []
for name, f in ways.items():
    x = paddle.to_tensor([[[0.0, 1.0, 3.0]]], stop_gradient=False)
    values.append(f(x).numpy())
    (derivative,) = paddle.grad((f(x) * factors).sum(), [x])
    print(f"{name}:", *(f"{number:.4f}" for number in derivative.flatten().tolist()))
    assert np.allclose(derivative.flatten(), right, atol=1e-3) == (name != "without")
assert np.allclose(values[0], values[1], atol=1e-5) and np.allclose(values[0], values[2], atol=1e-5)
PROGRAM
