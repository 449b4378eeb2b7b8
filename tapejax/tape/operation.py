"""What one recorded operation does: a pure function of flat arrays, how it is run, and how it is recognised.

An `Op` is made of a function and its static arguments (`op_of`), of one of JAX's primitives and its parameters
(`primitive_op`), or of a call that was traced into a jaxpr (`Staged`). Those that can be recognised are kept in bounded
tables, under keys from `canonical`: each holds a compiled function or a jaxpr, never an array.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..execution.trial import Trial
from ..jaxprs import cache, contents, interning, lifting, prints
from ..jaxprs.cache import Cache, Once
from ..jaxprs.canonical import JAXPR_TYPES, Identity, UncacheableError, exact, snapshot
from ..jaxprs.fence import EvalTrace, Ref, Tracer, current_trace, eval_jaxpr, jaxpr_as_fun, runs_compiled
from ..jaxprs.types import Function, JaxProgram, Params, Primitive, Value, Values

CACHED_OPS = 4096

# From the cotangents of all outputs to those of the inputs; None for one that has none.
Pullback = Callable[[Sequence[Any]], Sequence[Any]]


class Op:
    """What an entry does: a pure function of flat arrays, and how to run it now.

    `fn(*arrays)` returns an array or a pytree of arrays and may be traced, for derivatives: it prints nothing. `call` does the
    same at full speed, and prints what there is to print. Two Ops are
    equal when their `key` is, so that programs made of them can be compared and cached; without a key an Op equals nothing but
    itself. `bound` is the function or primitive that it runs and the static arguments, where it is no more than that.
    """

    __slots__ = ("name", "fn", "call", "key", "bound", "_hash", "__weakref__")
    # What the kinds below say otherwise.
    eager = False
    pull: Pullback | None = None
    results = 0
    outputs = 0  # where residuals follow them: how many there are
    reads = False  # whether what its derivative traces may have the values of variables as constants
    staged: Staged | None = None
    jitted = False  # whether JAX keeps what it compiles of it and its derivative, for nothing but the program itself

    def __init__(self, name: str, fn: Function, call: Function | None = None, key: Any = None, bound: Any = None):
        self.name = name
        self.fn = fn
        self.call = call or Trial(fn, functools.partial(_use_compiled, weakref.ref(self)))
        self.bound: tuple[Any, dict[str, Any]] | None = bound
        self.key = self if key is None else key
        self._hash = object.__hash__(self) if key is None else hash(key)

    def canonicalised(self) -> Op:
        """The Op under which it is known from program to program."""
        return self if self.staged is None else self.staged.op()

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Op) and self._hash == other._hash and self.key is not self and self.key == other.key
        )

    def __repr__(self) -> str:
        return f"Op({self.name})"


def _use_compiled(found: Any, compiled: Function) -> None:
    op = found()
    if op is not None:
        op.call = compiled


class PythonOp(Op):
    """An operation that runs Python which may look at values: its derivative is taken on recorded arrays, never compiled."""

    __slots__ = ("reads",)
    eager = True

    def __init__(self, name: str, fn: Function, call: Function | None = None, key: Any = None, bound: Any = None):
        super().__init__(name, fn, call or fn, key, bound)
        self.reads = False


class ConstantOp(PythonOp):
    """One whose outputs JAX's calculus does not connect to its inputs; a gradient registered for its name does."""

    __slots__ = ()


class ToldOp(PythonOp):
    """One with rules that may be told which inputs are perturbed, and do otherwise for each choice.

    `links` has what was found of it, for each choice.
    """

    __slots__ = ("links",)

    def __init__(self, name: str, fn: Function, call: Function, links: dict[Any, Any]):
        super().__init__(name, fn, call)
        self.links = links


class PullbackOp(PythonOp):
    """One that brings its own `pull`, for this one call.

    Its outputs are copies of the first `results` of its inputs, to which no gradient goes back.
    """

    __slots__ = ("pull", "results")

    def __init__(self, name: str, fn: Function, pull: Pullback, call: Function | None = None, results: int = 0):
        super().__init__(name, fn, call)
        self.pull = pull
        self.results = results


class StagedOp(Op):
    """A call that was just traced.

    Telling custom rules apart traces them, which JAX allows only once the call that was recorded has returned: until then
    nothing but itself is its equal.
    """

    __slots__ = ("staged",)
    staged: Staged

    def __init__(self, staged: Staged, call: Function | None):
        super().__init__(staged.name, jaxpr_as_fun(staged.jaxpr), call)
        self.staged = staged


