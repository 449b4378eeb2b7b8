"""What is not there: what to use in JAX for a name of TensorFlow's that tapejax does not have. A * stands for any letters."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

# A row of the file is a name and, after a colon, what to use instead.
_ROWS = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").splitlines()
MISSING: dict[str, str] = dict(row.split(": ", 1) for row in _ROWS)


def hint_for(full: str) -> str | None:
    """What to use instead of a name: by the table, or a function of JAX's that is called the same."""
    exact = MISSING.get(full) or MISSING.get(full.replace("tf.", "tf.compat.v1.", 1))  # a name of version 1
    if exact is None:
        exact = next((hint for pattern, hint in MISSING.items() if fnmatch.fnmatchcase(full, pattern)), None)
    return exact or _in_jax(full.rpartition(".")[2])


def missing(namespace: str) -> Callable[[str], Any]:
    """A module's ``__getattr__`` for the namespace, ``"tf"`` or ``"tf.nn"``: what to use instead of a name."""

    def __getattr__(name: str) -> Any:
        full = f"{namespace}.{name}"
        hint = None if name.startswith("__") else hint_for(full)
        raise AttributeError(f"tapejax has no {full}" + (f": use {hint}" if hint else ""))

    return __getattr__


def no_attribute(kind: str, owner: object, name: str) -> NoReturn:
    """Raises what an object of the class `kind` of TensorFlow's says of an attribute that it does not have."""
    hint = MISSING.get(f"tf.{kind}.{name}")
    text = f"{type(owner).__name__!r} object has no attribute {name!r}" + (f": use {hint}" if hint else "")
    raise AttributeError(text, name=name, obj=owner)


def hints(kind: str) -> Callable[[object, str], NoReturn]:
    """A class's ``__getattr__``, which knows what to use instead of attributes of TensorFlow's class `kind`."""
    return lambda self, name: no_attribute(kind, self, name)


def _in_jax(name: str) -> str | None:
    """A function of JAX's by that name, if there is one."""
    if name.startswith("_"):
        return None
    import jax.nn
    import jax.scipy.special  # here, since only an error needs it

    places = {"jnp": jax.numpy, "jax.lax": jax.lax, "jax.nn": jax.nn, "jax.scipy.special": jax.scipy.special}
    return next((f"{place}.{name}" for place, module in places.items() if callable(getattr(module, name, None))), None)
