"""Train a small network on many devices at once: each has a part of the batch, the gradients are summed over all.

The tape knows nothing of devices. It records sharded arrays as it records any others: JAX runs each operation where its
data are and adds what has to be added across devices, in the forward and in the backward pass.

    python examples/data_parallel.py                       all devices of this machine
    python examples/data_parallel.py --cpus 8              eight devices made of this machine's processor
    python examples/data_parallel.py --cpus 8 --sharded    the parameters are divided among the devices, too

With several processes, here or on other machines, each has devices and rows of its own; all run the same program:

    python examples/data_parallel.py --cpus 4 --processes 2 --process 0 --coordinator localhost:12345 &
    python examples/data_parallel.py --cpus 4 --processes 2 --process 1 --coordinator localhost:12345
"""

import argparse
import json

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import tapejax as tf

WIDTH, BATCH, RATE = 32, 64, 0.3
# Which axis of each parameter is divided among the devices, where they are sharded.
SHARDED = {"hidden": {"w": P(None, "data"), "b": P("data")}, "out": {"w": P("data"), "b": P()}}


def batches(steps, seed=0):
    """Points of a curve in three dimensions. A process has its own rows of each batch, which it would read from its own files."""
    rng = np.random.default_rng(seed)
    count = BATCH // jax.process_count()
    for _ in range(steps):
        x = rng.normal(size=(BATCH, 3)).astype("float32")[jax.process_index() * count :][:count]
        yield x, np.sin(x.sum(1, keepdims=True))


def initial_parameters(seed=1):
    rng = np.random.default_rng(seed)

    def layer(ins, outs):
        return {"w": (rng.normal(size=(ins, outs)) / ins**0.5).astype("float32"), "b": np.zeros(outs, "float32")}

    return {"hidden": layer(3, WIDTH), "out": layer(WIDTH, 1)}


def place(mesh, spec, array):
    """`array`, the same in every process, on the devices of the mesh: each process fills those that are its own."""
    return jax.make_array_from_callback(array.shape, NamedSharding(mesh, spec), lambda part: array[part])


def loss_of(parameters, x, y):
    hidden = jnp.tanh(x @ parameters["hidden"]["w"] + parameters["hidden"]["b"])
    return jnp.mean((hidden @ parameters["out"]["w"] + parameters["out"]["b"] - y) ** 2)


def gradients_of(parameters, x, y):
    with tf.GradientTape() as tape:
        tape.watch(parameters)
        loss = loss_of(parameters, x, y)
    return loss, tape.gradient(loss, parameters)


def step(parameters, x, y):
    loss, gradients = gradients_of(parameters, x, y)
    return loss, jax.tree.map(lambda p, g: p - RATE * g, parameters, gradients)


def train(steps, sharded=False, compiled=True):
    """The losses of a training run over all devices, and the parameters after it."""
    mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    specs = SHARDED if sharded else jax.tree.map(lambda _: P(), SHARDED)
    rows = NamedSharding(mesh, P("data"))
    parameters = jax.tree.map(lambda spec, x: place(mesh, spec, x), specs, initial_parameters())
    run = jax.jit(step) if compiled else step
    losses = []
    for batch in batches(steps):
        x, y = (jax.make_array_from_process_local_data(rows, local) for local in batch)
        loss, parameters = run(parameters, x, y)
        if not compiled:  # processes that run ahead of each other may each wait for another collective, for ever
            jax.block_until_ready(parameters)
        losses.append(float(loss))
    return losses, parameters


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpus", type=int, help="devices to make of the processor")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--sharded", action="store_true", help="divide the parameters as well as the batch")
    parser.add_argument(
        "--eager", action="store_true", help="run the step operation by operation, and wait for each step"
    )
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--process", type=int, default=0)
    parser.add_argument("--coordinator", help="address and port of process 0")
    parser.add_argument("--losses", help="a file to write the losses to, as JSON")
    arguments = parser.parse_args()

    if arguments.cpus:
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_num_cpu_devices", arguments.cpus)
    if arguments.processes > 1:
        jax.distributed.initialize(
            arguments.coordinator, arguments.processes, arguments.process, initialization_timeout=60
        )
    losses, _ = train(arguments.steps, arguments.sharded, not arguments.eager)
    devices = f"{jax.device_count()} devices of {jax.process_count()} process(es)"
    print(f"{devices}: the loss went from {losses[0]:.4f} to {losses[-1]:.4f} in {len(losses)} steps", flush=True)
    if arguments.losses and arguments.process == 0:
        with open(arguments.losses, "w") as file:
            json.dump(losses, file)
    if arguments.processes > 1:
        jax.distributed.shutdown()


if __name__ == "__main__":
    main()
