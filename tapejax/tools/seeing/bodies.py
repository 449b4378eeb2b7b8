"""A loop or a choice of JAX's, with its functions written as all others are: from the program of each, run once.

`jax.lax.scan`, `map`, `fori_loop`, `while_loop`, `cond` and `switch` become one equation, with the programs of the user's
functions in it. These say which function of the user's ran what, and how what it takes and gives is structured.
"""

from __future__ import annotations

import ast
import dis
import itertools
from collections.abc import Iterator, Mapping, Sequence
from types import CodeType
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from ...jaxprs import contents
from ...jaxprs.fence import Literal, Tracer, eval_jaxpr
from ...jaxprs.types import Equation, JaxProgram, Value, Values
from ...places import Place, is_jaxs, serves
from ...tape import active
from ...tape.recording import Entry, Recording
from ...tf.ops import loops
from ..writing.congruence import close
from ..writing.files import source_of
from ..writing.graph import ValueMap, ValueSet
from . import equations, layout, mapped, ran_by, rolling, scopes, transforms, trees
from .callers import Line, Running, call_name, calls_of
from .inside import traced
from .listing import bytecode, parameters_of, target_of
from .recorded import Scope, Writer
from .regions import restricted
from .retraced import Retraced
from .scopes import Definition, Key, Statement, new_key
from .spelling import Unspellable
from .trees import Path

Leaf: TypeAlias = tuple[str, Path]  # of which parameter a value is a part, and where in it


class Callee(NamedTuple):
    """What a function of the user's does once: `entries` lead from `given` values, its parameters, to the `ends`. `leaves` and
    `results` are where these are in its parameters and in what it returns; `code` is the function's own."""

    entries: Sequence[Entry]
    given: Values
    ends: Values
    leaves: Sequence[Leaf]
    results: Sequence[Path]
    code: CodeType | None


def callee_of(
    program: JaxProgram,
    consts: Values,
    given: Values,
    at_once: bool = False,
    place: tuple[Place, ...] = (),
    depth: int = 0,
    retraced: Retraced | None = None,
) -> Callee:
    """The function that became a program, of `consts`, which it closes over, and of copies of what it is `given`.

    `place`: of what TensorFlow made it of; the first `depth` of these functions are not in it.
    """
    jaxpr: Any = contents.open_jaxpr(program)
    info, source, recording = jaxpr.debug_info, ran_by.source_of(program), Recording()
    callers, code = ran_by.ran_by(jaxpr, source), ran_by.function_in(program)
    if callers and place:
        callers = [ran_by.inside_of(eqn, place)[depth:] for eqn in jaxpr.eqns]
        codes = {each[0][0] for each in callers if each and depth == len(place)}
        code = codes.pop() if len(codes) == 1 else None
    users = jaxpr.eqns == [] or any(not is_jaxs(code.co_filename) for each in callers or () for code, _ in each)
    arguments, paths = (info.arg_names or (), info.result_paths or ()) if info else ((), ())
    known = len(arguments) == len(jaxpr.invars) and len(paths) == len(jaxpr.outvars) and not place
    if callers is None or not users or contents.consts_of(program) or not (known or at_once):
        raise Unspellable(program)
    copies = [jnp.array(x) for x in given]  # as they are, even if weakly typed
    ends = equations.run(jaxpr, callers, [*consts, *copies], (), recording.entries, retraced or Retraced())
    if retraced is not None and not all(map(close, ends, eval_jaxpr(jaxpr, (), *consts, *copies))):
        raise Unspellable(program)
    folded = transforms.folded(recording, ends)
    leaves = [_leaf(name) for name in arguments[len(consts) :]] if known else []
    results = [_leaf(path)[1] for path in paths] if known else []
    return Callee(restricted(folded.entries, ends), copies, ends, leaves, results, code)


def _leaf(text: str) -> Leaf:
    """The name and the keys in ``state["w"][0]``, as JAX has it."""
    if not text:
        return "", ()
    expression = layout.parsed(text)
    root, path = layout.place_of(expression) or (getattr(expression, "id", ""), ())
    if not root or any(isinstance(key, layout.Field) for key in path):
        raise Unspellable(text)
    return root, path


