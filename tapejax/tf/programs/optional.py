"""``tf.experimental.Optional``: an element of a dataset, or none."""

from __future__ import annotations

from ..values import nest
from ..values.conversion import convert_to_tensor
from ..values.errors import InvalidArgumentError
from ..values.tensor import Tensor
from ..values.types import Nest
from .signatures import TensorSpec


class Optional:
    """A nest of tensors, or none. An iterator's `get_next_as_optional` gives one; `from_value` and `empty` make one.

    >>> import tapejax as tf
    >>> found = tf.experimental.Optional.from_value(3)
    >>> print(found.has_value().numpy(), found.get_value().numpy())
    True 3
    """

    def __init__(self, element_spec: Nest, *value: Nest):
        self.element_spec = element_spec
        self._value = value

    @classmethod
    def from_value(cls, value: Nest) -> Optional:
        """One with `value`: a tensor, array or list, or a tuple or dict of these."""
        value = _element(value)
        return cls(nest.map_structure(TensorSpec.from_tensor, value), value)

    @classmethod
    def empty(cls, element_spec: Nest) -> Optional:
        """One without a value, which would be of `element_spec`."""
        return cls(element_spec)

    def has_value(self, name: str | None = None) -> Tensor:
        """Whether there is one: a tensor."""
        return convert_to_tensor(bool(self._value))

    def get_value(self, name: str | None = None) -> Nest:
        """The value.

        Raises:
          InvalidArgumentError: there is none.
        """
        if not self._value:
            raise InvalidArgumentError("The given optional does not have a value: has_value() says so before.")
        return self._value[0]


def _element(value: Nest) -> Nest:
    """`value` as an element of a dataset: a list is a tensor, not a structure."""
    if isinstance(value, dict):
        return {name: _element(x) for name, x in value.items()}
    if isinstance(value, tuple):
        return getattr(value, "_make", tuple)(map(_element, value))
    return convert_to_tensor(value)
