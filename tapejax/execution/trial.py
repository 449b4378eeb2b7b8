"""When an operation is compiled, and how well: the one place where the core asks XLA for a program.

XLA takes 30 to 700 milliseconds for what most operations do in microseconds, and a short program runs most of its operations a
few times. So an operation is on `Trial` first: NumPy evaluates it where `host.interpreter` can, else XLA
compiles it with its cheap passes. Each run adds an estimate of how much more it cost than a compiled one. When that sum
has reached about what a compile costs, the operation is compiled as `jax.jit` compiles it, for good. The estimate depends on
shapes and on the number of calls alone, never on a clock: a program that is run twice gives the same numbers. Their last digits
may change at that call, and more where a number on the way overflows, which XLA's algebra may avoid or cause.
"""

from __future__ import annotations

import functools
import math
import os
import struct
import weakref
from collections import Counter
from typing import Any

import jax
import numpy as np
from jax import jit  # the real one, though a user may replace `jax.jit`

from ..jaxprs import cache, contents
from ..jaxprs.cache import Cache, on_clear
from ..jaxprs.canonical import open_jaxpr, snapshot
from ..jaxprs.fence import (
    LOOKING_MODES,
    ConcreteArray,
    EvalTrace,
    array_from_host,
    current_trace,
    default_device,
    default_placement,
    enable_x64,
    key_numbers,
    trace_context,
    transfer_guard,
)
from ..jaxprs.types import Equation, Function, JaxProgram, Value, Values
from . import compared, convolutions
from .host.interpreter import Interpreter
from .host.numpy_errors import Unsupported, with_errors
from .rewriting import rewriting, rewritten

# What compiling costs, in microseconds: for the program, and for each of its equations; in a loop that was unrolled XLA compiles
# equal ones once, so it is for each kind of equation, and a little for each equation.
COMPILE, COMPILE_EQUATION = 25_000.0, 1_500.0
COMPILE_KIND, COMPILE_EQUAL = 7_000.0, 300.0
# How much more a run by NumPy costs than a compiled one: for the call, each equation, each number that one reads or writes.
CALL, EQUATION, ELEMENT = 25.0, 5.0, 0.0003
# As how many numbers one counts, where NumPy takes longer.
DEAR = {
    **dict.fromkeys(("erf", "erfc"), 100),
    **dict.fromkeys(("scatter", *[f"scatter-{name}" for name in ("add", "sub", "mul", "min", "max")]), 40),
    "threefry2x32": 10,
    **dict.fromkeys("pow gather select_n exp log tanh logistic sin cos log1p expm1".split(), 5),
}
# The same for each multiplication of a convolution: its windows are laid out one by one.
IN_WINDOWS = 2
# How much more a run compiled with XLA's cheap passes costs, for each number; in a window each number counts as this many.
CHEAP_ELEMENT, IN_WINDOW = 0.0007, 8
# The same for each multiplication of a product or convolution, counted in numbers: Eigen's, and those of a loop of XLA's.
IN_PRODUCT, IN_LOOP = 0.04, 4
# NumPy keeps every value of a program until it ends, where XLA keeps few: none that reads and writes more numbers goes to it.
MOST_NUMBERS = 1 << 21
# What NumPy does not evaluate (convolutions ...) takes XLA longest.
CHEAPER = 4
# After so many compiled runs for each set of types that were seen, an operation is called without looking at the types.
RUNS_TO_DECIDE = 100
# Options of XLA on a CPU. Unknown ones are an error; then there are none. JAX 0.12 has fusion emitters only: with these, and
# the other options, compiling takes more than half the time, and a short program as long.
CHEAP = {
    "xla_backend_optimization_level": 0,
    "xla_cpu_parallel_codegen_split_count": 1,
    "xla_cpu_use_fusion_emitters": False,
    "xla_disable_hlo_passes": compared.PASS,
}
# The bytes of more elements than this may be more than XLA can count, which ends the process.
MOST_ELEMENTS = 1 << 58
# What runs as a loop in a compiled program: unoptimised it may take any number of times as long.
LOOPS = "while scan triangular_solve lu cholesky eigh svd qr householder_product sort".split()


def _on_trial(setting: str) -> bool:
    """What the environment variable says: whether an operation is compiled only when that pays."""
    if setting not in ("", "always"):
        raise ValueError(
            f"TAPEJAX_COMPILE is {setting!r}: set it to 'always', and each operation is compiled at its first run, or unset it"
        )
    return not setting


enabled = _on_trial(os.environ.get("TAPEJAX_COMPILE", ""))
_cheap_options: dict[str, Any] | None = CHEAP
_ARRAYS = (jax.Array, np.ndarray, np.generic, int, float, complex)


