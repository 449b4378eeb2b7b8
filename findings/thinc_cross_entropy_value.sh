#!/bin/bash
# Thinc 9.1.1, NumPy 2.4.6: `CategoricalCrossentropy` returns a gradient and a loss, and the loss is not the cross-entropy. The gradient is that of
# the cross-entropy with respect to the logits, prediction minus target; the loss is the sum of its squares, the number that
# `L2Distance` gives. With `normalize=True`, the default, the gradient is divided by the size of the batch before it is squared, so the loss of
# the same prediction falls with the size of the batch. A certain prediction that is wrong costs 2, not infinity. A training
# curve or an early stop that reads it follows another quantity than the one that is minimised.
#
# Guessed: the gradient is that of the loss, up to the size of the batch.
# Seen, of the prediction [0.9, 0.05, 0.05] where the second class is right, a batch of 1 and of 4:
#   CategoricalCrossentropy 1.7150 0.4288
#   L2Distance 1.7150 0.4288
#   mean cross-entropy 2.9957 2.9957
#   of the prediction [1, 0, 0]: 2.0000
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check thinc==9.1.1 numpy==2.4.6
"$folder/venv/bin/python" -W ignore - <<'PROGRAM'
import numpy as np
from thinc.api import CategoricalCrossentropy, L2Distance

prediction, target = np.array([[0.9, 0.05, 0.05]], "float32"), np.array([[0, 1, 0]], "float32")
batches = [(np.repeat(prediction, n, 0), np.repeat(target, n, 0)) for n in (1, 4)]
losses = {
    "CategoricalCrossentropy": (lambda p, t: CategoricalCrossentropy()(p, t)[1], (1.7150, 0.4288)),
    "L2Distance": (lambda p, t: L2Distance()(p, t)[1], (1.7150, 0.4288)),
    "mean cross-entropy": (lambda p, t: -np.log((p * t).sum(1)).mean(), (2.9957, 2.9957)),
}
for name, (loss, seen) in losses.items():
    found = [float(loss(*batch)) for batch in batches]
    print("{} {:.4f} {:.4f}".format(name, *found))
    np.testing.assert_allclose(found, seen, atol=1e-4)
for p, t in batches:
    gradient, _ = CategoricalCrossentropy()(p, t)
    np.testing.assert_allclose(gradient, (p - t) / len(p))
_, loss = CategoricalCrossentropy()(np.array([[1.0, 0.0, 0.0]], "float32"), target)
print(f"of the prediction [1, 0, 0]: {loss:.4f}")
assert loss == 2.0
PROGRAM
