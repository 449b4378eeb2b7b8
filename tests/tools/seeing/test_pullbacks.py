"""What `jax.vjp` ran in a block, in printed code: the pullback of the user's function, and its calls."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_computed_trees import pasted
from test_tangents import WAYS, definitions

import tapejax as tf

P = {"w": jnp.array([[0.1, 0.2, 0.3], [0.3, -0.2, 0.5], [0.2, 0.4, 0.1]]), "b": jnp.array([0.1, 0.2, 0.3])}
X = jnp.array([[1.0, 2.0, 3.0], [0.5, 0.1, -0.3]])


def printed(function):
    with tf.GradientTape() as tape:
        tape.watch(P)
        value = function(P)
    return tape.as_function(value, P)


def net(params, x):
    return jnp.tanh(x @ params["w"] + params["b"])


def step(params):
    y, pull = jax.vjp(lambda p: net(p, X), params)
    (grads,) = pull(y - 1.0)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)


def twice(params):
    y, pull = jax.vjp(lambda x: net(params, x), X)
    (a,) = pull(y)
    (b,) = pull(jnp.sin(y))
    return jnp.sum(a * b)


def in_order(params):
    y, pull = jax.vjp(net, params, X)
    grads, dx = pull(jnp.cos(y))
    return jnp.sum(dx**2) + jnp.sum(grads["w"] ** 2) + jnp.sum(grads["b"])


def unrolled(params):
    x = X
    for _ in range(3):
        y, pull = jax.vjp(lambda x: net(params, x), x)
        (g,) = pull(y - 1.0)
        x = x - 0.1 * g
    return jnp.sum(x)


def scanned(params):
    def descend(x, _):
        y, pull = jax.vjp(lambda x: net(params, x), x)
        (g,) = pull(y - 1.0)
        return x - 0.1 * g, jnp.sum(y)

    x, sums = jax.lax.scan(descend, X, None, length=3)
    return jnp.sum(x) + jnp.sum(sums)


def several(params):
    def heights(x):
        h = net(params, x)
        return h, jnp.sum(h**2)

    (h, total), pull = jax.vjp(heights, X)
    (g,) = pull((jnp.cos(h), total * 2.0))
    return jnp.sum(g * h)


def gauss_newton(params):
    def residual(b):
        return net({"w": params["w"], "b": b}, X)

    r, jv = jax.jvp(residual, (params["b"],), (jnp.sin(params["b"]),))
    _, pull = jax.vjp(residual, params["b"])
    (product,) = pull(jv)
    return jnp.sum(product**2) + jnp.sum(r)


def handed_on(params):
    def linearized(x):
        return jax.vjp(lambda z: jnp.tanh(params["w"] @ z), x)

    def back(pull, cotangent):
        return pull(cotangent)[0]

    y, pull = linearized(params["b"])
    return jnp.sum(back(pull, y * 2.0) ** 2)


def differentiated(params):
    def size(x):
        y, pull = jax.vjp(lambda z: jnp.tanh(params["w"] @ z), x)
        return jnp.sum(pull(y)[0] ** 2)

    return jnp.sum(jax.grad(size)(params["b"]) ** 2)


def of_constants(params):
    y, pull = jax.vjp(jnp.sin, X)
    return jnp.sum(pull(net(params, X) + y)[0] ** 2)


PROGRAMS = [step, twice, in_order, unrolled, scanned, several, gauss_newton, handed_on, differentiated, of_constants]


@WAYS
@pytest.mark.parametrize("program", PROGRAMS, ids=[program.__name__ for program in PROGRAMS])
def test_the_same_numbers_where_it_is_pasted(program, way):
    def total(function):
        return lambda p: sum(jnp.sum(x**2) for x in jax.tree.leaves(function(p)))

    function = printed(way(program))
    code = pasted(function)
    for scale in (1.0, 0.6):
        at = jax.tree.map(lambda x, scale=scale: x * scale, P)
        for mine, theirs in ((code(at), program(at)), (jax.grad(total(code))(at), jax.grad(total(program))(at))):
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), mine, theirs)
    assert program is of_constants or "jax.vjp(" in function.code


@WAYS
def test_two_calls_of_one_pullback(way):
    code = definitions(printed(way(twice)))
    assert code.count("jax.vjp(lambda X: net(params, X), X)") == 1
    assert code.count("pull(") == 2 and "jnp.sin(" in code


def test_a_step_by_a_pullback():
    assert definitions(printed(step)) == (
        """\
def net(params, x):
    return jnp.tanh(x @ params["w"] + params["b"])


def f(params):
    y, pull = jax.vjp(lambda params: net(params, X), params)
    (grads,) = pull(y - 1.0)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
"""
    )


def test_in_a_scan():
    assert (
        """\
    def descend(x, _):
        y, pull = jax.vjp(lambda x: net(params, x), x)
        (g,) = pull(y - 1.0)
        return x - 0.1 * g, jnp.sum(y)
"""
        in printed(scanned).code
    )


@pytest.mark.parametrize("way", [lambda f: f, jax.jit])
def test_the_order_of_results_is_that_of_the_arguments(way):
    """By their names: JAX says of a call under `jax.jit` where the pullback was made, and not where it was called."""
    code = definitions(printed(way(in_order)))
    assert "y, pull = pull(" not in code
