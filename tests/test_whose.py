"""places.py: whose code a file is. Whole programs are looked at in tests/tools/cli/test_whose_code.py."""

import os
import sys
import sysconfig

import jax
import pytest

import tapejax
from tapejax import places
from tapejax.places import folders, is_library


@pytest.fixture(autouse=True)
def fresh():
    places._installed_in.cache_clear()
    yield
    places._installed_in.cache_clear()


def test_pythons_jax_s_and_our_own_files_are_a_librarys():
    for module in (os, jax, tapejax, sysconfig):
        assert is_library(module.__file__, [])
    assert is_library("<frozen importlib._bootstrap>", [])


def test_what_is_typed_in_or_made_by_exec_is_the_users():
    assert not is_library("<stdin>", []) and not is_library("<string>", []) and not is_library("<ipython-input-1>", [])


@pytest.mark.parametrize("folder", ["site-packages", "dist-packages", "__pypackages__", "a.egg", "a.whl"])
def test_what_lies_in_a_folder_for_libraries_is_a_librarys(folder):
    assert is_library(f"/opt/{folder}/somelib/core.py", [])
    assert not is_library("/home/user/somelib/core.py", [])
    assert not is_library(f"/opt/{folder}.py", [])  # the name of the file does not count


def test_a_program_may_lie_in_such_a_folder_itself():
    assert not is_library("/opt/site-packages/program/main.py", ["/opt/site-packages/program"])
    assert is_library("/opt/program/.venv/lib/site-packages/somelib.py", ["/opt/program"])


def test_what_a_distribution_has_installed_on_the_path_is_a_librarys(tmp_path, monkeypatch):
    record = tmp_path / "somelib-1.0.dist-info"
    record.mkdir()
    (record / "RECORD").write_text("somelib/core.py,sha256=x,1\nalone.py,,\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert is_library(str(tmp_path / "somelib" / "core.py"), []) and is_library(str(tmp_path / "alone.py"), [])
    assert not is_library(str(tmp_path / "mine.py"), [])
    assert not is_library(str(tmp_path / "somelib" / "core.py"), [str(tmp_path / "somelib")])


def test_a_record_that_cannot_be_read_says_nothing(tmp_path, monkeypatch):
    (tmp_path / "somelib-1.0.dist-info").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert not is_library(str(tmp_path / "somelib.py"), [])


def test_a_link_is_what_it_leads_to(tmp_path):
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "core.py").write_text("")
    (tmp_path / "linked.py").symlink_to(library / "core.py")
    assert is_library(str(tmp_path / "linked.py"), [])


def test_the_program_lies_where_the_main_file_does_and_in_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(tmp_path / "program" / "main.py"), raising=False)
    assert list(folders()) == [str(tmp_path / "program"), os.getcwd()]
    monkeypatch.setattr(sys.modules["__main__"], "__file__", "/opt/site-packages/pytest/__main__.py")
    assert list(folders()) == [os.getcwd()]  # a library's main file
