"""`tape.as_function(target, sources, arguments=...)`: parameters beside the sources, or a refusal that says why."""

from __future__ import annotations

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf
from tests.tape.interpreted import interpreted


def pasted(function):
    """The printed function, run in a namespace of its own."""
    space = {"jax": jax, "jnp": jnp, "np": np, **function.constants}
    exec(compile(function.code, "<pasted>", "exec"), space)
    return space["f"]


def by_hand(sources, x, y, rate, key):
    noise = jax.random.normal(key, y.shape, sources["w"].dtype)
    return jnp.mean((x @ sources["w"] + sources["b"] - y.astype(noise.dtype) + noise) ** 2) * rate


def recorded(dtype):
    w, b = tf.Variable(tf.ones([3], dtype), name="w"), tf.Variable(tf.cast(0.5, dtype), name="b")
    x, y = tf.reshape(tf.range(6, dtype=dtype), [2, 3]), tf.constant([0, 1])
    rate, key = tf.Variable(tf.cast(0.1, dtype), trainable=False), jax.random.key(0)
    sources = {"w": w, "b": b}
    with tf.GradientTape() as tape:
        noise = tf.Tensor(jax.random.normal(key, (2,), dtype.as_numpy_dtype))
        error = tf.linalg.matvec(x, w) + b - tf.cast(y, dtype) + noise
        loss = tf.reduce_mean(error**2) * rate
    return tape, loss, sources, {"x": x, "y": y, "rate": rate, "key": key}


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("form", [dict, list, tuple])
def test_computes_with_what_it_is_given(form, wide):
    with jax.enable_x64(wide):
        dtype = tf.float64 if wide else tf.float32
        tape, loss, sources, arguments = recorded(dtype)
        function = tape.as_function(loss, sources, arguments if form is dict else form(arguments.values()))
        params = {name: jnp.asarray(v.numpy()) for name, v in sources.items()}
        x = jnp.asarray(np.linspace(-1, 1, 6).reshape(2, 3), params["w"].dtype)
        others = x, jnp.asarray([3, -2], jnp.int32), jnp.asarray(0.7, x.dtype), jax.random.key(7)
        expected = interpreted()(by_hand)(params, *others)
        assert expected.dtype == x.dtype
        slopes = interpreted()(jax.grad(by_hand, argnums=(0, 1, 3)))(params, *others)
        for f in (function, pasted(function)):
            for call in (f, jax.jit(f)):
                np.testing.assert_allclose(call(params, *others), expected, rtol=2e-5)
                assert call(params, *others).dtype == expected.dtype
            found = interpreted()(jax.grad(f, argnums=(0, 1, 3)))(params, *others)
            jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=2e-5), found, slopes)
            many = jax.tree.map(lambda a: jnp.stack([a, a + 1]), others[:3]), jax.random.split(others[3])
            mapped = jax.vmap(f, in_axes=(None, 0, 0, 0, 0))(params, *many[0], many[1])
            one = by_hand(params, *(a[1] for a in (*many[0], many[1])))
            np.testing.assert_allclose(mapped[1], one, rtol=2e-5)
        np.testing.assert_allclose(function(sources, *arguments.values()), loss.numpy(), rtol=1e-5)


def test_by_name_and_in_order():
    tape, loss, sources, arguments = recorded(tf.float32)
    function = tape.as_function(loss, sources, arguments)
    values = {name: v for name, v in arguments.items() if name != "rate"}
    np.testing.assert_allclose(function(sources, rate=1, **values), loss.numpy() * 10, rtol=1e-5)
    assert "# for x: float32[2,3], y: int32[2], rate: float32" in function.code
    assert "\ndef f(params, x, y, rate, key):\n" in function.code
    x, w = arguments["x"], sources["w"]
    single = tape.as_function(loss, w, [x])
    assert "def f(w, x):" in single.code
    np.testing.assert_allclose(single(w, x), loss.numpy(), rtol=1e-5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": np.zeros((1, 3), "f")}, r"x: expected float32\[2,3\], as recorded; got float32\[1,3\]"),
        ({"y": np.zeros(2, "f")}, r"y: expected int32\[2\]"),
        ({"rate": True}, None),
        ({"rate": 1j}, "rate: expected float32"),
        ({"z": 1.0}, "unexpected keyword"),
    ],
)
def test_other_types_are_refused(change, message):
    tape, loss, sources, arguments = recorded(tf.float32)
    function = tape.as_function(loss, sources, arguments)
    if message is None:
        function(sources, **arguments | change)
    else:
        with pytest.raises(TypeError, match=message):
            function(sources, **arguments | change)


def test_a_weak_number_stays_weak():
    x, rate = jnp.ones(2, jnp.bfloat16), jnp.asarray(0.5)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * rate
    function = tape.as_function(y, x, {"rate": rate})
    assert function(x, 0.25).dtype == jnp.bfloat16
    assert jax.jit(function)(x, 0.25).dtype == jnp.bfloat16
    with pytest.raises(TypeError, match="from a Python number"):
        function(x, jnp.float32(0.25))


