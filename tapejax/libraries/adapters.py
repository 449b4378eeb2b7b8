"""Variables of other libraries, as far as the tapes are concerned.

A variable of Keras is a box whose array is replaced when it is assigned to. A tape that is asked for its gradient afterwards
must know what it held when it was read, and two boxes may have been given one array. So reads are noted here as our own
variables' are. How a library's variables are read only its own adapter knows, which is loaded once a tape starts and the
library has been imported.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ..core import recorder
from ..core._jax import current_trace

# The library's module, and ours that has a function `meet(library)` to be called once it is there.
ADAPTERS = {"keras": ".keras_adapter"}
_unmet = dict(ADAPTERS)

_copy = jax.jit(jnp.copy)


def meet() -> None:
    """Calls the adapters of the libraries that have been imported since the last time."""
    for name in [*_unmet]:
        library = sys.modules.get(name)
        if library is not None and not getattr(library.__spec__, "_initializing", False):
            if (adapter := _unmet.pop(name, None)) is not None:
                importlib.import_module(adapter, __package__).meet(library)


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


def own(array: Any) -> Any:
    """`array` for a variable to hold: while a tape records, a copy, which has no history."""
    if not recording():
        return array
    with recorder.outside():
        copy = _copy(array)
    recorder.leaves("state", array, into=copy)
    return copy
