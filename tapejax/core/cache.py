"""The one way in which tapejax keeps what it made: bounded tables, looked up under keys from `canonical`."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple


class Once(NamedTuple):
    """What was made, where it must not be kept: nothing could be recognised as equal to it, or it would keep arrays alive."""

    value: Any


class Cache:
    """Things that were made, by key; of the least recently used ones, those beyond `size` are forgotten.

    Two dicts, of which the older is dropped when the younger is full: no lock, and nothing to keep in order at a hit.
    """

    __slots__ = ("size", "_young", "_old")

    def __init__(self, size: int):
        self.size = size
        self._young: dict[Hashable, Any] = {}
        self._old: dict[Hashable, Any] = {}

    def get(self, key: Hashable, make: Callable[..., Any], *args: Any) -> Any:
        """What is kept under `key`; where there is nothing, ``make(*args)``, which is kept unless it is `Once`."""
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is None and type(found := make(*args)) is Once:
                return found.value
            found = self._keep(key, found)
        return found

    def _keep(self, key: Hashable, value: Any) -> Any:
        young = self._young
        if 2 * len(young) >= self.size:
            self._old, self._young = young, (young := {})
        return young.setdefault(key, value)

    def clear(self) -> None:
        self._young, self._old = {}, {}

    def __len__(self) -> int:
        return len(self._young.keys() | self._old.keys())
