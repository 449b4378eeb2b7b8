"""One run of a parity body: what it returned, printed and warned of, in a form that does not say which system ran it."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import enum
import io
import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes  # noqa: F401  # names bfloat16 and its like to NumPy
import numpy as np


@dataclasses.dataclass
class Outcome:
    """All that can be seen of a run: the returned value, the printed text, the warnings."""

    value: Any
    printed: str
    warnings: list[str]

    def __str__(self) -> str:
        return f"{self.value!r}" + (f"\nprinted:\n{self.printed}" if self.printed else "")


@dataclasses.dataclass
class Error:
    """An exception as a value: its class and that class's bases, by name."""

    name: str
    bases: tuple[str, ...]
    message: str

    def __repr__(self) -> str:
        return f"raises {self.name}({self.message[:300]!r})"


@dataclasses.dataclass
class Array:
    """A tensor, variable or NumPy array, whoever made it."""

    kind: str
    dtype: str
    values: np.ndarray

    def __repr__(self) -> str:
        return f"{self.kind}({self.values.tolist()}, shape={self.values.shape}, dtype={self.dtype})"


def error_of(action: Callable, *args: Any, **kwargs: Any) -> Error | None:
    """The exception that a call raises, as a value a body can return; None when it raises none."""
    try:
        action(*args, **kwargs)
    except Exception as error:  # whatever it is, it is the result
        return Error(type(error).__name__, tuple(base.__name__ for base in type(error).__mro__), str(error))
    return None


def run(body: Callable, tf: Any, warned: list[str]) -> Outcome:
    """Run a body to its neutral outcome; an error that it did not ask for with `error_of` is a failure of the test."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        value = neutral(body(tf))
    return Outcome(value, printed.getvalue(), warned)


def outcome_under_tensorflow(body: Callable, tensorflow: Any) -> Outcome:
    """Run under TensorFlow; its warnings are log records, and what NumPy thinks of its code is not our business."""
    forget_logged_messages()
    with warnings.catch_warnings(), captured_log("tensorflow") as logged:
        warnings.simplefilter("ignore")
        return run(body, tensorflow, logged)


def outcome_under_tapejax(body: Callable, tapejax: Any) -> Outcome:
    with warnings.catch_warnings(record=True) as raised, captured_log("tapejax") as logged:
        warnings.simplefilter("always")
        outcome = run(body, tapejax, logged)
    # Once per process and of no body's own: tests/test_values.py is about it.
    logged.extend(str(w.message) for w in raised if w.category.__name__ != "NarrowingWarning")
    return outcome


@contextlib.contextmanager
def captured_log(name: str) -> Iterator[list[str]]:
    """Collect what a logger says at level WARNING or above instead of letting it reach the terminal."""
    messages: list[str] = []
    collector = logging.Handler(logging.WARNING)
    collector.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger(name)
    handlers, propagate = logger.handlers, logger.propagate
    logger.handlers, logger.propagate = [collector], False
    try:
        yield messages
    finally:
        logger.handlers, logger.propagate = handlers, propagate


def forget_logged_messages() -> None:
    """TensorFlow gives some warnings once per process: let every body hear them."""
    tf_logging = sys.modules.get("tensorflow.python.platform.tf_logging")
    getattr(tf_logging, "_log_counter_per_token", {}).clear()


# --- the neutral form -----------------------------------------------------------------------------------------------


def neutral(value: Any) -> Any:
    """Rewrite a result so that nothing in it says which system made it."""
    match value:
        case np.generic():  # some are Python's floats as well
            return neutral_array(value)
        case None | bool() | int() | float() | complex() | str() | bytes() | Error():
            if isinstance(value, enum.Enum):
                return type(value).__name__, value.name
            return value
        case enum.Enum():
            return type(value).__name__, value.name
        case type():
            return "class", value.__name__
        case dict():
            return type(value).__name__, [(key, neutral(item)) for key, item in value.items()]
        case tuple() if hasattr(value, "_fields"):
            return type(value).__name__, [(name, neutral(getattr(value, name))) for name in value._fields]
        case list() | tuple() if not is_shape(value):
            return type(value).__name__, [neutral(item) for item in value]
    if is_shape(value):
        return "TensorShape", None if value.rank is None else value.as_list()
    if hasattr(value, "as_numpy_dtype"):
        return "DType", value.name
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return neutral_array(value)
    raise TypeError(f"a parity body returned {value!r}, which the harness cannot compare")


def is_shape(value: Any) -> bool:
    return hasattr(value, "as_list") and hasattr(value, "num_elements")


def neutral_array(value: Any) -> Array:
    if hasattr(value, "trainable"):
        kind = "variable"
    elif isinstance(value, (np.ndarray, np.generic)):
        kind = "numpy"
    elif type(value).__name__ == "IndexedSlices":
        raise TypeError("TensorFlow gave IndexedSlices: let the body return tf.convert_to_tensor(gradient)")
    else:
        kind = "tensor"
    dtype = getattr(value.dtype, "name", None) or np.dtype(value.dtype).name
    return Array(kind, dtype, np.asarray(value.numpy() if hasattr(value, "numpy") else value))


# --- as JSON --------------------------------------------------------------------------------------------------------


def to_json(value: Any) -> Any:
    """`value`, or anything inside a neutral form, as what the json module can write; `from_json` undoes it."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case list():
            return [to_json(item) for item in value]
        case tuple():
            return {"tuple": [to_json(item) for item in value]}
        case complex():
            return {"complex": [value.real, value.imag]}
        case bytes():
            return {"bytes": base64.b64encode(value).decode()}
        case Error():
            return {"error": [value.name, list(value.bases), everywhere_the_same(value.message)]}
        case Array():
            content = value.values.tolist() if value.values.dtype == object else value.values.tobytes()
            return {"array": [value.kind, value.dtype, str(value.values.dtype), value.values.shape, to_json(content)]}
        case Outcome():
            warned = [everywhere_the_same(text) for text in value.warnings]
            return {"outcome": [to_json(value.value), value.printed, warned]}
    raise TypeError(f"cannot keep {value!r}")


def everywhere_the_same(message: str) -> str:
    """The first line of a message of TensorFlow's, which is not compared, without addresses in memory and paths."""
    return re.sub(r"0x[0-9a-f]+|(/[\w.-]+){2,}(:\d+)?", "…", message.partition("\n")[0])


def from_json(value: Any) -> Any:
    """What `to_json` was given."""
    match value:
        case list():
            return [from_json(item) for item in value]
        case {"tuple": items}:
            return tuple(from_json(item) for item in items)
        case {"complex": [real, imaginary]}:
            return complex(real, imaginary)
        case {"bytes": text}:
            return base64.b64decode(text)
        case {"error": [name, bases, message]}:
            return Error(name, tuple(bases), message)
        case {"array": [kind, dtype, stored, shape, content]}:
            content = from_json(content)
            if stored == "object":
                values = np.empty(shape, object)
                values[...] = content
            else:
                values = np.frombuffer(content, stored).reshape(shape)
            return Array(kind, dtype, values)
        case {"outcome": [result, printed, warned]}:
            return Outcome(from_json(result), printed, warned)
    return value
