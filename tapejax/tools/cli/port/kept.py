"""The text of a program without its tapes' statements: the data, the loop, what it prints.

A statement stays if it uses neither TensorFlow, but for a few names that `jnp` has, nor anything that was made by a statement
that went; expressions of it may become other texts first (`program`). The ``with`` statement of a step becomes a call of the
ported step, and what takes and applies its gradients goes. Functions and classes on the way to it, from the module's own
statements, are kept statement by statement, all others whole or not at all.
"""

from __future__ import annotations

import ast
import copy
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .definitions import PARTS, first_line
from .probes import SIMPLE

if TYPE_CHECKING:
    from .program import Program

ALIASES = ("tensorflow", "keras", "tapejax", "tf_keras")

# TensorFlow's name: what takes the same arguments in `jnp` and gives the same.
JNP = {
    "constant": "asarray", "convert_to_tensor": "asarray", "cast": "astype", "concat": "concatenate", "range": "arange",
    "reduce_mean": "mean", "reduce_sum": "sum", "reduce_max": "max", "reduce_min": "min", "math.reduce_std": "std",
} | {name: name for name in (
    "abs argmax bool_ cos equal exp expand_dims float16 float32 float64 int32 int64 linspace matmul ones ones_like reshape round "
    "sin sqrt square squeeze stack tanh uint8 where zeros zeros_like"
).split()}  # fmt: skip


_KEYWORDS = ("axis", "dtype", "keepdims", "num")  # with which these functions may be called

# The text of an expression, if it fits; if wanted, what `Program.expression` gives for its parts, too.
Fitting = Callable[[ast.expr, bool], str | None]


class NotKept(Exception):
    """The program's loop cannot be kept; says at which line, and why."""


@dataclass
class Site:
    """A step's place: the name of the function that runs it, its arguments, the lines that go with it, what it gives."""

    name: str
    arguments: list[str]
    expressions: list[Any]  # what the program calls the arguments there
    types: list[str]
    lines: set[int]
    outputs: list[str] = field(default_factory=list)
    updates: list[tuple[tuple, str]] = field(default_factory=list)  # shapes of the arguments, and the step for them


