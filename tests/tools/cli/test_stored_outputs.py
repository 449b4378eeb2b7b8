"""The settings in `.ci/outputs.py` run a notebook in its place, and store what `test_notebooks.py` accepts."""

import os
import runpy
import subprocess
import sys
import types
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")
pytest.importorskip("nbconvert")

ROOT = Path(__file__).resolve().parents[3]
SPEC = {"name": "python3", "display_name": "Python 3", "language": "python"}


def stored(tmp_path, source):
    cell = nbformat.v4.new_code_cell(source, metadata={"tags": ["drawing"]})
    notebook = nbformat.v4.new_notebook(cells=[cell], metadata={"kernelspec": SPEC, "authors": ["somebody"]})
    path = tmp_path / "some.ipynb"
    nbformat.write(notebook, path)
    command = [sys.executable, "-m", "nbconvert", "--config", ROOT / ".ci/outputs.py", path]
    environment = {**os.environ, "IPYTHONDIR": str(tmp_path), "JUPYTER_CONFIG_DIR": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    return done, nbformat.read(path, 4)


def test_outputs_are_stored_in_the_notebook(tmp_path):
    done, notebook = stored(tmp_path, "print(1, flush=True)\nprint(2)\n3")
    assert done.returncode == 0, done.stderr
    assert notebook.metadata == {"kernelspec": SPEC, "language_info": {"name": "python"}}
    (cell,) = notebook.cells
    assert cell.metadata == {"tags": ["drawing"]} and cell.execution_count == 1
    printed, shown = cell.outputs
    assert printed.text == "1\n2\n" and shown.data == {"text/plain": "3"}


def test_a_notebook_that_fails_is_left_as_it_was(tmp_path):
    done, notebook = stored(tmp_path, "1 / 0")
    assert done.returncode != 0 and "ZeroDivisionError" in done.stderr
    assert notebook.cells[0].outputs == []


def test_the_source_archive_has_notebooks_without_outputs(tmp_path, monkeypatch):
    interface = types.SimpleNamespace(BuildHookInterface=object)
    monkeypatch.setitem(sys.modules, "hatchling.builders.hooks.plugin.interface", interface)  # Hatch need not be here
    hook = runpy.run_path(str(ROOT / ".ci" / "sdist.py"))["WithoutOutputs"]()
    (tmp_path / "notebooks").mkdir()
    printed = nbformat.v4.new_output("stream", text="1\n")
    cells = [
        nbformat.v4.new_code_cell("print(1)", outputs=[printed], execution_count=3),
        nbformat.v4.new_markdown_cell("α"),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "notebooks" / "some.ipynb")
    hook.root, data = str(tmp_path), {"force_include": {}}
    hook.initialize("standard", data)
    ((copy, place),) = data["force_include"].items()
    code, words = nbformat.read(copy, 4).cells
    assert place == "notebooks/some.ipynb" and code.source == "print(1)" and words.source == "α"
    assert code.outputs == [] and code.execution_count is None
    hook.finalize("standard", data, "")
    assert not os.path.exists(copy)
