"""A program printed as plain ``jnp`` code, one line an operation, that runs where it is pasted.

How an operation is spelled, `spelling` finds out. What has no short spelling is written out as a function of its own,
down to ``jax.lax`` and, at the last, to JAX's primitives.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import html
import inspect
import itertools
import keyword
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from ...jaxprs import canonical, contents
from ...jaxprs.dependence import has_tangent, is_key, type_has_tangent
from ...jaxprs.evaluate import needed
from ...jaxprs.fence import Literal, RefType, Tracer, jaxpr_as_fun
from ...jaxprs.types import Atom, Equation, JaxProgram, Value, Values
from ...places import Line
from ...tape import active
from ...tape.gradient_tape import GradientTape
from ...tape.operation import Op
from ...tape.recording import Entry, type_of
from ...tape.slicing import Program
from ...tape.structures import Structure
from ...tf.ops import table
from ...tf.values import nest
from ...tf.values.shown import GREEN, ORANGE, bold, faint, is_elsewhere, page
from ...tf.values.structures import is_variable, leaf_of
from ...tf.values.types import Array, Nest
from . import derivatives, layout, parameters, recorded, scopes
from .listing import identifier, unused
from .parameters import Parameter
from .spelling import (
    SCOPE,
    Aval,
    Unspellable,
    array_text,
    called_by,
    closed_equation,
    dtype_text,
    is_name,
    nearly,
    number,
    spelling_of,
    spelling_of_equation,
    static_arguments,
)
from .tables import sections

# How deep the rules of functions that rules call are written: each takes as long as all before it.
MOST_RULES = 1
_RESERVED = {*keyword.kwlist, *dir(builtins), *SCOPE, "scan", "while_loop", "while_rows", "flat", "scaled"}


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
        printed: Callable[[], tuple[str, dict[str, Array], list[str]]],
        signature: inspect.Signature,
        paths: Sequence[tuple[Any, ...]] | None = None,
        recorded: Recorded | None = None,
    ):
        """`printed` gives the code, the constants and the lines; `paths` are those of the sources in the tree."""
        self.recorded = recorded
        self._function, self._print, self.__signature__ = function, functools.cache(printed), signature
        self._paths = paths
        self.__name__ = self.__qualname__ = "f"
        self.__code__ = function.__code__  # where there is none, JAX prints the function whenever it traces it

    def __call__(self, *args: Any, **kwargs: Any) -> Nest:
        return self._function(*args, **kwargs)

    def __reduce__(self) -> tuple:
        return _from_code, (self.code, self.constants, self.__signature__, self._paths)

    def tree(self, sources: Nest) -> Nest:
        """`sources` as the code takes them: values for variables with paths as nested dicts, all else as it is."""
        return _tree(sources, self._paths)

    @property
    def code(self) -> str:
        return self._print()[0]

    @property
    def constants(self) -> dict[str, Array]:
        return dict(self._print()[1])

    def __str__(self) -> str:
        return self.code

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return page(_beside(self._print()[2]))


def _beside(lines: Sequence[str]) -> str:
    """Two columns: what was recorded, and the code that came of it. One below the other where there is no room."""
    row = '<div style="display:flex;flex-wrap:wrap">'
    cell = "margin:0;padding:0 12px 0 4px;min-width:0;white-space:pre-wrap;overflow-wrap:anywhere;font:inherit"

    def shown(left: str, right: str) -> str:
        return (
            f'{row}<pre style="{cell};flex:1 1 24em;border-left:2px solid {ORANGE}">{left}</pre>'
            f'<pre style="{cell};flex:1 1 30em;border-left:2px solid {GREEN}">{right}</pre></div>'
        )

    if not any(getattr(line, "origins", ()) for line in lines):
        return f"<pre>{html.escape(chr(10).join(lines))}</pre>"
    rows: list[tuple[tuple[Line, ...], list[str]]] = []
    for line in lines:
        origins = getattr(line, "origins", ())
        if origins or not rows or line[:1].strip() and not rows[-1][1][-1]:
            rows.append((origins, [line]))
        else:
            rows[-1][1].append(line)
    body = [shown(bold("recorded", ORANGE), bold("as a function", GREEN))]
    before: tuple[Line, ...] = ()
    for origins, texts in rows:
        new = sorted((line for line in origins if line not in before), key=lambda line: (line.file, line.number))
        recorded = [f"{faint(line)}  {html.escape(line.text)}" for line in new]
        body.append(shown("\n".join(recorded), html.escape("\n".join(texts)) or " "))
        before = origins
    return "".join(body)


def _literal(x: Value) -> str | None:
    """A number as code; None for what has to have a name."""
    if not hasattr(x, "shape") or isinstance(x, (bool, int, float, complex)):
        return number(x)
    plain = x.ndim == 0 and not isinstance(x, Tracer) and not is_key(x)
    return array_text(x) if plain else None


def _tree(sources: Nest, paths: Sequence[tuple[Any, ...]] | None) -> Nest:
    if paths is None or isinstance(sources, Mapping):
        return sources
    return recorded.nested(zip(paths, sources, strict=True))


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
        return scope["f"](_tree(args[0], paths), *args[1:], **kwargs)

    return TapeFunction(function, lambda: (code, constants, code.splitlines()), signature, paths)


def code(function: Callable, *args: Nest) -> TapeFunction:
    """A function of JAX's as plain ``jnp`` code: also of `jax.grad`, `jax.vmap` and whatever else JAX makes of functions.

    Args:
      function: a function of arrays, or of structures of them.
      *args: what it is called with, once; the code is for arguments of these shapes and dtypes.

    Returns:
      What `GradientTape.as_function` gives: printed it is code, and it can be called.

    >>> import jax, jax.numpy as jnp
    >>> import tapejax
    >>> print(tapejax.code(jax.vmap(jnp.dot), jnp.ones((2, 3)), jnp.ones((2, 3))))
    def f(a, b):
        # for b: float32[2,3]
        return jnp.einsum("ij,ij->i", a, b)
    <BLANKLINE>
    """
    # not the caller's names
    args = jax.tree.map(lambda x: x if is_variable(x) else jnp.array(x), args, is_leaf=is_variable)
    with GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(
            [x for x in jax.tree.leaves(args, is_leaf=is_variable) if isinstance(x, jax.Array) and has_tangent(x)]
        )
        result = function(*args)
    bound = inspect.signature(function).bind(*args).arguments
    names = {id(leaf.array): name for name, x in bound.items() if (leaf := leaf_of(x)) is not None}
    apart = len(bound) == len(args) > 0 and all(parameters.is_parameter_name(name) for name in bound)
    rest = dict(zip(list(bound)[1:], args[1:], strict=True)) if apart else ()
    first = next(iter(bound)) if apart else None
    # the function was called for this, so Python's looks at values are part of it
    return tape._as_function(result, args[0] if apart else args, rest, names, False, first, replayable=False)


class _Scope:
    """Names that are taken, and how to get new ones."""

    def __init__(self, taken: Set[str]) -> None:
        self.taken = _RESERVED | taken | {"f"}

    def new(self, wish: str) -> str:
        """`wish` as an identifier of its own."""
        name = unused(identifier(wish), self.taken)
        self.taken.add(name)
        return name

    def letters(self) -> Iterator[str]:
        """a, b, ... z, aa, ab, ..., but for names that mean something, and the l that looks like a 1."""
        alphabet = "abcdefghijkmnopqrstuvwxyz"
        for length in itertools.count(1):
            for letters in itertools.product(alphabet, repeat=length):
                if (name := "".join(letters)) not in self.taken:
                    yield name


@dataclass
class Recorded:
    """A recorded program: `values` are in its slots, `entries` are those of the recording, `owner` has for each of its sources
    whose it is. `names`: of arrays, by id, that the user's code has; `unnamed`: of constants for which it has none."""

    arguments: Sequence[Parameter]
    program: Program
    values: Values
    entries: Sequence[Entry]
    owner: Sequence[int]
    sources: Nest
    starts: Structure
    target: Nest
    ends: Structure
    names: dict[int, str]
    unnamed: dict[int, str]
    parameter: str = "sources"

    def held(self) -> list[Array]:
        """What the tape saw of each source."""
        found = [leaf.array for leaf in self.starts.leaves]
        for i, slot in zip(self.owner, self.program.sources, strict=True):
            if slot is not None and i < len(found):
                found[i] = self.values[slot]
        return found

    def tree(self) -> list[recorded.Path]:
        """The path of each source in the tree that is the first parameter; empty where there is none."""
        if isinstance(self.sources, Mapping):
            return [(self.parameter, *_keys_in(path)) for path in _paths(self.sources, "sources")]
        found = tree_paths(self.sources)
        return [()] * len(self.starts.leaves) if found is None else [(self.parameter, *path) for path in found]


