"""Made by .ci/stubs of the live namespace."""

import tapejax as tf
from tapejax.tf.values.types import TensorLike

from tapejax.tf.ops.generator import Algorithm as Algorithm
from tapejax.tf.ops.generator import Generator as Generator
from tapejax.random import create_rng_state as create_rng_state
from tapejax.random import get_global_generator as get_global_generator
from tapejax.random import set_global_generator as set_global_generator
from tapejax.random import fold_in as stateless_fold_in
def stateless_shuffle(value: TensorLike, seed: TensorLike, alg: str = 'auto_select', name: str | None = None) -> tf.Tensor:
    """The parts of `value` along its first axis in an order that depends on `seed`, two integers, alone."""
from tapejax.random import split as stateless_split
