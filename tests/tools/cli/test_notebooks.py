"""Every notebook runs from top to bottom in a fresh kernel, without a warning, and what is saved in it is clean; its exercises
run as they are, the folded answer is right, and a wrong one is told."""

from __future__ import annotations

import ast
import functools
import importlib.util
import json
import os
import re
import resource
import sys
from pathlib import Path

import answers
import exercises
import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
kernelspec = pytest.importorskip("jupyter_client.kernelspec")
manager = pytest.importorskip("jupyter_client.manager")
for package in ("ipykernel", "matplotlib", "matplotlib_inline"):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"needs {package}", allow_module_level=True)

ROOT = Path(__file__).resolve().parents[3]
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


def printed(cell):
    """The lines."""
    return {*"".join(output.get("text", "") for output in cell.outputs).splitlines()}  # a line may come in pieces


def error_of(cell):
    """The name of the exception that ended it."""
    return next((output.ename for output in cell.outputs if output.output_type == "error"), None)


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


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """run(path) is the notebook after a run in a fresh kernel, and the seconds that it took; each is run once."""

    @functools.cache
    def run(path):
        notebook = with_answers(path, nbformat.read(path, 4))
        kernel, environment = kernel_here(tmp_path_factory.mktemp("jupyter"), manager.AsyncKernelManager)
        where = {"metadata": {"path": str(FOLDER)}}
        # by the clock only what hangs is stopped: other tests may be running beside this one
        client = nbclient.NotebookClient(notebook, km=kernel, timeout=5 * SECONDS, resources=where)
        before = processor_seconds()
        client.execute(
            env=environment, cleanup_kc=True
        )  # an exception in a cell of the notebook's is an exception here
        return notebook, processor_seconds() - before

    return run


LEAST = 5  # wrong answers to each exercise
RIGHT = {**exercises.RIGHT, **answers.RIGHT}
KEEP = "_names = {*globals()}"
FORGET = "for _name in {*globals()} - _names:\n    if _name[0] != '_':\n        del globals()[_name]"


def with_answers(path, notebook):
    """After each exercise the cell again: with the folded answer and other right ones, with wrong ones, and as it was.

    What only an answer binds is deleted, so that the cells below, and the other answers, do not depend on it.
    """

    def inserted(source, answer, word=""):
        metadata = {"tags": ["raises-exception"], "answer": answer, "word": word}
        return nbformat.v4.new_code_cell(source, metadata=metadata)

    cells = []
    for i, cell in enumerate(notebook.cells):
        cells.append(cell)
        if exercises.is_exercise(cell):
            cells.append(inserted(KEEP, ""))
            right, wrong = exercises.answer_of(notebook.cells, i), exercises.wrong_answers(path, notebook.cells, i)
            place = f"{path.stem}/{cell.id}"
            tried = [("right", answer, "") for answer in (right, *RIGHT.get(place, []))]
            tried += [("wrong", answer, "") for answer in wrong]
            tried += [("told", *told) for told in answers.WRONG.get(place, [])]
            for kind, answer, word in tried:
                cells += [inserted(exercises.filled_in(cell.source, answer), kind, word), inserted(FORGET, "")]
            cells.append(inserted(cell.source, "as it was"))
    notebook.cells = cells
    return notebook


def skip_without_its_packages(notebook):
    own = {found.stem for found in FOLDER.glob("*.py")}
    missing = sorted({name for name in imported(notebook) if name not in own and not importlib.util.find_spec(name)})
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")


def test_there_are_notebooks():
    assert NOTEBOOKS


@each_notebook
def test_runs_in_a_fresh_kernel(run, path):
    saved = nbformat.read(path, 4)
    skip_without_its_packages(saved)
    notebook, took = run(path)
    cells = [cell for cell in code_cells(notebook) if "answer" not in cell.metadata]

    said = [output.text for cell in cells for output in cell.outputs if output.get("name") == "stderr"]
    assert not said, f"{path.name} warns: {said}"
    stored = [*map(kinds, code_cells(saved))]
    if any(stored):  # the source archive has notebooks without outputs
        assert [*map(kinds, cells)] == stored, f"{path.name} is saved with outputs of other kinds"
    assert 0 < took < SECONDS, f"{path.name} took {took:.0f} s"


