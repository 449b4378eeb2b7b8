"""`Tensor` and `Variable`, how other values become arrays, and `op`, the way every operation of ``tapejax`` is run.

A value is known to the tapes by the identity of its raw ``jax.Array``. So `raw` hands arrays on as they are, while
whatever is a value of its own (``variable.value()``) is a new array. There is no arithmetic here: `ops` attaches the
operators.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import SingleDeviceSharding

from ...execution.host.numpy_errors import with_errors
from ...execution.trial import Trial
from ...jaxprs.cache import memoised
from ...jaxprs.fence import ConcreteArray, Tracer, current_trace, made_at, refuse_type
from ...jaxprs.types import Value
from ...tape import active, dispatch, operation, runner
from ...tape.operation import Op, op_of
from ...tape.sweep import placed
from . import buffers, reading, replicas
from .conversions import functions_for
from .dtypes import DType, TensorShape, as_dtype, as_shape, narrowed, requested
from .errors import DTypeError, InvalidArgumentError, NoValueError, VariableInTraceError, about_shapes
from .names import scoped
from .settings import settings
from .shown import unreadable, value_html
from .types import Array, DTypeLike, Ignored, Index, Nest, Number, ShapeLike, TensorLike

# What a Python number becomes where nothing else decides. Exact types: np.float64 is a subclass of float.
_SCALARS = dict(zip((float, int, bool, complex), map(np.dtype, ("f4", "i4", "?", "c16")), strict=True))
# Types of arrays and tracers seen so far: isinstance with JAX's classes costs as much as the rest of `op`.
_ARRAYS: set[type] = set()
# Types that cannot hold an array which a tape has recorded.
_NUMPY = {np.ndarray, np.float32, np.float64, np.int32, np.int64, np.bool_}
_new = object.__new__
Slices: TypeAlias = Any  # an IndexedSlices, which is defined above: it has `values` and `indices`
_CONSTANTS = {*_SCALARS, list, tuple, str, type(None), *_NUMPY}


# ---- From values to arrays ------------------------------------------------------------


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
    array = _array_of(value)
    if array is None:
        array = _converted(value, dtype, dtype_hint)
        return _constant(value, dtype, dtype_hint) if array is None else array
    if dtype is not None and array.dtype != requested(dtype):
        wanted, advice = as_dtype(dtype).name, "a tensor is not converted silently"
        text = f"dtype={wanted} was requested of a tensor of dtype {array.dtype}: {advice}, use tf.cast(x, tf.{wanted})"
        raise ValueError(f"{text}. Got: {value!r}")
    return array


def _array_of(value: TensorLike) -> Array | None:
    """The array of a value that has one (and with it a dtype and perhaps a history); None for a constant."""
    kind = type(value)
    if kind is Tensor:
        return value._array
    if kind is Variable:
        return reading.read(value)
    if kind in _ARRAYS:
        return value
    if kind in _CONSTANTS:
        return None
    if isinstance(value, jax.Array):
        _ARRAYS.add(kind)
        return value
    if isinstance(value, Tensor):
        return value._array
    if isinstance(value, Variable):
        return reading.read(value)
    return value.__jax_array__() if _converts(value) else None


def _converted(value: Any, dtype: DTypeLike | None = None, dtype_hint: DTypeLike | None = None) -> Array | None:
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


def _constant(value: TensorLike, dtype: DTypeLike | None = None, dtype_hint: DTypeLike | None = None) -> Array:
    sequence = isinstance(value, (list, tuple))
    if sequence and isinstance(value, TensorShape):
        value, sequence, dtype_hint = _sizes(value, dtype), False, None
    if sequence and _holds_arrays(value):
        if dtype is None and dtype_hint is not None:
            with contextlib.suppress(TypeError):
                return _stacked(value, dtype_hint)
        return _stacked(value, dtype)
    array = _as_numpy(value, dtype)
    python = sequence or type(value) in _SCALARS
    wanted = dtype
    if dtype is None and dtype_hint is not None:
        if not python or not array.size or as_dtype(dtype_hint).admits(as_dtype(array.dtype)):
            wanted = dtype_hint
    if wanted is None:
        # A Python complex is complex128 only because there is no other type, so there is no warning when it
        # is narrowed.
        silently = python and array.dtype.kind == "c"
        return _on_device(array, narrowed(array.dtype) if silently else requested(array.dtype))
    if python and array.size and not as_dtype(wanted).admits(as_dtype(array.dtype)):
        raise TypeError(f"{_short(value)} does not fit dtype {as_dtype(wanted).name}")
    dtype = requested(wanted)
    if python and array.dtype == np.float32 and dtype.name in ("float64", "complex128"):
        array = np.asarray(value, np.float64)  # a Python float is float32 only if no other dtype was requested
    return _on_device(array, dtype, checked=array.dtype == as_dtype(wanted).dtype)


def _as_it_is(x: Array) -> Array:
    return jnp.asarray(x)  # under jax.disable_jit it is still one of NumPy's


_as_it_is.__name__ = "constant"  # so is it called on a tape
_to_array = Trial(_as_it_is)


def _on_device(array: np.ndarray, dtype: np.dtype, checked: bool = True) -> jax.Array:
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


def _as_numpy(value: TensorLike, asked: DTypeLike | None = None) -> np.ndarray:
    """`value` as a NumPy array of the dtype that TensorFlow would give it, 64-bit types not yet narrowed."""
    kind = type(value)
    if kind is np.ndarray:
        array = value
    elif kind in _SCALARS and kind is not int:
        return _single(value, asked) if kind is float else np.asarray(value, _SCALARS[kind])
    else:
        try:
            array = np.asarray(value)
        except ValueError as error:
            if "inhomogeneous" not in str(error):
                raise
            raise ValueError(
                f"a nested list whose rows differ in length cannot become a tensor: {_short(value)}"
            ) from None
        if kind is int or isinstance(value, (Sequence, range)):
            array = _as_python_numbers(array, value, asked)
    if array.dtype.kind in "SU":
        raise DTypeError(f"strings cannot be converted to a tensor, JAX's arrays hold numbers only: {_short(value)}")
    if array.dtype.kind in "OMmV" and not jnp.issubdtype(array.dtype, np.number):
        raise ValueError(f"a value of type {_culprit(value).__name__} cannot be converted to a tensor: {_short(value)}")
    return array


def _sizes(shape: TensorShape, dtype: DTypeLike | None) -> np.ndarray:
    """The sizes of a shape: int32, also of the empty one, or int64 where one is larger or that is asked for."""
    if not shape.is_fully_defined():
        raise ValueError(f"the shape {shape} is known only in part: it cannot become a tensor")
    if dtype is not None and as_dtype(dtype).name not in ("int32", "int64"):
        raise TypeError(f"a shape has integer sizes: {shape} cannot be converted to dtype {as_dtype(dtype).name}")
    return np.array(shape, np.int32 if max(shape, default=0) <= np.iinfo(np.int32).max else np.int64)


# If one of these dtypes is requested, TensorFlow converts each number of a sequence separately.
_ONE_BY_ONE = {"int32", "int64", "uint64", "float16", "float32", "float64", "complex128"}


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
        raise ValueError(f"a list that mixes bool with other numbers cannot become a tensor: {_short(value)}")
    if mixes and kind == "c" and not isinstance(first, (complex, np.complexfloating)):
        raise ValueError(f"a list that mixes complex with other numbers cannot become a tensor: {_short(value)}")
    if kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"an integer beyond int64 cannot become a tensor: {_short(value)}")
    if kind in "iu":
        limits = np.iinfo(np.int32)
        short = not array.size or limits.min <= array.min() <= array.max() <= limits.max
        return array.astype(np.int32) if short else array
    if kind == "O" and isinstance(first, int):
        raise ValueError(f"an integer of more than 64 bits cannot become a tensor: {_short(value)}")
    if kind == "f" and not (isinstance(first, (np.generic, np.ndarray)) and first.dtype == array.dtype):
        return _single(array, asked)
    return array


def _single(value: TensorLike, asked: DTypeLike | None) -> np.ndarray:
    """Python's floats in single precision; one too large for it is an error, unless a dtype was asked for."""
    array = with_errors(np.asarray, value, np.float32, over="ignore")
    if asked is None and np.isinf(array).any() and not np.array_equal(np.isinf(array), np.isinf(value)):
        raise ValueError(f"a float is too large for float32: {_short(value)}. Give a dtype, such as tf.float64")
    return array


