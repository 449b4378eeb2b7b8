"""One test body, two systems: real TensorFlow says what is right, tapejax has to agree.

    @parity
    def test_sum_rule(tf):
        "The gradient of a sum is the sum of the gradients."
        x = tf.Variable(3.0)
        with tf.GradientTape() as tape:
            y = x**2 + x
        print(x.shape)
        return tape.gradient(y, x)

The body runs once with ``tf`` bound to tensorflow and once with ``tf`` bound to tapejax. What it returned and printed
is brought into one neutral form (an `Outcome`) and compared. So a body is an ordinary small TensorFlow program that
returns whatever shows the rule it is about; it asserts nothing itself.

* `error_of(action)` turns "what does this raise?" into a value, so that one body can ask it several times.
* Values compare to ``rtol``; dtypes, shapes, ``None``, structure and printed text compare exactly.
* An error agrees when tapejax raises TensorFlow's class or a subclass: the program's ``except`` still catches it.
* A body must be deterministic: random numbers come from NumPy with a seed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import inspect
import io
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest


def parity(body: Callable | None = None, **options: Any) -> Callable:
    """Make a pytest test out of a body ``def test_rule(tf)`` that runs under TensorFlow and under tapejax.

    Options:
        rtol, atol: tolerances for floating point values (float16 and bfloat16 get at least their own precision).
        x64: run tapejax with ``jax_enable_x64``, for bodies about float64 and int64.
        any_width: let int32 pass for TensorFlow's int64 and float32 for its float64 (argmax, int / int).
        warns: both systems must give a warning; without it tapejax must give none.
        says: what tapejax's error message must contain, where an issue asks for a certain hint.
        differs: the reason of a deliberate difference, as in the README's table. Then the outcomes must differ, so
            that the table cannot outlive the difference.
    """
    if body is None:
        return functools.partial(parity, **options)

    def test() -> None:
        __tracebackhide__ = True
        check(body, import_tensorflow(), import_tapejax(), **options)

    functools.update_wrapper(test, body)
    test.__signature__ = inspect.Signature()  # type: ignore[attr-defined]  # else pytest looks for a fixture named tf
    return pytest.mark.tensorflow(test)


def check(
    body: Callable,
    tensorflow: Any,
    tapejax: Any,
    *,
    rtol: float = 1e-5,
    atol: float = 1e-6,
    x64: bool = False,
    any_width: bool = False,
    warns: bool = False,
    says: str = "",
    differs: str = "",
) -> None:
    """Run the body twice and fail with every difference found."""
    __tracebackhide__ = True  # the report says it all
    expected = outcome_under_tensorflow(body, tensorflow)
    with jax.enable_x64(x64):
        actual = outcome_under_tapejax(body, tapejax)

    found = differences(expected, actual, rtol, atol, any_width)
    report = f"{inspect.getdoc(body)}\n\nTensorFlow: {expected}\n\ntapejax: {actual}\n\n"
    if differs:
        assert found, f"no longer differs from TensorFlow, take it off the table: {differs}\n{report}"
        return
    assert not found, report + "\n".join(found)
    for error in errors_in(actual.value):
        assert says in error.message, f"{report}the message does not say {says!r}: {error.message!r}"
    if warns:
        assert expected.warnings, f"{report}TensorFlow gave no warning"
        assert actual.warnings, f"{report}tapejax gave no warning"
    else:
        assert not actual.warnings, f"{report}tapejax gave warnings: {actual.warnings}"


# --- running one side -----------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Outcome:
    """All that can be seen of a run: the returned value, the printed text, the warnings."""

    value: Any
    printed: str
    warnings: list[str]

    def __str__(self) -> str:
        return f"{self.value!r}" + (f"\nprinted:\n{self.printed}" if self.printed else "")


@dataclasses.dataclass
class Error:
    """An exception as a value: its class and that class's bases, by name."""

    name: str
    bases: tuple[str, ...]
    message: str

    def __repr__(self) -> str:
        return f"raises {self.name}({self.message[:300]!r})"


@dataclasses.dataclass
class Array:
    """A tensor, variable or NumPy array, whoever made it."""

    kind: str
    dtype: str
    values: np.ndarray

    def __repr__(self) -> str:
        return f"{self.kind}({self.values.tolist()}, shape={self.values.shape}, dtype={self.dtype})"


def error_of(action: Callable, *args: Any, **kwargs: Any) -> Error | None:
    """The exception that a call raises, as a value a body can return; None when it raises none."""
    try:
        action(*args, **kwargs)
    except Exception as error:  # whatever it is, it is the result
        return Error(type(error).__name__, tuple(base.__name__ for base in type(error).__mro__), str(error))
    return None


