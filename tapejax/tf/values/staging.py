"""Traces a Python function once into a pure program, with what it reads of variables as inputs and what it assigns as outputs.

While the function runs, a `Capture` stands in for its thread. A variable that is read or assigned to for the first time is
*adopted*: it holds a tracer from there on, made by an operation ``variable`` of the program under construction, and gets back
what it held when the trace ends. So assignments in the function are Python assignments of tracers. Afterwards those operations
and the arrays that the function closed over become inputs; what the variables hold at the end become outputs.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import operator
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import CodeType
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from ...execution.recognition import forget
from ...jaxprs import contents, lifting, prints
from ...jaxprs.cache import recovered
from ...jaxprs.dependence import Links, has_tangent
from ...jaxprs.evaluate import evaluate, needed
from ...jaxprs.fence import (
    ConcreteArray,
    Primitive,
    StagingTracer,
    Tracer,
    current_trace,
    jaxpr_as_fun,
    set_current_trace,
    under,
)
from ...jaxprs.types import Atom, Equation, JaxProgram, Positions, Pytree, TraceLike, Values
from ...tape import active, primitives, runner
from ...tape.operation import Op
from ...tape.pullback import without_derivative
from ...tape.recording import Entry, next_number
from . import reading
from .reading import tracing
from .types import Array
from .variable import Variable

# JAX keeps what it traced inside a function for the next call of the same `jax.jit` or body of a loop, and with it the value
# that a variable had then. Once one that was read so is assigned to, or a branch or a loop begins or ends, everything is traced
# anew from there on.
_version = jax.make_user_context()

_variable = Primitive("variable")
_variable.def_abstract_eval(lambda *, slot, aval: aval)


# What has an array that functions assign to: a variable of ours or a library's, a random state.
Stateful: TypeAlias = Any


@jax.custom_jvp
def _assigned(new: Array, old: Array) -> Array:
    """What is read of a variable after an assignment: the value is new, the gradient goes to the variable, as in TensorFlow."""
    return new


@_assigned.defjvp
def _assigned_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    return primals[0], tangents[1]


def _carried(new: Array, old: Array) -> Array:
    """`_assigned`, where there can be a gradient."""
    return _assigned(new, old) if jnp.issubdtype(new.dtype, jnp.inexact) and new.shape == old.shape else new


class Slot:
    """A place that holds an array from call to call, usually a variable: what it held before the trace, and its tracer."""

    __slots__ = ("holder", "attribute", "setting", "tracer", "assigned")

    def __init__(self, holder: Stateful, attribute: str, before: Array, tracer: Array):
        self.holder = holder
        self.attribute = attribute
        self.setting = [holder, attribute, before]  # what `setattr` takes to put it back
        self.tracer = tracer
        self.assigned = False  # since it was last read

    before = property(lambda self: self.setting[2], lambda self, value: self.setting.__setitem__(2, value))
    array = property(
        lambda self: getattr(self.holder, self.attribute),
        lambda self, value: setattr(self.holder, self.attribute, value),
    )

    @property
    def place(self) -> tuple[int, str]:
        return id(self.holder), self.attribute

    def read(self) -> Array:
        """The present array, noted by tapes and by a function that is being traced around this one."""
        if isinstance(self.holder, Variable):
            return reading.read(self.holder)
        capture = reading.context.capture
        array = self.array if capture is None else capture.as_input(self.holder, self.attribute)
        if capture is None and isinstance(array, Tracer) and active.eager():
            with tracing:  # as in `reading.held`
                array = self.array
        if hasattr(self.holder, "trainable"):
            reading.note_read(self.holder, array, lambda new: setattr(self, "array", new))
            array = self.array
        reading.use(self.holder, self.attribute, array)
        return array


class Capture:
    """What a function that is being traced reads, assigns and creates. While it is traced, by `trace`, variables hold tracers."""

    def __init__(self, differentiable: bool) -> None:
        self.parent: Capture | None = reading.context.capture
        trace = current_trace()
        self.around = trace.outer if isinstance(trace, active.kind) else trace
        self.slots: dict[tuple[int, str], Slot] = {}
        self.created: dict[tuple[int, str], Slot] = {}
        self._settings: list[list] = []
        # Shared with the captures around this one: what was read in a trace inside since the version began, and the versions.
        self._read_inside: set[tuple[int, str]] = set() if self.parent is None else self.parent._read_inside
        self._begun: contextlib.ExitStack = contextlib.ExitStack() if self.parent is None else self.parent._begun
        # Whether the program may be differentiated, and whether it leaves custom gradients out because it may not.
        self.differentiable = differentiable
        self.incomplete = False
        self.ran: list[tuple[Op, Values, Any]] = []  # the operations of the program, with inputs and outputs
        self.bodies: list[TracedBody] = []  # of its loops and branches

    def trace(self, body: Callable, *tracers: Array) -> Pytree:
        """``body(*tracers)``, during which variables are adopted when they are read or assigned to."""
        with tracing:
            return self._trace_alone(body, *tracers)

    def _trace_alone(self, body: Callable, *tracers: Array) -> Pytree:
        self._trace = current_trace()
        restore = itertools.starmap(setattr, self._settings)
        if self._read_inside:
            self._begin_version()
        try:
            # What is used in here are tracers; the program that is made uses its inputs when it runs.
            with active.tracing.setting(ran=self.ran):
                return reading.context.setting(capture=self, used=None).call(body, *tracers)
        finally:
            list(restore)  # one call in C: an interrupt comes before or after it, and finds no variable with a tracer
            for slot in (*self.slots.values(), *self.created.values()):
                slot.tracer = None  # it would keep the trace alive
            if self.parent is None:
                self._begun.close()
            elif self._read_inside:  # what JAX kept refers to this trace, which has ended
                self._begin_version()

    def _begin_version(self) -> None:
        self._read_inside.clear()
        self._begun.enter_context(_version(next_number()))

    def leave_out(self) -> bool:
        """Whether a custom gradient need not be part of the program: only a tape inside can ask for it."""
        if self.differentiable or active.outer_trace() is not self._trace:
            return False
        self.mark_incomplete()
        return True

    def mark_incomplete(self) -> None:
        capture: Capture | None = self
        while capture is not None:
            capture.incomplete = True
            capture = capture.parent

    def as_input(self, holder: Stateful, attribute: str = "_array") -> Array:
        """What stands here for the array that `holder` has."""
        place = id(holder), attribute
        array = getattr(holder, attribute)
        slot = self.slots.get(place)
        inside = active.outer_trace() is not self._trace
        if inside:
            self._read_inside.add(place)
        if slot is not None and slot.assigned:
            slot.assigned = False
            slot.array = array = under(self._trace, _carried, array, slot.tracer)
        if slot is not None or place in self.created:
            if inside and not isinstance(array, Tracer):
                # Its value is known here, and must not become a constant of what is traced inside.
                array = under(self._trace, jnp.copy, array)
                setattr(holder, attribute, array)
            return array
        if not self._is_outside(place, array):
            return array
        tracer = under(self._trace, _variable.bind, slot=len(self.slots), aval=jax.typeof(array))
        slot = Slot(holder, attribute, array, tracer)
        self._settings.append(slot.setting)
        self.slots[place] = slot  # this and the next: no call in between
        setattr(holder, attribute, tracer)
        return tracer

    def create(self, holder: Stateful, attribute: str = "_array") -> None:
        """Notes that `holder` came into being in the function."""
        array = getattr(holder, attribute)
        self.created[id(holder), attribute] = Slot(holder, attribute, array, array)

    def assign(self, holder: Stateful, attribute: str, array: Array) -> None:
        """Notes that `holder` is about to be given `array`.

        Raises:
          RuntimeError: `array` belongs to a trace inside this one, and would leak out of it; or JAX keeps what it traces here,
            and would not assign it again.
        """
        inside = [*active.trace_stack(current_trace())][-1] is not self._trace and active.staging()
        if inside or getattr(array, "_trace", self._trace) is not self._trace:
            raise RuntimeError(
                f"Variable {getattr(holder, 'name', holder)!r} was assigned to inside a JAX transformation (jax.grad, jax.vmap, "
                "lax.scan, lax.cond ...) of a tf.function: the value would leak out of it. Return it and assign it outside, "
                "or use tf.cond and tf.while_loop, which thread variables through."
            )
        self.as_input(holder, attribute)
        place = id(holder), attribute
        if place in self._read_inside:
            self._begin_version()
        if (slot := self.slots.get(place)) is not None:
            slot.assigned = True

    def _knows(self, place: tuple[int, str]) -> bool:
        return place in self.slots or place in self.created

    def _is_outside(self, place: tuple[int, str], array: Array) -> bool:
        # A variable that JAX unflattened inside one of its transformations is a value of that, and no state.
        if not isinstance(array, Tracer):
            return True
        outer = self.parent
        while outer is not None:
            if outer._knows(place):
                return True
            outer = outer.parent
        return False


def derivative_possible() -> bool:
    """Whether a program that is traced or called here may be differentiated: by a tape, JAX, or a program around it."""
    capture, trace = reading.context.capture, current_trace()
    return not reading.plain(trace) if capture is None else capture.differentiable or trace is not capture._trace


class init_scope(contextlib.ContextDecorator):
    """``tf.init_scope``: runs the body at once, as if no function were being traced around it.

    >>> import tapejax as tf
    >>> @tf.function
    ... def f(x):
    ...     with tf.init_scope():
    ...         print(tf.constant(1.0).numpy())
    ...     return x
    >>> _ = f(2.0)
    1.0
    """

    # No generator: one that an interrupt kept from ending would end at a later time, and bring this state back then.

    def __enter__(self) -> None:
        capture = reading.context.capture
        self._swapped: list[tuple[Slot, Array]] = []
        self._created: list[tuple[Slot, Array]] = []
        around = current_trace()
        while capture is not None:
            around = capture.around
            self._created += [(slot, slot.array) for slot in capture.created.values()]
            for slot in capture.slots.values():
                self._swapped.append((slot, slot.array))
                slot.array = slot.before
            capture = capture.parent
        self._around = set_current_trace(around)
        self._around.__enter__()
        self._outside = reading.context.setting(capture=None, as_python=False)
        self._outside.__enter__()

    def __exit__(self, *exception: Any) -> None:
        try:
            self._outside.__exit__()
            for slot, initial in self._created:
                if slot.array is not initial:  # what a variable is given here is what it has from the start
                    slot.before = slot.array
            for slot, inside in reversed(self._swapped):
                slot.before, slot.array = slot.array, inside
        finally:
            self._around.__exit__()


class TracedStep(NamedTuple):
    """An operation of a program that was traced. What its operands stand for in the program: variables, or values."""

    op: Op
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]

    def is_known(self) -> bool:
        """Whether it stands for itself: it is of no trace inside, and runs none of the user's Python."""
        values = any(isinstance(x, Tracer) for x in (*self.inputs, *self.outputs))
        return not values and (self.op.key is not self.op or self.op.in_trace)


