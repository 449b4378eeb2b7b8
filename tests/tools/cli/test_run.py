"""`python -m tapejax run PROGRAM.py`: the program finds TensorFlow's world, and Python's own."""

import builtins
import gc
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import types
from pathlib import Path

import jax
import pytest

import tapejax
from tapejax.__main__ import main
from tapejax.tools.cli import runner


@pytest.fixture
def run(tmp_path):
    """run(source, *arguments) runs a program of that source in this process and returns the exit status."""

    def run(source, *arguments):
        program = tmp_path / "program.py"
        program.write_text(source)
        return main(["run", str(program), *arguments])

    return run


@pytest.fixture
def namespaces(monkeypatch):
    """A namespace in a namespace, `tapejax.some.inner`, which says of missing names what to use instead."""

    def missing(name):
        raise AttributeError(f"tapejax.some has no {name!r}; use jnp.{name}")

    some, inner = types.ModuleType("tapejax.some"), types.ModuleType("tapejax.some.inner")
    some.inner, some.__getattr__, inner.answer = inner, missing, 42
    monkeypatch.setattr(tapejax, "some", some, raising=False)
    return some


# ---- imports


def test_every_way_to_import_gives_tapejax_itself(run, capsys, namespaces):
    source = """
import tensorflow
import tensorflow as tf
import tensorflow.some
import tensorflow.some.inner as inner
from tensorflow import some
from tensorflow.some import inner as inner_too
from tensorflow.some.inner import answer
import tapejax
assert tf is tensorflow is tapejax
assert some is tapejax.some is tf.some and inner is inner_too is tapejax.some.inner
print(answer)
"""
    assert run(source) == 0
    assert capsys.readouterr().out == "42\n"


def test_import_inside_a_function_and_in_an_imported_module(run, capsys, tmp_path):
    (tmp_path / "helper_of_program.py").write_text("import tensorflow as tf\nname = tf.__name__\n")
    source = """
def later():
    import tensorflow
    import helper_of_program
    return tensorflow.__name__, helper_of_program.name
print(*later())
"""
    assert run(source) == 0
    assert capsys.readouterr().out == "tapejax tapejax\n"


def test_importing_leaves_the_namespaces_as_they_are(run, namespaces):
    before = tapejax.__spec__, tapejax.__name__, namespaces.__spec__, namespaces.__name__
    assert run("import tensorflow.some") == 0
    assert (tapejax.__spec__, tapejax.__name__, namespaces.__spec__, namespaces.__name__) == before


def test_nothing_is_left_behind(run, tmp_path):
    def state():
        python = builtins.__import__, importlib.import_module, sys.displayhook, os.getcwd(), dict(os.environ)
        jaxs = jax.config.jax_enable_x64
        return *python, list(sys.path), sys.argv, sys.modules["__main__"], jaxs, bool(gc.get_freeze_count())

    before = state()
    real = types.ModuleType("tensorflow")
    sys.modules["tensorflow"] = real
    try:
        assert run("import tensorflow; assert tensorflow.__name__ == 'tapejax'") == 0
        assert run("import tensorflow; raise ValueError") == 1
        assert sys.modules["tensorflow"] is real
    finally:
        del sys.modules["tensorflow"]
    assert state() == before


def test_missing_modules_and_names_say_what_tapejax_says(run, capsys, namespaces):
    assert run("import tensorflow.some.fft") == 1
    error = capsys.readouterr().err
    assert "ModuleNotFoundError: No module named 'tensorflow.some.fft'" in error and "use jnp.fft" in error

    assert run("from tensorflow import some\nsome.fft") == 1
    assert "AttributeError: tapejax.some has no 'fft'; use jnp.fft" in capsys.readouterr().err

    assert run("import tensorflow.no_such_thing") == 1
    assert "No module named 'tensorflow.no_such_thing'" in capsys.readouterr().err

    assert run("from tensorflow import no_such_thing") == 1
    assert "ImportError: cannot import name 'no_such_thing'" in capsys.readouterr().err


def test_names_missing_from_a_namespace_keep_their_hint(run, capsys, namespaces, monkeypatch):
    monkeypatch.setitem(sys.modules, "tapejax.some", namespaces)
    assert run("from tensorflow.some import fft") == 1
    error = capsys.readouterr().err
    assert "cannot import name 'fft' from 'tensorflow.some'" in error and "use jnp.fft" in error


