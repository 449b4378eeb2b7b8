"""``tf.data`` over Grain: a `Dataset` is a ``grain.IterDataset`` with TensorFlow's methods, and gives Tensors.

So whatever takes Grain's datasets takes these (Keras's ``fit`` does), and the state of an iterator is Grain's. What it is made
of, and what of that is Grain's, is in `pipeline`.
"""

from __future__ import annotations

import atexit
import enum
import glob
import itertools
import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Iterator as Iteration
from typing import Any

import numpy as np

from ...tape import active
from ..ops.random import draws
from ..ops.random import state as _random_state
from ..ops.table import accepting, host, whole, wide
from ..values import nest, reading
from ..values.conversion import is_array_like, raw
from ..values.dtypes import as_dtype, as_shape, narrowed, requested
from ..values.errors import InvalidArgumentError, OperatorNotAllowedInGraphError, OutOfRangeError
from ..values.missing import missing
from ..values.tensor import Tensor
from ..values.types import DTypeLike, Ignored, IntLike, Nest, ShapeLike, TensorLike
from . import inputs, pipeline
from .description import Json
from .function import function
from .optional import Optional
from .pipeline import (
    ArrayRows,
    Element,
    Pass,
    PythonStage,
    Seed,
    grain,
    iterate,
    map_leaves,
    outcomes,
    own_array,
    returned,
    tensors,
    tracing_here,
    unless_error,
)
from .signatures import Spec, TensorSpec
from .texts import STRING, Text, Texts, shown
from .texts import rows_of as texts_of

__all__ = [
    "AUTOTUNE",
    "Dataset",
    "DatasetSpec",
    "INFINITE_CARDINALITY",
    "Iterator",
    "NumpyIterator",
    "Options",
    "UNKNOWN_CARDINALITY",
    "experimental",
]

AUTOTUNE = -1
INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2

_LOGGER = logging.getLogger("tapejax")

# How many elements `prefetch` keeps ready, and how many datasets `interleave` reads, where that is left to us.
_AHEAD = _CYCLE = 4


_missing_method = missing("tf.data.Dataset")


class _DatasetType(type(grain.IterDataset)):  # type: ignore[misc]
    def __getattr__(cls, name: str) -> Any:
        return _missing_method(name)


Stage = Callable[[Pass], Any]


