"""What the recorder must do to JAX's programs (jaxprs): stage, lift their constants, and recognise them again.

*Stage*: a call of a ``custom_jvp`` or ``custom_vjp`` function, or of ``shard_map``, arrives as Python functions that can
be called once; traced into a jaxpr it becomes data. *Lift*: a function under ``jit`` keeps the arrays that it closes over
inside its jaxpr, where no gradient could reach them; as further inputs they are values like any other. *Intern*: code that
makes a new lambda at every call brings a new jaxpr every time; one representative for each structure lets JAX's caches
and ours see that it is the same program.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import jax

from ._jax import ClosedJaxpr, Jaxpr, Literal

CACHED_STRUCTURES = 4096

_JAXPR_TYPES = tuple({Jaxpr, ClosedJaxpr})
JIT = ("jit", "pjit")


def open_jaxpr(jaxpr: Any) -> Any:
    return jaxpr.jaxpr if hasattr(jaxpr, "jaxpr") else jaxpr


def _consts(jaxpr: Any) -> Sequence[Any]:
    return getattr(jaxpr, "consts", ())


def _inner(params: dict[str, Any]) -> Iterator[Any]:
    for value in params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, _JAXPR_TYPES):
                yield item


def among(params: dict[str, Any]) -> bool:
    """Whether any of a primitive's parameters is a jaxpr or a tuple of them."""
    return next(_inner(params), None) is not None


def asks_host(jaxpr: Any) -> bool:
    """Whether running `jaxpr` calls Python with ``io_callback``, which may give something else each time."""
    return any(type(effect).__name__ == "IOEffect" for effect in jaxpr.effects)


def is_plain_jit(params: dict[str, Any]) -> bool:
    """Whether a ``jit`` was asked for nothing but compilation: no donation, shardings, layouts or options."""
    asked = (*params["in_shardings"], *params["out_shardings"])
    return (
        not any(params["donated_invars"])
        and all(type(x).__name__ == "UnspecifiedValue" for x in asked)
        and all(x is None for x in (*params["in_layouts"], *params["out_layouts"]))
        and not params["compiler_options_kvs"]
        and not params["keep_unused"]
    )


def contains(jaxpr: Any, name: str) -> bool:
    """Whether a primitive of that name occurs in `jaxpr`, at any depth."""
    return any(
        eqn.primitive.name == name or any(contains(inner, name) for inner in _inner(eqn.params))
        for eqn in open_jaxpr(jaxpr).eqns
    )


def scan_counts(params: dict[str, Any]) -> tuple[int, int]:
    """How many operands of a ``scan`` are constants, and how many are carried."""
    if "ft_in" in params:  # from JAX 0.11 on the operands are described by a tree
        consts, carry, _ = params["ft_in"].unpack()
        return len(consts), len(carry)
    return params["num_consts"], params["num_carry"]


# ---- constants ------------------------------------------------------------------------------------------------------

_constants: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def constants(jaxpr: Any) -> tuple[Any, ...]:
    """The arrays (or outer tracers) that `jaxpr` closes over, at any depth, each once."""
    try:
        return _constants[jaxpr]
    except KeyError:
        found = {id(c): c for c in _consts(jaxpr) if isinstance(c, jax.Array)}
        for eqn in open_jaxpr(jaxpr).eqns:
            for inner in _inner(eqn.params):
                found |= {id(c): c for c in constants(inner)}
        _constants[jaxpr] = result = tuple(found.values())
        return result


def constants_of(params: dict[str, Any]) -> tuple[Any, ...]:
    """The arrays that the jaxprs among a primitive's parameters close over."""
    found: dict[int, Any] = {}
    for inner in _inner(params):
        found |= {id(c): c for c in constants(inner)}
    return tuple(found.values())


