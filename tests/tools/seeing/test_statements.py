"""Python's statements in a `tf.function`, and `tf.cond` and `tf.while_loop`, in printed code: with the user's lines and names."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_computed_trees import pasted

import tapejax as tf

X, W = jnp.array([1.0, 2.0, 3.0]), jnp.array([0.5, -1.0, 2.0])
EXPECTED = {}


def printed_as(text):
    def note(function):
        EXPECTED[function.__name__] = function, text
        return function

    return note


@printed_as("""
def f(x, w):  # for w: float32[3]
    s = jnp.sum(x * w)

    def true_branch():
        y = x * 2.0
        z = y + w
        return y, z

    def false_branch():
        y = -x
        z = y * w
        return y, z

    y, z = jax.lax.cond(s > 0.0, true_branch, false_branch)
    return jnp.sum(z * y)
""")
def both_branches(x, w):
    s = tf.reduce_sum(x * w)
    if s > 0.0:
        y = x * 2.0
        z = y + w
    else:
        y = -x
        z = y * w
    return tf.reduce_sum(z * y)


@printed_as("""
def f(x, w):  # for w: float32[3]
    g = x * w
    norm = jnp.linalg.norm(g)
    g = jax.lax.cond(norm > 1.0, lambda: g / norm, lambda: g)
    return jnp.sum(g * x)
""")
def clipped(x, w):
    g = x * w
    norm = tf.norm(g)
    if norm > 1.0:
        g = g / norm
    return tf.reduce_sum(g * x)


@printed_as("""
def f(x, w):  # for w: float32[3]
    s = jnp.sum(x)
    y = jax.lax.cond(
        s < 0.0, lambda: -x, lambda: jax.lax.cond(s < 10.0, lambda: x * w, lambda: w)
    )
    return jnp.sum(y)
""")
def three_ways(x, w):
    s = tf.reduce_sum(x)
    if s < 0.0:
        y = -x
    elif s < 10.0:
        y = x * w
    else:
        y = w
    return tf.reduce_sum(y)


def helper(h, w):
    z = tf.tanh(h)
    return z * w


@printed_as("""
def helper(h, w):
    z = jnp.tanh(h)
    return z * w


def f(x, w):  # for w: float32[3]
    h = x
    for _ in range(3):
        h = jax.lax.cond(jnp.max(h) > 1.0, lambda: helper(h, w), lambda: h + 1.0)
    return jnp.sum(h)
""")
def choice_in_a_loop(x, w):
    h = x
    for _ in tf.range(3):
        if tf.reduce_max(h) > 1.0:
            h = helper(h, w)
        else:
            h = h + 1.0
    return tf.reduce_sum(h)


@printed_as("""
def f(x, w):  # for w: float32[3]
    s = jnp.zeros((3,), jnp.float32)
    for _ in range(3):
        s = s + x * w
        x = x + 1.0
    return jnp.sum(s)
""")
def counted(x, w):
    i, s = 0, tf.zeros([3])
    while tf.less(i, 3):
        s += x * w
        x = x + 1.0
        i += 1
    return tf.reduce_sum(s)


@printed_as("""
def f(x, w):  # for w: float32[3]
    def body(i, h):
        h = jnp.tanh(h * w) + 0.1
        return h - jnp.mean(h)

    h = jax.lax.fori_loop(0, 3000, body, x)
    return jnp.sum(h * h)
""")
def many_rounds(x, w):
    h = x
    for i in tf.range(3000):  # noqa: B007
        h = tf.tanh(h * w) + 0.1
        h = h - tf.reduce_mean(h)
    return tf.reduce_sum(h * h)


@printed_as("""
def f(x, w):  # for w: float32[3]
    def body(w, i):
        w = jax.lax.cond(jnp.mod(i, 10) == 0, lambda: w * 0.9, lambda: w)
        w = w - 0.1 * x * w
        return w, None

    w = jax.lax.scan(body, w, c)[0]
    return jnp.sum(w)
""")
def other_rounds(x, w):
    for i in tf.range(40):
        if i % 10 == 0:
            w = w * 0.9
        w -= 0.1 * x * w
    return tf.reduce_sum(w)


@printed_as("""
def f(x, w):  # for w: float32[3]
    x = while_loop(lambda x: jnp.sum(x) > 1.0, jnp.tanh, x)
    return jnp.sum(x * w)
