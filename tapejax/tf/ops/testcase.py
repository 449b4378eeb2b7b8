"""``tf.test.TestCase``: Python's, with assertions about tensors."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import tempfile
import threading
import types
import unittest
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..values import nest
from ..values.errors import InvalidArgumentError, OpError
from ..values.tensor import is_array_like
from ..values.types import DTypeLike, FloatLike, Nest, TensorLike
from .random import set_seed

_SEED = 87654321  # TensorFlow's


def _numpy(x: TensorLike) -> np.ndarray:
    return np.asarray(x) if not is_array_like(x) else np.asarray(x.numpy() if hasattr(x, "numpy") else x)


class TestCase(unittest.TestCase):
    """Python's TestCase, with TensorFlow's assertions about tensors and structures of them."""

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
    def assertRaisesWithPredicateMatch(
        self,
        exception_type: type[BaseException] | tuple[type[BaseException], ...],
        expected_err_re_or_predicate: str | Callable[[Exception], object],
    ) -> Iterator[None]:
        """Fails unless the block raises such an exception, whose text has the pattern, or for which the predicate is true."""
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

    def assertRaisesWithLiteralMatch(
        self, expected_exception, expected_exception_message: str, callable_obj=None, *args: Any, **kwargs: Any
    ) -> Any:
        """Fails unless the call, or without one the block, raises the exception with exactly this text."""
        text = expected_exception_message
        context = self.assertRaisesWithPredicateMatch(expected_exception, lambda error: str(error) == text)
        if callable_obj is None:
            return context
        with context:
            callable_obj(*args, **kwargs)

    # ---- what TensorFlow's class has from its own base: containers, text, classes ----

    def assertLen(self, container: Sized, expected_len: int, msg: str | None = None) -> None:
        """Fails unless the container has that length."""
        self._require(isinstance(container, Sized), f"Expected a Sized object, got: {type(container).__name__!r}", msg)
        size = len(container)
        self._require(size == expected_len, f"{container!r} has length {size}, not {expected_len}", msg)

    def assertEmpty(self, container: Sized, msg: str | None = None) -> None:
        """Fails unless the container has no elements."""
        self.assertLen(container, 0, msg)

    def assertNotEmpty(self, container: Sized, msg: str | None = None) -> None:
        """Fails if the container has no elements."""
        self._require(isinstance(container, Sized), f"Expected a Sized object, got: {type(container).__name__!r}", msg)
        self._require(len(container) > 0, f"{container!r} has length of 0", msg)

    def assertBetween(self, value: Any, minv: Any, maxv: Any, msg: str | None = None) -> None:
        """Fails unless ``minv <= value <= maxv``."""
        self._require(minv <= value <= maxv, f"{value!r} is not between {minv!r} and {maxv!r}", msg)

    def assertContainsSubset(self, expected_subset: Iterable, actual_set: Iterable, msg: str | None = None) -> None:
        """Fails unless all elements of the one are in the other."""
        missing = set(expected_subset) - set(actual_set)
        self._require(not missing, f"Missing elements {missing}", msg)

    def assertNoCommonElements(self, expected_seq: Iterable, actual_seq: Iterable, msg: str | None = None) -> None:
        """Fails if an element is in both."""
        common = set(expected_seq) & set(actual_seq)
        self._require(not common, f"Common elements {common}", msg)

    def assertSameElements(self, expected_seq: Iterable, actual_seq: Iterable, msg: str | None = None) -> None:
        """Fails unless both have the same elements, however often; strings are refused."""
        texts = isinstance(expected_seq, (str, bytes)) or isinstance(actual_seq, (str, bytes))
        self._require(not texts, "strings are compared by assertEqual", msg)
        one, other = list(expected_seq), list(actual_seq)
        missing, unexpected = [x for x in one if x not in other], [x for x in other if x not in one]
        self._require(not missing and not unexpected, f"missing: {missing}; unexpected: {unexpected}", msg)

    assertItemsEqual = unittest.TestCase.assertCountEqual

    def assertSequenceStartsWith(self, prefix: object, whole: Iterable, msg: str | None = None) -> None:
        """Fails unless the sequence begins with `prefix`, which is an element or a sequence, and not empty."""
        start = list(prefix) if isinstance(prefix, Sequence) else [prefix]
        self._require(bool(start), "Prefix is empty", msg)
        self._require(list(whole)[: len(start)] == start, f"{whole!r} does not begin with {prefix!r}", msg)

    def assertContainsSubsequence(self, container: Iterable, subsequence: Iterable, msg: str | None = None) -> None:
        """Fails unless the elements are in the container in that order, with others between them or not."""
        rest = iter(container)
        self._require(all(x in rest for x in subsequence), f"{subsequence!r} not a subsequence of {container!r}", msg)

    def assertContainsExactSubsequence(
        self, container: Iterable, subsequence: Iterable, msg: str | None = None
    ) -> None:
        """Fails unless the elements are in the container in that order, one right after the other."""
        whole, part = list(container), list(subsequence)
        found = any(whole[i : i + len(part)] == part for i in range(len(whole) - len(part) + 1))
        self._require(found, f"{subsequence!r} not an exact subsequence of {container!r}", msg)

    def assertContainsInOrder(self, strings: str | bytes | Iterable[str], target: str, msg: str | None = None) -> None:
        """Fails unless the strings are found in `target` in that order."""
        at = 0
        for string in [strings] if isinstance(strings, (str, bytes)) else strings:
            at = target.find(str(string), at)
            self._require(at >= 0, f"Did not find {string!r}, in order, in {target!r}", msg)

    def assertSequenceAlmostEqual(self, expected_seq, actual_seq, places=None, msg=None, delta=None) -> None:
        """Fails unless the sequences are equally long and ``assertAlmostEqual`` holds for each pair."""
        self.assertEqual(len(expected_seq), len(actual_seq), msg)
        for one, other in zip(expected_seq, actual_seq, strict=True):
            self.assertAlmostEqual(one, other, places, msg, delta)

    def assertDictAlmostEqual(self, a, b, places=None, msg=None, delta=None) -> None:
        """Fails unless both have the same keys, with numbers that are almost equal, and other values that are equal."""
        if places is not None and delta is not None:
            raise ValueError("specify delta or places not both")
        self.assertIsInstance(a, dict, msg)
        self.assertIsInstance(b, dict, msg)
        self.assertEqual(a.keys(), b.keys(), msg)
        for key in a:
            if isinstance(a[key], (int, float, complex)) and isinstance(b[key], (int, float, complex)):
                self.assertAlmostEqual(a[key], b[key], places, msg, delta)
            else:
                self.assertEqual(a[key], b[key], msg)

    def assertMappingEqual(self, a: Mapping, b: Mapping, msg: str | None = None, mapping_type: type = Mapping) -> None:
        """Fails unless both are mappings with the same keys and values."""
        self.assertIsInstance(a, mapping_type, msg)
        self.assertIsInstance(b, mapping_type, msg)
        unittest.TestCase.assertDictEqual(self, dict(a), dict(b), msg)  # absl's own calls this method

    def assertDataclassEqual(self, first: object, second: object, msg: str | None = None) -> None:
        """Fails unless two dataclasses are equal, and of one type."""
        self.assertIs(type(first), type(second), msg)
        self.assertEqual(first, second, msg)

    def assertSameStructure(self, a: Nest, b: Nest, aname: str = "a", bname: str = "b", msg: str | None = None) -> None:
        """Fails unless two structures of dicts and lists have the same content; lists and tuples are alike."""
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            self.assertEqual(a.keys(), b.keys(), msg)
            pairs = [(key, a[key], b[key]) for key in a]
        elif all(isinstance(x, Sequence) and not isinstance(x, (str, bytes)) for x in (a, b)):
            self._require(len(a) == len(b), f"{aname} has {len(a)} elements, {bname} has {len(b)}", msg)
            pairs = [(i, x, y) for i, (x, y) in enumerate(zip(a, b, strict=True))]
        else:
            self._require(a == b, f"{aname} is {a!r}, {bname} is {b!r}", msg)
            return
        for key, x, y in pairs:
            self.assertSameStructure(x, y, f"{aname}[{key!r}]", f"{bname}[{key!r}]", msg)

    def assertJsonEqual(self, first: str, second: str, msg: str | None = None) -> None:
        """Fails unless two strings are JSON of the same content."""
        self.assertEqual(json.loads(first), json.loads(second), msg)

    def assertStartsWith(self, actual: str, expected_start: str, msg: str | None = None) -> None:
        """Fails unless the text begins so."""
        self._require(actual.startswith(expected_start), f"{actual!r} does not start with {expected_start!r}", msg)

    def assertNotStartsWith(self, actual: str, unexpected_start: str, msg: str | None = None) -> None:
        """Fails if the text begins so."""
        self._require(not actual.startswith(unexpected_start), f"{actual!r} starts with {unexpected_start!r}", msg)

    def assertEndsWith(self, actual: str, expected_end: str, msg: str | None = None) -> None:
        """Fails unless the text ends so."""
        self._require(actual.endswith(expected_end), f"{actual!r} does not end with {expected_end!r}", msg)

    def assertNotEndsWith(self, actual: str, unexpected_end: str, msg: str | None = None) -> None:
        """Fails if the text ends so."""
        self._require(not actual.endswith(unexpected_end), f"{actual!r} ends with {unexpected_end!r}", msg)

    def assertRegexMatch(self, actual_str: str, regexes: Iterable[str], message: str | None = None) -> None:
        """Fails unless one of the patterns, of which there is a list, is found in the text."""
        self._require(not isinstance(regexes, (str, bytes)), "one pattern is for assertRegex", message)
        found = any(re.search(regex, actual_str, re.MULTILINE) for regex in regexes)
        self._require(found, f"{actual_str!r} does not contain any of these regexes: {regexes}", message)

    def assertIsSubclass(self, cls: type, superclass: type, msg: str | None = None) -> None:
        """Fails unless the one class is derived from the other."""
        self._require(issubclass(cls, superclass), f"{cls!r} is not a subclass of {superclass!r}", msg)

    def assertNotIsSubclass(self, cls: type, superclass: type, msg: str | None = None) -> None:
        """Fails if the one class is derived from the other."""
        self._require(not issubclass(cls, superclass), f"{cls!r} is a subclass of {superclass!r}", msg)

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
        """Captures what is written to a stream of the system's, as ``sys.stdout``; ``contents()`` is what it was."""
        stream.flush()
        number, path = tempfile.mkstemp(dir=self.get_temp_dir())
        original = os.dup(stream.fileno())
        os.dup2(number, stream.fileno())
        try:
            yield types.SimpleNamespace(contents=Path(path).read_text)
        finally:
            stream.flush()
            os.dup2(original, stream.fileno())
            os.close(number)
            os.close(original)

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
