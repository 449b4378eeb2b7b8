"""Python's operators, attached to `Tensor` and `Variable` through one table."""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from ..values import reading
from ..values.conversion import is_array_like, raw
from ..values.errors import SymbolicValue
from ..values.missing import no_attribute
from ..values.operations import op, operands
from ..values.tensor import Tensor
from ..values.variable import Variable
from ..values.variable import nd_index as _nd_index
from . import array, linalg, math, table
from .table import ANY, binary

_PLAIN = (bool, int, float, complex, list, tuple, np.ndarray, np.generic)


def _forward(fn: Callable, reflected: str) -> Callable:
    if fn in table.BINARY:  # what is ready is arrays and numbers, which no other library overloads
        ready, first = table.BINARY[fn]
        return functools.wraps(fn)(table.by_types(ready, _forward(first, reflected)))

    @functools.wraps(fn)
    def operator(x, y):
        try:
            return fn(x, y)
        except SymbolicValue:
            return NotImplemented  # a KerasTensor has the reflected operator
        except (TypeError, ValueError):
            # Another library's object may have the reflected operator.
            if isinstance(y, _PLAIN) or is_array_like(y) or not hasattr(type(y), reflected):
                raise
            return NotImplemented

    return operator


def _reflect(fn: Callable) -> Callable:
    @functools.wraps(fn)
    def operator(x, y):
        return fn(y, x)

    return operator


def _by_dtype(logical: Callable, bitwise: Callable) -> Callable:
    """``&`` and its like: of bools their logic, of integers their bits."""

    @functools.wraps(bitwise)
    def operator(*values):
        dtype = next(value.dtype for value in values if is_array_like(value))
        return (logical if dtype == np.bool_ else bitwise)(*values)

    return operator


def _equality(fn: Callable, name: str, where_shapes_differ: bool) -> Callable:
    def operator(x, y):
        if y is None:
            return where_shapes_differ
        a, b = operands(x, y)
        try:
            np.broadcast_shapes(np.shape(a), np.shape(b))
        except ValueError:  # not an error, but not equal either: TensorFlow's answer is one bool
            return Tensor(raw(where_shapes_differ))
        return op(fn, a, b)

    operator.__name__ = operator.__qualname__ = name
    return operator


_m = vars(math)
# Of bools, too, as TensorFlow's operator does and its function does not.
_multiply = binary("multiply", jnp.multiply, ANY)
# name: (function, the reflected name)
BINARY = {
    "__add__": (_m["add"], "__radd__"),
    "__sub__": (_m["subtract"], "__rsub__"),
    "__mul__": (_multiply, "__rmul__"),
    "__truediv__": (_m["truediv"], "__rtruediv__"),
    "__floordiv__": (math.floordiv, "__rfloordiv__"),
    "__mod__": (math.floormod, "__rmod__"),
    "__pow__": (math.pow, "__rpow__"),
    "__matmul__": (linalg.product, "__rmatmul__"),
    "__and__": (_by_dtype(_m["logical_and"], _m["bitwise_and"]), "__rand__"),
    "__or__": (_by_dtype(_m["logical_or"], _m["bitwise_or"]), "__ror__"),
    "__xor__": (_by_dtype(_m["logical_xor"], _m["bitwise_xor"]), "__rxor__"),
    "__lt__": (_m["less"], "__gt__"),
    "__le__": (_m["less_equal"], "__ge__"),
    "__gt__": (_m["greater"], "__lt__"),
    "__ge__": (_m["greater_equal"], "__le__"),
}
OPERATORS: dict[str, Callable] = {
    "__neg__": lambda x: _m["negative"](x),
    "__abs__": lambda x: _m["abs"](x),
    "__invert__": _by_dtype(math.logical_not, math.invert),
    "__getattr__": lambda self, name: no_attribute("Tensor", self, name),
    "__eq__": _equality(jnp.equal, "__eq__", False),
    "__ne__": _equality(jnp.not_equal, "__ne__", True),
}
for _name, (_fn, _reflected) in BINARY.items():
    OPERATORS[_name] = _forward(_fn, _reflected)
    if _reflected.startswith("__r"):
        OPERATORS[_reflected] = _reflect(_fn)


def _refuse(name: str, instead: str) -> Callable:
    def method(self, *args, **kwargs):
        raise NotImplementedError(f"{name}() is for TensorFlow's graphs, there are none here: {instead}")

    return method


TENSORS: dict[str, Callable] = {
    "__getitem__": array.getitem,
    "cpu": lambda self: self,
    "eval": _refuse("eval", "use x.numpy()"),
    "consumers": _refuse("consumers", "print the tape"),
}


def _scattered(how: str, doc: str) -> Callable:
    def method(self, sparse_delta, use_locking=False, name=None):
        return self._scatter(how, sparse_delta.indices, sparse_delta.values)

    method.__doc__ = f"The rows ``sparse_delta.indices``, {doc} ``sparse_delta.values``."
    return method


def _scattered_nd(how: str, doc: str) -> Callable:
    def method(self, indices, updates, name=None):
        return self._scatter(how, _nd_index(indices), updates)

    method.__doc__ = f"What is at `indices`, whose last axis is an index into the variable, {doc} `updates`."
    return method


# What TensorFlow's variables can do besides what values.py has.
VARIABLES: dict[str, Callable] = {
    "scatter_update": _scattered("set", "replaced by"),
    "scatter_add": _scattered("add", "plus"),
    "scatter_sub": _scattered("subtract", "minus"),
    "scatter_max": _scattered("max", "replaced where they are smaller than"),
    "scatter_min": _scattered("min", "replaced where they are larger than"),
    "scatter_mul": _scattered("multiply", "multiplied by"),
    "scatter_div": _scattered("divide", "divided by"),
    "scatter_nd_update": _scattered_nd("set", "replaced by"),
    "scatter_nd_add": _scattered_nd("add", "plus"),
    "scatter_nd_sub": _scattered_nd("subtract", "minus"),
    "scatter_nd_max": _scattered_nd("max", "replaced where it is smaller than"),
    "scatter_nd_min": _scattered_nd("min", "replaced where it is larger than"),
    "gather_nd": lambda self, indices, name=None: array.gather_nd(self, indices),
    "set_shape": Tensor.set_shape,
    "read_value_no_copy": lambda self: Tensor(reading.read(self)),
    "sparse_read": lambda self, indices, name=None: array.gather(self, indices),
}


def attach() -> None:
    """Gives both classes the operators; only `Tensor` is indexed here, a Variable's slices can be assigned to."""
    for kind in (Tensor, Variable):
        for name, operator in OPERATORS.items():
            setattr(kind, name, operator)
    for name, method in TENSORS.items():
        setattr(Tensor, name, method)
    Tensor.OVERLOADABLE_OPERATORS = {*OPERATORS, "__getitem__"}  # type: ignore[attr-defined]
    for name, method in VARIABLES.items():
        setattr(Variable, name, method)


attach()
