"""A call of a function of the user's under `jax.jit`: its operations, in the functions that ran them.

They are read from JAX's program, so that the user's Python does not run again. What `jax.grad` became there is a derivative
again, if that gives the very operations of the program.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from types import CodeType
from typing import Any

import jax
import jax.numpy as jnp

from ...jaxprs import contents
from ...jaxprs.dependence import type_has_tangent
from ...jaxprs.fence import Literal, Tracer, transformations
from ...jaxprs.lifting import run_equation
from ...jaxprs.types import Equation, JaxProgram, Value, Values
from ...places import Place, is_called, is_jaxs, serves
from ...tape import active
from ...tape.derivative import derivative_op
from ...tape.operation import Op
from ...tape.query import Query, Source
from ...tape.recording import Entry, Recording
from ...tape.sweep import sweep
from .again import adopted, close
from .inside import OPERATIONS, program_of
from .spelling import canonical

# JAX's function that `jax.grad` and `jax.value_and_grad` give; it runs the user's.
_GRADIENT = "value_and_grad_f"


def recorded(entry: Entry, recording: Recording) -> Recording | None:
    """What the function of `entry`, a call, does at the recorded inputs, with the recorded outputs.

    None where the call is of no function of the user's, or its program asks Python for something.
    """
    if any(isinstance(x, Tracer) for x in entry.inputs):
        return None
    with active.outside():
        program = program_of(entry, recording)
        call = None if program is None else _call_in(contents.open_jaxpr(program))
        if call is None:
            return None
        inside = Recording()
        try:
            outputs = _Call(call, entry.inputs, (), inside.entries).results()
        except Exception:  # an input was donated, or what is called cannot run here
            return None
    return adopted(inside, outputs, entry)


def _call_in(jaxpr: JaxProgram) -> Equation | None:
    """The call that a program is, if it is one of a function of the user's."""
    alone = len(jaxpr.eqns) == 1 and jaxpr.eqns[0].invars == jaxpr.invars and jaxpr.eqns[0].outvars == jaxpr.outvars
    return jaxpr.eqns[0] if alone and _is_users(jaxpr.eqns[0]) else None


def _is_users(eqn: Equation) -> bool:
    """Whether an equation calls a function that runs code of the user's, and not too much of it."""
    if eqn.primitive.name not in contents.JIT:
        return False
    jaxpr = contents.open_jaxpr(eqn.params["jaxpr"])
    if jaxpr.effects or jaxpr.constvars or len(jaxpr.eqns) > OPERATIONS:
        return False
    inside = [_places(each, jaxpr) for each in jaxpr.eqns]
    return all(inside) and any(not serves(code.co_filename) for places in inside for code, _ in places)


# ---- who ran an equation --------------------------------------------------------------------------------------------


def _frames(eqn: Equation, jaxpr: JaxProgram) -> list[Place]:
    """The functions that ran an equation of the program of a function, from that function inwards."""
    traceback, source = eqn.source_info.traceback, str(jaxpr.debug_info.func_src_info or "").rpartition(" at ")[2]
    frames = list(zip(*traceback.raw_frames(), strict=True))[::-1] if traceback is not None else []
    outer = itertools.takewhile(lambda frame: _source(frame[0]) != source, frames)
    return frames[sum(1 for _ in outer) :]


def _source(code: CodeType) -> str:
    return f"{code.co_filename}:{code.co_firstlineno}"


def _places(eqn: Equation, jaxpr: JaxProgram) -> tuple[Place, ...]:
    """Those of the functions that ran an equation which count, see `places.calls`."""
    return tuple([place for place in _frames(eqn, jaxpr) if is_called(place[0])])


def _name(equations: Sequence[Equation]) -> str:
    """The name of the one operation, or of the function of JAX's that several came of."""
    if len(equations) == 1:
        return str(equations[0].params.get("name", equations[0].primitive.name))
    codes, _ = equations[0].source_info.traceback.raw_frames()
    names = [code.co_name for code in itertools.takewhile(lambda code: not is_called(code), codes)]
    public = (name.removeprefix("_operator_") for name in reversed(names))
    return next((name for name in public if hasattr(jnp, name) or hasattr(jax.nn, name)), "function")


