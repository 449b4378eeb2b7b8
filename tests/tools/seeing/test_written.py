"""Programs with derivatives in their tapes, printed as a person writes them: the text, its length, and its numbers."""

import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf

LONGER = 1.4  # a printed text may have so many times the lines of the one by hand


def normal(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32)


# ---- a physics-informed network ----


def record_pinn(flat=False):
    w1, w2 = tf.Variable(normal(1, 8), name="w1"), tf.Variable(normal(8, 1), name="w2")
    x = tf.constant([[0.1], [0.5], [0.9]])

    def net(x):
        return tf.tanh(x @ w1) @ w2

    with tf.GradientTape() as outer:
        with tf.GradientTape() as second:
            second.watch(x)
            with tf.GradientTape() as first:
                first.watch(x)
                u = net(x)
            u_x = first.gradient(u, x)
        u_xx = second.gradient(u_x, x)
        loss = tf.reduce_mean((u_xx + u) ** 2)
    return outer.as_function(loss, [w1, w2], {"x": x}, flat), [w1, w2], {"x": x}


def write_pinn():
    def net(x, w1, w2):
        return jnp.tanh(x @ w1) @ w2

    def f(sources, x):
        w1, w2 = sources
        u = net(x, w1, w2)

        def u_x(x):
            return jax.grad(lambda x: jnp.sum(net(x, w1, w2)))(x)

        u_xx = jax.grad(lambda x: jnp.sum(u_x(x)))(x)
        return jnp.mean((u_xx + u) ** 2)

    return f


PINN = """\
def net(x, w1, w2):
    return jnp.tanh(x @ w1) @ w2


def f(sources, x):  # for x: float32[3,1]
    w1, w2 = sources
    u = net(x, w1, w2)

    def u_x(x):
        return jax.grad(lambda x: jnp.sum(net(x, w1, w2)))(x)

    u_xx = jax.grad(lambda x: jnp.sum(u_x(x)))(x)
    loss = jnp.mean((u_xx + u) ** 2)
    return loss
"""

# ---- Burgers' equation, in which the first derivative is used as well ----


def record_burgers(flat=False):
    w1, w2 = tf.Variable(normal(1, 8), name="w1"), tf.Variable(normal(8, 1), name="w2")
    x = tf.constant([[0.1], [0.5], [0.9]])

    def net(x):
        return tf.tanh(x @ w1) @ w2

    with tf.GradientTape() as outer:
        with tf.GradientTape() as second:
            second.watch(x)
            with tf.GradientTape() as first:
                first.watch(x)
                u = net(x)
            u_x = first.gradient(u, x)
        u_xx = second.gradient(u_x, x)
        loss = tf.reduce_mean((u * u_x - u_xx) ** 2)
    return outer.as_function(loss, [w1, w2], {"x": x}, flat), [w1, w2], {"x": x}


def write_burgers():
    def net(x, w1, w2):
        return jnp.tanh(x @ w1) @ w2

    def f(sources, x):
        w1, w2 = sources
        u = net(x, w1, w2)

        def slope(x):
            return jax.grad(lambda x: jnp.sum(net(x, w1, w2)))(x)

        u_x = slope(x)
        u_xx = jax.grad(lambda x: jnp.sum(slope(x)))(x)
        return jnp.mean((u * u_x - u_xx) ** 2)

    return f


BURGERS = """\
def net(x, w1, w2):
    return jnp.tanh(x @ w1) @ w2


def f(sources, x):  # for x: float32[3,1]
    w1, w2 = sources
    u = net(x, w1, w2)

    def u_x_fn(x):
        return jax.grad(lambda x: jnp.sum(net(x, w1, w2)))(x)

    u_x = u_x_fn(x)
    u_xx = jax.grad(lambda x: jnp.sum(u_x_fn(x)))(x)
    loss = jnp.mean((u * u_x - u_xx) ** 2)
    return loss
"""

# ---- Jacobians of each example in a batch ----


