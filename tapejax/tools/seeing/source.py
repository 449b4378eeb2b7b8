"""A recorded program printed as plain ``jnp`` code that runs where it is pasted."""

from __future__ import annotations

import ast
import contextlib
import functools
import html
import inspect
import itertools
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...jaxprs.dependence import has_tangent
from ...jaxprs.types import Values
from ...places import SourceLine
from ...tape import active
from ...tape.gradient_tape import GradientTape
from ...tape.recording import Recording, type_of
from ...tape.slicing import Program
from ...tape.structures import Structure
from ...tf.programs.function import Function
from ...tf.values import nest
from ...tf.values.shown import GREEN, ORANGE, bold, faint, page
from ...tf.values.structures import is_variable, leaf_of
from ...tf.values.types import Array, Nest
from ..writing.graph import Graph, ValueMap, ValueSet
from . import bodies, callers, derivatives, layout, parameters, recorded, rolling, scopes, templates, trees, unified
from .graph_evidence import given_at
from .listing import identifier, unused
from .operations import Code, Taken
from .parameters import Parameter
from .spelling import NAMED_WRITTEN_OUT, WRITTEN_OUT, array_text
from .trees import FEW, Path

# ---- the function ---------------------------------------------------------------------------------------------------


class TapeFunction:
    """A pure function got from a tape. Call it, transform it (`jax.grad`, `jax.jit` ...), or print it: it is code.

    ``code`` is that code. Arrays too large to be written out in it are names that it expects to be defined, where it can
    the user's own; ``constants`` holds them: ``exec(f.code, {**globals(), **f.constants})`` always runs.

    For variables with paths (Keras's), the code takes a tree of nested dicts, ``params["dense_1"]["kernel"]``, which ``tree``
    makes of their list; the function takes either.
    """

    def __init__(
        self,
        function: Callable,
        printed: Callable[[], Any],
        signature: inspect.Signature,
        paths: Sequence[tuple[Any, ...]] | None,
        recorded: Any = None,  # not of one that was pickled
    ):
        """`printed` gives the code, what it expects and its lines; `paths` are those of the sources in the tree."""
        self.recorded, self._paths = recorded, paths
        self._function, self._print, self.__signature__ = function, functools.cache(printed), signature
        self.__name__ = self.__qualname__ = "f"
        self.__code__ = function.__code__  # where there is none, JAX prints the function whenever it traces it

    def __call__(self, *args: Any, **kwargs: Any) -> Nest:
        return self._function(*args, **kwargs)

    def __reduce__(self) -> tuple:
        return _from_code, (self.code, self.constants, self.__signature__, self._paths)

    def tree(self, sources: Nest) -> Nest:
        """`sources` as the code takes them: values for variables with paths as nested dicts, all else as it is."""
        if self._paths is None or isinstance(sources, Mapping):
            return sources
        return trees.nested(zip(self._paths, sources, strict=True))

    @property
    def code(self) -> str:
        return self._print().text

    @property
    def constants(self) -> dict[str, Array]:
        return dict(self._print().arrays)

    def __str__(self) -> str:
        return self.code

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return page(_beside(self._print().lines))


def _from_code(
    code: str, constants: dict[str, Array], signature: inspect.Signature, paths: Sequence[tuple[Any, ...]] | None
) -> TapeFunction:
    """What was pickled of a `TapeFunction`: operations cannot be, so it runs as code."""
    scope: dict[str, Any] = {"jax": jax, "jnp": jnp, "np": np, **constants}
    exec(compile(code, "<tape.as_function>", "exec"), scope)

    def bare(x: Any) -> Any:
        return x if (leaf := leaf_of(x)) is None else leaf.array

    def function(*args: Any, **kwargs: Any) -> Nest:
        args, kwargs = jax.tree.map(bare, (args, kwargs), is_leaf=lambda x: leaf_of(x) is not None)
        return scope["f"](again.tree(args[0]), *args[1:], **kwargs)

    printed = types.SimpleNamespace(text=code, arrays=constants, lines=code.splitlines())
    again = TapeFunction(function, lambda: printed, signature, paths)
    return again


