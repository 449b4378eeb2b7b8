"""What one of JAX's programs (a jaxpr) says: what it calls, touches, closes over, and how it is to be run."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from . import canonical
from .cache import by_object
from .canonical import JAXPR_TYPES, opened
from .canonical import open_jaxpr as open_jaxpr  # used with the rest of this module
from .fence import (
    HOST_EFFECTS,
    PRINTING_EFFECTS,
    REF_EFFECTS,
    UNSPECIFIED,
    HighPrimitive,
    Literal,
    Ref,
    has_lowering,
    user_type,
)
from .types import Equation, Function, JaxProgram, Params, Primitive, Value

JIT = ("jit", "pjit")
CHECKPOINT = ("checkpoint", "remat2")
# Calls that XLA inlines, and the parameter that is the program.
CALLS = {
    **dict.fromkeys(JIT, "jaxpr"),
    **dict.fromkeys(("closed_call", "custom_jvp_call", "custom_vjp_call"), "call_jaxpr"),
}
# The primitives of functions with rules of their own, and the parameter that traces the rule.
RULES = {"custom_jvp_call": "jvp_jaxpr_fun", "custom_vjp_call": "fwd_jaxpr_thunk"}
# Where `lifting` makes an array that an inner jaxpr closes over an input.
LIFTABLE = frozenset((*JIT, *CHECKPOINT, "scan", "while", "cond", "custom_linear_solve", "shard_map"))
_EVALUATED = frozenset((*CHECKPOINT, *RULES))


def consts_of(jaxpr: JaxProgram) -> Sequence[Any]:
    return getattr(jaxpr, "consts", ())


def only_call(program: JaxProgram) -> Equation | None:
    """The one equation of a program that does nothing else: it takes what the program takes, and gives what that gives."""
    jaxpr: Any = open_jaxpr(program)
    alone = len(jaxpr.eqns) == 1 and (jaxpr.eqns[0].invars, jaxpr.eqns[0].outvars) == (jaxpr.invars, jaxpr.outvars)
    return jaxpr.eqns[0] if alone else None


def jaxprs_in(params: Params) -> Iterator[Any]:
    for value in params.values():
        for item in opened(value) if isinstance(value, (tuple, list)) else (value,):
            if isinstance(item, JAXPR_TYPES):
                yield item


def among(params: Params) -> bool:
    """Whether any of a primitive's parameters is a jaxpr or a tuple of them."""
    return next(jaxprs_in(params), None) is not None


def mapped(fn: Function, value: Any) -> Any:
    """`fn` of a jaxpr, or of those in a tuple; other values as they are."""
    if isinstance(value, (tuple, list)) and any(isinstance(x, JAXPR_TYPES) for x in value):
        return getattr(value, "_make", type(value))([mapped(fn, x) for x in opened(value)])
    return fn(value) if isinstance(value, JAXPR_TYPES) else value


# ---- effects --------------------------------------------------------------------------------------------------------


def asks_host(program: JaxProgram | Equation) -> bool:
    """Whether running a jaxpr, or an equation, calls Python with ``io_callback`` for an answer, which may differ each time."""
    return _has(program, HOST_EFFECTS) and _takes_answer(program)


def _has(program: JaxProgram | Equation, kind: Any) -> bool:
    return any(isinstance(effect, kind) for effect in program.effects)


def _takes_answer(program: JaxProgram | Equation) -> bool:
    if hasattr(program, "params"):
        own = program.primitive.name == "io_callback" and bool(program.outvars)
        return own or any(map(_takes_answer, jaxprs_in(program.params)))
    return any(map(_takes_answer, open_jaxpr(program).eqns))


def touches_refs(jaxpr: JaxProgram) -> bool:
    """Whether running `jaxpr` reads or writes a ``jax.Ref``, or another value that changes in place, made outside of it."""
    inner = open_jaxpr(jaxpr)
    mutable = [v for v in (*inner.invars, *inner.constvars) if getattr(v.aval, "has_qdd", False)]
    return bool(mutable) or any(isinstance(effect, REF_EFFECTS) for effect in jaxpr.effects)


def refs_in(params: Params) -> Iterator[Any]:
    """Each ``jax.Ref`` that the jaxprs among a primitive's parameters close over, at any depth."""
    for jaxpr in jaxprs_in(params):
        yield from (x for x in consts_of(jaxpr) if isinstance(x, Ref))
        for eqn in open_jaxpr(jaxpr).eqns:
            yield from refs_in(eqn.params)


def prints(program: JaxProgram | Equation) -> bool:
    """Whether a jaxpr, or an equation, calls Python and takes no answer: ``jax.debug.print``, ``tf.print``, summaries, logs."""
    return _has(program, PRINTING_EFFECTS) or _has(program, HOST_EFFECTS) and not _takes_answer(program)


# ---- what runs it ---------------------------------------------------------------------------------------------------


