"""The backward pass, one operation at a time, and the first number in it that is none.

The sweep is `tape.sweep.sweep_steps`, the one that `gradient` runs: what is shown is what happens.
"""

from __future__ import annotations

import html
import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ...execution.host.numpy_errors import with_errors
from ...jaxprs.fence import Tracer
from ...jaxprs.types import Value, Values
from ...places import SourceLine
from ...tape import active, structures
from ...tape import sweep as derivatives
from ...tape.derivative import DerivativeOp
from ...tape.gradient_tape import GradientTape
from ...tape.operation import Op, PythonOp
from ...tape.pullback import CustomOp, PullbackOp
from ...tape.query import Query
from ...tape.recording import Entry, type_of
from ...tape.slicing import Program, Step
from ...tape.structures import conjugate, sources_of, targets_of
from ...tf.values import reading
from ...tf.values.errors import NonFiniteError
from ...tf.values.shown import bold, faint, is_elsewhere, page, small_html, table_html, value_text
from ...tf.values.types import Array, Nest
from ..writing.graph import ValueMap
from . import listing
from .inside import is_inexact, on_a_tape, program_of
from .listing import Names
from .rounds import Cotangents, Part, inside
from .tables import cut, line_text, terminal_width

# ---- step by step ---------------------------------------------------------------------------------------------------


class BackwardStep(NamedTuple):
    """One operation of the reverse sweep.

    `incoming` are the cotangents of its outputs, complete; `outgoing` what it adds to those of its inputs. Both are
    pairs (name, array). `number` is the operation's place on the tape, and `of` the name of what is differentiated.
    """

    number: int
    entry: Entry
    of: str
    incoming: tuple[tuple[str, Array], ...]
    outgoing: tuple[tuple[str, Array], ...]

    @property
    def operation(self) -> str:
        return listing.name_of(self.entry)

    @property
    def line(self) -> SourceLine | None:
        return self.entry.line

    def __str__(self) -> str:
        head = f"{self.number:>4}  {self.operation}   {line_text(self.line)}".rstrip()
        return "\n".join([cut(head, terminal_width()), *self._rows()])

    def _rows(self) -> Iterator[str]:
        for arrow, values in (("in ", self.incoming), ("out", self.outgoing)):
            for name, x in values:
                head = f"      {arrow}  ∂{self.of}/∂{name}: {type_of(x)} = "
                yield head + value_text(x, len(head))

    def _repr_html_(self) -> str:
        return page(_html_rows([self]))


