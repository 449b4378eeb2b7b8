"""``tf.test.TestCase``: absl's, as in TensorFlow, with assertions about tensors."""

from __future__ import annotations

import contextlib
import io
import random
import re
import sys
import tempfile
import threading
import types
import unittest
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

import numpy as np

from ..values import nest
from ..values.errors import InvalidArgumentError, OpError, extra_missing
from ..values.tensor import is_array_like
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
        self._require_shape(a, b, msg)
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
        self._require_shape(one, other, msg)
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
        found = [limits[name] for name in (_numpy(a).dtype.name, _numpy(b).dtype.name) if name in limits]
        rtol, atol = (max(values) for values in zip((rtol, atol), *found, strict=True))
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
        if not abs(float(f1) - float(f2)) <= err:
            self.fail(f"{f1!r} != {f2!r} +/- {err!r}{f' ({msg})' if msg else ''}")

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

    def assertArrayNear(
        self, farray1: Sequence[float], farray2: Sequence[float], err: float, msg: str | None = None
    ) -> None:
        """Fails unless two lists of numbers are equally long and differ by no more than `err` anywhere."""
        self.assertEqual(len(farray1), len(farray2), msg)
        for f1, f2 in zip(farray1, farray2, strict=True):
            self.assertNear(f1, f2, err, msg)

    def assertNDArrayNear(self, ndarray1: TensorLike, ndarray2: TensorLike, err: float, msg: str | None = None) -> None:
        """Fails unless two arrays have one shape and the norm of their difference is below `err`."""
        a, b = _numpy(ndarray1), _numpy(ndarray2)
        self.assertTrue(a.shape == b.shape and np.linalg.norm(a - b) < err, msg)

    def assertShapeEqual(self, input_a: TensorLike, input_b: TensorLike, msg: str | None = None) -> None:
        """Fails unless both have the same shape."""
        self.assertEqual(tuple(np.shape(input_a)), tuple(np.shape(input_b)), msg)

    def assertDTypeEqual(self, target: TensorLike, expected_dtype: DTypeLike) -> None:
        """Fails unless it has that dtype."""
        self.assertEqual(_numpy(target).dtype, getattr(expected_dtype, "as_numpy_dtype", expected_dtype))

    # ---- errors ----

    @contextlib.contextmanager
    def assertRaisesWithPredicateMatch(  # type: ignore[override]
        self,
        exception_type: type[BaseException] | tuple[type[BaseException], ...],
        expected_err_re_or_predicate: str | Callable[[Exception], object],
    ) -> Iterator[None]:
        """Fails unless the block raises such an exception, and its text has the pattern or the predicate is true of it."""
        expected = expected_err_re_or_predicate
        matches = expected if callable(expected) else lambda error: re.search(expected, str(error))
        try:
            yield
        except Exception as error:
            if not isinstance(error, exception_type) or not matches(error):
                raise self.failureException(f"Exception of type {type(error)}: {error}") from error
        else:
            self.fail(f"{getattr(exception_type, '__name__', exception_type)} not raised")

    def assertRaisesOpError(
        self, expected_err_re_or_predicate: str | Callable[[Exception], object]
    ) -> contextlib.AbstractContextManager[None]:
        """Fails unless the block raises one of ``tf.errors`` with such a text."""
        return self.assertRaisesWithPredicateMatch(OpError, expected_err_re_or_predicate)

    def assertRaisesIncompatibleShapesError(
        self, exception_type: type[BaseException] | tuple[type[BaseException], ...] = InvalidArgumentError
    ) -> contextlib.AbstractContextManager[None]:
        """Fails unless the block is refused for shapes that do not fit."""
        shapes = "Incompatible shapes|Dimensions must be equal|required broadcastable shapes"
        return self.assertRaisesWithPredicateMatch(exception_type, shapes)

    def assertDeviceEqual(self, device1: object, device2: object, msg: str | None = None) -> None:
        """Fails unless two names of devices are the same, upper or lower case."""
        self.assertEqual(str(device1).lower().strip("/"), str(device2).lower().strip("/"), msg)

    def _require_shape(self, a: TensorLike, b: TensorLike, msg: str | None) -> None:
        one, other = np.shape(_numpy(a)), np.shape(_numpy(b))
        self._require(one == other, f"shape mismatch: {one}, {other}", msg)

    def _require(self, holds: bool, text: str, msg: str | None) -> None:
        if not holds:
            self.fail(self._formatMessage(msg, text))

    # ---- the world around a test ----

    def get_temp_dir(self) -> str:
        """A directory for this test alone, the same at each call; it is deleted after the test."""
        if not hasattr(self, "_temp_dir"):
            directory = tempfile.TemporaryDirectory()
            self.addCleanup(directory.cleanup)
            self._temp_dir = directory.name
        return self._temp_dir

    def checkedThread(self, target: Callable, args: Sequence | None = None, kwargs: dict | None = None) -> Any:
        """A thread with `start` and `join`, which fails if `target` raised."""
        thread = _CheckedThread(target=target, args=tuple(args or ()), kwargs=kwargs)
        thread.case = self
        return thread

    @contextlib.contextmanager
    def captureWritesToStream(self, stream: IO) -> Iterator[types.SimpleNamespace]:
        """Captures what Python writes to ``sys.stdout`` or ``sys.stderr``; ``contents()`` is what it was."""
        redirect = contextlib.redirect_stderr if stream is sys.stderr else contextlib.redirect_stdout
        with redirect(io.StringIO()) as text:
            yield types.SimpleNamespace(contents=text.getvalue)

    @contextlib.contextmanager
    def session(self, *args: Any, **kwargs: Any) -> Iterator[None]:
        """A block for `evaluate`: there are no graphs, and nothing that could be run in them."""
        yield None

    cached_session = test_session = session


class _CheckedThread(threading.Thread):
    case: unittest.TestCase
    error: BaseException | None = None

    def run(self) -> None:
        try:
            super().run()
        except BaseException as error:
            self.error = error

    def join(self, timeout: float | None = None) -> None:
        super().join(timeout)
        if self.error is not None:
            self.case.fail(f"Error in checkedThread: {self.error}")


def main(argv: list[str] | None = None) -> None:
    """Runs the tests of the program, as ``unittest.main`` does."""
    unittest.main(argv=argv)
