"""A user's program in JAX: trains a network on the devices at hand, with Optax, by a tape in a jitted step and by `jax.grad`.

It prints the losses of both, data parallel and fully sharded, as JSON.
"""

import json
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import tapejax as tf

COUNT = jax.device_count()
BATCH, WIDTH, STEPS = 32, 16, 6
mesh = jax.make_mesh((COUNT,), ("data",), axis_types=(AxisType.Auto,))
rows, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())


def initial(seed=0):
    keys = jax.random.split(jax.random.key(seed), 4)
    sizes = [("in", 8, WIDTH), ("hidden", WIDTH, WIDTH), ("out", WIDTH, 8)]
    return {
        name: {"w": jax.random.normal(key, (ins, outs)) / ins**0.5, "b": jnp.zeros(outs)}
        for key, (name, ins, outs) in zip(keys, sizes, strict=False)
    } | {"scale": jnp.ones(WIDTH)}


def batches(steps):
    rng = np.random.default_rng(1)
    for _ in range(steps):
        x = rng.normal(size=(BATCH, 8)).astype("float32")
        yield x, np.argmax(np.sin(x) + 0.3 * np.roll(x, 1, 1), 1)


def predict(parameters, x, key):
    hidden = jax.nn.gelu(x @ parameters["in"]["w"] + parameters["in"]["b"])
    normal = (hidden - hidden.mean(0)) * jax.lax.rsqrt(hidden.var(0) + 1e-3)  # over the rows of all devices
    hidden = jax.checkpoint(lambda h, p: h + jax.nn.gelu(h @ p["w"] + p["b"]))(
        normal * parameters["scale"], parameters["hidden"]
    )
    kept = jax.random.bernoulli(key, 0.9, hidden.shape)
    return jnp.where(kept, hidden / 0.9, 0) @ parameters["out"]["w"] + parameters["out"]["b"]


def loss_of(parameters, x, labels, key):
    logits = predict(parameters, x, key)
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), jnp.argmax(logits, 1) == labels


def by_tape(parameters, *batch):
    with tf.GradientTape() as tape:
        tape.watch(parameters)
        loss, correct = loss_of(parameters, *batch)
    return (loss, correct), tape.gradient(loss, parameters)


by_grad = jax.value_and_grad(loss_of, has_aux=True)
schedule = optax.warmup_cosine_decay_schedule(0.0, 0.05, 3, STEPS)
optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, weight_decay=1e-3))


@partial(jax.jit, static_argnums=0, donate_argnums=1)
def step(gradients_of, state, x, labels):
    parameters, slots, key, seen = state
    key, own = jax.random.split(key)
    (loss, correct), gradients = gradients_of(parameters, x, labels, own)
    updates, slots = optimizer.update(gradients, slots, parameters)
    return (optax.apply_updates(parameters, updates), slots, key, seen + correct.sum()), loss


def placed(tree, sharded):
    """Each array divided along its first axis, where that can be, or whole on each device."""
    divides = lambda x: sharded and x.ndim and x.shape[0] % COUNT == 0  # noqa: E731
    return jax.tree.map(lambda x: jax.device_put(x, rows if divides(x) else whole), tree)


def train(gradients_of, sharded):
    parameters = placed(initial(), sharded)
    state = parameters, placed(optimizer.init(parameters), sharded), jax.random.key(2), jnp.zeros((), int)
    losses = []
    for batch in batches(STEPS):
        state, loss = step(gradients_of, state, *jax.device_put(batch, rows))
        losses.append(float(loss))
    if gradients_of is by_tape and sharded:
        eager = by_tape(state[0], *jax.device_put(batch, rows), state[2])[1]
        same = jax.tree.map(lambda p, g: g.sharding.is_equivalent_to(p.sharding, p.ndim), state[0], eager)
        assert all(jax.tree.leaves(same)), same
    norms = jax.tree.map(lambda x: float(jnp.linalg.norm(x)), state[0])
    return [*losses, int(state[3]), *jax.tree.leaves(norms)]


if __name__ == "__main__":
    found = {
        f"{name} {'sharded' if sharded else 'parallel'}": train(function, sharded)
        for name, function in (("tape", by_tape), ("grad", by_grad))
        for sharded in (False, True)
    }
    print(json.dumps(found))
