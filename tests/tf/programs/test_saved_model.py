"""`tapejax.saved_model`: in a new process, with nothing of the Python code; damaged directories; what is in the files."""

import hashlib
import io
import json
import os
import pickle
import shutil
import subprocess
import sys
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tapejax as tf
from tapejax.tf.programs.description import Format

pytest.importorskip("flatbuffers", reason="jax.export serializes with flatbuffers")


@tf.custom_gradient
def clip(x):
    return x * 1.0, lambda dy: tf.clip_by_value(dy, -1.0, 1.0)


class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="w")
        self.half = tf.Variable(np.ones(2), dtype=tf.bfloat16, trainable=False)
        self.calls = tf.Variable(0, trainable=False)

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32)])
    def __call__(self, x):
        self.calls.assign_add(1)
        return tf.tanh(x @ self.w)

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def clipped(self, x):
        return clip(x * x) * 5.0

    @tf.function(input_signature=[])
    def draw(self):
        return tf.random.uniform([2])


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    net = Net()
    tf.saved_model.save(net, folder)
    return net, folder


def elsewhere(code, *arguments):
    done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


CODE = """
import json, sys
import tapejax as tf
loaded = tf.saved_model.load(sys.argv[1])
x = tf.constant([[0.1, 0.2], [0.3, -0.4]])
with tf.GradientTape() as outer:
    outer.watch(x)
    with tf.GradientTape(persistent=True) as inner:
        inner.watch(x)
        y = loaded(x)
    d = inner.gradient(y, x)
z = tf.constant(3.0)
with tf.GradientTape() as tape:
    tape.watch(z)
    c = loaded.clipped(z)
try:
    clipped = float(tape.gradient(c, z))
except LookupError as error:
    clipped = str(error)
print(json.dumps({
    "y": y.numpy().tolist(), "d": d.numpy().tolist(), "dw": inner.gradient(y, loaded.w).numpy().tolist(),
    "dd": outer.gradient(d, x).numpy().tolist(), "clipped": clipped, "c": float(c), "calls": int(loaded.calls),
    "half": loaded.half.dtype.name, "draws": [loaded.draw().numpy().tolist() for _ in range(2)],
}))
"""


def test_gradients_in_a_new_process(saved):
    net, folder = saved
    x = tf.constant([[0.1, 0.2], [0.3, -0.4]])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape(persistent=True) as inner:
            inner.watch(x)
            y = net(x)
        d = inner.gradient(y, x)
    found = elsewhere(CODE, folder)
    np.testing.assert_allclose(found["y"], y, rtol=1e-6)
    np.testing.assert_allclose(found["d"], d, rtol=1e-6)
    np.testing.assert_allclose(found["dw"], inner.gradient(y, net.w), rtol=1e-6)
    np.testing.assert_allclose(found["dd"], outer.gradient(d, x), rtol=1e-5)
    assert found["clipped"] == 6.0 and found["c"] == 45.0 and found["calls"] == 1 and found["half"] == "bfloat16"
    assert found["draws"][0] != found["draws"][1]


def test_without_custom_gradients_asking_is_a_lookup_error(tmp_path):
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
    tf.saved_model.save(Net(), tmp_path, options=options)
    found = elsewhere(CODE, tmp_path)
    assert found["c"] == 45.0
    assert "clipped" in found["clipped"] and "experimental_custom_gradients" in found["clipped"]
    assert np.shape(found["d"]) == (2, 2)  # the other functions have their gradients


