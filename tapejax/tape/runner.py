"""How operations and sweeps are run: the interface, with methods that need nothing but JAX.

`tapejax.execution` has another `Runner`, which it makes the current one when tapejax is imported.
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
    """Functions are compiled by `jax.jit`; a primitive is run by JAX as it came, and its derivative operation by operation.

    Everything that a tape runs passes through `compiled` (an Op made of a function, and its derivatives), `operation` (a
    primitive) or `staged` (a traced call), which return what runs it: once for each Op, not at each run.
    """

    def compiled(self, fn: Function, decided: Callable[[Function], object] | None = None) -> Function:
        """What runs `fn`, a function of arrays. ``decided(run)`` may be called once: from then on `run` runs it."""
        return jax.jit(fn)

    def operation(
        self, plain: Callable[..., tuple[Op, Sequence[Any]]], primitive: Primitive, params: Params, args: Values
    ) -> tuple[Op, Sequence[Any]]:
        """The operation of a primitive, and its inputs: a known one, or ``plain(primitive, params, args)``, a new one."""
        return plain(primitive, params, args)

    def staged(self, known: TracedCall) -> Op:
        """The operation of a traced call: a known one, or ``known.plain()``, a new one."""
        return known.plain()

    def arrays(self, inputs: Values) -> Sequence[Any] | None:
        """`inputs` with arrays in place of Python numbers that came before; None if they must stay as they are."""
        return None

    def by_operations(self, fn: Function, /, *args: Any, **kwargs: Any) -> Any:
        """``fn(*args, **kwargs)``, Python that runs operations, most of them for once."""
        return fn(*args, **kwargs)

    def run_program(
        self, op: Op, inputs: Values, recordings: Sequence[Recording], program: JaxProgram, noted: Op
    ) -> tuple[Any, Kept | None]:
        """Runs `op`, a call of a jitted function's `program`: its results, and what is kept of the call for its pullback.

        `recordings` will have it as `noted`, which gives the first of these results, or all.
        """
        return op.call(*inputs), None

    def sweep(self, sweep: Callable[..., list[Any]], program: Program, values: Values, *ends: Any) -> list[Any]:
        """``sweep(program, values, *ends)``: a reverse or forward sweep. `ends`: its cotangents or tangents, if given."""
        return sweep(program, values, *ends)

    def rows(self, name: str, rows: Callable[..., list[Any]], program: Program, values: Values) -> list[Any]:
        """``rows(program, *values)``: the batch of sweeps for a ``"jacobian"`` or a ``"batch_jacobian"``."""
        return list(rows(program, *values))

    def batch(
        self, row: Function, count: Any, program: Program, values: Values, result_bytes: Any, axis: int = 0
    ) -> Any:
        """`row` of each index below `count`, stacked along `axis`: sweeps of `program`. `result_bytes`: of all the results."""
        return jax.vmap(row, out_axes=axis)(jnp.arange(count))

    def placed(self, source: Value, gradient: Value) -> Value:
        """`gradient` on the devices of `source`."""
        return gradient


current = Runner()


def use(runner: Runner) -> None:
    """Makes `runner` the current one: it runs what is recorded and differentiated from here on."""
    global current
    current = runner
