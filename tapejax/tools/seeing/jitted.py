"""A call of a function of the user's under `jax.jit`: its operations, in the functions that ran them.

They are read from JAX's program, so that the user's Python does not run again. What `jax.grad` became there is a derivative
again, if that gives the very operations of the program.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence, Set
from inspect import Parameter, Signature
from types import CodeType
from typing import Any

import jax
import jax.numpy as jnp

from ...jaxprs import contents
from ...jaxprs.evaluate import evaluate
from ...jaxprs.fence import Literal, Tracer, Var, transformations
from ...jaxprs.lifting import run_equation
from ...jaxprs.types import Equation, JaxProgram, Value, Values
from ...places import Place, as_transformation, is_called, serves, transformation, without_own
from ...tape import active
from ...tape.operation import Op
from ...tape.recording import Entry, Recording
from ...tf.ops.custom_gradient import attach_rule, custom_gradient
from ...tf.programs.statements import for_stmt
from ...tf.values.staging import TracedStep
from ..writing.congruence import close
from ..writing.graph import Graph, ValueMap, ValueSet
from . import transforms
from .inside import CASTS, frames_of, program_of
from .regions import parts

# A function of more is called as a whole: each operation is run once, and looked at by each pass.
EQUATIONS = 4_000


def recording_of(entry: Entry, recording: Recording) -> Recording | None:
    """What the function of `entry`, a call, does at the recorded inputs, with the recorded outputs.

    None where the call is of no function of the user's, or its program asks Python for something.
    """
    if any(isinstance(x, Tracer) for x in entry.inputs):
        return None
    inside = Recording()
    with active.outside():
        try:
            called = _called(entry, recording)
            places = None if called is None else ran_by(*called)
            if called is None or called[0].constvars or not places or not is_users(places):
                return None
            return adopted(inside, run(called[0], places, entry.inputs, (), inside.entries), entry)
        except Exception:  # an input was donated, or what is called cannot run here
            return None


def adopted(recording: Recording, results: Sequence[Value], entry: Entry) -> Recording | None:
    """`recording`, folded, in which `results` are those of `entry`; None where they are not, or a call is not known."""
    results = _made(results, recording.entries)
    recording = transforms.folded(recording, results)
    every = zip(parts(recording.entries, results), recording.entries, strict=True)
    recording.entries = [part or each for part, each in every if part or each.outputs and each.calls]
    graph = Graph(recording.entries)
    same = ValueMap(zip(results, entry.outputs, strict=True))
    if len(same) < len(results) or not all(map(graph.made_by, results)) or not all(map(close, results, entry.outputs)):
        return None
    for i, each in enumerate(recording.entries):
        ins, outs = (tuple([same.get(x, x) for x in side]) for side in (each.inputs, each.outputs))
        recording.entries[i] = each._replace(inputs=ins, outputs=outs)
    return recording if all(each.calls for each in recording.entries) else None


def _called(entry: Entry, recording: Recording) -> tuple[JaxProgram, str] | None:
    """The program of a function that an entry calls, under `jax.jit` or `jax.checkpoint`, and where it is defined."""
    if is_checkpoint(entry.op):
        eqn = contents.only_call(program_of(entry, recording))
        if eqn is None or eqn.params["policy"] is not None:
            return None
        return contents.open_jaxpr(eqn.params["jaxpr"]), source_of(eqn.params["jaxpr"])
    primitive, params = recording.bound.get(id(entry.outputs[0]), (None, {})) if entry.outputs else (None, {})
    if getattr(primitive, "name", None) not in contents.JIT:
        return None
    source = source_of(params["jaxpr"])
    return _body(contents.open_jaxpr(program_of(entry, recording)), source), source


def is_checkpoint(op: Op) -> bool:
    """Whether an operation is a call under `jax.checkpoint`."""
    return op.name in contents.CHECKPOINT


def _body(jaxpr: JaxProgram, source: str) -> JaxProgram:
    """What the function of a call does, which is defined at `source`; `jaxpr` is the call, or that itself, where the function
    closed over arrays."""
    eqn = contents.only_call(jaxpr)
    jaxpr = contents.open_jaxpr(eqn.params["jaxpr"]) if eqn and eqn.primitive.name in contents.JIT else jaxpr
    eqn = contents.only_call(jaxpr)
    if eqn is None or eqn.primitive.name not in contents.CHECKPOINT or eqn.params["policy"] is not None:
        return jaxpr
    inner = contents.open_jaxpr(eqn.params["jaxpr"])
    return inner if source_of(inner) == source else jaxpr  # of one function, under both


def _made(outputs: Values, entries: list[Entry]) -> list[Value]:
    """The results of a call, with copies of those that no operation made, or that are given back twice."""
    made, copies = ValueSet(x for entry in entries for x in entry.outputs), list[Value]()
    for x in outputs:
        if x in made and x not in ValueSet(copies):
            copies.append(x)
        else:
            copies.append(jnp.array(x))  # as it is, even if it is weakly typed
            code = entries[-1].calls[0][0]
            entries.append(Entry(Op("copy", jnp.array), (x,), (copies[-1],), None, None, ((code, -1),)))
    return copies


# ---- who ran an equation --------------------------------------------------------------------------------------------


def source_of(program: JaxProgram | None) -> str:
    """Where the function is defined that a program is of, as its file and line; empty if that is not known."""
    info: Any = getattr(contents.open_jaxpr(program), "debug_info", None) if program is not None else None
    return str(getattr(info, "func_src_info", None) or "").rpartition(" at ")[2]


def ran_by(jaxpr: JaxProgram, source: str) -> list[tuple[Place, ...]] | None:
    """For each equation of a function that is defined at `source` the functions that ran it, from that inwards.

    None where there are too many, or one may answer differently each time.
    """
    if jaxpr.effects or len(jaxpr.eqns) > EQUATIONS or contents.contains(jaxpr, "pure_callback"):
        return None
    return [places(eqn, source) for eqn in jaxpr.eqns]


def is_users(places: Sequence[Sequence[Place]] | None) -> bool:
    """Whether code of the user's is among what ran equations, each of which some function ran."""
    return all(places or [()]) and any(not serves(code.co_filename) for each in places or () for code, _ in each)


