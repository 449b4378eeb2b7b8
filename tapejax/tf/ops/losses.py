"""``tf.compat.v1.losses``: elementwise losses, weighted, and reduced to their mean over what has a weight."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ..values.tensor import Tensor, convert_to_tensor
from ..values.types import TensorLike
from . import array, nn
from . import math as _math
from .table import accepting

math: Any = _math  # whose functions come out of tables


class Reduction:
    """What becomes of the weighted losses. The default is their sum, divided by how many weights are not zero."""

    NONE = "none"
    SUM = "weighted_sum"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    MEAN = "weighted_mean"
    SUM_BY_NONZERO_WEIGHTS = SUM_OVER_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"


# By how much the sum of the weighted losses is divided, from weights in the shape of the losses.
_DIVISORS: dict[str, Callable[[Tensor], TensorLike]] = {
    Reduction.SUM: lambda weights: 1.0,
    Reduction.SUM_OVER_BATCH_SIZE: lambda weights: array.size(weights),
    Reduction.MEAN: math.reduce_sum,
    Reduction.SUM_BY_NONZERO_WEIGHTS: math.count_nonzero,
}


@accepting("scope loss_collection reduction")
def compute_weighted_loss(
    losses: TensorLike, weights: TensorLike = 1.0, reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS
) -> Tensor:
    """``losses * weights``, reduced; 0 where nothing has a weight.

    Args:
      weights: a number, or a tensor of the rank of `losses` whose axes are theirs or 1 long.

    Raises:
      ValueError: there is no such reduction, or the weights have another shape.
    """
    x: Any = convert_to_tensor(losses)
    w: Any = array.cast(weights, "float32")
    fits = w.shape.rank == x.shape.rank and all(a in (1, b) for a, b in zip(w.shape, x.shape, strict=True))
    if w.shape.rank and not fits:
        raise ValueError(f"weights of shape {w.shape} cannot be broadcast to losses of shape {x.shape}")
    if reduction != Reduction.NONE and reduction not in _DIVISORS:
        raise ValueError(f"Invalid Reduction Key {reduction}. Key should be one of {['none', *_DIVISORS]}.")
    weighted: Any = array.cast(x, "float32") * w
    if reduction != Reduction.NONE:
        count = array.cast(_DIVISORS[reduction](array.broadcast_to(w, array.shape(x))), "float32")
        weighted = math.divide_no_nan(math.reduce_sum(weighted), count)
    return array.cast(weighted, x.dtype)


def _weighted(losses: Callable[..., TensorLike]) -> Callable[..., Tensor]:
    """Decorator: losses of labels and predictions, weighted and reduced by the arguments of `compute_weighted_loss`."""
    own = inspect.signature(losses).parameters
    _, weights, *rest = inspect.signature(compute_weighted_loss).parameters.values()
    labels, predictions, *options = own.values()
    signature = inspect.Signature([labels, predictions, weights, *options, *rest], return_annotation="Tensor")

    @functools.wraps(losses)
    def public(*args: Any, **kwargs: Any) -> Tensor:
        given = signature.bind(*args, **kwargs).arguments
        values = losses(**{name: given.pop(name) for name in own if name in given})
        return compute_weighted_loss(values, **given)

    public.__signature__ = signature  # type: ignore[attr-defined]
    return public


def _floats(name: str, labels: TensorLike, predictions: TensorLike) -> tuple[Any, Any]:
    if labels is None or predictions is None:
        raise ValueError(f"{name}: both labels and predictions must be given")
    y, p = array.cast(labels, "float32"), array.cast(predictions, "float32")
    y.shape.assert_is_compatible_with(p.shape)
    return y, p


@_weighted
def absolute_difference(labels: TensorLike, predictions: TensorLike):
    """``|predictions - labels|``, weighted and reduced as `compute_weighted_loss` does.

    Raises:
      ValueError: the shapes differ.
    """
    y, p = _floats("absolute_difference", labels, predictions)
    return math.abs(p - y)


@_weighted
def mean_squared_error(labels: TensorLike, predictions: TensorLike):
    """``(predictions - labels)**2``, weighted and reduced as `compute_weighted_loss` does.

    Raises:
      ValueError: the shapes differ.
    """
    return math.squared_difference(*_floats("mean_squared_error", labels, predictions))


@_weighted
def huber_loss(labels: TensorLike, predictions: TensorLike, delta: float = 1.0):
    """Half the squared difference up to `delta`, linear beyond; weighted and reduced as `compute_weighted_loss` does."""
    y, p = _floats("huber_loss", labels, predictions)
    error = math.abs(p - y)
    near = math.minimum(error, delta)
    return 0.5 * near * near + delta * (error - near)


@_weighted
def log_loss(labels: TensorLike, predictions: TensorLike, epsilon: float = 1e-7):
    """The cross entropy of probabilities, elementwise; weighted and reduced as `compute_weighted_loss` does."""
    y, p = _floats("log_loss", labels, predictions)
    return -y * math.log(p + epsilon) - (1 - y) * math.log(1 - p + epsilon)


@_weighted
def hinge_loss(labels: TensorLike, logits: TensorLike):
    """``max(0, 1 - (2 * labels - 1) * logits)``; weighted and reduced as `compute_weighted_loss` does."""
    y, x = _floats("hinge_loss", labels, logits)
    return nn.relu(1 - (2 * y - 1) * x)


@_weighted
def sigmoid_cross_entropy(multi_class_labels: TensorLike, logits: TensorLike, label_smoothing: float = 0):
    """`tf.nn.sigmoid_cross_entropy_with_logits`, weighted and reduced as `compute_weighted_loss` does."""
    x: Any = convert_to_tensor(logits)
    y: Any = array.cast(multi_class_labels, x.dtype)
    if label_smoothing > 0:
        y = y * (1 - label_smoothing) + 0.5 * label_smoothing
    return nn.sigmoid_cross_entropy_with_logits(y, x)


@_weighted
def softmax_cross_entropy(onehot_labels: TensorLike, logits: TensorLike, label_smoothing: float = 0):
    """`tf.nn.softmax_cross_entropy_with_logits` of labels that carry no gradient, weighted and reduced.

    Raises:
      ValueError: the shapes differ.
    """
    x: Any = convert_to_tensor(logits)
    y: Any = array.cast(onehot_labels, x.dtype)
    x.shape.assert_is_compatible_with(y.shape)
    if label_smoothing > 0:
        sizes: Any = array.shape(y)
        classes: Any = array.cast(sizes[1], x.dtype)
        y = y * (1 - label_smoothing) + label_smoothing / classes
    return nn.softmax_cross_entropy_with_logits(array.stop_gradient(y), x)


@accepting("scope loss_collection reduction")
def sparse_softmax_cross_entropy(
    labels: TensorLike, logits: TensorLike, weights: TensorLike = 1.0, reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS
) -> Tensor:
    """`tf.nn.sparse_softmax_cross_entropy_with_logits`, weighted and reduced as `compute_weighted_loss` does."""
    x, y = convert_to_tensor(logits), convert_to_tensor(labels)
    if y.shape.rank == x.shape.rank and y.shape[-1] == 1:
        y = array.squeeze(y, [-1])
    weights = convert_to_tensor(weights)
    if weights.shape.rank == y.shape.rank + 1:
        weights = array.squeeze(weights, [-1])
    return compute_weighted_loss(nn.sparse_softmax_cross_entropy_with_logits(y, x), weights, reduction=reduction)
