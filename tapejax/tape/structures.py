"""A user's structures of values, taken apart into arrays: the interface, and a default for pytrees of ``jax.Array``.

`tapejax.tf.values` registers `Conventions` for tensors and variables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from ..jaxprs.dependence import is_inexact
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
    """A pytree of arrays taken apart. Raises ``refuse(value)`` for a value that is not an array."""

    def __init__(self, structure: Pytree, refuse: Callable[[object], Exception]):
        parts, self._tree = jax.tree.flatten(structure)
        self.leaves = [current.leaf(x) or _raise(refuse(x)) for x in parts]

    def parts_of(self, other: Pytree) -> list[Any]:
        """The values of `other`, which has the same structure, in the places of the leaves."""
        tree: Any = self._tree
        return list(tree.flatten_up_to(other))

    def pack(self, results: Sequence[Value | None]) -> Pytree:
        """The structure with a result in the place of each leaf, as the type of the leaf."""
        pairs = zip(self.leaves, results, strict=True)
        return self.pack_raw([None if x is None else leaf.wrap(x) for leaf, x in pairs])

    def pack_raw(self, results: Sequence[Value | None]) -> Pytree:
        """The structure with a result in the place of each leaf, unchanged."""
        return jax.tree.unflatten(self._tree, results)


class Conventions:
    """What tensors, variables and containers are."""

    def recording_starts(self) -> None:
        """Called before a tape starts."""

    def take_apart(self, structure: Pytree, refuse: Callable[[object], Exception]) -> Structure:
        return Structure(structure, refuse)

    def require_same(self, one: Pytree, other: Pytree) -> None:
        """Raises an error where the two are structured differently."""
        jax.tree.map(lambda *_: None, one, other)

    def leaf(self, value: object) -> Leaf | None:
        """`value` as a leaf, or None if it is not one."""
        return Leaf(value, value, lambda x: x) if isinstance(value, jax.Array) else None

    def parts_like(self, target: Pytree, given: Pytree) -> list[Any]:
        """The values in `given`, of any type: one for each leaf of `target`, if both have the same structure."""
        return [given] if self.leaf(target) else list(jax.tree.leaves(given, is_leaf=lambda x: x is None))

    def array(self, value: Any, dtype_hint: Any = None) -> Value:
        """`value` as an array, of dtype `dtype_hint` if it has none of its own."""
        return jnp.asarray(value)

    def read(self, holder: object) -> None:
        """Notes a read of the variable `holder`."""

    def cure(self, value: object, argument: str) -> str:
        """For an error message: what to pass as the `argument` in place of `value`, or an empty string."""
        return ""

    def no_attribute(self, kind: str, owner: object, name: str) -> NoReturn:
        """Raises the AttributeError of `owner`, of the class `kind`, for an attribute that it does not have."""
        raise AttributeError(f"{type(owner).__name__!r} object has no attribute {name!r}", name=name, obj=owner)

    def wrong_shape(self, message: str) -> Exception:
        """The error for a tensor of the wrong shape or dtype."""
        return ValueError(message)


current = Conventions()


def use(conventions: Conventions) -> None:
    """Makes `conventions` the current ones."""
    global current
    current = conventions


def targets_of(target: Pytree, argument: str = "target") -> Structure:
    """The `argument` taken apart.

    Raises:
      TypeError: it holds something that is neither a tensor, an array nor a variable.
    """

    def refuse(value: object) -> Exception:
        return TypeError(
            f"Argument `{argument}` should be a Tensor, jax.Array or Variable, or a structure of them, but holds {value!r} of "
            f"type {type(value).__name__!r}.{current.cure(value, argument)}"
        )

    return current.take_apart(target, refuse)


def sources_of(sources: Pytree, argument: str = "sources") -> Structure:
    """As `targets_of`, for sources."""
    return targets_of(sources, argument)


def one_target(target: Any) -> Leaf:
    leaf = current.leaf(target)
    if leaf is None:
        cure = current.cure(target, "target")
        raise TypeError(f"Argument `target` should be one Tensor, jax.Array or Variable, but is {target!r}.{cure}")
    return leaf


def conjugate(x: Value | None) -> Value:
    """A cotangent in JAX's convention from TensorFlow's, or the reverse: one is the complex conjugate of the other."""
    return apply(jnp.conj, x) if x is not None and x.dtype.kind == "c" else x


def cotangents_of(targets: Sequence[Leaf], target: Pytree, output_gradients: Pytree) -> list[Value]:
    if output_gradients is None:
        return [apply(jnp.ones_like, leaf.array) if is_inexact(leaf.array) else None for leaf in targets]
    given = current.parts_like(target, output_gradients)
    if len(given) != len(targets):
        raise ValueError(f"output_gradients: got {len(given)} for {len(targets)} target(s); one is needed for each.")
    return [_cotangent(leaf, x, i) for i, (leaf, x) in enumerate(zip(targets, given, strict=True))]


def _cotangent(leaf: Leaf, given: Any | None, position: int) -> Value:
    if given is None:
        raise ValueError(f"output_gradients[{position}] is None; a tensor of shape {leaf.array.shape} is needed.")
    array = current.array(given)
    if not is_inexact(leaf.array):
        return array  # used only if the target is a source, too
    if array.shape != leaf.array.shape or array.dtype != leaf.array.dtype:
        raise current.wrong_shape(
            f"output_gradients[{position}] has shape {tuple(array.shape)} and dtype {array.dtype}; its target has shape "
            f"{tuple(leaf.array.shape)} and dtype {leaf.array.dtype}."
        )
    return array


def cannot_watch(value: object) -> Exception:
    hint = " Make it a tensor, x = tf.constant(...), watch x, and compute with it in the block."
    cure = hint if isinstance(value, (int, float, complex, np.ndarray, np.generic)) else current.cure(value, "sources")
    return ValueError(
        f"Passed in object {value!r} of type {type(value).__name__!r}, not a Tensor, jax.Array, Variable or a structure "
        f"of them.{cure}"
    )


def _raise(error: Exception) -> NoReturn:
    raise error
