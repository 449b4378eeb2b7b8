"""Trees: which values are leaves of one that was computed, and what is done alike to every leaf, written once."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import jax

from ...jaxprs.types import Value
from ...tape.derivative import DerivativeOp
from ...tape.recording import Entry
from ...tf.values.structures import leaf_of
from ...tf.values.types import Nest
from . import layout
from .scopes import Function, Key, Names, keys_of, new_key

Path: TypeAlias = tuple[Any, ...]  # of a value in a tree: the name of the tree, then keys
FEW = 3  # so many values of a flat tree are handed over one by one, and summed up term by term
Shapes: TypeAlias = Mapping[str, Any]  # dicts, lists and tuples like a tree, by its name or key


class Computed:
    """The trees that are computed of others, leaf by leaf, as ``jax.tree.map`` and `gradient` do it.

    ``paths`` has the path of each leaf, by id; ``shapes`` the trees by their keys, with the leaves; ``of`` what they came of;
    ``names`` what the user's code calls them.

    Args:
      paths: those of the leaves of trees that are given, by id.
      shapes: these trees, by their names.
      named: the paths of values, by id, as the user's code has them.
    """

    def __init__(self, entries: Iterable[Entry], paths: Mapping[int, Path], shapes: Shapes, named: Mapping[int, Path]):
        self.names: dict[Key, str] = {}
        self.of: dict[Key, set[str]] = {}
        places = dict(paths)
        leaves: dict[str, dict[Path, Value]] = {}
        roots: dict[
            Hashable, list[Key]
        ] = {}  # by what is done: those that are being made, one for each time that it is done to a leaf
        last: dict[Hashable, tuple[Path, int]] = {}
        for entry in entries:
            for x, about, of, way in _found(entry, places):
                before, times = last.get(about, (None, 0))
                times = times + 1 if way == before else 0
                if not times and way in leaves.get(roots.get(about, [""])[0], ()):
                    roots[about] = []  # it is done once more, to another tree
                last[about] = way, times
                known = roots.setdefault(about, [])
                known += [new_key()] * (times == len(known))
                root = known[times]
                places[id(x)] = (root, *way)
                if named.get(id(x), ())[1:] == way:
                    self.names[root] = named[id(x)][0]
                leaves.setdefault(root, {})[way] = x
                self.of.setdefault(root, set()).update(of)
        self.shapes = dict[str, Any](shapes)
        for root, mine in leaves.items():
            like, *others = (self.shapes.get(of) for of in self.of[root])
            if like is not None and all(kind_of(other) == kind_of(like) for other in others) and len(mine) > 1:
                if (tree := filled(like, mine)) is not None:
                    self.shapes[root] = tree
        self.paths = {i: path for i, path in places.items() if path[0] in self.shapes}


def _found(entry: Entry, places: Mapping[int, Path]) -> Iterator[tuple[Value, Hashable, set[str], Path]]:
    """The results that come of leaves at one path: with what is done, the trees of these leaves, and the path."""
    op = entry.op
    if isinstance(op, DerivativeOp) and op.kind == "gradient":
        values = op.values(entry.inputs)
        sources = [values[slot] for slot in op.program.sources if slot is not None]
        if len(sources) == len(entry.outputs):
            for x, source in zip(entry.outputs, sources, strict=True):
                if id(source) in places:
                    root, *path = places[id(source)]
                    yield x, ("gradient", root), {root}, tuple(path)
        return
    found = {places[id(x)] for x in entry.inputs if id(x) in places}
    if len({path[1:] for path in found}) == 1:
        roots = {path[0] for path in found}
        for j, x in enumerate(entry.outputs):
            yield x, (op.name, j, frozenset(roots)), roots, min(found)[1:]


def filled(structure: Nest, leaves: Mapping[Path, Value]) -> Any:
    """A structure with these leaves at their paths; None if it has others."""
    pairs = leaves_of(structure)
    if {path for path, _ in pairs} != leaves.keys():
        return None
    return jax.tree.unflatten(kind_of(structure), [leaves[path] for path, _ in pairs])


def kind_of(tree: Any) -> Any:
    """Which dicts, lists and tuples it is of."""
    return jax.tree.structure(tree, is_leaf=_is_leaf)


def _is_leaf(x: Any) -> bool:
    return leaf_of(x) is not None


def leaves_of(tree: Any) -> list[tuple[Path, Any]]:
    """The leaves with their paths."""
    pairs, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=_is_leaf)
    return [(tuple(getattr(key, "key", getattr(key, "idx", None)) for key in path), x) for path, x in pairs]


def _parsed(node: ast.expr) -> Any:
    """Dicts, lists and tuples of expressions, as such."""
    match node:
        case ast.Dict(keys=keys, values=values) if all(isinstance(key, ast.Constant) for key in keys):
            return {key.value: _parsed(x) for key, x in zip(keys, values, strict=True)}  # type: ignore[union-attr]
        case ast.List(elts=elts):
            return list(map(_parsed, elts))
        case ast.Tuple(elts=elts):
            return tuple(map(_parsed, elts))
    return node


def written(tree: Any) -> ast.expr:
    """The expression for dicts, lists and tuples of expressions."""
    match tree:
        case dict():
            return ast.Dict(list(map(ast.Constant, tree)), list(map(written, tree.values())))
        case list():
            return ast.List(list(map(written, tree)), ast.Load())
        case tuple():
            return ast.Tuple(list(map(written, tree)), ast.Load())
    leaf: ast.expr = tree
    return leaf


def item(root: str, path: Path) -> ast.expr:
    """``root["a"]["b"]``."""
    found: ast.expr = ast.Name(root, ast.Load())
    for part in path:
        found = ast.Subscript(found, ast.Constant(part), ast.Load())
    return found


def map_leaves(function: Function, names: Names, shapes: Shapes) -> None:
    """Replaces trees whose leaves are computed alike from those of others, and lists of all leaves in sums."""
    mapping = _Mapping(function, names, shapes)
    for s in function.statements:
        if s.function is not None:
            map_leaves(s.function, names, shapes)
        s.expression = mapping.mapped(s.expression, s.outs)
    function.result = mapping.mapped(function.result)
    while True:
        used = names.roots(sum((s.keys() for s in function.statements), keys_of(function.result)))
        kept = [s for s in function.statements if s.effects or any(out in used for out in s.outs)]
        if len(kept) == len(function.statements):
            return
        function.statements = kept


class _Mapping(ast.NodeTransformer):
    def __init__(self, function: Function, names: Names, shapes: Shapes):
        self.names, self.shapes = names, shapes
        self.made = {s.outs[0]: s.expression for s in function.statements if len(s.outs) == 1 and not s.effects}
        self.uses = dict(sum((s.keys() for s in function.statements), keys_of(function.result)))
        self.parts: dict[Key, ast.expr] = {}  # what is in trees by now

    def mapped(self, expression: ast.expr, outs: Sequence[Key | None] = ()) -> ast.expr:
        """An expression with the trees in it written shorter. `outs`: what it makes."""
        kind = kind_of(self.shapes.get(outs[0] or "") if len(outs) == 1 else None)
        leaves = leaves_of(tree) if kind_of(tree := _parsed(expression)) == kind else []
        parts = {x.id: item(outs[0] or "", path) for path, x in leaves if isinstance(x, ast.Name)}
        self.uses |= dict.fromkeys(parts, 1)
        new: ast.expr = self.visit(layout.replaced(expression, {}))  # `made` stays as it is
        self.parts |= parts
        return new

    def _place(self, key: Key) -> tuple[Key, Path] | None:
        """The tree that has `key`, and its path there."""
        return layout.place_of(self.parts.get(key, self.names.meanings.get(key)))

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.parts.get(node.id, node)

    def _whole(self, expression: ast.expr) -> ast.expr:
        """An expression with what is used once written where it is used."""
        inner = {
            key: self._whole(found)
            for key in keys_of(expression)
            if self.uses.get(key) == 1 and key not in self.parts and (found := self.made.get(key)) is not None
        }
        return layout.replaced(expression, inner)

    def visit_Dict(self, node: ast.Dict | ast.List | ast.Tuple) -> ast.expr:
        new = self._mapped(node)
        return self.generic_visit(node) if new is node else new  # type: ignore[return-value]

    visit_List = visit_Tuple = visit_Dict

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Changes a list that is summed up, whatever its order: ``sum(map(f, map(g, [...])))``."""
        inner: Any = node if getattr(node.func, "id", "") == "sum" and node.args else None
        while inner is not None and getattr(getattr(inner.args[-1], "func", None), "id", "") == "map":
            inner = inner.args[-1]
        if inner is not None and inner is not node and isinstance(inner.args[-1], ast.List):
            match self._all_of(inner.args[-1].elts):
                case None, leaves:
                    inner.args[-1:] = leaves
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Changes a sum over all leaves, whatever its order."""
        terms = [x for x in self._terms(node) if not isinstance(x, ast.Constant) or x.value]
        alike = self._all_of(terms) if len(terms) > FEW else None
        if alike is None or alike[0] is None:
            return self.generic_visit(node)  # type: ignore[return-value]
        return ast.Call(layout.parsed("sum"), [ast.Call(layout.parsed("map"), [alike[0], *alike[1]], [])], [])

    def _terms(self, node: ast.expr) -> Iterator[ast.expr]:
        """Those of a sum, also of what is used once."""
        known = self.made.get(node.id) if isinstance(node, ast.Name) and self.uses.get(node.id) == 1 else None
        match node if known is None else known:
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                yield from self._terms(left)
                yield from self._terms(right)
            case _:
                yield node

    def _mapped(self, node: ast.expr) -> ast.expr:
        tree = _parsed(node)
        alike = self._alike(leaves_of(tree))
        if alike is None or any(kind_of(self.shapes.get(root)) != kind_of(tree) for root in alike[1]):
            return node
        trees: list[ast.expr] = [ast.Name(root, ast.Load()) for root in alike[1]]
        return trees[0] if alike[0] is None else ast.Call(layout.parsed("jax.tree.map"), [alike[0], *trees], [])

    def _all_of(self, terms: Sequence[ast.expr]) -> tuple[ast.expr | None, list[ast.expr]] | None:
        """`_alike` of terms in any order, of all leaves of trees; and the code for these leaves."""
        wholes = [self._whole(x) for x in terms]
        places = [next(filter(None, map(self._place, keys_of(x))), ("", ())) for x in wholes]
        alike = self._alike([(path, x) for (_, path), x in zip(places, wholes, strict=True)])
        paths = Counter(path for _, path in places)
        if alike is None or any(Counter(path for path, _ in leaves_of(self.shapes.get(r))) != paths for r in alike[1]):
            return None
        return alike[0], [layout.parsed(f"jax.tree.leaves({root})") for root in alike[1]]

    def _alike(self, parts: Sequence[tuple[Path, ast.expr]]) -> tuple[ast.expr | None, list[Key]] | None:
        """The function that gives each part, of the leaves of trees at its path, None if it is the leaf; and the trees."""
        roots: dict[Key, Key] = {}
        texts = set()
        for path, part in parts:
            whole = self._whole(part)
            places = ((key, self._place(key)) for key in keys_of(whole))
            own = {key: place[0] for key, place in places if place is not None and place[1] == path}
            found = {key: ast.Name(roots.setdefault(root, new_key()), ast.Load()) for key, root in own.items()}
            one = layout.replaced(whole, found)
            texts.add(ast.dump(one))
        if len(parts) < 2 or len(texts) > 1 or not roots or not set(roots.values()) <= keys_of(one).keys():
            return None
        for root, key in roots.items():
            self.names.wishes[key] = (self.names.wish(root) or "x")[0].replace("f", "x")  # f is the function itself
        text = layout.text_of(one)
        order = sorted(roots, key=lambda root: text.index(roots[root]))
        function = Function([roots[root] for root in order], [], one)
        return None if isinstance(one, ast.Name) else function.as_expression(), order
