"""Random numbers, drawn by ``jax.random`` from one state for the whole process.

A draw is an operation like any other: a function of the two numbers that make its key, which are constants to a tape.
`state` is the only place that holds which numbers come next. What runs at once counts in Python. A `function` that is being
traced takes the count in and gives it back, like a Variable. Any other program under construction (``jax.jit``, ``lax.scan``)
asks for the next numbers whenever it runs. So no draw is ever baked into a program.
"""

from __future__ import annotations

import operator
import secrets
import threading
import weakref
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np

from ...jaxprs.cache import memoised
from ...jaxprs.fence import Tracer, current_trace, under
from ...jaxprs.threads import Context, Setting
from ...jaxprs.types import Value
from ...tape import active, operation
from ..values import reading
from ..values.conversion import raw
from ..values.dtypes import as_dtype, requested
from ..values.errors import InvalidArgumentError
from ..values.operations import op
from ..values.staging import Capture
from ..values.tensor import Tensor
from ..values.types import Array, DTypeLike, IntLike, ShapeLike, TensorLike
from .table import FLOAT, kind_of, known, renamed, require_kind, shape_of, whole, wide


class Counter:
    """How many draws there were: of an operation with the seed `own`, where it has one."""

    def __init__(self, own: int | None = None) -> None:
        self.own = own
        # of one type, whether 64-bit types are on or off: compiled functions take it in
        self.count: Value = np.uint32(0)


class Draws(Context):
    """What this thread draws from."""

    stream: State | None = None  # in place of the process's state
    rows: tuple[Array, ...] = ()  # that draw each for itself


draws = Draws()


class State(Counter):
    """A seed, and how many draws there were: together they make the key of the next draw.

    While a `function` is traced `seed` and `count` hold tracers, for the numbers that its program will find.
    """

    def __init__(self, seed: int | None = None) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._counters: dict[Hashable, Counter] = {}
        # Those of compiled functions, which keep them.
        self._compiled: weakref.WeakSet[Counter] = weakref.WeakSet()
        self.reset(seed)

    def reset(self, seed: IntLike | None) -> None:
        """Starts anew: reproducibly, or where `seed` is None, from a random number."""
        with reading.tracing, self._lock:
            self._chosen = seed is not None
            self._number = secrets.randbits(31) if seed is None else _folded(seed)
            self.seed: Value = np.uint32(self._number)
            # Counters are not made anew: compiled functions go on counting with them.
            for counter in (self, *self._counters.values(), *self._compiled):
                counter.count = np.uint32(0)

    def next(self, op_seed: IntLike | None = None) -> tuple[Value, Value]:
        """The two numbers of the next key. Draws with a seed of their own are counted apart, per seed."""
        own = None if op_seed is None else _folded(op_seed)
        trace, capture = current_trace(), reading.context.capture
        staged = not reading.plain(trace)
        if staged and capture is not None and [*active.trace_stack(trace)][-1] is capture._trace:
            seed, count = self._thread(capture, own)
        elif staged and active.staging():
            seed, count = self._ask(own)
        else:
            seed, count = (draws.stream or self)._count(own)
        for row in draws.rows:
            seed = operation.apply(_row_seed, seed, row)
        return seed, count

    def start(self, own: IntLike | None = None) -> tuple[int, ...]:
        """Numbers to start a separate stream (a stage of a dataset) from: the same for the same `own` seed."""
        if own is not None:
            return self._seed_of(_folded(own)), 0
        return tuple(int(x) for x in self._count(None))

    def branch(self, *numbers: int) -> State:
        """A separate state, determined by `numbers`."""
        branch = State(_mixed(*numbers))
        branch._chosen = self._chosen  # where there is no seed for the process, one of an operation alone decides
        return branch

    def _count(self, own: int | None, kind: int = 0) -> tuple[Value, Value]:
        if own is None and not kind:  # compiled functions count here, too
            counter, seed = cast(Counter, self), self._number
            lock: Any = reading.tracing
        else:
            counter = self._counters.setdefault((own, kind), Counter())
            seed, lock = self._seed_of(own, kind), self._lock
        while True:
            held = counter.count
            if isinstance(held, Tracer):
                with reading.tracing:  # another thread traces a function, and gives the count back when it is done
                    held = counter.count
            count = int(held)  # an array, where a compiled function counted: there is no waiting for it with the lock
            with lock:
                if counter.count is held:
                    reading.use(counter, "count", np.uint32(count))
                    counter.count = np.uint32(count + 1 & 0xFFFFFFFF)
                    return seed, count

    def _seed_of(self, own: int | None, kind: int = 0) -> int:
        # A seed of an operation's own counts even where there is none for the process.
        return _mixed(self._number if self._chosen or own is None else 0, own or 0, 1 + kind)

    def apart(self, own: int) -> Counter:
        """A counter for one operation of a compiled function: as in TensorFlow, each that has a seed counts for itself."""
        counter = Counter(own)
        self._compiled.add(counter)
        return counter

    def _thread(self, capture: Capture, own: int | None) -> tuple[Value, Value]:
        counter = self if own is None else self.apart(own)
        seed = capture.as_input(self, "seed") if own is None else self._seed_of(own)
        count = capture.as_input(counter, "count")
        counter.count = under(capture._trace, operator.add, count, 1)
        return seed, count

    def _ask(self, own: int | None) -> tuple[Value, Value]:
        from jax.experimental import io_callback  # seldom needed

        def ask() -> tuple[Value, Value]:
            # Counted apart: it runs whenever the program gets to it, on a thread of JAX's, beside all other draws.
            seed, count = self._count(own, kind=1)
            return np.uint32(seed), np.uint32(count)

        number = jax.ShapeDtypeStruct((), np.uint32)
        with active.outside():
            return io_callback(ask, (number, number))


