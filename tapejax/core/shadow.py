"""Two programs side by side: where they differ as they are written, and whether they compute the same.

It is deliberately another way of comparing than the keys in `canonical`, which it watches over.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax import jit

from ._jax import ClosedJaxpr, Jaxpr, Literal, Tracer, eval_jaxpr, jaxpr_as_fun
from .cache import require
from .canonical import open_jaxpr
from .types import Function, JaxProgram, Value, Values

JAXPRS = (Jaxpr, ClosedJaxpr)


def difference(one: JaxProgram, other: JaxProgram) -> str | None:
    """Where two of JAX's programs first differ, in words; None if they are the same."""
    a, b = open_jaxpr(one), open_jaxpr(other)
    names: dict[Any, Any] = {}

    def atoms(xs: Values, ys: Values) -> bool:
        return len(xs) == len(ys) and all(map(atom, xs, ys))

    def atom(x: Value, y: Value) -> bool:
        if isinstance(x, Literal) or isinstance(y, Literal):
            return type(x) is type(y) and x.aval == y.aval and _same_number(x.val, y.val)
        return x.aval == y.aval and names.setdefault(x, y) is y

    consts = getattr(one, "consts", ()), getattr(other, "consts", ())
    if not atoms([*a.constvars, *a.invars], [*b.constvars, *b.invars]):
        return "Its inputs differ."
    if len(consts[0]) != len(consts[1]) or not all(map(_same_number, *consts)):
        return "Its constants differ."
    if len(a.eqns) != len(b.eqns):
        return f"It has {len(a.eqns)} operations, or {len(b.eqns)}."
    for x, y in zip(a.eqns, b.eqns, strict=True):
        if x.primitive is not y.primitive or x.params.keys() != y.params.keys():
            return f"{x.primitive} or {y.primitive}."
        if not (atoms(x.invars, y.invars) and atoms(x.outvars, y.outvars)):
            return f"The operands of {x.primitive} differ: {x.invars} or {y.invars}."
        if x.ctx != y.ctx:
            return f"The context of {x.primitive} differs."
        for name in x.params:
            if found := _different_parameter(x.params[name], y.params[name]):
                return f"{name} of {x.primitive}: {found}"
    return None if atoms(a.outvars, b.outvars) else "Its results differ."


def _different_parameter(x: Value, y: Value) -> str | None:
    if isinstance(x, JAXPRS) and isinstance(y, JAXPRS):
        return difference(x, y)
    if type(x) is type(y) and isinstance(x, (tuple, list)) and len(x) == len(y):
        return next(filter(None, map(_different_parameter, x, y)), None)
    if (module := getattr(x, "mlir_module_serialized", None)) is not None and type(x) is type(y):
        # an exported program is another object each time that it is read
        return None if module == y.mlir_module_serialized else "two exported programs."
    if x is y or _is_function(x) and _is_function(y):  # functions are compared by what they compute
        return None
    return None if type(x) is type(y) and _same_number(x, y) else f"{x!r} or {y!r}."


def _is_function(x: Value) -> bool:
    return callable(x) or hasattr(x, "call_wrapped")


def _same_number(x: Value, y: Value) -> bool:
    if x is y:
        return True
    if isinstance(x, (jax.Array, np.ndarray, np.generic, float, complex)):
        if isinstance(x, Tracer) or isinstance(y, Tracer):
            return False
        x, y = _plain(x), _plain(y)
        return bool(x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes())
    return bool(x == y)


def _plain(x: Value) -> np.ndarray:
    return np.asarray(jax.random.key_data(x) if hasattr(x, "dtype") and _is_key(x) else x)


def _is_key(x: Value) -> bool:
    return jax.numpy.issubdtype(x.dtype, jax.dtypes.extended)


def call_both(name: str, call: Function, kept: Function, fresh: Function, inputs: Values) -> Any:
    """``call(*inputs)``, where `kept` is the function behind it, if `fresh` is the same program and computes the same.

    Raises:
      ShadowError: it is another program, or computes something else.
    """
    program = _traced(fresh, inputs)
    found = difference(_traced(kept, inputs), program)
    require(found is None, name, found or "")
    outputs = call(*inputs)
    results = jax.tree.leaves(outputs)
    arrays = [x for x in (*inputs, *results) if isinstance(x, jax.Array)]
    unknown = any([isinstance(x, Tracer) or x.is_deleted() for x in arrays])  # traced, or donated
    if unknown or program.effects:
        return outputs
    scale = size_of([x for x in inputs if isinstance(x, jax.Array) and not _is_key(x)])
    again = eval_jaxpr(program.jaxpr, program.consts, *inputs)
    if not close(results, again, scale):
        # operation by operation it may lose other digits than as one program
        again = jit(jaxpr_as_fun(program))(*inputs)
        require(close(results, again, scale), name, f"It computed {results}, now it computes {again}.")
    return outputs


def _traced(function: Function, inputs: Values) -> Any:
    specs = [jax.typeof(x) if isinstance(x, jax.Array) else x for x in inputs]  # 64 bits also where they are turned off
    return jax.make_jaxpr(lambda *xs: function(*xs))(*specs)  # anew: JAX keeps what it traced for a function


def close(xs: Values, ys: Values, scale: float = 0.0) -> bool:
    """Whether arrays are the same but for rounding, bit for bit where they are no floats; `scale` is how large operands are."""
    return len(xs) == len(ys) and all([_close_arrays(x, y, scale) for x, y in zip(xs, ys, strict=True)])


def size_of(xs: Values) -> float:
    """The largest of the finite floats in `xs`."""
    floats = [x for x in map(np.asarray, xs) if x.dtype.kind == "f"]
    return float(max([np.abs(x[np.isfinite(x)]).max(initial=0.0) for x in floats], default=0.0))


def _close_arrays(x: Value, y: Value, scale: float) -> bool:
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    x, y = _plain(x), _plain(y)
    if not jax.numpy.issubdtype(x.dtype, np.inexact) or x.dtype.itemsize == 0:
        return bool(x.tobytes() == y.tobytes())
    # bit for bit it is not: what is computed may be rounded elsewhere
    finfo: Any = jax.numpy.finfo  # without types
    eps = float(finfo(x.dtype).eps)
    tolerance = eps**0.5
    wide = np.complex128 if jax.numpy.issubdtype(x.dtype, np.complexfloating) else np.float64
    x, y = x.astype(wide), y.astype(wide)
    finite = np.abs(x[np.isfinite(x)])
    atol = max(tolerance * finite.max(initial=0.0), 1000 * eps * scale)  # of operands that cancel rounding is left
    return np.allclose(x, y, rtol=tolerance, atol=atol, equal_nan=True)
