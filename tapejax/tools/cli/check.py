"""What of a TensorFlow program tapejax has: read from the program's text, without running it.

``python -m tapejax check PATH ...`` prints it for people, with ``--json`` for tools:

    {"schema": 1,
     "files": [{"path": "train.py",
                "error": null,          # or why the file could not be read
                "names": [{"name": "tf.strings.split",   # as TensorFlow spells it, whatever the program calls it
                           "line": 12, "column": 5,      # from 1
                           "cell": null,                 # in a notebook: which code cell, from 1; line counts in it
                           "status": "missing",          # or "supported", or "unchecked"
                           "use": "Python's strings"}]}],  # instead of what is missing, or why it is unchecked, or null
     "counts": {"files": 1, "unreadable": 0, "supported": 0, "missing": 1, "unchecked": 0}}

Modules of the program's own that it imports, beside it or in folders there, are read as well. ``import keras`` is
``tf.keras``, as under ``tapejax run``.

A missing argument is a name, too: ``tf.nn.relu(alpha=)``. A method is one where the text shows whose it is: after
``data = tf.data.Dataset.range(3)``, ``data.batch`` is ``tf.data.Dataset.batch``. Of most values it shows only when the
program runs, as it does whether an argument's value is one that is supported. Names in strings are not looked at.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import importlib.util
import inspect
import json
import os
import sys
import types
import typing
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import tapejax

from ...jaxprs.cache import memoised
from ...tf.values.missing import MISSING, missing
from ..seeing.tables import in_columns
from . import imports, notebook

_ROOTS = (imports.ALIAS, imports.KERAS, "tapejax")  # a ported program says `import tapejax as tf`
_NOT_THE_USERS = {"__pycache__", "node_modules", *imports.INSTALLED}


@dataclasses.dataclass(frozen=True, order=True)
class Use:
    """A place where a program uses a name of TensorFlow's."""

    cell: int | None
    line: int
    column: int
    name: str
    status: str  # supported, missing, unchecked
    use: str | None = None

    @property
    def place(self) -> str:
        """Line and column, for people."""
        return f"{self.line}:{self.column}" if self.cell is None else f"cell {self.cell}, {self.line}:{self.column}"


@dataclasses.dataclass(frozen=True)
class File:
    """What a file uses, or why it could not be read."""

    path: str
    uses: tuple[Use, ...] = ()
    error: str | None = None
    modules: frozenset[tuple[int, str]] = frozenset()  # what it imports: how many dots there are, and what follows

    def count(self, status: str) -> int:
        """How many places have that status."""
        return sum(use.status == status for use in self.uses)


def main(paths: Sequence[str], *, as_json: bool = False, everything: bool = False) -> int:
    """Print the report on files, notebooks and folders; returns the exit status.

    It is 2 if something could not be read, else 1 if a name is missing, else 0.
    """
    files = _with_modules([report for path in paths for report in _reports(path)])
    print(_as_json(files) if as_json else _as_text(files, everything))
    if any(file.error for file in files):
        return 2
    return 1 if any(file.count("missing") for file in files) else 0


def check(source: str | bytes, path: str = "<string>") -> File:
    """The names of TensorFlow's that a program uses; of a notebook, if the path ends in ``.ipynb``.

    >>> for use in check("import tensorflow as tf\\ny = tf.sin(tf.strings.upper('x'))").uses:
    ...     print(use.line, use.name, use.status, use.use)
    2 tf.sin supported None
    2 tf.strings.upper missing Python's strings
    """
    try:
        parts: Any = [(None, source)]
        if path.endswith(".ipynb"):
            text = source if isinstance(source, str) else source.decode()
            parts = enumerate(map(notebook.as_python, notebook.code_cells(text)), 1)
        reader = _read(parts)
        return File(path, tuple(sorted(reader.found())), modules=frozenset(reader.modules))
    except SyntaxError as error:
        return File(path, error=f"line {error.lineno}: {error.msg}" if error.lineno else error.msg)
    except (RecursionError, MemoryError):  # Python's parser has either, by its version
        return File(path, error="nested too deeply for Python")
    except (ValueError, ImportError) as error:  # null bytes, not a notebook, not UTF-8, no IPython
        return File(path, error=str(error))


