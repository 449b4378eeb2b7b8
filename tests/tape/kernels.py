"""The usual operations by NumPy, for `tests.tape.interpreted`: (parameters, arrays) -> an array.

NotImplemented: XLA does it. What differs between the two in rounding differs in the reference, too, which comes by the same way.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any

import jax
import ml_dtypes
import numpy as np
from jax import lax
from jax._src.interpreters import pxla

KERNELS: dict[str, Callable[..., Any]] = {}

_ARRAY = type(jax.numpy.zeros(()))
_DEVICE = jax.devices("cpu")[0]
_SHARDING = jax.sharding.SingleDeviceSharding(_DEVICE)


def numbers(avals: Any) -> bool:
    """Whether all are of NumPy's dtypes: neither keys of random numbers, nor derivatives of integers, nor references."""
    return all([isinstance(dtype := getattr(x, "dtype", None), np.dtype) and dtype != jax.dtypes.float0 for x in avals])


def as_numpy(x: Any, aval: Any) -> np.ndarray:
    return np.asarray(x) if type(x) is _ARRAY else np.asarray(x, aval.dtype)


def array(aval: Any, x: np.ndarray) -> Any:
    """`x` on the device; a view is copied, because what it shows could be changed."""
    x = np.array(x, order="C")
    return pxla.batched_device_put(aval, _SHARDING, [x], [_DEVICE], committed=False)


def _kernel(*names: str) -> Callable:
    def add(f: Callable) -> Callable:
        KERNELS.update(dict.fromkeys(names, f))
        return f

    return add


def _is_float(x: np.ndarray) -> bool:
    return x.dtype.kind in "fc" or x.dtype == ml_dtypes.bfloat16


for _name, _function in {
    "add": np.add,
    "add_any": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "not": np.invert,
    "neg": np.negative,
    "sin": np.sin,
    "cos": np.cos,
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "sign": lambda x: np.sign(x) if x.dtype.kind != "c" else NotImplemented,
    "abs": np.abs,
    "square": np.square,
    "is_finite": np.isfinite,
    "real": np.real,
    "imag": np.imag,
    "conj": np.conj,
    "copy": np.copy,
    "log1p": np.log1p,
    "expm1": np.expm1,
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "complex": lambda x, y: x + np.multiply(1j, y) if np.isfinite(y).all() else NotImplemented,
    "div": lambda x, y: np.divide(x, y) if _is_float(x) else NotImplemented,
    "rem": lambda x, y: np.fmod(x, y) if _is_float(x) or np.all(y) else NotImplemented,
}.items():
    KERNELS[_name] = lambda params, *xs, _function=_function: _function(*xs)


@_kernel("convert_element_type")
def _convert(params: Any, x: Any) -> Any:
    if jax.dtypes.issubdtype(params["new_dtype"], jax.dtypes.extended):
        return NotImplemented
    if x.dtype.kind == "c" and np.dtype(params["new_dtype"]).kind != "c":
        x = x.real
    if not np.isfinite(x).all() and np.dtype(params["new_dtype"]).kind in "iu":
        return NotImplemented
    return x.astype(params["new_dtype"])


@_kernel("bitcast_convert_type")
def _bitcast(params: Any, x: Any) -> Any:
    to = np.dtype(params["new_dtype"])
    return x.view(to) if to.itemsize == x.dtype.itemsize else NotImplemented


@_kernel("broadcast_in_dim")
def _broadcast(params: Any, x: Any, *dynamic: Any) -> Any:
    shape = [1] * len(params["shape"])
    for size, place in zip(x.shape, params["broadcast_dimensions"], strict=True):
        shape[place] = size
    return np.broadcast_to(x.reshape(shape), params["shape"])


@_kernel("reshape")
def _reshape(params: Any, x: Any, *dynamic: Any) -> Any:
    return x.reshape(params["new_sizes"]) if params["dimensions"] is None else NotImplemented


@_kernel("squeeze")
def _squeeze(params: Any, x: Any) -> Any:
    return np.squeeze(x, tuple(params["dimensions"]))


@_kernel("transpose")
def _transpose(params: Any, x: Any) -> Any:
    return np.transpose(x, params["permutation"])


@_kernel("rev")
def _rev(params: Any, x: Any) -> Any:
    return np.flip(x, tuple(params["dimensions"]))


@_kernel("concatenate")
def _concatenate(params: Any, *xs: Any) -> Any:
    return np.concatenate(xs, params["dimension"])


