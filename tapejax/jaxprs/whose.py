"""Whose code a file is: the user's, or that of a library, Python, JAX or tapejax."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import sysconfig
from collections.abc import Iterator, Sequence

import jax

# Folders into which libraries are installed, wherever they are.
INSTALLED = ("site-packages", "dist-packages", "__pypackages__")
_ARCHIVES = (".egg", ".whl")
_PYTHONS = tuple({*map(sysconfig.get_path, ("stdlib", "platstdlib")), os.path.dirname(os.__file__)})
_OWN = (os.path.dirname(os.path.dirname(__file__)) + os.sep, os.path.dirname(jax.__file__) + os.sep)


def is_library(file: str, folders: Sequence[str]) -> bool:
    """Whether `file` is Python's, JAX's, ours or an installed library's, and not of a program in `folders`.

    A library is what lies in a folder for libraries, or what a distribution has installed elsewhere on ``sys.path``
    (``pip install --target``, by ``PYTHONPATH`` or a ``.pth``). The source of an editable installation is in neither.
    """
    if file.startswith("<"):  # typed in, or made by exec
        return file.startswith("<frozen ")
    # as it was imported, and without links: some tools make links into a cache
    return any(_is_library(path, folders) for path in dict.fromkeys((file, os.path.realpath(file))))


def _is_library(file: str, folders: Sequence[str]) -> bool:
    folder = next((folder for folder in folders if file.startswith(folder + os.sep)), "")
    parts = (_below(folder, file) or file).split(os.sep)[:-1]
    if file.startswith(_OWN) or any(part in INSTALLED or part.endswith(_ARCHIVES) for part in parts):
        return True
    if any((below := _below(place, file)) and not below.startswith(INSTALLED) for place in _PYTHONS):
        return True
    places = (place for place in sys.path if place and not folder.startswith(place + os.sep))
    return any(below.partition(os.sep)[0] in _installed_in(place) for place in places if (below := _below(place, file)))


def _below(place: str, file: str) -> str:
    """The path of a file from a folder on; empty if it is not in there."""
    return file[len(place) + 1 :] if place and file.startswith(place + os.sep) else ""


@functools.lru_cache(256)
def _installed_in(place: str) -> frozenset[str]:
    """The names of the files and folders in an entry of ``sys.path`` that distributions have installed there."""
    names: set[str] = set()
    with contextlib.suppress(OSError):
        for record in (
            os.path.join(place, name, "RECORD") for name in os.listdir(place) if name.endswith(".dist-info")
        ):
            with contextlib.suppress(OSError), open(record, encoding="utf-8", errors="replace") as lines:
                names.update(line.partition(",")[0].partition("/")[0] for line in lines)
    return frozenset(names)


def folders() -> Iterator[str]:
    """Where the user's program lies: the folder of the main file, unless that is a library's, and the current folder."""
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    if isinstance(main, str) and set(INSTALLED).isdisjoint(main.split(os.sep)):
        yield os.path.dirname(os.path.abspath(main))
    with contextlib.suppress(OSError):  # it may be gone
        yield os.getcwd()
