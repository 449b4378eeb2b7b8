"""TensorFlow's arithmetic: elementwise functions, reductions, scans, segments.

A table says which ``jnp`` function a name means and for which dtypes. Where JAX's derivative at a kink or a tie is not
TensorFlow's, a small function here is written so that it is; the derivative itself is always JAX's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...jaxprs.poles import scaled
from ..values.connected import connected, zero_gradient
from ..values.conversion import raw
from ..values.dtypes import requested
from ..values.errors import DTypeError, InvalidArgumentError
from ..values.operations import arrays_of, op, op_on_arrays, operands
from ..values.tensor import Tensor
from ..values.types import Array, AxisLike, DTypeLike, IntLike, TensorLike
from .indexed_slices import IndexedSlices
from .table import (
    ANY,
    BOOL,
    FIELD,
    FLOAT,
    INTEGER,
    NUMBER,
    REAL,
    axes_of,
    axis_of,
    binary,
    host,
    integers,
    kind_of,
    known,
    later,
    named,
    operation,
    piecewise_linear,
    reduction,
    renamed,
    require_kind,
    unary,
    whole,
    wide,
)

special: Any = later("jax.scipy.special")

# ---- One tensor, element by element ------------------------------------------------------------------------


@piecewise_linear
def _abs_real(x):
    # At 0 the slope is 0, as TensorFlow has it; jnp.abs has 1 there.
    return x * lax.stop_gradient(jnp.sign(x))


def _abs(x):
    if kind_of(x.dtype) == "f":
        return _abs_real(x)
    if kind_of(x.dtype) == "c":  # at 0 all slopes are 0
        if not x.size:
            return jnp.real(x)  # JAX takes the absolute values of no elements for a constant
        zero = x == 0
        return jnp.where(zero, 0, jnp.abs(jnp.where(zero, 1, x)))
    return jnp.abs(x)


def _stops_zero(fn, stops=(True, True)):
    """`fn`, elementwise, with TensorFlow's gradient: zero comes back as zero, even where the slope is infinite (see `scaled`)."""
    stopping = jax.custom_jvp(renamed(fn.__name__, lambda x: fn(x)))

    @stopping.defjvp
    def derivative(primals, tangents):
        y, slope = jax.jvp(fn, primals, (jnp.ones_like(*primals),))
        return y, scaled(slope, *tangents, stops)

    return stopping


def _inverse(fn, of, kinds="c", flat=None):
    """`fn`, the inverse of `of`, with the slope at its value: JAX may take that of another branch.

    Where its argument is 1 or -1, the value is rounded: there the slope of `of` is `flat`, if that is given.
    """
    inverse = jax.custom_jvp(renamed(fn.__name__, lambda x: fn(x)))

    @inverse.defjvp
    def derivative(primals, tangents):
        y = inverse(*primals)
        slope = jax.jvp(of, (y,), (jnp.ones_like(y),))[1]
        return y, tangents[0] / (slope if flat is None else jnp.where(primals[0] ** 2 == 1, flat, slope))

    return renamed(fn.__name__, lambda x: (inverse if kind_of(x.dtype) in kinds else fn)(x))


_sqrt = _stops_zero(jnp.sqrt, (False, True))
_rsqrt = _stops_zero(lax.rsqrt)
_reciprocal = _stops_zero(jnp.reciprocal)


@zero_gradient
def _sign(x):
    return _divide_no_nan(x, jnp.abs(x).astype(x.dtype)) if jnp.iscomplexobj(x) else jnp.sign(x)


def _angle(x):
    return jnp.angle(x) if jnp.iscomplexobj(x) else jnp.where(x < 0, jnp.asarray(jnp.pi, x.dtype), 0)


@jax.custom_jvp
def _spence(x):
    return special.spence(x)


@_spence.defjvp
def _spence_jvp(primals, tangents):
    # The integrand, by definition: JAX's derivative of its approximation is zero at 0 and 1.
    (x,), (dx,) = primals, tangents
    # At 1 a second derivative is nan, as TensorFlow's: a choice of two constants would make it 0.
    return _spence(x), dx * jnp.where(x == 1, -1, jnp.log(x) / (1 - x))


@jax.custom_jvp
def _expint(x):
    inside = (x > 0) & (x < jnp.inf)  # JAX's loop for negative arguments does not end at tiny ones
    value = jnp.where(inside, special.expi(jnp.where(inside, x, 1)), jnp.nan)
    return jnp.where(x == 0, -jnp.inf, value)


_expint.defjvps(lambda dx, _, x: dx * jnp.exp(x) / x)


def _fresnel(part: int, slope: Callable) -> Callable:
    @jax.custom_jvp
    def integral(x):
        return special.fresnel(x)[part]

    # the derivative of JAX's own is 0 where x * x is an odd integer
    integral.defjvps(lambda dx, _, x: dx * slope(np.pi / 2 * x * x))
    return integral


