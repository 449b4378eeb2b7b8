"""Trees: which values are leaves of one that was computed, and what is done alike to every leaf, written once."""

from __future__ import annotations

import ast
import os.path
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from ...jaxprs.types import Value
from ...tape.recording import Entry
from ...tf.values.structures import leaf_of
from ...tf.values.types import Nest
from ..writing.graph import ValueMap
from . import layout, traces
from .listing import expression_at
from .scopes import Definition, Key, KeyNames, Statement, keys_of, new_key

Path: TypeAlias = tuple[Any, ...]  # of a value in a tree: the name of the tree, then keys
FEW = 3  # so many values of a flat tree are summed up term by term
DEEPEST = 24  # expressions in each other, of what is done to a leaf
Shapes: TypeAlias = Mapping[str, Any]  # dicts, lists and tuples like a tree, by its name or key


class Computed:
    """The trees that are computed of others, leaf by leaf, as ``jax.tree.map`` and `gradient` do it.

    ``paths`` has the path of each leaf; ``shapes`` the trees by their keys, with the leaves; ``of`` what they came of;
    ``names`` what the user's code calls them.

    Args:
      paths: those of the leaves of trees that are given.
      shapes: these trees, by their names.
      named: the paths of values, as the user's code has them.
      apart: the paths of leaves of trees that neither are given nor come of these; `shapes` has them by their keys.
    """

    def __init__(
        self,
        entries: Iterable[Entry],
        paths: ValueMap[Path],
        shapes: Shapes,
        named: ValueMap[Path],
        apart: ValueMap[Path],
    ):
        self.names: dict[Key, str] = {}
        self.of: dict[Key, set[str]] = {}
        places = ValueMap([*paths.items(), *apart.items()])
        leaves: dict[str, dict[Path, Value]] = {}
        # by what is done those that are being made, one for each time that it is done to a leaf
        roots: dict[Hashable, list[Key]] = {}
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
                places[x] = (root, *way)
                if named.get(x, ())[1:] == way:
                    self.names[root] = named[x][0]
                leaves.setdefault(root, {})[way] = x
                self.of.setdefault(root, set()).update(of)
        self.shapes = dict[str, Any](shapes)
        for root, mine in leaves.items():
            like, *others = (self.shapes.get(of) for of in self.of[root])
            if like is not None and all(kind_of(other) == kind_of(like) for other in others) and len(mine) > 1:
                if (tree := filled(like, mine)) is not None:
                    self.shapes[root] = tree
        self.paths = ValueMap((x, path) for x, path in places.items() if path[0] in self.shapes and x not in apart)

    def given(self, tree: str) -> str:
        """The tree that is given, of which one is computed."""
        while tree in self.of:
            tree = min(self.of[tree])
        return tree


def _found(entry: Entry, places: ValueMap[Path]) -> Iterator[tuple[Value, Hashable, set[str], Path]]:
    """The results that come of leaves at one path: with what is done, the trees of these leaves, and the path."""
    op: Any = entry.op
    if (like := _like(entry)) is not None:
        for x, y in zip(entry.outputs, like, strict=True) if len(like) == len(entry.outputs) else ():
            if y in places:
                root, *path = places[y]
                yield x, (op.kind, root), {root}, tuple(path)
        return
    known = ValueMap((x, places[x]) for x in entry.inputs if x in places)
    together = len(entry.outputs) > 1 and len({path[1:] for path in known.values()}) > 1  # each may be of another leaf
    linked = traces.links(entry) if together else [range(len(entry.inputs))] * len(entry.outputs)
    for j, (x, inputs) in enumerate(zip(entry.outputs, linked, strict=True)):
        paths = {known[entry.inputs[i]] for i in inputs if entry.inputs[i] in known}
        # a bias that is added to a batch is no leaf of a tree any more
        if len({path[1:] for path in paths}) == 1 and jnp.size(x) <= max(map(jnp.size, known)):
            roots = {path[0] for path in paths}
            yield x, (op.name, together or j, frozenset(roots)), roots, min(paths)[1:]


def _like(entry: Entry) -> list[Value] | None:
    """Of the results of a derivative what each has its path of, a source or a target; None of another operation."""
    op: Any = entry.op
    match getattr(op, "kind", None):
        case "gradient" | "jvp":
            values, program = op.values(entry.inputs), op.program
            slots = program.sources if op.kind == "gradient" else program.targets
            return [values[slot] for slot in slots if slot is not None]
        case "pull" | "push":
            return [op.origin, *op.sources[1:]] if op.kind == "pull" else op.targets
    return None


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


def leaves_of(tree: Any, is_leaf: Callable[[Any], bool] = lambda x: False) -> list[tuple[Path, Any]]:
    """The leaves with their paths."""
    pairs, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda x: _is_leaf(x) or is_leaf(x))
    return [(tuple(map(_key_of, path)), x) for path, x in pairs]


