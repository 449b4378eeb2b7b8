"""What a program does with its tapes, step by step: blocks, gradients, and what they do to variables.

A step begins where a tape is entered and none is active, and an update has been made since the last one began; it ends where
the next begins. While it lasts a tape of our own records what the program's tapes do not: what becomes of the gradients.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import sys
import traceback
import weakref
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any, TypeAlias
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

from ....jaxprs.fence import Tracer
from ....jaxprs.types import Value
from ....tape.active import copied, eager, outside
from ....tape.derivative import DerivativeOp
from ....tape.gradient_tape import GradientTape
from ....tape.recording import Entry, Recording, type_of
from ....tape.structures import sources_of, targets_of
from ....tf.libraries import keras_adapter
from ....tf.values import keras_fence, nest, reading
from ....tf.values.conversion import convert_to_tensor
from ....tf.values.structures import is_variable, leaf_of
from ....tf.values.tensor import Tensor
from ....tf.values.types import Array, Nest, TensorLike, VariableLike
from ....tf.values.variable import Variable
from ...seeing.listing import Names, namespaces, parts_of, user_frames
from ...writing.graph import Graph, ValueMap, ValueSet
from .comparing import STEPS

Optimizer: TypeAlias = Any  # of Keras
Place: TypeAlias = tuple[str, int]  # a file, and the line in it


@dataclass(eq=False)
class Carried:
    """A tensor that the program itself carries from step to step by a name, as in ``x = x - rate * gradient``."""

    path: str  # the expression for it


@dataclass
class Block:
    """A ``with`` statement over a tape: its place, and the values of the names around it, before it."""

    place: Place
    before: dict[str, Value]
    names: tuple[str, ...]  # those of `before` that belong to a function's call, not to the module


@dataclass
class MappedCall:
    """A call of `vectorized_map`, as the first row of it: what the function was given of which batch, and what it returned."""

    of: dict[int, Array]  # by the id of a row the batch
    results: list[tuple[Any, Array]]  # for the row, each with the variable that it is the gradient of, or with a name
    others: dict[str, Array]  # what is no gradient, by name: of all rows


@dataclass(eq=False)
class Gradient:
    """A call of `GradientTape.gradient` with respect to variables, or tensors that have names; `entries` are those of the step
    that are part of it."""

    block: Block
    name: str  # of the loss
    place: Place
    recording: Recording
    targets: list[Array]
    variables: list[VariableLike | Carried]
    held: list[Array]  # what these held
    found: list[Array | None]
    entries: range
    inside: bool = False  # a Jacobian, say: its operations are printed as part of what is made of it
    asked: bool = False  # by an optimizer of SciPy's, which alone sees it
    rows: MappedCall | None = None  # of `vectorized_map`, whose function took it for each row

    @property
    def target(self) -> Nest:
        return self.targets[0] if len(self.targets) == 1 else self.targets

    @property
    def pairs(self) -> list[tuple[VariableLike | Carried, Array]]:
        """The variables with their gradients, if they have any."""
        return [(v, x) for v, x in zip(self.variables, self.found, strict=True) if x is not None]

    @property
    def recorded(self) -> list[Array]:
        """What it gave, where it is one of its own."""
        return [] if self.inside else [x for x in self.found if x is not None]

    @property
    def loss(self) -> float:
        return float(sum(np.sum(np.asarray(x, "float64")) for x in self.targets))


@dataclass
class Applied:
    """A call of a Keras optimizer: the gradients that it was given, and the arrays of its variables before and after."""

    optimizer: Optimizer
    name: str  # what the program calls it
    place: Place
    gradients: list[Array | None]
    variables: list[VariableLike]
    before: list[Array]
    after: list[Array]
    rate: float
    count: int  # how often it was applied before
    position: int  # how many assignments of its step came before
    slots_before: dict[str, list[Array]]  # what it held then, if it was: by names of its own for each of `variables`
    slots: dict[str, list[Array]]  # and what it holds afterwards


@dataclass(eq=False)
class Assigned:
    """One assignment to a variable, or all of a step: the array before, the value assigned last, and the array then."""

    variable: VariableLike | Carried
    place: Place
    before: Array
    value: Value
    after: Array
    later: bool = True  # than all gradients of its step


@dataclass(eq=False)
class TrainingStep:
    number: int
    tape: GradientTape
    recording: Recording
    gradients: list[Gradient] = field(default_factory=list)
    applied: list[Applied] = field(default_factory=list)
    events: list[Assigned] = field(default_factory=list)
    carried: list[Assigned] = field(default_factory=list)  # what tensors became that no gradient is with respect to
    earlier: list[Entry] = field(default_factory=list)  # what was run since the step before began
    stale: list[Array] = field(
        default_factory=list
    )  # what then was a gradient, or what a variable held and does no more
    held: dict[int, Array] = field(default_factory=dict)  # by the id of a variable what it held when the step ended

    @property
    def found(self) -> list[Array]:
        return [x for each in self.gradients for x in each.found if x is not None]

    @functools.cached_property
    def shapes(self) -> list[tuple[int, ...]]:
        """Of all that was computed in the blocks of gradients: another one for a batch of another size."""
        return [np.shape(x) for g in self.gradients for entry in g.recording.entries for x in entry.outputs]

    @property
    def origins(self) -> ValueMap[Value]:
        """By what a variable held after an assignment what was assigned."""
        return ValueMap((each.after, each.value) for each in self.events if each.after is not each.value)

    @property
    def values(self) -> ValueMap[Value]:
        """`origins`, and by what `tf.stop_gradient` gave after all derivatives what it was given: nobody differentiates that."""
        late = itertools.takewhile(lambda e: not isinstance(e.op, DerivativeOp), reversed(self.recording.entries))
        stops = ((e.outputs[0], e.inputs[0]) for e in late if e.op.name == "stop_gradient")
        return ValueMap([*stops, *self.origins.items()])

    def forward(self, known: Container[int] = ()) -> list[Entry]:
        """What it ran besides its gradients, `threaded`."""
        backward = {position for each in self.gradients if not each.inside for position in each.entries}
        entries = threaded(self.recording.entries, self.values, known)
        return [entry for position, entry in enumerate(entries) if position not in backward]

    def nest(self, used: Sequence[Gradient], owners: Mapping[int, Any]) -> None:
        """One of the gradients that are `used` whose block reads what was made of another is `inside` what is made of both; so
        is one that is of use to such a block alone."""
        graph, made, read = Graph(self.recording.entries), ValueSet(), ValueSet()
        for each in used:
            inputs = (x for entry in each.recording.entries for x in entry.inputs)
            read.update(x for x in inputs if isinstance(owners.get(id(x), self), (Carried, TrainingStep)))
            each.inside |= not made.isdisjoint(read)
            made |= graph.after(each.recorded)
        for each in self.gradients:
            each.inside |= each not in used and not graph.after(each.recorded).isdisjoint(read)

    def made_in(self) -> dict[int, Gradient]:
        """By the ids of what was computed in the blocks of gradients: the first of these gradients."""
        return {id(x): g for g in reversed(self.gradients) for entry in g.recording.entries for x in entry.outputs}

    def of_variables(self) -> set[int]:
        """The ids of what was computed in blocks of gradients from variables."""
        computed = ValueSet()
        for each in self.gradients:
            held = [x for _, read in each.recording.variables.values() for x in read.values()]
            computed |= Graph(each.recording.entries).after(held)
        computed |= Graph(self.recording.entries).after(computed)
        return {id(x) for x in computed}

    @functools.cached_property
    def resets(self) -> list[Assigned]:
        """What variables are set to, between this step and the next, that does not come of gradients or variables."""
        held = {id(x) for each in self.applied for x in (*each.before, *each.after)}
        held |= {id(x) for x in (*self.found, *(x for each in self.gradients for x in each.held))}
        held |= {id(x) for _, read in self.recording.variables.values() for x in read.values()} | self.made_in().keys()
        graph, anew = Graph(self.recording.entries), list[Assigned]()
        for event in self.events:
            held.add(id(event.before))
            ends = [event.value] if isinstance(event.value, jax.Array) else []
            own = not isinstance(event.variable, Carried)
            if own and event.later and held.isdisjoint(map(id, (*ends, *graph.read(ends)))):
                anew.append(event)
            held.add(id(event.after))
        return anew

    def assigned(self) -> dict[int, Assigned]:
        """By the id of a variable its assignments as one."""
        return {id(each.variable): each for each in self.carried} | merged(self.events, self.resets)

    def before(self, applied: Applied) -> list[Assigned]:
        """The assignments to variables that an optimizer updates afterwards."""
        ids = set(map(id, applied.variables))
        return [each for each in self.events[: applied.position] if id(each.variable) in ids]


def merged(events: Iterable[Assigned], without: Sequence[Assigned]) -> dict[int, Assigned]:
    """By the id of a variable these assignments to it as one."""
    by_variable: dict[int, Assigned] = {}
    for event in (each for each in events if each not in without):
        first = by_variable.get(id(event.variable), event)
        by_variable[id(event.variable)] = replace(event, before=first.before)
    return by_variable


class Observer:
    """Notes the steps of a program that runs while `installed`.

    ``steps`` are the first `STEPS`, then some. By the id of an array that a variable holds,
    or held as long as it is alive, ``owners`` has the variable.
    """

    def __init__(self, stop_after: int | None):
        self.stop_after = stop_after
        self.steps: list[TrainingStep] = []
        self.owners: dict[int, VariableLike] = {}
        self.firsts: dict[int, Array] = {}  # id of a variable -> what it held before it was changed in a step first
        self.carried: dict[str, Carried] = {}
        self.names: dict[int, tuple[VariableLike, str]] = {}  # id of a variable -> it, and what the program calls it
        self.models: dict[int, tuple[str, Any]] = {}  # id of a model of Keras's -> what the program calls it, and it
        self._step: TrainingStep
        self._count = 0
        self.active: list[GradientTape] = []
        self.traced: list[Gradient] = []  # those that were taken while JAX traced the program
        self.inner: tuple[list[Any], Any] = [], None  # what the last gradient in a tape's block gave, and its targets
        self.failed: tuple[Place, BaseException] | None = None  # where a hook here failed
        self._quiet = False  # whether what runs is part of what a hook has noted already
        self._patches = contextlib.ExitStack()
        self._keras = False

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        self._start(-1)
        with self._patches:
            self._patch_keras()
            self.patch(GradientTape, "__enter__", self._enter)
            self.patch(GradientTape, "__exit__", self._exit)
            for name in ("gradient", "jacobian", "batch_jacobian"):
                self.patch(GradientTape, name, self._gradient, inside=name != "gradient")
            self.patch(sys.modules["tapejax"], "vectorized_map", self._mapped)
            self.patch(Variable, "_change", self._change)
            self.patch(Variable, "assign", self._assign)
            try:
                yield
            finally:
                self._finish()
                if len(self.steps) > 2 and self.steps[-1].number == self._count - 1:
                    self.steps.pop()  # what the program does after its loop came with it

    def patch(self, owner: object, name: str, method: Callable, **more: Any) -> None:
        original = getattr(owner, name)

        def run(*args: Any, **kwargs: Any) -> Any:
            try:
                return original(*args, **kwargs)
            except BaseException as error:
                raised.append(error)
                raise

        @functools.wraps(original)
        def patched(*args: Any, **kwargs: Any) -> Any:
            frame = None if self._quiet else next(user_frames(), None)
            if frame is None:
                return original(*args, **kwargs)
            try:
                return method(run, frame, *args, **kwargs, **more)
            except Exception as error:
                if self.failed is None and error not in raised:
                    self.failed = _place(frame), error
                raise

        raised: list[BaseException] = []
        self._patches.enter_context(mock.patch.object(owner, name, patched))

    def _quietly(self) -> AbstractContextManager:
        return mock.patch.object(self, "_quiet", True)

    def _patch_keras(self) -> None:
        reading.install_adapters()  # whose hooks come first: ours see what the user assigns
        if not self._keras and "keras" in sys.modules:
            self._keras = True
            keras = sys.modules["keras"]
            self.patch(keras.Variable, keras_fence.ASSIGN, self._assign)
            self.patch(keras.optimizers.Optimizer, "apply", self._apply)
            for name in ("fit", "train_on_batch", "evaluate", "test_on_batch", "predict", "predict_on_batch"):
                self.patch(keras.Model, name, self._by_keras)

    # -- steps

    def _begin(self, frame: FrameType) -> None:
        step, stale = self._step, self._stale(self._step)
        if self._carry(step, frame, stale) or step.applied or step.events and step.gradients or step.number < 0:
            self._finish()
        elif len(step.recording.entries) < 50_000:  # tapes that were not for training go on in the same step
            return
        else:
            step.tape.__exit__()
        self._start(self._count)
        self._step.earlier, self._step.stale = step.recording.entries, stale
        if self._count == self.stop_after:
            raise SystemExit

    def _start(self, number: int) -> None:
        """A step begins; the one with the number -1 is what the program does before its first."""
        tape = GradientTape(persistent=True, watch_accessed_variables=False)
        tape._start("enter")
        assert tape._recording is not None
        self._step = TrainingStep(number, tape, tape._recording)

    def _reads(self, entries: Sequence[Entry]) -> list[tuple[VariableLike, Array]]:
        """The variables that entries read, with what these held."""
        inputs = (x for entry in entries for x in entry.inputs if id(x) in self.owners)
        return [(self.owners[id(x)], x) for x in inputs if not isinstance(self.owners[id(x)], Carried)]

    def _stale(self, step: TrainingStep) -> list[Array]:
        """A step's gradients, and what variables held in it that they do not hold any more."""
        return [*(x for variable, x in self._reads(step.recording.entries) if held(variable) is not x), *step.found]

    def fresh(self, entries: Sequence[Entry], stale: Sequence[Array]) -> Set[Value]:
        """What was computed of variables, and not of what is `stale`."""
        graph = Graph(entries)
        return graph.after(x for _, x in self._reads(entries)) - graph.after(stale)

    def _carry(self, step: TrainingStep, frame: FrameType, stale: Sequence[Array]) -> bool:
        """Notes what tensors have become, by their names; returns whether one is another that a gradient is with respect to."""
        if not step.gradients:
            return False
        names, before = snapshot(frame, arrays=False), step.gradients[0].block.before
        of_gradients = Graph(threaded(step.recording.entries, step.origins)).after(step.found)
        made = {id(x) for x in of_gradients - self.fresh(step.recording.entries, stale)}
        for gradient in step.gradients:  # of a tensor that has several names the one that goes on
            for i, x in enumerate(gradient.held):
                moving = [text for text, held in before.items() if held is x and id(names.get(text)) in made]
                if moving and isinstance(gradient.variables[i], Carried):
                    gradient.variables[i] = self.carried.setdefault(moving[0], Carried(moving[0]))
        pairs = [pair for g in step.gradients for pair in zip(g.variables, g.held, strict=True)]
        own = {v.path: x for v, x in pairs if isinstance(v, Carried)}
        step.carried, inside = [], step.of_variables()
        used = {id(x) for g in step.gradients for entry in g.recording.entries for x in entry.inputs}
        for text, x in names.items():
            if id(x) in made or id(x) in inside and text not in own:
                carried, old = self.carried.setdefault(text, Carried(text)), own.get(text, before.get(text))
                old = x if type_of(old) != type_of(x) or id(x) not in made and id(old) not in used else old
                kept = step.events if text in own else step.carried
                kept.append(Assigned(carried, _place(frame), old, x, x))
                self._own(carried, old if text in own or old is not x else jnp.zeros_like(x), x)  # type: ignore[arg-type]
        return any(names.get(text, x) is not x for text, x in own.items())

    def _finish(self) -> None:
        step = self._step
        step.tape.__exit__()
        updated = bool(step.applied or step.events) or any(each.asked for each in step.gradients)
        if not (step.gradients and updated):
            return
        self._count += 1
        step.held = {key: held(variable) for key, (variable, _) in self.names.items()}
        last = self.steps[-1].number if self.steps else -1
        if last >= STEPS and last & (last - 1):  # later ones are kept at the powers of two, and two of each shape
            alike = [each for each in self.steps if each.shapes == self.steps[-1].shapes]
            if len(alike) > 2 or len(self.steps) > 2 * STEPS:
                self.steps.pop()
        self.steps.append(step)

    # -- hooks

    def _by_keras(self, original: Callable, frame: FrameType, model: Any, *args: Any, **kwargs: Any) -> Any:
        """What Keras trains without a step of the program's own is no part of one; what it leaves in variables is. Since Keras
        donates what variables hold, they get copies."""
        if any(keras_adapter.from_user(getattr(type(model), name)) for name in ("train_step", "make_train_function")):
            return original(model, *args, **kwargs)
        before = [(v, x) for v in model.variables if (x := keras_fence.held(v)) is not None]
        for v in [*model.variables, *getattr(getattr(model, "optimizer", None), "variables", ())]:
            setattr(v, keras_fence.VALUE, jax.tree.map(copied, keras_fence.held(v)))  # which is None at first
        with self._quietly(), outside():
            result = original(model, *args, **kwargs)
        for v, old in before:
            if np.array_equal(old, held(v)):
                setattr(v, keras_fence.VALUE, old)
            else:
                self._note(v, old, held(v), frame)
        return result

    def _block(self, frame: FrameType) -> Block:
        if not self.active:
            self._begin(frame)
        names = () if frame.f_locals is frame.f_globals else tuple(frame.f_locals)
        return Block(_place(frame), snapshot(frame, self._count < STEPS), names)

    def _enter(self, original: Callable, frame: FrameType, tape: GradientTape) -> GradientTape:
        self._patch_keras()
        if eager():
            vars(tape)["_block"] = self._block(frame)
            self.active.append(tape)
        return original(tape)

    def _mapped(
        self, original: Callable, frame: FrameType, function: Callable, elems: Nest, *args: Any, **kwargs: Any
    ) -> Nest:
        """What takes gradients of each row of a batch is a block of its own."""
        if self.active or not eager():
            return original(function, elems, *args, **kwargs)
        block, start, before = self._block(frame), len(self._step.recording.entries), len(self.traced)
        elems = nest.map_structure(convert_to_tensor, elems)
        result = original(function, elems, *args, **kwargs)
        step, leaves, traced = self._step, [leaf_of(x) for x in nest.flatten(result)], self.traced[before:]
        for each in traced:
            each.block, each.found = block, [None if leaf is None else leaf.array for leaf in leaves]
            each.entries = range(start, len(step.recording.entries))
        if len(traced) == 1 and all(leaves):
            self._first_row(traced[0], function, elems)
        step.gradients += traced
        return result

    def _first_row(self, gradient: Gradient, function: Callable, elems: Nest) -> None:
        """Runs what is mapped for one row, by itself: that is what is written, under `jax.vmap`."""
        batches = [x._array for x in nest.flatten(elems)]
        tape, rows = GradientTape(persistent=True), [Tensor(x[0]) for x in batches]
        with self._quietly(), outside(), tape:
            leaves = [leaf_of(x) for x in nest.flatten(function(nest.pack_sequence_as(elems, rows)))]
        recording, ones = tape._recording, [leaf.array for leaf in leaves if leaf is not None]
        assert recording is not None
        drawn = any(entry.op.name.startswith("random_") for entry in recording.entries)
        if drawn or len(ones) < len(leaves) or len({len(x) for x in batches}) > 1:
            return
        wanted, keys = list(gradient.variables), list[Any]()
        for i, x in enumerate(ones, 1):
            fits = wanted and np.shape(held(wanted[0])) == x.shape
            keys.append(wanted.pop(0) if fits else f"output_{i}")
        pairs = [*zip(keys, gradient.found, strict=True)]
        others = {key: x for key, x in pairs if isinstance(key, str)}
        gradient.variables = [key for key in keys if not isinstance(key, str)]
        gradient.found = [x for key, x in pairs if not isinstance(key, str)]
        gradient.held = [held(v) for v in gradient.variables]
        gradient.name = getattr(function, "__name__", "row").strip("<>")
        gradient.recording, gradient.inside = recording, False
        of = {id(row._array): batch for row, batch in zip(rows, batches, strict=True)}
        gradient.rows = MappedCall(of, [*zip(keys, ones, strict=True)], others)

    def _exit(self, original: Callable, frame: FrameType, tape: GradientTape, *exception: Any) -> None:
        original(tape, *exception)
        if tape in self.active:
            self.active.remove(tape)

    def _gradient(
        self,
        original: Callable,
        frame: FrameType,
        tape: GradientTape,
        target: Nest,
        sources: Nest,
        *rest: Any,
        inside: bool = False,
        **more: Any,
    ) -> Nest:
        step, recording = self._step, tape._recording
        if recording is None or [other for other in self.active if other is not tape]:
            found = original(tape, target, sources, *rest, **more)
            self.inner = nest.flatten(found), targets_of(target)
            return found
        start = len(step.recording.entries)
        with self._quietly():  # a gradient of the program's own may have tapes
            found = original(tape, target, sources, *rest, **more)
        inside = inside or bool(rest) or more.get("output_gradients") is not None
        given = sources_of(sources).leaves
        texts = {id(x): text for text, x in reversed(snapshot(frame, arrays=False).items())}
        leaves = [leaf for leaf in given if is_variable(leaf.value) or id(leaf.array) in texts and eager()]
        if len(leaves) < len(given) and not inside:
            return found
        variables = [
            leaf.value
            if is_variable(leaf.value)
            else self.carried.setdefault(text := texts[id(leaf.array)], Carried(text))
            for leaf in leaves
        ]
        with outside():
            self._name([v for v in variables if not isinstance(v, Carried)], recording)
        ends = targets_of(target)
        if inside and any(x is y for x in nest.flatten(target) for y in self.inner[0]):
            ends = self.inner[1]  # a Hessian's loss
        targets = [leaf.array for leaf in ends.leaves]
        name = next((text for x in targets if "loss" in (text := texts.get(id(x), "")) and text.isidentifier()), "loss")
        arrays = [None if x is None else leaf_of(x).array for x in nest.flatten(found)]  # type: ignore[union-attr]
        entries, held_ = range(start, len(step.recording.entries)), [leaf.array for leaf in leaves]
        block = vars(tape).get("_block") or Block(_place(frame), {}, ())
        gradient = Gradient(block, name, _place(frame), recording, targets, variables, held_, arrays, entries, inside)
        if not eager():
            gradient.targets, gradient.inside = [], True
            gradient.held = [held(v) for v in variables]
            self.traced.append(gradient)
            return found
        gradient.asked = any(
            f.f_globals.get("__name__", "").startswith("scipy.optimize") for f, _ in traceback.walk_stack(None)
        )
        for event in step.events:
            event.later = False
        step.gradients.append(gradient)
        return found

    def _apply(
        self,
        original: Callable,
        frame: FrameType,
        optimizer: Optimizer,
        grads: Iterable[TensorLike | None],
        trainable_variables: Iterable[VariableLike] | None = None,
    ) -> Any:
        if not eager():
            return original(optimizer, grads, trainable_variables)
        grads = list(grads)
        variables = list(keras_fence.trained_by(optimizer) if trainable_variables is None else trainable_variables)
        with outside():
            before, rate = [held(v) for v in variables], float(np.asarray(optimizer.learning_rate))
            count, events = int(np.asarray(optimizer.iterations)), len(self._step.events)
            slots_before = _slots(optimizer, variables) if count else {}
        with self._quietly():
            result = original(optimizer, grads, trainable_variables)
        arrays = [None if x is None else leaf_of(x).array for x in grads]  # type: ignore[union-attr]
        after = [held(v) for v in variables]
        for variable, old, new in zip(variables, before, after, strict=True):
            self._own(variable, old, new)
        name = next((text for text, x in _objects() if x is optimizer), optimizer.name)
        slots = slots_before, _slots(optimizer, variables)
        self._step.applied.append(
            Applied(optimizer, name, _place(frame), arrays, variables, before, after, rate, count, events, *slots)
        )
        return result

    def _assign(
        self, original: Callable, frame: FrameType, variable: VariableLike, value: TensorLike, *rest: Any, **more: Any
    ) -> Any:
        before, leaf = held(variable), leaf_of(value)
        result = original(variable, value, *rest, **more)
        if not (before is None or isinstance(held(variable), Tracer)):  # Keras builds a layer, or traces a step
            self._note(variable, before, value if leaf is None else leaf.array, frame)
        return result

    def _note(self, variable: VariableLike, before: Array, value: Value, frame: FrameType) -> None:
        """Notes that a value was assigned to a variable."""
        self._own(variable, before, after := held(variable))
        with outside():
            self._name([variable], self._step.recording)
        self._step.events.append(Assigned(variable, _place(frame), before, value, after))

    def _change(
        self, original: Callable, frame: FrameType, variable: VariableLike, change: Callable, *rest: Any
    ) -> Any:
        """``assign_add`` and its like compute the new value out of the tapes' sight."""
        if not eager():
            return original(variable, change, *rest)
        value = change(held(variable))
        return self._assign(lambda *_: original(variable, lambda _: copied(value), *rest), frame, variable, value)

    def _own(self, variable: VariableLike | Carried, before: Array, after: Array) -> None:
        for array in (before, after):
            if id(array) not in self.owners:
                self.owners[id(array)] = variable
                weakref.finalize(array, self.owners.pop, id(array), None)
        self.owners[id(after)] = variable
        if self._step.number >= 0:
            self.firsts.setdefault(id(variable), before)

    def _name(self, variables: list[VariableLike], recording: Recording) -> None:
        unnamed = [v for v in variables if id(v) not in self.names]
        if unnamed:
            models = [(n, x) for n, x in _objects() if isinstance(getattr(type(x), "layers", None), property)]
            self.models = {id(x): (n, x) for n, x in reversed(models) if n != "self"} | self.models
            spaces = namespaces()
            fixed = [{n: x for n, x in space.items() if n not in getattr(space, "passing", ())} for space in spaces]
            objects = [{n: x for n, x in space.items() if not isinstance(x, (list, tuple))} for space in fixed]
            names = Names(recording, [*objects, *spaces])  # the better name is of a part of a model, not of a list
            for v in unnamed:
                found = names.name(held(v)) if isinstance(v, Variable) else None
                self.names[id(v)] = v, found or getattr(v, "path", None) or "variable"


