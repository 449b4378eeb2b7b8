"""The kinds of operations. An operation is a pure function of flat arrays, with how it is run and how it is differentiated.

An `Op` is compiled. A `PythonOp` runs Python that may look at values. Each other kind is a subclass of one of these.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import jax
import jax.numpy as jnp
import numpy as np

from ..jaxprs import dependence, derivatives
from ..jaxprs.cache import Cache
from ..jaxprs.canonical import exact
from ..jaxprs.dependence import Links
from ..jaxprs.fence import NotFiniteInside, Ref, Tracer, trace_context, user_type
from ..jaxprs.types import Function, Positions, Value, Values
from . import active, dispatch, rules, runner
from .active import outside, tracing
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

    Args:
      name: of the operation, for users to read, and to look up registered gradients.
      fn: takes arrays and returns an array or a pytree of arrays. It can be traced, for derivatives, and does not print.
      call: computes the same as fast as possible, and prints. By default a runner compiles `fn`.
      key: equal keys make equal Ops, so that programs can be compared and cached. Without one an Op equals only itself.
      bound: the function or primitive and its static arguments, if the Op runs nothing else.
    """

    __slots__ = ("name", "fn", "call", "key", "bound", "prepared", "_hash", "__weakref__")
    in_trace = False  # whether a program that is traced keeps it for who looks at that, though it has no key

    def __init__(self, name: str, fn: Function, call: Function | None = None, key: Any = None, bound: Any = None):
        self.name: Final = name
        self.fn: Final = fn
        self.call: Final = call
        self.bound: Final[tuple[Any, dict[str, Any]] | None] = bound
        self.key: Final = self if key is None else key
        self._hash: Final = object.__hash__(self) if key is None else hash(key)
        self.prepared: Final[dict[Any, Function]] = {}  # what each runner runs for it

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Op) and self._hash == other._hash and self.key is not self and self.key == other.key
        )

    def __repr__(self) -> str:
        return f"Op({self.name})"

    def canonicalised(self) -> Op:
        """The Op that stands for it in programs."""
        return self

    def for_perturbed(self, perturbed: Positions) -> Op:
        """The Op that stands for it in a first derivative for which these inputs are perturbed."""
        return self

    @property
    def runs_python(self) -> bool:
        """Whether its derivative runs the user's Python, which may differ each time. Then nothing compiled is kept of it."""
        return rules.is_python(self.name)

    # ---- how it is run ----

    def traced(self, inputs: Values) -> Any:
        """Runs it while a program is traced. What is computed from shapes alone stays known, so that it can be a shape."""
        if inputs and all(map(is_size, inputs)):
            with jax.ensure_compile_time_eval():
                if all(map(_may_be_size, jax.tree.leaves(jax.eval_shape(self.fn, *inputs)))):
                    return runner.current.run(self, inputs)
        outputs = runner.current.run(self, [*map(_as_constant, inputs)])
        if (ran := tracing.ran) is not None:
            ran.append((self, inputs, outputs))
        return outputs

    # ---- how it is differentiated ----

    def links(self, entry: Entry, kinds: tuple[Any, ...], active_ins: Positions) -> Links:
        """The inputs on which the derivative of each output depends. `kinds`: of all inputs; `active_ins`: with gradient."""
        key = self, kinds, trace_context()
        links = _links.get(key, self._find_links, entry)
        return _links.get((*key, active_ins), self._find_links, entry, active_ins) if links.by_perturbation else links

    def _find_links(self, entry: Entry, perturbed: Positions | None = None) -> Links:
        with outside():
            return dependence.links(rules.with_rule(self.name, self.fn), entry.inputs, entry.outputs, perturbed)

    def residuals(self, outs: tuple[int, ...]) -> tuple[int, ...]:
        """Those of the slots `outs` of its outputs that its pullback reads."""
        return ()

    def pull_back(self, step: Step, inputs: Values, cotangents: dict[int, Any]) -> Sequence[Any]:
        """The cotangents (or None) of the step's active inputs. `cotangents`: of some of its outputs, by position."""
        derivative = pullback(self, step.active_ins, tuple(cotangents), step.perturbed)
        return self.run_derivative(derivative, (*inputs, *cotangents.values()))

    def push_forward(self, step: Step, inputs: Values, tangents: dict[int, Any]) -> Sequence[Any]:
        """The tangents (or None) of the step's active outputs. `tangents`: of some of its inputs, by position."""
        derivative = pushforward(self, tuple(tangents), step.active_outs, step.perturbed)
        return self.run_derivative(derivative, (*inputs, *tangents.values()))

    # Whether its derivative, when it is traced, may have the values of variables as constants.
    reads_variables: bool = False

    def derivative(self, name: str, run: Function, key: tuple[Any, ...]) -> Op:
        """Its pullback or pushforward, the operation that `run` is. `key`: which of these, then the Op, then of what."""
        return EagerOp(name, run, key=key) if self.runs_python else Op(name, run, key=key)

    def run_derivative(self, derivative: Op, inputs: Values) -> Sequence[Any]:
        results: Sequence[Any]
        if isinstance(derivative, PythonOp):
            results = dispatch.run_python(derivative, inputs, self.reads_variables)
        else:
            results = dispatch.run(derivative, inputs)
        return results