class Backward:
    """The backward pass of `GradientTape.steps`: iterate over its steps, as often as you like.

    `gradients` are what the sweep arrives at: exactly those of `GradientTape.gradient`, structured as its sources.
    """

    def __init__(
        self, tape: GradientTape, target: Nest, sources: Nest, output_gradients: Nest = None, names: Names | None = None
    ):
        recording = tape._usable().folded()
        targets, self.structure = targets_of(target), sources_of(sources)
        ends = [leaf.array for leaf in targets.leaves]
        self.query = Query(recording, ends, [leaf.source(recording) for leaf in self.structure.leaves])
        relevant, _ = self.query.relevant()
        self.positions = list(relevant)  # on the tape, of the steps of the program
        self.program, self.values = self.query.program()
        with active.outside():
            if output_gradients is None:
                self.seeds = derivatives.ones(self.program, self.values)
            else:
                self.seeds = list(map(conjugate, structures.current.cotangents(targets, output_gradients)))
        self.names = names or Names(recording)
        self.of = self.names.of(ends[0]) if len(ends) == 1 else "(sum of targets)"
        self.recording = recording

    def __len__(self) -> int:
        return len(self.program.ops)

    def __iter__(self) -> Iterator[BackwardStep]:
        for number, entry, came, left in self.cotangents():
            incoming, outgoing = self._named(entry.outputs, came), self._named(entry.inputs, left)
            yield BackwardStep(number, entry, self.of, incoming, outgoing)

    def cotangents(self) -> Iterator[tuple[int, Entry, dict[int, Array], dict[int, Array]]]:
        """Of each step its number on the tape, its entry, what comes to its outputs, and what it adds to its inputs."""
        ct: dict[int, Array] = {}
        for number, entry, step, back in self.sweep(ct):
            came = {j: ct[step.outs[j]] for j in step.active_outs if step.outs[j] in ct}
            left = {i: x for i, x in zip(step.active_ins, back, strict=True) if x is not None}
            yield number, entry, came, left

    def sweep(self, ct: dict[int, Array]) -> Iterator[tuple[int, Entry, Step, Sequence[Array | None]]]:
        """`tape.sweep.sweep_steps` with the entries; `ct` is filled with the cotangents by slot, as there."""
        steps = self.program.steps
        sweep = derivatives.sweep_steps(self.program, self.values, self.seeds, ct)
        while True:
            # no tape records this; but not while the user has the step
            with active.outside(), reading.context.setting(looking=True):
                try:
                    at, back = next(sweep)
                except StopIteration:
                    return
            position = self.positions[at]
            yield position, self.recording.entries[position], steps[at], back

    def _named(self, values: Values, cotangents: dict[int, Array]) -> tuple[tuple[str, Array], ...]:
        return tuple([(self.names.of(values[i]), x) for i, x in cotangents.items()])

    def zeros(self) -> Iterator[tuple[int, tuple[bool, set[int], set[int]]]]:
        """Of each step its number on the tape; whether only zeros come to it, the inputs for which only zeros go out, and those
        among them for which these underflow; where only zeros come, as if something else came."""
        ct: dict[int, Array] = {}
        for number, _, step, back in self.sweep(ct):
            active_outs = tuple([j for j in step.active_outs if step.outs[j] in ct])
            incoming = [ct[step.outs[j]] for j in active_outs]
            silent, own = not any(map(is_nonzero, incoming)), isinstance(step.op, PullbackOp)
            if silent and not own:
                back = self._pulled_back(step, active_outs, list(map(_of_no_symmetry, incoming)))
            zero = set() if silent and own else _zeros(step, back)
            underflown = set()
            if zero and not silent and not isinstance(step.op, PythonOp) and not any(map(is_elsewhere, incoming)):
                back = self._pulled_back(step, active_outs, _scaled_up(incoming))
                pairs = zip(step.active_ins, back, strict=True)
                underflown = {i for i, x in pairs if i in zero and is_nonzero(x) and not _is_not_finite(x)}
            yield number, (silent, zero, underflown)

    def _pulled_back(self, step: Step, outs: Sequence[int], cotangents: Sequence[Array]) -> Sequence[Array | None]:
        """What a step gives its active inputs where other cotangents come to its outputs `outs`."""
        inputs = [self.values[slot] for slot in step.ins]
        with active.outside(), reading.context.setting(looking=True):
            return step.op.pull_back(step, inputs, dict(zip(outs, cotangents, strict=True)))

    @property
    def gradients(self) -> Nest:
        return self.structure.pack(self.found())

    def found(self) -> list[Array | None]:
        """The gradient of each source, None where nothing came back."""
        ct: dict[int, Array] = {}
        deque(self.sweep(ct), 0)
        return self.gathered(ct)

    def gathered(self, ct: dict[int, Array]) -> list[Array | None]:
        """The gradient of each source, None where nothing came back, of the cotangents of the whole sweep."""
        slots = self.program.sources
        with active.outside():
            return self.query.derivative(lambda *_: [None if x is None else conjugate(ct.get(x)) for x in slots])

    def directions(self, tangents: Nest = None) -> list[Array]:
        """The tangent of each source, as given, or ones."""
        leaves = self.structure.leaves
        if tangents is None:
            with active.outside():
                return [jnp.ones_like(leaf.array) for leaf in leaves]
        return structures.current.tangents(self.structure, tangents)

    def active(self) -> dict[int, Array]:
        """The arrays of the sources, and of what is computed from them, by slot."""
        arrays = {slot: x for slot, x in zip(self.program.sources, self.query.arrays, strict=True) if slot is not None}
        for position, step in zip(self.positions, self.program.steps, strict=True):
            arrays |= {step.outs[j]: self.recording.entries[position].outputs[j] for j in step.active_outs}
        return arrays

    def tangents(self, directions: Sequence[Array]) -> ValueMap[Array]:
        """The tangents of the sources and of what is computed from them: one forward sweep."""
        starts = [directions[i] for i in self.query.owners]
        arrays = self.active()
        with active.outside():
            tangents_out = derivatives.push(replace(self.program, targets=tuple(arrays)), self.values, starts)
        return ValueMap((x, t) for x, t in zip(arrays.values(), tangents_out, strict=True) if t is not None)

    def _heading(self) -> str:
        seeds = [(t, x) for t, x in zip(self.program.targets, self.seeds, strict=True) if t is not None]
        head = f"Backward pass of {self.of}: {len(self)} operation{'' if len(self) == 1 else 's'}"
        if len(seeds) == 1:
            head += f", from ∂{self.of}/∂{self.of} = {value_text(seeds[0][1])}"
        return head

    def _parts(self) -> tuple[list[BackwardStep], str, list[BackwardStep]]:
        """The steps that are shown first, how many are left out then, and those that are shown last."""
        walk = iter(self)
        first = list(itertools.islice(walk, listing.FIRST if len(self) > listing.ROWS else None))
        last = deque(walk, listing.LAST)
        left_out = len(self) - len(first) - len(last)
        return first, f"{left_out} more: iterate over the steps for them" if last else "", list(last)

    def __str__(self) -> str:
        first, more, last = self._parts()
        return "\n".join([self._heading(), *map(str, first), *([f"   …  {more}"] if more else []), *map(str, last)])

    def _repr_html_(self) -> str:
        first, more, last = self._parts()
        body = f"<div>{bold(self._heading())}</div>{_html_rows(first, head=True)}"
        return page(body + (f"<div>{faint(f'… {more}')}</div>{_html_rows(last)}" if more else ""))