def followed(x: Value, origins: Mapping[Value, Value], known: Container[int] = ()) -> Value:
    """What was assigned where `x` is what a variable held then, and not `known`, by its id; else `x`."""
    while id(x) not in known and x in origins:
        x = origins[x]
    return x


def threaded(entries: Sequence[Entry], origins: Mapping[Value, Value], known: Container[int] = ()) -> list[Entry]:
    """Entries of which each reads `followed` values: variables are threaded through them."""
    return [e._replace(inputs=tuple([followed(x, origins, known) for x in e.inputs])) for e in entries]


def held(variable: VariableLike) -> Array:
    """The array in a variable, without a note of it on the tapes."""
    if isinstance(variable, Variable):
        return reading.held(variable)
    return keras_fence.held(variable)


def _slots(optimizer: Optimizer, variables: Sequence[VariableLike]) -> dict[str, list[Array]]:
    """What an optimizer holds for each of the variables, by the names of its lists."""
    trained = [id(v) for v in keras_fence.trained_by(optimizer)]
    positions = [trained.index(id(v)) for v in variables]
    lists = [(n, x) for n, x in vars(optimizer).items() if isinstance(x, list) and all(map(is_variable, x))]
    lists = [(n, x) for n, x in lists if len(x) == len(trained) and id(x[0]) not in trained]
    return {n.strip("_"): [held(x[i]) for i in positions] for n, x in lists}


