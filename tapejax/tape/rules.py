"""What is said of gradients beside what JAX says: rules registered for the operations of a name, and marks of functions."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..jaxprs.cache import Cache
from ..jaxprs.dependence import carries_tangent
from ..jaxprs.types import Function, Value

if TYPE_CHECKING:
    from .operation import Op

# (inputs, outputs, cotangents of the outputs) -> cotangents of the inputs, None where there is none. A name without a rule
# carries no gradient.
Rule = Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], Sequence[Any]]

_rules: dict[str, Rule | None] = {}
_caches: list[tuple[Cache[Any], Callable[[Any], Iterable[Any]]]] = []


def depends_on_rules(cache: Cache[Any], ops_in: Callable[[Any], Iterable[Op]]) -> None:
    """Has `cache` cleared whenever a rule is registered; ``ops_in(key)`` are the operations that a kept value depends on."""
    _caches.append((cache, ops_in))


def forget(*ops: Op) -> None:
    """Drops what is known of `ops`, which will not be run again, and of what is made of them: compiled programs take memory."""
    concerned: dict[int, tuple[Any, bool]] = {id(op): (op, True) for op in ops}

    def concerns(op: Any) -> bool:
        known = concerned.get(id(op))
        if known is None:
            parts = op.key if type(op.key) is tuple else ()
            made_of = [x for part in parts for x in ([part] if hasattr(part, "fn") else _ops_of_steps(part))]
            known = concerned[id(op)] = op, any(map(concerns, made_of))
        return known[1]

    for cache, ops_in in _caches:
        for key, _ in cache.items():
            if any(map(concerns, ops_in(key))):
                cache.discard(key)


def _ops_of_steps(program: Any) -> list[Any]:
    return [step.op for step in getattr(program, "steps", ())]


def register(name: str, rule: Rule | None) -> None:
    """Makes `rule` the derivative of the operations of that name; None: they carry no gradient.

    Raises:
      KeyError: there is a rule for `name` already.
    """
    if name in _rules:
        raise KeyError(f"Registering two gradient with name {name!r}! Its gradient was registered before.")
    _rules[name] = rule
    clear_caches()


def clear_caches() -> None:
    for cache, _ in _caches:
        cache.clear()


def has_rule(name: str) -> bool:
    """Whether a gradient is registered for the operations of that `name`."""
    return name in _rules


def is_python(name: str) -> bool:
    """Whether it is a function of the user's."""
    return _rules.get(name) is not None


def with_rule(name: str, fn: Function) -> Function:
    """`fn`, which the operation `name` runs, with the rule that was registered for the name, if one was."""
    if name not in _rules:
        return fn
    rule = _rules[name]
    if rule is None:
        return lambda *inputs: jax.tree.map(jax.lax.stop_gradient, fn(*inputs))

    def flat(*inputs: Any) -> list[Any]:
        return jax.tree.leaves(fn(*inputs))

    def forward(*inputs: Any) -> tuple[Any, Any]:
        outputs = wrapped(*inputs)  # with its rule: a higher derivative comes this way again
        return outputs, (inputs, outputs)

    def backward(residuals: Any, cotangents: Any) -> Any:
        inputs, outputs = residuals
        gradients = rule(inputs, outputs, cotangents)
        if len(gradients) != len(inputs):
            raise ValueError(
                f"the gradient registered for {name} returned {len(gradients)} gradients for {len(inputs)} inputs."
            )
        return tuple(g if carries_tangent(x) else None for g, x in zip(gradients, inputs, strict=True))

    wrapped = jax.custom_vjp(flat)
    wrapped.defvjp(forward, backward)
    return wrapped


# ---- zero, and connected all the same -------------------------------------------------------------------------------

zero_gradients: weakref.WeakSet[Function] = weakref.WeakSet()


def zero_gradient(fn: Function) -> Function:
    """Marks `fn` as connected though its derivative is zero: its gradient is zeros, not ``None``."""
    zero_gradients.add(fn)
    return fn


def connected(outputs: Any, inputs: Iterable[Value]) -> Any:
    """`outputs` of a marked function, with a derivative of zero that JAX follows where a program is made of the function."""

    def from_inputs(y: Value) -> Value:
        for x in inputs:
            if carries_tangent(x) and carries_tangent(y):
                never = x if np.shape(x) == y.shape else jnp.sum(jnp.ravel(x)[:1])
                number = never if jnp.iscomplexobj(y) else jnp.real(never)
                y = jnp.where(False, lax.convert_element_type(number, y.dtype), y)
        return y

    return jax.tree.map(from_inputs, outputs)
