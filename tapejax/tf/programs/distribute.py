"""``tf.distribute`` over JAX's shardings: a function that each replica runs is run once, under `jax.vmap` with a named axis.

The rows of that axis are the replicas. What they are given is sharded along it over a mesh of the devices, so that XLA computes
each replica's part on its device; variables are whole on each. `all_reduce` is `jax.lax.psum`. So a program has TensorFlow's
numbers for that many replicas, those of batch normalisation included, and is one program for all devices. Where a batch cannot
be divided equally there is an axis for each size (`replicas`), and all devices compute all of it.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import itertools
import json
import os
import types
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from ...jaxprs import canonical
from ...jaxprs.cache import memoised
from ...jaxprs.fence import Tracer
from ...tape import active
from ..ops import config
from ..ops import math as _math
from ..ops.random import each_row
from ..ops.tpu import TPUClusterResolver, require_tpu
from ..values import nest, reading, replicas
from ..values.conversion import convert_to_tensor, is_tensor, raw
from ..values.errors import OutOfRangeError
from ..values.missing import hints
from ..values.operations import op
from ..values.staging import Threaded
from ..values.tensor import Tensor
from ..values.types import Array, AxisLike, Ignored, Nest, TensorLike
from .function import function
from .optional import Optional
from .train import ClusterSpec

math: Any = _math  # whose functions come out of tables


class ReduceOp(enum.Enum):
    """How the values of replicas become one."""

    SUM = "SUM"
    MEAN = "MEAN"


class InputReplicationMode(enum.Enum):
    """How many input pipelines a strategy has."""

    PER_WORKER = "PER_WORKER"
    PER_REPLICA = "PER_REPLICA"


class InputOptions(NamedTuple):
    """What TensorFlow may be told about a distributed dataset. Nothing here depends on it."""

    experimental_fetch_to_device: bool | None = None
    experimental_replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER
    experimental_place_dataset_on_device: bool = False
    experimental_per_replica_buffer_size: int = 1


class RunOptions(NamedTuple):
    """What TensorFlow may be told about a run. Nothing here depends on it."""

    experimental_enable_dynamic_batch_size: bool = True
    experimental_bucketizing_dynamic_shape: bool = False
    experimental_xla_options: Any = None


class CommunicationImplementation(enum.Enum):
    """Who communicates. JAX decides."""

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


class CommunicationOptions(NamedTuple):
    """What TensorFlow may be told about communication, which is JAX's here."""

    bytes_per_pack: int = 0
    timeout_seconds: float | None = None
    implementation: CommunicationImplementation = CommunicationImplementation.AUTO


class CrossDeviceOps:
    """How TensorFlow would communicate between devices. Here JAX does, whatever is chosen."""

    def __init__(self, num_packs: Ignored = 1):
        pass


class ReductionToOneDevice(CrossDeviceOps):
    __doc__ = CrossDeviceOps.__doc__

    def __init__(self, reduce_to_device: Ignored = None, accumulation_fn: Ignored = None):
        super().__init__()


class HierarchicalCopyAllReduce(CrossDeviceOps):
    __doc__ = CrossDeviceOps.__doc__


class NcclAllReduce(CrossDeviceOps):
    __doc__ = CrossDeviceOps.__doc__


class DistributedValues:
    """A value for each replica."""


