"""Activations, losses, normalisation, convolution and pooling."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..values.conversion import convert_to_tensor, raw
from ..values.errors import InvalidArgumentError
from ..values.operations import arrays_of, op, operands
from ..values.tensor import Tensor
from ..values.types import Array, AxisLike, FloatLike, Ignored, IntLike, IntsLike, PaddingLike, ShapeLike, TensorLike
from . import array as _array
from . import math as _math
from . import random as _random
from .table import (
    FIELD,
    FLOAT,
    INTEGER,
    NUMBER,
    REAL,
    axes_of,
    axis_of,
    integers,
    kind_of,
    known,
    operation,
    piecewise_linear,
    renamed,
    require_kind,
    shape_of,
    static,
    unary,
)

# ---- Activations -------------------------------------------------------------------------------------------


@piecewise_linear
def _relu(x):
    return jax.nn.relu(x)


@piecewise_linear
def _relu6(x):
    # No gradient at either bound: there the value is a constant.
    return jnp.where((x > 0) & (x < 6), x, lax.stop_gradient(jnp.clip(x, 0, 6)))


@piecewise_linear
def _leaky_relu(x, alpha):
    return jnp.where(x > 0, x, alpha * x)


def _elu(x):
    # x < 0, not x <= 0: so that at 0 the second derivative is TensorFlow's too.
    return jnp.where(x < 0, jnp.expm1(jnp.where(x < 0, x, 0)), x)


def _selu(x):
    # At 0 the slope is the right one; jax.nn.selu has the left one.
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    return scale * jnp.where(x < 0, alpha * jnp.expm1(jnp.where(x < 0, x, 0)), x)


def _swish(x, beta):
    return x * jax.nn.sigmoid(beta * x)


relu = unary("relu", _relu, REAL, "max(x, 0); its gradient at 0 is 0.", "features")
relu6 = unary("relu6", _relu6, REAL, "min(max(x, 0), 6); its gradient at 0 and at 6 is 0.", "features")
elu = unary("elu", _elu, FLOAT, "x where positive, else exp(x) - 1.", "features")
selu = unary("selu", _selu, FLOAT, "The scaled exponential linear unit.", "features")
softsign = unary("softsign", jax.nn.soft_sign, FLOAT, "x / (1 + abs(x)).", "features")


def leaky_relu(features: TensorLike, alpha: FloatLike = 0.2, name: str | None = None) -> Tensor:
    """x where positive, else alpha * x."""
    x = raw(features)
    require_kind("leaky_relu", x, REAL, "features")
    if kind_of(x.dtype) in "iu":  # as TensorFlow: integers become float32 here, of all places
        x = _array.cast(x, "float32")._array
    return op(_leaky_relu, x, float(static(alpha, "alpha")))


@operation("features", FLOAT)
def gelu(features, approximate: bool = False):
    """x * P(X <= x) for a normal X; `approximate` takes the formula with tanh."""
    return jax.nn.gelu(features, approximate=bool(approximate))


def silu(features: TensorLike, beta: TensorLike = 1.0) -> Tensor:
    """x * sigmoid(beta * x)."""
    x, beta = operands(features, beta)
    require_kind("silu", x, FIELD, "features")
    return op(jax.nn.silu, x) if type(beta) in (int, float) and beta == 1 else op(_swish, x, beta)


swish = silu


@operation("features", "if")
def crelu(features, axis: int = -1):
    """relu(x) and relu(-x), joined along `axis`."""
    return _relu(jnp.concatenate([features, -features], axis))


def _softmax_like(fn: Callable, doc: str) -> Callable[..., Tensor]:
    def kernel(logits, axis: IntLike | None = None):
        if not logits.ndim:
            raise InvalidArgumentError(f"{fn.__name__}: logits must have at least one axis, got a scalar")
        axis = axis_of(-1 if axis is None else axis, logits.ndim)
        return fn(_math.widened(logits), axis).astype(logits.dtype)

    kernel.__doc__ = doc
    return operation("logits", FLOAT)(renamed(fn.__name__, kernel))


softmax = _softmax_like(jax.nn.softmax, "exp(x) / sum(exp(x)) along `axis`, by default the last.")
log_softmax = _softmax_like(jax.nn.log_softmax, "The logarithm of softmax along `axis`, by default the last.")


@operation("t", FLOAT)
def l2_loss(t):
    """sum(t * t) / 2."""
    return jnp.sum(t * t) / 2


def dropout(
    x: TensorLike,
    rate: TensorLike,
    noise_shape: ShapeLike | None = None,
    seed: IntLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Sets a fraction `rate` of the elements to 0 and scales up the others, so that the expected sum is kept.

    Args:
      noise_shape: a shape that broadcasts to x's: elements that share a place are kept or dropped together.

    Raises:
      ValueError: `rate` is not in [0, 1), or x is not a floating point tensor.
    """
    array = raw(x)
    if kind_of(array.dtype) != "f":
        raise ValueError(f"x.dtype must be a floating point tensor as x will be scaled, got {array.dtype}")
    number = isinstance(rate, (int, float))
    if number and not 0 <= rate < 1:
        raise ValueError(f"rate must be a scalar tensor or a float in [0, 1), got {rate}")
    if number and rate == 0:
        return convert_to_tensor(x)
    shape = _noise_shape(noise_shape, array)
    return op(
        _dropout, array, rate if number else raw(rate, array.dtype), *_random._following(seed)(shape), shape=shape
    )


