"""``tf.data``: ranges that would not fit into memory, and iterators that several threads share."""

import threading

import numpy as np
import pytest

pytest.importorskip("grain")

import tapejax as tf  # noqa: E402

Dataset = tf.data.Dataset
BILLION = 10**9


@pytest.fixture
def lazy(monkeypatch):
    """No array of all the numbers is made."""

    def arange(*args, **kwargs):
        assert max(x for x in args if isinstance(x, int)) < 1_000_000
        return made(*args, **kwargs)

    made = np.arange
    monkeypatch.setattr(np, "arange", arange)


@pytest.mark.parametrize(
    "stage, expected",
    [
        (lambda d: d.map(lambda x: x + 1).batch(2), [1, 2]),
        (lambda d: d.filter(lambda x: x % 2 == 1), 1),
        (lambda d: d.enumerate(), (0, 0)),
        (lambda d: d.skip(BILLION - 2), BILLION - 2),
        (lambda d: d.take(BILLION - 1).skip(BILLION - 3), BILLION - 3),
        (lambda d: d.shard(7, 3).skip(10**8), 700_000_003),
        (lambda d: d.batch(3), [0, 1, 2]),
        (lambda d: d.repeat().batch(2), [0, 1]),
        (lambda d: d.window(2).flat_map(lambda window: window.batch(2)), [0, 1]),
        (lambda d: Dataset.zip(d, d), (0, 0)),
        (lambda d: d.prefetch(2).cache(), 0),
    ],
)
def test_a_long_range_is_not_built(lazy, stage, expected):
    found = next(iter(stage(Dataset.range(BILLION)).as_numpy_iterator()))
    assert str(np.asarray(found).tolist()) == str(np.asarray(expected).tolist())


def test_a_long_range_is_shuffled_through_its_buffer(lazy):
    first = [int(x) for x in Dataset.range(BILLION).shuffle(100, seed=1).take(50)]
    assert len(set(first)) == 50 and max(first) < 150


def test_parts_of_short_ranges():
    numbers = Dataset.range(1, 20, 3)
    expected = list(range(1, 20, 3))
    for start in (0, 2, 7, 9):
        assert [int(x) for x in numbers.skip(start)] == expected[start:]
        assert [int(x) for x in numbers.repeat(2).skip(start)] == (2 * expected)[start:]
        assert [int(x) for x in numbers.skip(start).take(2)] == expected[start : start + 2]
    for index in range(3):
        assert [int(x) for x in numbers.shard(3, index)] == expected[index::3]
        assert [int(x) for x in numbers.map(lambda x: x).shard(3, index)] == expected[index::3]
    assert [int(x) for x in Dataset.range(5, 0, -2)] == [5, 3, 1] and list(Dataset.range(0)) == []


def test_a_range_beyond_64_bits():
    for stop in (2**63, 2**70):
        with pytest.raises(ValueError, match="int64"):
            Dataset.range(stop)


# ---- threads --------------------------------------------------------------------------------------------------------


def _drained(iterator, count=4):
    """What `count` threads that share `iterator` get, and how many of them ended."""
    seen = []

    def work():
        for x in iterator:
            seen.append(int(x))

    threads = [threading.Thread(target=work, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return sorted(seen), sum(not thread.is_alive() for thread in threads)


@pytest.mark.parametrize(
    "stage",
    [
        lambda d: d,
        lambda d: d.map(lambda x: x + 0),
        lambda d: d.map(lambda x: x + 0).prefetch(4),
        lambda d: d.shuffle(10).map(lambda x: x + 0).prefetch(2),
        lambda d: d.map(tf.function(lambda x: x + 0)).prefetch(4),
    ],
)
def test_an_iterator_that_threads_share(stage):
    assert _drained(iter(stage(Dataset.range(200)))) == (list(range(200)), 4)


def test_an_iterator_that_has_ended_stays_so_until_it_is_set_back():
    iterator = iter(Dataset.range(3).map(lambda x: x).prefetch(2))
    start = iterator.get_state()
    assert len(list(iterator)) == 3 and list(iterator) == [] == list(iterator)
    iterator.set_state(start)
    assert len(list(iterator)) == 3


def test_an_error_does_not_end_it_for_the_other_threads():
    def checked(x):
        return tf.debugging.check_numerics(tf.where(x == 5, np.nan, tf.cast(x, tf.float32)), "five")

    iterator, seen, errors = iter(Dataset.range(50).map(checked).prefetch(2)), [], []

    def work():
        while True:
            try:
                seen.append(float(next(iterator)))
            except StopIteration:
                return
            except tf.errors.InvalidArgumentError as error:
                errors.append(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(seen) == [float(i) for i in range(50) if i != 5] and len(errors) == 1


def test_who_traces_does_not_wait_for_who_reads():
    """A thread that goes on with the iterator waits for the end of the trace, where functions of the user's are called."""
    iterator, seen = iter(Dataset.range(2).map(lambda x: x)), []
    thread = threading.Thread(target=lambda: seen.append(int(next(iterator))), daemon=True)

    @tf.function
    def traced():
        thread.start()
        while iterator._turn.acquire(blocking=False):
            iterator._turn.release()
        with tf.init_scope():
            next(iterator)

    with pytest.raises(RuntimeError, match="made outside a tf.function"):
        traced()
    thread.join(60)
    assert seen == [0] and int(next(iterator)) == 1
