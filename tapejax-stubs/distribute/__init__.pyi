"""Made by .ci/stubs of the live namespace."""

from typing import Any
import tapejax as tf

from tapejax.tf.programs.distribute import CrossDeviceOps as CrossDeviceOps
from tapejax.tf.programs.distribute import DistributedDataset as DistributedDataset
from tapejax.tf.programs.distribute import DistributedIterator as DistributedIterator
from tapejax.tf.programs.distribute import DistributedValues as DistributedValues
from tapejax.tf.programs.distribute import HierarchicalCopyAllReduce as HierarchicalCopyAllReduce
from tapejax.tf.programs.distribute import InputContext as InputContext
from tapejax.tf.programs.distribute import InputOptions as InputOptions
from tapejax.tf.programs.distribute import InputReplicationMode as InputReplicationMode
from tapejax.tf.programs.distribute import MirroredStrategy as MirroredStrategy
from tapejax.tf.programs.distribute import MultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy
from tapejax.tf.programs.distribute import NcclAllReduce as NcclAllReduce
from tapejax.tf.programs.distribute import OneDeviceStrategy as OneDeviceStrategy
from tapejax.tf.programs.distribute import ParameterServerStrategy as ParameterServerStrategy
from tapejax.tf.programs.distribute import ReduceOp as ReduceOp
from tapejax.tf.programs.distribute import ReductionToOneDevice as ReductionToOneDevice
from tapejax.tf.programs.distribute import ReplicaContext as ReplicaContext
from tapejax.tf.programs.distribute import RunOptions as RunOptions
from tapejax.tf.programs.distribute import Strategy as Strategy
from tapejax.tf.programs.distribute import StrategyExtended as StrategyExtended
from tapejax.tf.programs.distribute import TPUStrategy as TPUStrategy
from tapejax.distribute import cluster_resolver as cluster_resolver
from tapejax.distribute import experimental as experimental
def get_replica_context() -> Any:
    """The context of the replica that runs here; None in a strategy's scope."""
def get_strategy() -> Any:
    """The strategy whose scope the program is in, or one that does nothing."""
def has_strategy() -> bool:
    """Whether the program is in the scope of a strategy."""
def in_cross_replica_context() -> bool:
    """Whether the program is in a strategy's scope, and in no function that it runs."""
