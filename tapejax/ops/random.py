"""Random numbers, drawn by ``jax.random`` from one state for the whole process.

A draw is an operation like any other: a function of the two numbers that make its key, which are constants to a tape.
`state` is the only place that knows which numbers come next. What runs at once counts in Python. A `function` that is being
traced takes the count in and gives it back, like a Variable. Any other program under construction (``jax.jit``, ``lax.scan``)
asks for the next numbers whenever it runs. So no draw is ever baked into a program.
"""

from __future__ import annotations

import contextlib
import functools
import operator
import secrets
import threading
import weakref
from collections.abc import Callable, Hashable, Iterator
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from ..core import recorder
from ..core._jax import Tracer, current_trace, under
from ..values import reading
from ..values.dtypes import as_dtype, requested
from ..values.errors import InvalidArgumentError
from ..values.tensor import Tensor, op, raw
from .table import TensorLike, kind_of, known, renamed, shape_of, static, wide


class Counter:
    """How many draws there were: of an operation with the seed `own`, where it has one."""

    def __init__(self, own: int | None = None) -> None:
        self.own = own
        self.count: Any = np.uint32(0)  # of one type, whether 64-bit types are on or off: compiled functions take it in


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

    def reset(self, seed: Any) -> None:
        """Starts anew: reproducibly, or where `seed` is None, from a number that nobody knows."""
        with self._lock:
            self._chosen = seed is not None
            self._number = secrets.randbits(31) if seed is None else _folded(seed)
            self.seed: Any = np.uint32(self._number)
            # Counters are not made anew: compiled functions go on counting with them.
            for counter in (self, *self._counters.values(), *self._compiled):
                counter.count = np.uint32(0)

    def next(self, op_seed: Any = None) -> tuple[Any, Any]:
        """The two numbers of the next key. Draws with a seed of their own are counted apart, per seed."""
        own = None if op_seed is None else _folded(op_seed)
        trace, capture = current_trace(), reading.capturing.capture
        if reading.plain(trace):
            seed, count = (_here.stream or self)._count(own)
        else:
            *_, lowest = recorder.trace_stack(trace)
            if capture is not None and lowest is capture._trace:
                seed, count = self._thread(capture, own)
            elif recorder.staging():
                seed, count = self._ask(own)
            else:
                seed, count = (_here.stream or self)._count(own)
        for row in _here.rows:
            seed = recorder.apply(_of_row, seed, row)
        return seed, count

    def start(self, own: Any = None) -> tuple[int, ...]:
        """Numbers from which something that draws apart (a stage of a dataset) may start: the same for the same `own` seed."""
        if own is not None:
            return self._seed_of(_folded(own)), 0
        return tuple(int(x) for x in self._count(None))

    def branch(self, *numbers: int) -> State:
        """A state of its own, that follows from `numbers`."""
        branch = State(_mixed(*numbers))
        branch._chosen = self._chosen  # where there is no seed for the process, one of an operation alone decides
        return branch

    def _count(self, own: int | None, kind: int = 0) -> tuple[Any, Any]:
        with self._lock:
            if own is None and not kind:
                counter, seed = cast(Counter, self), self._number
            else:
                counter, seed = self._counters.setdefault((own, kind), Counter()), self._seed_of(own, kind)
            if not isinstance(counter.count, Tracer):
                count = int(counter.count)  # an array, where a compiled function counted
                counter.count = np.uint32(count + 1 & 0xFFFFFFFF)
                return seed, count
        with reading.tracing:  # another thread traces a function, and gives the count back when it is done
            pass
        return self._count(own, kind)

    def _seed_of(self, own: int | None, kind: int = 0) -> int:
        # A seed of an operation's own counts even where there is none for the process.
        return _mixed(self._number if self._chosen or own is None else 0, own or 0, 1 + kind)

    def apart(self, own: int) -> Counter:
        """A counter for one operation of a compiled function: as in TensorFlow, each that has a seed counts for itself."""
        counter = Counter(own)
        self._compiled.add(counter)
        return counter

    def _thread(self, capture: Any, own: int | None) -> tuple[Any, Any]:
        counter = self if own is None else self.apart(own)
        seed = capture.adopt(self, "seed") if own is None else self._seed_of(own)
        count = capture.adopt(counter, "count")
        counter.count = under(capture._trace, operator.add, count, 1)
        return seed, count

    def _ask(self, own: int | None) -> tuple[Any, Any]:
        from jax.experimental import io_callback  # seldom needed

        def ask() -> tuple[Any, Any]:
            # Counted apart: it runs whenever the program gets to it, on a thread of JAX's, beside all other draws.
            seed, count = self._count(own, kind=1)
            return np.uint32(seed), np.uint32(count)

        number = jax.ShapeDtypeStruct((), np.uint32)
        with recorder.outside():
            return io_callback(ask, (number, number))


