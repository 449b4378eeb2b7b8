"""Where in the user's code an operation was asked for.

While a tape records, only the code object and the instruction are kept (`caller`): frames would keep all their variables alive.
Which line that is, is found when it is asked for (`line_of`).
"""

from __future__ import annotations

import functools
import linecache
import os
import sys
from typing import Any, NamedTuple

from ..jaxprs.cache import on_clear
from ..jaxprs.whose import folders, is_library

_serves: dict[str, bool] = {}


def caller(skip: int = 2) -> Any:
    """The user's code that is running, and the instruction in it: ``(code, f_lasti)``, from which `listing` tells the line.

    The innermost `skip` frames are known to be ours.

    Frames are walked, not kept: they would keep all their variables alive. Where all code is installed code, None.
    """
    frame: Any = sys._getframe(skip)
    while frame is not None:
        code = frame.f_code
        known = _serves.get(code.co_filename)
        if not (serves(code.co_filename) if known is None else known):
            return code, frame.f_lasti
        frame = frame.f_back
    return None


def serves(file: str) -> bool:
    """Whether `file` is code that serves the user's, not his own: no line of it is where an operation was asked for."""
    if (known := _serves.get(file)) is None:
        known = _serves[file] = is_library(file, list(folders()))
    return known


# Lines that are kept: an explanation asks for the same ones again and again.
LINES = 4096


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
    """The cell of a notebook behind a file name that IPython made up, as the notebook shows it: ``In [3]``."""
    if "IPython" not in sys.modules:
        return None
    shell = sys.modules["IPython"].get_ipython()
    label = getattr(shell and shell.compile, "format_code_name", lambda _: None)(file)  # from IPython 8 on
    if label is not None:
        return str(label[1]).replace("In[", "In [")
    return "cell" if "ipykernel_" in file or file.startswith("<ipython-input") else None


def line_of(where: Any) -> Line | None:
    """The line behind what `caller` captured; None where it found no code of the user's."""
    return _line(where[0].co_filename, *where) if where else None


@functools.lru_cache(LINES)
def _line(file: str, code: Any, instruction: int) -> Line:  # code of two files may be equal
    number = code.co_firstlineno
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            number = line
    return Line(file, number, linecache.getline(file, number).strip(), code.co_name)


on_clear(_line.cache_clear)
on_clear(_serves.clear)