class Dataset(grain.IterDataset, metaclass=_DatasetType):
    """A sequence of elements, each a tensor or a structure of tensors, made anew whenever it is iterated over.

    Make one with `from_tensor_slices`, `from_tensors`, `from_generator` or `range`.

    >>> import tapejax as tf
    >>> dataset = tf.data.Dataset.from_tensor_slices(([1.0, 2.0, 3.0], [0, 1, 0]))
    >>> for x, y in dataset.batch(2):
    ...     print(x.numpy(), y.numpy())
    [1. 2.] [0 1]
    [3.] [0]

    Functions (`map`, `filter` ...) are Python: they run for each element, on tensors whose values are known. Decorate one with
    `tf.function` to have it compiled. What comes out of an iterator is a constant to every tape.
    """

    _batch_size: int

    # `stage` makes the stages of one pass; `spec` is the element's, or a function that finds it; `python` says whether
    # functions of the user's run in it; `rows` is what it is where that is in memory.
    def __init__(
        self,
        kind: str,
        stage: Stage,
        spec: Spec | Callable[[], Spec],
        count: int,
        python: bool = False,
        rows: ArrayRows | None = None,
    ):
        reading.install_adapters()  # Keras takes datasets through its adapter
        super().__init__()
        self.has_child = True  # so Grain does not wrap the iterator
        self._stage, self._spec, self._count, self._kind = stage, spec, count, kind
        self._rows, self._python = rows, python
        self._options = Options()

    def _then(
        self,
        kind: str,
        stage: Stage,
        count: int | None = None,
        spec: Spec | Callable[[], Spec] | None = None,
        python: bool = False,
        rows: ArrayRows | None = None,
    ) -> Dataset:
        """A dataset of these elements, more or fewer or other ones (if so says `spec`, of a leaf's), made by `stage`."""
        count, spec = self._count if count is None else count, spec or (lambda: self.element_spec)
        made = Dataset(kind, stage, spec, count, python or self._python, rows)
        made._options = self._options
        return made

    def _stepping(
        self, kind: str, steps: Callable[[Iteration[Element], Pass], Iterable[Element]], **about: Any
    ) -> Dataset:
        """`_then` with Python: ``steps(elements, run)``."""
        return self._then(kind, lambda run: PythonStage(lambda: steps(iterate(self._stage(run)), run)), **about)

    def _reordered(self, kind: str, order: pipeline.Order, count: int, fixed: bool = True) -> Dataset:
        """Other, fewer or more of the same elements: ``order(begin, run)`` of the iterators that `begin` makes, which are over
        row numbers where these elements are rows of arrays in memory."""
        rows = self._rows and self._rows.reordered(order, fixed)
        if rows is not None:
            return self._then(kind, lambda run: PythonStage(lambda: rows.elements(run)), count, rows=rows)
        return self._then(kind, lambda run: PythonStage(lambda: order(lambda: iterate(self._stage(run)), run)), count)

    def _leaves(self, leaf: Callable[[TensorSpec], Spec]) -> Callable[[], Spec]:
        """The spec of elements whose tensors have the spec ``leaf(spec of these elements' tensor)``."""
        return lambda: nest.map_structure(leaf, self.element_spec)

    # ---- making one ----

    @staticmethod
    def from_tensor_slices(tensors: Nest, name: str | None = None) -> Dataset:
        """A dataset of the rows of `tensors`: a tensor, array or list, or a tuple or dict of these, of as many rows each.

        Texts (names of files) may be among them, and reach functions as Python's strings (`texts.Text`, a batch of them as
        `texts.Texts`).

        Raises:
          ValueError: one is a scalar, they have different numbers of rows, or there are none.
        """
        columns = _not_empty(tensors)
        flat = nest.flatten(columns)
        if not all(x.ndim for x in flat):
            raise ValueError("Unbatching a tensor is only supported for rank >= 1: from_tensor_slices got a scalar")
        counts = sorted({len(x) for x in flat})
        if len(counts) > 1:
            raise ValueError(f"Dimensions {' and '.join(map(str, counts))} are not compatible: give each as many rows")
        return in_memory("TensorSlice", columns)

    @staticmethod
    def from_tensors(tensors: Nest, name: str | None = None) -> Dataset:
        """A dataset of one element, `tensors`: a tensor, array or list, or a tuple or dict of these."""
        return in_memory("Tensor", nest.map_structure(lambda x: x[None], _not_empty(tensors)))

    @staticmethod
    @accepting("name")
    def list_files(file_pattern: Any, shuffle: bool | None = None, seed: IntLike | None = None) -> Dataset:
        """The names of the files that match a pattern, or one of several: in random order, unless `shuffle` is False.

        Raises:
          InvalidArgumentError: there are none.
        """
        patterns = file_pattern if isinstance(file_pattern, (list, tuple)) else [file_pattern]
        names = sorted({name for pattern in patterns for name in glob.glob(os.fspath(pattern))})
        if not names:
            raise InvalidArgumentError(f"No files matched pattern: {', '.join(map(str, patterns))}")
        files = Dataset.from_tensor_slices(names)
        return files.shuffle(len(names), seed) if shuffle in (None, True) else files

    @staticmethod
    def range(*args: IntLike, output_type: DTypeLike | None = None, name: str | None = None) -> Dataset:
        """The numbers of ``range(*args)``: ``stop``; ``start, stop``; or ``start, stop, step``. int64 (else int32).

        >>> import tapejax as tf
        >>> [x.numpy().item() for x in tf.data.Dataset.range(1, 6, 2)]
        [1, 3, 5]
        """
        if not 1 <= len(args) <= 3:
            raise ValueError(f"Invalid `args`. The length of `args` should be between 1 and 3 but was {len(args)}.")
        ends = [_integer(x, "range") for x in args]
        if ends[2:] == [0]:
            raise InvalidArgumentError("step cannot be zero.")
        dtype = wide("int64") if output_type is None else requested(output_type)
        try:
            numbers = pipeline.Progression(range(*ends), dtype)
        except OverflowError as error:
            raise ValueError(f"Dataset.range{tuple(ends)}: the numbers and their count must fit int64") from error
        return in_memory("Range", numbers)

    @staticmethod
    @accepting("name")
    def from_generator(
        generator: Callable,
        output_types: Nest = None,
        output_shapes: Nest = None,
        args: Sequence[TensorLike] | None = None,
        output_signature: Spec | None = None,
    ) -> Dataset:
        """What ``generator(*args)`` yields, called anew for each pass.

        Args:
          generator: a function that returns something to iterate over.
          output_types, output_shapes: dtypes and shapes in the structure of an element,
          output_signature: or `TensorSpec` in that structure.
          args: tensors for `generator`, which gets NumPy arrays.

        Raises:
          TypeError: `generator` is not callable, or neither `output_signature` nor `output_types` is given.
          InvalidArgumentError (when iterated over): it yields something else.

        >>> import tapejax as tf
        >>> spec = tf.TensorSpec([])
        >>> numbers = tf.data.Dataset.from_generator(lambda: iter([1.0, 2.0]), output_signature=spec)
        >>> [x.numpy().item() for x in numbers]
        [1.0, 2.0]
        """
        if not callable(generator):
            raise TypeError("`generator` must be a Python callable.")
        if output_signature is None:
            if output_types is None:
                raise TypeError("from_generator: give output_signature or output_types, for what the generator yields")
            kinds = returned(as_dtype, output_types)
            flat = nest.flatten(kinds)
            shapes = [None] * len(flat) if output_shapes is None else _shapes_of(output_shapes)
            output_signature = nest.packed(kinds, map(TensorSpec, shapes, flat))
        spec = returned(lambda x: _require(x, TensorSpec, "output_signature must contain TensorSpec"), output_signature)
        arguments = [] if args is None else [host(x) for x in args]

        def steps(run: Pass) -> Iteration[Element]:
            def fit(element: Nest) -> Element:
                with run.settings():
                    return _fitting(element, spec)

            return map(fit, generator(*arguments))

        return _stepping("FlatMap", steps, spec, UNKNOWN_CARDINALITY, python=True)

    @staticmethod
    def zip(*args: Nest, datasets: Nest = None, name: str | None = None) -> Dataset:
        """Elements of several datasets side by side, until one of them ends.

        Args:
          *args: datasets; or one structure (a tuple or dict) of them.

        Raises:
          TypeError: something else is given, or nothing.

        >>> import tapejax as tf
        >>> a, b = tf.data.Dataset.range(2), tf.data.Dataset.range(5, 9)
        >>> [(x.numpy().item(), y.numpy().item()) for x, y in tf.data.Dataset.zip(a, b)]
        [(0, 5), (1, 6)]
        """
        if not args and datasets is None:
            raise TypeError("Must pass at least one dataset to `zip`.")
        if args and datasets is not None:
            raise TypeError("Both `*args` and `datasets` cannot be set.")
        structure = datasets if datasets is not None else args[0] if len(args) == 1 else args
        parts: list[Dataset] = _datasets([structure] if isinstance(structure, list) else nest.flatten(structure), "zip")
        if all(x._rows is not None and x._rows.plain for x in parts) and len({x._count for x in parts}) == 1:
            return in_memory("Zip", map_leaves(lambda x: x._rows.columns, structure))
        finite = [x._count for x in parts if x._count != INFINITE_CARDINALITY]

        def steps(run: Pass) -> Iteration[Element]:
            sides = [outcomes(iterate(x._stage(run))) for x in parts]
            return map(lambda found: nest.packed(structure, map(unless_error, found)), zip(*sides, strict=False))

        spec = lambda: map_leaves(lambda x: x.element_spec, structure)  # noqa: E731
        count = UNKNOWN_CARDINALITY if UNKNOWN_CARDINALITY in finite else min(finite, default=INFINITE_CARDINALITY)
        return _stepping("Zip", steps, spec, count, any(x._python for x in parts))

    @staticmethod
    def sample_from_datasets(
        datasets: Sequence[Dataset],
        weights: TensorLike | None = None,
        seed: IntLike | None = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
    ) -> Dataset:
        """Elements of `datasets` in random order, with probabilities `weights`; of those left when one has ended.

        Each pass is the same unless `rerandomize_each_iteration`.

        Raises:
          ValueError: there are not as many `weights` as datasets.
        """
        parts = _datasets(datasets, "datasets")
        chances = np.ones(len(parts)) if weights is None else np.asarray(host(weights), "float64")
        if chances.shape != (len(parts),):
            raise ValueError(f"weights must have one number for each of the {len(parts)} datasets, got {weights}")
        if not parts:
            raise ValueError("`datasets` should not be empty.")
        spec = parts[0].element_spec
        for part in parts[1:]:
            if not _agree(spec, part.element_spec):
                raise TypeError(f"`datasets` must have compatible elements: {spec} and {part.element_spec}")
            spec = _wider(spec, part.element_spec)
        start = Seed(seed, anew=bool(rerandomize_each_iteration))

        def steps(run: Pass) -> Iteration[Element]:
            sides = [outcomes(iterate(x._stage(run))) for x in parts]
            return pipeline.sampled(sides, chances, run.generator(start), bool(stop_on_empty_dataset))

        endless = any(x._count == INFINITE_CARDINALITY for x in parts)
        count = INFINITE_CARDINALITY if endless else UNKNOWN_CARDINALITY
        return _stepping("DirectedInterleave", steps, spec, count, any(x._python for x in parts))

    # ---- order and number ----

    @accepting("name")
    def shuffle(
        self, buffer_size: IntLike, seed: IntLike | None = None, reshuffle_each_iteration: bool | None = None
    ) -> Dataset:
        """The elements in random order: each is taken out of a buffer of the next `buffer_size`.

        Another order in each pass, unless `reshuffle_each_iteration` is False. The orders follow from `tf.random.set_seed` and
        `seed`.

        Raises:
          InvalidArgumentError: `buffer_size` is not positive.
        """
        size = _integer(buffer_size, "buffer_size")
        if size < 1 and size != UNKNOWN_CARDINALITY:
            raise InvalidArgumentError(f"buffer_size must be greater than zero or UNKNOWN_CARDINALITY, got {size}")
        start, size = Seed(seed, anew=reshuffle_each_iteration is not False), size if size > 0 else 1 << 62
        order = lambda begin, run: pipeline.shuffled(begin(), size, run.generator(start))  # noqa: E731
        return self._reordered("Shuffle", order, self._count, fixed=False)

    def repeat(self, count: IntLike | None = None, name: str | None = None) -> Dataset:
        """`count` passes over the elements, one after the other; without end where it is None or negative."""
        times = -1 if count is None else _integer(count, "count")
        total = self._count * times if self._count > 0 else self._count
        if times < 0 and self._count:
            total = INFINITE_CARDINALITY
        return self._reordered("Repeat", lambda begin, run: pipeline.repeated(begin, times), total if times else 0)

    def take(self, count: IntLike, name: str | None = None) -> Dataset:
        """The first `count` elements; all where it is negative."""
        number = _integer(count, "count")
        if number < 0:
            return self
        total = min(number, self._count) if number and self._count != INFINITE_CARDINALITY else number
        if self._rows is None and number:  # Grain takes at least one
            limit = grain.experimental.LimitIterDataset
            return self._then("Take", lambda run: limit(self._stage(run), number), total)
        return self._reordered("Take", lambda begin, run: pipeline.sliced(begin(), 0, number), total)

    def skip(self, count: IntLike, name: str | None = None) -> Dataset:
        """What follows the first `count` elements; nothing where it is negative."""
        number = _integer(count, "count")
        if number < 0:
            return self.take(0)
        total = max(self._count - number, 0) if self._count >= 0 else self._count
        return self._reordered("Skip", lambda begin, run: pipeline.sliced(begin(), number), total)

    def shard(self, num_shards: IntLike, index: IntLike, name: str | None = None) -> Dataset:
        """Every `num_shards`-th element, from number `index` on.

        Raises:
          InvalidArgumentError: `index` is not in [0, num_shards).
        """
        every, first = _size(num_shards, "num_shards"), _integer(index, "index")
        if not 0 <= first < every:
            raise InvalidArgumentError(f"index must be between 0 and {every - 1}, got {first}")
        total = len(range(first, self._count, every)) if self._count >= 0 else self._count
        return self._reordered("Shard", lambda begin, run: pipeline.sliced(begin(), first, step=every), total)

    def concatenate(self, dataset: Dataset, name: str | None = None) -> Dataset:
        """These elements, then those of `dataset`.

        Raises:
          TypeError: their elements differ in structure or dtype.
        """
        _datasets([dataset], "concatenate")
        one, other = self.element_spec, dataset.element_spec
        if not _agree(one, other):
            raise TypeError(f"Incompatible dataset elements: {one} and {other}")
        counts = self._count, dataset._count
        total = sum(counts) if min(counts) >= 0 else max(x for x in counts if x < 0)
        steps = lambda coming, run: itertools.chain(coming, iterate(dataset._stage(run)))  # noqa: E731
        spec = lambda: _wider(one, other)  # noqa: E731
        return self._stepping("Concatenate", steps, count=total, spec=spec, python=dataset._python)

    def cache(self, filename: str = "", name: str | None = None) -> Dataset:
        """Keeps the elements of the first whole pass in memory, for all later ones.

        Raises:
          NotImplementedError: `filename` is given.
        """
        if filename:
            raise NotImplementedError("cache(filename): leave the name out to cache in memory, or use numpy.save")
        if self._rows is not None and self._rows.fixed:
            return self  # in memory already
        kept: list[list[Element]] = []
        steps = lambda coming, run: iter(kept[0]) if kept else pipeline.keeping(coming, kept, self._count)  # noqa: E731
        return self._stepping("Cache", steps)

    def prefetch(self, buffer_size: IntLike, name: str | None = None) -> Dataset:
        """Makes elements ahead of time, on a thread of Grain's, where functions of the user's take part in making them.

        Arrays in memory are not worth a thread: indexing a batch is quicker than passing it between threads.

        Raises:
          InvalidArgumentError: `buffer_size` is negative and not AUTOTUNE.
        """
        size = _integer(buffer_size, "buffer_size")
        if size < AUTOTUNE:
            raise InvalidArgumentError(f"buffer_size must be >= 0 or tf.data.AUTOTUNE, got {size}")
        prefetched = _AHEAD if size == AUTOTUNE else size

        def stage(run: Pass) -> grain.IterDataset:
            if not prefetched or not self._python or tracing_here():
                return self._stage(run)
            before, run.threaded = self._stage(run), True
            return grain.experimental.ThreadPrefetchIterDataset(before, prefetch_buffer_size=prefetched)

        return self._then("Prefetch", stage, rows=self._rows)

    # ---- batches ----

    @accepting("num_parallel_calls deterministic name")
    def batch(self, batch_size: IntLike, drop_remainder: bool = False) -> Dataset:
        """`batch_size` elements at a time, stacked; the last batch may be smaller, or with `drop_remainder` is left out.

        Args:
          num_parallel_calls, deterministic: taken for TensorFlow's sake.

        Raises:
          InvalidArgumentError: `batch_size` is not positive; or, when iterated over, shapes differ.
        """
        size, drop, rows = _size(batch_size, "batch_size"), bool(drop_remainder), self._rows
        first = size if drop else None

        def stage(run: Pass) -> grain.IterDataset:
            if rows is not None:
                return PythonStage(lambda: rows.elements(run, size, drop))
            return self._stage(run).batch(size, drop_remainder=drop, batch_fn=pipeline.stacked)

        spec = self._leaves(lambda x: TensorSpec([first, *x.shape], x.dtype))
        made = self._then("Batch", stage, self._batches(size, drop), spec)
        made._batch_size = size  # by which Keras tells batches
        return made

    def _batches(self, size: int, drop: bool) -> int:
        return self._count if self._count < 0 else self._count // size if drop else -(-self._count // size)

    @accepting("name")
    def padded_batch(
        self, batch_size: IntLike, padded_shapes: Nest = None, padding_values: Nest = None, drop_remainder: bool = False
    ) -> Dataset:
        """As `batch`, but elements are filled up to a common shape.

        Args:
          padded_shapes: shapes in the structure of an element; None in one, or for all, is the largest size in the batch.
          padding_values: what to fill up with, in the structure of an element or one for all; zeros by default.

        Raises:
          ValueError: these do not have the structure of an element.
          DataLossError (when iterated over): an element is larger than its padded shape.

        >>> import tapejax as tf
        >>> rows = tf.data.Dataset.range(1, 4).map(lambda n: tf.fill([n.numpy()], n))
        >>> [x.numpy().tolist() for x in rows.padded_batch(3)]
        [[[1, 0, 0], [2, 2, 0], [3, 3, 3]]]
        """
        size, drop, leaves = _size(batch_size, "batch_size"), bool(drop_remainder), nest.flatten(self.element_spec)
        shapes = [None] * len(leaves) if padded_shapes is None else _shapes_of(padded_shapes)
        values = [None] if padding_values is None else nest.flatten(padding_values)
        values = values * len(leaves) if len(values) == 1 else values
        if not all(isinstance(x, TensorSpec) for x in leaves):
            raise TypeError(f"padded_batch takes datasets of tensors; these are of {self.element_spec}")
        if not len(leaves) == len(shapes) == len(values):
            raise ValueError("padded_shapes and padding_values must have the structure of an element")
        padded = [_padded_shape(shape, leaf) for shape, leaf in zip(shapes, leaves, strict=True)]
        values = [_padding(x, leaf) for x, leaf in zip(values, leaves, strict=True)]

        def fill(elements: Sequence[Element]) -> Element:
            about = iter(zip(padded, values, strict=True))
            return pipeline.by_column(lambda column: pipeline.padded(column, *next(about)), elements)

        first = size if drop else None
        specs = (TensorSpec([first, *shape], leaf.dtype) for shape, leaf in zip(padded, leaves, strict=True))
        spec = nest.packed(self.element_spec, specs)
        stage = lambda run: self._stage(run).batch(size, drop_remainder=drop, batch_fn=fill)  # noqa: E731
        return self._then("PaddedBatch", stage, self._batches(size, drop), spec)

    def unbatch(self, name: str | None = None) -> Dataset:
        """The rows of each element as elements of their own."""

        def rows(element: Element) -> Iteration[Element]:
            if isinstance(element, Exception):
                return iter([element])
            flat = nest.flatten(element)
            if not all(map(np.ndim, flat)) or len({len(x) for x in flat}) > 1:
                text = f"unbatch: an element whose parts have the shapes {[*map(np.shape, flat)]}"
                return iter([InvalidArgumentError(text)])
            return (nest.packed(element, iter(row)) for row in zip(*flat, strict=True))

        shapes = [x.shape for x in nest.flatten(self.element_spec)]
        if any(shape.rank == 0 for shape in shapes):
            raise ValueError("Cannot unbatch an input with scalar components.")
        first = {shape[0] if shape.rank else None for shape in shapes}
        if len(first - {None}) > 1:
            raise ValueError(f"unbatch: an element's parts differ in their numbers of rows: {shapes}")
        size = first.pop() if len(first) == 1 else None
        total = self._count if self._count == INFINITE_CARDINALITY else UNKNOWN_CARDINALITY
        total = self._count * size if self._count >= 0 and size is not None else total
        steps = lambda coming, run: itertools.chain.from_iterable(map(rows, outcomes(coming)))  # noqa: E731
        spec = self._leaves(lambda x: TensorSpec(None if x.shape.rank is None else x.shape[1:], x.dtype))
        return self._stepping("Unbatch", steps, count=total, spec=spec)

    def rebatch(self, batch_size: IntLike, drop_remainder: bool = False, name: str | None = None) -> Dataset:
        """Batches of another size."""
        return self.unbatch().batch(batch_size, drop_remainder)

    @accepting("name")
    def window(
        self, size: IntLike, shift: IntLike | None = None, stride: IntLike = 1, drop_remainder: bool = False
    ) -> Dataset:
        """Datasets of `size` elements each: a new one begins every `shift` elements, and takes every `stride`-th element.

        >>> import tapejax as tf
        >>> found = tf.data.Dataset.range(5).window(3, shift=1, drop_remainder=True)
        >>> [x.numpy().tolist() for x in found.flat_map(lambda window: window.batch(3))]
        [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
        """
        number, by, drop = _size(size, "size"), _size(stride, "stride"), bool(drop_remainder)
        step, reach = number if shift is None else _size(shift, "shift"), (number - 1) * by + 1
        full = max(0, (self._count - reach) // step + 1)
        total = self._count if self._count < 0 else full if drop else -(-self._count // step)
        steps = lambda coming, run: pipeline.windows(outcomes(coming), number, step, by, drop)  # noqa: E731
        made = lambda coming, run: map(_window_of, steps(coming, run))  # noqa: E731
        return self._stepping("Window", made, count=total, spec=self._leaves(DatasetSpec))

    # ---- functions of the user's ----

    @accepting(
        "num_parallel_calls deterministic synchronous use_unbounded_threadpool name", use_unbounded_threadpool=False
    )
    def map(self, map_func: Callable) -> Any:
        """`map_func` of each element. The components of a tuple come as arguments.

        Args:
          map_func: takes tensors and returns tensors or numbers, or a structure of them.
          num_parallel_calls, ...: taken for TensorFlow's sake: elements are made one after the other, and XLA computes on all
            cores.

        >>> import tapejax as tf
        >>> dataset = tf.data.Dataset.from_tensor_slices(([1.0, 2.0], [3.0, 4.0])).map(lambda x, y: {"sum": x + y})
        >>> [element["sum"].numpy().item() for element in dataset]
        [4.0, 6.0]
        """
        if isinstance(map_func, grain.transforms.Map):  # the caller uses this as a Grain dataset
            return grain.IterDataset.map(self, map_func)
        call = _caller(map_func, "map_func")
        spec = lambda: self._spec_after(map_func, call)  # noqa: E731
        return self._then("Map", lambda run: self._stage(run).map(call(run)), spec=spec, python=True)

    def _spec_after(self, fn: Callable, call: Callable[[Pass], Callable]) -> Spec:
        """What `fn` makes of elements: found by tracing it at two values for each unknown size, else by one element."""
        spec = self.element_spec
        try:
            specs = []
            for size in (3, 7):
                sample = nest.map_structure(lambda x, size=size: _filled(x, size), spec)
                traced = function(lambda *args: returned(_require_tensor, fn(*args)))
                arguments = sample if type(sample) is tuple else (sample,)
                specs.append(traced.get_concrete_function(*arguments).structured_outputs)
            return _wider(*specs)
        except Exception:  # its Python depends on values, or returns datasets
            made = self._after(lambda coming, run: map(call(run), coming))
            defined = all(x.shape.is_fully_defined() for x in nest.flatten(spec) if isinstance(x, TensorSpec))
            return made if defined else nest.map_structure(_any_first_size, made)

    def _after(self, steps: Callable[[Iteration[Element], Pass], Iterable[Element]]) -> Spec:
        """The spec of what `steps` makes of the elements, by the first one that it makes."""
        run = Pass()
        with active.outside():
            for element in steps(iterate(self._stage(run)), run):
                return nest.map_structure(_spec_of, element)
        raise ValueError("the element_spec of an empty dataset is unknown if a function makes its elements")

    def filter(self, predicate: Callable, name: str | None = None) -> Any:
        """The elements for which `predicate` is true.

        Raises:
          ValueError (when iterated over): it returns something else than a boolean scalar.
        """
        call = _caller(predicate, "predicate", _truth)
        stage = lambda run: self._stage(run).filter(call(run))  # noqa: E731
        return self._then("Filter", stage, UNKNOWN_CARDINALITY, python=True)

    def take_while(self, predicate: Callable, name: str | None = None) -> Dataset:
        """The elements up to the first for which `predicate` is false."""
        call = _caller(predicate, "predicate", _truth)
        steps = lambda coming, run: itertools.takewhile(call(run), coming)  # noqa: E731
        return self._stepping("TakeWhile", steps, count=UNKNOWN_CARDINALITY, python=True)

    def flat_map(self, map_func: Callable, name: str | None = None) -> Dataset:
        """The elements of the datasets that `map_func` makes of each element, one dataset after the other."""
        return self._interleaved("FlatMap", map_func, 1, 1)

    @accepting("num_parallel_calls deterministic name")
    def interleave(
        self, map_func: Callable, cycle_length: IntLike | None = None, block_length: IntLike | None = None
    ) -> Dataset:
        """As `flat_map`, but `cycle_length` of the datasets at a time, `block_length` elements of each in turn."""
        cycle = _CYCLE if cycle_length in (None, AUTOTUNE) else _size(cycle_length, "cycle_length")
        block = 1 if block_length is None else _size(block_length, "block_length")
        return self._interleaved("Interleave", map_func, cycle, block)

    def _interleaved(self, kind: str, map_func: Callable, cycle: int, block: int) -> Dataset:
        call = _caller(map_func, "map_func", lambda x: _require(x, Dataset, "`map_func` must return a `Dataset`"))

        def steps(coming: Iteration[Element], run: Pass) -> Iteration[Element]:
            made = map(call(run), coming)
            return pipeline.interleaved(map(lambda x: outcomes(iterate(x._stage(run))), made), cycle, block)

        def spec() -> Spec:
            return self._after(lambda coming, run: map(call(run), coming)).element_spec

        return self._stepping(kind, steps, count=UNKNOWN_CARDINALITY, spec=spec, python=True)

    def scan(self, initial_state: Nest, scan_func: Callable, name: str | None = None) -> Dataset:
        """What ``scan_func(state, element)``, which returns ``(new state, output)``, outputs for each element.

        Raises:
          TypeError (when iterated over): it returns no pair, or a state of another structure or dtype than it was given.
        """
        call, start = _caller(scan_func, "scan_func"), map_leaves(own_array, initial_state)

        def steps(coming: Iteration[Element], run: Pass) -> Iteration[Element]:
            state, fn = start, call(run)

            def step(element: Element) -> Element:
                nonlocal state
                pair = fn((state, element))
                if not isinstance(pair, tuple) or len(pair) != 2:
                    raise TypeError(f"`scan_func` must return a pair of the new state and the output, got {pair!r}")
                new, output = pair
                _require_state(state, new)
                state = new
                return output

            return map(step, coming)

        return self._stepping("Scan", steps, spec=lambda: self._after(steps), python=True)

    def reduce(self, initial_state: Nest, reduce_func: Callable, name: str | None = None) -> Nest:
        """``reduce_func(state, element)`` over all elements: the last state.

        Raises:
          TypeError: `reduce_func` returns another structure or dtype than it was given.

        >>> import tapejax as tf
        >>> tf.data.Dataset.range(5).reduce(0.0, lambda total, x: total + tf.cast(x, tf.float32)).numpy().item()
        10.0
        """
        _require_values()
        run, state = Pass(), map_leaves(own_array, initial_state)
        call = _caller(reduce_func, "reduce_func")(run)
        with active.outside():
            for element in iterate(self._stage(run)):
                new = call((state, element))
                _require_state(state, new)
                state = new
            return tensors(state)

    def apply(self, transformation_func: Callable) -> Any:
        """``transformation_func(self)``."""
        if not callable(transformation_func):  # Grain's own transformations
            return grain.IterDataset.apply(self, transformation_func)
        return transformation_func(self)

    def enumerate(self, start: IntLike = 0, name: str | None = None) -> Dataset:
        """Pairs of a number, int64 (else int32), and an element."""
        first, kind = _integer(start, "start"), wide("int64")
        steps = lambda coming, run: zip(map(kind.type, itertools.count(first)), coming)  # noqa: B905, E731
        return self._stepping("Enumerate", steps, spec=lambda: (TensorSpec([], kind), self.element_spec))

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Dataset:
        """The elements that can be made: one whose function raises an error is left out.

        Args:
          log_warning: whether the errors are logged.

        >>> import tapejax as tf
        >>> dataset = tf.data.Dataset.from_tensor_slices([1.0, 0.0, 4.0])
        >>> inverse = dataset.map(lambda x: tf.debugging.check_numerics(1.0 / x, "1 / x"))
        >>> [x.numpy().item() for x in inverse.ignore_errors()]
        [1.0, 0.25]
        """

        def made(element: Element | Exception) -> bool:
            failed = isinstance(element, Exception)
            if failed and log_warning:
                _LOGGER.warning("Dataset.ignore_errors left out an element: %s", element)
            return not failed

        steps = lambda coming, run: filter(made, outcomes(coming))  # noqa: E731
        return self._stepping("IgnoreErrors", steps, count=UNKNOWN_CARDINALITY)

    def unique(self, name: str | None = None) -> Dataset:
        """Each element once. They must be single tensors."""
        return self._stepping("Unique", lambda coming, run: pipeline.unique(coming), count=UNKNOWN_CARDINALITY)

    # ---- iterating and describing ----

    def __iter__(self) -> Iterator:
        return Iterator(self)

    _runs = inputs.runs  # how a loop in a `function` takes them

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        """The number of elements.

        Raises:
          TypeError: it is infinite or not known.
        """
        if self._count < 0:
            unknown = self._count == UNKNOWN_CARDINALITY
            raise TypeError("The dataset length is unknown." if unknown else "The dataset is infinite.")
        return self._count

    def cardinality(self, name: str | None = None) -> Tensor:
        """The number of elements, or ``tf.data.INFINITE_CARDINALITY`` or ``tf.data.UNKNOWN_CARDINALITY``."""
        return Tensor(raw(np.asarray(self._count, wide("int64"))))

    @property
    def element_spec(self) -> Spec:
        """The structure of an element, with a `TensorSpec` for each tensor."""
        if callable(self._spec):
            self._spec = self._spec()
        return self._spec

    def as_numpy_iterator(self) -> NumpyIterator:
        """An iterator over the elements as NumPy arrays.

        >>> import tapejax as tf
        >>> list(map(int, tf.data.Dataset.range(3).as_numpy_iterator()))
        [0, 1, 2]
        """
        return NumpyIterator(self)

    def get_single_element(self, name: str | None = None) -> Nest:
        """The only element.

        Raises:
          InvalidArgumentError: there are none, or several.
        """
        elements = list(self.take(2))
        if len(elements) != 1:
            raise InvalidArgumentError(f"Dataset had {'more than one element' if elements else 'no elements'}.")
        return elements[0]

    def with_options(self, options: Options, name: str | None = None) -> Dataset:
        """The same dataset; options are stored, and have no effect: see `Options`."""
        made = self._then("Options", self._stage, rows=self._rows)
        made._options = options
        return made

    def options(self) -> Options:
        return self._options

    def __getattr__(self, name: str) -> Any:
        return _missing_method(name)

    def __repr__(self) -> str:
        try:
            spec = self.element_spec
        except Exception:  # a repr does not fail
            spec = "?"
        return f"<_{self._kind}Dataset element_spec={spec}>"

    __str__ = __repr__


def in_memory(kind: str, columns: Element) -> Dataset:
    """A dataset of the rows of arrays, or of what can be indexed like them."""
    count = len(nest.flatten(columns)[0])
    rows = ArrayRows(columns, lambda run: range(count))
    spec = nest.map_structure(_spec_of_rows, columns)
    return Dataset(kind, lambda run: PythonStage(lambda: rows.elements(run)), spec, count, rows=rows)


def _spec_of_rows(x: np.ndarray) -> TensorSpec:
    return TensorSpec(x.shape[1:], STRING if x.dtype == object else x.dtype)


def loaded(files: Dataset, load: Callable[[Text], np.ndarray | Text], spec: TensorSpec) -> Dataset:
    """The elements of `files` with ``load(name)``, of that `spec`, in the place of a file's name: the element itself, or the
    first part of a pair."""
    pairs = isinstance(files.element_spec, tuple)

    def one(element: Element) -> Element:
        return (load(element[0]), element[1]) if pairs else load(element)

    stage = lambda run: files._stage(run).map(one)  # noqa: E731
    return files._then("Map", stage, spec=(spec, files.element_spec[1]) if pairs else spec, python=True)


def _stepping(
    kind: str,
    steps: Callable[[Pass], Iterable[Element]],
    spec: Spec | Callable[[], Spec],
    count: int,
    python: bool = False,
) -> Dataset:
    """A dataset that Python makes."""
    return Dataset(kind, lambda run: PythonStage(lambda: steps(run)), spec, count, python)


def _window_of(elements: Sequence[Any]) -> Element:
    return pipeline.by_column(_window, [unless_error(x) for x in elements])


def _window(column: Sequence[np.ndarray]) -> Dataset:
    """A dataset of the elements in a window."""
    if len({np.shape(x) for x in column}) == 1:
        return in_memory("Window", pipeline.stack(column))
    return _stepping("Window", lambda run: column, TensorSpec(None, column[0].dtype), len(column))


# ---- functions of the user's ----------------------------------------------------------------------------------------


def _caller(fn: Callable, argument: str, check: Callable[[Element], Any] = lambda x: x) -> Callable[[Pass], Callable]:
    """`fn` for each pass, as a function of elements. Each pass draws random numbers of its own."""
    if not callable(fn):
        raise TypeError(f"`{argument}` must be callable, got {fn!r}")
    seed = Seed()

    def of_pass(run: Pass) -> Callable[[Element], Any]:
        stream = _random_state.branch(*run.numbers(seed))

        def call(element: Element) -> Any:
            with run.settings(), active.outside(), draws.setting(stream=stream):
                arguments = tensors(element)
                try:
                    result = reading.run(True, fn, *(arguments if type(arguments) is tuple else (arguments,)))
                except StopIteration as error:  # else it would end the dataset
                    raise InvalidArgumentError(f"`{argument}` raised StopIteration") from error
                return check(returned(_leaf, result))

        return call

    return of_pass


def _leaf(x: TensorLike | Text | Dataset | None) -> np.ndarray | Text | Dataset:
    if isinstance(x, Dataset):
        return x
    if x is None:
        raise TypeError("a function of a tf.data.Dataset returned None: it must return tensors, or a structure of them")
    texts = texts_of(x)
    return np.asarray(raw(x)) if texts is None else texts


def _require_tensor(x: TensorLike | Dataset | None) -> Tensor:
    if x is None or isinstance(x, Dataset):
        raise TypeError("no tensor")
    return Tensor(raw(x))


def _spec_of(x: np.ndarray | Text | Dataset) -> Spec:
    if isinstance(x, Dataset):
        return DatasetSpec(x.element_spec)
    return TensorSpec(np.shape(x), STRING if isinstance(x, Text) or x.dtype == object else x.dtype)


def _truth(value: object) -> bool:
    if not isinstance(value, np.ndarray) or value.dtype.kind != "b" or value.ndim:
        raise ValueError(f"`predicate` must return a tf.bool scalar tensor, but it returned {value!r}")
    return bool(value)


def _require_state(old: Element, new: Element) -> None:
    if not _agree(old, new):
        one, other = (nest.map_structure(TensorSpec.from_tensor, x) for x in (old, new))
        raise TypeError(f"The element types for the new state must match the initial state: {one}, got {other}.")


def _require_values() -> None:
    reading.require_python("iterating over a tf.data.Dataset")
    if active.staging():
        raise OperatorNotAllowedInGraphError(
            "Iterating over a tf.data.Dataset is not possible in jax.jit or lax.scan: the elements would be baked into the "
            "program. Iterate outside, and call the compiled function with each element."
        )


# ---- arguments and specs --------------------------------------------------------------------------------------------


def _integer(value: IntLike, argument: str) -> int:
    """An integer argument, which may be a tensor."""
    return int(whole(value, argument))


def _size(value: IntLike, argument: str) -> int:
    size = _integer(value, argument)
    if size < 1:
        raise InvalidArgumentError(f"{argument} must be greater than zero, got {size}")
    return size


def _require(value: object, kind: type, rule: str) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{rule}, got {value!r}")
    return value


def _datasets(values: Sequence[object], name: str) -> list[Dataset]:
    rule = f"The argument to `{name}` must be a tf.data.Dataset or a structure of them"
    return [_require(value, Dataset, rule) for value in values]


def _not_empty(tensors: Nest) -> Element:
    """Arrays of our own in a structure of tensors, which has some."""
    columns = map_leaves(_column, tensors)
    if not nest.flatten(columns):
        raise ValueError("Invalid `tensors`: `tensors` should not be empty.")
    return columns


def _column(value: TensorLike) -> np.ndarray:
    """`own_array`; texts are an array of objects, whose rows are no arrays."""
    texts = texts_of(value)
    return own_array(value) if texts is None else np.asarray(texts, object)


def _agree(one: Element, other: Element) -> bool:
    """Whether two structures are alike, of the same dtypes."""
    try:
        nest.assert_same_structure(one, other)
        return all(x.dtype == y.dtype for x, y in zip(nest.flatten(one), nest.flatten(other), strict=True))
    except (TypeError, ValueError):
        return False


def _wider(one: Spec, other: Spec) -> Spec:
    """The spec that elements of both specs fit: sizes that differ become None."""

    def both(x: TensorSpec, y: TensorSpec) -> TensorSpec:
        alike = x.shape.rank is not None and x.shape.rank == y.shape.rank
        sizes = [a if a == b else None for a, b in zip(x.shape, y.shape, strict=True)] if alike else None
        return TensorSpec(sizes, x.dtype)

    return nest.map_structure(both, one, other)


def _filled(spec: TensorSpec, size: int) -> TensorSpec:
    if spec.shape.rank is None:
        raise ValueError("a shape of unknown rank")
    return TensorSpec([size if n is None else n for n in spec.shape], spec.dtype)


def _padding(value: TensorLike | None, spec: TensorSpec) -> np.ndarray:
    """What an element is filled up with."""
    if spec.dtype == STRING:
        return np.asarray(Text("") if value is None else texts_of(value), object)
    dtype = narrowed(np.dtype(spec.dtype.as_numpy_dtype))
    filler = np.zeros((), dtype) if value is None else np.asarray(raw(value))
    if filler.ndim or filler.dtype != dtype:
        raise (ValueError if filler.ndim else TypeError)(
            f"padding_values must be scalars of the dtypes of the elements, {spec.dtype.name}; got {value!r}"
        )
    return filler


def _any_first_size(spec: Spec) -> Spec:
    return TensorSpec([None, *spec.shape[1:]], spec.dtype) if isinstance(spec, TensorSpec) and spec.shape.rank else spec


def _shapes_of(shapes: Nest) -> list[ShapeLike]:
    """The shapes in a structure: a list is a shape, and so is a tuple of sizes."""
    if isinstance(shapes, Mapping):
        return [x for key in sorted(shapes) for x in _shapes_of(shapes[key])]
    if isinstance(shapes, tuple) and not hasattr(shapes, "as_list") and not all(map(_is_size, shapes)):
        return [x for part in shapes for x in _shapes_of(part)]
    return [shapes]


def _is_size(x: object) -> bool:
    return isinstance(x, (int, np.integer))


def _padded_shape(shape: ShapeLike | None, spec: TensorSpec) -> list[int | None]:
    """What elements are filled up to. A size that is None or -1 is the largest in the batch; without a shape all sizes are."""
    if hasattr(shape, "dtype"):
        shape = np.asarray(shape).tolist()
    if isinstance(shape, (list, tuple)):
        shape = [None if _is_size(size) and size == -1 else size for size in shape]
    wanted = as_shape(shape)
    if wanted.rank is None and spec.shape.rank is None:
        raise ValueError("padded_shapes must be given where the rank of elements is not known")
    if wanted.rank is None:
        return [None] * spec.shape.rank
    if spec.shape.rank not in (None, wanted.rank):
        raise ValueError(f"The padded shape {list(wanted)} is not compatible with elements of shape {spec.shape}")
    return list(wanted)


def _fitting(element: Nest, spec: Spec) -> Element:
    """What a generator yielded, as an element of that `spec`."""
    if isinstance(spec, TensorSpec):
        try:
            if spec.dtype == STRING and (texts := texts_of(element)) is not None:
                return texts
            array = np.array(element.numpy() if is_array_like(element) else element, requested(spec.dtype))
        except (TypeError, ValueError) as error:
            text = f"`generator` yielded {element!r}, no {spec.dtype.name} tensor: {error}"
            raise InvalidArgumentError(text) from None
        if not spec.shape.is_compatible_with(array.shape):
            raise InvalidArgumentError(
                f"`generator` yielded an element of shape {array.shape} where an element of shape {spec.shape} was expected."
            )
        return array
    if isinstance(spec, Mapping):
        return nest._like(spec, {key: _fitting(element[key], spec[key]) for key in spec})
    if not hasattr(element, "__len__") or len(element) != len(spec):
        raise InvalidArgumentError(f"`generator` yielded {element!r} where {len(spec)} parts were expected: {spec}")
    return nest.maker(spec)([_fitting(x, s) for x, s in zip(element, spec, strict=True)])


# ---- iterators ------------------------------------------------------------------------------------------------------


class Iterator(grain.DatasetIterator):
    """Gives the elements of a `Dataset`, one by one. Made by ``iter(dataset)``.

    `get_state` says where it is, as data that JSON can hold; `set_state` goes there, also in another process.
    """

    def __init__(self, dataset: Dataset):
        _require_values()
        self._dataset = dataset
        self._turn = threading.RLock()  # of the threads that share this iterator
        self._begin(Pass())
        super().__init__()
        _open.add(self)

    def _begin(self, run: Pass) -> None:
        quiet = grain.experimental.DatasetOptions(filter_warn_threshold_ratio=None)  # a filter may drop what it likes
        self._run, self._ended = run, False
        self._inner = iterate(grain.experimental.WithOptionsIterDataset(self._dataset._stage(run), quiet))

    def _next(self) -> Element:
        _require_values()
        # A thread that traces holds a lock. A thread of `prefetch`, or the one whose turn it is, may wait for it.
        tracing = tracing_here()
        if (self._run.threaded and tracing) or not self._turn.acquire(blocking=not tracing):
            raise RuntimeError("an iterator over a Dataset that was made outside a tf.function cannot go on inside it")
        try:
            if self._ended:  # Grain's thread has gone: its queue would be waited for without end
                raise StopIteration
            with active.outside():
                return next(self._inner)
        except StopIteration:
            self._ended = True
            raise
        finally:
            self._turn.release()

    def __next__(self) -> Nest:
        element = self._next()
        with active.outside():
            return tensors(element)

    def get_next(self, name: str | None = None) -> Nest:
        """The next element.

        Raises:
          OutOfRangeError: there is none.
        """
        for element in self:
            return element
        raise OutOfRangeError("End of sequence")

    def get_next_as_optional(self) -> Optional:
        """The next element, or that there is none."""
        return Optional(self.element_spec, *itertools.islice(self, 1))

    element_spec = property(lambda self: self._dataset.element_spec)

    def get_state(self) -> Json:
        with self._turn:
            return {"stages": self._inner.get_state(), "random": [list(numbers) for numbers in self._run.known]}

    def set_state(self, state: Json) -> None:
        with self._turn:
            self._begin(Pass(state["random"]))
            self._inner.set_state(state["stages"])

    def close(self) -> None:
        if not getattr(self, "_closed", True):  # its construction may have failed
            self._inner.close()
            self._inner = iterate(PythonStage(lambda: ()))
            super().close()

    def __repr__(self) -> str:
        return f"<tf.data.Iterator of {self._dataset!r}>"

    __str__ = __repr__


# Grain's threads cannot be ended once Python takes its modules apart.
_open: weakref.WeakSet[Iterator] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for iterator in list(_open):
        iterator.close()


class NumpyIterator(Iterator):
    """Gives the elements of a `Dataset` as NumPy arrays."""

    def __next__(self) -> Nest:
        def own(x: Any) -> Any:
            shown_x = shown(x)
            if isinstance(shown_x, (Text, Texts)):
                return shown_x.numpy()
            return NumpyIterator(x) if isinstance(x, Dataset) else np.array(x)[()]

        return nest.map_structure(own, self._next())


class DatasetSpec:
    """What is known of a dataset that is part of an element (see `Dataset.window`)."""

    def __init__(self, element_spec: Spec, dataset_shape: Ignored = ()):
        self.element_spec = element_spec

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DatasetSpec) and self.element_spec == other.element_spec

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return f"DatasetSpec({self.element_spec}, TensorShape([]))"


class _AnyAttributes:
    """Attributes of any name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return None


class Options(_AnyAttributes):
    """What TensorFlow's pipelines can be tuned with. It is kept and does nothing here: nothing is reordered or rewritten."""

    def __init__(self) -> None:
        for name in ("autotune", "experimental_distribute", "experimental_optimization", "threading"):
            setattr(self, name, _AnyAttributes())


class AutoShardPolicy(enum.IntEnum):
    """How TensorFlow divides a dataset among workers. It is kept in `Options` and does nothing: `DATA` is what happens."""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class _Experimental:
    """Older names."""

    AUTOTUNE = AUTOTUNE
    INFINITE_CARDINALITY = INFINITE_CARDINALITY
    UNKNOWN_CARDINALITY = UNKNOWN_CARDINALITY
    AutoShardPolicy = AutoShardPolicy
    Optional = Optional
    cardinality = staticmethod(Dataset.cardinality)

    def __getattr__(self, name: str) -> Any:
        return missing("tf.data.experimental")(name)


experimental = _Experimental()
__getattr__ = missing("tf.data")


def __dir__() -> list[str]:
    return sorted(__all__)
