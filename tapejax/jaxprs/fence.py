"""What tapejax needs of JAX's core beyond ``jax.core``. All of it is public as ``jax.extend.core``, but for the current trace.

It is taken from where that module takes it: importing ``jax.extend`` loads Pallas as well, a third of tapejax's import time.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import types
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax._src import (
    ad_util,
    api,
    api_util,
    array,
    callback,
    config,
    core,
    custom_derivatives,
    debugging,
    dispatch,
    hijax,
    linear_util,
    named_sharding,
    source_info_util,
    stages,
    util,
)
from jax._src.config import config_ext
from jax._src.interpreters import ad, batching, mlir, partial_eval, pxla
from jax._src.lax import lax
from jax._src.state import types as state_types

from . import cache
from .types import Equation, Function, TraceLike, Value, Values

settings: Any = jax.config  # with attributes that the types of JAX 0.10 do not have
Jaxpr: Any = core.Jaxpr
ClosedJaxpr: Any = getattr(core, "ClosedJaxpr", core.Jaxpr)  # one and the same from JAX 0.11 on
Literal: Any = core.Literal
Var: Any = core.Var
Primitive: Any = core.Primitive
Trace: Any = core.Trace
Tracer = core.Tracer
ConcreteArray: Any = array.ArrayImpl  # the type of every array that has a value
# an operation of `jax.experimental.hijax`
HighPrimitive: Any = getattr(hijax, "HiPrim", None) or vars(hijax)["VJPHiPrimitive"]
BatchTracer: Any = batching.BatchTracer
EvalTrace: Any = core.EvalTrace  # runs operations now
JitFunction: Any = type(jax.jit(lambda: None))  # asking for the protocol `jax.stages.Wrapped` takes 20 microseconds
StagingTrace: Any = partial_eval.DynamicJaxprTrace  # runs nothing, and writes a jaxpr
DIFFERENTIATING_TRACES: Any = (ad.JVPTrace, ad.LinearizeTrace)
tangent_dtype: Any = core.primal_dtype_to_tangent_dtype  # float0: values of the dtype have no tangent
Ref: Any = core.Ref
RefType: Any = state_types.AbstractRef  # JAX's type of a Ref in a program
REF_EFFECTS: Any = (state_types.RefEffect,)  # of what reads or writes a Ref that was made outside
HOST_EFFECTS: Any = (callback.IOEffect, callback.OrderedIOEffect)  # of what calls Python, which may answer differently
# of what calls Python and takes no answer
PRINTING_EFFECTS: Any = (debugging.DebugEffect, debugging.OrderedDebugEffect)
eval_jaxpr = core.eval_jaxpr
jaxpr_as_fun = core.jaxpr_as_fun
StagingTracer: Any = partial_eval.DynamicJaxprTracer  # its `val` is the variable of the jaxpr
wrap_init = linear_util.wrap_init
Zero: Any = ad_util.Zero  # a symbolic zero, of a type
zeros_of: Any = ad_util.zeros_like_aval  # of a type, with all that it says beside shape and dtype
add_tangents: Any = ad.add_jaxvals  # by the rule of their dtype, which may be a user's
UNSPECIFIED: Any = named_sharding.UNSPECIFIED  # what a jit has where no sharding is asked for
ShapeDtypeStruct: Any = jax.ShapeDtypeStruct  # public, but without types
# All settings that decide what tracing a function gives, as one hashable value: part of the key of JAX's own caches.
trace_context = config.trace_context


# Settings: the `value` of each costs a small part of what the public attribute does.
enable_x64: Any = config.enable_x64
default_device: Any = config.default_device
transfer_guard: Any = config.transfer_guard_host_to_device
disable_jit: Any = config.disable_jit
LOOKING_MODES: Any = (config.debug_nans, config.debug_infs, disable_jit)  # they look into a compiled run
NotFiniteInside: Any = api_util.InternalFloatingPointError  # JAX's own, where such a mode is on: no error for a user
# All settings of a thread that act on a compiled run on a CPU and are no part of `trace_context`.
RUN_MODES: Any = (config.debug_nans, config.debug_infs, transfer_guard)


WrappedFun: Any = linear_util.WrappedFun
Unhashable: Any = util.Unhashable  # around a static argument
# A thunk's code: it calls its `fn`, and keeps the results.
_memoize: Any = partial_eval._memoize
MEMOISED: Any = _memoize(lambda: None).__code__
# What JAX's wrappers of a function hold that says nothing of the function.
Stored: Any = (linear_util.Store, linear_util.EqualStore, linear_util.DebugInfo, core.Trace)


def function_in(bwd: Any) -> Function:
    """The user's function in the parameter `bwd` of a ``custom_vjp`` call."""
    function: Function = bwd.f
    return function


