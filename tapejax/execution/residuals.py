"""What a large call leaves for its backward pass: its residuals, so that the pullback need not run the call again."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import jit

from ..jaxprs import cache, derivatives
from ..jaxprs.cache import Cache
from ..jaxprs.canonical import open_jaxpr
from ..jaxprs.contents import consts_of, facts, jaxprs_in, tells_zeros
from ..jaxprs.dependence import Links, has_tangent, type_has_tangent
from ..jaxprs.fence import LOOKING_MODES, ConcreteArray, Zero, eval_jaxpr, jaxpr_as_fun, trace_context
from ..jaxprs.types import Equation, Function, JaxProgram, Positions, Primitive, Values
from ..tape import runner
from ..tape.operation import JittedOp, Op, PythonOp, pullback
from ..tape.recording import Entry, Recording, Residuals
from ..tape.rules import depends_on_rules, has_rule
from ..tape.slicing import Step
from .convolutions import PRODUCTS, products
from .rewriting import rewriting

# A call with fewer multiplications in products and convolutions is run again: to hand arrays over would take longer.
WORTH_KEEPING = 10_000_000


class KeepingOp(Op):
    """What `noted` gives, then what its pullback with respect to the inputs `active_ins` needs beside the inputs.

    Kept are results of products and convolutions; the rest of `jax.vjp`'s residuals is computed from these anew
    (`jax.checkpoint`). ``call`` runs `op`, which may give more than `noted` does.
    """

    def __init__(self, noted: Op, op: Op, active_ins: Positions, inputs: Values):
        self.active_ins, self._noted = active_ins, noted
        # the equations of a jitted function
        fn = noted.fn if noted.bound is None else jaxpr_as_fun(noted.bound[1]["jaxpr"])

        def run(*flat: Any) -> list[Any]:
            rematerialised = jax.checkpoint(_with_tangent(fn, flat, active_ins), prevent_cse=False, policy=_is_product)
            _, pull, every = jax.vjp(rematerialised, *[flat[i] for i in active_ins], has_aux=True)
            residuals, self.structure = jax.tree.flatten(pull)
            self.outputs = len(every)
            more = [] if op is noted else jax.tree.leaves(op.fn(*flat))[self.outputs :]
            self._every = self.outputs + len(more)
            return [*every, *more, *residuals]

        self.program = jax.make_jaxpr(run)(*inputs)
        jaxpr = open_jaxpr(self.program)
        position = {v: i for i, v in enumerate(jaxpr.invars)}
        # for each residual the input that it is, or None
        self.read = [position.get(v) for v in jaxpr.outvars[self._every :]]
        given_out = [i for i in range(len(jaxpr.outvars)) if i < self._every or self.read[i - self._every] is None]

        def call(*flat: Any) -> list[Any]:
            outputs = jaxpr_as_fun(self.program)(*flat)
            return [outputs[i] for i in given_out]

        super().__init__(
            noted.name, noted.fn, jit(rewriting(call, divisions=False)), (noted, active_ins, trace_context())
        )

    def run(self, inputs: Values) -> tuple[list[Any], Residuals]:
        """What the operation gives, and what is kept of it."""
        every = runner.current.run(self, inputs)
        return every[: self._every], Residuals(self, tuple(every[self._every :]))

    def links(self, entry: Entry, kinds: tuple[Any, ...], active_ins: Positions) -> Links:
        noted, residuals = entry.outputs[: self.outputs], entry.outputs[self.outputs :]
        of_noted = self._noted.links(entry._replace(outputs=noted), kinds, active_ins)
        return of_noted._replace(by=(*of_noted.by, *[frozenset[int]()] * len(residuals)))

    def residuals(self, outs: tuple[int, ...]) -> tuple[int, ...]:
        return outs[self.outputs :]

    def pull_back(self, step: Step, inputs: Values, cotangents: dict[int, Any]) -> Sequence[Any]:
        if not set(step.active_ins) <= set(self.active_ins):
            return self._noted.pull_back(step, inputs[: len(step.ins)], cotangents)
        derivative = _ops.get((self, step.active_ins, *cotangents), _pullback, self, step.active_ins, tuple(cotangents))
        return self.run_derivative(derivative, (*inputs, *cotangents.values()))


def _with_tangent(fn: Function, inputs: Values, active_ins: Positions) -> Function:
    """`fn` as a function of some of its inputs, giving the outputs that have a tangent; and all outputs beside them."""
    restricted = derivatives.restricted(fn, inputs, active_ins)

    def at(*active: Any) -> tuple[list[Any], list[Any]]:
        every = restricted(*active)
        return [x for x in every if has_tangent(x)], every

    return at


def _is_product(primitive: Primitive, *_: Any, **__: Any) -> bool:
    return primitive.name in PRODUCTS


def _pullback(op: KeepingOp, active_ins: Positions, active_outs: Positions) -> Op:
    """The operation (inputs of `op`, what it kept, cotangents of its active outputs) -> cotangents of its active inputs."""
    outputs = list(enumerate(op.program.out_avals[: op.outputs]))

    def pull(*flat: Any) -> tuple[Any, ...]:
        given_out = iter(flat[len(op.program.in_avals) : -len(active_outs)])
        residuals = [next(given_out) if i is None else flat[i] for i in op.read]
        cotangent_of = dict(zip(active_outs, flat[-len(active_outs) :], strict=True))
        seeds = [
            cotangent_of[j] if j in cotangent_of else jnp.zeros(aval.shape, aval.dtype)
            for j, aval in outputs
            if type_has_tangent(aval)
        ]
        back = jax.tree.unflatten(op.structure, residuals)(seeds)
        return tuple([back[op.active_ins.index(i)] for i in active_ins])

    return Op(f"{op.name}_pullback", pull, key=(op, active_ins, active_outs, "kept"))


class Linearization:
    """A program without a key and its pullback with respect to `active_ins`, both compiled: what `jax.vjp` gives when it is
    called once more, without the Python of it.

    It holds no more than JAX keeps of the program, and not the program itself, with which it goes.
    """

    def __init__(self, op: JittedOp, active_ins: Positions, inputs: Values):
        structures = []

        def run(*flat: Any) -> Any:
            _, vjp, every = jax.vjp(
                _with_tangent(op.fn, flat, active_ins), *[flat[i] for i in active_ins], has_aux=True
            )
            residuals, structure = jax.tree.flatten(vjp)
            structures.append(structure)
            return every, residuals

        program, (every, _) = jax.make_jaxpr(run, return_shape=True)(*inputs)
        avals = self.avals = _with_tangents(program.out_avals[: len(every)])
        (structure,), count = structures, len(every)

        def forward(consts: Values, *flat: Any) -> tuple[list[Any], list[Any]]:
            results = eval_jaxpr(open_jaxpr(program), consts, *flat)
            return results[:count], results[count:]

        def backward(came: tuple[int, ...], residuals: Values, cotangents: Values) -> Any:
            seeds = _seeds(avals, dict(zip(came, cotangents, strict=True)))
            return jax.tree.unflatten(structure, residuals)(seeds)

        self.forward = functools.partial(jit(forward), consts_of(program))
        self.backward = jit(backward, static_argnums=0)

    def run(self, inputs: Values) -> tuple[list[Any], Function]:
        """What the program gives, and its pullback: from cotangents of some outputs to those of all `active_ins`."""
        every, residuals = self.forward(*inputs)
        return every, lambda cotangents: self.backward(tuple(cotangents), residuals, list(cotangents.values()))


def _with_tangents(types: Values) -> dict[int, Any]:
    """Those of the `types` of outputs whose values have tangents, by their positions."""
    return {j: kind for j, kind in enumerate(types) if type_has_tangent(kind)}


def _seeds(avals: dict[int, Any], cotangents: dict[int, Any]) -> list[Any]:
    """The cotangents of all outputs that have tangents: zeros, symbolic ones, for those that none reached."""
    return [cotangents[j] if j in cotangents else Zero(aval.to_ct_aval()) for j, aval in avals.items()]


class LinearizedOp(JittedOp):
    """A call with its pullback `pull` with respect to the inputs `active_ins`, from when it was recorded."""

    def __init__(self, op: JittedOp, active_ins: Positions, pull: Function):
        super().__init__(op.name, op.fn, op.call, op.links_by, op.linearized)
        self.active_ins, self.pull = active_ins, pull

    def pull_back(self, step: Step, inputs: Values, cotangents: dict[int, Any]) -> Sequence[Any]:
        if step.perturbed != self.active_ins or has_rule(self.name):
            return super().pull_back(step, inputs, cotangents)
        otherwise = pullback(self, step.active_ins, tuple(cotangents), step.perturbed)

        def pull(*flat: Any) -> Sequence[Any]:
            try:
                back = self.pull(dict(zip(cotangents, flat[len(inputs) :], strict=True)))
            except Exception:  # of any type: it has no gradient, or a rule of the user's takes no symbolic zeros
                self.linearized[self.active_ins] = None
                results: Sequence[Any] = runner.current.run(otherwise, flat)
                return results
            return [x for i, x in zip(self.active_ins, back, strict=True) if i in step.active_ins]

        return self.run_derivative(PythonOp(otherwise.name, pull), (*inputs, *cotangents.values()))


def linearized(op: JittedOp, inputs: Values, recordings: Sequence[Recording]) -> tuple[list[Any], Residuals] | None:
    """What a jitted program without a key gives, and its pullback; None where gradient may not go back through it.

    To run it and then `jax.vjp` of it would compile and run it twice.
    """
    active_ins = _reached(inputs, recordings)
    if not active_ins or has_rule(op.name) or op.linearized.get(active_ins, op) is None:
        return None
    try:
        every, pull = runner.current.run(PythonOp(op.name, functools.partial(_linearize, op, active_ins)), inputs)
    except Exception:  # it has no derivative: `gradient` says so, if it is asked
        op.linearized[active_ins] = None
        return None
    return every, Residuals(LinearizedOp(op, active_ins, pull), ())


_NUMBERS = (np.ndarray, np.generic, int, float, complex)


def _linearize(op: JittedOp, active_ins: Positions, *inputs: Any) -> tuple[list[Any], Function]:
    plain = all([not x.committed if type(x) is ConcreteArray else isinstance(x, _NUMBERS) for x in inputs])
    if plain and not any([mode.value for mode in LOOKING_MODES]):
        key = active_ins, trace_context(), *map(jax.typeof, inputs)
        known = op.linearized.get(key)
        if known is None or cache.shadow is not None:
            known = op.linearized[key] = Linearization(op, active_ins, inputs)
        return known.run(inputs)
    at = _with_tangent(op.fn, inputs, active_ins)
    _, vjp, every = jax.vjp(at, *[inputs[i] for i in active_ins], has_aux=True)
    avals = _with_tangents([*map(jax.typeof, every)])
    return every, lambda cotangents: vjp(_seeds(avals, cotangents))


def _reached(inputs: Values, recordings: Sequence[Recording]) -> Positions:
    """Which inputs carry gradient."""
    reached = set[int]().union(*map(_reached_in, recordings))
    return tuple([i for i, x in enumerate(inputs) if id(x) in reached and has_tangent(x)])


def _reached_in(recording: Recording) -> set[int]:
    """The ids of the arrays that are watched, or were computed from one that was: gradient may go back to them."""
    count, ids = recording.reached
    ids.update(recording.watched)
    for entry in recording.entries[count:]:
        if any([id(x) in ids for x in entry.inputs]):
            ids.update(map(id, entry.outputs))
    recording.reached = len(recording.entries), ids
    return ids


def is_large(program: JaxProgram) -> bool:
    """Whether to keep the residuals of a call of `program` is worth while."""
    known = facts(program)
    if known.is_large is None or cache.shadow is not None:
        known.is_large = _measure(program)
    return known.is_large


def keeping(noted: Op, op: Op, inputs: Values, recordings: Sequence[Recording]) -> KeepingOp | None:
    """What to run in place of the large `op` where gradient may go back through it. Tapes see the results of `noted`."""
    if noted.runs_python or has_rule(noted.name) or not all([hasattr(x, "dtype") for x in inputs]):
        return None
    active_ins = _reached(inputs, recordings)
    if not active_ins:
        return None
    wide = _ops.get((noted, active_ins, trace_context()), _make, noted, op, active_ins, inputs)
    return wide if isinstance(wide, KeepingOp) else None


def _make(noted: Op, op: Op, active_ins: Positions, inputs: Values) -> Op:
    """The operation that keeps; or `op`, where there is nothing to keep, or no derivative: then `gradient` raises the reason."""
    try:
        wide = KeepingOp(noted, op, active_ins, inputs)
    except Exception:  # of any type: rules are the user's
        return op
    return wide if None in wide.read else op


# What keeps residuals, by the operation in whose place it runs; and its pullbacks, by itself.
_ops: Cache[Op] = Cache(512)
depends_on_rules(_ops, lambda key: key[:1])


# ---- how large a call is --------------------------------------------------------------------------------------------


def _measure(jaxpr: JaxProgram) -> bool:
    large = bool(_multiplications(jaxpr) >= WORTH_KEEPING) and not open_jaxpr(jaxpr).effects
    # a rule that is told which inputs are perturbed cannot be asked yet
    return large and not tells_zeros(jaxpr)


def _multiplications(jaxpr: Any) -> Any:
    return sum(map(_multiplications_of, open_jaxpr(jaxpr).eqns))


def _multiplications_of(eqn: Equation) -> Any:
    """Those of products and convolutions, as far as they are known: one round of a `while`, every branch of a `cond`."""
    return products(eqn) or eqn.params.get("length", 1) * sum(map(_multiplications, jaxprs_in(eqn.params)))
