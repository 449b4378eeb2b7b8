"""AutoGraph: a function whose control flow may depend on a traced tensor is rewritten, so that it may.

The package ``diastatic-malt`` (TensorFlow's AutoGraph for other libraries) rewrites a function's syntax tree so that each ``if``,
``while``, ``for``, ``and``, ``not`` ... is a call of an operator; the operators are in `statements`. The result is compiled under
the user's file name and line numbers, and lies in no file. Rewriting takes longer than tracing a short function, so only what
may meet a tensor in its control flow is rewritten (`needed`).
"""

from __future__ import annotations

import ast
import dis
import functools
import importlib.util
import inspect
import linecache
import threading
import traceback
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ...jaxprs import cache
from ...places import Place, serves
from ..ops import array, control_flow, graph
from ..values.conversion import is_array_like
from . import statements
from .signatures import Arguments, Keywords

__all__ = ["call", "needed", "why_not"]

Node: TypeAlias = Any  # of a syntax tree, as malt has them

INSTALLED = importlib.util.find_spec("malt") is not None


# ---- Which functions are converted ------------------------------------------------------------------------------------


def _user_function(value: Any) -> types.FunctionType | None:
    """The Python function that a call of `value` runs, if it is the user's and may be converted."""
    while isinstance(value, (types.MethodType, functools.partial)):
        value = value.__func__ if isinstance(value, types.MethodType) else value.func
    if not isinstance(value, types.FunctionType):
        value = None if isinstance(value, type) else inspect.getattr_static(type(value), "__call__", None)
    if not isinstance(value, types.FunctionType) or value.__code__.co_flags & _NO_PLAIN_FUNCTION:
        return None
    if getattr(value, graph.UNCONVERTED, False) or serves(value.__code__.co_filename):
        return None
    return value


_NO_PLAIN_FUNCTION = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


_known: weakref.WeakKeyDictionary[types.CodeType, dict[str, dict[str, Any]]] = cache.by_object()


def _known_of(code: types.CodeType) -> dict[str, Any]:
    """What is known of a function's code: its ``"facts"``, and the ``"factory"`` of the rewritten one, or why there is none."""
    return _known.setdefault(code, {}).setdefault(code.co_filename, {})  # code of two files may be equal


class _ControlFlow(NamedTuple):
    branches: bool  # whether its control flow may depend on a tensor
    names: frozenset[str]  # and attributes that it reads


def _is_pythons(test: ast.expr) -> bool:
    """Whether a condition is plainly no tensor."""
    match test:
        case ast.Constant() | ast.Call(func=ast.Name(id=("isinstance" | "issubclass" | "hasattr" | "callable"))):
            return True
        case ast.Compare(ops=ops):
            return all(isinstance(op, (ast.Is, ast.IsNot)) for op in ops)
        case ast.BoolOp(values=values):
            return all(map(_is_pythons, values))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _is_pythons(operand)
    return False


def _iterates_python(iterable: ast.expr) -> bool:
    match iterable:
        case ast.List() | ast.Tuple() | ast.Dict() | ast.Constant():
            return True
        case (
            ast.Call(func=ast.Attribute(attr=("items" | "keys" | "values")))
            | ast.Call(func=ast.Name(id=("zip" | "enumerate")))
        ):
            return True
        case ast.Call(func=ast.Name(id="range"), args=args):
            return all(isinstance(x, ast.Constant) for x in args)
    return False


def _branches(node: ast.AST) -> bool:
    match node:
        case ast.If() | ast.While() | ast.IfExp() | ast.Assert():
            return not _is_pythons(node.test)
        case ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
            return not _is_pythons(node)
        case ast.Compare(ops=[_, _, *_]):
            return True
        case ast.For():
            return not _iterates_python(node.iter)
        case ast.Call(func=ast.Name(id=("int" | "float" | "range"))):
            return not all(isinstance(x, ast.Constant) for x in node.args)
    return False


def _facts(code: types.CodeType) -> _ControlFlow | None:
    known = _known_of(code)
    if "facts" not in known:
        known["facts"] = _look_into(code)
    return known["facts"]