def stores_in(function: Any) -> list[Any]:
    """The stores of `function` and of the functions in it: what they find out goes there, beside their results."""
    stores: list[Any] = []
    seen: set[int] = set()
    left = [function]
    while left:
        x = left.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        if isinstance(x, WrappedFun):
            stores += [store for store in x.stores if store is not None]
            left.append(x.f)
        elif isinstance(x, functools.partial):
            left += [x.func, *x.args]
        elif isinstance(x, types.FunctionType):
            left += [cell.cell_contents for cell in x.__closure__ or () if cell != _EMPTY_CELL]
    return stores


_EMPTY_CELL = types.CellType()  # which only another empty one equals


def user_type(value: Value) -> Any:
    """JAX's type of a value, if a user has registered it (``jax.experimental.hijax``); else None."""
    aval = core.typeof(value) if type(value) in core.pytype_aval_mappings else None
    return aval if isinstance(aval, hijax.HiType) else None


def held_in(value: Any) -> list[Any]:
    """The arrays that a value of such a type holds now, if it can be given others, else nothing.

    These are JAX's ``hijax.MutableHiType``, which are gone in JAX 0.12.
    """
    aval: Any = core.typeof(value) if type(value) in core.pytype_aval_mappings else None
    if not getattr(aval, "has_qdd", False):
        return []
    state: Any = vars(core)["cur_qdd"]
    # `read_loval`, where a type has no other for what a program gives
    return jax.tree.leaves(aval.read_loval_out(state(value), value).unflatten())


# JAX's errors name the line of the user's code, and so none of ours.
source_info_util.register_exclusion(os.path.dirname(os.path.dirname(__file__)) + os.sep)


def made_at(tracer: Value) -> str:
    """The line of the user's code that made a tracer, as far as JAX knows."""
    info = getattr(tracer, "_line_info", None)
    return source_info_util.summarize(info) if info is not None else ""


def at_source(eqn: Equation) -> Any:
    """A context: what is traced in it has the line of the user's code and the named scopes of `eqn`, as in `eval_jaxpr`."""
    source = eqn.source_info
    scopes = source_info_util.current_name_stack() + source.name_stack
    return source_info_util.user_context(source.traceback, name_stack=scopes)


def transformations(eqn: Equation) -> list[str]:
    """JAX's transformations in which an equation was computed, as ``["transpose", "jvp"]``, the outermost first."""
    return [each.name for each in eqn.source_info.name_stack.stack if isinstance(each, source_info_util.Transform)]


def refuse_type(kind: type, why: str) -> None:
    """Has JAX say `why` where it asks a `kind` for its type: it takes arrays there, and no pytrees."""

    def refuse(value: Any) -> Any:
        raise ValueError(why)

    core.pytype_aval_mappings[kind] = refuse


def runs_compiled(primitive: Primitive) -> bool:
    """Whether JAX runs `primitive` on values as a compiled program of its own, and in no other way."""
    return getattr(primitive.impl, "func", None) is dispatch.apply_primitive


def define_product(primitive: Primitive, fn: Function, batched: Function, transposed: Function) -> None:
    """Makes `primitive` the product ``fn(x, y, **params)`` of two arrays of one type, linear in `y`.

    `batched` takes both, their mapped axes and the parameters, `transposed` a cotangent, `x` and the parameters.
    """

    def with_respect_to_x(dx: Value, x: Value, y: Value, **params: Any) -> Any:
        return primitive.bind(y, dx, **params)

    def with_respect_to_y(dy: Value, x: Value, y: Value, **params: Any) -> Any:
        return primitive.bind(x, dy, **params)

    def transpose(cotangent: Any, x: Value, y: Any, **params: Any) -> Any:
        return None, cotangent if type(cotangent) is ad.Zero else transposed(cotangent, x, **params)

    primitive.def_impl(functools.partial(dispatch.apply_primitive, primitive))
    primitive.def_abstract_eval(lambda x, y, **params: y)
    mlir.register_lowering(primitive, mlir.lower_fun(fn, multiple_results=False))
    batching.primitive_batchers[primitive] = batched
    ad.primitive_jvps[primitive] = functools.partial(ad.standard_jvp, (with_respect_to_x, with_respect_to_y), primitive)
    ad.primitive_transposes[primitive] = transpose


