"""``tf.profiler.experimental``, by ``jax.profiler``: what runs between `start` and `stop`, for TensorBoard and Perfetto."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax

from ..values.errors import AlreadyExistsError, UnavailableError


class ProfilerOptions(NamedTuple):
    """What is profiled: how much of the host and of Python. JAX always profiles its devices, and does not wait `delay_ms`."""

    host_tracer_level: int = 2
    python_tracer_level: int = 0
    device_tracer_level: int = 1
    delay_ms: int | None = None


def start(logdir: str | os.PathLike[str], options: ProfilerOptions | None = None) -> None:
    """Starts JAX's profiler; `stop` writes what it saw below `logdir`, where TensorBoard finds it.

    Raises:
      AlreadyExistsError: it runs already.
    """
    settings, wanted = options or ProfilerOptions(), jax.profiler.ProfileOptions()
    wanted.host_tracer_level, wanted.python_tracer_level = settings.host_tracer_level, settings.python_tracer_level
    try:
        jax.profiler.start_trace(os.fspath(logdir), profiler_options=wanted)
    except RuntimeError as error:
        raise AlreadyExistsError("Another profiler is running.") from error


def stop(save: bool = True) -> None:
    """Stops the profiler. JAX writes what it saw, also with `save` False.

    Raises:
      UnavailableError: it does not run.
    """
    try:
        jax.profiler.stop_trace()
    except RuntimeError as error:
        raise UnavailableError("Cannot export profiling results. No profiler is running.") from error


@contextlib.contextmanager
def Profile(logdir: str | os.PathLike[str], options: ProfilerOptions | None = None) -> Iterator[None]:
    """Profiles the block.

    >>> import tempfile
    >>> import tapejax as tf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with tf.profiler.experimental.Profile(folder), tf.profiler.experimental.Trace("step", step_num=1):
    ...         y = tf.reduce_sum(tf.ones([2, 2]))
    """
    start(logdir, options)
    try:
        yield
    finally:
        stop()


def Trace(name: str, **kwargs: Any) -> Any:
    """A block that a profile shows under its `name`; a step with its `step_num` if ``_r=1`` is among the metadata."""
    step = kwargs.pop("_r", None) and "step_num" in kwargs
    return (jax.profiler.StepTraceAnnotation if step else jax.profiler.TraceAnnotation)(name, **kwargs)
