"""``tf.sparse``: matrices of a few values and where they are, as far as programs differentiate with them: dense results, by JAX's
gathers and scatters. The number of values is part of a shape, and therefore known."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...jaxprs.fence import Tracer
from ..values import nest
from ..values.conversion import convert_to_tensor, is_array_like, raw
from ..values.dtypes import DType, TensorShape, as_dtype, requested
from ..values.errors import InvalidArgumentError
from ..values.operations import op
from ..values.tensor import Tensor
from ..values.types import AxisLike, DTypeLike, IntLike, IntsLike, ShapeLike, TensorLike
from . import math as _math
from .array import broadcast_to, gather, gather_nd, scatter_nd, stop_gradient, tensor_scatter_nd_add
from .array import concat as _concat
from .linalg import adjoint
from .table import Sparse, axis_of, host, known, shape_of


@nest.composite
@jax.tree_util.register_pytree_node_class
class SparseTensor(Sparse):
    """A tensor that is zero but for `values` at `indices`.

    Args:
      indices: the place of each value, int64 of shape (values, axes).
      values: the values; they carry the gradient.
      dense_shape: the shape of the whole, known integers.

    Raises:
      ValueError: the shapes do not fit each other.

    >>> import tapejax as tf
    >>> matrix = tf.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 2])
    >>> print(tf.sparse.sparse_dense_matmul(matrix, tf.constant([[1.0], [10.0]])).numpy())
    [[20.]
     [ 3.]]
    """

    def __init__(self, indices: TensorLike, values: TensorLike, dense_shape: ShapeLike):
        self._sizes = tuple(int(size) for size in host(dense_shape, "dense_shape"))
        self.indices = _indices(indices)
        self.values = convert_to_tensor(values)
        if self.indices.shape != (*self.values.shape, len(self._sizes)) or self.values.shape.rank != 1:
            raise ValueError(
                f"indices of shape {tuple(self.indices.shape)}, values of shape {tuple(self.values.shape)} and a dense_shape of "
                f"{len(self._sizes)} sizes do not fit: they are (N, sizes), (N,) and (sizes,)"
            )

    dense_shape = property(lambda self: _indices(np.array(self._sizes, np.int64)), doc="The shape, as a tensor.")
    shape = property(lambda self: TensorShape(self._sizes), doc="The shape.")

    @property
    def dtype(self) -> DType:
        """The values' dtype."""
        return self.values.dtype

    def get_shape(self) -> TensorShape:
        """The shape."""
        return self.shape

    def with_values(self, new_values: TensorLike) -> SparseTensor:
        """Other values in the same places."""
        return SparseTensor(self.indices, new_values, self._sizes)

    def __mul__(self, other: TensorLike) -> SparseTensor:
        """The values times what a dense tensor, broadcast to this shape, has in their places."""
        return self.with_values(self.values * self._places_of(other))

    def __truediv__(self, other: TensorLike) -> SparseTensor:
        """The values over what a dense tensor, broadcast to this shape, has in their places."""
        return self.with_values(self.values / self._places_of(other))

    def _places_of(self, dense: TensorLike) -> TensorLike:
        tensor = convert_to_tensor(dense, dtype_hint=self.dtype)
        return gather_nd(broadcast_to(tensor, self._sizes), self.indices) if tensor.shape.rank else tensor

    def __tf_flatten__(self) -> tuple[tuple[()], tuple[Tensor, Tensor, Tensor]]:
        return (), (self.indices, self.values, self.dense_shape)

    @classmethod
    def __tf_unflatten__(cls, metadata: tuple[()], components: Sequence[TensorLike]) -> SparseTensor:
        return cls(*components)

    def tree_flatten(self) -> tuple[tuple[Tensor, Tensor], tuple[int, ...]]:
        """For JAX, which takes it apart."""
        return (self.indices, self.values), self._sizes

    @classmethod
    def tree_unflatten(cls, sizes: tuple[int, ...], parts: Sequence[Any]) -> SparseTensor:
        """For JAX, which puts it together: of whatever it has made of the parts."""
        made = object.__new__(cls)
        made._sizes = sizes
        made.indices, made.values = (Tensor(x) if isinstance(x, jax.Array) else x for x in parts)
        return made

    def __repr__(self) -> str:
        return f"SparseTensor(indices={self.indices!s}, values={self.values!s}, dense_shape={self.dense_shape!s})"


