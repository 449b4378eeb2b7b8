#!/bin/bash
# Lineax 0.1.1, JAX 0.10.2: a matrix that is tagged as lower triangular is solved without its upper half, and one tagged with a unit diagonal
# without its diagonal. The gradient is that of a full matrix all the same: it is not 0 at the entries that were not read. Train a
# triangular matrix with it, and it does not stay triangular, nor its diagonal 1. `jax.scipy.linalg.solve_triangular` gives 0 there.
#
# Guessed: 0 where nothing was read.
# Seen, of the sum of the solution of [[1, 0], [2, 1]] x = [1, 3]:
#   Lineax [[1.0, 1.0], [-1.0, -1.0]]
#   JAX [[0.0, 0.0], [-1.0, 0.0]]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check lineax==0.1.1 jax==0.10.2
JAX_PLATFORMS=cpu "$folder/venv/bin/python" - <<'PROGRAM'
import jax
import jax.numpy as jnp
import lineax as lx
from jax.scipy.linalg import solve_triangular

matrix, b = jnp.array([[1.0, 0.0], [2.0, 1.0]]), jnp.array([1.0, 3.0])
tags = (lx.lower_triangular_tag, lx.unit_diagonal_tag)


def by_lineax(matrix):
    return lx.linear_solve(lx.MatrixLinearOperator(matrix, tags), b, lx.Triangular()).value


def by_jax(matrix):
    return solve_triangular(matrix, b, lower=True, unit_diagonal=True)


unread = jnp.array([[7.0, 8.0], [0.0, 9.0]])
for name, f, seen in (("Lineax", by_lineax, [[1.0, 1.0], [-1.0, -1.0]]), ("JAX", by_jax, [[0.0, 0.0], [-1.0, 0.0]])):
    assert f(matrix).tolist() == f(matrix + unread).tolist() == [1.0, 1.0]
    gradient = jax.grad(lambda m: f(m).sum())(matrix).tolist()
    print(name, gradient)
    assert gradient == seen
PROGRAM
