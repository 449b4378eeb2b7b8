"""How operations and sweeps are run: the interface, and the way that needs nothing but `jax.jit`.

`tapejax.execution` is another way. It makes its own `Runner` the current one when tapejax is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from ..jaxprs.types import Function, JaxProgram, Params, Primitive, Value, Values

if TYPE_CHECKING:
    from .operation import Op
    from .primitives import TracedCall
    from .recording import Kept, Recording
    from .slicing import Program


class Runner:
    """Each operation is compiled when it is first run, and so is each operation's pullback."""

    def compiled(self, fn: Function, decided: Callable[[Function], object] | None = None) -> Function:
        """What runs `fn`, of arrays, now. ``decided(run)`` is called where another function may take its place for good."""
        return jax.jit(fn)

    def operation(
        self, plain: Callable[..., tuple[Op, Sequence[Any]]], primitive: Primitive, params: Params, args: Values
    ) -> tuple[Op, Sequence[Any]]:
        """``plain(primitive, params, args)``, the operation of a primitive and its inputs, or one that was run before."""
        return plain(primitive, params, args)

    def staged(self, known: TracedCall) -> Op:
        """The operation of a call that was traced, or one that was run before."""
        return known.plain()

    def arrays(self, inputs: Values) -> Sequence[Any] | None:
        """`inputs` with an array for each Python number that has been one before; None where they are to stay as they are."""
        return None

    def tries(self) -> bool:
        """Whether operations are run otherwise than compiled here and now."""
        return False

    def run(
        self, op: Op, inputs: Values, recordings: Sequence[Recording], program: JaxProgram, noted: Op, outputs: int
    ) -> tuple[Any, Kept | None]:
        """The results of `op`, a call of `program`, and what is kept of it for its pullback.

        It is recorded as `noted`, which gives its first `outputs` results.
        """
        return op.call(*inputs), None

    def sweep(self, sweep: Callable[..., list[Any]], program: Program, values: Values, *ends: Any) -> list[Any]:
        """``sweep(program, values, *ends)``, a reverse or forward sweep from cotangents or tangents `ends`."""
        return sweep(program, values, *ends)

    def rows(self, name: str, rows: Callable[..., list[Any]], program: Program, values: Values) -> list[Any]:
        """``rows(program, *values)``: the batch of sweeps of the Jacobian `name`."""
        return list(rows(program, *values))

    def batch(
        self, row: Function, count: Any, program: Program, values: Values, result_bytes: Any, axis: int = 0
    ) -> Any:
        """`row` of every index below `count`, stacked along `axis`: sweeps of `program`, whose results take so many bytes."""
        return jax.vmap(row, out_axes=axis)(jnp.arange(count))

    def placed(self, source: Value, gradient: Value) -> Value:
        """`gradient` on the devices of `source`."""
        return gradient


current = Runner()


def use(runner: Runner) -> None:
    """Has `runner` run what is recorded and differentiated from here on."""
    global current
    current = runner
