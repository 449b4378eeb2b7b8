"""Which operation made a value, and which use it: the def-use graph of operations in the order in which they ran."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, MutableSet, Sequence
from typing import Any, TypeVar

import jax

from ...jaxprs.types import Value


class ValueSet(MutableSet[Value]):
    """Values, each known by its identity: arrays that are equal need not be the same value. They stay in the order in which they
    were added, and alive, so that no other value gets the `id` of one.

    >>> import jax.numpy as jnp
    >>> x, y = jnp.ones(2), jnp.ones(2)
    >>> values = ValueSet([x])
    >>> x in values, y in values
    (True, False)
    """

    def __init__(self, values: Iterable[Value] = ()):
        self._by_id = {id(x): x for x in values}

    def __contains__(self, x: object) -> bool:
        return id(x) in self._by_id

    def __iter__(self) -> Iterator[Value]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def add(self, x: Value) -> None:
        self._by_id[id(x)] = x

    def discard(self, x: Value) -> None:
        self._by_id.pop(id(x), None)

    def update(self, values: Iterable[Value]) -> None:
        self._by_id |= {id(x): x for x in values}


T = TypeVar("T")


class ValueMap(MutableMapping[Value, T]):
    """Something for each of some values, which are known as those of a `ValueSet` are.

    >>> import jax.numpy as jnp
    >>> x, y = jnp.ones(2), jnp.ones(2)
    >>> names = ValueMap([(x, "x")])
    >>> names[x], names.get(y)
    ('x', None)
    """

    def __init__(self, pairs: Iterable[tuple[Value, T]] = ()):
        self._by_id = {id(x): (x, of_x) for x, of_x in pairs}

    def __getitem__(self, x: Value) -> T:
        return self._by_id[id(x)][1]

    def __setitem__(self, x: Value, of_x: T) -> None:
        self._by_id[id(x)] = x, of_x

    def __delitem__(self, x: Value) -> None:
        del self._by_id[id(x)]

    def __iter__(self) -> Iterator[Value]:
        return (x for x, _ in self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)


class Graph:
    """The definition and the uses of each value of `operations`, which are known by their positions.

    Args:
      operations: in the order in which they ran.
      origins: for what a variable holds, the values from which an assignment computed that.
    """

    def __init__(self, operations: Sequence[Any], origins: Mapping[Value, Sequence[Value]] | None = None):
        self.operations, self.origins = operations, origins or ValueMap()
        self._made = ValueMap((x, position) for position, each in enumerate(operations) for x in each.outputs)
        self._uses = ValueMap[list[int]]()
        for position, each in enumerate(operations):
            for x in ValueSet(each.inputs):
                self._uses.setdefault(x, []).append(position)

    def position(self, x: Value) -> int | None:
        """Where `x` was made; None for what no operation made."""
        return self._made.get(x)

    def made_by(self, x: Value) -> Any | None:
        """The operation that made `x`; None for what came from outside."""
        position = self.position(x)
        return None if position is None else self.operations[position]

    def uses(self, x: Value) -> Sequence[int]:
        """The positions of the operations that use `x`, in order."""
        return self._uses.get(x, ())

    def before(self, targets: Iterable[Value], known: Callable[[Value], object] = lambda x: False) -> list[int]:
        """The positions of the operations from which `targets` were computed, gradient or not, in order; not those of what is
        `known`."""
        seen, positions, waiting = ValueSet(), set[int](), list(targets)
        while waiting:
            x = waiting.pop()
            position = self.position(x)
            if x not in seen:
                seen.add(x)
                waiting += self.origins.get(x, ())
                if position is not None and position not in positions and not known(x):
                    positions.add(position)
                    waiting += [y for y in self.operations[position].inputs if isinstance(y, jax.Array)]
        return sorted(positions)

    def read(self, targets: Iterable[Value], *known: Any) -> ValueSet:
        """What the operations read that are `before` targets."""
        return ValueSet(x for position in self.before(targets, *known) for x in self.operations[position].inputs)

    def leaves(self, targets: Sequence[Value]) -> list[tuple[Value, int]]:
        """What `targets` were computed from that no operation made, each with the position of its first use on the way there; of
        a target that is one and has no other use the number of operations."""
        uses = {id(x): (x, len(self.operations)) for x in targets}
        for position in reversed(self.before(targets)):
            uses |= {id(x): (x, position) for x in self.operations[position].inputs if isinstance(x, jax.Array)}
        return [(x, position) for x, position in uses.values() if self.position(x) is None]

    def after(self, sources: Iterable[Value], without: ValueSet | None = None) -> ValueSet:
        """`sources` and all that was computed from them, gradient or not; not through what is in `without`."""
        waiting = list(sources)
        reached = ValueSet(waiting)
        for x in waiting:  # which grows
            made = ValueSet(y for position in self.uses(x) for y in self.operations[position].outputs)
            new = made - reached - (without or ValueSet())
            reached |= new
            waiting += new
        return reached
