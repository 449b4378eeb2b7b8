"""One representative for each structure of a jaxpr.

Code that makes a new lambda at every call brings a new jaxpr every time. Where it is replaced by the first of its structure,
JAX's caches and ours recognise it as the same program.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from . import cache, canonical, custom_rules
from .cache import Cache
from .canonical import JAXPR_TYPES, Identity, UncacheableError
from .jaxprs import constants, jaxprs_in, mapped
from .types import JaxProgram, Params, Value

CACHED_STRUCTURES = 4096
_representatives: Cache[JaxProgram] = Cache(CACHED_STRUCTURES)
_known: weakref.WeakKeyDictionary[JaxProgram, Any] = weakref.WeakKeyDictionary()
_forward: weakref.WeakKeyDictionary[JaxProgram, Any] = weakref.WeakKeyDictionary()
# Jaxprs that have no exact key, such as those with a custom rule that closes over arrays: no two are the same to us, and to
# keep one is to keep its arrays.
_uncacheable: weakref.WeakSet[JaxProgram] = weakref.WeakSet()


def intern(value: Value) -> Any:
    """The first jaxpr seen with the structure of `value` (a jaxpr, or a tuple of them); other values as they are."""
    if not isinstance(value, JAXPR_TYPES):
        return mapped(intern, value)
    if constants(value):
        return value
    known = _known.get(value)
    if known is not None and (first := known()) is not None and not cache.shadowing:
        return first
    if value in _uncacheable:
        return value
    try:
        key = canonical.exact(value)
    except UncacheableError:
        _uncacheable.add(value)
        return value
    # a copy: NumPy's arrays can change, the scalars among them too
    first = _representatives.get(key, canonical.snapshot, value)
    _known[value] = weakref.ref(first)
    return first


def intern_forward(value: Value) -> Any:
    """`intern` for what is run and never differentiated: the rules of functions in it do not matter, and are left out."""
    if not isinstance(value, JAXPR_TYPES):
        return mapped(intern_forward, value)
    if constants(value):
        return value
    known = _forward.get(value)
    if known is not None and (first := known()) is not None and not cache.shadowing:
        return first
    with custom_rules.left_out():
        try:
            key = "forward", canonical.exact(value)
        except UncacheableError:
            return value
        first = _representatives.get(key, canonical.snapshot, value)
    _forward[value] = weakref.ref(first)
    return first


def is_known(jaxpr: JaxProgram) -> bool:
    """Whether it was interned before."""
    return jaxpr in _known


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
    """Whether `intern` found one of the jaxprs among a primitive's parameters to be like no other."""
    return any(jaxpr in _uncacheable for jaxpr in jaxprs_in(params))
