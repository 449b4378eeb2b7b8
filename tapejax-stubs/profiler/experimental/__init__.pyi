"""Made by .ci/stubs of the live namespace."""

import contextlib
from typing import Any
import tapejax as tf

def Profile(logdir: Any, options: Any = None) -> contextlib.AbstractContextManager[None]:
    """Profiles the block.

    >>> import tempfile
    >>> import tapejax as tf
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with tf.profiler.experimental.Profile(folder), tf.profiler.experimental.Trace("step", step_num=1):
    ...         y = tf.reduce_sum(tf.ones([2, 2]))
    """
from tapejax.tf.ops.profiler import ProfilerOptions as ProfilerOptions
def Trace(name: str, **kwargs: Any) -> Any:
    """A block that a profile shows under its `name`; a step with its `step_num` if ``_r=1`` is among the metadata."""
def start(logdir: Any, options: Any = None) -> None:
    """Starts JAX's profiler; `stop` writes what it saw below `logdir`, where TensorBoard finds it.

    Raises:
      AlreadyExistsError: it runs already.
    """
def stop(save: bool = True) -> None:
    """Stops the profiler. JAX writes what it saw, also with `save` False.

    Raises:
      UnavailableError: it does not run.
    """
