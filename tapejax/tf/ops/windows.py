"""Less common layers: windows with an argmax, morphology, local responses, moments in steps, dropout by seed, CTC."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...tape.rules import zero_gradient
from ..values.dtypes import narrowed, requested
from ..values.errors import InvalidArgumentError, extra_missing
from ..values.tensor import Tensor, arrays_of, op, raw
from ..values.types import Array, DTypeLike, IntsLike, PaddingLike, TensorLike
from . import array as _array
from . import math as _math
from . import nn
from . import random as _random
from .sparse import SparseTensor
from .table import FIELD, NUMBER, REAL, axes_of, host, integers, known, operation, require_kind, static, whole

# ---- Windows -----------------------------------------------------------------------------------------------


def _windows(x, size, strides, rates, padding, fill):
    """(batch, rows, columns, places in the window, channels), and where each place is: its row and its column."""
    found = []
    for axis, (n, stride, rate) in enumerate(zip(size, strides, rates, strict=True)):
        length, reach = x.shape[1 + axis], (n - 1) * rate + 1
        count = -(-length // stride) if padding == "SAME" else (length - reach) // stride + 1
        before = max((count - 1) * stride + reach - length, 0) // 2 if padding == "SAME" else 0
        found.append(np.arange(count)[:, None] * stride - before + np.arange(n) * rate)
    rows, columns = found
    inside = [(places >= 0) & (places < length) for places, length in zip(found, x.shape[1:3], strict=True)]
    parts = x[:, rows.clip(0, x.shape[1] - 1)][:, :, :, columns.clip(0, x.shape[2] - 1)]
    parts = jnp.where(inside[0][:, :, None, None, None] & inside[1][:, :, None], parts, jnp.asarray(fill, x.dtype))
    parts = jnp.moveaxis(parts, 2, 3)  # (batch, rows, columns, window's rows, window's columns, channels)
    flat = parts.reshape(*parts.shape[:3], -1, x.shape[-1])
    place = rows[:, None, :, None] * x.shape[2] + columns[None, :, None, :]
    return flat, place.reshape(1, len(rows), len(columns), -1, 1)


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
    places = _places(padding, size=("ksize", ksize), strides=("strides", strides))
    return op(_max_pool_with_argmax, x, **places, dtype=dtype, whole=bool(include_batch_in_index))


def _places(padding: PaddingLike, **windows: tuple[str, IntsLike]) -> dict[str, Any]:
    """The static arguments of a window: its padding, and pairs of numbers for its rows and columns."""
    pairs = {key: nn._spatial(value, 2, False, argument) for key, (argument, value) in windows.items()}
    return {"padding": nn._padding(padding, 2, False), **pairs}


def _max_pool_with_argmax(x, size, strides, padding, dtype, whole):
    parts, place = _windows(x, size, strides, (1, 1), padding, _math._lowest(x.dtype, -1))
    best = jnp.argmax(parts, 3, keepdims=True)
    values = jnp.take_along_axis(parts, best, 3)[..., 0, :]
    index = jnp.take_along_axis(jnp.asarray(place), best, 3)[..., 0, :] * x.shape[3] + np.arange(x.shape[3])
    if whole:
        index = index + (np.arange(len(x)) * x[0].size)[:, None, None, None]
    return MaxPoolWithArgmax(values, index.astype(dtype))


def dilation2d(input: TensorLike, filters: TensorLike, strides, padding, data_format, dilations, name=None) -> Tensor:
    """The largest sum of each window's elements and the filter's: grey-scale dilation. Filters are (height, width, channels)."""
    if data_format != "NHWC":
        raise ValueError(f"data_format must be 'NHWC', got {data_format!r}")
    image, weights = arrays_of(input, filters)
    x = _images(image)
    require_kind("dilation2d", x, REAL)
    return op(_dilation2d, x, weights, **_places(padding, strides=("strides", strides), rates=("dilations", dilations)))


def _dilation2d(x, filters, strides, rates, padding):
    parts, _ = _windows(x, filters.shape[:2], strides, rates, padding, 0)
    inside, _ = _windows(jnp.ones(x.shape, bool), filters.shape[:2], strides, rates, padding, False)
    # What is padded is left out after the sum, in which the lowest integer would wrap around.
    sums = jnp.where(
        inside, parts + filters.reshape(-1, filters.shape[-1]), jnp.asarray(_math._lowest(x.dtype, -1), x.dtype)
    )
    # Of equals the first gets the gradient.
    return jnp.take_along_axis(sums, jnp.argmax(sums, 3, keepdims=True), 3)[..., 0, :]


def erosion2d(value: TensorLike, filters: TensorLike, strides, padding, data_format, dilations, name=None) -> Tensor:
    """The smallest difference of each window's elements and the filter's: grey-scale erosion."""
    turned = _array.reverse(filters, [0, 1])
    return _negative(dilation2d(_negative(value), turned, strides, padding, data_format, dilations))


def _negative(x: TensorLike) -> Tensor:
    array = raw(x)
    require_kind("erosion2d", array, "if")
    return op(jnp.negative, array)


@operation("input", "S")
def local_response_normalization(input, depth_radius=5, bias=1, alpha=1, beta=0.5):
    """x / (bias + alpha * the sum of the squares of the channels up to `depth_radius` away) ** beta."""
    window, sides = (1, 1, 1, 2 * depth_radius + 1), [(0, 0)] * 3 + [(depth_radius, depth_radius)]
    x = _images(input)
    squares = lax.reduce_window(x * x, np.zeros((), x.dtype), lax.add, window, (1,) * 4, sides)
    return x / (bias + alpha * squares) ** beta


lrn = local_response_normalization

# ---- Convolutions by other names ---------------------------------------------------------------------------


def atrous_conv2d(
    value: TensorLike, filters: TensorLike, rate: IntsLike, padding: PaddingLike, name: str | None = None
) -> Tensor:
    """`conv2d` with ``dilations=rate``."""
    return nn.conv2d(value, filters, 1, padding, dilations=rate)


def atrous_conv2d_transpose(value: TensorLike, filters: TensorLike, output_shape, rate, padding, name=None) -> Tensor:
    """`conv2d_transpose` with ``dilations=rate``: filters are (height, width, channels out, channels in)."""
    return nn.conv2d_transpose(value, filters, output_shape, 1, padding, dilations=rate)


_TRANSPOSED: dict[int, Callable] = {3: nn.conv1d_transpose, 4: nn.conv2d_transpose, 5: nn.conv3d_transpose}


def conv_transpose(
    input, filters, output_shape, strides, padding="SAME", data_format=None, dilations=None, name=None
) -> Tensor:
    """`conv1d_transpose`, `conv2d_transpose` or `conv3d_transpose`, as the filters have axes."""
    rank = raw(filters).ndim
    if rank not in _TRANSPOSED:
        raise ValueError(f"filters must have 3, 4 or 5 axes, got {rank}")
    return _TRANSPOSED[rank](input, filters, output_shape, strides, padding, data_format, dilations)


def batch_norm_with_global_normalization(
    input, mean, variance, beta, gamma, variance_epsilon, scale_after_normalization: bool, name=None
) -> Tensor:
    """`batch_normalization`, with `gamma` as its scale or without."""
    scale = gamma if scale_after_normalization else None
    return nn.batch_normalization(input, mean, variance, beta, scale, variance_epsilon)


# ---- Losses ------------------------------------------------------------------------------------------------


def compute_average_loss(per_example_loss, sample_weight=None, global_batch_size=None) -> Tensor:
    """The sum of the losses, weighted, divided by the batch size, by default the number of losses.

    Raises:
      ValueError: the losses are a scalar.
      TypeError: `global_batch_size` is no integer.
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
    size = losses.shape[0] if global_batch_size is None else static(global_batch_size, "global_batch_size")
    if isinstance(size, tuple):
        raise ValueError(f"global_batch_size must be a scalar, got {size}")
    if not isinstance(size, int) or isinstance(size, bool):
        raise TypeError(f"global_batch_size must be an integer, got {size!r}")
    if size < 0:
        raise InvalidArgumentError(f"global_batch_size must not be negative, got {size}")
    total = _math.reduce_sum(losses)  # type: ignore[attr-defined]
    return _math.divide_no_nan(total, _array.cast(size, total.dtype))  # type: ignore[attr-defined]


