"""Files: Python's own, with TensorFlow's names and errors. A string tensor is Python's ``bytes`` here."""

from __future__ import annotations

import functools
import glob as _glob
import io
import os
import shutil
from collections.abc import Callable, Iterator
from typing import IO, Any

import numpy as np

from ..values.conversion import convert_to_tensor
from ..values.dtypes import as_dtype, requested
from ..values.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
)
from ..values.tensor import Tensor
from ..values.types import DTypeLike, PathLike, TensorLike
from .table import host, static

# Errors of the system that do not become a FailedPreconditionError.
_ERRORS = {FileNotFoundError: NotFoundError, FileExistsError: AlreadyExistsError}
_ERRORS[PermissionError] = PermissionDeniedError


def _on_files(fn: Callable) -> Callable:
    """`fn`, with TensorFlow's errors in the place of Python's."""

    @functools.wraps(fn)
    def public(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except OSError as error:
            raise _ERRORS.get(type(error), FailedPreconditionError)(str(error)) from error

    return public


def _path(path: PathLike) -> str:
    """A path given as text, bytes or anything with ``__fspath__``."""
    path = os.fspath(path.item() if isinstance(path, (np.ndarray, np.generic)) else path)
    return path.decode() if isinstance(path, bytes) else path


# ---- Whole files -------------------------------------------------------------------------------------------


@_on_files
def read_file(filename: PathLike, name: str | None = None) -> bytes:
    """What is in a file. Raises NotFoundError where there is none."""
    with open(_path(filename), "rb") as file:
        return file.read()


@_on_files
def write_file(filename: PathLike, contents: str | bytes, name: str | None = None) -> None:
    """Writes text or bytes to a file, in folders that are made where they are missing."""
    path = _path(filename)
    if folder := os.path.dirname(path):
        os.makedirs(folder, exist_ok=True)
    with open(path, "wb") as file:
        file.write(contents.encode() if isinstance(contents, str) else contents)


def matching_files(pattern: PathLike | list[PathLike] | tuple[PathLike, ...], name: str | None = None) -> list[bytes]:
    """The files whose path matches a pattern (or one of several), in order."""
    return [path.encode() for path in sorted(glob(pattern))]


# ---- Bytes as tensors --------------------------------------------------------------------------------------


def decode_raw(input_bytes, out_type, little_endian=True, fixed_length=None, name=None) -> Tensor:
    """The numbers that bytes stand for: a vector, or a row for each of a list of bytes.

    Args:
      out_type: the numbers' dtype.
      little_endian: the order of each number's bytes.
      fixed_length: how many bytes to use: what is longer is cut, what is shorter filled up with zeros.

    Raises:
      InvalidArgumentError: the number of bytes is not a multiple of the dtype's size.
    """
    dtype = as_dtype(out_type).dtype
    order = dtype.newbyteorder("<" if little_endian else ">") if dtype.kind != "V" else dtype
    one = isinstance(input_bytes, (bytes, bytearray, str))
    rows = [x.encode() if isinstance(x, str) else x for x in ([input_bytes] if one else input_bytes)]
    if fixed_length is not None:
        length = int(static(fixed_length, "fixed_length"))
        rows = [row[:length].ljust(length, b"\0") for row in rows]
    if len(set(map(len, rows))) > 1:
        raise InvalidArgumentError(f"decode_raw: the lengths of input_bytes differ: {[len(row) for row in rows]}")
    if any(len(row) % dtype.itemsize for row in rows):
        raise InvalidArgumentError(f"decode_raw: the length of input_bytes is no multiple of {dtype.itemsize}, {dtype}")
    arrays = [np.frombuffer(row, order).astype(dtype) for row in rows]
    return convert_to_tensor(arrays[0] if one else np.stack(arrays) if arrays else np.zeros((0, 0), dtype))


def serialize_tensor(tensor: TensorLike, name: str | None = None) -> bytes:
    """A tensor as bytes, which `parse_tensor` reads: in NumPy's format, not TensorFlow's.

    >>> import tapejax as tf
    >>> print(tf.io.parse_tensor(tf.io.serialize_tensor([1.0, 2.0]), tf.float32).numpy())
    [1. 2.]
    """
    file = io.BytesIO()
    array = host(tensor, "tensor")
    # NumPy's format has no bfloat16 and its like: their bits are written, and their name before them.
    file.write(f"{array.dtype.name}\n".encode())
    np.save(file, array.view(f"u{array.dtype.itemsize}") if array.dtype.kind == "V" else array, allow_pickle=False)
    return file.getvalue()


def parse_tensor(serialized: bytes, out_type: DTypeLike, name: str | None = None) -> Tensor:
    """The tensor of dtype `out_type` that `serialize_tensor` wrote.

    Raises:
      InvalidArgumentError: these are no such bytes, or it has another dtype.
    """
    head, _, body = bytes(serialized).partition(b"\n")
    try:
        array = np.load(io.BytesIO(body), allow_pickle=False)
        dtype = as_dtype(head.decode())
    except (ValueError, TypeError, EOFError, OSError) as error:
        raise InvalidArgumentError(f"serialized holds no tensor that serialize_tensor wrote: {error}") from error
    if dtype != as_dtype(out_type) and dtype.dtype != requested(out_type):
        wanted = as_dtype(out_type).name
        raise InvalidArgumentError(f"Type mismatch between parsed tensor ({dtype.name}) and dtype ({wanted})")
    return convert_to_tensor(array.view(dtype.dtype) if array.dtype != dtype.dtype else array)


# ---- gfile -------------------------------------------------------------------------------------------------


class GFile:
    """A file, opened when it is first used; a context manager and an iterator over lines.

    Args:
      name: its path.
      mode: as Python's ``open``; 'rb' gives bytes.

    Raises (when used):
      NotFoundError: there is none.
    """

    def __init__(self, name: PathLike, mode: str = "r"):
        self.name, self.mode = name, mode
        self._file: IO | None = None

    @_on_files
    def _opened(self) -> IO:
        if self._file is None:
            self._file = open(_path(self.name), self.mode)
        return self._file

    def __getattr__(self, name: str) -> Any:  # write, readline, seek, tell ...
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._opened(), name)

    def read(self, n: int = -1) -> str | bytes:
        """The next `n` characters or bytes, or all that is left."""
        return self._opened().read(n)

    @_on_files
    def size(self) -> int:
        """The file's length in bytes."""
        return os.path.getsize(_path(self.name))

    def close(self) -> None:
        """Closes the file; a file that was opened for writing is there now, even if nothing was written."""
        if self._file is None and any(letter in self.mode for letter in "wax"):
            self._opened()
        if self._file is not None:
            self._file.close()
        self._file = None

    def __enter__(self) -> GFile:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def __iter__(self) -> Iterator[str | bytes]:
        return iter(self._opened())


