"""Shadow mode: whatever is kept and used again is made anew as well, and the two are compared.

Two programs are compared as they are written (`difference`), two operations also in what they compute: deliberately in another
way than by the keys in `jaxprs/canonical.py`, which this watches over.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any

import jax
import numpy as np
from jax import jit

from ..execution.pairs import Fused
from ..execution.residuals import KeepingOp
from ..execution.schedule import Sightings
from ..jaxprs import cache
from ..jaxprs.cache import NotKept
from ..jaxprs.canonical import open_jaxpr
from ..jaxprs.fence import ClosedJaxpr, Jaxpr, Literal, Tracer, eval_jaxpr, jaxpr_as_fun
from ..jaxprs.threads import Context
from ..jaxprs.types import Function, JaxProgram, Value, Values
from ..places import caller, line_of
from ..tape import runner
from ..tape.operation import Op, PythonOp
from ..tape.primitives import TracedOp
from ..tape.trace import StagedCall
from .recognition import ProgramOp
from .trial import KeptNumber


class ShadowError(AssertionError):
    """In shadow mode: what was kept is not what would be made now."""


class _InComparison(Context):
    now = False


_comparing = _InComparison()


class Comparing(cache.Shadow):
    """Raises ShadowError where the two differ."""

    def reused(self, key: Hashable, kept: Any, make: Function, args: tuple[Any, ...]) -> Any:
        if _comparing.now:  # what a comparison looks up itself is not compared again
            return kept
        fresh = make(*args)
        return compare(kept, fresh.value if isinstance(fresh, NotKept) else fresh, key)

    def ran(self, fn: Function, compiled: Function, args: Values, results: Any) -> None:
        _compare_runs(fn, compiled, args, results)

    def speculated(self, name: str, results: Any, run: Callable[[], Any]) -> None:
        _compare_ahead(name, results, run)


def switch(on: bool) -> None:
    """Turns shadow mode on or off, for the whole process. Off it costs nothing."""
    cache.shadow = Comparing() if on else None


def _require(same: bool, name: str, what: str) -> None:
    """Raises ShadowError, for the operation `name` on the present line of the user's code, unless it is the `same`."""
    if not same:
        line = line_of(caller())
        where = f" ({line.file}:{line.number}: {line.text})" if line else ""
        raise ShadowError(f"{name}{where}: what was kept differs from what is made now. {what}")


# ---- how two things that were kept under one key are compared -------------------------------------------------------


@functools.singledispatch
def compare(kept: Any, fresh: Any, key: Any) -> Any:
    """What is handed out for `key`, under which `kept` was kept and `fresh` was made now.

    Raises:
      ShadowError: the two differ.
    """
    first = key[0] if isinstance(key, tuple) and key else key
    _require(kept == fresh, getattr(first, "name", type(key).__name__), f"{kept!r} was kept, now it is {fresh!r}.")
    return kept


@compare.register(Fused)  # how often pullbacks and
@compare.register(Sightings)  # programs were seen
@compare.register(KeptNumber)  # to compare their arrays would be to compare the key
def _(kept: Any, fresh: Any, key: Any) -> Any:
    return kept


@compare.register
def _(kept: Op, fresh: Op, key: Any) -> Op:
    """An Op that runs `kept`, and raises ShadowError where `fresh` would compute something else."""
    if isinstance(kept, PythonOp) or isinstance(fresh, PythonOp):
        _require(isinstance(kept, PythonOp) and isinstance(fresh, PythonOp), kept.name, "It runs Python.")
        return kept
    return Op(kept.name, kept.fn, functools.partial(_call_both, kept, fresh), kept.key, kept.bound)


@compare.register
def _(kept: KeepingOp, fresh: Op, key: Any) -> KeepingOp:
    _require(isinstance(fresh, KeepingOp), kept.name, "Whether its residuals are kept.")
    _compare_programs(kept.program, fresh.program, kept.name)  # type: ignore[attr-defined]
    return kept


@compare.register
def _(kept: ProgramOp, fresh: ProgramOp, key: Any) -> ProgramOp:
    bind = functools.partial(key[0].bind, **fresh.params)
    return fresh._replace(
        op=compare(kept.op, Op(fresh.op.name, bind, functools.partial(_run, fresh.op)), key), arrays=()
    )


