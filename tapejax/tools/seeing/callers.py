"""In which calls of functions each operation was run, and what these functions are called."""

from __future__ import annotations

import itertools
import os.path
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from types import CodeType
from typing import NamedTuple

from ...jaxprs.types import Positions, Value
from ...places import NAMED, Place, is_jaxs, serves
from ...tape.derivative import DerivativeOp
from ...tape.operation import Op
from ...tape.recording import Entry, next_number
from ..writing.files import source_of
from ..writing.graph import ValueMap, ValueSet
from .listing import bytecode, expression_at, returned_by


class Running(NamedTuple):
    """A function that runs, and where; each call of it has a number of its own."""

    code: CodeType
    instruction: int  # -1 where what it gives is only a part of what is stored
    call: int
    place: int  # the instruction


class Line(NamedTuple):
    """One operation. `calls`: the functions that run, from that of the block inwards; `inside`: where a library's functions are,
    called by the last of them, that are not printed."""

    op: Op
    inputs: Sequence[Value]
    outputs: Sequence[Value]
    active_ins: Positions
    active_outs: Positions
    calls: tuple[Running, ...] = ()
    inside: Sequence[Place] = ()


def inside_of(entry: Entry) -> Sequence[Place]:
    """`Line.inside` of an entry."""
    printed = [i for i, (code, _) in enumerate(entry.calls) if i == 0 or is_function(code)]
    return entry.calls[printed[-1] + 1 :] if printed else ()


def stored_by(here: Running, line: Line, others: Iterable[Sequence[Running]]) -> str | None:
    """The name under which an instruction stores the result of an operation. None where that is a leaf of a tree: it made one of
    the `others`, too, each of which is the calls in which a value was made."""
    name = bytecode(here.code).stores.get(here.instruction)
    several = line.inside and not serves(here.code.co_filename) and any(here in calls for calls in others)
    return None if several else name


def stored_inside(line: Line, later: Line | None) -> str | None:
    """What a library's function calls the result of an operation; `later` is the next one. The user's function may have that name
    for something else."""
    inside = [place for place in line.inside if later is None or place not in later.inside]
    names = (bytecode(code).stores.get(instruction) for code, instruction in inside)
    taken = () if serves(line.calls[-1].code.co_filename) else line.calls[-1].code.co_varnames
    return next((name for name in names if name and name not in taken), None)


def calls_of(entries: Sequence[Entry]) -> list[tuple[Running, ...]]:
    """The calls that each entry was run in: of the block that records, and of functions that are printed."""
    before: tuple[Place, ...] = ()
    calls: list[int] = []
    stacks = [entry.calls or ((entry.where,) if entry.where else ()) for entry in entries]
    ran: dict[CodeType, set[int]] = {}  # the instructions that ran operations
    for code, instruction in itertools.chain.from_iterable(stacks):
        ran.setdefault(code, set()).add(instruction)
    found = []
    for i, places in enumerate(stacks):
        again = i > 0 and entries[i - 1].op == entries[i].op
        calls = calls[: _shared(before, places, again, ran)]
        calls += [next_number() for _ in places[len(calls) :]]
        running = [_running(*place, call) for place, call in zip(places, calls, strict=True)]
        for j, each in enumerate(running[1:]):
            if each.code.co_name.endswith("comp>") or each.code.co_name == "<genexpr>":
                running[j] = running[j]._replace(instruction=-1)
        found.append(tuple([each for j, each in enumerate(running) if j == 0 or is_function(each.code)]))
        before = places
    return found


def _running(code: CodeType, instruction: int, call: int) -> Running:
    end = bytecode(code).comprehensions.get(instruction)
    return Running(code, instruction, call, instruction) if end is None else Running(code, -1, call, end)


def inner_call(calls: Sequence[Running], depth: int) -> int | None:
    """That in which something ran that the function at a depth called; None if it ran in that function itself."""
    return calls[depth + 1].call if len(calls) > depth + 1 else None


def depth_of(lines: Sequence[Line]) -> int:
    """The depth of the innermost call that all of them were run in."""
    return max(len(os.path.commonprefix([[each.call for each in line.calls] for line in lines])) - 1, 0)


def _shared(before: Sequence[Place], after: Sequence[Place], again: bool, ran: Mapping[CodeType, Set[int]]) -> int:
    """In how many calls both of two operations were run, the second right after the first. `again`: they do the same; `ran`: the
    instructions of each code object that ran operations."""
    level = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), None)
    if level is None:  # one instruction may run several operations, but not twice the same
        if len(before) != len(after) or not again:
            return min(len(before), len(after))
        level = len(after) - 1
        if any(other < after[level][1] for other in ran[after[level][0]]):  # a new call would have run these first
            return len(after)
    elif before[level][0] is not after[level][0]:
        return level
    elif after[level][1] > before[level][1]:
        return level + 1
    for outer in reversed(range(level + 1)):  # the instruction was run before: in a loop, which may be a library's
        code, instruction = after[outer]
        loop = next((each for each in bytecode(code).rounds if each[0] <= instruction <= each[1]), None)
        others = ran[code] - {instruction}
        if outer < level and any(loop is None or loop[0] <= other <= loop[1] for other in others):
            return level  # these would have been run again, too
        if loop is not None:
            return outer + 1
    return max(level, 1)