@_kernel("slice")
def _slice(params: Any, x: Any) -> Any:
    strides = params["strides"] or [1] * x.ndim
    return x[tuple(map(slice, params["start_indices"], params["limit_indices"], strides))]


def _place(x: Any, sizes: Any, starts: Any) -> Any:
    """The window that begins there, moved inside the array."""
    begins = [min(max(int(i), 0), have - size) for i, have, size in zip(starts, x.shape, sizes, strict=True)]
    return tuple([slice(i, i + size) for i, size in zip(begins, sizes, strict=True)])


@_kernel("dynamic_slice")
def _dynamic_slice(params: Any, x: Any, *starts: Any) -> Any:
    return x[_place(x, params["slice_sizes"], starts)]


@_kernel("dynamic_update_slice")
def _dynamic_update_slice(params: Any, x: Any, part: Any, *starts: Any) -> Any:
    x = x.copy()
    x[_place(x, part.shape, starts)] = part
    return x


@_kernel("pad")
def _pad(params: Any, x: Any, value: Any) -> Any:
    if any(low < 0 or high < 0 or inner for low, high, inner in params["padding_config"]):
        return NotImplemented
    widths = [(low, high) for low, high, _ in params["padding_config"]]
    out = np.full([n + low + high for n, (low, high) in zip(x.shape, widths, strict=True)], value, x.dtype)
    out[tuple([slice(low, low + n) for n, (low, _) in zip(x.shape, widths, strict=True)])] = x
    return out


@_kernel("select_n")
def _select(params: Any, which: Any, *cases: Any) -> Any:
    which = which.astype("int64")
    return np.choose(np.broadcast_to(which, cases[0].shape), cases) if len(cases) < 30 else NotImplemented


@_kernel("clamp")
def _clamp(params: Any, low: Any, x: Any, high: Any) -> Any:
    return np.minimum(np.maximum(x, low), high)


@_kernel("iota")
def _iota(params: Any, *dynamic: Any) -> Any:
    shape, place = params["shape"], params["dimension"]
    column = np.arange(shape[place]).reshape([-1 if i == place else 1 for i in range(len(shape))])
    return np.broadcast_to(column.astype(params["dtype"]), shape)


@_kernel("integer_pow")
def _integer_pow(params: Any, x: Any) -> Any:
    power = params["y"]
    return np.power(x, x.dtype.type(power)) if _is_float(x) or power >= 0 else NotImplemented


for _name, _function in {
    "reduce_sum": np.sum,
    "reduce_prod": np.prod,
    "reduce_max": np.max,
    "reduce_min": np.min,
}.items():
    KERNELS[_name] = lambda params, x, _function=_function: (
        _function(x, tuple(params["axes"])).astype(x.dtype) if x.size else NotImplemented
    )
for _name, _function in {"cumsum": np.cumsum, "cumprod": np.cumprod}.items():

    def _cumulative(params: Any, x: Any, _function: Any = _function) -> Any:
        place = params["axis"]
        if params["reverse"]:
            return np.flip(_function(np.flip(x, place), place), place)
        return _function(x, place)

    KERNELS[_name] = _cumulative


@_kernel("split")
def _split(params: Any, x: Any) -> Any:
    return np.split(x, np.cumsum(params["sizes"])[:-1], params["axis"])


@_kernel("dot_general")
def _dot_general(params: Any, x: Any, y: Any) -> Any:
    if {x.dtype, y.dtype} not in ({np.dtype("float32")}, {np.dtype("float64")}):
        return NotImplemented
    (of_x, of_y), (batch_x, batch_y) = params["dimension_numbers"]
    letters = iter(string.ascii_letters)
    a, b = [""] * x.ndim, [""] * y.ndim
    for i, j in [*zip(batch_x, batch_y, strict=True), *zip(of_x, of_y, strict=True)]:
        a[i] = b[j] = next(letters)
    a, b = ([letter or next(letters) for letter in word] for word in (a, b))
    out = [a[i] for i in batch_x]
    out += [letter for i, letter in enumerate(a) if i not in (*batch_x, *of_x)]
    out += [letter for i, letter in enumerate(b) if i not in (*batch_y, *of_y)]
    return np.einsum(f"{''.join(a)},{''.join(b)}->{''.join(out)}", x, y)


def primitives() -> list[Any]:
    """JAX's primitives of these names."""
    found = {x.name: x for x in vars(lax).values() if isinstance(x, jax.extend.core.Primitive)}
    found |= {x.name: x for x in vars(jax._src.ad_util).values() if isinstance(x, jax.extend.core.Primitive)}
    return [found[name] for name in KERNELS if name in found]
