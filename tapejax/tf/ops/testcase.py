"""``tf.test.TestCase``: absl's, as in TensorFlow, with assertions about tensors."""

from __future__ import annotations

import contextlib
import random
import tempfile
import unittest
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ..values import nest
from ..values.conversion import is_array_like
from ..values.errors import extra_missing
from ..values.types import DTypeLike, FloatLike, Nest, TensorLike
from .random import set_seed

try:
    from absl.testing import absltest
except ImportError as error:
    raise extra_missing("tf.test.TestCase", "absl-py", "testing") from error

_SEED = 87654321  # TensorFlow's


def _numpy(x: TensorLike) -> np.ndarray:
    return np.asarray(x) if not is_array_like(x) else np.asarray(x.numpy() if hasattr(x, "numpy") else x)


class TestCase(absltest.TestCase):
    """absl's TestCase, with TensorFlow's assertions about tensors and structures of them."""

    def setUp(self) -> None:
        """Python's, NumPy's and TensorFlow's random numbers start from TensorFlow's number."""
        super().setUp()
        random.seed(_SEED)
        np.random.seed(_SEED)
        set_seed(_SEED)

    def evaluate(self, tensors: Nest) -> Nest:
        """A structure of tensors as NumPy."""
        return nest.map_structure(lambda x: x.numpy() if hasattr(x, "numpy") else x, tensors)

    def assertAllEqual(self, a: TensorLike, b: TensorLike, msg: str | None = None) -> None:
        """Fails unless both have the same shape and elements."""
        self.assertShapeEqual(a, b, msg)
        one, other = (x.astype(np.float32) if x.dtype.kind == "V" else x for x in map(_numpy, (a, b)))  # bfloat16's nan
        np.testing.assert_array_equal(one, other, msg or "")

    def assertAllClose(self, a: Nest, b: Nest, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None) -> None:
        """Fails unless all elements of two tensors, or of two structures of tensors, are near each other."""
        a, b = (x._asdict() if hasattr(x, "_asdict") else x for x in (a, b))
        if isinstance(a, Mapping) != isinstance(b, Mapping):
            raise ValueError(f"a dict can be compared with a dict only: {a!r}, {b!r}")
        if isinstance(a, Mapping):
            self.assertItemsEqual(a, b, msg)
            for key in a:
                self.assertAllClose(a[key], b[key], rtol, atol, msg)
            return
        try:
            one, other = _numpy(a), _numpy(b)
        except (ValueError, TypeError):  # of several shapes: element by element
            if len(a) != len(b):
                raise ValueError(f"mismatched length: {len(a)} items, {len(b)} items") from None
            for x, y in zip(a, b, strict=True):
                self.assertAllClose(x, y, rtol, atol, msg)
            return
        self.assertShapeEqual(one, other, msg)
        if not np.allclose(one, other, rtol, atol, equal_nan=True):  # NumPy's assertion takes no tensors as tolerances
            np.testing.assert_allclose(one, other, rtol, atol, err_msg=msg or "")

    def assertAllCloseAccordingToType(
        self,
        a: Nest,
        b: Nest,
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
        limits = {"float32": (float_rtol, float_atol), "float16": (half_rtol, half_atol)}
        limits["bfloat16"] = bfloat16_rtol, bfloat16_atol
        looser = [limits[name] for name in (_numpy(a).dtype.name, _numpy(b).dtype.name) if name in limits]
        rtol, atol = (max(values) for values in zip((rtol, atol), *looser, strict=True))
        self.assertAllClose(a, b, rtol, atol, msg)

    def assertNotAllClose(
        self, a: TensorLike, b: TensorLike, rtol: float = 1e-6, atol: float = 1e-6, msg: str | None = None
    ) -> None:
        """Fails if all elements are near each other."""
        if np.allclose(_numpy(a), _numpy(b), rtol, atol):
            self.fail(msg or "The two values are close at all elements")

    def assertNotAllEqual(self, a: TensorLike, b: TensorLike, msg: str | None = None) -> None:
        """Fails if all elements are equal."""
        if np.array_equal(_numpy(a), _numpy(b)):
            self.fail(msg or "The two values are equal at all elements")

    def assertNear(self, f1: FloatLike, f2: FloatLike, err: float, msg: str | None = None) -> None:
        """Fails unless two numbers differ by no more than `err`."""
        self.assertAlmostEqual(float(f1), float(f2), msg=msg, delta=err)

    def assertAllInRange(
        self, target, lower_bound, upper_bound, open_lower_bound=False, open_upper_bound=False
    ) -> None:
        """Fails unless all elements lie between the bounds."""
        x = _numpy(target)
        above = x > lower_bound if open_lower_bound else x >= lower_bound
        below = x < upper_bound if open_upper_bound else x <= upper_bound
        if not (above & below).all():
            self.fail(f"elements outside of {lower_bound} .. {upper_bound}: {x[~(above & below)]}")

    def assertAllInSet(self, target: TensorLike, expected_set: Iterable) -> None:
        """Fails unless each element is one of `expected_set`."""
        others = np.setdiff1d(_numpy(target).ravel(), list(expected_set))
        if others.size:
            self.fail(f"{others.size} unique element(s) are not in the set {expected_set}: {others}")

    def assertAllGreater(self, a: TensorLike, comparison_target: FloatLike) -> None:
        """Fails unless all elements are greater than a number."""
        self.assertGreater(np.min(_numpy(a)), _numpy(comparison_target))

    def assertAllGreaterEqual(self, a: TensorLike, comparison_target: FloatLike) -> None:
        """Fails unless all elements are at least a number."""
        self.assertGreaterEqual(np.min(_numpy(a)), _numpy(comparison_target))

    def assertAllLess(self, a: TensorLike, comparison_target: FloatLike) -> None:
        """Fails unless all elements are less than a number."""
        self.assertLess(np.max(_numpy(a)), _numpy(comparison_target))

    def assertAllLessEqual(self, a: TensorLike, comparison_target: FloatLike) -> None:
        """Fails unless all elements are at most a number."""
        self.assertLessEqual(np.max(_numpy(a)), _numpy(comparison_target))

    def assertShapeEqual(self, input_a: TensorLike, input_b: TensorLike, msg: str | None = None) -> None:
        """Fails unless both have the same shape."""
        self.assertEqual(np.shape(_numpy(input_a)), np.shape(_numpy(input_b)), msg)

    def assertDTypeEqual(self, target: TensorLike, expected_dtype: DTypeLike) -> None:
        """Fails unless it has that dtype."""
        self.assertEqual(_numpy(target).dtype, getattr(expected_dtype, "as_numpy_dtype", expected_dtype))

    def assertRaisesWithPredicateMatch(  # type: ignore[override]
        self,
        exception_type: type[BaseException] | tuple[type[BaseException], ...],
        expected_err_re_or_predicate: str | Callable[[BaseException], object],
    ) -> contextlib.AbstractContextManager[Any]:
        """Fails unless the block raises such an exception, and its text has the pattern or the predicate is true of it."""
        if callable(expected_err_re_or_predicate):
            return super().assertRaisesWithPredicateMatch(exception_type, expected_err_re_or_predicate)
        return self.assertRaisesRegex(exception_type, expected_err_re_or_predicate)

    # ---- the world around a test ----

    def get_temp_dir(self) -> str:
        """A directory for this test alone, the same at each call; it is deleted after the test."""
        if not hasattr(self, "_temp_dir"):
            directory = tempfile.TemporaryDirectory()
            self.addCleanup(directory.cleanup)
            self._temp_dir = directory.name
        return self._temp_dir

    @contextlib.contextmanager
    def session(self, *args: Any, **kwargs: Any) -> Iterator[None]:
        """A block for `evaluate`: there are no graphs, and nothing that could be run in them."""
        yield None

    cached_session = test_session = session


def main(argv: list[str] | None = None) -> None:
    """Runs the tests of the program, as ``unittest.main`` does."""
    unittest.main(argv=argv)
