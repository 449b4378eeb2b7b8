"""`tape.memory`: bytes known by hand, and the bytes that go away with the tape."""

import gc

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf


def live():
    gc.collect()
    return sum(x.nbytes for x in jax.live_arrays())


def block(x, w):
    h = jnp.tanh(x @ w)
    h = jax.nn.gelu(h)
    return h @ w


def sizes(memory):
    return {row.line.text: (row.bytes, row.needed, row.saved, row.values) for row in memory}


def test_sizes_known_by_hand():
    x = jnp.ones(1000)
    with tf.GradientTape() as tape:
        tape.watch(x)
        a = jnp.exp(jnp.sin(x))
        unused = jnp.floor(a * 2)
        y = jnp.sum(a)
    memory = tape.memory(y, x)
    assert sizes(memory) == {
        "a = jnp.exp(jnp.sin(x))": (4000, 4000, 4000, 1),
        "unused = jnp.floor(a * 2)": (4000, 0, 4000, 1),
    }
    assert (memory.bytes, memory.needed) == (8000, 4000) and len(memory) == 2 and unused is not None


@pytest.mark.parametrize("how", ["jnp", "keras-like", "function", "persistent"])
def test_the_bytes_go_away_with_the_tape(how):
    rng = np.random.default_rng(0)
    weights = [jnp.asarray(rng.normal(size=(64, 64)), "float32") for _ in range(3)]
    variables = [tf.Variable(w) for w in weights]
    x = jnp.asarray(rng.normal(size=(512, 64)), "float32")
    run = tf.function(block) if how == "function" else block
    with tf.GradientTape(persistent=how == "persistent") as tape:
        tape.watch(weights)
        h = x
        for w in variables if how == "keras-like" else weights:
            h = run(h, w)
        loss = tf.reduce_mean(tf.convert_to_tensor(h) ** 2)
    memory = tape.memory(loss, variables if how == "keras-like" else weights)
    counted, before = memory.bytes, live()
    del tape, memory
    freed = before - live()
    assert freed > 0 and abs(counted - freed) <= 0.1 * freed


def test_what_recompute_grad_saves():
    """It is what the tape keeps less around the same functions."""
    w, x = jnp.ones((64, 64)) * 0.1, jnp.ones((512, 64))

    def kept(run):
        with tf.GradientTape() as tape:
            tape.watch(w)
            h = x
            for _ in range(3):
                h = run(h, w)
            loss = jnp.sum(h)
        return tape.memory(loss, w)

    plain, recomputed = kept(block), kept(tf.recompute_grad(block))
    assert plain.saved == pytest.approx(plain.bytes - recomputed.bytes, rel=0.1)


def test_what_others_hold_does_not_count():
    x = jnp.ones(1000)
    with tf.GradientTape() as tape:
        tape.watch(x)
        mine = jnp.sin(x)
        y = jnp.sum(jnp.exp(mine))
    assert tape.memory(y, x).bytes == 4000
    del mine
    assert tape.memory(y, x).bytes == 8000


@tf.custom_gradient
def by_python(x):
    return x * 2.0, lambda dy: dy * float(np.float32(2.0))


@pytest.mark.parametrize("function", [jnp.sin, tf.sin, by_python])
@pytest.mark.parametrize("persistent", [False, True])
def test_an_inner_tape_keeps_what_the_outer_one_keeps_too(function, persistent):
    """The outer tape recorded the gradient, and so the values that it reads."""
    x = jnp.ones(1000)
    with tf.GradientTape(persistent=persistent) as outer:
        outer.watch(x)
        with tf.GradientTape(persistent=True) as inner:
            inner.watch(x)
            y = jnp.sum(jnp.exp(jnp.asarray(function(x))))
        before = inner.memory(y, x)
        g = inner.gradient(y, x)
        after = inner.memory(y, x)
        z = jnp.sum(jnp.square(g))
    assert sizes(before) == sizes(after) == sizes(inner.memory(y, x)) and before.needed > 0
    memory = outer.memory(z, x)
    del g
    assert memory.bytes > before.bytes and memory.needed >= before.needed
    both = outer.memory(z, x).bytes
    start = live()
    del inner
    gc.collect()
    assert live() == start  # the outer one keeps it all
    del outer
    assert start - live() == both


def test_how_it_is_shown():
    x = jnp.ones(1 << 20)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = jnp.sum(jnp.exp(x))
    memory = tape.memory(y, x)
    assert str(memory).startswith("The tape keeps 4.0 MB: 4.0 MB for this gradient") and "█" in str(memory)
    assert "jnp.sum(jnp.exp(x))" in str(memory) and "4.0 MB" in memory._repr_html_()


def test_a_tape_that_is_used_up():
    x = jnp.ones(3)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = jnp.sum(x * x)
    tape.gradient(y, x)
    with pytest.raises(RuntimeError, match="persistent"):
        tape.memory(y, x)


def test_what_a_custom_pullback_closes_over_is_the_tapes():
    """The arguments of `recompute_grad` are in its pullback as well; what the user holds, too, does not count."""
    layers = [tf.Variable(np.eye(64, dtype=np.float32)) for _ in range(4)]
    with tf.GradientTape() as tape:
        h, outputs = tf.constant(np.ones((64, 64), np.float32)), []
        for layer in layers:
            h = tf.recompute_grad(lambda x, layer=layer: tf.tanh(x @ layer))(h)
            outputs.append(h)
        loss = tf.reduce_sum(h)
    del h
    each = 64 * 64 * 4
    assert tape.memory(loss, layers).bytes == 0  # `loss` and all of `outputs`
    del outputs[1:3]
    assert tape.memory(loss, layers).bytes == 2 * each
    del outputs[:]
    assert tape.memory(loss, layers).bytes == 4 * each
