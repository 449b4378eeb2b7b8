"""execution/pairs.py: pullbacks that came often enough in a row are one operation, which gives to the last bit what all give."""

import gc
import itertools
import random
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf
from tapejax.execution import pairs, schedule, shadow, trial
from tapejax.tape import rules

pytestmark = pytest.mark.skipif(
    bool(jax.config.jax_debug_nans or jax.config.jax_disable_jit), reason="each operation is looked into"
)
W = np.random.default_rng(0).normal(0, 0.5, (4, 4)).astype("float32")
# Operations that XLA would rewrite if it saw two of them together.
WORDS = {
    "matmul": lambda h, w: tf.matmul(h, w),
    "tanh": lambda h, w: tf.tanh(h),
    "add": lambda h, w: h + w,
    "multiply": lambda h, w: h * w,
    "relu": lambda h, w: tf.nn.relu(h),
    "over a number": lambda h, w: h / 41.0,
    "small factor": lambda h, w: h * 1e-25,
    "large factor": lambda h, w: h * 1e25,
    "square": lambda h, w: tf.square(h),
    "mean": lambda h, w: h - tf.reduce_mean(h, axis=0),
    "plus nothing": lambda h, w: h + 0.0,
    "exp": lambda h, w: tf.exp(h),
}


@pytest.fixture
def paired(monkeypatch):
    """Two or four pullbacks are one from the second time on. What is yielded has the names of those that ran."""
    ran = []
    run = pairs.dispatch.run

    def counting(op, inputs):
        if any(op is known for _, pair in pairs._fused.items() for known, _ in pair.ops.values()):
            ran.append(op.name)
        return run(op, inputs)

    monkeypatch.setattr(pairs.dispatch, "run", counting)
    monkeypatch.setattr(pairs, "COMPILE", 0)
    monkeypatch.setattr(pairs, "COUNT_EVERY", 1)
    monkeypatch.setattr(trial, "enabled", False)
    monkeypatch.setattr(trial, "RUNS_TO_DECIDE", 0)
    monkeypatch.setattr(schedule, "_worth_compiling", lambda program, values: False)
    pairs._fused.clear()
    yield ran
    pairs._fused.clear()


def gradients(words, w, x=None):
    x = tf.cast(W, w.dtype) if x is None else x
    with tf.GradientTape() as tape:
        h = x
        tape.watch(h)
        for word in words:
            h = WORDS[word](h, w)
        y = tf.reduce_sum(h + w)
    return tape.gradient(y, [w, x])


def bits(xs):
    return [np.asarray(x).tobytes() for x in xs]


def alone(monkeypatch, fn):
    with monkeypatch.context() as patch:
        patch.setattr(pairs, "possible", lambda program: False)
        return fn()


@pytest.mark.parametrize("x64", [False, True])
def test_bits_are_those_of_operations_alone(paired, monkeypatch, x64):
    with jax.enable_x64(x64):
        w = tf.Variable(W.astype("float64" if x64 else "float32"))
        chosen, rng = list(itertools.pairwise([*WORDS, *WORDS])), random.Random(3)
        chosen += [(one, one) for one in WORDS] + [rng.choices(list(WORDS), k=12) for _ in range(6)]
        for words in chosen:
            for _ in range(3):
                found = gradients(words, w)
            assert bits(found) == bits(alone(monkeypatch, lambda words=words: gradients(words, w))), words
    assert len(paired) > 100 and {"tanh_pullback_matmul_pullback", "matmul_pullback_tanh_pullback"} & set(paired)
    assert sum(name.count("_pullback") == 4 for name in paired) > 20


def test_shadow_mode_compares(paired, monkeypatch):
    w = tf.Variable(W)
    for _ in range(3):
        gradients(["matmul", "tanh"], w)
    paired.clear()
    shadow.switch(True)
    try:
        gradients(["matmul", "tanh"], w)
        assert paired
        one_by_one = pairs._one_by_one
        monkeypatch.setattr(pairs, "_one_by_one", lambda *args: [x * 2 for x in one_by_one(*args)])
        with pytest.raises(shadow.ShadowError):
            gradients(["matmul", "tanh"], w)
    finally:
        shadow.switch(False)


