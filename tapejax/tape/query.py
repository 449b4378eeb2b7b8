"""A `Query` of a recording: targets and sources go in; the program between them and its recorded values come out.

`gradient`, `jacobian`, `as_function`, `explain`, `steps`, `draw` and the accumulator all begin with one.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import jax
import jax.numpy as jnp

from ..jaxprs import fence
from ..jaxprs.cache import Cache
from ..jaxprs.dependence import SCALARS, kind_of
from ..jaxprs.fence import ConcreteArray, current_trace, trace_context, under
from ..jaxprs.types import Value
from . import slicing
from .operation import Op, PythonOp, apply
from .recording import Recording, is_deleted
from .rules import depends_on_rules

Method = TypeVar("Method", bound=Callable[..., Any])


def in_recorded_types(method: Method) -> Method:
    """Has `method` run with 64-bit types on or off as they were when the object's `_recording` began.

    A derivative in 32 bits of what was computed in 64 bits would fail, or be rounded.
    """

    @functools.wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        recording = self._recording
        if recording is None or recording.x64 == fence.enable_x64.value:
            return method(self, *args, **kwargs)
        with jax.enable_x64(recording.x64):
            return method(self, *args, **kwargs)

    return cast(Method, run)


class Source(NamedTuple):
    """What a derivative is taken with respect to.

    A `holder` is a variable that holds `array` now: every array that it held when it was read counts. `watched`: whether it
    counts as watched from the beginning.
    """

    array: Value
    holder: Any = None
    watched: bool = False


class RecordedValues(list[Any]):
    """The values of a query's program, with the query itself."""

    def __init__(self, values: Iterable[Any], query: Query):
        super().__init__(values)
        self.query = query


