"""`python -m tapejax check PATH...`: what of a program tapejax has, read from its text."""

import importlib.util
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tapejax
from tapejax.__main__ import main
from tapejax.tools.cli.check import check

ROOT = Path(tapejax.__file__).parents[1]


def seen(source, status=None):
    """The names in a program, each with its line, of one status or of all."""
    uses = check("import tensorflow as tf\n" + source).uses
    return [(use.line - 1, use.name) for use in uses if status in (None, use.status)]


# ---- a program with made-up gaps

GAPS = """
import numpy as np
import tensorflow as tf
import tensorflow_hub as hub
from tensorflow import imaginary, math as m
from tensorflow.linalg import inv, made_up
import tensorflow.no_such.module as nothing

nn = tf.nn

class Model(tf.Module):
    activation = staticmethod(nn.relu)

    def __call__(self, x):
        return self.activation(tf.matmul(x, inv(x)) + m.squared(x))

@tf.function
def step(model, x, tf_text=tf.strings.join):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x), axes=[0])
    return [tf.clip_by_value(g, -1.0, 1.0) for g in tape.gradient(loss, model.trainable_variables)]

def shadowed(tf, nn):
    return tf.whatever(nn.whatever)

print(hub.load("x"), made_up(np.ones(3)), tf.lookup.StaticHashTable(1, 2), tf.Session())
"""
MISSING = [
    (4, 8, "tensorflow_hub", "keras.applications"),
    (5, 24, "tf.imaginary", None),
    (6, 36, "tf.linalg.made_up", None),
    (7, 8, "tf.no_such.module", None),
    (15, 55, "tf.math.squared", None),
    (18, 28, "tf.strings.join", "Python's strings"),
    (20, 41, "tf.reduce_mean(axes=)", "the arguments input_tensor, axis"),
    (26, 22, "tf.linalg.made_up", None),
    (26, 43, "tf.lookup.StaticHashTable", "a Python dict"),
    (26, 76, "tf.Session", "jax.jit to compile"),
]


def test_exactly_the_gaps_are_reported():
    report = check(GAPS)
    missing = [use for use in report.uses if use.status == "missing"]
    assert [(use.line, use.column, use.name) for use in missing] == [gap[:3] for gap in MISSING]
    for use, (*_, advice) in zip(missing, MISSING):
        assert use.use is None if advice is None else advice in use.use
    supported = {use.name for use in report.uses if use.status == "supported"}
    assert supported == {
        *("tf.math", "tf.linalg.inv", "tf.nn", "tf.Module", "tf.nn.relu", "tf.matmul", "tf.function"),
        *("tf.GradientTape", "tf.GradientTape.gradient", "tf.reduce_mean", "tf.clip_by_value"),
    }


def test_the_report_for_people(tmp_path, capsys):
    (tmp_path / "gaps.py").write_text(GAPS)
    assert main(["check", str(tmp_path / "gaps.py")]) == 1
    first, *rows, last = capsys.readouterr().out.splitlines()
    assert first == f"{tmp_path / 'gaps.py'}: 9 missing, 11 supported"
    assert len(rows) == 9 and "when the program runs" in last
    assert rows[2].split() == "missing tf.linalg.made_up 6:36, 26:22 there is nothing in its place".split()
    assert rows[-1].split() == "missing tf.Session 26:76 use jax.jit to compile; without it JAX runs at once".split()

    assert main(["check", "--all", str(tmp_path / "gaps.py")]) == 1
    assert "  supported  tf.clip_by_value" in capsys.readouterr().out


