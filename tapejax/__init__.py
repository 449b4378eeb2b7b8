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
import types as _types

from . import dtypes as _dtypes
from . import errors, nest
from . import ops as _ops
from .accumulator import ForwardAccumulator
from .custom_gradient import custom_gradient, grad_pass_through, recompute_grad
from .dtypes import DType, TensorShape, as_dtype
from .errors import NarrowingWarning
from .function import TensorSpec, function, init_scope, inside_function
from .function import functions_run_eagerly as _functions_run_eagerly
from .function import run_functions_eagerly as _run_functions_eagerly
from .module import Module
from .names import name_scope
from .ops.control_flow import case, cond, foldl, foldr, map_fn, scan, switch_case, vectorized_map, while_loop
from .ops.opaque import adjust_contrast as _adjust_contrast
from .ops.opaque import numpy_function, py_function
from .registry import RegisterGradient, no_gradient
from .tape import GradientTape, UnconnectedGradients
from .testing import compute_gradient as _compute_gradient
from .testing import max_error as _max_error
from .values import Tensor, Variable, constant, convert_to_tensor, is_tensor

__version__ = "0.1.0"

NotDifferentiable = no_gradient


def executing_eagerly() -> bool:
    """Whether operations run at once: outside ``jax.jit`` and `function`."""
    from . import recorder

    return not (recorder.staging() or inside_function())


def _namespace(name: str, names: dict, doc: str) -> _types.ModuleType:
    module = _types.ModuleType(f"{__name__}.{name}", doc)
    vars(module).update(names, __all__=list(names), __getattr__=_ops.missing(f"tf.{name}"))
    return module


_NAMESPACES = {full.removeprefix("tf."): _ops.namespace(full) for full in _ops.NAMESPACES if full != "tf"} | {
    "autodiff": _namespace("autodiff", {"ForwardAccumulator": ForwardAccumulator}, "Forward-mode derivatives."),
    "config": _namespace(
        "config",
        {"run_functions_eagerly": _run_functions_eagerly, "functions_run_eagerly": _functions_run_eagerly},
        "Settings.",
    ),
    "image": _namespace("image", {"adjust_contrast": _adjust_contrast}, "Images."),
    "test": _namespace(
        "test",
        {"compute_gradient": _compute_gradient, "max_error": _max_error},
        "Derivatives against finite differences.",
    ),
}
globals().update(_ops.NAMESPACES["tf"])
globals().update({name: x for name, x in vars(_dtypes).items() if isinstance(x, DType)})
globals().update(_NAMESPACES)
# as modules, so that `from tapejax.math import sin` and `import tapejax.nn as nn` work
_sys.modules.update({f"{__name__}.{name}": module for name, module in _NAMESPACES.items()})

_missing = _ops.missing("tf")
_WHEN_ASKED = ("saved_model",)  # modules that few programs need


def __getattr__(name: str) -> object:
    if name in _WHEN_ASKED:
        return _importlib.import_module(f"{__name__}.{name}")
    return _missing(name)


__all__ = sorted(name for name in globals() if not name.startswith("_") and name not in ("annotations",))
