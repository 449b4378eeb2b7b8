"""Made by .ci/stubs of the live namespace."""

from collections.abc import Callable
from typing import Any

DEBUG: int
ERROR: int
FATAL: int
INFO: int
WARN: int
debug: Callable[..., Any]
error: Callable[..., Any]
fatal: Callable[..., Any]
def get_verbosity() -> int:
    """The level of the logger ``tapejax``."""
info: Callable[..., Any]
log: Callable[..., Any]
def set_verbosity(v: int | str) -> None:
    """Sets the level of the logger ``tapejax``."""
warn: Callable[..., Any]
warning: Callable[..., Any]
