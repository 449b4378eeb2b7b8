"""Making, shaping, cutting, joining and looking up tensors."""

from __future__ import annotations

import builtins
import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding

from ...jaxprs.fence import ConcreteArray, Tracer
from ...jaxprs.types import Value
from ..values import reading
from ..values.connected import zero_gradient
from ..values.conversion import is_array_like, raw
from ..values.dtypes import TensorShape, as_dtype, as_shape, narrowed, requested
from ..values.errors import InvalidArgumentError
from ..values.operations import arrays_of, op, operands
from ..values.tensor import Tensor
from ..values.types import Array, AxisLike, DTypeLike, Ignored, Index, IntLike, IntsLike, ShapeLike, TensorLike
from ..values.variable import Variable
from .indexed_slices import IndexedSlices
from .sizes import joined, sized
from .table import (
    BOOL,
    INTEGER,
    REAL,
    Sparse,
    axes_of,
    axis_of,
    host,
    integers,
    kind_of,
    known,
    mask_as,
    operation,
    renamed,
    require_kind,
    shape_of,
    static,
    whole,
    wide,
)

newaxis = None

# ---- Making ------------------------------------------------------------------------------------------------


def _fill(value, shape, dtype):
    return jnp.broadcast_to(jnp.asarray(value, dtype), shape)


def zeros(shape: ShapeLike, dtype: DTypeLike = "float32", name: str | None = None, layout: Ignored = None) -> Tensor:
    """A tensor of zeros.

    >>> import tapejax as tf
    >>> tf.zeros([2])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0., 0.], dtype=float32)>
    """
    return op(jnp.zeros, shape=shape_of(shape), dtype=requested(dtype))


def ones(shape: ShapeLike, dtype: DTypeLike = "float32", name: str | None = None, layout: Ignored = None) -> Tensor:
    """A tensor of ones."""
    return op(jnp.ones, shape=shape_of(shape), dtype=requested(dtype))


def _like(full: Callable, like: Callable) -> Callable:
    def public(
        input: TensorLike, dtype: DTypeLike | None = None, name: str | None = None, layout: Ignored = None
    ) -> Tensor:
        array = raw(input)
        if (
            type(array) is ConcreteArray and type(array.sharding) is NamedSharding
        ):  # a compiled constant would be on one device
            return Tensor(like(array, None if dtype is None else requested(dtype)))
        if dtype is None or requested(dtype) == array.dtype:
            return op(like, array)  # computed from `input`, so the gradient is zeros, not None, as in TensorFlow
        return op(full, shape=array.shape, dtype=requested(dtype))

    public.__doc__ = f"{full.__name__.capitalize()} of the shape of `input`, and of its dtype unless another is given."
    return renamed(like.__name__, public)


zeros_like, ones_like = _like(jnp.zeros, jnp.zeros_like), _like(jnp.ones, jnp.ones_like)


def fill(dims: ShapeLike, value: TensorLike, name: str | None = None, layout: Ignored = None) -> Tensor:
    """A tensor of shape `dims` with the scalar `value` everywhere; the gradient reaches `value`."""
    value = raw(value)
    if value.ndim:
        raise InvalidArgumentError(f"fill: value must be a scalar, got shape {value.shape}")
    return op(_fill, value, shape=shape_of(dims, "dims"), dtype=value.dtype)


def eye(num_rows, num_columns=None, batch_shape=None, dtype="float32", name=None) -> Tensor:
    """An identity matrix, or a batch of them."""
    columns = None if num_columns is None else int(whole(num_columns, "num_columns"))
    batch = () if batch_shape is None else shape_of(batch_shape, "batch_shape")
    return op(_eye, rows=int(whole(num_rows, "num_rows")), columns=columns, batch=batch, dtype=requested(dtype))


def _eye(rows, columns, batch, dtype):
    matrix = mask_as(dtype, jnp.eye(rows, columns, dtype=bool))
    return jnp.broadcast_to(matrix, batch + matrix.shape)


def range(start: TensorLike, limit: TensorLike = None, delta: TensorLike = 1, dtype=None, name="range") -> Tensor:
    """The numbers from `start` up to, not including, `limit` in steps of `delta`.

    ``range(limit)`` begins with 0. The dtype is the widest of the arguments'.

    Raises:
      InvalidArgumentError: `delta` is 0, or leads away from `limit`.
    """
    if limit is None:
        start, limit = 0, start
    ends = (start, "start"), (limit, "limit"), (delta, "delta")
    exact = None if dtype is None else as_dtype(dtype).dtype
    values = [_range_end(value, argument, exact) for value, argument in ends]
    widest = max((value.dtype for value in values), key=lambda d: (kind_of(d) == "f", d.itemsize))
    common = widest if exact is None else exact
    if kind_of(common) not in REAL:
        raise TypeError(f"range: the numbers must be real, got {common}")
    begin, end, step = (value.astype(common)[()] for value in values)
    if step == 0:
        raise InvalidArgumentError("range: delta must not be 0")
    if (begin > end) if step > 0 else (begin < end):
        raise InvalidArgumentError(f"range: delta={step} does not lead from start={begin} to limit={end}")
    if kind_of(common) == "f":  # counted and computed in the dtype itself, as TensorFlow does
        count = np.ceil(abs((end - begin) / step))
    else:  # Python's integers: the difference of two of NumPy's may overflow
        count = len(builtins.range(int(begin), int(end), int(step)))
    numbers = begin + np.arange(count).astype(common) * step
    return Tensor(raw(numbers.astype(narrowed(common) if dtype is None else requested(dtype))))


def _range_end(value: TensorLike, argument: str, exact: np.dtype | None) -> np.ndarray:
    if exact is None or type(value) not in (int, float):
        too_large = type(value) is int and not -(2**31) <= value < 2**31
        return host(raw(value) if too_large else value, argument)
    if type(value) is float and kind_of(exact) in INTEGER:
        raise TypeError(f"range: {argument}={value} does not fit dtype {exact}")
    return np.asarray(value, exact)


