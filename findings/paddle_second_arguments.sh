#!/bin/bash
# PaddlePaddle 3.3.1 (CPU): some functions of two tensors differentiate one and count the other as a constant, in silence: `gaussian_nll_loss` its
# variance, `lerp` its weight, `diagonal_scatter` what it writes. The result says that it depends on
# a parameter (its `stop_gradient` is False, because of the other tensor), so a network that predicts its own
# uncertainty trains its mean, and its variance stays where it began. Written out in arithmetic, all three have the derivative,
# and PyTorch's functions of these names as well.
#
# Guessed: the derivatives of the values.
# Seen, with respect to the second tensor, by the function and written out:
#   gaussian_nll_loss None, 0.5; lerp None, 2.0; diagonal_scatter None, 1.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check paddlepaddle==3.3.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'PROGRAM'
import numpy as np
import paddle

target = paddle.to_tensor([1.5])
pairs = {
    "gaussian_nll_loss": (
        lambda x, v: paddle.nn.functional.gaussian_nll_loss(x, target, v),
        lambda x, v: (0.5 * (paddle.log(v) + (x - target) ** 2 / v)).mean(),
    ),
    "lerp": (lambda x, v: paddle.lerp(x, x + 2.0, v), lambda x, v: x + v * ((x + 2.0) - x)),
    "diagonal_scatter": (
        lambda x, v: paddle.diagonal_scatter(x.reshape([1, 1]), v),
        lambda x, v: x.reshape([1, 1]) * 0.0 + v,
    ),
}
for name, functions in pairs.items():
    derivatives, values = [], []
    for f in functions:
        x = paddle.to_tensor([1.0], stop_gradient=False)
        v = paddle.to_tensor([0.5], stop_gradient=False)
        result = f(x, v).sum()
        assert not result.stop_gradient
        values.append(result.item())
        (derivative,) = paddle.grad(result, [v], allow_unused=True)
        derivatives.append(None if derivative is None else derivative.item())
    print(name, derivatives[0], derivatives[1])
    assert np.isclose(*values) and derivatives[0] is None and abs(derivatives[1]) > 0.1
PROGRAM