_SIGNED = "ifc"
# name: (function of raw arrays, kinds of dtype, what it is)
UNARY: dict[str, tuple[Any, ...]] = {
    "abs": (_abs, _SIGNED, "The absolute value."),
    "acos": (_inverse(jnp.arccos, jnp.cos, flat=-0.0), FIELD, "The arc cosine."),
    "acosh": (_inverse(jnp.arccosh, jnp.cosh, FIELD), FIELD, "The inverse hyperbolic cosine."),
    "asin": (_inverse(jnp.arcsin, jnp.sin, flat=0.0), FIELD, "The arc sine."),
    "asinh": (_inverse(jnp.arcsinh, jnp.sinh), FIELD, "The inverse hyperbolic sine."),
    "atan": (jnp.arctan, FIELD, "The arc tangent."),
    "atanh": (jnp.arctanh, FIELD, "The inverse hyperbolic tangent."),
    # JAX's own has the absolute value's slope at 0
    "bessel_i0": (lambda x: jnp.exp(_abs(x)) * special.i0e(x), FLOAT, "The modified Bessel function of order 0."),
    "bessel_i0e": (special.i0e, FLOAT, "The modified Bessel function of order 0, times exp(-abs(x))."),
    "bessel_i1": (special.i1, FLOAT, "The modified Bessel function of order 1."),
    "bessel_i1e": (special.i1e, FLOAT, "The modified Bessel function of order 1, times exp(-abs(x))."),
    "ceil": (jnp.ceil, FLOAT, "The smallest integer not below x."),
    "cos": (jnp.cos, FIELD, "The cosine."),
    "cosh": (jnp.cosh, FIELD, "The hyperbolic cosine."),
    "digamma": (special.digamma, FLOAT, "The derivative of lgamma."),
    "erf": (special.erf, FLOAT, "The error function."),
    "erfc": (special.erfc, FLOAT, "1 - erf(x)."),
    "erfcinv": (lambda x: -special.ndtri(x / 2) * np.sqrt(0.5).astype(x.dtype), FLOAT, "The inverse of erfc."),
    "erfinv": (special.erfinv, FLOAT, "The inverse of erf."),
    "exp": (jnp.exp, FIELD, "e to the power of x."),
    "expm1": (jnp.expm1, FIELD, "exp(x) - 1, exact near 0."),
    "floor": (jnp.floor, FLOAT, "The largest integer not above x."),
    "is_finite": (jnp.isfinite, FLOAT, "Whether x is neither infinite nor NaN."),
    "is_inf": (jnp.isinf, FLOAT, "Whether x is infinite."),
    "is_nan": (jnp.isnan, FLOAT, "Whether x is NaN."),
    "lgamma": (special.gammaln, FLOAT, "The logarithm of abs(gamma(x))."),
    "log": (jnp.log, FIELD, "The natural logarithm."),
    "log1p": (jnp.log1p, FIELD, "log(1 + x), exact near 0."),
    "log_sigmoid": (jax.nn.log_sigmoid, FLOAT, "log(sigmoid(x)), finite for large negative x."),
    "ndtri": (special.ndtri, FLOAT, "The quantile function of the normal distribution."),
    "negative": (jnp.negative, _SIGNED, "-x."),
    "reciprocal": (_reciprocal, FIELD, "1 / x."),
    "reciprocal_no_nan": (lambda x: _divide_no_nan(jnp.ones_like(x), x), FIELD, "1 / x, and 0 where x is 0."),
    "rint": (jnp.round, FLOAT, "The nearest integer, half to even."),
    "round": (jnp.round, NUMBER, "The nearest integer, half to even.", "x", INTEGER),
    "rsqrt": (_rsqrt, FIELD, "1 / sqrt(x)."),
    "sigmoid": (jax.nn.sigmoid, FIELD, "1 / (1 + exp(-x))."),
    "sign": (_sign, _SIGNED, "-1, 0 or 1. Its gradient is zero, not None."),
    "sin": (jnp.sin, FIELD, "The sine."),
    "sinh": (jnp.sinh, FIELD, "The hyperbolic sine."),
    "sqrt": (_sqrt, FIELD, "The square root."),
    "square": (jnp.square, NUMBER, "x * x."),
    "tan": (jnp.tan, FIELD, "The tangent."),
    "tanh": (jnp.tanh, FIELD, "The hyperbolic tangent."),
}
globals().update({name: unary(name, *row) for name, row in UNARY.items()})
expint = unary("expint", _expint, FLOAT, "The exponential integral Ei, for x >= 0.")
spence = unary("spence", _spence, FLOAT, "Spence's function, the dilogarithm of 1 - x.")
dawsn = unary("dawsn", special.dawsn, "F", "Dawson's integral.")
fresnel_sin = unary("fresnel_sin", _fresnel(0, jnp.sin), "F", "Fresnel's sine integral.")
fresnel_cos = unary("fresnel_cos", _fresnel(1, jnp.cos), "F", "Fresnel's cosine integral.")
softplus = unary("softplus", jax.nn.softplus, FLOAT, "log(1 + exp(x)).", "features")
logical_not = unary("logical_not", jnp.logical_not, BOOL, "Not x.")
real = unary("real", jnp.real, NUMBER, "The real part.", "input", REAL)
imag = unary("imag", jnp.imag, ANY, "The imaginary part.", "input")
angle = unary("angle", _angle, "fc", "The argument of a complex number.", "input")
conj = unary("conj", jnp.conj, NUMBER, "The complex conjugate.", "x", REAL)
invert = unary("invert", jnp.invert, INTEGER, "Every bit flipped.")

# ---- Two tensors, element by element -----------------------------------------------------------------------


def _maximum(x, y):
    # At a tie TensorFlow gives the whole gradient to x.
    return jnp.where((x >= y) | (x != x), x, y)


def _minimum(x, y):
    return jnp.where((x <= y) | (x != x), x, y)


def _alike(x, y):
    """Both in one dtype and shape, as ``lax`` requires them: a Python number has neither of its own."""
    dtype = jnp.result_type(x, y)
    return jnp.broadcast_arrays(jnp.asarray(x, dtype), jnp.asarray(y, dtype))


def _on_alike(fn: Callable) -> Callable:
    return lambda x, y: fn(*_alike(x, y))


@jax.custom_jvp
def _power(x, y):
    power = lax.pow(x, y)
    # XLA's complex logarithm of 0 would make it NaN.
    return jnp.where((x == 0) & (jnp.real(y) > 0), 0, power) if jnp.iscomplexobj(x) else power


def _slope_by_base(dx, _, x, y):
    # Not JAX's own rule: differentiated with respect to the exponent, it takes the logarithm of a negative base.
    return scaled(y * _power(x, y - 1), dx, (True, False))  # an argument that is constant adds nothing


def _slope_by_exponent(dy, power, x, y):
    # TensorFlow calls log(x) zero where x <= 0, so that the gradient of the exponent stays finite where the power is.
    counts = x != 0 if jnp.iscomplexobj(x) else x > 0
    return scaled(power * jnp.where(counts, jnp.log(jnp.where(counts, x, 1)), 0), dy, (True, False))


