"""`op`, the way every operation of ``tapejax`` is run, and the arguments of operations, which have one dtype."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import jax.numpy as jnp
import numpy as np

from ...jaxprs.types import Value
from ...tape import operation
from ...tape.operation import op_of
from .conversion import ARRAY_TYPES, array_of, constant_array, converted, keep_dtype, raw
from .dtypes import as_dtype, narrowed
from .numbers import SCALARS, fitting, mixed
from .settings import settings
from .tensor import Tensor, compute
from .types import Array, Nest, TensorLike


def op(fn: Callable, *args: TensorLike, **static: Hashable) -> Nest:
    """Runs ``fn(*arrays, **static)`` through the recorder: one compiled operation, one entry on the tapes.

    Args:
      fn: a pure function of raw arrays, always the same object: it is compiled once per `fn` and `static`.
      *args: tensors or what converts to them. Python numbers are passed on as they are, as weakly typed scalars.
      **static: hashable values.

    Returns:
      A `Tensor`, or what `fn` returns (a tuple, a dict ...) with a `Tensor` for each array.

    Raises:
      InvalidArgumentError: the shapes do not fit.
    """
    arrays = [
        arg if type(arg) in ARRAY_TYPES or type(arg) in SCALARS else arg._array if type(arg) is Tensor else raw(arg)
        for arg in args
    ]
    for array in arrays:
        if type(array) not in SCALARS:
            break
    else:  # numbers only: TensorFlow's types for them, not JAX's weak ones
        arrays = [raw(array) for array in arrays]
    return op_on_arrays(fn, *arrays, **static)


def op_on_arrays(fn: Callable, *arrays: Value, **static: Hashable) -> Nest:
    """`op` of arguments that `operands` or `raw` have converted."""
    return compute(op_of(fn, static), arrays)


def operands(*args: TensorLike) -> list:
    """The arguments of a binary (or n-ary) operation as raw arrays and Python numbers of one dtype.

    The first argument with a dtype of its own (tensor, variable, ``jax.Array``) decides. NumPy values, lists and Python
    numbers follow it; where there is none, the first argument decides.

    Raises:
      InvalidArgumentError: two tensors have different dtypes.
      DTypeError: a Python number does not fit the dtype: a float beside an integer tensor. It is both of TensorFlow's
        classes for that, InvalidArgumentError and TypeError.

    >>> import tapejax as tf
    >>> operands(tf.constant(1), 2.5)
    Traceback (most recent call last):
    tapejax.tf.values.errors.DTypeError: 2.5 does not fit dtype int32 of the tensor beside it: convert one of them, for ...
    """
    if settings["promote_dtypes"]:
        return _promoted(args)
    arrays: list[Array] = [arg._array if type(arg) is Tensor else array_of(arg) for arg in args]
    dtype = None
    for array in arrays:
        if array is None:
            continue
        if dtype is None:
            dtype = array.dtype
        elif array.dtype != dtype:
            dtype = _agree(arrays)
            break
    if dtype is None:
        arrays[0] = raw(args[0])
        dtype = arrays[0].dtype
    for i, array in enumerate(arrays):
        if array is None:
            arg = args[i]
            if type(arg) in SCALARS:
                arrays[i] = fitting(arg, dtype)
            else:
                array = converted(arg, dtype)
                if array is None:
                    # Most of TensorFlow's functions convert the first argument before they look at the others.
                    keep_dtype(arg, dtype, widens=i > 0)
                    array = constant_array(arg, dtype)
                arrays[i] = array
    return arrays


def arrays_of(*args: TensorLike) -> list:
    """`operands`, all of them as arrays: a Python number in the dtype of the others, not by way of its own."""
    arrays = operands(*args)
    dtype = next(array.dtype for array in arrays if hasattr(array, "dtype"))
    return [array if hasattr(array, "dtype") else raw(array, dtype) for array in arrays]


def _promoted(args: Sequence) -> list:
    """The arguments in the dtype that JAX promotes theirs to."""
    arrays = [arg if type(arg) in SCALARS else raw(arg) for arg in args]
    dtype = narrowed(np.dtype(jnp.result_type(*arrays)))
    if all(type(array) in SCALARS for array in arrays):
        arrays[0] = raw(arrays[0])
    others = {i for i, array in enumerate(arrays) if type(array) not in SCALARS and array.dtype != dtype}
    return [operation.apply(_cast, array, dtype=dtype) if i in others else array for i, array in enumerate(arrays)]


def _cast(x, dtype):
    return x.astype(dtype)


def _agree(arrays: list) -> np.dtype:
    """Casts JAX's weakly typed arrays (made of Python numbers by jnp), which yield where a Python number would."""
    present = [array for array in arrays if array is not None]
    dtype = next((array for array in present if not array.weak_type), present[0]).dtype
    for i, array in enumerate(arrays):
        if array is not None and array.dtype != dtype:
            if not (array.weak_type and as_dtype(dtype).admits(as_dtype(array.dtype))):
                raise mixed(dtype, array.dtype, "an operation")
            arrays[i] = operation.apply(_cast, array, dtype=dtype)
    return dtype