class Evaluation:
    """How a function is run on arguments of certain types, what a run costs more than a compiled one, and what may be spent."""

    def __init__(self, run: Function, cost: float = 0.0, left: float = 0.0):
        self.run, self.cost, self.left = run, cost, left


class Trial:
    """``jax.jit(fn)`` of flat arrays, run by the means that cost least until it has come back often enough.

    `on_decided` is called once, with the compiled function, when there is nothing left to decide. `divides`: whether a division
    is one, where `jax.jit` multiplies (see `rewriting`).
    """

    def __init__(self, fn: Function, on_decided: Any = None, divides: bool = False):
        self._fn, self._divides = fn, divides
        self._jitted = jit(fn)
        self._rewritten = False  # whether equations have been replaced
        self._plans: dict[Any, Evaluation] = {}
        self._compiled_runs, self._decided = 0, False
        self._on_decided = on_decided
        _trials.add(self)

    def forget(self) -> None:
        """Begins anew."""
        self._plans.clear()

    def excess(self, runs: int) -> float:
        """What so many runs will cost more than compiled ones, in microseconds; of several types the most."""
        return max([min(runs * plan.cost, plan.left) for plan in self._plans.values()], default=0.0)

    def __call__(self, *args: Any) -> Any:
        if self._decided or type(current_trace()) is not EvalTrace or not _plain():
            return self._jitted(*args)
        try:
            key = enabled, trace_context(), *map(_kind, args)
        except jax.errors.ConcretizationTypeError:  # a tracer that left its trace: JAX has words for it
            return self._jitted(*args)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._plan(args)
        plan.left -= plan.cost
        if plan.left < 0:
            plan.run, plan.cost, plan.left = self._run_compiled, 0.0, 0.0
        outputs = plan.run(args)
        if cache.shadow is not None and plan.cost:
            cache.shadow.ran(self._fn, self._jitted, args, outputs)
        return outputs

    def _run_compiled(self, args: Values) -> Any:
        self._compiled_runs += 1
        if self._compiled_runs > RUNS_TO_DECIDE * len(self._plans):
            self._decided = True
            self._plans.clear()
            if self._on_decided is not None:
                self._on_decided(self._jitted)
        return self._jitted(*args)

    def _plan(self, args: Values) -> Evaluation:
        if not all([isinstance(x, _ARRAYS) for x in args]):  # a jax.Ref, or of a type of the user's: as JAX runs it
            return Evaluation(lambda args: self._fn(*args))
        placed = any([isinstance(x, jax.Array) and x.committed for x in args])
        if placed or not jax.sharding.get_abstract_mesh().empty:
            return Evaluation(self._run_compiled)
        traced = self._jitted.trace(*args)
        program = traced.jaxpr
        if not self._rewritten and rewritten(program, self._divides) is not program:
            self._rewritten, self._fn = True, rewriting(self._fn, self._divides)
            self._jitted = jit(self._fn)
            return self._plan(args)
        if not enabled:
            return Evaluation(self._run_compiled)
        kinds = Counter[Any]()
        runs, elements, by_numpy = _measure(program, kinds).tolist()
        equations = kinds.total()
        budget = COMPILE + min(COMPILE_EQUATION * equations, COMPILE_KIND * len(kinds) + COMPILE_EQUAL * equations)
        tree: Any = jax.tree.structure(traced.out_info)
        try:
            evaluate = Interpreter(program, MOST_NUMBERS)
        except Unsupported:
            if program.effects or any([contents.contains(program, name) for name in LOOPS]) or _cheap_options is None:
                return Evaluation(self._run_compiled)
            cheap = jit(compared.once(program), compiler_options=_cheap_options)
            run_cheap = functools.partial(self._run_cheap, cheap, tree)
            return Evaluation(run_cheap, 1 + CHEAP_ELEMENT * elements, CHEAPER * budget)
        avals = program.out_avals
        dtypes = [aval.dtype if isinstance(aval.dtype, np.dtype) else None for aval in program.in_avals]

        def run(args: Values) -> Any:
            pairs = zip(args, dtypes, strict=True)
            try:
                inputs = [key_numbers(x) if dtype is None else _as_numpy(x, dtype) for x, dtype in pairs]
            except RuntimeError:  # one was donated and deleted, which is no matter where it is not read
                return self._jitted(*args)
            try:
                outputs = evaluate(inputs)
            except Unsupported:  # of these numbers
                return self._jitted(*args)
            return tree.unflatten(map(array_from_host, outputs, avals))

        return Evaluation(run, CALL + EQUATION * runs + ELEMENT * by_numpy, budget)

    def _run_cheap(self, cheap: Function, tree: Any, args: Values) -> Any:
        global _cheap_options
        try:
            return jax.tree.unflatten(tree, cheap(*args))
        except jax.errors.JaxRuntimeError as error:
            if "compile option" not in str(error):
                raise
            _cheap_options = None
            self._plans.clear()
            return self._jitted(*args)


