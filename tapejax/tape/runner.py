"""How operations are run: the interface, one method, and a default that needs nothing but JAX.

`tapejax.execution` has another `Runner`, which it makes the current one when tapejax is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax

from ..jaxprs.types import Values

if TYPE_CHECKING:
    from .operation import Op


class Runner:
    """An operation runs as it says itself, or else compiled by `jax.jit`.

    Everything that a tape runs passes through `run`: what is recorded, its derivatives, the sweeps. An Op keeps what a runner
    made of it in its `prepared`, under the runner: another runner begins with its next call.
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
