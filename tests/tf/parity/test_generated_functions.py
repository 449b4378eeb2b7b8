"""Functions made at random, with AutoGraph's control flow, agree with TensorFlow; `python -m tests.tf.parity.generated_functions`
runs more of them. And what these found."""

import pytest
from generated_functions import TOLERANCE, body_of
from harness import parity
from tables import Table

from tests.tape.interpreted import interpreted

pytest.importorskip("malt", reason="the extra `autograph` is not installed")


def interpreted_body(seed):
    body = body_of(seed)

    def run(tf):
        with interpreted():  # to compile them takes several times as long
            return body(tf)

    return run


table = Table(**TOLERANCE)
for seed in (0, 2, 3, 8, 9, 10):  # which TensorFlow makes in little time, and does not refuse where tapejax does not
    table.values(f"function-{seed}", interpreted_body(seed))

test_functions = table.test()


def counts(tf, bounds):
    "How often a loop over a range of floats runs, its sum, and the sum's gradient with respect to the step."

    @tf.function
    def count(limit, step):
        n, total = 0, 0.0
        for x in tf.range(0.0, limit, step):
            n += 1
            total += x
        return n, total

    found = []
    for limit, step in bounds:
        step = tf.constant(step)
        with tf.GradientTape() as tape:
            tape.watch(step)
            n, total = count(tf.constant(limit), step)
        found.append((n, total, tape.gradient(total, step)))
    return found


@parity
def test_a_range_of_floats_between_traced_bounds(tf):
    "It has as many elements as outside the loop, although 20 * 0.01 is less than 0.2 in single precision."
    return counts(tf, [(0.2, 0.01), (1.0, 0.25), (0.0, 0.5), (0.9, 0.25)])


@parity(
    differs="a loop over a range of floats runs once for each of its elements; TensorFlow's AutoGraph adds up the step"
)
def test_a_range_of_floats_that_rounding_lengthens(tf):
    "0.01 added up five times is less than 0.05; the range has five elements."
    return counts(tf, [(0.05, 0.01)])


@parity
def test_the_index_after_the_loop(tf):
    "It is the last one, and 0 after a loop that never ran."

    @tf.function
    def last(n, x):
        for i in tf.range(n):
            if i > 2:
                break
            x += tf.cast(i, x.dtype)
        return i, x

    found = []
    for n in (0, 1, 3, 7):
        x = tf.constant(2.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            i, y = last(tf.constant(n), x)
            z = y * tf.cast(i, x.dtype)
        found.append((i, y, tape.gradient(z, x)))
    return found
