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
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np

from .core import canonical
from .core.cache import Cache
from .core.canonical import JAXPR_TYPES as _JAXPR_TYPES
from .core.canonical import Identity, UncacheableError, open_jaxpr
from .jaxcore import Literal, trace_context

CACHED_STRUCTURES = 4096

JIT = ("jit", "pjit")


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


def constants(jaxpr: Any) -> dict[int, Any]:
    """The arrays (or outer tracers) that `jaxpr` closes over, at any depth at which `lift` reaches them.

    By the identity that they have there; a NumPy array, which can change, as a copy of what it was when first seen.
    """
    try:
        return _constants[jaxpr]
    except KeyError:
        inner = open_jaxpr(jaxpr)
        # where `jax_use_simplified_jaxpr_constants` is on, they are literals
        atoms = [v for eqn in inner.eqns for v in eqn.invars] + list(inner.outvars)
        values = [*_consts(jaxpr), *[v.val for v in atoms if isinstance(v, Literal)]]
        found = {id(c): canonical.snapshot(c) for c in values if _is_array(c)}
        for eqn in inner.eqns:
            if eqn.primitive.name in _REBUILD:
                found |= constants_of(eqn.params)
        _constants[jaxpr] = found
        return found


def _is_array(value: Any) -> bool:
    return isinstance(value, jax.Array) or isinstance(value, np.ndarray) and value.ndim > 0


def constants_of(params: dict[str, Any]) -> dict[int, Any]:
    """The arrays that the jaxprs among a primitive's parameters close over, see `constants`."""
    found: dict[int, Any] = {}
    for inner in _inner(params):
        found |= constants(inner)
    return found


def _evaluate(jaxpr: Any, consts: Sequence[Any], args: Sequence[Any], lifted: dict[int, Any]) -> list[Any]:
    """Evaluates `jaxpr`, reading each constant found in `lifted` (by identity) from there, at any depth."""
    jaxpr_open = open_jaxpr(jaxpr)
    env: dict[Any, Any] = dict(zip(jaxpr_open.constvars, (lifted.get(id(c), c) for c in consts), strict=True))
    env.update(zip(jaxpr_open.invars, args, strict=True))

    def read(atom: Any) -> Any:
        return lifted.get(id(atom.val), atom.val) if isinstance(atom, Literal) else env[atom]

    for eqn in jaxpr_open.eqns:
        env.update(zip(eqn.outvars, evaluate_equation(eqn, [read(x) for x in eqn.invars], lifted), strict=True))
    return [read(x) for x in jaxpr_open.outvars]


def evaluate_equation(eqn: Any, args: Sequence[Any], lifted: dict[int, Any]) -> Sequence[Any]:
    """The results of one equation of a jaxpr, in the context in which it was traced."""
    with eqn.ctx.manager:
        out = _bind_lifted(eqn.primitive, eqn.params, args, lifted)
    return out if eqn.primitive.multiple_results else [out]


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


def lift(primitive: Any, params: dict[str, Any], args: Sequence[Any], arrays: dict[int, Any]) -> Any:
    """``primitive.bind(*args)`` as a closed jaxpr whose first inputs stand for `arrays`, see `constants`."""

    def bind(new: Sequence[Any], args: Sequence[Any]) -> Any:
        return _bind_lifted(primitive, params, args, dict(zip(arrays, new, strict=True)))

    return jax.make_jaxpr(bind)(list(arrays.values()), list(args))


_lifted: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def lift_jaxpr(jaxpr: Any, arrays: dict[int, Any]) -> Any:
    """`jaxpr` as a closed jaxpr whose first inputs stand for `arrays`, which are its `constants`."""
    if (known := _lifted.get(jaxpr)) is None:

        def evaluate(new: Sequence[Any], args: Sequence[Any]) -> list[Any]:
            return _evaluate(jaxpr, _consts(jaxpr), args, dict(zip(arrays, new, strict=True)))

        inputs = [_spec(v.aval) for v in open_jaxpr(jaxpr).invars]
        specs = [_spec(jax.typeof(c)) for c in arrays.values()]
        _lifted[jaxpr] = known = jax.make_jaxpr(evaluate)(specs, inputs)
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
    # what the first is wrapped in holds the static arguments, which all of them share
    given = (*params.values(), *[x for _, extra in subfuns[0].transforms for x in extra])
    functions = [getattr(fun, "f", None) for fun in subfuns]
    if not all(map(_is_stable, functions)) or not all(_is_stable(x) for x in given if callable(x)):
        return None
    transforms = [transform for transform, _ in subfuns[0].transforms]
    try:
        return (*functions, *transforms, *map(canonical.exact, given), *map(jax.typeof, args), trace_context())
    except UncacheableError:
        return None


