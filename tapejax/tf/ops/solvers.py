"""Less common functions of matrices: roots, factorisations that are given, matrices with few diagonals."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..values.errors import InvalidArgumentError
from ..values.tensor import Tensor, arrays_of, op, raw
from ..values.types import Array, Nest, TensorLike
from . import array as _array
from .linalg import _matrix, _square, eigh, eigvalsh, scipy_linalg
from .table import FIELD, accepting, host, kind_of, renamed, require_kind, static


def _of_kind(x, dtype):
    # JAX computes these with complex numbers
    return (x if kind_of(dtype) == "c" else jnp.real(x)).astype(dtype)


@jax.custom_jvp
def _root(x):
    return _of_kind(scipy_linalg.sqrtm(x), x.dtype)


@_root.defjvp
def _root_derivative(primals, tangents):
    # S dS + dS S = dX, solved as a system of n * n equations.
    (x,), (dx,) = primals, tangents
    s, eye = _root(x), jnp.eye(len(x), dtype=x.dtype)
    system = jnp.kron(s, eye) + jnp.kron(eye, s.T)
    return s, jnp.linalg.solve(system, dx.reshape(-1)).reshape(x.shape)


def _each(name: str, fn: Callable) -> Callable:
    """`fn` of one matrix, for a batch of them."""

    def batched(x):
        if not x.size:
            return x
        flat = x.reshape(-1, *x.shape[-2:])
        return jnp.stack([fn(one) for one in flat]).reshape(x.shape) if x.ndim > 2 else fn(x)

    return renamed(name, batched)


def _log(x):
    return _of_kind(scipy_linalg.funm(x, jnp.log), x.dtype)


sqrtm = _square("sqrtm", _each("sqrtm", _root), "The square root of matrices that have one; on the CPU only.")
matrix_square_root = sqrtm
logm = _square("logm", _each("logm", _log), "The logarithm of matrices; on the CPU only. It has no gradient.")

# ---- Given factorisations ----------------------------------------------------------------------------------


def _factors(array: Array) -> Array:
    if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
        raise ValueError(f"lower_upper must be square matrices, got shape {array.shape}")
    return array


def _parts(factors):
    lower = jnp.tril(factors, -1) + jnp.eye(factors.shape[-1], dtype=factors.dtype)
    return lower, jnp.triu(factors)


def lu_reconstruct(lower_upper: TensorLike, perm: TensorLike, validate_args=False, name=None) -> Tensor:
    """The matrix of which `lu` gave the two triangles and the permutation."""
    return op(_lu_reconstruct, _factors(raw(lower_upper)), raw(perm))


def _lu_reconstruct(factors, perm):
    lower, upper = _parts(factors)
    return jnp.take_along_axis(jnp.matmul(lower, upper), jnp.argsort(perm)[..., None], -2)


def lu_solve(lower_upper: TensorLike, perm: TensorLike, rhs: TensorLike, validate_args=False, name=None) -> Tensor:
    """x with ``A @ x = rhs``, given what `lu` made of A; `rhs` is a matrix."""
    factors, b = arrays_of(lower_upper, rhs)
    return op(_lu_solve, _factors(factors), raw(perm), _matrix("lu_solve", b))


def _lu_solve(factors, perm, b):
    batch = np.broadcast_shapes(factors.shape[:-2], b.shape[:-2])
    axes = ((factors, 2), (perm, 1), (b, 2))
    factors, perm, b = (jnp.broadcast_to(x, (*batch, *x.shape[x.ndim - n :])) for x, n in axes)
    b = jnp.take_along_axis(b, perm[..., None], -2)
    half = lax.linalg.triangular_solve(factors, b, left_side=True, lower=True, unit_diagonal=True)
    return lax.linalg.triangular_solve(factors, half, left_side=True, lower=False)


def lu_matrix_inverse(lower_upper: TensorLike, perm: TensorLike, validate_args=False, name=None) -> Tensor:
    """The inverse of the matrix of which `lu` gave the two triangles and the permutation."""
    factors = raw(lower_upper)
    return lu_solve(factors, perm, _array.eye(factors.shape[-1], dtype=factors.dtype))


# ---- Three diagonals ---------------------------------------------------------------------------------------


def _three(diagonals: TensorLike, diagonals_format: str) -> tuple[TensorLike, TensorLike, TensorLike]:
    """The diagonals above, on and below the main one, each of the matrix' length; the outer ones' spare element is 0."""
    if diagonals_format == "sequence":
        above, main, below = arrays_of(*diagonals)
        n = main.shape[-1]
        if above.shape[-1] == n - 1:
            above = raw(_array.concat([above, _array.zeros_like(above[..., :1])], -1))
        if below.shape[-1] == n - 1:
            below = raw(_array.concat([_array.zeros_like(below[..., :1]), below], -1))
        return above, main, below
    if diagonals_format == "matrix":
        return op(_diagonals, _matrix("diagonals", raw(diagonals), square=True))
    if diagonals_format != "compact":
        raise ValueError(f"diagonals_format must be 'compact', 'sequence' or 'matrix', got {diagonals_format!r}")
    array = raw(diagonals)
    if array.ndim < 2 or array.shape[-2] != 3:
        raise ValueError(f"compact diagonals must have shape (..., 3, n), got {array.shape}")
    above, main, below = _array.unstack(array, axis=-2)
    return above, main, below


def _diagonals(x):
    def band(k):
        wide = [(0, 0)] * (x.ndim - 2) + [(max(-k, 0), max(k, 0))]
        return jnp.pad(jnp.diagonal(x, k, -2, -1), wide)

    return band(1), band(0), band(-1)


def tridiagonal_matmul(diagonals, rhs: TensorLike, diagonals_format="compact", name=None) -> Tensor:
    """A tridiagonal matrix times a matrix; see `tridiagonal_solve` for the formats."""
    b = raw(rhs)
    require_kind("tridiagonal_matmul", b, FIELD)
    return op(_tridiagonal_matmul, *_three(diagonals, diagonals_format), b)


def _tridiagonal_matmul(above, main, below, b):
    zeros = jnp.zeros_like(b[..., :1, :])
    after = jnp.concatenate([b[..., 1:, :], zeros], -2)
    before = jnp.concatenate([zeros, b[..., :-1, :]], -2)
    return above[..., None] * after + main[..., None] * b + below[..., None] * before


@accepting("name partial_pivoting perturb_singular", partial_pivoting=True, perturb_singular=False)
def tridiagonal_solve(
    diagonals: TensorLike,
    rhs: TensorLike,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
) -> Tensor:
    """x with ``A @ x = rhs`` for a tridiagonal A.

    Args:
      diagonals: 'compact': (..., 3, n), the diagonals above, on and below the main one, the last element of the first and the
        first of the last left out of account; 'sequence': the three of them; 'matrix': A.
      rhs: a vector or a matrix; `transpose_rhs` and `conjugate_rhs` are taken of it first.
      partial_pivoting, perturb_singular: taken for TensorFlow's sake: XLA chooses.
    """
    above, main, below = _three(diagonals, diagonals_format)
    b = raw(rhs)
    require_kind("tridiagonal_solve", b, FIELD)
    return op(_tridiagonal_solve, above, main, below, b, transpose=bool(transpose_rhs), conjugate=bool(conjugate_rhs))


def _tridiagonal_solve(above, main, below, b, transpose, conjugate):
    vector = b.ndim == main.ndim
    b = b[..., None] if vector else jnp.swapaxes(b, -1, -2) if transpose else b
    b = jnp.conj(b) if conjugate else b
    n = main.shape[-1]
    inside = np.arange(n)
    above, below = jnp.where(inside < n - 1, above, 0), jnp.where(inside > 0, below, 0)
    x = lax.linalg.tridiagonal_solve(below, main, above, b)
    return x[..., 0] if vector else x


def eigh_tridiagonal(alpha, beta, eigvals_only=True, select="a", select_range=None, tol=None, name=None) -> Nest:
    """The eigenvalues, and unless `eigvals_only` the eigenvectors, of a symmetric tridiagonal matrix.

    Args:
      alpha, beta: its diagonal, and the one above it.
      select: 'a' for all, 'v' for those in the interval `select_range`, 'i' for those numbered from its first to its last.
      tol: taken for TensorFlow's sake: they are found exactly.

    Raises:
      ValueError: an unknown `select`.
    """
    if select not in ("a", "v", "i"):
        raise ValueError(f"select must be 'a', 'v' or 'i', got {select!r}")
    a, b = arrays_of(alpha, beta)
    if a.ndim != 1 or b.shape != (a.shape[0] - 1,):
        raise InvalidArgumentError(f"alpha and beta must be vectors of n and n - 1 elements: {a.shape} and {b.shape}")
    matrix = op(_tridiagonal_matrix, a, b)
    values, vectors = (eigvalsh(matrix), None) if eigvals_only else eigh(matrix)
    if select == "i":
        first, last = static(select_range, "select_range")
        chosen = list(range(int(first), int(last) + 1))
    elif select == "v":
        low, high = static(select_range, "select_range")
        found = host(values, "eigenvalues")
        chosen = np.flatnonzero((found > low) & (found <= high)).tolist()
    else:
        return values if eigvals_only else (values, vectors)
    places = np.asarray(chosen, np.int32)
    values = _array.gather(values, places)
    return values if eigvals_only else (values, _array.gather(vectors, places, axis=1))


def _tridiagonal_matrix(a, b):
    return jnp.diag(a) + jnp.diag(b, 1) + jnp.diag(jnp.conj(b), -1)
