"""The kinds of operations: each a pure function of flat arrays, how it is run, and how it is differentiated.

An `Op` is compiled. A `PythonOp` runs Python that may look at values. The other kinds say what differs for them; each is one
class, and overrides what its docstring names.
"""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ..jaxprs import dependence, derivatives
from ..jaxprs.cache import Cache
from ..jaxprs.canonical import exact
from ..jaxprs.dependence import Links, has_inexact_dtype, is_inexact, is_inexact_kind
from ..jaxprs.fence import Ref, Tracer, trace_context, user_type
from ..jaxprs.types import Function, Positions, Value, Values
from . import dispatch, rules, runner
from .active import by_operations, outside
from .rules import depends_on_rules

if TYPE_CHECKING:
    from .recording import Entry
    from .slicing import Step

CACHED_OPS = 4096
CACHED_LINKS = 8192
# Integers up to this many stay known while a program is traced.
MOST_SIZES = 64


class Op:
    """A pure function of flat arrays, compiled.

    `fn(*arrays)` returns an array or a pytree of arrays and may be traced, for derivatives: it prints nothing. `call` does the
    same at full speed, and prints what there is to print. Two Ops are equal when their `key` is, so that programs made of them
    can be compared and cached; without a key an Op equals nothing but itself. `bound` is the function or primitive that it runs
    and the static arguments, where it is no more than that.
    """

    __slots__ = ("name", "fn", "call", "key", "bound", "_hash", "__weakref__")

    def __init__(self, name: str, fn: Function, call: Function | None = None, key: Any = None, bound: Any = None):
        self.name = name
        self.fn = fn
        self.call = call or runner.current.compiled(fn, functools.partial(_use, weakref.ref(self)))
        self.bound: tuple[Any, dict[str, Any]] | None = bound
        self.key = self if key is None else key
        self._hash = object.__hash__(self) if key is None else hash(key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Op) and self._hash == other._hash and self.key is not self and self.key == other.key
        )

    def __repr__(self) -> str:
        return f"Op({self.name})"

    def canonicalised(self) -> Op:
        """The Op under which it is known from program to program."""
        return self

    @property
    def runs_python(self) -> bool:
        """Whether its derivative runs Python of the user's, which may do something else each time: it is not kept."""
        return rules.is_python(self.name)

    # ---- how it is run ----

    def arrays(self, inputs: Values) -> Sequence[Any] | None:
        """What `call` is given for `inputs`; None where they stay as they are."""
        return runner.current.arrays(inputs)

    def traced(self, inputs: Values) -> Any:
        """`call` where a program is traced. What is computed of shapes alone is known there, and may be a shape again."""
        if inputs and all(map(is_size, inputs)):
            with jax.ensure_compile_time_eval():
                if all(map(_may_be_size, jax.tree.leaves(jax.eval_shape(self.fn, *inputs)))):
                    return self.call(*inputs)
        return self.call(*map(_as_constant, inputs))

    # ---- how it is differentiated ----

    def links(self, entry: Entry, kinds: tuple[Any, ...], active_ins: Positions) -> Links:
        """Which inputs, of these `kinds`, each output depends on with its derivative; of the entry some are active."""
        key = self, kinds, trace_context()
        found = _links.get(key, self._find_links, entry)
        return _links.get((*key, active_ins), self._find_links, entry, active_ins) if found.told else found

    def _find_links(self, entry: Entry, perturbed: Positions | None = None) -> Links:
        with outside():
            return dependence.links(rules.with_rule(self.name, self.fn), entry.inputs, entry.outputs, perturbed)

    def residuals(self, outs: tuple[int, ...]) -> tuple[int, ...]:
        """Of the slots of its outputs those that its pullback reads."""
        return ()

    def pull_back(self, step: Step, inputs: Values, cotangents: dict[int, Any]) -> Sequence[Any]:
        """The cotangents of the step's active inputs (None for none), from those of some of its outputs, by position."""
        derivative = pullback(self, step.active_ins, tuple(cotangents), step.perturbed)
        return self.run_derivative(derivative, (*inputs, *cotangents.values()))

    def push_forward(self, step: Step, inputs: Values, tangents: dict[int, Any]) -> Sequence[Any]:
        """The tangents of the step's active outputs (None for none), from those of some of its inputs, by position."""
        derivative = pushforward(self, tuple(tangents), step.active_outs, step.perturbed)
        return self.run_derivative(derivative, (*inputs, *tangents.values()))

    def runs_derivative(self, fn: Function) -> Function:
        """What runs the derivative `fn` where that runs Python."""
        return functools.partial(by_operations, fn)

    def run_derivative(self, derivative: Op, inputs: Values) -> Sequence[Any]:
        found: Sequence[Any]
        if isinstance(derivative, PythonOp):
            found = dispatch.run_python(derivative, inputs, self.reads_variables)
        else:
            found = dispatch.run(derivative, inputs)
        return found

    @property
    def reads_variables(self) -> bool:
        """Whether what its derivative traces may have the values of variables as constants."""
        return False


