"""What is left of TensorFlow's graphs where everything runs at once: groups, dependencies, static values."""

from __future__ import annotations

import contextlib
import enum
import logging
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from ...jaxprs.fence import Tracer
from ..values.conversion import is_array_like, raw
from ..values.names import scope
from ..values.tensor import Tensor
from ..values.types import Array, Ignored, Nest, TensorLike  # TensorLike: also tf.types.experimental's
from . import array as _array

# ---- Order -------------------------------------------------------------------------------------------------


def group(*inputs: object, **kwargs: Any) -> None:
    """Nothing: what is to run has run. Raises ValueError for a keyword other than `name`."""
    if unknown := kwargs.keys() - {"name"}:
        raise ValueError(f"Unknown keyword arguments: {', '.join(sorted(unknown))}")


def no_op(name: str | None = None) -> None:
    """Nothing."""


def control_dependencies(control_inputs: Nest | Callable[[], object]) -> contextlib.AbstractContextManager[None]:
    """A context that does nothing: operations run in program order."""
    if callable(control_inputs):
        control_inputs()
    return contextlib.nullcontext()


def identity_n(input: Sequence[TensorLike], name: str | None = None) -> list[Tensor]:
    """New tensors with the values of a list of tensors."""
    return [_array.identity(x) for x in input]


def tuple(tensors: Sequence[TensorLike | None], control_inputs: Ignored = None, name: str | None = None) -> list:  # noqa: A001
    """The list of tensors, None left as it is."""
    return [x if x is None else _array.identity(x) for x in tensors]


# ---- What is known -----------------------------------------------------------------------------------------


def get_static_value(tensor: TensorLike, partial: bool = False) -> Any:
    """The value as NumPy, or None for a tensor that JAX is tracing."""
    if not is_array_like(tensor):
        return tensor
    array = raw(tensor)
    return None if isinstance(array, Tracer) else np.array(array)[()]


def is_symbolic_tensor(tensor: object) -> bool:
    """Whether it is a tensor whose value is not known, since JAX is tracing it."""
    return is_array_like(tensor) and isinstance(raw(tensor), Tracer)


def get_current_name_scope() -> str:
    """The `name_scope` that is open, without its last slash."""
    return scope.prefix.rstrip("/")


def get_logger() -> logging.Logger:
    """The logger ``tapejax``."""
    return logging.getLogger("tapejax")


# ---- Settings that change nothing here ---------------------------------------------------------------------


class VariableAggregation(enum.Enum):
    """How replicas' updates would be brought together; there are none."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


class VariableSynchronization(enum.Enum):
    """When replicas would agree; there are none."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


UNCONVERTED = "_autograph_unconverted"


def do_not_convert(func: Callable | None = None) -> Callable:
    """`func`, whose control flow `function` leaves as it is (a decorator)."""
    if func is None:
        return do_not_convert
    # a method, or what is no Python function, is not converted, or not alone
    with contextlib.suppress(AttributeError):
        setattr(func, UNCONVERTED, True)
    return func


def set_loop_options(
    parallel_iterations=None, swap_memory=None, maximum_iterations=None, shape_invariants=None
) -> None:
    """In a loop that `function` converts, `maximum_iterations` bounds it; the rest, and elsewhere all, changes nothing."""


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """Nothing: there is no AutoGraph whose messages it could set."""


def trace(*args: object) -> None:
    """Prints its arguments, when the function is traced."""
    print(*args)


# ---- Experimental ------------------------------------------------------------------------------------------


def to_dlpack(tf_tensor: TensorLike) -> Array:
    """An object with ``__dlpack__``, as other libraries' ``from_dlpack`` take it."""
    return raw(tf_tensor)


def from_dlpack(dlcapsule: Any) -> Tensor:
    """A tensor that shares the memory of another library's.

    Args:
      dlcapsule: an object with ``__dlpack__`` and ``__dlpack_device__``: a PyTorch, NumPy or JAX array.

    Raises:
      TypeError: it is a bare capsule, which does not say where it lies.
    """
    if not hasattr(dlcapsule, "__dlpack_device__"):
        raise TypeError(f"from_dlpack takes an object with __dlpack__ and __dlpack_device__, got {dlcapsule!r}")
    return Tensor(jnp.from_dlpack(dlcapsule))
