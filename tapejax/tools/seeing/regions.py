"""What one call of a transformation of JAX's ran in a block (`jax.grad`, `jax.vmap`, ...): a run of entries, by their calls.

A function of JAX's that gives a transformed function is among the calls of all that runs in it. Around the innermost such call
are others: each has a level, 0 for the outermost.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np

from ...jaxprs import contents
from ...jaxprs.evaluate import evaluate, needed
from ...jaxprs.fence import Literal
from ...jaxprs.lifting import run_equation
from ...jaxprs.types import Equation, JaxProgram, Value, Values, Where
from ...places import Place, serves, transformation
from ...tape.operation import Op
from ...tape.query import Query, Source
from ...tape.recording import Entry, Recording
from ...tape.slicing import Program
from ..writing.congruence import close, congruent
from ..writing.graph import Graph, ValueMap, ValueSet
from .spelling import normal_form

# What is recognised in entries: their replacement, of which the values in the set are used; the level is that of the outermost
# transformations in them. By keyword `first`: what is tried for each transformation before its recogniser.
Fold: TypeAlias = Callable[..., list[Entry]]
Run: TypeAlias = tuple[int, int, str]  # positions of entries, and what ran there
_NUMPY = os.path.dirname(np.__file__)


class Region(NamedTuple):
    """The entries that one call of a transformation ran, its `level`, and what of theirs is `used` outside."""

    entries: Sequence[Entry]
    level: int
    used: ValueSet
    kind: str

    def calls(self) -> tuple[Place, ...]:
        """The functions around it."""
        return around(self.entries[0], self.level) or ()

    def where(self) -> Where:
        """The user's instruction that called the transformation: what is stored there is what that gives."""
        return next((place for place in reversed(self.calls()) if not serves(place[0].co_filename)), None)

    def results(self, entries: Sequence[Entry]) -> list[Value]:
        """What of some of its entries is used outside."""
        return [x for entry in entries for x in entry.outputs if x in self.used]

    def derivative(
        self,
        op: Callable[[Program], Op],
        forward: Sequence[Entry],
        fold: Fold,
        sides: tuple[Values, Values],
        results: Values,
        kept: Values,
        seeds: Values = (),
    ) -> list[Entry]:
        """What the entries `forward` do, of which others are `kept`, and a derivative of it as one operation.

        Args:
          op: gives that, of their program.
          sides: its targets and sources.
          seeds: what it takes beside the values of the program.
        """
        wanted, part = ValueSet([*sides[0], *kept]), Recording()
        part.entries = before = restricted(fold(forward, wanted, self.level + 1), wanted)
        program, values = Query(part, sides[0], [Source(x, watched=True) for x in sides[1]]).program()
        return [*before, Entry(op(program), (*values, *seeds), tuple(results), self.where(), None, self.calls())]

    def unread(self) -> list[Value]:
        """What the user's function computed and nobody reads, nor what was computed of it; in other transformations nothing."""
        read = ValueSet([*self.used, *(x for entry in self.entries for x in entry.inputs)])
        own = [entry for entry in self.entries if not self.level and place_of(entry, 1) is None]
        return [x for entry in own if read.isdisjoint(entry.outputs) for x in entry.outputs[-1:]]


def place_of(entry: Entry, level: int) -> int | None:
    """Where in its calls the transformation begins that is in `level` others."""
    starts = (i for i, place in enumerate(entry.calls) if transformation(place))
    return next(itertools.islice(starts, level, None), None)


def around(entry: Entry, level: int) -> tuple[Place, ...] | None:
    """The functions around that transformation."""
    at = place_of(entry, level)
    return None if at is None else entry.calls[:at]


def is_back(entry: Entry, level: int) -> bool:
    """Whether none of the user's functions runs in it, nor one of a library's but NumPy's: what goes back, or what JAX does
    before and after."""
    at = place_of(entry, level)
    return at is not None and all(code.co_filename.startswith(_NUMPY) for code, _ in entry.calls[at + 1 :])


def runs(entries: Sequence[Entry], level: int) -> Iterator[Run]:
    """The positions of what one call of a transformation ran, at a level, and which it is."""
    start, none = 0, Entry(Op("", lambda: None), (), ())
    for stop in range(1, len(entries) + 1):
        before = entries[stop - 1]
        after = entries[stop] if stop < len(entries) else none
        same = _key(before, level) == _key(after, level)
        at = place_of(before, level)
        kind = "" if at is None else transformation(before.calls[at])
        turns = is_back(before, level), is_back(after, level)
        if not same or kind == "gradient" and turns == (True, False):
            if kind:
                yield start, stop, kind
            start = stop


def _key(entry: Entry, level: int) -> Any:
    at = place_of(entry, level)
    return None if at is None else (entry.calls[:at], entry.calls[at][0])