def _culprit(value: object) -> type:
    """The type, somewhere in `value`, of which no tensor can be made."""
    if isinstance(value, (list, tuple)):
        return next((kind for kind in map(_culprit, value) if kind not in _SCALARS), type(value))
    return type(value)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else text[:97] + "..."


_PLAIN_LEAVES = _CONSTANTS - {list, tuple}


def _holds_arrays(sequence: Sequence) -> bool:
    if _PLAIN_LEAVES.issuperset(map(type, sequence)):
        return False
    others = [item for item in sequence if type(item) not in _PLAIN_LEAVES]
    return any(
        _holds_arrays(item) if isinstance(item, (list, tuple)) else is_array_like(item) or functions_for(item)
        for item in others
    )


def is_array_like(value: object) -> bool:
    """Whether `value` holds a JAX array: a Tensor, a Variable of ours or of a library, a ``jax.Array`` or tracer."""
    return isinstance(value, (Tensor, Variable, jax.Array)) or _converts(value)


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
        if type(item) in _SCALARS:
            rows.append(_fitting(item, wanted))
        elif (array := _array_or_converted(item, wanted)) is not None:
            if array.dtype != wanted and not casts:
                raise _mixed(wanted, array.dtype, "a list of tensors")
            rows.append(array)
        else:
            nested = isinstance(item, (list, tuple)) and _holds_arrays(item)
            rows.append(_rows(item, wanted, casts) if nested else _constant(item, wanted))
    return compute(op_of(_stack, {"dtype": wanted}), rows)._array


def _array_or_converted(item: TensorLike, dtype: DTypeLike | None = None) -> Array | None:
    array = _array_of(item)
    return _converted(item, dtype) if array is None else array


def _first_dtype(sequence: TensorLike) -> Any:
    for item in sequence if isinstance(sequence, (list, tuple)) else ():
        nested = isinstance(item, (list, tuple))
        dtype = _first_dtype(item) if nested else getattr(_array_or_converted(item), "dtype", None)
        if dtype is not None:
            return dtype
    return None


