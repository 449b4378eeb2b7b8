"""How an operation is spelled in plain ``jnp``.

Every spelling is tried before it is taken: it is traced, and counts only if it gives the very operations that were
recorded (`normal_form`). So ``jnp.sum(x, axis=1)`` can be guessed from a reduction that has lost its arguments, and a wrong
guess costs nothing. Where TensorFlow's function is another than `jnp`'s at single points, the plain name is taken if it
does the same at the recorded values (`nearly`).
"""

from __future__ import annotations

import contextlib
import enum
import functools
import inspect
import itertools
import keyword
import math
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from types import CodeType
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from ...jaxprs import canonical, contents, lifting
from ...jaxprs.cache import Cache
from ...jaxprs.canonical import UncacheableError
from ...jaxprs.dependence import is_key
from ...jaxprs.derivatives import restricted
from ...jaxprs.evaluate import evaluate
from ...jaxprs.fence import Literal, Tracer, is_public, trace_context
from ...jaxprs.types import Atom, Equation, JaxProgram, Pytree, Value
from ...tape.operation import Op
from ...tf.ops import table
from ...tf.values.shown import unreadable
from ...tf.values.types import Array, DTypeLike, Number
from . import layout
from .tables import tables

# Arrays of more elements than this are not written out, and of fewer if the user's code has a name for them: the printed code
# takes them from names.
WRITTEN_OUT = 100
NAMED_WRITTEN_OUT = 8
SHORT = 4  # and a range of not more is written as what is in it
SPELLINGS_KEPT = 4096

# Where printed code looks names up.
_MODULES = "jnp jax.nn jnp.linalg jnp.fft jax.scipy.special jax.scipy.linalg jax.ops jax.lax".split()
SCOPE = {"jax": jax, "jnp": jnp, "np": np}


class Unspellable(Exception):
    """There is no code for this value or operation."""


Aval: TypeAlias = Any  # what JAX has of a value that is not computed yet: shape, dtype, whether it is weakly typed
Form: TypeAlias = Any  # what a program computes, as hashable data: `normal_form` makes it
Key: TypeAlias = tuple  # of a value in a form: an input, a literal, a constant, or by number what a row makes

# By key a tuple of the one spelling found, or of None.
_spellings: Cache[tuple[str | None]] = Cache(SPELLINGS_KEPT)


def spelling_of(
    name: str,
    closed: JaxProgram,
    avals: Sequence[Aval],
    args: Sequence[str],
    eqn: Equation | None = None,
    static: tuple = (),
) -> str | None:
    """The first spelling that gives the operations of `closed`, with `args` filled in; None if there is none.

    A number is written without its dtype where that makes no difference.
    """
    plain = [_TYPED.sub(r"\1", arg) for arg in args]
    found = None if plain == list(args) else spelling_of(name, closed, avals, plain, eqn, static)
    return _spelling(name, closed, avals, args, eqn, static) if found is None else found


_TYPED = re.compile(r"^jnp\.float\d\d\((-?[\d.e+-]+)\)$")


def _spelling(
    name: str, closed: JaxProgram, avals: Sequence[Aval], args: Sequence[str], eqn: Equation | None, static: tuple
) -> str | None:
    if eqn is None:
        texts, kinds = list(args), list(avals)
    else:  # of a single equation's operands only the distinct variables are inputs of `closed`
        variables = {v: (a, v.aval) for v, a in zip(eqn.invars, args, strict=True) if not isinstance(v, Literal)}
        texts, kinds = [a for a, _ in variables.values()], [aval for _, aval in variables.values()]
    symbols = list(dict.fromkeys(text for text in texts if is_name(text)))
    inputs = [
        ("input", symbols.index(text)) if is_name(text) else _literal_key(eval(text, dict(SCOPE)), aval)
        for text, aval in zip(texts, kinds, strict=True)
    ]
    holes = [f"{{{i}}}" if is_name(arg) else arg for i, arg in enumerate(args)]
    same = tuple(args.index(arg) for arg in args)
    # The same canonical form may be `x[0]` of one shape and `x[:, 0]` of another.
    shapes = tuple((aval.shape, aval.dtype) for aval in kinds)
    try:
        form = normal_form(closed, inputs)
        static_key = canonical.exact(static)
    except UncacheableError:
        return None
    primitive = None if eqn is None else eqn.primitive.name
    # what a text such as `jnp.sum(x)` is traced to is a matter of JAX's settings
    key = (name, primitive, form, tuple(holes), same, static_key, shapes, trace_context())
    (found,) = _spellings.get(key, _find_spelling, name, closed, form, avals, holes, same, eqn, static)
    return None if found is None else fill(found, args)