def test_nothing_is_compiled_before_it_pays(paired, monkeypatch):
    monkeypatch.setattr(pairs, "COMPILE", 60_000)
    w = tf.Variable(W)
    for _ in range(5):
        gradients(["matmul", "tanh", "matmul"], w)
    assert not paired and sum(pair.counts[key] for _, pair in pairs._fused.items() for key in pair.counts) >= 15


def test_a_pullback_that_is_not_compiled_is_not_paired(paired, monkeypatch):
    monkeypatch.setattr(trial, "enabled", True)
    monkeypatch.setattr(trial, "RUNS_TO_DECIDE", 10_000)
    w = tf.Variable(W[:3, :3])
    for _ in range(4):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(tf.sinh(tf.cosh(w)))
        tape.gradient(y, w)
    assert not [name for name in paired if "sinh" in name]


def test_what_is_asked_between_two_operations_is_there(paired):
    w = tf.Variable(W)
    for _ in range(3):
        with tf.GradientTape(persistent=True) as tape:
            x = tf.matmul(w, w)
            y = tf.tanh(x)
            z = tf.reduce_sum(tf.matmul(y, w))
        of_y, of_x, of_w = tape.gradient(z, [y, x, w])
        again = tape.gradient(z, w)
    np.testing.assert_allclose(of_y, np.ones((4, 4)) @ W.T, rtol=1e-6)
    np.testing.assert_allclose(of_x, (1 - np.tanh(W @ W) ** 2) * of_y.numpy(), rtol=1e-5)
    np.testing.assert_allclose(of_w, again, rtol=1e-6)
    np.testing.assert_allclose(of_w, jax.grad(lambda w: jnp.sum(jnp.tanh(w @ w) @ w))(jnp.asarray(W)), rtol=1e-5)


def test_an_outer_tape_sees_each_operation(paired):
    w = tf.Variable(W)

    def second():
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                y = tf.reduce_sum(tf.tanh(tf.matmul(w, w)))
            slope = inner.gradient(y, w)
            end = tf.reduce_sum(slope * slope)
        return outer.gradient(end, w)

    for _ in range(3):
        found = second()
    slope = jax.grad(lambda w: jnp.sum(jnp.tanh(w @ w)))
    np.testing.assert_allclose(found, jax.grad(lambda w: jnp.sum(slope(w) ** 2))(jnp.asarray(W)), rtol=1e-4, atol=1e-5)


def test_a_registered_gradient_counts_from_then_on(paired, monkeypatch):
    monkeypatch.setattr(rules, "_rules", dict(rules._rules))
    w = tf.Variable(W)
    for _ in range(3):
        gradients(["tanh", "matmul"], w)
    assert len(pairs._fused)
    rules.register("tanh", lambda inputs, outputs, cotangents: [jnp.full_like(inputs[0], 7.0)])
    assert not len(pairs._fused)
    _, of_x = gradients(["tanh"], w)
    np.testing.assert_array_equal(of_x, np.full((4, 4), 7.0))
    for cache, _ in rules.caches:
        cache.clear()


def test_kinds_are_bounded(paired, monkeypatch):
    monkeypatch.setattr(pairs, "MOST_KINDS", 3)
    for size in range(2, 9):
        x = tf.Variable(np.ones(size, "float32"))
        for _ in range(3):
            with tf.GradientTape() as tape:
                y = tf.reduce_sum(tf.tanh(tf.sin(x)))
            np.testing.assert_allclose(
                tape.gradient(y, x), jax.grad(lambda x: jnp.sum(jnp.tanh(jnp.sin(x))))(x.value()), rtol=1e-6
            )
    assert max(len(pair.ops) for _, pair in pairs._fused.items()) == 3
    assert max(len(pair.counts) for _, pair in pairs._fused.items()) <= 3


def test_arrays_are_not_kept(paired):
    w = tf.Variable(W)
    x = tf.constant(W)
    for _ in range(3):
        gradients(["matmul", "tanh"], w, x)
    gone = weakref.ref(x._array)
    del x
    gc.collect()
    assert paired and gone() is None
