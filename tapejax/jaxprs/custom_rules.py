"""How the rule of a ``custom_jvp`` or ``custom_vjp`` call is recognised.

It is a thunk that runs the user's Python, new at every call. What tells it apart is the program that it traces to; and whoever
stands for all its equals must run that program, not the Python, which may read something else by then. A rule may call functions
with rules, its own among them.
"""

from __future__ import annotations

import functools
import itertools
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from . import canonical, fence
from .calls import is_filled
from .canonical import JAXPR_TYPES, Identity, UncacheableError, asking, open_jaxpr
from .contents import consts_of, only_call
from .fence import ClosedJaxpr, eval_jaxpr, function_in, stores_in, wrap_init, zeros_of
from .threads import Setting
from .types import Equation, Function, JaxProgram, Params, Subfun, Value, Values

# A rule's rule may have another rule, and so on without end (`jax.experimental.ode.odeint`): beyond this it has no key.
RULES_IN_RULES = 4


class _Rule(NamedTuple):
    """What a rule traces to: closed jaxprs, what else it says, and the parameters that run these programs in its place."""

    programs: tuple[Any, ...]
    properties: Any
    parameters: Callable[[Sequence[Any]], dict[str, Any]]


class Composed(NamedTuple):
    """What a ``custom_vjp`` call of ours is made of: two are equal if their `programs` and `make` are.

    `make` takes programs like these, and gives the call as a function of its flat arguments.
    """

    programs: tuple[JaxProgram, ...]
    make: Callable[..., Function]


def composition_of(params: Params) -> Composed | None:
    """What the function that pulls back has as its attribute `composed`, if it is one of ours.

    Tracing rules inside rules takes a time that grows with a power of their number.
    """
    asked = "bwd" in params and not asking.without_rules
    composition = getattr(function_in(params["bwd"]), "composed", None) if asked else None
    return composition if isinstance(composition, Composed) else None


def remade(params: Params, composition: Composed, programs: Iterable[JaxProgram]) -> dict[str, Any]:
    """The rule of the call that `params` belong to, made of other programs."""
    in_avals = params["call_jaxpr"].in_avals[params["num_consts"] :]
    (eqn,) = jax.make_jaxpr(composition.make(*programs))(*in_avals).eqns
    return {name: eqn.params[name] for name in _replaced(params)}


def _rule_key(params: Params) -> dict[str, Any]:
    if (composition := composition_of(params)) is not None:
        return dict.fromkeys(_replaced(params), (composition.make, *map(canonical.structure, composition.programs)))
    key = _in_rule(params, lambda rule, _: (rule.properties, *map(canonical.structure, rule.programs)))
    return dict.fromkeys(_replaced(params), key)


def _rule_snapshot(params: Params) -> dict[str, Any]:
    def frozen(rule: _Rule, stand_in: dict[str, Any]) -> Any:
        programs: list[Any] = []
        stand_in |= rule.parameters(programs)
        programs += map(canonical.snapshot, rule.programs)  # in which the rule may occur again
        return stand_in

    if asking.without_rules:
        return {
            name: wrap_init(_no_rule, debug_info=params[_replaced(params)[0]].debug_info) for name in _replaced(params)
        }
    if (composition := composition_of(params)) is not None:
        programs = tuple(map(canonical.snapshot, composition.programs))
        return {} if canonical.all_same(programs, composition.programs) else remade(params, composition, programs)
    try:
        replaced: dict[str, Any] = _in_rule(params, frozen)
        return replaced
    except UncacheableError:  # nothing will be taken for its equal
        return {}


def _no_rule(*args: Any) -> Any:
    raise AssertionError("a program that is run forward only")


def left_out() -> Setting:
    """A block in which keys and snapshots are of programs that are run and never differentiated: without their rules."""
    return asking.setting(without_rules=True)


def _replaced(params: Params) -> tuple[str, ...]:
    return ("jvp_jaxpr_fun",) if "jvp_jaxpr_fun" in params else ("fwd_jaxpr_thunk", "bwd", "out_trees")