def record_jacobians(flat=False):
    w1, w2 = tf.Variable(normal(3, 8), name="w1"), tf.Variable(normal(8, 2), name="w2")
    x = tf.constant(normal(5, 3))

    def net(x):
        return tf.tanh(x @ w1) @ w2

    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = net(x)
        slopes = tape.batch_jacobian(y, x)
        penalty = tf.reduce_mean(slopes**2)
    return outer.as_function(penalty, [w1, w2], {"x": x}, flat), [w1, w2], {"x": x}


def write_jacobians():
    def net(x, w1, w2):
        return jnp.tanh(x @ w1) @ w2

    def f(sources, x):
        w1, w2 = sources
        slopes = jax.vmap(jax.jacrev(lambda x: net(x, w1, w2)))(x)
        return jnp.mean(slopes**2)

    return f


JACOBIANS = """\
def net(x, w1, w2):
    return jnp.tanh(x @ w1) @ w2


def f(sources, x):  # for x: float32[5,3]
    w1, w2 = sources
    slopes = jax.vmap(jax.jacrev(lambda x: net(x, w1, w2)))(x)
    penalty = jnp.mean(slopes**2)
    return penalty
"""

# ---- the penalty of a Wasserstein GAN ----


def record_penalty(flat=False):
    w1, w2 = tf.Variable(normal(2, 8), name="w1"), tf.Variable(normal(8, 1), name="w2")
    real, fake, eps = (tf.constant(x) for x in (normal(4, 2), normal(4, 2, seed=1), normal(4, 1) ** 2))

    def critic(x):
        hidden = tf.nn.leaky_relu(x @ w1)
        return hidden @ w2

    with tf.GradientTape() as tape:
        mixed = eps * real + (1.0 - eps) * fake
        with tf.GradientTape() as inner:
            inner.watch(mixed)
            score = critic(mixed)
        slope = inner.gradient(score, mixed)
        norm = tf.sqrt(tf.reduce_sum(slope**2, axis=1))
        penalty = tf.reduce_mean((norm - 1.0) ** 2)
        loss = tf.reduce_mean(critic(fake)) - tf.reduce_mean(critic(real)) + 10.0 * penalty
    return (
        tape.as_function(loss, [w1, w2], {"real": real, "fake": fake, "eps": eps}, flat),
        [w1, w2],
        {"real": real, "fake": fake, "eps": eps},
    )


def write_penalty():
    def critic(x, w1, w2):
        hidden = jax.nn.leaky_relu(x @ w1, 0.2)
        return hidden @ w2

    def f(sources, real, fake, eps):
        w1, w2 = sources
        mixed = eps * real + (1.0 - eps) * fake
        slope = jax.grad(lambda x: jnp.sum(critic(x, w1, w2)))(mixed)
        norm = jnp.sqrt(jnp.sum(slope**2, axis=1))
        penalty = jnp.mean((norm - 1.0) ** 2)
        return jnp.mean(critic(fake, w1, w2)) - jnp.mean(critic(real, w1, w2)) + 10.0 * penalty

    return f


PENALTY = """\
def critic(x, w1, w2):
    hidden = jax.nn.leaky_relu(x @ w1, 0.2)
    return hidden @ w2


# for real: float32[4,2], fake: float32[4,2], eps: float32[4,1]
def f(sources, real, fake, eps):
    w1, w2 = sources
    mixed = eps * real + (1.0 - eps) * fake
    slope = jax.grad(lambda mixed: jnp.sum(critic(mixed, w1, w2)))(mixed)
    norm = jnp.sqrt(jnp.sum(slope**2, axis=1))
    penalty = jnp.mean((norm - 1.0) ** 2)
    loss = (
        jnp.mean(critic(fake, w1, w2)) - jnp.mean(critic(real, w1, w2)) + 10.0 * penalty
    )
    return loss
"""

# ---- the inner step of MAML ----