class TracedBody(NamedTuple):
    """A program as it was traced, and the operations among its equations. Around it are its constants what `constants` says."""

    program: JaxProgram
    constants: Values
    ran: Sequence[TracedStep]

    @classmethod
    def of(cls, closed: JaxProgram, ran: Iterable[tuple[Op, Values, Any]]) -> TracedBody:
        """The program without its constants, which may be tracers of the trace around it: these it would keep alive."""
        steps = (TracedStep(op, _operands(ins), _operands(jax.tree.leaves(outs))) for op, ins, outs in ran)
        constants = _operands(contents.consts_of(closed))
        return cls(contents.open_jaxpr(closed), constants, [step for step in steps if step.is_known()])


class Trace(NamedTuple):
    """A program as it was traced by the Python function with that `code`: the last of `bodies`, which has the others in it.

    Its inputs are the arguments; what it reads of state are equations, and the `constants` are in it, by their identities.
    """

    code: CodeType
    constants: Sequence[int]
    bodies: Sequence[TracedBody]


class Compiled:
    """A program with state: `op`, of (state, constants, arguments) -> (outputs, new state).

    `slots` are the places that hold the state, `changed` the positions of the slots that get new values, `constants` arrays
    that it was traced with. `noted` is what tapes see of it: the outputs only, for state stops gradients.
    """

    op: Op
    noted: Op
    lifted: JaxProgram | None = None  # the jaxpr of `op`, where there is one
    slots: Sequence[Slot]
    changed: Sequence[int]
    constants: Sequence[Array]
    outputs: int

    def _prepare(self) -> None:
        places = [(slot.holder, slot.attribute) for slot in self.slots]
        # The holders and attributes of all slots, and of the changed ones, as two sequences each, for `map`.
        self._every: Sequence[Any] = list(zip(*places, strict=True)) or ((), ())
        self._changing: Sequence[Any] = list(zip(*[places[i] for i in self.changed], strict=True)) or ((), ())
        # Of these some give another array at each read.
        self._once = [slot for slot in self.slots if getattr(type(slot.holder), "read_once", False)]
        self._contended = False  # whether another thread has once assigned during a run

    def run(self, arrays: Sequence[Array]) -> Sequence[Array]:
        """Runs it on the present state and `arrays`, keeps the new state and returns the outputs.

        Among threads that is one step: where another one has assigned meanwhile to what it changes, it is run once more, on
        what is there now and with that kept from other threads; from then on always so. What asks Python for something is
        never run so, since that may wait for another thread.
        """
        try:
            return self._run(arrays)
        except RecursionError as error:
            if not recovered(error):
                raise
            return self._run(arrays)

    def _run(self, arrays: Sequence[Array]) -> Sequence[Array]:
        trace = current_trace()
        if reading.plain(trace) and not self._contended:
            results = self._run_plain(self.op, arrays)
        elif self._contended and self._again is self.op:
            results = self._run_alone(trace, arrays)
        else:
            results = self._run_noted(trace, self.op, arrays)
        while results is None:
            self._contended = True
            results = self._run_alone(trace, arrays)
        return results

    def _run_alone(self, trace: TraceLike, arrays: Sequence[Array]) -> Sequence[Array] | None:
        with tracing if self._again else contextlib.nullcontext():
            return self._run_noted(trace, self._again or self.op, arrays)

    @functools.cached_property
    def _again(self) -> Op | None:
        """The operation that runs it again without printing; None if it calls back into Python."""
        if self.lifted is None:
            return self.op
        if contents.asks_host(self.lifted) or contents.contains(self.lifted, "pure_callback"):
            return None
        silent = prints.without_prints(self.lifted)
        return self.op if silent is self.lifted else _named(self.op.name, silent)

    # Both give None where they came too late to keep the new state, and have done nothing then.

    def _run_plain(self, op: Op, arrays: Sequence[Array]) -> Sequence[Array] | None:
        """As `_run_noted`, where neither a tape nor a trace has to see it, at full speed."""
        state: Sequence[Array] = ()
        if self.slots:
            state = [] if self._once else [*map(getattr, *self._every)]  # one call in C: what is there at one moment
            if self._once or not _VALUES.issuperset(map(type, state)):
                with tracing:  # another thread that traces a function gives back what it has taken when it is done
                    state = [*map(getattr, *self._every)]
        results = runner.current.run(op, (*state, *self.constants, *arrays))
        return results if not self.changed or self._exchange(state, results[self.outputs :]) else None

    def _run_noted(self, trace: TraceLike, op: Op, arrays: Sequence[Array]) -> Sequence[Array] | None:
        with tracing if self._once else contextlib.nullcontext():
            state = [slot.read() for slot in self.slots]
        values = (*state, *self.constants, *arrays)
        if type(trace) is not active.kind:
            results = _traced(op, values)
            return results if not self.changed or self._store(state, results[self.outputs :], arrays) else None
        with active.outside():
            residuals = None
            if self.lifted is None or not active.eager():
                results = _traced(op, values)
            else:
                results, residuals = primitives.recognition.run_program(
                    op, values, trace.recordings, self.lifted, self.noted
                )
        if self.changed and not self._store(state, results[self.outputs :], arrays):
            return None
        with active.outside():
            return trace.note(self.noted, values, results[: self.outputs], residuals)

    def _exchange(self, state: Sequence[Array], new: Sequence[Array]) -> bool:
        """Keeps the new state where the old one is that which was read."""
        holders, attributes = self._changing
        read = map(state.__getitem__, self.changed)
        with tracing:
            if all(map(operator.is_, map(getattr, holders, attributes), read)):
                list(map(setattr, holders, attributes, new))  # one call in C: all of it, or nothing
                return True
            for slot in self._once:
                slot.array = state[self.slots.index(slot)]
        return False

    def _store(self, state: Sequence[Array], new: Sequence[Array], arrays: Sequence[Array]) -> bool:
        """As `_exchange`, where tapes or functions that are being traced have to know."""
        slots = [self.slots[i] for i in self.changed]
        if reading.context.capture is not None:
            for slot, array in zip(slots, new, strict=True):
                _keep(slot, array)
        else:
            for slot, array in zip(slots, new, strict=True):
                _require_no_tracer(slot, array)
            if not self._exchange(state, new):
                return False
        for array in new:
            reading.record_escape("state", *arrays, into=array)
        return True


