"""`python -m tapejax run PROGRAM.py`: the program finds TensorFlow's world, and Python's own."""

import os
import subprocess
import sys
import types
from pathlib import Path

import jax
import pytest

import tapejax
from tapejax import runner
from tapejax.__main__ import main


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
    before = list(sys.meta_path), list(sys.path), sys.argv, sys.modules["__main__"], jax.config.jax_enable_x64
    real = types.ModuleType("tensorflow")
    sys.modules["tensorflow"] = real
    try:
        assert run("import tensorflow; assert tensorflow.__name__ == 'tapejax'") == 0
        assert run("import tensorflow; raise ValueError") == 1
        assert sys.modules["tensorflow"] is real
    finally:
        del sys.modules["tensorflow"]
    after = list(sys.meta_path), list(sys.path), sys.argv, sys.modules["__main__"], jax.config.jax_enable_x64
    assert after == before


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
    assert "cannot import name 'fft' from 'tapejax.some'" in error and "use jnp.fft" in error


def test_a_class_or_function_is_no_module(run, capsys, monkeypatch):
    monkeypatch.setattr(tapejax, "SomeClass", type("SomeClass", (), {}), raising=False)
    assert run("import tensorflow.SomeClass") == 1
    assert "No module named 'tensorflow.SomeClass'" in capsys.readouterr().err
    assert not hasattr(tapejax.SomeClass, "__path__")


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


def test_future_imports_and_encodings_are_the_programs_own(run, capsys, tmp_path):
    assert run("def f(x: int): pass\nassert f.__annotations__ == {'x': int}") == 0
    (tmp_path / "latin.py").write_bytes("# coding: latin-1\nprint('é' == chr(233))".encode("latin-1"))
    assert main(["run", str(tmp_path / "latin.py")]) == 0
    assert capsys.readouterr().out == "True\n"


def test_64_bit_types_exist(run):
    assert run("import jax.numpy as jnp; assert jnp.zeros(1, 'float64').dtype == 'float64'") == 0


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


@pytest.mark.parametrize("arguments", [["run"], [], ["walk"]])
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
        (["run", "--help"], "PROGRAM.py [ARGUMENT ...]"),
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


# ---- from a shell


def shell(*arguments, cwd):
    command = [sys.executable, "-m", "tapejax", *arguments]
    # The program may lie anywhere; tapejax is found there even if it is not installed.
    paths = [str(Path(tapejax.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=120)


def test_from_a_shell(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "helper_of_p.py").write_text("word = 'helped'")
    source = """
import sys, tensorflow as tf, helper_of_p, atexit
atexit.register(print, "bye")
print(tf.__name__, helper_of_p.word, sys.argv[1:])
sys.exit(5 if sys.argv[1:] else None)
"""
    (tmp_path / "elsewhere" / "p.py").write_text(source)
    done = shell("run", "elsewhere/p.py", "--help", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (5, "tapejax helped ['--help']\nbye\n", "")

    (tmp_path / "bad.py").write_text("import tensorflow as tf\n1 / 0\n")
    done = shell("run", "bad.py", cwd=tmp_path)
    assert done.returncode == 1 and done.stdout == ""
    first, second, *_ = done.stderr.splitlines()
    assert first == "Traceback (most recent call last):"
    assert second.strip() == f'File "{tmp_path / "bad.py"}", line 2, in <module>'

    done = shell("run", "absent.py", cwd=tmp_path)
    assert done.returncode == 2 and "absent.py" in done.stderr and "Traceback" not in done.stderr
