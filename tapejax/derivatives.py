"""Derivatives of a program: JAX's transformations, applied to its steps or to all of it."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import jax

from . import recorder
from .program import Program
from .recorder import Op

CACHED_PULLBACKS = 4096
CACHED_SWEEPS = 256


# ---- the reverse sweep ----------------------------------------------------------------------------------------------


def sweep(program: Program, values: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
    """Pulls the targets' cotangents back to the sources: the steps in reverse, each by `jax.vjp` at its recorded inputs.

    One code, two ways to run: on arrays each pullback is a compiled operation of its own; traced by `jax.jit` they make
    one program, from which XLA drops what was computed forward already.
    """
    ct: dict[int, Any] = {}

    def add(slot: int, x: Any) -> None:
        ct[slot] = recorder.apply(_add, ct[slot], x) if slot in ct else x

    for slot, x in zip(program.targets, cotangents, strict=True):
        if slot is not None:
            add(slot, x)
    for step in reversed(program.steps):
        outs = [step.outs[j] for j in step.present]
        if not all(slot in ct for slot in outs):  # nothing came back to some of them
            outs = [slot for slot in outs if slot in ct]
        if not outs:
            continue
        present = tuple(j for j in step.present if step.outs[j] in ct)
        pull = pullback(step.op, step.wanted, present)
        inputs = [values[slot] for slot in step.ins]
        back = recorder.run(pull, (*inputs, *(ct[slot] for slot in outs)))
        for i, x in zip(step.wanted, back, strict=True):
            add(step.ins[i], x)
    return [None if slot is None else ct.get(slot) for slot in program.sources]


def _add(x: Any, y: Any) -> Any:
    return x + y


@functools.lru_cache(CACHED_PULLBACKS)
def pullback(op: Op, wanted: tuple[int, ...], present: tuple[int, ...]) -> Op:
    """The operation (inputs of `op`, cotangents of its `present` outputs) -> cotangents of its `wanted` inputs."""

    def pull(*inputs_and_cotangents: Any) -> tuple[Any, ...]:
        split = len(inputs_and_cotangents) - len(present)
        inputs, cotangents = inputs_and_cotangents[:split], inputs_and_cotangents[split:]

        def at(*xs: Any) -> list[Any]:
            full = list(inputs)
            for i, x in zip(wanted, xs, strict=True):
                full[i] = x
            outputs = jax.tree.leaves(op.fn(*full))
            return [outputs[j] for j in present]

        try:
            return jax.vjp(at, *(inputs[i] for i in wanted))[1](list(cotangents))
        except (NotImplementedError, ValueError) as error:
            if "ifferentiation" in str(error) or "JVP" in str(error):
                raise LookupError(_no_gradient(op, error)) from error
            raise

    name = f"{op.name}_pullback"
    key = (op, wanted, present)
    return Op(name, pull, pull, key, eager=True) if op.eager else Op(name, pull, key=key)


def _no_gradient(op: Op, error: Exception) -> str:
    reason = str(error).split(". ")[0]
    return (
        f"gradient registry has no entry for: {op.name}. JAX cannot differentiate it ({reason}). Write it with operations "
        "that have a gradient, or give it one (tapejax.custom_gradient, tapejax.RegisterGradient)."
    )


# ---- how to run it --------------------------------------------------------------------------------------------------

# A whole program compiles in a time that grows with its length; beyond this many steps the stall would be felt.
COMPILE_AT_MOST = 128
# Compiling a program whole costs about as much as compiling this share of its steps one by one (README, "Speed").
WHOLE_PER_STEP = 1 / 4
# After every so many programs compiled whole, the next must have come back once more: a loop of ever new lengths is not
# worth a compile for each.
PATIENCE = 8
CACHED_PROGRAMS = 4096

_sightings: OrderedDict[Program, int] = OrderedDict()
_kinds: OrderedDict[Any, int] = OrderedDict()
_whole_programs: set[int] = set()


def pull_back(program: Program, values: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
    """The sources' cotangents (None where not connected), by the way of running that stalls the user least.

    A program is compiled whole when it comes back, or at once if its parts would have to be compiled anyway; a long one,
    or one that was never seen but is made of known parts, runs step by step and compiles nothing.
    """
    if not _compile_whole(program, values):
        return sweep(program, values, cotangents)
    ends = [x for slot, x in zip(program.targets, cotangents, strict=True) if slot is not None]
    back = iter(recorder.run(_whole(program), (*values, *ends)))
    return [None if slot is None else next(back) for slot in program.sources]


def _compile_whole(program: Program, values: Sequence[Any]) -> bool:
    if len(program.steps) <= 1 or any(step.op.eager for step in program.steps):
        return False
    if not recorder.eager():
        return True  # inside jit, vmap or grad nothing is compiled here
    if len(program.steps) > COMPILE_AT_MOST:
        return False
    before = _remember(_sightings, program)
    if before < 0:
        return True
    if before:
        worth = before > len(_whole_programs) // PATIENCE
    else:
        kinds = {(*step[3:], step.op, *(_kind(values[slot]) for slot in step.ins)) for step in program.steps}
        fresh = sum(not _remember(_kinds, kind) for kind in kinds)
        worth = fresh >= len(program.steps) * WHOLE_PER_STEP
    if worth:
        _sightings[program] = -1
        _whole_programs.add(hash(program))
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
def _whole(program: Program) -> Op:
    connected = [slot is not None for slot in program.targets]

    def whole(*flat: Any) -> list[Any]:
        split = len(flat) - sum(connected)
        ends = iter(flat[split:])
        cotangents = [next(ends) if c else None for c in connected]
        return [x for x in sweep(program, flat[:split], cotangents) if x is not None]

    return Op("gradient", whole, key=("sweep", program))


# ---- as a function --------------------------------------------------------------------------------------------------


def evaluate(program: Program, values: Sequence[Any], sources: Sequence[Any]) -> list[Any]:
    """Runs the program forward from other values of its sources; what does not depend on them keeps its recorded value."""
    env = dict(enumerate(values))
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
