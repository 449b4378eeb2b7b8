"""What a tape has recorded, as data: operations in order, watched values with the beginning of each watch, variables read.

A value is identified by its ``jax.Array`` object, by `id`. The entry keeps the array alive, so no other object gets that `id`.
"""

from __future__ import annotations

import copy
import itertools
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import jax

from ..jaxprs import fence
from ..jaxprs.fence import ConcreteArray, Tracer
from ..jaxprs.types import Params, Primitive, Value, Where
from ..places import Place, SourceLine, caller, line_of

if TYPE_CHECKING:
    from .operation import Op


def type_of(x: Value) -> str:
    """The dtype and shape of an array, ``float32[3,4]``; of a scalar the dtype only."""
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        return type(x).__name__
    shape = ",".join(map(str, getattr(x, "shape", ())))  # JAX's subclasses of `float`, `int` have none
    return f"{dtype}[{shape}]" if shape else str(dtype)


def is_deleted(x: Value) -> bool:
    """Whether `x` was deleted, most likely by donation. Tracers and NumPy's numbers cannot be."""
    if type(x) is ConcreteArray:
        return bool(x.is_deleted())
    return isinstance(x, jax.Array) and not isinstance(x, Tracer) and x.is_deleted()


new_tuple = tuple.__new__  # three times as fast as a NamedTuple's own constructor, which is Python
next_number = itertools.count(1).__next__  # no two calls in this process get the same one


class Residuals(NamedTuple):
    """What a call leaves for its pullback: `arrays`, and the operation `op` that gives the recorded results and then `arrays`."""

    op: Op
    arrays: tuple[Any, ...]


class Entry(NamedTuple):
    """One recorded operation: `outputs = op(*inputs)`. An input that is not a ``jax.Array`` is a constant."""

    op: Op
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    where: Where = None  # as `caller` gives it
    residuals: Residuals | None = None
    calls: tuple[Place, ...] = ()  # as `places.call_stack` gives it

    @property
    def line(self) -> SourceLine | None:
        """The line of the user's code that ran it."""
        return line_of(self.where)

    def __repr__(self) -> str:
        ins, outs = (", ".join(map(type_of, side)) for side in (self.inputs, self.outputs))
        return f"{self.op.name}: {ins} -> {outs}" + (f"  ({self.line})" if self.line else "")


class Mark(NamedTuple):
    """An event of the tape itself (entered, reset, ...): its `kind`, how many entries came before, the line, what it is about."""

    kind: str
    position: int
    where: Where
    about: Any = None


class DerivativeSpan(NamedTuple):
    """The entries, from `start` up to `stop`, that one derivative ran, and its `outputs`.

    `as_one` gives the one operation that stands for them, and its inputs; None if there is none.
    """

    start: int
    stop: int
    as_one: Callable[[], tuple[Op, tuple[Any, ...]] | None]
    outputs: tuple[Any, ...]