def used_after(tree: ast.Module, line: int) -> list[str]:
    """The names that the ``with`` statement at a line binds, and that are read outside of it."""
    inside = next((n for n in ast.walk(tree) if isinstance(n, ast.With) and n.lineno == line), None)
    if inside is None:
        return []
    own = {id(node) for node in ast.walk(inside)}
    loads = (n for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    read = {n.id for n in loads if id(n) not in own}
    return [name for name in dict.fromkeys(stored(inside)) if name in read]


def rewrite(program: Program, sites: dict[int, Site]) -> str:
    """The text of the program without its tapes' statements, which runs the ported steps in their place.

    Raises:
      NotKept: the statements around a step depend on what goes.
    """
    gone: set[str] = set()
    missing: dict[str, set[int]] = {}
    for _ in range(4):  # a function may use what is found later to be gone, or be called with it
        rewriter = _Rewriter(program, sites, gone, missing)
        lines = rewriter.block(program.tree.body, set(), "", top=True)
        if rewriter.gone_in_end <= gone and rewriter.missing == missing:
            break
        gone, missing = gone | rewriter.gone_in_end, rewriter.missing
    for name in rewriter.way - rewriter.called:
        raise NotKept(f"the function {name!r}, which leads to a step, is called under another name")
    if rewriter.found != set(sites):
        line = min(set(sites) - rewriter.found)
        raise NotKept(f"the statements that lead to line {line} use TensorFlow, or what it made")
    return "\n".join(["", *map(_caller, sites.values()), *lines, ""])


def _caller(site: Site) -> str:
    pairs = zip(site.arguments, site.types, strict=True)
    shapes = ", ".join(f"{shapes!r}: {name}" for shapes, name in site.updates)
    several, returned = len(site.updates) > 1, [f"step_found[{name!r}]" for name in site.outputs]
    return PARTS["caller"].format(
        name=site.name,
        arguments=", ".join(site.arguments),
        batch=", ".join(f"jnp.asarray({n}, {t!r})" if t else n for n, t in pairs),
        choice=f"\n    step = {{{shapes}}}[tuple(np.shape(x) for x in batch)]" if several else "",
        update="step" if several else site.updates[0][1],
        returned=f"\n    return {', '.join(returned)}" if returned else "",
    )


class _Rewriter:
    def __init__(self, program: Program, sites: dict[int, Site], ever: set, missing: dict):
        self.program, self.sites, self.ever, self.known_missing = program, sites, ever, missing
        self.lines, self.randoms = program.source.splitlines(), program.probes.randoms
        self.missing: dict[str, set[int]] = {}  # function -> positions of arguments that are gone
        self.aliases = dict(_imported(program.tree))
        self.unused: dict[str, list[int]] = {}  # function -> positions of parameters that it does not read
        self.found: set[int] = set()
        self.gone_in_end: set[str] = set()
        self.update_lines = {line for site in sites.values() for line in site.lines}
        bodies = [("", program.tree.body), *((".", n.body) for n in program.tree.body if isinstance(n, ast.ClassDef))]
        functions = {dot + n.name: n for dot, body in bodies for n in body if isinstance(n, ast.FunctionDef)}
        self.way = {name for name, node in functions.items() if self._has_site(node)}
        while more := {n for n, node in functions.items() if n not in self.way and self.calls(node)}:
            self.way |= more
        self.called: set[str] = set()  # of the functions on the way
        self.in_loop = self.in_class = False
        self.class_name = ""
        self.runs_once = True  # what is being rewritten, as far as one can see
        self.drawn = 0  # the line of what was left out first that may have drawn random numbers
        self.drawing: set[str] = set()  # functions and classes in which something was

    # -- questions

    def _has_site(self, node: ast.AST) -> bool:
        return any(isinstance(n, ast.With) and n.lineno in self.sites for n in ast.walk(node))

    def calls(self, node: ast.AST) -> list[ast.Call]:
        return [n for n in ast.walk(node) if isinstance(n, ast.Call) and callee(n) in self.way]

    def _leads(self, node: ast.AST) -> bool:
        return self._has_site(node) or bool(self.calls(node))

    def fits(self, node: ast.AST, gone: set[str]) -> bool:
        """Whether a statement or expression uses neither TensorFlow nor what is gone."""
        definition = isinstance(node, (ast.FunctionDef, ast.ClassDef))
        own = set(stored(node)) if definition else bound_inside(node)
        own |= {a.arg for n in ast.walk(node) if isinstance(n, ast.arguments) for a in parameters_of(n)}
        gone = (gone | self.ever if definition else gone) - {name for name in own if not name.startswith(".")}
        found = [n for n in ast.walk(node) if isinstance(n, (ast.Name, ast.Attribute))]
        added_to = [n.target for n in ast.walk(node) if isinstance(n, ast.AugAssign)]
        read = [n for n in found if not isinstance(n.ctx, ast.Store) or n in added_to]
        tensorflow = any(name_of(n) in self.aliases for n in found) or any(_imported(node))
        return not tensorflow and not any(name_of(n) in gone for n in read)

    # -- statements

    def block(self, statements: Sequence[ast.stmt], gone: set[str], indent: str, top: bool = False) -> list[str]:
        out: list[str] = []
        end = statements[0].lineno - 1 if statements and not top else 0
        if top and isinstance(statements[0], ast.Expr) and isinstance(statements[0].value, ast.Constant):
            end, statements = statements[0].end_lineno or 0, statements[1:]  # the docstring stands above
        left_out = False
        for node in statements:
            first = first_line(node)
            between = self.lines[end : first - 1]
            text = self.statement(node, gone, indent)
            end = node.end_lineno or node.lineno
            if text is None:  # left out, and to be looked at
                if not left_out:
                    out += [*between, f"{indent}# LOOK: left out, for it uses TensorFlow or what such a line made"]
                more = " ..." if end > node.lineno else ""
                out.append(f"{indent}# {self.program.path.name}:{node.lineno}: {self.lines[first - 1].strip()}{more}")
                left_out = True
                plain = not isinstance(node, (ast.FunctionDef, ast.ClassDef))
                if plain and any(isinstance(n, ast.Call) for n in ast.walk(node)):
                    self.drawn = self.drawn or node.lineno
                continue
            left_out = left_out and not text
            if text and self.drawn and self.runs_once and not self.in_loop and isinstance(node, SIMPLE):
                between = [*between, *self._restored(node, gone, indent)]
            out += [*between, *text] if text else []
            if not self.in_class and self.drawing & {callee(n) for n in ast.walk(node) if isinstance(n, ast.Call)}:
                self.drawn = self.drawn or node.lineno
        if top:
            self.gone_in_end = set(gone)
        if not any(line.strip() and not line.strip().startswith("#") for line in out):
            out.append(f"{indent}pass")
        return out

    def statement(self, node: ast.stmt, gone: set[str], indent: str) -> list[str] | None:
        """The lines of a statement that stays; nothing for one whose work is done elsewhere; None for one that is left out."""
        if isinstance(node, ast.Delete) and not self.fits(node, gone):
            return []
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            return [] if getattr(node, "module", "") == "__future__" or any(_imported(node)) else self._text(node)
        if isinstance(node, ast.With) and node.lineno in self.sites:
            return self._step(node, gone, indent)
        definition = isinstance(node, (ast.FunctionDef, ast.ClassDef))
        own = range(node.lineno, (node.end_lineno or 0) + 1)
        if not definition and self.update_lines.intersection(own) and not self._leads(node):
            if isinstance(node, (ast.Assign, ast.AugAssign, ast.Return)) and not is_gradient(node.value):
                new = self._translated(node, gone)
                if self.fits(new, gone):
                    gone.difference_update(stored(node))
                    return _unparsed(new, indent)
            gone.update(stored(node))
            return []
        if isinstance(node, ast.FunctionDef) and (self.in_class or node.name in self.way):
            return self._function(node, gone, indent)
        if self._leads(node):
            if isinstance(node, (ast.For, ast.While, ast.If, ast.With, ast.Try)):
                return self._compound(node, gone, indent)
            if isinstance(node, ast.ClassDef) and all(self.fits(base, gone) for base in node.bases):
                return self._class(node, gone, indent)
            if definition:
                line = min(self.sites)
                raise NotKept(f"the tape at line {line} is in a Keras class, or in a function inside another")
            return self._call(node, gone, indent)
        new = self._translated(node, gone)
        if self.fits(new, gone):
            gone.difference_update(stored(node))
            if isinstance(node, ast.FunctionDef):
                read = {n.id for part in new.body for n in ast.walk(part) if isinstance(n, ast.Name)}
                self.unused[node.name] = [i for i, a in enumerate(parameters_of(node.args)) if a.arg not in read]
            same = ast.dump(new) == ast.dump(node)
            return self._text(node) if same else _unparsed(new, indent)
        compound = isinstance(node, (ast.For, ast.While, ast.If, ast.Try))
        if compound and self.fits(self._translated(_header(node), gone), gone):
            inner = self._compound(node, gone, indent)
            left = ast.walk(ast.parse(textwrap.dedent("\n".join(inner))))
            if any(isinstance(n, (ast.Expr, ast.Assign, ast.AugAssign)) for n in left):
                return inner
        gone.update(stored(node), added_to(node))
        text = self.program.statement(node, Translated(self, gone).fitting)
        return [indent + text] if text else None

    def _text(self, node: ast.stmt) -> list[str]:
        first = first_line(node)
        return self.lines[first - 1 : node.end_lineno]

    def _step(self, node: ast.With, gone: set[str], indent: str) -> list[str]:
        site = self.sites[node.lineno]
        for expression in site.expressions:
            if not self.fits(ast.parse(expression), gone):
                what = f"{expression}, which line {node.lineno} uses"
                raise NotKept(f"{what}, is made by a statement that uses TensorFlow")
        gone.update(stored(node))
        gone.difference_update(site.outputs)
        self.found.add(node.lineno)
        call = f"{site.name}({', '.join(site.expressions)})"
        return [f"{indent}{', '.join(site.outputs)} = {call}" if site.outputs else indent + call]

    def _function(self, node: ast.FunctionDef, gone: set[str], indent: str) -> list[str]:
        new = copy.deepcopy(node)
        new.decorator_list = [d for d in node.decorator_list if self.fits(d, gone)]
        new.body = [ast.Pass()]
        new.returns = None
        for argument in parameters_of(new.args):
            argument.annotation = None
        given = [a.arg for a in parameters_of(node.args)]
        key = f".{node.name}" if self.in_class else node.name
        lost = {given[i] for i in self.known_missing.get(key, ()) if i < len(given)}
        own = {name for name in stored(node) if not name.startswith(".")} | set(given)
        inner = (gone | self.ever) - own | lost
        head = ast.unparse(new).splitlines()[:-1]
        outside = self.runs_once, self.drawn, self.in_class
        self.drawn, self.in_class = 0, False
        self.runs_once = any(isinstance(n, (ast.For, ast.While)) and self._leads(n) for n in ast.walk(node))
        body = self.block(node.body, inner, indent + "    ")
        if self.drawn:
            self.drawing.add(self.class_name if node.name == "__init__" else key)
        self.runs_once, self.drawn, self.in_class = outside
        gone.update(name for name in inner if name.startswith("."))
        return [*(indent + line for line in head), *body]

    def _class(self, node: ast.ClassDef, gone: set[str], indent: str) -> list[str]:
        self.in_class, self.class_name = True, node.name
        body = self.block(node.body, gone, indent + "    ")
        self.in_class = False
        return [*self.lines[node.lineno - 1 : node.body[0].lineno - 1][:1], *body]

    def _compound(self, node: Any, gone: set[str], indent: str) -> list[str]:
        header = self._translated(_header(node), gone)
        if not self.fits(header, gone):
            raise NotKept(f"line {node.lineno} uses TensorFlow or what it made: {self.lines[node.lineno - 1].strip()}")
        out = []
        loop = isinstance(node, (ast.For, ast.While))
        before = self.in_loop
        if loop and not self.in_loop and self._leads(node) and self.drawn:
            out += self._restored(node, gone, indent)
        self.in_loop = before or loop
        gone.difference_update(stored(header))
        head = ast.unparse(header).splitlines()
        out += [indent + head[0], *self.block(node.body, gone, indent + "    ")]
        if isinstance(node, ast.While) and not self.fits(header, gone):
            raise NotKept(f"line {node.lineno} goes on by what is left out: {self.lines[node.lineno - 1].strip()}")
        for handler in getattr(node, "handlers", ()):
            kind = f" {ast.unparse(handler.type)}" if handler.type else ""
            name = f" as {handler.name}" if handler.name else ""
            out += [f"{indent}except{kind}{name}:", *self.block(handler.body, gone, indent + "    ")]
        for name, word in (("orelse", "else"), ("finalbody", "finally")):
            if getattr(node, name, None):
                out += [f"{indent}{word}:", *self.block(getattr(node, name), gone, indent + "    ")]
        self.in_loop = before
        return out

    def _restored(self, node: ast.stmt, gone: set[str], indent: str) -> list[str]:
        """What puts random generators in the state which they had before a statement, if it may draw numbers."""
        if not any(isinstance(n, ast.Call) for n in ast.walk(node)):
            return []
        same = self.randoms.same(self.drawn, node.lineno)
        self.drawn = 0
        if same:
            return []
        states = list(self.randoms.restoring(node.lineno, self.program.source, gone, self.program.definitions.data))
        note = f"{indent}# The generators as they were here: what was left out has drawn numbers, too."
        return [note, *(indent + line for line in states)] if states else []

    def _call(self, node: ast.stmt, gone: set[str], indent: str) -> list[str] | None:
        """A statement that calls a function on the way to a step: arguments that are gone are no longer given."""
        new = self._translated(node, gone)
        for call in self.calls(new):
            name = callee(call)
            self.called.add(name)
            for i, argument in enumerate(call.args):
                if not self.fits(argument, gone):
                    call.args[i] = ast.Constant(None)
                    self.missing.setdefault(name, set()).add(i + name.startswith("."))
        if not self.fits(new, gone):
            raise NotKept(f"line {node.lineno} uses TensorFlow or what it made: {self.lines[node.lineno - 1].strip()}")
        gone.difference_update(stored(node))
        return _unparsed(new, indent)

    def _translated(self, node: Any, gone: set[str]) -> Any:
        return Translated(self, gone).visit(copy.deepcopy(node))


def _header(node: Any) -> Any:
    """A compound statement with nothing in it."""
    new = copy.copy(node)
    new.body = [ast.Pass()]
    for name in ("orelse", "finalbody", "handlers"):
        if hasattr(new, name):
            setattr(new, name, [])
    if isinstance(new, ast.Try):
        new.finalbody = [ast.Pass()]
    return new


def _unparsed(node: ast.AST, indent: str) -> list[str]:
    return [indent + line for line in ast.unparse(node).splitlines()]


# ---- expressions in jnp, or as other texts ---------------------------------------------------------------------------

_READS = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.FormattedValue)
_READING = "np jnp numpy float int bool print abs round len str".split()  # calls that take arrays


