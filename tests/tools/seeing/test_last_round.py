"""Rounds of a loop of which a part is read by nobody are rounds like the others, if the same operations ran in them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax

WAYS = {"plain": lambda f: f, "jit": jax.jit, "function": tapejax.function}


def normal(seed, *shape):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape) * 0.5, jnp.float32)


def kalman(A, H, Q, R, zs):
    x = jnp.zeros(2)
    P = jnp.eye(2)
    xs = []
    for t in range(5):
        x = A @ x
        P = A @ P @ A.T + Q
        S = H @ P @ H.T + R
        K = P @ H.T @ jnp.linalg.inv(S)
        x = x + K @ (zs[t] - H @ x)
        P = P - K @ H @ P
        xs.append(x)
    return jnp.stack(xs)


KALMAN = """\
# for H: float32[1,2], Q: float32[2,2], R: float32[1,1], zs: float32[5,1]
def f(A, H, Q, R, zs):
    x = jnp.zeros(2)
    P = jnp.eye(2)
    xs = []
    for t in range(5):
        x = A @ x
        P = A @ P @ A.T + Q
        S = H @ P @ H.T + R
        K = P @ H.T @ jnp.linalg.inv(S)
        x = x + K @ (zs[t] - H @ x)
        P = P - K @ H @ P
        xs.append(x)
    return jnp.stack(xs)
"""


def k_means(points, centers):
    for _ in range(3):
        d = jnp.sum((points[:, None] - centers) ** 2, -1)
        w = jax.nn.softmax(-d)
        centers = w.T @ points / jnp.sum(w, 0)[:, None]
    return jnp.sum(d * w)


K_MEANS = """\
def f(points, centers):  # for centers: float32[3,2]
    for _ in range(3):
        d = jnp.sum((points[:, None] - centers) ** 2, -1)
        w = jax.nn.softmax(-d)
        centers = w.T @ points / jnp.sum(w, 0)[:, None]
    return jnp.sum(d * w)
"""


def batches(w, data):
    m = jnp.zeros(3)
    total = 0.0
    for batch in data:
        h = jnp.tanh(batch["x"] @ w + m)
        loss = jnp.mean((h - batch["y"]) ** 2)
        m = 0.9 * m + 0.1 * jnp.mean(h, 0)
        total = total + loss
    return total


BATCHES = """\
def f(w, data):
    m = jnp.zeros(3)
    total = 0.0
    for batch in data:
        h = jnp.tanh(batch["x"] @ w + m)
        loss = jnp.mean((h - batch["y"]) ** 2)
        m = 0.9 * m + 0.1 * jnp.mean(h, 0)
        total = total + loss
    return total
"""


def last_loss(w, x, y):
    for _ in range(4):
        loss = jnp.mean((x @ w - y) ** 2)
        w = w - 0.1 * x.T @ (x @ w - y)
    return loss


LAST_LOSS = """\
def f(w, x, y):  # for x: float32[6,3], y: float32[6]
    for _ in range(4):
        loss = jnp.mean((x @ w - y) ** 2)
        w = w - 0.1 * x.T @ (x @ w - y)
    return loss
"""


def step(x, P, z, Q):
    P = P + Q
    x = x + P @ (z - x)
    P = P - P @ P
    return x, P


def called(Q, zs):
    x = jnp.zeros(2)
    P = jnp.eye(2)
    for t in range(5):
        x, P = step(x, P, zs[t], Q)
    return x


CALLED = """\
def step(x, P, z, Q):
    P = P + Q
    x = x + P @ (z - x)
    P = P - P @ P
    return x, P


def f(Q, zs):  # for zs: float32[5,2]
    x = jnp.zeros(2)
    P = jnp.eye(2)
    for t in range(5):
        x, P = step(x, P, zs[t], Q)
    return x
"""


@jax.jit
def widened(P, Q):
    return P @ P * 0.1 + Q


def jitted(Q, zs):
    x = jnp.zeros(2)
    P = jnp.eye(2)
    for t in range(5):
        x = x + P @ (zs[t] - x)
        P = widened(P, Q)
    return x


JITTED = """\
def widened(P, Q):
    return P @ P * 0.1 + Q


def f(Q, zs):  # for zs: float32[5,2]
    x = jnp.zeros(2)
    P = jnp.eye(2)
    for t in range(5):
        x = x + P @ (zs[t] - x)
        P = widened(P, Q)
    return x
"""


def nested(w, x):
    total = 0.0
    for _ in range(3):
        h = x * w
        m = jnp.ones(3)
        for _ in range(4):
            h = jnp.tanh(h + m)
            m = m * jnp.sin(h)
        total = total + jnp.sum(h)
        w = w * 0.9
    return total


NESTED = """\
def f(w, x):  # for x: float32[3]
    total = 0.0
    for _ in range(3):
        h = x * w
        m = jnp.ones(3)
        for _ in range(4):
            h = jnp.tanh(h + m)
            m = m * jnp.sin(h)
        total = total + jnp.sum(h)
        w = w * 0.9
    return total
