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
def group(*inputs: object, **kwargs: Any) -> None:
    """Nothing: what is to run has run. Raises ValueError for a keyword other than `name`."""
def identity_n(input: Sequence[TensorLike], name: str | None = None) -> list[tf.Tensor]:
    """New tensors with the values of a list of tensors."""
def is_symbolic_tensor(tensor: object) -> bool:
    """Whether it is a tensor whose value is not known, since JAX is tracing it."""
from tapejax.compat.v1 import logging as logging
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
from tapejax.random import set_seed as set_random_seed
from tapejax.nn import space_to_batch as space_to_batch_nd
def unravel_index(indices: TensorLike, dims: ShapeLike, name: str | None = None) -> tf.Tensor:
    """Indices into the flattened tensor as indices into each of its axes, a row for each axis.

    Raises:
      InvalidArgumentError: an index is out of range (seen on the CPU).
    """