def _look_into(code: types.CodeType) -> _ControlFlow | None:
    try:
        # inspect.getsource would search every module first
        lines = linecache.getlines(code.co_filename)[code.co_firstlineno - 1 :]
        block = "".join(inspect.getblock(lines))
        tree = ast.parse(f"if 1:\n{block}" if block[:1].isspace() else block)  # a string in it may not be indented
    except (IndexError, SyntaxError):  # no source; part of an expression, as a lambda may be
        return None if code.co_name != "<lambda>" else _ControlFlow(True, frozenset())
    outermost: list[Any] = [each for x in tree.body for each in (x.body if isinstance(x, ast.If) else [x])]
    for each in outermost:
        each.decorator_list = []  # they ran when it was defined
    nodes = list(ast.walk(tree))
    if code.co_name not in ("<lambda>", *[getattr(x, "name", None) for x in nodes]):
        return None  # the text of another program: `python -c` and `exec` both call theirs "<string>"
    names = {x.id if isinstance(x, ast.Name) else x.attr for x in nodes if isinstance(x, (ast.Name, ast.Attribute))}
    return _ControlFlow(any(map(_branches, nodes)), frozenset(names))


def needed(fn: Callable, args: Arguments, kwargs: Keywords) -> bool:
    """Whether `fn`, or what it calls of the user's functions, has control flow that may depend on a tensor.

    Functions are followed by the names that they use: globals, closures, attributes of these, of arguments and of modules.
    """
    left: list[tuple[object, frozenset[str]]] = [(x, frozenset()) for x in (fn, *args, *kwargs.values())]
    seen: set[tuple[int, frozenset[str]]] = set()
    owners = [x for x in (getattr(fn, "__self__", None), *args, *kwargs.values()) if x is not None]
    while left:
        value, names = left.pop()
        if (id(value), names) in seen or is_array_like(value):
            continue
        seen.add((id(value), names))
        if (function := _user_function(value)) is not None:
            facts = _facts(function.__code__)
            if facts is None:
                continue
            if facts.branches:
                return True
            names = facts.names
            free = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
            here = [_cell(cell) for _, cell in free] + [function.__globals__.get(name) for name in names]
            left += [(x, names) for x in (*here, *owners, getattr(value, "__self__", None)) if x is not None]
        left += [(x, names) for x in _parts(value, names)]
    return False


def _cell(cell: types.CellType) -> object:
    return cell.cell_contents if cell != types.CellType() else None


def _parts(value: Any, names: frozenset[str]) -> list:
    """What is reached from `value` by an attribute in `names`, or lies in it."""
    if isinstance(value, (list, tuple, dict)):
        return list(value.values() if isinstance(value, dict) else value)[:100]
    if isinstance(value, types.ModuleType):
        return [] if serves(getattr(value, "__file__", None) or "<frozen ") else [vars(value).get(x) for x in names]
    if isinstance(value, (types.FunctionType, types.MethodType, type, np.ndarray)):
        return []
    held = getattr(value, "__dict__", {})
    methods = [inspect.getattr_static(type(value), name, None) for name in names]
    return [held[name] for name in names if name in held] + [x for x in methods if isinstance(x, types.FunctionType)]


# ---- Converting -------------------------------------------------------------------------------------------------------

_lock = threading.RLock()


def call(
    f: Callable, args: tuple, kwargs: Keywords | None = None, scope: statements.FunctionScope | None = None
) -> Any:
    """`f(*args, **kwargs)`, rewritten if `f` is a function of the user's. `scope` is the rewritten function that calls it."""
    kwargs = kwargs or {}
    if isinstance(f, functools.partial):
        return call(f.func, (*f.args, *args), {**f.keywords, **kwargs}, scope)
    if isinstance(f, (types.BuiltinFunctionType, type)):
        if f in (super, eval, locals, globals) and scope is not None:
            return _in_context(f, args, scope)
        return statements.BUILTINS.get(f, f)(*args, **kwargs)
    if f is array.range and any(map(statements.is_traced, (*args, *kwargs.values()))):
        return statements.Range(*args, **kwargs)
    if getattr(f, "__module__", None) in _CALLING_USERS:
        args = tuple(converted(x) if isinstance(x, _FUNCTIONS) else x for x in args)
        kwargs = {name: converted(x) if isinstance(x, _FUNCTIONS) else x for name, x in kwargs.items()}
    return converted(f)(*args, **kwargs)


# Modules whose functions call those of the user's that they are given.
_CALLING_USERS = (control_flow.__name__, control_flow.__name__.replace("ops.control_flow", "programs.distribute"))
_FUNCTIONS = (types.FunctionType, types.MethodType)


def _in_context(f: Callable, args: tuple, scope: statements.FunctionScope | None) -> Any:
    """What `f` gives where the user wrote it, and not in one of the functions that the rewritten one consists of."""
    from malt.operators import py_builtins

    if f in (super, eval):
        return getattr(py_builtins, f"{f.__name__}_in_original_context")(f, args, scope)
    return getattr(py_builtins, f"{f.__name__}_in_original_context")(scope)


