"""Reverse and forward mode: each step of a program is pulled back or pushed forward at its recorded inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ..jaxprs.fence import Tracer, add_tangents
from ..jaxprs.types import Slot, Value, Values
from .operation import apply
from .slicing import Program, Step


def sweep(program: Program, values: Values, cotangents: Values | None = None) -> list[Any]:
    """Pulls the cotangents of the targets, by default ones, back to the sources: the steps in reverse, at their recorded inputs.

    On arrays each pullback is a compiled operation of its own. Under `jax.jit` all of them become one program.
    """
    ct: dict[int, Value] = {}
    for _ in sweep_steps(program, values, ones(program, values) if cotangents is None else cotangents, ct):
        pass
    return [None if slot is None else ct.get(slot) for slot in program.sources]


def ones(program: Program, values: Values) -> list[Any]:
    """The cotangents of the targets if none are given."""
    return [None if slot is None else apply(jnp.ones_like, values[slot]) for slot in program.targets]


def sweep_steps(
    program: Program, values: Values, cotangents: Values, ct: dict[int, Value]
) -> Iterator[tuple[int, Sequence[Any]]]:
    """The reverse sweep, a step at a time: yields the step's position and the cotangents of its active inputs.

    These are added up in `ct`, by slot. When a step is yielded, the sums for its outputs are complete.
    """
    for slot, x in zip(program.targets, cotangents, strict=True):
        add(ct, slot, x)
    for position, step in reversed([*enumerate(program.steps)]):
        back = pull_step(step, values, ct)
        if back is not None:
            yield position, back


def pull_step(step: Step, values: Values, ct: dict[int, Value]) -> Sequence[Any] | None:
    """Pulls one step back and adds what comes to `ct`. The cotangents of its active inputs; None if none has reached it."""
    op, ins, outs, active_ins, active_outs, _ = step
    arrived = {j: ct[outs[j]] for j in active_outs if outs[j] in ct}
    if not arrived:
        return None
    inputs = [values[slot] for slot in (*ins, *op.residuals(outs))]
    back = op.pull_back(step, inputs, arrived)
    for i, x in zip(active_ins, back, strict=True):
        add(ct, ins[i], x)
    return back


def push(program: Program, values: Values, tangents: Values) -> list[Any]:
    """Pushes the sources' tangents (None for zero) forward to the targets: the steps in order, at their recorded inputs."""
    tangent: dict[int, Value] = {}
    for slot, x in zip(program.sources, tangents, strict=True):
        add(tangent, slot, x)
    for step in program.steps:
        arrived = {i: tangent[step.ins[i]] for i in step.active_ins if step.ins[i] in tangent}
        if not arrived:
            continue
        out = step.op.push_forward(step, [values[slot] for slot in step.ins], arrived)
        for j, x in zip(step.active_outs, out, strict=True):
            add(tangent, step.outs[j], x)
    return [None if slot is None else tangent.get(slot) for slot in program.targets]


def on_devices_of(source: Value, gradient: Value) -> Value:
    """`gradient` on the devices of `source`: XLA chooses where it leaves one, often all of it on each of the devices."""
    if isinstance(gradient, Tracer) or isinstance(source, Tracer) or not source.committed:
        return gradient
    place = source.sharding
    if type(place) is not jax.sharding.NamedSharding or place.is_equivalent_to(gradient.sharding, source.ndim):
        return gradient
    if place.spec.unreduced or place.spec.reduced:  # of the one the other is the cotangent
        return gradient
    return jax.device_put(gradient, place)


def add(sums: dict[int, Value], slot: Slot | None, x: Value | None) -> None:
    """Adds the cotangent or tangent `x` to the sum for `slot`. None counts as zero."""
    if slot is not None and x is not None:
        sums[slot] = apply(add_cotangents, sums[slot], x) if slot in sums else x


def add_cotangents(x: Value, y: Value) -> Any:
    extended = hasattr(x, "dtype") and jax.dtypes.issubdtype(x.dtype, jax.dtypes.extended)
    return add_tangents(x, y) if extended else x + y
