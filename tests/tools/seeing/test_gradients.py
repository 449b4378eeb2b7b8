"""What `jax.grad` ran in a block, and a call under `jax.jit`, in printed code: the user's functions, with the same numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_computed_trees import pasted

import tapejax as tf

KEYS = jax.random.split(jax.random.key(0), 4)
PARAMS = {
    "w1": jax.random.normal(KEYS[0], (5, 8)),
    "b1": jnp.full(8, 0.1),
    "w2": jax.random.normal(KEYS[1], (8, 3)),
}
X, Y = jax.random.normal(KEYS[2], (16, 5)), jax.random.normal(KEYS[3], (16, 3))
LABELS = jnp.arange(16) % 3
W = jnp.array([0.1, 0.2, 0.3])


def relu(h):
    return jnp.maximum(h, 0)


def net(params, x):
    h = relu(x @ params["w1"] + params["b1"])
    return h @ params["w2"]


def loss_fn(params, x, y):
    err = net(params, x) - y
    return jnp.mean(err**2)


def whole(params):
    loss = loss_fn(params, X, Y)
    return loss + 0.1 * jnp.sum(params["w2"] ** 2)


def adapted(params):
    grads = jax.grad(loss_fn)(params, X, Y)
    params = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
    return loss_fn(params, X, Y)


def descent(w):
    def loss(w):
        return jnp.sum((w - 1.0) ** 4)

    for _ in range(3):
        w = w - 0.1 * jax.grad(loss)(w)
    return loss(w)


def twice(w):
    def loss(w):
        return jnp.sum(w**3)

    return jnp.sum(jax.grad(loss)(w) + jax.grad(loss)(w * 2.0))


def two_arguments(w):
    def loss(a, b):
        return jnp.sum(jnp.sin(a) * b)

    a, b = jax.grad(loss, argnums=(0, 1))(w, w + 1.0)
    return jnp.sum(a * b)


def beside(params):
    def loss(p):
        out = net(p, X)
        return jnp.mean((out - Y) ** 2), jnp.max(out)

    (loss, most), grads = jax.value_and_grad(loss, has_aux=True)(params)
    return loss + most + sum(jnp.vdot(g, g) for g in jax.tree.leaves(grads))


def part(params):
    grads = jax.grad(loss_fn)(params, X, Y)
    return jnp.sum(grads["w2"] ** 2)


def product(w):
    def loss(w):
        return jnp.sum(jnp.sin(w) * w**2)

    return jnp.sum(jax.grad(lambda w: jnp.vdot(jax.grad(loss)(w), jnp.ones(3)))(w))


def stopped(w):
    def loss(w):
        return jnp.sum(jax.lax.stop_gradient(w) * w**2)

    return jnp.sum(jax.grad(loss)(w) ** 2)


def no_function(w):
    return jax.grad(jnp.sin)(w[0]) + jnp.sum(jax.vmap(jax.grad(jnp.sin))(w))


@jax.custom_vjp
def clipped(x):
    return x


clipped.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -0.1, 0.1),))


def with_a_rule(w):
    return jnp.sum(jax.grad(lambda w: jnp.sum(clipped(w) ** 2))(w) ** 2)


def classifier(params):
    logp = jax.nn.log_softmax(net(params, X))
    picked = logp[jnp.arange(16), LABELS]
    return -jnp.mean(jnp.sum(jax.nn.one_hot(LABELS, 3) * logp, axis=-1)) - jnp.mean(picked)


def inner_jit(params):
    return jax.jit(loss_fn)(params, X, Y) * jax.jit(loss_fn)(params, X * 2.0, Y)


def unrolled(w):
    h = jnp.zeros(3)
    for x in X[:4, :3]:
        h = jnp.tanh(w * h + x)
    return jnp.sum(h)


def scanned(w):
    def body(w, x):
        return w - 0.1 * jax.grad(lambda w: jnp.sum((w - x) ** 2))(w), jnp.sum(w)

    w, sums = jax.lax.scan(body, w, X[:, :3])
    return jnp.sum(w) + jnp.sum(sums)


OF_PARAMS = [whole, adapted, beside, part, classifier, inner_jit]
OF_W = [descent, twice, two_arguments, product, stopped, no_function, with_a_rule, unrolled, scanned]
PROGRAMS = [*((fn, PARAMS) for fn in OF_PARAMS), *((fn, W) for fn in OF_W)]


def printed(function, source):
    with tf.GradientTape() as tape:
        tape.watch(source)
        value = function(source)
    return tape.as_function(value, source)


def definitions(function):
    """The text without the lines about constants."""
    return function.code[function.code.index("def ") :]


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize(("function", "source"), PROGRAMS, ids=[fn.__name__ for fn, _ in PROGRAMS])
def test_the_same_numbers_where_it_is_pasted(function, source, jitted):
    code = pasted(printed(jax.jit(function) if jitted else function, source))
    scales = [1.0] if function is stopped else [1.0, 0.7]  # what is stopped is a constant
    for at in [jax.tree.map(lambda x, scale=scale: x * scale, source) for scale in scales]:
        np.testing.assert_allclose(code(at), function(at), rtol=1e-5)
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5),
            jax.grad(code)(at),
            jax.grad(function)(at),
        )


@pytest.mark.parametrize("jitted", [False, True])
def test_a_step_that_takes_a_gradient(jitted):
    assert definitions(printed(jax.jit(adapted) if jitted else adapted, PARAMS)).replace("0.0", "0") == (
        """\
def relu(h):
    return jnp.maximum(h, 0)


def net(params, x):
    h = relu(x @ params["w1"] + params["b1"])
    return h @ params["w2"]