@functools.lru_cache(256)
def _mixed(*numbers: int) -> int:
    return int(np.random.SeedSequence(numbers).generate_state(1)[0]) & _BITS


def _folded(seed: Any) -> int:
    """Any integer as 31 bits, without losing the upper ones: a Python number that fits int32 needs no conversion."""
    number = int(static(seed, "seed")) & 0xFFFFFFFFFFFFFFFF
    return (number ^ (number >> 31) ^ (number >> 62)) & _BITS


_BITS = 0x7FFFFFFF


class _Here(threading.local):
    stream: State | None = None  # what `drawing_from` put in the place of the process's state
    rows: tuple[Any, ...] = ()


_here = _Here()
state = State()


@contextlib.contextmanager
def drawing_from(stream: State) -> Iterator[None]:
    """What runs at once in the body, on this thread, draws from `stream`."""
    before, _here.stream = _here.stream, stream
    try:
        yield
    finally:
        _here.stream = before


@contextlib.contextmanager
def each_row(row: Any) -> Iterator[None]:
    """Under `jax.vmap`, where `row` counts the rows: each of them draws numbers of its own."""
    before, _here.rows = _here.rows, (*_here.rows, row)
    try:
        yield
    finally:
        _here.rows = before


def key_of(seed: Any, count: Any) -> Any:
    """The key of a draw; called inside the operation, so that it costs no call of its own."""
    return jax.random.fold_in(jax.random.key(seed), count)


def _of_row(seed, row):
    return jax.random.key_data(key_of(seed, row))[0]


renamed("row_seed", _of_row)


def set_seed(seed: Any) -> None:
    """Makes all that follows reproducible: the same seed, the same numbers; compiled functions draw the same again, too.

    Numbers still differ from call to call. An operation's own `seed` gives it a sequence of its own.

    Args:
      seed: an integer; None for numbers that nobody can foretell.

    The numbers are JAX's, not TensorFlow's.

    >>> import tapejax as tf
    >>> tf.random.set_seed(1)
    >>> a = tf.random.normal([2])
    >>> tf.random.set_seed(1)
    >>> bool(tf.reduce_all(a == tf.random.normal([2])))
    True
    """
    state.reset(seed)


def _float_dtype(dtype: Any) -> np.dtype:
    wanted = requested(dtype)
    if kind_of(wanted) != "f":
        raise TypeError(f"dtype must be a floating point type, got {wanted}")
    return wanted


def _parameters(dtype: np.dtype, *values: TensorLike) -> list:
    return [value if type(value) in (int, float) else raw(value, dtype) for value in values]


def _draw(fn: Any, *arrays: Any, **options: Any) -> Tensor:
    # As `op`, but Python numbers stay numbers even where there is no tensor: that is the usual case here.
    return Tensor(recorder.apply(fn, *arrays, **options))


# ---- Functions of the two numbers that make the key ---------------------------------------------------


def _normal(seed, count, mean, stddev, shape, dtype):
    return mean + stddev * jax.random.normal(key_of(seed, count), shape, dtype)