class Group(NamedTuple):
    """Some of the values that a function takes or gives, as one tree: their positions, and where in the tree each is."""

    positions: Sequence[int]
    paths: Sequence[Path]

    @property
    def flat(self) -> bool:
        """Whether it is a tuple of arrays."""
        return [*self.paths] == [(i,) for i in range(len(self.paths))]

    @property
    def alone(self) -> bool:
        """Whether it is an array."""
        return [*self.paths] == [()]

    def tree(self, leaves: Sequence[Any]) -> Any:
        """The tree of dicts and tuples with these leaves."""
        return _tree([*zip(self.paths, (leaves[i] for i in self.positions), strict=True)])


def _tree(leaves: Sequence[tuple[Path, Any]]) -> Any:
    if not leaves:
        return ast.Constant(None)
    if leaves[0][0] == ():
        return leaves[0][1]
    parts: dict[Any, list[tuple[Path, Any]]] = {}
    for (key, *rest), x in leaves:
        parts.setdefault(key, []).append((tuple(rest), x))
    trees_of = {key: _tree(part) for key, part in parts.items()}
    if all(isinstance(key, int) for key in parts):  # nothing is in it that is None
        return tuple([trees_of.get(i, ast.Constant(None)) for i in range(max(parts) + 1)])
    return trees_of


def parameters_in(leaves: Sequence[Leaf]) -> list[Group]:
    """The parameters that values are parts of."""
    roots = dict.fromkeys(name for name, _ in leaves)
    return [
        Group(at := [i for i, x in enumerate(leaves) if x[0] == root], [leaves[i][1] for i in at]) for root in roots
    ]


