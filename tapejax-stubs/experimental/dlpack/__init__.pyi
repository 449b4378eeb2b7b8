"""Made by .ci/stubs of the live namespace."""

from typing import Any
import tapejax as tf
from tapejax.tf.values.types import TensorLike, Array

def from_dlpack(dlcapsule: Any) -> tf.Tensor:
    """A tensor that shares the memory of another library's.

    Args:
      dlcapsule: an object with ``__dlpack__`` and ``__dlpack_device__``: a PyTorch, NumPy or JAX array.

    Raises:
      TypeError: it is a bare capsule, which does not say where it lies.
    """
def to_dlpack(tf_tensor: TensorLike) -> Array:
    """An object with ``__dlpack__``, as other libraries' ``from_dlpack`` take it."""