def _key_of(entry: Any) -> Any:
    """A key of JAX's as it is in a `Path`; None where no code leads there."""
    match entry:
        case jax.tree_util.GetAttrKey(name=name):
            return layout.Field(name)
        case jax.tree_util.SequenceKey(idx=i):
            return i
    return entry.key if isinstance(entry, jax.tree_util.DictKey) else None


def part_at(tree: Any, path: Sequence[Any]) -> Any:
    """What is in a tree at a path."""
    for key in path:
        tree = getattr(tree, key) if isinstance(key, layout.Field) else tree[key]
    return tree


def nested(pairs: Iterable[tuple[Path, Any]]) -> dict[Any, Any]:
    """The tree of dicts that has each value at its path."""
    found: dict[Any, Any] = {}
    for path, x in pairs:
        inner = found
        for key in path[:-1]:
            inner = inner.setdefault(key, {})
        inner[path[-1]] = x
    return found


def called(leaves: Iterable[tuple[str | None, Path]]) -> str:
    """What the source calls a tree, by what it calls leaves: ``p_w`` is ``p["w"]``. Empty if it does not say."""
    ends = [(name or "", "".join(f"_{key}" for key in path)) for name, path in leaves]
    names = {name.removesuffix(end) for name, end in ends if len(ends) > 1 or name.endswith(end)}
    return names.pop() if len(names) == 1 else ""


def common_path(paths: Iterable[Path]) -> Path:
    """The path of the smallest tree that has all of them."""
    return tuple(os.path.commonprefix([path[:-1] for path in paths]))


# How a tree is written that is no dict, list or tuple: like another one.
LIKE = "jax.tree.unflatten(jax.tree.structure({}), jax.tree.leaves({}))"


def written(tree: Any, like: Key | None = None) -> ast.expr:
    """The expression for a tree of expressions. `like`: the key of one of the same kind, where it has other nodes than dicts,
    lists and tuples."""
    if like is not None:
        found: Any = layout.parsed(LIKE.format(like, 0))
        found.args[1].args = [ast.List(jax.tree.leaves(tree), ast.Load())]
        return found
    match tree:
        case dict():
            return ast.Dict(list(map(ast.Constant, tree)), list(map(written, tree.values())))
        case list():
            return ast.List(list(map(written, tree)), ast.Load())
        case tuple():
            return ast.Tuple(list(map(written, tree)), ast.Load())
    leaf: ast.expr = tree
    return leaf


def is_written_out(tree: Any) -> bool:
    """Whether a tree is of dicts, lists and tuples."""
    parts: Any = tree.values() if type(tree) is dict else tree if type(tree) in (list, tuple) else ()
    leaf = _is_leaf(tree) or isinstance(tree, ast.expr)
    return leaf or type(tree) in (dict, list, tuple) and all(map(is_written_out, parts))


def _parsed(node: ast.expr, shapes: Shapes) -> Any:
    """The tree of expressions that an expression is."""
    match node:
        case ast.Dict(keys=keys, values=values) if all(isinstance(key, ast.Constant) for key in keys):
            return {key.value: _parsed(x, shapes) for key, x in zip(keys, values, strict=True)}  # type: ignore[union-attr]
        case ast.List(elts=elts):
            return [_parsed(x, shapes) for x in elts]
        case ast.Tuple(elts=elts):
            return tuple([_parsed(x, shapes) for x in elts])
        case ast.Call(
            func=ast.Attribute(attr="unflatten"), args=[ast.Call(args=[ast.Name(id=like)]), ast.Call(args=[tree])]
        ):
            kind, leaves = kind_of(shapes[like]), jax.tree.leaves(_parsed(tree, shapes))
            return jax.tree.unflatten(kind, leaves) if kind.num_leaves == len(leaves) else node
    return node


def item(root: str, path: Path) -> ast.expr:
    """``root["a"][0].b``."""
    found: ast.expr = ast.Name(root, ast.Load())
    for key in path:
        field = isinstance(key, layout.Field)
        found = (
            ast.Attribute(found, str(key), ast.Load()) if field else ast.Subscript(found, ast.Constant(key), ast.Load())
        )
    return found


def map_leaves(function: Definition, names: KeyNames, shapes: Shapes, unread: Iterable[Key] = ()) -> None:
    """Replaces trees whose leaves are computed alike from those of others, and lists of all leaves in sums. `unread`: what stays
    though nothing reads it."""
    mapping, done = _Mapping(function, names, shapes), list[Statement]()
    for s in function.statements:
        if s.function is not None:
            map_leaves(s.function, names, shapes)
        mapping.called = _leaf_names(s)
        s.expression = mapping.mapped(s.expression, s.outs)
        done += [*mapping.defined(), s]
    mapping.called = {}
    function.result = mapping.mapped(function.result)
    function.statements = [*done, *mapping.defined()]
    remove_unused(function, names, unread)