def _keep_dtype(value: TensorLike, dtype: np.dtype, widens: bool = False) -> None:
    """Raises where `value` is a list whose tensors would be cast to `dtype`: to one of a lesser kind, where it `widens`."""
    first = _first_dtype(value)
    if first is not None and first != dtype and not (widens and as_dtype(dtype).admits(as_dtype(first))):
        raise _mixed(dtype, first, "a list of tensors")


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
    if isinstance(value, Variable):
        return value.read_value()
    return value if type(value) is Tensor else Tensor(array)


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
    array = _array_of(value)
    if array is None:  # in TensorFlow a shape is a list to this function alone
        if dtype is not None:
            _keep_dtype(value, requested(dtype))
        array = _constant(list(value) if isinstance(value, TensorShape) and value.is_fully_defined() else value, dtype)
    elif dtype is not None and array.dtype != requested(dtype):
        raise TypeError(f"dtype={as_dtype(dtype).name} was requested of a tensor of dtype {array.dtype}: use tf.cast")
    if shape is None or (wanted := as_shape(shape)) == array.shape:
        return value if type(value) is Tensor else Tensor(array)
    if array.size == 1:
        return Tensor(operation.apply(_fill, array, shape=tuple(wanted)))
    if array.size != wanted.num_elements():
        raise TypeError(f"shape={wanted} has {wanted.num_elements()} elements, but value has {array.size}")
    return Tensor(operation.apply(jax.lax.reshape, array, new_sizes=tuple(wanted)))


# ---- Operations ------------------------------------------------------------


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
        arg if type(arg) in _ARRAYS or type(arg) in _SCALARS else arg._array if type(arg) is Tensor else raw(arg)
        for arg in args
    ]
    for array in arrays:
        if type(array) not in _SCALARS:
            break
    else:  # numbers only: TensorFlow's types for them, not JAX's weak ones
        arrays = [raw(array) for array in arrays]
    return op_on_arrays(fn, *arrays, **static)


def op_on_arrays(fn: Callable, *arrays: Value, **static: Hashable) -> Nest:
    """`op` of arguments that `operands` or `raw` have converted."""
    return compute(op_of(fn, static), arrays)


def escaped(*values: Value) -> Exception:
    """The error for tracers among `values` that are used after their trace has ended."""
    line = next((made_at(x) for x in values if isinstance(x, Tracer)), "")
    return jax.errors.UnexpectedTracerError(
        f"a tensor{line and f' made at {line}'} is a tracer that escaped: the function in which it stood for a value "
        "(tf.function, jax.jit, grad, scan ...) has ended. That happens where it is kept in a list, a global or an attribute: "
        "return it from the function instead, or keep it in a tf.Variable (assign) or tf.TensorArray"
    )


def compute(op: Op, arrays: Sequence) -> Nest:
    """What `op` gives for these arrays, a `Tensor` for each array."""
    try:
        out = dispatch.run(op, arrays)
    except jax.errors.UnexpectedTracerError:
        raise escaped(*arrays) from None
    except (TypeError, ValueError) as error:
        _refuse_shapes(error, op.name, arrays)
        raise
    if type(out) is ConcreteArray:
        tensor = _new(Tensor)  # in half of the time of `Tensor(out)`
        tensor._array = out
        return tensor
    return Tensor(out) if isinstance(out, jax.Array) else jax.tree.map(Tensor, out)


def _refuse_shapes(error: Exception, name: str, arrays: Sequence) -> None:
    """Raises TensorFlow's class of error if JAX's is about shapes that do not fit."""
    if about_shapes(error):
        shapes = " and ".join(str(np.shape(array)) for array in arrays)
        raise InvalidArgumentError(f"{name}: Incompatible shapes: {shapes}. {error}") from error


def operands(*args: TensorLike) -> list:
    """The arguments of a binary (or n-ary) operation as raw arrays and Python numbers of one dtype.

    The first argument with a dtype of its own (tensor, variable, ``jax.Array``) decides. NumPy values, lists and Python
    numbers follow it; where there is none, the first argument decides.

    Raises:
      InvalidArgumentError: two tensors have different dtypes.
      DTypeError: a Python number does not fit the dtype: a float beside an integer tensor. It is both of TensorFlow's
        classes for that, InvalidArgumentError and TypeError.

    >>> operands(constant(1), 2.5)
    Traceback (most recent call last):
    tapejax.tf.values.errors.DTypeError: 2.5 does not fit dtype int32 of the tensor beside it: convert one of them, for ...
    """
    if settings["promote_dtypes"]:
        return _promoted(args)
    arrays: list[Array] = [arg._array if type(arg) is Tensor else _array_of(arg) for arg in args]
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
            if type(arg) in _SCALARS:
                arrays[i] = _fitting(arg, dtype)
            else:
                array = _converted(arg, dtype)
                if array is None:
                    # Most of TensorFlow's functions convert the first argument before they look at the others.
                    _keep_dtype(arg, dtype, widens=i > 0)
                    array = _constant(arg, dtype)
                arrays[i] = array
    return arrays