def _truncated_normal(seed, count, mean, stddev, shape, dtype):
    return mean + stddev * jax.random.truncated_normal(key_of(seed, count), -2, 2, shape, dtype)


def _uniform(seed, count, minval, maxval, shape, dtype):
    return minval + (maxval - minval) * jax.random.uniform(key_of(seed, count), shape, dtype)


def _integers(seed, count, minval, maxval, shape, dtype):
    return jax.random.randint(key_of(seed, count), shape, minval, maxval, dtype)


def _all_integers(seed, count, shape, dtype):
    return jax.random.bits(key_of(seed, count), shape, np.dtype(f"uint{8 * dtype.itemsize}")).astype(dtype)


def _gamma(seed, count, alpha, beta, shape, dtype):
    shape = (*shape, *jnp.broadcast_shapes(jnp.shape(alpha), jnp.shape(beta)))
    return jax.random.gamma(key_of(seed, count), alpha, shape, dtype) / beta


def _poisson(seed, count, lam, shape, dtype):
    return jax.random.poisson(key_of(seed, count), lam, (*shape, *jnp.shape(lam))).astype(dtype)


def _categorical(seed, count, logits, num, dtype):
    drawn = jax.random.categorical(
        key_of(seed, count), jax.lax.stop_gradient(logits)[:, None, :], shape=(logits.shape[0], num)
    )
    return drawn.astype(dtype)


def _shuffle(seed, count, value):
    return jax.lax.stop_gradient(jax.random.permutation(key_of(seed, count), value))  # as TensorFlow


def _binomial(seed, count, counts, probs, shape, dtype):
    return jax.random.binomial(key_of(seed, count), counts, probs, shape).astype(dtype)


for _fn, _name in (
    (_normal, "random_normal"),
    (_truncated_normal, "truncated_normal"),
    (_uniform, "random_uniform"),
    (_integers, "random_uniform_int"),
    (_all_integers, "random_uniform_int"),
    (_gamma, "random_gamma"),
    (_poisson, "random_poisson"),
    (_categorical, "categorical"),
    (_shuffle, "shuffle"),
    (_binomial, "random_binomial"),
):
    renamed(_name, _fn)


def _draw_uniform(key: Callable[[], tuple], shape: Any, minval: Any, maxval: Any, dtype: Any) -> Tensor:
    wanted, sizes = requested(dtype), shape_of(shape)
    if kind_of(wanted) in "iu":
        if maxval is None:
            raise ValueError(f"Must specify maxval for integer dtype {wanted}")
        low, high = raw(minval, wanted), raw(maxval, wanted)
        seen = known(low), known(high)
        if seen[0] is not None and seen[1] is not None and (seen[0] >= seen[1]).any():
            raise InvalidArgumentError(f"random.uniform: Need minval < maxval, got {minval} >= {maxval}")
        return _draw(_integers, *key(), low, high, shape=sizes, dtype=wanted)
    return _draw(
        _uniform,
        *key(),
        *_parameters(_float_dtype(dtype), minval, 1 if maxval is None else maxval),
        shape=sizes,
        dtype=wanted,
    )


# ---- Draws that follow each other --------------------------------------------------------------------------


def normal(
    shape: Any,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: Any = "float32",
    seed: Any = None,
    name: str | None = None,
) -> Tensor:
    """Normally distributed numbers. The gradient reaches `mean` and `stddev`."""
    wanted = _float_dtype(dtype)
    return _draw(_normal, *state.next(seed), *_parameters(wanted, mean, stddev), shape=shape_of(shape), dtype=wanted)


def truncated_normal(
    shape: Any,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: Any = "float32",
    seed: Any = None,
    name: str | None = None,
) -> Tensor:
    """Normally distributed numbers, those more than two standard deviations from the mean drawn again."""
    wanted = _float_dtype(dtype)
    return _draw(
        _truncated_normal,
        *state.next(seed),
        *_parameters(wanted, mean, stddev),
        shape=shape_of(shape),
        dtype=wanted,
    )