def _beside(lines: Sequence[str]) -> str:
    """Two columns: what was recorded, and the code that came of it. One below the other where there is no room."""
    row = '<div style="display:flex;flex-wrap:wrap">'
    cell = "margin:0;padding:0 12px 0 4px;min-width:0;white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere;font:inherit"

    def shown(left: str, right: str) -> str:
        return (
            f'{row}<pre style="{cell};flex:1 1 24em;border-left:2px solid {ORANGE}">{left}</pre>'
            f'<pre style="{cell};flex:1 1 30em;border-left:2px solid {GREEN}">{right}</pre></div>'
        )

    if not any(getattr(line, "origins", ()) for line in lines):
        return f"<pre>{html.escape(chr(10).join(lines))}</pre>"
    rows: list[tuple[tuple[SourceLine, ...], list[str]]] = []
    for line in lines:
        origins = getattr(line, "origins", ())
        if origins or not rows or line[:1].strip() and not rows[-1][1][-1]:
            rows.append((origins, [line]))
        else:
            rows[-1][1].append(line)
    body = [shown(bold("recorded", ORANGE), bold("as a function", GREEN))]
    before: tuple[SourceLine, ...] = ()
    for origins, texts in rows:
        new = sorted((line for line in origins if line not in before), key=lambda line: (line.file, line.number))
        recorded = [f"{faint(line)}  {html.escape(line.text)}" for line in new]
        body.append(shown("\n".join(recorded), html.escape("\n".join(texts)) or " "))
        before = origins
    return "".join(body)


def code(function: Callable, *args: Nest) -> TapeFunction:
    """A function of JAX's as plain ``jnp`` code: also of `jax.grad`, `jax.vmap` and whatever else JAX makes of functions.

    Args:
      function: a function of arrays, or of structures of them.
      *args: what it is called with, once; the code is for arguments of these shapes and dtypes.

    Returns:
      What `GradientTape.as_function` gives. Printed it is code, and it can be called.

    >>> import jax, jax.numpy as jnp
    >>> import tapejax
    >>> print(tapejax.code(jax.vmap(jnp.dot), jnp.ones((2, 3)), jnp.ones((2, 3))))
    def f(a, b):
        # for b: float32[2,3]
        return jax.vmap(jnp.dot)(a, b)
    <BLANKLINE>
    """
    # not the caller's names
    args = jax.tree.map(lambda x: x if is_variable(x) else jnp.array(x), args, is_leaf=is_variable)
    with GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(
            [x for x in jax.tree.leaves(args, is_leaf=is_variable) if isinstance(x, jax.Array) and has_tangent(x)]
        )
        result = function(*args)
    recording = tape._usable()
    came = Graph(recording.entries).after(jax.tree.leaves(args))
    closed = (x for mark in recording.marks if mark.kind == "closure" for x in given_at(mark)[1:])
    if not isinstance(function, Function) and any(x in came for x in closed):
        # in a program a rule takes what it closes over as inputs, here it has the values
        return code(Function(function), *args)
    bound = inspect.signature(function).bind(*args).arguments
    parts = [
        (f"{name}[{i}]", x) for name, of in bound.items() if isinstance(of, (list, tuple)) for i, x in enumerate(of)
    ]
    names = ValueMap((leaf.array, name) for name, x in [*bound.items(), *parts] if (leaf := leaf_of(x)) is not None)
    apart = len(bound) == len(args) > 0 and all(parameters.is_parameter_name(name) for name in bound)
    rest = dict(zip(list(bound)[1:], args[1:], strict=True)) if apart else ()
    first = next(iter(bound)) if apart else None
    # the function was called for this, so Python's looks at values are part of it
    return tape._as_function(
        result, args[0] if apart else args, rest, names, False, first, replayable=False, stores=False
    )