class Structured:
    """A loop or a choice that is written.

    Args:
      line: it, whose one equation is `eqn`.
      inputs: its values; of what an equation has as a number that.
    """

    def __init__(self, writer: Writer, line: Line, program: JaxProgram, scope: Scope):
        (eqn,) = contents.open_jaxpr(program).eqns
        self.writer, self.line, self.eqn, self.scope, self.params = writer, line, eqn, scope, eqn.params
        # AutoGraph made it of a statement, so that what its functions store is the user's
        self.is_statement = (origin := ran_by.origin(eqn)) == "statement"
        self.calls = line.calls[: len(line.calls) - self.is_statement]  # around its functions
        # of what TensorFlow made it
        self.place = tuple([(each.code, each.place) for each in line.calls]) if origin else ()
        jaxpr = contents.open_jaxpr(program)
        known = dict(zip(jaxpr.invars, line.inputs, strict=True))
        known |= dict(zip(jaxpr.constvars, contents.consts_of(program), strict=True))
        self.inputs = [v.val if isinstance(v, Literal) else known[v] for v in eqn.invars]
        self.active = ValueSet(line.inputs[i] for i in line.active_ins)
        made = dict(zip(jaxpr.outvars, line.outputs, strict=True))
        self.outputs = [made.get(v) for v in eqn.outvars]  # None for what nobody reads
        self.retraced: Retraced | None = getattr(line.op.fn, "retraced", None)
        self.called: dict[int, str] = {}  # what a statement stores its results under

    def callee(self, program: JaxProgram, consts: Values, given: Values, at_once: bool = False) -> Callee:
        """A function in it, see `callee_of`."""
        self.given = given
        return callee_of(
            program, consts, given, at_once or bool(self.place), self.place, len(self.calls), self.retraced
        )

    def text(self, x: Value) -> ast.expr:
        """What is written for an input."""
        return layout.parsed(self.writer.argument(x, x in self.active, self.scope))

    def structure(self, values: Values, group: Group) -> ast.expr:
        """What is written for inputs that are handed over as one tree."""
        own = [values[i] for i in group.positions]
        places = [self.writer.places.get(x, ()) for x in own]
        path = places[0][: len(places[0]) - len(group.paths[0])] if own else ()
        if path and [*places] == [(*path, *rest) for rest in group.paths] and self._is_whole(path, own):
            return ast.Name(self.scope.part(path, own), ast.Load())
        return trees.written(group.tree([self.text(x) for x in values]))

    def _is_whole(self, path: Path, values: Values) -> bool:
        shape = self.writer.shapes.get(path[0])
        there = shape is not None and jax.tree.leaves(trees.part_at(shape, path[1:]))
        return len(there or ()) == len(values) and self.scope.has_tree(path[0], values)

    def function(
        self,
        body: Callee,
        consts: Values,
        parameters: Sequence[tuple[str, Group]],
        results: Sequence[Group],
        hint: str = "body",
    ) -> tuple[Statement, str]:
        """The definition of a function in this scope, and its key. `parameters`, and `hint`: what they and it are called, if they
        have no other name."""
        writer, names = self.writer, self.writer.names
        varying = ValueSet(x for x in consts if x in self.active)
        of_call = self._is_called(body, parameters)
        recording = Recording()
        recording.entries = [*body.entries]
        around = [(*self.calls, *self._continued(own)) for own in calls_of(recording.entries)]
        starts = ValueSet([*body.given, *varying, *(x for x in consts if self.scope.varying_around(x))])
        lines, local = mapped.lines_inside(writer, recording, around, body.ends, [*starts], body.given)
        inner = mapped.Inside(self.scope, local, varying, lines, ValueMap())
        ends = [ast.Name(inner.key(x), ast.Load()) if x in local else None for x in body.ends]
        depth = len(self.calls) - of_call
        statements = writer.block(lines, depth, inner)
        self._name_results(body, inner, of_call or self.is_statement and len(body.ends) == len(results) == 1)
        own = list(parameters_of(body.code)) if body.code is not None else []
        if self.place:
            self._name_given(body, inner, own)
            own = []
        keys, head = list[Key](), list[Statement]()
        for i, (default, group) in enumerate(parameters):
            leaves = [inner.key(body.given[j]) for j in group.positions]
            known = body.leaves[group.positions[0]][0] if group.positions and body.leaves else default
            name = own[i] if len(own) == len(parameters) else known
            keys.append(leaves[0] if group.alone else new_key())
            names.hints[keys[-1]] = names.hints.get(keys[-1], name) if self.place else name
            if leaves and not group.alone:
                head += self._taken_apart(keys[-1], name, leaves, group, None if self.place else body.code)
        texts = [
            layout.parsed(written_as(x, writer.argument(x, False, inner))) if end is None else end
            for end, x in zip(ends, body.ends, strict=True)
        ]
        result = layout.one_or_tuple([trees.written(group.tree(texts)) for group in results])
        function = Definition(keys, [*head, *statements], result, defined=not of_call and _is_defined(body.code))
        of = new_key()
        names.hints[of] = call_name(body.code) if body.code is not None and _is_defined(body.code) else hint
        rolling.roll(function, names, writer.shapes)
        scopes.inline(function, names, depth + 2)
        read = names.roots(key for s in function.statements for key in s.keys())
        read |= names.roots(scopes.keys_of(function.result))
        for s in head:
            s.outs = [out if out in read else None for out in s.outs]
        return Statement([of], function=function), of

    def _name_results(self, body: Callee, inner: Scope, alone: bool) -> None:
        """Notes what a statement stores its results under. `alone`: the one result has no name in the function."""
        hints, keys = self.writer.names.hints, [inner.keys.get(x, "") for x in body.ends]
        if self.is_statement:
            self.called |= {i: hints[key] for i, key in enumerate(keys) if key in hints}
        for key in keys if alone else ():
            hints.pop(key, None)

    def _name_given(self, body: Callee, inner: Scope, own: Sequence[str]) -> None:
        """Names what TensorFlow hands to a function: as its `own` parameters, or what a statement stores the next value under."""
        known = dict(enumerate(own))
        if self.is_statement:
            known = {len(body.ends): target_of(*self.place[-1])} | self.called
        named = ((x, known[i]) for i, x in enumerate(body.given) if known.get(i))
        self.writer.names.hints |= {inner.key(x): name for x, name in named}
        inputs = ValueSet(self.inputs)
        for x, start in zip(body.given, self.given, strict=True):  # state has the name that it begins with
            if (
                inner.key(x) not in self.writer.names.hints
                and start in inputs
                and isinstance(text := self.text(start), ast.Name)
            ):
                self.writer.names.arguments[inner.key(x)] = text.id

    def _continued(self, calls: Sequence[Running]) -> Sequence[Running]:
        """What ran an operation of a function, in the call that the statement is in of which AutoGraph made it."""
        return calls if not self.is_statement else [calls[0]._replace(call=self.line.calls[-1].call), *calls[1:]]

    def _is_called(self, body: Callee, parameters: Sequence[tuple[str, Group]]) -> bool:
        """Whether it is a function on its own, which closes over nothing."""
        code = body.code
        flat = all(group.alone for _, group in parameters) and len(body.ends) == 1
        return code is not None and _is_defined(code) and flat and not code.co_freevars and bool(self.line.calls)

    def _taken_apart(
        self, root: Key, name: str, leaves: Sequence[Key], group: Group, code: CodeType | None
    ) -> list[Statement]:
        """The parts of a parameter: by one statement, as the user's function has it, else where they are used."""
        parts = _unpacked(code, name) if group.flat else ()
        if group.flat and (len(parts) == len(leaves) or code is None):
            self.writer.names.hints |= {key: part for key, part in zip(leaves, parts, strict=False) if part != "_"}
            pattern = "({},)" * (len(leaves) == 1)
            return [Statement([*leaves], ast.Name(root, ast.Load()), effects=True, pattern=pattern)]
        self.writer.names.meanings |= {
            key: trees.item(root, path) for key, path in zip(leaves, group.paths, strict=True)
        }
        return []

    def choice(self) -> tuple[ast.expr, bool]:
        """By what a branch is chosen, and whether that is a truth value: as it was before JAX made an index of it."""
        index, writer = self.inputs[0], self.writer
        x, active, count = index, index in self.active, len(self.params["branches"])
        while jax.typeof(x).dtype != bool and (position := writer.made.get(x)) is not None:
            if (before := _before(writer._entries[position], count)) is None:
                break
            x = before
        truth = count == 2 and jax.typeof(x).dtype == bool
        x = x if truth or jnp.issubdtype(jax.typeof(x).dtype, jnp.integer) else index
        return layout.parsed(writer.argument(x, active, self.scope)), truth

    def _is_taken_apart(self) -> bool:
        """Whether the user's code takes the results apart by names."""
        return bool(self.line.calls) and self.line.calls[-1].instruction in bytecode(self.line.calls[-1].code).parts

    def statement(self, expression: ast.expr, outputs: Sequence[Any], groups: Sequence[Group]) -> Statement:
        """What takes the results apart, of which each group is a tree."""
        used = [None if x is None or x not in self.scope.used else self.scope.key(x) for x in outputs]
        self.writer.names.hints |= {key: name for i, name in self.called.items() if (key := used[i])}
        held = [i for i, group in enumerate(groups) if any(used[j] for j in group.positions)]
        if len(groups) > 1 and len(held) == 1 and groups[held[0]].alone and not self._is_taken_apart():
            part = ast.Subscript(expression, ast.Constant(held[0]), ast.Load())
            return Statement([used[groups[held[0]].positions[0]]], part)
        outs, patterns = list[Key | None](), list[str]()
        for group in groups:
            own = [used[i] for i in group.positions]
            if group.alone or not any(own):
                outs.append(own[0] if own else None)
                patterns.append("{}")
            elif group.flat:
                outs += own
                patterns.append(f"({', '.join(['{}'] * len(own))}{',' * (len(own) == 1)})")
            else:
                outs.append(root := new_key())
                patterns.append("{}")
                pairs = zip(own, group.paths, strict=True)
                self.writer.names.meanings |= {key: trees.item(root, path) for key, path in pairs if key}
        pattern = patterns[0].strip("()") if len(patterns) == 1 else ", ".join(patterns)
        plain = pattern in ("{}", ", ".join(["{}"] * len(outs)))
        return Statement(outs, expression, pattern="" if plain else pattern)


