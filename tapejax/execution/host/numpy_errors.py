"""What NumPy's evaluation refuses, and how NumPy handles floating-point errors meanwhile."""

from __future__ import annotations

import contextvars
from typing import Any

import numpy as np

from ...jaxprs.types import Function, Values


class Unsupported(Exception):
    """NumPy may not compute what XLA does."""


def with_errors(fn: Function, /, *args: Any, **handling: Any) -> Any:
    """``fn(*args)`` under ``np.errstate(**handling)``, in a copy of the context: an interrupt cannot leave it behind."""
    return contextvars.copy_context().run(_with_errors, fn, args, handling)


def _with_errors(fn: Function, args: Values, handling: dict[str, Any]) -> Any:
    np.seterr(**handling)
    return fn(*args)
