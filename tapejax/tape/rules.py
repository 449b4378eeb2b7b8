"""What is said of an operation's gradient beside what JAX says: rules registered by its name, on raw arrays, and marks."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..jaxprs import interning
from ..jaxprs.cache import Cache
from ..jaxprs.fence import has_tangent
from ..jaxprs.types import Function, Value
from .operation import Op, ops_of

# (inputs, outputs, cotangents of the outputs) -> cotangents of the inputs, None where there is none. A name without a rule
# carries no gradient.
Rule = Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], Sequence[Any]]

_rules: dict[str, Rule | None] = {}
_caches: list[tuple[Cache[Any], Callable[[Any], Iterable[Op]]]] = []


def depends_on_rules(cache: Cache[Any], ops_in: Callable[[Any], Iterable[Op]]) -> None:
    """Has `cache` cleared whenever a rule is registered; ``ops_in(key)`` are the operations that a kept value depends on."""
    _caches.append((cache, ops_in))


def forget(*ops: Op) -> None:
    """Drops what is known of `ops`, which will not be run again, and of what is made of them: compiled programs take memory."""
    concerned: dict[int, tuple[Op, bool]] = {id(op): (op, True) for op in ops}

    def concerns(op: Op) -> bool:
        known = concerned.get(id(op))
        if known is None:
            parts = op.key if type(op.key) is tuple else ()
            made_of = [x for part in parts for x in ([part] if isinstance(part, Op) else _ops_of_steps(part))]
            known = concerned[id(op)] = op, any(map(concerns, made_of))
        return known[1]

    for cache, ops_in in _caches:
        for key, _ in cache.items():
            if any(map(concerns, ops_in(key))):
                cache.discard(key)


def _ops_of_steps(program: Any) -> list[Op]:
    return [step.op for step in getattr(program, "steps", ())]


def forget_unused() -> None:
    """Drops what is known of programs whose functions are gone."""
    if gone := interning.drop_unused():
        forget(*ops_of(gone))


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


def runs_python(op: Op) -> bool:
    """Whether the derivative of `op` runs Python of the user's, which may do something else each time: it is not kept."""
    return op.eager or _rules.get(op.name) is not None


def has_rule(op: Op) -> bool:
    """Whether a gradient is registered for the operation's name."""
    return op.name in _rules


def differentiable(op: Op) -> Function:
    """`op.fn`, with the rule that was registered for its name, if one was."""
    if op.name not in _rules:
        return op.fn
    rule = _rules[op.name]
    if rule is None:
        return lambda *inputs: jax.tree.map(jax.lax.stop_gradient, op.fn(*inputs))

    def flat(*inputs: Any) -> list[Any]:
        return jax.tree.leaves(op.fn(*inputs))

    def forward(*inputs: Any) -> tuple[Any, Any]:
        outputs = wrapped(*inputs)  # with its rule: a higher derivative comes this way again
        return outputs, (inputs, outputs)

    def backward(residuals: Any, cotangents: Any) -> Any:
        inputs, outputs = residuals
        gradients = rule(inputs, outputs, cotangents)
        if len(gradients) != len(inputs):
            raise ValueError(
                f"the gradient registered for {op.name} returned {len(gradients)} gradients for {len(inputs)} inputs."
            )
        return tuple(g if is_inexact(x) else None for g, x in zip(gradients, inputs, strict=True))

    wrapped = jax.custom_vjp(flat)
    wrapped.defvjp(forward, backward)
    return wrapped


def is_inexact(x: Value) -> bool:
    """Whether `x`, an array or Python number, has a type that can carry gradient."""
    return has_tangent(jnp.result_type(x))


zero_gradients: weakref.WeakSet[Function] = weakref.WeakSet()
# Functions whose results are connected together: a compiled function's, as in TensorFlow. What reaches one of them has a
# gradient, be it zero, for all.
joint: weakref.WeakSet[Function] = weakref.WeakSet()


def zero_gradient(fn: Function) -> Function:
    """Marks `fn` as connected though its derivative is zero: its gradient is zeros, not ``None``."""
    zero_gradients.add(fn)
    return fn


def connected(outputs: Any, inputs: Iterable[Value]) -> Any:
    """`outputs` of a marked function, with a derivative of zero that JAX follows where a program is made of the function."""

    def from_inputs(y: Value) -> Value:
        for x in inputs:
            if is_inexact(x) and is_inexact(y):
                never = x if np.shape(x) == y.shape else jnp.sum(jnp.ravel(x)[:1])
                y = jnp.where(
                    False, lax.convert_element_type(never if jnp.iscomplexobj(y) else jnp.real(never), y.dtype), y
                )
        return y

    return jax.tree.map(from_inputs, outputs)
