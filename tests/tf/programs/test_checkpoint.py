"""``tf.train`` beside what `parity/test_checkpoint_parity.py` compares with TensorFlow: damage, new processes, many devices."""

from __future__ import annotations

import gc
import json
import logging
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf

pytest.importorskip("orbax.checkpoint")

ROOT = Path(__file__).resolve().parents[3]
ENVIRONMENT = os.environ | {
    "JAX_PLATFORMS": "cpu",
    "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
}


class Dense(tf.Module):
    def __init__(self, ins, outs):
        super().__init__()
        self.w = tf.Variable(tf.random.stateless_normal([ins, outs], (1, 2)), name="w")
        self.b = tf.Variable(tf.zeros([outs]), name="b")

    def __call__(self, x):
        return x @ self.w + self.b


class Network(tf.Module):
    def __init__(self):
        super().__init__()
        self.layers = [Dense(3, 4), Dense(4, 1)]

    def __call__(self, x):
        return self.layers[1](tf.nn.tanh(self.layers[0](x)))


def files(folder):
    return [path for path in sorted(Path(folder).rglob("*")) if path.is_file()]


@pytest.fixture
def saved(tmp_path):
    network = Network()
    path = tf.train.Checkpoint(network=network).save(tmp_path / "ckpt")
    return network, path


# ---- from one process to the next -----------------------------------------------------------------------------------

PROGRAM = """
import sys
import numpy as np
import tapejax as tf

rng = np.random.default_rng(0)
x = rng.normal(size=(16, 3)).astype("float32")
y = np.sin(x.sum(1, keepdims=True))

class Network(tf.Module):
    def __call__(self, x):
        if not hasattr(self, "w"):  # made by the first step: after the restoration
            self.w = tf.Variable(tf.ones([3, 1]) * 0.1)
            self.velocity = tf.Variable(tf.zeros([3, 1]), trainable=False)
        return tf.tanh(x @ self.w)

def train(folder, steps):
    network, step = Network(), tf.Variable(0)
    noise = tf.random.Generator.from_seed(3)
    checkpoint = tf.train.Checkpoint(network=network, step=step, noise=noise)
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
    manager.restore_or_initialize()
    for _ in range(steps):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((network(x) - y + noise.normal([16, 1]) * 0.1) ** 2)
        gradient = tape.gradient(loss, network.w)
        network.velocity.assign(0.9 * network.velocity + gradient)
        network.w.assign_sub(0.1 * network.velocity)
        step.assign_add(1)
        manager.save()
        print(int(step), float(loss))

for argument in sys.argv[1:]:
    folder, _, steps = argument.rpartition(":")
    train(folder, int(steps))
"""


def run(*trainings):
    command = [sys.executable, "-c", PROGRAM, *trainings]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_new_process_goes_on_where_the_last_one_stopped(tmp_path):
    in_two, at_once = run(f"{tmp_path / 'two'}:2"), run(f"{tmp_path / 'two'}:2", f"{tmp_path / 'one'}:4")
    in_two += [at_once.pop(0) for _ in range(2)]
    assert len(at_once) == 4 and in_two == at_once
    latest = tf.train.latest_checkpoint(tmp_path / "two")
    assert latest.endswith("ckpt-4") and sorted(os.listdir(tmp_path / "two")) == ["checkpoint", "ckpt-3", "ckpt-4"]


# ---- damage ---------------------------------------------------------------------------------------------------------


def restored(path):
    """The values after a restoration; or the error."""
    network = Network()
    for variable in network.variables:
        variable.assign(tf.zeros_like(variable))
    try:
        tf.train.Checkpoint(network=network).restore(path)
    except tf.errors.OpError as error:
        assert all(not v.numpy().any() for v in network.variables), "half restored"
        return error
    return [v.numpy().tolist() for v in network.variables]


