"""Matrices: products, decompositions, solving, diagonals. All work on the last two axes, and on batches of matrices."""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..values.connected import zero_gradient
from ..values.conversion import raw
from ..values.dtypes import as_dtype, requested
from ..values.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from ..values.operations import arrays_of, op, operands
from ..values.tensor import Tensor
from ..values.types import Array, AxisLike, DTypeLike, Ignored, IntsLike, Nest, TensorLike
from .math import nan_for_infinity, singular_values
from .registry import opaque
from .table import (
    FIELD,
    NUMBER,
    REAL,
    binary,
    known,
    later,
    operation,
    renamed,
    require_kind,
    static,
    whole,
    with_arguments,
)

scipy_linalg: Any = later("jax.scipy.linalg")

# ---- Products ----------------------------------------------------------------------------------------------


def matmul(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    output_type: DTypeLike | None = None,
    grad_a: bool = False,
    grad_b: bool = False,
    name: str | None = None,
) -> Tensor:
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
    if not (transpose_a or transpose_b or adjoint_a or adjoint_b or output_type):
        return product(a, b)
    x, y = operands(a, b)
    require_kind("matmul", x if hasattr(x, "dtype") else y, NUMBER if output_type else "Ifc", "a")
    if (transpose_a and adjoint_a) or (transpose_b and adjoint_b):
        raise ValueError("only one of transpose_a and adjoint_a, and of transpose_b and adjoint_b, can be True")
    pairs = (transpose_a, adjoint_a), (transpose_b, adjoint_b)
    how = tuple("adjoint" if adjoint else "transpose" if turned else "" for turned, adjoint in pairs)
    return op(_matmul, x, y, how=how, dtype=None if output_type is None else requested(output_type))


def _matmul(a, b, how=("", ""), dtype=None):
    if a.ndim < 2 or b.ndim < 2:
        raise InvalidArgumentError(
            f"matmul: a and b must be matrices, got shapes {a.shape} and {b.shape}. For a vector use tf.linalg.matvec, "
            "tf.tensordot(a, b, 1) or x[:, None]"
        )
    return jnp.matmul(_turned(a, how[0]), _turned(b, how[1]), preferred_element_type=dtype)


product: Any = binary("matmul", _matmul, "Ifc", arguments=("a", "b"))


def _turned(x, how):
    x = x if not how else jnp.swapaxes(x, -1, -2)
    return jnp.conj(x) if how == "adjoint" else x


renamed("matrix_transpose", _turned)


@operation("a b", "HIfc")
def matvec(a, b, transpose_a=False, adjoint_a=False, a_is_sparse=False, b_is_sparse=False):
    """The product of a matrix and a vector over the last axes; the others broadcast."""
    if transpose_a and adjoint_a:
        raise ValueError("matvec: only one of transpose_a and adjoint_a may be True")
    if a.ndim < 2 or b.ndim < 1:
        raise InvalidArgumentError(f"matvec: needs a matrix and a vector, got shapes {a.shape} and {b.shape}")
    matrix = _turned(a, "adjoint" if adjoint_a else "transpose" if transpose_a else "")
    return matrix @ b if b.ndim == 1 else (matrix @ b[..., None])[..., 0]


def tensordot(a: TensorLike, b: TensorLike, axes: AxisLike, name: str | None = None) -> Tensor:
    """Sums products over `axes`: a number n (the last n of a, the first n of b) or a pair of lists of axes."""
    arrays = arrays_of(a, b)
    summed = static(axes, "axes")
    if isinstance(summed, tuple):
        pair = [(each,) if isinstance(each, int) else each for each in summed]
        if len(pair) != 2 or len(pair[0]) != len(pair[1]):
            raise ValueError(f"tensordot: axes must be a number or two lists of equal length, got {summed}")
    elif not 0 <= summed <= min(arrays[0].ndim, arrays[1].ndim):
        shapes = f"{arrays[0].shape} and {arrays[1].shape}"
        raise ValueError(f"tensordot: axes must be from 0 to the number of axes of {shapes}, got {summed}")
    require_kind("tensordot", arrays[0], "Ifc", "a")
    return op(jnp.tensordot, *arrays, axes=summed)


