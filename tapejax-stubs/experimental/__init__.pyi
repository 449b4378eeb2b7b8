"""Made by .ci/stubs of the live namespace."""

from typing import Any
import tapejax as tf

def async_clear_error() -> None:
    """Nothing."""
def async_scope(*args: Any, **kwargs: Any) -> Any: ...
from tapejax.experimental import dlpack as dlpack
def enable_strict_mode() -> None:
    """Nothing: dtypes never mix in silence here."""
float4_e2m1fn: tf.DType
float8_e4m3b11fnuz: tf.DType
float8_e4m3fn: tf.DType
float8_e4m3fnuz: tf.DType
float8_e5m2: tf.DType
float8_e5m2fnuz: tf.DType
from tapejax.experimental import async_scope as function_executor_type
int2: tf.DType
int4: tf.DType
from tapejax.experimental import numpy as numpy
uint2: tf.DType
uint4: tf.DType
