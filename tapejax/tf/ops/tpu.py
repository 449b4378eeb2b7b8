"""A TPU if there is one: programs ask for it first, and take another strategy where the answer is an error."""

from __future__ import annotations

from typing import Any

from ..values.types import Ignored
from . import config


def require_tpu() -> None:
    """Raises ValueError where there is no TPU."""
    if not config.list_physical_devices("TPU"):
        raise ValueError("Please provide a TPU Name to connect to: JAX finds no TPU here, take another strategy")


class TPUClusterResolver:
    """The TPUs that JAX finds on this machine.

    Raises:
      ValueError: there is none.

    >>> import tapejax as tf
    >>> try:
    ...     resolver = tf.distribute.cluster_resolver.TPUClusterResolver()
    ... except ValueError:
    ...     strategy = tf.distribute.get_strategy()
    >>> strategy.num_replicas_in_sync
    1
    """

    def __init__(self, tpu: str | None = None, zone: Ignored = None, project: Ignored = None, **options: Ignored):
        require_tpu()
        self._tpu = tpu or "local"

    @classmethod
    def connect(cls, tpu: str | None = None, zone: Ignored = None, project: Ignored = None) -> TPUClusterResolver:
        """``TPUClusterResolver(tpu)``: JAX is connected already."""
        return cls(tpu)

    def master(self) -> str:
        """The name of the TPU, as it was given."""
        return self._tpu

    get_master = master

    def num_accelerators(self, *args: Ignored, **options: Ignored) -> dict[str, int]:
        """The number of TPU devices of this process."""
        return {"TPU": len(config.list_physical_devices("TPU"))}


def initialize_tpu_system(cluster_resolver: TPUClusterResolver | None = None) -> None:
    """Does nothing, since JAX does it at its first computation.

    Raises:
      ValueError: there is no TPU.
    """
    require_tpu()


shutdown_tpu_system = initialize_tpu_system


def experimental_connect_to_cluster(
    cluster_spec_or_resolver: Any,
    job_name: Ignored = "localhost",
    task_index: Ignored = 0,
    protocol: Ignored = None,
    make_master_device_default: Ignored = True,
    cluster_device_filters: Ignored = None,
) -> None:
    """Does nothing, since JAX is connected to the TPUs of a `TPUClusterResolver`.

    Raises:
      ValueError: something else is given: for more than one process use ``jax.distributed.initialize``.
    """
    if not isinstance(cluster_spec_or_resolver, TPUClusterResolver):
        raise ValueError(
            f"cluster_spec_or_resolver must be a TPUClusterResolver, got {cluster_spec_or_resolver!r}: to compute with more "
            "than one process call jax.distributed.initialize"
        )