class JittedOp(ToldOp):
    """A jitted function's program that nothing but itself equals."""

    __slots__ = ()
    jitted = True


# ---- of a function and its static arguments ---------------------------------------------------------------------------

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
    return Op(name, bound, key=key, bound=(fn, static))


# ---- of a primitive and its parameters --------------------------------------------------------------------------------


def primitive_op(primitive: Primitive, params: Params, args: Values) -> tuple[Op, Sequence[Any]]:
    """The Op for a primitive with its parameters, and its inputs: what its jaxprs close over, then `args`."""
    if "jaxpr" not in params and not contents.among(params):
        if primitive.name == "device_put" and _moves(params["devices"], args):
            return _uncacheable(primitive, params), args
        return _bind_op(primitive, params), args
    # `jnp` functions bring the same objects every time
    key = primitive, *map(id, params.values())
    found = _program_ops.get(key, _make_program_op, primitive, params, args)
    for name, position, program in found.programs:
        value = params[name]
        if program() is not (value if position is None else value[position]):  # another one is where that was
            _program_ops.discard(key)
            return primitive_op(primitive, params, args)
    return found.op, (*found.arrays, *args) if found.arrays else args


def _moves(devices: Sequence[Any], args: Values) -> bool:
    """Whether a ``device_put`` of `args` moves any of them to other devices than it is on, which a compiled program cannot."""
    for device, x in zip(devices, args, strict=True):
        place = getattr(device, "sharding", device)
        if isinstance(place, jax.Device):
            place = jax.sharding.SingleDeviceSharding(place)
        here = None if isinstance(x, Tracer) else getattr(x, "sharding", None)
        if isinstance(place, jax.sharding.Sharding) and here is not None and place.device_set != here.device_set:
            return True
    return False


def _uncacheable(primitive: Primitive, params: Params) -> PythonOp:
    # It is not recognised: nothing is compiled for it here. JAX keeps what it makes of the program with that object.
    name, fn = params.get("name") or primitive.name, _silent(primitive, params)
    call = functools.partial(primitive.bind, **params)
    if not contents.among(params):
        return PythonOp(name, fn, call)
    links: dict[Any, Any] = {}
    if primitive.name in contents.JIT and contents.is_plain_jit(params) and not params["jaxpr"].effects:
        links = _links_of.get(params["jaxpr"], links)
        if not links:
            links["remade"] = not _is_first(name, params["jaxpr"])
            _links_of[params["jaxpr"]] = links
        if not links["remade"]:
            return JittedOp(name, fn, call, links)
    return ToldOp(name, fn, _forward_call(primitive, params, call), links)


_links_of: weakref.WeakKeyDictionary[JaxProgram, dict[Any, Any]] = weakref.WeakKeyDictionary()
_likes: Cache[bool] = Cache(CACHED_OPS)
cache.on_clear(_links_of.clear)


def _is_first(name: str, jaxpr: JaxProgram) -> bool:
    """Whether there was no like of it. What is like another has most likely been made anew, and will not come back."""
    like = name, *jaxpr.in_avals, *jaxpr.out_avals, len(contents.open_jaxpr(jaxpr).eqns)
    first = _likes.peek(like) is None
    _likes.get(like, bool, True)
    return first


def _forward_call(primitive: Primitive, params: Params, itself: Function) -> Function:
    """What runs a program whose rules have no key: on values they do not matter, under a transformation it is `itself`."""
    same = {name: interning.intern_forward(value) for name, value in params.items()}
    if interning.is_uncacheable(same) or contents.constants_of(same):
        return itself
    op = _bind_op(primitive, same)

    def call(*inputs: Any) -> Any:
        return (op.call if type(current_trace()) is EvalTrace else itself)(*inputs)

    return itself if op.eager else call


def _silent(primitive: Primitive, params: Params) -> Function:
    return functools.partial(primitive.bind, **{name: prints.without_prints(value) for name, value in params.items()})


_bind_ops: Cache[Op] = Cache(CACHED_OPS)


def _bind_op(primitive: Primitive, params: Params) -> Op:
    try:
        key = primitive, *[(name, interning.interned_key(value)) for name, value in params.items()]
    except UncacheableError:
        return _uncacheable(primitive, params)
    return _bind_ops.get(key, _make_bind_op, primitive, params, key)


