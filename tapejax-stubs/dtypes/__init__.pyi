"""Made by .ci/stubs of the live namespace."""

from typing import Any
import numpy as np
import tapejax as tf
from tapejax.tf.values.types import TensorLike, DTypeLike

from tapejax.tf.values.dtypes import DType as DType
def as_dtype(type_value: object) -> tf.DType:
    """The `DType` for a name, a NumPy or ``jnp`` type, a TensorFlow type number, or a `DType`.

    Like TensorFlow, takes Python's ``float`` (float32) and ``bool`` but not ``int`` or ``complex``.

    Raises:
      TypeError: if `type_value` names no type.

    >>> as_dtype("half"), as_dtype(np.int64), as_dtype(float)
    (tf.float16, tf.int64, tf.float32)
    """
bfloat16: tf.DType
bool: tf.DType
def cast(x: TensorLike, dtype: DTypeLike, name: str | None = None) -> tf.Tensor:
    """`x` in another dtype; `x` itself where it has that dtype.

    Floats are cut to integers, complex numbers to their real part.

    Raises:
      TypeError: `dtype` is not a dtype.

    >>> import tapejax as tf
    >>> print(tf.cast([1.8, -1.8], tf.int32))
    tf.Tensor([ 1 -1], shape=(2,), dtype=int32)
    """
def complex(real: TensorLike, imag: TensorLike, name: str | None = None) -> tf.Tensor:
    """A complex tensor of its real and imaginary part, both float32 or both float64.

    Raises:
      TypeError: the parts are of other or of different dtypes.
    """
complex128: tf.DType
complex64: tf.DType
double: tf.DType
float16: tf.DType
float32: tf.DType
float64: tf.DType
half: tf.DType
int16: tf.DType
int32: tf.DType
int64: tf.DType
int8: tf.DType
def saturate_cast(value: TensorLike, dtype: Any, name: str | None = None) -> tf.Tensor:
    """`value` in another dtype, what lies outside its range moved to the limits; the parts of complex numbers each."""
string: tf.DType
uint16: tf.DType
uint32: tf.DType
uint64: tf.DType
uint8: tf.DType
