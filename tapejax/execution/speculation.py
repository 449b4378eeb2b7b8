"""A block's operations run ahead, as one compiled program, where what came so far has led on in the same way before.

A `Plan` is a recording that came back, with the gradient that was asked of it: its operations, the slots that they read, the query.
It is looked up by the tape's line and the block's first operation. It is cut into `Chunk`s: when the first operation of one arrives,
all that the chunk reads from outside is known: an input of that operation, what a variable holds now, an array that was the same
before. Then the chunk runs, the last one with the backward pass. Each operation that arrives is compared with the plan, by the
identity of its Op and its inputs, and is given its output, a ``jax.Array`` as any other. At the first that differs the rest is
dropped, and all goes on as without a plan.

What an operation gives is computed once, behind a barrier, from what the operations before it gave: to the last bit what it gives
where it is compiled alone.
"""

from __future__ import annotations

import functools
import os
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from ..jaxprs import cache
from ..jaxprs.cache import Cache
from ..jaxprs.dependence import SCALARS
from ..jaxprs.fence import ConcreteArray, EvalTrace, current_trace, trace_context, trace_reference
from ..jaxprs.types import Value, Values
from ..tape import active, runner
from ..tape.derivative import SweepsOp, derivative_op
from ..tape.operation import Op, PythonOp
from ..tape.query import Query, RecordedValues
from ..tape.recording import Recording, is_deleted
from ..tape.rules import depends_on_rules
from ..tape.slicing import Program
from ..tape.sweep import sweep
from . import schedule, trial
from .schedule import Sightings


def _when(setting: str) -> bool | None:
    """What the environment variable says: whether plans are made at the second sighting, or never (None)."""
    if setting not in ("", "always", "off"):
        raise ValueError(
            f"TAPEJAX_SPECULATE is {setting!r}: set it to 'off', and no operation is run before it arrives, to 'always', and each "
            "block that came twice is run ahead, or unset it"
        )
    return None if setting == "off" else setting == "always"


early = _when(os.environ.get("TAPEJAX_SPECULATE", ""))
# What a plan costs, in microseconds: to compile it, with its backward pass for each operation there and back, else for each
# operation of two chunks; and what it saves each time, for an operation.
COMPILE, COMPILE_BACKWARD, COMPILE_STEP, SAVED = 20_000, 6_000, 1_500, 20
# How many operations a plan has at least, how many a chunk has on average and at most, and the bytes of all outputs together.
SHORTEST, CHUNK_LEAST, CHUNK_MOST, MOST_BYTES = 4, 4, 128, 16 << 20
# A plan that has failed this often more than it held is dropped. It is made again when it came this many times as often.
MOST_FAILURES, LATER = 3, 8
# Of NumPy's arrays that are part of a plan, how many elements they have at most.
MOST_ELEMENTS = 64

# Whether there has been a plan: until then nobody looks for one.
begun = False
# Given an operation's name, what a plan gave, and what gives it without a plan: `shadow`'s.
compare: Callable[[str, Any, Callable[[], Any]], None] | None = None


class Sighting(Sightings):
    """How often a recording was seen with its query; when a plan is made of it; weak references to its values the last time."""

    __slots__ = ("before", "at")

    def __init__(self) -> None:
        super().__init__()
        self.before: Sequence[Any] = ()
        self.at = 2


class Step(NamedTuple):
    """An operation of a plan. `of` makes of its output slots what it returns; None: it returns the one array."""

    op: Op
    ins: tuple[int, ...]
    outs: tuple[int, ...]
    of: Any = None


class Chunk(NamedTuple):
    """Operations up to the position `stop`, compiled. It takes the slots `reads`, some of which the functions `guesses` give."""

    stop: int
    reads: tuple[int, ...]
    guesses: tuple[tuple[int, Callable[[], Any]], ...]
    first: int
    last: int
    run: Callable[..., Any]


