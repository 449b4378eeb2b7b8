"""Loops, choices and rules of JAX's: the functions in them are printed as the user has them, outside of `jax.jit` and in it."""

import inspect
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf

rng = np.random.default_rng(0)


def normal(*shape):
    return jnp.asarray(rng.normal(size=shape), jnp.float32)


def square_error(w, x, y):
    residual = x @ w - y
    return jnp.mean(residual**2)


def descent(w, x, y):
    def step(w, _):
        g = jax.grad(square_error)(w, x, y)
        return w - 0.1 * g, None

    w, _ = jax.lax.scan(step, w, None, length=3)
    return w


def momentum(w, xs, ys):
    def step(carry, batch):
        w, v = carry
        loss, g = jax.value_and_grad(square_error)(w, *batch)
        v = 0.9 * v + g
        return (w - 0.1 * v, v), loss

    (w, _), losses = jax.lax.scan(step, (w, w), (xs, ys))
    return jnp.sum(w**2) + losses.sum()


def riccati(A, B, Q, R):
    def step(P, _):
        S = R + B.T @ P @ B
        K = jnp.linalg.solve(S, B.T @ P @ A)
        P = Q + A.T @ P @ (A - B @ K)
        return P, K

    P, Ks = jax.lax.scan(step, Q, None, length=5)
    return jnp.trace(P) + jnp.sum(Ks**2)


def counted(w, x):
    def step(state, row):
        h = jnp.tanh(row @ state["w"])
        return {"n": state["n"] + 1, "w": state["w"] - 0.1 * h.sum()}, h

    state, hs = jax.lax.scan(step, {"n": 0, "w": w}, x, reverse=True)
    return state["w"].sum() + hs.sum()


def mapped(w, x):
    def score(row):
        h = jnp.tanh(row @ w)
        return jnp.sum(h**2)

    return jnp.mean(jax.lax.map(score, x))


def polynomial(a, v):
    def body(i, total):
        return total * v + a[i]

    return jax.lax.fori_loop(0, 4, body, v).sum()


def power(n, x):
    def body(i, total):
        return total * x

    return jax.lax.fori_loop(0, n, body, x)


def root(x):
    def unfinished(state):
        _, change = state
        return change > 1e-3

    def improve(state):
        x, _ = state
        new = 0.5 * (x + 2.0 / x)
        return new, jnp.abs(new - x)

    x, _ = jax.lax.while_loop(unfinished, improve, (x, 1.0))
    return x


def double(x):
    return 2.0 * jnp.sin(x)


def halve(x):
    y = jnp.cos(x)
    return y / 2.0


def third(x):
    s = jnp.cumsum(x)
    return s * s


def chosen(x, t):
    y = jax.lax.cond(t > 0, double, halve, x)
    return jnp.sum(y)


def switched(i, x):
    return jnp.sum(jax.lax.switch(i, [double, halve, third], x))


def closed(x, t, w):
    def near(x, scale):
        return x * scale + w

    def far(x, scale):
        return x - scale * w

    return jnp.sum(jax.lax.cond(t > 0, near, far, x, t))


def residual(w, x):
    @jax.checkpoint
    def layer(h, w):
        z = h @ w
        return jnp.tanh(z) + h

    return jnp.sum(layer(layer(x, w), w))


IN_SOURCE = {
    riccati: (normal(3, 3) * 0.3, normal(3, 2), jnp.eye(3), jnp.eye(2)),
    counted: (normal(3), normal(5, 3)),
    polynomial: (normal(4), normal(3)),
    power: (jnp.int32(3), jnp.float32(1.5)),
    chosen: (normal(3), jnp.float32(0.3)),
    switched: (jnp.int32(2), normal(4)),
    closed: (normal(3), jnp.float32(0.3), normal(3)),
    residual: (normal(3, 3), normal(2, 3)),
    descent: (normal(3), normal(12, 3), normal(12)),
    momentum: (normal(3), normal(4, 12, 3), normal(4, 12)),
    mapped: (normal(3, 2), normal(5, 3)),
    root: (jnp.float32(3.0),),
}


def as_in_source(function):
    """The text of a function of this file, as printed code has it, without the function itself: what is in it, and its name."""
    text = inspect.getsource(function)
    return text.replace(f"def {function.__name__}", "def f", 1)


@pytest.mark.parametrize("function", IN_SOURCE)
def test_functions_are_printed_as_they_are(function):
    """But for numbers and for what `jax.grad` is handed; with `jax.jit` and without."""
    args = IN_SOURCE[function]
    codes = [tf.code(transform(function), *args) for transform in (lambda f: f, jax.jit)]
    plain, jitted = (re.sub("  # for .*", "", code.code) for code in codes)
    assert plain == jitted.replace("0, n, body", "0, 3, body")  # a number there
    wanted = as_in_source(function)
    for said, printed in PRINTED.get(function, ()):
        assert said in wanted
        wanted = wanted.replace(said, printed)
    assert jitted.endswith(wanted), jitted
    check(codes[1], function, args)