def record_maml(flat=False):
    w, b = tf.Variable(normal(2, 1), name="w"), tf.Variable(normal(1), name="b")
    xs, ys, xq, yq = (tf.constant(normal(5, n, seed=i)) for i, n in enumerate((2, 1, 2, 1)))

    def model(x, w, b):
        return tf.tanh(x @ w + b)

    def loss_fn(x, y, w, b):
        return tf.reduce_mean((model(x, w, b) - y) ** 2)

    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            loss = loss_fn(xs, ys, w, b)
        dw, db = inner.gradient(loss, [w, b])
        query = loss_fn(xq, yq, w - 0.1 * dw, b - 0.1 * db)
    return (
        outer.as_function(query, [w, b], {"xs": xs, "ys": ys, "xq": xq, "yq": yq}, flat),
        [w, b],
        {"xs": xs, "ys": ys, "xq": xq, "yq": yq},
    )


def write_maml():
    def model(x, w, b):
        return jnp.tanh(x @ w + b)

    def loss_fn(x, y, w, b):
        return jnp.mean((model(x, w, b) - y) ** 2)

    def f(sources, xs, ys, xq, yq):
        w, b = sources
        dw, db = jax.grad(lambda w, b: loss_fn(xs, ys, w, b), argnums=(0, 1))(w, b)
        return loss_fn(xq, yq, w - 0.1 * dw, b - 0.1 * db)

    return f


MAML = """\
def model(x, w, b):
    return jnp.tanh(x @ w + b)


def loss_fn(x, y, w, b):
    return jnp.mean((model(x, w, b) - y) ** 2)


# for xs: float32[5,2], ys: float32[5,1], xq: float32[5,2], yq: float32[5,1]
def f(sources, xs, ys, xq, yq):
    w, b = sources
    dw, db = jax.grad(lambda w, b: loss_fn(xs, ys, w, b), argnums=(0, 1))(w, b)
    query = loss_fn(xq, yq, w - 0.1 * dw, b - 0.1 * db)
    return query
"""

# ---- a product of a Hessian with a vector ----


def record_product(flat=False):
    x, v = tf.constant([1.0, 2.0, 3.0]), tf.constant([1.0, 0.0, -1.0])

    def energy(x):
        return tf.reduce_sum(tf.sin(x) * x**2)

    with tf.GradientTape() as tape:
        tape.watch(x)
        with tf.autodiff.ForwardAccumulator(x, v) as accumulator:
            with tf.GradientTape() as inner:
                inner.watch(x)
                e = energy(x)
            gradient = inner.gradient(e, x)
        product = accumulator.jvp(gradient)
    return tape.as_function(product, x, {"v": v}, flat), x, {"v": v}


def write_product():
    def energy(x):
        return jnp.sum(jnp.sin(x) * x**2)

    def f(x, v):
        return jax.jvp(jax.grad(energy), (x,), (v,))[1]

    return f


PRODUCT = """\
def energy(x):
    return jnp.sum(jnp.sin(x) * x**2)


def f(x, v):  # for v: float32[3]
    product = jax.jvp(jax.grad(energy), (x,), (v,))[1]
    return product
"""


def record_product_by_tapes(flat=False):
    x, v = tf.constant([1.0, 2.0, 3.0]), tf.constant([1.0, 0.0, -1.0])

    def energy(x):
        return tf.reduce_sum(tf.sin(x) * x**2)

    with tf.GradientTape() as tape:
        tape.watch(x)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                e = energy(x)
            gradient = inner.gradient(e, x)
        product = outer.gradient(gradient, x, output_gradients=v)
    return tape.as_function(product, x, {"v": v}, flat), x, {"v": v}


BY_TAPES = PRODUCT.replace(
    "jax.jvp(jax.grad(energy), (x,), (v,))[1]", "jax.grad(lambda x: jnp.vdot(jax.grad(energy)(x), v))(x)"
)

# ---- integrated gradients ----


def record_attributions(flat=False):
    image, base = tf.constant(normal(1, 4)), tf.constant(normal(1, 4, seed=1))
    w = tf.constant(normal(4, 1, seed=2))
    alphas = tf.constant(np.linspace(0, 1, 6, dtype=np.float32)[:, None])

    def model(x):
        return tf.sigmoid(tf.tanh(x) @ w)

    with tf.GradientTape() as around:
        around.watch(image)
        path = base + alphas * (image - base)
        with tf.GradientTape() as tape:
            tape.watch(path)
            probability = model(path)
        gradients = tape.gradient(probability, path)
        average = tf.reduce_mean((gradients[:-1] + gradients[1:]) / 2.0, axis=0)
        attributions = (image - base) * average
    return (
        around.as_function(attributions, image, {"base": base, "alphas": alphas, "w": w}, flat),
        image,
        {"base": base, "alphas": alphas, "w": w},
    )


