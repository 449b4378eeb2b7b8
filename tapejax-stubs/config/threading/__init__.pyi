"""Made by .ci/stubs of the live namespace."""

from typing import Any

def get_inter_op_parallelism_threads() -> Any:
    """The value of this setting; see `set_inter_op_parallelism_threads`."""
def get_intra_op_parallelism_threads() -> Any:
    """The value of this setting; see `set_intra_op_parallelism_threads`."""
def set_inter_op_parallelism_threads(num_threads: Any) -> Any:
    """Remembered only: XLA has a thread for each core; ``taskset`` gives it fewer."""
def set_intra_op_parallelism_threads(num_threads: Any) -> Any:
    """Remembered only: XLA has a thread for each core; ``taskset`` gives it fewer."""