def tree_paths(sources: Nest) -> list[tuple[Any, ...]] | None:
    """Where each of a list of variables is in the tree that printed code takes: by their own paths, without what is common to
    them. None where these do not say."""
    if not isinstance(sources, (list, tuple)) or len(sources) < 2 or not all(map(is_variable, sources)):
        return None
    paths = [tuple(str(getattr(v, "path", "")).split("/")) for v in sources]
    if min(map(len, paths)) < 2 or len(set(paths)) < len(paths):
        return None
    shortest = min(map(len, paths)) - 1
    common = next((i for i in range(shortest) if len({path[i] for path in paths}) > 1), shortest)
    return [path[common:] for path in paths]


def _keys_in(text: str) -> Sequence[Any]:
    """The keys in ``sources["a"][0]``."""
    node, keys = layout.parsed(text), list[Any]()
    while isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        keys.append(node.slice.value)
        node = node.value
    return keys[::-1] if isinstance(node, ast.Name) else ()


class Module:
    """Printed functions that share helpers, constants and names. Each that is added may call those of the user's in others.

    ``functions`` are the texts of definitions, each after those that it calls; ``constants`` the lines that define small
    arrays; ``arrays`` those that are too large to be written out, by name. The code needs ``jax``, ``jnp`` and ``np``.

    Args:
      taken: names that the code must not use.
      flat: whether each operation has a line of its own.
    """

    def __init__(self, taken: Set[str] = frozenset(), flat: bool = False):
        self.scope = _Scope(taken)
        self.code = Code(self.scope)
        self.flat = flat
        self.writer = recorded.Writer(
            self._operation, _literal, derivatives.write, self._helpers, self.scope.new, _RESERVED | taken | {"f"}
        )
        self.main: list[list[str]] = []

    @property
    def functions(self) -> list[str]:
        return [*self.code.helpers, *map("\n".join, (*self.writer.functions, *self.main))]

    @property
    def constants(self) -> list[str]:
        return self.code.constants

    @property
    def arrays(self) -> dict[str, Array]:
        return self.code.large

    @property
    def lines(self) -> list[str]:
        """The lines of the text, those of recorded functions with what they came of."""
        notes = [f"# {name}: {type_of(x)}, in .constants" for name, x in self.arrays.items()]
        head = "\n".join([*notes, *self.constants]).splitlines()
        helpers = [text.splitlines() for text in self.code.helpers]
        first, *others = [part for part in (head, *helpers, *self.writer.functions, *self.main) if part]
        return [*first, *(line for part in others for line in ("", "", *part))]

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    def _operation(self, line: recorded.Line, args: Sequence[str]) -> str:
        return self.code.operation(line.op, line.inputs, args, line.active_ins)

    def _helpers(self) -> dict[str, Any]:
        space = dict(SCOPE) | self.arrays
        exec("\n".join([*self.constants, *self.code.helpers]), space)
        return space

    def add(self, function: TapeFunction, name: str) -> str:
        """Adds what `GradientTape.as_function` gave, under `name` or one like it; returns that."""
        assert function.recorded is not None, "a function that was pickled is code already"
        return self.write(function.recorded, name)

    def write(self, parts: Recorded, name: str = "f") -> str:
        """Adds the function that `parts` are; returns its name."""
        with active.outside():
            return self._write(parts, name)

    def _write(self, parts: Recorded, name: str) -> str:
        program, values, writer = parts.program, parts.values, self.writer
        self.scope.taken |= {each.name for each in parts.arguments}
        writer.read(parts.entries, self.flat)
        lines = writer.lines(program, values)
        writer.called = parts.names
        varying = {id(values[slot]) for slot in program.sources if slot is not None}
        varying |= {id(line.outputs[j]) for line in lines for j in line.active_outs}
        scope = recorded.Scope()
        paths = parts.tree()
        writer.paths |= {id(x): path for x, path in zip(parts.held(), paths, strict=True) if path}
        writer.paths |= {id(each.array): (each.name, *each.path) for each in parts.arguments if each.path}
        ends = []
        for slot, leaf in zip(program.targets, parts.ends.leaves, strict=True):
            x = leaf.array if slot is None else values[slot] if slot < len(values) else leaf.array
            ends.append(writer.argument(x, slot is not None and id(x) in varying, scope))
        statements = writer.block(lines, recorded.depth_of(lines), scope)
        names = writer.names
        for i, key in scope.keys.items():
            if "[" not in parts.names.get(i, "["):  # no parts of containers
                names.wishes.setdefault(key, identifier(parts.names[i]))
        parameters, unpacking = self._sources(parts, scope)
        for key, x in scope.constants.values():
            names.meanings[key] = layout.parsed(
                self.code.constant(x, parts.names.get(id(x)) or parts.unnamed.get(id(x)))
            )
        function = scopes.Function(
            parameters, [*unpacking, *statements], layout.parsed(packed(parts.target, iter(ends)))
        )
        if parts.arguments:  # another shape may need another program: a mean that is a division by a number is one
            types = ", ".join(f"{each.name}: {type_of(each.array)}" for each in parts.arguments if not each.path)
            function.comment = f"# for {types}" if types else ""
        scopes.inline(function, names, values=not self.flat)
        name = name if name == "f" else self.scope.new(name)
        writer.define(function)
        scopes.name_all(function, names, self.writer.reserved)
        self.main.append(scopes.lines(function, name, names))
        return name

    def _sources(self, parts: Recorded, scope: recorded.Scope) -> tuple[list[str], list[scopes.Statement]]:
        """The parameters, and statements that take them apart."""
        names, held = self.writer.names, parts.held()
        single = leaf_of(parts.sources) is not None
        texts = [parts.parameter] if single else list(_paths(parts.sources, parts.parameter))
        paths = parts.tree()
        keys = [scope.keys.get(id(x)) for x in held]
        first = scopes.new_key()
        names.wishes[first] = parts.parameter
        names.wishes |= {
            key: identifier(parts.names[id(x)])
            for key, x in zip(keys, held, strict=True)
            if key and id(x) in parts.names
        }
        statements: list[scopes.Statement] = []
        if single:
            first = keys[0] or first
            names.wishes[first] = identifier(parts.names.get(id(held[0]), "x"))
        elif isinstance(parts.sources, (list, tuple)) and not any(paths) and all(keys) and len(keys) == len(texts):
            flat = [f"{parts.parameter}[{i}]" for i in range(len(texts))] == texts
            if flat:
                expression = ast.Name(first, ast.Load())
                outs = [key for key in keys if key is not None]
                statements.append(
                    scopes.Statement([*outs], expression, effects=True, pattern="({},)" * (len(outs) == 1))
                )
                texts = []
        for key, text, path in zip(keys, texts, paths, strict=False):
            if key is not None and not single:
                whole = layout.parsed(text) if not path else recorded.item(path[0], path[1:])
                names.meanings[key] = layout.replaced(whole, {parts.parameter: ast.Name(first, ast.Load())})
        roots = {parts.parameter: first}
        for each in parts.arguments:
            key = scope.keys.get(id(each.array)) or scopes.new_key()
            root = roots.setdefault(each.name, scopes.new_key() if each.path else key)
            names.wishes[root] = each.name
            if each.path:
                names.meanings[key] = recorded.item(root, each.path)
        for key, path in scope.trees.items():
            names.meanings[key] = recorded.item(roots[path[0]], path[1:])
        return list(roots.values()), statements


