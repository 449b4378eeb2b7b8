"""A recording cut down to what leads from sources to targets: hashable data that becomes a pure function.

A value is a numbered slot; a step is an operation with the slots that it reads and writes. Two runs of the same code give
equal programs, which is what lets compiled code be kept.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..jaxprs import contents
from ..jaxprs.cache import Cache
from ..jaxprs.canonical import open_jaxpr
from ..jaxprs.fence import ConcreteArray, Literal, RefType, has_tangent, jaxpr_as_fun, trace_context, user_type
from ..jaxprs.types import Atom, Equation, JaxProgram, Params, Positions, Value
from . import recorder
from .operation import ConstantOp, Op, ToldOp, is_ref
from .recording import Entry, new_tuple
from .rules import depends_on_rules, differentiable, has_rule, joint, zero_gradients


class Step(NamedTuple):
    """One operation of a program. `active_ins`, `active_outs`: the positions in `ins`, `outs` that carry a gradient.

    `perturbed`: where a rule may be told which inputs are perturbed, all that are, whether or not an output depends on them.
    """

    op: Op
    ins: tuple[int, ...]
    outs: tuple[int, ...]
    active_ins: Positions
    active_outs: Positions
    perturbed: Positions = ()

    @property
    def residuals(self) -> tuple[int, ...]:
        """The last of `outs`: what its pullback reads beside `ins`."""
        return self.outs[self.op.outputs :] if self.op.outputs else ()


@dataclass(frozen=True)
class Program:
    """`steps` in the order in which they ran, the slots of the targets, and of each source (None: not connected).

    The first slots are those whose recorded value is read; the values come beside the program, in that order.
    """

    steps: tuple[Step, ...]
    targets: tuple[int | None, ...]
    sources: tuple[int | None, ...]

    def __hash__(self) -> int:
        return self._hash

    @functools.cached_property
    def _hash(self) -> int:  # of a long program it takes as long as a look-up should
        return hash((self.steps, self.targets, self.sources))


class NumberedRecording(NamedTuple):
    """A recording as data: values are numbers in the order in which they turn up, of which only the type is kept.

    `kinds` are JAX's types (shape, dtype ...), or Python's of a number. `watched` are pairs (entries before the watch began,
    value), `late` the sources that were watched after the recording began and count wherever they were used. `context` are JAX's
    settings. Equal ones have equal programs.
    """

    entries: tuple[tuple[Op, tuple[int, ...], tuple[int, ...]], ...]
    kinds: tuple[Any, ...]
    watched: tuple[tuple[int, int], ...]
    late: tuple[int, ...]
    targets: tuple[int, ...]
    sources: tuple[int, ...]
    include_nondifferentiable: bool
    context: Any


SCALARS = frozenset((float, int, bool, complex))


def kind_of(value: Value) -> Any:
    """All that a program may depend on of a value that it is given."""
    kind: Any = type(value)
    if kind is ConcreteArray:
        return value.aval
    if kind in SCALARS:
        return kind
    if isinstance(value, jax.Array):
        return value.aval
    return jax.typeof(value) if hasattr(value, "dtype") else user_type(value) or kind


class Link(NamedTuple):
    """How gradient passes an entry: its position, the inputs by which it comes, and for each output reached by which.

    `perturbed` as in `Step`.
    """

    position: int
    active_ins: Positions
    linked: dict[int, frozenset[int]]
    perturbed: Positions = ()


def active_entries(numbered: NumberedRecording, entries: Sequence[Entry]) -> Iterator[Link]:
    """The entries through which a source reaches a value, in order."""
    inexact = [_is_inexact_kind(kind) for kind in numbered.kinds]
    tracked: set[int] = set()
    watched = sorted(numbered.watched, reverse=True)
    active = set(numbered.sources)
    seen: dict[Any, tuple[dict[int, frozenset[int]], bool]] = {}
    context, kinds_of, late = trace_context(), numbered.kinds.__getitem__, numbered.late
    for position, (op, ins, outs) in enumerate(numbered.entries):
        while watched and watched[-1][0] <= position:
            tracked.add(watched.pop()[1])
        if tracked.isdisjoint(ins):
            continue
        for x in outs:
            if inexact[x] or numbered.include_nondifferentiable:
                tracked.add(x)
        active_ins = tuple([i for i, x in enumerate(ins) if x in active and (x in tracked or x in late)])
        if not active_ins:
            continue
        perturbed: Positions = ()
        if numbered.include_nondifferentiable:
            linked = dict.fromkeys(range(len(outs)), frozenset(active_ins))
            active.update(outs)
        else:
            kinds = tuple(map(kinds_of, ins))
            key = id(op), active_ins, *map(id, kinds)  # a look-up by what these are takes longer than all else here
            known = seen.get(key)
            if known is None:
                found = links(op, kinds, entries[position], context, active_ins)
                known = {j: by for j, by in enumerate(found.by) if not by.isdisjoint(active_ins)}, found.told
                if not op.eager:
                    seen[key] = known
            linked, told = known
            active.update([outs[j] for j in linked])
            if told:
                perturbed = tuple([i for i in active_ins if inexact[ins[i]]])
        if linked:
            yield new_tuple(Link, (position, active_ins, linked, perturbed))


class Relevant(NamedTuple):
    """An entry that leads from a source to a target, by its position; the rest as in `Step`."""

    position: int
    active_ins: Positions
    active_outs: Positions
    perturbed: Positions


def relevant_entries(numbered: NumberedRecording, entries: Sequence[Entry]) -> tuple[list[Relevant], set[int]]:
    """The entries that lead from a source to a target, and all values that a target depends on through them."""
    # A target that is itself a source has the cotangent that it is given, whatever numbers it holds.
    needed = {
        x
        for x in numbered.targets
        if numbered.include_nondifferentiable
        or _is_inexact_kind(numbered.kinds[x])
        or (x in numbered.sources and not _is_key(numbered.kinds[x]))
    }
    found = []
    same: dict[Positions, Positions] = {}  # one tuple for all that are equal
    for position, active_ins, linked, perturbed in reversed(list(active_entries(numbered, entries))):
        _, ins, outs = numbered.entries[position]
        active_outs = tuple([j for j in linked if outs[j] in needed])
        if active_outs:
            by = frozenset().union(*map(linked.__getitem__, active_outs))
            active_ins = tuple(filter(by.__contains__, active_ins))
            needed.update(map(ins.__getitem__, active_ins))
            positions = (same.setdefault(x, x) for x in (active_ins, active_outs, perturbed))
            found.append(new_tuple(Relevant, (position, *positions)))
    return found[::-1], needed


def slice_program(numbered: NumberedRecording, entries: Sequence[Entry]) -> tuple[Program, tuple[int, ...]]:
    """The program in a numbered recording, and the number of the value in each slot whose value is read."""
    found, needed = relevant_entries(numbered, entries)
    steps = [new_tuple(Step, (*numbered.entries[entry.position], *entry[1:])) for entry in found]
    used = {x for step in steps for x in step.ins}
    ends = [x if x in needed else None for x in numbered.targets]
    starts = [x if x in needed and (x in used or x in ends) else None for x in numbered.sources]
    return compact(steps, ends, starts)


def compact(
    steps: Sequence[Step], targets: Sequence[int | None], sources: Sequence[int | None]
) -> tuple[Program, tuple[int, ...]]:
    """A program of these steps with its slots numbered anew, and the old number of each slot whose value is read."""
    slots: dict[int, int] = {}

    def give(xs: Sequence[int | None]) -> None:
        for x in xs:
            if x is not None and x not in slots:
                slots[x] = len(slots)

    for step in steps:
        give(step.ins)
        if step.op.outputs:
            give(step.residuals)
    give(targets)
    give(sources)
    read = tuple(slots)
    for step in steps:
        give(step.outs)
    slot = slots.__getitem__

    def end(x: int | None) -> int | None:
        return None if x is None else slot(x)

    numbered = [
        new_tuple(Step, (op, tuple(map(slot, ins)), tuple(map(slot, outs)), *active))
        for op, ins, outs, *active in steps
    ]
    return Program(tuple(numbered), tuple(map(end, targets)), tuple(map(end, sources))), read


class Chunk(NamedTuple):
    """A stretch of a longer program as a program of its own.

    `read` are the long program's slots for the values it reads, `targets` those whose cotangents go in, `sources` those
    whose come out: added to what has come back there so far, or for the last `computed`, which it computes itself, in its place.
    """

    program: Program
    read: tuple[int, ...]
    targets: tuple[int, ...]
    sources: tuple[int, ...]
    computed: int


CHUNK = 64


def chunks(program: Program) -> tuple[Chunk, ...]:
    """A program that goes in circles, as a loop that was unrolled does, cut so that most chunks are equal; else nothing."""
    return _chunks.get(program, _find_chunks, program)


_chunks: Cache[tuple[Chunk, ...]] = Cache(256)


def _find_chunks(program: Program) -> tuple[Chunk, ...]:
    kinds = [(step.op, *step[3:]) for step in program.steps]
    count = len(kinds)
    middle = count // 3
    period = next(
        (p for p in range(1, CHUNK * 2) if kinds[middle : middle + 2 * p] == kinds[middle + p : middle + 3 * p]), 0
    )
    if not period:
        return ()
    length = period * -(-CHUNK // period)
    begin = next((i for i in range(middle) if kinds[i : i + length] == kinds[i + length : i + 2 * length]), None)
    if begin is None:
        return ()
    edges = sorted({0, *range(begin, count, length), count})
    later, sources, found = set(program.targets), {*program.sources}, []
    same: dict[Program, Program] = {}
    for a, b in zip(reversed(edges[:-1]), reversed(edges), strict=False):
        chunk = _chunk(program.steps[a:b], later, sources)
        found.append(chunk._replace(program=same.setdefault(chunk.program, chunk.program)))
        later.update([step.ins[i] for step in program.steps[a:b] for i in step.active_ins])
    return tuple(reversed(found))


def _chunk(steps: Sequence[Step], later: Set[int | None], sources: Set[int | None]) -> Chunk:
    """`steps` of a longer program that has these `sources`, of which the slots `later` are read afterwards."""
    written = dict.fromkeys(slot for step in steps for slot in step.outs)
    targets = tuple(dict.fromkeys(step.outs[j] for step in steps for j in step.active_outs if step.outs[j] in later))
    active_ins = dict.fromkeys(step.ins[i] for step in steps for i in step.active_ins)
    outer = [slot for slot in active_ins if slot not in written]
    own = [slot for slot in written if slot in sources]
    part, read = compact(steps, targets, [*outer, *own])
    return Chunk(part, read, targets, (*outer, *own), len(own))


@functools.cache
def _inexact_dtype(dtype: Any) -> bool:
    return dtype not in SCALARS and has_tangent(dtype)


def _is_inexact_kind(kind: Any) -> bool:
    """Whether values of `kind` have a tangent: of floats or complex numbers, or of a type of the user's that has one."""
    if not hasattr(kind, "dtype") and hasattr(kind, "to_tangent_aval"):
        kind = kind.to_tangent_aval()
    return _inexact_dtype(kind.dtype) if hasattr(kind, "dtype") else hasattr(kind, "to_tangent_aval")


