"""Calls of a `tf.function` and of functions of JAX's in printed code: what their operations are, with the same numbers.

They are read from programs: no Python of the user's runs for it.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf

W1, W2 = (
    np.random.default_rng(seed).normal(size=shape).astype(np.float32) for seed, shape in ((0, (1, 8)), (1, (8, 1)))
)
X = np.array([[0.1], [0.5], [0.9]], np.float32)


def pasted(function):
    space = {"jax": jax, "jnp": jnp, "np": np, **function.constants}
    exec(compile(function.code, "<pasted>", "exec"), space)
    return space["f"]


def read_after_assignment(x, w):
    v = tf.Variable(2.0)

    @tf.function
    def doubled(x):
        v.assign(v * 2.0)
        return x * v

    return doubled(tf.tanh(x @ w))


def branch(x, w):
    @tf.function
    def chosen(x):
        return tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2.0, lambda: x * 3.0)

    return chosen(tf.tanh(x @ w))


def counted(x, w):
    calls = []

    @tf.function
    def scaled(x):
        calls.append(1)
        return x * float(len(calls))

    return scaled(tf.tanh(x @ w)) + scaled(x @ w)


def nested(x, w):
    @tf.function
    def inner(x):
        return tf.nn.softplus(x @ w)

    @tf.function
    def outer(x):
        return tf.reduce_mean(inner(x), axis=1)

    return outer(x)


def method(x, w):
    class Scale(tf.Module):
        def __init__(self):
            self.by = tf.Variable(3.0)

        @tf.function
        def __call__(self, x):
            return tf.tanh(x @ w) * self.by

    scale = Scale()
    return scale(x)


@pytest.mark.parametrize(
    "body", [read_after_assignment, branch, counted, nested, method], ids=lambda body: body.__name__
)
def test_a_call_of_a_function_has_the_same_numbers(body, capsys):
    x, w = tf.constant(X), tf.Variable(W1)
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_sum(body(x, w) ** 2)
    function = tape.as_function(loss, w, {"x": x})
    written = pasted(function)
    other = (jnp.asarray(W1 * 0.5), jnp.asarray(-X))
    for args in ((jnp.asarray(W1), jnp.asarray(X)), other):
        wanted, found = (jax.value_and_grad(f)(*args) for f in (function, written))
        np.testing.assert_allclose(found[0], wanted[0], rtol=1e-5)
        np.testing.assert_allclose(found[1], wanted[1], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(written(jnp.asarray(W1), jnp.asarray(X)), loss.numpy(), rtol=1e-5)
    assert "def a(" not in function.code


def test_to_print_a_function_leaves_the_program_as_it_was(capsys):
    v = tf.Variable(2.0)

    @tf.function
    def step(x):
        print("tracing")
        y = x * v
        v.assign_add(1.0)
        return y

    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = step(x) * 3.0
    assert capsys.readouterr().out == "tracing\n"
    assert "def step(x" in tape.as_function(y, x).code
    assert capsys.readouterr().out == "" and v.numpy() == 3.0


def test_to_print_a_function_runs_nothing():
    ran = []
    scale = tf.Variable(2.0)

    @tf.custom_gradient
    def clipped(x):
        ran.append("forward")
        return tf.identity(x), lambda g: tf.clip_by_value(g, -0.5, 0.5)

    @tf.function
    def step(x, rows):
        ran.append("step")
        for row in rows:
            ran.append("round")
            x = tf.tanh(x * row)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(clipped(x) ** 2)
        return y + tf.reduce_sum(tape.gradient(y, x)) * scale

    x, rows = tf.Variable([0.3, -0.7]), tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        y = step(x, rows)
    before = [*ran]
    function = tape.as_function(y, x, {"rows": rows})
    assert "def step(" not in function.code and "jax.custom_vjp" in function.code
    assert ran == before
    np.testing.assert_allclose(pasted(function)(jnp.array([0.3, -0.7]), jnp.asarray(rows)), y.numpy(), rtol=1e-6)


def texts(fn, *args):
    """The lines of the printed function, as a `tf.function`."""
    return tf.code(tf.function(fn), *args).code.splitlines()


def test_statements_that_autograph_rewrites_are_printed_as_they_stand():
    def layer(h, w, training):
        if training:
            h = jax.nn.relu(h @ w) * 2.0
        return h

    def net(x, w, depth, training):
        for _ in range(depth):
            h = x @ w
            x = layer(h, w, training)
        return jnp.sum(x)

    function = tf.code(tf.function(lambda x, w: net(x, w, 3, True)), jnp.ones((2, 2)), jnp.full((2, 2), 0.1))
    lines = list(map(str.strip, function.code.splitlines()))
    for line in ("for _ in range(3):", "h = x @ w", "x = layer(h, w)", "h = jax.nn.relu(h @ w) * 2.0"):
        assert line in lines, function.code


def test_a_loop_over_rows_is_a_loop():
    def rnn(rows, w):
        state = jnp.zeros(3)
        for row in rows:
            state = jnp.tanh(row @ w + state)
        return state

    lines = texts(rnn, jnp.ones((20, 2)), jnp.ones((2, 3)))
    assert lines[1:] == [
        "    state = jnp.zeros(3)",
        "    for row in rows:",
        "        state = jnp.tanh(row @ w + state)",
        "    return state",
    ]


def test_a_branch_on_a_tensor_is_one_operation_among_the_users_lines():
    def f(x):
        y = x * 3.0
        if jnp.sum(y) > 0:
            y = y * 2.0
        else:
            y = y - 1.0
        return jnp.sum(y)

    lines = list(map(str.strip, texts(f, jnp.array([1.0, 2.0]))))
    assert "y = x * 3.0" in lines and any("jax.lax.cond(jnp.sum(y) > 0" in line for line in lines)


def test_a_function_with_a_gradient_of_its_own_has_it_in_a_function():
    @tf.custom_gradient
    def clip(x):
        return tf.identity(x), lambda g: tf.clip_by_value(g, -0.5, 0.5)

    @tf.function
    def f(x):
        return tf.reduce_sum(clip(x * 2.0) ** 2)

    x = tf.Variable([0.1, 4.0])
    with tf.GradientTape() as tape:
        y = f(x)
    function = tape.as_function(y, x)
    assert "@jax.custom_vjp\ndef clip(x):\n    return x\n" in function.code and "clip(x * 2.0)" in function.code
    gradient = jax.grad(pasted(function))(jnp.array([0.1, 4.0]))
    np.testing.assert_allclose(gradient, tape.gradient(y, x).numpy(), rtol=1e-6)
    np.testing.assert_allclose(gradient, [0.8, 1.0], rtol=1e-6)  # 2 * clip(2 * 0.2), 2 * clip(16)


def test_a_rule_that_reads_what_it_was_given_is_of_that():
    @tf.custom_gradient
    def scale(a, b):
        return a * b, lambda g: (2.0 * g * b, 3.0 * g * a)

    @tf.function
    def f(x, w):
        return tf.reduce_sum(scale(x, w) ** 2) + scale(x[0], w[0])  # of two shapes: it is one function

    x, w = tf.Variable([1.0, 2.0]), tf.Variable([3.0, 4.0])
    with tf.GradientTape(persistent=True) as tape:
        y = f(x, w)
    function = tape.as_function(y, [x, w])
    assert function.code.count("@jax.custom_vjp\ndef scale(a, b):\n    return a * b\n") == 1, function.code
    assert "scale_2" not in function.code
    gradients = jax.grad(pasted(function))([jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])])
    for own, wanted in zip(gradients, tape.gradient(y, [x, w]), strict=True):
        np.testing.assert_allclose(own, wanted.numpy(), rtol=1e-6)


@pytest.mark.parametrize("way", [lambda f: f, tf.function], ids=["eager", "function"])
def test_what_a_rule_keeps_of_its_function_has_no_derivative(way):
    @tf.custom_gradient
    def log1pexp(x):
        e = tf.exp(x)
        return tf.math.log(1 + e), lambda g: g * (1 - 1 / (1 + e))

    x = tf.Variable([1.0, 100.0])
    with tf.GradientTape() as tape:
        y = way(lambda x: tf.reduce_sum(log1pexp(x)))(x)
    function = tape.as_function(y, x)
    assert "def log1pexp(x):\n    e = jnp.exp(x)\n    return jnp.log(1 + e)\n" in function.code
    gradient = jax.grad(pasted(function))(jnp.array([1.0, 100.0]))
    np.testing.assert_allclose(gradient, [1 / (1 + np.exp(-1.0)), 1.0], rtol=1e-6)  # and not nan: 0 times infinity
    np.testing.assert_allclose(gradient, tape.gradient(y, x).numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    "make", [lambda: tf.constant([1.0, 2.0, 3.0]), lambda: tf.constant(np.float32([3, 1, 2])), lambda: tf.eye(3)[1]]
)
def test_constants_that_are_made_inside_leave_the_function_its_lines(make):
    @tf.function
    def scaled(x, w):
        a = make()
        h = tf.tanh(x * a)
        return tf.reduce_sum(h * w + a)

    x, w = jnp.array([0.1, 0.5, 0.9]), jnp.array([1.0, -1.0, 2.0])
    function = tf.code(scaled, x, w)
    assert "    h = jnp.tanh(x * " in function.code
    np.testing.assert_allclose(pasted(function)(x * 2.0, w), scaled(x * 2.0, w), rtol=1e-6)


def test_what_a_rule_closes_over_is_a_parameter_without_a_derivative():
    @tf.function
    def f(x):
        h = tf.exp(x)

        @tf.custom_gradient
        def scaled(a):
            return a * h, lambda g: g * h * 2.0

        for _ in range(2):
            x = scaled(x)
        return tf.reduce_sum(x)

    x = tf.Variable([0.5, 1.0])
    with tf.GradientTape() as tape:
        y = f(x)
    written = pasted(tape.as_function(y, x))
    np.testing.assert_allclose(jax.grad(written)(jnp.array([0.5, 1.0])), tape.gradient(y, x).numpy(), rtol=1e-6)
    other = jnp.array([0.1, 0.2])
    np.testing.assert_allclose(written(other), np.sum(other * np.exp(other) ** 2), rtol=1e-6)


def test_derivatives_in_a_function_are_jaxs():
    w = tf.Variable([0.5, -0.3])

    @tf.function
    def meta(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((x * w) ** 2)
        fast = w - 0.1 * tape.gradient(loss, w)
        return tf.reduce_sum((x * fast) ** 2)

    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = meta(x)
    function = tape.as_function(y, w, {"x": x})
    assert "jax.grad(" in function.code
    gradient = jax.grad(pasted(function))(jnp.array([0.5, -0.3]), jnp.array([1.0, 2.0]))
    np.testing.assert_allclose(gradient, tape.gradient(y, w).numpy(), rtol=1e-5)


def natural(w, x):
    with tf.GradientTape() as tape:
        tape.watch(w)
        p = tf.sigmoid(tf.linalg.matvec(x, w))
    J = tape.jacobian(p, w)
    return tf.linalg.matvec(J, w) + tf.linalg.matvec(tf.matmul(J, J, transpose_a=True) + tf.eye(2), w)[0]


def test_a_jacobian_in_a_function_is_jaxs():
    args = jnp.array([0.5, -0.3]), jnp.arange(6.0).reshape(3, 2)
    printed = tf.code(tf.function(natural), *args)
    assert (
        printed.code
        == """\
