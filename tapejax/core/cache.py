"""The one way in which tapejax keeps what it made: bounded tables, looked up under keys from `canonical`.

In shadow mode whatever is kept is made anew as well each time it is used again, and the two are compared.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any, Generic, NamedTuple, TypeVar, cast

from .types import Function, Value


class ShadowError(AssertionError):
    """In shadow mode: what was kept is not what would be made now."""


class Once(NamedTuple):
    """What was made, where it must not be kept: nothing could be recognised as equal to it, or it would keep arrays alive."""

    value: Value


V = TypeVar("V")


class Cache(Generic[V]):
    """Things that were made, by key; of the least recently used ones, those beyond `size` are forgotten.

    Two dicts, of which the older is dropped when the younger is full: no lock, and nothing to keep in order at a hit.

    Args:
      size: how many things are kept at most.
      compare: in shadow mode, what is handed out for a key, what is kept under it and what was made anew. Raises ShadowError
        if the two differ. By default they must be equal.
    """

    __slots__ = ("size", "compare", "_young", "_old")

    def __init__(self, size: int, compare: Callable[[Any, V, V], V] | None = None):
        self.size = size
        self.compare = compare or _require_equal
        self._young: dict[Hashable, V] = {}
        self._old: dict[Hashable, V] = {}

    def get(self, key: Hashable, make: Callable[..., V | Once], *args: Any) -> V:
        """What is kept under `key`; where there is nothing, ``make(*args)``, which is kept unless it is `Once`."""
        found = self._young.get(key)
        if found is None:
            found = self._old.get(key)
            if found is None:
                made = make(*args)
                if isinstance(made, Once):
                    return cast("V", made.value)
                found = made
            found = self._keep(key, found)
        return found

    def _shadowed_get(self, key: Hashable, make: Callable[..., V | Once], *args: Any) -> V:
        known = self._young.get(key) or self._old.get(key)
        if known is None or _comparing.now:
            return _plain_get(self, key, make, *args)
        fresh = make(*args)
        return self.compare(key, known, fresh.value if isinstance(fresh, Once) else fresh)

    def _keep(self, key: Hashable, value: V) -> V:
        young = self._young
        if 2 * len(young) >= self.size:
            self._old, self._young = young, (young := {})
        return young.setdefault(key, value)

    def clear(self) -> None:
        self._young, self._old = {}, {}

    def discard(self, concerns: Callable[[Any], bool]) -> None:
        """Forgets what is kept under the keys for which ``concerns(key)``."""
        for kept in (self._young, self._old):
            for key in list(kept):
                if concerns(key):
                    kept.pop(key, None)

    def __len__(self) -> int:
        return len(self._young.keys() | self._old.keys())


# ---- shadow mode ----------------------------------------------------------------------------------------------------

_plain_get = Cache.get
shadowing = False
# Where in the user's code: `recorder` says.
where: Callable[[], str] = str


def shadow(on: bool) -> None:
    """Turns shadow mode on or off, for the whole process. Off it costs nothing."""
    global shadowing
    shadowing = on
    Cache.get = Cache._shadowed_get if on else _plain_get  # type: ignore[method-assign]


class _Comparing(threading.local):
    now = False


_comparing = _Comparing()


def comparing(function: Function, *args: Any) -> Any:
    """``function(*args)``, which compares: what it looks up itself is not compared again."""
    before, _comparing.now = _comparing.now, True
    try:
        return function(*args)
    finally:
        _comparing.now = before


def require(same: bool, name: str, what: str) -> None:
    """Raises ShadowError, for the operation `name` on the present line of the user's code, unless it is the `same`."""
    if not same:
        raise ShadowError(f"{name}{where()}: what was kept differs from what is made now. {what}")


def _require_equal(key: Any, kept: Any, fresh: Any) -> Any:
    first = key[0] if isinstance(key, tuple) and key else key
    require(kept == fresh, getattr(first, "name", type(key).__name__), f"{kept!r} was kept, now it is {fresh!r}.")
    return kept