class Query:
    """How the arrays `targets` depend on `sources` in a recording.

    An operation counts if one of its inputs is watched when it runs, or was computed from a watched value. Then every source
    among its inputs counts, also one that is watched only later; what a holder held counts only from the beginning of its watch.
    TensorFlow does the same: its tape keeps an operation as a whole or not at all, and reading a variable is an operation.

    Args:
      recording: of a tape.
      targets: arrays.
      sources: arrays, or `Source`s.
      include_nondifferentiable: whether to follow also what carries no gradient: integers, comparisons, `stop_gradient`.
      with_residuals: whether to use what large calls kept for their pullbacks. Then the derivative must not be recorded, and
        not be differentiated: residuals are not values of a tape, and a rule is taken for what it does in a first derivative.
    """

    def __init__(
        self,
        recording: Recording,
        targets: Sequence[Any],
        sources: Sequence[Any],
        *,
        include_nondifferentiable: bool = False,
        with_residuals: bool = False,
    ):
        self.recording = recording
        self.entries = recording.entries
        if with_residuals and any(map(_residuals, self.entries)):
            self.entries = [
                x if x.residuals is None else x._replace(op=x.residuals.op, outputs=(*x.outputs, *x.residuals.arrays))
                for x in self.entries
            ]
        self.targets, self.sources, self.with_residuals = targets, sources, with_residuals
        self.include_nondifferentiable = include_nondifferentiable
        self.arrays: list[Any] = []  # of the sources; of a holder, all that it held
        self.owners: list[int] = []  # for each array the position of its source
        self.held: list[bool] = []  # for each array whether its source is a holder
        self.watched: list[Any] = []
        self.read: tuple[int, ...] = ()  # the numbers of the values that its program reads, once that is known
        self.speculation: Any = None  # what has answered it, see `Recording`
        self._numbers: tuple[slicing.NumberedRecording, list[Value]] | None = None
        self._count = len(sources)
        for position, one in enumerate(sources):
            source = one if type(one) is Source else Source(one)
            _, read = recording.variables.get(id(source.holder), (None, None))
            now = source.array if source.holder is None else recording.origins.get(id(source.array), source.array)
            held = list(read.values()) if read else [now]
            if read and id(now) not in read and any([now is x for x in targets]):
                held.append(now)  # a target, which was assigned to the holder and not read since
            self.arrays += held
            self.owners += [position] * len(held)
            self.held += [source.holder is not None] * len(held)
            if source.watched:
                self.watched.append(now)

    numbered = property(lambda self: self.numbers[0], doc="The recording as data, with the targets and sources in it.")

    @property
    def numbers(self) -> tuple[slicing.NumberedRecording, list[Value]]:
        """The recording as data, with the targets and sources in it; and the value of each number."""
        # a `cached_property` of Python 3.11 has one lock for all threads, and a rule may be traced
        if self._numbers is None:
            self._numbers = self._number()
        return self._numbers

    def _number(self) -> tuple[slicing.NumberedRecording, list[Value]]:
        sides = [*itertools.chain.from_iterable(map(_sides, self.entries))]
        flat = [*itertools.chain.from_iterable(sides), *self.targets, *self.arrays, *self.watched]
        # In calls of C where there is one value or a thousand. A value's number counts the values that came first before it.
        ids = list(map(id, flat))
        if not SCALARS.isdisjoint(map(type, flat)):  # the identity of a number means nothing: each is another value
            ids = [~i if type(x) in SCALARS else ids[i] for i, x in enumerate(flat)]
        value_of = dict(zip(ids, flat, strict=True))
        numbers = dict(zip(value_of, range(len(value_of)), strict=True))
        values = list(value_of.values())
        slots = tuple(map(numbers.__getitem__, ids))
        ops = tuple(map(_op, self.entries))
        if not _PLAIN.issuperset(map(type, ops)):
            ops = tuple([op.canonicalised() for op in ops])
        bounds = tuple(itertools.accumulate(map(len, sides), initial=0))
        at, starting = bounds[-1], bounds[-1] + len(self.targets)
        slots_of = slots[at:starting], slots[starting : starting + len(self.arrays)]  # the targets, the sources
        watched = [(0, slot) for slot in slots[starting + len(self.arrays) :]]
        watched += [(begin, numbers[key]) for key, (_, begin) in self.recording.watched.items() if key in numbers]
        later = {slot for begin, slot in watched if begin}
        late = tuple([slot for slot, held in zip(slots_of[1], self.held, strict=True) if slot in later and not held])
        kinds = tuple(map(_aval if _ARRAYS.issuperset(map(type, values)) else kind_of, values))
        return slicing.NumberedRecording(
            ops,
            slots[:at],
            bounds,
            kinds,
            tuple(watched),
            late,
            *slots_of,
            self.include_nondifferentiable,
            trace_context(),
        ), values

    def active(self) -> Iterator[slicing.Link]:
        """The entries through which a source reaches a value, in order."""
        return slicing.active_entries(self.numbered, self.entries)

    def relevant(self) -> tuple[dict[int, slicing.Step], set[int]]:
        """The entries that lead from a source to a target, see `relevant_entries`."""
        return slicing.relevant_entries(self.numbered, self.entries)

    def program(self) -> tuple[slicing.Program, list[Any]]:
        """The program from the sources' arrays to the targets, and the recorded value of every slot that is read."""
        if self.recording.speculation and (foreseen := self.recording.speculation.answer(self)) is not None:
            return foreseen[0], RecordedValues(foreseen[1], self)
        # a PythonOp equals nothing else, and a cache would keep the arrays of its call alive
        if any([issubclass(kind, PythonOp) for kind in set(map(type, self.numbered.ops))]):
            program, self.read = slicing.slice_program(self.numbered, self.entries)
            program = slicing.for_perturbed(program) if self.with_residuals else program
        else:
            program, self.read = _programs.get(self.numbered, slicing.slice_program, self.numbered, self.entries)
        return program, RecordedValues(map(self.numbers[1].__getitem__, self.read), self)

    def folded(self) -> Callable[[], tuple[slicing.Program, list[Any]]] | None:
        """What gives the program in which each derivative is one operation; None if there is no derivative in it."""
        if not self.recording.derivatives:
            return None
        snapshot = self.recording.continuation()
        return lambda: Query(snapshot.folded(), self.targets, self.sources).program()

    def derivative(self, take: Callable[[slicing.Program, list[Any]], Sequence[Any]]) -> list[Any]:
        """For each source the sum of what ``take(program, values)`` returns for its arrays, or None.

        Raises:
          RuntimeError: a recorded value was deleted since.
        """
        program, values = self.program()
        sums: list[Any] = [None] * self._count
        try:
            parts = under(current_trace(), take, program, values)  # restores the trace, even after an interrupt in JAX
        except (RuntimeError, ValueError) as error:
            if not any(map(is_deleted, values)):
                raise
            raise RuntimeError(_deleted(self.recording)) from error
        for i, x in zip(self.owners, parts, strict=True):
            if x is not None:
                sums[i] = x if sums[i] is None else apply(jnp.add, sums[i], x)
        return sums


_op, _sides, _residuals = operator.itemgetter(0), operator.itemgetter(1, 2), operator.itemgetter(4)  # of an entry
_aval = operator.attrgetter("aval")  # `kind_of` an array
_ARRAYS, _PLAIN = frozenset((ConcreteArray,)), frozenset((Op,))

_programs: Cache[tuple[slicing.Program, tuple[int, ...]]] = Cache(512)
depends_on_rules(_programs, lambda numbered: numbered.ops)


def _deleted(recording: Recording) -> str:
    users = [entry.op.name for entry in recording.entries if any(map(is_deleted, entry.inputs))]
    return (
        f"a value that the tape recorded, for {', '.join(dict.fromkeys(users[:3])) or 'the target'}, was deleted since: most "
        "likely it was donated to a jitted function (donate_argnums). Do not donate what a tape has recorded."
    )
