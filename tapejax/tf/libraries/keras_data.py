"""Keras's functions that make datasets, ``tf.keras.utils.image_dataset_from_directory`` and its kin, with `tapejax.data`.

Keras finds the files, their labels and their order; what it makes with ``tf.data`` is made here, by NumPy: images each have a
size of their own, and to compile for each takes long.
"""

from __future__ import annotations

import functools
import importlib
import random
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ops import audio, encoded, image
from ..values import keras_fence as fence
from ..values.errors import DTypeError
from ..values.missing import MISSING
from ..values.types import DTypeLike, Nest
from . import adapters as libraries
from .keras_adapter import arrays_in

# Keras's arguments
Paths = Sequence[str]
Labels = Sequence[int] | None


def _files(paths: Paths, labels: Labels, label_mode: str | None, num_classes: int) -> Any:
    """A dataset of the names of files, or of pairs of these and their labels."""
    dataset = libraries.package.data.Dataset
    names = dataset.from_tensor_slices(list(paths))
    if not label_mode:
        return names
    numbers = np.asarray(labels, "int32")
    columns: dict[str, Callable[[], np.ndarray]] = {
        "int": lambda: numbers,
        "binary": lambda: numbers[:, None].astype("float32"),
        "categorical": lambda: (numbers[:, None] == np.arange(num_classes)).astype("float32"),
    }
    return dataset.zip((names, dataset.from_tensor_slices(columns[label_mode]())))


def _loaded(
    files: Any,
    load: Callable[[str], Any],
    shape: Sequence[int | None],
    dtype: DTypeLike,
    shuffle: bool,
    buffer: int | None,
    seed: int | None,
) -> Any:
    if shuffle:
        files = files.shuffle(buffer or 1024, seed=seed)
    return importlib.import_module("tapejax.tf.programs.data").loaded(
        files, load, libraries.package.TensorSpec(shape, dtype)
    )


