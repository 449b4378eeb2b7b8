"""What a large call leaves for its backward pass: its residuals, so that the pullback need not run the call again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import jit

from ..jaxprs.cache import Cache
from ..jaxprs.canonical import open_jaxpr
from ..jaxprs.contents import consts_of, jaxprs_in, tells_zeros
from ..jaxprs.fence import Literal, Zero, jaxpr_as_fun, trace_context
from ..jaxprs.lifting import evaluate_equation
from ..jaxprs.types import Equation, JaxProgram, Positions, Values
from ..tape.operation import JittedOp, Op, PythonOp
from ..tape.recording import Recording
from ..tape.rules import depends_on_rules, differentiable, has_rule, is_inexact, joint, runs_python
from .convolutions import made_quick, products

# A call with fewer multiplications in products and convolutions is run again: to hand arrays over would take longer.
WORTH_KEEPING = 10_000_000


class KeepingOp(Op):
    """What `noted` gives, then what its pullback with respect to the inputs `active_ins` needs beside the inputs.

    Kept are results of products and convolutions; the rest of `jax.vjp`'s residuals is computed from these anew, as with
    `jax.checkpoint_policies.dots_saveable`. ``call`` runs `op`, which may give more than `noted` does.
    """

    __slots__ = ("active_ins", "kept", "outputs", "program", "_again", "_every", "_structure")

    def __init__(self, noted: Op, op: Op, active_ins: Positions, outputs: int, inputs: Values):
        self.active_ins, self.outputs = active_ins, outputs
        # the equations of a jitted function
        fn = noted.fn if noted.bound is None else jaxpr_as_fun(noted.bound[1]["jaxpr"])

        def run(*flat: Any) -> list[Any]:
            def at(*active: Any) -> tuple[list[Any], list[Any]]:
                full = list(flat)
                for i, x in zip(active_ins, active, strict=True):
                    full[i] = x
                every = jax.tree.leaves(fn(*full))
                return [x for x in every if is_inexact(x)], every

            _, pull, every = jax.vjp(at, *[flat[i] for i in active_ins], has_aux=True)
            residuals, self._structure = jax.tree.flatten(pull)
            more = [] if op is noted else jax.tree.leaves(op.fn(*flat))[outputs:]
            self._every = len(every) + len(more)
            return [*every, *more, *residuals]

        self.program = jax.make_jaxpr(run)(*inputs)
        self._again, self.kept = _cut(open_jaxpr(self.program), self._every)

        def linked(*flat: Any) -> list[Any]:  # the rules that `program` has applied say what is connected
            return [*jax.tree.leaves(noted.fn(*flat)), *jax.lax.stop_gradient(self._run(0, flat))]

        calls = jit(made_quick(lambda *flat: self._run(self._every, flat)))
        super().__init__(noted.name, linked, calls, (noted, active_ins, trace_context()))
        if noted.fn in joint:
            joint.add(self.fn)

    def serves(self, active_ins: Positions, active_outs: Positions) -> bool:
        """Whether what is kept is enough for this pullback."""
        return set(active_ins) <= set(self.active_ins) and max(active_outs) < self.outputs

    def _run(self, outputs: int, flat: Values) -> list[Any]:
        jaxpr = open_jaxpr(self.program)
        return self._evaluate(jaxpr.eqns, [*jaxpr.outvars[:outputs], *self.kept], flat)

    def _evaluate(
        self, equations: Sequence[Equation], wanted: Sequence[Any], flat: Values, kept: Values = ()
    ) -> list[Any]:
        jaxpr = open_jaxpr(self.program)
        env = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts_of(self.program), *flat), strict=True))
        env.update(zip(self.kept, kept, strict=False))

        def read(x: Any) -> Any:
            return x.val if isinstance(x, Literal) else env[x]

        for eqn in equations:
            env.update(zip(eqn.outvars, evaluate_equation(eqn, [*map(read, eqn.invars)], {}), strict=True))
        return [*map(read, wanted)]

    def pull_back(self, flat: Values, active_ins: Positions, active_outs: Positions) -> tuple[Any, ...]:
        """The pullback of (inputs, what was kept, cotangents of the active outputs)."""
        jaxpr = open_jaxpr(self.program)
        count = len(jaxpr.invars)
        inputs, kept, cotangents = flat[:count], flat[count : -len(active_outs)], flat[-len(active_outs) :]
        residuals = self._evaluate(self._again, jaxpr.outvars[self._every :], inputs, kept)
        given = dict(zip(active_outs, cotangents, strict=True))
        inexact = [(j, x.aval) for j, x in enumerate(jaxpr.outvars[: self.outputs]) if is_inexact(x.aval)]
        ends = [given[j] if j in given else jnp.zeros(aval.shape, aval.dtype) for j, aval in inexact]
        back = jax.tree.unflatten(self._structure, residuals)(ends)
        return tuple([back[self.active_ins.index(i)] for i in active_ins])


def _cut(jaxpr: Any, first: int) -> tuple[list[Equation], list[Any]]:
    """How the outputs from `first` on are computed again: the equations, and the results of products that these read."""
    needed = {x for x in jaxpr.outvars[first:] if not isinstance(x, Literal)}
    again, kept = [], []
    for eqn in reversed(jaxpr.eqns):
        read = [x for x in eqn.outvars if x in needed]
        if read and _multiplications_of(eqn):
            kept += read
        elif read:
            again.append(eqn)
            needed.update(x for x in eqn.invars if not isinstance(x, Literal))
    return again[::-1], kept[::-1]


class LinearizedOp(JittedOp):
    """A call with its pullback with respect to the inputs `active_ins`, from `jax.vjp` when it was recorded."""

    __slots__ = ("active_ins", "avals", "vjp")

    def __init__(self, op: JittedOp, active_ins: Positions, avals: dict[int, Any], vjp: Any):
        super().__init__(op.name, op.fn, op.call, op.links)
        self.active_ins, self.avals, self.vjp = active_ins, avals, vjp

    def serves(self, perturbed: Positions) -> bool:
        return perturbed == self.active_ins and not has_rule(self)

    def pullback(self, active_ins: Positions, active_outs: Positions, otherwise: Op) -> Op:
        """The same as `otherwise`, the operation (inputs, cotangents of its active outputs) -> those of its active inputs."""

        def pull(*flat: Any) -> Sequence[Any]:
            given = dict(zip(active_outs, flat[-len(active_outs) :], strict=True))
            ends = [given[j] if j in given else Zero(aval.to_ct_aval()) for j, aval in self.avals.items()]
            try:
                back = self.vjp(ends)
            except Exception:  # it has no gradient, or there are rules in it that take no symbolic zeros
                self.links[self.active_ins] = False
                found: Sequence[Any] = otherwise.call(*flat)
                return found
            return [x for i, x in zip(self.active_ins, back, strict=True) if i in active_ins]

        return PythonOp(otherwise.name, pull)


def linearized(op: JittedOp, inputs: Values, recordings: Sequence[Recording]) -> tuple[list[Any], Kept] | None:
    """What a jitted program without a key gives, and its pullback; None where gradient may not go back through it.

    To run it and then `jax.vjp` of it would compile and run it twice.
    """
    active_ins = _reached(inputs, recordings)
    if not active_ins or has_rule(op) or not op.links.get(active_ins, True):
        return None

    def at(*active: Any) -> tuple[list[Any], list[Any]]:
        full = list(inputs)
        for i, x in zip(active_ins, active, strict=True):
            full[i] = x
        every = op.fn(*full)
        return [x for x in every if is_inexact(x)], every

    try:
        _, vjp, every = jax.vjp(at, *[inputs[i] for i in active_ins], has_aux=True)
    except Exception:  # it has no derivative: `gradient` says so, if it is asked
        op.links[active_ins] = False
        return None
    avals = {j: jax.typeof(x) for j, x in enumerate(every) if is_inexact(x)}
    return every, Kept(LinearizedOp(op, active_ins, avals, vjp), ())


def _reached(inputs: Values, recordings: Sequence[Recording]) -> Positions:
    """Which inputs carry gradient."""
    reached = set().union(*[recording.reached() for recording in recordings])
    return tuple([i for i, x in enumerate(inputs) if id(x) in reached and is_inexact(x)])


class Kept(NamedTuple):
    """Beside the entry of a call: the operation with its pullback, or one that gives the residuals, too, and these."""

    op: KeepingOp | LinearizedOp
    arrays: tuple[Any, ...]


def is_large(op: Op, program: JaxProgram) -> bool:
    """Whether to keep the residuals of a call of `program`, as which tapes see `op`, is worth while."""
    return _is_large.get(op, _measure, program)


def keeping(noted: Op, op: Op, outputs: int, inputs: Values, recordings: Sequence[Recording]) -> KeepingOp | None:
    """What to run in place of the large `op` where gradient may go back through it.

    Of its outputs tapes see so many, which are what `noted` gives.
    """
    if runs_python(noted) or differentiable(noted) is not noted.fn or not all([hasattr(x, "dtype") for x in inputs]):
        return None
    active_ins = _reached(inputs, recordings)
    if not active_ins:
        return None
    found = _keeping.get((noted, active_ins, trace_context()), _make, noted, op, active_ins, outputs, inputs)
    return found if isinstance(found, KeepingOp) else None


def _make(noted: Op, op: Op, active_ins: Positions, outputs: int, inputs: Values) -> Op:
    """The operation that keeps; or `op`, where there is nothing to keep, or no derivative: then `gradient` raises the reason."""
    try:
        found = KeepingOp(noted, op, active_ins, outputs, inputs)
    except Exception:
        return op
    return found if found.kept else op


_is_large: Cache[bool] = Cache(4096)
_keeping: Cache[Op] = Cache(256)
depends_on_rules(_is_large, lambda op: [op])
depends_on_rules(_keeping, lambda key: key[:1])


# ---- how large a call is ----------------------------------------------------------------------------------------------


def _measure(jaxpr: JaxProgram) -> bool:
    large = bool(_multiplications(jaxpr) >= WORTH_KEEPING) and not open_jaxpr(jaxpr).effects
    return large and not tells_zeros(
        jaxpr
    )  # it is not known yet with respect to which inputs a gradient will be asked for


def _multiplications(jaxpr: Any) -> Any:
    return sum(map(_multiplications_of, open_jaxpr(jaxpr).eqns))


def _multiplications_of(eqn: Equation) -> Any:
    """Those of products and convolutions, as far as they are known: one round of a `while`, every branch of a `cond`."""
    return products(eqn) or eqn.params.get("length", 1) * sum(map(_multiplications, jaxprs_in(eqn.params)))
