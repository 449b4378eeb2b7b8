"""TensorFlow's dtypes and shapes over NumPy's: `DType` compares with both, `TensorShape` is a tuple."""

from __future__ import annotations

import builtins
import math
import warnings
from collections.abc import Iterable
from typing import Any, SupportsIndex, cast

import jax
import jax.numpy as jnp
import numpy as np

from ...jaxprs import fence
from ...places import levels_to_user
from .errors import NarrowingWarning
from .types import DTypeLike, ShapeLike

# TensorFlow's numbers for its types: `as_dtype` understands them, and pickles of ported programs hold them.
_ENUMS = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "string": 7, "complex64": 8,
    "int64": 9, "bool": 10, "bfloat16": 14, "uint16": 17, "complex128": 18, "float16": 19, "uint32": 22, "uint64": 23,
}  # fmt: skip


class DType:
    """A type of element, such as ``tf.float32``; one object per type.

    It equals NumPy's dtype, the scalar class of NumPy or ``jnp``, and the name; it is accepted as ``dtype=`` by NumPy
    and JAX through its `dtype` attribute.

    >>> float32 == np.float32 == jnp.float32, float32 == "float32"
    (True, True)
    >>> np.zeros(2, float32).dtype
    dtype('float32')
    """

    __slots__ = ("name", "dtype", "_kind")

    def __init__(self, name: str, dtype: np.dtype):
        self.name = name
        self.dtype = dtype
        # The rank in which Python numbers fit: a bool into an integer, an integer into a float, a
        # float into a complex.
        families = (np.bool_, np.integer, np.floating, np.complexfloating)
        self._kind = next((i for i, family in enumerate(families) if jnp.issubdtype(dtype, family)), -1)

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __str__(self) -> str:
        return f"<dtype: {self.name!r}>"

    def __eq__(self, other: object) -> builtins.bool:
        if type(other) is DType:
            return self is other
        if other is None:  # NumPy reads None as float64
            return False
        try:
            return self is as_dtype(other)
        except TypeError:
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __reduce__(self):
        return as_dtype, (self.name,)

    is_bool = property(lambda self: self._kind == 0)
    is_integer = property(lambda self: self._kind == 1)
    is_floating = property(lambda self: self._kind == 2)
    is_complex = property(lambda self: self._kind == 3)
    is_numeric = property(lambda self: self._kind > 0, doc="Whether it is integer, floating or complex; not bool.")
    is_unsigned = property(lambda self: jnp.issubdtype(self.dtype, np.unsignedinteger))
    base_dtype = property(lambda self: self)
    as_numpy_dtype = property(lambda self: self.dtype.type, doc="NumPy's scalar class: ``np.float32``.")
    as_datatype_enum = property(lambda self: _ENUMS[self.name])
    min = property(lambda self: self._limit("min"), doc="The lowest finite value, of an integer or floating type.")
    max = property(lambda self: self._limit("max"), doc="The highest finite value, of an integer or floating type.")

    @property
    def real_dtype(self) -> DType:
        """The type of the real part: float32 for complex64, itself for a real type."""
        return as_dtype(np.empty(0, self.dtype).real.dtype) if self.is_complex else self

    @property
    def size(self) -> int:
        """Bytes per element."""
        return 0 if self.name == "string" else self.dtype.itemsize

    def _limit(self, name: str):
        if self.is_integer:
            return int(getattr(jnp.iinfo(self.dtype), name))
        if self.is_floating:
            return getattr(jnp.finfo(self.dtype), name)
        raise TypeError(f"{self!r} has no {name}imum value: only integer and floating types have one")

    def is_compatible_with(self, other: DTypeLike) -> builtins.bool:
        return self == other

    def admits(self, other: DType) -> builtins.bool:
        """Whether a Python number of type `other` may become this type: 1 fits a float, 1.5 fits no integer."""
        if other is bool:
            return self.name in _FIT_BOOLS
        return 0 <= other._kind <= self._kind


_FIT_BOOLS = "bool int32 int64 uint64 float16 float32 float64 complex128".split()  # of Python's; TensorFlow's choice
# By name, NumPy dtype and scalar class, so that one lookup finds a dtype.
_known: dict[Any, DType] = {}


def _define(name: str, numpy_dtype: DTypeLike | None = None) -> DType:
    dtype = DType(name, np.dtype(numpy_dtype or name))
    for key in (name, dtype.dtype, dtype.dtype.type, _ENUMS.get(name, name)):
        _known[key] = dtype
    return dtype