# Types of what a variable holds while no function that assigns it is being traced.
_VALUES = {ConcreteArray, np.uint32}


class Staged(Compiled):
    """A Python function traced into a program.

    `created` are the variables made in the trace. They get their initial values, computed at `arrays`, also where the function
    fails later; and there is no program for more than that. `transform`, as `jax.checkpoint` is one, is applied to the program.
    """

    def __init__(
        self,
        body: Callable,
        arguments: Sequence[jax.ShapeDtypeStruct],
        name: str,
        arrays: Sequence[Array] | None = None,
        differentiable: bool = False,
        transform: Callable[[Callable], Callable] | None = None,
    ):
        capture = Capture(differentiable or derivative_possible())
        around = active.active_recordings()
        failure: list[BaseException] = []

        def program(*tracers: Array) -> tuple[Sequence[Array], list[Array], list[Array]]:
            try:
                outputs = active.continuing(around, body, *tracers)
                self.changed = [i for i, slot in enumerate(capture.slots.values()) if slot.array is not slot.tracer]
                slots = list(capture.slots.values())
                new = [jax.lax.stop_gradient(slots[i].array) for i in self.changed]  # state stops gradients
            except BaseException as error:
                if not capture.created:
                    raise
                failure.append(error)
                outputs, new = (), []
            initial = [slot.before for slot in capture.created.values()]
            self._counts = len(outputs), len(new)
            return outputs, new, initial

        reading.install_adapters()
        traced = jax.make_jaxpr(functools.partial(capture.trace, program))
        self._arguments, self._closed = arguments, None
        with tracing:
            try:
                self._closed = closed = under(capture.around, traced, *arguments)
                self._finish(capture, arrays)
            except BaseException:
                if capture.created and self._closed is not None:
                    self._finish(capture, arrays)  # it may have been an interrupt
                elif capture.created:
                    _void(capture.created.values())
                raise
        if failure:
            raise failure[0]
        self.outputs = self._counts[0]
        self.results = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in closed.out_avals[: self.outputs]]
        self.bodies = [*capture.bodies, TracedBody.of(closed, capture.ran)]
        for slot in (*self.slots, *self.created):
            slot.before = None  # let go of what belongs to the trace
        if not self.created:
            self.lifted = self._lifted(0, sum(self._counts))
            self.op = self.noted = _named(name, self.lifted, transform)
            again = prints.without_prints(self.lifted)  # a derivative computes the results anew
            if self.changed or again is not self.lifted:  # tapes see the results only: state stops gradients
                self.noted = _named(name, again, transform, self.outputs)
            if contents.asks_host(self.lifted):
                self.noted = without_derivative(self.noted)
            weakref.finalize(self, forget, self.noted).atexit = False
            self._prepare()

    def _finish(self, capture: Capture, arrays: Sequence[Array] | None) -> None:
        self.incomplete = capture.incomplete
        self.slots = list(capture.slots.values())
        self.created = list(capture.created.values())
        self._identities = contents.constants(self._closed)
        self.constants = list(self._identities.values())
        if self.created and arrays is not None:
            self._initialize(arrays)

    def note_code(self, code: CodeType) -> None:
        """Has those who look at its calls on a tape see how it came about: `code` is that of the function which was traced."""
        for op in (self.op, self.noted):
            if isinstance(op, JointOp):
                op.trace = Trace(code, [*self._identities], self.bodies)

    @property
    def portable(self) -> bool:
        """Whether it may be used again: it closes over no value of a trace around it."""
        return not any(isinstance(x, Tracer) for x in self.constants)

    def _lifted(self, start: int, stop: int) -> JaxProgram:
        """The outputs from `start` to `stop` as a closed jaxpr of (state, constants, arguments)."""
        jaxpr = contents.open_jaxpr(self._closed)
        constants, identities, count = self.constants, self._identities, len(self.slots)

        def pure(*flat: Array) -> list[Array]:
            lifted = dict(zip(identities, flat[count:], strict=False))
            arguments = flat[count + len(constants) :]
            return _evaluate(self._closed, jaxpr.outvars[start:stop], flat[:count], lifted, arguments)

        specs = {e.params["slot"]: e.params["aval"] for e in jaxpr.eqns if e.primitive is _variable}
        state = [specs[i] for i in range(count)]
        with active.outside():
            return jax.make_jaxpr(pure)(*state, *map(jax.typeof, constants), *self._arguments)

    def _initialize(self, arrays: Sequence[Array]) -> None:
        """Gives the variables that were created their initial values."""
        initial = _named("initialize", self._lifted(sum(self._counts), len(contents.open_jaxpr(self._closed).outvars)))
        with active.outside():
            values = runner.current.run(initial, (*[slot.read() for slot in self.slots], *self.constants, *arrays))
        capture = reading.context.capture
        if capture is None:
            for slot, array in zip(self.created, values, strict=True):
                _require_no_tracer(slot, array)
        settings = [(slot.holder, slot.attribute, array) for slot, array in zip(self.created, values, strict=True)]
        list(itertools.starmap(setattr, settings))
        if capture is not None:
            for slot in self.created:
                capture.create(slot.holder, slot.attribute)


