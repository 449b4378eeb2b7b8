"""Values rounded to the levels of a quantized number, with the gradient of what is not rounded: training that knows of it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from ..values.connected import zero_gradient
from ..values.conversion import is_array_like, raw
from ..values.errors import InvalidArgumentError
from ..values.tensor import Tensor
from ..values.types import Array
from .table import operation, whole


class FakeQuantWithMinMaxVarsGradient(NamedTuple):
    """What `fake_quant_with_min_max_vars_gradient` returns."""

    backprops_wrt_input: Tensor | Array
    backprop_wrt_min: Tensor | Array
    backprop_wrt_max: Tensor | Array


class FakeQuantWithMinMaxVarsPerChannelGradient(FakeQuantWithMinMaxVarsGradient):
    """What `fake_quant_with_min_max_vars_per_channel_gradient` returns."""


def _of_float32(tensors: str) -> Callable[[Callable], Callable[..., Any]]:
    """`operation` whose tensors are all float32: Python's numbers and NumPy's arrays are converted."""

    def decorate(fn: Callable) -> Callable[..., Any]:
        run: Any = operation(tensors, " ".join("T" for _ in tensors.split()), agree=False)(fn)

        @functools.wraps(run)
        def public(*args: Any, **kwargs: Any) -> Any:
            arguments = run.__signature__.bind(*args, **kwargs).arguments
            constants = [name for name in tensors.split() if not is_array_like(arguments[name])]
            return run(**arguments | {name: raw(arguments[name], "float32") for name in constants})

        return public

    return decorate


@_of_float32("inputs min max")
@zero_gradient  # of no elements: JAX takes it for a constant
def fake_quant_with_min_max_vars(inputs, min, max, num_bits=8, narrow_range=False):
    """`inputs`, each rounded to the nearest of the evenly spaced levels of `num_bits` bits from `min` to `max`.

    The range is first moved, so that 0 is a level. Inside of it the gradient for `inputs` is that of the identity; what is
    below adds to the gradient for `min`, what is above to that for `max`. If both are 0, so is the result.

    Args:
      inputs: a float32 tensor of any shape.
      min, max: float32 numbers.
      num_bits: from 2 to 16.
      narrow_range: leave out the lowest level, so that there are as many below as above the middle.

    Returns:
      A float32 tensor of the shape of `inputs`.

    Raises:
      DTypeError: a tensor is not float32.
      InvalidArgumentError: `min` or `max` is no scalar, or `num_bits` is out of range.

    >>> import tapejax as tf
    >>> x = tf.constant([-3.0, 0.3, 0.5, 3.0])
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = tf.quantization.fake_quant_with_min_max_vars(x, 0.0, 1.0, num_bits=2)
    >>> print(y.numpy(), tape.gradient(y, x).numpy())
    [0.         0.33333334 0.6666667  1.        ] [0. 1. 1. 0.]
    """
    _require_shape((), min, max)
    return _straight_through(inputs, min, max, *_levels(num_bits, narrow_range), False)


@_of_float32("gradients inputs min max")
def fake_quant_with_min_max_vars_gradient(gradients, inputs, min, max, num_bits=8, narrow_range=False):
    """The gradients of `fake_quant_with_min_max_vars` for `inputs`, `min` and `max`, given those for its result.

    Raises:
      DTypeError, InvalidArgumentError: as `fake_quant_with_min_max_vars`; or `gradients` has another shape than `inputs`.

    >>> import tapejax as tf
    >>> print(tf.quantization.fake_quant_with_min_max_vars_gradient([1.0, 2.0], [0.5, 7.0], -1.0, 1.0).backprop_wrt_max)
    tf.Tensor(2.0, shape=(), dtype=float32)
    """
    _require_shape((), min, max)
    return FakeQuantWithMinMaxVarsGradient(*_pulled_back(gradients, inputs, min, max, num_bits, narrow_range))


@_of_float32("inputs min max")
@zero_gradient  # of no elements: JAX takes it for a constant
def fake_quant_with_min_max_vars_per_channel(inputs, min, max, num_bits=8, narrow_range=False):
    """As `fake_quant_with_min_max_vars`, with a range for each index of the last axis.

    Args:
      inputs: a float32 tensor of shape ``(..., channels)``.
      min, max: float32 vectors of length ``channels``.

    Raises:
      DTypeError: a tensor is not float32.
      InvalidArgumentError: a shape does not fit, or `num_bits` is out of range.

    >>> import tapejax as tf
    >>> x = [[0.4, 0.4], [9.0, 9.0]]
    >>> print(tf.quantization.fake_quant_with_min_max_vars_per_channel(x, [0.0, 0.0], [1.0, 3.0], num_bits=2).numpy())
    [[0.33333334 0.        ]
     [1.         3.        ]]
    """
    _require_shape(inputs.shape[-1:], min, max)
    return _straight_through(inputs, min, max, *_levels(num_bits, narrow_range), True)


@_of_float32("gradients inputs min max")
def fake_quant_with_min_max_vars_per_channel_gradient(gradients, inputs, min, max, num_bits=8, narrow_range=False):
    """The gradients of `fake_quant_with_min_max_vars_per_channel` for `inputs`, `min` and `max`, given those for its result.

    Raises:
      DTypeError, InvalidArgumentError: as `fake_quant_with_min_max_vars_per_channel`; or `gradients` has another shape
        than `inputs`.

    >>> import tapejax as tf
    >>> low, high = [-1.0, -1.0], [1.0, 1.0]
    >>> print(tf.quantization.fake_quant_with_min_max_vars_per_channel_gradient([1.0, 2.0], [0.5, 7.0], low, high)[2])
    tf.Tensor([0. 2.], shape=(2,), dtype=float32)
    """
    _require_shape(inputs.shape[-1:], min, max)
    return FakeQuantWithMinMaxVarsPerChannelGradient(*_pulled_back(gradients, inputs, min, max, num_bits, narrow_range))


@_of_float32("inputs")
def fake_quant_with_min_max_args(inputs, min=-6, max=6, num_bits=8, narrow_range=False):
    """As `fake_quant_with_min_max_vars`, with a range of Python numbers.

    Raises:
      DTypeError: `inputs` is not float32.
      InvalidArgumentError: `min` is not smaller than `max`, or `num_bits` is out of range.

    >>> import tapejax as tf
    >>> print(tf.quantization.fake_quant_with_min_max_args([-7.0, 0.1, 7.0]).numpy())
    [-6.0235295   0.09411765  5.9764705 ]
    """
    return _straight_through(inputs, *_range(min, max), *_levels(num_bits, narrow_range), True)


@_of_float32("gradients inputs")
def fake_quant_with_min_max_args_gradient(gradients, inputs, min=-6, max=6, num_bits=8, narrow_range=False):
    """The gradient of `fake_quant_with_min_max_args` for `inputs`, given that for its result.

    Raises:
      DTypeError, InvalidArgumentError: as `fake_quant_with_min_max_args`; or `gradients` has another shape than `inputs`.

    >>> import tapejax as tf
    >>> print(tf.quantization.fake_quant_with_min_max_args_gradient([1.0, 2.0], [0.5, 7.0]).numpy())
    [1. 0.]
    """
    return _pulled_back(gradients, inputs, *_range(min, max), num_bits, narrow_range)[0]


# ---- The arithmetic ----------------------------------------------------------------------------------------


def _rounded(inputs, min, max, lowest, highest, reciprocal):
    """`inputs` rounded to the levels from `lowest` to `highest`.

    TensorFlow divides by the distance of the levels in one kernel and multiplies by its `reciprocal` in the others. It
    decides on what is halfway between two levels.
    """
    low, high, scale, zero_level = _nudged(min, max, lowest, highest)
    shifted = jnp.maximum(jnp.minimum(inputs, high), low) - low
    if reciprocal:
        steps = jnp.maximum(shifted * _divided(1, scale), 0)  # none is negative, and a product by itself is rounded
    else:
        steps = _divided(shifted, jnp.broadcast_to(scale, inputs.shape))
    level = jnp.floor(steps - zero_level + 0.5)
    return jnp.where((min == 0) & (max == 0), jnp.zeros_like(inputs), level * scale)


def _nudged(min, max, lowest, highest):
    """The range, moved so that 0 is a level; the distance between two levels; the number of levels below 0."""
    scale = _divided(max - min, jnp.float32(highest - lowest))
    zero = jnp.clip(jnp.floor(lowest - _divided(min, scale) + 0.5), lowest, highest)
    return _product(lowest - zero, scale), _product(highest - zero, scale), scale, zero - lowest


def _divided(x, divisor):
    """The quotient: XLA would multiply by the reciprocal of what it knows or broadcasts, and of a quotient."""
    return x / lax.optimization_barrier(divisor)


def _product(x, factor):
    """The product, rounded: XLA would fuse it with a sum after it, but not a choice (where it is infinite, all is nan)."""
    return jnp.where(jnp.isfinite(factor), x * factor, jnp.nan)


def _clipped(inputs, min, max, lowest, highest):
    """What has the derivative: `inputs` in the range, `min` below it, `max` above it; both where they are exchanged."""
    low, high, *_ = _nudged(*lax.stop_gradient((min, max)), lowest, highest)
    inside = (min == 0) & (max == 0) | (inputs >= low) & (inputs <= high)
    parts = (inside, inputs), (inputs < low, min), (inputs > high, max)
    return sum(jnp.where(here, part, jnp.zeros_like(inputs)) for here, part in parts)


_straight_through = jax.custom_jvp(_rounded, nondiff_argnums=(3, 4, 5))


@_straight_through.defjvp
def _derivative(lowest, highest, reciprocal, primals, tangents):
    _, tangent = jax.jvp(lambda *x: _clipped(*x, lowest, highest), primals, tangents)
    return _straight_through(*primals, lowest, highest, reciprocal), tangent


def _pulled_back(gradients, inputs, min, max, num_bits, narrow_range):
    if gradients.shape != inputs.shape:
        raise InvalidArgumentError(f"gradients must have the shape of inputs, {inputs.shape}, got {gradients.shape}")
    return jax.vjp(lambda *x: _clipped(*x, *_levels(num_bits, narrow_range)), inputs, min, max)[1](gradients)


# ---- Arguments ---------------------------------------------------------------------------------------------


def _levels(num_bits, narrow_range):
    """The numbers of the lowest and of the highest level."""
    bits = whole(num_bits, "num_bits")
    if not 2 <= bits <= 16:
        raise InvalidArgumentError(f"num_bits must be from 2 to 16, got {bits}")
    return int(bool(narrow_range)), 2**bits - 1


def _range(min, max):
    if not min < max:
        raise InvalidArgumentError(f"min must be smaller than max, got min={min} and max={max}")
    return jnp.float32(min), jnp.float32(max)


def _require_shape(shape, min, max):
    for argument, array in ("min", min), ("max", max):
        if array.shape != shape:
            raise InvalidArgumentError(
                f"{argument} must have shape {shape}, got {array.shape}: fake_quant_with_min_max_vars has one range for all "
                "of inputs, fake_quant_with_min_max_vars_per_channel one for each index of their last axis"
            )
