"""`tapejax check` of a folder in which some files are no programs, and of programs that set attributes of the module."""

import json
import os
import sys

import pytest

from tapejax.tools.cli import check

GOOD = "import tensorflow as tf\ntf.strings.upper('x')\n"
NOT_A_NOTEBOOK = "not a notebook of format 4"
# By name: the content, and what is said of it.
BAD = {
    "no_cell.ipynb": ('{"cells": [null], "nbformat": 4}', NOT_A_NOTEBOOK),
    "no_list.ipynb": ('{"cells": 3}', NOT_A_NOTEBOOK),
    "no_object.ipynb": ("null", NOT_A_NOTEBOOK),
    "no_text.ipynb": ('{"cells": [{"cell_type": "code", "source": 3}]}', NOT_A_NOTEBOOK),
    "no_source.ipynb": ('{"cells": [{"cell_type": "code"}]}', NOT_A_NOTEBOOK),
    "numbers.ipynb": ('{"cells": [{"cell_type": "code", "source": [1, 2]}]}', NOT_A_NOTEBOOK),
    "cut_off.ipynb": ('{"cells": [', "not JSON"),
    "deep.ipynb": ("[" * 100_000, "nested too deeply"),
    "deep.py": ("-" * 200_000 + "1", "nested too deeply"),
    "brackets.py": ("(" * 500 + ")" * 500, "nested parentheses"),
    "null_bytes.py": ("x = 1\0", "null bytes"),
    "binary.py": (b"\x89PNG\r\n\xff\xfe", "line 1"),
    "not_python.py": ("x = = 1", "line 1: invalid syntax"),
}


def report(folder, capsys):
    status = check.main([str(folder)], as_json=True)
    files = {os.path.basename(file["path"]): file for file in json.loads(capsys.readouterr().out)["files"]}
    return status, files


def test_bad_files_do_not_end_the_check(tmp_path, capsys):
    for name, (content, _) in BAD.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (tmp_path / "zz_good.py").write_text(GOOD)
    status, files = report(tmp_path, capsys)
    assert status == 2 and files.keys() == {*BAD, "zz_good.py"}
    for name, (_, said) in BAD.items():
        assert said in files[name]["error"] and "None" not in files[name]["error"], name
    assert [use["name"] for use in files["zz_good.py"]["names"]] == ["tf.strings.upper"]


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and links of POSIX")
def test_what_is_no_regular_file(tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "itself.py").symlink_to("itself.py")
    (tmp_path / "gone.py").symlink_to("nowhere.py")
    (tmp_path / "endless.py").symlink_to("/dev/zero")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "around").symlink_to(tmp_path)
    (tmp_path / "inner" / "good.py").write_text(GOOD)
    status, files = report(tmp_path, capsys)
    errors = {name: file["error"] for name, file in files.items()}
    assert status == 2 and errors.pop("good.py") is None
    assert errors["pipe.py"] == errors["endless.py"] == "not a regular file"
    assert "symbolic links" in errors["itself.py"] and "No such file" in errors["gone.py"] and len(errors) == 4


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
def test_a_pipe_is_not_opened(tmp_path, capsys):
    """Nor where the command names it, nor where a program imports it."""
    os.mkfifo(tmp_path / "pipe.py")
    status, files = report(tmp_path / "pipe.py", capsys)
    assert status == 2 and files["pipe.py"]["error"] == "not a regular file"
    (tmp_path / "good.py").write_text("import pipe\n" + GOOD)
    status, files = report(tmp_path / "good.py", capsys)
    assert status == 1 and files.keys() == {"good.py"}


