"""``tf.nest``: functions over nested structures, in TensorFlow's order.

Sequences (lists, tuples, namedtuples, ranges, deques ...) and mappings are structures, the latter in the order of their
sorted keys. So are objects of attrs's classes, and dataclasses that say how to take them apart, by ``__tf_flatten__`` and
``__tf_unflatten__``. Everything else, tensors, variables, arrays, strings, sets and shapes included, is a leaf; but where
`expand_composites` is true, what consists of tensors (`composite`) is a structure of these.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ...jaxprs.cache import memoised
from .dtypes import TensorShape
from .tensor import Tensor
from .types import Nest
from .variable import Variable

__all__ = ["assert_same_structure", "flatten", "is_nested", "map_structure", "pack_sequence_as"]


def __dir__() -> list[str]:
    return sorted(__all__)


_LEAVES = (str, bytes, bytearray, TensorShape, Tensor, Variable)
_PLAIN_LEAVES = frozenset((Tensor, Variable, float, int, bool, str, type(None)))
_NESTS = (Sequence, Mapping, collections.abc.MappingView)


def is_nested(seq: object) -> bool:
    """Whether `seq` is a structure: a sequence, a mapping, an object of attrs's, or a dataclass with ``__tf_flatten__``.

    >>> is_nested([]), is_nested({"a": 1}), is_nested("ab"), is_nested(1)
    (True, True, False, False)
    """
    kind: Any = type(seq)  # to mypy a class is not hashable
    return _is_nested_type(kind)


@memoised(1024)  # Python's abstract classes take a microsecond to answer
def _is_nested_type(kind: Any) -> bool:
    return (issubclass(kind, _NESTS) and not issubclass(kind, _LEAVES)) or is_own_kind(kind)


def is_own_kind(kind: Any) -> bool:
    """Whether a class says how its objects are taken apart: one of attrs's, or a dataclass that does it itself."""
    itself = dataclasses.is_dataclass(kind) and hasattr(kind, "__tf_flatten__") and hasattr(kind, "__tf_unflatten__")
    return itself or hasattr(kind, "__attrs_attrs__")


_COMPOSITES: set[Any] = set()


def composite(kind: Any) -> Any:
    """Decorator: a class whose objects, by ``__tf_flatten__`` and ``__tf_unflatten__``, consist of tensors."""
    _COMPOSITES.add(kind)
    return kind


def _expanded(value: object) -> bool:
    kind: Any = type(value)
    return is_nested(value) or kind in _COMPOSITES


def _nested(expand_composites: bool) -> Callable[[object], bool]:
    return _expanded if expand_composites else is_nested


def is_sequence(value: object) -> bool:
    """Whether a structure is neither a mapping nor of such a class."""
    kind: Any = type(value)
    return _is_nested_type(kind) and not issubclass(kind, Mapping) and not is_own_kind(kind)


def own_parts(structure: Any) -> tuple[Any, Sequence]:
    """Of an object of such a class: what it has beside its children, and these."""
    fields = getattr(type(structure), "__attrs_attrs__", None)
    return structure.__tf_flatten__() if fields is None else ((), [getattr(structure, x.name) for x in fields])


def flatten(structure: Nest, expand_composites: bool = False) -> list:
    """The leaves of `structure`, from left to right; a leaf alone gives a list of one.

    Raises:
      TypeError: the keys of a mapping cannot be sorted.

    >>> flatten({"b": 1, "a": [2, (3,)]})
    [2, 3, 1]
    """
    return taken_apart(structure, _nested(expand_composites))


def taken_apart(structure: Nest, nested: Callable[[object], bool]) -> list:
    """`flatten`, where `nested` says what is a structure."""
    if type(structure) in _PLAIN_LEAVES:
        return [structure]
    if type(structure) is list and _PLAIN_LEAVES.issuperset(map(type, structure)):
        return list(structure)
    return list(_leaves(structure, nested))


def _leaves(structure: Nest, nested: Callable[[object], bool] = is_nested) -> Iterator:
    if not nested(structure):
        yield structure
        return
    for child in _children(structure):
        yield from _leaves(child, nested)


def _takes_itself_apart(kind: Any) -> bool:
    return is_own_kind(kind) or kind in _COMPOSITES


def _children(structure: Nest) -> list:
    if type(structure) is list or type(structure) is tuple:
        return structure  # type: ignore[return-value]
    if isinstance(structure, Mapping):
        return [structure[key] for key in sorted(structure)]
    kind: Any = type(structure)
    return list(own_parts(structure)[1] if _takes_itself_apart(kind) else structure)


def part_names(structure: Nest) -> list[str]:
    """How Python code gets each child of `structure`: what follows the structure's name."""
    if isinstance(structure, Mapping):
        return [f"[{key!r}]" for key in sorted(structure)]
    kind: Any = type(structure)
    if hasattr(kind, "__attrs_attrs__"):
        return [f".{field.name}" for field in kind.__attrs_attrs__]
    return [f"{'.__tf_flatten__()[1]' if is_own_kind(kind) else ''}[{i}]" for i in range(len(_children(structure)))]


