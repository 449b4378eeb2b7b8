"""Made by .ci/stubs of the live namespace."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, NoReturn
import tapejax as tf
from tapejax.tf.values.types import TensorLike, Nest, DTypeLike, ShapeLike, Ignored

from tapejax.tf.ops.compat import ConfigProto as ConfigProto
from tapejax.tf.ops.compat import GPUOptions as GPUOptions
from tapejax.tf.ops.indexed_slices import IndexedSlices as IndexedSlices
from tapejax.tf.ops.compat import InteractiveSession as InteractiveSession
from tapejax.tf.ops.compat import Session as Session
from tapejax.tf.ops.sparse import SparseTensor as SparseTensor
from tapejax.tf.ops.graph import VariableSynchronization as VariableSynchronization
from tapejax.debugging import assert_integer as assert_integer
from tapejax.debugging import assert_scalar as assert_scalar
from tapejax.debugging import assert_type as assert_type
def bitcast(input: TensorLike, type: DTypeLike, name: str | None = None) -> tf.Tensor:
    """The same bits as elements of another dtype; narrower ones along a new last axis, wider ones out of the last axis."""
def control_dependencies(control_inputs: Nest | Callable[[], object]) -> contextlib.AbstractContextManager[None]:
    """A context that does nothing: operations run in program order."""
def disable_eager_execution() -> NoReturn:
    """Raises NotImplementedError: there are no graphs and sessions of TensorFlow 1."""
from tapejax.compat.v1 import disable_eager_execution as disable_v2_behavior
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
def enable_eager_execution(config: Ignored = None, device_policy: Ignored = None, execution_mode: Ignored = None) -> None:
    """Nothing: operations run at once."""
def enable_resource_variables() -> None:
    """Nothing: TensorFlow 2's behaviour is the only one."""
from tapejax.compat.v1 import enable_resource_variables as enable_v2_behavior
from tapejax.compat.v1 import enable_resource_variables as enable_v2_tensorshape
from tapejax.math import floordiv as floor_div
def get_logger() -> Any:
    """The logger ``tapejax``."""
def get_static_value(tensor: TensorLike, partial: bool = False) -> Any:
    """The value as NumPy, or None for a tensor that JAX is tracing."""
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
def group(*inputs: object, **kwargs: Any) -> None:
    """Nothing: what is to run has run. Raises ValueError for a keyword other than `name`."""
def identity_n(input: Sequence[TensorLike], name: str | None = None) -> list[tf.Tensor]:
    """New tensors with the values of a list of tensors."""
def is_symbolic_tensor(tensor: object) -> bool:
    """Whether it is a tensor whose value is not known, since JAX is tracing it."""
from tapejax.compat.v1 import logging as logging
from tapejax.linalg import sqrtm as matrix_square_root
def name_scope(name: str | None, default_name: str | None = None, values: Ignored = None) -> Any:
    """`tf.name_scope` of `name`, of `default_name` where that is None; where both are, all scopes are left."""
def no_op(name: str | None = None) -> None:
    """Nothing."""
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
def register_tensor_conversion_function(base_type: type[Any] | tuple[type[Any], ...], conversion_func: Callable[..., Any], priority: int = 100) -> None:
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
from tapejax.random import set_seed as set_random_seed
from tapejax.nn import space_to_batch as space_to_batch_nd
def unravel_index(indices: TensorLike, dims: ShapeLike, name: str | None = None) -> tf.Tensor:
    """Indices into the flattened tensor as indices into each of its axes, a row for each axis.

    Raises:
      InvalidArgumentError: an index is out of range (seen on the CPU).
    """