"""


def last_layer(weights, x):
    for i in range(3):
        x = x @ weights[i]
        if i < 2:
            x = jax.nn.relu(x)
    return jnp.sum(x)


LAST_LAYER = """\
def f(weights, x):  # for x: float32[2,3]
    for i in range(2):
        x = x @ weights[i]
        x = jax.nn.relu(x)
    x = x @ weights[2]
    return jnp.sum(x)
"""


def stopped(x):
    """Of six rounds three are read."""
    for i in range(6):
        x = jnp.sin(x) * 2.0
        if i == 2:
            y = x
    return y


STOPPED = """\
def f(x):
    for _ in range(3):
        x = jnp.sin(x) * 2.0
    return x
"""

DATA = [{"x": normal(i, 8, 4), "y": normal(9 + i, 8, 3)} for i in range(4)]
FILTER = (jnp.array([[1.0, 0.1], [0.0, 1.0]]), jnp.array([[1.0, 0.0]]), 0.01 * jnp.eye(2), 0.1 * jnp.eye(1))
PROGRAMS = {
    "kalman": (kalman, (*FILTER, normal(0, 5, 1)), KALMAN),
    "k_means": (k_means, (normal(1, 20, 2), normal(2, 3, 2)), K_MEANS),
    "batches": (batches, (normal(3, 4, 3), DATA), BATCHES),
    "last_loss": (last_loss, (normal(4, 3), normal(5, 6, 3), normal(6, 6)), LAST_LOSS),
    "called": (called, (0.1 * jnp.eye(2), normal(7, 5, 2)), CALLED),
    "jitted": (jitted, (0.1 * jnp.eye(2), normal(7, 5, 2)), JITTED),
    "nested": (nested, (normal(8, 3), normal(9, 3)), NESTED),
    "last_layer": (last_layer, (normal(10, 3, 3, 3), normal(11, 2, 3)), LAST_LAYER),
    "stopped": (stopped, (normal(12, 3),), STOPPED),
}


def operations(function, args):
    """How often each operation is in the program, of which what nobody reads is taken away."""
    jaxpr = jax.make_jaxpr(function)(*args).jaxpr
    read, kept = {id(v) for v in jaxpr.outvars}, []
    for eqn in reversed(jaxpr.eqns):
        if any(id(v) in read for v in eqn.outvars):
            read |= {id(v) for v in eqn.invars}
            kept.append(f"{eqn.primitive} {[str(v.aval) for v in (*eqn.invars, *eqn.outvars)]}")
    return sorted(kept)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_part_of_a_round_that_nobody_reads(name, way):
    function, args, text = PROGRAMS[name]
    printed = tapejax.code(WAYS[way](function), *args)
    assert printed.code == text, printed.code
    space = {"jax": jax, "jnp": jnp, "np": np, **printed.constants}
    exec(printed.code, space)
    for scale in (1.0, 0.7):
        changed = jax.tree.map(lambda x, scale=scale: x * scale, args)
        both = (jax.value_and_grad(lambda args, f=f: jnp.sum(f(*args) ** 2))(changed) for f in (space["f"], function))
        jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=2e-5, atol=1e-6), *both)
    if name != "jitted":  # whose program has calls
        assert operations(space["f"], args) == operations(function, args)


def test_what_is_added_is_no_result():
    """Rounds that stay lines of their own have nothing in them that nobody reads."""

    def uneven(w, xs):
        for i, x in enumerate(xs):
            w = jnp.tanh(w + x)
            unread = jnp.sin(w) * (i + 1 if i < 2 else x)
            total = jnp.sum(w) if i == 2 else jnp.sum(unread)
        return total

    printed = tapejax.code(uneven, normal(13, 4), normal(14, 3, 4))
    assert "sin" not in printed.code, printed.code


def descent(w, x, y):
    for _ in range(3):
        with tapejax.GradientTape() as tape:
            tape.watch(w)
            loss = tapejax.reduce_mean((x * w - y) ** 2)
        dw = tape.gradient(loss, w)
        w = w - 0.1 * dw
    return w, loss


DESCENT = """\
def f(w, x, y):  # for x: float32[3], y: float32[3]
    for _ in range(3):
        loss, dw = jax.value_and_grad(lambda w: jnp.mean((x * w - y) ** 2))(w)
        w = w - 0.1 * dw
    return w, loss
"""


@pytest.mark.parametrize("way", ["plain", "function"])
def test_the_loss_of_the_last_round_is_read(way):
    args = normal(15, 3), normal(16, 3), normal(17, 3)
    printed = tapejax.code(WAYS[way](descent), *args)
    assert printed.code == DESCENT, printed.code
    space = {"jax": jax, "jnp": jnp}
    exec(printed.code, space)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, 1e-5), space["f"](*args), descent(*args))