def uniform(
    shape: Any,
    minval: TensorLike = 0,
    maxval: TensorLike = None,
    dtype: Any = "float32",
    seed: Any = None,
    name: str | None = None,
) -> Tensor:
    """Numbers in [minval, maxval), all equally likely; maxval is 1 by default, and must be given for integers.

    Raises:
      ValueError: `maxval` is missing for an integer `dtype`.
      InvalidArgumentError: minval >= maxval, for integers.
    """
    return _draw_uniform(lambda: state.next(seed), shape, minval, maxval, dtype)


def gamma(
    shape: Any,
    alpha: TensorLike,
    beta: TensorLike = None,
    dtype: Any = "float32",
    seed: Any = None,
    name: str | None = None,
) -> Tensor:
    """`shape` numbers from each gamma distribution in `alpha` and `beta`; the gradient reaches both."""
    wanted = _float_dtype(dtype)
    given = raw(alpha, wanted), raw(1.0 if beta is None else beta, wanted)
    return _draw(_gamma, *state.next(seed), *given, shape=shape_of(shape), dtype=wanted)


def poisson(shape: Any, lam: TensorLike, dtype: Any = "float32", seed: Any = None, name: str | None = None) -> Tensor:
    """`shape` numbers from each Poisson distribution in `lam`."""
    return _draw(_poisson, *state.next(seed), raw(lam), shape=shape_of(shape), dtype=requested(dtype))


def categorical(
    logits: TensorLike, num_samples: Any, dtype: Any = None, seed: Any = None, name: str | None = None
) -> Tensor:
    """For each row of `logits`, `num_samples` classes drawn with those unnormalised log probabilities.

    int64 (int32 while ``jax_enable_x64`` is off).
    """
    return _draw_categorical(state.next(seed), logits, num_samples, dtype)


def _draw_categorical(key: tuple, logits: Any, num_samples: Any, dtype: Any) -> Tensor:
    array = raw(logits)
    if array.ndim != 2:
        raise InvalidArgumentError(f"categorical: logits should be a matrix, got shape {array.shape}")
    wanted = wide("int64") if dtype is None or as_dtype(dtype).name == "int64" else requested(dtype)
    return _draw(_categorical, *key, array, num=int(static(num_samples, "num_samples")), dtype=wanted)


def shuffle(value: TensorLike, seed: Any = None, name: str | None = None) -> Tensor:
    """The parts of `value` along its first axis in random order. No gradient passes."""
    return _draw(_shuffle, *state.next(seed), raw(value))


# ---- Draws that depend on their seed alone -----------------------------------------------------------------


def _stateless(seed: TensorLike) -> tuple:
    array = raw(seed)
    if array.shape != (2,) or kind_of(array.dtype) not in "iu":
        raise InvalidArgumentError(f"seed must be two integers, shape (2,), got {array.dtype} of shape {array.shape}")
    halves = op(_halves, array)
    return halves[0]._array, halves[1]._array


def _halves(seed):
    def folded(number):
        number = number.astype(jnp.uint64 if number.dtype.itemsize == 8 else jnp.uint32)
        return (number ^ (number >> 32 if number.dtype.itemsize == 8 else 0)).astype(jnp.uint32)

    return folded(seed[0]), folded(seed[1])


renamed("seed", _halves)


def stateless_normal(
    shape: Any,
    seed: TensorLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: Any = "float32",
    name: str | None = None,
    alg: str = "auto_select",
) -> Tensor:
    """As `normal`, but the same `seed`, two integers, always gives the same numbers."""
    wanted = _float_dtype(dtype)
    return _draw(_normal, *_stateless(seed), *_parameters(wanted, mean, stddev), shape=shape_of(shape), dtype=wanted)


