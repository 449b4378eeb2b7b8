"""All that `tapejax` has: imported when the first of its names is used, for one who wants the tape alone does not wait for it.

Importing this registers what a tape stands on (`runner`, `primitives`, `structures`, the adapters) and attaches its methods.
"""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from typing import Any

from .execution import host as _host  # noqa: F401
from .execution import runner as _runner  # noqa: F401
from .tf import namespaces
from .tf.libraries import adapters
from .tools.seeing import tape as _seen  # noqa: F401

ROOT: Any = sys.modules[__name__.partition(".")[0]]
# Modules that few programs need, and the package that one stands on; parts of Keras that TensorFlow has at the top, too.
WHEN_ASKED = {"data": "grain", "keras": "keras", "saved_model": "jax", "train": "jax"}
OF_KERAS = dict.fromkeys(("initializers", "losses", "metrics", "optimizers"), "keras")

NAMESPACES = namespaces.namespaces()
NAMES: dict[str, Any] = namespaces.at_once("tf")
NAMES |= {name: module for name, module in NAMESPACES.items() if "." not in name}
# TensorFlow 2's names are the only ones: `tf.compat.v2` is all of them
NAMESPACES["compat"].v2 = ROOT  # type: ignore[attr-defined]
# as modules, so that `from tapejax.math import sin` and `import tapejax.nn as nn` work
MODULES = {f"{ROOT.__name__}.{name}": module for name, module in NAMESPACES.items()}
MODULES |= {f"{ROOT.__name__}.{name}": NAMES[name] for name in ("errors", "nest")}
MODULES[f"{ROOT.__name__}.compat.v2"] = ROOT
sys.modules.update(MODULES)

adapters.install()  # at once where Keras is there: a variable that is frozen before the first tape is known to be trained

_when_asked = namespaces.when_asked("tf", vars(ROOT))


def find(name: str) -> Any:
    """A name that is not among `NAMES`: it is imported now, or the error has a hint."""
    if name in WHEN_ASKED:
        return importlib.import_module(f"{ROOT.__name__}.{name}")
    if name in OF_KERAS:
        return getattr(importlib.import_module(f"{ROOT.__name__}.keras"), name)
    return _when_asked(name)


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ImportError:  # whoever hides it from programs
        return False


NAMES["__all__"] = sorted(
    {*namespaces.PLACES["tf"], *(name for name in NAMESPACES if "." not in name)}
    | {name for name, package in (WHEN_ASKED | OF_KERAS).items() if _installed(package)}
)
