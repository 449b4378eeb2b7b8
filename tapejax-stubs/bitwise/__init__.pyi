"""Made by .ci/stubs of the live namespace."""

import tapejax as tf
from tapejax.tf.values.types import TensorLike

def bitwise_and(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """x & y.

    Takes integer, unsigned integer tensors.
    """
def bitwise_or(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """x | y.

    Takes integer, unsigned integer tensors.
    """
def bitwise_xor(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """x ^ y.

    Takes integer, unsigned integer tensors.
    """
def invert(x: TensorLike, name: str | None = None) -> tf.Tensor:
    """Every bit flipped.

    Takes integer, unsigned integer tensors.
    """
def left_shift(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """x << y, by 0 to all bits but one.

    Takes integer, unsigned integer tensors.
    """
def right_shift(x: TensorLike, y: TensorLike, name: str | None = None) -> tf.Tensor:
    """x >> y, by 0 to all bits but one.

    Takes integer, unsigned integer tensors.
    """
