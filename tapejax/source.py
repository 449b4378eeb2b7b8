"""A program printed as plain ``jnp`` code, one line an operation, that runs where it is pasted.

Every spelling is tried before it is printed: it is traced, and taken only if it gives the very operations that were
recorded. So ``jnp.sum(x, axis=1)`` can be guessed from a reduction that has lost its arguments, and a wrong guess costs
nothing. What has no short spelling is written out, down to ``jax.lax`` and, at the last, to JAX's primitives.
"""

from __future__ import annotations

import builtins
import enum
import functools
import inspect
import itertools
import keyword
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from . import jaxprs, nest, recorder
from .listing import page, type_of
from .program import Program
from .structures import Structure, is_variable, leaf_of

# Arrays of more elements than this are not written out: the printed code takes them from names.
WRITTEN_OUT = 100
SPELLINGS_KEPT = 4096

# Where printed code looks names up, and what it imports.
_MODULES: dict[str, Any] = {
    "jnp": jnp,
    "jax.nn": jax.nn,
    "jax.lax": jax.lax,
    "jnp.linalg": jnp.linalg,
    "jnp.fft": jnp.fft,
    "jax.scipy.special": jax.scipy.special,
    "jax.scipy.linalg": jax.scipy.linalg,
    "jax.ops": jax.ops,
}
IMPORTS = "import jax\nimport jax.numpy as jnp\nimport numpy as np\n"
_SCOPE = {"jax": jax, "jnp": jnp, "np": np}
_RESERVED = {*keyword.kwlist, *dir(builtins), *_SCOPE, "f", "sources", "scan", "while_loop", "flat"}


# ---- the function ---------------------------------------------------------------------------------------------------


class TapeFunction:
    """A pure function got from a tape. Call it, transform it (`jax.grad`, `jax.jit` ...), or print it: it is code.

    ``code`` is that code. Arrays too large to be written out in it are names that it expects to be defined, where it can
    the user's own; ``constants`` holds them: ``exec(f.code, {**globals(), **f.constants})`` always runs.
    """

    def __init__(
        self,
        function: Callable,
        program: Program,
        values: Sequence[Any],
        arrays: Sequence[Any],
        owner: Sequence[int],
        starts: tuple[Any, Structure],
        ends: tuple[Any, Structure],
        names: dict[int, str],
    ):
        self._function = function
        self._printed: tuple[str, dict[str, Any]] | None = None
        self._parts = (program, values, arrays, owner, starts, ends)
        self._names = names
        self.__name__ = self.__qualname__ = "f"

    def __call__(self, sources: Any) -> Any:
        return self._function(sources)

    def _print(self) -> tuple[str, dict[str, Any]]:
        if self._printed is None:
            with recorder.outside():
                self._printed = _FunctionPrinter(*self._parts, self._names).print()
        return self._printed

    @property
    def code(self) -> str:
        return self._print()[0]

    @property
    def constants(self) -> dict[str, Any]:
        return dict(self._print()[1])

    def __str__(self) -> str:
        return self.code

    __repr__ = __str__

    def _repr_html_(self) -> str:
        import html

        return page(f"<pre>{html.escape(self.code)}</pre>")


class _Scope:
    """Names that are taken, and how to get new ones."""

    def __init__(self, taken: set[str] = frozenset()):  # type: ignore[assignment]
        self._taken = set(taken) | _RESERVED

    def new(self, wish: str) -> str:
        """`wish` as an identifier of its own."""
        base = re.sub(r"\W+", "_", wish).strip("_") or "x"
        base = f"x{base}" if base[0].isdigit() else base
        name = base
        for i in itertools.count(2):
            if name not in self._taken:
                self._taken.add(name)
                return name
            name = f"{base}_{i}"
        raise AssertionError

    def letters(self) -> Iterator[str]:
        """a, b, ... z, aa, ab, ..., but for names that mean something, and the l that looks like a 1."""
        alphabet = "abcdefghijkmnopqrstuvwxyz"
        for length in itertools.count(1):
            for letters in itertools.product(alphabet, repeat=length):
                if (name := "".join(letters)) not in self._taken:
                    yield name


class _FunctionPrinter:
    def __init__(self, program, values, arrays, owner, starts, ends, names: dict[int, str]):
        self.program, self.values = program, values
        self.arrays, self.owner = arrays, owner
        (self.sources, self.starts), (self.target, self.ends) = starts, ends
        self.names = names
        self.scope = _Scope()
        self.code = Code(self.scope)
        self.lines: list[str] = []
        self.env: dict[int, str] = {}  # what moves with the sources

    def print(self) -> tuple[str, dict[str, Any]]:
        given = self._unpack()
        for step in self.program.steps:
            args = [
                self.env[slot] if i in step.wanted else self._constant(self.values[slot])
                for i, slot in enumerate(step.ins)
            ]
            inputs = [self.values[slot] for slot in step.ins]
            outs = [
                self._new(slot, f"t{len(self.lines)}") if j in step.present else "_" for j, slot in enumerate(step.outs)
            ]
            self.lines += self.code.operation(step.op, inputs, args, outs)
            for j in step.present:
                slot, name = step.outs[j], outs[j]
                if slot in given:  # an intermediate that is itself a source: it also moves by itself
                    moved = self.scope.new(name)
                    held = self._constant(self.values[slot])
                    self.lines.append(f"{moved} = {name} + ({given[slot]} - {held})")
                    name = moved
                self.env[slot] = name
        ends = [
            self._constant(leaf.array) if slot is None else self.env.get(slot) or self._constant(leaf.array)
            for slot, leaf in zip(self.program.targets, self.ends.leaves, strict=True)
        ]
        returned = _packed(self.target, iter(ends), self.ends)
        return self._assemble(returned), self.code.large

    def _assemble(self, returned: str) -> str:
        notes = [f"# {name}: {type_of(x)}, in .constants" for name, x in self.code.large.items()]
        head = "\n".join([*notes, *self.code.constants])
        body = [f"    {line}" for line in [*self.lines, f"return {returned}"]]
        main = "\n".join([f"def f({self.parameter}):", *body])
        return "\n\n\n".join(filter(None, [head, *self.code.helpers, main])) + "\n"

    def _constant(self, x: Any) -> str:
        return self.code.constant(x, self.names.get(id(x)))

    def _new(self, slot: int, default: str) -> str:
        name = self.names.get(id(self.values[slot])) if slot < len(self.values) else None
        return self.scope.new(name or default)

    def _unpack(self) -> dict[int, str]:
        """Names the sources; returns those of the connected ones by slot."""
        leaves = self.starts.leaves
        single = leaf_of(self.sources) is not None
        paths = ["sources"] if single else list(_paths(self.sources, self.starts, "sources"))
        names: list[str] = []
        for leaf, path in zip(leaves, paths, strict=True):
            keyed = re.findall(r"\['(\w+)'\]$", path)
            wish = self.names.get(id(leaf.array)) or (keyed[0] if keyed else "x" if single else f"x{len(names)}")
            names.append(self.scope.new(wish))
        self.parameter = names[0] if single else "sources"
        used = {i for i, slot in zip(self.owner, self.program.sources, strict=True) if slot is not None}
        if not single and used:
            flat = isinstance(self.sources, (list, tuple)) and all(p == f"sources[{i}]" for i, p in enumerate(paths))
            if flat and len(used) == len(leaves):
                self.lines.append(f"{', '.join(names)}{',' if len(names) == 1 else ''} = sources")
            else:
                self.lines += [f"{names[i]} = {paths[i]}" for i in sorted(used)]
        given: dict[int, str] = {}
        made = {slot for step in self.program.steps for slot in step.outs}
        for array, i, slot in zip(self.arrays, self.owner, self.program.sources, strict=True):
            if slot is None:
                continue
            first, name = self.arrays[self.owner.index(i)], names[i]
            if array is not first:  # what a variable held later: all that was read moves together
                later = self.scope.new(name)
                self.lines.append(f"{later} = {self._constant(array)} + ({name} - {self._constant(first)})")
                name = later
            if slot in made:
                given[slot] = name
            else:
                self.env[slot] = name
        return given


