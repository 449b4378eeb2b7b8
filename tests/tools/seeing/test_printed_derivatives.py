"""Derivatives of the user's own functions in a block: printed as such, alike plain, under `jax.jit` and as a `tf.function`."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_computed_trees import pasted, total

import tapejax as tf


def array(seed, *shape):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), jnp.float32)


# ---- what is beside the target ----


def features(w, x):
    h = jnp.tanh(x @ w)
    return h**2, jnp.sum(h)


def rows_with_aux(w, x):
    j, total = jax.jacrev(features, has_aux=True)(w, x)
    return jnp.sum(j**2) + total


def columns_with_aux(w, x):
    j, total = jax.jacfwd(features, has_aux=True)(w, x)
    return jnp.sum(j**2) + total


def batch_norm(params, state, h):
    mean, var = jnp.mean(h, axis=0), jnp.var(h, axis=0)
    new = {"mean": 0.9 * state["mean"] + 0.1 * mean, "var": 0.9 * state["var"] + 0.1 * var}
    h = (h - mean) / jnp.sqrt(var + 1e-5)
    return h * params["scale"] + params["bias"], new


def normed_loss(params, state, x, y):
    h, new = batch_norm(params, state, x @ params["w"])
    return jnp.mean((jnp.tanh(h) @ params["v"] - y) ** 2), new


def normed(params, state, x, y):
    (loss, state), grads = jax.value_and_grad(normed_loss, has_aux=True)(params, state, x, y)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), state, loss


# ---- trees ----


def net(params, x):
    return jnp.tanh(x @ params["w"]) @ params["v"]


def mse(params, x, y):
    return jnp.mean((net(params, x) - y) ** 2)


def rows_of_a_tree(params, x):
    j = jax.jacrev(net)(params, x)
    return j["w"].sum(0), j["v"]


def columns_of_a_tree(params, x):
    j = jax.jacfwd(net)(params, x)
    return j["w"].sum(0), j["v"]


def pushed(params, x):
    y, push = jax.linearize(lambda p: net(p, x), params)
    return y, push(jax.tree.map(jnp.ones_like, params))


def gauss_newton(params, x, y):
    out, push = jax.linearize(lambda p: net(p, x), params)
    _, pull = jax.vjp(lambda p: net(p, x), params)
    (g,) = pull(out - y)
    (product,) = pull(push(g))
    return jax.tree.map(lambda p, d: p - 0.1 * d, params, product)


def hessian_product(params, x, y):
    doubled = jax.tree.map(lambda p: p * 2.0, params)
    g = jax.grad(mse)(doubled, x, y)
    _, h = jax.jvp(jax.grad(lambda p: mse(p, x, y)), (doubled,), (g,))
    return jax.tree.map(lambda p, h: p - 0.1 * h, doubled, h)


PARAMS = {"w": array(0, 3, 4), "v": array(1, 4)}
NORMED = {"w": array(0, 3, 4), "scale": 1 + 0.1 * array(4, 4), "bias": array(5, 4), "v": array(1, 4)}
STATE = {"mean": jnp.zeros(4), "var": jnp.ones(4)}
X, Y = array(2, 5, 3), array(3, 5)
PROGRAMS = {
    rows_with_aux: ((array(0, 3), X), ["j, total = jax.jacrev(lambda w: features(w, x), has_aux=True)(w)"]),
    columns_with_aux: ((array(0, 3), X), ["j, total = jax.jacfwd(lambda w: features(w, x), has_aux=True)(w)"]),
    rows_of_a_tree: ((PARAMS, X), ["j = jax.jacrev(lambda params: net(params, x))(params)"]),
    columns_of_a_tree: ((PARAMS, X), ["j = jax.jacfwd(lambda params: net(params, x))(params)"]),
    pushed: (
        (PARAMS, X),
        [
            "y, push = jax.linearize(lambda params: net(params, x), params)",
            "push(jax.tree.map(jnp.ones_like, params))",
        ],
    ),
    gauss_newton: (
        (PARAMS, X, Y),
        [
            "out, push = jax.linearize(lambda params: net(params, x), params)",
            "(product,) = pull(push(g))",
            "return jax.tree.map(lambda p, d: p - 0.1 * d, params, product)",
        ],
    ),
    hessian_product: (
        (PARAMS, X, Y),
        [
            "h = jax.jvp(function, (doubled,), (g,))[1]",
            "return jax.tree.map(lambda p, h: p - 0.1 * h, doubled, h)",
        ],
    ),
    normed: (
        (NORMED, STATE, X, Y),
        [
            "mean, var = jnp.mean(h, axis=0), jnp.var(h, axis=0)",
            "grads = jax.value_and_grad(loss_fn, has_aux=True)(params)",
            "jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)",
        ],
    ),
}


def as_function(program, args):
    """What a tape prints of the program as a `tf.function`."""
    args = jax.tree.map(jnp.array, args)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(args)
        result = tf.function(program)(*args)
    first, *rest = inspect.signature(program).parameters
    result = jax.tree.map(lambda x: getattr(x, "_array", x), result)
    return tape.as_function(result, args[0], arguments=dict(zip(rest, args[1:], strict=True)))


@pytest.mark.parametrize("way", ["plain", "jit", "tf.function"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_it_is_printed_as_such(program, way):
    args, lines = PROGRAMS[program]
    if way == "tf.function":
        f = as_function(program, args)
    else:
        f = tf.code(jax.jit(program) if way == "jit" else program, *args)
        assert [line for line in lines if line not in f.code] == [], f.code
    assert "jax.lax" not in f.code and ".constants" not in f.code, f.code
    run, other = pasted(f), jax.tree.map(lambda x: x * 1.1 + 0.01, args)
    for at in (args, other):
        for a, b in ((run(*at), program(*at)), (jax.grad(total(run))(*at), jax.grad(total(program))(*at))):
            jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=2e-4, atol=1e-5), a, b)