def _is_defined(code: CodeType | None) -> bool:
    return code is not None and not code.co_name.startswith("<") and not serves(code.co_filename)


def _unpacked(code: CodeType | None, name: str) -> Sequence[str]:
    """The names into which a function takes its parameter apart."""
    steps = dis.get_instructions(code) if code is not None else ()
    parts = {} if code is None else bytecode(code).parts
    return next((parts[step.offset] for step in steps if step.argval == name and step.offset in parts), ())


def write(writer: Writer, line: Line, scope: Scope) -> list[Statement]:
    """The statements for a loop or a choice in `scope`; none for another operation, or where a function in it is not the user's,
    has effects, or takes what has no structure of dicts and tuples."""
    rule = _RULES.get(line.op.name)
    if rule is None or any(isinstance(x, Tracer) for x in line.inputs):
        return []
    program = writer.program_of(line)
    if program is None:
        return []
    eqns: Sequence[Equation] = contents.open_jaxpr(program).eqns
    if len(eqns) != 1 or eqns[0].primitive.name != line.op.name or eqns[0].effects:
        return []
    try:
        with active.outside():
            return rule(Structured(writer, line, program, scope))
    except Unspellable:
        return []


def _before(entry: Entry, count: int) -> Value | None:
    """Of what an operation makes the index of one of `count` branches, a truth value or an integer, as JAX does; None where it
    does anything else, and be it with other limits or of another type."""
    program = traced(entry.op, entry.inputs)
    if program is None:
        return None
    jaxpr = contents.open_jaxpr(program)
    x: Any = jaxpr.outvars[0]
    fixed = {v: x for v, x in zip(jaxpr.invars, entry.inputs, strict=True) if not isinstance(x, jax.Array)}
    for eqn in reversed(jaxpr.eqns):
        operand = {"clamp": 1, "convert_element_type": 0}.get(eqn.primitive.name)
        if operand is None or eqn.outvars != [x]:
            return None
        before, after = eqn.invars[operand].aval.dtype, x.aval.dtype
        limits = [v.val if isinstance(v, Literal) else fixed.get(v) for v in (eqn.invars[0], eqn.invars[-1])]
        if operand and limits != [0, count - 1]:
            return None
        if before.kind != "b" and not (jnp.issubdtype(before, jnp.integer) and after == np.int32):
            return None
        x = eqn.invars[operand]
    return entry.inputs[jaxpr.invars.index(x)] if jaxpr.eqns and x in [*jaxpr.invars] else None