def linspace(start: TensorLike, stop: TensorLike, num: IntLike, name: str | None = None, axis: int = 0) -> Tensor:
    """`num` evenly spaced values from `start` to `stop`, both included, along a new axis.

    Integers give float64 (float32 while ``jax_enable_x64`` is off), those of 8 and 16 bits float32.
    """
    first, last = arrays_of(start, stop)
    dtype = first.dtype if kind_of(first.dtype) in "fc" else wide("float32" if first.dtype.itemsize < 4 else "float64")
    return op(_linspace, first, last, num=int(whole(num, "num")), axis=int(whole(axis)), dtype=dtype)


@zero_gradient  # a single value does not depend on `stop`
def _linspace(start, stop, num, axis, dtype):
    return jnp.linspace(start, stop, num, axis=axis, dtype=dtype)


def identity(input: TensorLike, name: str | None = None) -> Tensor:
    """A new tensor with the value of `input`; the gradient passes."""
    if isinstance(input, Sparse):
        return input.with_values(identity(input.values))  # type: ignore[return-value]
    return op(_identity, raw(input))


def _identity(input):
    return jnp.copy(input)


def stop_gradient(input: TensorLike, name: str | None = None) -> Tensor:
    """The value of `input`, without what it was computed from: no gradient passes."""
    if isinstance(input, Sparse):
        return input.with_values(stop_gradient(input.values))  # type: ignore[return-value]
    return op(lax.stop_gradient, raw(input))


def cast(x: TensorLike, dtype: DTypeLike, name: str | None = None) -> TensorLike:
    """`x` in another dtype; `x` itself where it has that dtype.

    Floats are cut to integers, complex numbers to their real part.

    Raises:
      TypeError: `dtype` is not a dtype.

    >>> import tapejax as tf
    >>> print(tf.cast([1.8, -1.8], tf.int32))
    tf.Tensor([ 1 -1], shape=(2,), dtype=int32)
    """
    if isinstance(x, (IndexedSlices, Sparse)):
        return x.with_values(cast(x.values, dtype))
    wanted = requested(dtype)
    if isinstance(x, Variable) and x.dtype == as_dtype(dtype):
        return x
    array = raw(x)
    if array.dtype == wanted:
        return x if type(x) is Tensor else Tensor(array)
    return op(_cast, array, dtype=wanted)


def _cast(x, dtype):
    if jnp.iscomplexobj(x) and kind_of(dtype) != "c":  # also to bool, as in TensorFlow
        x = jnp.real(x)
    return mask_as(dtype, x) if x.dtype == bool else x.astype(dtype)


@operation("value")
@zero_gradient  # of no elements: JAX takes it for a constant
def saturate_cast(value, dtype):
    """`value` in another dtype, what lies outside its range moved to the limits; the parts of complex numbers each."""
    if "b" in (kind_of(value.dtype), kind_of(dtype)):
        raise TypeError(f"saturate_cast: bool has no limits, got {value.dtype} and {np.dtype(dtype)}")
    if jnp.iscomplexobj(value):
        if value.dtype == dtype:
            return value
        if kind_of(dtype) != "c":
            return _saturated(value.real, dtype)
        return _saturated(value.real, dtype) + 1j * _saturated(value.imag, dtype).real
    return _saturated(value, dtype)


def _saturated(value, dtype):
    (low, high), (least, most) = map(_limits, (value.dtype, dtype))
    exact = type(low)
    limits = np.array([exact(max(low, least)), exact(min(high, most))], value.dtype)
    # float32 has no 2147483647, it becomes 2147483648, which int32 has not: the limit is the number before it.
    limits = [x if least <= exact(x) <= most else np.nextafter(x, np.zeros_like(x)) for x in limits]
    low, high = limits  # at a limit the gradient still passes
    return jnp.where(value < low, low, jnp.where(value > high, high, value)).astype(dtype)


def _limits(dtype):
    whole = kind_of(dtype) in "iu"
    info = jnp.iinfo(dtype) if whole else jnp.finfo(dtype)
    return (int(info.min), int(info.max)) if whole else (float(info.min), float(info.max))


def complex(real: TensorLike, imag: TensorLike, name: str | None = None) -> Tensor:
    """A complex tensor of its real and imaginary part, both float32 or both float64.

    Raises:
      TypeError: the parts are of other or of different dtypes.
    """
    parts = raw(real), raw(imag)
    if parts[0].dtype != parts[1].dtype or kind_of(parts[0].dtype) != "f" or parts[0].dtype.itemsize < 4:
        dtypes = f"{parts[0].dtype} and {parts[1].dtype}"
        raise TypeError(f"real and imag must both be float32 or float64, got {dtypes}: use tf.cast")
    return op(_complex, *parts)


def _complex(real, imag):
    return lax.complex(*jnp.broadcast_arrays(real, imag))


def one_hot(indices, depth, on_value=None, off_value=None, axis=None, dtype=None, name=None) -> Tensor:
    """`on_value` (1) where the new axis' position equals the index, `off_value` (0) elsewhere.

    Args:
      indices: integers; one outside of [0, depth) gives a row of `off_value`.
      depth: the length of the new axis.
      axis: where the new axis goes; the last by default.
      dtype: by default the dtype of the values, or float32.
    """
    values = [None if value is None else raw(value, dtype_hint=dtype) for value in (on_value, off_value)]
    dtypes = [value.dtype for value in values if value is not None]
    if len(set(dtypes)) > 1:
        raise TypeError(f"on_value is {dtypes[0]}, but off_value {dtypes[1]}: they must have one dtype")
    wanted = requested(dtype) if dtype is not None else dtypes[0] if dtypes else np.dtype("float32")
    if dtypes and dtypes[0] != wanted:
        raise TypeError(f"on_value and off_value are {dtypes[0]}, but dtype={wanted} was asked for")
    pairs = zip(values, (1, 0), strict=True) if dtypes else ()
    values = [raw(default, wanted) if value is None else value for value, default in pairs]
    array = raw(indices, dtype_hint="int32")
    require_kind("one_hot", array, INTEGER, "indices")
    axis = -1 if axis is None else int(whole(axis, "axis"))
    if not -1 <= axis <= array.ndim:
        raise InvalidArgumentError(f"one_hot: axis={axis} is out of range: indices of rank {array.ndim}")
    length = int(whole(depth, "depth"))
    if length < 0:
        raise InvalidArgumentError(f"one_hot: depth={length} is negative")
    return op(_one_hot, array, *values, depth=length, axis=axis, dtype=wanted)