def spelling_of_equation(name: str, eqn: Equation, args: Sequence[str]) -> str | None:
    """`spelling_of` a single equation."""
    return spelling_of(name, closed_equation(eqn), [v.aval for v in eqn.invars], args, eqn)


def closed_equation(eqn: Equation) -> JaxProgram:
    """An equation as a program of its own, whose inputs are its distinct variables."""
    free = list(dict.fromkeys(v for v in eqn.invars if not isinstance(v, Literal)))
    params = {name: _plain(value) for name, value in eqn.primitive.get_bind_params(eqn.params).items()}

    def bind(*xs: Array) -> Pytree:
        env = dict(zip(free, xs, strict=True))
        return eqn.primitive.bind(*(v.val if isinstance(v, Literal) else env[v] for v in eqn.invars), **params)

    return jax.make_jaxpr(bind)(*[v.aval for v in free])


def _fields(value: object) -> list[str]:
    return list(getattr(value, "_fields", ()) or getattr(type(value), "__dataclass_fields__", ()))


def is_name(arg: str) -> bool:
    return arg.isidentifier() and not keyword.iskeyword(arg)


def fill(template: str, args: Sequence[str]) -> str:
    return re.sub(r"\{(\d+)\}", lambda m: args[int(m[1])], template)


def _find_spelling(name, closed, form, avals, holes, same, eqn, static) -> tuple[str | None]:
    # what is written as a number stays a number while the spelling is tried
    free = [i for i in range(len(holes)) if same[i] == i and holes[i].startswith("{")]
    specs = [avals[i] for i in free]
    for template in dict.fromkeys(_candidates(name, closed, avals, holes, eqn, form, static)):
        with contextlib.suppress(Exception):  # it does not fit: the next one
            code = compile(fill(template, [f"a{same[i]}" for i in range(len(holes))]), "<spelling>", "eval")

            def call(*xs: Array, code: CodeType = code) -> Pytree:
                return eval(code, {**SCOPE, **{f"a{i}": x for i, x in zip(free, xs, strict=True)}})

            traced, result = jax.make_jaxpr(call, return_shape=True)(*specs)
            if normal_form(traced) == form:
                alone = isinstance(result, (list, tuple)) and len(traced.jaxpr.outvars) == 1
                return (f"{template}[0]" if alone else template,)
    return (None,)


_TEXTS = tables(Path(__file__).with_name("spellings.ini"))
_ROWS: dict[str, list[str]] = {}
for _names, _templates in _TEXTS["spellings"].items():
    for _name in _names.split():
        _ROWS.setdefault(_name, []).extend(_templates.splitlines())
_CALLS = _TEXTS["calls"]["any"].splitlines()
_NEARLY, _ALIASES = _TEXTS["nearly"], _TEXTS["names"]


def nearly(op: Op, inputs: Sequence[Value], args: Sequence[str], active_ins: Sequence[int]) -> str | None:
    """The spelling among ``[nearly]``, if it does the same at the recorded values."""
    if not _is_ours(op) or any(isinstance(x, Tracer) for x in inputs):
        return None
    templates = _NEARLY.get(op.name.strip("_"), "").splitlines()
    every = ", ".join(f"{{{i}}}" for i in range(len(args)))
    found = (_nearly(text.replace("{all}", every), op, inputs, args, active_ins) for text in templates)
    return next((text for text in found if text is not None), None)


