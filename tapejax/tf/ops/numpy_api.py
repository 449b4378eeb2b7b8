"""``tf.experimental.numpy``: ``jnp`` itself, with tensors going in and coming out; and NumPy's ways for tensors on request."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...jaxprs.canonical import snapshot
from ..values.conversion import raw
from ..values.settings import settings
from ..values.tensor import Tensor
from ..values.types import Array, Index, Nest, TensorLike
from ..values.variable import Variable
from . import random
from .table import renamed

# jnp names them otherwise
_JAX_NAMES = {"asanyarray": "asarray", "ascontiguousarray": "asarray", "fix": "trunc", "flatten": "ravel"}
_JAX_ARGUMENTS = {"a_min": "min", "a_max": "max", "newshape": "shape"}


def _arrays(value: Nest) -> Nest:
    """`value` with raw arrays in the place of tensors and variables, and copies of NumPy's arrays, at any depth of lists."""
    if isinstance(value, (Tensor, Variable)):
        return raw(value)
    if isinstance(value, np.ndarray):  # the user may write into it before JAX has read it
        return snapshot(value)
    if isinstance(value, (list, tuple)):
        return type(value)(map(_arrays, value)) if not hasattr(value, "_fields") else value
    return value


def _tensors(value: Nest) -> Nest:
    if isinstance(value, jax.Array):
        return Tensor(value)
    if isinstance(value, (list, tuple)):
        made = list(map(_tensors, value))
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    return value


# jnp gives several arrays as a tuple from JAX 0.12 on; TensorFlow, and jnp before, as a list
_GIVING_LISTS = frozenset("atleast_1d atleast_2d atleast_3d broadcast_arrays meshgrid".split())
# jnp takes no list for an array, NumPy and TensorFlow do: these of jnp's parameters are lists of arrays, and these no arrays
_SEVERAL = frozenset("arrays choicelist condlist tup".split())
_STATIC = "axes axis destination dtype indices_or_sections object optimize pad_width reps shape shift source".split()


def _listed(signature: inspect.Signature, args: Nest, kwargs: dict[str, Any]) -> tuple[Nest, dict[str, Any]]:
    """The arguments of one of jnp's functions, with arrays in the place of lists that stand for one."""
    bound = signature.bind(*args, **kwargs)
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if name in _STATIC or kind == inspect.Parameter.VAR_KEYWORD:
            continue
        several = kind == inspect.Parameter.VAR_POSITIONAL or (name in _SEVERAL and isinstance(value, (list, tuple)))
        bound.arguments[name] = type(value)(map(_of_list, value)) if several else _of_list(value)
    return bound.args, bound.kwargs


def _of_list(value: Nest) -> Nest:
    return jnp.asarray(value) if isinstance(value, (list, tuple)) else value


def _wrapped(name: str) -> Callable[..., Nest]:
    fn = getattr(jnp, _JAX_NAMES.get(name, name))
    signature = inspect.signature(fn)

    def public(*args: Any, **kwargs: Any) -> Nest:
        args, kwargs = _arrays(args), {_JAX_ARGUMENTS.get(key, key): _arrays(value) for key, value in kwargs.items()}
        if {list, tuple} & set(map(type, (*args, *kwargs.values()))):  # `any` is jnp's in this module
            args, kwargs = _listed(signature, args, kwargs)
        result = fn(*args, **kwargs)
        return _tensors(list(result) if name in _GIVING_LISTS and isinstance(result, tuple) else result)

    public.__doc__ = f"``jnp.{fn.__name__}``, of tensors, arrays and lists; gives tensors."
    return renamed(name, public)


_DTYPES = "float16 float32 float64 int16 int32 int64 int8 uint16 uint32 uint64 uint8 complex64 complex128".split()
_CONSTANTS: dict[str, Any] = {
    **{name: getattr(np, name) for name in (*_DTYPES, "inexact", "bool_", "iinfo", "issubdtype", "inf", "pi", "e")},
    **{"newaxis": None, "ndarray": Tensor, "finfo": jnp.finfo},
    **{"object_": np.object_, "string_": np.bytes_, "unicode_": np.str_},
    **{"int_": np.int64, "float_": np.float64, "complex_": np.complex128},
    "promote_types": lambda a, b: np.dtype(jnp.promote_types(a, b)),
    "result_type": lambda *args: np.dtype(jnp.result_type(*_arrays(args))),
}


# ---- Random numbers ----------------------------------------------------------------------------------------


