"""Made by .ci/stubs of the live namespace."""

from collections.abc import Callable
from typing import Any, NoReturn
import jax
import tapejax as tf
from tapejax.tf.values.types import Ignored

from tapejax.debugging import Assert as Assert
from tapejax.tf.ops.compat import ConfigProto as ConfigProto
from tapejax.tf.values.dtypes import DType as DType
from tapejax.tf.ops.compat import GPUOptions as GPUOptions
from tapejax.autodiff import GradientTape as GradientTape
from tapejax.tf.ops.indexed_slices import IndexedSlices as IndexedSlices
from tapejax.tf.ops.compat import InteractiveSession as InteractiveSession
from tapejax.tf.programs.module import Module as Module
from tapejax.tf.ops.registry import RegisterGradient as RegisterGradient
from tapejax.tf.ops.compat import Session as Session
from tapejax.tf.ops.sparse import SparseTensor as SparseTensor
from tapejax.tf.values.tensor import Tensor as Tensor
from tapejax.tf.ops.tensor_array import TensorArray as TensorArray
from tapejax.tf.values.dtypes import TensorShape as TensorShape
from tapejax.tf.programs.signatures import TensorSpec as TensorSpec
from tapejax.tape.gradient_tape import UnconnectedGradients as UnconnectedGradients
from tapejax.tf.values.variable import Variable as Variable
from tapejax.tf.ops.graph import VariableSynchronization as VariableSynchronization
from tapejax.math import abs as abs
from tapejax.math import acos as acos
from tapejax.math import acosh as acosh
from tapejax.math import add as add
from tapejax.math import add_n as add_n
from tapejax.math import argmax as argmax
from tapejax.math import argmin as argmin
from tapejax import argsort as argsort
from tapejax.dtypes import as_dtype as as_dtype
from tapejax.math import asin as asin
from tapejax.math import asinh as asinh
from tapejax.debugging import assert_integer as assert_integer
from tapejax.debugging import assert_scalar as assert_scalar
from tapejax.debugging import assert_type as assert_type
from tapejax.math import atan as atan
from tapejax.math import atan2 as atan2
from tapejax.math import atanh as atanh
bfloat16: tf.DType
from tapejax import bitcast as bitcast
bool: tf.DType
from tapejax import broadcast_dynamic_shape as broadcast_dynamic_shape
from tapejax import broadcast_static_shape as broadcast_static_shape
from tapejax import broadcast_to as broadcast_to
from tapejax.dtypes import cast as cast
from tapejax import clip_by_global_norm as clip_by_global_norm
from tapejax import clip_by_norm as clip_by_norm
from tapejax import clip_by_value as clip_by_value
from tapejax.dtypes import complex as complex
complex128: tf.DType
complex64: tf.DType
from tapejax import concat as concat
from tapejax import constant as constant
from tapejax import control_dependencies as control_dependencies
from tapejax import convert_to_tensor as convert_to_tensor
from tapejax.math import cos as cos
from tapejax.math import cosh as cosh
from tapejax.math import cumsum as cumsum
from tapejax.tf.ops.custom_gradient import custom_gradient as custom_gradient
def disable_eager_execution() -> NoReturn:
    """Raises NotImplementedError: there are no graphs and sessions of TensorFlow 1."""
from tapejax.compat.v1 import disable_eager_execution as disable_v2_behavior
from tapejax.math import divide as divide
double: tf.DType
from tapejax import dynamic_partition as dynamic_partition
from tapejax import dynamic_stitch as dynamic_stitch
from tapejax.linalg import einsum as einsum
def enable_eager_execution(config: Ignored = None, device_policy: Ignored = None, execution_mode: Ignored = None) -> None:
    """Nothing: operations run at once."""
def enable_resource_variables() -> None:
    """Nothing: TensorFlow 2's behaviour is the only one."""
