"""Operations with a pullback of their own, each for one call: a custom gradient's, or one that raises why there is none."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from ..jaxprs import dependence
from ..jaxprs.dependence import Links, has_tangent
from ..jaxprs.derivatives import restricted
from ..jaxprs.fence import zeros_of
from ..jaxprs.types import Function, Values
from . import active, dispatch, runner
from .operation import Op, PythonOp, apply
from .query import Query
from .recording import Recording
from .sweep import sweep

if TYPE_CHECKING:
    from .recording import Entry
    from .slicing import Step

# From the cotangents of all outputs to those of the inputs; None for one that has none.
Pullback = Callable[[Sequence[Any]], Sequence[Any]]


class PullbackOp(PythonOp):
    """An operation that is differentiated by calling `pull`.

    Args:
      results: how many of its first inputs are the results of the user's function. The outputs are copies of these, and no
        gradient goes back to them.
    """

    __slots__ = ("pull", "results")

    def __init__(self, name: str, fn: Function, pull: Pullback, call: Function | None = None, results: int = 0):
        super().__init__(name, fn, call)
        self.pull = pull
        self.results = results

    def links(self, entry: Entry, kinds: tuple[Any, ...], active_ins: tuple[int, ...]) -> Links:
        return Links(dependence.everything(entry.inputs, entry.outputs, self.results), False)

    def pull_back(self, step: Step, inputs: Values, cotangents: dict[int, Any]) -> Sequence[Any]:
        # The user's Python runs under the current trace, so that outer tapes record it.
        every = [cotangents.get(j) for j in range(len(step.outs))]
        for j in range(self.results):
            if every[j] is None:
                every[j] = apply(jnp.zeros_like, inputs[j])
        back = self.pull(every)
        return [back[i] for i in step.active_ins]

    def push_forward(self, step: Step, inputs: Values, tangents: dict[int, Any]) -> Sequence[Any]:
        # The pullback is linear, and its own pullback is its transpose: the pushforward. Taken at ones, as by TensorFlow.
        cotangents = [apply(jnp.ones_like, x) for x in inputs[: self.results]]
        recording = Recording(watch_accessed=False)
        for x in cotangents:
            recording.watch(x)
        back = active.also(recording, self.pull, cotangents)
        reached = [i for i in tangents if back[i] is not None]
        query = Query(recording, [back[i] for i in reached], cotangents)
        out = sweep(*query.program(), [tangents[i] for i in reached])
        return [out[j] for j in step.active_outs]


class CustomOp(Op):
    """What a `PullbackOp` with results does at any inputs: traced, with its gradient. `results` is as there."""

    __slots__ = ("results",)

    def __init__(self, op: PullbackOp):
        super().__init__(op.name, op.fn)
        self.results = op.results


def refuse_ref(*_: Any) -> Any:
    """The pullback of an operation on a ``jax.Ref``, or on another value that changes in place; and what runs it again."""
    raise LookupError(
        "gradient registry has no entry for: an operation on a jax.Ref, or on a value that holds some. It changes in place, "
        "which a tape follows only inside one jitted function: make, write and read it in a function under jax.jit that the "
        "block calls, or use a Variable and its assign()."
    )


def refuse_compiled(*_: Any) -> Any:
    """The pullback of a function compiled ahead of time."""
    raise TypeError(
        "Cannot differentiate a function that was lowered and compiled ahead of time, for one signature. Call the jitted "
        "function itself inside the tape's block, or compile the whole step, with the tape in it."
    )


def without_derivative(op: Op, constants: int = 0) -> PullbackOp:
    """An operation that runs `op` without its first `constants` inputs and refuses a gradient.

    It is for an `op` that may give something else at each run: a derivative runs it once more, and would be of other values.
    """

    def refuse(cotangents: Values) -> Sequence[Any]:
        raise LookupError(
            f"gradient registry has no entry for: {op.name}, a compiled program that asks Python for something as it runs "
            "(random numbers of tf.random, io_callback). It would be given something else in the backward pass. Decorate the "
            "function with tapejax.function in place of jax.jit, use tf.while_loop or tf.map_fn in place of lax.scan, or pass "
            "what it asks for in as an argument (tf.random.stateless_normal with a seed)."
        )

    fn, call = (functools.partial(call_without, constants, function) for function in (op.fn, op.call or op.fn))
    return PullbackOp(op.name, fn, refuse, call)


def differentiated_as_it_runs(op: Op, fn: Function, constants: int) -> PullbackOp:
    """As `without_derivative`, but with a gradient where JAX has one: `fn`, of all inputs, is run once, by `jax.vjp`.

    What Python answered is a residual then. There is no second derivative, which would need it, too.
    """
    refusing = without_derivative(op, constants)
    of_run: list[Any] = []  # the inputs, which of them carry gradient, the outputs, and JAX's pullback

    def call(*inputs: Any) -> Any:
        of = [i for i, x in enumerate(inputs) if isinstance(x, jax.Array) and has_tangent(x)]
        try:
            outputs, back = jax.vjp(restricted(fn, inputs, of), *[inputs[i] for i in of])
        except (ValueError, TypeError, NotImplementedError):  # what is asked depends on what carries gradient
            return runner.current.run(refusing, inputs)
        of_run[:] = [inputs, of, outputs, back]
        return outputs

    def pull(cotangents: Sequence[Any]) -> Sequence[Any]:
        if not of_run:
            return refusing.pull(cotangents)
        inputs, of, outputs, back = of_run
        seeds = [
            zeros_of(jax.typeof(y).to_tangent_aval()) if ct is None else ct
            for y, ct in zip(outputs, cotangents, strict=True)
        ]
        once = PullbackOp(
            f"{op.name}_pullback", refusing.fn, refusing.pull, lambda *flat: back(list(flat[-len(seeds) :]))
        )
        gradient_of = dict(zip(of, dispatch.run(once, (*inputs, *seeds)), strict=True))
        return [gradient_of.get(i) for i in range(len(inputs))]

    return PullbackOp(op.name, refusing.fn, pull, call)


def call_without(count: int, fn: Function, *inputs: Any) -> Any:
    """`fn` of the inputs without the first `count`."""
    return fn(*inputs[count:])
