"""Made by .ci/stubs of the live namespace."""

from typing import Any
import numpy as np
import tapejax as tf
from tapejax.tf.values.types import Nest

def abs(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.abs``, of tensors, arrays and lists; gives tensors."""
def absolute(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.absolute``, of tensors, arrays and lists; gives tensors."""
def acos(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.acos``, of tensors, arrays and lists; gives tensors."""
def acosh(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.acosh``, of tensors, arrays and lists; gives tensors."""
def add(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.add``, of tensors, arrays and lists; gives tensors."""
def all(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.all``, of tensors, arrays and lists; gives tensors."""
def allclose(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.allclose``, of tensors, arrays and lists; gives tensors."""
def amax(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.amax``, of tensors, arrays and lists; gives tensors."""
def amin(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.amin``, of tensors, arrays and lists; gives tensors."""
def angle(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.angle``, of tensors, arrays and lists; gives tensors."""
def any(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.any``, of tensors, arrays and lists; gives tensors."""
def append(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.append``, of tensors, arrays and lists; gives tensors."""
def apply_along_axis(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.apply_along_axis``, of tensors, arrays and lists; gives tensors."""
def apply_over_axes(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.apply_over_axes``, of tensors, arrays and lists; gives tensors."""
def arange(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.arange``, of tensors, arrays and lists; gives tensors."""
def arccos(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.arccos``, of tensors, arrays and lists; gives tensors."""
def arccosh(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.arccosh``, of tensors, arrays and lists; gives tensors."""
def arcsin(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.arcsin``, of tensors, arrays and lists; gives tensors."""
def arcsinh(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.arcsinh``, of tensors, arrays and lists; gives tensors."""
def arctan(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.arctan``, of tensors, arrays and lists; gives tensors."""
def arctan2(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.arctan2``, of tensors, arrays and lists; gives tensors."""
def arctanh(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.arctanh``, of tensors, arrays and lists; gives tensors."""
def argmax(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.argmax``, of tensors, arrays and lists; gives tensors."""
def argmin(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.argmin``, of tensors, arrays and lists; gives tensors."""
def argpartition(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.argpartition``, of tensors, arrays and lists; gives tensors."""
def argsort(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.argsort``, of tensors, arrays and lists; gives tensors."""
def argwhere(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.argwhere``, of tensors, arrays and lists; gives tensors."""
def around(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.around``, of tensors, arrays and lists; gives tensors."""
def array(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.array``, of tensors, arrays and lists; gives tensors."""
def array_equal(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.array_equal``, of tensors, arrays and lists; gives tensors."""
def array_equiv(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.array_equiv``, of tensors, arrays and lists; gives tensors."""
def array_repr(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.array_repr``, of tensors, arrays and lists; gives tensors."""
def array_split(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.array_split``, of tensors, arrays and lists; gives tensors."""
def array_str(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.array_str``, of tensors, arrays and lists; gives tensors."""
def asanyarray(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.asarray``, of tensors, arrays and lists; gives tensors."""
def asarray(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.asarray``, of tensors, arrays and lists; gives tensors."""
def ascontiguousarray(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.asarray``, of tensors, arrays and lists; gives tensors."""
def asin(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.asin``, of tensors, arrays and lists; gives tensors."""
def asinh(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.asinh``, of tensors, arrays and lists; gives tensors."""
def astype(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.astype``, of tensors, arrays and lists; gives tensors."""
def atan(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.atan``, of tensors, arrays and lists; gives tensors."""
def atan2(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.atan2``, of tensors, arrays and lists; gives tensors."""
def atanh(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.atanh``, of tensors, arrays and lists; gives tensors."""
def atleast_1d(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.atleast_1d``, of tensors, arrays and lists; gives tensors."""
def atleast_2d(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.atleast_2d``, of tensors, arrays and lists; gives tensors."""
def atleast_3d(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.atleast_3d``, of tensors, arrays and lists; gives tensors."""
def average(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.average``, of tensors, arrays and lists; gives tensors."""
def bartlett(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.bartlett``, of tensors, arrays and lists; gives tensors."""
def bincount(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.bincount``, of tensors, arrays and lists; gives tensors."""
def bitwise_and(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.bitwise_and``, of tensors, arrays and lists; gives tensors."""
def bitwise_count(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.bitwise_count``, of tensors, arrays and lists; gives tensors."""
def bitwise_invert(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.bitwise_invert``, of tensors, arrays and lists; gives tensors."""
def bitwise_left_shift(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.bitwise_left_shift``, of tensors, arrays and lists; gives tensors."""
def bitwise_not(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.bitwise_not``, of tensors, arrays and lists; gives tensors."""
def bitwise_or(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.bitwise_or``, of tensors, arrays and lists; gives tensors."""
def bitwise_right_shift(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.bitwise_right_shift``, of tensors, arrays and lists; gives tensors."""
def bitwise_xor(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.bitwise_xor``, of tensors, arrays and lists; gives tensors."""
def blackman(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.blackman``, of tensors, arrays and lists; gives tensors."""
def block(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.block``, of tensors, arrays and lists; gives tensors."""
from numpy import bool as bool_
def broadcast_arrays(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.broadcast_arrays``, of tensors, arrays and lists; gives tensors."""
def broadcast_shapes(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.broadcast_shapes``, of tensors, arrays and lists; gives tensors."""
def broadcast_to(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.broadcast_to``, of tensors, arrays and lists; gives tensors."""
def can_cast(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.can_cast``, of tensors, arrays and lists; gives tensors."""
def cbrt(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.cbrt``, of tensors, arrays and lists; gives tensors."""
def ceil(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.ceil``, of tensors, arrays and lists; gives tensors."""
def choose(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.choose``, of tensors, arrays and lists; gives tensors."""
def clip(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.clip``, of tensors, arrays and lists; gives tensors."""
def column_stack(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.column_stack``, of tensors, arrays and lists; gives tensors."""
from numpy import complex128 as complex128
from numpy import complex64 as complex64
from numpy import complex128 as complex_
def compress(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.compress``, of tensors, arrays and lists; gives tensors."""
def concat(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.concat``, of tensors, arrays and lists; gives tensors."""
def concatenate(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.concatenate``, of tensors, arrays and lists; gives tensors."""
def conj(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.conj``, of tensors, arrays and lists; gives tensors."""
def conjugate(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.conjugate``, of tensors, arrays and lists; gives tensors."""
def convolve(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.convolve``, of tensors, arrays and lists; gives tensors."""
def copy(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.copy``, of tensors, arrays and lists; gives tensors."""
def copysign(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.copysign``, of tensors, arrays and lists; gives tensors."""
def corrcoef(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.corrcoef``, of tensors, arrays and lists; gives tensors."""
def correlate(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.correlate``, of tensors, arrays and lists; gives tensors."""
def cos(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.cos``, of tensors, arrays and lists; gives tensors."""
def cosh(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.cosh``, of tensors, arrays and lists; gives tensors."""
def count_nonzero(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.count_nonzero``, of tensors, arrays and lists; gives tensors."""
def cov(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.cov``, of tensors, arrays and lists; gives tensors."""
def cross(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.cross``, of tensors, arrays and lists; gives tensors."""
def cumprod(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.cumprod``, of tensors, arrays and lists; gives tensors."""
def cumsum(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.cumsum``, of tensors, arrays and lists; gives tensors."""
def cumulative_prod(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.cumulative_prod``, of tensors, arrays and lists; gives tensors."""
def cumulative_sum(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.cumulative_sum``, of tensors, arrays and lists; gives tensors."""
def deg2rad(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.deg2rad``, of tensors, arrays and lists; gives tensors."""
def degrees(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.degrees``, of tensors, arrays and lists; gives tensors."""
def delete(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.delete``, of tensors, arrays and lists; gives tensors."""
def diag(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.diag``, of tensors, arrays and lists; gives tensors."""
def diag_indices(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.diag_indices``, of tensors, arrays and lists; gives tensors."""
def diag_indices_from(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.diag_indices_from``, of tensors, arrays and lists; gives tensors."""
def diagflat(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.diagflat``, of tensors, arrays and lists; gives tensors."""
def diagonal(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.diagonal``, of tensors, arrays and lists; gives tensors."""
def diff(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.diff``, of tensors, arrays and lists; gives tensors."""
def digitize(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.digitize``, of tensors, arrays and lists; gives tensors."""
def divide(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.divide``, of tensors, arrays and lists; gives tensors."""
def divmod(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.divmod``, of tensors, arrays and lists; gives tensors."""
def dot(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.dot``, of tensors, arrays and lists; gives tensors."""
def dsplit(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.dsplit``, of tensors, arrays and lists; gives tensors."""
def dstack(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.dstack``, of tensors, arrays and lists; gives tensors."""
e: float
def ediff1d(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.ediff1d``, of tensors, arrays and lists; gives tensors."""
def einsum(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.einsum``, of tensors, arrays and lists; gives tensors."""
def einsum_path(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.einsum_path``, of tensors, arrays and lists; gives tensors."""
def empty(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.empty``, of tensors, arrays and lists; gives tensors."""
def empty_like(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.empty_like``, of tensors, arrays and lists; gives tensors."""
def equal(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.equal``, of tensors, arrays and lists; gives tensors."""
def exp(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.exp``, of tensors, arrays and lists; gives tensors."""
def exp2(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.exp2``, of tensors, arrays and lists; gives tensors."""
def expand_dims(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.expand_dims``, of tensors, arrays and lists; gives tensors."""
def experimental_enable_numpy_behavior(prefer_float32: bool = False, dtype_conversion_mode: str = 'legacy') -> None:
    """Gives tensors NumPy's methods, indexing and promotion of dtypes, from now on.

    Args:
      prefer_float32: taken for TensorFlow's sake: Python's floats are float32 as long as nothing else decides.
      dtype_conversion_mode: 'legacy', 'all' or 'safe': dtypes are promoted by JAX's rules, in all of these.

    >>> import tapejax as tf
    >>> tf.constant([1, 2]).T
    Traceback (most recent call last):
    AttributeError: 'Tensor' object has no attribute 'T': use tf.transpose(x); for NumPy's methods call tf.experimental...
    """
def expm1(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.expm1``, of tensors, arrays and lists; gives tensors."""
def extract(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.extract``, of tensors, arrays and lists; gives tensors."""
def eye(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.eye``, of tensors, arrays and lists; gives tensors."""
def fabs(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.fabs``, of tensors, arrays and lists; gives tensors."""
def fill_diagonal(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.fill_diagonal``, of tensors, arrays and lists; gives tensors."""
from ml_dtypes._finfo import finfo as finfo
def fix(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.trunc``, of tensors, arrays and lists; gives tensors."""
def flatnonzero(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.flatnonzero``, of tensors, arrays and lists; gives tensors."""
def flatten(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.ravel``, of tensors, arrays and lists; gives tensors."""
def flip(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.flip``, of tensors, arrays and lists; gives tensors."""
def fliplr(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.fliplr``, of tensors, arrays and lists; gives tensors."""
def flipud(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.flipud``, of tensors, arrays and lists; gives tensors."""
from numpy import float16 as float16
from numpy import float32 as float32
from numpy import float64 as float64
from numpy import float64 as float_
def float_power(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.float_power``, of tensors, arrays and lists; gives tensors."""
def floor(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.floor``, of tensors, arrays and lists; gives tensors."""
def floor_divide(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.floor_divide``, of tensors, arrays and lists; gives tensors."""
def fmax(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.fmax``, of tensors, arrays and lists; gives tensors."""
def fmin(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.fmin``, of tensors, arrays and lists; gives tensors."""
def fmod(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.fmod``, of tensors, arrays and lists; gives tensors."""
def frexp(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.frexp``, of tensors, arrays and lists; gives tensors."""
def from_dlpack(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.from_dlpack``, of tensors, arrays and lists; gives tensors."""
def frombuffer(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.frombuffer``, of tensors, arrays and lists; gives tensors."""
def fromfile(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.fromfile``, of tensors, arrays and lists; gives tensors."""
def fromfunction(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.fromfunction``, of tensors, arrays and lists; gives tensors."""
def fromiter(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.fromiter``, of tensors, arrays and lists; gives tensors."""
def frompyfunc(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.frompyfunc``, of tensors, arrays and lists; gives tensors."""
def fromstring(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.fromstring``, of tensors, arrays and lists; gives tensors."""
def full(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.full``, of tensors, arrays and lists; gives tensors."""
def full_like(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.full_like``, of tensors, arrays and lists; gives tensors."""
def gcd(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.gcd``, of tensors, arrays and lists; gives tensors."""
def geomspace(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.geomspace``, of tensors, arrays and lists; gives tensors."""
def get_printoptions(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.get_printoptions``, of tensors, arrays and lists; gives tensors."""
def gradient(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.gradient``, of tensors, arrays and lists; gives tensors."""
def greater(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.greater``, of tensors, arrays and lists; gives tensors."""
def greater_equal(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.greater_equal``, of tensors, arrays and lists; gives tensors."""
def hamming(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.hamming``, of tensors, arrays and lists; gives tensors."""
def hanning(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.hanning``, of tensors, arrays and lists; gives tensors."""
def heaviside(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.heaviside``, of tensors, arrays and lists; gives tensors."""
def histogram(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.histogram``, of tensors, arrays and lists; gives tensors."""
def histogram2d(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.histogram2d``, of tensors, arrays and lists; gives tensors."""
def histogram_bin_edges(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.histogram_bin_edges``, of tensors, arrays and lists; gives tensors."""
def histogramdd(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.histogramdd``, of tensors, arrays and lists; gives tensors."""
def hsplit(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.hsplit``, of tensors, arrays and lists; gives tensors."""
def hstack(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.hstack``, of tensors, arrays and lists; gives tensors."""
def hypot(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.hypot``, of tensors, arrays and lists; gives tensors."""
def i0(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.i0``, of tensors, arrays and lists; gives tensors."""
def identity(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.identity``, of tensors, arrays and lists; gives tensors."""
from numpy import iinfo as iinfo
def imag(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.imag``, of tensors, arrays and lists; gives tensors."""
def indices(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.indices``, of tensors, arrays and lists; gives tensors."""
from numpy import inexact as inexact
inf: float
def inner(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.inner``, of tensors, arrays and lists; gives tensors."""
def insert(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.insert``, of tensors, arrays and lists; gives tensors."""
from numpy import int16 as int16
from numpy import int32 as int32
from numpy import int64 as int64
from numpy import int8 as int8
from numpy import int64 as int_
def interp(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.interp``, of tensors, arrays and lists; gives tensors."""
def intersect1d(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.intersect1d``, of tensors, arrays and lists; gives tensors."""
def invert(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.invert``, of tensors, arrays and lists; gives tensors."""
def isclose(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.isclose``, of tensors, arrays and lists; gives tensors."""
def iscomplex(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.iscomplex``, of tensors, arrays and lists; gives tensors."""
def iscomplexobj(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.iscomplexobj``, of tensors, arrays and lists; gives tensors."""
def isdtype(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.isdtype``, of tensors, arrays and lists; gives tensors."""
def isfinite(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.isfinite``, of tensors, arrays and lists; gives tensors."""
def isin(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.isin``, of tensors, arrays and lists; gives tensors."""
def isinf(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.isinf``, of tensors, arrays and lists; gives tensors."""
def isnan(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.isnan``, of tensors, arrays and lists; gives tensors."""
def isneginf(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.isneginf``, of tensors, arrays and lists; gives tensors."""
def isposinf(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.isposinf``, of tensors, arrays and lists; gives tensors."""
def isreal(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.isreal``, of tensors, arrays and lists; gives tensors."""
def isrealobj(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.isrealobj``, of tensors, arrays and lists; gives tensors."""
def isscalar(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.isscalar``, of tensors, arrays and lists; gives tensors."""
def issubdtype(arg1: Any, arg2: Any) -> Any:
    """Returns True if first argument is a typecode lower/equal in type hierarchy.

    This is like the builtin :func:`issubclass`, but for `dtype`\\ s.

    Parameters
    ----------
    arg1, arg2 : dtype_like
        `dtype` or object coercible to one

    Returns
    -------
    out : bool

    See Also
    --------
    :ref:`arrays.scalars` : Overview of the numpy type hierarchy.

    Examples
    --------
    `issubdtype` can be used to check the type of arrays:

    >>> ints = np.array([1, 2, 3], dtype=np.int32)
    >>> np.issubdtype(ints.dtype, np.integer)
    True
    >>> np.issubdtype(ints.dtype, np.floating)
    False

    >>> floats = np.array([1, 2, 3], dtype=np.float32)
    >>> np.issubdtype(floats.dtype, np.integer)
    False
    >>> np.issubdtype(floats.dtype, np.floating)
    True

    Similar types of different sizes are not subdtypes of each other:

    >>> np.issubdtype(np.float64, np.float32)
    False
    >>> np.issubdtype(np.float32, np.float64)
    False

    but both are subtypes of `floating`:

    >>> np.issubdtype(np.float64, np.floating)
    True
    >>> np.issubdtype(np.float32, np.floating)
    True

    For convenience, dtype-like objects are allowed too:

    >>> np.issubdtype('S1', np.bytes_)
    True
    >>> np.issubdtype('i4', np.signedinteger)
    True
    """
def iterable(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.iterable``, of tensors, arrays and lists; gives tensors."""
def ix_(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.ix_``, of tensors, arrays and lists; gives tensors."""
def kaiser(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.kaiser``, of tensors, arrays and lists; gives tensors."""
def kron(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.kron``, of tensors, arrays and lists; gives tensors."""
def lcm(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.lcm``, of tensors, arrays and lists; gives tensors."""
def ldexp(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.ldexp``, of tensors, arrays and lists; gives tensors."""
def left_shift(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.left_shift``, of tensors, arrays and lists; gives tensors."""
def less(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.less``, of tensors, arrays and lists; gives tensors."""
def less_equal(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.less_equal``, of tensors, arrays and lists; gives tensors."""
def lexsort(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.lexsort``, of tensors, arrays and lists; gives tensors."""
def linspace(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.linspace``, of tensors, arrays and lists; gives tensors."""
def load(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.load``, of tensors, arrays and lists; gives tensors."""
def log(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.log``, of tensors, arrays and lists; gives tensors."""
def log10(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.log10``, of tensors, arrays and lists; gives tensors."""
def log1p(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.log1p``, of tensors, arrays and lists; gives tensors."""
def log2(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.log2``, of tensors, arrays and lists; gives tensors."""
def logaddexp(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.logaddexp``, of tensors, arrays and lists; gives tensors."""
def logaddexp2(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.logaddexp2``, of tensors, arrays and lists; gives tensors."""
def logical_and(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.logical_and``, of tensors, arrays and lists; gives tensors."""
def logical_not(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.logical_not``, of tensors, arrays and lists; gives tensors."""
def logical_or(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.logical_or``, of tensors, arrays and lists; gives tensors."""
def logical_xor(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.logical_xor``, of tensors, arrays and lists; gives tensors."""
def logspace(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.logspace``, of tensors, arrays and lists; gives tensors."""
def mask_indices(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.mask_indices``, of tensors, arrays and lists; gives tensors."""
def matmul(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.matmul``, of tensors, arrays and lists; gives tensors."""
def matrix_transpose(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.matrix_transpose``, of tensors, arrays and lists; gives tensors."""
def matvec(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.matvec``, of tensors, arrays and lists; gives tensors."""
def max(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.max``, of tensors, arrays and lists; gives tensors."""
def maximum(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.maximum``, of tensors, arrays and lists; gives tensors."""
def mean(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.mean``, of tensors, arrays and lists; gives tensors."""
def median(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.median``, of tensors, arrays and lists; gives tensors."""
def meshgrid(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.meshgrid``, of tensors, arrays and lists; gives tensors."""
def min(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.min``, of tensors, arrays and lists; gives tensors."""
def minimum(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.minimum``, of tensors, arrays and lists; gives tensors."""
def minmax(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.minmax``, of tensors, arrays and lists; gives tensors."""
def mod(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.mod``, of tensors, arrays and lists; gives tensors."""
def modf(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.modf``, of tensors, arrays and lists; gives tensors."""
def moveaxis(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.moveaxis``, of tensors, arrays and lists; gives tensors."""
def multiply(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.multiply``, of tensors, arrays and lists; gives tensors."""
def nan_to_num(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.nan_to_num``, of tensors, arrays and lists; gives tensors."""
def nanargmax(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.nanargmax``, of tensors, arrays and lists; gives tensors."""
def nanargmin(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.nanargmin``, of tensors, arrays and lists; gives tensors."""
def nancumprod(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.nancumprod``, of tensors, arrays and lists; gives tensors."""
def nancumsum(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.nancumsum``, of tensors, arrays and lists; gives tensors."""
def nanmax(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.nanmax``, of tensors, arrays and lists; gives tensors."""
def nanmean(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.nanmean``, of tensors, arrays and lists; gives tensors."""
def nanmedian(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.nanmedian``, of tensors, arrays and lists; gives tensors."""
def nanmin(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.nanmin``, of tensors, arrays and lists; gives tensors."""
def nanpercentile(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.nanpercentile``, of tensors, arrays and lists; gives tensors."""
def nanprod(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.nanprod``, of tensors, arrays and lists; gives tensors."""
def nanquantile(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.nanquantile``, of tensors, arrays and lists; gives tensors."""
def nanstd(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.nanstd``, of tensors, arrays and lists; gives tensors."""
def nansum(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.nansum``, of tensors, arrays and lists; gives tensors."""
def nanvar(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.nanvar``, of tensors, arrays and lists; gives tensors."""
from tapejax.tf.values.tensor import Tensor as ndarray
def ndim(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.ndim``, of tensors, arrays and lists; gives tensors."""
def negative(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.negative``, of tensors, arrays and lists; gives tensors."""
newaxis: None
def nextafter(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.nextafter``, of tensors, arrays and lists; gives tensors."""
def nonzero(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.nonzero``, of tensors, arrays and lists; gives tensors."""
def not_equal(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.not_equal``, of tensors, arrays and lists; gives tensors."""
from numpy import object_ as object_
def ones(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.ones``, of tensors, arrays and lists; gives tensors."""
def ones_like(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.ones_like``, of tensors, arrays and lists; gives tensors."""
def outer(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.outer``, of tensors, arrays and lists; gives tensors."""
def packbits(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.packbits``, of tensors, arrays and lists; gives tensors."""
def pad(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.pad``, of tensors, arrays and lists; gives tensors."""
def partition(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.partition``, of tensors, arrays and lists; gives tensors."""
def percentile(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.percentile``, of tensors, arrays and lists; gives tensors."""
def permute_dims(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.permute_dims``, of tensors, arrays and lists; gives tensors."""
pi: float
def piecewise(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.piecewise``, of tensors, arrays and lists; gives tensors."""
def place(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.place``, of tensors, arrays and lists; gives tensors."""
def poly(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.poly``, of tensors, arrays and lists; gives tensors."""
def polyadd(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.polyadd``, of tensors, arrays and lists; gives tensors."""
def polyder(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.polyder``, of tensors, arrays and lists; gives tensors."""
def polydiv(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.polydiv``, of tensors, arrays and lists; gives tensors."""
def polyfit(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.polyfit``, of tensors, arrays and lists; gives tensors."""
def polyint(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.polyint``, of tensors, arrays and lists; gives tensors."""
def polymul(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.polymul``, of tensors, arrays and lists; gives tensors."""
def polysub(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.polysub``, of tensors, arrays and lists; gives tensors."""
def polyval(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.polyval``, of tensors, arrays and lists; gives tensors."""
def positive(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.positive``, of tensors, arrays and lists; gives tensors."""
def pow(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.pow``, of tensors, arrays and lists; gives tensors."""
def power(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.power``, of tensors, arrays and lists; gives tensors."""
def printoptions(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.printoptions``, of tensors, arrays and lists; gives tensors."""
def prod(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.prod``, of tensors, arrays and lists; gives tensors."""
def promote_types(a: Any, b: Any) -> Any: ...
def ptp(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.ptp``, of tensors, arrays and lists; gives tensors."""
def put(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.put``, of tensors, arrays and lists; gives tensors."""
def put_along_axis(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.put_along_axis``, of tensors, arrays and lists; gives tensors."""
def quantile(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.quantile``, of tensors, arrays and lists; gives tensors."""
def rad2deg(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.rad2deg``, of tensors, arrays and lists; gives tensors."""
def radians(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.radians``, of tensors, arrays and lists; gives tensors."""
from tapejax.experimental.numpy import random as random
def ravel(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.ravel``, of tensors, arrays and lists; gives tensors."""
def ravel_multi_index(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.ravel_multi_index``, of tensors, arrays and lists; gives tensors."""
def real(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.real``, of tensors, arrays and lists; gives tensors."""
def reciprocal(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.reciprocal``, of tensors, arrays and lists; gives tensors."""
def remainder(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.remainder``, of tensors, arrays and lists; gives tensors."""
def repeat(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.repeat``, of tensors, arrays and lists; gives tensors."""
def reshape(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.reshape``, of tensors, arrays and lists; gives tensors."""
def resize(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.resize``, of tensors, arrays and lists; gives tensors."""
def result_type(*args: Any) -> Any: ...
def right_shift(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.right_shift``, of tensors, arrays and lists; gives tensors."""
def rint(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.rint``, of tensors, arrays and lists; gives tensors."""
def roll(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.roll``, of tensors, arrays and lists; gives tensors."""
def rollaxis(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.rollaxis``, of tensors, arrays and lists; gives tensors."""
def roots(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.roots``, of tensors, arrays and lists; gives tensors."""
def rot90(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.rot90``, of tensors, arrays and lists; gives tensors."""
def round(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.round``, of tensors, arrays and lists; gives tensors."""
def save(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.save``, of tensors, arrays and lists; gives tensors."""
def savez(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.savez``, of tensors, arrays and lists; gives tensors."""
def searchsorted(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.searchsorted``, of tensors, arrays and lists; gives tensors."""
def select(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.select``, of tensors, arrays and lists; gives tensors."""
def set_printoptions(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.set_printoptions``, of tensors, arrays and lists; gives tensors."""
def setdiff1d(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.setdiff1d``, of tensors, arrays and lists; gives tensors."""
def setxor1d(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.setxor1d``, of tensors, arrays and lists; gives tensors."""
def shape(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.shape``, of tensors, arrays and lists; gives tensors."""
def sign(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.sign``, of tensors, arrays and lists; gives tensors."""
def signbit(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.signbit``, of tensors, arrays and lists; gives tensors."""
def sin(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.sin``, of tensors, arrays and lists; gives tensors."""
def sinc(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.sinc``, of tensors, arrays and lists; gives tensors."""
def sinh(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.sinh``, of tensors, arrays and lists; gives tensors."""
def size(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.size``, of tensors, arrays and lists; gives tensors."""
def sort(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.sort``, of tensors, arrays and lists; gives tensors."""
def sort_complex(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.sort_complex``, of tensors, arrays and lists; gives tensors."""
def spacing(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.spacing``, of tensors, arrays and lists; gives tensors."""
def split(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.split``, of tensors, arrays and lists; gives tensors."""
def sqrt(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.sqrt``, of tensors, arrays and lists; gives tensors."""
def square(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.square``, of tensors, arrays and lists; gives tensors."""
def squeeze(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.squeeze``, of tensors, arrays and lists; gives tensors."""
def stack(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.stack``, of tensors, arrays and lists; gives tensors."""
def std(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.std``, of tensors, arrays and lists; gives tensors."""
from numpy import bytes_ as string_
def subtract(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.subtract``, of tensors, arrays and lists; gives tensors."""
def sum(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.sum``, of tensors, arrays and lists; gives tensors."""
def swapaxes(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.swapaxes``, of tensors, arrays and lists; gives tensors."""
def take(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.take``, of tensors, arrays and lists; gives tensors."""
def take_along_axis(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.take_along_axis``, of tensors, arrays and lists; gives tensors."""
def tan(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.tan``, of tensors, arrays and lists; gives tensors."""
def tanh(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.tanh``, of tensors, arrays and lists; gives tensors."""
def tensordot(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.tensordot``, of tensors, arrays and lists; gives tensors."""
def tile(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.tile``, of tensors, arrays and lists; gives tensors."""
def top_k(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.top_k``, of tensors, arrays and lists; gives tensors."""
def trace(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.trace``, of tensors, arrays and lists; gives tensors."""
def transpose(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.transpose``, of tensors, arrays and lists; gives tensors."""
def trapezoid(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.trapezoid``, of tensors, arrays and lists; gives tensors."""
def tri(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.tri``, of tensors, arrays and lists; gives tensors."""
def tril(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.tril``, of tensors, arrays and lists; gives tensors."""
def tril_indices(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.tril_indices``, of tensors, arrays and lists; gives tensors."""
def tril_indices_from(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.tril_indices_from``, of tensors, arrays and lists; gives tensors."""
def trim_zeros(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.trim_zeros``, of tensors, arrays and lists; gives tensors."""
def triu(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.triu``, of tensors, arrays and lists; gives tensors."""
def triu_indices(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.triu_indices``, of tensors, arrays and lists; gives tensors."""
def triu_indices_from(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.triu_indices_from``, of tensors, arrays and lists; gives tensors."""
def true_divide(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.true_divide``, of tensors, arrays and lists; gives tensors."""
def trunc(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.trunc``, of tensors, arrays and lists; gives tensors."""
from numpy import uint16 as uint16
from numpy import uint32 as uint32
from numpy import uint64 as uint64
from numpy import uint8 as uint8
from numpy import str_ as unicode_
def union1d(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.union1d``, of tensors, arrays and lists; gives tensors."""
def unique(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.unique``, of tensors, arrays and lists; gives tensors."""
def unique_all(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.unique_all``, of tensors, arrays and lists; gives tensors."""
def unique_counts(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.unique_counts``, of tensors, arrays and lists; gives tensors."""
def unique_inverse(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.unique_inverse``, of tensors, arrays and lists; gives tensors."""
def unique_values(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.unique_values``, of tensors, arrays and lists; gives tensors."""
def unpackbits(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.unpackbits``, of tensors, arrays and lists; gives tensors."""
def unravel_index(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.unravel_index``, of tensors, arrays and lists; gives tensors."""
def unstack(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.unstack``, of tensors, arrays and lists; gives tensors."""
def unwrap(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.unwrap``, of tensors, arrays and lists; gives tensors."""
def vander(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.vander``, of tensors, arrays and lists; gives tensors."""
def var(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.var``, of tensors, arrays and lists; gives tensors."""
def vdot(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.vdot``, of tensors, arrays and lists; gives tensors."""
def vecdot(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.vecdot``, of tensors, arrays and lists; gives tensors."""
def vecmat(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.vecmat``, of tensors, arrays and lists; gives tensors."""
def vectorize(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.vectorize``, of tensors, arrays and lists; gives tensors."""
def vsplit(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.vsplit``, of tensors, arrays and lists; gives tensors."""
def vstack(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.vstack``, of tensors, arrays and lists; gives tensors."""
def where(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.where``, of tensors, arrays and lists; gives tensors."""
def zeros(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.zeros``, of tensors, arrays and lists; gives tensors."""
def zeros_like(*args: Any, **kwargs: Any) -> Nest:
    """``jnp.zeros_like``, of tensors, arrays and lists; gives tensors."""