@nest.composite
@jax.tree_util.register_pytree_node_class
class PerReplica(DistributedValues):
    """A tensor for each replica: their stack, sharded along the first axis; or several stacks, in order, of different shapes."""

    def __init__(self, *stacks: Tensor):
        self._stacks = stacks

    @property
    def values(self) -> tuple[Tensor, ...]:
        """The tensors of this process's replicas, in order."""
        array = raw(self._stacks[0])
        if isinstance(array, Tracer) or array.is_fully_addressable:
            return tuple(stack[i] for stack in self._stacks for i in range(stack.shape[0]))
        devices = enumerate(array.sharding.mesh.devices.flat)
        return tuple(self._held(i) for i, device in devices if device.process_index == jax.process_index())

    def _held(self, number: int) -> Tensor:
        """A replica's tensor, as this process has it: no other process is asked."""
        stack, row = self._found(number)
        rows = range(int(stack.shape[0]))
        parts = ((part.data, rows[part.index[0]]) for part in raw(stack).addressable_shards)
        return next(Tensor(data[row - here.start]) for data, here in parts if row in here)

    def _group(self, start: int, stop: int) -> Tensor:
        """The stack of some replicas, all in one of the stacks."""
        stack, first = self._found(start)
        return stack if stop - start == stack.shape[0] else stack[first : first + stop - start]

    def _found(self, number: int) -> tuple[Tensor, int]:
        """The stack that has a replica's tensor, and which of its rows that is."""
        for stack in self._stacks:
            if number < (count := int(stack.shape[0])):
                return stack, number
            number -= count
        raise IndexError("there are fewer replicas")

    @property
    def _stacked(self) -> Tensor:
        return self._stacks[0] if len(self._stacks) == 1 else op(_concatenated, *self._stacks, axis=0)

    def __tf_flatten__(self) -> tuple[None, list[Tensor]]:
        return None, list(self._stacks)

    @classmethod
    def __tf_unflatten__(cls, metadata: None, components: Sequence[Tensor]) -> PerReplica:
        return cls(*components)

    def tree_flatten(self) -> tuple[tuple[Tensor, ...], None]:
        return self._stacks, None

    @classmethod
    def tree_unflatten(cls, metadata: None, children: Sequence[Tensor]) -> PerReplica:
        return cls(*children)

    def __repr__(self) -> str:
        return f"PerReplica({', '.join(map(repr, self._stacks))})"


