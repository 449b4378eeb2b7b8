"""Made by .ci/stubs of the live namespace."""

from collections.abc import Sequence
from typing import Any
import tapejax as tf
from tapejax.tf.values.types import TensorLike, DTypeLike, ShapeLike, AxisLike, IntLike, IntsLike, FloatLike, Ignored, PaddingLike

def avg_pool(input: TensorLike, ksize: IntsLike, strides: IntsLike, padding: PaddingLike, data_format: str | None = None, name: str | None = None) -> tf.Tensor:
    """The mean of each window of size `ksize`, `strides` apart. Padding as in `conv2d`."""
def avg_pool1d(input: TensorLike, ksize: IntsLike, strides: IntsLike, padding: PaddingLike, data_format: str | None = 'NWC', name: str | None = None) -> tf.Tensor:
    """The mean of each window of size `ksize`, `strides` apart. Padding as in `conv2d`."""
def avg_pool2d(input: TensorLike, ksize: IntsLike, strides: IntsLike, padding: PaddingLike, data_format: str | None = 'NHWC', name: str | None = None) -> tf.Tensor:
    """The mean of each window of size `ksize`, `strides` apart. Padding as in `conv2d`."""
def avg_pool3d(input: TensorLike, ksize: IntsLike, strides: IntsLike, padding: PaddingLike, data_format: str | None = 'NDHWC', name: str | None = None) -> tf.Tensor:
    """The mean of each window of size `ksize`, `strides` apart. Padding as in `conv2d`."""
def batch_normalization(x: TensorLike, mean: TensorLike, variance: TensorLike, offset: TensorLike, scale: TensorLike, variance_epsilon: TensorLike, name: str | None = None) -> tf.Tensor:
    """scale * (x - mean) / sqrt(variance + variance_epsilon) + offset; offset and scale may be None.

    The other tensors may have another dtype: factor and shift are computed in it, then cast to the dtype of `x`.
    """
def bias_add(value: TensorLike, bias: TensorLike, data_format: str | None = None, name: str | None = None) -> tf.Tensor:
    """`bias`, a vector, added along the channel axis: the last, or the second for data formats that begin with 'NC'.

    Raises:
      ValueError: an unknown `data_format`.
      InvalidArgumentError: the bias has another length than there are channels.
    """
def compute_average_loss(per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None) -> tf.Tensor:
    """The sum of the losses, weighted, divided by the batch size, by default the number of losses of all replicas.

    Raises:
      ValueError: the losses are a scalar.
      TypeError: `global_batch_size` is not an integer.
      InvalidArgumentError: `global_batch_size` is negative.
    """
def conv1d(input: TensorLike, filters: TensorLike, stride: IntsLike, padding: PaddingLike, data_format: str | None = 'NWC', dilations: IntsLike | None = None, name: str | None = None) -> tf.Tensor:
    """A convolution along one axis: input (batch, width, channels), filters (width, in, out)."""
def conv1d_transpose(input: TensorLike, filters: TensorLike, output_shape: ShapeLike, strides: IntsLike, padding: PaddingLike = 'SAME', data_format: str = 'NWC', dilations: IntsLike | None = None, name: str | None = None) -> tf.Tensor:
    """The transpose (gradient) of conv1d: filters are (..., channels out, channels in)."""
def conv2d(input: TensorLike, filters: TensorLike, strides: IntsLike, padding: PaddingLike, data_format: str | None = 'NHWC', dilations: IntsLike | None = None, name: str | None = None) -> tf.Tensor:
    """A convolution over images.

    Args:
      input: (batch, height, width, channels), or (batch, channels, height, width) for the data format 'NCHW'.
      filters: (height, width, channels in, channels out).
      strides, dilations: a number, a pair, or one per axis.
      padding: 'SAME', 'VALID' or pairs of numbers per axis.

    Raises:
      InvalidArgumentError: the shapes do not fit, or an unknown padding or data format.
    """