# Orbax leaves coroutines behind when it fails; Python says so when it collects them.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore:coroutine:RuntimeWarning")
@pytest.mark.parametrize("how", ["empty", "cut", "garbled", "missing"])
def test_damage_is_noticed(saved, how, tmp_path):
    """Each file in turn: an error that names the checkpoint; or, if nothing depends on the file, the values as they were."""
    network, path = saved
    whole = [v.numpy().tolist() for v in network.variables]
    assert restored(path) == whole
    noticed = 0
    for file in files(path):
        copy = tmp_path / "copy"
        shutil.copytree(path, copy)
        target = copy / file.relative_to(path)
        data = target.read_bytes()
        if how == "missing":
            target.unlink()
        elif how == "garbled":
            target.write_bytes(bytes([byte ^ 0x55 for byte in data]))
        else:
            target.write_bytes(data[: len(data) // 2] if how == "cut" else b"")
        found = restored(copy)
        if isinstance(found, tf.errors.OpError):
            assert str(copy) in str(found)
            noticed += 1
        else:
            assert found == whole, file
        shutil.rmtree(copy)
    assert noticed >= 4


def change_objects(path, change):
    file = Path(path) / "objects" / "metadata"
    objects = json.loads(file.read_text())
    change(objects)
    file.write_text(json.dumps(objects))


DAMAGED = """
import pathlib, sys
import tapejax as tf

path = tf.train.Checkpoint(held=[tf.Variable(tf.fill([5], float(i))) for i in range(40)]).save(sys.argv[1] + "/ck")
file = pathlib.Path(path, "values", "manifest.ocdbt")
whole = file.read_bytes()
for data in 5 * (b"", bytes(255 - x for x in whole)):
    file.write_bytes(data)
    try:
        tf.train.Checkpoint(held=[tf.Variable(tf.zeros([5])) for _ in range(40)]).restore(path)
    except tf.errors.DataLossError:
        print("noticed")
file.write_bytes(whole)
held = [tf.Variable(tf.zeros([5])) for _ in range(40)]
tf.train.Checkpoint(held=held).restore(path).assert_consumed()
print(held[39].numpy())
"""


def test_nothing_follows_the_error_of_a_damaged_checkpoint(tmp_path):
    """Arrays are read at the same time; when one cannot be read, the others' threads find their event loop closed."""
    command = [sys.executable, "-c", DAMAGED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == 10 * ["noticed"] + ["[39. 39. 39. 39. 39.]"]
    assert "Event loop" not in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "change",
    [
        lambda objects: objects["nodes"].clear(),
        lambda objects: objects["nodes"][0]["children"].update(network=1000),
        lambda objects: objects["nodes"][0]["children"].update(network="x"),
        lambda objects: objects["nodes"][0].pop("children"),
        lambda objects: [node["variable"].pop("shape") for node in objects["nodes"] if "variable" in node],
        lambda objects: [node["variable"].update(dtype="no") for node in objects["nodes"] if "variable" in node],
        lambda objects: [node["variable"].update(shape=[7]) for node in objects["nodes"] if "variable" in node],
        lambda objects: [node["variable"].update(dtype="int16") for node in objects["nodes"] if "variable" in node],
        lambda objects: [node["variable"].update(array="v99") for node in objects["nodes"] if "variable" in node],
        lambda objects: objects.update(nodes=3),
        lambda objects: objects.update(version=99),
        lambda objects: objects.update(format="another"),
    ],
)
def test_objects_that_make_no_sense(saved, change):
    change_objects(saved[1], change)
    assert isinstance(restored(saved[1]), tf.errors.DataLossError)


def test_foreign_directories(saved, tmp_path):
    import orbax.checkpoint

    foreign = tmp_path / "orbax"
    with orbax.checkpoint.StandardCheckpointer() as checkpointer:
        checkpointer.save(foreign, {"w": jnp.ones(3)})
    (tmp_path / "tensorflow-1.index").write_bytes(b"")
    (tmp_path / "file").write_text("text")
    for path, message in [
        (foreign, "no checkpoint that tapejax.train wrote"),
        (tmp_path / "tensorflow-1", "TensorFlow wrote"),
        (tmp_path / "file", "no checkpoint that tapejax.train wrote"),
        (tmp_path, r"latest_checkpoint\(directory\)"),
    ]:
        with pytest.raises(tf.errors.DataLossError, match=message):
            tf.train.Checkpoint(network=saved[0]).restore(path)


def test_a_state_file_that_lies(saved, tmp_path, caplog):
    """It is text: it can neither make us run anything nor delete what is no checkpoint."""
    precious = tmp_path / "precious"
    precious.mkdir()
    folder = tmp_path / "kept"
    folder.mkdir()
    (folder / "checkpoint").write_text(
        json.dumps({"model_checkpoint_path": "gone-7", "all_model_checkpoint_paths": ["../precious"]})
    )
    assert tf.train.latest_checkpoint(folder) is None
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(v=tf.Variable(1.0)), folder, max_to_keep=1)
    manager.save()
    assert precious.is_dir() and len(manager.checkpoints) == 1
    for text in (
        'model_checkpoint_path: "ckpt-1"\nall_model_checkpoint_paths: "ckpt-1"\n',
        "\udcff",
        "[]",
        '{"x": 1}',
        "3",
    ):
        (folder / "checkpoint").write_bytes(text.encode(errors="surrogateescape"))
        with pytest.raises(tf.errors.DataLossError, match="which checkpoint is the latest"):
            tf.train.latest_checkpoint(folder)


def test_no_pickles(saved, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise AssertionError("a pickle would be executed")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    assert restored(saved[1]) == [v.numpy().tolist() for v in saved[0].variables]


# ---- saving ---------------------------------------------------------------------------------------------------------


def test_a_failed_save_changes_nothing(tmp_path):
    v = tf.Variable(1.0)
    checkpoint = tf.train.Checkpoint(v=v)
    first = checkpoint.save(tmp_path / "ckpt")
    checkpoint.bad = {1: v}
    with pytest.raises(ValueError, match="its key 1 is not a string"):
        checkpoint.save(tmp_path / "ckpt")
    assert int(checkpoint.save_counter) == 1 and tf.train.latest_checkpoint(tmp_path) == first
    del checkpoint.bad
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError):
        checkpoint.save(tmp_path / "file" / "ckpt")
    assert int(checkpoint.save_counter) == 1


def test_written_anew(tmp_path):
    v = tf.Variable(1.0)
    checkpoint = tf.train.Checkpoint(v=v)
    for value in (1.0, 2.0):
        v.assign(value)
        path = checkpoint.write(tmp_path / "same")
    v.assign(0.0)
    checkpoint.read(path).assert_consumed()
    assert v.numpy() == 2.0


def test_in_the_present_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    assert checkpoint.save("ckpt") == "ckpt-1" and tf.train.latest_checkpoint(".") == "./ckpt-1"
    checkpoint.restore(tf.train.latest_checkpoint(".")).assert_consumed()
    manager = tf.train.CheckpointManager(checkpoint, "./tf_ckpts", max_to_keep=3)
    assert manager.save() == "./tf_ckpts/ckpt-2"


def test_not_in_a_function(tmp_path):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))

    @tf.function
    def save():
        checkpoint.save(tmp_path / "ckpt")

    with pytest.raises(RuntimeError, match="outside"):
        save()


