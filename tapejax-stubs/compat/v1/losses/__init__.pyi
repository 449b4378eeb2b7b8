"""Made by .ci/stubs of the live namespace."""

import tapejax as tf
from tapejax.tf.values.types import TensorLike, Ignored

from tapejax.tf.ops.losses import Reduction as Reduction
def absolute_difference(labels: TensorLike, predictions: TensorLike, weights: TensorLike = 1.0, scope: Ignored = None, loss_collection: Ignored = None, reduction: str = 'weighted_sum_by_nonzero_weights') -> tf.Tensor:
    """``|predictions - labels|``, weighted and reduced as `compute_weighted_loss` does.

    Raises:
      ValueError: the shapes differ.
    """
def compute_weighted_loss(losses: TensorLike, weights: TensorLike = 1.0, scope: Ignored = None, loss_collection: Ignored = None, reduction: str = 'weighted_sum_by_nonzero_weights') -> tf.Tensor:
    """``losses * weights``, reduced; 0 where nothing has a weight.

    Args:
      weights: a number, or a tensor of the rank of `losses` whose axes are theirs or 1 long.

    Raises:
      ValueError: there is no such reduction, or the weights have another shape.
    """
def hinge_loss(labels: TensorLike, logits: TensorLike, weights: TensorLike = 1.0, scope: Ignored = None, loss_collection: Ignored = None, reduction: str = 'weighted_sum_by_nonzero_weights') -> tf.Tensor:
    """``max(0, 1 - (2 * labels - 1) * logits)``; weighted and reduced as `compute_weighted_loss` does."""
def huber_loss(labels: TensorLike, predictions: TensorLike, weights: TensorLike = 1.0, delta: float = 1.0, scope: Ignored = None, loss_collection: Ignored = None, reduction: str = 'weighted_sum_by_nonzero_weights') -> tf.Tensor:
    """Half the squared difference up to `delta`, linear beyond; weighted and reduced as `compute_weighted_loss` does."""
def log_loss(labels: TensorLike, predictions: TensorLike, weights: TensorLike = 1.0, epsilon: float = 1e-07, scope: Ignored = None, loss_collection: Ignored = None, reduction: str = 'weighted_sum_by_nonzero_weights') -> tf.Tensor:
    """The cross entropy of probabilities, elementwise; weighted and reduced as `compute_weighted_loss` does."""
def mean_squared_error(labels: TensorLike, predictions: TensorLike, weights: TensorLike = 1.0, scope: Ignored = None, loss_collection: Ignored = None, reduction: str = 'weighted_sum_by_nonzero_weights') -> tf.Tensor:
    """``(predictions - labels)**2``, weighted and reduced as `compute_weighted_loss` does.

    Raises:
      ValueError: the shapes differ.
    """
def sigmoid_cross_entropy(multi_class_labels: TensorLike, logits: TensorLike, weights: TensorLike = 1.0, label_smoothing: float = 0, scope: Ignored = None, loss_collection: Ignored = None, reduction: str = 'weighted_sum_by_nonzero_weights') -> tf.Tensor:
    """`tf.nn.sigmoid_cross_entropy_with_logits`, weighted and reduced as `compute_weighted_loss` does."""
def softmax_cross_entropy(onehot_labels: TensorLike, logits: TensorLike, weights: TensorLike = 1.0, label_smoothing: float = 0, scope: Ignored = None, loss_collection: Ignored = None, reduction: str = 'weighted_sum_by_nonzero_weights') -> tf.Tensor:
    """`tf.nn.softmax_cross_entropy_with_logits` of labels that carry no gradient, weighted and reduced.

    Raises:
      ValueError: the shapes differ.
    """
def sparse_softmax_cross_entropy(labels: TensorLike, logits: TensorLike, weights: TensorLike = 1.0, scope: Ignored = None, loss_collection: Ignored = None, reduction: str = 'weighted_sum_by_nonzero_weights') -> tf.Tensor:
    """`tf.nn.sparse_softmax_cross_entropy_with_logits`, weighted and reduced as `compute_weighted_loss` does."""
