"""Programs without what calls Python and takes no answer: ``jax.debug.print``, ``tf.print``, summaries.

What is computed anew for a derivative must not print again.
"""

from __future__ import annotations

from typing import Any

from ._jax import PRINTING_EFFECTS, wrap_init
from .canonical import JAXPR_TYPES, open_jaxpr
from .custom_rules import composition_of, remade, traced_rule_of
from .jaxprs import among, mapped, prints
from .types import Equation, Value


def without_prints(value: Value) -> Any:
    """A jaxpr, or those in a tuple, without the equations that print, at any depth: for what is computed anew."""
    if not isinstance(value, JAXPR_TYPES):
        return mapped(without_prints, value)
    inner = open_jaxpr(value)
    if not prints(inner.effects):
        return value
    equations = [_without_prints(eqn) for eqn in inner.eqns if not prints(eqn.effects) or among(eqn.params)]
    inner = inner.replace(eqns=equations, effects=_others(inner.effects))
    return value.replace(jaxpr=inner) if hasattr(value, "jaxpr") else inner


def _without_prints(eqn: Equation) -> Equation:
    if not prints(eqn.effects):
        return eqn
    params = {name: without_prints(value) for name, value in eqn.params.items()}
    if (known := composition_of(params)) is not None:
        params |= remade(params, known, map(without_prints, known.programs))
    elif (thunk := params.get("fwd_jaxpr_thunk")) is not None:

        def forward(*which: bool) -> Any:  # when it is asked for: the rule may call its function again, without end
            jaxpr, consts = traced_rule_of(thunk, *which)
            return without_prints(jaxpr), consts

        params["fwd_jaxpr_thunk"] = wrap_init(forward, debug_info=thunk.debug_info)
    return eqn.replace(params=params, effects=_others(eqn.effects))


def _others(effects: Any) -> Any:
    return type(effects)(effect for effect in effects if not isinstance(effect, PRINTING_EFFECTS))