def test_the_report_for_tools(tmp_path, capsys):
    (tmp_path / "gaps.py").write_text(GAPS)
    (tmp_path / "bad.py").write_text("x = = 1")
    assert main(["check", "--json", str(tmp_path / "gaps.py"), str(tmp_path / "bad.py")]) == 2
    report = json.loads(capsys.readouterr().out)
    assert list(report) == ["schema", "files", "counts"] and report["schema"] == 1
    gaps, bad = report["files"]
    assert bad == {"path": str(tmp_path / "bad.py"), "error": "line 1: invalid syntax", "names": []}
    assert gaps["error"] is None
    assert gaps["names"][0] == {
        "cell": None,
        "line": 4,
        "column": 8,
        "name": "tensorflow_hub",
        "status": "missing",
        "use": "keras.applications or keras_hub, which have pretrained models for JAX",
    }
    assert report["counts"] == {
        "files": 2,
        "unreadable": 1,
        "supported": sum(name["status"] == "supported" for name in gaps["names"]),
        "missing": len(MISSING),
        "unchecked": 0,
    }


# ---- what a name stands for


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("tf.sin(tf.cos(1.0))", [(1, "tf.sin"), (1, "tf.cos")]),
        ("layers = tf.nn\nlayers.relu", [(1, "tf.nn"), (2, "tf.nn.relu")]),
        ("a, b = tf.nn, 3\na.relu; b.relu", [(1, "tf.nn"), (2, "tf.nn.relu")]),
        ("import tensorflow.math\ntensorflow.math.sin", [(1, "tf.math"), (2, "tf.math.sin")]),
        ("def f():\n    from tensorflow import nn\n    nn.relu\nnn.relu", [(2, "tf.nn"), (3, "tf.nn.relu")]),
        ("(m := tf.math).sin\nm.cos", [(1, "tf.math"), (2, "tf.math.cos")]),
        ("f(lambda x: tf.sin(x))", [(1, "tf.sin")]),
        ("x: tf.Tensor = 1", [(1, "tf.Tensor")]),
        ("def f(x: tf.Tensor, *, y=tf.sin) -> tf.Variable: pass", [(1, "tf.Tensor"), (1, "tf.sin"), (1, "tf.Variable")]),
        ("x.tf.sin; tensorflow.sin; self.tf", []),
        ("f(tf); tf", []),
        # shadowing
        ("def f(tf): tf.sin", []),
        ("lambda tf: tf.sin", []),
        ("[tf.sin for tf in range(3)]\ntf.cos", [(2, "tf.cos")]),
        ("import jax.numpy as tf\ntf.sin", []),
        ("for tf in range(3):\n    tf.sin", []),
        ("def f():\n    tf = 3\n    tf.sin\ntf.cos", [(4, "tf.cos")]),
        ("class A:\n    tf = 3\n    tf.sin\n    def f(self): tf.cos", [(4, "tf.cos")]),
        ("with open('x') as tf: tf.read", []),
        ("try: pass\nexcept E as tf: tf.sin", []),
        # either of two
        ("nn = tf.nn if x else tf.math\nnn.tanh", [(1, "tf.nn"), (1, "tf.math"), (2, "tf.math.tanh"), (2, "tf.nn.tanh")]),
        ("if x:\n    tf = None\ntf.sin", [(3, "tf.sin")]),
        ("try:\n    import tensorflow.math as m\nexcept ImportError:\n    m = None\nm.sin", [(2, "tf.math"), (5, "tf.math.sin")]),
        ("match x:\n    case 1: tf = 2\n    case tf.sin: pass\ntf.cos", [(3, "tf.sin"), (4, "tf.cos")]),
        ("try:\n    import tensorflow.math as m\nexcept ImportError:\n    import tensorflow.nn as m\nm.tanh",
         [(2, "tf.math"), (4, "tf.nn"), (5, "tf.math.tanh"), (5, "tf.nn.tanh")]),
        ("if x:\n    [tf.sin for tf in range(3)]\ntf.cos", [(3, "tf.cos")]),
        ("match x:\n    case [*tf]: tf.sin\ntf.cos", []),
        # functions run later
        ("def f(): m.sin\nm = tf.math", [(1, "tf.math.sin"), (2, "tf.math")]),
        ("from tensorflow import *\nsin(1.0); nonsense(2)", [(2, "tf.sin")]),
    ],
)  # fmt: skip
def test_names_are_followed(source, names):
    assert [(line, name) for line, name in seen(source)] == names


