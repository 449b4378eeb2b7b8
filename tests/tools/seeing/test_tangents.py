"""What `jax.jvp` ran in a block, in printed code: as such, of the user's function, plain, under `jax.jit` and in a loop."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_computed_trees import pasted

import tapejax as tf

W, T = jnp.array([1.0, 2.0, 3.0]), jnp.array([0.3, 0.5, 0.7])
WAYS = pytest.mark.parametrize("way", [lambda f: f, jax.jit, tf.function], ids=["plain", "jit", "function"])


def printed(function, *sources):
    with tf.GradientTape() as tape:
        tape.watch(sources)
        value = function(*sources)
    return tape.as_function(value, list(sources))


def definitions(function):
    return function.code[function.code.index("def ") :]


def energy(p, t):
    return jnp.sum(jnp.tanh(p * t) ** 2)


def along(w, t):
    y, dy = jax.jvp(lambda s: jnp.sin(w * s) * s, (t,), (w * 0.5,))
    return jnp.sum((y + dy) ** 2)


def product(w, t):
    hv = jax.jvp(jax.grad(lambda p: energy(p, t)), (w,), (t,))[1]
    return jnp.vdot(hv, hv)


def by_gradients(w, t):
    hv = jax.grad(lambda p: jnp.vdot(jax.grad(energy)(p, t), t))(w)
    return jnp.vdot(hv, hv)


def curvature(w, t):
    def net(s):
        return jnp.sin(w[0] * s) * w[1]

    def slope(s):
        return jax.jvp(net, (s,), (1.0,))[1]

    return jnp.mean((jax.vmap(jax.grad(slope))(t) + t) ** 2)


def several(w, t):
    def heights(x):
        h = jnp.tanh(x * t)
        return h, jnp.sum(h**2)

    (h, total), (dh, dtotal) = jax.jvp(heights, (w,), (jnp.cos(w),))
    return jnp.sum(h * dh) * total + dtotal


def arguments(w, t):
    return jnp.sum(jax.jvp(lambda a, b: jnp.sin(a) * b, (w, t), (t * 2.0, w * 3.0))[1] ** 2)


def scanned(w, t):
    def loss(p, x):
        return jnp.sum((jnp.tanh(p * t) - x) ** 2)

    def step(p, x):
        hv = jax.jvp(jax.grad(lambda q: loss(q, x)), (p,), (t,))[1]
        return p - 0.1 * hv, loss(p, x)

    p, losses = jax.lax.scan(step, w, jnp.stack([t, w]))
    return jnp.sum(p) + jnp.sum(losses)


def of_itself(w, t):
    return jnp.sum(jax.jvp(lambda x: jnp.sin(x) * t, (w,), (w,))[1])


PROGRAMS = [along, product, by_gradients, curvature, several, arguments, scanned, of_itself]


@WAYS
@pytest.mark.parametrize("program", PROGRAMS, ids=[program.__name__ for program in PROGRAMS])
def test_the_same_numbers_where_it_is_pasted(program, way):
    function = printed(way(program), W, T)
    code = pasted(function)
    for at in ((W, T), (W * 0.7, T - 0.4)):
        np.testing.assert_allclose(code(at), program(*at), rtol=1e-5)
        for mine, theirs in zip(jax.grad(code)(at), jax.grad(program, argnums=(0, 1))(*at), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-5)
    assert "jax.grad(" in function.code if program is by_gradients else "jax.jvp(" in function.code


@WAYS
def test_the_value_and_its_tangent(way):
    assert definitions(printed(way(along), W, T)) == (
        """\
def f(sources):
    W, T = sources
    y, dy = jax.jvp(lambda T: jnp.sin(W * T) * T, (T,), (W * 0.5,))
    value = jnp.sum((y + dy) ** 2)
    return value
"""
    )


@WAYS
def test_a_product_with_a_hessian(way):
    assert definitions(printed(way(product), W, T)) == (
        """\
def energy(p, t):
    return jnp.sum(jnp.tanh(p * t) ** 2)


def f(sources):
    W, T = sources
    hv = jax.jvp(jax.grad(lambda W: energy(W, T)), (W,), (T,))[1]
    value = jnp.vdot(hv, hv)
    return value
"""
    )


@WAYS
def test_several_results_come_of_one_call(way):
    code = printed(way(several), W, T).code
    assert code.count("jnp.tanh(") == 1 and ", (dh, dtotal) = jax.jvp(" in code


def test_what_asks_python_does_not_ask_again():
    asked = []

    def ask(x):
        asked.append(1)
        return x

    @jax.custom_jvp
    def through(x):
        return jax.pure_callback(ask, jax.ShapeDtypeStruct((3,), x.dtype), x)

    through.defjvp(lambda primals, tangents: (through(*primals), tangents[0]))

    with tf.GradientTape() as tape:
        tape.watch(W)
        value = jnp.sum(jax.jvp(lambda x: through(x) * x, (W,), (T,))[1])
    before = len(asked)
    tape.as_function(value, W)
    assert len(asked) == before