def arrays_of(*args: TensorLike) -> list:
    """`operands`, all of them as arrays: a Python number in the dtype of the others, not by way of its own."""
    arrays = operands(*args)
    dtype = next(array.dtype for array in arrays if hasattr(array, "dtype"))
    return [array if hasattr(array, "dtype") else raw(array, dtype) for array in arrays]


def _promoted(args: Sequence) -> list:
    """The arguments in the dtype that JAX promotes theirs to."""
    arrays = [arg if type(arg) in _SCALARS else raw(arg) for arg in args]
    dtype = narrowed(np.dtype(jnp.result_type(*arrays)))
    if all(type(array) in _SCALARS for array in arrays):
        arrays[0] = raw(arrays[0])
    others = {i for i, array in enumerate(arrays) if type(array) not in _SCALARS and array.dtype != dtype}
    return [operation.apply(_cast, array, dtype=dtype) if i in others else array for i, array in enumerate(arrays)]


def _fitting(number: Number, dtype: np.dtype) -> Number | np.generic:
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
    if not as_dtype(dtype).admits(as_dtype(_SCALARS[kind])):  # type: ignore[index]
        return None
    limits = np.iinfo(dtype if jnp.issubdtype(dtype, np.integer) else np.int32)
    return int(limits.min), int(limits.max)


def _cast(x, dtype):
    return x.astype(dtype)


def _agree(arrays: list) -> np.dtype:
    """Casts JAX's weakly typed arrays (made of Python numbers by jnp), which yield where a Python number would."""
    present = [array for array in arrays if array is not None]
    dtype = next((array for array in present if not array.weak_type), present[0]).dtype
    for i, array in enumerate(arrays):
        if array is not None and array.dtype != dtype:
            if not (array.weak_type and as_dtype(dtype).admits(as_dtype(array.dtype))):
                raise _mixed(dtype, array.dtype, "an operation")
            arrays[i] = operation.apply(_cast, array, dtype=dtype)
    return dtype


def _mixed(one: np.dtype, other: np.dtype, where: str) -> DTypeError:
    wider = jnp.promote_types(one, other)
    advice = f"Convert one, for instance tf.cast(x, tf.{wider if wider in (one, other) else one})"
    return DTypeError(f"{where} was given tensors of dtype {one} and {other}: dtypes do not mix. {advice}")


# ---- What Tensor and Variable share ------------------------------------------------------------


def _getitem(x, i):
    return jax.lax.dynamic_index_in_dim(x, i, keepdims=False)


if TYPE_CHECKING:
    # Written out: a checker prefers a method that `complex` declares to one that is assigned.
    class _Operators:  # `ops.operators` attaches them
        def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...
        def __getitem__(self, index: Index) -> Tensor: ...
        def __eq__(self, other: object) -> Tensor: ...  # type: ignore[override]
        def __ne__(self, other: object) -> Tensor: ...  # type: ignore[override]
        def __add__(self, other: TensorLike) -> Tensor: ...
        def __sub__(self, other: TensorLike) -> Tensor: ...
        def __mul__(self, other: TensorLike) -> Tensor: ...
        def __truediv__(self, other: TensorLike) -> Tensor: ...
        def __pow__(self, other: TensorLike) -> Tensor: ...
        def __radd__(self, other: TensorLike) -> Tensor: ...
        def __rsub__(self, other: TensorLike) -> Tensor: ...
        def __rmul__(self, other: TensorLike) -> Tensor: ...
        def __rtruediv__(self, other: TensorLike) -> Tensor: ...
        def __rpow__(self, other: TensorLike) -> Tensor: ...
        def __matmul__(self, other: TensorLike) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...

        # `complex` has none of these.
        __rmatmul__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __matmul__
        __lt__ = __le__ = __gt__ = __ge__ = __matmul__
        __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __matmul__

    # Functions of `jnp` are annotated with a union of classes, of which `complex` has the fewest names of its own.
    class _Typed(_Operators, complex): ...  # type: ignore[misc]
else:
    _Typed = object