def write_attributions():
    def model(x, w):
        return jax.nn.sigmoid(jnp.tanh(x) @ w)

    def f(image, base, alphas, w):
        path = base + alphas * (image - base)
        gradients = jax.grad(lambda x: jnp.sum(model(x, w)))(path)
        average = jnp.mean((gradients[:-1] + gradients[1:]) / 2.0, axis=0)
        return (image - base) * average

    return f


ATTRIBUTIONS = """\
def model(x, w):
    return jax.nn.sigmoid(jnp.tanh(x) @ w)


# for base: float32[1,4], alphas: float32[6,1], w: float32[4,1]
def f(image, base, alphas, w):
    path = base + alphas * (image - base)
    gradients = jax.grad(lambda path: jnp.sum(model(path, w)))(path)
    average = jnp.mean((gradients[:-1] + gradients[1:]) / 2.0, axis=0)
    attributions = (image - base) * average
    return attributions
"""

# ---- a two-layer network with its update ----


def record_update(flat=False):
    params = {
        "w1": tf.Variable(normal(3, 8)),
        "b1": tf.Variable(normal(8)),
        "w2": tf.Variable(normal(8, 1)),
        "b2": tf.Variable(normal(1)),
    }
    x, y = tf.constant(normal(5, 3)), tf.constant(normal(5, 1))

    def mlp(x):
        hidden = tf.nn.relu(x @ params["w1"] + params["b1"])
        return hidden @ params["w2"] + params["b2"]

    with tf.GradientTape() as around:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((mlp(x) - y) ** 2)
        grads = tape.gradient(loss, params)
        updated = {name: params[name] - 0.1 * grads[name] for name in params}
    return around.as_function((loss, updated), params, {"x": x, "y": y}, flat), params, {"x": x, "y": y}


def write_update():
    def mlp(params, x):
        hidden = jax.nn.relu(x @ params["w1"] + params["b1"])
        return hidden @ params["w2"] + params["b2"]

    def f(params, x, y):
        def loss_fn(params):
            return jnp.mean((mlp(params, x) - y) ** 2)

        loss, grads = jax.value_and_grad(loss_fn)(params)
        return loss, jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    return f


UPDATE = """\
def mlp(x, params):
    hidden = jax.nn.relu(x @ params["w1"] + params["b1"])
    return hidden @ params["w2"] + params["b2"]


def f(params, x, y):  # for x: float32[5,3], y: float32[5,1]
    def loss_fn(params):
        return jnp.mean((mlp(x, params) - y) ** 2)

    loss, grads = jax.value_and_grad(loss_fn)(params)
    updated = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
    return loss, updated
"""

# ---- a step in a `tf.function`, with a gradient of the user's ----


def record_compiled(flat=False):
    w1, w2 = tf.Variable(normal(1, 8), name="w1"), tf.Variable(normal(8, 1), name="w2")
    x = tf.constant([[0.1], [0.5], [0.9]])

    def net(x):
        return tf.tanh(x @ w1) @ w2

    @tf.function
    def residual(x):
        print("tracing")
        with tf.GradientTape() as second:
            second.watch(x)
            with tf.GradientTape() as first:
                first.watch(x)
                u = net(x)
            u_x = first.gradient(u, x)
        return second.gradient(u_x, x) + u

    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(residual(x) ** 2)
    return tape.as_function(loss, [w1, w2], {"x": x}, flat), [w1, w2], {"x": x}


def write_compiled():
    def net(x, w1, w2):
        return jnp.tanh(x @ w1) @ w2

    def residual(x, w1, w2):
        def slope(x):
            return jax.grad(lambda x: jnp.sum(net(x, w1, w2)))(x)

        return jax.grad(lambda x: jnp.sum(slope(x)))(x) + net(x, w1, w2)

    def f(sources, x):
        w1, w2 = sources
        return jnp.mean(residual(x, w1, w2) ** 2)

    return f


