"""Programs of lessons with places in mapped functions, functions of a number of rounds, and lambdas, as `printed_programs`."""

import jax
import jax.numpy as jnp
import numpy as np
from printed_programs import collection, normal

PROGRAMS, program = collection()


@program({"w": normal(1, 4, 3), "b": normal(2, 3)}, normal(3, 8, 4), np.arange(8) % 3, normal(4, 8))
def policy_gradient(params, states, actions, returns):
    def logp(params, state):
        return jax.nn.log_softmax(state @ params["w"] + params["b"])

    def objective(params):
        def one(state, action, ret):
            return logp(params, state)[action] * ret

        return -jnp.mean(jax.vmap(one)(states, actions, returns))

    loss, grads = jax.value_and_grad(objective)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), loss


@program(normal(3, 5, 4), np.array([1, 0, 3]), np.array([0, 3, 1]), np.int32(2))
def action_values(q, states, actions, which):
    def value(s, a):
        return q[s, a] + jnp.max(q[s])

    column = jax.vmap(lambda q: q[which] + q[-1])(q)
    return jax.vmap(value)(states, actions).sum() + jnp.sum(column)


@program(normal(3, 5, 4), normal(4, 3, 4))
def rounds_by_number(x, w):
    def block(x, w, rounds):
        for _ in range(rounds):
            x = jnp.tanh(x * w)
        return x

    x = block(x, w[0], 2)
    x = block(x, w[1], 3)
    return block(x, w[2], 4)


@program(normal(3, 5, 4), normal(4, 4))
def rates_by_number(x, v):
    def run(x, v, rate):
        def step(v, row):
            v = v - rate * jnp.tanh(row * v)
            return v, v @ row

        return jax.lax.scan(step, v, x)

    v, a = run(x, v, 0.1)
    v, b = run(x, v, 0.2)
    return v, a + b


@program(normal(3, 4), normal(4, 3, 4, 4))
def stored_lambda(x, w):
    act = lambda x: x * jax.nn.sigmoid(1.702 * x)  # noqa: E731
    h = act(w[0] @ x)
    h = act(w[1] @ h)
    return act(w[2] @ h)


@program(normal(3, 4), normal(4, 4))
def mapped_lambdas(x, y):
    shifted = lambda a: jnp.tanh(a) * 2 + 1  # noqa: E731
    z = jax.vmap(shifted)(x)
    u = jax.vmap(lambda a, b: jnp.sin(a) * b + 1)(z, y)
    return jnp.sum(u * 2 + z)


@program(normal(3, 4), normal(4, 3, 4, 4))
def residual_layers(x, ws):
    def layer(h, w):
        h = jnp.tanh(h @ w)
        return h

    x = layer(x, ws[0]) + x
    for w in ws:
        x = layer(x, w) + x
    return jnp.sum(x)


@program(normal(1, 3, 4), normal(2, 6, 3), normal(3, 6, 3), np.array([1, 0, 3, 2, 5, 4]))
def contrastive(W, a, b, partners):
    def encode(W, x):
        z = jnp.tanh(x @ W)
        return z / jnp.linalg.norm(z, axis=-1, keepdims=True)

    def loss(W):
        za, zb = encode(W, a), encode(W, b)
        logits = za @ zb.T / 0.1
        return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(6), partners])

    value, grad = jax.value_and_grad(loss)(W)
    return value, W - 0.1 * grad


@program({"w": normal(1, 1, 9), "b": normal(2, 9)}, normal(5, 10, 1), normal(6, 10))
def mixture_density(params, x, y):
    def loss(params):
        out = jnp.tanh(x @ params["w"] + params["b"])
        logits, mean, log_std = jnp.split(out, 3, axis=-1)
        z = (y[:, None] - mean) / jnp.exp(log_std)
        logp = -0.5 * z**2 - log_std - 0.5 * jnp.log(2 * jnp.pi)
        return -jnp.mean(jax.nn.logsumexp(jax.nn.log_softmax(logits) + logp, axis=-1))

    value, grads = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), value
