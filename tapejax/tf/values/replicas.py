"""The replicas of a strategy: one axis of `jax.vmap`, which has a name. Where values differ between replicas they are batched."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ...jaxprs.fence import BatchTracer, Tracer
from .types import Array

AXIS = "replica"


class _Here(threading.local):
    mesh: Mesh | None = None  # on whose devices new variables are placed
    running = False  # whether a function of the user's is run as that of each replica


here = _Here()


@contextlib.contextmanager
def setting(**values: Any) -> Iterator[None]:
    """`here` with other values."""
    before = {name: getattr(here, name) for name in values}
    try:
        vars(here).update(values)
        yield
    finally:
        vars(here).update(before)


def placed(array: Array) -> Array:
    """A new variable's array: the whole of it on each of the strategy's devices."""
    if here.mesh is None or isinstance(array, Tracer):
        return array
    return jax.device_put(array, NamedSharding(here.mesh, PartitionSpec()))


def differs(array: Any) -> bool:
    """Whether `array` may have another value in each replica."""
    return isinstance(array, BatchTracer) and array.batch_dim is not None


def first(array: Array) -> Array:
    """The value of the first replica."""
    return jax.lax.all_gather(array, AXIS)[0] if differs(array) else array


def aggregated(array: Array, aggregation: Any, name: str) -> Array:
    """What a variable is assigned in all replicas, where each of them has an `array`.

    Args:
      array: the replica's value.
      aggregation: how the values become one: the variable's ``VariableAggregation``, or Keras's word for it.
      name: the variable's.

    Raises:
      ValueError: the values differ, and the variable has no aggregation.
    """
    if not here.running:
        return array
    kind = str(getattr(aggregation, "name", aggregation)).upper()
    if kind == "SUM":
        return jax.lax.psum(array, AXIS)
    if kind == "MEAN":
        return jax.lax.pmean(array, AXIS) if differs(array) else array
    if kind == "ONLY_FIRST_REPLICA":
        return first(array)
    if differs(array):
        raise ValueError(
            f"Variable {name!r} is assigned a value that may differ between replicas, and it is the same in all: make the "
            "variable with aggregation=tf.VariableAggregation.SUM, MEAN or ONLY_FIRST_REPLICA, or assign what "
            "tf.distribute.get_replica_context().all_reduce gives"
        )
    return array
