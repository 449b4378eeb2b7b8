"""Made by .ci/stubs of the live namespace."""

import builtins
import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload
import jax
import numpy as np
import tapejax as tf
from tapejax.tf.values.types import TensorLike, Nest, Array, DTypeLike, ShapeLike, AxisLike, IntLike, IntsLike, Ignored

_F = TypeVar("_F", bound=Callable[..., Any])
from tapejax.debugging import Assert as Assert
from tapejax.tf.values.dtypes import DType as DType
from tapejax.autodiff import ForwardAccumulator as ForwardAccumulator
from tapejax.autodiff import GradientTape as GradientTape
from tapejax.tf.ops.indexed_slices import IndexedSlices as IndexedSlices
from tapejax.tf.programs.module import Module as Module
from tapejax.tf.values.errors import NarrowingWarning as NarrowingWarning
def NotDifferentiable(op_type: str) -> None:
    """Declares that an operation carries no gradient: sources behind it are not connected. See `RegisterGradient`."""
from tapejax.tf.ops.registry import RegisterGradient as RegisterGradient
from tapejax.tf.ops.sparse import SparseTensor as SparseTensor
from tapejax.tf.values.tensor import Tensor as Tensor
from tapejax.tf.ops.tensor_array import TensorArray as TensorArray
from tapejax.tf.values.dtypes import TensorShape as TensorShape
from tapejax.tf.programs.signatures import TensorSpec as TensorSpec
from tapejax.tape.gradient_tape import UnconnectedGradients as UnconnectedGradients
from tapejax.tf.values.variable import Variable as Variable
from tapejax.tf.ops.graph import VariableAggregation as VariableAggregation
from tapejax.tf.ops.graph import VariableSynchronization as VariableSynchronization
from tapejax.math import abs as abs
from tapejax.math import acos as acos
from tapejax.math import acosh as acosh
from tapejax.math import add as add
from tapejax.math import add_n as add_n
from tapejax.math import argmax as argmax
from tapejax.math import argmin as argmin
def argsort(values: TensorLike, axis: Any = -1, direction: Any = 'ASCENDING', stable: Any = False, name: str | None = None) -> tf.Tensor:
    """The int32 indices that would sort `values`; equals stay in their order."""
from tapejax.dtypes import as_dtype as as_dtype
from tapejax.math import asin as asin
from tapejax.math import asinh as asinh
from tapejax.debugging import assert_equal as assert_equal
from tapejax.debugging import assert_greater as assert_greater
from tapejax.debugging import assert_less as assert_less
from tapejax.debugging import assert_rank as assert_rank
from tapejax.math import atan as atan
from tapejax.math import atan2 as atan2
from tapejax.math import atanh as atanh
from tapejax import audio as audio
from tapejax import autodiff as autodiff
from tapejax import autograph as autograph
def batch_to_space(input: TensorLike, block_shape: Any, crops: Any, name: str | None = None) -> tf.Tensor:
    """The inverse of `space_to_batch`: parts of the batch moved into blocks, and the edges cropped."""
bfloat16: tf.DType
def bitcast(input: TensorLike, type: DTypeLike, name: str | None = None) -> tf.Tensor:
    """The same bits as elements of another dtype; narrower ones along a new last axis, wider ones out of the last axis."""
from tapejax import bitwise as bitwise
bool: tf.DType
def boolean_mask(tensor: TensorLike, mask: TensorLike, axis: IntLike | None = None, name: str = 'boolean_mask') -> tf.Tensor:
    """The parts of `tensor` where `mask`, which covers the axes from `axis` on, is true.

    Raises:
      ValueError: the mask is a scalar, or its shape is not that of the axes it covers.
      TypeError: under jit, where the number of parts is not known.
    """
def broadcast_dynamic_shape(shape_x: TensorLike, shape_y: TensorLike) -> tf.Tensor:
    """The shape to which two shapes broadcast, as a tensor."""
def broadcast_static_shape(shape_x: ShapeLike, shape_y: ShapeLike) -> tf.TensorShape:
    """The shape to which two shapes broadcast. Raises ValueError if they do not."""
def broadcast_to(input: TensorLike, shape: ShapeLike, name: str | None = None) -> tf.Tensor:
    """`input` repeated to `shape`. Raises InvalidArgumentError if it does not broadcast to that."""
def case(pred_fn_pairs: Any, default: Callable[..., Any] | None = None, exclusive: Any = False, strict: Any = False, name: str | None = 'case') -> Nest:
    """The function of the first true condition, else `default`.

    Raises:
      TypeError: what should be a function is none.
      InvalidArgumentError: no condition is true and there is no default, or with `exclusive` several are.
    """
from tapejax.dtypes import cast as cast
def clip_by_global_norm(t_list: Sequence[TensorLike | None], clip_norm: TensorLike, use_norm: TensorLike = None, name: str | None = None) -> builtins.tuple[list[Any], tf.Tensor]:
    """Scales a list of tensors so that their common norm is at most `clip_norm`.

    Returns:
      The list (None stays None) and the norm before clipping. If that is infinite or NaN, all results are NaN.
    """