def _nearly(
    template: str, op: Op, inputs: Sequence[Value], args: Sequence[str], active_ins: Sequence[int]
) -> str | None:
    if any(is_name(arg) and f"{{{i}}}" not in template for i, arg in enumerate(args)):
        return None
    with contextlib.suppress(Exception):  # it does not fit, or cannot be written
        for key, value in op.bound[1].items() if op.bound else ():
            template = re.sub(rf"(, \w+=)?\b{key.upper()}\b", functools.partial(_given, value), template)
        text, _, condition = re.sub(r"\*\(([\d, ]+)\)", r"\1", template).partition(" if ")
        if condition and not eval(condition):
            return None
        texts = [f"({arg})" if arg.startswith("-") else arg for arg in args]
        symbols = [f"a{i}" if is_name(arg) else arg for i, arg in enumerate(texts)]
        code = compile(fill(text, symbols), "<spelling>", "eval")

        def spelled(*xs: Array) -> list[Array]:
            return jax.tree.leaves(eval(code, {**SCOPE, **{f"a{i}": x for i, x in enumerate(xs)}}))

        if _same_at(lambda *xs: jax.tree.leaves(op.fn(*xs)), spelled, inputs, active_ins):
            return fill(text, texts)
    return None


def _given(value: Any, found: re.Match[str]) -> str:
    """A static argument in a spelling: an option that is off is left out."""
    if found[1] and (value is None or value is False):
        return ""
    return (found[1] or "") + literal(_one(value))


def _is_ours(op: Op) -> bool:
    """Whether it is an operation of `tapejax.tf.ops`: what the user calls the same may call Python, or have its own gradient."""
    return op.bound is not None and getattr(op.bound[0], "__module__", "").startswith(table.__package__)


def _one(value: Any) -> Any:
    return value[0] if isinstance(value, tuple) and len(value) == 1 else value


def _same_at(fn: Callable, other: Callable, inputs: Sequence[Value], active_ins: Sequence[int]) -> bool:
    """Whether two functions have the same value there, and the same derivative with respect to the `active_ins` inputs."""
    moving = [i for i in active_ins if jnp.issubdtype(inputs[i].dtype, jnp.inexact)]

    def pulled(f: Callable) -> list[np.ndarray]:
        of_moving = restricted(f, inputs, moving)
        if not moving:
            return list(of_moving())
        outs, pull = jax.vjp(of_moving, *(inputs[i] for i in moving))
        ones = [jnp.linspace(1.0, 2.0, max(y.size, 1))[: y.size].reshape(y.shape).astype(y.dtype) for y in outs]
        # a cotangent of zero must give the same, too: behind a `where` it is multiplied by an infinite slope
        return [*outs, *pull(ones), *pull([jnp.zeros_like(y) for y in outs])]

    pairs = list(zip(pulled(fn), pulled(other), strict=True))
    alike = all(x.dtype == y.dtype and x.shape == y.shape for x, y in pairs)
    return alike and all(bool(jnp.allclose(x, y, rtol=3e-6, atol=1e-6, equal_nan=True)) for x, y in pairs)


def static_arguments(op: Op) -> tuple[Hashable, ...]:
    """The static arguments of an operation with TensorFlow's name."""
    what, given = op.bound or (None, {})
    return tuple(given.values()) if callable(what) else ()


def _candidates(name, closed, avals, holes, eqn, form, static) -> Iterator[str]:
    """How an operation of this name is spelled, the nicest first."""
    plain = name.strip("_")
    facts = _facts(closed, holes, static)
    if not form[0]:  # an input is handed on
        yield from holes
    yield from _cuts(form, avals)
    yield from _filled(_ROWS.get(plain, ()), holes, facts)
    if plain in ("einsum", "tensordot", "dot_general"):
        yield from _einsums(list(equations_in(closed)), holes)
    candidates = plain, name, plain.removeprefix("reduce_"), _ALIASES.get(plain, plain), plain.replace("_", "")
    names = dict.fromkeys(candidates)
    for module in _MODULES:
        namespace = eval(module, dict(SCOPE))
        for found in names:
            if callable(getattr(namespace, found, None)):
                yield from _filled([f"{module}.{found}{call}" for call in _CALLS], holes, facts)
    if eqn is not None and eqn.primitive.name not in contents.JIT:
        yield from _lax_calls(eqn, holes)


