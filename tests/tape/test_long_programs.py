"""Programs of many steps: what looks through one looks at each step a few times."""

from __future__ import annotations

import numpy as np

import tapejax as tf
from tapejax.execution.chunks import chunks as chunks_of
from tapejax.tape.query import Query, Source


def unrolled(count, keep=()):
    """A chain of `count` times two operations: its program, in which the values numbered in `keep` are sources as well."""
    x = tf.constant(1.0)
    values = []
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x
        for _ in range(count):
            y = y * 1.001
            values.append(y)
            y = y + 0.0
    arrays = [x._array, *[values[i]._array for i in keep]]
    program, _ = Query(tape._recording, [y._array], [Source(a, None, True) for a in arrays]).program()
    return program, tape, x, y, values


class Counted(tuple):
    """The steps of a program; `looked` counts how often one is handed out."""

    looked = 0

    def __getitem__(self, at):
        found = super().__getitem__(at)
        Counted.looked += len(found) if isinstance(at, slice) else 1
        return found

    def __iter__(self):
        for step in super().__iter__():
            Counted.looked += 1
            yield step


def test_cutting_a_long_program_looks_at_each_step_a_few_times(monkeypatch):
    program, *_ = unrolled(2000)
    steps, asked = Counted(program.steps), []
    monkeypatch.setattr(type(program), "steps", property(lambda _: asked.append(1) or steps))
    Counted.looked = 0
    chunks = chunks_of(program)
    assert len(chunks) > 50
    assert len(asked) == 1  # they are made anew each time
    assert Counted.looked <= 4 * len(steps)


def test_equal_chunks_are_one_program():
    chunks = chunks_of(unrolled(1000)[0])
    assert len({id(chunk.program) for chunk in chunks}) <= 3 < len(chunks)


def test_sources_in_the_midst_of_a_long_program():
    _, tape, x, y, values = unrolled(300)
    found = tape.gradient(y, [x, values[10], values[150], values[299]])
    np.testing.assert_allclose([float(g) for g in found], [1.001**n for n in (300, 289, 149, 0)], rtol=1e-4)
