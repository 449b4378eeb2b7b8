"""Trees of zeros or ones that the source makes of the leaves of another one, as the moments of an optimizer begin."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...jaxprs.fence import Tracer
from ...jaxprs.types import Value
from ...places import Place, serves
from ...tape.recording import Entry
from ..writing.graph import ValueMap, ValueSet
from . import layout, trees
from .listing import bytecode, expression_at
from .scopes import Key, Statement, new_key

if TYPE_CHECKING:
    from .recorded import Scope, Writer


class Filled(NamedTuple):
    """A `tree`, and a `key` for it, made at a `place` by a `function` of the leaves of a tree that is given, `like`."""

    key: Key
    function: str
    like: str
    tree: Any
    place: Place


class Zeros:
    """The trees of zeros or ones that `writer` writes as such. `places`: the leaves with their paths."""

    def __init__(self, writer: Writer):
        self.writer = writer
        self.trees: dict[Key, Filled] = {}
        self.places = ValueMap[trees.Path]()

    def take(self, entries: Iterable[Entry], shapes: Mapping[str, Any]) -> None:
        """Takes those that are made by one instruction of the source, of the shapes of a tree that is given."""
        by_calls = dict[tuple[Place, ...], list[Entry]]()
        for entry in entries:
            if entry.calls and not any(map(jnp.ndim, entry.inputs)) and not serves(entry.calls[-1][0].co_filename):
                by_calls.setdefault(entry.calls, []).append(entry)
        for calls, own in by_calls.items():
            source = expression_at(*calls[-1])
            found = None if source is None else re.search(r"\b(zeros|ones)_like\b", ast.unparse(source))
            if found is not None and (filled := _filled(own, found[0], calls[-1], shapes)) is not None:
                self.trees[filled.key] = filled
                self.places.update((x, (filled.key, *path)) for path, x in trees.leaves_of(filled.tree))

    def has(self, values: Iterable[Value]) -> bool:
        """Whether one of some values is in such a tree."""
        return any(x in self.places for x in values)

    def argument(self, x: Value, scope: Scope) -> Key | None:
        """A key for a leaf, in the scope in which its tree was made."""
        if x not in self.places or scope.calls != tuple([each.call for each in self.writer.calls_of(x)]):
            return None
        root, *path = self.places[x]
        scope.zeros.add(root)
        self.writer.names.meanings[key := new_key()] = trees.item(root, tuple(path))
        return key

    def statements(self, scope: Scope) -> list[Statement]:
        """Those that make the trees of a scope, the last one first."""
        keys = sorted(scope.zeros, key=lambda key: -self.trees[key].place[1])
        return [self._statement(key, scope) for key in keys]

    def _statement(self, key: Key, scope: Scope) -> Statement:
        _, function, like, _, place = self.trees[key]
        part = scope.part((like,), jax.tree.leaves(self.writer.shapes[like]))
        self.writer.names.pending[part] = ast.Name(like, ast.Load())
        if name := bytecode(place[0]).stores.get(place[1]):
            self.writer.names.hints[key] = name
        return Statement([key], layout.parsed(f"jax.tree.map(jnp.{function}, {part})"), place=place)


def _filled(entries: Sequence[Entry], function: str, place: Place, shapes: Mapping[str, Any]) -> Filled | None:
    """The tree that entries make, if they do."""
    read = ValueSet(x for entry in entries for x in entry.inputs)
    made = [x for entry in entries for x in entry.outputs if x not in read]
    if any(isinstance(x, Tracer) or not (np.asarray(x) == (function == "ones_like")).all() for x in made):
        return None
    for name, tree in shapes.items():
        if [*map(jax.typeof, made)] == [jax.typeof(x) for _, x in trees.leaves_of(tree)]:
            return Filled(new_key(), function, name, jax.tree.unflatten(trees.kind_of(tree), made), place)
    return None
