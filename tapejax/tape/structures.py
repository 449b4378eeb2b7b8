"""A user's structures of values, taken apart into arrays: the interface, and a default for pytrees of ``jax.Array``.

`tapejax.tf.values` registers `Conventions` for tensors and variables, which check what a user has given.
"""

from __future__ import annotations

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
    """A pytree of arrays taken apart."""

    def __init__(self, structure: Pytree):
        self.structure = structure
        arrays, self._tree = jax.tree.flatten(structure)
        self.leaves = [Leaf(x, x, lambda x: x) for x in arrays]

    def pack(self, results: Sequence[Value | None]) -> Pytree:
        """The structure with a result in the place of each leaf, as the type of the leaf."""
        pairs = zip(self.leaves, results, strict=True)
        return self.pack_raw([None if x is None else leaf.wrap(x) for leaf, x in pairs])

    def pack_raw(self, results: Sequence[Value | None]) -> Pytree:
        """The structure with a result in the place of each leaf, unchanged."""
        return jax.tree.unflatten(self._tree, results)


class Conventions:
    """What tensors, variables and containers are. An `argument` is named in error messages."""

    def recording_starts(self) -> None:
        """Called before a tape starts."""

    def take_apart(self, structure: Pytree, argument: str) -> Structure:
        """The structure that is given as the `argument`."""
        return Structure(structure)

    def one(self, value: Any, argument: str) -> Leaf:
        """The one tensor that is given as the `argument`."""
        (leaf,) = self.take_apart(value, argument).leaves
        return leaf

    def cotangents(self, targets: Structure, cotangents: Pytree) -> list[Value]:
        """The arrays in `cotangents`: one for each leaf of `targets`, of its shape and dtype."""
        return list(jax.tree.leaves(cotangents))

    def tangents(self, primals: Structure, tangents: Pytree) -> list[Value]:
        """The arrays in `tangents`, which is structured as `primals`: one for each leaf, of its shape and dtype."""
        return list(jax.tree.leaves(tangents))

    def read(self, holder: object) -> None:
        """Notes a read of the variable `holder`."""

    def no_attribute(self, kind: str, owner: object, name: str) -> NoReturn:
        """Raises the AttributeError of `owner`, of the class `kind`, for an attribute that it does not have."""
        raise AttributeError(f"{type(owner).__name__!r} object has no attribute {name!r}", name=name, obj=owner)


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