class Plan:
    """A recording, and the query that was asked of it. Slots: the outer values, then the outputs in order."""

    def __init__(self, query: Query, program: Program, before: Sequence[Any]):
        numbered, values = query.numbered, query._numbers[1]
        written = [x for _, _, outs in numbered.entries for x in outs]
        known = set(written)
        outer = [x for x in range(len(values)) if x not in known]
        slot = {x: i for i, x in enumerate([*outer, *written])}
        if len(slot) != len(outer) + len(written):
            raise NoPlanError
        self.program, self.context = program, numbered.context
        self.read = [slot[x] for x in query.read]
        watched = {id(values[x]): slot[x] for x in range(len(values)) if type(values[x]) is ConcreteArray}
        self.asked = [slot[x] for x in (*numbered.targets, *numbered.sources)]
        self.asked += [watched.get(key) for key in query.recording.watched]
        self.begins = [begin for _, begin in query.recording.watched.values()]
        self.held = query.held
        self.outer = len(outer)
        self.types = [_type(values[x]) for x in outer]
        # the slots' values, of numbers that are the same each time; and what gives those of arrays
        self.values: list[Any] = [None] * len(slot)
        self.guesses: dict[int, Callable[[], Any]] = {}
        self.find_guesses([values[x] for x in outer], [before[x] if before else None for x in outer], query.recording)
        self.arrays = [i for i, x in enumerate([*outer, *written]) if type(values[x]) is ConcreteArray]
        self.ops = [op for op, _, _ in numbered.entries]
        self.steps = [Step(op, tuple([slot[x] for x in ins]), tuple([slot[x] for x in outs])) for op, ins, outs in numbered.entries]
        where = query.recording.marks[0].where
        self.alive = where
        self.key = self.ops[0], where and (id(where[0]), where[1]), len(self.steps[0].ins)
        self.debt = 0
        self.backward = len(program.steps) <= schedule.COMPILE_AT_MOST and not schedule._has_python(program)
        self.chunks: dict[int, Chunk] = {}
        self.make_chunks([values[x] for x in (*outer, *written)])

    def find_guesses(self, outer: Sequence[Any], before: Sequence[Any], recording: Recording) -> None:
        holders = {next(iter(held)): holder for holder, held in recording.variables.values() if len(held) == 1}
        for slot, (x, former) in enumerate(zip(outer, before, strict=True)):
            if _is_constant(x):
                self.values[slot] = x if _same(x, former) else None
            elif (holder := holders.get(id(x))) is not None and (name := _attribute(holder, x)):
                self.guesses[slot] = functools.partial(_held, weakref.ref(holder), name)
            elif former is not None and former() is x:
                self.guesses[slot] = former

    def make_chunks(self, values: Sequence[Any]) -> None:
        steps, outer = self.steps, self.outer
        known = {*self.guesses, *[i for i in range(outer) if self.values[i] is not None]}
        edges, longest = [0], _longest(self.ops)
        for k, step in enumerate(steps):
            # it begins anew where an input is not known before it arrives, and where it would be too long
            if k > edges[-1] and (k - edges[-1] >= longest or any([i < outer and i not in known for i in step.ins])):
                edges.append(k)
            known.update(step.ins)
        if len(steps) < CHUNK_LEAST * len(edges) or not all([i >= outer or i in known for i in self.read]):
            raise NoPlanError
        for start, stop in zip(edges, [*edges[1:], len(steps)], strict=True):
            self.chunks[start] = self.make_chunk(start, stop, values)

    def make_chunk(self, start: int, stop: int, values: Sequence[Any]) -> Chunk:
        steps = self.steps[start:stop]
        ends = self.read if self.backward and stop == len(self.steps) else None
        outs = [i for step in steps for i in step.outs]
        wanted = dict.fromkeys([*[i for step in steps for i in step.ins], *(ends or ())])
        reads = tuple([i for i in wanted if i < outs[0] and self.values[i] is None])
        place = {i: k for k, i in enumerate([*reads, *outs])}
        for i in wanted:
            place.setdefault(i, _Constant(self.values[i]))
        same = tuple([(step.op, tuple([place[i] for i in step.ins])) for step in steps])
        key = same, len(reads), None if ends is None else (self.program, tuple([place[i] for i in ends]))
        run, trees = _compiled.get((*key, self.context), _compile, key, [values[i] for i in reads], [values[i].aval for i in outs])
        for k, tree in enumerate(trees, start):
            self.steps[k] = self.steps[k]._replace(of=tree)
        guesses = tuple([(i, self.guesses[i]) for i in reads if i in self.guesses])
        return Chunk(stop, reads, guesses, outs[0], outs[-1] + 1, run)

    def fits(self, inputs: Values) -> bool:
        """Whether it may begin with these `inputs` of its first operation."""
        for x, slot in zip(inputs, self.steps[0].ins, strict=True):
            if slot in self.guesses:
                if self.guesses[slot]() is not x:
                    return False
            elif not _same(x, self.values[slot]) if self.values[slot] is not None else not self.is_typed(x, slot):
                return False
        return True

    def is_typed(self, x: Value, slot: int) -> bool:
        """Whether the outer value `x` is of the type of the one in the plan."""
        expected = self.types[slot]
        if type(x) is not ConcreteArray:
            return _is_constant(x) and _type(x) == expected
        found = x.aval
        if found is not expected:  # to compare them takes ten times as long
            if found != expected:
                return False
            self.types[slot] = found
        return not x.committed


