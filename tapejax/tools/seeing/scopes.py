"""Functions of printed code while they are written: statements over numbered values, then names and text.

A value is a `Key`, an identifier that no user's code has. When a function is known as a whole, a temporary that is used once goes
to where it is used, and the others get the names that the user's code has for them.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from ...places import Place, SourceLine
from ...tape.recording import next_number
from . import layout
from .layout import INDENT, WIDTH, names_in
from .listing import unused

Key: TypeAlias = str
_MARK = "ж"


def new_key() -> Key:
    return f"{_MARK}{next_number():09}"  # all of one length: texts with them are compared, which are broken into lines


def is_key(name: str) -> bool:
    return name.startswith(_MARK)


def keys_of(expression: ast.expr) -> Counter[Key]:
    """The keys in an expression, without those that its lambdas bind."""
    nodes = list(ast.walk(expression))
    bound = {arg.arg for node in nodes if isinstance(node, ast.Lambda) for arg in node.args.args}
    return Counter(n.id for n in nodes if isinstance(n, ast.Name) and is_key(n.id) and n.id not in bound)


def names_used(function: Definition) -> Iterator[Key]:
    """The names and keys in a function, in the order in which they are read when it runs."""

    def calls(node: ast.AST | None) -> Iterator[Key]:
        for child in () if node is None else ast.iter_child_nodes(node):
            if not isinstance(node, ast.Call) or child is not node.func:
                yield from calls(child)
        if isinstance(node, ast.Call):
            yield from calls(node.func)
        elif isinstance(node, ast.Name):
            yield node.id

    for s in function.statements:
        yield from calls(s.expression) if s.function is None or s.loop else ()
        yield from names_used(s.function) if s.function is not None else ()
    yield from calls(function.result)


@dataclass
class Loop:
    """How the rounds of a loop are written. Its function takes what is carried, and gives that for the next round and what is
    appended to lists; so many there are of each. `target`: what a round takes of the rows, the other parameters."""

    target: ast.expr
    carried: int
    lists: int


@dataclass
class Statement:
    """``outs = expression``; or the definition of a local function, of which `outs` has the key; or a loop, whose round is the
    function: `outs` are what is carried, lists, and what else is used of the last round, the expression is what it goes over."""

    outs: list[Key | None]
    expression: ast.expr = ast.Constant(None)
    function: Definition | None = None
    effects: bool = False
    pattern: str = ""  # how results are taken apart: "{0}, ({1}, {2})"
    origins: tuple[SourceLine, ...] = ()  # the recorded lines that it came of
    pair: tuple[int, int] | None = None  # the same for those of one ``a, b = f(x), g(x)``
    place: Place | None = None  # the instruction of the function around it that ran it
    loop: Loop | None = None

    def keys(self) -> Counter[Key]:
        """What it uses."""
        if self.loop is not None and self.function is not None:
            changed = self.outs[: self.loop.carried + self.loop.lists]
            return keys_of(self.expression) + self.function.free() + Counter(out for out in changed if out)
        return keys_of(self.expression) if self.function is None else self.function.free()


@dataclass
class Definition:
    """Parameters, statements and a result. Other keys in it are values of the scopes around it."""

    parameters: list[Key]
    statements: list[Statement]
    result: ast.expr
    hint: str = "f"
    comment: str = ""
    origins: tuple[SourceLine, ...] = ()  # of its result
    head: SourceLine | None = None  # where it was defined
    defined: bool = False  # whether it is to have a name, though it could be a lambda
    checkpoint: bool = False  # whether a derivative computes it again

    def free(self) -> Counter[Key]:
        made = {*self.parameters, *(out for s in self.statements for out in s.outs)}
        used = sum((s.keys() for s in self.statements), keys_of(self.result))
        return Counter({key: n for key, n in used.items() if key not in made})

    def forwarded(self) -> ast.Call | None:
        """The call of another function with names that is all there is, its results in their order."""
        result = self.result
        if len(self.statements) == 1 and isinstance(result, ast.Tuple):
            if [getattr(x, "id", None) for x in result.elts] == self.statements[0].outs:
                result = self.statements[0].expression
        elif self.statements:
            return None
        match result:
            case ast.Call(func=ast.Name(), args=args, keywords=[]) if all(isinstance(arg, ast.Name) for arg in args):
                return result
        return None

    def is_short(self) -> bool:
        """Whether all there is is one operation of parameters, or a parameter."""
        operations = [node for node in ast.walk(self.result) if isinstance(node, (ast.Call, ast.BinOp))]
        return not self.statements and len(operations) <= 1 and keys_of(self.result) == Counter(self.parameters)

    def as_expression(self) -> ast.expr:
        """A function without statements: what it calls, if it hands its parameters on, else a lambda."""
        match self.result:
            case ast.Call(func=called, args=args, keywords=[]):
                names = [getattr(arg, "id", None) for arg in args]
                if names == self.parameters and keys_of(called).keys().isdisjoint(names):
                    return called
        return ast.Lambda(layout.arguments([ast.arg(key) for key in self.parameters]), self.result)


@dataclass
class KeyNames:
    """What keys are called. `hints`: the names that the user's code has for them; `given`: those that they got; `meanings`: the
    expressions that are written in place of others."""

    hints: dict[Key, str] = field(default_factory=dict)
    meanings: dict[Key, ast.expr] = field(default_factory=dict)
    given: dict[Key, str] = field(default_factory=dict)
    pending: dict[Key, ast.expr] = field(default_factory=dict)  # meanings to come, for the length of lines
    arguments: dict[Key, Key] = field(default_factory=dict)  # by parameters, what is handed over for them
    width: int = WIDTH  # of lines

    def hint(self, key: Key) -> str | None:
        """What the user's code calls `key`, or what is handed over for it."""
        if key in self.hints or key not in self.arguments:
            return self.hints.get(key)
        argument = self.arguments[key]
        argument = getattr(self.meanings.get(argument), "id", argument)
        return self.given.get(argument) or (self.hint(argument) if is_key(argument) else argument)

    def used(self, keys: Iterable[Key]) -> set[str]:
        """The names in what is written for `keys`, of those that have names."""
        return {self.given.get(key, key) for key in self.roots(keys)}

    def roots(self, keys: Iterable[Key]) -> set[Key]:
        """The keys, with those in what is written for them."""
        found = [*keys]
        for key in found:  # which grows on the way
            found += names_in(self.meanings[key]) if key in self.meanings else ()
        return {*found}

    def expressions(self) -> dict[str, ast.expr]:
        """What is written in place of each key."""
        found: dict[str, ast.expr] = {key: ast.Name(name, ast.Load()) for key, name in self.given.items()}

        def resolved(key: Key) -> ast.expr:
            if key not in found and key in self.meanings:
                x = self.meanings[key]
                found[key] = layout.replaced(x, {name: resolved(name) for name in names_in(x) if is_key(name)})
            return found.get(key, ast.Name(key, ast.Load()))

        for key in self.meanings:
            resolved(key)
        return found

    def likely(self, expression: ast.expr) -> ast.expr:
        """An expression with what is not named yet as it is likely to be."""
        for _ in range(2):  # a meaning has keys, too
            names = (getattr(node, "id", None) or getattr(node, "arg", None) for node in ast.walk(expression))
            keys = {name for name in names if isinstance(name, str) and is_key(name)}
            expression = layout.replaced(expression, {key: self._likely(key) for key in keys})
        return expression

    def shown(self, expression: ast.expr) -> str:
        """The text of an expression with likely names."""
        return layout.text_of(self.likely(expression))

    def _likely(self, key: Key) -> ast.expr:
        text = self.given.get(key) or self.hint(key) or "t0"
        return self.meanings.get(key) or self.pending.get(key) or ast.Name(text, ast.Load())


