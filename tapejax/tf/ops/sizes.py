"""The shape of an array whose sizes are not all known.

A program that is saved for any batch size is traced with JAX's symbolic sizes. ``tf.shape(x)[0] * 2`` is then a tensor like
another, of a value that only the call will tell, and at the same time the size that `reshape` and its like ask for.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from ...jaxprs.types import Value
from ..values.conversion import is_array_like, raw
from ..values.dtypes import is_symbolic as is_symbolic  # used with the rest of this module
from ..values.tensor import Tensor
from ..values.types import DTypeLike, Index, IntLike, TensorLike


class Sizes(Tensor):
    """An integer tensor that keeps its symbolic `sizes` through indexing, ``+``, ``-``, ``*``, ``//`` and ``%``."""

    __slots__ = ("sizes",)

    def __init__(self, sizes: Sequence[Value] | np.ndarray, dtype: DTypeLike):
        self.sizes = np.asarray(sizes, object)
        self._array = jnp.asarray(self.sizes.tolist(), dtype)

    def __getitem__(self, index: Index) -> Tensor:
        try:
            return sized(self.sizes[index], self._array.dtype)
        except (IndexError, TypeError):
            return Tensor(self._array)[index]


def sized(sizes: Value | Sequence[Value], dtype: DTypeLike) -> Tensor:
    """`sizes`, one or several or as an array, as an integer tensor."""
    numbers = np.asarray(sizes, object)
    if any(map(is_symbolic, numbers.flat)):
        return Sizes(numbers, dtype)
    return Tensor(raw(numbers.astype(dtype)))


def joined(parts: Sequence[TensorLike], axis: IntLike, join: Callable) -> Tensor | None:
    """The `parts` joined by ``np.stack`` or ``np.concatenate``, where all are sizes and some symbolic; else None."""
    dtype = next((part._array.dtype for part in parts if isinstance(part, Sizes)), None)
    if dtype is None:
        return None
    sizes_of_parts = [sizes for part in parts if (sizes := _sizes_of(part)) is not None]
    return sized(join(sizes_of_parts, axis=axis), dtype) if len(sizes_of_parts) == len(parts) else None


def _sizes_of(value: TensorLike) -> np.ndarray | None:
    if isinstance(value, Sizes):
        return value.sizes
    array = np.asarray(value, object) if isinstance(value, (int, list, tuple, np.ndarray)) else None
    if array is None and is_array_like(value):
        try:
            array = np.asarray(raw(value)).astype(object)
        except jax.errors.TracerArrayConversionError:
            return None
    all_sizes = array is not None and all(isinstance(x, (int, np.integer)) or is_symbolic(x) for x in array.flat)
    return array if all_sizes else None


def _arithmetic(name: str, compute: Callable, reflected: bool) -> Callable:
    def method(self: Sizes, other: TensorLike) -> Tensor:
        sizes = _sizes_of(other)
        if sizes is None:
            return getattr(super(Sizes, self), name)(other)
        return sized(compute(sizes, self.sizes) if reflected else compute(self.sizes, sizes), self._array.dtype)

    method.__name__ = name
    return method


for _name in ("add", "sub", "mul", "floordiv", "mod"):
    setattr(Sizes, f"__{_name}__", _arithmetic(f"__{_name}__", getattr(operator, _name), False))
    setattr(Sizes, f"__r{_name}__", _arithmetic(f"__r{_name}__", getattr(operator, _name), True))
jax.tree_util.register_pytree_node(
    Sizes,
    lambda x: ((x._array,), None),
    lambda _, children: Tensor(*children),  # type: ignore[arg-type, return-value]
)
