"""Gradients registered by the name of an operation: `RegisterGradient`, `no_gradient`, and operations that have none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from .recorder import Op
from .structures import conjugate
from .values import Tensor, raw

_registry: dict[str, Callable | None] = {}
_cached_by_name: list[Callable[[], None]] = []


def forget_on_registration(forget: Callable[[], None]) -> None:
    """Has `forget()` called whenever a gradient is registered: a cache that depends on the registry clears itself."""
    _cached_by_name.append(forget)


class RegisterGradient:
    """Decorator that gives a gradient to an operation that has none.

    The function gets the operation (its ``inputs``, ``outputs``, ``type``) and the cotangents of its outputs, and returns
    those of its inputs (None: no gradient). It is used wherever a tape meets an operation of that name, at any order.

    Args:
      op_type: the operation's name, as the `LookupError` and the printed tape say it.

    Raises:
      TypeError: `op_type` is no string.
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


def _register(name: str, rule: Callable | None) -> None:
    if name in _registry:
        raise KeyError(f"Registering two gradient with name {name!r}! Its gradient was registered before.")
    _registry[name] = rule
    # what was compiled without it is out of date
    for forget in _cached_by_name:
        forget()


class Operation(NamedTuple):
    """What a registered gradient function sees of the operation."""

    type: str
    inputs: list[Any]
    outputs: list[Any]

    @property
    def name(self) -> str:
        return self.type


def opaque(name: str) -> Callable[[Callable], Callable]:
    """Decorator for a function of raw arrays that is an operation without a gradient, until one is registered."""

    def decorate(fn: Callable) -> Callable:
        differentiable = jax.custom_vjp(fn)

        def forward(*inputs: Any) -> tuple[Any, Any]:
            return differentiable(*inputs), inputs

        def backward(_: Any, __: Any) -> Any:
            raise LookupError(
                f"gradient registry has no entry for: {name}. Register one with tapejax.RegisterGradient({name!r}), or "
                "write the computation with operations that have a gradient."
            )

        differentiable.defvjp(forward, backward)
        differentiable.__name__ = name  # type: ignore[attr-defined]  # what the tape shows
        return differentiable

    return decorate


def runs_python(op: Op) -> bool:
    """Whether the derivative of `op` runs Python of the user's, which may do something else each time: it is not kept."""
    return op.eager or _registry.get(op.name) is not None


def differentiable(op: Op) -> Callable:
    """`op.fn`, with the gradient that was registered for its name, if one was."""
    if op.name not in _registry:
        return op.fn
    rule = _registry[op.name]
    if rule is None:
        return lambda *inputs: jax.tree.map(jax.lax.stop_gradient, op.fn(*inputs))
    return _with_rule(op, rule)


def _with_rule(op: Op, rule: Callable) -> Callable:
    def flat(*inputs: Any) -> list[Any]:
        return jax.tree.leaves(op.fn(*inputs))

    def forward(*inputs: Any) -> tuple[Any, Any]:
        outputs = wrapped(*inputs)  # with its rule: a higher derivative comes this way again
        return outputs, (inputs, outputs)

    def backward(residuals: Any, cotangents: Any) -> Any:
        inputs, outputs = residuals
        seen = Operation(op.name, [Tensor(x) for x in inputs], [Tensor(x) for x in outputs])
        given = rule(seen, *(Tensor(conjugate(c)) for c in cotangents))
        gradients = list(given) if isinstance(given, (list, tuple)) else [given]
        if len(gradients) != len(inputs):
            raise ValueError(
                f"the gradient registered for {op.name} returned {len(gradients)} gradients for {len(inputs)} inputs."
            )
        return tuple(
            None if g is None or not _is_inexact(x) else conjugate(raw(g, dtype_hint=x.dtype))
            for g, x in zip(gradients, inputs, strict=True)
        )

    wrapped = jax.custom_vjp(flat)
    wrapped.defvjp(forward, backward)
    return wrapped


def _is_inexact(x: Any) -> bool:
    return jax.numpy.issubdtype(jax.numpy.result_type(x), jax.numpy.inexact)