def einsum(equation: str, *inputs: TensorLike, **kwargs: Any) -> Tensor:
    """Sums of products in Einstein's notation: ``einsum('ij,jk->ik', a, b)``.

    Raises:
      ValueError, InvalidArgumentError: the equation does not suit the inputs.
    """
    if unknown := kwargs.keys() - {"name", "optimize"}:
        raise TypeError(f"einsum: unknown keyword arguments {sorted(unknown)}")
    arrays = arrays_of(*inputs)
    terms, arrow, result = equation.replace(" ", "").partition("->")
    if strange := set(terms + result).difference(string.ascii_letters, ",.->"):
        raise ValueError(f"einsum: a label must be a letter from a to z, got {sorted(strange)} in {equation!r}")
    if result.count("...") > 1:
        raise ValueError(f"einsum: the result has more than one ellipsis in {equation!r}")
    sizes: dict[str, int] = {}  # jnp broadcasts an axis of length 1
    for term, array in zip(terms.split(","), arrays, strict=False):
        if arrow and "..." not in result and "..." in term and array.ndim > len(term) - 3:
            raise InvalidArgumentError(f"einsum: the axes of the ellipsis in {term!r} are missing from {result!r}")
        before, _, after = term.partition("...")
        axes = (*zip(before, array.shape, strict=False), *zip(after[::-1], array.shape[::-1], strict=False))
        for label, size in axes:
            if sizes.setdefault(label, size) != size:
                raise InvalidArgumentError(f"einsum: label {label!r} stands for axes of {sizes[label]} and {size}")
    try:
        return op(_einsum, *arrays, equation=equation)
    except ValueError as error:
        if "label" not in str(error):
            raise
        raise InvalidArgumentError(f"einsum: {error}") from error


def _einsum(*arrays, equation):
    return jnp.einsum(equation, *arrays)


@operation("a b", REAL)
def cross(a, b):
    """The cross product of vectors of length 3 along the last axis."""
    if a.shape != b.shape or not a.ndim:
        raise InvalidArgumentError(f"cross: both must have one shape, got {a.shape} and {b.shape}")
    if a.shape[-1] != 3:
        raise FailedPreconditionError(f"cross: the last axis must have length 3, got shape {a.shape}")
    return jnp.cross(a, b)


# ---- Turning, diagonals ------------------------------------------------------------------------------------


def _matrix(name: str, array: Array, square: bool = False) -> Array:
    if array.ndim < 2:
        raise InvalidArgumentError(f"{name}: Input must be a matrix or a batch of them, got shape {array.shape}")
    if square and array.shape[-1] != array.shape[-2]:
        raise InvalidArgumentError(f"{name}: Input matrix must be square, got shape {array.shape}")
    return array


def matrix_transpose(a: TensorLike, name: str = "matrix_transpose", conjugate: bool = False) -> Tensor:
    """The last two axes exchanged. Raises ValueError for a vector."""
    array = raw(a)
    if array.ndim < 2:
        raise ValueError(f"a must have two axes or more, got shape {array.shape}")
    return op(_turned, array, how="adjoint" if conjugate else "transpose")


@operation("matrix")
def adjoint(matrix):
    """The last two axes exchanged, the elements conjugated."""
    return _turned(_matrix("adjoint", matrix), "adjoint")


@operation("x", NUMBER)
def trace(x):
    """The sum of the diagonal."""
    return jnp.trace(x, axis1=-2, axis2=-1, dtype=x.dtype)


def _diagonal_number(k: IntsLike) -> int:
    """The number of one diagonal. A pair names all from the lowest to the highest."""
    number = whole(k, "k")
    if isinstance(number, tuple) and number[0] != number[-1]:
        raise InvalidArgumentError(f"k={k} names several diagonals, take them one by one: tf.linalg.diag(x, k=1)")
    return int(number[0] if isinstance(number, tuple) else number)


def diag(diagonal, name="diag", k=0, num_rows=-1, num_cols=-1, padding_value=0, align="RIGHT_LEFT") -> Tensor:
    """A matrix with the last axis of `diagonal` on its k-th diagonal and `padding_value` elsewhere.

    Args:
      k: the number of the diagonal, 0 the main one.
      num_rows, num_cols: the matrix' size; -1 for the smallest that will do.
      align: taken for TensorFlow's sake.

    Raises:
      InvalidArgumentError: the diagonal does not fit, or `k` names several.
    """
    array, number = raw(diagonal), _diagonal_number(k)
    length = array.shape[-1]
    least = length - min(number, 0), length + max(number, 0)
    rows = max(least) if num_rows == num_cols == -1 else least[0] if num_rows == -1 else int(num_rows)
    columns = max(least) if num_rows == num_cols == -1 else least[1] if num_cols == -1 else int(num_cols)
    if rows < least[0] or columns < least[1] or (rows != least[0] and columns != least[1]):
        raise InvalidArgumentError(f"diag: a diagonal of length {length} does not fit a ({rows}, {columns}) matrix")
    return op(_diag, array, shape=(rows, columns), k=number, padding=padding_value)


