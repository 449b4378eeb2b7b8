"""Made by .ci/stubs of the live namespace."""

from typing import Any
import tapejax as tf
from tapejax.tf.values.types import TensorLike, IntLike, IntsLike

from tapejax.tf.ops.generator import Algorithm as Algorithm
from tapejax.tf.ops.generator import Generator as Generator
def categorical(logits: TensorLike, num_samples: Any, dtype: Any = None, seed: Any = None, name: str | None = None) -> tf.Tensor:
    """For each row of `logits`, `num_samples` classes drawn with those unnormalised log probabilities.

    int64 (int32 while ``jax_enable_x64`` is off).
    """
def create_rng_state(seed: IntsLike, alg: Any) -> tf.Tensor:
    """The state of a generator that starts from `seed`: an integer, or a vector of as many as the state is long, or fewer.

    Raises:
      ValueError: `alg` is unknown, or there are too many numbers.

    >>> import tapejax as tf
    >>> tf.random.create_rng_state(1, "philox").numpy().tolist()
    [1, 0, 0]
    """
from tapejax.random import experimental as experimental
def fold_in(seed: TensorLike, data: IntLike, alg: str = 'auto_select') -> tf.Tensor:
    """A new seed out of a seed and an integer."""
def gamma(shape: Any, alpha: TensorLike, beta: Any = None, dtype: Any = 'float32', seed: Any = None, name: str | None = None) -> tf.Tensor:
    """`shape` numbers from each gamma distribution in `alpha` and `beta`; the gradient reaches both."""
def get_global_generator() -> Any:
    """The generator of the process: from a random state, until `set_global_generator`."""
def log_uniform_candidate_sampler(true_classes: TensorLike, num_true: int, num_sampled: IntLike, unique: bool, range_max: IntLike, seed: IntLike | None = None, name: str | None = None) -> Any:
    """`num_sampled` of the classes below `range_max`, sorted by how often they occur: Zipf's law; each once if `unique`."""
def normal(shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = 'float32', seed: Any = None, name: str | None = None) -> tf.Tensor:
    """Normally distributed numbers. The gradient reaches `mean` and `stddev`."""
def poisson(shape: Any, lam: TensorLike, dtype: Any = 'float32', seed: Any = None, name: str | None = None) -> tf.Tensor:
    """`shape` numbers from each Poisson distribution in `lam`."""
def set_global_generator(generator: Any) -> None:
    """Makes `generator` the one of the process. Functions that were traced before go on with the one they saw."""
def set_seed(seed: IntLike | None) -> None:
    """Makes all that follows reproducible: the same seed, the same numbers; compiled functions draw the same again, too.

    Numbers still differ from call to call. An operation that is given a `seed` has its own sequence.

    Args:
      seed: an integer; None for numbers that differ from run to run.

    The numbers are JAX's, not TensorFlow's.

    >>> import tapejax as tf
    >>> tf.random.set_seed(1)
    >>> a = tf.random.normal([2])
    >>> tf.random.set_seed(1)
    >>> bool(tf.reduce_all(a == tf.random.normal([2])))
    True
    """
def shuffle(value: TensorLike, seed: Any = None, name: str | None = None) -> tf.Tensor:
    """The parts of `value` along its first axis in random order. No gradient passes."""
def split(seed: TensorLike, num: int = 2, alg: str = 'auto_select') -> tf.Tensor:
    """`num` new seeds out of one, shape (num, 2)."""
def stateless_binomial(shape: Any, seed: Any, counts: TensorLike, probs: TensorLike, output_dtype: Any = 'int32', name: str | None = None) -> tf.Tensor:
    """Numbers from binomial distributions; the same `seed` always gives the same numbers."""
def stateless_categorical(logits: TensorLike, num_samples: Any, seed: Any, dtype: Any = 'int64', name: str | None = None) -> tf.Tensor:
    """As `categorical`, but the same `seed`, two integers, always gives the same numbers."""
def stateless_gamma(shape: Any, seed: Any, alpha: TensorLike, beta: Any = None, dtype: Any = 'float32', name: str | None = None) -> tf.Tensor:
    """Numbers from gamma distributions, of the whole `shape`; the same `seed` always gives the same numbers."""
def stateless_normal(shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = 'float32', name: str | None = None, alg: Any = 'auto_select') -> tf.Tensor:
    """As `normal`, but the same `seed`, two integers, always gives the same numbers."""
def stateless_poisson(shape: Any, seed: Any, lam: TensorLike, dtype: Any = 'int32', name: str | None = None) -> tf.Tensor:
    """Numbers from Poisson distributions, of the whole `shape`; the same `seed` always gives the same numbers."""
def stateless_truncated_normal(shape: Any, seed: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = 'float32', name: str | None = None, alg: Any = 'auto_select') -> tf.Tensor:
    """As `truncated_normal`, but the same `seed`, two integers, always gives the same numbers."""
def stateless_uniform(shape: Any, seed: Any, minval: Any = 0, maxval: Any = None, dtype: Any = 'float32', name: str | None = None, alg: Any = 'auto_select') -> tf.Tensor:
    """As `uniform`, but the same `seed`, two integers, always gives the same numbers.

    Integers with minval and maxval both None are taken from the whole range of `dtype`.
    """
def truncated_normal(shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = 'float32', seed: Any = None, name: str | None = None) -> tf.Tensor:
    """Normally distributed numbers, those more than two standard deviations from the mean drawn again."""
def uniform(shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = 'float32', seed: Any = None, name: str | None = None) -> tf.Tensor:
    """Numbers in [minval, maxval), all equally likely; maxval is 1 by default, and must be given for integers.

    Raises:
      ValueError: `maxval` is missing for an integer `dtype`.
      InvalidArgumentError: minval >= maxval, for integers.
    """
def uniform_candidate_sampler(true_classes: TensorLike, num_true: int, num_sampled: IntLike, unique: bool, range_max: IntLike, seed: IntLike | None = None, name: str | None = None) -> Any:
    """`num_sampled` of the classes below `range_max`, all equally likely; each once at most if `unique`."""
