"""What tapejax needs of JAX's core beyond ``jax.core``. All of it is public as ``jax.extend.core``, but for the context.

It is taken from where that module takes it: importing ``jax.extend`` loads Pallas as well, a third of tapejax's import time.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

try:
    from jax._src import core
except ImportError:
    from jax.extend import core  # type: ignore[no-redef]

# All settings that decide what tracing a function gives, as one hashable value: part of the key of JAX's own caches.
from jax._src.config import trace_context

Jaxpr: Any = core.Jaxpr
ClosedJaxpr: Any = getattr(core, "ClosedJaxpr", core.Jaxpr)  # one and the same from JAX 0.11 on
Literal: Any = core.Literal
Primitive: Any = core.Primitive
jaxpr_as_fun = core.jaxpr_as_fun
set_current_trace = core.set_current_trace

if hasattr(core, "trace_ctx"):  # one attribute instead of a context manager: a microsecond for every operation
    _context = core.trace_ctx
    set_trace = _context.set_trace

    def current_trace() -> Any:
        """The trace that JAX hands operations to."""
        return _context.trace

else:

    def current_trace() -> Any:
        """The trace that JAX hands operations to."""
        with core.take_current_trace() as trace:
            return trace

    def set_trace(trace: Any) -> None:
        """Makes `trace` the one that JAX hands operations to, until further notice."""
        set_current_trace(trace).__enter__()


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
    _hidden.add(kind)
    answer = public.get_opaque_trace_state

    @functools.wraps(answer)
    def get_opaque_trace_state(*args: Any, **kwargs: Any) -> Any:
        trace = current_trace()
        if type(trace) is not kind:
            return answer(*args, **kwargs)
        with set_current_trace(trace.outer):
            return answer(*args, **kwargs)

    public.get_opaque_trace_state = get_opaque_trace_state
