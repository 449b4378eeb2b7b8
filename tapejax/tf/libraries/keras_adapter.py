"""What is installed on Keras's classes, so that Keras on JAX and tapejax work together.

* A read of a Keras variable is reported to the tapes, and an assignment inside a tape stops the gradient, as TensorFlow's does.
* Keras's objects take our tensors, and what functions of the user's give back as one: an activation ``tf.nn.relu``, a layer
  or a loss written with ``tf`` functions. Inside Keras there are arrays only.
* A warning about gradients that are None says how to find out why.

All of it is put on Keras's own classes, once, when it is first seen that Keras was imported. Nothing here changes what Keras
gives to a caller who passes arrays; `tapejax.keras` does that.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
import sys
import types
import warnings
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, NoReturn, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from ...jaxprs.cache import by_object
from ...jaxprs.canonical import Identity, exact
from ...jaxprs.fence import Tracer, current_trace, trace_context
from ...places import levels_to_user
from ...tape import active, operation
from ...tape.operation import eagerly
from ..ops.sizes import Sizes
from ..values import keras_fence as fence
from ..values import reading, replicas, staging
from ..values.errors import PythonNeeded, SymbolicValue
from ..values.staging import Staged, abstract
from ..values.structures import is_variable
from ..values.tensor import Tensor
from ..values.types import Array, TensorLike, VariableLike
from ..values.variable import Variable
from . import keras_control_flow

HINT = "tape.explain(loss, variables) says why a gradient is None."

OF_PYTHON = (
    "A layer of a Functional model that calls it has to say what it returns, before it runs: write "
    "`compute_output_shape(self, input_shape)`, or give a Lambda its `output_shape`; set_shape on the result is too late. Then "
    "call the model, or compile(run_eagerly=True) it for fit, evaluate and predict."
)

# Keras's classes; Keras is imported only by programs.
Layer: TypeAlias = Any
Model: TypeAlias = Any
Optimizer: TypeAlias = Any

returns_tensors = False  # whether user code is answered in tensors
_INTERNAL = ("keras.", "tapejax.", "jax.")
_AUTOGRAPH = "tapejax.tf.programs.autograph"
_PACKAGE = __name__.partition(".")[0]


def return_tensors() -> None:
    """From here on user code is answered in tensors: `tapejax.keras` is imported."""
    global returns_tensors
    returns_tensors = True


def install(keras: types.ModuleType) -> None:
    """Prepares `keras`, if it runs on JAX."""
    if keras.backend.backend() != "jax":
        return
    backend, optimizer = fence.part("backend"), fence.part("optimizers.base_optimizer").BaseOptimizer

    _note_variables(keras.Variable, backend.get_stateless_scope)
    _give_keras_arrays()
    keras.random.SeedGenerator.next = _as_one_step(keras.random.SeedGenerator.next)
    _take_tensors(keras.Layer, keras.Operation, backend)
    _take_gradients(optimizer, backend)
    _take_tensors_in_functions()
    keras_control_flow.install(backend.core, _on_arrays)
    _take_datasets()

    def refuse(tensor: object) -> NoReturn:
        raise SymbolicValue(
            f"{tensor!r} has no value: it is a placeholder of a Functional model. Pass it to layers or keras.ops; a function of "
            "tf or jnp goes into a keras.layers.Lambda, or into a layer's call."
        )

    keras.KerasTensor.__jax_array__ = refuse


# ---- variables ------------------------------------------------------------------------------------------------------


def _note_variables(kind: Any, stateless_scope: Callable[[], Any]) -> None:
    """Notes reads and assignments on the tapes, and lets variables be adopted like ours while a function is traced.

    Keras reads `Variable.value` and writes by `fence.ASSIGN`. (Keras's own way, ``StatelessScope``, cannot create
    variables nor find out which are read.)
    """
    value, trainable, held = kind.value, kind.trainable, fence.held
    direct_assign, initialize = getattr(kind, fence.ASSIGN), getattr(kind, fence.INITIALIZE)

    def noted(variable: VariableLike) -> Array:
        # In a stateless scope, as in `fit`, variables stand for arrays that are passed in, and are identified by those.
        scope = stateless_scope()
        own = scope is None or scope.get_current_value(variable) is None
        while own and (now := held(variable)) is not None:
            now = reading.note_read(variable, now, functools.partial(direct_assign, variable))
            reading.use(variable, fence.VALUE, now)
            array = value.fget(variable)
            if held(variable) is now:  # and no other thread has assigned meanwhile
                return array
        return value.fget(variable)

    def read(variable: VariableLike) -> Array | Tensor:
        if (capture := reading.context.capture) is not None and held(variable) is not None:
            capture.as_input(variable, fence.VALUE)
        if capture is None and isinstance(held(variable), Tracer) and active.eager():
            with reading.tracing:  # as in `reading.held`
                array = noted(variable)
        else:
            array = noted(variable)
        return Tensor(array) if returns_tensors and isinstance(array, jax.Array) and called_by_user(2) else array

    def assign(variable: VariableLike, new: Array) -> None:
        if getattr(variable, "_created", None) is None:
            # tapes list variables in the order of creation
            object.__setattr__(variable, "_created", reading.next_variable())
        capture, before = reading.context.capture, held(variable)
        is_new = before is None
        if capture is not None and not is_new:
            capture.assign(variable, fence.VALUE, new)
        if capture is None and not is_new and not isinstance(before, Tracer):
            keras_control_flow.refuse_assignment(variable.path)
        if not is_new:
            reading.use(variable, fence.VALUE, held(variable))
        new = reading.detached(replicas.placed(new) if is_new else new)
        with reading.tracing:  # as `Variable._store`
            direct_assign(variable, new)
        if capture is not None and is_new and isinstance(new, Tracer):
            capture.create(variable, fence.VALUE)

    def set_trainable(variable: VariableLike, new: bool) -> None:
        if variable.trainable:
            object.__setattr__(variable, "_was_trainable", True)
        trainable.fset(variable, new)

    kind.value = property(read, doc=value.__doc__)
    setattr(kind, fence.ASSIGN, assign)
    kind.assign_add, kind.assign_sub = map(_as_one_step, (kind.assign_add, kind.assign_sub))
    kind.assign = _aggregating(kind.assign, of_change=True)
    kind.assign_add, kind.assign_sub = map(_aggregating, (kind.assign_add, kind.assign_sub))
    setattr(kind, fence.INITIALIZE, _outside_of_programs(initialize))
    kind.trainable = property(trainable.fget, set_trainable, doc=trainable.__doc__)


def _outside_of_programs(initialize: Callable) -> Callable:
    """The method that gives a variable its first value, which is not part of a program that is traced."""

    def initialize_now(variable: VariableLike, initializer: Any) -> None:
        if reading.context.capture is None:
            return eagerly(initialize, variable, initializer)  # most shapes occur once
        with staging.init_scope():
            return initialize(variable, initializer)

    return initialize_now


def _give_keras_arrays() -> None:
    """Has the value of a variable of ours be an array to Keras: optimizers do arithmetic with it."""
    ours: Any = Variable
    value = ours.value

    def read(variable: Variable) -> Array | Tensor:
        return reading.read(variable) if _called_by_keras() else value.fget(variable)

    ours.value = property(read, doc=value.__doc__)


def _aggregating(update: Callable, of_change: bool = False) -> Callable:
    """A method that assigns to a variable, in a strategy's replica what all replicas' values become by its aggregation.

    Args:
      of_change: of a sum the changes are added up. TensorFlow's replicas each have a part of the sum, which they change.
    """

    @functools.wraps(update)
    def once(self: Any, value: TensorLike) -> Any:
        if not replicas.place.running:
            return update(self, value)
        # TensorFlow's replicas keep moving statistics apart, and outside of them those of the first are read.
        kind = "only_first_replica" if self.aggregation == "none" and not self.trainable else self.aggregation
        array = jnp.asarray(arrays_in(value), self.dtype)
        if of_change and kind == "sum":
            held = arrays_in(self.value)
            array = held + replicas.aggregated(array - held, kind, self.path)
        else:
            array = replicas.aggregated(array, kind, self.path)
        with replicas.place.setting(running=False):
            return update(self, array)

    return once


def _as_one_step(update: Callable) -> Callable:
    """A method that reads a variable and then assigns it: no other thread assigns it in between."""

    @functools.wraps(update)
    def alone(self: Any, *args: Any, **kwargs: Any) -> Any:
        args = tuple(map(arrays_in, args))  # what the user's Python has to give is given before
        with reading.tracing:
            return update(self, *args, **kwargs)

    return alone


# ---- from tensors to arrays, and back -------------------------------------------------------------------------------


def called_by_user(depth: int) -> bool:
    """Whether the frame `depth` levels above is neither Keras's, JAX's nor ours; AutoGraph calls what the user calls."""
    frame = sys._getframe(depth)
    if frame.f_globals.get("__name__") == _AUTOGRAPH and frame.f_back is not None:
        frame = frame.f_back
    return not frame.f_globals.get("__name__", "").startswith(_INTERNAL)


def from_user(function: Any) -> bool:
    """Whether `function` is neither Keras's, JAX's nor ours."""
    return not (function.__module__ or "").startswith(_INTERNAL)  # code made by exec may have none


def _called_by_keras() -> bool:
    return sys._getframe(2).f_globals.get("__name__", "").startswith("keras.")


def arrays_in(x: Any) -> Any:
    """`x` with the arrays of tensors and of our variables in their place, also inside lists, tuples and dicts."""
    if isinstance(x, Tensor):
        return _size(x) if active.staging() else x._array
    if isinstance(x, Variable):
        return reading.read(x)
    return _mapped(arrays_in, x)


def _size(x: Tensor) -> Any:
    """The array of `x`; what may be a size and is known while JAX traces is NumPy's, since JAX would trace its elements."""
    if isinstance(x, Sizes):
        return x.sizes.tolist()
    return np.asarray(x._array) if operation.is_size(x._array) else x._array


