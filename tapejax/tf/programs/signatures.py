"""What a call hands to a `function` and gets back: which of it are tensors, a key for the rest, and how to repack results.

A call is known by its key: the nesting of its arguments, shape and dtype of each tensor, the value of each Python number
or string, and the identity of variables and other objects. Two calls with one key run one compiled program.
"""

from __future__ import annotations

import collections.abc
import itertools
import types
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np

from ...jaxprs.canonical import exact
from ...jaxprs.canonical import key as exact_key
from ...jaxprs.types import Pytree
from ..values import nest
from ..values.conversion import is_array_like, raw
from ..values.dtypes import DType, TensorShape, as_dtype, as_shape, requested
from ..values.errors import DTypeError
from ..values.structures import is_variable
from ..values.tensor import Tensor
from ..values.types import Array, DTypeLike, Nest, ShapeLike, TensorLike, VariableLike
from ..values.variable import Variable, VariableSlice, VariableValue

Argument: TypeAlias = Any  # what a function is called with: a tensor, any Python value, or a nest of these
Arguments: TypeAlias = Sequence[Argument]
Keywords: TypeAlias = dict[str, Argument]
Spec: TypeAlias = Any  # a TensorSpec, or a nest of these


class TensorSpec:
    """What is known of a tensor before there is one: shape and dtype.

    Args:
      shape: its shape; None in it is a size that is not known, None alone a shape of any rank.
      dtype: its dtype.
      name: a name for it.

    >>> import tapejax as tf
    >>> tf.TensorSpec([None, 3])
    TensorSpec(shape=(None, 3), dtype=tf.float32, name=None)
    >>> tf.TensorSpec([None, 3]).is_compatible_with(tf.ones([2, 3]))
    True
    """

    __slots__ = ("shape", "dtype", "name")

    def __init__(self, shape: ShapeLike, dtype: DTypeLike = "float32", name: str | None = None):
        self.shape: TensorShape = as_shape(shape)
        self.dtype: DType = as_dtype(dtype)
        self.name = name

    @classmethod
    def from_tensor(cls, tensor: TensorLike, name: str | None = None) -> TensorSpec:
        """The spec of a tensor, variable or array."""
        return cls(tensor.shape, tensor.dtype, name)

    @classmethod
    def from_spec(cls, spec: TensorSpec, name: str | None = None) -> TensorSpec:
        return cls(spec.shape, spec.dtype, name or spec.name)

    def is_compatible_with(self, spec_or_tensor: TensorSpec | TensorLike) -> bool:
        """Whether a tensor (or all that a spec describes) may be given where this spec is asked for."""
        if not isinstance(spec_or_tensor, TensorSpec) and not is_array_like(spec_or_tensor):
            return False
        return self.dtype == spec_or_tensor.dtype and self.shape.is_compatible_with(spec_or_tensor.shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorSpec) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def _fields(self) -> tuple:
        return repr(self.shape), self.dtype, self.name

    def __reduce__(self):
        return TensorSpec, (self.shape, self.dtype, self.name)

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype!r}, name={self.name!r})"


# ---- arguments ------------------------------------------------------------------------------------------------------
#
# `describe` gives the key of a value and collects its tensors; `rebuild` gives the value again with others in their
# place. Both look up what to do by the type of the value.


def describe(value: Argument, arrays: list[Array | TensorSpec]) -> Hashable:
    """The key of `value`; its tensors are appended to `arrays`.

    Raises:
      TypeError: `value` holds an object that cannot be hashed, so that a change of it could not be found.
    """
    kind: Any = type(value)
    return (_DESCRIBE.get(kind) or _handlers(kind, value)[0])(value, arrays)


def rebuild(value: Argument, tensors: Iterator[Array | TensorSpec]) -> Argument:
    """`value` with the next of `tensors` for each array that `describe` collected."""
    kind: Any = type(value)
    return (_REBUILD.get(kind) or _handlers(kind, value)[1])(value, tensors)


def _tensor(value: Tensor, arrays: list[Array | TensorSpec]) -> Hashable:
    array = value._array
    arrays.append(array)
    return Tensor, array.aval


def _array(value: Array, arrays: list[Array | TensorSpec]) -> Hashable:
    arrays.append(value)
    return jax.Array, value.aval


def _numpy(value: np.ndarray | np.generic, arrays: list[Array | TensorSpec]) -> Hashable:
    array = raw(value)
    arrays.append(array)
    return Tensor, array.aval


