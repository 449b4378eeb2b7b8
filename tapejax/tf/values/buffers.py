"""``memoryview(tensor)`` before Python 3.12, where a class written in Python cannot say by ``__buffer__`` what its memory is."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

# Where CPython keeps what a type does with buffers, in a 64-bit process; the layout of a version of Python does not change.
_PLACE = {(3, 11): 160}
_getbuffer = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)


def _table_of(kind: type) -> int | None:
    """The address of the functions of a type for buffers; None if it has none."""
    return ctypes.c_void_p.from_address(id(kind) + _PLACE[sys.version_info[:2]]).value


def _is_known() -> bool:
    if (
        sys.implementation.name != "cpython"
        or ctypes.sizeof(ctypes.c_void_p) != 8
        or sys.version_info[:2] not in _PLACE
    ):
        return False
    return bool(_table_of(bytes) and _table_of(bytearray) and not _table_of(int) and not _table_of(dict))


def export(kind: type) -> None:
    """Gives a class the buffer that its method ``__buffer__`` returns, which Python 3.12 does by itself.

    Where there is none, the method's error cannot be passed on: `memoryview` raises SystemError, and NumPy looks for
    ``__array__``.
    """
    if not _is_known():
        return
    fill = _getbuffer(("PyObject_GetBuffer", ctypes.pythonapi))

    @_getbuffer
    def get(value: Any, view: int, flags: int) -> int:
        try:
            return fill(value.__buffer__(flags), view, flags)
        except Exception:
            return -1

    if table := _table_of(kind):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(get))  # it stays until the process ends, whatever goes before
        ctypes.c_void_p.from_address(table).value = ctypes.cast(get, ctypes.c_void_p).value
