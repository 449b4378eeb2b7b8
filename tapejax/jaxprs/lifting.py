"""Arrays that a jaxpr closes over, as further inputs of it.

A function under ``jit`` keeps the arrays that it closes over inside its jaxpr, where no gradient could reach them; as inputs
they are values like any other.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax

from . import cache
from .canonical import open_jaxpr
from .contents import CHECKPOINT, JIT, RULES, constants_of, facts, is_plain_jit, scan_counts
from .evaluate import evaluate
from .fence import UNSPECIFIED, at_source
from .interning import intern
from .types import Equation, Function, JaxProgram, Params, Primitive, Value, Values


def lift(primitive: Primitive, params: Params, args: Values, arrays: dict[int, Value]) -> Any:
    """``primitive.bind(*args)`` as a closed jaxpr whose first inputs stand for `arrays`, see `constants`."""

    def bind(new: Sequence[Any], args: Values) -> Any:
        return _bind_lifted(primitive, params, args, dict(zip(arrays, new, strict=True)))

    return jax.make_jaxpr(bind)(list(arrays.values()), list(args))


def lift_jaxpr(jaxpr: JaxProgram, arrays: dict[int, Value]) -> Any:
    """`jaxpr` as a closed jaxpr whose first inputs stand for `arrays`, which are its `constants`."""
    known = facts(jaxpr)
    if known.lifted is None or cache.shadow is not None:

        def evaluate(new: Sequence[Any], args: Values) -> list[Any]:
            return _evaluate(jaxpr, args, dict(zip(arrays, new, strict=True)))

        # By JAX's types themselves: they say, too, over which axes of a mesh a value varies, and how it is sharded.
        inputs = [v.aval for v in open_jaxpr(jaxpr).invars]
        lifted: Any = jax.make_jaxpr(evaluate)([jax.typeof(c) for c in arrays.values()], inputs)
        # It says of which function it is, with which arguments.
        info = open_jaxpr(jaxpr).debug_info
        names = ("",) * len(arrays) + tuple(info.safe_arg_names(len(inputs)))
        known.lifted = lifted.replace(jaxpr=lifted.jaxpr.replace(debug_info=info._replace(arg_names=names)))
    return known.lifted


def with_inputs(params: Params, arrays: dict[int, Value]) -> dict[str, Any]:
    """The parameters of a ``jit`` with `arrays`, that it closes over, as further inputs in front: placed wherever they are."""
    each = {"in_shardings": UNSPECIFIED, "in_layouts": None, "donated_invars": False}
    more = {name: (value,) * len(arrays) + tuple(params[name]) for name, value in each.items()}
    return params | more | {"jaxpr": intern(lift_jaxpr(params["jaxpr"], arrays))}


def _checkpointed(params: Params, arrays: dict[int, Value]) -> dict[str, Any]:
    """The parameters of a ``checkpoint`` with `arrays`, that it closes over, as further inputs in front."""
    cse = params["prevent_cse"]
    cse = (False,) * len(arrays) + cse if isinstance(cse, tuple) else cse
    return params | {"jaxpr": open_jaxpr(lift_jaxpr(params["jaxpr"], arrays)), "prevent_cse": cse}


# ---- evaluation -----------------------------------------------------------------------------------------------------


def _evaluate(jaxpr: JaxProgram, args: Values, lifted: dict[int, Value]) -> list[Any]:
    """Evaluates `jaxpr`, reading each constant found in `lifted` (by identity) from there, at any depth."""
    return evaluate(jaxpr, args, partial(run_equation, lifted), lifted=lifted)


def run_equation(lifted: dict[int, Value], eqn: Equation, args: Values) -> Sequence[Any]:
    """The results of one equation of a jaxpr, in the context in which it was traced, and as of the line that became it."""
    with at_source(eqn), eqn.ctx.manager:
        out = _bind_lifted(eqn.primitive, eqn.params, args, lifted)
    return out if eqn.primitive.multiple_results else [out]


def _bind_lifted(primitive: Primitive, params: Params, args: Values, lifted: dict[int, Value]) -> Any:
    arrays = constants_of(params)
    constants = list(map(lifted.get, arrays, arrays.values()))
    if arrays:
        if primitive.name in JIT and not is_plain_jit(params):
            return primitive.bind(*constants, *args, **with_inputs(params, arrays))
        if primitive.name in CHECKPOINT:
            return primitive.bind(*constants, *args, **_checkpointed(params, arrays))
        if primitive.name in _REBUILD:
            return _REBUILD[primitive.name](params, args, lambda body, *xs: _evaluate(body, xs, lifted))
    closed_over = refusing_derivatives(params.get("name", primitive.name))
    list(map(closed_over, constants))
    if primitive.name in RULES:
        count = params["num_consts"]
        args = [*map(closed_over, args[:count]), *args[count:]]
    return primitive.bind(*args, **primitive.get_bind_params(params))


def without_closure(fn: Function, name: str, positions: tuple[int, ...]) -> Function:
    """`fn` without a derivative with respect to the inputs at `positions`, which it closes over: custom rules give none."""
    if not positions:
        return fn
    closed_over = refusing_derivatives(name)
    return lambda *inputs: fn(*[closed_over(x) if i in positions else x for i, x in enumerate(inputs)])


def refusing_derivatives(name: str) -> Callable[[Any], Any]:
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


# ---- control flow ---------------------------------------------------------------------------------------------------


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


def _shard_map(p: Params, args: Values, body: Evaluate) -> list[Value]:
    return jax.shard_map(
        partial(body, p["jaxpr"]),
        mesh=p["mesh"],
        in_specs=p["in_specs"],
        out_specs=list(p["out_specs"]),
        check_vma=p["check_vma"],
        axis_names=p["newly_manual_axes" if "newly_manual_axes" in p else "manual_axes"],  # by JAX's version
    )(*args)


def _linear_solve(p: Params, args: Values, body: Evaluate) -> list[Value]:
    ends = [*itertools.accumulate(p["const_lengths"])]
    *consts, b = [list(args[i:j]) for i, j in itertools.pairwise((0, *ends, len(args)))]
    has_aux = len(p["jaxprs"].solve.out_avals) > len(b)

    def function(jaxpr: JaxProgram, constants: list[Value], with_aux: bool = has_aux) -> Any:
        def of_the_last(*xs: Any) -> Any:
            out = body(jaxpr, *constants, *xs[-1])
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
    "custom_linear_solve": _linear_solve,
    "shard_map": _shard_map,
}
