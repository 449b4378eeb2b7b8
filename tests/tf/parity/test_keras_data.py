"""Keras's functions that make datasets, layers that adapt to them, `Model.export`: of the same files, what TensorFlow gives."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import wave

import numpy as np
import pytest
from harness import error_of
from keras_processes import Bodies, needs_keras

parity = Bodies(__file__)


def elements(tf, dataset, number=3):
    """What a dataset says of itself, and its first elements."""

    def plain(x):
        x = x.numpy()
        return x.tolist() if getattr(x, "dtype", np.dtype(int)).hasobject else x

    found = [[plain(part) for part in tf.nest.flatten(element)] for element in dataset.take(number)]
    dtypes = [spec.dtype.name for spec in tf.nest.flatten(dataset.element_spec)]
    ranks = [spec.shape.rank for spec in tf.nest.flatten(dataset.element_spec)]
    return found, dtypes, ranks, int(dataset.cardinality()), getattr(dataset, "class_names", None)


def quietly(fn, *args, **kwargs):
    """The result, without what Keras prints of files and models."""
    with contextlib.redirect_stdout(io.StringIO()):
        return fn(*args, **kwargs)


@contextlib.contextmanager
def folder(write):
    """Five files in each of the folders of two classes, by ``write(path, number)``."""
    with tempfile.TemporaryDirectory() as place:
        for n, kind in enumerate(("cats", "dogs")):
            (pathlib.Path(place) / kind).mkdir()
            for i in range(5):
                write(pathlib.Path(place) / kind / str(i), 5 * n + i)
        yield place


def picture(path, number):
    from PIL import Image

    pixels = np.random.default_rng(number).integers(0, 256, (9 + number, 14 - number % 3, 3)).astype("uint8")
    Image.fromarray(pixels).save(path.with_suffix((".png", ".bmp")[number % 2]))


def grey(path, number):
    from PIL import Image

    pixels = np.random.default_rng(number).integers(0, 256, (8, 9 + number, 3)).astype("uint8")
    Image.fromarray(pixels).save(path.with_suffix(".png"))


def text(path, number):
    path.with_suffix(".txt").write_bytes(b"text %d " % number + ("ä" * number).encode() + b"\xff")


def sound(path, number):
    with wave.open(str(path.with_suffix(".wav")), "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(np.random.default_rng(number).integers(-32768, 32768, 4 + 2 * number).astype("<i2").tobytes())


# ---- images ---------------------------------------------------------------------------------------------------------

IMAGES = {"image_size": (6, 7), "batch_size": 4, "shuffle": False}


def of_images(tf, options, write=picture):
    make = tf.keras.utils.image_dataset_from_directory
    with folder(write) as place:
        found = quietly(make, place, **IMAGES | options)
        parts = found if isinstance(found, (list, tuple)) else [found]
        names = [[os.path.relpath(name, place) for name in part.file_paths] for part in parts]
        return [elements(tf, part) for part in parts], names


@parity
def labels_of_images(tf):
    """As numbers, vectors, one number of two, given by hand, and none; classes in another order."""
    modes = [{"label_mode": mode} for mode in ("int", "categorical", "binary", None)]
    by_hand = [{"labels": None}, {"labels": [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]}, {"class_names": ["dogs", "cats"]}]
    return [of_images(tf, options) for options in (*modes, *by_hand)]


@parity
def forms_of_images(tf):
    """Grey, with alpha, channels first, not batched, of one size only, of that size already."""
    return [
        of_images(tf, {"color_mode": "grayscale"}, grey),
        of_images(tf, {"color_mode": "rgba"}),
        of_images(tf, {"data_format": "channels_first"}),
        of_images(tf, {"batch_size": None}),
        of_images(tf, {"image_size": 5}),
        of_images(tf, {"image_size": (9, 14)}),
    ]


@parity
def sizes_of_images(tf):
    """Each interpolation; cropped, and padded, to the proportions wanted."""
    methods = "bilinear nearest bicubic area lanczos3 lanczos5 gaussian mitchellcubic".split()
    fits = [{"crop_to_aspect_ratio": True}, {"pad_to_aspect_ratio": True}]
    first = [fit | {"data_format": "channels_first", "image_size": (12, 5)} for fit in fits]
    return [of_images(tf, options) for options in (*({"interpolation": m} for m in methods), *fits, *first)]


@parity
def parts_of_images(tf):
    """Training and validation, each alone and both; which files are in them follows from the seed."""
    half = {"validation_split": 0.3}
    parts = [of_images(tf, half | {"subset": subset}) for subset in ("training", "validation", "both")]
    with folder(picture) as place:
        options = half | {"subset": "both", "seed": 5, "image_size": (3, 3), "batch_size": 10}
        train, test = quietly(tf.keras.utils.image_dataset_from_directory, place, **options)
        (x, y), (z, w) = next(iter(train)), next(iter(test))
        order = np.lexsort(x.numpy().reshape(len(x), -1).T)
        names = [[os.path.relpath(name, place) for name in part.file_paths] for part in (train, test)]
        return parts, names, x.numpy()[order], y.numpy()[order], z, w


@parity
def images_that_are_refused(tf):
    wrong = [
        {"label_mode": "no"},
        {"color_mode": "blue"},
        {"interpolation": "none"},
        {"labels": [1, 2]},
        {"labels": 3},
        {"subset": "training"},
        {"validation_split": 2.0, "subset": "training"},
        {"image_size": (1, 2, 3)},
        {"crop_to_aspect_ratio": True, "pad_to_aspect_ratio": True},
        {"class_names": ["birds"]},
    ]
    with tempfile.TemporaryDirectory() as empty:
        nothing = error_of(quietly, tf.keras.utils.image_dataset_from_directory, empty, label_mode=None)
    return [error_of(of_images, tf, options) for options in wrong], nothing


@parity
def other_names(tf):
    """The older name; a dataset goes on from there, and trains a model."""
    from_directory = tf.keras.preprocessing.image_dataset_from_directory
    with folder(picture) as place:
        data = quietly(from_directory, place, shuffle=False, image_size=(4, 4), batch_size=5)
        scaled = data.map(lambda x, y: (x / 255.0, tf.cast(y, tf.float32))).cache().prefetch(tf.data.AUTOTUNE)
        model = tf.keras.Sequential(
            [tf.keras.Input((4, 4, 3)), tf.keras.layers.Flatten(), tf.keras.layers.Dense(1, "sigmoid")]
        )
        model.set_weights([np.full(w.shape, 0.01, "float32") for w in model.get_weights()])
        model.compile("sgd", "binary_crossentropy")
        return model.fit(scaled, epochs=2, verbose=0, shuffle=False).history


# ---- texts and sounds -----------------------------------------------------------------------------------------------


@parity
def texts(tf):
    """With and without labels, batches, a largest length, and in parts."""
    make = tf.keras.utils.text_dataset_from_directory
    options = [{}, {"label_mode": "categorical"}, {"labels": None}, {"max_length": 9}, {"batch_size": None}]
    parts = {"validation_split": 0.3, "subset": "both"}
    with folder(text) as place:
        found = [quietly(make, place, **{"batch_size": 3, "shuffle": False} | each) for each in options]
        found += quietly(make, place, batch_size=3, shuffle=False, **parts)
        return [elements(tf, data) for data in found]


@parity
def what_a_batch_of_texts_is(tf):
    """A shape, a dtype, bytes; one of them; what comes of taking batches apart."""
    with folder(text) as place:
        data = quietly(tf.keras.utils.text_dataset_from_directory, place, batch_size=None, shuffle=False)
        batch = next(iter(data.batch(4)))[0]
        alone = data.map(lambda x, y: x)
        return (
            [t.decode(errors="replace") for t in batch.numpy()],
            batch.shape.as_list(),
            batch.dtype == tf.string,
            [x.numpy() for x in alone.skip(8)],
            batch[1].numpy(),
            [x.numpy() for x in batch[2:]],
            [x.numpy() for x in alone.batch(3).unbatch()],
            list(alone.batch(3).as_numpy_iterator())[-1].tolist(),
            [x.numpy().tolist() for x in alone.padded_batch(9, drop_remainder=True)],
            [y.numpy() for x, y in data.shuffle(3).batch(10)][0].sum(),
        )


@parity
def sounds(tf):
    """Padded to the longest, of one length, without labels, not batched."""
    make = tf.keras.utils.audio_dataset_from_directory
    options = [{}, {"output_sequence_length": 7}, {"labels": None}, {"batch_size": None}, {"label_mode": "binary"}]
    with folder(sound) as place:
        found = [quietly(make, place, **{"batch_size": 3, "shuffle": False} | each) for each in options]
        found += quietly(make, place, batch_size=3, shuffle=False, validation_split=0.3, subset="both")
        return [elements(tf, data) for data in found]


@parity
def wav_files(tf):
    """`tf.audio`: other numbers of channels and samples, and the way back."""
    numbers = np.random.default_rng(1).uniform(-1.2, 1.2, (5, 2)).astype("float32")
    contents = tf.audio.encode_wav(numbers, 8000)
    wanted = [{}, {"desired_channels": 1}, {"desired_channels": 3}, {"desired_samples": 3}, {"desired_samples": 8}]
    found = [tf.audio.decode_wav(contents, **options) for options in wanted]
    errors = [
        error_of(tf.audio.decode_wav, b"nothing"),
        error_of(tf.audio.encode_wav, numbers[0], 8000),
        error_of(tf.audio.encode_wav, numbers, 0),
    ]
    return [(x.audio, x.sample_rate) for x in found], bytes(getattr(contents, "numpy", lambda: contents)()), errors


# ---- series and halves ----------------------------------------------------------------------------------------------


@parity
def series(tf):
    """Windows of arrays with their targets: strides, rates, a start and an end, lists, several columns, no batches."""
    make = tf.keras.utils.timeseries_dataset_from_array
    one, two = np.arange(20, dtype="float32"), np.arange(40, dtype="int32").reshape(20, 2)
    found = []
    for data, targets in (
        (one, None),
        (two, two[4:]),
        (one.tolist(), one[3:].tolist()),
        (np.arange(20.0), np.arange(20)),
    ):
        for options in (
            {},
            {"sequence_stride": 2},
            {"sampling_rate": 3},
            {"start_index": 2, "end_index": 15},
            {"batch_size": None},
            {"sequence_length": 19},
        ):
            found.append(elements(tf, make(data, targets, **{"sequence_length": 4, "batch_size": 3} | options)))
    errors = [
        error_of(make, one, None, 3, **{name: value})
        for name, value in (("start_index", 30), ("sampling_rate", 0), ("sequence_stride", 20), ("end_index", 21))
    ]
    return found, errors


@parity
def shuffled_series(tf):
    """All windows, each with its target, in some order."""
    data = np.arange(20, dtype="float32")
    make = tf.keras.utils.timeseries_dataset_from_array
    found = [x.numpy() for x, y in make(data, data[3:], 3, shuffle=True, seed=2, batch_size=None)]
    pairs = [(x.numpy()[-1] + 1, y.numpy()) for x, y in make(data, data[3:], 3, shuffle=True, seed=2, batch_size=None)]
    return (
        np.stack(sorted(found, key=lambda x: x[0])),
        all(a == b for a, b in pairs),
        [*map(tuple, found)] != sorted(map(tuple, found)),
    )


@parity
def halves(tf):
    """Of arrays, tuples, lists and datasets; which rows are in which follows from Python's random numbers."""
    one, two = np.arange(12, dtype="float32"), np.arange(24, dtype="int32").reshape(12, 2)
    dataset = tf.data.Dataset.from_tensor_slices
    split = tf.keras.utils.split_dataset
    found = []
    for data in (
        one,
        (one, two),
        [one, two],
        dataset((one, two)),
        dataset((one, two)).batch(4),
        dataset({"a": one, "b": two}),
    ):
        for options in (
            {"left_size": 0.25},
            {"right_size": 3},
            {"left_size": 5, "right_size": 5},
            {"left_size": 0.5, "shuffle": True, "seed": 1},
        ):
            found += [elements(tf, half, 12) for half in split(data, **options)]
    wrong = [
        (one, {}),
        (one, {"left_size": 30}),
        (one, {"left_size": 1.5}),
        (one, {"left_size": "a"}),
        ("text", {"left_size": 0.5}),
    ]
    return found, [error_of(split, data, **options) for data, options in [*wrong, ([], {"left_size": 0.5})]]


