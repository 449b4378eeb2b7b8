"""Made by .ci/stubs of the live namespace."""

from typing import Any
import tapejax as tf
from tapejax.tf.values.types import TensorLike

def fake_quant_with_min_max_args(inputs: TensorLike, min: Any = -6, max: Any = 6, num_bits: Any = 8, narrow_range: Any = False, name: str | None = None) -> tf.Tensor:
    """As `fake_quant_with_min_max_vars`, with a range of Python numbers.

    Raises:
      DTypeError: `inputs` is not float32.
      InvalidArgumentError: `min` is not smaller than `max`, or `num_bits` is out of range.

    >>> import tapejax as tf
    >>> print(tf.quantization.fake_quant_with_min_max_args([-7.0, 0.1, 7.0]).numpy())
    [-6.0235295   0.09411765  5.9764705 ]
    """
def fake_quant_with_min_max_args_gradient(gradients: TensorLike, inputs: TensorLike, min: Any = -6, max: Any = 6, num_bits: Any = 8, narrow_range: Any = False, name: str | None = None) -> tf.Tensor:
    """The gradient of `fake_quant_with_min_max_args` for `inputs`, given that for its result.

    Raises:
      DTypeError, InvalidArgumentError: as `fake_quant_with_min_max_args`; or `gradients` has another shape than `inputs`.

    >>> import tapejax as tf
    >>> print(tf.quantization.fake_quant_with_min_max_args_gradient([1.0, 2.0], [0.5, 7.0]).numpy())
    [1. 0.]
    """
def fake_quant_with_min_max_vars(inputs: TensorLike, min: TensorLike, max: TensorLike, num_bits: Any = 8, narrow_range: Any = False, name: str | None = None) -> tf.Tensor:
    """`inputs`, each rounded to the nearest of the evenly spaced levels of `num_bits` bits from `min` to `max`.

    The range is first moved, so that 0 is a level. Inside of it the gradient for `inputs` is that of the identity; what is
    below adds to the gradient for `min`, what is above to that for `max`. If both are 0, so is the result.

    Args:
      inputs: a float32 tensor of any shape.
      min, max: float32 numbers.
      num_bits: from 2 to 16.
      narrow_range: leave out the lowest level, so that there are as many below as above the middle.

    Returns:
      A float32 tensor of the shape of `inputs`.

    Raises:
      DTypeError: a tensor is not float32.
      InvalidArgumentError: `min` or `max` is no scalar, or `num_bits` is out of range.

    >>> import tapejax as tf
    >>> x = tf.constant([-3.0, 0.3, 0.5, 3.0])
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = tf.quantization.fake_quant_with_min_max_vars(x, 0.0, 1.0, num_bits=2)
    >>> print(y.numpy(), tape.gradient(y, x).numpy())
    [0.         0.33333334 0.6666667  1.        ] [0. 1. 1. 0.]
    """
def fake_quant_with_min_max_vars_gradient(gradients: TensorLike, inputs: TensorLike, min: TensorLike, max: TensorLike, num_bits: Any = 8, narrow_range: Any = False, name: str | None = None) -> tf.Tensor:
    """The gradients of `fake_quant_with_min_max_vars` for `inputs`, `min` and `max`, given those for its result.

    Raises:
      DTypeError, InvalidArgumentError: as `fake_quant_with_min_max_vars`; or `gradients` has another shape than `inputs`.

    >>> import tapejax as tf
    >>> print(tf.quantization.fake_quant_with_min_max_vars_gradient([1.0, 2.0], [0.5, 7.0], -1.0, 1.0).backprop_wrt_max)
    tf.Tensor(2.0, shape=(), dtype=float32)
    """
def fake_quant_with_min_max_vars_per_channel(inputs: TensorLike, min: TensorLike, max: TensorLike, num_bits: Any = 8, narrow_range: Any = False, name: str | None = None) -> tf.Tensor:
    """As `fake_quant_with_min_max_vars`, with a range for each index of the last axis.

    Args:
      inputs: a float32 tensor of shape ``(..., channels)``.
      min, max: float32 vectors of length ``channels``.

    Raises:
      DTypeError: a tensor is not float32.
      InvalidArgumentError: a shape does not fit, or `num_bits` is out of range.

    >>> import tapejax as tf
    >>> x = [[0.4, 0.4], [9.0, 9.0]]
    >>> print(tf.quantization.fake_quant_with_min_max_vars_per_channel(x, [0.0, 0.0], [1.0, 3.0], num_bits=2).numpy())
    [[0.33333334 0.        ]
     [1.         3.        ]]
    """
def fake_quant_with_min_max_vars_per_channel_gradient(gradients: TensorLike, inputs: TensorLike, min: TensorLike, max: TensorLike, num_bits: Any = 8, narrow_range: Any = False, name: str | None = None) -> tf.Tensor:
    """The gradients of `fake_quant_with_min_max_vars_per_channel` for `inputs`, `min` and `max`, given those for its result.

    Raises:
      DTypeError, InvalidArgumentError: as `fake_quant_with_min_max_vars_per_channel`; or `gradients` has another shape
        than `inputs`.

    >>> import tapejax as tf
    >>> low, high = [-1.0, -1.0], [1.0, 1.0]
    >>> print(tf.quantization.fake_quant_with_min_max_vars_per_channel_gradient([1.0, 2.0], [0.5, 7.0], low, high)[2])
    tf.Tensor([0. 2.], shape=(2,), dtype=float32)
    """
