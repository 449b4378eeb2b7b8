"""What the recorder must do to JAX's programs (jaxprs): stage, lift their constants, and recognise them again.

*Stage*: a call of a ``custom_jvp`` or ``custom_vjp`` function, or of ``shard_map``, arrives as Python functions that can
be called once; traced into a jaxpr it becomes data. *Lift*: a function under ``jit`` keeps the arrays that it closes over
inside its jaxpr, where no gradient could reach them; as further inputs they are values like any other. *Intern*: code that
makes a new lambda at every call brings a new jaxpr every time; one representative for each structure lets JAX's caches
and ours see that it is the same program.
"""

from __future__ import annotations

import functools
import itertools
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from . import cache, canonical, shadow
from ._jax import (
    HOST_EFFECTS,
    PRINTING_EFFECTS,
    REF_EFFECTS,
    UNSPECIFIED,
    ClosedJaxpr,
    JitFunction,
    Literal,
    Ref,
    eval_jaxpr,
    function_in,
    has_lowering,
    stores_in,
    trace_context,
    wrap_init,
    zeros_of,
)
from .cache import Cache
from .canonical import JAXPR_TYPES as _JAXPR_TYPES
from .canonical import Identity, UncacheableError
from .canonical import open_jaxpr as open_jaxpr  # used with the rest of this module
from .types import Atom, Equation, Function, JaxProgram, Params, Primitive, Subfun, Value, Values

CACHED_STRUCTURES = 4096

JIT = ("jit", "pjit")
# The primitives of functions with rules of their own, and the parameter that traces the rule.
RULES = {"custom_jvp_call": "jvp_jaxpr_fun", "custom_vjp_call": "fwd_jaxpr_thunk"}
_EVALUATED = frozenset(("checkpoint", "remat2", *RULES))


def consts_of(jaxpr: JaxProgram) -> Sequence[Any]:
    return getattr(jaxpr, "consts", ())


def jaxprs_in(params: Params) -> Iterator[Any]:
    for value in params.values():
        for item in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, _JAXPR_TYPES):
                yield item


def among(params: Params) -> bool:
    """Whether any of a primitive's parameters is a jaxpr or a tuple of them."""
    return next(jaxprs_in(params), None) is not None


def asks_host(jaxpr: JaxProgram) -> bool:
    """Whether running `jaxpr` calls Python with ``io_callback``, which may give something else each time."""
    return any(isinstance(effect, HOST_EFFECTS) for effect in jaxpr.effects)


def touches_refs(jaxpr: JaxProgram) -> bool:
    """Whether running `jaxpr` reads or writes a ``jax.Ref``, or another value that changes in place, made outside of it."""
    mutable = [v for v in open_jaxpr(jaxpr).invars if getattr(v.aval, "has_qdd", False)]
    return bool(mutable) or any(isinstance(effect, REF_EFFECTS) for effect in jaxpr.effects)


def refs_in(params: Params) -> Iterator[Any]:
    """Each ``jax.Ref`` that the jaxprs among a primitive's parameters close over, at any depth."""
    for jaxpr in jaxprs_in(params):
        yield from (x for x in consts_of(jaxpr) if isinstance(x, Ref))
        for eqn in open_jaxpr(jaxpr).eqns:
            yield from refs_in(eqn.params)


def prints(effects: Any) -> bool:
    """Whether these are effects of what calls Python and takes no answer: ``jax.debug.print``, ``tf.print``, summaries."""
    return any(isinstance(effect, PRINTING_EFFECTS) for effect in effects)


def without_prints(value: Value) -> Any:
    """A jaxpr, or those in a tuple, without the equations that print, at any depth: for what is computed anew."""
    if not isinstance(value, _JAXPR_TYPES):
        return _mapped(without_prints, value)
    inner = open_jaxpr(value)
    if not prints(inner.effects):
        return value
    equations = [_without_prints(eqn) for eqn in inner.eqns if not prints(eqn.effects) or among(eqn.params)]
    inner = inner.replace(eqns=equations, effects=_others(inner.effects))
    return value.replace(jaxpr=inner) if hasattr(value, "jaxpr") else inner