def _paths(structure: Any, taken: Structure, path: str) -> Iterator[str]:
    """Python expressions for the leaves of what a user hands over, in the order in which `Structure` takes it apart."""
    if leaf_of(structure) is not None:
        yield path
    elif nest.is_nested(structure):
        keys = sorted(structure) if isinstance(structure, Mapping) else range(len(list(structure)))
        children = [structure[k] for k in keys] if isinstance(structure, Mapping) else list(structure)
        for key, child in zip(keys, children, strict=True):
            yield from _paths(child, taken, f"{path}[{key!r}]")
    else:
        for i, part in enumerate(jax.tree.leaves(structure, is_leaf=is_variable)):
            if leaf_of(part) is not None:
                yield f"jax.tree.leaves({path})[{i}]"


def _packed(structure: Any, ends: Iterator[str], taken: Structure) -> str:
    if leaf_of(structure) is not None:
        return next(ends)
    if isinstance(structure, Mapping):
        found = {key: _packed(structure[key], ends, taken) for key in sorted(structure)}
        return "{" + ", ".join(f"{key!r}: {found[key]}" for key in structure) + "}"
    if nest.is_nested(structure):
        parts = [_packed(child, ends, taken) for child in structure]
        if isinstance(structure, tuple):
            return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        return f"[{', '.join(parts)}]"
    parts = [next(ends) for part in jax.tree.leaves(structure, is_leaf=is_variable) if leaf_of(part) is not None]
    return f"[{', '.join(parts)}]"  # a pytree class of the user's: its leaves


# ---- code -----------------------------------------------------------------------------------------------------------

_PRELUDE = {
    "flat": "def flat(out):\n    return out if isinstance(out, tuple) else (out,)",
    "scan": (
        "def scan(body, consts, carry, xs, **options):\n"
        "    def step(c, x):\n"
        "        out = flat(body(*consts, *c, *x))\n"
        "        return out[: len(carry)], out[len(carry) :]\n\n"
        "    carry, ys = jax.lax.scan(step, tuple(carry), tuple(xs), **options)\n"
        "    return *carry, *ys"
    ),
    "while_loop": (
        "def while_loop(test, body, test_consts, body_consts, start):\n"
        "    return jax.lax.while_loop(lambda c: test(*test_consts, *c), lambda c: flat(body(*body_consts, *c)), tuple(start))"
    ),
}


