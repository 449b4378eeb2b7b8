"""An operation written as code: by its spelling, else as a function of its own, down to ``jax.lax`` and JAX's primitives."""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import inspect
import itertools
import keyword
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, TypeAlias

import jax
import numpy as np

from ...jaxprs import canonical, contents
from ...jaxprs.custom_rules import left_out
from ...jaxprs.dependence import is_key, type_has_tangent
from ...jaxprs.derivatives import restricted
from ...jaxprs.evaluate import needed
from ...jaxprs.fence import Literal, RefType, Tracer, eval_jaxpr, jaxpr_as_fun
from ...jaxprs.types import Atom, Equation, JaxProgram, Value
from ...places import is_jaxs
from ...tape.operation import Op
from ...tf.values.shown import unreadable
from ...tf.values.types import Array
from ..writing.graph import ValueMap
from ..writing.indices import contents_of
from . import layout, scopes
from .listing import identifier, unused
from .sources import Sources
from .spelling import (
    SCOPE,
    WRITTEN_OUT,
    Aval,
    Unspellable,
    array_text,
    called_by,
    closed_equation,
    dtype_text,
    equations_in,
    is_name,
    nearly,
    normal_form,
    number,
    spelling_of,
    spelling_of_equation,
    static_arguments,
)
from .tables import sections

# How deep the rules of functions that rules call are written: each takes as long as all before it.
MOST_RULES = 2
# What an operation is written as in its place is not longer than this, with letters for what it takes.
SHORT = 24
# functions that printed code may call; the products of `scaled` are as in `jaxprs.poles`
_PRELUDE = {name: text.strip() for name, text in sections(Path(__file__).with_name("prelude.txt")).items()}
RESERVED = {*keyword.kwlist, *dir(builtins), *SCOPE, *_PRELUDE}


def written(x: Value) -> str | None:
    """A number as code; None for what has to have a name."""
    if not hasattr(x, "shape") or isinstance(x, (bool, int, float, complex)):
        return number(x)
    plain = x.ndim == 0 and not isinstance(x, Tracer) and not is_key(x)
    return array_text(x) if plain else None


class Taken:
    """Names that are taken, and how to get new ones."""

    def __init__(self, taken: Set[str]) -> None:
        self.taken = RESERVED | taken | {"f"}

    def new(self, hint: str) -> str:
        """`hint` as an identifier of its own."""
        name = unused(identifier(hint), self.taken)
        self.taken.add(name)
        return name

    def letters(self) -> Iterator[str]:
        """a, b, ... z, a1, b1, ..., but for names that mean something, and the l that looks like a 1."""
        names = (f"{letter}{i or ''}" for i in itertools.count() for letter in "abcdefghijkmnopqrstuvwxyz")
        return (name for name in names if name not in self.taken)