def _operands(values: Values) -> tuple[Any, ...]:
    """Of values of the trace the variables, which say which they are; those of traces inside stay."""
    return tuple([x.val if type(x) is StagingTracer else x for x in values])


def _void(created: Iterable[Slot]) -> None:
    """Takes the tracers of a program that will never be from the variables that were made in it: JAX says "deleted"."""
    with jax.ensure_compile_time_eval():
        settings = [(x.holder, x.attribute, jnp.zeros(x.array.shape, x.array.dtype)) for x in created]
    for *_, array in settings:
        array.delete()
    list(itertools.starmap(setattr, settings))


def staged_after_creation(body: Callable, arrays: Sequence[Array], name: str, **options: Any) -> Staged:
    """As `Staged`; the variables that `body` makes when it is first run are there before the program is traced."""
    types = [abstract(x) for x in arrays]
    staged = Staged(body, types, name, arrays, **options)
    return Staged(body, types, name, **options) if staged.created else staged


class Threaded:
    """The bodies of one control flow operation, and the state that they change, which is carried from one to the next.

    Args:
      *bodies: pairs of a function from arrays to a list of arrays, and such arrays or their shapes and dtypes.
      creates: whether a body may make variables when it is first run. Their initial values are computed of its arrays.

    Where no `function` is being traced there is no state, and the bodies run as they are.
    """

    def __init__(self, *bodies: tuple[Callable, Sequence[Array]], creates: bool = False):
        self._bodies = [body for body, _ in bodies]
        self._staged: list[Staged] = []
        self._slots: dict[tuple[int, str], Slot] = {}
        if (capture := reading.context.capture) is not None:
            self._staged = [
                staged_after_creation(body, arrays, "body")
                if creates
                else Staged(body, [abstract(x) for x in arrays], "body")
                for body, arrays in bodies
            ]
            for staged in self._staged:
                capture.bodies += staged.bodies
        for staged in self._staged:
            if staged.created:
                raise ValueError(
                    "Variables cannot be created in a branch or loop of a tf.function, nor at each call of a function that "
                    "replicas run: create them before"
                )
            self._slots |= {slot.place: slot for slot in staged.slots}
        self._changed = list(dict.fromkeys(staged.slots[i].place for staged in self._staged for i in staged.changed))
        self._held = {place: slot.read() for place, slot in self._slots.items()}
        self.state = [self._held[place] for place in self._changed]

    def __call__(self, index: int, state: Sequence[Array], *arrays: Array) -> tuple[list[Array], list[Array]]:
        """Runs one body on `state` and `arrays`: its results, and the state after it."""
        if not self._staged:
            return list(self._bodies[index](*arrays)), []
        staged = self._staged[index]
        held = self._held | dict(zip(self._changed, state, strict=True))
        results = staged.op.fn(*[held[slot.place] for slot in staged.slots], *staged.constants, *arrays)
        for i, x in zip(staged.changed, results[staged.outputs :], strict=True):
            place = staged.slots[i].place
            held[place] = _carried(x, held[place])
        return list(results[: staged.outputs]), [held[place] for place in self._changed]

    def together(self, run: Callable[[list], list[list[Array]]], *arrays: Sequence[Array]) -> list[list[Array]]:
        """The results of all bodies, which `run` evaluates: it is given their programs, each with its inputs.

        The state after it is that of the first body that changes it.
        """
        state, changed = [[self._held[slot.place] for slot in staged.slots] for staged in self._staged], self._changed
        each = zip(self._staged, state, arrays, strict=True)
        found = run([(staged.lifted, [*held, *staged.constants, *own]) for staged, held, own in each])
        for staged, results in [*zip(self._staged, found, strict=True)][::-1]:
            self._held.update(
                zip([staged.slots[i].place for i in staged.changed], results[staged.outputs :], strict=True)
            )
        self.finish([self._held[place] for place in changed])
        return [results[: staged.outputs] for staged, results in zip(self._staged, found, strict=True)]

    def finish(self, state: Sequence[Array]) -> None:
        """Keeps the state that the operation ended with."""
        for place, array in zip(self._changed, state, strict=True):
            _keep(self._slots[place], array)