def _others(effects: Any) -> Any:
    return type(effects)(effect for effect in effects if not isinstance(effect, PRINTING_EFFECTS))


def _without_prints(eqn: Equation) -> Equation:
    if not prints(eqn.effects):
        return eqn
    params = {name: without_prints(value) for name, value in eqn.params.items()}
    if (known := _composed(params)) is not None:
        params |= _remade(params, known, map(without_prints, known.programs))
    elif (thunk := params.get("fwd_jaxpr_thunk")) is not None:

        def forward(*which: bool) -> Any:  # when it is asked for: the rule may call its function again, without end
            jaxpr, consts = _traced(thunk, *which)
            return without_prints(jaxpr), consts

        params["fwd_jaxpr_thunk"] = wrap_init(forward, debug_info=thunk.debug_info)
    return eqn.replace(params=params, effects=_others(eqn.effects))


def _mapped(fn: Function, value: Any) -> Any:
    """`fn` of a jaxpr, or of those in a tuple; other values as they are."""
    if isinstance(value, (tuple, list)) and any(isinstance(x, _JAXPR_TYPES) for x in value):
        return getattr(value, "_make", type(value))([_mapped(fn, x) for x in value])
    return fn(value) if isinstance(value, _JAXPR_TYPES) else value


def is_plain_jit(params: Params) -> bool:
    """Whether a ``jit`` was asked for nothing but compilation: no donation, shardings, layouts or options."""
    asked = (*params["in_shardings"], *params["out_shardings"])
    return (
        not any(params["donated_invars"])
        and all(x is UNSPECIFIED for x in asked)
        and all(x is None for x in (*params["in_layouts"], *params["out_layouts"]))
        and not params["compiler_options_kvs"]
        and not params["keep_unused"]
    )


def forwarded_inputs(params: Params) -> dict[int, int]:
    """Which outputs of a call are inputs returned unchanged, and which inputs these are; without the donated ones."""
    jaxpr = open_jaxpr(params["jaxpr"])
    position = {v: i for i, v in enumerate(jaxpr.invars)}
    donated = params.get("donated_invars") or [False] * len(position)
    found = ((j, position.get(v)) for j, v in enumerate(jaxpr.outvars) if not isinstance(v, Literal))
    return {j: i for j, i in found if i is not None and not donated[i]}


def compiles(jaxpr: JaxProgram) -> bool:
    """Whether XLA can compile what JAX would evaluate operation by operation: `jaxpr`, and rules and checkpoints in it."""
    return all(primitive_compiles(eqn.primitive, eqn.params) for eqn in open_jaxpr(jaxpr).eqns)


def primitive_compiles(primitive: Primitive, params: Params) -> bool:
    """Whether XLA can compile a primitive: one that has nothing but a Python implementation runs on values alone."""
    if primitive.name in _EVALUATED:
        return all(map(compiles, jaxprs_in(params)))
    return has_lowering(primitive)


def contains(jaxpr: JaxProgram, name: str) -> bool:
    """Whether a primitive of that name occurs in `jaxpr`, at any depth."""
    return any(
        eqn.primitive.name == name or any(contains(inner, name) for inner in jaxprs_in(eqn.params))
        for eqn in open_jaxpr(jaxpr).eqns
    )


def scan_counts(params: Params) -> tuple[int, int]:
    """How many operands of a ``scan`` are constants, and how many are carried."""
    if "ft_in" in params:  # from JAX 0.11 on the operands are described by a tree
        consts, carry, _ = params["ft_in"].unpack()
        return len(consts), len(carry)
    return params["num_consts"], params["num_carry"]


# ---- constants ------------------------------------------------------------------------------------------------------

_constants: weakref.WeakKeyDictionary[JaxProgram, dict[int, Value]] = weakref.WeakKeyDictionary()


