"""Whose code a file is: libraries outside of Python's own folders are not the user's, and an editable project is."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tapejax import places
from tapejax.tools.cli import imports

LIBRARY = """
import importlib.util
import jax.numpy as jnp

ASKED = importlib.util.find_spec("tensorflow") is not None
try:
    import tensorflow as tensorflow
    GOT = tensorflow.__name__
except ImportError:
    GOT = None

def squared(x):
    return jnp.square(jnp.asarray(x))
"""
PROGRAM = """
import sys
import tapejax as tf
import somelib

x = tf.Variable(3.0)
with tf.GradientTape() as tape:
    y = somelib.squared(x)
print("line", tape.explain(y, x)[0].path[-1].line)
"""
# The program is run by `tapejax run`, and so are its modules.
RUN = """
import tensorflow as tf
import somelib

assert tf.sin(0.0).numpy() == 0
print("got", somelib.GOT)
"""


def installed(folder, record="RECORD"):
    """`somelib`, with what an installer leaves beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "somelib").mkdir()
    (folder / "somelib" / "__init__.py").write_text(LIBRARY)
    info = folder / "some_lib-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: some-lib\nVersion: 1.0\n")
    (info / record).write_text("somelib/__init__.py,,\nsome_lib-1.0.dist-info/METADATA,,\n")
    return folder


def source(folder):
    """`somelib` as its author has it: no installer has been here, but perhaps ``setup.py develop``."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "somelib.py").write_text(LIBRARY)
    (folder / "somelib.egg-info").mkdir()
    return folder


def printed(program, folder, arguments=(), **environment):
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "main.py"
    file.write_text(textwrap.dedent(program))
    empty = folder.parent / "empty" / "tensorflow"  # the real one takes seconds to import
    empty.mkdir(parents=True, exist_ok=True)
    (empty / "__init__.py").touch()
    names = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    paths = [*environment.pop("paths", ()), Path(imports.__file__).parents[3], empty.parent]
    names |= {"PYTHONPATH": os.pathsep.join(map(str, paths))}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *arguments, str(file)],
        cwd=environment.pop("cwd", folder),
        env=names | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_library_by_pythonpath_is_not_the_users(tmp_path):
    library = installed(tmp_path / "libraries")
    assert "line main.py:8" in printed(PROGRAM, tmp_path / "program", paths=[library])
    out = printed(RUN, tmp_path / "program", ["-m", "tapejax", "run"], paths=[library])
    assert "got tensorflow" in out


def test_a_user_site_and_a_pth(tmp_path):
    """A user site and the folder that a ``.pth`` names are entries of ``sys.path``, which Python made."""
    base = tmp_path / "base"
    site = base / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    installed(site)
    added = f"import site\nsite.addsitedir({str(site)!r})\n"
    assert "line main.py:10" in printed(added + PROGRAM, tmp_path / "program")
    library = installed(tmp_path / "elsewhere")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "more.pth").write_text(f"{library}\n")
    added = f"import site\nsite.addsitedir({str(tmp_path / 'site')!r})\n"
    assert "line main.py:10" in printed(added + PROGRAM, tmp_path / "program")


def test_the_users_own_modules_are_his(tmp_path):
    """Beside the program, in the current folder, and on ``sys.path`` as an editable installation has it."""
    own = source(tmp_path / "program")
    assert "line somelib.py:13" in printed(PROGRAM, own)
    assert "got tapejax" in printed(RUN, own, ["-m", "tapejax", "run"])
    editable = source(tmp_path / "project" / "src")
    assert "line somelib.py:13" in printed(PROGRAM, tmp_path / "other", paths=[editable])
    assert "got tapejax" in printed(RUN, tmp_path / "other", ["-m", "tapejax", "run"], paths=[editable])


GENERATES = """
import importlib, types

made = types.ModuleType("962faca2")  # as a library makes modules of the operations that it loads: no file, no name of its own
exec('''
try:
    import tensorflow
    GOT = tensorflow.__name__
except ImportError:
    GOT = None
def later():
    import tensorflow
''', vars(made))
"""
ASKS = """
import code, timeit, types
import somelib

