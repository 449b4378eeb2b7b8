"""``tf.distribute`` with one replica, as on a machine with one device: a program written for strategies runs as it is."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..values import nest
from ..values.types import AxisLike, Ignored, Nest
from . import math as _math

math: Any = _math  # whose functions come out of tables


class ReduceOp(enum.Enum):
    """How the values of replicas become one."""

    SUM = "SUM"
    MEAN = "MEAN"


class ReplicaContext:
    """What a function that `Strategy.run` calls may ask: it is the only replica."""

    num_replicas_in_sync = 1
    replica_id_in_sync_group = 0

    def __init__(self, strategy: Strategy):
        self.strategy = strategy

    def all_reduce(self, reduce_op: ReduceOp | str, value: Nest, options: Ignored = None) -> Nest:
        """`value`: there are no others to reduce it with."""
        _reductions(reduce_op)
        return value

    all_gather = all_reduce

    def merge_call(self, merge_fn: Callable, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """``merge_fn(strategy, *args, **kwargs)``."""
        return merge_fn(self.strategy, *args, **(kwargs or {}))


class InputContext:
    """What a function that makes a dataset may ask: it feeds the only replica."""

    num_input_pipelines = num_replicas_in_sync = 1
    input_pipeline_id = 0

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """`global_batch_size`."""
        return global_batch_size


class Strategy:
    """One replica on the device that JAX computes on. For many devices shard arrays: ``docs/devices.md``.

    >>> import tapejax as tf
    >>> strategy = tf.distribute.MirroredStrategy()
    >>> with strategy.scope():
    ...     v = tf.Variable(2.0)
    >>> strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(lambda x: v * x, args=(tf.constant([1.0, 2.0]),)), axis=0)
    <tf.Tensor: shape=(), dtype=float32, numpy=6.0>
    """

    num_replicas_in_sync = 1
    cluster_resolver = None

    @contextlib.contextmanager
    def scope(self) -> Iterator[Strategy]:
        """While it lasts, this strategy is `get_strategy`'s. Variables are made as anywhere else."""
        _entered.append(self)
        try:
            yield self
        finally:
            _entered.pop()

    def run(
        self, fn: Callable, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, options: Ignored = None
    ) -> Any:
        """``fn(*args, **kwargs)``."""
        return fn(*args, **(kwargs or {}))

    def reduce(self, reduce_op: ReduceOp | str, value: Nest, axis: AxisLike | None) -> Nest:
        """`value`, reduced along `axis`, or as it is where that is None."""
        reduction = _reductions(reduce_op)
        return value if axis is None else nest.map_structure(lambda x: reduction(x, axis), value)

    def gather(self, value: Nest, axis: int) -> Nest:
        """`value`: there is nothing to concatenate."""
        return value

    def experimental_local_results(self, value: Nest) -> tuple:
        """``(value,)``."""
        return (value,)

    def experimental_distribute_dataset(self, dataset: Any, options: Ignored = None) -> Any:
        """`dataset`."""
        return dataset

    def distribute_datasets_from_function(self, dataset_fn: Callable, options: Ignored = None) -> Any:
        """What `dataset_fn` makes."""
        return dataset_fn(InputContext())

    experimental_distribute_datasets_from_function = distribute_datasets_from_function


class MirroredStrategy(Strategy):
    __doc__ = Strategy.__doc__

    def __init__(self, devices: Sequence[str] | None = None, cross_device_ops: Ignored = None):
        if devices is not None and len(devices) > 1:
            raise ValueError(
                f"MirroredStrategy runs one replica, and {len(devices)} devices were given: shard the batch with "
                "jax.sharding, which computes on all of them"
            )


class OneDeviceStrategy(Strategy):
    __doc__ = Strategy.__doc__

    def __init__(self, device: str):
        self._device = device


def _reductions(reduce_op: ReduceOp | str) -> Callable:
    kind = reduce_op if isinstance(reduce_op, ReduceOp) else ReduceOp(str(reduce_op).upper())
    return {ReduceOp.SUM: math.reduce_sum, ReduceOp.MEAN: math.reduce_mean}[kind]


_entered: list[Strategy] = []
_default = Strategy()


def get_strategy() -> Strategy:
    """The strategy whose scope the program is in, or one that does nothing."""
    return _entered[-1] if _entered else _default


def has_strategy() -> bool:
    """Whether the program is in the scope of a strategy."""
    return bool(_entered)


def get_replica_context() -> ReplicaContext:
    """The context of the only replica."""
    return ReplicaContext(get_strategy())
