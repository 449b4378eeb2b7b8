"""Operations for JAX's primitives, and for calls that were traced into a jaxpr."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ..jaxprs import contents, lifting, prints
from ..jaxprs.canonical import snapshot
from ..jaxprs.fence import eval_jaxpr, jaxpr_as_fun
from ..jaxprs.interning import intern
from ..jaxprs.types import Function, JaxProgram, Params, Primitive, Value, Values
from . import runner
from .operation import ConnectedOp, JittedOp, Op, PerturbationOp, is_ref
from .pullback import PullbackOp, call_without, differentiated_as_it_runs, refuse_ref

if TYPE_CHECKING:
    from .recording import Recording, Residuals


class Recognition:
    """Which Op stands for a primitive or a traced call: the interface, and a default by which each gets a new one."""

    def operation(self, primitive: Primitive, params: Params, args: Values) -> tuple[Op, Sequence[Any]]:
        """The Op of a primitive with its parameters; and its inputs: the arrays that its jaxprs close over, then `args`."""
        return new_op(primitive, params, args)

    def staged(self, call: TracedCall) -> Op:
        """The Op of a traced call."""
        return call.new_op()

    def run_program(
        self, op: Op, inputs: Values, recordings: Sequence[Recording], program: JaxProgram, noted: Op
    ) -> tuple[Any, Residuals | None]:
        """Runs `op`, which calls a jitted function's `program`: its results, and the residuals of the call, if some are kept.

        It is noted as `noted`, with the first of these results or all: a `function` has variables that it assigned as further
        results. `recordings` will have the entry.
        """
        return runner.current.run(op, inputs), None


recognition = Recognition()


def use(other: Recognition) -> None:
    """Makes `other` the current `Recognition`, for what is recorded from here on."""
    global recognition
    recognition = other


def new_op(primitive: Primitive, params: Params, args: Values) -> tuple[Op, Sequence[Any]]:
    """What `Recognition.operation` returns, with a new Op: none that is known is looked for."""
    arrays = contents.constants_of(params)
    op = traced_or_refused(primitive, params, args, arrays)
    if op is None:
        # what its first equal was: a NumPy scalar that a program closes over may change before a derivative is taken
        bound = lifting.with_inputs(params, arrays) if arrays else {name: intern(x) for name, x in params.items()}
        closed = arrays and not any(map(is_ref, arrays.values()))  # to JAX a Ref is an input, never a constant
        op = unrecognised(primitive, bound, as_it_came(primitive, params, len(arrays)) if closed else None)
    return op, (*arrays.values(), *args)


def traced_or_refused(primitive: Primitive, params: Params, args: Values, arrays: dict[int, Value]) -> Op | None:
    """The Op of a primitive that is not simply bound: one that refuses a gradient, or a traced call. None for any other.

    It refuses where one of its programs changes a value in place, or asks Python for an answer. It is traced where it closes over
    `arrays`, which become inputs, and is no jitted program.
    """
    programs = list(contents.jaxprs_in(params))
    if any(map(contents.touches_refs, programs)):
        call = functools.partial(primitive.bind, **params)
        return PullbackOp(params.get("name") or primitive.name, refuse_ref, refuse_ref, call)
    if any(map(contents.asks_host, programs)):
        op = unrecognised(primitive, params)
        fn = (
            jaxpr_as_fun(lifting.lift(primitive, params, args, arrays))
            if arrays
            else functools.partial(primitive.bind, **params)
        )
        return differentiated_as_it_runs(op, fn, len(arrays))
    if not arrays or primitive.name in contents.JIT:
        return None
    return TracedCall(lifting.lift(primitive, params, args, arrays), params.get("name", primitive.name)).op()


def unrecognised(primitive: Primitive, params: Params, call: Function | None = None) -> PerturbationOp:
    """A new Op that runs a primitive by binding it. JAX keeps what it compiles of a program with the program's object."""
    name, fn = params.get("name") or primitive.name, silent(primitive, params)
    call = call or functools.partial(primitive.bind, **params)
    plain = primitive.name in contents.JIT and contents.is_plain_jit(params) and not params["jaxpr"].effects
    return JittedOp(name, fn, call, {}, {}) if plain else PerturbationOp(name, fn, call, {})


def as_it_came(primitive: Primitive, params: Params, constants: int) -> Function:
    """The `call` of an Op whose first inputs are the `constants` of its program: it runs the program with them inside.

    JAX moves a constant to the device of the program, but not an input.
    """
    return functools.partial(call_without, constants, functools.partial(primitive.bind, **params))


def silent(primitive: Primitive, params: Params) -> Function:
    """A function that runs a primitive, and does not print."""
    return functools.partial(primitive.bind, **{name: prints.without_prints(value) for name, value in params.items()})


class TracedCall(NamedTuple):
    """A call as the jaxpr that it was traced into: what an Op is made of.

    Its first `constants` inputs are the arrays that it closes over. With respect to the inputs at the positions `closed_over`
    custom rules have no derivative. `rerun`: makes the call once more in Python, of its arguments alone. `reads`: whether its
    rules may read variables, since they are traced for this call only.
    """

    jaxpr: JaxProgram
    name: str
    closed_over: tuple[int, ...] = ()
    constants: int = 0
    rerun: Function | None = None
    reads: bool = False

    def op(self) -> Op:
        """Its Op: a known one, or a new one."""
        return recognition.staged(self)

    def new_op(self) -> Op:
        """A new Op, which equals only itself."""
        closed = snapshot(self.jaxpr)
        call = functools.partial(eval_jaxpr, closed.jaxpr, contents.consts_of(closed))
        fn: Function
        if self.rerun is not None:  # a rule that cannot be traced runs on values
            fn = functools.partial(call_without, self.constants, self.rerun)
        else:  # a rule expects a ``jax.Array`` also for a constant
            fn = functools.partial(_call_on_arrays, jaxpr_as_fun(prints.without_prints(closed)))
        fn = lifting.without_closure(fn, self.name, self.closed_over)
        equations = contents.open_jaxpr(closed).eqns
        if any(e.primitive.name == "custom_vjp_call" for e in equations):
            return ConnectedOp(self.name, fn, call, {}, self.reads)
        return PerturbationOp(self.name, fn, call, {}, self.reads)


def _call_on_arrays(fn: Function, *inputs: Any) -> Any:
    return fn(*[jnp.asarray(x) if isinstance(x, np.ndarray) else x for x in inputs])


def as_called(program: JaxProgram, name: str) -> Function:
    """A call that was traced, as a function of that name. Its equations are of the line that calls it: JAX cut off who called
    what it traced."""
    jaxpr, consts = contents.open_jaxpr(program), contents.consts_of(program)

    def call(*inputs: Value) -> list[Value]:
        return eval_jaxpr(jaxpr, consts, *inputs, propagate_source_info=False)

    call.__name__ = name
    return call


class TracedOp(Op):
    """A call that was just traced. It has no key: for one its custom rules are traced, which JAX allows after the call only."""

    __slots__ = ("staged",)

    def __init__(self, staged: TracedCall, call: Function | None):
        super().__init__(staged.name, as_called(staged.jaxpr, staged.name), call)
        self.staged = staged

    def canonicalised(self) -> Op:
        return self.staged.op()