def _is_key(kind: Any) -> bool:
    """Whether it is of one of JAX's own dtypes, such as the keys of random numbers, which are no numbers."""
    return hasattr(kind, "dtype") and jnp.issubdtype(kind.dtype, jax.dtypes.extended)


def is_inexact(x: Value) -> bool:
    return isinstance(x, jax.Array) and _inexact_dtype(x.dtype)


# ---- what is connected to what --------------------------------------------------------------------------------------

_LINKS_KEPT = 8192


class Links(NamedTuple):
    """For each output of an operation the inputs on which its derivative depends; whether a rule may be `told`."""

    by: tuple[frozenset[int], ...]
    told: bool


def links(op: Op, kinds: tuple[Any, ...], entry: Entry, context: Any, active_ins: Positions) -> Links:
    """The `Links` of `entry`, an `op` on inputs of these `kinds`, of which some are active.

    JAX decides: the tangent of an output that does not depend on an input, or only through integers, ``floor``,
    ``stop_gradient``..., is a symbolic zero.
    """
    if isinstance(op, ToldOp):
        key = kinds, context, active_ins, has_rule(op)
        if key not in op.links:
            op.links[key] = _find_links(op, entry, active_ins)
        known: Links = op.links[key]
        return known
    if op.eager:
        return Links(_eager_links(op, entry), op.pull is None)
    found = _links.get((op, kinds, context), _find_links, op, entry)
    if found.told:
        found = _links.get((op, kinds, context, active_ins), _find_links, op, entry, active_ins)
    return found


