"""Made by .ci/stubs of the live namespace."""

from typing import Any

from tapejax.ops.distribute import InputContext as InputContext
from tapejax.ops.distribute import MirroredStrategy as MirroredStrategy
from tapejax.ops.distribute import OneDeviceStrategy as OneDeviceStrategy
from tapejax.ops.distribute import ReduceOp as ReduceOp
from tapejax.ops.distribute import ReplicaContext as ReplicaContext
from tapejax.ops.distribute import Strategy as Strategy
def get_replica_context() -> Any:
    """The context of the only replica."""
def get_strategy() -> Any:
    """The strategy whose scope the program is in, or one that does nothing."""
def has_strategy() -> bool:
    """Whether the program is in the scope of a strategy."""