class Code:
    """Code being written: functions that it needs, constants, and lines for operations."""

    def __init__(self, scope: _Scope):
        self.scope = scope
        self.helpers: list[str] = []
        self.constants: list[str] = []
        self.large: dict[str, Any] = {}
        self._helper_of: dict[Any, str] = {}
        self._known: dict[Any, tuple[Any, str]] = {}
        self._prelude: set[str] = set()

    # -- constants --

    def constant(self, x: Any, wish: str | None = None) -> str:
        """How code says `x`: a number as it is, a small array by a name defined above, anything else as a parameter."""
        if not hasattr(x, "shape") or isinstance(x, (bool, int, float, complex)):
            return number(x)
        plain = not isinstance(x, jax.core.Tracer) and not jnp.issubdtype(x.dtype, jax.dtypes.extended)
        if x.ndim == 0 and plain and (text := array_text(x)) is not None:
            return text
        if id(x) in self._known:
            return self._known[id(x)][1]
        name = self.scope.new(wish or "c")
        self._known[id(x)] = (x, name)
        text = None if isinstance(x, jax.core.Tracer) else array_text(x)
        if text is None:
            self.large[name] = x
        else:
            self.constants.append(f"{name} = {text}")
        return name

    def _object(self, x: Any, wish: str) -> str:
        """A name for something that cannot be written down at all."""
        if id(x) not in self._known:
            name = self.scope.new(wish)
            self._known[id(x)] = (x, name)
            self.large[name] = x
        return self._known[id(x)][1]

    # -- operations --

    def operation(self, op: Any, inputs: Sequence[Any], args: Sequence[str], outs: Sequence[str]) -> list[str]:
        """The line that computes `outs` from `args` as `op` does from `inputs`."""
        closed = jax.make_jaxpr(_without_second_order(op.fn))(*inputs)
        jaxpr = jaxprs.open_jaxpr(closed)
        consts = [self.constant(c) for c in getattr(closed, "consts", ())]
        if not consts and (spelled := _spelled(op.name, closed, [jax.typeof(x) for x in inputs], args)) is not None:
            return [_assign(outs, spelled)]
        if len(jaxpr.eqns) == 1 and not consts:
            eqn = jaxpr.eqns[0]
            if list(eqn.outvars) == list(jaxpr.outvars) and len(set(eqn.outvars)) == len(eqn.outvars):
                names = dict(zip(jaxpr.invars, args, strict=True))
                return [_assign(outs, self.equation(eqn, [self._atom(v, names) for v in eqn.invars]))]
        if not jaxpr.eqns:
            names = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *args), strict=True))
            return [
                f"{out} = jnp.copy({self._atom(v, names)})"
                for out, v in zip(outs, jaxpr.outvars, strict=True)
                if out != "_"
            ]
        return [_assign(outs, f"{self.helper(closed, op.name)}({_arrays(args)})")]

    def helper(self, closed: Any, wish: str) -> str:
        """The name of a function, defined above, that does what a jaxpr does; one result is returned as it is."""
        key = jaxprs._structure(closed), wish
        if key not in self._helper_of:
            name = self.scope.new(wish)
            parameters, body = self._body(closed)
            self.helpers.append(_definition(name, parameters, body))
            self._helper_of[key] = name
        return self._helper_of[key]

    def _body(self, closed: Any) -> tuple[list[str], list[str]]:
        """The parameters and lines of a function that does what a jaxpr does."""
        jaxpr = jaxprs.open_jaxpr(closed)
        letters = self.scope.letters()
        names: dict[Any, str] = dict(zip(jaxpr.constvars, map(self.constant, jaxprs._consts(closed)), strict=True))
        parameters = [next(letters) for _ in jaxpr.invars]
        names.update(zip(jaxpr.invars, parameters, strict=True))
        lines = []
        read = {v for eqn in jaxpr.eqns for v in eqn.invars if not isinstance(v, core.Literal)}
        read |= {v for v in jaxpr.outvars if not isinstance(v, core.Literal)}
        for eqn in jaxpr.eqns:
            text = self.equation(eqn, [self._atom(v, names) for v in eqn.invars])
            outs = ["_" if v not in read else next(letters) for v in eqn.outvars]
            names.update(zip(eqn.outvars, outs, strict=True))
            lines.append(_assign(outs, text))
        results = [self._atom(v, names, result=True) for v in jaxpr.outvars]
        lines.append(f"return {results[0]}" if len(results) == 1 else f"return ({', '.join(results)})")
        return parameters, lines

    def _atom(self, v: Any, names: dict[Any, str], result: bool = False) -> str:
        if not isinstance(v, core.Literal):
            return names[v]
        aval: Any = v.aval
        if result:  # a result must be an array of its dtype
            return f"jnp.asarray({number(v.val)}, {dtype_text(aval.dtype)})"
        if aval.weak_type or not hasattr(v.val, "shape") and not hasattr(v.val, "dtype"):
            return number(v.val) if aval.weak_type else f"{dtype_text(aval.dtype)}({number(v.val)})"
        return self.constant(np.asarray(v.val))

    def equation(self, eqn: Any, args: Sequence[str]) -> str:
        """An expression for one equation: its result, or the tuple (or list) of them."""
        name = eqn.primitive.name
        if name in jaxprs.JIT:
            inner = eqn.params["jaxpr"]
            called = _spelled(eqn.params["name"], _closed_equation(eqn), [v.aval for v in eqn.invars], args, eqn)
            return called or f"{self.helper(inner, eqn.params['name'])}({_arrays(args)})"
        if rule := _STRUCTURED.get(name):
            try:
                if (text := rule(self, eqn, args)) is not None:
                    return text
            except _Unspellable:
                pass
        called = _spelled(name, _closed_equation(eqn), [v.aval for v in eqn.invars], args, eqn)
        if called is not None:
            return called
        fn = core.jaxpr_as_fun(_closed_equation(eqn))
        free = {v: a for v, a in zip(eqn.invars, args, strict=True) if not isinstance(v, core.Literal)}
        call = f"{self._object(fn, name)}({_arrays(list(free.values()))})"
        return f"{call}[0]" if len(eqn.outvars) == 1 else call

    def needs(self, name: str) -> str:
        """One of the functions of the prelude."""
        for wanted in ("flat", name):
            if wanted not in self._prelude:
                self._prelude.add(wanted)
                self.helpers.insert(len(self._prelude) - 1, _PRELUDE[wanted])
        return name


def _without_second_order(fn: Callable) -> Callable:
    """A function of `tapejax.ops` without what makes it connected at second order (`ops.table.straight`): its value and its
    gradient are the same, and it is the plain function that a reader knows."""
    plain = getattr(getattr(getattr(fn, "func", fn), "fun", None), "__wrapped__", None)
    if plain is None or not getattr(plain, "__module__", "").startswith("tapejax.ops"):
        return fn
    return functools.partial(plain, **getattr(fn, "keywords", {}))


def _arrays(args: Sequence[str]) -> str:
    """Arguments of a function that was written for arrays."""
    return ", ".join(arg if _is_name(arg) else f"jnp.asarray({arg})" for arg in args)


def _definition(name: str, parameters: Sequence[str], body: Sequence[str]) -> str:
    return "\n".join([f"def {name}({', '.join(parameters)}):", *(f"    {line}" for line in body)])


def _assign(outs: Sequence[str], text: str) -> str:
    if len(outs) == 1:
        return f"{outs[0]} = {text}" if not text.startswith("(*") else f"({outs[0]},) = {text}"
    return f"{', '.join(outs)} = {text}" if outs else text


def _closed_equation(eqn: Any) -> Any:
    """An equation as a program of its own, whose inputs are its distinct variables."""
    free = list(dict.fromkeys(v for v in eqn.invars if not isinstance(v, core.Literal)))
    params = eqn.primitive.get_bind_params(eqn.params)

    def bind(*xs: Any) -> Any:
        env = dict(zip(free, xs, strict=True))
        return eqn.primitive.bind(*(v.val if isinstance(v, core.Literal) else env[v] for v in eqn.invars), **params)

    return jax.make_jaxpr(bind)(*(jaxprs._spec(v.aval) for v in free))


# ---- functions whose derivative is their own, and control flow ------------------------------------------------------


def _scan(code: Code, eqn: Any, args: Sequence[str]) -> str:
    p = eqn.params
    consts, carry = jaxprs.scan_counts(p)
    body = code.helper(p["jaxpr"], "body")
    groups = (args[:consts], args[consts : consts + carry], args[consts + carry :])
    lists = ", ".join(f"[{', '.join(group)}]" for group in groups)
    text = (
        f"{code.needs('scan')}({body}, {lists}, length={p['length']}, reverse={p['reverse']}, unroll={p['unroll']!r})"
    )
    return f"{text}[0]" if len(eqn.outvars) == 1 else text


def _while(code: Code, eqn: Any, args: Sequence[str]) -> str:
    p = eqn.params
    test, body = code.helper(p["cond_jaxpr"], "test"), code.helper(p["body_jaxpr"], "body")
    a, b = p["cond_nconsts"], p["cond_nconsts"] + p["body_nconsts"]
    lists = ", ".join(f"[{', '.join(group)}]" for group in (args[:a], args[a:b], args[b:]))
    text = f"{code.needs('while_loop')}({test}, {body}, {lists})"
    return f"{text}[0]" if len(eqn.outvars) == 1 else text