class _Value(_Typed):
    """What a `Tensor` and a `Variable` both can do; `_read` gives the array."""

    __slots__ = ()

    # NumPy's operators leave the work to ours: np_array * tensor is a Tensor.
    __array_priority__ = 100

    _array: Array

    def _read(self) -> Array:
        return self._array

    def _seen(self) -> Array:
        """The array, for what looks at the value without computing with it."""
        return self._array

    @property
    def dtype(self) -> DType:
        return as_dtype(self._array.dtype)

    @property
    def shape(self) -> TensorShape:
        return tuple.__new__(TensorShape, self._array.shape)

    @property
    def ndim(self) -> int:
        return self._array.ndim

    @property
    def device(self) -> str:
        """Where it lies, in TensorFlow's spelling: ``/job:localhost/replica:0/task:0/device:CPU:0``."""
        device = next(iter(self._array.devices()))
        return f"/job:localhost/replica:0/task:0/device:{device.platform.upper()}:{device.id}"

    def get_shape(self) -> TensorShape:
        return self.shape

    def ref(self) -> Reference:
        """A key for dicts and sets; its `deref` gives the object back. Tensors and variables are not hashable."""
        return Reference(self)

    def numpy(self) -> Any:
        """A NumPy array of its own, or a NumPy scalar where the shape is ().

        Raises:
          NoValueError: under a JAX transformation (jit, grad, vmap ...), where there is no value yet.
        """
        return np.array(self._for_python("numpy()"))[()]

    def _for_python(self, method: str) -> Array:
        """The array, for `method`, which needs its numbers."""
        array = self._seen()
        if isinstance(array, Tracer):
            if active.eager():
                raise NoValueError(str(escaped(array)))
            advice = "Compute with tf or jnp functions, or print it with jax.debug.print"
            why = f"its value is only known inside the compiled program. {advice}"
            raise NoValueError(f"{method} of a tensor of shape {array.shape} that JAX is tracing: {why}")
        reading.record_escape("python", array)
        return array

    def _read_by_python(self) -> Array:
        reading.record_escape("python", self._array)
        return self._seen()

    def __jax_array__(self) -> Array:
        return self._read()

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        array = np.asarray(self._seen())  # under a trace JAX raises an error that says why
        reading.record_escape("python", self._array)
        if copy is False and dtype is not None and array.dtype != dtype:
            raise ValueError(f"copy=False, but the dtype changes from {array.dtype} to {np.dtype(dtype)}")
        return array.astype(dtype or array.dtype, copy=bool(copy))

    def __bool__(self) -> bool:
        array = self._read_by_python()
        return bool(array) if array.size else False  # JAX refuses an empty one

    def __float__(self) -> float:
        return float(self._read_by_python())

    def __int__(self) -> int:
        return int(self._read_by_python())

    def __complex__(self) -> complex:
        return complex(self._read_by_python())

    def __iter__(self) -> Iterator[Tensor]:
        if not self._array.ndim:
            raise TypeError("a scalar tensor cannot be iterated over")
        return (op(_getitem, self, i) for i in range(self._array.shape[0]))

    def __hash__(self) -> int:
        kind = type(self).__name__
        raise TypeError(f"{kind} is unhashable, since == compares elements: use {kind.lower()}.ref() as the key")

    def _repr_html_(self) -> str:
        kind = f"tf.Variable {self.name!r}" if isinstance(self, Variable) else "tf.Tensor"
        return value_html(self._array, kind, repr(self))


class Reference:
    """A hashable stand-in for a tensor or variable: equal where it refers to the same object, and sortable.

    >>> x = constant(1.0)
    >>> {x.ref(): "x"}[x.ref()], x.ref().deref() is x
    ('x', True)
    """

    __slots__ = ("_value",)

    def __init__(self, value: TensorLike):
        self._value = value

    def deref(self) -> TensorLike:
        return self._value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self._value is other._value

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Reference):
            raise TypeError(f"Cannot compare wrapped object with unwrapped object: {other!r}")
        return id(self._value) < id(other._value)

    def __gt__(self, other: object) -> bool:
        return not self < other and self != other

    def __hash__(self) -> int:
        return id(self._value)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._value!r}>"


def _numpy_text(array: Array) -> str:
    """The last part of a repr: ``numpy=1.0``."""
    if reason := unreadable(array):
        return reason
    numbers = np.asarray(array)
    return "numpy=" + (_own_lines(repr(numbers)) if numbers.shape else repr(numbers.item()))


def _own_lines(text: str) -> str:
    return "\n" + text if "\n" in text else text


# ---- Tensor ------------------------------------------------------------


class Tensor(_Value):
    """An array with TensorFlow's face: a value that does not change.

    It wraps a ``jax.Array`` (or tracer) and is accepted wherever JAX and NumPy accept an array. Make one with
    `constant` or `convert_to_tensor`.

    >>> x = constant([[1.0, 2.0]])
    >>> x
    <tf.Tensor: shape=(1, 2), dtype=float32, numpy=array([[1., 2.]], dtype=float32)>
    >>> print(x, x.shape, x.dtype)
    tf.Tensor([[1. 2.]], shape=(1, 2), dtype=float32) (1, 2) <dtype: 'float32'>
    >>> jnp.sum(x)
    Array(3., dtype=float32)
    """

    # `_array` is the one way to the value, so that it can become a property that computes it when first
    # asked.
    __slots__ = ("_array", "__weakref__")

    def __init__(self, array: Array):
        self._array = array

    def set_shape(self, shape: ShapeLike) -> None:
        """Checks that `shape` agrees. Raises ValueError if not."""
        if not self.shape.is_compatible_with(shape):
            raise ValueError(f"the tensor's shape {self.shape} is not compatible with shape={as_shape(shape)}")

    def __len__(self) -> int:
        if not self._array.ndim:
            raise TypeError("a scalar tensor has no len()")
        return self._array.shape[0]

    def __dlpack__(self, **options: Any) -> Any:
        """What other libraries' ``from_dlpack`` take, ``torch.from_dlpack``, say: they share the memory of the tensor."""
        return self._for_python("__dlpack__()").__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[Any, int]:
        return self._for_python("__dlpack_device__()").__dlpack_device__()

    def __buffer__(self, flags: int) -> memoryview:  # Python 3.12 and newer call it
        return np.asarray(self._for_python("memoryview()")).data

    def __index__(self) -> int:
        reading.record_escape("static", self._array)
        return self._array.__index__()

    def __format__(self, spec: str) -> str:
        return str(self) if isinstance(self._array, Tracer) else format(self.numpy(), spec)

    def __repr__(self) -> str:
        array = self._array
        if not isinstance(array, jax.Array):  # inside JAX's tree functions a Tensor may hold anything
            return f"<tf.Tensor: {array!r}>"
        return f"<tf.Tensor: shape={array.shape}, dtype={array.dtype}, {_numpy_text(array)}>"

    def __str__(self) -> str:
        array = self._array
        if not isinstance(array, jax.Array):
            return repr(self)
        reason = unreadable(array)
        text = f"<{reason}>" if reason else _own_lines(str(np.asarray(array)[()]))
        return f"tf.Tensor({text}, shape={array.shape}, dtype={array.dtype})"