def key_numbers(keys: Value) -> Any:
    """The numbers that an array of keys of ``jax.random`` holds, as NumPy has them."""
    return np.asarray(keys._base_array)


_put: Any = pxla.xc.batched_device_put  # without its Python, which takes a third of the time


@cache.memoised(1)
def default_placement() -> tuple[Any, Any]:
    """Where operations run by default: as a sharding, and the device."""
    device = jax.local_devices()[0]
    return jax.sharding.SingleDeviceSharding(device), device


def array_from_host(x: Any, aval: Any) -> Any:
    """The ``jax.Array`` of type `aval`, where operations run by default, that has the memory of the NumPy array `x` on a CPU."""
    sharding, device = default_placement()
    return _put(aval, sharding, [x], [device], False)


def by_types_of(values: Values) -> contextlib.AbstractContextManager[Any]:
    """A context in which JAX places what is computed of `values` by their types alone, where these are of several meshes.

    Inside ``jax.sharding.auto_axes`` values are of another mesh than the one that is set, which JAX refuses after it.
    """
    here = jax.sharding.get_abstract_mesh()
    if here._any_axis_explicit:
        none = jax.sharding.AbstractMesh((), ())
        meshes = {sharding.mesh for x in values if (sharding := getattr(core.typeof(x), "sharding", None))}
        if not meshes <= {here, none}:
            return jax.sharding.use_abstract_mesh(none)
    return contextlib.nullcontext()


def has_lowering(primitive: Primitive) -> bool:
    """Whether `primitive` can be compiled, on one platform at least."""
    return primitive in mlir._lowerings or any(
        primitive in rules for rules in mlir._platform_specific_lowerings.values()
    )


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


def set_trace(trace: TraceLike) -> None:
    """Makes `trace` the current one: JAX hands operations to it from here on."""
    try:
        set_trace_reference(trace)
    finally:
        set_trace_key(trace._weakref)


def under(trace: TraceLike, fn: Function, /, *args: Any, **kwargs: Any) -> Any:
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

    def __init__(self, trace: TraceLike):
        self._trace = trace

    def __enter__(self) -> None:
        self._before = current_trace()
        try:
            set_trace(self._trace)
        except BaseException:  # interrupted in between, and `__exit__` will not be called
            self.__exit__()
            raise

    def __exit__(self, *exception: Any) -> None:
        try:
            set_trace_reference(self._before)
        finally:
            set_trace_key(self._before and self._before._weakref)


def is_public(primitive: Primitive) -> bool:
    """Whether ``jax.extend.core.primitives`` has the primitive under its own name, so that printed code can name it."""
    from jax.extend.core import primitives

    return getattr(primitives, f"{primitive.name}_p", None) is primitive


_PUBLIC_CORE = "jax.extend.core"
_hidden: set[Any] = set()