def tensors_in(x: Any) -> Any:
    """`x` with a `Tensor` in place of each ``jax.Array``."""
    return Tensor(x) if isinstance(x, jax.Array) else _mapped(tensors_in, x)


def _mapped(fn: Callable[[Any], Any], x: Any) -> Any:
    kind = type(x)
    if kind is list:
        return [fn(item) for item in x]
    if kind is tuple:
        return tuple([fn(item) for item in x])
    if kind is dict:
        return {key: fn(item) for key, item in x.items()}
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return kind(*map(fn, x))
    return x


def contains(kind: type | tuple[type, ...], x: object) -> bool:
    """Whether `x` is of this kind, or has one that is, inside lists, tuples and dicts."""
    if isinstance(x, (list, tuple)):
        return any(contains(kind, item) for item in x)
    if isinstance(x, dict):
        return any(contains(kind, item) for item in x.values())
    return isinstance(x, kind)


def answer(result: Any, *arguments: object) -> Any:
    """What user code is given: tensors; but arrays where it passed arrays and no tensor."""
    return result if contains(jax.Array, arguments) and not contains(Tensor, arguments) else tensors_in(result)


# A method that user code calls more often is run as Keras runs it: each of its operations is worth compiling.
CALLS_ON_TRIAL = 50


def visible(fn: Callable) -> Callable:
    """`fn` of Keras's, which gives tensors to user code and arrays to Keras; or of the user's, which is given tensors."""
    calls = itertools.count()

    @functools.wraps(fn)
    def answering(*args: Any, **kwargs: Any) -> Any:
        user = called_by_user(2)
        if _written_for_tensorflow(fn):
            result = fn(*tensors_in(args), **tensors_in(kwargs))
            return result if user else arrays_in(result)
        if not user:
            return fn(*args, **kwargs)
        arrays = arrays_in(args), arrays_in(kwargs)
        seldom = next(calls) < CALLS_ON_TRIAL
        result = eagerly(fn, *arrays[0], **arrays[1]) if seldom else fn(*arrays[0], **arrays[1])
        return answer(result, args, kwargs)

    answering.__answers__ = True  # type: ignore[attr-defined]
    return answering


