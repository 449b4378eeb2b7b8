"""``tf.data`` over Grain: what is not TensorFlow's to say: threads, states, seeds, Grain's own face, messages."""

import gc
import json
import pathlib
import subprocess
import sys
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf

grain = pytest.importorskip("grain", reason="tf.data stands on Grain")
Dataset = tf.data.Dataset


def numbers(dataset):
    return [np.asarray(x).tolist() for x in dataset.as_numpy_iterator()]


def threads():
    return [t for t in threading.enumerate() if "grain" in t.name]


# ---- importing ------------------------------------------------------------------------------------------------------


def test_grain_is_imported_when_data_is_first_used():
    """Where it is missing, the error says what to install."""
    code = (
        "import sys, tapejax as tf; assert 'grain' not in sys.modules\n"
        "sys.modules['grain'] = None\n"
        "try: tf.data.Dataset\n"
        "except ImportError as error: print(error)\n"
        "del sys.modules['grain']; tf.data.Dataset; assert 'grain' in sys.modules"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, capture_output=True, text=True)
    assert "pip install 'tapejax[data]'" in done.stdout


def test_missing_names_say_what_to_use():
    for owner, name, hint in (
        (tf.data, "TFRecordDataset", "TFRecordIterDataset"),
        (tf.data, "TextLineDataset", "from_generator"),
        (Dataset.range(1), "bucket_by_sequence_length", "padded_batch"),
        (Dataset.range(1), "no_such_method", "no tf.data.Dataset.no_such_method"),
        (tf.data.experimental, "make_csv_dataset", "tf.data.experimental.make_csv_dataset"),
    ):
        with pytest.raises(AttributeError, match=hint):
            getattr(owner, name)
    assert not hasattr(Dataset.range(1), "__array__")


# ---- Grain ----------------------------------------------------------------------------------------------------------


def test_a_dataset_is_one_of_grains():
    dataset = Dataset.range(6).batch(2)
    assert isinstance(dataset, grain.IterDataset)

    class Double(grain.transforms.Map):
        def map(self, x):
            return np.asarray(x) * 2

    assert [x.tolist() for x in dataset.map(Double())] == [[0, 2], [4, 6], [8, 10]]
    assert [x.tolist() for x in dataset.apply([Double(), Double()])] == [[0, 4], [8, 12], [16, 20]]
    chosen = grain.experimental.LimitIterDataset(dataset, 2)
    assert [x.numpy().tolist() for x in chosen] == [[0, 1], [2, 3]]


def test_a_dataset_of_grains_is_a_generator():
    source = grain.MapDataset.range(10).shuffle(3).to_iter_dataset()
    dataset = Dataset.from_generator(lambda: source, output_signature=tf.TensorSpec([], tf.int32))
    assert sorted(numbers(dataset)) == list(range(10))


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize(
    "build",
    [
        lambda d: d.batch(3),
        lambda d: d.map(lambda x: x * 2).batch(3),
        lambda d: d.repeat(3).filter(lambda x: x % 3 != 0),
        lambda d: d.map(lambda x: x + 1).repeat(2).skip(1).prefetch(2),
        lambda d: Dataset.zip(d, d.map(lambda x: -x)).batch(2),
        lambda d: d.flat_map(lambda x: Dataset.range(x)).take(20),
        lambda d: d.concatenate(d).window(3).flat_map(lambda w: w),
        lambda d: d.map(lambda x: tf.random.uniform([]) + tf.cast(x, tf.float32)).repeat(2),
        lambda d: d.batch(4).unbatch().enumerate().shard(2, 1),
    ],
)
def test_an_iterator_goes_on_where_its_state_says(build, shuffled):
    def start():
        dataset = Dataset.range(10)
        return iter(build(dataset.shuffle(4).shuffle(10) if shuffled else dataset))

    def rest(iterator):
        return [tf.nest.map_structure(lambda x: x.numpy().tolist(), x) for x in iterator]

    iterator = start()
    for _ in range(4):
        next(iterator)
    state = json.loads(json.dumps(iterator.get_state()))
    expected = rest(iterator)
    other = start()  # another dataset, of other seeds
    next(other)
    other.set_state(state)
    assert rest(other) == expected


# ---- threads --------------------------------------------------------------------------------------------------------


def test_arrays_in_memory_start_no_thread():
    iterator = iter(Dataset.range(100).shuffle(100).batch(10).prefetch(tf.data.AUTOTUNE))
    next(iterator)
    assert not threads()