def _cond(code: Code, eqn: Any, args: Sequence[str]) -> str:
    branches = [code.helper(branch, "branch") for branch in eqn.params["branches"]]
    if len(branches) == 2:
        return f"jax.lax.cond({', '.join([args[0], branches[1], branches[0], *args[1:]])})"
    return f"jax.lax.switch({', '.join([args[0], '[' + ', '.join(branches) + ']', *args[1:]])})"


def _linear_solve(code: Code, eqn: Any, args: Sequence[str]) -> str | None:
    lengths, solvers = eqn.params["const_lengths"], eqn.params["jaxprs"]
    consts, at = [], 0
    for length in lengths:
        consts.append(args[at : at + length])
        at += length
    right = args[at:]
    count = len(right)
    matvec, vecmat, solve, transpose_solve = (
        None if jaxpr is None else f"{code.helper(jaxpr, wish)}({', '.join([*known, '*b'])})"
        for jaxpr, wish, known in zip(solvers, ("matvec", "vecmat", "solve", "transpose_solve"), consts, strict=True)
    )
    flat = code.needs("flat")
    texts = [f"lambda b: {flat}({matvec})", f"({', '.join(right)},)", f"lambda _, b: {flat}({solve})"]
    if transpose_solve is not None:
        texts.append(f"lambda _, b: {flat}({transpose_solve})")
    if solvers[0] is solvers[1] or jaxprs._structure(solvers[0]) == jaxprs._structure(solvers[1]):
        texts.append("symmetric=True")
    text = f"jax.lax.custom_linear_solve({', '.join(texts)})"
    return f"{text}[0]" if count == 1 else text


def _checkpoint(code: Code, eqn: Any, args: Sequence[str]) -> str:
    policy = eqn.params["policy"]
    known = [name for name, value in vars(jax.checkpoint_policies).items() if value is policy]
    options = "" if policy is None else f", policy={code._object(policy, 'policy')}"
    if known:
        options = f", policy=jax.checkpoint_policies.{known[0]}"
    return f"jax.checkpoint({code.helper(eqn.params['jaxpr'], 'remat')}{options})({', '.join(args)})"


def _called(function: str) -> Callable:
    def rule(code: Code, eqn: Any, args: Sequence[str]) -> str:
        return f"{function}({args[0] if len(args) == 1 else '(' + ', '.join(args) + ')'})"

    return rule


def _inlined(param: str) -> Callable:
    def rule(code: Code, eqn: Any, args: Sequence[str]) -> str:
        return f"{code.helper(eqn.params[param], eqn.params.get('name') or 'call')}({_arrays(args)})"

    return rule


def _custom_jvp(code: Code, eqn: Any, args: Sequence[str]) -> str | None:
    p = eqn.params
    wish = _name_of(p["call_jaxpr"]) or "function"
    if (text := _spelled(wish, _closed_equation(eqn), [v.aval for v in eqn.invars], args, eqn)) is not None:
        return text
    count = len(p["call_jaxpr"].in_avals)
    if p["num_consts"]:
        raise _Unspellable
    jaxpr, consts, zeros = p["jvp_jaxpr_fun"].call_wrapped(*[False] * count)
    closed = core.ClosedJaxpr(jaxpr, consts)
    key = jaxprs._structure(p["call_jaxpr"]), jaxprs._structure(closed)
    if key not in code._helper_of:
        name = code.scope.new(wish)
        code._helper_of[key] = name  # before its rule is written: the rule may call the function
        parameters, body = code._body(p["call_jaxpr"])
        rule, rule_body = code._body(closed)
        *rule_body, returned = rule_body
        results = _results(returned)
        outs, found = results[: len(zeros)], iter(results[len(zeros) :])
        outs_avals = p["call_jaxpr"].out_avals
        tangents = [_zero(aval) if zero else next(found) for zero, aval in zip(zeros, outs_avals, strict=True)]
        one = len(zeros) == 1
        pair = f"return {outs[0]}, {tangents[0]}" if one else f"return ({', '.join(outs)}), ({', '.join(tangents)})"
        unpack = f"({', '.join(rule[:count])},), ({', '.join(rule[count:])},) = primals, tangents"
        code.helpers.append(
            f"@jax.custom_jvp\n{_definition(name, parameters, body)}\n\n\n"
            f"@{name}.defjvp\n{_definition(f'{name}_jvp', ['primals', 'tangents'], [unpack, *rule_body, pair])}"
        )
    return f"{code._helper_of[key]}({_arrays(args)})"


def _custom_vjp(code: Code, eqn: Any, args: Sequence[str]) -> str | None:
    p = eqn.params
    wish = _name_of(p["call_jaxpr"]) or "function"
    if (text := _spelled(wish, _closed_equation(eqn), [v.aval for v in eqn.invars], args, eqn)) is not None:
        return text
    avals = p["call_jaxpr"].in_avals
    if p["num_consts"]:
        raise _Unspellable
    forward, consts = p["fwd_jaxpr_thunk"].call_wrapped(*[True] * len(avals))
    trees = p["out_trees"]()
    if len(trees) != 3:
        raise _Unspellable
    passed_on = trees[2]  # for each residual the argument that it is, or None where the forward function computes it
    closed = core.ClosedJaxpr(forward, consts)
    outs = len(p["call_jaxpr"].out_avals)
    computed = iter(closed.out_avals)
    residuals = [avals[i] if i is not None else next(computed) for i in passed_on]

    def backward(*xs: Any) -> list[Any]:
        for store in getattr(p["bwd"], "stores", ()):
            if store:
                store.reset()
        found = p["bwd"].call_wrapped(*xs) if hasattr(p["bwd"], "call_wrapped") else p["bwd"](*xs)
        if isinstance(found, tuple) and found and isinstance(found[0], list):  # from JAX 0.11 on, with its tree
            found = found[0]
        return [
            x if isinstance(x, jax.Array) else jnp.zeros(a.shape, a.dtype) for x, a in zip(found, avals, strict=True)
        ]

    specs = [jaxprs._spec(aval) for aval in (*residuals, *p["call_jaxpr"].out_avals)]
    pulled = jax.make_jaxpr(backward)(*specs)
    key = jaxprs._structure(p["call_jaxpr"]), jaxprs._structure(closed), jaxprs._structure(pulled)
    if key not in code._helper_of:
        name = code.scope.new(wish)
        code._helper_of[key] = name
        parameters, body = code._body(p["call_jaxpr"])
        forward_parameters, forward_body = code._body(closed)
        *forward_body, returned = forward_body
        results = _results(returned)
        count = len(results) - outs
        found = iter(results[:count])
        kept = [forward_parameters[i] if i is not None else next(found) for i in passed_on]
        out = results[count] if outs == 1 else f"({', '.join(results[count:])})"
        pull_parameters, pull_body = code._body(pulled)
        *pull_body, returned = pull_body
        unpack = []
        if kept:
            unpack.append(f"({', '.join(pull_parameters[: len(kept)])},) = residuals")
        unpack.append(f"({', '.join(pull_parameters[len(kept) :])},) = flat(cotangents)")
        code.needs("flat")
        back = f"return ({', '.join(_results(returned))},)"
        code.helpers.append(
            f"@jax.custom_vjp\n{_definition(name, parameters, body)}\n\n\n"
            + _definition(
                f"{name}_fwd",
                forward_parameters,
                [*forward_body, f"return {out}, ({', '.join(kept)}{',' * bool(kept)})"],
            )
            + "\n\n\n"
            + _definition(f"{name}_bwd", ["residuals", "cotangents"], [*unpack, *pull_body, back])
            + f"\n\n\n{name}.defvjp({name}_fwd, {name}_bwd)"
        )
    return f"{code._helper_of[key]}({_arrays(args)})"