class Results:
    """Which results of a call are used outside of it, or those of another call that does the same.

    Args:
      lines: all that is recorded.
      ends: the values that are asked for.
    """

    def __init__(self, lines: Sequence[Line], ends: Sequence[Value]):
        inside: dict[int, tuple[CodeType, int, list[Line]]] = {}
        users = ValueMap[list[set[int]]]((x, [set()]) for x in ends)
        for line in lines:
            for depth, each in enumerate(line.calls[1:], 1):
                inside.setdefault(each.call, (each.code, depth, []))[2].append(line)
            around = {each.call for each in line.calls}
            for x in () if isinstance(line.op, DerivativeOp) else line.inputs:  # what it takes is computed again
                users.setdefault(x, []).append(around)
        self._used: dict[Hashable, dict[int, set[tuple[int, int]]]] = {}
        for call, (code, _, own) in inside.items():
            results = (
                (place, x) for place, x in _numbered(own) if any(call not in around for around in users.get(x, ()))
            )
            self._used.setdefault(_signature(code, own), {})[call] = {place for place, _ in results}

    def of(self, code: CodeType, lines: Sequence[Line], wanted: Sequence[Value], depth: int) -> list[Value]:
        """The results of a call of `code`, which ran `lines`, in the order in which it returns them: `wanted` ones and others."""
        calls, own = self._used.get(_signature(code, lines), {}), ValueSet(wanted)
        here = lines[-1].calls[depth].call
        used = {place for call, places in calls.items() if call != here for place in places}
        every = [(place, x) for place, x in _numbered(lines) if x in own or place in used]
        places = [returned_at(lines[i], depth) for (i, _), x in every]
        if None not in places and len({*places}) == len(places):
            every = [pair for _, pair in sorted(zip(places, every, strict=True), key=lambda pair: pair[0] or 0)]
        return [x for _, x in every]


def generated(lines: Sequence[Line], depth: int, ends: Sequence[Value]) -> ValueMap[str]:
    """What the source calls the values that a generator gives, as in ``a, b = (f(x) for x in pair)``. `ends`: what is used after
    the lines."""
    called = ValueMap[str]()
    where = [line.calls[depth] if depth < len(line.calls) else None for line in lines]
    for here, run in itertools.groupby(range(len(lines)), key=where.__getitem__):
        names = bytecode(here.code).parts.get(here.place) if here is not None and here.instruction < 0 else None
        if names:
            own = [*run]
            after = ValueSet([*ends, *(x for line in lines[own[-1] + 1 :] for x in line.inputs)])
            given = [x for i in own for x in lines[i].outputs if x in after]
            called.update(zip(given, names, strict=True) if len(given) == len(names) else ())
    return called


def returned_at(line: Line, depth: int) -> int | None:
    """At which place of the tuple that a function returns the result of `line` is, which ran in the function at `depth`."""
    code, instruction, _, place = line.calls[depth]
    parts = returned_by(code)
    return parts.get(bytecode(code).positions[place // 2], parts.get(bytecode(code).stores.get(instruction)))


def _numbered(lines: Sequence[Line]) -> list[tuple[tuple[int, int], Value]]:
    return [((i, j), line.outputs[j]) for i, line in enumerate(lines) for j in line.active_outs]


def _signature(code: CodeType, lines: Sequence[Line]) -> Hashable:
    """Equal where two calls run the same operations."""
    made = ValueMap((x, place) for place, x in _numbered(lines))
    return code, tuple([(line.op.name, line.active_outs, *map(made.get, line.inputs)) for line in lines])


def is_function(code: CodeType) -> bool:
    """Whether calls of `code` are printed as calls: a function of the user's, or what a layer of a library computes."""
    if is_named(code):
        return True
    if serves(code.co_filename):
        (of,) = code.co_qualname.split(".")[-2:-1] or ("<locals>",)
        return of[0] not in "<_" and (  # of a class that is no wrapper of the library's own
            code.co_name == "call" or code.co_name == "__call__" and "keras" not in code.co_filename
        )
    return not _name(code).startswith("<")


def _name(code: CodeType) -> str:
    """The name of a function; of a lambda that under which it is stored."""
    called = code.co_name
    return source_of(code.co_filename).lambdas.get(code.co_firstlineno, called) if called == "<lambda>" else called


def is_named(code: CodeType) -> bool:
    """Whether it is one of JAX's functions that printed code calls."""
    return code.co_name in NAMED and is_jaxs(code.co_filename)


def call_name(code: CodeType) -> str:
    """What a function that is printed for calls of `code` is called."""
    called, of = code.co_name in ("call", "__call__"), code.co_qualname.split(".")[-2:-1]
    if not called or of in ([], ["<locals>"]):
        return "model" if called else _name(code).strip("_") or "function"
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", of[0]).lower()
    return "model" if name in ("functional", "sequential") else name.removeprefix("base_").removesuffix("_wrapper")


def name_in(caller: Running, code: CodeType) -> str:
    """`call_name`; of a model of layers, or a loss, what the user's code calls it where it is called."""
    name, outer = call_name(code), caller.code
    if name not in ("model", "loss_function") or serves(outer.co_filename):
        return name
    of = getattr(expression_at(outer, caller.place), "func", None)
    called = getattr(of, "attr", "") or getattr(of, "id", "")
    return called if called[:1].isalpha() else name
