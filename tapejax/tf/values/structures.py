"""What a user hands to a tape: nested containers, pytrees and variables, taken apart into arrays and put together again."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from operator import is_
from typing import Any, NoReturn

import jax
import numpy as np

from ...jaxprs.dependence import has_tangent
from ...jaxprs.fence import Tracer
from ...jaxprs.types import Pytree
from ...tape import active, structures
from ...tape.recording import is_deleted, new_tuple
from ...tape.structures import Leaf
from . import nest, reading
from .conversion import raw
from .errors import InvalidArgumentError
from .missing import no_attribute
from .tensor import Tensor, escaped
from .types import Array, Nest, TensorLike
from .variable import Variable


def is_variable(value: object) -> bool:
    """Whether `value` is a variable: ours, or of a library that makes it an array by ``__jax_array__`` (Keras, Flax)."""
    return isinstance(value, Variable) or (_is_foreign(value) and _holds_array(value))


def _is_foreign(value: object) -> bool:
    """Whether `value` is a variable of another library. A dataclass (Haliax's NamedArray, an Equinox module) is a pytree."""
    if not hasattr(value, "__jax_array__") or isinstance(value, (Tensor, Variable, jax.Array, type)):
        return False
    return not dataclasses.is_dataclass(value)


def _holds_array(variable: object) -> bool:
    """Whether `variable` holds one array. Flax's may hold a pytree, whose arrays are then found as those of any other."""
    if jax.tree_util.all_leaves([variable]):
        return True
    children: Any = jax.tree.structure(variable).children()  # type: ignore[attr-defined]
    return not children or (len(children) == 1 and jax.tree_util.treedef_is_leaf(children[0]))


def leaf_of(value: TensorLike) -> Leaf | None:
    """`value` as a leaf, or None if it is neither a tensor, an array nor a variable."""
    kind = type(value)  # the usual kinds first: `isinstance` of a `jax.Array` takes long for what is none
    if kind is Variable:
        return new_tuple(Leaf, (value, reading.held(value), Tensor, value, False))
    if kind is Tensor or isinstance(value, Tensor):
        return new_tuple(Leaf, (value, value._array, Tensor, None, False))
    if isinstance(value, jax.Array):
        return Leaf(value, value, _same)
    if isinstance(value, Variable):
        return Leaf(value, reading.held(value), Tensor, value)
    if is_variable(value) and (array := _array_in(value)) is not None:
        # other libraries' trainable variables are watched from the start
        return Leaf(value, array, Tensor, value, reading.watched_when_read(value))
    return None


def _array_in(variable: Any) -> Array | None:
    """What another library's variable holds, or None if it is no number that could have a gradient.

    Raises:
      TypeError: it is a NumPy array or a Python number, as Flax's variables may hold: tapes identify a `jax.Array`.
    """
    held: Array = variable.__jax_array__()
    if isinstance(held, jax.Array):
        return held
    if isinstance(held, (float, complex)) or getattr(getattr(held, "dtype", None), "kind", None) in ("f", "c", "V"):
        raise TypeError(
            f"{variable!r} holds a {type(held).__name__}, which a tape cannot follow: give it a jax.Array (jnp.asarray) before "
            "the tape's block."
        )
    return None


def _same(x: Array) -> Array:
    return x


def _is_container(value: object) -> bool:
    """Whether `value` is one of TensorFlow's containers. A Flax state is a mapping, too, but a pytree of its own kind."""
    if isinstance(value, (list, tuple, dict)):
        return nest.is_nested(value)
    return nest.is_nested(value) and jax.tree_util.all_leaves([value])


def _is_part(inside: set[int], node: object) -> bool:
    """Whether a pytree is not taken apart below `node`. What a variable holds that is taken apart is added to `inside`."""
    if is_variable(node):
        return True
    if _is_foreign(node):
        inside.update(map(id, jax.tree.leaves(node)))
    return False


def in_pytree(value: object, in_variable: bool = False) -> Leaf | None:
    """`leaf_of(value)` for a part of a pytree. The result for a variable of Flax is one of its kind, as `nnx.grad` gives it:
    Flax's optimizers and filters look for it."""
    leaf = leaf_of(value)
    if leaf is None or isinstance(value, Variable) or not is_variable(value):
        return leaf and (leaf._replace(watched=True) if in_variable and leaf.holder is None else leaf)
    parts, tree = jax.tree.flatten(value)
    if len(parts) != 1 or jax.tree_util.treedef_is_leaf(tree):
        return leaf
    return leaf._replace(wrap=lambda x: jax.tree.unflatten(tree, [x]))


def _require_alive(leaf: Leaf, argument: str) -> None:
    array = leaf.array
    if isinstance(array, Tracer):
        if active.eager():
            raise escaped(array)
    elif is_deleted(array):
        raise RuntimeError(
            f"Argument `{argument}`: a tensor of shape {array.shape} and dtype {array.dtype} was deleted since: most likely it "
            "was donated to a jitted function (donate_argnums). Do not donate what a tape watches or has recorded."
        )


class UserStructure(structures.Structure):
    """A user's structure taken apart: lists, tuples, dicts and namedtuples as TensorFlow's ``nest`` does, any other
    registered pytree (a Flax state, an Equinox module) as JAX does. What is no array inside a pytree becomes None, but for a
    NumPy array of floats, which is refused as it is elsewhere: JAX would give it a gradient."""

    def __init__(self, structure: Nest, argument: str):
        self.structure = structure
        self._items: list[tuple[int, Any]] = []  # of each item how many parts it has (-1: it is a leaf), its tree, ...
        self.leaves: list[Leaf] = []
        items = nest.taken_apart(structure, _is_container)
        for item in items:
            leaf = leaf_of(item)
            if leaf is not None:
                _require_alive(leaf, argument)
                self.leaves.append(leaf)
                self._items.append((-1, None))
                continue
            if isinstance(item, Iterator):
                raise refusal(item, argument)
            inside: set[int] = set()
            parts, tree = jax.tree.flatten(item, is_leaf=functools.partial(_is_part, inside))
            if jax.tree_util.treedef_is_leaf(tree) or item is None:
                raise refusal(item, argument)
            in_item = [in_pytree(part, id(part) in inside) for part in parts]
            for part, leaf in zip(parts, in_item, strict=True):
                if leaf is not None:
                    _require_alive(leaf, argument)
                    self.leaves.append(leaf)
                elif isinstance(part, (np.ndarray, np.generic)) and has_tangent(part):
                    raise refusal(part, argument)
            holders = [id(leaf.holder) if leaf and leaf.holder is not None else i for i, leaf in enumerate(in_item)]
            self._items.append((len(parts), (tree, [leaf is not None for leaf in in_item], holders)))
        # the usual case, and no need to take it apart again for the results
        self._plain_list = (
            type(structure) is list
            and len(structure) == len(self.leaves)
            and all([count < 0 for count, _ in self._items])
            and all(map(is_, structure, items))
        )

    def parts_of(self, other: Nest) -> list[Any]:
        """What `other`, which has the same structure, holds in the places of the leaves.

        Raises:
          ValueError: a pytree in it has another structure.
        """
        parts: list[Any] = []
        for item, (count, pytree) in zip(nest.taken_apart(other, _is_container), self._items, strict=True):
            parts += [item] if count < 0 else itertools.compress(pytree[0].flatten_up_to(item), pytree[1])
        return parts

    def pack(self, results: Sequence[Array | None]) -> Nest:
        """As there. That of one of JAX's sparse matrices has its indices, as `jax.experimental.sparse.grad` gives it."""
        packed = super().pack(results)
        items = [] if self._plain_list else nest.taken_apart(self.structure, _is_container)
        if not any(map(_is_sparse, items)):
            return packed
        pairs = zip(items, nest.taken_apart(packed, _is_container), strict=True)
        completed = [_with_data(x, y.data) if _is_sparse(x) else y for x, y in pairs]
        return nest.packed(self.structure, iter(completed), _is_container)

    def pack_raw(self, results: Sequence[Array | None]) -> Nest:
        """The structure with one result for each leaf, as it is."""
        if self._plain_list:
            return list(results)
        wrapped = iter(results)
        return nest.packed(self.structure, self._packed(wrapped), _is_container)

    def _packed(self, results: Iterator[Array | None]) -> Iterator[Pytree]:
        for count, pytree in self._items:
            if count < 0:
                yield next(results)
            else:
                tree, is_array, holders = pytree
                parts = [next(results) if yes else None for yes in is_array]
                # a variable in two places of Flax's module is one in the result, too: its optimizers ask for that
                first = dict(zip(reversed(holders), reversed(parts), strict=True))
                yield jax.tree.unflatten(tree, [first[holder] for holder in holders])


def _is_sparse(value: object) -> bool:
    """Whether `value` is a sparse matrix of JAX's. Nothing is before that module is imported."""
    return isinstance(value, getattr(sys.modules.get("jax.experimental.sparse"), "JAXSparse", ()))


def _with_data(matrix: Pytree, data: Array | None) -> Pytree:
    """The sparse `matrix` with other numbers, or a batch of such; None where there are none."""
    if data is None:
        return None
    (first, *indices), tree = jax.tree.flatten(matrix)
    make: Callable[[Array], Pytree] = lambda numbers: jax.tree.unflatten(tree, [numbers, *indices])  # noqa: E731
    for _ in range(data.ndim - first.ndim):
        make = jax.vmap(make)
    return make(data)


def cure_of(value: object, argument: str) -> str:
    """What to pass in place of `value`, as far as it is known what is meant."""
    if hasattr(type(value), "trainable_variables") and argument != "target":
        return " Pass its variables: those in its .trainable_variables."
    if callable(value):
        return " Pass what it returns, computed in the tape's block, not the function."
    if isinstance(value, (np.ndarray, np.generic)):
        copies = "NumPy arrays, as .numpy() and get_weights() give, are copies"
        return f" {copies}: pass the tensor or variable itself; let a module hold jax.Arrays (jnp.asarray)."
    if isinstance(value, (list, tuple)):
        return " Ask for each, on a persistent tape, or for one tensor made of them in the block: tf.stack([...])."
    if isinstance(value, (int, float, complex)):
        return f" Make it a tensor, x = tf.constant({value}), and compute with x in the tape's block."
    return ""


def refusal(value: object, argument: str) -> Exception:
    """The error for a `value` in an argument that is neither a tensor, an array nor a variable."""
    cure = cure_of(value, argument)
    if argument != "tensor":
        return TypeError(
            f"Argument `{argument}` should be a Tensor, jax.Array or Variable, or a structure of them, but holds {value!r} of "
            f"type {type(value).__name__!r}.{cure}"
        )
    if isinstance(value, (int, float, complex, np.ndarray, np.generic)):
        cure = " Make it a tensor, x = tf.constant(...), watch x, and compute with it in the block; in a module, a jax.Array."
    return ValueError(
        f"Passed in object {value!r} of type {type(value).__name__!r}, not a Tensor, jax.Array, Variable or a structure "
        f"of them.{cure}"
    )


def _cotangent(end: Array, cotangent: TensorLike | None, position: int) -> Array:
    if cotangent is None:
        raise ValueError(f"output_gradients[{position}] is None; a tensor of shape {end.shape} is needed.")
    array = raw(cotangent)
    # for a target of integers it is used only if that is a source, too
    if has_tangent(end) and (array.shape != end.shape or array.dtype != end.dtype):
        raise InvalidArgumentError(
            f"output_gradients[{position}] has shape {tuple(array.shape)} and dtype {array.dtype}; its target has shape "
            f"{tuple(end.shape)} and dtype {end.dtype}."
        )
    return array


def _is_cotangent(value: Any, ends: Sequence[Leaf]) -> bool:
    """Whether `value` alone is the output gradient of a single target."""
    return len(ends) == 1 and (leaf := leaf_of(value)) is not None and leaf.array.shape == ends[0].array.shape


def _tangent(primal: Array, tangent: TensorLike, position: int) -> Array:
    array = raw(tangent, dtype_hint=primal.dtype)
    if array.shape != primal.shape or array.dtype != primal.dtype:
        raise ValueError(
            f"tangents[{position}] has shape {tuple(array.shape)} and dtype {array.dtype}; its primal has shape "
            f"{tuple(primal.shape)} and dtype {primal.dtype}."
        )
    return array


def _parts_of_module(x: Pytree) -> list[Any]:
    """The arrays of a module that is given for a module."""
    return [x] if x is None or nest.is_nested(x) else jax.tree.leaves(x, is_leaf=is_variable)


class TensorFlowConventions(structures.Conventions):
    """TensorFlow's tensors, variables and containers, other libraries' variables, and pytrees."""

    def recording_starts(self) -> None:
        reading.install_adapters()

    def take_apart(self, structure: Nest, argument: str) -> UserStructure:
        return UserStructure(structure, argument)

    def one(self, value: object, argument: str) -> Leaf:
        if (leaf := leaf_of(value)) is not None:
            return leaf
        cure = cure_of(value, argument)
        raise TypeError(f"Argument `{argument}` should be one Tensor, jax.Array or Variable, but is {value!r}.{cure}")

    def cotangents(self, targets: structures.Structure, cotangents: Nest) -> list[Array]:
        """As in `take_apart`, but that a list is a tensor where a tensor is meant, and a list of one stands for that one."""
        ends = targets.leaves
        parts = [cotangents] if leaf_of(targets.structure) is not None else nest.flatten(cotangents)
        if isinstance(cotangents, (list, tuple)) and len(cotangents) == 1 and leaf_of(cotangents[0]) is not None:
            parts = list(cotangents)
        elif isinstance(cotangents, (list, tuple)) and any(_is_cotangent(x, ends) for x in cotangents):
            parts = list(cotangents)  # one for each of targets that are not there
        parts = list(itertools.chain.from_iterable(map(_parts_of_module, parts)))
        if len(parts) != len(ends):
            raise ValueError(f"output_gradients: got {len(parts)} for {len(ends)} target(s); one is needed for each.")
        return [_cotangent(leaf.array, x, i) for i, (leaf, x) in enumerate(zip(ends, parts, strict=True))]

    def tangents(self, primals: UserStructure, tangents: Nest) -> list[Array]:  # type: ignore[override]  # `take_apart` made it
        nest.assert_same_structure(primals.structure, tangents)
        arrays = [leaf.array for leaf in primals.leaves]
        checked = [_tangent(x, y, i) for i, (x, y) in enumerate(zip(arrays, primals.parts_of(tangents), strict=True))]
        seen: set[int] = set()
        for i, x in enumerate(arrays):
            if id(x) in seen:
                raise ValueError(
                    f"primals[{i}] was specified as a primal before: give it once, with the sum of its tangents."
                )
            seen.add(id(x))
        return checked

    def read(self, holder: object) -> None:
        if isinstance(holder, Variable):
            reading.access(holder)

    def no_attribute(self, kind: str, owner: object, name: str) -> NoReturn:
        no_attribute(kind, owner, name)


structures.use(TensorFlowConventions())
