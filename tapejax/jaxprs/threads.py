"""What a thread knows of the work that it is at: fields with a value of their own in each thread, set for a block."""

from __future__ import annotations

import threading
from typing import Any

from .types import Function


class Context(threading.local):
    """A thread's state. Its class has the fields, with what they are at rest; what they are set to must not be changed in place.

    >>> class Here(Context):
    ...     depth = 0
    >>> here = Here()
    >>> with here.setting(depth=1):
    ...     print(here.depth)
    1
    >>> here.depth
    0
    """

    blocks: tuple[dict[str, Any], ...] = ()  # that are open, outermost first: what was before each

    def setting(self, **fields: Any) -> Setting:
        """A block in which these fields have other values. They are put back in whatever way it ends.

        Raises:
          AttributeError: there is no such field.
        """
        return Setting(self, fields)


class Setting:
    """A block of a `Context`.

    An interrupt may come when a ``with`` statement is left, before Python calls `__exit__`. Then the fields are put back when a
    block around it is left, or the last reference to this one is gone. No generator: that would put them back later still.
    """

    _before: dict[str, Any] | None = None  # what the fields were, inside the block

    def __init__(self, context: Context, fields: dict[str, Any]):
        self._context, self._fields = context, fields
        self._state: dict[str, Any] = vars(context)  # this thread's

    def __enter__(self) -> None:
        context, state = self._context, self._state
        before = {name: getattr(context, name) for name in (*self._fields, "blocks")}
        inside = self._fields | {"blocks": (*context.blocks, before)}
        self._before = before
        state |= inside  # this and the line before: no call, at which an interrupt could come

    def __exit__(self, *exception: object) -> None:
        state, before = self._state, self._before
        if before is None:
            return
        outer: dict[str, Any] = {}
        for inner in state["blocks"][::-1]:
            outer |= inner  # those that are open inside it were not left
            if inner is before:
                state |= outer
                break
        self._before = None

    def call(self, fn: Function, /, *args: Any, **kwargs: Any) -> Any:
        """``fn(*args, **kwargs)`` in the block. Wherever an interrupt comes, the fields are back when it is raised from here."""
        try:
            with self:
                return fn(*args, **kwargs)
        finally:
            self.__exit__()

    def __del__(self) -> None:
        self.__exit__()