def _spec(value: TensorSpec, arrays: list[Array | TensorSpec]) -> Hashable:
    arrays.append(value)
    shape = value.shape
    if shape.rank is not None and None not in tuple(shape):
        return Tensor, jax.typeof(jax.ShapeDtypeStruct(tuple(shape), requested(value.dtype)))
    return Tensor, shape if shape.rank is None else tuple(shape), requested(value.dtype)


def _take_tensor(value: Argument, tensors: Iterator[Array | TensorSpec]) -> Tensor:
    return Tensor(next(tensors))


def _take_array(value: Argument, tensors: Iterator[Array | TensorSpec]) -> Array | TensorSpec:
    return next(tensors)


def _object(value: object, arrays: list[Array | TensorSpec]) -> Hashable:
    try:
        hash(value)
    except TypeError:
        raise TypeError(
            f"an argument of a tf.function cannot be hashed: {value!r} of type {type(value).__name__}. Pass tensors, or "
            "nested lists, tuples and dicts of them; or Python objects that can be hashed."
        ) from None
    try:
        return weakref.ref(value)  # it hashes and compares as the object does, and does not keep it alive
    except TypeError:
        return exact_key(value)


def _variable(value: VariableLike, arrays: list[Array | TensorSpec]) -> Hashable:
    return Variable, id(value)  # the trace keeps it alive


def _sequence(value: Sequence, arrays: list[Array | TensorSpec]) -> Hashable:
    return type(value), *[describe(x, arrays) for x in value]


def _own_kind(value: Any, arrays: list[Array | TensorSpec]) -> Hashable:
    metadata, components = nest.own_parts(value)
    kind: Any = type(value)  # to mypy a class is not hashable
    return kind, describe(metadata, []), *[describe(x, arrays) for x in components]


def _mapping(value: Mapping, arrays: list[Array | TensorSpec]) -> Hashable:
    return type(value), *[(describe(key, arrays), describe(value[key], arrays)) for key in sorted(value)]


def _pytree(value: Pytree, arrays: list[Array | TensorSpec]) -> Hashable:
    leaves, tree = jax.tree.flatten(value, is_leaf=_is_ours)
    return tree, *[describe(x, arrays) for x in leaves]


def _same(value: Argument, tensors: Iterator[Array | TensorSpec]) -> Argument:
    return value


def _rebuild_sequence(value: Nest, tensors: Iterator[Array | TensorSpec]) -> Nest:
    return nest.maker(value)([rebuild(x, tensors) for x in nest._children(value)])


def _rebuild_mapping(value: Mapping, tensors: Iterator[Array | TensorSpec]) -> Nest:
    rebuilt = {key: rebuild(value[key], tensors) for key in sorted(value)}
    return nest._like(value, {key: rebuilt[key] for key in value})


def _rebuild_pytree(value: Pytree, tensors: Iterator[Array | TensorSpec]) -> Pytree:
    leaves, tree = jax.tree.flatten(value, is_leaf=_is_ours)
    return jax.tree.unflatten(tree, [rebuild(x, tensors) for x in leaves])


def _is_ours(value: object) -> bool:
    return isinstance(value, Variable)  # a pytree, but here an object


_ALIKE: dict[tuple[Callable, Callable], tuple[type, ...]] = {
    (_tensor, _take_tensor): (Tensor, VariableValue, VariableSlice),
    (_spec, _take_tensor): (TensorSpec,),
    (lambda x, _: (type(x), x), _same): (int, bool, str, bytes, type(None), DType, TensorShape),
    (lambda x, _: exact(x), _same): (float, complex),  # 0.0 is not -0.0, and nan is nan
    (lambda x, arrays: (slice, *[describe(y, arrays) for y in (x.start, x.stop, x.step)]), _same): (slice,),
    (lambda x, arrays: (type(x), describe(x.__self__, arrays), x.__func__), _same): (types.MethodType,),
    (_variable, _same): (Variable,),
    (_sequence, _rebuild_sequence): (list, tuple),
    (_mapping, _rebuild_mapping): (dict,),
}
_DESCRIBE: dict[Any, Callable] = {kind: pair[0] for pair, kinds in _ALIKE.items() for kind in kinds}
_REBUILD: dict[Any, Callable] = {kind: pair[1] for pair, kinds in _ALIKE.items() for kind in kinds}