from tapejax.compat.v1 import enable_resource_variables as enable_v2_behavior
from tapejax.compat.v1 import enable_resource_variables as enable_v2_tensorshape
from tapejax import ensure_shape as ensure_shape
from tapejax.math import equal as equal
from tapejax import executing_eagerly as executing_eagerly
from tapejax.math import exp as exp
from tapejax import expand_dims as expand_dims
from tapejax.linalg import eye as eye
from tapejax.quantization import fake_quant_with_min_max_args as fake_quant_with_min_max_args
from tapejax.quantization import fake_quant_with_min_max_args_gradient as fake_quant_with_min_max_args_gradient
from tapejax.quantization import fake_quant_with_min_max_vars as fake_quant_with_min_max_vars
from tapejax.quantization import fake_quant_with_min_max_vars_gradient as fake_quant_with_min_max_vars_gradient
from tapejax.quantization import fake_quant_with_min_max_vars_per_channel as fake_quant_with_min_max_vars_per_channel
from tapejax.quantization import fake_quant_with_min_max_vars_per_channel_gradient as fake_quant_with_min_max_vars_per_channel_gradient
from tapejax import fill as fill
float16: tf.DType
float32: tf.DType
float64: tf.DType
from tapejax.math import floor as floor
from tapejax.math import floordiv as floor_div
def function(func: Callable[..., Any] | None = None, input_signature: Any = None, autograph: object = True, jit_compile: Ignored = None, reduce_retracing: Ignored = False, experimental_implements: Ignored = None, experimental_autograph_options: Ignored = None, experimental_attributes: Ignored = None, experimental_relax_shapes: Ignored = None, experimental_compile: Ignored = None, experimental_follow_type_hints: Ignored = None) -> Any:
    """Compiles a Python function of tensors: it runs once for each kind of arguments, and from then on as one program.

    A decorator, with or without arguments. Tensors are inputs, by shape and dtype; Python numbers, strings and other objects
    count by value, a new one traces again. Variables that the function reads or assigns, Keras's too, keep their state as if it
    were Python; ones that it creates it may create on its first call only.

    Control flow is Python's, while tracing. Where it depends on a tensor's value (``if x > 0:``, ``while``, ``for i in
    tf.range(n)``, ``break``, ``and`` ...) it is converted if the extra ``tapejax[autograph]`` is installed; without it, use
    `tf.cond` and `tf.while_loop`.

    Args:
      func: the function, a method or any callable.
      input_signature: a list of (nested) `TensorSpec` for the first arguments, which are converted and must fit.
      autograph: whether control flow is converted, in `func` and in what it calls of the user's functions.
      jit_compile, reduce_retracing, experimental_...: taken for TensorFlow's sake.

    Raises (when called):
      TypeError: the arguments do not fit the function or its `input_signature`, one cannot be hashed, or the function returns
        what is not a tensor.
      OperatorNotAllowedInGraphError: Python asks for the truth of a tensor that is being traced.
      ValueError: variables are created on a later call.

    >>> import tapejax as tf
    >>> total = tf.Variable(0.0)
    >>> @tf.function
    ... def add(x):
    ...     print("tracing")
    ...     return total.assign_add(x)
    >>> print(add(tf.constant(1.0)).numpy(), add(tf.constant(2.0)).numpy())
    tracing
    1.0 3.0

    After ``tf.function``; the program is `jax.jit`'s.
    """
from tapejax import get_logger as get_logger
from tapejax import get_static_value as get_static_value
from tapejax import grad_pass_through as grad_pass_through
from tapejax import gradients as gradients
from tapejax.math import greater as greater
from tapejax.math import greater_equal as greater_equal
from tapejax import group as group
half: tf.DType
from tapejax import identity as identity
from tapejax import identity_n as identity_n
from tapejax.tf.values.staging import init_scope as init_scope
int16: tf.DType
int32: tf.DType
int64: tf.DType
int8: tf.DType
from tapejax import is_symbolic_tensor as is_symbolic_tensor
from tapejax import is_tensor as is_tensor
from tapejax.math import less as less
from tapejax.math import less_equal as less_equal
from tapejax import linspace as linspace
from tapejax.compat.v1 import logging as logging
from tapejax.math import logical_and as logical_and
from tapejax.math import logical_not as logical_not
from tapejax.math import logical_or as logical_or
from tapejax.linalg import matmul as matmul
from tapejax.linalg import sqrtm as matrix_square_root
from tapejax.math import maximum as maximum
from tapejax import meshgrid as meshgrid
from tapejax.math import minimum as minimum
from tapejax.math import multiply as multiply
def name_scope(name: str | None, default_name: str | None = None, values: Ignored = None) -> Any:
    """`tf.name_scope` of `name`, of `default_name` where that is None; where both are, all scopes are left."""