class PythonOp(Op):
    """An operation that runs Python, which may look at values. Its derivative is taken on recorded arrays, never compiled."""

    __slots__ = ("reads_variables",)
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
        self.reads_variables = reads_variables

    def traced(self, inputs: Values) -> Any:
        return runner.current.run(self, [*map(_as_constant, inputs)])

    def links(self, entry: Entry, kinds: tuple[Any, ...], active_ins: Positions) -> Links:
        return Links(dependence.everything(entry.inputs, entry.outputs), True)


class EagerOp(PythonOp):
    """Python that runs operations, which are run one by one: most of them will not come again, so compiling would not pay."""

    __slots__ = ()


def eagerly(fn: Function, /, *args: Any, **kwargs: Any) -> Any:
    """``fn(*args, **kwargs)``, run as an `EagerOp`."""
    name = getattr(fn, "__name__", "operations")
    return runner.current.run(EagerOp(name, functools.partial(fn, **kwargs) if kwargs else fn), args)


class PerturbationOp(PythonOp):
    """An operation without a key, whose custom rules may ask which inputs are perturbed (``symbolic_zeros``).

    So its links depend on that: `links_by` has them by the perturbed inputs, and those of its derivatives; the operations of one
    program share them.
    """

    __slots__ = ("links_by",)

    def __init__(
        self, name: str, fn: Function, call: Function | None, links_by: dict[Any, Any], reads_variables: bool = False
    ):
        super().__init__(name, fn, call, reads_variables=reads_variables)
        self.links_by = links_by

    def with_call(self, call: Function) -> PerturbationOp:
        """The operation that `call` runs, and that is this one otherwise."""
        return PerturbationOp(self.name, self.fn, call, self.links_by)

    def links(self, entry: Entry, kinds: tuple[Any, ...], active_ins: Positions) -> Links:
        if any([user_type(x) for x in (*entry.inputs, *entry.outputs)]):  # no jaxpr tells what these depend on
            return super().links(entry, kinds, active_ins)
        key = kinds, trace_context(), active_ins, rules.has_rule(self.name)
        links = self.links_by.get(key)
        if links is None:
            links = self.links_by[key] = self._find_links(entry, active_ins)
        return links

    def derivative(self, name: str, run: Function, key: tuple[Any, ...]) -> Op:
        return PerturbationDerivativeOp(name, run, run, self._links_of(key))

    def _links_of(self, key: tuple[Any, ...]) -> dict[Any, Any]:
        links_by: dict[Any, Any] = self.links_by.setdefault((key[0], *key[2:]), {})
        return links_by


class ConnectedOp(PerturbationOp):
    """An operation with a rule for its pullback alone, which connects everything: it is not traced to find that."""

    __slots__ = ()

    def links(self, entry: Entry, kinds: tuple[Any, ...], active_ins: Positions) -> Links:
        return PythonOp.links(self, entry, kinds, active_ins)


class PerturbationDerivativeOp(PerturbationOp):
    """A derivative of a `PerturbationOp`, which is run as an `EagerOp` is."""

    __slots__ = ()


class JittedOp(PerturbationOp):
    """A jitted function whose program has no key. JAX keeps what it compiles of the program and of its derivative.

    `linearized`: what a runner keeps of its pullback with respect to certain inputs, by these; None where it found none.
    """

    __slots__ = ("linearized",)

    def __init__(
        self, name: str, fn: Function, call: Function | None, links_by: dict[Any, Any], linearized: dict[Any, Any]
    ):
        super().__init__(name, fn, call, links_by)
        self.linearized = linearized

    def with_call(self, call: Function) -> JittedOp:
        return JittedOp(self.name, self.fn, call, self.links_by, self.linearized)

    def derivative(self, name: str, run: Function, key: tuple[Any, ...]) -> Op:
        return PerturbationOp(name, run, run, self._links_of(key))


