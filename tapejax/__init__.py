"""TensorFlow's GradientTape for JAX.

``import tapejax as tf`` gives TensorFlow's names over JAX arrays; ``GradientTape`` also records plain ``jnp`` code, and any
library's that runs on JAX.

>>> import tapejax as tf
>>> x = tf.Variable(3.0)
>>> with tf.GradientTape() as tape:
...     y = x**2
>>> tape.gradient(y, x)
<tf.Tensor: shape=(), dtype=float32, numpy=6.0>

``from tapejax.tape import GradientTape`` imports the wrapper alone, for plain JAX. All else comes with the first other name
that is used, or with Keras or Flax NNX (`tapejax._everything`).
"""

from __future__ import annotations

import importlib as _importlib
import sys as _sys
from typing import Any as _Any

from . import _finders
from ._version import __version__

_ALONE = frozenset(("jaxprs", "minimal", "places", "tape"))  # what is imported without the rest


def _load_everything() -> _Any:
    _importlib.import_module(f"{__name__}.tf")  # which imports it: see there
    everything = _sys.modules[f"{__name__}._everything"]
    if "__all__" not in globals():
        globals().update(everything.NAMES)
    return everything


def __getattr__(name: str) -> _Any:
    if name in _ALONE:
        return _importlib.import_module(f"{__name__}.{name}")
    if name.startswith("__") and name != "__all__":  # Python asks for these, and means this file
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    everything = _load_everything()
    return globals()[name] if name in globals() else everything.find(name)


def __dir__() -> list[str]:
    return sorted(_load_everything().NAMES["__all__"])


_sys.meta_path.insert(0, _finders.Libraries(lambda library: _load_everything().adapters.install(library)))
_sys.meta_path.append(
    _finders.Namespaces(
        find=lambda name: _load_everything().MODULES.get(name),
        is_one=lambda name: "__all__" not in globals() or name in globals()["_everything"].MODULES,
    )
)
if not _sys.modules.keys().isdisjoint(_finders.LIBRARIES):
    _load_everything()