def _evaluate(jaxpr: Any, consts: Sequence[Any], args: Sequence[Any], lifted: dict[int, Any]) -> list[Any]:
    """Evaluates `jaxpr`, reading each constant found in `lifted` (by identity) from there, at any depth."""
    jaxpr_open = open_jaxpr(jaxpr)
    env: dict[Any, Any] = dict(zip(jaxpr_open.constvars, (lifted.get(id(c), c) for c in consts), strict=True))
    env.update(zip(jaxpr_open.invars, args, strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else env[atom]

    for eqn in jaxpr_open.eqns:
        out = _bind_lifted(eqn.primitive, eqn.params, [read(x) for x in eqn.invars], lifted)
        env.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True))
    return [read(x) for x in jaxpr_open.outvars]


def _bind_lifted(primitive: Any, params: dict[str, Any], args: Sequence[Any], lifted: dict[int, Any]) -> Any:
    if constants_of(params) and primitive.name in _REBUILD:
        return _REBUILD[primitive.name](params, args, lambda body, *xs: _evaluate(body, _consts(body), xs, lifted))
    return primitive.bind(*args, **primitive.get_bind_params(params))


# Control flow whose bodies close over arrays, written anew with JAX's public functions, which pass closed-over values on
# as operands: (parameters, operands, evaluate a body) -> results.
def _scan(p, args, body):
    consts, carry = scan_counts(p)
    start, xs = args[consts : consts + carry], args[consts + carry :]

    def step(c, x):
        out = body(p["jaxpr"], *args[:consts], *c, *x)
        return out[:carry], out[carry:]

    last, ys = jax.lax.scan(step, list(start), list(xs), p["length"], p["reverse"], p["unroll"])
    return [*last, *ys]


def _while(p, args, body):
    test, step = p["cond_nconsts"], p["body_nconsts"]
    return jax.lax.while_loop(
        lambda c: body(p["cond_jaxpr"], *args[:test], *c)[0],
        lambda c: body(p["body_jaxpr"], *args[test : test + step], *c),
        list(args[test + step :]),
    )


def _cond(p, args, body):
    return jax.lax.switch(args[0], [partial(body, branch) for branch in p["branches"]], *args[1:])


def _checkpoint(p, args, body):
    return jax.checkpoint(partial(body, p["jaxpr"]), prevent_cse=p["prevent_cse"], policy=p["policy"])(*args)


_REBUILD: dict[str, Callable] = {
    "jit": lambda p, args, body: body(p["jaxpr"], *args),
    "pjit": lambda p, args, body: body(p["jaxpr"], *args),
    "scan": _scan,
    "while": _while,
    "cond": _cond,
    "checkpoint": _checkpoint,
    "remat2": _checkpoint,
}


def lift(primitive: Any, params: dict[str, Any], args: Sequence[Any], arrays: Sequence[Any]) -> Any:
    """``primitive.bind(*args)`` as a closed jaxpr without constants whose first inputs stand for `arrays`."""

    def bind(new: Sequence[Any], args: Sequence[Any]) -> Any:
        return _bind_lifted(primitive, params, args, {id(old): x for old, x in zip(arrays, new, strict=True)})

    return jax.make_jaxpr(bind)(list(arrays), list(args))


_lifted: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def lift_jaxpr(jaxpr: Any, arrays: Sequence[Any]) -> Any:
    """`jaxpr` as a closed jaxpr without constants whose first inputs stand for `arrays`."""
    if (known := _lifted.get(jaxpr)) is None:

        def evaluate(new: Sequence[Any], args: Sequence[Any]) -> list[Any]:
            return _evaluate(jaxpr, _consts(jaxpr), args, {id(c): x for c, x in zip(arrays, new, strict=True)})

        inputs = [_spec(v.aval) for v in open_jaxpr(jaxpr).invars]
        _lifted[jaxpr] = known = jax.make_jaxpr(evaluate)([_spec(jax.typeof(c)) for c in arrays], inputs)
    return known


def _spec(aval: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)


# ---- staging --------------------------------------------------------------------------------------------------------


def stage(primitive: Any, subfuns: Sequence[Any], args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Callable]:
    """Traces ``primitive.bind(*args, subfuns=subfuns, **params)`` into a jaxpr; also how to repack its flat results."""
    repack: list[Callable] = []

    def bind(*tracers: Any) -> list[Any]:
        out = primitive.bind(*tracers, subfuns=subfuns, **params)
        # shard_map answers with JAX's FlatTree, the others with a list
        repack.append(out.update if hasattr(out, "update") else list)
        return list(out)

    return jax.make_jaxpr(bind)(*args), repack[0]