def printed(parts: Recorded, flat: bool) -> tuple[str, dict[str, Array], list[str]]:
    """The code of what a tape recorded, the arrays that it names, and its lines with what they came of."""
    module = Module(flat=flat)
    module.write(parts)
    return module.text, module.arrays, module.lines


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


def packed(structure: Nest, ends: Iterator[str]) -> str:
    """The code for a structure whose leaves are these texts."""
    if leaf_of(structure) is not None:
        return next(ends)
    if isinstance(structure, Mapping):
        found = {key: packed(structure[key], ends) for key in sorted(structure)}
        return "{" + ", ".join(f"{key!r}: {found[key]}" for key in structure) + "}"
    if nest.is_nested(structure):
        parts = [packed(child, ends) for child in nest._children(structure)]
        if isinstance(structure, tuple):
            return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        return f"[{', '.join(parts)}]"
    parts = [next(ends) for part in jax.tree.leaves(structure, is_leaf=is_variable) if leaf_of(part) is not None]
    return f"[{', '.join(parts)}]"  # a pytree class of the user's: its leaves


# ---- code -----------------------------------------------------------------------------------------------------------

# functions that printed code may call; the products of `scaled` are as in `jaxprs.poles`
_PRELUDE = {name: text.strip() for name, text in sections(Path(__file__).with_name("prelude.txt")).items()}


