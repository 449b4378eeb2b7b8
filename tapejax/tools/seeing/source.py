"""A program printed as plain ``jnp`` code, one line an operation, that runs where it is pasted.

How an operation is spelled, `spelling` finds out. What has no short spelling is written out as a function of its own,
down to ``jax.lax`` and, at the last, to JAX's primitives.
"""

from __future__ import annotations

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
from ...jaxprs.custom_rules import RULES_IN_RULES
from ...jaxprs.dependence import is_inexact, is_inexact_kind, is_key
from ...jaxprs.evaluate import needed
from ...jaxprs.fence import Literal, RefType, Tracer, jaxpr_as_fun
from ...jaxprs.types import Atom, Equation, JaxProgram, Value, Values
from ...tape import active
from ...tape.gradient_tape import GradientTape
from ...tape.operation import Op
from ...tape.recording import type_of
from ...tape.slicing import Program
from ...tape.structures import Structure
from ...tf.ops import table
from ...tf.values import nest
from ...tf.values.shown import page
from ...tf.values.structures import is_variable, leaf_of
from ...tf.values.types import Array, Nest
from .listing import unused
from .parameters import Parameters
from .spelling import (
    SCOPE,
    WIDTH,
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

_RESERVED = {*keyword.kwlist, *dir(builtins), *SCOPE, "f", "sources", "scan", "while_loop", "flat", "scaled"}


# ---- the function ---------------------------------------------------------------------------------------------------


class TapeFunction:
    """A pure function got from a tape. Call it, transform it (`jax.grad`, `jax.jit` ...), or print it: it is code.

    ``code`` is that code. Arrays too large to be written out in it are names that it expects to be defined, where it can
    the user's own; ``constants`` holds them: ``exec(f.code, {**globals(), **f.constants})`` always runs.
    """

    def __init__(
        self, function: Callable, printed: Callable[[], tuple[str, dict[str, Array]]], signature: inspect.Signature
    ):
        """`printed` gives the code and the constants."""
        self._function, self._print, self.__signature__ = function, functools.cache(printed), signature
        self.__name__ = self.__qualname__ = "f"
        self.__code__ = function.__code__  # where there is none, JAX prints the function whenever it traces it

    def __call__(self, *args: Any, **kwargs: Any) -> Nest:
        return self._function(*args, **kwargs)

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
        return page(f"<pre>{html.escape(self.code)}</pre>")


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
        t0 = jnp.einsum('ij,ij->i', a, b)
        return t0
    <BLANKLINE>
    """
    # not the caller's names
    args = jax.tree.map(lambda x: x if is_variable(x) else jnp.array(x), args, is_leaf=is_variable)
    with GradientTape(watch_accessed_variables=False) as tape:
        tape.watch([x for x in jax.tree.leaves(args, is_leaf=is_variable) if is_inexact(x)])
        result = function(*args)
    bound = inspect.signature(function).bind(*args).arguments
    names = {id(leaf.array): name for name, x in bound.items() if (leaf := leaf_of(x)) is not None}
    apart = len(names) == len(args) > 1
    rest = dict(zip(list(bound)[1:], args[1:], strict=True)) if apart else ()
    return tape._as_function(result, args[0] if apart or len(args) == 1 else args, rest, names)


class _Scope:
    """Names that are taken, and how to get new ones."""

    def __init__(self, taken: Set[str]) -> None:
        self._taken = _RESERVED | taken

    def new(self, wish: str) -> str:
        """`wish` as an identifier of its own."""
        base = re.sub(r"\W+", "_", wish).strip("_") or "x"
        base = f"x{base}" if base[0].isdigit() else base
        name = unused(base, self._taken)
        self._taken.add(name)
        return name

    def letters(self) -> Iterator[str]:
        """a, b, ... z, aa, ab, ..., but for names that mean something, and the l that looks like a 1."""
        alphabet = "abcdefghijkmnopqrstuvwxyz"
        for length in itertools.count(1):
            for letters in itertools.product(alphabet, repeat=length):
                if (name := "".join(letters)) not in self._taken:
                    yield name


def printed(*parts: Any) -> tuple[str, dict[str, Array]]:
    """The code of what a tape recorded, and the arrays that it names; `parts` are what `_FunctionPrinter` takes."""
    with active.outside():
        return _FunctionPrinter(*parts).print()


@dataclass
class _FunctionPrinter:
    """The printer of a recorded program; `values` are in its slots, and `owner` has for each of its sources whose it is."""

    parameters: Parameters
    program: Program
    values: Values
    owner: Sequence[int]
    sources: Nest
    starts: Structure
    target: Nest
    ends: Structure
    names: dict[int, str]

    def __post_init__(self) -> None:
        self.arguments = self.parameters.all
        self.scope = _Scope({each.name for each in self.arguments})
        self.code = Code(self.scope)
        self.lines: list[str] = []
        self.env: dict[int, str] = {}  # what moves with the sources

    def print(self) -> tuple[str, dict[str, Array]]:
        self._unpack()
        for step in self.program.steps:
            inputs = [self.values[slot] for slot in step.ins]
            pairs = enumerate(zip(step.ins, inputs, strict=True))
            args = [self.env[slot] if i in step.active_ins else self._constant(x) for i, (slot, x) in pairs]
            default = f"t{len(self.lines)}"
            outs = [self._new(slot, default) if j in step.active_outs else "_" for j, slot in enumerate(step.outs)]
            self.lines += self.code.operation(step.op, inputs, args, outs, step.active_ins)
            self.env.update({step.outs[j]: outs[j] for j in step.active_outs})
        returned = zip(self.program.targets, self.ends.leaves, strict=True)
        ends = iter([slot is not None and self.env.get(slot) or self._constant(leaf.array) for slot, leaf in returned])
        return self._assemble(packed(self.target, ends)), self.code.large

    def _assemble(self, returned: str) -> str:
        notes = [f"# {name}: {type_of(x)}, in .constants" for name, x in self.code.large.items()]
        head = "\n".join([*notes, *self.code.constants])
        body = [f"    {line}" for line in [*self.lines, f"return {returned}"]]
        names = ", ".join([self.parameter, *(each.name for each in self.arguments)])
        if self.arguments:  # another shape may need another program: a mean that is a division by a number is one
            types = ", ".join(f"{each.name}: {type_of(each.array)}" for each in self.arguments)
            body.insert(0, f"    # for {types}")
        main = "\n".join([f"def f({names}):", *body])
        return "\n\n\n".join(filter(None, [head, *self.code.helpers, main])) + "\n"

    def _constant(self, x: Value) -> str:
        return self.code.constant(x, self.names.get(id(x)))

    def _new(self, slot: int, default: str) -> str:
        name = self.names.get(id(self.values[slot])) if slot < len(self.values) else None
        return self.scope.new(name or default)

    def _unpack(self) -> None:
        """Names the sources."""
        leaves = self.starts.leaves
        single = leaf_of(self.sources) is not None
        paths = ["sources"] if single else list(_paths(self.sources, "sources"))
        names: list[str] = []
        for leaf, path in zip(leaves, paths, strict=True):
            keyed = re.findall(r"\['(\w+)'\]$", path)
            wish = self.names.get(id(leaf.array)) or (keyed[0] if keyed else "x" if single else f"x{len(names)}")
            names.append(self.scope.new(wish))
        self.parameter = names[0] if single else "sources"
        connected = {slot: i for i, slot in zip(self.owner, self.program.sources, strict=True) if slot is not None}
        used = {i for i in connected.values() if i < len(leaves)}
        if not single and used:
            flat = isinstance(self.sources, (list, tuple)) and all(p == f"sources[{i}]" for i, p in enumerate(paths))
            if flat and len(used) == len(leaves):
                line = f"{', '.join(names)}{',' if len(names) == 1 else ''} = sources"
                broken = ["(", *(f"    {name}," for name in names), ") = sources"]
                self.lines += [line] if len(line) <= WIDTH else broken
            else:
                self.lines += [f"{names[i]} = {paths[i]}" for i in sorted(used)]
        names += [each.name for each in self.arguments]
        self.env.update({slot: names[i] for slot, i in connected.items()})


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
        if not hasattr(x, "shape") or isinstance(x, (bool, int, float, complex)):
            return number(x)
        plain = not isinstance(x, Tracer) and not is_key(x)
        if x.ndim == 0 and plain and (text := array_text(x)) is not None:
            return text
        return self._named(x, wish or "c", None if isinstance(x, Tracer) else array_text(x))

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

    def operation(
        self, op: Op, inputs: Sequence[Value], args: Sequence[str], outs: Sequence[str], active_ins: Sequence[int]
    ) -> list[str]:
        """The line that computes `outs` from `args` as `op` does from `inputs`; `active_ins` are those that carry gradient."""
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
            return [_assign(outs, re.sub(r"\barg(\d+)\b", lambda m: args[int(m[1])], spelled))]
        jaxpr = contents.open_jaxpr(closed)
        consts = [self.constant(c) for c in getattr(closed, "consts", ())]
        if not consts and (text := nearly(op, inputs, args, active_ins)) is not None:
            return [_assign(outs, text)]
        if len(jaxpr.eqns) == 1 and not consts:
            eqn = jaxpr.eqns[0]
            if list(eqn.outvars) == list(jaxpr.outvars) and len(set(eqn.outvars)) == len(eqn.outvars):
                names = dict(zip(jaxpr.invars, args, strict=True))
                return [_assign(outs, self.equation(eqn, [self._atom(v, names) for v in eqn.invars]))]
        try:
            return [_assign(outs, f"{self.helper(closed, op.name)}({_arrays(args)})")]
        except Unspellable:
            return [_assign(outs, self._opaque(closed, op.name, args))]

    def _opaque(self, closed: JaxProgram, wish: str, args: Sequence[str]) -> str:
        """A call of a program that is a parameter of the code: its result, or the list of them."""
        text = f"{self._named(jaxpr_as_fun(closed), wish)}({_arrays(args)})"
        return f"{text}[0]" if len(contents.open_jaxpr(closed).outvars) == 1 else text

    def helper(self, closed: JaxProgram, wish: str) -> str:
        """The name of a function, defined above, that does what a jaxpr does; one result is returned as it is."""
        key = canonical.key(closed), wish
        if key not in self._helper_of:
            name = self.scope.new(wish)
            self.helpers.append(self._function(closed, name))
            self._helper_of[key] = name
        return self._helper_of[key]

    def with_rule(
        self, closed: JaxProgram, rule: Sequence[JaxProgram], write: Callable[[str, str], str], wish: str
    ) -> str:
        """The name of a function with a derivative rule of its own: `write` makes its code of its name and its definition."""
        key = canonical.key(closed), *map(canonical.key, rule)
        if key not in self._helper_of:
            if self._rules_around == RULES_IN_RULES:  # each rule may have a rule of its own, without end
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
        parameters, body, results = self._body(closed)
        return _definition(name, parameters, [*body, f"return {_one_or_tuple(results)}"])

    def _body(self, closed: JaxProgram) -> tuple[list[str], list[str], list[str]]:
        """The parameters, lines and results of a function that does what a jaxpr does."""
        jaxpr = contents.open_jaxpr(closed)
        letters = self.scope.letters()
        names: dict[Atom, str] = dict(zip(jaxpr.constvars, map(self.constant, contents.consts_of(closed)), strict=True))
        parameters = [next(letters) for _ in jaxpr.invars]
        names.update(zip(jaxpr.invars, parameters, strict=True))
        lines = []
        for eqn, given in needed(jaxpr, jaxpr.outvars, also=lambda eqn: bool(eqn.effects)):
            if any(isinstance(v.aval, RefType) for v in (*eqn.invars, *eqn.outvars)):
                raise Unspellable(eqn.primitive.name)
            text = self.equation(eqn, [self._atom(v, names) for v in eqn.invars])
            outs = [next(letters) if v in given else "_" for v in eqn.outvars]
            names.update(zip(eqn.outvars, outs, strict=True))
            lines.append(_assign(outs, text))
        return parameters, lines, [self._atom(v, names, result=True) for v in jaxpr.outvars]

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
    return "\n".join([f"def {name}({', '.join(parameters)}):", *(f"    {line}" for line in body)])


def _assign(outs: Sequence[str], text: str) -> str:
    if len(outs) == 1:
        return f"{outs[0]} = {text}" if not text.startswith("(*") else f"({outs[0]},) = {text}"
    return f"{', '.join(outs)} = {text}" if outs else text


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
    return _first_of(eqn, f"{code.needs('while_loop')}({test}, {body}, {lists})")


def _cond(code: Code, eqn: Equation, args: Sequence[str]) -> str:
    branches = [code.helper(branch, "branch") for branch in eqn.params["branches"]]
    if len(branches) == 2:
        return f"jax.lax.cond({', '.join([args[0], branches[1], branches[0], *args[1:]])})"
    return f"jax.lax.switch({', '.join([args[0], '[' + ', '.join(branches) + ']', *args[1:]])})"


def _checkpoint(code: Code, eqn: Equation, args: Sequence[str]) -> str | None:
    if eqn.params["policy"] is not None:
        return None
    return f"jax.checkpoint({code.helper(eqn.params['jaxpr'], 'remat')})({', '.join(args)})"


def _called(function: str) -> Callable:
    def rule(code: Code, eqn: Equation, args: Sequence[str]) -> str:
        return f"{function}({args[0] if len(args) == 1 else '(' + ', '.join(args) + ')'})"

    return rule


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
        return [*outs, *(t for t, aval in zip(tangents, call.out_avals, strict=True) if is_inexact_kind(aval))]

    rule = _traced(jax.make_jaxpr(pushed), *avals, *(avals[i] for i in moving))

    def write(name: str, own: str) -> str:
        given, body, results = code._body(rule)
        outs, found = results[: len(call.out_avals)], iter(results[len(call.out_avals) :])
        tangents = [
            next(found) if is_inexact_kind(aval) else f"np.zeros({aval.shape}, jax.dtypes.float0)"
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
        cotangents = [x if is_inexact_kind(aval) else np.zeros(aval.shape, jax.dtypes.float0) for x, aval in given]
        return jax.tree.unflatten(pulls[-1], xs[:kept])(cotangents)

    pulled = _traced(jax.make_jaxpr(backward), *closed.out_avals[outs:], *call.out_avals)

    def write(name: str, own: str) -> str:
        given, body, results = code._body(closed)
        residuals = ", ".join(results[outs:]) + "," * bool(kept)
        forward = _definition(f"{name}_fwd", given, [*body, f"return {_one_or_tuple(results[:outs])}, ({residuals})"])
        given, body, results = code._body(pulled)
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
    return [i for i, v in enumerate(eqn.invars) if i >= eqn.params["num_consts"] and is_inexact_kind(v.aval)]


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
    "device_put": _called("jax.device_put"),
    "random_unwrap": _called("jax.random.key_data"),
    "random_wrap": lambda _, eqn, args: f"jax.random.wrap_key_data({args[0]}, impl={eqn.params['impl'].name!r})",
}
