"""A user's structures of values, taken apart into arrays: the interface, and a default for pytrees of ``jax.Array``.

`tapejax.tf.values` registers `Conventions` for tensors and variables, which check what a user has given.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import jax
import jax.numpy as jnp

from ..jaxprs.types import Pytree, Value
from .operation import apply
from .query import Source
from .recording import Recording


class Leaf(NamedTuple):
    """One value of a structure: the user's object, its present array, and what makes a result of the same type.

    `holder`: the variable, if it is one. `watched`: whether tapes watch it from the beginning.
    """

    value: Any
    array: Value
    wrap: Callable[[Value], Any]
    holder: Any = None
    watched: bool = False

    def source(self, recording: Recording) -> Source:
        """The leaf as a source of a `Query`."""
        return Source(self.array, self.holder, recording.watch_accessed and self.watched)


class Structure:
    """Lists, tuples and dicts of arrays and of other pytrees, taken apart. What is no array in such a pytree has no gradient.

    Raises:
      TypeError: an item of them is neither an array nor a pytree.
    """

    def __init__(self, structure: Pytree, argument: str):
        self.structure = structure
        self.leaves: list[Leaf] = []
        parts, self._tree = jax.tree.flatten(structure)
        self._is_array = [isinstance(x, jax.Array) for x in parts]
        self.leaves = [Leaf(x, x, _same) for x in itertools.compress(parts, self._is_array)]
        for item in jax.tree.leaves(structure, is_leaf=lambda x: type(x) not in (list, tuple, dict)):
            if not isinstance(item, jax.Array) and (item is None or jax.tree_util.all_leaves([item])):
                raise TypeError(
                    f"Argument `{argument}` should be a jax.Array, or a structure of them, but holds {item!r} of type "
                    f"{type(item).__name__!r}. Tensors and variables are known when all of tapejax is loaded: use a name of "
                    "`tapejax`, such as tapejax.GradientTape."
                )

    def pack(self, results: Sequence[Value | None]) -> Pytree:
        """The structure with a result in the place of each leaf, as the type of the leaf."""
        pairs = zip(self.leaves, results, strict=True)
        return self.pack_raw([None if x is None else leaf.wrap(x) for leaf, x in pairs])

    def pack_raw(self, results: Sequence[Value | None]) -> Pytree:
        """The structure with a result in the place of each leaf, unchanged."""
        left = iter(results)
        return jax.tree.unflatten(self._tree, [next(left) if is_array else None for is_array in self._is_array])


def _same(x: Value) -> Value:
    return x


def _alike(argument: str, structure: Structure, given: Pytree) -> list[Value]:
    """The arrays in what is given as the `argument`: one for each leaf of `structure`, of its shape and dtype."""
    arrays = [x if isinstance(x, jax.Array) else jnp.asarray(x) for x in jax.tree.leaves(given)]
    types, expected = (
        [(x.shape, str(x.dtype)) for x in xs] for xs in (arrays, [leaf.array for leaf in structure.leaves])
    )
    if types != expected:
        raise ValueError(f"{argument} has values of the shapes and dtypes {types}; {expected} are needed.")
    return arrays


class Conventions:
    """What tensors, variables and containers are. An `argument` is named in error messages."""

    def recording_starts(self) -> None:
        """Called before a tape starts."""

    def take_apart(self, structure: Pytree, argument: str) -> Structure:
        """The structure that is given as the `argument`."""
        return Structure(structure, argument)

    def one(self, value: Any, argument: str) -> Leaf:
        """The one tensor that is given as the `argument`."""
        if not isinstance(value, jax.Array):
            raise TypeError(f"Argument `{argument}` should be one jax.Array, but is {value!r}.")
        return Leaf(value, value, _same)

    def cotangents(self, targets: Structure, cotangents: Pytree) -> list[Value]:
        """The arrays in `cotangents`: one for each leaf of `targets`, of its shape and dtype."""
        return _alike("output_gradients", targets, cotangents)

    def tangents(self, primals: Structure, tangents: Pytree) -> list[Value]:
        """The arrays in `tangents`, which is structured as `primals`: one for each leaf, of its shape and dtype."""
        return _alike("tangents", primals, tangents)

    def read(self, holder: object) -> None:
        """Notes a read of the variable `holder`."""

    def no_attribute(self, kind: str, owner: object, name: str) -> NoReturn:
        """Raises the AttributeError of `owner`, of the class `kind`, for an attribute that it does not have."""
        more = " What shows a tape comes with all of tapejax: use a name of `tapejax`, such as tapejax.GradientTape."
        raise AttributeError(f"{type(owner).__name__!r} object has no attribute {name!r}.{more}", name=name, obj=owner)


current = Conventions()


def use(conventions: Conventions) -> None:
    """Makes `conventions` the current ones."""
    global current
    current = conventions


def targets_of(target: Pytree) -> Structure:
    return current.take_apart(target, "target")


def sources_of(sources: Pytree) -> Structure:
    return current.take_apart(sources, "sources")


def conjugate(x: Value | None) -> Value:
    """A cotangent in JAX's convention from TensorFlow's, or the reverse: one is the complex conjugate of the other."""
    return apply(jnp.conj, x) if x is not None and x.dtype.kind == "c" else x