def abstract(x: Array | jax.ShapeDtypeStruct) -> Any:
    """What a program is traced with in place of the array `x`.

    It is JAX's own type, which says, too, over which axes of a mesh `x` varies, and how it is sharded.
    """
    return jax.typeof(x)


def row_type(x: Array) -> jax.ShapeDtypeStruct:
    """The shape, dtype and axes of a row of `x`, which may have no rows."""
    rows: list[jax.ShapeDtypeStruct] = []
    jax.eval_shape(jax.vmap(lambda row: rows.append(jax.eval_shape(lambda: row))), x)
    return rows[0]


def _keep(slot: Slot, array: Array) -> None:
    capture = reading.context.capture
    if capture is not None:
        capture.assign(slot.holder, slot.attribute, array)
    slot.array = array


def _require_no_tracer(slot: Slot, array: Array) -> None:
    if isinstance(array, Tracer):
        name = getattr(slot.holder, "name", type(slot.holder).__name__)
        raise RuntimeError(
            f"Variable {name!r} is assigned to by a tf.function inside a JAX transformation (jax.jit, jax.vmap, lax.scan ...): "
            "the value would leak out of it. Decorate the outer function with tapejax.function as well, which threads "
            "Variables through."
        )


def _traced(op: Op, values: Values) -> Any:
    """What a program gives, which a program that is traced around it has as one operation."""
    results = runner.current.run(op, values)
    if (ran := active.tracing.ran) is not None:
        ran.append((op, values, results))
    return results