class Code:
    """Code being written: functions that it needs, constants, and lines for operations."""

    def __init__(self, scope: _Scope):
        self.scope = scope
        self.helpers: list[str] = []
        self.constants: list[str] = []
        self.large: dict[str, Array] = {}
        self._helper_of: dict[Hashable, str] = {}
        self._rules_around = 0
        # a loop that was unrolled does the same again and again
        self._operations: dict[Hashable, tuple[JaxProgram, str | None]] = {}
        self._known: dict[int, tuple[Array, str]] = {}
        self._prelude: set[str] = set()

    # -- constants --

    def constant(self, x: Value, wish: str | None = None) -> str:
        """The code for `x`: a number as it is, a small array by a name defined above, anything else as a parameter."""
        if (text := _literal(x)) is not None:
            return text
        return self._named(x, wish or "c", None if isinstance(x, Tracer) or is_elsewhere(x) else array_text(x))

    def _named(self, x: Array, wish: str, text: str | None = None) -> str:
        """A name for `x`, defined above by `text`; without one it is a parameter of the code."""
        if id(x) not in self._known:
            name = self.scope.new(wish)
            self._known[id(x)] = (x, name)
            if text is None:
                self.large[name] = x
            else:
                self.constants.append(f"{name} = {text}")
        return self._known[id(x)][1]

    # -- operations --

    def operation(self, op: Op, inputs: Sequence[Value], args: Sequence[str], active_ins: Sequence[int]) -> str:
        """What computes the results from `args` as `op` does from `inputs`; `active_ins` vary."""
        types = tuple(map(jax.typeof, inputs))
        general = tuple(f"arg{args.index(arg)}" if is_name(arg) else arg for arg in args)
        key = op, types, general, tuple(active_ins)
        if key not in self._operations:
            closed = jax.make_jaxpr(_without_second_order(op.fn))(*inputs)
            spelled = None
            if _refused(closed, inputs, active_ins):
                spelled = self._opaque(closed, op.name, general)
            elif not getattr(closed, "consts", ()):
                spelled = spelling_of(op.name, closed, types, general, static=static_arguments(op))
            self._operations[key] = closed, spelled
        closed, spelled = self._operations[key]
        if spelled is not None:
            return re.sub(r"\barg(\d+)\b", lambda m: args[int(m[1])], spelled)
        jaxpr = contents.open_jaxpr(closed)
        consts = [self.constant(c) for c in getattr(closed, "consts", ())]
        if not consts and (text := nearly(op, inputs, args, active_ins)) is not None:
            return text
        if len(jaxpr.eqns) == 1 and not consts:
            eqn = jaxpr.eqns[0]
            if list(eqn.outvars) == list(jaxpr.outvars) and len(set(eqn.outvars)) == len(eqn.outvars):
                names = dict(zip(jaxpr.invars, args, strict=True))
                return self.equation(eqn, [self._atom(v, names) for v in eqn.invars])
        try:
            return f"{self.helper(closed, op.name)}({_arrays(args)})"
        except Unspellable:
            return self._opaque(closed, op.name, args)

    def _opaque(self, closed: JaxProgram, wish: str, args: Sequence[str]) -> str:
        """A call of a program that is a parameter of the code: its result, or the list of them."""
        text = f"{self._named(jaxpr_as_fun(closed), wish)}({_arrays(args)})"
        return f"{text}[0]" if len(contents.open_jaxpr(closed).outvars) == 1 else text

    def helper(self, closed: JaxProgram, wish: str) -> str:
        """The name of a function, defined above, that does what a jaxpr does; one result is returned as it is."""
        key = canonical.key(closed), wish
        if key not in self._helper_of:
            text = self._function(closed, "f")
            if (text, wish) not in self._helper_of:  # of other shapes it may be the same
                name = self._helper_of[text, wish] = self.scope.new(wish)
                self.helpers.append(text.replace("def f(", f"def {name}(", 1))
            self._helper_of[key] = self._helper_of[text, wish]
        return self._helper_of[key]

    def with_rule(
        self, closed: JaxProgram, rule: Sequence[JaxProgram], write: Callable[[str, str], str], wish: str
    ) -> str:
        """The name of a function with a derivative rule of its own: `write` makes its code of its name and its definition."""
        key = canonical.key(closed), *map(canonical.key, rule)
        if key not in self._helper_of:
            if self._rules_around == MOST_RULES:  # each rule may have a rule of its own, without end
                raise Unspellable(wish)
            # before its rule is written, which may call the function
            self._helper_of[key] = name = self.scope.new(wish)
            self._rules_around += 1
            try:
                self.helpers.append(write(name, self._function(closed, name)))
            finally:
                self._rules_around -= 1
        return self._helper_of[key]

    def _function(self, closed: JaxProgram, name: str) -> str:
        function, names = self._body(closed)
        return "\n".join(scopes.lines(function, name, names))

    def parts(self, closed: JaxProgram) -> tuple[list[str], list[str], list[str]]:
        """The parameters, lines and results of a function that does what a jaxpr does."""
        function, names = self._body(closed)
        found = names.expressions()
        result = function.result.elts if isinstance(function.result, ast.Tuple) else [function.result]
        results = [layout.text_of(layout.replaced(x, found)) for x in result]
        return [names.given[key] for key in function.parameters], scopes.body(function, names, ""), results

    def _body(self, closed: JaxProgram) -> tuple[scopes.Function, scopes.Names]:
        jaxpr = contents.open_jaxpr(closed)
        letters, names = self.scope.letters(), scopes.Names()
        known: dict[Atom, str] = dict(zip(jaxpr.constvars, map(self.constant, contents.consts_of(closed)), strict=True))
        parameters = [scopes.new_key() for _ in jaxpr.invars]
        known.update(zip(jaxpr.invars, parameters, strict=True))
        names.wishes.update((key, next(letters)) for key in parameters)
        statements = []
        for eqn, given in needed(jaxpr, jaxpr.outvars, also=lambda eqn: bool(eqn.effects)):
            if any(isinstance(v.aval, RefType) for v in (*eqn.invars, *eqn.outvars)):
                raise Unspellable(eqn.primitive.name)
            text = self.equation(eqn, [self._atom(v, known) for v in eqn.invars])
            outs = [scopes.new_key() if v in given else None for v in eqn.outvars]
            known.update({v: out for v, out in zip(eqn.outvars, outs, strict=True) if out is not None})
            statements.append(
                scopes.Statement([*outs], layout.parsed(text), None, bool(eqn.effects), "({},)" * text.startswith("(*"))
            )
        result = layout.parsed(_one_or_tuple([self._atom(v, known, result=True) for v in jaxpr.outvars]))
        function = scopes.Function(parameters, statements, result)
        scopes.inline(function, names)
        for s in function.statements:
            names.wishes.update((out, next(letters)) for out in s.outs if out is not None)
        scopes.name_all(function, names, _RESERVED)
        return function, names

    def _atom(self, v: Atom, names: dict[Atom, str], result: bool = False) -> str:
        if not isinstance(v, Literal):
            return names[v]
        aval: Aval = v.aval
        if result:  # a result must be an array of its dtype
            return f"jnp.asarray({number(v.val)}, {dtype_text(aval.dtype)})"
        if aval.weak_type or not hasattr(v.val, "shape") and not hasattr(v.val, "dtype"):
            return number(v.val) if aval.weak_type else f"{dtype_text(aval.dtype)}({number(v.val)})"
        return self.constant(np.asarray(v.val))

    def equation(self, eqn: Equation, args: Sequence[str]) -> str:
        """An expression for one equation: its result, or the tuple (or list) of them."""
        name = eqn.primitive.name
        if rule := _STRUCTURED.get(name):
            try:
                if (text := rule(self, eqn, args)) is not None:
                    return text
            except Unspellable:
                pass
        if (called := spelling_of_equation(name, eqn, args)) is not None:
            return called
        free = {v: a for v, a in zip(eqn.invars, args, strict=True) if not isinstance(v, Literal)}
        return self._opaque(closed_equation(eqn), name, list(free.values()))

    def needs(self, name: str) -> str:
        """One of the functions of the prelude."""
        for wanted in ("flat", name) if "flat(" in _PRELUDE[name] else (name,):
            if wanted not in self._prelude:
                self._prelude.add(wanted)
                self.helpers.insert(len(self._prelude) - 1, _PRELUDE[wanted])
        return name