@dataclass
class RecordedProgram:
    """A recorded program: `values` are in its slots, `recording` has its entries, `owner` has for each of its sources
    whose it is. `names`: of arrays, that the user's code has; `unnamed`: of constants for which it has none; `partial`:
    the parameters that are trees which have more in them; `stores`: whether the line that recorded stores what was recorded."""

    arguments: Sequence[Parameter]
    program: Program
    values: Values
    recording: Recording
    owner: Sequence[int]
    sources: Nest
    starts: Structure
    target: Nest
    ends: Structure
    names: ValueMap[str]
    unnamed: ValueMap[str]
    parameter: str = "sources"
    partial: Set[str] = frozenset()
    stores: bool = True

    def held(self) -> list[Array]:
        """What the tape saw of each source."""
        found = [leaf.array for leaf in self.starts.leaves]
        for i, slot in zip(self.owner, self.program.sources, strict=True):
            if slot is not None and i < len(found):
                found[i] = self.values[slot]
        return found

    def trees(self) -> dict[str, Any]:
        """The parameters that are trees, by their names, with what the tape saw."""
        leaves = {self.parameter: {path[1:]: x for path, x in zip(self.tree(), self.held(), strict=True) if path}}
        structures = {self.parameter: self.sources}
        if tree_paths(self.sources) is not None:
            structures[self.parameter] = trees.nested(leaves[self.parameter].items())
        for each in self.arguments:
            if each.path:
                structures[each.name] = each.of
                leaves.setdefault(each.name, {})[each.path] = each.array
        whole = {name: own for name, own in leaves.items() if own and name not in self.partial}
        return {name: trees.filled(structures[name], own) for name, own in whole.items()}

    def parts(self) -> dict[str, Path]:
        """Where arguments have trees like the sources in them, as the state of an optimizer does, by a name."""
        found: dict[str, Path] = {}
        own = self.trees()
        kind = trees.kind_of(own.get(self.parameter))
        for name, tree in own.items():
            for path, x in trees.leaves_of(tree, lambda x: trees.kind_of(x) == kind) if name != self.parameter else ():
                if path and trees.kind_of(x) == kind:
                    hint = next((key for key in path[::-1] if isinstance(key, str)), name)
                    found[unused(identifier(hint), {*own, *found})] = (name, *path)
        return found

    def places(self) -> ValueMap[Path]:
        """The paths of arrays in the user's dicts, lists and objects."""
        known = ValueMap[Path]()
        for x, name in self.names.items():
            with contextlib.suppress(SyntaxError):  # a library's own names need not be code
                if place := layout.place_of(layout.parsed(name)):
                    known[x] = place[0], *place[1]
        return known

    def tree(self) -> list[Path]:
        """The path of each source in the tree that is the first parameter; empty where there is none."""
        paths = tree_paths(self.sources)
        if paths is None and is_tree(self.sources, self.names):
            paths = [path for path, x in trees.leaves_of(self.sources) if leaf_of(x) is not None]
        count = len(self.starts.leaves)
        return [(self.parameter, *path) if None not in path else () for path in paths] if paths else [()] * count


def is_tree(sources: Nest, names: ValueMap[str]) -> bool:
    """Whether a structure has arrays by names and no other leaves, has others in it, or its arrays have no other `names`."""
    leaves = [leaf_of(x) for _, x in trees.leaves_of(sources)]
    if not isinstance(sources, (list, tuple)) or any(leaf_of(x) is None for x in sources):
        return leaf_of(sources) is None and None not in leaves
    called = [names.get(leaf.array, "") for leaf in leaves if leaf is not None]
    return bool(called) and all(name.endswith(f"[{i}]") for i, name in enumerate(called))


def tree_paths(sources: Nest) -> list[tuple[Any, ...]] | None:
    """Where each of a list of variables is in the tree that printed code takes: by their own paths, without what is common to
    them. None where these do not say."""
    if not isinstance(sources, (list, tuple)) or len(sources) < 2 or not all(map(is_variable, sources)):
        return None
    paths = [tuple(str(getattr(v, "path", "")).split("/")) for v in sources]
    if min(map(len, paths)) < 2 or len(set(paths)) < len(paths):
        return None
    start = len(trees.common_path(paths))
    return [path[start:] for path in paths]