def is_plain_jit(params: Params) -> bool:
    """Whether a ``jit`` was asked for nothing but compilation: no donation, shardings, layouts or options."""
    return (
        not any(params["donated_invars"])
        and not asks_for_shardings(params)
        and all(x is None for x in (*params["in_layouts"], *params["out_layouts"]))
        and not params["compiler_options_kvs"]
        and not params["keep_unused"]
    )


def asks_for_shardings(params: Params) -> bool:
    """Whether a ``jit`` says where an input or output is to lie."""
    return any(x is not UNSPECIFIED for x in (*params["in_shardings"], *params["out_shardings"]))


def forwarded_inputs(params: Params) -> dict[int, int]:
    """Which outputs of a call are inputs returned unchanged, and which inputs these are; without the donated ones."""
    jaxpr = open_jaxpr(params["jaxpr"])
    position = {v: i for i, v in enumerate(jaxpr.invars)}
    donated = params.get("donated_invars") or [False] * len(position)
    sources = ((j, position.get(v)) for j, v in enumerate(jaxpr.outvars) if not isinstance(v, Literal))
    return {j: i for j, i in sources if i is not None and not donated[i]}


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


def calls_rules(jaxpr: JaxProgram) -> bool:
    """Whether a program that `jaxpr` calls calls a function with a rule of its own."""
    called = [inner for eqn in open_jaxpr(jaxpr).eqns for inner in jaxprs_in(eqn.params)]
    return any(contains(inner, name) for inner in called for name in RULES)


def tells_zeros(jaxpr: JaxProgram) -> bool:
    """Whether a rule in it, at any depth, may be told which inputs are perturbed."""
    return any(
        eqn.params.get("symbolic_zeros") is True
        or any(isinstance(value, HighPrimitive) for value in eqn.params.values())
        or any(map(tells_zeros, jaxprs_in(eqn.params)))
        for eqn in open_jaxpr(jaxpr).eqns
    )


def scan_counts(params: Params) -> tuple[int, int]:
    """How many operands of a ``scan`` are constants, and how many are carried."""
    if "ft_in" in params:  # from JAX 0.11 on the operands are described by a tree
        consts, carry, _ = params["ft_in"].unpack()
        return len(consts), len(carry)
    return params["num_consts"], params["num_carry"]


# ---- the arrays that it closes over ---------------------------------------------------------------------------------


class Facts:
    """What was found out about a program, and made of it, once: as long as it lives, or until everything is cleared."""

    __slots__ = ("constants", "first", "first_forward", "has_key", "use", "lifted", "shared", "is_large")

    def __init__(self) -> None:
        self.constants: dict[int, Value] | None = None
        # Of `interning`: weak references to what stands for it, also where rules do not matter; whether it has an exact key;
        # if it stands for others itself, for which.
        self.first: Callable[[], JaxProgram] | None = None
        self.first_forward: Callable[[], JaxProgram] | None = None
        self.has_key = True
        self.use: Any = None
        self.lifted: JaxProgram = None  # of `lifting`
        # Of a runner: what operations without a key share, and whether it is worth while to keep residuals.
        self.shared: Any = None
        self.is_large: bool | None = None


_facts: weakref.WeakKeyDictionary[JaxProgram, Facts] = by_object()


def facts(jaxpr: JaxProgram) -> Facts:
    """What is known of `jaxpr`: one object, which is filled where it is used."""
    known = _facts.get(jaxpr)
    if known is None:
        known = _facts[jaxpr] = Facts()
    return known


def constants(jaxpr: JaxProgram) -> dict[int, Value]:
    """The arrays (or outer tracers) that `jaxpr` closes over, by the identity that they have there, at any depth.

    A NumPy array, which can change, is given as a copy of what it was when first seen, if it is where `lifting` reaches it.
    """
    known = facts(jaxpr)
    if known.constants is None:
        inner = open_jaxpr(jaxpr)
        # where `jax_use_simplified_jaxpr_constants` is on, they are literals
        atoms = [v for eqn in inner.eqns for v in eqn.invars] + list(inner.outvars)
        values = [*consts_of(jaxpr), *[v.val for v in atoms if isinstance(v, Literal)]]
        arrays = {id(c): canonical.snapshot(c) for c in values if _is_array(c)}
        for eqn in inner.eqns:
            reached = eqn.primitive.name in LIFTABLE
            arrays |= {k: c for k, c in constants_of(eqn.params).items() if reached or isinstance(c, jax.Array)}
        known.constants = arrays
    return known.constants


def _is_array(value: Value) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    return isinstance(value, (jax.Array, Ref)) or user_type(value) is not None


def constants_of(params: Params) -> dict[int, Value]:
    """The arrays that the jaxprs among a primitive's parameters close over, see `constants`."""
    arrays: dict[int, Value] = {}
    for inner in jaxprs_in(params):
        arrays |= constants(inner)
    return arrays