class NoPlanError(Exception):
    """It cannot be run ahead."""


class _Constant(NamedTuple):
    """A constant in a key: equal to another of the same type and digits."""

    value: Any

    def __hash__(self) -> int:
        return hash(_digits(self.value))

    def __eq__(self, other: object) -> bool:
        return type(other) is _Constant and _same(self.value, other.value)


@functools.cache
def _is_number(kind: type) -> bool:
    # Python's, and JAX's subclasses of these, which have a dtype
    return kind in SCALARS or (issubclass(kind, (int, float, complex)) and kind.__module__.startswith("jax."))


def _is_constant(x: Value) -> bool:
    """Whether `x` is a number, or a small array of NumPy's: to a tape it is its digits, not a value with an identity."""
    return _is_number(type(x)) or (isinstance(x, (np.ndarray, np.generic)) and x.size <= MOST_ELEMENTS)


def _digits(x: Value) -> Any:
    return (_type(x), repr(x)) if _is_number(type(x)) else (_type(x), x.tobytes())


def _same(x: Value, y: Value) -> bool:
    """Whether two values are one, or constants with the same digits."""
    return x is y or (type(x) is type(y) and _is_constant(x) and _is_constant(y) and _digits(x) == _digits(y))


def _type(x: Value) -> Any:
    """What a plan depends on of an outer value, beside its digits."""
    if type(x) is not ConcreteArray and _is_constant(x):
        return type(x), getattr(x, "dtype", None), np.shape(x), getattr(x, "weak_type", None)
    if type(x) is not ConcreteArray or x.committed:
        raise NoPlanError
    return x.aval


def _attribute(holder: object, array: Value) -> str | None:
    return next((name for name, x in getattr(holder, "__dict__", {}).items() if x is array), None)


def _held(holder: Callable[[], Any], name: str) -> Any:
    return getattr(holder(), name, None)


