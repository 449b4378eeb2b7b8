"""``tf.keras``: Keras 3 on its JAX backend, with TensorFlow's names and TensorFlow's answers.

The classes are Keras's own: what is built, saved and loaded here is what ``import keras`` builds, saves and loads. From the
first import of this module on, what they return to user code (layers, losses, metrics, optimizers' schedules, initializers,
variables' arithmetic) are tensors, that answer ``numpy()`` and print as TensorFlow's do. Inside Keras, in ``fit`` and inside
its layers, there are plain JAX arrays, and so there are for a caller who passes ``jax.Array`` and no tensor: arrays in, arrays
out. A program that says ``import keras`` and never this keeps Keras as it is.

Importing it loads Keras, on JAX unless it was loaded before. Raises ImportError if Keras is not installed, or was loaded with
another backend: a process has one.

>>> import tapejax as tf
>>> layer = tf.keras.layers.Dense(2, kernel_initializer="ones")
>>> layer(tf.constant([[1.0, 2.0]]))
<tf.Tensor: shape=(1, 2), dtype=float32, numpy=array([[3., 3.]], dtype=float32)>
>>> with tf.GradientTape() as tape:
...     loss = tf.reduce_sum(layer(tf.constant([[1.0, 2.0]])))
>>> [g.numpy().tolist() for g in tape.gradient(loss, layer.trainable_variables)]
[[[1.0, 1.0], [2.0, 2.0]], [1.0, 1.0]]
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import types
from collections.abc import Callable
from typing import Any

from ..values.errors import SymbolicValue
from ..values.tensor import Tensor
from . import adapters as libraries
from . import keras_adapter
from .keras_adapter import answer, arrays_in, called_by_user, tensors_in

NAME = "tapejax.keras"  # under which programs import it


def _load() -> types.ModuleType:
    """Keras on JAX, under the names that TensorFlow has for it."""
    if "keras" not in sys.modules:
        before = os.environ.get("KERAS_BACKEND")
        os.environ["KERAS_BACKEND"] = "jax"
        try:
            importlib.import_module("keras")
        except ImportError as error:
            raise ImportError(
                f"tapejax.keras is Keras 3 on JAX, and could not import it: pip install keras ({error})"
            ) from error
        finally:
            if before is not None:
                os.environ["KERAS_BACKEND"] = before
            else:
                del os.environ["KERAS_BACKEND"]
    backend = sys.modules["keras"].backend.backend()
    if backend != "jax":
        raise ImportError(
            f"tapejax.keras is Keras on JAX, but this process has loaded Keras with its {backend!r} backend, and has only one. "
            "Import tapejax.keras (or use tf.keras) before anything imports keras, or set the environment variable "
            "KERAS_BACKEND=jax."
        )
    try:
        return importlib.import_module("keras._tf_keras.keras")
    except ImportError:  # TensorFlow's spelling is not part of Keras's public interface
        return sys.modules["keras"]


# ---- what user code is given ----------------------------------------------------------------------------------------


def _visible(fn: Callable) -> Callable:
    """`fn` of Keras's, which gives tensors to user code and arrays to Keras."""

    @functools.wraps(fn)
    def answering(*args: Any, **kwargs: Any) -> Any:
        if not called_by_user(2):
            return fn(*args, **kwargs)
        return answer(fn(*arrays_in(args), **arrays_in(kwargs)), args, kwargs)

    answering.__answers__ = True  # type: ignore[attr-defined]
    return answering


def _given_tensors(fn: Callable) -> Callable:
    @functools.wraps(fn)
    def on_tensors(*args: Any, **kwargs: Any) -> Any:
        return tensors_in(fn(*tensors_in(args), **tensors_in(kwargs)))

    return on_tensors


def _return_tensors(base: Any, *methods: str) -> None:
    """Makes methods of a class, and of the classes derived from it now and later, answer user code in tensors."""

    def wrap(kind: type) -> None:
        for name in methods:
            method = vars(kind).get(name)
            if isinstance(method, types.FunctionType) and not hasattr(method, "__answers__"):
                setattr(kind, name, _visible(method))
            elif isinstance(method, property) and method.fget is not None and not hasattr(method.fget, "__answers__"):
                setattr(kind, name, property(_visible(method.fget), method.fset, method.fdel, method.__doc__))

    own = vars(base).get("__init_subclass__")

    def init_subclass(cls: Any, **kwargs: Any) -> None:
        own.__func__(cls, **kwargs) if own else super(base, cls).__init_subclass__(**kwargs)
        wrap(cls)

    base.__init_subclass__ = classmethod(init_subclass)
    pending = [base]
    while pending:
        kind = pending.pop()
        wrap(kind)
        pending += kind.__subclasses__()


