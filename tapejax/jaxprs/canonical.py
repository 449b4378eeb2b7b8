"""The exact canonical form of everything that is recognised: values by which programs are chosen, and JAX's programs.

Whatever tapejax keeps and uses again is looked up under a key from here. Equal keys must mean equal programs, to the last
bit: Python's own equality does not say that (``1 == 1.0 == True``, ``0.0 == -0.0``), nor does anything that is printed. So
a number is its type and its bits, an array its dtype, shape and bytes, an object without a key of its own its
identity. What holds something that can still change has no key: `UncacheableError`.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import struct
import types
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import jax
import numpy as np

from .fence import ClosedJaxpr, HighPrimitive, Jaxpr, Literal
from .threads import Context
from .types import Atom, Equation, JaxProgram, Params, Primitive

# Larger arrays are not compared byte by byte each time: what holds one has no key.
MOST_BYTES = 4096

JAXPR_TYPES = tuple({Jaxpr, ClosedJaxpr})


class UncacheableError(Exception):
    """There is no exact key: what holds this value may be run, but not recognised."""


class Identity:
    """The key of an object that equals nothing but itself; it keeps the object alive."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return type(other) is Identity and other.value is self.value

    def __repr__(self) -> str:
        return f"Identity({type(self.value).__name__} at {id(self.value):#x})"


# ---- values ---------------------------------------------------------------------------------------------------------


def exact(value: Any) -> Hashable:
    """The key of `value`: equal for two values only if nothing that is computed from them can tell them apart.

    Raises:
      UncacheableError: `value` is or holds an array of JAX's, a large or foreign NumPy array, or a container that can
        still change.

    >>> exact(1) == exact(True), exact(0.0) == exact(-0.0), exact(float("nan")) == exact(float("nan"))
    (False, False, True)
    >>> exact((2, "axis")) == exact((2, "axis"))
    True
    """
    kind: Any = type(value)
    return (_EXACT.get(kind) or _handler(kind))(value)


def key(value: Any) -> Hashable:
    """`exact`, but what has no exact key counts by its identity, wherever in `value` it is: for keys that are soon dropped."""
    with asking.setting(by_identity=True):
        try:
            return exact(value)
        except UncacheableError:
            return Identity(value)


class Asking(Context):
    """How keys are made here: whether by identity, where there is no exact one; inside which `custom_rules`, each with what
    stands for it there; and whether without the rules in programs, for such as are run and never differentiated."""

    by_identity = False
    rules: tuple[tuple[Any, Any, Any], ...] = ()
    without_rules = False


asking = Asking()


_float_bits = struct.Struct("<d").pack
_complex_bits = struct.Struct("<dd").pack


def _itself(value: Hashable) -> Hashable:
    return value


def _typed(value: Any) -> Hashable:
    try:
        hash(value)
    except TypeError:
        raise UncacheableError(f"{type(value).__name__} cannot be hashed") from None
    return type(value), value


def _int(value: int) -> Hashable:  # of a subclass; JAX's carries a dtype
    return type(value), int(value), getattr(value, "dtype", None)


def _float(value: float) -> Hashable:
    return type(value), _float_bits(value), getattr(value, "dtype", None)


def _complex(value: complex) -> Hashable:
    return type(value), _complex_bits(value.real, value.imag), getattr(value, "dtype", None)


def _sequence(value: Sequence[Any]) -> Hashable:
    return type(value), *[exact(x) for x in value]


def _frozenset(value: frozenset[Any]) -> Hashable:
    return type(value), frozenset(map(exact, value))


def _mapping(value: Any) -> Hashable:
    return type(value), *[(exact(key), exact(x)) for key, x in value.items()]


def _slice(value: slice) -> Hashable:
    return slice, exact(value.start), exact(value.stop), exact(value.step)


def _partial(value: functools.partial[Any]) -> Hashable:
    return type(value), exact(value.func), exact(value.args), _mapping(value.keywords)


def _method(value: types.MethodType) -> Hashable:
    return types.MethodType, Identity(value.__self__), value.__func__


def _function(value: types.FunctionType) -> Hashable:
    if value.__module__ != "jax._src.ad_checkpoint":
        return Identity(value)
    # A policy of `jax.checkpoint`, which JAX makes anew at each call: its names are in a set that nobody changes.
    return value.__code__, *map(_held, value.__closure__ or ())


def _held(cell: types.CellType) -> Hashable:
    value = cell.cell_contents
    return exact({set: frozenset}.get(type(value), _itself)(value))