def function_in(program: JaxProgram) -> CodeType | None:
    """The function that ran all equations of a program."""
    source = source_of(program)
    codes = {each[0][0] for eqn in contents.open_jaxpr(program).eqns if (each := places(eqn, source))}
    return codes.pop() if len(codes) == 1 else None


def places(eqn: Equation, source: str) -> tuple[Place, ...]:
    """Those of the functions that ran an equation which count, see `places.call_stack`. What goes back was run by `jax.grad`."""
    frames = [*reversed(frames_of(eqn))]
    at = next((i for i, (code, _) in enumerate(frames) if _source(code) == source), None)
    if at is None:
        at = _rule_in(frames) if source.startswith(_TOOLS) else len(frames)
    frames = frames[at:]
    return _transformed([place for place in frames if is_called(place[0])], transformations(eqn))


def _is_in(function: Callable[..., Any], eqn: Equation) -> bool:
    """Whether a function of tapejax's was running when an equation was traced."""
    return any(code is function.__code__ for code, _ in frames_of(eqn))


def _between(program: JaxProgram, wanted: Sequence[Any], given: Set[Any]) -> list[Equation] | None:
    """The equations that make variables of those that are `given`, in a function with a rule of its own. None where another one
    is read."""
    left, equations = {*wanted} - given, list[Equation]()
    for eqn in reversed(program.eqns):
        if not left.isdisjoint(eqn.outvars):
            equations.append(eqn)
            left = (left - {*eqn.outvars}) | ({*_variables(eqn.invars)} - given)
    return None if left or not all(_is_in(custom_gradient.__call__, eqn) for eqn in equations) else equations[::-1]


def _of_users(forward: Sequence[Equation]) -> CodeType | None:
    """The function of the user's that ran equations inside."""
    for eqn in forward:
        outer = itertools.dropwhile(
            lambda place: place[0] is not custom_gradient.__call__.__code__, frames_of(eqn)[::-1]
        )
        if (code := next((code for code, _ in outer if not serves(code.co_filename)), None)) is not None:
            return code
    return None


