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

import jax
import numpy as np

from ..ops import summary
from ..values import keras_fence as fence
from ..values import reading
from ..values.errors import extra_missing
from ..values.names import name_scope
from ..values.tensor import Tensor
from . import adapters as libraries
from . import keras_adapter, keras_data, keras_export, keras_trainer
from .keras_adapter import tensors_in, visible

NAME = "tapejax.keras"  # under which programs import it


def _load() -> types.ModuleType:
    """Keras on JAX, under the names that TensorFlow has for it."""
    if "keras" not in sys.modules:
        before = os.environ.get("KERAS_BACKEND")
        os.environ["KERAS_BACKEND"] = "jax"
        try:
            importlib.import_module("keras")
        except ImportError as error:
            raise extra_missing("tapejax.keras, which is Keras 3 on JAX,", "Keras", "keras") from error
        finally:
            if before is not None:
                os.environ["KERAS_BACKEND"] = before
            else:
                del os.environ["KERAS_BACKEND"]
    backend = importlib.import_module("keras").backend.backend()  # waits for a thread that is importing it
    if backend != "jax":
        raise ImportError(
            f"tapejax.keras is Keras on JAX, but this process has loaded Keras with its {backend!r} backend, and has only one. "
            "Import tapejax.keras (or use tf.keras) before anything imports keras, or set the environment variable "
            "KERAS_BACKEND=jax."
        )
    return fence.names_of_keras()[-1]


# ---- what user code is given ----------------------------------------------------------------------------------------


def _given_tensors(fn: Callable) -> Callable:
    @functools.wraps(fn)
    def on_tensors(*args: Any, **kwargs: Any) -> Any:
        return tensors_in(fn(*tensors_in(args), **tensors_in(kwargs)))

    return on_tensors


def _attribute(name: str) -> property:
    """An attribute of the instances, which a class can answer like a method."""
    return property(lambda self: vars(self).get(name), lambda self, value: vars(self).update({name: value}))


def _return_tensors(base: Any, *methods: str, users: bool = True) -> None:
    """Makes methods of a class, and of the classes derived from it now and later, answer user code in tensors.

    `users`: whether those that users define, too.
    """

    def wrap(kind: type) -> None:
        for name in methods:
            method = vars(kind).get(name)
            if isinstance(method, types.FunctionType) and not hasattr(method, "__answers__"):
                if users or not keras_adapter.from_user(method):
                    setattr(kind, name, visible(method))
            elif isinstance(method, property) and method.fget is not None and not hasattr(method.fget, "__answers__"):
                setattr(kind, name, property(visible(method.fget), method.fset, method.fdel, method.__doc__))

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

    for name in "mean", "variance":
        setattr(keras.layers.Normalization, name, _attribute(name))
    arithmetic = [f"__{name}__" for name in _ARITHMETIC.split()]
    for kind, methods in (
        (defining(keras.Variable, "__add__"), (*arithmetic, "assign", "assign_add", "assign_sub")),
        (keras.Layer, ("compute_mask", "losses", "get_initial_state")),
        (defining(keras.Model, "compute_loss"), ("compute_loss", "compute_metrics", "get_metrics_result")),
        (keras.Loss, ("__call__", "call")),
        (keras.Metric, ("__call__", "result", "update_state")),
        (keras.initializers.Initializer, ("__call__",)),
        (keras.regularizers.Regularizer, ("__call__",)),
        (keras.constraints.Constraint, ("__call__",)),
        (keras.optimizers.schedules.LearningRateSchedule, ("__call__",)),
        (defining(keras.optimizers.Optimizer, "scale_loss"), ("learning_rate", "scale_loss")),
        (keras.random.SeedGenerator, ("next",)),
        (keras.layers.Normalization, ("mean", "variance")),
    ):
        _return_tensors(kind, *methods)
    # Calls that users define compute with tensors, and AutoGraph must find them.
    _return_tensors(keras.Layer, "__call__", "call", users=False)
    keras.Variable.numpy = lambda variable: Tensor(fence.held(variable)).numpy()


# ---- the modules ----------------------------------------------------------------------------------------------------


def _module_with(module: types.ModuleType, **functions: Callable) -> types.SimpleNamespace:
    """What is in a module, with other functions in the place of some."""
    return types.SimpleNamespace(**vars(module) | functions)


def _asarray(x: Any, dtype: Any = None, **options: Any) -> Any:
    """``jnp.asarray``, but that Python numbers have the types that TensorFlow gives them."""
    if dtype is None and type(x) in (int, float):
        dtype = "float32" if type(x) is float else "int32" if -(2**31) <= x < 2**31 else None
    return jax.numpy.asarray(x, dtype, **options)


