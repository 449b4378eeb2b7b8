"""What the user's source has for operations that were recorded: an expression of one instruction."""

from __future__ import annotations

import ast
import contextlib
import functools
import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...jaxprs.dependence import is_key
from ...jaxprs.fence import trace_context
from ...jaxprs.types import JaxProgram, Value
from ...places import Place
from ...tape.derivative import DerivativeOp
from ...tape.operation import Op
from ...tape.recording import Entry
from ...tf.values.shown import unreadable
from ..writing.expressions import Operand, Range, closed_ranges, is_within, range_of
from ..writing.files import source_of
from ..writing.graph import ValueMap, ValueSet
from ..writing.indices import contents_of, has_index, index_arrays, is_index
from ..writing.spelled import Spelled, round_length, spelled
from .callers import Line, is_named
from .listing import bytecode, expression_at
from .spelling import WRITTEN_OUT, normal_form

# More operations are not the value of one expression that a person has written.
MOST = 64
# So many choices of arrays are tried.
MOST_ARRAYS = 12


class Computation(NamedTuple):
    """An operation of an expression."""

    op: Any
    inputs: Sequence[Any]
    outputs: Sequence[Any]


class Expression(NamedTuple):
    """The text for operations, with what is written for its holes, and what it gives; None for what nobody reads."""

    spelled: Spelled
    operands: Sequence[Any]
    results: Sequence[Any]


def place_of(line: Line) -> Place | None:
    """Where the innermost code is, not JAX's, that ran an operation."""
    if line.inside:
        return line.inside[-1]
    own = [each for each in line.calls if not is_named(each.code)]
    return (own[-1].code, own[-1].place) if own else None


def parts_of(lines: Sequence[Line]) -> Iterator[list[Line]]:
    """The lines; those that ran at one instruction together, those of each round of a loop for themselves."""
    runs = itertools.groupby(lines, key=lambda line: (place_of(line), tuple([each.call for each in line.calls])))
    for (place, _), group in runs:
        run = list(group)
        if place is None or len(run) > 1 and any(isinstance(line.op, DerivativeOp) for line in run):
            yield from ([line] for line in run)
            continue
        length = round_length([line.op for line in run])
        yield from (run[i : i + length] for i in range(0, len(run), length))


class Sources:
    """Finds the expressions for operations; what was tried is known when it comes again."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Spelled | None] = {}
        self._arrays: dict[Hashable, np.ndarray] = {}

    def has_array(self, x: Value) -> bool:
        """Whether it is one of NumPy's that expressions have in them, and no value of the recording."""
        return isinstance(x, np.ndarray) and any(x is each for each in self._arrays.values())

    def of_lines(
        self,
        part: Sequence[Line],
        place: Place,
        wanted: Sequence[Value],
        text_of: Callable[[Value], str | None],
        name_of: Callable[[Value], str | None],
        is_fixed: Callable[[Value], bool],
        recorded: tuple[Sequence[Entry], ValueMap[int]],
    ) -> Expression | None:
        """The expression that has the values `wanted` among its results, which `part`, the operations at `place`, computed.

        Args:
          text_of: the text of what is a number here.
          name_of: what the user's code calls a value.
          is_fixed: whether a value is the same whatever the function is called with.
          recorded: the entries, and by which of them values were made.
        """
        if len(part) > MOST or any(not _is_plain(line.op) for line in part):
            return None
        expression = expression_at(*place)
        if expression is None:
            return None
        modules = source_of(place[0].co_filename).modules
        if not _is_consistent(part):
            return None

        def written(closed: Sequence[Range], with_arrays: bool) -> Expression | None:
            made = _Made(part, place, closed, is_fixed, *recorded)
            steps = made.before(wanted)
            if steps is None:
                return None
            own = ValueSet(x for step in steps for x in step.outputs)
            values = [*ValueMap((x, None) for step in steps for x in step.inputs if x not in own)]
            texts = list(map(text_of, values))
            operands = [
                Operand(made.ranges(x), name_of(x) or made.name(x), text) for x, text in zip(values, texts, strict=True)
            ]
            # what no operation made may be an array that the expression has in it
            inputs = [x for x, text in zip(values, texts, strict=True) if text is None]
            baked = ValueSet(
                x
                for x in inputs
                if is_fixed(x)
                and not (unreadable(x) or is_key(x))
                and (is_index(x) if with_arrays else x not in recorded[1] and jnp.size(x) <= WRITTEN_OUT)
            )
            number_of = ValueMap((x, i) for i, x in enumerate([*values, *own]))
            wiring = [(step.op, *[tuple(map(number_of.__getitem__, side)) for side in step[1:]]) for step in steps]
            key = (
                *(place, with_arrays, tuple(wiring), tuple(texts), tuple(map(jax.typeof, inputs)), trace_context()),
                *(
                    tuple(map(number_of.__getitem__, wanted)),
                    tuple([contents_of(x) if x in baked else None for x in inputs]),
                ),
            )
            if key not in self._known:
                attempt = _Attempt(expression, modules, steps, values, operands, inputs, baked, wanted)
                self._known[key] = self._with_arrays(attempt) if with_arrays else attempt.found()
            return _expression(self._known[key], values, wanted)

        plain = written(closed_ranges(expression, modules), False)
        return written([range_of(expression)], True) if plain is None and has_index(expression) else plain

    def _with_arrays(self, attempt: _Attempt) -> Spelled | None:
        """The expression with arrays of NumPy's in it, which the operations do not take. Equal arrays are one."""
        known = [self._arrays.setdefault((x.dtype, contents_of(x)), x) for x in index_arrays(attempt.baked)]
        for count in (1, 2):
            for chosen in itertools.islice(itertools.combinations(known, count), MOST_ARRAYS):
                if (text := attempt.baking(chosen)) is not None:
                    return text
        return None