class RuledOp(Op):
    """A call of a function with a gradient of the user's, of its results and what it was given. `results`: how many."""

    __slots__ = ("results",)

    def __init__(self, code: CodeType | None, fn: Callable[..., list[Value]], results: int):
        super().__init__("function" if code is None else code.co_name, fn)
        names = () if code is None else code.co_varnames[: code.co_argcount]
        vars(fn)["__signature__"] = Signature([Parameter(name, Parameter.POSITIONAL_ONLY) for name in names])
        self.results = results


def _inside(eqn: Equation, around: tuple[Place, ...]) -> tuple[Place, ...]:
    """The functions that ran an equation of a loop. `around`: those that ran the loop, the last of which it is in."""
    frames = [place for place in reversed(frames_of(eqn)) if is_called(place[0])]
    start = next((i for i, (code, _) in enumerate(frames) if code is around[-1][0]), len(frames))
    return (*around[:-1], *_transformed(frames[start:], transformations(eqn)))


# What JAX calls where a linear function runs that `jax.vjp` or `jax.linearize` gave, and says of it that it made it there.
_GIVEN = {"vjp": "pull", "linearize": "push"}


def _transformed(places: Sequence[Place], names: Sequence[str]) -> tuple[Place, ...]:
    """The functions that ran an equation, up to the transformation that goes back in it. `names`: the steps that JAX says it is
    of. Of what a function ran that `jax.vjp` gave, or a mapped one of `jax.linearize`, the calls are as outside `jax.jit`."""
    steps, called = iter(names), without_own(places)
    for i, place in enumerate(places):
        kind = transformation(place) if any(place is each for each in called) else ""
        step, mapped = next(steps, "") if kind else "", list[str]()
        while step == "vmap" and kind in (*_GIVEN, "jacfwd", "jacrev"):
            mapped, step = [*mapped, step], next(steps, "")
        if kind in _GIVEN and (mapped or step == "transpose"):
            calls = [as_transformation(place, each) for each in (*mapped, _GIVEN[kind])]
            return (*places[: i - 1], (places[i - 1][0], -1), *calls)
        if step == "transpose":
            return tuple(places[: i + 1])
    return tuple(places)


_TOOLS = __file__.rpartition("seeing")[0]


def _rule_in(frames: Sequence[Place]) -> int:
    """Where the innermost rule of the user's begins that JAX ran for a function which has its own."""
    start = len(frames)
    for i, (code, _) in enumerate(frames):
        if code.co_filename.endswith("custom_derivatives.py"):
            inner = next((each for each, _ in frames[i:] if is_called(each)), None)
            start = i if inner is not None and not serves(inner.co_filename) else start
    return start


def _source(code: CodeType) -> str:
    return f"{code.co_filename}:{code.co_firstlineno}"


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


# ---- what it did ----------------------------------------------------------------------------------------------------


def run(
    jaxpr: JaxProgram, callers: Sequence[Sequence[Place]], inputs: Values, around: Sequence[Place], entries: list[Entry]
) -> list[Value]:
    """The results of a function, whose operations become `entries`. `callers`: what ran each equation; `around`: what ran it."""
    known: dict[Any, Value] = dict(zip(jaxpr.invars, inputs, strict=True))
    return EquationReader(jaxpr, known, entries).entire(callers, around)