def test_a_ported_program_is_read_like_the_original():
    report = check("import tapejax as tf\ntf.sin(1.0)\ntf.no_such")
    assert [(use.name, use.status) for use in report.uses] == [("tf.sin", "supported"), ("tf.no_such", "missing")]
    (use,) = check("from tapejax import tools, no_such\ntools.cli.runner.run('p.py')").uses
    assert (use.column, use.name, use.status) == (28, "tf.no_such", "missing")


@pytest.mark.parametrize(
    ("source", "arguments"),
    [
        ("tf.nn.relu(1.0, alpha=2)", ["tf.nn.relu(alpha=)"]),
        ("tf.nn.relu(features=1.0, name='x')", []),
        ("tf.nn.relu(**options); tf.nn.relu(*arguments)", []),
        ("tf.sin(1.0, 'name', 3)", ["tf.sin(argument 3)"]),
        ("tf.sin(x, *y, z)", []),
        ("@tf.function(no_such=True)\ndef f(): pass", ["tf.function(no_such=)"]),
        ("tf.no_such(a=1)", ["tf.no_such"]),
    ],
)
def test_arguments_that_there_are_not(source, arguments):
    assert [name for _, name in seen(source, "missing")] == arguments


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("tf.sin(1.0).numpy()", [(1, "tf.sin"), (1, "tf.Tensor.numpy")]),
        ("(tf.sin(1.0)\n  .numpy())", [(1, "tf.sin"), (2, "tf.Tensor.numpy")]),
        ("x = tf.sin(1.0)\nx.no_such()\nx.shape.rank; x", [(1, "tf.sin"), (2, "!tf.Tensor.no_such"), (3, "tf.Tensor.shape")]),
        ("v = tf.Variable(1.0)\nv.assign(2.0).no_such", [(1, "tf.Variable"), (2, "tf.Variable.assign")]),
        ("with tf.GradientTape() as tape: pass\ntape.gradients(1)", [(1, "tf.GradientTape"), (2, "!tf.GradientTape.gradients")]),
        ("tape = tf.GradientTape()\ntape.gradient(1, 2, sources=3, no=4)",
         [(1, "tf.GradientTape"), (2, "tf.GradientTape.gradient"), (2, "!tf.GradientTape.gradient(no=)")]),
        ("t = tf.TensorShape([3])\nt.concatenate([2], 3)",
         [(1, "tf.TensorShape"), (2, "tf.TensorShape.concatenate"), (2, "!tf.TensorShape.concatenate(argument 2)")]),
        ("x = tf.sin(1.0)\nx.note = 3", [(1, "tf.sin")]),
        ("m = tf.Module()\nm.name, m._name", [(1, "tf.Module"), (2, "tf.Module.name"), (2, "tf.Module._name")]),
        ("class M(tf.Module): pass\nM().anything", [(1, "tf.Module")]),
        ("m = tf.Module()\nm.f = 3\nm.f; m.g", [(1, "tf.Module"), (3, "!tf.Module.g")]),
        ("f(tf.sin(x=tf.cos(1.0))).numpy", [(1, "tf.sin"), (1, "tf.cos")]),
    ],
)  # fmt: skip
def test_methods_of_what_is_known(source, names):
    uses = check("import tensorflow as tf\n" + source).uses
    found = [(use.line - 1, "!" * (use.status == "missing") + use.name) for use in uses]
    assert found == names


def test_methods_of_datasets():
    if importlib.util.find_spec("grain") is None:
        pytest.skip("Grain is not installed")
    source = """
data = tf.data.Dataset.range(10)
data = data.shuffle(3).batch(2).no_such()
for x in data.take(2): x
data.anything
"""
    names = ["range", "shuffle", "batch", "no_such"]
    assert [name for _, name in seen(source)] == [f"tf.data.Dataset.{name}" for name in names]
    assert [name for _, name in seen(source, "missing")] == ["tf.data.Dataset.no_such"]


