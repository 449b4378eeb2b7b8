"""Made by .ci/stubs of the live namespace."""

from typing import Any

def get_experimental_options() -> Any:
    """The value of this setting; see `set_experimental_options`."""
def get_jit() -> Any:
    """The value of this setting; see `set_jit`."""
def set_experimental_options(options: Any) -> Any:
    """Remembered only."""
def set_jit(enabled: Any) -> Any:
    """Remembered only."""