bfloat16, float16, float32, float64 = map(_define, ("bfloat16", "float16", "float32", "float64"))
int8, int16, int32, int64 = map(_define, ("int8", "int16", "int32", "int64"))
uint8, uint16, uint32, uint64 = map(_define, ("uint8", "uint16", "uint32", "uint64"))
complex64, complex128, bool = map(_define, ("complex64", "complex128", "bool"))
string = _define("string", np.object_)  # a name to compare with: no JAX array holds strings
half, double = float16, float64
_known.update({"half": float16, "float": float32, "double": float64, builtins.float: float32, builtins.bool: bool})


def as_dtype(type_value: object) -> DType:
    """The `DType` for a name, a NumPy or ``jnp`` type, a TensorFlow type number, or a `DType`.

    Like TensorFlow, takes Python's ``float`` (float32) and ``bool`` but not ``int`` or ``complex``.

    Raises:
      TypeError: if `type_value` names no type.

    >>> as_dtype("half"), as_dtype(np.int64), as_dtype(float)
    (tf.float16, tf.int64, tf.float32)
    """
    if type(type_value) is DType:
        return type_value
    try:
        return _known[type_value]
    except (KeyError, TypeError):
        return _find(type_value)


_did_you_mean = {int: " (did you mean tf.int32?)", complex: " (did you mean tf.complex64?)"}


def _find(type_value: Any) -> DType:
    if getattr(type_value, "type", None) is jax.dtypes.prng_key:  # an argument of a function, as any array of JAX's
        return _known.setdefault(type_value, DType(type_value.name, type_value))
    hint = _did_you_mean.get(type_value, "") if isinstance(type_value, type) else ""
    # np.dtype is generous: it takes None, int, struct strings ...; only what is a type by name or class
    # is meant here.
    numpy_dtype: Any = getattr(type_value, "dtype", type_value if isinstance(type_value, (str, type)) else None)
    if numpy_dtype is not None and not hint and type_value is not str:
        try:
            numpy_dtype = np.dtype(numpy_dtype)
        except TypeError:
            numpy_dtype = None
        if numpy_dtype in _known:
            return _known[numpy_dtype]
        if numpy_dtype is not None and jnp.issubdtype(numpy_dtype, np.number):  # float8_e4m3fn, int4 ...
            return _define(numpy_dtype.name, numpy_dtype)
    raise TypeError(
        f"type_value={type_value!r} is not a dtype: give one such as tf.float32, np.float32, 'float32'{hint}"
    )


_narrow = {float64.dtype: float32.dtype, int64.dtype: int32.dtype, uint64.dtype: uint32.dtype}
_narrow[complex128.dtype] = complex64.dtype
_warned = False


def narrowed(dtype: np.dtype) -> np.dtype:
    """`dtype`, or its 32-bit sister while ``jax_enable_x64`` is off; does not warn."""
    wide: builtins.bool = fence.settings.jax_enable_x64
    return dtype if wide else _narrow.get(dtype, dtype)


def requested(dtype: object) -> np.dtype:
    """The NumPy dtype that JAX will use where the user asks for `dtype`.

    Warns, once per process, when a 64-bit type was asked for while ``jax_enable_x64`` is off.
    """
    global _warned
    asked = as_dtype(dtype).dtype
    kept = narrowed(asked)
    if kept != asked and not _warned:
        warnings.warn(
            f"{asked} becomes {kept}: JAX keeps 64-bit types only when jax_enable_x64 is on. Set "
            "jax.config.update('jax_enable_x64', True) at the start of the program to keep 64 bits, or give 32-bit "
            "data. This is said once per process.",
            NarrowingWarning,
            stacklevel=levels_to_user(),
        )
        _warned = True  # only after the warning went through: where warnings are errors, each such place is one
    return kept


