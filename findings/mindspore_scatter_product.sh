#!/bin/bash
# MindSpore 2.10.0 (CPU), NumPy 1.26.4: `ops.tensor_scatter_mul(x, indices, factors)` multiplies all factors of an index onto its entry, one that occurs
# twice as well. The gradient with respect to such a factor is x alone, without the other factor, in silence; that with respect to x is right.
# `tensor_scatter_div` likewise. Written out the derivatives are there. `index_fill` gives the number that it
# writes no gradient at all, where `masked_fill` does.
#
# Guessed: the derivatives of the values.
# Seen, of the products 2 * 7 * 3 and 5 * 4, with respect to 7, 3, 4, and of the quotients, by MindSpore and written out:
#   tensor_scatter_mul [2.0, 2.0, 5.0] and [6.0, 14.0, 5.0]
#   tensor_scatter_div [-0.0408, -0.2222, -0.3125] and [-0.0136, -0.0317, -0.3125]
#   the number written at two places: index_fill 0.0, masked_fill 2.0
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check mindspore==2.10.0 numpy==1.26.4
cat >"$folder/program.py" <<'PROGRAM'
import mindspore as ms
import numpy as np
from mindspore import Tensor, ops

ms.set_device("CPU")
start, factors = Tensor([2.0, 5.0], ms.float32), Tensor([7.0, 3.0, 4.0], ms.float32)
indices = Tensor([[0], [0], [1]], ms.int32)
cases = {
    "tensor_scatter_mul": (lambda x, u: x[0] * u[0] * u[1] + x[1] * u[2], [2.0, 2.0, 5.0]),
    "tensor_scatter_div": (lambda x, u: x[0] / u[0] / u[1] + x[1] / u[2], [-0.0408, -0.2222, -0.3125]),
}
for name, (written_out, seen) in cases.items():

    def f(x, factors):
        return getattr(ops, name)(x, indices, factors).sum()

    np.testing.assert_allclose(f(start, factors).asnumpy(), written_out(start, factors).asnumpy(), rtol=1e-6)
    found = [[g.asnumpy() for g in ms.grad(h, (0, 1))(start, factors)] for h in (f, written_out)]
    print(name, " and ".join(str([round(float(g), 4) for g in gradients[1]]) for gradients in found))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-5)
    np.testing.assert_allclose(found[0][1], seen, atol=1e-4)
    assert not np.allclose(found[1][1][:2], seen[:2], atol=1e-3)

zeros, number = Tensor([0.0, 0.0, 0.0], ms.float32), Tensor(0.5, ms.float32)
fills = {
    "index_fill": lambda v: ops.index_fill(zeros, 0, Tensor([0, 2], ms.int32), v).sum(),
    "masked_fill": lambda v: ops.masked_fill(zeros, Tensor([True, False, True]), v).sum(),
}
assert all(float(fill(number).asnumpy()) == 1.0 for fill in fills.values())
written = {name: float(ms.grad(fill)(number).asnumpy()) for name, fill in fills.items()}
print("the number written at two places:", ", ".join(f"{name} {g}" for name, g in written.items()))
assert written == {"index_fill": 0.0, "masked_fill": 2.0}
PROGRAM
"$folder/venv/bin/python" "$folder/program.py"
