"""Reverse and forward mode: each step of a program through `jax.vjp` or `jax.jvp` at its recorded inputs."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from . import jaxprs, recorder
from ._jax import add_tangents, zeros_of
from .cache import Cache
from .op import Op, PythonOp
from .program import Program, Step
from .query import Query
from .recording import Recording
from .residuals import KeepingOp, LinearizedOp
from .rules import depends_on_rules, differentiable, runs_python
from .types import Positions, Slot, Value, Values

CACHED_PULLBACKS = 4096


# ---- the reverse sweep ----------------------------------------------------------------------------------------------


def sweep(program: Program, values: Values, cotangents: Values) -> list[Any]:
    """Pulls the targets' cotangents back to the sources: the steps in reverse, each by `jax.vjp` at its recorded inputs.

    One code, two ways to run: on arrays each pullback is a compiled operation of its own; traced by `jax.jit` they make
    one program, from which XLA drops what was computed forward already.
    """
    ct: dict[int, Value] = {}
    for _ in sweep_steps(program, values, cotangents, ct):
        pass
    return [None if slot is None else ct.get(slot) for slot in program.sources]


def sweep_steps(
    program: Program, values: Values, cotangents: Values, ct: dict[int, Value]
) -> Iterator[tuple[int, Sequence[Any]]]:
    """The reverse sweep, a step at a time: yields the step's position and what it sends back to its active inputs.

    `ct` is filled with the cotangent of each slot: complete for the step's outputs, still growing for its inputs.
    """

    def add(slot: Slot, x: Value) -> None:
        ct[slot] = recorder.apply(add_cotangents, ct[slot], x) if slot in ct else x

    for slot, x in zip(program.targets, cotangents, strict=True):
        if slot is not None:
            add(slot, x)
    for position in reversed(range(len(program.steps))):
        step = program.steps[position]
        active_outs = tuple([j for j in step.active_outs if step.outs[j] in ct])  # to the others nothing came back
        if not active_outs:
            continue
        if step.op.pull is not None:
            back = _pull_own(step, values, ct)
        else:
            inputs = [values[slot] for slot in step.ins]
            if isinstance(step.op, KeepingOp) and step.op.serves(step.active_ins, active_outs):
                inputs += [values[slot] for slot in step.residuals]
                pull = pullback_of_kept(step.op, step.active_ins, active_outs)
            else:
                pull = pullback(step.op, step.active_ins, active_outs, step.perturbed)
                if isinstance(step.op, LinearizedOp) and step.op.serves(step.perturbed):
                    pull = step.op.pullback(step.active_ins, active_outs, pull)
            back = recorder.run_derivative(step.op, pull, (*inputs, *[ct[step.outs[j]] for j in active_outs]))
        for i, x in zip(step.active_ins, back, strict=True):
            if x is not None:
                add(step.ins[i], x)
        yield position, back


def _pull_own(step: Step, values: Values, ct: dict[int, Value]) -> list[Any]:
    # The user's Python runs under the current trace: what it computes is recorded by outer tapes like anything else.
    assert step.op.pull is not None
    cotangents = [ct.get(slot) for slot in step.outs]
    for j in range(step.op.results):
        if cotangents[j] is None:
            cotangents[j] = recorder.apply(jnp.zeros_like, values[step.ins[j]])
    back = step.op.pull(cotangents)
    return [back[i] for i in step.active_ins]


def add_cotangents(x: Value, y: Value) -> Any:
    own = hasattr(x, "dtype") and jax.dtypes.issubdtype(x.dtype, jax.dtypes.extended)
    return add_tangents(x, y) if own else x + y


def _cached_by_op(make: Any) -> Any:
    """Keeps what `make(op, ...)` gives, but for an op that runs Python: that is one call's own, with what it closes over."""
    kept: Cache[Op] = Cache(CACHED_PULLBACKS)

    @functools.wraps(make)
    def cached(op: Op, *args: Any) -> Op:
        return make(op, *args) if runs_python(op) else kept.get((op, *args), make, op, *args)

    depends_on_rules(kept, lambda key: key[:1])
    return cached