def _without_second_order(fn: Callable) -> Callable:
    """A function of `tapejax.tf.ops` without what makes it connected at second order (`ops.table.straight`): its value and its
    gradient are the same, and it is the function that a reader would write."""
    custom: Any = getattr(fn, "func", fn)
    if getattr(getattr(custom, "jvp", None), "__module__", None) != table.__name__:
        return fn
    return functools.partial(custom.fun.__wrapped__, **getattr(fn, "keywords", {}))


def _refused(closed: JaxProgram, inputs: Sequence[Value], active_ins: Sequence[int]) -> bool:
    """Whether gradient would go to what a function with a rule closes over: its derivative is an error, in the code too."""
    if not _closes_over(closed):
        return False

    def of_active(*xs: Value) -> Any:
        given = dict(zip(active_ins, xs, strict=True))
        return jaxpr_as_fun(closed)(*[given.get(i, x) for i, x in enumerate(inputs)])

    try:
        jax.eval_shape(lambda *xs: jax.vjp(of_active, *xs)[0], *[inputs[i] for i in active_ins])
    except LookupError:
        return True
    return False


def _closes_over(closed: JaxProgram) -> bool:
    equations = contents.open_jaxpr(closed).eqns
    own = any(eqn.primitive.name == "custom_vjp_call" and called_by(eqn) for eqn in equations)
    return own or any(map(_closes_over, (inner for eqn in equations for inner in contents.jaxprs_in(eqn.params))))


