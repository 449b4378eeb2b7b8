"""Made by .ci/stubs of the live namespace."""

import contextlib
from collections.abc import Sequence
from typing import Any
import jax
import tapejax as tf
from tapejax.tf.values.types import TensorLike, DTypeLike, IntLike, Ignored

def Assert(condition: TensorLike, data: object, summarize: Ignored = None, name: str | None = None) -> None:
    """Raises InvalidArgumentError with `data` unless `condition` is true."""
def assert_all_finite(x: TensorLike, message: str, name: str | None = None) -> tf.Tensor:
    """As `check_numerics`."""
def assert_equal(x: TensorLike, y: TensorLike, message: Any = None, summarize: Any = None, name: str | None = None) -> None:
    """Raises InvalidArgumentError unless ``x == y`` holds for all elements."""
def assert_greater(x: TensorLike, y: TensorLike, message: Any = None, summarize: Any = None, name: str | None = None) -> None:
    """Raises InvalidArgumentError unless ``x > y`` holds for all elements."""
def assert_greater_equal(x: TensorLike, y: TensorLike, message: Any = None, summarize: Any = None, name: str | None = None) -> None:
    """Raises InvalidArgumentError unless ``x >= y`` holds for all elements."""
def assert_integer(x: TensorLike, message: str | None = None, name: str | None = None) -> None:
    """Raises TypeError unless `x` has an integer dtype."""
def assert_less(x: TensorLike, y: TensorLike, message: Any = None, summarize: Any = None, name: str | None = None) -> None:
    """Raises InvalidArgumentError unless ``x < y`` holds for all elements."""
def assert_less_equal(x: TensorLike, y: TensorLike, message: Any = None, summarize: Any = None, name: str | None = None) -> None:
    """Raises InvalidArgumentError unless ``x <= y`` holds for all elements."""
def assert_near(x: TensorLike, y: TensorLike, rtol: Any = None, atol: Any = None, message: Any = None, summarize: Any = None, name: str | None = None) -> None:
    """Raises InvalidArgumentError unless ``abs(x - y) <= atol + rtol * abs(y)``. Each is 10 epsilons by default."""
def assert_negative(x: TensorLike, message: str | None = None, summarize: Ignored = None, name: str | None = None) -> None:
    """Raises InvalidArgumentError unless ``x < 0`` holds for all elements."""
def assert_non_negative(x: TensorLike, message: str | None = None, summarize: Ignored = None, name: str | None = None) -> None:
    """Raises InvalidArgumentError unless ``x >= 0`` holds for all elements."""
def assert_non_positive(x: TensorLike, message: str | None = None, summarize: Ignored = None, name: str | None = None) -> None:
    """Raises InvalidArgumentError unless ``x <= 0`` holds for all elements."""
def assert_none_equal(x: TensorLike, y: TensorLike, summarize: Any = None, message: Any = None, name: str | None = None) -> None:
    """Raises InvalidArgumentError unless ``x != y`` holds for all elements."""
def assert_positive(x: TensorLike, message: str | None = None, summarize: Ignored = None, name: str | None = None) -> None:
    """Raises InvalidArgumentError unless ``x > 0`` holds for all elements."""
def assert_rank(x: TensorLike, rank: IntLike, message: str | None = None, name: str | None = None) -> None:
    """Raises ValueError unless `x` has that many axes."""
def assert_rank_at_least(x: TensorLike, rank: IntLike, message: str | None = None, name: str | None = None) -> None:
    """Raises ValueError unless `x` has at least that many axes."""
def assert_rank_in(x: TensorLike, ranks: Sequence[IntLike], message: str | None = None, name: str | None = None) -> None:
    """Raises ValueError unless the number of x's axes is one of `ranks`."""
def assert_scalar(tensor: TensorLike, message: str | None = None, name: str | None = None) -> tf.Tensor:
    """`tensor`, if it is a scalar; else raises ValueError."""
