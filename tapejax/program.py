"""A recording cut down to what leads from sources to targets: hashable data that becomes a pure function.

A value is a numbered slot; a step is an operation with the slots that it reads and writes. Two runs of the same code give
equal programs, which is what lets compiled code be kept.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend import core

from . import jaxprs, recorder
from .recorder import Entry, Op, Recording


class Step(NamedTuple):
    """One operation of a program. `wanted` are the positions in `ins` that carry a gradient, `present` those in `outs`."""

    op: Op
    ins: tuple[int, ...]
    outs: tuple[int, ...]
    wanted: tuple[int, ...]
    present: tuple[int, ...]


class Program(NamedTuple):
    """`steps` in the order in which they ran, the slots of the targets, and of each source (None: not connected)."""

    steps: tuple[Step, ...]
    targets: tuple[int | None, ...]
    sources: tuple[int | None, ...]


def extract(
    recording: Recording,
    targets: Sequence[Any],
    sources: Sequence[Any],
    accessed: Sequence[Any] = (),
    *,
    whole: bool = False,
) -> tuple[Program, list[Any]]:
    """The program from the arrays `sources` to the arrays `targets`, and the recorded value of every slot.

    A value counts if it is watched, or was computed from one that counts, at the time when it is used. `accessed` are
    arrays of other libraries' variables, watched from the start. The program holds what carries gradient; the `whole`
    one also what depends on the sources through integers, comparisons or `stop_gradient`.
    """
    carried = list(_carrying(recording, {id(x) for x in sources}, accessed, whole))
    needed = {id(x) for x in targets if whole or is_inexact(x)}
    kept = []
    for entry, op, wanted, linked in reversed(carried):
        present = tuple(j for j in linked if id(entry.outputs[j]) in needed)
        if present:
            wanted = tuple(i for i in wanted if any(i in linked[j] for j in present))
            needed.update(id(entry.inputs[i]) for i in wanted)
            kept.append((entry, op, wanted, present))
    return _number(kept[::-1], targets, sources, needed)


def _carrying(
    recording: Recording, sources: set[int], accessed: Sequence[Any], whole: bool
) -> Iterator[tuple[Entry, Op, tuple[int, ...], dict[int, frozenset[int]]]]:
    """The entries through which a source reaches a value, with the inputs it comes in by and the outputs it reaches."""
    tracked = {id(x) for x in accessed}
    watched = [(begin, key) for key, (_, begin) in recording.watched.items()][::-1]
    live = set(sources)
    for position, entry in enumerate(recording.entries):
        while watched and watched[-1][0] <= position:
            tracked.add(watched.pop()[1])
        inputs = [i for i, x in enumerate(entry.inputs) if id(x) in tracked]
        if not inputs:
            continue
        tracked.update(id(x) for x in entry.outputs if whole or is_inexact(x))
        wanted = [i for i in inputs if id(entry.inputs[i]) in live]
        if not wanted:
            continue
        op = entry.op.settled()
        linked = {}
        for j, reached_by in enumerate([frozenset(wanted)] * len(entry.outputs) if whole else links(op, entry)):
            if not reached_by.isdisjoint(wanted):
                linked[j] = reached_by
                live.add(id(entry.outputs[j]))
        if linked:
            yield entry, op, tuple(wanted), linked


def _number(kept: Sequence[Any], targets: Sequence[Any], sources: Sequence[Any], needed: set[int]) -> tuple[Program, list]:
    slots: dict[int, int] = {}
    values: list[Any] = []

    def slot(x: Any) -> int:
        # a constant may be a Python scalar, whose identity means nothing
        key = id(x) if isinstance(x, jax.Array) else -1 - len(values)
        if (number := slots.get(key)) is None:
            slots[key] = number = len(values)
            values.append(x)
        return number

    steps = tuple(
        Step(op, tuple(map(slot, entry.inputs)), tuple(map(slot, entry.outputs)), wanted, present)
        for entry, op, wanted, present in kept
    )
    ends = tuple(slot(x) if isinstance(x, jax.Array) and id(x) in needed else None for x in targets)
    starts = tuple(slot(x) if id(x) in needed and (id(x) in slots) else None for x in sources)
    return Program(steps, ends, starts), values


@functools.cache
def _inexact_dtype(dtype: Any) -> bool:
    return bool(jnp.issubdtype(dtype, jnp.inexact))


def is_inexact(x: Any) -> bool:
    return isinstance(x, jax.Array) and _inexact_dtype(x.dtype)


# ---- what is connected to what --------------------------------------------------------------------------------------

_LINKS_KEPT = 8192


def links(op: Op, entry: Entry) -> tuple[frozenset[int], ...]:
    """For each output of `entry`, the inputs on which its derivative depends.

    JAX knows: the tangent of an output that does not depend on an input, or only through integers, ``floor``,
    ``stop_gradient``..., is a symbolic zero.
    """
    kinds = tuple(x.dtype if isinstance(x, jax.Array) else type(x) for x in entry.inputs)
    known = _links.get((op, kinds))
    if known is None:
        if len(_links) >= _LINKS_KEPT:
            _links.clear()
        known = _links[op, kinds] = _find_links(op, entry)
    return known


_links: dict[Any, tuple[frozenset[int], ...]] = {}


def _find_links(op: Op, entry: Entry) -> tuple[frozenset[int], ...]:
    inexact = [i for i, x in enumerate(entry.inputs) if is_inexact(x)]
    outputs = [is_inexact(x) for x in entry.outputs]
    everything = tuple(frozenset(inexact) if out else frozenset() for out in outputs)
    if op.eager or op.fn in recorder.zero_gradients:
        return everything

    def tangents_out(primals: list[Any], tangents: list[Any]) -> list[Any]:
        def on_inexact(*xs: Any) -> list[Any]:
            full = list(primals)
            for i, x in zip(inexact, xs, strict=True):
                full[i] = x
            return [y for y, out in zip(jax.tree.leaves(op.fn(*full)), outputs, strict=True) if out]

        return jax.jvp(on_inexact, [primals[i] for i in inexact], tangents)[1]

    try:
        with recorder.outside():
            closed = jax.make_jaxpr(tangents_out)(list(entry.inputs), [entry.inputs[i] for i in inexact])
    except Exception:  # it cannot be differentiated: the sweep will say so, if a gradient is to pass through it
        return everything
    masks = [0] * len(entry.inputs) + [1 << i for i in inexact]
    reached = iter(_propagate(closed, masks))
    return tuple(
        frozenset(i for i in inexact if mask >> i & 1) for mask in ((next(reached) if out else 0) for out in outputs)
    )


def _propagate(jaxpr: Any, masks: Sequence[int]) -> list[int]:
    """Which inputs reach each output of `jaxpr`, as bit masks."""
    jaxpr = jaxprs.open_jaxpr(jaxpr)
    env: dict[Any, int] = dict(zip(jaxpr.invars, masks, strict=True))

    def read(atom: Any) -> int:
        return 0 if isinstance(atom, core.Literal) else env.get(atom, 0)

    for eqn in jaxpr.eqns:
        ins = [read(x) for x in eqn.invars]
        inner = eqn.params.get("jaxpr") or eqn.params.get("call_jaxpr")
        if not any(ins):
            outs = [0] * len(eqn.outvars)
        elif eqn.primitive.name == "scan":
            outs = _propagate_scan(eqn.params, ins)
        elif eqn.primitive.name == "cond":
            branches = [_propagate(branch, ins[1:]) for branch in eqn.params["branches"]]
            outs = [functools.reduce(int.__or__, masks) for masks in zip(*branches, strict=True)]
        elif inner is not None and len(jaxprs.open_jaxpr(inner).invars) == len(ins):
            outs = _propagate(inner, ins)
        else:
            outs = [functools.reduce(int.__or__, ins)] * len(eqn.outvars)
        env.update(zip(eqn.outvars, outs, strict=True))
    return [read(x) for x in jaxpr.outvars]


def _propagate_scan(params: dict[str, Any], ins: list[int]) -> list[int]:
    # What is carried has come round any number of times: repeat until an iteration adds nothing.
    consts, carry = jaxprs.scan_counts(params)
    while True:
        outs = _propagate(params["jaxpr"], ins)
        merged = list(ins)
        for i in range(carry):
            merged[consts + i] |= outs[i]
        if merged == ins:
            return outs
        ins = merged
