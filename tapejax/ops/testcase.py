"""``tf.test.TestCase``: Python's, with assertions about tensors."""

from __future__ import annotations

import unittest
from typing import Any

import numpy as np

from ..values import nest
from ..values.tensor import is_array_like


def _numpy(x: Any) -> Any:
    return np.asarray(x) if not is_array_like(x) else np.asarray(x.numpy() if hasattr(x, "numpy") else x)


class TestCase(unittest.TestCase):
    """Python's TestCase, with TensorFlow's assertions about tensors and structures of them."""

    def evaluate(self, tensors: Any) -> Any:
        """A structure of tensors as NumPy."""
        return nest.map_structure(lambda x: x.numpy() if hasattr(x, "numpy") else x, tensors)

    def assertAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Fails unless both have the same shape and elements."""
        np.testing.assert_array_equal(_numpy(a), _numpy(b), msg or "")

    def assertAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None) -> None:
        """Fails unless all elements of two tensors, or of two structures of tensors, are near each other."""
        nest.assert_same_structure(a, b, check_types=False) if nest.is_nested(a) and _holds_tensors(a) else None
        pairs = zip(nest.flatten(a), nest.flatten(b), strict=True) if _holds_tensors(a) else [(a, b)]
        for one, other in pairs:
            np.testing.assert_allclose(_numpy(one), _numpy(other), rtol, atol, err_msg=msg or "")

    def assertAllCloseAccordingToType(
        self,
        a: Any,
        b: Any,
        rtol: float = 1e-6,
        atol: float = 1e-6,
        float_rtol: float = 1e-6,
        float_atol: float = 1e-6,
        half_rtol: float = 1e-3,
        half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2,
        msg: str | None = None,
    ) -> None:
        """As `assertAllClose`, as near as the shorter dtype of the two allows."""
        limits = {
            "float32": (float_rtol, float_atol),
            "float16": (half_rtol, half_atol),
            "bfloat16": (bfloat16_rtol, bfloat16_atol),
        }
        found = [limits[name] for name in (_numpy(a).dtype.name, _numpy(b).dtype.name) if name in limits]
        rtol, atol = (max(values) for values in zip((rtol, atol), *found, strict=True))
        self.assertAllClose(a, b, rtol, atol, msg)

    def assertNotAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None) -> None:
        """Fails if all elements are near each other."""
        if np.allclose(_numpy(a), _numpy(b), rtol, atol):
            self.fail(msg or "The two values are close at all elements")

    def assertNotAllEqual(self, a: Any, b: Any, msg: str | None = None) -> None:
        """Fails if all elements are equal."""
        if np.array_equal(_numpy(a), _numpy(b)):
            self.fail(msg or "The two values are equal at all elements")

    def assertNear(self, f1: Any, f2: Any, err: float, msg: str | None = None) -> None:
        """Fails unless two numbers differ by no more than `err`."""
        if not abs(float(f1) - float(f2)) <= err:
            self.fail(f"{f1!r} != {f2!r} +/- {err!r}{f' ({msg})' if msg else ''}")

    def assertAllInRange(
        self,
        target: Any,
        lower_bound: Any,
        upper_bound: Any,
        open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:
        """Fails unless all elements lie between the bounds."""
        x = _numpy(target)
        above = x > lower_bound if open_lower_bound else x >= lower_bound
        below = x < upper_bound if open_upper_bound else x <= upper_bound
        if not (above & below).all():
            self.fail(f"elements outside of {lower_bound} .. {upper_bound}: {x[~(above & below)]}")

    def assertShapeEqual(self, input_a: Any, input_b: Any, msg: str | None = None) -> None:
        """Fails unless both have the same shape."""
        self.assertEqual(tuple(np.shape(input_a)), tuple(np.shape(input_b)), msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:
        """Fails unless it has that dtype."""
        self.assertEqual(_numpy(target).dtype, getattr(expected_dtype, "as_numpy_dtype", expected_dtype))


def _holds_tensors(x: Any) -> bool:
    return nest.is_nested(x) and any(is_array_like(leaf) or isinstance(leaf, np.ndarray) for leaf in nest.flatten(x))


def main(argv: Any = None) -> None:
    """Runs the tests of the program, as ``unittest.main`` does."""
    unittest.main(argv=argv)
