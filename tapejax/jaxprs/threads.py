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

    def setting(self, **fields: Any) -> Setting:
        """A block in which these fields have other values. They are put back in whatever way it ends.

        Raises:
          AttributeError: there is no such field.
        """
        return Setting(self, fields)


class Setting:
    """A block of a `Context`.

    An interrupt may come when a ``with`` statement is left, before Python calls `__exit__`. Then the fields are put back when the
    last reference to the block is gone, unless what is around it has put them back before. No generator: it could not tell.
    """

    _before: dict[str, Any] | None = None  # what the fields were, inside the block

    def __init__(self, context: Context, fields: dict[str, Any]):
        self._context, self._fields = context, fields
        self._state: dict[str, Any] = vars(context)  # this thread's

    def __enter__(self) -> None:
        before, state = {name: getattr(self._context, name) for name in self._fields}, self._state
        self._before = before
        state |= self._fields  # this and the line before: no call, at which an interrupt could come

    def __exit__(self, *exception: object) -> None:
        state, before = self._state, self._before
        if before is not None:
            state |= before
            self._before = None

    def call(self, fn: Function, /, *args: Any, **kwargs: Any) -> Any:
        """``fn(*args, **kwargs)`` in the block. Wherever an interrupt comes, the fields are back when it is raised from here."""
        try:
            with self:
                return fn(*args, **kwargs)
        finally:
            self.__exit__()

    def __del__(self) -> None:
        if self._before is not None and all([self._state.get(name) is value for name, value in self._fields.items()]):
            self.__exit__()
