"""Keras's trainer on JAX, which takes TensorFlow's ``train_step(self, data)``, too.

Keras's own trainer on JAX calls ``train_step(state, data)``, compiled by `jax.jit`: state goes in and comes out, so a step must
not assign to variables. `fit`, `evaluate` and the rest stay Keras's here, callbacks, validation and all; for a model in
TensorFlow's way the state that they hand around is empty, and a step is a `tapejax.function`, which finds its state itself.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...places import levels_to_user
from ...tape.gradient_tape import GradientTape
from ..ops.numerics import checks_numerics
from ..values import keras_fence as fence
from ..values import reading, replicas
from ..values.types import Array, Nest
from ..values.variable import Variable
from . import adapters as libraries
from .keras_adapter import Model, arrays_in, contains, from_user, visible

_PARTS = ("train", "test", "predict")


def in_tensorflows_way(model: Model) -> bool:
    """Whether the model's steps take ``(data)``, or it has state that only such steps keep, or runs eagerly, which others cannot.

    No step of its own may take ``(state, data)``. In a strategy's replicas all do.
    """
    own = [fn for part in _PARTS if from_user(fn := getattr(type(model), f"{part}_step"))]
    if own:
        return all(map(_takes_data, own))
    if (
        _strategy(model) is not None
        or model.run_eagerly
        or checks_numerics()  # operation by operation, which a step that `jax.jit` compiles is not
        or any(from_user(getattr(type(model), f"make_{part}_function")) for part in _PARTS)
    ):
        return True
    # A tf.Variable, a tf.Module's too, and a metric that is updated in `call`, are no part of the state that Keras hands around.
    return any(
        getattr(part, fence.METRICS, ()) or contains((Variable, libraries.package.Module), list(vars(part).values()))
        for part in (*getattr(model, fence.ALL_LAYERS)(), *model.metrics)
    )


def _strategy(model: Model) -> Any:
    """The strategy of several replicas in whose scope the model was made, or None."""
    return vars(model).get("_distribute_strategy")


def _takes_data(step: Callable) -> bool:
    parameters = list(inspect.signature(step).parameters.values())
    required = [
        p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    return len(required) == 2 and not any(p.kind is p.VAR_POSITIONAL for p in parameters)


# ---- steps ----------------------------------------------------------------------------------------------------------


def _unpack(data: Nest) -> tuple:
    return importlib.import_module("keras").utils.unpack_x_y_sample_weight(arrays_in(data))


def _call(model: Model, x: Nest, training: bool) -> Nest:
    return model(x, training=training) if getattr(model, fence.TAKES_TRAINING) else model(x)


def _loss(model: Model, x: Nest, y: Nest, sample_weight: Nest, training: bool) -> tuple[Array, Nest]:
    """The loss, which is noted, and the predictions."""
    keras = importlib.import_module("keras")
    predicted = _call(model, x, training)
    compute = getattr(model, fence.COMPUTE_LOSS)
    loss = compute(x=x, y=y, y_pred=predicted, sample_weight=sample_weight, training=training)
    batch = next(a for a in keras.tree.flatten(x) if a is not None)
    unscaled = fence.part("losses.loss").unscale_loss_for_distribution(loss)
    getattr(model, fence.LOSS_TRACKER).update_state(unscaled, sample_weight=batch.shape[0])
    return loss, predicted


def _none_is_zero(reduce_values: Callable) -> Callable:
    """Of a replica without rows Keras gives no loss back if it knows that there are none. To TensorFlow's graph it is 0."""

    @functools.wraps(reduce_values)
    def reduced(values: Array, sample_weight: Array | None = None, reduction: str = "sum_over_batch_size") -> Array:
        if replicas.place.running and values.shape == (0,) and reduction not in (None, "none"):
            return values.sum()
        return reduce_values(values, sample_weight, reduction)

    return reduced


def _add_own_loss(model: Model, loss: Array) -> Array:
    """A loss of the model's own, of which each replica has a part."""
    total = getattr(super(fence.part("backend.jax.trainer").JAXTrainer, model), fence.ADD_OWN_LOSS)(loss)
    return fence.part("losses.loss").scale_loss_for_distribution(total)


