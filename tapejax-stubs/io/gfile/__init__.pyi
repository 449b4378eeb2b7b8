"""Made by .ci/stubs of the live namespace."""

from collections.abc import Callable, Iterator
from typing import Any
import tapejax as tf
from tapejax.tf.values.types import PathLike

from tapejax.tf.ops.io import GFile as GFile
def copy(src: PathLike, dst: PathLike, overwrite: bool = False) -> None:
    """Copies a file. Raises AlreadyExistsError where `dst` is there, unless `overwrite`."""
def exists(path: PathLike) -> bool:
    """Whether there is such a file or folder."""
def glob(pattern: PathLike | list[PathLike] | tuple[PathLike, ...]) -> list[str]:
    """The paths that match a pattern, or one of a list of patterns."""
def isdir(path: PathLike) -> bool:
    """Whether it is a folder."""
def join(path: PathLike, *paths: PathLike) -> str:
    """One path of several parts."""
def listdir(path: PathLike) -> list[str]:
    """The names in a folder. Raises NotFoundError where there is none."""
def makedirs(path: PathLike) -> None:
    """Makes a folder and those above it; it may be there already."""
def mkdir(path: PathLike) -> None:
    """Makes a folder. Raises NotFoundError where there is none above it."""
def remove(path: PathLike) -> None:
    """Deletes a file."""
def rename(src: PathLike, dst: PathLike, overwrite: bool = False) -> None:
    """Moves a file or folder. Raises AlreadyExistsError where `dst` is there, unless `overwrite`."""
def rmtree(path: PathLike) -> None:
    """Deletes a folder and all in it."""
def walk(top: PathLike, topdown: bool = True, onerror: Callable[..., Any] | None = None) -> Iterator[tuple[Any, ...]]:
    """(folder, its folders, its files) for a folder and all below it."""