def test_a_class_or_function_is_no_module(run, capsys, monkeypatch):
    monkeypatch.setattr(tapejax, "SomeClass", type("SomeClass", (), {}), raising=False)
    assert run("import tensorflow.SomeClass") == 1
    assert "No module named 'tensorflow.SomeClass'" in capsys.readouterr().err
    assert not hasattr(tapejax.SomeClass, "__path__")


# ---- who finds tapejax, and who does not


def test_only_the_program_and_its_modules_find_it(run, capsys, tmp_path, monkeypatch):
    asking = """
import importlib, importlib.util, sys
def ask():
    found = []
    for question in (lambda: __import__("tensorflow"), lambda: importlib.import_module("tensorflow.math")):
        try:
            found.append(question().__name__)
        except ImportError:
            found.append(None)
    return found
"""
    site = tmp_path / "lib" / "site-packages"
    (tmp_path / "own_package_").mkdir()
    site.mkdir(parents=True)
    (site / "a_library_.py").write_text(asking)
    (tmp_path / "own_package_" / "__init__.py").write_text(asking)
    monkeypatch.syspath_prepend(str(site))
    # Real TensorFlow may be installed: a module that cannot be imported stands in its place.
    (site / "tensorflow").mkdir()
    (site / "tensorflow" / "__init__.py").write_text("raise ImportError('no TensorFlow')")
    source = """
import sys, a_library_, own_package_, tensorflow
assert own_package_.ask() == ["tapejax", "tapejax.math"], own_package_.ask()
assert a_library_.ask() == [None, None], a_library_.ask()
assert "tensorflow" not in sys.modules
exec("import tensorflow.math", space := {})
print(space["tensorflow"].__name__)
"""
    assert run(source) == 0, capsys.readouterr().err
    assert capsys.readouterr().out == "tapejax\n"


def test_a_program_that_is_installed_itself_finds_it(tmp_path, capsys):
    folder = tmp_path / "site-packages" / "project"
    folder.mkdir(parents=True)
    (folder / "its_module_.py").write_text("import tensorflow as tf")
    (folder / "main.py").write_text("import its_module_; print(its_module_.tf.__name__)")
    assert main(["run", str(folder / "main.py")]) == 0
    assert capsys.readouterr().out == "tapejax\n"


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (
            "import tensorflow_datasets as tfds",
            "tensorflow_datasets is built on TensorFlow itself: use tf.keras.datasets",
        ),
        ("import tensorflow_hub", "keras_hub"),
        ("from tensorflow_probability import distributions", "tensorflow_probability.substrates.jax"),
        ("import tensorflow.compat.v1 as tf; tf.placeholder(tf.float32)", "tf.function compiles"),
        ("import tensorflow as tf; tf.Session()", "tapejax has no tf.Session: use jax.jit to compile"),
        ("import tensorflow as tf; tf.compat.v1.placeholder(tf.float32)", "an argument of a function"),
        ("from tensorflow.python.ops import gen_math_ops", "No module named 'tensorflow.python.ops'"),
    ],
)
def test_what_has_no_counterpart_says_what_to_do(run, capsys, statement, words):
    assert run(statement) == 1
    error = capsys.readouterr().err
    assert words in error and "line 1, in <module>" in error and error.count("  File") == 1


def test_a_missing_module_can_be_caught(run):
    assert run("try:\n    import tensorflow_hub\nexcept ImportError:\n    tensorflow_hub = None") == 0


def test_star_imports(tmp_path):
    """In a process of its own: it imports Keras, too, if that is installed."""
    program = tmp_path / "program.py"
    program.write_text("from tensorflow import *\nimport sys\nsys.stdout.write(f'{reduce_sum(constant([1.0, 2.0]))}')")
    command = [sys.executable, "-m", "tapejax", "run", str(program)]
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONPATH": str(Path(__file__).resolve().parents[3])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout == "3.0", done.stderr


