"""`GradientTape`: what the user holds."""

from __future__ import annotations

import enum
import importlib
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from .core import jacobian as jacobians
from .core import recorder, schedule
from .core import sweep as derivatives
from .core._jax import Tracer
from .core.program import Program, is_inexact
from .core.query import Query, in_recorded_types
from .core.recording import Entry, Recording
from .core.types import JaxProgram, Pytree, Where
from .core.where import caller
from .ops.missing import no_attribute
from .values import nest, reading
from .values.errors import InvalidArgumentError
from .values.structures import Leaf, Structure, conjugate, cure_of, is_variable, leaf_of, sources_of, targets_of
from .values.tensor import Variable, raw
from .values.types import Array, Nest, TensorLike, VariableLike

logger = logging.getLogger("tapejax")


def _seeing(*modules: str) -> list[Any]:
    """Modules of `seeing`, the room above this one, which is loaded when a tape is first looked at."""
    return [importlib.import_module(f"{__package__}.seeing.{name}") for name in modules]


class UnconnectedGradients(enum.Enum):
    """What `GradientTape.gradient` gives for a source on which the target does not depend.

    >>> UnconnectedGradients("zero")
    <UnconnectedGradients.ZERO: 'zero'>
    """

    NONE = "none"
    ZERO = "zero"


