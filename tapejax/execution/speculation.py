"""A block's operations run ahead, as one compiled program, where what came so far has led on in the same way before.

A `Plan` is a recording that came back, with the gradient that was asked of it: the operations, the slots that they read, the
query. It is found by the tape's line and the block's first operation, and is cut into `Segment`s: when the first operation of one
arrives, all that the segment reads is known, from an input of that operation, what a variable holds now, or an array that was the
same the last time. Then the segment runs, the last one with the backward pass. Each operation that arrives is compared with the
plan, by the identity of its Op and its inputs, and is given its output, a ``jax.Array`` as any other. At the first that differs
the rest is dropped, and all goes on as without a plan.

XLA sees each operation as if it were compiled alone: every number is an input of the program, and what an operation or the
backward pass reads stands behind a barrier of its own. So results are the same to the last bit, also where XLA would rewrite:
``x / 41.0`` as a product, ``x + 0.0`` as nothing, two small factors as zero.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
import operator
import os
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from ..jaxprs import cache, contents
from ..jaxprs.cache import Cache
from ..jaxprs.dependence import SCALARS
from ..jaxprs.fence import RUN_MODES, ConcreteArray, EvalTrace, current_trace, trace_context, trace_reference
from ..jaxprs.types import Value, Values
from ..tape import active, runner
from ..tape.derivative import SweepsOp, derivative_op
from ..tape.operation import Op, PythonOp
from ..tape.query import Query, RecordedValues
from ..tape.recording import Entry, Recording, is_deleted
from ..tape.rules import depends_on_rules
from ..tape.slicing import Program, rows_of, slice_program
from ..tape.sweep import sweep
from . import compared, schedule, trial
from .rewriting import rewriting

_SETTINGS = {"": False, "on": False, "off": None, "always": True}
_setting = os.environ.get("TAPEJAX_SPECULATE", "")
if _setting not in _SETTINGS:
    raise ValueError(f"TAPEJAX_SPECULATE is {_setting!r}: set it to 'on', 'always' or 'off' (docs/speed.md)")
# Whether a plan is made at the second sighting; False: when it pays; None: never.
early: bool | None = _SETTINGS[_setting]
# What a plan costs, in microseconds: to compile it, each kind of operation in it, there or back, since XLA compiles equal ones
# once, and each operation, of two segments where it is long; and what it saves each time, for an operation that is in it, beside
# what that costs more while it is on trial.
COMPILE, COMPILE_KIND, COMPILE_STEP, SAVED = 20_000, 15_000, 500, 20
# At which sighting that is estimated: a sweep is one operation from the second on.
ESTIMATED = 3
# How many operations a plan has at least, how many a segment has on average and at most, and the bytes of all outputs and
# gradients together: the gradients are there from the last segment on.
SHORTEST, SEGMENT_LEAST, SEGMENT_MOST, MOST_BYTES = 4, 3, 128, 16 << 20
# A plan that has failed more often than this is dropped; each time that it holds makes up for this part of a failure. It is
# made again when it came this many times as often.
MOST_FAILURES, REPAID, LATER = 3, 1 / 8, 8
# How many plans are made that begin alike; one more for each so many times that one of them held.
MOST_ALIKE, HELD_FOR_ANOTHER = 4, 100
# How many elements an array of NumPy's has at most that is part of a plan.
MOST_ELEMENTS = 64
# What must not run where its operation might not arrive: the first may never end, the second is the user's Python.
ONLY_IN_TIME = ("while", "pure_callback")

# Whether there has been a plan: until then nobody looks for one.
begun = False


class NoPlanError(Exception):
    """It cannot be run ahead."""


class Sighting(schedule.Sightings):
    """How often a recording came with its query, `at` how many a plan is made of it, what its values were the last time."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.at = list[Any](), 2 if early else math.inf


class Beginning:
    """The plans that begin alike, how many were `made` in all, and how often one of them `held`."""

    def __init__(self, key: Any) -> None:
        self.key, self.plans, self.made, self.held = key, list[Plan](), 0, 0