def _arrays(args: Sequence[str]) -> str:
    """Arguments of a function that was written for arrays."""
    return ", ".join(arg if is_name(arg) else f"jnp.asarray({arg})" for arg in args)


def _definition(name: str, parameters: Sequence[str], body: Sequence[str]) -> str:
    return "\n".join(layout.definition(name, parameters, [f"    {line}" if line else "" for line in body]))


# ---- functions whose derivative is their own, and control flow ------------------------------------------------------


def _first_of(eqn: Equation, text: str) -> str:
    """The result of an equation that has one, where `text` is a list of them."""
    return f"{text}[0]" if len(eqn.outvars) == 1 else text


def _lists(args: Sequence[str], a: int, b: int) -> str:
    return ", ".join(f"[{', '.join(group)}]" for group in (args[:a], args[a:b], args[b:]))


def _jit(code: Code, eqn: Equation, args: Sequence[str]) -> str:
    name = eqn.params["name"]
    called = spelling_of_equation(name, eqn, args)
    return called or f"{code.helper(eqn.params['jaxpr'], name)}({_arrays(args)})"


def _scan(code: Code, eqn: Equation, args: Sequence[str]) -> str:
    p = eqn.params
    consts, carry = contents.scan_counts(p)
    body = code.helper(p["jaxpr"], "body")
    lists = _lists(args, consts, consts + carry)
    options = ", ".join(f"{key}={p[key]!r}" for key in ("length", "reverse", "unroll"))
    return _first_of(eqn, f"{code.needs('scan')}({body}, {lists}, {options})")


