"""How Flax's variables report to tapes.

Flax's transformations (``nnx.jit``, ``nnx.remat``) run a pure function from the state of a model to its new state, and give
each variable what came out: for a parameter, a copy of what went in. The copy is another array with a history of its own, but
the variable is the same, and a gradient with respect to it is one with respect to what it held before.
"""

from __future__ import annotations

import functools
import types
from typing import Any

from ..values import reading


def install(nnx: types.ModuleType) -> None:
    """Has `nnx` say when a variable is given another array."""
    for name in ("update_from_state", "set_raw_value"):
        _note_replaced(nnx.Variable, name)


def _note_replaced(kind: Any, name: str) -> None:
    change = getattr(kind, name)

    @functools.wraps(change)
    def changed(variable: Any, *args: Any, **kwargs: Any) -> None:
        if not reading.recording():
            return change(variable, *args, **kwargs)
        old = variable.get_raw_value()
        change(variable, *args, **kwargs)
        reading.note_replaced(old, variable.get_raw_value())

    setattr(kind, name, changed)