# ---- what is used once is written where it is used -------------------------------------------------------------------


def inline(function: Definition, names: KeyNames, depth: int = 1, values: bool = True, called: bool = True) -> None:
    """Writes temporaries of `function` where they are used, up to the width of a line. `values`: not only local functions;
    `called`: whether it is no round of a loop."""
    done: list[Statement] = []
    todo = list(function.statements)
    while todo:
        s = todo.pop(0)
        out = (s.outs[0] if len(s.outs) == 1 else None) or ""
        kept = bool(s.effects or s.pattern or s.function is None and (not values or out in names.hints))
        uses = [] if kept else [i for i, t in enumerate(todo) if t.keys()[out]]
        total = sum(todo[i].keys()[out] for i in uses) + keys_of(function.result)[out]
        expression: ast.expr | None = s.expression
        if s.loop is not None and s.function is not None:
            inline(s.function, names, depth + 1, values, called=False)
            kept = True
        elif s.function is not None:
            if not total:
                continue
            inline(s.function, names, depth + 1, values)
            expression = None if s.function.statements or s.function.defined else s.function.as_expression()
        if total == 1 and out in names.arguments:  # a tree, of which parts may be used
            parts = {key for key, x in names.meanings.items() if out in names_in(x)}
            kept = kept or not all(
                keys.keys().isdisjoint(parts) for keys in (*(t.keys() for t in todo), keys_of(function.result))
            )
        if not kept and expression is not None and (total == 1 or total and isinstance(expression, ast.Name)):
            if _moved(function, todo, uses, s, expression, names, depth):
                continue
        done.append(s)
    if depth > 1 and called and done and (call := _handed_on(done[-1], function.result, names)) is not None:
        function.result, function.origins = call, (*done.pop().origins, *function.origins)
    function.statements = _paired(done)


