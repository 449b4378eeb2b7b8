"""Batches of sweeps under `jax.vmap`: at once, or in chunks where that would take too much memory."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..tape.jacobian import BatchOp

# Rows are computed together as far as what they need fits into this, or into half the result.
CHUNK_BYTES = 8 << 20


def batch(op: BatchOp, *values: Any) -> Any:
    """`op`'s row of every index below its count, stacked along its axis."""
    row, count, result_bytes, axis = op.row, op.count, op.result_bytes, op.axis
    carried = {step.ins[i] for step in op.program.steps for i in step.active_ins}
    # a Ref, through which no gradient passes, has no size; the sweep is to say so
    each = sum(getattr(values[slot], "nbytes", 0) for slot in carried) or 1
    rows = jax.vmap(row, out_axes=axis)
    # a size may be symbolic: in a program for any batch size
    unknown = any(not isinstance(size, (int, np.integer)) for size in (count, each, result_bytes))
    chunk = count if unknown else max(1, max(CHUNK_BYTES, result_bytes // 2) // each)
    if chunk >= count:
        return rows(jnp.arange(count))

    def fill(i: Any, filled: Any) -> Any:  # in place: `lax.map` would stack the chunks first, and hold all of it twice
        start = jnp.minimum(i * chunk, count - chunk)
        part = rows(start + jnp.arange(chunk))
        return jax.tree.map(lambda x, y: jax.lax.dynamic_update_slice_in_dim(x, y, start, axis), filled, part)

    shapes = jax.eval_shape(rows, jnp.arange(count))
    empty = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    return jax.lax.fori_loop(0, -(-count // chunk), fill, empty)