class Code:
    """Code being written: functions that it needs, constants, and lines for operations."""

    users: Callable[[JaxProgram, Sequence[str | None], Iterator[str]], scopes.Definition | None]

    def __init__(self, scope: Taken):
        self.users, self.names = lambda *args: None, scopes.KeyNames()
        self.scope = scope
        self.helpers: list[str] = []
        self.constants: list[str] = []
        self.large: dict[str, Array] = {}
        self._helper_of: dict[Hashable, str] = {}
        self._rules_around: dict[Hashable, str] = {}  # those whose rules are being written
        self._bodies_around = set[Hashable]()  # and functions of the user's
        # a loop that was unrolled does the same again and again
        self._operations: dict[Hashable, tuple[JaxProgram, str | None]] = {}
        self.known = ValueMap[str]()
        self._named_before: dict[Hashable, str] = {}  # by what they are called and have in them
        self._prelude: set[str] = set()
        self.sources = Sources()

    # -- constants --

    def constant(self, x: Value, hint: str | None = None, most: int = WRITTEN_OUT) -> str:
        """The code for `x`: a number as it is, an array of at most so many elements by a name defined above, anything else as a
        parameter."""
        if (text := written(x)) is not None:
            return text
        text = array_text(x, most)
        if text is not None and self.sources.has_array(x):  # JAX computes at once with what is NumPy's
            text = text.replace("jnp.", "np.")
        return self._named(x, hint or "c", text)

    def _named(self, x: Array, hint: str, text: str | None = None) -> str:
        """A name for `x`, defined above by `text`; without one it is a parameter of the code. Equal arrays are one."""
        if x not in self.known:
            key = hint, text or _contents(x)
            if key not in self._named_before:
                name = self._named_before[key] = self.scope.new(hint)
                if text is None:
                    self.large[name] = x
                else:
                    self.constants.append(f"{name} = {text}")
            self.known[x] = self._named_before[key]
        return self.known[x]

    def space(self) -> dict[str, Any]:
        """The namespace in which the code runs."""
        space = dict(SCOPE) | self.large
        exec("\n".join([*self.constants, *self.helpers]), space)
        return space

    # -- operations --

    def operation(self, op: Op, inputs: Sequence[Value], args: Sequence[str], active_ins: Sequence[int]) -> str:
        """What computes the results from `args` as `op` does from `inputs`; `active_ins` vary."""
        if count := getattr(op, "results", 0):
            return self._custom(op, inputs, args, [i - count for i in active_ins if i >= count])
        types = tuple(map(jax.typeof, inputs))
        general = tuple(f"arg{args.index(arg)}" if is_name(arg) else arg for arg in args)
        key = op, types, general, tuple(active_ins)
        if key not in self._operations:
            closed = jax.make_jaxpr(op.fn)(*inputs)
            spelled = None
            if _refused(closed, inputs, active_ins):
                spelled = self._opaque(closed, op.name, general)
            elif not contents.consts_of(closed):
                spelled = spelling_of(op.name, closed, types, general, static=static_arguments(op))
            self._operations[key] = closed, spelled
        closed, spelled = self._operations[key]
        if spelled is not None:
            return re.sub(r"\barg(\d+)\b", lambda m: args[int(m[1])], spelled)
        if (text := nearly(op, inputs, args, active_ins)) is not None:
            return text
        if (text := self.single(closed, args)) is not None:
            return text
        try:
            return self._inlined(closed, args) or f"{self.helper(closed, op.name)}({_arrays(args)})"
        except Unspellable:
            return self._opaque(closed, op.name, args)

    def single(self, closed: JaxProgram, args: Sequence[str]) -> str | None:
        """The code of a program that is one equation; None for others."""
        jaxpr = contents.open_jaxpr(closed)
        if contents.consts_of(closed) or [eqn.outvars for eqn in jaxpr.eqns] != [jaxpr.outvars]:
            return None
        names = dict(zip(jaxpr.invars, args, strict=True))
        return self.equation(jaxpr.eqns[0], [self._atom(v, names) for v in jaxpr.eqns[0].invars])

    def _custom(self, op: Any, inputs: Sequence[Value], args: Sequence[str], active_ins: Sequence[int]) -> str:
        """A call of a function with a gradient of the user's: of its arguments, without the results that the tape has of it."""
        closed = jax.make_jaxpr(op.fn)(*inputs)
        jaxpr = contents.open_jaxpr(closed)
        last: Any = jaxpr.eqns[-1] if jaxpr.eqns else None
        read = {v for eqn in jaxpr.eqns for v in eqn.invars if not isinstance(v, Literal)}
        # a variable that is an argument is also among what the function used, and is not read as that
        used = [i for i, v in enumerate(jaxpr.invars) if i >= op.results and v in read]
        stop = op.results + getattr(op, "given", len(inputs))
        own = [jaxpr.invars[i] for i in used if i < stop]  # not what its gradient closes over: there is none for that
        ruled = last is not None and last.primitive.name == "custom_vjp_call" and last.outvars == jaxpr.outvars
        if not ruled or last.invars[op.results :][: len(own)] != own:
            without = Op(op.name, functools.partial(op.fn, *[None] * op.results))
            return self.operation(without, inputs[op.results :], args[op.results :], active_ins)
        before = jaxpr.replace(eqns=jaxpr.eqns[:-1], outvars=last.invars)
        ins = restricted(functools.partial(eval_jaxpr, before, contents.consts_of(closed)), inputs, used)
        avals = [jaxpr.invars[i].aval for i in used]
        moving = [op.results + i for i, v in enumerate(own) if type_has_tangent(v.aval)]
        plain: JaxProgram = jax.make_jaxpr(lambda *xs: ins(*xs)[: op.results])(*avals)
        names = list(inspect.signature(op.fn).parameters)
        hints = names if len(names) == len(used) else []
        rule = _by_vjp(self, last, avals, moving, ins, op.results)
        return f"{self.with_rule(plain, *rule, op.name, hints)}({_arrays([args[i] for i in used])})"

    def _opaque(self, closed: JaxProgram, hint: str, args: Sequence[str]) -> str:
        """A call of a program that is a parameter of the code: its result, or the list of them."""
        text = f"{self._named(jaxpr_as_fun(closed), hint)}({_arrays(args)})"
        return f"{text}[0]" if len(contents.open_jaxpr(closed).outvars) == 1 else text

    def helper(self, closed: JaxProgram, hint: str) -> str:
        """The name of a function, defined above, that does what a jaxpr does; one result is returned as it is."""
        return self._defined((canonical.key(closed), hint), hint, lambda: self._function(closed, "f"))

    def _inlined(self, closed: JaxProgram, args: Sequence[str]) -> str | None:
        """What a jaxpr does, as one expression of names, where that is short and each is used once."""
        function, names = self._body(closed, ()) if all(map(is_name, args)) else (None, None)
        if function is None or names is None or function.statements:
            return None
        short = len(layout.text_of(layout.replaced(function.result, names.expressions()))) <= SHORT
        once = scopes.keys_of(function.result) == Counter(function.parameters)
        given = {key: layout.parsed(arg) for key, arg in zip(function.parameters, args, strict=True)}
        return layout.text_of(layout.replaced(function.result, given)) if short and once else None

    def _defined(self, key: Hashable, hint: str, write: Callable[[], str]) -> str:
        """The name of a function, defined above by the text that is written for the name ``f``."""
        if key not in self._helper_of:
            text = write()
            if (text, hint) not in self._helper_of:  # of other shapes it may be the same
                name = self._helper_of[text, hint] = self.scope.new(hint)
                self.helpers.append(text.replace("def f(", f"def {name}(", 1))
            self._helper_of[key] = self._helper_of[text, hint]
        return self._helper_of[key]

    def with_rule(
        self,
        closed: JaxProgram,
        rule: Sequence[JaxProgram],
        write: Callable[[str, str], str],
        hint: str,
        parameters: Sequence[str] = (),
    ) -> str:
        """The name of a function with a derivative rule of its own: `write` makes its code of its name and its definition."""
        key = canonical.key(closed), *map(canonical.key, rule)
        if key not in self._helper_of:
            with left_out():  # a rule that calls its function may do so by another object each time
                plain = hint, *map(canonical.key, (closed, *rule))
            if plain in self._rules_around:
                return self._rules_around[plain]
            if len(self._rules_around) == MOST_RULES:  # each rule may have a rule of its own, without end
                raise Unspellable(hint)
            # before its rule is written, which may call the function
            self._helper_of[key] = self._rules_around[plain] = name = self.scope.new(hint)
            before = len(self.helpers)
            try:
                text = write(name, self._function(closed, name, parameters))
            finally:
                del self._rules_around[plain]
            own = re.compile(rf"\b{name}(?=(_fwd|_bwd|_jvp)?\b)")
            same = own.sub("f", text), hint  # of other shapes it may be the same
            if same not in self._helper_of or any(map(own.search, self.helpers[before:])):
                self._helper_of.setdefault(same, name)
                self.helpers.append(text)
            else:
                self.scope.taken.remove(name)
                self._helper_of[key] = self._helper_of[same]
        return self._helper_of[key]

    def _function(self, closed: JaxProgram, name: str, parameters: Sequence[str] = ()) -> str:
        function, names = self._body(closed, parameters)
        return "\n".join(scopes.lines(function, name, names))

    def parts(
        self, closed: JaxProgram, parameters: Sequence[str | None] = ()
    ) -> tuple[list[str], list[str], list[str]]:
        """The parameters, lines and results of a function that does what a jaxpr does."""
        function, names = self._body(closed, parameters)
        found = names.expressions()
        result = function.result.elts if isinstance(function.result, ast.Tuple) else [function.result]
        results = [layout.text_of(layout.replaced(x, found)) for x in result]
        body, count = scopes.body(function, names, ""), len(contents.open_jaxpr(closed).outvars)
        if len(results) != count:  # what a loop gathers
            body.append(f"results = {results[0]}")
            results = [f"results[{i}]" for i in range(count)]
        return [names.given[key] for key in function.parameters], body, results

    def _body(self, closed: JaxProgram, hints: Sequence[str | None]) -> tuple[scopes.Definition, scopes.KeyNames]:
        """`hints`: what its first parameters are to be called, if not by letters."""
        if (own := self._of_users(closed, hints)) is not None:
            return own, self.names
        jaxpr = contents.open_jaxpr(closed)
        letters, names = self.scope.letters(), scopes.KeyNames(width=self.names.width)
        known: dict[Atom, str] = dict(zip(jaxpr.constvars, map(self.constant, contents.consts_of(closed)), strict=True))
        parameters = [scopes.new_key() for _ in jaxpr.invars]
        known.update(zip(jaxpr.invars, parameters, strict=True))
        hinted = itertools.chain(hints, itertools.repeat(None))
        names.hints.update((key, next(hinted) or next(letters)) for key in parameters)
        wanted = dict(needed(jaxpr, jaxpr.outvars, also=lambda eqn: bool(eqn.effects)))
        if any(isinstance(v.aval, RefType) for eqn in wanted for v in (*eqn.invars, *eqn.outvars)):
            raise Unspellable("a reference")
        statements = [self._statement(eqn, given, known) for eqn, given in wanted.items()]
        result = layout.parsed(_one_or_tuple([self._atom(v, known, result=True) for v in jaxpr.outvars]))
        function = scopes.Definition(parameters, statements, result)
        scopes.inline(function, names)
        for s in function.statements:
            names.hints.update((out, next(letters)) for out in s.outs if out is not None)
        scopes.name_all(function, names, RESERVED)
        return function, names

    def _of_users(self, closed: JaxProgram, hints: Sequence[str | None]) -> scopes.Definition | None:
        """A function of the user's; None where it is another, or is one operation that is this function again."""
        key = canonical.key(closed)
        if key in self._bodies_around:
            return None
        self._bodies_around.add(key)
        try:
            return self.users(closed, hints, self.scope.letters())
        finally:
            self._bodies_around.remove(key)

    def _statement(self, eqn: Equation, given: Set[Atom], known: dict[Atom, str]) -> scopes.Statement:
        text = self.equation(eqn, [self._atom(v, known) for v in eqn.invars])
        outs = [scopes.new_key() if v in given else None for v in eqn.outvars]
        known.update({v: out for v, out in zip(eqn.outvars, outs, strict=True) if out is not None})
        return scopes.Statement([*outs], layout.parsed(text), None, bool(eqn.effects))

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
            with contextlib.suppress(Unspellable):
                if (text := rule(self, eqn, args)) is not None:
                    return text
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