def _filled(templates: Sequence[str], holes: Sequence[str], facts: dict[str, list[str]]) -> Iterator[str]:
    """The templates of which all fields are known, with these filled in; every operand must turn up."""
    for template in templates:
        fields = re.findall(r"\{(\w+)\}", template)
        for values in itertools.product(*(facts.get(field, ()) for field in fields)):
            texts = iter(values)
            text = re.sub(r"\{\w+\}", lambda _, texts=texts: next(texts), template)  # type: ignore[misc]
            if all(hole in text for hole in holes if hole.startswith("{")):
                yield text


def _facts(closed: JaxProgram, holes: Sequence[str], static: tuple) -> dict[str, list[str]]:
    """What a template may mention, each as the texts that it may stand for."""
    jaxpr = contents.open_jaxpr(closed)
    equations = list(equations_in(jaxpr))
    facts = {key: [text] for eqn in reversed(equations) for key, text in _parameters(eqn).items() if text}
    facts |= {str(i): [hole] for i, hole in enumerate(holes)}
    facts |= {"abcd"[i]: [f"({hole})" if hole.startswith("-") else hole] for i, hole in enumerate(holes[:4])}
    facts |= {"all": [", ".join(holes)], "rest": [", ".join(holes[1:])], "rest2": [", ".join(holes[2:])]}
    facts["arrays"] = [", ".join(hole for hole in holes if hole.startswith("{"))]
    for out in jaxpr.outvars[:1]:
        shape = tuple(getattr(out.aval, "shape", ()))
        facts["shape"] = [str(shape)]
        if hasattr(out.aval, "dtype") and not is_key(out.aval):
            facts["dtype"] = [dtype_text(out.aval.dtype)]
        if shape:
            facts |= {"rows": [str(shape[0])], "last": [str(shape[-1])]}
    axes = [eqn.params.get(key) for eqn in equations for key in ("axes", "axis", "dimension", "dimensions")]
    known = dict.fromkeys(tuple(map(int, x)) if isinstance(x, tuple) else x for x in axes if x is not None)
    facts["axis"] = [str(y) for x in known for y in ((x[0], x) if isinstance(x, tuple) and len(x) == 1 else (x,))]
    indexed = [eqn.params["dimension_numbers"] for eqn in equations if eqn.primitive.name == "gather"]
    facts["indexed"] = [str(x.start_index_map[0]) for x in indexed if x.start_index_map]
    for sizes, axis in (
        (eqn.params["sizes"], eqn.params["axis"]) for eqn in equations if eqn.primitive.name == "split"
    ):
        ends = [*itertools.accumulate(sizes[:-1])]
        facts["parts"] = [f"{ends if len({*sizes}) > 1 else len(sizes)}, {axis}"]
    facts["static"] = list(_from_static(static))
    return facts


def _from_static(static: tuple) -> Iterator[str]:
    """Static arguments as they would follow the arrays."""
    for values in ([*map(_one, static)], static):
        with contextlib.suppress(Unspellable):
            texts = [*map(literal, values)]
            yield from (", ".join(texts[:count]) for count in range(len(texts), 0, -1))