# ---- layers that adapt ----------------------------------------------------------------------------------------------


@parity
def adapting(tf):
    """Normalization and Discretization, to arrays, tensors, variables and datasets."""
    x = np.random.default_rng(0).normal(size=(8, 2)).astype("float32")
    rows = tf.data.Dataset.from_tensor_slices(x)
    found = []
    for data in (x, tf.constant(x), tf.Variable(x), rows.batch(3), tf.data.Dataset.zip((rows, rows)).batch(4)):
        for axis in (-1, None):
            layer = tf.keras.layers.Normalization(axis=axis)
            layer.adapt(data)
            found.append((layer(x), np.ravel(layer.mean.numpy()), np.ravel(layer.variance.numpy())))
    for data in (x, tf.constant(x), rows.batch(3)):
        layer = tf.keras.layers.Discretization(num_bins=3)
        layer.adapt(data)
        found.append((layer(x), layer.bin_boundaries))
    return found


@parity
def a_feature_space(tf):
    """Numbers normalised and put into bins, in a dataset and alone."""
    kind = tf.keras.utils.FeatureSpace
    columns = {"a": np.arange(6, dtype="float32"), "b": np.arange(6, dtype="float32") ** 2}
    rows = tf.data.Dataset.from_tensor_slices(columns)
    features = kind({"a": kind.float_normalized(), "b": kind.float_discretized(num_bins=3)}, output_mode="concat")
    features.adapt(rows)
    return features({"a": 1.0, "b": 4.0}), list(rows.batch(3).map(features))


