"""tape/query.py: targets and sources in, the program between them and its recorded values out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from taping import X, Y, recorded

from tapejax.tape import active
from tapejax.tape.query import Query, Source, in_recorded_types
from tapejax.tape.recording import Recording
from tapejax.tape.sweep import sweep


def gradient(recording, y, *sources):
    return Query(recording, [y], list(sources)).derivative(lambda program, values: sweep(program, values))


def test_a_derivative_for_each_source():
    recording, y = recorded(lambda x, z: jnp.sum(x * x * z), X, Y)
    one, other = gradient(recording, y, X, Y)
    np.testing.assert_array_equal(one, 2 * X * Y)
    np.testing.assert_array_equal(other, X * X)


def test_none_for_what_is_not_connected():
    recording, y = recorded(lambda x: jnp.sum(x), X)
    assert gradient(recording, y, Y) == [None]


def test_what_was_watched_later_counts_for_later_operations():
    recording = Recording()

    def run():
        before = jnp.sum(X * 2.0)
        recording.watch(X)
        return before, jnp.sum(X * 3.0)

    before, after = active.also(recording, run)
    assert gradient(recording, before, X) == [None]
    np.testing.assert_array_equal(gradient(recording, after, X)[0], [3.0, 3.0])


def test_all_that_a_holder_held_counts():
    recording, holder, other = Recording(), object(), jnp.array([2.0, 3.0])
    recording.watch(X, holder)
    recording.watch(other, holder)
    y = active.also(recording, lambda: jnp.sum(X * 2.0) + jnp.sum(other * 5.0))
    np.testing.assert_array_equal(gradient(recording, y, Source(other, holder))[0], [7.0, 7.0])


def test_a_recorded_value_that_was_deleted_is_named():
    x = jnp.array([1.0, 2.0])
    recording, y = recorded(lambda x: jnp.sum(x * x), x)
    jax.jit(lambda x: x + 1, donate_argnums=0)(x)
    with pytest.raises(RuntimeError, match="was deleted since: most likely it was donated"):
        gradient(recording, y, x)


def test_a_target_that_is_a_source_has_its_own_cotangent():
    whole = jnp.array([1, 2])
    recording, _ = recorded(lambda x: jnp.sin(x), X)
    query = Query(recording, [X, whole], [X, whole])
    assert query.derivative(lambda program, values: sweep(program, values, [Y, whole])) == [Y, whole]


def test_another_error_than_that_of_a_deleted_value_is_left_as_it_is():
    def take(program, values):
        raise ValueError("the caller's")

    recording, y = recorded(lambda x: jnp.sum(x), X)
    with pytest.raises(ValueError, match="the caller's"):
        Query(recording, [y], [X]).derivative(take)


def test_a_derivative_is_taken_in_the_types_of_the_recording():
    class Holder:
        _recording = None

        @in_recorded_types
        def zero(self):
            return jnp.zeros(()).dtype

    holder = Holder()
    with jax.enable_x64(True):
        holder._recording = Recording()
    with jax.enable_x64(False):
        assert holder.zero() == "float64" and jnp.zeros(()).dtype == Holder().zero() == "float32"