def _use(found: Any, compiled: Function) -> None:
    op = found()
    if op is not None:
        op.call = compiled


class JointOp(Op):
    """One whose results are connected together, as a `function`'s are: what reaches one has a gradient, be it zero, for all."""

    __slots__ = ()

    def _find_links(self, entry: Entry, perturbed: Positions | None = None) -> Links:
        found = super()._find_links(entry, perturbed)
        union: frozenset[int] = frozenset().union(*found.by)
        return found._replace(by=tuple([union if has_inexact_dtype(x) else frozenset() for x in entry.outputs]))


class ZeroGradientOp(Op):
    """One whose derivative is zero, and which is connected all the same."""

    __slots__ = ()

    def traced(self, inputs: Values) -> Any:
        return rules.connected(super().traced(inputs), inputs)

    def _find_links(self, entry: Entry, perturbed: Positions | None = None) -> Links:
        inexact = [i for i, x in enumerate(entry.inputs) if has_inexact_dtype(x)]
        return Links(dependence.everything(inexact, [*map(has_inexact_dtype, entry.outputs)]), False)


class PythonOp(Op):
    """An operation that runs Python which may look at values: its derivative is taken on recorded arrays, never compiled."""

    __slots__ = ("_reads_variables",)
    runs_python = True

    def __init__(
        self,
        name: str,
        fn: Function,
        call: Function | None = None,
        key: Any = None,
        bound: Any = None,
        reads_variables: bool = False,
    ):
        super().__init__(name, fn, call or fn, key, bound)
        self._reads_variables = reads_variables

    @property
    def reads_variables(self) -> bool:
        return self._reads_variables

    def arrays(self, inputs: Values) -> Sequence[Any] | None:
        return None

    def traced(self, inputs: Values) -> Any:
        return self.call(*map(_as_constant, inputs))

    def links(self, entry: Entry, kinds: tuple[Any, ...], active_ins: Positions) -> Links:
        inputs = [i for i, x in enumerate(entry.inputs) if may_carry(x)]
        return Links(dependence.everything(inputs, [*map(may_carry, entry.outputs)]), True)


class ConstantOp(PythonOp):
    """One whose outputs JAX's calculus does not connect to its inputs; a gradient registered for its name does."""

    __slots__ = ()

    def links(self, entry: Entry, kinds: tuple[Any, ...], active_ins: Positions) -> Links:
        if rules.has_rule(self.name):
            return super().links(entry, kinds, active_ins)
        return Links((frozenset(),) * len(entry.outputs), True)


class ToldOp(PythonOp):
    """One with rules that may be told which inputs are perturbed, and do otherwise for each choice.

    `known` has what was found of it, for each choice.
    """

    __slots__ = ("known",)

    def __init__(self, name: str, fn: Function, call: Function, known: dict[Any, Any], reads_variables: bool = False):
        super().__init__(name, fn, call, reads_variables=reads_variables)
        self.known = known

    def links(self, entry: Entry, kinds: tuple[Any, ...], active_ins: Positions) -> Links:
        key = kinds, trace_context(), active_ins, rules.has_rule(self.name)
        if key not in self.known:
            self.known[key] = self._find_links(entry, active_ins)
        found: Links = self.known[key]
        return found


class JittedOp(ToldOp):
    """A jitted function's program that nothing but itself equals: JAX keeps what it compiles of it and of its derivative."""

    __slots__ = ()

    def runs_derivative(self, fn: Function) -> Function:
        return fn


_links: Cache[Links] = Cache(CACHED_LINKS)
depends_on_rules(_links, lambda key: key[:1])


# ---- values ---------------------------------------------------------------------------------------------------------


def is_ref(x: Value) -> bool:
    """Whether `x` is a ``jax.Ref``."""
    return isinstance(x, Ref)


def may_carry(x: Value) -> bool:
    return is_inexact(x) or is_ref(x) or is_inexact_kind(user_type(x))


