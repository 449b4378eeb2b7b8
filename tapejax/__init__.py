"""TensorFlow's GradientTape for JAX.

``import tapejax as tf`` gives TensorFlow's names over JAX arrays; ``GradientTape`` also records plain ``jnp`` code, and any
library's that runs on JAX.

>>> import tapejax as tf
>>> x = tf.Variable(3.0)
>>> with tf.GradientTape() as tape:
...     y = x**2
>>> tape.gradient(y, x)
<tf.Tensor: shape=(), dtype=float32, numpy=6.0>
"""

from __future__ import annotations

import importlib as _importlib
import sys as _sys
from importlib.util import find_spec as _find_spec

from ._version import __version__
from .execution import host as _host
from .execution import runner as _runner
from .tape.accumulator import ForwardAccumulator
from .tape.gradient_tape import GradientTape, UnconnectedGradients
from .tf import namespaces as _names
from .tf.libraries import adapters as _adapters
from .tf.ops.control_flow import case, cond, foldl, foldr, map_fn, scan, switch_case, vectorized_map, while_loop
from .tf.ops.custom_gradient import custom_gradient, grad_pass_through, recompute_grad
from .tf.ops.opaque import numpy_function, py_function
from .tf.ops.registry import RegisterGradient, no_gradient
from .tf.programs.function import TensorSpec, function, init_scope, inside_function
from .tf.programs.module import Module
from .tf.values import errors, nest
from .tf.values.dtypes import DType, TensorShape, as_dtype
from .tf.values.errors import NarrowingWarning
from .tf.values.names import name_scope
from .tf.values.tensor import Tensor, Variable, constant, convert_to_tensor, is_tensor
from .tools.seeing import tape as _seen

NotDifferentiable = no_gradient


def executing_eagerly() -> bool:
    """Whether operations run at once: outside ``jax.jit`` and `function`."""
    from .tf.values import reading

    return not reading.in_graph()


_NAMESPACES = _names.namespaces()
globals().update(_names.NAMESPACES["tf"])
globals().update({name: x for name, x in _names.NAMESPACES["tf.dtypes"].items() if isinstance(x, DType)})
globals().update({name: module for name, module in _NAMESPACES.items() if "." not in name})
# as modules, so that `from tapejax.math import sin` and `import tapejax.nn as nn` work
_sys.modules.update({f"{__name__}.{name}": module for name, module in _NAMESPACES.items()})
_sys.modules.update({f"{__name__}.{module.__name__.rpartition('.')[2]}": module for module in (errors, nest)})

# TensorFlow 2's names are the only ones: `tf.compat.v2` is all of them
_NAMESPACES["compat"].v2 = _sys.modules[f"{__name__}.compat.v2"] = _sys.modules[__name__]  # type: ignore[attr-defined]
_ours = {name: x for name, x in globals().items() if name[0] != "_" and not isinstance(x, type(_sys))}
vars(_NAMESPACES["compat.v1"]).update({name: x for name, x in _ours.items() if name not in _names.NOT_IN_VERSION_1})

_adapters.install()  # at once where Keras is there: a variable that is frozen before the first tape is known to be trained

_when_asked = _names.when_asked("tf", globals())
# Modules that few programs need, and the package that one stands on; parts of Keras that TensorFlow has at the top, too.
_WHEN_ASKED = {"data": "grain", "keras": "keras", "saved_model": "jax", "train": "jax"}
_OF_KERAS = dict.fromkeys(("initializers", "losses", "metrics", "optimizers"), "keras")


def __getattr__(name: str) -> object:
    if name in _WHEN_ASKED:
        return _importlib.import_module(f"{__name__}.{name}")
    if name in _OF_KERAS:
        return getattr(_importlib.import_module(f"{__name__}.keras"), name)
    return _when_asked(name)


def _installed(package: str) -> bool:
    try:
        return _find_spec(package) is not None
    except ImportError:  # whoever hides it from programs
        return False


# Of the modules only those that TensorFlow has, too: `from tapejax import *` must not bind `values` and `tape`.
_NOT_THEIRS = {name for name, x in globals().items() if isinstance(x, type(_sys))}
_NOT_THEIRS -= {*_NAMESPACES, "errors", "nest"}
__all__ = sorted(
    {name for name in globals() if not name.startswith("_") and name not in ("annotations",)} - _NOT_THEIRS
    | set(_names.names_of("tf"))
    | {name for name, package in (_WHEN_ASKED | _OF_KERAS).items() if _installed(package)}
)


def __dir__() -> list[str]:
    return sorted(__all__)