def _take_tensors(layer: type[Layer], operation: Any, backend: Any) -> None:
    layer_call, operation_call, add_loss = layer.__call__, operation.__call__, layer.add_loss
    maybe_build, symbolic_call = getattr(layer, fence.BUILD), operation.symbolic_call
    compute_output_spec, set_keras_mask = backend.compute_output_spec, backend.set_keras_mask

    @functools.wraps(layer_call)
    def call_layer(self: Layer, *args: Any, **kwargs: Any) -> Any:
        result = layer_call(self, *map(arrays_in, args), **_mapped(arrays_in, kwargs))
        return answer(result, args, kwargs) if returns_tensors and called_by_user(2) else result

    call_layer.__answers__ = True  # type: ignore[attr-defined]

    @functools.wraps(operation_call)
    def call_operation(self: Any, *args: Any, **kwargs: Any) -> Any:
        if returns_tensors and _written_for_tensorflow(type(self).call):
            args, kwargs = tensors_in(args), tensors_in(kwargs)
        return arrays_in(operation_call(self, *args, **kwargs))

    def infer(fn: Callable, *args: Any, **kwargs: Any) -> Any:
        tensors = returns_tensors and _written_for_tensorflow(getattr(fn, "__func__", fn))

        def spec(*args: Any, **kwargs: Any) -> Any:
            capture = staging.Capture(False)  # variables that `fn` assigns to hold afterwards what they held before

            @functools.wraps(fn)
            def on_arrays(*args: Any, **kwargs: Any) -> Any:
                if tensors:
                    args, kwargs = tensors_in(args), tensors_in(kwargs)
                return arrays_in(capture.trace(functools.partial(fn, *args, **kwargs)))

            return compute_output_spec(on_arrays, *args, **kwargs)

        try:
            return spec(*args, **kwargs)
        except Exception as error:
            result = _by_two_sizes(spec, backend.KerasTensor, args, kwargs)
            if result is None and isinstance(error, PythonNeeded):
                raise PythonNeeded(f"{error} {OF_PYTHON}") from error
            if result is None:
                raise
            return result

    @functools.wraps(maybe_build)
    def build(self: Layer, *args: Any) -> None:
        # tf.Variables made there have values
        with staging.init_scope() if not self.built else contextlib.nullcontext():
            maybe_build(self, *args)

    @functools.wraps(symbolic_call)
    def call_symbolically(self: Any, *args: Any, **kwargs: Any) -> Any:
        # the graph of a model is saved with its constants
        return symbolic_call(self, *arrays_in(args), **arrays_in(kwargs))

    setattr(layer, fence.BUILD, build)
    layer.__call__, operation.__call__, operation.symbolic_call = call_layer, call_operation, call_symbolically
    layer.add_loss = functools.wraps(add_loss)(lambda self, loss: add_loss(self, arrays_in(loss)))
    backend.compute_output_spec = functools.wraps(compute_output_spec)(infer)
    backend.set_keras_mask = functools.wraps(set_keras_mask)(lambda x, mask: set_keras_mask(x, arrays_in(mask)))
    setattr(Tensor, fence.MASK, property(lambda self: answer(backend.get_keras_mask(self._array))))