def _noise_shape(noise_shape: ShapeLike | None, array: Array) -> tuple[int, ...]:
    """The shape of the random numbers: None stands for the array's size or shape."""
    if noise_shape is None:
        return array.shape
    if isinstance(noise_shape, (list, tuple)) and len(noise_shape) == array.ndim:
        noise_shape = [own if size is None else size for size, own in zip(noise_shape, array.shape, strict=True)]
    return shape_of(noise_shape, "noise_shape")


def _dropout(x, rate, seed, count, shape):  # draws the numbers, too: two operations cost 50 % more
    # NumPy evaluates no 16-bit draw: it would have to be compiled at the first call
    wide = jnp.promote_types(x.dtype, jnp.float32)
    kept = jax.random.uniform(_random.key_of(seed, count), shape, wide) >= rate
    return jnp.where(kept, x / (1 - rate), 0)


# ---- Losses ------------------------------------------------------------------------------------------------


def softmax_cross_entropy_with_logits(
    labels: TensorLike, logits: TensorLike, axis: IntLike = -1, name: str | None = None
) -> Tensor:
    """-sum(labels * log(softmax(logits))) along `axis`: one loss for each example.

    Args:
      labels: probabilities, in the shape of `logits`.
      logits: unnormalised log probabilities.

    Raises:
      InvalidArgumentError: the shapes do not broadcast, or logits are integers.
    """
    x = raw(logits)
    require_kind("softmax_cross_entropy_with_logits", x, FLOAT, "logits")
    p = _array.cast(raw(labels, dtype_hint=x.dtype), x.dtype)
    return op(_softmax_cross_entropy, p, x, axis=axis_of(axis, x.ndim))


def _softmax_cross_entropy(labels, logits, axis):
    return _cross_entropy(*jnp.broadcast_arrays(labels, logits), axis)


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def _cross_entropy(labels, logits, axis):
    z = logits - jnp.max(logits, axis, keepdims=True)
    return jnp.sum(labels, axis) * jax.nn.logsumexp(z, axis) - jnp.sum(labels * z, axis)


@_cross_entropy.defjvp
def _cross_entropy_jvp(axis, primals, tangents):
    # TensorFlow's gradient is softmax(logits) - labels also where labels do not add up to 1, which no function has.
    (labels, logits), (d_labels, d_logits) = primals, tangents
    log_p = jax.nn.log_softmax(logits, axis)
    slope = (jnp.exp(log_p) - labels) * d_logits - log_p * d_labels
    return _cross_entropy(labels, logits, axis), jnp.sum(slope, axis)


def sparse_softmax_cross_entropy_with_logits(labels: TensorLike, logits: TensorLike, name: str | None = None) -> Tensor:
    """-log(softmax(logits))[label] along the last axis: one loss for each example.

    Args:
      labels: integers in [0, number of classes), of logits' shape without its last axis.
      logits: unnormalised log probabilities.

    Raises:
      ValueError: the shapes do not fit.
      InvalidArgumentError: a label is out of range (seen on the CPU; elsewhere the loss is NaN).
    """
    x, places = raw(logits), raw(labels)
    require_kind("sparse_softmax_cross_entropy_with_logits", x, FLOAT, "logits")
    require_kind("sparse_softmax_cross_entropy_with_logits", places, INTEGER, "labels")
    if not x.ndim:
        raise ValueError("logits cannot be scalars")
    if places.shape != x.shape[:-1]:
        raise ValueError(f"labels.shape must be logits.shape without the last axis, got {places.shape} and {x.shape}")
    values = known(places)
    if values is not None and values.size and not 0 <= values.min() <= values.max() < x.shape[-1]:
        raise InvalidArgumentError(f"Received a label value outside of [0, {x.shape[-1]}), got {values}")
    return op(_sparse_softmax_cross_entropy, places, x)


