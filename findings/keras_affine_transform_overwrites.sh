#!/bin/bash
# Keras 3.15.1 with PyTorch 2.13.0: `ops.image.affine_transform(images, transform)` writes into `transform`, the caller's tensor: it exchanges the
# entries of the two axes there and leaves them so. The second call with the same tensor moves the picture another way, the third like
# the first. A transform that is a parameter (a spatial transformer, a fit of a pose) raises a RuntimeError where it is a leaf, and else is
# exchanged under the hands of what reads it next. A list is copied first.
#
# Guessed: the arguments stay as they are.
# Seen, of a picture with one bright pixel, moved by [1, 0, 1, 0, 1, 0, 0, 0], a shift along x:
#   one tensor, three calls: [[2, 1]] [[1, 2]] [[2, 1]], after them [1.0, 0.0, 0.0, 0.0, 1.0, 1.0]
#   a list, three calls: [[2, 1]] [[2, 1]] [[2, 1]]
#   a parameter: a view of a leaf Variable that requires grad is being used in an in-place operation.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check keras==3.15.1 torch==2.13.0 numpy==2.4.6
KERAS_BACKEND=torch "$folder/venv/bin/python" - <<'PROGRAM'
import torch
from keras import ops

picture = torch.zeros(1, 4, 4, 1)
picture[0, 2, 2, 0] = 1.0
numbers = [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0]


def bright(transform):
    moved = ops.image.affine_transform(picture, transform, data_format="channels_last")
    return torch.nonzero(moved[0, :, :, 0]).tolist()


tensor = torch.tensor([numbers])
places = [bright(tensor) for _ in range(3)]
print("one tensor, three calls: {} {} {}, after them".format(*places), tensor[0, :6].tolist())
assert places == [[[2, 1]], [[1, 2]], [[2, 1]]] and tensor[0, :6].tolist() == [1.0, 0.0, 0.0, 0.0, 1.0, 1.0]
copied = [bright([numbers]) for _ in range(3)]
print("a list, three calls:", *copied)
assert copied == [[[2, 1]]] * 3
try:
    bright(torch.tensor([numbers], requires_grad=True))
    raised = None
except RuntimeError as error:
    raised = str(error)
print("a parameter:", raised)
assert raised == "a view of a leaf Variable that requires grad is being used in an in-place operation."
PROGRAM