_trials: weakref.WeakSet[Trial] = weakref.WeakSet()
on_clear(lambda: list(map(Trial.forget, _trials)))


def _kind(x: Value) -> Any:
    if type(x) is ConcreteArray or isinstance(x, jax.Array):  # the first takes a tenth of the time
        return (aval := x.aval).shape, aval.dtype, aval.weak_type, x.committed
    return (x.shape, x.dtype) if isinstance(x, (np.ndarray, np.generic)) else type(x)


def _measure(jaxpr: JaxProgram, kinds: Counter[Any]) -> np.ndarray:
    """How many equations of a program run, loops counted, and how many numbers these read and write: as XLA's cheap passes count,
    and as NumPy does. Counts the equations by `kinds`: the primitive, and the types of what it reads and writes."""
    total = np.zeros(3)
    for eqn in open_jaxpr(jaxpr).eqns:
        kinds[eqn.primitive, *[v.aval for v in eqn.invars + eqn.outvars]] += 1
        total[0] += 1
        if eqn.primitive.name in DEAR or not contents.among(eqn.params):  # a scatter has a program, for two numbers
            total[1:] += _numbers_of(eqn)
        times = eqn.params["length"] if eqn.primitive.name == "scan" else 1
        for inner in contents.jaxprs_in(eqn.params):
            total += times * _measure(inner, kinds)
    return total


def _numbers_of(eqn: Equation) -> tuple[float, float]:
    read = eqn.outvars if eqn.primitive.name == "slice" else eqn.invars  # a slice reads what it gives
    sizes = [math.prod(getattr(v.aval, "shape", ())) for v in (*read, *eqn.outvars)]
    if max(sizes, default=0) > MOST_ELEMENTS:
        raise ValueError(f"{eqn.primitive}: a shape has too many elements: {[v.aval for v in eqn.outvars]}")
    window = eqn.params.get("window_dimensions")
    weight = IN_WINDOW * math.prod(window) if window else 1
    products = convolutions.products(eqn)
    cheap = weight * sum(sizes) + products * (IN_PRODUCT if convolutions.is_eigens(eqn) else IN_LOOP)
    spread = IN_WINDOWS * products if eqn.primitive.name == convolutions.CONVOLUTION else 0
    return cheap, DEAR.get(eqn.primitive.name, weight) * sum(sizes) + spread


def possible() -> bool:
    """Whether operations may be run otherwise than compiled."""
    return enabled and _plain()


def _plain() -> bool:
    """Whether operations run on a CPU, without JAX's modes that look into a compiled run."""
    for mode in LOOKING_MODES:
        if mode.value:
            return False
    guarded = transfer_guard.value not in (None, "allow")
    return not guarded and default_device.value is None and bool(default_placement()[1].platform == "cpu")


# ---- Python numbers as arguments ------------------------------------------------------------------------------------

# To convert one takes JAX a third of the time of a call. One that comes back is therefore kept as an array, for exactly this
# number: of its type and bits, with 64-bit types on or off.
NUMBERS = frozenset((float, int, bool))
_bits = struct.Struct("<d").pack
_numbers: Cache[KeptNumber] = Cache(4096)


def as_arrays(args: Values) -> list[Any] | None:
    """`args` with the array that JAX would make of a Python number for each that was seen before; None for others than these
    and arrays."""
    arrays = []
    for x in args:
        if type(x) in NUMBERS:
            key = type(x), _bits(x) if type(x) is float else x, enable_x64.value
            known = _numbers.get(key, KeptNumber)
            x = known.converted(x) if known.array is None else known.array
        elif type(x) is not ConcreteArray:
            return None
        arrays.append(x)
    return arrays


class KeptNumber:
    """How often a number was seen, and its array."""

    def __init__(self) -> None:
        self._seen, self.array = 0, None

    def converted(self, number: Any) -> Any:
        """The array of `number`, which comes once more; itself as long as it was not seen often enough for one."""
        # It may be a loop's, and never come back but in the backward pass of the same step.
        if self._seen < 2:
            self._seen += 1
            return number
        self.array = array_of(number)
        return self.array


def array_of(constant: Any) -> Any:
    """The array that JAX would make of a number or of an array of NumPy's."""
    aval = jax.typeof(constant)
    return array_from_host(snapshot(_as_numpy(constant, aval.dtype)), aval)


def _as_numpy(x: Value, dtype: Any) -> np.ndarray:
    # of a number that is too large JAX makes infinity, without a warning
    return with_errors(np.asarray, x, dtype, over="ignore") if type(x) is float else np.asarray(x, dtype)