def test_keras_is_tapejax_keras(tmp_path):
    if importlib.util.find_spec("keras") is None:
        pytest.skip("Keras is not installed")
    source = """
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers
import tensorflow.keras.backend as K
from tensorflow.keras.layers import Dense
import keras as again
import importlib, sys, tapejax.keras
assert keras is tf.keras is tapejax.keras and again is keras and layers is keras.layers
assert importlib.import_module("tensorflow.keras.layers") is layers and K is keras.backend
model = keras.Sequential([Dense(2, kernel_initializer="ones"), layers.ReLU()])
assert keras.backend.backend() == "jax"
assert "tensorflow" not in sys.modules  # nor did Keras look for it
print(model(tf.ones([1, 3])).numpy().tolist())
"""
    (tmp_path / "p.py").write_text(source)
    done = shell("run", "p.py", cwd=tmp_path, KERAS_BACKEND="tensorflow")
    assert (done.returncode, done.stdout, done.stderr) == (0, "[[3.0, 3.0]]\n", "")


# ---- what the program sees of Python


def test_the_program_is_the_main_program(run, capsys, tmp_path):
    source = """
import pickle, sys
class Thing: pass
assert type(pickle.loads(pickle.dumps(Thing()))) is Thing
assert sys.modules["__main__"].Thing is Thing
print(__name__, __file__, sys.path[0], sys.argv, sep="\\n")
"""
    assert run(source, "--epochs", "3", "--", "-h") == 0
    program = str(tmp_path / "program.py")
    expected = ["__main__", program, str(tmp_path), str([program, "--epochs", "3", "--", "-h"])]
    assert capsys.readouterr().out.splitlines() == expected


def test_argv_names_the_program_as_it_was_given(tmp_path, monkeypatch, capsys):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "p.py").write_text("import sys; print(sys.argv[0], sys.path[0], __file__)")
    monkeypatch.chdir(tmp_path)
    assert main(["run", "folder/p.py"]) == 0
    assert capsys.readouterr().out == f"folder/p.py {tmp_path / 'folder'} {tmp_path / 'folder' / 'p.py'}\n"


def test_options_before_the_program_are_ours_and_after_it_the_programs(tmp_path, capsys):
    (tmp_path / "p.py").write_text("import sys; print(sys.argv[1:])")
    assert main(["run", "--full-traceback", str(tmp_path / "p.py"), "--full-traceback", "-h"]) == 0
    assert capsys.readouterr().out == "['--full-traceback', '-h']\n"


def test_future_imports_and_encodings_are_the_programs_own(run, capsys, tmp_path):
    assert run("def f(x: int): pass\nassert f.__annotations__ == {'x': int}") == 0
    (tmp_path / "latin.py").write_bytes("# coding: latin-1\nprint('é' == chr(233))".encode("latin-1"))
    assert main(["run", str(tmp_path / "latin.py")]) == 0
    assert capsys.readouterr().out == "True\n"


def test_64_bit_types_exist_and_python_floats_are_float32(run):
    source = """
import numpy as np, tensorflow as tf
print(tf.constant(1.5).dtype.name, tf.constant(1).dtype.name, tf.constant(np.ones(1)).dtype.name)
print(tf.cast(1, tf.int64).dtype.name, tf.zeros([1], tf.float64).dtype.name, (tf.Variable(0.5) * 2.0).dtype.name)
"""
    assert run("import jax.numpy as jnp; assert jnp.zeros(1, 'float64').dtype == 'float64'") == 0
    assert run(source) == 0


def test_garbage_is_not_looked_for_in_what_was_there_before(run):
    source = (
        "import gc, tapejax; assert gc.get_freeze_count(); mine = [[]]; assert any(x is mine for x in gc.get_objects())"
    )
    gc.unfreeze()
    assert run(source) == 0
    assert not gc.get_freeze_count()
    gc.freeze()  # of somebody else's
    try:
        assert run(source) == 0
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()


# ---- exits and failures


@pytest.mark.parametrize("code", [0, 3, None, "words"])
def test_system_exit_passes_through(run, code):
    with pytest.raises(SystemExit) as exit:
        run(f"import sys; sys.exit({code!r})")
    assert exit.value.code == code