def _paired(statements: Sequence[Statement]) -> list[Statement]:
    """The statements, those of one ``a, b = f(x), g(x)`` together."""
    found: list[Statement] = []
    for pair, group in itertools.groupby(statements, lambda s: s.pair):
        several = list(group)
        outs = [out for s in several for out in s.outs]
        expressions = [s.expression for s in several]
        alone = all(len(s.outs) == 1 and not (s.function or s.effects or s.pattern) for s in several)
        if pair is None or len(several) == 1 or not alone or any(keys_of(x).keys() & {*outs} for x in expressions):
            found += several
        else:
            found.append(replace(several[0], outs=outs, expression=ast.Tuple(expressions, ast.Load())))
    return found


def _handed_on(last: Statement, result: ast.expr, names: KeyNames) -> ast.expr | None:
    """``jax.grad(f, argnums=(0, 1))(x, y)``, if its results are the `result`."""
    match last.expression, result:
        case ast.Call(func=ast.Call(), args=args), ast.Tuple(elts=elts) if not last.pattern:
            outs = last.outs if len(last.outs) > 1 else [f"{last.outs[0]}[{i}]" for i in range(len(args))]
            texts = [layout.text_of(names.meanings.get(getattr(x, "id", ""), x)) for x in elts]
            return last.expression if texts == outs else None
    return None


def _moved(
    function: Definition,
    todo: list[Statement],
    uses: Sequence[int],
    moved: Statement,
    expression: ast.expr,
    names: KeyNames,
    depth: int,
) -> bool:
    """Writes `expression` in the place of what `moved` makes, if lines do not get too long by it; not in local functions."""
    (out,) = moved.outs
    assert out is not None
    origins = moved.origins if moved.function is None else (*moved.origins, *moved.function.origins)
    new = {}
    for i in uses:
        s = todo[i]
        if s.function is not None:
            return False
        changed = layout.replaced(s.expression, {out: expression})
        heads = ", ".join("_" if o is None else names.hint(o) or "t0" for o in s.outs)
        shown = layout.statement(f"{heads} = ", names.likely(changed), INDENT * depth, names.width)
        # of one line of the user's; of a function that may be among others
        own = (
            moved.origins and {*moved.origins} <= {*s.origins} and (moved.function or {*s.origins} <= {*moved.origins})
        )
        if max(map(len, shown)) > names.width or len(shown) > 1 and not own:
            return False
        new[i] = replace(s, expression=changed, origins=(*origins, *s.origins))
    result = function.result
    if keys_of(result)[out]:
        result = layout.replaced(result, {out: expression})
        shown = layout.statement("return ", names.likely(result), INDENT * depth, names.width)
        several = isinstance(result, (ast.Tuple, ast.List, ast.Dict)) or result is expression  # the whole result
        if max(map(len, shown)) > names.width or len(shown) > 1 and not several:
            return False
        function.origins = (*origins, *function.origins)
    for i, s in new.items():
        todo[i] = s
    function.result = result
    return True


# ---- names and text -------------------------------------------------------------------------------------------------


