"""Gradients that do not come from JAX: rules registered by an operation's name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import jax

from ..jaxprs.cache import Cache
from ..jaxprs.dependence import has_tangent
from ..jaxprs.types import Function

if TYPE_CHECKING:
    from .operation import Op

# (inputs, outputs, cotangents of the outputs) -> cotangents of the inputs, or None. `None` in the place of a rule: the
# operation is not differentiable.
Rule = Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], Sequence[Any]]

_rules: dict[str, Rule | None] = {}
# the caches to clear when a rule is registered, each with the operations on which what it has under a key depends
caches: list[tuple[Cache[Any], Callable[[Any], Iterable[Any]]]] = []


def depends_on_rules(cache: Cache[Any], ops_in: Callable[[Any], Iterable[Op]]) -> None:
    """Has `cache` cleared whenever a rule is registered. ``ops_in(key)``: the operations on which a value in it depends."""
    caches.append((cache, ops_in))


def register(name: str, rule: Rule | None) -> None:
    """Makes `rule` the derivative of the operations of that name; None: they carry no gradient.

    Raises:
      KeyError: there is a rule for `name` already.
    """
    if name in _rules:
        raise KeyError(f"Registering two gradient with name {name!r}! Its gradient was registered before.")
    _rules[name] = rule
    for cache, _ in caches:
        cache.clear()


def has_rule(name: str) -> bool:
    """Whether a gradient is registered for the operations of that `name`."""
    return name in _rules


def is_python(name: str) -> bool:
    """Whether a function is registered as the gradient for that `name`, so that a derivative runs the user's Python."""
    return _rules.get(name) is not None


def with_rule(name: str, fn: Function) -> Function:
    """`fn`, the function of the operation `name`, with the rule that is registered for the name, if there is one."""
    if name not in _rules:
        return fn
    rule = _rules[name]
    if rule is None:
        return lambda *inputs: jax.tree.map(jax.lax.stop_gradient, fn(*inputs))

    def flat(*inputs: Any) -> list[Any]:
        return jax.tree.leaves(fn(*inputs))

    def forward(*inputs: Any) -> tuple[Any, Any]:
        outputs = wrapped(*inputs)  # not `flat`: a higher derivative needs the rule again
        return outputs, (inputs, outputs)

    def backward(residuals: Any, cotangents: Any) -> Any:
        inputs, outputs = residuals
        gradients = rule(inputs, outputs, cotangents)
        if len(gradients) != len(inputs):
            raise ValueError(
                f"the gradient registered for {name} returned {len(gradients)} gradients for {len(inputs)} inputs."
            )
        return tuple(g if has_tangent(x) else None for g, x in zip(gradients, inputs, strict=True))

    wrapped = jax.custom_vjp(flat)
    wrapped.defvjp(forward, backward)
    return wrapped