def region_of(entries: Sequence[Entry], used: ValueSet, level: int) -> Callable[..., Region]:
    """What makes a region of a run; of what it made what other runs use that belong with it is not used outside."""
    needed = parts(entries, used)

    def region(of: Run, others: Sequence[Run] = ()) -> Region:
        inside = {i for start, stop, _ in (of, *others) for i in range(start, stop)}
        reading = (entry for i, entry in enumerate(needed) if entry is not None and i not in inside)
        outside = ValueSet([*used, *(x for entry in reading for x in entry.inputs)])
        own = list(entries[of[0] : of[1]])
        return Region(own, level, ValueSet(x for entry in own for x in entry.outputs if x in outside), of[2])

    return region


def restricted(entries: Sequence[Entry], wanted: Iterable[Value]) -> list[Entry]:
    """The entries that lead to what is `wanted`, without other results."""
    return [entry for entry in parts(entries, wanted) if entry is not None]


def parts(entries: Sequence[Entry], wanted: Iterable[Value]) -> list[Entry | None]:
    """For each entry what of it leads to what is `wanted`."""
    leading, used = list[Entry | None](), ValueSet(wanted)
    for entry in reversed(entries):
        kept = [i for i, x in enumerate(entry.outputs) if x in used]
        whole = len(kept) == len(entry.outputs) or type(entry.op) is not Op or entry.op.name == "unstack"
        own = (entry if whole else part(entry, kept)) if kept else None
        leading.append(own)
        used.update(() if own is None else own.inputs)
    return leading[::-1]


def part(entry: Entry, kept: Sequence[int]) -> Entry:
    """An entry with some of its results, and the inputs that these depend on."""
    programs = list[JaxProgram]()

    def outputs(*xs: Value) -> list[Value]:
        programs.append(jax.make_jaxpr(entry.op.fn)(*xs))
        outs = _inlined(programs[0], xs)
        return [outs[i] for i in kept]

    flat = jax.make_jaxpr(outputs)(*entry.inputs)
    jaxpr = contents.open_jaxpr(flat)
    equations = [eqn for eqn, _ in needed(flat, jaxpr.outvars)]
    read = {v for v in (*jaxpr.outvars, *(v for eqn in equations for v in eqn.invars)) if not isinstance(v, Literal)}
    used = [i for i, v in enumerate(jaxpr.invars) if v in read]

    def run(*xs: Value) -> list[Value]:
        known = dict(zip(used, xs, strict=True))
        inputs = [known.get(i) for i in range(len(jaxpr.invars))]
        return evaluate(flat, inputs, functools.partial(run_equation, {}), equations=equations)

    vars(run).update(vars(entry.op.fn) if hasattr(entry.op.fn, "retraced") else {})
    if {eqn.primitive.name for eqn in programs[0].eqns}.issubset(contents.JIT):  # its cotangents are added up first
        run.__name__ = entry.op.name
        run = jax.jit(run)
    ins, outs = tuple([entry.inputs[i] for i in used]), tuple([entry.outputs[i] for i in kept])
    return entry._replace(op=Op(entry.op.name, run), inputs=ins, outputs=outs, residuals=None)


def _inlined(program: JaxProgram, inputs: Values) -> list[Value]:
    def equation(eqn: Equation, xs: Values) -> Sequence[Value]:
        return _inlined(eqn.params["jaxpr"], xs) if eqn.primitive.name in contents.JIT else run_equation({}, eqn, xs)

    return evaluate(program, inputs, equation)


def run(entries: Sequence[Entry], wanted: Values, known: ValueMap[Value]) -> list[Value]:
    """The values of `wanted` where others are `known`; those that no entry makes are as they were recorded."""
    graph = Graph(entries)
    for position in graph.before(wanted):
        entry = entries[position]
        outs = jax.tree.leaves(entry.op.fn(*[known.get(x, x) for x in entry.inputs]))
        known.update(zip(entry.outputs, outs, strict=True))
    return [known.get(x, x) for x in wanted]


def as_function(
    entries: Sequence[Entry], targets: Values, sources: Values, now: ValueMap[Value]
) -> Callable[..., list[Value]]:
    """The function of `sources` that entries are, which gives `targets`. `now`: the values that others have there."""
    return lambda *xs: run(entries, targets, ValueMap([*now.items(), *zip(sources, xs, strict=True)]))


def tracing(entries: Sequence[Entry], wanted: Values, inputs: Values) -> Callable[[Callable[..., Any]], bool] | None:
    """Whether a function of `inputs` traces to the operations that lead to what is `wanted`; None: Python would run again."""
    recorded = jax.make_jaxpr(lambda *xs: run(entries, wanted, ValueMap(zip(inputs, xs, strict=True))))(*inputs)
    if recorded.effects or contents.contains(recorded, "pure_callback"):
        return None
    form = normal_form(recorded)
    return lambda fn: congruent(normal_form(jax.make_jaxpr(fn)(*inputs)), form)


def matched(results: Values, sources: Values, gradients: Values) -> list[Value] | None:
    """The source of which each result is the gradient, by their numbers."""
    taken = ValueSet()
    for y in results:
        alike = (x for x, g in zip(sources, gradients, strict=True) if x not in taken and close(g, y))
        if (x := next(alike, None)) is None:
            return None
        taken.add(x)
    return [*taken]
