"""What of ``tf.compat`` programs still call that run eagerly: switches that are on already, logging, the global step, text,
and functions that took other arguments."""

from __future__ import annotations

import inspect
import itertools
import logging
import os
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ..values import names
from ..values.dtypes import as_dtype, narrowed
from ..values.errors import InvalidArgumentError
from ..values.tensor import Tensor, Variable, convert_to_tensor, raw
from ..values.types import DTypeLike, Ignored, TensorLike
from . import array, debugging
from .graph import get_logger
from .sparse import SparseTensor, SparseTensorValue
from .table import renamed

DEBUG, INFO, WARN, ERROR, FATAL = logging.DEBUG, logging.INFO, logging.WARN, logging.ERROR, logging.FATAL

_steps: list[Variable] = []


def enable_eager_execution(
    config: Ignored = None, device_policy: Ignored = None, execution_mode: Ignored = None
) -> None:
    """Nothing: operations run at once."""


def enable_v2_behavior() -> None:
    """Nothing: TensorFlow 2's behaviour is the only one."""


def disable_v2_behavior() -> NoReturn:
    """Raises NotImplementedError: there are no graphs and sessions of TensorFlow 1."""
    raise NotImplementedError(
        "tapejax keeps TensorFlow 2's behaviour only. Leave this call out, and write sessions and placeholders as function "
        "calls: tf.function compiles them."
    )


disable_eager_execution = disable_v2_behavior


def get_or_create_global_step(graph: Ignored = None) -> Variable:
    """The process's count of training steps: a variable, not trainable, 0 at first; int64, or int32 while 64-bit types are off.

    >>> import tapejax as tf
    >>> step = tf.compat.v1.train.get_or_create_global_step()
    >>> step is tf.compat.v1.train.get_global_step(), step.trainable
    (True, False)
    """
    if not _steps:
        _steps.append(Variable(0, trainable=False, dtype=narrowed(np.dtype("int64")), name="global_step"))
    return _steps[0]


def get_global_step(graph: Ignored = None) -> Variable | None:
    """`get_or_create_global_step`, or None before that was called."""
    return _steps[0] if _steps else None


# ---- functions that took other arguments -------------------------------------------------------------------------------


def name_scope(name: str | None, default_name: str | None = None, values: Ignored = None) -> names.name_scope:
    """`tf.name_scope` of `name`, of `default_name` where that is None; where both are, all scopes are left."""
    return names.name_scope(next((n for n in (name, default_name) if n is not None), ""))


def where(condition: TensorLike, x: TensorLike = None, y: TensorLike = None, name: str | None = None) -> Tensor:
    """`tf.where` of x and y of one shape: `condition` has it, too, or is a scalar, or a vector that chooses rows.

    Raises:
      InvalidArgumentError: the shapes are others.
      ValueError: one of x and y is missing.
    """
    if x is not None and y is not None:
        condition, shape = raw(condition), np.shape(x)
        rows = condition.ndim == 1 and condition.shape == shape[:1]
        if shape != np.shape(y) or not (rows or condition.shape in ((), shape)):
            raise InvalidArgumentError(
                f"where: condition of shape {condition.shape} for x of {shape} and y of {np.shape(y)}: tf.where broadcasts"
            )
        condition = condition.reshape(condition.shape + (1,) * (len(shape) - 1)) if rows else condition
    return array.where(condition, x, y)


def convert_to_tensor_or_sparse_tensor(
    value: TensorLike | SparseTensor, dtype: DTypeLike | None = None, name: str | None = None
) -> Tensor | SparseTensor:
    """A `SparseTensor` as it is, and anything else as a `Tensor`. Raises RuntimeError if it is sparse, of another dtype."""
    if isinstance(value, SparseTensorValue):
        value = SparseTensor.from_value(value)
    if not isinstance(value, SparseTensor):
        return convert_to_tensor(value, dtype)
    if dtype is not None and value.dtype != as_dtype(dtype):
        raise RuntimeError(f"Sparse dtype: requested = {as_dtype(dtype).name}, actual = {value.dtype.name}")
    return value