def _reports(path: str) -> Iterator[File]:
    if os.path.isdir(path):
        yield from _below_folder(path)
        return
    if path != "-" and os.path.exists(path) and not os.path.isfile(path):
        yield File(path, error="not a regular file")  # a pipe, which might never end
        return
    try:
        source = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        yield File(path, error=str(error.strerror))
    else:
        yield check(source, "<stdin>" if path == "-" else path)


def _below_folder(path: str) -> Iterator[File]:
    unreadable: list[OSError] = []
    for place, folders, names in os.walk(path, onerror=unreadable.append):
        folders[:] = sorted(name for name in folders if not (name.startswith(".") or name in _NOT_THE_USERS))
        for name in sorted(names):
            if name.endswith((".py", ".ipynb")):
                yield from _reports(os.path.join(place, name))
    yield from (File(str(error.filename), error=str(error.strerror)) for error in unreadable)


def _with_modules(files: list[File]) -> list[File]:
    """The files, and after them the modules of the same programs that they import."""
    seen = {os.path.realpath(file.path) for file in files}
    programs = [(file, os.path.dirname(file.path)) for file in files]
    for file, folder in programs:  # which grows on the way
        for dots, name in sorted(file.modules):
            start = os.path.join(os.path.dirname(file.path), *[os.pardir] * (dots - 1)) if dots else folder
            for path in _files_of(start, name.split(".") if name else []):
                if os.path.isfile(path) and os.path.realpath(path) not in seen:
                    seen.add(os.path.realpath(path))
                    programs += [(report, folder) for report in _reports(path)]
    return [file for file, _ in programs]


def _files_of(folder: str, names: Sequence[str]) -> Iterator[str]:
    """Where the modules of a dotted name are, if they are in a folder: of each package its first file."""
    place = folder
    for number, name in enumerate(names, 1):
        place = os.path.join(place, name)
        yield os.path.join(place, "__init__.py")
        if number == len(names):
            yield f"{place}.py"


# ---- what a name is


# Paths are dotted names; "tf.Tensor()" stands for any tensor, and "tf.Tensor().shape" for the attribute of one.
_VALUE = "()"


@memoised(4096)
def _found(path: str) -> tuple[str, str | None, Any]:
    """Status, what to use instead, and tapejax's object, for ``tf.nn.relu``."""
    if path.startswith("tf.keras.") and path in MISSING:  # Keras has it
        return "missing", MISSING[path], None
    target: Any = tapejax
    value = False
    for part in path.split(".")[1:]:
        try:
            if value and not hasattr(target, part):
                _ask(target, part)
                return "supported", None, None
            if target is tapejax and _is_own_module(part):
                missing("tf")(part)
            target = getattr(target, part.removesuffix(_VALUE))
            value = part.endswith(_VALUE)
        except AttributeError as error:  # tapejax's own end in what to use
            return "missing", str(error).partition(": use ")[2] or None, None
        except (ImportError, RuntimeError) as error:  # Keras is not installed, or was loaded with another backend
            return "unchecked", str(error), None
    if (reason := vars(target).get("_tapejax_unchecked") if isinstance(target, type) else None) is not None:
        return "unchecked", reason, target
    return "supported", None, target


def _is_own_module(name: str) -> bool:
    """Whether it is a module of tapejax's own that TensorFlow has no name for, as in ``from tapejax import runner``."""
    public = name in tapejax.__all__ or name in tapejax._everything.WHEN_ASKED
    return bool(name) and not public and importlib.util.find_spec(f"tapejax.{name}") is not None


def _ask(kind: type, name: str) -> None:
    """Raises AttributeError if the values of a class, that has no such attribute itself, surely have none either."""
    if hasattr(kind, "__getattr__"):
        kind.__getattr__(object.__new__(kind), name)
        return
    if any(each.kind is each.VAR_KEYWORD for each in inspect.signature(kind).parameters.values()):
        return  # a Checkpoint has the attributes that it is given
    methods = (inspect.unwrap(method) for base in kind.__mro__ for method in vars(base).values() if callable(method))
    codes = (getattr(method, "__code__", None) for method in methods)
    if not any(code is not None and name in code.co_names for code in codes):  # else a method may set it
        raise AttributeError(name)