COMPILED = """\
def net(x, w1, w2):
    return jnp.tanh(x @ w1) @ w2


def residual(x, w1, w2):
    u = net(x, w1, w2)

    def u_x(x):
        return jax.grad(lambda x: jnp.sum(net(x, w1, w2)))(x)

    return jax.grad(lambda x: jnp.sum(u_x(x)))(x) + u


def f(sources, x):  # for x: float32[3,1]
    w1, w2 = sources
    loss = jnp.mean(residual(x, w1, w2) ** 2)
    return loss
"""


def record_own_gradient(flat=False):
    w1, w2 = tf.Variable(normal(1, 8), name="w1"), tf.Variable(normal(8, 1), name="w2")
    x = tf.constant([[0.1], [0.5], [0.9]])

    def net(x):
        return tf.tanh(x @ w1) @ w2

    @tf.custom_gradient
    def swell(x):
        e = tf.exp(x)
        return x * e, lambda dy: dy * tf.sin(e)

    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            tape.watch(x)
            l = swell(net(x))  # noqa: E741
            l = tf.reduce_sum(l**2)  # noqa: E741
        g = tape.gradient(l, x)
        loss = tf.reduce_mean(g**2)
    return outer.as_function(loss, [w1, w2], {"x": x}, flat), [w1, w2], {"x": x}


def write_own_gradient():
    @jax.custom_vjp
    def swell(x):
        return x * jnp.exp(x)

    def swell_fwd(x):
        return swell(x), jnp.exp(x)

    def swell_bwd(e, dy):
        return (dy * jnp.sin(e),)

    swell.defvjp(swell_fwd, swell_bwd)

    def net(x, w1, w2):
        return jnp.tanh(x @ w1) @ w2

    def f(sources, x):
        w1, w2 = sources
        g = jax.grad(lambda x: jnp.sum(swell(net(x, w1, w2)) ** 2))(x)
        return jnp.mean(g**2)

    return f


OWN_GRADIENT = """\
@jax.custom_vjp
def swell(x):
    e = jnp.exp(x)
    return x * e


def swell_fwd(x):
    value = swell(x)
    e = jnp.exp(x)
    return value, (e,)


def swell_bwd(residuals, dy):
    (a,) = residuals
    return (dy * jnp.sin(a),)


swell.defvjp(swell_fwd, swell_bwd)


def net(x, w1, w2):
    return jnp.tanh(x @ w1) @ w2


def f(sources, x):  # for x: float32[3,1]
    w1, w2 = sources
    g = jax.grad(lambda x: jnp.sum(swell(net(x, w1, w2)) ** 2))(x)
    loss = jnp.mean(g**2)
    return loss
"""

# ---- Helmholtz' equation in two coordinates, of a list of layers ----


def record_helmholtz(flat=False):
    params = [tuple(map(jnp.asarray, (normal(m, n), normal(n)))) for m, n in ((2, 8), (8, 1))]
    x, y = jnp.asarray(normal(6)), jnp.asarray(normal(6, seed=1))

    def net(params, x, y):
        h = jnp.stack([x, y], axis=1)
        for w, b in params[:-1]:
            h = jnp.tanh(h @ w + b)
        w, b = params[-1]
        return (h @ w + b)[:, 0]

    with tf.GradientTape() as tape:
        tape.watch(params)
        with tf.GradientTape(persistent=True) as second:
            second.watch([x, y])
            with tf.GradientTape() as first:
                first.watch([x, y])
                u = net(params, x, y)
            u_x, u_y = first.gradient(u, [x, y])
        u_xx = second.gradient(u_x, x)
        u_yy = second.gradient(u_y, y)
        loss = jnp.mean((u_xx + u_yy + 4.0 * u - jnp.sin(x) * jnp.sin(y)) ** 2)
    return tape.as_function(loss, params, {"x": x, "y": y}, flat), params, {"x": x, "y": y}