def _leaf_names(s: Statement) -> dict[str, str]:
    """What the function that the source maps over trees, if it is a lambda, calls the leaves of each."""
    match expression_at(*s.place) if s.place else None:
        case ast.Call(args=[ast.Lambda(args=ast.arguments(args=own)), *roots]) if len(own) == len(roots):
            return {ast.unparse(root): arg.arg for root, arg in zip(roots, own, strict=True)}
    return {}


def remove_unused(function: Definition, names: KeyNames, unread: Iterable[Key] = ()) -> None:
    """Removes the statements whose results nothing reads, in the rounds of loops, too. `unread`: those that stay all the same."""
    for s in function.statements:
        if s.loop is not None and s.function is not None:
            remove_unused(s.function, names)
    while True:
        used = names.roots(sum((s.keys() for s in function.statements), keys_of(function.result))).union(unread)
        kept = [s for s in function.statements if s.effects or any(out in used for out in s.outs)]
        if len(kept) == len(function.statements):
            return
        function.statements = kept


class _Mapping(ast.NodeTransformer):
    def __init__(self, function: Definition, names: KeyNames, shapes: Shapes):
        self.names, self.shapes = names, shapes
        self.made = {s.outs[0] or "": s.expression for s in function.statements if len(s.outs) == 1 and not s.effects}
        self.uses = dict(sum((s.keys() for s in function.statements), keys_of(function.result)))
        self.parts: dict[Key, ast.expr] = {}  # what is in trees by now
        self.functions: list[Statement] = []  # those that are too long for a lambda
        self.called: Mapping[str, str] = {}  # by the name of a tree that of its leaves

    def defined(self) -> list[Statement]:
        """The functions that have become necessary."""
        found, self.functions = self.functions, []
        return found

    def mapped(self, expression: ast.expr, outs: Sequence[Key | None] = ()) -> ast.expr:
        """An expression with the trees in it written shorter. `outs`: what it makes."""
        kind = kind_of(self.shapes.get(outs[0] or "") if len(outs) == 1 else None)
        leaves = leaves_of(tree) if kind_of(tree := _parsed(expression, self.shapes)) == kind else []
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
        steps: dict[Key, ast.expr] = {}
        for key, x in self._steps(expression):
            steps[key] = layout.replaced(x, steps)
        return layout.replaced(expression, steps)

    def _steps(self, expression: ast.expr, depth: int = 0) -> Iterator[tuple[Key, ast.expr]]:
        """What is written in `_whole`, with what it is of before it."""
        for key in keys_of(expression) if depth < DEEPEST else ():
            if self.uses.get(key) == 1 and key not in self.parts and key in self.made:
                yield from self._steps(self.made[key], depth + 1)
                yield key, self.made[key]

    def visit_Dict(self, node: ast.Dict | ast.List | ast.Tuple) -> ast.expr:
        new = self._mapped(node)
        return self.generic_visit(node) if new is node else new  # type: ignore[return-value]

    visit_List = visit_Tuple = visit_Dict

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Changes a list that is summed up, whatever its order: ``sum(map(f, map(g, [...])))``."""
        inner: Any = node if getattr(node.func, "id", "") == "sum" and node.args else None
        while inner is not None and getattr(getattr(inner.args[-1], "func", None), "id", "") == "map":
            inner = inner.args[-1]
        if getattr(node.func, "attr", "") == "unflatten" and (new := self._mapped(node)) is not node:
            return new
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
        tree = _parsed(node, self.shapes)
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
            last = part, found
            texts.add(ast.dump(one))
        if len(parts) < 2 or len(texts) > 1 or not roots or not set(roots.values()) <= keys_of(one).keys():
            return None
        for root, key in roots.items():
            hint = self.names.hint(root) or "x"  # and f is the function itself
            self.names.hints[key] = self.called.get(hint) or hint[0].replace("f", "x")
        text = layout.text_of(one)
        order = sorted(roots, key=lambda root: text.index(roots[root]))
        if isinstance(one, ast.Name):
            return None, order
        function = Definition([roots[root] for root in order], [], one)
        if len(self.names.shown(expression := function.as_expression())) <= self.names.width - 2 * len(layout.INDENT):
            return expression, order
        part, found = last  # in statements, of which as many as fit become one
        steps = [Statement([key], layout.replaced(x, found)) for key, x in self._steps(part)]
        function = Definition(function.parameters, steps, layout.replaced(part, found), defined=True)
        self.functions.append(Statement([key := new_key()], function=function))
        self.names.hints[key] = "each"
        return ast.Name(key, ast.Load()), order