def _contents(x: Any) -> Hashable:
    """Equal for equal arrays; what is no array, or cannot be read, is equal to itself only."""
    if not hasattr(x, "dtype") or is_key(x) or unreadable(x):
        return id(x)
    return isinstance(x, np.ndarray), x.dtype, contents_of(x)


def _refused(closed: JaxProgram, inputs: Sequence[Value], active_ins: Sequence[int]) -> bool:
    """Whether gradient would go to what a function with a rule closes over: its derivative is an error, in the code too."""
    rules = (eqn for eqn in equations_in(closed) if eqn.primitive.name == "custom_vjp_call")
    if not any(map(called_by, rules)):
        return False
    of_active = restricted(jaxpr_as_fun(closed), inputs, active_ins)
    try:
        jax.eval_shape(lambda *xs: jax.vjp(of_active, *xs)[0], *[inputs[i] for i in active_ins])
    except LookupError:
        return True
    return False


def _arrays(args: Sequence[str]) -> str:
    """Arguments of a function that was written for arrays."""
    return ", ".join(arg if is_name(arg) or _MADE.match(arg) else f"jnp.asarray({arg})" for arg in args)


_MADE = re.compile(r"jnp\.\w+\(")  # and not ``jnp.nan``


def _definition(name: str, parameters: Sequence[str], body: Sequence[str]) -> str:
    return "\n".join(layout.definition(name, parameters, [f"    {line}" if line else "" for line in body]))