def _one_hot(indices, *values, depth, axis, dtype):
    axis = axis % (indices.ndim + 1)
    positions = jnp.arange(depth, dtype=jnp.result_type(indices, jnp.int32))
    positions = positions.reshape([-1 if i == axis else 1 for i in np.arange(indices.ndim + 1)])
    # TensorFlow gives the values no gradient.
    on, off = map(lax.stop_gradient, values or (jnp.ones((), dtype), jnp.zeros((), dtype)))
    return jnp.where(jnp.expand_dims(indices, axis) == positions, on, off)


def sequence_mask(
    lengths: TensorLike, maxlen: IntLike | None = None, dtype: DTypeLike = "bool", name: str | None = None
) -> Tensor:
    """True for the first ``lengths[i]`` of `maxlen` places (by default the largest length)."""
    array = raw(lengths)
    require_kind("sequence_mask", array, "biuf", "lengths")
    if maxlen is None:
        values = host(lengths, "lengths")
        maxlen = max(int(values.max()), 0) if values.size else 0
    length = int(static(maxlen, "maxlen"))
    if length < 0:
        raise InvalidArgumentError(f"sequence_mask: maxlen={length} is negative")
    return op(_sequence_mask, array, maxlen=length, dtype=requested(dtype))


def _sequence_mask(lengths, maxlen, dtype):
    return mask_as(dtype, jnp.arange(maxlen) < lengths.astype(jnp.int32)[..., None])


# ---- What is known of a tensor -----------------------------------------------------------------------------


def shape(input: TensorLike, out_type: DTypeLike | None = None, name: str | None = None) -> Tensor:
    """The shape as an int32 tensor."""
    return sized(_shape(input), requested(out_type or "int32"))


def size(input: TensorLike, out_type: DTypeLike | None = None, name: str | None = None) -> Tensor:
    """The number of elements as an int32 tensor."""
    return sized(math.prod(_shape(input)), requested(out_type or "int32"))


def rank(input: TensorLike, name: str | None = None) -> Tensor:
    """The number of axes as an int32 tensor."""
    return sized(len(_shape(input)), "int32")


def _shape(x: TensorLike) -> tuple[Any, ...]:
    return x._sizes if isinstance(x, Sparse) else raw(x).shape


def shape_n(input: Sequence[TensorLike], out_type: DTypeLike = "int32", name: str | None = None) -> list[Tensor]:
    """The shapes of several tensors."""
    return [shape(one, out_type) for one in input]


def broadcast_static_shape(shape_x: ShapeLike, shape_y: ShapeLike) -> TensorShape:
    """The shape to which two shapes broadcast. Raises ValueError if they do not."""
    return TensorShape(np.broadcast_shapes(tuple(as_shape(shape_x)), tuple(as_shape(shape_y))))


def broadcast_dynamic_shape(shape_x: TensorLike, shape_y: TensorLike) -> Tensor:
    """The shape to which two shapes broadcast, as a tensor."""
    return sized(np.broadcast_shapes(shape_of(shape_x), shape_of(shape_y)), "int32")


def ensure_shape(x: TensorLike, shape: ShapeLike, name: str | None = None) -> Tensor:
    """`x`, if it has the shape given (None stands for any size). Raises InvalidArgumentError if not."""
    array = raw(x)
    if not as_shape(shape).is_compatible_with(array.shape):
        raise InvalidArgumentError(f"ensure_shape: x has shape {array.shape}, expected {as_shape(shape)}")
    return identity(array)


# ---- Shaping -----------------------------------------------------------------------------------------------


def _product(sizes: Sequence[int]) -> int:
    """That of the sizes but 0 and -1: what TensorFlow computes the missing size of nothing from."""
    return math.prod(size for size in sizes if size not in (0, -1))


def reshape(tensor: TensorLike, shape: ShapeLike, name: str | None = None) -> Tensor:
    """The same elements in another shape; one size may be -1 and is then computed.

    Raises:
      InvalidArgumentError: the number of elements differs.
    """
    array = raw(tensor)
    sizes = shape_of(shape)
    rest = math.prod(size for size in sizes if size != -1)
    if sizes.count(-1) == 1:
        missing = array.size // rest if rest != 0 else _product(array.shape) // _product(sizes)
        sizes = tuple(missing if size == -1 else size for size in sizes)
    return op(lax.reshape, array, new_sizes=sizes)


@operation("a")
def transpose(a, perm: IntsLike | None = None, conjugate: bool = False):
    """The axes in the order `perm`, by default reversed.

    Raises:
      InvalidArgumentError: `perm` is not a permutation of the axes.
    """
    turned = jnp.transpose(a, perm)  # type: ignore[arg-type]  # here it is a tuple
    return jnp.conj(turned) if conjugate else turned


def expand_dims(input: TensorLike, axis: IntLike, name: str | None = None) -> Tensor:
    """An axis of length 1 put in before `axis`; -1 puts it last."""
    array = raw(input)
    return op(lax.expand_dims, array, dimensions=(axis_of(_only(axis), array.ndim + 1),))


def _only(axis: IntLike | IntsLike) -> IntLike:
    """An axis that may stand in a list, as these two functions of TensorFlow's take it."""
    if type(axis) is int:
        return axis
    axes = np.ravel(whole(axis, "axis"))
    if axes.size != 1:
        raise InvalidArgumentError(f"axis must be one number, got {axis!r}")
    return axes[0]


def squeeze(input: TensorLike, axis: AxisLike | None = None, name: str | None = None) -> Tensor:
    """Axes of length 1 left out: those in `axis`, or all.

    Raises:
      InvalidArgumentError: an axis in `axis` is of another length.
    """
    array = raw(input)
    if axis is None or axis == [] or axis == ():
        axes = tuple(i for i, length in enumerate(array.shape) if length == 1)
    else:
        axes = axes_of(axis, array.ndim)
    return op(lax.squeeze, array, dimensions=axes)


def broadcast_to(input: TensorLike, shape: ShapeLike, name: str | None = None) -> Tensor:
    """`input` repeated to `shape`. Raises InvalidArgumentError if it does not broadcast to that."""
    return op(jnp.broadcast_to, raw(input), shape=shape_of(shape))