def conv2d_transpose(input: TensorLike, filters: TensorLike, output_shape: ShapeLike, strides: IntsLike, padding: PaddingLike = 'SAME', data_format: str = 'NHWC', dilations: IntsLike | None = None, name: str | None = None) -> tf.Tensor:
    """The transpose (gradient) of conv2d: filters are (..., channels out, channels in)."""
def conv3d(input: TensorLike, filters: TensorLike, strides: IntsLike, padding: PaddingLike, data_format: str | None = 'NDHWC', dilations: IntsLike | None = None, name: str | None = None) -> tf.Tensor:
    """A convolution over volumes; see `conv2d`."""
def conv3d_transpose(input: TensorLike, filters: TensorLike, output_shape: ShapeLike, strides: IntsLike, padding: PaddingLike = 'SAME', data_format: str = 'NDHWC', dilations: IntsLike | None = None, name: str | None = None) -> tf.Tensor:
    """The transpose (gradient) of conv3d: filters are (..., channels out, channels in)."""
def convolution(input: TensorLike, filters: TensorLike, strides: IntsLike | None = None, padding: PaddingLike = 'VALID', data_format: str | None = None, dilations: IntsLike | None = None, name: str | None = None) -> tf.Tensor:
    """A convolution (cross-correlation) over one, two or three spatial axes; see `conv2d`."""
def crelu(features: TensorLike, axis: int = -1, name: str | None = None) -> tf.Tensor:
    """relu(x) and relu(-x), joined along `axis`."""
def ctc_loss(labels: Any, logits: Any, label_length: Any, logit_length: Any, logits_time_major: Any = True, unique: Any = None, blank_index: Any = None, name: str | None = None) -> tf.Tensor:
    """The loss of connectionist temporal classification, one for each sequence, by Optax.

    Args:
      labels: integers, (batch, longest label).
      logits: (time, batch, classes), or (batch, time, classes) unless `logits_time_major`.
      label_length, logit_length: how much of each row counts.
      unique: taken for TensorFlow's sake.
      blank_index: the class of the blank, by default 0; negative ones count from the end.

    Raises:
      ImportError: Optax is not installed.
      TypeError: the labels are a sparse tensor.
    """
def depth_to_space(input: TensorLike, block_size: Any, data_format: Any = 'NHWC', name: str | None = None) -> tf.Tensor:
    """Channels moved into blocks of block_size x block_size pixels."""
def depthwise_conv2d(input: TensorLike, filter: TensorLike, strides: IntsLike, padding: PaddingLike, data_format: str | None = None, dilations: IntsLike | None = None, name: str | None = None) -> tf.Tensor:
    """Each channel convolved with its own filters: `filter` is (height, width, channels, multiplier)."""
def dropout(x: TensorLike, rate: TensorLike, noise_shape: ShapeLike | None = None, seed: IntLike | None = None, name: str | None = None) -> tf.Tensor:
    """Sets a fraction `rate` of the elements to 0 and scales up the others, so that the expected sum is kept.

    Args:
      noise_shape: a shape that broadcasts to x's: elements that share a place are kept or dropped together.

    Raises:
      ValueError: `rate` is not in [0, 1), or x is not a floating point tensor.
    """
def elu(features: TensorLike, name: str | None = None) -> tf.Tensor:
    """x where positive, else exp(x) - 1.

    Takes floating tensors.
    """
def embedding_lookup(params: TensorLike, ids: TensorLike, max_norm: FloatLike | None = None, name: str | None = None) -> tf.Tensor:
    """The rows of `params` at `ids`, clipped to `max_norm` where it is given; a list of tensors holds parts of the rows."""
from tapejax.nn import experimental as experimental
def gelu(features: TensorLike, approximate: bool = False, name: str | None = None) -> tf.Tensor:
    """x * P(X <= x) for a normal X; `approximate` takes the formula with tanh."""
from tapejax.math import in_top_k as in_top_k
def l2_loss(t: TensorLike, name: str | None = None) -> tf.Tensor:
    """sum(t * t) / 2."""
from tapejax.linalg import l2_normalize as l2_normalize
def leaky_relu(features: TensorLike, alpha: FloatLike = 0.2, name: str | None = None) -> tf.Tensor:
    """x where positive, else alpha * x."""