def _html_rows(steps: Sequence[BackwardStep], head: bool = False) -> str:
    def cotangents(values: Sequence[tuple[str, Array]]) -> str:
        named = [(html.escape(f"∂{steps[0].of}/∂{name}"), x) for name, x in values]
        return "".join(f"<div>{name} {faint(type_of(x))}{small_html(x)}</div>" for name, x in named)

    def place(line: SourceLine | None) -> str:
        return f"{faint(line)} {html.escape(line.text)}" if line else ""

    rows = [(step.number, step.operation, step.incoming, step.outgoing, step.line) for step in steps]
    titles = ("#", "operation", "cotangent that comes in", "cotangents that go out", "line")
    return table_html(rows, (faint, bold, cotangents, cotangents, place), titles if head else ())


def is_nonzero(x: Array) -> bool:
    """Whether an element of an array of known values is not zero."""
    return bool(jnp.any(x) if is_elsewhere(x) else np.asarray(x).any())


def wide(x: Any) -> np.ndarray:
    """The numbers of an array in a dtype that all of NumPy's functions take: float64 or complex128."""
    array = np.asarray(x)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _of_no_symmetry(x: Array) -> Array:
    """A cotangent like `x` that nothing but a derivative of zero takes to zero."""
    return jnp.cos(1.0 + jnp.arange(x.size)).reshape(x.shape).astype(x.dtype)


def _zeros(step: Step, back: Sequence[Array | None]) -> set[int]:
    """The active inputs to which only zeros come back."""
    return {i for i, x in zip(step.active_ins, back, strict=True) if x is not None and not is_nonzero(x)}


def _scaled_up(cotangents: Sequence[Array]) -> list[Array]:
    """Cotangents, not all zero, times the power of two that takes the largest to about 1,000. A pullback is linear: its results
    are multiplied by exactly that, unless they underflow."""
    arrays = list(map(wide, cotangents))
    exponent = max([int(np.frexp(np.abs(x).max(initial=0))[1]) for x in arrays])
    scale = 2.0 ** min(max(10 - exponent, 0), 1000)
    return [jnp.asarray(x * scale, y.dtype) for x, y in zip(arrays, cotangents, strict=True)]


# ---- forward once more -----------------------------------------------------------------------------------------------

# The name scope of an operation, by its place in the program: by it an equation of JAX's is known to belong to it.
SCOPE = "tape_step_{}"


def replay(program: Program, values: Values, sources: Sequence[Any]) -> list[Any]:
    """Runs the program forward, from other values of its sources; other inputs have their recorded values."""
    env: dict[int, Value] = dict(enumerate(values))
    env.update({slot: x for slot, x in zip(program.sources, sources, strict=True) if slot is not None})
    for number, step in enumerate(program.steps):
        ins = [env[slot] if i in step.active_ins else values[slot] for i, slot in enumerate(step.ins)]
        with jax.named_scope(SCOPE.format(number)):
            outputs = jax.tree.leaves(step.op.fn(*ins))
        env.update({step.outs[j]: outputs[j] for j in step.active_outs})
    return [None if slot is None else env[slot] for slot in program.targets]


# ---- numbers that are none ------------------------------------------------------------------------------------------


def first_not_finite(walk: Backward) -> NonFiniteError | None:
    """The error of the first operation whose value, then whose cotangent, is not finite; None where all are."""
    return _first_value(walk) or _first_cotangent(walk)


def _first_value(walk: Backward, around: str = "") -> NonFiniteError | None:
    """Of values alone. `around`: the operation, and the round of it, that the walk is inside."""
    names = walk.names
    for position in names.graph.before(walk.query.targets):
        entry = names.graph.operations[position]
        bad = list(filter(_is_not_finite, entry.outputs))
        if not bad:
            continue
        place = _place(position, entry, around)
        if (error := _inside(walk, entry, None, place)) is not None:
            return error
        culprits = ", ".join(map(names.of, filter(_is_not_finite, entry.inputs)))
        given = f"its input {culprits} came in that way: the tape did not compute it"
        inputs = "; ".join(f"{names.of(i)} = {value_text(i)}" for i in entry.inputs if isinstance(i, jax.Array))
        said = f"{place}, gives {names.of(bad[0])}, which is {_what(bad[0])}"
        said += f"; {given if culprits else 'its inputs are finite'}. {inputs}"
        return NonFiniteError(f"forward: {said}".strip(), "forward", entry, bad[0])
    return None


