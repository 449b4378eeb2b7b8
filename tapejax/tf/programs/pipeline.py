"""What a ``tf.data.Dataset`` is made of: elements, a pass over Grain's stages, and rows of arrays in memory.

Stages pass NumPy arrays; only the user's functions and loops get Tensors, new ones each time, which are constants to a
tape.

What Grain does and what not:

* ``map``, ``filter``, ``batch`` of what has no rows, ``take`` and the thread of ``prefetch`` are Grain's stages.
* Arrays in memory stay arrays: shuffling, repeating and batching them moves row numbers, and a batch is one NumPy look-up.
  Read as a ``grain.MapDataset`` they cost 15 to 20 microseconds an element, 640 a batch of 32.
* Grain's shuffles are global or keep to windows, its ``repeat`` goes through the same order again, its caches belong to one
  iterator. TensorFlow's do otherwise, so these are ours, and short.
* No processes are started, ever, and no thread but for ``prefetch`` of functions of the user's.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import operator
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np

from ...jaxprs import fence
from ...tape import active
from ..ops.random import state as random_state
from ..ops.table import host
from ..values import nest
from ..values.conversion import raw
from ..values.dtypes import requested
from ..values.errors import DataLossError, InvalidArgumentError, extra_missing
from ..values.staging import tracing
from ..values.tensor import Tensor
from ..values.types import IntLike, Number, TensorLike
from .texts import Text, shown

try:
    import grain
except ImportError as error:  # pragma: no cover
    raise extra_missing("tf.data", "Grain", "data") from error


# ---- elements -------------------------------------------------------------------------------------------------------
#
# An element is an array or a structure of arrays: tuples, named tuples and dicts. A list is an array, but for one that a
# function returns, which is a tuple, as in TensorFlow.
Element: TypeAlias = Any  # as the user has it, with Tensors for the arrays, it is a Nest


def map_leaves(leaf: Callable, structure: Element) -> Element:
    """``leaf(x)`` for each part that is not a tuple, a dict or an object of a class that `nest` takes apart."""
    if isinstance(structure, Mapping):
        return nest._like(structure, {key: map_leaves(leaf, x) for key, x in structure.items()})
    kind: Any = type(structure)
    if isinstance(structure, tuple) or nest.is_own_kind(kind):
        return nest.maker(structure)([map_leaves(leaf, x) for x in nest._children(structure)])
    return leaf(structure)


def returned(leaf: Callable, result: Any) -> Element:
    """`map_leaves` of what a function returned."""
    return map_leaves(leaf, tuple(result) if isinstance(result, list) else result)


def own_array(value: TensorLike) -> np.ndarray:
    """A read-only NumPy copy of `value`, in the dtype that its tensor would have."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        array = np.array(value, requested(value.dtype))
    else:
        with active.outside():
            array = host(raw(value), "what a tf.data.Dataset is made of")
    array.flags.writeable = False
    return array


# Arrays may share memory with their source, which is read-only.
_place = jax.jit(lambda *arrays: arrays)


def tensors(element: Element) -> Element:
    """An element with Tensors, for the user."""
    leaves = nest.flatten(element)
    if not all(map(_is_numeric, leaves)):  # windows are datasets, and there are texts
        return nest.map_structure(lambda x: Tensor(_place(x)[0]) if _is_numeric(x) else shown(x), element)
    placed = map(Tensor, _place(*leaves))
    return tuple(placed) if _is_flat(element, leaves) else nest.packed(element, placed)


def _is_numeric(x: Any) -> bool:
    return hasattr(x, "dtype") and x.dtype != object


def _is_flat(element: Element, leaves: Sequence[Any]) -> bool:
    """Whether `element` is a tuple of just its `leaves`."""
    return type(element) is tuple and len(element) == len(leaves) and all(map(operator.is_, element, leaves))


def stacked(elements: Sequence[Element]) -> Element:
    """A batch of elements."""
    return by_column(stack, elements)


def by_column(make: Callable[[Sequence[np.ndarray]], Any], elements: Sequence[Element]) -> Element:
    """`make` of what elements have in each place, in the structure of an element."""
    return nest.packed(elements[0], map(make, zip(*map(nest.flatten, elements), strict=True)))


