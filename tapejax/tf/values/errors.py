"""Errors with TensorFlow's names (``tf.errors``), so that a porter's ``except`` clauses go on working."""

from __future__ import annotations

from typing import Any

import jax


def extra_missing(what: str, package: str, extra: str) -> ImportError:
    """The error if `what` needs a package that is not installed; `extra` installs it."""
    return ImportError(
        f"{what} needs {package}, which is not installed: pip install 'tapejax[{extra}]', or in a clone of the repository "
        f"pip install -e '.[{extra}]'"
    )


class OpError(Exception):
    """An operation that could not run; the base of the others.

    TensorFlow's constructor, ``OpError(node_def, op, message, error_code)``, is understood; tapejax itself raises
    ``InvalidArgumentError(message)``.

    >>> InvalidArgumentError(None, None, "shapes differ").message
    'shapes differ'
    """

    error_code = 2

    def __init__(self, *args: Any):
        # One argument is the message; TensorFlow puts a node and an operation before it.
        self.node_def, self.op, message, *code = args if len(args) >= 3 else (None, None, *(args or ("",)))
        self.message = message
        if code:
            self.error_code = code[0]
        super().__init__(message)

    def __init_subclass__(cls, code: int | None = None):
        if code is not None:
            cls.error_code = code


class CancelledError(OpError, code=1):
    """The operation was cancelled."""


class UnknownError(OpError, code=2):
    """The cause is not known."""


class InvalidArgumentError(OpError, ValueError, code=3):
    """An argument does not suit the operation: shapes that do not fit, dtypes that do not mix.

    In a graph TensorFlow raises ValueError for it: this one is both.
    """


class NonFiniteError(InvalidArgumentError):
    """`GradientTape.check_numerics` found a value or a cotangent that is NaN or infinite.

    Attributes:
      direction: where it is, "forward" or "backward".
      entry: the operation, as ``tape[i]`` gives it; ``entry.op.name`` is its name.
      line: the line of the user's code that ran it, with its ``file``, ``number`` and ``text``; or None. Where it ran in a
        loop, or in another function that is one operation, the line in there.
      value: the array.
      said, remedy: the message without its end; the end, what to do, empty where that depends on the operation.
    """

    def __init__(self, message: str, direction: str = "", entry: Any = None, value: Any = None, remedy: str = ""):
        super().__init__(f"{message}. {remedy}" if remedy else message)
        self.said, self.direction, self.entry, self.value, self.remedy = message, direction, entry, value, remedy
        self.line: Any = None if entry is None else entry.line


class DTypeError(InvalidArgumentError, TypeError):
    """Dtypes that do not mix, or that an operation does not take.

    TensorFlow raises one of the bases, now this one, now that: each catches it.
    """


class SymbolicValue(ValueError):
    """A value was wanted of a placeholder: a ``KerasTensor`` of a Functional model."""


class DeadlineExceededError(OpError, code=4):
    """The time allowed ran out."""


class NotFoundError(OpError, code=5):
    """Something asked for, a file for instance, is not there."""


class AlreadyExistsError(OpError, code=6):
    """Something to be created is there already."""


class PermissionDeniedError(OpError, code=7):
    """The caller may not do this."""


class ResourceExhaustedError(OpError, code=8):
    """Memory, or another resource, ran out."""


class FailedPreconditionError(OpError, code=9):
    """The system is not in the state that the operation needs."""


class AbortedError(OpError, code=10):
    """The operation was given up, usually for another one that ran beside it."""


class OutOfRangeError(OpError, code=11):
    """A read went past the end."""


class UnimplementedError(OpError, code=12):
    """The operation does not exist for these arguments."""


class InternalError(OpError, code=13):
    """An invariant is broken."""


class UnavailableError(OpError, code=14):
    """The service cannot be reached now."""


class DataLossError(OpError, code=15):
    """Data are lost or corrupt."""


class UnauthenticatedError(OpError, code=16):
    """The caller is not known."""


# The numbers that ``error_code`` may be.
(
    OK, CANCELLED, UNKNOWN, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED,
    RESOURCE_EXHAUSTED, FAILED_PRECONDITION, ABORTED, OUT_OF_RANGE, UNIMPLEMENTED, INTERNAL, UNAVAILABLE, DATA_LOSS,
    UNAUTHENTICATED,
) = range(17)  # fmt: skip


class OperatorNotAllowedInGraphError(TypeError):
    """Python asked for the value of a tensor in a function that is being traced."""


class PythonNeeded(OperatorNotAllowedInGraphError, NotImplementedError):
    """A function that is being traced does what only Python can do, at each call, or asks for a shape that depends on values: a
    `function` then runs as Python."""


class VariableInTraceError(RuntimeError):
    """A variable is read or assigned to in a function that JAX alone traces: its value would be a constant there, or leak."""


class NoValueError(NotImplementedError, AttributeError):
    """``numpy()`` of a tensor that is being traced: TensorFlow's symbolic tensors have no such attribute."""


class NarrowingWarning(UserWarning):
    """A 64-bit type became a 32-bit type because ``jax_enable_x64`` is off."""


__all__ = [
    name for name, x in vars().items() if isinstance(x, int) or (isinstance(x, type) and issubclass(x, Exception))
]


def __dir__() -> list[str]:
    return sorted(__all__)


# JAX raises TypeError or ValueError for shapes that do not fit, TensorFlow InvalidArgumentError.
_ABOUT_SHAPES = ("shape", "broadcast", "dimension")


def about_shapes(error: Exception) -> bool:
    """Whether `error`, raised by JAX, complains about shapes that do not fit."""
    if isinstance(error, (jax.errors.JAXTypeError, OpError)):
        return False
    message = str(error).lower()
    return any(word in message for word in _ABOUT_SHAPES)