def _one_hot(x: Any, num_classes: int, *, dtype: Any = None, **options: Any) -> Any:
    """``jax.nn.one_hot``, which gives what TensorFlow's does, with 64-bit types on, too."""
    return jax.nn.one_hot(x, num_classes, dtype=dtype or "float32", **options)


def _beside(function: Callable, result_type: Callable) -> Callable:
    """A function of two arrays, one of which may be a number: it takes the dtype that Keras gives it on TensorFlow."""

    @functools.wraps(function)
    def with_number(*args: Any, **options: Any) -> Any:
        numbers = [type(x) in (int, float) for x in args]
        if (
            len(args) == 2
            and any(numbers)
            and all(number or hasattr(x, "dtype") for x, number in zip(args, numbers, strict=True))
        ):
            dtype = np.dtype(result_type(*(getattr(x, "dtype", type(x)) for x in args)))
            args = tuple(np.asarray(x).astype(dtype) if number else x for x, number in zip(args, numbers, strict=True))
        return function(*args, **options)

    return with_number


# Those in which a number has no dtype of its own on TensorFlow: in less and its like it is float32 there, too.
_OF_TWO = "add divide divide_no_nan floor_divide fmax fmin maximum minimum multiply power subtract true_divide".split()


class _Narrowed(dict[str, str]):
    """Keras's table of narrowed dtypes: with 64-bit types on it keeps those that Keras keeps on TensorFlow."""

    def get(self, key: str, default: Any = None) -> Any:
        keep = key in ("float64", "int64") and jax.config.read("jax_enable_x64")
        return key if keep else super().get(key, default)


class _TensorFlow:
    """tapejax, for code that also tests for sparse or ragged tensors, and uses names of TensorFlow 1."""

    SparseTensor = type("SparseTensor", (), {})
    RaggedTensor = type("RaggedTensor", (), {})

    assign = staticmethod(lambda variable, value: variable.assign(value))
    assign_add = staticmethod(lambda variable, value: variable.assign_add(value))
    assign_sub = staticmethod(lambda variable, value: variable.assign_sub(value))

    compat = property(lambda self: types.SimpleNamespace(v1=self))

    @property
    def data(self) -> Any:
        try:
            return libraries.package.data
        except ImportError:  # without Grain nothing is a dataset
            return types.SimpleNamespace(Dataset=_TensorFlow)

    def __getattr__(self, name: str) -> Any:
        return getattr(libraries.package, name)


def _open_name_scopes() -> None:
    """Lets Keras's name scopes, those of its layers for instance, be open as TensorFlow's, too."""
    kind: Any = fence.part("backend.jax.core").name_scope
    enter, leave = kind.__enter__, kind.__exit__

    def enter_both(self: Any) -> Any:
        enter(self)
        if getattr(self, fence.IS_OPEN):  # else it is the one that is open already
            self._opened = name_scope(self.name)
            self._opened.__enter__()
        return self

    def leave_both(self: Any, *exception: Any) -> None:
        if getattr(self, fence.IS_OPEN):
            self._opened.__exit__()
        leave(self, *exception)

    kind.__enter__, kind.__exit__ = enter_both, leave_both


def _instead_of_tensorflow() -> None:
    """Where Keras calls TensorFlow whatever its backend, for the sake of programs like ours, it finds tapejax."""
    tensorflow = _TensorFlow()
    for name, stand_in in (
        ("legacy.backend", tensorflow),  # tf.keras.backend.mean and the like
        ("legacy.layers", tensorflow),
        ("layers.preprocessing.discretization", tensorflow),
        ("layers.preprocessing.feature_space", tensorflow),
        ("layers.preprocessing.normalization", tensorflow),
        ("utils.rng_utils", types.SimpleNamespace(available=True, random=libraries.package.random)),
        ("saving.serialization_lib", types.SimpleNamespace(available=False)),
    ):
        fence.part(name).tf = stand_in
    tensorboard: Any = fence.part("callbacks.tensorboard")
    tensorboard.TensorBoard.summary = libraries.package.summary
    tensorboard.keras_model_summary = summary.keras_model

    def set_logits(tensor: Tensor, logits: Any) -> None:
        setattr(tensor._array, fence.LOGITS, logits)

    # The functions of tf.keras.backend leave each other this note.
    setattr(Tensor, fence.LOGITS, property(lambda tensor: getattr(tensor._array, fence.LOGITS), set_logits))

    # With 64-bit types on, a Python float is float32 still: Keras leaves its dtype to JAX.
    core = fence.part("backend.jax.core")
    core.jnp = _module_with(core.jnp, asarray=_asarray)
    nn: Any = fence.part("backend.jax.nn")
    nn.jnn = _module_with(nn.jnn, one_hot=_one_hot)
    # Keras on JAX makes float32 of float64 in tanh, norm, var and all that asks for a result's dtype, 64-bit types on or off.
    dtypes: Any = fence.part("backend.common.dtypes")
    dtypes.BIT64_TO_BIT32_DTYPE = _Narrowed(dtypes.BIT64_TO_BIT32_DTYPE)
    numpy: Any = fence.part("backend.jax.numpy")
    # In a `function` the state of the global seed is the program's, so that each call draws anew.
    seeds: Any = fence.part("random.seed_generator")
    traced = seeds.jax_utils.is_in_jax_tracing_scope
    traced_by_jax = lambda: reading.context.capture is None and traced()  # noqa: E731
    seeds.jax_utils = types.SimpleNamespace(is_in_jax_tracing_scope=traced_by_jax)
    for name in _OF_TWO:  # not all are in every version
        if hasattr(numpy, name):
            setattr(numpy, name, _beside(getattr(numpy, name), dtypes.result_type))


