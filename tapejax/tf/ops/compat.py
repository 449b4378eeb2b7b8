"""What of ``tf.compat`` programs still call that run eagerly: switches that are on already, logging, the global step and text."""

from __future__ import annotations

import logging
import os
from typing import Any, NoReturn

import numpy as np

from ..values import names
from ..values.dtypes import narrowed
from ..values.settings import settings
from ..values.types import Ignored
from ..values.variable import Variable
from .graph import get_logger

DEBUG, INFO, WARN, ERROR, FATAL = logging.DEBUG, logging.INFO, logging.WARN, logging.ERROR, logging.FATAL


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
    if settings["global_step"] is None:
        dtype = narrowed(np.dtype("int64"))
        settings["global_step"] = Variable(0, trainable=False, dtype=dtype, name="global_step")
    return settings["global_step"]


def get_global_step(graph: Ignored = None) -> Variable | None:
    """`get_or_create_global_step`, or None before that was called."""
    return settings["global_step"]


def name_scope(name: str | None, default_name: str | None = None, values: Ignored = None) -> names.name_scope:
    """`tf.name_scope` of `name`, of `default_name` where that is None; where both are, all scopes are left."""
    return names.name_scope(next((n for n in (name, default_name) if n is not None), ""))


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


class _SessionSettings:
    """Settings that are kept, and change nothing: XLA decides."""

    def __init__(self, **settings: Any):
        vars(self).update(settings)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        vars(self)[name] = _SessionSettings()  # a group of settings
        return vars(self)[name]


class ConfigProto(_SessionSettings):
    """Settings of a session: kept, without effect. On a GPU `tf.config.experimental.set_memory_growth` has one."""


class GPUOptions(_SessionSettings):
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