_ARITHMETIC = (
    "neg pos abs invert round getitem eq ne lt le gt ge add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod "
    "pow rpow matmul rmatmul and rand or ror xor rxor"
)


def _answer_in_tensors(keras: types.ModuleType) -> None:
    def defining(kind: type, name: str) -> type:
        return next(base for base in kind.__mro__ if name in vars(base))

    arithmetic = [f"__{name}__" for name in _ARITHMETIC.split()]
    for kind, methods in (
        (defining(keras.Variable, "__add__"), (*arithmetic, "assign", "assign_add", "assign_sub")),
        (keras.Layer, ("losses",)),
        (defining(keras.Model, "compute_loss"), ("compute_loss",)),
        (keras.Loss, ("__call__",)),
        (keras.Metric, ("__call__", "result", "update_state")),
        (keras.initializers.Initializer, ("__call__",)),
        (keras.regularizers.Regularizer, ("__call__",)),
        (keras.constraints.Constraint, ("__call__",)),
        (keras.optimizers.schedules.LearningRateSchedule, ("__call__",)),
    ):
        _return_tensors(kind, *methods)


# ---- functional models ----------------------------------------------------------------------------------------------


def _operation_class(keras: types.ModuleType) -> type:
    class Call(keras.Operation):  # type: ignore[name-defined]
        """A call of a tf function, in a Functional model. Its KerasTensors are the inputs, all else is part of it."""

        def __init__(self, function: Callable, arguments: Any, name: str):
            super().__init__(name=name)
            self._function, self._arguments = function, arguments

        def call(self, inputs: Any) -> Any:
            given = iter(inputs)
            args, kwargs = keras.tree.map_structure(
                lambda x: next(given) if isinstance(x, keras.KerasTensor) else x, self._arguments
            )
            return arrays_in(self._function(*args, **kwargs))

        def get_config(self) -> dict:
            raise NotImplementedError(
                f"a model with tf.{self._function.__name__} between its layers has no config, and cannot be saved or cloned as a "
                "whole: save its weights, or use the function of keras.ops, or a layer"
            )

    return Call


def _take_symbols(keras: types.ModuleType) -> None:
    """Lets tf functions take the KerasTensors of Functional models, and give KerasTensors."""
    operation = _operation_class(keras)
    count: dict[str, int] = {}

    def taking_symbols(fn: Callable) -> Callable:
        @functools.wraps(fn)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return fn(*args, **kwargs)
            except SymbolicValue:
                symbols = [x for x in keras.tree.flatten((args, kwargs)) if isinstance(x, keras.KerasTensor)]
                if not symbols:
                    raise
            name = f"tf_{fn.__name__.strip('_')}"
            count[name] = number = count.get(name, -1) + 1
            return operation(fn, (args, kwargs), f"{name}_{number}" if number else name)(symbols)

        return call

    for module in libraries.namespaces:
        for name, fn in list(vars(module).items()):
            if isinstance(fn, types.FunctionType) and fn.__module__.startswith("tapejax.ops") and name[:1] != "_":
                setattr(module, name, taking_symbols(fn))


# ---- data -----------------------------------------------------------------------------------------------------------


