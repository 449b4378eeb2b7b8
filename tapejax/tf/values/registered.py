"""``tf.register_tensor_conversion_function``: objects of any class that become tensors wherever a tensor is taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_PLAIN = (int, float, complex, np.generic, np.ndarray)
_registered: list[tuple[int, type | tuple[type, ...], Callable]] = []


def register_tensor_conversion_function(
    base_type: type | tuple[type, ...], conversion_func: Callable, priority: int = 100
) -> None:
    """Makes objects of a class tensors wherever an operation takes one, beside a tensor in Python's operators, too.

    Args:
      base_type: the class, or a tuple of classes; subclasses count.
      conversion_func: called as ``conversion_func(value, dtype=None, name=None, as_ref=False)``. It returns a tensor, which has
        that dtype if one is given, or NotImplemented, which passes `value` on to the next function. Gradients pass through what
        it computes.
      priority: functions with smaller numbers are asked first, of equal ones those that were registered earlier.

    Raises:
      TypeError: `base_type` is not a class or one of numbers or NumPy arrays, or `conversion_func` cannot be called.

    >>> import tapejax as tf
    >>> class Positive:
    ...     def __init__(self, value):
    ...         self.logarithm = tf.Variable(tf.math.log(value))
    >>> tf.register_tensor_conversion_function(Positive, lambda x, dtype, name, as_ref: tf.exp(x.logarithm))
    >>> scale = Positive(2.0)
    >>> with tf.GradientTape() as tape:
    ...     y = tf.constant(3.0) * scale
    >>> print(y.numpy(), tape.gradient(y, scale.logarithm).numpy())
    6.0 6.0
    """
    kinds = base_type if isinstance(base_type, tuple) else (base_type,)
    if not all(isinstance(kind, type) for kind in kinds):
        raise TypeError(f"base_type must be a class or a tuple of classes, got {base_type!r}")
    if any(issubclass(kind, _PLAIN) for kind in kinds):
        raise TypeError(f"numbers and NumPy arrays are converted already: base_type must not be {base_type!r}")
    if not callable(conversion_func):
        raise TypeError(f"conversion_func must be callable, got {conversion_func!r}")
    _registered.append((priority, kinds, conversion_func))
    _registered.sort(key=lambda entry: entry[0])


def functions_for(value: object) -> tuple[Callable, ...]:
    """The functions that may convert `value`, in the order in which they are asked."""
    own = (_by_protocol,) if hasattr(type(value), "__tf_tensor__") else ()
    return (*own, *[function for _, kinds, function in _registered if issubclass(type(value), kinds)])


def _by_protocol(value: Any, dtype: Any, name: str | None, as_ref: bool) -> Any:
    return value.__tf_tensor__(dtype, name)
