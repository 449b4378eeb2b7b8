"""``tf.IndexedSlices``: some rows of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ..values import nest
from ..values.conversion import convert_to_tensor
from ..values.dtypes import TensorShape
from ..values.operations import op
from ..values.tensor import Tensor
from ..values.types import Array, ShapeLike, TensorLike
from .table import known


@nest.composite
@jax.tree_util.register_pytree_node_class
class IndexedSlices:
    """Rows of a tensor and where they are: what ``Variable.scatter_add`` and its like take.

    A row may occur more than once, and is then the sum. `clip_by_norm` and its like work on the rows as they stand, as TensorFlow
    does.

    Args:
      values: the rows.
      indices: the number of each.
      dense_shape: the shape of the whole, by which it becomes a tensor.

    >>> import tapejax as tf
    >>> v = tf.Variable([1.0, 2.0, 3.0])
    >>> print(v.scatter_add(tf.IndexedSlices([10.0, 20.0], [0, 2])).numpy())
    [11.  2. 23.]
    """

    def __init__(self, values: TensorLike, indices: TensorLike, dense_shape: ShapeLike | None = None):
        self._values, self._indices = values, indices
        self._shape: Any = dense_shape  # as it was given: sizes, or an integer tensor

    values = property(lambda self: self._values, doc="The rows, as they were given.")
    indices = property(lambda self: convert_to_tensor(self._indices, dtype_hint="int32"), doc="The number of each row.")

    @property
    def dense_shape(self) -> Tensor | None:
        """The shape of the whole, or None."""
        return None if self._shape is None else convert_to_tensor(self._shape)

    dtype = property(lambda self: convert_to_tensor(self._values).dtype, doc="The rows' dtype.")

    @property
    def shape(self) -> TensorShape:
        """The shape of the whole, as far as it is known."""
        if self._shape is None:
            return TensorShape([None] * convert_to_tensor(self._values).ndim)
        return TensorShape(map(int, self._shape))

    def __jax_array__(self) -> Array:
        if self._shape is None:
            raise ValueError(f"an IndexedSlices without dense_shape cannot become a tensor: {self}")
        return op(_indexed_slices, self.values, self.indices, length=int(self._shape[0]))._array

    def __tf_flatten__(self) -> tuple[None, list[Tensor]]:
        parts = convert_to_tensor(self._values), self.indices, self.dense_shape
        return None, [part for part in parts if part is not None]

    @classmethod
    def __tf_unflatten__(cls, metadata: None, components: Sequence[TensorLike]) -> IndexedSlices:
        return cls(*components)

    def tree_flatten(self) -> tuple[tuple[TensorLike, ...], tuple[int, ...] | None]:
        # A program is made for the size of the whole where that is known.
        if isinstance(self._shape, Tensor) and known(self._shape._array) is None:
            return (self._values, self._indices, self._shape), None
        return (self._values, self._indices), None if self._shape is None else tuple(int(size) for size in self._shape)

    @classmethod
    def tree_unflatten(cls, sizes: tuple[int, ...] | None, parts: Sequence[TensorLike]) -> IndexedSlices:
        return cls(*parts, *(() if sizes is None else (sizes,)))

    def with_values(self, values: TensorLike) -> IndexedSlices:
        """Other rows at the same places."""
        return IndexedSlices(values, self._indices, self._shape)

    def __neg__(self) -> IndexedSlices:
        return self.with_values(op(jnp.negative, self.values))

    def __repr__(self) -> str:
        shape = "" if self._shape is None else f", dense_shape={self._shape}"
        return f"IndexedSlices(indices={self.indices}, values={self.values}{shape})"


def _indexed_slices(values, indices, length):
    return jnp.zeros((length, *values.shape[1:]), values.dtype).at[indices].add(values)
