"""What is done alike to every leaf of a tree, written once: by `jax.tree.map`, or to `jax.tree.leaves`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Set
from typing import Any, TypeAlias

from . import layout
from .scopes import Function, Key, Names, keys_of, new_key

Path: TypeAlias = tuple[Any, ...]
Leaves: TypeAlias = Mapping[Key, Set[Path]]  # the paths of all leaves, by the key of a tree


def map_leaves(function: Function, names: Names, leaves: Leaves) -> None:
    """Replaces dicts in the result whose leaves are computed alike from those of trees, and lists of all leaves in sums."""
    mapping = _Mapping(function, names, leaves)
    function.result = mapping.visit(function.result)
    for s in function.statements:
        s.expression = mapping.visit(s.expression)
    while True:
        used = names.roots(sum((s.keys() for s in function.statements), keys_of(function.result)))
        kept = [s for s in function.statements if s.effects or any(out in used for out in s.outs)]
        if len(kept) == len(function.statements):
            return
        function.statements = kept


class _Mapping(ast.NodeTransformer):
    def __init__(self, function: Function, names: Names, leaves: Leaves):
        self.names, self.leaves = names, leaves
        self.made = {s.outs[0]: s.expression for s in function.statements if len(s.outs) == 1 and not s.effects}
        self.uses = sum((s.keys() for s in function.statements), keys_of(function.result))

    def _place(self, key: Key) -> tuple[Key, Path] | None:
        """The tree that has `key`, and its path there."""
        return layout.place_of(self.names.meanings.get(key))

    def _is_whole(self, root: Key, paths: Set[Path]) -> bool:
        """Whether these are all leaves of a tree; of one that was computed, of that which it was computed for."""
        return (
            paths == self.leaves[root] if root in self.leaves else any(paths == all_ for all_ in self.leaves.values())
        )

    def _whole(self, expression: ast.expr) -> ast.expr:
        """An expression with what is used once written where it is used."""
        inner = {
            key: self._whole(found)
            for key in keys_of(expression)
            if self.uses[key] == 1 and (found := self.made.get(key)) is not None
        }
        return layout.replaced(expression, inner)

    def visit_Dict(self, node: ast.Dict) -> ast.expr:
        new = self._mapped(node)
        return self.generic_visit(node) if new is node else new  # type: ignore[return-value]

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Changes a list that is summed up, whatever its order: ``sum(map(f, map(g, [...])))``."""
        inner: Any = node if getattr(node.func, "id", "") == "sum" and node.args else None
        while inner is not None and getattr(getattr(inner.args[-1], "func", None), "id", "") == "map":
            inner = inner.args[-1]
        if inner is not None and inner is not node and isinstance(inner.args[-1], ast.List):
            inner.args[-1] = self._all_of(inner.args[-1])
        return self.generic_visit(node)  # type: ignore[return-value]

    def _mapped(self, node: ast.Dict) -> ast.expr:
        parts = dict(_leaves_of(node))
        roots: dict[Key, Key] = {}
        texts = set()
        for path, leaf in parts.items():
            whole = self._whole(leaf)
            places = ((key, self._place(key)) for key in keys_of(whole))
            own = {key: place[0] for key, place in places if place is not None and place[1] == path}
            found = {key: ast.Name(roots.setdefault(root, new_key()), ast.Load()) for key, root in own.items()}
            one = layout.replaced(whole, found)
            texts.add(ast.dump(one))
        if len(parts) < 2 or len(texts) > 1 or not roots or not all(self._is_whole(r, parts.keys()) for r in roots):
            return node
        if not set(roots.values()) <= keys_of(one).keys():
            return node
        for root, key in roots.items():
            self.names.wishes[key] = (self.names.wish(root) or "x")[0]
        args = [ast.arg(key) for key in roots.values()]
        trees: list[ast.expr] = [ast.Name(root, ast.Load()) for root in roots]
        function = ast.Lambda(layout.arguments(args), one)
        return ast.Call(layout.parsed("jax.tree.map"), [function, *trees], [])

    def _all_of(self, node: ast.List) -> ast.expr:
        places = [self._place(x.id) if isinstance(x, ast.Name) else None for x in node.elts]
        roots = {None if place is None else place[0] for place in places}
        if len(roots) != 1 or None in roots or len(places) < 2:
            return node
        (root,) = roots
        assert root is not None
        whole = self._is_whole(root, {place[1] for place in places if place is not None})
        return ast.Call(layout.parsed("jax.tree.leaves"), [ast.Name(root, ast.Load())], []) if whole else node


def _leaves_of(node: ast.expr, path: Path = ()) -> Iterator[tuple[Path, ast.expr]]:
    if not isinstance(node, ast.Dict):
        yield path, node
        return
    for key, value in zip(node.keys, node.values, strict=True):
        yield from _leaves_of(value, (*path, key.value if isinstance(key, ast.Constant) else None))