def constants(jaxpr: JaxProgram) -> dict[int, Value]:
    """The arrays (or outer tracers) that `jaxpr` closes over, by the identity that they have there, at any depth.

    A NumPy array, which can change, is given as a copy of what it was when first seen, if it is where `lift` reaches it.
    """
    try:
        return _constants[jaxpr]
    except KeyError:
        inner = open_jaxpr(jaxpr)
        # where `jax_use_simplified_jaxpr_constants` is on, they are literals
        atoms = [v for eqn in inner.eqns for v in eqn.invars] + list(inner.outvars)
        values = [*consts_of(jaxpr), *[v.val for v in atoms if isinstance(v, Literal)]]
        found = {id(c): canonical.snapshot(c) for c in values if _is_array(c)}
        for eqn in inner.eqns:
            reached = eqn.primitive.name in _REBUILD
            found |= {k: c for k, c in constants_of(eqn.params).items() if reached or isinstance(c, jax.Array)}
        _constants[jaxpr] = found
        return found


def _is_array(value: Value) -> bool:
    return isinstance(value, jax.Array) or isinstance(value, np.ndarray) and value.ndim > 0


def constants_of(params: Params) -> dict[int, Value]:
    """The arrays that the jaxprs among a primitive's parameters close over, see `constants`."""
    found: dict[int, Value] = {}
    for inner in jaxprs_in(params):
        found |= constants(inner)
    return found


def _evaluate(jaxpr: JaxProgram, consts: Sequence[Any], args: Values, lifted: dict[int, Value]) -> list[Any]:
    """Evaluates `jaxpr`, reading each constant found in `lifted` (by identity) from there, at any depth."""
    jaxpr_open = open_jaxpr(jaxpr)
    env: dict[Any, Any] = dict(zip(jaxpr_open.constvars, (lifted.get(id(c), c) for c in consts), strict=True))
    env.update(zip(jaxpr_open.invars, args, strict=True))

    def read(atom: Atom) -> Any:
        return lifted.get(id(atom.val), atom.val) if isinstance(atom, Literal) else env[atom]

    for eqn in jaxpr_open.eqns:
        env.update(zip(eqn.outvars, evaluate_equation(eqn, [read(x) for x in eqn.invars], lifted), strict=True))
    return [read(x) for x in jaxpr_open.outvars]


def evaluate_equation(eqn: Equation, args: Values, lifted: dict[int, Value]) -> Sequence[Any]:
    """The results of one equation of a jaxpr, in the context in which it was traced."""
    with eqn.ctx.manager:
        out = _bind_lifted(eqn.primitive, eqn.params, args, lifted)
    return out if eqn.primitive.multiple_results else [out]


def _bind_lifted(primitive: Primitive, params: Params, args: Values, lifted: dict[int, Value]) -> Any:
    arrays = constants_of(params)
    given = [lifted.get(key, x) for key, x in arrays.items()]
    if arrays and primitive.name in JIT and not is_plain_jit(params):
        return primitive.bind(*given, *args, **with_inputs(params, arrays))
    if arrays and primitive.name in _REBUILD:
        return _REBUILD[primitive.name](params, args, lambda body, *xs: _evaluate(body, consts_of(body), xs, lifted))
    closed_over = without_derivative(params.get("name", primitive.name))
    for x in given:
        closed_over(x)
    if primitive.name in RULES:
        count = params["num_consts"]
        args = [*map(closed_over, args[:count]), *args[count:]]
    return primitive.bind(*args, **primitive.get_bind_params(params))


def without_closure(fn: Function, name: str, positions: tuple[int, ...]) -> Function:
    """`fn` without a derivative with respect to the inputs at `positions`, which it closes over: custom rules give none."""
    if not positions:
        return fn
    closed_over = without_derivative(name)
    return lambda *inputs: fn(*[closed_over(x) if i in positions else x for i, x in enumerate(inputs)])


def without_derivative(name: str) -> Callable[[Any], Any]:
    """The identity, for an array that an operation of that `name` closes over and cannot be differentiated with respect to."""

    @jax.custom_vjp
    def closed_over(x: Value) -> Any:
        return x

    def refuse(x: Value) -> Any:
        raise LookupError(
            f"gradient registry has no entry for: {name} with respect to an array that it closes over. Its rule is for the "
            "arguments of its function: pass the array as one (jax.closure_convert finds them)."
        )

    closed_over.defvjp(refuse, refuse)
    return closed_over


# Control flow whose bodies close over arrays, written anew with JAX's public functions, which pass closed-over values on
# as operands: (parameters, operands, evaluate a body) -> results.
Evaluate = Callable[..., list[Value]]  # (jaxpr, *its arguments) -> its results