_links: Cache[Links] = Cache(_LINKS_KEPT)


depends_on_rules(_links, lambda key: key[:1])


def _eager_links(op: Op, entry: Entry) -> tuple[frozenset[int], ...]:
    if isinstance(op, ConstantOp) and not has_rule(op):
        return (frozenset(),) * len(entry.outputs)

    def inexact(x: Value) -> bool:
        return is_inexact(x) or is_ref(x) or _is_inexact_kind(user_type(x))

    inputs = frozenset(i for i, x in enumerate(entry.inputs) if i >= op.results and inexact(x))
    return tuple(inputs if inexact(x) else frozenset() for x in entry.outputs)


def _find_links(op: Op, entry: Entry, active_ins: Positions | None = None) -> Links:
    inexact = [i for i, x in enumerate(entry.inputs) if hasattr(x, "dtype") and _inexact_dtype(x.dtype)]  # NumPy's too
    if active_ins is not None:
        inexact = [i for i in inexact if i in active_ins]
    outputs = [hasattr(x, "dtype") and _inexact_dtype(x.dtype) for x in entry.outputs]
    everything = tuple(frozenset(inexact) if out else frozenset() for out in outputs)
    fn, told = differentiable(op), active_ins is not None
    if getattr(op.fn, "func", op.fn) in zero_gradients:
        return Links(everything, False)

    def tangents_out(primals: list[Any], tangents: list[Any]) -> list[Any]:
        def on_inexact(*xs: Any) -> list[Any]:
            full = list(primals)
            for i, x in zip(inexact, xs, strict=True):
                full[i] = x
            return [y for y, out in zip(jax.tree.leaves(fn(*full)), outputs, strict=True) if out]

        return list(jax.jvp(on_inexact, [primals[i] for i in inexact], tangents)[1])

    try:
        with recorder.outside():
            if not told:
                program = jax.make_jaxpr(fn)(*entry.inputs)
                fn, told = jaxpr_as_fun(program), contents.tells_zeros(program)
            closed = jax.make_jaxpr(tangents_out)(list(entry.inputs), [entry.inputs[i] for i in inexact])
    except Exception:  # it cannot be differentiated: the sweep will say so, if a gradient is to pass through it
        return Links(everything, True)
    masks = [0] * len(entry.inputs) + [1 << i for i in inexact]
    reached = _propagate(closed, masks)
    if op.fn in joint:
        reached = [functools.reduce(int.__or__, reached, 0)] * len(reached)
    found = iter(reached)
    by = [frozenset(i for i in inexact if mask >> i & 1) for mask in ((next(found) if out else 0) for out in outputs)]
    return Links(tuple(by), told)


