"""Small programs evaluated by NumPy: what runs a few times only is done long before XLA would have compiled it.

`Interpreter` turns a jaxpr into a Python function of NumPy arrays. It evaluates what `primitives` and `decompositions` have,
on the usual dtypes, and calls, branches and counted loops of it. Anything else it refuses with `Unsupported`.
What only XLA decides is refused as it turns up: nan from a product in a program with a mask.
Subnormal numbers (below 1e-38 in single precision) are 0 where XLA computes. A program that is given one is refused, one that
computes one is run again with 0 in its place.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from ...jaxprs.canonical import open_jaxpr
from ...jaxprs.contents import CALLS, JIT, asks_for_shardings, consts_of, scan_counts
from ...jaxprs.evaluate import needed
from ...jaxprs.fence import Literal, RefType, ShapeDtypeStruct
from ...jaxprs.poles import product
from ...jaxprs.types import Equation, Function, JaxProgram
from .decompositions import DECOMPOSITIONS
from .numpy_errors import Unsupported, with_errors
from .primitives import DTYPES, HALF, PRIMITIVES, flushed, in_single, is_subnormal


class Interpreter:
    """A jaxpr as a function of a list of NumPy arrays, which gives a list of new ones; a key is two numbers."""

    def __init__(self, closed: JaxProgram, most_numbers: float = math.inf):
        if closed.effects:
            raise Unsupported("effects")
        numbers: dict[Any, int] = {}
        self._steps: list[tuple[Function, Sequence[int], Sequence[tuple[int, Any, Any]]]] = []
        self._constants: dict[int, Any] = {}
        self._size = 0
        self._masked = False
        self._left = most_numbers
        jaxpr = open_jaxpr(closed)
        if not _NUMBERS.issuperset([getattr(x.aval, "dtype", None) for x in jaxpr.outvars]):
            raise Unsupported("not numbers of NumPy's")
        self._inputs = [(self._new(numbers, var), _BELOW_ONE.get(var.aval.dtype)) for var in jaxpr.invars]
        self._add(closed, numbers, jaxpr.outvars)
        self._outputs = [self._read(numbers, x) for x in jaxpr.outvars]
        self._kept = list(self._constants.values())
        if any(map(is_subnormal, self._kept)):
            raise Unsupported("subnormal")

    def _new(self, numbers: dict[Any, int], var: Any) -> int:
        dtype = getattr(var.aval, "dtype", None)
        if dtype not in _NUMBERS and not _is_key(dtype, var.aval) or isinstance(var.aval, RefType):
            raise Unsupported(str(var.aval))
        self._left -= math.prod(var.aval.shape)
        if self._left < 0:
            raise Unsupported("too many numbers")
        numbers[var] = self._size
        self._size += 1
        return numbers[var]

    def _read(self, numbers: dict[Any, int], atom: Any) -> int:
        if not isinstance(atom, Literal):
            return numbers[atom]
        return self._constant(np.asarray(atom.val, atom.aval.dtype))

    def _constant(self, value: np.ndarray) -> int:
        self._constants[self._size] = value
        self._size += 1
        return self._size - 1

    def _add(self, closed: JaxProgram, numbers: dict[Any, int], results: Sequence[Any]) -> None:
        """Adds the steps that give `results`, which are among those of `closed`."""
        jaxpr = open_jaxpr(closed)
        for var, value in zip(jaxpr.constvars, consts_of(closed), strict=True):
            number = self._new(numbers, var)
            self._constants[number] = np.asarray(value)
        for eqn, wanted in needed(jaxpr, results):
            ins = [self._read(numbers, x) for x in eqn.invars]
            name = eqn.primitive.name
            if name == "platform_index":
                numbers[eqn.outvars[0]] = self._constant(np.asarray(_of_a_cpu(eqn.params["platforms"]), np.int32))
                continue
            inner, ins = self._inner(eqn, ins)
            if inner is not None:
                within = dict(zip(open_jaxpr(inner).invars, ins, strict=True))
                pairs = zip(eqn.outvars, open_jaxpr(inner).outvars, strict=True)
                pairs_wanted = [(var, atom) for var, atom in pairs if var in wanted]
                self._add(inner, within, [atom for _, atom in pairs_wanted])
                for var, atom in pairs_wanted:
                    numbers[var] = self._read(within, atom)
                continue
            control = self._control(eqn)
            make = control or PRIMITIVES.get(name) or DECOMPOSITIONS.get(name)
            dtypes = {getattr(x.aval, "dtype", None) for x in (*eqn.invars, *eqn.outvars)}
            if make is None or dtypes - _NUMBERS and name not in _OF_KEYS:
                raise Unsupported(name)
            step = in_single(make, eqn) if dtypes & HALF and not control else make(eqn)
            self._masked |= name == "convert_element_type" and eqn.invars[0].aval.dtype == bool
            if name == "mul" and self._masked:
                step = functools.partial(_beside_a_mask, step)
            outs = []
            for var in eqn.outvars:
                dtype = var.aval.dtype if var.aval.dtype in _NUMBERS else None
                outs.append((self._new(numbers, var), dtype, None if name in _CHOSEN else _BELOW_ONE.get(dtype)))
            self._steps.append((step, ins, outs))

    def _inner(self, eqn: Equation, ins: list[int]) -> tuple[Any, list[int]]:
        """The program that an equation calls, if it is known which one that is, and the numbers of its inputs."""
        name, p = eqn.primitive.name, eqn.params
        if name in JIT and asks_for_shardings(p):
            raise Unsupported("a sharding")
        if name in _CALLS:
            return p[_CALLS[name]], ins
        if name in _TRACED:
            return _TRACED[name](eqn), ins
        if name == "cond" and ins[0] in self._constants:
            return p["branches"][_clamped(self._constants[ins[0]], p["branches"])], ins[1:]
        if name == "custom_linear_solve":
            lengths = p["const_lengths"]
            first = lengths.matvec + lengths.vecmat
            constants = sum(lengths)
            return p["jaxprs"].solve, [*ins[first : first + lengths.solve], *ins[constants:]]
        return None, ins

    def _control(self, eqn: Equation) -> Any:
        """What makes the step of a branch or a counted loop, whose programs are interpreted as well."""
        make = {"cond": _branches, "scan": _loop}.get(eqn.primitive.name)
        return make and functools.partial(make, most_numbers=self._left)

    def within(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """What a call gives, in a step of another interpreter, which handles NumPy's errors."""
        return self._run(inputs, np.geterr()["under"] == "ignore")

    def __call__(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        outputs: list[np.ndarray]
        try:
            outputs = with_errors(self._run, inputs, False, all="ignore", under="raise")
        except FloatingPointError:  # some number is subnormal
            if any(map(is_subnormal, inputs)):
                raise Unsupported("subnormal") from None
            outputs = with_errors(self._run, inputs, True, all="ignore")
        return outputs

    def _run(self, inputs: Sequence[np.ndarray], flush: bool) -> list[np.ndarray]:
        env: list[Any] = [None] * self._size
        for number, value in self._constants.items():
            env[number] = value
        for (number, less), value in zip(self._inputs, inputs, strict=True):
            env[number] = value
            if less is not None and not flush:
                np.multiply(value, less)
        value_of = env.__getitem__
        for step, ins, outs in self._steps:
            results = step(*map(value_of, ins))
            if len(outs) == 1:
                results = (results,)
            for (number, dtype, less), x in zip(outs, results, strict=True):
                if x.dtype is not dtype is not None:
                    x = x.astype(dtype)
                if x.dtype.kind == "c" and not np.isfinite(x).all():  # XLA has other formulas, which overflow elsewhere
                    raise Unsupported("complex")
                if flush:
                    x = flushed(x)
                elif less is not None:
                    np.multiply(x, less)  # raises; the step does not where a subnormal result is exact, and exp never
                env[number] = x
        outputs: list[np.ndarray] = []
        others = set(map(id, (*inputs, *self._kept)))
        for number in self._outputs:  # each is to have memory of its own
            x = np.asarray(env[number])
            own = x.flags.owndata and x.flags.c_contiguous and id(x) not in others
            others.add(id(x))
            outputs.append(x if own else np.array(x, order="C"))
        return outputs


def _beside_a_mask(product: Function, *factors: Any) -> Any:
    """XLA makes a choice of a product with a mask that was converted to numbers, some of the time: nan times 0 is 0 then."""
    y = product(*factors)
    if np.isnan(y).any():
        raise Unsupported("nan beside a mask")
    return y


def _is_key(dtype: Any, aval: Any) -> bool:
    """Whether it is one key of JAX's default generator, here two numbers."""
    return getattr(getattr(dtype, "_impl", None), "name", None) == "threefry2x32" and aval.shape == ()


_NUMBERS = DTYPES | HALF

# Operations that are right for random keys: NumPy has a key as two numbers, of shape (2,), where JAX's shape is ().
_OF_KEYS = frozenset(("copy", "copy_p", "select_n", "stop_gradient", "random_wrap", "random_unwrap"))

# The greatest number below one, for each dtype, as an array, whose product takes less time: it is an underflow where the other
# factor is subnormal.
_BELOW_ONE: dict[Any, Any] = {
    np.dtype(x): np.asarray(np.nextafter(np.finfo(x).dtype.type(1), np.finfo(x).dtype.type(0))) for x in "fdFD"
}

# What gives numbers that it was given, in which there is nothing subnormal.
_CHOSEN = frozenset(
    "abs broadcast_in_dim clamp concatenate conj copy copy_p cond dynamic_slice dynamic_update_slice expand_dims gather imag max "
    "min neg optimization_barrier pad real reduce_max reduce_min reshape rev scan scatter select_n slice sort split squeeze "
    "stack stop_gradient tile top_k transpose unstack".split()
)

_CALLS = {**CALLS, "checkpoint": "jaxpr"}


def _of_a_cpu(platforms: Sequence[Any]) -> int:
    return next(i for i, names in enumerate(platforms) if names is None or "cpu" in names)


def _clamped(index: Any, branches: Sequence[Any]) -> int:
    return min(max(int(index), 0), len(branches) - 1)


def _branches(eqn: Equation, most_numbers: float) -> Function:
    branches = [Interpreter(each, most_numbers) for each in eqn.params["branches"]]

    def branch(index: Any, *values: Any) -> Any:
        return _as_step(eqn, branches[_clamped(index, branches)].within(values))

    return branch


def _loop(eqn: Equation, most_numbers: float) -> Function:
    p = eqn.params
    body = Interpreter(p["jaxpr"], most_numbers)
    (consts, carried), turns = scan_counts(p), range(p["length"])
    rows = [v.aval for v in eqn.outvars[carried:]]

    def loop(*values: Any) -> Any:
        carry: Sequence[Any] = values[consts : consts + carried]
        stacked = [np.empty(aval.shape, aval.dtype) for aval in rows]
        for i in reversed(turns) if p["reverse"] else turns:
            outs = body.within([*values[:consts], *carry, *[np.asarray(x[i]) for x in values[consts + carried :]]])
            carry = outs[:carried]
            for all_of_it, one in zip(stacked, outs[carried:], strict=True):
                all_of_it[i] = one
        return _as_step(eqn, [*carry, *stacked])

    return loop


def _as_step(eqn: Equation, outs: list[Any]) -> Any:
    return outs[0] if len(eqn.outvars) == 1 else outs


# ---- primitives that are programs of others: of random numbers JAX's own, traced down to the one function of chance in them

_KEY = ShapeDtypeStruct((2,), np.dtype("uint32"))


def _traced(fn: Function, *specs: Any) -> Any:
    return jax.make_jaxpr(fn)(*specs)


def _implementation(eqn: Equation) -> Any:
    keys = [v.aval for v in (*eqn.invars, *eqn.outvars) if jax.dtypes.issubdtype(v.aval.dtype, jax.dtypes.prng_key)]
    aval = keys[0]
    if not all([_is_key(each.dtype, each) for each in keys]):  # several keys, or of another generator
        raise Unsupported(str(aval))
    return aval.dtype._impl


def _spec(atom: Any) -> Any:
    return ShapeDtypeStruct(atom.aval.shape, atom.aval.dtype)


_TRACED: dict[str, Callable[[Equation], Any]] = {
    "random_seed": lambda eqn: _traced(_implementation(eqn).seed, _spec(eqn.invars[0])),
    "random_fold_in": lambda eqn: _traced(_implementation(eqn).fold_in, _KEY, _spec(eqn.invars[1])),
    "random_bits": lambda eqn: _traced(functools.partial(_implementation(eqn).random_bits, **eqn.params), _KEY),
    "scaled_by_slope": lambda eqn: _traced(functools.partial(product, **eqn.params), *map(_spec, eqn.invars)),
}
