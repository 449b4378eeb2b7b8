"""Derivatives in a tape, printed: the code has the value and the gradient of what was recorded, where it was and elsewhere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf

rng = np.random.default_rng(0)
X = np.array([0.3, 0.7, 1.1], np.float32)


def late_watch():
    x = tf.constant(X)
    w = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape() as t1:
            t1.watch(x)
            y = tf.sin(x * w)
        with tf.GradientTape() as t2:
            t2.watch(w)
            g = t1.gradient(y, x)
        h = t2.gradient(g, w)
        loss = tf.reduce_sum(h * x) + h
    return (outer, loss, [x, w])


def outer_late():
    x = tf.constant(X)
    w = tf.Variable(2.0)
    with tf.GradientTape() as t1:
        t1.watch(x)
        y = tf.sin(x * w)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        g = t1.gradient(y, x)
        loss = tf.reduce_sum(g * x * w)
    return (outer, loss, [x, w])


def stop_inner():
    x = tf.constant(X)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape() as t1:
            t1.watch(x)
            with t1.stop_recording():
                k = x * x
            y = tf.exp(x) * k
        g = t1.gradient(y, x)
        loss = tf.reduce_sum(g * g)
    return (outer, loss, x)


def stop_gradient():
    x = tf.constant(X)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape() as t1:
            t1.watch(x)
            y = tf.exp(x) * tf.stop_gradient(x * x)
        g = t1.gradient(y, x)
        loss = tf.reduce_sum(g * g)
    return (outer, loss, x)


def multi():
    x = tf.constant(X)
    z = tf.constant(X * 2)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch([x, z])
        with tf.GradientTape() as t1:
            t1.watch([x, z])
            a = tf.sin(x) * z
            b = tf.reduce_sum(z**2 * x)
        gx, gz = t1.gradient([a, b], [x, z])
        loss = tf.reduce_sum(gx * gz) + b
    return (outer, loss, [x, z])


def og():
    x = tf.constant(X)
    c = tf.constant(X[::-1].copy())
    with tf.GradientTape(persistent=True) as outer:
        outer.watch([x, c])
        with tf.GradientTape() as t1:
            t1.watch(x)
            a = tf.sin(x) * x
            b = x**3
        g = t1.gradient([a, b], x, output_gradients=[c, c * 2.0])
        loss = tf.reduce_sum(g * g)
    return (outer, loss, [x, c])


def og1():
    x = tf.constant(X)
    c = tf.constant(X[::-1].copy())
    with tf.GradientTape(persistent=True) as outer:
        outer.watch([x, c])
        with tf.GradientTape() as t1:
            t1.watch(x)
            a = tf.sin(x) * x
        g = t1.gradient(a, x, output_gradients=c)
        loss = tf.reduce_sum(g * g)
    return (outer, loss, [x, c])


def jac():
    x = tf.constant(X)
    w = tf.Variable(rng.normal(size=(3, 2)).astype(np.float32))
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape() as t1:
            t1.watch(x)
            y = tf.tanh(x[None] @ w)[0]
        j = t1.jacobian(y, x)
        loss = tf.reduce_sum(j**2)
    return (outer, loss, [x, w])


def jac_fwd():
    x = tf.constant(X[:2])
    w = tf.Variable(rng.normal(size=(2, 5)).astype(np.float32))
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape() as t1:
            t1.watch(x)
            y = tf.tanh(x[None] @ w)[0]
        j = t1.jacobian(y, x)
        loss = tf.reduce_sum(j**2)
    return (outer, loss, [x, w])


def bjac():
    x = tf.constant(rng.normal(size=(4, 3)).astype(np.float32))
    w = tf.Variable(rng.normal(size=(3, 2)).astype(np.float32))

    def net(x):
        return tf.tanh(x @ w)

    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape() as t1:
            t1.watch(x)
            y = net(x)
        j = t1.batch_jacobian(y, x)
        loss = tf.reduce_sum(j**2)
    return (outer, loss, [x, w])


def bjac_bn():
    x = tf.constant(rng.normal(size=(4, 3)).astype(np.float32))
    w = tf.Variable(rng.normal(size=(3, 2)).astype(np.float32))

    def net(x):
        h = x @ w
        m = tf.reduce_mean(h, axis=0, keepdims=True)
        return tf.tanh(h - m) * h

    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape() as t1:
            t1.watch(x)
            y = net(x)
        j = t1.batch_jacobian(y, x)
        loss = tf.reduce_sum(j**2)
    return (outer, loss, [x, w])


def jvp():
    x = tf.constant(X)
    v = tf.constant(X[::-1].copy())
    with tf.GradientTape(persistent=True) as outer:
        outer.watch([x, v])
        with tf.autodiff.ForwardAccumulator(x, v) as acc:
            y = tf.sin(x) * x
            z = tf.reduce_sum(y**2)
        dy, dz = acc.jvp([y, z])
        loss = tf.reduce_sum(dy * y) + dz
    return (outer, loss, [x, v])


def third():
    x = tf.constant(X)
    with tf.GradientTape(persistent=True) as o:
        o.watch(x)
        with tf.GradientTape() as t3:
            t3.watch(x)
            with tf.GradientTape() as t2:
                t2.watch(x)
                with tf.GradientTape() as t1:
                    t1.watch(x)
                    y = tf.exp(x) * x**3
                a = t1.gradient(y, x)
            b = t2.gradient(a, x)
        c = t3.gradient(b, x)
        loss = tf.reduce_sum(c * y)
    return (o, loss, x)


def unconn():
    x = tf.constant(X)
    z = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape(persistent=True) as o:
        o.watch(x)
        with tf.GradientTape() as t1:
            t1.watch(x)
            y = tf.sin(x)
            k = z * 2.0
        g, n = t1.gradient(y, [x, z], unconnected_gradients="zero")
        loss = tf.reduce_sum(g * g + n * k)
    return (o, loss, [x, z])


def same():
    x = tf.constant(X)
    with tf.GradientTape(persistent=True) as o:
        o.watch(x)
        with tf.GradientTape() as t1:
            t1.watch(x)
            y = x**2
        a, b = t1.gradient(y, [x, x])
        loss = tf.reduce_sum(a * b)
    return (o, loss, x)


def target_source():
    x = tf.constant(X)
    with tf.GradientTape(persistent=True) as o:
        o.watch(x)
        with tf.GradientTape(persistent=True) as t1:
            t1.watch(x)
            y = x**2
            z = tf.sin(y)
        a = t1.gradient(z, y)
        b = t1.gradient([z, y], [x, y])
        loss = tf.reduce_sum(a * b[0] * b[1])
    return (o, loss, x)


def custom():
    x = tf.constant(X)

    @tf.custom_gradient
    def cube(v):
        return (v**3, lambda dy: dy * 3.0 * v**2 * 0.5)

    with tf.GradientTape(persistent=True) as o:
        o.watch(x)
        with tf.GradientTape() as t1:
            t1.watch(x)
            y = cube(tf.sin(x))
        g = t1.gradient(y, x)
        loss = tf.reduce_sum(g**2)
    return (o, loss, x)


def jitted():
    x = tf.constant(X)
    w = tf.Variable(2.0)

    @tf.function
    def net(x):
        return tf.tanh(x * w) * x

    with tf.GradientTape(persistent=True) as o:
        o.watch(x)
        with tf.GradientTape() as t1:
            t1.watch(x)
            y = net(x)
        g = t1.gradient(y, x)
        loss = tf.reduce_sum(g**2) + tf.reduce_sum(y)
    return (o, loss, [x, w])


def infunction():
    x = tf.constant(X)
    w = tf.Variable(2.0)

    @tf.function
    def slope(x):
        with tf.GradientTape() as t1:
            t1.watch(x)
            y = tf.tanh(x * w) * x
        return t1.gradient(y, x)

    with tf.GradientTape(persistent=True) as o:
        o.watch(x)
        loss = tf.reduce_sum(slope(x) ** 2)
    return (o, loss, [x, w])


def helper():
    x = tf.constant(X)
    w = tf.Variable(2.0)

    def slope(fn, x):
        with tf.GradientTape() as t1:
            t1.watch(x)
            y = fn(x)
        return t1.gradient(y, x)

    def net(x):
        return tf.tanh(x * w) * x

    with tf.GradientTape(persistent=True) as o:
        o.watch(x)
        a = slope(net, x)
        b = slope(net, x * 2.0)
        loss = tf.reduce_sum(a * b)
    return (o, loss, [x, w])


def hlp2():
    x = tf.constant(X)
    w = tf.Variable(2.0)

    def net(x):
        return tf.tanh(x * w) * x

    def grads_of(tape, y, x):
        return tape.gradient(y, x) * 2.0

    with tf.GradientTape(persistent=True) as o:
        o.watch(x)
        with tf.GradientTape() as t1:
            t1.watch(x)
            y = net(x)
        a = grads_of(t1, y, x)
        loss = tf.reduce_sum(a * y)
    return (o, loss, [x, w])


def loopy():
    w = tf.Variable(X)
    with tf.GradientTape(persistent=True) as o:
        p = w * 1.0
        for _ in range(3):
            with tf.GradientTape() as t1:
                t1.watch(p)
                loss = tf.reduce_sum(tf.sin(p) * p)
            p = p - 0.1 * t1.gradient(loss, p)
        final = tf.reduce_sum(tf.cos(p))
    return (o, final, [w])


def cplx():
    x = tf.constant(X)
    with tf.GradientTape(persistent=True) as o:
        o.watch(x)
        with tf.GradientTape() as t1:
            t1.watch(x)
            y = tf.cast(x, tf.complex64) ** 2 * tf.constant(1 + 2j, tf.complex64)
        g = t1.gradient(y, x)
        loss = tf.reduce_sum(g**2)
    return (o, loss, x)


def inter():
    x = tf.constant(X)
    with tf.GradientTape(persistent=True) as o:
        o.watch(x)
        with tf.GradientTape() as t1:
            t1.watch(x)
            h = tf.sin(x)
            k = h * x
            y = tf.reduce_sum(k**2)
        g = t1.gradient(y, [x, k])
        loss = tf.reduce_sum(g[0] * h) + tf.reduce_sum(g[1] * k) + y
    return (o, loss, x)


def scalarw():
    w = tf.Variable(2.0)
    x = tf.constant(X)

    def net(x, w):
        return tf.sin(x * w)

    with tf.GradientTape(persistent=True) as o:
        with tf.GradientTape() as t1:
            t1.watch(x)
            y = net(x, w)
        g = t1.gradient(y, x)
        loss = tf.reduce_sum(g * y)
    return (o, loss, w)


def assigned():
    w = tf.Variable(2.0)
    x = tf.constant(X)
    with tf.GradientTape(persistent=True) as o:
        o.watch(x)
        with tf.GradientTape() as t1:
            loss = tf.reduce_sum(tf.sin(x * w))
        g = t1.gradient(loss, w)
        w.assign_sub(0.1 * g)
        l2 = tf.reduce_sum(tf.sin(x * w)) * g
    return (o, l2, x)


def jaxgrad():
    x = jnp.asarray(X)
    with tf.GradientTape(persistent=True) as o:
        o.watch(x)
        g = jax.grad(lambda x: jnp.sum(jnp.sin(x) * x))(x)
        loss = jnp.sum(g**2)
    return (o, loss, x)


def dropout():
    x = tf.constant(X)
    w = tf.Variable(X)
    with tf.GradientTape(persistent=True) as o:
        with tf.GradientTape() as t1:
            t1.watch(x)
            y = tf.nn.dropout(x * w, 0.4, seed=3)
        g = t1.gradient(y, x)
        loss = tf.reduce_sum(g * y * w)
    return (o, loss, w)


def scan():
    x = jnp.asarray(X)
    with tf.GradientTape(persistent=True) as o:
        o.watch(x)
        with tf.GradientTape() as t1:
            t1.watch(x)
            y = jax.lax.scan(lambda c, a: (c * jnp.sin(a) + a, c), 1.0, x)[0]
        g = t1.gradient(y, x)
        loss = jnp.sum(g**2) * y
    return (o, loss, x)


def late2():
    x = tf.constant(X)
    with tf.GradientTape(persistent=True) as o:
        o.watch(x)
        h = x * x
        with tf.GradientTape() as t1:
            t1.watch(h)
            y = tf.sin(h) * x
        g = t1.gradient(y, h)
        loss = tf.reduce_sum(g * h)
    return (o, loss, x)


def manyfresh():
    x = tf.constant(X)
    with tf.GradientTape(persistent=True) as o:
        o.watch(x)
        with tf.GradientTape(persistent=True) as t1:
            t1.watch(x)
            y = tf.sin(x) * x
            g = t1.gradient(y, x)
            y2 = g * y
        g2 = t1.gradient(y2, x)
        loss = tf.reduce_sum(g2 * g)
    return (o, loss, x)


def weighted_parts():
    x, c = tf.constant(X), tf.constant(X[::-1].copy())
    with tf.GradientTape(persistent=True) as o:
        o.watch([x, c])
        with tf.GradientTape(persistent=True) as t1:
            t1.watch(x)
            h = tf.sin(x)
            y = tf.exp(h) * x
            z = x**3
        g = t1.gradient(y, [x, h], output_gradients=c)
        k = t1.gradient([y, z], [h, x], output_gradients=[c, c * 2.0])
        loss = tf.reduce_sum(g[0] * g[1] + k[0] * k[1])
    return (o, loss, [x, c])


def partly_watched():
    x = tf.constant(X)
    q = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as o:
        o.watch(q)
        p = q * 3.0
        with tf.GradientTape() as t2:
            t2.watch([p, x])
            with tf.GradientTape() as t1:
                t1.watch([p, x])
                y = q * p**2 + x**3  # what does not depend on x is left out of the inner function
            g = t1.gradient(y, [p, x])[1]
        loss = tf.reduce_sum(t2.gradient(g, x)) * q
    return (o, loss, q)


def shared():
    x, z = tf.constant(X), tf.constant(X[::-1].copy())
    with tf.GradientTape(persistent=True) as o:
        o.watch([x, z])
        with tf.GradientTape() as t1:
            t1.watch([x, z])
            y = tf.sin(x + z)
        a, b, c = t1.gradient(y, [x, z, x])
        loss = tf.reduce_sum(a * b * c * x)
    return (o, loss, [x, z])


# No transformation of JAX's is that derivative: a tape that began late; cotangents of which one does not come to every source.
SPELLED_OUT = {late_watch, outer_late, weighted_parts}
PROGRAMS = [
    late_watch,
    outer_late,
    stop_inner,
    stop_gradient,
    multi,
    og,
    og1,
    jac,
    jac_fwd,
    bjac,
    bjac_bn,
    jvp,
    third,
    unconn,
    same,
    target_source,
    custom,
    jitted,
    infunction,
    helper,
    hlp2,
    loopy,
    cplx,
    inter,
    scalarw,
    assigned,
    jaxgrad,
    dropout,
    scan,
    late2,
    manyfresh,
    weighted_parts,
    partly_watched,
    shared,
]


def total(f):
    return lambda x: sum(jnp.sum(jnp.sin(y)) for y in jax.tree.leaves(f(x)))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_derivative_is_a_transformation_with_the_same_numbers(program):
    tape, target, sources = program()
    function = tape.as_function(target, sources)
    space = {"jax": jax, "jnp": jnp, "np": np, **function.constants}
    exec(function.code, space)
    assert ("pullback" in function.code) == (program in SPELLED_OUT), function.code
    at = jax.tree.map(jnp.asarray, sources, is_leaf=lambda x: isinstance(x, (tf.Tensor, tf.Variable)))
    np.testing.assert_allclose(space["f"](at), np.asarray(target), rtol=1e-5)
    for x in (at, jax.tree.map(lambda x: x * 1.1 + 0.05, at)):
        found, wanted = (jax.value_and_grad(total(f))(x) for f in (space["f"], function))
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4), found, wanted)


def test_the_parts_of_a_named_gradient_go_on_one_by_one():
    ws = [tf.Variable([[0.3, -0.2]]), tf.Variable([0.1, 0.2]), tf.Variable([[0.5], [-0.4]])]
    x = tf.constant([[0.5], [1.0]])

    def net(w1, b1, w2):
        return tf.tanh(x @ w1 + b1) @ w2

    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape() as inner:
            loss = tf.reduce_mean(net(*ws) ** 2)
        grads = inner.gradient(loss, ws)
        moved = [w - 0.1 * g for w, g in zip(ws, grads, strict=True)]
        after = tf.reduce_mean(net(*moved) ** 2)
    function = outer.as_function(after, ws)
    space = {"jax": jax, "jnp": jnp, "np": np, **function.constants}
    exec(function.code, space)
    at = [jnp.asarray(w) for w in ws]
    np.testing.assert_allclose(space["f"](at), after, rtol=1e-5)
    for found, wanted in zip(jax.grad(space["f"])(at), outer.gradient(after, ws), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4)
