"""The methods that show what a tape holds: its classes are given them when tapejax is imported.

Each loads what it needs when it is called, and leaves the tape as it is.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import jax

from ...jaxprs.dependence import has_tangent
from ...jaxprs.types import JaxProgram
from ...tape import active
from ...tape.accumulator import ForwardAccumulator
from ...tape.gradient_tape import GradientTape
from ...tape.query import Method, Query, in_recorded_types
from ...tape.recording import Entry, Recording
from ...tape.structures import sources_of, targets_of
from ...tf.values import reading
from ...tf.values.types import Nest
from ..writing.graph import ValueMap, ValueSet


def looking(method: Method) -> Method:
    """`method`, in recorded types; a NaN that it meets is what it looks for, and no error."""

    @functools.wraps(method)
    def run(*args: Any, **kwargs: Any) -> Any:
        return reading.context.setting(looking=True).call(method, *args, **kwargs)

    return in_recorded_types(cast(Method, run))


class Seen(GradientTape):
    """What `GradientTape` is given."""

    def __bool__(self) -> bool:
        return True  # with nothing recorded, too, where the length is 0

    def __len__(self) -> int:
        """How many operations were recorded."""
        return len(_entries(self))

    def __iter__(self) -> Iterator[Entry]:
        return iter(_entries(self))

    def __getitem__(self, index: int | slice) -> Any:
        """The recorded operations: an `Entry` with ``op``, ``inputs``, ``outputs`` and ``line``, or a list of them."""
        return _entries(self)[index]

    @looking
    def as_function(self, target: Nest, sources: Nest, arguments: Nest = (), flat: bool = False) -> Any:
        """The pure function from `sources` to `target` that the tape recorded.

        Args:
          target: a tensor or array, or a structure of them.
          sources: a structure of tensors, arrays and variables.
          arguments: what else varies, such as batches, labels, keys and learning rates: tensors, arrays and variables, as a
            list, a tuple, or a dict from names to values. Each becomes a parameter after `sources`, in this order, of the
            shape and dtype that it has here. What was computed of an argument before the block is another value. Of a
            plain ``jax.Array`` the tape does not see that Python takes a number (``float(x)``): pass a `Tensor` where in doubt.
            One may be a pytree of tensors, ``{"state": {"mean": mean}}``: it is a parameter as a whole.
          flat: whether the code has one line for each operation, without the functions of the recorded program.

        Returns:
          A function of one argument, structured as `sources`, and of `arguments`, by position or by name, that returns
          arrays structured as `target`. What it is given has the shapes and dtypes that were recorded; any other is a
          TypeError. Its `jax.grad` at `sources` is the tape's gradient; what the tape did not see depend on the sources is
          constant.
          Printed, it is code: plain ``jnp`` that runs where it is pasted (after ``import jax``, ``import jax.numpy as
          jnp`` and ``import numpy as np``). Functions that the block called are functions in it, and derivatives that it took
          are `jax.grad` and its kin; a notebook shows it beside the recorded lines. Arrays too large to write down are names
          in it: its ``constants``. Variables with paths, as Keras's, are a tree in it, ``params["dense"]["kernel"]``: its
          ``tree`` makes that of their list.

        Raises:
          RuntimeError: the tape is used up, or recorded nothing yet.
          TypeError: `target`, `sources` or an argument holds something that is no tensor, array or variable.
          ValueError: `target` does not depend on an argument, or depends on it through what was not recorded: a value that
            Python looked at or that went to NumPy, a variable that was assigned to; an argument is the same array as
            another or as a source; or a source was computed from another, or assigned to between two reads.

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
            y = x**2
            return y
        <BLANKLINE>

        >>> with tf.GradientTape() as outer:
        ...     outer.watch(x)
        ...     with tf.GradientTape() as inner:
        ...         inner.watch(x)
        ...         y = jnp.sin(x) * x
        ...     slope = inner.gradient(y, x)
        ...     loss = slope**2
        >>> print(outer.as_function(loss, x))
        def f(x):
            slope = jax.grad(lambda x: jnp.sin(x) * x)(x)
            loss = slope**2
            return loss
        <BLANKLINE>

        >>> rate = tf.constant(0.5)
        >>> with tf.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * rate
        >>> f = tape.as_function(y, x, arguments={"rate": rate})
        >>> print(f(x, rate=2.0))
        6.0
        """
        return self._as_function(target, sources, arguments, ValueMap(), flat)

    def _as_function(
        self,
        target: Nest,
        sources: Nest,
        arguments: Nest,
        called: ValueMap[str],
        flat: bool = False,
        parameter: str | None = None,
        replayable: bool = True,
        spaces: Sequence[dict[str, Any]] | None = None,
        stores: bool = True,
    ) -> Any:
        """`as_function`. `called`: names for arrays; `parameter`: that of the first parameter; `replayable`:
        whether what was not recorded is looked for; `spaces`: where names are, if not in the code that is running; `stores`:
        whether the line of the user's that recorded stores what was recorded."""
        from . import iterated, listing, parameters, source, steps, transforms, trees

        ends, starts = targets_of(target), sources_of(sources)
        recording = self._usable()
        wanted = [leaf.array for leaf in (*ends.leaves, *starts.leaves)]
        recording = iterated.whole(recording.folded()) if flat else transforms.folded(recording, wanted)
        leaf_sources = [leaf.source(recording) for leaf in starts.leaves]
        # what has no gradient cannot be watched, and is a source all the same
        leaf_sources = [x if has_tangent(x.array) else x._replace(watched=True) for x in leaf_sources]
        sought = [leaf.array for leaf in ends.leaves], leaf_sources
        named = listing.Names(recording, spaces)
        rest = parameters.Parameters(recording, arguments, starts.leaves, named)
        query = Query(recording, sought[0], [*sought[1], *rest.sources()], include_nondifferentiable=True)
        (program, values), held, owner = query.program(), query.arrays, query.owners
        if replayable:
            rest.require_replayable(query, held[: len(held) - len(rest.all)])
        parameters.require_independent(program, owner)

        tree = source.tree_paths(sources)

        def function(*args: Any, **kwargs: Any) -> Nest:
            sources, more = rest.arrays_of(args, kwargs)
            if tree is not None and isinstance(sources, Mapping):
                sources = [trees.part_at(sources, path) for path in tree]
            arrays_in = [leaf.array for leaf in sources_of(sources).leaves]
            if len(arrays_in) != len(starts.leaves):
                raise ValueError(
                    f"sources: {len(starts.leaves)} arrays were expected, as on the tape; got {len(arrays_in)}"
                )
            for i, (x, leaf) in enumerate(zip(arrays_in, starts.leaves, strict=True)):
                parameters.require_type(f"sources[{i}]" if len(arrays_in) > 1 else "sources", x, leaf.array)
            arrays_in += more
            out = steps.replay(program, values, [arrays_in[i] for i in owner])
            return ends.pack_raw([leaf.array if x is None else x for leaf, x in zip(ends.leaves, out, strict=True)])

        arrays = [*values, *(leaf.array for leaf in starts.leaves)]
        arrays += [x for entry in recording.entries for x in entry.inputs if isinstance(x, jax.Array)]
        block = ValueSet(x for entry in recording.entries if len(entry.calls) < 2 and not stores for x in entry.outputs)
        own = named.only([x for x in arrays if x not in block])
        names, unnamed = ValueMap([*own.items(), *called.items()]), named.unnamed(arrays)
        first = parameter or ("params" if tree is not None or source.is_tree(sources, names) else "sources")
        parts = source.RecordedProgram(
            rest.all,
            program,
            values,
            recording,
            owner,
            sources,
            starts,
            target,
            ends,
            names,
            unnamed,
            first,
            stores=stores,
        )
        return source.TapeFunction(
            function, functools.partial(source.printed, parts, flat), rest.signature, tree, parts
        )

    def __str__(self) -> str:
        from . import listing

        return listing.text_table(self, _seen(self))

    def __repr__(self) -> str:
        from . import listing

        return f"<{listing.heading(self, _seen(self))}>"

    def _repr_html_(self) -> str:
        from . import listing

        return listing.html_table(self, _seen(self))

    @looking
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
        from . import explain

        return explain.explain(self, target, sources)

    @looking
    def memory(self, target: Nest, sources: Nest) -> Any:
        """The bytes that the tape keeps for the backward pass, by line of your code, largest first.

        Args:
          target: a tensor or array, or a structure of them.
          sources: a structure of tensors, arrays and variables.

        Returns:
          A `Memory`: printed, or shown by a notebook, a table with bars. For each line the bytes that are freed with the tape,
          those that the gradient of `target` with respect to `sources` reads, and what `recompute_grad` around the line's
          function would save. What nested tapes both keep is freed with the last of them.

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
        from . import memory as seen

        recording = self._usable()
        ends = [leaf.array for leaf in targets_of(target).leaves]
        starts = [leaf.source(recording) for leaf in sources_of(sources).leaves]
        return seen.memory(recording, ends, starts)

    @looking
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
        from . import summary as seen

        return seen.summary(self, target, sources)

    @looking
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
        from . import drawing, listing

        recording = self._usable().folded()
        names = listing.Names(recording)
        ends = [] if target is None else [leaf.array for leaf in targets_of(target).leaves]
        if sources is None:
            starts = listing.watching(recording, names)
        else:
            starts = [leaf.source(recording) for leaf in sources_of(sources).leaves]
        return drawing.draw(names, Query(recording, ends, starts))

    @looking
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
        with active.outside():
            return jax.make_jaxpr(self.as_function(target, sources))(
                starts.pack_raw([leaf.array for leaf in starts.leaves])
            )

    @looking
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
        from . import steps

        return steps.Backward(self, target, sources, output_gradients)

    @looking
    def play(
        self,
        target: Nest,
        sources: Nest,
        output_gradients: Nest = None,
        tangents: Nest = None,
        *,
        split: bool = False,
    ) -> Any:
        """The recording as a page to step through: forward, value by value; backward, cotangent by cotangent.

        It shows the graph of `draw`, beside it the user's lines, and at each step of the backward pass what is added to the
        cotangent of which value, and why: the local derivative. *Forward mode* shows the tangents instead. A double-framed
        operation (a jitted function, a ``scan``, a ``cond``, an inner gradient) opens at a click. Buttons, a slider, the
        arrow keys and a presenter's clicker step; *Predict* covers each result until one asks for it. *Beside JAX's
        programs* sets three listings next to the tape, which step with it: the jaxpr, its linear part and the transposed of
        that, from ``jax.make_jaxpr``, ``jax.linearize`` and ``jax.linear_transpose``; with ``split=True`` the page begins so. The
        address of the saved page has the step: ``tape.html#7`` leads to the seventh. Beyond 60 operations, neighbouring
        ones are one step. The page is one piece of HTML, which needs no server and no network; a notebook that is
        not trusted shows the picture of `draw`, for which Matplotlib is needed. The tape is not used up.

        Args:
          target, sources, output_gradients: as for `gradient`.
          tangents: the direction of forward mode, structured as `sources`; ones if None.
          split: whether the page begins with JAX's programs beside the tape.

        Returns:
          A `Play`. A notebook plays it, ``save(file)`` writes the page, ``data`` is what it shows.

        Raises:
          RuntimeError, TypeError, ValueError, LookupError: as `gradient`.
          ValueError: `split`, and JAX has no program of the recording: a source is computed from another or is an integer.

        >>> import tapejax as tf
        >>> x = tf.Variable(3.0)
        >>> with tf.GradientTape() as tape:
        ...     y = x * x
        >>> page = tape.play(y, x)  # page.save("tape.html") writes it
        >>> print(page)
        <The tape of y: 1 operation, forward and backward; a notebook plays it, .save(file) writes the page>
        """
        from . import play, steps

        walk = steps.Backward(self, target, sources, output_gradients)
        return play.play(walk, walk.directions(tangents), split)

    @looking
    def check_numerics(self, target: Nest, sources: Nest, output_gradients: Nest = None) -> None:
        """Looks for the first operation, forward or backward, whose value or cotangent is NaN or infinite.

        Forward it looks at all that `target` was computed from, in the order in which it ran; then at the cotangents, in
        the order of the backward pass. The tape is not used up. Inside a loop it names the round, counted from 1 also where
        the backward pass begins with the last one; inside a loop, a branch or a jitted function the operation and its line.

        Raises:
          tf.errors.NonFiniteError: there is one (an `InvalidArgumentError`, as ``tf.debugging.check_numerics`` raises). The
            message names the operation and the line that ran it, and where versions of JAX differ in it the row of
            docs/newest.md; ``error.entry``, ``error.line``, ``error.direction`` and ``error.value`` are for programs.

        >>> import jax.numpy as jnp
        >>> import tapejax as tf
        >>> x = tf.Variable([0.0, 4.0])
        >>> with tf.GradientTape() as tape:
        ...     y = jnp.where(x > 0.0, jnp.sqrt(x), 0.0)
        >>> tape.check_numerics(y, x)
        Traceback (most recent call last):
        tapejax.tf.values.errors.NonFiniteError: backward: operation 1, sqrt ... makes ∂y/∂x ...
        """
        from . import steps

        if (error := steps.first_not_finite(steps.Backward(self, target, sources, output_gradients))) is not None:
            raise error


class SeenAccumulator(ForwardAccumulator):
    """What `ForwardAccumulator` is given."""

    @looking
    def explain(self, primals: Nest) -> Any:
        """Says why `jvp` of `primals` is what it is: along which path it comes from each primal, or why it is None.

        Args:
          primals: as for `jvp`: a tensor or array that the block computed, or a structure of them.

        Returns:
          An `Explanation`, as of `GradientTape.explain`, with a report for each primal of the accumulator's.

        Raises:
          TypeError: `primals` holds something that is no tensor.

        >>> import tapejax as tf
        >>> x = tf.constant(2.5)
        >>> with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as acc:
        ...     y = tf.round(x) * 3.0
        >>> print(acc.jvp(y), acc.explain(y)[0].kinds)
        None ('no derivative',)
        """
        from . import explain

        return explain.explain(self, primals, [leaf.value for leaf in self._sources.leaves])


def _seen(tape: GradientTape) -> Recording | None:
    return None if tape._recording is None else tape._recording.folded()


def _entries(tape: GradientTape) -> list[Entry]:
    return [] if (seen := _seen(tape)) is None else list(seen.entries)


def _extend(kind: type, methods: type) -> None:
    """Gives the class `kind` the methods of another."""
    for name, method in vars(methods).items():
        if callable(method):
            for each in (method, inspect.unwrap(method)):
                each.__qualname__ = f"{kind.__name__}.{name}"  # as Python's errors name it
            setattr(kind, name, method)


_extend(GradientTape, Seen)
_extend(ForwardAccumulator, SeenAccumulator)