class Segment(NamedTuple):
    """Operations, compiled: from the slots `reads` to what each of them returns, and the gradients at a plan's end.

    The operations are those up to the position `stop`, their outputs the slots from `first` on. `constants`: the arrays of the
    numbers that are the same each time, which `run` takes after what it reads.
    """

    stop: int
    reads: tuple[int, ...]
    constants: tuple[Any, ...]
    first: int
    run: Callable[..., tuple[list[Any], list[Any]]]


_plans: Cache[Beginning] = Cache(64)
_compiled: Cache[Callable[..., Any]] = Cache(256)
_sightings: Cache[Sighting] = Cache(1024)
depends_on_rules(_plans, lambda key: key[:1])
depends_on_rules(_compiled, lambda key: [op for op, _ in key[0]])
depends_on_rules(_sightings, lambda key: key[0].ops)


class Plan:
    """A recording, and the query that was asked of it. Slots: the outer values, then the outputs in order.

    `values`: of the slots, the constants that are the same each time; `predicted`: what gives those of arrays; `debt`: its
    failures that are not made up for; `numbers`: what `program` reads, as the query numbered it; `modes`: JAX's, which must be
    the same.
    """

    def __init__(self, query: Query, program: Program, beginning: Beginning, before: Sequence[Any]):
        numbered, values, recording = *query.numbers, query.recording
        entries = list(rows_of(numbered))
        written = [x for _, _, outs in entries for x in outs]
        outer = sorted({*range(len(values))}.difference(written))
        order = [*outer, *written]
        slot = {x: i for i, x in enumerate(order)}
        slots = {id(x): slot[number] for number, x in enumerate(values) if type(x) is ConcreteArray}
        if len(slot) != len(order):  # an operation gave the same array twice
            raise NoPlanError
        self.program, self.numbers, self.debt, self.modes = program, query.read, 0.0, modes()
        self.beginning = beginning
        self.ops = [*numbered.ops]
        self.ins = [tuple(map(slot.__getitem__, ins)) for _, ins, _ in entries]
        self.outs = [tuple(map(slot.__getitem__, outs)) for _, _, outs in entries]
        self.read = [slot[x] for x in query.read]
        asked = *numbered.targets, *numbered.sources, *[x for _, x in numbered.watched[: len(query.watched)]]
        self.asked = [*map(slot.get, asked), *map(slots.get, recording.watched)]
        self.state = _state(query)
        self.where = recording.marks[0].where  # kept alive: the key has its identity
        self.outer, self.types = len(outer), [_type(values[x]) for x in outer]
        self.arrays = [i for i, x in enumerate(order) if type(values[x]) is ConcreteArray]
        self.values: list[Any] = [None] * len(order)
        self.predicted: dict[int, Callable[[], Any]] = {}
        holders = _holders(recording)
        for i, x in enumerate(outer):
            value, former = values[x], before[x] if len(before) == len(values) else None  # type: Any, Any
            if _is_constant(value):
                self.values[i] = value if _same(value, former) else None
                continue
            holder, alive = holders.get(id(value)), former() if type(former) is weakref.ref else None
            name = next((k for k, y in getattr(holder, "__dict__", {}).items() if y is value), None)
            if name and alive is holder:
                self.predicted[i] = functools.partial(_value_of, former, name)
            elif alive is value:
                self.predicted[i] = former
        self.segments = self._segments([values[x] for x in order])

    def _segments(self, values: Sequence[Any]) -> dict[int, Segment]:
        """The segments by their beginnings: where an input is not known before it arrives, and where one would be too long."""
        known = {i for i, x in enumerate(self.values) if i >= self.outer or i in self.predicted or x is not None}
        edges, longest = [0], _longest(self.ops)
        for k, ins in enumerate(self.ins):
            if k > edges[-1] and (k - edges[-1] >= longest or not known.issuperset(ins)):
                edges.append(k)
            known.update(ins)
        if len(self.ops) < SEGMENT_LEAST * len(edges) or not known.issuperset(self.read):
            raise NoPlanError
        return {a: self._segment(a, b, values) for a, b in zip(edges, [*edges[1:], len(self.ops)], strict=True)}

    def _segment(self, start: int, stop: int, values: Sequence[Any]) -> Segment:
        steps = list(zip(self.ops[start:stop], self.ins[start:stop], strict=True))
        whole = len(self.program.ops) <= schedule.COMPILE_AT_MOST and not self.program.runs_python
        read_back = self.read if whole and stop == len(self.ops) else []
        outs = [i for slots in self.outs[start:stop] for i in slots]
        wanted = [i for i in dict.fromkeys([*[i for _, ins in steps for i in ins], *read_back]) if i < outs[0]]
        reads = tuple([i for i in wanted if self.values[i] is None])
        constants = [i for i in wanted if self.values[i] is not None]
        place = {i: k for k, i in enumerate([*reads, *constants, *outs])}.__getitem__
        same = tuple([(op, tuple(map(place, ins))) for op, ins in steps])
        backward = (self.program, tuple(map(place, read_back))) if read_back else None
        fixed = tuple([trial.array_of(values[i]) for i in constants])
        inputs = [*[values[i] for i in reads], *fixed]
        key = same, backward, tuple(map(_type, inputs)), self.modes
        avals = [values[i].aval for i in outs]
        run = _compiled.peek(key) or _compiled.get(key, _compile, same, backward, inputs, avals)
        return Segment(stop, reads, fixed, outs[0], run)

    def fits(self, inputs: Values) -> bool:
        """Whether it may begin with these `inputs` of its first operation."""
        pairs = [(x, slot, self.guess(slot)) for x, slot in zip(inputs, self.ins[0], strict=True)]
        return all([self.is_typed(x, slot) if known is None else _same(x, known) for x, slot, known in pairs])

    def guess(self, slot: int) -> Any:
        """The value that the slot of an outer value will have; None if that is not known."""
        return self.predicted[slot]() if slot in self.predicted else self.values[slot]

    def is_typed(self, x: Value, slot: int) -> bool:
        """Whether the outer value `x` is of the type of the one in the plan."""
        if type(x) is not ConcreteArray:
            return _is_constant(x) and bool(_type(x) == self.types[slot])
        if x.aval is not self.types[slot] and x.aval == self.types[slot]:  # the latter takes ten times as long
            self.types[slot] = x.aval
        return x.aval is self.types[slot] and not x.committed


