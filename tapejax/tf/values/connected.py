"""Functions that are connected by a derivative of zero: their gradient is zeros, where JAX's would be None."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...jaxprs import dependence
from ...jaxprs.dependence import Links, has_tangent
from ...jaxprs.types import Positions, Value, Values
from ...tape.operation import Op
from ...tape.recording import Entry


class ZeroGradientOp(Op):
    """An operation whose derivative is zero, not ``None``."""

    __slots__ = ()

    def traced(self, inputs: Values) -> Any:
        return connected(super().traced(inputs), inputs)

    def _find_links(self, entry: Entry, perturbed: Positions | None = None) -> Links:
        return Links(dependence.everything(entry.inputs, entry.outputs), False)


def zero_gradient(fn: Callable) -> Callable:
    """Marks `fn`, whose derivative is zero, as connected: its gradient is zeros, not ``None``."""
    fn.kind_of_op = ZeroGradientOp  # type: ignore[attr-defined]
    return fn


def connected(outputs: Any, inputs: Iterable[Value]) -> Any:
    """`outputs` of a marked function, made to depend on `inputs` with a derivative of zero, for JAX to see in a program."""

    def from_inputs(y: Value) -> Value:
        for x in inputs:
            if has_tangent(x) and has_tangent(y):
                unused = x if np.shape(x) == y.shape else jnp.sum(jnp.ravel(x)[:1])
                unused = unused if jnp.iscomplexobj(y) else jnp.real(unused)
                y = jnp.where(False, lax.convert_element_type(unused, y.dtype), y)
        return y

    return jax.tree.map(from_inputs, outputs)