def stack(column: Sequence[np.ndarray]) -> np.ndarray:
    if isinstance(column[0], Text):
        return np.asarray(column, object)
    try:
        return np.stack(column)
    except ValueError:
        shapes = sorted({np.shape(x) for x in column})
        raise InvalidArgumentError(
            f"Cannot batch tensors with different shapes: {', '.join(map(str, shapes))}. Make them equal in map, or use "
            "padded_batch"
        ) from None


# ---- one pass -------------------------------------------------------------------------------------------------------


class Seed:
    """What a random stage starts from, and how many passes over it have begun: with `anew`, each draws its own numbers."""

    def __init__(self, seed: IntLike | None = None, anew: bool = True):
        self.numbers = list(random_state.start(seed))
        self.anew = anew
        self.passes = 0


class Pass:
    """One pass over a whole dataset: where its random stages start, and the thread and settings in which it was started.

    `known` holds numbers and pass for each random stage, in the order in which they are reached; those of an earlier pass make
    this one equal to it.
    """

    def __init__(self, known: Sequence[Sequence[int]] = ()):
        self.known = [list(numbers) for numbers in known]
        self.threaded = False  # whether a stage has a thread of its own
        self._stages: dict[int, tuple[Seed, int, Iterator[int]]] = {}
        self._thread = threading.get_ident()
        self._settings: list[tuple[Callable, Any]] = [
            (jax.enable_x64, fence.settings.jax_enable_x64),
            (jax.default_device, fence.settings.jax_default_device),
        ]

    def numbers(self, seed: Seed) -> list[int]:
        """The numbers from which the random stage with `seed` starts now."""
        _, place, before = self._stages.setdefault(id(seed), (seed, len(self._stages), itertools.count()))
        if place == len(self.known):
            self.known.append([*seed.numbers, seed.passes])
        *numbers, begun = self.known[place]
        if not seed.anew:
            return numbers
        seed.passes += 1
        return [*numbers, begun + next(before)]

    def generator(self, seed: Seed) -> np.random.Generator:
        return np.random.default_rng(self.numbers(seed))

    @contextlib.contextmanager
    def settings(self) -> Iterator[None]:
        """On a thread of ``prefetch``: the settings of the thread that started the pass; and no `function` is traced meanwhile,
        because the Variables that the user's functions may read hold tracers then."""
        if threading.get_ident() == self._thread:
            yield
            return
        with contextlib.ExitStack() as stack:
            stack.enter_context(tracing)
            for setting, value in self._settings:
                stack.enter_context(setting(value))
            yield


def tracing_here() -> bool:
    """Whether this thread is tracing a `function` (and is in an `init_scope`): a thread beside it would wait for it."""
    return tracing._is_owned()  # type: ignore[attr-defined]  # as threading.Condition tests a lock


class PythonStage(grain.IterDataset):
    """Python's iteration as a stage of Grain's. Its state is a count: restoring skips that number of elements."""

    def __init__(self, make: Callable[[], Iterable[Element]]):
        super().__init__()
        self._make = make

    def __iter__(self) -> _PythonIterator:
        return _PythonIterator(self._make)


class _PythonIterator(grain.DatasetIterator):
    _steps: Iterator[Element] | None
    _count: int

    def __init__(self, make: Callable[[], Iterable[Element]]):
        super().__init__()
        self._make = make
        self.set_state({"count": 0})

    def __next__(self) -> Element:
        if self._steps is None:
            self._steps = iter(self._make())
            for _ in itertools.islice(self._steps, self._count):
                pass
        element = next(self._steps)
        self._count += 1
        return unless_error(element)

    def get_state(self) -> dict[str, int]:
        return {"count": self._count}

    def set_state(self, state: dict[str, int]) -> None:
        self._count, self._steps = state["count"], None


def iterate(stage: grain.IterDataset) -> grain.DatasetIterator:
    """An iterator over a stage."""
    stage.has_child = True  # else Grain would wrap the iterator, and its class again at every pass
    return iter(stage)


# ---- errors ---------------------------------------------------------------------------------------------------------
#
# After an error an iterator goes on, as TensorFlow's does. A generator cannot: what it reads are `outcomes`, and it hands errors
# on as if they were elements.


