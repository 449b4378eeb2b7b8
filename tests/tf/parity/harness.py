"""One test body, two systems: real TensorFlow says what is right, tapejax has to agree.

    @parity
    def test_sum_rule(tf):
        "The gradient of a sum is the sum of the gradients."
        x = tf.Variable(3.0)
        with tf.GradientTape() as tape:
            y = x**2 + x
        print(x.shape)
        return tape.gradient(y, x)

The body runs once with ``tf`` bound to tensorflow and twice with ``tf`` bound to tapejax: with JAX's 64-bit types off and
on. What it returned and printed is brought into one neutral form (an `Outcome`) and compared. So a body is an ordinary
small TensorFlow program that returns whatever shows the rule it is about; it asserts nothing itself.

* `error_of(action)` turns "what does this raise?" into a value, so that one body can ask it several times.
* Values compare to ``rtol``, doubles more closely; dtypes, shapes, ``None``, structure and printed text compare exactly.
* While 64-bit types are off, tapejax gives the 32-bit type in the place of each of TensorFlow's 64-bit types, nothing else
  (`NARROW`), and a warning that says so.
* An error agrees when tapejax raises TensorFlow's class or a subclass: the program's ``except`` still catches it.
* A body must be deterministic: random numbers come from NumPy with a seed.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import kept
import numpy as np
import pytest
from outcomes import Array, Error, Outcome, error_of, outcome_under_tapejax, outcome_under_tensorflow

from tapejax.jaxprs import cache
from tapejax.tape import rules

__all__ = [
    "check",
    "compare",
    "differences",
    "error_of",
    "import_tapejax",
    "import_tensorflow",
    "parity",
    "tensorflows",
]

RTOL, ATOL = 1e-5, 1e-6
DOUBLE = (
    1e-9  # of what is in double precision, where a body says nothing of its tolerance: it was never in single precision
)


def parity(body: Callable | None = None, **options: Any) -> Callable:
    """Make a pytest test out of a body ``def test_rule(tf)`` that runs under TensorFlow and under tapejax.

    Options:
        rtol, atol: tolerances for floating point values (float16 and bfloat16 get at least their own precision).
        x64_only: the reason why the body has nothing to say while 64-bit types are off.
        warns: both systems must give a warning; without it tapejax must give none.
        says: what tapejax's error message must contain, where an issue asks for a certain hint.
        differs: the reason of a deliberate difference, as in the docs/differences.md. Then the outcomes must differ, so
            that the table cannot outlive the difference.
    """
    if body is None:
        return functools.partial(parity, **options)

    def test() -> None:
        __tracebackhide__ = True
        check(body, **options)

    functools.update_wrapper(test, body)
    test.__signature__ = inspect.Signature()  # type: ignore[attr-defined]  # else pytest looks for a fixture named tf
    return pytest.mark.tensorflow(test)


def check(body: Callable, **options: Any) -> None:
    """Run a body under both systems and fail with every difference found; options as `parity`'s."""
    __tracebackhide__ = True  # the report says it all
    compare(body, tensorflows(lambda: outcome_under_tensorflow(body, import_tensorflow())), import_tapejax(), **options)


def compare(
    body: Callable,
    expected: Outcome,
    tapejax: Any,
    *,
    rtol: float = RTOL,
    atol: float = ATOL,
    x64_only: str = "",
    warns: bool = False,
    says: str = "",
    differs: str = "",
) -> None:
    """Run a body under tapejax, in both modes, and fail with every difference from the expected outcome."""
    __tracebackhide__ = True
    for x64 in (True,) if x64_only else (False, True):
        mode = f"with 64-bit types {'on' if x64 else 'off'}"
        try:
            with jax.enable_x64(x64), its_own_registrations():
                actual = outcome_under_tapejax(body, tapejax)
        except BaseException as error:
            error.add_note(f"raised under tapejax {mode}")
            raise
        report = f"{inspect.getdoc(body) or body.__name__}\n\nTensorFlow: {expected}\n\ntapejax {mode}: {actual}\n\n"
        judge(expected, actual, report, x64, rtol, atol, warns, says, differs)


@contextlib.contextmanager
def its_own_registrations() -> Iterator[None]:
    """The gradients that a body registers are forgotten after it: names are registered once, and it runs twice."""
    before = dict(rules._rules)
    try:
        yield
    finally:
        if rules._rules != before:
            rules._rules.clear()
            rules._rules.update(before)
            cache.clear()