""")
def until(x, w):
    while tf.reduce_sum(x) > 1.0:
        x = tf.tanh(x)
    return tf.reduce_sum(x * w)


@printed_as("""
def f(x, w):  # for w: float32[3]
    def test(carry):
        _, err = carry
        return err > 0.001

    def body(carry):
        x, _ = carry
        step = (x * x - w * w) / (2.0 * x)
        x = x - step
        err = jnp.max(step * step)
        return x, err

    x, _ = while_loop(test, body, (x, jnp.float32(1.0)))
    return jnp.sum(x * w)
""")
def newton(x, w):
    err = tf.constant(1.0)
    while err > 1e-3:
        step = (x * x - w * w) / (2.0 * x)
        x = x - step
        err = tf.reduce_max(step * step)
    return tf.reduce_sum(x * w)


@printed_as("""
def f(x, w):  # for w: float32[3]
    y = jax.lax.cond(jnp.sum(w) > 0.0, lambda: x * w, lambda: w)
    z = jax.lax.cond(jnp.sum(y) > 1.0, lambda: y * 2.0, lambda: y)
    return jnp.sum(z * x)
""")
def functions_of_branches(x, w):
    y = tf.cond(tf.reduce_sum(w) > 0.0, lambda: x * w, lambda: w)
    z = tf.cond(tf.reduce_sum(y) > 1.0, lambda: y * 2.0, lambda: y)
    return tf.reduce_sum(z * x)


@printed_as("""
def f(x, w):  # for w: float32[3]
    def body(_, carry):
        i, h = carry
        return i + 1, jnp.sin(h) * w

    _, h = jax.lax.fori_loop(0, 4, body, (jnp.int32(0), x))
    return jnp.sum(h)
""")
def functions_of_a_loop(x, w):
    _, h = tf.while_loop(lambda i, h: i < 4, lambda i, h: (i + 1, tf.sin(h) * w), (tf.constant(0), x))
    return tf.reduce_sum(h)


@printed_as("""
def f(x, w):  # for w: float32[3]
    def body(carry, _):
        h, t0 = carry

        def true_branch():
            t1, t2 = jax.lax.cond(
                jnp.sum(h) > 50.0,
                lambda: (jnp.bool_(True), jnp.bool_(True)),
                lambda: (t0, jnp.bool_(False)),
            )
            h_2 = jax.lax.cond(jnp.logical_not(t2), lambda: h * 2.0 + w, lambda: h)
            return h_2, t1

        h, t1 = jax.lax.cond(jnp.logical_not(t0), true_branch, lambda: (h, t0))
        return (h, t1), None

    (h, _), _ = jax.lax.scan(body, (x, jnp.bool_(False)), c)
    return jnp.sum(h)
""")
def left_early(x, w):
    h = x
    for _ in tf.range(6):
        if tf.reduce_sum(h) > 50.0:
            break
        h = h * 2.0 + w
    return tf.reduce_sum(h)


@printed_as("""
def f(x, w):  # for w: float32[3]
    table = x[:, None] * x

    def body(_, carry):
        w, i = carry
        w = 0.1 * w * table[i % 3] + table[:, i % 3] * table[i % 3, 1]
        i = i + 1
        return w, i

    w, _ = jax.lax.fori_loop(0, 300, body, (w, jnp.int32(0)))
    return jnp.sum(w)
""")
def by_index(x, w):
    table = tf.multiply(x[:, None], x)
    i = tf.constant(0)
    while i < 300:
        w = 0.1 * w * table[i % 3] + table[:, i % 3] * table[i % 3, 1]
        i += 1
    return tf.reduce_sum(w)


# ---- tapes in the statements ----


@printed_as("""
def f(x, w):  # for w: float32[3]
    for _ in range(4):
        t0 = jnp.abs(x)
        g = jax.grad(lambda w: jnp.mean((t0 * w - 1.0) ** 2))(w)
        w = w - 0.1 * g
    return jnp.sum(w)
""")
def descent(x, w):
    for _ in tf.range(4):
        with tf.GradientTape() as tape:
            tape.watch(w)
            loss = tf.reduce_mean((tf.abs(x) * w - 1.0) ** 2)
        g = tape.gradient(loss, w)
        w -= 0.1 * g
    return tf.reduce_sum(w)


@printed_as("""
def f(x, w):  # for w: float32[3]
    v = jnp.zeros_like(w)

    def body(i, carry):
        w, v = carry
        g = jax.grad(lambda w: jnp.mean((x * w - 1.0) ** 2))(w)
        v = 0.9 * v - 0.01 * g
        w = w + v
        return w, v

    w, _ = jax.lax.fori_loop(0, 500, body, (w, v))
    return jnp.sum(w)