def stateless_truncated_normal(
    shape: Any,
    seed: TensorLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: Any = "float32",
    name: str | None = None,
    alg: str = "auto_select",
) -> Tensor:
    """As `truncated_normal`, but the same `seed`, two integers, always gives the same numbers."""
    wanted = _float_dtype(dtype)
    return _draw(
        _truncated_normal,
        *_stateless(seed),
        *_parameters(wanted, mean, stddev),
        shape=shape_of(shape),
        dtype=wanted,
    )


def stateless_uniform(
    shape: Any,
    seed: TensorLike,
    minval: TensorLike = 0,
    maxval: TensorLike = None,
    dtype: Any = "float32",
    name: str | None = None,
    alg: str = "auto_select",
) -> Tensor:
    """As `uniform`, but the same `seed`, two integers, always gives the same numbers.

    Integers with minval and maxval both None are taken from the whole range of `dtype`.
    """
    wanted = requested(dtype)
    if minval is None and maxval is None and kind_of(wanted) in "iu":
        return _draw(_all_integers, *_stateless(seed), shape=shape_of(shape), dtype=wanted)
    return _draw_uniform(lambda: _stateless(seed), shape, 0 if minval is None else minval, maxval, dtype)


def stateless_categorical(
    logits: TensorLike, num_samples: Any, seed: TensorLike, dtype: Any = "int64", name: str | None = None
) -> Tensor:
    """As `categorical`, but the same `seed`, two integers, always gives the same numbers."""
    return _draw_categorical(_stateless(seed), logits, num_samples, dtype)


def stateless_gamma(
    shape: Any,
    seed: TensorLike,
    alpha: TensorLike,
    beta: TensorLike = None,
    dtype: Any = "float32",
    name: str | None = None,
) -> Tensor:
    """Numbers from gamma distributions, of the whole `shape`; the same `seed` always gives the same numbers."""
    wanted = _float_dtype(dtype)
    given = raw(alpha, wanted), raw(1.0 if beta is None else beta, wanted)
    sizes = shape_of(shape)
    drawn = np.broadcast_shapes(given[0].shape, given[1].shape)
    return _draw(_gamma, *_stateless(seed), *given, shape=sizes[: len(sizes) - len(drawn)], dtype=wanted)


def stateless_poisson(
    shape: Any, seed: TensorLike, lam: TensorLike, dtype: Any = "int32", name: str | None = None
) -> Tensor:
    """Numbers from Poisson distributions, of the whole `shape`; the same `seed` always gives the same numbers."""
    rates, sizes = raw(lam), shape_of(shape)
    return _draw(_poisson, *_stateless(seed), rates, shape=sizes[: len(sizes) - rates.ndim], dtype=requested(dtype))


def stateless_binomial(
    shape: Any,
    seed: TensorLike,
    counts: TensorLike,
    probs: TensorLike,
    output_dtype: Any = "int32",
    name: str | None = None,
) -> Tensor:
    """Numbers from binomial distributions; the same `seed` always gives the same numbers."""
    given = raw(counts, dtype_hint="float32"), raw(probs)
    return _draw(_binomial, *_stateless(seed), *given, shape=shape_of(shape), dtype=requested(output_dtype))


def fold_in(seed: TensorLike, data: Any, alg: str = "auto_select") -> Tensor:
    """A new seed out of a seed and an integer."""
    return _draw(_fold_in, *_stateless(seed), raw(data))


def split(seed: TensorLike, num: int = 2, alg: str = "auto_select") -> Tensor:
    """`num` new seeds out of one, shape (num, 2)."""
    return _draw(_split, *_stateless(seed), num=int(static(num, "num")))


def _fold_in(first, second, data):
    return _as_seed(jax.random.fold_in(key_of(first, second), data))


def _split(first, second, num):
    return _as_seed(jax.random.split(key_of(first, second), num))


def _as_seed(keys):
    return jax.lax.bitcast_convert_type(jax.random.key_data(keys), jnp.int32)


renamed("fold_in", _fold_in)
renamed("split", _split)