def _sparse_softmax_cross_entropy(labels, logits):
    log_p = jax.nn.log_softmax(logits)
    return -jnp.take_along_axis(log_p, labels[..., None], -1, mode="fill", fill_value=jnp.nan)[..., 0]


def _like_logits(name: str, labels: TensorLike, logits: TensorLike) -> list:
    if labels is None or logits is None:
        raise ValueError(f"{name}: both labels and logits must be given")
    labels, logits = arrays_of(labels, logits)
    if labels.shape != logits.shape:
        raise ValueError(f"{name}: logits and labels must have the same shape, got {logits.shape} and {labels.shape}")
    require_kind(name, logits, FLOAT, "logits")
    return [labels, logits]


def sigmoid_cross_entropy_with_logits(
    labels: TensorLike = None, logits: TensorLike = None, name: str | None = None
) -> Tensor:
    """The cross entropy of independent yes/no probabilities, elementwise.

    Raises:
      ValueError: the shapes differ, or one of the two is missing.
    """
    return op(_sigmoid_cross_entropy, *_like_logits("sigmoid_cross_entropy_with_logits", labels, logits))


def _sigmoid_cross_entropy(labels, logits):
    positive = logits >= 0
    return jnp.where(positive, logits, 0) - logits * labels + jnp.log1p(jnp.exp(jnp.where(positive, -logits, logits)))


def weighted_cross_entropy_with_logits(
    labels: TensorLike, logits: TensorLike, pos_weight: TensorLike, name: str | None = None
) -> Tensor:
    """The sigmoid cross entropy with the positive labels weighted by `pos_weight`."""
    labels, logits = _like_logits("weighted_cross_entropy_with_logits", labels, logits)
    return op(_weighted_cross_entropy, *operands(labels, logits, pos_weight))


def _weighted_cross_entropy(labels, logits, pos_weight):
    weight = 1 + (pos_weight - 1) * labels
    tail = jnp.log1p(jnp.exp(-_math._abs(logits))) + jax.nn.relu(-logits)
    return (1 - labels) * logits + weight * tail


@operation("targets log_input", FLOAT)
def log_poisson_loss(targets, log_input, compute_full_loss: bool = False):
    """The loss of counts `targets` of a Poisson distribution whose mean is ``exp(log_input)``, elementwise.

    Args:
      targets: floats of any shape.
      log_input: floats of the same dtype and shape.
      compute_full_loss: whether the logarithm of the factorial is added, by Stirling's formula; of targets from 0 to 1 it is 0.

    Returns:
      A tensor of that dtype and shape.

    Raises:
      ValueError: the shapes differ.

    >>> print(log_poisson_loss([1.0, 3.0], [0.0, 0.0]))
    tf.Tensor([1. 1.], shape=(2,), dtype=float32)
    """
    if np.shape(targets) != np.shape(log_input):
        raise ValueError(
            "log_poisson_loss: targets and log_input must have the same shape, "
            f"got {np.shape(targets)} and {np.shape(log_input)}"
        )
    loss = jnp.exp(log_input) - log_input * targets
    if compute_full_loss:
        stirling = targets * jnp.log(targets) - targets + 0.5 * jnp.log(2 * np.pi * targets)
        loss += jnp.where((targets >= 0) & (targets <= 1), 0, stirling)
    return loss


# ---- Normalisation -----------------------------------------------------------------------------------------