_power.defjvps(_slope_by_base, _slope_by_exponent)


def _pow(x, y):
    return _power(*_alike(x, y)) if kind_of(jnp.result_type(x, y)) in FIELD else jnp.power(x, y)


_EXPONENT_BITS = 6  # that `jnp.power` looks at


def _large_power(x, y):
    """Of integers, by squaring."""

    def step(_, state):
        power, x, y = state
        return jnp.where(y & 1, power * x, power), x * x, y >> 1

    x, y = _alike(x, y)
    return lax.fori_loop(0, jnp.iinfo(y.dtype).bits, step, (jnp.where(y < 0, jnp.zeros_like(x), 1), x, y))[0]


def _floordiv(x, y):
    return jnp.floor_divide(x, y) if kind_of(jnp.result_type(x, y)) in INTEGER else jnp.floor(x / y)


def _truncatediv(x, y):
    quotient = lax.div(*_alike(x, y))
    return jnp.trunc(quotient) if kind_of(quotient.dtype) == "f" else quotient


def _divide_no_nan(x, y):
    return jnp.where(y == 0, 0, _truediv(x, jnp.where(y == 0, 1, y)))


@jax.custom_jvp
def _no_nan(x, y):
    return jnp.where(y == 0, 0, x * y)


_no_nan.defjvps(lambda dx, _, x, y: jnp.where(y == 0, 0, dx) * y, lambda dy, _, x, y: scaled(x, dy, (True, True)))


def _where_not_zero(name, fn):
    """``x * fn(y)``, and 0 where x is 0, whatever y is."""

    def product(x, y):
        x, y = _alike(x, y)
        return jnp.where(x == 0, 0, x * fn(jnp.where(x == 0, 1, y)))

    product.__name__ = name
    return product


def _squared_difference(x, y):
    difference = x - y
    return jnp.conj(difference) * difference


def _truediv(x, y):
    dtype = jnp.result_type(x, y)
    if kind_of(dtype) in FIELD:
        return x / y
    # TensorFlow divides integers in float64, the small ones in float32.
    dtype = wide("float64") if dtype.itemsize > 2 else np.dtype("float32")
    return jnp.asarray(x, dtype) / jnp.asarray(y, dtype)


def _within_bits(shift: Callable) -> Callable:
    return renamed(shift.__name__, lambda x, y: shift(x, jnp.clip(y, 0, 8 * x.dtype.itemsize - 1)))


BINARY: dict[str, tuple[Any, ...]] = {
    "add": (jnp.add, NUMBER, "x + y."),
    "subtract": (jnp.subtract, NUMBER, "x - y."),
    "multiply": (jnp.multiply, NUMBER, "x * y."),
    "truediv": (_truediv, NUMBER, "x / y; integers are divided as floats."),
    "divide": (_truediv, NUMBER, "x / y; integers are divided as floats."),
    "realdiv": (_truediv, NUMBER, "x / y."),
    "maximum": (_maximum, REAL, "The larger of x and y; the gradient of a tie goes to x."),
    "minimum": (_minimum, REAL, "The smaller of x and y; the gradient of a tie goes to x."),
    "squared_difference": (_squared_difference, "Ifc", "(x - y) squared."),
    "divide_no_nan": (_divide_no_nan, NUMBER, "x / y, and 0 where y is 0."),
    "multiply_no_nan": (_on_alike(_no_nan), FIELD, "x * y, and 0 where y is 0, even if x is infinite or NaN."),
    "xlogy": (_where_not_zero("xlogy", jnp.log), FIELD, "x * log(y), and 0 where x is 0."),
    "xlog1py": (_where_not_zero("xlog1py", jnp.log1p), FIELD, "x * log1p(y), and 0 where x is 0."),
    "xdivy": (_where_not_zero("xdivy", jnp.reciprocal), FIELD, "x / y, and 0 where x is 0."),
    "less": (jnp.less, REAL, "x < y."),
    "less_equal": (jnp.less_equal, REAL, "x <= y."),
    "greater": (jnp.greater, REAL, "x > y."),
    "greater_equal": (jnp.greater_equal, REAL, "x >= y."),
    "equal": (jnp.equal, ANY, "x == y, element by element."),
    "not_equal": (jnp.not_equal, ANY, "x != y, element by element."),
    "logical_and": (jnp.logical_and, BOOL, "x and y."),
    "logical_or": (jnp.logical_or, BOOL, "x or y."),
    "logical_xor": (jnp.logical_xor, BOOL, "x or y, but not both."),
    "bitwise_and": (jnp.bitwise_and, INTEGER, "x & y."),
    "bitwise_or": (jnp.bitwise_or, INTEGER, "x | y."),
    "bitwise_xor": (jnp.bitwise_xor, INTEGER, "x ^ y."),
    "left_shift": (_within_bits(jnp.left_shift), INTEGER, "x << y, by 0 to all bits but one."),
    "right_shift": (_within_bits(jnp.right_shift), INTEGER, "x >> y, by 0 to all bits but one."),
}
globals().update({name: binary(name, *row) for name, row in BINARY.items()})


def _polygamma(a, x):
    order, x = _alike(lax.stop_gradient(a), x)
    return special.polygamma(order.astype(wide("int64")), x) * jnp.where(order == jnp.floor(order), 1, jnp.nan)


atan2 = binary("atan2", jnp.arctan2, FLOAT, "The angle of the point (x, y), from -pi to pi.", ("y", "x"))
igamma = binary("igamma", special.gammainc, FLOAT, "The regularised lower incomplete gamma function.", ("a", "x"))
igammac = binary("igammac", special.gammaincc, FLOAT, "The regularised upper incomplete gamma function.", ("a", "x"))
zeta = binary("zeta", lambda x, q: special.zeta(lax.stop_gradient(x), q), "F", "The Hurwitz zeta function.", ("x", "q"))
polygamma = binary("polygamma", _polygamma, "F", "The a-th derivative of digamma.", ("a", "x"))


