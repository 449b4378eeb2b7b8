"""How one name is computed from another, read from the user's source text.

The tape has operations, not the Python between them. Where a path leaves the recording, into NumPy, a thread or a part that
was not recorded, only the text of the program tells where: `SourceText` reads the function (or cell) around a ``with`` block as
assignments from names to names. It is a reading, not a run: it gives what is likely, where the tape gives nothing.
"""

from __future__ import annotations

import ast
import contextlib
import linecache
import re
from collections.abc import Iterator, Sequence, Set
from types import CodeType
from typing import Any, NamedTuple

import jax
import numpy as np

from ...jaxprs.types import Where
from ...places import Place, SourceLine, line_of
from ...tf.values.tensor import Tensor
from ...tf.values.variable import Variable
from .listing import Variables

_MUTATORS = {"append", "extend", "insert", "add", "put", "update", "setdefault", "assign"}
KERAS_GIVES_NUMPY = ("python: predict", "python: get_weights")
# What the text of a statement tells.
_SIGNS = {
    # it has something run by another thread
    "thread": re.compile(r"\bThread\(|Executor\(|\.submit\(|to_thread\(|run_in_executor\(|\.result\(\)"),
    # what leaves a tape for NumPy or Python
    "python": re.compile(r"\bnp\.|\bnumpy\b|\bmath\.|\bfloat\(|\bint\(|\.numpy\(|\.item\(|\.tolist\(|\bscipy\."),
    # it makes an array, if nothing in it leaves the tape
    "array": re.compile(r"\b(?:tf|jnp|jax)\."),
    # it may be only the shape of something that enters
    "shape": re.compile(r"_like\(|\bshape\b|\.ndim\b|\blen\(|\brank\(|\bsize\b|\.dtype\b"),
    # what leaves may be a decision, which has no gradient in any case
    "choice": re.compile(r"[<>]|[=!]=|\bint\(|\bbool\(|\bround\(|\bsign\(|\barg(?:max|min|sort)\(|\bfloor\(|\bceil\("),
    # it calls a method of Keras that gives NumPy arrays or Python's numbers
    "python: predict": re.compile(r"\.(fit|predict|evaluate|(?:predict|test|train)_on_batch)\("),
    "python: get_weights": re.compile(r"\.get_weights\("),
    # it changes a shape
    "shaping": re.compile(r"\bNone\b|newaxis|reshape|expand_dims|_dims\b|\.T\b"),
}


# What Python and NumPy make, which no tape records.
PYTHON_VALUES = (np.ndarray, np.generic, float, int, list)
# What may run or not.
_ARMS = {ast.If: ("body", "orelse"), ast.ExceptHandler: ("body",), ast.match_case: ("body",)}
_ARMS |= dict.fromkeys((ast.For, ast.AsyncFor, ast.While), ("body",))
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LEAVES = (ast.Return, ast.Break, ast.Continue)  # then the rest may not run
_BINDING = (ast.Name, ast.Tuple, ast.List)  # what an assignment binds anew; of anything else it changes what that holds


class Assignment(NamedTuple):
    """A statement that binds (or changes) `names`, computed from `uses`."""

    text: SourceText
    names: frozenset[str]
    uses: frozenset[str]
    line: SourceLine
    code: str  # of a function, a loop or a `with` its head
    changes: bool  # what a name holds, rather than binding it anew
    end: int  # its last line
    arms: tuple[range, ...]  # the lines of the branches that contain it; none for one in an expression
    literal: str | None = None  # the number or the list of numbers that it binds, if it is one
    function: str | None = None  # the function that contains it, if that is not the one in question
    defines: bool = False  # a function: its text has not run there

    def says(self, *signs: str) -> bool:
        """Whether its text has one of these `_SIGNS`."""
        return any(sign_in(self.code, sign) for sign in signs)

    @property
    def inside(self) -> bool:
        """Whether it stands in the tape's block."""
        return self.text.block is not None and self.line.number in self.text.block

    def holds(self, line: SourceLine | None) -> bool:
        return line is not None and line.file == self.line.file and self.line.number <= line.number <= self.end


