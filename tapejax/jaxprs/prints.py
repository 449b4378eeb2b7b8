"""Programs without what calls Python and takes no answer: ``jax.debug.print``, ``tf.print``, summaries.

What is computed anew for a derivative must not print again.
"""

from __future__ import annotations

from typing import Any

from .canonical import JAXPR_TYPES, open_jaxpr
from .contents import among, asks_host, mapped, prints
from .custom_rules import composition_of, remade, traced_rule_of
from .fence import HOST_EFFECTS, PRINTING_EFFECTS, wrap_init
from .types import Equation, JaxProgram, Value


def without_prints(value: Value) -> Any:
    """A jaxpr, or those in a tuple, without the equations that print, at any depth: for what is computed anew."""
    if not isinstance(value, JAXPR_TYPES):
        return mapped(without_prints, value)
    inner = open_jaxpr(value)
    if not prints(inner):
        return value
    equations = [_without_prints(eqn) for eqn in inner.eqns if not prints(eqn) or among(eqn.params)]
    inner = inner.replace(eqns=equations, effects=_others(inner))
    return value.replace(jaxpr=inner) if hasattr(value, "jaxpr") else inner


def _without_prints(eqn: Equation) -> Equation:
    if not prints(eqn):
        return eqn
    params = {name: without_prints(value) for name, value in eqn.params.items()}
    if (composition := composition_of(params)) is not None:
        params |= remade(params, composition, map(without_prints, composition.programs))
    elif (thunk := params.get("fwd_jaxpr_thunk")) is not None:

        def forward(*which: bool) -> Any:  # when it is asked for: the rule may call its function again, without end
            jaxpr, consts = traced_rule_of(thunk, *which)
            return without_prints(jaxpr), consts

        params["fwd_jaxpr_thunk"] = wrap_init(forward, debug_info=thunk.debug_info)
    elif (rule := params.get("jvp_jaxpr_fun")) is not None:

        def push(*zeros: bool) -> Any:
            jaxpr, *others = traced_rule_of(rule, *zeros)
            return without_prints(jaxpr), *others

        params["jvp_jaxpr_fun"] = wrap_init(push, debug_info=rule.debug_info)
    return eqn.replace(params=params, effects=_others(eqn))


def _others(program: JaxProgram | Equation) -> Any:
    kinds = PRINTING_EFFECTS if asks_host(program) else (*PRINTING_EFFECTS, *HOST_EFFECTS)
    return type(program.effects)(effect for effect in program.effects if not isinstance(effect, kinds))
