"""``tf.print``: values as TensorFlow prints them, also from inside compiled functions."""

from __future__ import annotations

import logging
import pprint
import sys
from collections.abc import Callable, Sequence
from typing import Any, TextIO

import jax
import numpy as np

from ...jaxprs.fence import Tracer
from ...tape import active
from ..values import nest
from ..values.conversion import is_array_like, raw
from ..values.types import Array, Nest

_LOGGER = logging.getLogger("tapejax")
_LEVELS = {level: getattr(_LOGGER, level) for level in ("debug", "info", "warning", "error", "critical")}


def print(*inputs: object, **kwargs: Any) -> None:  # noqa: A001
    """Prints tensors and other values; in a compiled function, each time that it runs.

    Args:
      *inputs: tensors, structures of them, and what else there is to say.
      output_stream: ``sys.stderr`` (the default), ``sys.stdout``, any file, ``"file://PATH"``, or a level of logging by name.
      summarize: how many elements of an axis are shown at either end, 3 by default; -1 for all.
      sep, end: as Python's.
      name: taken for TensorFlow's sake.

    Raises:
      ValueError: an unknown keyword, or an `output_stream` that is none.

    >>> import sys, tapejax as tf
    >>> tf.print("x =", tf.range(10), [tf.constant(1.5), "text"], output_stream=sys.stdout)
    x = [0 1 2 ... 7 8 9] [1.5, 'text']
    """
    stream = kwargs.pop("output_stream", sys.stderr)
    limit = int(kwargs.pop("summarize", 3) or 3)
    sep, end = kwargs.pop("sep", " "), kwargs.pop("end", "\n")
    kwargs.pop("name", None)
    if kwargs:
        raise ValueError(f"Unrecognized keyword arguments for tf.print: {kwargs}")
    write = _writer(stream)
    arrays: list[Array] = []
    # Tensors leave their numbers in the text, so that one string has a place for each.
    parts = [value if isinstance(value, str) else _template(value, arrays) for value in inputs]

    def show(*values: Array) -> None:
        shown = [_Shown(_text(np.asarray(value), limit)) for value in values]
        write(sep.join(part if isinstance(part, str) else _filled(part, shown) for part in parts) + end)

    if active.staging() or any(isinstance(array, Tracer) for array in arrays):
        jax.debug.callback(show, *arrays, ordered=False)
    else:
        with active.outside():
            show(*arrays)


class _Shown:
    """What prints as its text, whatever prints it: a place in a structure where a tensor was."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


class _TensorPlace(int):
    """The number of the tensor that was there."""


def _template(value: Nest, arrays: list[Array]) -> list[Nest]:
    def placed(leaf: Nest) -> object:
        if not is_array_like(leaf):
            return leaf
        arrays.append(raw(leaf))
        return _TensorPlace(len(arrays) - 1)

    return [nest.map_structure(placed, value)]


def _filled(template: list[Nest], shown: Sequence[_Shown]) -> str:
    structure = nest.map_structure(lambda leaf: shown[leaf] if isinstance(leaf, _TensorPlace) else leaf, template[0])
    return pprint.pformat(structure)


def _writer(stream: TextIO | str | Callable[[str], object]) -> Callable[[str], object]:
    if isinstance(stream, str) and stream.startswith("file://"):
        path = stream.removeprefix("file://")

        def append(text: str) -> None:
            with open(path, "a", encoding="utf-8") as file:
                file.write(text)

        return append
    if isinstance(stream, str) and stream in _LEVELS:
        return lambda text: _LEVELS[stream](text.rstrip("\n"))
    if hasattr(stream, "write"):
        return stream.write
    if callable(stream):  # logging.info and its like
        return lambda text: stream(text.rstrip("\n"))
    streams = f"sys.stdout, sys.stderr, a file, 'file://PATH' or one of {', '.join(_LEVELS)}"
    raise ValueError(f"output_stream must be {streams}, got {stream!r}")


def _text(array: np.ndarray, limit: int) -> str:
    """The elements as TensorFlow prints them: the first and the last `limit` of each axis, nothing between but spaces."""
    how: dict[str, Any] = {"threshold": sys.maxsize} if limit < 0 else {"threshold": 0, "edgeitems": limit}
    how |= {"max_line_width": sys.maxsize, "formatter": {"all": _number}}
    return np.array2string(array, **how)


def _number(x: np.ndarray | np.generic) -> str:
    if x.dtype.kind in "iub":
        return str(int(x))
    if x.dtype.kind == "c":
        return f"({_float(x.real)},{_float(x.imag)})"
    return _float(x)


def _float(x: np.ndarray | np.generic) -> str:
    """The shorter of two forms, if it is read back as the same number."""
    kind, short, long = (np.float64, "%.15g", "%.17g") if x.dtype.itemsize == 8 else (np.float32, "%.6g", "%.9g")
    exact = kind(x)
    if not np.isfinite(exact):
        return str(float(exact))
    text = short % exact
    return text if kind(text) == exact else long % exact