def tile(input: TensorLike, multiples: IntsLike, name: str | None = None) -> Tensor:
    """`input` repeated ``multiples[i]`` times along axis i."""
    array = raw(input)
    counts = whole(multiples, "multiples")
    if not isinstance(counts, tuple) or len(counts) != array.ndim:
        raise InvalidArgumentError(f"tile: multiples must have a number per axis of {array.shape}, got {multiples!r}")
    return op(jnp.tile, array, reps=counts)


@operation("input")
@zero_gradient  # of no elements: JAX takes it for a constant
def repeat(input, repeats: IntsLike, axis: IntLike | None = None):
    """Every element (of the flattened input, or along `axis`) repeated; `repeats` is a number or one per element."""
    x, axis = (input.reshape(-1), 0) if axis is None else (input, axis_of(axis, input.ndim))
    if isinstance(repeats, tuple) and len(repeats) not in (1, x.shape[axis]):
        raise ValueError(f"repeat: {len(repeats)} repeats for an axis of length {x.shape[axis]}")
    return jnp.repeat(x, np.asarray(repeats), axis)


def pad(tensor: TensorLike, paddings, mode="CONSTANT", constant_values: TensorLike = 0, name=None) -> Tensor:
    """Adds ``paddings[i] = (before, after)`` elements to axis i: `constant_values`, or the mirrored tensor.

    Args:
      mode: 'CONSTANT', 'REFLECT' (the edge is not repeated) or 'SYMMETRIC' (it is).

    Raises:
      ValueError: an unknown `mode`.
      InvalidArgumentError: `paddings` is not of shape (rank, 2), or negative.
    """
    array = raw(tensor)
    widths = whole(paddings, "paddings")
    if mode.upper() not in ("CONSTANT", "REFLECT", "SYMMETRIC"):
        raise ValueError(f"mode must be 'CONSTANT', 'REFLECT' or 'SYMMETRIC', got {mode!r}")
    if np.shape(widths) != (array.ndim, 2) and not array.ndim == 0 == np.size(widths):
        raise InvalidArgumentError(f"pad: paddings must be of shape ({array.ndim}, 2), got {np.shape(widths)}")
    if min(map(min, widths), default=0) < 0:
        raise InvalidArgumentError(f"pad: paddings must not be negative, got {widths}")
    if mode.upper() == "CONSTANT":
        zero = not is_array_like(constant_values) and constant_values == 0  # fits every dtype
        value = raw(np.zeros((), array.dtype)) if zero else arrays_of(array, constant_values)[1]
        return op(_pad, array, value, widths=widths)
    most = 1 if mode.upper() == "REFLECT" else 0
    for pair, length in zip(widths, array.shape, strict=True):
        if max(pair) > length - most:
            limit = "less than" if most else "no greater than"
            raise InvalidArgumentError(f"pad: paddings must be {limit} the dimension size: {pair}, {length}")
    return op(jnp.pad, array, pad_width=widths, mode=mode.lower())


def _pad(x, value, widths):
    return lax.pad(x, value, [(before, after, 0) for before, after in widths])


@operation("tensor")
def reverse(tensor, axis):
    """The order of elements along the axes in `axis` turned round."""
    return lax.rev(tensor, axes_of(axis, tensor.ndim))


def roll(input: TensorLike, shift: IntsLike, axis: AxisLike, name: str | None = None) -> Tensor:
    """Elements moved by `shift` places along `axis`; what leaves at one end comes in at the other.

    Raises:
      InvalidArgumentError: `shift` and `axis` are not both numbers, or lists of one length.
    """
    places, axes = integers("roll", shift, "shift"), whole(axis, "axis")
    if axes is None or places.shape != np.shape(axes):
        raise InvalidArgumentError(f"roll: shift and axis must have the same shape, got {shift} and {axes}")
    if (values := known(places)) is None:
        return op(jnp.roll, raw(input), places, axis=axes)
    return op(jnp.roll, raw(input), shift=static(values), axis=axes)


# ---- Joining and cutting -----------------------------------------------------------------------------------


def _list_of(name: str, values: Sequence[TensorLike]) -> list:
    if not len(values):
        raise InvalidArgumentError(f"{name}: values must hold at least one tensor")
    return arrays_of(*values)


def concat(values: Sequence[TensorLike], axis: IntLike, name: str = "concat") -> Tensor:
    """Tensors joined along an axis they have.

    Raises:
      InvalidArgumentError: ranks, other sizes or dtypes differ.
    """
    values = values if isinstance(values, (list, tuple)) else [values]
    if (sizes := joined(values, axis, np.concatenate)) is not None:
        return sizes
    arrays = _list_of("concat", values)
    return op(_concat, *arrays, axis=axis_of(_only(axis), arrays[0].ndim))


def _concat(*arrays, axis):
    return lax.concatenate(arrays, axis)


def stack(values: Sequence[TensorLike], axis: IntLike = 0, name: str = "stack") -> Tensor:
    """Tensors of one shape joined along a new axis."""
    if isinstance(values, (list, tuple)):
        if (sizes := joined(values, axis, np.stack)) is not None:
            return sizes
        if len(values) and type(axis) is int and axis == 0 and not any(map(is_array_like, values)):
            with contextlib.suppress(TypeError, ValueError):
                return Tensor(raw(values))  # one literal in TensorFlow, too: NumPy's integers are int32 if they fit
    arrays = _list_of("stack", values)
    return op(_stack, *arrays, axis=_value_axis(axis, arrays[0].ndim + 1))


def _value_axis(axis: IntLike, rank: int) -> int:
    """`axis_of`, for the two functions that raise ValueError."""
    try:
        return axis_of(axis, rank)
    except InvalidArgumentError as error:
        raise ValueError(str(error)) from None


def _stack(*arrays, axis):
    return jnp.stack(arrays, axis)


