"""What an operation is made of: a jitted function, a scan, a cond or an inner gradient, run again on a tape of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp

from ...jaxprs import contents, lifting
from ...jaxprs.evaluate import evaluate
from ...jaxprs.prints import without_prints
from ...jaxprs.types import Equation, JaxProgram, Value, Values, Where
from ...places import Place, serves
from ...tape import active
from ...tape.gradient_tape import GradientTape
from ...tape.operation import Op
from ...tape.recording import Entry, Recording
from ...tf.programs.autograph import as_written
from ..writing.graph import ValueMap

Rounds: TypeAlias = ValueMap[tuple[int, int]]  # of what a loop computes: in which round, of how many

# More operations than this are not run again.
OPERATIONS = 400
# What one operation may be made of without being several.
CASTS = frozenset("convert_element_type broadcast_in_dim reshape squeeze expand_dims copy stop_gradient".split())


def opened(entry: Entry, recording: Recording) -> tuple[GradientTape, list[Any], Rounds] | None:
    """A tape of what `entry` did to its inputs, all watched, its outputs, and the rounds of what a loop computes.

    None where it is one operation, or too many.
    """
    op = entry.op
    if op.bound is not None and not hasattr(op.bound[0], "bind"):  # a function of a library, and no primitive of JAX's
        return None
    program = program_of(entry, recording)
    if program is None or not 1 < _size(program) <= OPERATIONS:
        return None
    rounds = Rounds()
    return *_taped(entry.inputs, lambda recording: _run(program, entry.inputs, recording, rounds)), rounds


def on_a_tape(program: JaxProgram, inputs: Values) -> tuple[GradientTape, list[Any]]:
    """A tape of the operations of a program, none of them opened, its inputs watched; and its outputs."""
    return _taped(
        inputs, lambda recording: evaluate(program, inputs, lambda eqn, xs: _bind(eqn, xs, recording, Rounds()))
    )


def program_of(entry: Entry, recording: Recording) -> JaxProgram | None:
    """`traced`, of the operation of an `entry`, with the lines of the functions that were called there."""
    bound = recording.bound.get(id(entry.outputs[0])) if entry.outputs else None
    if bound is None:
        return traced(entry.op, entry.inputs)
    primitive, params = bound
    arrays = contents.constants_of(params)
    with active.outside():
        return without_prints(lifting.lift(primitive, params, entry.inputs[len(arrays) :], arrays))


def traced(op: Op, inputs: Values) -> JaxProgram | None:
    """What an operation does, as JAX's program; None where it runs Python, which needs values."""
    try:
        with active.outside():
            return jax.make_jaxpr(op.fn)(*inputs)
    except Exception:
        return None


def _taped(inputs: Values, run: Callable[[Recording], list[Any]]) -> tuple[GradientTape, list[Any]]:
    def taped() -> tuple[GradientTape, list[Any]]:
        with GradientTape(persistent=True, watch_accessed_variables=False) as tape:
            tape.watch(list(filter(is_inexact, inputs)))
            return tape, run(tape._usable())

    return active.alone((), taped)  # no outer tape records it once more


def is_inexact(x: Value) -> bool:
    """Whether it is an array of real or complex floating-point numbers."""
    return isinstance(x, jax.Array) and bool(jnp.issubdtype(x.dtype, jnp.inexact))


def has_lines(program: JaxProgram) -> bool:
    """Whether a line of the user's became an equation of a program, at any depth."""
    equations = contents.open_jaxpr(program).eqns
    return any(_where(eqn) is not None or any(map(has_lines, contents.jaxprs_in(eqn.params))) for eqn in equations)


def _size(program: JaxProgram) -> int:
    """How many operations a program runs."""
    eqns = contents.open_jaxpr(program).eqns
    if len(eqns) == 1 and (eqn := eqns[0]).primitive.name in _STRUCTURED:
        several = eqn.primitive.name not in contents.JIT
        return max(map(_size, contents.jaxprs_in(eqn.params))) * eqn.params.get("length", 1) + several
    return sum(eqn.primitive.name not in CASTS for eqn in eqns)


def _run(program: JaxProgram, inputs: Values, recording: Recording, rounds: Rounds) -> list[Any]:
    """Runs a program, equation by equation; of one that is a loop, a choice or a jitted function, what is inside."""
    alone = len(contents.open_jaxpr(program).eqns) == 1

    def run(eqn: Equation, values: Values) -> Sequence[Any]:
        return (_STRUCTURED.get(eqn.primitive.name, _bind) if alone else _bind)(eqn, values, recording, rounds)

    return evaluate(program, inputs, run)


def _bind(eqn: Equation, inputs: Values, recording: Recording, rounds: Rounds) -> Sequence[Any]:
    params = eqn.primitive.get_bind_params(eqn.params)
    outputs = _noted(eqn, recording, eqn.primitive.bind, *inputs, **params)
    return outputs if eqn.primitive.multiple_results else [outputs]


def _noted(eqn: Equation, recording: Recording, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """``fn(*args, **kwargs)``, noted with the line that became the equation."""
    before = len(recording.entries)
    outputs = fn(*args, **kwargs)
    where = _where(eqn)
    recording.entries[before:] = [entry._replace(where=where) for entry in recording.entries[before:]]
    return outputs


def _scan(eqn: Equation, inputs: Values, recording: Recording, rounds: Rounds) -> list[Any]:
    """The rounds of a loop, one after the other."""
    params = eqn.params
    constants, carried = contents.scan_counts(params)
    consts, carry, rows = inputs[:constants], inputs[constants : constants + carried], inputs[constants + carried :]
    order = range(params["length"])
    results = []
    for number, i in enumerate(reversed(order) if params["reverse"] else order, 1):
        before = len(recording.entries)
        row = [_noted(eqn, recording, jax.lax.index_in_dim, x, i, keepdims=False) for x in rows]
        outs = _run(params["jaxpr"], [*consts, *carry, *row], recording, Rounds())
        carry = outs[:carried]
        rounds.update((x, (number, len(order))) for entry in recording.entries[before:] for x in entry.outputs)
        results.append(outs[carried:])
    if params["reverse"]:
        results.reverse()
    columns = zip(*results, strict=True)
    return [*carry, *[_noted(eqn, recording, jnp.stack, column) for column in columns]]


def _cond(eqn: Equation, inputs: Values, recording: Recording, rounds: Rounds) -> list[Any]:
    """The branch that was chosen."""
    index, *operands = inputs
    branches = eqn.params["branches"]
    return _run(branches[max(0, min(int(index), len(branches) - 1))], operands, recording, rounds)


def _jit(eqn: Equation, inputs: Values, recording: Recording, rounds: Rounds) -> list[Any]:
    return _run(eqn.params["jaxpr"], inputs, recording, rounds)


_STRUCTURED: dict[str, Callable[[Equation, Values, Recording, Rounds], Sequence[Any]]]
_STRUCTURED = {"scan": _scan, "cond": _cond, **dict.fromkeys(contents.JIT, _jit)}


def frames_of(eqn: Equation) -> list[Place]:
    """The functions that were running when an equation was traced, the innermost first."""
    traceback = eqn.source_info.traceback
    frames = [] if traceback is None else list(zip(*traceback.raw_frames(), strict=True))
    return as_written(frames[::-1])[::-1]


def _where(eqn: Equation) -> Where:
    """The line of the user's function that became an equation, in the form of `places.caller`; None if it is traced here."""
    frames = frames_of(eqn)
    if any(code.co_filename == __file__ for code, _ in frames):
        return None
    return next(((code, instruction) for code, instruction in frames if not serves(code.co_filename)), None)