# ---- exporting ------------------------------------------------------------------------------------------------------


def again(tf, model, given=None, **options):
    """The exported model; or what it gives, since in TensorFlow a function outlives its variables not."""
    with tempfile.TemporaryDirectory() as place:
        quietly(model.export, place, **options)
        loaded = tf.saved_model.load(place)
        return loaded if given is None else loaded.serve(given)


@parity
def exported(tf):
    """A model with dropout, of one, several and named inputs, a class of one's own: called, by signatures, and differentiated."""
    keras, L = tf.keras, tf.keras.layers
    x = np.arange(6, dtype="float32").reshape(3, 2)
    plain = keras.Sequential([keras.Input((2,), name="given"), L.Dense(3, kernel_initializer="ones"), L.Dropout(0.5)])
    one, two = keras.Input((2,), name="one"), keras.Input((2,), name="two")
    several = keras.Model([one, two], {"sum": one + two, "dense": L.Dense(1, kernel_initializer="ones")(one)})
    named = keras.Model({"a": one}, one * 2.0)

    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense, self.norm = L.Dense(1, kernel_initializer="ones"), L.BatchNormalization()

        def call(self, x, training=None):
            return self.norm(self.dense(x), training=training)

    own = Own()
    own(x)
    loaded = again(tf, plain)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(loaded.serve(x) ** 2)
    signature = loaded.signatures["serving_default"]
    kept = again(tf, own)
    return (
        loaded.serve(x),
        loaded.serve(x[:1]),
        signature(given=tf.constant(x)),
        sorted(loaded.signatures),
        list(tape.gradient(y, loaded.trainable_variables)),
        [len(loaded.variables), len(loaded.trainable_variables), len(loaded.non_trainable_variables)],
        sorted(again(tf, several, [x, 2 * x]).items()),
        again(tf, named, {"a": x}),
        kept.serve(x),
        [len(kept.variables), len(kept.non_trainable_variables)],
        error_of(again, tf, Own()),
        error_of(again, tf, plain, format="paper"),
    )


