"""How values become arrays and tensors.

A value is known to the tapes by the identity of its raw ``jax.Array``. So `raw` hands arrays on as they are, while
whatever is a value of its own (``variable.value()``) is a new array.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...tape import operation
from ...tape.operation import op_of
from .dtypes import TensorShape, as_dtype, as_shape, narrowed, requested
from .numbers import SCALARS, as_numpy, fitting, mixed, on_device, shortened, sizes
from .registered import functions_for
from .tensor import Tensor, TensorBase, compute
from .types import Array, DTypeLike, ShapeLike, TensorLike

# Types of arrays and tracers seen so far: isinstance with JAX's classes costs as much as the rest of `op`.
ARRAY_TYPES: set[type] = set()
# Types that cannot hold an array which a tape has recorded.
_NUMPY = {np.ndarray, np.float32, np.float64, np.int32, np.int64, np.bool_}
_CONSTANTS = {*SCALARS, list, tuple, str, type(None), *_NUMPY}
_PLAIN_LEAVES = _CONSTANTS - {list, tuple}


def raw(value: TensorLike, dtype: DTypeLike | None = None, dtype_hint: DTypeLike | None = None) -> Array:
    """The ``jax.Array`` (or tracer) behind `value`, by TensorFlow's rules of conversion.

    A `Tensor`, a ``jax.Array``, a `Variable` and a library's variable give the very array they hold; reading a variable
    is noted on the tapes. Python floats become float32, ints int32; NumPy values keep their dtype, and are copied.
    A list that holds tensors is stacked, so that gradients pass through it.

    Args:
      value: a tensor, variable, array, number or nested list of these.
      dtype: the dtype wanted. Python numbers and NumPy values are converted to it; a tensor must have it already.
      dtype_hint: the dtype taken where `value` has none of its own and fits.

    Raises:
      ValueError: `value` is nothing to make a tensor of, or is a tensor of another dtype.
      TypeError: a Python number does not fit `dtype`, or `value` holds strings.
    """
    array = array_of(value)
    if array is None:
        array = converted(value, dtype, dtype_hint)
        return constant_array(value, dtype, dtype_hint) if array is None else array
    if dtype is not None and array.dtype != requested(dtype):
        wanted, advice = as_dtype(dtype).name, "a tensor is not converted silently"
        text = f"dtype={wanted} was requested of a tensor of dtype {array.dtype}: {advice}, use tf.cast(x, tf.{wanted})"
        raise ValueError(f"{text}. Got: {value!r}")
    return array


def array_of(value: TensorLike) -> Array | None:
    """The array of a value that has one (and with it a dtype and perhaps a history); None for a constant."""
    kind = type(value)
    if kind is Tensor:
        return value._array
    if kind in ARRAY_TYPES:
        return value
    if kind in _CONSTANTS:
        return None
    if isinstance(value, TensorBase):
        return value._read()
    if isinstance(value, jax.Array):
        ARRAY_TYPES.add(kind)
        return value
    return value.__jax_array__() if _converts(value) else None


def converted(value: Any, dtype: DTypeLike | None = None, dtype_hint: DTypeLike | None = None) -> Array | None:
    """The array of an object that the functions registered for its class convert; else None."""
    for convert in functions_for(value):
        tensor = None
        if dtype is None and dtype_hint is not None:
            with contextlib.suppress(TypeError, ValueError):
                tensor = convert(value, dtype=as_dtype(dtype_hint), name=None, as_ref=False)
        if tensor is None:
            tensor = convert(value, dtype=None if dtype is None else as_dtype(dtype), name=None, as_ref=False)
        if tensor is NotImplemented:
            continue
        if not isinstance(tensor, (Tensor, jax.Array)):
            raise RuntimeError(f"the conversion function {convert!r} must return a tensor, got {tensor!r}")
        if dtype is not None and tensor.dtype != requested(dtype):
            wanted = as_dtype(dtype).name
            raise RuntimeError(
                f"the conversion function {convert!r} was asked for {wanted} and returned {tensor.dtype}"
            )
        return raw(tensor)
    return None


def constant_array(value: TensorLike, dtype: DTypeLike | None = None, dtype_hint: DTypeLike | None = None) -> Array:
    sequence = isinstance(value, (list, tuple))
    if sequence and isinstance(value, TensorShape):
        value, sequence, dtype_hint = sizes(value, dtype), False, None
    if sequence and holds_arrays(value):
        if dtype is None and dtype_hint is not None:
            with contextlib.suppress(TypeError):
                return _stacked(value, dtype_hint)
        return _stacked(value, dtype)
    array = as_numpy(value, dtype)
    python = sequence or type(value) in SCALARS
    wanted = dtype
    if dtype is None and dtype_hint is not None:
        if not python or not array.size or as_dtype(dtype_hint).admits(as_dtype(array.dtype)):
            wanted = dtype_hint
    if wanted is None:
        # A Python complex is complex128 only because there is no other type, so there is no warning when it
        # is narrowed.
        silently = python and array.dtype.kind == "c"
        return on_device(array, narrowed(array.dtype) if silently else requested(array.dtype))
    if python and array.size and not as_dtype(wanted).admits(as_dtype(array.dtype)):
        raise TypeError(f"{shortened(value)} does not fit dtype {as_dtype(wanted).name}")
    dtype = requested(wanted)
    if python and array.dtype == np.float32 and dtype.name in ("float64", "complex128"):
        array = np.asarray(value, np.float64)  # a Python float is float32 only if no other dtype was requested
    return on_device(array, dtype, checked=array.dtype == as_dtype(wanted).dtype)


def holds_arrays(sequence: Sequence) -> bool:
    if _PLAIN_LEAVES.issuperset(map(type, sequence)):
        return False
    others = [item for item in sequence if type(item) not in _PLAIN_LEAVES]
    return any(
        holds_arrays(item) if isinstance(item, (list, tuple)) else is_array_like(item) or functions_for(item)
        for item in others
    )


def is_array_like(value: object) -> bool:
    """Whether `value` holds a JAX array: a Tensor, a Variable of ours or of a library, a ``jax.Array`` or tracer."""
    return isinstance(value, (TensorBase, jax.Array)) or _converts(value)


def _converts(value: object) -> bool:
    return hasattr(value, "__jax_array__") and not isinstance(value, type)


def _stack(*rows, dtype):
    return jnp.stack([jnp.asarray(row, dtype) for row in rows])


def _stacked(sequence: Sequence, dtype: DTypeLike | None) -> Array:
    """A list with tensors in it, as one array: recorded, so that gradients pass.

    Where the first tensor has another dtype than the one asked for, TensorFlow casts them all.
    """
    first = _first_dtype(sequence)
    wanted = first if dtype is None else requested(dtype)
    return _rows(sequence, wanted, casts=first != wanted)


def _rows(sequence: Sequence, wanted: np.dtype, casts: bool) -> Array:
    rows = []
    for item in sequence:
        if type(item) in SCALARS:
            rows.append(fitting(item, wanted))
        elif (array := array_or_converted(item, wanted)) is not None:
            if array.dtype != wanted and not casts:
                raise mixed(wanted, array.dtype, "a list of tensors")
            rows.append(array)
        else:
            nested = isinstance(item, (list, tuple)) and holds_arrays(item)
            rows.append(_rows(item, wanted, casts) if nested else constant_array(item, wanted))
    return compute(op_of(_stack, {"dtype": wanted}), rows)._array


def array_or_converted(item: TensorLike, dtype: DTypeLike | None = None) -> Array | None:
    array = array_of(item)
    return converted(item, dtype) if array is None else array


def _first_dtype(sequence: TensorLike) -> Any:
    for item in sequence if isinstance(sequence, (list, tuple)) else ():
        nested = isinstance(item, (list, tuple))
        dtype = _first_dtype(item) if nested else getattr(array_or_converted(item), "dtype", None)
        if dtype is not None:
            return dtype
    return None


def keep_dtype(value: TensorLike, dtype: np.dtype, widens: bool = False) -> None:
    """Raises where `value` is a list whose tensors would be cast to `dtype`: to one of a lesser kind, where it `widens`."""
    first = _first_dtype(value)
    if first is not None and first != dtype and not (widens and as_dtype(dtype).admits(as_dtype(first))):
        raise mixed(dtype, first, "a list of tensors")


def is_tensor(x: object) -> bool:
    """Whether `x` is a `Tensor`, a `Variable` or a ``jax.Array``; NumPy arrays and numbers are not.

    >>> is_tensor(constant(1.0)), is_tensor(jnp.ones(2)), is_tensor(np.ones(2)), is_tensor(1.0)
    (True, True, False, False)
    """
    return is_array_like(x)


def convert_to_tensor(
    value: TensorLike, dtype: DTypeLike | None = None, dtype_hint: DTypeLike | None = None, name: str | None = None
) -> Tensor:
    """`value` as a `Tensor`; a `Tensor` is returned as it is. See `raw` for the rules and the errors.

    >>> convert_to_tensor([1, 2])
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 2], dtype=int32)>
    >>> convert_to_tensor([constant(1.0), 2])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>
    """
    array = raw(value, dtype, dtype_hint)
    return value._as_tensor() if isinstance(value, TensorBase) else Tensor(array)


def _fill(x, shape):
    return jnp.broadcast_to(x.reshape(()), shape)


def constant(
    value: TensorLike, dtype: DTypeLike | None = None, shape: ShapeLike | None = None, name: str = "Const"
) -> Tensor:
    """A `Tensor` with the given contents.

    Args:
      value: a number, a nested list of numbers, or an array.
      dtype: its dtype; by default float32 for Python floats, int32 for ints, and an array's own.
      shape: its shape. A single element is repeated, several are rearranged.

    Raises:
      TypeError: if `value` does not fit `dtype`, or does not have as many elements as `shape`.
      ValueError: if `value` is nothing to make a tensor of.

    >>> constant([1, 2, 3, 4], shape=[2, 2])
    <tf.Tensor: shape=(2, 2), dtype=int32, numpy=
    array([[1, 2],
           [3, 4]], dtype=int32)>
    """
    array = array_of(value)
    if array is None:  # in TensorFlow a shape is a list to this function alone
        if dtype is not None:
            keep_dtype(value, requested(dtype))
        array = constant_array(
            list(value) if isinstance(value, TensorShape) and value.is_fully_defined() else value, dtype
        )
    elif dtype is not None and array.dtype != requested(dtype):
        raise TypeError(f"dtype={as_dtype(dtype).name} was requested of a tensor of dtype {array.dtype}: use tf.cast")
    if shape is None or (wanted := as_shape(shape)) == array.shape:
        return value if type(value) is Tensor else Tensor(array)
    if array.size == 1:
        return Tensor(operation.apply(_fill, array, shape=tuple(wanted)))
    if array.size != wanted.num_elements():
        raise TypeError(f"shape={wanted} has {wanted.num_elements()} elements, but value has {array.size}")
    return Tensor(operation.apply(jax.lax.reshape, array, new_sizes=tuple(wanted)))