# What the recorded program depends on in a way that was not recorded: w is the source, the others are arguments.
REFUSED = {
    "(w * 2.0) if tf.reduce_sum(x) > 0 else w * x": "Python looked at the value of x",
    "w * x * float(x[0])": "Python looked at",
    "w * x * x.numpy()": "Python looked at",
    "w * x if a[0] > 1 else w * a": "Python may have looked at",
    "jnp.asarray(w) * np.asarray(a) * a": "uses a NumPy array",
    "jnp.sum(jnp.asarray(w)[m]) / jnp.sum(m)": "uses a NumPy array",
    "tf.boolean_mask(w, x > 1.5) * x[0]": "a shape, an index or an axis",
    "w[:n] * tf.cast(n, tf.float32)": "a shape, an index or an axis",
    "w[n] * tf.cast(n, tf.float32)": "a shape, an index or an axis",
    "tf.reduce_sum(w[0] * tf.cast(tf.range(n), tf.float32))": "a shape, an index or an axis",
    "tf.Variable(x) * w * x": "a variable was assigned",
    "(kept.assign(x), kept * w * x)[1]": "a variable was assigned",
    "(kept.assign(x), kept.assign_add(x), kept.read_value() * w)[2]": "a variable was assigned",
    "tf.numpy_function(lambda v: v * 2, [x], tf.float32) * w * x": "runs Python",
    "tf.py_function(lambda v: v.numpy() * 2, [x], tf.float32) * w * x": "Python looked at",
    "closes_over(w) * x": "does not take as an argument",
    "tf.recompute_grad(lambda v: v * x)(w) * x": "does not take as an argument",
    "w * 2.0": "does not depend on the argument 'x'",
    "w * tf.constant(x.numpy())": "Python looked at",
    "stopped(tape) * w * x": "the tape was stopped",
}
NAMES = {"a": jnp.arange(1.0, 4.0), "m": jnp.array([True, False, True]), "n": 2}


@pytest.mark.parametrize("text", REFUSED)
def test_refused_with_words(text):
    x = tf.constant([1.0, 2.0, 3.0])
    w, kept = tf.Variable(tf.ones([3])), tf.Variable(tf.zeros([3]), trainable=False)
    named = {**NAMES, "n": tf.constant(2), "x": x}

    @tf.custom_gradient
    def closes_over(v):
        return v * x, lambda d: d * x

    def stopped(tape):
        with tape.stop_recording():
            return tf.constant(x * 2.0)

    space = {"tf": tf, "jnp": jnp, "np": np, "w": w, "kept": kept, "closes_over": closes_over, "stopped": stopped}
    with tf.GradientTape() as tape:
        y = eval(text, {**space, **named, "tape": tape})
    name = next((name for name in ("a", "m", "n") if re.search(rf"\b{name}\b", text)), "x")
    with pytest.raises(ValueError, match=REFUSED[text]):
        tape.as_function(y, w, {name: named[name]})


def test_shared_and_derived_arguments():
    x, w = tf.constant([1.0, 2.0]), tf.Variable([3.0, 4.0])
    held = tf.Variable(1.0, trainable=False)
    with tf.GradientTape() as tape:
        z = x * 2.0
        held_before = held * 1.0
        held.assign(5.0)
        y = z * w * x * held * held_before
    for arguments, message in [
        ({"a": x, "b": x}, "one and the same array"),
        ({"w": w}, "one and the same array"),
        ({"x": x, "z": z}, "computed in the block"),
        ({"held": held}, "was assigned to while the tape recorded"),
        ({"int": x}, "cannot be the name"),
        ({"jnp": x}, "cannot be the name"),
        ({"not a name": x}, "cannot be the name"),
    ]:
        with pytest.raises(ValueError, match=message):
            tape.as_function(y, w, arguments)
    with pytest.raises(TypeError, match="Make it a tensor before the block"):
        tape.as_function(y, w, {"x": np.ones(2)})
    with pytest.raises(TypeError, match="a dict, list or tuple"):
        tape.as_function(y, w, 3.0)
    alone = tape.as_function(y, w, {"z": z})  # a value of the block that came of no parameter
    np.testing.assert_allclose(alone(w, z * 2.0), 2 * y.numpy())


def test_printed_dropout_with_a_recorded_key():
    w = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        y = tf.nn.dropout(w, 0.5)
    np.testing.assert_allclose(pasted(tape.as_function(y, w))(jnp.asarray(w)), y.numpy())


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("jitted", [False, True])
def test_a_source_of_another_type_is_refused(jitted, x64):
    """A jitted program reads the bytes of integers as floats; a size that was counted is a constant."""
    with jax.enable_x64(x64):
        x = jnp.array([1.0, 2.0], jnp.float32)
        mean = lambda x: jnp.sum(jnp.sin(x)) / len(x)  # noqa: E731
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = (jax.jit(mean) if jitted else mean)(x)
        f = tape.as_function(y, x)
        for other in (jnp.array([1, 2], jnp.int32), jnp.ones(3, jnp.float32), jnp.ones(2, jnp.float16)):
            with pytest.raises(TypeError, match=r"sources: expected float32\[2\], as recorded; got"):
                f(other)
        np.testing.assert_allclose(jax.vmap(f)(jnp.stack([x, 2 * x])), [mean(x), mean(2 * x)], rtol=1e-6)
