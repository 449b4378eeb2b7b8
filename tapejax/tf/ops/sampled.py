"""Losses over many classes, computed on a sample of the classes, and the samplers that draw it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ...tape import operation
from ..values.conversion import convert_to_tensor
from ..values.errors import InvalidArgumentError
from ..values.tensor import Tensor
from ..values.types import IntLike, TensorLike
from . import array, linalg, nn
from . import math as _math
from .random import key_of, state
from .table import renamed, whole, wide

math: Any = _math  # whose functions come out of tables


class Candidates(NamedTuple):
    """Classes that were drawn, and how often the true classes and these were expected."""

    sampled_candidates: Tensor
    true_expected_count: Tensor
    sampled_expected_count: Tensor


# The probability of each of n classes.
_PROBABILITIES = {
    "uniform": lambda n: jnp.full(n, 1 / n, "float32"),
    "log_uniform": lambda n: jnp.diff(jnp.log1p(jnp.arange(n + 1, dtype="float32"))) / jnp.log(n + 1.0),
}


def _sampled_classes(seed, count, kind, num, unique, range_max):
    key, extra = jax.random.split(key_of(seed, count))
    p = _PROBABILITIES[kind](range_max)
    if not unique:
        return jax.random.categorical(key, jnp.log(p), shape=(num,)), num * p
    # Classes arrive at random times, each at its rate: the first `num` that arrive are distributed as in draws that are
    # repeated until so many differ, and what arrived again by then are the repetitions.
    arrival = jax.random.exponential(key, (range_max,)) / p
    times, classes = jax.lax.top_k(-arrival, num)
    tries = num + jax.random.poisson(extra, jnp.sum(p[classes] * (times - times[-1])))
    # as TensorFlow: where nothing was repeated, what draws with repetitions would have given
    return classes, jnp.where(tries == num, num * p, -jnp.expm1(tries * jnp.log1p(-p)))


def _sampler(kind: str, doc: str) -> Callable[..., Candidates]:
    def public(
        true_classes: TensorLike,
        num_true: int,
        num_sampled: IntLike,
        unique: bool,
        range_max: IntLike,
        seed: IntLike | None = None,
        name: str | None = None,
    ) -> Candidates:
        true, size = convert_to_tensor(true_classes), int(whole(num_sampled, "num_sampled"))
        classes = int(whole(range_max, "range_max"))
        if true.shape.rank != 2 or true.shape[1] != num_true:
            raise InvalidArgumentError(f"true_classes must have shape (batch, {num_true}), got {true.shape}")
        if unique and size > classes:
            raise InvalidArgumentError(f"unique=True: {size} different classes cannot be sampled out of {classes}")
        options = {"kind": kind, "num": size, "unique": bool(unique), "range_max": classes}
        sampled, expected = map(Tensor, operation.apply(_sampled_classes, *state.next(seed), **options))
        drawn = array.cast(sampled, wide("int64"))
        return Candidates(drawn, array.gather(expected, true), array.gather(expected, drawn))

    public.__doc__ = f"`num_sampled` of the classes below `range_max`, {doc}"
    return renamed(f"{kind}_candidate_sampler", public)


uniform_candidate_sampler = _sampler("uniform", "all equally likely; each once at most if `unique`.")
log_uniform_candidate_sampler = _sampler(
    "log_uniform", "sorted by how often they occur: Zipf's law; each once if `unique`."
)


def _logits(
    weights: TensorLike, biases: TensorLike, labels: TensorLike, inputs: TensorLike, num_sampled: IntLike, num_classes: IntLike,
    num_true: int, sampled: Candidates | None, without_hits: bool, seed: IntLike | None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Logits of the true and of the sampled classes, less the logarithm of how often they were expected; and labels."""
    labels = array.cast(labels, wide("int64"))
    if labels.shape.rank == 1:
        labels = array.expand_dims(labels, 1)
    if sampled is None:
        sampled = log_uniform_candidate_sampler(labels, num_true, num_sampled, True, num_classes, seed)
    classes, of_true, of_sampled = (array.stop_gradient(x) for x in sampled)
    inputs = convert_to_tensor(inputs)
    rows: Any = array.expand_dims(inputs, 1)
    true: Any = math.reduce_sum(rows * nn.embedding_lookup(weights, labels), 2)
    true += nn.embedding_lookup(biases, labels) - math.log(of_true)
    other: Any = linalg.matmul(inputs, nn.embedding_lookup(weights, classes), transpose_b=True)
    other += nn.embedding_lookup(biases, classes)
    if without_hits:
        hits = math.reduce_any(array.expand_dims(array.cast(labels, classes.dtype), 2) == classes, 1)
        other += array.where(hits, _NEVER, 0.0)
    other -= math.log(of_sampled)
    out = array.concat([array.ones_like(true) / num_true, array.zeros_like(other)], 1)
    return array.concat([true, other], 1), out


# As TensorFlow: the least float32, so that a class that was sampled by accident has no weight.
_NEVER = -3.4028234663852886e38


def nce_loss(
    weights: TensorLike, biases: TensorLike, labels: TensorLike, inputs: TensorLike, num_sampled: IntLike, num_classes: IntLike,
    num_true: int = 1, sampled_values: Candidates | None = None, remove_accidental_hits: bool = False, name: str = "nce_loss",
) -> Tensor:  # fmt: skip
    """The noise-contrastive loss of each example: is it a true class, or one of `num_sampled` that were drawn?

    Args:
      weights, biases: of shapes (num_classes, dim) and (num_classes,).
      labels: the true classes, shape (batch, num_true).
      inputs: shape (batch, dim).
      sampled_values: what a candidate sampler returned; by default `log_uniform_candidate_sampler` is called.
    """
    arguments = weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values
    logits, out = _logits(*arguments, remove_accidental_hits, None)
    return math.reduce_sum(nn.sigmoid_cross_entropy_with_logits(out, logits), 1)


def sampled_softmax_loss(
    weights: TensorLike, biases: TensorLike, labels: TensorLike, inputs: TensorLike, num_sampled: IntLike, num_classes: IntLike,
    num_true: int = 1, sampled_values: Candidates | None = None, remove_accidental_hits: bool = True, seed: IntLike | None = None,
    name: str = "sampled_softmax_loss",
) -> Tensor:  # fmt: skip
    """The cross entropy of each example over its true classes and `num_sampled` that were drawn; arguments as `nce_loss`."""
    arguments = weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values
    logits, out = _logits(*arguments, remove_accidental_hits, seed)
    return nn.softmax_cross_entropy_with_logits(array.stop_gradient(out), logits)
