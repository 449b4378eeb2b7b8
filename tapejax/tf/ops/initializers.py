"""``tf.zeros_initializer`` and its like: callables that make first values for variables. The others are Keras's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from ..values.conversion import constant
from ..values.dtypes import DType, as_dtype
from ..values.tensor import Tensor
from ..values.types import DTypeLike, FloatLike, IntLike, ShapeLike, TensorLike
from . import array, random


class _Initializer:
    def get_config(self) -> dict[str, Any]:
        """The arguments that make another one like it."""
        return dict(vars(self))

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """An initializer made by `get_config`'s arguments."""
        return cls(**{key: value for key, value in config.items() if key != "dtype"})


def _checked(dtype: DTypeLike, expected: str, holds: Callable[[DType], bool]) -> DType:
    if not holds(as_dtype(dtype)):
        raise ValueError(f"Expected {expected} dtype, got {as_dtype(dtype)}.")
    return as_dtype(dtype)


def _numeric(dtype: DTypeLike) -> DType:
    return _checked(dtype, "numeric or boolean", lambda wanted: wanted.is_numeric or wanted.is_bool)


def _seeded(seed: IntLike | None) -> random.Fixed | None:
    """A seed that alone decides what is drawn, so that the same initializer always makes the same numbers."""
    return None if seed is None else random.Fixed((seed, 0))


class zeros_initializer(_Initializer):  # noqa: N801
    """Makes zeros.

    >>> import tapejax as tf
    >>> print(tf.zeros_initializer()((2,)).numpy())
    [0. 0.]
    """

    def __call__(self, shape: ShapeLike, dtype: DTypeLike = "float32") -> Tensor:
        """Zeros of that shape and dtype. Raises ValueError for a dtype that is not numeric."""
        return array.zeros(shape, _numeric(dtype))


class ones_initializer(_Initializer):  # noqa: N801
    """Makes ones."""

    def __call__(self, shape: ShapeLike, dtype: DTypeLike = "float32") -> Tensor:
        """Ones of that shape and dtype. Raises ValueError for a dtype that is not numeric."""
        return array.ones(shape, _numeric(dtype))


class constant_initializer(_Initializer):  # noqa: N801
    """Makes tensors of a constant.

    Args:
      value: a number, or as many as the tensors have elements.
      support_partition: taken for TensorFlow's sake.

    Raises:
      TypeError (when called): `value` does not have as many elements as the shape.
    """

    def __init__(self, value: TensorLike = 0, support_partition: bool = False):
        self.value = value

    def __call__(self, shape: ShapeLike, dtype: DTypeLike | None = None) -> Tensor:
        """The constant in that shape."""
        return constant(self.value, dtype=dtype, shape=shape)


class random_normal_initializer(_Initializer):  # noqa: N801
    """Makes normally distributed numbers; with a `seed` always the same ones."""

    def __init__(self, mean: FloatLike = 0.0, stddev: FloatLike = 0.05, seed: IntLike | None = None):
        self.mean, self.stddev, self.seed = mean, stddev, seed

    def __call__(self, shape: ShapeLike, dtype: DTypeLike = "float32") -> Tensor:
        """Numbers of that shape and dtype. Raises ValueError for a dtype that is not floating."""
        wanted = _checked(dtype, "floating point", lambda wanted: wanted.is_floating)
        return random.normal(shape, self.mean, self.stddev, wanted, _seeded(self.seed))


class random_uniform_initializer(_Initializer):  # noqa: N801
    """Makes numbers in [minval, maxval), all equally likely."""

    def __init__(self, minval: FloatLike = -0.05, maxval: FloatLike = 0.05, seed: IntLike | None = None):
        self.minval, self.maxval, self.seed = minval, maxval, seed

    def __call__(self, shape: ShapeLike, dtype: DTypeLike = "float32") -> Tensor:
        """Numbers of that shape and dtype, floats or integers."""
        wanted = _checked(dtype, "float or integer", lambda wanted: wanted.is_floating or wanted.is_integer)
        return random.uniform(shape, self.minval, self.maxval, wanted, _seeded(self.seed))