def _in_rule(params: Params, look: Callable[[_Rule, dict[str, Any]], Any]) -> Any:
    """``look(rule, stand-in)`` of the rule of a call; of a rule inside itself, what stands for it there."""
    if asking.without_rules:
        return None
    if params["symbolic_zeros"] or len(asking.rules) >= RULES_IN_RULES:
        raise UncacheableError("a rule that may be another one each time")
    thunk = params["jvp_jaxpr_fun" if "jvp_jaxpr_fun" in params else "fwd_jaxpr_thunk"]
    function = function_in(params.get("bwd", thunk))
    try:
        origin = _origin((thunk, function))  # static arguments come to both
        rule = _traced_jvp(params) if "jvp_jaxpr_fun" in params else _traced_vjp(params)
    except Exception as error:  # the user's rule fails, or is not for tracing
        raise UncacheableError("a rule that cannot be traced") from error
    with left_out():
        key = origin, rule.properties, *map(canonical.structure, (params["call_jaxpr"], *rule.programs))
    for depth, (earlier, stand_in, _) in enumerate(reversed(asking.rules)):
        if earlier == key:
            return stand_in or ("itself", depth)
    if function in [around for *_, around in asking.rules]:
        raise UncacheableError("a rule that calls itself on what is larger, and so on without end")
    stand_in = {}
    with asking.setting(rules=(*asking.rules, (key, stand_in, function))):
        return look(rule, stand_in)


def _origin(x: Any) -> Any:
    """The user's functions and static arguments in a thunk of JAX's, each by its key, with what JAX wraps them in.

    Programs without their rules do not tell a rule from another one that it calls. Thunks are new at each call, and so are the
    stores in them; they are left out, so that a rule that is met again inside itself has the same origin.
    """
    if isinstance(x, fence.Stored):
        return None
    if isinstance(x, fence.WrappedFun):
        return (_origin(x.f), *map(_origin, x.transforms)) if x.transforms else _origin(x.f)
    if isinstance(x, fence.Unhashable):
        return _origin(x.val)
    if isinstance(x, (tuple, list)):
        return type(x), *map(_origin, x)
    if isinstance(x, types.FunctionType) and x.__globals__.get("__name__", "").startswith("jax."):
        held = [cell.cell_contents for cell in x.__closure__ or ()]
        if x.__code__ is fence.MEMOISED:
            return _origin(held[x.__code__.co_freevars.index("fn")])
        wrapped = [y for y in held if isinstance(y, fence.WrappedFun)]
        # A thunk: what else it holds is in the program. It is around another thunk where a program was traced again.
        return _origin(*wrapped) if len(wrapped) == 1 else (x.__code__, *map(_origin, held))
    return Identity(x) if isinstance(x, JAXPR_TYPES) else canonical.key(x)


def traced_rule_of(thunk: Subfun, *which: bool) -> Any:
    """What `thunk` traces a rule to. Where that fails, the thunk is as it was.

    It keeps what it has given, but begins by emptying the stores that belong to it, which JAX reads in the backward pass.
    """
    before = [(store, store.val) for store in stores_in(thunk) if is_filled(store)]
    try:
        return thunk.call_wrapped(*which)
    except BaseException:
        for store, value in before:
            store.reset()
            store.store(value)
        raise


def _traced_jvp(params: Params) -> _Rule:
    thunk, avals = params["jvp_jaxpr_fun"], params["call_jaxpr"].in_avals[params["num_consts"] :]
    jaxpr, consts, zeros = traced_rule_of(thunk, *[False] * len(avals))

    def parameters(programs: Sequence[Any]) -> dict[str, Any]:
        @functools.cache
        def rule(*in_zeros: bool) -> Any:
            """The program for nonzero tangents of some inputs only: zeros in the place of the others."""

            def on_nonzero(primals: Values, nonzero: Sequence[Any]) -> Sequence[Any]:
                left = iter(nonzero)
                tangents = [
                    zeros_of(aval.to_tangent_aval()) if zero else next(left)
                    for zero, aval in zip(in_zeros, avals, strict=True)
                ]
                return eval_jaxpr(open_jaxpr(programs[0]), consts_of(programs[0]), *primals, *tangents)

            some = [aval.to_tangent_aval() for zero, aval in zip(in_zeros, avals, strict=True) if not zero]
            closed = jax.make_jaxpr(on_nonzero)(list(avals), some)
            return closed.jaxpr, consts_of(closed), zeros

        return {"jvp_jaxpr_fun": wrap_init(rule, debug_info=thunk.debug_info)}

    return _Rule((ClosedJaxpr(jaxpr, consts),), tuple(zeros), parameters)