def scale_regularization_loss(regularization_loss: TensorLike | Sequence[TensorLike]) -> Tensor:
    """The sum of the loss, or of a list of losses: there is one replica."""
    losses = regularization_loss if isinstance(regularization_loss, (list, tuple)) else [regularization_loss]
    return _math.truediv(_math.add_n([_math.reduce_sum(loss) for loss in losses]), 1)  # type: ignore[attr-defined]


def ctc_loss(
    labels, logits, label_length, logit_length, logits_time_major=True, unique=None, blank_index=None, name=None
) -> Tensor:
    """The loss of connectionist temporal classification, one for each sequence, by Optax.

    Args:
      labels: integers, (batch, longest label), or a sparse tensor of that shape, with which `label_length` is not looked at.
      logits: (time, batch, classes), or (batch, time, classes) unless `logits_time_major`.
      label_length, logit_length: how much of each row counts.
      unique: taken for TensorFlow's sake.
      blank_index: the class of the blank, by default 0; negative ones count from the end. Must be given with sparse labels.

    Raises:
      ImportError: Optax is not installed.
      InvalidArgumentError: a row of sparse labels is empty or longer than there is time for, or a label is no class or the
        blank (seen on the CPU).
    """
    if (sparse := isinstance(labels, SparseTensor)) and blank_index is None:
        raise ValueError("blank_index must be given where the labels are a SparseTensor")
    scores = raw(logits)
    require_kind("ctc_loss", scores, "S", "logits")
    if logits_time_major:
        scores = raw(_array.transpose(scores, [1, 0, 2]))
    blank = int(whole(blank_index or 0)) % scores.shape[-1]
    if sparse:
        labels, label_length = _dense_labels(labels, logit_length, blank, scores)
    try:
        import optax  # noqa: F401
    except ImportError as error:
        raise extra_missing("tf.nn.ctc_loss", "Optax", "port") from error
    lengths = (label_length, "label_length"), (logit_length, "logit_length")
    given = scores, *(integers("ctc_loss", x, argument) for x, argument in ((labels, "labels"), *lengths))
    loss = op(_ctc_loss, *given, blank=blank)
    return op(_without_time, loss, *given) if sparse else loss


