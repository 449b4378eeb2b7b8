"""What the functions of tensors take and give, by name.

Where so many types are taken that a union would not be read, and for JAX's tracers, which are of no public class, it is ``Any``.
The names say what a reader may expect; `tapejax.jaxprs.types` has those of the core.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from types import EllipsisType
from typing import Any, Protocol, SupportsFloat, SupportsIndex, TypeAlias

import numpy as np

TensorLike: TypeAlias = Any  # a Tensor, a Variable, a jax.Array, NumPy's, a Python number, or a nested list of these
Nest: TypeAlias = Any  # a tensor or another leaf, or a list, tuple, dict ... of nests (tf.nest); to a tape any pytree
Number: TypeAlias = complex | np.number  # Python's int, float, bool or complex, or a NumPy value of one element
Array: TypeAlias = Any  # an array of JAX's, or a tracer that stands for one
VariableLike: TypeAlias = Any  # a Variable, or a library's: of Keras, Flax ...


class _DTypeLike(Protocol):  # TensorFlow's
    name: str
    dtype: np.dtype


DTypeLike: TypeAlias = _DTypeLike | np.dtype | type | str  # also NumPy's and JAX's scalar types, and Python's
ShapeLike: TypeAlias = SupportsIndex | Iterable[SupportsIndex | None] | None  # one size or several; None: of any rank
AxisLike: TypeAlias = SupportsIndex | Sequence[SupportsIndex]  # one axis or several; an integer tensor is an index, too
IntLike: TypeAlias = SupportsIndex  # an integer, or a scalar tensor that holds one
IntsLike: TypeAlias = AxisLike  # one integer or several
FloatLike: TypeAlias = SupportsFloat  # a number, or a scalar tensor that holds one
Index: TypeAlias = (
    SupportsIndex | slice | EllipsisType | Sequence[Any] | None
)  # what stands in x[...], a tensor included
Ignored: TypeAlias = object  # an argument of TensorFlow's that changes nothing here

PaddingLike: TypeAlias = str | Sequence[Sequence[int]]  # "SAME", "VALID", or how much before and after, of each axis
PathLike: TypeAlias = str | bytes | os.PathLike[str]
