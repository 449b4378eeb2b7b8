"""Every notebook runs from top to bottom in a fresh kernel, without a warning; and what is saved in it is clean."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import resource
import sys
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
kernelspec = pytest.importorskip("jupyter_client.kernelspec")
manager = pytest.importorskip("jupyter_client.manager")
for package in ("ipykernel", "matplotlib", "matplotlib_inline"):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"needs {package}", allow_module_level=True)

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
SECONDS = 120

# what a machine is called, and no reader should see
MACHINE_PATH = re.compile(
    r"""(?<![\w.:/~-])(?:/(?:home|root|tmp|opt|work|usr|var|mnt|private|Users)/|[A-Z]:\\\\)[^\s"'<]*"""
)

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def kinds(cell):
    """What a cell shows, without what differs from run to run: the texts may hold times."""
    shown = []
    for output in cell.outputs:
        kind = output.name if output.output_type == "stream" else tuple(sorted(output.get("data", {})))
        if kind not in shown[-1:]:  # a stream may come in pieces
            shown.append(kind)
    return shown


def imported(notebook):
    """The packages that the code imports, as far as it cannot do without them."""
    for cell in code_cells(notebook):
        source = "\n".join(line for line in cell.source.splitlines() if not line.lstrip().startswith(("%", "!")))
        for node in ast.parse(source).body:
            if isinstance(node, ast.Import):
                yield from (alias.name.split(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module.split(".")[0]


def texts(cell):
    for output in cell.outputs:
        yield output.get("text", "")
        for mime, data in output.get("data", {}).items():
            if mime.startswith("text/") or mime.endswith("+xml"):
                yield data


def processor_seconds():
    """What the kernels took so far; other than the clock, it does not count what else the machine was doing."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def kernel_here(folder, make):
    """A kernel that is not started yet, and its environment: the Python that runs the tests, whatever "python3" is to Jupyter."""
    spec = folder / "kernels" / "python3"
    spec.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps({"argv": command, "display_name": "Python 3", "language": "python"}))
    specs = kernelspec.KernelSpecManager(kernel_dirs=[str(spec.parent)], ensure_native_kernel=False)
    search = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": search}
    environment.pop("MPLBACKEND", None)
    return make(kernel_name="python3", kernel_spec_manager=specs), environment


def test_there_are_notebooks():
    assert NOTEBOOKS


@each_notebook
def test_runs_in_a_fresh_kernel(path, tmp_path):
    notebook = nbformat.read(path, 4)
    saved = [kinds(cell) for cell in code_cells(notebook)]
    own = {found.stem for found in FOLDER.glob("*.py")}
    missing = sorted({name for name in imported(notebook) if name not in own and not importlib.util.find_spec(name)})
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")

    kernel, environment = kernel_here(tmp_path, manager.AsyncKernelManager)

    where = {"metadata": {"path": str(FOLDER)}}
    # by the clock only what hangs is stopped: other tests may be running beside this one
    client = nbclient.NotebookClient(notebook, km=kernel, timeout=5 * SECONDS, resources=where)
    before = processor_seconds()
    client.execute(env=environment, cleanup_kc=True)  # an exception in a cell is an exception here
    took = processor_seconds() - before

    said = [output.text for cell in code_cells(notebook) for output in cell.outputs if output.get("name") == "stderr"]
    assert not said, f"{path.name} warns: {said}"
    assert [kinds(cell) for cell in code_cells(notebook)] == saved, f"{path.name} is saved with outputs of other kinds"
    assert 0 < took < SECONDS, f"{path.name} took {took:.0f} s"


@each_notebook
def test_is_saved_as_it_ran(path):
    notebook = nbformat.read(path, 4)
    nbformat.validate(notebook)
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        assert not [o for o in cell.outputs if o.output_type == "error" or o.get("name") == "stderr"], cell.source
        for text in texts(cell):
            assert not MACHINE_PATH.search(text), MACHINE_PATH.search(text)[0]
    assert "pip install -e '.[notebooks]'" in notebook.cells[0].source
    assert path.stat().st_size < 1_500_000


@each_notebook
def test_metadata_are_clean(path):
    notebook = nbformat.read(path, 4)
    assert set(notebook.metadata) <= {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec == {"name": "python3", "display_name": "Python 3", "language": "python"}
    assert set(notebook.metadata.get("language_info", {})) <= {"name"}
    # "jupyter" folds the code of a drawing away, "slideshow" and the tag "drawing" are for slides
    assert not [cell.metadata for cell in notebook.cells if set(cell.metadata) - {"tags", "jupyter", "slideshow"}]
