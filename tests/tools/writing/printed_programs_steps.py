"""Programs with keys of random numbers, generators, small trees and mapped functions, as `printed_programs`."""

import jax
import jax.numpy as jnp
import numpy as np
from printed_programs import collection, normal, uniform

PROGRAMS, program = collection()


@program(
    {"w1": normal(1, 2, 4), "w2": normal(2, 4, 2)},
    {"w1": normal(3, 2, 4), "w2": normal(4, 4, 1)},
    normal(5, 6, 2),
    normal(6, 6, 2),
)
def adversaries(gen, disc, z, real):
    def generated(p, z):
        return jnp.tanh(z @ p["w1"]) @ p["w2"]

    def judged(p, x):
        return jax.nn.sigmoid(jax.nn.relu(x @ p["w1"]) @ p["w2"])

    def d_loss(disc):
        fake = generated(gen, z)
        return -jnp.mean(jnp.log(judged(disc, real)) + jnp.log(1 - judged(disc, fake)))

    def g_loss(gen):
        return -jnp.mean(jnp.log(judged(disc, generated(gen, z))))

    dl, dg = jax.value_and_grad(d_loss)(disc)
    gl, gg = jax.value_and_grad(g_loss)(gen)
    disc = jax.tree.map(lambda p, g: p - 0.1 * g, disc, dg)
    gen = jax.tree.map(lambda p, g: p - 0.1 * g, gen, gg)
    return gen, disc, dl, gl


@program([(normal(1, 3, 4), normal(2, 4)), (normal(3, 4, 4), normal(4, 4))], normal(5, 5, 3), jax.random.key(6))
def dropout(params, x, key):
    keys = jax.random.split(key, 2)
    for (w, b), k in zip(params, keys, strict=True):
        x = jax.nn.relu(x @ w + b)
        keep = jax.random.bernoulli(k, 0.8, x.shape)
        x = jnp.where(keep, x / 0.8, 0.0)
    return jnp.sum(x)


@program(normal(1, 3), jax.random.key(2))
def two_draws(x, key):
    key, own = jax.random.split(key)
    y = x * jax.random.normal(own, x.shape)
    last, _ = jax.random.split(key)
    return jnp.sum(y + jax.random.uniform(last, x.shape))


@program(normal(1, 3), jax.random.key(2))
def chain_of_draws(x, key):
    def log_prob(x):
        return -0.5 * jnp.sum(x**2) + jnp.log(2 + jnp.sin(x[0]))

    samples = []
    for k in jax.random.split(key, 6):
        x = x + 0.01 * jax.grad(log_prob)(x) + 0.1 * jax.random.normal(k, x.shape)
        samples.append(x)
    return jnp.stack(samples).mean(axis=0)


@program(normal(1, 6, 4), normal(2, 6, 4))
def contrast(za, zb):
    za, zb = (z / jnp.linalg.norm(z, axis=1, keepdims=True) for z in (za, zb))
    similarity = za @ zb.T / 0.5
    here = jnp.arange(6)
    rows = jax.nn.log_softmax(similarity, axis=1)[here, here]
    columns = jax.nn.log_softmax(similarity, axis=0)[here, here]
    return -(rows.mean() + columns.mean()) / 2


def normalized(x, gain, bias):
    mean = x.mean(-1, keepdims=True)
    var = x.var(-1, keepdims=True)
    return gain * (x - mean) / jnp.sqrt(var + 1e-5) + bias


@program(
    {name: normal(i, 4, 4) if name in "qkv" else normal(i, 4) for i, name in enumerate(["gain", "bias", *"qkv"])},
    normal(9, 5, 4),
)
def block(params, x):
    h = normalized(x, params["gain"], params["bias"])
    q, k, v = (h @ params[name] for name in "qkv")
    weights = jax.nn.softmax(q @ k.T)
    return x + weights @ v


