"""Recordings of plain functions of arrays, for the tests of the files of tapejax/tape."""

import jax.numpy as jnp

from tapejax.tape import active, trace
from tapejax.tape.query import Query
from tapejax.tape.recording import Recording

assert active.kind is trace.RecorderTrace


def recorded(fn, *arrays, watched=True):
    """A recording in which ``fn(*arrays)`` ran, with the arrays watched, and the result."""
    recording = Recording()
    for x in arrays if watched else ():
        recording.watch(x)
    return recording, active.also(recording, fn, *arrays)


def program_of(fn, *arrays):
    """The program from `arrays` to ``fn(*arrays)``, and the values that it reads."""
    recording, y = recorded(fn, *arrays)
    return Query(recording, [y], list(arrays)).program()


X, Y = jnp.array([1.0, 2.0]), jnp.array([3.0, 5.0])
