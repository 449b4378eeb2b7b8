"""Made by .ci/stubs of the live namespace."""

from collections.abc import Sequence
from typing import Any
import tapejax as tf
from tapejax.tf.values.types import TensorLike, Nest, DTypeLike, AxisLike, Ignored

def adjoint(matrix: TensorLike, name: str | None = None) -> tf.Tensor:
    """The last two axes exchanged, the elements conjugated."""
def band_part(input: TensorLike, num_lower: Any, num_upper: Any, name: str | None = None) -> tf.Tensor:
    """The matrix with `num_lower` diagonals below and `num_upper` above the main one, the others set to 0; -1 keeps all."""
def cholesky(input: TensorLike, name: str | None = None) -> Nest:
    """The lower triangular Cholesky factor; NaN where there is none."""
def cholesky_solve(chol: TensorLike, rhs: TensorLike, name: str | None = None) -> tf.Tensor:
    """x with ``A @ x = rhs``, given the Cholesky factor of A."""
def cross(a: TensorLike, b: TensorLike, name: str | None = None) -> tf.Tensor:
    """The cross product of vectors of length 3 along the last axis."""
def det(input: TensorLike, name: str | None = None) -> Nest:
    """The determinant."""
def diag(diagonal: Any, name: str | None = 'diag', k: Any = 0, num_rows: Any = -1, num_cols: Any = -1, padding_value: Any = 0, align: Any = 'RIGHT_LEFT') -> tf.Tensor:
    """A matrix with the last axis of `diagonal` on its k-th diagonal and `padding_value` elsewhere.

    Args:
      k: the number of the diagonal, 0 the main one.
      num_rows, num_cols: the matrix' size; -1 for the smallest that will do.
      align: taken for TensorFlow's sake.

    Raises:
      InvalidArgumentError: the diagonal does not fit, or `k` names several.
    """
def diag_part(input: TensorLike, name: str | None = 'diag_part', k: Any = 0, padding_value: Any = 0, align: Any = 'RIGHT_LEFT') -> tf.Tensor:
    """The k-th diagonal of the last two axes. See `diag`."""
def eig(tensor: TensorLike, name: str | None = None) -> Nest:
    """Eigenvalues and right eigenvectors; on the CPU only."""
def eigh(tensor: TensorLike, name: str | None = None) -> Nest:
    """Eigenvalues in rising order, and eigenvectors, of a Hermitian matrix."""
def eigvals(tensor: TensorLike, name: str | None = None) -> Nest:
    """The eigenvalues; on the CPU only."""
def eigvalsh(tensor: TensorLike, name: str | None = None) -> Nest:
    """The eigenvalues of a Hermitian matrix."""
def einsum(equation: str, *inputs: TensorLike, **kwargs: Any) -> tf.Tensor:
    """Sums of products in Einstein's notation: ``einsum('ij,jk->ik', a, b)``.

    Raises:
      ValueError, InvalidArgumentError: the equation does not suit the inputs.
    """
def expm(input: TensorLike, name: str | None = None) -> Nest:
    """The matrix exponential."""
def eye(num_rows: Any, num_columns: Any = None, batch_shape: Any = None, dtype: Any = 'float32', name: str | None = None) -> tf.Tensor:
    """An identity matrix, or a batch of them."""
def global_norm(t_list: Sequence[TensorLike | None], name: str | None = None) -> tf.Tensor:
    """The root of the sum of squares of all elements of all tensors in the list; None in it is passed over."""
def inv(input: TensorLike, adjoint: bool = False, name: str | None = None) -> tf.Tensor:
    """The inverse of square matrices, or of their adjoints.

    Raises:
      InvalidArgumentError: a matrix is not square; on the CPU also: it has no inverse.
    """
def l2_normalize(x: TensorLike, axis: AxisLike | None = None, epsilon: float = 1e-12, name: str | None = None) -> tf.Tensor:
    """x divided by its Euclidean norm over `axis`; `epsilon` bounds the squared norm from below."""
