"""Made by .ci/stubs of the live namespace."""

import tapejax as tf

from tapejax.experimental import dlpack as dlpack
float4_e2m1fn: tf.DType
float8_e4m3b11fnuz: tf.DType
float8_e4m3fn: tf.DType
float8_e4m3fnuz: tf.DType
float8_e5m2: tf.DType
float8_e5m2fnuz: tf.DType
int2: tf.DType
int4: tf.DType
from tapejax.experimental import numpy as numpy
uint2: tf.DType
uint4: tf.DType
