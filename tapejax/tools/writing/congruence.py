"""Whether two programs compute the same by the same operations, in whatever order, each of which may stand there twice.

Operations that have the same name, parameters and inputs are one. Sums and products of two have no order: they are the same to
the last bit.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from ...jaxprs.dependence import has_tangent
from ...jaxprs.types import Value

_COMMUTATIVE = frozenset(("add", "mul"))


def congruent(form: Any, other: Any) -> bool:
    """Whether two forms, as `seeing.spelling.canonical` makes them, are of the same operations.

    >>> row = ("sin", (), (("input", 0),), ("float32",))
    >>> once = (row,), (("value", 0),), ("float32",)
    >>> twice = (row, row), (("value", 1),), ("float32",)
    >>> congruent(once, twice)
    True
    """
    numbers: dict[Hashable, int] = {}
    return results_of(form, numbers) == results_of(other, numbers) and form[2] == other[2]


def results_of(form: Any, numbers: dict[Hashable, int]) -> list[Hashable]:
    """The results of a form; what an operation makes is known by the operation's number in `numbers`."""
    rows, results, _ = form
    made: list[Hashable] = []  # by the number that a value has in the form

    def known(key: tuple) -> Hashable:
        return made[key[1]] if key[0] == "value" else key

    for name, params, ins, avals in rows:
        inputs = list(map(known, ins))
        if name in _COMMUTATIVE and len(inputs) == 2:
            inputs.sort(key=repr)
        number = numbers.setdefault((name, params, tuple(inputs), avals), len(numbers))
        made += [("made", number, i) for i in range(len(avals))]
    return list(map(known, results))


def close(x: Value, y: Value) -> bool:
    """Whether two arrays are the same but for rounding, those of whole numbers exactly."""
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    if not has_tangent(x) and bool((x == y).all()):
        return True
    return np.allclose(x, y, rtol=1e-4, atol=1e-6, equal_nan=True)
