"""What tapejax needs of JAX's core beyond ``jax.core``. All of it is public as ``jax.extend.core``, but for the current trace.

It is taken from where that module takes it: importing ``jax.extend`` loads Pallas as well, a third of tapejax's import time.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from jax._src import config, core, linear_util

Jaxpr: Any = core.Jaxpr
ClosedJaxpr: Any = getattr(core, "ClosedJaxpr", core.Jaxpr)  # one and the same from JAX 0.11 on
Literal: Any = core.Literal
Primitive: Any = core.Primitive
jaxpr_as_fun = core.jaxpr_as_fun
wrap_init = linear_util.wrap_init
# All settings that decide what tracing a function gives, as one hashable value: part of the key of JAX's own caches.
trace_context = config.trace_context

# An interrupt (SIGINT) comes through Python between any two calls. JAX's context managers, and its `set_trace`, are Python:
# stopped half-way they leave another trace behind. The two calls below are C. In a `finally` clause, one in the `finally` of
# the other, they happen both or not at all:
#
#     before = current_trace()
#     try:
#         set_trace(other)
#         ...
#     finally:
#         try:
#             set_trace_reference(before)
#         finally:
#             set_trace_key(before._weakref)
trace_reference: Any = core.trace_state_strong_ref  # its `value` is the trace that JAX hands operations to
set_trace_reference = trace_reference.set_local
set_trace_key = core.trace_state.set_local  # the trace as a part of the key of compiled functions


def current_trace() -> Any:
    """The trace that JAX hands operations to."""
    return trace_reference.value


def set_trace(trace: Any) -> None:
    """Makes `trace` the one that JAX hands operations to, until further notice."""
    set_trace_reference(trace)
    set_trace_key(trace._weakref)


def under(trace: Any, fn: Callable, /, *args: Any, **kwargs: Any) -> Any:
    """``fn(*args, **kwargs)`` with `trace` as the one that JAX hands operations to."""
    before = current_trace()
    try:
        set_trace(trace)
        return fn(*args, **kwargs)
    finally:
        try:
            set_trace_reference(before)
        finally:
            set_trace_key(before and before._weakref)  # JAX sets None where there shall be no trace


class set_current_trace:
    """A context: inside it, `trace` is the one that JAX hands operations to."""

    __slots__ = ("_before", "_trace")

    def __init__(self, trace: Any):
        self._trace = trace

    def __enter__(self) -> None:
        self._before = current_trace()
        try:
            set_trace(self._trace)
        except BaseException:  # interrupted in between, and nobody will call `__exit__`
            self.__exit__()
            raise

    def __exit__(self, *exception: Any) -> None:
        try:
            set_trace_reference(self._before)
        finally:
            set_trace_key(self._before and self._before._weakref)


_PUBLIC_CORE = "jax.extend.core"
_hidden: set[Any] = set()


def hide(kind: Any) -> None:
    """Makes JAX's public answer to "which transformation is this?" look past traces of `kind`, to their ``outer``.

    Flax asks, and lets a model's state be changed only where the model was made. A tape is no transformation: what was
    made outside changes inside (batch statistics, counts of random numbers), and what was made inside does afterwards.
    Until somebody has loaded the module that answers, nobody can have asked.
    """
    public: Any = sys.modules.get(_PUBLIC_CORE)
    if public is None or kind in _hidden:
        return
    answer = public.get_opaque_trace_state

    @functools.wraps(answer)
    def get_opaque_trace_state(*args: Any, **kwargs: Any) -> Any:
        trace = current_trace()
        if type(trace) is not kind:
            return answer(*args, **kwargs)
        return under(trace.outer, answer, *args, **kwargs)

    public.get_opaque_trace_state = get_opaque_trace_state
    _hidden.add(kind)