def rebind(primitive: Any, subfuns: Sequence[Any], params: dict[str, Any]) -> Callable:
    """What `stage` would have traced, as a function that can be called any number of times."""

    def bind(*args: Any) -> Any:
        for fun in subfuns:
            for store in getattr(fun, "stores", ()):
                if store:
                    store.reset()
        return primitive.bind(*args, subfuns=subfuns, **params)

    return bind


def stable_key(subfuns: Sequence[Any], args: Sequence[Any], params: dict[str, Any]) -> Any:
    """A key under which what `stage` gives may be kept, or None where only tracing again can tell that it is the same.

    The functions must be JAX's own or jitted ones, whose behaviour depends on nothing but their arguments.
    """
    functions = [getattr(fun, "f", None) for fun in subfuns]
    for f in functions:
        if not (hasattr(f, "lower") or getattr(f, "__module__", "").startswith("jax.")):
            return None
    # what the first is wrapped in holds the static arguments, which all of them share
    key = (*functions, subfuns[0].transforms, *params.values(), *map(jax.typeof, args))
    try:
        hash(key)
    except TypeError:
        return None
    return key


def function_name(fun: Any) -> str | None:
    """The name of the user's function in one of JAX's function wrappers."""
    info = getattr(fun, "debug_info", None)
    return info.func_name if info is not None else getattr(fun, "__name__", None)


# ---- interning ------------------------------------------------------------------------------------------------------

_representatives: OrderedDict[Any, Any] = OrderedDict()
_known: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def intern(value: Any) -> Any:
    """The first jaxpr seen with the structure of `value` (a jaxpr, or a tuple of them); other values as they are."""
    if isinstance(value, (tuple, list)):
        if not any(isinstance(v, _JAXPR_TYPES) for v in value):
            return value
        return getattr(value, "_make", type(value))(map(intern, value))
    if not isinstance(value, _JAXPR_TYPES) or constants(value):
        return value
    known = _known.get(value)
    if known is not None and (first := known()) is not None:
        return first
    if value in _own:
        return value
    _interning.on = True
    try:
        key = (type(value), _structure(value))
    except _OverArraysError:
        _own.add(value)
        return value
    finally:
        _interning.on = False
    first = _representatives.setdefault(key, value)
    _representatives.move_to_end(key)
    if len(_representatives) > CACHED_STRUCTURES:
        _representatives.popitem(last=False)
    _known[value] = weakref.ref(first)
    return first


# Jaxprs with a custom rule that closes over arrays: no two are known to be the same, and to keep one is to keep its arrays.
_own: weakref.WeakSet = weakref.WeakSet()


class _OverArraysError(Exception):
    pass


class _Interning(threading.local):
    on = False


_interning = _Interning()


def is_own(params: dict[str, Any]) -> bool:
    """Whether `intern` found one of the jaxprs among a primitive's parameters to be like no other."""
    return any(jaxpr in _own for jaxpr in _inner(params))