buffers.export(Tensor)


class VariableValue(Tensor):
    """What ``variable.value`` is: a Tensor, as Keras requires it, that can also be called, as TensorFlow's can."""

    __slots__ = ()

    def __call__(self) -> Tensor:
        return Tensor(operation.apply(_read_value, self._array))


class VariableSlice(Tensor):
    """What ``variable[index]`` is: a Tensor with `assign`, which writes to that part of the variable."""

    __slots__ = ("_variable", "_index")

    def __init__(self, array: Array, variable: Variable, index: Index):
        self._array = array
        self._variable = variable
        self._index = index

    def assign(self, value: TensorLike, name: str | None = None, read_value: bool = True) -> Variable | None:
        """Writes `value`, broadcast to the slice's shape, into the variable and returns the variable.

        >>> v = Variable([1.0, 2.0, 3.0])
        >>> v[1:].assign([5.0, 6.0])
        <tf.Variable 'Variable:0' shape=(3,) dtype=float32, numpy=array([1., 5., 6.], dtype=float32)>
        """
        return self._variable._scatter("set", self._index, value, read_value, sliced=True)


# ---- Variable ------------------------------------------------------------


def _read_value(x):
    return jnp.copy(x)


# A copy that is no longer weakly typed: a variable's dtype is its own.
_copy = Trial(lambda x: jnp.array(x, dtype=x.dtype, copy=True))
_columns = Trial(lambda indices: tuple(jnp.moveaxis(indices, -1, 0)))
_updates = {"add": op_of(jnp.add, {}), "subtract": op_of(jnp.subtract, {})}


