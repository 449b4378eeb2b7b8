"""Training on many devices, in one process and in two: `examples/data_parallel.py`; and where gradients lie."""

from __future__ import annotations

import functools
import json
import os

import numpy as np
import pytest

from tests import processes
from tests.processes import finish, free_port

STEPS = 30


def start(*arguments, program="examples/data_parallel.py"):
    return processes.start(program, *arguments, paths=["examples"])


def losses_of(folder, *arguments):
    file = folder / "losses.json"
    (printed,) = finish(start("--steps", STEPS, "--losses", file, *arguments))
    return json.loads(file.read_text()), printed


@pytest.fixture(scope="module")
def on_one_device(tmp_path_factory):
    losses, printed = losses_of(tmp_path_factory.mktemp("one"), "--cpus", 1)
    assert printed.startswith("1 devices of 1 process(es)")
    assert len(losses) == STEPS and losses[-1] < losses[0] / 2
    return losses


@pytest.mark.parametrize("options", [[], ["--sharded", "--eager"]], ids=" ".join)
def test_eight_devices(on_one_device, tmp_path, options):
    losses, printed = losses_of(tmp_path, "--cpus", 8, *options)
    assert printed.startswith("8 devices of 1 process(es)")
    np.testing.assert_allclose(losses, on_one_device, rtol=1e-4)


@pytest.mark.parametrize("options", [[], ["--sharded", "--eager"]], ids=" ".join)
def test_two_processes(on_one_device, tmp_path, options):
    coordinator = f"localhost:{free_port()}"
    file = tmp_path / "losses.json"
    shared = ["--cpus", 2, "--processes", 2, "--coordinator", coordinator, "--steps", STEPS, *options]
    first = start(*shared, "--process", 0, "--losses", file)
    printed = finish(first, start(*shared, "--process", 1))
    assert all("4 devices of 2 process(es)" in out for out in printed)
    np.testing.assert_allclose(json.loads(file.read_text()), on_one_device, rtol=1e-4)


CHECKPOINTS = """
import sys, jax, numpy as np
jax.config.update("jax_num_cpu_devices", 2)
folder, coordinator, process = sys.argv[1:]
jax.distributed.initialize(coordinator, 2, int(process), initialization_timeout=60)
from jax.sharding import NamedSharding, PartitionSpec as P
import tapejax as tf

place = NamedSharding(jax.make_mesh((4,), ("data",), axis_types=(jax.sharding.AxisType.Auto,)), P("data"))
whole = np.arange(8.0, dtype="float32")
v = tf.Variable(jax.make_array_from_callback((8,), place, lambda part: whole[part]))
step = tf.Variable(3)
manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=v, step=step), folder, max_to_keep=1)
manager.save()
v.assign(v * 2.0)
step.assign(7)
manager.save()
v.assign(v * 0.0)
step.assign(0)
manager.checkpoint.restore(manager.latest_checkpoint).assert_consumed()
held = v.value._array
assert held.sharding.is_equivalent_to(place, 1) and int(step) == 7
for part in held.addressable_shards:
    assert (np.asarray(part.data) == 2 * whole[part.index]).all()
print("restored")
jax.distributed.shutdown()
"""


def test_a_checkpoint_of_two_processes(tmp_path):
    """Each writes and reads its part of what is spread, and what each has alone comes from the first."""
    pytest.importorskip("orbax.checkpoint")
    program = tmp_path / "program.py"
    program.write_text(CHECKPOINTS)
    shared = [tmp_path / "kept", f"localhost:{free_port()}"]
    printed = finish(*[start(*shared, process, program=program) for process in (0, 1)])
    assert all(out.endswith("restored\n") for out in printed)
    assert sorted(os.listdir(tmp_path / "kept")) == ["checkpoint", "ckpt-2"]


def places():
    """Run in a process with eight devices: prints what lies elsewhere than it should."""
    import data_parallel
    import jax
    from jax.sharding import PartitionSpec as P

    import tapejax as tf

    mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    place = functools.partial(data_parallel.place, mesh)
    x, y = (place(P("data"), array) for array in next(data_parallel.batches(1)))

    def elsewhere(what, sources, gradients):
        for path, source in jax.tree_util.tree_leaves_with_path(sources):
            gradient = dict(jax.tree_util.tree_leaves_with_path(gradients))[path]
            if not gradient.sharding.is_equivalent_to(source.sharding, source.ndim):
                print(what, jax.tree_util.keystr(path), gradient.sharding, "in place of", source.sharding)

    for specs in (data_parallel.SHARDED, jax.tree.map(lambda _: P(), data_parallel.SHARDED)):
        parameters = jax.tree.map(place, specs, data_parallel.initial_parameters())
        expected = jax.jit(jax.grad(data_parallel.loss_of))(parameters, x, y)
        for _ in range(3):
            _, gradients = data_parallel.gradients_of(parameters, x, y)
            elsewhere("array", parameters, gradients)
            jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-6), gradients, expected)

        variables = tf.nest.map_structure(tf.Variable, parameters)
        held = tf.nest.map_structure(lambda v: v.value, variables)
        elsewhere("variable", parameters, tf.nest.map_structure(lambda v: v.value._array, variables))
        _, gradients = data_parallel.gradients_of(variables, x, y)
        elsewhere("gradient of variable", held, gradients)
        tf.nest.map_structure(lambda v, g: v.assign_sub(0.1 * g), variables, gradients)
        elsewhere("updated variable", held, tf.nest.map_structure(lambda v: v.value, variables))

        compiled = tf.function(data_parallel.gradients_of)
        _, gradients = compiled(variables, x, y)
        tf.nest.map_structure(lambda v, g: v.assign_sub(0.1 * g), variables, gradients)
        elsewhere(
            "variable updated by a function's gradient", held, tf.nest.map_structure(lambda v: v.value, variables)
        )