class _Same:
    """Stands for an object that cannot be hashed, or has no structure we know: equal to itself only."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value


def _structure(jaxpr: Any) -> Any:
    number: dict[Any, int] = {}

    def atom(a: Any) -> Any:
        # by repr: 0.0 and -0.0 are equal but not the same, and nan is not equal to itself
        return (repr(a.val), a.aval) if isinstance(a, Literal) else number.setdefault(a, len(number))

    jaxpr_open = open_jaxpr(jaxpr)
    binders = [*jaxpr_open.constvars, *jaxpr_open.invars]
    return (
        tuple((atom(v), v.aval) for v in binders),
        tuple(
            (
                eqn.primitive,
                _parameters(eqn.primitive, eqn.params),
                tuple(map(atom, eqn.invars)),
                tuple((atom(v), v.aval) for v in eqn.outvars),
                getattr(eqn.ctx, "compute_type", None),
            )
            for eqn in jaxpr_open.eqns
        ),
        tuple(map(atom, jaxpr_open.outvars)),
        tuple(map(_Same, _consts(jaxpr))),
    )


def _parameters(primitive: Any, params: dict[str, Any]) -> Any:
    special = _RULES.get(primitive.name)
    rules = special(params) if special else {}
    return tuple((name, rules.get(name) or _parameter(params[name])) for name in sorted(params))


def _parameter(value: Any) -> Any:
    if isinstance(value, _JAXPR_TYPES):
        return _structure(value)
    if isinstance(value, (tuple, list)):
        return (type(value), tuple(map(_parameter, value)))
    try:
        hash(value)
    except TypeError:
        return _Same(value)
    return (type(value), value)


_unfolding: list[Any] = []  # the functions whose rules are being looked into; a rule may call its own function


def _custom_jvp_rule(params: dict[str, Any]) -> dict[str, Any]:
    # The rule is a thunk, new at every call: what tells it apart is the program that it traces to.
    count = len(params["call_jaxpr"].in_avals) - params["num_consts"]

    def rule() -> Any:
        jaxpr, consts, zeros = params["jvp_jaxpr_fun"].call_wrapped(*[False] * count)
        return _structure(jaxpr), _rule_constants(consts), tuple(zeros)

    return {"jvp_jaxpr_fun": ("jvp", _unfold(params, rule))}


def _custom_vjp_rule(params: dict[str, Any]) -> dict[str, Any]:
    count = len(params["call_jaxpr"].in_avals) - params["num_consts"]

    def rule() -> Any:
        jaxpr, consts = params["fwd_jaxpr_thunk"].call_wrapped(*[True] * count)
        backward = _backward_jaxpr(params, [v.aval for v in jaxpr.outvars])
        forward = (_structure(jaxpr), _rule_constants(consts))
        return forward, _structure(backward), _rule_constants(_consts(backward))

    both = ("vjp", _unfold(params, rule))
    return {"fwd_jaxpr_thunk": both, "bwd": both, "out_trees": both}


def _rule_constants(consts: Sequence[Any]) -> tuple[_Same, ...]:
    if _interning.on and any(isinstance(c, jax.Array) for c in consts):
        raise _OverArraysError
    return tuple(map(_Same, consts))


def _unfold(params: dict[str, Any], rule: Callable[[], Any]) -> Any:
    """What `rule()` traces to; a function met again in its own rule stands for itself."""
    primal = _structure(params["call_jaxpr"])
    if primal in _unfolding:
        return ("itself", _unfolding.index(primal) - len(_unfolding))
    _unfolding.append(primal)
    try:
        return rule()
    except _OverArraysError:
        raise
    except Exception:  # the user's rule fails, or is not for tracing: it is itself only
        return _Same(params)
    finally:
        _unfolding.pop()


def _backward_jaxpr(params: dict[str, Any], forward_out: Sequence[Any]) -> Any:
    """The backward function of a ``custom_vjp``, traced at the types of the residuals and cotangents that it will get."""
    _, residual_tree, forwarded = params["out_trees"]()
    given = iter(forward_out)  # a residual that is an input is not given out again
    in_avals = params["call_jaxpr"].in_avals
    residuals = [next(given) if i is None else in_avals[i] for i in forwarded]
    assert len(residuals) == residual_tree.num_leaves
    cotangents = [aval.to_tangent_aval() for aval in params["call_jaxpr"].out_avals]
    present: list[Any] = []

    def backward(*args: Any) -> list[Any]:
        result = params["bwd"].call_wrapped(*args)
        flat = jax.tree.leaves(result, is_leaf=lambda x: not isinstance(x, (tuple, list)))
        present[:] = [isinstance(x, jax.Array) for x in flat]
        return [x for x in flat if isinstance(x, jax.Array)]

    closed = jax.make_jaxpr(backward)(*map(_spec, residuals), *map(_spec, cotangents))
    return closed


_RULES = {"custom_jvp_call": _custom_jvp_rule, "custom_vjp_call": _custom_vjp_rule}