def _integer_division(name: str, fn: Callable, kinds: str, doc: str) -> Callable[..., Tensor]:
    """A division that raises InvalidArgumentError for an integer divisor of zero, where that can be seen."""
    divided = binary(name, fn, kinds, doc)

    @functools.wraps(divided)
    def public(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
        a, b = operands(x, y)
        integral = all(kind_of(value.dtype) in INTEGER for value in (a, b) if hasattr(value, "dtype"))
        if integral and (values := known(b)) is not None and not values.all():
            raise InvalidArgumentError(f"{public.__name__}: Integer division by zero")
        return divided(Tensor(a) if isinstance(a, jax.Array) else a, b)

    return public


floordiv = _integer_division("floordiv", _floordiv, REAL, "The largest integer not above x / y.")
floormod = _integer_division("floormod", jnp.mod, REAL, "x - floor(x / y) * y: it has the sign of y.")
truncatediv = _integer_division("truncatediv", _truncatediv, NUMBER, "x / y, rounded towards 0.")
truncatemod = _integer_division("truncatemod", _on_alike(lax.rem), REAL, "The remainder of x / y, with the sign of x.")
mod = floormod


def _static_power(x, *, y):
    return lax.integer_pow(x, y) if y else connected(jnp.ones_like(x), [x])  # JAX takes x**0 for a constant


renamed("pow", _static_power)
# Each exponent has its own program, so only for small ones: a loop may run through many exponents.
_STATIC_EXPONENTS = range(-16, 17)


def pow(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """x to the power of y, elementwise.

    Raises:
      InvalidArgumentError: an integer is raised to a negative integer, or the dtypes differ.

    >>> import tapejax as tf
    >>> print(tf.pow([2.0, 3.0], 2))
    tf.Tensor([4. 9.], shape=(2,), dtype=float32)
    """
    a, b = operands(x, y)
    dtype = a.dtype if hasattr(a, "dtype") else b.dtype
    kind = kind_of(dtype)
    if type(b) is int and kind in FIELD and b in _STATIC_EXPONENTS:
        return op(_static_power, a, y=b)
    values = known(b) if kind in INTEGER else None
    if values is not None and (values < 0).any():
        raise InvalidArgumentError("pow: Integers to negative integer powers are not allowed; cast x to a float type")
    require_kind("pow", a if hasattr(a, "dtype") else b, _SIGNED)
    small = kind not in INTEGER or values is not None and (values >> _EXPONENT_BITS == 0).all()
    return op_on_arrays(_pow if small else _large_power, a, b)


@operation("x", FLOAT)
def lbeta(x):
    """The logarithm of the beta function of the last axis."""
    return special.gammaln(x).sum(-1) - special.gammaln(x.sum(-1))


def scalar_mul(scalar: TensorLike, x: TensorLike, name: str | None = None) -> TensorLike:
    """scalar * x. Raises ValueError if `scalar` is not a scalar."""
    if np.ndim(scalar):
        raise ValueError(f"scalar must be a scalar; got shape {np.shape(scalar)}")
    if isinstance(x, IndexedSlices):
        return x.with_values(scalar_mul(scalar, x.values))
    array = raw(x)
    require_kind("scalar_mul", array, NUMBER)
    return op(jnp.multiply, raw(scalar, array.dtype), array)


def add_n(inputs: Iterable[TensorLike], name: str | None = None) -> Tensor:
    """The sum of a list of tensors of one shape.

    Raises:
      ValueError: the list is empty.
      InvalidArgumentError: shapes or dtypes differ, or they are bool.
    """
    arrays = [raw(value) for value in inputs]  # each in the dtype that it has by itself
    if not arrays:
        raise ValueError("inputs must hold at least one tensor")
    operands(*arrays)
    require_kind("add_n", arrays[0], NUMBER, "inputs")
    if len({array.shape for array in arrays}) > 1:
        raise InvalidArgumentError(f"add_n: the inputs must have one shape, got {[array.shape for array in arrays]}")
    return op(_add_n, *arrays)


def widened(x):
    """16-bit numbers in float32, for a sum; other arrays unchanged."""
    return x.astype(jnp.promote_types(x.dtype, jnp.float32)) if kind_of(x.dtype) == "f" else x


def _add_n(*arrays):
    return functools.reduce(jnp.add, map(widened, arrays)).astype(arrays[0].dtype)


# ---- Reductions --------------------------------------------------------------------------------------------


def _own(dtype):
    # Integers keep their dtype. If floats did, 16-bit numbers would be added in 16 bits, not in float32.
    return dtype if kind_of(dtype) in INTEGER else None


def _sum(x, axis, keepdims):
    return jnp.sum(x, axis, dtype=_own(x.dtype), keepdims=keepdims)


@zero_gradient  # of no elements: JAX takes it for a constant
def _prod(x, axis, keepdims):
    return jnp.prod(x, axis, dtype=_own(x.dtype), keepdims=keepdims)


def _mean(x, axis, keepdims):
    if kind_of(x.dtype) in FIELD:
        return jnp.mean(x, axis, keepdims=keepdims)
    # Integers stay integers, rounded towards 0; neither their sum nor their number need fit their dtype.
    with jax.enable_x64(True):
        total = jnp.sum(x, axis, dtype="int64" if kind_of(x.dtype) == "i" else "uint64", keepdims=keepdims)
        # Of nothing it is 0. XLA ends the process where it finds a constant divided by zero.
        count = np.maximum(np.prod([x.shape[one] for one in axis], dtype=total.dtype), 1)
        return lax.div(*jnp.broadcast_arrays(total, count)).astype(x.dtype)


def _extremum(reduce, sign):
    def _kernel(x, axis, keepdims):
        return reduce(x, axis, keepdims=keepdims, initial=None if x.size else _lowest(x.dtype, sign))

    return _kernel


_max, _min = _extremum(jnp.max, -1), _extremum(jnp.min, 1)


def _lowest(dtype, sign):
    if kind_of(dtype) == "f":
        return sign * np.inf
    return dtype.type(getattr(jnp.iinfo(dtype), "max" if sign > 0 else "min"))  # a uint64 is no Python number to JAX


def _std(x, axis, keepdims):
    return _sqrt(jnp.var(x, axis, keepdims=keepdims))


def _euclidean_norm(x, axis, keepdims):
    if kind_of(x.dtype) in INTEGER:
        return jnp.sqrt(_sum(x * x, axis, keepdims)).astype(x.dtype)
    squares = jnp.sum(jnp.real(x * jnp.conj(x)), axis, keepdims=keepdims)
    return jnp.sqrt(squares).astype(x.dtype)


_AXES = " over `axis` (a number, a list, or None for all axes)."
REDUCTIONS = {
    "reduce_sum": (_sum, NUMBER, "The sum" + _AXES),
    "reduce_prod": (_prod, NUMBER, "The product" + _AXES),
    "reduce_mean": (_mean, NUMBER, "The mean" + _AXES + " The mean of integers is an integer."),
    "reduce_max": (_max, REAL, "The maximum" + _AXES + " Ties share the gradient."),
    "reduce_min": (_min, REAL, "The minimum" + _AXES + " Ties share the gradient."),
    "reduce_logsumexp": (jax.nn.logsumexp, FLOAT, "log(sum(exp(x)))" + _AXES),
    "reduce_euclidean_norm": (_euclidean_norm, NUMBER, "The root of the sum of squares" + _AXES),
    "reduce_all": (jnp.all, BOOL, "Whether all are true" + _AXES),
    "reduce_any": (jnp.any, BOOL, "Whether any is true" + _AXES),
    "reduce_variance": (jnp.var, FIELD, "The (biased) variance" + _AXES),
    "reduce_std": (_std, FIELD, "The (biased) standard deviation" + _AXES),
}
globals().update({name: reduction(name, *row) for name, row in REDUCTIONS.items()})


def count_nonzero(
    input: TensorLike,
    axis: AxisLike | None = None,
    keepdims: bool | None = None,
    dtype: DTypeLike = "int64",
    name: str | None = None,
) -> Tensor:
    """How many elements are not zero. The result is int64 (int32 while ``jax_enable_x64`` is off)."""
    array = raw(input)
    out = wide("int64") if dtype in ("int64",) else requested(dtype)
    return op(_count_nonzero, array, axis=axes_of(axis, array.ndim), keepdims=bool(keepdims), dtype=out)


def _count_nonzero(x, axis, keepdims, dtype):
    return jnp.sum(x != 0, axis, dtype=dtype, keepdims=keepdims)


@operation("value")
def zero_fraction(value):
    """The fraction of zeros in `value`, float32."""
    return jnp.mean(value == 0, dtype=jnp.float32)


def _arg(fn: Callable, never: float, doc: str) -> Callable[..., Tensor]:
    def kernel(x, axis, dtype):
        if kind_of(x.dtype) == "f":
            x = jnp.where(jnp.isnan(x), jnp.asarray(never, x.dtype), x)
        return fn(x, axis, dtype)

    renamed(fn.__name__, kernel)

    def public(
        input: TensorLike, axis: IntLike | None = None, output_type: DTypeLike | None = "int64", name: str | None = None
    ) -> Tensor:
        array = raw(input)
        require_kind(public.__name__, array, "biuf", "input")
        if array.ndim == 0:
            raise InvalidArgumentError(f"{public.__name__}: input must have at least one axis, got a scalar")
        number = axis_of(0 if axis is None else axis, array.ndim)
        if not array.shape[number]:
            raise InvalidArgumentError(f"{public.__name__}: axis {number} is empty in shape {array.shape}")
        dtype = wide("int64") if str(output_type) in ("int64", "None") else requested(output_type)
        return op(kernel, array, axis=number, dtype=dtype)

    doc += " element along `axis`, which nan never is. The first axis by default; int64 (int32 while ``jax_enable_x64`` is off)."
    return named(public, fn.__name__, doc)


argmax = _arg(lax.argmax, -np.inf, "The index of the largest")
argmin = _arg(lax.argmin, np.inf, "The index of the smallest")

# ---- Scans -------------------------------------------------------------------------------------------------


def _scan(name: str, scan: Callable, start: float, kinds: str, doc: str) -> Callable[..., Tensor]:
    """A running `scan`; an exclusive one begins with `start` and leaves the last element out."""

    def kernel(x, axis: IntLike = 0, exclusive: bool = False, reverse: bool = False):
        axis = axis_of(axis, x.ndim)
        out = scan(x, axis, reverse=bool(reverse))
        if exclusive and x.shape[axis]:
            first = jnp.full_like(lax.slice_in_dim(x, 0, 1, axis=axis), start)
            kept = lax.slice_in_dim(out, int(reverse), None if reverse else -1, axis=axis)
            out = jnp.concatenate([kept, first] if reverse else [first, kept], axis)
        return out

    kernel.__doc__ = doc + " `exclusive` leaves an element itself out, `reverse` runs from the end."
    return operation("x", kinds)(renamed(name, kernel))


cumsum = _scan("cumsum", lax.cumsum, 0, NUMBER, "The running sum along `axis`.")
cumprod = _scan("cumprod", lax.cumprod, 1, NUMBER, "The running product along `axis`.")
cumulative_logsumexp = _scan(
    "cumulative_logsumexp", lax.cumlogsumexp, -np.inf, FLOAT, "The running log(sum(exp(x))) along `axis`."
)

# ---- The largest, segments, counts -------------------------------------------------------------------------


class TopKV2(NamedTuple):
    """What `top_k` returns."""

    values: Tensor | Array
    indices: Tensor | Array


@operation("input", REAL)
def top_k(input, k: IntLike = 1, sorted: bool = True, index_type: DTypeLike = "int32") -> TopKV2:
    """The k largest elements of the last axis and where they are; of equals, the first ones come first.

    Raises:
      InvalidArgumentError: the last axis is shorter than k.
    """
    values, indices = lax.top_k(input, int(k))
    return TopKV2(values, indices.astype(index_type))


def in_top_k(targets: TensorLike, predictions: TensorLike, k: IntLike, name: str | None = None) -> Tensor:
    """Whether ``predictions[i, targets[i]]`` is among the k largest of its row."""
    return op(_in_top_k, integers("in_top_k", targets, "targets"), raw(predictions, "float32"), k=int(whole(k, "k")))


def _in_top_k(targets, predictions, k):
    score = jnp.take_along_axis(predictions, targets[:, None], 1, mode="clip")
    counts = (targets >= 0) & (targets < predictions.shape[1]) & jnp.isfinite(predictions).all(1)
    return counts & (jnp.sum(predictions > score, 1) < k)


def _segment(how: str, num_segments_known: bool) -> Callable[..., Array]:
    @zero_gradient  # of no rows: JAX takes it for a constant
    def kernel(data, ids, num_segments):
        if how == "prod":  # by a mask for each segment: JAX cannot differentiate its scattered product
            chosen = (ids == jnp.arange(num_segments)[:, None]).reshape(-1, ids.size, *[1] * (data.ndim - 1))
            return jnp.prod(jnp.where(chosen, data, 1), 1, dtype=_own(data.dtype))
        if how in ("sum", "max", "min"):
            out = getattr(jax.ops, f"segment_{how}")(data, ids, num_segments)
            if how == "sum":
                return out
            # A segment without elements: 0 where the ids are sorted, else the lowest (highest) number there is.
            empty = 0 if not num_segments_known else _extreme(data.dtype, -1 if how == "max" else 1)
            return jnp.where(_counts(data, ids, num_segments) == 0, jnp.asarray(empty, data.dtype), out)
        total = jax.ops.segment_sum(data, ids, num_segments)
        count = jnp.maximum(_counts(data, ids, num_segments), 1).astype(data.dtype)
        if not num_segments_known and kind_of(data.dtype) in INTEGER:
            return lax.div(*jnp.broadcast_arrays(total, count))  # stays an integer where the ids are sorted only
        return _truediv(total, jnp.sqrt(count) if how == "sqrt_n" else count)

    return renamed(("" if not num_segments_known else "unsorted_") + f"segment_{how}", kernel)


def _extreme(dtype, sign):
    limits = jnp.finfo(dtype) if kind_of(dtype) == "f" else jnp.iinfo(dtype)
    return limits.max if sign > 0 else limits.min


def _counts(data, ids, num_segments):
    # TensorFlow lets the ids have more than one axis: data's leading axes are flattened to match (see the caller).
    count = jax.ops.segment_sum(jnp.ones(ids.shape, jnp.int32), ids, num_segments)
    return count.reshape(count.shape + (1,) * (data.ndim - 1))


_SEGMENT_KINDS = {"max": REAL, "min": REAL, "sum": NUMBER, "prod": NUMBER, "mean": NUMBER, "sqrt_n": FLOAT}


def _sorted_segment(how: str) -> Callable[..., Tensor]:
    kernel = _segment(how, False)

    def public(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
        places = integers(public.__name__, segment_ids, "segment_ids")
        ids = host(places, "segment_ids")
        array = raw(data)
        require_kind(public.__name__, array, _SEGMENT_KINDS[how], "data")
        if ids.ndim != 1 or array.ndim == 0 or ids.shape[0] != array.shape[0]:
            rows = f"one id for each row of data, whose shape is {array.shape}"
            raise InvalidArgumentError(f"{public.__name__}: segment_ids must have {rows}; got shape {ids.shape}")
        if (np.diff(ids) < 0).any():
            raise InvalidArgumentError("segment_ids are not increasing: use tf.math.unsorted_" + public.__name__)
        if ids.size and ids[0] < 0:
            raise InvalidArgumentError(f"{public.__name__}: segment_ids must not be negative, got {ids[0]}")
        return op(kernel, array, places, num_segments=int(ids[-1]) + 1 if ids.size else 0)

    doc = f"The {how} of the rows of `data` that share a segment id; the ids must be sorted."
    return named(public, f"segment_{how}", doc)


def _unsorted_segment(how: str) -> Callable[..., Tensor]:
    kernel = _segment(how, True)

    def flat(data, ids, num_segments):
        return kernel(data.reshape((ids.size, *data.shape[ids.ndim :])), ids.reshape(-1), num_segments)

    zero_gradient(renamed(kernel.__name__, flat))  # of no rows, as above

    def public(data: TensorLike, segment_ids: TensorLike, num_segments: IntLike, name: str | None = None) -> Tensor:
        array, ids = raw(data), integers(public.__name__, segment_ids, "segment_ids")
        require_kind(public.__name__, array, REAL if how == "mean" else _SEGMENT_KINDS[how], "data")
        if array.shape[: ids.ndim] != ids.shape:
            raise InvalidArgumentError(f"data's shape {array.shape} must begin with segment_ids' shape {ids.shape}")
        count = whole(num_segments, "num_segments")
        if type(count) is not int or count < 0:
            raise DTypeError(f"{public.__name__}: num_segments must be an integer from 0 on, got {num_segments!r}")
        values = known(ids)
        if values is not None and array.size and (values >= count).any():
            raise InvalidArgumentError(f"{public.__name__}: segment_ids must be below {count}, got {values.max()}")
        return op(flat, array, ids, num_segments=count)

    doc = f"The {how} of the parts of `data` that share a segment id; negative ids are left out."
    return named(public, f"unsorted_segment_{how}", doc)


_HOW = ("sum", "mean", "prod", "max", "min", "sqrt_n")
segment_sum, segment_mean, segment_prod, segment_max, segment_min = map(_sorted_segment, _HOW[:-1])
unsorted_segment_sum, unsorted_segment_mean, unsorted_segment_prod = map(_unsorted_segment, _HOW[:3])
unsorted_segment_max, unsorted_segment_min, unsorted_segment_sqrt_n = map(_unsorted_segment, _HOW[3:])


def bincount(
    arr: TensorLike,
    weights: TensorLike = None,
    minlength: IntLike | None = None,
    maxlength: IntLike | None = None,
    dtype: DTypeLike = "int32",
    name: str | None = None,
    axis: int | None = None,
    binary_output: bool = False,
) -> Tensor:
    """How often each number 0, 1, 2 ... occurs in `arr` (or the sum of `weights` there).

    Args:
      minlength, maxlength: the least and the greatest length of the result; numbers from `maxlength` on are left out.
      axis: None or 0 for all elements at once, -1 for each row of a matrix by itself.
      binary_output: whether to give 1 for what occurs, however often.

    Raises:
      ValueError: another `axis`.
      InvalidArgumentError: a negative number, or `binary_output` with `weights`.
    """
    if axis not in (None, 0, -1):
        raise ValueError(f"axis must be None, 0 or -1, got {axis}")
    if binary_output and weights is not None:
        raise InvalidArgumentError("bincount: give weights or binary_output=True, not both")
    values = host(arr, "arr")
    rows = values.reshape(len(values) if axis == -1 and values.ndim == 2 else 1, -1)
    if rows.size and rows.min() < 0:
        raise InvalidArgumentError(f"bincount: arr must not be negative, got {rows.min()}")
    length = max(int(rows.max()) + 1 if rows.size else 0, int(whole(minlength or 0)))
    if maxlength is not None:
        length = min(length, int(whole(maxlength)))
    # what is left out goes beyond the end
    ids = np.where(rows < length, rows + length * np.arange(len(rows))[:, None], rows.size * max(length, 1) + length)
    counted = np.ones(values.shape, requested(dtype)) if weights is None else raw(weights)
    require_kind("bincount", counted, "IF", "weights")
    shape = (len(rows), length) if axis == -1 and values.ndim == 2 else (length,)
    return op(_bincount, counted, raw(ids.astype(np.int32).reshape(-1)), shape=shape, binary=bool(binary_output))


def _bincount(weights, ids, shape, binary):
    count = jax.ops.segment_sum(weights.reshape(-1), ids, int(np.prod(shape))).reshape(shape)
    return jnp.minimum(count, 1) if binary else count


def confusion_matrix(
    labels: TensorLike,
    predictions: TensorLike,
    num_classes: IntLike | None = None,
    weights: TensorLike = None,
    dtype: DTypeLike = "int32",
    name: str | None = None,
) -> Tensor:
    """``matrix[i, j]`` counts the elements with label i that were predicted as j."""
    classes = [host(labels, "labels").reshape(-1), host(predictions, "predictions").reshape(-1)]
    if num_classes is None:
        num_classes = 1 + max((int(values.max()) for values in classes if values.size), default=0)
    n = int(whole(num_classes, "num_classes"))
    if any(values.size and not 0 <= values.min() <= values.max() < n for values in classes):
        raise InvalidArgumentError(f"labels and predictions must be in [0, num_classes={n})")
    dtype = requested(dtype)
    added = np.ones(classes[0].shape, dtype) if weights is None else raw(weights)
    return op(_confusion_matrix, added, raw((classes[0] * n + classes[1]).astype(np.int32)), n=n, dtype=dtype)


def _confusion_matrix(weights, ids, n, dtype):
    return jax.ops.segment_sum(weights.reshape(-1).astype(dtype), ids, n * n).reshape(n, n)


def polyval(coeffs: Sequence[TensorLike], x: TensorLike, name: str | None = None) -> Tensor:
    """The polynomial with the given coefficients, the highest power first, at x.

    Raises:
      ValueError: `coeffs` is no list.
    """
    if not isinstance(coeffs, list):
        raise ValueError(f"coeffs must be a list of tensors, got {type(coeffs).__name__}")
    if not coeffs:
        return op(jnp.zeros_like, raw(x))
    x, *arrays = operands(x, *coeffs)
    require_kind("polyval", raw(x), NUMBER)
    return op(_polyval, raw(x), *arrays)


def _polyval(x, *coeffs):
    return functools.reduce(lambda value, coefficient: value * x + coefficient, coeffs[1:], coeffs[0])


# ---- Norms -------------------------------------------------------------------------------------------------


@operation("x", FIELD)
def l2_normalize(x, axis: AxisLike | None = None, epsilon: float = 1e-12):
    """x divided by its Euclidean norm over `axis`; `epsilon` bounds the squared norm from below."""
    squares = jnp.sum(jnp.real(x * jnp.conj(x)), axes_of(axis, x.ndim), keepdims=True)
    return x * _rsqrt(_maximum(squares, jnp.asarray(epsilon, squares.dtype)))


@operation("tensor", FIELD)
def norm(tensor, ord: str | float = "euclidean", axis: AxisLike | None = None, keepdims: bool | None = None):
    """The norm of vectors (`axis` a number, or None for all elements) or matrices (`axis` a pair).

    Args:
      ord: 'euclidean', 'fro' (matrices), 1, 2, inf, or for vectors any positive number.

    Raises:
      ValueError: an `ord` that is not supported, or more than two axes.
    """
    matrix = isinstance(axis, tuple) and len(axis) == 2
    supported = ("euclidean", "fro", 1, 2, np.inf) if matrix else ("euclidean", 1, 2, np.inf)
    if isinstance(axis, tuple) and len(axis) not in (1, 2):
        raise ValueError(f"axis must be None, a number, or a pair of numbers, got {axis!r}")
    if ord not in supported and (matrix or isinstance(ord, str) or not ord > 0):
        raise ValueError(f"ord={ord!r} is not supported for {'matrices' if matrix else 'vectors'}: use {supported}")
    return _norm(tensor, ord, axes_of(axis, tensor.ndim), matrix, bool(keepdims))


def nan_for_infinity(x):
    # LAPACK's singular value decomposition does not come to an end beside an infinity. Beside nan it does, and all is nan.
    return x + jnp.where(jnp.isfinite(x), 0, jnp.nan)


def singular_values(x):
    return jnp.linalg.svd(nan_for_infinity(x), compute_uv=False)


def _norm(x, ord, axis, matrix, keepdims):
    if ord in ("euclidean", "fro") or (ord == 2 and not matrix):
        return _sqrt(jnp.sum(jnp.real(x * jnp.conj(x)), axis, keepdims=keepdims)).astype(x.dtype)
    if matrix and ord == 2:
        out = jnp.max(singular_values(jnp.moveaxis(x, axis, (-2, -1))), -1)
        return jnp.expand_dims(out, axis) if keepdims else out
    size = _abs(x)  # not jnp.linalg.norm, which has a slope at 0
    if matrix:
        added, compared = axis if ord == 1 else axis[::-1]
        out = _max(jnp.sum(size, added, keepdims=True), compared, keepdims=True)
        return out if keepdims else jnp.squeeze(out, axis)
    if ord == 1:
        return jnp.sum(size, axis, keepdims=keepdims)
    if ord == np.inf:
        return _max(size, axis, keepdims)
    return jnp.sum(size**ord, axis, keepdims=keepdims) ** (1 / ord)


def normalize(
    tensor: TensorLike, ord: str | float = "euclidean", axis: AxisLike | None = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """``(tensor / norm, norm)``, the norm with its axes kept."""
    size = norm(tensor, ord, axis, keepdims=True)
    return op(_truediv, raw(tensor), size), size


# ---- Clipping ----------------------------------------------------------------------------------------------


def clip_by_value(
    t: TensorLike, clip_value_min: TensorLike, clip_value_max: TensorLike, name: str | None = None
) -> TensorLike:
    """`t` with what lies outside the bounds moved to them. At a bound the gradient still passes.

    Raises:
      ValueError: the bounds have more axes or elements than `t`.
    """
    if isinstance(t, IndexedSlices):
        return t.with_values(clip_by_value(t.values, clip_value_min, clip_value_max))
    array, low, high = operands(t, clip_value_min, clip_value_max)
    array = raw(array)
    require_kind("clip_by_value", array, REAL, "t")
    _refuse_broadcast(array, low, high)
    return op(_clip_by_value, array, low, high)


def _clip_by_value(t, low, high):
    return _maximum(_minimum(t, high), low)


def _refuse_broadcast(t, *limits):
    for limit in limits:
        if any(a != b and 1 not in (a, b) for a, b in zip(t.shape[::-1], np.shape(limit)[::-1], strict=False)):
            continue  # they do not fit at all: the operation will say so
        if np.broadcast_shapes(t.shape, np.shape(limit)) != t.shape:
            raise ValueError(f"Shapes {t.shape} and {np.shape(limit)} are incompatible: a limit must not broadcast t")


def clip_by_norm(
    t: TensorLike, clip_norm: TensorLike, axes: AxisLike | None = None, name: str | None = None
) -> TensorLike:
    """`t`, scaled down where its norm over `axes` is above `clip_norm`; a negative one counts as 0.

    Raises:
      ValueError: `clip_norm` has more axes or elements than `t`.
    """
    if isinstance(t, IndexedSlices):
        return t.with_values(clip_by_norm(t.values, clip_norm, axes))
    if hasattr(clip_norm, "dtype"):  # cast, whatever its dtype
        require_kind("clip_by_norm", raw(clip_norm), REAL, "clip_norm")
        clip_norm = op(lax.convert_element_type, raw(clip_norm), new_dtype=raw(t).dtype)
    array, limit = operands(t, clip_norm)
    array = raw(array)
    require_kind("clip_by_norm", array, FLOAT, "t")
    _refuse_broadcast(array, limit)
    return op(_clip_by_norm, array, limit, axes=axes_of(axes, array.ndim))


def _clip_by_norm(t, clip_norm, axes):
    clip_norm = _maximum(clip_norm, 0)
    squares = jnp.sum(t * t, axes, keepdims=len(axes) < t.ndim)
    norm = jnp.where(squares > 0, jnp.sqrt(jnp.where(squares > 0, squares, 1)), squares)
    return t * clip_norm / _maximum(norm, clip_norm)


def global_norm(t_list: Sequence[TensorLike | None], name: str | None = None) -> Tensor:
    """The root of the sum of squares of all elements of all tensors in the list; None in it is passed over."""
    if not isinstance(t_list, Sequence) or isinstance(t_list, str):
        raise TypeError(f"t_list must be a list of tensors, got {type(t_list).__name__}")
    arrays = arrays_of(*[_rows(t) for t in t_list if t is not None])
    require_kind("global_norm", arrays[0], FLOAT, "t_list")
    return op(_global_norm, *arrays)


def _global_norm(*arrays):
    # The root of twice the sum of halved squares: what TensorFlow computes.
    halves = [jnp.sum(jnp.square(array)) / 2 for array in arrays]
    return _sqrt(functools.reduce(jnp.add, halves) * 2)


def clip_by_global_norm(
    t_list: Sequence[TensorLike | None], clip_norm: TensorLike, use_norm: TensorLike = None, name: str | None = None
) -> tuple[list, Tensor]:
    """Scales a list of tensors so that their common norm is at most `clip_norm`.

    Returns:
      The list (None stays None) and the norm before clipping. If that is infinite or NaN, all results are NaN.
    """
    norm = global_norm(t_list) if use_norm is None else Tensor(raw(use_norm))
    if not any(t is not None for t in t_list):
        return list(t_list), norm
    scale = op(_global_scale, *operands(norm, clip_norm))
    scaled = [None if t is None else op(_by_scale, raw(_rows(t)), scale) for t in t_list]
    return [t.with_values(u) if isinstance(t, IndexedSlices) else u for t, u in zip(t_list, scaled, strict=True)], norm


def _rows(t):
    return t.values if isinstance(t, IndexedSlices) else t


def _by_scale(t, scale):
    return t * scale.astype(t.dtype)


renamed("multiply", _by_scale)


def _global_scale(norm, clip_norm):
    # If the norm is not finite, the difference is nan, and so is the gradient.
    return clip_norm * _minimum(1 / norm, 1 / clip_norm) + (norm - norm)