class Recording:
    """What one tape has recorded. `watch_accessed`: whether trainable variables are watched when they are read."""

    def __init__(self, watch_accessed: bool = True):
        self.watch_accessed = watch_accessed
        self.x64 = fence.enable_x64.value
        self.entries: list[Entry] = []
        self.derivatives: list[DerivativeSpan] = []
        # id of a watched array -> (the array, kept alive; how many entries there were when the watch began)
        self.watched: dict[int, tuple[Any, int]] = {}
        # id of a watched variable -> (the variable, the arrays that it held when it was read)
        self.variables: dict[int, tuple[Any, dict[int, Value]]] = {}
        # for `explain`: events, and by id weak references to the values of the recordings before a reset
        self.marks: list[Mark] = []
        self.forgotten: dict[int, weakref.ref[Any]] = {}
        # id of the first output of a call with programs -> its primitive and parameters as they came: an Op has those of the
        # first call that was equal, which may be another function's
        self.bound: dict[int, tuple[Primitive, Params]] = {}
        # id of an output of a jitted call -> the input that the call returned unchanged as that output
        self.forwarded: dict[int, Value] = {}
        # id of what another library's variable holds -> what it held before jitted calls returned that unchanged
        self.origins: dict[int, Value] = {}
        # what a runner computed ahead of this recording, and answers queries from; None as long as it has not looked
        self.speculation: Any = None
        # how many entries a runner has looked at, and the ids of the arrays among theirs to which gradient may go back
        self.reached: tuple[int, set[int]] = (0, set())

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(
            "a tape can be neither pickled nor copied deeply: it identifies values by their arrays, and would not recognise "
            "copies of them. Take what is to be kept from it: gradients, or the function tape.as_function(target, sources)"
        )

    def mark(self, kind: str, about: Any = None) -> None:
        """Notes an event of the tape, for `explain`."""
        self.marks.append(Mark(kind, len(self.entries), caller(), about))

    def succeed(self, former: Recording) -> None:
        """Keeps weak references to the values in `former`, which this recording replaces."""
        values = [x for entry in former.entries for x in entry.outputs] + [x for x, _ in former.watched.values()]
        self.forgotten = {id(x): weakref.ref(x) for x in values if not isinstance(x, Tracer)}
        self.forgotten |= {key: ref for key, ref in former.forgotten.items() if ref() is not None}

    def continuation(self) -> Recording:
        """A copy that is independent: what one of the two records from here on is not in the other."""
        copied = Recording()
        vars(copied).update({name: copy.copy(value) for name, value in vars(self).items()})
        copied.variables = {key: (variable, dict(arrays)) for key, (variable, arrays) in self.variables.items()}
        copied.speculation, copied.reached = False, (0, set())
        return copied

    def folded(self) -> Recording:
        """This recording with one entry for each derivative, for those who look at it."""
        if not self.derivatives:
            return self
        shorter = self.continuation()
        shorter.derivatives, shorter.entries = [], []
        spans = self._folding()
        positions, stop = [], 0  # of each entry in the shorter recording
        for position, entry in enumerate(self.entries):
            if position >= stop:
                stop = spans[position][0].stop if position in spans else position + 1
                shorter.entries.append(spans[position][1] if position in spans else entry)
            positions.append(len(shorter.entries) - 1)
        positions.append(len(shorter.entries))
        shorter.watched = {key: (x, positions[begin]) for key, (x, begin) in self.watched.items()}
        shorter.marks = [mark._replace(position=positions[mark.position]) for mark in self.marks]
        return shorter

    def _folding(self) -> dict[int, tuple[DerivativeSpan, Entry]]:
        """The derivatives that can be one entry, by their first position: nothing else uses what is computed in them."""
        spans: dict[int, tuple[DerivativeSpan, Entry]] = {}
        stop = 0
        for span in sorted(self.derivatives, key=lambda span: (span.start, -span.stop)):
            if span.start >= stop and (folded := span.as_one()) is not None:
                spans[span.start], stop = (span, self._entry(span, *folded)), span.stop
        while True:
            inside = {i for span, _ in spans.values() for i in range(span.start, span.stop)}
            outside = [entry for i, entry in enumerate(self.entries) if i not in inside]
            used = {id(x) for entry in (*outside, *(entry for _, entry in spans.values())) for x in entry.inputs}
            leaking = [start for start, (span, _) in spans.items() if not self._is_closed(span, used)]
            if not leaking:
                return spans
            for start in leaking:
                del spans[start]

    def _is_closed(self, span: DerivativeSpan, used: set[int]) -> bool:
        """Whether of what is computed in it nothing but its outputs is among the values `used` elsewhere, by their ids."""
        results = {id(x) for x in span.outputs}
        made = {id(x) for entry in self.entries[span.start : span.stop] for x in entry.outputs}
        return len(results) == len(span.outputs) > 0 and results <= made and used.isdisjoint(made - results)

    def _entry(self, span: DerivativeSpan, op: Op, inputs: tuple[Any, ...]) -> Entry:
        first = min(self.entries[span.start : span.stop], key=lambda entry: len(entry.calls))
        return Entry(op, inputs, span.outputs, first.where, None, first.calls)

    def watch(self, array: Value, variable: Any = None) -> None:
        """Watches `array`, which `variable` holds now, if one is given. Each later array of it is watched when it is read."""
        if variable is not None:
            self.variables.setdefault(id(variable), (variable, {}))[1][id(array)] = array
        self.watched.setdefault(id(array), (array, len(self.entries)))

    def note_replaced(self, old: Any, new: Any) -> None:
        """Notes that another library's variable holds `new` in place of `old`.

        To a derivative both are one value where `new` is what a jitted call returned when it was given `old`, unchanged.
        """
        if self.forwarded.get(id(new)) is old:
            self.origins[id(new)] = self.origins.get(id(old), old)