def unstack(value: TensorLike, num: IntLike | None = None, axis: IntLike = 0, name: str = "unstack") -> list[Tensor]:
    """The parts along an axis, as a list of tensors without that axis.

    Raises:
      InvalidArgumentError: `num` is not the number of parts.
    """
    array = raw(value)
    axis = _value_axis(axis, array.ndim)
    if num is not None and int(num) != array.shape[axis]:
        raise InvalidArgumentError(f"unstack: num={num}, but axis {axis} of shape {array.shape} has another length")
    return list(op(jnp.unstack, array, axis=axis)) if array.shape[axis] else []


def split(value: TensorLike, num_or_size_splits, axis=0, num=None, name="split") -> list[Tensor]:
    """Cuts along an axis into that number of equal parts, or into parts of the given sizes; one size may be -1.

    Raises:
      InvalidArgumentError: the sizes do not add up to the length of the axis, or are not `num`.
    """
    array = raw(value)
    axis = axis_of(axis, array.ndim)
    length = array.shape[axis]
    sizes = whole(num_or_size_splits, "num_or_size_splits")
    if not isinstance(sizes, tuple):
        if sizes < 1 or length % sizes:
            raise InvalidArgumentError(f"split: an axis of length {length} cannot be split into {sizes} equal parts")
        sizes = (length // sizes,) * sizes
    elif num is not None and num != len(sizes):
        raise InvalidArgumentError(f"split: num is {num}, but there are {len(sizes)} sizes")
    rest = length - sum(size for size in sizes if size != -1)
    sizes = tuple(rest if size == -1 else size for size in sizes)
    if min(sizes, default=0) < 0 or sum(sizes) != length:
        raise InvalidArgumentError(f"split: sizes {num_or_size_splits} do not add up to the axis' length {length}")
    return op(lax.split, array, sizes=sizes, axis=axis)


def meshgrid(*args: TensorLike, indexing: str = "xy", name: str = "meshgrid") -> list[Tensor]:
    """Grids of coordinates out of vectors: 'xy' (the second varies along the first axis) or 'ij'. Matrices are flattened."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing must be 'xy' or 'ij', got {indexing!r}")
    return op(_meshgrid, *[raw(arg) for arg in args], indexing=indexing)


def _meshgrid(*arrays, indexing):
    return list(jnp.meshgrid(*[x.reshape(-1) for x in arrays], indexing=indexing))


# ---- Indexing ----------------------------------------------------------------------------------------------


def getitem(x: TensorLike, index: Index) -> Tensor:
    """``x[index]`` for numbers, slices, ``...``, None, scalar integer tensors, and one mask of bools.

    Raises:
      InvalidArgumentError: an index is out of range, or there are too many.
      TypeError: an index is of another kind: TensorFlow has `gather` for lists of indices.
    """
    array = raw(x)
    if _is_bool(index):
        return boolean_mask(x, index)
    # TensorFlow takes a list for a tuple: x[[0, 2]] is x[0, 2].
    index = tuple(index) if isinstance(index, (tuple, list)) else (index,)
    plan, starts = _plan(index, array.shape)
    if plan == ():
        return identity(array)
    return op(_getitem, array, *starts, plan=plan)


def _is_array(value: object) -> bool:
    return hasattr(value, "dtype") and hasattr(value, "shape")


def _plan(index: tuple, shape: tuple[int, ...]) -> tuple[tuple, list]:
    """What to do with each axis, as static data, and where each cut begins: numbers that force no new program."""
    if sum(item is Ellipsis for item in index) > 1:
        raise InvalidArgumentError(f"Multiple ellipses in an index are not allowed: {index!r}")
    used = sum(item is not None and item is not Ellipsis for item in index)
    if used > len(shape):
        raise InvalidArgumentError(f"Index out of range: {used} indices for a tensor of shape {shape}")
    if Ellipsis not in [item if item is Ellipsis else 0 for item in index]:
        index = (*index, Ellipsis)
    plan: list[tuple] = []
    starts: list[Value] = []
    axis = 0
    for item in index:
        if item is None:
            plan.append(("new",))
        elif item is Ellipsis:
            plan.extend([("all",)] * (len(shape) - used))
            axis += len(shape) - used
        elif isinstance(item, slice):
            entry, start = _plan_slice(item, shape[axis], axis)
            plan.append(entry)
            starts.extend(start)
            axis += 1
        else:
            plan.append(("at",))
            starts.append(_position(item, shape[axis], axis))
            axis += 1
    return (() if all(entry == ("all",) for entry in plan) else tuple(plan)), starts


def _plan_slice(item: slice, length: int, axis: int) -> tuple[tuple, list]:
    bounds = [None if bound is None else _bound(bound) for bound in (item.start, item.stop, item.step)]
    if bounds[2] == 0:
        raise InvalidArgumentError(f"strides[{axis}] must be non-zero")
    if not isinstance(length, int):
        return _plan_symbolic(bounds, length, axis)
    start, stop, step = slice(*bounds).indices(length)
    count = len(builtins.range(start, stop, step))
    if count == length and step == 1:
        return ("all",), []
    return ("cut", count, step), [start if step > 0 else start + (count - 1) * step] if count else [0]


def _plan_symbolic(bounds: Sequence[int | None], length: Value, axis: int) -> tuple[tuple, list]:
    """The slice of an axis that is as long as a batch whose size is not known."""
    start, stop, step = bounds
    if step not in (None, 1) or stop is not None and stop >= 0:
        raise InvalidArgumentError(
            f"dimension {axis} has the unknown length {length}: its slice must have step 1 and no stop counted from the front, "
            f"got {slice(*bounds)}"
        )
    if not start and stop is None:
        return ("all",), []
    begin = 0 if start is None else start if start >= 0 else length + start
    return ("cut", (length if stop is None else length + stop) - begin, 1), [begin]


def _bound(bound: IntLike) -> int:
    if type(bound) is int:  # of any size
        return bound
    value = host(bound, "a slice bound")
    require_kind("slicing", value, INTEGER, "a bound")
    return int(value)


def _is_bool(x: TensorLike) -> bool:
    return isinstance(x, (bool, np.bool_)) or (_is_array(x) and x.dtype == bool)


def _position(item: TensorLike, length: int, axis: int) -> Value:
    """A number index as a start: checked when its value is known, else wrapped and clamped."""
    refused = _is_bool(item)
    if refused and not np.ndim(item):
        raise InvalidArgumentError(f"a bool index cannot be combined with others, or be in a list: {item!r}")
    number = isinstance(item, (int, np.integer))
    if refused or not (number or (_is_array(item) and not np.ndim(item) and kind_of(static(item.dtype)) in "iu")):
        raise TypeError(
            "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`), scalar integer tensors and one mask "
            f"of bools are valid indices: use tf.gather for lists of indices. Got {item!r}"
        )
    if not number:
        item = raw(item)
        if isinstance(item, Tracer) or known(item) is None:
            return op(_wrapped, item, length)._array
        reading.record_escape("static", item)
    value = int(item if number else np.asarray(item))
    if not -length <= value < length:
        raise InvalidArgumentError(f"slice index {value} of dimension {axis} out of bounds (length {length})")
    # Counted from the front here: inside the program it would have to be computed.
    return value % length


def _wrapped(i, length):
    return jnp.where(i < 0, i + length, i)


def _getitem(x, *starts, plan):
    kind = jnp.result_type(*starts) if starts else np.dtype("int32")  # lax takes indices of one type
    begins = iter([x if jnp.result_type(x) == kind else lax.convert_element_type(x, kind) for x in starts])
    axes = [entry for entry in plan if entry != ("new",)]
    start, sizes, strides, flipped = [], [], [], []
    for axis, (entry, length) in enumerate(zip(axes, x.shape, strict=True)):
        count, step = {"all": (length, 1), "at": (1, 1)}.get(entry[0]) or entry[1:]
        start.append(kind.type(0) if entry == ("all",) else next(begins))
        sizes.append(count if abs(step) == 1 or not count else (count - 1) * abs(step) + 1)
        strides.append(abs(step))
        if step < 0:
            flipped.append(axis)
    out = lax.dynamic_slice(x, start, sizes)
    if any(stride != 1 for stride in strides):
        out = lax.slice(out, [0] * out.ndim, out.shape, strides)
    if flipped:
        out = lax.rev(out, flipped)
    left = iter(out.shape)
    shape = []
    for entry in plan:
        length = 1 if entry == ("new",) else next(left)
        if entry != ("at",):
            shape.append(length)
    return lax.reshape(out, shape)


def slice_(input_: TensorLike, begin: TensorLike, size: TensorLike, name: str | None = None) -> Tensor:
    """The part that begins at `begin` and has `size`; a size of -1 reaches to the end.

    Raises:
      InvalidArgumentError: the part does not lie within the tensor.
    """
    array = raw(input_)
    start, sizes = shape_of(begin, "begin"), shape_of(size, "size")
    if not len(start) == len(sizes) == array.ndim:
        raise InvalidArgumentError(f"slice: begin and size must have {array.ndim} elements, got {start} and {sizes}")
    sizes = tuple(length - b if s == -1 else s for b, s, length in zip(start, sizes, array.shape, strict=True))
    for axis, (b, s, length) in enumerate(zip(start, sizes, array.shape, strict=True)):
        if not (0 <= b <= length and 0 <= s <= length - b):
            raise InvalidArgumentError(f"slice: Expected size[{axis}] in [0, {length - b}], but got {s}, at begin {b}")
    return getitem(array, tuple(slice(b, b + s) for b, s in zip(start, sizes, strict=True)))


slice_.__name__ = slice_.__qualname__ = "slice"


def boolean_mask(
    tensor: TensorLike, mask: TensorLike, axis: IntLike | None = None, name: str = "boolean_mask"
) -> Tensor:
    """The parts of `tensor` where `mask`, which covers the axes from `axis` on, is true.

    Raises:
      ValueError: the mask is a scalar, or its shape is not that of the axes it covers.
      TypeError: under jit, where the number of parts is not known.
    """
    array = raw(tensor)
    chosen = host(mask, "mask")
    if chosen.ndim == 0:
        raise ValueError("mask cannot be scalar")
    axis = axis_of(0 if axis is None else axis, array.ndim)
    covered = array.shape[axis : axis + chosen.ndim]
    if covered != chosen.shape:
        raise ValueError(f"Shapes {covered} and {chosen.shape} are incompatible: mask must cover axes from {axis} on")
    places = raw(np.flatnonzero(chosen).astype(np.int32))
    return op(_boolean_mask, array, places, axis=axis, covers=chosen.ndim)


@zero_gradient  # of no parts: JAX takes it for a constant
def _boolean_mask(x, places, axis, covers):
    length = math.prod(x.shape[axis : axis + covers])
    x = x.reshape(*x.shape[:axis], length, *x.shape[axis + covers :])
    return jnp.take(x, places, axis, mode="clip")


def where(condition: TensorLike, x: TensorLike = None, y: TensorLike = None, name: str | None = None) -> Tensor:
    """x where `condition` is true, else y; with `condition` alone, the indices of its true elements.

    Raises:
      InvalidArgumentError: `condition` is not of dtype bool, or the shapes do not broadcast.
      ValueError: one of x and y is missing.
    """
    if isinstance(condition, (np.ndarray, np.generic)):  # TensorFlow converts NumPy's numbers to bool, but no tensor's
        condition = np.asarray(condition, bool)
    chosen = raw(condition)
    if x is None and y is None:
        return Tensor(raw(np.argwhere(host(condition, "condition")).astype(wide("int64"))))
    if x is None or y is None:
        raise ValueError("x and y must both be given, or neither")
    require_kind("where", chosen, BOOL, "condition")
    return op(jnp.where, chosen, *operands(x, y))


# ---- Looking up and scattering -----------------------------------------------------------------------------


def _require_within(name: str, indices: Array, length: int) -> None:
    values = known(indices)
    if values is None or not values.size or (0 <= values.min() and values.max() < length):
        return
    place = tuple(np.argwhere((values < 0) | (values >= length))[0].tolist())
    where = f"indices[{', '.join(map(str, place))}]" if place else "indices"
    raise InvalidArgumentError(f"{name}: {where} = {values[place]} is not in [0, {length})")


def gather(params, indices, validate_indices=None, axis=None, batch_dims=0, name=None) -> Tensor:
    """The parts of `params` along `axis` at `indices`; `batch_dims` leading axes of both go together.

    An index out of range raises on the CPU and gives zeros on the GPU and under jit, as in TensorFlow.

    Raises:
      InvalidArgumentError: an index is negative or too large, or is not an integer; the axes of `batch_dims` differ.
    """
    array, places = raw(params), integers("gather", indices)
    batch_dims = 0 if batch_dims is None else int(whole(batch_dims, "batch_dims"))
    axis = batch_dims if axis is None else whole(axis, "axis")  # so a negative one counts the axes of params here
    if axis == 0:
        batch_dims = 0  # TensorFlow ignores it here
    axis, batch_dims = axis_of(axis, array.ndim), batch_dims + (places.ndim if batch_dims < 0 else 0)
    if not 0 <= batch_dims <= min(places.ndim, axis) or array.shape[:batch_dims] != places.shape[:batch_dims]:
        shapes = f"params of shape {array.shape}, at axis {axis}, and indices of shape {places.shape}"
        raise InvalidArgumentError(f"gather: {shapes} have no {batch_dims} (batch_dims) leading axes in common")
    _require_within("gather", places, array.shape[axis])
    return op(_gather, array, places, axis=axis, batch_dims=batch_dims)


def _gather(params, indices, axis, batch_dims):
    if batch_dims:
        return jax.vmap(lambda p, i: _gather(p, i, axis - 1, batch_dims - 1))(params, indices)
    return _taken(params, indices[..., None], (axis,))


def _taken(params, indices, axes):
    """The parts of `params` at the rows of `indices` into `axes`, which lie side by side.

    Zeros for an index that is out of range: jnp would count a negative one from the end.
    """
    if 0 in [params.shape[axis] for axis in axes]:  # lax takes no row of an axis without any, not even none
        widths = [(0, int(axis in axes), 0) for axis in builtins.range(params.ndim)]
        params = lax.pad(params, jnp.zeros((), params.dtype), widths)
    before, batch = min(axes, default=0), indices.ndim - 1
    kept = [axis for axis in builtins.range(params.ndim) if axis not in axes]
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(axis if axis < before else axis - len(axes) + batch for axis in kept),
        collapsed_slice_dims=axes,
        start_index_map=axes,
    )
    sizes = [length if axis in kept else 1 for axis, length in enumerate(params.shape)]
    return lax.gather(params, _wide_enough(indices), numbers, sizes, mode="fill", fill_value=0)


def _wide_enough(indices):
    return indices if indices.dtype.itemsize >= 4 else indices.astype(jnp.int32)  # lax compares them with the lengths


def _scattered(scatter, array, indices, updates):
    """`array` with `updates` put in by `scatter` at the rows of `indices` into its leading axes; none where out of range."""
    depth, batch = indices.shape[-1], indices.ndim - 1
    axes = tuple(builtins.range(depth))
    windows = tuple(builtins.range(batch, updates.ndim))
    numbers = lax.ScatterDimensionNumbers(windows, inserted_window_dims=axes, scatter_dims_to_operand_dims=axes)
    return scatter(array, _wide_enough(indices), updates, numbers, mode="fill")


def _require_updates(name: str, updates: Array, indices: Array, shape: tuple[int, ...]) -> None:
    if indices.shape[-1] == 0 and math.prod(shape):  # an empty tensor has no updates
        raise InvalidArgumentError(f"{name}: indices has rows of length 0: each row must index an axis")
    wanted = (*indices.shape[:-1], *shape[indices.shape[-1] :])
    if updates.shape != wanted:
        raise InvalidArgumentError(f"{name}: updates must have shape {wanted}, got {updates.shape}")


def _require_nd_within(name: str, indices: Array, shape: tuple[int, ...], policy: str = "") -> None:
    depth = indices.shape[-1] if indices.ndim else 0
    if depth > len(shape):
        raise InvalidArgumentError(f"{name}: indices has rows of length {depth}, but there are {len(shape)} axes")
    values = None if policy == "IGNORE" else known(indices)
    if values is None or not values.size:
        return
    wrong = ((values < 0) | (values >= np.asarray(shape[:depth]))).any(-1)
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0].tolist())
        index = values[place].tolist()
        raise InvalidArgumentError(f"{name}: indices{list(place)} = {index} does not index into shape {shape}")


def gather_nd(params: TensorLike, indices: TensorLike, batch_dims=0, name=None, bad_indices_policy="") -> Tensor:
    """The parts of `params` at `indices`, whose last axis is an index into the leading axes of `params`."""
    array, places = raw(params), integers("gather_nd", indices)
    batch_dims = int(whole(batch_dims, "batch_dims"))
    _require_nd_within("gather_nd", places, array.shape[batch_dims:], bad_indices_policy)
    return op(_gather_nd, array, places, batch_dims=batch_dims)


def _gather_nd(params, indices, batch_dims):
    if batch_dims:
        return jax.vmap(lambda p, i: _gather_nd(p, i, batch_dims - 1))(params, indices)
    if indices.shape[-1] == 0:  # all of it; of a scatter by no index, the gradient, XLA counts one row
        return jnp.broadcast_to(params, (*indices.shape[:-1], *params.shape))
    return _taken(params, indices, tuple(builtins.range(indices.shape[-1])))


def scatter_nd(indices: TensorLike, updates: TensorLike, shape, bad_indices_policy="", name=None) -> Tensor:
    """Zeros of `shape` with `updates` added at `indices`, whose last axis is an index."""
    places, values, sizes = integers("scatter_nd", indices), raw(updates), shape_of(shape)
    _require_nd_within("scatter_nd", places, sizes, bad_indices_policy)
    _require_updates("scatter_nd", values, places, sizes)
    return op(_scatter_nd, places, values, shape=sizes)


def _scatter_nd(indices, updates, shape):
    add = lax.scatter_max if updates.dtype == bool else lax.scatter_add
    return _scattered(add, jnp.zeros(shape, updates.dtype), indices, updates)


def _tensor_scatter(name: str, scatter: Callable, doc: str) -> Callable[..., Tensor]:
    def kernel(tensor, indices, updates):
        return _scattered(scatter, tensor, indices, updates)

    renamed(name, kernel)

    def public(tensor, indices, updates, bad_indices_policy="", name=None) -> Tensor:
        array, values = arrays_of(tensor, updates)
        places = integers(public.__name__, indices)
        _require_nd_within(public.__name__, places, array.shape, bad_indices_policy)
        _require_updates(public.__name__, values, places, array.shape)
        return op(kernel, array, places, values)

    public.__doc__ = f"`tensor` with `updates` {doc} at `indices`, whose last axis is an index into `tensor`."
    return renamed(name, public)


_update = _tensor_scatter("tensor_scatter_nd_update", lax.scatter, "put in")


def tensor_scatter_nd_update(tensor: TensorLike, indices: TensorLike, updates: TensorLike, name=None) -> Tensor:
    """`tensor` with `updates` put in at `indices`, whose last axis is an index into `tensor`."""
    return _update(tensor, indices, updates)


tensor_scatter_nd_add = _tensor_scatter("tensor_scatter_nd_add", lax.scatter_add, "added")
tensor_scatter_nd_sub = _tensor_scatter("tensor_scatter_nd_sub", lax.scatter_sub, "subtracted")
tensor_scatter_nd_max = _tensor_scatter("tensor_scatter_nd_max", lax.scatter_max, "taken where larger")
tensor_scatter_nd_min = _tensor_scatter("tensor_scatter_nd_min", lax.scatter_min, "taken where smaller")

# ---- Order -------------------------------------------------------------------------------------------------


def _descending(direction):
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(f"direction must be one of ASCENDING, DESCENDING, got {direction!r}")
    return direction == "DESCENDING"


@operation("values", REAL)
def sort(values, axis=-1, direction="ASCENDING"):
    """The elements in order along `axis`."""
    axis = axis_of(axis, values.ndim)
    if not _descending(direction):
        return jnp.sort(values, axis)
    # Of equals the first comes first here too, so that it gets the gradient: jnp.sort would turn them round.
    return jnp.take_along_axis(values, _order(values, axis, True), axis)


def _order(values, axis, descending):
    if descending and kind_of(values.dtype) == "f":  # nan comes last in both directions
        values, descending = -values, False
    return jnp.argsort(values, axis, descending=descending)


@operation("values", REAL)
def argsort(values, axis=-1, direction="ASCENDING", stable=False):
    """The int32 indices that would sort `values`; equals stay in their order."""
    return _order(values, axis_of(axis, values.ndim), _descending(direction)).astype(jnp.int32)


@operation("sorted_sequence values")
def searchsorted(sorted_sequence, values, side="left", out_type="int32"):
    """Where `values` would have to be put into the sorted last axis of `sorted_sequence`."""
    if side not in ("left", "right"):
        raise ValueError(f"side must be 'left' or 'right', got {side!r}")
    search = functools.partial(jnp.searchsorted, side=side)
    for _ in sorted_sequence.shape[1:]:
        search = jax.vmap(search)
    return search(sorted_sequence, values).astype(out_type)


class Unique(NamedTuple):
    """What `unique` returns."""

    y: Tensor
    idx: Tensor


class UniqueWithCounts(NamedTuple):
    """What `unique_with_counts` returns."""

    y: Tensor
    idx: Tensor
    count: Tensor  # type: ignore[assignment]  # a tuple has a method of this name


def _uniques(x: TensorLike, out_idx: DTypeLike) -> tuple[Tensor, Tensor, Tensor]:
    values = host(x, "x")
    if values.ndim != 1:
        raise InvalidArgumentError(f"unique expects a 1D vector, got shape {values.shape}")
    _, first, inverse, count = np.unique(values, True, True, True, equal_nan=False)
    order = np.argsort(first)  # in order of appearance
    dtype = requested(out_idx)
    results = np.sort(first), np.argsort(order)[inverse], count[order]
    places, idx, counts = (Tensor(raw(result.astype(dtype))) for result in results)
    return gather(x, places), idx, counts


def unique(x: TensorLike, out_idx: DTypeLike = "int32", name: str | None = None) -> Unique:
    """The different elements of a vector in order of appearance, and where among them each element is."""
    return Unique(*_uniques(x, out_idx)[:2])


def unique_with_counts(x: TensorLike, out_idx: DTypeLike = "int32", name: str | None = None) -> UniqueWithCounts:
    """As `unique`, and how often each occurs."""
    return UniqueWithCounts(*_uniques(x, out_idx))


def invert_permutation(x: TensorLike, name: str | None = None) -> Tensor:
    """The permutation that undoes `x`.

    Raises:
      InvalidArgumentError: `x` is not a permutation of 0, 1 ... (seen on the CPU).
    """
    array = integers("invert_permutation", x, "x")
    values = known(array)
    if values is not None and not np.array_equal(np.sort(values), np.arange(values.size)):
        raise InvalidArgumentError(f"invert_permutation: {values.tolist()} is no permutation of 0 to {values.size - 1}")
    return op(_invert_permutation, array)


def _invert_permutation(x):
    return jnp.zeros_like(x).at[x].set(jnp.arange(x.shape[0], dtype=x.dtype))


def _block(name: str, size: int, data_format: str) -> int:
    _require_nhwc(name, data_format)
    if size < 2:
        raise InvalidArgumentError(f"{name}: block_size must be greater than 1, got {size}")
    return size


@operation("input")
def space_to_depth(input, block_size, data_format="NHWC"):
    """Blocks of block_size x block_size pixels moved into the channels."""
    (b, h, w, c), n = input.shape, _block("space_to_depth", block_size, data_format)
    return input.reshape(b, h // n, n, w // n, n, c).transpose(0, 1, 3, 2, 4, 5).reshape(b, h // n, w // n, n * n * c)


@operation("input")
def depth_to_space(input, block_size, data_format="NHWC"):
    """Channels moved into blocks of block_size x block_size pixels."""
    (b, h, w, c), n = input.shape, _block("depth_to_space", block_size, data_format)
    part = c // (n * n)
    return input.reshape(b, h, w, n, n, part).transpose(0, 1, 3, 2, 4, 5).reshape(b, h * n, w * n, part)


def _require_nhwc(name: str, data_format: str) -> None:
    if data_format != "NHWC":
        raise NotImplementedError(f"{name}: data_format must be 'NHWC', got {data_format!r}: use tf.transpose")