def _called(path: str) -> Any:
    """What runs when the value at a path is called: of an initializer, or a layer, its ``__call__``."""
    target = _found(path)[2]
    return getattr(target, "__call__", None) if path.endswith(_VALUE) else target  # noqa: B004


def _annotated(function: Any) -> Any:
    """The type that a function says it returns, or None."""
    try:
        return typing.get_type_hints(function).get("return")
    except Exception:  # whatever its annotations are, they are no help
        return None


def _result(path: str) -> str | None:
    """The path of what a call of ``tf.data.Dataset.range`` gives: ``tf.data.Dataset()``; None where that is not known."""
    kind = _called(path)
    if not isinstance(kind, type):
        kind = _annotated(kind)
    if not isinstance(kind, type) or not kind.__module__.startswith("tapejax") or issubclass(kind, types.ModuleType):
        return None
    public = f"tapejax.{kind.__module__.rpartition('.')[2]}"  # tf.data.Dataset is defined in programs.data
    places = ("tapejax", public, *(f"tapejax.{name}" for name in tapejax._everything.NAMESPACES))
    names = (f"tf{place.removeprefix('tapejax')}.{kind.__name__}" for place in places)
    return next((f"{name}{_VALUE}" for name in names if _found(name)[2] is kind), None)


def _below(path: str | None, attribute: str) -> str | None:
    # What the attributes of a value are is not known: tensor.shape.rank ends at tf.Tensor().shape.
    return None if path is None or f"{_VALUE}." in path else f"{path}.{attribute}"


def _lacking(path: str, call: ast.Call) -> Iterator[tuple[ast.AST, str, str]]:
    """The arguments of a call that the function has no parameters for: the node, its name, the parameters it has."""
    try:
        parameters = [*inspect.signature(_called(path)).parameters.values()]
    except (TypeError, ValueError):
        return
    if _VALUE in path and parameters and parameters[0].name == "self":
        del parameters[0]
    kinds = {parameter.kind for parameter in parameters}
    by_name = [each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    by_place = [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        for keyword in call.keywords:
            if keyword.arg is not None and keyword.arg not in by_name:
                yield keyword, f"{keyword.arg}=", f"the arguments {', '.join(by_name)}"
    stars = any(isinstance(argument, ast.Starred) for argument in call.args)
    if inspect.Parameter.VAR_POSITIONAL not in kinds and not stars and len(call.args) > len(by_place):
        yield call.args[len(by_place)], f"argument {len(by_place) + 1}", f"the arguments {', '.join(by_place)}"


_MAKES_TENSORS = ("tf.constant", "tf.convert_to_tensor", "tf.Variable")
_REFUSES = "tf.function to compile: JAX runs at once, and has no graphs to build"


def _is_string(node: ast.AST) -> bool:
    """Whether it is a string, or a list that begins with one."""
    while isinstance(node, (ast.List, ast.Tuple)) and node.elts:
        node = node.elts[0]
    return isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))


# ---- what the program means


def _read(parts: Iterable[tuple[int | None, str | bytes]]) -> _Reader:
    """What has read the parts of one program: cells, or the only one."""
    reader = _Reader()
    for cell, source in parts:
        with warnings.catch_warnings(action="ignore"):  # the program's own mistakes
            try:
                tree = ast.parse(source)
            except SyntaxError as error:
                if cell is not None:
                    error.msg = f"cell {cell}: {error.msg}"
                raise
        reader.part(tree, cell, source)
    while reader.later:  # the bodies of functions run when all that surrounds them has run
        reader.later.pop(0)()
    return reader


# What a name may stand for: paths as "tf.nn", and None for anything that is not TensorFlow's.
_Paths = frozenset
_OTHER: _Paths = frozenset([None])


class _Bindings:
    """The names of a module, function or class: what they stand for now, and all that they ever stood for."""

    def __init__(self, outer: _Bindings | None = None):
        self.outer = outer
        self.now: dict[str, _Paths] = {}
        self.ever: dict[str, _Paths] = {}

    def bind(self, name: str, paths: _Paths, surely: bool = True) -> None:
        self.now[name] = paths if surely else paths | self.now.get(name, frozenset())
        self.ever[name] = self.ever.get(name, frozenset()) | paths

    def look_up(self, name: str) -> _Paths:
        if name in self.now:
            return self.now[name]
        scope = self.outer  # it runs later: whatever the names there stand for by then
        while scope is not None and name not in scope.ever:
            scope = scope.outer
        return _OTHER if scope is None else scope.ever[name]


