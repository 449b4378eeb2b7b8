"""``tf.summary``: numbers, images, histograms and text in the files that TensorBoard reads, also from inside compiled functions.

The files, their records and protocol buffers are those of the package ``tensorboardX``, which is imported when the first writer
is made.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import jax
import numpy as np

from ...jaxprs.fence import Tracer
from ...jaxprs.threads import Context
from ...tape import active
from ...tape.recording import next_number
from ..values.conversion import convert_to_tensor, is_array_like, raw
from ..values.dtypes import as_dtype
from ..values.errors import NotFoundError, extra_missing
from ..values.names import name_scope
from ..values.names import scoped as _scoped
from ..values.staging import init_scope
from ..values.tensor import Tensor
from ..values.types import Array, Ignored, IntLike, TensorLike
from . import array as _array
from . import debugging, encoded
from . import image as _image
from .table import accepting

_LOGGER = logging.getLogger("tapejax")


def _package() -> ModuleType:
    try:
        import tensorboardX
    except ImportError as error:
        raise extra_missing("tf.summary, which writes TensorBoard's files,", "tensorboardX", "summary") from error
    return tensorboardX


# ---- Where summaries go ------------------------------------------------------------------------------------


class _WriterState(Context):
    writer: Any = None
    step: IntLike | None = None
    condition: bool | TensorLike | Callable[[], TensorLike] | None = None


_state = _WriterState()


class _AsDefault(contextlib.AbstractContextManager):
    def __init__(self, writer: SummaryWriter, step: IntLike | None):
        self._writer, self._step = writer, step

    def __enter__(self) -> SummaryWriter:
        self._before = _state.writer, _state.step
        _state.writer = self._writer
        if self._step is not None:
            _state.step = self._step
        return self._writer

    def __exit__(self, *exception: Any) -> None:
        _state.writer.flush()
        _state.writer, step = self._before
        if self._step is not None:
            _state.step = step


class SummaryWriter:
    """Where summaries go: made by `create_file_writer` or `create_noop_writer`. This one writes nothing."""

    def as_default(self, step: IntLike | None = None) -> contextlib.AbstractContextManager:
        """A context in which summaries of this thread go to this writer, with `step` if they say none. It ends with a flush."""
        return _AsDefault(self, step)

    def set_as_default(self, step: IntLike | None = None) -> None:
        """Makes summaries of this thread go to this writer from here on."""
        self.as_default(step).__enter__()

    def init(self) -> None:
        """Nothing: the file is open."""

    def flush(self) -> None:
        """Writes what is buffered. In a compiled function, each time that it runs."""

    def close(self) -> None:
        """Flushes, and closes the file."""


class _NoopWriter(SummaryWriter):
    def as_default(self, step: IntLike | None = None) -> contextlib.AbstractContextManager:
        return contextlib.nullcontext()


class _FileWriter(SummaryWriter):
    _closed = True

    def __init__(self, logdir: str, max_queue: int, flush_millis: int, suffix: str):
        _package()
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.record_writer import directory_check

        directory_check(logdir)
        name = f".{os.getpid()}.{next_number()}{suffix}"  # two writers of one second have two files
        self._events = EventsWriter(os.path.join(logdir, "events"), name)
        self._max_queue, self._flush_seconds = max_queue, flush_millis / 1000
        self._lock = threading.Lock()
        self._closed = False
        self._flush()

    def write(self, event: Any) -> None:
        if self._closed:
            raise NotFoundError("the summary writer is closed")
        with self._lock:
            self._events.write_event(event)
            self._pending += 1
        if self._pending > self._max_queue or time.monotonic() - self._flushed > self._flush_seconds:
            self._flush()

    def _flush(self) -> None:
        if not self._closed:
            with self._lock:
                self._events.flush()
                self._pending, self._flushed = 0, time.monotonic()

    def _check_open(self) -> None:
        if self._closed and active.eager():
            raise RuntimeError(f"SummaryWriter {self!r} is already closed")

    def as_default(self, step: IntLike | None = None) -> contextlib.AbstractContextManager:
        self._check_open()
        return super().as_default(step)

    def init(self) -> None:
        self._check_open()

    def flush(self) -> None:
        if active.staging():
            return _at_run_time(self._flush)
        jax.effects_barrier()  # what compiled functions write has been written then
        self._flush()

    def close(self) -> None:
        if active.staging():
            return _at_run_time(self._close)
        jax.effects_barrier()
        self._close()

    def _close(self) -> None:
        if not self._closed:
            self._flush()
            self._events.close()
            self._closed = True

    __del__ = _close


@accepting("name experimental_trackable experimental_mesh", experimental_trackable=False)
def create_file_writer(
    logdir: str | os.PathLike[str],
    max_queue: int | None = None,
    flush_millis: int | None = None,
    filename_suffix: str | None = None,
) -> SummaryWriter:
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
    if logdir is None:
        raise ValueError("Argument `logdir` cannot be None")
    queue, millis = (10 if max_queue is None else max_queue), (120_000 if flush_millis is None else flush_millis)
    with init_scope():
        return _FileWriter(os.fspath(logdir), int(queue), int(millis), filename_suffix or ".v2")


def create_noop_writer() -> SummaryWriter:
    """A writer that does nothing, where a program expects one."""
    return _NoopWriter()


def flush(writer: SummaryWriter | None = None, name: str | None = None) -> None:
    """Flushes `writer`, or the one that summaries go to here.

    Raises:
      ValueError: `writer` is none.
    """
    if writer is None:
        writer = _state.writer or create_noop_writer()
    if not isinstance(writer, SummaryWriter):
        raise ValueError(f"Invalid argument to flush(): {writer!r}")
    writer.flush()


@contextlib.contextmanager
def record_if(condition: TensorLike | Callable[[], TensorLike]) -> Iterator[None]:
    """A context in which summaries are written where `condition` holds: a bool, a tensor, or a function that returns one."""
    with _state.setting(condition=condition):
        yield


def should_record_summaries() -> Tensor:
    """Whether a summary would be written here: there is a writer, and no `record_if` says otherwise."""
    condition = _state.condition() if callable(_state.condition) else _state.condition
    if _state.writer is None:
        condition = False
    return convert_to_tensor(True if condition is None else condition, dtype="bool")


def get_step() -> IntLike | None:
    """The step of summaries that say none: as `set_step`, or ``writer.as_default(step)``, was given it."""
    return _state.step


def set_step(step: IntLike | None) -> None:
    """Sets the step of this thread's summaries that say none; None takes it back. A Variable is read at each summary."""
    _state.step = step