@zero_gradient  # of no elements: JAX takes it for a constant
def _diag(x, shape, k, padding):
    return _set_diag(jnp.full((*x.shape[:-1], *shape), padding, x.dtype), x, k)


def diag_part(input: TensorLike, name="diag_part", k=0, padding_value=0, align="RIGHT_LEFT") -> Tensor:
    """The k-th diagonal of the last two axes. See `diag`."""
    array, number = _matrix("diag_part", raw(input)), _diagonal_number(k)
    if number and not -array.shape[-2] < number < array.shape[-1]:  # the main one may be empty
        raise InvalidArgumentError(f"diag_part: k={k} is out of range for shape {array.shape}")
    return op(_diag_part, array, k=number)


@zero_gradient  # of no elements: JAX takes it for a constant
def _diag_part(x, k):
    return jnp.diagonal(x, k, -2, -1)


def set_diag(input: TensorLike, diagonal: TensorLike, name="set_diag", k=0, align="RIGHT_LEFT") -> Tensor:
    """`input` with its k-th diagonal replaced; see `diag`."""
    (array, values), number = operands(input, diagonal), _diagonal_number(k)
    rows, columns = _matrix("set_diag", array).shape[-2:]
    wanted = (*array.shape[:-2], min(rows + min(number, 0), columns - max(number, 0)))
    if np.shape(values) != wanted:
        raise InvalidArgumentError(f"set_diag: diagonal must have shape {wanted}, got {np.shape(values)}")
    return op(_set_diag, array, values, k=number)


@zero_gradient  # of no elements: JAX takes it for a constant
def _set_diag(x, diagonal, k):
    steps = np.arange(diagonal.shape[-1])
    return x.at[..., steps + max(-k, 0), steps + max(k, 0)].set(diagonal)


@operation("input")
def band_part(input, num_lower, num_upper):
    """The matrix with `num_lower` diagonals below and `num_upper` above the main one, the others set to 0; -1 keeps all."""
    rows, columns = _matrix("band_part", input).shape[-2:]
    for name, value, most in (("num_lower", num_lower, rows), ("num_upper", num_upper, columns)):
        if value > most:
            raise InvalidArgumentError(f"band_part: {name} must be negative or at most {most}, got {value}")
    distance = np.arange(columns)[None, :] - np.arange(rows)[:, None]
    keep = ((distance >= -num_lower) | (num_lower < 0)) & ((distance <= num_upper) | (num_upper < 0))
    return jnp.where(keep, input, jnp.zeros((), input.dtype))


# ---- Solving and decompositions ----------------------------------------------------------------------------


class LogMatrixDeterminant(NamedTuple):
    """What `slogdet` returns."""

    sign: Tensor | Array
    log_abs_determinant: Tensor | Array


class Qr(NamedTuple):
    """What `qr` returns."""

    q: Tensor | Array
    r: Tensor | Array


def _square(name: str, fn: Callable, doc: str, argument: str = "input") -> Callable[..., Any]:
    """A public function of square matrices."""
    if fn.__name__ == "<lambda>":
        renamed(name, fn)

    def public(x: TensorLike, name: str | None = None) -> Nest:
        array = raw(x)
        require_kind(public.__name__, array, FIELD, "tensor")
        return op(fn, _matrix(public.__name__, array, square=True))

    public.__doc__ = doc
    return renamed(name, with_arguments(public, {"x": argument}))


@zero_gradient  # of no elements: JAX takes it for a constant
def _slogdet(x):
    sign, logarithm = jnp.linalg.slogdet(x)
    return LogMatrixDeterminant(sign, logarithm.astype(x.dtype))


@zero_gradient  # of no elements: JAX takes it for a constant
def _logdet(x):
    return 2 * jnp.sum(jnp.log(jnp.real(jnp.diagonal(_cholesky(x), axis1=-2, axis2=-1))), -1)


@jax.custom_jvp
def _mirrored(x):
    """What the lower triangle says, with the gradient of a Hermitian matrix: both are TensorFlow's for `cholesky`."""
    return _lower(x)


_mirrored.defjvp(lambda primals, tangents: (_mirrored(*primals), *tangents))


def _cholesky(x):
    return jnp.linalg.cholesky(_mirrored(x))