# ---- rules that ask which inputs are perturbed ----------------------------------------------------------------------


def call_that_is_told(program: JaxProgram) -> Equation | None:
    """The one equation of a `program` that only calls a ``custom_jvp`` function whose rule asks for symbolic zeros."""
    eqn = only_call(program)
    if eqn is None or consts_of(program) or eqn.primitive.name != "custom_jvp_call":
        return None
    return eqn if eqn.params["symbolic_zeros"] else None


def rule_for(params: Params, in_zeros: tuple[bool, ...]) -> tuple[JaxProgram, tuple[bool, ...]]:
    """What the rule of such a call traces to where the tangents `in_zeros` are zeros; and which of those that it gives are."""
    jaxpr, consts, zeros = traced_rule_of(params["jvp_jaxpr_fun"], *in_zeros)
    return ClosedJaxpr(jaxpr, consts), tuple(zeros)


def with_rule(params: Params, rule: JaxProgram, in_zeros: tuple[bool, ...], zeros: tuple[bool, ...]) -> dict[str, Any]:
    """The parameters by which such a call has what `rule_for` gives as its rule, for these `in_zeros` alone."""

    def traced(*asked: bool) -> Any:
        assert asked == in_zeros, "a rule that was traced for other perturbed inputs"
        return open_jaxpr(rule), consts_of(rule), list(zeros)

    return {"jvp_jaxpr_fun": wrap_init(traced, debug_info=params["jvp_jaxpr_fun"].debug_info)}


def _traced_vjp(params: Params) -> _Rule:
    thunk, bwd = params["fwd_jaxpr_thunk"], params["bwd"]
    in_avals = params["call_jaxpr"].in_avals
    jaxpr, consts = traced_rule_of(thunk, *[True] * (len(in_avals) - params["num_consts"]))
    trees = params["out_trees"]()
    residual_avals = iter([v.aval for v in jaxpr.outvars])  # a residual that is an input is not given out again
    residuals = [next(residual_avals) if i is None else in_avals[i] for i in trees[2]]
    assert len(residuals) == trees[1].num_leaves
    cotangents = [aval.to_ct_aval() for aval in params["call_jaxpr"].out_avals]
    template: Any = None  # the containers, and what is no number in them

    def backward(*args: Any) -> list[Any]:
        nonlocal template
        result = bwd.call_wrapped(*args)
        template = _filled(result, itertools.repeat(_HOLE))
        return [x for x in _flat(result) if _is_number(x)]

    closed = jax.make_jaxpr(backward)(*residuals, *cotangents)

    def parameters(programs: Sequence[Any]) -> dict[str, Any]:
        def forward(*_: Any) -> Any:
            return open_jaxpr(programs[0]), consts_of(programs[0])

        def backward(*args: Any) -> Any:
            cotangents = eval_jaxpr(open_jaxpr(programs[1]), consts_of(programs[1]), *args)
            return _filled(template, iter(cotangents))

        return {
            "fwd_jaxpr_thunk": wrap_init(forward, debug_info=thunk.debug_info),
            "bwd": wrap_init(backward, debug_info=bwd.debug_info),
            "out_trees": lambda: trees,
        }

    static = *trees[:2], *trees[2], *map(type, _flat(template))
    return _Rule((ClosedJaxpr(jaxpr, consts), closed), static, parameters)


_HOLE = object()


def _is_number(x: Value) -> bool:
    return isinstance(x, (jax.Array, np.ndarray, np.generic, int, float, complex))


def _flat(result: Any) -> list[Any]:
    return jax.tree.leaves(result, is_leaf=lambda x: x is None)  # a rule gives None for a zero, and logs in containers


def _filled(result: Any, numbers: Iterator[Any]) -> Any:
    """`result` with the next of `numbers` in the place of each number."""
    return jax.tree.map(
        lambda x: next(numbers) if x is _HOLE or _is_number(x) else x, result, is_leaf=lambda x: x is None
    )


for _name in ("custom_jvp_call", "custom_vjp_call"):
    canonical.parameter_rules[_name] = _rule_key
    canonical.parameter_snapshots[_name] = _rule_snapshot