def equation_links(eqn: Equation) -> tuple[frozenset[int], ...]:
    """`links` of one equation of a jaxpr."""
    params = eqn.primitive.get_bind_params(eqn.params)
    specs = [v.val if isinstance(v, Literal) else v.aval for v in eqn.invars]
    op = Op(eqn.primitive.name, lambda *xs: eqn.primitive.bind(*xs, **params))
    return _find_links(op, Entry(op, tuple(specs), tuple(v.aval for v in eqn.outvars))).by


def _propagate(jaxpr: JaxProgram, masks: Sequence[int]) -> list[int]:
    """Which inputs reach each output of `jaxpr`, as bit masks."""
    jaxpr = open_jaxpr(jaxpr)
    env: dict[Any, int] = dict(zip(jaxpr.invars, masks, strict=True))

    def read(atom: Atom) -> int:
        return 0 if isinstance(atom, Literal) else env.get(atom, 0)

    for eqn in jaxpr.eqns:
        ins = [read(x) for x in eqn.invars]
        inner = eqn.params.get("jaxpr") or eqn.params.get("call_jaxpr")
        if not any(ins):
            outs = [0] * len(eqn.outvars)
        elif refs := [x for x in eqn.invars if isinstance(x.aval, RefType)]:  # what is written there is read later
            outs = [functools.reduce(int.__or__, ins)] * len(eqn.outvars)
            env.update(dict.fromkeys(refs, functools.reduce(int.__or__, ins)))
        elif eqn.primitive.name == "scan":
            outs = _propagate_scan(eqn.params, ins)
        elif eqn.primitive.name == "cond":
            branches = [_propagate(branch, ins[1:]) for branch in eqn.params["branches"]]
            outs = [functools.reduce(int.__or__, masks) for masks in zip(*branches, strict=True)]
        elif inner is not None and _are_counted(inner, eqn):
            outs = _propagate(inner, ins)
        else:
            outs = [functools.reduce(int.__or__, ins)] * len(eqn.outvars)
        env.update(zip(eqn.outvars, outs, strict=True))
    return [read(x) for x in jaxpr.outvars]


def _are_counted(inner: JaxProgram, eqn: Equation) -> bool:
    """Whether the inputs and results of `inner`, a parameter of `eqn`, are as many as those of `eqn`."""
    inner = open_jaxpr(inner)
    return len(inner.invars) == len(eqn.invars) and len(inner.outvars) == len(eqn.outvars)


def _propagate_scan(params: Params, ins: list[int]) -> list[int]:
    # What is carried has come round any number of times: repeat until an iteration adds nothing.
    consts, carry = contents.scan_counts(params)
    while True:
        outs = _propagate(params["jaxpr"], ins)
        merged = list(ins)
        for i in range(carry):
            merged[consts + i] |= outs[i]
        if merged == ins:
            return outs
        ins = merged