def _cuts(form: Form, avals: Sequence[Aval]) -> Iterator[str]:
    """``x[0]``, ``x[:, 1:3]``, ``x[..., None]``: cuts and regroupings written as an index."""
    rows, results, _ = form
    kinds = [row[0] for row in rows]
    cuts = kinds in (["slice"], ["slice", "regroup"], ["regroup"])
    if not cuts or rows[0][2] != (("input", 0),) or len(results) != 1:
        return
    shape, out = tuple(avals[0].shape), rows[-1][3][0][0]
    starts, limits, strides = rows[0][1] if kinds[0] == "slice" else ((0,) * len(shape), shape, None)
    parts, at = [], 0
    for a, b, step, size in zip(starts, limits, strides or (1,) * len(shape), shape, strict=True):
        length = -(-(b - a) // step)
        while length != 1 and at < len(out) and out[at] == 1:
            parts.append("None")
            at += 1
        if at < len(out) and out[at] == length and (length != 1 or size == 1 or len(out) == len(shape)):
            step_text = "" if step == 1 else f":{step}"
            parts.append(f"{a or ''}:{'' if b >= size else b}{step_text}")
            at += 1
        else:
            parts.append(str(a))
    parts += ["None"] * (len(out) - at)
    while len(parts) > 1 and parts[-1] == ":":
        parts.pop()
    yield f"{{0}}[{', '.join(parts)}]"


def equations_in(program: JaxProgram) -> Iterator[Equation]:
    """Those of a program, and of the programs in them."""
    for eqn in contents.open_jaxpr(program).eqns:
        yield eqn
        for inner in contents.jaxprs_in(eqn.params):
            yield from equations_in(inner)


def _labels(eqn: Equation) -> tuple[str, str, str]:
    """A letter for each axis of the operands of a product and of its result."""
    ranks = [len(v.aval.shape) for v in eqn.invars]
    (left, right), (batch_left, batch_right) = eqn.params["dimension_numbers"]
    letters = iter("ijklmnopqrstuvw")
    a = [next(letters) for _ in range(ranks[0])]
    b = [""] * ranks[1]
    for i, j in (*zip(left, right, strict=True), *zip(batch_left, batch_right, strict=True)):
        b[j] = a[i]
    b = [x or next(letters) for x in b]
    out = [a[i] for i in batch_left] + [x for i, x in enumerate(a) if i not in (*left, *batch_left)]
    out += [x for j, x in enumerate(b) if j not in (*right, *batch_right)]
    return "".join(a), "".join(b), "".join(out)


def _einsums(equations: Sequence[Equation], holes: Sequence[str]) -> Iterator[str]:
    """A product of two operands, in one order or the other, and the transpose of its result."""
    products = [eqn for eqn in equations if eqn.primitive.name == "dot_general"]
    if len(products) != 1 or len(holes) != 2:
        return
    first, second, out = _labels(products[0])
    for eqn in equations[equations.index(products[0]) + 1 :]:
        if eqn.primitive.name == "transpose":
            out = "".join(out[i] for i in eqn.params["permutation"])
    for a, b in ((first, second), (second, first)):
        plain = str.maketrans(dict(zip(dict.fromkeys(a + b), "ijklmnopqrstuvw", strict=False)))
        yield f"jnp.einsum({f'{a},{b}->{out}'.translate(plain)!r}, {holes[0]}, {holes[1]})"
    yield f"jnp.tensordot({holes[0]}, {holes[1]}, {len(products[0].params['dimension_numbers'][0][0])})"


def _parameters(eqn: Equation) -> dict[str, str]:
    """The parameters of an equation as code; of one that cannot be written, nothing."""
    texts = dict.fromkeys(eqn.params, "")
    for key, value in eqn.params.items():
        with contextlib.suppress(Unspellable):
            texts[key] = literal(value)
    return texts


def _lax_calls(eqn: Equation, holes: Sequence[str]) -> Iterator[str]:
    """The function of `jax.lax` with the primitive's name and parameters; then the primitive itself."""
    name, parameters = eqn.primitive.name.replace("-", "_"), _parameters(eqn)
    flat = ", ".join(holes)
    for found in (name, name.replace("_", ""), f"linalg.{name}"):
        function = getattr(jax.lax.linalg if "." in found else jax.lax, found.split(".")[-1], None)
        if callable(function):
            accepted = inspect.signature(function).parameters
            known = {f"{k}={v}": k for k, v in parameters.items() if k in accepted and v not in ("", "None")}
            # what may be left out: an option that is 1 everywhere, or False
            plain = {text for text in known if re.fullmatch(r"\w+=([(), 1]+|False)", text)}
            plain = {text for text in plain if accepted[known[text]].default is not inspect.Parameter.empty}
            for lists in (flat, f"[{flat}]"):
                some = dict.fromkeys(tuple(text for text in known if text not in left_out) for left_out in (plain, ()))
                yield from (f"jax.lax.{found}({', '.join([lists, *texts])})" for texts in some)
    if is_public(eqn.primitive) and all(parameters.values()):
        items = [*holes, *(f"{k}={v}" for k, v in parameters.items())]
        yield f"jax.extend.core.primitives.{name}_p.bind({', '.join(items)})"


def normal_form(closed: JaxProgram, inputs: Sequence[Key] | None = None) -> Form:
    """What a jaxpr computes, as hashable data.

    Nested ``jit`` is written out, what is not read is left out, what is known is computed, and of several primitives
    that do the same, as ``squeeze`` and ``reshape`` may, one stands for all.
    """
    jaxpr = contents.open_jaxpr(closed)
    rows: list[tuple] = []
    made: dict[Key, tuple] = {}  # by value: the row that made it
    shapes: dict[Key, tuple] = {}  # of what is regrouped: the first shape
    numbers = itertools.count()

    def add(row: tuple, count: int) -> list[Key]:
        outs = [("value", next(numbers)) for _ in range(count)]
        rows.append((outs, row))
        made.update((out, row) for out in outs)
        return outs

    def run(program: JaxProgram, inputs: Sequence[Key]) -> list[Key]:
        lifted = {id(x): _constant_key(x) for x in contents.consts_of(program)}
        outs = evaluate(program, inputs, equation, lifted=lifted)
        return list(map(key_of, contents.open_jaxpr(program).outvars, outs))

    def key_of(v: Atom, x: Value) -> Key:
        return _literal_key(v.val, v.aval) if isinstance(v, Literal) else x

    def equation(eqn: Equation, xs: Sequence[Value]) -> list[Key]:
        ins, single = tuple(map(key_of, eqn.invars, xs)), len(eqn.outvars) == 1
        if (inner := called_by(eqn)) is not None:
            return run(inner, ins)
        if single and (same := _same_as(eqn, ins)) is not None:
            return [same]
        if single and (row := _moved(eqn, ins, made)) is not None:
            first = shapes.get(ins[0], eqn.invars[0].aval.shape)
            if row[0] == "regroup" and first == row[3][0][0]:
                return [row[2][0]]  # as it was before it was regrouped
            (out,) = add(row, 1)
            shapes.update({out: first} if row[0] == "regroup" else {})
            return [out]
        avals = tuple((v.aval.shape, getattr(v.aval, "dtype", None)) for v in eqn.outvars)
        static = {
            key: plain
            for key, value in eqn.params.items()
            if key != "name" and (plain := _plain(value)) is not None and not _default(key, value, avals)
        }
        params = canonical.parameters(eqn.primitive, static)
        name = "add" if eqn.primitive.name == "add_any" else eqn.primitive.name
        return add((name, params, ins, avals), len(eqn.outvars))

    given = [("input", i) for i in range(len(jaxpr.invars))] if inputs is None else inputs
    results = run(closed, given)
    return _live(rows, results, [v.aval for v in jaxpr.outvars])


def called_by(eqn: Equation) -> JaxProgram | None:
    """The program that an equation stands for: that of a ``jit``, or of a function whose rule says nothing to a reader,
    because it is connected at second order (`ops.table.straight`) or closed over (`jaxprs.lifting`)."""
    if eqn.primitive.name in contents.JIT:
        return eqn.params["jaxpr"]
    rule = eqn.params.get(contents.RULES.get(eqn.primitive.name, ""))
    plain = getattr(getattr(rule, "debug_info", None), "func_filename", None) in (table.__file__, lifting.__file__)
    return eqn.params["call_jaxpr"] if plain else None


def _default(key: str, value: object, avals: Sequence[Aval]) -> bool:
    """Whether a parameter has the value that it has when it is left out."""
    return key == "preferred_element_type" and value == avals[0][1]


# More elements are not computed beforehand.
_FOLDED = 16


def _same_as(eqn: Equation, ins: Sequence[Key]) -> Key | None:
    """The value that an equation with one result gives back unchanged, or the number that it computes from numbers.

    Only JAX's own primitives are computed, without programs in them: others may be, or call, Python of the user's.
    """
    name, out = eqn.primitive.name, eqn.outvars[0].aval
    if (
        name in ("copy", "copy_p")
        or name == "optimization_barrier"
        and len(ins) == 1
        or name == "convert_element_type"
        and eqn.invars[0].aval.dtype == out.dtype
    ):
        return ins[0]
    whole = name == "dynamic_slice" or name == "slice" and set(eqn.params["strides"] or [1]) == {1}
    if whole and eqn.invars[0].aval.shape == out.shape:
        return ins[0]
    if name == "mul" and len(ins) == 2:  # by one
        for x, other, v in ((ins[0], ins[1], eqn.invars[1]), (ins[1], ins[0], eqn.invars[0])):
            if (one := _known(x)) is not None and (one == 1).all() and v.aval.shape == out.shape:
                return other
    if name == "select_n" and (which := _known(ins[0])) is not None and which.ndim == 0:
        return ins[1 + int(which)]
    own = is_public(eqn.primitive) and not eqn.effects and not contents.among(eqn.params)
    if own and ins and out.size <= _FOLDED:
        known = [_known(x) for x in ins]
        if all(x is not None for x in known) and not is_key(out):
            with jax.ensure_compile_time_eval():
                found = eqn.primitive.bind(*map(jnp.asarray, known), **eqn.primitive.get_bind_params(eqn.params))
            return _literal_key(np.asarray(found), out)
    return None


def _known(x: Key) -> np.ndarray | None:
    """The value behind `_literal_key`."""
    return np.frombuffer(x[1], x[2]).reshape(x[3]) if x[0] == "literal" else None


def _moved(eqn: Equation, ins: Sequence[Key], made: dict[Key, tuple]) -> tuple | None:
    """Primitives that only cut or regroup, each written in one way."""
    name, params, out = eqn.primitive.name, eqn.params, eqn.outvars[0].aval
    avals = ((out.shape, getattr(out, "dtype", None)),)
    before = tuple(getattr(eqn.invars[0].aval, "shape", ())) if eqn.invars else ()
    if name in ("squeeze", "reshape", "broadcast_in_dim") and ins and params.get("dimensions") != ():
        if name == "reshape" and params.get("dimensions") is not None:
            return None
        if math.prod(before) == math.prod(out.shape) and len(ins) == 1:
            while (row := made.get(ins[0])) is not None and row[0] == "regroup":
                ins = row[2]
            return ("regroup", (), tuple(ins), avals)
    if name == "square" or name == "integer_pow" and params["y"] == 2:
        return ("mul", (), (ins[0], ins[0]), avals)
    if name == "dynamic_slice" and len(ins) == 1 + len(before):
        known = [_known(x) for x in ins[1:]]
        if all(x is not None for x in known):
            sizes = params["slice_sizes"]
            starts = tuple(min(max(int(x), 0), n - size) for x, n, size in zip(known, before, sizes, strict=True))  # type: ignore[arg-type]
            limits = tuple(a + size for a, size in zip(starts, sizes, strict=True))
            return ("slice", (starts, limits, None), tuple(ins[:1]), avals)
    if name == "slice":
        strides = params["strides"]
        strides = None if strides is None or set(strides) <= {1} else tuple(strides)
        starts, limits = tuple(params["start_indices"]), tuple(params["limit_indices"])
        if strides is not None:  # up to the last element taken
            ends = zip(starts, limits, strides, strict=True)
            limits = tuple(a + (max(b - a - 1, -1) // step) * step + 1 for a, b, step in ends)
        return ("slice", (starts, limits, strides), tuple(ins), avals)
    return None


def _plain(parameter: Any) -> Any:
    """A parameter without what makes no difference: NumPy's kind of integer, and a mesh without axes, which `jax.vmap` adds."""
    if isinstance(parameter, np.integer):
        return int(parameter)
    if isinstance(parameter, jax.sharding.NamedSharding):
        return parameter if parameter.mesh.axis_names else None
    if type(parameter).__name__.endswith("DimensionNumbers") and (fields := _fields(parameter)):
        return type(parameter)(**{name: _plain(getattr(parameter, name)) for name in fields})
    return tuple(map(_plain, parameter)) if type(parameter) is tuple else parameter


def _live(rows: list[tuple], results: list[Key], avals: Sequence[Aval]) -> Form:
    needed, kept = set(results), []
    for outs, row in reversed(rows):
        if any(out in needed for out in outs):
            needed.update(row[2])
            kept.append((outs, row))
    renamed: dict[Key, Key] = {}
    final = []
    for outs, (name, params, ins, out_avals) in reversed(kept):
        final.append((name, params, tuple(renamed.get(x, x) for x in ins), out_avals))
        for out in outs:
            renamed[out] = ("value", len(renamed))
    ends = tuple(renamed.get(x, x) for x in results)
    return tuple(final), ends, tuple((a.shape, a.dtype, a.weak_type) for a in avals)


def _literal_key(value: Value, aval: Aval) -> Key:
    if np.ndim(value):
        return _constant_key(value)
    # 0.9 and the float32 next to it are one
    return ("literal", np.asarray(value).astype(aval.dtype).tobytes(), np.dtype(aval.dtype), tuple(aval.shape))


def _constant_key(value: Value) -> Key:
    if getattr(value, "ndim", 1) == 0 and not isinstance(value, Tracer) and hasattr(value, "dtype"):
        return _literal_key(value, value)
    return ("constant", canonical.exact(value))


# ---- literals -------------------------------------------------------------------------------------------------------


def dtype_text(dtype: DTypeLike) -> str:
    """``jnp.float32``."""
    name = np.dtype(dtype).name
    return "jnp.bool_" if name == "bool" else f"jnp.{name}" if hasattr(jnp, name) else f"np.dtype({name!r})"


def number(x: Number | np.ndarray) -> str:
    """A Python number, or one element of an array, as code."""
    found = np.asarray(x)
    if found.dtype.kind in "biu":
        return repr(found.item())
    if found.dtype.kind == "c":
        item = found.item()
        return f"complex({_float(item.real)}, {_float(item.imag)})"
    if isinstance(x, float) or found.dtype == np.float64:
        return _float(_shortest(float(found)))
    return _float(str(found[()]))


def _shortest(x: float) -> float | str:
    """The number, or the digits of the float32 that JAX makes of it, if these are fewer: those of ``0.1 / 6``."""
    if jax.config.jax_enable_x64 or not 1e-37 < abs(x) < 1e38:
        return x
    return min(repr(x), str(np.float32(x)), key=len)


def _float(x: float | str) -> str:
    text = repr(x) if isinstance(x, float) else x
    if "nan" in text:
        return "jnp.nan"
    return text.replace("inf", "jnp.inf")


def array_text(x: Array, most: int = WRITTEN_OUT) -> str | None:
    """An array as code, None if it has more than `most` different elements, is no array of numbers, or not known here."""
    if unreadable(x):
        return None
    if is_key(x):
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
    if found.ndim == 1 and found.size > SHORT and found.dtype.kind in "if" and (found == np.arange(found.size)).all():
        return f"jnp.arange({found.size}, dtype={dtype})"
    if found.ndim == 2 and len(found) == len(found.T) and (found == np.eye(len(found))).all():
        return f"jnp.eye({len(found)}, dtype={dtype})"
    if found.size > most:
        return None
    text = f"jnp.array({_nested(found)}, {dtype})"
    return text if found.ndim == 1 else "\n".join(layout.statement("", layout.parsed(text)))


def _nested(found: np.ndarray) -> str:
    if not found.ndim:
        return number(found)
    return f"[{', '.join(map(_nested, found))}]"


def _axes(spec: Sequence[int], first: str) -> str:
    """The axes of an operand of a convolution as letters, ``"NHWC"``; `spec` has those of `first` before the others."""
    letters = zip(spec, first + "DHW"[5 - len(spec) :], strict=True)
    return "".join(letter for _, letter in sorted(letters))


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
    kind = type(value)
    of_lax = getattr(jax.lax, kind.__name__, None) is kind  # GatherDimensionNumbers and its kin
    if isinstance(value, enum.Enum):
        if of_lax:
            return f"jax.lax.{kind.__name__}.{value.name}"
        raise Unspellable(value)
    if isinstance(value, np.dtype) or isinstance(value, type) and issubclass(value, np.generic):
        return dtype_text(value)
    if kind is jax.lax.ConvDimensionNumbers and len(value.lhs_spec) < 6:
        return repr(tuple(map(_axes, value, ("NC", "OI", "NC"))))
    if of_lax:
        return f"jax.lax.{kind.__name__}({', '.join(f'{f}={literal(getattr(value, f))}' for f in _fields(value))})"
    if kind is tuple:
        return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    raise Unspellable(value)