class TensorShape(tuple):
    """A shape: a tuple of sizes, None for a size that is not known; ``TensorShape(None)`` has no known rank.

    It prints like a tuple, equals a list or tuple of the same sizes, and slices and sums are shapes too.

    >>> shape = TensorShape([2, 3])
    >>> print(shape, shape == [2, 3], shape[1:].as_list(), shape.num_elements())
    (2, 3) True [3] 6
    >>> shape + [4]
    TensorShape([2, 3, 4])
    """

    __slots__ = ()

    def __new__(cls, dims: ShapeLike = ()) -> TensorShape:
        if isinstance(dims, TensorShape):
            return dims
        if dims is None:
            return tuple.__new__(_UnknownShape)
        if not isinstance(dims, Iterable) or isinstance(dims, (str, bytes)):
            dims = (cast("SupportsIndex", dims),)
        return tuple.__new__(TensorShape, map(_size, dims))

    def __repr__(self) -> str:
        return f"TensorShape({list(self)})"

    def __str__(self) -> str:
        return tuple.__repr__(self)

    def __eq__(self, other: Any) -> builtins.bool:
        if isinstance(other, tuple):
            return not isinstance(other, _UnknownShape) and tuple.__eq__(self, other)
        try:
            return tuple.__eq__(self, as_shape(other)) if other is not None else False
        except (TypeError, ValueError):
            return NotImplemented

    def __ne__(self, other: object) -> builtins.bool:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    __hash__ = tuple.__hash__

    def __bool__(self) -> builtins.bool:
        return True  # its rank is known, even if it is 0

    def __getitem__(self, key):
        item = tuple.__getitem__(self, key)
        return tuple.__new__(TensorShape, item) if type(key) is slice else item

    def __add__(self, other: ShapeLike) -> TensorShape:  # type: ignore[override]  # it takes more than a tuple
        return self.concatenate(other)

    def __radd__(self, other: ShapeLike) -> TensorShape:
        return as_shape(other).concatenate(self)

    def __reduce__(self):
        return TensorShape, (list(self),)

    rank = property(lambda self: len(self))
    ndims = property(lambda self: self.rank)
    dims = property(lambda self: list(self))

    def as_list(self) -> list:
        """The sizes as a list. Raises ValueError when the rank is not known."""
        return list(self)

    def num_elements(self) -> int | None:
        """The number of elements, None while a size is not known."""
        return math.prod(self) if self.is_fully_defined() else None

    def is_fully_defined(self) -> builtins.bool:
        return None not in tuple(self)

    def concatenate(self, other: ShapeLike) -> TensorShape:
        other = as_shape(other)
        return other if other.rank is None else tuple.__new__(TensorShape, (*self, *other))

    def is_compatible_with(self, other: ShapeLike) -> builtins.bool:
        """Whether both can describe one tensor: an unknown size agrees with any."""
        other = as_shape(other)
        if other.rank is None:
            return True
        same = len(self) == len(other)
        return same and all(a is None or b is None or a == b for a, b in zip(self, other, strict=True))

    def merge_with(self, other: ShapeLike) -> TensorShape:
        """What both say together. Raises ValueError when they disagree."""
        other = as_shape(other)
        self.assert_is_compatible_with(other)
        if other.rank is None:
            return self
        return TensorShape([b if a is None else a for a, b in zip(self, other, strict=True)])

    def with_rank(self, rank: int) -> TensorShape:
        """The shape, if it can have that rank. Raises ValueError when it has another."""
        return self.merge_with([None] * rank)

    def assert_has_rank(self, rank: int) -> None:
        self.with_rank(rank)

    def assert_is_compatible_with(self, other: ShapeLike) -> None:
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {as_shape(other)} are not compatible")


class _UnknownShape(TensorShape):
    """The shape of which not even the rank is known; as a tuple it is empty."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "TensorShape(None)"

    def __str__(self) -> str:
        return "<unknown>"

    def __eq__(self, other: object) -> builtins.bool:
        return other is None or isinstance(other, _UnknownShape)

    __hash__ = tuple.__hash__

    def __bool__(self) -> builtins.bool:
        return False

    def __len__(self) -> int:
        raise ValueError("a shape of unknown rank has no len()")

    def __iter__(self):
        raise ValueError("a shape of unknown rank cannot be iterated over")

    def __getitem__(self, key):
        return self if type(key) is slice else None

    def __reduce__(self):
        return TensorShape, (None,)

    rank = dims = property(lambda self: None)

    def as_list(self) -> list:
        raise ValueError("a shape of unknown rank has no as_list()")

    def is_fully_defined(self) -> builtins.bool:
        return False

    def is_compatible_with(self, other: ShapeLike) -> builtins.bool:
        return True

    def merge_with(self, other: ShapeLike) -> TensorShape:
        return as_shape(other)

    def concatenate(self, other: ShapeLike) -> TensorShape:
        return self


def as_shape(shape: ShapeLike) -> TensorShape:
    """`shape` as a `TensorShape`; a number is a shape of rank one, None a shape of unknown rank."""
    return shape if isinstance(shape, TensorShape) else TensorShape(shape)


def is_symbolic(size: object) -> builtins.bool:
    """Whether `size` is one of ``jax.export.symbolic_shape``, which few programs import."""
    return type(size).__name__ == "_DimExpr"


def _size(dim: Any) -> int | None:
    if dim is None:
        return None
    try:
        size = dim.__index__()
    except (AttributeError, TypeError):
        if is_symbolic(dim):  # a program for any size is being traced
            return dim
        raise TypeError(f"a shape's sizes are integers or None; got {dim!r} of type {type(dim).__name__}") from None
    if size < 0:
        raise ValueError(f"a shape's sizes are not negative; got {size}")
    return size
