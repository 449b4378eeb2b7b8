"""``tf.debugging.enable_check_numerics``: a runner that looks at what each operation gives.

It sees what is run here: operations of ``tf``, what a tape records of JAX's, and each step of a backward pass. A `function`
runs as Python meanwhile, so that its operations are run here, too.
"""

from __future__ import annotations

import traceback
from typing import Any

import jax
import jax.numpy as jnp

from ...jaxprs.fence import BatchTracer, ConcreteArray
from ...jaxprs.types import Value, Values
from ...places import serves
from ...tape import active, runner
from ...tape.derivative import SweepsOp
from ...tape.operation import Op
from ...tape.recording import is_deleted
from ..values import reading
from ..values.errors import InvalidArgumentError
from ..values.shown import value_text

# They only move or choose elements, or put a constant in place. TensorFlow does not look at them either.
_MOVES = frozenset(
    """
    broadcast_in_dim concat concatenate copy dynamic_slice expand_dims fill full gather getitem identity matrix_transpose
    maximum minimum reshape slice squeeze stack take transpose unstack
    """.split()
)
_COUNTED = {"-Inf": jnp.isneginf, "+Inf": jnp.isposinf, "NaN": jnp.isnan}


class Checked(runner.Runner):
    """Runs operations as `inner` does, and raises at the first that gives a NaN or an infinity."""

    def __init__(self, inner: runner.Runner, stack_height_limit: int | None, path_length_limit: int | None):
        self.inner, self._height, self._length = inner, stack_height_limit, path_length_limit

    def run(self, op: Op, inputs: Values) -> Any:
        # a backward pass step by step, so that each step is seen
        outputs = op.fn(*inputs) if isinstance(op, SweepsOp) else self.inner.run(op, inputs)
        if op.name.strip("_") not in _MOVES and not reading.context.looking:
            flat = [*map(_of_all_rows, jax.tree.leaves(outputs))]
            with active.outside():
                for slot, x in enumerate(flat):
                    if _is_not_finite(x):
                        raise InvalidArgumentError(self._message(op, inputs, slot, flat))
        return outputs

    def _message(self, op: Op, inputs: Values, slot: int, outputs: Values) -> str:
        x = outputs[slot]
        name, derivative = _forward_name(op)
        counts = {what: int(is_bad(x).sum()) for what, is_bad in _COUNTED.items()}
        lines = [
            f'Detected Infinity or NaN in output {slot} of {derivative}op "{name}" (# of outputs: {len(outputs)})',
            f"  dtype: {x.dtype}",
            f"  shape: {x.shape}",
            *[f"  # of {what} elements: {count}" for what, count in counts.items() if count],
            f"  inputs ({len(inputs)}):",
            *[_described(i, given) for i, given in enumerate(inputs)],
            "  your code, the innermost line last:",
            *self._stack(),
        ]
        if derivative:
            lines.append(
                "  tape.check_numerics(target, sources) names the line of the forward pass that it belongs to."
            )
        return "\n".join(lines)

    def _stack(self) -> list[str]:
        frames = [frame for frame in traceback.extract_stack() if not serves(frame.filename)]
        height = len(frames) if self._height is None else self._height
        return [
            f"    {_shortened(frame.filename, self._length)}:{frame.lineno}, in {frame.name}: {frame.line}"
            for frame in frames[max(0, len(frames) - height) :]
        ]


def enable_check_numerics(stack_height_limit: int | None = 30, path_length_limit: int | None = 50) -> None:
    """Makes each operation raise that gives a NaN or an infinity, forward or backward, eagerly and inside a `function`.

    Looked at are the floating outputs, no complex ones, of ``tf``'s operations, of the steps of a backward pass, and of JAX's own
    operations in a tape's block or a `function`; elsewhere JAX's ``jax_debug_nans`` does that. Operations that only move elements
    may move a NaN, as in TensorFlow. A jitted function of JAX's is one operation: what is inside is not seen, but its results.

    Until `disable_check_numerics` each `function` runs as Python, operation by operation, and on all threads.

    Args:
      stack_height_limit: how many lines of your code, the innermost ones, an error shows; None for all.
      path_length_limit: how long the path of a file may be there; None for any length.

    Raises (at the operation):
      InvalidArgumentError: with the operation's name, dtype, shape, the number of bad elements, its inputs and your lines.

    >>> import tapejax as tf
    >>> tf.debugging.enable_check_numerics()
    >>> tf.math.log(tf.constant([-1.0, 0.0, 1.0]))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tapejax.tf.values.errors.InvalidArgumentError: Detected Infinity or NaN in output 0 of op "log" (# of outputs: 1)
      dtype: float32
      shape: (3,)
      # of -Inf elements: 1
      # of NaN elements: 1
    ...
    >>> tf.debugging.disable_check_numerics()
    """
    if not checks_numerics():
        runner.use(Checked(runner.current, stack_height_limit, path_length_limit))


def disable_check_numerics() -> None:
    """Undoes `enable_check_numerics`."""
    if isinstance(checked := runner.current, Checked):
        runner.use(checked.inner)


def checks_numerics() -> bool:
    """Whether `enable_check_numerics` is in force."""
    return isinstance(runner.current, Checked)


def _of_all_rows(x: Value) -> Value:
    """What `jax.vmap` has for `x`: the values of all rows."""
    return _of_all_rows(x.val) if isinstance(x, BatchTracer) else x


def _is_not_finite(x: Value) -> bool:
    if not isinstance(x, ConcreteArray) or is_deleted(x) or not jnp.issubdtype(x.dtype, jnp.floating):
        return False
    return not _all_finite(x)


_all_finite = jax.jit(lambda x: jnp.isfinite(x).all())


def _forward_name(op: Op) -> tuple[str, str]:
    """The name of an operation, or of what it is the derivative of, which the second word tells."""
    for ending in ("_pullback", "_pushforward"):
        if op.name.endswith(ending):
            return op.name.removesuffix(ending), "the derivative of "
    return op.name, ""


def _described(number: int, x: Value) -> str:
    """A line for an input; more where it is a matrix."""
    x = _of_all_rows(x)
    if not isinstance(x, ConcreteArray) or is_deleted(x) or jnp.issubdtype(x.dtype, jax.dtypes.extended):
        return f"    {number}: {getattr(x, 'aval', x)}"
    head = f"    {number}: {x.dtype} {x.shape} "
    return head + value_text(x, len(head))


def _shortened(path: str, limit: int | None) -> str:
    return path if limit is None or len(path) <= limit else f"...{path[len(path) - limit :]}"