def _scan(p: Params, args: Values, body: Evaluate) -> list[Value]:
    consts, carry = scan_counts(p)
    start, xs = args[consts : consts + carry], args[consts + carry :]

    def step(c: list[Value], x: list[Value]) -> tuple[list[Value], list[Value]]:
        out = body(p["jaxpr"], *args[:consts], *c, *x)
        return out[:carry], out[carry:]

    last, ys = jax.lax.scan(step, list(start), list(xs), p["length"], p["reverse"], p["unroll"])
    return [*last, *ys]


def _while(p: Params, args: Values, body: Evaluate) -> list[Value]:
    test, step = p["cond_nconsts"], p["body_nconsts"]
    return jax.lax.while_loop(
        lambda c: body(p["cond_jaxpr"], *args[:test], *c)[0],
        lambda c: body(p["body_jaxpr"], *args[test : test + step], *c),
        list(args[test + step :]),
    )


def _cond(p: Params, args: Values, body: Evaluate) -> list[Value]:
    return list(jax.lax.switch(args[0], [partial(body, branch) for branch in p["branches"]], *args[1:]))


def _checkpoint(p: Params, args: Values, body: Evaluate) -> list[Value]:
    again = jax.checkpoint(partial(body, p["jaxpr"]), prevent_cse=p["prevent_cse"], policy=p["policy"])
    return list(again(*args))


def _linear_solve(p: Params, args: Values, body: Evaluate) -> list[Value]:
    ends = [*itertools.accumulate(p["const_lengths"])]
    *consts, b = [list(args[i:j]) for i, j in itertools.pairwise((0, *ends, len(args)))]
    has_aux = len(p["jaxprs"].solve.out_avals) > len(b)

    def function(jaxpr: JaxProgram, given: list[Value], with_aux: bool = has_aux) -> Any:
        def of_the_last(*xs: Any) -> Any:
            out = body(jaxpr, *given, *xs[-1])
            return (out[: len(b)], out[len(b) :]) if with_aux else out

        return jaxpr and of_the_last

    matvec, vecmat, solve, transpose_solve = p["jaxprs"]
    return jax.tree.leaves(
        jax.lax.custom_linear_solve(
            function(matvec, consts[0], False),
            b,
            function(solve, consts[2]),
            function(transpose_solve, consts[3]),
            symmetric=vecmat is matvec,
            has_aux=has_aux,
        )
    )


_REBUILD: dict[str, Function] = {
    "jit": lambda p, args, body: body(p["jaxpr"], *args),
    "pjit": lambda p, args, body: body(p["jaxpr"], *args),
    "scan": _scan,
    "while": _while,
    "cond": _cond,
    "checkpoint": _checkpoint,
    "remat2": _checkpoint,
    "custom_linear_solve": _linear_solve,
}


def with_inputs(params: Params, arrays: dict[int, Value]) -> dict[str, Any]:
    """The parameters of a ``jit`` with `arrays`, that it closes over, as further inputs in front: placed wherever they are."""
    each = {"in_shardings": UNSPECIFIED, "in_layouts": None, "donated_invars": False}
    more = {name: (value,) * len(arrays) + tuple(params[name]) for name, value in each.items()}
    return params | more | {"jaxpr": intern(lift_jaxpr(params["jaxpr"], arrays))}


def lift(primitive: Primitive, params: Params, args: Values, arrays: dict[int, Value]) -> Any:
    """``primitive.bind(*args)`` as a closed jaxpr whose first inputs stand for `arrays`, see `constants`."""

    def bind(new: Sequence[Any], args: Values) -> Any:
        return _bind_lifted(primitive, params, args, dict(zip(arrays, new, strict=True)))

    return jax.make_jaxpr(bind)(list(arrays.values()), list(args))


_lifted: weakref.WeakKeyDictionary[JaxProgram, Any] = weakref.WeakKeyDictionary()