def test_loaded_functions_in_jax(saved):
    net, folder = saved
    loaded = tf.saved_model.load(folder)
    x = jnp.array([[0.1, 0.2]])
    expected = jnp.tanh(x @ net.w._array)
    clipped = lambda z: jnp.asarray(loaded.clipped(z))  # noqa: E731
    np.testing.assert_allclose(jax.grad(clipped)(0.1), 0.2, rtol=1e-6)
    np.testing.assert_allclose(jax.vmap(clipped)(jnp.array([1.0, 2.0])), [5.0, 20.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = loaded(x)
    np.testing.assert_allclose(y, expected, rtol=1e-6)
    jacobian = jax.jacobian(lambda x: jnp.tanh(x @ net.w._array))(x)
    np.testing.assert_allclose(tape.jacobian(y, x), jacobian, rtol=1e-5)


def test_a_loaded_function_inside_a_function(saved):
    _, folder = saved
    loaded = tf.saved_model.load(folder)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(loaded(x))
        loaded.w.assign_sub(tape.gradient(loss, loaded.w))
        return loss

    before = loaded.w.numpy()
    step(tf.ones([1, 2])), step(tf.ones([1, 2]))
    assert loaded.calls.numpy() == 2 and (loaded.w.numpy() < before).all()


def test_third_derivatives_are_not_there(saved):
    _, folder = saved
    loaded = tf.saved_model.load(folder)
    x = tf.constant([[0.1, 0.2]])
    with tf.GradientTape() as third:
        third.watch(x)
        with tf.GradientTape() as second:
            second.watch(x)
            with tf.GradientTape() as first:
                first.watch(x)
                y = loaded(x)
            d = first.gradient(y, x)
        dd = second.gradient(d, x)
    with pytest.raises(LookupError, match="order 2"):
        third.gradient(dd, x)


def test_what_jax_cannot_export_a_derivative_of(tmp_path):
    """The program is saved all the same, and asking for its gradient says why there is none."""
    module = tf.Module()
    module.v = tf.Variable(2.0)
    spec = [tf.TensorSpec([])]
    module.loop = tf.function(lambda x: jax.lax.while_loop(lambda x: x < 9.0, lambda x: x * module.v, x._array), spec)
    tf.saved_model.save(module, tmp_path)
    loaded, x = tf.saved_model.load(tmp_path), tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = loaded.loop(x)
    assert float(y) == 12.0
    with pytest.raises(LookupError, match="Reverse-mode"):
        tape.gradient(y, x)


def test_integers_beside_floats(tmp_path):
    """Arguments, results and variables that are integers have no gradient, and leave those of the others alone."""
    module = tf.Module()
    module.v, module.n = tf.Variable(2.0), tf.Variable(3)

    @tf.function(input_signature=[tf.TensorSpec([None]), tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.bool)])
    def mixed(x, k, flag):
        sign = tf.where(flag, 1.0, -1.0)
        return k + module.n, sign * module.v * x**3 * tf.cast(k * module.n, tf.float32), tf.floor(x)

    module.mixed = mixed
    tf.saved_model.save(module, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    answers = []
    for model in (module, loaded):
        x, k = tf.constant([1.0, 2.0]), tf.constant(2)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape(persistent=True) as tape:
                tape.watch([x, k])
                found = model.mixed(x, k, tf.constant(False))
            first = tape.gradient(found[1], [x, model.v])
        assert tape.gradient(found[1], [k, model.n]) == [None, None]
        answers.append([*found, *first, outer.gradient(first, x)])
    for one, other in zip(*answers):
        np.testing.assert_array_equal(one, other)


def test_the_files_are_data(saved):
    _, folder = saved
    names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert names[-2] == "saved_model.json" and names[-1].startswith("variables-")
    assert all(name.endswith(".stablehlo") for name in names[:-2])
    with zipfile.ZipFile(_variables(folder)) as archive:
        assert all(name.endswith(".npy") for name in archive.namelist())


def test_nothing_is_unpickled(saved, tmp_path, monkeypatch):
    _, folder = saved

    def refuse(*_, **__):
        raise AssertionError("pickle was used")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    tf.saved_model.load(folder)

    # an array of objects, which NumPy would unpickle, is refused
    copy = tmp_path / "evil"
    shutil.copytree(folder, copy)
    monkeypatch.undo()
    names = json.loads((copy / "saved_model.json").read_text())["dtypes"]
    np.savez(_variables(copy), **{name: np.array([print], dtype=object) for name in names})
    _restamp(copy)
    with pytest.raises(OSError, match="Object arrays cannot be loaded"):
        tf.saved_model.load(copy)


def _variables(folder):
    (file,) = folder.glob("variables-*.npz")
    return file


def _programs(folder):
    return sorted(folder.glob("functions/*.stablehlo"))


def _restamp(folder, change=lambda manifest: None):
    """Digests that fit the files as they are now, as somebody writes them who means to deceive."""
    manifest = json.loads((folder / "saved_model.json").read_text())
    for name in manifest["files"]:
        data = (folder / name).read_bytes()
        manifest["files"][name] = hashlib.sha256(data).hexdigest()
    change(manifest)
    manifest.pop("sha256")
    seal = Format("tapejax.saved_model", 1, "", OSError, "", "").seal
    (folder / "saved_model.json").write_text(json.dumps(seal(manifest)))


def _edit(**changes):
    return lambda folder: _restamp(folder, lambda manifest: manifest.update(changes))


def _truncate(file):
    file.write_bytes(file.read_bytes()[:100])


def _flip(file, where=0.5):
    data = bytearray(file.read_bytes())
    data[int(len(data) * where)] ^= 1
    file.write_bytes(data)


def _pipe(file):
    file.unlink()
    os.mkfifo(file)


def _absurd(folder):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (1 << 40,)})
    with zipfile.ZipFile(_variables(folder), "w") as archive:
        for name in json.loads((folder / "saved_model.json").read_text())["dtypes"]:
            archive.writestr(f"{name}.npy", header.getvalue())
    _restamp(folder)