def maker(structure: Nest) -> Callable[[Sequence], Nest]:
    """What makes a sequence or object like `structure` of other children; it does not keep these ones alive."""
    kind: Any = type(structure)
    by_fields = hasattr(kind, "__attrs_attrs__")
    if _takes_itself_apart(kind) and not by_fields:
        metadata = own_parts(structure)[0]
        return lambda children: kind.__tf_unflatten__(metadata, tuple(children))
    if by_fields or hasattr(structure, "_fields"):
        return lambda children: kind(*children)
    # A range or a view of a dict cannot hold other values.
    return list if isinstance(structure, (range, collections.abc.MappingView)) else kind


def map_structure(func: Callable, *structure: Nest, check_types: bool = True, expand_composites: bool = False) -> Nest:
    """`func` of the corresponding leaves of the structures, in the first one's structure.

    Raises:
      TypeError: `func` is not callable, or sequence types differ and `check_types` is true.
      ValueError: no structure is given, or the structures differ.

    >>> map_structure(lambda x, y: x + y, {"a": 1, "b": (2,)}, {"a": 10, "b": (20,)})
    {'a': 11, 'b': (22,)}
    """
    if not callable(func):
        raise TypeError(f"func must be callable, got {func!r}")
    if not structure:
        raise ValueError("map_structure needs at least one structure")
    first, *others = structure
    for other in others:
        assert_same_structure(first, other, check_types, expand_composites)
    nested = _nested(expand_composites)
    return packed(first, map(func, *[_leaves(one, nested) for one in structure]), nested)


def pack_sequence_as(structure: Nest, flat_sequence: Sequence, expand_composites: bool = False) -> Nest:
    """The items of `flat_sequence` in the structure of `structure`: the inverse of `flatten`.

    Raises:
      TypeError: `flat_sequence` is not a sequence.
      ValueError: it has more or fewer items than `structure` has leaves.

    >>> pack_sequence_as({"b": 0, "a": [0, 0]}, [1, 2, 3])
    {'b': 3, 'a': [1, 2]}
    """
    if not is_nested(flat_sequence):
        raise TypeError(f"flat_sequence must be a sequence, got {type(flat_sequence).__name__}")
    count, flat = len(flatten(structure, expand_composites)), list(flat_sequence)
    if count != len(flat):
        raise ValueError(f"structure has {count} leaves, but flat_sequence has {len(flat)} items")
    return packed(structure, iter(flat), _nested(expand_composites))


def packed(structure: Nest, leaves: Iterator, nested: Callable[[object], bool] = is_nested) -> Nest:
    """`pack_sequence_as` of as many `leaves` as there are, where `nested` says what is a structure."""
    if not nested(structure):
        return next(leaves)
    if type(structure) is list:
        return [packed(child, leaves, nested) for child in structure]
    if isinstance(structure, Mapping):
        items = {key: packed(structure[key], leaves, nested) for key in sorted(structure)}
        return _like(structure, {key: items[key] for key in structure})
    return maker(structure)([packed(child, leaves, nested) for child in _children(structure)])


def _like(mapping: Any, items: dict) -> Any:
    if isinstance(mapping, collections.defaultdict):
        return type(mapping)(mapping.default_factory, items)
    return type(mapping)(items)


def assert_same_structure(nest1: Nest, nest2: Nest, check_types: bool = True, expand_composites: bool = False) -> None:
    """Checks that two structures are nested alike.

    Raises:
      ValueError: they differ in nesting, number of items or keys.
      TypeError: they differ in the type of a sequence, and `check_types` is true.

    >>> assert_same_structure([1, 2], [3, [4]])
    Traceback (most recent call last):
    ValueError: the structures differ at [1]: int against list. First: [1, 2]; second: [3, [4]]
    """
    difference = _difference(nest1, nest2, check_types, "", _nested(expand_composites))
    if difference is not None:
        kind, text = difference
        raise kind(f"the structures differ{text}. First: {nest1!r}; second: {nest2!r}")


def _difference(
    a: Nest, b: Nest, check_types: bool, where: str, nested: Callable[[object], bool]
) -> tuple[type[Exception], str] | None:
    at = f" at {where}" if where else ""
    if nested(a) != nested(b):
        return ValueError, f"{at}: {type(a).__name__} against {type(b).__name__}"
    if not nested(a):
        return None
    if check_types and not _same_type(a, b):
        return TypeError, f" in type{at}: {type(a).__name__} against {type(b).__name__}"
    counts = len(_children(a)), len(_children(b))
    if counts[0] != counts[1]:
        return ValueError, f" in length{at}: {counts[0]} against {counts[1]}"
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if set(a) != set(b):
            return ValueError, f" in keys{at}: {sorted(a)} against {sorted(b)}"
        keys: Sequence = sorted(a)
    else:
        keys = range(counts[0])
    for key, x, y in zip(keys, _children(a), _children(b), strict=True):
        inside = _difference(x, y, check_types, f"{where}[{key!r}]", nested)
        if inside is not None:
            return inside
    return None


def _same_type(a: Nest, b: Nest) -> bool:
    if type(a) is type(b) or (isinstance(a, Mapping) and isinstance(b, Mapping)):
        return True
    # Two classes made by namedtuple() of the same name and fields are the same type to the reader.
    fields = getattr(a, "_fields", None)
    return fields is not None and fields == getattr(b, "_fields", None) and type(a).__name__ == type(b).__name__