def name_all(function: Definition, names: KeyNames, reserved: set[str]) -> None:
    """Gives each key in `function` a name. `reserved`: names that have a meaning already."""
    blocked = reserved | {name for name in names_used(function) if not is_key(name)}
    blocked |= names.used(function.free())
    current: dict[str, Key] = {}  # by name: the value that has it now
    default = "t" if function.head is not None and "x" in names.hints.values() else "x"  # which is the user's then
    for key in function.parameters:
        if key not in names.meanings:
            _name(key, names, blocked | current.keys(), current, default)
    _name_statements(function, names, blocked, current, reserved, set())


def _name_statements(
    function: Definition,
    names: KeyNames,
    blocked: set[str],
    current: dict[str, Key],
    reserved: set[str],
    fixed: Set[Key],
) -> None:
    """Names what the statements of `function` make. `current`: by name the value that has it now; `fixed`: what has a name."""
    uses = [*(s.keys() for s in function.statements), keys_of(function.result)]
    last = {key: i for i, keys in enumerate(uses) for key in names.roots(keys)}
    for i, s in enumerate(function.statements):
        if s.loop is not None:
            _name_loop(s, names, blocked | {name for name, key in current.items() if last.get(key, -1) >= i}, reserved)
            current |= {names.given[out]: out for out in s.outs if out is not None}
            continue
        if s.function is not None:
            name_all(s.function, names, reserved)
        _name_lambdas(s.expression, names, reserved)
        held = {name for name, key in current.items() if last.get(key, -1) > i}
        begins = s.effects and len(s.outs) == 1 and not (s.function or s.pattern)
        start = names.given.get(getattr(s.expression, "id", "")) if begins else None
        for out in s.outs:
            if out is not None and start and names.hint(out) is None and start not in blocked | held:
                names.given[out] = start  # what a loop begins with, which has no name either
                current[start] = out
            elif out is not None and out not in fixed:
                _name(out, names, blocked | held, current, "t")
                held.add(names.given[out])
    _name_lambdas(function.result, names, reserved)


def _name_loop(s: Statement, names: KeyNames, blocked: set[str], reserved: set[str]) -> None:
    """Names what a loop binds. What is carried keeps its name where nothing reads it after it has changed."""
    round_, loop, fixed = s.function, s.loop, set[Key]()
    assert round_ is not None and loop is not None and isinstance(round_.result, ast.Tuple)
    carried, results, current = round_.parameters[: loop.carried], round_.result.elts, dict[str, Key]()
    blocked = blocked | {names.given[key] for key in carried}
    default = "t" if "x" in names.given.values() else "x"  # which is the user's then
    for key in round_.parameters[loop.carried :]:
        _name(key, names, blocked | current.keys(), current, default)
    blocked |= current.keys()
    _name_lambdas(s.expression, names, reserved)
    for i, key in enumerate(carried):
        others = [*results[:i], *results[i + 1 :]]
        for out in _holders(key, getattr(results[i], "id", ""), round_, others, names):
            if out not in fixed:
                names.given[out] = names.given[key]
                fixed.add(out)
    _name_statements(round_, names, blocked, current, reserved, fixed)


def _holders(key: Key, to: Key, round_: Definition, others: Sequence[ast.expr], names: KeyNames) -> list[Key]:
    """What may have the name of `key`, which is carried, until it is `to`; nothing, if `key` is read after that is made."""
    made = {out: i for i, each in enumerate(round_.statements) for out in each.outs if out}
    if to not in made:
        return []

    def is_read(x: Key, after: int) -> bool:
        later = round_.statements[after + 1 :]
        used = names.roots(itertools.chain(*(each.keys() for each in later), *map(keys_of, others)))
        closed = (each.function for each in round_.statements if each.function and not used.isdisjoint(each.outs))
        return x in used.union(*(names.roots(function.free()) for function in closed))

    holders, holder = list[Key](), key
    for out, at in made.items():
        if at < made[to] and names.hint(out) == names.hint(key) and not (is_read(holder, at) or is_read(out, made[to])):
            holders.append(out)
            holder = out
    return [] if is_read(holder, made[to]) else [*holders, to]


def _name(key: Key, names: KeyNames, taken: set[str], current: dict[str, Key], default: str) -> None:
    hint = names.hint(key)
    if hint is None and default == "t":
        name = next(f"t{n}" for n in itertools.count() if f"t{n}" not in taken and f"t{n}" not in current)
    else:
        name = unused(hint or default, taken)
    names.given[key] = name
    current[name] = key