def test_a_traceback_starts_at_the_programs_own_line(run, capsys, tmp_path):
    assert run("def inner():\n    raise ValueError('of the user')\n\ninner()\n") == 1
    first, *rest = capsys.readouterr().err.splitlines()
    assert first == "Traceback (most recent call last):"
    assert rest[0].strip() == f'File "{tmp_path / "program.py"}", line 4, in <module>'
    assert rest[1].strip() == "inner()" and rest[-1] == "ValueError: of the user"
    assert "runner.py" not in "".join(rest)


def test_frames_of_packages_are_folded(run, capsys, tmp_path):
    source = """
import tensorflow as tf

def row(x):
    return tf.reshape(x, [3])

try:
    tf.map_fn(row, tf.ones([2, 2]))
except ValueError as error:
    raise RuntimeError("in training") from error
"""
    program = str(tmp_path / "program.py")
    assert run(source.replace("ValueError", "tf.errors.InvalidArgumentError")) == 1
    error = capsys.readouterr().err
    files = [line.split('"')[1] for line in error.splitlines() if line.startswith("  File")]
    assert files == [program] * 3
    assert "line 8, in <module>\n    tf.map_fn(row" in error and "line 5, in row\n    return tf.reshape" in error
    assert "in tapejax; run --full-traceback shows more" in error
    assert "The above exception was the direct cause" in error and error.endswith("RuntimeError: in training\n")

    (tmp_path / "program.py").write_text("import jax\njax.jit(lambda x: x.no_such)(1.0)")
    assert main(["run", program]) == 1
    short = capsys.readouterr().err
    assert "JAX has removed" not in short and "traceback_util" not in short
    assert main(["run", "--full-traceback", program]) == 1
    full = capsys.readouterr().err
    assert len(full) > len(short) and os.path.join("jax", "_src") in full and "runner.py" not in full


def test_a_mistake_in_a_module_of_the_programs_shows_it(run, capsys, tmp_path):
    (tmp_path / "broken_module_.py").write_text("x = 1\ny = x +\n")
    assert run("import broken_module_") == 1
    error = capsys.readouterr().err
    assert 'broken_module_.py", line 2' in error and "SyntaxError" in error and "frame" not in error


def test_a_programs_own_excepthook_is_called(run, capsys):
    source = "import sys\nsys.excepthook = lambda *_: print('hook')\nraise ValueError"
    before = sys.excepthook
    try:
        assert run(source) == 1
    finally:
        sys.excepthook = before
    assert capsys.readouterr().out == "hook\n"


def test_a_keyboard_interrupt_exits_as_a_shell_expects(run, capsys):
    assert run("raise KeyboardInterrupt") == 130
    assert "KeyboardInterrupt" in capsys.readouterr().err


@pytest.mark.parametrize("source", ["def f(:\n", "x = 'a\0b'"])
def test_a_syntax_error_shows_the_line(run, capsys, source):
    assert run("\n" + source) == 2
    error = capsys.readouterr().err
    assert "SyntaxError" in error or "null bytes" in error
    assert "program.py is not a program in Python" in error and "runner.py" not in error


def test_a_missing_file_or_a_folder(capsys, tmp_path):
    assert main(["run", str(tmp_path / "absent.py")]) == 2
    assert "absent.py: No such file or directory" in capsys.readouterr().err
    assert main(["run", str(tmp_path)]) == 2
    assert "Is a directory" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["run"], ["walk"]])
def test_wrong_arguments_give_the_usage(capsys, arguments):
    with pytest.raises(SystemExit) as exit:
        main(arguments)
    assert exit.value.code == 2
    assert "usage: python -m tapejax" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--version"], "tapejax "),
        (["--help"], "run a program"),
        ([], "run a program"),
        (["run", "--help"], "PROGRAM.py [ARGUMENT ...]"),
        (["check", "--help"], "without running"),
    ],
)
def test_help_and_version(capsys, arguments, words):
    with pytest.raises(SystemExit) as exit:
        main(arguments)
    assert exit.value.code == 0
    assert words in capsys.readouterr().out


def test_run_is_a_function_too(tmp_path):
    (tmp_path / "p.py").write_text("import sys; assert sys.argv[1:] == ['a']")
    assert runner.run(tmp_path / "p.py", ["a"]) == 0


# ---- notebooks


