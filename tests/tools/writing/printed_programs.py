"""Programs as users write them, from which the tests of printed code take what it must read like.

Each is a function and the arrays that it is called with. Data is in the arguments, hyperparameters are Python numbers.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp


def collection():
    """Programs by their names, with the arrays that each is called with; and the decorator that adds one."""
    programs = {}

    def program(*arrays):
        def add(function):
            programs[function.__name__] = function, arrays
            return function

        return add

    return programs, program


PROGRAMS, program = collection()


def normal(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def uniform(seed, *shape):
    return np.random.default_rng(seed).uniform(0.1, 1.0, size=shape).astype(np.float32)


def layers(seed, *sizes):
    return [
        {"w": normal(seed + i, n, m) / np.float32(np.sqrt(n)), "b": normal(seed + i + 50, m) * np.float32(0.1)}
        for i, (n, m) in enumerate(zip(sizes, sizes[1:], strict=False))
    ]


LABELS = np.random.default_rng(0).integers(0, 3, 16)


# ---- networks --------------------------------------------------------------------------------------------------------


@program(layers(1, 4, 8, 3), normal(2, 16, 4))
def classifier(params, images):
    labels = jnp.asarray(LABELS)
    hidden, last = params
    h = jax.nn.relu(images @ hidden["w"] + hidden["b"])
    logits = h @ last["w"] + last["b"]
    logp = jax.nn.log_softmax(logits)
    picked = logp[jnp.arange(16), labels]
    return -jnp.mean(picked)


@program({"wx": normal(3, 3, 5), "wh": normal(4, 5, 5) * np.float32(0.3), "b": normal(5, 5)}, normal(6, 6, 2, 3))
def recurrent(params, sequence):
    def cell(state, x):
        return jnp.tanh(x @ params["wx"] + state @ params["wh"] + params["b"])

    state = jnp.zeros((2, 5))
    for x in sequence:
        state = cell(state, x)
    return jnp.sum(state**2)


@program(normal(7, 3), normal(8, 12, 3), normal(9, 12))
def mini_batches(w, inputs, targets):
    rate = 0.1

    def loss(w, x, y):
        return jnp.mean((x @ w - y) ** 2)

    for start in range(0, 12, 4):
        x, y = inputs[start : start + 4], targets[start : start + 4]
        g = jax.grad(loss)(w, x, y)
        w = w - rate * g
    return loss(w, inputs, targets)


def square_error(w, x, y):
    residual = x @ w - y
    return jnp.mean(residual**2)


@program(normal(7, 3), normal(8, 12, 3), normal(9, 12))
def descent(w, x, y):
    losses = []
    for _ in range(3):
        loss, g = jax.value_and_grad(square_error)(w, x, y)
        losses.append(loss)
        w = w - 0.1 * g
    return w, jnp.stack(losses)


@program(normal(10, 3, 4), normal(11, 4, 4), normal(12, 4, 4), normal(13, 4, 4))
def attention(tokens, wq, wk, wv):
    q, k, v = tokens @ wq, tokens @ wk, tokens @ wv
    scores = q @ k.T / jnp.sqrt(q.shape[-1])
    mask = jnp.tril(jnp.ones((3, 3), bool))
    scores = jnp.where(mask, scores, -1e9)
    weights = jax.nn.softmax(scores, axis=-1)
    return jnp.sum((weights @ v) ** 2)


def critic(params, x):
    h = jnp.tanh(params["w"] @ x + params["b"])
    return params["out"] @ h


CRITIC = {"w": normal(14, 5, 2), "b": normal(15, 5), "out": normal(16, 5)}


@program(CRITIC, normal(17, 7, 2), normal(18, 7, 2))
def gradient_penalty(params, real, fake):
    mixed = 0.3 * real + 0.7 * fake
    slopes = jax.vmap(jax.grad(critic, argnums=1), in_axes=(None, 0))(params, mixed)
    norms = jnp.sqrt(jnp.sum(slopes**2, axis=1) + 1e-8)
    penalty = jnp.mean((norms - 1.0) ** 2)
    score = jnp.mean(jax.vmap(lambda x: critic(params, x))(fake))
    return score + 10.0 * penalty


@program(layers(20, 1, 6, 1), normal(21, 5, 1), normal(22, 5, 1), normal(23, 5, 1), normal(24, 5, 1))
def maml(params, support_x, support_y, query_x, query_y):
    def net(params, x):
        first, last = params
        h = jnp.tanh(x @ first["w"] + first["b"])
        return h @ last["w"] + last["b"]

    def loss(params, x, y):
        return jnp.mean((net(params, x) - y) ** 2)

    grads = jax.grad(loss)(params, support_x, support_y)
    adapted = jax.tree.map(lambda p, g: p - 0.05 * g, params, grads)
    return loss(adapted, query_x, query_y)


@program(layers(25, 2, 6, 1), uniform(26, 9, 2), uniform(27, 4, 2))
def pinn(params, inside, border):
    def net(params, point):
        h = point
        for layer in params[:-1]:
            h = jnp.tanh(h @ layer["w"] + layer["b"])
        return (h @ params[-1]["w"] + params[-1]["b"])[0]

    def residual(point):
        hessian = jax.hessian(net, argnums=1)(params, point)
        return jnp.trace(hessian) + jnp.sin(jnp.pi * point[0])

    inner = jnp.mean(jax.vmap(residual)(inside) ** 2)
    outer = jnp.mean(jax.vmap(functools.partial(net, params))(border) ** 2)
    return inner + outer


# ---- physics and geometry --------------------------------------------------------------------------------------------


@program(np.float32(0.3), normal(30, 4, 2))
def rotation(angle, points):
    def rot(t):
        c, s = jnp.cos(t), jnp.sin(t)
        return jnp.array([[c, -s], [s, c]])

    turned = points @ rot(angle).T
    back = turned @ rot(-2.0 * angle).T
    return jnp.sum(back[:, 0] * points[:, 1])


@program(uniform(31, 6, 7))
def stencil(u):
    dt, dx = 0.01, 0.1

    def laplacian(u):
        inner = u[1:-1, 1:-1]
        return (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * inner) / dx**2

    for _ in range(3):
        u = u.at[1:-1, 1:-1].add(dt * laplacian(u))
    return jnp.sum(u**2)


@program(normal(32, 2), np.float32(1.5), np.float32(0.4))
def pendulum(state, length, damping):
    dt = 0.05

    def velocity(state):
        theta, omega = state
        return jnp.stack([omega, -9.81 / length * jnp.sin(theta) - damping * omega])

    def step(state, _):
        k1 = velocity(state)
        k2 = velocity(state + dt * k1)
        state = state + dt * 0.5 * (k1 + k2)
        return state, state[0]

    state, angles = jax.lax.scan(step, state, None, length=10)
    return jnp.sum(angles**2) + state[1]


@program(normal(33, 3, 3) * np.float32(0.3), normal(34, 3, 2), np.eye(3, dtype=np.float32), np.eye(2, dtype=np.float32))
def ilqr(A, B, Q, R):
    def riccati(A, B, P):
        S = R + B.T @ P @ B
        K = jnp.linalg.solve(S, B.T @ P @ A)
        return Q + A.T @ P @ (A - B @ K), K

    P = Q
    for _ in range(4):
        P, K = riccati(A, B, P)
    return jnp.trace(P) + jnp.sum(K**2)


# ---- statistics ------------------------------------------------------------------------------------------------------


@program(
    {"scale": np.float32(0.2), "length": np.float32(0.1), "noise": np.float32(-1.0)}, normal(40, 8, 2), normal(41, 8)
)
def gaussian_process(theta, X, y):
    def kernel(a, b):
        distance = jnp.sum((a[:, None] - b[None]) ** 2, axis=-1)
        return jnp.exp(theta["scale"]) * jnp.exp(-0.5 * distance / jnp.exp(theta["length"]))

    K = kernel(X, X) + jnp.exp(theta["noise"]) * jnp.eye(8)
    L = jnp.linalg.cholesky(K)
    alpha = jax.scipy.linalg.solve_triangular(L, y, lower=True)
    return 0.5 * alpha @ alpha + jnp.sum(jnp.log(jnp.diag(L)))


@program(normal(42, 3), normal(43, 3, 2), normal(44, 3), normal(45, 10, 2))
def mixture(weights, means, log_scales, data):
    def log_normal(x, mean, log_scale):
        z = (x - mean) / jnp.exp(log_scale)[:, None]
        return -0.5 * jnp.sum(z**2, axis=-1) - 2 * log_scale

    components = log_normal(data[:, None, :], means, log_scales)
    log_weights = weights - logsumexp(weights)
    return -jnp.mean(logsumexp(log_weights + components, axis=1))


@program(normal(46, 3), normal(47, 12, 3), uniform(48, 12))
def natural_gradient(w, x, y):
    def predict(w):
        return jax.nn.sigmoid(x @ w)

    def loss(w):
        p = predict(w)
        return -jnp.mean(y * jnp.log(p) + (1 - y) * jnp.log(1 - p))

    g = jax.grad(loss)(w)
    J = jax.jacobian(predict)(w)
    fisher = J.T @ J / 12 + 1e-3 * jnp.eye(3)
    direction = jnp.linalg.solve(fisher, g)
    return loss(w - 0.5 * direction)


@functools.partial(jax.custom_vjp, nondiff_argnums=())
def fixed_point(w, x):
    z = jnp.zeros_like(x)
    for _ in range(20):
        z = jnp.tanh(w @ z + x)
    return z


def fixed_point_fwd(w, x):
    z = fixed_point(w, x)
    return z, (w, x, z)


def fixed_point_bwd(kept, cotangent):
    w, x, z = kept
    slope = 1 - jnp.tanh(w @ z + x) ** 2
    u = jnp.linalg.solve(jnp.eye(len(z)) - (slope[:, None] * w).T, cotangent)
    return jnp.outer(slope * u, z), slope * u


fixed_point.defvjp(fixed_point_fwd, fixed_point_bwd)


@program(normal(49, 4, 4) * np.float32(0.2), normal(50, 4), normal(51, 4))
def implicit(w, x, target):
    z = fixed_point(w, x)
    error = z - target
    loss = jnp.sum(error**2)
    return loss


@jax.custom_jvp
def soft_log(x, margin):
    shifted = x + margin
    return jnp.log(shifted)


@soft_log.defjvp
def soft_log_jvp(primals, tangents):
    x, margin = primals
    x_dot, margin_dot = tangents
    slope = 1 / (x + margin)
    return soft_log(x, margin), slope * (x_dot + margin_dot)


@jax.custom_vjp
def clipped(x):
    return x


def clipped_fwd(x):
    return x, None


def clipped_bwd(_, g):
    scale = jnp.minimum(1.0, 0.5 / jnp.linalg.norm(g))
    return (g * scale,)


clipped.defvjp(clipped_fwd, clipped_bwd)


@jax.custom_vjp
def log_layer(w, x):
    return clipped(soft_log(x @ w, jnp.float32(1e-3)))


def log_layer_fwd(w, x):
    h = x @ w
    return clipped(soft_log(h, jnp.float32(1e-3))), (w, x, h)


def log_layer_bwd(kept, g):
    w, x, h = kept
    dh = g / (h + 1e-3)
    return x.T @ dh, dh @ w.T


log_layer.defvjp(log_layer_fwd, log_layer_bwd)


@program(uniform(73, 3, 4), uniform(74, 5, 3))
def rules_in_rules(w, x):
    h = log_layer(w, x)
    return jnp.mean(h**2)


# ---- loops, classes and constants ------------------------------------------------------------------------------------


class GRU:
    def __init__(self, params):
        self.params = params

    def gate(self, name, x, h):
        p = self.params[name]
        return x @ p["w"] + h @ p["u"]

    def __call__(self, x, h):
        z = jax.nn.sigmoid(self.gate("z", x, h))
        r = jax.nn.sigmoid(self.gate("r", x, h))
        n = jnp.tanh(self.gate("n", x, r * h))
        return (1 - z) * n + z * h


@program({name: {"w": normal(i, 3, 4), "u": normal(i + 5, 4, 4)} for i, name in enumerate("zrn")}, normal(60, 6, 2, 3))
def by_a_class(params, xs):
    cell = GRU(params)
    h = jnp.zeros((2, 4))
    for i in range(6):
        h = cell(xs[i], h)
    return jnp.mean(h**2)


SENDERS, RECEIVERS = np.array([0, 1, 2, 3, 0, 2, 4, 1, 3]), np.array([1, 2, 3, 0, 2, 4, 1, 0, 4])


@program(normal(61, 3, 3), normal(62, 3, 3), normal(63, 5, 3))
def messages_of_a_graph(w_message, w_self, nodes):
    senders, receivers = jnp.asarray(SENDERS), jnp.asarray(RECEIVERS)
    h = nodes
    for _ in range(2):
        messages = jnp.tanh(h[senders] @ w_message)
        received = jax.ops.segment_sum(messages, receivers, num_segments=5)
        h = jax.nn.relu(h @ w_self + received)
    return jnp.sum(h**2)


@program(normal(64, 2, 5, 8), normal(65, 8, 24), normal(66, 8, 8), np.array([5, 3]))
def heads(x, wqkv, wo, lengths):
    b, t, d = x.shape
    q, k, v = jnp.split(x @ wqkv, 3, axis=-1)

    def split(z):
        return z.reshape(b, t, 2, d // 2).transpose(0, 2, 1, 3)

    q, k, v = split(q), split(k), split(v)
    scores = jnp.einsum("bhid,bhjd->bhij", q, k) / jnp.sqrt(d // 2)
    mask = jnp.arange(t)[None, :] < lengths[:, None]
    scores = jnp.where(mask[:, None, None, :], scores, -1e9)
    out = jnp.einsum("bhij,bhjd->bhid", jax.nn.softmax(scores, axis=-1), v)
    out = out.transpose(0, 2, 1, 3).reshape(b, t, d) @ wo
    return jnp.mean(out**2)


@program(normal(67, 4, 6), normal(68, 6))
def hopfield(memories, start):
    def energy(s):
        return 0.5 * s @ s - logsumexp(memories @ s)

    def cond(state):
        s, i = state
        return (i < 10) & (jnp.linalg.norm(jax.grad(energy)(s)) > 1e-3)

    def body(state):
        s, i = state
        return s - 0.5 * jax.grad(energy)(s), i + 1

    s, _ = jax.lax.while_loop(cond, body, (start, 0))
    return energy(s)


@program({"w": normal(69, 3, 5), "heads": normal(70, 3, 5)}, normal(71, 9, 3), normal(72, 9))
def quantiles(params, x, y):
    h = jnp.tanh(x @ params["w"])
    total = 0.0
    for i, q in enumerate([0.1, 0.5, 0.9]):
        error = y - h @ params["heads"][i]
        total = total + jnp.mean(jnp.maximum(q * error, (q - 1) * error))
    return total


# ---- draws, graphs with arrays of NumPy's, filters --------------------------------------------------------------------


@program(normal(75, 3))
def langevin(x):
    step = 0.01

    def energy(x):
        return jnp.sum((x**2 - 1) ** 2)

    def body(x, key):
        noise = jax.random.normal(key, x.shape)
        x = x - step * jax.grad(energy)(x) + 0.1 * noise
        return x, energy(x)

    keys = jax.random.split(jax.random.key(0), 5)
    x, energies = jax.lax.scan(body, x, keys)
    return jnp.mean(energies) + x[0]


SOURCES, SINKS = np.array([0, 1, 2, 3, 0, 2], np.int32), np.array([1, 2, 3, 0, 2, 0], np.int32)


@program(normal(76, 4, 3), normal(77, 3, 5), normal(78, 10))
def graph_attention(nodes, W, a):
    h = nodes @ W
    pairs = jnp.concatenate([h[SOURCES], h[SINKS]], axis=1)
    scores = jax.nn.leaky_relu(pairs @ a, 0.2)
    top = jax.ops.segment_max(scores, SINKS, num_segments=4)
    weights = jnp.exp(scores - top[SINKS])
    total = jax.ops.segment_sum(weights, SINKS, num_segments=4)
    alpha = weights / total[SINKS]
    out = jax.ops.segment_sum(alpha[:, None] * h[SOURCES], SINKS, num_segments=4)
    return jnp.sum(jax.nn.elu(out) ** 2)


@program(
    normal(79, 2, 2) * np.float32(0.3),
    normal(80, 1, 2),
    np.eye(2, dtype=np.float32),
    np.eye(1, dtype=np.float32),
    normal(81, 7, 1),
)
def kalman(F, H, Q, R, observations):
    def step(carry, y):
        m, P = carry
        m, P = F @ m, F @ P @ F.T + Q
        S = H @ P @ H.T + R
        K = P @ H.T @ jnp.linalg.inv(S)
        r = y - H @ m
        m = m + K @ r
        P = P - K @ S @ K.T
        return (m, P), r @ jnp.linalg.solve(S, r)

    start = jnp.zeros(2), jnp.eye(2)
    (m, _), terms = jax.lax.scan(step, start, observations)
    return 0.5 * jnp.sum(terms) + m[0]