@program(normal(1, 2, 4, 3), normal(2, 2, 4, 3), normal(3, 2, 4, 3), np.tril(np.ones((4, 4), bool)))
def masked_heads(q, k, v, mask):
    def head(q, k, v):
        s = q @ k.T / 2.0
        s = jnp.where(mask, s, -1e9)
        return jax.nn.softmax(s, axis=-1) @ v

    return jax.vmap(head)(q, k, v).sum()


@program(normal(1, 3, 4, 4), np.int32(1))
def greedy(logits, start):
    total, token = 0.0, start
    for t in range(3):
        logp = jax.nn.log_softmax(logits[t, token])
        token = jnp.argmax(logp)
        total = total + logp[token]
    return total


@program(normal(1, 3), normal(2, 3), uniform(3, 3))
def leapfrog(q, p, mass):
    def potential(q):
        return 0.5 * jnp.sum(q**2) + jnp.sum(jnp.cos(q))

    def step(state, _):
        q, p = state
        p = p - 0.05 * jax.grad(potential)(q)
        q = q + 0.05 * p / mass
        return (q, p), potential(q)

    (q, p), energies = jax.lax.scan(step, (q, p), None, length=5)
    return q, p, energies


@program({"w": normal(1, 3, 4), "u": normal(2, 4, 4)}, normal(3, 120, 3), normal(4, 4))
def long_recurrence(params, xs, h):
    for x in xs:
        h = jnp.tanh(x @ params["w"] + h @ params["u"])
    return jnp.sum(h**2)


@program(normal(1, 5, 3))
def stein_particles(x):
    def logp(p):
        return -0.5 * jnp.sum(p**2)

    def kernel(a, b):
        return jnp.exp(-jnp.sum((a - b) ** 2))

    def direction(a):
        def term(b):
            return kernel(b, a) * jax.grad(logp)(b) + jax.grad(kernel)(b, a)

        return jnp.mean(jax.vmap(term)(x), axis=0)

    for _ in range(2):
        x = x + 0.1 * jax.vmap(direction)(x)
    return x


@program(
    normal(1, 5, 3), np.array([0, 1, 2, 3, 4, 0]), np.array([1, 2, 3, 4, 0, 2]), [normal(2, 3, 4), normal(3, 4, 2)]
)
def graph_convolution(nodes, senders, receivers, weights):
    def layer(h, w):
        degree = jax.ops.segment_sum(jnp.ones(6), receivers, num_segments=5) + 1.0
        messages = (h @ w)[senders]
        total = jax.ops.segment_sum(messages, receivers, num_segments=5)
        return (total + h @ w) / degree[:, None]

    h = jax.nn.relu(layer(nodes, weights[0]))
    logits = layer(h, weights[1])
    return jnp.mean(jax.nn.logsumexp(logits, axis=-1))


@program((normal(1, 3, 4), normal(2, 4)), normal(3, 5, 3), normal(4, 5, 4))
def weight_and_bias(params, x, y):
    def predict(params, x):
        w, b = params
        return x @ w + b

    def loss(params, x, y):
        return jnp.mean((predict(params, x) - y) ** 2)

    for _ in range(3):
        grads = jax.grad(loss)(params, x, y)
        params = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
    return loss(params, x, y)


@program(
    normal(1, 6, 2), [{"w": normal(2 + i, 1, 4), "s": normal(4 + i, 4, 1), "t": normal(6 + i, 4, 1)} for i in range(2)]
)
def coupling_flow(x, layers):
    def coupling(p, x, flip):
        a, b = x[:, :1], x[:, 1:]
        if flip:
            a, b = b, a
        h = jnp.tanh(a @ p["w"])
        log_s, t = jnp.tanh(h @ p["s"]), h @ p["t"]
        b = b * jnp.exp(log_s) + t
        return jnp.concatenate([a, b], axis=1), jnp.sum(log_s, axis=1)

    total = 0.0
    for i, p in enumerate(layers):
        x, change = coupling(p, x, i % 2 == 1)
        total = total + change
    return jnp.mean(total - 0.5 * jnp.sum(x**2, axis=1))
