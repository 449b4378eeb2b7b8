"""Made by .ci/stubs of the live namespace."""

from collections.abc import Callable, Sequence
from typing import Any
import tapejax as tf
from tapejax.tf.values.types import TensorLike, DTypeLike, ShapeLike, AxisLike, IntLike, IntsLike

from tapejax.tf.ops.sparse import SparseTensor as SparseTensor
def add(a: tf.SparseTensor | TensorLike, b: tf.SparseTensor | TensorLike, threshold: TensorLike = 0) -> tf.SparseTensor | tf.Tensor:
    """The sum, dense if one of them is.

    Args:
      threshold: of two sparse ones, whose indices must be known, the sum of two values is left out if its magnitude is less.

    Raises:
      InvalidArgumentError: the shapes differ.
    """
def concat(axis: IntLike, sp_inputs: Sequence[tf.SparseTensor], expand_nonconcat_dims: bool = False, name: str | None = None) -> tf.SparseTensor:
    """Sparse tensors one after the other along an axis. It has no gradient, as in TensorFlow.

    Args:
      expand_nonconcat_dims: whether the other sizes may differ, and become the largest.

    Raises:
      InvalidArgumentError: the other sizes differ.
    """
def expand_dims(sp_input: tf.SparseTensor, axis: IntLike | None = None, name: str | None = None) -> tf.SparseTensor:
    """A new axis of size 1, by default the last."""
def eye(num_rows: IntLike, num_columns: IntLike | None = None, dtype: DTypeLike = 'float32', name: str | None = None) -> tf.SparseTensor:
    """The identity matrix."""
def from_dense(tensor: TensorLike, name: str | None = None) -> tf.SparseTensor:
    """The values of a tensor that are not zero, and where they are.

    Raises:
      TypeError: the tensor's value is not known, as in a compiled function: how many there are is a shape.
    """
def map_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> tf.SparseTensor:
    """``op(*args, **kwargs)`` with the values of each sparse tensor in its place, at its indices.

    Raises:
      InvalidArgumentError: sparse tensors have values in other places than the first (seen on the CPU).
    """
def reduce_sum(sp_input: tf.SparseTensor, axis: AxisLike | None = None, keepdims: bool | None = None, output_is_sparse: bool = False, name: str | None = None) -> tf.Tensor:
    """Sums over axes, all by default, as a dense tensor."""
def reorder(sp_input: tf.SparseTensor, name: str | None = None) -> tf.SparseTensor:
    """The same, with its indices in order, row by row."""
def reshape(sp_input: tf.SparseTensor, shape: ShapeLike, name: str | None = None) -> tf.SparseTensor:
    """The same values in another shape; one size may be -1. Raises InvalidArgumentError if the number of elements differs."""
def retain(sp_input: tf.SparseTensor, to_retain: TensorLike) -> tf.SparseTensor:
    """The values where `to_retain`, known bools, is true. Raises ValueError if the numbers of values and bools differ."""
def sparse_dense_matmul(sp_a: tf.SparseTensor | TensorLike, b: tf.SparseTensor | TensorLike, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None) -> tf.Tensor:
    """The matrix product of a sparse and a dense matrix, in either order; `adjoint_a`, `adjoint_b` as `tf.matmul` has them.

    Raises:
      TypeError: neither is sparse.
      ValueError, InvalidArgumentError: they are no matrices, or their shapes or dtypes do not fit.
    """
def to_dense(sp_input: tf.SparseTensor, default_value: TensorLike | None = None, validate_indices: bool = True, name: str | None = None) -> tf.Tensor:
    """The whole tensor.

    Args:
      default_value: what stands where there is no value, zero by default.
      validate_indices: whether indices, if they are known, must be in order and different.

    Raises:
      InvalidArgumentError: they are not, or lie outside.
    """
def transpose(sp_input: tf.SparseTensor, perm: IntsLike | None = None, name: str | None = None) -> tf.SparseTensor:
    """The axes in the order `perm`, or in reverse."""