# ---- Writing -----------------------------------------------------------------------------------------------


def _at_run_time(fn: Callable[..., None], *arrays: Array) -> None:
    """``fn(*arrays)`` on NumPy's arrays: now, or each time that the program runs that is being traced."""
    run = lambda *arrays: fn(*map(np.asarray, arrays))  # noqa: E731
    with active.outside():
        if active.staging() or any(isinstance(x, Tracer) for x in arrays):
            jax.debug.callback(run, *arrays, ordered=True)
        else:
            run(*arrays)


def _chosen(step: IntLike) -> Array:
    """`step` as an array of one integer."""
    if not is_array_like(step) and not isinstance(step, (int, np.integer, list, tuple)):
        raise TypeError(f"Cannot convert {step!r} to a step, which is an integer")
    array = raw(step)
    if array.dtype.kind not in "iu":
        raise ValueError(f"a step is an integer, got a tensor of dtype {array.dtype.name}")
    if array.size != 1:
        raise ValueError(f"Argument `step` must be a scalar. Received step with shape {tuple(array.shape)}.")
    return array


_NOT_SET = "No step set. Please specify one by the `step` argument or tf.summary.experimental.set_step()"


def _write(
    tag: str, data: Callable[[], TensorLike], step: IntLike | None, metadata: bytes, convert: Callable = np.asarray
) -> Tensor:
    """Writes ``convert(data())``, an array of numbers or of strings: `data` is traced, `convert` runs on NumPy's arrays."""
    if step is not None:
        step = _chosen(step)
    writer, recorded = _state.writer, should_record_summaries()
    decided = not isinstance(raw(recorded), Tracer)
    if writer is None or decided and not recorded.numpy():
        return convert_to_tensor(False)
    if step is None:
        if _state.step is None:
            raise ValueError(_NOT_SET)
        step = _chosen(_state.step)
    value = data()

    def write(recorded: np.ndarray, step: np.ndarray, *arrays: np.ndarray) -> None:
        if recorded:
            writer.write(_event(tag, int(step.reshape(())), convert(*arrays), metadata))

    if not is_array_like(value):
        convert, arrays = lambda: np.asarray(value, object), []
    else:
        arrays = [raw(value)]
    _at_run_time(write, raw(recorded), step, *arrays)
    return recorded


