"""What other libraries need, loaded when the library is imported, or with tapejax if it was imported before.

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

package: Any = sys.modules[__name__.partition(".")[0]]  # tapejax itself, which is being imported


def install(imported: str | None = None) -> None:
    """Installs the adapters of the libraries that have been imported since the last time, and of the one that just was."""
    for name in [*_pending]:
        library = sys.modules.get(name)
        ready = library is not None and (name == imported or not getattr(library.__spec__, "_initializing", False))
        if ready and (adapter := _pending.pop(name, None)) is not None:  # another thread may have been faster
            importlib.import_module(adapter, __package__).install(library)


reading.adapters.append(install)
