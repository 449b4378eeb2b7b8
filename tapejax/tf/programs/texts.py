"""Texts among the elements of a dataset: names of files, and what is in them. Python's, since JAX's arrays hold numbers only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..values.dtypes import DType, TensorShape, as_dtype, as_shape

STRING = as_dtype("string")


class Text(str):
    """A text. Bytes that are not UTF-8 are kept, as in the names of files."""

    def numpy(self) -> bytes:
        """The bytes, which a tensor of TensorFlow's would give."""
        return self.encode(errors="surrogateescape")


class Texts:
    """A batch of texts: has a shape, can be indexed, and is no tensor. ``numpy()`` gives an array of bytes, as TensorFlow's does.

    >>> texts = Texts(rows_of(["one", "two"]))
    >>> texts.shape, texts[1], texts.numpy().tolist()
    (TensorShape([2]), 'two', [b'one', b'two'])
    """

    dtype: DType = STRING

    def __init__(self, texts: np.ndarray):
        self._texts = texts

    @property
    def shape(self) -> TensorShape:
        return as_shape(self._texts.shape)

    def numpy(self) -> np.ndarray:
        """The texts as an array of bytes, Python's."""
        encoded: Any = np.frompyfunc(Text.numpy, 1, 1)(self._texts)
        return encoded

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numpy(), dtype)

    def __len__(self) -> int:
        return len(self._texts)

    def __iter__(self) -> Iterator[Text | Texts]:
        return map(shown, self._texts)

    def __getitem__(self, index: Any) -> Text | Texts:
        return shown(self._texts[index])

    def __repr__(self) -> str:
        return f"<Texts: shape={tuple(self.shape)}, numpy={self.numpy()!r}>"


def rows_of(value: object) -> np.ndarray | Text | None:
    """A text, or an array of objects that are texts; None where `value` is neither a text nor has texts."""
    if isinstance(value, Texts):
        return value._texts
    first: Any = value
    while isinstance(first, (list, tuple)) and first:  # to make objects of many numbers takes long
        first = first[0]
    if not (isinstance(first, (str, bytes)) or (isinstance(first, np.ndarray) and first.dtype.kind in "OSU")):
        return None
    texts = np.asarray(value, object)
    if not texts.size or not all(isinstance(x, (str, bytes)) for x in texts.flat):
        return None
    decoded = np.frompyfunc(lambda x: Text(x.decode(errors="surrogateescape") if isinstance(x, bytes) else x), 1, 1)(
        texts
    )
    return decoded if isinstance(decoded, Text) else np.asarray(decoded, object)


def shown(value: Any) -> Any:
    """What the user is given: a batch for an array of texts."""
    return Texts(value) if isinstance(value, np.ndarray) and value.dtype == object else value