@operation("x", "Ifc")
def moments(x, axes: AxisLike, shift: Ignored = None, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """Mean and (biased) variance over `axes`."""
    axes, wide_x = axes_of(axes, x.ndim), _math.widened(x)
    mean = _math._mean(wide_x, axes, True)
    variance = _math._mean(_math._squared_difference(wide_x, mean), axes, keepdims)
    mean = mean if keepdims else jnp.squeeze(mean, axes)
    return mean.astype(x.dtype), variance.astype(x.dtype)  # type: ignore[return-value]


def batch_normalization(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    offset: TensorLike,
    scale: TensorLike,
    variance_epsilon: TensorLike,
    name: str | None = None,
) -> Tensor:
    """scale * (x - mean) / sqrt(variance + variance_epsilon) + offset; offset and scale may be None.

    The other tensors may have another dtype: factor and shift are computed in it, then cast to the dtype of `x`.
    """
    array = raw(x)
    parameters = [value for value in (mean, variance, offset, scale) if value is not None]
    if any(hasattr(value, "dtype") for value in parameters):
        arrays = [array, *operands(*parameters, variance_epsilon)]
    else:
        arrays = operands(array, *parameters, variance_epsilon)
    return op(_batch_normalization, *arrays, has_offset=offset is not None, has_scale=scale is not None)


def _batch_normalization(x, mean, variance, *rest, has_offset, has_scale):
    *rest, epsilon = rest
    factor = _math._rsqrt(variance + epsilon)
    if has_scale:
        factor = factor * rest[-1]
    shift = (rest[0] if has_offset else 0) - mean * factor
    return x * factor.astype(x.dtype) + shift.astype(x.dtype)


@operation("value bias", NUMBER)
def bias_add(value, bias, data_format: str | None = None):
    """`bias`, a vector, added along the channel axis: the last, or the second for data formats that begin with 'NC'.

    Raises:
      ValueError: an unknown `data_format`.
      InvalidArgumentError: the bias has another length than there are channels.
    """
    if data_format is not None and not data_format.startswith("N"):
        raise ValueError(f"data_format must be of the form 'N...C' or 'NC...', got {data_format!r}")
    axis = 1 if (data_format or "").startswith("NC") else value.ndim - 1
    if value.ndim < 2 or np.shape(bias) != value.shape[axis : axis + 1]:
        raise InvalidArgumentError(f"a bias of shape {np.shape(bias)} does not fit axis {axis} of shape {value.shape}")
    return value + bias.reshape([-1 if i == axis else 1 for i in range(value.ndim)])


def embedding_lookup(
    params: TensorLike, ids: TensorLike, max_norm: FloatLike | None = None, name: str | None = None
) -> Tensor:
    """The rows of `params` at `ids`, clipped to `max_norm` where it is given; a list of tensors holds parts of the rows."""
    if isinstance(params, (list, tuple)):
        params = _array.concat(params, 0)
    ids = integers("embedding_lookup", ids, "ids")
    rows = _array.gather(params, ids)
    if max_norm is None:
        return rows
    require_kind("embedding_lookup", rows._array, FLOAT, "params")  # of complex numbers there is no norm here
    ids_rank = np.ndim(ids)
    return _math.clip_by_norm(rows, max_norm, axes=list(range(ids_rank, rows.ndim)))


# ---- Convolution and pooling -------------------------------------------------------------------------------

# The largest of a window that is longer than this takes XLA longest to compile place by place.
MOST_PLACES = 5


def _channels_first(data_format: str | None, rank: int) -> bool:
    """Whether the channels come before the spatial axes. Raises InvalidArgumentError for another format."""
    letters = {1: "W", 2: "HW", 3: "DHW"}[rank]
    allowed = {f"N{letters}C": False, f"NC{letters}": True}
    if data_format is None:
        return False
    if data_format not in allowed:
        raise InvalidArgumentError(f"data_format must be one of {', '.join(map(repr, allowed))}, got {data_format!r}")
    return allowed[data_format]


def _spatial(value: IntsLike | None, rank: int, first: bool, argument: str) -> tuple[int, ...]:
    """A window, stride or dilation given as one number, one per spatial axis, or one per axis."""
    sizes = (1,) if value is None else static(value, argument)
    sizes = sizes if isinstance(sizes, tuple) else (sizes,)
    sizes = tuple(int(n) if isinstance(n, float) and n.is_integer() else n for n in sizes)  # 4 / 2
    if any(n <= 0 for n in sizes):
        raise InvalidArgumentError(f"{argument} must be positive, got {value!r}")
    if len(sizes) == 1:
        return sizes * rank
    if len(sizes) == rank:
        return sizes
    if len(sizes) != rank + 2:
        raise ValueError(f"{argument} must have 1, {rank} or {rank + 2} elements, got {value!r}")
    if sizes[0] != 1 or sizes[1 if first else -1] != 1:
        raise InvalidArgumentError(f"{argument}={value!r}: the batch and channel axes must have 1")
    return sizes[2:] if first else sizes[1:-1]


def _padding(padding: PaddingLike, rank: int, first: bool) -> str | tuple:
    if isinstance(padding, str):
        if padding.upper() not in ("SAME", "VALID"):
            raise InvalidArgumentError(f"padding must be 'SAME', 'VALID' or a list of pairs, got {padding!r}")
        return padding.upper()
    pairs = tuple(tuple(pair) for pair in static(padding, "padding"))
    if len(pairs) == rank + 2:
        pairs = pairs[2:] if first else pairs[1:-1]
    return pairs


def _conv(x, filters, strides, padding, dilations, first, groups=None):
    rank = x.ndim - 2
    letters = "DHW"[-rank:]
    layout = f"NC{letters}" if first else f"N{letters}C"
    channels = x.shape[1 if first else -1]
    return lax.conv_general_dilated(
        x,
        filters,
        strides,
        padding,
        rhs_dilation=dilations,
        dimension_numbers=(layout, f"{letters}IO", layout),
        feature_group_count=groups or channels // filters.shape[-2],
    )


def _conv_transpose(x, filters, output_shape, strides, padding, dilations, first):
    # By definition: the transpose of the convolution that leads from output_shape to x.
    how = {"strides": strides, "padding": padding, "dilations": dilations, "first": first}
    forward = functools.partial(_conv, filters=filters, **how)
    (out,) = jax.linear_transpose(forward, jax.ShapeDtypeStruct(output_shape, x.dtype))(x)
    return out


def _depthwise_conv(x, filters, strides, padding, dilations, first):
    channels, multiplier = filters.shape[-2:]
    flat = filters.reshape(*filters.shape[:-2], 1, channels * multiplier)
    return _conv(x, flat, strides, padding, dilations, first, groups=channels)


def _convolved(name, rank, kernel, x, filters, strides, padding, data_format, dilations, **options: Any) -> Tensor:
    image, weights = arrays_of(x, filters)
    if rank is None:
        rank = weights.ndim - 2  # the batch may have several axes
        if rank not in (1, 2, 3):
            raise ValueError(f"{name}: filters must have 3, 4 or 5 axes, got shape {weights.shape}")
    if image.ndim < rank + 2 or weights.ndim != rank + 2:
        raise InvalidArgumentError(
            f"{name}: input and filters must have {rank + 2} axes, got shapes {image.shape} and {weights.shape}"
        )
    require_kind(name, image, "Jf" if kernel is _conv and rank < 3 else FLOAT, "input")
    batch = image.shape[: image.ndim - rank - 1]
    if len(batch) > 1:  # TensorFlow lets a batch have several axes
        image = _array.reshape(image, (-1, *image.shape[len(batch) :]))._array
    first = _channels_first(data_format, rank)
    channels, taken = image.shape[1 if first else -1], weights.shape[-2]
    if "output_shape" not in options and (not taken or channels % taken):
        raise InvalidArgumentError(f"{name}: input depth {channels} must be a multiple of filter depth {taken}")
    strides, dilations = _spatial(strides, rank, first, "strides"), _spatial(dilations, rank, first, "dilations")
    if name in ("convolution", "depthwise_conv2d"):
        _require_one_apart(name, strides, dilations)
    padding = _padding(padding, rank, first)
    out = op(kernel, image, weights, strides=strides, padding=padding, dilations=dilations, first=first, **options)
    return out if len(batch) == 1 else _array.reshape(out, (*batch, *out.shape[1:]))


def _require_one_apart(name: str, strides: Sequence[int], dilations: Sequence[int]) -> None:
    """Raises where windows are both dilated and apart. TensorFlow refuses that too, or gives what no reader would expect."""
    if max(strides) > 1 and max(dilations) > 1:
        raise ValueError(f"{name}: strides {strides} with dilations {dilations}: one of them must be 1")


def conv1d(
    input: TensorLike,
    filters: TensorLike,
    stride: IntsLike,
    padding: PaddingLike,
    data_format: str | None = "NWC",
    dilations: IntsLike | None = None,
    name: str | None = None,
) -> Tensor:
    """A convolution along one axis: input (batch, width, channels), filters (width, in, out)."""
    return _convolved("conv1d", 1, _conv, input, filters, stride, padding, data_format, dilations)


def conv2d(
    input: TensorLike,
    filters: TensorLike,
    strides: IntsLike,
    padding: PaddingLike,
    data_format: str | None = "NHWC",
    dilations: IntsLike | None = None,
    name: str | None = None,
) -> Tensor:
    """A convolution over images.

    Args:
      input: (batch, height, width, channels), or (batch, channels, height, width) for the data format 'NCHW'.
      filters: (height, width, channels in, channels out).
      strides, dilations: a number, a pair, or one per axis.
      padding: 'SAME', 'VALID' or pairs of numbers per axis.

    Raises:
      InvalidArgumentError: the shapes do not fit, or an unknown padding or data format.
    """
    return _convolved("conv2d", 2, _conv, input, filters, strides, padding, data_format, dilations)


def conv3d(
    input: TensorLike,
    filters: TensorLike,
    strides: IntsLike,
    padding: PaddingLike,
    data_format: str | None = "NDHWC",
    dilations: IntsLike | None = None,
    name: str | None = None,
) -> Tensor:
    """A convolution over volumes; see `conv2d`."""
    return _convolved("conv3d", 3, _conv, input, filters, strides, padding, data_format, dilations)


def depthwise_conv2d(
    input: TensorLike,
    filter: TensorLike,
    strides: IntsLike,
    padding: PaddingLike,
    data_format: str | None = None,
    dilations: IntsLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Each channel convolved with its own filters: `filter` is (height, width, channels, multiplier)."""
    return _convolved("depthwise_conv2d", 2, _depthwise_conv, input, filter, strides, padding, data_format, dilations)


def convolution(
    input: TensorLike,
    filters: TensorLike,
    strides: IntsLike | None = None,
    padding: PaddingLike = "VALID",
    data_format: str | None = None,
    dilations: IntsLike | None = None,
    name: str | None = None,
) -> Tensor:
    """A convolution (cross-correlation) over one, two or three spatial axes; see `conv2d`."""
    return _convolved("convolution", None, _conv, input, filters, strides, padding, data_format, dilations)


def separable_conv2d(
    input: TensorLike,
    depthwise_filter: TensorLike,
    pointwise_filter: TensorLike,
    strides: IntsLike,
    padding: PaddingLike,
    data_format: str | None = None,
    dilations: IntsLike | None = None,
    name: str | None = None,
) -> Tensor:
    """A depthwise convolution, then one with filters of 1 x 1."""
    depthwise = depthwise_conv2d(input, depthwise_filter, strides, padding, data_format, dilations)
    return conv2d(depthwise, pointwise_filter, 1, "VALID", data_format or "NHWC")


def _transposed(rank: int, name: str, default: str) -> Callable[..., Tensor]:
    def public(
        input: TensorLike,
        filters: TensorLike,
        output_shape: ShapeLike,
        strides: IntsLike,
        padding: PaddingLike = "SAME",
        data_format: str = default,
        dilations: IntsLike | None = None,
        name: str | None = None,
    ) -> Tensor:
        arguments = input, filters, strides, padding, data_format, dilations
        shape = shape_of(output_shape, "output_shape")
        return _convolved(public.__name__, rank, _conv_transpose, *arguments, output_shape=shape)

    public.__doc__ = f"The transpose (gradient) of conv{rank}d: filters are (..., channels out, channels in)."
    return renamed(name, public)


conv1d_transpose = _transposed(1, "conv1d_transpose", "NWC")
conv2d_transpose = _transposed(2, "conv2d_transpose", "NHWC")
conv3d_transpose = _transposed(3, "conv3d_transpose", "NDHWC")


def _reduce_window(x, start, combine, size, strides, padding, dilations, first):
    def full(sizes, other):
        return (other, other, *sizes) if first else (other, *sizes, other)

    pads = padding if isinstance(padding, str) else full(padding, (0, 0))
    start = np.asarray(start, x.dtype)
    windows = full(size, 1), full(strides, 1), pads
    return lax.reduce_window(x, start, combine, *windows, window_dilation=full(dilations, 1))


def _spatial_axes(x, first):
    return range(2, x.ndim) if first else range(1, x.ndim - 1)


def _max_pool(x, size, strides, padding, dilations, first):
    lowest = np.asarray(_math._lowest(x.dtype, -1), x.dtype)
    if set(dilations) == {1} and max(size) > MOST_PLACES:
        return _reduce_window(x, lowest, lax.max, size, strides, padding, dilations, first)
    # Axis by axis. JAX has no derivative for the largest of a dilated window, and a slow one for others.
    axes = _spatial_axes(x, first)
    reach = [(n - 1) * rate + 1 for n, rate in zip(size, dilations, strict=True)]
    if isinstance(padding, str):
        padding = lax.padtype_to_pads([x.shape[axis] for axis in axes], reach, strides, padding)
    sides = dict(zip(axes, padding, strict=True))
    x = lax.pad(x, lowest, [(*sides.get(axis, (0, 0)), 0) for axis in range(x.ndim)])
    # the last axis first: then the first of equals in the window is the one that stays, and gets the gradient
    for axis, n, rate, length, stride in reversed(list(zip(axes, size, dilations, reach, strides, strict=True))):
        steps = max(x.shape[axis] - length, -stride) // stride * stride
        parts = [lax.slice_in_dim(x, i * rate, i * rate + steps + 1, stride, axis) for i in range(n)]
        x = functools.reduce(_larger, parts)
    return x


def _larger(x, y):
    return jnp.where((y > x) | (y != y), y, x)  # a nan stays: nothing is larger


def _avg_pool(x, size, strides, padding, dilations, first):
    axes, wide_x = _spatial_axes(x, first), _math.widened(x)
    ones = jnp.ones([length if axis in axes else 1 for axis, length in enumerate(x.shape)], wide_x.dtype)
    total, count = (_reduce_window(y, 0, lax.add, size, strides, padding, dilations, first) for y in (wide_x, ones))
    return (total / count).astype(x.dtype)  # what was padded does not count


def _pooled(kernel: Callable, input, rank: int | None, ksize, strides, padding, data_format, dilations=1) -> Tensor:
    x, name = raw(input), kernel.__name__.strip("_")
    rank = x.ndim - 2 if rank is None else rank
    if rank not in (1, 2, 3) or x.ndim != rank + 2:
        raise ValueError(f"input must have {rank + 2 if rank in (1, 2, 3) else '3, 4 or 5'} axes, got shape {x.shape}")
    first = _channels_first(data_format, rank)
    require_kind(name, x, FLOAT if kernel is _avg_pool else "S" if rank == 3 else "iUf", "input")
    size, strides = _spatial(ksize, rank, first, "ksize"), _spatial(strides, rank, first, "strides")
    dilations, padding = _spatial(dilations, rank, first, "dilations"), _padding(padding, rank, first)
    _require_one_apart(name, strides, dilations)
    if not isinstance(padding, str) and any(max(pair) >= length for pair, length in zip(padding, size, strict=True)):
        raise InvalidArgumentError(f"padding {padding} must be smaller than the window {size}, which would be empty")
    return op(kernel, x, size=size, strides=strides, padding=padding, dilations=dilations, first=first)


def _pooling(kernel: Callable, what: str) -> tuple:
    def by_rank(rank: int | None, name: str, default: str | None) -> Callable[..., Tensor]:
        def public(
            input: TensorLike,
            ksize: IntsLike,
            strides: IntsLike,
            padding: PaddingLike,
            data_format: str | None = default,
            name: str | None = None,
        ) -> Tensor:
            return _pooled(kernel, input, rank, ksize, strides, padding, data_format)

        public.__doc__ = f"The {what} of each window of size `ksize`, `strides` apart. Padding as in `conv2d`."
        return renamed(name, public)

    name = kernel.__name__.strip("_")
    formats = {None: None, 1: "NWC", 2: "NHWC", 3: "NDHWC"}
    return tuple(by_rank(rank, name + (f"{rank}d" if rank else ""), default) for rank, default in formats.items())


max_pool, max_pool1d, max_pool2d, max_pool3d = _pooling(_max_pool, "largest element")
avg_pool, avg_pool1d, avg_pool2d, avg_pool3d = _pooling(_avg_pool, "mean")


def pool(
    input: TensorLike,
    window_shape: Sequence[int],
    pooling_type: str,
    strides: IntsLike | None = None,
    padding: PaddingLike = "VALID",
    data_format: str | None = None,
    dilations: IntsLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Pooling of type 'MAX' or 'AVG'."""
    if pooling_type not in ("MAX", "AVG"):
        raise ValueError(f"pooling_type must be 'MAX' or 'AVG', got {pooling_type!r}")
    kernel = _max_pool if pooling_type == "MAX" else _avg_pool
    return _pooled(kernel, input, len(window_shape), window_shape, strides, padding, data_format, dilations)