def converted(f: Callable) -> Callable:
    """`f` rewritten; `f` itself where it is not a function of the user's, or cannot be rewritten (then `why_not` says why)."""
    function = _user_function(f)
    if function is None or hasattr(function, _ARTIFACT) or _facts(function.__code__) is None:
        return f
    known = _known_of(function.__code__)
    if "factory" not in known:
        with _lock:
            try:
                known["factory"] = _transpiler().factory(function)
            except Exception as error:  # if rewriting fails in any way, the function may still run unchanged
                known["factory"] = f"AutoGraph could not convert {function.__name__!r}: {error}"
    factory = known["factory"]
    if isinstance(factory, str):
        return f
    defaults = function.__defaults__, function.__kwdefaults__
    new = factory.instantiate(function.__globals__, function.__closure__ or (), *defaults)
    new.__name__, new.__qualname__ = function.__name__, function.__qualname__
    new.__code__ = new.__code__.replace(co_name=function.__name__, co_qualname=function.__qualname__)
    _note_origins(new.__code__, function.__code__)
    bound = getattr(f, "__self__", None) if isinstance(f, types.MethodType) else None if f is function else f
    _artifact(new)  # so that a rewritten lambda is not rewritten again
    return new if bound is None else types.MethodType(new, bound)


_ARTIFACT = "autograph_artifact"


def _artifact(function: Callable) -> Callable:
    setattr(function, _ARTIFACT, True)
    return function


def _note_origins(code: types.CodeType, written: types.CodeType, is_part: bool = False) -> None:
    """Notes of rewritten code the user's function in which it stands, and whether it is made of a part of that, as of a loop."""
    _known_of(code)["origin"] = written, is_part
    own = {(x.co_name, x.co_firstlineno): x for x in written.co_consts if inspect.iscode(x)}
    for inner in filter(inspect.iscode, code.co_consts):
        function = own.get((inner.co_name, inner.co_firstlineno))
        _note_origins(inner, function or written, function is None)