def _bytes_of(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _adapt_to_tensors(kind: Any) -> None:
    adapt = kind.adapt
    kind.adapt = functools.wraps(adapt)(
        lambda self, data, *args, **kwargs: adapt(self, arrays_in(data), *args, **kwargs)
    )


# ---- images ---------------------------------------------------------------------------------------------------------


def _images(
    image_paths: Paths,
    image_size: Sequence[int],
    num_channels: int,
    labels: Labels,
    label_mode: str | None,
    num_classes: int,
    interpolation: str,
    data_format: str,
    crop_to_aspect_ratio: bool = False,
    pad_to_aspect_ratio: bool = False,
    shuffle: bool = False,
    shuffle_buffer_size: int | None = None,
    seed: int | None = None,
) -> Any:
    if pad_to_aspect_ratio and crop_to_aspect_ratio:
        raise ValueError("Only one of `pad_to_aspect_ratio`, `crop_to_aspect_ratio` can be set to `True`.")
    fit = _cropped if crop_to_aspect_ratio else _padded if pad_to_aspect_ratio else image.resized
    first = data_format == "channels_first"

    def load(path: str) -> np.ndarray:
        pixels = fit(encoded.pixels_of(_bytes_of(path), num_channels), image_size, interpolation)
        pixels = pixels.astype("float32" if interpolation != "nearest" else pixels.dtype)
        return pixels.transpose(2, 0, 1) if first else pixels

    shape = (num_channels, *image_size) if first else (*image_size, num_channels)
    dtype = "float32" if interpolation != "nearest" else "uint8"
    files = _files(image_paths, labels, label_mode, num_classes)
    return _loaded(files, load, shape, dtype, shuffle, shuffle_buffer_size, seed)


def _cropped(x: np.ndarray, size: Sequence[int], method: str) -> np.ndarray:
    """The largest part in the middle of the proportions of `size`, resized."""
    height, width = x.shape[:2]
    rows = max(min(height, int(np.float32(width * size[0]) / np.float32(size[1]))), 1)
    columns = max(min(width, int(np.float32(height * size[1]) / np.float32(size[0]))), 1)
    top, left = (height - rows) // 2, (width - columns) // 2
    return image.resized(x[top : top + rows, left : left + columns], size, method)


def _padded(x: np.ndarray, size: Sequence[int], method: str) -> np.ndarray:
    """The whole image, resized with its proportions, amid zeros."""
    inner, spare = image.sizes_with_pad(x.shape[:2], size)
    resized = image.resized(x, inner, method)
    places = [(before, wanted - n - before) for before, wanted, n in zip(spare, size, inner, strict=True)]
    return np.pad(resized, [*places, (0, 0)])


# ---- texts and sounds -----------------------------------------------------------------------------------------------


def _texts(
    file_paths: Paths,
    labels: Labels,
    label_mode: str | None,
    num_classes: int,
    max_length: int | None,
    shuffle: bool = False,
    shuffle_buffer_size: int | None = None,
    seed: int | None = None,
) -> Any:
    text = libraries.package.data.texts_of
    files = _files(file_paths, labels, label_mode, num_classes)
    load = lambda path: text(_bytes_of(path)[:max_length])  # noqa: E731
    return _loaded(files, load, (), "string", shuffle, shuffle_buffer_size, seed)


def _sounds(
    file_paths: Paths,
    labels: Labels,
    label_mode: str | None,
    num_classes: int,
    sampling_rate: int | None,
    output_sequence_length: int | None,
    ragged: bool,
    shuffle: bool = False,
    shuffle_buffer_size: int | None = None,
    seed: int | None = None,
) -> Any:
    if ragged:
        raise NotImplementedError(
            "audio_dataset_from_directory(ragged=True): JAX has no ragged tensors. Leave it out, and each batch is padded to its "
            "longest sound, or give output_sequence_length."
        )
    samples = -1 if output_sequence_length is None else output_sequence_length
    load = lambda path: audio.read_wav(_bytes_of(path), samples=samples)[0]  # noqa: E731
    files = _files(file_paths, labels, label_mode, num_classes)
    return _loaded(files, load, (output_sequence_length, None), "float32", shuffle, shuffle_buffer_size, seed)


class _NoResampling:
    """In the place of tensorflow_io, which Keras resamples with."""

    @property
    def available(self) -> bool:
        raise NotImplementedError(
            "audio_dataset_from_directory(sampling_rate=...): sounds are read as they are. Resample them in dataset.map, with "
            "scipy.signal.resample_poly for instance."
        )


# ---- series ---------------------------------------------------------------------------------------------------------


class _WindowRows:
    """Rows that begin at `starts` in an array and take `length` of its rows, each `rate`-th; read when they are indexed."""

    def __init__(self, data: np.ndarray, starts: np.ndarray, length: int, rate: int):
        self._data, self._starts, self._places = data, starts, np.arange(0, length * rate, rate)
        self.shape, self.dtype = (len(starts), len(self._places), *data.shape[1:]), data.dtype

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, row: int | np.ndarray) -> np.ndarray:
        return self._data[self._starts[row][..., None] + self._places]


def _series(
    data: Any,
    targets: Any,
    sequence_length: int,
    sequence_stride: int,
    sampling_rate: int,
    batch_size: int | None,
    shuffle: bool,
    seed: int | None,
    start_index: int | None,
    end_index: int | None,
) -> Any:
    programs: Any = libraries.package.data
    first, last = start_index or 0, len(data) if end_index is None else end_index
    count = last - first - (sequence_length - 1) * sampling_rate
    starts = np.arange(0, count if targets is None else min(count, len(targets)), sequence_stride)
    if shuffle:
        seed = np.random.randint(10**6) if seed is None else seed
        np.random.RandomState(seed).shuffle(starts)
    own = programs.pipeline.own_array
    columns: Any = _WindowRows(own(data[first:last]), starts, sequence_length, sampling_rate)
    if targets is not None:
        columns = columns, own(targets[first:last])[starts]
    dataset = programs.in_memory("Zip", columns)
    if shuffle:
        dataset = dataset.shuffle(1024 if batch_size is None else batch_size * 8, seed=seed)
    return dataset if batch_size is None else dataset.batch(batch_size)


# ---- halves of a dataset --------------------------------------------------------------------------------------------


def _halves(
    utils: Any, dataset: Nest, left_size: Any, right_size: Any, shuffle: bool, seed: int | None
) -> tuple[Any, Any]:
    data = libraries.package.data.Dataset
    type_of, samples_of, sizes_of, as_it_was = [getattr(utils, name) for name in fence.SPLITTING.split()]
    kind = data if isinstance(dataset, data) else type_of(dataset)
    if left_size is None and right_size is None:
        raise ValueError(
            "At least one of the `left_size` or `right_size` must be specified, got left_size=right_size=None"
        )
    samples = samples_of(dataset, kind)
    if shuffle:
        random.seed(random.randint(0, int(1e6)) if seed is None else seed)
        random.shuffle(samples)
    left, right = sizes_of(left_size, right_size, len(samples))
    size = getattr(dataset, "_batch_size", None)

    def half(part: list) -> Any:
        made = data.from_tensor_slices(as_it_was(part, kind, dataset))
        return made.batch(size) if size is not None else made

    return half(samples[:left]), half(samples[-right:])