def _sizes(size: int | Sequence[int] | None) -> tuple[int, ...]:
    return () if size is None else (size,) if isinstance(size, int) else tuple(size)


RANDOM: dict[str, Callable[..., Nest]] = {
    "rand": lambda *size: random.uniform(size, dtype=_float()),
    "randn": lambda *args: random.normal(args, dtype=_float()),
    "random": lambda size=None: random.uniform(_sizes(size), dtype=_float()),
    "standard_normal": lambda size=None: random.normal(_sizes(size), dtype=_float()),
    "uniform": lambda low=0.0, high=1.0, size=None: random.uniform(_sizes(size), low, high, _float()),
    "poisson": lambda lam=1.0, size=None: random.poisson(_sizes(size), lam, _int()),
    "randint": lambda low, high=None, size=None, dtype=None: random.uniform(
        _sizes(size), 0 if high is None else low, low if high is None else high, _int() if dtype is None else dtype
    ),
    "seed": lambda s: random.set_seed(s),
}


def _float() -> np.dtype:
    return np.dtype(jnp.asarray(0.0).dtype)


def _int() -> np.dtype:
    return np.dtype(jnp.asarray(0).dtype)


# ---- NumPy's ways for tensors ------------------------------------------------------------------------------

_METHODS = """
    all any argmax argmin argsort astype clip conj conjugate copy cumprod cumsum diagonal dot flatten max mean min nonzero prod
    ptp ravel repeat reshape round sort squeeze std sum swapaxes take trace transpose var
""".split()
_ATTRIBUTES = ("T", "size", "real", "imag", "itemsize", "nbytes")


def enable_numpy_behavior(prefer_float32: bool = False, dtype_conversion_mode: str = "legacy") -> None:
    """Gives tensors NumPy's methods, indexing and promotion of dtypes, from now on.

    Args:
      prefer_float32: taken for TensorFlow's sake: Python's floats are float32 as long as nothing else decides.
      dtype_conversion_mode: 'legacy', 'all' or 'safe': dtypes are promoted by JAX's rules, in all of these.

    >>> import tapejax as tf
    >>> tf.constant([1, 2]).T
    Traceback (most recent call last):
    AttributeError: 'Tensor' object has no attribute 'T': use tf.transpose(x); for NumPy's methods call tf.experimental...
    """
    if dtype_conversion_mode not in ("legacy", "all", "safe", "off"):
        raise ValueError(f"dtype_conversion_mode must be 'legacy', 'off', 'safe' or 'all': {dtype_conversion_mode!r}")
    for kind in (Tensor, Variable):
        for name in _METHODS:
            setattr(kind, name, _method(name))
        for name in _ATTRIBUTES:
            setattr(kind, name, property(functools.partial(_attribute, name)))
    setattr(Tensor, "tolist", lambda x: x.numpy().tolist())  # noqa: B010
    setattr(Tensor, "item", lambda x: x.numpy().item())  # noqa: B010
    setattr(Tensor, "__getitem__", _getitem)  # noqa: B010
    setattr(Tensor, "__round__", lambda x, digits=0: _tensors(jnp.round(raw(x), digits)))  # noqa: B010
    settings["promote_dtypes"] = True


def _getitem(x: TensorLike, index: Index) -> Tensor:
    return Tensor(raw(x)[tuple(map(_index, index)) if isinstance(index, tuple) else _index(index)])


def _index(index: Index) -> Array:
    return raw(list(index)) if isinstance(index, (list, tuple)) else _arrays(index)  # inside an index they are the same


def _method(name: str) -> Callable[..., Nest]:
    def method(x: TensorLike, *args: Any, **kwargs: Any) -> Nest:
        return _tensors(getattr(raw(x), name)(*_arrays(args), **{key: _arrays(y) for key, y in kwargs.items()}))

    return renamed(name, method)


def _attribute(name: str, x: TensorLike) -> Nest:
    return _tensors(getattr(raw(x), name))


experimental_enable_numpy_behavior = enable_numpy_behavior
globals().update({f"random_{name}": fn for name, fn in RANDOM.items()})


def __getattr__(name: str) -> Any:
    """The names in the table of `ops`: what is not a constant is a function of jnp's."""
    if name in _CONSTANTS:
        return _CONSTANTS[name]
    if not hasattr(jnp, _JAX_NAMES.get(name, name)):
        raise AttributeError(name)
    globals()[name] = _wrapped(name)
    return globals()[name]