def _handlers(kind: Any, value: Argument) -> tuple[Callable, Callable]:
    """Finds out, once for each type, how its values are taken apart."""
    if isinstance(value, jax.Array):
        pair: tuple[Callable, Callable] = _array, _take_array
    elif isinstance(value, Tensor):
        pair = _tensor, _take_tensor
    elif isinstance(value, (np.ndarray, np.generic)):
        pair = _numpy, _take_tensor
    elif isinstance(value, Variable) or (is_variable(value) and jax.tree_util.all_leaves([value])):
        pair = _variable, _same
    elif nest.is_own_kind(kind):
        pair = _own_kind, _rebuild_sequence
    elif nest.is_nested(value):
        pair = (_mapping, _rebuild_mapping) if isinstance(value, Mapping) else (_sequence, _rebuild_sequence)
    elif not jax.tree_util.all_leaves([value]):
        pair = _pytree, _rebuild_pytree
    else:
        pair = _object, _same
    _DESCRIBE[kind], _REBUILD[kind] = pair
    return pair


def alive(key: Hashable) -> bool:
    """Whether every object that a key refers to still exists."""
    if isinstance(key, tuple):
        return all(map(alive, key))
    return not isinstance(key, weakref.ref) or key() is not None


# ---- an input signature ---------------------------------------------------------------------------------------------


def check_signature(input_signature: Sequence[Spec] | None) -> tuple | None:
    """`input_signature` as a tuple; TypeError if it is no (nested) sequence of specs."""
    if input_signature is None:
        return None
    if not isinstance(input_signature, (tuple, list)):
        raise TypeError(f"input_signature must be either a tuple or a list, got {type(input_signature)}.")
    wrong = [x for x in nest.flatten(input_signature) if not isinstance(x, TensorSpec)]
    if wrong:
        raise TypeError(
            f"input_signature must be a possibly nested sequence of TensorSpec objects, got {wrong} in {input_signature}."
        )
    return tuple(input_signature)


def cast(value: Argument, spec: Spec) -> Argument:
    """`value` converted to fit `spec`: Python numbers, lists and NumPy arrays become tensors; tensors must fit.

    Raises:
      TypeError: it does not fit.
    """
    if isinstance(spec, Mapping):
        if not isinstance(value, Mapping) or set(value) != set(spec):
            raise TypeError(f"a mapping with the keys {sorted(spec)} was expected, got {value!r}")
        return nest._like(value, {key: cast(value[key], spec[key]) for key in value})
    if nest.is_nested(spec):
        specs = nest._children(spec)
        if not nest._same_type(spec, value) or len(children := nest._children(value)) != len(specs):
            raise TypeError(f"a {type(spec).__name__} of {len(specs)} was expected, got {value!r}")
        return nest.maker(value)([cast(x, s) for x, s in zip(children, specs, strict=True)])
    if not isinstance(spec, TensorSpec):
        if describe(value, []) != describe(spec, []):
            raise TypeError(f"the value {spec!r} was expected, got {value!r}")
        return value
    try:
        if not isinstance(value, (Tensor, jax.Array, TensorSpec)):  # a variable is read
            value = Tensor(raw(value) if is_array_like(value) else raw(value, spec.dtype))
    except (TypeError, ValueError) as error:
        raise TypeError(f"{value!r} cannot become a tensor of {spec}: {error}") from error
    if spec.shape.is_compatible_with(value.shape) and value.dtype == requested(spec.dtype):
        return value
    kind = TypeError if value.dtype == requested(spec.dtype) else DTypeError
    raise kind(f"a tensor of shape {tuple(value.shape)} and dtype {value.dtype} does not fit {spec}")


# How many axes a tensor of any rank may have where a program depends on that.
RANKS = (1, 2, 0, 3, 4)
# With up to this many unknown sizes, all combinations of equal ones are tried.
OPEN_SIZES = 4


def of_known_ranks(structure: Spec) -> Iterator[Spec]:
    """A structure of specs, once for each combination of ranks that its shapes of unknown rank may have."""
    unknown = sum(map(_unranked, nest.flatten(structure)))
    many = itertools.product(RANKS, repeat=unknown)
    for ranks in many if unknown <= 2 else ((rank,) * unknown for rank in RANKS):
        left = iter(ranks)

        def ranked(x: Argument, given: Iterator[int] = left) -> Argument:
            return TensorSpec([None] * next(given), x.dtype, x.name) if _unranked(x) else x

        yield nest.map_structure(ranked, structure)


def _unranked(x: Argument) -> bool:
    return isinstance(x, TensorSpec) and x.shape.rank is None


