"""A program read equation by equation: its operations as entries of a recording, with the functions that ran them."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence, Set
from inspect import Parameter, Signature
from typing import Any

import jax
import jax.numpy as jnp

from ...jaxprs import contents
from ...jaxprs.evaluate import evaluate
from ...jaxprs.fence import Literal, Var
from ...jaxprs.lifting import run_equation
from ...jaxprs.types import Equation, JaxProgram, Value, Values
from ...places import Place, is_called, serves, transformation
from ...tape import active
from ...tape.derivative import DerivativeOp
from ...tape.operation import Op
from ...tape.recording import Entry
from ...tape.slicing import Program, Step
from ...tf.ops.custom_gradient import RuleOp, custom_gradient
from ...tf.values.staging import TracedStep
from ..writing.graph import ValueSet
from .inside import CASTS, frames_of
from .ran_by import EQUATIONS, inside_of, is_users, origin, ran_by, source_of
from .retraced import Retraced


def run(
    jaxpr: JaxProgram,
    callers: Sequence[Sequence[Place]],
    inputs: Values,
    around: Sequence[Place],
    entries: list[Entry],
    retraced: Retraced,
) -> list[Value]:
    """The results of a function, whose operations become `entries`. `callers`: what ran each equation; `around`: what ran it."""
    known: dict[Any, Value] = dict(zip(jaxpr.invars, inputs, strict=True))
    return EquationReader(jaxpr, known, entries, retraced).entire(callers, around)


class EquationReader:
    """A run of the equations of a function, of whose values some are `known`; its operations become `entries`.

    Args:
      retraced: the operations that are known to have run in it and in its bodies.
      lifted: what stands for its constants, by their identities.
    """

    def __init__(
        self,
        jaxpr: JaxProgram,
        known: dict[Any, Value],
        entries: list[Entry],
        retraced: Retraced,
        lifted: dict[int, Value] | None = None,
    ):
        self.jaxpr, self.known, self.entries = jaxpr, known, entries
        self.retraced, self.steps, self.lifted = retraced, retraced.steps(jaxpr), lifted or {}
        self.constants = [v for v in known if v not in jaxpr.invars]
        self._rules: dict[Op, tuple[RuleOp, Sequence[Any]]] = {}  # the calls of functions with a `tf.custom_gradient`

    def read(self, atoms: Sequence[Any]) -> list[Value]:
        """The values of variables; a value is itself."""
        values = [v.val if isinstance(v, Literal) else self.known[v] if isinstance(v, Var) else v for v in atoms]
        return [self.lifted.get(id(x), x) for x in values]

    def entire(self, callers: Sequence[Sequence[Place]], around: Sequence[Place]) -> list[Value]:
        """Runs all of it; gives the results. `callers`: what ran each equation; `around`: what ran all of it."""
        jaxpr = self.jaxpr
        # those that came of one call of a function of JAX's share their traceback
        every = zip(jaxpr.eqns, callers, strict=True)
        pairs = [(eqn, places) for eqn, places in every if not self.known.keys() >= {*eqn.outvars}]
        groups = [[*group] for _, group in itertools.groupby(pairs, key=lambda pair: _together(pair[0]))]
        last = {v: i for i, group in enumerate(groups) for eqn, _ in group for v in _variables(eqn.invars)}
        last |= dict.fromkeys(_variables(jaxpr.outvars), len(groups))
        for i, group in enumerate(groups):
            equations, places = [eqn for eqn, _ in group], (*around, *group[0][1])
            kinds = self._step, self._call, self._rounds
            if not any(ran(equations, places) for ran in kinds):
                # what nobody reads may be what a derivative is of
                inside = any(map(transformation, places))
                made = [v for eqn in equations for v in eqn.outvars if v not in self.known]
                self._operation(equations, [v for v in made if last.get(v, len(groups)) > i or inside], places)
        return self.read(jaxpr.outvars)

    def _step(self, equations: Sequence[Equation], places: tuple[Place, ...]) -> bool:
        """Runs an operation that is known to have made what equations make. It may have made more, by those after them."""
        step = next((self.steps[v] for eqn in equations for v in eqn.outvars if v in self.steps), None)
        if step is None or any(isinstance(v, Var) and v not in self.known for v in step.inputs):
            return False
        made = [isinstance(v, Var) and v not in self.known for v in step.outputs]
        if all(made) and isinstance(step.op, RuleOp):
            self._with_rule(equations[0], step, places)
        elif all(made):
            self._note(*self._with_calls(step), step.outputs, places)
        return any(made)

    def _with_calls(self, step: TracedStep) -> tuple[Op, Sequence[Any]]:
        """A step's operation and inputs. If it is a derivative, its calls of functions with a rule take what these took, in place
        of what a gradient function closed over in the trace."""
        op, inputs, rules = step.op, step.inputs, self._rules
        if not isinstance(op, DerivativeOp) or rules.keys().isdisjoint(op.program.ops):
            return op, inputs
        first = len(op.values(inputs))
        outer = [*dict.fromkeys(v for each in op.program.ops if each in rules for v in rules[each][1])]
        slots: dict[Any, int] = {slot: slot + len(outer) * (slot >= first) for slot in op.program.slots}
        steps, wanted = list[Step](), {*map(slots.get, op.program.targets)}
        for each in reversed(op.program.steps):
            ins, outs = (tuple([slots[slot] for slot in side]) for side in (each.ins, each.outs))
            if each.op in rules:
                rule, own = rules[each.op]
                stop = rule.results + rule.given
                ins = (*ins[:stop], *(first + outer.index(v) for v in own))
                each = each._replace(op=rule, active_ins=tuple([i for i in each.active_ins if i < stop]))
            if not wanted.isdisjoint(outs):  # others led to what was closed over
                steps.append(each._replace(ins=ins, outs=outs))
                wanted.update(ins)
        ends = ([slots.get(slot) for slot in side] for side in (op.program.targets, op.program.sources))
        program = Program.of(steps[::-1], *ends)
        return DerivativeOp(op.kind, op.take, program, op.seeded), (*inputs[:first], *outer, *inputs[first:])

    def _call(self, equations: Sequence[Equation], places: tuple[Place, ...]) -> bool:
        """Runs a call of a function of the user's under `jax.jit`."""
        (first, *others) = equations
        called = first.params.get("jaxpr") if not others and first.primitive.name in contents.JIT else None
        own = None if called is None else ran_by(body := contents.open_jaxpr(called), source_of(called))
        if not own or body.constvars or not is_users(own):
            return False
        results = run(body, own, self.read(first.invars), places, self.entries, self.retraced)
        self.known.update(zip(first.outvars, results, strict=True))
        return True

    def _rounds(self, equations: Sequence[Equation], places: tuple[Place, ...]) -> bool:
        """Runs what AutoGraph made of the user's ``for`` or ``while`` round by round, where their number is known."""
        (eqn, *others) = equations
        if others or eqn.primitive.name != "scan" or origin(eqn) != "statement":
            return False
        body, (consts, carried) = contents.open_jaxpr(eqn.params["jaxpr"]), contents.scan_counts(eqn.params)
        columns, callers = eqn.invars[consts + carried :], [inside_of(each, places) for each in body.eqns]
        known = all(any(code is places[-1][0] for code, _ in frames_of(each)) for each in body.eqns)
        size = eqn.params["length"] * len(body.eqns)
        if not known or _chooses(body, consts + carried) or len(eqn.outvars) > carried or size > EQUATIONS:
            return False
        first, carry = self.read(eqn.invars[:consts]), self.read(eqn.invars[consts : consts + carried])
        every = []
        for column in columns:
            self._note(Op("unstack", list), [column], [], places)
            every.append(self.entries[-1].outputs)
        for row in zip(*every, strict=True) if every else [()] * eqn.params["length"]:
            carry = run(body, callers, [*first, *carry, *row], (), self.entries, self.retraced)
        self.known.update(zip(eqn.outvars, carry, strict=True))
        return True

    def _with_rule(self, eqn: Equation, step: TracedStep, places: tuple[Place, ...]) -> None:
        """Runs a call of a function with a `tf.custom_gradient`, as an operation of what it was given. In a program there are its
        results first, and what its gradient function closes over."""
        op: RuleOp = step.op  # type: ignore[assignment]
        results, inputs = step.inputs[: op.results], step.inputs[op.results : op.results + op.given]
        closed, known = step.inputs[op.results + op.given :], [*dict.fromkeys((*self.constants, *_variables(inputs)))]
        before = self.jaxpr.replace(eqns=self.jaxpr.eqns[: self.jaxpr.eqns.index(eqn)])
        ends = [*dict.fromkeys(_variables((*results, *closed)))]
        forward, outer = _between(before, ends, {*known})
        known += outer
        program = self.jaxpr.replace(invars=known, eqns=forward, outvars=ends)
        constants, evaluated = self.read(self.constants), functools.partial(run_equation, self.lifted)

        def call(*flat: Value) -> Any:
            own = {v: x for v, x in zip((*inputs, *outer), flat[op.results :], strict=True) if isinstance(v, Var)}
            args = [*constants, *(own[v] for v in known[len(constants) :])]
            made = dict(zip(ends, evaluate(program, args, evaluated, lifted=self.lifted), strict=True))
            others = [made[v] if isinstance(v, Var) else self.read([v])[0] for v in (*results, *closed)]
            return op.fn(*others[: op.results], *flat[op.results : op.results + op.given], *others[op.results :])

        inside = ValueSet(self.known[v] for each in forward for v in each.outvars if v in self.known)
        self.entries[:] = [entry for entry in self.entries if inside.isdisjoint(entry.outputs)]
        self._rules[op] = _ruled(op, call), outer
        self._note(self._rules[op][0], (*results, *inputs, *outer), step.outputs, places)

    def _operation(self, equations: Sequence[Equation], outs: Sequence[Any], places: tuple[Place, ...]) -> None:
        ins = _read_by(equations)
        program = self.jaxpr.replace(invars=ins, eqns=equations, outvars=outs)
        evaluated = functools.partial(run_equation, self.lifted)

        def fn(*inputs: Value) -> list[Value]:
            return evaluate(program, inputs, evaluated, lifted=self.lifted)

        vars(fn)["retraced"] = self.retraced  # what is known of the bodies of a loop or a choice
        self._note(Op(_name(equations), fn), ins, outs, places)

    def _note(self, op: Op, ins: Sequence[Any], outs: Sequence[Any], places: tuple[Place, ...]) -> None:
        values = self.read(ins)
        results = active.distinct(jax.tree.leaves(op.fn(*values)), values)
        self.known.update(zip(outs, results, strict=bool(outs)))
        where = next((place for place in places[::-1] if not serves(place[0].co_filename)), None)
        self.entries.append(Entry(op, tuple(values), tuple(results), where, None, places))


