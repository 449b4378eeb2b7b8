"""tape/recording.py: what a tape has seen, as data."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from taping import X, recorded

from tapejax.tape.recording import Recording, is_deleted, type_of


def test_types_are_written_shortly():
    assert [type_of(x) for x in (jnp.ones((3, 4), jnp.float32), np.float32(1), 2)] == ["float32[3,4]", "float32", "int"]


def test_an_entry_has_an_operation_and_its_values():
    recording, y = recorded(lambda x: jnp.sin(x), X)
    (entry,) = recording.entries
    assert entry.op.name == "sin" and entry.inputs[0] is X and entry.outputs[0] is y and entry.residuals is None
    assert repr(entry).startswith(f"sin: {X.dtype}[2] -> {X.dtype}[2]  (test_recording.py:")


def test_a_watch_begins_at_an_entry():
    recording = Recording()
    recording.watch(X)
    recording.watch(X)
    assert recording.watched == {id(X): (X, 0)}


def test_a_variable_keeps_all_that_it_held():
    recording, holder = Recording(), object()
    for x in (X, X, jnp.zeros(2)):
        recording.watch(x, holder)
    assert len(recording.variables[id(holder)][1]) == len(recording.watched) == 2


def test_a_continuation_goes_on_by_itself():
    recording, _ = recorded(lambda x: jnp.sin(x), X)
    continuation = recording.continuation()
    continuation.entries.clear()
    assert len(recording.entries) == 1 and continuation.watched == recording.watched


@pytest.mark.parametrize("take", [copy.deepcopy, pickle.dumps])
def test_it_is_not_copied(take):
    with pytest.raises(TypeError, match="identifies values by their arrays"):
        take(Recording())


def test_what_was_donated_is_deleted():
    x = jnp.ones(2)
    jax.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert is_deleted(x) and not is_deleted(X) and not is_deleted(np.ones(2))


def test_an_event_is_marked_at_its_entry():
    recording, _ = recorded(lambda x: jnp.sin(x), X)
    recording.mark("reset", "why")
    (mark,) = recording.marks
    assert (mark.kind, mark.position, mark.about) == ("reset", 1, "why")
    assert mark.where[0].co_name == "test_an_event_is_marked_at_its_entry"


def test_what_a_reset_replaces_is_known_but_not_kept_alive():
    former, y = recorded(lambda x: jnp.sin(x), X)
    recording = Recording()
    recording.succeed(former)
    assert {key: ref() for key, ref in recording.forgotten.items()} == {id(X): X, id(y): y}
    gone = recording.forgotten[id(y)]
    del former, y
    assert gone() is None


def test_the_value_of_a_variable_that_a_call_returned_unchanged_has_an_origin():
    recording, first, second, other = Recording(), *(jnp.ones(2) for _ in range(3))
    recording.forwarded = {id(second): first}
    recording.note_replaced(first, second)
    recording.note_replaced(first, other)  # no call returned it
    recording.note_replaced(other, second)  # what a call returned, but of another input
    assert recording.origins == {id(second): first}
