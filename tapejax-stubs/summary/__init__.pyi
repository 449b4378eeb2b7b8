"""Made by .ci/stubs of the live namespace."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any
import tapejax as tf
from tapejax.tf.values.types import TensorLike, IntLike, Ignored

from tapejax.tf.ops.summary import SummaryWriter as SummaryWriter
def create_file_writer(logdir: Any, max_queue: int | None = None, flush_millis: int | None = None, filename_suffix: str | None = None, name: Ignored = None, experimental_trackable: Ignored = False, experimental_mesh: Ignored = None) -> Any:
    """A writer of a new file in the directory `logdir`, which TensorBoard reads. Needs the extra ``tapejax[summary]``.

    Args:
      logdir: the directory; it is made if it is not there.
      max_queue: how many summaries may be buffered, 10 by default.
      flush_millis: for how long they may be, 120,000 by default.
      filename_suffix: how the file's name ends, ``.v2`` by default.
      name, experimental_trackable, experimental_mesh: taken for TensorFlow's sake.

    Raises:
      ValueError: `logdir` is None.
      ImportError: tensorboardX is not installed.

    >>> import tempfile, tapejax as tf
    >>> writer = tf.summary.create_file_writer(tempfile.mkdtemp())
    >>> with writer.as_default():
    ...     for step in range(3):
    ...         _ = tf.summary.scalar("loss", 1.0 / (1 + step), step=step)
    >>> writer.close()
    """
def create_noop_writer() -> Any:
    """A writer that does nothing, where a program expects one."""
from tapejax.summary import experimental as experimental
def flush(writer: Any = None, name: str | None = None) -> None:
    """Flushes `writer`, or the one that summaries go to here.

    Raises:
      ValueError: `writer` is none.
    """
def graph(graph_data: object) -> tf.Tensor:
    """Nothing: there are no graphs. False, since nothing is written."""
def histogram(name: str, data: TensorLike, step: IntLike | None = None, buckets: int | None = None, description: str | None = None) -> tf.Tensor:
    """Writes how often the elements of a tensor fall into each of `buckets` intervals of equal length.

    Args:
      name: what it is called; name scopes around it come before.
      data: numbers, of any shape.
      step: an integer; by default `set_step`'s.
      buckets: how many intervals, 30 by default.
      description: a text beside it.

    Returns: whether it is written.

    Raises:
      TypeError: `buckets` is not an integer.
      ValueError: `step` is not a scalar; there is a writer but no step.
    """
def image(name: str, data: TensorLike, step: IntLike | None = None, max_outputs: IntLike = 3, description: str | None = None) -> tf.Tensor:
    """Writes images, as PNG. Needs Pillow.

    Args:
      name: what they are called; name scopes around it come before.
      data: (images, height, width, 1 to 4 channels): floats from 0 to 1, or uint8.
      step: an integer; by default `set_step`'s.
      max_outputs: how many of them, the first ones, are written.
      description: a text beside them.

    Returns: whether they are written.

    Raises:
      ValueError: `data` does not have four axes; `step` is not a scalar; there is a writer but no step.
      InvalidArgumentError: `max_outputs` is negative.
    """
def record_if(condition: TensorLike | Callable[[], TensorLike]) -> contextlib.AbstractContextManager[None]:
    """A context in which summaries are written where `condition` holds: a bool, a tensor, or a function that returns one."""
def scalar(name: str, data: TensorLike, step: IntLike | None = None, description: str | None = None) -> tf.Tensor:
    """Writes a number, as float32, for TensorBoard to draw against `step`.

    Args:
      name: what it is called; name scopes around it come before.
      data: a number or a scalar tensor.
      step: an integer; by default `set_step`'s.
      description: a text beside it.

    Returns: whether it is written.

    Raises:
      ValueError: `data` or `step` is not a scalar; there is a writer but no step.
    """
def should_record_summaries() -> tf.Tensor:
    """Whether a summary would be written here: there is a writer, and no `record_if` says otherwise."""
def text(name: str, data: str | bytes | Sequence[Any], step: IntLike | None = None, description: str | None = None) -> tf.Tensor:
    """Writes text, which TensorBoard shows as Markdown; a list of texts as a table.

    Args:
      name: what it is called; name scopes around it come before.
      data: a string, bytes, or lists of them.
      step: an integer; by default `set_step`'s.
      description: a text beside it.

    Returns: whether it is written.

    Raises:
      TypeError: `data` is not text.
      ValueError: `step` is not a scalar; there is a writer but no step.
    """
def trace_export(name: str, step: IntLike | None = None, profiler_outdir: Any = None) -> None:
    """Ends what `trace_on` started. A profile lies in its directory then; there are no graphs to export.

    Raises:
      ValueError: `trace_on` was not called; there is a writer but no step.
    """
def trace_off() -> None:
    """Ends what `trace_on` started."""
def trace_on(graph: bool = True, profiler: bool = False, profiler_outdir: Any = None) -> None:
    """Starts JAX's profiler, if `profiler` and `profiler_outdir` say so. There are no graphs to collect."""
def write(tag: str, tensor: TensorLike | Callable[[], TensorLike], step: IntLike | None = None, metadata: Any = None, name: str | None = None) -> tf.Tensor:
    """Writes a tensor, or what a function without arguments gives, as it is: for kinds of summaries of your own.

    Args:
      tag: the summary's name.
      tensor: numbers, or strings in lists or NumPy's arrays. A function is called only where it is written.
      step: an integer; by default `set_step`'s.
      metadata: a SummaryMetadata of TensorBoard's, or its bytes.

    Returns: whether it is written.

    Raises:
      ValueError: there is a writer but no step, or it is not a scalar.
    """