_nans, _infs, _guard = RUN_MODES  # one by one, since each operation that arrives asks


def modes() -> Any:
    """All of JAX's settings that what runs depends on."""
    return trace_context(), _nans.value, _infs.value, _guard.value


def _holders(recording: Recording) -> dict[int, Any]:
    """The variable whose only array is the one with this `id`."""
    return {key: holder for holder, held in recording.variables.values() if len(held) == 1 for key in held}


def _value_of(holder: weakref.ref[Any], name: str) -> Any:
    return getattr(holder(), name, None)


def _longest(ops: Sequence[Op]) -> int:
    """How many operations a segment has at most: where a loop was unrolled, a number that makes segments equal."""
    ids, middle = list(map(id, ops)), len(ops) // 3
    spans = range(1, min(SEGMENT_MOST, middle) + 1)
    period = next((p for p in spans if ids[middle : middle + 2 * p] == ids[middle + p : middle + 3 * p]), SEGMENT_MOST)
    return SEGMENT_MOST // period * period


def _compile(steps: Any, backward: Any, inputs: Values, avals: Sequence[Any]) -> Callable[..., Any]:
    """The program of operations whose outputs are of the types `avals`; `backward`: the gradient's program and its values."""

    def speculated(*args: Any) -> tuple[list[Any], list[Any]]:
        values, returned = list(args), []
        for op, ins in steps:
            returned.append(runner.current.run(op, compared.apart([values[i] for i in ins])))
            values += jax.tree.leaves(returned[-1])
        if backward is None:
            return returned, []
        program, read = backward
        pull_back = rewriting(derivative_op("gradient", sweep, program).fn)  # as `trial` runs it
        return returned, pull_back(*compared.apart([values[i] for i in read]))

    compiled = jax.jit(speculated, compiler_options=compared.APART)
    program = compiled.trace(*inputs).jaxpr
    late = any([contents.contains(program, name) for name in ONLY_IN_TIME])
    if late or program.effects or program.out_avals[: len(avals)] != avals:
        raise NoPlanError
    return compiled


