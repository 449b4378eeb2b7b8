"""``tf.test``: checking a derivative against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from ..tape.gradient_tape import GradientTape, UnconnectedGradients
from .values.conversion import convert_to_tensor
from .values.operations import op
from .values.tensor import Tensor
from .values.types import Array, TensorLike


def compute_gradient(f: Callable, x: Sequence[TensorLike], delta: float | None = None) -> tuple[tuple, tuple]:
    """The Jacobians of `f` by the tape and by central differences.

    Args:
      f: takes as many tensors as `x` holds and returns one.
      x: a list or tuple of tensors. Of a complex one the real and imaginary parts count separately, one after the other.
      delta: the step of the differences; default 1/1024.

    Returns:
      Two tuples with one NumPy matrix of shape ``(result's size, argument's size)`` for each argument; the first by the
      tape, the second by differences.

    Raises:
      ValueError: `x` is not a list or tuple.
      AssertionError: one of `x` is neither floating-point nor complex.

    >>> import tapejax as tf
    >>> by_tape, by_differences = tf.test.compute_gradient(lambda a: a * a, [tf.constant([1.0, 2.0])])
    >>> by_tape[0].tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    if not isinstance(x, (list, tuple)):
        raise ValueError(f"`x` must be a list or tuple of values convertible to a Tensor (arguments of `f`): {type(x)}")
    step = 1 / 1024 if delta is None else delta
    points = [convert_to_tensor(a) for a in x]
    for i, a in enumerate(points):
        if not jnp.issubdtype(a._array.dtype, jnp.inexact):
            raise AssertionError(f"Cannot compute gradient for unsupported type {a.dtype.name} of argument {i}")
    arguments = [_parts(a) for a in points]
    complex_ones = [a is not b for a, b in zip(points, arguments, strict=True)]

    def f_of_parts(*arguments: Tensor) -> Tensor:
        return _parts(f(*(_whole(a) if yes else a for a, yes in zip(arguments, complex_ones, strict=True))))

    with GradientTape() as tape:
        tape.watch(arguments)
        y = f_of_parts(*arguments)
    jacobians = tape.jacobian(y, arguments, unconnected_gradients=UnconnectedGradients.ZERO)
    size = int(np.prod(y.shape))
    by_tape = tuple(np.reshape(j.numpy(), (size, a._array.size)) for j, a in zip(jacobians, arguments, strict=True))
    return by_tape, tuple(_differences(f_of_parts, arguments, i, step, size) for i in range(len(arguments)))


def _parts(x: TensorLike) -> Tensor:
    """A complex tensor as a real one with one more axis; a real one as it is."""
    x = convert_to_tensor(x)
    return op(_real_and_imaginary, x) if jnp.iscomplexobj(x._array) else x


def _whole(parts: Tensor) -> Tensor:
    return op(_from_parts, parts)


def _real_and_imaginary(x: Array) -> Array:
    return jnp.stack([x.real, x.imag], axis=-1)


def _from_parts(x: Array) -> Array:
    return jax.lax.complex(x[..., 0], x[..., 1])


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


def max_error(grad1: Sequence[np.ndarray], grad2: Sequence[np.ndarray]) -> float:
    """The largest absolute difference between two lists of Jacobians, as `compute_gradient` gives them."""
    return max((float(np.max(np.abs(a - b))) for a, b in zip(grad1, grad2, strict=True) if np.size(a)), default=0.0)
