"""What other libraries need, loaded once a tape starts after the library was imported.

How a library's variables are read and assigned to only its own adapter says; it notes reads as those of our variables are noted
(`values.reading`).
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from ..values import reading

# The library's module, and ours that has a function `install(library)`.
ADAPTERS = {"keras": ".keras_adapter", "flax.nnx": ".flax_adapter"}
_pending = dict(ADAPTERS)

package: Any = None  # tapejax itself, which hands itself in


def install() -> None:
    """Installs the adapters of the libraries that have been imported since the last time."""
    for name in [*_pending]:
        library = sys.modules.get(name)
        if library is not None and not getattr(library.__spec__, "_initializing", False):
            if (adapter := _pending.pop(name, None)) is not None:
                importlib.import_module(adapter, __package__).install(library)


reading.adapters.append(install)