def test_modules_of_the_programs_own_are_read(tmp_path, capsys):
    uses = "import tensorflow as tf\ntf.strings.{}('x')\n"
    for name, text in {
        "program.py": "import os, numpy, helper, package.deep.inner\nfrom package import side as s, nothing\n"
        "try:\n    import last\nexcept ImportError:\n    pass\nimport nowhere\n",
        "helper.py": "import program, helper\n" + uses.format("upper"),
        "package/__init__.py": "from . import sibling\n" + uses.format("lower"),
        "package/sibling.py": uses.format("join"),
        "package/side.py": "import helper2\n" + uses.format("split"),
        "package/deep/__init__.py": "",
        "package/deep/inner.py": "from ..up import value\n" + uses.format("length"),
        "package/up.py": uses.format("strip"),
        "package/helper2.py": "not read: it lies beside `side`, not beside the program",
        "last.py": uses.format("substr"),
        "unused.py": uses.format("format"),
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    status = check.main([str(tmp_path / "program.py")], as_json=True)
    found = json.loads(capsys.readouterr().out)["files"]
    paths = [os.path.relpath(os.path.realpath(file["path"]), os.path.realpath(tmp_path)) for file in found]
    assert status == 1 and paths[0] == "program.py" and len(paths) == len(set(paths))
    names = {
        path: [use["name"].rpartition(".")[2] for use in file["names"]] for path, file in zip(paths, found, strict=True)
    }
    assert {path: all_ for path, all_ in names.items() if all_} == {
        "helper.py": ["upper"],
        "last.py": ["substr"],
        os.path.join("package", "__init__.py"): ["lower"],
        os.path.join("package", "sibling.py"): ["join"],
        os.path.join("package", "side.py"): ["split"],
        os.path.join("package", "deep", "inner.py"): ["length"],
        os.path.join("package", "up.py"): ["strip"],
    }
    check.main([str(tmp_path / "program.py"), str(tmp_path / "helper.py")], as_json=True)
    again = [file["path"] for file in json.loads(capsys.readouterr().out)["files"]]
    assert len(again) == len(found) and len(set(again)) == len(again)


def test_a_module_that_cannot_be_read(tmp_path, capsys):
    (tmp_path / "program.py").write_text("import broken\n")
    (tmp_path / "broken.py").write_text("x = = 1\n")
    status, files = report(tmp_path / "program.py", capsys)
    assert status == 2 and "invalid syntax" in files["broken.py"]["error"] and files["program.py"]["error"] is None


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads everything")
def test_what_may_not_be_read(tmp_path, capsys):
    (tmp_path / "closed").mkdir(mode=0)
    (tmp_path / "closed.py").write_text(GOOD)
    (tmp_path / "closed.py").chmod(0)
    (tmp_path / "good.py").write_text(GOOD)
    status, files = report(tmp_path, capsys)
    assert status == 2 and "denied" in files["closed"]["error"] and "denied" in files["closed.py"]["error"]
    assert files["good.py"]["error"] is None


def test_a_folder_that_cannot_be_listed(tmp_path, capsys, monkeypatch):
    walk = os.walk

    def refused(folder, onerror):
        onerror(PermissionError(13, "Permission denied", str(tmp_path / "closed")))
        return walk(folder)

    (tmp_path / "good.py").write_text(GOOD)
    monkeypatch.setattr(os, "walk", refused)
    status, files = report(tmp_path, capsys)
    assert status == 2 and files["closed"]["error"] == "Permission denied" and not files["good.py"]["error"]


def test_a_terminal_obeys_nothing(tmp_path, capsys):
    names = ["red\x1b[31m.py", "two\nlines.py", "turned\u202e.py", "ä.py"]
    for name in names:
        (tmp_path / name).write_text("import tensorflow as tf\ntf.sin\n")
    (tmp_path / "bad\x1b.py").write_text("x = = 1")
    check.main([str(tmp_path)])
    text = capsys.readouterr().out
    assert text.isprintable() or all(line.isprintable() for line in text.split("\n"))
    for shown in (
        r"red\x1b[31m.py",
        r"two\nlines.py",
        r"turned\u202e.py",
        "ä.py",
        r"bad\x1b.py",
    ):
        assert shown in text
    check.main([str(tmp_path)], as_json=True)
    assert "\x1b" not in capsys.readouterr().out


# ---- attributes that the program gives the module ----


def names(source):
    return {(use.name, use.line): use.status for use in check.check(source).uses}


@pytest.mark.parametrize(
    "assignment",
    [
        "tf.foo = 3",
        "tf.foo: int = 3",
        "tf.foo, other = 3, 4",
        "for tf.foo in range(3): pass",
        "with open('x') as tf.foo: pass",
        "def patch():\n    tf.foo = 3\npatch()",
    ],
)
def test_an_attribute_that_is_set_is_not_missing(assignment):
    found = names(f"import tensorflow as tf\n{assignment}\nprint(tf.foo, tf.foo.bar, tf.foo(1), tf.other_name)\n")
    assert {name for name, _ in found} == {"tf.other_name"}


def test_what_is_replaced_has_the_programs_arguments():
    text = "import tensorflow as tf\ntf.nn.relu = lambda x, a: x\ntf.nn.relu(1, a=2)\ntf.nn.gelu(1, a=2)\n"
    assert {name for (name, _), status in names(text).items() if status == "missing"} == {"tf.nn.gelu(a=)"}


def test_what_gets_the_attribute_has_to_be_there():
    assert names("import tensorflow as tf\ntf.contrib.foo = 3\n") == {("tf.contrib", 2): "missing"}


def test_from_an_imported_namespace():
    text = "from tensorflow import nn\nnn.mine = max\nnn.mine(1, 2)\nimport tensorflow as tf\ntf.nn.mine(1)\n"
    assert "missing" not in names(text).values()


def test_attributes_of_other_objects_are_no_names_of_the_module():
    text = "import tensorflow as tf\nclass A: pass\nA.foo = 1\nprint(tf.foo)\n"
    assert names(text) == {("tf.foo", 4): "missing"}