def _chooses(body: JaxProgram, rows: int) -> bool:
    """Whether it depends on the row alone which branch a round takes: each round would be another one."""
    free = {*body.invars[rows:]}
    for eqn in body.eqns:
        if free.issuperset(_variables(eqn.invars)):
            free.update(eqn.outvars)
    return any(eqn.primitive.name == "cond" and eqn.invars[0] in free for eqn in body.eqns)


_STRUCTURED = frozenset(("scan", "while", "cond", *contents.CHECKPOINT))


def _together(eqn: Equation) -> int:
    """Equal for equations that are one operation."""
    return id(eqn if eqn.primitive.name in _STRUCTURED else eqn.source_info.traceback)


def _variables(atoms: Sequence[Any]) -> list[Any]:
    return [v for v in atoms if not isinstance(v, Literal)]


def _read_by(equations: Sequence[Equation]) -> list[Any]:
    """The variables that equations read and do not make, in the order of the operands of what they give: first of the first."""
    made_by = {v: eqn for eqn in equations for v in eqn.outvars}
    inner = {v for eqn in equations for v in _variables(eqn.invars)}
    ends = [eqn for eqn in equations if not inner.issuperset(eqn.outvars)]
    read, waiting = dict[Any, None](), [v for eqn in reversed(ends) for v in eqn.invars[::-1]]
    while waiting:
        v = waiting.pop()
        if not isinstance(v, Literal) and v not in made_by:
            read[v] = None
        elif not isinstance(v, Literal):
            waiting += made_by[v].invars[::-1]
    return [*read]