def _is_stable(function: Any) -> bool:
    return isinstance(function, jax.stages.Wrapped) or getattr(function, "__module__", "").startswith("jax.")


def function_name(fun: Any) -> str | None:
    """The name of the user's function in one of JAX's function wrappers."""
    info = getattr(fun, "debug_info", None)
    return info.func_name if info is not None else getattr(fun, "__name__", None)


# ---- interning ------------------------------------------------------------------------------------------------------

_representatives = Cache(CACHED_STRUCTURES)
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
    try:
        key = canonical.exact(value)
    except UncacheableError:
        _own.add(value)
        return value
    # a copy: NumPy's arrays can change, the scalars among them too
    first = _representatives.get(key, canonical.snapshot, value)
    _known[value] = weakref.ref(first)
    return first


# Jaxprs that have no exact key, such as those with a custom rule that closes over arrays: no two are the same to us, and to
# keep one is to keep its arrays.
_own: weakref.WeakSet = weakref.WeakSet()


def interned_key(value: Any) -> Any:
    """`canonical.exact` of a parameter whose jaxprs are interned: each is its identity."""
    if isinstance(value, _JAXPR_TYPES):
        return Identity(value)
    if isinstance(value, tuple) and any(isinstance(x, _JAXPR_TYPES) for x in value):
        return type(value), *map(interned_key, value)
    return canonical.exact(value)


def is_own(params: dict[str, Any]) -> bool:
    """Whether `intern` found one of the jaxprs among a primitive's parameters to be like no other."""
    return any(jaxpr in _own for jaxpr in _inner(params))


class _Unfolding(threading.local):
    """The functions whose rules this thread is looking into; a rule may call its own function."""

    def __init__(self) -> None:
        self.functions: list[Any] = []


_unfolding = _Unfolding()


def _custom_jvp_rule(params: dict[str, Any]) -> dict[str, Any]:
    # The rule is a thunk, new at every call: what tells it apart is the program that it traces to.
    count = len(params["call_jaxpr"].in_avals) - params["num_consts"]

    def rule() -> Any:
        jaxpr, consts, zeros = params["jvp_jaxpr_fun"].call_wrapped(*[False] * count)
        return canonical.structure(jaxpr), canonical.exact(tuple(consts)), tuple(zeros)

    return {"jvp_jaxpr_fun": ("jvp", _unfold(params, rule))}


def _custom_vjp_rule(params: dict[str, Any]) -> dict[str, Any]:
    count = len(params["call_jaxpr"].in_avals) - params["num_consts"]

    def rule() -> Any:
        jaxpr, consts = params["fwd_jaxpr_thunk"].call_wrapped(*[True] * count)
        backward = _backward_jaxpr(params, [v.aval for v in jaxpr.outvars])
        forward = (canonical.structure(jaxpr), canonical.exact(tuple(consts)))
        return forward, canonical.structure(backward)

    both = ("vjp", _unfold(params, rule))
    return {"fwd_jaxpr_thunk": both, "bwd": both, "out_trees": both}


def _unfold(params: dict[str, Any], rule: Callable[[], Any]) -> Any:
    """What `rule()` traces to; a function met again in its own rule stands for itself."""
    primal = canonical.structure(params["call_jaxpr"])
    functions = _unfolding.functions
    if primal in functions:
        return ("itself", functions.index(primal) - len(functions))
    depth = len(functions)
    try:
        functions.append(primal)
        return rule()
    except UncacheableError:
        raise
    except Exception:  # the user's rule fails, or is not for tracing: it is itself only
        return Identity(params)
    finally:
        del functions[depth:]


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


canonical.parameter_rules |= {"custom_jvp_call": _custom_jvp_rule, "custom_vjp_call": _custom_vjp_rule}
