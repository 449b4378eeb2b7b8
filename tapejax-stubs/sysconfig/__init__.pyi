"""Made by .ci/stubs of the live namespace."""

from typing import Any

def get_build_info() -> dict[str, Any]:
    """What JAX was built for."""
