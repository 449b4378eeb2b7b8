"""Less common layers: pools with an argmax, local responses, dropout by seed, CTC, averages of losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..values import replicas
from ..values.conversion import raw
from ..values.dtypes import narrowed, requested
from ..values.errors import InvalidArgumentError, extra_missing
from ..values.operations import op
from ..values.tensor import Tensor
from ..values.types import Array, DTypeLike, IntsLike, TensorLike
from . import array as _array
from . import math as _math
from . import nn
from . import random as _random
from .image import _extract_patches
from .sparse import SparseTensor
from .table import REAL, integers, operation, require_kind, static, whole

# ---- Windows -----------------------------------------------------------------------------------------------


def _images(input: TensorLike) -> Array:
    array = raw(input)
    if array.ndim != 4:
        raise InvalidArgumentError(f"input must have shape (batch, height, width, channels), got {array.shape}")
    return array


class MaxPoolWithArgmax(NamedTuple):
    """What `max_pool_with_argmax` returns."""

    output: Tensor | Array
    argmax: Tensor | Array


def max_pool_with_argmax(
    input: TensorLike,
    ksize: IntsLike,
    strides: IntsLike,
    padding: str,
    data_format: str = "NHWC",
    output_dtype: DTypeLike = "int64",
    include_batch_in_index: bool = False,
    name: str | None = None,
) -> MaxPoolWithArgmax:
    """The largest element of each window, and its index in the flattened image (or batch of images).

    int64 (int32 while ``jax_enable_x64`` is off).
    """
    if data_format != "NHWC":
        raise ValueError(f"data_format must be 'NHWC', got {data_format!r}")
    x = _images(input)
    require_kind("max_pool_with_argmax", x, REAL)
    dtype = narrowed(np.dtype(output_dtype if isinstance(output_dtype, str) else requested(output_dtype)))
    window, apart = nn._spatial(ksize, 2, False, "ksize"), nn._spatial(strides, 2, False, "strides")
    how = {"size": window, "strides": apart, "padding": nn._padding(padding, 2, False)}
    return op(_max_pool_with_argmax, x, **how, dtype=dtype, whole=bool(include_batch_in_index))


def _max_pool_with_argmax(x, size, strides, padding, dtype, whole):
    widths = [(0, 0), *lax.padtype_to_pads(x.shape[1:3], size, strides, padding), (0, 0)]
    padded = jnp.pad(x, widths, constant_values=_math._lowest(x.dtype, -1))
    place = np.pad(np.arange(x[0].size).reshape(1, *x.shape[1:]), widths)
    # (batch, rows, columns, places in the window, channels)
    parts, places = (
        (y := _extract_patches(each, size, strides, (1, 1), "VALID")).reshape(*y.shape[:3], -1, x.shape[3])
        for each in (padded, jnp.asarray(place))
    )
    best = jnp.argmax(parts, 3, keepdims=True)
    values, index = (jnp.take_along_axis(each, best, 3)[..., 0, :] for each in (parts, places))
    if whole:
        index = index + (np.arange(len(x)) * x[0].size)[:, None, None, None]
    return MaxPoolWithArgmax(values, index.astype(dtype))


@operation("input", "S")
def local_response_normalization(input, depth_radius=5, bias=1, alpha=1, beta=0.5):
    """x / (bias + alpha * the sum of the squares of the channels up to `depth_radius` away) ** beta."""
    window, sides = (1, 1, 1, 2 * depth_radius + 1), [(0, 0)] * 3 + [(depth_radius, depth_radius)]
    x = _images(input)
    squares = lax.reduce_window(x * x, np.zeros((), x.dtype), lax.add, window, (1,) * 4, sides)
    return x / (bias + alpha * squares) ** beta


lrn = local_response_normalization

# ---- Losses ------------------------------------------------------------------------------------------------


def compute_average_loss(per_example_loss, sample_weight=None, global_batch_size=None) -> Tensor:
    """The sum of the losses, weighted, divided by the batch size, by default the number of losses of all replicas.

    Raises:
      ValueError: the losses are a scalar.
      TypeError: `global_batch_size` is not an integer.
      InvalidArgumentError: `global_batch_size` is negative.
    """
    losses = raw(per_example_loss)
    if not losses.ndim:
        raise ValueError("per_example_loss must be a vector at least, got a scalar")
    if sample_weight is not None:
        weights = _array.cast(sample_weight, losses.dtype)
        if weights.ndim and abs(weights.ndim - losses.ndim) == 1:  # a weight for each row, or an axis of 1 too many
            weights = (_array.squeeze if weights.ndim > losses.ndim else _array.expand_dims)(weights, -1)
        losses = raw(op(jnp.multiply, losses, raw(weights)))
    size = (
        losses.shape[0] * replicas.count()
        if global_batch_size is None
        else static(global_batch_size, "global_batch_size")
    )
    if isinstance(size, tuple):
        raise ValueError(f"global_batch_size must be a scalar, got {size}")
    if not isinstance(size, int) or isinstance(size, bool):
        raise TypeError(f"global_batch_size must be an integer, got {size!r}")
    if size < 0:
        raise InvalidArgumentError(f"global_batch_size must not be negative, got {size}")
    total = _math.reduce_sum(losses)  # type: ignore[attr-defined]
    return _math.divide_no_nan(total, _array.cast(size, total.dtype))  # type: ignore[attr-defined]


def scale_regularization_loss(regularization_loss: TensorLike | Sequence[TensorLike]) -> Tensor:
    """The sum of the loss, or of a list of losses, divided by the number of replicas: each adds its part to the global loss."""
    losses = regularization_loss if isinstance(regularization_loss, (list, tuple)) else [regularization_loss]
    return _math.truediv(_math.add_n([_math.reduce_sum(loss) for loss in losses]), replicas.count())  # type: ignore[attr-defined]


def ctc_loss(
    labels, logits, label_length, logit_length, logits_time_major=True, unique=None, blank_index=None, name=None
) -> Tensor:
    """The loss of connectionist temporal classification, one for each sequence, by Optax.

    Args:
      labels: integers, (batch, longest label).
      logits: (time, batch, classes), or (batch, time, classes) unless `logits_time_major`.
      label_length, logit_length: how much of each row counts.
      unique: taken for TensorFlow's sake.
      blank_index: the class of the blank, by default 0; negative ones count from the end.

    Raises:
      ImportError: Optax is not installed.
      TypeError: the labels are a sparse tensor.
    """
    if isinstance(labels, SparseTensor):
        raise TypeError("ctc_loss: labels must be dense, with label_length: give tf.sparse.to_dense(labels)")
    scores = raw(logits)
    require_kind("ctc_loss", scores, "S", "logits")
    if logits_time_major:
        scores = raw(_array.transpose(scores, [1, 0, 2]))
    blank = int(whole(blank_index or 0)) % scores.shape[-1]
    try:
        import optax  # noqa: F401
    except ImportError as error:
        raise extra_missing("tf.nn.ctc_loss", "Optax", "port") from error
    lengths = (label_length, "label_length"), (logit_length, "logit_length")
    arrays = scores, *(integers("ctc_loss", x, argument) for x, argument in ((labels, "labels"), *lengths))
    return op(_ctc_loss, *arrays, blank=blank)


def _ctc_loss(logits, labels, label_length, logit_length, blank):
    import optax

    def padding(lengths, size):
        return (jnp.arange(size) >= lengths[:, None]).astype(logits.dtype)

    padded = logits, padding(logit_length, logits.shape[1]), labels, padding(label_length, labels.shape[1])
    loss = optax.ctc_loss(*padded, blank_id=blank, log_epsilon=-1e30)
    return loss.astype(logits.dtype)  # Optax computes in the widest type that is on


# ---- Dropout by seed ---------------------------------------------------------------------------------------


def stateless_dropout(x: TensorLike, rate, seed: TensorLike, rng_alg=None, noise_shape=None, name=None) -> Tensor:
    """As `dropout`, but the same `seed`, two integers, always drops the same elements."""
    return nn.dropout(x, rate, noise_shape, _random.Fixed(seed))  # type: ignore[arg-type]
