"""Operations that have no gradient until one is registered, as in TensorFlow."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..core import recorder
from ..core._jax import Tracer
from ..core.op import ConstantOp
from ..values import nest, reading
from ..values.dtypes import requested
from ..values.errors import InvalidArgumentError
from ..values.tensor import Tensor, convert_to_tensor, op, raw
from ..values.types import Array, DTypeLike, FloatLike, Nest, TensorLike
from .registry import opaque
from .table import kind_of


@opaque("AdjustContrastv2")
def _adjust_contrast(images: Array, contrast_factor: Array) -> Array:
    mean = jnp.mean(images, axis=(-3, -2), keepdims=True)
    return (images - mean) * contrast_factor + mean


def adjust_contrast(images: TensorLike, contrast_factor: FloatLike) -> Tensor:
    """Images whose distance from their mean, for each channel, is `contrast_factor` times as large.

    It has no gradient, as in TensorFlow: asking for one raises `LookupError`, until one is registered for
    ``AdjustContrastv2`` with `RegisterGradient`.

    Args:
      images: floats, of shape ``(..., height, width, channels)``; integers are scaled and rounded back.
      contrast_factor: a float scalar.

    >>> import tapejax as tf
    >>> print(tf.image.adjust_contrast([[[0.0], [1.0]]], 0.5).numpy().ravel())
    [0.25 0.75]
    """
    array = raw(images)
    if array.ndim < 3:
        raise ValueError(f"images must have at least 3 dimensions (height, width, channels), got shape {array.shape}")
    factor = raw(contrast_factor, dtype_hint="float32")
    if jnp.issubdtype(array.dtype, jnp.floating):
        return op(_adjust_contrast, array, factor)
    return op(_adjust_integers, array, factor)


def _adjust_integers(images: Array, contrast_factor: Array) -> Array:
    limit = jnp.iinfo(images.dtype).max
    adjusted = _adjust_contrast(images.astype(jnp.float32) / limit, contrast_factor)
    return jnp.clip(adjusted * (limit + 0.5), 0, limit).astype(images.dtype)


def _or_decorator(call: Callable) -> Callable:
    """`call`, which without a function is a decorator."""

    @functools.wraps(call)
    def public(
        func: Callable | None = None,
        inp: Sequence[TensorLike] | None = None,
        Tout: DTypeLike | Sequence[DTypeLike] | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        if Tout is None:
            raise TypeError(f"{call.__name__}: missing required argument 'Tout'")
        if func is None:
            if inp is not None:
                raise TypeError(f"{call.__name__}: a decorator takes no `inp`: give the inputs when it is called")
            return lambda func: functools.wraps(func)(lambda *given: call(func, given, Tout, *args, **kwargs))
        if inp is None:
            raise TypeError(f"{call.__name__}: missing required argument 'inp'")
        return call(func, inp, Tout, *args, **kwargs)

    return public


@_or_decorator
def numpy_function(
    func: Callable,
    inp: Sequence[TensorLike],
    Tout: DTypeLike | Sequence[DTypeLike],
    stateful: bool = True,
    name: str | None = None,
) -> Nest:
    """Runs `func` on NumPy arrays as an operation of its own, which has no gradient: what depends on it is not connected.

    A `function` that calls it runs as Python.

    Args:
      func: takes NumPy arrays and returns arrays.
      inp: the tensors to pass.
      Tout: the dtype of the result, or a list of them if `func` returns several.

    Raises:
      NotImplementedError: inside `jax.jit`, where the shapes of the results are not known; use `jax.pure_callback`.
    """
    reading.require_python("numpy_function")
    several = nest.is_nested(Tout)
    arrays = [raw(x) for x in inp]
    if recorder.staging():
        raise NotImplementedError("numpy_function under jit: use jax.pure_callback, which takes the results' shapes")
    with recorder.outside():
        found = func(*(np.asarray(x) for x in arrays))
    dtypes = nest.flatten(Tout)
    values = _counted("numpy_function", _values(found), dtypes)
    results = [convert_to_tensor(_result(x, requested(t))) for x, t in zip(values, dtypes, strict=True)]

    # noted as an operation, so that it shows on the tape and a gradient can be registered for it
    def fn(*_: Array) -> list[Array]:
        return [jax.lax.stop_gradient(x._array) for x in results]

    outputs = recorder.run(ConstantOp("PyFunc", fn), arrays)
    return [Tensor(x) for x in outputs] if several else Tensor(outputs[0])


def _values(found: Any) -> list:
    """What a function returned, one value for each dtype: an array is one value, whatever its shape."""
    if isinstance(found, (list, tuple)):
        return list(found)
    return [] if found is None else [found]


def _counted(name: str, values: list, dtypes: Sequence[DTypeLike]) -> list:
    if len(values) != len(dtypes):
        raise InvalidArgumentError(f"{name}: returns {len(values)} values, but expects to see {len(dtypes)} values")
    return values


def _result(value: Any, dtype: np.dtype) -> np.ndarray:
    found = np.asarray(value)
    if found.size and _WIDTH.get(kind_of(found.dtype), 0) > _WIDTH[kind_of(dtype)]:
        raise InvalidArgumentError(f"numpy_function: returns a value of type {found.dtype}, but expects {dtype}")
    return np.asarray(value, dtype)


_WIDTH = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}  # no kind of numbers fits a narrower one


def _without_result(func: Callable, arrays: Sequence[Array]) -> list:
    def run(*values: Array) -> None:
        with recorder.outside():
            func(*map(Tensor, values))

    if recorder.staging() or any(isinstance(x, Tracer) for x in arrays):
        jax.debug.callback(run, *arrays)
    else:
        func(*map(Tensor, arrays))
    return []


@_or_decorator
def py_function(
    func: Callable, inp: Sequence[TensorLike], Tout: DTypeLike | Sequence[DTypeLike], name: str | None = None
) -> Nest:
    """Runs `func` on the tensors as Python: the tape records what it computes, so it is differentiable.

    A `function` that calls it runs as Python, unless there are no results.

    Args:
      func: takes tensors and returns tensors (or values that become tensors of `Tout`).
      inp: the tensors to pass.
      Tout: the dtype of the result, or a list of them. An empty list: there is no result, and in a compiled function `func` runs
        each time that the function does, on known values.
    """
    if nest.is_nested(Tout) and not Tout:
        return _without_result(func, [raw(x) for x in inp])
    reading.require_python("py_function")
    dtypes = nest.flatten(Tout)
    # TensorFlow leaves out, without a word, what is more than there are dtypes.
    values = _counted("py_function", _values(func(*map(convert_to_tensor, inp)))[: len(dtypes)], dtypes)
    try:
        results = [convert_to_tensor(x, dtype=t) for x, t in zip(values, dtypes, strict=True)]
        return results if nest.is_nested(Tout) else results[0]
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"py_function: {error}") from error