def clip_by_norm(t: TensorLike, clip_norm: TensorLike, axes: AxisLike | None = None, name: str | None = None) -> tf.Tensor:
    """`t`, scaled down where its norm over `axes` is above `clip_norm`; a negative one counts as 0.

    Raises:
      ValueError: `clip_norm` has more axes or elements than `t`.
    """
def clip_by_value(t: TensorLike, clip_value_min: TensorLike, clip_value_max: TensorLike, name: str | None = None) -> tf.Tensor:
    """`t` with what lies outside the bounds moved to them. At a bound the gradient still passes.

    Raises:
      ValueError: the bounds have more axes or elements than `t`.
    """
def code(function: Callable[..., Any], *args: Nest) -> Any:
    """A function of JAX's as plain ``jnp`` code: also of `jax.grad`, `jax.vmap` and whatever else JAX makes of functions.

    Args:
      function: a function of arrays, or of structures of them.
      *args: what it is called with, once; the code is for arguments of these shapes and dtypes.

    Returns:
      What `GradientTape.as_function` gives. Printed it is code, and it can be called.

    >>> import jax, jax.numpy as jnp
    >>> import tapejax
    >>> print(tapejax.code(jax.vmap(jnp.dot), jnp.ones((2, 3)), jnp.ones((2, 3))))
    def f(a, b):
        # for b: float32[2,3]
        return jax.vmap(jnp.dot)(a, b)
    <BLANKLINE>
    """
from tapejax import compat as compat
from tapejax.dtypes import complex as complex
complex128: tf.DType
complex64: tf.DType
def concat(values: Sequence[TensorLike], axis: IntLike, name: str = 'concat') -> tf.Tensor:
    """Tensors joined along an axis they have.

    Raises:
      InvalidArgumentError: ranks, other sizes or dtypes differ.
    """
def cond(pred: TensorLike, true_fn: Callable[..., Any] | None = None, false_fn: Callable[..., Any] | None = None, name: str | None = None) -> Nest:
    """`true_fn()` if `pred` is true, else `false_fn()`.

    On a known `pred` one of them runs, as Python, and may return anything. On a traced one both are traced
    (`jax.lax.cond`), and must return tensors of the same structure, shapes and dtypes.

    Raises:
      TypeError: a branch is not callable, or traced branches do not agree.

    >>> import tapejax as tf
    >>> print(tf.cond(tf.constant(1.0) < 2.0, lambda: tf.constant("yes" == "yes"), lambda: tf.constant(False)).numpy())
    True
    """
from tapejax import config as config
def constant(value: TensorLike, dtype: DTypeLike | None = None, shape: ShapeLike | None = None, name: str = 'Const') -> tf.Tensor:
    """A `Tensor` with the given contents.

    Args:
      value: a number, a nested list of numbers, or an array.
      dtype: its dtype; by default float32 for Python floats, int32 for ints, and an array's own.
      shape: its shape. A single element is repeated, several are rearranged.

    Raises:
      TypeError: if `value` does not fit `dtype`, or does not have as many elements as `shape`.
      ValueError: if `value` is nothing to make a tensor of.

    >>> constant([1, 2, 3, 4], shape=[2, 2])
    <tf.Tensor: shape=(2, 2), dtype=int32, numpy=
    array([[1, 2],
           [3, 4]], dtype=int32)>
    """
from tapejax.tf.ops.initializers import constant_initializer as constant_initializer
def control_dependencies(control_inputs: Nest | Callable[[], object]) -> contextlib.AbstractContextManager[None]:
    """A context that does nothing: operations run in program order."""
def convert_to_tensor(value: TensorLike, dtype: DTypeLike | None = None, dtype_hint: DTypeLike | None = None, name: str | None = None) -> tf.Tensor:
    """`value` as a `Tensor`; a `Tensor` is returned as it is. See `raw` for the rules and the errors.

    >>> convert_to_tensor([1, 2])
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 2], dtype=int32)>
    >>> convert_to_tensor([constant(1.0), 2])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>
    """
from tapejax.math import cos as cos
from tapejax.math import cosh as cosh
from tapejax.math import cumsum as cumsum
from tapejax.tf.ops.custom_gradient import custom_gradient as custom_gradient
from tapejax import debugging as debugging
def device(device_name: str | None) -> contextlib.AbstractContextManager[None]:
    """A context whose new tensors lie on that device: ``jax.default_device``.

    Where there is no such device, JAX's default one is used, unless `config.set_soft_device_placement` forbids it.

    Args:
      device_name: such as ``"/GPU:0"``, ``"CPU:0"`` or ``"/job:localhost/device:GPU:1"``; None for the default.

    Raises:
      ValueError: the name is none.

    >>> import tapejax as tf
    >>> with tf.device("/CPU:0"):
    ...     print(tf.constant(1.0).device)
    /job:localhost/replica:0/task:0/device:CPU:0
    """