@pytest.fixture
def run_cells(tmp_path, capsys):
    """run_cells(*cells, arguments) runs a notebook of those code cells; returns the exit status, stdout, stderr."""

    def run_cells(*cells, arguments=()):
        notebook = {
            "cells": [{"cell_type": "markdown", "source": ["# A title"]}]
            + [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells],
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {},
        }
        (tmp_path / "book.ipynb").write_text(json.dumps(notebook))
        status = main(["run", str(tmp_path / "book.ipynb"), *arguments])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run_cells


def test_cells_run_in_one_namespace_and_show_their_last_value(run_cells, tmp_path):
    status, out, err = run_cells(
        "import os, sys\nimport tensorflow as tf\nx = tf.constant(2.0)",
        "",
        "y = x**2\ny.numpy() + 1.0  # a comment",
        "y + 1;",
        "y + 1; # quiet, too",
        "None",
        "display(x.numpy())\nfor i in range(2):\n    i",
        "print(__name__, sys.argv[1:], os.getcwd() == sys.path[0])",
        arguments=["--fast"],
    )
    assert (status, err) == (0, "")
    assert out == "np.float32(5.0)\n2.0\n__main__ ['--fast'] True\n"
    assert "_" not in vars(builtins)


def test_each_failing_cell_is_reported_in_its_own_lines(run_cells, tmp_path):
    status, out, err = run_cells(
        "import tensorflow as tf\ndef f(x):\n    return tf.reshape(x, [3])",
        "f(tf.ones([2]))",
        "print('goes on')",
        "x = = 2",
        "1 / 0",
    )
    assert status == 1 and out == "goes on\n"
    book = str(tmp_path / "book.ipynb")
    assert f'File "{book}, cell 2", line 1, in <module>\n    f(tf.ones([2]))' in err
    assert f'File "{book}, cell 1", line 3, in f\n    return tf.reshape(x, [3])' in err
    assert f'File "{book}, cell 4", line 1\n    x = = 2' in err
    assert f'File "{book}, cell 5", line 1, in <module>\n    1 / 0' in err
    assert err.endswith("3 of 5 cells failed: 2, 4, 5\n")
    assert "runner.py" not in err


def test_jupyters_own_lines(run_cells):
    status, out, err = run_cells(
        "%matplotlib inline\n%config InlineBackend.figure_format = 'retina'\n"
        "!pip install -q tensorflow\nif True:\n    %pip install more",
        "%%time\nx = 7 \\\n % 4\nprint(x)",
        "%timeit -n 1 -r 1 print('timed')",
        "!echo from the shell",
        "x?",
        "%%html\n<b>no text</b>",
        "lines = !echo one; echo two\nprint(list(lines))",
        "%%writefile module.py\nx = 1",
        "import module\nmodule.x",
        "%store x",
    )
    assert status == 1
    out = "".join(line for line in out.splitlines(keepends=True) if "time" not in line or line == "timed\n")
    assert out.split("\n", 1)[0] == "3" and "\nfrom the shell\n['one', 'two']\nWriting module.py\n1\n" in out
    assert "left out: pip install -q tensorflow\n" in err and "left out: pip install more\n" in err
    assert "1 of 10 cells failed: 10" in err and "%store" in err


def test_what_get_ipython_has(run_cells, monkeypatch):
    monkeypatch.setenv("TAPEJAX_FROM_A_CELL", "0")
    status, out, err = run_cells(
        "'google.colab' in str(get_ipython())",
        "get_ipython().run_line_magic('matplotlib', 'inline')",
        "def twice(line, cell):\n    for _ in range(2):\n        get_ipython().run_cell(cell)\n"
        "get_ipython().register_magic_function(twice, 'cell')\nn = 0",
        "%%twice\nn = n + 1\nprint('n', n)",
        "%set_env TAPEJAX_FROM_A_CELL 6\nimport os\nos.environ['TAPEJAX_FROM_A_CELL']",
        "get_ipython().system('echo x')",
        "%cd -q ..\nimport sys\nos.getcwd() == os.path.dirname(sys.path[0])",
    )
    assert (status, err) == (0, "")
    assert out == "False\nn 1\nn 2\nenv: TAPEJAX_FROM_A_CELL=6\n'6'\nx\nTrue\n"