def is_size(x: Value) -> bool:
    """Whether `x` is known and could be a shape, or part of one: a few integers (or truths, that compare them)."""
    return not isinstance(x, Tracer) and (isinstance(x, int) or _may_be_size(x))


def _may_be_size(x: Value) -> bool:
    kind = getattr(getattr(x, "dtype", None), "kind", None)  # keys of random numbers have a dtype without
    return kind in ("i", "b") and math.prod(x.shape) <= MOST_SIZES


def _as_constant(x: Value) -> Value:
    """`x`, as a NumPy array if it is a size: that is part of a program; a jax.Array would be an input of it."""
    return np.asarray(x) if getattr(x, "weak_type", True) is False and is_size(x) else x


# ---- derivatives as operations --------------------------------------------------------------------------------------


def _cached_by_op(make: Any) -> Any:
    """Keeps what `make(op, ...)` gives, but for an op that runs Python: that is one call's own, with what it closes over."""
    kept: Cache[Op] = Cache(CACHED_OPS)

    @functools.wraps(make)
    def cached(op: Op, *args: Any) -> Op:
        return make(op, *args) if op.runs_python else kept.get((op, *args), make, op, *args)

    depends_on_rules(kept, lambda key: key[:1])
    return cached


@_cached_by_op
def pullback(op: Op, active_ins: Positions, active_outs: Positions, perturbed: Positions = ()) -> Op:
    """The operation (inputs of `op`, cotangents of its active outputs) -> cotangents of its active inputs.

    Of an `op` whose rules may be told, it is differentiated with respect to all inputs that are `perturbed`.
    """
    return _derivative(op, "pullback", derivatives.pull_back, active_ins, active_outs, perturbed)


@_cached_by_op
def pushforward(op: Op, active_ins: Positions, active_outs: Positions, perturbed: Positions = ()) -> Op:
    """The operation (inputs of `op`, tangents of its active inputs) -> tangents of its active outputs.

    Of an `op` whose rules may be told, the others that are `perturbed` have zeros that are not symbolic.
    """
    return _derivative(op, "pushforward", derivatives.push_forward, active_ins, active_outs, perturbed)


def _derivative(
    op: Op, kind: str, take: Function, active_ins: Positions, active_outs: Positions, perturbed: Positions
) -> Op:
    def run(*flat: Any) -> Any:
        try:
            return take(rules.with_rule(op.name, op.fn), active_ins, active_outs, perturbed or active_ins, *flat)
        except (NotImplementedError, ValueError) as error:
            raise _explained(op, error) from error

    run.__name__ = name = f"{op.name}_{kind}"  # as JAX's programs show it
    key = kind, op, active_ins, active_outs, perturbed
    return PythonOp(name, run, op.runs_derivative(run), key) if op.runs_python else Op(name, run, key=key)


def _explained(op: Op, error: Exception) -> Exception:
    if not any(word in str(error) for word in ("ifferentiation", "JVP", "autodiff")):
        return error
    reason = str(error).split(". ")[0]
    return LookupError(
        f"gradient registry has no entry for: {op.name}. JAX cannot differentiate it ({reason}). Write it with operations "
        "that have a gradient, or give it one (tapejax.custom_gradient, tapejax.RegisterGradient)."
    )


# ---- of a function and its static arguments -------------------------------------------------------------------------

_function_ops: Cache[Op] = Cache(CACHED_OPS)


def op_of(fn: Function, static: dict[str, Any]) -> Op:
    """The Op that runs ``fn(*arrays, **static)``, compiled.

    Raises:
      UncacheableError: a value in `static` has no exact key.
    """
    key = (fn, *[(name, exact(value)) for name, value in static.items()]) if static else fn
    return _function_ops.get(key, _make_function_op, fn, static, key)


def _make_function_op(fn: Function, static: dict[str, Any], key: Any) -> Op:
    name = getattr(fn, "__name__", repr(fn)).strip("_")
    bound: Any = fn
    if static or name != getattr(fn, "__name__", name):
        bound = functools.partial(fn, **static)
        bound.__name__ = name  # as JAX's programs show it
    kind = ZeroGradientOp if fn in rules.zero_gradients else Op
    return kind(name, bound, key=key, bound=(fn, static))


def apply(fn: Function, *arrays: Any, **static: Any) -> Any:
    """Runs ``fn(*arrays, **static)`` as one compiled operation and records it as one entry.

    `fn` must be a stable function (compiled once per `fn` and `static`); `static` values must have an exact key.
    """
    return dispatch.run(op_of(fn, static), arrays)