def attempt(fn: Callable, *args: Any) -> Any:
    """What `fn` returns, or its error.

    A generator must not catch it: `unittest` clears the frames of an error's traceback, which ends a generator among them.
    """
    try:
        return fn(*args)
    except StopIteration:
        raise
    except Exception as error:
        return error


def outcomes(coming: Iterator[Any]) -> Iterator[Any]:
    """What an iterator gives, and its errors as elements; row numbers have none."""
    again = itertools.repeat(coming)
    return map(functools.partial(attempt, next), again) if isinstance(coming, grain.DatasetIterator) else coming


def unless_error(element: Element | Exception) -> Element:
    """An element, unless it is an error."""
    if isinstance(element, Exception):
        raise element
    return element


# ---- rows of arrays in memory ---------------------------------------------------------------------------------------


class Progression:
    """The numbers of a `range` as an array that is not in memory: a row is computed when it is read.

    >>> numbers = Progression(range(0, 10**12, 5), np.dtype("float32"))
    >>> numbers.shape, numbers[2], numbers[np.array([0, 1])]
    ((200000000000,), np.float32(10.0), array([0., 5.], dtype=float32))
    """

    ndim = 1

    def __init__(self, numbers: range, dtype: np.dtype):
        self._start, self._step = np.int64(numbers.start), np.int64(numbers.step)
        self.shape, self.dtype = (len(numbers),), dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, row: int | np.ndarray) -> Any:
        return (self._start + self._step * row).astype(self.dtype)


def sliced(items: Iterable[Any], start: int, stop: int | None = None, step: int = 1) -> Iterable[Any]:
    """``items[start:stop:step]`` of what may have no end, or raise errors, which end nothing."""
    if isinstance(items, range):
        return items[start:stop:step]
    kept = (i >= start and (i - start) % step == 0 for i in itertools.count())
    return itertools.compress(items if stop is None else itertools.islice(items, stop), kept)


Order = Callable[[Callable[[], Iterable[Any]], "Pass"], Iterable[Any]]


class ArrayRows:
    """Arrays whose rows are the elements, and their order: a function that gives the row numbers, for each pass.

    `plain`: it is all rows, one after the other. `fixed`: it is the same in each pass.
    """

    def __init__(
        self, columns: Element, order: Callable[[Pass], Iterable[int]], plain: bool = True, fixed: bool = True
    ):
        self.columns, self.order, self.plain, self.fixed = columns, order, plain, fixed

    def reordered(self, order: Order, fixed: bool) -> ArrayRows:
        """The same arrays, ``order(begin, run)`` of their order, which `begin` begins anew."""
        return ArrayRows(self.columns, lambda run: order(lambda: self.order(run), run), False, self.fixed and fixed)

    def elements(self, run: Pass, size: int | None = None, drop: bool = False) -> Iterator[Element]:
        """The rows, or batches of `size` rows; a smaller last batch is left out with `drop`."""
        flat, order = nest.flatten(self.columns), iter(self.order(run))
        chosen: Iterable[int | np.ndarray] = batches(order, size, drop) if size else order
        if _is_flat(self.columns, flat):
            return (tuple([x[i] for x in flat]) for i in chosen)
        return (nest.packed(self.columns, (x[i] for x in flat)) for i in chosen)


def batches(order: Iterator[int], size: int, drop: bool = False) -> Iterator[np.ndarray]:
    """The numbers in arrays of `size`; the last one may be shorter, or with `drop` is left out.

    >>> [x.tolist() for x in batches(iter(range(5)), 2)]
    [[0, 1], [2, 3], [4]]
    """
    while len(batch := np.fromiter(itertools.islice(order, size), np.int64)) > (size - 1 if drop else 0):
        yield batch


def shuffled(coming: Iterable[Element], size: int, generator: np.random.Generator) -> Iterator[Element]:
    """The items through a buffer of that `size`: each new item replaces a random one, which is yielded."""
    coming = outcomes(iter(coming))
    buffer = list(itertools.islice(coming, size))
    picks: list[int] = []
    for item in coming:
        if not picks:
            picks = generator.integers(len(buffer), size=1024).tolist()
        i = picks.pop()
        yield buffer[i]
        buffer[i] = item
    yield from (buffer[i] for i in generator.permutation(len(buffer)).tolist())