def _train_step(model: Model, data: Nest) -> dict:
    x, y, sample_weight = _unpack(data)
    with GradientTape() as tape:
        loss, predicted = _loss(model, x, y, sample_weight, training=True)
        if model.optimizer is not None:
            loss = model.optimizer.scale_loss(loss)
    if weights := model.trainable_weights:
        model.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
    return model.compute_metrics(x, y, predicted, sample_weight)


def _test_step(model: Model, data: Nest) -> dict:
    x, y, sample_weight = _unpack(data)
    _, predicted = _loss(model, x, y, sample_weight, training=False)
    return model.compute_metrics(x, y, predicted, sample_weight)


def _predict_step(model: Model, data: Nest) -> Nest:
    return _call(model, _unpack(data)[0], training=False)


def _compiled_loss(
    model: Model, y: Nest, y_pred: Nest, sample_weight: Nest = None, regularization_losses: Nest = None
) -> Array:
    """The loss given to `compile`, plus the model's own losses, whether or not they are passed."""
    _deprecated("compiled_loss", "self.compute_loss(y=y, y_pred=y_pred)")
    return model.compute_loss(y=y, y_pred=y_pred, sample_weight=sample_weight)


class _CompiledMetrics:
    """A model's metrics, as those of TensorFlow's trainer: means are of the predictions."""

    def __init__(self, model: Model):
        self._model = model

    def update_state(self, y: Nest, y_pred: Nest, sample_weight: Nest = None) -> None:
        _deprecated("compiled_metrics", "metric.update_state(y, y_pred) for each of self.metrics")
        y, y_pred, sample_weight = arrays_in((y, y_pred, sample_weight))
        mean = importlib.import_module("keras").metrics.Mean
        for metric in self._model.metrics:
            results = (y_pred,) if isinstance(metric, mean) else (y, y_pred)
            metric.update_state(*results, sample_weight=sample_weight)


def _deprecated(name: str, instead: str) -> None:
    warnings.warn(f"model.{name} is deprecated: use {instead}.", stacklevel=levels_to_user())


def _last(outputs: list[Nest]) -> Nest:
    return outputs[-1]


def _joined(outputs: list[Nest]) -> Nest:
    return importlib.import_module("keras").tree.map_structure(lambda *parts: np.concatenate(parts), *outputs)


def _executed(model: Model, part: str, combine: Callable[[list[Nest]], Nest]) -> Callable[[Iterator[Nest]], Nest]:
    """One execution: as many steps as `steps_per_execution` says and the iterator has data for."""

    def one_step(data: Nest) -> Nest:
        return getattr(model, f"{part}_step")(data)

    strategy = _strategy(model)

    def in_replicas(data: Nest) -> Nest:
        found = strategy.run(one_step, args=(data,))
        return strategy.gather(found, axis=0) if part == "predict" else strategy.reduce("MEAN", found, axis=None)

    step = one_step if strategy is None else in_replicas
    step = step if model.run_eagerly else libraries.package.function(step)

    def divided(data: Nest) -> Nest:
        if strategy is None:
            return data
        parts: Nest = importlib.import_module("keras").tree.map_structure(
            lambda x: x if x is None else strategy._divided(x), data
        )
        return parts

    def execute(iterator: Iterator[Nest]) -> Nest:
        batches = itertools.islice(iterator, model.steps_per_execution)
        outputs = [step(divided(data)) for data in batches]
        if not outputs:
            raise StopIteration
        return combine(outputs)

    return execute


def _tensors(data: Nest) -> Nest:
    convert = libraries.package.convert_to_tensor
    return importlib.import_module("keras").tree.map_structure(lambda x: x if x is None else convert(x), data)


class _Batches(Iterator[Any]):
    """Batches as tensors. A function of an iterator may be a `tapejax.function`: no batch is to become a part of its program."""

    def __init__(self, batches: Iterator[Nest]):
        self._batches = batches

    def __next__(self) -> Nest:
        reading.require_python("next(iterator)")
        return _tensors(next(self._batches))


class _Execution:
    """A function of an iterator, as TensorFlow's trainer has it, that takes and returns the state of JAX's as well."""

    def __init__(self, execute: Callable[[Iterator[Nest]], Nest]):
        self._execute = execute

    def __call__(self, *args: Any) -> Any:
        *state, iterator = args
        outputs = self._execute(_Batches(iterator))
        return (outputs, *state) if state else outputs


# ---- the trainer ----------------------------------------------------------------------------------------------------