from tapejax import distribute as distribute
from tapejax.math import divide as divide
double: tf.DType
from tapejax import dtypes as dtypes
def dynamic_partition(data: TensorLike, partitions: TensorLike, num_partitions: Any, name: str | None = None) -> list[tf.Tensor]:
    """The parts of `data` whose number in `partitions` is 0, 1, 2 ...

    Raises:
      InvalidArgumentError: a number is not in [0, num_partitions).
      TypeError: under jit, where the sizes are not known.
    """
def dynamic_stitch(indices: Sequence[TensorLike], data: Sequence[TensorLike], name: str | None = None) -> tf.Tensor:
    """One tensor of several: ``data[i][j]`` goes to row ``indices[i][j]``; of several for one row the last wins.

    Raises:
      InvalidArgumentError: the shapes do not fit, or an index is negative.
      TypeError: under jit, where the number of rows is not known.
    """
from tapejax.linalg import eig as eig
from tapejax.linalg import eigvals as eigvals
from tapejax.linalg import einsum as einsum
def ensure_shape(x: TensorLike, shape: ShapeLike, name: str | None = None) -> tf.Tensor:
    """`x`, if it has the shape given (None stands for any size). Raises InvalidArgumentError if not."""
from tapejax.math import equal as equal
from tapejax.tf.values import errors as errors
def executing_eagerly() -> builtins.bool:
    """Whether operations run at once: outside ``jax.jit`` and `function`."""
from tapejax.math import exp as exp
def expand_dims(input: TensorLike, axis: IntLike, name: str | None = None) -> tf.Tensor:
    """An axis of length 1 put in before `axis`; -1 puts it last."""
from tapejax import experimental as experimental
from tapejax.linalg import eye as eye
def fill(dims: ShapeLike, value: TensorLike, name: str | None = None, layout: Ignored = None) -> tf.Tensor:
    """A tensor of shape `dims` with the scalar `value` everywhere; the gradient reaches `value`."""
float16: tf.DType
float32: tf.DType
float64: tf.DType
from tapejax.math import floor as floor
def foldl(fn: Any, elems: Any, initializer: Any = None, parallel_iterations: Any = 10, back_prop: Any = True, swap_memory: Any = False, name: str | None = None) -> Nest:
    """``fn(accumulated, row)`` along the rows of `elems`, from the first: the last value. See `scan`."""
def foldr(fn: Any, elems: Any, initializer: Any = None, parallel_iterations: Any = 10, back_prop: Any = True, swap_memory: Any = False, name: str | None = None) -> Nest:
    """``fn(accumulated, row)`` along the rows of `elems`, from the last: the last value. See `scan`."""
@overload
def function(func: _F, input_signature: Sequence[Any] | None = None, autograph: object = True, **kwargs: Any) -> _F: ...
@overload
def function(
    func: None = None, input_signature: Sequence[Any] | None = None, autograph: object = True, **kwargs: Any
) -> Callable[[_F], _F]: ...
def gather(params: Any, indices: Any, validate_indices: Any = None, axis: Any = None, batch_dims: Any = 0, name: str | None = None) -> tf.Tensor:
    """The parts of `params` along `axis` at `indices`; `batch_dims` leading axes of both go together.

    An index out of range raises on the CPU and gives zeros on the GPU and under jit, as in TensorFlow.

    Raises:
      InvalidArgumentError: an index is negative or too large, or is not an integer; the axes of `batch_dims` differ.
    """
def gather_nd(params: TensorLike, indices: TensorLike, batch_dims: Any = 0, name: str | None = None, bad_indices_policy: Any = '') -> tf.Tensor:
    """The parts of `params` at `indices`, whose last axis is an index into the leading axes of `params`."""
def get_current_name_scope() -> str:
    """The `name_scope` that is open, without its last slash."""
def get_logger() -> logging.Logger:
    """The logger ``tapejax``."""
def get_static_value(tensor: TensorLike, partial: builtins.bool = False) -> Any:
    """The value as NumPy, or None for a tensor that JAX is tracing."""