def _name_lambdas(expression: ast.expr, names: KeyNames, reserved: set[str]) -> None:
    for node in ast.walk(expression):  # outer ones first
        if isinstance(node, ast.Lambda):
            own = [arg.arg for arg in node.args.args if is_key(arg.arg)]
            blocked = reserved | {n for n in names_in(node.body) if not is_key(n)} | names.used(keys_of(node))
            for key in own:
                names.given[key] = unused(names.hint(key) or "x", blocked)
                blocked.add(names.given[key])


def body(function: Definition, names: KeyNames, indent: str) -> list[str]:
    """The text of what is in `function` but its result; all keys of it have names."""
    found = names.expressions()
    text: list[str] = []
    for s in function.statements:
        if s.function is not None and s.loop is None and text and text[-1]:
            text.append("")
        text += _statement_lines(s, names, found, indent)
    return text


def lines(function: Definition, name: str, names: KeyNames, indent: str = "") -> list[str]:
    """The text of `function`, all keys of which have names."""
    inner = indent + INDENT
    result = layout.statement("return ", layout.replaced(function.result, names.expressions()), inner, names.width)
    result = layout.with_origins(result, function.origins)
    parameters = [names.given[key] for key in function.parameters]
    first, *rest = layout.definition(name, parameters, [*body(function, names, inner), *result], indent, names.width)
    (first,) = layout.with_origins([first], [function.head])
    if function.checkpoint:
        return [f"{indent}@jax.checkpoint", first, *rest]
    if function.comment and len(first) + len(function.comment) + 2 <= names.width and first.endswith(":"):
        return [*layout.with_origins([f"{first}  {function.comment}"], [function.head]), *rest]
    return [first, *rest] if not function.comment else [f"{indent}{function.comment}", first, *rest]


def _statement_lines(s: Statement, names: KeyNames, found: Mapping[str, ast.expr], indent: str) -> Iterator[str]:
    if s.loop is not None:
        yield from _loop_lines(s, names, found, indent)
        return
    if s.function is not None:
        assert s.outs[0] is not None
        yield from lines(s.function, names.given[s.outs[0]], names, indent)
        yield ""
        return
    outs = ["_" if out is None else names.given[out] for out in s.outs]
    head = re.sub(r"\((_, )*_,?\)", "_", s.pattern.format(*outs)) if s.pattern else ", ".join(outs)
    expression = layout.replaced(s.expression, found)
    if isinstance(expression, ast.Name) and expression.id == head:
        return
    if len(outs) > 1 and not s.pattern:  # Python takes it apart
        expression = layout.taken_apart(expression) or expression
    text = layout.statement(f"{head} = " if outs else "", expression, indent, names.width)
    if len(text[0]) > names.width and len(outs) > 1 and not s.pattern:
        text = layout.statement(") = ", expression, indent, names.width)
        text = [f"{indent}(", *(f"{indent}{INDENT}{out}," for out in outs), *text]
    yield from layout.with_origins(text, s.origins)


def _loop_lines(s: Statement, names: KeyNames, found: Mapping[str, ast.expr], indent: str) -> Iterator[str]:
    round_, loop, inner = s.function, s.loop, indent + INDENT
    assert round_ is not None and loop is not None and isinstance(round_.result, ast.Tuple)
    target, rows = (layout.replaced(x, found) for x in (loop.target, s.expression))
    yield from layout.with_origins(layout.header(target, rows, indent, names.width), s.origins)
    text = body(round_, names, inner)
    results = [layout.replaced(x, found) for x in round_.result.elts]
    outs = [names.given[out] for out in s.outs if out is not None]
    stop = loop.carried + loop.lists
    for name, x in zip(outs[loop.carried : stop], results[loop.carried : stop], strict=True):
        text += layout.statement("", ast.Call(layout.parsed(f"{name}.append"), [x], []), inner, names.width)
    pairs = [*zip(outs[: loop.carried], results[: loop.carried], strict=True)]
    changed = [(name, x) for name, x in pairs if getattr(x, "id", "") != name]
    if changed:
        head = ", ".join(name for name, _ in changed)
        text += layout.statement(f"{head} = ", layout.one_or_tuple([x for _, x in changed]), inner, names.width)
    yield from text