def _event(tag: str, step: int, value: np.ndarray, metadata: bytes) -> Any:
    from tensorboardX.proto import event_pb2, summary_pb2, tensor_pb2, tensor_shape_pb2

    dims = [tensor_shape_pb2.TensorShapeProto.Dim(size=n) for n in value.shape]
    tensor = tensor_pb2.TensorProto(tensor_shape=tensor_shape_pb2.TensorShapeProto(dim=dims))
    if value.dtype.kind in "OSU":
        tensor.dtype = 7  # DT_STRING
        tensor.string_val.extend([x.encode() if isinstance(x, str) else x for x in value.ravel().tolist()])
    else:
        tensor.dtype = as_dtype(value.dtype).as_datatype_enum
        tensor.tensor_content = value.tobytes()
    about = summary_pb2.SummaryMetadata.FromString(metadata)
    summary = summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=tag, metadata=about, tensor=tensor)])
    return event_pb2.Event(wall_time=time.time(), step=step, summary=summary)


def _metadata(plugin: str, description: str | None, content: bytes = b"") -> bytes:
    """The metadata by which TensorBoard chooses how to show a summary."""
    if _state.writer is None:
        return b""
    from tensorboardX.proto.summary_pb2 import SummaryMetadata

    data = SummaryMetadata.PluginData(plugin_name=plugin, content=content)
    return SummaryMetadata(plugin_data=data, summary_description=description or "").SerializeToString()


@contextlib.contextmanager
def summary_scope(name: str | None, default_name: str = "summary", values: Ignored = None) -> Iterator[tuple[str, str]]:
    """A context for a kind of summary of your own: gives its tag, with the name scopes around it, and a scope's name."""
    tag = name or default_name
    with name_scope(tag) as scope:
        yield scope.removesuffix("/"), scope


def write(
    tag: str,
    tensor: TensorLike | Callable[[], TensorLike],
    step: IntLike | None = None,
    metadata: Any = None,
    name: str | None = None,
) -> Tensor:
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
    if hasattr(metadata, "SerializeToString"):
        metadata = metadata.SerializeToString()

    def data() -> TensorLike:
        value = tensor() if callable(tensor) else tensor
        return value if is_array_like(value) or _strings(value) is not None else convert_to_tensor(value)

    return _write(tag, data, step, metadata or b"")


def scalar(name: str, data: TensorLike, step: IntLike | None = None, description: str | None = None) -> Tensor:
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
    debugging.assert_scalar(data)
    return _write(
        _scoped(name or "scalar_summary"), lambda: _array.cast(data, "float32"), step, _metadata("scalars", description)
    )


def image(
    name: str, data: TensorLike, step: IntLike | None = None, max_outputs: IntLike = 3, description: str | None = None
) -> Tensor:
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

    def pixels() -> Array:
        debugging.assert_rank(data, 4)
        debugging.assert_non_negative(max_outputs)
        return raw(_image.convert_image_dtype(data, "uint8", saturate=True))[: int(max_outputs)]

    def files(pixels: np.ndarray) -> np.ndarray:
        height, width = pixels.shape[1:3]
        return np.asarray([str(width), str(height), *map(encoded.encode_png, pixels)], object)

    return _write(_scoped(name or "image_summary"), pixels, step, _metadata("images", description), files)