@compare.register
def _(kept: StagedCall, fresh: StagedCall, key: Any) -> StagedCall:
    _require(kept.op.name == fresh.op.name, fresh.op.name, kept.op.name)
    one, other = kept.op, fresh.op
    _require(isinstance(one, TracedOp) and isinstance(other, TracedOp), fresh.op.name, "Whether it can be traced.")
    _compare_programs(one.staged.jaxpr, other.staged.jaxpr, fresh.op.name)  # type: ignore[attr-defined]
    return fresh  # made of functions that can be called once


@compare.register(Jaxpr)
@compare.register(ClosedJaxpr)
def _(kept: JaxProgram, fresh: JaxProgram, key: Any) -> JaxProgram:
    _compare_programs(kept, fresh, open_jaxpr(fresh).debug_info.func_name)
    return kept


def _compare_programs(kept: JaxProgram, fresh: JaxProgram, name: str) -> None:
    differs = difference(kept, fresh)
    _require(differs is None, name, differs or "")


def _run(op: Op, *inputs: Any) -> Any:
    return runner.current.run(op, inputs)


def _call_both(kept: Op, fresh: Op, *inputs: Any) -> Any:
    with _comparing.setting(now=True):
        return call_both(kept.name, functools.partial(_run, kept), kept.fn, fresh.fn, inputs)


def _compare_ahead(name: str, results: Any, run: Callable[[], Any]) -> None:
    """Raises ShadowError where a plan gave something else than `run` gives."""
    results, expected = ([x for x in jax.tree.leaves(values) if x is not None] for values in (results, run()))
    same = close(results, expected, size_of(results)) and [x.aval for x in results] == [x.aval for x in expected]
    _require(same, name, f"Ahead of it was computed {results}, without a plan it computes {expected}.")


def _compare_runs(fn: Function, compiled: Function, args: Values, results: Any) -> None:
    """Raises ShadowError where the compiled program computes something else than the `results` without it."""
    results, expected = jax.tree.leaves(results), jax.tree.leaves(compiled(*args))
    # one that is not read may have been donated
    held = [x for x in args if not (isinstance(x, jax.Array) and x.is_deleted())]
    numbers = [x for x in held if not (hasattr(x, "dtype") and _is_key(x))]
    same = close(results, expected, size_of(numbers)) and [x.aval for x in results] == [x.aval for x in expected]
    name = getattr(fn, "__name__", "operation")
    _require(same, name, f"Before it was compiled it computed {results}, compiled it computes {expected}.")


# ---- programs, as they are written ----------------------------------------------------------------------------------

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
            if differs := _different_parameter(x.params[name], y.params[name]):
                return f"{name} of {x.primitive}: {differs}"
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


# ---- operations, by what they compute -------------------------------------------------------------------------------


def call_both(name: str, call: Function, kept: Function, fresh: Function, inputs: Values) -> Any:
    """``call(*inputs)``, where `kept` is the function behind it, if `fresh` is the same program and computes the same.

    Raises:
      ShadowError: it is another program, or computes something else.
    """
    program = _traced(fresh, inputs)
    differs = difference(_traced(kept, inputs), program)
    _require(differs is None, name, differs or "")
    outputs = call(*inputs)
    results = jax.tree.leaves(outputs)
    arrays = [x for x in (*inputs, *results) if isinstance(x, jax.Array)]
    unknown = any([isinstance(x, Tracer) or x.is_deleted() for x in arrays])  # traced, or donated
    if unknown or program.effects:
        return outputs
    scale = size_of([x for x in inputs if isinstance(x, jax.Array) and not _is_key(x)])
    again = eval_jaxpr(program.jaxpr, program.consts, *inputs)
    again = [x if hasattr(x, "dtype") else jax.numpy.asarray(x) for x in again]  # a number that it only gives back
    if not close(results, again, scale):
        # operation by operation it may lose other digits than as one program
        again = jit(jaxpr_as_fun(program))(*inputs)
        _require(close(results, again, scale), name, f"It computed {results}, now it computes {again}.")
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
    if np.shape(x) != np.shape(y) or x.dtype != y.dtype:  # a literal of JAX's has a dtype alone
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