from tapejax.math import negative as negative
from tapejax import NotDifferentiable as no_gradient
from tapejax import no_op as no_op
from tapejax.linalg import norm as norm
from tapejax.math import not_equal as not_equal
from tapejax import numpy_function as numpy_function
from tapejax import one_hot as one_hot
from tapejax import ones as ones
from tapejax import ones_like as ones_like
from tapejax.math import pow as pow
from tapejax import print as print
from tapejax import py_function as py_function
from tapejax.compat.v1 import quantization as quantization
from tapejax import range as range
from tapejax import rank as rank
from tapejax import realdiv as realdiv
from tapejax import recompute_grad as recompute_grad
from tapejax.math import reduce_all as reduce_all
from tapejax.math import reduce_any as reduce_any
from tapejax.math import reduce_logsumexp as reduce_logsumexp
from tapejax.math import reduce_max as reduce_max
from tapejax.math import reduce_mean as reduce_mean
from tapejax.math import reduce_min as reduce_min
from tapejax.math import reduce_prod as reduce_prod
from tapejax.math import reduce_sum as reduce_sum
from tapejax import register_tensor_conversion_function as register_tensor_conversion_function
from tapejax import repeat as repeat
from tapejax import reshape as reshape
from tapejax import reverse as reverse
from tapejax import roll as roll
from tapejax.math import round as round
from tapejax.dtypes import saturate_cast as saturate_cast
from tapejax import scatter_nd as scatter_nd
from tapejax import searchsorted as searchsorted
from tapejax import sequence_mask as sequence_mask
from tapejax.random import set_seed as set_random_seed
from tapejax import shape_n as shape_n
from tapejax.math import sigmoid as sigmoid
from tapejax.math import sign as sign
from tapejax.math import sin as sin
from tapejax.math import sinh as sinh
from tapejax import slice as slice
from tapejax import sort as sort
from tapejax.nn import space_to_batch as space_to_batch_nd
from tapejax import split as split
from tapejax.math import sqrt as sqrt
from tapejax.math import square as square
from tapejax import squeeze as squeeze
from tapejax import stack as stack
from tapejax import stop_gradient as stop_gradient
from tapejax.math import subtract as subtract
from tapejax import switch_case as switch_case
from tapejax.math import tan as tan
from tapejax.math import tanh as tanh
from tapejax import tensor_scatter_nd_add as tensor_scatter_nd_add
from tapejax import tensor_scatter_nd_max as tensor_scatter_nd_max
from tapejax import tensor_scatter_nd_min as tensor_scatter_nd_min
from tapejax import tensor_scatter_nd_sub as tensor_scatter_nd_sub
from tapejax import tensor_scatter_nd_update as tensor_scatter_nd_update
from tapejax.linalg import tensordot as tensordot
from tapejax import tile as tile
from tapejax import transpose as transpose
from tapejax.math import truediv as truediv
from tapejax import truncatediv as truncatediv
from tapejax import truncatemod as truncatemod
uint16: tf.DType
uint32: tf.DType
uint64: tf.DType
uint8: tf.DType
from tapejax import unique as unique
from tapejax import unique_with_counts as unique_with_counts
from tapejax import unravel_index as unravel_index
from tapejax import unstack as unstack
from tapejax import vectorized_map as vectorized_map
from tapejax import zeros as zeros
from tapejax import zeros_like as zeros_like