def test_a_tape_sees_nothing_of_it(saved):
    network, path = saved
    x = tf.ones([1, 3])
    checkpoint = tf.train.Checkpoint(network=network)
    with tf.GradientTape() as tape:
        y = network(x)
        checkpoint.restore(path)
        checkpoint.write(path + "-again")
        z = network(x)
    once, twice = tape.gradient([y, z], network.layers[1].b).numpy(), [2.0]
    assert once.tolist() == twice


# ---- restoring ------------------------------------------------------------------------------------------------------


def test_lists_that_grow_later(tmp_path):
    """A list tells nobody that something was added: the status looks again."""
    module = tf.Module()
    module.items = [tf.Variable(1.0), tf.Variable(2.0)]
    path = tf.train.Checkpoint(module=module).save(tmp_path / "ckpt")
    other = tf.Module()
    other.items = [tf.Variable(0.0)]
    status = tf.train.Checkpoint(module=other).restore(path)
    checkpoint = tf.train.Checkpoint(module=other)
    status = checkpoint.restore(path)
    other.items.append(tf.Variable(0.0))
    status.assert_consumed()
    assert [v.numpy() for v in other.items] == [1.0, 2.0]


def test_modules_are_as_before_once_all_is_restored(saved):
    _, path = saved
    status = tf.train.Checkpoint(network=(empty := Network.__new__(Network))).restore(path)
    assert vars(empty)["_waiting"]
    empty.layers = [Dense(3, 4), Dense(4, 1)]
    status.assert_consumed()
    np.testing.assert_array_equal(empty.layers[0].w, saved[0].layers[0].w)
    empty.other = 1
    assert not vars(empty)["_waiting"]


def test_a_later_restoration_takes_the_place_of_an_earlier_one(tmp_path):
    """But for what it has no value for; nothing that is not needed any more is kept."""
    module = tf.Module()
    module.a = tf.Variable(1.0)
    small = tf.train.Checkpoint(module=module).write(tmp_path / "small")
    module.b = tf.Variable(2.0)
    large = tf.train.Checkpoint(module=module).write(tmp_path / "large")
    module.b.assign(3.0)
    same = tf.train.Checkpoint(module=module).write(tmp_path / "same")
    for paths, kept, expected in [((large, small), 1, 2.0), ((large, same), 1, 3.0), ((large, same, large), 1, 2.0)]:
        other = tf.Module()
        other.a = tf.Variable(0.0)
        checkpoint = tf.train.Checkpoint(module=other)
        for path in paths:
            checkpoint.read(path).expect_partial()
        assert len(vars(other)["_waiting"]) == kept
        other.b = tf.Variable(5.0)
        assert other.b.numpy() == expected