def lift_jaxpr(jaxpr: JaxProgram, arrays: dict[int, Value]) -> Any:
    """`jaxpr` as a closed jaxpr whose first inputs stand for `arrays`, which are its `constants`."""
    if (known := _lifted.get(jaxpr)) is None or cache.shadowing:

        def evaluate(new: Sequence[Any], args: Values) -> list[Any]:
            return _evaluate(jaxpr, consts_of(jaxpr), args, dict(zip(arrays, new, strict=True)))

        # By JAX's types themselves: they say, too, over which axes of a mesh a value varies, and how it is sharded.
        inputs = [v.aval for v in open_jaxpr(jaxpr).invars]
        _lifted[jaxpr] = known = jax.make_jaxpr(evaluate)([jax.typeof(c) for c in arrays.values()], inputs)
    return known


# ---- staging --------------------------------------------------------------------------------------------------------


def stage(primitive: Primitive, subfuns: Sequence[Subfun], args: Values, params: Params) -> tuple[Any, Function]:
    """Traces ``primitive.bind(*args, subfuns=subfuns, **params)`` into a jaxpr; also how to repack its flat results."""
    repack: list[Function] = []

    def bind(*tracers: Any) -> list[Any]:
        out = primitive.bind(*tracers, subfuns=subfuns, **params)
        repack.append(_repacked(out))
        return list(out)

    return jax.make_jaxpr(bind)(*args), repack[0]


def rebind(primitive: Primitive, subfuns: Sequence[Subfun], params: Params) -> tuple[Function, Function]:
    """What `stage` would have traced, as a function that can be called any number of times; also how to repack its results."""
    repack: list[Function] = []

    def bind(*args: Any) -> list[Any]:
        for fun in subfuns:
            for store in getattr(fun, "stores", ()):
                if store:
                    store.reset()
        out = primitive.bind(*args, subfuns=subfuns, **params)
        repack[:] = [_repacked(out)]
        return list(out)

    return bind, lambda outputs: repack[0](outputs)


def _repacked(out: Any) -> Function:
    # shard_map answers with JAX's FlatTree, the others with a list
    return out.update if hasattr(out, "update") else list


def within_transformation(subfuns: Sequence[Subfun]) -> bool:
    """Whether a transformation (`jax.vmap`) made the call of the functions `subfuns`: they may close over its values."""
    transforms: Any = subfuns[0].transforms
    return bool(transforms) and transforms[0][0].__module__ != jax.custom_jvp.__module__


def trace_rules(staged: JaxProgram, subfuns: Sequence[Subfun]) -> None:
    """Traces the rule of the call in `staged` now, while the values that it closes over are alive."""
    for eqn in open_jaxpr(staged).eqns:
        if (name := RULES.get(eqn.primitive.name)) is None:
            continue
        thunk = eqn.params[name]
        count = len(eqn.params["call_jaxpr"].in_avals) - eqn.params["num_consts"]
        stores = [store for store in subfuns[1].stores if store is not None]
        try:
            traced = thunk.call_wrapped(*[name != "jvp_jaxpr_fun"] * count)
            stored = [store.val for store in stores]
        except Exception:  # raised again if the rule is needed
            continue
        finally:  # JAX allows for the results of the function or of its rule to be stored, not for both
            for store in stores:
                store.reset()
        if name == "fwd_jaxpr_thunk":  # the other one JAX keeps itself
            rule = partial(_traced_rule, traced, stores, stored)
            eqn.params[name] = wrap_init(rule, debug_info=thunk.debug_info)


def keep_stores_of_rule(subfuns: Sequence[Subfun]) -> None:
    """Forgets what the function stored where its rule was traced during the call: JAX allows for one of them, not both."""
    function, rule, *_ = [[store for store in fun.stores if store is not None] for fun in subfuns]
    if any(map(_is_filled, rule)):
        for store in function:
            store.reset()


def are_filled(stores: Sequence[Any]) -> bool:
    """Whether a call has stored what its caller reads of it."""
    return all([bool(store) for store in stores if store is not None])


def _is_filled(store: Any) -> bool:
    try:
        return store.val is not None
    except Exception:  # JAX's StoreException
        return False


def _traced_rule(traced: Any, stores: Sequence[Any], stored: Sequence[Any], *nonzero: bool) -> Any:
    for store, value in zip(stores, stored, strict=True):
        store.reset()
        store.store(value)
    return traced