def _results(returned: str) -> list[str]:
    """What a line ``return ...`` written by `Code._body` returns."""
    text = returned.removeprefix("return ")
    if text.startswith("(") and text.endswith(")"):
        text = text[1:-1]
    parts, depth = [""], 0
    for letter in text:
        depth += letter in "([{"
        depth -= letter in ")]}"
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def _zero(aval: Any) -> str:
    if jnp.issubdtype(aval.dtype, jnp.inexact):
        return f"jnp.zeros({tuple(aval.shape)}, {dtype_text(aval.dtype)})"
    return f"np.zeros({tuple(aval.shape)}, jax.dtypes.float0)"


def _name_of(closed: Any) -> str | None:
    info = getattr(jaxprs.open_jaxpr(closed), "debug_info", None)
    name = getattr(info, "func_name", None)
    return None if name is None or "<" in name else name.split(".")[-1]


_STRUCTURED: dict[str, Callable[[Code, Any, Sequence[str]], str | None]] = {
    "scan": _scan,
    "while": _while,
    "cond": _cond,
    "custom_linear_solve": _linear_solve,
    "linear_solve": _linear_solve,
    "checkpoint": _checkpoint,
    "remat2": _checkpoint,
    "custom_jvp_call": _custom_jvp,
    "custom_vjp_call": _custom_vjp,
    "device_put": _called(
        "jax.device_put"
    ),  # to where its argument is: code that is pasted elsewhere has other devices
    "random_unwrap": _called("jax.random.key_data"),
    "closed_call": _inlined("call_jaxpr"),
    "core_call": _inlined("call_jaxpr"),
}


# ---- spelling -------------------------------------------------------------------------------------------------------


class _Unspellable(Exception):
    """There is no code for this value or operation."""


_spellings: dict[Any, str | None] = {}


def _spelled(name: str, closed: Any, avals: Sequence[Any], args: Sequence[str], eqn: Any = None) -> str | None:
    """The first spelling that gives the operations of `closed`, with `args` filled in; None if there is none."""
    if eqn is None:
        texts, kinds = list(args), list(avals)
    else:  # of a single equation's operands only the distinct variables are inputs of `closed`
        variables = {v: (a, v.aval) for v, a in zip(eqn.invars, args, strict=True) if not isinstance(v, core.Literal)}
        texts, kinds = [a for a, _ in variables.values()], [aval for _, aval in variables.values()]
    symbols = list(dict.fromkeys(text for text in texts if _is_name(text)))
    inputs = [
        ("input", symbols.index(text)) if _is_name(text) else _literal_key(eval(text, dict(_SCOPE)), aval)
        for text, aval in zip(texts, kinds, strict=True)
    ]
    wanted = canonical(closed, inputs)
    holes = [f"{{{i}}}" if _is_name(arg) else arg for i, arg in enumerate(args)]
    same = tuple(args.index(arg) for arg in args)
    key = (name, None if eqn is None else eqn.primitive.name, wanted, tuple(holes), same)
    try:
        if key not in _spellings:
            if len(_spellings) >= SPELLINGS_KEPT:
                _spellings.clear()
            _spellings[key] = _find_spelling(name, closed, wanted, avals, holes, same, eqn)
    except TypeError:  # something in there cannot be hashed
        return None
    found = _spellings[key]
    return None if found is None else _fill(found, args)


def _is_name(arg: str) -> bool:
    return arg.isidentifier() and not keyword.iskeyword(arg)


def _fill(template: str, args: Sequence[str]) -> str:
    return re.sub(r"\{(\d+)\}", lambda m: args[int(m[1])], template)


def _find_spelling(name, closed, wanted, avals, holes, same, eqn) -> str | None:
    # what is written as a number stays a number while the spelling is tried
    free = [i for i in range(len(holes)) if same[i] == i and holes[i].startswith("{")]
    specs = []
    for i in free:
        aval = avals[i]
        if not hasattr(aval, "shape"):
            return None
        specs.append(jaxprs._spec(aval))
    tried = set()
    for template in itertools.islice(_candidates(name, closed, avals, holes, eqn), 400):
        if template in tried:
            continue
        tried.add(template)
        try:
            code = compile(_fill(template, [f"a{same[i]}" for i in range(len(holes))]), "<spelling>", "eval")

            def call(*xs: Any, code: Any = code) -> Any:
                return eval(code, {**_SCOPE, **{f"a{i}": x for i, x in zip(free, xs, strict=True)}})

            traced, result = jax.make_jaxpr(call, return_shape=True)(*specs)
            if canonical(traced) == wanted:
                alone = isinstance(result, (list, tuple)) and len(traced.jaxpr.outvars) == 1
                return f"{template}[0]" if alone else template
        except Exception:  # it does not fit: the next one
            continue
    return None