def _lower(x):
    # TensorFlow reads the lower triangle only, and of its diagonal the real parts: what lies above it gets no gradient.
    half = jnp.where(np.eye(x.shape[-1], dtype=bool), x / 2, jnp.tril(x))
    return half + _turned(half, "adjoint")


def _eigh(x):
    values, vectors = jnp.linalg.eigh(_lower(x), symmetrize_input=False)
    return values.astype(x.dtype), vectors


det = _square("det", jnp.linalg.det, "The determinant.")
slogdet = _square("slogdet", _slogdet, "The determinant's sign and the logarithm of its absolute value.")
logdet = _square("logdet", _logdet, "The logarithm of the determinant of a positive definite matrix.", "matrix")
cholesky = _square("cholesky", _cholesky, "The lower triangular Cholesky factor; NaN where there is none.")
expm = _square("expm", scipy_linalg.expm, "The matrix exponential.")
eigh = _square("eigh", _eigh, "Eigenvalues in rising order, and eigenvectors, of a Hermitian matrix.", "tensor")
eigvalsh = _square("eigvalsh", lambda x: _eigh(x)[0], "The eigenvalues of a Hermitian matrix.", "tensor")
eig = _square(
    "eig", lambda x: tuple(jnp.linalg.eig(x)), "Eigenvalues and right eigenvectors; on the CPU only.", "tensor"
)
eigvals = _square("eigvals", jnp.linalg.eigvals, "The eigenvalues; on the CPU only.", "tensor")