class SourceText:
    """The source text around one place in the user's code, if it can be read; `asked` is its line that runs now, of those at
    `places`: after it nothing has run. `ran` are the lines of files that are known to have run, `values` what names hold now."""

    def __init__(self, where: Where, places: Sequence[Place], ran: Set[tuple[str, int]], values: Variables):
        self.assignments: list[Assignment] = []
        self.block: range | None = None  # the lines of the `with` statement's body
        self.scope, line = scope_of(where), line_of(where)
        asked = (line_of(place) for place in places if scope_of(place) == self.scope)
        self.asked = next((line.number for line in asked if line is not None), None)
        self._scope: ast.AST = ast.Module([], [])
        self._values = values if self.asked is not None else {}
        if where is None or line is None:
            return
        self._file, self._lines = line.file, linecache.getlines(line.file)
        self._ran = [number for file, number in ran if file == line.file]
        with contextlib.suppress(SyntaxError):  # a notebook's magic, or a file that was changed since
            self._scope = _scope(ast.parse("".join(self._lines)), where[0])
        self.block = self.span_at(line.number)
        for node, function, arms in _walk(self._scope):
            assignments = list(self._assignments(node, function, arms))
            # what an inner function binds is local to it unless declared otherwise; what it mutates is shared
            self.assignments += assignments if function is None else [a for a in assignments if a.changes]

    def span_at(self, number: int) -> range | None:
        """The lines of the body of the ``with`` statement whose head is at that line."""
        for node in ast.walk(self._scope):
            if isinstance(node, (ast.With, ast.AsyncWith)):
                first = node.body[0].lineno
                if node.lineno <= number < max(first, node.lineno + 1):
                    return range(first, (node.body[-1].end_lineno or number) + 1)
        return None

    def of(self, name: str, line: int | None = None) -> list[Assignment]:
        """The statements that bind or change `name`, the last first: all of them, or those that a use at `line` may depend on.
        One in a branch counts only if it is seen that the branch ran."""
        assignments = sorted((a for a in self.assignments if name in a.names), key=lambda a: -a.line.number)
        before = [a for a in assignments if line is not None and a.line.number <= line]
        last = next((i for i, a in enumerate(before) if not a.changes and self._certain(a)), len(before) - 1)
        # in a loop, a use may depend on what is below it, too
        reaching = before[: last + 1] if any(not a.changes for a in before) else assignments
        return [a for a in reaching if self._certain(a) or self._bound(name, [b for b in reaching if b is not a])]

    def _certain(self, statement: Assignment) -> bool:
        """Whether a statement is in no branch, or something else in its branch has run."""
        return all(any(line in arm for line in self._ran) for arm in statement.arms)

    def _bound(self, name: str, others: Sequence[Assignment]) -> bool:
        """Whether only a statement can have given `name` its value, and none of the `others`."""
        arguments = getattr(self._scope, "args", None)
        if not others:
            return arguments is None or all(a.arg != name for a in ast.walk(arguments) if isinstance(a, ast.arg))
        value = self._values.get(name)
        return value is not None and not any(self._may_give(value, other) for other in others)

    def _may_give(self, value: Any, statement: Assignment) -> bool:
        """Whether a name may have a value from a statement."""
        if statement.literal is not None:
            return statement.literal == repr(value)
        if not isinstance(value, PYTHON_VALUES):
            return isinstance(value, Variable) or "Variable(" not in statement.code
        arrays = (isinstance(self._values.get(used), (jax.Array, Tensor)) for used in statement.uses)
        return statement.says("python") or not (statement.says("array") or any(arrays))

    def sources(self) -> list[tuple[str, frozenset[str]]]:
        """What the call of ``explain`` has as its sources, and the names in each; nothing where that is not seen."""
        calls = [n for n in ast.walk(self._scope) if isinstance(n, ast.Call)]
        asking = [call for call in calls if getattr(call.func, "attr", "") == "explain"]
        asking = [call for call in asking if call.lineno <= (self.asked or 0) <= (call.end_lineno or 0)]
        arguments = [x for c in asking for x in (*c.args[1:], *(k.value for k in c.keywords if k.arg == "sources"))]
        if len(arguments) != 1:
            return []
        parts = arguments[0].elts if isinstance(arguments[0], (ast.List, ast.Tuple)) else arguments
        return [(ast.unparse(part), _used([part])) for part in parts]

    def _assignments(self, node: ast.AST, function: str | None, arms: tuple[range, ...]) -> Iterator[Assignment]:
        for targets, value in _bindings(node):
            if names := frozenset().union(*map(_dotted, targets)):
                changes = isinstance(node, (ast.Call, ast.AugAssign)) or not isinstance(targets[0], _BINDING)
                first: int = node.lineno  # type: ignore[attr-defined]
                end = getattr(node, "end_lineno", None) or first
                defines = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
                head = first if defines else max(getattr(part, "end_lineno", first) for part in (*targets, *value))
                code, scope = "".join(self._lines[first - 1 : head]), getattr(self._scope, "name", "<module>")
                line = SourceLine(self._file, first, self._lines[first - 1].strip(), scope)
                whole = Assignment(self, names, _used(value), line, code, changes, end, arms, None, function, defines)
                yield from _alternatives(whole, value)