_INFIX = {
    "add": "{} + {}",
    "add_any": "{} + {}",
    "sub": "{} - {}",
    "subtract": "{} - {}",
    "mul": "{} * {}",
    "multiply": "{} * {}",
    "div": "{} / {}",
    "divide": "{} / {}",
    "true_divide": "{} / {}",
    "floor_divide": "{} // {}",
    "remainder": "{} % {}",
    "power": "{} ** {}",
    "pow": "{} ** {}",
    "float_power": "{} ** {}",
    "matmul": "{} @ {}",
    "dot_general": "{} @ {}",
    "less": "{} < {}",
    "lt": "{} < {}",
    "less_equal": "{} <= {}",
    "le": "{} <= {}",
    "greater": "{} > {}",
    "gt": "{} > {}",
    "greater_equal": "{} >= {}",
    "ge": "{} >= {}",
    "equal": "{} == {}",
    "eq": "{} == {}",
    "not_equal": "{} != {}",
    "ne": "{} != {}",
    "bitwise_and": "{} & {}",
    "and": "{} & {}",
    "bitwise_or": "{} | {}",
    "or": "{} | {}",
}
_PREFIX = {
    "neg": "-{}",
    "negative": "-{}",
    "not": "~{}",
    "invert": "~{}",
    "abs": "jnp.abs({})",
    "copy": "jnp.copy({})",
}
# TensorFlow's and JAX's inner names for functions that the user knows by another.
_ALIASES = {
    "max": ["maximum"],
    "min": ["minimum"],
    "rem": ["fmod"],
    "log_sum_exp": ["logsumexp"],
    "reduce_logsumexp": ["logsumexp"],
    "logistic": ["sigmoid"],
    "select_n": ["where"],
    "rev": ["flip"],
    "acos": ["arccos"],
    "asin": ["arcsin"],
    "atan": ["arctan"],
    "atan2": ["arctan2"],
    "acosh": ["arccosh"],
    "asinh": ["arcsinh"],
    "atanh": ["arctanh"],
    "pow": ["power"],
    "lgamma": ["gammaln"],
    "erf_inv": ["erfinv"],
    "is_finite": ["isfinite"],
    "broadcast_in_dim": ["broadcast_to", "expand_dims"],
    "concat": ["concatenate"],
    "l2_normalize": [],
    "reduce_and": ["all"],
    "reduce_or": ["any"],
}


def _names(name: str) -> Iterator[str]:
    plain = name.strip("_")
    yield from (plain, name, plain.removeprefix("reduce_"), *_ALIASES.get(plain, ()))
    if "_" in plain:
        yield plain.replace("_", "")


def _candidates(name: str, closed: Any, avals: Sequence[Any], holes: Sequence[str], eqn: Any) -> Iterator[str]:
    """Guesses at how an operation of this name might be spelled, the nicest first."""
    plain = name.strip("_")
    safe = [f"({hole})" if hole.startswith("-") else hole for hole in holes]
    flat = ", ".join(holes)
    options = list(_options(closed))
    outs = [v.aval for v in jaxprs.open_jaxpr(closed).outvars]
    if len(holes) == 2:
        if plain in _INFIX:
            yield _INFIX[plain].format(*safe)
        yield from (template.format(*safe) for n in _names(name) if (template := _INFIX.get(n)))
    if len(holes) == 1 and plain in _PREFIX:
        yield _PREFIX[plain].format(safe[0])
    if len(outs) == 1:
        yield from _special(plain, closed, holes, safe, outs[0], eqn)
    for found in dict.fromkeys(_names(name)):
        for module, namespace in _MODULES.items():
            if not callable(getattr(namespace, found, None)):
                continue
            yield f"{module}.{found}({flat})"
            for option in options:
                yield f"{module}.{found}({flat}, {option})"
            if len(holes) == 2:
                for option in options:
                    yield f"{module}.{found}({holes[0]}, {option}, initial={holes[1]})"
            if len(holes) > 1:
                yield f"{module}.{found}([{flat}])"
                for option in options:
                    yield f"{module}.{found}([{flat}], {option})"
                if len(holes) == 2 and len(options):
                    yield f"{module}.{found}({holes[1]}, {holes[0]})"
    if eqn is not None and eqn.primitive.name not in jaxprs.JIT:
        yield from _lax_calls(eqn, holes)


def _options(closed: Any) -> Iterator[str]:
    """Keyword arguments that could have led to the parameters that occur in a jaxpr."""
    seen: dict[str, None] = {}
    axes: list[Any] = []
    for eqn in _all_equations(jaxprs.open_jaxpr(closed)):
        for name in ("axes", "axis", "dimension", "dimensions", "permutation"):
            value = eqn.params.get(name)
            value = tuple(map(int, value)) if isinstance(value, tuple) and value else value
            if value is not None and value not in axes:
                axes.append(value)
    for value in axes:
        if isinstance(value, tuple) and len(value) == 1:
            seen[f"axis={value[0]}"] = None
            seen[f"axis={value[0]}, keepdims=True"] = None
        seen[f"axis={value}"] = None
        seen[f"axis={value}, keepdims=True"] = None
    seen["keepdims=True"] = None
    out = jaxprs.open_jaxpr(closed).outvars[0].aval if jaxprs.open_jaxpr(closed).outvars else None
    if out is not None and getattr(out, "shape", None):
        seen[f"{out.shape[-1]}"] = None
        seen[f"num_segments={out.shape[0]}"] = None
    yield from seen


def _all_equations(jaxpr: Any) -> Iterator[Any]:
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in jaxprs._inner(eqn.params):
            yield from _all_equations(jaxprs.open_jaxpr(inner))


