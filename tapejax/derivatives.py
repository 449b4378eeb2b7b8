"""Derivatives of a program: JAX's transformations, applied to its steps or to all of it."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from . import jaxprs, recorder
from .program import Chunk, Program, Step, chunks, extract, is_inexact
from .recorder import Op, Recording
from .registry import differentiable, forget_on_registration

CACHED_PULLBACKS = 4096
CACHED_SWEEPS = 256


# ---- the reverse sweep ----------------------------------------------------------------------------------------------


def sweep(program: Program, values: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
    """Pulls the targets' cotangents back to the sources: the steps in reverse, each by `jax.vjp` at its recorded inputs.

    One code, two ways to run: on arrays each pullback is a compiled operation of its own; traced by `jax.jit` they make
    one program, from which XLA drops what was computed forward already.
    """
    ct: dict[int, Any] = {}
    for _ in sweep_steps(program, values, cotangents, ct):
        pass
    return [None if slot is None else ct.get(slot) for slot in program.sources]


def sweep_steps(
    program: Program, values: Sequence[Any], cotangents: Sequence[Any], ct: dict[int, Any]
) -> Iterator[tuple[int, Sequence[Any]]]:
    """The reverse sweep, a step at a time: yields the step's position and what it sends back to its `wanted` inputs.

    `ct` is filled with the cotangent of each slot: complete for the step's outputs, still growing for its inputs.
    """

    def add(slot: int, x: Any) -> None:
        ct[slot] = recorder.apply(_add, ct[slot], x) if slot in ct else x

    for slot, x in zip(program.targets, cotangents, strict=True):
        if slot is not None:
            add(slot, x)
    for position in reversed(range(len(program.steps))):
        step = program.steps[position]
        present = tuple([j for j in step.present if step.outs[j] in ct])  # to the others nothing came back
        if not present:
            continue
        if step.op.pull is not None:
            back = _pull_own(step, values, ct)
        else:
            inputs = [values[slot] for slot in step.ins]
            pull = pullback(step.op, step.wanted, present)
            back = recorder.run(pull, (*inputs, *[ct[step.outs[j]] for j in present]))
        for i, x in zip(step.wanted, back, strict=True):
            if x is not None:
                add(step.ins[i], x)
        yield position, back


def _pull_own(step: Step, values: Sequence[Any], ct: dict[int, Any]) -> list[Any]:
    # The user's Python runs under the current trace: what it computes is recorded by outer tapes like anything else.
    assert step.op.pull is not None
    cotangents = [ct.get(slot) for slot in step.outs]
    for j in range(step.op.results):
        if cotangents[j] is None:
            cotangents[j] = recorder.apply(jnp.zeros_like, values[step.ins[j]])
    back = step.op.pull(cotangents)
    return [back[i] for i in step.wanted]


def _add(x: Any, y: Any) -> Any:
    return x + y


def _cached_by_op(make: Any) -> Any:
    """Keeps what `make(op, ...)` gives, but for an eager op: that is one call's own, with the arrays it closes over."""
    kept = functools.lru_cache(CACHED_PULLBACKS)(make)

    @functools.wraps(make)
    def cached(op: Op, *args: Any) -> Op:
        return make(op, *args) if op.eager else kept(op, *args)

    forget_on_registration(kept.cache_clear)
    return cached


@_cached_by_op
def pullback(op: Op, wanted: tuple[int, ...], present: tuple[int, ...]) -> Op:
    """The operation (inputs of `op`, cotangents of its `present` outputs) -> cotangents of its `wanted` inputs."""

    def pull(*inputs_and_cotangents: Any) -> tuple[Any, ...]:
        split = len(inputs_and_cotangents) - len(present)
        inputs, cotangents = inputs_and_cotangents[:split], inputs_and_cotangents[split:]

        at = _restricted(op, inputs, wanted, present)
        try:
            return jax.vjp(at, *(inputs[i] for i in wanted))[1](list(cotangents))
        except (NotImplementedError, ValueError) as error:
            raise _explained(op, error) from error

    name = f"{op.name}_pullback"
    key = (op, wanted, present)
    return Op(name, pull, pull, key, eager=True) if op.eager else Op(name, pull, key=key)