def _dense_labels(labels: SparseTensor, time: TensorLike, blank: int, scores: Array) -> tuple[Tensor, Tensor]:
    """Labels in the rows of a matrix, in their order, and how many there are in each."""
    dense, length = op(_rows_of_labels, labels.indices, labels.values, sizes=(scores.shape[0], labels.shape[1]))
    values, lengths, times = (known(raw(x)) for x in (labels.values, length, time))
    if values is not None and lengths is not None and times is not None:
        if not ((values >= 0) & (values < scores.shape[-1]) & (values != blank)).all():
            raise InvalidArgumentError(f"ctc_loss: labels must be classes other than the blank, got {values}")
        if not ((lengths > 0) & (lengths <= times)).all():
            raise InvalidArgumentError(f"ctc_loss: there are {lengths} labels, there must be 1 to {times}")
    return dense, length


def _rows_of_labels(places, values, sizes):
    rows = places[:, 0]
    length = jax.ops.segment_sum(jnp.ones_like(rows), rows, sizes[0])
    first = jnp.cumsum(length) - length
    return jnp.zeros(sizes, values.dtype).at[rows, jnp.arange(len(rows)) - first[rows]].set(values), length


def _without_time(loss, logits, labels, label_length, logit_length):
    """The loss, where between equal labels there is no time for a blank: infinite, and as if nothing had been likely."""
    place = jnp.arange(1, labels.shape[1])
    repeated = jnp.sum((place < label_length[:, None]) & (labels[:, 1:] == labels[:, :-1]), 1)
    total = jnp.where(jnp.arange(logits.shape[1]) < logit_length[:, None], jax.nn.logsumexp(logits, -1), 0).sum(1)
    return jnp.where(label_length + repeated > logit_length, jnp.inf + total, loss)