# ---- a function for itself ------------------------------------------------------------------------------------------


def function_of(
    writer: Writer, program: JaxProgram, hints: Sequence[str | None], letters: Iterator[str]
) -> Definition | None:
    """The function that became a program, of arrays, all of its keys named; None where it is not the user's. `hints`: what its
    first parameters are called; `letters`: for those for which there is no name."""
    jaxpr: Any = contents.open_jaxpr(program)
    with active.outside():
        try:
            body = callee_of(program, (), list(map(_example, jaxpr.invars)), at_once=True)
        except Exception:  # it cannot run here
            return None
    names, recording, scope = writer.names, Recording(), Scope()
    recording.entries = [*body.entries]
    calls = calls_of(recording.entries)
    lines, varying = mapped.lines_inside(writer, recording, calls, body.ends, body.given, body.given)
    ends = [scope.key(x) if x in varying else "" for x in body.ends]
    statements = writer.block(lines, 0, scope)
    known: Sequence[str | None] = _parameters(body.code, program, len(body.given)) or [*_read_as(writer, lines, body)]
    hinted = [x or y for x, y in itertools.zip_longest(hints, known)]
    parameters = [scope.key(x) for x in body.given]
    names.hints |= {key: hint or next(letters) for key, hint in zip(parameters, hinted, strict=True)}
    texts = [
        ast.Name(end, ast.Load()) if end else layout.parsed(written_as(x, writer.argument(x, False, scope)))
        for end, x in zip(ends, body.ends, strict=True)
    ]
    function = Definition(parameters, statements, layout.one_or_tuple(texts))
    rolling.roll(function, names, writer.shapes)
    for x, key in scope.constants.items():
        names.meanings[key] = layout.parsed(writer.code.constant(x))
    scopes.inline(function, names)
    writer.define(function)
    scopes.name_all(function, names, writer.reserved)
    return function


def _parameters(code: CodeType | None, program: JaxProgram, count: int) -> Sequence[str]:
    """What a function calls so many arrays that it is given, by themselves or in tuples; nothing where it has no names. The file
    says it of one that ran nothing, and gives back what it is given."""
    file, _, line = ran_by.source_of(program).rpartition(":")
    own = parameters_of(code) if code else source_of(file).parameters.get(int(line), ()) if line.isdigit() else ()
    names = [part for name in own for part in _unpacked(code, name) or (name,)]
    return names if len(names) == count else ()


def _read_as(writer: Writer, lines: Sequence[Line], body: Callee) -> Iterator[str | None]:
    """As which of its parameters a function reads each value that it is given, where it has others, such as static ones."""
    own = parameters_of(body.code) if body.code is not None else []
    calls = [line.calls[0].call for line in lines if line.calls][:1]
    read = writer.operands.get(calls[0], ValueMap[str]()) if calls else ValueMap[str]()
    yield from (name if (name := read.get(x)) in own else None for x in body.given)