_links: Cache[Links] = Cache(CACHED_LINKS)
depends_on_rules(_links, lambda key: key[:1])


# ---- values ---------------------------------------------------------------------------------------------------------


def is_ref(x: Value) -> bool:
    """Whether `x` is a ``jax.Ref``."""
    return isinstance(x, Ref)


def is_size(x: Value) -> bool:
    """Whether `x` is known and could be a shape or a part of one: a few integers, or booleans that compare such."""
    return not isinstance(x, Tracer) and (isinstance(x, int) or _may_be_size(x))


def _may_be_size(x: Value) -> bool:
    kind = getattr(getattr(x, "dtype", None), "kind", None)  # the dtype of random keys has no `kind`
    return kind in ("i", "b") and math.prod(x.shape) <= MOST_SIZES


def _as_constant(x: Value) -> Value:
    """`x`, as a NumPy array if it is a size: JAX makes a constant of it, but an input of a ``jax.Array``."""
    return np.asarray(x) if getattr(x, "weak_type", True) is False and is_size(x) else x


# ---- derivatives as operations --------------------------------------------------------------------------------------
# `pullback` and `pushforward` make the operation that a derivative is; an Op's methods `pull_back` and `push_forward` run it in a
# sweep. An Op whose derivative is no operation of JAX's, such as a `PullbackOp`, has methods of its own and neither operation.


def _cached_by_op(make: Any) -> Any:
    """Caches what `make(op, ...)` returns, unless the op runs Python: such an op belongs to one call, and holds its arrays."""
    derivatives_of: Cache[Op] = Cache(CACHED_OPS)

    @functools.wraps(make)
    def cached(op: Op, *args: Any) -> Op:
        return make(op, *args) if op.runs_python else derivatives_of.get((op, *args), make, op, *args)

    depends_on_rules(derivatives_of, lambda key: key[:1])
    return cached


@_cached_by_op
def pullback(op: Op, active_ins: Positions, active_outs: Positions, perturbed: Positions = ()) -> Op:
    """The operation (inputs of `op`, cotangents of its active outputs) -> cotangents of its active inputs.

    If `perturbed` is given, the rules of `op` are told that these inputs are perturbed; else the active ones.
    """
    return _derivative(op, "pullback", derivatives.pull_back, active_ins, active_outs, perturbed)


@_cached_by_op
def pushforward(op: Op, active_ins: Positions, active_outs: Positions, perturbed: Positions = ()) -> Op:
    """The operation (inputs of `op`, tangents of its active inputs) -> tangents of its active outputs.

    If `perturbed` is given, the others of these inputs have tangents of zeros that are not symbolic.
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
        except NotFiniteInside as error:  # of a function inside, which JAX runs anew to find the operation
            raise FloatingPointError(f"invalid value ({error.args[1]}) in the derivative of {op.name}") from None

    run.__name__ = name = f"{op.name}_{kind}"  # as JAX's programs show it
    key = kind, op, active_ins, active_outs, perturbed
    return op.derivative(name, run, key)


def _explained(op: Op, error: Exception) -> Exception:
    if not any(word in str(error) for word in ("ifferentiation", "JVP", "autodiff")):
        return error
    reason = str(error).split(". ")[0]
    return LookupError(
        f"gradient registry has no entry for: {op.name}. JAX cannot differentiate it ({reason}). Write it with operations "
        "that have a gradient, or give it one (tapejax.custom_gradient, tapejax.RegisterGradient)."
    )


# ---- the operation of a function and its static arguments -----------------------------------------------------------

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
    run: Any = fn
    if static or name != getattr(fn, "__name__", name):
        run = functools.partial(fn, **static)
        run.__name__ = name  # as JAX's programs show it
    kind: type[Op] = getattr(fn, "kind_of_op", Op)
    return kind(name, run, key=key, bound=(fn, static))


active.copy_op = op_of(jnp.copy, {})


def apply(fn: Function, *arrays: Any, **static: Any) -> Any:
    """Runs ``fn(*arrays, **static)`` as one compiled operation and records it as one entry.

    `fn` must be the same object at each call, or it is compiled each time; the values of `static` must have an exact key.
    """
    return dispatch.run(op_of(fn, static), arrays)