class ReplicaContext:
    """What a function that `Strategy.run` calls may ask."""

    __getattr__ = hints("distribute.ReplicaContext")

    def __init__(self, strategy: Strategy):
        self.strategy = strategy

    num_replicas_in_sync = property(lambda self: self.strategy.num_replicas_in_sync, doc="The number of replicas.")

    @property
    def replica_id_in_sync_group(self) -> Tensor | int:
        """The replica's number: a tensor where there are several."""
        return Tensor(replicas.number()) if replicas.place.running else 0

    def all_reduce(self, reduce_op: ReduceOp | str, value: Nest, options: Ignored = None) -> Nest:
        """The sum or mean of all replicas' values, in each of them. Gradients pass."""
        collective = {ReduceOp.SUM: _total, ReduceOp.MEAN: _mean}[_reduce_op(reduce_op)]
        if not replicas.place.running:
            return value
        return nest.map_structure(lambda x: op(collective, convert_to_tensor(x), group=replicas.place.group), value)

    def all_gather(self, value: Nest, axis: int, options: Ignored = None) -> Nest:
        """All replicas' values, concatenated along `axis`, in each of them. Gradients pass."""
        if not replicas.place.running:
            return value
        return nest.map_structure(
            lambda x: op(_gathered, convert_to_tensor(x), axis=axis, group=replicas.place.group), value
        )

    def merge_call(self, merge_fn: Callable, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """``merge_fn(strategy, *args, **kwargs)``, called once, with the values of all replicas."""
        if not replicas.place.running:
            return merge_fn(self.strategy, *args, **(kwargs or {}))

        def all_of(x: Any) -> Any:
            return PerReplica(op(_stack, x, group=replicas.place.group)) if is_tensor(x) else x

        def own(x: Any) -> Any:
            return x._stacked[self.replica_id_in_sync_group] if isinstance(x, PerReplica) else x

        args, kwargs = nest.map_structure(all_of, (list(args), dict(kwargs or {})))
        with replicas.place.setting(running=False):
            merged = merge_fn(self.strategy, *args, **kwargs)
        return nest.map_structure(own, merged)


# Operations are known by their functions and `group`, on which their programs depend.


def _total(x, group):
    return replicas.total(x)


def _mean(x, group):
    return replicas.mean(x)


def _stack(x, group):
    return replicas.stacked(x)


def _gathered(x, axis, group):
    return jnp.concatenate(list(replicas.stacked(x)), axis)


class ValueContext(NamedTuple):
    """What the function that makes a value for each replica may ask."""

    replica_id_in_sync_group: int = 0
    num_replicas_in_sync: int = 1


class InputContext:
    """What a function that makes a dataset may ask. A pipeline yields the batch of one replica; each process has one."""

    def __init__(self, num_input_pipelines: int = 1, input_pipeline_id: int = 0, num_replicas_in_sync: int = 1):
        self.num_input_pipelines, self.input_pipeline_id = num_input_pipelines, input_pipeline_id
        self.num_replicas_in_sync = num_replicas_in_sync

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """The rows of a global batch that are one replica's.

        Raises:
          ValueError: they cannot be divided equally.
        """
        if global_batch_size % self.num_replicas_in_sync:
            raise ValueError(
                f"The `global_batch_size` {global_batch_size} is not divisible by `num_replicas_in_sync` "
                f"{self.num_replicas_in_sync}"
            )
        return global_batch_size // self.num_replicas_in_sync


class DistributedIterator:
    """Gives the batches of a `DistributedDataset`, one by one."""

    __getattr__ = hints("distribute.DistributedIterator")

    def __init__(self, batches: Iterator[Nest]):
        self._batches = batches

    def __iter__(self) -> DistributedIterator:
        return self

    def __next__(self) -> Nest:
        reading.require_python("next(iterator)")  # before the batches are asked for: an exception would end them
        return next(self._batches)

    def get_next(self, name: str | None = None) -> Nest:
        """The next batch.

        Raises:
          OutOfRangeError: there is none.
        """
        for batch in self:
            return batch
        raise OutOfRangeError("End of sequence")

    def get_next_as_optional(self) -> Optional:
        """The next batch, or that there is none."""
        return Optional(None, *itertools.islice(self, 1))


class DistributedDataset:
    """Batches whose rows are divided among replicas."""

    __getattr__ = hints("distribute.DistributedDataset")

    def __init__(self, source: Callable[[], Iterator[Nest]], size: Callable[[], Any]):
        self._source, self._size = source, size

    def __iter__(self) -> DistributedIterator:
        return DistributedIterator(self._source())

    def __len__(self) -> int:
        return int(self._size())


class StrategyExtended:
    """What libraries ask of a strategy."""

    __getattr__ = hints("distribute.StrategyExtended")

    def __init__(self, strategy: Strategy):
        self._strategy = strategy

    worker_devices = property(lambda self: self._strategy._names, doc="The devices' names.")
    parameter_devices = worker_devices

    def reduce_to(
        self, reduce_op: ReduceOp | str, value: Nest, destinations: Ignored = None, options: Ignored = None
    ) -> Nest:
        """The sum or mean of the replicas' values."""
        return self._strategy.reduce(reduce_op, value, axis=None)

    def update(
        self,
        var: Any,
        fn: Callable,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        group: bool = True,
    ) -> Any:
        """``fn(var, *args, **kwargs)``, on all devices at once."""
        return fn(var, *args, **(kwargs or {}))

    def colocate_vars_with(self, colocate_with_variable: Ignored) -> contextlib.AbstractContextManager[None]:
        """A context that does nothing: variables lie on all devices."""
        return contextlib.nullcontext()


class Strategy:
    """One replica on the device that JAX computes on, or with several devices a replica on each: ``docs/devices.md``.

    >>> import tapejax as tf
    >>> strategy = tf.distribute.MirroredStrategy()
    >>> with strategy.scope():
    ...     v = tf.Variable(2.0)
    >>> strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(lambda x: v * x, args=(tf.constant([1.0, 2.0]),)), axis=0)
    <tf.Tensor: shape=(), dtype=float32, numpy=6.0>
    """

    cluster_resolver: Any = None
    _names: tuple[str, ...] = ()
    _mesh: Mesh | None = None  # only where there are several devices

    num_replicas_in_sync = property(lambda self: 1 if self._mesh is None else self._mesh.size, doc="How many replicas.")
    extended = property(StrategyExtended, doc="What libraries ask of a strategy.")

    __getattr__ = hints("distribute.Strategy")

    def _use(self, devices: Sequence[jax.Device]) -> None:
        self._names = tuple(f"/job:localhost/replica:0/task:0/device:{d.platform.upper()}:{d.id}" for d in devices)
        if len(devices) > 1:
            self._mesh = jax.make_mesh((len(devices),), (replicas.AXIS,), (AxisType.Auto,), devices=devices)

    @contextlib.contextmanager
    def scope(self) -> Iterator[Strategy]:
        """While it lasts, this strategy is `get_strategy`'s, and variables that are made are whole on each of its devices."""
        with self._entered(crossing=True):
            yield self

    def _entered(self, crossing: bool, **fields: Any) -> contextlib.AbstractContextManager[None]:
        within = (*replicas.place.strategies, (self, crossing))
        return replicas.place.setting(strategies=within, mesh=self._mesh, **fields)

    def run(
        self, fn: Callable, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, options: Ignored = None
    ) -> Any:
        """``fn(*args, **kwargs)`` in each replica: its own part of distributed values, all of any others.

        Where there are several replicas `fn` is run once, as the body of a `tf.function`.

        Returns:
          what `fn` returns; where there are several replicas, with a distributed value for each tensor.
        """
        kwargs = dict(kwargs or {})
        if self._mesh is None:
            with self._entered(crossing=False):
                return fn(*args, **kwargs)
        if reading.context.capture is None:
            return self._compiled(_Defined(fn))(*args, **kwargs)
        values: list[PerReplica] = []
        structures: list[Nest] = []

        def own(x: Any) -> Any:
            if isinstance(x, PerReplica):
                values.append(x)
                return _Hole(len(values) - 1)
            return x

        outline = nest.map_structure(own, (list(args), kwargs))
        starts = sorted({0}.union(*[itertools.accumulate(int(s.shape[0]) for s in x._stacks) for x in values]))
        groups = [*itertools.pairwise(starts)] or [(0, self.num_replicas_in_sync)]

        def replica(group: int | None, row: Array, parts: Sequence[Array]) -> list[Array]:
            args, kwargs = nest.map_structure(lambda x: Tensor(parts[x.number]) if isinstance(x, _Hole) else x, outline)
            with self._entered(crossing=False, running=True, group=group), each_row(row):
                result = active.continuing(active.active_recordings(), fn, *args, **kwargs)
            results: list[Array] = []

            def hole(x: Any) -> Any:
                if not is_tensor(x):
                    return x
                results.append(raw(x))
                return _Hole(len(results) - 1)

            structures.append(nest.map_structure(hole, result))
            return results

        def of_group(start: int, stop: int) -> Callable[..., list[Array]]:
            rows = np.arange(start, stop, dtype=np.uint32)
            group = functools.partial(replica, start if len(groups) > 1 else None)
            return lambda *parts: jax.vmap(group, axis_name=replicas.AXIS)(rows, parts)

        parts = [[raw(x._group(*group)) for x in values] for group in groups]
        bodies = [of_group(*group) for group in groups]
        if len(groups) == 1:
            found = [bodies[0](*parts[0])]
        else:
            found = Threaded(*zip(bodies, parts, strict=True), creates=True).together(replicas.in_step, *parts)
        joined = [self._joined(stacks) for stacks in zip(*found, strict=True)]
        return nest.map_structure(lambda x: joined[x.number] if isinstance(x, _Hole) else x, structures[0])

    experimental_run_v2 = run

    @memoised(64)  # strategies last as long as programs
    def _compiled(self, defined: _Defined) -> Callable:
        return function(lambda *args, **kwargs: self.run(defined.fn, args, kwargs))

    def reduce(self, reduce_op: ReduceOp | str, value: Nest, axis: AxisLike | None) -> Nest:
        """The sum or mean of the replicas' values, each of them reduced along `axis` where it is not None.

        Raises:
          ValueError: the sum of what is no distributed value is asked for, where there are several replicas.
        """
        kind = _reduce_op(reduce_op)
        reduction = {ReduceOp.SUM: math.reduce_sum, ReduceOp.MEAN: math.reduce_mean}[kind]

        def reduced(x: Any) -> Any:
            if isinstance(x, PerReplica):
                x = reduction(x._stacked, 0) if axis is None else _merged(x, axis)
            elif self._mesh is not None and kind is ReduceOp.SUM and not (isinstance(x, (int, float)) and x == 0):
                raise ValueError(
                    f"A non-DistributedValues value {x} cannot be reduced with the given reduce op {kind}."
                )
            return x if axis is None else reduction(x, axis)

        return nest.map_structure(reduced, value)

    def gather(self, value: Nest, axis: int) -> Nest:
        """The replicas' values, concatenated along `axis`."""
        return nest.map_structure(lambda x: _merged(x, axis) if isinstance(x, PerReplica) else x, value)

    def experimental_local_results(self, value: Nest) -> tuple:
        """The values of this process's replicas, a tuple."""
        counts = [len(x.values) for x in nest.flatten(value) if isinstance(x, PerReplica)]
        return tuple(
            nest.map_structure(lambda x, i=i: x.values[i] if isinstance(x, PerReplica) else x, value)
            for i in range(counts[0] if counts else 1)
        )

    def experimental_distribute_values_from_function(self, value_fn: Callable[[ValueContext], Any]) -> Any:
        """A distributed value of what `value_fn` returns for each replica."""
        count = self.num_replicas_in_sync
        made = [value_fn(ValueContext(i, count)) for i in range(count)]
        if self._mesh is None:
            return made[0]
        return nest.map_structure(lambda *each: self._placed(each), *made)

    def experimental_distribute_dataset(self, dataset: Any, options: Ignored = None) -> Any:
        """`dataset`, the rows of each batch divided among the replicas; if they cannot be equally, the last have fewer, or none.

        Raises:
          ValueError: while it is iterated over, for a batch that has no rows, being a number.
        """
        if self._mesh is None:
            return dataset
        return DistributedDataset(lambda: (nest.map_structure(self._divided, x) for x in dataset), dataset.cardinality)

    def distribute_datasets_from_function(self, dataset_fn: Callable, options: Ignored = None) -> Any:
        """The batches of what `dataset_fn` makes for each process, one for each of its replicas in turn.

        Every process makes the datasets of all, to know the shapes, and computes with its own rows.
        """
        count = self.num_replicas_in_sync
        if self._mesh is None:
            return dataset_fn(InputContext())
        shares = [len([*group]) for _, group in itertools.groupby(self._mesh.devices.flat, lambda d: d.process_index)]
        datasets = [dataset_fn(InputContext(len(shares), i, count)) for i in range(len(shares))]

        def batches() -> Iterator[Nest]:
            iterators = [iter(dataset) for dataset in datasets]
            while True:
                each = [[*itertools.islice(*pair)] for pair in zip(iterators, shares, strict=True)]
                some = next((part[0] for part in each if part), None)
                if some is None:
                    return
                none = nest.map_structure(lambda x: np.asarray(x)[:0], some)
                filled = [[*part, *[none] * (share - len(part))] for part, share in zip(each, shares, strict=True)]
                yield nest.map_structure(lambda *parts: self._placed(parts), *itertools.chain(*filled))

        def size() -> int:
            return max(-(-int(x.cardinality()) // share) for x, share in zip(datasets, shares, strict=True))

        return DistributedDataset(batches, size)

    experimental_distribute_datasets_from_function = distribute_datasets_from_function

    def _divided(self, x: TensorLike) -> PerReplica:
        array, count = np.asarray(x), self.num_replicas_in_sync
        if not array.ndim:
            raise ValueError(f"{array} cannot be divided among {count} replicas: it has no rows. Batch the dataset")
        rows = -(-len(array) // count)
        return self._placed([array[i * rows :][:rows] for i in range(count)])

    def _placed(self, each: Sequence[Any]) -> PerReplica:
        """The replicas' values, each on its device; where they have different shapes all are on all devices."""
        groups = [[*group] for _, group in itertools.groupby([np.asarray(x) for x in each], lambda x: x.shape)]
        stacks = [np.asarray(convert_to_tensor(np.stack(group))) for group in groups]
        return PerReplica(*[Tensor(_on_devices(stack, self._sharding(len(groups) == 1))) for stack in stacks])

    def _joined(self, stacks: Sequence[Array]) -> PerReplica:
        """What the replicas have computed, each on its device, or all on all devices."""
        divided = len(stacks) == 1
        if len({(x.shape[1:], x.dtype) for x in stacks}) == 1 < len(stacks):
            stacks = [jnp.concatenate(stacks)]
        return PerReplica(*[Tensor(jax.lax.with_sharding_constraint(x, self._sharding(divided))) for x in stacks])

    def _sharding(self, divided: bool) -> NamedSharding:
        assert self._mesh is not None
        return NamedSharding(self._mesh, PartitionSpec(*[replicas.AXIS] * divided))


def _on_devices(stack: np.ndarray, sharding: NamedSharding) -> Array:
    return jax.make_array_from_callback(stack.shape, sharding, lambda part: stack[part])


class _Defined:
    """A function, equal to any other that the same ``def`` has made of the same values, as each call of a step does."""

    def __init__(self, fn: Callable):
        self.fn, self._key = fn, _definition(fn, ())

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return type(other) is _Defined and other._key == self._key


def _definition(x: Any, around: tuple[Any, ...]) -> Hashable:
    if type(x) is not types.FunctionType:
        return canonical.key(x)
    if x in around:
        return around.index(x)
    held = [cell.cell_contents for cell in x.__closure__ or () if cell != types.CellType()]
    held += [*(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values()]
    parts = (_definition(y, (*around, x)) for y in held)
    return x.__code__, canonical.Identity(x.__globals__), *parts


class _Hole:
    """Where a tensor was in a structure."""

    def __init__(self, number: int):
        self.number = number


def _merged(x: PerReplica, axis: Any) -> Tensor:
    return op(_unstacked, *x._stacks, axis=int(axis))


def _unstacked(*stacks, axis):
    return _concatenated(*[value for stack in stacks for value in stack], axis=axis)


def _concatenated(*arrays, axis):
    return jnp.concatenate(arrays, axis=axis)


class MirroredStrategy(Strategy):
    """A replica on each device that this process has, or on each of `devices`.

    Args:
      devices: names such as ``"/gpu:0"`` or ``"CPU:1"``.

    Raises:
      ValueError: there is no such device.

    >>> import tapejax as tf
    >>> strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    >>> strategy.num_replicas_in_sync
    1
    """

    def __init__(self, devices: Sequence[str] | None = None, cross_device_ops: Ignored = None):
        devices = [devices] if isinstance(devices, str) else devices
        self._use(jax.local_devices() if devices is None else [config.device_of(str(name)) for name in devices])


class OneDeviceStrategy(Strategy):
    """One replica: what is made in its scope, or by `run`, lies on `device`.

    Args:
      device: its name, as `tf.device` takes it.
    """

    def __init__(self, device: str):
        self._names = (device,)

    @contextlib.contextmanager
    def _entered(self, crossing: bool, **fields: Any) -> Iterator[None]:
        with config.device(self._names[0]), super()._entered(crossing, **fields):
            yield


class CentralStorageStrategy(MirroredStrategy):
    """As `MirroredStrategy`: variables are whole on each device."""

    def __init__(self, compute_devices: Sequence[str] | None = None, parameter_device: Ignored = None):
        super().__init__(compute_devices)


class SimpleClusterResolver:
    """A cluster, and which of its tasks this process is: the attributes `task_type` and `task_id`."""

    __getattr__ = hints("distribute.cluster_resolver.ClusterResolver")

    def __init__(
        self,
        cluster_spec: ClusterSpec,
        master: str = "",
        task_type: str | None = None,
        task_id: int | None = None,
        **options: Ignored,
    ):
        self._cluster_spec, self.task_type, self.task_id = cluster_spec, task_type, task_id

    def cluster_spec(self) -> ClusterSpec:
        """The cluster's addresses."""
        return self._cluster_spec


class TFConfigClusterResolver(SimpleClusterResolver):
    """The cluster and the task that the environment's ``TF_CONFIG`` describes, if it is set."""

    def __init__(self, task_type: str | None = None, task_id: int | None = None, **options: Ignored):
        config = json.loads(os.environ.get("TF_CONFIG") or "{}")
        task = {name: value for name, value in (("type", task_type), ("index", task_id)) if value is not None}
        task = config.get("task", {}) | task
        number = int(task["index"]) if "index" in task else None
        super().__init__(ClusterSpec(config.get("cluster", {})), "", task.get("type"), number)


class MultiWorkerMirroredStrategy(Strategy):
    """A replica on each device of all processes. Each process runs the same program, over the same dataset.

    Where ``jax.distributed`` is not initialised and the cluster has several workers, it is, with the first of them (the chief, if
    there is one) as the coordinator.

    Args:
      cluster_resolver: the cluster and this process's task; by default those of ``TF_CONFIG``.
    """

    def __init__(self, cluster_resolver: Any = None, communication_options: Ignored = None):
        self.cluster_resolver = cluster_resolver or TFConfigClusterResolver()
        jobs = self.cluster_resolver.cluster_spec().as_dict()
        chiefs, workers = jobs.get("chief", []), jobs.get("worker", [])
        if len(chiefs + workers) > 1 and not jax.distributed.is_initialized():
            number = self.cluster_resolver.task_id + (len(chiefs) if self.cluster_resolver.task_type == "worker" else 0)
            jax.distributed.initialize((chiefs + workers)[0], len(chiefs + workers), number)
        elif self.cluster_resolver.task_type is None and jax.process_count() > 1:
            self.cluster_resolver = SimpleClusterResolver(ClusterSpec({}), "", "worker", jax.process_index())
        self._use(jax.devices())


class TPUStrategy(MirroredStrategy):
    """`MirroredStrategy` where there is a TPU.

    Raises:
      ValueError: there is none.
    """

    def __init__(self, tpu_cluster_resolver: TPUClusterResolver | None = None, **options: Ignored):
        require_tpu()
        super().__init__()


class ParameterServerStrategy(Strategy):
    """Refused: JAX has no parameter servers."""

    def __init__(self, *args: Ignored, **options: Ignored):
        raise NotImplementedError(
            "JAX has no parameter servers: use tf.distribute.MultiWorkerMirroredStrategy, whose workers have the variables"
        )


def _reduce_op(reduce_op: ReduceOp | str) -> ReduceOp:
    return reduce_op if isinstance(reduce_op, ReduceOp) else ReduceOp(str(reduce_op).upper())


_default = Strategy()


def get_strategy() -> Strategy:
    """The strategy whose scope the program is in, or one that does nothing."""
    return replicas.place.strategies[-1][0] if replicas.place.strategies else _default


def has_strategy() -> bool:
    """Whether the program is in the scope of a strategy."""
    return get_strategy() is not _default


def in_cross_replica_context() -> bool:
    """Whether the program is in a strategy's scope, and in no function that it runs."""
    return bool(replicas.place.strategies) and replicas.place.strategies[-1][1]


def get_replica_context() -> ReplicaContext | None:
    """The context of the replica that runs here; None in a strategy's scope."""
    return None if in_cross_replica_context() else ReplicaContext(get_strategy())