def _example(variable: Any) -> Value:
    """A value of a type: numbers by which results can be told from each other."""
    aval = variable.aval
    if not jnp.issubdtype(aval.dtype, jnp.number) and aval.dtype != bool:
        raise Unspellable(aval)
    x = np.random.default_rng(aval.size).uniform(0.1, 1.0, aval.shape).astype(aval.dtype)
    return jnp.asarray(float(x) if aval.dtype.kind == "f" else int(x)) if aval.weak_type and not aval.ndim else x


def written_as(x: Value, text: str) -> str:
    """What is written for a result that is a number: an array of its dtype, as the program has it."""
    aval, plain = jax.typeof(x), isinstance(layout.parsed(text), ast.Constant | ast.UnaryOp)
    return f"jnp.asarray({text}, jnp.{aval.dtype.name})" if plain and not aval.shape else text


# ---- the kinds ------------------------------------------------------------------------------------------------------


def _scan(call: Structured) -> list[Statement]:
    p, (closed, carried) = call.params, contents.scan_counts(call.params)
    consts, given = call.inputs[:closed], call.inputs[closed:]
    if not p["length"]:
        raise Unspellable(call.eqn)
    counting = _counting(p["jaxpr"], closed) if len(given) == carried == len(call.outputs) else None
    if counting is not None and getattr(given[0], "weak_type", True):
        ends = [ast.Constant(int(given[0])), ast.Constant(int(given[0]) + p["length"])]
        return _counted(call, counting, consts, given, ends, call.outputs[1:], 2)
    rows = [jax.lax.index_in_dim(x, -1 if p["reverse"] else 0, keepdims=False) for x in given[carried:]]
    body = call.callee(p["jaxpr"], consts, [*given[:carried], *rows])
    if call.place:
        flat, every = _flat("carry", carried), _flat("", len(body.ends) - carried)
        paths: list[Path] = [(k, *path) for k, of in enumerate((flat, every)) for _, path in of]
        body = body._replace(leaves=[*flat, *_flat("x", len(rows))], results=paths)
    carry, row = _group(body.leaves, range(carried)), _group(body.leaves, range(carried, len(given)))
    pairs = [*enumerate(body.results)]
    results = [
        Group([i for i, path in pairs if path[0] == k], [path[1:] for _, path in pairs if path[0] == k]) for k in (0, 1)
    ]
    parameters = [("carry" if carried else "_", carry), ("x" if rows else "_", row)]
    options = {key: p[key] for key, plain in (("reverse", False), ("unroll", 1)) if p[key] != plain}
    read = ValueSet(x for each in body.entries for x in each.inputs) | ValueSet(body.ends)
    if call.place and len(body.ends) == carried and read.isdisjoint(body.given[carried:]):
        parameters, results = [("_", Group(row.positions[:1], [()][: len(rows)])), parameters[0]], results[:1]
        name, first, options = "fori_loop", [ast.Constant(0), ast.Constant(p["length"])], {}
        texts = [call.structure(given, carry)]
    elif carried or not rows or options or not (call.place or _is_of_loops(p["jaxpr"])):
        name, first, texts = "scan", [], [call.structure(given, carry), call.structure(given, row)]
        options |= {} if rows else {"length": p["length"]}
    else:
        name, first, texts = "map", [], [call.structure(given, row)]
        parameters, results = parameters[1:], results[1:]
    function, of = call.function(body, consts, parameters, results)
    return [function, call.statement(_applied(name, [*first, of, *texts], options), call.outputs, results)]


def _flat(name: str, count: int) -> list[Leaf]:
    """So many values as one parameter: a tuple, if they are several."""
    return [(name, ())] if count == 1 else [(name, (i,)) for i in range(count)]


def _while(call: Structured) -> list[Statement]:
    p = call.params
    first, closed = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    consts, given = call.inputs[first:closed], call.inputs[closed:]
    if p["cond_jaxpr"].out_avals[0].shape:  # by `vmap` of what is tested
        raise Unspellable(call.eqn)
    if _is_of_loops(p["cond_jaxpr"]):
        counting = _counting(p["body_jaxpr"], p["body_nconsts"], 1)
        if counting is None or first:
            raise Unspellable(call.eqn)
        ends = [call.text(x) for x in given[:2]]
        return _counted(call, counting, consts, [given[0], *given[2:]], ends, call.outputs[2:], 1)
    functions = (p["cond_jaxpr"], call.inputs[:first]), (p["body_jaxpr"], consts)
    return _repeated(call, *functions, given, call.outputs, "jax.lax.while_loop")