def write_helmholtz():
    def net(params, x, y):
        h = jnp.stack([x, y], axis=1)
        h = jnp.tanh(h @ params[0][0] + params[0][1])
        return (h @ params[1][0] + params[1][1])[:, 0]

    def f(params, x, y):
        u = net(params, x, y)

        def u_x(x):
            return jax.grad(lambda x: jnp.sum(net(params, x, y)))(x)

        u_xx = jax.grad(lambda x: jnp.sum(u_x(x)))(x)

        def u_y(y):
            return jax.grad(lambda y: jnp.sum(net(params, x, y)))(y)

        u_yy = jax.grad(lambda y: jnp.sum(u_y(y)))(y)
        return jnp.mean((u_xx + u_yy + 4.0 * u - jnp.sin(x) * jnp.sin(y)) ** 2)

    return f


HELMHOLTZ = """\
def net(params, x, y):
    h = jnp.stack([x, y], axis=1)
    h = jnp.tanh(h @ params[0][0] + params[0][1])
    return (h @ params[1][0] + params[1][1])[:, 0]


def f(params, x, y):  # for x: float32[6], y: float32[6]
    u = net(params, x, y)

    def u_x(x):
        return jax.grad(lambda x: jnp.sum(net(params, x, y)))(x)

    u_xx = jax.grad(lambda x: jnp.sum(u_x(x)))(x)

    def u_y(y):
        return jax.grad(lambda y: jnp.sum(net(params, x, y)))(y)

    u_yy = jax.grad(lambda y: jnp.sum(u_y(y)))(y)
    loss = jnp.mean((u_xx + u_yy + 4.0 * u - jnp.sin(x) * jnp.sin(y)) ** 2)
    return loss
"""

# ---- the slopes of a classifier's cross entropy, in which parts have no derivative ----


def record_saliency(flat=False):
    w1, w2 = jnp.asarray(normal(5, 6)), jnp.asarray(normal(6, 3))
    x, labels = jnp.asarray(normal(4, 5)), jnp.array([0, 1, 2, 1])

    def classify(x):
        h = jax.nn.gelu(x @ w1)
        return jax.nn.softmax(h @ w2)

    def cross_entropy(p, labels):
        return -jnp.mean(jnp.log(jnp.take_along_axis(p, labels[:, None], axis=1)))

    with tf.GradientTape() as around:
        around.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = cross_entropy(classify(x), labels)
        slopes = tape.gradient(loss, x)
        saliency = jnp.max(jnp.abs(slopes), axis=1)
    arguments = {"labels": labels, "w1": w1, "w2": w2}
    return around.as_function(saliency, x, arguments, flat), x, arguments


def write_saliency():
    def classify(x, w1, w2):
        h = jax.nn.gelu(x @ w1)
        return jax.nn.softmax(h @ w2)

    def cross_entropy(p, labels):
        return -jnp.mean(jnp.log(jnp.take_along_axis(p, labels[:, None], axis=1)))

    def f(x, labels, w1, w2):
        slopes = jax.grad(lambda x: cross_entropy(classify(x, w1, w2), labels))(x)
        return jnp.max(jnp.abs(slopes), axis=1)

    return f


SALIENCY = """\
def classify(x, w1, w2):
    h = jax.nn.gelu(x @ w1)
    return jax.nn.softmax(h @ w2)


def cross_entropy(p, labels):
    return -jnp.mean(jnp.log(jnp.take_along_axis(p, labels[:, None], axis=1)))


def f(x, labels, w1, w2):  # for labels: int32[4], w1: float32[5,6], w2: float32[6,3]
    slopes = jax.grad(lambda x: cross_entropy(classify(x, w1, w2), labels))(x)
    saliency = jnp.max(jnp.abs(slopes), axis=1)
    return saliency
"""