def _longest(ops: Sequence[Op]) -> int:
    """How many operations a chunk has at most: where a loop was unrolled, of a number that makes chunks equal."""
    ids, middle = list(map(id, ops)), len(ops) // 3
    spans = range(1, min(CHUNK_MOST, middle) + 1)
    period = next((p for p in spans if ids[middle : middle + 2 * p] == ids[middle + p : middle + 3 * p]), CHUNK_MOST)
    return max(1, CHUNK_MOST // period) * period


def _compile(key: Any, reads: Sequence[Any], avals: Sequence[Any]) -> tuple[Callable[..., Any], list[Any]]:
    """The program of a chunk; and for each operation how what it returns is made of its outputs."""
    steps, count, ends = key
    trees: list[Any] = []

    def ahead(*values: Any) -> list[Any]:
        found, del_ = list(values), trees.clear()
        del del_
        for op, ins in steps:
            leaves, tree = jax.tree.flatten(runner.current.run(op, [x.value if type(x) is _Constant else found[x] for x in ins]))
            trees.append(None if jax.tree_util.treedef_is_leaf(tree) else tree)
            found += jax.lax.optimization_barrier(leaves) if BARRIER else leaves
        if ends is not None:
            program, read = ends
            found += derivative_op("gradient", sweep, program).fn(*[x.value if type(x) is _Constant else found[x] for x in read])
        return found[count:]

    compiled = jax.jit(ahead, compiler_options=OPTIONS)
    program = compiled.trace(*reads).jaxpr
    if program.effects or program.out_avals[: len(avals)] != list(avals):
        raise NoPlanError
    return compiled, trees

BARRIER = os.environ.get("BARRIER", "1") == "1"
OPTIONS = {"xla_disable_hlo_passes": "cse_barrier_expander"} if os.environ.get("OPTIONS", "1") == "1" else None

_plans: Cache[list[Plan]] = Cache(64)
_compiled: Cache[tuple[Callable[..., Any], list[Any]]] = Cache(256)
_sightings: Cache[Sighting] = Cache(1024)
depends_on_rules(_plans, lambda key: key[:1])
depends_on_rules(_compiled, lambda key: [op for op, _ in key[0]])
depends_on_rules(_sightings, lambda key: [step.op for step in key[0].steps])


# ---- learning --------------------------------------------------------------------------------------------------------


def run_sweeps(op: SweepsOp, inputs: Values) -> list[Any]:
    """What `op` gives, a sweep: computed ahead, or now."""
    query = inputs.query if type(inputs) is RecordedValues else None
    if query is None or early is None or op.take is not sweep or type(current_trace()) is not EvalTrace:
        return schedule.run_sweeps(op, *inputs)
    if query.ahead is None:
        _learn(query, op.program)
        return schedule.run_sweeps(op, *inputs)
    session, query.ahead = query.ahead, None
    session.plan.debt = max(0, session.plan.debt - 2)  # one was for having begun
    if session.back is None:
        return schedule.run_sweeps(op, *inputs)
    back = iter(session.back)
    found = [None if slot is None else next(back) for slot in op.program.sources]
    if compare is not None:
        compare("gradient", found, lambda: schedule.run_sweeps(op, *inputs))
    return found


def _learn(query: Query, program: Program) -> None:
    """Notes that `query`, which has this `program`, came once more; makes a plan of it when that pays."""
    global begun
    entries, recording = query.entries, query.recording
    if len(entries) < SHORTEST or not recording.marks or not trial._plain():
        return
    sighting = _sightings.get((program, query.read, len(entries)), Sighting)
    if not sighting.count and not early:
        whole, steps = len(program.steps) <= schedule.COMPILE_AT_MOST, len(entries) + len(program.steps)
        cost = COMPILE + (COMPILE_BACKWARD * steps if whole else COMPILE_STEP * min(len(entries), 2 * CHUNK_MOST))
        sighting.at = 3 + cost // (SAVED * len(entries))
    count = sighting.again() + 1
    if count == sighting.at - 1:
        values = query._numbers[1]
        sighting.before = [weakref.ref(x) if type(x) is ConcreteArray else x if _is_constant(x) else None for x in values]
    elif count == sighting.at:
        sighting.at *= LATER
        before, sighting.before = sighting.before, ()
        plain = all([_is_plain(*entry[:5]) for entry in entries]) and entries is recording.entries
        if not plain or query.watched or query.include_nondifferentiable:
            return
        try:
            plan = Plan(query, program, before)
        except NoPlanError:
            return
        plans = _plans.peek(plan.key) or _plans.get(plan.key, list)
        plans[:] = [plan, *[x for x in plans[:4] if (x.program, x.asked) != (program, plan.asked)]]
        begun = True


def _is_plain(op: Op, inputs: Values, outputs: Values, where: Any, kept: Any) -> bool:
    """Whether an operation is nothing but a function that is compiled, of arrays and numbers."""
    own = (op.call is None or cache.shadowing) and op.key is not op and not isinstance(op, PythonOp) and not op.runs_python
    return own and op.canonicalised() is op and kept is None and all([type(x) is ConcreteArray for x in outputs])


# ---- following -------------------------------------------------------------------------------------------------------

_recordings = active._eager_recordings


def follow(op: Op, inputs: Values) -> Any:
    """What `op` gives, if it was computed ahead; else None."""
    if type(trace_reference.value) is not EvalTrace or len(found := _recordings.active) != 1:
        return None
    recording = found[0]
    ahead = recording.ahead
    if not ahead:
        if ahead is not None or recording.entries:
            return None
        ahead = recording.ahead = _begin(recording, op, inputs)
        if not ahead:
            return None
    outputs = ahead.step(op, inputs)
    if outputs is None:
        recording.ahead = False
    return outputs


def _begin(recording: Recording, op: Op, inputs: Values) -> Any:
    """A session, if there is a plan that begins with `op`; else False."""
    if not recording.marks:
        return False
    where = recording.marks[0].where
    key = op, where and (id(where[0]), where[1]), len(inputs)
    plans = _plans.peek(key)
    for plan in plans or ():
        if plan.debt > MOST_FAILURES:
            plans[:] = [x for x in plans if x is not plan]
        elif plan.fits(inputs):
            plan.debt += 1
            return Session(plan)
    return False


class Session:
    """A block that follows a plan so far."""

    __slots__ = ("plan", "values", "position", "stop", "back")

    def __init__(self, plan: Plan):
        self.plan = plan
        self.values = plan.values[:]
        self.position = self.stop = 0
        self.back: Sequence[Any] | None = None

    def step(self, op: Op, inputs: Values) -> Any:
        """What `op` gives, or None if the plan has another operation, or other inputs, here."""
        plan, position, values = self.plan, self.position, self.values
        if position == len(plan.steps):
            return None
        expected, ins, outs, of = plan.steps[position]
        if op is not expected and (compare is None or op != expected) or len(inputs) != len(ins):
            return None
        if trace_context() != plan.context:
            return None
        chunk = None
        if position == self.stop:
            chunk = plan.chunks[position]
            for slot, guess in chunk.guesses:
                if values[slot] is None:
                    values[slot] = guess()
        for x, slot in zip(inputs, ins):
            y = values[slot]
            if x is not y:
                if y is None and chunk is not None and slot < plan.outer:
                    values[slot] = x
                elif not _same(x, y):
                    return None
        if chunk is not None and not self.launch(chunk):
            return None
        self.position = position + 1
        found = values[outs[0]] if of is None else of.unflatten([values[i] for i in outs])
        if compare is not None:
            compare(op.name, found, functools.partial(_without, op, inputs))
        return found

    def launch(self, chunk: Chunk) -> bool:
        """Runs `chunk`, if what it reads is of its types."""
        plan, values = self.plan, self.values
        given = [values[slot] for slot in chunk.reads]
        for slot, x in zip(chunk.reads, given):
            if slot < plan.outer and not plan.is_typed(x, slot):
                return False
        if not trial._plain():
            return False
        try:
            outputs = chunk.run(*given)
        except (RuntimeError, ValueError):  # an array was deleted, say: it is for the operation that reads it to tell
            return False
        count = chunk.last - chunk.first
        if len({*map(id, given), *map(id, outputs)}) != len(set(map(id, given))) + len(outputs):
            return False
        values[chunk.first : chunk.last] = outputs[:count]
        self.stop = chunk.stop
        if chunk.stop == len(plan.steps) and plan.backward:
            self.back = outputs[count:]
        return True

    def answer(self, query: Query) -> tuple[Program, list[Any]] | None:
        """The program of `query` and the values that it reads, if it is the plan's, and of the plan's recording."""
        plan, values, recording = self.plan, self.values, query.recording
        recording.ahead = False
        if (
            self.position != len(plan.steps)
            or type(current_trace()) is not EvalTrace
            or query.entries is not recording.entries
            or query.watched
            or query.include_nondifferentiable
            or query.held != plan.held
            or [begin for _, begin in recording.watched.values()] != plan.begins
            or trace_context() != plan.context
            or plan not in (_plans.peek(plan.key) or ())  # a gradient was registered
        ):
            return None
        asked = [*query.targets, *query.arrays, *[x for x, _ in recording.watched.values()]]
        for x, slot in zip(asked, plan.asked):
            if slot is not None and values[slot] is None and plan.is_typed(x, slot):  # no operation reads it
                values[slot] = x
        ids = [id(values[slot]) for slot in plan.arrays]
        slots = dict(zip(ids, plan.arrays, strict=True))
        written = [id(x) for entry in query.entries for x in entry[2]]
        if (
            len(slots) != len(ids)  # none takes the place of two
            or list(map(slots.get, map(id, asked))) != plan.asked
            or written != ids[len(ids) - len(written) :]
            or [entry[0] for entry in query.entries] != plan.ops
        ):
            return None
        read = [values[slot] for slot in plan.read]
        if any(map(is_deleted, read)):
            return None
        query.ahead = self
        return plan.program, read


def _without(op: Op, inputs: Iterable[Any]) -> Any:
    return runner.current.run(op, inputs)  # type: ignore[arg-type]
