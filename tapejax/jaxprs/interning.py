"""One representative for each structure of a jaxpr.

Code that makes a new lambda at every call brings a new jaxpr every time. Where it is replaced by the first of its structure,
JAX's caches and ours recognise it as the same program.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from . import cache, canonical, custom_rules
from .cache import Cache
from .canonical import JAXPR_TYPES, Identity, UncacheableError
from .contents import constants, facts, jaxprs_in, mapped
from .types import JaxProgram, Params, Value

CACHED_STRUCTURES = 4096
# Representatives of programs that are gone: this many are kept, and all that were asked for in the last ages.
UNUSED_KEPT, AGES_KEPT = 128, 64
_representatives: Cache[JaxProgram] = Cache(CACHED_STRUCTURES)


class _Represented:
    """The programs that a representative stands for, and the age at which it was last asked for."""

    __slots__ = ("programs", "age")

    def __init__(self) -> None:
        self.programs: weakref.WeakSet[JaxProgram] = weakref.WeakSet()
        self.age = 0


class _Ages:
    now = 0
    new = 0  # representatives that were made since the last search for unused ones


_ages = _Ages()
_listening: list[Callable[[list[JaxProgram]], object]] = []


def intern(value: Value) -> Any:
    """The first jaxpr seen with the structure of `value` (a jaxpr, or a tuple of them); other values as they are."""
    if not isinstance(value, JAXPR_TYPES):
        return mapped(intern, value)
    known = facts(value)
    if constants(value) or not known.has_key:
        return value
    try:
        return _first_of(value, known.first)
    except UncacheableError:
        # As with a custom rule that closes over arrays: it is kept nowhere, since it would keep these.
        known.has_key = False
        return value


def intern_forward(value: Value) -> Any:
    """`intern` for what is run and never differentiated: the rules of functions in it do not matter, and are left out."""
    if not isinstance(value, JAXPR_TYPES):
        return mapped(intern_forward, value)
    if constants(value):
        return value
    with custom_rules.left_out(), contextlib.suppress(UncacheableError):
        return _first_of(value, facts(value).first_forward, "_forward")
    return value


def _first_of(value: JaxProgram, known: Callable[[], JaxProgram] | None, kind: str = "") -> JaxProgram:
    """The first program with the structure of `value`; `known` refers to it if `value` was seen before.

    Raises:
      UncacheableError: `value` has no exact key.
    """
    if known is not None and (first := known()) is not None and cache.shadow is None:
        return _used(first)
    first = _representatives.get((kind, canonical.exact(value)), _copied, value)
    setattr(facts(value), f"first{kind}", weakref.ref(first))
    return _used(first, value)


def _used(first: JaxProgram, *values: JaxProgram) -> JaxProgram:
    """`first`, which is noted to stand for these programs and to be asked for now."""
    known = facts(first)
    use = known.use = known.use or _Represented()
    use.age = _ages.now
    use.programs.update([value for value in values if value is not first])
    return first


def _copied(value: JaxProgram) -> JaxProgram:
    """A copy of its own, so that `value` goes with the function that it was made of; NumPy's arrays in it can change, too."""
    _ages.new += 1
    copy: JaxProgram = canonical.snapshot(value)
    return copy.replace() if copy is value else copy


def next_age() -> None:
    """Begins another age: a tape is opened. From time to time what is not used any more is dropped."""
    _ages.now += 1
    if _ages.new > UNUSED_KEPT // 2 and (gone := _drop_unused()):
        for forget in _listening:
            forget(gone)


def on_drop(forget: Callable[[list[JaxProgram]], object]) -> None:
    """Has `forget` called with representatives that are dropped."""
    _listening.append(forget)


def _drop_unused() -> list[JaxProgram]:
    """Drops the representatives of programs that are gone, but for the latest, and returns them."""
    _ages.new = 0
    kept = [(key, first, facts(first).use or _Represented()) for key, first in _representatives.items()]
    unused = sorted([x for x in kept if not x[2].programs], key=lambda x: -x[2].age)[UNUSED_KEPT:]
    gone = [(key, first) for key, first, use in unused if use.age < _ages.now - AGES_KEPT]
    for key, _ in gone:
        _representatives.discard(key)
    return [first for _, first in gone]


def is_known_forward(jaxpr: JaxProgram) -> bool:
    """The same of `intern_forward`."""
    return facts(jaxpr).first_forward is not None


def is_known(jaxpr: JaxProgram) -> bool:
    """Whether it was interned before."""
    return facts(jaxpr).first is not None


def interned_key(value: Value) -> Any:
    """`canonical.exact` of a parameter whose jaxprs are interned: each is its identity."""
    if isinstance(value, JAXPR_TYPES):
        return Identity(value)
    if isinstance(value, tuple) and any(isinstance(x, JAXPR_TYPES) for x in value):
        return type(value), *map(interned_key, value)
    if isinstance(value, np.ndarray):  # JAX traces no operation with such a parameter
        raise UncacheableError("an array as a parameter")
    return canonical.exact(value)


def is_uncacheable(params: Params) -> bool:
    """Whether `intern` found one of the jaxprs among a primitive's parameters to have no exact key."""
    return any(not facts(jaxpr).has_key for jaxpr in jaxprs_in(params))