def assert_shapes(shapes: Any, data: Any = None, summarize: Any = None, message: Any = None, name: str | None = None) -> None:
    """Raises ValueError unless the tensors have the shapes given; equal symbols must stand for equal sizes.

    Args:
      shapes: a dict or list of pairs of a tensor and its shape, made of sizes and symbols; None stands for any size, or for any
        shape. A scalar counts as a vector of one element.
    """
def assert_type(tensor: TensorLike, tf_type: DTypeLike, message: str | None = None, name: str | None = None) -> None:
    """Raises TypeError unless `tensor` has the dtype `tf_type`."""
def check_numerics(tensor: TensorLike, message: str, name: str | None = None) -> tf.Tensor:
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
def clear_caches() -> None:
    """Forgets the programs and derivatives that tapejax keeps to use them again: the next use makes and compiles each anew.

    What a function that is gone alone used goes by itself, a while later. Call this, and ``jax.clear_caches()`` after it, where
    memory matters more than time. What is in use stays: tapes, variables, each `tf.function` with its programs.

    >>> import tapejax as tf
    >>> tf.debugging.clear_caches()
    """
def disable_check_numerics() -> None:
    """Undoes `enable_check_numerics`."""
def disable_shadow_mode() -> None:
    """Takes `enable_shadow_mode` back."""
def disable_traceback_filtering() -> None:
    """Shows JAX's own lines in tracebacks."""
def enable_check_numerics(stack_height_limit: int | None = 30, path_length_limit: int | None = 50) -> None:
    """Makes each operation raise that gives a NaN or an infinity, forward or backward, eagerly and inside a `function`.

    Looked at are the floating outputs, no complex ones, of ``tf``'s operations, of the steps of a backward pass, and of JAX's own
    operations in a tape's block or a `function`; elsewhere JAX's ``jax_debug_nans`` does that. Operations that only move elements
    may move a NaN, as in TensorFlow. A jitted function of JAX's is one operation: what is inside is not seen, but its results.

    Until `disable_check_numerics` each `function` runs as Python, operation by operation, and on all threads.

    Args:
      stack_height_limit: how many lines of your code, the innermost ones, an error shows; None for all.
      path_length_limit: how long the path of a file may be there; None for any length.

    Raises (at the operation):
      InvalidArgumentError: with the operation's name, dtype, shape, the number of bad elements, its inputs and your lines.

    >>> import tapejax as tf
    >>> tf.debugging.enable_check_numerics()
    >>> tf.math.log(tf.constant([-1.0, 0.0, 1.0]))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tapejax.tf.values.errors.InvalidArgumentError: Detected Infinity or NaN in output 0 of op "log" (# of outputs: 1)
      dtype: float32
      shape: (3,)
      # of -Inf elements: 1
      # of NaN elements: 1
    ...
    >>> tf.debugging.disable_check_numerics()
    """
def enable_shadow_mode() -> None:
    """Makes tapejax distrust what it keeps: whatever it uses again is made anew as well, and the two are compared.

    If a number may be wrong: operations, programs and derivatives that were recognised are compared as they are
    written and, where they are run, in what they compute (to the square root of the dtype's epsilon). It is slow, and for the
    whole process; a step then takes a hundred times as long. `disable_shadow_mode` takes it back, `shadow_mode` is both.

    A `tf.function` is not traced again: what it reads of Python while it is traced stays as it was, as in TensorFlow.
    """
def enable_traceback_filtering() -> None:
    """Leaves JAX's own lines out of tracebacks, as by default."""
def get_log_device_placement() -> Any:
    """The value of this setting; see `set_log_device_placement`."""
def is_traceback_filtering_enabled() -> bool:
    """Whether JAX's own lines are left out of tracebacks."""
def set_log_device_placement(enabled: Any) -> Any:
    """Remembered only: ``x.device`` says where an array is."""
def shadow_mode() -> contextlib.AbstractContextManager[None]:
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
