"""The operation that runs one of JAX's primitives, or a call that was traced into a jaxpr."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ..jaxprs import contents, lifting, prints
from ..jaxprs.canonical import snapshot
from ..jaxprs.fence import eval_jaxpr, jaxpr_as_fun
from ..jaxprs.interning import intern
from ..jaxprs.types import Function, JaxProgram, Params, Primitive, Values
from . import runner
from .operation import JittedOp, Op, PythonOp, ToldOp
from .pullback import PullbackOp, call_without, refuse_ref, without_derivative


def primitive_op(primitive: Primitive, params: Params, args: Values) -> tuple[Op, Sequence[Any]]:
    """The Op for a primitive with its parameters, and its inputs: what its jaxprs close over, then `args`."""
    return runner.current.operation(plain_op, primitive, params, args)


def plain_op(primitive: Primitive, params: Params, args: Values) -> tuple[Op, Sequence[Any]]:
    """`primitive_op`, where no operation that was run before is recognised in it."""
    arrays = contents.constants_of(params)
    op: Op | None = undifferentiable(primitive, params, len(arrays))
    if op is None and arrays and primitive.name not in contents.JIT:
        op = TracedCall(lifting.lift(primitive, params, args, arrays), params.get("name", primitive.name)).op()
    if op is None:
        # what its first equal was: a NumPy scalar that a program closes over may change before a derivative is taken
        given = lifting.with_inputs(params, arrays) if arrays else {name: intern(x) for name, x in params.items()}
        op = unrecognised(primitive, given)
        if arrays:
            op.call = as_it_came(primitive, params, len(arrays))
    return op, (*arrays.values(), *args)


def undifferentiable(primitive: Primitive, params: Params, constants: int) -> Op | None:
    """The Op of a primitive whose programs change what is outside of them, or ask the host; None for any other."""
    programs = list(contents.jaxprs_in(params))
    if any(map(contents.touches_refs, programs)):
        call = functools.partial(primitive.bind, **params)
        return PullbackOp(params.get("name") or primitive.name, call, refuse_ref)
    if any(map(contents.asks_host, programs)):
        return without_derivative(unrecognised(primitive, params), constants)
    return None


def unrecognised(primitive: Primitive, params: Params) -> PythonOp:
    """The Op of a primitive for which nothing is compiled here. JAX keeps what it makes of a program with that object."""
    name, fn = params.get("name") or primitive.name, silent(primitive, params)
    call = functools.partial(primitive.bind, **params)
    plain = primitive.name in contents.JIT and contents.is_plain_jit(params) and not params["jaxpr"].effects
    return (JittedOp if plain else ToldOp)(name, fn, call, {})


def as_it_came(primitive: Primitive, params: Params, constants: int) -> Function:
    """Runs a call whose `constants` are inputs in front: JAX moves a constant to where the program runs, but not an input."""
    return functools.partial(call_without, constants, functools.partial(primitive.bind, **params))


def silent(primitive: Primitive, params: Params) -> Function:
    """What runs a primitive without printing."""
    return functools.partial(primitive.bind, **{name: prints.without_prints(value) for name, value in params.items()})


class TracedCall(NamedTuple):
    """A call that was traced into a jaxpr.

    The first `constants` of its inputs are arrays that it closes over; a custom rule has no derivative with respect to
    those at the positions `closed_over`. `again` is the call on its arguments alone, made by Python. Its rules may read variables
    (`reads`) where they are traced for it alone.
    """

    jaxpr: JaxProgram
    name: str
    closed_over: tuple[int, ...] = ()
    constants: int = 0
    again: Function | None = None
    reads: bool = False

    def op(self) -> Op:
        """The Op under which it is recognised."""
        return runner.current.staged(self)

    def plain(self) -> Op:
        """One that nothing but itself equals."""
        closed = snapshot(self.jaxpr)
        call = functools.partial(eval_jaxpr, closed.jaxpr, contents.consts_of(closed))
        fn: Function
        if self.again is not None:  # a rule that cannot be traced runs on values
            fn = functools.partial(call_without, self.constants, self.again)
        else:  # a rule may get a constant of its function, and expects an array of JAX's
            fn = functools.partial(_call_on_arrays, jaxpr_as_fun(prints.without_prints(closed)))
        fn = lifting.without_closure(fn, self.name, self.closed_over)
        equations = contents.open_jaxpr(closed).eqns
        if any(e.primitive.name == "custom_vjp_call" for e in equations):  # it connects everything
            return PythonOp(self.name, fn, call, reads_variables=self.reads)
        return ToldOp(self.name, fn, call, {}, self.reads)


def _call_on_arrays(fn: Function, *inputs: Any) -> Any:
    return fn(*[jnp.asarray(x) if isinstance(x, np.ndarray) else x for x in inputs])


class TracedOp(Op):
    """A call that was just traced.

    Telling custom rules apart traces them, which JAX allows only once the call that was recorded has returned: until then
    nothing but itself is its equal.
    """

    __slots__ = ("staged",)

    def __init__(self, staged: TracedCall, call: Function | None):
        super().__init__(staged.name, jaxpr_as_fun(staged.jaxpr), call)
        self.staged = staged

    def canonicalised(self) -> Op:
        return self.staged.op()