# ---- functions with a rule ------------------------------------------------------------------------------------------


def _between(program: JaxProgram, wanted: Sequence[Any], given: Set[Any]) -> tuple[list[Equation], list[Any]]:
    """The equations that functions with a rule of their own ran to make variables of those that are `given`; and what others of
    other functions they read."""
    left, equations, others = {*wanted} - given, list[Equation](), list[Any]()
    for eqn in reversed(program.eqns):
        made = left.intersection(eqn.outvars)
        left -= made
        if made and any(code is custom_gradient.__call__.__code__ for code, _ in frames_of(eqn)):
            equations.append(eqn)
            left |= {*_variables(eqn.invars)} - given - {*others}
        else:
            others += made
    return equations[::-1], [*others, *left]


def _ruled(op: RuleOp, fn: Callable[..., Any]) -> RuleOp:
    """`fn` as the operation `op`, with the names of its function's parameters."""
    names = () if op.code is None else op.code.co_varnames[: op.code.co_argcount]
    vars(fn)["__signature__"] = Signature([Parameter(name, Parameter.POSITIONAL_ONLY) for name in names])
    return RuleOp(op.name, fn, op.code, op.results, op.given)


def _name(equations: Sequence[Equation]) -> str:
    """The name of the one operation, or of the function of JAX's that several came of."""
    kinds = [eqn.primitive.name for eqn in equations]
    main = [kind for kind in kinds if kind not in CASTS] or kinds[-1:]
    if len(main) == 1:
        return str(equations[kinds.index(main[0])].params.get("name", main[0]))
    inner = itertools.takewhile(lambda frame: not is_called(frame[0]), frames_of(equations[0]))
    names = [code.co_name for code, _ in inner]
    public = (name.removeprefix("_operator_") for name in reversed(names))
    return next((name for name in public if hasattr(jnp, name) or hasattr(jax.nn, name)), "function")