@parity
def an_archive(tf):
    """Functions of one's own beside a model's call, variables, and what is refused."""
    keras = tf.keras
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, kernel_initializer="ones")])
    archive = keras.export.ExportArchive()
    inner = archive.track_and_add_endpoint("serve", model, [tf.TensorSpec([None, 2])])
    archive.add_endpoint(
        "double", lambda x: 2.0 * model(x), input_signature=[keras.InputSpec(shape=(None, 2), dtype="float32")]
    )

    @tf.function
    def more(x):
        return inner(x) + 1.0

    more(x)
    archive.add_endpoint("more", more)
    archive.add_variable_collection("mine", model.variables[:1])
    errors = [
        error_of(archive.add_endpoint, "serve", model.call, [tf.TensorSpec([None, 2])]),
        error_of(archive.add_endpoint, "other", model.call),
        error_of(archive.track, 3),
        error_of(archive.track, keras.layers.Dense(1)),
        error_of(keras.export.ExportArchive().write_out, "nowhere"),
    ]
    with tempfile.TemporaryDirectory() as place:
        archive.write_out(place, verbose=False)
        loaded = tf.saved_model.load(place)
        return loaded.serve(x), loaded.double(x), loaded.more(x), sorted(loaded.signatures), len(loaded.mine), errors


# ---- both systems ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def outcomes(tmp_path_factory):
    return parity.outcomes(tmp_path_factory)


@needs_keras
@pytest.mark.parametrize("name", parity)
def test_keras(name, outcomes):
    parity.check(name, outcomes)


