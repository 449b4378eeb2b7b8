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
from .tf import namespaces as _names
from .tf.libraries import adapters as _adapters
from .tools.seeing import tape as _seen

_NAMESPACES = _names.namespaces()
globals().update(_names.at_once("tf"))
globals().update({name: module for name, module in _NAMESPACES.items() if "." not in name})
# as modules, so that `from tapejax.math import sin` and `import tapejax.nn as nn` work
_sys.modules.update({f"{__name__}.{name}": module for name, module in _NAMESPACES.items()})
_sys.modules.update({f"{__name__}.{name}": _names.find("tf", name) for name in ("errors", "nest")})
# TensorFlow 2's names are the only ones: `tf.compat.v2` is all of them
_NAMESPACES["compat"].v2 = _sys.modules[f"{__name__}.compat.v2"] = _sys.modules[__name__]  # type: ignore[attr-defined]

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


__all__ = sorted(
    {*_names.PLACES["tf"], *(name for name in _NAMESPACES if "." not in name)}
    | {name for name, package in (_WHEN_ASKED | _OF_KERAS).items() if _installed(package)}
)


def __dir__() -> list[str]:
    return sorted(__all__)