class Translated(ast.NodeTransformer):
    """TensorFlow's names in `jnp`, where there are any; but for `names_only` other texts, too, for expressions that
    do not fit: for the smallest that will do."""

    def __init__(self, rewriter: _Rewriter, gone: set[str], names_only: bool = False):
        self.rewriter, self.gone, self.names_only = rewriter, gone, names_only
        self.reads = False  # whether what is around an expression takes a variable for its value

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:  # noqa: N802
        path, aliases = ast.unparse(node).split("."), self.rewriter.aliases
        if path[0] in aliases:
            top, *rest = [*aliases[path[0]].split("."), *path[1:]]
            name = ".".join(rest)
            if top in ("tensorflow", "tapejax"):
                if name == "newaxis":
                    return ast.Constant(None)
                for known in (name, name.removeprefix("math.")):
                    if known in JNP:
                        return ast.parse(f"jnp.{JNP[known]}", mode="eval").body
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:  # noqa: N802
        if isinstance(node.func, ast.Attribute) and node.func.attr == "numpy" and not node.args:
            return ast.Call(ast.parse("np.asarray", mode="eval").body, [self.visit(node.func.value)], [])
        func = node.func
        self.generic_visit(node)
        if any(keyword.arg not in _KEYWORDS for keyword in node.keywords):
            node.func = func
        return node

    def visit(self, node: Any) -> Any:
        if self.names_only:
            return super().visit(node)
        outside, self.reads = self.reads, self._reads(node)
        new = super().visit(node)
        if isinstance(new, ast.Call):
            for i in self.rewriter.unused.get(callee(new), ()):
                if i < len(new.args) and not self.rewriter.fits(new.args[i], self.gone):
                    new.args[i] = ast.Constant(None)
        self.reads = outside
        target = isinstance(node, ast.AugAssign)
        load = isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
        on_the_way = self.rewriter.calls(node)
        if not (target or load and hasattr(node, "place")) or on_the_way or self.rewriter.fits(new, self.gone):
            return new
        text = self.rewriter.program.expression(node.target if target else node, self.reads, self.fitting)
        if not text:
            return new
        value = ast.parse(text, mode="eval").body
        return ast.Assign([node.target], value, lineno=0) if target else value

    def _reads(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            func = node.func
            root = ast.unparse(self._in_jnp(func)).split(".")[0]
            return root in _READING or isinstance(func, ast.Attribute) and func.attr == "numpy"
        return isinstance(node, _READS) or self.reads and isinstance(node, (ast.Starred, ast.keyword))

    def fitting(self, node: ast.expr, others: bool) -> str | None:
        """The text of an expression in `jnp`, and if wanted with `others`, if it fits."""
        new = self.visit(copy.deepcopy(node)) if others else self._in_jnp(node)
        return ast.unparse(new) if self.rewriter.fits(new, self.gone) else None

    def _in_jnp(self, node: ast.expr) -> ast.expr:
        return Translated(self.rewriter, self.gone, names_only=True).visit(copy.deepcopy(node))


# ---- the names in a syntax tree -------------------------------------------------------------------------------------


def _imported(node: ast.AST) -> Iterator[tuple[str, str]]:
    """The names under which TensorFlow's modules, and what is in them, are imported, each with what it is."""
    for each in ast.walk(node):
        if isinstance(each, (ast.Import, ast.ImportFrom)):
            module = getattr(each, "module", None)
            for alias in each.names:
                path = f"{module}.{alias.name}" if module else alias.name
                top = path.partition(".")[0]
                if top in ALIASES:
                    yield alias.asname or alias.name.partition(".")[0], path if alias.asname or module else top


def stored(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, (ast.Name, ast.Attribute)) and not isinstance(each.ctx, ast.Load):
            yield name_of(each)
        elif isinstance(each, (ast.FunctionDef, ast.ClassDef)):
            yield each.name


def added_to(node: ast.AST) -> Iterator[str]:
    """Names of what a statement changes by a method, as in ``losses.append(x)``."""
    calls = (each.func for each in ast.walk(node) if isinstance(each, ast.Call))
    methods = [func for func in calls if isinstance(func, ast.Attribute)]
    return (name_of(func.value) for func in methods if func.attr in ("append", "extend", "insert", "update", "add"))


def is_gradient(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Call) and callee(node) == ".gradient"


def name_of(node: ast.AST) -> str:
    """A name; that of an attribute has a dot before it, whatever its object is."""
    return node.id if isinstance(node, ast.Name) else f".{node.attr}" if isinstance(node, ast.Attribute) else ""


def callee(call: ast.Call) -> str:
    return name_of(call.func)


def bound_inside(node: ast.AST) -> set[str]:
    """Names that comprehensions and lambdas bind."""
    parts = [n.target for n in ast.walk(node) if isinstance(n, ast.comprehension)]
    return {name for part in parts for name in stored(part)}


def parameters_of(given: ast.arguments) -> list[ast.arg]:
    rest = [a for a in (given.vararg, given.kwarg) if a is not None]
    return [*given.posonlyargs, *given.args, *given.kwonlyargs, *rest]