# ---- strings ----------------------------------------------------------------------------------------------------------

_NO_STRINGS = (
    "JAX's arrays hold numbers only: use a Python dict or hash of your own, before the model or in dataset.map"
)


class _Asked:
    """TensorFlow, where a layer asks whether it is there."""

    def __init__(self, tensorflow: Any, answer: Callable[[bool], bool]):
        self._tensorflow, self._answer = tensorflow, answer

    available = property(lambda self: self._answer(self._tensorflow.available))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tensorflow, name)


def _refuse(kind: Any) -> None:
    name = f"tf.keras.layers.{kind.__name__}"

    def answer(_: bool) -> bool:
        raise NotImplementedError(f"tapejax has no {name}: use {MISSING[name]}")

    _ask(kind, answer)


def _compute_with_tensorflow(kind: Any) -> None:
    """Says what a layer needs that Keras computes with TensorFlow on any backend, and refuses strings."""
    call, name = kind.call, f"tf.keras.layers.{kind.__name__}"
    needs = f"{name} is computed by TensorFlow, which has to be installed"

    def answer(is_there: bool) -> bool:
        if not is_there:
            raise ImportError(f"{needs}, and is not. Else use a table of your own and tf.gather, or x % num_bins.")
        return True

    @functools.wraps(call)
    def of_numbers(self: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        for x in inputs if isinstance(inputs, (list, tuple)) else [inputs]:
            dtype = getattr(x, "dtype", None) or np.asarray(x).dtype
            if str(dtype) == "string" or getattr(dtype, "kind", "") in "OSU":
                raise DTypeError(f"{name} of strings: {_NO_STRINGS}")
        return call(self, inputs, *args, **kwargs)

    _ask(kind, answer)
    kind.call, kind._tapejax_unchecked = of_numbers, f"{needs}; of strings it is refused"


def _ask(kind: Any, answer: Callable[[bool], bool]) -> None:
    module: Any = sys.modules[kind.__module__]
    module.tf = _Asked(module.tf, answer)


# ---- installation ----------------------------------------------------------------------------------------------------


def install() -> None:
    """Puts the functions of this module in the place of those of Keras that use TensorFlow."""
    layers: Any = importlib.import_module("keras").layers
    for kind in (layers.StringLookup, layers.TextVectorization):
        _refuse(kind)
    for kind in (layers.IntegerLookup, layers.Hashing, layers.HashedCrossing):
        _compute_with_tensorflow(kind)
    for kind in (layers.Normalization, layers.Discretization):
        _adapt_to_tensors(kind)
    constant = types.SimpleNamespace(data=types.SimpleNamespace(AUTOTUNE=-1))
    for name, replaced in {
        "utils.image_dataset_utils": {fence.OF_FILES: _images, "tf": constant},
        "utils.text_dataset_utils": {fence.OF_FILES: _texts, "tf": constant},
        "utils.audio_dataset_utils": {"paths_and_labels_to_dataset": _sounds, "tf": constant, "tfio": _NoResampling()},
        "utils.timeseries_dataset_utils": {fence.OF_SERIES: _series},
    }.items():
        if not fence.unlike(name):  # else it is an older Keras, and its own says what it needs
            vars(fence.part(name)).update(replaced)
    if not fence.unlike("utils.dataset_utils"):
        _install_split(fence.part("utils.dataset_utils"))


def _install_split(utils: Any) -> None:
    of_keras = utils.is_tf_dataset
    is_ours = lambda x: type(x).__module__ == "tapejax.tf.programs.data"  # noqa: E731
    utils.is_tf_dataset = lambda x: is_ours(x) or of_keras(x)

    @functools.wraps(getattr(utils, fence.SPLIT))
    def split(
        dataset: Any, left_size: Any = None, right_size: Any = None, shuffle: bool = False, seed: Any = None
    ) -> Any:
        return _halves(utils, dataset, left_size, right_size, shuffle, seed)

    setattr(utils, fence.SPLIT, split)
