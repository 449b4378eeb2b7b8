"""Made by .ci/stubs of the live namespace."""

from typing import Any

def as_bytes(bytes_or_text: str | bytes, encoding: str = 'utf-8') -> bytes:
    """A text's bytes, or bytes unchanged. Raises TypeError for anything else."""
def as_str(bytes_or_text: str | bytes, encoding: str = 'utf-8') -> str:
    """A text, or bytes decoded. Raises TypeError for anything else."""
def as_str_any(value: object, encoding: str = 'utf-8') -> str:
    """`as_text` of bytes, ``str`` of anything else."""
from tapejax.compat import as_str as as_text
def dimension_value(dimension: int | None) -> int | None:
    """`dimension` itself: a size is a number, or None where it is not known."""
def path_to_str(*args: Any, **kwargs: Any) -> Any: ...
from tapejax.compat import v1 as v1
