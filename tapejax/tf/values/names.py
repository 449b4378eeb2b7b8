"""``tf.name_scope``: a prefix for the names of the variables created inside it."""

from __future__ import annotations

from typing import Any

from ...jaxprs.threads import Context, Setting


class NameScopes(Context):
    """The scopes that are open in this thread."""

    prefix = ""  # of the names of variables


scope = NameScopes()


def scoped(name: str) -> str:
    """`name` with the scopes before it that are open in this thread."""
    return scope.prefix + name


class name_scope:
    """A context in which the names of new variables begin with `name` and a slash.

    A name that ends in a slash is taken as a whole: the scopes around it do not count. An empty name leaves all scopes.

    Raises:
      ValueError: `name` is not a string.

    >>> import tapejax as tf
    >>> with tf.name_scope("layer") as scope:
    ...     print(scope, tf.Variable(1.0, name="w").name)
    layer/ layer/w:0
    """

    def __init__(self, name: str):
        if not isinstance(name, str):
            raise ValueError(f"name for name_scope must be a string, got {name!r} of type {type(name).__name__}")
        self._name = name
        self._blocks: list[Setting] = []  # that are open: one object may be entered several times

    @property
    def name(self) -> str:
        return self._name

    def __enter__(self) -> str:
        within = f"{scope.prefix}{self._name}/" if self._name else ""
        self._blocks.append(scope.setting(prefix=self._name if self._name.endswith("/") else within))
        self._blocks[-1].__enter__()
        return scope.prefix

    def __exit__(self, *exception: Any) -> None:
        self._blocks.pop().__exit__()