def logdet(matrix: TensorLike, name: str | None = None) -> Nest:
    """The logarithm of the determinant of a positive definite matrix."""
def lstsq(matrix: TensorLike, rhs: TensorLike, l2_regularizer: Any = 0.0, fast: Any = True, name: str | None = None) -> tf.Tensor:
    """The least-squares solution x of ``matrix @ x = rhs``; with fewer rows than columns, the one of least norm."""
def lu(input: TensorLike, output_idx_type: DTypeLike = 'int32', name: str | None = None) -> Any:
    """Square matrices as products of a lower and an upper triangular one, their rows exchanged: `lu_reconstruct` takes it back.

    It has no gradient, as in TensorFlow: asking for one raises `LookupError`, until one is registered for ``Lu`` with
    `RegisterGradient`.

    Args:
      input: of shape ``(..., n, n)``, float32, float64 or complex.
      output_idx_type: int32 or int64.

    Returns:
      ``lu``, like `input`: the upper triangle, and below the diagonal the lower one, whose diagonal is 1. ``p``, of shape
      ``(..., n)``: for each row of the product the row of `input` that it is.

    Raises:
      InvalidArgumentError: a matrix is not square, or the dtype is another; on the CPU also: it is not invertible.
      NotFoundError: the dtype is float16.

    >>> import tapejax as tf
    >>> factors, p = tf.linalg.lu([[1.0, 2.0], [2.0, 8.0]])
    >>> print(factors.numpy().tolist(), p.numpy())
    [[2.0, 8.0], [0.5, -2.0]] [1 0]
    """
def lu_matrix_inverse(lower_upper: TensorLike, perm: TensorLike, validate_args: Ignored = False, name: str | None = None) -> tf.Tensor:
    """The inverse of the matrices of which `lu` gave `lower_upper` and `perm`. Raises as `lu_solve`."""
def lu_reconstruct(lower_upper: TensorLike, perm: TensorLike, validate_args: Ignored = False, name: str | None = None) -> tf.Tensor:
    """The matrices of which `lu` gave `lower_upper` and `perm`.

    Raises:
      ValueError: `lower_upper` is not square, or `perm` is not of its shape without the last axis.
      InvalidArgumentError: `perm` holds another number of rows; on the CPU also: it is no permutation.
    """
def lu_solve(lower_upper: TensorLike, perm: TensorLike, rhs: TensorLike, validate_args: Ignored = False, name: str | None = None) -> tf.Tensor:
    """x with ``matrix @ x = rhs``, given what `lu` gave of the matrices; `rhs` is a matrix, a column for each equation.

    Raises:
      ValueError: the shapes do not fit.
      InvalidArgumentError: `perm` holds another number of rows, or one that there is not; or the dtypes differ.
      NotFoundError: the dtype is float16.

    >>> import tapejax as tf
    >>> factors, p = tf.linalg.lu([[1.0, 2.0], [2.0, 8.0]])
    >>> print(tf.linalg.lu_solve(factors, p, [[3.0], [10.0]]).numpy().tolist())
    [[1.0], [1.0]]
    """
def matmul(a: TensorLike, b: TensorLike, transpose_a: bool = False, transpose_b: bool = False, adjoint_a: bool = False, adjoint_b: bool = False, a_is_sparse: bool = False, b_is_sparse: bool = False, output_type: DTypeLike | None = None, grad_a: bool = False, grad_b: bool = False, name: str | None = None) -> tf.Tensor:
    """The matrix product over the last two axes; the others broadcast.

    Args:
      transpose_a, transpose_b: take the transposed matrix.
      adjoint_a, adjoint_b: take the transposed and conjugated matrix.
      output_type: the dtype of the result, where it is to be wider than the matrices'.

    Raises:
      InvalidArgumentError: a vector was given (see `matvec`), or the inner sizes differ.
      ValueError: both `transpose_a` and `adjoint_a` (or ``_b``) were asked for.

    >>> import tapejax as tf
    >>> print(tf.matmul([[1.0, 2.0]], [[3.0, 4.0]], transpose_b=True))
    tf.Tensor([[11.]], shape=(1, 1), dtype=float32)
    """