def _objects() -> list[tuple[str, Any]]:
    """What the user's running code has names for: in modules and objects, then in functions."""
    frames = [*user_frames()]
    spaces = [x for f in frames for x in (f.f_globals, getattr(f.f_locals.get("self"), "__dict__", {}))]
    return [item for space in (*spaces, *(frame.f_locals for frame in frames)) for item in list(space.items())]


def _place(frame: FrameType) -> Place:
    return frame.f_code.co_filename, frame.f_lineno


def snapshot(frame: FrameType, arrays: bool = True) -> dict[str, Value]:
    """Tensors, arrays and numbers by the expressions for them: names, and parts of what has a name."""
    found: dict[str, Value] = {}
    for space in (frame.f_locals, frame.f_globals):
        for name, value in list(space.items()):
            if name.startswith("__") or name in found:
                continue
            few = name == "self" or isinstance(value, (tuple, list, dict)) and len(value) < 9
            for end, part in parts_of(value) if few else [("", value)]:
                leaf = None if is_variable(part) else leaf_of(part)
                if (x := _noted(part, leaf and leaf.array, arrays)) is not None:
                    found[name + end] = x
    return found


def _noted(value: object, array: Array | None, arrays: bool = True) -> Value | None:
    """The `array` of a value, or a number; of a NumPy array, if such are wanted, a copy: it may change in place."""
    if arrays and isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        return value.copy() if value.size < 1 << 20 else value
    return value if array is None and isinstance(value, (bool, int, float, np.number)) else array
