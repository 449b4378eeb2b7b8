"""``tf.random.Generator``: random numbers from a state that the program holds, a Variable like any other.

So a `function` threads it through, a checkpoint saves it, and to read it under a plain ``jax.jit`` is an error. The layout of
the state is TensorFlow's, counter first, and so is how far each draw moves it; the numbers are those of JAX's generator.
"""

from __future__ import annotations

import enum
import math
import secrets
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...jaxprs.types import Value
from ...tape import active, operation
from ..values import reading
from ..values.conversion import is_array_like, raw
from ..values.dtypes import narrowed, requested
from ..values.errors import InvalidArgumentError
from ..values.tensor import Tensor
from ..values.types import Array, DTypeLike, IntLike, IntsLike, ShapeLike, TensorLike
from ..values.variable import Variable
from . import random
from .table import host, kind_of, shape_of, static, wide

# How far one number moves the counter.
STEP = 256


class Algorithm(enum.Enum):
    """TensorFlow's names of generators: they say how long a state is. The numbers are JAX's in each case."""

    PHILOX = 1
    THREEFRY = 2
    AUTO_SELECT = 3


_LENGTH = {Algorithm.PHILOX: 3, Algorithm.THREEFRY: 2}


def _algorithm(alg: Algorithm | str | int) -> Algorithm:
    try:
        algorithm = Algorithm[alg.upper()] if isinstance(alg, str) else Algorithm(getattr(alg, "value", alg))
    except (KeyError, ValueError):
        supported = "'philox', 'threefry' and 'auto_select'"
        raise ValueError(f"Argument `alg` got unsupported value {alg!r}. Supported values are {supported}.") from None
    return Algorithm.PHILOX if algorithm is Algorithm.AUTO_SELECT else algorithm


def _integers(value: IntsLike, argument: str) -> np.ndarray:
    """Python integers of any size, or a tensor of them."""
    return host(value, argument) if is_array_like(value) else np.asarray(value)


def _words(numbers: Iterable[int]) -> np.ndarray:
    """Integers as the words of a state, 64 bits each where there are such types; else folded, unless they fit."""
    word = narrowed(np.dtype("int64"))
    bits = 8 * word.itemsize
    words = []
    for number in map(int, numbers):
        if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
            number &= 0xFFFFFFFFFFFFFFFF
            number ^= number >> bits
        words.append(number & ((1 << bits) - 1))
    return np.array(words, f"uint{bits}").view(word)


def create_rng_state(seed: IntsLike, alg: Algorithm | str | int) -> Tensor:
    """The state of a generator that starts from `seed`: an integer, or a vector of as many as the state is long, or fewer.

    Raises:
      ValueError: `alg` is unknown, or there are too many numbers.

    >>> import tapejax as tf
    >>> tf.random.create_rng_state(1, "philox").numpy().tolist()
    [1, 0, 0]
    """
    return Tensor(raw(_seeded(seed, _algorithm(alg))))


def _seeded(seed: IntsLike, algorithm: Algorithm) -> np.ndarray:
    length, numbers = _LENGTH[algorithm], _integers(seed, "seed")
    if numbers.ndim == 0:
        return _words([int(numbers), *[0] * (length - 1)])
    if numbers.ndim != 1 or not 0 < len(numbers) <= length:
        raise ValueError(f"seed must be an integer or a vector of at most {length} integers, got shape {numbers.shape}")
    return _words([*[0] * (length - len(numbers)), *numbers])


def _advance(state, low, high):
    """The state after a draw, and the two numbers of its key."""
    words = jax.lax.bitcast_convert_type(state, jnp.uint32).reshape(-1)
    key = jax.random.key(0)
    for word in words[1:]:
        key = jax.random.fold_in(key, word)
    unsigned = jax.lax.bitcast_convert_type(state, f"uint{8 * state.dtype.itemsize}")
    counter = unsigned[0] + low.astype(unsigned.dtype)
    unsigned = unsigned.at[0].set(counter)
    if len(state) == 3:  # the counter is two words long
        carry = (counter < low.astype(unsigned.dtype)).astype(unsigned.dtype)
        unsigned = unsigned.at[1].add(carry + high.astype(unsigned.dtype))
    return jax.lax.bitcast_convert_type(unsigned, state.dtype), jax.random.key_data(key)[0], words[0]