class EquationReader:
    """A run of the equations of a function, of whose values some are `known`; its operations become `entries`.

    Args:
      lifted: what stands for its constants, by their identities.
      steps: operations that are known to have made variables, by these.
    """

    def __init__(
        self,
        jaxpr: JaxProgram,
        known: dict[Any, Value],
        entries: list[Entry],
        lifted: dict[int, Value] | None = None,
        steps: Mapping[Any, TracedStep] | None = None,
    ):
        self.jaxpr, self.known, self.entries = jaxpr, known, entries
        self.lifted, self.steps = lifted or {}, steps or {}
        self.constants = [v for v in known if v not in jaxpr.invars]

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
            kinds = self._step, self._call, self._rounds, self._with_rule
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
        if all(made):
            self._note(step.op, step.inputs, step.outputs, places)
        return any(made)

    def _call(self, equations: Sequence[Equation], places: tuple[Place, ...]) -> bool:
        """Runs a call of a function of the user's under `jax.jit`."""
        (first, *others) = equations
        called = first.params.get("jaxpr") if not others and first.primitive.name in contents.JIT else None
        own = None if called is None else ran_by(body := contents.open_jaxpr(called), source_of(called))
        if not own or body.constvars or not is_users(own):
            return False
        results = run(body, own, self.read(first.invars), places, self.entries)
        self.known.update(zip(first.outvars, results, strict=True))
        return True

    def _rounds(self, equations: Sequence[Equation], places: tuple[Place, ...]) -> bool:
        """Runs a loop that a `tf.function` made of the user's ``for`` over the rows of arrays, round by round."""
        (eqn, *others) = equations
        own = itertools.takewhile(lambda place: serves(place[0].co_filename), frames_of(eqn))
        if others or eqn.primitive.name != "scan" or all(code is not for_stmt.__code__ for code, _ in own):
            return False
        body, (consts, carried) = contents.open_jaxpr(eqn.params["jaxpr"]), contents.scan_counts(eqn.params)
        columns, callers = eqn.invars[consts + carried :], [_inside(each, places) for each in body.eqns]
        if not columns or len(eqn.outvars) > carried or eqn.params["length"] * len(body.eqns) > EQUATIONS:
            return False
        first, carry = self.read(eqn.invars[:consts]), self.read(eqn.invars[consts : consts + carried])
        every = []
        for column in columns:
            self._note(Op("unstack", list), [column], [], places)
            every.append(self.entries[-1].outputs)
        for row in zip(*every, strict=True):
            carry = run(body, callers, [*first, *carry, *row], (), self.entries)
        self.known.update(zip(eqn.outvars, carry, strict=True))
        return True

    def _with_rule(self, equations: Sequence[Equation], places: tuple[Place, ...]) -> bool:
        """Runs a call of a function with a `tf.custom_gradient`. In a program its results come first, then its rule for them."""
        (eqn, *others) = equations
        if others or eqn.primitive.name != "custom_vjp_call" or not _is_in(attach_rule, eqn):
            return False
        start = eqn.params["num_consts"]
        end = start + len(eqn.outvars)
        results, inputs = eqn.invars[start:end], [*dict.fromkeys(_variables((*eqn.invars[:start], *eqn.invars[end:])))]
        given = [*self.constants, *inputs]
        before = self.jaxpr.replace(eqns=self.jaxpr.eqns[: self.jaxpr.eqns.index(eqn)])
        forward = _between(before, _variables(results), {*given})
        if forward is None:
            return False
        program = self.jaxpr.replace(invars=given, eqns=[*forward, eqn], outvars=eqn.outvars)
        constants, evaluated = self.read(self.constants), functools.partial(run_equation, self.lifted)

        def call(*flat: Value) -> list[Value]:
            return evaluate(program, [*constants, *flat[len(results) :]], evaluated, lifted=self.lifted)

        made = ValueSet(self.known[v] for each in forward for v in each.outvars if v in self.known)
        self.entries[:] = [entry for entry in self.entries if made.isdisjoint(entry.outputs)]
        self._note(RuledOp(_of_users(forward), call, len(results)), [*results, *inputs], eqn.outvars, places)
        return True

    def _operation(self, equations: Sequence[Equation], outs: Sequence[Any], places: tuple[Place, ...]) -> None:
        ins = _read_by(equations)
        program = self.jaxpr.replace(invars=ins, eqns=equations, outvars=outs)
        evaluated = functools.partial(run_equation, self.lifted)
        op = Op(_name(equations), lambda *inputs: evaluate(program, inputs, evaluated, lifted=self.lifted))
        self._note(op, ins, outs, places)

    def _note(self, op: Op, ins: Sequence[Any], outs: Sequence[Any], places: tuple[Place, ...]) -> None:
        values = self.read(ins)
        results = active.distinct(jax.tree.leaves(op.fn(*values)), values)
        self.known.update(zip(outs, results, strict=bool(outs)))
        where = next((place for place in places[::-1] if not serves(place[0].co_filename)), None)
        self.entries.append(Entry(op, tuple(values), tuple(results), where, None, places))


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