class _Attempt(NamedTuple):
    """What is known of operations for which the source's expression is tried."""

    expression: ast.expr
    modules: Mapping[str, str]
    steps: Sequence[Computation]
    values: Sequence[Value]
    operands: Sequence[Operand]
    inputs: Sequence[Value]
    baked: ValueSet
    wanted: Sequence[Value]

    def found(self) -> Spelled | None:
        """The expression, of all inputs, or without those that may be arrays in it."""
        program = functools.partial(_program, self.steps, self.inputs, self.wanted)
        text = _tried(self.expression, self.operands, program, self.modules)
        return self.baking(()) if text is None and self.baked else text

    def baking(self, arrays: Sequence[np.ndarray]) -> Spelled | None:
        """The expression without the inputs that may be arrays in it, and with these arrays."""
        pairs = zip(self.values, self.operands, strict=True)
        operands = [each._replace(text="None") if x in self.baked else each for x, each in pairs]
        left = [x for x in self.inputs if x not in self.baked]
        program = functools.partial(_program, self.steps, left, self.wanted)
        return _tried(self.expression, [*operands, *(Operand(array=x) for x in arrays)], program, self.modules)


def _expression(text: Spelled | None, values: Sequence[Any], wanted: Sequence[Any]) -> Expression | None:
    return text and Expression(text, [*values, *text.arrays], [None if i is None else wanted[i] for i in text.results])


def _tried(
    expression: ast.expr, operands: Sequence[Operand], program: Callable[[], JaxProgram], modules: Mapping[str, str]
) -> Spelled | None:
    with contextlib.suppress(Exception):  # what was recorded cannot be traced, or has no exact form: it runs Python
        return spelled(expression, operands, program(), normal_form, modules)
    return None


def _program(steps: Sequence[Computation], inputs: Sequence[Value], wanted: Sequence[Value]) -> JaxProgram:
    """What the steps do, as a program of `inputs`."""

    def run(*xs: Value) -> list[Value]:
        known = ValueMap(zip(inputs, xs, strict=True))
        for step in steps:
            outs = jax.tree.leaves(step.op.fn(*[known.get(x, x) for x in step.inputs]))
            known.update(zip(step.outputs, outs, strict=True))
        return [known[x] for x in wanted]

    program: JaxProgram = jax.make_jaxpr(run)(*inputs)
    return program


def _is_plain(op: Op) -> bool:
    return not isinstance(op, DerivativeOp) and not getattr(op, "results", 0)


def _is_consistent(part: Sequence[Line]) -> bool:
    """Whether each value varies in all of the operations or in none."""
    varying = ValueSet(line.inputs[i] for line in part for i in line.active_ins)
    return not any(x in varying and i not in line.active_ins for line in part for i, x in enumerate(line.inputs))


class _Made:
    """What computed the values of an expression: its operations, and those of fixed values, of its instruction or of expressions
    in it that take nothing but numbers."""

    def __init__(
        self,
        part: Sequence[Line],
        place: Place,
        closed: Sequence[Range],
        is_fixed: Callable[[Value], bool],
        entries: Sequence[Entry],
        made: ValueMap[int],
    ):
        self.place, self.closed, self.entries, self.made, self.is_fixed = place, closed, entries, made, is_fixed
        self.of_part = ValueMap((x, line) for line in part for x in line.outputs)

    def before(self, wanted: Sequence[Value]) -> list[Computation] | None:
        """The operations that lead to values, in their order; None if these are too many."""
        steps: dict[int, Computation] = {}
        waiting: list[tuple[Value, bool]] = [(x, False) for x in reversed(wanted)]
        while waiting:
            x, done = waiting.pop()
            step = self._step(x)
            if step is None or id(step.outputs[0]) in steps:
                continue
            if done:
                steps[id(step.outputs[0])] = step
                continue
            waiting.append((x, True))
            waiting += [(y, False) for y in step.inputs]
            if len(waiting) + len(steps) > 16 * MOST:
                return None
        return [*steps.values()]

    def _step(self, x: Value) -> Computation | None:
        if (line := self.of_part.get(x)) is not None:
            return Computation(line.op, line.inputs, line.outputs)
        entry = self._entry(x)
        if entry is None or not self._is_inside(entry):
            return None
        return Computation(entry.op, entry.inputs, entry.outputs)

    def _entry(self, x: Value) -> Entry | None:
        position = self.made.get(x)
        return None if position is None else self.entries[position]

    def _places(self, x: Value) -> Sequence[Place]:
        """The functions that ran when a value was made."""
        entry = self._entry(x)
        if entry is None:
            return ()
        return entry.calls or ((entry.where,) if entry.where else ())

    def _is_inside(self, entry: Entry) -> bool:
        where = next((each for each in reversed(entry.calls) if not is_named(each[0])), entry.where)
        if where is None or where[0] is not self.place[0] or not _is_plain(entry.op):
            return False
        if not all(map(self.is_fixed, (*entry.inputs, *entry.outputs))):
            return False
        own = bytecode(where[0]).positions[where[1] // 2]
        return where == self.place or any(is_within(own, each) for each in self.closed)

    def ranges(self, x: Value) -> frozenset[Range]:
        """Where in the code of the instruction a value was computed."""
        own = self.place[0]
        return frozenset(
            bytecode(own).positions[instruction // 2] for code, instruction in self._places(x) if code is own
        )

    def name(self, x: Value) -> str | None:
        """Under which name the code of the instruction stored a value."""
        own = [instruction for code, instruction in self._places(x) if code is self.place[0]]
        return next(filter(None, map(bytecode(self.place[0]).stores.get, own)), None)