def test_gradients_lie_where_their_sources_do():
    (printed,) = finish(start(program=__file__))
    assert printed == ""


if __name__ == "__main__":
    import jax

    jax.config.update("jax_num_cpu_devices", 8)
    places()


PLACED = """
import jax, numpy as np, tapejax as tf
from jax.sharding import NamedSharding, PartitionSpec, SingleDeviceSharding
auto = (jax.sharding.AxisType.Auto,)
place = NamedSharding(jax.make_mesh((8,), ("d",), axis_types=auto), PartitionSpec("d"))
host, other = np.ones((16, 8), "float32"), NamedSharding(place.mesh, PartitionSpec(None, "d"))
for change in (
    lambda v: v.assign(host), lambda v: v.assign(tf.zeros_like(v)), lambda v: v.assign_sub(host), lambda v: v.assign(v * 0.5),
):
    v = tf.Variable(jax.device_put(host, place))
    change(v)
    assert v._array.sharding.is_equivalent_to(place, 2), v._array.sharding
v.assign(jax.device_put(host, other))  # another place that is asked for
assert v._array.sharding.is_equivalent_to(other, 2)
w = tf.Variable(host)
w.assign(2 * host)
assert type(w._array.sharding) is SingleDeviceSharding
one = tf.distribute.OneDeviceStrategy("/cpu:3")
with one.scope():
    u = tf.Variable(host)
for x in (u, one.run(lambda: u * 2.0), one.run(lambda: tf.ones([2]))):
    assert x._array.devices() == {jax.devices()[3]}
whole = NamedSharding(place.mesh, PartitionSpec())
for size in (16, 1024):  # the smaller one is not too large for NumPy
    f = jax.jit(lambda w, x: jax.numpy.sum(jax.numpy.tanh(x @ w) ** 2), in_shardings=(other, whole))
    x = jax.numpy.ones((size, size))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x, x + 1.0)
    assert tape.gradient(y, x).sharding.is_equivalent_to(jax.grad(f)(x, x + 1.0).sharding, 2)
"""


def test_a_sharded_variable_stays_where_it_is():
    finish(processes.start("-c", PLACED, devices=8))


LOOKS = """
import sys, jax, numpy as np
jax.config.update("jax_num_cpu_devices", 2)
coordinator, process = sys.argv[1:]
jax.distributed.initialize(coordinator, 2, int(process), initialization_timeout=60)
from jax.sharding import NamedSharding, PartitionSpec as P
from jax.experimental.multihost_utils import process_allgather
import tapejax as tf

rows = NamedSharding(jax.make_mesh((4,), ("data",), axis_types=(jax.sharding.AxisType.Auto,)), P("data"))
own = np.linspace(-1.0, 1.0, 12, dtype="float32").reshape(4, 3) + int(process)
x, c = (jax.make_array_from_process_local_data(rows, a) for a in (own, own[:, :2] - 7.0))
w = tf.Variable(np.ones((3, 2), "float32"))
with tf.GradientTape(persistent=True) as tape:
    tape.watch(x)
    hidden = tf.tanh(x @ w)
    loss = tf.reduce_mean(hidden * c)
jax.block_until_ready(tape.gradient(loss, [x, w]))
if process == "0":  # these ask no other process
    assert "hidden" in str(tape) and "tanh" in str(tape.memory(loss, [x, w]))
    printed = str(tape.as_function(loss, [x, w]))
    assert "c: float32[8,2], in .constants" in printed and "jnp.mean(hidden * c)" in printed, printed
    assert "a part of it is on other processes" in repr(hidden) and "other processes" in str(hidden)
    assert len(tape.draw(loss, [x, w]).svg()) > 1000 and "tanh" in str(tape.jaxpr(loss, [x, w]))
assert abs(float(tape.as_function(loss, [x, w])([x, w])) - float(loss)) < 1e-6
steps = "".join(map(str, tape.steps(loss, [x, w])))
assert "other processes" in steps and "tanh" in steps
whole = process_allgather(tape.gradient(loss, x), tiled=True)
assert f"{np.sqrt((whole ** 2).sum()):.3g}" in str(tape.summary(loss, [x, w]))
tape.check_numerics(loss, [x, w])
with tf.GradientTape() as worse:
    worse.watch(x)
    y = tf.reduce_sum(tf.math.log(x - x))
try:
    worse.check_numerics(y, x)
except tf.errors.NonFiniteError as error:
    assert "not finite" in str(error) and "other processes" in str(error)
html = tf.Variable(x)._repr_html_() + tape._repr_html_() + tape.steps(loss, [x, w])._repr_html_()
assert "other processes" in html
with tf.GradientTape() as unnamed:  # a value that has no name in the program
    unnamed.watch(x)
    y = tf.reduce_sum(tf.tanh(x) * jax.numpy.sin(x) * [c][0][:, :1])
if process == "0":
    assert "in .constants" in str(unnamed.as_function(y, x))
print(tape.explain(loss, [x, w]))
assert "tanh" in str(tape.play(loss, [x, w])._repr_mimebundle_())
print("seen")
jax.distributed.shutdown()
"""


def test_what_looks_at_a_tape_in_two_processes(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(LOOKS)
    coordinator = f"localhost:{free_port()}"
    printed = finish(*[start(coordinator, process, program=program) for process in (0, 1)])
    assert all(out.endswith("seen\n") for out in printed)