# ---- constants: to a tape they are their digits, not values with an identity -------------------------------------------


def _is_number(kind: Any) -> bool:  # `type(x)`
    # Python's, and JAX's subclasses of these, which have a dtype
    return kind in SCALARS or (issubclass(kind, (int, float, complex)) and kind.__module__.startswith("jax."))


def _is_constant(x: Value) -> bool:
    return _is_number(x.__class__) or (isinstance(x, (np.ndarray, np.generic)) and x.size <= MOST_ELEMENTS)


def _type(x: Value) -> Any:
    """What a plan depends on of an outer value, beside its digits."""
    if type(x) is ConcreteArray and not x.committed:
        return x.aval
    if not _is_constant(x):
        raise NoPlanError
    return type(x), getattr(x, "dtype", None), np.shape(x), getattr(x, "weak_type", None)


def _digits(x: Value) -> Any:
    return _type(x), repr(x) if _is_number(x.__class__) else x.tobytes()


def _same(x: Value, y: Value) -> bool:
    """Whether two values are one, or constants with the same digits."""
    return x is y or (type(x) is type(y) and _is_constant(x) and _is_constant(y) and bool(_digits(x) == _digits(y)))


# ---- learning --------------------------------------------------------------------------------------------------------


def run_sweeps(op: SweepsOp, inputs: Values) -> list[Any]:
    """What `op` gives, a sweep: what was computed ahead, or computed now."""
    query: Any = inputs.query if type(inputs) is RecordedValues else None
    followed = query and query.speculation
    if followed is not None and op.take is sweep:
        query.speculation = None
        followed.plan.debt = max(0, followed.plan.debt - 1 - REPAID)  # one was for having begun
        followed.plan.beginning.held += 1
        if followed.back:
            back = iter(followed.back)
            gradients = [None if slot is None else next(back) for slot in op.program.sources]
            if cache.shadow is not None:
                cache.shadow.speculated("gradient", gradients, lambda: schedule.run_sweeps(op, *inputs))
            return gradients
    elif query is not None and op.take is sweep and early is not None and type(current_trace()) is EvalTrace:
        _learn(query, op.program)
    return schedule.run_sweeps(op, *inputs)


def _learn(query: Query, program: Program) -> None:
    """Notes that `query`, which has this `program`, came once more; makes a plan of it when that pays."""
    global begun
    entries, recording, values = query.entries, query.recording, query.numbers[1]
    # an operation without a key is another one at each call, and may hold arrays
    unkeyed = any([entry.op.key is entry.op for entry in entries])
    if unkeyed or len(entries) < SHORTEST or not recording.marks or not trial._plain():
        return
    sighting = _sightings.get((program, query.read, len(entries)), Sighting)
    count = sighting.again() + 1
    if count == ESTIMATED and not early:
        sighting.at = count + 1 + _pays_after(entries, program)
    if count == sighting.at - 1:  # of arrays and variables weak references
        holders = _holders(recording)
        sighting.before = [
            weakref.ref(holders.get(id(x), x)) if type(x) is ConcreteArray else _is_constant(x) and x for x in values
        ]
    elif count == sighting.at:
        sighting.at *= LATER
        before, sighting.before = sighting.before, []
        size = sum([getattr(x, "nbytes", 0) for xs in (query.arrays, *[e.outputs for e in entries]) for x in xs])
        plain = entries is recording.entries and all([_is_plain(entry.op, entry.outputs) for entry in entries])
        key = _key(recording, query.numbers[0].ops[0], entries[0].inputs)
        beginning = _plans.peek(key) or _plans.get(key, Beginning, key)
        if not plain or size > MOST_BYTES or beginning.made >= MOST_ALIKE + beginning.held // HELD_FOR_ANOTHER:
            return
        try:
            plan = Plan(query, program, beginning, before)
        except NoPlanError:
            return
        beginning.made += 1
        alike = [
            x for x in beginning.plans if (x.program, x.asked) != (program, plan.asked) or not x.fits(entries[0].inputs)
        ]
        beginning.plans = [plan, *alike[: MOST_ALIKE - 1]]
        begun = True