def run(body: Callable, tf: Any, warned: list[str]) -> Outcome:
    """Run a body to its neutral outcome; an error that it did not ask for with `error_of` is a failure of the test."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        value = neutral(body(tf))
    return Outcome(value, printed.getvalue(), warned)


def outcome_under_tensorflow(body: Callable, tensorflow: Any) -> Outcome:
    """Run under TensorFlow; its warnings are log records, and what NumPy thinks of its code is not our business."""
    forget_logged_messages()
    with warnings.catch_warnings(), captured_log("tensorflow") as logged:
        warnings.simplefilter("ignore")
        return run(body, tensorflow, logged)


def outcome_under_tapejax(body: Callable, tapejax: Any) -> Outcome:
    with warnings.catch_warnings(record=True) as raised, captured_log("tapejax") as logged:
        warnings.simplefilter("always")
        outcome = run(body, tapejax, logged)
    logged.extend(str(warning.message) for warning in raised)
    return outcome


@contextlib.contextmanager
def captured_log(name: str) -> Iterator[list[str]]:
    """Collect what a logger says at level WARNING or above instead of letting it reach the terminal."""
    messages: list[str] = []
    collector = logging.Handler(logging.WARNING)
    collector.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger(name)
    handlers, propagate = logger.handlers, logger.propagate
    logger.handlers, logger.propagate = [collector], False
    try:
        yield messages
    finally:
        logger.handlers, logger.propagate = handlers, propagate


def forget_logged_messages() -> None:
    """TensorFlow gives some warnings once per process: let every body hear them."""
    tf_logging = sys.modules.get("tensorflow.python.platform.tf_logging")
    getattr(tf_logging, "_log_counter_per_token", {}).clear()


@functools.cache
def import_tensorflow() -> Any:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")  # one way of rounding, whatever the machine
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("tensorflow", reason="the oracle of the parity tests is tensorflow-cpu")


def import_tapejax() -> Any:
    import tapejax

    return tapejax


# --- the neutral form -----------------------------------------------------------------------------------------------


def neutral(value: Any) -> Any:
    """Rewrite a result so that nothing in it says which system made it."""
    match value:
        case None | bool() | int() | float() | complex() | str() | bytes() | Error():
            if isinstance(value, enum.Enum):
                return type(value).__name__, value.name
            return value
        case enum.Enum():
            return type(value).__name__, value.name
        case type():
            return "class", value.__name__
        case dict():
            return type(value).__name__, [(key, neutral(item)) for key, item in value.items()]
        case tuple() if hasattr(value, "_fields"):
            return type(value).__name__, [(name, neutral(getattr(value, name))) for name in value._fields]
        case list() | tuple() if not is_shape(value):
            return type(value).__name__, [neutral(item) for item in value]
    if is_shape(value):
        return "TensorShape", None if value.rank is None else value.as_list()
    if hasattr(value, "as_numpy_dtype"):
        return "DType", value.name
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return neutral_array(value)
    raise TypeError(f"a parity body returned {value!r}, which the harness cannot compare")


def is_shape(value: Any) -> bool:
    return hasattr(value, "as_list") and hasattr(value, "num_elements")


def neutral_array(value: Any) -> Array:
    if hasattr(value, "trainable"):
        kind = "variable"
    elif isinstance(value, (np.ndarray, np.generic)):
        kind = "numpy"
    elif type(value).__name__ == "IndexedSlices":
        raise TypeError("TensorFlow gave IndexedSlices: let the body return tf.convert_to_tensor(gradient)")
    else:
        kind = "tensor"
    dtype = getattr(value.dtype, "name", None) or np.dtype(value.dtype).name
    return Array(kind, dtype, np.asarray(value.numpy() if hasattr(value, "numpy") else value))


def errors_in(value: Any) -> Iterator[Error]:
    if isinstance(value, Error):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from errors_in(item)


# --- comparing ------------------------------------------------------------------------------------------------------


def differences(expected: Outcome, actual: Outcome, rtol: float, atol: float, any_width: bool) -> list[str]:
    """Every place where two outcomes differ, as lines for a person."""

    def compare(path: str, want: Any, got: Any) -> Iterator[str]:
        if isinstance(want, Error) and isinstance(got, Error):
            if want.name not in got.bases:
                yield f"{path}: TensorFlow {want}, tapejax {got}"
        elif isinstance(want, Array) and isinstance(got, Array):
            yield from compare_arrays(path, want, got)
        elif type(want) is not type(got):
            yield f"{path}: TensorFlow {want!r}, tapejax {got!r}"
        elif isinstance(want, (list, tuple)):
            if len(want) != len(got):
                yield f"{path}: TensorFlow has {len(want)} items, tapejax {len(got)}"
            for index, (one, other) in enumerate(zip(want, got)):
                yield from compare(f"{path}[{index}]", one, other)
        elif isinstance(want, (float, complex)):
            if not np.allclose(want, got, rtol, atol, equal_nan=True):
                yield f"{path}: TensorFlow {want!r}, tapejax {got!r}"
        elif want != got:
            yield f"{path}: TensorFlow {want!r}, tapejax {got!r}"

    def compare_arrays(path: str, want: Array, got: Array) -> Iterator[str]:
        if want.kind != got.kind:
            yield f"{path}: TensorFlow a {want.kind}, tapejax a {got.kind}"
        if want.dtype != got.dtype and not (any_width and {want.dtype, got.dtype} in SAME_BUT_FOR_WIDTH):
            yield f"{path}: TensorFlow {want.dtype}, tapejax {got.dtype}"
        if want.values.shape != got.values.shape:
            yield f"{path}: TensorFlow's shape {want.values.shape}, tapejax's {got.values.shape}"
        elif not close(want.values, got.values, rtol, atol):
            yield f"{path}: TensorFlow {want.values.tolist()}, tapejax {got.values.tolist()}"

    found = list(compare("result", expected.value, actual.value))
    if expected.printed != actual.printed:
        found.append(f"printed: TensorFlow {expected.printed!r}, tapejax {actual.printed!r}")
    return found


SAME_BUT_FOR_WIDTH = [{"int64", "int32"}, {"float64", "float32"}, {"complex128", "complex64"}]
OWN_PRECISION = {"float16": 2e-3, "bfloat16": 2e-2}


def close(want: np.ndarray, got: np.ndarray, rtol: float, atol: float) -> bool:
    if want.dtype.kind in "biuSUO":
        return np.array_equal(want, got)
    rtol = max(rtol, OWN_PRECISION.get(want.dtype.name, 0))
    # Compared in double precision: NumPy has next to no arithmetic for bfloat16.
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    return np.allclose(want.astype(wide), got.astype(wide), rtol, atol, equal_nan=True)