""")
def long_descent(x, w):
    v = tf.zeros_like(w)
    for i in tf.range(500):  # noqa: B007
        with tf.GradientTape() as tape:
            tape.watch(w)
            loss = tf.reduce_mean((x * w - 1.0) ** 2)
        g = tape.gradient(loss, w)
        v = 0.9 * v - 0.01 * g
        w += v
    return tf.reduce_sum(w)


@printed_as("""
def f(x, w):  # for w: float32[3]
    def body(w):
        return w - 0.2 * jax.grad(lambda w: jnp.sum(w**2 * jnp.cos(x) ** 2 + w * w))(w)

    w = while_loop(lambda w: jnp.sum(w * w) > 0.5, body, w)
    return jnp.sum(w)
""")
def until_small(x, w):
    while tf.reduce_sum(w * w) > 0.5:
        with tf.GradientTape() as tape:
            tape.watch(w)
            loss = tf.reduce_sum(w**2 * tf.cos(x) ** 2 + w * w)
        w = w - 0.2 * tape.gradient(loss, w)
    return tf.reduce_sum(w)


@printed_as("""
def loss_of(w, x):
    return jnp.sum(jnp.sin(w * x))


def f(x, w):  # for w: float32[3]
    g = jax.grad(lambda w: loss_of(w, x))(w)
    g = jax.lax.cond(
        jnp.sum(g) > 0.0,
        lambda: g + 0.1 * jax.grad(lambda w: jnp.sum(jnp.exp(w)))(w),
        lambda: g,
    )
    return jnp.sum(g)
""")
def with_penalty(x, w):
    with tf.GradientTape() as tape:
        tape.watch(w)
        loss = loss_of(w, x)
    g = tape.gradient(loss, w)
    if tf.reduce_sum(g) > 0.0:
        with tf.GradientTape() as tape:
            tape.watch(w)
            penalty = tf.reduce_sum(tf.exp(w))
        g += 0.1 * tape.gradient(penalty, w)
    return tf.reduce_sum(g)


def loss_of(w, x):
    return tf.reduce_sum(tf.sin(w * x))


@printed_as("""
def loss_of(w, x):
    return jnp.sum(jnp.sin(w * x))


def f(x, w):  # for w: float32[3]
    def adapted(scale):
        return w - 0.1 * jax.grad(lambda w: loss_of(w, scale * x))(w)

    return jnp.sum(jax.lax.map(adapted, c))
""")
def for_each_task(x, w):
    def adapted(scale):
        with tf.GradientTape() as tape:
            tape.watch(w)
            loss = loss_of(w, scale * x)
        return w - 0.1 * tape.gradient(loss, w)

    return tf.reduce_sum(tf.map_fn(adapted, tf.constant([0.5, 1.0, 2.0])))


@printed_as("""
def f(x, w):  # for w: float32[3]
    for _ in range(3):
        t0 = x**2

        def g_fn(w):
            return jax.grad(lambda w: jnp.sum(w**4 + t0 * w**2))(w)

        g = g_fn(w)
        h = jax.jacrev(g_fn)(w)
        w = w - jnp.linalg.solve(h, g[:, None])[:, 0]
    return jnp.sum(w)
""")
def by_second_derivatives(x, w):
    for _ in tf.range(3):
        with tf.GradientTape() as outer:
            outer.watch(w)
            with tf.GradientTape() as inner:
                inner.watch(w)
                loss = tf.reduce_sum(w**4 + x**2 * w**2)
            g = inner.gradient(loss, w)
        h = outer.jacobian(g, w)
        w = w - tf.linalg.solve(h, g[:, None])[:, 0]
    return tf.reduce_sum(w)


@printed_as("""
@jax.custom_vjp
def doubled(y):
    return y * 2.0


def doubled_fwd(y):
    return doubled(y), ()


def doubled_bwd(_, dy):
    return (dy * 0.5,)


doubled.defvjp(doubled_fwd, doubled_bwd)


def f(x, w):  # for w: float32[3]
    for _ in range(3):
        w = doubled(jnp.sin(w) * x)
    return jnp.sum(w * w)
""")
def with_a_rule(x, w):
    @tf.custom_gradient
    def doubled(y):
        return y * 2.0, lambda dy: dy * 0.5

    for _ in tf.range(3):
        w = doubled(tf.sin(w) * x)
    return tf.reduce_sum(w * w)


@tf.function
def step_of(w, x):
    return w - 0.1 * tf.abs(x * w)


@printed_as("""
def step_of(w, x):
    return w - 0.1 * jnp.abs(x * w)


