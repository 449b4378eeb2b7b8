"""Reads of variables, as the tapes see them.

A variable is a box whose array is replaced when it is assigned to. A tape that is asked for its gradient afterwards needs the
array that the variable held when it was read, and two variables may have been given one array.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ..core import recorder
from ..core._jax import current_trace

_copy = jax.jit(jnp.copy)

# Each installs what libraries need that have been imported since it was last called.
adapters: list[Callable[[], None]] = []


def install_adapters() -> None:
    """Called when a tape starts and when a function is traced."""
    for install in adapters:
        install()


def recording() -> bool:
    """Whether operations run here are noted by some tape."""
    return type(current_trace()) is recorder.RecorderTrace


def note_read(variable: Any, array: Any, store: Callable[[Any], None], trainable: bool = True) -> None:
    """Notes that `variable` is read and holds `array`.

    Where that array is a watched value of its own, or another variable's, `variable` is first given a copy, with `store`: a
    value is known by its identity.
    """
    recordings = recorder.active_recordings()
    known = [recording.variables.get(id(variable)) for recording in recordings]
    if any(
        id(array) in recording.watched and (entry is None or id(array) not in entry[1])
        for recording, entry in zip(recordings, known, strict=True)
    ):
        with recorder.outside():
            array = _copy(array)
        store(array)
    for recording, entry in zip(recordings, known, strict=True):
        if entry is not None or (recording.watch_accessed and trainable):
            recording.watch_variable(variable, array)


def note_replaced(old: Any, new: Any) -> None:
    """Notes that a variable that held the array `old` holds `new` instead.

    Where a jitted call returned `old` unchanged as `new`, the variable is the same to the tapes: its gradient is that of `old`.
    """
    if old is not new:
        for recording in recorder.active_recordings():
            recording.replace(old, new)


def detached(array: Any) -> Any:
    """`array` for a variable to hold: while a tape records, a copy, which has no history."""
    if not recording():
        return array
    with recorder.outside():
        copy = _copy(array)
    recorder.leaves("state", array, into=copy)
    return copy
