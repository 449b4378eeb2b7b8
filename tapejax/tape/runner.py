"""How operations are run: the interface, one method, and a default that needs nothing but JAX.

`tapejax.execution` has another `Runner`, which it makes the current one when it is imported: with the first name of `tapejax`
that is used. A runner of yours that is current then stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax

from ..jaxprs.types import Values

if TYPE_CHECKING:
    from .operation import Op


class Runner:
    """An operation runs as it says itself, or else compiled by `jax.jit`.

    Everything that a tape runs passes through `run`: what is recorded, its derivatives, the sweeps. A sweep is one operation
    (``gradient``); where it goes step by step, the steps pass through `run` inside it. An Op keeps what a runner made of it in
    its `prepared`, under the runner: another runner begins with its next call.

    One that watches hands on to the runner that was current, which may be a faster one than this:

    >>> import collections
    >>> from tapejax.tape import GradientTape, runner
    >>> class Counting(runner.Runner):
    ...     def run(self, op, inputs):
    ...         counts[op.name] += 1
    ...         return before.run(op, inputs)
    >>> counts, before = collections.Counter(), runner.current
    >>> runner.use(Counting())
    >>> x = jax.numpy.array(2.0)
    >>> with GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = jax.lax.sin(x) * x
    >>> runner.use(before)
    >>> dict(counts)
    {'sin': 1, 'multiply': 1}
    """

    def run(self, op: Op, inputs: Values) -> Any:
        """What ``op.fn(*inputs)`` gives, an array or a pytree of arrays, under JAX's current trace."""
        ready = op.prepared.get(self)
        if ready is None:
            ready = op.prepared[self] = op.call or jax.jit(op.fn)
        return ready(*inputs)


current = Runner()


def use(runner: Runner) -> None:
    """Makes `runner` the current one: it runs all operations from the next call on, whenever they were made."""
    global current
    current = runner