mine = types.ModuleType("5b1f00")
exec("import tensorflow; GOT = tensorflow.__name__", vars(mine))
names = {}
exec("import tensorflow as tf", names)
print("library", somelib.made.GOT, "program", mine.GOT, names["tf"].__name__)
print(timeit.timeit("assert tf.__name__ == 'tapejax'", setup="import tensorflow as tf", number=1) > 0)
code.InteractiveInterpreter().runcode(compile("import tensorflow; print('typed', tensorflow.__name__)", "<console>", "exec"))
"""


def test_generated_code_is_that_of_whoever_runs_it(tmp_path):
    library = installed(tmp_path / "libraries")
    (library / "somelib" / "__init__.py").write_text(GENERATES)
    (library / "tensorflow").mkdir()
    (library / "tensorflow" / "__init__.py").write_text("")
    (library / "some_lib-1.0.dist-info" / "RECORD").write_text("somelib/__init__.py,,\ntensorflow/__init__.py,,\n")
    out = printed(ASKS, tmp_path / "program", ["-m", "tapejax", "run"], paths=[library])
    assert out == "library tensorflow program tapejax tapejax\nTrue\ntyped tapejax\n"


# ---- the rule itself ----


@pytest.fixture
def fresh():
    places._whose.cache_clear()
    places._installed_in.cache_clear()
    yield
    places._whose.cache_clear()
    places._installed_in.cache_clear()


@pytest.mark.parametrize(
    "file, library",
    {
        "/home/me/.local/lib/python3.11/site-packages/flax/core.py": True,
        "/usr/lib/python3/dist-packages/numpy/core.py": True,
        "/opt/conda/envs/e/lib/python3.12/site-packages/keras/a.py": True,
        "/home/me/project/__pypackages__/3.11/lib/flax/core.py": True,
        "/opt/eggs/flax-1.0-py3.11.egg/flax/core.py": True,
        "/home/me/project/train.py": False,
        "/home/me/project/my-site-packages-notes/train.py": False,
        "/home/me/project/site-packages.py": False,
        "<stdin>": False,
        "<string>": False,
        "<ipython-input-3-abc>": False,
        "<frozen importlib._bootstrap>": True,
        os.__file__: True,
        textwrap.__file__: True,
        pytest.__file__: True,
        places.__file__: True,
    }.items(),
)
def test_where_a_file_lies(file, library, fresh):
    assert places.serves(file) is library is imports.is_installed(file, Path("/home/me/project"))


def test_a_virtual_environment_in_the_current_folder(tmp_path, monkeypatch, fresh):
    monkeypatch.chdir(tmp_path)
    assert places.serves(str(tmp_path / ".venv" / "lib" / "python3.11" / "site-packages" / "a" / "b.py"))
    assert not places.serves(str(tmp_path / "src" / "b.py"))


def test_libraries_beside_the_program(tmp_path, monkeypatch, fresh):
    """``pip install --target .``, as for a function in a cloud: what the installer's record names is not the user's."""
    installed(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert places.serves(str(tmp_path / "somelib" / "__init__.py"))
    assert not places.serves(str(tmp_path / "handler.py"))
    assert imports.is_installed(str(tmp_path / "somelib" / "part.py"), tmp_path)


def test_a_program_that_is_installed_itself(tmp_path, monkeypatch, fresh):
    site = installed(tmp_path / "site-packages")
    monkeypatch.syspath_prepend(site)
    file = str(site / "somelib" / "__init__.py")
    assert imports.is_installed(file, tmp_path) and not imports.is_installed(file, site / "somelib")


def test_links_into_a_cache(tmp_path, monkeypatch, fresh):
    """Some installers make links: neither the link nor what it leads to is the user's."""
    cache = installed(tmp_path / "cache" / "archive")
    site = tmp_path / "lib" / "site-packages"
    site.mkdir(parents=True)
    (site / "somelib").symlink_to(cache / "somelib")
    assert places.serves(str(site / "somelib" / "__init__.py"))
    link = tmp_path / "program" / "somelib"
    link.parent.mkdir()
    link.symlink_to(site / "somelib")
    monkeypatch.syspath_prepend(cache)
    assert places.serves(str(link / "__init__.py"))


def test_a_record_that_is_missing_or_not_text(tmp_path, monkeypatch, fresh):
    library = installed(tmp_path / "one", record="INSTALLER")
    monkeypatch.syspath_prepend(library)
    assert not places.serves(str(library / "somelib" / "__init__.py"))
    (library / "some_lib-1.0.dist-info" / "RECORD").write_bytes(b"\xff\xfe\0\n")
    places._installed_in.cache_clear()
    assert not places.serves(str(library / "somelib" / "other.py"))


def test_a_current_folder_that_is_gone(tmp_path, monkeypatch, fresh):
    def gone():
        raise FileNotFoundError

    monkeypatch.setattr(os, "getcwd", gone)
    assert not places.serves("/home/me/project/train.py")
