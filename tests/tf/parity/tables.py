"""Tables of parity tests: a row is a name and a few lines that run under TensorFlow and under tapejax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from harness import check, error_of


class Table:
    """Rows to run in both systems. ``test_rows = table.test()`` makes a test of each; those with ``slow=True`` are marked so.

    Other options are those of `harness.check`.
    """

    def __init__(self, **options: Any):
        self._options = options
        self._rows: dict[str, tuple[Callable, dict]] = {}

    def _add(self, name: str, body: Callable, options: dict) -> None:
        assert name not in self._rows, f"two rows are named {name}"
        self._rows[name] = body, self._options | options

    def values(self, name: str, body: Callable, **options: Any) -> None:
        """``body(tf)`` returns whatever shows the rule."""
        self._add(name, body, options)

    def errors(self, name: str, body: Callable, **options: Any) -> None:
        """``body(tf)`` returns functions without arguments: what they raise is compared."""
        self._add(name, lambda tf: [error_of(action) for action in body(tf)], options)

    def gradients(self, name: str, op: Callable, *points: Any, **options: Any) -> None:
        """``op(tf, *tensors)``, and its gradient by those points that are floats."""

        def body(tf):
            args = [tf.constant(point) for point in points]
            watched = [x for x in args if x.dtype.is_floating or x.dtype.is_complex]
            with tf.GradientTape() as tape:
                tape.watch(watched)
                result = op(tf, *args)
                leaves = result if isinstance(result, (list, tuple)) else [result]
            targets = [y for y in leaves if y.dtype.is_floating]
            if not targets:
                return list(leaves)
            # cotangents of different numbers, so that no mistake cancels out
            cotangents = [tf.constant(_weights(y.shape), y.dtype) for y in targets]
            found = tape.gradient(targets, watched, output_gradients=cotangents)
            return list(leaves), [None if g is None else tf.convert_to_tensor(g) for g in found]

        self._add(name, body, options)

    def test(self) -> Callable:
        """The test of all rows."""

        @pytest.mark.tensorflow
        @pytest.mark.parametrize(
            "name",
            [
                pytest.param(name, marks=[pytest.mark.slow] if options.pop("slow", False) else [])
                for name, (_, options) in self._rows.items()
            ],
        )
        def test_row(name):
            body, options = self._rows[name]
            check(body, **options)

        return test_row


def _weights(shape: Any) -> np.ndarray:
    return 1.0 + np.arange(np.prod(shape)).reshape(shape) % 7
