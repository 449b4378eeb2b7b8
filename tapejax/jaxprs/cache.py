"""The one way in which tapejax keeps what it made: bounded tables, looked up under keys from `canonical`."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from typing import Any, Generic, NamedTuple, TypeVar, cast

import jax

from .types import Value


class Once(NamedTuple):
    """What was made, where it must not be kept: nothing could be recognised as equal to it, or it would keep arrays alive."""

    value: Value


V = TypeVar("V")
_caches: weakref.WeakSet[Cache[Any]] = weakref.WeakSet()
_clearing: list[Callable[[], object]] = []


def on_clear(forget: Callable[[], object]) -> None:
    """Has `clear` call `forget`, which empties a table that is no `Cache`."""
    _clearing.append(forget)


def clear() -> None:
    """Forgets all that was made and kept: it will be made again when it is used."""
    for cache in list(_caches):
        cache.clear()
    for forget in _clearing:
        forget()


def recovered(error: RecursionError) -> bool:
    """Whether `error` is what an interrupt left in JAX's caches, which are then cleared: the call may be made once more.

    JAX notes that it is computing an entry of a cache. An interrupt may leave that note behind, and from then on JAX takes every
    call that needs the entry for a recursive one.
    """
    if not str(error).startswith("Recursively calling"):
        return False
    clear()
    jax.clear_caches()  # type: ignore[no-untyped-call]
    return True


class Cache(Generic[V]):
    """Things that were made, by key; of the least recently used ones, those beyond `size` are forgotten.

    Two dicts, of which the older is dropped when the younger is full: no lock, and nothing to keep in order at a hit.
    """

    __slots__ = ("size", "_young", "_old", "__weakref__")

    def __init__(self, size: int):
        self.size = size
        self._young: dict[Hashable, V] = {}
        self._old: dict[Hashable, V] = {}
        _caches.add(self)

    def get(self, key: Hashable, make: Callable[..., V | Once], *args: Any) -> V:
        """What is kept under `key`; where there is nothing, ``make(*args)``, which is kept unless it is `Once`."""
        value = self._young.get(key)
        if value is None:
            value = self._old.get(key)
            if value is None:
                made = make(*args)
                if isinstance(made, Once):
                    return cast("V", made.value)
                value = made
            value = self._keep(key, value)
        return value

    def peek(self, key: Hashable) -> V | None:
        """What is kept under `key`, if anything."""
        value = self._young.get(key)
        return self._old.get(key) if value is None else value

    def _keep(self, key: Hashable, value: V) -> V:
        young = self._young
        if 2 * len(young) >= self.size:
            self._old, self._young = young, (young := {})
        return young.setdefault(key, value)

    def clear(self) -> None:
        self._young, self._old = {}, {}

    def items(self) -> list[tuple[Any, V]]:
        """What is kept, with its keys."""
        return list((self._old | self._young).items())

    def discard(self, key: Hashable) -> None:
        """Forgets what is kept under `key`."""
        for kept in (self._young, self._old):
            kept.pop(key, None)

    def __len__(self) -> int:
        return len(self._young.keys() | self._old.keys())


# Whether `execution.shadow` compares what is kept with what would be made now. Where something is reused without a look into a
# `Cache`, it is then made anew.
shadowing = False
