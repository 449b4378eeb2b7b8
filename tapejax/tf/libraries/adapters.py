"""What other libraries need, loaded when the library is imported, or with tapejax if it was imported before.

How a library's variables are read and assigned to only its own adapter says; it notes reads as those of our variables are noted
(`values.reading`).
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any

from ..values import reading

# The library's module, and ours that has a function `install(library)`.
ADAPTERS = {"keras": ".keras_adapter", "flax.nnx": ".flax_adapter"}
_pending = dict(ADAPTERS)

package: Any = sys.modules[__name__.partition(".")[0]]  # tapejax itself, which is being imported


def install() -> None:
    """Installs the adapters of the libraries that have been imported since the last time."""
    for name in [*_pending]:
        library = sys.modules.get(name)
        if library is not None and not getattr(library.__spec__, "_initializing", False):
            _install(name)


def _install(name: str) -> None:
    if (adapter := _pending.pop(name, None)) is not None:
        importlib.import_module(adapter, __package__).install(sys.modules[name])


class _Watch:
    """A finder that finds nothing itself: it installs an adapter when its library has been imported.

    Else a library's function would get our tensors before the first tape, and would not know what they are.
    """

    def __init__(self) -> None:
        self._asking: set[str] = set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in _pending or name in self._asking:
            return None
        self._asking.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._asking.discard(name)
        loader: Any = spec and spec.loader
        if loader is not None and hasattr(loader, "exec_module"):
            execute = loader.exec_module

            def execute_and_install(module: Any) -> None:
                execute(module)
                _install(name)

            loader.exec_module = execute_and_install
        return spec


sys.meta_path.insert(0, _Watch())
reading.adapters.append(install)