def _repeated(
    call: Structured,
    test: tuple[JaxProgram, Values],
    body: tuple[JaxProgram, Values],
    given: Values,
    outputs: Sequence[Any],
    name: str,
) -> list[Statement]:
    """What runs `body` while `test` holds, each a program and what it closes over, by a function of this `name`."""
    changed = call.callee(*body, given)
    if call.place:
        flat = _flat("carry", len(given))
        changed = changed._replace(leaves=flat, results=[path for _, path in flat])
    group = _group(changed.leaves, range(len(given)))
    if [*changed.results] != [*group.paths]:
        raise Unspellable(call.eqn)
    advance, advances = call.function(changed, body[1], [("carry", group)], [group])
    hold, holds = call.function(call.callee(*test, given), test[1], [("carry", group)], [Group([0], [()])], "test")
    args = [ast.Name(holds, ast.Load()), ast.Name(advances, ast.Load()), call.structure(given, group)]
    return [hold, advance, call.statement(ast.Call(layout.parsed(name), args, []), outputs, [group])]


def _counting(program: JaxProgram, closed: int, others: int = 0) -> Any | None:
    """The program of a round of `jax.lax.fori_loop` without the counting; None for any other. `others`: so many values after the
    number of the round are not the user's."""
    jaxpr: Any = contents.open_jaxpr(program)
    source = ran_by.source_of(program)
    first = [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "add" and eqn.outvars == jaxpr.outvars[:1]]
    if (
        len(first) != 1
        or first[0].invars[0] not in jaxpr.invars[closed : closed + 1]
        or ran_by.places(first[0], source)
    ):
        return None
    rest = [eqn for eqn in jaxpr.eqns if eqn is not first[0]]
    one, info = first[0].invars[1], jaxpr.debug_info
    if not isinstance(one, Literal) or one.val != 1 or info.arg_names is None or info.result_paths is None:
        return None

    def own(of: Sequence[Any]) -> tuple[Any, ...]:
        return (*of[: closed + 1], *of[closed + 1 + others :])

    info = info._replace(arg_names=own(info.arg_names), result_paths=info.result_paths[1 + others :])
    return jaxpr.replace(eqns=rest, invars=own(jaxpr.invars), outvars=jaxpr.outvars[1 + others :], debug_info=info)


def _counted(
    call: Structured, program: Any, consts: Values, given: Values, ends: Sequence[ast.expr], outputs: Values, outer: int
) -> list[Statement]:
    """`jax.lax.fori_loop`. `outer`: how deep what its function gives is in what that became."""
    body = call.callee(program, consts, given)
    state = _group(body.leaves, range(1, len(given)))
    results = Group(range(len(body.ends)), [path[outer:] for path in body.results])
    if [*results.paths] != [*state.paths]:
        raise Unspellable(call.eqn)
    function, of = call.function(body, consts, [("i", Group([0], [()])), ("state", state)], [results])
    expression = _applied("fori_loop", [*ends, of, call.structure(given, state)])
    return [function, call.statement(expression, outputs, [results])]


def _closed_over(programs: Sequence[JaxProgram]) -> int:
    """How many of the first inputs branches close over. JAX has no names for inputs if several branches close over one array:
    then each parameter is an array, if functions say so."""
    for program in programs:
        if names := contents.open_jaxpr(program).debug_info.arg_names:
            return next((i for i, name in enumerate(names) if name), len(names))
    codes = [ran_by.function_in(program) for program in programs]
    counts = {
        (len(contents.open_jaxpr(program).invars) - len(parameters_of(code)))
        for program, code in zip(programs, codes, strict=True)
        if code
    }
    if (
        len(counts) != 1
        or None in codes
        or not 0 <= min(counts) <= max(len(code.co_freevars) for code in codes if code)
    ):
        raise Unspellable(programs)
    return counts.pop()