# Where users find functions of arrays. Keras calls them elsewhere.
_FUNCTIONS = ("ops", "ops.image", "ops.linalg", "ops.nn", "ops.numpy", "random")


def _take_tensors_in_functions() -> None:
    taken: dict[Callable, Callable] = {}
    for full in (f"{keras.__name__}.{name}" for keras in fence.names_of_keras() for name in _FUNCTIONS):
        with contextlib.suppress(ImportError):  # not in every version
            names = vars(importlib.import_module(full))
            functions = {name: fn for name, fn in names.items() if isinstance(fn, types.FunctionType)}
            taken |= {fn: _on_values(fn) for fn in functions.values() if fn not in taken}
            names.update({name: taken[fn] for name, fn in functions.items()})


def _on_values(fn: Callable) -> Callable:
    """`fn` of arrays, for tensors. In a `function` Python runs it where shapes depend on values, as it runs ours."""

    @functools.wraps(fn)
    def on_arrays(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*arrays_in(args), **arrays_in(kwargs))
        except (TypeError, IndexError, AttributeError) as error:
            if isinstance(error, _UNKNOWN) or any(words in str(error) for words in _OF_VALUES):
                reading.require_python(f"keras.{fn.__name__}, whose shape depends on values,")
            raise

    return on_arrays


_UNKNOWN = (
    jax.errors.ConcretizationTypeError,
    jax.errors.NonConcreteBooleanIndexError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)
# What JAX says, too, of a traced array where a number is wanted; the last one in want of a better error.
_OF_VALUES = ("sequences of concrete values", "parameters to jaxpr equations must have __hash__", "'_error_repr'")


# Two sizes that a program does not have by itself.
_SIZES = 83, 89