# ---- functions whose derivative is their own, and control flow ------------------------------------------------------


def _jit(code: Code, eqn: Equation, args: Sequence[str]) -> str:
    name = eqn.params["name"]
    called = spelling_of_equation(name, eqn, args)
    if called is None and name == "bind":  # of a primitive
        called = code.single(eqn.params["jaxpr"], args)
    return called or f"{code.helper(eqn.params['jaxpr'], name)}({_arrays(args)})"


def _scan(code: Code, eqn: Equation, args: Sequence[str]) -> str:
    p, (consts, carry) = eqn.params, contents.scan_counts(eqn.params)
    plain = {"length": p["length"] if len(args) > consts + carry else None, "reverse": False, "unroll": 1}
    options = {key: p[key] for key, x in plain.items() if p[key] != x}
    lists = args[:consts], args[consts : consts + carry], args[consts + carry :]
    return _of_lists(code.needs("scan_flat"), [code.helper(p["jaxpr"], "step")], lists, eqn, options)


def _while(code: Code, eqn: Equation, args: Sequence[str]) -> str:
    p = eqn.params
    start, stop = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    rows = p["cond_jaxpr"].out_avals[0].shape  # by `vmap` of what is tested
    functions = [code.helper(p["cond_jaxpr"], "test"), code.helper(p["body_jaxpr"], "body")]
    lists = args[:start], args[start:stop], args[stop:]
    return _of_lists(code.needs("while_rows" if rows else "while_flat"), functions, lists, eqn)