PROGRAMS = {
    "a physics-informed network": (record_pinn, write_pinn, PINN),
    "Burgers' equation": (record_burgers, write_burgers, BURGERS),
    "Jacobians of a batch": (record_jacobians, write_jacobians, JACOBIANS),
    "the penalty of a GAN": (record_penalty, write_penalty, PENALTY),
    "an inner step of MAML": (record_maml, write_maml, MAML),
    "a Hessian with a vector": (record_product, write_product, PRODUCT),
    "a Hessian with a vector, by tapes": (record_product_by_tapes, write_product, BY_TAPES),
    "integrated gradients": (record_attributions, write_attributions, ATTRIBUTIONS),
    "a step in a function": (record_compiled, write_compiled, COMPILED),
    "a gradient of the user's": (record_own_gradient, write_own_gradient, OWN_GRADIENT),
    "Helmholtz' equation": (record_helmholtz, write_helmholtz, HELMHOLTZ),
    "parts without a derivative": (record_saliency, write_saliency, SALIENCY),
    "a network and its update": (record_update, write_update, UPDATE),
}


def array(x):
    return jnp.asarray(x.numpy() if is_variable(x) else x)


def total(f):
    return lambda *args: sum(jnp.sum(jnp.sin(y)) for y in jax.tree.leaves(f(*args)))


def pasted(function):
    space = {"jax": jax, "jnp": jnp, "np": np, **function.constants}
    exec(compile(function.code, "<pasted>", "exec"), space)
    return space["f"]


def is_variable(x):
    return isinstance(x, (tf.Variable, tf.Tensor))


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("times", [1, 3], ids=["at first", "compiled"])
def test_what_is_printed_is_what_a_person_writes(name, times):
    record, write, text = PROGRAMS[name]
    for _ in range(times):
        function, sources, arguments = record()
    assert function.code == text
    by_hand = inspect.getsource(write).splitlines()[1:-1]
    printed = [line for line in function.code.splitlines() if line]
    assert len(printed) <= LONGER * len([line for line in by_hand if line.strip()])
    args = [jax.tree.map(array, sources, is_leaf=is_variable), *map(array, arguments.values())]
    wanted, found = (jax.value_and_grad(total(f))(*args) for f in (write(), pasted(function)))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), found, wanted)
    replayed = jax.value_and_grad(total(function))(*args)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), found, replayed)