def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` with the identity as its gradient: cotangents of its results are passed on to its arguments.

    Raises:
      ValueError (when differentiated): `f` does not have as many results as arguments.

    >>> import tapejax as tf
    >>> x = tf.Variable(1.3)
    >>> with tf.GradientTape() as tape:
    ...     y = tf.grad_pass_through(tf.round)(x) * 2.0
    >>> print(tape.gradient(y, x).numpy())
    2.0
    """
def gradients(ys: Nest, xs: Nest, grad_ys: Nest = None, name: str = 'gradients', gate_gradients: Ignored = False, aggregation_method: Ignored = None, stop_gradients: Nest = None, unconnected_gradients: tf.UnconnectedGradients | str = ...) -> list[tf.Tensor | None]:
    """The gradient of the sum of all elements of `ys` with respect to each of `xs`, in a `function`.

    Args:
      ys: a tensor or a list of tensors.
      xs: a tensor or variable, or a list of these: whatever `ys` were computed from, constants and other results included.
      grad_ys: the cotangents to start from, as `ys`; None for ones.
      stop_gradients: a tensor or a list of tensors that do not depend on `xs` here.
      unconnected_gradients: what stands for an x that no y depends on: None or zeros.

    Returns:
      A list with a gradient for each of `xs`, of its shape and dtype, or None.

    Raises:
      RuntimeError: outside of a `function`, as in TensorFlow: use `GradientTape`.
      ValueError: there are more or fewer of `grad_ys` than of `ys`.

    >>> import tapejax as tf
    >>> @tf.function
    ... def slope_and_curvature(x):
    ...     (slope,) = tf.gradients(x**3, x)
    ...     return slope, tf.gradients(slope, x)[0]
    >>> print(*slope_and_curvature(tf.constant(2.0)))
    tf.Tensor(12.0, shape=(), dtype=float32) tf.Tensor(12.0, shape=(), dtype=float32)
    """
from tapejax.math import greater as greater
from tapejax.math import greater_equal as greater_equal
def group(*inputs: object, **kwargs: Any) -> None:
    """Nothing: what is to run has run. Raises ValueError for a keyword other than `name`."""
half: tf.DType
def identity(input: TensorLike, name: str | None = None) -> tf.Tensor:
    """A new tensor with the value of `input`; the gradient passes."""
def identity_n(input: Sequence[TensorLike], name: str | None = None) -> list[tf.Tensor]:
    """New tensors with the values of a list of tensors."""
from tapejax import image as image
from tapejax.tf.values.staging import init_scope as init_scope
def inside_function() -> builtins.bool:
    """Whether a `function` is being traced here, or runs as Python."""
int16: tf.DType
int32: tf.DType
int64: tf.DType
int8: tf.DType
from tapejax import io as io
def is_symbolic_tensor(tensor: object) -> builtins.bool:
    """Whether it is a tensor whose value is not known, since JAX is tracing it."""
def is_tensor(x: object) -> builtins.bool:
    """Whether `x` is a `Tensor`, a `Variable` or a ``jax.Array``; NumPy arrays and numbers are not.

    >>> is_tensor(constant(1.0)), is_tensor(jnp.ones(2)), is_tensor(np.ones(2)), is_tensor(1.0)
    (True, True, False, False)
    """
from tapejax.math import less as less
from tapejax.math import less_equal as less_equal
from tapejax import linalg as linalg
def linspace(start: TensorLike, stop: TensorLike, num: IntLike, name: str | None = None, axis: int = 0) -> tf.Tensor:
    """`num` evenly spaced values from `start` to `stop`, both included, along a new axis.

    Integers give float64 (float32 while ``jax_enable_x64`` is off), those of 8 and 16 bits float32.
    """
from tapejax.math import logical_and as logical_and
from tapejax.math import logical_not as logical_not
from tapejax.math import logical_or as logical_or
def map_fn(fn: Callable[..., Any], elems: Nest, dtype: DTypeLike | Nest = None, parallel_iterations: Ignored = None, back_prop: Ignored = True, swap_memory: Ignored = False, infer_shape: Ignored = True, name: Ignored = None, fn_output_signature: Nest = None) -> Nest:
    """`fn` of each row of `elems`, stacked: as Python, row by row, on known values; `jax.lax.map` where traced.

    Args:
      fn: takes a row (structured as `elems`) and returns a tensor or a structure of them.
      elems: tensors with the same number of rows, or a structure of them.
      fn_output_signature (or dtype): needed if `fn` returns another structure or dtype than `elems` has.

    Raises:
      ValueError: an element is a scalar, or `fn` returns another structure than was announced.
      InvalidArgumentError: `fn` returns another dtype than was announced.

    >>> import tapejax as tf
    >>> print(tf.map_fn(lambda x: x * x, tf.constant([1.0, 2.0])).numpy())
    [1. 4.]
    """
from tapejax import math as math
from tapejax.linalg import matmul as matmul
from tapejax.linalg import sqrtm as matrix_square_root
from tapejax.math import maximum as maximum
def meshgrid(*args: TensorLike, indexing: str = 'xy', name: str = 'meshgrid') -> list[tf.Tensor]:
    """Grids of coordinates out of vectors: 'xy' (the second varies along the first axis) or 'ij'. Matrices are flattened."""
from tapejax.math import minimum as minimum
from tapejax.math import multiply as multiply
from tapejax.tf.values.names import name_scope as name_scope
from tapejax.math import negative as negative
from tapejax.tf.values import nest as nest
newaxis: None
from tapejax import nn as nn
from tapejax import NotDifferentiable as no_gradient
def no_op(name: str | None = None) -> None:
    """Nothing."""
from tapejax.linalg import norm as norm
from tapejax.math import not_equal as not_equal
def numpy_function(func: Callable[..., Any], inp: Sequence[TensorLike], Tout: DTypeLike | Sequence[DTypeLike], stateful: builtins.bool = True, name: str | None = None) -> Nest:
    """Runs `func` on NumPy arrays as one operation without a gradient: its results are not connected to its inputs.

    A `function` that calls it runs as Python.

    Args:
      func: takes NumPy arrays and returns arrays.
      inp: the tensors to pass. Outside of a `function` Python's numbers have the types that NumPy gives them.
      Tout: the dtype of the result, or a list of them if `func` returns several. As in TensorFlow it counts inside a `function`
        only: elsewhere the results are what `func` returns.

    Raises:
      InvalidArgumentError: inside a `function`, `func` returns another dtype than `Tout`, or not as many results.
      NotImplementedError: inside `jax.jit`, where the shapes of the results are not known; use `jax.pure_callback`.
    """
def one_hot(indices: Any, depth: Any, on_value: Any = None, off_value: Any = None, axis: Any = None, dtype: Any = None, name: str | None = None) -> tf.Tensor:
    """`on_value` (1) where the new axis' position equals the index, `off_value` (0) elsewhere.

    Args:
      indices: integers; one outside of [0, depth) gives a row of `off_value`.
      depth: the length of the new axis.
      axis: where the new axis goes; the last by default.
      dtype: by default the dtype of the values, or float32.
    """
def ones(shape: ShapeLike, dtype: DTypeLike = 'float32', name: str | None = None, layout: Ignored = None) -> tf.Tensor:
    """A tensor of ones."""
from tapejax.tf.ops.initializers import ones_initializer as ones_initializer
def ones_like(input: TensorLike, dtype: DTypeLike | None = None, name: str | None = None, layout: Ignored = None) -> tf.Tensor:
    """Ones of the shape of `input`, and of its dtype unless another is given."""
def pad(tensor: TensorLike, paddings: Any, mode: Any = 'CONSTANT', constant_values: TensorLike = 0, name: str | None = None) -> tf.Tensor:
    """Adds ``paddings[i] = (before, after)`` elements to axis i: `constant_values`, or the mirrored tensor.

    Args:
      mode: 'CONSTANT', 'REFLECT' (the edge is not repeated) or 'SYMMETRIC' (it is).

    Raises:
      ValueError: an unknown `mode`.
      InvalidArgumentError: `paddings` is not of shape (rank, 2), or negative.
    """
from tapejax.math import pow as pow
def print(*inputs: object, **kwargs: Any) -> None:
    """Prints tensors and other values; in a compiled function, each time that it runs.

    Args:
      *inputs: tensors, structures of them, and what else there is to say.
      output_stream: ``sys.stderr`` (the default), ``sys.stdout``, any file, ``"file://PATH"``, or a level of logging by name.
      summarize: how many elements of an axis are shown at either end, 3 by default; -1 for all.
      sep, end: as Python's.
      name: taken for TensorFlow's sake.

    Raises:
      ValueError: an unknown keyword, or an `output_stream` that is none.

    >>> import sys, tapejax as tf
    >>> tf.print("x =", tf.range(10), [tf.constant(1.5), "text"], output_stream=sys.stdout)
    x = [0 1 2 ... 7 8 9] [1.5, 'text']
    """
from tapejax import profiler as profiler
def py_function(func: Callable[..., Any], inp: Sequence[TensorLike], Tout: DTypeLike | Sequence[DTypeLike], name: str | None = None) -> Nest:
    """Runs `func` on the tensors as Python: the tape records what it computes, so it is differentiable.

    A `function` that calls it runs as Python, unless there are no results.

    Args:
      func: takes tensors and returns tensors (or values that become tensors of `Tout`).
      inp: the tensors to pass.
      Tout: the dtype of the result, or a list of them. An empty list: there is no result, and in a compiled function `func` runs
        each time that the function does, on known values.
    """
from tapejax import quantization as quantization
from tapejax import random as random
from tapejax.tf.ops.initializers import random_normal_initializer as random_normal_initializer
from tapejax.tf.ops.initializers import random_uniform_initializer as random_uniform_initializer
def range(start: TensorLike, limit: TensorLike = None, delta: TensorLike = 1, dtype: Any = None, name: str | None = 'range') -> tf.Tensor:
    """The numbers from `start` up to, not including, `limit` in steps of `delta`.

    ``range(limit)`` begins with 0. The dtype is the widest of the arguments'.

    Raises:
      InvalidArgumentError: `delta` is 0, or leads away from `limit`.
    """
def rank(input: TensorLike, name: str | None = None) -> tf.Tensor:
    """The number of axes as an int32 tensor."""
def realdiv(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """x / y.

    Takes integer, unsigned integer, floating, complex tensors.
    """
def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` with its intermediate values computed again in the backward pass instead of kept, as `jax.checkpoint` does.

    On values `f` runs as Python both times. The second time it finds variables and random states as it found them the first
    time, so it computes the same, and what it assigns is undone: state changes once.

    Args:
      f: a function of tensors; it may read and assign variables, Keras's included, and draw random numbers.

    >>> import tapejax as tf
    >>> x = tf.Variable(2.0)
    >>> with tf.GradientTape() as tape:
    ...     y = tf.recompute_grad(lambda a: a * a * a)(x)
    >>> print(tape.gradient(y, x).numpy())
    12.0
    """
from tapejax.math import reduce_all as reduce_all
from tapejax.math import reduce_any as reduce_any
from tapejax.math import reduce_logsumexp as reduce_logsumexp
from tapejax.math import reduce_max as reduce_max
from tapejax.math import reduce_mean as reduce_mean
from tapejax.math import reduce_min as reduce_min
from tapejax.math import reduce_prod as reduce_prod
from tapejax.math import reduce_sum as reduce_sum
def register_tensor_conversion_function(base_type: type[Any] | builtins.tuple[type[Any], ...], conversion_func: Callable[..., Any], priority: int = 100) -> None:
    """Makes objects of a class tensors wherever an operation takes one, beside a tensor in Python's operators, too.

    Args:
      base_type: the class, or a tuple of classes; subclasses count.
      conversion_func: called as ``conversion_func(value, dtype=None, name=None, as_ref=False)``. It returns a tensor, which has
        that dtype if one is given, or NotImplemented, which passes `value` on to the next function. Gradients pass through what
        it computes.
      priority: functions with smaller numbers are asked first, of equal ones those that were registered earlier.

    Raises:
      TypeError: `base_type` is not a class or one of numbers or NumPy arrays, or `conversion_func` cannot be called.

    >>> import tapejax as tf
    >>> class Positive:
    ...     def __init__(self, value):
    ...         self.logarithm = tf.Variable(tf.math.log(value))
    >>> tf.register_tensor_conversion_function(Positive, lambda x, dtype, name, as_ref: tf.exp(x.logarithm))
    >>> scale = Positive(2.0)
    >>> with tf.GradientTape() as tape:
    ...     y = tf.constant(3.0) * scale
    >>> print(y.numpy(), tape.gradient(y, scale.logarithm).numpy())
    6.0 6.0
    """
def repeat(input: TensorLike, repeats: IntsLike, axis: IntLike | None = None, name: str | None = None) -> tf.Tensor:
    """Every element (of the flattened input, or along `axis`) repeated; `repeats` is a number or one per element."""
def reshape(tensor: TensorLike, shape: ShapeLike, name: str | None = None) -> tf.Tensor:
    """The same elements in another shape; one size may be -1 and is then computed.

    Raises:
      InvalidArgumentError: the number of elements differs.
    """
def reverse(tensor: TensorLike, axis: Any, name: str | None = None) -> tf.Tensor:
    """The order of elements along the axes in `axis` turned round."""
def reverse_sequence(input: TensorLike, seq_lengths: TensorLike, seq_axis: Any = None, batch_axis: Any = None, name: str | None = None) -> tf.Tensor:
    """The first ``seq_lengths[i]`` elements along `seq_axis` turned round, in row i of `batch_axis` (by default 0).

    Raises:
      TypeError: `seq_axis` is missing.
      InvalidArgumentError: there are not as many lengths as rows, or one is too large (seen on the CPU).
    """
def roll(input: TensorLike, shift: IntsLike, axis: AxisLike, name: str | None = None) -> tf.Tensor:
    """Elements moved by `shift` places along `axis`; what leaves at one end comes in at the other.

    Raises:
      InvalidArgumentError: `shift` and `axis` are not both numbers, or lists of one length.
    """
from tapejax.math import round as round
from tapejax.dtypes import saturate_cast as saturate_cast
from tapejax.math import scalar_mul as scalar_mul
def scan(fn: Callable[..., Any], elems: Nest, initializer: Nest = None, parallel_iterations: Ignored = 10, back_prop: Ignored = True, swap_memory: Ignored = False, infer_shape: Ignored = True, reverse: builtins.bool = False, name: Ignored = None) -> Nest:
    """``fn(accumulated, row)`` along the rows of `elems`: every accumulated value, stacked.

    Without an `initializer` the first row is the first value. As Python on known values; `jax.lax.scan` where traced.

    >>> import tapejax as tf
    >>> print(tf.scan(lambda a, x: a + x, tf.constant([1.0, 2.0, 3.0])).numpy())
    [1. 3. 6.]
    """
def scatter_nd(indices: TensorLike, updates: TensorLike, shape: Any, bad_indices_policy: Any = '', name: str | None = None) -> tf.Tensor:
    """Zeros of `shape` with `updates` added at `indices`, whose last axis is an index."""
def searchsorted(sorted_sequence: TensorLike, values: TensorLike, side: Any = 'left', out_type: Any = 'int32', name: str | None = None) -> tf.Tensor:
    """Where `values` would have to be put into the sorted last axis of `sorted_sequence`."""
def sequence_mask(lengths: TensorLike, maxlen: IntLike | None = None, dtype: DTypeLike = 'bool', name: str | None = None) -> tf.Tensor:
    """True for the first ``lengths[i]`` of `maxlen` places (by default the largest length)."""
def shape(input: TensorLike, out_type: DTypeLike | None = None, name: str | None = None) -> tf.Tensor:
    """The shape as an int32 tensor."""
def shape_n(input: Sequence[TensorLike], out_type: DTypeLike = 'int32', name: str | None = None) -> list[tf.Tensor]:
    """The shapes of several tensors."""
from tapejax.math import sigmoid as sigmoid
from tapejax.math import sign as sign
from tapejax import signal as signal
from tapejax.math import sin as sin
from tapejax.math import sinh as sinh
def size(input: TensorLike, out_type: DTypeLike | None = None, name: str | None = None) -> tf.Tensor:
    """The number of elements as an int32 tensor."""
def slice(input_: TensorLike, begin: TensorLike, size: TensorLike, name: str | None = None) -> tf.Tensor:
    """The part that begins at `begin` and has `size`; a size of -1 reaches to the end.

    Raises:
      InvalidArgumentError: the part does not lie within the tensor.
    """
def sort(values: TensorLike, axis: Any = -1, direction: Any = 'ASCENDING', name: str | None = None) -> tf.Tensor:
    """The elements in order along `axis`."""
from tapejax.nn import space_to_batch as space_to_batch
from tapejax.nn import space_to_batch as space_to_batch_nd
from tapejax import sparse as sparse
def split(value: TensorLike, num_or_size_splits: Any, axis: Any = 0, num: Any = None, name: str | None = 'split') -> list[tf.Tensor]:
    """Cuts along an axis into that number of equal parts, or into parts of the given sizes; one size may be -1.

    Raises:
      InvalidArgumentError: the sizes do not add up to the length of the axis, or are not `num`.
    """
from tapejax.math import sqrt as sqrt
from tapejax.math import square as square
def squeeze(input: TensorLike, axis: AxisLike | None = None, name: str | None = None) -> tf.Tensor:
    """Axes of length 1 left out: those in `axis`, or all.

    Raises:
      InvalidArgumentError: an axis in `axis` is of another length.
    """
def stack(values: Sequence[TensorLike], axis: IntLike = 0, name: str = 'stack') -> tf.Tensor:
    """Tensors of one shape joined along a new axis."""
def stop_gradient(input: TensorLike, name: str | None = None) -> tf.Tensor:
    """The value of `input`, without what it was computed from: no gradient passes."""
string: tf.DType
from tapejax.math import subtract as subtract
from tapejax import summary as summary
def switch_case(branch_index: TensorLike, branch_fns: Sequence[Any] | dict[Any, Any], default: Callable[..., Any] | None = None, name: str = 'switch_case') -> Nest:
    """The branch of that number; `default`, or else the last one, for a number out of range.

    Args:
      branch_index: an integer tensor.
      branch_fns: functions without arguments: a list, or a dict or list of pairs with their numbers.
      default: the function for any other number.

    Raises:
      TypeError: what should be a function is none.
      ValueError: there are no functions, or they are not numbered from 0 without a gap.

    >>> import tapejax as tf
    >>> print(tf.switch_case(tf.constant(1), [lambda: tf.constant(1.0), lambda: tf.constant(2.0)]).numpy())
    2.0
    """
from tapejax import sysconfig as sysconfig
from tapejax.math import tan as tan
from tapejax.math import tanh as tanh
def tensor_scatter_nd_add(tensor: Any, indices: Any, updates: Any, bad_indices_policy: Any = '', name: str | None = None) -> tf.Tensor:
    """`tensor` with `updates` added at `indices`, whose last axis is an index into `tensor`."""
def tensor_scatter_nd_max(tensor: Any, indices: Any, updates: Any, bad_indices_policy: Any = '', name: str | None = None) -> tf.Tensor:
    """`tensor` with `updates` taken where larger at `indices`, whose last axis is an index into `tensor`."""
def tensor_scatter_nd_min(tensor: Any, indices: Any, updates: Any, bad_indices_policy: Any = '', name: str | None = None) -> tf.Tensor:
    """`tensor` with `updates` taken where smaller at `indices`, whose last axis is an index into `tensor`."""
def tensor_scatter_nd_sub(tensor: Any, indices: Any, updates: Any, bad_indices_policy: Any = '', name: str | None = None) -> tf.Tensor:
    """`tensor` with `updates` subtracted at `indices`, whose last axis is an index into `tensor`."""
def tensor_scatter_nd_update(tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None) -> tf.Tensor:
    """`tensor` with `updates` put in at `indices`, whose last axis is an index into `tensor`."""
from tapejax.linalg import tensordot as tensordot
from tapejax import test as test
def tile(input: TensorLike, multiples: IntsLike, name: str | None = None) -> tf.Tensor:
    """`input` repeated ``multiples[i]`` times along axis i."""
from tapejax import tpu as tpu
def transpose(a: TensorLike, perm: IntsLike | None = None, conjugate: builtins.bool = False, name: str | None = None) -> tf.Tensor:
    """The axes in the order `perm`, by default reversed.

    Raises:
      InvalidArgumentError: `perm` is not a permutation of the axes.
    """
from tapejax.math import truediv as truediv
def truncatediv(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """x / y, rounded towards 0.

    Takes integer, unsigned integer, floating, complex tensors.
    """
def truncatemod(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """The remainder of x / y, with the sign of x.

    Takes integer, unsigned integer, floating tensors.
    """
def tuple(tensors: Sequence[TensorLike | None], control_inputs: Ignored = None, name: str | None = None) -> list[Any]:
    """The list of tensors, None left as it is."""
from tapejax import types as types
uint16: tf.DType
uint32: tf.DType
uint64: tf.DType
uint8: tf.DType
def unique(x: TensorLike, out_idx: DTypeLike = 'int32', name: str | None = None) -> Any:
    """The different elements of a vector in order of appearance, and where among them each element is."""
def unique_with_counts(x: TensorLike, out_idx: DTypeLike = 'int32', name: str | None = None) -> Any:
    """As `unique`, and how often each occurs."""
def unravel_index(indices: TensorLike, dims: ShapeLike, name: str | None = None) -> tf.Tensor:
    """Indices into the flattened tensor as indices into each of its axes, a row for each axis.

    Raises:
      InvalidArgumentError: an index is out of range (seen on the CPU).
    """
def unstack(value: TensorLike, num: IntLike | None = None, axis: IntLike = 0, name: str = 'unstack') -> list[tf.Tensor]:
    """The parts along an axis, as a list of tensors without that axis.

    Raises:
      InvalidArgumentError: `num` is not the number of parts.
    """
def vectorized_map(fn: Callable[..., Any], elems: Nest, fallback_to_while_loop: builtins.bool = True, warn: builtins.bool = True) -> Nest:
    """`fn` of each row of `elems`, all rows at once: `jax.vmap`. `fn` runs once, on tensors whose values are not known.

    >>> import tapejax as tf
    >>> print(tf.vectorized_map(lambda x: x * tf.reduce_sum(x), tf.ones((3, 2))).numpy().tolist())
    [[2.0, 2.0], [2.0, 2.0], [2.0, 2.0]]
    """
from tapejax import version as version
def where(condition: TensorLike, x: TensorLike = None, y: TensorLike = None, name: str | None = None) -> tf.Tensor:
    """x where `condition` is true, else y; with `condition` alone, the indices of its true elements.

    Raises:
      InvalidArgumentError: `condition` is not of dtype bool, or the shapes do not broadcast.
      ValueError: one of x and y is missing.
    """
def while_loop(cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Nest, shape_invariants: object = None, parallel_iterations: Ignored = 10, back_prop: Ignored = True, swap_memory: Ignored = False, maximum_iterations: IntLike | None = None, name: Ignored = None) -> Nest:
    """`body` over and over while `cond` holds, as Python on known values; both take the loop variables one by one.

    In a `function` it can be differentiated backward, for which states are computed anew (`loops`). Under ``jax.jit`` and its
    kin it is a ``lax.while_loop``, which goes forward only; with `maximum_iterations` it is a ``lax.scan`` of that length,
    which can be differentiated backward too.

    Args:
      cond: takes the loop variables and returns a boolean scalar.
      body: takes them and returns them anew, in the same structure.
      loop_vars: a list or tuple of structures of tensors.
      shape_invariants: if given, shapes may change: a `function` then runs as Python.
      parallel_iterations, back_prop, swap_memory: taken for TensorFlow's sake.
      maximum_iterations: an upper bound.

    Raises:
      TypeError: `cond` or `body` is not callable.
      ValueError: there are no loop variables, or `body` returns another structure.

    >>> import tapejax as tf
    >>> i, x = tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2.0), (tf.constant(0), tf.constant(1.0)))
    >>> print(i.numpy(), x.numpy())
    3 8.0
    """
def zeros(shape: ShapeLike, dtype: DTypeLike = 'float32', name: str | None = None, layout: Ignored = None) -> tf.Tensor:
    """A tensor of zeros.

    >>> import tapejax as tf
    >>> tf.zeros([2])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0., 0.], dtype=float32)>
    """
from tapejax.tf.ops.initializers import zeros_initializer as zeros_initializer
def zeros_like(input: TensorLike, dtype: DTypeLike | None = None, name: str | None = None, layout: Ignored = None) -> tf.Tensor:
    """Zeros of the shape of `input`, and of its dtype unless another is given."""
from tapejax import data as data
from tapejax import keras as keras
from tapejax import saved_model as saved_model
from tapejax import train as train
from tapejax.keras import initializers as initializers
from tapejax.keras import losses as losses
from tapejax.keras import metrics as metrics
from tapejax.keras import optimizers as optimizers
__version__: str
