"""``python -m benchmarks.devices``: a warm step of data-parallel training on eight CPU devices, beside `jax.jit` by hand.

CPU time of all threads, the best of several rounds in which the steps take turns. Exit status 1 says that a compiled step
takes more than `LIMIT` times what is written by hand, or that one of them was compiled again. ``--quick``: one round, and rough
times. Each step is waited for: on CPU devices collectives of steps in flight can wait for each other for ever, with and without
a tape.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

DEVICES, WIDTH, ROWS, RATE = 8, 512, 256, 0.1
LIMIT = 1.3  # times the CPU time by hand
COMPILED = ("a tape in jax.jit", "tf.function", "MirroredStrategy")

if __name__ == "__main__":  # JAX decides how many devices it has when it starts
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import AxisType, NamedSharding, PartitionSpec  # noqa: E402

import tapejax as tf  # noqa: E402


def loss_of(weights, x, y):
    return jnp.mean((jnp.tanh(jnp.tanh(x @ weights[0]) @ weights[1]) @ weights[2] - y) ** 2)


def by_hand(weights, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(weights, x, y)
    return loss, [w - RATE * g for w, g in zip(weights, gradients, strict=True)]


def taped(weights, x, y):
    with tf.GradientTape() as tape:
        tape.watch(weights)
        loss = loss_of(weights, x, y)
    return loss, [w - RATE * g for w, g in zip(weights, tape.gradient(loss, weights), strict=True)]


def steps() -> dict[str, Callable[[int], float]]:
    """By name, what runs a number of steps, waits for them, and gives the last loss."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, WIDTH)).astype("float32")
    y = x[:, :1]
    shapes = (WIDTH, WIDTH), (WIDTH, WIDTH), (WIDTH, 1)
    initial = [(rng.normal(size=shape) / WIDTH**0.5).astype("float32") for shape in shapes]
    mesh = jax.make_mesh((DEVICES,), ("data",), axis_types=(AxisType.Auto,))
    whole, rows = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("data"))
    sharded = jax.device_put((x, y), rows)

    def functional(step):
        weights = jax.device_put(initial, whole)

        def run(count):
            nonlocal weights
            for _ in range(count):
                loss, weights = jax.block_until_ready(step(weights, *sharded))
            return float(loss)

        return run

    def stateful(step, variables, batch):
        def run(count):
            for _ in range(count):
                loss = step(*batch)
                jax.block_until_ready([jnp.asarray(v) for v in variables])
            return float(loss)

        return run

    variables = [tf.Variable(w) for w in jax.device_put(initial, whole)]

    @tf.function
    def as_function(x, y):
        with tf.GradientTape() as tape:
            hidden = tf.tanh(tf.tanh(x @ variables[0]) @ variables[1])
            loss = tf.reduce_mean((hidden @ variables[2] - y) ** 2)
        for v, g in zip(variables, tape.gradient(loss, variables), strict=True):
            v.assign_sub(RATE * g)
        return loss

    strategy = tf.distribute.MirroredStrategy()
    with strategy.scope():
        mirrored = [tf.Variable(w) for w in initial]

    @tf.function
    def in_replicas(x, y):
        def replica(x, y):
            with tf.GradientTape() as tape:
                hidden = tf.tanh(tf.tanh(x @ mirrored[0]) @ mirrored[1])
                loss = tf.reduce_sum((hidden @ mirrored[2] - y) ** 2) / ROWS
            gradients = tf.distribute.get_replica_context().all_reduce("SUM", tape.gradient(loss, mirrored))
            for v, g in zip(mirrored, gradients, strict=True):
                v.assign_sub(RATE * g)
            return loss

        return strategy.reduce("SUM", strategy.run(replica, args=(x, y)), axis=None)

    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(ROWS)
    (batch,) = strategy.experimental_distribute_dataset(data)
    return {
        "jax.jit by hand": functional(jax.jit(by_hand)),
        "a tape in jax.jit": functional(jax.jit(taped)),
        "tf.function": stateful(as_function, variables, sharded),
        "MirroredStrategy": stateful(in_replicas, mirrored, batch),
        "an eager tape": functional(taped),
    }


def main() -> int:
    """Prints a table; returns the exit status."""
    compiles: list[str] = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, seconds, **_: compiles.append(event) if event.endswith("backend_compile_duration") else None
    )
    runs = steps()
    losses = {name: run(20) for name, run in runs.items()}
    assert np.allclose(list(losses.values()), losses["jax.jit by hand"], rtol=1e-3), losses
    compiles.clear()
    cpu, clock = dict.fromkeys(runs, float("inf")), dict.fromkeys(runs, float("inf"))
    for _ in range(1 if "--quick" in sys.argv else 7):
        for name, run in runs.items():
            before = time.process_time(), time.perf_counter()
            run(10)
            cpu[name] = min(cpu[name], (time.process_time() - before[0]) * 100)
            clock[name] = min(clock[name], (time.perf_counter() - before[1]) * 100)
    for name in runs:
        print(
            f"{name:20} CPU {cpu[name]:6.2f} ms, clock {clock[name]:6.2f} ms, {cpu[name] / cpu['jax.jit by hand']:.2f}"
        )
    print(f"compiled while warm: {len(compiles)}")
    return int(bool(compiles) or any(cpu[name] > LIMIT * cpu["jax.jit by hand"] for name in COMPILED))


if __name__ == "__main__":
    sys.exit(main())
