"""`jaxprs/cache.py`: bounded tables of what was made, and the one function that empties them all."""

import threading

import pytest

from tapejax.jaxprs import cache
from tapejax.jaxprs.cache import Cache, NotKept


def test_a_thing_is_made_once_for_its_key(no_shadow):
    kept, made = Cache(8), []

    def make(x):
        made.append(x)
        return [x]

    first = kept.get("a", make, 1)
    assert kept.get("a", make, 2) is first and made == [1]
    assert kept.get("b", make, 3) == [3] and made == [1, 3] and len(kept) == 2


def test_what_is_made_once_only_is_not_kept():
    kept = Cache(8)
    assert kept.get("a", lambda: NotKept(1)) == 1 and len(kept) == 0
    assert kept.get("a", lambda: NotKept(2)) == 2


def test_nothing_is_kept_where_making_it_fails():
    kept = Cache(8)
    with pytest.raises(ZeroDivisionError):
        kept.get("a", lambda: 1 // 0)
    assert len(kept) == 0 and kept.get("a", lambda: "now") == "now"


def test_a_look_makes_nothing():
    kept = Cache(8)
    assert kept.peek("a") is None and len(kept) == 0
    kept.get("a", lambda: "x")
    assert kept.peek("a") == "x"


def test_what_is_discarded_is_made_again(no_shadow):
    kept = Cache(2)
    for key in "abc":  # in the older of the two tables, and in the younger one
        kept.get(key, lambda: "first")
    for key in "abc":
        kept.discard(key)
    kept.discard("never kept")
    assert len(kept) == 0 and kept.get("b", lambda: "second") == "second"


def test_the_least_recently_used_things_are_forgotten(no_shadow):
    kept = Cache(8)
    used = kept.get("used", object)
    for i in range(100):
        kept.get(i, lambda i=i: [i])
        assert kept.get("used", object) is used
        assert len(kept) <= 8
    assert kept.get(0, lambda: "again") == "again"


def test_each_thing_is_listed_once_with_its_key(no_shadow):
    kept = Cache(4)
    for key in ("a", "b", "c", "a"):  # "a" is in both tables by then
        kept.get(key, str.upper, key)
    assert sorted(kept.items()) == [("a", "A"), ("b", "B"), ("c", "C")] and len(kept) == 3


def test_threads_get_one_thing(no_shadow):
    kept, found, ready = Cache(64), [], threading.Barrier(8)

    def work():
        ready.wait()
        found.append([kept.get(i, lambda: object()) for i in range(32)])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(row == found[0] for row in found)


def test_one_call_empties_every_table(monkeypatch):
    monkeypatch.setattr(cache, "_clearing", cache._clearing[:])  # what is added here ends with the test
    tables, other = [Cache(8), Cache(8)], {"a": 1}
    cache.on_clear(other.clear)
    for table in tables:
        table.get("a", lambda: "x")
    cache.clear()
    assert not other and [len(table) for table in tables] == [0, 0]


def test_a_table_that_is_gone_is_not_kept_to_be_emptied():
    kept = Cache(8)
    before = len(cache._caches)
    del kept
    assert len(cache._caches) == before - 1
