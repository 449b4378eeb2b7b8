"""jaxprs/threads.py: what a thread is at is set for a block, and put back however the block ends."""

import sys
import threading

import pytest

from tapejax.jaxprs.threads import Context


class Here(Context):
    depth = 0
    name = "rest"


def test_fields_are_set_for_a_block():
    here = Here()
    with here.setting(depth=1, name="a"):
        with here.setting(depth=2):
            assert (here.depth, here.name) == (2, "a")
        assert (here.depth, here.name) == (1, "a")
    assert (here.depth, here.name) == (0, "rest")


def test_they_are_put_back_when_the_block_fails():
    here = Here()
    with pytest.raises(KeyboardInterrupt), here.setting(depth=1):
        raise KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        here.setting(depth=1).call(exec, "raise KeyboardInterrupt")
    assert here.depth == 0


def test_there_must_be_such_fields():
    here = Here()
    with pytest.raises(AttributeError, match="deep"), here.setting(depth=1, deep=2):
        raise AssertionError("it was entered")
    assert here.depth == 0 and not hasattr(here, "deep")


def test_each_thread_has_its_own():
    here, seen = Here(), []
    with here.setting(depth=1):
        thread = threading.Thread(target=lambda: seen.append(here.depth))
        thread.start()
        thread.join()
    assert seen == [0]


def in_a_block(here):
    with here.setting(depth=1):
        assert here.depth == 1


def called(here):
    here.setting(depth=1).call(len, "")


@pytest.mark.parametrize("run", [in_a_block, called])
def test_they_are_back_wherever_an_interrupt_comes(run, monkeypatch):
    """It comes in turn at each point at which Python looks for one; with `call` the fields are back while it is handled."""
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)  # in a destructor it goes no further
    here, points, stopped = Here(), 0, True

    def stop(frame, event, _):
        nonlocal left
        left -= event in ("call", "c_return")
        if left < 0:
            sys.setprofile(None)
            raise KeyboardInterrupt

    while stopped:
        left, stopped, before = points, False, sys.getprofile()
        try:
            sys.setprofile(stop)
            run(here)
        except KeyboardInterrupt:
            stopped = True
            assert run is in_a_block or here.depth == 0
        finally:
            sys.setprofile(before)
        assert here.depth == 0
        points += 1
    assert points > 6


def test_a_block_that_was_not_left_is_put_back_by_the_one_around_it():
    here = Here()
    with here.setting(name="outer"):
        inner = here.setting(depth=1)
        inner.__enter__()
    assert (here.depth, here.name) == (0, "rest")


@pytest.mark.parametrize("depth", [0, 1])  # set to what it is at rest, and to another value
def test_what_is_left_over_does_not_undo_what_came_after(depth):
    here = Here()
    with here.setting(depth=2):
        with here.setting(name="outer"):
            inner = here.setting(depth=depth)
            inner.__enter__()
        here.depth = depth
        with here.setting(depth=depth):
            del inner
            assert here.depth == depth
        assert here.depth == depth
    assert here.depth == 0


def test_what_is_gone_is_put_back():
    here = Here()
    block = here.setting(depth=1)
    block.__enter__()
    del block
    assert here.depth == 0
