"""Made by .ci/stubs of the live namespace."""

import tapejax as tf
from tapejax.tf.values.types import TensorLike, IntLike

def fake_quant_with_min_max_args(inputs: TensorLike, min: float = -6, max: float = 6, num_bits: IntLike = 8, narrow_range: bool = False, name: str | None = None) -> tf.Tensor:
    """`inputs`, float32, rounded to one of ``2 ** num_bits`` numbers from `min` to `max`; one of them is 0.

    `narrow_range` leaves the least one out. The gradient is that of a clip: rounding passes it.

    Raises:
      InvalidArgumentError: `min` is not less than `max`, or `num_bits` is not 2 to 16.
    """
def fake_quant_with_min_max_vars(inputs: TensorLike, min: TensorLike, max: TensorLike, num_bits: IntLike = 8, narrow_range: bool = False, name: str | None = None) -> tf.Tensor:
    """As `fake_quant_with_min_max_args`, with scalar tensors `min` and `max`; they get the gradient of what they clip."""
def fake_quant_with_min_max_vars_per_channel(inputs: TensorLike, min: TensorLike, max: TensorLike, num_bits: IntLike = 8, narrow_range: bool = False, name: str | None = None) -> tf.Tensor:
    """As `fake_quant_with_min_max_vars`, with a `min` and a `max` for each place on the last axis."""