# ---- equations as functions -----------------------------------------------------------------------------------------


class Region:
    """Equations as a function of the variables that they read, `ins`, which gives those that are `wanted` of theirs, `outs`."""

    def __init__(self, equations: Sequence[Equation], wanted: Sequence[Any]):
        self.equations, self.outs = equations, wanted
        made = {v for eqn in equations for v in eqn.outvars}
        self.ins = [*dict.fromkeys(v for eqn in equations for v in _variables(eqn.invars) if v not in made)]

    def __call__(self, *inputs: Value) -> list[Value]:
        known: dict[Any, Value] = dict(zip(self.ins, inputs, strict=True))
        for eqn in self.equations:
            values = [v.val if isinstance(v, Literal) else known[v] for v in eqn.invars]
            known.update(zip(eqn.outvars, run_equation({}, eqn, values), strict=True))
        return [known[v] for v in self.outs]

    def behind(self, wanted: Sequence[Any]) -> Region:
        """The equations of it on which `wanted` depends."""
        left, found = set(wanted), list[Equation]()
        for eqn in reversed(self.equations):
            if not left.isdisjoint(eqn.outvars):
                found.append(eqn)
                left.update(_variables(eqn.invars))
        return Region(found[::-1], wanted)


def _variables(atoms: Sequence[Any]) -> list[Any]:
    return [v for v in atoms if not isinstance(v, Literal)]


# ---- a call ---------------------------------------------------------------------------------------------------------


class _Call:
    """A call of a function of the user's while it is read. `around`: the functions that ran it."""

    def __init__(self, call: Equation, inputs: Values, around: tuple[Place, ...], entries: list[Entry]):
        self.jaxpr = contents.open_jaxpr(call.params["jaxpr"])
        self.known: dict[Any, Value] = dict(zip(self.jaxpr.invars, inputs, strict=True))
        self.around, self.entries = around, entries

    def results(self) -> list[Value]:
        """The results; the operations become entries."""
        self._read(self.jaxpr.eqns, self.jaxpr.outvars, 0)
        return [v.val if isinstance(v, Literal) else self.known[v] for v in self.jaxpr.outvars]

    def _read(self, equations: Sequence[Equation], wanted: Sequence[Any], depth: int) -> None:
        """Makes entries of equations, of which others use `wanted`. `depth`: in how many derivatives they are computed."""
        readers = [(eqn, v) for eqn in equations for v in _variables(eqn.invars)]
        for gradient, group in self._groups(equations, depth):
            used = {v for eqn, v in readers if all(eqn is not each for each in group)} | {*_variables(wanted)}
            region = Region(group, [v for eqn in group for v in eqn.outvars if v in used])
            if gradient:
                if not self._read_gradient(region, depth):
                    self._add(Op("gradient", region), region, self._around(group[0], depth))
            elif len(group) == 1 and _is_users(group[0]):
                values = [v.val if isinstance(v, Literal) else self.known[v] for v in group[0].invars]
                inside = _Call(group[0], values, self._around(group[0], None), self.entries)
                self.known.update(zip(group[0].outvars, inside.results(), strict=True))
            else:
                self._add(Op(_name(group), region), region, self._around(group[0], None))

    def _groups(self, equations: Sequence[Equation], depth: int) -> Iterator[tuple[bool, list[Equation]]]:
        """Equations that came of one call of a function of JAX's; and whether that is `jax.grad`'s."""

        def key(eqn: Equation) -> tuple[Any, bool]:
            frames = _frames(eqn, self.jaxpr)
            starts = [
                i for i, (code, _) in enumerate(frames) if code.co_name == _GRADIENT and is_jaxs(code.co_filename)
            ]
            if len(starts) > depth:
                return tuple(frames[: starts[depth]]), True
            return id(eqn.source_info.traceback), False

        for (_, gradient), group in itertools.groupby(equations, key=key):
            yield gradient, [*group]

    def _around(self, eqn: Equation, depth: int | None) -> tuple[Place, ...]:
        """The functions that ran an equation; `depth`: of those around the derivative at this depth."""
        frames = _frames(eqn, self.jaxpr)
        if depth is not None:
            starts = [
                i for i, (code, _) in enumerate(frames) if code.co_name == _GRADIENT and is_jaxs(code.co_filename)
            ]
            frames = frames[: starts[depth]]
        return self.around + tuple([place for place in frames if is_called(place[0])])

    def _add(self, op: Op, region: Region, places: tuple[Place, ...]) -> None:
        inputs = [self.known[v] for v in region.ins]
        self.known.update(zip(region.outs, region(*inputs), strict=True))
        self._note(op, inputs, [self.known[v] for v in region.outs], places)

    def _note(self, op: Op, inputs: Values, outputs: Values, places: tuple[Place, ...]) -> None:
        where = next((place for place in places[::-1] if not serves(place[0].co_filename)), None)
        self.entries.append(Entry(op, tuple(inputs), tuple(outputs), where, None, places))

    # -- gradients

    def _read_gradient(self, region: Region, depth: int) -> bool:
        """Makes entries of the function that a gradient is of, and one of the gradient; False if that is not what it is."""
        found = _gradient(region, depth, self.known)
        if found is None:
            return False
        function, gradients, sources = found
        start = len(self.entries)
        self._read(function.equations, function.outs, depth + 1)
        inside = Recording()
        inside.entries = self.entries[start:]
        query = Query(inside, [self.known[function.outs[0]]], [Source(self.known[v], watched=True) for v in sources])
        program, values = query.program()
        results = Region(region.equations, gradients)(*[self.known[v] for v in region.ins])
        self.known.update(zip(gradients, results, strict=True))
        self._note(derivative_op("gradient", sweep, program), values, results, self._around(region.equations[0], depth))
        return True