def exercises_of(notebook):
    """Each exercise's cell, and by kind of answer the cells with these."""
    found = []
    for cell in code_cells(notebook):
        kind = cell.metadata.get("answer")
        if kind is None and exercises.is_exercise(cell):
            found.append((cell, {"right": [], "wrong": [], "told": [], "as it was": []}))
        elif kind:
            found[-1][1][kind].append(cell)
    return found


@each_notebook
def test_an_exercise_tells_right_from_wrong(run, path):
    skip_without_its_packages(nbformat.read(path, 4))
    for cell, given in exercises_of(run(path)[0]):
        for asked in (cell, *given["as it was"]):
            assert (printed(asked), error_of(asked)) == ({"Not answered yet."}, None), cell.source
        for right in given["right"]:
            assert (printed(right), error_of(right)) == ({"Right."}, None), right.source
        assert len({wrong.source for wrong in given["wrong"]}) == len(given["wrong"]) >= LEAST, cell.source
        said = [(error_of(wrong), wrong.outputs[-1].get("evalue"), wrong.source) for wrong in given["wrong"]]
        assert [name for name, *_ in said] == ["NotRight"] * len(said), said
        assert any("Asked for: " in text for _, text, _ in said), f"a wrong kind is not told: {said}"
        for words, (_, text, source) in zip(exercises.SAID.get(f"{path.stem}/{cell.id}", []), said):
            assert words in text, f"{words!r} is not said, but {text!r}, of {source}"
        for told in given["told"]:
            said = (error_of(told), told.outputs[-1].get("evalue", ""))
            assert said[0] == "NotRight" and told.metadata.word in said[1], (told.source, said)


def test_the_table_of_answers_is_over_all_notebooks():
    places = {f"{path.stem}/{cell.id}" for path in NOTEBOOKS for cell in nbformat.read(path, 4).cells}
    for table, least in ((RIGHT, 30), ({**exercises.SAID, **answers.WRONG}, 60)):
        assert set(table) <= places and sum(map(len, table.values())) >= least
        assert {place.partition("/")[0] for place in table} == {path.stem for path in NOTEBOOKS}
    assert all(word for told in answers.WRONG.values() for _, word in told)


def test_every_wrong_answer_has_its_exercise():
    found = {
        f"{path.stem}/{cell.id}"
        for path in NOTEBOOKS
        for cell in nbformat.read(path, 4).cells
        if exercises.is_exercise(cell)
    }
    known = {*exercises.WRONG, *exercises.exercises_writing.CHANGED}
    assert known == {place for place in found if "/loop-" not in place}


@each_notebook
def test_a_figure_has_a_text_in_its_place(path):
    """For readers who do not see it: `style.show` takes it, and a tape's drawing makes its own."""
    for cell in code_cells(nbformat.read(path, 4)):
        for output in cell.outputs:
            data = output.get("data", {})
            pictures = re.findall("<img[^>]*>", data.get("text/html", ""))
            assert pictures or not [mime for mime in data if mime.startswith("image/")], cell.source
            texts = [re.search('alt="([^"]*)"', picture) for picture in pictures]
            assert all(text and len(text[1]) > 40 for text in texts), cell.source
            html = data.get("text/html", "")  # saved as `style.show` and `draw` make it today
            dark = "img.figure{background:#fff" in html or "img.tapejax{filter:invert" in html
            assert dark or not pictures or "tapejax-play" in html, cell.source


@each_notebook
def test_a_notebook_begins_with_its_goals(path):
    title, goals, *_ = nbformat.read(path, 4).cells
    assert title.source.startswith("# ")
    assert goals.source.startswith("**After this notebook you can**\n\n* ")
    assert 3 <= len(re.findall(r"(?m)^\* ", goals.source)) <= 5


@each_notebook
def test_questions_have_folded_answers(path):
    text = "\n\n".join(cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "markdown")
    assert text.count("<details><summary>") == text.count("</summary>\n\n") == text.count("\n\n</details>")
    for question in text.split("**Question.**")[1:]:
        assert re.match(r"(?:(?!\n#)(?!\*\().)*<details><summary>Answer</summary>", question, re.DOTALL), question[:200]


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
    # "jupyter" folds code away, "slideshow" and the tag "drawing" are for slides, the tag "checks" keeps a cell from the site
    assert not [cell.metadata for cell in notebook.cells if set(cell.metadata) - {"tags", "jupyter", "slideshow"}]
    drawing = [cell for cell in notebook.cells if "drawing" in cell.metadata.get("tags", [])]
    assert all(cell.metadata.get("jupyter", {}).get("source_hidden") for cell in drawing)  # folded away in Jupyter