class Variable(_Value):
    """A value that can be assigned to. Reading one is noted by the active tapes.

    Args:
      initial_value: what `convert_to_tensor` takes, or a function that returns it.
      trainable: whether tapes watch it of their own accord when it is read.
      validate_shape: whether later assigned values must have the initial shape.
      name: shown in its repr, as ``name:0``.
      dtype: its dtype; by default that of `initial_value`.
      shape: what `assign` accepts: by default the shape of `initial_value`, None for an unknown size.

    Raises:
      ValueError: there is no `initial_value`, or it does not have `shape` or `dtype`.

    >>> v = Variable([1.0, 2.0], name="v")
    >>> v.assign_add([1.0, 1.0])
    <tf.Variable 'v:0' shape=(2,) dtype=float32, numpy=array([2., 3.], dtype=float32)>
    >>> jnp.sum(v)
    Array(5., dtype=float32)
    """

    _array: Array
    _created: int  # tapes list variables in the order of their creation
    # Keras's optimizers ask for it: no variable of ours is replaced by its gradient.
    overwrite_with_gradient = False

    def __init__(
        self,
        initial_value: TensorLike | Callable[[], TensorLike] | None = None,
        trainable: bool | None = None,
        validate_shape: bool = True,
        caching_device: Ignored = None,
        name: str | None = None,
        variable_def: Ignored = None,
        dtype: DTypeLike | None = None,
        import_scope: Ignored = None,
        constraint: Callable | None = None,
        synchronization: Any = None,
        aggregation: Any = None,
        shape: ShapeLike | None = None,
    ):
        if initial_value is None:
            raise ValueError("initial_value must be given: a tensor, array or number, or a function that returns one")
        self._name = scoped("Variable" if name is None else str(name))
        if constraint is not None and not callable(constraint):
            raise ValueError(f"constraint must be a function or None, got {constraint!r}")
        on_read = getattr(synchronization, "name", None) == "ON_READ"  # TensorFlow trains none that replicas keep apart
        self._trainable = not on_read if trainable is None else bool(trainable)
        self.constraint = constraint
        array = _own_array(initial_value() if callable(initial_value) else initial_value, dtype)
        reading.record_escape("new variable", into=array)
        declared = None if validate_shape else TensorShape(None)
        declared = declared if shape is None else as_shape(shape)
        if declared is not None and not declared.is_compatible_with(array.shape):
            raise ValueError(f"initial_value has shape {array.shape}, which does not agree with shape={declared}")
        self._declared = declared
        self._aggregation = aggregation
        self._array = replicas.placed(array)
        self._created = reading.next_variable()
        if reading.context.capture is not None:
            reading.context.capture.create(self)

    initializer = None  # a variable has its value from the start
    name = property(lambda self: f"{self._name}:0")
    path = property(lambda self: self._name)
    trainable = property(lambda self: self._trainable)

    @property
    def shape(self) -> TensorShape:
        return tuple.__new__(TensorShape, self._array.shape) if self._declared is None else self._declared

    @property
    def value(self) -> VariableValue:
        """The value, as a `Tensor` that may be called: both ``v.value`` (Keras) and ``v.value()`` (TensorFlow) work."""
        return VariableValue(reading.read(self))

    def read_value(self) -> Tensor:
        """The present value as a `Tensor` that later assignments do not change."""
        return Tensor(operation.apply(_read_value, reading.read(self)))

    def is_initialized(self, name: str | None = None) -> Tensor:
        return constant(True)

    def _read(self) -> Array:
        return reading.read(self)

    def _seen(self) -> Array:
        reading.access(self)
        return reading.held(self)

    def __getitem__(self, index: Index) -> VariableSlice:
        part = Tensor(reading.read(self))[index]
        return VariableSlice(part._array, self, index)

    def assign(self, value: TensorLike, use_locking=False, name=None, read_value=True) -> Variable | None:
        """Replaces the value and returns the variable, or None where `read_value` is false.

        Raises:
          ValueError: `value` has another shape, or is a tensor of another dtype.
          RuntimeError: under a plain ``jax.jit``, from which the new value could not escape.
        """
        array = _own_array(value, self._array.dtype)
        if not self.shape.is_compatible_with(array.shape):
            raise ValueError(f"Variable {self.name!r} has shape {self.shape}: shape {array.shape} does not fit")
        return self._store(replicas.aggregated(array, self._aggregation, self.name), read_value)

    def assign_add(self, delta: TensorLike, use_locking=False, name=None, read_value=True) -> Variable | None:
        """Adds `delta`, of the variable's shape, and returns the variable; InvalidArgumentError on another shape."""
        return self._update("add", delta, read_value)

    def assign_sub(self, delta: TensorLike, use_locking=False, name=None, read_value=True) -> Variable | None:
        """Subtracts `delta`, of the variable's shape, and returns the variable; InvalidArgumentError on another."""
        return self._update("subtract", delta, read_value)

    def _update(self, name: str, delta: TensorLike, read_value: bool) -> Variable | None:
        held = reading.held(self)
        array = raw(delta, held.dtype)
        if array.shape != held.shape:
            shapes = f"has shape {held.shape}: it cannot be updated by a value of shape {array.shape}"
            raise InvalidArgumentError(f"Variable {self.name!r} {shapes}")
        array = replicas.aggregated(array, self._aggregation, self.name)
        return self._change(lambda held: runner.current.run(_updates[name], (held, array)), array, read_value)

    def _change(
        self, change: Callable[[Array], Array], by: Array | None = None, read_value: bool = False
    ) -> Variable | None:
        """Stores ``change(held)``: what another thread assigns meanwhile is changed in turn, not lost."""
        if not self._exchange(change, by):
            with reading.tracing:  # the others wait this time
                while not self._exchange(change, by):
                    pass
        return self if read_value else None

    def _exchange(self, change: Callable[[Array], Array], by: Array | None) -> bool:
        held = reading.held(self)
        if reading.plain(current_trace()) and reading.context.used is None:  # what is below, where nobody has to know
            new = change(held)
            with reading.tracing:
                unchanged = self._array is held
                if unchanged:
                    self._array = new
            return unchanged
        with active.outside():
            new = change(held)
        with reading.tracing:
            if reading.held(self) is not held:
                return False
            reading.record_escape("state", held, by, into=new)
            self._store(new)
            return True

    def _store(self, array: Array, read_value: bool = True) -> Variable | None:
        reading.access(self)  # of what it held so far
        if type(array) is ConcreteArray and type(array.sharding) is SingleDeviceSharding:  # a host's array, or zeros
            array = placed(self._array, array)
        if reading.context.capture is not None:
            reading.context.capture.assign(self, "_array", array)
        elif (isinstance(array, Tracer) or active.staging()) and not isinstance(self._array, Tracer):
            raise VariableInTraceError(
                f"Variable {self.name!r} was assigned to while JAX traces a function (jax.jit, jax.grad, scan ...): "
                "the value would leak out of the trace. Decorate the function with tapejax.function, which threads "
                "Variables through, or return the new value and assign it outside"
            )
        with reading.tracing:  # a function that another thread traces has this variable's place, and gives it back
            self._array = array
        reading.record_escape("assigned", into=array)
        return self if read_value else None

    # Updates of parts. An index is what NumPy takes.

    def _scatter(
        self, how: str, index: Index, value: TensorLike, read_value: bool = True, sliced: bool = False
    ) -> Variable | None:
        held = reading.held(self)
        update = raw(value, held.dtype)
        if not sliced:
            _require_rows(index, update.shape, held.shape)

        parts = [_plain_index(part) for part in (index if isinstance(index, tuple) else (index,))]
        arrays = [part for part in parts if is_array_like(part)]
        layout = tuple([None if is_array_like(part) else (part,) for part in parts])
        masked = any([part.dtype == bool for part in arrays])  # which JAX takes as values only

        def change(held: Array) -> Array:
            try:
                if masked:
                    return _put(held, update, *arrays, how=how, layout=layout)
                return runner.current.run(op_of(_put, {"how": how, "layout": layout}), (held, update, *arrays))
            except (TypeError, ValueError) as error:
                _refuse_shapes(error, "scatter", (held, update))
                raise

        return self._change(change, update, read_value)

    if TYPE_CHECKING:  # `ops.operators` attaches them

        def _scatter_slices(
            self, sparse_delta: Slices, use_locking: bool = False, name: str | None = None
        ) -> Variable: ...
        def _scatter_nd(self, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Variable: ...

        scatter_update = scatter_add = scatter_sub = scatter_max = scatter_min = _scatter_slices
        scatter_mul = scatter_div = _scatter_slices
        scatter_nd_update = scatter_nd_add = scatter_nd_sub = scatter_nd_max = scatter_nd_min = _scatter_nd

    def __copy__(self) -> Variable:
        return self  # TensorFlow's shallow copy shares the state, too

    def __repr__(self) -> str:
        array = self._seen()
        if not isinstance(array, jax.Array):
            return f"<tf.Variable {self.name!r} {array!r}>"
        return f"<tf.Variable {self.name!r} shape={self.shape} dtype={array.dtype}, {_numpy_text(array)}>"


def _refuses(operator: str, instead: str) -> Callable:
    why = f"Variable {operator} value is not supported: it would put a tensor in the variable's place."
    advice = f"Use {instead} to change the variable, or `v = v {operator[:-1]} value` for a tensor"

    def refuse(self: Variable, other: TensorLike) -> NoReturn:
        raise RuntimeError(f"{why} {advice}")

    return refuse


for _method, _operator, _instead in (
    ("__iadd__", "+=", "v.assign_add(value)"),
    ("__isub__", "-=", "v.assign_sub(value)"),
    ("__imul__", "*=", "v.assign(v * value)"),
    ("__itruediv__", "/=", "v.assign(v / value)"),
    ("__ipow__", "**=", "v.assign(v ** value)"),
):
    setattr(Variable, _method, _refuses(_operator, _instead))


def _own_array(value: TensorLike, dtype: DTypeLike | None) -> Array:
    """An array without other references, for a variable to keep."""
    array = _array_or_converted(value, dtype)
    if array is None and not (isinstance(value, (list, tuple)) and _holds_arrays(value)):
        return _constant(value, dtype)
    array = raw(value if array is None else array, dtype)
    with active.outside():
        own = _copy(array)
    reading.record_escape("state", array, into=own)
    return own


def _put(held, update, *arrays, how, layout):
    """`held` with `update` at an index, whose parts are `arrays` and what is in `layout`."""
    left = iter(arrays)
    index = tuple([next(left) if part is None else part[0] for part in layout])
    return getattr(held.at[index], how)(update)


def _plain_index(index: Any) -> Any:
    return index if isinstance(index, (int, slice)) or index is None or index is Ellipsis else raw(index)


def _require_rows(index: Index, updates: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Raises InvalidArgumentError for updates of another shape than what `index` stands for, or a known index out of range."""
    parts = [raw(part) for part in index] if isinstance(index, tuple) else [raw(index)]
    for part in parts:
        if not jnp.issubdtype(part.dtype, np.integer):
            raise DTypeError(f"indices must be integer, got {part.dtype}. Use tf.cast(indices, tf.int32)")
    wanted = (*parts[0].shape, *shape[len(parts) :])
    if updates != wanted and (updates or isinstance(index, tuple)):  # a number is broadcast to all rows
        raise InvalidArgumentError(f"updates must have shape {wanted}, got {updates}")
    for part, length in zip(parts, shape, strict=False):
        if isinstance(part, Tracer) or next(iter(part.devices())).platform != "cpu":
            continue
        numbers = np.asarray(part)
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < length:
            raise InvalidArgumentError(f"indices must be in [0, {length}), got {numbers}")


def _nd_index(indices: TensorLike) -> tuple:
    with active.outside():
        columns = tuple(_columns(raw(indices)))
    if not columns:
        raise InvalidArgumentError("indices has rows of length 0: each row must index an axis")
    return columns


# ---- to JAX both are containers of one array ------------------------------------------------------------


def _unflatten_variable(trainable: bool, children: Sequence) -> Variable:
    variable = object.__new__(Variable)
    variable._name, variable._trainable, variable._array = "Variable", trainable, children[0]
    variable._declared = variable.constraint = None
    return variable


for _kind in (Tensor, VariableValue, VariableSlice):
    jax.tree_util.register_pytree_node(_kind, lambda x: ((x._array,), None), lambda _, children: Tensor(children[0]))
# Only what a rebuilt variable needs is part of the structure: JAX compiles anew for every new structure.
jax.tree_util.register_pytree_node(Variable, lambda v: ((reading.read(v),), v._trainable), _unflatten_variable)
for _class in (Tensor, VariableValue, VariableSlice, Variable):
    refuse_type(
        _class,
        "JAX wants an array here, and this is a tapejax tensor or variable. A function that jax.grad differentiates has to "
        "return jnp.asarray(y) in place of y: jax.grad(lambda x: jnp.asarray(f(x))); a tape takes the tensor as it is. "
        "Functions of jax.lax take jnp.asarray(x)",
    )