@memoised(256)
def _mixed(*numbers: int) -> int:
    return int(np.random.SeedSequence(numbers).generate_state(1)[0]) & _BITS


def _folded(seed: IntLike) -> int:
    """Any integer as 31 bits, without losing the upper ones: a Python number that fits int32 needs no conversion."""
    number = int(whole(seed, "seed")) & 0xFFFFFFFFFFFFFFFF
    return (number ^ (number >> 31) ^ (number >> 62)) & _BITS


_BITS = 0x7FFFFFFF


state = State()


def each_row(row: Array) -> Setting:
    """A block under `jax.vmap`, where `row` counts the rows: each row draws other numbers."""
    return draws.setting(rows=(*draws.rows, row))


def key_of(seed: Value, count: Value) -> Array:
    """The key of a draw. It is computed inside the operation, which saves a call."""
    return jax.random.fold_in(jax.random.key(seed), count)


def _row_seed(seed, row):
    return jax.random.key_data(key_of(seed, row))[0]


def set_seed(seed: IntLike | None) -> None:
    """Makes all that follows reproducible: the same seed, the same numbers; compiled functions draw the same again, too.

    Numbers still differ from call to call. An operation that is given a `seed` has its own sequence.

    Args:
      seed: an integer; None for numbers that differ from run to run.

    The numbers are JAX's, not TensorFlow's.

    >>> import tapejax as tf
    >>> tf.random.set_seed(1)
    >>> a = tf.random.normal([2])
    >>> tf.random.set_seed(1)
    >>> bool(tf.reduce_all(a == tf.random.normal([2])))
    True
    """
    state.reset(seed)


# What gives the two numbers that make the key of a draw of that shape: `_following`, `_stateless` or a `Generator`.
Numbers = Callable[[tuple[int, ...]], tuple[Value, Value]]


class Fixed(NamedTuple):
    """A seed of a stateless function: two integers, which alone determine what is drawn."""

    numbers: TensorLike


def _following(seed: IntLike | Fixed | None) -> Numbers:
    """Draws that follow each other, or with a fixed seed the same one."""
    return _stateless(seed.numbers) if isinstance(seed, Fixed) else lambda shape: state.next(seed)


def _stateless(seed: TensorLike) -> Numbers:
    """Draws that depend on their seed alone."""
    array = raw(seed)
    if array.shape != (2,) or kind_of(array.dtype) not in "iu":
        raise InvalidArgumentError(f"seed must be two integers, shape (2,), got {array.dtype} of shape {array.shape}")
    return lambda shape: tuple(half._array for half in op(_seed, array))


