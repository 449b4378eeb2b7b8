"""`GradientTape`: what the user holds."""

from __future__ import annotations

import contextlib
import enum
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax.numpy as jnp

from ..jaxprs.dependence import has_tangent
from ..jaxprs.types import Pytree, Value, Where
from ..places import caller
from . import active, derivative, structures
from . import jacobian as jacobians
from . import trace as trace  # whose class JAX is given
from .operation import apply
from .query import Query, in_recorded_types
from .recording import Recording
from .slicing import Program
from .structures import Leaf, Structure, conjugate, sources_of, targets_of
from .sweep import on_devices_of, sweep

logger = logging.getLogger("tapejax")

NOT_RECORDING = "Tape is not recording: call this inside the tape's `with` block."


class UnconnectedGradients(enum.Enum):
    """What `GradientTape.gradient` gives for a source on which the target does not depend.

    >>> UnconnectedGradients("zero")
    <UnconnectedGradients.ZERO: 'zero'>
    """

    NONE = "none"
    ZERO = "zero"


class GradientTape:
    """Records what JAX computes inside a ``with`` block, so that it can be differentiated afterwards.

    Whatever JAX executes in the block is recorded, whoever wrote it. *Watched* values carry gradient, and so does all that is
    computed from them. A trainable variable is watched when it is read, any other value when it is passed to `watch`.

    Args:
      persistent: whether `gradient` may be called more than once.
      watch_accessed_variables: whether trainable variables are watched when they are read.

    >>> import jax.numpy as jnp
    >>> import tapejax as tf
    >>> x = jnp.array(3.0)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = jnp.sin(x) * x
    >>> print(tape.gradient(y, x))
    -2.8288574

    After ``tf.GradientTape`` of TensorFlow, whose rules it keeps; the derivatives are `jax.vjp`'s.
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True):
        self._persistent = persistent
        self._watch_accessed_variables = watch_accessed_variables
        self._recording: Recording | None = None
        self._active: active.Activation | None = None  # None while it is not recording
        self._watched: tuple[Any, ...] = ()
        self._used: Where | tuple[()] = None  # where it was used up; () if not in the user's code

    # ---- recording ----

    def __enter__(self) -> GradientTape:
        self._start("enter")
        return self

    def __exit__(self, kind: type[BaseException] | None = None, *exception: Any) -> None:
        if self._active is not None:
            # A generator may be closed under any trace.
            self._stop("exit", failed=kind is not None and kind is not GeneratorExit)
        else:
            active.unwind()

    def _start(self, mark: str) -> None:
        if self._active is not None:
            raise ValueError(
                "Tape is still recording: this tape was entered already and not left. Use a tape of its own for the inner block."
            )
        structures.current.recording_starts()
        if self._recording is None:
            self._recording = Recording(self._watch_accessed_variables)
        self._recording.mark(mark)
        self._active = active.start(self._recording)

    def _stop(self, mark: str = "exit", failed: bool = False) -> Recording:
        if self._active is None or self._recording is None:
            raise ValueError(NOT_RECORDING)
        activation, self._active = self._active, None
        try:
            self._recording.mark(mark)
        finally:
            activation.stop(failed)
        return self._recording

    def watch(self, tensor: Pytree) -> None:
        """Makes `tensor` carry gradient from here on.

        What was computed from it before counts only if another input of that operation was watched by then.

        Args:
          tensor: a tensor, array or variable, or any structure of these (lists, dicts, pytrees), of a float or complex
            dtype; of another dtype it is reported (logged) and left alone.

        Raises:
          ValueError: `tensor` holds something else, for instance a NumPy array.
          AttributeError: the tape was never entered, or is used up.
        """
        leaves = structures.current.take_apart(tensor, "tensor").leaves
        if self._recording is None:
            raise AttributeError("watch() needs a tape that was entered: call it inside the tape's `with` block.")
        recording = active.continuation_of(self._recording)
        for leaf in leaves:
            if not has_tangent(leaf.array):
                logger.warning(
                    "The dtype of the watched tensor must be floating (e.g. tf.float32), got tf.%s: it has no gradient, as "
                    "tape.explain(target, sources) will say",
                    leaf.array.dtype,
                )
            elif self._active is None:  # outside the block it has no effect, as in TensorFlow
                recording.mark("watch outside", leaf.array)
            else:
                recording.watch(leaf.array, leaf.holder)
                recording.mark("watch", leaf.array)

    def watched_variables(self) -> tuple[Any, ...]:
        """The variables that the tape watches, in the order in which they were created.

        >>> import tapejax as tf
        >>> x, y = tf.Variable(1.0, name="x"), tf.Variable(2.0, name="y")
        >>> with tf.GradientTape() as tape:
        ...     z = y * 3.0
        >>> [v.name for v in tape.watched_variables()]
        ['y:0']
        """
        if self._recording is None:
            return self._watched
        variables = (variable for variable, _ in self._recording.variables.values())
        return tuple(sorted(variables, key=lambda variable: getattr(variable, "_created", 0)))

    @contextlib.contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Suspends recording inside a ``with`` block: to the tape, what is computed there is constant.

        Raises:
          RuntimeError: the tape was never entered.
          ValueError: the tape is not recording.

        >>> import tapejax as tf
        >>> x = tf.Variable(2.0)
        >>> with tf.GradientTape() as tape:
        ...     with tape.stop_recording():
        ...         factor = x * x
        ...     y = factor * x
        >>> print(tape.gradient(y, x).numpy())
        4.0
        """
        if self._recording is None:
            raise RuntimeError("Trying to stop recording a tape which is not recording: enter it first.")
        recording = active.continuation_of(self._recording)
        if recording is self._recording:
            self._stop("stop")
            try:
                yield
            finally:
                self._start("start")
        else:  # in a program that is being traced
            recordings = next((here for here in active.active_lists() if recording in here), None)
            if recordings is None:
                raise ValueError(NOT_RECORDING)
            recordings.remove(recording)
            try:
                yield
            finally:
                recordings.append(recording)

    def reset(self) -> None:
        """Forgets all that was recorded and watched so far. To be called inside the tape's block.

        Raises:
          ValueError: the tape is not recording.

        >>> import tapejax as tf
        >>> x = tf.Variable(2.0)
        >>> with tf.GradientTape() as tape:
        ...     y = x * x
        ...     tape.reset()
        ...     z = x * 3.0
        >>> len(tape)
        1
        """
        former, self._recording = self._stop(), None
        self._start("reset")
        self._usable().succeed(former)

    # ---- derivatives ----

    @in_recorded_types
    def gradient(
        self,
        target: Pytree,
        sources: Pytree,
        output_gradients: Pytree = None,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
    ) -> Pytree:
        """The gradient of the sum of all elements of `target` with respect to each of `sources`.

        Args:
          target: a tensor or array, or a structure of them: all are summed. Integers are left out.
          sources: a structure of tensors, arrays and variables.
          output_gradients: the cotangents to start from: one for each target, of its shape and dtype; default ones.
          unconnected_gradients: what stands for a source that `target` does not depend on: None or zeros.

        Returns:
          The structure of `sources`, with a gradient of each source's shape and dtype, or None. For a ``jax.Array`` a
          ``jax.Array``, for a `Tensor` or a variable a `Tensor`.

        Raises:
          RuntimeError: a second call on a tape that is not persistent, or a tape that recorded nothing yet; or a source, or a
            value that was recorded, was deleted since, as by donation.
          TypeError: `target` or `sources` holds something that is no tensor.
          ValueError: `unconnected_gradients` or the number of `output_gradients` is wrong.
          InvalidArgumentError: an output gradient has another shape or dtype than its target.
          LookupError: an operation on the way cannot be differentiated; it is named.

        >>> import tapejax as tf
        >>> x, y = tf.Variable([1.0, 2.0]), tf.Variable(3.0)
        >>> with tf.GradientTape() as tape:
        ...     z = tf.reduce_sum(x**2)
        >>> tape.gradient(z, {"x": x, "y": y})
        {'x': <tf.Tensor: shape=(2,), dtype=float32, numpy=array([2., 4.], dtype=float32)>, 'y': None}
        """
        recording = self._usable()
        targets, structure = targets_of(target), sources_of(sources)
        zeros = (lambda shape: shape) if gives_zeros(unconnected_gradients) else None
        cotangents = None if output_gradients is None else structures.current.cotangents(targets, output_gradients)

        def pull_back(program: Program, values: Sequence[Value]) -> list[Value | None]:
            seeds = () if cotangents is None else ([conjugate(x) for x in cotangents],)
            return derivative.run_sweep(sweep, program, values, *seeds)

        gradients = self._differentiate("gradient", recording, targets.leaves, structure, pull_back, zeros)
        pairs = zip(structure.leaves, gradients, strict=True)
        return structure.pack([x if x is None else on_devices_of(leaf.array, x) for leaf, x in pairs])

    @in_recorded_types
    def jacobian(
        self,
        target: Pytree,
        sources: Pytree,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Pytree:
        """The derivative of every element of `target` with respect to every element of each of `sources`.

        Reverse or forward mode, as `jax.jacrev` and `jax.jacfwd` do it, whichever takes fewer passes; in chunks where all
        of them together would not fit in memory.

        Args:
          target: one tensor or array, of any rank.
          sources: a structure of tensors, arrays and variables, of any rank.
          unconnected_gradients: what stands for a source that `target` does not depend on: None or zeros.
          parallel_iterations: taken for TensorFlow's sake; the chunks are chosen by memory.
          experimental_use_pfor: likewise; the passes are always vectorised.

        Returns:
          The structure of `sources`, with an array of shape ``target.shape + source.shape`` for each, or None.

        Raises:
          RuntimeError: the tape is used up, or recorded nothing yet.
          TypeError: `target` is not one tensor, or `sources` holds something that is none.
          ValueError: `unconnected_gradients` is unknown.
          LookupError: an operation on the way cannot be differentiated; it is named.

        >>> import tapejax as tf
        >>> x = tf.Variable([1.0, 2.0, 3.0])
        >>> with tf.GradientTape() as tape:
        ...     y = x * x
        >>> print(tape.jacobian(y, x).numpy())
        [[2. 0. 0.]
         [0. 4. 0.]
         [0. 0. 6.]]
        """
        recording = self._usable()
        end, structure = structures.current.one(target, "target"), sources_of(sources)
        zeros = end.array.shape.__add__ if gives_zeros(unconnected_gradients) else None
        return structure.pack(self._differentiate("jacobian", recording, [end], structure, jacobians.jacobian, zeros))

    @in_recorded_types
    def batch_jacobian(
        self,
        target: Pytree,
        source: Pytree,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Pytree:
        """The Jacobian of each example of a batch, where ``target[b]`` depends on ``source[b]`` only.

        Where examples do mix (batch normalisation), entry ``[b, i, j]`` is the derivative of ``sum(target[:, i])`` with
        respect to ``source[b, j]``, as in TensorFlow.

        Args:
          target: a tensor of shape ``(batch, *outs)``.
          source: a tensor of shape ``(batch, *ins)``.
          unconnected_gradients: a source that is not connected gives zeros either way, as in TensorFlow.
          parallel_iterations: taken for TensorFlow's sake.
          experimental_use_pfor: likewise.

        Returns:
          A tensor of shape ``(batch, *outs, *ins)``.

        Raises:
          ValueError: the rank of one of them is below 2, the first dimensions differ, or `unconnected_gradients` is unknown.
          RuntimeError, TypeError, LookupError: as for `jacobian`.

        >>> import tapejax as tf
        >>> x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> print(tape.batch_jacobian(y, x).numpy().tolist())
        [[[2.0, 0.0], [0.0, 4.0]], [[6.0, 0.0], [0.0, 8.0]]]
        """
        recording = self._usable()
        end, structure = structures.current.one(target, "target"), structures.current.take_apart(source, "source")
        start = structure.leaves[0] if len(structure.leaves) == 1 else structures.current.one(source, "source")
        gives_zeros(unconnected_gradients)  # refuses an unknown value
        for name, leaf in (("target", end), ("source", start)):
            if leaf.array.ndim < 2:
                raise ValueError(
                    f"`{name}` must have rank at least 2, a batch of vectors or more; got shape {leaf.array.shape}."
                )
        if end.array.shape[0] != start.array.shape[0]:
            raise ValueError(
                f"Need first dimension of target shape ({end.array.shape}) and source shape ({start.array.shape}) to match."
            )

        def zeros(shape: tuple[int, ...]) -> tuple[int, ...]:
            return (*end.array.shape, *shape[1:])

        take = jacobians.batch_jacobian
        return structure.pack(self._differentiate("batch_jacobian", recording, [end], structure, take, zeros))

    def _differentiate(
        self,
        name: str,
        recording: Recording,
        targets: Sequence[Leaf],
        sources: Structure,
        take: Callable[[Program, list[Value]], Sequence[Value | None]],
        zeros: Callable[[tuple[int, ...]], tuple[int, ...]] | None,
    ) -> list[Value | None]:
        """What `take` gives for each source. `zeros`: from a source's shape the shape of zeros that take the place of None."""
        if self._active is not None and self._persistent:
            logger.warning(
                "Calling GradientTape.%s on a persistent tape inside its context is significantly less efficient than calling "
                "it outside: it records its own backward pass.",
                name,
            )
        elif self._active is not None:
            self._stop()
        arrays, starts = [leaf.array for leaf in targets], [leaf.source(recording) for leaf in sources.leaves]
        query = Query(recording, arrays, starts, with_residuals=active.eager() and not active.active_recordings())
        # TensorFlow's gradient of a complex function is the conjugate of JAX's.
        derivatives = [conjugate(x) for x in query.derivative(take)]
        if not self._persistent:
            self._use_up()
        if logger.isEnabledFor(logging.DEBUG):
            _log_missing(name, derivatives)
        if zeros is None:
            return derivatives
        pairs = zip(sources.leaves, derivatives, strict=True)
        return [_zeros_of(leaf, zeros(leaf.array.shape)) if x is None else x for leaf, x in pairs]

    def __getattr__(self, name: str) -> Any:
        structures.current.no_attribute("GradientTape", self, name)

    def _usable(self) -> Recording:
        if self._recording is None:
            raise RuntimeError(
                "A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians), after it "
                "has recorded: use GradientTape(persistent=True) for more."
            )
        return active.continuation_of(self._recording)

    def _use_up(self) -> None:
        self._watched = self.watched_variables()
        self._used = caller() or ()
        self._recording = None


def _log_missing(what: str, derivatives: Sequence[Value | None]) -> None:
    # At the level of debugging only: TensorFlow's tape does not log it, its optimizers do.
    if missing := [str(i) for i, x in enumerate(derivatives) if x is None]:
        message = "GradientTape.%s is None for source %s of %d: tape.explain(target, sources) says why"
        logger.debug(message, what, ", ".join(missing), len(derivatives))


def gives_zeros(value: UnconnectedGradients | str) -> bool:
    """Whether the argument `unconnected_gradients` asks for zeros."""
    try:
        return UnconnectedGradients(value) is UnconnectedGradients.ZERO
    except ValueError:
        raise ValueError(
            f"Unknown value for unconnected_gradients: {value!r}. Expected UnconnectedGradients.NONE or .ZERO, or their "
            "values 'none' and 'zero'."
        ) from None


def _zeros_of(leaf: Leaf, shape: tuple[int, ...]) -> Value:
    """Zeros for a source. As in TensorFlow, to an outer tape they are computed from it."""
    structures.current.read(leaf.value)
    return apply(jnp.zeros_like, leaf.array, shape=shape)