def as_written(places: Iterable[Place]) -> list[Place]:
    """Where running functions are, the outermost first, in the functions that the user wrote, not in those made of them."""
    written_places: list[Place] = []
    for code, instruction in places:
        written, is_part = _known.get(code, {}).get(code.co_filename, {}).get("origin", (None, False))
        if written is None:
            written_places.append((code, instruction))
            continue
        while is_part and any(before is written for before, _ in written_places):
            is_part = written_places.pop()[0] is not written
        written_places.append((written, _instruction(written, [*code.co_positions()][instruction // 2])))
    return written_places


def _instruction(code: types.CodeType, position: tuple[int | None, ...]) -> int:
    """The last instruction at a position; where there is none, as for a loop, the last of its line that begins one, or a call."""
    steps = [*dis.get_instructions(code)]
    there = [step.offset for step in steps if step.positions == position]
    line = [step.offset for step in steps if step.positions and step.positions.lineno == position[0]]
    begun = [step.offset for step in steps if step.offset in line and step.opname in _BEGINNING]
    return (there or begun or [-1])[-1]


_BEGINNING = frozenset(("GET_ITER", "CALL"))


def _transpiler() -> Any:
    """malt's transpiler with this package's operators. It is imported when the first function is rewritten."""
    from malt.converters import (
        asserts,
        break_statements,
        call_trees,
        conditional_expressions,
        continue_statements,
        control_flow,
        directives,
        functions,
        logical_expressions,
        return_statements,
        variables,
    )
    from malt.core import converter, unsupported_features_checker
    from malt.impl.api import PyToPy
    from malt.lang import directives as marks
    from malt.pyct import anno, transpiler

    operators = types.SimpleNamespace(
        **{name: getattr(statements, name) for name in statements.OPERATORS},
        converted_call=call,
        autograph_artifact=_artifact,
        STD=None,
    )
    passes = [break_statements, asserts, continue_statements, return_statements, call_trees, control_flow]
    passes += [conditional_expressions, logical_expressions, variables]

    class Directives(directives.DirectivesTransformer):
        """Takes ``tf.autograph.experimental.set_loop_options`` for malt's."""

        def visit(self, node: Node) -> Node:
            node = super().visit(node)
            if anno.getanno(node, directives.STATIC_VALUE, None) is graph.set_loop_options:
                anno.setanno(node, directives.STATIC_VALUE, marks.set_loop_options)
            return node

    class Transpiler(PyToPy):
        def transform_ast(self, node: Node, ctx: Any) -> Node:
            unsupported_features_checker.verify(node)
            self.ends = _Ends(node, anno)
            node = functions.transform(self.initial_analysis(node, ctx), ctx)
            node = Directives(ctx).visit(node)
            for step in passes:
                node = step.transform(node, ctx)
            return node

        def factory(self, function: types.FunctionType) -> Any:
            """Makes the rewritten function for a closure. No file is written: the code is compiled from the tree."""
            try:
                return self._factory(function)
            finally:
                for node in ast.walk(ast.parse(_CONTEXTS_AND_OPERATORS)):
                    for key in anno.keys(node):
                        anno.delanno(node, key)

        def _factory(self, function: types.FunctionType) -> Any:
            context = converter.ProgramContext(converter.STANDARD_OPTIONS)
            node, ctx = transpiler.GenericTranspiler.transform_function(self, function, context)
            name, free = ctx.info.name, function.__code__.co_freevars
            if isinstance(node, ast.Lambda):
                node = ast.Assign([ast.Name(name, ast.Store())], node)
            else:
                node.name = name
            outer, inner = (ctx.namer.new_symbol(x, ()) for x in ("outer_factory", "inner_factory"))
            future = ctx.info.future_features
            body = transpiler._wrap_into_factory(node, name, inner, outer, free, ["ag__"], future)
            for statement in body:
                _place(statement, function.__code__.co_firstlineno, anno, self.ends)
            module: dict[str, Any] = {}
            exec(compile(ast.Module(body, []), function.__code__.co_filename, "exec"), module)
            made = transpiler._PythonFnFactory(name, free, {"ag__": operators})
            made._unbound_factory = module[outer]()
            return made

    return Transpiler()


class _Ends(dict[int, tuple[Any, int, int]]):
    """Where expressions, and ``x += y``, end in the user's file: by the `id` of malt's note of where one begins, that note and
    the end.

    Another statement is made of as many: of these Python says the line alone, as it does of a loop.
    """

    def __init__(self, tree: Node, anno: types.ModuleType):
        for node in (node for node in ast.walk(tree) if isinstance(node, (ast.expr, ast.AugAssign))):
            if (origin := anno.getanno(node, anno.Basic.ORIGIN, None)) is not None:
                line, column = origin.loc.lineno - node.lineno, origin.loc.col_offset - node.col_offset
                self[id(origin)] = origin, (node.end_lineno or 0) + line, (node.end_col_offset or 0) + column


def _place(node: Node, line: int, anno: types.ModuleType, ends: _Ends) -> None:
    """Gives `node`, and what is in it, the place of the code that it was made of; to what was added, the line around it."""
    origin = anno.getanno(node, anno.Basic.ORIGIN, None)
    line = line if origin is None else origin.loc.lineno
    if "lineno" in node._attributes:
        _, last, end = ends.get(id(origin), (None, line, 0))
        start = origin.loc.col_offset if end else 0
        node.lineno, node.end_lineno, node.col_offset, node.end_col_offset = line, last, start, end
    for field, value in ast.iter_fields(node):
        if isinstance(value, tuple):
            setattr(node, field, list(value))
    for child in ast.iter_child_nodes(node):
        _place(child, line, anno, ends)


# Python has one object for each context and operator of all trees. What malt notes on these is taken off, as other code that
# copies a tree would have it.
_CONTEXTS_AND_OPERATORS = """x + x - x * x @ x / x // x % x ** x << x >> x & x | x ^ x; x = x and x or not -+~x
x == x != x < x <= x > x >= x is x is not x in x not in x; del x"""


def why_not(error: BaseException) -> str:
    """Why control flow that met a traced tensor was Python's, for an error message."""
    if not INSTALLED:
        return "With the extra `tapejax[autograph]` installed, Python's control flow is converted, as TensorFlow converts it."
    codes = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    users = [code for code in codes if not serves(code.co_filename)]
    if not users or "ag__" in users[-1].co_freevars:  # it is converted: `bool(x)`, `any([x])` are still Python's
        return ""
    code = users[-1]
    reason = _known_of(code).get("factory")
    if isinstance(reason, str):
        return reason
    if _facts(code) is None:
        return f"AutoGraph cannot convert {code.co_name!r}, whose source is not there."
    return (
        f"AutoGraph left {code.co_name!r} as it is: it has no statement to convert, is marked so, is called by a library, or is "
        "not reached by names and arguments (then decorate it with tf.function)."
    )