def judge(
    expected: Outcome,
    actual: Outcome,
    report: str,
    x64: bool,
    rtol: float,
    atol: float,
    warns: bool,
    says: str,
    differs: str,
) -> None:
    """Fail if an outcome is not what the body's options promise."""
    __tracebackhide__ = True
    found = differences(expected, actual, rtol, atol, x64)
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


# --- the two systems ------------------------------------------------------------------------------------------------


@functools.cache
def import_tensorflow() -> Any:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")  # one way of rounding, whatever the machine
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import tensorflow
    return tensorflow


def import_tapejax() -> Any:
    import tapejax

    return tapejax


def tensorflows(compute: Callable[[], Outcome], *sources: str) -> Outcome:
    """TensorFlow's outcome of the test that runs now: the kept one, or what `compute` gives, as ``--tensorflow`` says."""
    __tracebackhide__ = True
    file, name = kept.current_test(*sources)
    known = file.outcomes.get(name)
    version = kept.tensorflow_version()
    if known is not None and (kept.mode == "kept" or kept.mode == "keep" and file.version == version):
        return known
    if not version:
        pytest.fail(f"TensorFlow is not installed, and {file.missing(name)}", pytrace=False)
    fresh = compute()
    if known is None:
        kept.computed.add(kept.current_file())
    if kept.mode == "keep":
        file.keep(name, fresh)
    elif kept.mode == "fresh":
        assert known is not None, file.missing(name)
        changed = differences(known, fresh, 1e-4, 1e-5, x64=True)
        assert not changed, "\n".join([f"TensorFlow {version} is not as the kept {file.version}:", *changed])
    return fresh


# --- comparing ------------------------------------------------------------------------------------------------------


def differences(expected: Outcome, actual: Outcome, rtol: float, atol: float, x64: bool) -> list[str]:
    """Every place where two outcomes differ, as lines for a person; `x64` as tapejax ran."""

    def same_text(want: str, got: str) -> bool:
        return want == got or not x64 and narrow(want) == narrow(got)

    def same_dtype(want: Array, got: Array) -> bool:
        if x64 or want.kind == "numpy" and want.dtype == got.dtype:  # NumPy's own results keep their types
            return want.dtype == got.dtype
        return narrow(want.dtype) == got.dtype

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
        elif isinstance(want, str):
            if not same_text(want, got):
                yield f"{path}: TensorFlow {want!r}, tapejax {got!r}"
        elif want != got:
            yield f"{path}: TensorFlow {want!r}, tapejax {got!r}"

    def compare_arrays(path: str, want: Array, got: Array) -> Iterator[str]:
        if want.kind != got.kind:
            yield f"{path}: TensorFlow a {want.kind}, tapejax a {got.kind}"
        if not same_dtype(want, got):
            yield f"{path}: TensorFlow {want.dtype}, tapejax {got.dtype}"
        if want.values.shape != got.values.shape:
            yield f"{path}: TensorFlow's shape {want.values.shape}, tapejax's {got.values.shape}"
        elif not close(want.values, got.values, *((DOUBLE, DOUBLE) if is_double(want, got) else (rtol, atol))):
            yield f"{path}: TensorFlow {want.values.tolist()}, tapejax {got.values.tolist()}"

    def is_double(want: Array, got: Array) -> bool:
        """Whether neither may have been rounded to single precision on the way."""
        return (
            x64
            and (rtol, atol) == (RTOL, ATOL)
            and {want.values.dtype.name, got.values.dtype.name}
            <= {
                "float64",
                "complex128",
            }
        )

    found = list(compare("result", expected.value, actual.value))
    if not same_text(expected.printed, actual.printed):
        found.append(f"printed: TensorFlow {expected.printed!r}, tapejax {actual.printed!r}")
    return found


NARROW = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}


def narrow(text: str) -> str:
    """`text` with the name of every 64-bit type replaced by that of its 32-bit type."""
    return re.sub(r"\b(u?int64|float64|complex128)\b", lambda name: NARROW[name[0]], text)


OWN_PRECISION = {"float16": 2e-3, "bfloat16": 2e-2}


def close(want: np.ndarray, got: np.ndarray, rtol: float, atol: float) -> bool:
    if want.dtype.kind in "biuSUO":
        return np.array_equal(want, got)
    rtol = max(rtol, OWN_PRECISION.get(want.dtype.name, 0))
    # Compared in double precision: NumPy has next to no arithmetic for bfloat16.
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    return np.allclose(want.astype(wide), got.astype(wide), rtol, atol, equal_nan=True)


def errors_in(value: Any) -> Iterator[Error]:
    if isinstance(value, Error):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from errors_in(item)