def _gradient(region: Region, depth: int, known: dict[Any, Value]) -> tuple[Region, list[Any], list[Any]] | None:
    """The function of which a region computes the gradient, whose first result is a number; the gradients; and with respect
    to which of its inputs. None if `jax.grad` of that function gives other operations."""
    forward = [eqn for eqn in region.equations if transformations(eqn)[depth : depth + 1] != ["transpose"]]
    made = {v for eqn in forward for v in eqn.outvars}
    gradients = [v for v in region.outs if v not in made]
    numbers = [v for eqn in forward for v in eqn.outvars if v.aval.shape == () and type_has_tangent(v.aval)]
    if not gradients or not numbers:
        return None
    number = numbers[-1]
    function = Region(forward, []).behind([number, *(v for v in region.outs if v in made and v is not number)])
    loss = function.behind([number])

    def pulled(sources: Sequence[Any], *inputs: Value) -> list[Value]:
        given = dict(zip(region.ins, inputs, strict=True))

        def of(xs: list[Value]) -> Value:
            now = given | dict(zip(sources, xs, strict=True))
            return loss(*[now[v] for v in loss.ins])[0]

        return jax.grad(of)([given[v] for v in sources])

    inputs, recorded = [known[v] for v in region.ins], Region(region.equations, gradients)
    moving = [v for v in loss.ins if type_has_tangent(v.aval)]
    sources = _matched(recorded(*inputs), dict(zip(moving, pulled(moving, *inputs), strict=True)))
    if sources is None:
        return None
    programs = [jax.make_jaxpr(fn)(*inputs) for fn in (recorded, functools.partial(pulled, sources))]
    return (function, gradients, sources) if canonical(programs[0]) == canonical(programs[1]) else None


def _matched(results: Values, gradients: dict[Any, Value]) -> list[Any] | None:
    """With respect to what each result is the gradient."""
    found: list[Any] = []
    for y in results:
        alike = (v for v, x in gradients.items() if v not in found and close(x, y))
        if (v := next(alike, None)) is None:
            return None
        found.append(v)
    return found
