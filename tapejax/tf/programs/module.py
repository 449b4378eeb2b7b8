"""``tf.Module``: a container of variables and of other modules."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from ..values import nest
from ..values.names import name_scope
from ..values.variable import Variable

Trackable: TypeAlias = Any  # what has state to save: a variable, a Module, a layer of Keras, a list or dict of these

# Where a word begins in a CamelCase name: a capital after a small letter or digit, or before a small letter.
_WORD = re.compile(r"((?<=[a-z0-9])[A-Z]|(?!^)[A-Z](?=[a-z]))")


# Attributes of modules and loaded objects that are not their users'.
OWN = ("_name", "_name_scope", "_waiting", "signatures")


class Holder:
    """An object that reports new attributes to the restorations in ``_waiting``, which have values left."""

    def __setattr__(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)
        self._tell(name, value)

    def _tell(self, name: str, value: object) -> None:
        if waiting := vars(self).get("_waiting"):
            vars(self)["_waiting"] = [restoration for restoration in waiting if restoration.attach(self, name, value)]


class LoadedObject:
    """An object of a loaded model: the attributes that were saved."""

    signatures: dict[str, Any]

    def __repr__(self) -> str:
        return f"<loaded object with {', '.join(vars(self)) or 'no attributes'}>"


class Module(Holder):
    """A named container of variables, other modules and whatever else its attributes hold.

    Variables and modules are found in attributes, and in lists, tuples and dicts there; those of a module first, in the order of
    its attributes' names, then those of the modules inside it, each once.

    Args:
      name: an identifier; by default made of the name of the class.

    Raises:
      ValueError: `name` is not an identifier.

    >>> import tapejax as tf
    >>> class Dense(tf.Module):
    ...     def __init__(self, ins, outs):
    ...         super().__init__()
    ...         self.w = tf.Variable(tf.ones([ins, outs]), name="w")
    ...         self.b = tf.Variable(tf.zeros([outs]), name="b")
    ...     def __call__(self, x):
    ...         return x @ self.w + self.b
    >>> dense = Dense(2, 3)
    >>> dense.name, [v.name for v in dense.trainable_variables]
    ('dense', ['b:0', 'w:0'])
    """

    def __init__(self, name: str | None = None):
        if name is None:
            name = _WORD.sub(r"_\1", type(self).__name__).lower()
        if not re.match(r"^[A-Za-z_]\w*$", name):
            raise ValueError(
                f"{name!r} is not a valid module name. Module names must be valid Python identifiers (e.g. a valid class name)."
            )
        self._name = name
        with name_scope(name) as path:
            self._name_scope = path

    @property
    def name(self) -> str:
        """The name given at creation, or the class's in snake_case."""
        return self._name

    @property
    def name_scope(self) -> name_scope:
        """A context that puts the module's name before those of the variables created in it."""
        return name_scope(self._name_scope)

    @property
    def variables(self) -> tuple[Variable, ...]:
        """All variables of the module and of those inside it."""
        return tuple(self._flatten(predicate=lambda x: isinstance(x, Variable)))

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        return tuple(v for v in self.variables if v.trainable)

    @property
    def non_trainable_variables(self) -> tuple[Variable, ...]:
        return tuple(v for v in self.variables if not v.trainable)

    @property
    def submodules(self) -> tuple[Module, ...]:
        """All modules inside this one: its own first, then theirs."""
        return tuple(self._flatten(predicate=lambda x: isinstance(x, Module)))

    def _flatten(self, recursive: bool = True, predicate: Callable[[Any], bool] = lambda value: True) -> Iterator[Any]:
        """What `predicate` accepts among the attributes."""
        seen = {id(self)}

        def walk(module: Module) -> Iterator[Any]:
            inner = []
            for name in sorted(vars(module)):
                for leaf in _leaves(vars(module)[name], name):
                    if id(leaf) in seen:
                        continue
                    seen.add(id(leaf))
                    if predicate(leaf):
                        yield leaf
                    if recursive and isinstance(leaf, Module):
                        inner.append(leaf)
            for submodule in inner:
                yield from walk(submodule)

        yield from walk(self)

    @classmethod
    def with_name_scope(cls, method: Callable) -> Callable:
        """Decorator: variables that `method` creates have the module's name before theirs.

        >>> import tapejax as tf
        >>> class Scale(tf.Module):
        ...     @tf.Module.with_name_scope
        ...     def __call__(self, x):
        ...         if not hasattr(self, "w"):
        ...             self.w = tf.Variable(2.0, name="w")
        ...         return x * self.w
        >>> scale = Scale()
        >>> _ = scale(1.0)
        >>> scale.w.name
        'scale/w:0'
        """

        @functools.wraps(method)
        def scoped(self: Module, *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return scoped


def _leaves(value: Trackable, attribute: str) -> list[Any]:
    try:
        return nest.flatten(value)
    except TypeError:
        raise ValueError(
            f"Error processing property {attribute!r}: a dict in {value!r} has keys that cannot be sorted, so there is no order "
            "in which to look for variables"
        ) from None
