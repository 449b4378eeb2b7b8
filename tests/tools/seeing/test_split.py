"""The split player's data: JAX's own programs of a recording, and which equation belongs to which operation of the tape."""

from __future__ import annotations

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf
from tapejax.tools.seeing import split, steps


def walk_of(tape, target, sources):
    return steps.Backward(tape, target, sources)


def run(program, *args):
    return jax.extend.core.jaxpr_as_fun(program)(*args)


def recorded():
    """y = Σ softmax(tanh(a·w))·sin(x): a product, functions with rules of their own, jitted ones, a broadcast."""
    x, w, a = jnp.asarray(0.7), jnp.asarray([[1.0, -0.2], [0.3, 0.4]]), jnp.asarray([[1.0, 2.0]])

    def function(x, w):
        h = jax.nn.relu(jnp.tanh(a @ w))
        return jnp.sum(jax.nn.softmax(h) * jnp.sin(x) * h)

    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, w])
        y = function(x, w)
    return tape, y, [x, w], function


def test_the_programs_compute_what_jax_computes():
    tape, y, sources, function = recorded()
    found = split.programs(walk_of(tape, y, sources))
    value, *rest = run(found.forward, *sources)
    residuals = rest[found.values :]
    assert residuals
    np.testing.assert_allclose(value, function(*sources), rtol=1e-6)
    tangents = [jnp.asarray(2.0), jnp.asarray([[0.5, 1.0], [-1.0, 3.0]])]
    np.testing.assert_allclose(
        run(found.linear, *residuals, *tangents)[0], jax.jvp(function, sources, tangents)[1], rtol=1e-5
    )
    gradients = run(found.transposed, *residuals, jnp.asarray(3.0))
    for got, want in zip(gradients, jax.grad(function, (0, 1))(*sources), strict=True):
        np.testing.assert_allclose(got, 3.0 * want, rtol=1e-5)
    for got, want in zip(gradients, tape.gradient(y, sources), strict=True):
        np.testing.assert_allclose(got, 3.0 * want, rtol=1e-5)


def test_the_rows_by_hand():
    """y = h² + h with h = sin(x): each program is short enough to be written down."""
    x = tf.Variable(0.5)
    with tf.GradientTape() as tape:
        h = tf.sin(x)
        y = h * h + h
    data = tape.play(y, x).data
    label = lambda node: None if node is None else data["nodes"][node]["label"]  # noqa: E731
    forward, linear, transposed = [
        [(text, label(node)) for text, _, node in program["rows"]] for program in data["split"]
    ]
    assert forward == [
        ("λ x", None),
        ("h = sin x", "sin"),
        ("a = cos x", "sin"),
        ("t1 = mul h h", "multiply"),
        ("y = add t1 h", "add"),
        ("return y; keep a, h", None),
    ]
    assert linear == [
        ("λ dx", None),
        ("dh = mul dx a", "sin"),
        ("b = mul dh h", "multiply"),
        ("c = mul h dh", "multiply"),
        ("dt1 = add_any b c", "multiply"),
        ("dy = add dt1 dh", "add"),
        ("return dy", None),
    ]
    names = [node for _, node in transposed]
    assert transposed[0] == ("λ ct_y", None) and transposed[-1] == ("return ct_x", None)
    assert names[1:-2] == ["multiply"] * (len(names) - 3) and transposed[-2][0].startswith("ct_x = mul ")
    assert transposed[-2][1] == "sin" and transposed[-2][0].endswith(" a")


def test_every_equation_belongs_to_an_operation():
    tape, y, sources, _ = recorded()
    for program in tape.play(y, sources).data["split"]:
        first, *equations, last = program["rows"]
        assert first[2] is None and last[2] is None
        assert equations and all(node is not None for _, _, node in equations)
        names = [name for text, _, _ in equations for name in text.partition(" = ")[0].split(", ")]
        assert len(names) == len(set(names))  # each is written once


def test_letters_are_no_names_of_the_tape():
    a, b = tf.Variable(0.5), tf.constant(2.0)
    with tf.GradientTape() as tape:
        c = tf.sin(a) * b
    rows = tape.play(c, a).data["split"][0]["rows"]
    assert [text for text, _, _ in rows][:3] == ["λ a", "t0 = sin a", "e = cos a"]


def test_a_rule_that_is_a_pullback_appears_where_it_is_transposed():
    @tf.custom_gradient
    def other(x):
        return 2.0 * x, lambda upstream: 5.0 * upstream

    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = other(x * x)
    found = split.programs(walk_of(tape, y, x))
    residuals = run(found.forward, jnp.asarray(3.0))[found.targets + found.values :]
    assert run(found.transposed, *residuals, jnp.asarray(1.0)) == [30.0] == [tape.gradient(y, x).numpy()]
    assert any("custom_lin" in text for text, _, _ in tape.play(y, x).data["split"][1]["rows"])


@pytest.mark.parametrize("kind", ["a source on the way", "not connected"])
def test_what_is_no_function_of_the_sources_has_no_programs(kind):
    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        area = x * x
        price = area * 2.0
        other = tf.round(x)
    target, sources = {"a source on the way": (price, [x, area]), "not connected": (other, x)}[kind]
    assert tape.play(target, sources).data["split"] is None


def test_nothing_is_run_again():
    calls = []

    def host(x):
        calls.append(1)
        return np.sin(x)

    x = jnp.asarray(1.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        c = jax.pure_callback(host, jax.ShapeDtypeStruct((), x.dtype), jax.lax.stop_gradient(x))
        y = c * x
    count = len(calls)
    assert split.programs(walk_of(tape, y, x)) is not None and len(calls) == count