@_cached_by_op
def pullback(op: Op, active_ins: Positions, active_outs: Positions, perturbed: Positions = ()) -> Op:
    """The operation (inputs of `op`, cotangents of its active outputs) -> cotangents of its active inputs.

    Of an `op` whose rules may be told, it is differentiated with respect to all inputs that are `perturbed`.
    """
    of = perturbed or active_ins

    def pull(*inputs_and_cotangents: Any) -> tuple[Any, ...]:
        split = len(inputs_and_cotangents) - len(active_outs)
        inputs, cotangents = inputs_and_cotangents[:split], inputs_and_cotangents[split:]

        at = _restricted(op, inputs, of, active_outs)
        try:
            back = jax.vjp(at, *(inputs[i] for i in of))[1](list(cotangents))
            return tuple([x for i, x in zip(of, back, strict=True) if i in active_ins])
        except (NotImplementedError, ValueError) as error:
            raise _explained(op, error) from error

    pull.__name__ = name = f"{op.name}_pullback"
    key = (op, active_ins, active_outs, perturbed)
    return _derivative_op(op, name, pull, key)


@_cached_by_op
def pullback_of_kept(op: KeepingOp, active_ins: Positions, active_outs: Positions) -> Op:
    """The operation (inputs of `op`, what it kept, cotangents of its active outputs) -> cotangents of its active inputs."""

    def pull(*flat: Any) -> tuple[Any, ...]:
        return op.pull_back(flat, active_ins, active_outs)

    return Op(f"{op.name}_pullback", pull, key=(op, active_ins, active_outs, "kept"))


def _restricted(op: Op, inputs: Values, active_ins: Sequence[int], active_outs: Sequence[int]) -> Any:
    """`op` as a function of its active inputs, giving its active outputs."""
    fn = differentiable(op)

    def at(*xs: Any) -> list[Any]:
        full = list(inputs)
        for i, x in zip(active_ins, xs, strict=True):
            full[i] = x
        outputs = jax.tree.leaves(fn(*full))
        return [outputs[j] for j in active_outs]

    return at


def _derivative_op(of: Op, name: str, fn: Any, key: Any) -> Op:
    if not runs_python(of):
        return Op(name, fn, key=key)
    return PythonOp(name, fn, fn if of.jitted else functools.partial(recorder.by_operations, fn), key=key)


def _explained(op: Op, error: Exception) -> Exception:
    if not any(word in str(error) for word in ("ifferentiation", "JVP", "autodiff")):
        return error
    reason = str(error).split(". ")[0]
    return LookupError(
        f"gradient registry has no entry for: {op.name}. JAX cannot differentiate it ({reason}). Write it with operations "
        "that have a gradient, or give it one (tapejax.custom_gradient, tapejax.RegisterGradient)."
    )


# ---- the forward sweep ----------------------------------------------------------------------------------------------


def push(program: Program, values: Values, tangents: Values) -> list[Any]:
    """Pushes the sources' tangents (None for zero) forward to the targets, each step by `jax.jvp` at its recorded inputs."""
    tangent: dict[int, Value] = {}

    def add(slot: Slot, x: Value) -> None:
        tangent[slot] = recorder.apply(add_cotangents, tangent[slot], x) if slot in tangent else x

    for slot, x in zip(program.sources, tangents, strict=True):
        if slot is not None and x is not None:
            add(slot, x)
    for step in program.steps:
        active_ins = tuple(i for i in step.active_ins if step.ins[i] in tangent)
        if not active_ins:
            continue
        pushed = [tangent[step.ins[i]] for i in active_ins]
        if step.op.pull is not None:
            out = _push_own(step, values, dict(zip(active_ins, pushed, strict=True)))
        else:
            inputs = [values[slot] for slot in step.ins]
            forward = pushforward(step.op, active_ins, step.active_outs, step.perturbed)
            out = recorder.run_derivative(step.op, forward, (*inputs, *pushed))
        for j, x in zip(step.active_outs, out, strict=True):
            if x is not None:
                add(step.outs[j], x)
    return [None if slot is None else tangent.get(slot) for slot in program.targets]


