"""What tapejax keeps of what it made: bounded tables, looked up under keys from `canonical`; and the one way to empty them all.

A `Cache` is for any number of keys; `table` for few, which are looked up at each operation; `by_object` for what goes with an
object; `memoised` for a function of a few arguments.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Hashable
from typing import Any, Generic, NamedTuple, TypeVar, cast

import jax

from ..places import forget_files
from .types import Function, Value


class NotKept(NamedTuple):
    """What was made, where it must not be kept: nothing could be recognised as equal to it, or it would keep arrays alive."""

    value: Value


V = TypeVar("V")
F = TypeVar("F", bound=Callable[..., Any])
_caches: weakref.WeakSet[Cache[Any]] = weakref.WeakSet()
_clearing: list[Callable[[], object]] = [forget_files]


def on_clear(forget: Callable[[], object]) -> None:
    """Has `clear` call `forget`, which empties a table that is no `Cache`."""
    _clearing.append(forget)


def table() -> dict[Any, Any]:
    """A dict that lasts as long as the process, and that `clear` empties."""
    made: dict[Any, Any] = {}
    on_clear(made.clear)
    return made


def by_object() -> weakref.WeakKeyDictionary[Any, Any]:
    """What is kept for an object as long as it lives, or until `clear`."""
    made: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
    on_clear(made.clear)
    return made


def memoised(size: int) -> Callable[[F], F]:
    """Decorator: the results of the last `size` different calls are kept. The arguments are compared by Python's equality."""

    def decorate(fn: F) -> F:
        kept = functools.lru_cache(size)(fn)
        on_clear(kept.cache_clear)
        return cast("F", kept)

    return decorate


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
    """Things that were made, by key; beyond `size`, those that were used least recently are forgotten.

    Two dicts, of which the older is dropped when the younger is full: no lock, and nothing to keep in order at a hit.
    """

    __slots__ = ("size", "_young", "_old", "__weakref__")

    def __init__(self, size: int):
        self.size = size
        self._young: dict[Hashable, V] = {}
        self._old: dict[Hashable, V] = {}
        _caches.add(self)

    def get(self, key: Hashable, make: Callable[..., V | NotKept], *args: Any) -> V:
        """What is kept under `key`; where there is nothing, ``make(*args)``, which is kept unless it is `NotKept`."""
        value = self._young.get(key)
        if value is None:
            value = self._old.get(key)
            if value is None:
                made = make(*args)
                return cast("V", made.value) if isinstance(made, NotKept) else self._keep(key, made)
            value = self._keep(key, value)
        return value if shadow is None else cast("V", shadow.reused(key, value, make, args))

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


class Shadow:
    """Shadow mode: compares what is kept with what would be made now, and results of two ways to run. See `execution.shadow`."""

    def reused(self, key: Hashable, kept: Any, make: Function, args: tuple[Any, ...]) -> Any:
        """What a `Cache` hands out for `key`."""
        raise NotImplementedError

    def ran(self, fn: Function, compiled: Function, args: tuple[Any, ...], results: Any) -> None:
        """Called with the `results` of `fn` where they did not come from ``compiled(*args)``."""

    def speculated(self, name: str, results: Any, run: Function) -> None:
        """Called with the `results` that were computed ahead of the operation `name`, which `run` gives now."""


# None while it is off. Where something is reused without a look into a `Cache`, it is made anew while it is on.
shadow: Shadow | None = None