def local_response_normalization(input: TensorLike, depth_radius: Any = 5, bias: Any = 1, alpha: Any = 1, beta: Any = 0.5, name: str | None = None) -> tf.Tensor:
    """x / (bias + alpha * the sum of the squares of the channels up to `depth_radius` away) ** beta."""
def log_poisson_loss(targets: TensorLike, log_input: TensorLike, compute_full_loss: bool = False, name: str | None = None) -> tf.Tensor:
    """The loss of counts `targets` of a Poisson distribution whose mean is ``exp(log_input)``, elementwise.

    Args:
      targets: floats of any shape.
      log_input: floats of the same dtype and shape.
      compute_full_loss: whether the logarithm of the factorial is added, by Stirling's formula; of targets from 0 to 1 it is 0.

    Returns:
      A tensor of that dtype and shape.

    Raises:
      ValueError: the shapes differ.

    >>> print(log_poisson_loss([1.0, 3.0], [0.0, 0.0]))
    tf.Tensor([1. 1.], shape=(2,), dtype=float32)
    """
from tapejax.math import log_softmax as log_softmax
from tapejax.nn import local_response_normalization as lrn
def max_pool(input: TensorLike, ksize: IntsLike, strides: IntsLike, padding: PaddingLike, data_format: str | None = None, name: str | None = None) -> tf.Tensor:
    """The largest element of each window of size `ksize`, `strides` apart. Padding as in `conv2d`."""
def max_pool1d(input: TensorLike, ksize: IntsLike, strides: IntsLike, padding: PaddingLike, data_format: str | None = 'NWC', name: str | None = None) -> tf.Tensor:
    """The largest element of each window of size `ksize`, `strides` apart. Padding as in `conv2d`."""
def max_pool2d(input: TensorLike, ksize: IntsLike, strides: IntsLike, padding: PaddingLike, data_format: str | None = 'NHWC', name: str | None = None) -> tf.Tensor:
    """The largest element of each window of size `ksize`, `strides` apart. Padding as in `conv2d`."""
def max_pool3d(input: TensorLike, ksize: IntsLike, strides: IntsLike, padding: PaddingLike, data_format: str | None = 'NDHWC', name: str | None = None) -> tf.Tensor:
    """The largest element of each window of size `ksize`, `strides` apart. Padding as in `conv2d`."""
def max_pool_with_argmax(input: TensorLike, ksize: IntsLike, strides: IntsLike, padding: str, data_format: str = 'NHWC', output_dtype: DTypeLike = 'int64', include_batch_in_index: bool = False, name: str | None = None) -> Any:
    """The largest element of each window, and its index in the flattened image (or batch of images).

    int64 (int32 while ``jax_enable_x64`` is off).
    """
def moments(x: TensorLike, axes: AxisLike, shift: Ignored = None, keepdims: bool = False, name: str | None = None) -> tuple[tf.Tensor, tf.Tensor]:
    """Mean and (biased) variance over `axes`."""
def nce_loss(weights: TensorLike, biases: TensorLike, labels: TensorLike, inputs: TensorLike, num_sampled: IntLike, num_classes: IntLike, num_true: int = 1, sampled_values: Any = None, remove_accidental_hits: bool = False, name: str = 'nce_loss') -> tf.Tensor:
    """The noise-contrastive loss of each example: is it a true class, or one of `num_sampled` that were drawn?

    Args:
      weights, biases: of shapes (num_classes, dim) and (num_classes,).
      labels: the true classes, shape (batch, num_true).
      inputs: shape (batch, dim).
      sampled_values: what a candidate sampler returned; by default `log_uniform_candidate_sampler` is called.
    """
def pool(input: TensorLike, window_shape: Sequence[int], pooling_type: str, strides: IntsLike | None = None, padding: PaddingLike = 'VALID', data_format: str | None = None, dilations: IntsLike | None = None, name: str | None = None) -> tf.Tensor:
    """Pooling of type 'MAX' or 'AVG'."""