def install() -> None:
    """Lets Keras's trainer on JAX take models in TensorFlow's way."""
    trainer: Any = fence.part("backend.jax.trainer").JAXTrainer
    steps = (_train_step, _last), (_test_step, _last), (_predict_step, _joined)
    for part, (step, combine) in zip(_PARTS, steps, strict=True):
        _take_step(trainer, f"{part}_step", step)
        _take_execution(trainer, f"{part}_function")
        _make_execution(trainer, part, combine)
    for name in ("predict", "predict_on_batch"):
        _leave_unbuilt(trainer, name)
    symbolic_build, get_state = getattr(trainer, fence.BUILD_BY_BATCH), getattr(trainer, fence.STATE)

    @functools.wraps(symbolic_build)
    def build(self: Model, *args: Any, **kwargs: Any) -> None:
        if (strategy := _strategy(self)) is not None:
            with strategy.scope():
                symbolic_build(self, *args, **kwargs)
        elif not in_tensorflows_way(self):  # else it is built by its first step, and may not be callable as a whole
            symbolic_build(self, *args, **kwargs)

    initialize = trainer.__init__

    @functools.wraps(initialize)
    def note_strategy(self: Model, *args: Any, **kwargs: Any) -> None:
        initialize(self, *args, **kwargs)
        if replicas.place.mesh is not None:
            self.__dict__["_distribute_strategy"] = libraries.package.distribute.get_strategy()

    trainer.__init__ = note_strategy
    losses: Any = fence.part("losses.loss")
    losses.reduce_values = _none_is_zero(losses.reduce_values)
    losses.scale_loss_for_distribution = lambda value: value / replicas.count()
    losses.unscale_loss_for_distribution = lambda value: value * replicas.count()
    setattr(trainer, fence.ADD_OWN_LOSS, _add_own_loss)

    @functools.wraps(get_state)
    def state(self: Model, *, purge_model_variables: bool = False, **parts: bool) -> tuple:
        if in_tensorflows_way(self):
            return tuple(() for wanted in parts.values() if wanted)
        return get_state(self, purge_model_variables=purge_model_variables, **parts)

    setattr(trainer, fence.BUILD_BY_BATCH, build)
    setattr(trainer, fence.STATE, state)
    trainer.compiled_loss, trainer.compiled_metrics = visible(_compiled_loss), property(_CompiledMetrics)


def _take_step(trainer: Any, name: str, of_data: Callable) -> None:
    of_state = getattr(trainer, name)

    def step(self: Model, *args: Any) -> Any:
        return (of_data if len(args) == 1 else of_state)(self, *args)

    step.__name__, step.__doc__ = name, of_state.__doc__
    setattr(trainer, name, visible(step))


def _take_execution(trainer: Any, name: str) -> None:
    def store(self: Any, execute: Any) -> None:
        wrapped = execute is not None and not isinstance(execute, _Execution) and in_tensorflows_way(self)
        vars(self)[name] = _Execution(execute) if wrapped else execute

    setattr(trainer, name, property(lambda self: vars(self).get(name), store))


def _make_execution(trainer: Any, part: str, combine: Callable) -> None:
    name, own = f"{part}_function", getattr(trainer, f"make_{part}_function")

    @functools.wraps(own)
    def make(self: Model, force: bool = False) -> Callable:
        ours, kept = in_tensorflows_way(self), getattr(self, name)
        force = force or kept is None or isinstance(kept, _Execution) != ours  # `enable_check_numerics` came in between
        if not ours:
            return own(self, force)
        if force:
            setattr(self, name, _executed(self, part, combine))
        return getattr(self, name)

    setattr(trainer, f"make_{part}_function", make)


def _leave_unbuilt(trainer: Any, name: str) -> None:
    """Keeps a method of Keras's from calling a model as a whole to build it: it looks for unbuilt layers first of all."""
    method = getattr(trainer, name)

    @functools.wraps(method)
    def on_built(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not in_tensorflows_way(self):
            return method(self, *args, **kwargs)

        def no_layers(_: Any, *args: Any, **kwargs: Any) -> list:
            vars(self).pop(fence.ALL_LAYERS)
            return []

        vars(self)[fence.ALL_LAYERS] = types.MethodType(no_layers, self)
        try:
            return method(self, *args, **kwargs)
        finally:
            vars(self).pop(fence.ALL_LAYERS, None)

    setattr(trainer, name, on_built)
