"""The local derivatives that `tape.play` shows: each number is JAX's, and a formula is shown where it gives that number."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_play import numbers

import tapejax as tf
from tapejax.tools.seeing import local

A, B = np.float32([[0.5, -1.25], [2.0, 0.75]]), np.float32([[1.5, 0.25], [-0.5, 3.0]])
POSITIVE = {"log", "log1p", "sqrt", "rsqrt", "pow"}
# Where neither `tf` nor `jnp` has a function of that name with one or two arrays.
CALLS = {
    "integer_pow": lambda x: jax.lax.integer_pow(x, 3),
    "sub": jax.lax.sub,
    "mul": jax.lax.mul,
    "div": jax.lax.div,
    "neg": jax.lax.neg,
    "max": jax.lax.max,
    "min": jax.lax.min,
    "logistic": jax.lax.logistic,
    "truediv": lambda x, y: tf.constant(x) / tf.constant(y),
    "rsqrt": jax.lax.rsqrt,
    "relu": tf.nn.relu,
    "softplus": tf.nn.softplus,
    "where": lambda x, y: jnp.where(A > 0.6, x, y),
    "cast": lambda x: tf.cast(x, tf.float16),
    "convert_element_type": lambda x: jax.lax.convert_element_type(x, jnp.float16),
    "read_value": lambda x: x.read_value(),
    "copy": jnp.copy,
    "dot_general": lambda x, y: jax.lax.dot_general(x, y, (((1,), (0,)), ((), ()))),
    "einsum": lambda x, y: jnp.einsum("ij,jk->ik", x, y),
}


def told(function, *arrays):
    """For each input of the last operation of `function`, what the page tells of its local derivative."""
    with tf.GradientTape() as tape:
        tape.watch(arrays)
        y = function(*arrays)
    data = tape.play(y, arrays, output_gradients=jnp.asarray(np.resize(A, y.shape), y.dtype)).data
    (back,) = [frame for frame in data["frames"] if frame["kind"] == "backward"][:1]
    return data, [(why, part) for sum in back["sums"] for why, part in zip(sum["whys"], sum["parts"], strict=True)]


@pytest.mark.parametrize("name", local.ELEMENTWISE)
def test_the_rule_of_an_elementwise_operation(name):
    function = CALLS.get(name) or getattr(tf, name, None) or getattr(jnp, name)
    rules = local.ELEMENTWISE[name]
    count = 2 if name == "where" else len(rules)
    arrays = [jnp.asarray(np.abs(x) if name in POSITIVE else x) for x in (A, B)[:count]]
    data, found = told(function, *([tf.Variable(A)] if name == "read_value" else arrays))
    assert len(found) == count
    for (why, part), rule in zip(found, rules[-count:], strict=True):
        np.testing.assert_allclose(
            numbers(data, why["by"]) * numbers(data, why["value"]), numbers(data, part), rtol=2e-3, atol=1e-6
        )
        assert (why["rule"] == "") == (rule in ("1", "-1")), why
        assert not why["matrix"] and not why["sum"]


@pytest.mark.parametrize("name", local.BACK)
def test_the_rule_of_a_matrix_product(name):
    function = CALLS.get(name) or getattr(jnp, name)
    if name == "transpose":
        data, [(why, _)] = told(function, jnp.asarray(A))
        assert why["rule"] == "∂y/∂yᵀ" and why["value"] is None
        return
    data, found = told(function, jnp.asarray(A), jnp.asarray(B))
    assert [why["rule"] for why, _ in found] == ["∂y/∂y · c1ᵀ", "c0ᵀ · ∂y/∂y"] or "ᵀ" in found[0][0]["rule"]
    assert [why["shapes"] for why, _ in found] == ["2×2 · 2×2"] * 2


def test_as_a_lecturer_writes_it():
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = tf.sin(x) * 14.68
    data = tape.play(y, x).data
    frame = data["frames"][-2]
    (why,), (part,) = frame["sums"][0]["whys"], frame["sums"][0]["parts"]
    assert why["rule"] == "cos(1.0)" and numbers(data, why["by"]) == np.float32(14.68)
    assert numbers(data, why["value"]) == np.cos(np.float32(1)) and numbers(data, part) == pytest.approx(
        7.931, rel=1e-3
    )


def test_dW():
    x, W = tf.constant([[1.0, 2.0]]), tf.Variable([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with tf.GradientTape() as tape:
        y = x @ W
        loss = tf.reduce_sum(y**2)
    data = tape.play(loss, W).data
    why = data["frames"][-2]["sums"][0]["whys"][0]
    assert (why["rule"], why["shapes"], why["value"]) == ("xᵀ · ∂loss/∂y", "2×1 · 1×3", None)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.matmul(x, W.numpy().T, transpose_b=True)
    why = tape.play(y, x).data["frames"][-2]["sums"][0]["whys"][0]
    assert "ᵀ" not in why["rule"]  # the rule of a product that transposes nothing would be wrong


def test_what_is_broadcast_is_summed_on_the_way_back():
    bias = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]) * bias
    data = tape.play(y, bias).data
    (why,), (part,) = data["frames"][-2]["sums"][0]["whys"], data["frames"][-2]["sums"][0]["parts"]
    assert why["sum"] and numbers(data, why["value"]).shape == (3, 2)
    np.testing.assert_array_equal(
        (numbers(data, why["by"]) * numbers(data, why["value"])).sum(0), numbers(data, part)[0]
    )
    (pushed,) = data["frames"][1]["pushed"]
    assert not pushed["sum"]  # forward it is not


def test_what_has_no_rule_is_shown_by_its_jacobian():
    x = tf.Variable([1.0, 2.0, -1.0])
    with tf.GradientTape() as tape:
        y = tf.cumsum(x)
    data = tape.play(y, x, output_gradients=tf.constant([1.0, 10.0, 100.0])).data
    (why,), (part,) = data["frames"][-2]["sums"][0]["whys"], data["frames"][-2]["sums"][0]["parts"]
    assert why["rule"] == "Jacobian 3×3" and why["matrix"]
    np.testing.assert_array_equal(numbers(data, why["value"]), np.tril(np.ones((3, 3))))
    np.testing.assert_array_equal(numbers(data, why["by"]) @ numbers(data, why["value"]), numbers(data, part))


def test_a_diagonal_jacobian_is_elementwise():
    x = jnp.asarray([0.5, -1.0])
    data, [(why, _)] = told(jax.jit(lambda x: x * jnp.sin(x)), x)
    assert not why["matrix"] and why["rule"] == ""
    np.testing.assert_allclose(numbers(data, why["value"])[0], jnp.sin(x) + x * jnp.cos(x), rtol=1e-5)


def test_what_is_too_large_has_its_shape():
    x = tf.Variable(np.ones((30, 40), np.float32))
    with tf.GradientTape() as tape:
        y = tf.cumsum(x)
    why = tape.play(y, x).data["frames"][-2]["sums"][0]["whys"][0]
    assert (why["rule"], why["value"], why["shapes"]) == ("", None, "1200×1200")


def test_what_has_no_elements():
    x = tf.Variable(np.ones((0, 3), np.float32))
    with tf.GradientTape() as tape:
        y = tf.cumsum(x)
    why = tape.play(y, x).data["frames"][-2]["sums"][0]["whys"][0]
    assert (why["rule"], why["value"], why["shapes"]) == ("", None, "0×0")


def test_a_product_of_batches_that_are_broadcast():
    a, b = jnp.ones((3, 2, 4)), jnp.ones((4, 5))
    data, found = told(lambda a, b: jnp.matmul(a, b), a, b)
    assert ["ᵀ" in why["rule"] for why, _ in found] == [True, False]


def test_a_gradient_of_ones_own_is_said_to_be_one():
    @tf.custom_gradient
    def thrice(x):
        return x, lambda dy: 3.0 * dy

    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = thrice(x)
    whys = [w for frame in tape.play(y, x).data["frames"] for s in frame.get("sums", ()) for w in s["whys"] if w]
    assert any("own gradient function" in why["rule"] for why in whys)


def test_a_users_function_of_a_known_name_has_no_wrong_rule():
    @jax.jit
    def sin(x):
        return 3.0 * x + x**2

    data, [(why, part)] = told(sin, jnp.asarray(A[0]))
    assert "cos" not in why["rule"]
    np.testing.assert_allclose(numbers(data, why["value"])[0], 3.0 + 2.0 * A[0])


# ---- forward mode ---------------------------------------------------------------------------------------------------


def tangents(data):
    """The tangent of each array of a page, by its name."""
    return {data["arrays"][i]["name"]: numbers(data, v) for i, v in data["forward_mode"]["tangents"]}


def test_the_tangents_are_those_of_jvp():
    x, w = jnp.asarray(A), jnp.asarray(B)
    direction = [jnp.asarray(B.T), jnp.asarray(A + 1)]

    def f(x, w):
        return jnp.sum(jnp.tanh(x @ w) * x)

    with tf.GradientTape() as tape:
        tape.watch([x, w])
        h = jnp.tanh(x @ w)
        y = jnp.sum(h * x)
    data = tape.play(y, [x, w], tangents=direction).data
    found = tangents(data)
    np.testing.assert_allclose(
        found["h"], jax.jvp(lambda x, w: jnp.tanh(x @ w), (x, w), tuple(direction))[1], rtol=1e-3
    )
    expected = jax.jvp(f, (x, w), tuple(direction))[1]
    assert found["y"] == pytest.approx(float(expected), rel=1e-5)
    assert numbers(data, data["forward_mode"]["product"]) == pytest.approx(float(expected), rel=1e-5)
    product = next(frame for frame in data["frames"] if "matmul" in frame.get("said", ""))
    assert [why["rule"] for why in product["pushed"]] == ["∂x/∂v · w", "x · ∂w/∂v"]


def test_without_a_direction_it_is_ones():
    x, unused = tf.Variable([2.0, 3.0]), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(x**2)
    data = tape.play(y, [x, unused]).data
    assert tangents(data)["y"] == 10.0 and numbers(data, data["forward_mode"]["product"]) == 10.0
    with pytest.raises(ValueError, match=r"tangents\[0\] has shape"):
        tape.play(y, [x, unused], tangents=[tf.constant([1.0]), tf.constant(1.0)])
    with pytest.raises((TypeError, ValueError), match="(?i)structure"):
        tape.play(y, [x, unused], tangents=[tf.constant([1.0, 1.0])])


def test_a_source_on_the_way_has_a_direction_of_its_own():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        h = x * x
        y = h * 2.0
    data = tape.play(y, [x, h]).data
    pushed = data["frames"][1]["pushed"]
    assert [why["rule"] for why in pushed] == ["", "", "its own direction"]
    assert tangents(data)["h"] == 7.0 and tangents(data)["y"] == 14.0


def test_what_jax_cannot_push_forward_has_no_forward_mode(monkeypatch):
    def refuse(*_):
        raise TypeError("can't apply forward-mode autodiff (jvp)")

    monkeypatch.setattr("tapejax.tools.seeing.steps.derivatives.push", refuse)
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = x * x
    data = tape.play(y, x).data
    assert data["forward_mode"]["tangents"] == [] and numbers(data, data["frames"][-1]["gradients"][0]["value"]) == 6.0