def test_columns_count_characters():
    (use,) = check("import tensorflow as tf\nx = 'é'; tf.sin(x)").uses
    assert (use.line, use.column) == (2, 10)
    (use,) = check("# coding: latin-1\nimport tensorflow as tf\ntf.sin('é')".encode("latin-1")).uses
    assert (use.line, use.column) == (3, 1)


def test_nothing_of_the_program_runs(tmp_path, capsys):
    (tmp_path / "p.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nimport tensorflow as tf\ntf.sin(1.0)")
    assert main(["check", str(tmp_path / "p.py")]) == 0
    assert not (tmp_path / "ran").exists()
    assert "1 supported" in capsys.readouterr().out


# ---- what a run would come to


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("tf.constant('a'); tf.constant([['a', 'b']]); tf.convert_to_tensor(b'a')", {"string"}),
        ("tf.constant([1.0], name='a')", set()),
        ("g = tf.get_default_graph()", {"tf.get_default_graph"}),
        ("tf.compat.v1.disable_eager_execution()", {"tf.compat.v1.disable_eager_execution"}),
        ("assert tf.__version__ >= '2'", set()),
        ("tf.saved_model.save(tf.Module(), 'd')", set()),
        ("x = tf.constant(1.0)\nx = tf.Variable(x)\ndef f():\n    x.assign_sub(1.0); x.no_such()", {"no_such"}),
        ("x = tf.constant(1.0)\nx.assign_sub(1.0)", {"tf.Tensor.assign_sub"}),
        ("z = tf.zeros_initializer()\nv = tf.Variable(z(shape=[2], dtype='float32'))\nv.assign_sub(v)", set()),
        ("tf.zeros_initializer(shape=[2])", {"shape="}),
    ],
)
def test_what_a_run_would_meet(source, names):
    missing = [name for _, name in seen(source, "missing")]
    assert all(any(part in name for name in missing) for part in names), missing
    assert all(any(part in name for part in names) for name in missing), missing


# ---- Keras


def in_a_new_process(code, cwd=ROOT):
    """Keras has one backend a process, and the tests' own may have loaded it with TensorFlow's."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    return subprocess.run([sys.executable, "-c", code], cwd=cwd, env=env, capture_output=True, text=True, timeout=120)


def test_without_keras_its_names_are_unchecked(tmp_path):
    code = """
import sys
class NoKeras:  # as if it were not installed
    def find_spec(name, path=None, target=None):
        if name == "keras":
            raise ModuleNotFoundError("No module named 'keras'")