def stable_key(subfuns: Sequence[Subfun], args: Values, params: Params) -> Any:
    """A key under which what `stage` gives may be kept, or None where only tracing again can tell that it is the same.

    The functions must be JAX's own or jitted ones, whose behaviour depends on nothing but their arguments.
    """
    # what the first is wrapped in holds the static arguments, which all of them share
    wrapped_in = getattr(subfuns[0], "transforms", ())
    given = (*params.values(), *[x for _, extra in wrapped_in for x in extra])
    functions = [getattr(fun, "f", None) for fun in subfuns]
    if not all(map(_is_stable, functions)) or not all(_is_stable(x) for x in given if callable(x)):
        return None
    transforms = [transform for transform, _ in wrapped_in]
    try:
        return (*functions, *transforms, *map(canonical.exact, given), *map(jax.typeof, args), trace_context())
    except UncacheableError:
        return None


def _is_stable(function: Any) -> bool:
    return isinstance(function, JitFunction) or (getattr(function, "__module__", None) or "").startswith("jax.")


def function_name(fun: Any) -> str | None:
    """The name of the user's function in one of JAX's function wrappers."""
    info = getattr(fun, "debug_info", None)
    return info.func_name if info is not None else getattr(fun, "__name__", None)


# ---- interning ------------------------------------------------------------------------------------------------------


def _compare_jaxprs(key: Any, kept: Any, fresh: Any) -> Any:
    found = shadow.difference(kept, fresh)
    cache.require(found is None, open_jaxpr(fresh).debug_info.func_name, found or "")
    return kept


_representatives: Cache[JaxProgram] = Cache(CACHED_STRUCTURES, _compare_jaxprs)
_known: weakref.WeakKeyDictionary[JaxProgram, Any] = weakref.WeakKeyDictionary()


def intern(value: Value) -> Any:
    """The first jaxpr seen with the structure of `value` (a jaxpr, or a tuple of them); other values as they are."""
    if not isinstance(value, _JAXPR_TYPES):
        return _mapped(intern, value)
    if constants(value):
        return value
    known = _known.get(value)
    if known is not None and (first := known()) is not None and not cache.shadowing:
        return first
    if value in _uncacheable:
        return value
    try:
        key = canonical.exact(value)
    except UncacheableError:
        _uncacheable.add(value)
        return value
    # a copy: NumPy's arrays can change, the scalars among them too
    first = _representatives.get(key, canonical.snapshot, value)
    _known[value] = weakref.ref(first)
    return first


def is_known(jaxpr: JaxProgram) -> bool:
    """Whether it was interned before."""
    return jaxpr in _known


# Jaxprs that have no exact key, such as those with a custom rule that closes over arrays: no two are the same to us, and to
# keep one is to keep its arrays.
_uncacheable: weakref.WeakSet[JaxProgram] = weakref.WeakSet()


def interned_key(value: Value) -> Any:
    """`canonical.exact` of a parameter whose jaxprs are interned: each is its identity."""
    if isinstance(value, _JAXPR_TYPES):
        return Identity(value)
    if isinstance(value, tuple) and any(isinstance(x, _JAXPR_TYPES) for x in value):
        return type(value), *map(interned_key, value)
    if isinstance(value, np.ndarray):  # JAX traces no operation with such a parameter
        raise UncacheableError("an array as a parameter")
    return canonical.exact(value)


def is_uncacheable(params: Params) -> bool:
    """Whether `intern` found one of the jaxprs among a primitive's parameters to be like no other."""
    return any(jaxpr in _uncacheable for jaxpr in jaxprs_in(params))


# ---- custom rules ---------------------------------------------------------------------------------------------------
#
# The rule of a ``custom_jvp`` or ``custom_vjp`` call is a thunk that runs the user's Python, new at every call. What tells it
# apart is the program that it traces to; and whoever stands for all its equals must run that program, not the Python, which
# may read something else by then. A rule may call functions with rules, its own among them.

# A rule's rule may have another rule, and so on without end (`jax.experimental.ode.odeint`): beyond this it has no key.
RULES_IN_RULES = 4