def _alternatives(statement: Assignment, value: Sequence[ast.AST]) -> Iterator[Assignment]:
    """A statement, or of ``a if test else b`` the two that it may be."""
    if isinstance(value[0], ast.IfExp):
        for part in (value[0].body, value[0].orelse):
            one = statement._replace(uses=_used([part]), code=ast.unparse(part), arms=(*statement.arms, range(0)))
            yield from _alternatives(one, [part])
    else:
        with contextlib.suppress(ValueError):  # what is added to a list is not what its name holds
            literal = None if statement.changes else repr(ast.literal_eval(value[0]))
            statement = statement._replace(literal=literal)
        yield statement


def sign_in(code: str, sign: str) -> str | None:
    """What a text has of one of the `_SIGNS`; of a method its name."""
    match = _SIGNS[sign].search(code)
    return match and match[match.re.groups]


def scope_of(where: Where) -> tuple[str, int, str] | None:
    """Which function or module it is that runs there."""
    return None if where is None else (where[0].co_filename, where[0].co_firstlineno, where[0].co_qualname)


def _scope(tree: ast.Module, code: CodeType) -> ast.AST:
    """The function or module in `tree` that `code` is of; an empty one where it is not there."""
    if code.co_name == "<module>":
        return tree
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTIONS):
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            if first == code.co_firstlineno and getattr(node, "name", "<lambda>") == code.co_name:
                return node
    return ast.Module([], [])


def _walk(
    scope: ast.AST, function: str | None = None, arms: tuple[range, ...] = ()
) -> Iterator[tuple[ast.AST, str | None, tuple[range, ...]]]:
    """The nodes in `scope`, each with the function inside it to which it belongs, and the branches that contain it."""
    for field, part in ast.iter_fields(scope):
        nodes = [node for node in (part if isinstance(part, list) else [part]) if isinstance(node, ast.AST)]
        branches = (*arms, _lines(nodes)) if field in _ARMS.get(type(scope), ()) and nodes else arms
        for i, node in enumerate(nodes):
            yield node, function, branches
            inside = isinstance(node, _FUNCTIONS)
            yield from _walk(node, getattr(node, "name", "<lambda>") if inside else function, branches)
            if isinstance(node, ast.If) and any(isinstance(x, _LEAVES) for x in ast.walk(node)) and nodes[i + 1 :]:
                branches = (*branches, _lines(nodes[i + 1 :]))


def _lines(nodes: Sequence[Any]) -> range:
    return range(nodes[0].lineno, nodes[-1].end_lineno + 1)


def _bindings(node: ast.AST) -> Iterator[tuple[Sequence[ast.AST], Sequence[ast.AST]]]:
    """(what is bound, what it is computed from) for each binding that a node makes."""
    match node:
        case ast.With(items=items) | ast.AsyncWith(items=items):
            yield from (([item.optional_vars], [item.context_expr]) for item in items if item.optional_vars)
        case ast.FunctionDef(name=name, body=body) | ast.AsyncFunctionDef(name=name, body=body):
            yield [ast.Name(name)], list(body)
        case ast.Call(func=ast.Attribute(value=owner, attr=attr), args=args, keywords=keywords):
            if attr.split("_")[0] in _MUTATORS or attr == "start":
                yield [owner], [*args, *(k.value for k in keywords), owner]
        case ast.stmt() | ast.NamedExpr():
            value = getattr(node, "value", None) or getattr(node, "iter", None)
            targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
            if value and targets[0]:
                changes = isinstance(node, ast.AugAssign)
                yield targets, [value, *(t for t in targets if changes or not isinstance(t, _BINDING))]


def _dotted(node: ast.AST) -> frozenset[str]:
    """The names that an assignment to `node` binds: of ``self.w[0]`` both ``self.w`` and ``self``."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return frozenset().union(*map(_dotted, node.elts))
    if isinstance(node, (ast.Subscript, ast.Starred)):
        return _dotted(node.value)
    if isinstance(node, ast.Attribute):
        inner = _dotted(node.value)
        return inner | {f"{name}.{node.attr}" for name in inner}
    return frozenset({node.id}) if isinstance(node, ast.Name) else frozenset()


def _used(values: Sequence[ast.AST]) -> frozenset[str]:
    nodes = (node for value in values for node in ast.walk(value) if isinstance(node, (ast.Name, ast.Attribute)))
    return frozenset().union(*map(_dotted, nodes))


def root(name: str) -> str:
    """The part of an expression like ``params['w'][0]`` that an assignment binds: ``params``; ``model.w`` keeps its dot."""
    return name.partition("[")[0]