def histogram(
    name: str, data: TensorLike, step: IntLike | None = None, buckets: int | None = None, description: str | None = None
) -> Tensor:
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
    if not isinstance(count := 30 if buckets is None else buckets, (int, np.integer)):
        raise TypeError(f"buckets must be an integer, got {buckets!r}")
    convert = lambda values: _buckets(values.astype(np.float64).ravel(), max(0, int(count)))  # noqa: E731
    tag = _scoped(name or "histogram_summary")
    return _write(tag, lambda: convert_to_tensor(data), step, _metadata("histograms", description), convert)


def _buckets(values: np.ndarray, count: int) -> np.ndarray:
    """Rows of left end, right end and number of values; all in the last one where the values are equal."""
    if not count or not values.size:
        return np.zeros((count, 3))
    least, greatest = values.min(), values.max()
    if least == greatest:
        return np.array([[least, greatest, 0.0]] * (count - 1) + [[least, greatest, values.size]])
    with np.errstate(invalid="ignore"):
        places = np.minimum(np.floor((values - least) / ((greatest - least) / count)).astype(np.int32), count - 1)
        edges = np.linspace(least, greatest, count + 1)
    return np.stack([edges[:-1], edges[1:], np.bincount(places[places >= 0], minlength=count)], axis=1)


def _strings(data: object) -> np.ndarray | None:
    if is_array_like(data):
        return None
    strings = np.asarray(data)
    return strings if strings.dtype.kind in "US" or strings.dtype.kind == "O" and strings.size else None


def text(
    name: str, data: str | bytes | Sequence, step: IntLike | None = None, description: str | None = None
) -> Tensor:
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
    if _strings(data) is None:
        raise TypeError(f"tensor must be of type tf.string; got {data!r}")
    return _write(_scoped(name or "text_summary"), lambda: data, step, _metadata("text", description))


def keras_model(name: str, model: Any, step: IntLike | None = None) -> Tensor | bool:
    """Writes the configuration of a Keras model, which TensorBoard draws as a graph; False where it has none."""
    try:
        configuration = model.to_json()
    except Exception as error:  # an error in a layer's get_config must not end the program
        _LOGGER.warning("%s has no configuration that could be drawn: %s", model, error)
        return False
    return _write(_scoped(name), lambda: configuration, step, _metadata("graph_keras_model", None, b"1"))


# ---- Traces ------------------------------------------------------------------------------------------------

_trace: Sequence[bool] = ()  # of the one that is on: whether JAX's profiler runs


def trace_on(graph: bool = True, profiler: bool = False, profiler_outdir: str | os.PathLike[str] | None = None) -> None:
    """Starts JAX's profiler, if `profiler` and `profiler_outdir` say so. There are no graphs to collect."""
    global _trace
    if _trace:
        _LOGGER.warning("Trace already enabled")
        return
    profiling = profiler and profiler_outdir is not None
    if profiling:
        jax.profiler.start_trace(os.fspath(profiler_outdir))  # type: ignore[arg-type]  # not None where `profiling`
    _trace = (profiling,)


def trace_export(name: str, step: IntLike | None = None, profiler_outdir: str | os.PathLike[str] | None = None) -> None:
    """Ends what `trace_on` started. A profile lies in its directory then; there are no graphs to export.

    Raises:
      ValueError: `trace_on` was not called; there is a writer but no step.
    """
    if not _trace:
        raise ValueError("Must enable trace before export through tf.summary.trace_on.")
    if step is None and _state.step is None and _state.writer is not None:
        raise ValueError(_NOT_SET)
    trace_off()


def trace_off() -> None:
    """Ends what `trace_on` started."""
    global _trace
    profiling, _trace = any(_trace), ()
    if profiling:
        jax.profiler.stop_trace()


def graph(graph_data: object) -> Tensor:
    """Nothing: there are no graphs. False, since nothing is written."""
    return convert_to_tensor(False)
