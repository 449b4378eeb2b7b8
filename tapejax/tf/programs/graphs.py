"""``tf.gradients``: derivatives in a `function`, of whatever was computed since it began.

TensorFlow finds them in the function's graph. Here a function that asks for them is traced a second time, under a tape, which
then stands for the graph: all that is computed is on it, and whatever is asked for counts as watched from the beginning.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from ...tape.gradient_tape import GradientTape, UnconnectedGradients
from ...tape.structures import sources_of
from ..ops.array import ones_like
from ..values import reading
from ..values.conversion import convert_to_tensor, is_array_like
from ..values.tensor import Tensor
from ..values.types import Ignored, Nest, TensorLike


class TapeNeeded(BaseException):
    """`gradients` was called in a function that is traced without a tape. The user's ``except Exception`` must not catch this."""


def run(recorded: bool, body: Callable[[], Nest]) -> Nest:
    """``body()``, the body of a function that is being traced, under a tape if it is `recorded`."""
    with GradientTape(persistent=True) if recorded else contextlib.nullcontext() as tape:
        return reading.context.setting(tapes=(*reading.context.tapes, tape)).call(body)


def gradients(
    ys: Nest,
    xs: Nest,
    grad_ys: Nest = None,
    name: str = "gradients",
    gate_gradients: Ignored = False,
    aggregation_method: Ignored = None,
    stop_gradients: Nest = None,
    unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
) -> list[Tensor | None]:
    """The gradient of the sum of all elements of `ys` with respect to each of `xs`, in a `function`.

    Args:
      ys: a tensor or a list of tensors.
      xs: a tensor or variable, or a list of these: whatever `ys` were computed from, constants and other results included.
      grad_ys: the cotangents to start from, as `ys`; None for ones.
      stop_gradients: a tensor or a list of tensors that do not depend on `xs` here.
      unconnected_gradients: what stands for an x that no y depends on: None or zeros.

    Returns:
      A list with a gradient for each of `xs`, of its shape and dtype, or None.

    Raises:
      RuntimeError: outside of a `function`, as in TensorFlow: use `GradientTape`.
      ValueError: there are more or fewer of `grad_ys` than of `ys`.

    >>> import tapejax as tf
    >>> @tf.function
    ... def slope_and_curvature(x):
    ...     (slope,) = tf.gradients(x**3, x)
    ...     return slope, tf.gradients(slope, x)[0]
    >>> print(*slope_and_curvature(tf.constant(2.0)))
    tf.Tensor(12.0, shape=(), dtype=float32) tf.Tensor(12.0, shape=(), dtype=float32)
    """
    targets, sources = _tensors(ys), _tensors(xs)
    tape = _tape(sources, _tensors(stop_gradients))
    cotangents = [None] * len(targets) if grad_ys is None else _listed(grad_ys)
    starts = [ones_like(y) if g is None else _tensors([g])[0] for y, g in zip(targets, cotangents, strict=True)]
    return tape.gradient(targets, sources, starts, unconnected_gradients)


def _tape(sources: list[TensorLike], constants: list[TensorLike]) -> GradientTape:
    """A tape that holds what the function computed so far, watched `sources`, and nothing of how `constants` came about."""
    if not reading.context.tapes:
        raise RuntimeError("tf.gradients is for a tf.function's graph, and none is being traced: use tf.GradientTape")
    tapes = [tape for tape in reading.context.tapes if tape is not None]
    if len(tapes) < len(reading.context.tapes):
        raise TapeNeeded
    # The outermost one's has what a function inside it closes over, too. A variable is what the innermost one reads of it.
    recording, inside = (tapes[i]._usable().continuation() for i in (0, -1))
    recording.variables = inside.variables
    ends = {id(leaf.array) for leaf in sources_of(constants).leaves}
    recording.entries = [entry for entry in recording.entries if ends.isdisjoint(map(id, entry.outputs))]
    for leaf in sources_of(sources).leaves:
        recording.watch(leaf.array)
    recording.watched = {key: (array, 0) for key, (array, _) in recording.watched.items()}
    tape = GradientTape(persistent=True)
    tape._recording = recording
    return tape


def _listed(x: Nest) -> list:
    return list(x) if isinstance(x, (list, tuple)) else [x]


def _tensors(x: Nest) -> list[TensorLike]:
    return [] if x is None else [y if is_array_like(y) else convert_to_tensor(y) for y in _listed(x)]