def _seed(seed):
    def folded(number):
        number = number.astype(jnp.uint64 if number.dtype.itemsize == 8 else jnp.uint32)
        return (number ^ (number >> 32 if number.dtype.itemsize == 8 else 0)).astype(jnp.uint32)

    return folded(seed[0]), folded(seed[1])


def draw(fn: Callable, *arrays: Value, **options: Any) -> Tensor:
    """As `op`, but Python numbers stay numbers even where there is no tensor: that is the usual case here."""
    return Tensor(operation.apply(fn, *arrays, **options))


# ---- Functions of the two numbers that make the key ---------------------------------------------------


def _random_normal(seed, count, mean, stddev, shape, dtype):
    return mean + stddev * jax.random.normal(key_of(seed, count), shape, dtype)


def _truncated_normal(seed, count, mean, stddev, shape, dtype):
    return mean + stddev * jax.random.truncated_normal(key_of(seed, count), -2, 2, shape, dtype)


def _random_uniform(seed, count, minval, maxval, shape, dtype):
    return minval + (maxval - minval) * jax.random.uniform(key_of(seed, count), shape, dtype)


def _random_uniform_int(seed, count, minval, maxval, shape, dtype):
    return jax.random.randint(key_of(seed, count), shape, minval, maxval, dtype)


def _all_integers(seed, count, shape, dtype):
    return jax.random.bits(key_of(seed, count), shape, np.dtype(f"uint{8 * dtype.itemsize}")).astype(dtype)


renamed("random_uniform_int", _all_integers)


def _random_gamma(seed, count, alpha, beta, shape, dtype):
    drawn = jax.random.gamma(key_of(seed, count), alpha, shape, dtype) / beta
    return jnp.maximum(drawn, jnp.finfo(dtype).tiny)  # as TensorFlow: never 0, so that there is a logarithm


def _random_poisson(seed, count, lam, shape, dtype):
    ordinary = jnp.isfinite(lam) & (lam > 0)
    drawn = jax.random.poisson(key_of(seed, count), jnp.where(ordinary, lam, 0), shape).astype(dtype)
    if kind_of(drawn.dtype) != "f":
        return drawn
    return jnp.where(ordinary | (lam <= 0), drawn, lam.astype(dtype))  # infinite and nan are what they are


def _random_binomial(seed, count, counts, probs, shape, dtype):
    drawn = jax.random.binomial(key_of(seed, count), counts, probs, shape).astype(dtype)
    return jnp.where(counts == 0, jnp.zeros_like(drawn), drawn)  # for any probability


def _categorical(seed, count, logits, num, dtype):
    logits = jax.lax.stop_gradient(logits)[:, None, :]
    return jax.random.categorical(key_of(seed, count), logits, shape=(len(logits), num)).astype(dtype)


def _shuffle(seed, count, value):
    return jax.lax.stop_gradient(jax.random.permutation(key_of(seed, count), value))  # as TensorFlow


# ---- Distributions, wherever the numbers come from ---------------------------------------------------------


def draw_floats(fn: Callable, numbers: Numbers, shape: ShapeLike, dtype: DTypeLike, *parameters: TensorLike) -> Tensor:
    """A draw of floats of that shape; the parameters broadcast."""
    wanted, sizes = requested(dtype), _sizes(shape)
    if kind_of(wanted) != "f":
        raise TypeError(f"dtype must be a floating point type, got {wanted}")
    arrays = [value if type(value) in (int, float) else raw(value, wanted) for value in parameters]
    return draw(fn, *numbers(sizes), *arrays, shape=sizes, dtype=wanted)


def draw_uniform(
    numbers: Numbers, shape: ShapeLike, minval: TensorLike, maxval: TensorLike, dtype: DTypeLike
) -> Tensor:
    """A draw of floats, or of integers, for which `maxval` must be given."""
    wanted, sizes = requested(dtype), _sizes(shape)
    if kind_of(wanted) not in "iu":
        return draw_floats(_random_uniform, numbers, sizes, wanted, minval, 1 if maxval is None else maxval)
    if maxval is None:
        raise ValueError(f"Must specify maxval for integer dtype {wanted}")
    low, high = raw(minval, wanted), raw(maxval, wanted)
    seen = known(low), known(high)
    if seen[0] is not None and seen[1] is not None and (seen[0] >= seen[1]).any():
        raise InvalidArgumentError(f"random.uniform: Need minval < maxval, got {minval} >= {maxval}")
    return draw(_random_uniform_int, *numbers(sizes), low, high, shape=sizes, dtype=wanted)