def _special(plain: str, closed: Any, holes: Sequence[str], safe: Sequence[str], out: Any, eqn: Any) -> Iterator[str]:
    """Spellings that need shapes or parameters."""
    x = safe[0] if safe else ""
    shape, dtype = tuple(getattr(out, "shape", ())), getattr(out, "dtype", None)
    params: dict[str, Any] = {}
    for inner in _all_equations(jaxprs.open_jaxpr(closed)):
        params = {**inner.params, **params}
    name = plain.removeprefix("reduce_")
    if name in ("reshape", "ravel"):
        yield f"{x}.ravel()" if len(shape) == 1 else f"{x}.reshape{shape}"
        yield f"{x}.reshape({shape})"
    if name in ("transpose", "matrix_transpose", "swapaxes", "moveaxis", "permute_dims"):
        yield f"{x}.T"
        yield f"jnp.transpose({x}, {params.get('permutation')})"
    if name in ("convert_element_type", "astype", "cast"):
        yield f"{x}.astype({dtype_text(dtype)})"
        yield f"jnp.asarray({x}, {dtype_text(dtype)})"
    if name in ("broadcast_to", "broadcast_in_dim", "broadcast_arrays", "fill", "tile", "expand_dims"):
        dims = params.get("broadcast_dimensions", ())
        new = tuple(i for i in range(len(shape)) if i not in dims)
        if math.prod(shape[i] for i in new) == 1 and new:
            yield f"{x}[{', '.join('None' if i in new else ':' for i in range(max(new) + 1))}]"
            yield f"jnp.expand_dims({x}, {new})"
        yield f"jnp.broadcast_to({x}, {shape})"
        yield f"jnp.full({shape}, {x})"
        yield f"jax.lax.broadcast_in_dim({x}, {shape}, {literal(tuple(dims))})"
    if name in ("squeeze",):
        dims = tuple(params.get("dimensions", ()))
        yield f"jnp.squeeze({x}, {dims[0] if len(dims) == 1 else dims})"
        yield f"jax.lax.squeeze({x}, {dims})"
    if name == "slice" and eqn is not None:
        index = _index(
            eqn.params["start_indices"],
            eqn.params["limit_indices"],
            eqn.params["strides"],
            eqn.invars[0].aval.shape,
        )
        yield f"{x}[{index}]"
    if name == "integer_pow":
        yield f"{x} ** {params.get('y')}"
    if name == "square":
        yield f"jnp.square({x})"
    if name == "select_n" and len(holes) == 3:
        yield f"jnp.where({holes[0]}, {holes[2]}, {holes[1]})"
    if name in ("concatenate", "concat", "stack", "hstack", "vstack"):
        axis = params.get("dimension", 0)
        yield f"jnp.{'concatenate' if name == 'concat' else name}([{', '.join(holes)}], {axis})"
        yield f"jnp.stack([{', '.join(holes)}], {axis})"
    if name in ("rev", "flip"):
        yield f"jnp.flip({x}, {tuple(params.get('dimensions', ()))})"
    if name in ("iota", "arange"):
        yield f"jnp.arange({shape[0] if shape else 0}, dtype={dtype_text(dtype)})"
        yield f"jax.lax.broadcasted_iota({dtype_text(dtype)}, {shape}, {params.get('dimension')})"
    if name == "one_hot" and shape:
        yield f"jax.nn.one_hot({holes[0]}, {shape[-1]})"
        yield f"jax.nn.one_hot({holes[0]}, {shape[-1]}, dtype={dtype_text(dtype)})"
    if name in ("dynamic_slice",):
        yield f"jax.lax.dynamic_slice({holes[0]}, [{', '.join(holes[1:])}], {params.get('slice_sizes')})"
    if name in ("dynamic_update_slice",):
        yield f"jax.lax.dynamic_update_slice({holes[0]}, {holes[1]}, [{', '.join(holes[2:])}])"
    if name in ("clip", "clamp") and len(holes) == 3:
        yield f"jnp.clip({holes[0]}, {holes[1]}, {holes[2]})"
        yield f"jnp.clip({holes[1]}, {holes[0]}, {holes[2]})"
        yield f"jax.lax.clamp({', '.join(holes)})"
    if name in ("einsum", "dot_general", "tensordot", "dot") and len(holes) == 2:
        if (dims := params.get("dimension_numbers")) is not None and eqn is not None:
            yield from _einsums(dims, [len(v.shape) for v in _input_avals(closed, eqn)], holes)


def _input_avals(closed: Any, eqn: Any) -> list[Any]:
    return [v.aval for v in eqn.invars]


def _einsums(dims: Any, ranks: Sequence[int], holes: Sequence[str]) -> Iterator[str]:
    (left, right), (batch_left, batch_right) = dims
    letters = iter("ijklmnopqrstuvw")
    a = [next(letters) for _ in range(ranks[0])]
    b = [""] * ranks[1]
    for i, j in (*zip(left, right, strict=True), *zip(batch_left, batch_right, strict=True)):
        b[j] = a[i]
    b = [x or next(letters) for x in b]
    out = [a[i] for i in batch_left] + [x for i, x in enumerate(a) if i not in (*left, *batch_left)]
    out += [x for j, x in enumerate(b) if j not in (*right, *batch_right)]
    first, second, orders = "".join(a), "".join(b), [out]
    if len(out) <= 4:
        orders += [list(order) for order in itertools.permutations(out)]
    for order in orders:
        yield f"jnp.einsum({f'{first},{second}->' + ''.join(order)!r}, {holes[0]}, {holes[1]})"
        yield f"jnp.einsum({f'{second},{first}->' + ''.join(order)!r}, {holes[1]}, {holes[0]})"
    yield f"jnp.tensordot({holes[0]}, {holes[1]}, {len(left)})"


def _index(start: Sequence[int], limit: Sequence[int], strides: Any, shape: Sequence[int]) -> str:
    parts = []
    for a, b, step, size in zip(start, limit, strides or [1] * len(shape), shape, strict=True):
        step_text = "" if step == 1 else f":{step}"
        parts.append(f"{a or ''}:{'' if b == size else b}{step_text}")
    while len(parts) > 1 and parts[-1] == ":":
        parts.pop()
    return ", ".join(parts)


def _lax_calls(eqn: Any, holes: Sequence[str]) -> Iterator[str]:
    """The function of `jax.lax` with the primitive's name and parameters; then the primitive itself."""
    name = eqn.primitive.name.replace("-", "_")
    parameters = {}
    for key, value in eqn.params.items():
        try:
            parameters[key] = literal(value)
        except _Unspellable:
            parameters[key] = ""
    for found in (name, name.replace("_", ""), f"linalg.{name}"):
        function = getattr(jax.lax.linalg if "." in found else jax.lax, found.split(".")[-1], None)
        if callable(function):
            accepted = inspect.signature(function).parameters
            known = [f"{k}={v}" for k, v in parameters.items() if k in accepted and v]
            some = [text for text in known if not text.endswith("=None")]
            for lists in (
                ", ".join(holes),
                f"{holes[0]}, [{', '.join(holes[1:])}]" if holes else "",
                f"[{', '.join(holes)}]",
            ):
                yield f"jax.lax.{found}({', '.join([lists, *some])})"
                yield f"jax.lax.{found}({', '.join([lists, *known])})"
    if hasattr(core.primitives, f"{name}_p") and all(parameters.values()):
        items = [*holes, *(f"{k}={v}" for k, v in parameters.items())]
        yield f"jax.extend.core.primitives.{name}_p.bind({', '.join(items)})"