class JointOp(Op):
    """A call of a `function`. An input of one of its results is connected to all of them, if only by a gradient of zero.

    `trace` is how its program came about, for whoever looks at it, if that is known.
    """

    __slots__ = ("trace",)
    in_trace = True
    trace: Trace

    def _find_links(self, entry: Entry, perturbed: Positions | None = None) -> Links:
        links = super()._find_links(entry, perturbed)
        union: frozenset[int] = frozenset().union(*links.by)
        return links._replace(by=tuple([union if has_tangent(x) else frozenset() for x in entry.outputs]))


def _named(
    name: str, closed: JaxProgram, transform: Callable[[Callable], Callable] | None = None, outputs: int | None = None
) -> Op:
    run = jaxpr_as_fun(closed)

    def fn(*flat: Array) -> list[Array]:
        return run(*flat)[:outputs]

    fn.__name__ = fn.__qualname__ = name
    return JointOp(name, fn if transform is None else transform(fn))


def _evaluate(
    closed: JaxProgram, wanted: Sequence[Atom], state: Sequence[Array], lifted: dict[int, Array], args: Sequence[Array]
) -> list:
    """The outputs `wanted`, with state and constants from elsewhere; only what they need is evaluated.

    All outputs together need everything, effects included.
    """
    equations = (
        None if len(wanted) == len(contents.open_jaxpr(closed).outvars) else [eqn for eqn, _ in needed(closed, wanted)]
    )

    def run(eqn: Equation, inputs: Sequence[Array]) -> Sequence[Array]:
        return [state[eqn.params["slot"]]] if eqn.primitive is _variable else lifting.run_equation(lifted, eqn, inputs)

    return evaluate(closed, args, run, lifted=lifted, equations=equations, wanted=wanted)