class _Reader(ast.NodeVisitor):
    """Follows what names stand for through a program, in the order in which it runs; of branches, through all."""

    def __init__(self) -> None:
        self.uses: set[Use] = set()
        self.scope = _Bindings()
        # attributes that the program sets: a module or tensor may have more than its class
        self.given: set[str] = set()
        self.assigned: set[str] = set()  # names of TensorFlow's that the program itself sets: tf.foo = ...
        self.sure = True  # outside of branches
        self.later: list[Callable[[], None]] = []
        self.modules: set[tuple[int, str]] = set()

    def found(self) -> Iterator[Use]:
        """The uses, but for names that the program itself gives a module."""
        given = tuple(f"{path}{end}" for path in self.assigned for end in (".", "("))
        return (use for use in self.uses if use.name not in self.assigned and not use.name.startswith(given))

    def part(self, tree: ast.Module, cell: int | None, source: str | bytes) -> None:
        self.cell = cell
        # ast counts columns in bytes of UTF-8
        self.lines = (source if isinstance(source, bytes) else source.encode()).split(b"\n")
        attributes = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute))
        self.given |= {node.attr for node in attributes if isinstance(node.ctx, ast.Store)}
        self.visit_all(tree.body)

    # -- what is found

    def note(self, node: Any, path: str, status: str, use: str | None) -> None:
        line, column = node.lineno, node.col_offset
        if isinstance(node, ast.Attribute) and _VALUE in path:  # a method's own place in a long chain of calls
            line, column = node.end_lineno, (node.end_col_offset or 0) - len(node.attr.encode())
        before = self.lines[line - 1][:column] if line <= len(self.lines) else b""
        column = len(before.decode(errors="replace")) + 1
        self.uses.add(Use(self.cell, line, column, path.replace(_VALUE, ""), status, use))

    def note_paths(self, node: ast.AST, paths: _Paths) -> None:
        statuses = {path: _found(path) for path in paths - {None, "tf"} if not path.endswith(_VALUE)}
        for path, (status, use, _) in statuses.items():
            # what may be a tensor or a variable may have the methods of either
            in_doubt = _VALUE in path and any(other[0] == "supported" for other in statuses.values())
            if status != "missing" or not in_doubt:
                self.note(node, path, status, use)

    # -- expressions

    def paths(self, node: ast.AST | None) -> _Paths:
        """What an expression stands for."""
        match node:
            case ast.Name(id=name):
                return self.scope.look_up(name)
            case ast.Attribute(value=value, attr=attribute):
                return frozenset(_below(path, attribute) for path in self.paths(value))
            case ast.Call(func=function):
                return frozenset(path and _result(path) for path in self.paths(function))
            case ast.IfExp(body=one, orelse=other):
                return self.paths(one) | self.paths(other)
        return _OTHER

    def visit_Name(self, node: ast.Name) -> None:
        self.note_paths(node, self.paths(node))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        paths = self.paths(node)
        if isinstance(node.ctx, ast.Load):
            inherited = node.attr not in self.given
            self.note_paths(node, frozenset(path for path in paths if path and (inherited or _VALUE not in path)))
        base: Any = node
        while isinstance(base, ast.Attribute) and paths != _OTHER:
            base, paths = base.value, self.paths(base.value)  # of tf.nn.relu only the whole is a use
        if not (isinstance(base, ast.Name) and paths != _OTHER):
            self.visit(base) if base is not node else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        for path in self.paths(node.func) - {None, "tf"}:
            if _found(path)[0] == "supported":
                if path in _MAKES_TENSORS and node.args and _is_string(node.args[0]):
                    self.note(node, f"{path}(string)", "missing", "Python's strings: JAX has no tensors of strings")
                if _annotated(_called(path)) is typing.NoReturn:
                    self.note(node, path, "missing", _REFUSES)
                for place, argument, use in _lacking(path, node):
                    self.note(place, f"{path}({argument})", "missing", use)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.function(node.args, [ast.Expr(node.body)])

    def comprehension(self, node: Any) -> None:
        scope = _Bindings(self.scope.outer)
        scope.now = dict(self.scope.now)  # it runs now
        with self.inner(scope):
            for generator in node.generators:
                self.visit(generator.iter)
                self.bind(generator.target)
                self.visit_all(generator.ifs)
            self.visit_all([node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt])

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = comprehension

    def visit_all(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in filter(None, nodes):
            self.visit(node)

    # -- what gives names a meaning

    def bind(self, target: ast.AST, value: ast.AST | None = None) -> None:
        """Bind the names in a target: to what the value stands for, or to something that is not TensorFlow's."""
        match target:
            case ast.Name(id=name):
                self.scope.bind(name, self.paths(value), self.sure)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                paired = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(targets)
                for number, each in enumerate(targets):
                    self.bind(each, value.elts[number] if paired else None)  # type: ignore[union-attr]
            case ast.Starred(value=each):
                self.bind(each)
            case _:  # x.attribute, x[index]
                self.assigned |= {path for path in self.paths(target) if path and _VALUE not in path}
                if isinstance(target, ast.Attribute):  # what gets the attribute has to be there
                    self.note_paths(target.value, self.paths(target.value))
                self.visit(target)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            path = self.imported(alias, alias.name)
            self.modules.add((0, alias.name))
            if path is not None and alias.asname is None:  # `import tensorflow.keras` binds tensorflow
                path = "tf.keras" if alias.name.startswith(imports.KERAS) else "tf"
            self.scope.bind(alias.asname or alias.name.partition(".")[0], frozenset([path]), self.sure)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            whole = ".".join(part for part in (node.module, alias.name) if part and part != "*")
            self.modules |= {(node.level, node.module or ""), (node.level, whole)}
            module = None if node.level else node.module
            if module and alias.name == "*":
                path = self.imported(alias, module)
                for name in getattr(_found(path)[2] if path else None, "__all__", ()):
                    self.scope.bind(name, frozenset([f"{path}.{name}"]), self.sure)
            else:
                path = self.imported(alias, module, alias.name) if module else None
                self.scope.bind(alias.asname or alias.name, frozenset([path]), self.sure)

    def imported(self, node: ast.AST, module: str, name: str | None = None) -> str | None:
        """The path of an imported module or name, noted; None if it is not TensorFlow's."""
        top, _, below = module.partition(".")
        if top in imports.BUILT_ON_TENSORFLOW and not f"{below}.{name}".startswith("substrates."):
            self.note(node, module, "missing", imports.BUILT_ON_TENSORFLOW[top])
        if top not in _ROOTS or (top == imports.KERAS and below.startswith("src")):
            return None
        path = ".".join(filter(None, ("tf", top if top == imports.KERAS else "", below, name)))
        if top == "tapejax" and _is_own_module(f"{path}.".split(".")[1]):
            return None  # from tapejax import runner
        self.note_paths(node, frozenset([path]))
        return path

    def binding(self, node: Any) -> None:
        """``x = value``, ``x: kind = value``, ``x += value``, ``(x := value)``, ``del x``."""
        value, changed = getattr(node, "value", None), isinstance(node, ast.AugAssign)
        self.visit_all([getattr(node, "annotation", None), value, node.target if changed else None])
        for target in getattr(node, "targets", None) or [node.target]:
            if value is not None or isinstance(node, ast.Delete):
                self.bind(target, None if changed else value)

    visit_Assign = visit_AnnAssign = visit_AugAssign = visit_NamedExpr = visit_Delete = binding

    def visit_withitem(self, node: ast.withitem) -> None:
        self.visit(node.context_expr)
        match node.optional_vars:
            case ast.Name(id=name):
                paths = self.paths(node.context_expr)
                self.scope.bind(name, frozenset(path and _result(f"{path}.__enter__") for path in paths), self.sure)
            case ast.expr() as target:
                self.bind(target)

    # -- functions and classes

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.visit_all([*node.decorator_list, node.returns])
        self.function(node.args, node.body)
        self.scope.bind(node.name, _OTHER, self.sure)

    visit_AsyncFunctionDef = visit_FunctionDef

    def function(self, arguments: ast.arguments, body: list[ast.stmt]) -> None:
        named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        named += filter(None, (arguments.vararg, arguments.kwarg))
        self.visit_all([*arguments.defaults, *arguments.kw_defaults, *(argument.annotation for argument in named)])
        scope = _Bindings(self.scope.outer if isinstance(self.scope, _ClassBindings) else self.scope)
        cell, lines = self.cell, self.lines

        def read() -> None:
            self.cell, self.lines = cell, lines
            with self.inner(scope):
                for argument in named:
                    scope.bind(argument.arg, _OTHER)
                self.visit_all(body)

        self.later.append(read)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.visit_all([*node.decorator_list, *node.bases, *node.keywords])
        with self.inner(_ClassBindings(self.scope)):
            self.visit_all(node.body)
        self.scope.bind(node.name, _OTHER, self.sure)

    def inner(self, scope: _Bindings) -> contextlib.AbstractContextManager[None]:
        return imports.replaced(vars(self), scope=scope, sure=True)

    # -- the order in which statements run

    def branch(self, node: Any) -> None:
        """A statement whose parts may run or not: what a name stood for before, it may stand for afterwards."""
        with imports.replaced(vars(self), sure=False):
            self.generic_visit(node)

    visit_If = visit_While = visit_Try = visit_TryStar = visit_Match = branch

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.visit(node.iter)
        self.bind(node.target)
        self.branch(ast.Try(node.body, [], node.orelse, []))

    visit_AsyncFor = visit_For

    def named(self, node: Any) -> None:
        """``except Error as name``, ``case [*name]``, ``case {**rest}``."""
        if name := getattr(node, "name", None) or getattr(node, "rest", None):
            self.scope.bind(name, _OTHER)
        self.generic_visit(node)

    visit_ExceptHandler = visit_MatchAs = visit_MatchStar = visit_MatchMapping = named


class _ClassBindings(_Bindings):
    """The body of a class: its names are not seen from its methods."""


# ---- the report


def _as_json(files: Sequence[File]) -> str:
    counts = {status: sum(file.count(status) for file in files) for status in ("supported", "missing", "unchecked")}
    counts = {"files": len(files), "unreadable": sum(file.error is not None for file in files), **counts}
    reports = [{"path": f.path, "error": f.error, "names": list(map(dataclasses.asdict, f.uses))} for f in files]
    return json.dumps({"schema": 1, "files": reports, "counts": counts}, indent=1)


def _as_text(files: Sequence[File], everything: bool) -> str:
    lines = []
    for file in files:
        if file.error:
            lines += [f"{file.path}: cannot be read: {file.error}"]
        elif file.uses or len(files) == 1:
            lines += [f"{file.path}: {_tally([file])}"]
            lines += _rows([use for use in file.uses if everything or use.status != "supported"])
    if len(files) != 1:
        lines += [f"{len(files)} files: {_tally(files)}"]
    lines += sorted({f"unchecked: {use.use}" for file in files for use in file.uses if use.status == "unchecked"})
    if any(file.uses for file in files):
        lines += ["Of most values, which methods they have (model(x).numpy()) shows only when the program runs."]
    return "\n".join(map(_printable, lines))


def _printable(line: str) -> str:
    """A line in which what a terminal might obey, in a file's name or a string of the program, is spelled out."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


def _tally(files: Iterable[File]) -> str:
    uses = [use for file in files for use in file.uses]
    names = {status: len({use.name for use in uses if use.status == status}) for status in _STATUSES}
    return ", ".join(f"{count} {status}" for status, count in names.items() if count) or "no names of TensorFlow's"


_STATUSES = ("missing", "unchecked", "supported")
_PLACES = 6


def _rows(uses: Sequence[Use]) -> list[str]:
    """One line a name, by status: what it is, where it is used, what to use instead."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for use in sorted(uses, key=lambda use: (_STATUSES.index(use.status), use)):
        advice = f"use {use.use}" if use.use else "there is nothing in its place"
        rows.setdefault((use.status, use.name, advice if use.status == "missing" else ""), []).append(use.place)
    cells = []
    for (status, name, advice), places in rows.items():
        more = [f"and {len(places) - _PLACES} more"] if places[_PLACES:] else []
        cells.append((f"  {status}", name, ", ".join(places[:_PLACES] + more), advice))
    return in_columns(cells, "<<<<") if cells else []