def interleaved(datasets: Iterator[Iterator[Element]], cycle: int, block: int) -> Iterator[Element]:
    """What `datasets` give, of `cycle` of them at a time, `block` elements of each in turn.

    >>> "".join(interleaved(map(iter, ["aaa", "bbb", "ccc"]), 2, 2))
    'aabbabccc'
    """
    slots: list[Iterator[Element] | None] = [None] * cycle
    turn, ended = 0, False
    while not ended or any(slots):
        if slots[turn] is None and not ended:
            if isinstance(dataset := attempt(next, datasets, None), Exception):
                yield dataset
                continue
            slots[turn], ended = dataset, dataset is None
        count = 0
        for element in itertools.islice(slots[turn] or (), block):
            count += 1
            yield element
        if count < block:
            slots[turn] = None
        turn = (turn + 1) % cycle


def sampled(
    sides: Sequence[Iterator[Element]], chances: np.ndarray, generator: np.random.Generator, stop: bool
) -> Iterator[Element]:
    """What `sides` give, each time one that is drawn with the probabilities `chances`; with `stop`, until one has ended."""
    left = chances.copy()
    while left.sum() > 0:
        i = generator.choice(len(left), p=left / left.sum())
        yield from (element := list(itertools.islice(sides[i], 1)))
        if not element:
            left[i] = 0
            if stop:
                return


def repeated(once: Callable[[], Iterable[Element]], times: int) -> Iterator[Element]:
    """What `once` gives, called `times` times; without end where that is negative."""
    for _ in itertools.repeat(None) if times < 0 else range(times):
        coming = outcomes(iter(once()))
        yield from (first := list(itertools.islice(coming, 1)))
        if not first and times < 0:
            return  # and it would be for ever
        yield from coming


def windows(coming: Iterator[Element], size: int, shift: int, stride: int, drop: bool) -> Iterator[list[Element]]:
    """Lists of `size` items: a new one begins every `shift` items, and takes every `stride`-th item.

    >>> list(windows(iter(range(5)), 2, 2, 1, False))
    [[0, 1], [2, 3], [4]]
    """
    reach = (size - 1) * stride + 1
    held: list[Element] = []
    while True:
        held += itertools.islice(coming, reach - len(held))
        if not held or (drop and len(held) < reach):
            return
        yield held[::stride]
        for _ in itertools.islice(coming, max(shift - len(held), 0)):
            pass
        del held[:shift]


def keeping(coming: Iterator[Element], kept: list[list[Element]], count: int) -> Iterator[Element]:
    """The items, which are added to `kept`, as one list, when all have come: with the last one where their number is known."""
    seen: list[Element] = []
    for item in outcomes(coming):
        seen.append(item)
        if len(seen) == count:
            break
        yield item
    if not any(isinstance(item, Exception) for item in seen):
        kept[:] = [seen]
    yield from seen[-1:] if len(seen) == count else ()


def unique(coming: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """Each array once."""
    seen: set[tuple[tuple[int, ...], bytes]] = set()

    def new(x: np.ndarray) -> bool:
        before = len(seen)
        seen.add((x.shape, x.tobytes()))
        return len(seen) > before

    return filter(new, coming)


def padded(column: Sequence[np.ndarray], wanted: Sequence[int | None], value: Number) -> np.ndarray:
    """A batch of arrays filled up with `value` to a shape; where a size in it is None, to the largest."""
    if isinstance(column[0], Text):
        return stack(column)
    if len(wanted) != np.ndim(column[0]):
        raise ValueError(
            f"the padded shape {tuple(wanted)} does not have the rank of the elements, {np.ndim(column[0])}"
        )
    largest = [max(sizes) for sizes in zip(*map(np.shape, column), strict=True)]
    sizes = [most if size is None else size for size, most in zip(wanted, largest, strict=True)]
    if any(most > size for most, size in zip(largest, sizes, strict=True)):
        raise DataLossError(f"an element of shape {tuple(largest)} is larger than its padded shape {tuple(wanted)}")
    filled = np.full((len(column), *sizes), value, column[0].dtype)
    for i, x in enumerate(column):
        place: Any = (i, *map(slice, np.shape(x)))
        filled[place] = x
    return filled
