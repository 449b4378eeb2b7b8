"""A product through which zero comes back as zero, even where the factor is infinite or undefined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from .fence import Primitive, define_product
from .types import Value

# JAX's `linear_call` has a transpose of its own as well, but neither a batching rule nor a second derivative.
_scaled = Primitive("scaled_by_slope")


def scaled(slope: Value, t: Value, stops: tuple[bool, bool] = (False, True)) -> Value:
    """``slope * t``, linear in `t`: the derivative of a function with a pole. Both have one shape and dtype.

    `stops`: whether zero gives zero, be `slope` infinite or undefined, here and in the transpose. TensorFlow's gradient of sqrt
    is such a transpose: ``where(x > 0, sqrt(x), 0)`` has a gradient without NaN.
    """
    return _scaled.bind(slope, t, stops=stops)


def product(x: Value, y: Value, *, stops: tuple[bool, bool]) -> Value:
    """What the primitive computes."""
    return jnp.where(y == 0, jnp.zeros_like(y), x * y) if stops[0] else x * y


def _transposed(cotangent: Value, x: Value, stops: tuple[bool, bool]) -> Value:
    return _scaled.bind(x, cotangent, stops=stops[::-1])


def _batched(factors: Sequence[Value], axes: Sequence[Any], **params: Any) -> Any:
    pairs = list(zip(factors, axes, strict=True))
    (size,) = {x.shape[axis] for x, axis in pairs if axis is not None}
    x, y = (jnp.broadcast_to(x, (size, *x.shape)) if axis is None else jnp.moveaxis(x, axis, 0) for x, axis in pairs)
    return _scaled.bind(x, y, **params), 0


define_product(_scaled, product, _batched, _transposed)
