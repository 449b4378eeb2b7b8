"""How an operation is recognised: what has the same key was run before, and is compiled.

Operations are kept in bounded tables, under keys from `canonical`: each holds a compiled function or a jaxpr, never an array.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import jax

from ..jaxprs import cache, contents, custom_rules, interning, lifting, prints
from ..jaxprs.cache import Cache, NotKept
from ..jaxprs.canonical import JAXPR_TYPES, Identity, UncacheableError, snapshot
from ..jaxprs.dependence import Links, type_has_tangent
from ..jaxprs.fence import EvalTrace, Tracer, current_trace, jaxpr_as_fun, runs_compiled
from ..jaxprs.types import Equation, Function, JaxProgram, Params, Positions, Primitive, Value, Values
from ..tape import rules, runner
from ..tape.operation import CACHED_OPS, JittedOp, Op, PerturbationOp, PythonOp
from ..tape.primitives import TracedCall, as_it_came, silent, traced_or_refused, unrecognised
from ..tape.recording import Entry
from .schedule import Sightings
from .trial import Trial


def operation(primitive: Primitive, params: Params, args: Values) -> tuple[Op, Sequence[Any]]:
    """The Op for a primitive with its parameters, and its inputs: what its jaxprs close over, then `args`."""
    if "jaxpr" not in params and not contents.among(params):
        if primitive.name == "device_put" and _moves(params["devices"], args):
            return unrecognised(primitive, params), args
        return _bind_op(primitive, params), args
    # `jnp` functions bring the same objects every time
    key = primitive, *map(id, params.values())
    entry = _program_ops.get(key, _make_program_op, primitive, params, args)
    for name, position, program in entry.programs:
        value = params[name]
        if program() is not (value if position is None else value[position]):  # another one is where that was
            _program_ops.discard(key)
            return operation(primitive, params, args)
    return entry.op, (*entry.arrays, *args) if entry.arrays else args


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
    """The Op of a program without an exact key. What is known of a program goes with it; run forward, it may equal others."""
    op = unrecognised(primitive, params)
    if isinstance(op, JittedOp):
        known = contents.facts(params["jaxpr"])
        if known.shared is None:
            known.shared = _Shared(op.links_by, op.linearized, _sighted_before(op.name, params["jaxpr"]))
        shared: _Shared = known.shared
        if shared.comes_back():
            return JittedOp(op.name, op.fn, op.call, shared.links_by, shared.linearized)
        op = PerturbationOp(op.name, op.fn, op.call, shared.links_by)
    return op.with_call(_forward_call(primitive, params, op.call or op.fn))


class _Shared:
    """What the operations of one program without a key share; `left`: how often it is still taken for one that is made anew."""

    def __init__(self, links_by: dict[Any, Links], linearized: dict[Any, Any], like: int):
        self.links_by, self.linearized, self.left = links_by, linearized, like

    def comes_back(self) -> bool:
        """Whether it will most likely come again: there was none like it, or it has come more often than there were such.

        One that is made anew at each step may come several times in a step.
        """
        self.left -= 1
        return self.left < 0


_sightings: Cache[Sightings] = Cache(CACHED_OPS)


def _sighted_before(name: str, jaxpr: JaxProgram) -> int:
    """How many programs like it there were before."""
    like = name, *jaxpr.in_avals, *jaxpr.out_avals, len(contents.open_jaxpr(jaxpr).eqns)
    return _sightings.get(like, Sightings).again()


def _forward_call(primitive: Primitive, params: Params, itself: Function) -> Function:
    """What runs a program whose rules have no key: on values they do not matter, under a transformation it is `itself`."""
    same = {name: interning.intern_forward(value) for name, value in params.items()}
    if not contents.among(same) or interning.is_uncacheable(same) or contents.constants_of(same):
        return itself
    op = _known_op(primitive, same)
    if op is None or isinstance(op, PythonOp):  # another parameter has no key
        return itself
    forward = op
    return lambda *inputs: (
        runner.current.run(forward, inputs) if type(current_trace()) is EvalTrace else itself(*inputs)
    )


# The operations of primitives and their parameters, and of calls that were traced into jaxprs.
_ops: Cache[Op] = Cache(2 * CACHED_OPS)


def _bind_op(primitive: Primitive, params: Params) -> Op:
    return _known_op(primitive, params) or _uncacheable(primitive, params)


def _known_op(primitive: Primitive, params: Params) -> Op | None:
    """The Op of a primitive with its parameters; None if one of these has no exact key."""
    try:
        key = primitive, *[(name, interning.interned_key(value)) for name, value in params.items()]
    except UncacheableError:
        return None
    return _ops.get(key, _make_bind_op, primitive, params, key)


def _make_bind_op(primitive: Primitive, params: Params, key: Any) -> Op:
    params = {name: snapshot(value) for name, value in params.items()}
    fn, itself = silent(primitive, params), functools.partial(primitive.bind, **params)
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


def _make_program_op(primitive: Primitive, params: Params, args: Values) -> ProgramOp | NotKept:
    arrays = contents.constants_of(params)
    seen_before = not arrays and all(map(interning.is_known, contents.jaxprs_in(params)))
    op = _op_of_programs(primitive, params, args, arrays)
    keep = seen_before and not isinstance(op, PythonOp)
    programs = [
        (name, position, weakref.ref(x))
        for name, value in params.items()
        for position, x in (enumerate(value) if isinstance(value, (tuple, list)) else [(None, value)])
        if isinstance(x, JAXPR_TYPES)
    ]
    if keep and cache.shadow is None:
        held = {name for name, _, _ in programs}
        params = {name: x for name, x in params.items() if name not in held}
    entry = ProgramOp(op, arrays.values(), params, programs)
    return entry if keep else NotKept(entry)


def _forget_programs(programs: list[JaxProgram]) -> None:
    """Drops the operations that run one of `programs`, and what is known of them."""
    gone = set(map(id, programs))

    def mentions(key: Any) -> bool:
        if type(key) is tuple:
            return any(map(mentions, key))
        return id(key.value if type(key) is Identity else key) in gone

    dropped = []
    for key, op in _ops.items():
        if mentions(key):
            _ops.discard(key)
            dropped.append(op)
    lost = set(map(id, dropped))
    for key, entry in _program_ops.items():
        if id(entry.op) in lost or any([program() is None for _, _, program in entry.programs]):
            _program_ops.discard(key)
    forget(*dropped)


interning.on_drop(_forget_programs)


def forget(*ops: Op) -> None:
    """Empties the caches of `ops`, which will not be run again, and of operations made of them: compiled programs take memory."""
    concerned: dict[int, tuple[Any, bool]] = {id(op): (op, True) for op in ops}

    def concerns(op: Any) -> bool:
        answer = concerned.get(id(op))
        if answer is None:
            parts = op.key if type(op.key) is tuple else ()
            # an operation of its key, or those of a program in it
            steps = [step.op for part in parts for step in getattr(part, "steps", ())]
            made_of = [*steps, *[part for part in parts if hasattr(part, "fn")]]
            answer = concerned[id(op)] = op, any(map(concerns, made_of))
        return answer[1]

    for table, ops_in in rules.caches:
        for key, _ in table.items():
            if any(map(concerns, ops_in(key))):
                table.discard(key)


def _op_of_programs(primitive: Primitive, params: Params, args: Values, arrays: dict[int, Value]) -> Op:
    """The Op whose inputs are the `arrays` that the jaxprs in `params` close over, then those of the primitive."""
    op = traced_or_refused(primitive, params, args, arrays)
    if op is not None:
        return op
    if not arrays:
        same = {name: interning.intern(value) for name, value in params.items()}
        return _uncacheable(primitive, params) if interning.is_uncacheable(same) else _bind_op(primitive, same)
    bound = lifting.with_inputs(params, arrays)
    recognised = not interning.is_uncacheable(bound) and not contents.constants(bound["jaxpr"])
    if recognised and contents.is_plain_jit(params) and not any(map(_is_placed, arrays.values())):
        return TracedCall(bound["jaxpr"], params["name"]).op()
    bare = (_bind_op if recognised else _uncacheable)(primitive, bound)
    if type(bare) is PerturbationOp and not any(map(_is_placed, arrays.values())):
        return bare
    call = as_it_came(primitive, params, len(arrays))
    if not isinstance(bare, PerturbationOp):  # an Op with a key, which recordings share
        return type(bare)(bare.name, bare.fn, call, bare.key)
    return bare.with_call(call)


def _is_placed(x: Value) -> bool:
    """Whether the user has said on which device an array is."""
    return isinstance(x, jax.Array) and not isinstance(x, Tracer) and x.committed


# ---- of a call that was traced into a jaxpr -------------------------------------------------------------------------


def staged(call: TracedCall) -> Op:
    """The Op under which a call is recognised."""
    same = interning.intern(call.jaxpr)
    if interning.is_uncacheable({"jaxpr": same}) or contents.constants(same) or not contents.compiles(same):
        op = call._replace(jaxpr=same).new_op()
        perturbed_call = custom_rules.call_that_is_told(same)
        return op if perturbed_call is None or type(op) is not PerturbationOp else PerturbedCallOp(op, perturbed_call)
    key = same, call.name, call.closed_over
    return _ops.get(key, _make_jaxpr_op, *key)


def _make_jaxpr_op(closed: JaxProgram, name: str, closed_over: tuple[int, ...]) -> Op:
    silent = prints.without_prints(closed)
    fn = lifting.without_closure(jaxpr_as_fun(silent), name, closed_over)
    return Op(
        name,
        fn,
        None if silent is closed else Trial(jaxpr_as_fun(closed)),
        key=(closed, name, closed_over),
    )


class PerturbedCallOp(PerturbationOp):
    """A call of a ``custom_jvp`` function whose rule asks which inputs are perturbed: the equation `call`.

    For those that are, the rule is traced once, and what it traces to is recognised.
    """

    def __init__(self, op: PerturbationOp, call: Equation):
        super().__init__(op.name, op.fn, op.call, op.links_by, op.reads_variables)
        self._call = call
        self._found: dict[Positions, Op | None] = {}

    def for_perturbed(self, perturbed: Positions) -> Op:
        if perturbed not in self._found:
            self._found[perturbed] = _for_perturbed(self.name, self._call, perturbed)
        return (None if rules.has_rule(self.name) else self._found[perturbed]) or self

    def links(self, entry: Entry, kinds: tuple[Any, ...], active_ins: Positions) -> Links:
        op = self.for_perturbed(tuple([i for i in active_ins if type_has_tangent(kinds[i])]))
        return super().links(entry, kinds, active_ins) if op is self else op.links(entry, kinds, active_ins)


def _for_perturbed(name: str, call: Equation, perturbed: Positions) -> Op | None:
    """The operation that a call is where these inputs are perturbed; None if its rule has no key then."""
    in_zeros = tuple([i not in perturbed for i in range(len(call.invars))])
    try:
        rule, zeros = custom_rules.rule_for(call.params, in_zeros)
    except Exception:  # of any type: the rule is the user's, and raises again where it runs on values
        return None
    traced = call.params["call_jaxpr"], rule
    programs = [*map(interning.intern_forward, traced)]
    if not all([interning.is_known_forward(x) and contents.compiles(x) and not x.effects for x in traced]):
        return None
    key = "perturbed", name, in_zeros, zeros, *map(Identity, programs)
    return _ops.get(key, _make_perturbed_op, name, call, in_zeros, zeros, *programs)


def _make_perturbed_op(
    name: str,
    call: Equation,
    in_zeros: tuple[bool, ...],
    zeros: tuple[bool, ...],
    program: JaxProgram,
    rule: JaxProgram,
) -> Op:
    params = call.params | {"call_jaxpr": program} | custom_rules.with_rule(call.params, rule, in_zeros, zeros)
    fn = functools.partial(call.primitive.bind, **call.primitive.get_bind_params(params))
    return Op(name, fn, key=("perturbed", name, in_zeros, zeros, program, rule))