def draw_all_integers(numbers: Numbers, shape: ShapeLike, dtype: np.dtype) -> Tensor:
    """A draw of integers of the whole range of `dtype`."""
    sizes = _sizes(shape)
    return draw(_all_integers, *numbers(sizes), shape=sizes, dtype=dtype)


def _draw_gamma(
    numbers: Numbers, shape: ShapeLike, alpha: TensorLike, beta: TensorLike, dtype: DTypeLike, whole: bool
) -> Tensor:
    arrays = [raw(value, requested(dtype)) for value in (alpha, 1.0 if beta is None else beta)]
    return draw_floats(_random_gamma, numbers, _whole(shape, whole, *arrays), dtype, *arrays)


def _draw_poisson(numbers: Numbers, shape: ShapeLike, lam: TensorLike, dtype: DTypeLike, whole: bool) -> Tensor:
    rates = raw(lam)
    sizes = _whole(shape, whole, rates)
    return draw(_random_poisson, *numbers(sizes), rates, shape=sizes, dtype=requested(dtype))


def _sizes(shape: ShapeLike) -> tuple[int, ...]:
    sizes = shape_of(shape)
    if any(isinstance(size, int) and size < 0 for size in sizes):
        raise InvalidArgumentError(f"the sizes of a shape must not be negative, got {sizes}")
    return sizes


def _whole(shape: ShapeLike, whole: bool, *parameters: Array) -> tuple[int, ...]:
    """The shape of a draw: `shape` itself, or, of the functions that are not stateless, so many for each of the parameters."""
    drawn = np.broadcast_shapes(*(array.shape for array in parameters))
    sizes = _sizes(shape)
    return (*sizes[: len(sizes) - len(drawn)], *drawn) if whole else (*sizes, *drawn)


def draw_binomial(
    numbers: Numbers, shape: ShapeLike, counts: TensorLike, probs: TensorLike, dtype: DTypeLike
) -> Tensor:
    """How many of `counts` trials succeed, each with probability `probs`."""
    arrays, sizes = (raw(counts, dtype_hint="float32"), raw(probs)), _sizes(shape)
    return draw(_random_binomial, *numbers(sizes), *arrays, shape=sizes, dtype=requested(dtype))


def _draw_categorical(numbers: Numbers, logits: TensorLike, num_samples: IntLike, dtype: DTypeLike) -> Tensor:
    array, num = raw(logits), int(whole(num_samples, "num_samples"))
    require_kind("categorical", array, FLOAT, "logits")
    if array.ndim != 2:
        raise InvalidArgumentError(f"categorical: logits should be a matrix, got shape {array.shape}")
    wanted = wide("int64") if dtype is None or as_dtype(dtype).name == "int64" else requested(dtype)
    return draw(_categorical, *numbers((num,)), array, num=num, dtype=wanted)


# ---- Draws that follow each other --------------------------------------------------------------------------


def normal(shape, mean=0.0, stddev=1.0, dtype="float32", seed=None, name=None) -> Tensor:
    """Normally distributed numbers. The gradient reaches `mean` and `stddev`."""
    return draw_floats(_random_normal, _following(seed), shape, dtype, mean, stddev)


def truncated_normal(shape, mean=0.0, stddev=1.0, dtype="float32", seed=None, name=None) -> Tensor:
    """Normally distributed numbers, those more than two standard deviations from the mean drawn again."""
    return draw_floats(_truncated_normal, _following(seed), shape, dtype, mean, stddev)


def uniform(shape, minval=0, maxval=None, dtype="float32", seed=None, name=None) -> Tensor:
    """Numbers in [minval, maxval), all equally likely; maxval is 1 by default, and must be given for integers.

    Raises:
      ValueError: `maxval` is missing for an integer `dtype`.
      InvalidArgumentError: minval >= maxval, for integers.
    """
    return draw_uniform(_following(seed), shape, minval, maxval, dtype)