def test_prefetch_runs_functions_ahead_on_a_thread_that_ends():
    seen = []
    iterator = iter(Dataset.range(100).map(lambda x: seen.append(threading.get_ident()) or x).prefetch(3))
    next(iterator)
    for _ in range(100):
        if len(seen) >= 4:
            break
        time.sleep(0.01)
    assert 4 <= len(seen) < 20 and threading.get_ident() not in seen
    assert len(threads()) == 1
    iterator.close()
    assert not threads()
    assert list(iterator) == []


def test_an_iterator_that_nobody_holds_ends_its_thread():
    for _ in Dataset.range(100).map(lambda x: x).prefetch(3):
        break
    gc.collect()
    for _ in range(100):
        if not threads():
            break
        time.sleep(0.01)
    assert not threads()


def test_an_iterator_that_is_alive_at_exit_makes_no_noise():
    code = (
        "import tapejax as tf\n"
        "d = tf.data.Dataset.range(9).map(lambda x: x).prefetch(2)\n"
        "one, other = iter(d), iter(d.concatenate(d)); print(next(one).numpy(), next(other).numpy())"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("0 0\n", "")


def test_the_thread_has_the_settings_of_the_one_that_asked():
    with jax.enable_x64(True):
        dataset = Dataset.range(3).map(lambda x: tf.cast(x, tf.float64) / 3).prefetch(2)
        assert [x.dtype for x in dataset] == [tf.float64] * 3
        assert dataset.element_spec.dtype == tf.float64


def test_errors_come_out_of_the_thread():
    def fail(x):
        if x == 2:
            raise KeyError("mine")
        return x

    iterator = iter(Dataset.range(5).map(fail).prefetch(2))
    assert [int(next(iterator)), int(next(iterator))] == [0, 1]
    with pytest.raises(KeyError, match="mine"):
        next(iterator)


def test_functions_are_traced_while_the_thread_reads_variables():
    # a Variable holds a tracer while a function is traced: nobody else may see that
    v = tf.Variable(1.0)
    dataset = Dataset.range(300).map(lambda x: v * tf.cast(x, tf.float32)).prefetch(4)
    for i, x in enumerate(dataset):
        if i % 60 == 0:
            f = tf.function(lambda a: a + v.assign_add(0.0))
            assert float(f(x)) == float(x) + 1
        assert float(x) == i


def test_a_dataset_in_an_init_scope():
    outside = iter(Dataset.range(9).map(lambda x: x).prefetch(2))
    next(outside)

    @tf.function
    def f():
        with tf.init_scope():
            found.extend(numbers(Dataset.range(3).map(lambda x: x * 2).prefetch(2)))
            with pytest.raises(RuntimeError, match="outside a tf.function"):
                next(outside)
        return tf.constant(1.0)

    found = []
    f()
    assert found == [0, 2, 4]


# ---- tapes and programs ---------------------------------------------------------------------------------------------


def test_iterating_in_a_program_is_refused():
    dataset = Dataset.range(3)
    iterator = iter(dataset)

    def loop():
        return sum(x._array for x in dataset)

    for run in (jax.jit(loop), lambda: jax.lax.scan(lambda c, _: (loop(), None), 0, None, 2)):
        with pytest.raises(tf.errors.OperatorNotAllowedInGraphError, match="Iterate outside"):
            run()
    following = tf.function(lambda: next(iterator))  # runs as Python, at each call
    assert [int(following()), int(following()), int(next(iterator))] == [0, 1, 2]
    with pytest.raises(tf.errors.OutOfRangeError):
        following()
    with pytest.raises(tf.errors.OutOfRangeError):
        following.get_concrete_function()()
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        jax.jit(following)()


def test_iterating_under_grad_is_not():
    def loss(w):
        return sum((jnp.float32(x) * w) ** 2 for x in Dataset.range(1, 3))

    assert jax.grad(loss)(1.0) == 10


def test_a_map_function_runs_beside_the_tape():
    w = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        x = next(iter(Dataset.from_tensor_slices([3.0]).map(lambda x: tf.square(x) * w)))
        y = x * w
    text = str(tape)
    assert "square" not in text and "multiply" in text
    assert tape.gradient(y, w).numpy() == 18


def test_what_a_map_function_returns_is_a_new_value():
    c = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(c)
        y = tf.square(next(iter(Dataset.range(1).map(lambda _: c))))
    assert tape.gradient(y, c) is None


def test_exceptions_leave_the_trace_as_it_was():
    with tf.GradientTape() as tape:
        v = tf.Variable(3.0)
        with pytest.raises(ZeroDivisionError):
            list(Dataset.range(3).map(lambda x: 1 / 0))
        y = v * v
    assert tape.gradient(y, v).numpy() == 6


# ---- specs ----------------------------------------------------------------------------------------------------------


def test_the_spec_of_python_that_looks_at_values():
    rows = Dataset.range(1, 4).map(lambda n: tf.fill([int(n)], 1.0))
    assert rows.element_spec == tf.TensorSpec([1])
    batched = Dataset.range(5).batch(2).map(lambda x: np.asarray(x, "float32") * 0.5)
    assert batched.element_spec.shape.as_list() == [None]
    with pytest.raises(ValueError, match="empty dataset"):
        Dataset.range(0).map(lambda n: tf.fill([int(n)], 1.0)).element_spec  # noqa: B018
    assert "element_spec=?" in repr(Dataset.range(0).map(lambda n: tf.fill([int(n)], 1.0)))


def test_asking_for_the_spec_draws_no_random_numbers():
    tf.random.set_seed(1)
    first = float(tf.random.uniform([]))
    tf.random.set_seed(1)
    dataset = Dataset.range(2).map(lambda x: tf.random.uniform([3]))
    tf.random.set_seed(1)
    assert dataset.element_spec == tf.TensorSpec([3])
    assert float(tf.random.uniform([])) == first


def test_64_bit_data_are_narrowed_with_a_warning(monkeypatch):
    monkeypatch.setattr("tapejax.tf.values.dtypes._warned", False)  # it is said once per process
    with pytest.warns(tf.NarrowingWarning):
        dataset = Dataset.from_tensor_slices(np.zeros(3))
    assert dataset.element_spec.dtype == tf.float32
    assert Dataset.range(3).element_spec.dtype == tf.int32


def test_texts_are_elements_and_a_batch_of_them_is_no_tensor():
    names = Dataset.from_tensor_slices(["a", "b"])
    assert list(names) == ["a", "b"]
    (batch,) = names.batch(2)
    assert list(batch) == ["a", "b"] and batch.numpy().tolist() == [b"a", b"b"]
    with pytest.raises(ValueError, match="cannot be converted to a tensor"):
        tf.reduce_sum(batch)


def test_a_cache_on_disk_is_refused():
    with pytest.raises(NotImplementedError, match="memory"):
        Dataset.range(3).cache("file")


# ---- random numbers -------------------------------------------------------------------------------------------------


def test_a_pass_that_is_given_up_does_not_disturb_the_others():
    tf.random.set_seed(1)
    dataset = Dataset.range(20).shuffle(20)
    passes = [numbers(dataset) for _ in range(3)]
    tf.random.set_seed(1)
    dataset = Dataset.range(20).shuffle(20)
    next(iter(dataset))
    assert [numbers(dataset) for _ in range(2)] == passes[1:]


def test_a_thread_draws_the_same_numbers_whatever_runs_beside_it():
    def drawn(busy):
        tf.random.set_seed(1)
        found = []
        for x in Dataset.range(50).map(lambda x: tf.random.uniform([])).prefetch(4):
            found.append(float(x))
            if busy:
                tf.random.normal([3])
        return found

    assert drawn(False) == drawn(True)
    assert len(set(drawn(False))) == 50


def test_samples_of_several_datasets():
    datasets = [Dataset.range(1000), Dataset.range(1000, 2000)]
    found = np.array(numbers(Dataset.sample_from_datasets(datasets, [0.8, 0.2], seed=1).take(500)))
    assert 0.7 < (found < 1000).mean() < 0.9
    assert (np.diff(found[found < 1000]) == 1).all() and (np.diff(found[found >= 1000]) == 1).all()
    assert sorted(numbers(Dataset.sample_from_datasets([Dataset.range(3), Dataset.range(3, 9)]))) == list(range(9))
    with pytest.raises(ValueError, match="one number for each"):
        Dataset.sample_from_datasets(datasets, [1.0])


def test_every_order_of_a_shuffle_is_likely():
    found = numbers(Dataset.range(3).shuffle(3, seed=0).repeat(600).batch(3))
    orders, counts = np.unique(found, axis=0, return_counts=True)
    assert len(orders) == 6 and counts.min() > 60
    # elements that come late may come out at once, early ones may stay: a buffer, not a window
    ends = [numbers(Dataset.range(100).shuffle(5, seed=s)).index(0) for s in range(200)]
    assert max(ends) > 10 and min(ends) == 0


# ---- whole programs -------------------------------------------------------------------------------------------------


def test_a_program_says_import_tensorflow(tmp_path):
    program = pathlib.Path(tmp_path, "program.py")
    program.write_text(
        "import tensorflow as tf\n"
        "from tensorflow.data import Dataset\n"
        "import tensorflow.data as data\n"
        "print([x.numpy() for x in Dataset.range(2)][1].dtype, data.AUTOTUNE, tf.data.Dataset is Dataset)\n"
    )
    command = [sys.executable, "-m", "tapejax", "run", str(program)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout == "int64 -1 True\n", done.stderr
