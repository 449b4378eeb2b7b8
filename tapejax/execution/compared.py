"""Values that are compared are computed once, also by XLA's cheap passes.

XLA fuses a product and a sum into several kernels. At its optimisation level 0 one of these may round ``x * g + b`` once, with a
fused multiply-add, where another rounds it twice. If a program compares the two, as JAX's rule for a maximum does
(``x == max(x)``), nothing is equal, and the gradient is nan or wrong. Behind a barrier all that reads such a value reads the same
bits. (XLA 0.10 without fusion is no way out: it then multiplies batches of one matrix wrongly.)
"""

from __future__ import annotations

from typing import Any

import jax

from ..jaxprs import contents
from ..jaxprs.dependence import type_has_tangent
from ..jaxprs.evaluate import evaluate
from ..jaxprs.fence import Literal, at_source
from ..jaxprs.lifting import run_equation
from ..jaxprs.types import Atom, Equation, Function, JaxProgram, Values

# The pass that removes barriers.
PASS = "cse_barrier_expander"
APART = {"xla_disable_hlo_passes": PASS}  # the options of a program in which it is to stay out
# Smooth functions: other digits of an operand change digits of the result, and no more.
_SMOOTH = frozenset(
    "acos acosh add add_any asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt complex conv_general_dilated cos cosh "
    "cumlogsumexp cumprod cumsum digamma div dot_general erf erf_inv erfc exp exp2 expm1 igamma igammac integer_pow lgamma log "
    "log1p logistic mul polygamma pow reduce_prod reduce_sum reduce_window_sum rsqrt scatter-add sin sinh sqrt square sub tan "
    "tanh zeta".split()
)
# What moves numbers, converts them or changes signs: twice of the same bits it gives the same bits.
_MOVES = frozenset(
    "broadcast_in_dim concatenate conj convert_element_type copy copy_p dynamic_slice dynamic_update_slice expand_dims gather "
    "imag neg optimization_barrier pad real reshape rev select_n slice split squeeze stop_gradient transpose".split()
)
# What compares its operands, or jumps, and gives the same bits, too.
_COMPARES = frozenset(
    "argmax argmin ceil clamp cummax cummin eq eq_to floor ge gt is_finite le le_to lt lt_to max min ne nextafter reduce_max "
    "reduce_min round sign".split()
)
_barrier: Function = jax.lax.optimization_barrier


def apart(inputs: Values) -> Values:
    """`inputs`, of which XLA learns nothing from the program around, if that is compiled with the options `APART`."""
    return _barrier(inputs) if inputs else inputs


def once(program: JaxProgram) -> Function:
    """What `program` computes, for `jax.jit`: a function of its inputs that gives a list."""

    def run(*args: Any) -> list[Any]:
        flat = jax.make_jaxpr(lambda *xs: evaluate(program, xs, _inlined))(*map(jax.typeof, args))
        rounded = _compared(flat)

        def step(eqn: Equation, inputs: Values) -> list[Any]:
            outs = zip(eqn.outvars, run_equation({}, eqn, inputs), strict=True)
            return [_barrier(y) if v in rounded else y for v, y in outs]

        return evaluate(flat, args, step)

    return run


def _inlined(eqn: Equation, inputs: Values) -> Any:
    """The results of an equation, where XLA will see the equations of a call among those around it."""
    name, params = eqn.primitive.name, eqn.params
    if name in contents.CALLS and (name not in contents.JIT or contents.is_plain_jit(params)):
        with at_source(eqn):
            return evaluate(params[contents.CALLS[name]], inputs, _inlined)
    if name == "cond":
        branches = [jax.make_jaxpr(once(branch))(*branch.in_avals) for branch in params["branches"]]
        eqn = eqn.replace(params=params | {"branches": tuple(branches)})
    return run_equation({}, eqn, inputs)


def _compared(flat: JaxProgram) -> set[Atom]:
    """What is rounded when it is computed, and compared: itself, or what was moved from it."""
    compared: set[Atom] = set()
    for eqn in reversed(flat.eqns):
        name = eqn.primitive.name
        moved = name in _MOVES and all([type_has_tangent(v.aval) and v not in compared for v in eqn.outvars])
        if not moved and name not in _SMOOTH:
            compared.update([v for v in eqn.invars if not isinstance(v, Literal) and type_has_tangent(v.aval)])
    computed = [v for eqn in flat.eqns if eqn.primitive.name not in _MOVES | _COMPARES for v in eqn.outvars]
    return {v for v in computed if v in compared and hasattr(v.aval, "dtype")}  # a barrier takes no type of the user's
