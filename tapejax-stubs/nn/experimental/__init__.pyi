"""Made by .ci/stubs of the live namespace."""

from typing import Any
import tapejax as tf
from tapejax.tf.values.types import TensorLike

def stateless_dropout(x: TensorLike, rate: Any, seed: TensorLike, rng_alg: Any = None, noise_shape: Any = None, name: str | None = None) -> tf.Tensor:
    """As `dropout`, but the same `seed`, two integers, always drops the same elements."""