DAMAGE = {
    "truncated variables": (lambda folder: _truncate(_variables(folder)), "not what was written"),
    "changed variables": (lambda folder: _flip(_variables(folder)), "not what was written"),
    "truncated program": (lambda folder: _truncate(_programs(folder)[1]), r"functions/\w+\.stablehlo is not what"),
    "missing program": (lambda folder: _programs(folder)[2].unlink(), "missing"),
    "a pipe": (lambda folder: _pipe(_programs(folder)[0]), "missing"),
    "an absurd size": (_absurd, "shape"),
    "truncated manifest": (lambda folder: _truncate(folder / "saved_model.json"), "no JSON"),
    "nested too deeply": (lambda folder: (folder / "saved_model.json").write_text("[" * 100_000), "no JSON"),
    "a tuple in itself": (_edit(nodes=[{"kind": "tuple", "children": [[0, 0]]}]), "is inconsistent"),
    "another format": (_edit(format="other"), "not written by"),
    "a list": (lambda folder: (folder / "saved_model.json").write_text("[]"), "not written by"),
    "a later version": (_edit(version=99), "version 99"),
    "an earlier version": (_edit(version=0), "version 0 of the format; this tapejax reads version 1"),
    "no nodes": (_edit(nodes=[]), "is inconsistent"),
    "odd nodes": (_edit(nodes=[{"kind": "exec"}]), "is inconsistent"),
    "a file outside": (_edit(files={"../../etc/passwd": ""}), "names a file"),
    "a model of TensorFlow": (
        lambda folder: ((folder / "saved_model.json").unlink(), (folder / "saved_model.pb").write_bytes(b"")),
        "TensorFlow",
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_and_foreign_directories(saved, tmp_path, name):
    _, folder = saved
    damage, says = DAMAGE[name]
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    damage(copy)
    with pytest.raises(OSError, match=says):
        tf.saved_model.load(copy)


def test_a_changed_description(saved, tmp_path):
    """Another letter in the name of an attribute, say, is JSON still."""
    _, folder = saved
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    text = (copy / "saved_model.json").read_text()
    assert '"calls"' in text
    (copy / "saved_model.json").write_text(text.replace('"calls"', '"calms"'))
    with pytest.raises(OSError, match="saved_model.json is not what was written"):
        tf.saved_model.load(copy)


def test_a_missing_directory(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        tf.saved_model.load(tmp_path / "nowhere")
    assert not tf.saved_model.contains_saved_model(tmp_path / "nowhere")


def test_contains_saved_model(saved, tmp_path):
    _, folder = saved
    assert tf.saved_model.contains_saved_model(folder) and not tf.saved_model.contains_saved_model(tmp_path)


def test_a_function_that_prints_cannot_be_saved(tmp_path):
    module = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
    def f(x):
        jax.debug.print("x = {}", x._array)
        return x

    module.f = f
    with pytest.raises(ValueError, match=r"root\.f cannot be exported"):
        tf.saved_model.save(module, tmp_path)


def test_traces_called_with_objects_are_left_out(tmp_path, caplog):
    module = tf.Module()
    module.f = tf.function(lambda x, option: x * 2.0)
    module.f(tf.constant(1.0), 1)
    module.f(tf.constant(1.0), object)
    tf.saved_model.save(module, tmp_path)
    assert "root.f is not saved" in caplog.text
    assert tf.saved_model.load(tmp_path).f(tf.constant(1.0), 1).numpy() == 2.0


def test_integers_and_a_loop_of_any_length(tmp_path):
    module = tf.Module()

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32), tf.TensorSpec([], tf.int32)])
    def f(x, n):
        return tf.while_loop(lambda i, t: i < n, lambda i, t: (i + 1, t * x), (tf.constant(0), tf.constant(1.0)))

    module.power, module.next = f, tf.function(lambda n: n + 1, input_signature=[tf.TensorSpec([], tf.int32)])
    tf.saved_model.save(module, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        _, y = loaded.power(x, 3)
    assert y.numpy() == 8.0 and loaded.next(3).numpy() == 4
    assert tape.gradient(y, x).numpy() == 12.0


def test_slices_of_a_batch_of_any_size(tmp_path):
    def parts(x):
        return x[:, 0] + x[..., 1], x[1:], x[:-1], x[-1:], x[:, ::-1], x[:, 1:], x[None, :, tf.newaxis]

    module = tf.Module()
    module.parts = tf.function(parts, input_signature=[tf.TensorSpec([None, 3])])
    tf.saved_model.save(module, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    for rows in (2, 5):
        x = tf.reshape(tf.range(3.0 * rows), [rows, 3])
        for found, expected in zip(loaded.parts(x), parts(x)):
            np.testing.assert_array_equal(found, expected)
    module.parts = tf.function(lambda x: x[::2], input_signature=[tf.TensorSpec([None, 3])])
    with pytest.raises(tf.errors.InvalidArgumentError, match="has the unknown length .*its slice must have step 1"):
        tf.saved_model.save(module, tmp_path)


def test_a_pole_keeps_its_derivatives(tmp_path):
    """Zero passes through the infinite slope of a root in a saved program, too; there is a second derivative elsewhere."""
    module = tf.Module()
    module.root = tf.function(lambda x: tf.where(x > 0.0, tf.sqrt(x), 0.0), [tf.TensorSpec([2])])
    tf.saved_model.save(module, tmp_path)
    root, x = tf.saved_model.load(tmp_path).root, tf.constant([0.0, 4.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = root(x)
        slope = tape.gradient(y, x)
    np.testing.assert_array_equal(slope, [0.0, 0.25])
    np.testing.assert_allclose(outer.gradient(slope, x)[1], -1 / 32)
