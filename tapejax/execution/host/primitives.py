"""JAX's primitives in NumPy: for each the table has a function from an equation to a function of arrays.

Each computes what XLA does: the same number, or one that is rounded elsewhere. What NumPy computes otherwise is refused with
`Unsupported`: when the equation is looked at, or, where the numbers decide it, when the function is called.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...jaxprs.types import Equation, Function, Params
from ..convolutions import products
from .numpy_errors import Unsupported

DTYPES = frozenset(
    map(
        np.dtype,
        "bool uint8 int8 int16 int32 int64 uint32 uint64 float32 float64 complex64 complex128".split(),
    )
)

# What NumPy computes in single precision and rounds after each operation, as XLA does on a CPU.
HALF = frozenset(map(np.dtype, ("float16", "bfloat16")))

# NumPy's OpenBLAS computes a product of more multiplications on several threads, which then wait for the next one for some
# 20 milliseconds, and use their processors all the while: a larger one is computed in parts.
ONE_THREAD, MOST_PRODUCTS = 1 << 18, 1 << 20
# A window with more places than these takes XLA less time.
MOST_PLACES = 64


def flushed(x: Any) -> Any:
    """`x` with zeros in place of subnormal numbers, as XLA and TensorFlow have them on a CPU."""
    if x.dtype.kind == "c":
        y = np.array(x)
        y.real, y.imag = flushed(x.real), flushed(x.imag)
        return y
    if x.dtype.kind != "f" or x.dtype.itemsize < 4:
        return x
    return np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.copysign(x.dtype.type(0), x), x)


def is_subnormal(x: Any) -> bool:
    """Whether a number of `x` is, which is 0 for XLA as soon as it computes with it."""
    return x.dtype.kind in "fc" and not np.array_equal(flushed(x), x, equal_nan=True)


def _of_bits(fn: Function) -> Function:
    """`fn`, which XLA computes from the bits, and keeps subnormal numbers: what computes with them then has others than NumPy."""

    def of_bits(*xs: Any) -> Any:
        y = fn(*xs)
        if is_subnormal(y):
            raise Unsupported("subnormal")
        return y

    return of_bits


def _threefry(k1: Any, k2: Any, x1: Any, x2: Any) -> tuple[Any, Any]:
    """Threefry-2x32, 20 rounds, as Salmon et al. published it (2011)."""
    keys: Sequence[Any] = (k1, k2, k1 ^ k2 ^ np.uint32(0x1BD11BDA))
    x1, x2 = x1 + k1, x2 + k2
    for group in range(5):
        for turn in ((13, 15, 26, 6), (17, 29, 16, 24))[group % 2]:
            x1 = x1 + x2
            x2 = ((x2 << np.uint32(turn)) | (x2 >> np.uint32(32 - turn))) ^ x1
        x1, x2 = x1 + keys[(group + 1) % 3], x2 + keys[(group + 2) % 3] + np.uint32(group + 1)
    return np.asarray(x1), np.asarray(x2)


def _counts(eqn: Equation) -> Function:
    shape = eqn.params["shape"]

    def counts() -> tuple[Any, Any]:
        number = np.arange(math.prod(shape), dtype=np.uint64).reshape(shape)
        return (number >> np.uint64(32)).astype(np.uint32), number.astype(np.uint32)

    return counts


def _erf_inv(x: Any) -> Any:
    """The inverse of erf in single precision, by the polynomials of Giles (2010), which XLA uses."""
    w = -np.log1p(-x * x)
    small = w < 5
    z = np.where(small, w - np.float32(2.5), np.sqrt(np.maximum(w, 0)) - np.float32(3))
    p = np.where(small, *map(np.float32, _ERF_INV[0]))
    for pair in _ERF_INV[1:]:
        p = np.where(small, *map(np.float32, pair)) + p * z
    return np.where(np.abs(x) == 1, x * np.float32(np.inf), p * x)


_ERF_INV = (
    (2.81022636e-08, -0.000200214257),
    (3.43273939e-07, 0.000100950558),
    (-3.5233877e-06, 0.00134934322),
    (-4.39150654e-06, -0.00367342844),
    (0.00021858087, 0.00573950773),
    (-0.00125372503, -0.0076224613),
    (-0.00417768164, 0.00943887047),
    (0.246640727, 1.00167406),
    (1.50140941, 2.83297682),
)


# ---- the primitives: from an equation to a function of NumPy arrays


def in_single(make: Callable[[Equation], Function], eqn: Equation) -> Function:
    """The step of an equation with 16-bit floats, from that of the same equation with float32 in their place."""
    if eqn.primitive.name in ("bitcast_convert_type", "nextafter"):
        raise Unsupported("bits of 16-bit floats")
    wide = np.dtype(np.float32)

    def widened(v: Any) -> Any:
        return SimpleNamespace(aval=v.aval.update(dtype=wide) if v.aval.dtype in HALF else v.aval)

    ins, outs = ([widened(v) for v in some] for some in (eqn.invars, eqn.outvars))
    step = make(SimpleNamespace(primitive=eqn.primitive, params=eqn.params, invars=ins, outvars=outs))
    dtypes = [v.aval.dtype for v in eqn.outvars]

    def run(*xs: Any) -> Any:
        results = step(*[x.astype(wide) if x.dtype in HALF else x for x in xs])
        several = results if len(dtypes) > 1 else (results,)
        rounded = [flushed(x).astype(d) if d in HALF else x for x, d in zip(several, dtypes, strict=True)]
        return rounded if len(dtypes) > 1 else rounded[0]

    return run


def _plain(fn: Function) -> Callable[[Equation], Function]:
    return lambda eqn: fn


def _only(kinds: str, fn: Function, inputs: slice = slice(None)) -> Callable[[Equation], Function]:
    """`fn` where the inputs are of these kinds of dtypes: ``f``, ``iu`` ..."""

    def make(eqn: Equation) -> Function:
        if any(v.aval.dtype.kind not in kinds for v in eqn.invars[inputs]):
            raise Unsupported(eqn.primitive.name)
        return fn

    return make


def _with(fn: Callable[[Params], Function]) -> Callable[[Equation], Function]:
    return lambda eqn: fn(eqn.params)


def _convert(eqn: Equation) -> Function:
    (before,), dtype = eqn.invars, eqn.outvars[0].aval.dtype
    if before.aval.dtype.kind == "c" != dtype.kind:
        if dtype.kind != "f":
            raise Unsupported("convert_element_type")
        return lambda x: x.real.astype(dtype)
    if before.aval.dtype.kind == "f" and dtype.kind in "iu":
        return functools.partial(_saturated, dtype=dtype)
    return lambda x: x.astype(dtype)


def _saturated(x: Any, dtype: Any) -> Any:
    """What XLA makes of floats that the integers do not have: the nearest one, and 0 of nan."""
    least, most, x = float(np.iinfo(dtype).min), float(np.iinfo(dtype).max), np.asarray(x, np.float64)
    inside = (x > least) & (x < most)  # as floats, where the greatest of 64 bits is one too large
    whole = np.where(inside, x, 0).astype(dtype)
    return np.where(x <= least, np.iinfo(dtype).min, np.where(x >= most, np.iinfo(dtype).max, whole)).astype(dtype)


def _broadcast(eqn: Equation) -> Function:
    if len(eqn.invars) > 1:
        raise Unsupported("dynamic shape")
    shape, dimensions = eqn.params["shape"], eqn.params["broadcast_dimensions"]
    between = [1] * len(shape)
    for size, dimension in zip(eqn.invars[0].aval.shape, dimensions, strict=True):
        between[dimension] = size
    strides = [math.prod(between[i + 1 :]) * (size > 1) for i, size in enumerate(between)]

    def broadcast(x: Any) -> Any:
        if x.dtype.kind in "fiub" and x.flags.c_contiguous and x.size:  # `broadcast_to` takes ten times as long
            return np.ndarray(shape, x.dtype, x, 0, [stride * x.itemsize for stride in strides])
        return np.broadcast_to(x.reshape(between), shape)

    return broadcast


def _reshape(eqn: Equation) -> Function:
    if len(eqn.invars) > 1:
        raise Unsupported("reshape")
    shape, order = eqn.outvars[0].aval.shape, eqn.params.get("dimensions") if eqn.primitive.name == "reshape" else None
    return lambda x: (x if order is None else x.transpose(order)).reshape(shape)


def _slice(p: Params) -> Function:
    strides = p["strides"] or (1,) * len(p["start_indices"])
    index = tuple(map(slice, p["start_indices"], p["limit_indices"], strides))
    return lambda x: x[index]


def _dynamic_index(starts: Sequence[Any], sizes: Sequence[int], shape: Sequence[int]) -> tuple[slice, ...]:
    clamped = [min(max(int(start), 0), most - size) for start, size, most in zip(starts, sizes, shape, strict=True)]
    return tuple([slice(start, start + size) for start, size in zip(clamped, sizes, strict=True)])


def _dynamic_slice(p: Params) -> Function:
    sizes = p["slice_sizes"]
    return lambda x, *starts: x[_dynamic_index(starts, sizes, x.shape)]


def _dynamic_update_slice(x: Any, update: Any, *starts: Any) -> Any:
    y = np.array(x)
    y[_dynamic_index(starts, update.shape, x.shape)] = update
    return y


def _reduce(fn: Function, initial: Callable[[np.dtype], Any] | None = None) -> Callable[[Equation], Function]:
    def make(eqn: Equation) -> Function:
        axes, dtype = tuple(eqn.params["axes"]), eqn.invars[0].aval.dtype
        if fn in (np.logical_and.reduce, np.logical_or.reduce) and dtype.kind != "b":
            raise Unsupported(eqn.primitive.name)
        if eqn.invars[0].aval.size == eqn.outvars[0].aval.size:  # of one number each: -0.0 stays what it is
            return _reshape(eqn)
        if initial is None:
            return lambda x: np.asarray(fn(x, axis=axes, dtype=dtype))
        if dtype.kind == "b":
            raise Unsupported(eqn.primitive.name)
        start = initial(dtype)
        any_of = functools.partial(np.any, axis=axes)
        return lambda x: _with_signs(fn is np.max, any_of, x, np.asarray(fn(x, axis=axes, initial=start)))

    return make


def _with_signs(largest: bool, any_of: Function, x: Any, z: Any) -> Any:
    """`z`, the largest or least of the numbers `x`, with the sign that XLA gives a zero. `any_of` takes the place of the extreme.

    To XLA 0.0 is larger than -0.0; NumPy takes any of them.
    """
    if z.dtype.kind != "f" or z.all():
        return z
    negative = any_of((x == 0) & (np.signbit(x) != largest)) != largest
    return np.copysign(z, np.where(negative, z.dtype.type(-1), z.dtype.type(1)), out=z, where=z == 0)


def _larger(x: Any, y: Any) -> Any:
    z = np.asarray(np.maximum(x, y))
    return np.add(x, y, out=z, where=(x == 0) & (y == 0)) if z.dtype.kind == "f" else z


def _smaller(x: Any, y: Any) -> Any:
    return -_larger(-x, -y) if x.dtype.kind == "f" else np.minimum(x, y)


def _least(dtype: np.dtype) -> Any:
    if dtype.kind == "c":  # XLA compares by the real parts first, and has nan otherwise
        raise Unsupported("the least complex number")
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _greatest(dtype: np.dtype) -> Any:
    return -_least(dtype) if dtype.kind in "fc" else np.iinfo(dtype).max


def _arg(fn: Function) -> Callable[[Equation], Function]:
    def make(eqn: Equation) -> Function:
        (axis,) = eqn.params["axes"]
        if eqn.invars[0].aval.dtype.kind == "c":
            raise Unsupported(eqn.primitive.name)
        return lambda x: np.asarray(fn(x, axis=axis))

    return make


def _dot_general(eqn: Equation) -> Function:
    (lhs, rhs), dtype = eqn.invars, eqn.outvars[0].aval.dtype
    named = not isinstance(eqn.params["precision"], tuple | None)  # an algorithm, which is not a pair
    if dtype.kind not in "fc" or not lhs.aval.dtype == rhs.aval.dtype == dtype or named:
        raise Unsupported("dot_general")
    (lc, rc), (lb, rb) = eqn.params["dimension_numbers"]
    shape = eqn.outvars[0].aval.shape
    lf, rf = ([i for i in range(v.aval.ndim) if i not in (*c, *b)] for v, c, b in ((lhs, lc, lb), (rhs, rc, rb)))

    def sizes(v: Any, axes: Sequence[int]) -> int:
        return math.prod([v.aval.shape[i] for i in axes])

    batch, contracted = sizes(lhs, lb), sizes(lhs, lc)
    stacked = (batch,) if lb else ()
    left, right = (*stacked, sizes(lhs, lf), contracted), (*stacked, contracted, sizes(rhs, rf))
    product = _product(left, right)
    lp, rp = (*lb, *lf, *lc), (*rb, *rc, *rf)
    if len(lf) == len(lc) == len(rf) == 1 >= len(lb):  # matrices as they are
        return lambda x, y: product(x.transpose(lp), y.transpose(rp))
    return lambda x, y: product(x.transpose(lp).reshape(left), y.transpose(rp).reshape(right)).reshape(shape)


def _product(left: Sequence[int], right: Sequence[int]) -> Function:
    """Multiplies matrices of these shapes: as one, or some rows at a time."""
    rows, one_row = left[-2], right[-2] * right[-1]
    if rows * one_row <= ONE_THREAD:
        return np.matmul
    most = ONE_THREAD // one_row
    if not most or math.prod(left) * right[-1] > MOST_PRODUCTS:
        raise Unsupported("a large product")
    parts = [slice(i, i + most) for i in range(0, rows, most)]
    return lambda x, y: np.concatenate([np.matmul(x[..., part, :], y) for part in parts], -2)


def _integer_pow(eqn: Equation) -> Function:
    y = eqn.params["y"]
    if y < 0 and eqn.invars[0].aval.dtype.kind not in "fc":
        raise Unsupported("integer_pow")

    def power(x: Any) -> Any:
        total, base, left = None, x, abs(y)
        while left:
            if left & 1:
                total = base if total is None else total * base
            base, left = base * base, left >> 1
        total = np.ones_like(x) if total is None else total
        return 1 / total if y < 0 else total

    return power


def _select(eqn: Equation) -> Function:
    if eqn.invars[0].aval.dtype.kind == "b" and len(eqn.invars) == 3:
        return lambda which, no, yes: np.where(which, yes, no)

    def select(which: Any, *cases: Any) -> Any:
        y = cases[0]
        for i, case in enumerate(cases[1:], 1):
            y = np.where(which >= i, case, y)  # as XLA, which takes the last for what is too large
        return y

    return select


def _away_from_zero(x: Any) -> Any:
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(x.dtype.type(1), x), whole)


def _round(p: Params) -> Function:
    return np.rint if int(p["rounding_method"]) == 1 else _away_from_zero


def _shift(fn: Function) -> Function:
    def shift(x: Any, by: Any) -> Any:  # XLA shifts everything out where NumPy does not say what it does
        bits = x.dtype.itemsize * 8
        if x.dtype.kind == "i":
            unsigned = np.dtype(f"u{x.dtype.itemsize}")
            return shift(x.view(unsigned), by.astype(unsigned)).view(x.dtype)
        return np.where(by < bits, fn(x, np.where(by < bits, by, 0).astype(x.dtype)), x.dtype.type(0))

    return shift


def _bitcast(eqn: Equation) -> Function:
    dtype = eqn.params["new_dtype"]
    if np.dtype(dtype).itemsize != eqn.invars[0].aval.dtype.itemsize or "b" in (np.dtype(dtype).kind):
        raise Unsupported("bitcast_convert_type")
    return _of_bits(lambda x: np.ascontiguousarray(x).reshape(x.shape).view(dtype))


def _iota(p: Params) -> Function:
    shape, dimension, dtype = p["shape"], p["dimension"], p["dtype"]
    between = [1] * len(shape)
    between[dimension] = shape[dimension]
    return lambda: np.broadcast_to(np.arange(shape[dimension], dtype=dtype).reshape(between), shape)


def _split(p: Params) -> Function:
    edges, axis = np.cumsum(p["sizes"])[:-1], p["axis"]
    pieces = functools.partial(np.split, indices_or_sections=edges, axis=axis)
    return (lambda x: pieces(x)[0]) if len(p["sizes"]) == 1 else pieces


def _unstack(eqn: Equation) -> Function:
    axis, single = eqn.params["axis"], len(eqn.outvars) == 1

    def unstack(x: Any) -> Any:
        parts = [np.asarray(part) for part in np.moveaxis(x, axis, 0)]
        return parts[0] if single else parts

    return unstack


def _sign(x: Any) -> Any:
    return np.where(x == 0, x, x / np.abs(x) if x.dtype.kind == "c" else np.sign(x))


def _ordered(x: Any) -> Any:
    """Integers in the total order of floats, which tells -0.0 from 0.0 and has a place for nan."""
    if x.dtype.kind != "f":
        return x
    bits = x.view(f"i{x.dtype.itemsize}")
    return bits ^ ((bits >> (8 * x.dtype.itemsize - 1)) & np.iinfo(bits.dtype).max)


def _complex(re: Any, im: Any) -> Any:
    z = np.empty(np.broadcast_shapes(re.shape, im.shape), np.result_type(re, np.complex64))
    z.real, z.imag = re, im
    return z


def _same(x: Any) -> Any:
    return x


def _logistic(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _pow(x: Any, y: Any) -> Any:
    """NumPy takes a square root where there is one exponent for all, 0.5, and of minus infinity that is no number."""
    pair = np.broadcast_arrays(x, y, np.empty((2, *np.broadcast_shapes(x.shape, y.shape))))
    return np.power(*map(np.ascontiguousarray, pair[:2]))[0]


def _in_the_middle(fn: Function) -> Function:
    """`fn` of complex numbers that lie off the axes, and neither near to zero nor far from it: elsewhere XLA's formulas differ
    in digits, or in the sign of a zero, which decides between the branches of the next function."""

    def in_the_middle(*xs: Any) -> Any:
        for x in xs:
            size = np.abs(np.stack([x.real, x.imag]))
            if not ((size > 0.01) & (size < 20)).all():
                raise Unsupported("complex")
        return fn(*xs)

    return in_the_middle


def _of_either(fn: Function) -> Callable[[Equation], Function]:
    """A function of floats, and of complex numbers in the middle."""
    floats, complexes = _only("f", fn), _only("c", _in_the_middle(fn))
    return lambda eqn: (complexes if eqn.invars[0].aval.dtype.kind == "c" else floats)(eqn)


def _in_double(fn: Callable[[float], float]) -> Function:
    """A function of the standard library, of an array."""
    of_objects = np.frompyfunc(fn, 1, 1)
    return lambda x: np.asarray(of_objects(x.astype(np.float64)), dtype=np.float64)


def _remainder(x: Any, y: Any) -> Any:
    if x.dtype.kind == "f":
        return np.fmod(x, y)
    none = (y == 0) | (y == -1) & (x.dtype.kind == "i")  # -1 fits the least integer never, and leaves nothing
    return np.where(y == 0, x, np.where(none, 0, np.fmod(x, np.where(none, 1, y)))).astype(x.dtype)


def _quotient(eqn: Equation) -> Function:
    if eqn.outvars[0].aval.dtype.kind not in "iu":
        return _only("fc", operator.truediv)(eqn)

    def quotient(x: Any, y: Any) -> Any:  # rounded toward zero; by zero all bits are set
        by = np.where(y == 0, 1, y).astype(y.dtype)
        whole = x // by
        whole = whole + (((x < 0) != (by < 0)) & (whole * by != x))
        whole = np.where((by == -1) & (x.dtype.kind == "i"), -x, whole)  # the least integer is its own negative
        return np.where(y == 0, ~np.zeros_like(whole), whole).astype(x.dtype)

    return quotient


def _along(fn: np.ufunc) -> Callable[[Equation], Function]:
    """A cumulative sum and its like."""

    def make(eqn: Equation) -> Function:
        axis, dtype = eqn.params["axis"], eqn.invars[0].aval.dtype
        if dtype.kind == "b":
            raise Unsupported(eqn.primitive.name)
        # XLA begins at zero, so that there is no -0.0 in the sums.
        begun = dtype.type(0) if fn is np.add and eqn.invars[0].aval.shape[axis] > 1 else None

        def along(x: Any) -> Any:
            sums = fn.accumulate(x, axis, dtype=dtype)
            if fn in (np.maximum, np.minimum):
                return _with_signs(fn is np.maximum, lambda y: np.logical_or.accumulate(y, axis), x, sums)
            return sums if begun is None else sums + begun

        if not eqn.params["reverse"]:
            return along
        return lambda x: np.flip(along(np.flip(x, axis)), axis)

    return make


def _pad(eqn: Equation) -> Function:
    return _padded(eqn.invars[0].aval.shape, eqn.params["padding_config"])


def _padded(sizes: Sequence[int], config: Sequence[Any]) -> Function:
    """Pads arrays of the shape `sizes` before, after and between their numbers."""
    each = list(zip(sizes, [tuple(map(int, some)) for some in config], strict=True))
    shape = [max(0, low + size + high + between * max(0, size - 1)) for size, (low, high, between) in each]
    into, take = [], []
    for (size, (low, _, between)), most in zip(each, shape, strict=True):
        # of the elements in the result; negative padding leaves some out
        places = low + (between + 1) * np.arange(size)
        take.append(np.flatnonzero((places >= 0) & (places < most)))
        into.append(places[take[-1]])

    def pad(x: Any, value: Any) -> Any:
        y = np.full(shape, value, x.dtype)
        y[np.ix_(*into)] = x[np.ix_(*take)]
        return y

    return pad if shape else lambda x, value: x


def _reduce_window(fn: Function, initial: Callable[[np.dtype], Any]) -> Callable[[Equation], Function]:
    """A slice for each place in the window."""

    def make(eqn: Equation) -> Function:
        p, dtype, shape = eqn.params, eqn.invars[0].aval.dtype, eqn.outvars[0].aval.shape
        window, strides, rates = p["window_dimensions"], p["window_strides"], p["window_dilation"]
        if dtype.kind == "b" or 0 in shape or math.prod(window) > MOST_PLACES:
            raise Unsupported(eqn.primitive.name)
        between = [apart - 1 for apart in p["base_dilation"]]
        config = [(*pair, n) for pair, n in zip(p["padding"], between, strict=True)]
        pad, start = _padded(eqn.invars[0].aval.shape, config), np.asarray(initial(dtype), dtype)
        places = [
            tuple(
                [slice(i * r, i * r + (n - 1) * s + 1, s) for i, r, n, s in zip(at, rates, shape, strides, strict=True)]
            )
            for at in itertools.product(*map(range, window))
        ]

        def reduce_window(x: Any) -> Any:
            x = pad(x, start)
            return functools.reduce(fn, [x[at] for at in places], start)

        return reduce_window

    return make


def _convolution(eqn: Equation) -> Function:
    """A product of matrices: for each place in the result the numbers that the kernel lies on, times the kernel."""
    p, (lhs, rhs) = eqn.params, [v.aval for v in eqn.invars]
    dtype, layout = eqn.outvars[0].aval.dtype, p["dimension_numbers"]
    sizes = (*lhs.shape, *rhs.shape, *eqn.outvars[0].aval.shape)
    if {lhs.dtype, rhs.dtype} != {dtype} or dtype.kind not in "fc" or 0 in sizes or products(eqn) > MOST_PRODUCTS:
        raise Unsupported("conv_general_dilated")
    first, second, last = (
        tuple([spec[0], *spec[2:], spec[1]]) for spec in (layout.lhs_spec, layout.rhs_spec, layout.out_spec)
    )
    groups, of_batches = p["feature_group_count"], p["batch_group_count"]
    batch, *space, channels = [lhs.shape[i] for i in first]
    out, *kernel, depth = [rhs.shape[i] for i in second]
    places = [eqn.outvars[0].aval.shape[i] for i in last[1:-1]]
    between = [(*pair, apart - 1) for pair, apart in zip(p["padding"], p["lhs_dilation"], strict=True)]
    pad = _padded((batch, *space, channels), [(0, 0, 0), *between, (0, 0, 0)])
    count, rank = max(groups, of_batches), len(space)
    # the axes of the windows: groups of batches, batch, places, kernel, groups of channels, channels
    split = (of_batches, batch // of_batches, *places, *kernel, groups, depth)
    product = _product(
        (count, batch // of_batches * math.prod(places), math.prod(kernel) * depth),
        (math.prod(kernel) * depth, out // count),
    )
    order = (0, rank * 2 + 2, *range(1, rank * 2 + 2), rank * 2 + 3)

    def convolution(x: Any, w: Any) -> Any:
        x = pad(x.transpose(first), x.dtype.type(0))
        steps = zip(x.strides[1:], p["window_strides"], p["rhs_dilation"], strict=False)
        moves = [(step * stride, step * rate) for step, stride, rate in steps]
        strides = (x.strides[0], *[a for a, _ in moves], *[b for _, b in moves], x.strides[-1])
        windows = np.lib.stride_tricks.as_strided(x, (batch, *places, *kernel, channels), strides, writeable=False)
        left = windows.reshape(split).transpose(order).reshape(count, -1, math.prod(kernel) * depth)
        right = w.transpose(second).reshape(count, out // count, -1).swapaxes(1, 2)
        y = product(left, right).swapaxes(0, 1).reshape(batch // of_batches, *places, out)
        return y.transpose([last.index(i) for i in range(y.ndim)])

    return convolution


def _fft(eqn: Equation) -> Function:
    kind, lengths = eqn.params["fft_type"].name, tuple(eqn.params["fft_lengths"])
    if 0 in eqn.invars[0].aval.shape or 0 in lengths:
        raise Unsupported("fft")
    transform = getattr(np.fft, {"FFT": "fftn", "IFFT": "ifftn", "RFFT": "rfftn", "IRFFT": "irfftn"}[kind])
    return lambda x: transform(x, lengths, tuple(range(-len(lengths), 0)))


def _sort(eqn: Equation) -> Function:
    axis, keys, single = eqn.params["dimension"], eqn.params["num_keys"], len(eqn.invars) == 1
    if any(v.aval.dtype.kind == "c" for v in eqn.invars) or not (single or eqn.params["is_stable"]):
        raise Unsupported("sort")

    def sort(*xs: Any) -> Any:
        order = np.lexsort(xs[:keys][::-1], axis) if xs[0].ndim else np.zeros((), int)
        ordered = [np.take_along_axis(x, order, axis) for x in xs] if xs[0].ndim else list(xs)
        return ordered[0] if single else ordered

    return sort


# ---- elements and windows at positions that are values


def _positions(
    indices: Any, axes: Sequence[int], batching: Sequence[int], counted: Sequence[int], ndim: int
) -> list[np.ndarray]:
    """For each axis of an array where each window begins: 0, what `indices` say, or the number of the window in its batch."""
    shape = indices.shape[:-1]
    starts = [np.zeros((1,) * len(shape), np.int64)] * ndim
    for i, axis in enumerate(axes):
        starts[axis] = indices[..., i].astype(np.int64)
    for axis, of in zip(batching, counted, strict=True):
        starts[axis] = np.arange(shape[of]).reshape([-1 if i == of else 1 for i in range(len(shape))])
    return starts


def _elements(starts: Sequence[np.ndarray], sizes: Sequence[int], batch: int) -> tuple[np.ndarray, ...]:
    """The index of every element of every window: axes for the batch, then one for each of the array."""
    ndim = len(sizes)
    return tuple(
        [
            start.reshape(start.shape + (1,) * ndim)
            + np.arange(size).reshape([1] * batch + [size if i == axis else 1 for i in range(ndim)])
            for axis, (start, size) in enumerate(zip(starts, sizes, strict=True))
        ]
    )


def _bounds(eqn: Equation, sizes: Sequence[int]) -> list[int]:
    """Where the last window begins, along each axis."""
    if eqn.invars[1].aval.dtype.kind not in "iu" or eqn.invars[1].aval.dtype == np.uint64:
        raise Unsupported(eqn.primitive.name)
    return [most - size for most, size in zip(eqn.invars[0].aval.shape, sizes, strict=True)]


def _outside(starts: Sequence[np.ndarray], last: Sequence[int], shape: Sequence[int]) -> np.ndarray:
    outside = np.zeros(shape, bool)
    for start, most in zip(starts, last, strict=True):
        outside = outside | (start < 0) | (start > most)
    return outside


def _gather(eqn: Equation) -> Function:
    p, out = eqn.params, eqn.outvars[0].aval
    d, sizes, mode = p["dimension_numbers"], p["slice_sizes"], p["mode"].name
    if mode not in ("CLIP", "FILL_OR_DROP", "PROMISE_IN_BOUNDS"):
        raise Unsupported("gather")
    last = _bounds(eqn, sizes)
    gone = (*d.collapsed_slice_dims, *d.operand_batching_dims)
    batch = eqn.invars[1].aval.ndim - 1
    windows = tuple([n for i, n in enumerate(sizes) if i not in gone])
    rest = [i for i in range(out.ndim) if i not in d.offset_dims]
    order = np.argsort([*rest, *d.offset_dims]).tolist()  # from batch and window to where the result has them

    def gather(x: Any, indices: Any) -> Any:
        starts = _positions(
            indices, d.start_index_map, d.operand_batching_dims, d.start_indices_batching_dims, len(sizes)
        )
        if 0 in out.shape:
            return np.zeros(out.shape, out.dtype)
        clamped = [np.clip(start, 0, most) for start, most in zip(starts, last, strict=True)]
        shape = indices.shape[:-1]
        y = x[_elements(clamped, sizes, batch)]
        y = np.broadcast_to(y, (*shape, *sizes)).reshape((*shape, *windows))
        if mode == "FILL_OR_DROP":
            outside = _outside(starts, last, shape).reshape(shape + (1,) * len(windows))
            y = np.where(outside, np.asarray(p["fill_value"], out.dtype), y)
        return y.transpose(order)

    return gather


def _scatter(combine: Any) -> Callable[[Equation], Function]:
    """Each update in turn, by a function such as ``np.add.at``; None takes the last one."""

    def make(eqn: Equation) -> Function:
        p, (operand, _, updates) = eqn.params, [v.aval for v in eqn.invars]
        d, mode = p["dimension_numbers"], p["mode"].name
        if (
            mode not in ("CLIP", "FILL_OR_DROP", "PROMISE_IN_BOUNDS")
            or not operand.ndim
            or combine
            and operand.dtype.kind == "b"
        ):
            raise Unsupported(eqn.primitive.name)
        rest = [i for i in range(updates.ndim) if i not in d.update_window_dims]
        gone = (*d.inserted_window_dims, *d.operand_batching_dims)
        left = iter([updates.shape[i] for i in d.update_window_dims])
        sizes = [1 if i in gone else next(left) for i in range(operand.ndim)]
        last, extremes = _bounds(eqn, sizes), operand.dtype.kind == "f" and combine in (np.maximum.at, np.minimum.at)

        def scatter(x: Any, indices: Any, updates: Any) -> Any:
            y, shape = np.array(x), indices.shape[:-1]
            starts = _positions(
                indices,
                d.scatter_dims_to_operand_dims,
                d.operand_batching_dims,
                d.scatter_indices_batching_dims,
                x.ndim,
            )
            if 0 in updates.shape:
                return y
            if mode == "CLIP":
                starts = [np.clip(start, 0, most) for start, most in zip(starts, last, strict=True)]
            inside = ~_outside(starts, last, shape)
            starts = [np.broadcast_to(start, shape)[inside] for start in starts]  # one axis of windows
            values = updates.transpose([*rest, *d.update_window_dims]).reshape((*shape, *sizes))[inside]
            at = _elements(starts, sizes, 1)
            if combine is None:
                y[at] = values
            else:
                combine(y, at, values)
                if extremes and not y.all() and np.signbit(np.append(x[x == 0], updates[updates == 0])).any():
                    raise Unsupported("zeros of two signs")
            return y

        return scatter

    return make


def _top_k(eqn: Equation) -> Function:
    k, axis = eqn.params["k"], eqn.params.get("axis", eqn.invars[0].aval.ndim - 1)

    def top_k(x: Any) -> Any:
        if x.dtype.kind == "f" and (np.isnan(x) | (x == 0) & np.signbit(x)).any():  # XLA orders these by their bits
            raise Unsupported("top_k")
        order = np.argsort(np.invert(x) if x.dtype.kind in "biu" else -x, axis, kind="stable").take(range(k), axis)
        return np.take_along_axis(x, order, axis), order

    return top_k


_NUMBERS: dict[str, Function] = {
    "add": operator.add,
    "add_any": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "neg": operator.neg,
    "abs": np.abs,
    "max": _larger,
    "min": _smaller,
    "square": np.square,
    "sign": _sign,
    "clamp": lambda least, x, most: _smaller(_larger(x, least), most),
}

_FLOATS: dict[str, Function] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log1p": np.log1p,
    "expm1": np.expm1,
    "tanh": np.tanh,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "atan2": np.arctan2,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "logistic": _logistic,
    "pow": _pow,
    "floor": np.floor,
    "ceil": np.ceil,
    "is_finite": np.isfinite,
    "nextafter": _of_bits(np.nextafter),
    "one_minus_square": lambda x: (1 - x) * (1 + x),  # newer versions of JAX have it
    "erf": _in_double(math.erf),
    "erfc": _in_double(math.erfc),
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
}

# What of these NumPy computes for complex numbers, too. A result that is not finite XLA may have otherwise: see `Interpreter`.
_COMPLEX = ("add", "add_any", "sub", "mul", "neg", "abs", "sign", "square", "exp")
_EITHER = frozenset(
    "log log1p expm1 tanh sin cos tan sinh cosh sqrt rsqrt logistic pow asin acos atan asinh acosh atanh".split()
)

PRIMITIVES: dict[str, Callable[[Equation], Function]] = {
    **{name: _only("fiuc" if name in _COMPLEX else "fiu", fn) for name, fn in _NUMBERS.items()},
    **{
        name: _of_either(fn) if name in _EITHER else _only("fc" if name in _COMPLEX else "f", fn)
        for name, fn in _FLOATS.items()
    },
    **{
        name: _only("biu", fn)
        for name, fn in {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}.items()
    },
    **{name: _plain(getattr(np, fn)) for name, fn in {"eq": "equal", "ne": "not_equal"}.items()},
    **{
        name: _only("fiu", fn)
        for name, fn in {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}.items()
    },
    **{name: _plain(_same) for name in ("copy", "copy_p", "stop_gradient", "random_wrap", "random_unwrap")},
    "optimization_barrier": _plain(lambda *xs: xs[0] if len(xs) == 1 else xs),
    **{name: _along(fn) for name, fn in {"cumsum": np.add, "cumprod": np.multiply}.items()},
    **{name: _along(fn) for name, fn in {"cummax": np.maximum, "cummin": np.minimum}.items()},
    **{
        name: _scatter(getattr(fn, "at", None))
        for name, fn in {
            "scatter": None,
            "scatter-add": np.add,
            "scatter-sub": np.subtract,
            "scatter-mul": np.multiply,
            "scatter-min": np.minimum,
            "scatter-max": np.maximum,
        }.items()
    },
    "gather": _gather,
    "sort": _sort,
    "top_k": _top_k,
    "pad": _pad,
    "tile": _with(lambda p: lambda x: np.tile(x, p["reps"])),
    "rem": _only("fiu", _remainder),
    "div": _quotient,
    "lt_to": _only("fiu", lambda x, y: np.less(_ordered(x), _ordered(y))),
    "le_to": _only("fiu", lambda x, y: np.less_equal(_ordered(x), _ordered(y))),
    "real": _plain(np.real),
    "imag": _plain(np.imag),
    "conj": _plain(np.conj),
    "complex": _plain(_complex),
    "empty2": lambda eqn: lambda: np.zeros((), eqn.params["dtype"]),
    "not": _only("biu", np.invert),
    "shift_right_logical": _only("iu", _shift(np.right_shift)),
    "shift_left": _only("iu", _shift(np.left_shift)),
    "bitcast_convert_type": _bitcast,
    "convert_element_type": _convert,
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "squeeze": _reshape,
    "expand_dims": _reshape,
    "transpose": _with(lambda p: lambda x: x.transpose(p["permutation"])),
    "rev": _with(lambda p: lambda x: np.flip(x, p["dimensions"])),
    "slice": _with(_slice),
    "dynamic_slice": _with(_dynamic_slice),
    "dynamic_update_slice": _plain(_dynamic_update_slice),
    "concatenate": _with(lambda p: lambda *xs: np.concatenate(xs, p["dimension"])),
    "stack": _with(lambda p: lambda *xs: np.stack(xs, p["axis"])),
    "unstack": _unstack,
    "split": _with(_split),
    "iota": _with(_iota),
    "select_n": _select,
    "reduce_sum": _reduce(np.sum),
    "reduce_prod": _reduce(np.prod),
    "reduce_max": _reduce(np.max, _least),
    "reduce_min": _reduce(np.min, _greatest),
    "reduce_and": _reduce(np.logical_and.reduce),
    "reduce_or": _reduce(np.logical_or.reduce),
    "argmax": _arg(np.argmax),
    "argmin": _arg(np.argmin),
    "dot_general": _dot_general,
    "conv_general_dilated": _convolution,
    "fft": _fft,
    "reduce_window_sum": _reduce_window(np.add, lambda dtype: 0),
    "reduce_window_max": _reduce_window(_larger, _least),
    "reduce_window_min": _reduce_window(_smaller, _greatest),
    "integer_pow": _integer_pow,
    "round": _with(_round),
    "iota_2x32_shape": _counts,
    "threefry2x32": _plain(_threefry),
    "erf_inv": lambda eqn: _only("f", _erf_inv)(eqn) if eqn.invars[0].aval.dtype == np.float32 else _refuse(eqn),
}


def _refuse(eqn: Equation) -> Any:
    raise Unsupported(eqn.primitive.name)
