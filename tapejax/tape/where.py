"""The line of the user's code that asked for an operation.

While a tape records, only the code object and the instruction are kept (`caller`): a frame would keep all its variables alive.
The line is looked up when somebody asks for it (`line_of`).
"""

from __future__ import annotations

import functools
import linecache
import os
import sys
from typing import Any, NamedTuple

from ..jaxprs.cache import on_clear
from ..jaxprs.whose import folders, is_library


def caller(skip: int = 2) -> Any:
    """The user's code that is running, and the instruction in it: ``(code, f_lasti)``; None if all code is a library's.

    The search begins `skip` frames above this one. Those between must be tapejax's own: to skip them saves time.
    """
    frame: Any = sys._getframe(skip)
    while frame is not None:
        code = frame.f_code
        if not serves(code.co_filename):
            return code, frame.f_lasti
        frame = frame.f_back
    return None


@functools.cache
def serves(file: str) -> bool:
    """Whether `file` is a library's, Python's or tapejax's, so that no line of it counts as the user's."""
    return is_library(file, list(folders()))


class Line(NamedTuple):
    """A line of the user's code. Prints as ``file.py:12``, in a notebook as ``In [3]:2``."""

    file: str
    number: int
    text: str
    function: str

    def __str__(self) -> str:
        name = self.file if self.file.startswith("<") else os.path.basename(self.file)
        return f"{_notebook_cell(self.file) or name}:{self.number}"


def _notebook_cell(file: str) -> str | None:
    """The label of a notebook's cell, ``In [3]``, from the file name that IPython gave its code."""
    if "IPython" not in sys.modules:
        return None
    shell = sys.modules["IPython"].get_ipython()
    label = getattr(shell and shell.compile, "format_code_name", lambda _: None)(file)  # from IPython 8 on
    if label is not None:
        return str(label[1]).replace("In[", "In [")
    return "cell" if "ipykernel_" in file or file.startswith("<ipython-input") else None


def line_of(where: Any) -> Line | None:
    """The line of `where`, which `caller` returned; None if there is no code of the user's."""
    return _line(where[0].co_filename, *where) if where else None


# An explanation asks for the same lines again and again. `file` is part of the key: code objects of two files may be equal.
@functools.lru_cache(4096)
def _line(file: str, code: Any, instruction: int) -> Line:
    number = code.co_firstlineno
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            number = line
    return Line(file, number, linecache.getline(file, number).strip(), code.co_name)


on_clear(_line.cache_clear)
on_clear(serves.cache_clear)