ROWS = {  # what is done with a batch, and how its Jacobian is written
    "a row at a time": (
        lambda h: h * tf.reduce_sum(h, axis=1, keepdims=True),
        "jax.vmap(jax.jacrev(lambda x: net(x[None], w)[0]))(x)",
    ),
    "with the mean of all": (
        lambda h: h * tf.reduce_mean(h, axis=0, keepdims=True),
        "jnp.moveaxis(jax.jacrev(lambda x: jnp.sum(net(x, w), axis=0))(x), 1, 0)",
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_batch_jacobian_is_of_each_example_where_that_is_what_it_is(name):
    act, text = ROWS[name]
    w, x = tf.Variable(normal(3, 2), name="w"), tf.constant(normal(5, 3))

    def net(x):
        h = tf.tanh(x @ w)
        return act(h)

    with tf.GradientTape(persistent=True) as outer:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = net(x)
        slopes = tape.batch_jacobian(y, x)
    function = outer.as_function(slopes, w, {"x": x})
    assert f"slopes = {text}\n" in function.code
    np.testing.assert_allclose(pasted(function)(array(w), array(x)), slopes.numpy(), rtol=1e-5, atol=1e-6)
    other = array(x) * 2.0 - 1.0
    np.testing.assert_allclose(pasted(function)(array(w), other), function(w, other), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("act", [jax.nn.softmax, jax.nn.logsumexp])
def test_what_a_derivative_does_not_go_through_is_computed_anew(act, rows):
    """The largest logit, which is subtracted: that of the recorded ones would overflow at others."""
    w, x = tf.Variable(normal(4, 3), name="w"), tf.constant(normal(rows, 4))

    def model(x):
        return act(x @ w)

    with tf.GradientTape() as around:
        with tf.GradientTape() as tape:
            tape.watch(x)
            p = tf.reduce_sum(model(x) ** 2)
        slopes = tape.gradient(p, x)
    function = around.as_function(slopes, w, {"x": x})
    assert f"jax.nn.{act.__name__}(x @ w)" in function.code and "lambda x: jnp.sum(model(x, w) ** 2)" in function.code
    large = array(x) * 300.0
    wanted = jax.grad(lambda x: jnp.sum(act(x @ array(w)) ** 2))(large)
    for found in (pasted(function)(array(w), large), function(array(w), large)):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)


def loss_of(params, x):
    return jnp.sum(jnp.tanh(x @ params["w"] + params["b"]) ** 2)


def adapted(params, x):
    with tf.GradientTape() as tape:
        tape.watch(params)
        loss = loss_of(params, x)
    grads = tape.gradient(loss, params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)


def shrunk(params):
    return jax.tree.map(lambda p: p * 0.5 - p**3, params)


def once(params, x):
    return loss_of(adapted(params, x), x)


def twice(params, x):
    for _ in range(2):
        params = adapted(params, x)
    return loss_of(params, x)


def without_a_loop(params, x):
    return loss_of(shrunk(params), x)


def in_a_round(params, x):
    total = 0.0
    for _ in range(2):
        params = shrunk(params)
        total += loss_of(params, x)
    return total


def of_each(params, x):
    for name in params:
        params = params | {name: shrunk(params[name])}
    return loss_of(params, x)


MAPPED = [(once, 1), (twice, 2), (without_a_loop, 1), (in_a_round, 2), (of_each, 1)]


@pytest.mark.parametrize(("program", "calls"), MAPPED, ids=lambda each: getattr(each, "__name__", ""))
def test_a_function_that_a_library_calls_for_each_leaf_is_part_of_one_call(program, calls):
    """``jax.tree.map(lambda p, g: ...)``: nothing says that the lambda's instruction was not run again by another call."""
    params, x = {"w": normal(3, 2), "b": normal(2)}, jnp.asarray(normal(4, 3))
    params = jax.tree.map(jnp.asarray, params)
    with tf.GradientTape() as tape:
        tape.watch(params)
        loss = program(params, x)
    function = tape.as_function(loss, params, {"x": x})
    text = function.code.partition("def f(")[2]
    rounds = 2 if "for _ in range(2):" in text else 1
    assert rounds * len(re.findall(r"\b(adapted|shrunk)(_\d)?[(,]", text)) == calls, function.code
    for scale in (1.0, 0.7):
        changed = jax.tree.map(lambda p, scale=scale: p * scale, params)
        expected, found = function(changed, x), jax.value_and_grad(pasted(function))(changed, x)
        np.testing.assert_allclose(found[0], expected, rtol=1e-5)
        for each, other in zip(*map(jax.tree.leaves, (found[1], jax.grad(function)(changed, x))), strict=True):
            np.testing.assert_allclose(each, other, rtol=1e-4, atol=1e-6)


def test_what_a_tape_was_stopped_at_stays_outside_of_its_derivative():
    w, x = tf.Variable(normal(4, 3), name="w"), tf.constant(normal(2, 4))
    with tf.GradientTape() as around:
        with tf.GradientTape() as tape:
            tape.watch(x)
            h = tf.tanh(x @ w)
            with tape.stop_recording():
                scale = tf.reduce_sum(h**2)
            y = tf.reduce_sum(h * scale)
        slopes = tape.gradient(y, x)
    function = around.as_function(slopes, w, {"x": x})
    np.testing.assert_allclose(pasted(function)(array(w), array(x)), slopes.numpy(), rtol=1e-5)
    other = array(x) * 2.0 - 1.0
    np.testing.assert_allclose(pasted(function)(array(w), other), function(array(w), other), rtol=1e-4)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_formatter_leaves_it_as_it_is(name):
    ruff = shutil.which("ruff", path=str(Path(sys.executable).parent)) or shutil.which("ruff")
    if ruff is None:
        pytest.skip("ruff is not installed")
    for flat in (False, True):
        code = PROGRAMS[name][0](flat)[0].code
        command = [ruff, "format", "--isolated", "--diff", "-"]
        assert subprocess.run(command, input=code, capture_output=True, text=True, check=False).stdout == "", code