def f(w, x):  # for x: float32[3,2]
    J = jax.jacfwd(lambda w: jax.nn.sigmoid(x @ w))(w)
    return J @ w + ((J.T @ J + jnp.eye(2, dtype=jnp.float32)) @ w)[0]
"""
    )
    np.testing.assert_allclose(pasted(printed)(*args), natural(*args), rtol=1e-5)


@tf.custom_gradient
def clipped(x):
    return tf.identity(x), lambda dy: tf.clip_by_value(dy, -0.5, 0.5)


def test_a_derivative_through_a_rule_of_the_users_is_of_what_it_was_given():
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(clipped(x) ** 2)
        return x - tape.gradient(y, x)

    x = jnp.array([0.1, -0.2, 2.0])
    printed = pasted(tf.code(tf.function(step), x))
    for other in (x, x * 3.0, x - 1.0):  # what it closed over in the trace was a constant, of the first x
        np.testing.assert_allclose(printed(other), step(other), rtol=1e-6)


def test_functions_of_jax_are_called():
    x, key = jnp.asarray(np.random.default_rng(0).normal(size=(2, 5, 2, 4)), jnp.float32), jax.random.PRNGKey(3)

    def body(x, key):
        h = jax.nn.gelu(x, approximate=False)
        h = jax.nn.dot_product_attention(h, h * 2.0, x)
        h = jax.nn.softmax(h, axis=1)
        h = jnp.where(jax.random.bernoulli(key, 0.8, h.shape), h / 0.8, 0.0)
        h = h + jax.random.normal(key, h.shape)
        return jnp.sum(jax.nn.logsumexp(h, axis=-1)) + jax.nn.logsumexp(x)

    function = tf.code(body, x, key)
    for text in (
        "jax.nn.gelu(x, approximate=False)",
        "jax.nn.dot_product_attention(h, h * 2.0, x)",
        "jax.nn.softmax(h, axis=1)",
        "jax.random.bernoulli(key, 0.8, (2, 5, 2, 4))",
        "jax.random.normal(key, (2, 5, 2, 4))",
        "jax.nn.logsumexp(h, axis=-1)",
        "jax.nn.logsumexp(x)",
    ):
        assert text in function.code, function.code
    np.testing.assert_allclose(pasted(function)(x, key), body(x, key), rtol=1e-5)


def test_what_is_done_to_each_leaf_is_a_map_over_the_tree():
    params = {"a": {"w": tf.Variable([1.0, 2.0])}, "b": tf.Variable([3.0]), "c": tf.Variable(4.0)}
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(params["a"]["w"] ** 2) * params["b"][0] * params["c"]
        grads = tape.gradient(loss, params)
        scale = 1.0 / (1.0 + grads["c"])
        alike = {"a": {"w": scale * grads["a"]["w"]}, "b": scale * grads["b"], "c": scale * grads["c"]}
        other = {"a": {"w": grads["a"]["w"] * 2.0}, "b": grads["b"] * 2.0, "c": grads["c"] * 3.0}
        swapped = {"b": params["c"] * 2.0, "c": params["c"] * 2.0, "a": {"w": params["a"]["w"] * 2.0}}
    function = outer.as_function((alike, other, swapped), params)
    assert function.code.count("jax.tree.map(") == 1
    assert "jax.tree.map(lambda g: scale * g, grads)" in function.code
    bare = jax.tree.map(lambda v: jnp.asarray(v.numpy()), params, is_leaf=lambda v: isinstance(v, tf.Variable))
    wanted, found = function(bare), pasted(function)(bare)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), found, wanted)
