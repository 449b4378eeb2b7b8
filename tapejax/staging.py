"""Traces a Python function once into a pure program, with what it reads of variables as inputs and what it assigns as outputs.

While the function runs, a `Capture` stands in for its thread. A variable that is read or assigned to for the first time is
*adopted*: it holds a tracer from there on, made by an operation ``variable`` of the program under construction, and gets back
what it held when the trace ends. So assignments in the function are Python assignments of tracers. Afterwards those operations
and the arrays that the function closed over become inputs; what the variables hold at the end become outputs.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from . import jaxprs, libraries, recorder
from .jaxcore import Literal, Primitive, current_trace, jaxpr_as_fun, set_current_trace
from .recorder import Op
from .values import Variable

Tracer = jax.core.Tracer

# Variables hold tracers while a function is traced: no other thread may trace, or run a compiled function's reads and
# assignments, meanwhile.
tracing = threading.RLock()

_variable = Primitive("variable")
_variable.def_abstract_eval(lambda *, slot, aval: aval)


@jax.custom_jvp
def _assigned(new: Any, old: Any) -> Any:
    """What is read of a variable after an assignment: the value is new, the gradient goes to the variable, as in TensorFlow."""
    return new


@_assigned.defjvp
def _assigned_jvp(primals: Any, tangents: Any) -> Any:
    return primals[0], tangents[1]


class Slot:
    """A place that holds an array from call to call, usually a variable: what it held before the trace, and its tracer."""

    __slots__ = ("holder", "attribute", "before", "tracer", "assigned")

    def __init__(self, holder: Any, attribute: str, before: Any, tracer: Any):
        self.holder = holder
        self.attribute = attribute
        self.before = before
        self.tracer = tracer
        self.assigned = False  # since it was last read

    @property
    def place(self) -> tuple[int, str]:
        return id(self.holder), self.attribute

    @property
    def array(self) -> Any:
        return getattr(self.holder, self.attribute)

    @array.setter
    def array(self, value: Any) -> None:
        setattr(self.holder, self.attribute, value)

    def read(self) -> Any:
        """The present array, noted by tapes and by a function that is being traced around this one."""
        if isinstance(self.holder, Variable):
            return recorder.read(self.holder)
        capture = recorder.capturing.capture
        array = self.array if capture is None else capture.adopt(self.holder, self.attribute)
        if libraries.recording() and hasattr(self.holder, "trainable"):
            libraries.note_read(self.holder, array, lambda new: setattr(self, "array", new), self.holder.trainable)
            array = self.array
        return array


class Capture:
    """What a function that is being traced reads, assigns and creates. A context: inside it variables hold tracers."""

    def __init__(self) -> None:
        self.parent: Capture | None = recorder.capturing.capture
        trace = current_trace()
        self.around = trace.outer if isinstance(trace, recorder.RecorderTrace) else trace
        self.slots: dict[tuple[int, str], Slot] = {}
        self.created: dict[tuple[int, str], Slot] = {}

    def __enter__(self) -> Capture:
        self._trace = current_trace()
        recorder.capturing.capture = self
        return self

    def __exit__(self, *exception: Any) -> None:
        recorder.capturing.capture = self.parent
        for slot in self.slots.values():
            slot.array = slot.before

    def adopt(self, holder: Any, attribute: str = "_array") -> Any:
        """What stands here for the array that `holder` has."""
        place = id(holder), attribute
        array = getattr(holder, attribute)
        if (slot := self.slots.get(place)) is not None:
            if slot.assigned:
                slot.assigned = False
                if jnp.issubdtype(array.dtype, jnp.inexact) and array.shape == slot.tracer.shape:
                    with set_current_trace(self._trace):
                        slot.array = array = _assigned(array, slot.tracer)
            return array
        if place in self.created or not self._is_outside(place, array):
            return array
        with set_current_trace(self._trace):
            tracer = _variable.bind(slot=len(self.slots), aval=jax.typeof(array))
        self.slots[place] = Slot(holder, attribute, array, tracer)
        setattr(holder, attribute, tracer)
        return tracer

    def create(self, holder: Any, attribute: str = "_array") -> None:
        """Notes that `holder` came into being in the function."""
        array = getattr(holder, attribute)
        self.created[id(holder), attribute] = Slot(holder, attribute, array, array)

    def assign(self, holder: Any, attribute: str, array: Any) -> None:
        """Notes that `holder` is about to be given `array`.

        Raises:
          RuntimeError: `array` belongs to a trace inside this one, and would leak out of it.
        """
        if getattr(array, "_trace", self._trace) is not self._trace:
            raise RuntimeError(
                f"Variable {getattr(holder, 'name', holder)!r} was assigned to inside a JAX transformation (jax.grad, jax.vmap, "
                "lax.scan, lax.cond ...) of a tf.function: the value would leak out of it. Return it and assign it outside, "
                "or use tf.cond and tf.while_loop, which thread variables through."
            )
        self.adopt(holder, attribute)
        if (slot := self.slots.get((id(holder), attribute))) is not None:
            slot.assigned = True

    def _knows(self, place: tuple[int, str]) -> bool:
        return place in self.slots or place in self.created

    def _is_outside(self, place: tuple[int, str], array: Any) -> bool:
        # A variable that JAX unflattened inside one of its transformations is a value of that, and no state.
        if not isinstance(array, Tracer):
            return True
        outer = self.parent
        while outer is not None:
            if outer._knows(place):
                return True
            outer = outer.parent
        return False


@contextlib.contextmanager
def init_scope() -> Iterator[None]:
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
    innermost = capture = recorder.capturing.capture
    if capture is None:
        yield
        return
    swapped: list[tuple[Slot, Any]] = []
    around = capture.around
    while capture is not None:
        around = capture.around
        for slot in capture.slots.values():
            swapped.append((slot, slot.array))
            slot.array = slot.before
        capture = capture.parent
    recorder.capturing.capture = None
    try:
        with set_current_trace(around):
            yield
    finally:
        recorder.capturing.capture = innermost
        for slot, inside in reversed(swapped):
            slot.before, slot.array = slot.array, inside


class Compiled:
    """A program with state: `op`, of (state, constants, arguments) -> (outputs, new state).

    `slots` are the places where the state lives, `changed` the positions of those that get new values, `constants` arrays
    that it was traced with. `noted` is what tapes see of it: the outputs only, for state stops gradients.
    """

    op: Op
    noted: Op
    slots: Sequence[Slot]
    changed: Sequence[int]
    constants: Sequence[Any]
    outputs: int

    def run(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """Runs it on the present state and `arrays`, keeps the new state and returns the outputs."""
        trace = current_trace()
        if recorder.plain(trace):  # nobody looks on: the same as below, at full speed
            with tracing:
                inputs = [getattr(slot.holder, slot.attribute) for slot in self.slots]
            found = self.op.call(*inputs, *self.constants, *arrays)
            if self.changed:
                with tracing:
                    for i, array in zip(self.changed, found[self.outputs :], strict=True):
                        slot = self.slots[i]
                        setattr(slot.holder, slot.attribute, array)
            return found
        with tracing:
            state = [slot.read() for slot in self.slots]
        values = (*state, *self.constants, *arrays)
        if type(trace) is not recorder.RecorderTrace:
            found = self.op.call(*values)
        else:
            with recorder.outside():
                found = self.op.call(*values)
                found = [*trace.note(self.noted, values, found[: self.outputs]), *found[self.outputs :]]
        if self.changed:
            with tracing:
                self._store(found[self.outputs :], arrays)
        return found

    def _store(self, new: Sequence[Any], arrays: Sequence[Any]) -> None:
        if recorder.capturing.capture is None:
            for i, array in zip(self.changed, new, strict=True):
                _require_no_tracer(self.slots[i], array)
        for i, array in zip(self.changed, new, strict=True):
            _keep(self.slots[i], array)
            recorder.leaves("state", *arrays, into=array)


class Staged(Compiled):
    """A Python function traced into a program. `created` are the variables made in the trace; they hold its tracers until
    `initialize`, and there is no program for more than that."""

    def __init__(self, body: Callable, arguments: Sequence[Any], name: str):
        capture, around = Capture(), recorder.active_recordings()

        def program(*tracers: Any) -> Any:
            with capture:
                with recorder.continuing(around):
                    outputs = body(*tracers)
                # state stops gradients
                new = [
                    jax.lax.stop_gradient(slot.array)
                    for slot in capture.slots.values()
                    if slot.array is not slot.tracer
                ]
                self.changed = [i for i, slot in enumerate(capture.slots.values()) if slot.array is not slot.tracer]
                initial = [slot.before for slot in capture.created.values()]
            self._counts = len(outputs), len(new)
            return outputs, new, initial

        with tracing, _library_variables(), recorder.outside():
            closed = jax.make_jaxpr(program)(*arguments)
        self.slots = list(capture.slots.values())
        self.created = list(capture.created.values())
        self.constants = jaxprs.constants(closed)
        self.outputs = self._counts[0]
        self.results = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in closed.out_avals[: self.outputs]]
        self._closed, self._arguments = closed, arguments
        for slot in (*self.slots, *self.created):
            slot.before = slot.tracer = None  # let go of what belongs to the trace
        if not self.created:
            self.lifted = self._lifted(0, sum(self._counts))
            self.op = self.noted = _named(name, self.lifted)
            if self.changed:  # tapes see the results only: state stops gradients
                self.noted = _named(name, self.lifted, self.outputs)
            if jaxprs.asks_host(self.lifted):
                self.noted = recorder.without_derivative(self.noted)
            recorder.joint.add(self.noted.fn)

    @property
    def portable(self) -> bool:
        """Whether it may be used again: it closes over no value of a trace around it."""
        return not any(isinstance(x, Tracer) for x in self.constants)

    def _lifted(self, start: int, stop: int) -> Any:
        """The outputs from `start` to `stop` as a closed jaxpr of (state, constants, arguments)."""
        jaxpr = jaxprs.open_jaxpr(self._closed)
        constants, count = self.constants, len(self.slots)

        def pure(*flat: Any) -> list[Any]:
            lifted = {id(c): x for c, x in zip(constants, flat[count:], strict=False)}
            return _evaluate(
                self._closed, jaxpr.outvars[start:stop], flat[:count], lifted, flat[count + len(constants) :]
            )

        state: list[Any] = [None] * count
        for eqn in jaxpr.eqns:
            if eqn.primitive is _variable:
                state[eqn.params["slot"]] = jaxprs._spec(eqn.params["aval"])
        with recorder.outside():
            return jax.make_jaxpr(pure)(*state, *[jaxprs._spec(jax.typeof(c)) for c in constants], *self._arguments)

    def initialize(self, arrays: Sequence[Any]) -> None:
        """Gives the variables that were created their initial values."""
        initial = _named("initialize", self._lifted(sum(self._counts), len(jaxprs.open_jaxpr(self._closed).outvars)))
        with recorder.outside():
            found = initial.call(*[slot.read() for slot in self.slots], *self.constants, *arrays)
        capture = recorder.capturing.capture
        for slot, array in zip(self.created, found, strict=True):
            if capture is None:
                _require_no_tracer(slot, array)
            slot.array = array
            if capture is not None:
                capture.create(slot.holder, slot.attribute)


class Threaded:
    """The bodies of one control flow operation, and the state that they change, which is carried from one to the next.

    Args:
      *bodies: pairs of a function from arrays to a list of arrays, and such arrays or their shapes and dtypes.

    Where no `function` is being traced there is no state, and the bodies run as they are.
    """

    def __init__(self, *bodies: tuple[Callable, Sequence[Any]]):
        self._bodies = [body for body, _ in bodies]
        self._staged: list[Staged] = []
        self._slots: dict[tuple[int, str], Slot] = {}
        if recorder.capturing.capture is not None:
            self._staged = [Staged(body, [abstract(x) for x in arrays], "body") for body, arrays in bodies]
        for staged in self._staged:
            if staged.created:
                raise ValueError(
                    "Variables cannot be created in a branch or loop of a tf.function: create them before it."
                )
            self._slots |= {slot.place: slot for slot in staged.slots}
        self._changed = list(dict.fromkeys(staged.slots[i].place for staged in self._staged for i in staged.changed))
        self._held = {place: slot.read() for place, slot in self._slots.items()}
        self.state = [self._held[place] for place in self._changed]

    def __call__(self, index: int, state: Sequence[Any], *arrays: Any) -> tuple[list[Any], list[Any]]:
        """Runs one body on `state` and `arrays`: its results, and the state after it."""
        if not self._staged:
            return list(self._bodies[index](*arrays)), []
        staged = self._staged[index]
        held = self._held | dict(zip(self._changed, state, strict=True))
        found = staged.op.fn(*[held[slot.place] for slot in staged.slots], *staged.constants, *arrays)
        for i, x in zip(staged.changed, found[staged.outputs :], strict=True):
            held[staged.slots[i].place] = x
        return list(found[: staged.outputs]), [held[place] for place in self._changed]

    def finish(self, state: Sequence[Any]) -> None:
        """Keeps the state that the operation ended with."""
        for place, array in zip(self._changed, state, strict=True):
            _keep(self._slots[place], array)


def abstract(x: Any) -> jax.ShapeDtypeStruct:
    """What a program is traced with in place of the array `x`."""
    return jax.ShapeDtypeStruct(x.shape, x.dtype, weak_type=getattr(x, "weak_type", False))


def _keep(slot: Slot, array: Any) -> None:
    capture = recorder.capturing.capture
    if capture is not None:
        capture.assign(slot.holder, slot.attribute, array)
    slot.array = array


def _require_no_tracer(slot: Slot, array: Any) -> None:
    if isinstance(array, Tracer):
        name = getattr(slot.holder, "name", type(slot.holder).__name__)
        raise RuntimeError(
            f"Variable {name!r} is assigned to by a tf.function inside a JAX transformation (jax.jit, jax.vmap, lax.scan ...): "
            "the value would leak out of it. Decorate the outer function with tapejax.function as well, which threads "
            "Variables through."
        )


def _named(name: str, closed: Any, outputs: int | None = None) -> Op:
    run = jaxpr_as_fun(closed)

    def fn(*flat: Any) -> list[Any]:
        return run(*flat)[:outputs]

    fn.__name__ = fn.__qualname__ = name
    return Op(name, fn)


def _evaluate(
    closed: Any, wanted: Sequence[Any], state: Sequence[Any], lifted: dict[int, Any], args: Sequence[Any]
) -> list:
    """The outputs `wanted`, with state and constants from elsewhere; only what they need is evaluated.

    All outputs together need everything, effects included.
    """
    jaxpr = jaxprs.open_jaxpr(closed)
    whole = len(wanted) == len(jaxpr.outvars)
    needed = {v for v in wanted if not isinstance(v, Literal)}
    kept = []
    for eqn in reversed(jaxpr.eqns):
        if whole or not needed.isdisjoint(eqn.outvars):
            kept.append(eqn)
            needed.update(x for x in eqn.invars if not isinstance(x, Literal))
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, (lifted.get(id(c), c) for c in closed.consts), strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else env[atom]

    for eqn in reversed(kept):
        if eqn.primitive is _variable:
            env[eqn.outvars[0]] = state[eqn.params["slot"]]
            continue
        out = jaxprs._bind_lifted(eqn.primitive, eqn.params, [read(x) for x in eqn.invars], lifted)
        env.update(zip(eqn.outvars, out if eqn.primitive.multiple_results else [out], strict=True))
    return [read(x) for x in wanted]


# ---- other libraries' variables -------------------------------------------------------------------------------------

_hooked = False


@contextlib.contextmanager
def _library_variables() -> Iterator[None]:
    """Lets Keras's variables be adopted like ours while a function is traced.

    Keras reads `Variable.value` and writes by `Variable._direct_assign`; both are put back when the trace ends. (Keras's own
    way, ``StatelessScope``, cannot create variables nor find out which are read.)
    """
    global _hooked
    keras = sys.modules.get("keras")
    kind = getattr(keras, "Variable", None)
    if _hooked or kind is None or not hasattr(kind, "__jax_array__"):
        yield
        return
    own = {
        name: vars(kind)[name]
        for name in ("value", "_direct_assign", "_initialize_with_initializer")
        if name in vars(kind)
    }
    hooks = _keras_hooks(kind)
    for name, hook in hooks.items():
        setattr(kind, name, hook)
    _hooked = True
    try:
        yield
    finally:
        _hooked = False
        for name in hooks:
            if name in own:
                setattr(kind, name, own[name])
            else:
                delattr(kind, name)


def _keras_hooks(kind: Any) -> dict[str, Any]:
    value, direct_assign, initialize = kind.value, kind._direct_assign, kind._initialize_with_initializer

    def read(variable: Any) -> Any:
        capture = recorder.capturing.capture
        if capture is not None and variable._value is not None:
            capture.adopt(variable, "_value")
        return value.fget(variable)

    def assign(variable: Any, new: Any) -> None:
        capture = recorder.capturing.capture
        if capture is None:
            direct_assign(variable, new)
        elif getattr(variable, "_value", None) is None:
            direct_assign(variable, new)
            if isinstance(new, Tracer):
                capture.create(variable, "_value")
        else:
            capture.assign(variable, "_value", new)
            direct_assign(variable, new)

    def initialize_now(variable: Any, initializer: Any) -> None:
        with init_scope():
            initialize(variable, initializer)

    return {"value": property(read), "_direct_assign": assign, "_initialize_with_initializer": initialize_now}