def _make_bind_op(primitive: Primitive, params: Params, key: Any) -> Op:
    params = {name: snapshot(value) for name, value in params.items()}
    fn, itself = _silent(primitive, params), functools.partial(primitive.bind, **params)
    # Binding a jitted function anew costs 50 microseconds; one compiled from here has JAX's fast path, but would not
    # keep what the user's jit says of donation and shardings.
    plain = contents.is_plain_jit(params) if primitive.name in contents.JIT else runs_compiled(primitive)
    call: Function | None = None if plain else itself
    if plain and any(map(contents.prints, contents.jaxprs_in(params))):
        call = Trial(itself)
    kind = Op if contents.primitive_compiles(primitive, params) else PythonOp
    return kind(params.get("name") or primitive.name, fn, call, key, (primitive, params))


class ProgramOp(NamedTuple):
    """The Op of a primitive with jaxprs among its parameters, the arrays that they close over, and the parameters.

    Where it is kept, the jaxprs are not: they go with the function that they were made of.
    """

    op: Op
    arrays: Iterable[Any]
    params: Params
    programs: Sequence[tuple[str, int | None, Callable[[], Any]]]  # which parameter, where in it, and a weak reference


# By the identity of all parameters: only what comes a second time is kept. Where functions are made all the time, their
# programs never do.
_program_ops: Cache[ProgramOp] = Cache(CACHED_OPS // 2)


def _make_program_op(primitive: Primitive, params: Params, args: Values) -> ProgramOp | Once:
    arrays = contents.constants_of(params)
    again = not arrays and all(map(interning.is_known, contents.jaxprs_in(params)))
    op = _op_of_programs(primitive, params, args, arrays)
    kept = again and not op.eager
    programs = [
        (name, position, weakref.ref(x))
        for name, value in params.items()
        for position, x in (enumerate(value) if isinstance(value, (tuple, list)) else [(None, value)])
        if isinstance(x, JAXPR_TYPES)
    ]
    if kept and not cache.shadowing:
        held = {name for name, _, _ in programs}
        params = {name: x for name, x in params.items() if name not in held}
    found = ProgramOp(op, arrays.values(), params, programs)
    return found if kept else Once(found)


def ops_of(programs: Iterable[JaxProgram]) -> list[Op]:
    """The Ops that run one of `programs`, which are representatives. They are forgotten here."""
    gone = set(map(id, programs))

    def mentions(key: Any) -> bool:
        if type(key) is tuple:
            return any(map(mentions, key))
        return id(key.value if type(key) is Identity else key) in gone

    found = []
    for kept in (_bind_ops, _jaxpr_ops):
        for key, op in kept.items():
            if mentions(key):
                kept.discard(key)
                found.append(op)
    lost = set(map(id, found))
    for key, known in _program_ops.items():
        if id(known.op) in lost or any([program() is None for _, _, program in known.programs]):
            _program_ops.discard(key)
    return found


def _op_of_programs(primitive: Primitive, params: Params, args: Values, arrays: dict[int, Value]) -> Op:
    """The Op whose inputs are the `arrays` that the jaxprs in `params` close over, then those of the primitive."""
    if any(map(contents.touches_refs, contents.jaxprs_in(params))):
        call = functools.partial(primitive.bind, **params)
        return PullbackOp(params.get("name") or primitive.name, call, refuse_ref)
    if any(map(contents.asks_host, contents.jaxprs_in(params))):
        return without_derivative(_uncacheable(primitive, params), len(arrays))
    if not arrays:
        same = {name: interning.intern(value) for name, value in params.items()}
        return _uncacheable(primitive, params) if interning.is_uncacheable(same) else _bind_op(primitive, same)
    if primitive.name not in contents.JIT:
        lifted = lifting.lift(primitive, params, args, arrays)
        return Staged(lifted, params.get("name", primitive.name)).op()
    given = lifting.with_inputs(params, arrays)
    recognised = not interning.is_uncacheable(given) and not contents.constants(given["jaxpr"])
    if recognised and contents.is_plain_jit(params) and not any(map(_is_placed, arrays.values())):
        return Staged(given["jaxpr"], params["name"]).op()
    op = (_bind_op if recognised else _uncacheable)(primitive, given)
    if type(op) is ToldOp and not any(map(_is_placed, arrays.values())):
        return op
    # Forward it is the call as it came: JAX moves a constant to where the program runs, but not an input.
    call = functools.partial(call_without, len(arrays), functools.partial(primitive.bind, **params))
    if op.key is not op:  # others have it, too
        return type(op)(op.name, op.fn, call, op.key)
    op.call = call
    return op


def _is_placed(x: Value) -> bool:
    """Whether the user has said on which device an array is."""
    return isinstance(x, jax.Array) and not isinstance(x, Tracer) and x.committed


def call_without(count: int, fn: Function, *inputs: Any) -> Any:
    return fn(*inputs[count:])


# ---- of a call that was traced into a jaxpr ---------------------------------------------------------------------------


class Staged(NamedTuple):
    """A call that was traced into a jaxpr, of which `op` makes the Op under which it is recognised.

    The first `constants` of its inputs are arrays that it closes over; a custom rule has no derivative with respect to
    those at the positions `closed_over`. `again` is the call on its arguments alone, made by Python. Its rules may read variables
    (`reads`) where they are traced for it alone.
    """

    jaxpr: JaxProgram
    name: str
    closed_over: tuple[int, ...] = ()
    constants: int = 0
    again: Function | None = None
    reads: bool = False

    def op(self) -> Op:
        same = interning.intern(self.jaxpr)
        if not interning.is_uncacheable({"jaxpr": same}) and not contents.constants(same) and contents.compiles(same):
            key = same, self.name, self.closed_over
            return _jaxpr_ops.get(key, _make_jaxpr_op, *key)
        closed = snapshot(same)
        call = functools.partial(eval_jaxpr, closed.jaxpr, contents.consts_of(closed))
        fn: Function
        if self.again is not None:  # a rule that cannot be traced runs on values
            fn = functools.partial(call_without, self.constants, self.again)
        else:  # a rule may get a constant of its function, and expects an array of JAX's
            fn = functools.partial(_call_on_arrays, jaxpr_as_fun(prints.without_prints(closed)))
        equations = contents.open_jaxpr(closed).eqns
        fn = lifting.without_closure(fn, self.name, self.closed_over)
        told = any(e.primitive.name == "custom_jvp_call" and e.params["symbolic_zeros"] for e in equations)
        op = ToldOp(self.name, fn, call, {}) if told else PythonOp(self.name, fn, call)
        op.reads = self.reads
        return op


_jaxpr_ops: Cache[Op] = Cache(CACHED_OPS)


def _make_jaxpr_op(closed: JaxProgram, name: str, closed_over: tuple[int, ...]) -> Op:
    again = prints.without_prints(closed)
    fn = lifting.without_closure(jaxpr_as_fun(again), name, closed_over)
    return Op(name, fn, None if again is closed else Trial(jaxpr_as_fun(closed)), key=(closed, name, closed_over))


def _call_on_arrays(fn: Function, *inputs: Any) -> Any:
    return fn(*[jnp.asarray(x) if isinstance(x, np.ndarray) else x for x in inputs])


# ---- without a derivative ---------------------------------------------------------------------------------------------


def is_ref(x: Value) -> bool:
    """Whether `x` is a ``jax.Ref``."""
    return isinstance(x, Ref)


def refuse_ref(cotangents: Values) -> Sequence[Any]:
    """The pullback of what reads or changes a ``jax.Ref``, or another value that changes in place."""
    raise LookupError(
        "gradient registry has no entry for: an operation on a jax.Ref, or on a value that holds some. It changes in place, "
        "which a tape cannot follow outside jax.jit: make it inside a jitted function, or use a Variable and its assign()."
    )


def refuse_compiled(*_: Any) -> Any:
    """The pullback of a function compiled ahead of time."""
    raise TypeError(
        "Cannot differentiate a function that was lowered and compiled ahead of time, for one signature. Call the jitted "
        "function itself inside the tape's block, or compile the whole step, with the tape in it."
    )


def without_derivative(op: Op, constants: int = 0) -> Op:
    """`op`, whose first `constants` inputs it does not take, where running it again would give something else.

    A derivative is taken at the recorded inputs, by computing what it needs of them anew.
    """

    def refuse(cotangents: Values) -> Sequence[Any]:
        raise LookupError(
            f"gradient registry has no entry for: {op.name}, a compiled program that asks Python for something as it runs "
            "(random numbers of tf.random, io_callback). It would be given something else in the backward pass. Decorate the "
            "function with tapejax.function in place of jax.jit, use tf.while_loop or tf.map_fn in place of lax.scan, or pass "
            "what it asks for in as an argument (tf.random.stateless_normal with a seed)."
        )

    fn, call = (functools.partial(call_without, constants, function) for function in (op.fn, op.call))
    return PullbackOp(op.name, fn, refuse, call)
