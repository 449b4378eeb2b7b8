"""Assertions about tensors, and a mode in which tapejax checks itself.

Assertions look at values, so they say nothing about tensors that JAX is tracing.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence

import jax
import numpy as np

from ...execution import shadow
from ...jaxprs import cache
from ...jaxprs.fence import Tracer
from ...tape import active
from ..values.conversion import is_array_like, raw
from ..values.dtypes import as_dtype, requested
from ..values.errors import InvalidArgumentError
from ..values.operations import op, operands
from ..values.tensor import Tensor
from ..values.types import Array, DTypeLike, Ignored, IntLike, TensorLike
from .custom_gradient import custom_gradient
from .table import Sparse, kind_of, renamed, static


def enable_shadow_mode() -> None:
    """Makes tapejax distrust what it keeps: whatever it uses again is made anew as well, and the two are compared.

    If a number may be wrong: operations, programs and derivatives that were recognised are compared as they are
    written and, where they are run, in what they compute (to the square root of the dtype's epsilon). It is slow, and for the
    whole process; a step then takes a hundred times as long. `disable_shadow_mode` takes it back, `shadow_mode` is both.

    A `tf.function` is not traced again: what it reads of Python while it is traced stays as it was, as in TensorFlow.
    """
    shadow.switch(True)


def disable_shadow_mode() -> None:
    """Takes `enable_shadow_mode` back."""
    shadow.switch(False)


@contextlib.contextmanager
def shadow_mode() -> Iterator[None]:
    """Runs the body in shadow mode, see `enable_shadow_mode`.

    Raises:
      ShadowError (an AssertionError), at the operation whose kept program is not the one that would be made now.

    >>> import tapejax as tf
    >>> x = tf.constant(3.0)
    >>> with tf.debugging.shadow_mode():
    ...     for _ in range(2):
    ...         with tf.GradientTape() as tape:
    ...             tape.watch(x)
    ...             y = x * x
    ...         print(tape.gradient(y, x).numpy())
    6.0
    6.0
    """
    before = cache.shadow
    try:
        shadow.switch(True)
        yield
    finally:
        cache.shadow = before


def clear_caches() -> None:
    """Forgets the programs and derivatives that tapejax keeps to use them again: the next use makes and compiles each anew.

    What a function that is gone alone used goes by itself, a while later. Call this, and ``jax.clear_caches()`` after it, where
    memory matters more than time. What is in use stays: tapes, variables, each `tf.function` with its programs.

    >>> import tapejax as tf
    >>> tf.debugging.clear_caches()
    """
    cache.clear()


def _values(*tensors: TensorLike) -> list[np.ndarray] | None:
    arrays = operands(*tensors) if len(tensors) > 1 else [raw(tensors[0])]
    if any(isinstance(array, Tracer) for array in arrays):
        return None
    return [np.asarray(array) for array in arrays]


def _fail(message: str | None, what: str) -> None:
    raise InvalidArgumentError(f"{message}: {what}" if message else what)


def _require(holds: bool, kind: type[Exception], message: str | None, what: str) -> None:
    if not holds:
        raise kind(f"{message or ''} {what}".strip())


def _compare(name: str, holds: Callable, sign: str) -> Callable[..., None]:
    def public(x: TensorLike, y: TensorLike, message=None, summarize=None, name=None) -> None:
        values = _values(x, y)
        if values is None:
            return
        try:
            wrong = np.argwhere(~np.asarray(holds(*values)))
        except ValueError:
            wrong = np.zeros((1, 0), int)
        if len(wrong):
            where = wrong[0].tolist()
            _fail(message, f"Condition x {sign} y did not hold at index {where}. x: {values[0]}, y: {values[1]}")

    public.__doc__ = f"Raises InvalidArgumentError unless ``x {sign} y`` holds for all elements."
    return renamed(name, public)


def _check(name: str, holds: Callable, what: str) -> Callable[..., None]:
    def public(x: TensorLike, message: str | None = None, summarize: Ignored = None, name: str | None = None) -> None:
        values = _values(x)
        if values is not None and not np.all(holds(values[0])):
            _fail(message, f"Condition {what} did not hold element-wise. x: {values[0]}")

    public.__doc__ = f"Raises InvalidArgumentError unless ``{what}`` holds for all elements."
    return renamed(name, public)


assert_equal = _compare("assert_equal", np.equal, "==")
_none_equal = _compare("assert_none_equal", np.not_equal, "!=")
assert_less = _compare("assert_less", np.less, "<")
assert_less_equal = _compare("assert_less_equal", np.less_equal, "<=")
assert_greater = _compare("assert_greater", np.greater, ">")
assert_greater_equal = _compare("assert_greater_equal", np.greater_equal, ">=")
assert_positive = _check("assert_positive", lambda x: x > 0, "x > 0")
assert_negative = _check("assert_negative", lambda x: x < 0, "x < 0")
assert_non_negative = _check("assert_non_negative", lambda x: x >= 0, "x >= 0")
assert_non_positive = _check("assert_non_positive", lambda x: x <= 0, "x <= 0")


def assert_none_equal(x: TensorLike, y: TensorLike, summarize=None, message=None, name=None) -> None:
    """Raises InvalidArgumentError unless ``x != y`` holds for all elements."""
    _none_equal(x, y, message)


def assert_near(x: TensorLike, y: TensorLike, rtol=None, atol=None, message=None, summarize=None, name=None) -> None:
    """Raises InvalidArgumentError unless ``abs(x - y) <= atol + rtol * abs(y)``. Each is 10 epsilons by default."""
    values = _values(x, y)
    if values is None:
        return
    epsilon = 10 * float(np.finfo(values[0].dtype).eps)
    rtol, atol = (epsilon if tolerance is None else float(tolerance) for tolerance in (rtol, atol))
    if not np.all(np.abs(values[0] - values[1]) < atol + rtol * np.abs(values[1])):
        _fail(message, f"x and y not equal to tolerance rtol={rtol}, atol={atol}. x: {values[0]}, y: {values[1]}")


def Assert(condition: TensorLike, data: object, summarize: Ignored = None, name: str | None = None) -> None:
    """Raises InvalidArgumentError with `data` unless `condition` is true."""
    values = _values(condition)
    if values is not None and not np.all(values[0]):
        raise InvalidArgumentError(f"Expected {condition!r} to be true. Summarized data: {data}")


def _named_shape(x: TensorLike) -> tuple[int, ...]:
    return tuple(x.shape) if is_array_like(x) or isinstance(x, Sparse) else np.shape(x)


def _rank(rank: IntLike) -> int:
    number = static(rank, "rank")
    if isinstance(number, tuple):
        raise ValueError(f"a rank must be a scalar, got {rank}")
    return operator.index(number)  # TypeError for a float


def assert_rank(x: TensorLike, rank: IntLike, message: str | None = None, name: str | None = None) -> None:
    """Raises ValueError unless `x` has that many axes."""
    shape = _named_shape(x)
    _require(len(shape) == _rank(rank), ValueError, message, f"x must have rank {rank}, got shape {shape}")


def assert_rank_at_least(x: TensorLike, rank: IntLike, message: str | None = None, name: str | None = None) -> None:
    """Raises ValueError unless `x` has at least that many axes."""
    shape = _named_shape(x)
    _require(len(shape) >= _rank(rank), ValueError, message, f"x must have rank {rank} or more, got shape {shape}")


def assert_rank_in(
    x: TensorLike, ranks: Sequence[IntLike], message: str | None = None, name: str | None = None
) -> None:
    """Raises ValueError unless the number of x's axes is one of `ranks`."""
    shape = _named_shape(x)
    holds = len(shape) in [*map(_rank, ranks)]
    _require(holds, ValueError, message, f"x must have one of the ranks {ranks}, got shape {shape}")


def assert_scalar(tensor: TensorLike, message: str | None = None, name: str | None = None) -> TensorLike:
    """`tensor`, if it is a scalar; else raises ValueError."""
    shape = _named_shape(tensor)
    _require(not shape, ValueError, message, f"Expected a scalar, got shape {shape}")
    return tensor


def assert_shapes(shapes, data=None, summarize=None, message=None, name=None) -> None:
    """Raises ValueError unless the tensors have the shapes given; equal symbols must stand for equal sizes.

    Args:
      shapes: a dict or list of pairs of a tensor and its shape, made of sizes and symbols; None stands for any size, or for any
        shape. A scalar counts as a vector of one element.
    """
    sizes: dict[object, int] = {}
    for x, wanted in shapes.items() if isinstance(shapes, dict) else shapes:
        if wanted is None:
            continue
        what = f"Tensor of shape {_named_shape(x)}"
        _require(isinstance(wanted, Iterable), ValueError, message, f"{what}: its shape must be iterable: {wanted!r}")
        shape, symbols = _named_shape(x) or (1,), tuple(wanted) or (1,)
        if symbols[0] in (Ellipsis, "*") and len(symbols) - 1 <= len(shape):
            symbols, shape = symbols[1:], shape[len(shape) - len(symbols) + 1 :]
        _require(len(symbols) == len(shape), ValueError, message, f"{what} must have rank {len(symbols)}")
        for axis, (symbol, size) in enumerate(zip(symbols, shape, strict=True)):
            number = isinstance(symbol, int) or str(symbol).isdigit()
            expected = int(symbol) if number else sizes.setdefault(symbol, size)
            text = f"{what}: dimension {axis} ({symbol!r}) must have size {expected}, received {size}"
            _require(symbol in (None, ".") or expected == size, ValueError, message, text)


def assert_type(tensor: TensorLike, tf_type: DTypeLike, message: str | None = None, name: str | None = None) -> None:
    """Raises TypeError unless `tensor` has the dtype `tf_type`."""
    dtype = as_dtype(raw(tensor.values if isinstance(tensor, Sparse) else tensor).dtype)
    wanted = as_dtype(requested(tf_type))
    _require(dtype == wanted, TypeError, message, f"tensor must be of type {wanted!r}, got {dtype!r}")


def assert_integer(x: TensorLike, message: str | None = None, name: str | None = None) -> None:
    """Raises TypeError unless `x` has an integer dtype."""
    dtype = raw(x).dtype
    _require(kind_of(dtype) in "iu", TypeError, message, f"Expected an integer type, got {dtype}")


def check_numerics(tensor: TensorLike, message: str, name: str | None = None) -> Tensor:
    """`tensor`, if it has no NaN and no infinity, and so has the gradient that a tape takes through it.

    Raises:
      InvalidArgumentError: it has some, here or, with `message`, where the gradient is taken; or it is of no floating dtype.

    >>> import tapejax as tf
    >>> x = tf.constant([0.0])
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = tf.sqrt(tf.debugging.check_numerics(x, "x"))
    >>> tape.gradient(y, x)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tapejax.tf.values.errors.InvalidArgumentError: Not a number ... detected in gradient. x : Tensor had Inf values
    """
    array = raw(tensor)
    if not _require_finite(array, message) or not active.active_recordings():
        return op(_check_numerics, array)
    text = f"Not a number (NaN) or infinity (Inf) values detected in gradient. {message}"

    @custom_gradient
    def checked(x: Tensor) -> tuple[Tensor, Callable]:
        def gradient(dy: Tensor) -> Tensor:
            _require_finite(raw(dy), text)
            return dy

        return op(_check_numerics, x), gradient

    return checked(tensor)


def _require_finite(array: Array, message: str) -> bool:
    """Whether the numbers in `array` are known. They are finite then."""
    if kind_of(array.dtype) != "f":
        raise InvalidArgumentError(f"check_numerics: a floating point tensor is needed, got {array.dtype}")
    values = _values(array)
    if values is None or np.isfinite(values[0]).all():
        return values is not None
    bad = " and ".join(word for word, is_bad in (("Inf", np.isinf), ("NaN", np.isnan)) if is_bad(values[0]).any())
    raise InvalidArgumentError(f"{message} : Tensor had {bad} values")


def assert_all_finite(x: TensorLike, message: str, name: str | None = None) -> Tensor:
    """As `check_numerics`."""
    return check_numerics(x, message)


def _check_numerics(x):
    return jax.numpy.copy(x)