def _of_lists(
    name: str,
    functions: Sequence[str],
    lists: Sequence[Sequence[str]],
    eqn: Equation,
    options: Mapping[str, Any] | None = None,
) -> str:
    """A call of a function of the prelude, which gives a tuple."""
    texts = [*functions, *(f"[{', '.join(each)}]" for each in lists)]
    texts += [f"{key}={x!r}" for key, x in (options or {}).items()]
    return f"{name}({', '.join(texts)}){'[0]' * (len(eqn.outvars) == 1)}"


def _cond(code: Code, eqn: Equation, args: Sequence[str]) -> str:
    branches = [code.helper(branch, "branch") for branch in eqn.params["branches"]]
    if len(branches) == 2:
        return f"jax.lax.cond({', '.join([args[0], branches[1], branches[0], *args[1:]])})"
    return f"jax.lax.switch({', '.join([args[0], '[' + ', '.join(branches) + ']', *args[1:]])})"


def _checkpoint(code: Code, eqn: Equation, args: Sequence[str]) -> str | None:
    if eqn.params["policy"] is not None:
        return None
    return f"jax.checkpoint({code.helper(eqn.params['jaxpr'], 'remat')})({', '.join(args)})"


def _of_key(text: str) -> Callable[[Code, Equation, Sequence[str]], str | None]:
    """A draw, or another key: of one key."""
    return lambda _, eqn, args: None if eqn.invars[0].aval.ndim else text.format(*args, **eqn.params)


