"""Jacobians: a sweep under `jax.vmap`, in the mode that takes fewer passes."""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..jaxprs.dependence import has_tangent
from ..jaxprs.fence import Tracer
from ..jaxprs.types import Function, Value, Values
from . import active, runner
from .derivative import run_rows
from .operation import PythonOp
from .slicing import Program
from .sweep import push, sweep


class BatchOp(PythonOp):
    """`row`, a sweep of `program`, of each index below `count`, stacked along `axis`. Its inputs: the values of the program.

    `result_bytes`: of all the results.
    """

    __slots__ = ("row", "count", "program", "result_bytes", "axis")

    def __init__(self, row: Function, count: Any, program: Program, result_bytes: Any, axis: int):
        super().__init__("batch", lambda *values: jax.vmap(row, out_axes=axis)(jnp.arange(count)))
        self.row, self.count, self.program, self.result_bytes, self.axis = row, count, program, result_bytes, axis


def _run_batch(row: Function, count: Any, program: Program, values: Values, result_bytes: Any, axis: int = 0) -> Any:
    return runner.current.run(BatchOp(row, count, program, result_bytes, axis), values)


def jacobian(program: Program, values: Values, mode: str | None = None) -> list[Any]:
    """For each source the derivative of every element of the one target: an array of shape ``target.shape + source.shape``.

    Reverse mode (as `jax.jacrev`: the pullback under `vmap`) takes a pass for each element of the target, forward mode
    (as `jax.jacfwd`: the pushforward under `vmap`) one for each element of the sources. By default the mode with fewer passes.
    At a pole, where the modes may differ, the default gives what reverse mode gives.
    """
    target = _target(program, values)
    connected = [slot for slot in program.sources if slot is not None]
    if target is None or not connected:
        return [None] * len(program.sources)
    passes = sum(values[slot].size for slot in dict.fromkeys(connected))
    # sizes are symbolic in a program for any batch size; for a complex source forward mode takes two passes an element
    fewer = isinstance(passes * target.size, int) and passes < target.size and not any(map(jnp.iscomplexobj, values))
    rows, others = _reverse_rows, _forward_columns
    if mode == "forward" or (mode is None and fewer):
        rows, others = others, rows
    try:
        jacobians = run_rows("jacobian", rows, program, values)
        return jacobians if mode or rows is _reverse_rows else _with_poles(jacobians, program, values)
    except (LookupError, TypeError, ValueError, NotImplementedError) as error:
        try:  # a while_loop has forward mode only, a custom_vjp reverse mode only
            return run_rows("jacobian", others, program, values)
        except Exception:
            raise error from None


def _with_poles(forward: list[Any], program: Program, values: Values) -> list[Any]:
    """What `forward` mode gave, or reverse mode where that is not finite.

    A product of an infinite slope with a zero is nan; which zeros there are depends on the mode.
    """
    arrays = [x for x in forward if x is not None]
    traced = any([isinstance(x, Tracer) for x in arrays])
    # on the host nothing is compiled for it
    numbers: Any = jnp if traced or not all(map(_is_on_host, arrays)) else np
    by_reverse_mode = functools.partial(run_rows, "jacobian", _reverse_rows, program, values)
    with active.outside():
        finite = functools.reduce(numbers.logical_and, [numbers.isfinite(x).all() for x in arrays])
    try:
        if traced:
            *_, (op, inputs, outs) = ran = active.tracing.ran or [(None, (), ())]
            chosen = list(jax.lax.cond(finite, lambda: forward, by_reverse_mode))
            if [*map(id, outs)] == [*map(id, arrays)]:  # whoever looks at the program sees one Jacobian
                ran.append((op, inputs, chosen))
            return chosen
        return forward if bool(finite) else by_reverse_mode()
    except (LookupError, TypeError, ValueError, NotImplementedError):  # a while_loop has forward mode only
        return forward


def _is_on_host(x: Value) -> bool:
    return x.is_fully_addressable and {device.platform for device in x.devices()} == {"cpu"}


def batch_jacobian(program: Program, values: Values) -> list[Any]:
    """For each source the pullback of each column ``target[:, j]``, summed over the batch: ``(batch, *outs, *ins)``."""
    if _target(program, values) is None:
        return [None] * len(program.sources)
    return run_rows("batch_jacobian", _batch_rows, program, values)


def _target(program: Program, values: Values) -> Any:
    """The value of a program's one target; None if that is not connected, or not differentiable."""
    (slot,) = program.targets
    return None if slot is None or not has_tangent(values[slot]) else values[slot]


def _one_hot(index: Any, like: Value, shape: tuple[Any, ...]) -> Any:
    """Zeros like `like` plus an array of this `shape` that has 1 at `index`.

    The zeros bring the type of `like`: how it is sharded, and over which axes of a mesh it varies.
    """
    zero, one = jnp.zeros((), like.dtype), jnp.ones((), like.dtype)
    # The mask is not converted to numbers: XLA would turn their product with a slope into a choice, and hide an infinite one.
    return jnp.zeros_like(like) + jnp.where(jnp.arange(math.prod(shape)) == index, one, zero).reshape(shape)


def _rows(program: Program, values: Values, target: Value, shape: tuple[Any, ...]) -> list[Any]:
    """The pullbacks of each element of an array of this `shape`, repeated as `target` is."""

    def row(index: Any) -> list[Any]:
        return sweep(program, values, [_one_hot(index, target, shape)])

    count = math.prod(shape)
    each = sum(values[slot].nbytes for slot in program.sources if slot is not None)
    return list(_run_batch(row, count, program, values, count * each))


def _reverse_rows(program: Program, *values: Any) -> list[Any]:
    target = _target(program, values)
    rows = _rows(program, values, target, target.shape)
    return [None if x is None else x.reshape(target.shape + x.shape[1:]) for x in rows]


def _forward_columns(program: Program, *values: Any) -> list[Any]:
    """As `_reverse_rows`, in the dtype of the source. If the target is complex, the slopes of its real part."""
    target = _target(program, values)
    jacobians: list[Any] = []
    for position, slot in enumerate(program.sources):
        if slot is None:
            jacobians.append(None)
            continue
        source = values[slot]

        def column(index: Any, position: int = position, source: Value = source) -> Any:
            one = _one_hot(index, source, source.shape)
            tangents: list[Any] = [None] * len(program.sources)
            parts = []
            for tangents[position] in (one, one * -1j) if jnp.iscomplexobj(source) else (one,):
                (out,) = push(program, values, tangents)
                part = jnp.real(jnp.zeros_like(target) if out is None else out)
                parts.append(part.astype(jnp.real(source).dtype))
            return jax.lax.complex(*parts) if len(parts) > 1 else parts[0]

        columns = _run_batch(column, source.size, program, values, source.size * target.nbytes, axis=-1)
        jacobians.append(columns.reshape(target.shape + source.shape))
    return jacobians


def _batch_rows(program: Program, *values: Any) -> list[Any]:
    target = _target(program, values)
    rows = _rows(program, values, target, target.shape[1:])
    return [None if x is None else jnp.moveaxis(x, 0, 1).reshape(target.shape + x.shape[2:]) for x in rows]