def _dataclass(value: Any) -> Hashable:
    return type(value), *[exact(getattr(value, field.name)) for field in dataclasses.fields(value)]


def _high_primitive(value: Any) -> Hashable:
    # JAX compares parameters by their own equality, without types, and a user's equality may leave something out.
    if not _is_library(type(value)):
        return Identity(value)
    types_of = tuple(jax.tree.leaves((value.in_avals, value.out_aval)))
    return type(value), _mapping(value.params), exact(value.effects), exact(types_of)


def _array(value: Any) -> Hashable:
    if value.nbytes > MOST_BYTES or value.dtype.hasobject:
        return _refused(value)
    return np.ndarray, value.dtype, value.shape, value.tobytes(), getattr(value, "weak_type", False)


def _refused(value: Any) -> Hashable:
    if asking.by_identity:
        return Identity(value)
    raise UncacheableError(f"a {type(value).__name__}")


def _output_structure(value: Any) -> Hashable:
    # Empty until a rule of its primitive has run, and from then on the same.
    if not value.called():
        return Identity(value)
    treedef, static = value.get()
    leaves, static_treedef = jax.tree.flatten(static)
    try:
        return type(value), treedef, static_treedef, *map(exact, leaves)
    except UncacheableError:
        return Identity(value)


def _jaxpr(value: Any) -> Hashable:
    return type(value), structure(value)


_EXACT: dict[type, Callable[[Any], Hashable]] = {
    **dict.fromkeys((int, str, bytes, type(None)), _itself),
    bool: _typed,
    float: _float,
    complex: _complex,
    slice: _slice,
    range: _typed,
    types.MappingProxyType: _mapping,
    types.MethodType: _method,
    types.FunctionType: _function,
    **dict.fromkeys(JAXPR_TYPES, _jaxpr),
}

# Base classes, in the order in which they are looked for; objects without an equality of their own; types with an exact one.
_BY_BASE: tuple[tuple[Any, Callable[[Any], Hashable]], ...] = (
    ((type, enum.Enum), _typed),
    (jax.Array, _refused),
    ((np.ndarray, np.generic), _array),
    (int, _int),
    (float, _float),
    (complex, _complex),
    (tuple, _sequence),
    (frozenset, _frozenset),
    (functools.partial, _partial),
    (HighPrimitive, _high_primitive),
    ((list, dict, set, bytearray), _refused),
)
# Types of libraries, that need not be there. Each primitive of Equinox that is bound has a new object for what its rules return.
_BY_NAME = {"equinox.internal._primitive.Flatten": _output_structure}
_EXACT_TYPES_OF = ("jax", "jaxlib", "numpy", "ml_dtypes")


def _is_library(kind: Any) -> bool:
    return kind.__module__.partition(".")[0] in _EXACT_TYPES_OF


def _handler(kind: Any) -> Callable[[Any], Hashable]:
    """Finds out, once for each type, what the key of its values is."""
    named: Callable[[Any], Hashable] | None = _BY_NAME.get(f"{kind.__module__}.{kind.__qualname__}")
    handler = next((key for base, key in _BY_BASE if issubclass(kind, base)), named)
    if handler is None:
        if getattr(getattr(kind, "__dataclass_params__", None), "frozen", False):
            handler = _dataclass
        elif kind.__eq__ is not object.__eq__ and _is_library(kind):
            handler = _typed
        else:  # an equality of the user's may leave out what matters
            handler = Identity
    _EXACT[kind] = handler
    return handler


# ---- programs -------------------------------------------------------------------------------------------------------

# For primitives whose parameters do not tell what they do: by name, what gives the keys of some parameters.
parameter_rules: dict[str, Callable[[dict[str, Any]], dict[str, Hashable]]] = {}


def structure(jaxpr: JaxProgram) -> Hashable:
    """The key of one of JAX's programs: its operations, their parameters, context and types; variables by number.

    Raises:
      UncacheableError: it holds a value that has no key, see `exact`.
    """
    number: dict[Any, int] = {}

    def atom(a: Atom) -> Hashable:
        return ("literal", a.aval, exact(a.val)) if isinstance(a, Literal) else number.setdefault(a, len(number))

    inner = open_jaxpr(jaxpr)
    return (
        tuple([(atom(v), v.aval) for v in (*inner.constvars, *inner.invars)]),
        tuple(
            [
                (
                    eqn.primitive,
                    parameters(eqn.primitive, eqn.params),
                    tuple(map(atom, eqn.invars)),
                    tuple([(atom(v), v.aval) for v in eqn.outvars]),
                    # all of the context: how random bits are made, where it runs, in which mesh
                    eqn.ctx,
                )
                for eqn in inner.eqns
            ]
        ),
        tuple(map(atom, inner.outvars)),
        tuple(map(exact, getattr(jaxpr, "consts", ()))),
    )


