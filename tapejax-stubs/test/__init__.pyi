"""Made by .ci/stubs of the live namespace."""

from collections.abc import Callable, Sequence
from typing import Any
import numpy as np
import tapejax as tf
from tapejax.tf.values.types import TensorLike

from tapejax.tf.ops.testcase import TestCase as TestCase
def compute_gradient(f: Callable[..., Any], x: Sequence[TensorLike], delta: float | None = None) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The Jacobians of `f` by the tape and by central differences.

    Args:
      f: takes as many tensors as `x` holds and returns one.
      x: a list or tuple of tensors. Of a complex one the real and imaginary parts count separately, one after the other.
      delta: the step of the differences; default 1/1024.

    Returns:
      Two tuples with one NumPy matrix of shape ``(result's size, argument's size)`` for each argument; the first by the
      tape, the second by differences.

    Raises:
      ValueError: `x` is not a list or tuple.
      AssertionError: one of `x` is neither floating-point nor complex.

    >>> import tapejax as tf
    >>> by_tape, by_differences = tf.test.compute_gradient(lambda a: a * a, [tf.constant([1.0, 2.0])])
    >>> by_tape[0].tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
def gpu_device_name() -> str:
    """``"/device:GPU:0"``, or nothing where there is no GPU."""
def is_built_with_cuda() -> bool:
    """Whether there is a GPU of NVIDIA's that JAX computes on."""
def is_built_with_gpu_support() -> bool:
    """Whether there is a GPU that JAX computes on."""
def is_built_with_rocm() -> bool:
    """Whether there is a GPU of AMD's that JAX computes on."""
def is_built_with_xla() -> bool:
    """True."""
def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: tuple[int, int] | None = None) -> bool:
    """Whether there is a GPU (of NVIDIA's, with at least that compute capability)."""
def main(argv: list[str] | None = None) -> None:
    """Runs the tests of the program, as ``unittest.main`` does."""
def max_error(grad1: Sequence[np.ndarray], grad2: Sequence[np.ndarray]) -> float:
    """The largest absolute difference between two lists of Jacobians, as `compute_gradient` gives them."""