def symbolic_inputs(specs: Sequence[TensorSpec]) -> list[list[jax.ShapeDtypeStruct]]:
    """Specs with sizes that are not known, as JAX's symbolic shapes; several attempts, the most general one first.

    All sizes apart are tried first, then some of them equal: whether a function adds its arguments or
    multiplies them as matrices.
    """
    places = [(i, axis) for i, spec in enumerate(specs) for axis, size in enumerate(spec.shape) if size is None]
    return [_symbolic(specs, dict(zip(places, groups, strict=True))) for groups in _groupings(places)]


def _groupings(places: Sequence[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Ways to number the open sizes, equal ones alike: from all apart to all equal."""
    if len(places) > OPEN_SIZES:
        batch = [0 if axis == 0 else 1 + i for i, (_, axis) in enumerate(places)]
        return [tuple(range(len(places))), tuple(batch), (0,) * len(places)]
    groupings: list[tuple[int, ...]] = [()]
    for _ in places:
        groupings = [(*groups, n) for groups in groupings for n in range(max(groups, default=-1) + 2)]

    def order(groups: tuple[int, ...]) -> tuple[int, bool]:
        batch = {n for n, (_, axis) in zip(groups, places, strict=True) if axis == 0}
        return -len(set(groups)), len(batch) > 1  # few equal ones first, and among these the first axes

    return sorted(groupings, key=order)


def _symbolic(specs: Sequence[TensorSpec], groups: dict[tuple[int, int], int]) -> list[jax.ShapeDtypeStruct]:
    from jax import export  # loaded when it is needed

    scope = export.SymbolicScope()
    out = []
    for i, spec in enumerate(specs):
        sizes = [f"d{groups[i, axis]}" if size is None else str(size) for axis, size in enumerate(spec.shape)]
        out.append(jax.ShapeDtypeStruct(export.symbolic_shape(", ".join(sizes), scope=scope), requested(spec.dtype)))
    return out


# ---- results --------------------------------------------------------------------------------------------------------

Packer = Callable[[Iterator[Any]], Any]


def flatten_result(result: Nest, arrays: list[Array]) -> Packer:
    """Appends the arrays of what a function returned; the packer makes the same structure of others.

    Tensors, variables, NumPy values, shapes and Python numbers come back as Tensors, a ``jax.Array`` as what it is, None and
    strings as they are.

    Raises:
      TypeError: `result` holds an object that is none of these.
    """
    if result is None or isinstance(result, str):
        return lambda outputs: result
    if isinstance(result, jax.Array):
        arrays.append(result)
        return next
    if (
        isinstance(result, Tensor)
        or is_variable(result)
        or isinstance(result, (np.ndarray, np.generic, TensorShape, *_NUMBERS))
    ):
        arrays.append(raw(result))
        return lambda outputs: Tensor(next(outputs))
    if nest.is_nested(result):
        return _flatten_nested(result, arrays)
    leaves, tree = jax.tree.flatten(result, is_leaf=is_variable)
    if jax.tree_util.treedef_is_leaf(tree):
        raise TypeError(
            "A tf.function must return tensors, arrays, numbers or None, or structures of them; found a return value of "
            f"type {type(result).__name__}: {result!r}"
        )
    packers = [flatten_result(leaf, arrays) for leaf in leaves]
    return lambda outputs: jax.tree.unflatten(tree, [pack(outputs) for pack in packers])


_NUMBERS = (bool, int, float, complex)


def _flatten_nested(result: Nest, arrays: list[Array]) -> Packer:
    kind: Any = type(result)
    if isinstance(result, Mapping):
        packed = [(key, flatten_result(result[key], arrays)) for key in result]
        first = (result.default_factory,) if isinstance(result, collections.defaultdict) else ()
        return lambda outputs: kind(*first, [(key, pack(outputs)) for key, pack in packed])
    packers = [flatten_result(x, arrays) for x in nest._children(result)]
    make = nest.maker(result)
    return lambda outputs: make([pack(outputs) for pack in packers])


# ---- in words -------------------------------------------------------------------------------------------------------


def in_words(structure: Nest) -> str:
    """A structure of specs and values as TensorFlow writes types: ``Tuple[TensorSpec(...), Literal[True]]``."""
    if isinstance(structure, TensorSpec):
        return repr(structure)
    if isinstance(structure, Mapping):
        return f"Dict[{', '.join(f'[{key!r}, {in_words(x)}]' for key, x in structure.items())}]"
    if isinstance(structure, Sequence) and nest.is_nested(structure):
        kind = "List" if isinstance(structure, list) else "Tuple"
        return f"{kind}[{', '.join(map(in_words, structure))}]"
    return f"Literal[{structure!r}]"