def _first_cotangent(walk: Backward, around: str = "") -> NonFiniteError | None:
    for number, entry, came, left in walk.cotangents():
        place, about = _place(number, entry, around), ("backward", entry)
        for j in [j for j, x in came.items() if _is_not_finite(x)]:
            name = walk.names.of(entry.outputs[j])
            return NonFiniteError(
                f"backward: the cotangent of {name}, which comes to {place}, is {_what(came[j])}", *about, came[j]
            )
        for i, x in left.items():
            if not _is_not_finite(x):
                continue
            cotangents = [came.get(j) for j in range(len(entry.outputs))]
            if (error := _inside(walk, entry, cotangents, place)) is not None:
                return error
            coming = "; ".join(
                f"∂{walk.of}/∂{walk.names.of(entry.outputs[j])} = {value_text(y)}" for j, y in came.items()
            )
            name = walk.names.of(entry.inputs[i])
            said = f"backward: {place}, makes ∂{walk.of}/∂{name} {_what(x)}; what came in was finite: {coming}"
            said += "".join([_VERSIONS_DIFFER.format(title) for title in _rows(entry.op)])
            return NonFiniteError(said, *about, x, _UNDEFINED)
    return None


def _inside(walk: Backward, entry: Entry, came: Cotangents, place: str) -> NonFiniteError | None:
    """The error of the first operation inside that of `entry`, to whose outputs `came` comes back; None where none is found.

    Not of one whose derivative is not that of what is inside.
    """
    if came is not None and isinstance(entry.op, (PullbackOp, CustomOp)):
        return None
    program = program_of(entry, walk.recording)
    with active.outside():
        part = program and inside(Part(program, entry.inputs, came))
    if part is None:
        return None
    tape, outputs = on_a_tape(part.program, part.inputs)
    pairs = list(zip(outputs, part.cotangents or outputs, strict=True))
    pairs = [(x, ct) for x, ct in pairs if is_inexact(x) and ct is not None]
    ends, starts = [x for x, _ in pairs], list(filter(is_inexact, part.inputs))
    with active.outside():
        cotangents = None if came is None else [conjugate(ct) for _, ct in pairs]
    inner = Backward(tape, ends, starts, cotangents, Names(tape._usable().folded(), [part.named()]))
    inner.of = walk.of
    error = (_first_value if came is None else _first_cotangent)(inner, f"{place}: {part.where}")
    if error is not None:
        error.entry, error.line = entry, error.line or entry.line  # the operation on the user's tape
    return error


# The row of docs/newest.md for an operation whose derivative has become nan, or is nan no more, with a version of JAX.
_ROW = {"hypot": "hypot at the origin", "det": "det's Hessian at a singular matrix", "expn": "expn of order zero"}
_VERSIONS_DIFFER = '; versions of JAX differ in this: "{}" in docs/newest.md'


def _rows(op: Op) -> Iterable[str]:
    """The rows for an operation, or for those that a derivative on the tape is a derivative of."""
    ops = op.program.ops if isinstance(op, DerivativeOp) else (op,)
    return dict.fromkeys([_ROW[op.name] for op in ops if op.name in _ROW])


_UNDEFINED = (
    "Its derivative is infinite or undefined there. If a `where` chooses another value in its place, a zero cotangent is still "
    "multiplied with that derivative, and 0 * inf is NaN: give the operation a harmless argument in the branch not taken, as in "
    "where(ok, f(where(ok, x, 1.0)), 0.0)."
)


def _is_not_finite(x: Value) -> bool:
    with active.outside():
        return is_inexact(x) and not isinstance(x, Tracer) and not _all_finite(x)


_all_finite = jax.jit(lambda x: jnp.isfinite(x).all())


def _what(x: Array) -> str:
    if is_elsewhere(x):
        return "not finite"
    numbers = with_errors(wide, x, all="ignore")
    bad = ~np.isfinite(numbers)
    kind = "NaN" if np.isnan(numbers[bad][0]) else "infinite"
    if not numbers.shape:
        return kind
    first = [int(i) for i in np.argwhere(bad)[0]]
    return f"{kind} in {int(bad.sum())} of {numbers.size} elements, the first at {first}"


def _place(number: int, entry: Entry, around: str) -> str:
    line = f" ({entry.line}: `{entry.line.text}`)" if entry.line else ""
    return f"{around or f'operation {number}, '}{listing.name_of(entry)}{line}"