def parameters(primitive: Primitive, params: Params) -> tuple[tuple[str, Hashable], ...]:
    """The key of a primitive's parameters."""
    rule = parameter_rules.get(primitive.name)
    special = rule(params) if rule else {}
    return tuple([(name, special[name] if name in special else exact(opened(params[name]))) for name in sorted(params)])


def open_jaxpr(jaxpr: JaxProgram) -> Any:
    """The program itself, without its constants."""
    return jaxpr.jaxpr if hasattr(jaxpr, "jaxpr") else jaxpr


_PROGRAMS = {Jaxpr, type(None)}


def opened(value: Any) -> Any:
    """`value`, a parameter of a primitive, with each jaxpr open that stands in a tuple with other things.

    Such a tuple holds the static parts of the primitive's arguments: Equinox takes functions apart in this way, and the arrays
    that they close over are operands. From JAX 0.11 on an open jaxpr may still have constants, which nobody reads: arrays of the
    first call, or tracers that are gone.
    """
    if type(value) is not tuple or ClosedJaxpr is not Jaxpr:
        return value
    kinds = {*map(type, value)}
    if tuple not in kinds and (Jaxpr not in kinds or kinds <= _PROGRAMS):
        return value
    parts = tuple([_without_constants(x) if type(x) is Jaxpr and not kinds <= _PROGRAMS else opened(x) for x in value])
    return value if all_same(parts, value) else parts


def _without_constants(jaxpr: JaxProgram) -> Any:
    return jaxpr.replace(jaxpr=jaxpr, consts=()) if jaxpr.consts else jaxpr


# ---- values that cannot change --------------------------------------------------------------------------------------


def snapshot(value: Any) -> Any:
    """`value` with each NumPy array and list in it copied.

    JAX's programs refer to the arrays that they were traced with: one that is changed in place changes the program.
    """
    if isinstance(value, np.ndarray):
        if value.base is None and not value.flags.writeable:
            return value
        copy = value.copy()
        copy.flags.writeable = False
        return copy
    if isinstance(value, JAXPR_TYPES):
        return _snapshot_jaxpr(value)
    if type(value) in (tuple, list):
        copies = type(value)(map(snapshot, value))
        return value if type(value) is tuple and all_same(copies, value) else copies
    return value


# By the name of a primitive: what gives stand-ins for some of its parameters.
parameter_snapshots: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {}


def _snapshot_jaxpr(jaxpr: JaxProgram) -> Any:
    inner, consts = open_jaxpr(jaxpr), getattr(jaxpr, "consts", ())
    fresh = {
        "eqns": [_snapshot_equation(eqn) for eqn in inner.eqns],
        "outvars": [_snapshot_atom(v) for v in inner.outvars],
    }
    fresh = {name: new for name, new in fresh.items() if not all_same(new, getattr(inner, name))}
    fresh_consts = list(map(snapshot, consts))
    if not fresh and all_same(fresh_consts, consts):
        return jaxpr
    inner = inner.replace(**fresh) if fresh else inner
    return jaxpr.replace(jaxpr=inner, consts=fresh_consts) if hasattr(jaxpr, "jaxpr") else inner


def all_same(xs: Iterable[Any], ys: Iterable[Any]) -> bool:
    return all(x is y for x, y in zip(xs, ys, strict=True))


def _snapshot_equation(eqn: Equation) -> Any:
    invars = [_snapshot_atom(v) for v in eqn.invars]
    rule = parameter_snapshots.get(eqn.primitive.name)
    params = {name: snapshot(opened(x)) for name, x in eqn.params.items()} | (rule(eqn.params) if rule else {})
    if all_same((*invars, *params.values()), (*eqn.invars, *eqn.params.values())):
        return eqn
    return eqn.replace(invars=invars, params=params)


def _snapshot_atom(atom: Atom) -> Any:
    if isinstance(atom, Literal) and (val := snapshot(atom.val)) is not atom.val:
        return Literal(val, atom.aval)
    return atom
