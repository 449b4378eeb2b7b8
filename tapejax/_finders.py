"""Two finders: of the namespaces, which are no files, and of the libraries that need all of tapejax when they are imported."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

PACKAGE = __name__.partition(".")[0]
# Their variables are found by adapters, which note from the beginning what is done with them.
LIBRARIES = ("keras", "flax.nnx")


class Namespaces:
    """Finds ``tapejax.math`` in ``import tapejax.math``. Asked last: a file is found by Python.

    It is found when it is executed: Python asks finders under a lock for all imports, so that one that imports could wait for
    another thread for ever. `find` imports and gives the module, or None; `is_one` says whether there could be one.
    """

    def __init__(self, find: Callable[[str], ModuleType | None], is_one: Callable[[str], bool]) -> None:
        self._find, self._is_one = find, is_one

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        ours = name.startswith(f"{PACKAGE}.") and self._is_one(name)
        return importlib.machinery.ModuleSpec(name, self) if ours else None  # type: ignore[arg-type]  # of a loader it has both

    def create_module(self, spec: Any) -> None:
        """A new one, which Python gives the spec: the namespace stays as it is."""

    def exec_module(self, new: ModuleType) -> None:
        module = self._find(new.__name__)
        if module is None:
            raise ModuleNotFoundError(f"No module named {new.__name__!r}", name=new.__name__)
        sys.modules[new.__name__] = module


class Libraries:
    """Finds nothing itself: calls `ready` with each of the `LIBRARIES` when it has been imported.

    Else a library's function would get our tensors before the first tape, and would not know what they are.
    """

    def __init__(self, ready: Callable[[str], None]) -> None:
        self._ready = ready
        self._asking: set[str] = set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in LIBRARIES or name in self._asking:
            return None
        self._asking.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._asking.discard(name)
        loader: Any = spec and spec.loader
        if loader is not None and hasattr(loader, "exec_module"):
            execute = loader.exec_module

            def execute_and_tell(module: Any) -> None:
                execute(module)
                self._ready(name)

            loader.exec_module = execute_and_tell
        return spec