@pytest.mark.skipif(not importlib.util.find_spec("grain"), reason="Grain is missing")
def test_a_function_sees_texts():
    import tapejax as tf

    data = tf.data.Dataset.from_tensor_slices((["one two", "three", b"\xe4\xff"], [1, 2, 3]))
    words = data.map(lambda text, y: (tf.constant(len(text.split())), y))
    assert [(int(n), int(y)) for n, y in words] == [(2, 1), (1, 2), (1, 3)]
    batches = data.batch(2).map(lambda texts, y: (np.array([len(t.numpy()) for t in texts], "int32"), y))
    assert [n.numpy().tolist() for n, _ in batches] == [[7, 5], [2]]
    assert [x.numpy() for x in data.map(lambda text, y: text.upper())] == [b"ONE TWO", b"THREE", b"\xe4\xff"]
    generated = tf.data.Dataset.from_generator(lambda: iter(["a", "b"]), output_types=tf.string)
    assert next(iter(generated.batch(2))).numpy().tolist() == [b"a", b"b"]
    with pytest.raises(ValueError, match="Texts"):
        tf.constant(next(iter(data.batch(2)))[0])


# ---- tapejax alone --------------------------------------------------------------------------------------------------

BEGINNING = """
import sys
BLOCKED = {blocked}

class Blocks:
    def find_spec(self, name, path=None, target=None):
        if BLOCKED and name.partition(".")[0] == "tensorflow":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocks())
import tempfile
import numpy as np
import {alias} as tf
"""
PROGRAM = """
a, b = tf.keras.utils.split_dataset(np.arange(10.0, dtype="float32"), 0.5)
print(len(a), len(b), type(a).__module__)
series = tf.keras.utils.timeseries_dataset_from_array(np.arange(10.0, dtype="float32"), None, 3, batch_size=2)
print(next(iter(series)).numpy().tolist())
with tempfile.TemporaryDirectory() as folder:
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    model.export(folder, verbose=False)
    print(tf.saved_model.load(folder).serve(np.ones((3, 2), "float32")).shape)
tf.keras.layers.Discretization(num_bins=2).adapt([[1.0], [2.0]])
print("tensorflow" in sys.modules)
for make in (
    lambda: tf.keras.layers.StringLookup(vocabulary=["a"]),
    lambda: tf.keras.layers.TextVectorization(max_tokens=5),
    lambda: tf.keras.layers.Hashing(num_bins=3)(np.array([["a"], ["b"]])),
    lambda: tf.keras.utils.audio_dataset_from_directory(".", labels=None, sampling_rate=8000),
):
    try:
        make()
    except Exception as error:
        print(type(error).__name__, "install tensorflow" in str(error), str(error)[:400].replace("\\n", " "))
"""


def printed(alias, blocked, command, tmp_path):
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("KERAS_", "PYTEST_"))}
    file = tmp_path / "program.py"
    file.write_text(BEGINNING.format(alias=alias, blocked=blocked) + PROGRAM)
    done = subprocess.run(
        [sys.executable, *command, str(file)], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.skipif(not importlib.util.find_spec("keras"), reason="Keras is missing")
@pytest.mark.parametrize(
    ("alias", "blocked"),
    [
        ("tapejax", True), ("tensorflow", False),
        *[pytest.param(*pair, marks=pytest.mark.slow) for pair in (("tapejax", False), ("tensorflow", True))],
    ],
)  # fmt: skip
def test_with_and_without_tensorflow(alias, blocked, tmp_path):
    command = ("-m", "tapejax", "run") if alias == "tensorflow" else ()
    lines = printed(alias, blocked, command, tmp_path)
    assert lines[:4] == ["5 5 tapejax.tf.programs.data", "[[0.0, 1.0, 2.0], [1.0, 2.0, 3.0]]", "(3, 1)", "False"]
    lookup, vectors, hashing, rate = lines[4:]
    assert lookup.startswith("NotImplementedError False tapejax has no tf.keras.layers.StringLookup: use a Python dict")
    assert vectors.startswith(
        "NotImplementedError False tapejax has no tf.keras.layers.TextVectorization: use str.split"
    )
    is_there = not blocked and importlib.util.find_spec("tensorflow") is not None
    assert hashing.startswith(
        "DTypeError False" if is_there else "ImportError False tf.keras.layers.Hashing is computed by"
    )
    assert rate.startswith("NotImplementedError False audio_dataset_from_directory(sampling_rate=...): ")


if __name__ == "__main__":
    parity.main(*sys.argv[1:])