def matrix_rank(a: TensorLike, tol: Any = None, validate_args: Any = False, name: str | None = None) -> tf.Tensor:
    """The number of singular values above `tol`, int32."""
def matrix_transpose(a: TensorLike, name: str = 'matrix_transpose', conjugate: bool = False) -> tf.Tensor:
    """The last two axes exchanged. Raises ValueError for a vector."""
def matvec(a: TensorLike, b: TensorLike, transpose_a: Any = False, adjoint_a: Any = False, a_is_sparse: Any = False, b_is_sparse: Any = False, name: str | None = None) -> tf.Tensor:
    """The product of a matrix and a vector over the last axes; the others broadcast."""
def norm(tensor: TensorLike, ord: str | float = 'euclidean', axis: AxisLike | None = None, keepdims: bool | None = None, name: str | None = None) -> tf.Tensor:
    """The norm of vectors (`axis` a number, or None for all elements) or matrices (`axis` a pair).

    Args:
      ord: 'euclidean', 'fro' (matrices), 1, 2, inf, or for vectors any positive number.

    Raises:
      ValueError: an `ord` that is not supported, or more than two axes.
    """
def normalize(tensor: TensorLike, ord: str | float = 'euclidean', axis: AxisLike | None = None, name: str | None = None) -> tuple[tf.Tensor, tf.Tensor]:
    """``(tensor / norm, norm)``, the norm with its axes kept."""
def pinv(a: TensorLike, rcond: Any = None, validate_args: Any = False, name: str | None = None) -> tf.Tensor:
    """The Moore-Penrose pseudo-inverse, without the singular values of at most `rcond` times the largest."""
def qr(input: TensorLike, full_matrices: Any = False, name: str | None = None) -> tf.Tensor:
    """``input = q @ r`` with orthonormal columns in q and r upper triangular."""
def set_diag(input: TensorLike, diagonal: TensorLike, name: str | None = 'set_diag', k: Any = 0, align: Any = 'RIGHT_LEFT') -> tf.Tensor:
    """`input` with its k-th diagonal replaced; see `diag`."""
def slogdet(input: TensorLike, name: str | None = None) -> Nest:
    """The determinant's sign and the logarithm of its absolute value."""
def solve(matrix: TensorLike, rhs: TensorLike, adjoint: bool = False, name: str | None = None) -> tf.Tensor:
    """x with ``matrix @ x = rhs``; `rhs` is a matrix, a column for each equation.

    Raises:
      InvalidArgumentError: the shapes do not fit; on the CPU also: `matrix` is not invertible.
    """
def sqrtm(input: TensorLike, name: str | None = None) -> Nest:
    """The square root of matrices that have one; on the CPU only."""
def svd(tensor: TensorLike, full_matrices: Any = False, compute_uv: Any = True, name: str | None = None) -> tf.Tensor:
    """Singular values s and singular vectors: ``tensor = u @ diag(s) @ adjoint(v)``.

    Returns:
      ``(s, u, v)``, or s alone where `compute_uv` is false. (NumPy returns ``u, s, adjoint(v)``.)
    """
def tensordot(a: TensorLike, b: TensorLike, axes: AxisLike, name: str | None = None) -> tf.Tensor:
    """Sums products over `axes`: a number n (the last n of a, the first n of b) or a pair of lists of axes."""
def trace(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The sum of the diagonal."""
def triangular_solve(matrix: TensorLike, rhs: TensorLike, lower: Any = True, adjoint: Any = False, name: str | None = None) -> tf.Tensor:
    """x with ``matrix @ x = rhs``, where only one triangle of `matrix` is read."""