class _Rule(NamedTuple):
    """What a rule traces to: closed jaxprs, what else it says, and the parameters that run these programs in its place."""

    programs: tuple[Any, ...]
    told: Any
    parameters: Callable[[Sequence[Any]], dict[str, Any]]


class _Around(threading.local):
    """The rules that this thread is looking into, each with what stands for it; and whether to leave out those in them."""

    def __init__(self) -> None:
        self.rules: list[tuple[Any, Any]] = []
        self.shallow = False


_around = _Around()


class Composed(NamedTuple):
    """What a ``custom_vjp`` call is made of where two are equal if its `programs` are: `make` gives the call for others.

    `make` takes programs like these, and gives a function of the call's flat arguments.
    """

    programs: tuple[JaxProgram, ...]
    make: Callable[..., Function]


# By the function that pulls back. To trace a rule whose rule has rules takes a time that grows with a power of their number.
composed: weakref.WeakKeyDictionary[Function, Composed] = weakref.WeakKeyDictionary()


def _composed(params: Params) -> Composed | None:
    return composed.get(function_in(params["bwd"])) if "bwd" in params and not _around.shallow else None


def _remade(params: Params, known: Composed, programs: Iterable[JaxProgram]) -> dict[str, Any]:
    """The rule of the call that `params` belong to, made of other programs."""
    in_avals = params["call_jaxpr"].in_avals[params["num_consts"] :]
    (eqn,) = jax.make_jaxpr(known.make(*programs))(*in_avals).eqns
    return {name: eqn.params[name] for name in _replaced(params)}


def _rule_key(params: Params) -> dict[str, Any]:
    if (known := _composed(params)) is not None:
        return dict.fromkeys(_replaced(params), (known.make, *map(canonical.structure, known.programs)))
    found = _in_rule(params, lambda rule, _: (rule.told, *map(canonical.structure, rule.programs)))
    return dict.fromkeys(_replaced(params), found)


def _rule_snapshot(params: Params) -> dict[str, Any]:
    def frozen(rule: _Rule, stand_in: dict[str, Any]) -> Any:
        programs: list[Any] = []
        stand_in |= rule.parameters(programs)
        programs += map(canonical.snapshot, rule.programs)  # in which the rule may occur again
        return stand_in

    if (known := _composed(params)) is not None:
        programs = tuple(map(canonical.snapshot, known.programs))
        return {} if canonical.all_same(programs, known.programs) else _remade(params, known, programs)
    try:
        found: dict[str, Any] = _in_rule(params, frozen)
        return found
    except UncacheableError:  # nothing will be taken for its equal
        return {}


def _replaced(params: Params) -> tuple[str, ...]:
    return ("jvp_jaxpr_fun",) if "jvp_jaxpr_fun" in params else ("fwd_jaxpr_thunk", "bwd", "out_trees")


def _in_rule(params: Params, look: Callable[[_Rule, dict[str, Any]], Any]) -> Any:
    """``look(rule, stand-in)`` of the rule of a call; of a rule inside itself, what stands for it there."""
    if _around.shallow:
        return None
    if params["symbolic_zeros"] or len(_around.rules) >= RULES_IN_RULES:
        raise UncacheableError("a rule that may be another one each time")
    try:
        rule = _traced_jvp(params) if "jvp_jaxpr_fun" in params else _traced_vjp(params)
    except Exception as error:  # the user's rule fails, or is not for tracing
        raise UncacheableError("a rule that cannot be traced") from error
    try:
        _around.shallow = True
        key = rule.told, *map(canonical.structure, (params["call_jaxpr"], *rule.programs))
    finally:
        _around.shallow = False
    for depth, (known, stand_in) in enumerate(reversed(_around.rules)):
        if known == key:
            return stand_in or ("itself", depth)
    stand_in = {}
    depth = len(_around.rules)
    try:
        _around.rules.append((key, stand_in))
        return look(rule, stand_in)
    finally:
        del _around.rules[depth:]


def _traced(thunk: Subfun, *which: bool) -> Any:
    """What `thunk` traces a rule to. Where that fails, the thunk is as it was.

    It keeps what it has given, but begins by emptying the stores that belong to it, which JAX reads in the backward pass.
    """
    before = [(store, store.val) for store in stores_in(thunk) if _is_filled(store)]
    try:
        return thunk.call_wrapped(*which)
    except BaseException:
        for store, value in before:
            store.reset()
            store.store(value)
        raise


