"""tape/active.py: which recordings are active, here, in this thread, and under which trace."""

import threading

import jax
import jax.numpy as jnp
import pytest
from taping import X

from tapejax.jaxprs.fence import current_trace
from tapejax.tape import active
from tapejax.tape.recording import Recording


def test_a_recording_is_active_between_start_and_stop():
    before, recording = current_trace(), Recording()
    activation = active.start(recording)
    assert active.active_recordings() == [recording] and type(current_trace()) is active.kind
    activation.stop()
    assert active.active_recordings() == [] and current_trace() is before


def test_it_ends_with_the_last_reference_and_may_be_stopped_again():
    before = current_trace()
    activation = active.start(Recording())
    activation.stop()
    activation.stop()
    activation = active.start(Recording())
    del activation
    assert current_trace() is before and active.active_recordings() == []


def test_an_exception_ends_it():
    before = current_trace()
    with pytest.raises(ZeroDivisionError):
        active.also(Recording(), lambda: 1 / 0)
    assert current_trace() is before and active.active_recordings() == []


def test_recordings_are_of_their_thread():
    found = []
    activation = active.start(Recording())
    thread = threading.Thread(target=lambda: found.append(active.active_recordings()))
    thread.start()
    thread.join()
    activation.stop()
    assert found == [[]]


def test_alone_hides_the_others():
    outer, inner = Recording(), Recording()
    active.also(outer, active.alone, [inner], jnp.sin, X)
    assert not outer.entries and inner.entries


def test_outside_nothing_is_noted():
    def run():
        jnp.cos(X)
        with active.outside():
            jnp.sin(X)

    recording = Recording()
    active.also(recording, run)
    assert [entry.op.name for entry in recording.entries] == ["cos"]


def test_a_value_has_an_array_of_its_own():
    assert active.distinct(X, [X]) is not X and active.distinct(X, []) is X
    first, second = active.distinct([X, X], [])
    assert first is not second


def test_values_are_known_unless_a_program_is_traced():
    seen = []
    jax.jit(lambda x: seen.append((active.eager(), active.staging())) or x)(X)
    jax.vmap(lambda x: seen.append((active.eager(), active.staging())) or x)(X)
    assert active.eager() and not active.staging() and seen == [(False, True), (False, False)]


def test_a_traced_program_has_a_continuation():
    recording, seen = Recording(), []
    active.continuing([recording], lambda: seen.append(active.continuation_of(recording)))
    assert seen[0] is not recording and active.continuation_of(recording) is recording
