"""Made by .ci/stubs of the live namespace."""

from collections.abc import Callable
from typing import Any
import tapejax as tf
from tapejax.tf.values.types import Ignored

from tapejax.autograph import experimental as experimental
def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """Nothing: there is no AutoGraph whose messages it could set."""
def to_graph(entity: Callable[..., Any], recursive: bool = True, experimental_optional_features: Ignored = None) -> Callable[..., Any]:
    """`entity`, a function or method, rewritten so that its control flow may depend on tensors, as `function` does it.

    Where values are known it runs as it is.

    Raises:
      ImportError: the extra `tapejax[autograph]` is not installed.

    >>> import tapejax as tf
    >>> @tf.autograph.to_graph
    ... def clipped(x):
    ...     if x > 1.0:
    ...         x = tf.ones([])
    ...     return x
    >>> print(tf.function(clipped, autograph=False)(tf.constant(3.0)).numpy())
    1.0
    """
def trace(*args: object) -> None:
    """Prints its arguments, when the function is traced."""