def hide(kind: Any) -> None:
    """Makes JAX's public answer to "which transformation is this?" look past traces of `kind`, to their ``outer``.

    Flax asks, and lets a model's state be changed only where the model was made. A tape is no transformation: what was
    made outside changes inside (batch statistics, counts of random numbers), and what was made inside does afterwards.
    Before the module with that function is loaded, it cannot have been called.
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


# Where JAX asks whether a program is being traced, to refuse what would be part of it: the mesh, and the seed of a stateful
# generator where none is given (in a module that JAX moved).
_REFUSING = ("jax._src.sharding_impls", "jax._src.random.stateful_rng", "jax._src.stateful_rng")
_adapted = False


def _look_for_nans(_: Any) -> None:
    """Has JAX look at results in this thread as its modes say, local ones before global ones."""
    modes = config.debug_nans, config.debug_infs
    if all([mode.get_local() is config_ext.unset for mode in modes]):
        api._post_hook_state.set_local(config_ext.unset)
    else:
        api._post_hook_state.set_local(api._nan_check_posthook if any([mode.value for mode in modes]) else None)


def adapt(kind: Any, recording: Callable[[], bool]) -> None:
    """Puts eight of JAX's answers right for traces of `kind`, whose values are concrete, but are recorded.

    * ``jax.set_mesh``, ``jax.sharding.get_mesh`` and ``stateful_rng()`` are refused while a program is traced. Under `kind`
      none is.
    * ``jax.closure_convert`` finds the values closed over with respect to which a derivative may be taken: among tracers.
    * Where ``jax_use_simplified_jaxpr_constants`` is on, arrays closed over are written into a program, but those that a
      derivative may be taken with respect to: again tracers. So ``closure_convert`` and ``custom_root`` would not find them.
    * ``lax.polynomial`` makes NumPy constants of scalar coefficients, but of tracers.
    * Leaving a local ``jax.debug_nans`` or ``jax.debug_infs`` hides the global one: evaluating a jaxpr enters one.
    * A ``custom_jvp`` function holds its `nondiff_argnums` constant, where they are tracers.
    * A function compiled ahead of time runs without a trace. JAX lets it refuse tracers; `kind` notes the call.
    * A ``custom_jvp`` function looks at its signature at each call, for longer than all else takes. `kind` may know the function.

    `recording` tells whether values are recorded here.
    """
    global _adapted
    if _adapted:
        return
    _adapted = True
    perturbed, literalable = custom_derivatives._maybe_perturbed, core.is_literalable
    constant: Function = lax._const
    stopped: Any = custom_derivatives._stop_gradient
    call: Function = stages.Compiled.__call__
    call_with_rule: Function = jax.custom_jvp.__call__

    def looking_past(answer: Function) -> Function:
        @functools.wraps(answer)
        def looks_past(*context: Any) -> bool:
            trace = current_trace()
            if type(trace) is not kind or sys._getframe(1).f_globals.get("__name__") not in _REFUSING:
                return bool(answer(*context))
            return bool(under(trace.outer, answer, *context))

        return looks_past

    def is_recorded(x: Value) -> bool:
        return isinstance(x, ConcreteArray) and jax.numpy.issubdtype(x.dtype, jax.numpy.inexact) and recording()

    @functools.wraps(perturbed)
    def maybe_perturbed(x: Value) -> bool:
        return is_recorded(x) if isinstance(x, ConcreteArray) else perturbed(x)

    @functools.wraps(constant)
    def const(example: Value, x: Value) -> Any:
        x = x.__jax_array__() if hasattr(type(x), "__jax_array__") else x
        if not is_recorded(x):
            return constant(example, x)
        return lax._convert_element_type(x, jax.dtypes.result_type(example), jax.typeof(example).weak_type)

    def stop_gradient(tree: Any) -> Any:
        return jax.tree.map(lambda x: jax.lax.stop_gradient(x) if is_recorded(x) else x, stopped(tree))

    @functools.wraps(literalable)
    def is_literalable(x: Value, for_ad: bool = False) -> bool:
        return bool(literalable(x, for_ad or (config.use_simplified_jaxpr_constants.value and recording())))

    @functools.wraps(call)
    def call_compiled(compiled: Any, *args: Any, **kwargs: Any) -> Any:
        trace = current_trace()
        if type(trace) is not kind:
            return call(compiled, *args, **kwargs)
        outputs = under(trace.outer, call, compiled, *args, **kwargs)
        trace.note_compiled(jax.tree.leaves((args, kwargs)), jax.tree.leaves(outputs))
        return outputs

    @functools.wraps(call_with_rule)
    def call_known(fn: Any, *args: Any, **kwargs: Any) -> Any:
        trace = current_trace()
        recorded = type(trace) is kind and not kwargs and type(trace.outer) is EvalTrace
        outputs = trace.run_known(fn, args) if recorded else NotImplemented
        return call_with_rule(fn, *args, **kwargs) if outputs is NotImplemented else outputs

    for mode in (config.debug_nans, config.debug_infs):
        mode._update_thread_local_hook = _look_for_nans
    rule_type: Any = jax.custom_jvp
    rule_type.__call__ = call_known
    custom_derivatives._maybe_perturbed, core.is_literalable = maybe_perturbed, is_literalable
    derivatives: Any = custom_derivatives
    derivatives._stop_gradient, lax._const = stop_gradient, const
    core.trace_state_clean = looking_past(core.trace_state_clean)
    compiled_type: Any = stages.Compiled
    compiled_type.__call__ = call_compiled
    context_type: Any = core.TracingContext
    context_type.is_top_level = looking_past(context_type.is_top_level)
