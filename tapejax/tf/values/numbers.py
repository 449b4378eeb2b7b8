"""Numbers of Python's and NumPy's as arrays, by TensorFlow's rules: which dtype they get, and which are refused."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...execution.host.numpy_errors import with_errors
from ...execution.trial import Trial
from ...jaxprs.cache import memoised
from ...tape import active, operation
from .dtypes import TensorShape, as_dtype, narrowed
from .errors import DTypeError
from .types import Array, DTypeLike, Number, TensorLike

# What a Python number becomes where nothing else decides. Exact types: np.float64 is a subclass of float.
SCALARS = dict(zip((float, int, bool, complex), map(np.dtype, ("f4", "i4", "?", "c16")), strict=True))
# If one of these dtypes is requested, TensorFlow converts each number of a sequence separately.
_ONE_BY_ONE = {"int32", "int64", "uint64", "float16", "float32", "float64", "complex128"}


def _as_it_is(x: Array) -> Array:
    return jnp.asarray(x)  # under jax.disable_jit it is still one of NumPy's


_as_it_is.__name__ = "constant"  # so is it called on a tape
_to_array = Trial(_as_it_is)


def on_device(array: np.ndarray, dtype: np.dtype, checked: bool = True) -> jax.Array:
    if checked and dtype.itemsize < array.dtype.itemsize and array.dtype.kind in "iu" and array.size:
        _require_range(array, dtype)
    # The copy is NumPy's: JAX may share memory with what it is given, and the caller may write to that again.
    copy = np.array(array, dtype)
    with jax.ensure_compile_time_eval() if operation.is_size(copy) else active.outside():
        return _to_array(copy)


def _require_range(array: np.ndarray, dtype: np.dtype) -> None:
    limits = np.iinfo(dtype)
    for extreme in (array.min(), array.max()):
        if not limits.min <= extreme <= limits.max:
            raise ValueError(f"the integer {extreme} does not fit {dtype}: turn jax_enable_x64 on for 64-bit integers")


def as_numpy(value: TensorLike, asked: DTypeLike | None = None) -> np.ndarray:
    """`value` as a NumPy array of the dtype that TensorFlow would give it, 64-bit types not yet narrowed."""
    kind = type(value)
    if kind is np.ndarray:
        array = value
    elif kind in SCALARS and kind is not int:
        return _single(value, asked) if kind is float else np.asarray(value, SCALARS[kind])
    else:
        try:
            array = np.asarray(value)
        except ValueError as error:
            if "inhomogeneous" not in str(error):
                raise
            raise ValueError(
                f"a nested list whose rows differ in length cannot become a tensor: {shortened(value)}"
            ) from None
        if kind is int or isinstance(value, (Sequence, range)):
            array = _as_python_numbers(array, value, asked)
    if array.dtype.kind in "SU":
        raise DTypeError(f"strings cannot be converted to a tensor, JAX's arrays hold numbers only: {shortened(value)}")
    if array.dtype.kind in "OMmV" and not jnp.issubdtype(array.dtype, np.number):
        raise ValueError(
            f"a value of type {_culprit(value).__name__} cannot be converted to a tensor: {shortened(value)}"
        )
    return array


def sizes(shape: TensorShape, dtype: DTypeLike | None) -> np.ndarray:
    """The sizes of a shape: int32, also of the empty one, or int64 where one is larger or that is asked for."""
    if not shape.is_fully_defined():
        raise ValueError(f"the shape {shape} is known only in part: it cannot become a tensor")
    if dtype is not None and as_dtype(dtype).name not in ("int32", "int64"):
        raise TypeError(f"a shape has integer sizes: {shape} cannot be converted to dtype {as_dtype(dtype).name}")
    return np.array(shape, np.int32 if max(shape, default=0) <= np.iinfo(np.int32).max else np.int64)


def _as_python_numbers(array: np.ndarray, value: TensorLike, asked: DTypeLike | None) -> np.ndarray:
    # In a sequence the first number decides, as in TensorFlow, and integers are int32 where they fit.
    first = value
    while isinstance(first, Sequence) or (isinstance(first, np.ndarray) and first.ndim):
        if isinstance(first, (str, bytes)) or not len(first):
            break
        first = first[0]
    kind = array.dtype.kind
    one_by_one = asked is not None and kind in "biufc" and as_dtype(asked).name in _ONE_BY_ONE
    mixes = not (one_by_one and as_dtype(asked).admits(as_dtype(array.dtype)))
    if mixes and array.size and kind != "b" and isinstance(first, (bool, np.bool_)):
        raise ValueError(f"a list that mixes bool with other numbers cannot become a tensor: {shortened(value)}")
    if mixes and kind == "c" and not isinstance(first, (complex, np.complexfloating)):
        raise ValueError(f"a list that mixes complex with other numbers cannot become a tensor: {shortened(value)}")
    if kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"an integer beyond int64 cannot become a tensor: {shortened(value)}")
    if kind in "iu":
        limits = np.iinfo(np.int32)
        short = not array.size or limits.min <= array.min() <= array.max() <= limits.max
        return array.astype(np.int32) if short else array
    if kind == "O" and isinstance(first, int):
        raise ValueError(f"an integer of more than 64 bits cannot become a tensor: {shortened(value)}")
    if kind == "f" and not (isinstance(first, (np.generic, np.ndarray)) and first.dtype == array.dtype):
        return _single(array, asked)
    return array


def _single(value: TensorLike, asked: DTypeLike | None) -> np.ndarray:
    """Python's floats in single precision; one too large for it is an error, unless a dtype was asked for."""
    array = with_errors(np.asarray, value, np.float32, over="ignore")
    if asked is None and np.isinf(array).any() and not np.array_equal(np.isinf(array), np.isinf(value)):
        raise ValueError(f"a float is too large for float32: {shortened(value)}. Give a dtype, such as tf.float64")
    return array