def loss_fn(params, x, y):
    err = net(params, x) - y
    return jnp.mean(err**2)


def f(params):
    grads = jax.grad(lambda params: loss_fn(params, X, Y))(params)
    params = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
    value = loss_fn(params, X, Y)
    return value
"""
    )


def test_steps_in_a_jitted_loop():
    assert definitions(printed(jax.jit(descent), W)) == (
        """\
def loss(w):
    return jnp.sum((w - 1.0) ** 4)


def f(source):
    w = source
    for _ in range(3):
        w = w - 0.1 * jax.grad(loss)(w)
    value = loss(w)
    return value
"""
    )


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize(
    ("function", "source", "text"),
    [
        (twice, W, "jnp.sum(jax.grad(loss)(source) + jax.grad(loss)("),
        (two_arguments, W, "argnums=(0, 1)"),
        (beside, PARAMS, "(loss_2, most), grads = jax.value_and_grad(loss_fn, has_aux=True)(params)"),
    ],
)
def test_a_gradient_is_recognised(function, source, text, jitted):
    assert text in printed(jax.jit(function) if jitted else function, source).code


@pytest.mark.parametrize("jitted", [False, True])
def test_a_gradient_by_a_rule_of_the_users_is_not_the_gradient_of_its_operations(jitted):
    """The operations of the forward pass have another one: where their numbers agree, they need not at others."""
    code = pasted(printed(jax.jit(with_a_rule) if jitted else with_a_rule, W * 0.1))
    np.testing.assert_allclose(code(W), with_a_rule(W), rtol=1e-6)


def test_the_users_python_does_not_run_again():
    runs = []

    @jax.jit
    def loss(w):
        runs.append(1)
        return jnp.sum(jax.grad(lambda w: jnp.sum(w**3))(w))

    function = printed(loss, W)
    assert "jax.grad(" in function.code
    assert len(runs) == 1


def test_no_callback_runs_again():
    calls = []

    def ask(x):
        calls.append(1)
        return x

    def loss(w):
        asked = jax.pure_callback(ask, jax.ShapeDtypeStruct((3,), w.dtype), jax.lax.stop_gradient(w))
        return jnp.sum(w * asked)

    with tf.GradientTape() as tape:
        tape.watch(W)
        value = jnp.sum(jax.jit(loss)(W)) + jnp.sum(jax.grad(loss)(W))
    before = len(calls)
    function = tape.as_function(value, W)
    assert len(calls) == before
    assert "jax.grad" not in function.code


def test_no_data_of_what_is_computed_inside():
    function = printed(jax.jit(classifier), PARAMS)
    assert "jax.nn.one_hot(LABELS, 3)" in function.code
    assert set(function.constants) == {"X", "LABELS"}


def test_an_array_with_a_name_is_no_data():
    x, y = jnp.linspace(0.0, 2.0, 9), jnp.linspace(0.0, 2.0, 8)
    with tf.GradientTape() as tape:
        tape.watch(W)
        value = jnp.sum(x) * jnp.sum(y * W[0]) * jnp.sum(x * W[1])
    function = tape.as_function(value, W)
    assert set(function.constants) == {"x"}
    assert "y = jnp.array([" in function.code


def test_flat_code_has_each_operation():
    with tf.GradientTape() as tape:
        tape.watch(W)
        value = descent(W)
    assert "jax.grad" not in tape.as_function(value, W, flat=True).code


def by_comparison(w):
    return jnp.sum(jnp.where(jnp.arange(3) > 0, w, w * w))


def by_a_list(w):
    return jnp.sum(jnp.where(jnp.array([1.0, 0.0, 1.0]) > 0, w, w * w))


def with_a_helper(w):
    def chosen(flags, x, y):
        return jnp.where(flags > 0, x, y)

    flags = jnp.array([1.0, 0.0, 1.0])
    return jnp.sum(chosen(flags, w, w * w) * chosen(jnp.flip(flags) - 1.0, w**3, w))


@pytest.mark.parametrize("loss", [by_comparison, by_a_list, with_a_helper])
@pytest.mark.parametrize(
    "of", [jax.grad, jax.hessian, lambda f: jax.jacrev(f), lambda f: jax.grad(lambda w: f(jnp.sin(w)))]
)
def test_a_mask_that_the_function_makes(loss, of):
    """The function under `jax.grad` read the mask by a name that nothing defined."""
    function = of(loss)
    code = tf.code(function, W)
    space = {"jax": jax, "jnp": jnp, "np": np, **code.constants}
    exec(code.code, space)
    for w in (W, 2.0 - W):
        np.testing.assert_allclose(space["f"](w), function(w), rtol=1e-5, atol=1e-6)


def test_the_mask_stands_where_the_source_has_it():
    assert (
        "def by_comparison(w):\n    return jnp.sum(jnp.where(jnp.arange(3) > 0, w, w * w))"
        in tf.code(jax.grad(by_comparison), W).code
    )


def test_a_batch_of_gradients_under_a_gradient():
    """Looking for `jax.vmap` in it, a number was asked for its axis: an error came out of the printing."""

    def total(xs):
        return jnp.sum(jax.lax.map(jax.grad(lambda x: jnp.sum(x) ** 2), xs, batch_size=2) ** 2)

    xs = jnp.arange(20.0).reshape(5, 2, 2)
    code = tf.code(jax.grad(total), xs)
    space = {"jax": jax, "jnp": jnp, "np": np, **code.constants}
    exec(code.code, space)
    np.testing.assert_allclose(space["f"](xs - 3), jax.grad(total)(xs - 3), rtol=1e-5)
