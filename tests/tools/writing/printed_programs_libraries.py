"""Programs of users of other libraries, in the form of `printed_programs`."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from flax import nnx
from printed_programs import collection, normal, uniform

PROGRAMS, program = collection()


MLP = eqx.nn.MLP(2, 1, 4, 1, key=jax.random.key(0))


@program(normal(60, 6, 2), normal(61, 6, 1))
def equinox_step(x, y):
    def loss(model, x, y):
        predicted = jax.vmap(model)(x)
        return jnp.mean((predicted - y) ** 2)

    optimizer = optax.adam(1e-2)
    params, static = eqx.partition(MLP, eqx.is_inexact_array)
    state = optimizer.init(params)
    grads = jax.grad(lambda params: loss(eqx.combine(params, static), x, y))(params)
    updates, state = optimizer.update(grads, state)
    new = eqx.combine(optax.apply_updates(params, updates), static)
    return loss(new, x, y)


class Net(nnx.Module):
    def __init__(self, rngs):
        self.hidden = nnx.Linear(2, 4, rngs=rngs)
        self.out = nnx.Linear(4, 1, rngs=rngs)

    def __call__(self, x):
        h = nnx.relu(self.hidden(x))
        return self.out(h)


NET = nnx.split(Net(nnx.Rngs(0)))


@program(normal(62, 6, 2), normal(63, 6, 1))
def flax_step(x, y):
    graph, state = NET

    def loss(state):
        net = nnx.merge(graph, state)
        error = net(x) - y
        return jnp.mean(error**2)

    grads = jax.grad(loss)(state)
    state = jax.tree.map(lambda p, g: p - 0.1 * g, state, grads)
    return loss(state)


@program(uniform(64, 2), uniform(65, 4))
def diffrax_solve(start, rates):
    def field(t, y, args):
        alpha, beta, gamma, delta = args
        prey, predator = y
        return jnp.stack([alpha * prey - beta * prey * predator, delta * prey * predator - gamma * predator])

    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(field), diffrax.Tsit5(), t0=0.0, t1=1.0, dt0=0.1, y0=start, args=rates
    )
    final = solution.ys[-1]
    return jnp.sum(final**2)