def inv(input: TensorLike, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The inverse of square matrices, or of their adjoints.

    Raises:
      InvalidArgumentError: a matrix is not square; on the CPU also: it has no inverse.
    """
    array = raw(input)
    require_kind("inv", array, FIELD, "input")
    out = op(_inv, _matrix("inv", array, square=True), adjoint=bool(adjoint))
    return _require_finite("inv", out, array)


def _inv(x, adjoint):
    turned = _turned(x, "adjoint" if adjoint else "")
    return jnp.linalg.inv(turned.astype("float32") if x.dtype == "float16" else turned).astype(x.dtype)


def _require_finite(name: str, out: Tensor, matrix: Array) -> Tensor:
    values = known(out._array)
    if values is not None and not np.isfinite(values).all() and np.isfinite(np.asarray(matrix)).all():
        raise InvalidArgumentError(f"{name}: Input matrix is not invertible")
    return out


def solve(matrix: TensorLike, rhs: TensorLike, adjoint: bool = False, name: str | None = None) -> Tensor:
    """x with ``matrix @ x = rhs``; `rhs` is a matrix, a column for each equation.

    Raises:
      InvalidArgumentError: the shapes do not fit; on the CPU also: `matrix` is not invertible.
    """
    a, b = arrays_of(matrix, rhs)
    require_kind("solve", a, FIELD, "matrix")
    _matrix("solve", a, square=True)
    _matrix("solve", b)
    if a.shape[:-1] != b.shape[:-1]:
        raise InvalidArgumentError(f"solve: Incompatible shapes {a.shape} and {b.shape}")
    return _require_finite("solve", op(_solve, a, b, adjoint=bool(adjoint)), a)


def _solve(a, b, adjoint):
    return jnp.linalg.solve(_turned(a, "adjoint" if adjoint else ""), b)


@operation("matrix rhs", FIELD)
def triangular_solve(matrix, rhs, lower=True, adjoint=False):
    """x with ``matrix @ x = rhs``, where only one triangle of `matrix` is read."""
    batch = np.broadcast_shapes(_matrix("triangular_solve", matrix, True).shape[:-2], rhs.shape[:-2])
    a, b = (jnp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (matrix, rhs))
    turned = {"transpose_a": bool(adjoint), "conjugate_a": bool(adjoint)}
    return lax.linalg.triangular_solve(a, b, left_side=True, lower=bool(lower), **turned)


def cholesky_solve(chol: TensorLike, rhs: TensorLike, name: str | None = None) -> Tensor:
    """x with ``A @ x = rhs``, given the Cholesky factor of A."""
    return triangular_solve(chol, triangular_solve(chol, rhs), adjoint=True)


@operation("matrix rhs", FIELD)
def lstsq(matrix, rhs, l2_regularizer=0.0, fast=True):
    """The least-squares solution x of ``matrix @ x = rhs``; with fewer rows than columns, the one of least norm."""
    a, b = _matrix("lstsq", matrix), _matrix("lstsq", rhs)
    if not fast:
        return jnp.matmul(jnp.linalg.pinv(nan_for_infinity(a)), b)
    rows, columns = a.shape[-2:]
    ah = _turned(a, "adjoint")
    ridge = l2_regularizer * jnp.eye(min(rows, columns), dtype=a.dtype)
    if rows >= columns:
        return jnp.linalg.solve(jnp.matmul(ah, a) + ridge, jnp.matmul(ah, b))
    return jnp.matmul(ah, jnp.linalg.solve(jnp.matmul(a, ah) + ridge, b))


@operation("input", FIELD)
def qr(input, full_matrices=False):
    """``input = q @ r`` with orthonormal columns in q and r upper triangular."""
    return Qr(*jnp.linalg.qr(_matrix("qr", input), mode="complete" if full_matrices else "reduced"))


@operation("tensor", FIELD)
@zero_gradient  # of no elements: JAX takes it for a constant
def svd(tensor, full_matrices=False, compute_uv=True):
    """Singular values s and singular vectors: ``tensor = u @ diag(s) @ adjoint(v)``.

    Returns:
      ``(s, u, v)``, or s alone where `compute_uv` is false. (NumPy returns ``u, s, adjoint(v)``.)
    """
    if not compute_uv:
        return singular_values(_matrix("svd", tensor))
    u, s, vh = jnp.linalg.svd(nan_for_infinity(_matrix("svd", tensor)), full_matrices=bool(full_matrices))
    return s, u, _turned(vh, "adjoint")


@operation("a", FIELD)
def pinv(a, rcond=None, validate_args=False):
    """The Moore-Penrose pseudo-inverse, without the singular values of at most `rcond` times the largest."""
    matrix = nan_for_infinity(_matrix("pinv", a))
    if rcond is None:
        return jnp.linalg.pinv(matrix)
    # JAX's derivative takes what is left out for zero.
    u, s, v = jnp.linalg.svd(matrix, full_matrices=False)
    kept = s > jnp.asarray(rcond, s.dtype)[..., None] * jnp.max(s, -1, keepdims=True)
    inverse = jnp.where(kept, 1 / jnp.where(kept, s, 1), 0)
    return jnp.matmul(_turned(v, "adjoint") * inverse[..., None, :].astype(v.dtype), _turned(u, "adjoint"))


@operation("a", FIELD)
def matrix_rank(a, tol=None, validate_args=False):
    """The number of singular values above `tol`, int32."""
    s = singular_values(_matrix("matrix_rank", a))
    limit = jnp.finfo(a.dtype).eps * max(a.shape[-2:]) * jnp.max(s, -1, keepdims=True)
    limit = limit if tol is None else jnp.asarray(tol, s.dtype)
    return jnp.sum(s > limit, -1, dtype=jnp.int32)


# ---- Triangular factors --------------------------------------------------------------------------------------


class Lu(NamedTuple):
    """What `lu` returns."""

    lu: Tensor | Array
    p: Tensor | Array


def lu(input: TensorLike, output_idx_type: DTypeLike = "int32", name: str | None = None) -> Lu:
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
    if as_dtype(output_idx_type).name not in ("int32", "int64"):
        raise InvalidArgumentError(f"lu: output_idx_type must be int32 or int64, got {output_idx_type!r}")
    array = _with_factors("lu", raw(input), "input")
    factors, rows = op(_lu, _matrix("lu", array, square=True))
    values = known(factors._array)
    if values is not None and not np.diagonal(values, 0, -2, -1).all():
        raise InvalidArgumentError("lu: Input is not invertible")
    dtype = requested(output_idx_type)
    return Lu(factors, rows if dtype == "int32" else op(lax.convert_element_type, rows, new_dtype=dtype))


def _with_factors(name: str, array: Array, argument: str) -> Array:
    """`array`, of a dtype that JAX and TensorFlow factor matrices of."""
    if array.dtype == "float16":
        raise NotFoundError(f"{name}: not for float16. Convert it first: tf.cast({argument}, tf.float32)")
    require_kind(name, array, "Fc", argument)
    return array


@opaque("Lu")
def _lu(x):
    factors, _, rows = lax.linalg.lu(x)
    return factors, rows


def _factors(name: str, lower_upper: TensorLike, perm: TensorLike) -> tuple[Array, Array]:
    """What `lu` gave."""
    array, rows = raw(lower_upper, dtype_hint="float32"), raw(perm, dtype_hint="int32")
    require_kind(name, rows, "I", "perm")
    if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
        raise ValueError(f"{name}: lower_upper must be a square matrix or a batch of them, got shape {array.shape}")
    if array.ndim != rows.ndim + 1:
        raise ValueError(f"{name}: perm must have an axis less than lower_upper, got {rows.shape} and {array.shape}")
    size, numbers = array.shape[-1], known(rows)
    if rows.shape[-1] != size or (numbers is not None and ((numbers < 0) | (numbers >= size)).any()):
        raise InvalidArgumentError(f"{name}: perm must hold {size} numbers of rows, from 0 to {size - 1}, got {perm}")
    return array, rows


def lu_reconstruct(
    lower_upper: TensorLike, perm: TensorLike, validate_args: Ignored = False, name: str | None = None
) -> Tensor:
    """The matrices of which `lu` gave `lower_upper` and `perm`.

    Raises:
      ValueError: `lower_upper` is not square, or `perm` is not of its shape without the last axis.
      InvalidArgumentError: `perm` holds another number of rows; on the CPU also: it is no permutation.
    """
    array, rows = _factors("lu_reconstruct", lower_upper, perm)
    numbers = known(rows)
    if numbers is not None and (np.sort(numbers) != np.arange(array.shape[-1])).any():
        raise InvalidArgumentError(f"lu_reconstruct: a row is twice in perm, got {perm}")
    return op(_lu_reconstruct, array, rows)


def _lu_reconstruct(factors, rows):
    product = jnp.matmul(jnp.tril(factors, -1) + jnp.eye(factors.shape[-1], dtype=factors.dtype), jnp.triu(factors))
    return jnp.take_along_axis(product, jnp.argsort(rows)[..., None], -2)


def lu_solve(
    lower_upper: TensorLike,
    perm: TensorLike,
    rhs: TensorLike,
    validate_args: Ignored = False,
    name: str | None = None,
) -> Tensor:
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
    array, rows = _factors("lu_solve", lower_upper, perm)
    array, right = operands(_with_factors("lu_solve", array, "lower_upper"), raw(rhs, dtype_hint=array.dtype))
    if right.ndim < 2 or right.shape[-2] != array.shape[-1]:
        raise ValueError(f"lu_solve: rhs must have {array.shape[-1]} rows, got shape {right.shape}")
    return op(_lu_solve, array, rows, right)


def _lu_solve(factors, rows, rhs):
    batch = np.broadcast_shapes(factors.shape[:-2], rows.shape[:-1], rhs.shape[:-2])
    factors, rows, rhs = [
        jnp.broadcast_to(x, (*batch, *x.shape[x.ndim - own :])) for x, own in ((factors, 2), (rows, 1), (rhs, 2))
    ]
    moved = jnp.take_along_axis(rhs, rows[..., None], -2)
    lower = lax.linalg.triangular_solve(factors, moved, left_side=True, lower=True, unit_diagonal=True)
    return lax.linalg.triangular_solve(factors, lower, left_side=True)


def lu_matrix_inverse(
    lower_upper: TensorLike, perm: TensorLike, validate_args: Ignored = False, name: str | None = None
) -> Tensor:
    """The inverse of the matrices of which `lu` gave `lower_upper` and `perm`. Raises as `lu_solve`."""
    array, rows = _factors("lu_matrix_inverse", lower_upper, perm)
    return lu_solve(array, rows, jnp.eye(array.shape[-1], dtype=array.dtype))


# ---- Square roots ------------------------------------------------------------------------------------------------------------


def _root(x):
    """The square root of a matrix: the root of ``s @ s - x``, which JAX differentiates."""

    def solve(excess, start):
        root = scipy_linalg.sqrtm(x)  # JAX computes it with complex numbers
        return (root if jnp.iscomplexobj(x) else jnp.real(root)).astype(x.dtype)

    def solve_tangent(linear, y):
        system = jax.jacobian(linear, holomorphic=jnp.iscomplexobj(x))(y).reshape(y.size, y.size)
        return jnp.linalg.solve(system, y.reshape(-1)).reshape(y.shape)

    return lax.custom_root(lambda s: s @ s - x, x, solve, solve_tangent)


def _roots(x):
    if not x.size:
        return x
    flat = x.reshape(-1, *x.shape[-2:])  # JAX has no batches of Schur decompositions
    return jnp.stack([_root(one) for one in flat]).reshape(x.shape)


sqrtm = _square("sqrtm", _roots, "The square root of matrices that have one; on the CPU only.")