def test_a_magic_that_ipython_registers(run_cells):
    pytest.importorskip("IPython")
    status, out, err = run_cells(
        "from IPython.core.magic import register_cell_magic\n"
        "@register_cell_magic\ndef backend(line, cell):\n    print(line)\n    get_ipython().run_cell(cell)",
        "%%backend jax\n1 + 1",
    )
    assert (status, out, err) == (0, "jax\n2\n", "")


def test_notebooks_need_ipython(run_cells, monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "IPython.core.interactiveshell", None)
    monkeypatch.setitem(sys.modules, "IPython.core.inputtransformer2", None)
    status, out, err = run_cells("print(7 % 4)")
    assert (status, out) == (2, "") and "needs IPython, which is not installed" in err
    assert main(["check", str(tmp_path / "book.ipynb")]) == 0  # of a text without lines of Jupyter's it needs none
    (tmp_path / "book.ipynb").write_text((tmp_path / "book.ipynb").read_text().replace("print(7 % 4)", "%cd .."))
    assert main(["check", str(tmp_path / "book.ipynb")]) == 2
    assert "tapejax[notebooks]" in capsys.readouterr().out


def test_figures_need_no_display(run_cells, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.delenv("MPLBACKEND", raising=False)
    status, out, err = run_cells(
        "import matplotlib.pyplot as plt\nplt.switch_backend('agg')", "plt.plot([1, 2]); plt.show(); plt.close('all')"
    )
    assert (status, out, err) == (0, "", "")


def test_exits_of_notebooks(run_cells, tmp_path, capsys):
    with pytest.raises(SystemExit) as exit:
        run_cells("import sys; sys.exit(3)")
    assert exit.value.code == 3
    status, out, err = run_cells("raise KeyboardInterrupt", "print('no more')")
    assert (status, out) == (130, "") and "KeyboardInterrupt" in err
    for text, words in [("{", "not JSON"), ("[]", "format 4"), ('{"worksheets": []}', "format 4")]:
        (tmp_path / "bad.ipynb").write_text(text)
        assert main(["run", str(tmp_path / "bad.ipynb")]) == 2
        assert words in capsys.readouterr().err


# ---- from a shell


def shell(*arguments, cwd, **environment):
    command = [sys.executable, "-m", "tapejax", *arguments]
    # The program may lie anywhere; tapejax is found there even if it is not installed.
    paths = [str(Path(tapejax.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(paths)} | environment
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=120)


def test_from_a_shell(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "helper_of_p.py").write_text("word = 'helped'")
    source = """
import sys, tensorflow as tf, helper_of_p, atexit
atexit.register(print, "bye")
print(tf.__name__, helper_of_p.word, sys.argv[1:])
1 / 0
"""
    program = tmp_path / "elsewhere" / "p.py"
    program.write_text(source)
    done = shell("run", "elsewhere/p.py", "--help", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "tapejax helped ['--help']\nbye\n")
    first, second, *_, last = done.stderr.splitlines()
    assert first == "Traceback (most recent call last):" and last == "ZeroDivisionError: division by zero"
    assert second.strip() == f'File "{program}", line 5, in <module>'


def test_the_version_is_that_of_the_tensorflow_whose_behaviour_is_kept(run, capsys):
    own = tapejax.__version__
    source = """
import tensorflow as tf
from packaging import version
assert version.parse(tf.__version__) >= version.parse("2.0"), "TensorFlow 2 is needed"
assert tf.__version__.split(".")[0] == "2" and tf.version.VERSION == tf.__version__
print(tf.__version__)
"""
    assert run(source) == 0
    assert capsys.readouterr().out == f"2.21.0+tapejax{own}\n"
    assert tapejax.__version__ == own and tapejax.version.VERSION == own


def test_the_folder_for_compiled_programs_may_begin_with_a_tilde(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(runner.CACHE, "~/compiled")
    before = {name: getattr(jax.config, name) for name in runner._KEEPING}
    try:
        jax.config.update("jax_compilation_cache_dir", None)
        runner._keep_compiled_programs()
        assert jax.config.jax_compilation_cache_dir == str(tmp_path / "compiled")
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
