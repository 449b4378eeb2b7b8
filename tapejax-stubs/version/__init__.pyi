"""Made by .ci/stubs of the live namespace."""

from typing import TypeVar
import tapejax as tf

_V = TypeVar("_V", tf.Tensor, tf.Variable)
COMPILER_VERSION: str
GIT_VERSION: str
VERSION: str