def _pays_after(entries: Sequence[Entry], program: Program) -> int:
    """After how many more times a plan would have saved what it costs."""
    whole = len(program.ops) <= schedule.COMPILE_AT_MOST  # else the backward pass is none of it
    kinds = {(entry.op, *map(np.shape, entry.inputs)) for entry in entries}
    steps = len(entries) + whole * len(program.ops)
    cost = COMPILE + COMPILE_KIND * len(kinds) * (1 + whole) + COMPILE_STEP * min(steps, 2 * SEGMENT_MOST)
    ops = Counter([*[entry.op for entry in entries], *whole * [derivative_op("gradient", sweep, program)]])
    trials = [(way, n) for op, n in ops.items() if isinstance(way := op.prepared.get(runner.current), trial.Trial)]

    def saved(times: int) -> int:
        return SAVED * steps * times + int(sum([way.excess(n * times) for way, n in trials]))

    return bisect.bisect_left(range(cost), cost, key=saved)


def _is_plain(op: Op, outputs: Values) -> bool:
    """Whether an operation is nothing but a function that is compiled, of arrays that the user has not placed."""
    # a primitive may be bound in the program, but a jitted function that was asked for more than compilation may not
    jitted = getattr((op.bound or (None,))[0], "name", "jit") in contents.JIT
    bound = op.call is None or cache.shadow is not None or not jitted
    function = bound and op.canonicalised() is op and not isinstance(op, PythonOp) and not op.runs_python
    return function and all([type(x) is ConcreteArray and not x.committed for x in outputs])


def _state(query: Query) -> Any:
    """What a gradient depends on, beside the values."""
    ops, begins = [entry.op for entry in query.entries], [begin for _, begin in query.recording.watched.values()]
    return ops, begins, query.held, len(query.watched), query.include_nondifferentiable, modes()


def _key(recording: Recording, op: Op, inputs: Sequence[Any]) -> Any:
    return op, (where := recording.marks[0].where) and (id(where[0]), where[1]), len(inputs)


# ---- following -------------------------------------------------------------------------------------------------------

_of_thread = active._eager_recordings
_outputs = operator.attrgetter("outputs")  # of an entry


def follow(op: Op, inputs: Values) -> Any:
    """What `op` gives, if that was computed ahead; else None."""
    recordings = _of_thread.active
    if len(recordings) != 1 or type(trace_reference.value) is not EvalTrace:
        return None
    recording = recordings[0]
    followed = recording.speculation
    if followed is None and not recording.entries and recording.marks:
        followed = _begin(recording, op, inputs)
    recording.speculation = False  # and so it stays after an interrupt
    outputs = followed.step(op, inputs) if followed else None
    if outputs is not None:
        if cache.shadow is not None:  # what is compared runs as without a plan
            cache.shadow.speculated(op.name, outputs, lambda: runner.current.run(op, inputs))
        recording.speculation = followed
    return outputs


def _begin(recording: Recording, op: Op, inputs: Values) -> FollowedBlock | None:
    """A block that follows a plan, if there is a plan that begins in this way."""
    beginning = _plans.peek(_key(recording, op, inputs))
    if beginning is None:
        return None
    for plan in beginning.plans:
        if plan.debt > MOST_FAILURES:
            beginning.plans = [x for x in beginning.plans if x is not plan]
        elif plan.fits(inputs):
            plan.debt += 1
            return FollowedBlock(plan)
    return None


