"""`notebooks/nbgrader_export.py`: what it writes runs with its answers, and fails without one."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys

import exercises
import pytest
from test_notebooks import FOLDER, NOTEBOOKS, nbformat

SOLUTION = re.compile(r"### BEGIN SOLUTION\n(.*?)\n### END SOLUTION", re.DOTALL)


def load(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


exported = load("nbgrader_export").exported


def graded(notebook, flag):
    return [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get(flag)]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_exercise_has_a_gap_and_a_test(path):
    before = nbformat.read(path, 4)
    asked = [cell for cell in before.cells if exercises.is_exercise(cell)]
    answers = [
        exercises.answer_of(before.cells, i) for i, cell in enumerate(before.cells) if exercises.is_exercise(cell)
    ]
    checks = [re.findall(r"style\.check\(\w+", cell.source) for cell in asked]
    after = exported(before)
    nbformat.validate(after)
    gaps, tests = graded(after, "solution"), graded(after, "grade")
    assert [SOLUTION.search(gap.source)[1] for gap in gaps] == [answer.rstrip() for answer in answers]
    assert [re.findall(r"style\.grade\(\w+", test.source) for test in tests] == [
        [check.replace("check", "grade") for check in found] for found in checks
    ]
    names = [cell.metadata["nbgrader"]["grade_id"] for cell in (*gaps, *tests)]
    assert len(names) == len(set(names)) and all(re.fullmatch(r"[\w-]+", name) for name in names)
    for gap in gaps:
        assert "style.check(" not in gap.source
        assert re.search(r"(?m)^# +.*\.\.\.", gap.source.partition("### BEGIN SOLUTION")[0]), (
            "what is asked is not told"
        )
    for test in tests:
        assert test.metadata["nbgrader"]["locked"] and test.metadata["nbgrader"]["points"] > 0
    for answer in answers:
        assert not any(answer in cell.source for cell in after.cells if cell.cell_type == "markdown")


def test_the_command_writes_a_notebook(tmp_path):
    out = tmp_path / "source" / "1" / "1_first_tape.ipynb"
    script = [sys.executable, str(FOLDER / "nbgrader_export.py"), str(FOLDER / "1_first_tape.ipynb"), "-o", str(out)]
    subprocess.run(script, check=True, capture_output=True)
    assert graded(nbformat.read(out, 4), "grade")


def test_no_answer_fails_a_test(monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    style = load("style")
    for answer in (..., [1.0, ...], 2.0, None):
        with pytest.raises(style.NotRight):
            style.grade(answer, 1.0)
    style.grade(1.0, 1.0)
    assert capsys.readouterr().out == "Right.\n"


def test_an_exercise_without_an_answer_is_named():
    cells = [
        nbformat.v4.new_code_cell("x = ...\n\nstyle.check(x, 1)", id="lonely"),
        nbformat.v4.new_markdown_cell("text"),
    ]
    with pytest.raises(ValueError, match="'lonely' has no folded answer"):
        exported(nbformat.v4.new_notebook(cells=cells))


@pytest.mark.parametrize("stem", exercises.exercises_written.FILES)
def test_an_exercise_that_the_cells_below_use_is_followed_by_a_cell_that_is_run_in_any_case(stem):
    before = nbformat.read(FOLDER / f"{stem}.ipynb", 4)
    used = [cell for cell in before.cells if exercises.is_exercise(cell) and "style.ready(" in cell.source]
    cells = exported(before).cells
    places = [i for i, cell in enumerate(cells) if "style.ready(" in cell.source]
    assert len(places) == len(used) > 5
    for i in places:
        assert cells[i].source.startswith("style.ready(") and cells[i].metadata["nbgrader"]["locked"]
        assert cells[i - 1].metadata["nbgrader"]["grade"] and "style.grade(" in cells[i - 1].source


def test_what_is_not_there_is_defined():
    pytest.importorskip("matplotlib")
    names = {"written": lambda: 1}
    load("style").ready(names, load("from_scratch"), "add")
    assert names["add"](1.0, 2.0)[0] == 3.0 and names["written"]() == 1
