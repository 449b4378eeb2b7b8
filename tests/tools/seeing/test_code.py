"""`tapejax.code`: a function of JAX's as plain jnp code, which gives the same numbers where it is pasted."""

import ast

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf
from tapejax.tools.seeing import layout

X, Y = jnp.array([0.5, 1.0, 2.0]), jnp.array([3.0, -1.0, 0.25])


def energy(x, y):
    return jnp.sum(jnp.sin(x) * y)


FUNCTIONS = {
    "a function": (energy, (X, Y)),
    "a gradient": (jax.grad(energy), (X, Y)),
    "a value and a gradient": (jax.value_and_grad(energy, argnums=(0, 1)), (X, Y)),
    "a Hessian": (jax.hessian(lambda x: jnp.sum(x**3)), (X,)),
    "a map": (jax.vmap(jnp.dot), (jnp.ones((2, 3)), jnp.ones((2, 3)))),
    "a jitted function": (jax.jit(lambda x: jax.nn.softmax(x) * 2), (X,)),
    "a scan": (lambda x: jax.lax.scan(lambda c, a: (c + a, c * a), 0.0, x), (X,)),
    "structures": (lambda p, x: jnp.tanh(x @ p["w"] + p["b"]), ({"w": jnp.ones((3, 2)), "b": jnp.zeros(2)}, X)),
    "an argument that counts for nothing": (lambda x, unused: x * 2, (X, Y)),
    "integers": (lambda i: jnp.sum(i * 2), (jnp.arange(4),)),
    "indices": (lambda x, i: x[i] * 2, (X, jnp.array([2, 0]))),
    "truth": (lambda x: x > 1, (X,)),
    "NumPy's arrays and numbers": (lambda x, n: x * n, (np.float32([1.0, 2.0]), 3.0)),
    "a look at a value": (lambda x: x * 2 if float(x[0]) > 0 else x, (X,)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_code_gives_the_same_numbers(name):
    function, args = FUNCTIONS[name]
    code = tf.code(function, *args)
    scope = {"jax": jax, "jnp": jnp, "np": np, **code.constants}
    exec(str(code), scope)
    other = jax.tree.map(lambda x: x + 1 if name == "integers" else x * 1, args)
    one = len(args) == 1 or str(code).count("def f(sources)")
    pasted = scope["f"](other[0] if len(args) == 1 else other) if one else scope["f"](*other)
    jax.tree.map(lambda got, want: np.testing.assert_allclose(got, want, rtol=1e-6), pasted, function(*other))


def test_parameters_are_called_as_the_functions_are():
    assert str(tf.code(energy, X, Y)).startswith("def f(x, y):")


def test_an_integer_is_a_source_of_what_as_function_gives():
    """It was a constant: what has no gradient cannot be watched."""
    i = jnp.arange(3)
    with tf.GradientTape() as tape:
        total = jnp.sum(i * 2)
    f = tape.as_function(total, i)
    assert f(i) == 6 and f(i + 1) == 12


def test_a_variable_and_a_tensor():
    v = tf.Variable([1.0, 2.0])
    code = tf.code(lambda v, x: tf.reduce_sum(v * x), v, tf.constant([3.0, 4.0]))
    np.testing.assert_allclose(code(v, tf.constant([3.0, 4.0])), 11.0)


@pytest.mark.parametrize("number", ["1.0", "-1.5", "jnp.inf"])
def test_a_number_that_is_written_where_it_is_used_has_no_methods(number):
    expression = layout.replaced(layout.parsed("y + x.astype(jnp.float32)"), {"x": layout.parsed(number)})
    assert layout.text_of(expression) == f"y + jnp.float32({number})"


def test_what_other_code_hung_on_a_shared_node_is_not_copied(monkeypatch):
    """Python has one `ast.Load` for all trees; tools that note parents in their trees leave theirs on it."""

    class Uncopied:
        def __deepcopy__(self, memo):
            raise AssertionError("copied")

    load = ast.parse("x", mode="eval").body.ctx
    monkeypatch.setattr(load, "parent", Uncopied(), raising=False)
    monkeypatch.setattr(load, "annotations", Uncopied(), raising=False)
    monkeypatch.setattr(load, "_fields", ("annotations",))  # as AutoGraph's annotations are
    expression = layout.parsed("f(x, y[2:])[0]")
    assert layout.text_of(layout.replaced(expression, {"x": layout.parsed("a + 1")})) == "f(a + 1, y[2:])[0]"
    assert layout.text_of(expression) == "f(x, y[2:])[0]"


@pytest.mark.parametrize("length, broken", [(87, False), (88, False), (89, True)])
def test_results_that_fit_without_brackets_are_on_one_line(length, broken):
    line = f"    return {'a' * 30}, "
    line += "b" * (length - len(line))
    found = layout.statement("return ", layout.parsed(f"({line.split(maxsplit=1)[1]})"), "    ")
    assert (found != [line]) == broken
    assert max(map(len, found)) <= layout.WIDTH


def parts(x):
    return tf.sin(x) * 2.0, tf.cos(x) * 3.0


def closeness(left, right):
    return tf.reduce_sum(tf.exp(left) - right)


def test_values_have_the_names_under_which_they_are_handed_on():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        near, far = parts(x)
        loss = closeness(tf.negative(near), far) + closeness(right=near, left=far)
    text = """def parts(x):
    return jnp.sin(x) * 2.0, jnp.cos(x) * 3.0


def closeness(left, right):
    return jnp.sum(jnp.exp(left) - right)


def f(x):
    near, far = parts(x)
    loss = closeness(-near, far) + closeness(far, near)
    return loss
"""
    assert tape.as_function(loss, x).code == text


def test_a_round_of_a_loop_has_the_names_of_what_it_is_given():
    params = {"cell": {"kernel": jnp.ones((3, 3)), "bias": jnp.ones(3)}}

    def cell(h, x):
        h = jnp.tanh(h @ params["cell"]["kernel"] + x + params["cell"]["bias"])
        return h, h

    with tf.GradientTape() as tape:
        tape.watch(params)
        loss = jnp.sum(jax.lax.scan(cell, jnp.zeros(3), jnp.ones((5, 3)))[1])
    assert tape.as_function(loss, params).code == (
        "def f(params):\n"
        "    def cell(h, x):\n"
        '        h = jnp.tanh(h @ params["cell"]["kernel"] + x + params["cell"]["bias"])\n'
        "        return h, h\n\n"
        "    loss = jnp.sum(jax.lax.scan(cell, jnp.zeros(3), jnp.ones((5, 3)))[1])\n"
        "    return loss\n"
    )


def test_a_custom_gradient_takes_what_it_closes_over():
    """What it closes over came of an argument: with another argument it is another one, in the rule as well."""

    def scaled(x, by):
        half = by / 2

        @tf.custom_gradient
        def times(x):
            return x * half, lambda dy: 3 * dy * half

        return jnp.sum(times(jnp.sin(x)) ** 2)

    for way in (scaled, tf.function(scaled)):
        code = tf.code(way, X, Y)
        for by in (Y, 2 * Y):
            np.testing.assert_allclose(code(X, by), scaled(X, by), rtol=1e-6)
            wanted = 6 * jnp.sin(X) * (by / 2) ** 2 * jnp.cos(X)
            np.testing.assert_allclose(jax.grad(code)(X, by), wanted, rtol=1e-6)