def _culprit(value: object) -> type:
    """The type, somewhere in `value`, of which no tensor can be made."""
    if isinstance(value, (list, tuple)):
        return next((kind for kind in map(_culprit, value) if kind not in SCALARS), type(value))
    return type(value)


def shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else text[:97] + "..."


def fitting(number: Number, dtype: np.dtype) -> Number | np.generic:
    """A Python number that may take `dtype`, itself; an integer beyond an integer dtype wraps around, as in TensorFlow."""
    kind: Any = type(number)  # to mypy a class is not hashable
    limits = _limits(dtype, kind)
    if limits is None:
        better = "complex64" if type(number) is complex else "float32" if type(number) is float else "int32"
        advice = f"convert one of them, for instance tf.cast(x, tf.{better})"
        raise DTypeError(f"{number!r} does not fit dtype {dtype} of the tensor beside it: {advice}")
    if kind is int and not limits[0] <= number <= limits[1]:  # type: ignore[operator]  # an int
        return _wrapped(number, dtype, *limits)  # type: ignore[arg-type]
    return number


def _wrapped(number: int, dtype: np.dtype, low: int, high: int) -> float | np.generic:
    """An integer that JAX would not take beside `dtype`, as something that it takes."""
    if not jnp.issubdtype(dtype, np.integer):
        return float(number)
    if dtype.itemsize == 4 and narrowed(np.dtype("int64")).itemsize == 4:  # int64 was narrowed to int32
        _require_range(np.asarray(number, object), dtype)
    return dtype.type((number - low) % (high - low + 1) + low)


@memoised(512)
def _limits(dtype: np.dtype, kind: Hashable) -> tuple[int, int] | None:
    """The integers that JAX takes as they are beside `dtype`; None where it admits no numbers of the class `kind`."""
    if not as_dtype(dtype).admits(as_dtype(SCALARS[kind])):  # type: ignore[index]
        return None
    limits = np.iinfo(dtype if jnp.issubdtype(dtype, np.integer) else np.int32)
    return int(limits.min), int(limits.max)


def mixed(one: np.dtype, other: np.dtype, where: str) -> DTypeError:
    wider = jnp.promote_types(one, other)
    advice = f"Convert one, for instance tf.cast(x, tf.{wider if wider in (one, other) else one})"
    return DTypeError(f"{where} was given tensors of dtype {one} and {other}: dtypes do not mix. {advice}")