sys.meta_path.insert(0, NoKeras)
from tapejax.__main__ import main
sys.exit(main(["check", "p.py"]))
"""
    (tmp_path / "p.py").write_text("import tensorflow as tf\ntf.keras.layers.Dense(3)\ntf.sin(1.0)")
    done = in_a_new_process(code, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "p.py: 1 unchecked, 1 supported" in done.stdout and "tapejax[keras]" in done.stdout


# ---- files, notebooks, folders


def notebook(*cells):
    return json.dumps({"cells": [{"cell_type": "code", "source": cell} for cell in cells], "nbformat": 4})


def test_notebooks_tell_the_cell(tmp_path, capsys):
    cells = [
        "%matplotlib inline\n!pip install x\nimport tensorflow as tf",
        " \n",
        "\ntf.no_such",
        "%%time\ntf.sin(tf.gone)",
    ]
    (tmp_path / "book.ipynb").write_text(notebook(*cells))
    assert main(["check", str(tmp_path / "book.ipynb")]) == 1
    out = capsys.readouterr().out
    assert "tf.no_such  cell 2, 2:1" in out and "tf.gone     cell 3, 2:8" in out
    uses = check(notebook(*cells), "book.ipynb").uses
    assert [(use.cell, use.line, use.name) for use in uses] == [
        (2, 2, "tf.no_such"),
        (3, 2, "tf.sin"),
        (3, 2, "tf.gone"),
    ]


def test_folders_are_searched_for_programs(tmp_path, capsys):
    for name in [
        "a.py",
        "deep/b.py",
        ".hidden/c.py",
        "venv/lib/site-packages/d.py",
        "__pycache__/e.py",
        "deep/notes.txt",
    ]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("import tensorflow as tf\ntf.sin(1.0)")
    (tmp_path / "deep" / "c.ipynb").write_text(notebook("import tensorflow as tf", "tf.cos(1.0)"))
    (tmp_path / "plain.py").write_text("x = 1")
    assert main(["check", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "4 files: 2 supported" in out and "plain.py" not in out
    assert main(["check", "--json", str(tmp_path)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [Path(file["path"]).name for file in report["files"]] == ["a.py", "plain.py", "b.py", "c.ipynb"]


def test_standard_input(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"import tensorflow as tf\ntf.no_such")))
    assert main(["check", "-"]) == 1
    assert "<stdin>: 1 missing" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("bad.py", b"def f(:\n", "line 1: invalid syntax"),
        ("bytes.py", b"x = '\xff'", "cannot be read"),
        ("null.py", b"x = 1\0", "null bytes"),
        ("two.py", b"print 'two'", "line 1: Missing parentheses"),
        ("bad.ipynb", b"{", "not JSON"),
        ("old.ipynb", b"{}", "format 4"),
        ("cell.ipynb", notebook("x = 1", "\nx = = 1").encode(), "line 2: cell 2: invalid syntax"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path, capsys, name, text, words):
    (tmp_path / name).write_bytes(text)
    assert main(["check", str(tmp_path / name)]) == 2
    assert words in capsys.readouterr().out


def test_a_file_that_is_not_there(tmp_path, capsys):
    assert main(["check", str(tmp_path / "absent.py")]) == 2
    assert "absent.py: cannot be read: No such file" in capsys.readouterr().out


# ---- what Keras has, and what is refused ----


@pytest.mark.parametrize(
    "text",
    [
        "import tensorflow as tf\ntf.keras.layers.StringLookup()",
        "from tensorflow.keras.layers import StringLookup\n",
        "from tensorflow.keras import layers as L\nL.StringLookup",
        "import keras\nkeras.layers.StringLookup()",
        "import keras.layers\nkeras.layers.StringLookup()",
        "import keras.layers as L\nL.StringLookup",
        "from keras import layers\nlayers.StringLookup()",
        "from keras.layers import StringLookup",
    ],
)
def test_what_is_refused_is_listed(text):
    uses = [use for use in check(text).uses if use.status == "missing"]
    assert [use.name for use in uses] == ["tf.keras.layers.StringLookup"]
    assert uses[0].use.startswith("a Python dict")


def test_what_tensorflow_computes_is_unchecked(tmp_path):
    """In a process of its own: this one may have Keras with another backend."""
    pytest.importorskip("keras")
    program = tmp_path / "program.py"
    program.write_text(
        "import tensorflow as tf, keras.src, kerastuner\ntf.keras.layers.Hashing(3), tf.keras.layers.Dense(3)\n"
    )
    environment = {key: value for key, value in os.environ.items() if not key.startswith("KERAS_")}
    command = [sys.executable, "-m", "tapejax", "check", "--json", str(program)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    found = {use["name"]: use for use in json.loads(done.stdout)["files"][0]["names"]}
    assert {name: use["status"] for name, use in found.items()} == {
        "tf.keras.layers.Hashing": "unchecked",
        "tf.keras.layers.Dense": "supported",
    }
    assert "is computed by TensorFlow, which has to be installed" in found["tf.keras.layers.Hashing"]["use"]