def gamma(shape, alpha: TensorLike, beta=None, dtype="float32", seed=None, name=None) -> Tensor:
    """`shape` numbers from each gamma distribution in `alpha` and `beta`; the gradient reaches both."""
    return _draw_gamma(_following(seed), shape, alpha, beta, dtype, whole=False)


def poisson(shape, lam: TensorLike, dtype="float32", seed=None, name=None) -> Tensor:
    """`shape` numbers from each Poisson distribution in `lam`."""
    return _draw_poisson(_following(seed), shape, lam, dtype, whole=False)


def categorical(logits: TensorLike, num_samples, dtype=None, seed=None, name=None) -> Tensor:
    """For each row of `logits`, `num_samples` classes drawn with those unnormalised log probabilities.

    int64 (int32 while ``jax_enable_x64`` is off).
    """
    return _draw_categorical(_following(seed), logits, num_samples, dtype)


def shuffle(value: TensorLike, seed=None, name=None) -> Tensor:
    """The parts of `value` along its first axis in random order. No gradient passes."""
    return draw(_shuffle, *state.next(seed), raw(value))


# ---- Draws that depend on their seed alone -----------------------------------------------------------------


def stateless_normal(shape, seed, mean=0.0, stddev=1.0, dtype="float32", name=None, alg="auto_select") -> Tensor:
    """As `normal`, but the same `seed`, two integers, always gives the same numbers."""
    return draw_floats(_random_normal, _stateless(seed), shape, dtype, mean, stddev)


def stateless_truncated_normal(
    shape, seed, mean=0.0, stddev=1.0, dtype="float32", name=None, alg="auto_select"
) -> Tensor:
    """As `truncated_normal`, but the same `seed`, two integers, always gives the same numbers."""
    return draw_floats(_truncated_normal, _stateless(seed), shape, dtype, mean, stddev)


def stateless_uniform(shape, seed, minval=0, maxval=None, dtype="float32", name=None, alg="auto_select") -> Tensor:
    """As `uniform`, but the same `seed`, two integers, always gives the same numbers.

    Integers with minval and maxval both None are taken from the whole range of `dtype`.
    """
    if minval is None and maxval is None and kind_of(requested(dtype)) in "iu":
        return draw_all_integers(_stateless(seed), shape, requested(dtype))
    return draw_uniform(_stateless(seed), shape, 0 if minval is None else minval, maxval, dtype)


def stateless_categorical(logits: TensorLike, num_samples, seed, dtype="int64", name=None) -> Tensor:
    """As `categorical`, but the same `seed`, two integers, always gives the same numbers."""
    return _draw_categorical(_stateless(seed), logits, num_samples, dtype)


def stateless_gamma(shape, seed, alpha: TensorLike, beta=None, dtype="float32", name=None) -> Tensor:
    """Numbers from gamma distributions, of the whole `shape`; the same `seed` always gives the same numbers."""
    return _draw_gamma(_stateless(seed), shape, alpha, beta, dtype, whole=True)


def stateless_poisson(shape, seed, lam: TensorLike, dtype="int32", name=None) -> Tensor:
    """Numbers from Poisson distributions, of the whole `shape`; the same `seed` always gives the same numbers."""
    return _draw_poisson(_stateless(seed), shape, lam, dtype, whole=True)


def stateless_binomial(shape, seed, counts: TensorLike, probs: TensorLike, output_dtype="int32", name=None) -> Tensor:
    """Numbers from binomial distributions; the same `seed` always gives the same numbers."""
    return draw_binomial(_stateless(seed), shape, counts, probs, output_dtype)


def fold_in(seed: TensorLike, data: IntLike, alg: str = "auto_select") -> Tensor:
    """A new seed out of a seed and an integer."""
    return draw(_fold_in, *_stateless(seed)(()), raw(data))


def split(seed: TensorLike, num: int = 2, alg: str = "auto_select") -> Tensor:
    """`num` new seeds out of one, shape (num, 2)."""
    return draw(_split, *_stateless(seed)(()), num=int(whole(num, "num")))


def _fold_in(first, second, data):
    return _as_seed(jax.random.fold_in(key_of(first, second), data))


def _split(first, second, num):
    return _as_seed(jax.random.split(key_of(first, second), num))


def _as_seed(keys):
    return jax.lax.bitcast_convert_type(jax.random.key_data(keys), jnp.int32)
