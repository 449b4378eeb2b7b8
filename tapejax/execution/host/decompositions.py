"""JAX's decompositions of matrices in NumPy, for matrices of some size and finite results; the rest is XLA's.

On a CPU XLA calls LAPACK as SciPy has it. Eigenvectors and singular vectors, whose signs are free, come from there, too.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from ...jaxprs.types import Equation, Function, Params
from .numpy_errors import Unsupported
from .primitives import flushed

MOST_ROWS = 128  # a larger one takes longer than its compiling saves


def _swapped(x: Any) -> Any:
    return np.swapaxes(x, -1, -2)


def _triangular_solve(p: Params) -> Function:
    left, transposed = p["left_side"], p["transpose_a"]
    turned = transposed == left  # from the right it is the transposed equation
    lower = p["lower"] != turned

    def solve(a: Any, b: Any) -> Any:
        a, b = np.conj(a) if p["conjugate_a"] else a, b if left else _swapped(b)
        a, x = _swapped(a) if turned else a, np.array(b)
        size = a.shape[-1]
        for i in range(size) if lower else reversed(range(size)):
            done = slice(0, i) if lower else slice(i + 1, size)
            row = x[..., i : i + 1, :] - a[..., i : i + 1, done] @ x[..., done, :]
            x[..., i : i + 1, :] = row if p["unit_diagonal"] else row / a[..., i : i + 1, i : i + 1]
        return x if left else _swapped(x)

    return solve


def _lu(p: Params) -> Function:
    def lu(x: Any) -> Any:
        *batch, m, n = x.shape
        matrices = np.array(x).reshape(-1, m, n)
        each = np.arange(len(matrices))
        order = np.tile(np.arange(m), (len(matrices), 1))
        pivots = np.empty((len(matrices), min(m, n)), np.int32)
        for i in range(min(m, n)):
            column = matrices[:, i:, i]
            size = abs(column.real) + abs(column.imag) if x.dtype.kind == "c" else abs(column)  # as LAPACK compares
            pivots[:, i] = pivot = i + np.argmax(size, 1)
            for rows in (matrices, order):
                rows[each, i], rows[each, pivot] = rows[each, pivot], rows[each, i]
            top, below = matrices[:, i : i + 1, i : i + 1], matrices[:, i + 1 :, i : i + 1]
            np.divide(below, top, out=below, where=top != 0)
            matrices[:, i + 1 :, i + 1 :] -= below * matrices[:, i : i + 1, i + 1 :]
        corner = abs(np.diagonal(matrices, axis1=1, axis2=2)).min(1)
        if (corner <= np.finfo(x.dtype).eps * (m + n) * abs(matrices).max((1, 2))).any():
            raise Unsupported("lu")  # rounding decides whether it is singular
        return matrices.reshape(x.shape), pivots.reshape(*batch, -1), order.reshape(*batch, -1)

    return lu


def _qr(p: Params) -> Function:
    if p["pivoting"]:
        raise Unsupported("qr")
    return lambda x: np.linalg.qr(x, "complete" if p["full_matrices"] else "reduced")


def _lapack(name: str, dtype: Any) -> Any:
    # JAX imports it no earlier, when it compiles a decomposition
    lapack = importlib.import_module("scipy.linalg.lapack")
    return getattr(lapack, "sdcz"["fdFD".index(dtype.char)] + name)


def _one_by_one(fn: Function) -> Function:
    """For a function of one matrix that gives results and, last, LAPACK's number of an error."""

    def of_all(x: Any) -> Any:
        *batch, m, n = x.shape
        results_and_infos = [fn(each) for each in x.reshape(-1, m, n)]
        if not results_and_infos or any([info for *_, info in results_and_infos]):
            raise Unsupported("LAPACK")
        stacked = [np.stack(each) for each in zip(*[results for *results, _ in results_and_infos], strict=True)]
        return [each.reshape(*batch, *each.shape[1:]) for each in stacked]

    return of_all


def _eigh(eqn: Equation) -> Function:
    p, dtype = eqn.params, eqn.invars[0].aval.dtype
    n = eqn.invars[0].aval.shape[-1]
    if p["subset_by_index"] not in (None, (0, n)) or p.get("algorithm") is not None:
        raise Unsupported("eigh")
    syevd = _lapack("heevd" if dtype.kind == "c" else "syevd", dtype)

    def eigh(x: Any) -> Any:
        w, v, info = syevd(x, lower=int(p["lower"]))
        return v, w, info

    return _one_by_one(eigh)


def _svd(eqn: Equation) -> Function:
    p, dtype = eqn.params, eqn.invars[0].aval.dtype
    if p["subset_by_index"] is not None or p.get("algorithm") is not None:
        raise Unsupported("svd")
    gesdd = _lapack("gesdd", dtype)

    def svd(x: Any) -> Any:
        u, s, vt, info = gesdd(x, compute_uv=int(p["compute_uv"]), full_matrices=int(p["full_matrices"]))
        return (s, u, vt, info) if p["compute_uv"] else (s, info)

    step = _one_by_one(svd)
    return step if p["compute_uv"] else lambda x: step(x)[0]


def _of_equation(make: Callable[[Equation], Function]) -> Callable[[Equation], Function]:
    def of_some_size(eqn: Equation) -> Function:
        *batch, m, n = eqn.invars[0].aval.shape
        if max(m, n) > MOST_ROWS or 0 in (*batch, m, n):
            raise Unsupported(eqn.primitive.name)
        step = make(eqn)

        def decompose(*xs: Any) -> Any:
            try:
                results = step(*xs)
            except np.linalg.LinAlgError as error:
                raise Unsupported(eqn.primitive.name) from error
            parts = [flushed(x) for x in (results if len(eqn.outvars) > 1 else [results])]
            if not all([np.isfinite(x).all() for x in parts]):  # what is not differs from one routine to another
                raise Unsupported(eqn.primitive.name)
            return parts if len(parts) > 1 else parts[0]

        return decompose

    return of_some_size


def _with(make: Callable[[Params], Function]) -> Callable[[Equation], Function]:
    return lambda eqn: make(eqn.params)


DECOMPOSITIONS: dict[str, Callable[[Equation], Function]] = {
    name: _of_equation(make)
    for name, make in {
        "triangular_solve": _with(_triangular_solve),
        "cholesky": _with(lambda p: np.linalg.cholesky),
        "lu": _with(_lu),
        "qr": _with(_qr),
        "eigh": _eigh,
        "svd": _svd,
    }.items()
}