def f(x, w):  # for w: float32[3]
    for _ in range(3):
        w = step_of(w, x)
    return jnp.sum(w)
""")
def through_a_function(x, w):
    for _ in tf.range(3):
        w = step_of(w, x)
    return tf.reduce_sum(w)


@pytest.mark.parametrize("name", EXPECTED)
def test_statements_are_printed_as_jaxs_control_flow(name):
    function, text = EXPECTED[name]
    printed = tf.code(tf.function(function), X, W)
    shown = re.sub(r"\bc\d+\b", "c", printed.code)  # the rows of a loop
    begin = "def f(" if "while_loop(" in text else text.lstrip()[:9]
    assert shown[shown.index(begin) :] == text.lstrip()


@pytest.mark.parametrize("name", EXPECTED)
def test_they_compute_the_same(name):
    function, _ = EXPECTED[name]
    staged = tf.function(function)
    again = pasted(tf.code(staged, X, W))
    for x, w in ((X, W), (X * 0.3, W + 2.0), (-X + 4.5, W * -0.5 + 3.0)):
        with tf.GradientTape() as tape:
            tape.watch([x, w])
            y = staged(x, w)
        np.testing.assert_allclose(again(x, w), y, 1e-5)
        for a, b in zip(jax.grad(again, (0, 1))(x, w), tape.gradient(y, [x, w]), strict=True):
            np.testing.assert_allclose(a, 0 if b is None else b, 1e-4, 1e-6)


def root(w):
    x, err = w, tf.constant(1.0)
    while err > 1e-4:
        step = (x * x - w) / (2.0 * x)
        x, err = x - step, tf.reduce_max(step * step)
    return tf.reduce_sum(x)


def test_a_loop_without_a_known_end_has_derivatives_of_any_order():
    w = jnp.array([2.0, 3.0, 2.5])
    f = pasted(tf.code(tf.function(root), w))
    np.testing.assert_allclose(jax.jit(jax.grad(f))(w), 0.5 / np.sqrt(w), 1e-3)
    np.testing.assert_allclose(jax.jacrev(jax.grad(f))(w), np.diag(-0.25 * w**-1.5), 1e-2, 1e-4)
    np.testing.assert_allclose(jax.vmap(jax.grad(f))(jnp.stack([w, w + 1.0]))[0], 0.5 / np.sqrt(w), 1e-3)


def test_integers_in_such_a_loop_have_no_gradient():
    def counting(x):
        n = tf.constant(0)
        while tf.reduce_sum(x) < 100.0:
            x = x * 2.0
            n += 1
        return tf.reduce_sum(x) * tf.cast(n, tf.float32)

    staged = tf.function(counting)
    f = pasted(tf.code(staged, X))
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = staged(X)
    assert f(X) == y and np.array_equal(jax.grad(f)(X), tape.gradient(y, X))


def test_variables_that_a_loop_assigns_are_what_it_carries():
    v, m = tf.Variable([0.3, -0.7]), tf.Variable([0.0, 0.0])

    @tf.function
    def train(x):
        for _ in tf.range(300):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum((v * x - 1.0) ** 2)
            m.assign(0.9 * m + tape.gradient(loss, v))
            v.assign_sub(0.01 * m)
        return v * x

    x = jnp.array([2.0, 0.5])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = train(x)
    before = [jnp.array([0.3, -0.7]), jnp.zeros(2)]
    again = tape.as_function(y, [x])
    body = again.code[again.code.index("    def body(") :]
    assert (
        body
        == """\
    def body(_, carry):
        v, m = carry
        t0 = assigned(0.9 * m + jax.grad(lambda v: jnp.sum((v * x - 1.0) ** 2))(v), m)
        return (
            assigned(jax.lax.stop_gradient(v - 0.01 * t0), v),
            assigned(jax.lax.stop_gradient(t0), m),
        )

    t0, _ = jax.lax.fori_loop(0, 300, body, (v, m))
    y = assigned(t0, v) * x
    return y
"""
    )
    for z in (x, x + 0.25):
        v.assign(before[0])
        m.assign(before[1])
        with tf.GradientTape() as tape:
            tape.watch(z)
            y = train(z)
        np.testing.assert_allclose(again(z), y, 1e-5)
        np.testing.assert_allclose(jax.grad(lambda z: again(z).sum())(z), tape.gradient(y, z), 1e-5)
