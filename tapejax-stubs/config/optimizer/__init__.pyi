"""Made by .ci/stubs of the live namespace."""

from typing import Any

def get_jit() -> Any:
    """The value of this setting; see `set_jit`."""
def set_jit(enabled: Any) -> Any:
    """Remembered only."""
