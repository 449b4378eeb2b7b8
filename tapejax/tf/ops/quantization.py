"""``tf.quantization``: floats rounded as a quantised network would round them, which is what it is trained with."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from ..values.errors import InvalidArgumentError
from ..values.tensor import Tensor, op, raw
from ..values.types import Array, IntLike, TensorLike
from .table import static


def _levels(low: Array, high: Array, bits: int, narrow: bool) -> tuple[Array, Array, Array]:
    """The least and the largest number that is left, and the step between two, so that 0 is one of them."""
    least, most = int(narrow), 2**bits - 1
    # Held apart from what is around: XLA would multiply by 1 / 255, and divide by the step otherwise. The last digit decides
    # where a number goes that lies between two, as the ends of a symmetric range do.
    count = jax.lax.optimization_barrier(jnp.asarray(most - least, low.dtype))
    step = jax.lax.optimization_barrier((high - low) / count)
    zero = jnp.clip(jnp.floor(least - low / step + 0.5), least, most)
    return (least - zero) * step, (most - zero) * step, step


@functools.partial(jax.custom_jvp, nondiff_argnums=(3, 4))
def _fake_quant(x, low, high, bits, narrow):
    bottom, top, step = _levels(low, high, bits, narrow)
    inverse = 1 / step
    zero = jnp.floor(0.5 - bottom * inverse)
    rounded = jnp.floor((jnp.clip(x, bottom, top) - bottom) * inverse - zero + 0.5) * step
    return jnp.where((low == 0) & (high == 0), 0, rounded)


@_fake_quant.defjvp
def _fake_quant_jvp(bits, narrow, primals, tangents):
    def clipped(x, low, high):
        # The derivative is that of a clip to the given range, since rounding has none.
        bottom, top, _ = jax.lax.stop_gradient(_levels(low, high, bits, narrow))
        inside = (x >= bottom) & (x <= top) | (low == 0) & (high == 0)
        return jnp.where(inside, x, jnp.where(x < bottom, low, jnp.where(x > top, high, 0)))

    return _fake_quant(*primals, bits, narrow), jax.jvp(clipped, primals, tangents)[1]


def _quantised(inputs: TensorLike, low: TensorLike, high: TensorLike, bits: IntLike, narrow: bool, rank: int) -> Tensor:
    x, *ends = (raw(value, "float32") for value in (inputs, low, high))
    count = int(static(bits, "num_bits"))
    if not 2 <= count <= 16:
        raise InvalidArgumentError(f"num_bits must be 2 to 16, got {count}")
    shape = x.shape[-rank:] if rank else ()
    if any(end.shape != shape for end in ends):
        raise InvalidArgumentError(f"min and max must have shape {shape}, got {[end.shape for end in ends]}")
    return op(_fake_quant, x, *ends, bits=count, narrow=bool(narrow))


def fake_quant_with_min_max_args(
    inputs: TensorLike,
    min: float = -6,
    max: float = 6,
    num_bits: IntLike = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """`inputs`, float32, rounded to one of ``2 ** num_bits`` numbers from `min` to `max`; one of them is 0.

    `narrow_range` leaves the least one out. The gradient is that of a clip: rounding passes it.

    Raises:
      InvalidArgumentError: `min` is not less than `max`, or `num_bits` is not 2 to 16.
    """
    if not min < max:
        raise InvalidArgumentError(f"min must be less than max, got {min} and {max}")
    return _quantised(inputs, float(min), float(max), num_bits, narrow_range, 0)


def fake_quant_with_min_max_vars(
    inputs: TensorLike,
    min: TensorLike,
    max: TensorLike,
    num_bits: IntLike = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """As `fake_quant_with_min_max_args`, with scalar tensors `min` and `max`; they get the gradient of what they clip."""
    return _quantised(inputs, min, max, num_bits, narrow_range, 0)


def fake_quant_with_min_max_vars_per_channel(
    inputs: TensorLike,
    min: TensorLike,
    max: TensorLike,
    num_bits: IntLike = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """As `fake_quant_with_min_max_vars`, with a `min` and a `max` for each place on the last axis."""
    return _quantised(inputs, min, max, num_bits, narrow_range, 1)