def _push_own(step: Step, values: Values, tangents: dict[int, Value]) -> list[Any]:
    """The tangents of active outputs, from those of inputs, where all that is known is the user's pullback.

    It is linear: recorded while it runs on some cotangents or others, its own pullback is its transpose, the pushforward.
    """
    assert step.op.pull is not None
    cotangents = [recorder.apply(jnp.ones_like, values[slot]) for slot in step.ins[: step.op.results]]
    recording = Recording(watch_accessed=False)
    for x in cotangents:
        recording.watch(x)
    back = recorder.also(recording, step.op.pull, cotangents)
    reached = [i for i in tangents if back[i] is not None]
    query = Query(recording, [back[i] for i in reached], cotangents)
    out = sweep(*query.program(), [tangents[i] for i in reached])
    return [out[j] for j in step.active_outs]


@_cached_by_op
def pushforward(op: Op, active_ins: Positions, active_outs: Positions, perturbed: Positions = ()) -> Op:
    """The operation (inputs of `op`, tangents of its active inputs) -> tangents of its active outputs.

    Of an `op` whose rules may be told, the others that are `perturbed` have zeros that are not symbolic.
    """
    of = perturbed or active_ins

    def forward(*inputs_and_tangents: Any) -> list[Any]:
        split = len(inputs_and_tangents) - len(active_ins)
        inputs, given = inputs_and_tangents[:split], dict(zip(active_ins, inputs_and_tangents[split:], strict=True))
        at = _restricted(op, inputs, of, active_outs)
        primals = [inputs[i] for i in of]
        tangents = [given[i] if i in given else zeros_of(jax.typeof(inputs[i]).to_tangent_aval()) for i in of]
        try:
            if _pulls_only(at, primals):
                # The pullback of a custom_vjp is all that is known; it is linear, and its transpose is the pushforward.
                outputs, pull = jax.vjp(at, *primals)
                return list(jax.vjp(pull, jax.tree.map(jnp.zeros_like, outputs))[1](tuple(tangents))[0])
            return list(jax.jvp(at, primals, tangents)[1])
        except (NotImplementedError, ValueError) as error:
            raise _explained(op, error) from error

    forward.__name__ = name = f"{op.name}_pushforward"
    key = ("push", op, active_ins, active_outs, perturbed)
    return _derivative_op(op, name, forward, key)


def _pulls_only(at: Any, primals: Values) -> bool:
    """Whether a ``custom_vjp`` stands in the way of forward mode."""
    traced = jax.make_jaxpr(lambda *xs: jax.jvp(at, xs, xs)[1])(*primals)
    return jaxprs.contains(traced, "custom_lin")


# ---- as a function --------------------------------------------------------------------------------------------------


def evaluate(program: Program, values: Values, sources: Sequence[Any]) -> list[Any]:
    """Runs the program forward from other values of its sources; what does not depend on them keeps its recorded value."""
    env: dict[int, Value] = dict(enumerate(values))
    given = {slot: x for slot, x in zip(program.sources, sources, strict=True) if slot is not None}
    env.update(given)
    for step in program.steps:
        ins = [env[slot] if i in step.active_ins else values[slot] for i, slot in enumerate(step.ins)]
        outputs = jax.tree.leaves(step.op.fn(*ins))
        for j in step.active_outs:
            slot, x = step.outs[j], outputs[j]
            if slot in given:
                # An intermediate that is itself a source: it moves with what it is computed from, and by itself.
                x = x + (given[slot] - jax.lax.stop_gradient(values[slot]))
            env[slot] = x
    return [None if slot is None else env[slot] for slot in program.targets]
