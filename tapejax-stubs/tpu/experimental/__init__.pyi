"""Made by .ci/stubs of the live namespace."""

from typing import Any

def initialize_tpu_system(cluster_resolver: Any = None) -> None:
    """Does nothing, since JAX does it at its first computation.

    Raises:
      ValueError: there is no TPU.
    """
from tapejax.tpu.experimental import initialize_tpu_system as shutdown_tpu_system