class PrintedModule:
    """Printed functions that share helpers, constants and names. Each that is added may call those of the user's in others.

    ``functions`` are the texts of definitions, each after those that it calls; ``constants`` the lines that define small
    arrays; ``arrays`` those that are too large to be written out, by name. The code needs ``jax``, ``jnp`` and ``np``.

    Args:
      taken: names that the code must not use.
      flat: whether each operation has a line of its own.
      width: of lines.
    """

    def __init__(self, taken: Set[str] = frozenset(), flat: bool = False, width: int = layout.WIDTH):
        self.scope = Taken(taken)
        self.code = Code(self.scope)
        self.flat = flat
        self.writer = recorded.Writer(self.code, derivatives.write)
        self.writer.names.width = width
        self.code.names, self.code.users = self.writer.names, functools.partial(bodies.function_of, self.writer)
        self.constants, self.arrays = self.code.constants, self.code.large
        self.main: dict[str, list[str]] = {}

    @property
    def functions(self) -> list[str]:
        return list(map("\n".join, self._functions()))

    def _functions(self) -> list[list[str]]:
        return [*map(str.splitlines, self.code.helpers), *self.writer.functions, *self.main.values()]

    @property
    def lines(self) -> list[str]:
        """The lines of the text, those of recorded functions with what they came of."""
        notes = [f"# {name}: {type_of(x)}, in .constants" for name, x in self.arrays.items()]
        head = "\n".join([*notes, *self.constants]).splitlines()
        first, *others = [part for part in (head, *self._functions()) if part]
        return [*first, *(line for part in others for line in ("", "", *part))]

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    def add(self, function: TapeFunction, name: str) -> str:
        """Adds what `GradientTape.as_function` gave, if it is not there yet, under `name` or one like it; returns that."""
        name = self.write(function.recorded, name)
        texts = {own: [line.replace(f"def {own}(", "def (") for line in lines] for own, lines in self.main.items()}
        known = next(own for own, text in texts.items() if text == texts[name])
        if known != name:
            del self.main[name]
        return known

    def write(self, parts: RecordedProgram, name: str = "f") -> str:
        """Adds the function that `parts` are; returns its name."""
        with active.outside():
            return self._write(parts, name)

    def _write(self, parts: RecordedProgram, name: str) -> str:
        program, values, writer = parts.program, parts.values, self.writer
        self.scope.taken |= {each.name for each in parts.arguments}
        writer.read(parts.recording, self.flat, parts.stores)
        given_names = [(each.array, each.name) for each in parts.arguments if not each.path]
        writer.called = ValueMap([*parts.names.items(), *given_names])
        places = [*zip(parts.held(), parts.tree(), strict=True)]
        places += [(each.array, (each.name, *each.path)) for each in parts.arguments if each.path]
        given, inner = parts.trees(), parts.parts()
        for hint, (root, *path) in inner.items():
            given[hint] = trees.part_at(given[root], path)
            places += [(x, (hint, *way)) for way, x in trees.leaves_of(given[hint])]
        writer.lines(program, values)  # which opens calls
        writer.take_trees(ValueMap(each for each in ValueMap(places).items() if each[1]), given, parts.places())
        results = [leaf.array for leaf in parts.ends.leaves]
        fixed = [*parts.held(), *(each.array for each in parts.arguments)]
        lines = writer.last_rounds.filled(writer.lines(program, values), fixed, results)
        writer.results = callers.Results(lines, results)
        varying = ValueSet(values[slot] for slot in program.sources if slot is not None)
        watched = parts.recording.watched.values()  # from the beginning on, so that nothing holds them constant
        scope = recorded.Scope(given=[x for x, begin in watched if x in varying and not begin])
        varying.update(line.outputs[j] for line in lines for j in line.active_outs)
        ends = []
        for slot, leaf in zip(program.targets, parts.ends.leaves, strict=True):
            x = leaf.array if slot is None else values[slot] if slot < len(values) else leaf.array
            ends.append(writer.argument(x, slot is not None and x in varying, scope))

        def like(tree: Nest) -> str | None:
            names = (name for name, x in given.items() if trees.kind_of(x) == trees.kind_of(tree) and not self.flat)
            return next((writer.tree_key(name, scope) for name in names), None)

        writer.want_trees([leaf.array for leaf in parts.ends.leaves], scope)
        result = layout.parsed(packed(parts.target, iter(ends), like))
        fixed += [values[slot] for slot in program.sources if slot is not None]
        every = lines if self.flat else writer.sourced.add_constant_lines(lines, parts.recording, fixed)
        statements = writer.block(every, depth := callers.depth_of(lines), scope)
        names = writer.names
        for x, key in scope.keys.items():
            inside = [*itertools.chain(*(each.code.co_varnames for each in writer.calls_of(x)[depth + 1 :]))]
            # no parts of containers, nor what a function calls its result
            if (called := parts.names.get(x, "[")) not in inside and "[" not in called:
                names.hints.setdefault(key, identifier(called))
        roots, unpacking = self._sources(parts, scope, inner)
        function = scopes.Definition(
            [key for name, key in roots.items() if name not in inner], [*unpacking, *statements], result
        )
        if parts.arguments:  # another shape may need another program: a mean that is a division by a number is one
            types = ", ".join(f"{each.name}: {type_of(each.array)}" for each in parts.arguments if not each.path)
            function.comment = f"# for {types}" if types else ""
        if not self.flat:
            writer.shapes |= {key: writer.shapes[root] for root, key in roots.items() if root in writer.shapes}
            trees.map_leaves(function, names, writer.shapes, writer.last_rounds.keys)
            rolling.roll(function, names, writer.shapes)
        self._name_constants(parts, scope, function)
        scopes.inline(function, names, values=not self.flat)
        name = name if name == "f" else self.scope.new(name)
        if not self.flat:
            unified.unify(writer, function)
        writer.define(function)
        scopes.name_all(function, names, self.writer.reserved)
        self.main[name] = scopes.lines(function, name, names)
        return name

    def _name_constants(self, parts: RecordedProgram, scope: recorded.Scope, function: scopes.Definition) -> None:
        """Defines the constants that `function` uses; that a loop begins with in the function, if nothing else reads it."""
        writer, names = self.writer, self.writer.names
        used = Counter(key for s in function.statements for key in s.keys()) + scopes.keys_of(function.result)
        constants = {key: x for x, key in scope.constants.items() if used[key] == 1}
        for s in function.statements:
            if s.loop is not None:
                s.expression = templates.ConstantRows(constants, functools.partial(self._rows, parts, s)).visit(
                    s.expression
                )
        starts = [getattr(s.expression, "id", None) for s in function.statements if s.effects and not s.loop]
        used = Counter(key for s in function.statements for key in s.keys()) + scopes.keys_of(function.result)
        reached = names.roots(used)
        for x, key in scope.constants.items():
            if key in reached:
                text = array_text(x, FEW) if key in starts and used[key] == 1 else None
                own = [parts.names.get(x), writer.constants.get(x), parts.unnamed.get(x)]
                called = next((name for name in own if name and name != "c"), None)
                most = NAMED_WRITTEN_OUT if called else WRITTEN_OUT
                called = called or unused("c", {*names.hints.values()})
                names.meanings[key] = layout.parsed(text or self.code.constant(x, called, most))

    def _rows(self, parts: RecordedProgram, loop: scopes.Statement, rows: Sequence[Array]) -> str:
        """The name of the array with the rows that a loop goes over, the user's own if there is one."""
        every = np.stack(rows)
        for x, name in parts.names.items():
            if type_of(x) == type_of(every) and "[" not in name and np.array_equal(x, every):
                return self.code.constant(x, name)
        called = self.writer.names.hint(loop.function.parameters[-1]) if loop.function else None
        return self.code.constant(jnp.asarray(every), f"{called or 'row'}s")

    def _sources(
        self, parts: RecordedProgram, scope: recorded.Scope, inner: Mapping[str, Path]
    ) -> tuple[dict[str, scopes.Key], list[scopes.Statement]]:
        """The parameters by their names, and statements that take them apart."""
        names, held, first = self.writer.names, parts.held(), scopes.new_key()
        keys = [scope.keys.get(x) for x in held]
        single = leaf_of(parts.sources) is not None
        if single:
            first = keys[0] or first
        texts, paths = list(_paths(parts.sources, first)), parts.tree()
        hints = {key: parts.names.get(x) for key, x in zip(keys, held, strict=True) if key}
        names.hints |= {key: identifier(hint) for key, hint in hints.items() if hint}
        names.hints[first] = identifier(parts.names.get(held[0], "x")) if single else parts.parameter
        statements: list[scopes.Statement] = []
        whole = isinstance(parts.sources, (list, tuple)) and all(keys) and not any(paths)
        if whole and keys and texts == [f"{first}[{i}]" for i in range(len(keys))]:
            pattern = "({},)" * (len(keys) == 1)
            statements = [scopes.Statement(keys, ast.Name(first, ast.Load()), effects=True, pattern=pattern)]
        elif not single:
            for key, text, path in zip(keys, texts, paths, strict=True):
                if key is not None:
                    names.meanings[key] = trees.item(first, path[1:]) if path else layout.parsed(text)
        roots = {parts.parameter: first}
        for each in parts.arguments:
            key = scope.keys.get(each.array) or scopes.new_key()
            root = roots.setdefault(each.name, scopes.new_key() if each.path else key)
            names.hints[root] = each.name
            if each.path:
                names.meanings[key] = trees.item(root, each.path)
        for hint, (above, *rest) in inner.items():
            tree = roots[hint] = scopes.new_key()
            names.hints[tree], names.meanings[tree] = hint, trees.item(roots[above], tuple(rest))
            leaves = ((way, scope.keys.get(x)) for way, x in trees.leaves_of(self.writer.shapes[hint]))
            names.meanings |= {key: trees.item(tree, way) for way, key in leaves if key is not None}
        for key, path in scope.trees.items():
            names.meanings[key] = trees.item(roots[path[0]], path[1:])
        return roots, statements