def _to_new(dst: str, overwrite: bool) -> str:
    if os.path.exists(dst) and not overwrite:
        raise AlreadyExistsError(f"file {dst} already exists; use overwrite=True")
    return dst


@_on_files
def copy(src: PathLike, dst: PathLike, overwrite: bool = False) -> None:
    """Copies a file. Raises AlreadyExistsError where `dst` is there, unless `overwrite`."""
    shutil.copyfile(_path(src), _to_new(_path(dst), overwrite))


@_on_files
def rename(src: PathLike, dst: PathLike, overwrite: bool = False) -> None:
    """Moves a file or folder. Raises AlreadyExistsError where `dst` is there, unless `overwrite`."""
    os.replace(_path(src), _to_new(_path(dst), overwrite))


def exists(path: PathLike) -> bool:
    """Whether there is such a file or folder."""
    return os.path.exists(_path(path))


def isdir(path: PathLike) -> bool:
    """Whether it is a folder."""
    return os.path.isdir(_path(path))


def glob(pattern: PathLike | list[PathLike] | tuple[PathLike, ...]) -> list[str]:
    """The paths that match a pattern, or one of a list of patterns."""
    patterns = pattern if isinstance(pattern, (list, tuple)) else [pattern]
    return [path for one in patterns for path in sorted(_glob.glob(_path(one)))]


def join(path: PathLike, *paths: PathLike) -> str:
    """One path of several parts."""
    return os.path.join(_path(path), *map(_path, paths))


@_on_files
def listdir(path: PathLike) -> list[str]:
    """The names in a folder. Raises NotFoundError where there is none."""
    if not os.path.isdir(_path(path)):
        raise NotFoundError(f"Could not find directory {_path(path)}")
    return os.listdir(_path(path))


@_on_files
def makedirs(path: PathLike) -> None:
    """Makes a folder and those above it; it may be there already."""
    os.makedirs(_path(path), exist_ok=True)


@_on_files
def mkdir(path: PathLike) -> None:
    """Makes a folder. Raises NotFoundError where there is none above it."""
    os.mkdir(_path(path))


@_on_files
def remove(path: PathLike) -> None:
    """Deletes a file."""
    os.remove(_path(path))


@_on_files
def rmtree(path: PathLike) -> None:
    """Deletes a folder and all in it."""
    shutil.rmtree(_path(path))


def walk(top: PathLike, topdown: bool = True, onerror: Callable | None = None) -> Iterator[tuple]:
    """(folder, its folders, its files) for a folder and all below it."""
    return os.walk(_path(top), topdown, onerror)