class _Mirror(types.ModuleType):
    """A module of Keras's: classes are its own, functions answer user code in tensors, modules are mirrored."""

    def __init__(self, name: str, real: types.ModuleType):
        super().__init__(name, real.__doc__)
        self._real = real
        # TensorFlow's spelling comes first; what is only in Keras's own is there as well
        self._also = sys.modules.get(real.__name__.replace(fence.TENSORFLOWS, "keras", 1))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = getattr(self._real, name, self)
        if value is self:
            value = getattr(self._also, name, self)
        if value is self:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = _mirrored(f"{self.__name__}.{name}", value)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        names = {*dir(self._real), *dir(self._also), *vars(self)}
        return sorted(name for name in names if not name.startswith("_"))


_functions: dict[int, Callable] = {}


def _mirrored(full: str, value: Any) -> Any:
    if isinstance(value, types.FunctionType) and value.__module__.startswith("keras."):
        if fence.is_of(value, "tree"):  # functions on structures of any leaves
            return value
        # those of programs for TensorFlow need tensors
        return _functions.setdefault(id(value), (_given_tensors if fence.is_of(value, "legacy") else visible)(value))
    if isinstance(value, types.ModuleType) and value.__name__.startswith("keras."):
        module = sys.modules.get(full)
        if module is None:
            module = sys.modules[full] = _Mirror(full, value)
            for name, inner in list(vars(value).items()):
                # modules at once, so that `import tapejax.keras.layers.experimental as x` finds them
                if isinstance(inner, types.ModuleType) and inner.__name__ == f"{value.__name__}.{name}":
                    setattr(module, name, _mirrored(f"{full}.{name}", inner))
        return module
    return value


def _share_functions() -> None:
    """Makes ``layer.activation is tf.keras.activations.relu`` true of a layer that was given its activation by name.

    The same holds for functions that are losses and metrics.
    """
    exported: Any = fence.part("api_export")
    for part in ("activations", "losses", "metrics"):
        functions: dict[str, Any] = fence.part(part).ALL_OBJECTS_DICT
        for name, fn in functions.items():
            if isinstance(fn, types.FunctionType):
                functions[name] = shared = _mirrored(name, fn)
                setattr(sys.modules[fn.__module__], fn.__name__, shared)  # where classes of losses find it
                if (public := exported.get_name_from_symbol(fn)) is not None:
                    exported.register_internal_serializable(public, shared)


def _fill(names: dict[str, Any]) -> _Mirror:
    real = _load()
    libraries.install()
    keras = sys.modules["keras"]
    if not keras_adapter.returns_tensors:
        _answer_in_tensors(keras)
        _instead_of_tensorflow()
        _open_name_scopes()
        _share_functions()
        keras_trainer.install()
        keras_data.install()
        keras_export.install()
        keras_adapter.return_tensors()
    mirror = _Mirror(NAME, real)
    for name, value in list(vars(real).items()):
        if isinstance(value, types.ModuleType) and not name.startswith("_") and value.__name__.startswith("keras."):
            names[name] = _mirrored(f"{NAME}.{name}", value)
    return mirror


_mirror = _fill(globals())


def __getattr__(name: str) -> Any:
    return getattr(_mirror, name)


def __dir__() -> list[str]:
    return dir(_mirror)


__all__ = [name for name in dir(_mirror) if not name.startswith("_")]
