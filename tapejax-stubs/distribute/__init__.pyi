"""Made by .ci/stubs of the live namespace."""

from typing import Any
import tapejax as tf

from tapejax.tf.ops.distribute import InputContext as InputContext
from tapejax.tf.ops.distribute import MirroredStrategy as MirroredStrategy
from tapejax.tf.ops.distribute import OneDeviceStrategy as OneDeviceStrategy
from tapejax.tf.ops.distribute import ReduceOp as ReduceOp
from tapejax.tf.ops.distribute import ReplicaContext as ReplicaContext
from tapejax.tf.ops.distribute import Strategy as Strategy
from tapejax.tf.ops.tpu import TPUStrategy as TPUStrategy
from tapejax.distribute import cluster_resolver as cluster_resolver
from tapejax.distribute import experimental as experimental
def get_replica_context() -> Any:
    """The context of the only replica."""
def get_strategy() -> Any:
    """The strategy whose scope the program is in, or one that does nothing."""
def has_strategy() -> bool:
    """Whether the program is in the scope of a strategy."""
