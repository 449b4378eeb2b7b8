"""Made by .ci/stubs of the live namespace."""

from collections.abc import Iterable, Sequence
from typing import Any
import tapejax as tf
from tapejax.tf.values.types import TensorLike, DTypeLike, AxisLike, IntLike

def abs(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The absolute value.

    Takes integer, floating, complex tensors.
    """
def acos(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The arc cosine.

    Takes floating, complex tensors.
    """
def acosh(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The inverse hyperbolic cosine.

    Takes floating, complex tensors.
    """
def add(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """x + y.

    Takes integer, unsigned integer, floating, complex tensors.
    """
def add_n(inputs: Iterable[TensorLike], name: str | None = None) -> tf.Tensor:
    """The sum of a list of tensors of one shape.

    Raises:
      ValueError: the list is empty.
      InvalidArgumentError: shapes or dtypes differ, or they are bool.
    """
def angle(input: TensorLike, name: str | None = None) -> tf.Tensor:
    """The argument of a complex number.

    Takes floating, complex tensors.
    """
def argmax(input: TensorLike, axis: IntLike | None = None, output_type: DTypeLike | None = 'int64', name: str | None = None) -> tf.Tensor:
    """The index of the largest element along `axis`, which nan never is. The first axis by default; int64 (int32 while ``jax_enable_x64`` is off)."""
def argmin(input: TensorLike, axis: IntLike | None = None, output_type: DTypeLike | None = 'int64', name: str | None = None) -> tf.Tensor:
    """The index of the smallest element along `axis`, which nan never is. The first axis by default; int64 (int32 while ``jax_enable_x64`` is off)."""
def asin(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The arc sine.

    Takes floating, complex tensors.
    """
def asinh(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The inverse hyperbolic sine.

    Takes floating, complex tensors.
    """
def atan(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The arc tangent.

    Takes floating, complex tensors.
    """
def atan2(y: TensorLike, x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The angle of the point (x, y), from -pi to pi.

    Takes floating tensors.
    """
def atanh(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The inverse hyperbolic tangent.

    Takes floating, complex tensors.
    """
def bessel_i0(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The modified Bessel function of order 0.

    Takes floating tensors.
    """
def bessel_i0e(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The modified Bessel function of order 0, times exp(-abs(x)).

    Takes floating tensors.
    """
def bessel_i1(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The modified Bessel function of order 1.

    Takes floating tensors.
    """
def bessel_i1e(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The modified Bessel function of order 1, times exp(-abs(x)).

    Takes floating tensors.
    """
def bincount(arr: TensorLike, weights: TensorLike = None, minlength: IntLike | None = None, maxlength: IntLike | None = None, dtype: DTypeLike = 'int32', name: str | None = None, axis: int | None = None, binary_output: bool = False) -> tf.Tensor:
    """How often each number 0, 1, 2 ... occurs in `arr` (or the sum of `weights` there).

    Args:
      minlength, maxlength: the least and the greatest length of the result; numbers from `maxlength` on are left out.
      axis: None or 0 for all elements at once, -1 for each row of a matrix by itself.
      binary_output: whether to give 1 for what occurs, however often.

    Raises:
      ValueError: another `axis`.
      InvalidArgumentError: a negative number, or `binary_output` with `weights`.
    """
def ceil(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The smallest integer not below x.

    Takes floating tensors.
    """
def confusion_matrix(labels: TensorLike, predictions: TensorLike, num_classes: IntLike | None = None, weights: TensorLike = None, dtype: DTypeLike = 'int32', name: str | None = None) -> tf.Tensor:
    """``matrix[i, j]`` counts the elements with label i that were predicted as j."""
def conj(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The complex conjugate.

    Takes integer, unsigned integer, floating, complex tensors.
    """
def cos(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The cosine.

    Takes floating, complex tensors.
    """
def cosh(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The hyperbolic cosine.

    Takes floating, complex tensors.
    """
def count_nonzero(input: TensorLike, axis: AxisLike | None = None, keepdims: bool | None = None, dtype: DTypeLike = 'int64', name: str | None = None) -> tf.Tensor:
    """How many elements are not zero. The result is int64 (int32 while ``jax_enable_x64`` is off)."""
def cumprod(x: TensorLike, axis: IntLike = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> tf.Tensor:
    """The running product along `axis`. `exclusive` leaves an element itself out, `reverse` runs from the end."""
def cumsum(x: TensorLike, axis: IntLike = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> tf.Tensor:
    """The running sum along `axis`. `exclusive` leaves an element itself out, `reverse` runs from the end."""
def cumulative_logsumexp(x: TensorLike, axis: IntLike = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> tf.Tensor:
    """The running log(sum(exp(x))) along `axis`. `exclusive` leaves an element itself out, `reverse` runs from the end."""
def digamma(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The derivative of lgamma.

    Takes floating tensors.
    """
def divide(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """x / y; integers are divided as floats.

    Takes integer, unsigned integer, floating, complex tensors.
    """
def divide_no_nan(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """x / y, and 0 where y is 0.

    Takes integer, unsigned integer, floating, complex tensors.
    """
def equal(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """x == y, element by element."""
def erf(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The error function.

    Takes floating tensors.
    """
def erfc(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """1 - erf(x).

    Takes floating tensors.
    """
def erfcinv(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The inverse of erfc.

    Takes floating tensors.
    """
def erfinv(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The inverse of erf.

    Takes floating tensors.
    """
def exp(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """e to the power of x.

    Takes floating, complex tensors.
    """
def expm1(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """exp(x) - 1, exact near 0.

    Takes floating, complex tensors.
    """
def floor(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The largest integer not above x.

    Takes floating tensors.
    """
def floordiv(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """The largest integer not above x / y.

    Takes integer, unsigned integer, floating tensors.
    """
def floormod(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """x - floor(x / y) * y: it has the sign of y.

    Takes integer, unsigned integer, floating tensors.
    """
def greater(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """x > y.

    Takes integer, unsigned integer, floating tensors.
    """
def greater_equal(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """x >= y.

    Takes integer, unsigned integer, floating tensors.
    """
def igamma(a: TensorLike, x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The regularised lower incomplete gamma function.

    Takes floating tensors.
    """
def igammac(a: TensorLike, x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The regularised upper incomplete gamma function.

    Takes floating tensors.
    """
def imag(input: TensorLike, name: str | None = None) -> tf.Tensor:
    """The imaginary part."""
def in_top_k(targets: TensorLike, predictions: TensorLike, k: IntLike, name: str | None = None) -> tf.Tensor:
    """Whether ``predictions[i, targets[i]]`` is among the k largest of its row."""
def invert_permutation(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The permutation that undoes `x`.

    Raises:
      InvalidArgumentError: `x` is not a permutation of 0, 1 ... (seen on the CPU).
    """
def is_finite(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """Whether x is neither infinite nor NaN.

    Takes floating tensors.
    """
def is_inf(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """Whether x is infinite.

    Takes floating tensors.
    """
def is_nan(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """Whether x is NaN.

    Takes floating tensors.
    """
from tapejax.linalg import l2_normalize as l2_normalize
def lbeta(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The logarithm of the beta function of the last axis."""
def less(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """x < y.

    Takes integer, unsigned integer, floating tensors.
    """
def less_equal(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """x <= y.

    Takes integer, unsigned integer, floating tensors.
    """
def lgamma(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The logarithm of abs(gamma(x)).

    Takes floating tensors.
    """
def log(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The natural logarithm.

    Takes floating, complex tensors.
    """
def log1p(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """log(1 + x), exact near 0.

    Takes floating, complex tensors.
    """
def log_sigmoid(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """log(sigmoid(x)), finite for large negative x.

    Takes floating tensors.
    """
def log_softmax(logits: TensorLike, axis: IntLike | None = None, name: str | None = None) -> tf.Tensor:
    """The logarithm of softmax along `axis`, by default the last."""
def logical_and(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """x and y.

    Takes bool tensors.
    """
def logical_not(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """Not x.

    Takes bool tensors.
    """
def logical_or(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """x or y.

    Takes bool tensors.
    """
def logical_xor(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """x or y, but not both.

    Takes bool tensors.
    """
def maximum(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """The larger of x and y; the gradient of a tie goes to x.

    Takes integer, unsigned integer, floating tensors.
    """
def minimum(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """The smaller of x and y; the gradient of a tie goes to x.

    Takes integer, unsigned integer, floating tensors.
    """
from tapejax.math import floormod as mod
def multiply(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """x * y.

    Takes integer, unsigned integer, floating, complex tensors.
    """
def multiply_no_nan(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """x * y, and 0 where y is 0, even if x is infinite or NaN.

    Takes floating, complex tensors.
    """
def ndtri(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The quantile function of the normal distribution.

    Takes floating tensors.
    """
def negative(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """-x.

    Takes integer, floating, complex tensors.
    """
def not_equal(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """x != y, element by element."""
def polygamma(a: TensorLike, x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The a-th derivative of digamma.

    Takes float32, float64 tensors.
    """
def polyval(coeffs: Sequence[TensorLike], x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The polynomial with the given coefficients, the highest power first, at x.

    Raises:
      ValueError: `coeffs` is no list.
    """
def pow(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """x to the power of y, elementwise.

    Raises:
      InvalidArgumentError: an integer is raised to a negative integer, or the dtypes differ.

    >>> import tapejax as tf
    >>> print(tf.pow([2.0, 3.0], 2))
    tf.Tensor([4. 9.], shape=(2,), dtype=float32)
    """
def real(input: TensorLike, name: str | None = None) -> tf.Tensor:
    """The real part.

    Takes integer, unsigned integer, floating, complex tensors.
    """
def reciprocal(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """1 / x.

    Takes floating, complex tensors.
    """
def reciprocal_no_nan(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """1 / x, and 0 where x is 0.

    Takes floating, complex tensors.
    """
def reduce_all(input_tensor: TensorLike, axis: AxisLike | None = None, keepdims: bool = False, name: str | None = None) -> tf.Tensor:
    """Whether all are true over `axis` (a number, a list, or None for all axes).

    Takes bool tensors.
    """
def reduce_any(input_tensor: TensorLike, axis: AxisLike | None = None, keepdims: bool = False, name: str | None = None) -> tf.Tensor:
    """Whether any is true over `axis` (a number, a list, or None for all axes).

    Takes bool tensors.
    """
def reduce_euclidean_norm(input_tensor: TensorLike, axis: AxisLike | None = None, keepdims: bool = False, name: str | None = None) -> tf.Tensor:
    """The root of the sum of squares over `axis` (a number, a list, or None for all axes).

    Takes integer, unsigned integer, floating, complex tensors.
    """
def reduce_logsumexp(input_tensor: TensorLike, axis: AxisLike | None = None, keepdims: bool = False, name: str | None = None) -> tf.Tensor:
    """log(sum(exp(x))) over `axis` (a number, a list, or None for all axes).

    Takes floating tensors.
    """
def reduce_max(input_tensor: TensorLike, axis: AxisLike | None = None, keepdims: bool = False, name: str | None = None) -> tf.Tensor:
    """The maximum over `axis` (a number, a list, or None for all axes). Ties share the gradient.

    Takes integer, unsigned integer, floating tensors.
    """
def reduce_mean(input_tensor: TensorLike, axis: AxisLike | None = None, keepdims: bool = False, name: str | None = None) -> tf.Tensor:
    """The mean over `axis` (a number, a list, or None for all axes). The mean of integers is an integer.

    Takes integer, unsigned integer, floating, complex tensors.
    """
def reduce_min(input_tensor: TensorLike, axis: AxisLike | None = None, keepdims: bool = False, name: str | None = None) -> tf.Tensor:
    """The minimum over `axis` (a number, a list, or None for all axes). Ties share the gradient.

    Takes integer, unsigned integer, floating tensors.
    """
def reduce_prod(input_tensor: TensorLike, axis: AxisLike | None = None, keepdims: bool = False, name: str | None = None) -> tf.Tensor:
    """The product over `axis` (a number, a list, or None for all axes).

    Takes integer, unsigned integer, floating, complex tensors.
    """
def reduce_std(input_tensor: TensorLike, axis: AxisLike | None = None, keepdims: bool = False, name: str | None = None) -> tf.Tensor:
    """The (biased) standard deviation over `axis` (a number, a list, or None for all axes).

    Takes floating, complex tensors.
    """
def reduce_sum(input_tensor: TensorLike, axis: AxisLike | None = None, keepdims: bool = False, name: str | None = None) -> tf.Tensor:
    """The sum over `axis` (a number, a list, or None for all axes).

    Takes integer, unsigned integer, floating, complex tensors.
    """
def reduce_variance(input_tensor: TensorLike, axis: AxisLike | None = None, keepdims: bool = False, name: str | None = None) -> tf.Tensor:
    """The (biased) variance over `axis` (a number, a list, or None for all axes).

    Takes floating, complex tensors.
    """
def rint(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The nearest integer, half to even.

    Takes floating tensors.
    """
def round(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The nearest integer, half to even.

    Takes integer, unsigned integer, floating, complex tensors.
    """
def rsqrt(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """1 / sqrt(x).

    Takes floating, complex tensors.
    """
def scalar_mul(scalar: TensorLike, x: TensorLike, name: str | None = None) -> tf.Tensor:
    """scalar * x. Raises ValueError if `scalar` is not a scalar."""
def segment_max(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> tf.Tensor:
    """The max of the rows of `data` that share a segment id; the ids must be sorted."""
def segment_mean(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> tf.Tensor:
    """The mean of the rows of `data` that share a segment id; the ids must be sorted."""
def segment_min(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> tf.Tensor:
    """The min of the rows of `data` that share a segment id; the ids must be sorted."""
def segment_prod(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> tf.Tensor:
    """The prod of the rows of `data` that share a segment id; the ids must be sorted."""
def segment_sum(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> tf.Tensor:
    """The sum of the rows of `data` that share a segment id; the ids must be sorted."""
def sigmoid(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """1 / (1 + exp(-x)).

    Takes floating, complex tensors.
    """
def sign(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """-1, 0 or 1. Its gradient is zero, not None.

    Takes integer, floating, complex tensors.
    """
def sin(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The sine.

    Takes floating, complex tensors.
    """
def sinh(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The hyperbolic sine.

    Takes floating, complex tensors.
    """
def softmax(logits: TensorLike, axis: IntLike | None = None, name: str | None = None) -> tf.Tensor:
    """exp(x) / sum(exp(x)) along `axis`, by default the last."""
def softplus(features: TensorLike, name: str | None = None) -> tf.Tensor:
    """log(1 + exp(x)).

    Takes floating tensors.
    """
def softsign(features: TensorLike, name: str | None = None) -> tf.Tensor:
    """x / (1 + abs(x)).

    Takes floating tensors.
    """
from tapejax.math import special as special
def sqrt(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The square root.

    Takes floating, complex tensors.
    """
def square(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """x * x.

    Takes integer, unsigned integer, floating, complex tensors.
    """
def squared_difference(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """(x - y) squared.

    Takes int32, int64, floating, complex tensors.
    """
def subtract(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """x - y.

    Takes integer, unsigned integer, floating, complex tensors.
    """
def tan(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The tangent.

    Takes floating, complex tensors.
    """
def tanh(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """The hyperbolic tangent.

    Takes floating, complex tensors.
    """
def top_k(input: TensorLike, k: IntLike = 1, sorted: bool = True, index_type: DTypeLike = 'int32', name: str | None = None) -> Any:
    """The k largest elements of the last axis and where they are; of equals, the first ones come first.

    Raises:
      InvalidArgumentError: the last axis is shorter than k.
    """
def truediv(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """x / y; integers are divided as floats.

    Takes integer, unsigned integer, floating, complex tensors.
    """
def unsorted_segment_max(data: TensorLike, segment_ids: TensorLike, num_segments: IntLike, name: str | None = None) -> tf.Tensor:
    """The max of the parts of `data` that share a segment id; negative ids are left out."""
def unsorted_segment_mean(data: TensorLike, segment_ids: TensorLike, num_segments: IntLike, name: str | None = None) -> tf.Tensor:
    """The mean of the parts of `data` that share a segment id; negative ids are left out."""
def unsorted_segment_min(data: TensorLike, segment_ids: TensorLike, num_segments: IntLike, name: str | None = None) -> tf.Tensor:
    """The min of the parts of `data` that share a segment id; negative ids are left out."""
def unsorted_segment_prod(data: TensorLike, segment_ids: TensorLike, num_segments: IntLike, name: str | None = None) -> tf.Tensor:
    """The prod of the parts of `data` that share a segment id; negative ids are left out."""
def unsorted_segment_sqrt_n(data: TensorLike, segment_ids: TensorLike, num_segments: IntLike, name: str | None = None) -> tf.Tensor:
    """The sqrt_n of the parts of `data` that share a segment id; negative ids are left out."""
def unsorted_segment_sum(data: TensorLike, segment_ids: TensorLike, num_segments: IntLike, name: str | None = None) -> tf.Tensor:
    """The sum of the parts of `data` that share a segment id; negative ids are left out."""
def xdivy(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """x / y, and 0 where x is 0.

    Takes floating, complex tensors.
    """
def xlog1py(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """x * log1p(y), and 0 where x is 0.

    Takes floating, complex tensors.
    """
def xlogy(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """x * log(y), and 0 where x is 0.

    Takes floating, complex tensors.
    """
def zero_fraction(value: TensorLike, name: str | None = None) -> tf.Tensor:
    """The fraction of zeros in `value`, float32."""
def zeta(x: TensorLike, q: TensorLike, name: str | None = None) -> tf.Tensor:
    """The Hurwitz zeta function.

    Takes float32, float64 tensors.
    """
