"""Less common ways to take tensors apart and to put them together, and to count."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import lax

from ..values.conversion import raw
from ..values.dtypes import requested
from ..values.errors import InvalidArgumentError
from ..values.operations import arrays_of, op
from ..values.tensor import Tensor
from ..values.types import Array, DTypeLike, IntsLike, ShapeLike, TensorLike
from . import array as _array
from .table import (
    NUMBER,
    axis_of,
    host,
    integers,
    known,
    operation,
    require_kind,
    shape_of,
    static,
    whole,
)


@operation("input", NUMBER)
def bitcast(input, type: DTypeLike):
    """The same bits as elements of another dtype; narrower ones along a new last axis, wider ones out of the last axis."""
    require_kind("bitcast", np.empty(0, requested(type)), NUMBER)
    return lax.stop_gradient(lax.bitcast_convert_type(input, requested(type)))


def unravel_index(indices: TensorLike, dims: ShapeLike, name: str | None = None) -> Tensor:
    """Indices into the flattened tensor as indices into each of its axes, a row for each axis.

    Raises:
      InvalidArgumentError: an index is out of range (seen on the CPU).
    """
    array, sizes = integers("unravel_index", indices), shape_of(dims, "dims")
    values = known(array)
    if values is not None and values.size and not 0 <= values.min() <= values.max() < np.prod(sizes):
        raise InvalidArgumentError(f"unravel_index: index is out of bound as with dims {sizes}")
    return op(_unravel_index, array, dims=sizes)


def _unravel_index(indices, dims):
    return jnp.stack(jnp.unravel_index(indices, dims)).astype(indices.dtype)


def reverse_sequence(input: TensorLike, seq_lengths: TensorLike, seq_axis=None, batch_axis=None, name=None) -> Tensor:
    """The first ``seq_lengths[i]`` elements along `seq_axis` turned round, in row i of `batch_axis` (by default 0).

    Raises:
      TypeError: `seq_axis` is missing.
      InvalidArgumentError: there are not as many lengths as rows, or one is too large (seen on the CPU).
    """
    if seq_axis is None:
        raise TypeError("seq_axis must be given: the axis to reverse")
    array, lengths = raw(input), integers("reverse_sequence", seq_lengths, "seq_lengths")
    along, batch = axis_of(seq_axis, array.ndim, "seq_axis"), axis_of(batch_axis or 0, array.ndim, "batch_axis")
    if along == batch:
        raise InvalidArgumentError(f"seq_axis and batch_axis must differ, both are {batch}")
    if lengths.shape != (array.shape[batch],):
        raise InvalidArgumentError(f"seq_lengths must have shape ({array.shape[batch]},), got {lengths.shape}")
    values = known(lengths)
    if values is not None and values.size and not 0 <= values.min() <= values.max() <= array.shape[along]:
        raise InvalidArgumentError(f"seq_lengths must be in [0, {array.shape[along]}], got {values}")
    return op(_reverse_sequence, array, lengths, along=along, batch=batch)


def _reverse_sequence(x, lengths, along, batch):
    def spread(values, axis):
        return values.reshape([-1 if i == axis else 1 for i in range(x.ndim)])

    place, length = spread(jnp.arange(x.shape[along]), along), spread(lengths.astype(jnp.int32), batch)
    return jnp.take_along_axis(x, jnp.where(place < length, length - 1 - place, place), along)


def dynamic_partition(data: TensorLike, partitions: TensorLike, num_partitions, name=None) -> list[Tensor]:
    """The parts of `data` whose number in `partitions` is 0, 1, 2 ...

    Raises:
      InvalidArgumentError: a number is not in [0, num_partitions).
      TypeError: under jit, where the sizes are not known.
    """
    numbers = host(integers("dynamic_partition", partitions, "partitions"), "partitions")
    count = int(whole(num_partitions, "num_partitions"))
    if numbers.ndim == 0:
        data, numbers = _array.expand_dims(data, 0), numbers[None]
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < count:
        raise InvalidArgumentError(f"partitions must be in [0, {count}), got {numbers}")
    return [_array.boolean_mask(data, numbers == i) for i in range(count)]


def dynamic_stitch(indices: Sequence[TensorLike], data: Sequence[TensorLike], name: str | None = None) -> Tensor:
    """One tensor of several: ``data[i][j]`` goes to row ``indices[i][j]``; of several for one row the last wins.

    Raises:
      InvalidArgumentError: the shapes do not fit, or an index is negative.
      TypeError: under jit, where the number of rows is not known.
    """
    places = [host(integers("dynamic_stitch", x), "indices") for x in indices]
    arrays = arrays_of(*data)
    for place, values in zip(places, arrays, strict=True):
        if values.shape[: place.ndim] != place.shape:
            raise InvalidArgumentError(f"data of shape {values.shape} must begin with indices' shape {place.shape}")
    order = np.concatenate([place.ravel() for place in places])
    if order.size and order.min() < 0:
        raise InvalidArgumentError(f"indices must not be negative, got {order.min()}")
    length = int(order.max()) + 1 if order.size else 0
    last = np.full(length, -1, np.int32)  # which row of all goes where; none leaves zeros
    last[order] = np.arange(order.size)
    return op(_dynamic_stitch, raw(last), *arrays, ranks=tuple(place.ndim for place in places))


def _dynamic_stitch(which, *arrays, ranks):
    rows = jnp.concatenate([x.reshape(-1, *x.shape[rank:]) for x, rank in zip(arrays, ranks, strict=True)])
    return jnp.take(rows, jnp.where(which < 0, len(rows), which), 0, mode="fill", fill_value=0)


# ---- Blocks into the batch ---------------------------------------------------------------------------------


def _blocks(argument: str, block_shape: IntsLike, pairs: IntsLike, array: Array) -> tuple[tuple[int, ...], tuple]:
    sizes = (block_shape,) * 2 if isinstance(block_shape, int) else shape_of(block_shape, "block_shape")
    widths = static(pairs, argument)
    if min(sizes, default=1) < 1:
        raise InvalidArgumentError(f"block_shape must be at least 1, got {sizes}")
    if np.shape(widths) != ((len(sizes), 2) if sizes else (0,)) or array.ndim <= len(sizes):
        raise InvalidArgumentError(
            f"{argument} must have shape ({len(sizes)}, 2), got {np.shape(widths)}, and input more than {len(sizes)} axes"
        )
    return sizes, widths


@operation("input")
def space_to_batch(input, block_shape, paddings):
    """Blocks of `block_shape` places of the axes after the first, which are padded before, moved into the batch."""
    sizes, widths = _blocks("paddings", block_shape, paddings, input)
    lengths = [n + sum(pair) for n, pair in zip(input.shape[1:], widths, strict=False)]
    if any(length % size for length, size in zip(lengths, sizes, strict=True)):
        raise InvalidArgumentError(f"padded sizes {lengths} are no multiples of block_shape {sizes}")
    n = len(sizes)
    x = jnp.pad(input, [(0, 0), *widths, *[(0, 0)] * (input.ndim - 1 - n)])
    batch, rest = x.shape[0], x.shape[1 + n :]
    parts = [m for length, size in zip(x.shape[1:], sizes, strict=False) for m in (length // size, size)]
    x = x.reshape(batch, *parts, *rest)
    order = [*range(2, 2 * n + 1, 2), 0, *range(1, 2 * n, 2), *range(2 * n + 1, x.ndim)]
    return x.transpose(order).reshape(batch * int(np.prod(sizes)), *parts[::2], *rest)


@operation("input")
def batch_to_space(input, block_shape, crops):
    """The inverse of `space_to_batch`: parts of the batch moved into blocks, and the edges cropped."""
    sizes, crops = _blocks("crops", block_shape, crops, input)
    if input.shape[0] % int(np.prod(sizes)):
        raise InvalidArgumentError(f"a batch of {input.shape[0]} is no multiple of the product of block_shape {sizes}")
    n = len(sizes)
    batch, inner, rest = input.shape[0] // int(np.prod(sizes)), input.shape[1 : 1 + n], input.shape[1 + n :]
    x = input.reshape(*sizes, batch, *inner, *rest)
    order = [n, *[axis for i in range(n) for axis in (n + 1 + i, i)], *range(2 * n + 1, x.ndim)]
    x = x.transpose(order).reshape(batch, *[a * b for a, b in zip(inner, sizes, strict=True)], *rest)
    cut = [slice(start, length - end) for (start, end), length in zip(crops, x.shape[1:], strict=False)]
    return x[(slice(None), *cut)]