def _cond(call: Structured) -> list[Statement]:
    programs: Sequence[JaxProgram] = call.params["branches"]
    closed = len(call.inputs) - 1 if call.place else _closed_over(programs)
    consts, given = call.inputs[1 : 1 + closed], call.inputs[1 + closed :]
    bodies = [call.callee(program, consts, given, at_once=True) for program in programs]
    ends = range(len(bodies[0].ends))
    alone = [(str(i), ()) for i in range(len(given))], [(i,) for i in ends] if len(ends) > 1 else [()]
    leaves, paths = next(((each.leaves, each.results) for each in bodies if each.results), alone)
    parameters, results = parameters_in(leaves), Group(range(len(paths)), paths)
    if len(bodies[0].ends) != len(paths):
        raise Unspellable(call.eqn)
    for each in (each for each in bodies if each.results):
        if [group.paths for group in parameters_in(each.leaves)] != [group.paths for group in parameters]:
            raise Unspellable(call.eqn)
        if [*each.results] != [*paths]:
            raise Unspellable(call.eqn)
    chosen, truth = call.choice()
    hints = ("false_branch", "true_branch") if truth else ["branch"] * len(bodies)
    functions = [
        call.function(each, consts, [("x", group) for group in parameters], [results], hint)
        for each, hint in zip(bodies, hints, strict=True)
    ]
    texts = [call.structure(given, group) for group in parameters]
    if truth:
        functions.reverse()
        expression = _applied("cond", [chosen, *(of for _, of in functions), *texts])
    else:
        branches = ast.List([ast.Name(of, ast.Load()) for _, of in functions], ast.Load())
        expression = _applied("switch", [chosen, branches, *texts])
    return [*(statement for statement, _ in functions), call.statement(expression, call.outputs, [results])]


def _reversible(call: Structured) -> list[Statement]:
    """A loop of TensorFlow's whose rounds are not known, which goes backward too: by a function of the prelude."""
    jaxpr: Any = contents.open_jaxpr(call.params["call_jaxpr"])
    if not ran_by.source_of(jaxpr).startswith(loops.__file__) or not call.place:
        raise Unspellable(call.eqn)
    (loop,) = jaxpr.eqns
    known, p = dict(zip(jaxpr.invars, call.inputs, strict=True)), loop.params
    inputs = [v.val if isinstance(v, Literal) else known[v] for v in loop.invars]
    first, closed = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    test, body = contents.open_jaxpr(p["cond_jaxpr"]), contents.open_jaxpr(p["body_jaxpr"])
    after = _without(body, p["body_nconsts"])
    functions = (
        (_without(test, first), inputs[:first]),
        (after.replace(outvars=after.outvars[1:]), inputs[first:closed]),
    )
    statements = _repeated(call, *functions, inputs[closed + 1 :], call.outputs[1:], "while_loop")
    call.writer.code.needs("while_loop")  # not where the loop cannot be written
    return statements


def _without(jaxpr: Any, i: int) -> Any:
    """A function that does not take its parameter `i`, which nothing that it is for reads."""
    own, info = [*jaxpr.invars[:i], *jaxpr.invars[i + 1 :]], jaxpr.debug_info
    equations = [eqn for eqn in jaxpr.eqns if jaxpr.invars[i] not in eqn.invars]
    return jaxpr.replace(invars=own, eqns=equations, debug_info=info._replace(arg_names=None, result_paths=None))


_RULES = {"custom_vjp_call": _reversible, "scan": _scan, "while": _while, "cond": _cond}


def _group(leaves: Sequence[Leaf], positions: Sequence[int]) -> Group:
    """Values that are parts of one parameter."""
    if len({leaves[i][0] for i in positions}) > 1:
        raise Unspellable(leaves)
    return Group(positions, [leaves[i][1] for i in positions])


def _is_of_loops(program: JaxProgram) -> bool:
    """Whether a function is of the file in which JAX has its loops: that which `map` or `fori_loop` makes."""
    return "_src/lax/control_flow" in ran_by.source_of(program)


def _applied(name: str, args: Sequence[str | ast.expr], options: Mapping[str, Any] | None = None) -> ast.expr:
    keywords = [ast.keyword(key, ast.Constant(x)) for key, x in (options or {}).items()]
    given = [ast.Name(arg, ast.Load()) if isinstance(arg, str) else arg for arg in args]
    return ast.Call(layout.parsed(f"jax.lax.{name}"), given, keywords)