def canonical(closed: Any, inputs: Sequence[Any] | None = None) -> Any:
    """What a jaxpr computes, as hashable data: nested ``jit`` is written out, what nobody reads is left out."""
    jaxpr = jaxprs.open_jaxpr(closed)
    rows: list[Any] = []
    numbers = itertools.count()

    def run(jaxpr: Any, consts: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        env: dict[Any, Any] = dict(zip(jaxpr.constvars, map(_constant_key, consts), strict=True))
        env.update(zip(jaxpr.invars, inputs, strict=True))

        def read(v: Any) -> Any:
            return _literal_key(v.val, v.aval) if isinstance(v, core.Literal) else env[v]

        for eqn in jaxpr.eqns:
            ins = tuple(map(read, eqn.invars))
            if eqn.primitive.name in jaxprs.JIT:
                inner = eqn.params["jaxpr"]
                outs = run(jaxprs.open_jaxpr(inner), jaxprs._consts(inner), ins)
            elif eqn.primitive.name == "convert_element_type" and (folded := _converted(ins[0], eqn)) is not None:
                outs = [folded]
            else:
                avals = tuple((v.aval.shape, getattr(v.aval, "dtype", None)) for v in eqn.outvars)
                outs = [("value", next(numbers)) for _ in eqn.outvars]
                params = tuple(
                    (key, _plain(value))
                    for key, value in jaxprs._parameters(eqn.primitive, eqn.params)
                    if key != "name" and eqn.params[key] is not None
                )
                name = "add" if eqn.primitive.name == "add_any" else eqn.primitive.name
                rows.append((outs, (name, params, ins, avals, tuple(outs))))
            env.update(zip(eqn.outvars, outs, strict=True))
        return [read(v) for v in jaxpr.outvars]

    given = [("input", i) for i in range(len(jaxpr.invars))] if inputs is None else inputs
    results = run(jaxpr, jaxprs._consts(closed), given)
    return _live(rows, results, [v.aval for v in jaxpr.outvars])


def _plain(parameter: Any) -> Any:
    # JAX keeps a NumPy integer where it was given one; it is the same axis
    if isinstance(parameter, tuple):
        if len(parameter) == 2 and isinstance(parameter[0], type) and issubclass(parameter[0], np.integer):
            return (int, int(parameter[1]))
        return tuple(map(_plain, parameter))
    return parameter


def _live(rows: list[Any], results: list[Any], avals: Sequence[Any]) -> Any:
    needed, kept = set(results), []
    for outs, row in reversed(rows):
        if any(out in needed for out in outs):
            needed.update(row[2])
            kept.append((outs, row))
    renamed: dict[Any, Any] = {}
    final = []
    for outs, (name, params, ins, out_avals, _) in reversed(kept):
        final.append((name, params, tuple(renamed.get(x, x) for x in ins), out_avals))
        for out in outs:
            renamed[out] = ("value", len(renamed))
    return (
        tuple(final),
        tuple(renamed.get(x, x) for x in results),
        tuple((a.shape, a.dtype, a.weak_type) for a in avals),
    )


def _literal_key(value: Any, aval: Any) -> Any:
    return ("literal", repr(np.asarray(value).tolist()), str(aval.dtype), tuple(aval.shape))


def _constant_key(value: Any) -> Any:
    if getattr(value, "ndim", 1) == 0 and not isinstance(value, jax.core.Tracer) and hasattr(value, "dtype"):
        return ("literal", repr(np.asarray(value).tolist()), str(value.dtype), ())
    return ("constant", jaxprs._Same(value))


def _converted(source: Any, eqn: Any) -> Any:
    """A number that is converted is the number of the new dtype."""
    if source[0] != "literal":
        return None
    dtype = eqn.params["new_dtype"]
    value = np.asarray(eval(source[1], {"nan": math.nan, "inf": math.inf})).astype(dtype)
    return ("literal", repr(value.tolist()), str(np.dtype(dtype)), source[3])


# ---- literals -------------------------------------------------------------------------------------------------------


def dtype_text(dtype: Any) -> str:
    """``jnp.float32``."""
    name = np.dtype(dtype).name
    return "jnp.bool_" if name == "bool" else f"jnp.{name}" if hasattr(jnp, name) else f"np.dtype({name!r})"


def number(x: Any) -> str:
    """A Python number, or one element of an array, as code."""
    found = np.asarray(x)
    if found.dtype.kind in "biu":
        return repr(found.item())
    if found.dtype.kind == "c":
        item = found.item()
        return f"complex({_float(item.real)}, {_float(item.imag)})"
    if isinstance(x, float) or found.dtype == np.float64:
        return _float(float(found))
    return _float(str(found[()]))


def _float(x: Any) -> str:
    text = repr(x) if isinstance(x, float) else x
    if "nan" in text:
        return "jnp.nan"
    return text.replace("inf", "jnp.inf")


def array_text(x: Any) -> str | None:
    """An array as code, None if it is too large (or is no array of numbers)."""
    if jnp.issubdtype(x.dtype, jax.dtypes.extended):
        data = jax.random.key_data(x)
        inner = array_text(data)
        return None if inner is None else f"jax.random.wrap_key_data({inner})"
    weak = bool(getattr(getattr(x, "aval", None), "weak_type", False))
    found, dtype = np.asarray(x), dtype_text(x.dtype)
    if not found.shape:
        return number(found) if weak else f"{dtype}({number(found)})"
    if found.size == 0:
        return f"jnp.zeros({found.shape}, {dtype})"
    first = found.flat[0]
    if (found == first).all() and not (found.dtype.kind == "f" and first == 0 and np.signbit(found).any()):
        fill = {"0": "zeros", "1": "ones"}.get(number(first).removesuffix(".0"))
        return f"jnp.{fill}({found.shape}, {dtype})" if fill else f"jnp.full({found.shape}, {number(first)}, {dtype})"
    if found.ndim == 1 and found.dtype.kind in "if" and (found == np.arange(found.size)).all():
        return f"jnp.arange({found.size}, dtype={dtype})"
    if found.size > WRITTEN_OUT:
        return None
    return f"jnp.array({_nested(found)}, {dtype})"


def _nested(found: np.ndarray) -> str:
    if not found.ndim:
        return number(found)
    return f"[{', '.join(map(_nested, found))}]"


def literal(value: Any) -> str:
    """A primitive's parameter as code."""
    if value is None or isinstance(value, (bool, int, str)) and not isinstance(value, enum.Enum):
        return repr(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, np.integer):
        return str(int(value))
    if type(value).__name__ == "FftType":
        return repr(value.name)
    if isinstance(value, enum.Enum):
        kind = type(value)
        if getattr(jax.lax, kind.__name__, None) is kind:
            return f"jax.lax.{kind.__name__}.{value.name}"
        raise _Unspellable(value)
    if isinstance(value, np.dtype) or isinstance(value, type) and issubclass(value, np.generic):
        return dtype_text(value)
    if isinstance(value, np.ndarray):
        if value.size > WRITTEN_OUT:
            raise _Unspellable(value)
        return f"np.array({value.tolist()!r}, {dtype_text(value.dtype)})"
    kind = type(value)
    if getattr(jax.lax, kind.__name__, None) is kind:  # GatherDimensionNumbers and its kin
        fields = getattr(value, "_fields", None) or [f for f in getattr(kind, "__dataclass_fields__", ())]
        return f"jax.lax.{kind.__name__}({', '.join(f'{f}={literal(getattr(value, f))}' for f in fields)})"
    if kind is tuple:
        return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    if kind is list:
        return f"[{', '.join(map(literal, value))}]"
    raise _Unspellable(value)