class GradientTape:
    """Records what JAX computes inside a ``with`` block, so that it can be differentiated afterwards.

    Whatever JAX executes in the block is recorded, by whoever it was written. Values that are *watched* carry gradient,
    and so does all that is computed from them: trainable variables from when they are read, other values from when they
    are passed to `watch`.

    Args:
      persistent: whether `gradient` may be called more than once.
      watch_accessed_variables: whether trainable variables are watched of their own accord when they are read.

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
        self._active: recorder.Activation | None = None  # None while it is not recording
        self._watched: tuple[VariableLike, ...] = ()
        self._used: Where = None  # where it was used up

    # ---- recording ----

    def __enter__(self) -> GradientTape:
        self._start("enter")
        return self

    def __exit__(self, kind: type[BaseException] | None = None, *exception: Any) -> None:
        if self._active is not None:
            # A generator that is closed may be so under any trace.
            self._stop("exit", failed=kind is not None and kind is not GeneratorExit)
        else:
            recorder.unwind()

    def _start(self, mark: str) -> None:
        if self._active is not None:
            raise ValueError(
                "Tape is still recording: this tape was entered already and not left. Use a tape of its own for the inner block."
            )
        reading.install_adapters()
        if self._recording is None:
            self._recording = Recording(self._watch_accessed_variables)
        self._recording.mark(mark)
        self._active = recorder.start(self._recording)

    def _stop(self, mark: str = "exit", failed: bool = False) -> None:
        if self._active is None or self._recording is None:
            raise ValueError("Tape is not recording: call this inside the tape's `with` block.")
        active, self._active = self._active, None
        try:
            self._recording.mark(mark)
        finally:
            active.stop(failed)

    def watch(self, tensor: Nest) -> None:
        """Makes `tensor` carry gradient from here on.

        What was computed of it before counts only where the tape kept the operation for another input that was watched by then.

        Args:
          tensor: a tensor, array or variable, or any structure of these (lists, dicts, pytrees), of a float or complex
            dtype; of another dtype it is reported (logged) and left alone.

        Raises:
          ValueError: `tensor` holds something else, for instance a NumPy array.
          AttributeError: the tape was never entered, or is used up.
        """
        leaves = Structure(tensor, _cannot_watch).leaves
        if self._recording is None:
            raise AttributeError("watch() needs a tape that was entered: call it inside the tape's `with` block.")
        recording = recorder.continuation_of(self._recording)
        for leaf in leaves:
            if not is_inexact(leaf.array):
                logger.warning(
                    "The dtype of the watched tensor must be floating (e.g. tf.float32), got tf.%s: it has no gradient, as "
                    "tape.explain(target, sources) will say",
                    leaf.array.dtype,
                )
            elif self._active is None:  # outside the block it has no effect, as in TensorFlow
                recording.mark("watch outside", leaf.array)
            elif is_variable(leaf.value):
                recording.watch_variable(leaf.value, leaf.array)
                recording.mark("watch", leaf.array)
            else:
                recording.watch(leaf.array)
                recording.mark("watch", leaf.array)

    def watched_variables(self) -> tuple[VariableLike, ...]:
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
        found = (variable for variable, _ in self._recording.variables.values())
        return tuple(sorted(found, key=lambda variable: getattr(variable, "_created", 0)))

    def stop_recording(self) -> _NotRecording:
        """Suspends recording inside a ``with`` block: what is computed there is a constant to the tape.

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
        return _NotRecording(self)

    def reset(self) -> None:
        """Forgets all that was recorded and watched so far, inside the tape's block.

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
        self._stop()
        former, self._recording = self._recording, None
        self._start("reset")
        self._usable().forget(former)

    # ---- derivatives ----

    @in_recorded_types
    def gradient(
        self,
        target: Nest,
        sources: Nest,
        output_gradients: Nest = None,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
    ) -> Nest:
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
          RuntimeError: a second call on a tape that is not persistent, or a tape that recorded nothing yet.
          TypeError: `target` or `sources` holds something that is no tensor.
          ValueError: `unconnected_gradients` or the number of `output_gradients` is wrong.
          InvalidArgumentError: an output gradient has another shape or dtype than its target.
          LookupError: an operation on the way cannot be differentiated; it is named.
          RuntimeError, ValueError: a value that was recorded was deleted since, as by donation.

        >>> import tapejax as tf
        >>> x, y = tf.Variable([1.0, 2.0]), tf.Variable(3.0)
        >>> with tf.GradientTape() as tape:
        ...     z = tf.reduce_sum(x**2)
        >>> tape.gradient(z, {"x": x, "y": y})
        {'x': <tf.Tensor: shape=(2,), dtype=float32, numpy=array([2., 4.], dtype=float32)>, 'y': None}
        """
        recording = self._usable()
        ends, starts = targets_of(target).leaves, sources_of(sources)
        unconnected = _unconnected(unconnected_gradients)
        cotangents = None if output_gradients is None else cotangents_of(ends, target, output_gradients)

        def pull_back(program: Program, values: Sequence[Array]) -> list[Array | None]:
            return schedule.pull_back(program, values, cotangents and [conjugate(x) for x in cotangents])

        zeros = unconnected is UnconnectedGradients.ZERO and _same_shape
        found = self._differentiate("gradient", recording, ends, starts, pull_back, zeros)
        found = [x if x is None else _placed_as(leaf.array, x) for leaf, x in zip(starts.leaves, found, strict=True)]
        return starts.pack(found)

    @in_recorded_types
    def jacobian(
        self,
        target: Nest,
        sources: Nest,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Nest:
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
        end, starts = _one_target(target), sources_of(sources)
        unconnected = _unconnected(unconnected_gradients)
        zeros = unconnected is UnconnectedGradients.ZERO and end.array.shape.__add__
        return starts.pack(self._differentiate("jacobian", recording, [end], starts, jacobians.jacobian, zeros))

    @in_recorded_types
    def batch_jacobian(
        self,
        target: Nest,
        source: Nest,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Nest:
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
        end = _one_target(target)
        structure = sources_of(source, "source")
        start = structure.leaves[0] if len(structure.leaves) == 1 else _one_target(source)
        _unconnected(unconnected_gradients)
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
            return end.array.shape + shape[1:]

        take = jacobians.batch_jacobian
        return structure.pack(self._differentiate("batch_jacobian", recording, [end], structure, take, zeros))

    @in_recorded_types
    def as_function(self, target: Nest, sources: Nest, arguments: Nest = ()) -> Any:
        """The pure function from `sources` to `target` that the tape recorded.

        Args:
          target: a tensor or array, or a structure of them.
          sources: a structure of tensors, arrays and variables.
          arguments: what else varies, such as batches, labels, keys and learning rates: tensors, arrays and variables, as a
            list, a tuple, or a dict from names to values. Each becomes a parameter after `sources`, in this order, of the
            shape and dtype that it has here. What was computed of an argument before the block is another value. Of a
            plain ``jax.Array`` the tape does not see that Python takes a number (``float(x)``): pass a `Tensor` where in doubt.

        Returns:
          A function of one argument, structured as `sources`, and of `arguments`, by position or by name, that returns
          arrays structured as `target`. Its
          `jax.grad` at `sources` is the tape's gradient; what the tape did not see depend on the sources is constant.
          Printed, it is code: plain ``jnp`` that runs where it is pasted (after ``import jax``, ``import jax.numpy as
          jnp`` and ``import numpy as np``). Arrays too large to write down are names in it: its ``constants``.

        Raises:
          RuntimeError: the tape is used up, or recorded nothing yet.
          TypeError: `target`, `sources` or an argument holds something that is no tensor, array or variable.
          ValueError: `target` does not depend on an argument, or depends on it through what was not recorded: a value that
            Python looked at or that went to NumPy, a variable that was assigned to; or an argument is the same array as
            another or as a source.

        >>> import jax, jax.numpy as jnp
        >>> import tapejax as tf
        >>> x = jnp.array(3.0)
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x**2
        >>> f = tape.as_function(y, x)
        >>> print(f(jnp.array(5.0)), jax.grad(f)(x))
        25.0 6.0
        >>> print(f)
        def f(x):
            y = x ** 2
            return y
        <BLANKLINE>

        >>> rate = tf.constant(0.5)
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * rate
        >>> f = tape.as_function(y, x, arguments={"rate": rate})
        >>> print(f(x, rate=2.0))
        6.0
        """
        return self._as_function(target, sources, arguments, {})

    def _as_function(self, target: Nest, sources: Nest, arguments: Nest, called: dict[int, str]) -> Any:
        """`as_function`; `called` holds names for arrays, by their identity."""
        recording = self._usable()
        ends, starts = targets_of(target), sources_of(sources)
        found = [leaf.source(recording) for leaf in starts.leaves]
        # what has no gradient cannot be watched, and is a source all the same
        found = [x if is_inexact(x.array) else x._replace(watched=True) for x in found]
        sought = [leaf.array for leaf in ends.leaves], found
        listing, parameters, source = _seeing("listing", "parameters", "source")

        named = listing.Names(recording, listing.namespaces())
        rest = parameters.Parameters(recording, arguments, starts.leaves, named)
        query = Query(recording, sought[0], [*sought[1], *rest.sources()], include_nondifferentiable=True)
        (program, values), arrays, owner = query.program(), query.arrays, query.owners
        if not called:  # `code` has called the function itself, so Python's looks at values are part of it
            rest.require_replayable(query, arrays[: len(arrays) - len(rest.all)])

        def function(*args: Any, **kwargs: Any) -> Nest:
            sources, more = rest.arrays_of(args, kwargs)
            given = [leaf.array for leaf in sources_of(sources).leaves]
            if len(given) != len(starts.leaves):
                raise ValueError(
                    f"sources: {len(starts.leaves)} arrays were expected, as on the tape; got {len(given)}"
                )
            given += more
            inputs = []
            for array, i in zip(arrays, owner, strict=True):
                first = arrays[owner.index(i)]
                # a variable that was assigned to between two reads: all that was read moves together
                inputs.append(given[i] if array is first else array + (given[i] - jax.lax.stop_gradient(first)))
            out = derivatives.evaluate(program, values, inputs)
            return ends.pack_raw([leaf.array if x is None else x for leaf, x in zip(ends.leaves, out, strict=True)])

        names = named.only([*values, *(leaf.array for leaf in starts.leaves)]) | called
        parts = rest, program, values, arrays, owner, (sources, starts), (target, ends), names
        return source.TapeFunction(function, lambda: source.printed(*parts), rest.signature)

    def _differentiate(
        self,
        name: str,
        recording: Recording,
        targets: Sequence[Leaf],
        sources: Structure,
        take: Callable[[Program, list[Array]], Sequence[Array | None]],
        zeros: Callable[[tuple[int, ...]], tuple[int, ...]] | Literal[False],
    ) -> list[Array | None]:
        """What `take` gives for each source; where there is none None, or zeros of the shape that `zeros(its shape)` says."""
        if self._active is not None and self._persistent:
            logger.warning(
                "Calling GradientTape.%s on a persistent tape inside its context is significantly less efficient than calling "
                "it outside: it records its own backward pass.",
                name,
            )
        elif self._active is not None:
            self._stop()
        ends, starts = [leaf.array for leaf in targets], [leaf.source(recording) for leaf in sources.leaves]
        query = Query(recording, ends, starts, with_residuals=recorder.eager() and not recorder.active_recordings())
        # TensorFlow's gradient of a complex function is the conjugate of JAX's.
        found = [conjugate(x) for x in query.derivative(take)]
        if not self._persistent:
            self._use_up()
        if logger.isEnabledFor(logging.DEBUG):
            _log_missing(name, found)
        if not zeros:
            return found
        return [
            _zeros_of(leaf, zeros(leaf.array.shape)) if x is None else x
            for leaf, x in zip(sources.leaves, found, strict=True)
        ]

    def __getattr__(self, name: str) -> NoReturn:
        no_attribute("GradientTape", self, name)

    def _usable(self) -> Recording:
        if self._recording is None:
            raise RuntimeError(
                "A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians), after it "
                "has recorded: use GradientTape(persistent=True) for more."
            )
        return recorder.continuation_of(self._recording)

    def _use_up(self) -> None:
        self._watched = self.watched_variables()
        self._used = caller() or ()
        self._recording = None

    # ---- seeing the tape ----
    # Each of these loads what it needs when it is called, and leaves the tape as it is.

    def __str__(self) -> str:
        (listing,) = _seeing("listing")

        return listing.text_table(self, self._recording, listing.namespaces())

    def __repr__(self) -> str:
        (listing,) = _seeing("listing")

        return f"<{listing.heading(self, self._recording)}>"

    def _repr_html_(self) -> str:
        (listing,) = _seeing("listing")

        return listing.html_table(self, self._recording, listing.namespaces())

    def __bool__(self) -> bool:
        return True  # also with nothing recorded: having a length must not make a tape false

    def __len__(self) -> int:
        """How many operations were recorded."""
        return 0 if self._recording is None else len(self._recording.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter([] if self._recording is None else list(self._recording.entries))

    def __getitem__(self, index: int | slice) -> Any:
        """The recorded operations: an `Entry` with ``op``, ``inputs``, ``outputs`` and ``line``, or a list of them."""
        return ([] if self._recording is None else self._recording.entries)[index]

    @in_recorded_types
    def explain(self, target: Nest, sources: Nest) -> Any:
        """Says for each source why its gradient is what it is: along which path it comes, or why it is None.

        Args:
          target, sources: as for `gradient`.

        Returns:
          An `Explanation`. Print it, or iterate over its reports, each with ``connected``, the ``path``, and ``reasons``
          with ``kind``, ``message``, ``remedy``, ``operation`` and ``line``. Reasons of a connected source are notes: the
          gradient is zero, nan or infinite, is of a part of `target` only, or with respect to another value than was meant.
          For these one backward pass is run, as by `steps`. The tape is not used up.

        Raises:
          TypeError: `target` or `sources` holds something that is no tensor.

        >>> import tapejax as tf
        >>> x, c = tf.Variable(2.0), tf.constant(3.0)
        >>> with tf.GradientTape() as tape:
        ...     y = tf.round(x) * c
        >>> for report in tape.explain(y, [x, c]):
        ...     print(report.connected, report.kinds, report.reasons[0].operation)
        False ('no derivative',) round
        False ('never watched',) multiply
        """
        explain, listing = _seeing("explain", "listing")

        return explain.explain(self, target, sources, listing.namespaces(), listing.places())

    @in_recorded_types
    def memory(self, target: Nest, sources: Nest) -> Any:
        """The bytes that the tape keeps for the backward pass, by line of your code, largest first.

        Args:
          target: a tensor or array, or a structure of them.
          sources: a structure of tensors, arrays and variables.

        Returns:
          A `Memory`: printed, or shown by a notebook, a table with bars. For each line the bytes that are freed with the tape,
          those that the gradient of `target` with respect to `sources` reads, and what `recompute_grad` around the line's
          function would save.

        Raises:
          RuntimeError: the tape is used up, or recorded nothing yet.

        >>> import jax.numpy as jnp
        >>> import tapejax as tf
        >>> x = jnp.ones(1000)
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = jnp.sum(jnp.exp(jnp.sin(x)))
        >>> tape.memory(y, x).bytes
        8000
        """
        (seen,) = _seeing("memory")

        recording = self._usable()
        ends = [leaf.array for leaf in targets_of(target).leaves]
        starts = [leaf.source(recording) for leaf in sources_of(sources).leaves]
        return seen.memory(recording, Query(recording, ends, starts))

    @in_recorded_types
    def summary(self, target: Nest, sources: Any) -> Any:
        """For each source the size of its value and of its gradient: what vanishes, explodes, is zero or is no number.

        The tape is not used up.

        Args:
          target: a tensor or array, or a structure of them.
          sources: a structure of tensors, arrays and variables; or a model (Keras's, a `Module`): its trainable variables.

        Returns:
          A `Summary`, an iterable of rows: norm, mean, share of zeros, nan and infinities, of value and gradient. Printed, or
          shown by a notebook, it is a table with a bar for the norm of each gradient, on a logarithmic scale.

        Raises:
          RuntimeError: the tape is used up, or recorded nothing yet.

        >>> import jax.numpy as jnp
        >>> import tapejax as tf
        >>> w = {"first": jnp.full(2, 1e-4), "second": jnp.full(2, 3.0)}
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(w)
        ...     y = jnp.sum(w["first"] * w["second"])
        >>> [f"{row.gradient.norm:.2g}" for row in tape.summary(y, w)]
        ['4.2', '0.00014']
        """
        listing, seen = _seeing("listing", "summary")

        return seen.summary(self, target, sources, listing.namespaces())

    @in_recorded_types
    def draw(self, target: Nest = None, sources: Nest = None) -> Any:
        """A picture of the recording: what leads to `target` (by default everything), with the `sources` marked.

        What carries gradient is drawn in one colour, what does not in another; edges are labelled with shapes. A dotted red
        one is an assignment to a variable, which takes the value and not its gradient. Beyond 60 operations,
        neighbouring ones are folded together, and assignments left out. Needs Matplotlib.

        Args:
          target: a tensor or array, or a structure of them.
          sources: a structure of tensors, arrays and variables; by default all that the tape watches.

        Returns:
          A `Drawing`. A notebook shows it as SVG, ``drawing.savefig(file)`` writes it, ``drawing.figure`` is Matplotlib's.

        Raises:
          RuntimeError: the tape is used up, or recorded nothing yet.
          ImportError: Matplotlib is not installed.
        """
        drawing, listing = _seeing("drawing", "listing")

        recording = self._usable()
        names = listing.Names(recording, listing.namespaces())
        ends = [] if target is None else [leaf.array for leaf in targets_of(target).leaves]
        if sources is None:
            starts = listing.watching(recording, names)
        else:
            starts = [leaf.source(recording) for leaf in sources_of(sources).leaves]
        return drawing.draw(names, Query(recording, ends, starts))

    @in_recorded_types
    def jaxpr(self, target: Nest, sources: Nest) -> JaxProgram:
        """What leads from `sources` to `target`, as JAX sees it: ``jax.make_jaxpr`` of `as_function`.

        Raises:
          RuntimeError, TypeError: as `as_function`.

        >>> import tapejax as tf
        >>> x = tf.Variable(3.0)
        >>> with tf.GradientTape() as tape:
        ...     y = x * x
        >>> print(len(tape.jaxpr(y, x).eqns))
        1
        """
        starts = sources_of(sources)
        with recorder.outside():
            return jax.make_jaxpr(self.as_function(target, sources))(
                starts.pack_raw([leaf.array for leaf in starts.leaves])
            )

    @in_recorded_types
    def steps(self, target: Nest, sources: Nest, output_gradients: Nest = None) -> Any:
        """The backward pass of `gradient`, one operation at a time, from the target to the sources.

        Args:
          target, sources, output_gradients: as for `gradient`.

        Returns:
          A `Backward`. Iterate over its steps, each with the ``operation``, the ``line`` that ran it, the ``incoming``
          cotangents and the ``outgoing`` ones; ``gradients`` is what they add up to. The tape is not used up. Iterating
          computes what `gradient` computes: a ``jax.pure_callback`` in a function with a gradient is called again, as there.

        Raises:
          RuntimeError, TypeError, ValueError, LookupError: as `gradient`.

        >>> import tapejax as tf
        >>> x = tf.Variable(3.0)
        >>> with tf.GradientTape() as tape:
        ...     y = tf.sin(x) * 2.0
        >>> for step in tape.steps(y, x):
        ...     print(step.operation, [name for name, _ in step.outgoing])
        multiply ['t0']
        sin ['x']
        """
        listing, steps = _seeing("listing", "steps")

        return steps.Backward(self, target, sources, output_gradients, listing.namespaces())

    @in_recorded_types
    def play(self, target: Nest, sources: Nest, output_gradients: Nest = None, tangents: Nest = None) -> Any:
        """The recording as a page to step through: forward, value by value; backward, cotangent by cotangent.

        It shows the graph of `draw`, beside it the user's lines, and at each step of the backward pass what is added to the
        cotangent of which value, and why: the local derivative. *Forward mode* shows the tangents instead. A double-framed
        operation (a jitted function, a ``scan``, a ``cond``, an inner gradient) opens at a click. Buttons, a slider, the
        arrow keys and a presenter's clicker step; *Predict* covers each result until one asks for it. The
        address of the saved page has the step: ``tape.html#7`` leads to the seventh. Beyond 60 operations, neighbouring
        ones are one step. The page is one piece of HTML, which needs no server and no network; a notebook that is
        not trusted shows the picture of `draw`, for which Matplotlib is needed. The tape is not used up.

        Args:
          target, sources, output_gradients: as for `gradient`.
          tangents: the direction of forward mode, structured as `sources`; ones if None.

        Returns:
          A `Play`. A notebook plays it, ``save(file)`` writes the page, ``data`` is what it shows.

        Raises:
          RuntimeError, TypeError, ValueError, LookupError: as `gradient`.

        >>> import tapejax as tf
        >>> x = tf.Variable(3.0)
        >>> with tf.GradientTape() as tape:
        ...     y = x * x
        >>> page = tape.play(y, x)  # page.save("tape.html") writes it
        >>> print(page)
        <The tape of y: 1 operation, forward and backward; a notebook plays it, .save(file) writes the page>
        """
        listing, play, steps = _seeing("listing", "play", "steps")

        walk = steps.Backward(self, target, sources, output_gradients, listing.namespaces())
        return play.play(walk, walk.directions(tangents))

    @in_recorded_types
    def check_numerics(self, target: Nest, sources: Nest, output_gradients: Nest = None) -> None:
        """Looks for the first operation, forward or backward, whose value or cotangent is NaN or infinite.

        Forward it looks at all that `target` was computed from, in the order in which it ran; then at the cotangents, in
        the order of the backward pass. The tape is not used up.

        Raises:
          tf.errors.NonFiniteError: there is one (an `InvalidArgumentError`, as ``tf.debugging.check_numerics`` raises). The
            message names the operation and the line that ran it; ``error.entry``, ``error.line``, ``error.direction`` and
            ``error.value`` are for programs.

        >>> import jax.numpy as jnp
        >>> import tapejax as tf
        >>> x = tf.Variable([0.0, 4.0])
        >>> with tf.GradientTape() as tape:
        ...     y = jnp.where(x > 0.0, jnp.sqrt(x), 0.0)
        >>> tape.check_numerics(y, x)
        Traceback (most recent call last):
        tapejax.values.errors.NonFiniteError: backward: operation 1, sqrt ... makes ∂y/∂x ...
        """
        listing, steps = _seeing("listing", "steps")

        walk = steps.Backward(self, target, sources, output_gradients, listing.namespaces())
        steps.check_numerics(walk, [leaf.array for leaf in targets_of(target).leaves])


class _NotRecording:
    def __init__(self, tape: GradientTape):
        self._tape = tape
        self._paused: tuple[list[Recording], Recording] | None = None

    def __enter__(self) -> None:
        recording = self._tape._recording
        if recording is None:
            raise RuntimeError("Trying to stop recording a tape which is not recording: enter it first.")
        continuation = recorder.continuation_of(recording)
        if continuation is recording:
            self._tape._stop("stop")
            return
        for active in recorder.active_lists():
            if continuation in active:  # in a program that is being traced
                self._paused = active, continuation
                active.remove(continuation)
                return

    def __exit__(self, *exception: Any) -> None:
        if self._paused is None:
            self._tape._start("start")
        else:
            (active, continuation), self._paused = self._paused, None
            active.append(continuation)


def _same_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape


def _log_missing(what: str, found: Sequence[Array | None]) -> None:
    # TensorFlow's tape says nothing either unless logging asks for it; its optimizers warn.
    if missing := [str(i) for i, x in enumerate(found) if x is None]:
        message = "GradientTape.%s is None for source %s of %d: tape.explain(target, sources) says why"
        logger.debug(message, what, ", ".join(missing), len(found))


def _placed_as(source: Array, gradient: Array) -> Array:
    """`gradient`, spread over devices as `source` is. XLA chooses where it leaves it: often all of it on each of them."""
    if isinstance(gradient, Tracer) or isinstance(source, Tracer):
        return gradient
    place = source.sharding
    if type(place) is not jax.sharding.NamedSharding or place.is_equivalent_to(gradient.sharding, source.ndim):
        return gradient
    if place.spec.unreduced or place.spec.reduced:  # of the one the other is the cotangent
        return gradient
    return jax.device_put(gradient, place)


def _unconnected(value: UnconnectedGradients | str) -> UnconnectedGradients:
    try:
        return UnconnectedGradients(value)
    except ValueError:
        raise ValueError(
            f"Unknown value for unconnected_gradients: {value!r}. Expected UnconnectedGradients.NONE or .ZERO, or their "
            "values 'none' and 'zero'."
        ) from None


def _one_target(target: TensorLike) -> Leaf:
    leaf = leaf_of(target)
    if leaf is None:
        cure = cure_of(target, "target")
        raise TypeError(f"Argument `target` should be one Tensor, jax.Array or Variable, but is {target!r}.{cure}")
    return leaf


def _zeros_of(leaf: Leaf, shape: tuple[int, ...]) -> Array:
    """Zeros for a source: to an outer tape they are computed from it, as in TensorFlow."""
    if isinstance(leaf.value, Variable):
        reading.access(leaf.value)
    return recorder.apply(jnp.zeros_like, leaf.array, shape=shape)


def cotangents_of(targets: Sequence[Leaf], target: Nest, output_gradients: Nest) -> list[Array]:
    if output_gradients is None:
        return [recorder.apply(jnp.ones_like, leaf.array) if is_inexact(leaf.array) else None for leaf in targets]
    given = [output_gradients] if leaf_of(target) is not None else nest.flatten(output_gradients)
    if (
        isinstance(output_gradients, (list, tuple))
        and len(output_gradients) == 1
        and leaf_of(output_gradients[0]) is not None
    ):
        given = list(output_gradients)  # a list of one for a single target
    given = [part for x in given for part in _parts_of_module(x)]
    if len(given) != len(targets):
        raise ValueError(f"output_gradients: got {len(given)} for {len(targets)} target(s); one is needed for each.")
    return [_cotangent(leaf, x, i) for i, (leaf, x) in enumerate(zip(targets, given, strict=True))]


def _parts_of_module(x: Pytree) -> list[Any]:
    """The arrays of a module that is given for a module as the target; a list is a tensor here."""
    return [x] if x is None or nest.is_nested(x) else jax.tree.leaves(x, is_leaf=is_variable)


def _cotangent(leaf: Leaf, given: TensorLike | None, position: int) -> Array:
    if given is None:
        raise ValueError(f"output_gradients[{position}] is None; a tensor of shape {leaf.array.shape} is needed.")
    array = raw(given)
    if not is_inexact(leaf.array):
        return array  # looked at only where the target is a source, too
    if array.shape != leaf.array.shape or array.dtype != leaf.array.dtype:
        raise InvalidArgumentError(
            f"output_gradients[{position}] has shape {tuple(array.shape)} and dtype {array.dtype}; its target has shape "
            f"{tuple(leaf.array.shape)} and dtype {leaf.array.dtype}."
        )
    return array


def _cannot_watch(value: object) -> Exception:
    hint = " Make it a tensor, x = tf.constant(...), watch x, and compute with it in the block."
    cure = hint if isinstance(value, (int, float, complex, np.ndarray, np.generic)) else cure_of(value, "sources")
    return ValueError(
        f"Passed in object {value!r} of type {type(value).__name__!r}, not a Tensor, jax.Array, Variable or a structure "
        f"of them.{cure}"
    )