# the programs of a rule, and what writes the code of a function with it, of its name and its definition
Rule: TypeAlias = tuple[tuple[JaxProgram, ...], Callable[[str, str], str]]


def _with_rule(trace: Callable[[Code, Equation], Rule]) -> Callable[[Code, Equation, Sequence[str]], str]:
    def rule(code: Code, eqn: Equation, args: Sequence[str]) -> str:
        call, hint = eqn.params["call_jaxpr"], _name_of(eqn.params["call_jaxpr"])
        if called_by(eqn) is not None:
            plain = code.single(call, args) if call.eqns else args[0]
            return plain or f"{code.helper(call, hint)}({_arrays(args)})"
        if (text := spelling_of_equation(hint, eqn, args)) is not None:
            return text
        if _is_jaxs_own(hint, eqn):
            return f"jax.nn.{hint}({', '.join(args)})"
        return f"{code.with_rule(call, *trace(code, eqn), hint)}({_arrays(args)})"

    return rule


def _is_jaxs_own(name: str, eqn: Equation) -> bool:
    """Whether an equation is a function of `jax.nn` as it is for these shapes, whatever `jax.vmap` has made of its rule."""
    info, function = contents.open_jaxpr(eqn.params["call_jaxpr"]).debug_info, getattr(jax.nn, name, None)
    if not is_jaxs(info.func_filename or "") or not callable(function):
        return False
    with contextlib.suppress(TypeError):  # it takes more
        other = jax.make_jaxpr(function)(*[v.aval for v in eqn.invars])
        own = (each for each in equations_in(other) if each.primitive is eqn.primitive)
        return any(normal_form(each.params["call_jaxpr"]) == normal_form(eqn.params["call_jaxpr"]) for each in own)
    return False


def _custom_jvp(code: Code, eqn: Equation) -> Rule:
    call = eqn.params["call_jaxpr"]
    avals, count, moving = call.in_avals, len(call.in_avals), _moving(eqn)

    def pushed(*xs: Array) -> list[Array]:
        outs, tangents = jax.jvp(restricted(_runs(eqn), xs[:count], moving), tuple([xs[i] for i in moving]), xs[count:])
        return [*outs, *(t for t, aval in zip(tangents, call.out_avals, strict=True) if type_has_tangent(aval))]

    try:
        rule = jax.make_jaxpr(pushed)(*avals, *(avals[i] for i in moving))
    except Exception as error:  # a rule that raises, by design or not, is not written out
        raise Unspellable(call) from error

    def write(name: str, own: str) -> str:
        names = _parameters_of(own)
        given, body, results = code.parts(rule, [*names, *(f"{names[i]}_dot" for i in moving)])
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
    # a derivative with respect to what the function closed over before it was lifted, the first arguments, is an error
    inputs = _moving(eqn)
    for first in range(len(inputs) or 1):
        with contextlib.suppress(Exception):
            return _by_vjp(code, eqn, eqn.params["call_jaxpr"].in_avals, inputs[first:], lambda *xs: xs, 0)
    raise Unspellable(eqn.params["call_jaxpr"])