def printed(parts: RecordedProgram, flat: bool) -> PrintedModule:
    """What a tape recorded, written as code."""
    module = PrintedModule(flat=flat)
    module.write(parts)
    return module


def _paths(structure: Nest, path: str) -> Iterator[str]:
    """Python expressions for the leaves of what the user passes, in the order in which `Structure` takes it apart."""
    if leaf_of(structure) is not None:
        yield path
    elif nest.is_nested(structure):
        for part, child in zip(nest.part_names(structure), nest._children(structure), strict=True):
            yield from _paths(child, path + part)
    else:
        for i, part in enumerate(jax.tree.leaves(structure, is_leaf=is_variable)):
            if leaf_of(part) is not None:
                yield f"jax.tree.leaves({path})[{i}]"


def packed(structure: Nest, ends: Iterator[str], like: Callable[[Nest], str | None]) -> str:
    """The code for a structure whose leaves are these texts. `like`: what a pytree of the user's is written like, if there is
    something like it; else it is the list of its leaves."""
    if leaf_of(structure) is not None:
        return next(ends)
    if not trees.is_written_out(structure) and (key := like(structure)) is not None:
        return trees.LIKE.format(key, packed(structure, ends, lambda tree: None if tree is structure else like(tree)))
    if isinstance(structure, Mapping):
        found = {key: packed(structure[key], ends, like) for key in sorted(structure)}
        return "{" + ", ".join(f"{key!r}: {found[key]}" for key in structure) + "}"
    if nest.is_nested(structure):
        parts = [packed(child, ends, like) for child in nest._children(structure)]
        if isinstance(structure, tuple):
            return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        return f"[{', '.join(parts)}]"
    parts = [next(ends) for part in jax.tree.leaves(structure, is_leaf=is_variable) if leaf_of(part) is not None]
    return f"[{', '.join(parts)}]"  # a pytree class of the user's: its leaves