def test_two_checkpoints_wait_for_one_module(tmp_path):
    """Each gives the attributes that it has a value for, the later one last."""
    first, second = tf.Module(), tf.Module()
    first.a, first.c, second.b, second.c = (tf.Variable(float(i)) for i in range(1, 5))
    paths = [tf.train.Checkpoint(module=m).write(tmp_path / str(i)) for i, m in enumerate((first, second))]
    module = tf.Module()
    held = [tf.train.Checkpoint(module=module) for _ in paths]
    for checkpoint, path in zip(held, paths):
        checkpoint.read(path).expect_partial()
    module.a, module.b, module.c = tf.Variable(0.0), tf.Variable(0.0), tf.Variable(0.0)
    assert [v.numpy() for v in (module.a, module.b, module.c)] == [1.0, 3.0, 4.0]


def test_values_that_nobody_took_are_told(saved, caplog):
    _, path = saved
    with caplog.at_level(logging.WARNING, "tapejax"):
        tf.train.Checkpoint(other=tf.Variable(1.0)).restore(path).expect_partial()
        gc.collect()
        assert not caplog.records
        tf.train.Checkpoint(other=tf.Variable(1.0)).restore(path)
        gc.collect()
    assert "network/layers/0/b" in caplog.text and "expect_partial" in caplog.text


def test_the_other_width(tmp_path):
    """A checkpoint of a program with 64-bit types, read by one without: narrowed, as all else is there."""
    with jax.enable_x64(True):
        v = tf.Variable(np.arange(3), dtype=tf.int64)
        path = tf.train.Checkpoint(v=v).save(tmp_path / "ckpt")
        assert tf.train.load_variable(path, "save_counter/.ATTRIBUTES/VARIABLE_VALUE").dtype == np.int64
    checkpoint = tf.train.Checkpoint(v=tf.Variable([0, 0, 0]))
    checkpoint.restore(path).assert_consumed()
    assert checkpoint.v.numpy().tolist() == [0, 1, 2] and int(checkpoint.save_counter) == 1
    narrow = checkpoint.save(tmp_path / "ckpt")
    with jax.enable_x64(True):
        again = tf.train.Checkpoint(v=tf.Variable([0, 0, 0]))
        again.restore(narrow).assert_consumed()
        assert int(again.save_counter) == 2


def test_variables_of_any_shape(tmp_path):
    v = tf.Variable([1.0, 2.0], shape=[None])
    path = tf.train.Checkpoint(v=v).save(tmp_path / "ckpt")
    v.assign([5.0])
    tf.train.Checkpoint(v=v).restore(path).assert_consumed()
    assert v.numpy().tolist() == [1.0, 2.0]


def test_a_loaded_model(tmp_path):
    """What `saved_model.load` gives is a module like others."""
    pytest.importorskip("flatbuffers")
    module = Network()
    tf.saved_model.save(module, tmp_path / "model")
    loaded = tf.saved_model.load(tmp_path / "model")
    path = tf.train.Checkpoint(network=module).save(tmp_path / "ckpt")
    loaded.layers[0].w.assign(tf.zeros([3, 4]))
    tf.train.Checkpoint(network=loaded).restore(path).assert_consumed()
    np.testing.assert_array_equal(loaded.layers[0].w, module.layers[0].w)


SHARDED = """
import sys, jax, numpy as np, tapejax as tf
from jax.sharding import NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
place = NamedSharding(mesh, P("data"))
v = tf.Variable(jax.device_put(np.arange(16.0, dtype="float32"), place))
checkpoint = tf.train.Checkpoint(v=v)
path = checkpoint.save(sys.argv[1])
v.assign_sub(v)
checkpoint.restore(path).assert_consumed()
assert v.numpy().tolist() == list(range(16))
assert v.value._array.sharding.is_equivalent_to(place, 1), v.value._array.sharding
"""


def test_spread_over_devices(tmp_path):
    """Variables stay where they are; and what eight devices saved, one restores."""
    environment = ENVIRONMENT | {"JAX_NUM_CPU_DEVICES": "8"}
    command = [sys.executable, "-c", SHARDED, str(tmp_path / "ckpt")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    v = tf.Variable(tf.zeros(16))
    tf.train.Checkpoint(v=v).restore(tmp_path / "ckpt-1").assert_consumed()
    assert v.numpy().tolist() == list(range(16))


def test_what_is_missing_is_named():
    with pytest.raises(AttributeError, match="optax.ema"):
        tf.train.ExponentialMovingAverage  # noqa: B018
    with pytest.raises(AttributeError, match="tf.train.nonsense"):
        tf.train.nonsense  # noqa: B018
