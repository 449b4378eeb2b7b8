"""Python functions as operations: on NumPy arrays, without a gradient, or on tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from ...jaxprs.dependence import Links
from ...jaxprs.fence import Tracer
from ...jaxprs.types import Positions
from ...tape import active, dispatch, rules
from ...tape.operation import PythonOp
from ...tape.recording import Entry, Recording
from ..values import nest, reading
from ..values.conversion import convert_to_tensor, raw
from ..values.dtypes import narrowed, requested
from ..values.errors import InvalidArgumentError, NoValueError
from ..values.tensor import Tensor
from ..values.types import Array, DTypeLike, Nest, TensorLike


class ConstantOp(PythonOp):
    """An operation whose outputs depend on no input, unless a gradient is registered for its name."""

    __slots__ = ()

    def links(self, entry: Entry, kinds: tuple, active_ins: Positions) -> Links:
        if rules.has_rule(self.name):
            return super().links(entry, kinds, active_ins)
        return Links((frozenset(),) * len(entry.outputs), True)


def _or_decorator(call: Callable) -> Callable:
    """`call`, which without a function is a decorator."""

    @functools.wraps(call)
    def public(
        func: Callable | None = None,
        inp: Sequence[TensorLike] | None = None,
        Tout: DTypeLike | Sequence[DTypeLike] | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        if Tout is None:
            raise TypeError(f"{call.__name__}: missing required argument 'Tout'")
        if func is None:
            if inp is not None:
                raise TypeError(f"{call.__name__}: a decorator takes no `inp`: give the inputs when it is called")
            return lambda func: functools.wraps(func)(lambda *given: call(func, given, Tout, *args, **kwargs))
        if inp is None:
            raise TypeError(f"{call.__name__}: missing required argument 'inp'")
        return call(func, inp, Tout, *args, **kwargs)

    return public


@_or_decorator
def numpy_function(
    func: Callable,
    inp: Sequence[TensorLike],
    Tout: DTypeLike | Sequence[DTypeLike],
    stateful: bool = True,
    name: str | None = None,
) -> Nest:
    """Runs `func` on NumPy arrays as one operation without a gradient: its results are not connected to its inputs.

    A `function` that calls it runs as Python.

    Args:
      func: takes NumPy arrays and returns arrays.
      inp: the tensors to pass. Outside of a `function` Python's numbers have the types that NumPy gives them.
      Tout: the dtype of the result, or a list of them if `func` returns several. As in TensorFlow it counts inside a `function`
        only: elsewhere the results are what `func` returns.

    Raises:
      InvalidArgumentError: inside a `function`, `func` returns another dtype than `Tout`, or not as many results.
      NotImplementedError: inside `jax.jit`, where the shapes of the results are not known; use `jax.pure_callback`.
    """
    reading.require_python("numpy_function")
    arrays = [raw(x) for x in inp]
    if active.staging() or any(isinstance(x, Tracer) for x in arrays):
        outputs = _called_back(func, arrays)
        return [*map(Tensor, outputs)] if len(outputs) != 1 else Tensor(outputs[0])
    in_graph = reading.inside_function()
    numbers = () if in_graph else (bool, int, float, complex, list, tuple)
    inputs = [np.array(x if isinstance(x, numbers) else array) for x, array in zip(inp, arrays, strict=True)]
    with active.outside():
        returned = reading.run(False, func, *inputs)
    if in_graph:
        dtypes = nest.flatten(Tout)
        values = _counted("numpy_function", _values(returned), dtypes)
        _require_dtypes(values, dtypes)
    else:
        values = nest.flatten(returned)
    results = [x if x is None else convert_to_tensor(np.asarray(x)) for x in values]

    # noted as an operation, so that it shows on the tape and a gradient can be registered for it
    def fn(*_: Array) -> list[Array]:
        return [jax.lax.stop_gradient(x._array) for x in results if x is not None]

    outputs = iter(dispatch.run(ConstantOp("PyFunc", fn), arrays))
    tensors = [x if x is None else Tensor(next(outputs)) for x in results]
    several = nest.is_nested(Tout) if in_graph else len(tensors) != 1
    return tensors if several else tensors[0]


def results_in(recording: Recording) -> list[list[Any]]:
    """The types of the results of each `numpy_function` that was recorded."""
    return [[*map(jax.typeof, entry.outputs)] for entry in recording.entries if isinstance(entry.op, ConstantOp)]


def _called_back(func: Callable, arrays: Sequence[Array]) -> Sequence[Array]:
    """The results in a program that is traced of what ran before, whose results have known types."""
    types = next(reading.context.results, None)
    if types is None:
        raise NoValueError(
            "numpy_function under jit: use jax.pure_callback, which takes the results' shapes. A model of Keras that calls it "
            "runs as Python after compile(run_eagerly=True)"
        )

    def call(*xs: Array) -> list[np.ndarray]:
        values = nest.flatten(func(*map(np.asarray, xs)))
        return [np.asarray(x, t.dtype) for x, t in zip(values, types, strict=True)]

    return jax.pure_callback(call, types, *map(jax.lax.stop_gradient, arrays), vmap_method="sequential")


def _values(returned: Any) -> list:
    """What a function returned, one value for each dtype: an array is one value, whatever its shape."""
    if isinstance(returned, (list, tuple)):
        return list(returned)
    return [] if returned is None else [returned]


def _counted(name: str, values: list, dtypes: Sequence[DTypeLike]) -> list:
    if len(values) != len(dtypes):
        raise InvalidArgumentError(f"{name}: returns {len(values)} values, but expects to see {len(dtypes)} values")
    return values


def _require_dtypes(values: Sequence[Any], wanted: Sequence[DTypeLike]) -> None:
    for value, dtype in zip(values, wanted, strict=True):
        if narrowed(np.asarray(value).dtype) != requested(dtype):
            text = f"returns a value of type {np.asarray(value).dtype}, but expects {np.dtype(requested(dtype))}"
            raise InvalidArgumentError(f"numpy_function: {text}")


def _without_result(func: Callable, arrays: Sequence[Array]) -> list:
    def run(*values: Array) -> None:
        with active.outside():
            reading.run(False, func, *map(Tensor, values))

    if active.staging() or any(isinstance(x, Tracer) for x in arrays):
        jax.debug.callback(run, *arrays)
    else:
        reading.run(False, func, *map(Tensor, arrays))
    return []


@_or_decorator
def py_function(
    func: Callable, inp: Sequence[TensorLike], Tout: DTypeLike | Sequence[DTypeLike], name: str | None = None
) -> Nest:
    """Runs `func` on the tensors as Python: the tape records what it computes, so it is differentiable.

    A `function` that calls it runs as Python, unless there are no results.

    Args:
      func: takes tensors and returns tensors (or values that become tensors of `Tout`).
      inp: the tensors to pass.
      Tout: the dtype of the result, or a list of them. An empty list: there is no result, and in a compiled function `func` runs
        each time that the function does, on known values.
    """
    if nest.is_nested(Tout) and not Tout:
        return _without_result(func, [raw(x) for x in inp])
    reading.require_python("py_function")
    dtypes = nest.flatten(Tout)
    returned = reading.run(False, func, *map(convert_to_tensor, inp))
    # TensorFlow leaves out, without a word, what is more than there are dtypes.
    values = _counted("py_function", _values(returned)[: len(dtypes)], dtypes)
    try:
        results = [convert_to_tensor(x, dtype=t) for x, t in zip(values, dtypes, strict=True)]
        return results if nest.is_nested(Tout) else results[0]
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"py_function: {error}") from error
