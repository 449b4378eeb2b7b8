"""Gradients registered by the name of an operation: `RegisterGradient`, `no_gradient`, and operations that have none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn

import jax

from ...jaxprs.dependence import has_tangent
from ...tape import rules
from ...tape.structures import conjugate
from ..values.conversion import raw
from ..values.tensor import Tensor
from ..values.types import Array


class RegisterGradient:
    """Decorator that gives a gradient to an operation that has none.

    The function gets the operation (its ``inputs``, ``outputs``, ``type``) and the cotangents of its outputs, and returns
    those of its inputs (None: no gradient). It is used wherever a tape recorded an operation of that name, at any order.

    Args:
      op_type: the operation's name, as the `LookupError` and the printed tape say it.

    Raises:
      TypeError: `op_type` is not a string.
      KeyError: there is a gradient of that name already.

    >>> import tapejax as tf
    >>> @tf.RegisterGradient("AnOperationOfMine")
    ... def gradient(op, dy):
    ...     return dy * op.inputs[0]
    """

    def __init__(self, op_type: str):
        if not isinstance(op_type, str):
            raise TypeError(f"op_type must be a string, got {op_type!r}")
        self._op_type = op_type

    def __call__(self, f: Callable) -> Callable:
        _register(self._op_type, f)
        return f


def no_gradient(op_type: str) -> None:
    """Declares that an operation carries no gradient: sources behind it are not connected. See `RegisterGradient`."""
    if not isinstance(op_type, str):
        raise TypeError(f"op_type must be a string, got {op_type!r}")
    _register(op_type, None)


def _register(name: str, f: Callable | None) -> None:
    def rule(inputs: Sequence[Array], outputs: Sequence[Array], cotangents: Sequence[Array]) -> list[Array | None]:
        seen = Operation(name, [Tensor(x) for x in inputs], [Tensor(x) for x in outputs])
        returned = f(seen, *(Tensor(conjugate(c)) for c in cotangents))  # type: ignore[misc]
        gradients = list(returned) if isinstance(returned, (list, tuple)) else [returned]
        if len(gradients) != len(inputs):
            return gradients  # refused with the numbers
        pairs = [(g, x, g is not None and has_tangent(x)) for g, x in zip(gradients, inputs, strict=True)]
        return [conjugate(raw(g, dtype_hint=x.dtype)) if moves else None for g, x, moves in pairs]

    rules.register(name, None if f is None else rule)


class Operation(NamedTuple):
    """What a registered gradient function is given of the operation."""

    type: str
    inputs: list[Tensor]
    outputs: list[Tensor]

    @property
    def name(self) -> str:
        return self.type


def opaque(name: str) -> Callable[[Callable], Callable]:
    """Decorator for a function of raw arrays that is an operation without a gradient, until one is registered."""

    def decorate(fn: Callable) -> Callable:
        differentiable = jax.custom_vjp(fn)

        def forward(*inputs: Array) -> tuple[Array, tuple[Array, ...]]:
            return differentiable(*inputs), inputs

        def backward(_: tuple, __: Array) -> NoReturn:
            raise LookupError(
                f"gradient registry has no entry for: {name}. Register one with tapejax.RegisterGradient({name!r}), or "
                "write the computation with operations that have a gradient."
            )

        differentiable.defvjp(forward, backward)
        differentiable.__name__ = name  # type: ignore[attr-defined]  # what the tape shows
        return differentiable

    return decorate
