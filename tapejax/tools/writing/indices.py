"""Indices of NumPy's, as ``labels`` in ``logp[jnp.arange(n), labels]``.

JAX computes with them before it runs the operation that takes them, which is given one array of all indices.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

import jax.numpy as jnp
import numpy as np

from ...jaxprs.types import Value

# An index of more axes is not looked for.
MOST_AXES = 4


def has_index(expression: ast.expr) -> bool:
    """Whether an expression has a name in an index, which may be an array of NumPy's."""
    indices = (node.slice for node in ast.walk(expression) if isinstance(node, ast.Subscript))
    return any(isinstance(node, (ast.Name, ast.Attribute)) for index in indices for node in ast.walk(index))


def is_index(x: Value) -> bool:
    """Whether it may be an index or a mask, or what JAX makes of these."""
    return jnp.result_type(x).kind in "iub"


def index_arrays(values: Iterable[Value]) -> Iterator[np.ndarray]:
    """The arrays of which values may have been made: their columns, where these are few, from the last one on; themselves.

    >>> [x.tolist() for x in index_arrays([np.array([[0, 2], [1, 0]])])]
    [[2, 0], [0, 1], [[0, 2], [1, 0]]]
    """
    for x in map(np.asarray, values):
        if not x.ndim or x.dtype.kind not in "iu":
            continue
        if x.ndim > 1 and x.shape[-1] <= MOST_AXES:
            yield from (x[..., i] for i in reversed(range(x.shape[-1])))
        yield x


def contents_of(x: Value) -> tuple[tuple[int, ...], bytes]:
    """The shape and the numbers of an array, by which it is known again."""
    numbers = np.asarray(x)
    return numbers.shape, numbers.tobytes()