def _indices(x: TensorLike) -> Tensor:
    if is_array_like(x):
        return convert_to_tensor(x)
    return Tensor(jnp.asarray(np.asarray(x, np.int64), int))  # the widest integers that there are


def from_dense(tensor: TensorLike, name: str | None = None) -> SparseTensor:
    """The values of a tensor that are not zero, and where they are.

    Raises:
      TypeError: the tensor's value is not known, as in a compiled function: how many there are is a shape.
    """
    array = raw(tensor)
    places = np.argwhere(host(tensor, "the tensor of tf.sparse.from_dense") != 0)
    return SparseTensor(places, gather_nd(array, _indices(places)), array.shape)


def to_dense(
    sp_input: SparseTensor,
    default_value: TensorLike | None = None,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """The whole tensor.

    Args:
      default_value: what stands where there is no value, zero by default.
      validate_indices: whether indices, if they are known, must be in order and different.

    Raises:
      InvalidArgumentError: they are not, or lie outside.
    """
    places = _require_inside(sp_input)
    if validate_indices and places is not None:
        _require_order(places, sp_input._sizes)
    default = convert_to_tensor(0 if default_value is None else default_value, dtype=sp_input.dtype)
    return op(_scattered, sp_input.values, sp_input.indices, default, sizes=sp_input._sizes)


def _scattered(values, places, default, sizes):
    return jnp.broadcast_to(default, sizes).at[tuple(places.T)].set(values)


def _require_inside(x: SparseTensor) -> np.ndarray | None:
    """The indices, if they are known; they lie inside then."""
    array = raw(x.indices)
    places = None if isinstance(array, Tracer) else np.asarray(array)
    if places is not None and not ((places >= 0) & (places < np.array(x._sizes, np.int64))).all():
        raise InvalidArgumentError(f"indices {places.tolist()} are out of bounds of the shape {list(x._sizes)}")
    return places


def _require_order(places: np.ndarray, sizes: tuple[int, ...]) -> None:
    flat = np.ravel_multi_index(tuple(places.T), sizes) if len(places) else places
    if (np.diff(flat) <= 0).any():
        raise InvalidArgumentError("indices are repeated or out of order: tf.sparse.reorder puts them in order")


def sparse_dense_matmul(
    sp_a: SparseTensor | TensorLike,
    b: SparseTensor | TensorLike,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    name: str | None = None,
) -> Tensor:
    """The matrix product of a sparse and a dense matrix, in either order; `adjoint_a`, `adjoint_b` as `tf.matmul` has them.

    Raises:
      TypeError: neither is sparse.
      ValueError, InvalidArgumentError: they are no matrices, or their shapes or dtypes do not fit.
    """
    if not isinstance(sp_a, SparseTensor) and not isinstance(b, SparseTensor):
        raise TypeError(f"one of the matrices must be a SparseTensor, got {type(sp_a)} and {type(b)}")
    if not isinstance(sp_a, SparseTensor):  # (a b)^H = b^H a^H
        return adjoint(sparse_dense_matmul(b, sp_a, not adjoint_b, not adjoint_a))
    dense = convert_to_tensor(b, dtype=sp_a.dtype)
    rows, columns = (0, 1) if not adjoint_a else (1, 0)
    dense = adjoint(dense) if adjoint_b else dense
    if len(sp_a._sizes) != 2 or dense.ndim != 2 or sp_a._sizes[columns] != dense.shape[0]:
        raise InvalidArgumentError(
            f"cannot multiply a sparse matrix of shape {sp_a._sizes} and a dense one of shape {tuple(dense.shape)}: "
            f"{'adjoint_a, ' * adjoint_a}k (inner) dimensions differ"
        )
    _require_inside(sp_a)
    static = {"rows": rows, "columns": columns, "count": sp_a._sizes[rows]}
    return op(_multiplied, sp_a.values, sp_a.indices, dense, **static)


def _multiplied(values, places, dense, rows, columns, count):
    values = jnp.conj(values) if rows else values
    return jax.ops.segment_sum(values[:, None] * dense[places[:, columns]], places[:, rows], count)


def _moved(places: Tensor, values: Tensor, sizes: Sequence[int]) -> SparseTensor:
    """Values at other places, in the order of these."""
    order = op(_order, places)
    return SparseTensor(gather(places, order), gather(values, order), sizes)


def _order(places):
    return jnp.lexsort(places.T[::-1])


def reorder(sp_input: SparseTensor, name: str | None = None) -> SparseTensor:
    """The same, with its indices in order, row by row."""
    return _moved(sp_input.indices, sp_input.values, sp_input._sizes)


def transpose(sp_input: SparseTensor, perm: IntsLike | None = None, name: str | None = None) -> SparseTensor:
    """The axes in the order `perm`, or in reverse."""
    axes = [int(i) for i in host(perm, "perm")] if perm is not None else [*range(len(sp_input._sizes))][::-1]
    places = gather(sp_input.indices, axes, axis=1)
    return _moved(places, sp_input.values, [sp_input._sizes[i] for i in axes])


def reshape(sp_input: SparseTensor, shape: ShapeLike, name: str | None = None) -> SparseTensor:
    """The same values in another shape; one size may be -1. Raises InvalidArgumentError if the number of elements differs."""
    try:
        sizes = np.broadcast_to(0, sp_input._sizes).reshape(shape_of(shape)).shape
    except ValueError as error:
        raise InvalidArgumentError(f"cannot reshape {sp_input._sizes} to {shape}: {error}") from error
    _require_inside(sp_input)
    if math.prod(sizes) > np.iinfo(raw(sp_input.indices).dtype).max:
        raise InvalidArgumentError(f"the places of shape {sizes} cannot be counted while 64-bit types are off")
    return SparseTensor(op(_reshaped, sp_input.indices, old=sp_input._sizes, new=sizes), sp_input.values, sizes)


def _reshaped(places, old, new):
    flat = jnp.ravel_multi_index(tuple(places.T), old, mode="clip") if old else jnp.zeros(len(places), places.dtype)
    rows = jnp.stack(jnp.unravel_index(flat, new), -1) if new else jnp.zeros((len(places), 0))
    return rows.astype(places.dtype)


def expand_dims(sp_input: SparseTensor, axis: IntLike | None = None, name: str | None = None) -> SparseTensor:
    """A new axis of size 1, by default the last."""
    sizes = list(sp_input._sizes)
    place = axis_of(-1 if axis is None else axis, len(sizes) + 1)
    return reshape(sp_input, [*sizes[:place], 1, *sizes[place:]])


def retain(sp_input: SparseTensor, to_retain: TensorLike) -> SparseTensor:
    """The values where `to_retain`, known bools, is true. Raises ValueError if the numbers of values and bools differ."""
    kept = host(to_retain, "to_retain")
    if kept.shape != tuple(sp_input.values.shape):
        raise ValueError(f"there are {sp_input.values.shape} values, to_retain is for {kept.shape}")
    which = np.flatnonzero(kept)
    return SparseTensor(gather(sp_input.indices, which), gather(sp_input.values, which), sp_input._sizes)


def concat(
    axis: IntLike, sp_inputs: Sequence[SparseTensor], expand_nonconcat_dims: bool = False, name: str | None = None
) -> SparseTensor:
    """Sparse tensors one after the other along an axis. It has no gradient, as in TensorFlow.

    Args:
      expand_nonconcat_dims: whether the other sizes may differ, and become the largest.

    Raises:
      InvalidArgumentError: the other sizes differ.
    """
    along = axis_of(axis, len(sp_inputs[0]._sizes))
    all_sizes = np.array([x._sizes for x in sp_inputs])
    sizes, ends = all_sizes.max(0), np.cumsum(all_sizes[:, along])
    if not expand_nonconcat_dims and (np.delete(all_sizes, along, 1) != np.delete(sizes, along)).any():
        raise InvalidArgumentError(f"the sizes differ on an axis other than {along}: {all_sizes.tolist()}")
    shifts = np.zeros_like(all_sizes)
    shifts[1:, along] = ends[:-1]
    places = [op(jnp.add, x.indices, _indices(shift)) for x, shift in zip(sp_inputs, shifts, strict=True)]
    sizes[along] = ends[-1]
    values = stop_gradient(_concat([x.values for x in sp_inputs], 0))
    return _moved(_concat(places, 0), values, sizes.tolist())


def add(a: SparseTensor | TensorLike, b: SparseTensor | TensorLike, threshold: TensorLike = 0) -> SparseTensor | Tensor:
    """The sum, dense if one of them is.

    Args:
      threshold: of two sparse ones, whose indices must be known, the sum of two values is left out if its magnitude is less.

    Raises:
      InvalidArgumentError: the shapes differ.
    """
    if not isinstance(a, SparseTensor) or not isinstance(b, SparseTensor):
        sparse, dense = (a, b) if isinstance(a, SparseTensor) else (b, a)
        return tensor_scatter_nd_add(dense, sparse.indices, sparse.values)
    if a._sizes != b._sizes:
        raise InvalidArgumentError(f"the shapes {a._sizes} and {b._sizes} differ")
    indices = np.concatenate([host(x.indices, "the indices of tf.sparse.add") for x in (a, b)])
    places, which = np.unique(indices, axis=0, return_inverse=True)
    total = _math.unsorted_segment_sum(_concat([a.values, b.values], 0), which.reshape(-1), len(places))
    out = SparseTensor(places, total, a._sizes)
    least = host(threshold, "threshold")
    if not least:
        return out
    large = np.abs(host(total, "the values of tf.sparse.add")) >= least
    return retain(out, large | (np.bincount(which.reshape(-1), minlength=len(places)) == 1))


def map_values(op: Callable, *args: Any, **kwargs: Any) -> SparseTensor:
    """``op(*args, **kwargs)`` with the values of each sparse tensor in its place, at its indices.

    Raises:
      InvalidArgumentError: sparse tensors have values in other places than the first (seen on the CPU).
    """
    first, *others = [x for x in (*args, *kwargs.values()) if isinstance(x, SparseTensor)]
    places = known(raw(first.indices))
    for other in others:
        others_places = known(raw(other.indices))
        if places is not None and others_places is not None and not np.array_equal(places, others_places):
            raise InvalidArgumentError(
                f"the sparse tensors have values at different indices: {places} and {others_places}"
            )

    def values(x: Any) -> Any:
        return x.values if isinstance(x, SparseTensor) else x

    return first.with_values(op(*map(values, args), **{name: values(x) for name, x in kwargs.items()}))


def reduce_sum(
    sp_input: SparseTensor,
    axis: AxisLike | None = None,
    keepdims: bool | None = None,
    output_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Sums over axes, all by default, as a dense tensor."""
    if output_is_sparse:
        raise NotImplementedError(
            "tf.sparse.reduce_sum gives dense tensors only: the number of sums that are not zero would be a shape"
        )
    _require_inside(sp_input)
    whole = scatter_nd(sp_input.indices, sp_input.values, sp_input._sizes)
    return _math.reduce_sum(whole, axis, bool(keepdims))  # type: ignore[attr-defined]


def eye(
    num_rows: IntLike, num_columns: IntLike | None = None, dtype: DTypeLike = "float32", name: str | None = None
) -> SparseTensor:
    """The identity matrix."""
    sizes = int(num_rows), int(num_rows if num_columns is None else num_columns)
    places = np.repeat(np.arange(min(sizes))[:, None], 2, axis=1)
    return SparseTensor(places, jnp.ones(min(sizes), requested(as_dtype(dtype))), sizes)