def _restricted(op: Op, inputs: Sequence[Any], wanted: Sequence[int], present: Sequence[int]) -> Any:
    """`op` as a function of its `wanted` inputs, giving its `present` outputs."""
    fn = differentiable(op)

    def at(*xs: Any) -> list[Any]:
        full = list(inputs)
        for i, x in zip(wanted, xs, strict=True):
            full[i] = x
        outputs = jax.tree.leaves(fn(*full))
        return [outputs[j] for j in present]

    return at


def _explained(op: Op, error: Exception) -> Exception:
    if "ifferentiation" not in str(error) and "JVP" not in str(error):
        return error
    reason = str(error).split(". ")[0]
    return LookupError(
        f"gradient registry has no entry for: {op.name}. JAX cannot differentiate it ({reason}). Write it with operations "
        "that have a gradient, or give it one (tapejax.custom_gradient, tapejax.RegisterGradient)."
    )


# ---- the forward sweep ----------------------------------------------------------------------------------------------


def push(program: Program, values: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """Pushes the sources' tangents (None for zero) forward to the targets, each step by `jax.jvp` at its recorded inputs."""
    tangent: dict[int, Any] = {}

    def add(slot: int, x: Any) -> None:
        tangent[slot] = recorder.apply(_add, tangent[slot], x) if slot in tangent else x

    for slot, x in zip(program.sources, tangents, strict=True):
        if slot is not None and x is not None:
            add(slot, x)
    for step in program.steps:
        wanted = tuple(i for i in step.wanted if step.ins[i] in tangent)
        if not wanted:
            continue
        pushed = [tangent[step.ins[i]] for i in wanted]
        if step.op.pull is not None:
            out = _push_own(step, values, dict(zip(wanted, pushed, strict=True)))
        else:
            inputs = [values[slot] for slot in step.ins]
            out = recorder.run(pushforward(step.op, wanted, step.present), (*inputs, *pushed))
        for j, x in zip(step.present, out, strict=True):
            if x is not None:
                add(step.outs[j], x)
    return [None if slot is None else tangent.get(slot) for slot in program.targets]


def _push_own(step: Step, values: Sequence[Any], tangents: dict[int, Any]) -> list[Any]:
    """The tangents of `present` outputs, from those of inputs, where all that is known is the user's pullback.

    It is linear: recorded while it runs on some cotangents or others, its own pullback is its transpose, the pushforward.
    """
    assert step.op.pull is not None
    cotangents = [recorder.apply(jnp.ones_like, values[slot]) for slot in step.ins[: step.op.results]]
    recording = Recording(watch_accessed=False)
    for x in cotangents:
        recording.watch(x)
    with recorder.also(recording):
        back = step.op.pull(cotangents)
    reached = [i for i in tangents if back[i] is not None]
    program, read = extract(recording, [back[i] for i in reached], cotangents)
    out = pull_back(program, read, [tangents[i] for i in reached])
    return [out[j] for j in step.present]


@_cached_by_op
def pushforward(op: Op, wanted: tuple[int, ...], present: tuple[int, ...]) -> Op:
    """The operation (inputs of `op`, tangents of its `wanted` inputs) -> tangents of its `present` outputs."""

    def forward(*inputs_and_tangents: Any) -> list[Any]:
        split = len(inputs_and_tangents) - len(wanted)
        inputs, tangents = inputs_and_tangents[:split], inputs_and_tangents[split:]
        at = _restricted(op, inputs, wanted, present)
        primals = [inputs[i] for i in wanted]
        try:
            if _pulls_only(at, primals):
                # The pullback of a custom_vjp is all that is known; it is linear, and its transpose is the pushforward.
                outputs, pull = jax.vjp(at, *primals)
                return jax.vjp(pull, jax.tree.map(jnp.zeros_like, outputs))[1](tuple(tangents))[0]
            return jax.jvp(at, primals, list(tangents))[1]
        except (NotImplementedError, ValueError) as error:
            raise _explained(op, error) from error

    name = f"{op.name}_pushforward"
    key = ("push", op, wanted, present)
    return Op(name, forward, forward, key, eager=True) if op.eager else Op(name, forward, key=key)


def _pulls_only(at: Any, primals: Sequence[Any]) -> bool:
    """Whether a ``custom_vjp`` stands in the way of forward mode."""
    traced = jax.make_jaxpr(lambda *xs: jax.jvp(at, xs, xs)[1])(*primals)
    return jaxprs.contains(traced, "custom_lin")


# ---- Jacobians ------------------------------------------------------------------------------------------------------

# Columns (or rows) of a Jacobian are computed together as far as what they need fits into this, or into half the result.
CHUNK_BYTES = 2 << 20


def jacobian(program: Program, values: Sequence[Any], mode: str | None = None) -> list[Any]:
    """For each source the derivative of every element of the one target: an array of shape ``target.shape + source.shape``.

    Reverse mode (as `jax.jacrev`: the pullback under `vmap`) takes a pass for each element of the target, forward mode
    (as `jax.jacfwd`: the pushforward under `vmap`) one for each element of the sources; the fewer passes win.
    """
    target = _target(program, values)
    connected = [slot for slot in program.sources if slot is not None]
    if target is None or not connected:
        return [None] * len(program.sources)
    if mode is None:
        passes = sum(values[slot].size for slot in dict.fromkeys(connected))
        # forward mode knows a complex derivative in one direction of two
        forward = passes < target.size and not any([jnp.iscomplexobj(x) for x in values])
        mode = "forward" if forward else "reverse"
    rows = {"reverse": _reverse_rows, "forward": _forward_columns}
    other = "forward" if mode == "reverse" else "reverse"
    try:
        found = _run_whole(("jacobian", mode), program, values, rows[mode])
    except (LookupError, TypeError, ValueError, NotImplementedError) as error:
        try:  # a while_loop goes forward only, a custom_vjp backward only
            found = _run_whole(("jacobian", other), program, values, rows[other])
        except Exception:
            raise error from None
    return list(found)


def batch_jacobian(program: Program, values: Sequence[Any]) -> list[Any]:
    """For each source the pullback of each column ``target[:, j]``, summed over the batch: ``(batch, *outs, *ins)``."""
    if _target(program, values) is None:
        return [None] * len(program.sources)
    return list(_run_whole(("batch_jacobian",), program, values, _batch_rows))


def _run_whole(name: tuple, program: Program, values: Sequence[Any], rows: Any) -> list[Any]:
    if any(step.op.eager for step in program.steps) or len(program.steps) > COMPILE_AT_MOST * 8:
        return rows(program, values)
    return recorder.run(_whole_rows(name, program, rows), values)


@functools.lru_cache(CACHED_SWEEPS)
def _whole_rows(name: tuple, program: Program, rows: Any) -> Op:
    return Op(name[0], lambda *values: rows(program, values), key=(*name, program))


def _target(program: Program, values: Sequence[Any]) -> Any:
    """The value of a program's one target; None where it is not connected, or an integer."""
    (slot,) = program.targets
    return None if slot is None or not is_inexact(values[slot]) else values[slot]


def _one_hot(index: Any, like: Any) -> Any:
    return jax.nn.one_hot(index, like.size, dtype=like.dtype).reshape(like.shape)


def _reverse_rows(program: Program, values: Sequence[Any]) -> list[Any]:
    target = _target(program, values)

    def row(index: Any) -> list[Any]:
        return sweep(program, values, [_one_hot(index, target)])

    found = _map_chunks(row, target.size, program, values, target.size * _source_bytes(program, values))
    return [None if x is None else x.reshape(target.shape + x.shape[1:]) for x in found]


def _source_bytes(program: Program, values: Sequence[Any]) -> int:
    return sum(values[slot].nbytes for slot in program.sources if slot is not None)


def _forward_columns(program: Program, values: Sequence[Any]) -> list[Any]:
    target = _target(program, values)
    found: list[Any] = []
    for position, slot in enumerate(program.sources):
        if slot is None:
            found.append(None)
            continue
        source = values[slot]

        def column(index: Any, position: int = position, source: Any = source) -> Any:
            tangents: list[Any] = [None] * len(program.sources)
            tangents[position] = _one_hot(index, source)
            (out,) = push(program, values, tangents)
            return jnp.zeros_like(target) if out is None else out

        columns = _map_chunks(column, source.size, program, values, source.size * target.nbytes, axis=-1)
        found.append(columns.reshape(target.shape + source.shape))
    return found


def _batch_rows(program: Program, values: Sequence[Any]) -> list[Any]:
    target = _target(program, values)
    outs = jax.ShapeDtypeStruct(target.shape[1:], target.dtype)

    def row(index: Any) -> list[Any]:
        return sweep(program, values, [jnp.broadcast_to(_one_hot(index, outs), target.shape)])

    found = _map_chunks(row, outs.size, program, values, outs.size * _source_bytes(program, values))
    return [None if x is None else jnp.moveaxis(x, 0, 1).reshape(target.shape + x.shape[2:]) for x in found]


def _map_chunks(row: Any, count: int, program: Program, values: Sequence[Any], result_bytes: int, axis: int = 0) -> Any:
    """`row` of every index below `count`, stacked: at once under `vmap`, or chunk after chunk where memory asks for it."""
    carried = {step.ins[i] for step in program.steps for i in step.wanted}
    each = max(1, sum(values[slot].nbytes for slot in carried))
    chunk = max(1, max(CHUNK_BYTES, result_bytes // 2) // each)
    rows = jax.vmap(row, out_axes=axis)
    if chunk >= count:
        return rows(jnp.arange(count))

    def fill(i: Any, found: Any) -> Any:  # in place: `lax.map` would stack the chunks first, and hold all of it twice
        start = jnp.minimum(i * chunk, count - chunk)
        part = rows(start + jnp.arange(chunk))
        return jax.tree.map(lambda x, y: jax.lax.dynamic_update_slice_in_dim(x, y, start, axis), found, part)

    shapes = jax.eval_shape(rows, jnp.arange(count))
    empty = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    return jax.lax.fori_loop(0, -(-count // chunk), fill, empty)


# ---- how to run it --------------------------------------------------------------------------------------------------

# A whole program compiles in a time that grows with its length; beyond this many steps the stall would be felt.
COMPILE_AT_MOST = 128
# Compiling a program whole costs about as much as compiling this share of its steps one by one (README, "Speed").
WHOLE_PER_STEP = 1 / 4
# For every so many programs that were compiled whole in vain, the next must have come back once more: a loop of ever new
# lengths is not worth a compile for each.
PATIENCE = 8
CACHED_PROGRAMS = 4096

_sightings: OrderedDict[Program, int] = OrderedDict()
_kinds: OrderedDict[Any, int] = OrderedDict()
_unproved: set[int] = set()  # programs that were compiled whole and have not come back yet


def pull_back(program: Program, values: Sequence[Any], cotangents: Sequence[Any] | None = None) -> list[Any]:
    """The sources' cotangents (None where not connected), by the way of running that stalls the user least.

    They are pulled back from the targets' `cotangents`, by default ones. A program is compiled whole when it comes back, or
    at once if its parts would have to be compiled anyway. A long one that repeats itself is run chunk by chunk, each of
    which comes back. What was never seen but is made of known parts runs step by step and compiles nothing.
    """
    if not _compile_whole(program, values):
        if cotangents is None:
            cotangents = [
                None if slot is None else recorder.apply(jnp.ones_like, values[slot]) for slot in program.targets
            ]
        long = len(program.steps) > COMPILE_AT_MOST and not any([step.op.eager for step in program.steps])
        if long and (parts := chunks(program)):
            return _sweep_chunks(program, parts, values, cotangents)
        return sweep(program, values, cotangents)
    if cotangents is None:  # ones that are made inside cost no call
        back = iter(recorder.run(_whole(program, from_ones=True), values))
    else:
        ends = [x for slot, x in zip(program.targets, cotangents, strict=True) if slot is not None]
        back = iter(recorder.run(_whole(program), (*values, *ends)))
    return [None if slot is None else next(back) for slot in program.sources]


def _sweep_chunks(
    program: Program, parts: Sequence[Chunk], values: Sequence[Any], cotangents: Sequence[Any]
) -> list[Any]:
    ct: dict[int, Any] = {}

    def add(slot: int, x: Any) -> None:
        ct[slot] = recorder.apply(_add, ct[slot], x) if slot in ct else x

    for slot, x in zip(program.targets, cotangents, strict=True):
        if slot is not None:
            add(slot, x)
    known = len(values)
    for part in reversed(parts):
        if not all([slot in ct for slot in part.targets]):
            return sweep(program, values, cotangents)  # nothing came back to some value: only step by step tells
        read = [values[slot] if slot < known else None for slot in part.read]
        back = pull_back(part.program, read, [ct[slot] for slot in part.targets])
        first_own = len(part.sources) - part.own
        for i, (slot, x) in enumerate(zip(part.sources, back, strict=True)):
            if x is not None and i < first_own:
                add(slot, x)
            elif x is not None:
                ct[slot] = x
    return [None if slot is None else ct.get(slot) for slot in program.sources]


def push_forward(program: Program, values: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """The targets' tangents (None where not connected), run as `pull_back` runs the reverse sweep."""
    if not _compile_whole(program, values):
        return push(program, values, tangents)
    starts = [x for slot, x in zip(program.sources, tangents, strict=True) if slot is not None]
    return list(recorder.run(_whole_push(program), (*values, *starts)))


def _compile_whole(program: Program, values: Sequence[Any]) -> bool:
    if len(program.steps) <= 1 or any(step.op.eager for step in program.steps):
        return False
    if not recorder.eager():
        return True  # inside jit, vmap or grad nothing is compiled here
    if len(program.steps) > COMPILE_AT_MOST:
        return False
    before = _remember(_sightings, program)
    if before < 0:
        _unproved.discard(hash(program))
        return True
    if before:
        worth = before > len(_unproved) // PATIENCE
    else:
        kinds = {(*step[3:], step.op, *(_kind(values[slot]) for slot in step.ins)) for step in program.steps}
        fresh = sum(not _remember(_kinds, kind) for kind in kinds)
        worth = fresh >= len(program.steps) * WHOLE_PER_STEP
    if worth:
        _sightings[program] = -1
        if len(_unproved) >= CACHED_SWEEPS:
            _unproved.clear()
        _unproved.add(hash(program))
    return worth


def _kind(value: Any) -> Any:
    return (value.shape, value.dtype) if isinstance(value, jax.Array) else type(value)


def _remember(counts: OrderedDict, key: Any) -> int:
    """How often `key` was seen before; the least recently seen are forgotten."""
    before = counts.pop(key, 0)
    counts[key] = before + 1 if before >= 0 else before
    if len(counts) > CACHED_PROGRAMS:
        counts.popitem(last=False)
    return before


@functools.lru_cache(CACHED_SWEEPS)
def _whole(program: Program, from_ones: bool = False) -> Op:
    connected = [slot for slot in program.targets if slot is not None]

    def whole(*flat: Any) -> list[Any]:
        split = len(flat) if from_ones else len(flat) - len(connected)
        ends = iter([jnp.ones_like(flat[slot]) for slot in connected] if from_ones else flat[split:])
        cotangents = [None if slot is None else next(ends) for slot in program.targets]
        return [x for x in sweep(program, flat[:split], cotangents) if x is not None]

    return Op("gradient", whole, key=("sweep", program, from_ones))


@functools.lru_cache(CACHED_SWEEPS)
def _whole_push(program: Program) -> Op:
    def whole(*flat: Any) -> list[Any]:
        split = len(flat) - sum(slot is not None for slot in program.sources)
        starts = iter(flat[split:])
        tangents = [None if slot is None else next(starts) for slot in program.sources]
        return push(program, flat[:split], tangents)  # None for a target that is not connected

    return Op("jvp", whole, key=("push", program))


for _cache in (_whole, _whole_push, _whole_rows):
    forget_on_registration(_cache.cache_clear)


# ---- as a function --------------------------------------------------------------------------------------------------


def evaluate(program: Program, values: Sequence[Any], sources: Sequence[Any]) -> list[Any]:
    """Runs the program forward from other values of its sources; what does not depend on them keeps its recorded value."""
    env: dict[int, Any] = dict(enumerate(values))
    given = {slot: x for slot, x in zip(program.sources, sources, strict=True) if slot is not None}
    env.update(given)
    for step in program.steps:
        ins = [env[slot] if i in step.wanted else values[slot] for i, slot in enumerate(step.ins)]
        outputs = jax.tree.leaves(step.op.fn(*ins))
        for j in step.present:
            slot, x = step.outs[j], outputs[j]
            if slot in given:
                # An intermediate that is itself a source: it moves with what it is computed from, and by itself.
                x = x + (given[slot] - jax.lax.stop_gradient(values[slot]))
            env[slot] = x
    return [None if slot is None else env[slot] for slot in program.targets]