def _traced_jvp(params: Params) -> _Rule:
    thunk, avals = params["jvp_jaxpr_fun"], params["call_jaxpr"].in_avals[params["num_consts"] :]
    jaxpr, consts, zeros = _traced(thunk, *[False] * len(avals))

    def parameters(programs: Sequence[Any]) -> dict[str, Any]:
        @functools.cache
        def rule(*in_zeros: bool) -> Any:
            """The program for nonzero tangents of some inputs only: zeros in the place of the others."""

            def on_nonzero(primals: Values, nonzero: Sequence[Any]) -> Sequence[Any]:
                given = iter(nonzero)
                tangents = [
                    zeros_of(aval.to_tangent_aval()) if zero else next(given)
                    for zero, aval in zip(in_zeros, avals, strict=True)
                ]
                return eval_jaxpr(open_jaxpr(programs[0]), consts_of(programs[0]), *primals, *tangents)

            some = [aval.to_tangent_aval() for zero, aval in zip(in_zeros, avals, strict=True) if not zero]
            closed = jax.make_jaxpr(on_nonzero)(list(avals), some)
            return closed.jaxpr, consts_of(closed), zeros

        return {"jvp_jaxpr_fun": wrap_init(rule, debug_info=thunk.debug_info)}

    return _Rule((ClosedJaxpr(jaxpr, consts),), tuple(zeros), parameters)


def _traced_vjp(params: Params) -> _Rule:
    thunk, bwd = params["fwd_jaxpr_thunk"], params["bwd"]
    in_avals = params["call_jaxpr"].in_avals
    jaxpr, consts = _traced(thunk, *[True] * (len(in_avals) - params["num_consts"]))
    trees = params["out_trees"]()
    given = iter([v.aval for v in jaxpr.outvars])  # a residual that is an input is not given out again
    residuals = [next(given) if i is None else in_avals[i] for i in trees[2]]
    assert len(residuals) == trees[1].num_leaves
    cotangents = [aval.to_ct_aval() for aval in params["call_jaxpr"].out_avals]
    results: list[Any] = []

    def backward(*args: Any) -> list[Any]:
        results[:] = [bwd.call_wrapped(*args)]
        return [x for x in _flat(results[0]) if _is_number(x)]

    closed = jax.make_jaxpr(backward)(*residuals, *cotangents)
    template = _filled(results[0], itertools.repeat(_HOLE))  # lists and tuples, and what is no number in them

    def parameters(programs: Sequence[Any]) -> dict[str, Any]:
        def forward(*_: Any) -> Any:
            return open_jaxpr(programs[0]), consts_of(programs[0])

        def backward(*args: Any) -> Any:
            found = eval_jaxpr(open_jaxpr(programs[1]), consts_of(programs[1]), *args)
            return _filled(template, iter(found))

        return {
            "fwd_jaxpr_thunk": wrap_init(forward, debug_info=thunk.debug_info),
            "bwd": wrap_init(backward, debug_info=bwd.debug_info),
            "out_trees": lambda: trees,
        }

    told = *trees[:2], *trees[2], *map(type, _flat(template))
    return _Rule((ClosedJaxpr(jaxpr, consts), closed), told, parameters)


_HOLE = object()


def _is_number(x: Value) -> bool:
    return isinstance(x, (jax.Array, np.ndarray, np.generic, int, float, complex))


def _flat(result: Any) -> list[Any]:
    return jax.tree.leaves(result, is_leaf=lambda x: not isinstance(x, (tuple, list)))


def _filled(result: Any, numbers: Iterator[Any]) -> Any:
    """`result` with the next of `numbers` in the place of each number."""
    if isinstance(result, (tuple, list)):
        return type(result)([_filled(x, numbers) for x in result])
    return next(numbers) if result is _HOLE or _is_number(result) else result


for _name in ("custom_jvp_call", "custom_vjp_call"):
    canonical.parameter_rules[_name] = _rule_key
    canonical.parameter_snapshots[_name] = _rule_snapshot