PRINTED = {
    momentum: [
        (
            "jax.value_and_grad(square_error)(w, *batch)",
            "jax.value_and_grad(lambda w: square_error(w, batch[0], batch[1]))(w)",
        )
    ],
    descent: [("jax.grad(square_error)(w, x, y)", "jax.grad(lambda w: square_error(w, x, y))(w)")],
    root: [("1e-3", "0.001")],
    residual: [
        (
            "def f(w, x):\n    @jax.checkpoint\n    def layer(h, w):\n        z = h @ w\n        return jnp.tanh(z) + h\n\n",
            "def f(w, x):\n",
        )
    ],
}


def limited(i, x):
    return jnp.sum(jax.lax.switch(jax.lax.clamp(1, i, 2), [double, halve, third], x))


def narrowed(i, x):
    return jnp.sum(jax.lax.switch(i.astype(jnp.int8), [double, halve, third], x))


def as_truth(i, x):
    return jnp.sum(jax.lax.cond(i.astype(bool), double, halve, x))


@pytest.mark.parametrize("function", [limited, narrowed, as_truth])
@pytest.mark.parametrize("way", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_what_the_user_makes_of_an_index_stays(function, way):
    code, x = tf.code(way(function), jnp.int32(1), normal(4)), normal(4)
    space = {"jax": jax, "jnp": jnp, **code.constants}
    exec(code.code, space)
    for i in (-1, 0, 1, 2, 4, 256):
        np.testing.assert_allclose(space["f"](jnp.int32(i), x), function(jnp.int32(i), x), rtol=1e-5, err_msg=code.code)


def check(code, function, args):
    """Printed code has the values and derivatives of the function that it came of, and runs the same loops."""
    space = {"jax": jax, "jnp": jnp, "np": np, **code.constants}
    exec(code.code, space)
    moving = tuple([i for i, x in enumerate(args) if jnp.issubdtype(x.dtype, jnp.floating)])
    for result, wanted in (
        (space["f"](*args), function(*args)),
        (jax.jacfwd(space["f"], moving)(*args), jax.jacfwd(function, moving)(*args)),
    ):
        for x, y in zip(jax.tree.leaves(result), jax.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-4 if x.dtype == np.float32 else 1e-9, atol=1e-5)
            assert x.dtype == y.dtype
    assert loops_in(space["f"], args) == loops_in(function, args)


def loops_in(function, args):
    return re.findall(r"\b(?:scan|while|cond|checkpoint|custom_\w+_call)\[", str(jax.make_jaxpr(function)(*args)))


# ---- functions that do the same -------------------------------------------------------------------------------------


ROWS = jnp.arange(6.0, dtype=jnp.float32)


def first(x, y):
    h = jnp.tanh(x * ROWS[:3])
    k = jnp.sin(h) * y
    return jnp.sum(k**2)


def second(u, v):
    m = jnp.tanh(u * ROWS[:3])
    n = jnp.sin(m) * v
    return jnp.sum(n**2)


def of_its_lines(x, y):
    return jax.checkpoint(first)(x, y)


TWICE = {
    "jit": jax.jit,
    "checkpoint": jax.checkpoint,
    "both": lambda f: jax.jit(jax.checkpoint(f)),
    "the other way round": lambda f: jax.checkpoint(jax.jit(f)),
    "function": tf.function,
    "plain": lambda f: f,
}


@pytest.mark.parametrize("function", [first, second])
def test_a_function_has_its_own_text_whatever_it_is_under_and_what_ran_before(function):
    args = normal(3), normal(3)
    for before in (first, second, of_its_lines):
        assert "def f" in tf.code(jax.jit(before), *args).code
    texts = [tf.code(way(function), *args).code for way in TWICE.values()]
    body = inspect.getsource(function).partition(":\n")[2]
    assert len({*texts}) == 1 and body in texts[0], texts


def test_a_loop_calls_its_own_function_not_one_that_does_the_same():
    def of(function):
        return lambda x, y: jax.lax.scan(lambda c, z: (c + function(c, z), None), x, jnp.ones((2, 3)))[0] * y

    args = normal(3), normal(3)
    for function in (first, second):
        code = tf.code(of(function), *args).code
        assert inspect.getsource(function).strip().splitlines()[1:] == code.split("\n\n\n")[1].splitlines()[1:], code
        assert f"c + {function.__name__}(c, z" in code, code