def _of_version_1(name: str) -> Callable[..., None]:
    """`tf.debugging`'s assertion, which took two more arguments before its message."""
    now = getattr(debugging, name)
    own = [*itertools.takewhile(lambda x: x not in ("message", "summarize"), inspect.signature(now).parameters)]

    def public(*args: Any, **named: Any) -> None:
        named |= zip([*own, "data", "summarize", "message", "name"], args, strict=False)
        now(**{key: value for key, value in named.items() if key not in ("data", "summarize")})

    public.__doc__ = now.__doc__
    return renamed(name, public)


for _name in """
    assert_equal assert_greater assert_greater_equal assert_less assert_less_equal assert_near assert_negative
    assert_non_negative assert_non_positive assert_none_equal assert_positive assert_rank assert_rank_at_least assert_rank_in
""".split():
    globals()[_name] = _of_version_1(_name)


# ---- tf.compat.v1.logging ---------------------------------------------------------------------------------------------


def __getattr__(name: str) -> Any:
    if name not in ("debug", "info", "warn", "warning", "error", "fatal", "log"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(get_logger(), "warning" if name == "warn" else name)


def get_verbosity() -> int:
    """The level of the logger ``tapejax``."""
    return get_logger().getEffectiveLevel()


def set_verbosity(v: int | str) -> None:
    """Sets the level of the logger ``tapejax``."""
    get_logger().setLevel(v)


# ---- text -------------------------------------------------------------------------------------------------------------


def as_bytes(bytes_or_text: str | bytes, encoding: str = "utf-8") -> bytes:
    """A text's bytes, or bytes unchanged. Raises TypeError for anything else."""
    if isinstance(bytes_or_text, (bytes, bytearray)):
        return bytes(bytes_or_text)
    return as_text(bytes_or_text, encoding).encode(encoding)


def as_text(bytes_or_text: str | bytes, encoding: str = "utf-8") -> str:
    """A text, or bytes decoded. Raises TypeError for anything else."""
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    if not isinstance(bytes_or_text, str):
        raise TypeError(f"Expected binary or unicode string, got {bytes_or_text!r}")
    return bytes_or_text


def as_str_any(value: object, encoding: str = "utf-8") -> str:
    """`as_text` of bytes, ``str`` of anything else."""
    return as_text(value, encoding) if isinstance(value, bytes) else str(value)


path_to_str = os.fspath


def dimension_value(dimension: int | None) -> int | None:
    """`dimension` itself: a size is a number, or None where it is not known."""
    return dimension


# ---- Settings of a session ---------------------------------------------------------------------------------------------


class _Settings:
    """Settings that are kept, and change nothing: XLA decides."""

    def __init__(self, **settings: Any):
        vars(self).update(settings)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        vars(self)[name] = _Settings()  # a group of settings
        return vars(self)[name]


class ConfigProto(_Settings):
    """Settings of a session: kept, without effect. On a GPU `tf.config.experimental.set_memory_growth` has one."""


class GPUOptions(_Settings):
    """Settings of a session's GPUs: kept, without effect."""


class Session:
    """What programs open to set a session's `config`, and never run.

    Raises:
      NotImplementedError (by `run`): there are no graphs.
    """

    def __init__(self, target: str = "", graph: Ignored = None, config: Any = None):
        self._config = config

    def run(
        self, fetches: Ignored, feed_dict: Ignored = None, options: Ignored = None, run_metadata: Ignored = None
    ) -> NoReturn:
        """Raises NotImplementedError."""
        raise NotImplementedError(
            "tapejax has no graphs that a session could run: call the function that computes it, tf.function compiles it"
        )

    def close(self) -> None:
        """Nothing."""

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *raised: Any) -> None:
        """Nothing."""

    as_default = __enter__


class InteractiveSession(Session):
    __doc__ = Session.__doc__