def _ctc_loss(logits, labels, label_length, logit_length, blank):
    import optax

    def padding(lengths, size):
        return (jnp.arange(size) >= lengths[:, None]).astype(logits.dtype)

    padded = logits, padding(logit_length, logits.shape[1]), labels, padding(label_length, labels.shape[1])
    loss = optax.ctc_loss(*padded, blank_id=blank, log_epsilon=-1e30)
    return loss.astype(logits.dtype)  # Optax computes in the widest type that is on


# ---- Moments in steps --------------------------------------------------------------------------------------


def weighted_moments(x, axes, frequency_weights, keepdims=False, name=None) -> tuple[Tensor, Tensor]:
    """Mean and variance over `axes`, each element counted as often as its weight says."""
    array = raw(x)
    require_kind("weighted_moments", array, FIELD)
    weights = _array.cast(raw(frequency_weights), "float32" if array.dtype.itemsize < 4 else array.dtype)
    return op(_weighted_moments, array, weights, axes=axes_of(axes, array.ndim), keepdims=bool(keepdims))


@zero_gradient  # of no elements: JAX takes it for a constant
def _weighted_moments(x, weights, axes, keepdims):
    dtype = x.dtype
    x, weights = x.astype(weights.dtype), jnp.broadcast_to(weights, x.shape)
    total = jnp.sum(weights, axes, keepdims=True)

    def average(values):
        return _math._divide_no_nan(jnp.sum(weights * values, axes, keepdims=True), total)

    mean = average(x)
    found = mean, average(_math._squared_difference(x, mean))
    return tuple((value if keepdims else jnp.squeeze(value, axes)).astype(dtype) for value in found)


def sufficient_statistics(x: TensorLike, axes, shift: TensorLike = None, keepdims=False, name=None) -> tuple:
    """(number of elements, their sum, the sum of their squares, `shift`) over `axes`, all after `shift` is subtracted."""
    array = raw(x)
    require_kind("sufficient_statistics", array, NUMBER)
    over = axes_of(axes, array.ndim)
    count = _array.fill([], np.asarray(np.prod([array.shape[axis] for axis in over]), array.dtype))
    shifted = array if shift is None else op(jnp.subtract, array, raw(shift, dtype_hint=array.dtype))
    sums = op(_sufficient_statistics, shifted, axes=over, keepdims=bool(keepdims))
    return count, *sums, None if shift is None else Tensor(raw(shift))


def _sufficient_statistics(x, axes, keepdims):
    return _math._sum(x, axes, keepdims), _math._sum(jnp.square(x), axes, keepdims)


def normalize_moments(counts, mean_ss, variance_ss, shift, name=None) -> tuple[Tensor, Tensor]:
    """Mean and variance of what `sufficient_statistics` gave."""
    arrays = arrays_of(mean_ss, variance_ss, counts, *([] if shift is None else [shift]))
    require_kind("normalize_moments", arrays[0], FIELD)
    return op(_normalize_moments, *arrays)


def _normalize_moments(total, squares, count, *shift):
    mean = total / count
    return (mean + shift[0] if shift else mean), squares / count - jnp.square(mean)


# ---- Dropout by seed ---------------------------------------------------------------------------------------


def stateless_dropout(x: TensorLike, rate, seed: TensorLike, rng_alg=None, noise_shape=None, name=None) -> Tensor:
    """As `dropout`, but the same `seed`, two integers, always drops the same elements."""
    draw = lambda shape, dtype: _random.stateless_uniform(shape, seed, dtype=dtype)  # noqa: E731
    return nn.general_dropout(x, rate, draw, noise_shape)


general_dropout = nn.general_dropout


def collapse_repeated(labels: TensorLike, seq_length: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Runs of equal labels made one, for each row: the labels, filled up with 0, and their number."""
    rows, lengths = host(labels, "labels"), host(seq_length, "seq_length")
    if rows.ndim != 2:
        raise InvalidArgumentError(f"labels must have shape (batch, length), got {rows.shape}")
    parts = [row[:n] for row, n in zip(rows, lengths, strict=True)]
    kept = [np.concatenate([part[:1], part[1:][part[1:] != part[:-1]]]) for part in parts]
    width = max(map(len, kept), default=0)
    padded = np.stack([np.pad(row, (0, width - len(row))) for row in kept])
    counts = np.asarray([len(row) for row in kept], lengths.dtype)
    return Tensor(raw(padded)), Tensor(raw(counts))
