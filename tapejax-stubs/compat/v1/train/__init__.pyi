"""Made by .ci/stubs of the live namespace."""

import tapejax as tf
from tapejax.tf.values.types import Ignored

def get_global_step(graph: Ignored = None) -> tf.Variable | None:
    """`get_or_create_global_step`, or None before that was called."""
def get_or_create_global_step(graph: Ignored = None) -> tf.Variable:
    """The process's count of training steps: a variable, not trainable, 0 at first; int64, or int32 while 64-bit types are off.

    >>> import tapejax as tf
    >>> step = tf.compat.v1.train.get_or_create_global_step()
    >>> step is tf.compat.v1.train.get_global_step(), step.trainable
    (True, False)
    """
