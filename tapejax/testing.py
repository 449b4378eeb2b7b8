"""``tf.test``: checking a derivative against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .tape import GradientTape, UnconnectedGradients
from .values import Tensor, convert_to_tensor


def compute_gradient(f: Callable, x: Sequence[Any], delta: float | None = None) -> tuple[tuple, tuple]:
    """The Jacobians of `f` by the tape and by central differences.

    Args:
      f: takes as many tensors as `x` holds and returns one.
      x: a list or tuple of tensors, of real float types.
      delta: the step of the differences; default 1/1024.

    Returns:
      Two tuples with one NumPy matrix of shape ``(result's size, argument's size)`` for each argument: by the tape, and
      by differences.

    Raises:
      ValueError: `x` is no list or tuple.

    >>> import tapejax as tf
    >>> by_tape, by_differences = tf.test.compute_gradient(lambda a: a * a, [tf.constant([1.0, 2.0])])
    >>> by_tape[0].tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    if not isinstance(x, (list, tuple)):
        raise ValueError(f"`x` must be a list or tuple of values convertible to a Tensor (arguments to `f`), not a {type(x)}")
    step = 1 / 1024 if delta is None else delta
    arguments = [convert_to_tensor(a) for a in x]
    with GradientTape() as tape:
        tape.watch(arguments)
        y = f(*arguments)
    jacobians = tape.jacobian(y, arguments, unconnected_gradients=UnconnectedGradients.ZERO)
    size = int(np.prod(y.shape))
    by_tape = tuple(np.reshape(j.numpy(), (size, -1)) for j in jacobians)
    return by_tape, tuple(_differences(f, arguments, i, step, size) for i in range(len(arguments)))


def _differences(f: Callable, arguments: Sequence[Tensor], i: int, step: float, size: int) -> np.ndarray:
    at = arguments[i].numpy()
    columns = []
    for k in range(np.size(at)):
        sides = []
        for sign in (1, -1):
            moved = np.array(at)
            moved.flat[k] += sign * step
            changed = [Tensor(a._array) if j != i else convert_to_tensor(moved) for j, a in enumerate(arguments)]
            sides.append(np.ravel(f(*changed).numpy()))
        columns.append((sides[0] - sides[1]) / (2 * step))
    return np.stack(columns, axis=-1).astype(at.dtype) if columns else np.zeros((size, 0), at.dtype)


def max_error(grad1: Sequence[Any], grad2: Sequence[Any]) -> float:
    """The largest absolute difference between two lists of Jacobians, as `compute_gradient` gives them."""
    return max((float(np.max(np.abs(a - b))) for a, b in zip(grad1, grad2, strict=True) if np.size(a)), default=0.0)