def _by_vjp(
    code: Code,
    eqn: Equation,
    avals: Sequence[Aval],
    moving: Sequence[int],
    ins: Callable[..., Any],
    first: int,
) -> Rule:
    """The rule of a function of `avals`, which has its own by an equation with the inputs `ins` of it.

    Of these those that are `moving` have a derivative; those from `first` on are the arguments of the function.
    """
    outs, pulls = len(eqn.outvars), list[Any]()

    def forward(*xs: Array) -> list[Array]:
        inputs = ins(*xs)
        found, pull = jax.vjp(restricted(_runs(eqn), inputs, moving), *[inputs[i] for i in moving])
        kept, tree = jax.tree.flatten(pull)
        pulls.append(tree)
        return kept if first else [*found, *kept]

    closed = jax.make_jaxpr(forward)(*avals)
    own = 0 if first else outs
    kept, types = len(closed.out_avals) - own, [v.aval for v in eqn.outvars]

    def backward(*xs: Array) -> tuple[Array, ...]:
        given = zip(xs[kept:], types, strict=True)
        cotangents = [x if type_has_tangent(aval) else np.zeros(aval.shape, jax.dtypes.float0) for x, aval in given]
        return jax.tree.unflatten(pulls[-1], xs[:kept])(cotangents)

    pulled = jax.make_jaxpr(backward)(*closed.out_avals[own:], *types)

    def write(name: str, text: str) -> str:
        given, body, results = code.parts(closed, _parameters_of(text))
        residuals = _unpacked(results[own:]) if kept else "()"
        # called by itself, so that a second derivative goes by the rule, too
        value = f"{name}({', '.join(given)})" if first else _one_or_tuple(results[:own])
        if first and body:  # which may give a parameter's name to another value
            held = unused("value", {*re.findall(r"\w+", f"{given} {body} {results}")})
            body, value = [f"{held} = {value}", *body], held
        forward = _definition(f"{name}_fwd", given, [*body, f"return {value}, {residuals}"])
        given, body, results = code.parts(pulled)
        unpack = [f"{_bare(given[:kept])} = residuals"] if kept else []
        cotangents = given[kept] if outs == 1 else "cotangents"
        if outs > 1:
            unpack.append(f"{_bare(given[kept:])} = {code.needs('flat')}(cotangents)")
        found = dict(zip(moving, results, strict=True))
        returned = _bare([found.get(first + i, "None") for i in range(len(avals))])
        names = ["residuals" if kept else "_", cotangents]
        backward = _definition(f"{name}_bwd", names, [*unpack, *body, f"return {returned}"])
        rule = f"{name}.defvjp({name}_fwd, {name}_bwd)"
        return "\n\n\n".join([f"@jax.custom_vjp\n{text}", forward, backward, rule])

    return (closed, pulled), write


def _parameters_of(definition: str) -> list[str]:
    (function,) = ast.parse(definition).body
    return [arg.arg for arg in function.args.args]  # type: ignore[attr-defined]


def _moving(eqn: Equation) -> list[int]:
    """The inputs of a function with a rule that have a derivative; it closes over the first."""
    return [i for i, v in enumerate(eqn.invars) if i >= eqn.params["num_consts"] and type_has_tangent(v.aval)]


def _runs(eqn: Equation) -> Callable[..., Any]:
    """An equation as a function of its inputs, with its rule as that was traced: JAX has no lines for what it transposes."""
    params = eqn.params | canonical.parameter_snapshots[eqn.primitive.name](eqn.params)
    return lambda *xs: eqn.primitive.bind(*xs, **eqn.primitive.get_bind_params(params))


def _unpacked(names: Sequence[str]) -> str:
    return f"({', '.join(names)}{',' * (len(names) == 1)})"


def _bare(names: Sequence[str]) -> str:
    """A tuple where it needs no parentheses, as a formatter writes it."""
    return ", ".join(names) if len(names) > 1 else _unpacked(names)


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
    "random_seed": _of_key("jax.random.key({0}, impl={impl.name!r})"),
    "random_fold_in": _of_key("jax.random.fold_in({0}, {1})"),
    "random_bits": _of_key("jax.random.bits({0}, {shape}, jnp.uint{bit_width})"),
    "random_unwrap": lambda _, eqn, args: f"jax.random.key_data({args[0]})",
    "random_wrap": lambda _, eqn, args: f"jax.random.wrap_key_data({args[0]}, impl={eqn.params['impl'].name!r})",
}