class Generator:
    """A stream of random numbers with its own state.

    Args:
      copy_from: a generator whose state and algorithm it starts with.
      state: otherwise, the state: a vector of integers, or a Variable, which is then used as it is.
      alg: otherwise, the algorithm: ``"philox"`` (state of length 3), ``"threefry"`` (2) or ``"auto_select"``.

    Raises:
      ValueError: `alg` is unknown, the state has the wrong length, or both or neither way to make one are given.

    >>> import tapejax as tf
    >>> g = tf.random.Generator.from_seed(1)
    >>> a, b = g.normal([2]), g.normal([2])
    >>> g.reset_from_seed(1)
    >>> bool(tf.reduce_all(g.normal([2]) == a)), bool(tf.reduce_all(a == b))
    (True, False)
    """

    def __init__(
        self,
        copy_from: Generator | None = None,
        state: IntsLike | Variable | None = None,
        alg: Algorithm | str | int | None = None,
    ):
        if copy_from is not None:
            if state is not None or alg is not None:
                raise ValueError("Generator: give copy_from, or state and alg, not both")
            state, alg = raw(copy_from.state), copy_from.algorithm
        if state is None or alg is None:
            raise ValueError("Generator: state and alg must both be given, or copy_from: see Generator.from_seed")
        self._algorithm = _algorithm(alg)
        if not isinstance(state, Variable):
            state = Variable(_state_from(state, _LENGTH[self._algorithm]), name="StateVar", trainable=False)
        self._state = state

    @classmethod
    def from_state(cls, state: IntsLike, alg: Algorithm | str | int) -> Generator:
        """A generator in the given `state`."""
        return cls(state=state, alg=alg)

    @classmethod
    def from_seed(cls, seed: IntsLike, alg: Algorithm | str | int | None = None) -> Generator:
        """A generator that starts from `seed`, an integer or a vector of integers: the same seed, the same numbers."""
        algorithm = _algorithm("auto_select" if alg is None else alg)
        return cls(state=_seeded(seed, algorithm), alg=algorithm)

    @classmethod
    def from_non_deterministic_state(cls, alg: Algorithm | str | int | None = None) -> Generator:
        """A generator that starts from random numbers of the operating system."""
        algorithm = _algorithm("auto_select" if alg is None else alg)
        return cls(state=_words([secrets.randbits(64) for _ in range(_LENGTH[algorithm])]), alg=algorithm)

    # ---- the state ----

    algorithm = property(lambda self: self._algorithm.value)
    state = property(lambda self: self._state, doc="Where it is: the counter, then the key. A checkpoint can save it.")
    key = property(lambda self: self._state[-1])

    def reset(self, state: IntsLike) -> None:
        """Goes to `state`.

        Raises:
          ValueError: it does not have the length of the present one.
        """
        self._state.assign(_state_from(state, self._state.shape[0]))

    def reset_from_seed(self, seed: IntsLike) -> None:
        """Starts again, from `seed`."""
        self._state.assign(_seeded(seed, self._algorithm))

    def skip(self, delta: IntLike) -> Tensor:
        """Moves on as drawing `delta` numbers does, and returns the state before."""
        before, _, _ = self._move((int(host(delta, "delta")),))
        return Tensor(operation.apply(jnp.copy, before))

    def _next(self, shape: tuple[int, ...]) -> tuple[Value, Value]:
        """The two numbers of the key of a draw of that `shape`; moves on."""
        _, seed, count = self._move(shape)
        for row in random.draws.rows:
            seed = operation.apply(random._row_seed, seed, row)
        return seed, count

    def _move(self, shape: tuple[int, ...]) -> tuple[Array, Value, Value]:
        """Moves on as a draw of that `shape` does: the state before, and the two numbers of the key."""
        high, low = divmod(STEP * math.prod(shape), 1 << 32)
        drawn: list[Any] = []

        def advance(held: Array) -> Array:
            new, seed, count = operation.apply(_advance, held, np.uint32(low), np.uint32(high))
            drawn[:] = held, seed, count
            return new

        # Neither the numbers nor the state have a derivative: tapes need not look.
        with active.outside():
            reading.read(self._state)
            self._state._change(advance)
        return tuple(drawn)

    # ---- what it draws ----

    def normal(self, shape, mean=0.0, stddev=1.0, dtype="float32", name=None) -> Tensor:
        """Normally distributed numbers of that `shape`. The gradient reaches `mean` and `stddev`."""
        return random.draw_floats(random._random_normal, self._next, shape, dtype, mean, stddev)

    def truncated_normal(self, shape, mean=0.0, stddev=1.0, dtype="float32", name=None) -> Tensor:
        """Normally distributed numbers, those more than two standard deviations from the mean drawn again."""
        return random.draw_floats(random._truncated_normal, self._next, shape, dtype, mean, stddev)

    def uniform(self, shape, minval=0, maxval=None, dtype="float32", name=None) -> Tensor:
        """Numbers in [minval, maxval), all equally likely; integers of the whole range where both are None.

        Raises:
          ValueError: only one of the two is given, for integers.
          InvalidArgumentError: minval >= maxval, for integers.
        """
        wanted = requested(dtype)
        if kind_of(wanted) in "iu" and (minval is None or maxval is None):
            if minval is None and maxval is None:
                return self.uniform_full_int(shape, dtype)
            raise ValueError(f"minval and maxval must be both None or given for {wanted}; got {minval=}, {maxval=}")
        return random.draw_uniform(self._next, shape, 0 if minval is None else minval, maxval, dtype)

    def uniform_full_int(self, shape: ShapeLike, dtype: DTypeLike | None = None, name: str | None = None) -> Tensor:
        """Integers, each of `dtype` as likely as another. uint64 by default (uint32 while ``jax_enable_x64`` is off)."""
        return random.draw_all_integers(self._next, shape, wide("uint64") if dtype is None else requested(dtype))

    def binomial(self, shape, counts: TensorLike, probs: TensorLike, dtype="int32", name=None) -> Tensor:
        """How many of `counts` trials succeed, each with probability `probs`, which both broadcast to `shape`.

        Raises:
          InvalidArgumentError: they do not broadcast to the end of `shape`.
        """
        sizes, parameters = shape_of(shape), [raw(counts, dtype_hint="float32"), raw(probs)]
        drawn = np.broadcast_shapes(parameters[0].shape, parameters[1].shape)
        if sizes[len(sizes) - len(drawn) :] != drawn:
            raise InvalidArgumentError(f"binomial: shape must end with that of counts and probs, {drawn}; got {sizes}")
        return random.draw_binomial(self._next, sizes, parameters[0], parameters[1], dtype)

    def make_seeds(self, count: IntLike = 1) -> Tensor:
        """Seeds for the ``stateless_`` functions, one in each column: int64 (else int32), shape (2, count)."""
        return self.uniform_full_int([2, int(static(count, "count"))], wide("int64"))

    def split(self, count: IntLike = 1) -> list[Generator]:
        """`count` new generators that are independent of each other and of this one."""
        pairs = host(self.make_seeds(count)).T.tolist()
        length = _LENGTH[self._algorithm]
        states = [_words([*[0] * (length - 1), first ^ (second << 31)]) for first, second in pairs]
        return [Generator(state=state, alg=self._algorithm) for state in states]

    def __repr__(self) -> str:
        return f"<tf.random.Generator {self._algorithm.name.lower()}>"


def _state_from(state: IntsLike, length: int) -> Array:
    if isinstance(state, (list, tuple, np.ndarray)):
        state = _words(np.asarray(state).reshape(-1).tolist())
    array = raw(state)
    if array.shape != (length,):
        raise ValueError(f"Shapes {array.shape} and ({length},) are incompatible: the state has {length} integers")
    return array


_global: Generator | None = None


def get_global_generator() -> Generator:
    """The generator of the process: from a random state, until `set_global_generator`."""
    global _global
    if _global is None:
        _global = Generator.from_non_deterministic_state()
    return _global


def set_global_generator(generator: Generator) -> None:
    """Makes `generator` the one of the process. Functions that were traced before go on with the one they saw."""
    global _global
    _global = generator


def stateless_shuffle(value: TensorLike, seed: TensorLike, alg: str = "auto_select", name: str | None = None) -> Tensor:
    """The parts of `value` along its first axis in an order that depends on `seed`, two integers, alone."""
    return random.draw(random._shuffle, *random._stateless(seed)(()), raw(value))