class FollowedBlock:
    """A block that has followed a plan so far, and is computed up to the position `stop`.

    `ahead`: the operations up to there that have not arrived, with what they read and return; `back`: the gradients, once they
    are known.
    """

    __slots__ = ("plan", "values", "stop", "ahead", "back")

    def __init__(self, plan: Plan):
        self.plan, self.values, self.stop = plan, plan.values[:], 0
        self.ahead: Iterator[tuple[Op, tuple[int, ...], Any]] = iter(())
        self.back: Sequence[Any] = ()

    def step(self, op: Op, inputs: Values) -> Any:
        """What `op` gives, or None if the plan has another operation, or other inputs, here."""
        plan, values, expected = self.plan, self.values, next(self.ahead, None)
        segment = None if expected else plan.segments.get(self.stop)
        if not expected and not segment:
            return None
        planned, slots, outputs = expected or (plan.ops[self.stop], plan.ins[self.stop], None)
        if op is not planned and (cache.shadow is None or op != planned):
            return None
        if len(inputs) != len(slots) or modes() != plan.modes:
            return None
        for slot in segment.reads if segment is not None else ():
            values[slot] = plan.guess(slot) if values[slot] is None else values[slot]
        for x, slot in zip(inputs, slots, strict=True):
            known = values[slot]
            if known is None and segment is not None and slot < plan.outer:
                values[slot] = x
            elif not (x is known or _same(x, known)) or (type(x) is ConcreteArray and x.is_deleted()):
                return None
        return outputs if segment is None else self.launch(segment)

    def launch(self, segment: Segment) -> Any:
        """Runs `segment`, if what it reads is of its types: what its first operation gives, or None."""
        plan, values = self.plan, self.values
        inputs = [*map(values.__getitem__, segment.reads)]
        if not trial._plain() or not all([i >= plan.outer or plan.is_typed(values[i], i) for i in segment.reads]):
            return None
        try:
            returned, back = segment.run(*inputs, *segment.constants)
        except Exception:  # of any type: it is for the operation that reads a deleted array, say, to tell
            return None
        inputs += segment.constants
        leaves = jax.tree.leaves(returned)
        values[segment.first : segment.first + len(leaves)] = leaves
        if len(set(map(id, leaves)).difference(map(id, inputs))) < len(leaves):  # JAX handed one on
            return None
        part = slice(self.stop + 1, segment.stop)
        self.stop, self.back = segment.stop, back
        self.ahead = zip(plan.ops[part], plan.ins[part], returned[1:], strict=True)
        return returned[0]

    def answer(self, query: Query) -> tuple[Program, list[Any]] | None:
        """The program of `query` and the values that it reads, if it is the plan's, of the plan's recording."""
        plan, values, recording = self.plan, self.values, query.recording
        recording.speculation = False
        beginning = _plans.peek(plan.beginning.key)  # another, or none, where a gradient was registered since
        alive = beginning is plan.beginning and plan in beginning.plans
        ended = self.stop == len(plan.ops) and next(self.ahead, None) is None
        as_planned = alive and ended and _state(query) == plan.state
        if not as_planned or type(current_trace()) is not EvalTrace or query.entries is not recording.entries:
            return None
        asked = [*query.targets, *query.arrays, *query.watched, *[x for x, _ in recording.watched.values()]]
        for x, i in zip(asked, plan.asked, strict=False):
            if i is not None and values[i] is None and plan.is_typed(x, i):  # no operation reads it
                values[i] = x
        ids = [*map(id, map(values.__getitem__, plan.arrays))]  # in calls of C, as all that is done for each value
        slots = dict(zip(ids, plan.arrays, strict=True))
        written = [*map(id, itertools.chain.from_iterable(map(_outputs, query.entries)))]
        read = [*map(values.__getitem__, plan.read)]
        same = list(map(slots.get, map(id, asked))) == plan.asked and written == ids[len(ids) - len(written) :]
        if same and len(slots) == len(ids) and not any(map(is_deleted, read)):  # no value takes the place of two
            query.speculation = self
            if cache.shadow is not None:
                anew = query.numbered, query.entries
                cache.shadow.reused(anew[0], (plan.program, plan.numbers), slice_program, anew)
        return (plan.program, read) if query.speculation else None