def _take_datasets() -> None:
    """Lets `fit`, `evaluate` and `predict` take a `tapejax.data.Dataset`."""
    adapters: Any = importlib.import_module("keras.src.trainers.data_adapters")
    base = importlib.import_module("keras.src.trainers.data_adapters.data_adapter").DataAdapter
    choose = adapters.get_data_adapter

    class DatasetAdapter(base):  # type: ignore[valid-type, misc]
        """A Dataset gives batches, and is iterated over anew for each epoch."""

        batch_size = has_partial_batch = partial_batch_size = None

        def __init__(self, dataset: Any):
            self._dataset = dataset

        @property
        def num_batches(self) -> int | None:
            count = int(self._dataset.cardinality())
            return count if count >= 0 else None  # unknown, or without end

        def get_jax_iterator(self) -> Any:
            return (arrays_in(batch) for batch in self._dataset)

        def get_numpy_iterator(self) -> Any:
            return self._dataset.as_numpy_iterator()

    @functools.wraps(choose)
    def get_data_adapter(x: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> Any:
        data = sys.modules.get("tapejax.programs.data")
        if data is None or not isinstance(x, data.Dataset):
            return choose(x, y, sample_weight, **options)
        if not (y is None and sample_weight is None and options.get("class_weight") is None):
            raise ValueError(
                "y, sample_weight and class_weight go into the Dataset, beside x, where x is a tf.data.Dataset"
            )
        return DatasetAdapter(x)

    adapters.get_data_adapter = get_data_adapter


# ---- the modules ----------------------------------------------------------------------------------------------------


class _NumPy:
    """``jax.numpy``, but that Python numbers have the types that TensorFlow gives them."""

    def __init__(self, real: types.ModuleType):
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def asarray(self, x: Any, dtype: Any = None, **options: Any) -> Any:
        if dtype is None and type(x) in (int, float):
            dtype = "float32" if type(x) is float else "int32" if -(2**31) <= x < 2**31 else None
        return self._real.asarray(x, dtype, **options)


class _TensorFlow:
    """tapejax, for code that also tests for sparse or ragged tensors, and uses names of TensorFlow 1."""

    SparseTensor = type("SparseTensor", (), {})
    RaggedTensor = type("RaggedTensor", (), {})

    @property
    def compat(self) -> Any:
        return types.SimpleNamespace(v1=self)

    def __getattr__(self, name: str) -> Any:
        return getattr(libraries.namespaces[0], name)


def _instead_of_tensorflow() -> None:
    """Where Keras calls TensorFlow whatever its backend, for the sake of programs like ours, it finds tapejax."""
    tensorflow = _TensorFlow()
    for name, found in (
        ("legacy.backend", tensorflow),  # tf.keras.backend.mean and the like
        ("legacy.layers", tensorflow),
        ("utils.rng_utils", types.SimpleNamespace(available=True, random=libraries.namespaces[0].random)),
        ("saving.serialization_lib", types.SimpleNamespace(available=False)),
    ):
        importlib.import_module(f"keras.src.{name}").tf = found  # type: ignore[attr-defined]

    def set_logits(tensor: Tensor, logits: Any) -> None:
        tensor._array._keras_logits = logits

    # The functions of tf.keras.backend leave each other this note.
    Tensor._keras_logits = property(lambda tensor: tensor._array._keras_logits, set_logits)  # type: ignore[attr-defined]

    # With 64-bit types on, a Python float is float32 still: Keras leaves its dtype to JAX.
    core = importlib.import_module("keras.src.backend.jax.core")
    core.jnp = _NumPy(core.jnp)  # type: ignore[attr-defined]


class _Mirror(types.ModuleType):
    """A module of Keras's: classes are its own, functions answer user code in tensors, modules are mirrored."""

    def __init__(self, name: str, real: types.ModuleType):
        super().__init__(name, real.__doc__)
        self._real = real
        # TensorFlow's spelling comes first; what is only in Keras's own is there as well
        self._also = sys.modules.get(real.__name__.replace("keras._tf_keras.", "", 1))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self._real, name, self)
        if found is self:
            found = getattr(self._also, name, self)
        if found is self:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        found = _mirrored(f"{self.__name__}.{name}", found)
        setattr(self, name, found)
        return found

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._real), *dir(self._also), *(name for name in vars(self) if not name.startswith("_"))})


_functions: dict[int, Callable] = {}


def _mirrored(full: str, found: Any) -> Any:
    if isinstance(found, types.FunctionType) and found.__module__.startswith("keras."):
        legacy = found.__module__.startswith("keras.src.legacy.")  # programs for TensorFlow, which need tensors
        return _functions.setdefault(id(found), _given_tensors(found) if legacy else _visible(found))
    if isinstance(found, types.ModuleType) and found.__name__.startswith("keras."):
        module = sys.modules.get(full)
        if module is None:
            module = sys.modules[full] = _Mirror(full, found)
            for name, inner in list(vars(found).items()):
                # modules at once, so that `import tapejax.keras.layers.experimental as x` finds them
                if isinstance(inner, types.ModuleType) and inner.__name__ == f"{found.__name__}.{name}":
                    setattr(module, name, _mirrored(f"{full}.{name}", inner))
        return module
    return found


def _fill(names: dict[str, Any]) -> _Mirror:
    real = _load()
    libraries.install()
    keras = sys.modules["keras"]
    if not keras_adapter.returns_tensors:
        _answer_in_tensors(keras)
        _take_symbols(keras)
        _instead_of_tensorflow()
        _take_datasets()
        keras_adapter.returns_tensors = True
    mirror = _Mirror(NAME, real)
    for name, found in list(vars(real).items()):
        if isinstance(found, types.ModuleType) and not name.startswith("_") and found.__name__.startswith("keras."):
            names[name] = _mirrored(f"{NAME}.{name}", found)
    return mirror


_mirror = _fill(globals())


def __getattr__(name: str) -> Any:
    return getattr(_mirror, name)


def __dir__() -> list[str]:
    return dir(_mirror)


__all__ = [name for name in dir(_mirror) if not name.startswith("_")]
