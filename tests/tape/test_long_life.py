"""What stays in memory of functions that are gone, and what `tf.debugging.clear_caches` gives back."""

from __future__ import annotations

import functools
import gc
import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf
from tapejax.jaxprs import interning
from tapejax.jaxprs.cache import _caches
from tests.compiling import compiles

X = jnp.arange(3.0)


def jitted(number):
    factor = float(number)
    return jax.jit(lambda x: jnp.sum(jnp.sin(x) * factor))


def gradient(f):
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = f(X)
    return tape.gradient(y, X)


def second(number):
    f = jitted(number)
    with tf.GradientTape() as outer:
        outer.watch(X)
        with tf.GradientTape() as tape:
            tape.watch(X)
            y = f(X)
        g = jnp.sum(tape.gradient(y, X))
    outer.gradient(g, X)


def with_rule(number):
    @jax.custom_jvp
    def f(x):
        return jnp.sin(x) * float(number)

    f.defjvp(lambda primals, tangents: (f(*primals), jnp.cos(primals[0]) * tangents[0] * float(number)))
    gradient(lambda x: jnp.sum(f(x)))


def with_loop(number):
    def f(x):
        return jnp.sum(jax.lax.scan(lambda carry, _: (jnp.tanh(carry) * float(number), None), x, None, length=2)[0])

    gradient(f)


def closed_over(number):
    w = jnp.ones(3) * number
    gradient(jax.jit(lambda x: jnp.sum(jnp.sin(x * w) * float(number))))


def again(number):
    f = jitted(number)
    for _ in range(3):
        gradient(f)


def jacobian(number):
    f = jitted(number)
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = X * f(X)
    tape.jacobian(y, X)


def function(number):
    w = tf.Variable([1.0, 2.0])

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(w * float(number))
        w.assign_sub(tape.gradient(loss, w))

    step()


def eager(number):
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(x * (1.0 + float(number)))
    tape.gradient(y, x)


LIVES = {
    "jitted": lambda number: gradient(jitted(number)),
    **{f.__name__: f for f in (second, with_rule, with_loop, closed_over, again, jacobian, function, eager)},
}


def counts(life):
    """How many objects and arrays there are after each dozen of functions that were used and dropped."""

    def after(numbers):
        for number in numbers:
            LIVES[life](number + 0.5)
        gc.collect()
        return len(gc.get_objects()), len(jax.live_arrays())

    interning.UNUSED_KEPT, interning.AGES_KEPT = 6, 2
    tf.debugging.clear_caches()
    after(range(60))
    return [after(range(start, start + 12)) for start in range(60, 108, 12)]


@functools.cache
def counted():
    # in a process of its own: `tests.tape.interpreted`, which others import, replaces parts of JAX that keep and drop programs
    program = "import json; from tests.tape.test_long_life import LIVES, counts; print(json.dumps({x: counts(x) for x in LIVES}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("life", LIVES)
def test_what_a_dropped_function_used_goes_with_it(life):
    grown = np.diff(counted()[life], axis=0).min(
        axis=0
    )  # what stays grows each time; a cache on its way to its bound does not
    assert (grown < [2500, 3]).all(), counted()[life]  # 12 more functions: each that stayed would be some 500 objects


def test_a_notebook_may_live_long():
    program = """
import gc, jax, jax.numpy as jnp, tapejax as tf
from tests.tape.soak import memory
from tests.tape.test_long_life import X, gradient, jitted

from tests.compiling import compiles
for number in range(20):
    gradient(jitted(number))
gc.collect()
objects, bytes_ = len(gc.get_objects()), memory()
for number in range(20, 620):
    gradient(jitted(number))
gc.collect()
grown = len(gc.get_objects()) - objects
assert grown < 200_000, grown
assert memory() - bytes_ < 60 << 20, memory() - bytes_
tf.debugging.clear_caches()
jax.clear_caches()
gc.collect()
assert len(gc.get_objects()) < objects, len(gc.get_objects()) - objects
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600)
    assert not found.returncode, found.stderr


def test_what_is_used_at_each_step_stays_however_much_it_is(monkeypatch):
    """New functions of known structure, as code that makes a lambda at each call has them."""
    monkeypatch.setattr(interning, "UNUSED_KEPT", 6)

    def step():
        for number in range(20):
            with_loop(number)

    step()
    step()
    with compiles() as compiled:
        step()
    assert not compiled
    known = len(interning._representatives)
    step()
    assert len(interning._representatives) == known


def test_a_function_that_is_kept_is_known_however_long_it_rests(monkeypatch):
    monkeypatch.setattr(interning, "UNUSED_KEPT", 6)
    monkeypatch.setattr(interning, "AGES_KEPT", 2)
    f = jitted(0.25)
    for _ in range(300):  # until it is compiled
        gradient(f)
    for number in range(40):
        gradient(jitted(number + 0.75))
    with compiles() as compiled:
        gradient(f)
    assert not compiled


def test_clear_caches_forgets_all_and_breaks_nothing():
    v = tf.Variable(2.0)
    step = tf.function(lambda x: v.assign_add(x))
    step(1.0)
    before = gradient(jitted(3.0))
    with tf.GradientTape() as tape:
        y = jnp.sum(jax.nn.relu(X) * v)
        tf.debugging.clear_caches()
        z = y * 2.0
    tables = list(_caches)
    tf.debugging.clear_caches()
    assert len(tables) > 15
    assert not any(len(x) for x in tables)
    assert float(tape.gradient(z, v)) == 6.0
    np.testing.assert_array_equal(gradient(jitted(3.0)), before)
    assert float(step(1.0)) == 4.0
    assert step.experimental_get_tracing_count() <= 2
