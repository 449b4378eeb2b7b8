"""`ForwardAccumulator`: derivatives in the direction of a tangent, computed forward."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from ..jaxprs.dependence import has_tangent
from ..jaxprs.types import Pytree, TraceLike
from . import active, derivative, structures
from .gradient_tape import UnconnectedGradients, gives_zeros, logger
from .query import Query, in_recorded_types
from .recording import Recording
from .sweep import push


class ForwardAccumulator:
    """Computes Jacobian-vector products of what JAX computes inside a ``with`` block.

    Forward mode takes one pass per direction. It is the cheaper one for few inputs and many outputs, a `GradientTape` for many
    inputs and few outputs.

    Args:
      primals: a tensor, array or variable, or a structure of them: where the derivative is taken.
      tangents: the direction, structured as `primals`, each of its primal's shape and dtype.

    Raises:
      ValueError: `tangents` has another structure than `primals`; a tangent has another shape or dtype than its primal; a
        primal comes twice.
      TypeError: `primals` holds something that is no tensor, array or variable; the containers of `tangents` are of other types.

    >>> import tapejax as tf
    >>> x = tf.constant([2.0, 3.0])
    >>> with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, 0.0])) as acc:
    ...     y = x * x
    >>> print(acc.jvp(y).numpy())
    [4. 0.]

    After ``tf.autodiff.ForwardAccumulator``; the derivative is `jax.jvp`'s.
    """

    def __init__(self, primals: Pytree, tangents: Pytree):
        self._sources = structures.current.take_apart(primals, "primals")
        self._tangents = structures.current.tangents(self._sources, tangents)
        self._recording = Recording(watch_accessed=False)
        self._active: active.Activation | None = None  # None while it is not recording
        self._around: tuple[TraceLike | None, Sequence[Recording]] = (None, ())
        for leaf in self._sources.leaves:
            if not has_tangent(leaf.array):
                logger.warning(
                    "The dtype of the primal must be floating (e.g. tf.float32), got tf.%s", leaf.array.dtype
                )
            else:
                self._recording.watch(leaf.array, leaf.holder)

    def __enter__(self) -> ForwardAccumulator:
        if self._active is not None:
            raise ValueError("Accumulator is already recording: it was entered already and not left.")
        self._around = weakref.ref(active.outer_trace()), active.active_recordings()
        self._recording.mark("enter")
        self._active = active.start(self._recording)
        return self

    def __exit__(self, kind: type[BaseException] | None = None, *exception: Any) -> None:
        if self._active is not None:
            activation, self._active = self._active, None
            activation.stop(failed=kind is not None and kind is not GeneratorExit)

    @in_recorded_types
    def jvp(
        self, primals: Pytree, unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE
    ) -> Pytree:
        """The derivative of `primals`, computed in the block, in the direction of the tangents.

        Args:
          primals: a tensor or array, or a structure of them.
          unconnected_gradients: what stands for one that does not depend on the accumulator's primals: None or zeros.

        Returns:
          The structure of `primals`, with a tangent of each one's shape and dtype, or None. For a ``jax.Array`` a ``jax.Array``,
          for a `Tensor` or a variable a `Tensor`.

        Raises:
          TypeError: `primals` holds something that is no tensor, array or variable.
          ValueError: `unconnected_gradients` is unknown.
          LookupError: an operation on the way cannot be differentiated; it is named.

        >>> import tapejax as tf
        >>> x, c = tf.constant(3.0), tf.constant(2.0)
        >>> with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
        ...     y = x * x * c
        >>> acc.jvp([y, c])
        [<tf.Tensor: shape=(), dtype=float32, numpy=12.0>, None]
        """
        zeros = gives_zeros(unconnected_gradients)
        ends = structures.current.take_apart(primals, "primals")
        recording = active.continuation_of(self._recording)
        starts = [leaf.source(recording) for leaf in self._sources.leaves]
        query = Query(recording, [leaf.array for leaf in ends.leaves], starts)
        program, values = query.program()
        tangents = [self._tangents[i] for i in query.owners]
        # recorded by the tapes and accumulators around this one, as if each product were taken at its operation: as in TensorFlow
        trace, around = self._around
        outer = around if trace is not None and trace() is active.outer_trace() else ()
        products = active.alone(outer, derivative.run_sweep, push, program, values, tangents)
        if zeros:
            products = [
                jnp.zeros_like(leaf.array) if x is None else x for leaf, x in zip(ends.leaves, products, strict=True)
            ]
        return ends.pack(products)