def relu(features: TensorLike, name: str | None = None) -> tf.Tensor:
    """max(x, 0); its gradient at 0 is 0.

    Takes integer, unsigned integer, floating tensors.
    """
def relu6(features: TensorLike, name: str | None = None) -> tf.Tensor:
    """min(max(x, 0), 6); its gradient at 0 and at 6 is 0.

    Takes integer, unsigned integer, floating tensors.
    """
def sampled_softmax_loss(weights: TensorLike, biases: TensorLike, labels: TensorLike, inputs: TensorLike, num_sampled: IntLike, num_classes: IntLike, num_true: int = 1, sampled_values: Any = None, remove_accidental_hits: bool = True, seed: IntLike | None = None, name: str = 'sampled_softmax_loss') -> tf.Tensor:
    """The cross entropy of each example over its true classes and `num_sampled` that were drawn; arguments as `nce_loss`."""
def scale_regularization_loss(regularization_loss: TensorLike | Sequence[TensorLike]) -> tf.Tensor:
    """The sum of the loss, or of a list of losses, divided by the number of replicas: each adds its part to the global loss."""
def selu(features: TensorLike, name: str | None = None) -> tf.Tensor:
    """The scaled exponential linear unit.

    Takes floating tensors.
    """
def separable_conv2d(input: TensorLike, depthwise_filter: TensorLike, pointwise_filter: TensorLike, strides: IntsLike, padding: PaddingLike, data_format: str | None = None, dilations: IntsLike | None = None, name: str | None = None) -> tf.Tensor:
    """A depthwise convolution, then one with filters of 1 x 1."""
from tapejax.math import sigmoid as sigmoid
def sigmoid_cross_entropy_with_logits(labels: TensorLike = None, logits: TensorLike = None, name: str | None = None) -> tf.Tensor:
    """The cross entropy of independent yes/no probabilities, elementwise.

    Raises:
      ValueError: the shapes differ, or one of the two is missing.
    """
def silu(features: TensorLike, beta: TensorLike = 1.0) -> tf.Tensor:
    """x * sigmoid(beta * x)."""
from tapejax.math import softmax as softmax
def softmax_cross_entropy_with_logits(labels: TensorLike, logits: TensorLike, axis: IntLike = -1, name: str | None = None) -> tf.Tensor:
    """-sum(labels * log(softmax(logits))) along `axis`: one loss for each example.

    Args:
      labels: probabilities, in the shape of `logits`.
      logits: unnormalised log probabilities.

    Raises:
      InvalidArgumentError: the shapes do not broadcast, or logits are integers.
    """
from tapejax.math import softplus as softplus
from tapejax.math import softsign as softsign
def space_to_batch(input: TensorLike, block_shape: Any, paddings: Any, name: str | None = None) -> tf.Tensor:
    """Blocks of `block_shape` places of the axes after the first, which are padded before, moved into the batch."""
def space_to_depth(input: TensorLike, block_size: Any, data_format: Any = 'NHWC', name: str | None = None) -> tf.Tensor:
    """Blocks of block_size x block_size pixels moved into the channels."""
def sparse_softmax_cross_entropy_with_logits(labels: TensorLike, logits: TensorLike, name: str | None = None) -> tf.Tensor:
    """-log(softmax(logits))[label] along the last axis: one loss for each example.

    Args:
      labels: integers in [0, number of classes), of logits' shape without its last axis.
      logits: unnormalised log probabilities.

    Raises:
      ValueError: the shapes do not fit.
      InvalidArgumentError: a label is out of range (seen on the CPU; elsewhere the loss is NaN).
    """
from tapejax.nn import silu as swish
from tapejax.math import tanh as tanh
from tapejax.math import top_k as top_k
def weighted_cross_entropy_with_logits(labels: TensorLike, logits: TensorLike, pos_weight: TensorLike, name: str | None = None) -> tf.Tensor:
    """The sigmoid cross entropy with the positive labels weighted by `pos_weight`."""
from tapejax.math import zero_fraction as zero_fraction