def _by_two_sizes(infer: Callable, kind: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """What `infer` says where it cannot say it of sizes that are not known: of two sizes in their place. Results whose
    lengths differ have a length that is not known. None where it fails for these sizes, too, or all sizes are known."""
    if not any(isinstance(x, kind) and None in x.shape for x in jax.tree.leaves((args, kwargs))):
        return None

    def of_size(size: int) -> Any:
        def known(x: Any) -> Any:
            if not isinstance(x, kind):
                return x
            return kind([size if n is None else n for n in x.shape], x.dtype, name=x.name)

        positional, named = jax.tree.map(known, (args, kwargs))
        return infer(*positional, **named)

    def merged(one: Any, other: Any) -> Any:
        if not isinstance(one, kind):
            return one
        return kind([n if n == m else None for n, m in zip(one.shape, other.shape, strict=True)], one.dtype)

    try:
        return jax.tree.map(merged, *map(of_size, _SIZES))
    except Exception:
        return None


# By the function, not by its code: equal code may stand in two modules.
_spelled: weakref.WeakKeyDictionary[Callable, bool] = by_object()


def _written_for_tensorflow(function: Any) -> bool:
    """Whether `function` is written in TensorFlow's spelling: its module has tapejax (as ``tf``) or a part of it by name."""
    if getattr(function, "__code__", None) is None or not from_user(function):
        return False
    function = getattr(function, "__func__", function)
    spelled = _spelled.get(function)
    if spelled is None:
        cells = [cell.cell_contents for cell in function.__closure__ or () if cell != types.CellType()]
        seen = [x.__name__ for x in (*cells, *list(function.__globals__.values())) if isinstance(x, types.ModuleType)]
        spelled = _spelled[function] = any(name.partition(".")[0] == _PACKAGE for name in seen)
    return spelled


def _on_arrays(structure: Any) -> Any:
    """`structure` with arrays for tensors and variables, and functions of arrays for those of the user's."""
    return jax.tree.map(_on_array, arrays_in(structure))


def _on_array(x: Any) -> Any:
    if is_variable(x):
        return x.__jax_array__()
    if not callable(x):
        return x

    def run(*args: Any) -> Any:
        tensors = returns_tensors and _written_for_tensorflow(getattr(x, "__func__", x))
        return arrays_in(x(*tensors_in(args)) if tensors else x(*args))

    return run


# ---- optimizers -----------------------------------------------------------------------------------------------------


def _take_gradients(optimizer: type[Optimizer], backend: Any) -> None:
    apply, filter_empty = optimizer.apply, getattr(optimizer, fence.FILTER)

    @functools.wraps(apply)
    def apply_arrays(
        self: Optimizer, grads: Iterable[TensorLike | None], trainable_variables: Iterable[VariableLike] | None = None
    ) -> None:
        grads = [arrays_in(x) for x in grads]
        with active.outside():  # variables have no history: nothing that is computed here carries gradient
            if not reading.plain(current_trace()) or backend.in_stateless_scope():
                return apply(self, grads, trainable_variables)
            variables = fence.trained_by(self) if trainable_variables is None else list(trainable_variables)
            if not self.built and variables:
                with backend.name_scope(self.name, caller=self):
                    eagerly(self.build, variables)
                self.built = True
            update = _updates.setdefault(self, {}) if _is_pure(self, grads, variables) else None
            if update is None:
                return apply(self, grads, trainable_variables)
            key = (*map(id, variables), *_settings(self), trace_context())
            compiled = update.get(key)
            if compiled is None:
                here: Any = weakref.ref(self)  # what is kept for an optimizer must not keep it
                compiled = update[key] = _Update(lambda *grads: apply(here(), grads, variables), grads, variables)
            with jax.disable_jit(False):
                compiled(grads)

    @functools.wraps(filter_empty)
    def filter_with_hint(self: Optimizer, grads: Iterable[TensorLike | None], variables: Iterable[VariableLike]) -> Any:
        if all(x is not None for x in grads):
            return list(grads), list(variables)
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                pairs = filter_empty(self, grads, variables)
        except ValueError as error:
            raise ValueError(f"{error} {HINT}") from None
        for warning in caught:
            warnings.warn(f"{warning.message} {HINT}", warning.category, stacklevel=levels_to_user())
        return pairs

    update_step = getattr(optimizer, fence.UPDATE)

    @functools.wraps(update_step)
    def update_with_all(self: Optimizer, grads: list, trainable_variables: list, learning_rate: Any) -> None:
        """The gradients of all replicas are added, and the variables, which are the same in all, updated once."""
        if not replicas.place.running:
            return update_step(self, grads, trainable_variables, learning_rate)
        grads = [replicas.aggregated(x, "SUM", "a gradient") for x in grads]
        with replicas.place.setting(running=False):
            update_step(self, grads, trainable_variables, learning_rate)

    optimizer.apply = apply_arrays
    setattr(optimizer, fence.FILTER, filter_with_hint)
    setattr(optimizer, fence.UPDATE, update_with_all)


# An optimizer's update, as one program: Keras's own function, traced as `tapejax.function` traces a function. Its hundred or
# so small operations would each cost a call from Python.
_updates: weakref.WeakKeyDictionary[Optimizer, dict[tuple, _Update]] = by_object()
_SETTINGS = (int, float, bool, str, type(None))


class _Update:
    def __init__(self, body: Callable, grads: list, variables: list):
        self._body = body
        self._variables = variables  # known by their identity, so they must not go
        self._staged: Staged | None = None
        with contextlib.suppress(jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError):
            # Python that depends on values cannot be traced: a schedule of the user's, for instance. It runs as it is.
            self._staged = Staged(lambda *grads: body(*grads) or [], [abstract(x) for x in grads], "apply_gradients")

    def __call__(self, grads: list) -> None:
        if self._staged is None:
            self._body(*grads)
        else:
            self._staged.run(grads)


def _is_pure(optimizer: Optimizer, grads: list, variables: list) -> bool:
    """Whether an update depends on nothing but its gradients, variables, and the `_settings`: for optimizers of Keras's."""
    parts = [optimizer, *(x for x in (getattr(v, "constraint", None) for v in variables) if x is not None)]
    if callable(schedule := fence.rate_of(optimizer)):
        parts.append(schedule)
    return (
        len(grads) == len(variables)
        and all(isinstance(x, jax.Array) for x in grads)
        and all(type(part).__module__.startswith("keras.") for part in parts)
    )


def _settings(optimizer: Optimizer) -> Iterator[Hashable]:
    """The numbers and words that an optimizer and its schedule were given, which a program has in it."""
    schedule = fence.rate_of(optimizer)
    yield Identity(schedule)
    for part in (optimizer, schedule):
        for name, value in vars(part).items():
            if type(value) in _SETTINGS:
                yield name, exact(value)
            elif isinstance(value, (list, tuple, set, frozenset)):  # names that take no part; a schedule's boundaries
                yield name, *[exact(x) for x in value if type(x) in _SETTINGS]


# ---- data -----------------------------------------------------------------------------------------------------------


def _take_datasets() -> None:
    """Lets `fit`, `evaluate` and `predict` take a `tapejax.data.Dataset`.

    Keras would take it for the Grain dataset that it is, too, of which it knows no number of batches: the end of an epoch of
    `steps_per_epoch` would be that of the next.
    """
    adapters: Any = fence.part("trainers.data_adapters")
    base = fence.part("trainers.data_adapters.data_adapter").DataAdapter
    choose = adapters.get_data_adapter

    class DatasetAdapter(base):  # type: ignore[valid-type, misc]
        """A Dataset gives batches, and is iterated over anew for each epoch."""

        batch_size = has_partial_batch = partial_batch_size = None

        def __init__(self, dataset: Any, class_weight: dict | None):
            self._dataset, self._class_weight = dataset, class_weight

        @property
        def num_batches(self) -> int | None:
            count = int(self._dataset.cardinality())
            return count if count >= 0 else None  # unknown, or without end

        def get_jax_iterator(self) -> Any:
            return (arrays_in(self._weighted(batch)) for batch in self._dataset)

        def get_numpy_iterator(self) -> Any:
            return map(self._weighted, self._dataset.as_numpy_iterator())

        def _weighted(self, batch: Any) -> Any:
            if self._class_weight is None:
                return batch
            x, y = batch
            return x, y, adapters.data_adapter_utils.class_weight_to_sample_weights(y, self._class_weight)

    @functools.wraps(choose)
    def get_data_adapter(x: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> Any:
        data = sys.modules.get("tapejax.tf.programs.data")
        if data is None or not isinstance(x, data.Dataset):
            return choose(x, y, sample_weight, **options)
        if not (y is None and sample_weight is None):
            raise ValueError("x is a tf.data.Dataset: put y and sample_weight into it, beside x")
        return DatasetAdapter(x, options.get("class_weight"))

    adapters.get_data_adapter = get_data_adapter