def _while(code: Code, eqn: Equation, args: Sequence[str]) -> str:
    p = eqn.params
    test, body = code.helper(p["cond_jaxpr"], "test"), code.helper(p["body_jaxpr"], "body")
    lists = _lists(args, p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"])
    loop = "while_rows" if p["cond_jaxpr"].out_avals[0].shape else "while_loop"  # by `vmap` of what is tested
    return _first_of(eqn, f"{code.needs(loop)}({test}, {body}, {lists})")


def _cond(code: Code, eqn: Equation, args: Sequence[str]) -> str:
    branches = [code.helper(branch, "branch") for branch in eqn.params["branches"]]
    if len(branches) == 2:
        return f"jax.lax.cond({', '.join([args[0], branches[1], branches[0], *args[1:]])})"
    return f"jax.lax.switch({', '.join([args[0], '[' + ', '.join(branches) + ']', *args[1:]])})"


def _checkpoint(code: Code, eqn: Equation, args: Sequence[str]) -> str | None:
    if eqn.params["policy"] is not None:
        return None
    return f"jax.checkpoint({code.helper(eqn.params['jaxpr'], 'remat')})({', '.join(args)})"


# the programs of a rule, and what writes the code of a function with it, of its name and its definition
Rule: TypeAlias = tuple[tuple[JaxProgram, ...], Callable[[str, str], str]]


def _with_rule(trace: Callable[[Code, Equation], Rule]) -> Callable[[Code, Equation, Sequence[str]], str]:
    def rule(code: Code, eqn: Equation, args: Sequence[str]) -> str:
        call, wish = eqn.params["call_jaxpr"], _name_of(eqn.params["call_jaxpr"])
        if called_by(eqn) is not None:
            return f"{code.helper(call, wish)}({_arrays(args)})" if call.eqns else args[0]
        if (text := spelling_of_equation(wish, eqn, args)) is not None:
            return text
        return f"{code.with_rule(call, *trace(code, eqn), wish)}({_arrays(args)})"

    return rule


def _custom_jvp(code: Code, eqn: Equation) -> Rule:
    call = eqn.params["call_jaxpr"]
    avals, count, moving = call.in_avals, len(call.in_avals), _moving(eqn)

    def pushed(*xs: Array) -> list[Array]:
        outs, tangents = jax.jvp(_of_inputs(eqn, xs[:count], moving), tuple([xs[i] for i in moving]), xs[count:])
        return [*outs, *(t for t, aval in zip(tangents, call.out_avals, strict=True) if type_has_tangent(aval))]

    rule = _traced(jax.make_jaxpr(pushed), *avals, *(avals[i] for i in moving))

    def write(name: str, own: str) -> str:
        given, body, results = code.parts(rule)
        outs, found = results[: len(call.out_avals)], iter(results[len(call.out_avals) :])
        tangents = [
            next(found) if type_has_tangent(aval) else f"np.zeros({aval.shape}, jax.dtypes.float0)"
            for aval in call.out_avals
        ]
        parameters = dict(zip(moving, given[count:], strict=True))
        pair = f"{_one_or_tuple(outs)}, {_one_or_tuple(tangents)}"
        unpack = f"{_unpacked(given[:count])}, {_unpacked([parameters.get(i, '_') for i in range(count)])}"
        lines = [f"{unpack} = primals, tangents", *body, f"return {pair}"]
        return (
            f"@jax.custom_jvp\n{own}\n\n\n@{name}.defjvp\n{_definition(f'{name}_jvp', ['primals', 'tangents'], lines)}"
        )

    return (rule,), write


def _custom_vjp(code: Code, eqn: Equation) -> Rule:
    call = eqn.params["call_jaxpr"]
    outs, pulls = len(call.out_avals), list[Any]()

    def forward(*xs: Array) -> list[Array]:
        found, pull = jax.vjp(_of_inputs(eqn, xs, moving), *[xs[i] for i in moving])
        kept, tree = jax.tree.flatten(pull)
        pulls.append(tree)
        return [*found, *kept]

    # a derivative with respect to what the function closed over before it was lifted, the first arguments, is an error
    inputs = _moving(eqn)
    for first in range(len(inputs) or 1):
        moving = inputs[first:]
        with contextlib.suppress(Exception):
            closed = jax.make_jaxpr(forward)(*call.in_avals)
            break
    else:
        raise Unspellable(call)
    kept = len(closed.out_avals) - outs

    def backward(*xs: Array) -> tuple[Array, ...]:
        given = zip(xs[kept:], call.out_avals, strict=True)
        cotangents = [x if type_has_tangent(aval) else np.zeros(aval.shape, jax.dtypes.float0) for x, aval in given]
        return jax.tree.unflatten(pulls[-1], xs[:kept])(cotangents)

    pulled = _traced(jax.make_jaxpr(backward), *closed.out_avals[outs:], *call.out_avals)

    def write(name: str, own: str) -> str:
        given, body, results = code.parts(closed)
        residuals = ", ".join(results[outs:]) + "," * bool(kept)
        forward = _definition(f"{name}_fwd", given, [*body, f"return {_one_or_tuple(results[:outs])}, ({residuals})"])
        given, body, results = code.parts(pulled)
        unpack = [f"{_unpacked(given[:kept])} = residuals"] if kept else []
        unpack.append(f"{_unpacked(given[kept:])} = {code.needs('flat')}(cotangents)")
        found = dict(zip(moving, results, strict=True))
        returned = ", ".join(found.get(i, "None") for i in range(len(eqn.invars)))
        backward = _definition(f"{name}_bwd", ["residuals", "cotangents"], [*unpack, *body, f"return ({returned},)"])
        rule = f"{name}.defvjp({name}_fwd, {name}_bwd)"
        return "\n\n\n".join([f"@jax.custom_vjp\n{own}", forward, backward, rule])

    return (closed, pulled), write


def _moving(eqn: Equation) -> list[int]:
    """The inputs of a function with a rule that have a derivative; it closes over the first."""
    return [i for i, v in enumerate(eqn.invars) if i >= eqn.params["num_consts"] and type_has_tangent(v.aval)]


def _of_inputs(eqn: Equation, xs: Sequence[Array], moving: Sequence[int]) -> Callable[..., list[Array]]:
    """An equation as a function of some of its inputs."""

    def function(*given: Array) -> list[Array]:
        known = dict(enumerate(xs)) | dict(zip(moving, given, strict=True))
        return eqn.primitive.bind(*known.values(), **eqn.primitive.get_bind_params(eqn.params))

    return function


def _traced(trace: Callable[..., Any], *args: Any) -> Any:
    """What `trace` gives; a rule that raises, by design or not, is not written out."""
    try:
        return trace(*args)
    except Exception as error:
        raise Unspellable("a rule that cannot be traced") from error


def _unpacked(names: Sequence[str]) -> str:
    return f"({', '.join(names)},)"


def _one_or_tuple(results: Sequence[str]) -> str:
    return results[0] if len(results) == 1 else f"({', '.join(results)})"


def _name_of(closed: JaxProgram) -> str:
    info = getattr(contents.open_jaxpr(closed), "debug_info", None)
    name = getattr(info, "func_name", None)
    return "function" if name is None or "<" in name else name.split(".")[-1]


_STRUCTURED: dict[str, Callable[[Code, Equation, Sequence[str]], str | None]] = {
    **dict.fromkeys(contents.JIT, _jit),
    "scan": _scan,
    "while": _while,
    "cond": _cond,
    "scaled_by_slope": lambda code, eqn, args: f"{code.needs('scaled')}({', '.join(args)}, {eqn.params['stops']})",
    "checkpoint": _checkpoint,
    "remat2": _checkpoint,
    "custom_jvp_call": _with_rule(_custom_jvp),
    "custom_vjp_call": _with_rule(_custom_vjp),
    # to where its argument is: code that is pasted elsewhere has other devices
    "device_put": lambda _, eqn, args: f"jax.device_put({args[0] if len(args) == 1 else '(' + ', '.join(args) + ')'})",
    "random_unwrap": lambda _, eqn, args: f"jax.random.key_data({args[0]})",
    "random_wrap": lambda _, eqn, args: f"jax.random.wrap_key_data({args[0]}, impl={eqn.params['impl'].name!r})",
}
