"""Notebook 0: the answers of a student are what the cells below use, to the end; and `from_scratch.py` has the same answers."""

from __future__ import annotations

import ast
import sys
import types

import exercises
import exercises_scratch
import pytest
from test_notebooks import FOLDER, nbformat

PATH = FOLDER / "0_a_tape_from_scratch.ipynb"
CELLS = nbformat.read(PATH, 4).cells
ANSWERS = {i: exercises.answer_of(CELLS, i) for i, cell in enumerate(CELLS) if exercises.is_exercise(cell)}


@pytest.fixture
def run(monkeypatch):
    """run(answers) runs the notebook's program, without its figures, with `answers` in the cells of these numbers."""
    np, jax = pytest.importorskip("numpy"), pytest.importorskip("jax")
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setitem(sys.modules, "__notebook__", module := types.ModuleType("__notebook__"))

    def run(answers):
        for i, cell in enumerate(CELLS):
            if cell.cell_type == "code" and "drawing" not in cell.metadata.get("tags", []):
                source = exercises.filled_in(cell.source, answers[i]) if i in answers else cell.source
                source = source.replace("style.use()", "").replace('jax.config.update("jax_enable_x64", True)', "")
                exec(compile(source, cell.id, "exec"), vars(module))
        return vars(module)

    with jax.enable_x64(True), np.errstate(all="raise"):
        yield run


def test_the_answers_of_a_student_train_the_network(run, capsys):
    names = run(ANSWERS)
    assert capsys.readouterr().out.count("Right.") == len(ANSWERS) == 10
    where = {names[name].__code__.co_filename for name in ("record", "gradient", "push", "train")}
    assert where == {"record", "gradient", "push", "train"}  # the cells; what `ready` runs is in none
    assert names["their_weights"] == names["weights"]


def test_without_answers_it_goes_on_with_those_of_the_file(run, capsys):
    names = run({})
    assert capsys.readouterr().out.count("Not answered yet.") == len(ANSWERS)
    assert names["their_weights"] == names["weights"]


def test_a_students_function_is_not_replaced(run):
    import style

    mine = {"record": lambda rule, *inputs: 3.0}
    style.ready(mine, "record")
    assert mine["record"](None) == 3.0


def test_the_file_has_the_answers():
    written = {}
    for answer in ANSWERS.values():
        written |= {
            part.name: part for part in ast.parse(answer).body if isinstance(part, (ast.FunctionDef, ast.ClassDef))
        }
    assert len(written) >= 12
    for name, part in written.items():
        assert ast.unparse(part) == ast.unparse(ast.parse(exercises_scratch.PARTS[name])), name
