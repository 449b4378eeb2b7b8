"""Made by .ci/stubs of the live namespace."""

from collections.abc import Callable
from typing import Any

def do_not_convert(func: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """`func`, whose control flow `function` leaves as it is (a decorator)."""
def set_loop_options(parallel_iterations: Any = None, swap_memory: Any = None, maximum_iterations: Any = None, shape_invariants: Any = None) -> None:
    """In a loop that `function` converts, `maximum_iterations` bounds it; the rest, and elsewhere all, changes nothing."""
