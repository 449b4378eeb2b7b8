"""Interception: while a tape is active, JAX hands every operation to a `RecorderTrace`, whoever wrote the code."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from ..jaxprs import calls, contents, fence, lifting
from ..jaxprs.cache import Cache, NotKept, recovered
from ..jaxprs.dependence import has_tangent
from ..jaxprs.types import Function, JaxProgram, Params, Primitive, Subfun, Value, Values
from ..places import caller
from . import active, dispatch, primitives, runner
from .active import Recorder, copied, stages, trace_stack, tracing
from .dispatch import reading
from .operation import CACHED_OPS, Op, PythonOp, eagerly, is_ref, op_of
from .primitives import TracedCall, TracedOp
from .pullback import PullbackOp, call_without, refuse_compiled, refuse_ref
from .recording import Entry, Recording


class StagedCall(NamedTuple):
    """How to run a call of Python functions: its Op, the Op's first inputs, what it stored for JAX, how to repack its results.

    `outputs`: its results, if it had to run to find those inputs.
    """

    op: Op
    arrays: Iterable[Any]
    stores: Sequence[Any]
    repack: Function
    outputs: Any = None


_staged: Cache[StagedCall] = Cache(CACHED_OPS)


class RecorderTrace(Recorder):
    """Runs each operation under `outer` and appends an entry to the active recordings. JAX calls the methods `process_...`."""

    def run(self, op: Op, inputs: Values, program: JaxProgram = None) -> Any:
        """Runs `op` under the outer trace and notes it. `program`: the jitted program that it calls, if it does."""
        before, inputs = fence.current_trace(), active.owned(inputs)
        try:
            fence.set_trace(self.outer)
            if program is None:
                return self.note(op, inputs, runner.current.run(op, inputs))
            results = primitives.recognition.run_program(op, inputs, self.recordings, program, op)
            return self.note(op, inputs, *results)
        except RecursionError as error:
            if not recovered(error):
                raise
            return self.note(op, inputs, runner.current.run(op, inputs))
        finally:
            try:
                fence.set_trace_reference(before)
            finally:
                fence.set_trace_key(before and before._weakref)  # there may be no trace

    def process_primitive(self, primitive: Primitive, tracers: Values, params: Params, /) -> Any:
        if primitive.name in _REF_OPERATIONS:
            return self._run_on_ref(primitive, tracers, params, primitive.name, tracers)
        op, inputs = primitives.recognition.operation(primitive, params, tracers)
        if isinstance(op, PullbackOp) and op.pull is refuse_ref:
            return self._run_on_ref(primitive, tracers, params, op.name, inputs)
        if type(self.outer) is fence.EvalTrace:
            outputs = self.run(op, inputs, params["jaxpr"] if primitive.name in contents.JIT else None)
        else:  # into the program that is traced it goes as it came, with the lines of its own functions

            def bound() -> Any:
                return self.note(op, inputs, primitive.bind(*tracers, **params))

            outputs = fence.under(self.outer, bound)
        if primitive.name in contents.LIFTABLE and outputs:
            for recording in self.recordings:
                recording.bound[id(outputs[0])] = primitive, params
        if primitive.name in _CALLS and len(outputs) > 1:
            forwarded = contents.forwarded_inputs(params)
            for recording in self.recordings if forwarded else ():
                recording.forwarded |= {id(outputs[j]): tracers[i] for j, i in forwarded.items()}
        return outputs

    def run_known(self, fn: Any, args: Values) -> Any:
        """Runs and notes the call of a ``custom_jvp`` function of arrays that is known by its identity. Else NotImplemented."""
        if not calls.is_jaxs_own(fn):
            return NotImplemented
        if not _ARRAYS.issuperset(map(type, args)):
            args = [x.__jax_array__() if hasattr(type(x), "__jax_array__") else x for x in args]
            if not _ARRAYS.issuperset(map(type, args)):
                return NotImplemented
        return dispatch.run(op_of(fn, {}), args)

    def note_compiled(self, inputs: Values, outputs: Values) -> None:
        """Notes a call of a function compiled ahead of time, which JAX cannot differentiate."""
        op = PullbackOp("compiled", refuse_compiled, refuse_compiled)
        for recording in self.recordings:
            recording.entries.append(Entry(op, tuple(inputs), tuple(outputs), caller()))

    def _run_on_ref(self, primitive: Primitive, tracers: Values, params: Params, name: str, inputs: Values) -> Any:
        # A jax.Ref changes in place, and the tape does not keep its contents. The entry is there to refuse a gradient.
        before = [x for value in tracers for x in fence.held_in(value)]
        op = PullbackOp(name, refuse_ref, refuse_ref, functools.partial(primitive.bind, **params))
        result = fence.under(self.outer, runner.current.run, op, tracers)
        closed_over = tuple(contents.refs_in(params))
        refs = (*filter(is_ref, tracers), *closed_over, *[x for value in tracers for x in fence.held_in(value)])
        outputs = (*(result if primitive.multiple_results else (result,)), *refs)
        for recording in self.recordings:
            recording.entries.append(Entry(op, (*inputs, *before, *closed_over), outputs, caller()))
        return result

    # JAX hands the methods below wrapped functions, which are new at every call and can be called once only.

    def process_call(self, primitive: Primitive, f: Subfun, tracers: Values, params: Params, /) -> Any:
        return self._run_staged(primitive, (f,), tracers, params)

    def process_custom_jvp_call(self, primitive: Primitive, /, *given: Any, **params: Any) -> Any:
        *subfuns, tracers = given  # the function and its rule
        return self._run_custom(primitive, subfuns, tracers, params)

    process_custom_vjp_call = process_custom_jvp_call

    def process_shard_map(self, primitive: Primitive, fun: Subfun, tracers: Values, /, **params: Any) -> Any:
        return self._run_staged(primitive, (fun,), tracers, params)

    def _run_custom(self, primitive: Primitive, subfuns: Sequence[Subfun], tracers: Values, params: Params) -> Any:
        if not self.recordings:  # no derivative will be taken: the rule does not matter
            with fence.set_current_trace(self):
                return subfuns[0].call_wrapped(*tracers)
        if not any(isinstance(trace, fence.DIFFERENTIATING_TRACES) for trace in trace_stack(self.outer)):
            outputs = self._run_staged(primitive, subfuns, tracers, params)
            calls.keep_stores_of_rule(subfuns)
            return outputs
        tracers = active.owned(tracers)
        # Inside jax.grad JAX traces the rule right away, once only: the call is handed on unchanged.
        outputs = fence.under(self.outer, primitive.bind, *tracers, subfuns=subfuns, **params)
        fn, _ = calls.rebind(primitive, subfuns, params)
        name = calls.function_name(subfuns[0]) or primitive.name
        return self.note(PythonOp(name, fn), tracers, outputs)

    def _run_staged(self, primitive: Primitive, subfuns: Sequence[Subfun], tracers: Values, params: Params) -> Any:
        if not self.recordings:
            return fence.under(self.outer, primitive.bind, *tracers, subfuns=subfuns, **params)
        tracers = active.owned(tracers)
        key = calls.stable_key(subfuns, tracers, params)
        if key is None:
            call = self._stage(primitive, subfuns, tracers, params, False).value
        else:
            # By thread: JAX may not have finished with another thread's call of the same functions.
            key = threading.get_ident(), key
            call = _staged.get(key, self._stage, primitive, subfuns, tracers, params, True)
            if not calls.are_filled(call.stores):  # after an interrupt
                _staged.discard(key)
                call = _staged.get(key, self._stage, primitive, subfuns, tracers, params, True)
            if call.stores is not subfuns[0].stores:
                subfuns[0].populate_stores(call.stores)
        inputs = (*call.arrays, *tracers)
        return call.repack(
            self.run(call.op, inputs) if call.outputs is None else self.note(call.op, inputs, call.outputs)
        )

    def _stage(
        self, primitive: Primitive, subfuns: Sequence[Subfun], tracers: Values, params: Params, has_key: bool
    ) -> Any:
        """The `StagedCall`; as `NotKept`, if it must not be kept. Only a call that has a key may come again."""
        name = calls.function_name(subfuns[0]) or primitive.name
        rerun, repack = calls.rebind(primitive, subfuns, params)
        stores = getattr(subfuns[0], "stores", ())
        with fence.set_current_trace(self.outer):
            try:
                tracing.read_refused = False
                staged, repack = calls.stage(primitive, subfuns, tracers, params)
            except Exception:
                may_read = tracing.read_refused and not stages(self.outer)
                staged = self._stage_with_reads(rerun, tracers) if may_read else None
            if staged is None:
                # Most likely its Python looks at values. So it runs on them, now and again in the backward pass, where
                # an error of another cause comes up again.
                if primitive.name in contents.RULES:
                    return NotKept(self._run_function(name, rerun, subfuns, tracers))
                return NotKept(
                    StagedCall(PythonOp(name, rerun, _arrays_or_numbers(rerun, tracers)), (), stores, repack)
                )
            if contents.touches_refs(staged):
                return NotKept(StagedCall(PullbackOp(name, refuse_ref, refuse_ref, rerun), (), stores, repack))
            custom = primitive.name in contents.RULES
            if transformed := custom and not has_key and calls.within_transformation(subfuns):
                staged = calls.trace_rules(staged, subfuns)
            arrays = contents.constants(staged)
            lifted = lifting.lift_jaxpr(staged, arrays) if arrays else staged
            # A jaxpr that may not come again is evaluated by operations that JAX has compiled already.
            evaluate = primitives.as_called(lifted, name)
            call: Function | None = None if has_key else functools.partial(_arrays_of, evaluate)
            if call and custom and all([isinstance(x, _NUMBERS) for x in (*arrays.values(), *tracers)]):
                # numbers have no gradient: it is called as without a tape
                call = functools.partial(call_without, len(arrays), rerun)
            carry = [isinstance(x, jax.Array) or bool(fence.user_type(x)) for x in arrays.values()]
            closed_over = tuple([i for i, carries in enumerate(carry) if custom and carries])
            # JAX keeps the trace of a rule inside a jitted function with that function, for other calls.
            reads = custom and not (transformed and contents.calls_rules(staged))
            untraced = rerun if custom and not transformed else None
            traced = TracedCall(lifted, name, closed_over, len(arrays), untraced, reads)
            staged_call = StagedCall(TracedOp(traced, call), arrays.values(), stores, repack)
        return staged_call if has_key and not arrays else NotKept(staged_call)

    def _run_function(self, name: str, rerun: Function, subfuns: Sequence[Subfun], tracers: Values) -> StagedCall:
        """Runs a call of a function with a rule, which cannot be traced. What it reads beside its arguments becomes inputs."""
        inside = Recording()
        calls.empty(subfuns[0].stores)
        function = _arrays_or_numbers(functools.partial(active.alone, [inside], subfuns[0].call_wrapped), tracers)
        outputs = fence.under(self.outer, function, *tracers)
        for recording in self.recordings:
            for key, (variable, arrays) in inside.variables.items():
                for array in arrays.values() if recording.watch_accessed or key in recording.variables else ():
                    recording.watch(array, variable)
        made = {*map(id, tracers), *[id(x) for entry in inside.entries for x in entry.outputs]}
        used = {id(x): x for entry in inside.entries for x in entry.inputs if isinstance(x, jax.Array)}
        read = [x for key, x in used.items() if key not in made]
        positions = tuple(range(len(read)))
        fn, call = [
            lifting.without_closure(functools.partial(call_without, len(read), run), name, positions)
            for run in (rerun, _arrays_or_numbers(rerun, tracers))
        ]
        return StagedCall(PythonOp(name, fn, call), read, subfuns[0].stores, list, outputs)

    def with_closure(self, op: Op, inputs: Values, reads_again: bool = False) -> tuple[Op, Values]:
        """`op`, which runs the user's Python, with the arrays that this closes over as further inputs; and all inputs.

        Returns both unchanged if nothing is closed over, or if tracing fails. If it failed because a variable's read was refused
        and the caller will try again (`reads_again`), it raises.
        """
        with fence.set_current_trace(self.outer):
            try:
                staged = jax.make_jaxpr(op.fn)(*inputs)
            except Exception:
                if reads_again and tracing.read_refused:
                    raise
                return op, inputs
            arrays = contents.constants(staged)
            if not arrays or contents.touches_refs(staged) or contents.asks_host(staged):
                return op, inputs
            lifted = lifting.lift_jaxpr(staged, arrays)
        call = functools.partial(
            _arrays_of, functools.partial(fence.eval_jaxpr, lifted.jaxpr, contents.consts_of(lifted))
        )
        traced = TracedCall(lifted, op.name, reads=tracing.reads is not None)
        return TracedOp(traced, call), (*arrays.values(), *inputs)

    def _stage_with_reads(self, fn: Function, tracers: Values) -> Any:
        """`fn` as a jaxpr with the values of variables as constants, which become inputs; None if it cannot be traced."""
        try:
            with reading(self.recordings):
                return jax.make_jaxpr(fn)(*tracers)
        except Exception:
            return None

    def stage_value(self, val: Value) -> Value:
        return fence.under(self.outer, self.outer.stage_value, val)

    def cur_qdd(self, x: Value) -> Any:  # JAX 0.10 only
        return fence.under(self.outer, self.outer.cur_qdd, x)


_ARRAYS = frozenset((fence.ConcreteArray,))
_CALLS = frozenset((*contents.JIT, "checkpoint", "remat", "remat2"))
_REF_OPERATIONS = frozenset(("new_ref", "empty_ref", "ref", "get", "swap", "addupdate", "freeze", "free_ref"))


def _arrays_of(fn: Function, *inputs: Any) -> list[Any]:
    """``fn(*inputs)``, run by the runner, with each float among the results as a ``jax.Array``.

    A rule may give it a gradient, and a tape identifies a value by its array.
    """
    return [
        copied(x.item() if getattr(x, "weak_type", False) and isinstance(x, np.ndarray) else x)  # Python's are weak
        if isinstance(x, _NUMBERS) and has_tangent(x)
        else x
        for x in eagerly(fn, *inputs)
    ]


def _arrays_or_numbers(fn: Function, args: Values) -> Function:
    """`fn`, whose results are arrays unless all of `args` are numbers, which have no gradient."""
    return fn if all([isinstance(x, _NUMBERS) for x in args]) else functools.partial(_arrays_of, fn)


_NUMBERS = (np.ndarray, np.generic, int, float, complex)

active.kind = RecorderTrace
